/* Limits: what is too long, too many or too much is refused with a sentence. */
#include "fixture.h"

#include "history/limits.h"
#include "support/engine_words.h"

#include <stdio.h>

static hf_status start_with(size_t id_len, size_t type_len, size_t queue_len, size_t request_len, size_t ns_len)
{
    static char text[2 * HF_ID_LEN_MAX];
    memset(text, 'x', sizeof text);
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_start_workflow_execution_request *request = HF_RIG_REQUEST(slot, start_workflow_execution);
    request->namespace = hf_str_of_len(text, ns_len);
    request->workflow_id = hf_str_of_len(text, id_len);
    request->workflow_type = HF_ARENA_NEW(&slot->request, hf_pb_workflow_type);
    request->workflow_type->name = hf_str_of_len(text, type_len);
    request->task_queue = HF_ARENA_NEW(&slot->request, hf_pb_task_queue);
    request->task_queue->name = hf_str_of_len(text, queue_len);
    request->request_id = hf_str_of_len(text, request_len);
    request->workflow_id_conflict_policy = HF_WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING;
    hf_rig_send(&rig, slot, HF_METHOD_START_WORKFLOW_EXECUTION, request);
    assert_true(slot->done);
    assert_true(slot->call.status == HF_OK || slot->call.message[0] != '\0');
    return slot->call.status;
}

static void ids_and_names_have_a_longest(void **state)
{
    (void)state;
    enum { MAX = HF_ID_LEN_MAX };
    assert_int_equal(start_with(MAX, MAX, MAX, MAX, MAX), HF_OK);
    assert_int_equal(start_with(MAX + 1, 1, 1, 0, 1), HF_ERR_INVALID);
    assert_int_equal(start_with(1, MAX + 1, 1, 0, 1), HF_ERR_INVALID);
    assert_int_equal(start_with(1, 1, MAX + 1, 0, 1), HF_ERR_INVALID);
    assert_int_equal(start_with(1, 1, 1, MAX + 1, 1), HF_ERR_INVALID);
    assert_int_equal(start_with(1, 1, 1, 0, MAX + 1), HF_ERR_INVALID);
    assert_int_equal(start_with(0, 1, 1, 0, 1), HF_ERR_INVALID);
    assert_int_equal(start_with(1, 0, 1, 0, 1), HF_ERR_INVALID);
    assert_int_equal(start_with(1, 1, 0, 0, 1), HF_ERR_INVALID);
    hf_rig_do(&rig, "crash"); /* the longest ones also come back */
    assert_int_equal(start_with(MAX, MAX, MAX, MAX, MAX), HF_OK);
}

static void inputs_have_a_longest(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf input=2097152; signal wf s input=2097152; signal wf s input=2097153 => too_big;"
                    "start other input=2097153 => too_big; signal other s => not_found");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_LIMIT_HIT), 2);
}

static hf_status signal_with(hf_pb_payload payload)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_signal_workflow_execution_request *request = HF_RIG_REQUEST(slot, signal_workflow_execution);
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("wf")};
    hf_pb_payloads input = {.payloads = {&payload, 1}};
    request->namespace = HF_STR(HF_RIG_NS);
    request->workflow_execution = &execution;
    request->signal_name = HF_STR("s");
    request->input = &input;
    hf_rig_send(&rig, slot, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, request);
    assert_true(slot->done);
    return slot->call.status;
}

static void long_metadata_counts_like_data(void **state)
{
    (void)state;
    static char bytes[HF_PAYLOAD_LEN_MAX + 1024];
    hf_pb_payload_metadata_entry entry = {.key = HF_STR("note"),
                                          .value = {bytes, sizeof bytes - 4 - HF_ELEMENT_LEN_MIN}};
    hf_rig_do(&rig, "start wf");
    assert_int_equal(signal_with((hf_pb_payload){.metadata = {&entry, 1}}), HF_OK);
    assert_int_equal(signal_with((hf_pb_payload){.metadata = {&entry, 1}, .data = HF_STR("x")}), HF_ERR_TOO_BIG);
}

static void signals_that_wait_count_like_others(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.limits = {.signals = 3}});
    hf_rig_do(&rig,
              "start wf; signal wf s request=r1; poll; signal wf s request=r2; cancel wf; signal wf s request=r3;"
              "signal wf s request=r3; signal wf s request=r4 => limit; complete; signal wf s request=r4 => limit;"
              "poll; complete canceled");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_LIMIT_HIT), 2);
}

static void open_with_limit(size_t payload_len)
{
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.limits = {.payload_len = payload_len}});
}

