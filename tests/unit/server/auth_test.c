/* Who may do what: keys, their file, and the matrix of all routes, credentials and namespaces through the real door. */
#include "support/h2_client.h"
#include "support/support.h"

#include "base/env.h"
#include "open/open.h"
#include "server/auth.h"
#include "server/door.h"
#include "server/handed.h"
#include "service/grpc_code.h"
#include "wire/grpc.h"

#include <stdio.h>

/* ---- Keys of the tests ------------------------------------------------------------------------------------------------------ */

typedef enum credential {
    NONE,
    BAD,     /* well-formed, of no line */
    WRONG,   /* the id of a line, another secret */
    SHORT,   /* not a key at all */
    EXPIRED, /* of an admin */
    READ,
    WRITE,
    WORKER,
    ADMIN,
    READ_ALL, /* in all namespaces */
    WORKER_ALL,
    ADMIN_ALL,
    CREDENTIAL_COUNT
} credential;

static const char *const PERMISSIONS[CREDENTIAL_COUNT] = {
    [EXPIRED] = "*:admin", [READ] = "own:read",   [WRITE] = "own:write",     [WORKER] = "own:worker",
    [ADMIN] = "own:admin", [READ_ALL] = "*:read", [WORKER_ALL] = "*:worker", [ADMIN_ALL] = "*:admin",
};

static char keys[CREDENTIAL_COUNT][HF_KEY_LEN + 1];

static void make_keys(hf_buf *file)
{
    hf_buf_puts(file, "# keys of the test\n\n");
    for (int i = 0; i < CREDENTIAL_COUNT; i++) {
        unsigned char random[36];
        unsigned char hash[HF_SHA256_LEN];
        char hex[2 * HF_SHA256_LEN + 1];
        memset(random, i + 1, sizeof random);
        hf_api_key_format(random, keys[i]);
        hf_sha256(hf_str_of_len(keys[i], HF_KEY_LEN), hash);
        hf_hex(hash, sizeof hash, hex);
        if (PERMISSIONS[i] != NULL) {
            hf_buf_putf(file, "%.8s %s %d %s label\n", keys[i] + 3, hex, i == EXPIRED ? 1 : 0, PERMISSIONS[i]);
        }
    }
    memcpy(keys[WRONG], keys[ADMIN_ALL], 3 + HF_KEY_ID_LEN + 1);
    keys[SHORT][20] = '\0';
}

/* ---- What is expected: by the verbs in the names, and not by the table ------------------------------------------------------- */

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static unsigned roles_of(const char *name)
{
    bool is_by_id = strstr(name, "ById") != NULL;
    if (strcmp(name, "GetSystemInfo") == 0 || strcmp(name, "GetClusterInfo") == 0 ||
        strcmp(name, "DescribeNamespace") == 0 || strcmp(name, "ServerReflectionInfo") == 0) {
        return HF_ROLE_READ | HF_ROLE_WRITE | HF_ROLE_WORKER | HF_ROLE_ADMIN;
    }
    if (begins(name, "Read") || strcmp(name, "ListTaskQueues") == 0) {
        return HF_ROLE_READ | HF_ROLE_WRITE | HF_ROLE_ADMIN;
    }
    if (begins(name, "Respond") || begins(name, "RecordActivity") || strstr(name, "TaskQueue") != NULL ||
        strcmp(name, "ShutdownWorker") == 0) {
        return begins(name, "Describe") ? HF_ROLE_READ | HF_ROLE_WRITE | HF_ROLE_ADMIN
                                        : HF_ROLE_WORKER | HF_ROLE_ADMIN | (is_by_id ? HF_ROLE_WRITE : 0u);
    }
    if (strstr(name, "TimeSkipping") != NULL || begins(name, "Sleep") || strcmp(name, "GetCurrentTime") == 0) {
        return HF_ROLE_ADMIN;
    }
    if (strstr(name, "Namespace") != NULL || begins(name, "Add") || begins(name, "Remove") ||
        strcmp(name, "GetSearchAttributes") == 0) {
        return HF_ROLE_ADMIN;
    }
    if (begins(name, "Get") || begins(name, "Describe") || begins(name, "List") || begins(name, "Count") ||
        begins(name, "Scan") || begins(name, "Query") || begins(name, "PollWorkflowExecutionUpdate")) {
        return HF_ROLE_READ | HF_ROLE_WRITE | HF_ROLE_ADMIN;
    }
    return HF_ROLE_WRITE | HF_ROLE_ADMIN;
}

