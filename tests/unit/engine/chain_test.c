/* Chains: continue as new, retries of workflows, cron schedules, start delays, and what goes along to the next run. */
#include "fixture.h"

#include "history/history.h"

/* The run before the current one, and what its last event says. */
static hf_pb_history_event last_event(const char *workflow_id, hf_arena *arena)
{
    hf_str history = hf_rig_history_bytes(&rig, workflow_id);
    hf_str bytes = {0};
    hf_op op;
    hf_op_init(&op);
    hf_pb_history_event event = {0};
    while (history.len > 0 && hf_history_next(&history, &bytes)) {
        hf_arena_reset(arena);
        assert_int_equal(hf_pb_decode(&op, &hf_pb_history_event_type, hf_arena_copy(arena, bytes), arena, &event),
                         HF_OK);
    }
    return event;
}

static hf_pb_history_event first_event(const char *workflow_id, hf_arena *arena)
{
    hf_str history = hf_rig_history_bytes(&rig, workflow_id);
    hf_str bytes = {0};
    hf_op op;
    hf_op_init(&op);
    hf_pb_history_event event = {0};
    assert_true(hf_history_next(&history, &bytes));
    assert_int_equal(hf_pb_decode(&op, &hf_pb_history_event_type, hf_arena_copy(arena, bytes), arena, &event), HF_OK);
    return event;
}

GOLDEN(a_run_continues_as_new, "start wf; poll; complete continue; poll; complete marker m, done",
       FIRST_TASK "5 MarkerRecorded m\n6 WorkflowExecutionCompleted\n")

GOLDEN(a_continued_run_can_wait,
       "start wf; poll; complete continue delay=5s; poll => parked; time 4s; is w => parked; time 1s; is w",
       "1 WorkflowExecutionStarted\n2 WorkflowTaskScheduled attempt=1\n3 WorkflowTaskStarted scheduled=2\n")

GOLDEN(a_run_that_fails_is_retried,
       "start wf initial=1s retries=2; poll; complete failed; poll => parked; time 1s; is w; complete failed;"
       "poll => parked; time 30s; is w => parked",
       FIRST_TASK "5 WorkflowExecutionFailed\n")

GOLDEN(a_run_that_times_out_is_retried,
       "start wf run=10s initial=1s retries=2; time 10s; time 1s; poll; time 10s; poll => parked",
       "1 WorkflowExecutionStarted\n2 WorkflowTaskScheduled attempt=1\n3 WorkflowTaskStarted scheduled=2\n"
       "4 WorkflowTaskFailed scheduled=2 started=3 ForceCloseCommand\n5 WorkflowExecutionTimedOut "
       "MaximumAttemptsReached\n")

GOLDEN(no_retry_begins_after_the_end_of_the_chain,
       "start wf exec=20s initial=15s; poll; complete failed; poll => parked; time 15s; is w; complete failed; time 1h",
       FIRST_TASK "5 WorkflowExecutionFailed\n")

GOLDEN(a_start_can_wait, "start wf delay=10s; poll => parked; signal wf s; is w => parked; time 10s; is w",
       "1 WorkflowExecutionStarted\n2 WorkflowExecutionSignaled s\n3 WorkflowTaskScheduled attempt=1\n"
       "4 WorkflowTaskStarted scheduled=3\n")

GOLDEN(a_cancel_ends_the_wait, "start wf delay=1h; poll => parked; cancel wf; is w",
       "1 WorkflowExecutionStarted\n2 WorkflowExecutionCancelRequested\n3 WorkflowTaskScheduled attempt=1\n"
       "4 WorkflowTaskStarted scheduled=3\n")

GOLDEN(the_time_of_a_run_begins_behind_its_wait, "start wf delay=10s run=5s; time 14s; time 1s",
       "1 WorkflowExecutionStarted\n2 WorkflowTaskScheduled attempt=1 timeout=5s\n3 WorkflowExecutionTimedOut\n")

GOLDEN(memo_and_attributes_are_upserted,
       "start wf memo=a:1 attrs=K:kay; poll; complete remember a:2+b:3, upsert K:+N:7",
       FIRST_TASK "5 WorkflowPropertiesModified\n6 UpsertWorkflowSearchAttributes\n")

static void the_next_run_knows_the_one_before(void **state)
{
    (void)state;
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_rig_do(&rig, "start wf input=3 initial=1s retries=5 exec=1h; poll; complete failed; time 1s; poll");
    hf_pb_history_event event = first_event("wf", &arena);
    const hf_pb_workflow_execution_started_event_attributes *a = event.workflow_execution_started_event_attributes;
    assert_int_equal(a->attempt, 2);
    assert_int_equal(a->initiator, HF_CONTINUE_AS_NEW_INITIATOR_RETRY);
    assert_int_equal(hf_pb_duration_span(a->first_workflow_task_backoff).ns, hf_seconds(1).ns);
    assert_non_null(a->input);
    assert_non_null(a->continued_failure);
    assert_true(hf_str_equal(a->continued_execution_run_id, a->first_execution_run_id));
    assert_false(hf_str_equal(a->original_execution_run_id, a->first_execution_run_id));
    hf_time ends = hf_pb_timestamp_time(a->workflow_execution_expiration_time);
    assert_int_equal(ends.ns, rig.now.wall - hf_seconds(1).ns + hf_hours(1).ns);
    hf_rig_do(&rig, "complete failed; time 2s; poll");
    event = first_event("wf", &arena);
    assert_int_equal(event.workflow_execution_started_event_attributes->attempt, 3);
    assert_int_equal(
        hf_pb_timestamp_time(event.workflow_execution_started_event_attributes->workflow_execution_expiration_time).ns,
        ends.ns);
    hf_arena_deinit(&arena);
}

