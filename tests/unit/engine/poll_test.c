/* What answers must hold: TEMPORAL-WIRE section 4, long polls and pages. */
#include "fixture.h"

#include <stdio.h>

/* Through the wire and back, as a worker gets it. */
static void *over_the_wire(const hf_pb_type *type, const void *msg, hf_arena *arena)
{
    hf_op op;
    hf_op_init(&op);
    hf_buf bytes;
    hf_buf_init(&bytes, hf_rig_heap, SIZE_MAX / 4);
    hf_pb_encode(type, msg, &bytes);
    hf_str copy = hf_arena_copy(arena, hf_str_of_len(bytes.data, bytes.len));
    hf_buf_deinit(&bytes);
    void *read = hf_arena_zero(arena, type->size, 16);
    assert_int_equal(hf_pb_decode(&op, type, copy, arena, read), HF_OK);
    return read;
}

static void check_events(hf_str history, int64_t first, int64_t started_id, hf_arena *arena)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_history events;
    assert_int_equal(hf_pb_decode(&op, &hf_pb_history_type, history, arena, &events), HF_OK);
    assert_true(events.events.count > 0);
    for (size_t i = 0; i < events.events.count; i++) {
        const hf_pb_history_event *event = &events.events.items[i];
        assert_int_equal(event->event_id, first + (int64_t)i);
        assert_true(event->event_time.has);
        if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_STARTED) {
            assert_true(event->workflow_task_started_event_attributes->scheduled_event_id > 0);
        }
        if (event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED) {
            const hf_pb_workflow_execution_started_event_attributes *a =
                event->workflow_execution_started_event_attributes;
            assert_true(a->workflow_task_timeout.has && hf_pb_duration_span(a->workflow_task_timeout).ns > 0);
            assert_true(a->original_execution_run_id.len > 0 && a->first_execution_run_id.len > 0);
            assert_true(a->workflow_id.len > 0 && a->attempt == 1 && a->workflow_type != NULL && a->task_queue != NULL);
        }
    }
    assert_int_equal(events.events.items[events.events.count - 1].event_id, started_id);
}

static void check_task(const char *slot, int64_t first)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    const hf_pb_poll_workflow_task_queue_response *task =
        over_the_wire(&hf_pb_poll_workflow_task_queue_response_type, hf_rig_task(&rig, slot), &arena);
    assert_true(task->task_token.len > 0);
    assert_non_null(task->workflow_execution);
    assert_true(task->workflow_execution->workflow_id.len > 0 && task->workflow_execution->run_id.len == 36);
    assert_true(task->workflow_type != NULL && task->workflow_type->name.len > 0);
    assert_true(task->workflow_execution_task_queue != NULL);
    assert_true(hf_str_equal(task->workflow_execution_task_queue->name, HF_STR(HF_RIG_QUEUE)));
    assert_true(task->scheduled_time.has && task->started_time.has);
    assert_true(task->attempt >= 1);
    check_events(task->history, first, task->started_event_id, &arena);
    hf_arena_deinit(&arena);
}

static void a_workflow_task_has_all_that_a_worker_needs(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll");
    check_task("w", 1);
    assert_int_equal(hf_rig_task(&rig, "w")->previous_started_event_id, 0);
    hf_rig_do(&rig, "fail; poll"); /* transient */
    check_task("w", 1);
    hf_rig_do(&rig, "unwanted w; crash; poll"); /* again */
    check_task("w", 1);
    hf_rig_do(&rig, "complete sticky=s; poll queue=s as=s => parked; signal wf s; is s");
    check_task("s", 7);
    assert_int_equal(hf_rig_task(&rig, "s")->previous_started_event_id, 6);
    hf_rig_do(&rig, "time 10s; poll"); /* from rows and log, after a timeout */
    check_task("w", 1);
}

static void a_workflow_task_is_the_same_when_its_history_is_in_rows(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.mem_max = 1, .tail_len_max = 1});
    hf_rig_do(&rig, "start wf; poll; complete timer t 1s; time 1s; signal wf s; poll");
    check_task("w", 1);
    assert_true(hf_rig_probe(&rig, HF_PROBE_HISTORY_FROM_ROWS) > 0);
    hf_rig_do(&rig, "fail; poll");
    check_task("w", 1);
    hf_rig_do(&rig, "complete sticky=s; poll queue=s as=s => parked; signal wf s; is s");
    check_task("s", 13);
}

