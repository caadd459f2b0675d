/* The storm (support/storm.h) as it was when the histories storm-*.json were recorded. That one grows; this one may not change. */
#include "replay/programs.h"

#include "base/base.h"
#include "base/rng.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>

enum { DEPTH_MAX = 4, CHILDREN_MAX = 4, BUDGET = 80, TICK_MS = 10 };

/* ---- The walk ------------------------------------------------------------------------------------------------------ */

/* Shared by the fibers of a program. */
typedef struct common {
    int budget; /* operations that are left */
    hf_chan *chan;
    hf_mutex *mutex;
    hf_sem *sem;
    hf_cond *cond;
    hf_keylock *keys;
} common;

/* One fiber of a program: the results of its calls so far decide what it does next. */
typedef struct walk {
    uint64_t told;
    int depth;
    common *all;
} walk;

typedef struct child {
    walk walk;
    hf_status status;
} child;

static hf_status block(walk *w, int most);

/* A number below `bound` that depends on all results so far. */
static uint64_t draw(walk *w, uint64_t bound)
{
    w->told = hf_hash_mix(w->told, 17);
    return w->told % bound;
}

static hf_span ticks(walk *w, uint64_t most)
{
    return hf_milliseconds((int64_t)draw(w, most + 1) * TICK_MS);
}

/* For bounds: never 0, which would mean no bound. */
static hf_span some_ticks(walk *w, uint64_t most)
{
    return hf_milliseconds((1 + (int64_t)draw(w, most)) * TICK_MS);
}

/* For waits: sometimes HF_SPAN_OFF, which does not wait. */
static hf_span some_wait(walk *w, uint64_t most)
{
    return draw(w, 8) == 0 ? HF_SPAN_OFF : some_ticks(w, most);
}

static hf_status hear(walk *w, hf_status status)
{
    w->told = hf_hash_mix(w->told, (uint64_t)status);
    return status;
}

static hf_status run_activity(walk *w)
{
    char text[32];
    hf_payload out = {0};
    bool is_short = draw(w, 3) == 0;
    bool beats = draw(w, 2) == 0;
    hf_span bound = some_ticks(w, 4);
    (void)snprintf(text, sizeof text, "%d", (int)(w->told % 100000));
    hf_status status = hf_activity_run("act", hf_payload_of_json(text), &out, .task_queue = "other",
                                       .start_to_close = is_short ? bound : hf_seconds(30),
                                       .schedule_to_close = draw(w, 5) == 0 ? bound : hf_nanoseconds(0),
                                       .heartbeat = beats ? hf_milliseconds(TICK_MS * 2) : hf_nanoseconds(0),
                                       .attempts_max = 1 + (int)draw(w, 3), .id = draw(w, 2) == 0 ? "named" : NULL,
                                       .retry_initial = hf_milliseconds(TICK_MS));
    if (status == HF_OK) {
        w->told = hf_hash_mix(w->told, strtoull(out.data, NULL, 10));
    }
    return hear(w, status);
}

static hf_status nap(walk *w)
{
    return hear(w, hf_sleep(ticks(w, 8)));
}

static hf_status wait_for_signal(walk *w)
{
    hf_payload out = {0};
    hf_status status = hf_signal_wait("go", &out, .timeout = some_wait(w, 8));
    if (status == HF_OK) {
        w->told = hf_hash_mix(w->told, strtoull(out.data, NULL, 10));
    }
    return hear(w, status);
}

static hf_status child_main(void *arg)
{
    child *c = arg;
    c->status = block(&c->walk, 3);
    if (c->status == HF_OK && draw(&c->walk, 8) == 0) {
        c->status = hf_raise(HF_ERR_FAILED, "by chance");
    }
    return c->status;
}

static hf_join_policy some_join(walk *w)
{
    switch (draw(w, 6)) {
    case 0:
        return HF_JOIN_ANY;
    case 1:
        return HF_JOIN_COLLECT;
    case 2:
        return HF_JOIN_TOLERATE(1);
    case 3:
        return HF_JOIN_PARTIAL;
    case 4:
        return HF_JOIN_QUORUM(2);
    default:
        return HF_JOIN_ALL;
    }
}

/* Runs children, and beside them the owner, which may cancel them. */
static hf_status family(walk *w, child *children, size_t count)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_span timeout = draw(w, 2) == 0 ? some_ticks(w, 8) : HF_SPAN_UNLIMITED;
    hf_join_policy join = some_join(w);
    hf_branch *jobs[CHILDREN_MAX];
    HF_TRY(hear(w, hf_scope_open(&scope, .timeout = timeout, .join = join)));
    for (size_t i = 0; i < count; i++) {
        children[i] = (child){{hf_hash_mix(w->told, i), w->depth + 1, w->all}, HF_ERR_MISUSE};
        hf_span delay = draw(w, 3) == 0 ? ticks(w, 4) : hf_nanoseconds(0);
        HF_TRY(hear(w, hf_fork(scope, child_main, &children[i], .delay = delay, .ret_branch = &jobs[i])));
    }
    if (draw(w, 3) == 0) {
        hf_status status = block(w, 2); /* if it is canceled, by this scope or an outer one, the join reports that */
        if (status == HF_ERR_EVICTED) {
            return status;
        }
    }
    if (draw(w, 3) == 0) {
        (void)hear(w, hf_branch_cancel(jobs[draw(w, count)]));
    }
    if (draw(w, 3) == 0) {
        (void)hear(w, hf_scope_cancel(scope));
    }
    return draw(w, 8) == 0 ? HF_OK : hear(w, hf_join(scope)); /* or left without a join */
}

