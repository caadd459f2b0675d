/* Deadlines: many at once are shared out to batches; those of runs that are not in memory. */
#include "engine/due.h"
#include "fixture.h"

#include <stdio.h>

enum { COUNT = 100, EACH = 8 };

static void start_all(hf_core_options options)
{
    hf_rig_close(&rig);
    hf_rig_open(&rig, options);
    rig.no_check = true;
    for (int i = 0; i < COUNT; i++) {
        char text[80];
        (void)snprintf(text, sizeof text, "start wf%d; poll; complete timer t 100s", i);
        hf_rig_do(&rig, text);
    }
}

static void pass(int64_t seconds)
{
    rig.now.wall += hf_seconds(seconds).ns;
    rig.now.mono += hf_seconds(seconds).ns;
}

static bool is_now(void)
{
    return hf_core_next(rig.core).wall <= rig.now.wall;
}

static void deadlines_that_come_at_once_are_shared_out_to_batches(void **state)
{
    (void)state;
    start_all((hf_core_options){.tick_max = EACH});
    rig.hold = true;
    pass(100);
    size_t batches = 0;
    for (size_t fired = 0; fired < COUNT;
         fired += rig.core->fired, batches++, assert_true(hf_rig_commit(&rig, false))) {
        assert_true(is_now());
        hf_core_tick(rig.core, rig.now);
        hf_core_tick(rig.core, rig.now); /* nothing more, before this is sealed */
        assert_in_range(rig.core->fired, 1, EACH);
        assert_true(!is_now() || rig.core->fired < EACH);
        if (batches == 1) { /* who calls meanwhile need not wait for the last of them */
            hf_rig_do(&rig, "signal wf99 s => again");
        } else if (batches == 2) {
            assert_true(hf_rig_slot(&rig, NULL)->done);
        }
    }
    assert_int_equal(batches, (COUNT + EACH - 1) / EACH);
    assert_false(is_now());
    rig.hold = false;
    for (int i = 0; i < COUNT; i++) {
        hf_rig_do(&rig, "poll; complete done");
    }
    hf_rig_do(&rig, "poll => parked");
    assert_true(hf_rig_probe(&rig, HF_PROBE_TICK_FULL) > 0);
}

static void a_batch_goes_on_growing_while_the_last_one_is_committed(void **state)
{
    (void)state;
    start_all((hf_core_options){.tick_max = EACH});
    rig.hold = true;
    pass(100);
    hf_core_tick(rig.core, rig.now);
    hf_store_request *commit = hf_core_seal(rig.core, rig.now);
    assert_non_null(commit);
    for (size_t i = 1; i <= 5; i++) { /* nobody waits for it, but calls come in between */
        assert_true(is_now());
        hf_core_tick(rig.core, rig.now);
        assert_int_equal(rig.core->fired, i * EACH);
    }
    hf_store_execute(rig.store, commit);
    hf_core_done(rig.core, commit, rig.now);
    assert_false(is_now());
    assert_true(hf_rig_commit(&rig, false));
    assert_true(is_now());
}

static void so_many_runs_are_loaded_at_once_for_their_deadlines(void **state)
{
    (void)state;
    start_all((hf_core_options){.tick_max = EACH, .mem_max = 1});
    assert_int_equal(rig.core->runs.count, 0);
    rig.hold = true;
    pass(100);
    size_t reads = 0;
    size_t rounds = 0;
    while (is_now() || rig.read_count > 0) { /* no more of them in memory than a batch takes, and what is on its way */
        if (is_now()) {
            hf_core_tick(rig.core, rig.now);
        }
        assert_in_range(rig.core->due_loads, 0, EACH);
        assert_in_range(rig.core->runs.count, 0, 4 * EACH);
        reads += rig.core->due_loads > 0 ? 1 : 0;
        (void)(hf_rig_read(&rig) || hf_rig_commit(&rig, false));
        assert_true(++rounds < 100000);
    }
    assert_true(reads > COUNT / EACH);
    rig.hold = false;
    for (int i = 0; i < COUNT; i++) {
        hf_rig_do(&rig, "poll; complete done");
    }
}

