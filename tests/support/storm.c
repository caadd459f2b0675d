/* See storm.h. */
#include "support/storm_private.h"

#include "base/base.h"
#include "base/rng.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 4, CHILDREN_MAX = 4, BUDGET = 80, TICK_MS = STORM_TICK_MS };

/* ---- The walk ------------------------------------------------------------------------------------------------------ */

typedef storm_walk walk;
typedef storm_common common;

typedef struct child {
    walk walk;
    hf_status status;
} child;

uint64_t storm_draw(walk *w, uint64_t bound)
{
    w->told = hf_hash_mix(w->told, 17);
    return w->told % bound;
}

hf_span storm_ticks(walk *w, uint64_t most)
{
    return hf_milliseconds((int64_t)storm_draw(w, most + 1) * TICK_MS);
}

hf_span storm_some_ticks(walk *w, uint64_t most)
{
    return hf_milliseconds((1 + (int64_t)storm_draw(w, most)) * TICK_MS);
}

hf_span storm_some_wait(walk *w, uint64_t most)
{
    return storm_draw(w, 8) == 0 ? HF_SPAN_OFF : storm_some_ticks(w, most);
}

hf_status storm_hear(walk *w, hf_status status)
{
    w->told = hf_hash_mix(w->told, (uint64_t)status);
    return status;
}

static hf_status run_activity(walk *w)
{
    char text[32];
    hf_payload out = {0};
    bool is_short = storm_draw(w, 3) == 0;
    bool beats = storm_draw(w, 2) == 0;
    hf_span bound = storm_some_ticks(w, 4);
    (void)snprintf(text, sizeof text, "%d", (int)(w->told % 100000));
    hf_status status =
        hf_activity_run("act", hf_payload_of_json(text), &out, .task_queue = "other",
                        .start_to_close = is_short ? bound : hf_seconds(30),
                        .schedule_to_close = storm_draw(w, 5) == 0 ? bound : hf_nanoseconds(0),
                        .heartbeat = beats ? hf_milliseconds(TICK_MS * 2) : hf_nanoseconds(0),
                        .attempts_max = 1 + (int)storm_draw(w, 3), .id = storm_draw(w, 2) == 0 ? "named" : NULL,
                        .retry_initial = hf_milliseconds(TICK_MS));
    if (status == HF_OK) {
        w->told = hf_hash_mix(w->told, strtoull(out.data, NULL, 10));
    }
    return storm_hear(w, status);
}

static hf_status nap(walk *w)
{
    return storm_hear(w, hf_sleep(storm_ticks(w, 8)));
}

static hf_status wait_for_signal(walk *w)
{
    hf_payload out = {0};
    hf_status status = hf_signal_wait("go", &out, .timeout = storm_some_wait(w, 8));
    if (status == HF_OK) {
        w->told = hf_hash_mix(w->told, strtoull(out.data, NULL, 10));
    }
    return storm_hear(w, status);
}

static hf_status child_main(void *arg)
{
    child *c = arg;
    c->status = storm_block(&c->walk, 3);
    if (c->status == HF_OK && storm_draw(&c->walk, 8) == 0) {
        c->status = hf_raise(HF_ERR_FAILED, "by chance");
    }
    return c->status;
}

hf_join_policy storm_some_join(walk *w)
{
    switch (storm_draw(w, 6)) {
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
    hf_span timeout = storm_draw(w, 2) == 0 ? storm_some_ticks(w, 8) : HF_SPAN_UNLIMITED;
    hf_join_policy join = storm_some_join(w);
    hf_branch *jobs[CHILDREN_MAX];
    HF_TRY(storm_hear(w, hf_scope_open(&scope, .timeout = timeout, .join = join)));
    for (size_t i = 0; i < count; i++) {
        children[i] = (child){{hf_hash_mix(w->told, i), w->depth + 1, w->all}, HF_ERR_MISUSE};
        hf_span delay = storm_draw(w, 3) == 0 ? storm_ticks(w, 4) : hf_nanoseconds(0);
        HF_TRY(storm_hear(w, hf_fork(scope, child_main, &children[i], .delay = delay, .ret_branch = &jobs[i])));
    }
    if (storm_draw(w, 3) == 0) {
        hf_status status =
            storm_block(w, 2); /* if it is canceled, by this scope or an outer one, the join reports that */
        if (status == HF_ERR_EVICTED) {
            return status;
        }
    }
    if (storm_draw(w, 3) == 0) {
        (void)storm_hear(w, hf_branch_cancel(jobs[storm_draw(w, count)]));
    }
    if (storm_draw(w, 3) == 0) {
        (void)storm_hear(w, hf_scope_cancel(scope));
    }
    return storm_draw(w, 8) == 0 ? HF_OK : storm_hear(w, hf_join(scope)); /* or left without a join */
}

static hf_status fork_some(walk *w)
{
    child children[CHILDREN_MAX];
    size_t count = 1 + (size_t)storm_draw(w, CHILDREN_MAX);
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
    HF_TRY(storm_hear(w, hf_scope_open(&scope, .timeout = storm_some_ticks(w, 8))));
    hf_status status = storm_block(w, 3);
    return status == HF_ERR_EVICTED ? status : storm_hear(w, hf_join(scope));
}

static hf_status shielded_block(walk *w)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(storm_hear(w, hf_shield_open(storm_some_ticks(w, 8), &shield)));
    hf_status status = storm_block(w, 3);
    return status == HF_ERR_CANCELED ? HF_OK : status; /* by the shield's bound, which ends with the shield */
}

