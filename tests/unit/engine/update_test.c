/* Updates: what a caller asks a workflow's code to do, and its answer; and the speculative workflow tasks they come with. */
#include "fixture.h"

#include "engine/load.h"
#include "history/history.h"

#include <stdio.h>

#define IDLE "start wf; poll; complete; "
#define ASKED IDLE "update wf up; poll says=/0/1; "
#define UPDATE_TASK FIRST_TASK "5 WorkflowTaskScheduled attempt=1\n6 WorkflowTaskStarted scheduled=5\n"
#define UPDATED UPDATE_TASK "7 WorkflowTaskCompleted scheduled=5 started=6\n"
#define ACCEPTED UPDATED "8 WorkflowExecutionUpdateAccepted up of=5\n"

/* ---- Answered ------------------------------------------------------------------------------------------------------ */

GOLDEN(an_update_is_accepted_and_completed_by_one_task,
       ASKED
       "complete accept up, respond up says=reset0; is u says=completed:fine; updpoll wf up says=completed:fine => "
       "answer; update wf up as=v says=completed:fine => answer",
       ACCEPTED "9 WorkflowExecutionUpdateCompleted up accepted=8\n")

GOLDEN(messages_need_no_commands, ASKED "complete accept up silent, respond up silent; is u says=completed:fine",
       ACCEPTED "9 WorkflowExecutionUpdateCompleted up accepted=8\n")

GOLDEN(an_update_that_fails_has_its_failure, ASKED "complete accept up, respond up fail; is u says=completed:Oops",
       ACCEPTED "9 WorkflowExecutionUpdateCompleted up accepted=8 failure=Oops\n")

GOLDEN(a_rejected_update_leaves_no_trace,
       ASKED "complete says=reset3 reject up; is u says=completed:Refused; updpoll wf up => not_found", FIRST_TASK)

GOLDEN(an_update_that_a_worker_ignores_is_rejected, ASKED "complete says=reset3; is u says=completed:UnprocessedUpdate",
       FIRST_TASK)

GOLDEN(a_rejection_with_commands_is_written,
       ASKED "complete says=reset0 reject up, timer t 1h; is u says=completed:Refused",
       UPDATED "8 TimerStarted t after=3600s\n")

GOLDEN(an_update_is_accepted_by_one_task_and_completed_by_another,
       IDLE "update wf up wait=accepted; poll; complete accept up, timer t 1s; is u says=accepted; updpoll wf up as=v;"
            "updpoll wf up as=n wait=nothing says=accepted => answer; time 1s; poll says=/0/0; complete respond up;"
            "is v says=completed:fine",
       ACCEPTED "9 TimerStarted t after=1s\n10 TimerFired t started=9\n11 WorkflowTaskScheduled attempt=1\n"
                "12 WorkflowTaskStarted scheduled=11\n13 WorkflowTaskCompleted scheduled=11 started=12\n"
                "14 WorkflowExecutionUpdateCompleted up accepted=8\n")

GOLDEN(who_waits_for_accepted_gets_the_outcome_if_it_is_there,
       IDLE "update wf up wait=accepted; poll; complete accept up, respond up; is u says=completed:fine",
       ACCEPTED "9 WorkflowExecutionUpdateCompleted up accepted=8\n")

GOLDEN(the_same_id_is_the_same_update,
       IDLE
       "update wf up; update wf other id=up as=v; poll says=/0/1; update wf up as=x; complete accept up, respond up;"
       "is u says=completed:fine; is v says=completed:fine; is x says=completed:fine",
       ACCEPTED "9 WorkflowExecutionUpdateCompleted up accepted=8\n")

/* ---- When it comes --------------------------------------------------------------------------------------------------- */

GOLDEN(an_update_goes_with_the_first_task,
       "start wf; update wf up; poll says=/0/1; complete accept up, respond up; is u",
       FIRST_TASK "5 WorkflowExecutionUpdateAccepted up of=2\n6 WorkflowExecutionUpdateCompleted up accepted=5\n")

