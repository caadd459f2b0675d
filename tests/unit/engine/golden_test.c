/* Golden event sequences: one for each rule that Temporal SDKs rely on. */
#include "fixture.h"

/* ---- Event ids and history ------------------------------------------------------------------------------------------ */

GOLDEN(a_start_schedules_a_workflow_task, "start wf", START)

GOLDEN(ids_are_dense_and_commands_become_events_in_their_order,
       "start wf; poll; complete marker m, timer t1 5s, activity a1, timer t2 1s, done",
       FIRST_TASK "5 MarkerRecorded m\n6 TimerStarted t1 after=5s\n7 ActivityTaskScheduled a1\n"
                  "8 TimerStarted t2 after=1s\n9 WorkflowExecutionCompleted\n")

GOLDEN(a_workflow_that_fails_ends_with_its_failure, "start wf; poll; complete failed",
       FIRST_TASK "5 WorkflowExecutionFailed\n")

GOLDEN(started_is_written_together_with_the_outcome_of_an_activity,
       "start wf; poll; complete activity a1; apoll; acomplete; poll; complete done",
       FIRST_TASK "5 ActivityTaskScheduled a1\n6 ActivityTaskStarted scheduled=5 attempt=1\n"
                  "7 ActivityTaskCompleted scheduled=5 started=6\n8 WorkflowTaskScheduled attempt=1\n"
                  "9 WorkflowTaskStarted scheduled=8\n10 WorkflowTaskCompleted scheduled=8 started=9\n"
                  "11 WorkflowExecutionCompleted\n")

GOLDEN(a_running_activity_is_not_in_history, "start wf; poll; complete activity a1; apoll; heartbeat",
       FIRST_TASK "5 ActivityTaskScheduled a1\n")

GOLDEN(events_during_a_started_task_are_buffered_and_follow_the_commands,
       "start wf; poll; signal wf s1; signal wf s2; complete marker m",
       FIRST_TASK "5 MarkerRecorded m\n6 WorkflowExecutionSignaled s1\n7 WorkflowExecutionSignaled s2\n"
                  "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(completions_of_activities_move_behind_other_buffered_events,
       "start wf; poll; complete activity a1; apoll; signal wf s1; poll; acomplete; signal wf s2; complete",
       FIRST_TASK "5 ActivityTaskScheduled a1\n6 WorkflowExecutionSignaled s1\n7 WorkflowTaskScheduled attempt=1\n"
                  "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                  "10 ActivityTaskStarted scheduled=5 attempt=1\n11 WorkflowExecutionSignaled s2\n"
                  "12 ActivityTaskCompleted scheduled=5 started=10\n13 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_close_over_buffered_events_fails_the_task, "start wf; poll; signal wf s1; complete done => invalid",
       START "3 WorkflowTaskStarted scheduled=2\n4 WorkflowTaskFailed scheduled=2 started=3 UnhandledCommand\n"
             "5 WorkflowExecutionSignaled s1\n6 WorkflowTaskScheduled attempt=1\n")

GOLDEN(retries_are_invisible_and_the_last_attempt_tells_of_them,
       "start wf; poll; complete activity a1; apoll; afail type=First; time 1s; apoll; afail type=Second; time 2s;"
       "apoll; acomplete",
       FIRST_TASK "5 ActivityTaskScheduled a1\n6 ActivityTaskStarted scheduled=5 attempt=3 failure=Second\n"
                  "7 ActivityTaskCompleted scheduled=5 started=6\n8 WorkflowTaskScheduled attempt=1\n")

/* ---- Workflow task lifecycle ---------------------------------------------------------------------------------------- */

GOLDEN(one_workflow_task_is_pending_and_events_append_to_it, "start wf; signal wf s1; signal wf s2; poll",
       START "3 WorkflowExecutionSignaled s1\n4 WorkflowExecutionSignaled s2\n5 WorkflowTaskStarted scheduled=2\n")

GOLDEN(a_sticky_task_nobody_takes_times_out_and_goes_to_the_normal_queue,
       "start wf; poll; complete sticky=s; poll queue=s as=x => parked; drop x; signal wf s1; poll => parked;"
       "time 10s; is w => task",
       FIRST_TASK "5 WorkflowExecutionSignaled s1\n6 WorkflowTaskScheduled attempt=1\n"
                  "7 WorkflowTaskTimedOut scheduled=6 ScheduleToStart\n8 WorkflowTaskScheduled attempt=1\n"
                  "9 WorkflowTaskStarted scheduled=8\n")

