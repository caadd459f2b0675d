/* See till.h. */
#include "support/till.h"

#include "base/base.h"
#include "base/rng.h"
#include "support/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 4, FORKED_MAX = 4, IDS_MAX = 64, BUDGET = 60, BOOK_COUNT = 4096 };

till_counts till_seen;

/* ---- The world outside --------------------------------------------------------------------------------------------- */

typedef struct entry {
    uint64_t id; /* 0 = free */
    unsigned owner;
    bool is_charged;
    bool is_refunded; /* also before it was charged: then it never is */
} entry;

static entry book[BOOK_COUNT];
static bool is_sure_of_cancels;
static const bool *is_ghost;

void till_open(bool is_sure, const bool *ghost)
{
    memset(book, 0, sizeof book);
    is_sure_of_cancels = is_sure;
    is_ghost = ghost;
}

static entry *entry_of(uint64_t id, unsigned owner)
{
    size_t at = (size_t)(id % BOOK_COUNT);
    while (book[at].id != 0 && book[at].id != id) {
        at = (at + 1) % BOOK_COUNT;
    }
    book[at].id = id;
    book[at].owner = owner;
    return &book[at];
}

void till_check(unsigned owner, hf_payload result)
{
    size_t stands = 0;
    const char *at = result.len > 0 ? result.data : "";
    for (at += strcspn(at, "0123456789"); *at != '\0'; at += strcspn(at, "0123456789")) {
        char *end = NULL;
        uint64_t id = strtoull(at, &end, 10);
        const entry *e = entry_of(id, owner);
        HF_CHECK_SAY(e->is_charged && !e->is_refunded, "the result has charge %" PRIu64 ", which %s", id,
                     e->is_charged ? "was refunded" : "was not made");
        stands++;
        at = end;
    }
    size_t charged = 0;
    for (size_t i = 0; i < BOOK_COUNT; i++) {
        bool is_left = book[i].id != 0 && book[i].owner == owner && book[i].is_charged && !book[i].is_refunded;
        charged += is_left;
    }
    HF_CHECK_SAY(charged == stands, "%zu charges stand, and the result has %zu", charged, stands);
}

/* What an activity does when it is told to end: obey; charge all the same; or fail. */
static hf_status told_to_end(uint64_t chance, hf_status status)
{
    till_seen.told += status == HF_ERR_CANCELED;
    if (status != HF_ERR_CANCELED || chance % 3 == 0) {
        return status;
    }
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    till_seen.late += chance % 3 == 1;
    HF_TRY(hf_shield_open(hf_minutes(1), &shield));
    HF_TRY(hf_sleep(hf_milliseconds((int64_t)(chance % 5) * TILL_TICK_MS)));
    return chance % 3 == 1 ? HF_OK : hf_raise_typed(HF_ERR_FAILED, "Broken", "it broke");
}

/* in: "ID OWNER". Nothing happens between the charge and the return. */
hf_status till_charge(hf_payload in, hf_payload *ret_out)
{
    char *rest = NULL;
    uint64_t id = strtoull((const char *)in.data + 1, &rest, 10);
    unsigned owner = (unsigned)strtoul(rest, NULL, 10);
    uint64_t chance = hf_hash_mix(id, (uint64_t)hf_activity_info()->attempt);
    for (uint64_t i = 0; i < chance % 5; i++) {
        hf_status status = told_to_end(chance, hf_sleep(hf_milliseconds(TILL_TICK_MS)));
        if (status == HF_OK && hf_activity_info()->heartbeat.ns > 0) {
            status = told_to_end(chance, hf_activity_heartbeat(hf_payload_none()));
        }
        HF_TRY(status);
    }
    if (chance % 11 == 0) {
        return hf_raise_typed(HF_ERR_FAILED, "Flaky", "this attempt fails");
    }
    HF_TRY(hf_payload_printf(ret_out, "1"));
    if (!*is_ghost) {
        till_seen.charges++;
        entry_of(id, owner)->is_charged = true;
    }
    return HF_OK;
}