GOLDEN(an_update_during_a_task_comes_after_it,
       "start wf; poll; update wf up; complete; poll says=/0/1; complete accept up, respond up; is u",
       ACCEPTED "9 WorkflowExecutionUpdateCompleted up accepted=8\n")

GOLDEN(an_update_goes_to_the_worker_that_has_the_run,
       "start wf; poll; complete sticky=s; poll queue=s as=x => parked; update wf up; is x says=/0/1;"
       "complete of=x sticky=s accept up, respond up; is u",
       ACCEPTED "9 WorkflowExecutionUpdateCompleted up accepted=8\n")

GOLDEN(an_update_leaves_the_sticky_queue_when_nobody_takes_it,
       "start wf; poll; complete sticky=s; poll queue=s as=x => parked; drop x; update wf up; poll => parked; time 10s;"
       "is w says=/0/1; complete accept up, respond up; is u",
       FIRST_TASK "5 WorkflowTaskScheduled attempt=1\n6 WorkflowTaskTimedOut scheduled=5 ScheduleToStart\n"
                  "7 WorkflowTaskScheduled attempt=1\n8 WorkflowTaskStarted scheduled=7\n"
                  "9 WorkflowTaskCompleted scheduled=7 started=8\n10 WorkflowExecutionUpdateAccepted up of=7\n"
                  "11 WorkflowExecutionUpdateCompleted up accepted=10\n")

GOLDEN(
    an_update_leaves_the_queue_of_a_worker_that_shuts_down,
    "start wf; poll; complete sticky=s; poll queue=s as=x => parked; drop x; update wf up; shutdown s; poll says=/0/1;"
    "complete reject up; is u",
    FIRST_TASK)

/* ---- Speculative tasks ------------------------------------------------------------------------------------------------- */

GOLDEN(a_signal_makes_the_task_a_real_one,
       ASKED "signal wf s; complete says=reset0 reject up; is u says=completed:Refused; poll; complete done",
       UPDATED "8 WorkflowExecutionSignaled s\n9 WorkflowTaskScheduled attempt=1\n10 WorkflowTaskStarted scheduled=9\n"
               "11 WorkflowTaskCompleted scheduled=9 started=10\n12 WorkflowExecutionCompleted\n")

GOLDEN(a_signal_before_the_task_starts_makes_it_a_real_one,
       IDLE "update wf up; signal wf s; poll says=/0/1; complete says=reset0 reject up; is u",
       FIRST_TASK
       "5 WorkflowTaskScheduled attempt=1\n6 WorkflowExecutionSignaled s\n7 WorkflowTaskStarted scheduled=5\n"
       "8 WorkflowTaskCompleted scheduled=5 started=7\n")

GOLDEN(a_task_that_fails_is_a_real_one, ASKED "fail; poll says=/0/1; complete accept up, respond up; is u",
       UPDATE_TASK "7 WorkflowTaskFailed scheduled=5 started=6 WorkflowWorkerUnhandledFailure\n"
                   "8 WorkflowTaskScheduled attempt=2\n9 WorkflowTaskStarted scheduled=8\n"
                   "10 WorkflowTaskCompleted scheduled=8 started=9\n11 WorkflowExecutionUpdateAccepted up of=8\n"
                   "12 WorkflowExecutionUpdateCompleted up accepted=11\n")

GOLDEN(a_task_that_times_out_is_a_real_one,
       "start wf task=1s; poll; complete; update wf up; poll; time 2s; poll says=/0/1; complete accept up, respond up; "
       "is u",
       "1 WorkflowExecutionStarted\n2 WorkflowTaskScheduled attempt=1 timeout=1s\n"
       "3 WorkflowTaskStarted scheduled=2\n4 WorkflowTaskCompleted scheduled=2 started=3\n"
       "5 WorkflowTaskScheduled attempt=1 timeout=1s\n6 WorkflowTaskStarted scheduled=5\n"
       "7 WorkflowTaskTimedOut scheduled=5 started=6 StartToClose\n"
       "8 WorkflowTaskScheduled attempt=2 timeout=1s\n9 WorkflowTaskStarted scheduled=8\n"
       "10 WorkflowTaskCompleted scheduled=8 started=9\n11 WorkflowExecutionUpdateAccepted up of=8\n"
       "12 WorkflowExecutionUpdateCompleted up accepted=11\n")

