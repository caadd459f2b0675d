/* temporal:// on a simulated network: a client and a worker of the library, the door and the engine. */
#include "support/support.h"

#include "base/env.h"
#include "env/sim/sim.h"
#include "fiber/enter.h"
#include "server/door.h"
#include "service/call.h"
#include "service/grpc_path.h"

#include <stdio.h>
#include <string.h>

/* What a case has: a server and a service that reaches it. */
typedef struct remote_rig {
    void (*one)(struct remote_rig *rig);
    hf_env *env;
    hf_service *engine;
    char listens[HF_ADDRESS_LEN_MAX]; /* "tcp:127.0.0.1:PORT" */
    char address[HF_ADDRESS_LEN_MAX + 32];
    hf_service *service;
    hf_chan *words;  /* the server has started, or stopped */
    hf_chan *orders; /* it shall stop: 0 for good, 1 and listen again, 2 and listen again after 30 s */
} remote_rig;

static char lines[16384]; /* of the log */
static size_t lines_len;

static void keep_line(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    int len = snprintf(lines + lines_len, sizeof lines - lines_len, "%d %s %s\n", (int)level, event, fields);
    lines_len += len > 0 && (size_t)len < sizeof lines - lines_len ? (size_t)len : 0;
}

/* ---- The rig ------------------------------------------------------------------------------------------------------------ */

static hf_status serve_until_told(remote_rig *rig, int *ret_order)
{
    hf_op op;
    hf_op_init(&op);
    hf_door *door = NULL;
    hf_door_options options = {0};
    int word = 0;
    char address[HF_ADDRESS_LEN_MAX];
    HF_TRY(hf_door_open(&op, rig->engine, &options, &door));
    hf_status status = hf_door_listen(&op, door, rig->listens, address);
    (void)snprintf(rig->listens, sizeof rig->listens, "%s", address);
    status = status == HF_OK ? hf_chan_send(rig->words, &word) : status;
    status = status == HF_OK ? hf_chan_recv(rig->orders, ret_order) : status;
    hf_door_stop(door);
    return status;
}

/* A server that is not Holdfast's: it has nothing but Temporal's services. */
static bool is_temporal; /* of the next rig */
static const hf_service_ops *engine_ops;

static void submit_as_temporal(hf_service *service, hf_call *call)
{
    if (strcmp(hf_method_grpc_service(call->method), HF_GRPC_HOLDFAST_SERVICE) == 0) {
        hf_call_set_failure(call, HF_ERR_UNSUPPORTED, "unknown service " HF_GRPC_HOLDFAST_SERVICE);
        call->done(call);
        return;
    }
    engine_ops->submit(service, call);
}

static hf_status server_body(void *arg)
{
    remote_rig *rig = arg;
    hf_service_ops ops;
    int order = 1;
    HF_TRY(hf_open("memory:", &rig->engine));
    if (is_temporal) {
        engine_ops = rig->engine->ops;
        ops = *engine_ops;
        ops.submit = submit_as_temporal;
        rig->engine->ops = &ops;
    }
    (void)snprintf(rig->listens, sizeof rig->listens, "tcp:127.0.0.1:0");
    while (order > 0) {
        if (order == 2) {
            HF_TRY(hf_sleep(hf_seconds(30)));
        }
        HF_TRY(serve_until_told(rig, &order));
    }
    rig->engine->ops = is_temporal ? engine_ops : rig->engine->ops;
    return hf_close(rig->engine);
}

static void tell(remote_rig *rig, int order)
{
    HF_CHECK(hf_chan_send(rig->orders, &order) == HF_OK);
}

static void await_server(remote_rig *rig)
{
    int word = 0;
    HF_CHECK(hf_chan_recv(rig->words, &word) == HF_OK);
}