/* The SDKs refuse a task without a history, and a query that goes to the worker that has the run has no events. */
static void a_query_without_events_has_a_history(void **state)
{
    (void)state;
    hf_buf bytes;
    hf_buf_init(&bytes, hf_rig_heap, 1 << 20);
    hf_rig_do(&rig, "start wf; poll; complete sticky=s; poll queue=s as=x => parked; query wf q; is x says=-q/0/0");
    hf_pb_encode(&hf_pb_poll_workflow_task_queue_response_type, hf_rig_task(&rig, "x"), &bytes);
    hf_str rest = hf_str_of_len(bytes.data, bytes.len);
    hf_pb_raw field;
    size_t count = 0;
    while (hf_pb_next(&rest, &field)) {
        count += field.number == 8 && field.bytes.len == 0;
    }
    assert_int_equal(count, 1);
    hf_buf_deinit(&bytes);
}

static void an_activity_task_has_all_that_a_worker_needs(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 each=7s; apoll; afail; time 1s; apoll");
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    const hf_pb_poll_activity_task_queue_response *task =
        over_the_wire(&hf_pb_poll_activity_task_queue_response_type, hf_rig_activity(&rig, "a"), &arena);
    assert_true(task->task_token.len > 0 && task->workflow_namespace.len > 0);
    assert_true(task->workflow_type != NULL && task->workflow_execution != NULL);
    assert_true(hf_str_equal(task->workflow_execution->workflow_id, HF_STR("wf")));
    assert_int_equal(task->workflow_execution->run_id.len, 36);
    assert_true(task->activity_type != NULL && hf_str_equal(task->activity_id, HF_STR("a1")));
    assert_true(task->scheduled_time.has && task->current_attempt_scheduled_time.has && task->started_time.has);
    assert_true(task->schedule_to_close_timeout.has); /* present, though zero */
    assert_int_equal(hf_pb_duration_span(task->schedule_to_close_timeout).ns, 0);
    assert_int_equal(hf_pb_duration_span(task->start_to_close_timeout).ns, hf_seconds(7).ns);
    assert_true(task->heartbeat_timeout.has);
    assert_int_equal(task->attempt, 2);
    assert_non_null(task->retry_policy);
    assert_int_equal(hf_pb_duration_span(task->retry_policy->initial_interval).ns, hf_seconds(1).ns);
    assert_int_equal(hf_pb_duration_span(task->retry_policy->maximum_interval).ns, hf_seconds(100).ns);
    assert_true(task->retry_policy->backoff_coefficient == 2.0 && task->retry_policy->maximum_attempts == 0);
    assert_int_equal(hf_pb_timestamp_time(task->current_attempt_scheduled_time).ns -
                         hf_pb_timestamp_time(task->scheduled_time).ns,
                     hf_seconds(1).ns);
    hf_arena_deinit(&arena);
}

static void missing_timeouts_of_an_activity_come_from_the_others(void **state)
{
    (void)state;
    static const struct {
        const char *given;
        int close, each, beat; /* seconds */
    } CASES[] = {
        {"close=10s", 60, 10, 0},          {"each=10s", 60, 10, 0},  {"close=10s each=20s", 10, 10, 0},
        {"each=10s beat=20s", 60, 10, 10}, {"close=90s", 60, 60, 0},
    };
    hf_rig_do(&rig, "start wf run=60s; poll");
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char text[200];
        print_message("%s\n", CASES[i].given);
        (void)snprintf(text, sizeof text, "complete force activity a%zu %s; apoll; poll", i, CASES[i].given);
        hf_rig_do(&rig, text);
        const hf_pb_poll_activity_task_queue_response *task = hf_rig_activity(&rig, "a");
        int close = CASES[i].close == 60 && strncmp(CASES[i].given, "close=10s", 9) == 0 ? 10 : CASES[i].close;
        assert_int_equal(hf_pb_duration_span(task->schedule_to_close_timeout).ns, hf_seconds(close).ns);
        assert_int_equal(hf_pb_duration_span(task->start_to_close_timeout).ns, hf_seconds(CASES[i].each).ns);
        assert_int_equal(hf_pb_duration_span(task->heartbeat_timeout).ns, hf_seconds(CASES[i].beat).ns);
    }
}

static void an_empty_answer_has_no_token(void **state)
{
    (void)state;
    hf_rig_do(&rig, "poll => parked; time 60s; is w => empty");
    assert_null(hf_rig_task(&rig, "w")->workflow_execution);
}