GOLDEN(a_dropped_task_cannot_be_answered_again,
       ASKED "complete reject up; is u; update wf up; poll as=x says=/0/1; complete reject up => not_found;"
             "complete of=x accept up, respond up; is u says=completed:fine",
       ACCEPTED "9 WorkflowExecutionUpdateCompleted up accepted=8\n")

GOLDEN(a_task_that_is_handed_out_again_has_the_same_updates,
       ASKED "update wf late as=v; unwanted w; poll as=x says=/0/1; complete of=x accept up, respond up; is u;"
             "is v => parked; poll says=/0/1; complete discard reject late; is v says=completed:Refused",
       ACCEPTED "9 WorkflowExecutionUpdateCompleted up accepted=8\n")

GOLDEN(
    a_worker_may_have_to_see_events_twice,
    "start wf; poll; complete timer t 1h, marker m; update wf up; poll; complete discard says=reset3 reject up; is u;"
    "update wf up; poll; complete says=reset0 reject up; is u",
    FIRST_TASK "5 TimerStarted t after=3600s\n6 MarkerRecorded m\n7 WorkflowTaskScheduled attempt=1\n"
               "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n")

GOLDEN(a_query_goes_with_a_speculative_task,
       IDLE "update wf up; query wf q; poll says=/1/1; complete answer=fine reject up; is u; is q says=fine",
       FIRST_TASK)

GOLDEN(a_query_of_a_dropped_task_gets_its_own,
       IDLE "update wf up; query wf q; poll says=/1/1; complete reject up; is u; poll says=q/0/0; qanswer; is q",
       FIRST_TASK)

/* ---- The end of the run -------------------------------------------------------------------------------------------------- */

GOLDEN(a_run_that_closes_aborts_what_is_not_accepted, ASKED "complete done; is u => not_found",
       UPDATED "8 WorkflowExecutionCompleted\n")

GOLDEN(a_run_that_is_terminated_aborts_what_waits, IDLE "update wf up; terminate wf; is u => not_found",
       FIRST_TASK "5 WorkflowExecutionTerminated 'enough'\n")

GOLDEN(a_run_that_is_terminated_aborts_what_a_worker_has,
       ASKED "terminate wf; is u => not_found; complete accept up => not_found",
       UPDATE_TASK
       "7 WorkflowTaskFailed scheduled=5 started=6 ForceCloseCommand\n8 WorkflowExecutionTerminated 'enough'\n")

GOLDEN(an_accepted_update_ends_with_its_run,
       ASKED "complete accept up, done; is u says=completed:AcceptedUpdateCompletedWorkflow;"
             "updpoll wf up says=completed:AcceptedUpdateCompletedWorkflow => answer",
       ACCEPTED "9 WorkflowExecutionCompleted\n")

GOLDEN(an_accepted_update_ends_with_a_termination,
       ASKED "complete accept up; is u => parked; terminate wf; is u says=completed:AcceptedUpdateCompletedWorkflow",
       ACCEPTED "9 WorkflowExecutionTerminated 'enough'\n")

GOLDEN(a_closed_run_has_the_outcomes_of_its_updates,
       ASKED "complete accept up, respond up, done; is u; update wf up says=completed:fine => answer;"
             "update wf other as=v => not_found",
       ACCEPTED "9 WorkflowExecutionUpdateCompleted up accepted=8\n10 WorkflowExecutionCompleted\n")