static hf_status rig_body(void *arg)
{
    remote_rig *rig = arg;
    HF_AUTO(hf_chan_free) hf_chan *words = NULL;
    HF_AUTO(hf_chan_free) hf_chan *orders = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &words));
    HF_TRY(hf_chan_new(sizeof(int), &orders));
    HF_TRY(hf_scope_open(&scope, .name = "server"));
    rig->words = words;
    rig->orders = orders;
    HF_TRY(hf_fork(scope, server_body, rig));
    await_server(rig);
    (void)snprintf(rig->address, sizeof rig->address, "temporal://%s", rig->listens + 4);
    HF_TRY(hf_open(rig->address, &rig->service));
    rig->one(rig);
    HF_TRY(hf_close(rig->service));
    tell(rig, 0);
    return hf_join(scope);
}

static void run_rig(void (*one)(remote_rig *rig), uint64_t seed)
{
    remote_rig rig = {.one = one};
    lines_len = 0;
    lines[0] = '\0';
    rig.env = hf_sim_begin(seed);
    hf_runtime_options options = hf_sim_runtime_options(rig.env, 2);
    options.log = keep_line;
    hf_status status = hf_run_with(rig_body, &rig, &options);
    HF_CHECK_SAY(status == HF_OK, "the rig ended with %s: %s", hf_status_name(status), hf_error_text());
    hf_sim_end(rig.env, NULL);
}

/* ---- A workflow --------------------------------------------------------------------------------------------------------- */

static hf_status greet(hf_payload in, hf_payload *ret_out)
{
    char name[64];
    HF_TRY(hf_json_get_text(in, "", sizeof name, name));
    return hf_payload_printf(ret_out, "\"Hello, %s!\"", name);
}

static hf_status hello(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_activity_run("greet", in, ret_out, .start_to_close = hf_seconds(100));
}

static hf_status start_worker(remote_rig *rig, hf_worker **ret_worker)
{
    HF_TRY(hf_worker_new(rig->service, "q", ret_worker));
    HF_TRY(hf_worker_add_workflow(*ret_worker, "hello", hello));
    HF_TRY(hf_worker_add_activity(*ret_worker, "greet", greet));
    return hf_worker_start(*ret_worker);
}

static hf_status say_hello(remote_rig *rig, const char *id)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(rig->service, "hello", hf_payload_of_json("\"sea\""), &execution, .task_queue = "q", .id = id));
    HF_TRY(hf_result(execution, &out));
    HF_CHECK_SAY(strcmp(out.data, "\"Hello, sea!\"") == 0, "%s", (const char *)out.data);
    return HF_OK;
}

static void run_a_workflow(remote_rig *rig)
{
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_CHECK(start_worker(rig, &worker) == HF_OK);
    hf_status status = say_hello(rig, "w");
    HF_CHECK_SAY(status == HF_OK, "%s: %s", hf_status_name(status), hf_error_text());
}

static void a_workflow_runs_over_the_network(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= hf_test_seeds(50); seed++) {
        run_rig(run_a_workflow, seed);
    }
}

/* ---- Failures ------------------------------------------------------------------------------------------------------------- */

static void fail_in_many_ways(remote_rig *rig)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_execution_free) hf_execution *nobody = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_execution *again = NULL;
    HF_CHECK(hf_start(rig->service, "t", hf_payload_none(), &execution, .id = "w") == HF_OK);
    HF_CHECK(hf_start(rig->service, "t", hf_payload_none(), &again, .id = "w") == HF_ERR_EXISTS);
    HF_CHECK_SAY(strstr(hf_error_text(), "hf_start") != NULL, "%s", hf_error_text());
    HF_CHECK(hf_execution_new(rig->service, "nobody", &nobody) == HF_OK);
    HF_CHECK(hf_signal(nobody, "s", hf_payload_none()) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_query(execution, "q", hf_payload_none(), &out, .timeout = hf_seconds(3)) == HF_ERR_TIMEOUT);
    hf_instant before = hf_now(NULL);
    HF_CHECK(hf_result(execution, &out, .timeout = hf_seconds(7)) == HF_ERR_TIMEOUT);
    int64_t took = hf_now(NULL).ns - before.ns;
    HF_CHECK_SAY(took >= 7000000000 && took < 9000000000, "%lld ns", (long long)took);
    HF_CHECK(hf_terminate(execution, .reason = "enough") == HF_OK);
    HF_CHECK(hf_result(execution, &out) == HF_ERR_FAILED);
    HF_CHECK_SAY(strstr(hf_error_text(), "enough") != NULL, "%s", hf_error_text());
}

