/* Tasks that were in hand each time the process ended: counted, and from the third time on handed out last, alone and after a
 * pause (suspect.c). */
#include "engine/suspect.h"
#include "fixture.h"
#include "inspect/look.h"

#include <stdio.h>

#define SECOND INT64_C(1000000000)
#define THREE_CRASHES "poll in_process; crash; poll in_process; crash; poll in_process; crash"
#define THREE_CRASHES_OF_ACTIVITY "apoll in_process; crash; apoll in_process; crash; apoll in_process; crash"

/* The only run in memory, or NULL. */
static hf_run *run_of(const char *workflow_id)
{
    HF_LIST_EACH(node, &rig.core->runs_all)
    {
        hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (hf_str_equal(hf_owned_str(&run->workflow_id), hf_str_of(workflow_id))) {
            return run;
        }
    }
    return NULL;
}

static uint32_t crashes_of(const char *workflow_id)
{
    const hf_run *run = run_of(workflow_id);
    assert_non_null(run);
    return run->wft.task.crashes;
}

static void pauses_double_up_to_a_bound(void **state)
{
    (void)state;
    static const int64_t SECONDS[] = {0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600};
    for (size_t i = 0; i < HF_COUNT_OF(SECONDS); i++) {
        print_message("crashes %zu\n", i);
        assert_int_equal(hf_suspect_pause((uint32_t)i), SECONDS[i] * SECOND);
    }
    assert_int_equal(hf_suspect_pause(UINT32_MAX), 600 * SECOND);
}

static void a_task_is_counted_when_its_process_ends_and_waits_from_the_third_time_on(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll in_process; crash");
    assert_int_equal(crashes_of("wf"), 1);
    hf_rig_do(&rig, "poll in_process; crash");
    assert_int_equal(crashes_of("wf"), 2);
    hf_rig_do(&rig, "poll in_process; crash; poll in_process => parked");
    assert_int_equal(crashes_of("wf"), 3);
    hf_rig_do(&rig, "time 999ms; is w => parked; time 1ms; is w; crash; poll in_process => parked");
    assert_int_equal(crashes_of("wf"), 4);
    hf_rig_do(&rig, "time 1999ms; is w => parked; time 1ms; is w");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_SUSPECT), 1);
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_SUSPECT_ALONE), 2);
}

/* The owner of a file goes on when another process that works through it ends (hf_engine_lost). */
static void a_task_is_counted_when_another_process_ends_with_it(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll in_process; lost w");
    assert_int_equal(crashes_of("wf"), 1);
    hf_rig_do(&rig, "poll in_process; left w"); /* its service was closed */
    assert_int_equal(crashes_of("wf"), 1);
    hf_rig_do(&rig, "poll in_process; lost w; poll in_process; lost w; poll in_process => parked");
    assert_int_equal(crashes_of("wf"), 3);
    hf_rig_do(&rig, "start other; is w; complete done; poll in_process => parked");
    hf_rig_do(&rig, "time 999ms; is w => parked; time 1ms; is w; complete timer t 1h");
    assert_int_equal(crashes_of("wf"), 0);
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_SUSPECT_ALONE), 1);
}

/* The caller of an update still waits, so the task would crash one process after the other: it becomes one of the run's own, and is counted. */
static void the_task_of_an_update_is_counted_when_another_process_ends_with_it(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete; update wf u => parked; poll in_process; lost w");
    hf_rig_do(&rig, "poll in_process; lost w; poll in_process; lost w; poll in_process => parked");
    assert_int_equal(crashes_of("wf"), 3);
    hf_rig_do(&rig, "time 1s; is w");
}

static void an_attempt_is_counted_when_another_process_ends_with_it(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a retries=9 initial=1ms");
    hf_rig_do(&rig, "apoll in_process; left a; apoll in_process; left a; apoll in_process; left a"); /* at once */
    hf_rig_do(&rig, "apoll in_process; lost a; apoll in_process; lost a; apoll in_process; lost a");
    hf_rig_do(&rig, "apoll in_process => parked; time 999ms; is a => parked; time 1ms; is a; acomplete; poll");
}

