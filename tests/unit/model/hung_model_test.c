/* Activities that hang, against a twin: a few slots, activities that come one after another, each of which ends in time, or
 * ignores its timeout until it is let go. The twin knows when each must begin and how many zombies there are at any time.
 *
 *     slot of a good one:  begins ... ends                    begins when a slot is free, in the order in which they came
 *     slot of a hung one:  begins ... at most TIMEOUT + GRACE
 *     a zombie:            from begin + TIMEOUT + GRACE until it is let go */
#include "support/support.h"

#include "base/base.h"
#include "base/rng.h"
#include "env/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS_MAX = 12, SLOTS_MAX = 3, TIMEOUT_MS = 1000, GRACE_MS = 10000, SLACK_MS = 10, END_MS = 300000 };

typedef struct task {
    int64_t comes_ms;
    int64_t takes_ms;  /* a good one: for so long; 0 = it hangs ... */
    int64_t let_go_ms; /* ... until then */
    int64_t begins_ms; /* the twin */
    int64_t began_ms;  /* what happened; -1 = nothing yet */
    hf_word word;      /* 1 = it is let go */
} task;

static hf_env *env;
static task tasks[TASKS_MAX];
static int task_count;
static int slot_count;
static int64_t zero_ns;

static int64_t now_ms(void)
{
    return (env->ops->now(env).ns - zero_ns) / 1000000;
}

/* ---- The twin ---------------------------------------------------------------------------------------------------------- */

static int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t ends_ms(const task *t)
{
    return t->takes_ms > 0 ? t->begins_ms + t->takes_ms : max_of(t->begins_ms, t->let_go_ms);
}

static int64_t zombie_ms(const task *t)
{
    return t->begins_ms + TIMEOUT_MS + GRACE_MS;
}

static void foresee(void)
{
    int64_t free_ms[SLOTS_MAX] = {0};
    for (int i = 0; i < task_count; i++) {
        int slot = 0;
        for (int k = 1; k < slot_count; k++) {
            slot = free_ms[k] < free_ms[slot] ? k : slot;
        }
        task *t = &tasks[i];
        t->begins_ms = max_of(t->comes_ms, free_ms[slot]);
        int64_t end = ends_ms(t);
        free_ms[slot] = end < zombie_ms(t) ? end : zombie_ms(t);
    }
}

/* -1: too close to a change to say. */
static int zombies_at(int64_t ms)
{
    int count = 0;
    for (int i = 0; i < task_count; i++) {
        const task *t = &tasks[i];
        int64_t from = zombie_ms(t);
        int64_t to = ends_ms(t);
        if (t->takes_ms > 0) {
            continue;
        }
        if (llabs(ms - from) <= SLACK_MS || llabs(ms - to) <= SLACK_MS) {
            return -1;
        }
        count += ms > from && ms < to;
    }
    return count;
}

/* ---- The activity -------------------------------------------------------------------------------------------------------- */

static hf_status act(hf_payload in, hf_payload *ret_out)
{
    task *t = &tasks[strtol(in.data, NULL, 10)];
    (void)ret_out;
    t->began_ms = now_ms();
    if (t->takes_ms > 0) {
        return hf_sleep(hf_milliseconds(t->takes_ms));
    }
    while (atomic_load(&t->word) == 0) {
        (void)env->ops->word_wait(env, &t->word, 0, (hf_instant){INT64_MAX});
    }
    return HF_OK;
}

static hf_status ask(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("act", in, ret_out, .start_to_close = hf_milliseconds(TIMEOUT_MS), .attempts_max = 1);
}

/* ---- The play ------------------------------------------------------------------------------------------------------------ */

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status bring(hf_service *service, int i)
{
    char in[16];
    (void)snprintf(in, sizeof in, "%d", i);
    return hf_start(service, "ask", hf_payload_of_json(in), NULL, .id = in, .task_queue = "q");
}