static int expected(const hf_route *route, credential who, const char *namespace_)
{
    static const unsigned ROLE[CREDENTIAL_COUNT] = {
        [READ] = HF_ROLE_READ,     [WRITE] = HF_ROLE_WRITE,       [WORKER] = HF_ROLE_WORKER,   [ADMIN] = HF_ROLE_ADMIN,
        [READ_ALL] = HF_ROLE_READ, [WORKER_ALL] = HF_ROLE_WORKER, [ADMIN_ALL] = HF_ROLE_ADMIN,
    };
    if (ROLE[who] == 0) {
        return HF_GRPC_UNAUTHENTICATED;
    }
    bool is_here = who == READ_ALL || who == WORKER_ALL || who == ADMIN_ALL || strcmp(namespace_, "own") == 0 ||
                   route->is_of_system;
    return is_here && (roles_of(route->name) & ROLE[who]) != 0 ? HF_GRPC_OK : HF_GRPC_PERMISSION_DENIED;
}

/* ---- The matrix --------------------------------------------------------------------------------------------------------------- */

static int cases;
static int wrong;

static void put_namespace(const hf_pb_type *type, void *request, const char *name)
{
    for (size_t i = 0; i < type->field_count; i++) {
        if (strcmp(type->names[i].name, "namespace") == 0) {
            *(hf_str *)(void *)((char *)request + type->fields[i].offset) = hf_str_of(name);
        }
    }
}

/* 16, 7, or 0 for everything that passed. */
static int ask_as(h2_client *client, const hf_route *route, credential who, const void *request)
{
    char path[256];
    char bearer[HF_KEY_LEN + 16];
    unsigned char head[HF_GRPC_HEAD_LEN];
    hf_buf frame;
    hf_buf message;
    (void)snprintf(path, sizeof path, "/%s/%s", route->service, route->name);
    (void)snprintf(bearer, sizeof bearer, "Bearer %s", keys[who]);
    h2_header headers[] = {{"grpc-timeout", "10m"}, {"authorization", bearer}, {NULL, NULL}};
    headers[1].name = who != NONE ? "authorization" : NULL;
    hf_buf_init(&frame, client->memory, SIZE_MAX / 2);
    hf_buf_init(&message, client->memory, SIZE_MAX / 2);
    hf_pb_encode(route->request_type, request, &message);
    hf_grpc_head(head, false, (uint32_t)message.len);
    hf_buf_put(&frame, head, sizeof head);
    hf_buf_put(&frame, message.data, message.len);
    h2_call *call = h2_begin(client, path, headers, frame.data, frame.len);
    h2_wait(call);
    int status = call->status;
    h2_free(call);
    hf_buf_deinit(&frame);
    hf_buf_deinit(&message);
    HF_CHECK(status >= 0);
    return status == HF_GRPC_UNAUTHENTICATED || status == HF_GRPC_PERMISSION_DENIED ? status : HF_GRPC_OK;
}

static void judge(const hf_route *route, int who, const char *what, int got, int want)
{
    cases++;
    if (got != want) {
        wrong++;
        (void)hf_check_say(__FILE__, __LINE__, "%s, credential %d, %s: %d instead of %d", route->name, who, what, got,
                           want);
    }
}

static void try_route(h2_client *client, const hf_route *route)
{
    static const char *const NAMES[] = {"own", "other", "missing-one", ""};
    const hf_pb_type *type = route->request_type;
    long double room[1024 / sizeof(long double)] = {0};
    HF_CHECK(type->size <= sizeof room);
    for (int who = 0; who < CREDENTIAL_COUNT; who++) {
        for (size_t i = 0; i < HF_COUNT_OF(NAMES); i++) {
            put_namespace(type, room, NAMES[i]);
            judge(route, who, NAMES[i], ask_as(client, route, (credential)who, room),
                  expected(route, (credential)who, NAMES[i]));
        }
    }
}

/* A namespace deep inside: the parts of a bundle, the targets of commands. */
static void try_inner(h2_client *client)
{
    size_t count = 0;
    const hf_route *routes = hf_routes(&count);
    hf_pb_signal_external_workflow_execution_command_attributes signal = {.namespace = HF_STR("other")};
    hf_pb_command command = {.command_type = HF_COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION,
                             .attributes_case = 13,
                             .signal_external_workflow_execution_command_attributes = &signal};
    hf_pb_respond_workflow_task_completed_request respond = {.namespace = HF_STR("own"), .commands = {&command, 1}};
    hf_pb_start_workflow_execution_request start = {.namespace = HF_STR("other")};
    hf_pb_execute_multi_operation_request_operation operation = {.operation_case = 1, .start_workflow = &start};
    hf_pb_execute_multi_operation_request multi = {.namespace = HF_STR("own"), .operations = {&operation, 1}};
    for (size_t i = 0; i < count; i++) {
        bool is_respond =
            routes[i].kind == HF_ROUTE_SERVICE && routes[i].method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED;
        bool is_multi = routes[i].kind == HF_ROUTE_SERVICE && routes[i].method == HF_METHOD_EXECUTE_MULTI_OPERATION;
        if (!is_respond && !is_multi) {
            continue;
        }
        const void *request = is_respond ? (const void *)&respond : (const void *)&multi;
        for (int who = READ; who < CREDENTIAL_COUNT; who++) {
            int want = who == ADMIN_ALL ? HF_GRPC_OK : HF_GRPC_PERMISSION_DENIED;
            judge(&routes[i], who, "inner", ask_as(client, &routes[i], (credential)who, request), want);
        }
    }
}

