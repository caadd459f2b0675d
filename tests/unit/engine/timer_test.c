/* Timers. */
#include "fixture.h"

#include "engine/load.h"

#include <stdio.h>

GOLDEN(a_timer_fires_once_after_a_restart, "start wf; poll; complete timer t 5s; crash; time 5s; crash; time 1h",
       FIRST_TASK "5 TimerStarted t after=5s\n6 TimerFired t started=5\n7 WorkflowTaskScheduled attempt=1\n")

GOLDEN(timers_fire_in_the_order_of_their_times, "start wf; poll; complete timer c 3s, timer a 1s, timer b 1s; time 10s",
       FIRST_TASK "5 TimerStarted c after=3s\n6 TimerStarted a after=1s\n7 TimerStarted b after=1s\n"
                  "8 TimerFired a started=6\n9 TimerFired b started=7\n10 TimerFired c started=5\n"
                  "11 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_timer_of_no_time_fires_at_once, "start wf; poll; complete timer t 0s",
       FIRST_TASK "5 TimerStarted t\n6 TimerFired t started=5\n7 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_canceled_timer_never_fires,
       "start wf; poll; complete timer t 5s; signal wf s; poll; complete untimer t; time 1h",
       FIRST_TASK "5 TimerStarted t after=5s\n6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                  "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                  "10 TimerCanceled t started=5\n")

GOLDEN(a_cancel_takes_a_buffered_firing_back,
       "start wf; poll; complete timer t 5s; signal wf s; poll; time 5s; crash; complete untimer t",
       FIRST_TASK "5 TimerStarted t after=5s\n6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                  "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                  "10 TimerCanceled t started=5\n")

GOLDEN(a_buffered_firing_follows_the_task,
       "start wf; poll; complete timer t 5s; signal wf s; poll; time 5s; crash; complete",
       FIRST_TASK "5 TimerStarted t after=5s\n6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                  "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                  "10 TimerFired t started=5\n11 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_timer_that_fires_while_its_task_waits_appends,
       "start wf; poll; complete timer t 5s, timer u 6s; time 5s; time 1s",
       FIRST_TASK "5 TimerStarted t after=5s\n6 TimerStarted u after=6s\n7 TimerFired t started=5\n"
                  "8 WorkflowTaskScheduled attempt=1\n9 TimerFired u started=6\n")

GOLDEN(timers_of_a_closed_run_are_gone, "start wf; poll; complete timer t 5s; terminate wf; time 5s",
       FIRST_TASK "5 TimerStarted t after=5s\n6 WorkflowExecutionTerminated 'enough'\n")

GOLDEN(an_id_can_be_used_again_after_its_timer_fired,
       "start wf; poll; complete timer t 5s; time 5s; poll; complete timer t 5s",
       FIRST_TASK "5 TimerStarted t after=5s\n6 TimerFired t started=5\n7 WorkflowTaskScheduled attempt=1\n"
                  "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                  "10 TimerStarted t after=5s\n")

/* The firing is the only news, and the workflow takes it back. */
GOLDEN(
    a_run_may_close_while_only_firings_that_it_takes_back_are_buffered,
    "start wf; poll; complete timer t 5s, timer u 5s; signal wf s; poll; time 5s; complete untimer t, untimer u, done",
    FIRST_TASK "5 TimerStarted t after=5s\n6 TimerStarted u after=5s\n7 WorkflowExecutionSignaled s\n"
               "8 WorkflowTaskScheduled attempt=1\n9 WorkflowTaskStarted scheduled=8\n"
               "10 WorkflowTaskCompleted scheduled=8 started=9\n11 TimerCanceled t started=5\n"
               "12 TimerCanceled u started=6\n13 WorkflowExecutionCompleted\n")

/* The second of that name has not fired: it takes no event back. */
GOLDEN(a_run_does_not_close_while_another_firing_is_buffered,
       "start wf; poll; complete timer t 5s, timer u 5s; signal wf s; poll; time 5s;"
       "complete untimer t, timer t 1h, untimer t, done => invalid",
       FIRST_TASK "5 TimerStarted t after=5s\n6 TimerStarted u after=5s\n7 WorkflowExecutionSignaled s\n"
                  "8 WorkflowTaskScheduled attempt=1\n9 WorkflowTaskStarted scheduled=8\n"
                  "10 WorkflowTaskFailed scheduled=8 started=9 UnhandledCommand\n11 TimerFired t started=5\n"
                  "12 TimerFired u started=6\n13 WorkflowTaskScheduled attempt=1\n")

/* So many that they are found by a table. Each step compares the run with its history, and looks for each timer by its id. */
static void many_timers_are_found_by_their_ids(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        again(&(hf_core_options){.mem_max = small != 0 ? 1 : 0});
        hf_rig_do(&rig, "start wf");
        for (int i = 0; i < 100; i += 4) {
            char step[300];
            (void)snprintf(step, sizeof step,
                           "poll; complete timer t%d %ds, timer t%d %ds, timer t%d %ds, timer t%d %ds; signal wf s", i,
                           1000 + i * 37 % 100, i + 1, 1000 + (i + 1) * 37 % 100, i + 2, 1000 + (i + 2) * 37 % 100,
                           i + 3, 1000 + (i + 3) * 37 % 100);
            hf_rig_do(&rig, step);
        }
        hf_rig_do(&rig, "crash; poll; complete timer t50 1s => invalid; poll; complete untimer t50, timer t50 "
                        "1s, untimer t0, untimer t99, untimer t17; signal wf s; poll; complete untimer t0 => invalid;"
                        "time 1s; crash; poll; complete timer t0 1h, timer t50 1h");
        hf_run *run = hf_run_find(rig.core, 1);
        if (run != NULL) {
            assert_int_equal(run->timers.count, 99 - 2 + 1);
            assert_non_null(hf_run_timer_by_id(run, HF_STR("t98")));
            assert_null(hf_run_timer_by_id(run, HF_STR("t99")));
            assert_null(hf_run_timer_by_id(run, HF_STR("t100")));
        }
        hf_rig_do(&rig, "time 2000s; poll; complete timer t1 1s, untimer t0, untimer t50; time 1s; poll; complete");
        run = hf_run_find(rig.core, 1);
        assert_true(run == NULL || (run->timers.count == 0 && run->timer_index == NULL));
        hf_rig_do(&rig, "signal wf s; poll; complete done");
    }
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_timer_fires_once_after_a_restart),
    TEST(timers_fire_in_the_order_of_their_times),
    TEST(a_timer_of_no_time_fires_at_once),
    TEST(a_canceled_timer_never_fires),
    TEST(a_cancel_takes_a_buffered_firing_back),
    TEST(a_buffered_firing_follows_the_task),
    TEST(a_timer_that_fires_while_its_task_waits_appends),
    TEST(timers_of_a_closed_run_are_gone),
    TEST(an_id_can_be_used_again_after_its_timer_fired),
    TEST(a_run_may_close_while_only_firings_that_it_takes_back_are_buffered),
    TEST(a_run_does_not_close_while_another_firing_is_buffered),
    TEST(many_timers_are_found_by_their_ids),
};

int main(int argc, char **argv)
{
    return hf_test_main("timer", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
