/* Task queues: order, backlog on disk, polls that wait. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

static void do_f(const char *format, ...) HF_PRINTF(1, 2);
static void do_f(const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hf_rig_do(&rig, text);
}

static void assert_task_of(const char *slot, int number)
{
    char id[32];
    (void)snprintf(id, sizeof id, "wf%d", number);
    hf_str is = hf_rig_task(&rig, slot)->workflow_execution->workflow_id;
    if (!hf_str_equal(is, hf_str_of(id))) {
        fail_msg("a task of %.*s instead of %s", HF_STR_ARGS(is), id);
    }
}

static void tasks_are_handed_out_in_the_order_they_came(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        do_f("start wf%d", i);
    }
    for (int i = 0; i < 20; i++) {
        hf_rig_do(&rig, i % 7 == 6 ? "crash; poll" : "poll");
        assert_task_of("w", i);
    }
    hf_rig_do(&rig, "poll => parked");
}

static void polls_are_served_in_the_order_they_came(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        do_f("poll as=p%d => parked", i);
    }
    hf_rig_do(&rig, "drop p3");
    for (int i = 0; i < 9; i++) {
        do_f("start wf%d", i);
    }
    for (int i = 0, task = 0; i < 10; i++) {
        char slot[16];
        (void)snprintf(slot, sizeof slot, "p%d", i);
        if (i == 3) {
            assert_int_equal(hf_rig_slot(&rig, slot)->call.status, HF_ERR_CANCELED);
        } else {
            assert_task_of(slot, task++);
        }
    }
}

static void queues_and_kinds_do_not_mix(void **state)
{
    (void)state;
    hf_rig_do(
        &rig,
        "start wf queue=x; poll => parked; poll queue=x as=x; complete of=x activity a1 queue=y, activity a2 queue=x;"
        "apoll as=q => parked; apoll queue=y as=y; apoll queue=x as=a; is q => parked; is w => parked");
    assert_true(hf_str_equal(hf_rig_activity(&rig, "y")->activity_id, HF_STR("a1")));
    assert_true(hf_str_equal(hf_rig_activity(&rig, "a")->activity_id, HF_STR("a2")));
}

static void a_poll_is_answered_empty_when_its_time_is_over(void **state)
{
    (void)state;
    hf_rig_do(&rig, "poll => parked; apoll timeout=5s => parked; time 5s; is a => empty; is w => parked; time 54s;"
                    "is w => parked; time 1s; is w => empty; start wf; poll");
}

/* A core that can keep next to nothing in memory. */
static void open_small(size_t mem_max)
{
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.mem_max = mem_max, .page_max = 7, .trim_count = 4});
    rig.no_check = true;
}

static void a_backlog_goes_to_disk_and_every_task_of_it_comes_back_once(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    open_small(128 << 10);
    for (int i = 0; i < COUNT; i++) {
        do_f("start wf%d", i);
    }
    assert_true(hf_rig_probe(&rig, HF_PROBE_EVICTED) > 0);
    for (int i = 0; i < COUNT; i++) { /* each has one, so one that came twice would show here or in its history */
        hf_rig_do(&rig, i % 100 == 50 ? "crash; poll" : "poll");
        hf_rig_do(&rig, "complete activity a");
    }
    hf_rig_do(&rig, "poll as=x timeout=1s => parked; time 1s; is x => empty");
    assert_true(hf_rig_probe(&rig, HF_PROBE_COLD_TASK) > 0);
    bool seen[COUNT] = {false};
    for (int i = 0; i < COUNT; i++) {
        hf_rig_do(&rig, "apoll");
        hf_str id = hf_rig_activity(&rig, "a")->workflow_execution->workflow_id;
        int number = atoi(id.data + 2);
        assert_in_range(number, 0, COUNT - 1);
        assert_false(seen[number]);
        seen[number] = true;
        hf_rig_do(&rig, "acomplete; poll; complete done");
    }
    rig.no_check = false;
    assert_true(hf_rig_settle(&rig));
    hf_rig_history(&rig, "wf7",
                   FIRST_TASK "5 ActivityTaskScheduled a\n6 ActivityTaskStarted scheduled=5 attempt=1\n"
                              "7 ActivityTaskCompleted scheduled=5 started=6\n8 WorkflowTaskScheduled attempt=1\n"
                              "9 WorkflowTaskStarted scheduled=8\n10 WorkflowTaskCompleted scheduled=8 started=9\n"
                              "11 WorkflowExecutionCompleted\n");
}

static void deadlines_of_runs_on_disk_come(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    open_small(128 << 10);
    for (int i = 0; i < COUNT; i++) {
        do_f("start wf%d; poll; complete timer t %ds", i, 100 + (i * 37) % 200);
    }
    hf_rig_do(&rig, "crash");
    int found = 0;
    for (int second = 0; second < 310; second++) {
        hf_rig_do(&rig, "time 1s");
        while (hf_rig_slot(&rig, "w")->done) {
            (void)hf_rig_try(&rig, "poll => parked");
            if (!hf_rig_slot(&rig, "w")->done) {
                break;
            }
            found += hf_rig_task(&rig, "w")->task_token.len > 0;
            hf_rig_do(&rig, "complete done");
        }
        if (!hf_rig_slot(&rig, "w")->done) {
            hf_rig_do(&rig, "drop w");
        }
    }
    assert_int_equal(found, COUNT);
    assert_true(hf_rig_probe(&rig, HF_PROBE_COLD_DUE) > 0);
}