static hf_status matrix_body(void *arg)
{
    hf_env *env = arg;
    hf_allocator memory = hf_env_memory(env);
    hf_op op;
    hf_op_init(&op);
    hf_service *service = NULL;
    hf_door *door = NULL;
    h2_client client;
    char address[HF_ADDRESS_LEN_MAX];
    hf_buf file;
    hf_door_options options = {.has_tests = true};
    size_t count = 0;
    const hf_route *routes = hf_routes(&count);
    hf_buf_init(&file, memory, SIZE_MAX / 2);
    make_keys(&file);
    HF_TRY(hf_keyring_parse(&op, memory, hf_str_of_len(file.data, file.len), &options.keys));
    hf_buf_deinit(&file);
    HF_TRY(hf_open_skipping(&service));
    HF_TRY(hf_door_open(&op, service, &options, &door));
    hf_keyring_unref(options.keys);
    HF_TRY(hf_door_listen(&op, door, "tcp:127.0.0.1:0", address));
    HF_TRY(h2_open(&client, address, memory));
    cases = wrong = 0;
    for (size_t i = 0; i < count; i++) {
        if (routes[i].kind == HF_ROUTE_SERVICE || routes[i].kind == HF_ROUTE_REFLECTION) {
            try_route(&client, &routes[i]);
        } else if (routes[i].kind == HF_ROUTE_HEALTH_CHECK) { /* open to everybody: server-K2 */
            h2_call *call = h2_begin(&client, "/grpc.health.v1.Health/Check", NULL, "\0\0\0\0\0", 5);
            h2_wait(call);
            HF_CHECK(call->status == HF_GRPC_OK);
            h2_free(call);
        }
    }
    try_inner(&client);
    print_message("%d cases, %d wrong\n", cases, wrong);
    h2_close(&client);
    hf_door_stop(door);
    return hf_close(service);
}

static void server_A1_server_K2_every_route_and_credential(void **state)
{
    (void)state;
    hf_env *env = hf_sim_begin(1);
    hf_runtime_options options = hf_sim_runtime_options(env, 1);
    assert_int_equal(hf_run_with(matrix_body, env, &options), HF_OK);
    hf_sim_end(env, NULL);
    assert_true(cases >= 3000);
    assert_int_equal(wrong, 0);
}

/* ---- Histories for workers ------------------------------------------------------------------------------------------------------ */

enum { BIG = 1500000 }; /* bytes: two of them do not fit into one page of a history */

/* A server whose door can be closed and opened again, and two connections to it. */
typedef struct history_rig {
    hf_env *env;
    hf_service *service;
    hf_keyring *ring;
    hf_door *door;
    char address[HF_ADDRESS_LEN_MAX];
    h2_client first;
    h2_client second;
    hf_arena arena;
} history_rig;

static void open_door(history_rig *rig)
{
    hf_op op;
    hf_op_init(&op);
    hf_door_options options = {.keys = rig->ring};
    HF_CHECK(hf_door_open(&op, rig->service, &options, &rig->door) == HF_OK);
    HF_CHECK(hf_door_listen(&op, rig->door, "tcp:127.0.0.1:0", rig->address) == HF_OK);
    HF_CHECK(h2_open(&rig->first, rig->address, hf_env_memory(rig->env)) == HF_OK);
    HF_CHECK(h2_open(&rig->second, rig->address, hf_env_memory(rig->env)) == HF_OK);
}

static void close_door(history_rig *rig)
{
    h2_close(&rig->first);
    h2_close(&rig->second);
    hf_door_stop(rig->door);
}

static h2_call *begin_with(h2_client *client, credential who, hf_method method, const void *request)
{
    char bearer[HF_KEY_LEN + 16];
    (void)snprintf(bearer, sizeof bearer, "Bearer %s", keys[who]);
    h2_header headers[] = {{"authorization", bearer}, {NULL, NULL}};
    return h2_begin_method(client, method, headers, request);
}