static void the_next_run_begins_with_the_same_commit_also_from_rows(void **state)
{
    (void)state;
    again(&(hf_core_options){.mem_max = 1, .tail_len_max = 1, .row_len_max = 1});
    hf_rig_do(&rig, "start wf initial=1s retries=3 run=1m input=50; poll; complete timer t 1h; signal wf s; poll");
    hf_rig_do(&rig, "complete failed; time 1s; poll; complete marker m; time 1m; time 2s; poll; crash; time 10s; poll");
    hf_rig_do(&rig, "complete done; poll => parked");
    assert_true(rig.core->probes[HF_PROBE_EVENT_FETCHED] + rig.probes[HF_PROBE_EVENT_FETCHED] > 0);
}

/* The command leaves out type and queue, and waits for the first event of its run: it is decided twice. */
static void a_command_that_waits_for_its_run_is_as_it_was_sent(void **state)
{
    (void)state;
    again(&(hf_core_options){.mem_max = 1, .tail_len_max = 1, .row_len_max = 1});
    hf_rig_do(&rig, "start wf initial=1s retries=3 input=50; poll; complete marker m; signal wf s; poll");
    hf_rig_do(&rig, "complete continue initial=2s retries=2; poll; complete done");
    assert_true(rig.core->probes[HF_PROBE_EVENT_FETCHED] + rig.probes[HF_PROBE_EVENT_FETCHED] > 0);
    assert_true(rig.core->probes[HF_PROBE_CONTINUED_AS_NEW] + rig.probes[HF_PROBE_CONTINUED_AS_NEW] == 1);
}

static void a_schedule_brings_run_after_run(void **state)
{
    (void)state;
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_rig_do(
        &rig,
        "start wf cron=@every_10s; poll => parked; time 9s; is w => parked; time 1s; is w; complete done input=4");
    for (int i = 0; i < 3; i++) {
        hf_rig_do(&rig, "poll => parked; time 9s; is w => parked; time 1s; is w; complete failed");
    }
    hf_pb_history_event event = first_event("wf", &arena);
    const hf_pb_workflow_execution_started_event_attributes *a = event.workflow_execution_started_event_attributes;
    assert_int_equal(a->initiator, HF_CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE);
    assert_int_equal(a->attempt, 1);
    assert_non_null(a->last_completion_result); /* of the last run that succeeded */
    assert_non_null(a->continued_failure);
    hf_rig_do(&rig, "cancel wf; poll; complete canceled; poll => parked; time 30s; is w => parked");
    event = last_event("wf", &arena);
    assert_int_equal(event.event_type, HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED);
    hf_arena_deinit(&arena);
}

static void bad_schedules_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *step;
        const char *part;
    } CASES[] = {
        {"start wf cron=nonsense", "nonsense"},
        {"start wf cron=0_0_31_2_*", "never"},
        {"start wf cron=CRON_TZ=No/Where_0_0_*_*_*", "No/Where"},
        {"start wf cron=@every_1s delay=1s", "together"},
        {"start wf retries=-1", "negative"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        print_message("%s\n", CASES[i].step);
        assert_int_equal(hf_rig_try(&rig, CASES[i].step), HF_ERR_INVALID);
        if (strstr(hf_rig_slot(&rig, NULL)->call.message, CASES[i].part) == NULL) {
            fail_msg("'%s' does not name %s", hf_rig_slot(&rig, NULL)->call.message, CASES[i].part);
        }
    }
}

static void describe_shows_what_was_upserted(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf memo=a:1 attrs=K:kay; poll; complete remember a:2+b:3, upsert K:+N:7; crash");
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_describe_workflow_execution_request *request = HF_RIG_REQUEST(slot, describe_workflow_execution);
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = HF_ARENA_NEW(&slot->request, hf_pb_workflow_execution);
    request->execution->workflow_id = HF_STR("wf");
    hf_rig_send(&rig, slot, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, request);
    assert_int_equal(slot->call.status, HF_OK);
    const hf_pb_describe_workflow_execution_response *response = slot->call.response;
    const hf_pb_workflow_execution_info *info = response->workflow_execution_info;
    assert_int_equal(info->memo->fields.count, 2);
    assert_true(hf_str_equal(info->memo->fields.items[0].value->data, HF_STR("2")));
    assert_int_equal(info->search_attributes->indexed_fields.count, 1);
    assert_true(hf_str_equal(info->search_attributes->indexed_fields.items[0].key, HF_STR("N")));
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_run_continues_as_new),
    TEST(a_continued_run_can_wait),
    TEST(a_run_that_fails_is_retried),
    TEST(a_run_that_times_out_is_retried),
    TEST(no_retry_begins_after_the_end_of_the_chain),
    TEST(a_start_can_wait),
    TEST(a_cancel_ends_the_wait),
    TEST(the_time_of_a_run_begins_behind_its_wait),
    TEST(memo_and_attributes_are_upserted),
    TEST(the_next_run_knows_the_one_before),
    TEST(the_next_run_begins_with_the_same_commit_also_from_rows),
    TEST(a_command_that_waits_for_its_run_is_as_it_was_sent),
    TEST(a_schedule_brings_run_after_run),
    TEST(bad_schedules_are_refused_by_name),
    TEST(describe_shows_what_was_upserted),
};

int main(int argc, char **argv)
{
    return hf_test_main("chain", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
