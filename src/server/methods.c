#include "server/methods.h"

#define WORKFLOW_SERVICE "temporal.api.workflowservice.v1.WorkflowService"
#define OPERATOR_SERVICE "temporal.api.operatorservice.v1.OperatorService"
#define HEALTH_SERVICE "grpc.health.v1.Health"

enum {
    READ = HF_ROLE_READ | HF_ROLE_WRITE | HF_ROLE_ADMIN,
    WRITE = HF_ROLE_WRITE | HF_ROLE_ADMIN,
    WORKER = HF_ROLE_WORKER | HF_ROLE_ADMIN,
    ADMIN = HF_ROLE_ADMIN,
    ANY = READ | WORKER /* every credential that is valid */
};

typedef struct rule {
    const char *service; /* NULL = not for callers from outside */
    unsigned roles;
    bool is_of_system;
    bool is_poll;
} rule;

/* A switch without a default: a method without a row does not compile. */
static rule rule_of(hf_method method)
{
    switch (method) {
    case HF_METHOD_GET_SYSTEM_INFO:
        return (rule){WORKFLOW_SERVICE, ANY, true, false};
    case HF_METHOD_DESCRIBE_NAMESPACE:
        return (rule){WORKFLOW_SERVICE, ANY, false, false};

    case HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION:
    case HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE:
    case HF_METHOD_DESCRIBE_TASK_QUEUE:
    case HF_METHOD_QUERY_WORKFLOW:
    case HF_METHOD_LIST_WORKFLOW_EXECUTIONS:
    case HF_METHOD_SCAN_WORKFLOW_EXECUTIONS:
    case HF_METHOD_COUNT_WORKFLOW_EXECUTIONS:
    case HF_METHOD_LIST_OPEN_WORKFLOW_EXECUTIONS:
    case HF_METHOD_LIST_CLOSED_WORKFLOW_EXECUTIONS:
        return (rule){WORKFLOW_SERVICE, READ, false, false};
    case HF_METHOD_LIST_SEARCH_ATTRIBUTES:
        return (rule){OPERATOR_SERVICE, READ, false, false};
    case HF_METHOD_ADD_SEARCH_ATTRIBUTES:
    case HF_METHOD_REMOVE_SEARCH_ATTRIBUTES:
        return (rule){OPERATOR_SERVICE, ADMIN, false, false};
    case HF_METHOD_REGISTER_NAMESPACE:
    case HF_METHOD_UPDATE_NAMESPACE:
    case HF_METHOD_DEPRECATE_NAMESPACE:
        return (rule){WORKFLOW_SERVICE, ADMIN, false, false};
    case HF_METHOD_LIST_NAMESPACES:
        return (rule){WORKFLOW_SERVICE, ADMIN, true, false};
    case HF_METHOD_GET_SEARCH_ATTRIBUTES: /* those of "default" */
        return (rule){WORKFLOW_SERVICE, ADMIN, true, false};
    case HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY: /* a worker reads the histories of its tasks */
        return (rule){WORKFLOW_SERVICE, READ | WORKER, false, true};
    case HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE:
        return (rule){WORKFLOW_SERVICE, READ, false, true};

    case HF_METHOD_START_WORKFLOW_EXECUTION:
    case HF_METHOD_SIGNAL_WORKFLOW_EXECUTION:
    case HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION:
    case HF_METHOD_EXECUTE_MULTI_OPERATION:
    case HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION:
    case HF_METHOD_TERMINATE_WORKFLOW_EXECUTION:
    case HF_METHOD_RESET_WORKFLOW_EXECUTION:
    case HF_METHOD_DELETE_WORKFLOW_EXECUTION:
    case HF_METHOD_UPDATE_WORKFLOW_EXECUTION_OPTIONS:
    case HF_METHOD_PAUSE_ACTIVITY:
    case HF_METHOD_UNPAUSE_ACTIVITY:
    case HF_METHOD_RESET_ACTIVITY:
    case HF_METHOD_UPDATE_ACTIVITY_OPTIONS:
        return (rule){WORKFLOW_SERVICE, WRITE, false, false};
    case HF_METHOD_UPDATE_WORKFLOW_EXECUTION:
        return (rule){WORKFLOW_SERVICE, WRITE, false, true};

    case HF_METHOD_POLL_WORKFLOW_TASK_QUEUE:
    case HF_METHOD_POLL_ACTIVITY_TASK_QUEUE:
        return (rule){WORKFLOW_SERVICE, WORKER, false, true};
    case HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED:
    case HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED:
    case HF_METHOD_RESPOND_QUERY_TASK_COMPLETED:
    case HF_METHOD_RESET_STICKY_TASK_QUEUE:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED:
    case HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT:
    case HF_METHOD_SHUTDOWN_WORKER:
        return (rule){WORKFLOW_SERVICE, WORKER, false, false};
    case HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID: /* by a worker, or by a client that finishes it from outside */
    case HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID:
    case HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID:
        return (rule){WORKFLOW_SERVICE, WORKER | WRITE, false, false};

    case HF_METHOD_TELL_LISTENER: /* from run to run, inside the engine */
    case HF_METHOD_COUNT:
        break;
    }
    return (rule){0};
}

static hf_route ROUTES[HF_METHOD_COUNT + 2];
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
        ROUTES[route_count++] = (hf_route){.service = row.service,
                                           .name = hf_method_info_of((hf_method)i)->name,
                                           .kind = HF_ROUTE_SERVICE,
                                           .method = (hf_method)i,
                                           .roles = row.roles,
                                           .is_of_system = row.is_of_system,
                                           .is_poll = row.is_poll};
    }
    ROUTES[route_count++] =
        (hf_route){.service = HEALTH_SERVICE, .name = "Check", .kind = HF_ROUTE_HEALTH_CHECK, .is_of_system = true};
    ROUTES[route_count++] = (hf_route){.service = HEALTH_SERVICE,
                                       .name = "Watch",
                                       .kind = HF_ROUTE_HEALTH_WATCH,
                                       .is_of_system = true,
                                       .is_poll = true};
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

const hf_route *hf_route_find(hf_str path, bool *ret_has_service)
{
    const char *slash = path.len > 1 && path.data[0] == '/' ? memchr(path.data + 1, '/', path.len - 1) : NULL;
    *ret_has_service = false;
    if (slash == NULL) {
        return NULL;
    }
    hf_str service = hf_str_of_len(path.data + 1, (size_t)(slash - path.data) - 1);
    hf_str name = hf_str_of_len(slash + 1, path.len - service.len - 2);
    for (size_t i = 0; i < route_count; i++) {
        bool is_service = is_text(service, ROUTES[i].service);
        *ret_has_service |= is_service;
        if (is_service && is_text(name, ROUTES[i].name)) {
            return &ROUTES[i];
        }
    }
    return NULL;
}

hf_str hf_request_namespace(const hf_pb_type *type, const void *request)
{
    for (size_t i = 0; i < type->field_count; i++) {
        if (type->fields[i].kind == HF_PB_STRING && type->fields[i].shape == HF_PB_SINGLE &&
            strcmp(type->names[i].name, "namespace") == 0) {
            return *(const hf_str *)(const void *)((const char *)request + type->fields[i].offset);
        }
    }
    return (hf_str){0};
}