/* From here on nothing stays in memory. */
static void shrink(void)
{
    rig.options.mem_max = rig.core->options.mem_max = 1;
    hf_rig_do(&rig, "start other conflict=2 queue=other; signal other s");
    assert_int_equal(rig.core->runs.count, 0);
}

static void a_task_that_waits_for_another_holder_waits_also_on_disk(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll as=x; unwanted x");
    shrink();
    hf_rig_do(&rig, "crash; poll as=y");
    assert_true(hf_str_equal(hf_rig_task(&rig, "x")->task_token, hf_rig_task(&rig, "y")->task_token));
}

static void an_activity_that_waits_for_another_holder_waits_also_on_disk(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1; apoll as=b; unwanted b");
    shrink();
    hf_rig_do(&rig, "apoll as=c");
    assert_true(hf_str_equal(hf_rig_activity(&rig, "b")->task_token, hf_rig_activity(&rig, "c")->task_token));
    hf_rig_do(&rig, "acomplete of=c; poll; complete done");
}

static void what_dead_workers_held_is_found_on_disk(void **state)
{
    (void)state;
    open_small(1);
    hf_rig_do(&rig,
              "start wf; poll in_process; crash; poll; complete activity a1; apoll in_process; crash; crash; apoll");
    assert_int_equal(hf_rig_activity(&rig, "a")->attempt, 2);
}

/* ---- Queues that nobody uses ----------------------------------------------------------------------------------------- */

static void queues_that_were_polled_once_are_freed_after_a_while(void **state)
{
    (void)state;
    rig.no_check = true;
    hf_rig_do(&rig, "start wf queue=kept");
    size_t most = 0;
    for (int i = 0; i < 3000; i++) { /* a new worker every second, for fifty minutes */
        do_f("poll queue=once%d timeout=1s => parked; time 1s; is w => empty", i);
        most = rig.core->queues.count > most ? rig.core->queues.count : most;
    }
    assert_in_range(most, 200, 310); /* those of five minutes */
    hf_rig_do(&rig, "time 5m; time 5m");
    assert_int_equal(rig.core->queues.count, 1);
    hf_rig_do(&rig, "poll queue=kept");
}

static void so_many_queues_are_kept_and_no_more(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.queues_max = 100});
    hf_rig_do(&rig, "start wf queue=kept; poll queue=waits as=waits => parked");
    size_t live = 0;
    for (int i = 0; i < 20000; i++) {
        do_f("poll queue=once%d => parked; drop w", i);
        assert_true(rig.core->queues.count <= 101);
        live = i == 200 ? rig.live : live;
    }
    assert_true(rig.live <= live + 4096);
    hf_rig_do(&rig, "poll queue=kept; is waits => parked; start other queue=waits; is waits");
}

static void sticky_queues_of_workers_that_are_gone_are_freed(void **state)
{
    (void)state;
    rig.no_check = true;
    for (int i = 0; i < 1000; i++) {
        do_f("start wf%d; poll; complete sticky=s%d; poll queue=s%d as=s => parked; drop s; signal wf%d s;"
             "poll => parked; time 10s; is w; complete done",
             i, i, i, i);
        assert_true(rig.core->queues.count <= 32);
    }
}

static void a_queue_whose_tasks_are_on_disk_can_go_and_come_back(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf1 queue=cold; start wf2 queue=cold");
    shrink();
    hf_rig_do(&rig, "time 10m");
    assert_true(hf_rig_probe(&rig, HF_PROBE_QUEUE_FREED) > 0);
    assert_int_equal(rig.core->queues.count, 0);
    hf_rig_do(&rig, "poll queue=cold");
    assert_task_of("w", 1);
    hf_rig_do(&rig, "poll queue=cold");
    assert_task_of("w", 2);
    hf_rig_do(&rig, "poll queue=cold => parked");
}

/* ---- Workers that go ------------------------------------------------------------------------------------------------- */

#define STICKY "start wf; poll; complete sticky=s sticky_for=1h; poll queue=s as=s => parked;"

static void a_canceled_poll_does_not_bring_a_worker_back(void **state)
{
    (void)state;
    hf_rig_do(&rig, STICKY "poll => parked; shutdown s; drop s; signal wf x; is w");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_STICKY_USED), 0);
}

static void a_new_poll_brings_a_worker_back(void **state)
{
    (void)state;
    hf_rig_do(&rig, STICKY "shutdown s; drop s; poll queue=s as=s => parked; signal wf x; is s");
}

static int64_t first_id(const char *slot)
{
    hf_str history = hf_rig_task(&rig, slot)->history;
    hf_pb_raw event;
    hf_pb_raw id;
    assert_true(hf_pb_next(&history, &event) && hf_pb_next(&event.bytes, &id));
    return (int64_t)id.value;
}