static hf_status fork_some(walk *w)
{
    child children[CHILDREN_MAX];
    size_t count = 1 + (size_t)draw(w, CHILDREN_MAX);
    hf_status status = family(w, children, count);
    for (size_t i = 0; i < count && status != HF_ERR_EVICTED; i++) {
        w->told = hf_hash_mix(w->told, hf_hash_mix(children[i].walk.told, (uint64_t)children[i].status));
    }
    return status == HF_ERR_CANCELED ? HF_OK : status; /* the scope's own cancel; the next wait
                                                reports an outer one */
}

static hf_status bounded_block(walk *w)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hear(w, hf_scope_open(&scope, .timeout = some_ticks(w, 8))));
    hf_status status = block(w, 3);
    return status == HF_ERR_EVICTED ? status : hear(w, hf_join(scope));
}

static hf_status shielded_block(walk *w)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hear(w, hf_shield_open(some_ticks(w, 8), &shield)));
    hf_status status = block(w, 3);
    return status == HF_ERR_CANCELED ? HF_OK : status; /* by the shield's bound, which ends with the shield */
}

static hf_status pass_on(walk *w)
{
    uint64_t sent = w->told;
    uint64_t got = 0;
    size_t which = 0;
    hf_case cases[2] = {{HF_CASE_SEND, w->all->chan, &sent, HF_OK}, {HF_CASE_RECV, w->all->chan, &got, HF_OK}};
    hf_status status = HF_OK;
    switch (draw(w, 3)) {
    case 0:
        status = hf_chan_send(w->all->chan, &sent, .timeout = some_wait(w, 4));
        break;
    case 1:
        status = hf_chan_recv(w->all->chan, &got, .timeout = some_wait(w, 4));
        break;
    default:
        status = hf_select(cases, 2, &which, .timeout = some_wait(w, 4));
        break;
    }
    w->told = hf_hash_mix(w->told, got + which);
    return hear(w, status);
}

static hf_status under_lock(walk *w)
{
    hf_status status = hear(w, hf_mutex_lock(w->all->mutex, .timeout = some_wait(w, 8)));
    if (status == HF_OK) {
        status = block(w, 1);
        HF_CHECK(hf_mutex_unlock(w->all->mutex) == HF_OK);
    }
    return status;
}

static hf_status with_permit(walk *w)
{
    hf_status status = hear(w, hf_sem_acquire(w->all->sem, 1, .timeout = some_wait(w, 8)));
    if (status == HF_OK) {
        status = block(w, 1);
        HF_CHECK(hf_sem_release(w->all->sem, 1) == HF_OK);
    }
    return status;
}

static hf_status under_key(walk *w)
{
    HF_AUTO(hf_key_unlock) hf_key_guard *guard = NULL;
    const char *key = draw(w, 2) == 0 ? "a" : "b";
    HF_TRY(hear(w, hf_keylock_lock(w->all->keys, key, 1, &guard, .timeout = some_wait(w, 8))));
    return block(w, 1);
}

/* Waits for the condition, or makes it true. */
static hf_status meet(walk *w)
{
    if (draw(w, 2) == 0) {
        return hear(w, hf_cond_broadcast(w->all->cond));
    }
    hf_status status = hear(w, hf_mutex_lock(w->all->mutex, .timeout = some_wait(w, 8)));
    if (status == HF_OK) {
        status = hear(w, hf_cond_wait(w->all->cond, w->all->mutex, .timeout = some_wait(w, 8)));
        HF_CHECK(hf_mutex_unlock(w->all->mutex) == HF_OK); /* the mutex is held whatever the result of the wait was */
    }
    return status;
}

static hf_status spring(void *arg, hf_emitter *emitter)
{
    walk *w = arg;
    for (uint64_t i = draw(w, 4); i > 0; i--) {
        HF_TRY(block(w, 1));
        HF_TRY(hear(w, hf_emit(emitter, &w->told)));
    }
    return HF_OK;
}

static hf_status drink(void *ctx, const void *value)
{
    walk *w = ctx;
    w->told = hf_hash_mix(w->told, *(const uint64_t *)value);
    return draw(w, 6) == 0 ? hf_raise(HF_ERR_FAILED, "enough") : nap(w);
}

