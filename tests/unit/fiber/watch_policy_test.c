/* The watchdog's decisions on virtual time: what is done to a stuck fiber, when, and how often. */
#include "support/support.h"

#include "fiber/watch/watch_policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, JOBS = 16, FIRST_JOB = THREADS + HF_LOST_MAX, SLOTS = FIRST_JOB + JOBS, HAPPENED_MAX = 4096 };

static const int64_t SECOND = INT64_C(1000000000);
static const int64_t MS = INT64_C(1000000);

/* Schedulers and lost threads as the policy sees them, and what it did. */
typedef struct world {
    hf_watchdog_policy policy;
    hf_watchdog_case cases[SLOTS];
    int64_t now;
    int64_t tick;
    int threads;
    struct {
        bool spins;  /* does not yield; otherwise it takes a turn between any two looks */
        bool in_lib; /* and is inside the library */
        bool idle;
        uint64_t run;
        uint64_t progress;
    } at[THREADS + HF_LOST_MAX];
    bool is_lost[THREADS + HF_LOST_MAX];
    bool is_back[THREADS + HF_LOST_MAX];
    bool is_canceled[JOBS]; /* a job on a pool, which does not return */
    bool has_returned[JOBS];
    bool replaces; /* REPLACE is granted at once */
    int count;
    struct {
        hf_watchdog_action action;
        int64_t when;
    } happened[HAPPENED_MAX];
} world;

static world *world_new(hf_watchdog_options options)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    hf_watchdog_figures figures = hf_watchdog_figures_of(&options);
    hf_watchdog_policy_init(&w->policy, &figures, THREADS, w->cases, SLOTS);
    w->now = 5 * SECOND;
    w->tick = 20 * MS;
    w->threads = THREADS;
    return w;
}

static world *with_signal(hf_watchdog_options options)
{
    options.signal = 23;
    return world_new(options);
}

static int lost_free(const world *w)
{
    for (int i = THREADS; i < THREADS + HF_LOST_MAX; i++) {
        if (!w->is_lost[i]) {
            return i;
        }
    }
    return -1;
}

static void replace(world *w, int slot)
{
    int lost = lost_free(w);
    if (lost >= 0) {
        hf_watchdog_policy_replaced(&w->policy, slot, lost);
        w->is_lost[lost] = true;
        w->at[lost].spins = true;
        w->at[slot].spins = false;
    }
}

static void look(world *w)
{
    static hf_watchdog_sample samples[SLOTS];
    static hf_watchdog_action actions[HF_WATCHDOG_ACTIONS_MAX(SLOTS)];
    int count = 0;
    for (int i = 0; i < w->threads; i++) {
        w->at[i].progress += !w->at[i].spins;
        samples[count++] = (hf_watchdog_sample){.slot = i,
                                                .run = w->at[i].run,
                                                .progress = w->at[i].progress,
                                                .in_user = !w->at[i].in_lib,
                                                .is_idle = w->at[i].idle};
    }
    for (int i = THREADS; i < THREADS + HF_LOST_MAX; i++) {
        if (w->is_lost[i]) {
            samples[count++] = (hf_watchdog_sample){.slot = i, .in_user = true, .is_gone = w->is_back[i]};
            w->is_lost[i] = !w->is_back[i];
            w->is_back[i] = false;
        }
    }
    for (int i = 0; i < JOBS; i++) {
        if (w->is_canceled[i]) {
            samples[count++] = (hf_watchdog_sample){
                .slot = FIRST_JOB + i, .in_user = true, .is_on_pool = true, .is_gone = w->has_returned[i]};
            w->is_canceled[i] = !w->has_returned[i];
            w->has_returned[i] = false;
        }
    }
    int done = hf_watchdog_policy_step(&w->policy, w->now, samples, count, actions);
    for (int i = 0; i < done; i++) {
        if (actions[i].kind == HF_WATCHDOG_REPLACE) {
            if (w->replaces) {
                replace(w, actions[i].slot);
            }
            continue; /* repeated at every look: not worth a line */
        }
        assert_true(w->count < HAPPENED_MAX);
        w->happened[w->count].action = actions[i];
        w->happened[w->count++].when = w->now;
    }
}

static void run_for(world *w, int64_t ns)
{
    for (int64_t end = w->now + ns; w->now < end;) {
        w->now += w->tick;
        look(w);
    }
}

static int count_of(const world *w, hf_watchdog_kind kind)
{
    int count = 0;
    for (int i = 0; i < w->count; i++) {
        count += w->happened[i].action.kind == kind;
    }
    return count;
}

/* When `kind` happened for the n-th time, since `from`; -1 = it did not. */
static int64_t when_of(const world *w, hf_watchdog_kind kind, int n, int64_t from)
{
    for (int i = 0; i < w->count; i++) {
        if (w->happened[i].action.kind == kind && n-- == 0) {
            return w->happened[i].when - from;
        }
    }
    return -1;
}