static hf_status pass_on(walk *w)
{
    uint64_t sent = w->told;
    uint64_t got = 0;
    size_t which = 0;
    hf_case cases[2] = {{HF_CASE_SEND, w->all->chan, &sent, HF_OK}, {HF_CASE_RECV, w->all->chan, &got, HF_OK}};
    hf_status status = HF_OK;
    switch (storm_draw(w, 3)) {
    case 0:
        status = hf_chan_send(w->all->chan, &sent, .timeout = storm_some_wait(w, 4));
        break;
    case 1:
        status = hf_chan_recv(w->all->chan, &got, .timeout = storm_some_wait(w, 4));
        break;
    default:
        status = hf_select(cases, 2, &which, .timeout = storm_some_wait(w, 4));
        break;
    }
    w->told = hf_hash_mix(w->told, got + which);
    return storm_hear(w, status);
}

static hf_status under_lock(walk *w)
{
    hf_status status = storm_hear(w, hf_mutex_lock(w->all->mutex, .timeout = storm_some_wait(w, 8)));
    if (status == HF_OK) {
        status = storm_block(w, 1);
        HF_CHECK(hf_mutex_unlock(w->all->mutex) == HF_OK);
    }
    return status;
}

static hf_status with_permit(walk *w)
{
    hf_status status = storm_hear(w, hf_sem_acquire(w->all->sem, 1, .timeout = storm_some_wait(w, 8)));
    if (status == HF_OK) {
        status = storm_block(w, 1);
        HF_CHECK(hf_sem_release(w->all->sem, 1) == HF_OK);
    }
    return status;
}

static hf_status under_key(walk *w)
{
    HF_AUTO(hf_key_unlock) hf_key_guard *guard = NULL;
    const char *key = storm_draw(w, 2) == 0 ? "a" : "b";
    HF_TRY(storm_hear(w, hf_keylock_lock(w->all->keys, key, 1, &guard, .timeout = storm_some_wait(w, 8))));
    return storm_block(w, 1);
}

/* Waits for the condition, or makes it true. */
static hf_status meet(walk *w)
{
    if (storm_draw(w, 2) == 0) {
        return storm_hear(w, hf_cond_broadcast(w->all->cond));
    }
    hf_status status = storm_hear(w, hf_mutex_lock(w->all->mutex, .timeout = storm_some_wait(w, 8)));
    if (status == HF_OK) {
        status = storm_hear(w, hf_cond_wait(w->all->cond, w->all->mutex, .timeout = storm_some_wait(w, 8)));
        HF_CHECK(hf_mutex_unlock(w->all->mutex) == HF_OK); /* the mutex is held whatever the result of the wait was */
    }
    return status;
}

static hf_status spring(void *arg, hf_emitter *emitter)
{
    walk *w = arg;
    for (uint64_t i = storm_draw(w, 4); i > 0; i--) {
        HF_TRY(storm_block(w, 1));
        HF_TRY(storm_hear(w, hf_emit(emitter, &w->told)));
    }
    return HF_OK;
}

static hf_status drink(void *ctx, const void *value)
{
    walk *w = ctx;
    w->told = hf_hash_mix(w->told, *(const uint64_t *)value);
    return storm_draw(w, 6) == 0 ? hf_raise(HF_ERR_FAILED, "enough") : nap(w);
}

static hf_status use_flow(walk *w)
{
    walk source = {hf_hash_mix(w->told, 1), w->depth + 1, w->all};
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    hf_flow_mode mode = (hf_flow_mode)storm_draw(w, 3);
    hf_span timeout = storm_draw(w, 2) == 0 ? storm_some_ticks(w, 8) : HF_SPAN_UNLIMITED;
    HF_TRY(storm_hear(w, hf_flow_new(sizeof(uint64_t), &flow, .source = spring, .arg = &source)));
    return storm_hear(w, hf_flow_collect(flow, drink, w, .mode = mode, .timeout = timeout));
}

static hf_status look_around(walk *w)
{
    uint64_t chance = 0;
    HF_TRY(storm_hear(w, hf_random(NULL, &chance, sizeof chance)));
    w->told = hf_hash_mix(hf_hash_mix(w->told, chance), (uint64_t)hf_wall_now(NULL).ns);
    w->told = hf_hash_mix(w->told, (uint64_t)hf_time_left().ns + (uint64_t)hf_canceled());
    return storm_hear(w, hf_yield());
}

