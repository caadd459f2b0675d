/* The door on a simulated network, with the engine behind it: calls, refusals, polls that are canceled, the stop. */
#include "support/h2_client.h"
#include "support/support.h"

#include "base/env.h"
#include "base/glyph.h"
#include "server/door.h"
#include "server/methods.h"
#include "server/rate.h"
#include "server/reflect.h"
#include "service/grpc_code.h"
#include "wire/base64.h"
#include "wire/grpc.h"
#include "wire/gzip.h"

#include <holdfast/service.h>

#define SERVICE "/temporal.api.workflowservice.v1.WorkflowService/"

/* Of the namespaces of the next case. */
static const hf_rate *rates;
static int rate_count;

/* What a case has: a server and a client. */
typedef struct door_rig {
    void (*one)(struct door_rig *rig);
    hf_env *env;
    hf_service *service;
    hf_door *door;
    char address[HF_ADDRESS_LEN_MAX];
    h2_client client;
    hf_arena arena;
    hf_chan *words;  /* the server is ready */
    hf_chan *orders; /* it shall stop */
    bool is_stopped; /* the case stopped it itself */
    int64_t stop_ns; /* how long that took */
} door_rig;

/* A service that answers no answer of a worker before it is canceled, as a disk that hangs would have it. */
typedef struct holding {
    hf_service base; /* first */
    hf_service *inner;
    hf_call *held;
} holding;

enum { HELD_NUMBER = 1 << 30 };

static void hold_submit(hf_service *service, hf_call *call)
{
    holding *h = (holding *)(void *)service;
    if (call->method != HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
        h->inner->ops->submit(h->inner, call);
        return;
    }
    call->number = HELD_NUMBER;
    h->held = call;
}

static void hold_cancel(hf_service *service, uint64_t number)
{
    holding *h = (holding *)(void *)service;
    hf_call *call = h->held;
    if (number != HELD_NUMBER) {
        h->inner->ops->cancel(h->inner, number);
    } else if (call != NULL) {
        h->held = NULL;
        hf_call_set_failure(call, HF_ERR_CANCELED, "canceled");
        call->done(call);
    }
}

static void hold_unwanted(hf_service *service, hf_str token)
{
    holding *h = (holding *)(void *)service;
    h->inner->ops->unwanted(h->inner, token);
}

static const hf_service_ops HOLDING_OPS = {hold_submit, hold_cancel, hold_unwanted, NULL, NULL};
static bool holds_answers; /* in the next case */
static holding holder;

/* The server's fiber: from the opening to the stop that the case asks for. */
static hf_status server_body(void *arg)
{
    door_rig *rig = arg;
    hf_op op;
    hf_op_init(&op);
    hf_door_options options = {.rates = rates, .rate_count = rate_count};
    int word = 0;
    HF_TRY(hf_open("memory:", &rig->service));
    holder = (holding){.base = {.ops = &HOLDING_OPS}, .inner = rig->service};
    HF_TRY(hf_door_open(&op, holds_answers ? &holder.base : rig->service, &options, &rig->door));
    HF_TRY(hf_door_listen(&op, rig->door, "tcp:127.0.0.1:0", rig->address));
    HF_TRY(hf_chan_send(rig->words, &word));
    HF_TRY(hf_chan_recv(rig->orders, &word));
    hf_instant before = hf_now(NULL);
    hf_door_stop(rig->door);
    rig->stop_ns = hf_now(NULL).ns - before.ns;
    return hf_close(rig->service);
}

static void stop(door_rig *rig)
{
    int word = 0;
    rig->is_stopped = true;
    HF_CHECK(hf_chan_send(rig->orders, &word) == HF_OK);
}

static hf_status rig_body(void *arg)
{
    door_rig *rig = arg;
    int word = 0;
    HF_AUTO(hf_chan_free) hf_chan *words = NULL;
    HF_AUTO(hf_chan_free) hf_chan *orders = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_chan_new(sizeof word, &words));
    HF_TRY(hf_chan_new(sizeof word, &orders));
    HF_TRY(hf_scope_open(&scope, .name = "server"));
    rig->words = words;
    rig->orders = orders;
    HF_TRY(hf_fork(scope, server_body, rig));
    HF_TRY(hf_chan_recv(words, &word));
    HF_TRY(h2_open(&rig->client, rig->address, hf_env_memory(rig->env)));
    hf_arena_init(&rig->arena, hf_env_memory(rig->env));
    rig->one(rig);
    hf_arena_deinit(&rig->arena);
    h2_close(&rig->client);
    if (!rig->is_stopped) {
        stop(rig);
    }
    return hf_join(scope);
}

static int64_t run_rig(void (*one)(door_rig *rig), uint64_t seed)
{
    door_rig rig = {.one = one};
    rig.env = hf_sim_begin(seed);
    hf_runtime_options options = hf_sim_runtime_options(rig.env, 2);
    assert_int_equal(hf_run_with(rig_body, &rig, &options), HF_OK);
    hf_sim_end(rig.env, NULL);
    return rig.stop_ns;
}

static void start(door_rig *rig, const char *id)
{
    hf_pb_workflow_type type = {.name = HF_STR("hello")};
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    hf_pb_start_workflow_execution_request request = {.namespace = HF_STR("default"),
                                                      .workflow_id = hf_str_of(id),
                                                      .workflow_type = &type,
                                                      .task_queue = &queue,
                                                      .request_id = hf_str_of(id),
                                                      .identity = HF_STR("test")};
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_START_WORKFLOW_EXECUTION, &request, &rig->arena, NULL) == HF_GRPC_OK);
}

static const hf_pb_task_queue QUEUE = {.name = HF_STR_INIT("q")};

static hf_pb_poll_workflow_task_queue_request poll_of(void)
{
    return (hf_pb_poll_workflow_task_queue_request){.namespace = HF_STR("default"),
                                                    .task_queue = (hf_pb_task_queue *)(uintptr_t)&QUEUE,
                                                    .identity = HF_STR("test")};
}