/* Within a tick after `due`: looks come every tick. */
static void is_about(const world *w, int64_t when, int64_t due)
{
    if (when < due || when > due + w->tick) {
        fail_msg("at %" PRId64 " ms instead of %" PRId64, when / MS, due / MS);
    }
}

/* ---- T18: a fiber that does not yield is reported ---------------------------------------------------------------- */

static void T18_a_fiber_that_does_not_yield_is_reported_once(void **state)
{
    (void)state;
    world *w = world_new((hf_watchdog_options){0});
    run_for(w, SECOND);
    assert_int_equal(w->count, 0);
    int64_t begin = w->now;
    w->at[2].spins = true;
    run_for(w, 9 * SECOND);
    assert_int_equal(w->count, 1);
    assert_int_equal(w->happened[0].action.kind, HF_WATCHDOG_REPORT);
    assert_int_equal(w->happened[0].action.slot, 2);
    is_about(w, when_of(w, HF_WATCHDOG_REPORT, 0, begin), 2 * SECOND);
    assert_true(w->happened[0].action.ns >= 2 * SECOND);
    free(w);
}

static void T18_another_episode_is_another_report(void **state)
{
    (void)state;
    world *w = world_new((hf_watchdog_options){0});
    for (int i = 0; i < 3; i++) {
        w->at[0].spins = true;
        run_for(w, 3 * SECOND);
        w->at[0].spins = false;
        run_for(w, SECOND);
        assert_int_equal(count_of(w, HF_WATCHDOG_REPORT), i + 1);
    }
    assert_int_equal(w->policy.stuck_count, 0);
    assert_int_equal(w->count, 3);
    free(w);
}

static void T18_who_moves_or_sleeps_is_not_stuck(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){0});
    w->at[0].idle = true;
    w->at[0].spins = true;
    w->at[1].spins = true;
    for (int i = 0; i < 20; i++) {
        run_for(w, SECOND + 900 * MS);
        w->at[1].run++; /* another fiber, in the nick of time */
        w->at[2].spins = !w->at[2].spins;
    }
    assert_int_equal(w->count, 0);
    assert_true(hf_watchdog_policy_is_calm(&w->policy));
    free(w);
}

static void T18_stuck_after_off_switches_everything_off(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.stuck_after = HF_SPAN_OFF});
    w->at[0].spins = true;
    w->tick = SECOND;
    run_for(w, 7200 * SECOND);
    assert_int_equal(w->count, 0);
    free(w);
}

/* ---- T13: cancel and interrupt at once, then again and again ----------------------------------------------------- */

static void T13_cancel_and_interrupt_come_at_once_and_the_interrupt_again_at_1_2_4_8(void **state)
{
    (void)state;
    static const int64_t AT[] = {0, 1, 2, 4, 8, 16, 32, 64, 124, 184, 244};
    world *w = with_signal((hf_watchdog_options){.zombies_max = HF_OFF});
    w->replaces = true;
    look(w);
    w->at[1].spins = true;
    run_for(w, 260 * SECOND);
    int64_t stuck = when_of(w, HF_WATCHDOG_REPORT, 0, 0);
    assert_int_equal(w->happened[0].action.kind, HF_WATCHDOG_REPORT);
    assert_int_equal(w->happened[1].action.kind, HF_WATCHDOG_CANCEL);
    assert_int_equal(w->happened[2].action.kind, HF_WATCHDOG_INTERRUPT);
    assert_int_equal(count_of(w, HF_WATCHDOG_CANCEL), 1);
    assert_int_equal(count_of(w, HF_WATCHDOG_INTERRUPT), sizeof AT / sizeof *AT);
    for (int i = 0; i < (int)(sizeof AT / sizeof *AT); i++) {
        is_about(w, when_of(w, HF_WATCHDOG_INTERRUPT, i, stuck), AT[i] * SECOND);
    }
    free(w);
}

static void T13_the_join_returns_early_when_the_fiber_ends(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){0});
    w->replaces = true;
    look(w);
    w->at[1].spins = true;
    run_for(w, 2 * SECOND + 500 * MS); /* stuck since half a second: one interrupt */
    w->is_back[THREADS] = true;
    run_for(w, 100 * SECOND);
    assert_int_equal(count_of(w, HF_WATCHDOG_INTERRUPT), 1);
    assert_int_equal(count_of(w, HF_WATCHDOG_COUNT), 0);
    assert_int_equal(count_of(w, HF_WATCHDOG_UNCOUNT), 0);
    assert_true(hf_watchdog_policy_is_calm(&w->policy));
    free(w);
}

static void T13_a_late_look_interrupts_once_and_keeps_the_plan(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.zombie_after = HF_SPAN_OFF});
    look(w);
    w->at[0].spins = true;
    run_for(w, 2 * SECOND + 200 * MS);
    int64_t stuck = when_of(w, HF_WATCHDOG_REPORT, 0, 0);
    w->now = stuck + 9 * SECOND; /* 1, 2, 4 and 8 are over */
    look(w);
    assert_int_equal(count_of(w, HF_WATCHDOG_INTERRUPT), 2);
    run_for(w, 8 * SECOND);
    assert_int_equal(count_of(w, HF_WATCHDOG_INTERRUPT), 3);
    is_about(w, when_of(w, HF_WATCHDOG_INTERRUPT, 2, stuck), 16 * SECOND);
    free(w);
}

