/* Workflow tasks: stickiness, attempts, timeouts, bad commands, redelivery. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

/* The ids of the first and last event in a task. */
static void assert_events(const char *slot, int64_t first, int64_t last)
{
    hf_buf text;
    hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
    hf_rig_history_text(hf_rig_task(&rig, slot)->history, true, &text);
    long long from = strtoll(hf_buf_text(&text), NULL, 10);
    long long to = 0;
    for (const char *line = hf_buf_text(&text); *line != '\0'; line = strchr(line, '\n') + 1) {
        to = strtoll(line, NULL, 10);
    }
    hf_buf_deinit(&text);
    assert_int_equal(from, first);
    assert_int_equal(to, last);
}

static void a_sticky_task_carries_only_what_is_new(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete sticky=s; poll queue=s as=s => parked; signal wf s1; is s");
    assert_events("s", 4, 7); /* from the last started event on, which is 3 */
    assert_int_equal(hf_rig_task(&rig, "s")->previous_started_event_id, 3);
    assert_int_equal(hf_rig_task(&rig, "s")->started_event_id, 7);
    hf_rig_do(&rig, "complete of=s; signal wf s2; poll"); /* without sticky attributes: for all again */
    assert_events("w", 1, 11);
}

static void a_sticky_queue_without_pollers_is_skipped(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete sticky=s; poll queue=s as=s timeout=1s => parked; time 1s; is s => empty;"
                    "time 10001ms; signal wf s1; poll");
    assert_events("w", 1, 7);
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_STICKY_SKIPPED), 1);
}

static void a_reset_of_stickiness_frees_the_pending_task(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "start wf; poll; complete sticky=s sticky_for=1h; poll queue=s as=s => parked; drop s; signal wf s1;"
              "poll => parked; unstick wf; is w");
    assert_events("w", 1, 7);
}

static void a_reset_of_stickiness_is_the_same_after_a_crash(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "start wf; poll; complete sticky=s sticky_for=1h; poll queue=s as=s => parked; drop s; signal wf s1;"
              "unstick wf; crash; poll");
    assert_events("w", 1, 7);
}

static void a_worker_that_shuts_down_is_not_waited_for(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "start wf; poll; complete sticky=s; poll queue=s as=s => parked; drop s; shutdown s; signal wf s1; poll");
    assert_events("w", 1, 7);
}

/* The worker that had the run may have gone with the process, and would be waited for until sticky_for is over. */
static void a_sticky_task_is_for_every_worker_after_a_crash(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete sticky=s sticky_for=1h; poll queue=s as=s => parked; drop s;"
                    "signal wf s1; crash; poll");
    assert_events("w", 1, 7);
    hf_rig_do(&rig, "complete sticky=s; poll queue=s as=s => parked; signal wf s2; is s"); /* from then on as ever */
    assert_events("s", 8, 11);
}

/* The runs are loaded in another order than their tasks have begun to wait in. */
static void tasks_keep_their_order_over_a_crash(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start a; poll; complete sticky=s; start b; poll; complete; start c; poll; complete sticky=s;"
                    "start d; poll; complete; start e; poll; complete sticky=s; poll queue=s as=s => parked; drop s");
    hf_rig_do(&rig, "signal c x; signal b x; signal e x; signal d x; signal a x; crash");
    static const char *const IDS[] = {"c", "b", "e", "d", "a"};
    for (size_t i = 0; i < HF_COUNT_OF(IDS); i++) {
        hf_rig_do(&rig, "poll; complete done");
        assert_true(hf_str_equal(hf_rig_task(&rig, "w")->workflow_execution->workflow_id, hf_str_of(IDS[i])));
    }
}

static void a_transient_task_shows_its_two_events(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; fail; poll");
    assert_events("w", 1, 6);
    assert_int_equal(hf_rig_task(&rig, "w")->attempt, 2);
    assert_int_equal(hf_rig_task(&rig, "w")->started_event_id, 6);
    hf_rig_history(&rig, "wf",
                   START "3 WorkflowTaskStarted scheduled=2\n"
                         "4 WorkflowTaskFailed scheduled=2 started=3 WorkflowWorkerUnhandledFailure\n");
}