#define ENDED FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n7 ActivityTaskFailed scheduled=5 started=6 "
#define NOT_RETRIED " NonRetryableFailure\n8 WorkflowTaskScheduled attempt=1\n"
#define LONG_DETAILS                                          \
    "details=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void an_activity_that_says_too_much_fails(void **state)
{
    (void)state;
    static const struct {
        const char *script, *failure;
    } CASES[] = {
        {"acomplete input=101", "failure=TooBig"},
        {"afail input=101", "failure=TooBig because failure=Oops"},
        {"afail " LONG_DETAILS, "failure=TooBig"},
        {"heartbeat asked " LONG_DETAILS "; heartbeat => not_found", "failure=TooBig"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char history[1000];
        print_message("%s\n", CASES[i].script);
        open_with_limit(100);
        hf_rig_do(&rig, "start wf; poll; complete activity a1 input=100; apoll");
        hf_rig_do(&rig, CASES[i].script);
        (void)snprintf(history, sizeof history, ENDED "%s" NOT_RETRIED, CASES[i].failure);
        hf_rig_history(&rig, "wf", history);
        assert_int_equal(hf_rig_probe(&rig, HF_PROBE_LIMIT_HIT), 1);
        hf_rig_do(&rig, "crash; acomplete => not_found; poll; complete done");
    }
}

/* The sentence of the ActivityTaskFailed event, in `text`. */
static void failure_of_activity(char *text, size_t capacity)
{
    hf_arena arena;
    hf_op op;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_rig_heap);
    hf_pb_history history;
    assert_int_equal(hf_pb_decode(&op, &hf_pb_history_type, hf_rig_history_bytes(&rig, "wf"), &arena, &history), HF_OK);
    text[0] = '\0';
    for (size_t i = 0; i < history.events.count; i++) {
        const hf_pb_history_event *event = &history.events.items[i];
        if (event->event_type == HF_EVENT_TYPE_ACTIVITY_TASK_FAILED) {
            hf_str message = event->activity_task_failed_event_attributes->failure->message;
            (void)snprintf(text, capacity, "%.*s", HF_STR_ARGS(message));
        }
    }
    hf_arena_deinit(&arena);
}

static void a_failure_of_what_is_too_long_says_how_long_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *script, *message;
    } CASES[] = {
        {"acomplete input=101", "the result of the activity is too long: 101 bytes, and at most 100 are taken"},
        {"heartbeat asked " LONG_DETAILS, "the details of the heartbeat are too long: 102 bytes, and at most 100 are "
                                          "taken"},
        {"signal wf s; poll; complete unactivity 5; acancel input=103",
         "the details of the canceled activity are too long: 103 bytes, and at most 100 are taken"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char text[200];
        open_with_limit(100);
        hf_rig_do(&rig, "start wf; poll; complete activity a1; apoll");
        hf_rig_do(&rig, CASES[i].script);
        failure_of_activity(text, sizeof text);
        assert_string_equal(text, CASES[i].message);
    }
}

/* What is kept of an attempt that is tried again is shorter than what a history takes. */
static void a_long_failure_of_an_attempt_is_cut_and_not_forgotten(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 retries=3; apoll; afail input=3500; time 1s; apoll;"
                    "afail input=5000; crash; time 2s; apoll; acomplete");
    hf_rig_history(&rig, "wf",
                   FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=3 failure=TooBig "
                                  "because failure=Oops\n7 ActivityTaskCompleted scheduled=5 started=6\n"
                                  "8 WorkflowTaskScheduled attempt=1\n");
}

static void a_canceled_activity_that_says_too_much_fails(void **state)
{
    (void)state;
    open_with_limit(100);
    hf_rig_do(&rig, "start wf; poll; complete activity a1; apoll; signal wf s; poll; complete unactivity 5;"
                    "heartbeat asked; acancel input=101");
    hf_rig_history(&rig, "wf",
                   FIRST_ACTIVITY "6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                                  "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                                  "10 ActivityTaskCancelRequested scheduled=5\n"
                                  "11 ActivityTaskStarted scheduled=5 attempt=1\n"
                                  "12 ActivityTaskFailed scheduled=5 started=11 "
                                  "failure=TooBig CancelRequested\n"
                                  "13 WorkflowTaskScheduled attempt=1\n");
}

static void what_an_activity_says_may_be_as_long_as_that(void **state)
{
    (void)state;
    open_with_limit(100);
    hf_rig_do(&rig,
              "start wf; poll; complete activity a1 input=100; apoll; heartbeat details=much; acomplete input=100;"
              "poll; complete marker m input=100, done input=100");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_LIMIT_HIT), 0);
}

