/* A server for tests, whose clock jumps: TestService through the door, on a simulated network. The simulated wall clock goes on by what the
 * calls themselves take, microseconds; everything beyond was skipped. */
#include "support/h2_client.h"
#include "support/support.h"

#include "open/open.h"
#include "server/door.h"
#include "service/grpc_code.h"

#include <holdfast/service.h>

#include <stdio.h>

#define TEST_SERVICE "/temporal.api.testservice.v1.TestService/"

typedef struct skip_rig {
    void (*one)(struct skip_rig *rig);
    hf_env *env;
    bool skips;
    h2_client client;
    hf_arena arena;
    h2_call *left; /* a call that the case did not wait for; NULL = none */
} skip_rig;

static hf_status rig_body(void *arg)
{
    skip_rig *rig = arg;
    hf_op op;
    hf_op_init(&op);
    hf_service *service = NULL;
    hf_door *door = NULL;
    hf_door_options options = {.has_tests = rig->skips};
    char address[HF_ADDRESS_LEN_MAX];
    HF_TRY(rig->skips ? hf_open_skipping(&service) : hf_open("memory:", &service));
    HF_TRY(hf_door_open(&op, service, &options, &door));
    HF_TRY(hf_door_listen(&op, door, "tcp:127.0.0.1:0", address));
    HF_TRY(h2_open(&rig->client, address, hf_env_memory(rig->env)));
    hf_arena_init(&rig->arena, hf_env_memory(rig->env));
    rig->one(rig);
    hf_arena_deinit(&rig->arena);
    h2_close(&rig->client);
    if (rig->left != NULL) {
        h2_free(rig->left);
    }
    hf_door_stop(door);
    return hf_close(service);
}

static void run_rig(void (*one)(skip_rig *rig), bool skips)
{
    for (uint64_t seed = 1; seed <= hf_test_seeds(10); seed++) {
        skip_rig rig = {.one = one, .skips = skips};
        rig.env = hf_sim_begin(seed);
        hf_runtime_options options = hf_sim_runtime_options(rig.env, 2);
        assert_int_equal(hf_run_with(rig_body, &rig, &options), HF_OK);
        hf_sim_end(rig.env, NULL);
    }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------------ */

static h2_call *begin(skip_rig *rig, hf_method method, const void *request)
{
    char path[128];
    char frame[512] = {0};
    hf_buf message;
    (void)snprintf(path, sizeof path, TEST_SERVICE "%s", hf_method_info_of(method)->name);
    hf_buf_init(&message, hf_env_memory(rig->env), sizeof frame - 5);
    hf_pb_encode(hf_method_info_of(method)->request_type, request, &message);
    HF_CHECK(hf_buf_status(&message) == HF_OK && message.len < 128);
    frame[4] = (char)message.len;
    if (message.len > 0) {
        memcpy(frame + 5, message.data, message.len);
    }
    h2_call *call = h2_begin(&rig->client, path, NULL, frame, message.len + 5);
    hf_buf_deinit(&message);
    h2_flush(&rig->client);
    return call;
}

static int end(h2_call *call)
{
    h2_wait(call);
    int status = call->status;
    h2_free(call);
    return status;
}

static int ask(skip_rig *rig, hf_method method, const void *request)
{
    return end(begin(rig, method, request));
}

static int lock(skip_rig *rig)
{
    return ask(rig, HF_METHOD_LOCK_TIME_SKIPPING, &(hf_pb_lock_time_skipping_request){0});
}

static int unlock(skip_rig *rig)
{
    return ask(rig, HF_METHOD_UNLOCK_TIME_SKIPPING, &(hf_pb_unlock_time_skipping_request){0});
}

/* Seconds by the server's clock. */
static int64_t now_of(skip_rig *rig)
{
    bool is_gzip = false;
    hf_op op;
    hf_op_init(&op);
    hf_pb_get_current_time_response response = {0};
    h2_call *call = begin(rig, HF_METHOD_GET_CURRENT_TIME, &(hf_pb_empty){0});
    h2_wait(call);
    hf_str bytes = h2_message(call, &is_gzip);
    HF_CHECK(call->status == HF_GRPC_OK);
    HF_CHECK(hf_pb_decode(&op, &hf_pb_get_current_time_response_type, bytes, &rig->arena, &response) == HF_OK);
    h2_free(call);
    return response.time.seconds;
}

static hf_pb_sleep_request span_of(hf_span span)
{
    return (hf_pb_sleep_request){.duration = hf_pb_duration_of(span)};
}

static const hf_pb_task_queue QUEUE = {.name = HF_STR_INIT("q")};

static void start(skip_rig *rig, const char *id)
{
    hf_pb_workflow_type type = {.name = HF_STR("waits")};
    hf_pb_start_workflow_execution_request request = {.namespace = HF_STR("a-namespace-of-the-test"),
                                                      .workflow_id = hf_str_of(id),
                                                      .workflow_type = &type,
                                                      .task_queue = (hf_pb_task_queue *)(uintptr_t)&QUEUE,
                                                      .request_id = hf_str_of(id),
                                                      .identity = HF_STR("test")};
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_START_WORKFLOW_EXECUTION, &request, &rig->arena, NULL) == HF_GRPC_OK);
}