static void T13_retries_can_be_switched_off(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.interrupt_first = HF_SPAN_OFF, .zombies_max = HF_OFF});
    look(w);
    w->at[0].spins = true;
    run_for(w, 300 * SECOND);
    assert_int_equal(count_of(w, HF_WATCHDOG_INTERRUPT), 1);
    free(w);
}

/* ---- T14, X13: zombies ------------------------------------------------------------------------------------------- */

static void T14_zombie_is_counted_once_after_the_grace_period(void **state)
{
    (void)state;
    for (int replaced = 0; replaced < 2; replaced++) {
        world *w = with_signal((hf_watchdog_options){0});
        w->replaces = replaced != 0;
        look(w);
        w->at[3].spins = true;
        run_for(w, 11 * SECOND);
        assert_int_equal(count_of(w, HF_WATCHDOG_COUNT), 0);
        assert_int_equal(w->policy.zombie_count, 0);
        run_for(w, 500 * SECOND);
        assert_int_equal(count_of(w, HF_WATCHDOG_COUNT), 1);
        assert_int_equal(w->policy.zombie_count, 1);
        assert_int_equal(count_of(w, HF_WATCHDOG_REPORT), 1);
        free(w);
    }
}

static void X13_the_grace_period_has_a_timer_of_its_own(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){0});
    look(w);
    w->at[0].spins = true;
    run_for(w, 30 * SECOND);
    int64_t stuck = when_of(w, HF_WATCHDOG_REPORT, 0, 0);
    is_about(w, when_of(w, HF_WATCHDOG_COUNT, 0, stuck), 10 * SECOND); /* not at 16, with the next interrupt */
    free(w);
}

static void T14_give_up_ends_the_interrupts_and_the_zombie_stays_counted(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){0});
    w->tick = 500 * MS;
    w->replaces = true;
    look(w);
    w->at[0].spins = true;
    run_for(w, 3605 * SECOND);
    int64_t stuck = when_of(w, HF_WATCHDOG_REPORT, 0, 0);
    is_about(w, when_of(w, HF_WATCHDOG_GIVE_UP, 0, stuck), 3600 * SECOND);
    int interrupts = count_of(w, HF_WATCHDOG_INTERRUPT);
    assert_true(interrupts > 60);
    run_for(w, 7200 * SECOND);
    assert_int_equal(count_of(w, HF_WATCHDOG_INTERRUPT), interrupts);
    assert_int_equal(count_of(w, HF_WATCHDOG_GIVE_UP), 1);
    assert_int_equal(w->policy.zombie_count, 1);
    free(w);
}

static void T15_a_zombie_that_ends_later_is_uncounted(void **state)
{
    (void)state;
    for (int after_give_up = 0; after_give_up < 2; after_give_up++) {
        world *w = with_signal((hf_watchdog_options){.give_up_after = hf_seconds(20)});
        w->replaces = true;
        look(w);
        w->at[0].spins = true;
        run_for(w, (after_give_up ? 60 : 15) * SECOND);
        assert_int_equal(w->policy.zombie_count, 1);
        w->is_back[THREADS] = true;
        run_for(w, SECOND);
        assert_int_equal(w->policy.zombie_count, 0);
        assert_int_equal(count_of(w, HF_WATCHDOG_UNCOUNT), 1);
        assert_true(hf_watchdog_policy_is_calm(&w->policy));
        free(w);
    }
}

static void T15_without_a_signal_a_zombie_is_uncounted_when_its_thread_moves(void **state)
{
    (void)state;
    world *w = world_new((hf_watchdog_options){0});
    w->at[0].spins = true;
    run_for(w, 20 * SECOND);
    assert_int_equal(w->policy.zombie_count, 1);
    w->at[0].spins = false;
    run_for(w, SECOND);
    assert_int_equal(w->policy.zombie_count, 0);
    assert_int_equal(count_of(w, HF_WATCHDOG_REPORT), 1);
    assert_int_equal(count_of(w, HF_WATCHDOG_COUNT), 1);
    assert_int_equal(count_of(w, HF_WATCHDOG_UNCOUNT), 1);
    assert_int_equal(w->count, 3); /* no cancel, no interrupt, no giving up */
    free(w);
}

/* ---- T17: slots are free ----------------------------------------------------------------------------------------- */