hf_status till_refund(hf_payload in, hf_payload *ret_out)
{
    char *rest = NULL;
    uint64_t id = strtoull((const char *)in.data + 1, &rest, 10);
    unsigned owner = (unsigned)strtoul(rest, NULL, 10);
    uint64_t chance = hf_hash_mix(id, 77 + (uint64_t)hf_activity_info()->attempt);
    HF_TRY(hf_sleep(hf_milliseconds((int64_t)(chance % 3) * TILL_TICK_MS)));
    if (chance % 5 == 0) {
        return hf_raise_typed(HF_ERR_FAILED, "Flaky", "this attempt fails");
    }
    HF_TRY(hf_payload_printf(ret_out, "1"));
    if (!*is_ghost) {
        till_seen.refunds++;
        entry_of(id, owner)->is_refunded = true;
    }
    return HF_OK;
}

/* ---- The buyer ------------------------------------------------------------------------------------------------------- */

/* Shared by the fibers of a run; kept by the run, because handlers use it. */
typedef struct common {
    uint64_t seed;
    unsigned owner;
    uint64_t charges; /* so far: each has an id of its own */
    int budget;       /* operations that are left */
    int heard;        /* signals that its handler took */
    bool is_child;
    hf_chan *chan;
    hf_mutex *mutex;
    hf_sem *sem;
    hf_cond *cond;
    hf_keylock *keys;
} common;

/* One fiber: the results of its calls so far decide what it does next. */
typedef struct buyer {
    uint64_t told;
    int depth;
    common *all;
    int count; /* of charges that it must give back, or tell of */
    uint64_t ids[IDS_MAX];
} buyer;

typedef struct branch {
    buyer buyer;
    hf_status status;
} branch;

static hf_status block(buyer *b, int most);

static uint64_t draw(buyer *b, uint64_t bound)
{
    b->told = hf_hash_mix(b->told, 17);
    return b->told % bound;
}

static hf_span some_ticks(buyer *b, uint64_t most)
{
    return hf_milliseconds((1 + (int64_t)draw(b, most)) * TILL_TICK_MS);
}

static hf_status hear(buyer *b, hf_status status)
{
    b->told = hf_hash_mix(b->told, (uint64_t)status);
    return status;
}

static void id_text(const buyer *b, uint64_t id, char text[64])
{
    (void)snprintf(text, 64, "\"%" PRIu64 " %u\"", id, b->all->owner);
}

/* Canceled or not, this is done: in a shield. */
static hf_status refund(buyer *b, uint64_t id)
{
    char text[64];
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    id_text(b, id, text);
    HF_TRY(hf_shield_open(hf_hours(1), &shield));
    hf_status status = hf_activity_run("refund", hf_payload_of_json(text), NULL, .task_queue = "other",
                                       .start_to_close = hf_seconds(30), .retry_initial = hf_milliseconds(TILL_TICK_MS),
                                       .retry_max = hf_milliseconds(TILL_TICK_MS));
    HF_CHECK_SAY(status == HF_OK || status == HF_ERR_EVICTED, "a refund ended with %s: %s", hf_status_name(status),
                 hf_error_text());
    return status;
}

static hf_status give_back(buyer *b, int from)
{
    while (b->count > from) {
        HF_TRY(refund(b, b->ids[b->count - 1]));
        b->count--;
    }
    return HF_OK;
}

/* If it is not known whether the charge was made, it is given back at once: a charge that comes later is void then. */
static hf_status buy(buyer *b)
{
    static const hf_on_cancel HOWS[] = {HF_CANCEL_WAIT, HF_CANCEL_WAIT, HF_CANCEL_WAIT,   HF_CANCEL_WAIT,
                                        HF_CANCEL_WAIT, HF_CANCEL_TRY,  HF_CANCEL_ABANDON};
    char text[64];
    if (b->count == IDS_MAX) {
        return HF_OK;
    }
    uint64_t id = hf_hash_mix(hf_hash_mix(hf_hash_mix(b->all->seed, 7), b->all->owner), ++b->all->charges) | 1;
    int attempts = draw(b, 2) == 0 ? 1 : 3;
    bool is_short = draw(b, 4) == 0;
    hf_on_cancel how = HOWS[draw(b, HF_COUNT_OF(HOWS))];
    hf_span bound = some_ticks(b, 4);
    id_text(b, id, text);
    hf_status status =
        hear(b, hf_activity_run("charge", hf_payload_of_json(text), NULL, .task_queue = "other",
                                .start_to_close = is_short ? bound : hf_seconds(30), .attempts_max = attempts,
                                .heartbeat = draw(b, 2) == 0 ? hf_milliseconds(TILL_TICK_MS * 3) : hf_nanoseconds(0),
                                .on_cancel = how, .retry_initial = hf_milliseconds(TILL_TICK_MS)));
    if (status == HF_OK) {
        b->ids[b->count++] = id;
    }
    bool is_sure = is_sure_of_cancels && attempts == 1 && how == HF_CANCEL_WAIT && status != HF_ERR_TIMEOUT;
    if (status == HF_OK || status == HF_ERR_EVICTED || is_sure) {
        return status;
    }
    HF_TRY(refund(b, id));
    return status;
}