static void a_run_that_goes_on_wants_its_updates_again(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; update wf up; complete continue; is u => limit; update wf up; poll says=/0/1;"
                    "complete accept up, respond up; is u says=completed:fine");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK
                   "5 WorkflowExecutionUpdateAccepted up of=2\n6 WorkflowExecutionUpdateCompleted up accepted=5\n");
}

/* Whether this event of the workflow "wf" accepts an update and has its request. */
static bool has_request(int64_t event_id)
{
    hf_arena arena;
    hf_op op;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_rig_heap);
    hf_str history = hf_rig_history_bytes(&rig, "wf");
    hf_str bytes = {0};
    bool has = false;
    while (history.len > 0 && hf_history_next(&history, &bytes)) {
        hf_pb_history_event event;
        assert_int_equal(hf_pb_decode(&op, &hf_pb_history_event_type, bytes, &arena, &event), HF_OK);
        has |= event.event_id == event_id && event.event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED &&
               event.workflow_execution_update_accepted_event_attributes->accepted_request != NULL;
    }
    hf_arena_deinit(&arena);
    return has;
}

/* A reset admits updates again by events. A worker that rejects one, or passes it over, leaves it like any other rejected update: its callers
 * are told, it takes no room, and whoever asks again gets another answer. */
static void an_update_that_a_reset_brought_is_rejected_like_another(void **state)
{
    (void)state;
    again(&(hf_core_options){.limits = {.updates_in_flight = 2}});
    hf_rig_do(&rig, IDLE "update wf up; poll; complete accept up; update wf vp as=v; poll; complete accept vp;"
                         "reset wf 4; poll says=/0/0; update wf up as=x; updpoll wf vp as=y wait=accepted;"
                         "complete reject up; is x says=completed:Refused; is y says=completed:UnprocessedUpdate;"
                         "updpoll wf up => not_found; updpoll wf vp wait=nothing => not_found; crash;"
                         "update wf op as=o; poll says=/0/1; complete accept op, respond op; is o says=completed:fine;"
                         "update wf up as=x; update wf vp as=y; update wf wp as=z => limit; poll says=/0/2;"
                         "complete accept up, respond up, reject vp; is x says=completed:fine;"
                         "is y says=completed:Refused; updpoll wf up says=completed:fine => answer");
    hf_rig_history(&rig, "wf",
                   "1 WorkflowExecutionStarted\n"
                   "2 WorkflowTaskScheduled attempt=1\n"
                   "3 WorkflowTaskStarted scheduled=2\n"
                   "4 WorkflowTaskFailed scheduled=2 started=3 ResetWorkflow\n"
                   "5 WorkflowExecutionUpdateAdmitted\n"
                   "6 WorkflowExecutionUpdateAdmitted\n"
                   "7 WorkflowTaskScheduled attempt=1\n"
                   "8 WorkflowTaskStarted scheduled=7\n"
                   "9 WorkflowTaskCompleted scheduled=7 started=8\n"
                   "10 WorkflowTaskScheduled attempt=1\n"
                   "11 WorkflowTaskStarted scheduled=10\n"
                   "12 WorkflowTaskCompleted scheduled=10 started=11\n"
                   "13 WorkflowExecutionUpdateAccepted op of=10\n"
                   "14 WorkflowExecutionUpdateCompleted op accepted=13\n"
                   "15 WorkflowTaskScheduled attempt=1\n"
                   "16 WorkflowTaskStarted scheduled=15\n"
                   "17 WorkflowTaskCompleted scheduled=15 started=16\n"
                   "18 WorkflowExecutionUpdateAccepted up of=15\n"
                   "19 WorkflowExecutionUpdateCompleted up accepted=18\n");
    assert_true(has_request(18)); /* a worker got it as a message, and a replay finds it there */
    hf_rig_do(&rig,
              "update wf vp as=y; signal wf s; poll says=/0/1; crash; complete accept vp; updpoll wf vp wait=accepted"
              " says=accepted => answer");
    assert_true(has_request(24));
}