static void tasks_leave_the_sticky_queue_of_a_worker_that_goes(void **state)
{
    (void)state;
    hf_rig_do(&rig, STICKY "drop s; signal wf x; poll => parked; shutdown s; is w");
    assert_int_equal(first_id("w"), 1); /* whoever gets it needs the whole history */
    hf_rig_do(&rig, "complete done");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 WorkflowExecutionSignaled x\n6 WorkflowTaskScheduled attempt=1\n"
                              "7 WorkflowTaskStarted scheduled=6\n8 WorkflowTaskCompleted scheduled=6 started=7\n"
                              "9 WorkflowExecutionCompleted\n");
}

static void they_leave_it_also_when_they_are_on_disk(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        do_f("start wf%d; poll; complete sticky=s sticky_for=1h", i);
    }
    hf_rig_do(&rig, "poll queue=s as=s => parked; drop s");
    for (int i = 0; i < 100; i++) {
        do_f("signal wf%d x", i);
    }
    assert_true(hf_rig_probe(&rig, HF_PROBE_STICKY_USED) == 100);
    shrink();
    hf_rig_do(&rig, "shutdown s");
    for (int i = 0; i < 100; i++) {
        hf_rig_do(&rig, "poll; complete done");
    }
    hf_rig_do(&rig, "poll => parked");
    assert_true(hf_rig_probe(&rig, HF_PROBE_STICKY_MOVED) == 100);
}

static void a_shutdown_that_names_a_normal_queue_moves_nothing(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf0; start wf1; shutdown q; poll");
    assert_task_of("w", 0);
    hf_rig_do(&rig, "poll");
    assert_task_of("w", 1);
}

static void a_task_that_nobody_wants_is_taken_back_though_its_run_has_left_memory(void **state)
{
    (void)state;
    const hf_core_options options = {.mem_max = 1};
    again(&options);
    hf_rig_do(&rig, "start wf task=1h; poll in_process; unwanted w; poll; complete activity a1 each=24h;"
                    "apoll in_process; unwanted a; apoll; unwanted a; unwanted a; crash; apoll; acomplete; poll;"
                    "unwanted a; complete done; unwanted w; unwanted a");
}

/* A portion takes a number of cancels; the others wait for the next one, and nothing has happened to their calls. */
static void more_cancels_than_a_portion_takes_wait_for_the_next(void **state)
{
    (void)state;
    again(&(hf_core_options){.cancels_max = 2});
    static const char *const NAMES[] = {"p0", "p1", "p2"};
    hf_call *calls[3];
    for (int i = 0; i < 3; i++) {
        do_f("poll as=p%d => parked", i);
        calls[i] = &hf_rig_slot(&rig, NAMES[i])->call;
    }
    rig.hold = true;
    assert_true(hf_core_cancel(rig.core, calls[0], rig.now) && hf_core_cancel(rig.core, calls[1], rig.now));
    assert_false(hf_core_cancel(rig.core, calls[2], rig.now));
    assert_int_equal(calls[1]->status, HF_ERR_CANCELED);
    assert_int_equal(calls[2]->status, HF_OK);
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_CANCEL_PUT_OFF), 1);
    hf_core_release(rig.core, rig.now);
    assert_true(hf_core_cancel(rig.core, calls[2], rig.now));
    assert_int_equal(calls[2]->status, HF_ERR_CANCELED);
    rig.hold = false;
    hf_rig_do(&rig, "start wf; poll"); /* nobody else waits there */
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_task_that_nobody_wants_is_taken_back_though_its_run_has_left_memory),
    TEST(tasks_are_handed_out_in_the_order_they_came),
    TEST(polls_are_served_in_the_order_they_came),
    TEST(queues_and_kinds_do_not_mix),
    TEST(a_poll_is_answered_empty_when_its_time_is_over),
    TEST(a_backlog_goes_to_disk_and_every_task_of_it_comes_back_once),
    TEST(deadlines_of_runs_on_disk_come),
    TEST(a_task_that_waits_for_another_holder_waits_also_on_disk),
    TEST(an_activity_that_waits_for_another_holder_waits_also_on_disk),
    TEST(what_dead_workers_held_is_found_on_disk),
    TEST(queues_that_were_polled_once_are_freed_after_a_while),
    TEST(so_many_queues_are_kept_and_no_more),
    TEST(sticky_queues_of_workers_that_are_gone_are_freed),
    TEST(a_queue_whose_tasks_are_on_disk_can_go_and_come_back),
    TEST(a_canceled_poll_does_not_bring_a_worker_back),
    TEST(a_new_poll_brings_a_worker_back),
    TEST(tasks_leave_the_sticky_queue_of_a_worker_that_goes),
    TEST(they_leave_it_also_when_they_are_on_disk),
    TEST(a_shutdown_that_names_a_normal_queue_moves_nothing),
    TEST(more_cancels_than_a_portion_takes_wait_for_the_next),
};

int main(int argc, char **argv)
{
    return hf_test_main("matching", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