/* The counts that a tool shows: of the workflow task, or of the only activity. */
static uint32_t shown(bool was_left_open)
{
    hf_op op;
    hf_op_init(&op);
    hf_look *look = NULL;
    hf_arena arena;
    hf_buf history;
    hf_str namespace_;
    hf_pb_describe_workflow_execution_response description;
    hf_arena_init(&arena, hf_rig_heap);
    hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
    rig.store->was_left_open = was_left_open;
    assert_int_equal(hf_look_open(&op, hf_rig_heap, rig.store, &look), HF_OK);
    assert_int_equal(hf_look_describe(&op, look, 1, &arena, &history, &namespace_, &description), HF_OK);
    uint32_t crashes = description.pending_activities.count > 0
                           ? description.pending_activities.items[0].holdfast_crashes
                           : description.pending_workflow_task->holdfast_crashes;
    hf_look_close(look);
    hf_buf_deinit(&history);
    hf_arena_deinit(&arena);
    return crashes;
}

static void a_tool_counts_the_last_process_before_the_next_one_does(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf");
    assert_int_equal(shown(true), 0); /* in nobody's hand */
    hf_rig_do(&rig, "poll in_process; crash; poll in_process");
    assert_int_equal(shown(true), 2);
    assert_int_equal(shown(false), 1); /* it was closed, or a program has it open */
    hf_rig_do(&rig, "crash");
    assert_int_equal(crashes_of("wf"), 2);
    assert_int_equal(shown(true), 2);
    hf_rig_do(&rig, "poll; complete activity a retries=9 initial=1ms; apoll");
    assert_int_equal(shown(true), 0); /* a worker in another process */
    hf_rig_do(&rig, "afail; time 1ms; apoll in_process");
    assert_int_equal(shown(true), 1);
    hf_rig_do(&rig, "unwanted a");
    assert_int_equal(shown(true), 0);
}

static void a_completed_task_clears_the_count(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; " THREE_CRASHES "; poll in_process => parked; time 1s; is w; complete timer t 1s");
    assert_int_equal(crashes_of("wf"), 0);
    hf_rig_do(&rig, "crash");
    assert_int_equal(crashes_of("wf"), 0);
    hf_rig_do(&rig, "time 1s; poll in_process; crash; poll in_process; complete done");
}

static void a_task_that_nobody_had_in_hand_is_not_counted(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; crash");
    assert_int_equal(crashes_of("wf"), 0);
    hf_rig_do(&rig, "poll in_process; unwanted w; crash"); /* given back */
    assert_int_equal(crashes_of("wf"), 0);
    hf_rig_do(&rig, "poll; crash"); /* with a worker elsewhere, who may be well */
    assert_int_equal(crashes_of("wf"), 0);
}

static void an_end_during_the_pause_counts_nothing_and_the_pause_goes_on(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; " THREE_CRASHES "; time 600ms; crash; crash");
    assert_int_equal(crashes_of("wf"), 3);
    hf_rig_do(&rig, "poll in_process => parked; time 399ms; is w => parked; time 1ms; is w; complete done");
}

static void the_count_is_durable_before_the_task_is_handed_out(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll in_process; crash");
    rig.hold = true;
    hf_rig_do(&rig,
              "poll in_process run_ahead => parked"); /* ready to be ahead of its commit, were it not for the crash */
    rig.hold = false;
    assert_true(hf_rig_settle(&rig));
    hf_rig_do(&rig, "is w; crash");
    assert_int_equal(crashes_of("wf"), 2);
}

static void nothing_runs_ahead_of_the_first_commit_of_an_opening(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf");
    hf_rig_restart(&rig);
    rig.hold = true;
    hf_rig_do(&rig, "poll in_process run_ahead => parked");
    rig.hold = false;
    assert_true(hf_rig_settle(&rig));
    hf_rig_do(&rig, "is w; complete timer t 1s; time 1s");
    rig.hold = true;
    hf_rig_do(&rig, "poll in_process run_ahead => task");
    rig.hold = false;
    assert_true(hf_rig_settle(&rig));
}

static void other_tasks_of_the_queue_go_first(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; " THREE_CRASHES "; time 1s; start second; poll as=x in_process");
    assert_true(hf_str_equal(hf_rig_task(&rig, "x")->workflow_execution->workflow_id, HF_STR("second")));
    hf_rig_do(&rig, "poll as=y in_process => parked; complete of=x done; is y => parked; time 10ms; is y");
    assert_true(hf_str_equal(hf_rig_task(&rig, "y")->workflow_execution->workflow_id, HF_STR("wf")));
}