static hf_join_policy some_join(buyer *b)
{
    switch (draw(b, 6)) {
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

static hf_status nap(buyer *b)
{
    return hear(b, hf_sleep(some_ticks(b, 6)));
}

/* The same for several at once, without a fiber for each, under any join. When that returns, all of them have ended. */
static hf_status charge_all(buyer *b, const uint64_t *ids, hf_status *statuses, size_t count)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_span timeout = draw(b, 2) == 0 ? some_ticks(b, 8) : HF_SPAN_UNLIMITED;
    hf_join_policy join = some_join(b);
    hf_branch *jobs[FORKED_MAX] = {NULL};
    HF_TRY(hear(b, hf_scope_open(&scope, .timeout = timeout, .join = join)));
    for (size_t i = 0; i < count; i++) {
        char text[64];
        id_text(b, ids[i], text);
        statuses[i] =
            hear(b, hf_fork_activity(scope, "charge", hf_payload_of_json(text), NULL, .task_queue = "other",
                                     .start_to_close = hf_seconds(30), .attempts_max = 1, .ret_branch = &jobs[i]));
    }
    if (draw(b, 4) == 0 && jobs[0] != NULL) {
        HF_IGNORE(nap(b));
        (void)hear(b, hf_branch_cancel(jobs[0]));
    }
    hf_status status = hear(b, hf_join(scope));
    for (size_t i = 0; i < count && status != HF_ERR_EVICTED; i++) {
        bool was_forked = statuses[i] == HF_OK;
        HF_CHECK(!was_forked || hf_branch_is_done(jobs[i]));
        statuses[i] = was_forked ? hear(b, hf_branch_status(jobs[i])) : statuses[i];
    }
    return status;
}

static hf_status buy_together(buyer *b)
{
    uint64_t ids[FORKED_MAX];
    hf_status statuses[FORKED_MAX] = {HF_OK};
    size_t count = 1 + (size_t)draw(b, FORKED_MAX);
    int from = b->count;
    if (b->count + FORKED_MAX > IDS_MAX) {
        return HF_OK;
    }
    for (size_t i = 0; i < count; i++) {
        ids[i] = hf_hash_mix(hf_hash_mix(hf_hash_mix(b->all->seed, 7), b->all->owner), ++b->all->charges) | 1;
    }
    hf_status status = charge_all(b, ids, statuses, count);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        if (statuses[i] == HF_OK) {
            b->ids[b->count++] = ids[i];
        } else if (!is_sure_of_cancels) {
            HF_TRY(refund(b, ids[i]));
        }
    }
    if (status != HF_OK) { /* they did not do together what they should: nothing of it is to stand */
        HF_TRY(give_back(b, from));
    }
    return status == HF_ERR_CANCELED ? HF_OK : status; /* the scope's own; the next wait reports an outer one */
}