/* ---- Calls ---------------------------------------------------------------------------------------------------------------- */

static void ask_for_the_system(door_rig *rig)
{
    hf_pb_get_system_info_request request = {0};
    hf_pb_get_system_info_response response;
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_GET_SYSTEM_INFO, &request, &rig->arena, &response) == HF_GRPC_OK);
    HF_CHECK(hf_str_equal(response.server_version, HF_STR(HF_VERSION_TEXT)));
    HF_CHECK(response.capabilities != NULL && response.capabilities->sdk_metadata);
}

static void a_call_is_answered(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= hf_test_seeds(20); seed++) {
        run_rig(ask_for_the_system, seed);
    }
}

static void give_out_a_task(door_rig *rig)
{
    hf_pb_poll_workflow_task_queue_request request = poll_of();
    hf_pb_poll_workflow_task_queue_response response = {0};
    start(rig, "w1");
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &request, &rig->arena, &response) == HF_GRPC_OK);
    HF_CHECK(response.task_token.len > 0 && response.history.len > 0);
    HF_CHECK(response.workflow_execution != NULL &&
             hf_str_equal(response.workflow_execution->workflow_id, HF_STR("w1")));
}

static void a_poll_gets_a_task(void **state)
{
    (void)state;
    run_rig(give_out_a_task, 1);
}

static void wait_for_nothing(door_rig *rig)
{
    hf_pb_poll_workflow_task_queue_request request = poll_of();
    static const h2_header SHORT[] = {{"grpc-timeout", "5S"}, {NULL, NULL}};
    hf_instant before = hf_now(NULL);
    h2_call *call = h2_begin_method(&rig->client, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, SHORT, &request);
    bool is_gzip = false;
    h2_wait(call);
    int64_t took = hf_now(NULL).ns - before.ns;
    HF_CHECK_SAY(call->status == HF_GRPC_OK && h2_message(call, &is_gzip).len == 0, "status %d", call->status);
    HF_CHECK_SAY(took > 4000000000 && took < 5000000000, "after %lld ns", (long long)took);
    h2_free(call);
}

static void a_poll_is_answered_before_its_caller_gives_up(void **state)
{
    (void)state;
    run_rig(wait_for_nothing, 1);
}

static void come_too_late(door_rig *rig)
{
    static const h2_header NONE[] = {{"grpc-timeout", "0S"}, {NULL, NULL}};
    hf_pb_workflow_type type = {.name = HF_STR("hello")};
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("late")};
    hf_pb_start_workflow_execution_request request = {.namespace = HF_STR("default"),
                                                      .workflow_id = execution.workflow_id,
                                                      .workflow_type = &type,
                                                      .task_queue = (hf_pb_task_queue *)(uintptr_t)&QUEUE};
    hf_pb_describe_workflow_execution_request describe = {.namespace = HF_STR("default"), .execution = &execution};
    h2_call *call = h2_begin_method(&rig->client, HF_METHOD_START_WORKFLOW_EXECUTION, NONE, &request);
    h2_wait(call);
    HF_CHECK_SAY(call->status == HF_GRPC_DEADLINE_EXCEEDED, "status %d", call->status);
    h2_free(call);
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &describe, &rig->arena, NULL) ==
             HF_GRPC_NOT_FOUND);
}

static void a_call_whose_deadline_has_passed_does_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= hf_test_seeds(10); seed++) {
        run_rig(come_too_late, seed);
    }
}

/* ---- Refusals --------------------------------------------------------------------------------------------------------------- */

typedef struct refusal {
    const char *path;
    const h2_header headers[3];
    const char *frame;
    size_t frame_len;
    int http;
    int status;
    const char *words;
} refusal;

static const refusal REFUSALS[] = {
    {SERVICE "ListSchedules",
     {{NULL, NULL}},
     "\0\0\0\0\0",
     5,
     200,
     HF_GRPC_UNIMPLEMENTED,
     "unknown method ListSchedules for service temporal.api.workflowservice.v1.WorkflowService"},
    {"/temporal.api.nobody.v1.Service/Call",
     {{NULL, NULL}},
     "\0\0\0\0\0",
     5,
     200,
     HF_GRPC_UNIMPLEMENTED,
     "unknown service temporal.api.nobody.v1.Service"},
    {SERVICE "TellListener",
     {{NULL, NULL}},
     "\0\0\0\0\0",
     5,
     200,
     HF_GRPC_UNIMPLEMENTED,
     "unknown method TellListener"},
    {"/nothing", {{NULL, NULL}}, "\0\0\0\0\0", 5, 200, HF_GRPC_UNIMPLEMENTED, "malformed method name: /nothing"},
    {SERVICE "GetSystemInfo",
     {{NULL, NULL}},
     "\0\0\x50\0\0",
     5,
     200,
     HF_GRPC_RESOURCE_EXHAUSTED,
     "grpc: received message larger than max (5242880 vs. 4194304)"},
    {SERVICE "GetSystemInfo",
     {{NULL, NULL}},
     "\0\0\0\0\2\xff\xff",
     7,
     200,
     HF_GRPC_INVALID_ARGUMENT,
     "GetSystemInfoRequest"},
    {SERVICE "GetSystemInfo", {{NULL, NULL}}, "\0\0\0\0\5\xff", 6, 200, HF_GRPC_INTERNAL, "ended before its message"},
    {SERVICE "GetSystemInfo", {{NULL, NULL}}, "\7\0\0\0\0", 5, 200, HF_GRPC_INTERNAL, "unknown flags"},
    {SERVICE "GetSystemInfo", {{NULL, NULL}}, "\0\0\0\0\0\0\0\0\0\0", 10, 200, HF_GRPC_INTERNAL, "takes one message"},
    {SERVICE "GetSystemInfo", {{NULL, NULL}}, "\1\0\0\0\0", 5, 200, HF_GRPC_INTERNAL, "compressed flag set"},
    {SERVICE "GetSystemInfo",
     {{"grpc-encoding", "gzip"}, {NULL, NULL}},
     "\1\0\0\0\2xx",
     7,
     200,
     HF_GRPC_INTERNAL,
     "cannot decompress"},
    {SERVICE "GetSystemInfo",
     {{"grpc-encoding", "snappy"}, {NULL, NULL}},
     "\0\0\0\0\0",
     5,
     200,
     HF_GRPC_UNIMPLEMENTED,
     "grpc-encoding"},
    {SERVICE "GetSystemInfo",
     {{"grpc-timeout", "soon"}, {NULL, NULL}},
     "\0\0\0\0\0",
     5,
     200,
     HF_GRPC_INTERNAL,
     "grpc-timeout"},
    {SERVICE "GetSystemInfo", {{"content-type", "text/plain"}, {NULL, NULL}}, "\0\0\0\0\0", 5, 415, -1, ""},
    {SERVICE "GetSystemInfo", {{":method", "GET"}, {NULL, NULL}}, "", 0, 405, -1, ""},
};