/* ---- Refused ------------------------------------------------------------------------------------------------------------- */

GOLDEN(a_response_without_an_acceptance_fails_the_task,
       ASKED "complete respond up => invalid; is u => not_ready; terminate wf",
       UPDATE_TASK "7 WorkflowTaskFailed scheduled=5 started=6 BadUpdateWorkflowExecutionMessage\n"
                   "8 WorkflowExecutionTerminated 'enough'\n")

GOLDEN(nothing_is_done_if_one_message_is_bad,
       ASKED "complete accept up, timer t 1s, respond nobody => invalid; terminate wf",
       UPDATE_TASK "7 WorkflowTaskFailed scheduled=5 started=6 BadUpdateWorkflowExecutionMessage\n"
                   "8 WorkflowExecutionTerminated 'enough'\n")

static void message_is(const char *slot, hf_status status, const char *message)
{
    const hf_call *call = &hf_rig_slot(&rig, slot)->call;
    assert_int_equal(call->status, status);
    assert_string_equal(call->message, message);
}

static void what_is_refused_says_why(void **state)
{
    (void)state;
    hf_rig_do(
        &rig,
        "update none up => not_found; start wf; updpoll wf none => not_found; update wf up first=no => not_found");
    message_is("u", HF_ERR_NOT_FOUND, "workflow execution not found");
    hf_rig_do(&rig,
              "poll; complete; update wf up wait=admitted => denied; update wf up; terminate wf; is u => not_found");
    message_is("u", HF_ERR_NOT_FOUND, "workflow update was aborted by closing workflow");
    hf_rig_do(&rig, "update wf up => not_found");
    message_is("u", HF_ERR_NOT_FOUND, "workflow execution already completed");
    hf_rig_do(&rig, "start w2; poll; fail; poll; fail; update w2 up => not_ready");
    message_is("u", HF_ERR_NOT_READY,
               "Unable to perform workflow execution update due to Workflow Task in failed state.");
}

static void a_run_takes_a_bounded_number_of_updates(void **state)
{
    (void)state;
    again(&(hf_core_options){.limits = {.updates = 3, .updates_in_flight = 2}});
    hf_rig_do(&rig, IDLE "update wf a; update wf b as=v; update wf c as=x => limit; poll says=/0/2;"
                         "complete accept a, respond a, accept b, respond b; is u; is v; update wf d; poll;"
                         "complete accept d, respond d; is u");
    const hf_call *call = &hf_rig_slot(&rig, "x")->call;
    const hf_pb_resource_exhausted_failure *detail = call->detail;
    assert_ptr_equal(call->detail_type, &hf_pb_resource_exhausted_failure_type);
    assert_int_equal(detail->cause, HF_RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT);
    hf_rig_do(&rig, "update wf e => not_ready; update wf a says=completed:fine => answer");
}

static void a_caller_that_waits_long_hears_the_stage(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              IDLE "update wf up; time 20s; is u says=admitted; update wf up; poll says=/0/1; complete accept up;"
                   "time 20s; is u says=accepted; updpoll wf up; time 20s; is u says=accepted; updpoll wf up; drop u;"
                   "is u => canceled");
    assert_null(HF_SLOT(hf_run_find(rig.core, 1))->unwritten);
}

/* ---- Commits and crashes --------------------------------------------------------------------------------------------------- */

static void a_rejected_update_costs_no_commit(void **state)
{
    (void)state;
    hf_rig_do(&rig, IDLE);
    uint64_t commits = rig.commits;
    hf_rig_do(&rig, "update wf up; poll; complete reject up; is u");
    assert_int_equal(rig.commits, commits);
}

static void nothing_is_told_before_its_commit(void **state)
{
    (void)state;
    hf_rig_do(&rig, ASKED);
    rig.hold = true;
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    (void)hf_rig_try(&rig, "complete accept up, respond up");
    assert_false(slot->done);
    assert_false(hf_rig_slot(&rig, "u")->done);
    rig.hold = false;
    assert_true(hf_rig_settle(&rig));
    hf_rig_do(&rig, "is u says=completed:fine");
}