/* All of them or none: a saga gives back what it bought, also if it is canceled. */
static hf_status buy_in_saga(buyer *b)
{
    enum { DEEDS_MAX = 3 };
    static const hf_on_cancel HOWS[] = {HF_CANCEL_WAIT, HF_CANCEL_WAIT, HF_CANCEL_TRY, HF_CANCEL_ABANDON};
    uint64_t ids[DEEDS_MAX];
    size_t count = 1 + (size_t)draw(b, DEEDS_MAX);
    hf_status status = HF_OK;
    HF_AUTO(hf_saga_close) hf_saga *saga = NULL;
    if (b->count + DEEDS_MAX > IDS_MAX) {
        return HF_OK;
    }
    HF_TRY(hear(b, hf_saga_open(&saga)));
    for (size_t i = 0; i < count && status == HF_OK; i++) {
        char text[64];
        ids[i] = hf_hash_mix(hf_hash_mix(hf_hash_mix(b->all->seed, 7), b->all->owner), ++b->all->charges) | 1;
        id_text(b, ids[i], text);
        HF_TRY(hear(b, hf_saga_add(saga, "refund", hf_payload_of_json(text), .task_queue = "other",
                                   .start_to_close = hf_seconds(30), .retry_initial = hf_milliseconds(TILL_TICK_MS),
                                   .retry_max = hf_milliseconds(TILL_TICK_MS))));
        status = hear(b, hf_activity_run("charge", hf_payload_of_json(text), NULL, .task_queue = "other",
                                         .start_to_close = hf_seconds(30), .attempts_max = 1 + (int)draw(b, 2),
                                         .on_cancel = HOWS[draw(b, HF_COUNT_OF(HOWS))],
                                         .retry_initial = hf_milliseconds(TILL_TICK_MS)));
    }
    if (status == HF_OK && draw(b, 3) > 0) {
        status = hear(b, hf_saga_commit(saga));
        for (size_t i = 0; i < count && status == HF_OK; i++) {
            b->ids[b->count++] = ids[i];
        }
        return status;
    }
    if (status != HF_ERR_EVICTED && draw(b, 2) == 0) { /* else its end undoes */
        hf_status undone = hf_saga_undo(saga);
        HF_CHECK_SAY(undone == HF_OK || undone == HF_ERR_EVICTED, "a saga ended with %s: %s", hf_status_name(undone),
                     hf_error_text());
        HF_TRY(undone);
    }
    till_seen.sagas += status != HF_ERR_EVICTED;
    return status;
}

/* ---- Every verb that waits --------------------------------------------------------------------------------------------- */

hf_status till_ponder(hf_payload in, hf_payload *ret_out)
{
    uint64_t chance = hf_hash_mix(strtoull(in.data, NULL, 10), (uint64_t)hf_activity_info()->attempt);
    HF_TRY(hf_sleep(hf_milliseconds((int64_t)(chance % 4) * TILL_TICK_MS)));
    return chance % 5 == 0 ? hf_raise_typed(HF_ERR_FAILED, "Flaky", "this attempt fails")
                           : hf_payload_printf(ret_out, "%d", (int)(chance % 100));
}

static hf_status ponder(buyer *b)
{
    static const hf_on_cancel HOWS[] = {HF_CANCEL_WAIT, HF_CANCEL_TRY, HF_CANCEL_ABANDON};
    char text[32];
    (void)snprintf(text, sizeof text, "%d", (int)(b->told % 100000));
    hf_span bound = draw(b, 2) == 0 ? some_ticks(b, 3) : hf_seconds(5);
    return hear(
        b, hf_activity_run_local("ponder", hf_payload_of_json(text), NULL, .start_to_close = bound,
                                 .attempts_max = 1 + (int)draw(b, 3), .retry_initial = hf_milliseconds(TILL_TICK_MS),
                                 .timer_after = draw(b, 2) == 0 ? hf_milliseconds(TILL_TICK_MS) : hf_nanoseconds(0),
                                 .on_cancel = HOWS[draw(b, HF_COUNT_OF(HOWS))]));
}

static hf_status toss(void *arg, hf_payload *ret_out)
{
    static _Atomic(uint64_t) count;
    uint64_t value = hf_hash_mix(*(const uint64_t *)arg, count++);
    return hf_payload_printf(ret_out, "%d", (int)(value % 100));
}

static hf_status look_outside(buyer *b)
{
    uint64_t seed = b->told;
    hf_payload out = {0};
    hf_status status = hf_side_effect(toss, &seed, &out);
    b->told = hf_hash_mix(b->told, status == HF_OK ? strtoull(out.data, NULL, 10) : 0);
    return hear(b, status);
}

static hf_status wait_for_any(buyer *b)
{
    static const char *const NAMES[] = {"go", "stop"};
    size_t idx = 0;
    hf_status status = hf_signal_wait_any(NAMES, 2, &idx, NULL, .timeout = some_ticks(b, 6));
    b->told = hf_hash_mix(b->told, idx);
    return hear(b, status);
}

static hf_status choose_signal(buyer *b)
{
    hf_signal_case go = {.name = "go"};
    uint64_t got = 0;
    size_t which = 0;
    hf_case cases[2] = {{.kind = HF_CASE_SIGNAL, .value = &go}, {HF_CASE_RECV, b->all->chan, &got, HF_OK}};
    return hear(b, hf_select(cases, 2, &which, .timeout = some_ticks(b, 6)));
}