/* Returns grpc-status. `ret_response` may be NULL. */
static int end_with(history_rig *rig, h2_call *call, hf_method method, void *ret_response)
{
    hf_op op;
    hf_op_init(&op);
    bool is_gzip = false;
    h2_wait(call);
    int status = call->status;
    if (status == HF_GRPC_OK && ret_response != NULL) {
        hf_str bytes = hf_arena_copy(&rig->arena, h2_message(call, &is_gzip));
        HF_CHECK(!is_gzip && hf_pb_decode(&op, hf_method_info_of(method)->response_type, bytes, &rig->arena,
                                          ret_response) == HF_OK);
    }
    h2_free(call);
    return status;
}

static int ask_with(history_rig *rig, h2_client *client, credential who, hf_method method, const void *request,
                    void *ret_response)
{
    return end_with(rig, begin_with(client, who, method, request), method, ret_response);
}

static const hf_pb_task_queue QUEUE = {.name = HF_STR_INIT("q")};

static hf_pb_task_queue *queue(void)
{
    return (hf_pb_task_queue *)(uintptr_t)&QUEUE;
}

/* Starts a workflow through the first connection; `input` bytes. */
static hf_pb_workflow_execution start_run(history_rig *rig, const char *id, size_t input, bool is_eager)
{
    hf_pb_workflow_type type = {.name = HF_STR("hello")};
    hf_pb_payload payload = {.data = hf_str_of_len(hf_arena_zero(&rig->arena, input + 1, 1), input)};
    hf_pb_payloads payloads = {.payloads = {&payload, 1}};
    hf_pb_start_workflow_execution_request request = {.namespace = HF_STR("own"),
                                                      .workflow_id = hf_str_of(id),
                                                      .workflow_type = &type,
                                                      .task_queue = queue(),
                                                      .request_id = hf_str_of(id),
                                                      .input = &payloads,
                                                      .request_eager_execution = is_eager};
    hf_pb_start_workflow_execution_response response = {0};
    HF_CHECK(ask_with(rig, &rig->first, ADMIN, HF_METHOD_START_WORKFLOW_EXECUTION, &request, &response) == HF_GRPC_OK);
    HF_CHECK((response.eager_workflow_task != NULL) == is_eager);
    return (hf_pb_workflow_execution){.workflow_id = hf_str_of(id), .run_id = response.run_id};
}

static void poll_run(history_rig *rig, h2_client *client, credential who, const hf_pb_workflow_execution *execution,
                     hf_pb_poll_workflow_task_queue_response *ret_task)
{
    *ret_task = (hf_pb_poll_workflow_task_queue_response){0};
    hf_pb_poll_workflow_task_queue_request request = {
        .namespace = HF_STR("own"), .task_queue = queue(), .identity = HF_STR("test")};
    HF_CHECK(ask_with(rig, client, who, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &request, ret_task) == HF_GRPC_OK);
    HF_CHECK(ret_task->workflow_execution != NULL &&
             hf_str_equal(ret_task->workflow_execution->run_id, execution->run_id));
}

/* Reads the history of a run, or the page of a token, and returns grpc-status. */
static int read_run(history_rig *rig, h2_client *client, credential who, const hf_pb_workflow_execution *execution,
                    hf_str page, hf_pb_get_workflow_execution_history_response *ret_response)
{
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("own"),
                                                            .execution =
                                                                (hf_pb_workflow_execution *)(uintptr_t)execution,
                                                            .maximum_page_size = 1,
                                                            .next_page_token = page};
    return ask_with(rig, client, who, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, ret_response);
}

static bool may_read(history_rig *rig, h2_client *client, credential who, const hf_pb_workflow_execution *execution)
{
    int status = read_run(rig, client, who, execution, HF_STR(""), NULL);
    HF_CHECK(status == HF_GRPC_OK || status == HF_GRPC_PERMISSION_DENIED);
    return status == HF_GRPC_OK;
}