static void T17_the_thread_of_a_zombie_is_replaced_and_serves_on(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.zombies_max = HF_OFF});
    w->replaces = true;
    look(w);
    for (int i = 0; i < HF_LOST_MAX; i++) { /* one after the other, on the same scheduler */
        w->at[1].spins = true;
        run_for(w, 2 * SECOND + 100 * MS);
        assert_false(w->at[1].spins);
    }
    assert_int_equal(lost_free(w), -1);
    run_for(w, 10 * SECOND + 100 * MS);
    assert_int_equal(w->policy.zombie_count, HF_LOST_MAX);
    w->at[1].spins = true; /* no room: it stays where it is, and is counted all the same */
    run_for(w, 13 * SECOND);
    assert_int_equal(w->policy.zombie_count, HF_LOST_MAX + 1);
    assert_int_equal(w->policy.stage, HF_WATCHDOG_SERVING);
    free(w);
}

static void T17_a_fiber_inside_the_library_is_not_replaced(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){0});
    w->replaces = true;
    look(w);
    w->at[1].spins = true;
    w->at[1].in_lib = true; /* a hook that never returns */
    run_for(w, 20 * SECOND);
    assert_int_equal(lost_free(w), THREADS);
    assert_int_equal(w->policy.zombie_count, 1);
    w->at[1].in_lib = false;
    run_for(w, 100 * MS);
    assert_true(w->is_lost[THREADS]);
    assert_int_equal(w->policy.zombie_count, 1);
    assert_int_equal(count_of(w, HF_WATCHDOG_REPORT), 1);
    free(w);
}

/* ---- T16, X12: the ladder ---------------------------------------------------------------------------------------- */

/* Makes `count` zombies on one scheduler after the other. */
static void make_zombies(world *w, int count)
{
    w->replaces = true;
    look(w);
    for (int i = 0; i < count; i++) {
        w->at[i % THREADS].spins = true;
        run_for(w, 2 * SECOND + 100 * MS);
    }
    run_for(w, 10 * SECOND + 100 * MS);
}

static void X12_the_ladder_starts_at_the_threshold_and_not_beyond_it(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){0});
    make_zombies(w, 9);
    assert_int_equal(w->policy.zombie_count, 9);
    assert_int_equal(count_of(w, HF_WATCHDOG_SHUTDOWN), 0);
    w->at[0].spins = true;
    run_for(w, 12 * SECOND + 100 * MS);
    assert_int_equal(w->policy.zombie_count, 10);
    assert_int_equal(count_of(w, HF_WATCHDOG_SHUTDOWN), 1);
    free(w);
}

static void T16_the_ladder_drains_then_cancels_then_ends_the_process(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.zombies_max = 3});
    make_zombies(w, 3);
    run_for(w, 70 * SECOND);
    int64_t begin = when_of(w, HF_WATCHDOG_SHUTDOWN, 0, 0);
    assert_true(begin > 0);
    is_about(w, when_of(w, HF_WATCHDOG_CANCEL_ALL, 0, begin), 10 * SECOND);
    is_about(w, when_of(w, HF_WATCHDOG_FATAL, 0, begin), 60 * SECOND); /* others kept running to the last */
    run_for(w, 600 * SECOND);
    assert_int_equal(count_of(w, HF_WATCHDOG_SHUTDOWN), 1);
    assert_int_equal(count_of(w, HF_WATCHDOG_CANCEL_ALL), 1);
    assert_int_equal(count_of(w, HF_WATCHDOG_FATAL), 1);
    free(w);
}

static void T16_when_nobody_else_runs_the_force_period_is_the_end(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.zombies_max = 2});
    make_zombies(w, 2);
    for (int i = 0; i < THREADS; i++) {
        w->at[i].idle = true;
    }
    run_for(w, 30 * SECOND);
    int64_t begin = when_of(w, HF_WATCHDOG_SHUTDOWN, 0, 0);
    is_about(w, when_of(w, HF_WATCHDOG_FATAL, 0, begin), 15 * SECOND);
    free(w);
}

static void T16_no_interrupt_after_the_force_period(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.zombies_max = 1, .interrupt_max = hf_seconds(1)});
    make_zombies(w, 1);
    run_for(w, 20 * SECOND);
    int interrupts = count_of(w, HF_WATCHDOG_INTERRUPT);
    run_for(w, 20 * SECOND);
    assert_int_equal(count_of(w, HF_WATCHDOG_INTERRUPT), interrupts);
    free(w);
}

static void T16_zombies_that_end_in_time_spare_the_process(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.zombies_max = 2});
    make_zombies(w, 2);
    run_for(w, 12 * SECOND);
    assert_int_equal(count_of(w, HF_WATCHDOG_CANCEL_ALL), 1);
    w->is_back[THREADS] = w->is_back[THREADS + 1] = true;
    run_for(w, 200 * SECOND);
    assert_int_equal(w->policy.zombie_count, 0);
    assert_int_equal(count_of(w, HF_WATCHDOG_FATAL), 0);
    assert_int_equal(w->policy.stage, HF_WATCHDOG_OVER);
    assert_true(hf_watchdog_policy_is_calm(&w->policy));
    free(w);
}