GOLDEN(later_attempts_write_nothing_until_one_completes,
       "start wf; poll; fail; poll; fail; poll; time 10s; poll; complete done",
       START "3 WorkflowTaskStarted scheduled=2\n"
             "4 WorkflowTaskFailed scheduled=2 started=3 WorkflowWorkerUnhandledFailure\n"
             "5 WorkflowTaskScheduled attempt=4 timeout=15s\n6 WorkflowTaskStarted scheduled=5\n"
             "7 WorkflowTaskCompleted scheduled=5 started=6\n8 WorkflowExecutionCompleted\n")

GOLDEN(events_before_a_later_attempt_make_it_a_first_one, "start wf; poll; fail; signal wf s1; poll; complete done",
       START "3 WorkflowTaskStarted scheduled=2\n"
             "4 WorkflowTaskFailed scheduled=2 started=3 WorkflowWorkerUnhandledFailure\n"
             "5 WorkflowExecutionSignaled s1\n6 WorkflowTaskScheduled attempt=1\n7 WorkflowTaskStarted scheduled=6\n"
             "8 WorkflowTaskCompleted scheduled=6 started=7\n9 WorkflowExecutionCompleted\n")

GOLDEN(a_task_that_is_not_answered_times_out, "start wf; poll; time 10s",
       START "3 WorkflowTaskStarted scheduled=2\n4 WorkflowTaskTimedOut scheduled=2 started=3 StartToClose\n")

