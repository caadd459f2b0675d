/* Values that a layer above makes (learn.h). A ticket holds the slot of its key, so that what happens to the key is
 * seen when the value comes: `stirred` of the slot counts writes and invalidations. */
#include "depot/learn.h"
#include "depot/change.h"
#include "depot/outbox.h"

#include "fiber/keyed/cache.h"

struct hf_depot_ticket {
    hf_depot *depot;                     /* counts as a call that is inside */
    hf_depot_slot *slot;                 /* held */
    uint64_t stir;                       /* depot->stir when it was taken */
    uint64_t generation, generation_all; /* the same */
};

/* ---- Looking ----------------------------------------------------------------------------------------------------- */

/* Whether this is served to a caller who asks for nothing older; the origin is not asked. */
static bool is_usable(const hf_depot *depot, const hf_snap *snap, int64_t within, int64_t *ret_age)
{
    hf_ask_rule rule = {.fresh = HF_FRESH_WITHIN, .within = within};
    hf_look_at at = hf_snap_look(depot, snap, hf_depot_wall(depot));
    at.is_blocked = true;
    *ret_age = at.age;
    return hf_rule_get(&rule, &at) == HF_MOVE_SERVE && snap->kind == HF_ENTRY_VALUE;
}

typedef struct peeking {
    const hf_depot *depot;
    int64_t within;
    hf_value **ret_value;
    hf_span *ret_age;
} peeking;

static bool peek(void *arg, hf_value *value)
{
    const peeking *one = arg;
    const hf_snap *snap = hf_value_data(value);
    int64_t age = 0;
    if (!is_usable(one->depot, snap, one->within, &age)) {
        return false;
    }
    *one->ret_value = hf_value_ref(snap->value);
    *one->ret_age = hf_nanoseconds(age);
    return true;
}

bool hf_depot_peek(hf_depot *depot, hf_depot_key key, hf_span within, hf_value **ret_value, hf_span *ret_age)
{
    hf_depot_key_bytes bytes;
    hf_op op;
    hf_op_init(&op);
    peeking one = {depot, within.ns, ret_value, ret_age};
    return hf_depot_key_pack(&op, key, &bytes) == HF_OK &&
           hf_cache_visit(depot->memory, bytes.bytes, bytes.len, peek, &one);
}

/* ---- Tickets ----------------------------------------------------------------------------------------------------- */

typedef struct expecting {
    hf_ask ask;
    int64_t within;
    hf_depot_ticket *ticket; /* filled in if it is needed */
} expecting;

static void act_expect(hf_depot *depot, hf_post *post)
{
    expecting *one = HF_CONTAINER(HF_CONTAINER(post, hf_ask, post), expecting, ask);
    if (hf_depot_refuses(depot, &one->ask)) {
        return;
    }
    hf_depot_slot *slot = hf_slot_of_ask(depot, &one->ask);
    if (slot == NULL) {
        return; /* it is acted on again when the key is known */
    }
    if (is_usable(depot, slot->snap, one->within, &one->ask.age)) {
        depot->counts.hits_source += one->ask.place == HF_DEPOT_SOURCE;
        depot->counts.hits_memory += one->ask.place == HF_DEPOT_MEMORY;
        one->ask.snap = hf_snap_ref(slot->snap);
    } else {
        hf_depot_ticket *ticket = one->ticket;
        depot->counts.misses++;
        ticket->slot = slot;
        slot->holds++;
        ticket->stir = depot->stir;
        ticket->generation = atomic_load_explicit(&slot->space->generation, memory_order_relaxed);
        ticket->generation_all = atomic_load_explicit(&depot->generation, memory_order_relaxed);
        hf_assert(slot->stirred <= ticket->stir); /* DP3: what comes later is later */
    }
    hf_depot_answer(depot, &one->ask, HF_OK);
}

static const char EXPECT[] = "hf_depot_memo";

hf_status hf_depot_expect(hf_depot *depot, hf_depot_key key, hf_span within, hf_value **ret_value, hf_span *ret_age,
                          hf_depot_ticket **ret_ticket)
{
    HF_TRY(hf_depot_enter(depot, EXPECT));
    expecting one = {.ask = {.place = HF_DEPOT_MEMORY}, .within = within.ns};
    one.ticket = hf_rt_alloc(depot->rt, sizeof *one.ticket);
    hf_op op;
    hf_op_init(&op);
    hf_status status = HF_OK;
    if (one.ticket == NULL) {
        (void)hf_fail_at(&op, HF_ERR_NOMEM, EXPECT, "no memory for a value of depot '%s'", depot->name);
        status = hf_depot_raise(depot, &op);
    } else {
        one.ticket->depot = depot;
        status = hf_depot_ask_of(depot, key, &one.ask, act_expect, EXPECT);
    }
    if (status == HF_OK && one.ask.snap == NULL) {
        hf_assert(one.ticket->slot != NULL); /* depot-D4: it is held */
        *ret_value = NULL;
        *ret_ticket = one.ticket;
        return HF_OK; /* the ticket ends the call */
    }
    if (status == HF_OK) {
        *ret_value = hf_value_ref(one.ask.snap->value);
        *ret_age = hf_nanoseconds(one.ask.age);
        *ret_ticket = NULL;
    }
    hf_assert(one.ticket == NULL || one.ticket->slot == NULL);
    hf_snap_unref(one.ask.snap);
    hf_rt_free(depot->rt, one.ticket, sizeof *one.ticket);
    hf_depot_leave(depot);
    return status;
}

static void end_ticket(hf_depot_ticket *ticket)
{
    hf_depot *depot = ticket->depot;
    hf_assert(ticket->slot == NULL); /* depot-D4: the driver has let it go */
    hf_rt_free(depot->rt, ticket, sizeof *ticket);
    hf_depot_leave(depot);
}