/* Figures of the ladder, in seconds; 0 = default, -1 = off; when it cancels and when it is fatal (-1 = never). */
static void T20_the_figures_of_the_ladder_can_be_set(void **state)
{
    (void)state;
    static const struct {
        int grace, force, fatal;
        int64_t cancel_at, fatal_at;
    } ROWS[] = {
        {0, 0, 0, 10, 15},  {1, 1, 0, 1, 2},      {-1, 0, 0, 0, 5},    {-1, 2, 0, 0, 2},   {0, -1, 0, 10, 60},
        {0, 0, -1, 10, -1}, {30, 40, 20, -1, 20}, {100, 0, 0, -1, 60}, {5, -1, -1, 5, -1}, {0, 45, 12, 10, 12},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        hf_watchdog_options options = {.zombies_max = 1,
                                       .shutdown_grace = {.ns = ROWS[i].grace * (ROWS[i].grace > 0 ? SECOND : 1)},
                                       .shutdown_force = {.ns = ROWS[i].force * (ROWS[i].force > 0 ? SECOND : 1)},
                                       .fatal_after = {.ns = ROWS[i].fatal * (ROWS[i].fatal > 0 ? SECOND : 1)}};
        world *w = with_signal(options);
        for (int t = 1; t < THREADS; t++) {
            w->at[t].idle = true;
        }
        w->replaces = true;
        look(w);
        w->at[0].spins = true;
        run_for(w, 3 * SECOND);
        w->at[0].idle = true; /* its new thread has nothing to do */
        run_for(w, 120 * SECOND);
        int64_t begin = when_of(w, HF_WATCHDOG_SHUTDOWN, 0, 0);
        if (ROWS[i].cancel_at >= 0) {
            is_about(w, when_of(w, HF_WATCHDOG_CANCEL_ALL, 0, begin), ROWS[i].cancel_at * SECOND);
        } else {
            assert_int_equal(count_of(w, HF_WATCHDOG_CANCEL_ALL), 0);
        }
        if (ROWS[i].fatal_at >= 0) {
            is_about(w, when_of(w, HF_WATCHDOG_FATAL, 0, begin), ROWS[i].fatal_at * SECOND);
        } else {
            assert_int_equal(count_of(w, HF_WATCHDOG_FATAL), 0);
        }
        free(w);
    }
}

/* ---- The promises as they are written ---------------------------------------------------------------------------- */

static void N1_a_fiber_that_ignores_cancel_and_spins(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){0});
    w->replaces = true;
    look(w);
    w->at[1].spins = true;
    run_for(w, 2 * SECOND + 20 * MS);
    assert_false(w->at[1].spins); /* replaced: its other fibers run again */
    run_for(w, 9 * SECOND + 900 * MS);
    assert_int_equal(w->policy.zombie_count, 0);
    run_for(w, 200 * MS);
    assert_int_equal(w->policy.zombie_count, 1);
    run_for(w, 60 * SECOND);
    assert_int_equal(count_of(w, HF_WATCHDOG_COUNT), 1);
    for (int i = 0; i < w->count; i++) { /* the others were left alone */
        assert_true(w->happened[i].action.slot == 1 || w->happened[i].action.slot == THREADS);
    }
    w->is_back[THREADS] = true;
    look(w);
    assert_int_equal(w->policy.zombie_count, 0);
    free(w);
}

static void N2_ten_such_fibers_end_the_process_within_61_seconds(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){0});
    make_zombies(w, 10);
    run_for(w, 70 * SECOND);
    int64_t begin = when_of(w, HF_WATCHDOG_SHUTDOWN, 0, 0);
    int64_t fatal = when_of(w, HF_WATCHDOG_FATAL, 0, begin);
    assert_true(fatal >= 0 && fatal <= 61 * SECOND);
    free(w);
}

static void N2_without_a_limit_it_keeps_serving(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.zombies_max = HF_OFF});
    make_zombies(w, 40);
    run_for(w, 100 * SECOND);
    assert_int_equal(w->policy.zombie_count, 40);
    assert_int_equal(w->policy.stage, HF_WATCHDOG_SERVING);
    assert_int_equal(count_of(w, HF_WATCHDOG_SHUTDOWN), 0);
    free(w);
}

static void N3_give_up_leaves_a_counted_zombie_and_a_free_slot(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.give_up_after = hf_seconds(30)});
    w->replaces = true;
    look(w);
    w->at[2].spins = true;
    run_for(w, 40 * SECOND);
    int interrupts = count_of(w, HF_WATCHDOG_INTERRUPT);
    run_for(w, 400 * SECOND);
    assert_int_equal(count_of(w, HF_WATCHDOG_INTERRUPT), interrupts);
    assert_int_equal(count_of(w, HF_WATCHDOG_GIVE_UP), 1);
    assert_int_equal(w->policy.zombie_count, 1);
    assert_false(w->at[2].spins);
    assert_false(hf_watchdog_policy_is_calm(&w->policy)); /* its end is still looked for */
    free(w);
}

/* ---- Jobs on a pool: activities that were canceled and do not return --------------------------------------------- */