static void a_crash_leaves_what_was_accepted(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              ASKED "crash; is u => closed; complete accept up => not_found; updpoll wf up => not_found;"
                    "update wf up; poll as=x; complete of=x accept up; crash; updpoll wf up; crash; signal wf s;"
                    "updpoll wf up; poll as=y says=/0/0; complete of=y respond up; is u says=completed:fine; crash;"
                    "update wf up says=completed:fine => answer");
}

static void an_answer_brings_back_what_a_crash_took(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; update wf up; poll; crash; complete accept up, respond up;"
                    "update wf up says=completed:fine => answer");
    assert_true(hf_rig_probe(&rig, HF_PROBE_UPDATE_RESURRECTED) > 0);
}

static void outcomes_are_read_from_rows(void **state)
{
    (void)state;
    again(&(hf_core_options){.mem_max = 1, .trim_count = 1, .tail_len_max = 1});
    hf_rig_do(&rig, ASKED "complete accept up, respond up, done; is u; start other; crash;"
                          "update wf up says=completed:fine => answer; updpoll wf up says=completed:fine => answer;"
                          "updstart wf up says=used/completed:fine => answer");
}

/* ---- With a start ------------------------------------------------------------------------------------------------------------ */

GOLDEN(a_start_and_an_update_are_one,
       "updstart wf up; poll says=/0/1; complete accept up, respond up; is u says=started/completed:fine;"
       "updstart wf up conflict=2 says=used/completed:fine => answer",
       FIRST_TASK "5 WorkflowExecutionUpdateAccepted up of=2\n6 WorkflowExecutionUpdateCompleted up accepted=5\n")

GOLDEN(a_start_whose_update_is_rejected_stays,
       "updstart wf up; poll; complete reject up; is u says=started/completed:Refused", FIRST_TASK)

GOLDEN(an_update_with_start_uses_the_run_that_is_there,
       IDLE "updstart wf up conflict=2; poll; complete accept up, respond up; is u says=used/completed:fine",
       ACCEPTED "9 WorkflowExecutionUpdateCompleted up accepted=8\n")

GOLDEN(a_repeated_update_with_start_finds_the_closed_run,
       "updstart wf up; poll; complete accept up, respond up, done; is u; updstart wf up says=used/completed:fine => "
       "answer",
       FIRST_TASK "5 WorkflowExecutionUpdateAccepted up of=2\n6 WorkflowExecutionUpdateCompleted up accepted=5\n"
                  "7 WorkflowExecutionCompleted\n")

static void statuses_are(int32_t start, int32_t update, const char *message)
{
    const hf_call *call = &hf_rig_slot(&rig, "u")->call;
    assert_ptr_equal(call->detail_type, &hf_pb_multi_operation_execution_failure_type);
    const hf_pb_multi_operation_execution_failure *detail = call->detail;
    assert_int_equal(detail->statuses.count, 2);
    assert_int_equal(detail->statuses.items[0].code, start);
    assert_int_equal(detail->statuses.items[1].code, update);
    assert_string_equal(call->message, "Update-with-Start could not be executed.");
    hf_str said = detail->statuses.items[start == 10 ? 1 : 0].message;
    assert_true(message == NULL || hf_str_equal(said, hf_str_of(message)));
    hf_str aborted = detail->statuses.items[start == 10 ? 0 : 1].details.items[0].type_url;
    assert_true(
        hf_str_equal(
            aborted,
            HF_STR(
                "type.googleapis.com/temporal.api.errordetails.v1.MultiOperationExecutionFailure.OperationStatus")) ||
        aborted.len > 0);
}