static void a_command_that_says_too_much_fails_its_task(void **state)
{
    (void)state;
    static const struct {
        const char *command, *cause, *why;
    } CASES[] = {
        {"activity a input=101", "BadScheduleActivityAttributes", "ScheduleActivityTaskCommandAttributes.Input"},
        {"marker m input=101", "BadRecordMarkerAttributes", "RecordMarkerCommandAttributes.Details"},
        {"xsignal other s input=101", "BadSignalWorkflowExecutionAttributes",
         "SignalExternalWorkflowExecutionCommandAttributes.Input"},
        {"done input=101", "BadCompleteWorkflowExecutionAttributes",
         "CompleteWorkflowExecutionCommandAttributes.Result"},
        {"failed input=101", "BadFailWorkflowExecutionAttributes", "FailWorkflowExecutionCommandAttributes.Failure"},
        {"canceled input=101", "BadCancelWorkflowExecutionAttributes",
         "CancelWorkflowExecutionCommandAttributes.Details"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char text[400];
        open_with_limit(100);
        (void)snprintf(text, sizeof text, "start wf; poll; complete timer t 1s, %s => invalid", CASES[i].command);
        hf_rig_do(&rig, text);
        (void)snprintf(text, sizeof text, "%s exceeds size limit. (", CASES[i].why);
        const char *said = hf_rig_slot(&rig, NULL)->call.message;
        assert_memory_equal(said, text, strlen(text));
        assert_non_null(strstr(said, " bytes, and at most 100 are taken)"));
        (void)snprintf(text, sizeof text,
                       START "3 WorkflowTaskStarted scheduled=2\n4 WorkflowTaskFailed scheduled=2 started=3 %s\n",
                       CASES[i].cause);
        hf_rig_history(&rig, "wf", text);
        hf_rig_do(&rig, "poll; complete done");
    }
}

static void the_failure_of_a_workflow_task_is_cut(void **state)
{
    (void)state;
    open_with_limit(100);
    hf_rig_do(&rig, "start wf; poll; fail input=10000; poll; complete done");
    assert_true(hf_rig_history_bytes(&rig, "wf").len < 2000);
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_LIMIT_HIT), 1);
}

/* ---- Who, why, and what goes along ----------------------------------------------------------------------------------- */

static hf_str text_of(size_t len)
{
    static char text[2 * HF_ID_LEN_MAX];
    memset(text, 'x', sizeof text);
    return hf_str_of_len(text, len);
}

static hf_status checked(const hf_rig_call *slot)
{
    assert_true(slot->done);
    assert_true(slot->call.status == HF_OK || slot->call.message[0] != '\0');
    return slot->call.status;
}

/* <call>_by: sends the request with an identity of this length. */
#define SENDER(stem, method)                                             \
    static hf_status stem##_by(size_t len, hf_pb_##stem##_request given) \
    {                                                                    \
        hf_rig_call *slot = hf_rig_slot(&rig, NULL);                     \
        hf_pb_##stem##_request *request = HF_RIG_REQUEST(slot, stem);    \
        *request = given;                                                \
        request->namespace = HF_STR(HF_RIG_NS);                          \
        request->identity = text_of(len);                                \
        hf_rig_send(&rig, slot, method, request);                        \
        return checked(slot);                                            \
    }
SENDER(start_workflow_execution, HF_METHOD_START_WORKFLOW_EXECUTION)
SENDER(signal_workflow_execution, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION)
SENDER(request_cancel_workflow_execution, HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION)
SENDER(terminate_workflow_execution, HF_METHOD_TERMINATE_WORKFLOW_EXECUTION)
SENDER(respond_workflow_task_completed, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED)
SENDER(respond_workflow_task_failed, HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED)
SENDER(respond_activity_task_completed, HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED)
SENDER(respond_activity_task_failed, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED)
SENDER(respond_activity_task_canceled, HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED)
SENDER(record_activity_task_heartbeat, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT)