static void a_deadline_on_disk_is_forgotten_when_its_run_is_loaded_before(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.mem_max = 1, .due_window = hf_hours(1).ns});
    hf_rig_do(&rig, "start wf; poll; complete timer t 100s, timer u 10h; time 1s");
    assert_int_equal(rig.core->runs.count, 0);
    assert_int_equal(rig.core->cold_due.count, 1);
    hf_rig_do(&rig, "signal wf s; poll; complete untimer t");
    assert_int_equal(rig.core->cold_due.count, 0); /* the other one is beyond the window */
    assert_true(hf_rig_probe(&rig, HF_PROBE_COLD_DUE_STALE) > 0);
    hf_rig_do(&rig, "time 200s");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_COLD_DUE), 0); /* no load for nothing */
    hf_rig_do(&rig, "time 10h; poll");
}

static void a_run_that_comes_and_goes_has_one_deadline_on_disk(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.mem_max = 1, .due_window = hf_hours(1).ns});
    hf_rig_do(&rig, "start wf; poll; complete timer t 1000s");
    for (int i = 0; i < 50; i++) {
        hf_rig_do(&rig, "signal wf s; poll; complete; time 1s");
        assert_int_equal(rig.core->runs.count, 0);
        assert_int_equal(rig.core->cold_due.count, 1);
    }
    hf_rig_do(&rig, "time 950s; poll");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_COLD_DUE), 1);
}

/* However many come within the window, no more of them are read than a part of the memory holds. */
static void deadlines_on_disk_take_a_share_of_the_memory(void **state)
{
    (void)state;
    enum { RUNS = 400, PAGE = 16 };
    const hf_core_options options = {.mem_max = 32 << 10, .page_max = PAGE};
    again(&options);
    rig.no_check = true;
    for (int i = 0; i < RUNS; i++) {
        char text[80];
        (void)snprintf(text, sizeof text, "start wf%d; poll; complete timer t %dms", i, 100000 + i);
        hf_rig_do(&rig, text);
    }
    hf_rig_do(&rig, "crash; time 95s");
    size_t most = rig.core->options.mem_max / 8 / sizeof(hf_cold_due) + PAGE;
    assert_in_range(rig.core->cold_due.count, 1, most);
    assert_false(is_now());
    for (int i = 0; i < 20; i++) {
        hf_rig_do(&rig, "time 300ms");
        assert_in_range(rig.core->cold_due.count, 0, most);
    }
    for (int i = 0; i < RUNS; i++) {
        hf_rig_do(&rig, "poll; complete done");
    }
    hf_rig_do(&rig, "poll => parked");
}

/* A workflow that waits for the first of them must see the same first one, whether or not the engine was there in time. */
GOLDEN(what_is_found_due_together_comes_in_the_order_of_its_time,
       "start wf; poll; complete timer t 10s, activity a1 start=8s, activity a2 start=5s, timer u 5s; time 1m",
       FIRST_TASK "5 TimerStarted t after=10s\n6 ActivityTaskScheduled a1\n7 ActivityTaskScheduled a2\n"
                  "8 TimerStarted u after=5s\n9 ActivityTaskTimedOut scheduled=7 timeout=ScheduleToStart Timeout\n"
                  "10 TimerFired u started=8\n11 ActivityTaskTimedOut scheduled=6 timeout=ScheduleToStart Timeout\n"
                  "12 TimerFired t started=5\n13 WorkflowTaskScheduled attempt=1\n")

static const struct CMUnitTest TESTS[] = {
    TEST(what_is_found_due_together_comes_in_the_order_of_its_time),
    TEST(deadlines_that_come_at_once_are_shared_out_to_batches),
    TEST(deadlines_on_disk_take_a_share_of_the_memory),
    TEST(a_batch_goes_on_growing_while_the_last_one_is_committed),
    TEST(so_many_runs_are_loaded_at_once_for_their_deadlines),
    TEST(a_deadline_on_disk_is_forgotten_when_its_run_is_loaded_before),
    TEST(a_run_that_comes_and_goes_has_one_deadline_on_disk),
};

int main(int argc, char **argv)
{
    return hf_test_main("due", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