static hf_status one(walk *w)
{
    static hf_status (*const PLAIN[])(walk *) = {run_activity, run_activity, nap, wait_for_signal,
                                                 look_around,  pass_on,      meet};
    static hf_status (*const NESTED[])(walk *) = {under_lock, under_key,     with_permit,    fork_some,
                                                  fork_some,  bounded_block, shielded_block, use_flow};
    w->depth++;
    bool is_nested = w->depth < DEPTH_MAX && storm_draw(w, 2) == 0;
    bool is_of_run = !is_nested && storm_draw(w, 2) == 0;
    hf_status status = is_of_run   ? storm_run_one(w)
                       : is_nested ? NESTED[storm_draw(w, HF_COUNT_OF(NESTED))](w)
                                   : PLAIN[storm_draw(w, HF_COUNT_OF(PLAIN))](w);
    w->depth--;
    return status;
}

hf_status storm_block(walk *w, int most)
{
    int count = 1 + (int)storm_draw(w, (uint64_t)most);
    bool is_stubborn = storm_draw(w, 4) == 0; /* it goes on when it is canceled */
    bool is_deaf = w->told % 11 == 0;         /* it goes on when it is evicted, as it should not */
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
    const common *all = w->all;
    (void)snprintf(id, sizeof id, "told-%llu", (unsigned long long)w->told);
    HF_TRY(hf_shield_open(hf_hours(1), &shield));
    HF_TRY(hf_activity_run("act", hf_payload_of_json("1"), NULL, .task_queue = "other", .id = id,
                           .start_to_close = hf_seconds(30)));
    return all->is_child ? HF_OK : hf_wait_until(all->is_over);
}

/* in: "SEED GENERATION [over] [child]" */
static void read_input(common *all, hf_payload in)
{
    char *rest = NULL;
    all->seed = strtoull((const char *)in.data + 1, &rest, 10);
    all->generation = (int)strtol(rest, &rest, 10);
    all->is_over = strstr(rest, "over") != NULL;
    all->is_child = strstr(rest, "child") != NULL;
    all->budget = all->is_child ? BUDGET / 8 : BUDGET;
}

static hf_status make_objects(common *all)
{
    HF_TRY(hf_chan_new(sizeof(uint64_t), &all->chan, .capacity = 1));
    HF_TRY(hf_mutex_new(&all->mutex));
    HF_TRY(hf_sem_new(2, &all->sem));
    HF_TRY(hf_cond_new(&all->cond));
    return hf_keylock_new(&all->keys);
}

static hf_status continue_as_new(const walk *w)
{
    char text[64];
    (void)snprintf(text, sizeof text, "\"%llu %d %s%s\"", (unsigned long long)w->told, w->all->generation + 1,
                   w->all->is_over ? "over " : "", w->all->is_child ? "child" : "");
    return hf_continue_as_new(hf_payload_of_json(text));
}

/* The objects are freed with the run: handlers may use them as long as it is there. */
hf_status storm_program(hf_payload in, hf_payload *ret_out)
{
    common *all = HF_WORKFLOW_NEW(common);
    if (all == NULL) {
        return HF_ERR_NOMEM;
    }
    read_input(all, in);
    HF_TRY(make_objects(all));
    HF_TRY(storm_add_handlers(all));
    walk w = {all->seed, 0, all};
    hf_status status = storm_block(&w, 12);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    if (status != HF_ERR_CANCELED && all->generation < 2 && storm_draw(&w, 4) == 0) {
        return continue_as_new(&w);
    }
    HF_TRY(last_steps(&w));
    all->told = w.told;
    return status == HF_ERR_CANCELED ? status : hf_payload_printf(ret_out, "%llu", (unsigned long long)w.told);
}

/* ---- Activities ---------------------------------------------------------------------------------------------------- */

hf_status storm_act(hf_payload in, hf_payload *ret_out)
{
    uint64_t number = strtoull(in.data, NULL, 10);
    uint64_t chance = hf_hash_mix(number, (uint64_t)hf_activity_info()->attempt);
    for (uint64_t i = 0; i < chance % 5; i++) {
        HF_TRY(hf_sleep(hf_milliseconds(TICK_MS)));
        if (hf_activity_info()->heartbeat.ns > 0 && number % 4 != 0) {
            HF_TRY(hf_activity_heartbeat(hf_payload_none()));
        }
    }
    if (number % 3 == 0) {
        HF_TRY(hf_publish("act", hf_payload_of_json("1")));
    }
    if (chance % 7 == 0) {
        return hf_raise_typed(HF_ERR_FAILED, "Flaky", "this attempt fails");
    }
    return hf_payload_printf(ret_out, "%llu", (unsigned long long)(chance % 1000));
}