static void be_refused(door_rig *rig)
{
    for (size_t i = 0; i < HF_COUNT_OF(REFUSALS); i++) {
        const refusal *row = &REFUSALS[i];
        h2_call *call = h2_begin(&rig->client, row->path, row->headers, row->frame, row->frame_len);
        h2_wait(call);
        HF_CHECK_SAY(call->http == row->http && call->status == row->status &&
                         strstr(call->message, row->words) != NULL,
                     "row %zu: %d %d %s", i, call->http, call->status, call->message);
        h2_free(call);
    }
    ask_for_the_system(rig); /* the connection is as good as before */
}

static void what_is_wrong_is_refused_in_known_words(void **state)
{
    (void)state;
    run_rig(be_refused, 1);
}

static void be_told_details(door_rig *rig)
{
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("nobody")};
    hf_pb_describe_workflow_execution_request request = {.namespace = HF_STR("default"), .execution = &execution};
    h2_call *call = h2_begin_method(&rig->client, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, NULL, &request);
    h2_wait(call);
    HF_CHECK(call->status == HF_GRPC_NOT_FOUND);
    HF_CHECK_SAY(call->details.len > 40, "%s", hf_buf_text(&call->details));
    h2_free(call);
}

static void failures_carry_details(void **state)
{
    (void)state;
    run_rig(be_told_details, 1);
}

/* A sentence with a long id is cut, and not inside of a character: clients read no details from a text that is not UTF-8. */
static void be_told_of_a_long_id(door_rig *rig)
{
    for (size_t first = 0; first < 3; first++) {
        char id[1000] = "xx";
        hf_pb_workflow_type type = {.name = HF_STR("order")};
        for (size_t at = first; at + 4 < sizeof id; at += 3) {
            memcpy(id + at, "\xe2\x82\xac", 4);
        }
        hf_pb_start_workflow_execution_request request = {.namespace = HF_STR("default"),
                                                          .workflow_id = hf_str_of(id),
                                                          .workflow_type = &type,
                                                          .task_queue = (hf_pb_task_queue *)(uintptr_t)&QUEUE};
        HF_CHECK(h2_ask(&rig->client, HF_METHOD_START_WORKFLOW_EXECUTION, &request, &rig->arena, NULL) == HF_GRPC_OK);
        h2_call *call = h2_begin_method(&rig->client, HF_METHOD_START_WORKFLOW_EXECUTION, NULL, &request);
        h2_wait(call);
        hf_op op;
        hf_buf bytes;
        hf_pb_status told;
        hf_op_init(&op);
        hf_buf_init(&bytes, rig->client.memory, SIZE_MAX / 2);
        HF_CHECK(call->status == HF_GRPC_ALREADY_EXISTS);
        HF_CHECK(hf_base64_parse(hf_str_of_len(call->details.data, call->details.len), &bytes));
        HF_CHECK_SAY(hf_pb_decode(&op, &hf_pb_status_type, hf_str_of_len(bytes.data, bytes.len), &rig->arena, &told) ==
                             HF_OK &&
                         told.details.count == 1 && told.message.len > 900 && hf_str_is_utf8(told.message),
                     "%zu: %s", first, op.message);
        hf_buf_deinit(&bytes);
        h2_free(call);
    }
}

static void a_sentence_is_not_cut_inside_of_a_character(void **state)
{
    (void)state;
    run_rig(be_told_of_a_long_id, 1);
}

static void send_gzip(door_rig *rig)
{
    hf_op op;
    hf_op_init(&op);
    static const h2_header GZIP[] = {
        {"grpc-encoding", "gzip"}, {"grpc-accept-encoding", "identity, gzip"}, {NULL, NULL}};
    hf_buf frame;
    hf_buf_init(&frame, hf_env_memory(rig->env), SIZE_MAX / 2);
    hf_buf_put(&frame, "\1\0\0\0\0", 5);
    HF_CHECK(hf_gzip(&op, (hf_str){0}, &frame) == HF_OK);
    frame.data[4] = (char)(frame.len - 5);
    h2_call *call = h2_begin(&rig->client, SERVICE "GetSystemInfo", GZIP, frame.data, frame.len);
    bool is_gzip = true;
    h2_wait(call);
    HF_CHECK(call->status == HF_GRPC_OK && h2_message(call, &is_gzip).len > 0 && !is_gzip);
    h2_free(call);
    hf_buf_deinit(&frame);
}

static void requests_may_be_compressed(void **state)
{
    (void)state;
    run_rig(send_gzip, 1);
}

/* ---- Other names -------------------------------------------------------------------------------------------------------------- */