static void let_go(task *t)
{
    atomic_store(&t->word, 1);
    env->ops->word_wake(env, &t->word, 1);
}

/* What is due at this millisecond. False: everything has happened. */
static bool happen(hf_service *service, int64_t ms)
{
    bool is_over = true;
    for (int i = 0; i < task_count; i++) {
        task *t = &tasks[i];
        if (t->comes_ms == ms) {
            HF_CHECK(bring(service, i) == HF_OK);
        }
        if (t->takes_ms == 0 && t->let_go_ms == ms) {
            let_go(t);
        }
        is_over &= ms > t->comes_ms && ms > ends_ms(t) + SLACK_MS && ms > t->let_go_ms;
    }
    if (ms % 500 == 0) {
        hf_stats stats;
        int wanted = zombies_at(ms);
        HF_CHECK(hf_runtime_stats(NULL, &stats) == HF_OK);
        HF_CHECK_SAY(wanted < 0 || stats.zombies == (uint64_t)wanted, "%d zombies after %" PRId64 " ms, not %d",
                     (int)stats.zombies, ms, wanted);
    }
    return !is_over;
}

static hf_status play(void *arg)
{
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker, .activities_max = slot_count));
    HF_TRY(hf_worker_add_workflow(worker, "ask", ask));
    HF_TRY(hf_worker_add_activity(worker, "act", act));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_worker, worker));
    zero_ns = hf_now(NULL).ns;
    for (int64_t ms = 0; ms < END_MS && happen(service, ms); ms += 100) { /* all figures are multiples of that */
        HF_TRY(hf_sleep(hf_nanoseconds(zero_ns + (ms + 100) * 1000000 - hf_now(NULL).ns)));
    }
    for (int i = 0; i < task_count; i++) {
        let_go(&tasks[i]);
    }
    HF_TRY(hf_worker_stop(worker));
    return hf_join(scope);
}

static void one_seed(uint64_t seed)
{
    hf_rng rng = {seed * UINT64_C(0x9e3779b97f4a7c15)};
    memset(tasks, 0, sizeof tasks);
    slot_count = 1 + (int)hf_rng_below(&rng, SLOTS_MAX);
    task_count = 1 + (int)hf_rng_below(&rng, TASKS_MAX);
    int64_t comes = 0;
    for (int i = 0; i < task_count; i++) {
        bool hangs = hf_rng_below(&rng, 2) == 0;
        comes += 100 * (1 + (int64_t)hf_rng_below(&rng, 20));
        tasks[i] = (task){.comes_ms = comes,
                          .takes_ms = hangs ? 0 : 100 * (1 + (int64_t)hf_rng_below(&rng, 8)),
                          .let_go_ms = hangs ? comes + 100 * (int64_t)hf_rng_below(&rng, 400) : 0,
                          .began_ms = -1};
    }
    foresee();
    env = hf_sim_begin(seed);
    hf_runtime_options options = hf_sim_runtime_options(env, 1 + (int)hf_rng_below(&rng, 3));
    options.watchdog.signal = hf_rng_below(&rng, 2) == 0 ? 23 : 0;
    options.watchdog.zombies_max = HF_OFF;
    HF_CHECK(hf_run_with(play, NULL, &options) == HF_OK);
    hf_sim_end(env, NULL);
    for (int i = 0; i < task_count; i++) {
        const task *t = &tasks[i];
        HF_CHECK_SAY(t->began_ms >= t->begins_ms && t->began_ms <= t->begins_ms + SLACK_MS,
                     "activity %d began after %" PRId64 " ms, not %" PRId64, i, t->began_ms, t->begins_ms);
    }
}

static void slots_and_zombies_are_those_of_the_twin(void **state)
{
    (void)state;
    hf_each_seed("hung activities", 1000, one_seed);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {cmocka_unit_test(slots_and_zombies_are_those_of_the_twin)};
    return hf_test_main("hung_model", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
