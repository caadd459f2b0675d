/* Simulated threads and time: words, deadlines, points, determinism, and the runs that do not end. */
#include "sim_check.h"

#include "base/current.h"
#include "base/rng.h"
#include "base/switch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

typedef struct pair {
    hf_env *env;
    hf_word turn; /* whose turn it is: 0 or 1 */
    int rounds;
    int done[2];
} pair;

typedef struct player {
    pair *pair;
    uint32_t me;
} player;

static void play(void *arg)
{
    const player *self = (const player *)arg;
    pair *game = self->pair;
    hf_env *env = game->env;
    for (int i = 0; i < game->rounds; i++) {
        while (atomic_load(&game->turn) != self->me) {
            (void)env->ops->word_wait(env, &game->turn, 1 - self->me, HF_INSTANT_NEVER);
        }
        game->done[self->me]++;
        env->ops->point(env, HF_POINT_SWITCH, (uint64_t)i);
        atomic_store(&game->turn, 1 - self->me);
        env->ops->point(env, HF_POINT_WAKE, (uint64_t)i);
        env->ops->word_wake(env, &game->turn, 1);
    }
}

static uint64_t ping_pong(uint64_t seed, int rounds)
{
    hf_env *env = NULL;
    assert_int_equal(hf_sim_new(&env, .seed = seed), HF_OK);
    pair game = {.env = env, .rounds = rounds};
    player players[2] = {{&game, 0}, {&game, 1}};
    hf_thread *a = sim_start(env, "ping", play, &players[0]);
    hf_thread *b = sim_start(env, "pong", play, &players[1]);
    env->ops->thread_join(env, a);
    env->ops->thread_join(env, b);
    assert_int_equal(game.done[0], rounds);
    assert_int_equal(game.done[1], rounds);
    uint64_t hash = hf_sim_trace_hash(env);
    sim_finish(env, seed);
    return hash;
}

static void same_seed_gives_the_same_trace(void **state)
{
    (void)state;
    uint64_t *hashes = (uint64_t *)calloc(1000, sizeof *hashes);
    assert_non_null(hashes);
    for (uint64_t seed = 0; seed < 1000; seed++) {
        hashes[seed] = ping_pong(seed, 20);
    }
    for (uint64_t seed = 0; seed < 1000; seed++) {
        assert_int_equal(hashes[seed], ping_pong(seed, 20));
        assert_true(seed == 0 || hashes[seed] != hashes[seed - 1]);
    }
    free(hashes);
}

/* A counting semaphore over a futex, with several on each side: no wake-up may be lost. */
typedef struct depot {
    hf_env *env;
    hf_word count;
    hf_word waiting;
    hf_word taken;
} depot;

static void producer(void *arg)
{
    depot *shared = (depot *)arg;
    hf_env *env = shared->env;
    for (int i = 0; i < 30; i++) {
        (void)atomic_fetch_add(&shared->count, 1);
        env->ops->point(env, HF_POINT_POST, (uint64_t)i);
        if (atomic_load(&shared->waiting) > 0) {
            env->ops->word_wake(env, &shared->count, 1);
        }
    }
}

static void consumer(void *arg)
{
    depot *shared = (depot *)arg;
    hf_env *env = shared->env;
    for (int i = 0; i < 20; i++) {
        for (;;) {
            uint32_t count = atomic_load(&shared->count);
            env->ops->point(env, HF_POINT_LOCK, count);
            if (count > 0 && atomic_compare_exchange_strong(&shared->count, &count, count - 1)) {
                break;
            }
            if (count == 0) {
                (void)atomic_fetch_add(&shared->waiting, 1);
                (void)env->ops->word_wait(env, &shared->count, 0, HF_INSTANT_NEVER);
                (void)atomic_fetch_sub(&shared->waiting, 1);
            }
        }
        (void)atomic_fetch_add(&shared->taken, 1);
    }
}