/* By its key on every connection, by its connection with every key; nothing else of the namespace; and not for ever. */
static void read_what_was_handed_out(history_rig *rig)
{
    hf_pb_poll_workflow_task_queue_response task;
    hf_pb_get_workflow_execution_history_response page = {0};
    hf_pb_workflow_execution mine = start_run(rig, "mine", 0, false);
    HF_CHECK(!may_read(rig, &rig->first, WORKER, &mine));
    poll_run(rig, &rig->first, WORKER, &mine, &task);
    hf_pb_workflow_execution other = start_run(rig, "other", 0, false);
    HF_CHECK(may_read(rig, &rig->first, WORKER, &mine));
    HF_CHECK(may_read(rig, &rig->second, WORKER, &mine));
    HF_CHECK(may_read(rig, &rig->first, WORKER_ALL, &mine));
    HF_CHECK(!may_read(rig, &rig->second, WORKER_ALL, &mine));
    HF_CHECK(!may_read(rig, &rig->first, WORKER, &other));
    HF_CHECK(may_read(rig, &rig->second, READ, &other));
    HF_CHECK(read_run(rig, &rig->first, WORKER, &mine, HF_STR(""), &page) == HF_GRPC_OK);
    HF_CHECK(page.next_page_token.len > 0); /* and others cannot use it: it did not come with a task */
    HF_CHECK(read_run(rig, &rig->first, WORKER, &mine, page.next_page_token, NULL) == HF_GRPC_OK);
    HF_CHECK(read_run(rig, &rig->second, WORKER_ALL, &mine, page.next_page_token, NULL) == HF_GRPC_PERMISSION_DENIED);
    HF_CHECK(read_run(rig, &rig->first, WORKER, &other, page.next_page_token, NULL) == HF_GRPC_INVALID_ARGUMENT);
    h2_close(&rig->first);
    HF_CHECK(hf_sleep(hf_seconds(3590)) == HF_OK); /* its task has timed out */
    HF_CHECK(h2_open(&rig->first, rig->address, hf_env_memory(rig->env)) == HF_OK);
    HF_CHECK(may_read(rig, &rig->first, WORKER, &mine));
    HF_CHECK(hf_sleep(hf_seconds(15)) == HF_OK);
    HF_CHECK(!may_read(rig, &rig->first, WORKER, &mine));
}

/* What a worker never asks for is for readers, also of its own runs. */
static void read_as_a_worker_does(history_rig *rig)
{
    hf_pb_poll_workflow_task_queue_response task;
    hf_pb_workflow_execution named = start_run(rig, "named", 0, false);
    hf_pb_workflow_execution current = {.workflow_id = HF_STR("named")};
    poll_run(rig, &rig->first, WORKER, &named, &task);
    const struct {
        hf_pb_get_workflow_execution_history_request request;
        int status;
    } CASES[] = {
        {{.namespace = HF_STR("own"), .execution = &named}, HF_GRPC_OK},
        {{.namespace = HF_STR("own"), .execution = &current}, HF_GRPC_PERMISSION_DENIED},
        {{.namespace = HF_STR("own"), .execution = &named, .wait_new_event = true}, HF_GRPC_PERMISSION_DENIED},
        {{.namespace = HF_STR("own"),
          .execution = &named,
          .history_event_filter_type = HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT},
         HF_GRPC_PERMISSION_DENIED},
        {{.namespace = HF_STR("default"), .execution = &named}, HF_GRPC_PERMISSION_DENIED},
        {{.namespace = HF_STR("own")}, HF_GRPC_PERMISSION_DENIED},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        int status =
            ask_with(rig, &rig->first, WORKER, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &CASES[i].request, NULL);
        HF_CHECK_SAY(status == CASES[i].status, "%zu: %d", i, status);
    }
}

/* Tasks that come otherwise than by a poll: with the answer to a task, and with a start. */
static void read_what_came_with_answers(history_rig *rig)
{
    hf_pb_poll_workflow_task_queue_response task;
    hf_pb_respond_workflow_task_completed_response answer = {0};
    hf_pb_workflow_execution kept = start_run(rig, "kept", 0, false);
    poll_run(rig, &rig->second, WORKER_ALL, &kept, &task);
    hf_pb_respond_workflow_task_completed_request respond = {.namespace = HF_STR("own"),
                                                             .task_token = task.task_token,
                                                             .return_new_workflow_task = true,
                                                             .force_create_new_workflow_task = true};
    HF_CHECK(!may_read(rig, &rig->first, WORKER, &kept));
    HF_CHECK(ask_with(rig, &rig->first, WORKER, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &respond, &answer) ==
             HF_GRPC_OK);
    HF_CHECK(answer.workflow_task != NULL);
    HF_CHECK(may_read(rig, &rig->first, WORKER, &kept));
    hf_pb_workflow_execution eager = start_run(rig, "eager", 0, true);
    HF_CHECK(may_read(rig, &rig->first, WORKER, &eager));
    HF_CHECK(!may_read(rig, &rig->second, WORKER, &eager));
}

