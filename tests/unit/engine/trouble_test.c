/* What a caller, a broken core or a damaged page may not do to others: stop the engine, lose an answer, leave a run waiting for
 * ever. */
#include "fixture.h"

#include "history/limits.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Failures inside failures ---------------------------------------------------------------------------------------- */

enum { DEEP = 5000 };
static hf_pb_failure causes[DEEP];

static hf_pb_failure *deep_failure(void)
{
    for (int i = 0; i < DEEP; i++) {
        causes[i] = (hf_pb_failure){.message = HF_STR("because"), .cause = i + 1 < DEEP ? &causes[i + 1] : NULL};
    }
    return &causes[0];
}

static void a_start_with_too_many_causes_is_refused(void **state)
{
    (void)state;
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_start_workflow_execution_request *request = HF_RIG_REQUEST(slot, start_workflow_execution);
    hf_pb_workflow_type type = {.name = HF_STR("T")};
    hf_pb_task_queue queue = {.name = HF_STR(HF_RIG_QUEUE)};
    request->namespace = HF_STR(HF_RIG_NS);
    request->workflow_id = HF_STR("wf");
    request->workflow_type = &type;
    request->task_queue = &queue;
    request->continued_failure = deep_failure();
    hf_rig_send(&rig, slot, HF_METHOD_START_WORKFLOW_EXECUTION, request);
    assert_int_equal(slot->call.status, HF_ERR_INVALID);
    hf_rig_do(&rig, "start wf; crash; poll; complete done");
}

static void fail_deeply(void)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_respond_activity_task_failed_request *request = HF_RIG_REQUEST(slot, respond_activity_task_failed);
    request->namespace = HF_STR(HF_RIG_NS);
    request->task_token = hf_rig_activity(&rig, "a")->task_token;
    request->failure = deep_failure();
    hf_rig_send(&rig, slot, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, request);
    assert_int_equal(slot->call.status, HF_OK);
    assert_ptr_equal(causes[DEEP - 2].cause, &causes[DEEP - 1]); /* the caller's is left alone */
}

static void an_activity_that_fails_with_too_many_causes_keeps_the_first(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a each=1h retries=1; apoll");
    fail_deeply();
    hf_rig_do(&rig, "crash; poll; complete done; crash");
    hf_rig_do(&rig, "start other; poll; complete activity a each=1h retries=1; apoll; signal other s; poll");
    fail_deeply(); /* buffered */
    hf_rig_do(&rig, "crash; complete timer t 1h; poll; complete done");
}

/* The failure before is the cause of the timeout: one more than there may be. */
static void an_activity_that_times_out_after_too_many_causes_keeps_the_first(void **state)
{
    (void)state;
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_op op;
    hf_op_init(&op);
    hf_rig_do(&rig, "start wf; poll; complete activity a each=1h retries=2; apoll");
    fail_deeply();
    hf_rig_do(&rig, "time 1s; apoll; time 1h; crash");
    hf_pb_history history;
    assert_int_equal(hf_pb_decode(&op, &hf_pb_history_type, hf_rig_history_bytes(&rig, "wf"), &arena, &history), HF_OK);
    const hf_pb_history_event *event = &history.events.items[history.events.count - 2];
    assert_int_equal(event->event_type, HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT);
    int count = 0;
    const hf_pb_failure *each = event->activity_task_timed_out_event_attributes->failure;
    for (; each != NULL; each = each->cause) {
        count++;
    }
    assert_int_equal(count, HF_FAILURE_DEPTH_MAX);
    hf_rig_do(&rig, "poll; complete done; crash");
    hf_arena_deinit(&arena);
}

/* ---- A core that breaks ---------------------------------------------------------------------------------------------- */