/* ---- Histories ------------------------------------------------------------------------------------------------------- */

static const hf_pb_get_workflow_execution_history_response *history(const char *slot_name, int32_t filter, bool wait,
                                                                    int32_t page, hf_str token)
{
    hf_rig_call *slot = hf_rig_slot(&rig, slot_name);
    char kept[64];
    size_t kept_len = token.len < sizeof kept ? token.len : sizeof kept;
    memcpy(kept, token.data != NULL ? token.data : "", kept_len);
    hf_pb_get_workflow_execution_history_request *request = HF_RIG_REQUEST(slot, get_workflow_execution_history);
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = HF_ARENA_NEW(&slot->request, hf_pb_workflow_execution);
    request->execution->workflow_id = HF_STR("wf");
    request->history_event_filter_type = filter;
    request->wait_new_event = wait;
    request->maximum_page_size = page;
    request->next_page_token = hf_arena_copy(&slot->request, hf_str_of_len(kept, kept_len));
    hf_rig_send(&rig, slot, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, request);
    return slot->done ? slot->call.response : NULL;
}

static size_t count_of(hf_str bytes)
{
    hf_pb_raw field;
    size_t count = 0;
    while (bytes.len > 0 && hf_pb_next(&bytes, &field)) {
        count++;
    }
    return count;
}

#define CLOSE HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT
#define ALL HF_HISTORY_EVENT_FILTER_TYPE_ALL_EVENT

static void a_poll_for_the_end_gets_exactly_the_closing_event(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll");
    assert_null(history("h", CLOSE, true, 0, HF_STR("")));
    hf_rig_do(&rig, "complete timer t 1s; time 1s; poll");
    assert_false(hf_rig_slot(&rig, "h")->done);
    hf_rig_do(&rig, "complete done");
    assert_true(hf_rig_slot(&rig, "h")->done);
    const hf_pb_get_workflow_execution_history_response *response = hf_rig_slot(&rig, "h")->call.response;
    assert_int_equal(count_of(response->history), 1);
    assert_int_equal(response->next_page_token.len, 0);
    hf_rig_do(&rig, "crash");
    response = history("h", CLOSE, true, 0, HF_STR(""));
    assert_int_equal(count_of(response->history), 1);
}

/* Who asks for the end takes every event that comes for it. */
static void a_look_for_the_end_of_an_open_run_gets_nothing(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete timer t 1s");
    const hf_pb_get_workflow_execution_history_response *response = history("h", CLOSE, false, 0, HF_STR(""));
    assert_non_null(response);
    assert_int_equal(count_of(response->history), 0);
    assert_int_equal(response->next_page_token.len, 0);
    hf_rig_do(&rig, "terminate wf");
    assert_int_equal(count_of(history("h", CLOSE, false, 0, HF_STR(""))->history), 1);
}

static void a_poll_for_the_end_is_answered_without_events_when_its_time_is_over(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll");
    hf_str token = HF_STR("");
    for (int i = 0; i < 3; i++) {
        assert_null(history("h", CLOSE, true, 0, token));
        hf_rig_do(&rig, "time 19s");
        assert_false(hf_rig_slot(&rig, "h")->done);
        hf_rig_do(&rig, "time 1s");
        const hf_pb_get_workflow_execution_history_response *response = hf_rig_slot(&rig, "h")->call.response;
        assert_true(hf_rig_slot(&rig, "h")->done && response != NULL);
        assert_int_equal(count_of(response->history), 0);
        assert_true(response->next_page_token.len > 0);
        token = response->next_page_token;
    }
    assert_null(history("h", CLOSE, true, 0, token));
    hf_rig_do(&rig, "terminate wf");
    assert_int_equal(
        count_of(((hf_pb_get_workflow_execution_history_response *)hf_rig_slot(&rig, "h")->call.response)->history), 1);
}

/* Time passes, but no commit does. */
static void expire_held(void)
{
    rig.now.mono += hf_seconds(20).ns;
    rig.now.wall += hf_seconds(20).ns;
    hf_core_tick(rig.core, rig.now);
    hf_core_release(rig.core, rig.now);
}