static void T13_a_canceled_job_is_interrupted_at_once_and_again_at_1_2_4_8(void **state)
{
    (void)state;
    static const int64_t AT[] = {0, 1, 2, 4, 8, 16, 32, 64, 124, 184, 244};
    world *w = with_signal((hf_watchdog_options){.zombies_max = HF_OFF});
    look(w);
    w->now += w->tick;
    w->is_canceled[3] = true;
    look(w); /* not two seconds later, as for a fiber */
    int64_t begin = w->now;
    assert_int_equal(w->count, 1);
    assert_int_equal(w->happened[0].action.kind, HF_WATCHDOG_INTERRUPT);
    assert_int_equal(w->happened[0].action.slot, FIRST_JOB + 3);
    run_for(w, 260 * SECOND);
    assert_int_equal(count_of(w, HF_WATCHDOG_INTERRUPT), sizeof AT / sizeof *AT);
    for (int i = 0; i < (int)(sizeof AT / sizeof *AT); i++) {
        is_about(w, when_of(w, HF_WATCHDOG_INTERRUPT, i, begin), AT[i] * SECOND);
    }
    assert_int_equal(count_of(w, HF_WATCHDOG_REPORT) + count_of(w, HF_WATCHDOG_CANCEL), 0);
    free(w);
}

static void T14_a_canceled_job_is_a_zombie_after_the_grace_and_given_up_after_an_hour(void **state)
{
    (void)state;
    for (int signal = 0; signal < 2; signal++) {
        world *w = signal != 0 ? with_signal((hf_watchdog_options){0}) : world_new((hf_watchdog_options){0});
        w->tick = 500 * MS;
        w->is_canceled[0] = true;
        look(w);
        int64_t begin = w->now;
        run_for(w, 7200 * SECOND);
        is_about(w, when_of(w, HF_WATCHDOG_COUNT, 0, begin), 10 * SECOND);
        assert_int_equal(count_of(w, HF_WATCHDOG_COUNT), 1);
        assert_int_equal(w->policy.zombie_count, 1);
        assert_int_equal(count_of(w, HF_WATCHDOG_INTERRUPT), signal != 0 ? 66 : 0); /* 0, 1 ... 64, then each minute */
        assert_int_equal(count_of(w, HF_WATCHDOG_GIVE_UP), signal);
        if (signal != 0) {
            is_about(w, when_of(w, HF_WATCHDOG_GIVE_UP, 0, begin), 3600 * SECOND);
        }
        free(w);
    }
}

static void T15_a_job_that_returns_is_forgotten_and_uncounted(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){0});
    w->is_canceled[0] = w->is_canceled[1] = true;
    look(w);
    w->has_returned[0] = true; /* it heard of its cancel */
    run_for(w, 11 * SECOND);
    assert_int_equal(w->policy.zombie_count, 1);
    assert_int_equal(count_of(w, HF_WATCHDOG_UNCOUNT), 0);
    w->has_returned[1] = true;
    run_for(w, SECOND);
    assert_int_equal(w->policy.zombie_count, 0);
    assert_int_equal(count_of(w, HF_WATCHDOG_UNCOUNT), 1);
    assert_true(hf_watchdog_policy_is_calm(&w->policy));
    w->is_canceled[1] = true; /* another job in the same slot begins anew */
    run_for(w, 9 * SECOND);
    assert_int_equal(w->policy.zombie_count, 0);
    assert_int_equal(count_of(w, HF_WATCHDOG_INTERRUPT), 1 + 5 + 5);
    free(w);
}

static void T16_ten_zombies_of_both_kinds_begin_the_shutdown(void **state)
{
    (void)state;
    for (int fibers = 0; fibers <= THREADS; fibers++) {
        world *w = with_signal((hf_watchdog_options){0});
        w->replaces = true;
        look(w);
        for (int i = 0; i < fibers; i++) {
            w->at[i].spins = true;
        }
        for (int i = 0; i < 9 - fibers; i++) {
            w->is_canceled[i] = true;
        }
        run_for(w, 100 * SECOND);
        assert_int_equal(w->policy.zombie_count, 9);
        assert_int_equal(count_of(w, HF_WATCHDOG_SHUTDOWN), 0);
        w->is_canceled[JOBS - 1] = true;
        run_for(w, 10 * SECOND + w->tick);
        assert_int_equal(count_of(w, HF_WATCHDOG_SHUTDOWN), 1);
        int64_t begin = when_of(w, HF_WATCHDOG_SHUTDOWN, 0, 0);
        run_for(w, 61 * SECOND);
        is_about(w, when_of(w, HF_WATCHDOG_CANCEL_ALL, 0, begin), 10 * SECOND);
        assert_int_equal(count_of(w, HF_WATCHDOG_FATAL), 1);
        free(w);
    }
}