/* Too long is refused, as long as it may be is taken. */
#define HAS_A_LONGEST(stem, ...)                                                                               \
    do {                                                                                                       \
        assert_int_equal(stem##_by(HF_ID_LEN_MAX + 1, (hf_pb_##stem##_request){__VA_ARGS__}), HF_ERR_INVALID); \
        assert_string_equal(hf_rig_slot(&rig, NULL)->call.message,                                             \
                            "Identity is longer than 1000 bytes, or not UTF-8.");                              \
        assert_int_equal(stem##_by(HF_ID_LEN_MAX, (hf_pb_##stem##_request){__VA_ARGS__}), HF_OK);              \
    } while (0)

static hf_pb_workflow_type some_type = {.name = HF_STR_INIT("T")};
static hf_pb_task_queue some_queue = {.name = HF_STR_INIT(HF_RIG_QUEUE)};
static hf_pb_workflow_execution wf = {.workflow_id = HF_STR_INIT("wf")};

static hf_str task(void)
{
    return hf_rig_task(&rig, "w")->task_token;
}

static hf_str activity(void)
{
    return hf_rig_activity(&rig, "a")->task_token;
}

static hf_status poll_by(bool workflow, size_t len)
{
    hf_rig_call *slot = hf_rig_slot(&rig, workflow ? "w" : "a");
    if (workflow) {
        hf_pb_poll_workflow_task_queue_request *request = HF_RIG_REQUEST(slot, poll_workflow_task_queue);
        *request = (hf_pb_poll_workflow_task_queue_request){
            .namespace = HF_STR(HF_RIG_NS), .task_queue = &some_queue, .identity = text_of(len)};
        hf_rig_send(&rig, slot, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, request);
    } else {
        hf_pb_poll_activity_task_queue_request *request = HF_RIG_REQUEST(slot, poll_activity_task_queue);
        *request = (hf_pb_poll_activity_task_queue_request){
            .namespace = HF_STR(HF_RIG_NS), .task_queue = &some_queue, .identity = text_of(len)};
        hf_rig_send(&rig, slot, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, request);
    }
    return checked(slot);
}

static void identities_have_a_longest(void **state)
{
    (void)state;
    HAS_A_LONGEST(start_workflow_execution, .workflow_id = wf.workflow_id, .workflow_type = &some_type,
                  .task_queue = &some_queue);
    assert_int_equal(poll_by(true, HF_ID_LEN_MAX + 1), HF_ERR_INVALID);
    assert_int_equal(poll_by(false, HF_ID_LEN_MAX + 1), HF_ERR_INVALID);
    assert_int_equal(poll_by(true, HF_ID_LEN_MAX), HF_OK);
    HAS_A_LONGEST(respond_workflow_task_failed, .task_token = task());
    hf_rig_do(&rig, "poll; complete activity a each=1h, activity b each=1h retries=1, activity c each=1h; apoll");
    HAS_A_LONGEST(record_activity_task_heartbeat, .task_token = activity());
    HAS_A_LONGEST(respond_activity_task_completed, .task_token = activity());
    hf_rig_do(&rig, "apoll");
    HAS_A_LONGEST(respond_activity_task_failed, .task_token = activity());
    hf_rig_do(&rig, "apoll; poll; complete unactivity 10");
    HAS_A_LONGEST(respond_activity_task_canceled, .task_token = activity());
    HAS_A_LONGEST(signal_workflow_execution, .workflow_execution = &wf, .signal_name = HF_STR("s"));
    HAS_A_LONGEST(request_cancel_workflow_execution, .workflow_execution = &wf);
    hf_rig_do(&rig, "poll");
    HAS_A_LONGEST(respond_workflow_task_completed, .task_token = task());
    HAS_A_LONGEST(terminate_workflow_execution, .workflow_execution = &wf);
    hf_rig_do(&rig, "crash");
}

/* A door that took them would store what no client in another language can read. What was stored earlier can still be named. */
static void names_are_utf8(void **state)
{
    static const char *const BAD[] = {"\xff", "caf\xe9", "\xc0\x80", "\xed\xa0\x80", "ends in the middle \xe2\x82"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(BAD); i++) {
        hf_pb_workflow_type bad_type = {.name = hf_str_of(BAD[i])};
        hf_pb_task_queue bad_queue = {.name = hf_str_of(BAD[i])};
        hf_pb_workflow_execution bad_wf = {.workflow_id = hf_str_of(BAD[i])};
        hf_pb_start_workflow_execution_request start = {
            .workflow_id = hf_str_of(BAD[i]), .workflow_type = &some_type, .task_queue = &some_queue};
        assert_int_equal(start_workflow_execution_by(1, start), HF_ERR_INVALID);
        assert_string_equal(hf_rig_slot(&rig, NULL)->call.message,
                            "WorkflowId is not set on request, longer than 1000 bytes, or not UTF-8.");
        start = (hf_pb_start_workflow_execution_request){
            .workflow_id = HF_STR("w"), .workflow_type = &bad_type, .task_queue = &some_queue};
        assert_int_equal(start_workflow_execution_by(1, start), HF_ERR_INVALID);
        start = (hf_pb_start_workflow_execution_request){
            .workflow_id = HF_STR("w"), .workflow_type = &some_type, .task_queue = &bad_queue};
        assert_int_equal(start_workflow_execution_by(1, start), HF_ERR_INVALID);
        start = (hf_pb_start_workflow_execution_request){.workflow_id = HF_STR("w"),
                                                         .workflow_type = &some_type,
                                                         .task_queue = &some_queue,
                                                         .request_id = hf_str_of(BAD[i])};
        assert_int_equal(start_workflow_execution_by(1, start), HF_ERR_INVALID);
        hf_rig_do(&rig, i == 0 ? "start wf" : "crash");
        assert_int_equal(signal_workflow_execution_by(
                             1, (hf_pb_signal_workflow_execution_request){.workflow_execution = &wf,
                                                                          .signal_name = hf_str_of(BAD[i])}),
                         HF_ERR_INVALID);
        assert_int_equal(
            signal_workflow_execution_by(1, (hf_pb_signal_workflow_execution_request){.workflow_execution = &bad_wf,
                                                                                      .signal_name = HF_STR("s")}),
            HF_ERR_NOT_FOUND);
        assert_int_equal(terminate_workflow_execution_by(
                             1, (hf_pb_terminate_workflow_execution_request){.workflow_execution = &wf,
                                                                             .reason = hf_str_of(BAD[i])}),
                         HF_ERR_INVALID);
    }
    hf_pb_workflow_type good = {.name = HF_STR("Gr\xc3\xbc\xc3\x9f"
                                               "e \xe2\x82\xac \xf0\x9f\x9a\x80, and quite some more of it")};
    hf_pb_start_workflow_execution_request start = {
        .workflow_id = good.name, .workflow_type = &good, .task_queue = &some_queue};
    assert_int_equal(start_workflow_execution_by(1, start), HF_OK);
}

static void reasons_have_a_longest(void **state)
{
    (void)state;
    enum { MAX = HF_ID_LEN_MAX };
    hf_rig_do(&rig, "start wf");
    assert_int_equal(request_cancel_workflow_execution_by(
                         1, (hf_pb_request_cancel_workflow_execution_request){.workflow_execution = &wf,
                                                                              .reason = text_of(MAX + 1)}),
                     HF_ERR_INVALID);
    assert_string_equal(hf_rig_slot(&rig, NULL)->call.message, "Reason is longer than 1000 bytes, or not UTF-8.");
    assert_int_equal(
        request_cancel_workflow_execution_by(
            1, (hf_pb_request_cancel_workflow_execution_request){.workflow_execution = &wf, .reason = text_of(MAX)}),
        HF_OK);
    assert_int_equal(
        terminate_workflow_execution_by(
            1, (hf_pb_terminate_workflow_execution_request){.workflow_execution = &wf, .reason = text_of(MAX + 1)}),
        HF_ERR_INVALID);
    assert_int_equal(
        terminate_workflow_execution_by(
            1, (hf_pb_terminate_workflow_execution_request){.workflow_execution = &wf, .reason = text_of(MAX)}),
        HF_OK);
}

/* One payload under the key "k", of so many bytes. */
static hf_pb_payload some_payload;
static hf_pb_header_fields_entry header_field = {.key = HF_STR_INIT("k"), .value = &some_payload};
static hf_pb_header some_header = {.fields = {&header_field, 1}};

static void a_start_takes_so_many_search_attributes(void **state)
{
    (void)state;
    open_with_limit(100);
    hf_pb_search_attributes_indexed_fields_entry field = {.key = HF_STR("k"), .value = &some_payload};
    hf_pb_search_attributes attributes = {.indexed_fields = {&field, 1}};
    hf_pb_start_workflow_execution_request request = {.workflow_id = wf.workflow_id,
                                                      .workflow_type = &some_type,
                                                      .task_queue = &some_queue,
                                                      .search_attributes = &attributes};
    some_payload.data = text_of(101);
    assert_int_equal(start_workflow_execution_by(1, request), HF_ERR_TOO_BIG);
    assert_non_null(strstr(hf_rig_slot(&rig, NULL)->call.message, "search attributes"));
    some_payload.data = text_of(80);
    assert_int_equal(start_workflow_execution_by(1, request), HF_OK);
    request.workflow_id = HF_STR("other");
    request.search_attributes = NULL;
    hf_pb_priority priority = {.fairness_key = text_of(65)};
    request.priority = &priority;
    assert_int_equal(start_workflow_execution_by(1, request), HF_ERR_INVALID);
    priority.fairness_key = text_of(64);
    assert_int_equal(start_workflow_execution_by(1, request), HF_OK);
}

static void the_answer_to_a_task_says_so_much_of_its_worker(void **state)
{
    (void)state;
    open_with_limit(100);
    hf_rig_do(&rig, "start wf; poll");
    hf_pb_worker_version_stamp stamp = {.build_id = text_of(101)};
    hf_pb_workflow_task_completed_metadata metadata = {.sdk_name = text_of(101)};
    hf_pb_respond_workflow_task_completed_request request = {.task_token = task(), .worker_version_stamp = &stamp};
    assert_int_equal(respond_workflow_task_completed_by(1, request), HF_ERR_TOO_BIG);
    request.worker_version_stamp = NULL;
    request.sdk_metadata = &metadata;
    assert_int_equal(respond_workflow_task_completed_by(1, request), HF_ERR_TOO_BIG);
    metadata.sdk_name = text_of(90);
    request.binary_checksum = text_of(HF_ID_LEN_MAX + 1);
    assert_int_equal(respond_workflow_task_completed_by(1, request), HF_ERR_INVALID);
    request.binary_checksum = text_of(HF_ID_LEN_MAX);
    assert_int_equal(respond_workflow_task_completed_by(1, request), HF_OK);
}

/* The command alone: refused with this sentence while `len` is too much, and taken with less. */
static void command_has_a_longest(hf_pb_command *command, hf_str *text, size_t len, const char *sentence)
{
    print_message("%s\n", sentence);
    open_with_limit(100);
    hf_rig_do(&rig, "start wf; poll");
    hf_pb_respond_workflow_task_completed_request request = {.commands = {command, 1}, .task_token = task()};
    *text = text_of(len);
    assert_int_equal(respond_workflow_task_completed_by(1, request), HF_ERR_INVALID);
    assert_non_null(strstr(hf_rig_slot(&rig, NULL)->call.message, sentence));
    hf_rig_do(&rig, "poll");
    request.task_token = task();
    *text = text_of(len > HF_ID_LEN_MAX ? HF_ID_LEN_MAX : 80);
    assert_int_equal(respond_workflow_task_completed_by(1, request), HF_OK);
    *text = text_of(0);
    hf_rig_do(&rig, "crash");
}

static void what_goes_along_with_a_command_has_a_longest(void **state)
{
    (void)state;
    enum { MAX = HF_ID_LEN_MAX };
    hf_str never = {0};
    hf_pb_activity_type act = {.name = HF_STR("act")};
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    hf_pb_retry_policy policy = {.non_retryable_error_types = {&never, 1}};
    hf_pb_schedule_activity_task_command_attributes schedule = {.activity_id = HF_STR("a"),
                                                                .activity_type = &act,
                                                                .task_queue = &queue,
                                                                .header = &some_header,
                                                                .retry_policy = &policy,
                                                                .start_to_close_timeout =
                                                                    hf_pb_duration_of(hf_seconds(10))};
    hf_pb_command activity_command = {.command_type = HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
                                      .attributes_case = HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES,
                                      .schedule_activity_task_command_attributes = &schedule};
    some_payload.data = text_of(0);
    command_has_a_longest(&activity_command, &some_payload.data, 101, "Attributes.Header exceeds size limit.");
    command_has_a_longest(&activity_command, &never, 101, "Attributes.RetryPolicy or Priority exceeds size limit.");

    hf_pb_record_marker_command_attributes marker = {.marker_name = HF_STR("m"), .header = &some_header};
    hf_pb_command marker_command = {.command_type = HF_COMMAND_TYPE_RECORD_MARKER,
                                    .attributes_case = HF_PB_COMMAND_RECORD_MARKER_COMMAND_ATTRIBUTES,
                                    .record_marker_command_attributes = &marker};
    command_has_a_longest(&marker_command, &some_payload.data, 101, "Attributes.Header exceeds size limit.");
    command_has_a_longest(&marker_command, &marker.marker_name, MAX + 1, "too long");

    hf_pb_workflow_execution other = {.workflow_id = HF_STR("other")};
    hf_pb_signal_external_workflow_execution_command_attributes signal = {
        .execution = &other, .signal_name = HF_STR("s"), .header = &some_header};
    hf_pb_command signal_command = {.command_type = HF_COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION,
                                    .attributes_case =
                                        HF_PB_COMMAND_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
                                    .signal_external_workflow_execution_command_attributes = &signal};
    command_has_a_longest(&signal_command, &some_payload.data, 101, "Attributes.Header exceeds size limit.");
    command_has_a_longest(&signal_command, &signal.control, MAX + 1, "too long");

    hf_pb_request_cancel_external_workflow_execution_command_attributes cancel = {.workflow_id = HF_STR("other")};
    hf_pb_command cancel_command = {.command_type = HF_COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION,
                                    .attributes_case =
                                        HF_PB_COMMAND_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
                                    .request_cancel_external_workflow_execution_command_attributes = &cancel};
    command_has_a_longest(&cancel_command, &cancel.reason, MAX + 1, "too long");
    command_has_a_longest(&cancel_command, &cancel.control, MAX + 1, "too long");
}

/* ---- How many -------------------------------------------------------------------------------------------------------- */

/* `count` commands of one kind, ids "<prefix>0", "<prefix>1", ... */
static hf_status complete_with(int32_t type, size_t count, const char *prefix)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_str token = hf_rig_task(&rig, "w")->task_token;
    hf_pb_respond_workflow_task_completed_request *request = HF_RIG_REQUEST(slot, respond_workflow_task_completed);
    hf_arena *arena = &slot->request;
    request->namespace = HF_STR(HF_RIG_NS);
    request->task_token = token;
    request->force_create_new_workflow_task = true;
    request->commands.items = HF_ARENA_ARRAY(arena, hf_pb_command, count);
    request->commands.count = count;
    for (size_t i = 0; i < count; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "%s%zu", prefix, i);
        hf_pb_command *command = &request->commands.items[i];
        command->command_type = type;
        hf_str copy = hf_arena_copy(arena, hf_str_of(id));
        if (type == HF_COMMAND_TYPE_START_TIMER) {
            command->attributes_case = HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES;
            command->start_timer_command_attributes = HF_ARENA_NEW(arena, hf_pb_start_timer_command_attributes);
            command->start_timer_command_attributes->timer_id = copy;
            command->start_timer_command_attributes->start_to_fire_timeout = hf_pb_duration_of(hf_hours(1));
        } else if (type == HF_COMMAND_TYPE_RECORD_MARKER) {
            command->attributes_case = HF_PB_COMMAND_RECORD_MARKER_COMMAND_ATTRIBUTES;
            command->record_marker_command_attributes = HF_ARENA_NEW(arena, hf_pb_record_marker_command_attributes);
            command->record_marker_command_attributes->marker_name = copy;
        } else {
            command->attributes_case = HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES;
            hf_pb_schedule_activity_task_command_attributes *attrs =
                HF_ARENA_NEW(arena, hf_pb_schedule_activity_task_command_attributes);
            command->schedule_activity_task_command_attributes = attrs;
            attrs->activity_id = copy;
            attrs->activity_type = HF_ARENA_NEW(arena, hf_pb_activity_type);
            attrs->activity_type->name = HF_STR("act");
            attrs->task_queue = hf_words_queue(arena, HF_STR("q"));
            attrs->start_to_close_timeout = hf_pb_duration_of(hf_seconds(10));
        }
    }
    hf_rig_send(&rig, slot, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, request);
    return slot->call.status;
}