/* The status of a call by its path. */
static int ask_by_name(door_rig *rig, const char *path, const hf_pb_type *type, const void *request)
{
    hf_buf message;
    unsigned char head[HF_GRPC_HEAD_LEN];
    hf_buf_init(&message, rig->client.memory, SIZE_MAX / 2);
    hf_pb_encode(type, request, &message);
    hf_grpc_head(head, false, (uint32_t)message.len);
    char *frame = hf_arena_zero(&rig->arena, sizeof head + message.len, 1);
    memcpy(frame, head, sizeof head);
    memcpy(frame + sizeof head, message.data, message.len);
    h2_call *call = h2_begin(&rig->client, path, NULL, frame, sizeof head + message.len);
    h2_wait(call);
    int status = call->status;
    h2_free(call);
    hf_buf_deinit(&message);
    return status;
}

/* A run "w1" with an activity "a". */
static void schedule_an_activity(door_rig *rig)
{
    hf_pb_poll_workflow_task_queue_request poll = poll_of();
    hf_pb_poll_workflow_task_queue_response task = {0};
    hf_pb_activity_type type = {.name = HF_STR("act")};
    hf_pb_schedule_activity_task_command_attributes attrs = {.activity_id = HF_STR("a"),
                                                             .activity_type = &type,
                                                             .task_queue = (hf_pb_task_queue *)(uintptr_t)&QUEUE,
                                                             .start_to_close_timeout =
                                                                 hf_pb_duration_of(hf_seconds(10))};
    hf_pb_command command = {.command_type = HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
                             .attributes_case = HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES,
                             .schedule_activity_task_command_attributes = &attrs};
    start(rig, "w1");
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &poll, &rig->arena, &task) == HF_GRPC_OK);
    hf_pb_respond_workflow_task_completed_request answer = {
        .namespace = HF_STR("default"), .task_token = task.task_token, .commands = {&command, 1}};
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &answer, &rig->arena, NULL) == HF_GRPC_OK);
}

static const hf_pb_pending_activity_info *the_activity(door_rig *rig)
{
    static hf_pb_describe_workflow_execution_response described;
    hf_pb_workflow_execution run = {.workflow_id = HF_STR("w1")};
    hf_pb_describe_workflow_execution_request request = {.namespace = HF_STR("default"), .execution = &run};
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, &rig->arena, &described) ==
             HF_GRPC_OK);
    HF_CHECK(described.pending_activities.count == 1);
    return &described.pending_activities.items[0];
}

static void change_an_activity(door_rig *rig)
{
    hf_str workflow_id = HF_STR("w1");
    schedule_an_activity(rig);
    hf_pb_pause_activity_execution_request pause = {.namespace = HF_STR("default"),
                                                    .workflow_id = workflow_id,
                                                    .activity_id = HF_STR("a"),
                                                    .reason = HF_STR("why")};
    const hf_pb_type *pause_type = &hf_pb_pause_activity_execution_request_type;
    HF_CHECK(ask_by_name(rig, SERVICE "PauseActivityExecution", pause_type, &pause) == HF_GRPC_OK);
    HF_CHECK(the_activity(rig)->paused);
    hf_pb_unpause_activity_execution_request unpause = {
        .namespace = HF_STR("default"), .workflow_id = workflow_id, .activity_id = HF_STR("a")};
    HF_CHECK(ask_by_name(rig, SERVICE "UnpauseActivityExecution", &hf_pb_unpause_activity_execution_request_type,
                         &unpause) == HF_GRPC_OK);
    HF_CHECK(!the_activity(rig)->paused);
    hf_pb_reset_activity_execution_request reset = {
        .namespace = HF_STR("default"), .workflow_id = workflow_id, .activity_id = HF_STR("a")};
    HF_CHECK(ask_by_name(rig, SERVICE "ResetActivityExecution", &hf_pb_reset_activity_execution_request_type, &reset) ==
             HF_GRPC_OK);
    hf_str path = HF_STR("start_to_close_timeout");
    hf_pb_field_mask mask = {.paths = {&path, 1}};
    hf_pb_activity_options options = {.start_to_close_timeout = hf_pb_duration_of(hf_seconds(33))};
    hf_pb_update_activity_execution_options_request update = {.namespace = HF_STR("default"),
                                                              .workflow_id = workflow_id,
                                                              .activity_id = HF_STR("a"),
                                                              .activity_options = &options,
                                                              .update_mask = &mask};
    HF_CHECK(ask_by_name(rig, SERVICE "UpdateActivityExecutionOptions",
                         &hf_pb_update_activity_execution_options_request_type, &update) == HF_GRPC_OK);
    HF_CHECK(hf_pb_duration_span(the_activity(rig)->activity_options->start_to_close_timeout).ns == hf_seconds(33).ns);

    pause.activity_id = HF_STR("b");
    HF_CHECK(ask_by_name(rig, SERVICE "PauseActivityExecution", pause_type, &pause) == HF_GRPC_NOT_FOUND);
    pause.workflow_id = HF_STR(""); /* one without a workflow */
    HF_CHECK(ask_by_name(rig, SERVICE "PauseActivityExecution", pause_type, &pause) == HF_GRPC_UNIMPLEMENTED);
}

static void activities_are_changed_by_the_names_of_newer_clients(void **state)
{
    (void)state;
    run_rig(change_an_activity, 1);
}

/* ---- Tasks that nobody takes ------------------------------------------------------------------------------------------------ */

/* The first poll is reset; whenever the task comes, the second poll gets it. */
static void lose_interest(door_rig *rig)
{
    hf_pb_poll_workflow_task_queue_request request = poll_of();
    hf_pb_poll_workflow_task_queue_response response = {0};
    h2_call *lost = h2_begin_method(&rig->client, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, NULL, &request);
    h2_flush(&rig->client);
    start(rig, "w1"); /* its task may be on its way to the first poll by now */
    hf_h2_reset(rig->client.h2, &lost->h2, HF_H2_CANCEL);
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &request, &rig->arena, &response) == HF_GRPC_OK);
    HF_CHECK_SAY(response.task_token.len > 0 || lost->body.len > 5, "nobody has the task");
    h2_free(lost);
}

