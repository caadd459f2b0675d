#include "server/methods.h"

#include "service/grpc_path.h"

#define WORKFLOW_SERVICE HF_GRPC_WORKFLOW_SERVICE
#define OPERATOR_SERVICE HF_GRPC_OPERATOR_SERVICE
#define TEST_SERVICE HF_GRPC_TEST_SERVICE
#define HOLDFAST_SERVICE HF_GRPC_HOLDFAST_SERVICE
#define HEALTH_SERVICE "grpc.health.v1.Health"

enum {
    READ = HF_ROLE_READ | HF_ROLE_WRITE | HF_ROLE_ADMIN,
    WRITE = HF_ROLE_WRITE | HF_ROLE_ADMIN,
    WORKER = HF_ROLE_WORKER | HF_ROLE_ADMIN,
    ADMIN = HF_ROLE_ADMIN,
    ANY = READ | WORKER /* every credential that is valid */
};

typedef enum waiting {
    AT_ONCE,
    POLL,  /* for a task or an event */
    ANSWER /* for what a worker says */
} waiting;

typedef struct rule {
    const char *service; /* NULL = not for callers from outside */
    unsigned roles;
    bool is_of_system;
    waiting wait;
} rule;

/* A switch without a default: a method without a row does not compile. */
static rule rule_of(hf_method method)
{
    switch (method) {
    case HF_METHOD_GET_SYSTEM_INFO:
    case HF_METHOD_GET_CLUSTER_INFO:
        return (rule){WORKFLOW_SERVICE, ANY, true, AT_ONCE};
    case HF_METHOD_DESCRIBE_NAMESPACE:
        return (rule){WORKFLOW_SERVICE, ANY, false, AT_ONCE};

    case HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION:
    case HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE:
    case HF_METHOD_DESCRIBE_TASK_QUEUE:
    case HF_METHOD_LIST_WORKFLOW_EXECUTIONS:
    case HF_METHOD_SCAN_WORKFLOW_EXECUTIONS:
    case HF_METHOD_COUNT_WORKFLOW_EXECUTIONS:
    case HF_METHOD_LIST_OPEN_WORKFLOW_EXECUTIONS:
    case HF_METHOD_LIST_CLOSED_WORKFLOW_EXECUTIONS:
    case HF_METHOD_DESCRIBE_BATCH_OPERATION:
    case HF_METHOD_LIST_BATCH_OPERATIONS:
        return (rule){WORKFLOW_SERVICE, READ, false, AT_ONCE};
    case HF_METHOD_QUERY_WORKFLOW:
        return (rule){WORKFLOW_SERVICE, READ, false, ANSWER};
    case HF_METHOD_LIST_SEARCH_ATTRIBUTES:
        return (rule){OPERATOR_SERVICE, READ, false, AT_ONCE};
    case HF_METHOD_ADD_SEARCH_ATTRIBUTES:
    case HF_METHOD_REMOVE_SEARCH_ATTRIBUTES:
    case HF_METHOD_DELETE_NAMESPACE:
        return (rule){OPERATOR_SERVICE, ADMIN, false, AT_ONCE};
    case HF_METHOD_REGISTER_NAMESPACE:
    case HF_METHOD_UPDATE_NAMESPACE:
    case HF_METHOD_DEPRECATE_NAMESPACE:
        return (rule){WORKFLOW_SERVICE, ADMIN, false, AT_ONCE};
    case HF_METHOD_LIST_NAMESPACES:
        return (rule){WORKFLOW_SERVICE, ADMIN, true, AT_ONCE};
    case HF_METHOD_GET_SEARCH_ATTRIBUTES: /* those of "default" */
        return (rule){WORKFLOW_SERVICE, ADMIN, true, AT_ONCE};
    case HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY: /* a worker reads the histories of its tasks */
        return (rule){WORKFLOW_SERVICE, READ | WORKER, false, POLL};
    case HF_METHOD_LIST_TASK_QUEUES:
        return (rule){HOLDFAST_SERVICE, READ, false, AT_ONCE};
    case HF_METHOD_READ_STREAM:
    case HF_METHOD_READ_CHANGES:
        return (rule){HOLDFAST_SERVICE, READ, false, POLL};
    case HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE:
        return (rule){WORKFLOW_SERVICE, READ, false, POLL};

    case HF_METHOD_START_WORKFLOW_EXECUTION:
    case HF_METHOD_SIGNAL_WORKFLOW_EXECUTION:
    case HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION:
    case HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION:
    case HF_METHOD_TERMINATE_WORKFLOW_EXECUTION:
    case HF_METHOD_RESET_WORKFLOW_EXECUTION:
    case HF_METHOD_DELETE_WORKFLOW_EXECUTION:
    case HF_METHOD_START_BATCH_OPERATION:
    case HF_METHOD_STOP_BATCH_OPERATION:
    case HF_METHOD_UPDATE_WORKFLOW_EXECUTION_OPTIONS:
    case HF_METHOD_PAUSE_ACTIVITY:
    case HF_METHOD_UNPAUSE_ACTIVITY:
    case HF_METHOD_RESET_ACTIVITY:
    case HF_METHOD_UPDATE_ACTIVITY_OPTIONS:
        return (rule){WORKFLOW_SERVICE, WRITE, false, AT_ONCE};
    case HF_METHOD_UPDATE_WORKFLOW_EXECUTION:
        return (rule){WORKFLOW_SERVICE, WRITE, false, POLL};
    case HF_METHOD_EXECUTE_MULTI_OPERATION:
        return (rule){WORKFLOW_SERVICE, WRITE, false, ANSWER};

    case HF_METHOD_POLL_WORKFLOW_TASK_QUEUE:
    case HF_METHOD_POLL_ACTIVITY_TASK_QUEUE:
        return (rule){WORKFLOW_SERVICE, WORKER, false, POLL};
    case HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED:
    case HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED:
    case HF_METHOD_RESPOND_QUERY_TASK_COMPLETED:
    case HF_METHOD_RESET_STICKY_TASK_QUEUE:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED:
    case HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT:
    case HF_METHOD_SHUTDOWN_WORKER:
        return (rule){WORKFLOW_SERVICE, WORKER, false, AT_ONCE};
    case HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID: /* by a worker, or by a client that finishes it from outside */
    case HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID:
    case HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID:
        return (rule){WORKFLOW_SERVICE, WORKER | WRITE, false, AT_ONCE};

    case HF_METHOD_LOCK_TIME_SKIPPING:
    case HF_METHOD_UNLOCK_TIME_SKIPPING:
    case HF_METHOD_GET_CURRENT_TIME:
        return (rule){TEST_SERVICE, ADMIN, true, AT_ONCE};
    case HF_METHOD_SLEEP:
    case HF_METHOD_SLEEP_UNTIL:
    case HF_METHOD_UNLOCK_TIME_SKIPPING_WITH_SLEEP:
        return (rule){TEST_SERVICE, ADMIN, true, POLL};

    case HF_METHOD_TELL_LISTENER: /* from run to run, inside the engine */
    case HF_METHOD_COUNT:
        break;
    }
    return (rule){0};
}