static void a_run_may_have_so_many_activities_pending(void **state)
{
    (void)state;
    static const struct {
        int32_t type;
        const char *cause;
    } CASES[] = {
        {HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK, "PendingActivitiesLimitExceeded"},
    };
    rig.no_check = true; /* slow with so many; it is done in the end */
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_rig_do(&rig, "start wf conflict=3; poll");
        assert_int_equal(complete_with(CASES[i].type, HF_PENDING_MAX, "a"), HF_OK);
        hf_rig_do(&rig, "poll");
        assert_int_equal(complete_with(CASES[i].type, 1, "b"), HF_ERR_INVALID);
        assert_non_null(strstr(hf_rig_slot(&rig, NULL)->call.message, "too many"));
        hf_buf history;
        hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
        hf_rig_text(&rig, "wf", &history);
        assert_non_null(strstr(hf_buf_text(&history), CASES[i].cause));
        hf_buf_deinit(&history);
    }
    rig.no_check = false;
    assert_true(hf_rig_settle(&rig));
    hf_rig_do(&rig, "crash");
}

static void so_many_events_are_buffered_for_a_started_task(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll");
    for (int i = 0; i < HF_BUFFERED_COUNT_MAX; i++) {
        hf_rig_do(&rig, "signal wf s");
    }
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_BUFFER_OVER), 0);
    hf_rig_do(&rig,
              "signal wf s; complete => not_found; poll; complete"); /* the next one ends the task, and is there */
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_BUFFER_OVER), 1);
    assert_int_equal(hf_rig_task(&rig, "w")->attempt, 2);
}