/* The same with a connection that ends. */
static void vanish(door_rig *rig)
{
    hf_pb_poll_workflow_task_queue_request request = poll_of();
    hf_pb_poll_workflow_task_queue_response response = {0};
    h2_client other;
    HF_CHECK(h2_open(&other, rig->address, hf_env_memory(rig->env)) == HF_OK);
    h2_call *lost = h2_begin_method(&other, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, NULL, &request);
    h2_flush(&other);
    start(rig, "w1");
    h2_close(&other);
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &request, &rig->arena, &response) == HF_GRPC_OK);
    hf_door_stats stats;
    hf_door_stats_get(rig->door, &stats);
    HF_CHECK(stats.streams == 0);

    lost->client = &rig->client;
    h2_free(lost);
}

static void server_D3_a_task_whose_poll_is_gone_goes_to_another(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= hf_test_seeds(60); seed++) {
        run_rig(lose_interest, seed);
        run_rig(vanish, seed);
    }
}

/* ---- The stop --------------------------------------------------------------------------------------------------------------- */

#define WATCH "/grpc.health.v1.Health/Watch"

static int poll_count; /* of the next case */

static void poll_until_the_stop(door_rig *rig)
{
    hf_pb_poll_workflow_task_queue_request request = poll_of();
    h2_call *calls[1000];
    HF_CHECK(poll_count <= (int)HF_COUNT_OF(calls));
    ask_for_the_system(rig); /* from now on the client knows how many streams it may open */
    h2_call *watch = h2_begin(&rig->client, WATCH, NULL, "\0\0\0\0\0", 5);
    for (int i = 0; i < poll_count; i++) {
        calls[i] = h2_begin_method(&rig->client, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, NULL, &request);
    }
    h2_flush(&rig->client);
    HF_CHECK(hf_sleep(hf_milliseconds(100)) == HF_OK); /* virtual: the calls have arrived */
    stop(rig);
    for (int i = 0; i < poll_count; i++) {
        bool is_gzip = false;
        h2_wait(calls[i]);
        HF_CHECK_SAY(calls[i]->status == HF_GRPC_OK && h2_message(calls[i], &is_gzip).len == 0, "poll %d: %d %s", i,
                     calls[i]->status, calls[i]->message);
        h2_free(calls[i]);
    }
    h2_wait(watch);
    HF_CHECK(watch->body.len == 14 && memcmp(watch->body.data, "\0\0\0\0\2\x08\1\0\0\0\0\2\x08\2", 14) == 0);
    HF_CHECK(watch->status == HF_GRPC_OK);
    h2_free(watch);
    while (h2_turn(&rig->client)) { /* to the end of the connection */
    }
}

static void the_stop_answers_polls_and_tells_watchers(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= hf_test_seeds(20) + 1; seed++) {
        poll_count = seed == 1 ? 1000 : 20;
        int64_t took = run_rig(poll_until_the_stop, seed);
        assert_true(took < 2000000000); /* it waited for nothing but the network */
    }
}

/* Calls whose heads came before the stop, and their messages after it. */
static void ask_in_the_stop(door_rig *rig)
{
    static const char POLL[] = "\0\0\0\0\x0e\x0a\7default\x12\3\x0a\1q"; /* PollWorkflowTaskQueueRequest */
    h2_call *poll = h2_begin_open(&rig->client, SERVICE "PollWorkflowTaskQueue", NULL, false);
    h2_call *watch = h2_begin_open(&rig->client, WATCH, NULL, false);
    h2_flush(&rig->client);
    HF_CHECK(hf_sleep(hf_milliseconds(100)) == HF_OK); /* virtual: the heads have arrived */
    stop(rig);
    HF_CHECK(hf_sleep(hf_milliseconds(100)) == HF_OK);
    h2_finish(poll, POLL, sizeof POLL - 1);
    h2_finish(watch, "\0\0\0\0\0", 5);
    h2_wait(poll);
    h2_wait(watch);
    bool is_gzip = false;
    HF_CHECK_SAY(poll->status == HF_GRPC_OK && h2_message(poll, &is_gzip).len == 0, "poll: %d %s", poll->status,
                 poll->message);
    HF_CHECK(watch->status == HF_GRPC_OK && watch->body.len == 7 && watch->body.data[6] == 2);
    h2_free(poll);
    h2_free(watch);
    while (h2_turn(&rig->client)) {
    }
}

static void the_stop_does_not_wait_for_polls_that_come_in_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= hf_test_seeds(20); seed++) {
        assert_true(run_rig(ask_in_the_stop, seed) < 2000000000);
    }
}

/* Calls that wait for what a worker does: no worker can answer any more, and their callers come again. */
static void wait_for_workers_in_the_stop(door_rig *rig)
{
    hf_pb_workflow_execution run = {.workflow_id = HF_STR("w")};
    hf_pb_meta meta = {.update_id = HF_STR("u")};
    hf_pb_input input = {.name = HF_STR("u")};
    hf_pb_request body = {.meta = &meta, .input = &input};
    hf_pb_wait_policy wait = {.lifecycle_stage = HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED};
    hf_pb_update_workflow_execution_request update = {
        .namespace = HF_STR("default"), .workflow_execution = &run, .wait_policy = &wait, .request = &body};
    hf_pb_workflow_query question = {.query_type = HF_STR("state")};
    hf_pb_query_workflow_request query = {.namespace = HF_STR("default"), .execution = &run, .query = &question};
    hf_pb_workflow_type type = {.name = HF_STR("hello")};
    hf_pb_start_workflow_execution_request start_v = {.namespace = HF_STR("default"),
                                                      .workflow_id = HF_STR("v"),
                                                      .workflow_type = &type,
                                                      .task_queue = (hf_pb_task_queue *)(uintptr_t)&QUEUE,
                                                      .workflow_id_conflict_policy =
                                                          HF_WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
                                                      .request_id = HF_STR("v")};
    hf_pb_workflow_execution run_v = {.workflow_id = HF_STR("v")};
    hf_pb_update_workflow_execution_request update_v = update;
    update_v.workflow_execution = &run_v;
    hf_pb_execute_multi_operation_request_operation both[] = {{.operation_case = 1, .start_workflow = &start_v},
                                                              {.operation_case = 2, .update_workflow = &update_v}};
    hf_pb_execute_multi_operation_request multi = {.namespace = HF_STR("default"), .operations = {both, 2}};
    start(rig, "w");
    h2_call *calls[] = {
        h2_begin_method(&rig->client, HF_METHOD_UPDATE_WORKFLOW_EXECUTION, NULL, &update),
        h2_begin_method(&rig->client, HF_METHOD_QUERY_WORKFLOW, NULL, &query),
        h2_begin_method(&rig->client, HF_METHOD_EXECUTE_MULTI_OPERATION, NULL, &multi),
    };
    h2_flush(&rig->client);
    HF_CHECK(hf_sleep(hf_milliseconds(100)) == HF_OK); /* virtual: the calls have arrived */
    stop(rig);
    for (size_t i = 0; i < HF_COUNT_OF(calls); i++) {
        h2_wait(calls[i]);
        HF_CHECK_SAY(calls[i]->status == HF_GRPC_UNAVAILABLE, "call %zu: %d %s", i, calls[i]->status,
                     calls[i]->message);
        h2_free(calls[i]);
    }
    while (h2_turn(&rig->client)) {
    }
}