/* Those that the door answers itself. */
static const hf_route OWN[] = {
    {.service = HEALTH_SERVICE,
     .name = "Check",
     .kind = HF_ROUTE_HEALTH_CHECK,
     .request_type = &hf_pb_health_check_request_type,
     .response_type = &hf_pb_health_check_response_type,
     .is_of_system = true},
    {.service = HEALTH_SERVICE,
     .name = "Watch",
     .kind = HF_ROUTE_HEALTH_WATCH,
     .request_type = &hf_pb_health_check_request_type,
     .response_type = &hf_pb_health_check_response_type,
     .is_of_system = true,
     .is_poll = true,
     .ends_with_door = true},
    {.service = "grpc.reflection.v1.ServerReflection",
     .name = "ServerReflectionInfo",
     .kind = HF_ROUTE_REFLECTION,
     .request_type = &hf_pb_server_reflection_request_type,
     .response_type = &hf_pb_server_reflection_response_type,
     .roles = ANY,
     .is_of_system = true,
     .is_poll = true,
     .ends_with_door = true},
    {.service = "grpc.reflection.v1alpha.ServerReflection",
     .name = "ServerReflectionInfo",
     .kind = HF_ROUTE_REFLECTION,
     .request_type = &hf_pb_server_reflection_request_type,
     .response_type = &hf_pb_server_reflection_response_type,
     .roles = ANY,
     .is_of_system = true,
     .is_poll = true,
     .ends_with_door = true},
};

