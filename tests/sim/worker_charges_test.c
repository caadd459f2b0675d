/* A storm that charges and compensates: the workflows of support/till.h, on the real worker and engine. Meanwhile workers come
 * and go, clients signal and cancel, runs are evicted at every wait, and the process is killed. In the end every charge that
 * stands is in the result of its workflow, and no other. */
#include "support/eras.h"
#include "support/support.h"
#include "support/till.h"

#include "base/base.h"
#include "base/rng.h"

#include <stdio.h>
#include <string.h>

enum { RUNS = 3, LIVES = 3, TICK_MS = TILL_TICK_MS, DISTURBANCES = 6 };

typedef struct play {
    uint64_t seed;
    int cached_max;
    int crashes; /* still to come */
    eras eras;
    hf_sem *door; /* a user of the service holds a permit */
} play;

/* ---- Workers that come and go -------------------------------------------------------------------------------------- */

typedef struct life {
    play *p;
    bool is_till;   /* it does the charges; else it runs the workflows */
    hf_span before; /* delay before it begins */
    hf_span span;   /* how long it works; unlimited = until canceled */
} life;

static hf_status work(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status live(void *arg)
{
    life *l = arg;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_sleep(l->before));
    HF_TRY(hf_worker_new(l->p->eras.service, l->is_till ? "other" : "storm", &worker, .cached_max = l->p->cached_max,
                         .shutdown_grace = hf_milliseconds(TICK_MS), .shutdown_force = hf_minutes(2),
                         .activities_max = l->is_till ? 0 : HF_OFF));
    if (l->is_till) {
        HF_TRY(hf_worker_add_activity(worker, "charge", till_charge, .on_fiber = true));
        HF_TRY(hf_worker_add_activity(worker, "refund", till_refund, .on_fiber = true));
    } else {
        HF_TRY(hf_worker_add_workflow(worker, "buy", till_program));
        HF_TRY(hf_worker_add_activity(worker, "ponder", till_ponder, .on_fiber = true));
    }
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, work, worker));
    HF_IGNORE(hf_sleep(l->span)); /* canceled or over */
    HF_TRY(hf_worker_stop(worker));
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_minutes(10), &shield));
    return hf_join(scope);
}

/* ---- Clients ------------------------------------------------------------------------------------------------------- */

typedef struct client {
    play *p;
    unsigned index;
    hf_execution *execution;
} client;

static hf_status begin_run(client *c)
{
    char text[64];
    char id[32];
    (void)snprintf(text, sizeof text, "\"%llu %u\"", (unsigned long long)(c->p->seed * RUNS + c->index), c->index);
    (void)snprintf(id, sizeof id, "buy-%u", c->index);
    return hf_start(c->p->eras.service, "buy", hf_payload_of_json(text), &c->execution, .id = id,
                    .task_queue = "storm");
}

/* Signals now and then, and sometimes cancels. The run may have ended, and the process may be dead: no matter. */
static hf_status disturb(void *arg)
{
    client *c = arg;
    hf_rng rng = {hf_hash_mix(c->p->seed, c->index)};
    for (uint64_t i = hf_rng_below(&rng, DISTURBANCES + 1); i > 0; i--) {
        HF_TRY(hf_sleep(hf_milliseconds((int64_t)hf_rng_below(&rng, 10) * TICK_MS)));
        HF_TRY(hf_sem_acquire(c->p->door, 1));
        bool cancels = hf_rng_below(&rng, 6) == 0;
        HF_IGNORE(cancels ? hf_cancel(c->execution)
                          : hf_signal(c->execution, hf_rng_below(&rng, 2) == 0 ? "go" : "note", hf_payload_none()));
        HF_TRY(hf_sem_release(c->p->door, 1));
    }
    return HF_OK;
}

static hf_status end_run(client *c)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_status status = hf_result(c->execution, &out, .timeout = hf_hours(3));
    bool is_canceled = status == HF_ERR_FAILED && strcmp(hf_error()->type, "WorkflowCanceled") == 0;
    HF_CHECK_SAY(status == HF_OK || is_canceled, "run %u ended with %s: %s", c->index, hf_status_name(status),
                 hf_error_text());
    till_check(c->index, out);
    return HF_OK;
}

/* ---- The play ------------------------------------------------------------------------------------------------------ */

static hf_status start_again(play *p, client *clients)
{
    HF_TRY(hf_sem_acquire(p->door, RUNS));
    for (size_t i = 0; i < RUNS; i++) {
        hf_execution_free(clients[i].execution);
    }
    HF_TRY(eras_next(&p->eras));
    for (size_t i = 0; i < RUNS; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "buy-%zu", i);
        HF_TRY(hf_execution_new(p->eras.service, id, &clients[i].execution));
    }
    return hf_sem_release(p->door, RUNS);
}

static hf_status begin_lives(play *p, hf_rng *rng, life lives[LIVES + 1], hf_scope *scope)
{
    lives[LIVES] = (life){p, true, hf_nanoseconds(0), HF_SPAN_UNLIMITED};
    for (int i = 0; i < LIVES; i++) {
        lives[i] = (life){p, false, hf_milliseconds((int64_t)hf_rng_below(rng, 60) * TICK_MS),
                          hf_milliseconds((1 + (int64_t)hf_rng_below(rng, 40)) * TICK_MS)};
    }
    for (int i = 0; i <= LIVES; i++) {
        HF_TRY(hf_fork(scope, live, &lives[i]));
    }
    return HF_OK;
}