static void the_stop_does_not_wait_for_what_workers_do(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= hf_test_seeds(20); seed++) {
        assert_true(run_rig(wait_for_workers_in_the_stop, seed) < 2000000000);
    }
}

static hf_pb_respond_workflow_task_completed_request answer_to_a_task(door_rig *rig)
{
    hf_pb_poll_workflow_task_queue_request poll = poll_of();
    hf_pb_poll_workflow_task_queue_response task = {0};
    start(rig, "w1");
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &poll, &rig->arena, &task) == HF_GRPC_OK);
    return (hf_pb_respond_workflow_task_completed_request){
        .namespace = HF_STR("default"), .task_token = task.task_token, .identity = HF_STR("test")};
}

/* A worker's answers around the stop. One whose head came before is taken; one that comes after GOAWAY was certainly not carried out, and the
 * peer is told so: every SDK sends it again to the next server. */
static void answer_in_the_stop(door_rig *rig)
{
    hf_buf frame;
    unsigned char head[HF_GRPC_HEAD_LEN];
    hf_pb_respond_workflow_task_completed_request answer = answer_to_a_task(rig);
    hf_buf_init(&frame, rig->client.memory, SIZE_MAX / 2);
    hf_pb_encode(&hf_pb_respond_workflow_task_completed_request_type, &answer, &frame);
    hf_grpc_head(head, false, (uint32_t)frame.len);
    char *bytes = hf_arena_zero(&rig->arena, sizeof head + frame.len, 1);
    memcpy(bytes, head, sizeof head);
    memcpy(bytes + sizeof head, frame.data, frame.len);

    h2_call *early = h2_begin_open(&rig->client, SERVICE "RespondWorkflowTaskCompleted", NULL, false);
    h2_flush(&rig->client);
    HF_CHECK(hf_sleep(hf_milliseconds(100)) == HF_OK); /* virtual: the head has arrived */
    stop(rig);
    HF_CHECK(hf_sleep(hf_milliseconds(100)) == HF_OK);
    h2_call *late = h2_begin_method(&rig->client, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, NULL, &answer);
    h2_flush(&rig->client); /* GOAWAY is not read yet */
    h2_wait(late);
    HF_CHECK_SAY(late->status == -1 && late->code == HF_H2_REFUSED_STREAM, "late: %d %u", late->status, late->code);
    h2_finish(early, bytes, sizeof head + frame.len);
    h2_wait(early);
    HF_CHECK_SAY(early->status == HF_GRPC_OK, "early: %d %s", early->status, early->message);
    h2_free(early);
    h2_free(late);
    hf_buf_deinit(&frame);
    while (h2_turn(&rig->client)) {
    }
}

static void answers_that_come_in_the_stop_are_taken_or_come_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= hf_test_seeds(20); seed++) {
        assert_true(run_rig(answer_in_the_stop, seed) < 2000000000);
    }
}

/* The end of the grace: what is not done by then may come again, and is not a failure. */
static void answer_for_too_long(door_rig *rig)
{
    hf_pb_respond_workflow_task_completed_request answer = answer_to_a_task(rig);
    h2_call *call = h2_begin_method(&rig->client, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, NULL, &answer);
    h2_flush(&rig->client);
    HF_CHECK(hf_sleep(hf_milliseconds(100)) == HF_OK); /* virtual: it has arrived */
    stop(rig);
    h2_wait(call);
    HF_CHECK_SAY(call->status == HF_GRPC_UNAVAILABLE, "%d %s", call->status, call->message);
    h2_free(call);
    while (h2_turn(&rig->client)) {
    }
}

static void an_answer_that_outlasts_the_stop_comes_again(void **state)
{
    (void)state;
    holds_answers = true;
    for (uint64_t seed = 1; seed <= hf_test_seeds(20); seed++) {
        int64_t took = run_rig(answer_for_too_long, seed);
        assert_true(took >= 10000000000 && took < 12000000000);
    }
    holds_answers = false;
}

static void watch_for_a_while(door_rig *rig)
{
    static const h2_header SHORT[] = {{"grpc-timeout", "90S"},
                                      {NULL, NULL}}; /* longer than a request may take to come */
    hf_instant before = hf_now(NULL);
    h2_call *watch = h2_begin(&rig->client, WATCH, SHORT, "\0\0\0\0\0", 5);
    h2_wait(watch);
    int64_t took = hf_now(NULL).ns - before.ns;
    HF_CHECK_SAY(watch->status == HF_GRPC_DEADLINE_EXCEEDED && watch->body.len == 7, "%d", watch->status);
    HF_CHECK_SAY(took >= 90000000000 && took < 91000000000, "after %lld ns", (long long)took);
    h2_free(watch);
}