static void T16_a_job_that_still_cleans_up_holds_the_end_back(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.zombies_max = 1});
    for (int i = 0; i < THREADS; i++) {
        w->at[i].idle = true;
    }
    w->is_canceled[0] = true;
    run_for(w, 11 * SECOND);
    int64_t begin = when_of(w, HF_WATCHDOG_SHUTDOWN, 0, 0);
    w->now = begin + 11 * SECOND;
    w->is_canceled[1] = true; /* canceled with everything else */
    run_for(w, 5 * SECOND);
    assert_int_equal(count_of(w, HF_WATCHDOG_FATAL), 0);
    w->has_returned[1] = true;
    run_for(w, SECOND);
    assert_int_equal(count_of(w, HF_WATCHDOG_FATAL), 1);
    free(w);
}

static void T16_zombies_max_off_counts_jobs_and_ends_nothing(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.zombies_max = HF_OFF});
    for (int i = 0; i < JOBS; i++) {
        w->is_canceled[i] = true;
    }
    run_for(w, 200 * SECOND);
    assert_int_equal(w->policy.zombie_count, JOBS);
    assert_int_equal(count_of(w, HF_WATCHDOG_SHUTDOWN) + count_of(w, HF_WATCHDOG_FATAL), 0);
    free(w);
}

static void jobs_are_watched_when_fibers_are_not(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.stuck_after = HF_SPAN_OFF});
    w->at[0].spins = true;
    w->is_canceled[0] = true;
    run_for(w, 11 * SECOND);
    assert_int_equal(w->policy.zombie_count, 1);
    assert_int_equal(count_of(w, HF_WATCHDOG_INTERRUPT), 5);
    free(w);
}

static void a_larger_table_keeps_what_is_known(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){.zombies_max = HF_OFF});
    w->policy.slot_count = FIRST_JOB + 1;
    w->is_canceled[0] = true;
    run_for(w, 11 * SECOND);
    static hf_watchdog_case larger[SLOTS];
    memset(larger, 0, sizeof larger);
    hf_watchdog_policy_grow(&w->policy, larger, SLOTS);
    w->is_canceled[JOBS - 1] = true;
    run_for(w, 11 * SECOND);
    assert_int_equal(w->policy.zombie_count, 2);
    assert_int_equal(count_of(w, HF_WATCHDOG_COUNT), 2);
    free(w);
}

/* Where only jobs are watched nobody looks every tick: stepping when hf_watchdog_policy_next says so does the same. */
static void looks_that_are_planned_do_what_looks_at_every_tick_do(void **state)
{
    (void)state;
    for (int zombies_max = 1; zombies_max <= 3; zombies_max++) {
        hf_watchdog_options options = {.stuck_after = HF_SPAN_OFF, .zombies_max = zombies_max};
        world *often = with_signal(options);
        world *planned = with_signal(options);
        often->tick = SECOND;
        for (int i = 0; i < THREADS; i++) {
            often->at[i].idle = planned->at[i].idle = true;
        }
        often->is_canceled[0] = often->is_canceled[1] = planned->is_canceled[0] = planned->is_canceled[1] = true;
        look(often);
        look(planned);
        run_for(often, 4000 * SECOND);
        int looks = 0;
        for (int64_t next = 0; (next = hf_watchdog_policy_next(&planned->policy)) != HF_WATCHDOG_NEVER; looks++) {
            assert_true(next > planned->now || planned->policy.stage == HF_WATCHDOG_FORCED);
            planned->now = next > planned->now ? next : planned->now + SECOND;
            look(planned);
        }
        assert_true(looks < 100);
        assert_int_equal(often->count, planned->count);
        for (int i = 0; i < often->count; i++) {
            assert_memory_equal(&often->happened[i].action, &planned->happened[i].action, sizeof(hf_watchdog_action));
            assert_int_equal(often->happened[i].when, planned->happened[i].when);
        }
        free(often);
        free(planned);
    }
}

/* ---- Random worlds against what must always hold ----------------------------------------------------------------- */

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void check_always(const world *w)
{
    int zombies = 0;
    int stuck = 0;
    for (int i = 0; i < SLOTS; i++) {
        zombies += w->policy.cases[i].is_counted;
        stuck += w->policy.cases[i].is_stuck;
    }
    HF_CHECK(zombies == w->policy.zombie_count);
    HF_CHECK(stuck == w->policy.stuck_count);
    HF_CHECK(count_of(w, HF_WATCHDOG_COUNT) - count_of(w, HF_WATCHDOG_UNCOUNT) == zombies);
    HF_CHECK(count_of(w, HF_WATCHDOG_SHUTDOWN) <= 1 && count_of(w, HF_WATCHDOG_FATAL) <= 1);
}