/* Workers, until the process is killed. */
static hf_status short_era(play *p, hf_rng *rng)
{
    life lives[LIVES + 1];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "short era", .join = HF_JOIN_COLLECT));
    HF_TRY(begin_lives(p, rng, lives, scope));
    HF_TRY(hf_sleep(hf_milliseconds((int64_t)hf_rng_below(rng, 40) * TICK_MS)));
    for (uint64_t i = hf_rng_below(rng, 100); i > 0; i--) { /* so that the kill comes in the middle of other work */
        HF_TRY(hf_yield());
    }
    eras_kill(&p->eras);
    HF_TRY(hf_scope_cancel(scope));
    HF_IGNORE(hf_join(scope));
    return HF_OK;
}

static hf_status last_era(play *p, hf_rng *rng, client *clients)
{
    life lives[LIVES + 1];
    life last = {p, false, hf_milliseconds((int64_t)hf_rng_below(rng, 60) * TICK_MS), HF_SPAN_UNLIMITED};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "last era", .join = HF_JOIN_COLLECT));
    HF_TRY(begin_lives(p, rng, lives, scope));
    HF_TRY(hf_fork(scope, live, &last));
    for (size_t i = 0; i < RUNS; i++) {
        HF_TRY(end_run(&clients[i]));
    }
    HF_TRY(hf_scope_cancel(scope));
    HF_IGNORE(hf_join(scope));
    return HF_OK;
}

static hf_status play_main(void *arg)
{
    play *p = arg;
    hf_rng rng = {hf_hash_mix(p->seed, 99)};
    client clients[RUNS] = {{.p = NULL}};
    HF_TRY(eras_open(&p->eras, p->crashes == 0));
    HF_TRY(hf_sem_new(RUNS, &p->door));
    for (unsigned i = 0; i < RUNS; i++) {
        clients[i] = (client){.p = p, .index = i};
        HF_TRY(begin_run(&clients[i]));
    }
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = "disturbers"));
        for (size_t i = 0; i < RUNS; i++) {
            HF_TRY(hf_fork(scope, disturb, &clients[i]));
        }
        for (; p->crashes > 0; p->crashes--) {
            HF_TRY(short_era(p, &rng));
            HF_TRY(start_again(p, clients));
        }
        HF_TRY(last_era(p, &rng, clients));
        HF_TRY(hf_join(scope));
    }
    for (size_t i = 0; i < RUNS; i++) {
        hf_execution_free(clients[i].execution);
    }
    HF_TRY(hf_sem_free(p->door));
    return eras_close(&p->eras);
}

static void play_seed(uint64_t seed, int cached_max, int crashes)
{
    play p = {.seed = seed, .cached_max = cached_max, .crashes = crashes, .eras = {.name = "charges"}};
    till_open(crashes == 0, &p.eras.is_ghost);
    hf_status status = hf_sim_run(seed, 2, play_main, &p, NULL);
    HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
}

static void kept(uint64_t seed)
{
    play_seed(seed, 0, 0);
}

static void evicted(uint64_t seed)
{
    play_seed(seed, HF_OFF, 0);
}

static void few(uint64_t seed)
{
    play_seed(seed, 1, 0);
}

static void killed(uint64_t seed)
{
    static const int CACHED[] = {0, HF_OFF, 1};
    play_seed(seed, CACHED[seed % 3], 1 + (int)(seed % 3));
}

static void weather(const char *what, uint64_t count, void (*one_play)(uint64_t seed))
{
    memset(&till_seen, 0, sizeof till_seen);
    hf_each_seed(what, count, one_play);
    print_message("%llu charges, %llu refunds; %llu charges were told to end, and %llu made all the same\n",
                  (unsigned long long)till_seen.charges, (unsigned long long)till_seen.refunds,
                  (unsigned long long)till_seen.told, (unsigned long long)till_seen.late);
}

static void what_stands_is_what_the_result_says_with_workflows_in_memory(void **state)
{
    (void)state;
    weather("charges with workflows in memory", 1500, kept);
}

static void what_stands_is_what_the_result_says_evicted_at_every_await(void **state)
{
    (void)state;
    weather("charges with none", 1500, evicted);
}

static void what_stands_is_what_the_result_says_with_room_for_one(void **state)
{
    (void)state;
    weather("charges with room for one", 1500, few);
}

static void what_stands_is_what_the_result_says_when_the_process_is_killed(void **state)
{
    (void)state;
    weather("charges with kills", 500, killed);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(what_stands_is_what_the_result_says_with_workflows_in_memory),
    cmocka_unit_test(what_stands_is_what_the_result_says_evicted_at_every_await),
    cmocka_unit_test(what_stands_is_what_the_result_says_with_room_for_one),
    cmocka_unit_test(what_stands_is_what_the_result_says_when_the_process_is_killed),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_charges", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