static void a_watcher_has_a_deadline(void **state)
{
    (void)state;
    run_rig(watch_for_a_while, 1);
}

static void ask_for_health(door_rig *rig)
{
    static const struct {
        const char *frame;
        size_t len;
        int status;
    } CASES[] = {
        {"\0\0\0\0\0", 5, HF_GRPC_OK},
        {"\0\0\0\0\x31\x0a\x2ftemporal.api.workflowservice.v1.WorkflowService", 5 + 49, HF_GRPC_OK},
        {"\0\0\0\0\5\x0a\3who", 10, HF_GRPC_NOT_FOUND},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        h2_call *call = h2_begin(&rig->client, "/grpc.health.v1.Health/Check", NULL, CASES[i].frame, CASES[i].len);
        h2_wait(call);
        HF_CHECK_SAY(call->status == CASES[i].status, "case %zu: %d %s", i, call->status, call->message);
        h2_free(call);
    }
}

static void health_is_told(void **state)
{
    (void)state;
    run_rig(ask_for_health, 1);
}

/* ---- Reflection --------------------------------------------------------------------------------------------------------------- */

static void put_question(hf_buf *out, uint32_t field, const char *text)
{
    size_t len = strlen(text);
    char head[7] = {0, 0, 0, 0, (char)(len + 2), (char)(field << 3 | 2), (char)len};
    HF_CHECK(len < 120);
    hf_buf_put(out, head, sizeof head);
    hf_buf_put(out, text, len);
}

/* The next answer; its bytes are in the arena. */
static hf_pb_server_reflection_response next_answer(door_rig *rig, h2_call *call, size_t *at)
{
    hf_op op;
    hf_op_init(&op);
    hf_grpc_frame frame = {0};
    hf_pb_server_reflection_response response = {0};
    while (hf_grpc_take(&op, hf_str_of_len(call->body.data + *at, call->body.len - *at), 1 << 22, &frame) != HF_OK &&
           !call->is_closed && h2_turn(&rig->client)) {
    }
    HF_CHECK_SAY(frame.message.len > 0, "%d %s", call->status, call->message);
    *at += frame.message.len + HF_GRPC_HEAD_LEN;
    hf_str bytes = hf_arena_copy(&rig->arena, frame.message);
    HF_CHECK(hf_pb_decode(&op, &hf_pb_server_reflection_response_type, bytes, &rig->arena, &response) == HF_OK);
    return response;
}

static bool has_bytes(hf_str all, const char *part)
{
    return memmem(all.data, all.len, part, strlen(part)) != NULL;
}

/* Asks for everything that a tool needs before it can make a call: services, their files, and all imports of those. */
static void reflect(door_rig *rig)
{
    static const char *const PATHS[] = {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                                        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};
    for (size_t version = 0; version < HF_COUNT_OF(PATHS); version++) {
        hf_buf questions;
        hf_buf_init(&questions, hf_env_memory(rig->env), SIZE_MAX / 2);
        put_question(&questions, 7, "");
        put_question(&questions, 4, "temporal.api.workflowservice.v1.WorkflowService");
        put_question(&questions, 4, "temporal.api.workflowservice.v1.WorkflowService.StartWorkflowExecution");
        put_question(&questions, 4, "temporal.api.workflowservice.v1.GetWorkflowExecutionHistoryResponse");
        put_question(&questions, 4, "grpc.health.v1.HealthCheckResponse.ServingStatus");
        put_question(&questions, 3, "google/protobuf/timestamp.proto");
        put_question(&questions, 4, "temporal.api.testservice.v1.TestService"); /* not here */
        put_question(&questions, 3, "etc/passwd.proto");
        put_question(&questions, 6, "temporal.api.common.v1.Payload");
        h2_call *call = h2_begin(&rig->client, PATHS[version], NULL, questions.data, questions.len);
        size_t at = 0;
        hf_pb_server_reflection_response list = next_answer(rig, call, &at);
        HF_CHECK(list.message_response_case == 6 && list.list_services_response->service.count >= 5);
        static const char *const WORDS[] = {
            "SignalWorkflowExecution", "PollWorkflowTaskQueueResponse",
            ".temporal.api.history.v1.History", /* what is bytes to us is a message to others */
            "SERVICE_UNKNOWN", "nanos"};
        for (size_t i = 0; i < HF_COUNT_OF(WORDS); i++) {
            hf_pb_server_reflection_response response = next_answer(rig, call, &at);
            HF_CHECK_SAY(response.message_response_case == 4 &&
                             has_bytes(response.file_descriptor_response->file_descriptor_proto.items[0], WORDS[i]),
                         "answer %zu", i);
        }
        for (int i = 0; i < 3; i++) {
            hf_pb_server_reflection_response response = next_answer(rig, call, &at);
            HF_CHECK(response.message_response_case == 7 && response.error_response->error_code == HF_GRPC_NOT_FOUND);
        }
        h2_wait(call);
        HF_CHECK(call->status == HF_GRPC_OK && at == call->body.len);
        h2_free(call);
        hf_buf_deinit(&questions);
    }
}

static void the_server_describes_itself(void **state)
{
    (void)state;
    run_rig(reflect, 1);
}

/* Every message and service can be found, and everything that a file imports can be, too. */
static void every_import_can_be_found(void **state)
{
    (void)state;
    size_t count = 0;
    size_t files = 0;
    const hf_route *routes = hf_routes(&count);
    for (size_t i = 0; i < count + hf_proto_file_count; i++) {
        hf_buf file;
        hf_buf_init(&file, hf_env_memory(hf_env_posix()), SIZE_MAX / 2);
        if (i < count) {
            assert_true(hf_reflect_symbol(hf_str_of(routes[i].service), true, &file));
        } else {
            assert_true(hf_reflect_file(hf_str_of(hf_proto_files[i - count].name), true, &file));
        }
        hf_str rest = hf_str_of_len(file.data, file.len);
        hf_pb_raw field;
        while (hf_pb_next(&rest, &field)) {
            if (field.number == 3) { /* dependency */
                hf_buf other;
                hf_buf_init(&other, hf_env_memory(hf_env_posix()), SIZE_MAX / 2);
                assert_true(hf_reflect_file(field.bytes, true, &other));
                hf_buf_deinit(&other);
                files++;
            }
        }
        assert_non_null(rest.data); /* it was read to its end */
        hf_buf_deinit(&file);
    }
    print_message("%zu imports\n", files);
    assert_true(files > 50);
}