static hf_status nap_until(buyer *b)
{
    return hear(b, hf_sleep_until((hf_time){hf_wall_now(NULL).ns + some_ticks(b, 6).ns}));
}

static hf_status wait_for_signal(buyer *b)
{
    return hear(b, hf_signal_wait("go", NULL, .timeout = some_ticks(b, 6)));
}

static hf_status wait_for_handler(buyer *b)
{
    const common *all = b->all;
    int wanted = all->heard + 1;
    return hear(b, hf_wait_until(all->heard >= wanted, .timeout = some_ticks(b, 6)));
}

static hf_status wait_for_handlers(buyer *b)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hear(b, hf_scope_open(&scope, .timeout = some_ticks(b, 6))));
    hf_status status = hear(b, hf_handlers_wait());
    return status == HF_ERR_EVICTED ? status : hear(b, hf_join(scope)); /* which knows whose cancel it was */
}

static hf_status send(buyer *b)
{
    return hear(b, hf_chan_send(b->all->chan, &b->told, .timeout = some_ticks(b, 4)));
}

static hf_status receive(buyer *b)
{
    uint64_t got = 0;
    return hear(b, hf_chan_recv(b->all->chan, &got, .timeout = some_ticks(b, 4)));
}

static hf_status choose(buyer *b)
{
    uint64_t sent = b->told;
    uint64_t got = 0;
    size_t which = 0;
    hf_case cases[2] = {{HF_CASE_SEND, b->all->chan, &sent, HF_OK}, {HF_CASE_RECV, b->all->chan, &got, HF_OK}};
    return hear(b, hf_select(cases, 2, &which, .timeout = some_ticks(b, 4)));
}

static hf_status under_lock(buyer *b)
{
    hf_status status = hear(b, hf_mutex_lock(b->all->mutex, .timeout = some_ticks(b, 6)));
    if (status == HF_OK) {
        status = block(b, 1);
        HF_CHECK(hf_mutex_unlock(b->all->mutex) == HF_OK);
    }
    return status;
}

static hf_status with_permit(buyer *b)
{
    hf_status status = hear(b, hf_sem_acquire(b->all->sem, 1, .timeout = some_ticks(b, 6)));
    if (status == HF_OK) {
        status = block(b, 1);
        HF_CHECK(hf_sem_release(b->all->sem, 1) == HF_OK);
    }
    return status;
}

static hf_status under_key(buyer *b)
{
    HF_AUTO(hf_key_unlock) hf_key_guard *guard = NULL;
    HF_TRY(hear(b, hf_keylock_lock(b->all->keys, "k", 1, &guard, .timeout = some_ticks(b, 6))));
    return block(b, 1);
}

static hf_status meet(buyer *b)
{
    hf_status status = hear(b, hf_mutex_lock(b->all->mutex, .timeout = some_ticks(b, 6)));
    if (status == HF_OK) {
        status = draw(b, 2) == 0 ? hf_cond_broadcast(b->all->cond)
                                 : hf_cond_wait(b->all->cond, b->all->mutex, .timeout = some_ticks(b, 6));
        HF_CHECK(hf_mutex_unlock(b->all->mutex) == HF_OK);
    }
    return hear(b, status);
}

static hf_status step_aside(buyer *b)
{
    return hear(b, hf_yield());
}

static hf_status tell_other(buyer *b)
{
    return hear(b, hf_external_signal(draw(b, 2) == 0 ? "buy-0" : "nobody", "go", hf_payload_none()));
}

static hf_status cancel_other(buyer *b)
{
    return hear(b, hf_external_cancel("nobody", "by chance"));
}

static hf_status spring(void *arg, hf_emitter *emitter)
{
    buyer *b = arg;
    for (uint64_t i = draw(b, 4); i > 0; i--) {
        HF_TRY(block(b, 1));
        HF_TRY(hear(b, hf_emit(emitter, &b->told)));
    }
    return HF_OK;
}

static hf_status drink(void *ctx, const void *value)
{
    buyer *b = ctx;
    b->told = hf_hash_mix(b->told, *(const uint64_t *)value);
    return draw(b, 6) == 0 ? hf_raise(HF_ERR_FAILED, "enough") : nap(b);
}

static void take_over(buyer *b, const buyer *from)
{
    for (int i = 0; i < from->count && HF_CHECK(b->count < IDS_MAX); i++) {
        b->ids[b->count++] = from->ids[i];
    }
    b->told = hf_hash_mix(b->told, from->told);
}