static void no_wake_up_is_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        hf_env *env = NULL;
        assert_int_equal(hf_sim_new(&env, .seed = seed, .switch_permille = 500), HF_OK);
        depot shared = {.env = env};
        hf_thread *threads[5];
        for (int i = 0; i < 5; i++) {
            threads[i] = sim_start(env, i < 2 ? "producer" : "consumer", i < 2 ? producer : consumer, &shared);
        }
        for (int i = 0; i < 5; i++) {
            env->ops->thread_join(env, threads[i]);
        }
        assert_int_equal(atomic_load(&shared.taken), 60);
        sim_finish(env, seed);
    }
}

/* ---- time ---- */

static void deadlines_move_the_clock(void **state)
{
    (void)state;
    hf_env *env = NULL;
    assert_int_equal(hf_sim_new(&env, .seed = 7), HF_OK);
    hf_instant start = env->ops->now(env);
    hf_time wall = env->ops->wall_now(env);
    hf_word word = 5;
    assert_true(env->ops->word_wait(env, &word, 4, HF_INSTANT_NEVER));
    assert_false(env->ops->word_wait(env, &word, 5, start));
    hf_instant later = {start.ns + hf_hours(1000).ns};
    while (env->ops->word_wait(env, &word, 5, later)) { /* woken for nothing */
        assert_int_equal(env->ops->now(env).ns, start.ns);
    }
    assert_int_equal(env->ops->now(env).ns, later.ns);
    assert_int_equal(env->ops->wall_now(env).ns - wall.ns, hf_hours(1000).ns);
    sim_finish(env, 7);
}

typedef struct sleeper {
    hf_env *env;
    hf_span span;
    int *order;
    int *next;
    int name;
} sleeper;

static void sleep_and_tell(void *arg)
{
    const sleeper *self = (const sleeper *)arg;
    hf_word word = 0;
    hf_instant until = {self->env->ops->now(self->env).ns + self->span.ns};
    while (self->env->ops->word_wait(self->env, &word, 0, until)) {
    }
    SIM_CHECK(self->env->ops->now(self->env).ns == until.ns);
    self->order[(*self->next)++] = self->name;
}

static void sleepers_wake_in_the_order_of_their_deadlines(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        hf_env *env = NULL;
        assert_int_equal(hf_sim_new(&env, .seed = seed), HF_OK);
        int order[4] = {0};
        int next = 0;
        sleeper sleepers[4];
        hf_thread *threads[4];
        static const int MS[4] = {30, 10, 40, 20};
        for (int i = 0; i < 4; i++) {
            sleepers[i] = (sleeper){env, hf_milliseconds(MS[i]), order, &next, i};
            threads[i] = sim_start(env, "sleeper", sleep_and_tell, &sleepers[i]);
        }
        for (int i = 0; i < 4; i++) {
            env->ops->thread_join(env, threads[i]);
        }
        static const int EXPECTED[4] = {1, 3, 0, 2};
        assert_memory_equal(order, EXPECTED, sizeof order);
        sim_finish(env, seed);
    }
}

/* ---- what belongs to a thread ---- */

static void keep_own_self(void *arg)
{
    hf_env *env = (hf_env *)arg;
    hf_self self = {NULL};
    SIM_CHECK(hf_self_get() == NULL);
    hf_self_set(&self);
    for (int i = 0; i < 50; i++) {
        errno = i;
        env->ops->point(env, HF_POINT_SWITCH, 0);
        SIM_CHECK(hf_self_get() == &self);
        SIM_CHECK(errno == i);
    }
}

/* base-B1 */
static void each_thread_has_its_own_self_errno_and_id(void **state)
{
    (void)state;
    hf_env *env = NULL;
    hf_self self = {NULL};
    assert_int_equal(hf_sim_new(&env, .seed = 3, .switch_permille = 900), HF_OK);
    hf_self_set(&self);
    assert_int_equal(env->ops->thread_id(env), 1);
    hf_thread *a = sim_start(env, "a", keep_own_self, env);
    hf_thread *b = sim_start(env, "b", keep_own_self, env);
    env->ops->thread_join(env, a);
    env->ops->thread_join(env, b);
    assert_ptr_equal(hf_self_get(), &self);
    hf_self_set(NULL);
    sim_finish(env, 3);
}