static void failures_come_back_as_statuses(void **state)
{
    (void)state;
    run_rig(fail_in_many_ways, 1);
}

/* The details that programs read: the run that is in the way. */
static void read_details(remote_rig *rig)
{
    hf_pb_workflow_type type = {.name = HF_STR("t")};
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    hf_pb_start_workflow_execution_request request = {.namespace = HF_STR("default"),
                                                      .workflow_id = HF_STR("w"),
                                                      .workflow_type = &type,
                                                      .task_queue = &queue,
                                                      .request_id = HF_STR("1")};
    hf_arena arena;
    hf_call call;
    hf_op op;
    hf_arena_init(&arena, hf_env_memory(rig->env));
    hf_op_init(&op);
    hf_call_init(&call, HF_METHOD_START_WORKFLOW_EXECUTION, &request, &arena, NULL);
    HF_CHECK(hf_service_ask(&op, rig->service, &call) == HF_OK);
    hf_str run_id = ((const hf_pb_start_workflow_execution_response *)call.response)->run_id;
    HF_CHECK(run_id.len > 0);
    request.request_id = HF_STR("2");
    hf_call_init(&call, HF_METHOD_START_WORKFLOW_EXECUTION, &request, &arena, NULL);
    HF_CHECK(hf_service_ask(&op, rig->service, &call) == HF_ERR_EXISTS);
    HF_CHECK(call.detail_type == &hf_pb_workflow_execution_already_started_failure_type);
    HF_CHECK(hf_str_equal(call.existing_run_id, run_id));
    hf_arena_deinit(&arena);
}

static void details_come_back(void **state)
{
    (void)state;
    run_rig(read_details, 1);
}

/* ---- What only Holdfast has ------------------------------------------------------------------------------------------------- */

static hf_status tell_all(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_publish("n", hf_payload_of_json("1")));
    HF_TRY(hf_activity_run("tell", hf_payload_none(), ret_out, .start_to_close = hf_seconds(100)));
    return hf_publish("n", hf_payload_of_json("3"));
}

static hf_status tell_one(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_publish("n", hf_payload_of_json("2"));
}

static bool collect(void *arg, const hf_stream_record *record)
{
    char *text = arg;
    size_t len = strlen(text);
    (void)snprintf(text + len, 64 - len, "%s%.*s ", record->type, (int)record->value.len,
                   (const char *)record->value.data);
    return true;
}

static void follow_a_stream(remote_rig *rig)
{
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    char text[64] = "";
    int64_t cursor = 0;
    HF_CHECK(!rig->service->is_foreign && rig->service->is_remote);
    HF_CHECK(hf_worker_new(rig->service, "q", &worker) == HF_OK);
    HF_CHECK(hf_worker_add_workflow(worker, "tell_all", tell_all) == HF_OK);
    HF_CHECK(hf_worker_add_activity(worker, "tell", tell_one) == HF_OK);
    HF_CHECK(hf_worker_start(worker) == HF_OK);
    HF_CHECK(hf_start(rig->service, "tell_all", hf_payload_none(), &execution, .task_queue = "q") == HF_OK);
    hf_status status = hf_stream_read(execution, &cursor, collect, text);
    HF_CHECK_SAY(status == HF_OK && strcmp(text, "n1 n2 n3 ") == 0, "%s '%s' %s", hf_status_name(status), text,
                 status == HF_OK ? "" : hf_error_text());
}

static void streams_come_over_the_network(void **state)
{
    (void)state;
    run_rig(follow_a_stream, 1);
}

/* A workflow that wants to publish is told that nobody would keep it. */
static hf_status tell_nobody(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    hf_status status = hf_publish("n", hf_payload_of_json("1"));
    return hf_payload_printf(ret_out, "\"%s\"", hf_status_name(status));
}