static void so_many_bytes_are_buffered_for_a_started_task(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; signal wf s input=1000000; signal wf s input=1000000; signal wf s input=1000000;"
                    "complete => not_found; poll; complete");
}

static void a_run_gets_so_many_signals(void **state)
{
    (void)state;
    rig.no_check = true;
    hf_rig_do(&rig, "start wf");
    for (int i = 0; i < HF_SIGNALS_MAX; i++) {
        hf_rig_do(&rig, "signal wf s");
    }
    hf_rig_do(&rig, "signal wf s => limit; crash; signal wf s => limit; cancel wf; poll; complete done");
}

static void a_long_history_is_told_of_and_then_ended(void **state)
{
    (void)state;
    rig.no_check = true;
    hf_rig_do(&rig, "start wf; poll");
    int64_t events = 3;
    while (events < HF_HISTORY_COUNT_MAX) {
        hf_str history = hf_rig_task(&rig, "w")->history;
        hf_buf text;
        hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
        hf_rig_history_text(history, false, &text);
        bool told = text.len > 9 && strcmp(text.data + text.len - 9, " suggest\n") == 0;
        assert_int_equal(told, events >= HF_HISTORY_SUGGEST_COUNT);
        hf_buf_deinit(&text);
        bool fits = events + 1 + 3000 + 1 <= HF_HISTORY_COUNT_MAX; /* completed, markers, the next task */
        assert_int_equal(complete_with(HF_COMMAND_TYPE_RECORD_MARKER, 3000, "m"), fits ? HF_OK : HF_ERR_LIMIT);
        events += 1 + 3000 + 2;
        if (fits) {
            hf_rig_do(&rig, "poll");
        }
    }
    hf_rig_do(&rig, "signal wf s => not_found");
    hf_buf text;
    hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
    hf_rig_text(&rig, "wf", &text);
    assert_non_null(strstr(hf_buf_text(&text), "WorkflowExecutionTerminated"));
    hf_buf_deinit(&text);
}