static hf_status use_flow(buyer *b)
{
    buyer source = {.told = hf_hash_mix(b->told, 1), .depth = b->depth + 1, .all = b->all};
    hf_status status = HF_OK;
    {
        HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
        HF_TRY(hear(b, hf_flow_new(sizeof(uint64_t), &flow, .source = spring, .arg = &source)));
        status =
            hear(b, hf_flow_collect(flow, drink, b, .mode = (hf_flow_mode)draw(b, 3), .timeout = some_ticks(b, 8)));
    }
    if (status != HF_ERR_EVICTED) {
        take_over(b, &source);
    }
    return status;
}

/* ---- Children, scopes, joins ------------------------------------------------------------------------------------------- */

/* A child that ends well has told what it bought; one that was canceled has given it back. */
static hf_status send_child(buyer *b)
{
    char text[64];
    hf_payload out = {0};
    if (b->all->is_child || b->count + 8 > IDS_MAX) {
        return nap(b);
    }
    (void)snprintf(text, sizeof text, "\"%" PRIu64 " %u child\"", hf_hash_mix(b->told, 5), b->all->owner);
    hf_status status = hear(b, hf_child_run("buy", hf_payload_of_json(text), &out, .task_queue = "storm"));
    const char *at = status == HF_OK ? out.data : "";
    for (at += strcspn(at, "0123456789"); *at != '\0' && HF_CHECK(b->count < IDS_MAX);
         at += strcspn(at, "0123456789")) {
        char *end = NULL;
        b->ids[b->count++] = strtoull(at, &end, 10);
        at = end;
    }
    return status;
}

static hf_status branch_main(void *arg)
{
    branch *mine = arg;
    mine->status = block(&mine->buyer, 3);
    if (mine->status == HF_OK && draw(&mine->buyer, 6) == 0) {
        HF_TRY(give_back(&mine->buyer, 0));
        mine->status = hf_raise(HF_ERR_FAILED, "by chance");
    }
    return mine->status;
}

static hf_status family(buyer *b, branch *branches, size_t count)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_span timeout = draw(b, 2) == 0 ? some_ticks(b, 8) : HF_SPAN_UNLIMITED;
    hf_branch *jobs[FORKED_MAX] = {NULL};
    hf_join_policy join = some_join(b);
    HF_TRY(hear(b, hf_scope_open(&scope, .timeout = timeout, .join = join)));
    for (size_t i = 0; i < count; i++) {
        branches[i].buyer = (buyer){.told = hf_hash_mix(b->told, i), .depth = b->depth + 1, .all = b->all};
        hf_span delay = draw(b, 3) == 0 ? some_ticks(b, 4) : hf_nanoseconds(0);
        HF_TRY(hear(b, hf_fork(scope, branch_main, &branches[i], .delay = delay, .ret_branch = &jobs[i])));
    }
    if (draw(b, 3) == 0 && block(b, 1) == HF_ERR_EVICTED) {
        return HF_ERR_EVICTED;
    }
    if (draw(b, 4) == 0) {
        (void)hear(b, hf_branch_cancel(jobs[draw(b, count)]));
    }
    if (draw(b, 6) == 0) {
        (void)hear(b, hf_scope_cancel(scope));
    }
    return draw(b, 8) == 0 ? HF_OK : hear(b, hf_join(scope)); /* or left without a join */
}

/* When the scope is closed all of them have ended: what they bought, and did not give back, is ours. */
static hf_status fork_some(buyer *b)
{
    branch branches[FORKED_MAX];
    memset(branches, 0, sizeof branches);
    size_t count = 1 + (size_t)draw(b, FORKED_MAX);
    int from = b->count;
    hf_status status = family(b, branches, count);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        take_over(b, &branches[i].buyer);
        b->told = hf_hash_mix(b->told, (uint64_t)branches[i].status);
    }
    if (status != HF_OK) { /* they did not do together what they should: nothing of it is to stand */
        HF_TRY(give_back(b, from));
    }
    return status == HF_ERR_CANCELED ? HF_OK : status; /* the scope's own; the next wait reports an outer one */
}

static hf_status bounded_block(buyer *b)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hear(b, hf_scope_open(&scope, .timeout = some_ticks(b, 8))));
    hf_status status = block(b, 3);
    return status == HF_ERR_EVICTED ? status : hear(b, hf_join(scope));
}