static void each_part_of_a_failed_call_says_why(void **state)
{
    (void)state;
    hf_rig_do(&rig, "updstart wf up half => invalid; updstart wf up cron=@every_1s => invalid");
    statuses_are(3, 10, "CronSchedule is not allowed.");
    hf_rig_do(&rig, "updstart wf up delay=1s => invalid");
    statuses_are(3, 10, "WorkflowStartDelay is not supported.");
    hf_rig_do(&rig, "updstart wf up eager => invalid");
    statuses_are(3, 10, "RequestEagerExecution is not supported.");
    hf_rig_do(&rig, "updstart wf up wait=admitted => denied");
    statuses_are(10, 7, NULL);
    hf_rig_do(&rig, IDLE "updstart wf up => exists");
    statuses_are(6, 10, NULL);
    const hf_pb_multi_operation_execution_failure *detail = hf_rig_slot(&rig, "u")->call.detail;
    assert_int_equal(detail->statuses.items[0].details.count, 1);
    hf_rig_do(&rig, "terminate wf; updstart wf up reuse=3 => exists");
    statuses_are(6, 10, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_update_is_accepted_and_completed_by_one_task),
        TEST(messages_need_no_commands),
        TEST(an_update_that_fails_has_its_failure),
        TEST(a_rejected_update_leaves_no_trace),
        TEST(an_update_that_a_worker_ignores_is_rejected),
        TEST(a_rejection_with_commands_is_written),
        TEST(an_update_is_accepted_by_one_task_and_completed_by_another),
        TEST(who_waits_for_accepted_gets_the_outcome_if_it_is_there),
        TEST(the_same_id_is_the_same_update),
        TEST(an_update_goes_with_the_first_task),
        TEST(an_update_during_a_task_comes_after_it),
        TEST(an_update_goes_to_the_worker_that_has_the_run),
        TEST(an_update_leaves_the_sticky_queue_when_nobody_takes_it),
        TEST(an_update_leaves_the_queue_of_a_worker_that_shuts_down),
        TEST(a_signal_makes_the_task_a_real_one),
        TEST(a_signal_before_the_task_starts_makes_it_a_real_one),
        TEST(a_task_that_fails_is_a_real_one),
        TEST(a_task_that_times_out_is_a_real_one),
        TEST(a_dropped_task_cannot_be_answered_again),
        TEST(a_task_that_is_handed_out_again_has_the_same_updates),
        TEST(a_worker_may_have_to_see_events_twice),
        TEST(a_query_goes_with_a_speculative_task),
        TEST(a_query_of_a_dropped_task_gets_its_own),
        TEST(a_run_that_closes_aborts_what_is_not_accepted),
        TEST(a_run_that_is_terminated_aborts_what_waits),
        TEST(a_run_that_is_terminated_aborts_what_a_worker_has),
        TEST(an_accepted_update_ends_with_its_run),
        TEST(an_accepted_update_ends_with_a_termination),
        TEST(a_closed_run_has_the_outcomes_of_its_updates),
        TEST(a_run_that_goes_on_wants_its_updates_again),
        TEST(an_update_that_a_reset_brought_is_rejected_like_another),
        TEST(a_response_without_an_acceptance_fails_the_task),
        TEST(nothing_is_done_if_one_message_is_bad),
        TEST(what_is_refused_says_why),
        TEST(a_run_takes_a_bounded_number_of_updates),
        TEST(a_caller_that_waits_long_hears_the_stage),
        TEST(a_rejected_update_costs_no_commit),
        TEST(nothing_is_told_before_its_commit),
        TEST(a_crash_leaves_what_was_accepted),
        TEST(an_answer_brings_back_what_a_crash_took),
        TEST(outcomes_are_read_from_rows),
        TEST(a_start_and_an_update_are_one),
        TEST(a_start_whose_update_is_rejected_stays),
        TEST(an_update_with_start_uses_the_run_that_is_there),
        TEST(a_repeated_update_with_start_finds_the_closed_run),
        TEST(each_part_of_a_failed_call_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