static void a_queue_that_is_never_empty_does_not_keep_a_suspect_out_for_ever(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; " THREE_CRASHES "; time 1s");
    int seconds = 0;
    for (bool is_found = false; !is_found; seconds++) {
        char text[100];
        (void)snprintf(text, sizeof text, "start a%d; start b%d; poll as=x in_process", seconds, seconds);
        hf_rig_do(&rig, text);
        is_found = hf_str_equal(hf_rig_task(&rig, "x")->workflow_execution->workflow_id, HF_STR("wf"));
        hf_rig_do(&rig, "complete of=x done; time 1s");
        assert_true(seconds < 100);
    }
    assert_true(seconds >= 60);
}

static void while_it_is_in_hand_nobody_else_gets_a_task(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; " THREE_CRASHES "; poll in_process => parked; time 1s; is w; start second; "
                    "poll as=x in_process => parked; poll as=far; complete of=far done");
    assert_true(hf_str_equal(hf_rig_task(&rig, "far")->workflow_execution->workflow_id, HF_STR("second")));
    hf_rig_do(&rig, "start third; is x => parked; complete done; is x; complete of=x done");
    assert_true(hf_rig_probe(&rig, HF_PROBE_SUSPECT_WAITED_FOR) > 0);
}

/* Meanwhile polls and tasks wait beside each other: a poll that finds the queue empty afterwards gets what is on disk. */
static void polls_that_waited_for_it_get_tasks_on_disk_too(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start second queue=o; start third queue=o; start wf; " THREE_CRASHES);
    size_t mem_max = rig.core->options.mem_max;
    rig.core->options.mem_max = 1;
    hf_rig_do(&rig, "start other queue=p");
    assert_null(run_of("third"));
    rig.core->options.mem_max = mem_max;
    hf_rig_do(&rig, "poll in_process => parked; time 1s; is w; signal second s; poll as=x queue=o in_process => parked;"
                    "poll as=y queue=o in_process => parked; complete done; is x; is y");
    assert_true(hf_str_equal(hf_rig_task(&rig, "y")->workflow_execution->workflow_id, HF_STR("third")));
}

/* Tasks on disk stay there meanwhile: a run that is loaded for a poll that gets nothing would leave memory again, and so on. */
static void nothing_is_loaded_for_polls_that_wait_for_it(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start second queue=o; start third queue=o; start wf; " THREE_CRASHES);
    rig.core->options.mem_max = 1;
    rig.core->options.page_max = 1; /* the next page is read while the run of the last is loaded */
    hf_rig_do(&rig, "start other queue=p");
    assert_true(run_of("second") == NULL && run_of("third") == NULL);
    hf_rig_do(&rig, "poll in_process => parked; time 1s; is w; update wf up;" /* which keeps its run in memory */
                    "poll as=x queue=o in_process => parked");
    assert_true(run_of("second") == NULL && run_of("third") == NULL);
    hf_rig_do(&rig, "poll as=far queue=o; complete of=far done; is x => parked; complete done; is x");
    assert_true(hf_str_equal(hf_rig_task(&rig, "x")->workflow_execution->workflow_id, HF_STR("third")));
}

static void others_do_not_wait_longer_than_a_second_for_it(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; " THREE_CRASHES "; poll in_process => parked; time 1s; is w; start second; "
                    "poll as=x in_process => parked; time 999ms; is x => parked; time 1ms; is x; complete of=x done; "
                    "complete done");
}

static void it_waits_no_longer_than_a_second_for_others_in_hand(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start long; poll as=l in_process; complete of=l activity a1; start wf; " THREE_CRASHES
                    "; apoll in_process; poll as=x in_process => parked; time 1s; is x => parked; time 999ms; "
                    "is x => parked; time 10ms; is x; complete of=x done; acomplete");
}

static void one_suspect_at_a_time(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start one; start two");
    for (int i = 0; i < 3; i++) {
        hf_rig_do(&rig, "poll as=x in_process; poll as=y in_process; crash");
    }
    hf_rig_do(&rig, "poll as=x in_process => parked; poll as=y in_process => parked; time 1s; is x; is y => parked; "
                    "complete of=x done; time 10ms; is y; complete of=y done");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_SUSPECT), 2);
}

static void an_activity_is_counted_attempt_by_attempt(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 initial=1s; " THREE_CRASHES_OF_ACTIVITY);
    const hf_run *run = run_of("wf");
    assert_int_equal(run->activities.items[0]->task.crashes, 3);
    assert_int_equal(run->activities.items[0]->attempt, 4);
    hf_rig_do(&rig, "apoll in_process => parked; time 999ms; is a => parked; time 1ms; is a; start second; "
                    "poll as=x in_process => parked; afail; is x; complete of=x done; time 10s; apoll in_process");
    assert_int_equal(run_of("wf")->activities.items[0]->task.crashes, 0); /* an attempt that was answered */
    hf_rig_do(&rig, "acomplete; poll; complete done");
}