static hf_str poll(skip_rig *rig, int *ret_events)
{
    hf_pb_poll_workflow_task_queue_request request = {.namespace = HF_STR("a-namespace-of-the-test"),
                                                      .task_queue = (hf_pb_task_queue *)(uintptr_t)&QUEUE,
                                                      .identity = HF_STR("test")};
    hf_pb_poll_workflow_task_queue_response response = {0};
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &request, &rig->arena, &response) == HF_GRPC_OK);
    HF_CHECK(response.task_token.len > 0);
    *ret_events = (int)response.started_event_id;
    return response.task_token;
}

static void respond(skip_rig *rig, hf_str token, hf_pb_command *command)
{
    hf_pb_respond_workflow_task_completed_request request = {.namespace = HF_STR("a-namespace-of-the-test"),
                                                             .task_token = token,
                                                             .commands = {command, command != NULL ? 1 : 0},
                                                             .identity = HF_STR("test")};
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &request, &rig->arena, NULL) ==
             HF_GRPC_OK);
}

static void start_timer(skip_rig *rig, hf_str token, hf_span span)
{
    hf_pb_start_timer_command_attributes timer = {.timer_id = HF_STR("t"),
                                                  .start_to_fire_timeout = hf_pb_duration_of(span)};
    hf_pb_command command = {
        .command_type = HF_COMMAND_TYPE_START_TIMER, .attributes_case = 3, .start_timer_command_attributes = &timer};
    respond(rig, token, &command);
}

/* ---- Cases ------------------------------------------------------------------------------------------------------------------ */

static void sleep_a_year(skip_rig *rig)
{
    hf_pb_sleep_request year = span_of(hf_days(365));
    int64_t before = now_of(rig);
    int64_t began = hf_now(NULL).ns;
    HF_CHECK(ask(rig, HF_METHOD_UNLOCK_TIME_SKIPPING_WITH_SLEEP, &year) == HF_GRPC_OK);
    HF_CHECK(now_of(rig) - before >= 365 * 86400 && now_of(rig) - before < 365 * 86400 + 60);
    HF_CHECK(hf_now(NULL).ns - began < hf_minutes(1).ns); /* and it took no time */
    HF_CHECK(unlock(rig) == HF_GRPC_OK);                  /* the sleep has locked it again */
    HF_CHECK(unlock(rig) == HF_GRPC_INVALID_ARGUMENT);
    HF_CHECK(ask(rig, HF_METHOD_UNLOCK_TIME_SKIPPING_WITH_SLEEP, &year) == HF_GRPC_INVALID_ARGUMENT);
    HF_CHECK(ask(rig, HF_METHOD_SLEEP, &year) == HF_GRPC_OK);
    HF_CHECK(now_of(rig) - before >= 730 * 86400);
    hf_pb_sleep_until_request until = {.timestamp = {.seconds = before, .has = true}};
    HF_CHECK(ask(rig, HF_METHOD_SLEEP_UNTIL, &until) == HF_GRPC_OK); /* that was long ago */
    until.timestamp.seconds = before + 1000 * 86400;
    HF_CHECK(ask(rig, HF_METHOD_SLEEP_UNTIL, &until) == HF_GRPC_OK);
    HF_CHECK(now_of(rig) - before >= 1000 * 86400);
}

static void a_sleep_skips_time(void **state)
{
    (void)state;
    run_rig(sleep_a_year, true);
}

static void sleep_locked(skip_rig *rig)
{
    hf_pb_sleep_request minute = span_of(hf_minutes(1));
    int64_t began = hf_now(NULL).ns;
    HF_CHECK(ask(rig, HF_METHOD_SLEEP, &minute) == HF_GRPC_OK);
    HF_CHECK(hf_now(NULL).ns - began >= hf_minutes(1).ns); /* of the client's own clock */
}