static void a_history_that_nobody_works_on_has_a_longest_too(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.limits = {.history_count = 5}});
    hf_rig_do(
        &rig,
        "start wf; signal wf a; signal wf b; signal wf c; signal wf d; signal wf e => limit; signal wf f => not_found;"
        "crash");
    hf_rig_history(&rig, "wf",
                   START "3 WorkflowExecutionSignaled a\n4 WorkflowExecutionSignaled b\n"
                         "5 WorkflowExecutionSignaled c\n6 WorkflowExecutionSignaled d\n"
                         "7 WorkflowExecutionTerminated 'Workflow history count exceeds limit.'\n");
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.limits = {.history_len = 3000}});
    hf_rig_do(&rig, "start wf; poll; complete activity a each=1h; apoll; signal wf s input=100; acomplete input=3000;"
                    "signal wf s => not_found; poll => parked");
}

static const struct CMUnitTest TESTS[] = {
    TEST(ids_and_names_have_a_longest),
    TEST(inputs_have_a_longest),
    TEST(a_history_that_nobody_works_on_has_a_longest_too),
    TEST(long_metadata_counts_like_data),
    TEST(an_activity_that_says_too_much_fails),
    TEST(a_failure_of_what_is_too_long_says_how_long_it_is),
    TEST(a_long_failure_of_an_attempt_is_cut_and_not_forgotten),
    TEST(a_canceled_activity_that_says_too_much_fails),
    TEST(what_an_activity_says_may_be_as_long_as_that),
    TEST(a_command_that_says_too_much_fails_its_task),
    TEST(the_failure_of_a_workflow_task_is_cut),
    TEST(identities_have_a_longest),
    TEST(names_are_utf8),
    TEST(reasons_have_a_longest),
    TEST(a_start_takes_so_many_search_attributes),
    TEST(the_answer_to_a_task_says_so_much_of_its_worker),
    TEST(what_goes_along_with_a_command_has_a_longest),
    TEST(a_run_may_have_so_many_activities_pending),
    TEST(so_many_events_are_buffered_for_a_started_task),
    TEST(so_many_bytes_are_buffered_for_a_started_task),
    TEST(a_run_gets_so_many_signals),
    TEST(signals_that_wait_count_like_others),
    TEST(a_long_history_is_told_of_and_then_ended),
};

int main(int argc, char **argv)
{
    return hf_test_main("limits", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