/* A thread that runs something on another stack, as a scheduler runs fibers, may be left there. */
typedef struct scheduler {
    hf_env *env;
    hf_context own;
    hf_context fiber;
    char *stack;
    int points;
    bool is_done;
} scheduler;

enum { FIBER_STACK_LEN = 64 * 1024 };

static void fiber_main(void *arg)
{
    scheduler *self = (scheduler *)arg;
    hf_context_arrived(&self->fiber, &self->own);
    for (int i = 0; i < 20; i++) {
        self->points++;
        self->env->ops->point(self->env, HF_POINT_PARK, (uint64_t)i);
        hf_context_switch(&self->fiber, &self->own, false);
        hf_context_arrived(&self->fiber, &self->own);
    }
    self->is_done = true;
    hf_context_switch(&self->fiber, &self->own, true);
}

static void scheduler_main(void *arg)
{
    scheduler *self = (scheduler *)arg;
    hf_context_adopt(&self->own);
    hf_context_make(&self->fiber, self->stack, self->stack + FIBER_STACK_LEN, fiber_main, self);
    hf_context_announce(&self->fiber);
    while (!self->is_done) {
        hf_context_switch(&self->own, &self->fiber, false);
        hf_context_arrived(&self->own, &self->fiber);
        self->env->ops->point(self->env, HF_POINT_SWITCH, 0);
    }
    hf_context_retire(&self->fiber);
}

/* env-C4 */
static void threads_may_be_left_on_a_fibers_stack(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        hf_env *env = NULL;
        assert_int_equal(hf_sim_new(&env, .seed = seed, .switch_permille = 600), HF_OK);
        scheduler schedulers[3];
        hf_thread *threads[3];
        for (int i = 0; i < 3; i++) {
            schedulers[i] = (scheduler){.env = env, .stack = (char *)malloc(FIBER_STACK_LEN)};
            assert_non_null(schedulers[i].stack);
            threads[i] = sim_start(env, "scheduler", scheduler_main, &schedulers[i]);
        }
        for (int i = 0; i < 3; i++) {
            env->ops->thread_join(env, threads[i]);
            assert_int_equal(schedulers[i].points, 20);
#if HF_ASAN
            __asan_unpoison_memory_region(schedulers[i].stack, FIBER_STACK_LEN);
#endif
            free(schedulers[i].stack);
        }
        sim_finish(env, seed);
    }
}

static void end_later(void *arg)
{
    hf_env *env = (hf_env *)arg;
    hf_word word = 0;
    hf_instant until = {env->ops->now(env).ns + 1000};
    while (env->ops->word_wait(env, &word, 0, until)) {
    }
}

static void a_forgotten_thread_is_waited_for_at_the_end(void **state)
{
    (void)state;
    hf_env *env = NULL;
    hf_sim_counters counters;
    assert_int_equal(hf_sim_new(&env, .seed = 3), HF_OK);
    env->ops->thread_forget(env, sim_start(env, "forgotten", end_later, env));
    hf_sim_count(env, &counters);
    assert_int_equal(counters.threads_live, 1);
    sim_finish(env, 3);
}

/* ---- runs that do not end ---- */

typedef struct verdict {
    jmp_buf back;
    char report[2048];
} verdict;

static void catch_stuck(void *state, const char *report)
{
    verdict *caught = (verdict *)state;
    (void)snprintf(caught->report, sizeof caught->report, "%s", report);
    longjmp(caught->back, 1);
}

static void wait_for_ever(void *arg)
{
    hf_env *env = (hf_env *)arg;
    hf_word word = 9;
    while (atomic_load(&word) == 9) {
        (void)env->ops->word_wait(env, &word, 9, HF_INSTANT_NEVER);
    }
}