static void an_answer_that_is_durable_is_given_though_the_core_is_broken(void **state)
{
    (void)state;
    const hf_core_options options = {.incarnation = 7};
    again(&options);
    hf_rig_do(&rig, "start wf; poll in_process; complete activity a each=24h");
    hf_rig_call *slot = hf_rig_slot(&rig, "a");
    hf_pb_poll_activity_task_queue_request *request = HF_RIG_REQUEST(slot, poll_activity_task_queue);
    hf_pb_task_queue queue = {.name = HF_STR(HF_RIG_QUEUE)};
    request->namespace = HF_STR(HF_RIG_NS);
    request->task_queue = &queue;
    slot->call.in_process = true;
    rig.hold = rig.may_break = true;
    hf_rig_submit(&rig, slot, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, request);
    hf_store_request *commit = hf_core_seal(rig.core, rig.now);
    assert_non_null(commit);
    hf_core_break(rig.core, HF_ERR_NOMEM, "a failed allocation of the next batch");
    hf_store_execute(rig.store, commit);
    assert_int_equal(commit->status, HF_OK);
    hf_core_done(rig.core, commit, rig.now);
    assert_true(slot->done && slot->call.status == HF_OK);
    hf_rig_crash(&rig); /* as the loop does it: with the same incarnation */
    rig.hold = rig.may_break = false;
    (void)hf_rig_settle(&rig);
    hf_rig_do(&rig, "acomplete; poll; complete done");
}

/* ---- Damage ---------------------------------------------------------------------------------------------------------- */

/* The oldest question is answered as SQLite answers when a page is damaged. */
static void fail_read(void)
{
    hf_store_request *request = rig.reads[0];
    rig.read_count--;
    memmove(rig.reads, rig.reads + 1, rig.read_count * sizeof rig.reads[0]);
    request->status = hf_fail(&request->op, HF_ERR_INVALID, "the database disk image is malformed");
    hf_core_done(rig.core, request, rig.now);
}

static void a_page_that_cannot_be_read_stops_one_run(void **state)
{
    (void)state;
    const hf_core_options options = {.mem_max = 1};
    again(&options);
    hf_rig_do(&rig, "start wf; poll; complete timer t 5s; start other; poll; complete timer t 5s; crash");
    rig.no_check = true;
    rig.now.wall += 10000000000;
    rig.now.mono += 10000000000;
    int bad = 0;
    for (int i = 0; i < 60; i++) {
        hf_core_tick(rig.core, rig.now);
        if (rig.read_count > 0 && rig.reads[0]->table == HF_TABLE_RUN && rig.reads[0]->key.a == 1) {
            fail_read();
            bad++;
        } else if (!hf_rig_read(&rig)) {
            (void)hf_rig_commit(&rig, false);
        }
        assert_int_equal(hf_core_status(rig.core), HF_OK);
    }
    assert_int_equal(bad, 1);
    hf_rig_do(&rig, "poll; complete done; start third");
}

/* A history that is answered from rows waits for two things, its rows and the open batch: the rows fail first. */
static void a_history_whose_rows_cannot_be_read_fails_its_caller_alone(void **state)
{
    (void)state;
    const hf_core_options options = {.mem_max = 1, .tail_len_max = 1};
    again(&options);
    hf_rig_do(&rig, "start wf; poll; complete timer t 5h; crash");
    rig.hold = rig.no_check = true;
    hf_rig_call *slot = hf_rig_slot(&rig, "history");
    hf_pb_get_workflow_execution_history_request *request = HF_RIG_REQUEST(slot, get_workflow_execution_history);
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("wf")};
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = &execution;
    hf_rig_submit(&rig, slot, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, request);
    while (rig.reads[0]->table != HF_TABLE_HISTORY) {
        assert_true(hf_rig_read(&rig));
    }
    fail_read();
    rig.hold = false;
    assert_true(hf_rig_settle(&rig));
    assert_true(slot->done);
    assert_int_equal(slot->call.status, HF_ERR_STORE);
    hf_rig_do(&rig, "signal wf s; start other; poll as=x");
}

static void a_task_whose_row_is_gone_is_no_reason_to_fall(void **state)
{
    (void)state;
    const hf_core_options options = {.mem_max = 1, .trim_count = 1};
    again(&options);
    hf_rig_do(&rig, "start wf");
    lose_row(HF_TABLE_TASK);
    rig.no_check = true;
    hf_rig_do(&rig, "crash; signal wf s; time 10m; time 10m");
}

/* ---- A burst --------------------------------------------------------------------------------------------------------- */

/* More than all of the memory in one batch: once it is durable there is room again, and runs stay in memory. */
static void memory_that_a_large_batch_took_is_given_back(void **state)
{
    (void)state;
    const hf_core_options options = {.mem_max = 1 << 20};
    again(&options);
    hf_rig_do(&rig,
              "start big; poll; complete activity a input=200000, activity b input=200000,"
              "activity c input=200000, activity d input=200000, activity e input=200000, activity f input=200000;"
              "terminate big; start wf; poll");
    assert_true(rig.core->used < rig.core->options.mem_max);
    uint64_t evicted = hf_rig_probe(&rig, HF_PROBE_EVICTED);
    hf_rig_do(&rig, "complete timer t 1h; signal wf s; poll; complete");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_EVICTED), evicted);
}