GOLDEN(a_first_failure_on_a_sticky_queue_only_clears_the_stickiness,
       "start wf; poll; complete sticky=s; poll queue=s as=x => parked; signal wf s1; is x; fail of=x",
       FIRST_TASK
       "5 WorkflowExecutionSignaled s1\n6 WorkflowTaskScheduled attempt=1\n7 WorkflowTaskStarted scheduled=6\n"
       "8 WorkflowTaskFailed scheduled=6 started=7 WorkflowWorkerUnhandledFailure\n"
       "9 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_completion_may_force_the_next_task, "start wf; poll; complete force",
       FIRST_TASK "5 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_completion_without_commands_waits, "start wf; poll; complete", FIRST_TASK)

GOLDEN(late_and_repeated_completions_are_not_found,
       "start wf; poll; complete timer t 5s; complete timer t 5s => not_found; fail => not_found",
       FIRST_TASK "5 TimerStarted t after=5s\n")

/* ---- Cancellation --------------------------------------------------------------------------------------------------- */

GOLDEN(an_activity_that_was_not_started_is_canceled_at_once,
       "start wf; poll; complete activity a1; signal wf s; poll; complete unactivity 5",
       FIRST_TASK "5 ActivityTaskScheduled a1\n6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                  "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                  "10 ActivityTaskCancelRequested scheduled=5\n11 ActivityTaskCanceled scheduled=5\n"
                  "12 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_running_activity_hears_of_its_cancel_by_heartbeat,
       "start wf; poll; complete activity a1; apoll; acancel => invalid; signal wf s; poll; complete unactivity 5;"
       "heartbeat asked; acancel",
       FIRST_TASK "5 ActivityTaskScheduled a1\n6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                  "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                  "10 ActivityTaskCancelRequested scheduled=5\n11 ActivityTaskStarted scheduled=5 attempt=1\n"
                  "12 ActivityTaskCanceled scheduled=5 started=11\n13 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_second_cancel_changes_nothing,
       "start wf; cancel wf; cancel wf; poll; complete canceled; cancel wf; terminate wf => not_found;"
       "signal wf s => not_found",
       START "3 WorkflowExecutionCancelRequested\n4 WorkflowTaskStarted scheduled=2\n"
             "5 WorkflowTaskCompleted scheduled=2 started=4\n6 WorkflowExecutionCanceled\n")

GOLDEN(a_cancel_during_a_task_is_buffered_once, "start wf; poll; cancel wf; cancel wf; complete",
       FIRST_TASK "5 WorkflowExecutionCancelRequested\n6 WorkflowTaskScheduled attempt=1\n")

GOLDEN(cancel_and_terminate_of_another_chain_are_not_found,
       "start wf; cancel wf first=no-such => not_found; terminate wf first=no-such => not_found", START)

/* ---- Idempotency ---------------------------------------------------------------------------------------------------- */

GOLDEN(a_repeated_start_is_the_same_run, "start wf request=r1; start wf request=r1; start wf request=r2 => exists",
       START)

GOLDEN(a_repeated_signal_is_one_event,
       "start wf; signal wf s request=r1; signal wf s request=r1; signal wf s request=r2",
       START "3 WorkflowExecutionSignaled s\n4 WorkflowExecutionSignaled s\n")

GOLDEN(a_repeated_signal_is_one_event_also_when_buffered,
       "start wf; poll; signal wf s request=r1; signal wf s request=r1; complete; signal wf s request=r1",
       FIRST_TASK "5 WorkflowExecutionSignaled s\n6 WorkflowTaskScheduled attempt=1\n")

/* ---- Task tokens ---------------------------------------------------------------------------------------------------- */

GOLDEN(a_token_survives_a_restart, "start wf; poll; crash; complete activity a1; apoll; crash; acomplete",
       FIRST_TASK "5 ActivityTaskScheduled a1\n6 ActivityTaskStarted scheduled=5 attempt=1\n"
                  "7 ActivityTaskCompleted scheduled=5 started=6\n8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(
    a_token_of_an_earlier_attempt_is_refused,
    "start wf; poll; complete activity a1; apoll as=old; afail of=old; time 1s; apoll; acomplete of=old => not_found;"
    "heartbeat of=old => not_found; acomplete",
    FIRST_TASK "5 ActivityTaskScheduled a1\n6 ActivityTaskStarted scheduled=5 attempt=2 failure=Oops\n"
               "7 ActivityTaskCompleted scheduled=5 started=6\n8 WorkflowTaskScheduled attempt=1\n")

/* ---- Timers, terminate, timeouts ------------------------------------------------------------------------------------ */

GOLDEN(a_timer_fires_when_its_time_has_come,
       "start wf; poll; complete timer t 5s; time 4999ms; poll => parked; time 1ms; is w",
       FIRST_TASK "5 TimerStarted t after=5s\n6 TimerFired t started=5\n7 WorkflowTaskScheduled attempt=1\n"
                  "8 WorkflowTaskStarted scheduled=7\n")

GOLDEN(terminate_ends_a_started_task_and_keeps_what_was_buffered, "start wf; poll; signal wf s; terminate wf",
       START "3 WorkflowTaskStarted scheduled=2\n4 WorkflowTaskFailed scheduled=2 started=3 ForceCloseCommand\n"
             "5 WorkflowExecutionSignaled s\n6 WorkflowExecutionTerminated 'enough'\n")

GOLDEN(a_run_timeout_closes_the_run, "start wf run=30s; poll; complete timer t 1h; time 30s",
       FIRST_TASK "5 TimerStarted t after=3600s\n6 WorkflowExecutionTimedOut\n")

static const struct CMUnitTest TESTS[] = {
    TEST(a_start_schedules_a_workflow_task),
    TEST(ids_are_dense_and_commands_become_events_in_their_order),
    TEST(a_workflow_that_fails_ends_with_its_failure),
    TEST(started_is_written_together_with_the_outcome_of_an_activity),
    TEST(a_running_activity_is_not_in_history),
    TEST(events_during_a_started_task_are_buffered_and_follow_the_commands),
    TEST(completions_of_activities_move_behind_other_buffered_events),
    TEST(a_close_over_buffered_events_fails_the_task),
    TEST(retries_are_invisible_and_the_last_attempt_tells_of_them),
    TEST(one_workflow_task_is_pending_and_events_append_to_it),
    TEST(a_sticky_task_nobody_takes_times_out_and_goes_to_the_normal_queue),
    TEST(later_attempts_write_nothing_until_one_completes),
    TEST(events_before_a_later_attempt_make_it_a_first_one),
    TEST(a_task_that_is_not_answered_times_out),
    TEST(a_first_failure_on_a_sticky_queue_only_clears_the_stickiness),
    TEST(a_completion_may_force_the_next_task),
    TEST(a_completion_without_commands_waits),
    TEST(late_and_repeated_completions_are_not_found),
    TEST(an_activity_that_was_not_started_is_canceled_at_once),
    TEST(a_running_activity_hears_of_its_cancel_by_heartbeat),
    TEST(a_second_cancel_changes_nothing),
    TEST(a_cancel_during_a_task_is_buffered_once),
    TEST(cancel_and_terminate_of_another_chain_are_not_found),
    TEST(a_repeated_start_is_the_same_run),
    TEST(a_repeated_signal_is_one_event),
    TEST(a_repeated_signal_is_one_event_also_when_buffered),
    TEST(a_token_survives_a_restart),
    TEST(a_token_of_an_earlier_attempt_is_refused),
    TEST(a_timer_fires_when_its_time_has_come),
    TEST(terminate_ends_a_started_task_and_keeps_what_was_buffered),
    TEST(a_run_timeout_closes_the_run),
};

int main(int argc, char **argv)
{
    return hf_test_main("golden", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