static void poll_for_ever(void *arg)
{
    hf_env *env = (hf_env *)arg;
    hf_poller *poller = NULL;
    hf_event events[4];
    SIM_CHECK(env->ops->poller_open(env, NULL, &poller) == HF_OK);
    for (;;) {
        (void)env->ops->poller_wait(env, poller, events, 4, HF_INSTANT_NEVER);
    }
}

static void a_deadlock_is_reported(void **state)
{
    (void)state;
    static verdict caught;
    for (volatile uint64_t seed = 0; seed < 50; seed++) {
        hf_env *env = NULL;
        assert_int_equal(hf_sim_new(&env, .seed = seed), HF_OK);
        assert_non_null(env->ops->allocate(env, 100, 8)); /* swept away with the run */
        hf_env *volatile kept = env;
        hf_sim_on_stuck(env, catch_stuck, &caught);
        if (setjmp(caught.back) == 0) {
            hf_thread *thread = sim_start(env, "waiter", wait_for_ever, env);
            (void)sim_start(env, "poller", poll_for_ever, env);
            env->ops->thread_join(env, thread);
            fail();
        }
        assert_non_null(strstr(caught.report, "stuck"));
        assert_non_null(strstr(caught.report, "\"main\": waits for thread 1 \"waiter\" to end"));
        assert_non_null(strstr(caught.report, "\"waiter\": waits for a word to differ from 9, no deadline"));
        assert_non_null(strstr(caught.report, "\"poller\": waits in poller 1 with 0 descriptors, no deadline"));
        hf_sim_free(kept);
    }
}

/* A classic mistake: the waker looks for waiters, and the waiter announces itself only after its last look. */
typedef struct careless {
    hf_env *env;
    hf_word ready;
    hf_word waiting;
    hf_word bell;
} careless;

static void careless_wait(void *arg)
{
    careless *shared = (careless *)arg;
    hf_env *env = shared->env;
    while (atomic_load(&shared->ready) == 0) {
        env->ops->point(env, HF_POINT_PARK, 0);
        atomic_store(&shared->waiting, 1);
        (void)env->ops->word_wait(env, &shared->bell, 0, HF_INSTANT_NEVER);
    }
}

static void careless_wake(void *arg)
{
    careless *shared = (careless *)arg;
    hf_env *env = shared->env;
    env->ops->point(env, HF_POINT_POST, 0);
    atomic_store(&shared->ready, 1);
    if (atomic_load(&shared->waiting) != 0) {
        env->ops->word_wake(env, &shared->bell, 1);
    }
}

static void some_seed_finds_a_lost_wake_up(void **state)
{
    (void)state;
    static verdict caught;
    volatile int found = 0;
    for (volatile uint64_t seed = 0; seed < 500; seed++) {
        hf_env *env = NULL;
        assert_int_equal(hf_sim_new(&env, .seed = seed), HF_OK);
        hf_env *volatile kept = env;
        careless shared = {.env = env};
        hf_sim_on_stuck(env, catch_stuck, &caught);
        if (setjmp(caught.back) == 0) {
            hf_thread *waiter = sim_start(env, "waiter", careless_wait, &shared);
            hf_thread *waker = sim_start(env, "waker", careless_wake, &shared);
            env->ops->thread_join(env, waker);
            env->ops->thread_join(env, waiter);
        } else {
            found++;
        }
        hf_sim_free(kept);
    }
    print_message("%d of 500 seeds found it\n", found);
    assert_in_range(found, 5, 495);
}

static void spin_for_ever(void *arg)
{
    hf_env *env = (hf_env *)arg;
    for (;;) {
        env->ops->point(env, HF_POINT_SWITCH, 0);
    }
}