/* engine-E1: its token names a run, which a crash could undo. */
static void a_poll_of_a_run_that_is_not_durable_waits_for_the_commit(void **state)
{
    (void)state;
    rig.hold = true;
    (void)hf_rig_step(&rig, "start wf");
    hf_rig_call *slot = hf_rig_slot(&rig, "h");
    assert_null(history("h", CLOSE, true, 0, HF_STR("")));
    hf_store_request *commit = hf_core_seal(rig.core, rig.now);
    assert_non_null(commit);
    expire_held();
    assert_false(slot->done);
    hf_store_execute(rig.store, commit);
    hf_core_done(rig.core, commit, rig.now);
    rig.hold = false;
    hf_rig_settle(&rig);
    assert_true(slot->done);
    assert_int_equal(slot->call.status, HF_OK);
    const hf_pb_get_workflow_execution_history_response *response = slot->call.response;
    assert_int_equal(count_of(response->history), 0);
    assert_true(response->next_page_token.len > 0);
}

/* It names nothing. */
static void a_poll_of_tasks_does_not_wait_for_a_commit(void **state)
{
    (void)state;
    hf_rig_do(&rig, "poll queue=other timeout=1s => parked");
    rig.hold = true;
    (void)hf_rig_step(&rig, "start wf");
    hf_store_request *commit = hf_core_seal(rig.core, rig.now);
    assert_non_null(commit);
    expire_held();
    assert_true(hf_rig_slot(&rig, "w")->done);
    hf_store_execute(rig.store, commit);
    hf_core_done(rig.core, commit, rig.now);
}

static void pages_give_every_event_once(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        hf_rig_close(&rig);
        hf_rig_open(&rig, (hf_core_options){.mem_max = small ? 1 : 0});
        hf_rig_do(&rig,
                  "start wf; poll; complete marker a, marker b, marker c, timer t 1s; time 1s; poll; complete done");
        hf_buf all;
        hf_buf_init(&all, hf_rig_heap, SIZE_MAX / 4);
        hf_str token = HF_STR("");
        size_t pages = 0;
        do {
            const hf_pb_get_workflow_execution_history_response *response = history("h", ALL, false, 3, token);
            assert_non_null(response);
            assert_in_range(count_of(response->history), 1, 3);
            hf_buf_put(&all, response->history.data, response->history.len);
            token = response->next_page_token;
            pages++;
        } while (token.len > 0);
        assert_int_equal(pages, 5); /* 13 events */
        hf_str whole = hf_rig_history_bytes(&rig, "wf");
        assert_true(hf_str_equal(whole, hf_str_of_len(all.data, all.len)));
        hf_buf_deinit(&all);
    }
}

static void a_poll_for_new_events_is_woken_by_them(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf");
    const hf_pb_get_workflow_execution_history_response *response = history("h", ALL, true, 0, HF_STR(""));
    assert_non_null(response); /* what there is, and where to go on */
    assert_int_equal(count_of(response->history), 2);
    assert_null(history("h", ALL, true, 0, response->next_page_token));
    assert_null(history("i", CLOSE, true, 0, HF_STR("")));
    hf_rig_do(&rig, "signal wf s");
    assert_true(hf_rig_slot(&rig, "h")->done);
    assert_false(hf_rig_slot(&rig, "i")->done);
    response = hf_rig_slot(&rig, "h")->call.response;
    assert_int_equal(count_of(response->history), 1);
    assert_null(history("h", ALL, true, 0, response->next_page_token));
    hf_rig_do(&rig, "drop i; terminate wf");
    response = hf_rig_slot(&rig, "h")->call.response;
    assert_int_equal(count_of(response->history), 1);
    assert_int_equal(response->next_page_token.len, 0);
}

static void a_page_token_that_was_not_given_out_is_refused(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf");
    static const char *const TOKENS[] = {"x", "abcdefghijklmnopqrstuvwx", "0123456789012345678901234567890"};
    for (size_t i = 0; i < HF_COUNT_OF(TOKENS); i++) {
        (void)history("h", ALL, false, 0, hf_str_of(TOKENS[i]));
        assert_int_equal(hf_rig_slot(&rig, "h")->call.status, HF_ERR_INVALID);
    }
}

/* ---- Describe -------------------------------------------------------------------------------------------------------- */

static const hf_pb_describe_workflow_execution_response *describe(void)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_describe_workflow_execution_request *request = HF_RIG_REQUEST(slot, describe_workflow_execution);
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = HF_ARENA_NEW(&slot->request, hf_pb_workflow_execution);
    request->execution->workflow_id = HF_STR("wf");
    hf_rig_send(&rig, slot, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, request);
    assert_int_equal(slot->call.status, HF_OK);
    return slot->call.response;
}