GOLDEN(a_transient_task_survives_a_crash_before_and_after_its_start,
       "start wf; poll; fail; crash; poll; crash; complete done",
       START "3 WorkflowTaskStarted scheduled=2\n"
             "4 WorkflowTaskFailed scheduled=2 started=3 WorkflowWorkerUnhandledFailure\n"
             "5 WorkflowTaskScheduled attempt=2\n6 WorkflowTaskStarted scheduled=5\n"
             "7 WorkflowTaskCompleted scheduled=5 started=6\n8 WorkflowExecutionCompleted\n")

GOLDEN(what_is_buffered_during_a_transient_task_makes_the_next_one_real,
       "start wf; poll; fail; poll; signal wf s1; fail; poll; complete done",
       START
       "3 WorkflowTaskStarted scheduled=2\n"
       "4 WorkflowTaskFailed scheduled=2 started=3 WorkflowWorkerUnhandledFailure\n5 WorkflowExecutionSignaled s1\n"
       "6 WorkflowTaskScheduled attempt=1\n7 WorkflowTaskStarted scheduled=6\n"
       "8 WorkflowTaskCompleted scheduled=6 started=7\n9 WorkflowExecutionCompleted\n")

GOLDEN(a_transient_task_that_completes_is_followed_by_what_was_buffered,
       "start wf; poll; fail; poll; signal wf s1; complete marker m",
       START "3 WorkflowTaskStarted scheduled=2\n"
             "4 WorkflowTaskFailed scheduled=2 started=3 WorkflowWorkerUnhandledFailure\n"
             "5 WorkflowTaskScheduled attempt=2\n6 WorkflowTaskStarted scheduled=5\n"
             "7 WorkflowTaskCompleted scheduled=5 started=6\n8 MarkerRecorded m\n9 WorkflowExecutionSignaled s1\n"
             "10 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_terminated_transient_task_leaves_no_events, "start wf; poll; fail; poll; signal wf s1; terminate wf",
       START
       "3 WorkflowTaskStarted scheduled=2\n"
       "4 WorkflowTaskFailed scheduled=2 started=3 WorkflowWorkerUnhandledFailure\n5 WorkflowExecutionSignaled s1\n"
       "6 WorkflowExecutionTerminated 'enough'\n")

static void commands_that_stay_bad_are_not_asked_for_without_a_pause(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete timer t 1s, timer t 1s => invalid;"
                    "poll; complete timer t 1s, timer t 1s => invalid; poll as=x => parked; time 9s; is x => parked;"
                    "time 1s; is x; complete of=x timer t 1s, timer t 1s => invalid; crash; poll => parked;"
                    "time 10s; is w; complete done");
    hf_rig_history(&rig, "wf",
                   START "3 WorkflowTaskStarted scheduled=2\n"
                         "4 WorkflowTaskFailed scheduled=2 started=3 StartTimerDuplicateId\n"
                         "5 WorkflowTaskScheduled attempt=4 timeout=15s\n6 WorkflowTaskStarted scheduled=5\n"
                         "7 WorkflowTaskCompleted scheduled=5 started=6\n8 WorkflowExecutionCompleted\n");
}

static void a_close_that_overlooked_something_goes_on_at_once_every_time(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; signal wf s1; complete done => invalid; poll; signal wf s2;"
                    "complete done => invalid; poll; signal wf s3; complete done => invalid; poll; complete done");
}

static void later_attempts_get_more_time(void **state)
{
    (void)state;
    static const int SECONDS[] = {10, 10, 10, 15, 20, 30, 50, 90}; /* 10, and 5 doubled from the fourth on */
    hf_rig_do(&rig, "start wf");
    for (size_t i = 0; i < HF_COUNT_OF(SECONDS); i++) {
        char steps[128];
        (void)snprintf(steps, sizeof steps, "poll; time %dms; poll as=x => parked; drop x; time 1ms",
                       SECONDS[i] * 1000 - 1);
        hf_rig_do(&rig, steps);
        hf_rig_do(&rig, "complete => not_found");
    }
    hf_rig_do(&rig, "poll; complete done");
    hf_rig_history(&rig, "wf",
                   START
                   "3 WorkflowTaskStarted scheduled=2\n4 WorkflowTaskTimedOut scheduled=2 started=3 StartToClose\n"
                   "5 WorkflowTaskScheduled attempt=9 timeout=170s\n6 WorkflowTaskStarted scheduled=5\n"
                   "7 WorkflowTaskCompleted scheduled=5 started=6\n8 WorkflowExecutionCompleted\n");
}