static hf_status use_flow(walk *w)
{
    walk source = {hf_hash_mix(w->told, 1), w->depth + 1, w->all};
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    hf_flow_mode mode = (hf_flow_mode)draw(w, 3);
    hf_span timeout = draw(w, 2) == 0 ? some_ticks(w, 8) : HF_SPAN_UNLIMITED;
    HF_TRY(hear(w, hf_flow_new(sizeof(uint64_t), &flow, .source = spring, .arg = &source)));
    return hear(w, hf_flow_collect(flow, drink, w, .mode = mode, .timeout = timeout));
}

static hf_status look_around(walk *w)
{
    uint64_t chance = 0;
    HF_TRY(hear(w, hf_random(NULL, &chance, sizeof chance)));
    w->told = hf_hash_mix(hf_hash_mix(w->told, chance), (uint64_t)hf_wall_now(NULL).ns);
    w->told = hf_hash_mix(w->told, (uint64_t)hf_time_left().ns + (uint64_t)hf_canceled());
    return hear(w, hf_yield());
}

static hf_status one(walk *w)
{
    static hf_status (*const PLAIN[])(walk *) = {run_activity, run_activity, nap, wait_for_signal,
                                                 look_around,  pass_on,      meet};
    static hf_status (*const NESTED[])(walk *) = {under_lock, under_key,     with_permit,    fork_some,
                                                  fork_some,  bounded_block, shielded_block, use_flow};
    w->depth++;
    bool is_nested = w->depth < DEPTH_MAX && draw(w, 2) == 0;
    hf_status status = is_nested ? NESTED[draw(w, HF_COUNT_OF(NESTED))](w) : PLAIN[draw(w, HF_COUNT_OF(PLAIN))](w);
    w->depth--;
    return status;
}

static hf_status block(walk *w, int most)
{
    int count = 1 + (int)draw(w, (uint64_t)most);
    bool is_stubborn = draw(w, 4) == 0; /* it goes on when it is canceled */
    bool is_deaf = w->told % 11 == 0;   /* it goes on when it is evicted, as it should not */
    for (int i = 0; i < count && --w->all->budget >= 0; i++) {
        hf_status status = one(w);
        while (status == HF_ERR_EVICTED && is_deaf) {
            (void)one(w);
        }
        if (status == HF_ERR_EVICTED || (status == HF_ERR_CANCELED && !is_stubborn)) {
            return status; /* any other status is a result that the program continues with */
        }
    }
    return HF_OK;
}

/* All results so far make the id of the last activity, so that a replay with other results is noticed. Even if it is
 * canceled, it waits for the last signal: see above. */
static hf_status last_steps(walk *w)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    char id[32];
    (void)snprintf(id, sizeof id, "told-%llu", (unsigned long long)w->told);
    HF_TRY(hf_shield_open(hf_hours(1), &shield));
    HF_TRY(hf_activity_run("act", hf_payload_of_json("1"), NULL, .task_queue = "other", .id = id,
                           .start_to_close = hf_seconds(30)));
    return hf_signal_wait("end", NULL);
}

static hf_status storm_program(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_TRY(hf_chan_new(sizeof(uint64_t), &chan, .capacity = 1));
    HF_TRY(hf_mutex_new(&mutex));
    HF_AUTO(hf_cond_free) hf_cond *cond = NULL;
    HF_AUTO(hf_keylock_free) hf_keylock *keys = NULL;
    HF_TRY(hf_sem_new(2, &sem));
    HF_TRY(hf_cond_new(&cond));
    HF_TRY(hf_keylock_new(&keys));
    common all = {BUDGET, chan, mutex, sem, cond, keys};
    walk w = {strtoull(in.data, NULL, 10), 0, &all};
    hf_status status = block(&w, 12);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_TRY(last_steps(&w));
    return status == HF_ERR_CANCELED ? status : hf_payload_printf(ret_out, "%llu", (unsigned long long)w.told);
}

/* ---- Activities ---------------------------------------------------------------------------------------------------- */

static hf_status storm_act(hf_payload in, hf_payload *ret_out)
{
    uint64_t number = strtoull(in.data, NULL, 10);
    uint64_t chance = hf_hash_mix(number, (uint64_t)hf_activity_info()->attempt);
    for (uint64_t i = 0; i < chance % 5; i++) {
        HF_TRY(hf_sleep(hf_milliseconds(TICK_MS)));
        if (hf_activity_info()->heartbeat.ns > 0 && number % 4 != 0) {
            HF_TRY(hf_activity_heartbeat(hf_payload_none()));
        }
    }
    if (chance % 7 == 0) {
        return hf_raise_typed(HF_ERR_FAILED, "Flaky", "this attempt fails");
    }
    return hf_payload_printf(ret_out, "%llu", (unsigned long long)(chance % 1000));
}

hf_status programs_add_storm_activity(hf_worker *worker)
{
    return hf_worker_add_activity(worker, "act", storm_act, .on_fiber = true);
}

const program programs_of_storm[] = {{"storm-2", storm_program}, {NULL, NULL}};