static int64_t ns_of(hf_pb_timestamp time)
{
    return time.has ? hf_pb_timestamp_time(time).ns : -1;
}

static void describe_tells_what_is_left_to_an_activity_and_to_the_run(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf run=1h exec=2h; poll;"
                    "complete activity a1 close=1m each=5s retries=7 initial=4s; time 1s; apoll; time 2s; afail");
    const hf_pb_describe_workflow_execution_response *d = describe();
    int64_t start = ns_of(d->workflow_execution_info->start_time);
    const hf_pb_pending_activity_info *activity = &d->pending_activities.items[0];
    assert_int_equal(activity->maximum_attempts, 7);
    assert_int_equal(ns_of(activity->expiration_time) - start, hf_seconds(60).ns);
    assert_int_equal(ns_of(activity->next_attempt_schedule_time) - start, hf_seconds(7).ns);
    assert_int_equal(ns_of(d->workflow_extended_info->run_expiration_time) - start, hf_seconds(3600).ns);
    assert_int_equal(ns_of(d->workflow_extended_info->execution_expiration_time) - start, hf_seconds(7200).ns);
    assert_int_equal(ns_of(d->workflow_extended_info->original_start_time), start);
    const hf_pb_workflow_execution *root = d->workflow_execution_info->root_execution;
    assert_true(root != NULL && hf_str_equal(root->run_id, d->workflow_execution_info->execution->run_id));
    hf_rig_do(&rig, "time 4s; apoll");
    assert_false(describe()->pending_activities.items[0].next_attempt_schedule_time.has);
}

static void describe_tells_of_attempts_and_of_the_pending_task(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf run=1h; poll; complete activity a1, activity a2; apoll; heartbeat details=half; afail;"
                    "apoll as=b; signal wf s");
    const hf_pb_describe_workflow_execution_response *d = describe();
    const hf_pb_workflow_execution_info *info = d->workflow_execution_info;
    assert_true(info != NULL && info->execution != NULL && info->type != NULL && info->start_time.has);
    assert_int_equal(info->history_length, 8);
    assert_int_equal(info->status, HF_WORKFLOW_EXECUTION_STATUS_RUNNING);
    assert_true(hf_str_equal(info->task_queue, HF_STR(HF_RIG_QUEUE)));
    assert_int_equal(d->pending_activities.count, 2);
    assert_int_equal(d->pending_activities.items[0].attempt, 2);
    assert_int_equal(d->pending_activities.items[0].state, HF_PENDING_ACTIVITY_STATE_SCHEDULED);
    assert_true(d->pending_activities.items[0].last_failure != NULL);
    assert_true(d->pending_activities.items[0].heartbeat_details != NULL);
    assert_int_equal(d->pending_activities.items[1].state, HF_PENDING_ACTIVITY_STATE_STARTED);
    assert_non_null(d->pending_workflow_task);
    assert_int_equal(d->pending_workflow_task->state, HF_PENDING_WORKFLOW_TASK_STATE_SCHEDULED);
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_workflow_task_has_all_that_a_worker_needs),
    TEST(a_workflow_task_is_the_same_when_its_history_is_in_rows),
    TEST(a_query_without_events_has_a_history),
    TEST(an_activity_task_has_all_that_a_worker_needs),
    TEST(missing_timeouts_of_an_activity_come_from_the_others),
    TEST(an_empty_answer_has_no_token),
    TEST(a_poll_for_the_end_gets_exactly_the_closing_event),
    TEST(a_look_for_the_end_of_an_open_run_gets_nothing),
    TEST(a_poll_for_the_end_is_answered_without_events_when_its_time_is_over),
    TEST(a_poll_of_a_run_that_is_not_durable_waits_for_the_commit),
    TEST(a_poll_of_tasks_does_not_wait_for_a_commit),
    TEST(pages_give_every_event_once),
    TEST(a_poll_for_new_events_is_woken_by_them),
    TEST(a_page_token_that_was_not_given_out_is_refused),
    TEST(describe_tells_of_attempts_and_of_the_pending_task),
    TEST(describe_tells_what_is_left_to_an_activity_and_to_the_run),
};

int main(int argc, char **argv)
{
    return hf_test_main("poll", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