static void ask_what_is_not_there(remote_rig *rig)
{
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    char text[64] = "";
    int64_t cursor = 0;
    HF_CHECK(rig->service->is_foreign && rig->service->is_remote);
    HF_CHECK(hf_worker_new(rig->service, "q", &worker) == HF_OK);
    HF_CHECK(hf_worker_add_workflow(worker, "tell_nobody", tell_nobody) == HF_OK);
    HF_CHECK(hf_worker_start(worker) == HF_OK);
    HF_CHECK(hf_start(rig->service, "tell_nobody", hf_payload_none(), &execution, .task_queue = "q") == HF_OK);
    HF_CHECK(hf_stream_read(execution, &cursor, collect, text) == HF_ERR_UNSUPPORTED);
    HF_CHECK_SAY(strstr(hf_error_text(), "ReadStream is for Holdfast servers") != NULL, "%s", hf_error_text());
    HF_CHECK(hf_result(execution, &out) == HF_OK && strcmp(out.data, "\"HF_ERR_UNSUPPORTED\"") == 0);
}

static void what_a_temporal_server_lacks_is_unsupported(void **state)
{
    (void)state;
    is_temporal = true;
    run_rig(ask_what_is_not_there, 1);
    run_rig(run_a_workflow, 1);
    is_temporal = false;
}

/* ---- Nobody there ----------------------------------------------------------------------------------------------------------- */

static hf_status reach_nobody(void *arg)
{
    hf_service *service = NULL;
    (void)arg;
    hf_instant before = hf_now(NULL);
    HF_CHECK(hf_open("temporal://127.0.0.1:1", &service) == HF_ERR_UNAVAILABLE);
    int64_t took = hf_now(NULL).ns - before.ns;
    HF_CHECK_SAY(strstr(hf_error_text(), "cannot reach 127.0.0.1:1") != NULL, "%s", hf_error_text());
    HF_CHECK_SAY(took > 3000000000 && took < 6000000000, "%lld ns", (long long)took);
    return HF_OK;
}

static void hf_open_says_that_nobody_is_there(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(1, 1, reach_nobody, NULL, NULL), HF_OK);
}

/* ---- The connection is lost -------------------------------------------------------------------------------------------------- */

typedef struct waiter {
    remote_rig *rig;
    hf_status status;
} waiter;

static hf_status wait_for_hello(void *arg)
{
    waiter *w = arg;
    w->status = say_hello(w->rig, "w");
    HF_CHECK_SAY(w->status == HF_OK, "%s: %s", hf_status_name(w->status), hf_error_text());
    return HF_OK;
}

static void restart_meanwhile(remote_rig *rig, int order)
{
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    waiter w = {rig, HF_ERR_FAILED};
    HF_CHECK(start_worker(rig, &worker) == HF_OK);
    HF_CHECK(hf_scope_open(&scope) == HF_OK);
    HF_CHECK(hf_fork(scope, wait_for_hello, &w) == HF_OK);
    HF_CHECK(hf_sleep(hf_milliseconds(300)) == HF_OK);
    tell(rig, order);
    await_server(rig);
    HF_CHECK(hf_join(scope) == HF_OK);
    HF_CHECK(w.status == HF_OK);
}

static void restart_at_once(remote_rig *rig)
{
    restart_meanwhile(rig, 1);
}

static void restart_later(remote_rig *rig)
{
    restart_meanwhile(rig, 2);
    HF_CHECK_SAY(strstr(lines, "2 server_lost") != NULL && strstr(lines, "1 server_reached") != NULL, "%s", lines);
}

static void a_server_that_stops_is_waited_for(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= hf_test_seeds(20); seed++) {
        run_rig(restart_at_once, seed);
        run_rig(restart_later, seed);
    }
}

/* ---- Closing ------------------------------------------------------------------------------------------------------------------- */

typedef struct poll_call {
    hf_call call; /* first */
    hf_arena arena;
    atomic_int ended; /* its status + 1 */
} poll_call;

static void on_done(hf_call *call)
{
    atomic_store(&((poll_call *)(void *)call)->ended, (int)call->status + 1);
}

static void await_end(poll_call *poll, hf_status expected)
{
    while (atomic_load(&poll->ended) == 0) {
        HF_CHECK(hf_sleep(hf_milliseconds(1)) == HF_OK);
    }
    HF_CHECK_SAY(atomic_load(&poll->ended) == (int)expected + 1, "%s", poll->call.message);
}