static void time_that_is_locked_passes_as_it_does(void **state)
{
    (void)state;
    run_rig(sleep_locked, true);
}

static void wait_for_a_timer(skip_rig *rig)
{
    int events = 0;
    start(rig, "w1");
    int64_t before = now_of(rig);
    hf_str token = poll(rig, &events);
    HF_CHECK(unlock(rig) == HF_GRPC_OK);
    HF_CHECK(now_of(rig) - before < 60); /* its task is in our hands */
    int64_t began = hf_now(NULL).ns;
    start_timer(rig, token, hf_days(30));
    (void)poll(rig, &events); /* the timer has fired */
    HF_CHECK_SAY(events == 8, "%d", events);
    HF_CHECK(hf_now(NULL).ns - began < hf_seconds(10).ns);
    int64_t after = now_of(rig) - before;
    HF_CHECK_SAY(after >= 30 * 86400 && after < 30 * 86400 + 60, "%lld s", (long long)after); /* engine-J1 */
}

static void engine_K1_a_timer_fires_at_once_when_nothing_runs(void **state)
{
    (void)state;
    run_rig(wait_for_a_timer, true);
}

/* Two runs: the second one's task keeps time from being skipped for the first one's timer. */
static void wait_beside_a_task(skip_rig *rig)
{
    int events = 0;
    start(rig, "w1");
    start_timer(rig, poll(rig, &events), hf_days(30));
    start(rig, "w2");
    int64_t before = now_of(rig);
    HF_CHECK(unlock(rig) == HF_GRPC_OK);
    HF_CHECK(now_of(rig) - before < 60); /* nobody has polled for its task */
    hf_str token = poll(rig, &events);
    HF_CHECK(events == 3 && now_of(rig) - before < 60);
    respond(rig, token, NULL);
    (void)poll(rig, &events);
    HF_CHECK(events == 8 && now_of(rig) - before >= 29 * 86400);
}

static void time_waits_for_tasks(void **state)
{
    (void)state;
    run_rig(wait_beside_a_task, true);
}

/* A sleep that its caller has canceled locks time again. */
static void cancel_a_sleep(skip_rig *rig)
{
    int events = 0;
    start(rig, "w1"); /* its task holds time up */
    hf_pb_sleep_request year = span_of(hf_days(365));
    h2_call *call = begin(rig, HF_METHOD_UNLOCK_TIME_SKIPPING_WITH_SLEEP, &year);
    int64_t before = now_of(rig);
    hf_h2_reset(rig->client.h2, &call->h2, HF_H2_CANCEL);
    h2_flush(&rig->client);
    h2_free(call);
    while (unlock(rig) != HF_GRPC_OK) { /* once the cancel has come, there is a lock to take away */
    }
    HF_CHECK(lock(rig) == HF_GRPC_OK);
    respond(rig, poll(rig, &events), NULL);
    HF_CHECK(now_of(rig) - before < 60);
}

static void a_sleep_may_be_canceled(void **state)
{
    (void)state;
    run_rig(cancel_a_sleep, true);
}

static void be_unknown(skip_rig *rig)
{
    h2_call *call = begin(rig, HF_METHOD_GET_CURRENT_TIME, &(hf_pb_empty){0});
    h2_wait(call);
    HF_CHECK(call->status == HF_GRPC_UNIMPLEMENTED);
    HF_CHECK_SAY(strstr(call->message, "unknown service temporal.api.testservice.v1.TestService") != NULL, "%s",
                 call->message);
    h2_free(call);
}

static void another_server_does_not_have_it(void **state)
{
    (void)state;
    run_rig(be_unknown, false);
}

/* The server stops while somebody sleeps. */
static void leave_asleep(skip_rig *rig)
{
    hf_pb_sleep_request year = span_of(hf_days(365));
    rig->left = begin(rig, HF_METHOD_SLEEP, &year);
    (void)now_of(rig);
}

static void a_sleeper_does_not_hold_up_the_stop(void **state)
{
    (void)state;
    run_rig(leave_asleep, true);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_sleep_skips_time),
    cmocka_unit_test(time_that_is_locked_passes_as_it_does),
    cmocka_unit_test(engine_K1_a_timer_fires_at_once_when_nothing_runs),
    cmocka_unit_test(time_waits_for_tasks),
    cmocka_unit_test(a_sleep_may_be_canceled),
    cmocka_unit_test(another_server_does_not_have_it),
    cmocka_unit_test(a_sleeper_does_not_hold_up_the_stop),
};

int main(int argc, char **argv)
{
    return hf_test_main("skip", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