static void an_endless_run_is_reported(void **state)
{
    (void)state;
    static verdict caught;
    hf_env *env = NULL;
    assert_int_equal(hf_sim_new(&env, .seed = 1, .steps_max = 1000), HF_OK);
    hf_env *volatile kept = env;
    hf_sim_on_stuck(env, catch_stuck, &caught);
    if (setjmp(caught.back) == 0) {
        env->ops->thread_join(env, sim_start(env, "spinner", spin_for_ever, env));
        fail();
    }
    assert_non_null(strstr(caught.report, "endless"));
    assert_non_null(strstr(caught.report, "\"spinner\": can run"));
    assert_true(hf_sim_steps(kept) > 1000);
    hf_sim_free(kept);
}

/* ---- signals ---- */

static uint64_t signalled_id; /* of the thread that ran the handler last */
static int signal_count;

static hf_env *signal_env;

static void on_signal(void)
{
    signal_count++;
    signalled_id = signal_env->ops->thread_id(signal_env);
}

typedef struct blocked {
    hf_word word;
    uint64_t id;
    int64_t woken_ns; /* by the last wake-up that took time */
} blocked;

static void block(void *arg)
{
    blocked *self = (blocked *)arg;
    hf_env *env = signal_env;
    self->id = env->ops->thread_id(env);
    int64_t last = env->ops->now(env).ns;
    while (atomic_load(&self->word) == 0) {
        (void)env->ops->word_wait(env, &self->word, 0, HF_INSTANT_NEVER);
        int64_t now = env->ops->now(env).ns;
        self->woken_ns = now != last ? now : self->woken_ns;
        last = now;
    }
}

static void a_signal_interrupts_the_thread_that_it_is_for(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        hf_env *env = NULL;
        hf_op op;
        hf_op_init(&op);
        assert_int_equal(hf_sim_new(&env, .seed = seed), HF_OK);
        signal_env = env;
        signal_count = 0;
        blocked all[2] = {{.id = 0}, {.id = 0}};
        hf_thread *threads[2] = {sim_start(env, "one", block, &all[0]), sim_start(env, "other", block, &all[1])};
        assert_int_equal(env->ops->thread_signal(env, &op, threads[1], 23), HF_ERR_MISUSE); /* nobody opened it */
        assert_int_equal(env->ops->interrupt_open(env, &op, 23, on_signal), HF_OK);
        hf_word never = 0;
        int64_t from = env->ops->now(env).ns;
        for (int i = 1; i <= 3; i++) {
            while (env->ops->now(env).ns < from + i * 1000) {
                (void)env->ops->word_wait(env, &never, 0, (hf_instant){from + i * 1000});
            }
            assert_int_equal(env->ops->thread_signal(env, &op, threads[1], 23), HF_OK);
        }
        for (int i = 0; i < 2; i++) {
            atomic_store(&all[i].word, 1);
            env->ops->word_wake(env, &all[i].word, 1);
            env->ops->thread_join(env, threads[i]);
        }
        assert_int_equal(signal_count, 3);
        assert_int_equal(signalled_id, all[1].id);
        assert_int_equal(all[0].woken_ns, from + 3000); /* by the end alone */
        assert_int_equal(all[1].woken_ns, from + 3000);
        sim_finish(env, seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_gives_the_same_trace),
        cmocka_unit_test(no_wake_up_is_lost),
        cmocka_unit_test(deadlines_move_the_clock),
        cmocka_unit_test(sleepers_wake_in_the_order_of_their_deadlines),
        cmocka_unit_test(each_thread_has_its_own_self_errno_and_id),
        cmocka_unit_test(threads_may_be_left_on_a_fibers_stack),
        cmocka_unit_test(a_forgotten_thread_is_waited_for_at_the_end),
        cmocka_unit_test(a_signal_interrupts_the_thread_that_it_is_for),
        cmocka_unit_test(a_deadlock_is_reported),
        cmocka_unit_test(some_seed_finds_a_lost_wake_up),
        cmocka_unit_test(an_endless_run_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
