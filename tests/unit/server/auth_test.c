/* Who may do what: keys, their file, and the matrix of all routes, credentials and namespaces through the real door. */
#include "support/h2_client.h"
#include "support/support.h"

#include "base/env.h"
#include "open/open.h"
#include "server/auth.h"
#include "server/door.h"
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

/* A worker reads the history of a run that it names, and waits for nothing. */
static void try_history(h2_client *client)
{
    size_t count = 0;
    const hf_route *routes = hf_routes(&count);
    hf_pb_workflow_execution current = {.workflow_id = HF_STR("w")};
    hf_pb_workflow_execution named = {.workflow_id = HF_STR("w"),
                                      .run_id = HF_STR("01234567-89ab-cdef-0123-456789abcdef")};
    const struct {
        const char *what;
        hf_pb_get_workflow_execution_history_request request;
        bool is_of_task;
    } CASES[] = {
        {"a run", {.namespace = HF_STR("own"), .execution = &named}, true},
        {"a page", {.namespace = HF_STR("own"), .execution = &named, .next_page_token = HF_STR("x")}, true},
        {"the current run", {.namespace = HF_STR("own"), .execution = &current}, false},
        {"waiting", {.namespace = HF_STR("own"), .execution = &named, .wait_new_event = true}, false},
        {"the end",
         {.namespace = HF_STR("own"),
          .execution = &named,
          .history_event_filter_type = HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT},
         false},
        {"elsewhere", {.namespace = HF_STR("other"), .execution = &named}, false},
    };
    for (size_t i = 0; i < count; i++) {
        if (routes[i].kind != HF_ROUTE_SERVICE || routes[i].method != HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY) {
            continue;
        }
        for (size_t k = 0; k < HF_COUNT_OF(CASES); k++) {
            judge(&routes[i], WORKER, CASES[k].what, ask_as(client, &routes[i], WORKER, &CASES[k].request),
                  CASES[k].is_of_task ? HF_GRPC_OK : HF_GRPC_PERMISSION_DENIED);
            judge(&routes[i], READ_ALL, CASES[k].what, ask_as(client, &routes[i], READ_ALL, &CASES[k].request),
                  HF_GRPC_OK);
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
    try_history(&client);
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
    cmocka_unit_test(a_peer_without_a_key_has_few_streams),
};

int main(int argc, char **argv)
{
    return hf_test_main("auth", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