/* A worker is asked a query of a run that has ended: it reads the whole of it. */
static void read_a_closed_run_for_a_query(history_rig *rig)
{
    hf_pb_poll_workflow_task_queue_response task;
    hf_pb_workflow_query query = {.query_type = HF_STR("state")};
    hf_pb_workflow_execution run = start_run(rig, "ended", 0, false);
    hf_pb_terminate_workflow_execution_request end = {.namespace = HF_STR("own"), .workflow_execution = &run};
    hf_pb_query_workflow_request ask = {.namespace = HF_STR("own"), .execution = &run, .query = &query};
    poll_run(rig, &rig->second, WORKER_ALL, &run, &task);
    hf_pb_respond_workflow_task_completed_request complete = {.namespace = HF_STR("own"),
                                                              .task_token = task.task_token};
    HF_CHECK(ask_with(rig, &rig->second, WORKER_ALL, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &complete, NULL) ==
             HF_GRPC_OK);
    HF_CHECK(ask_with(rig, &rig->second, ADMIN, HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, &end, NULL) == HF_GRPC_OK);
    HF_CHECK(!may_read(rig, &rig->first, WORKER, &run));
    h2_call *asked = begin_with(&rig->second, READ, HF_METHOD_QUERY_WORKFLOW, &ask);
    h2_flush(&rig->second);
    poll_run(rig, &rig->first, WORKER, &run, &task);
    HF_CHECK(task.query != NULL);
    HF_CHECK(may_read(rig, &rig->first, WORKER, &run));
    hf_pb_respond_query_task_completed_request respond = {
        .namespace = HF_STR("own"), .task_token = task.task_token, .completed_type = HF_QUERY_RESULT_TYPE_ANSWERED};
    HF_CHECK(ask_with(rig, &rig->first, WORKER, HF_METHOD_RESPOND_QUERY_TASK_COMPLETED, &respond, NULL) == HF_GRPC_OK);
    HF_CHECK(end_with(rig, asked, HF_METHOD_QUERY_WORKFLOW, NULL) == HF_GRPC_OK);
}

/* A new door knows nothing of what the last one handed out. Workers that have a task in hand go on reading. */
static void read_across_a_restart(history_rig *rig)
{
    hf_pb_poll_workflow_task_queue_response task;
    hf_pb_workflow_execution run = start_run(rig, "long", BIG, false);
    hf_pb_payload payload = {.data = hf_str_of_len(hf_arena_zero(&rig->arena, BIG, 1), BIG)};
    hf_pb_payloads payloads = {.payloads = {&payload, 1}};
    hf_pb_signal_workflow_execution_request signal = {
        .namespace = HF_STR("own"), .workflow_execution = &run, .signal_name = HF_STR("s"), .input = &payloads};
    HF_CHECK(ask_with(rig, &rig->first, ADMIN, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &signal, NULL) == HF_GRPC_OK);
    poll_run(rig, &rig->first, WORKER, &run, &task);
    HF_CHECK(task.next_page_token.len > 0);
    hf_pb_workflow_execution untouched = start_run(rig, "untouched", 0, false);
    HF_CHECK(hf_sleep(hf_seconds(1)) == HF_OK);
    close_door(rig);
    open_door(rig);
    HF_CHECK(may_read(rig, &rig->first, WORKER, &run));
    HF_CHECK(!may_read(rig, &rig->first, WORKER, &untouched));
    HF_CHECK(read_run(rig, &rig->first, WORKER, &run, task.next_page_token, NULL) == HF_GRPC_OK);
    HF_CHECK(hf_sleep(hf_seconds(15)) == HF_OK); /* the task has timed out */
    HF_CHECK(!may_read(rig, &rig->first, WORKER, &run));
    HF_CHECK(read_run(rig, &rig->first, WORKER, &run, task.next_page_token, NULL) == HF_GRPC_OK); /* as it was then */
    HF_CHECK(read_run(rig, &rig->first, WORKER, &untouched, task.next_page_token, NULL) == HF_GRPC_INVALID_ARGUMENT);
}

typedef struct history_case {
    hf_env *env;
    void (*one)(history_rig *rig);
} history_case;

static hf_status history_body(void *arg)
{
    history_case *of = arg;
    history_rig rig = {.env = of->env};
    hf_op op;
    hf_op_init(&op);
    hf_buf file;
    hf_pb_register_namespace_request own = {
        .namespace = HF_STR("own"), .workflow_execution_retention_period = hf_pb_duration_of(hf_seconds(86400))};
    hf_buf_init(&file, hf_env_memory(of->env), SIZE_MAX / 2);
    make_keys(&file);
    HF_TRY(hf_keyring_parse(&op, hf_env_memory(of->env), hf_str_of_len(file.data, file.len), &rig.ring));
    hf_buf_deinit(&file);
    HF_TRY(hf_open("memory:", &rig.service));
    hf_arena_init(&rig.arena, hf_env_memory(of->env));
    open_door(&rig);
    HF_CHECK(ask_with(&rig, &rig.first, ADMIN_ALL, HF_METHOD_REGISTER_NAMESPACE, &own, NULL) == HF_GRPC_OK);
    of->one(&rig);
    close_door(&rig);
    hf_arena_deinit(&rig.arena);
    hf_keyring_unref(rig.ring);
    return hf_close(rig.service);
}