/* Questions that come faster than their answers are taken. */
static void ask_without_listening(door_rig *rig)
{
    enum { QUESTIONS = 2000 };
    hf_buf questions;
    hf_buf_init(&questions, hf_env_memory(rig->env), SIZE_MAX / 2);
    for (int i = 0; i < QUESTIONS; i++) {
        put_question(&questions, 4, "temporal.api.workflowservice.v1.StartWorkflowExecutionRequest");
    }
    h2_call *call = h2_begin(&rig->client, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", NULL,
                             questions.data, questions.len);
    h2_wait(call);
    HF_CHECK_SAY(call->status == HF_GRPC_RESOURCE_EXHAUSTED, "%d %s", call->status, call->message);
    h2_free(call);
    hf_buf_deinit(&questions);
    ask_for_the_system(rig);
}

static void answers_of_reflection_are_bounded(void **state)
{
    (void)state;
    run_rig(ask_without_listening, 1);
}

/* ---- Rates -------------------------------------------------------------------------------------------------------------------- */

/* google.rpc.Status, of which the last bytes are ResourceExhaustedFailure{cause: RPS_LIMIT, scope: NAMESPACE}. */
static void check_rate_details(door_rig *rig, h2_call *call)
{
    static const char NAME[] = "temporal.api.errordetails.v1.ResourceExhaustedFailure";
    static const char FAILURE[] = "\x08\x01\x10\x01";
    hf_buf bytes;
    hf_buf_init(&bytes, hf_env_memory(rig->env), SIZE_MAX / 2);
    HF_CHECK(hf_base64_parse(hf_str_of_len(call->details.data, call->details.len), &bytes));
    HF_CHECK(memmem(bytes.data, bytes.len, NAME, sizeof NAME - 1) != NULL);
    HF_CHECK(bytes.len > 4 && memcmp(bytes.data + bytes.len - 4, FAILURE, 4) == 0);
    hf_buf_deinit(&bytes);
}

static void exceed(door_rig *rig)
{
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("nobody")};
    static const char *const NAMES[] = {"default", "slow", "free"};
    static const int FINE[] = {10, 3, 50};
    for (size_t i = 0; i < HF_COUNT_OF(NAMES); i++) {
        hf_pb_describe_workflow_execution_request request = {.namespace = hf_str_of(NAMES[i]), .execution = &execution};
        int refused = 0;
        for (int k = 0; k < 50; k++) {
            h2_call *call = h2_begin_method(&rig->client, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, NULL, &request);
            h2_wait(call);
            if (call->status == HF_GRPC_RESOURCE_EXHAUSTED) {
                refused++;
                HF_CHECK(strcmp(call->message, "namespace rate limit exceeded") == 0);
                check_rate_details(rig, call);
            } else {
                HF_CHECK(call->status == HF_GRPC_NOT_FOUND);
            }
            h2_free(call);
        }
        HF_CHECK_SAY(50 - refused >= FINE[i] && 50 - refused <= FINE[i] + 1, "%s: %d of 50", NAMES[i], 50 - refused);
    }
    ask_for_the_system(rig); /* names no namespace */
    HF_CHECK(hf_sleep(hf_milliseconds(1000)) == HF_OK);
    hf_pb_describe_workflow_execution_request request = {.namespace = HF_STR("slow"), .execution = &execution};
    HF_CHECK(h2_ask(&rig->client, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, &rig->arena, NULL) ==
             HF_GRPC_NOT_FOUND); /* a second later it may again */
}

static void server_R1_a_namespace_has_a_rate(void **state)
{
    (void)state;
    static const hf_rate RATES[] = {{NULL, 10}, {"slow", 3}, {"free", 0}};
    rates = RATES;
    rate_count = HF_COUNT_OF(RATES);
    run_rig(exceed, 1);
    rates = NULL;
    rate_count = 0;
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_call_is_answered),
    cmocka_unit_test(a_poll_gets_a_task),
    cmocka_unit_test(a_poll_is_answered_before_its_caller_gives_up),
    cmocka_unit_test(a_call_whose_deadline_has_passed_does_nothing),
    cmocka_unit_test(what_is_wrong_is_refused_in_known_words),
    cmocka_unit_test(failures_carry_details),
    cmocka_unit_test(a_sentence_is_not_cut_inside_of_a_character),
    cmocka_unit_test(requests_may_be_compressed),
    cmocka_unit_test(activities_are_changed_by_the_names_of_newer_clients),
    cmocka_unit_test(server_D3_a_task_whose_poll_is_gone_goes_to_another),
    cmocka_unit_test(the_stop_answers_polls_and_tells_watchers),
    cmocka_unit_test(the_stop_does_not_wait_for_polls_that_come_in_it),
    cmocka_unit_test(the_stop_does_not_wait_for_what_workers_do),
    cmocka_unit_test(answers_that_come_in_the_stop_are_taken_or_come_again),
    cmocka_unit_test(an_answer_that_outlasts_the_stop_comes_again),
    cmocka_unit_test(a_watcher_has_a_deadline),
    cmocka_unit_test(health_is_told),
    cmocka_unit_test(the_server_describes_itself),
    cmocka_unit_test(every_import_can_be_found),
    cmocka_unit_test(answers_of_reflection_are_bounded),
    cmocka_unit_test(server_R1_a_namespace_has_a_rate),
};

int main(int argc, char **argv)
{
    return hf_test_main("door", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