/* ---- Other names ---------------------------------------------------------------------------------------------------------- */

/* Newer clients, and Temporal's command line tool, change an activity by methods that name the workflow by its id. Without one they mean an
 * activity of its own, and such are not here. */

static hf_pb_workflow_execution *execution_of(hf_arena *arena, hf_str workflow_id, hf_str run_id)
{
    hf_pb_workflow_execution *execution = workflow_id.len > 0 ? HF_ARENA_NEW(arena, hf_pb_workflow_execution) : NULL;
    if (execution != NULL) {
        execution->workflow_id = workflow_id;
        execution->run_id = run_id;
    }
    return execution;
}

/* The request of the method with what all four have; `from` and `to` are the requests. */
#define TRANSLATE(METHOD, method)                                                               \
    hf_pb_##method##_request *to = HF_ARENA_NEW(arena, hf_pb_##method##_request);               \
    hf_pb_workflow_execution *execution = execution_of(arena, from->workflow_id, from->run_id); \
    if (to == NULL || execution == NULL) {                                                      \
        return NULL;                                                                            \
    }                                                                                           \
    to->namespace = from->namespace;                                                            \
    to->execution = execution;                                                                  \
    to->identity = from->identity;                                                              \
    to->activity_case = HF_PB_##METHOD##_REQUEST_ID;                                            \
    to->id = from->activity_id

static void *pause_of(hf_arena *arena, const void *request)
{
    const hf_pb_pause_activity_execution_request *from = request;
    TRANSLATE(PAUSE_ACTIVITY, pause_activity);
    to->reason = from->reason;
    to->request_id = from->request_id;
    return to;
}

static void *unpause_of(hf_arena *arena, const void *request)
{
    const hf_pb_unpause_activity_execution_request *from = request;
    TRANSLATE(UNPAUSE_ACTIVITY, unpause_activity);
    to->jitter = from->jitter;
    return to;
}

static void *reset_of(hf_arena *arena, const void *request)
{
    const hf_pb_reset_activity_execution_request *from = request;
    TRANSLATE(RESET_ACTIVITY, reset_activity);
    to->keep_paused = from->keep_paused;
    to->jitter = from->jitter;
    to->restore_original_options = from->restore_original_options;
    to->reset_heartbeat = from->reset_heartbeat;
    return to;
}

static void *options_of(hf_arena *arena, const void *request)
{
    const hf_pb_update_activity_execution_options_request *from = request;
    TRANSLATE(UPDATE_ACTIVITY_OPTIONS, update_activity_options);
    to->activity_options = from->activity_options;
    to->update_mask = from->update_mask;
    to->restore_original = from->restore_original;
    return to;
}

#define OTHER_NAME(text, METHOD, stem, with)                                                                          \
    {                                                                                                                 \
        .service = WORKFLOW_SERVICE, .name = text, .kind = HF_ROUTE_SERVICE, .method = METHOD,                        \
        .request_type = &hf_pb_##stem##_request_type, .response_type = &hf_pb_##stem##_response_type, .roles = WRITE, \
        .translate = with                                                                                             \
    }