static void one_world(uint64_t seed)
{
    uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    world *w = with_signal((hf_watchdog_options){.zombies_max = next_random(&random) % 2 == 0 ? HF_OFF : 4,
                                                 .give_up_after = hf_seconds(25)});
    w->tick = 250 * MS;
    w->replaces = next_random(&random) % 4 != 0;
    for (int i = 0; i < 600; i++) {
        int slot = (int)(next_random(&random) % THREADS);
        int lost = THREADS + (int)(next_random(&random) % 4);
        switch (next_random(&random) % 24) {
        case 0:
            w->at[slot].spins = !w->at[slot].spins;
            break;
        case 1:
            w->at[slot].in_lib = !w->at[slot].in_lib;
            break;
        case 2:
            w->at[slot].idle = !w->at[slot].idle;
            break;
        case 3:
            w->is_back[lost] = w->is_lost[lost];
            break;
        case 4:
            w->now += (int64_t)(next_random(&random) % 5000) * MS;
            break;
        case 5:
            w->is_canceled[slot] = true;
            break;
        case 6:
            w->has_returned[slot] = w->is_canceled[slot];
            break;
        default:
            break;
        }
        run_for(w, w->tick);
        check_always(w);
        if (w->count > HAPPENED_MAX - 200) {
            break;
        }
    }
    free(w);
}

static void counts_are_right_in_any_world(void **state)
{
    (void)state;
    hf_each_seed("watchdog worlds", 300, one_world);
}

static void nothing_changes_by_itself_when_it_is_calm(void **state)
{
    (void)state;
    world *w = with_signal((hf_watchdog_options){0});
    for (int i = 0; i < THREADS; i++) {
        w->at[i].idle = true;
    }
    look(w);
    assert_true(hf_watchdog_policy_is_calm(&w->policy));
    w->now += 86400 * SECOND; /* the monitor slept for a day */
    w->at[0].idle = false;
    look(w);
    assert_int_equal(w->count, 0);
    free(w);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(T18_a_fiber_that_does_not_yield_is_reported_once),
    cmocka_unit_test(T18_another_episode_is_another_report),
    cmocka_unit_test(T18_who_moves_or_sleeps_is_not_stuck),
    cmocka_unit_test(T18_stuck_after_off_switches_everything_off),
    cmocka_unit_test(T13_cancel_and_interrupt_come_at_once_and_the_interrupt_again_at_1_2_4_8),
    cmocka_unit_test(T13_the_join_returns_early_when_the_fiber_ends),
    cmocka_unit_test(T13_a_late_look_interrupts_once_and_keeps_the_plan),
    cmocka_unit_test(T13_retries_can_be_switched_off),
    cmocka_unit_test(T14_zombie_is_counted_once_after_the_grace_period),
    cmocka_unit_test(X13_the_grace_period_has_a_timer_of_its_own),
    cmocka_unit_test(T14_give_up_ends_the_interrupts_and_the_zombie_stays_counted),
    cmocka_unit_test(T15_a_zombie_that_ends_later_is_uncounted),
    cmocka_unit_test(T15_without_a_signal_a_zombie_is_uncounted_when_its_thread_moves),
    cmocka_unit_test(T17_the_thread_of_a_zombie_is_replaced_and_serves_on),
    cmocka_unit_test(T17_a_fiber_inside_the_library_is_not_replaced),
    cmocka_unit_test(X12_the_ladder_starts_at_the_threshold_and_not_beyond_it),
    cmocka_unit_test(T16_the_ladder_drains_then_cancels_then_ends_the_process),
    cmocka_unit_test(T16_when_nobody_else_runs_the_force_period_is_the_end),
    cmocka_unit_test(T16_no_interrupt_after_the_force_period),
    cmocka_unit_test(T16_zombies_that_end_in_time_spare_the_process),
    cmocka_unit_test(T20_the_figures_of_the_ladder_can_be_set),
    cmocka_unit_test(N1_a_fiber_that_ignores_cancel_and_spins),
    cmocka_unit_test(N2_ten_such_fibers_end_the_process_within_61_seconds),
    cmocka_unit_test(N2_without_a_limit_it_keeps_serving),
    cmocka_unit_test(N3_give_up_leaves_a_counted_zombie_and_a_free_slot),
    cmocka_unit_test(T13_a_canceled_job_is_interrupted_at_once_and_again_at_1_2_4_8),
    cmocka_unit_test(T14_a_canceled_job_is_a_zombie_after_the_grace_and_given_up_after_an_hour),
    cmocka_unit_test(T15_a_job_that_returns_is_forgotten_and_uncounted),
    cmocka_unit_test(T16_ten_zombies_of_both_kinds_begin_the_shutdown),
    cmocka_unit_test(T16_a_job_that_still_cleans_up_holds_the_end_back),
    cmocka_unit_test(T16_zombies_max_off_counts_jobs_and_ends_nothing),
    cmocka_unit_test(jobs_are_watched_when_fibers_are_not),
    cmocka_unit_test(a_larger_table_keeps_what_is_known),
    cmocka_unit_test(looks_that_are_planned_do_what_looks_at_every_tick_do),
    cmocka_unit_test(counts_are_right_in_any_world),
    cmocka_unit_test(nothing_changes_by_itself_when_it_is_calm),
};

int main(int argc, char **argv)
{
    return hf_test_main("watch_policy", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