static void server_K3_a_worker_reads_the_histories_of_its_tasks(void **state)
{
    (void)state;
    static void (*const CASES[])(history_rig * rig) = {read_what_was_handed_out, read_as_a_worker_does,
                                                       read_what_came_with_answers, read_a_closed_run_for_a_query,
                                                       read_across_a_restart};
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        print_message("%zu\n", i);
        history_case of = {.env = hf_sim_begin(i + 1), .one = CASES[i]};
        hf_runtime_options options = hf_sim_runtime_options(of.env, 2);
        assert_int_equal(hf_run_with(history_body, &of, &options), HF_OK);
        hf_sim_end(of.env, NULL);
    }
}

static void runs_handed_out_long_ago_make_room(void **state)
{
    (void)state;
    enum { COUNT = 4 * HF_HANDED_SETS * HF_HANDED_WAYS, RECENT = HF_HANDED_SETS };
    hf_env *env = hf_env_posix();
    hf_handed *handed = hf_handed_new(env);
    hf_bearer to = {.key_id = HF_STR("01234567"), .link = 7};
    char run[20];
    int known = 0;
    assert_non_null(handed);
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(run, sizeof run, "%d", i);
        hf_handed_note(handed, to, HF_STR("own"), hf_str_of(run), i);
    }
    for (int i = COUNT - RECENT; i < COUNT; i++) {
        (void)snprintf(run, sizeof run, "%d", i);
        known += hf_handed_has(handed, to, HF_STR("own"), hf_str_of(run), COUNT) ? 1 : 0;
        assert_false(hf_handed_has(handed, to, HF_STR("other"), hf_str_of(run), COUNT));
    }
    print_message("%d of the last %d\n", known, RECENT);
    assert_true(known > RECENT * 99 / 100);
    assert_false(hf_handed_has(handed, to, HF_STR("own"), HF_STR("0"), COUNT));
    hf_handed_free(handed);
}

/* ---- Strangers ----------------------------------------------------------------------------------------------------------------- */

/* Opens so many streams that stay open, and returns how many of them were refused. */
static int watch(h2_client *client, const h2_header *headers, int count)
{
    static h2_call *calls[1000];
    int refused = 0;
    HF_CHECK(count <= (int)HF_COUNT_OF(calls));
    for (int i = 0; i < count; i++) {
        calls[i] = h2_begin(client, "/grpc.health.v1.Health/Watch", headers, "\0\0\0\0\0", 5);
    }
    h2_call *last = h2_begin(client, "/grpc.health.v1.Health/Check", headers, "\0\0\0\0\0", 5);
    h2_wait(last); /* it came behind all of them */
    for (int i = 0; i < count; i++) {
        HF_CHECK(!calls[i]->is_closed || calls[i]->code == HF_H2_REFUSED_STREAM);
        refused += calls[i]->is_closed ? 1 : 0;
        if (!calls[i]->is_closed) {
            hf_h2_reset(client->h2, &calls[i]->h2, HF_H2_CANCEL);
        }
    }
    h2_flush(client);
    for (int i = 0; i < count; i++) {
        h2_free(calls[i]);
    }
    h2_free(last);
    return refused;
}

static hf_status strangers_body(void *arg)
{
    hf_allocator memory = hf_env_memory(arg);
    char bearer[HF_KEY_LEN + 16];
    char address[HF_ADDRESS_LEN_MAX];
    hf_door_options options = {0};
    hf_service *service = NULL;
    hf_door *door = NULL;
    hf_buf file;
    hf_op op;
    hf_op_init(&op);
    hf_buf_init(&file, memory, SIZE_MAX / 2);
    make_keys(&file);
    HF_TRY(hf_keyring_parse(&op, memory, hf_str_of_len(file.data, file.len), &options.keys));
    hf_buf_deinit(&file);
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_door_open(&op, service, &options, &door));
    hf_keyring_unref(options.keys);
    HF_TRY(hf_door_listen(&op, door, "tcp:127.0.0.1:0", address));
    static const struct {
        credential who;
        int refused; /* of 500 */
    } CASES[] = {{NONE, 400}, {BAD, 400}, {EXPIRED, 400}, {READ, 0}, {WORKER, 0}};
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        h2_client client;
        (void)snprintf(bearer, sizeof bearer, "Bearer %s", keys[CASES[i].who]);
        h2_header headers[] = {{CASES[i].who != NONE ? "authorization" : NULL, bearer}, {NULL, NULL}};
        HF_TRY(h2_open(&client, address, memory));
        int refused = watch(&client, headers, 500);
        HF_CHECK_SAY(refused == CASES[i].refused, "%zu: %d", i, refused);
        h2_close(&client);
    }
    hf_door_stop(door);
    return hf_close(service);
}