static const hf_route OTHERS[] = {
    OTHER_NAME("PauseActivityExecution", HF_METHOD_PAUSE_ACTIVITY, pause_activity_execution, pause_of),
    OTHER_NAME("UnpauseActivityExecution", HF_METHOD_UNPAUSE_ACTIVITY, unpause_activity_execution, unpause_of),
    OTHER_NAME("ResetActivityExecution", HF_METHOD_RESET_ACTIVITY, reset_activity_execution, reset_of),
    OTHER_NAME("UpdateActivityExecutionOptions", HF_METHOD_UPDATE_ACTIVITY_OPTIONS, update_activity_execution_options,
               options_of),
};

/* ---- All of them ------------------------------------------------------------------------------------------------------------ */

_Static_assert(HF_COUNT_OF(OWN) + HF_COUNT_OF(OTHERS) <= HF_ROUTES_OWN_MAX, "counters have room for them");

static hf_route ROUTES[HF_METHOD_COUNT + HF_COUNT_OF(OWN) + HF_COUNT_OF(OTHERS)];
static size_t route_count;

/* Made once, before there are threads that look: hf_routes is called first by hf_door_open. */
static void fill(void)
{
    for (int i = 0; i < HF_METHOD_COUNT; i++) {
        rule row = rule_of((hf_method)i);
        if (row.service == NULL) {
            continue;
        }
        hf_assert(row.roles != 0); /* server-A1: nothing is open by omission */
        const char *service = hf_method_grpc_service((hf_method)i);
        hf_assert(service != NULL &&
                  strcmp(service, row.service) == 0); /* its messages are in the package of its service */
        ROUTES[route_count++] = (hf_route){.service = service,
                                           .name = hf_method_info_of((hf_method)i)->name,
                                           .kind = HF_ROUTE_SERVICE,
                                           .method = (hf_method)i,
                                           .request_type = hf_method_info_of((hf_method)i)->request_type,
                                           .response_type = hf_method_info_of((hf_method)i)->response_type,
                                           .roles = row.roles,
                                           .is_of_system = row.is_of_system,
                                           .is_poll = row.wait == POLL,
                                           .ends_with_door = row.wait != AT_ONCE,
                                           .is_of_tests = hf_method_is_of_clock((hf_method)i)};
    }
    for (size_t i = 0; i < HF_COUNT_OF(OWN); i++) {
        ROUTES[route_count++] = OWN[i];
    }
    for (size_t i = 0; i < HF_COUNT_OF(OTHERS); i++) {
        ROUTES[route_count++] = OTHERS[i];
    }
    hf_assert(route_count <= HF_COUNT_OF(ROUTES));
}

const hf_route *hf_routes(size_t *ret_count)
{
    if (route_count == 0) {
        fill();
    }
    *ret_count = route_count;
    return ROUTES;
}

static bool is_text(hf_str part, const char *text)
{
    return hf_str_equal(part, hf_str_of(text));
}

const hf_route *hf_route_find(hf_str path, bool has_tests, bool *ret_has_service)
{
    const char *slash = path.len > 1 && path.data[0] == '/' ? memchr(path.data + 1, '/', path.len - 1) : NULL;
    *ret_has_service = false;
    if (slash == NULL) {
        return NULL;
    }
    hf_str service = hf_str_of_len(path.data + 1, (size_t)(slash - path.data) - 1);
    hf_str name = hf_str_of_len(slash + 1, path.len - service.len - 2);
    for (size_t i = 0; i < route_count; i++) {
        bool is_service = (has_tests || !ROUTES[i].is_of_tests) && is_text(service, ROUTES[i].service);
        *ret_has_service |= is_service;
        if (is_service && is_text(name, ROUTES[i].name)) {
            return &ROUTES[i];
        }
    }
    return NULL;
}

hf_str hf_request_namespace(const hf_pb_type *type, const void *request)
{
    hf_str name = {0};
    (void)hf_request_text(type, request, "namespace", &name);
    return name;
}