static hf_status shielded_block(buyer *b)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hear(b, hf_shield_open(some_ticks(b, 8), &shield)));
    hf_status status = block(b, 3);
    return status == HF_ERR_CANCELED ? HF_OK : status; /* by the shield's bound, which ends with the shield */
}

static hf_status one(buyer *b)
{
    static hf_status (*const PLAIN[])(buyer *) = {buy,
                                                  buy,
                                                  buy,
                                                  buy,
                                                  buy,
                                                  buy,
                                                  buy,
                                                  buy,
                                                  buy,
                                                  buy,
                                                  nap,
                                                  wait_for_signal,
                                                  wait_for_handler,
                                                  wait_for_handlers,
                                                  send,
                                                  receive,
                                                  choose,
                                                  meet,
                                                  step_aside,
                                                  tell_other,
                                                  cancel_other,
                                                  buy_in_saga,
                                                  buy_in_saga,
                                                  ponder,
                                                  ponder,
                                                  look_outside,
                                                  wait_for_any,
                                                  choose_signal,
                                                  nap_until};
    static hf_status (*const NESTED[])(buyer *) = {buy_together,  buy_together,   under_lock, under_key,
                                                   with_permit,   fork_some,      fork_some,  fork_some,
                                                   bounded_block, shielded_block, use_flow,   send_child};
    b->depth++;
    bool is_nested = b->depth < DEPTH_MAX && draw(b, 2) == 0;
    hf_status status = is_nested ? NESTED[draw(b, HF_COUNT_OF(NESTED))](b) : PLAIN[draw(b, HF_COUNT_OF(PLAIN))](b);
    b->depth--;
    return status;
}

static hf_status block(buyer *b, int most)
{
    int count = 1 + (int)draw(b, (uint64_t)most);
    int from = b->count;
    bool is_stubborn = draw(b, 5) == 0; /* it goes on when it is canceled */
    hf_status status = HF_OK;
    for (int i = 0; i < count && --b->all->budget >= 0; i++) {
        status = one(b);
        if (status == HF_ERR_EVICTED || (status == HF_ERR_CANCELED && !is_stubborn)) {
            break; /* any other status is a result that the program continues with */
        }
        status = HF_OK;
    }
    bool regrets = draw(b, 40) == 0;
    if (status != HF_ERR_EVICTED && (status != HF_OK || regrets)) {
        HF_TRY(give_back(b, from));
    }
    return status;
}

static hf_status on_note(void *arg, hf_payload in)
{
    common *all = arg;
    (void)in;
    HF_TRY(hf_sleep(hf_milliseconds(TILL_TICK_MS)));
    all->heard++;
    return HF_OK;
}

static hf_status tell_result(const buyer *b, hf_payload *ret_out)
{
    char text[IDS_MAX * 22 + 10] = "[";
    size_t len = 1;
    for (int i = 0; i < b->count; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%" PRIu64, i > 0 ? ", " : "", b->ids[i]);
    }
    return hf_payload_printf(ret_out, "%s]", text);
}

hf_status till_program(hf_payload in, hf_payload *ret_out)
{
    char *rest = NULL;
    common *all = HF_WORKFLOW_NEW(common);
    if (all == NULL) {
        return HF_ERR_NOMEM;
    }
    all->seed = strtoull((const char *)in.data + 1, &rest, 10);
    all->owner = (unsigned)strtoul(rest, &rest, 10);
    all->is_child = strncmp(rest, " child", 6) == 0;
    all->budget = all->is_child ? BUDGET / 8 : BUDGET;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_AUTO(hf_cond_free) hf_cond *cond = NULL;
    HF_AUTO(hf_keylock_free) hf_keylock *keys = NULL;
    HF_TRY(hf_chan_new(sizeof(uint64_t), &chan, .capacity = 1));
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_sem_new(1, &sem));
    HF_TRY(hf_cond_new(&cond));
    HF_TRY(hf_keylock_new(&keys));
    all->chan = chan;
    all->mutex = mutex;
    all->sem = sem;
    all->cond = cond;
    all->keys = keys;
    HF_TRY(hf_on_signal("note", on_note, .arg = all));
    buyer b = {.told = all->seed, .all = all};
    hf_status status = block(&b, all->is_child ? 3 : 10);
    if (status != HF_OK) {
        return status; /* canceled: it has given all back */
    }
    return tell_result(&b, ret_out);
}