GOLDEN(the_task_timeout_is_the_one_of_the_start, "start wf task=3s; poll; time 2999ms; crash; time 1ms",
       "1 WorkflowExecutionStarted\n2 WorkflowTaskScheduled attempt=1 timeout=3s\n3 WorkflowTaskStarted scheduled=2\n"
       "4 WorkflowTaskTimedOut scheduled=2 started=3 StartToClose\n")

GOLDEN(a_time_out_lets_buffered_events_follow, "start wf; poll; signal wf s1; time 10s",
       START "3 WorkflowTaskStarted scheduled=2\n4 WorkflowTaskTimedOut scheduled=2 started=3 StartToClose\n"
             "5 WorkflowExecutionSignaled s1\n6 WorkflowTaskScheduled attempt=1\n")

GOLDEN(the_buffer_survives_a_crash, "start wf; poll; signal wf s1; crash; signal wf s2; complete",
       FIRST_TASK "5 WorkflowExecutionSignaled s1\n6 WorkflowExecutionSignaled s2\n7 WorkflowTaskScheduled attempt=1\n")

/* ---- Bad commands --------------------------------------------------------------------------------------------------- */

static void bad_commands_fail_the_task_and_change_nothing_else(void **state)
{
    (void)state;
    static const struct {
        const char *commands;
        const char *cause;
    } CASES[] = {
        {"timer t 1s, timer t 2s", "StartTimerDuplicateId"},
        {"timer t 1s, untimer u", "BadCancelTimerAttributes"},
        {"timer t 1s, untimer t, untimer t", "BadCancelTimerAttributes"},
        {"timer t 1s, untimer t, timer t 1s, timer t 1s", "StartTimerDuplicateId"},
        {"untimer t", "BadCancelTimerAttributes"},
        {"activity a, activity a", "ScheduleActivityDuplicateId"},
        {"activity a endless", "BadScheduleActivityAttributes"},
        {"activity a each=-1s", "BadScheduleActivityAttributes"},
        {"activity a retries=-1", "BadScheduleActivityAttributes"},
        {"unactivity 99", "BadRequestCancelActivityAttributes"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char text[256];
        print_message("%s\n", CASES[i].commands);
        (void)snprintf(text, sizeof text, "start wf; poll; complete %s => invalid", CASES[i].commands);
        hf_rig_do(&rig, text);
        (void)snprintf(text, sizeof text,
                       START "3 WorkflowTaskStarted scheduled=2\n4 WorkflowTaskFailed scheduled=2 started=3 %s\n",
                       CASES[i].cause);
        hf_rig_history(&rig, "wf", text);
        hf_rig_do(&rig, "poll; complete done");
    }
}

static void a_command_behind_the_close_is_refused_and_the_task_goes_on(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete done, timer t 1s => invalid; complete marker m, done, failed => invalid");
    hf_rig_history(&rig, "wf", START "3 WorkflowTaskStarted scheduled=2\n");
    hf_rig_do(&rig, "crash; complete done");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_BAD_SEQUENCE), 2);
}

static void an_activity_is_canceled_by_the_task_that_scheduled_it(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete marker m, activity a, activity b, unactivity 6; crash; apoll");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 MarkerRecorded m\n6 ActivityTaskScheduled a\n7 ActivityTaskScheduled b\n"
                              "8 ActivityTaskCancelRequested scheduled=6\n9 ActivityTaskCanceled scheduled=6\n"
                              "10 WorkflowTaskScheduled attempt=1\n");
    static const char *const BAD[] = {"unactivity 12", "activity c, unactivity 17, unactivity 17",
                                      "marker m, unactivity 22"};
    for (size_t i = 0; i < HF_COUNT_OF(BAD); i++) { /* not there yet, twice, and of another command */
        char text[128];
        (void)snprintf(text, sizeof text, "poll; complete %s => invalid; signal wf s", BAD[i]);
        hf_rig_do(&rig, text);
    }
}

static void an_unhandled_command_says_so_in_one_word(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; signal wf s; complete done => invalid");
    assert_string_equal(hf_rig_slot(&rig, NULL)->call.message, "UnhandledCommand");
}