static void an_activity_that_runs_at_most_once_still_does(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 retries=1; apoll in_process; crash; poll; complete done");
}

static void a_pause_costs_an_activity_no_attempt(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 close=500ms; " THREE_CRASHES_OF_ACTIVITY
                    "; apoll in_process => parked; time 10ms; is a; acomplete; poll; complete done");
}

/* The pause of the eighth time is longer than a workflow task may take. */
static void a_task_that_times_out_in_its_pause_stays_a_suspect(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; " THREE_CRASHES);
    static const char *const LIVES[] = {"1s", "2s", "4s", "8s"};
    for (size_t i = 0; i < HF_COUNT_OF(LIVES); i++) {
        char text[100];
        (void)snprintf(text, sizeof text, "time %s; poll in_process => parked; time 10ms; is w; crash", LIVES[i]);
        hf_rig_do(&rig, text);
    }
    assert_int_equal(crashes_of("wf"), 7);
    hf_rig_do(&rig, "poll in_process => parked; time 11s; is w => parked");
    assert_int_equal(run_of("wf")->wft.state, HF_WFT_SCHEDULED); /* another attempt, which waits as well */
    hf_rig_do(&rig, "time 10s; is w; complete done");
}

static void a_suspect_that_is_ended_leaves_nothing_behind(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; " THREE_CRASHES "; terminate wf; start wf; " THREE_CRASHES "; time 1s; terminate wf; "
                    "start wf; " THREE_CRASHES "; poll in_process => parked; time 1s; is w; terminate wf; "
                    "start second; poll as=x in_process; complete of=x done");
    assert_true(hf_list_is_empty(&rig.core->suspects));
    assert_int_equal(rig.core->alone.run, 0);
}

/* Nothing stays in memory but what must. */
static void a_suspect_is_the_same_from_its_rows(void **state)
{
    (void)state;
    const hf_core_options options = {.mem_max = 1, .trim_count = 1, .page_max = 1};
    again(&options);
    hf_rig_do(&rig,
              "start wf; start other; poll as=o; complete of=o timer t 1h; " THREE_CRASHES
              "; poll in_process => parked; time 999ms; is w => parked; time 1ms; is w; crash; time 500ms; crash; "
              "poll in_process => parked; time 1499ms; is w => parked; time 10ms; is w; complete done");
}

static const struct CMUnitTest TESTS[] = {
    TEST(pauses_double_up_to_a_bound),
    TEST(a_task_is_counted_when_its_process_ends_and_waits_from_the_third_time_on),
    TEST(a_task_is_counted_when_another_process_ends_with_it),
    TEST(the_task_of_an_update_is_counted_when_another_process_ends_with_it),
    TEST(an_attempt_is_counted_when_another_process_ends_with_it),
    TEST(a_tool_counts_the_last_process_before_the_next_one_does),
    TEST(a_completed_task_clears_the_count),
    TEST(a_task_that_nobody_had_in_hand_is_not_counted),
    TEST(an_end_during_the_pause_counts_nothing_and_the_pause_goes_on),
    TEST(the_count_is_durable_before_the_task_is_handed_out),
    TEST(nothing_runs_ahead_of_the_first_commit_of_an_opening),
    TEST(other_tasks_of_the_queue_go_first),
    TEST(a_queue_that_is_never_empty_does_not_keep_a_suspect_out_for_ever),
    TEST(while_it_is_in_hand_nobody_else_gets_a_task),
    TEST(others_do_not_wait_longer_than_a_second_for_it),
    TEST(polls_that_waited_for_it_get_tasks_on_disk_too),
    TEST(nothing_is_loaded_for_polls_that_wait_for_it),
    TEST(it_waits_no_longer_than_a_second_for_others_in_hand),
    TEST(one_suspect_at_a_time),
    TEST(an_activity_is_counted_attempt_by_attempt),
    TEST(an_activity_that_runs_at_most_once_still_does),
    TEST(a_pause_costs_an_activity_no_attempt),
    TEST(a_task_that_times_out_in_its_pause_stays_a_suspect),
    TEST(a_suspect_that_is_ended_leaves_nothing_behind),
    TEST(a_suspect_is_the_same_from_its_rows),
};

int main(int argc, char **argv)
{
    return hf_test_main("suspect", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