static void act_forget(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    hf_depot_ticket *ticket = ask->what;
    hf_depot_slot *slot = ticket->slot;
    ticket->slot = NULL;
    hf_slot_let_go(depot, slot);
    hf_depot_answer(depot, ask, HF_OK);
}

void hf_depot_forget(hf_depot_ticket *ticket)
{
    if (ticket != NULL) {
        hf_ask ask = {.what = ticket};
        hf_depot_tell(ticket->depot, &ask, act_forget, EXPECT);
        end_ticket(ticket);
    }
}

/* ---- Learning ---------------------------------------------------------------------------------------------------- */

typedef struct learning {
    hf_ask ask;
    hf_depot_ticket *ticket; /* freed by the caller, who may leave before the change is written */
    hf_value *value;         /* taken by the change */
    int64_t max_age;
} learning;

/* What the change needs of them. */
typedef struct lesson {
    hf_value *value; /* a reference */
    int64_t max_age;
    uint64_t stir, generation, generation_all; /* of the ticket */
} lesson;

static hf_status decide_learn(hf_depot *depot, hf_change *change)
{
    const lesson *one = change->what;
    const hf_depot_slot *slot = change->slot;
    hf_depot_entry *next = &change->next;
    bool is_void = slot->stirred > one->stir || hf_slot_is_renamed(depot, slot) ||
                   one->generation != atomic_load_explicit(&slot->space->generation, memory_order_relaxed) ||
                   one->generation_all != atomic_load_explicit(&depot->generation, memory_order_relaxed);
    if (is_void) {
        change->is_ignored = true; /* DP3: made of what was before */
        return HF_OK;
    }
    hf_entry_copy(next, &slot->entry);
    hf_value_unref(next->value);
    hf_value_unref(next->etag);
    hf_value_unref(next->last_modified);
    next->kind = HF_ENTRY_VALUE;
    next->value = hf_value_ref(one->value);
    next->etag = NULL;
    next->last_modified = NULL;
    next->max_age = one->max_age;
    next->validated_at = hf_depot_wall(depot);
    next->is_unusable = false;
    next->failures = 0;
    next->backoff_until = 0;
    next->generation = one->generation;
    next->generation_all = one->generation_all;
    change->place = HF_DEPOT_FETCHER;
    return hf_change_fold(depot, change, NULL, NULL);
}

static void apply_learn(hf_depot *depot, hf_change *change, hf_status status)
{
    lesson *one = change->what;
    hf_assert(!change->is_ignored || change->snap == NULL);
    if (change->snap != NULL) { /* the file may not have taken it: memory has */
        hf_change_show(depot, change, true);
    }
    depot->counts.not_kept += status != HF_OK;
    hf_change_tell(depot, change, status);
    hf_value_unref(one->value);
    hf_rt_free(depot->rt, one, sizeof *one);
    hf_change_free(depot, change);
}

static void act_learn(hf_depot *depot, hf_post *post)
{
    learning *one = HF_CONTAINER(HF_CONTAINER(post, hf_ask, post), learning, ask);
    hf_depot_ticket *ticket = one->ticket;
    hf_depot_slot *slot = ticket->slot;
    hf_assert(slot != NULL); /* depot-D4 */
    if (depot->is_ending) {
        hf_depot_answer(depot, &one->ask, hf_fail(&one->ask.op, HF_ERR_CLOSED, "depot '%s' is closed", depot->name));
        return;
    }
    lesson *what = hf_rt_alloc(depot->rt, sizeof *what);
    hf_change *change = what != NULL ? hf_change_new(depot, slot) : NULL;
    if (change == NULL) {
        hf_rt_free(depot->rt, what, sizeof *what);
        hf_depot_answer(depot, &one->ask, hf_fail(&one->ask.op, HF_ERR_NOMEM, "no memory for a value of the depot"));
        return;
    }
    *what = (lesson){one->value, one->max_age, ticket->stir, ticket->generation, ticket->generation_all};
    one->value = NULL;   /* taken */
    ticket->slot = NULL; /* the change holds it from here on */
    change->what = what;
    change->decide = decide_learn;
    change->apply = apply_learn;
    if (!hf_depot_park(depot, &one->ask, &change->asks)) { /* it wants out, and may be gone */
        hf_value_unref(what->value);
        hf_rt_free(depot->rt, what, sizeof *what);
        hf_change_free(depot, change);
    } else {
        hf_change_begin(depot, change);
    }
    hf_slot_let_go(depot, slot);
}

hf_status hf_depot_learn(hf_depot_ticket *ticket, const void *data, size_t len, hf_span max_age)
{
    hf_depot *depot = ticket->depot;
    learning one = {.ticket = ticket, .max_age = max_age.ns};
    hf_op op;
    hf_op_init(&op);
    hf_status status = HF_OK;
    if (len > (size_t)depot->options.value_max) {
        (void)hf_fail_at(&op, HF_ERR_TOO_BIG, EXPECT, "a value has %zu bytes: depot '%s' takes %lld (.value_max)", len,
                         depot->name, (long long)depot->options.value_max);
        status = hf_depot_raise(depot, &op);
    } else if (hf_value_copy(data, len, &one.value) != HF_OK) {
        status = HF_ERR_NOMEM;
    } else {
        status = hf_depot_ask(depot, &one.ask, act_learn, EXPECT, hf_nanoseconds(0));
    }
    hf_value_unref(one.value); /* if it was not taken */
    if (ticket->slot != NULL) {
        hf_depot_forget(ticket);
    } else {
        end_ticket(ticket);
    }
    return status;
}