static void a_peer_without_a_key_has_few_streams(void **state)
{
    (void)state;
    hf_env *env = hf_sim_begin(1);
    hf_runtime_options options = hf_sim_runtime_options(env, 1);
    assert_int_equal(hf_run_with(strangers_body, env, &options), HF_OK);
    hf_sim_end(env, NULL);
}

/* ---- Files and changes ----------------------------------------------------------------------------------------------------------- */

static void a_file_of_keys_is_checked(void **state)
{
    (void)state;
    static const char HASH[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const struct {
        const char *format; /* %s = HASH */
        hf_status status;
    } CASES[] = {
        {"", HF_OK},
        {"# nothing\n\n", HF_OK},
        {"01234567 %s 0 default:read,*:worker a\n", HF_OK},
        {"01234567 %s 0 a:b:admin", HF_OK},
        {"0123456 %s 0 default:read a\n", HF_ERR_INVALID},
        {"01234567 %sff 0 default:read a\n", HF_ERR_INVALID},
        {"01234567 %s soon default:read a\n", HF_ERR_INVALID},
        {"01234567 %s 99999999999999999999 default:read a\n", HF_ERR_INVALID},
        {"01234567 %s 0 default:owner a\n", HF_ERR_INVALID},
        {"01234567 %s 0 :read a\n", HF_ERR_INVALID},
        {"01234567 %s 0\n", HF_ERR_INVALID},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char text[300] = "";
        hf_keyring *ring = NULL;
        hf_op op;
        hf_op_init(&op);
        const char *at = strstr(CASES[i].format, "%s");
        (void)snprintf(text, sizeof text, "%.*s%s%s",
                       (int)(at != NULL ? (size_t)(at - CASES[i].format) : strlen(CASES[i].format)), CASES[i].format,
                       at != NULL ? HASH : "", at != NULL ? at + 2 : "");
        print_message("%zu: %s\n", i, text);
        assert_int_equal(hf_keyring_parse(&op, hf_env_memory(hf_env_posix()), hf_str_of(text), &ring), CASES[i].status);
        hf_keyring_unref(ring);
    }
}

static void server_K1_no_change_of_a_key_is_accepted(void **state)
{
    (void)state;
    hf_buf file;
    hf_op op;
    hf_op_init(&op);
    hf_keyring *ring = NULL;
    hf_buf_init(&file, hf_env_memory(hf_env_posix()), SIZE_MAX / 2);
    make_keys(&file);
    assert_int_equal(hf_keyring_parse(&op, hf_env_memory(hf_env_posix()), hf_str_of_len(file.data, file.len), &ring),
                     HF_OK);
    hf_str right = hf_str_of_len(keys[ADMIN], HF_KEY_LEN);
    assert_non_null(hf_keyring_find(ring, right, 1000));
    assert_null(hf_keyring_find(ring, hf_str_of_len(keys[EXPIRED], HF_KEY_LEN), 1000));
    assert_non_null(hf_keyring_find(ring, hf_str_of_len(keys[EXPIRED], HF_KEY_LEN), 0));
    for (size_t i = 0; i < HF_KEY_LEN; i++) {
        for (int bit = 0; bit < 8; bit++) {
            char changed[HF_KEY_LEN];
            memcpy(changed, right.data, HF_KEY_LEN);
            changed[i] = (char)(changed[i] ^ 1 << bit);
            assert_null(hf_keyring_find(ring, hf_str_of_len(changed, HF_KEY_LEN), 1000));
        }
        assert_null(hf_keyring_find(ring, hf_str_of_len(right.data, i), 1000));
    }
    hf_keyring_unref(ring);
    hf_buf_deinit(&file);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_file_of_keys_is_checked),
    cmocka_unit_test(server_K1_no_change_of_a_key_is_accepted),
    cmocka_unit_test(server_A1_server_K2_every_route_and_credential),
    cmocka_unit_test(server_K3_a_worker_reads_the_histories_of_its_tasks),
    cmocka_unit_test(runs_handed_out_long_ago_make_room),
    cmocka_unit_test(a_peer_without_a_key_has_few_streams),
};

int main(int argc, char **argv)
{
    return hf_test_main("auth", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