/* A poll that is under way when the service is closed, and one that is canceled. */
static void close_meanwhile(remote_rig *rig)
{
    hf_service *service = NULL;
    poll_call polls[2];
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    hf_pb_poll_workflow_task_queue_request request = {.namespace = HF_STR("default"), .task_queue = &queue};
    HF_CHECK(hf_open(rig->address, &service) == HF_OK);
    for (int i = 0; i < 2; i++) {
        hf_arena_init(&polls[i].arena, hf_env_memory(rig->env));
        hf_call_init(&polls[i].call, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &request, &polls[i].arena, on_done);
        atomic_store(&polls[i].ended, 0);
        hf_fiber *self = hf_enter(NULL);
        hf_service_submit(service, &polls[i].call);
        hf_leave(self);
    }
    HF_CHECK(hf_sleep(hf_seconds(50)) == HF_OK);
    HF_CHECK(atomic_load(&polls[0].ended) == 0 && atomic_load(&polls[1].ended) == 0);
    hf_fiber *self = hf_enter(NULL);
    service->ops->cancel(service, polls[0].call.number);
    hf_leave(self);
    await_end(&polls[0], HF_ERR_CANCELED);
    HF_CHECK(hf_close(service) == HF_OK);
    await_end(&polls[1], HF_ERR_CLOSED);
    for (int i = 0; i < 2; i++) {
        hf_arena_deinit(&polls[i].arena);
    }
}

static void remote_R3_calls_end_with_the_service(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= hf_test_seeds(20); seed++) {
        run_rig(close_meanwhile, seed);
    }
}

/* ---- No memory ------------------------------------------------------------------------------------------------------------------- */

static uint64_t failing; /* the number of the allocation that fails */
static bool has_failed;  /* it came */

/* Whatever fails, nothing hangs, leaks or breaks; and afterwards everything works. */
static void call_without_memory(remote_rig *rig)
{
    hf_service *service = NULL;
    hf_execution *execution = NULL;
    uint64_t before = hf_sim_allocations(rig->env);
    hf_sim_fail_allocation(rig->env, failing, false);
    hf_status status = hf_open(rig->address, &service);
    if (status == HF_OK) {
        status = hf_start(service, "hello", hf_payload_of_json("1"), &execution, .id = "w", .request_id = "r");
        hf_execution_free(execution);
    }
    has_failed = hf_sim_allocations(rig->env) - before >= failing;
    hf_sim_fail_allocation(rig->env, 0, false);
    HF_CHECK(service == NULL || hf_close(service) == HF_OK);
    status = HF_ERR_UNAVAILABLE;
    for (int i = 0; i < 20 && status != HF_OK; i++) { /* the engine may be starting over */
        status = hf_start(rig->service, "hello", hf_payload_of_json("1"), &execution, .id = "w", .request_id = "r");
        HF_CHECK(status == HF_OK || hf_sleep(hf_seconds(1)) == HF_OK);
    }
    HF_CHECK_SAY(status == HF_OK, "allocation %llu: %s", (unsigned long long)failing, hf_error_text());
    hf_execution_free(execution);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    uint64_t step = hf_test_scale() > 1 ? 7 : 1;
    has_failed = true;
    for (failing = 1; has_failed && hf_checks_failed() == 0; failing += step) {
        run_rig(call_without_memory, failing);
    }
    print_message("%llu allocations\n", (unsigned long long)failing);
    assert_true(failing > 50);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_workflow_runs_over_the_network),
    cmocka_unit_test(failures_come_back_as_statuses),
    cmocka_unit_test(details_come_back),
    cmocka_unit_test(streams_come_over_the_network),
    cmocka_unit_test(what_a_temporal_server_lacks_is_unsupported),
    cmocka_unit_test(hf_open_says_that_nobody_is_there),
    cmocka_unit_test(a_server_that_stops_is_waited_for),
    cmocka_unit_test(remote_R3_calls_end_with_the_service),
    cmocka_unit_test(every_allocation_may_fail),
};

int main(int argc, char **argv)
{
    return hf_test_main("remote", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