GOLDEN(a_timer_may_be_started_again_after_it_was_canceled_in_the_same_task,
       "start wf; poll; complete timer t 1s, untimer t, timer t 2s",
       FIRST_TASK "5 TimerStarted t after=1s\n6 TimerCanceled t started=5\n7 TimerStarted t after=2s\n")

/* ---- Redelivery ----------------------------------------------------------------------------------------------------- */

static void a_task_that_nobody_took_goes_to_the_next_poll_with_the_same_token(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll as=x; unwanted x; crash; poll as=y; signal wf s1; unwanted y; poll as=z");
    hf_str x = hf_rig_task(&rig, "x")->task_token;
    assert_true(hf_str_equal(x, hf_rig_task(&rig, "y")->task_token));
    assert_true(hf_str_equal(x, hf_rig_task(&rig, "z")->task_token));
    assert_events("z", 1, 3);
    hf_rig_do(&rig, "unwanted z; complete of=x; poll; unwanted z");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 WorkflowExecutionSignaled s1\n6 WorkflowTaskScheduled attempt=1\n"
                              "7 WorkflowTaskStarted scheduled=6\n");
}

static void a_task_of_a_worker_that_died_is_handed_out_again_at_open(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll as=x in_process; crash; poll as=y");
    assert_true(hf_str_equal(hf_rig_task(&rig, "x")->task_token, hf_rig_task(&rig, "y")->task_token));
    hf_rig_do(&rig, "complete of=y");
    hf_rig_history(&rig, "wf", FIRST_TASK);
}

static void a_task_may_run_ahead_of_its_commit(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf");
    rig.hold = true;
    hf_rig_do(&rig, "poll as=far => parked; poll as=near => parked; drop near");
    assert_false(hf_rig_slot(&rig, "far")->done); /* decided, but not durable */
    rig.hold = false;
    assert_true(hf_rig_settle(&rig));
    hf_rig_do(&rig, "is far; complete of=far timer t 1s");
    rig.hold = true;
    hf_rig_do(&rig, "signal wf s => again; poll as=near in_process run_ahead => task");
    assert_true(hf_rig_slot(&rig, "near")->done);
    assert_false(hf_rig_slot(&rig, NULL)->done); /* but not the signal that caused it */
    rig.hold = false;
    assert_true(hf_rig_settle(&rig));
    assert_true(hf_rig_slot(&rig, NULL)->done);
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_sticky_task_carries_only_what_is_new),
    TEST(a_sticky_queue_without_pollers_is_skipped),
    TEST(a_reset_of_stickiness_frees_the_pending_task),
    TEST(a_reset_of_stickiness_is_the_same_after_a_crash),
    TEST(a_worker_that_shuts_down_is_not_waited_for),
    TEST(a_sticky_task_is_for_every_worker_after_a_crash),
    TEST(tasks_keep_their_order_over_a_crash),
    TEST(a_transient_task_shows_its_two_events),
    TEST(a_transient_task_survives_a_crash_before_and_after_its_start),
    TEST(what_is_buffered_during_a_transient_task_makes_the_next_one_real),
    TEST(a_transient_task_that_completes_is_followed_by_what_was_buffered),
    TEST(a_terminated_transient_task_leaves_no_events),
    TEST(commands_that_stay_bad_are_not_asked_for_without_a_pause),
    TEST(a_close_that_overlooked_something_goes_on_at_once_every_time),
    TEST(later_attempts_get_more_time),
    TEST(the_task_timeout_is_the_one_of_the_start),
    TEST(a_time_out_lets_buffered_events_follow),
    TEST(the_buffer_survives_a_crash),
    TEST(bad_commands_fail_the_task_and_change_nothing_else),
    TEST(a_command_behind_the_close_is_refused_and_the_task_goes_on),
    TEST(an_activity_is_canceled_by_the_task_that_scheduled_it),
    TEST(an_unhandled_command_says_so_in_one_word),
    TEST(a_timer_may_be_started_again_after_it_was_canceled_in_the_same_task),
    TEST(a_task_that_nobody_took_goes_to_the_next_poll_with_the_same_token),
    TEST(a_task_of_a_worker_that_died_is_handed_out_again_at_open),
    TEST(a_task_may_run_ahead_of_its_commit),
};

int main(int argc, char **argv)
{
    return hf_test_main("workflow_task", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