/* As many commands as a history may have events, in pairs: a list that is looked through for each of them takes seconds, in
 * which nobody else is served. */
static void a_long_list_of_commands_is_checked_at_once(void **state)
{
    (void)state;
    enum { PAIRS = HF_HISTORY_COUNT_MAX / 2 };
    static hf_pb_command commands[2 * PAIRS];
    static hf_pb_start_timer_command_attributes starts[PAIRS];
    static hf_pb_cancel_timer_command_attributes cancels[PAIRS];
    static char ids[PAIRS][20];
    for (int i = 0; i < PAIRS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "timer-%d", i);
        starts[i].timer_id = cancels[i].timer_id = hf_str_of(ids[i]);
        starts[i].start_to_fire_timeout = hf_pb_duration_of(hf_seconds(1));
        commands[2 * i] = (hf_pb_command){.command_type = HF_COMMAND_TYPE_START_TIMER,
                                          .attributes_case = HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES,
                                          .start_timer_command_attributes = &starts[i]};
        commands[2 * i + 1] = (hf_pb_command){.command_type = HF_COMMAND_TYPE_CANCEL_TIMER,
                                              .attributes_case = HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES,
                                              .cancel_timer_command_attributes = &cancels[i]};
    }
    hf_rig_do(&rig, "start wf; poll");
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_respond_workflow_task_completed_request *request = HF_RIG_REQUEST(slot, respond_workflow_task_completed);
    request->namespace = HF_STR(HF_RIG_NS);
    request->task_token = hf_rig_task(&rig, "w")->task_token;
    request->commands.items = commands;
    request->commands.count = HF_COUNT_OF(commands);
    hf_rig_send(&rig, slot, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, request);
    assert_int_equal(slot->call.status, HF_ERR_LIMIT);
    hf_rig_do(&rig, "signal wf s => not_found"); /* its history would have been too long */
}

/* ---- Runs that could not go on ---------------------------------------------------------------------------------------- */

static void only_the_history_bounds_timers(void **state)
{
    (void)state;
    const hf_core_options options = {.limits = {.pending = 2}};
    again(&options);
    hf_rig_do(&rig, "start wf; poll; complete timer a 10h, timer b 10h; signal wf s; poll; complete timer c 10h");
}

static void a_sticky_task_does_not_wait_for_ever(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "start wf; poll; complete sticky=s sticky_for=0s timer t 9999h; poll queue=s as=s timeout=1s => parked;"
              "time 2s; is s => empty; signal wf s; time 10s; poll; complete done");
}

static void more_commands_than_a_history_may_have_events_end_the_run(void **state)
{
    (void)state;
    const hf_core_options options = {.limits = {.history_count = 10}};
    again(&options);
    hf_rig_do(&rig,
              "start wf; poll; complete marker a, marker b, marker c, marker d, marker e, marker f, marker g, marker h,"
              "marker i, marker j, marker k => limit; complete => not_found");
}

static void namespaces_are_apart_whatever_is_in_their_names(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start b\x1f"
                    "c ns=a; start c ns=a\x1f"
                    "b => invalid; poll ns=a\x1f"
                    "b as=x => invalid; shutdown c ns=a\x1f"
                    "b => invalid");
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_start_with_too_many_causes_is_refused),
    TEST(an_activity_that_fails_with_too_many_causes_keeps_the_first),
    TEST(an_activity_that_times_out_after_too_many_causes_keeps_the_first),
    TEST(an_answer_that_is_durable_is_given_though_the_core_is_broken),
    TEST(a_page_that_cannot_be_read_stops_one_run),
    TEST(a_history_whose_rows_cannot_be_read_fails_its_caller_alone),
    TEST(a_task_whose_row_is_gone_is_no_reason_to_fall),
    TEST(memory_that_a_large_batch_took_is_given_back),
    TEST(a_long_list_of_commands_is_checked_at_once),
    TEST(only_the_history_bounds_timers),
    TEST(a_sticky_task_does_not_wait_for_ever),
    TEST(more_commands_than_a_history_may_have_events_end_the_run),
    TEST(namespaces_are_apart_whatever_is_in_their_names),
};

int main(int argc, char **argv)
{
    return hf_test_main("trouble", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
