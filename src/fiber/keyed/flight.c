/* Single-flight: there is one flight per key at a time, and a call that comes while it is under way waits for it.
 *
 *            run, key free             work ends, or last waiter leaves
 *   (none) ----------------> in table ---------------------------------> out of the table --last ref--> gone
 *
 * fiber-G1  A flight in the table is under way: it is neither ended nor abandoned. A call that finds it there gets
 *           its result.
 * fiber-G2  A flight leaves the table once: when its work ends, or with its last waiter. From then on the key is
 *           free, also while the work of an abandoned flight is still ending (N8).
 * fiber-G3  A waiter is counted from the moment it finds the flight until it has the result or gives up. The
 *           canceler unlinks a canceled waiter, which then leaves by itself.
 * fiber-G4  The result is written before the first waiter is woken, and does not change. */
#include "fiber/keyed/keys.h"
#include "fiber/sync/sync.h"
#include "fiber/sync/work.h"
#include "fiber/verbs.h"

#include <string.h>

struct hf_flight {
    hf_spin lock;     /* first: hf_wait.object points here */
    hf_keys keys;     /* flights under way */
    unsigned users;   /* verbs that wait */
    atomic_uint refs; /* the creator's, and one per flight */
    hf_runtime *rt;
    const char *name;
    hf_scope *scope;
    bool detach;
    uint64_t seed;
};

typedef struct flying {
    hf_work work;
    hf_key_node key;
    hf_flight *flight;
    atomic_uint refs; /* the work's, and one per waiter */
    hf_list waiters;
    unsigned waiter_count;
    bool in_table;
    bool ended;
    hf_flight_body body;
    void *arg;
    hf_status status;        /* of the end */
    hf_value *value;         /* owned */
    hf_failure_box *failure; /* owned; NULL when it ended well */
    unsigned char bytes[];
} flying;

hf_status hf_flight_new_with(hf_flight **ret_flight, const hf_flight_options *options)
{
    HF_OPTIONS(hf_flight_options, options, hf_flight_new);
    hf_scope *scope = options->scope;
    HF_VERB_ENTER(self, hf_flight_new, scope != NULL ? scope->rt : NULL);
    if (ret_flight == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_flight_new needs a place for the flight"));
    }
    if (scope == NULL || scope->is_shield) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "a flight needs an open scope for its work"));
    }
    hf_flight *flight = hf_rt_alloc(scope->rt, sizeof *flight);
    if (flight == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_NOMEM, "no memory for a flight"));
    }
    flight->rt = scope->rt;
    flight->name = options->name != NULL ? options->name : "flight";
    flight->scope = scope;
    flight->detach = options->detach;
    flight->seed = hf_keys_seed(scope->rt);
    atomic_store_explicit(&flight->refs, 1, memory_order_relaxed);
    *ret_flight = flight;
    HF_LEAVE(self, HF_OK);
}

static void flight_unref(hf_flight *flight)
{
    if (atomic_fetch_sub_explicit(&flight->refs, 1, memory_order_acq_rel) == 1) {
        hf_assert(flight->keys.count == 0 && flight->users == 0); /* fiber-G1 */
        hf_rt_free(flight->rt, flight, sizeof *flight);
    }
}

/* Outside the library when there is a value: letting it go may run the user's code. */
static void flying_unref(flying *one)
{
    if (one == NULL || atomic_fetch_sub_explicit(&one->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    hf_assert(!one->in_table && one->waiter_count == 0 && hf_list_is_empty(&one->waiters)); /* fiber-G2, fiber-G3 */
    hf_flight *flight = one->flight;
    hf_value_unref(one->value);
    hf_box_unref(one->failure);
    hf_rt_free(flight->rt, one, sizeof *one + one->key.len);
    flight_unref(flight);
}

hf_status hf_flight_free(hf_flight *flight)
{
    if (flight == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_flight_free, flight->rt);
    hf_spin_lock(&flight->lock);
    bool is_used = flight->users > 0;
    hf_spin_unlock(&flight->lock);
    if (is_used) {
        HF_LEAVE(self, hf_object_in_use(self, flight->rt, "hf_flight_free", flight->name));
    }
    flight_unref(flight); /* work that is still ending, or runs detached, keeps the rest */
    HF_LEAVE(self, HF_OK);
}

/* ---- The work ---------------------------------------------------------------------------------------------------- */

static hf_status flying_run(hf_work *work)
{
    flying *one = HF_CONTAINER(work, flying, work);
    hf_value *value = NULL;
    hf_status status = one->body(one->arg, &value);
    if (status != HF_OK) { /* a value that comes with a failure is released */
        hf_value_unref(value);
        value = NULL;
    }
    one->value = value; /* before the end, which makes it visible (fiber-G4) */
    return status;
}

/* Under the lock (fiber-G2). */
static void leave_table(flying *one)
{
    if (one->in_table) {
        hf_assert(one->flight->keys.count > 0); /* fiber-G2 */
        one->in_table = false;
        hf_keys_remove(&one->flight->keys, &one->key);
    }
}

static bool flying_end(hf_work *work, hf_status status, hf_failure_box *failure)
{
    flying *one = HF_CONTAINER(work, flying, work);
    hf_flight *flight = one->flight;
    hf_claimed claimed = {NULL, NULL};
    hf_spin_lock(&flight->lock);
    hf_assert(!one->ended);
    one->ended = true;
    one->status = status;
    one->failure = failure;
    leave_table(one);
    hf_claimed_add_all(&claimed, &one->waiters);
    bool is_told = one->waiter_count > 0 || work->abandoned;
    hf_spin_unlock(&flight->lock);
    hf_claimed_wake(&claimed, HF_OK);
    return is_told;
}

static void flying_work_unref(hf_work *work)
{
    flying_unref(HF_CONTAINER(work, flying, work));
}

static const hf_work_kind FLYING = {flying_run, flying_end, flying_work_unref};

/* ---- Waiting for it ---------------------------------------------------------------------------------------------- */

static const hf_wait_kind RUN = {"hf_flight_run", hf_wait_abort_linked};

static flying *flying_new(hf_flight *flight, uint64_t hash, const void *key, size_t key_len)
{
    flying *one = hf_rt_alloc(flight->rt, sizeof *one + key_len);
    if (one == NULL) {
        return NULL;
    }
    if (key_len > 0) {
        memcpy(one->bytes, key, key_len);
    }
    one->key.hash = hash;
    one->key.bytes = one->bytes;
    one->key.len = key_len;
    one->flight = flight;
    one->work.kind = &FLYING;
    one->work.lock = &flight->lock;
    one->work.name = flight->name;
    one->work.scope = flight->scope;
    hf_list_init(&one->waiters);
    atomic_store_explicit(&one->refs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&flight->refs, 1, memory_order_relaxed);
    return one;
}

/* Finds the flight of the key and counts the caller as its waiter. If there is none, `*fresh` becomes the flight,
 * and is set to NULL. NULL: there is neither. */
static flying *board(hf_flight *flight, uint64_t hash, const void *key, size_t key_len, flying **fresh)
{
    flying *one = NULL;
    hf_spin_lock(&flight->lock);
    hf_key_node *found = hf_keys_find(&flight->keys, hash, key, key_len);
    if (found != NULL) {
        one = HF_CONTAINER(found, flying, key);
        hf_assert(!one->ended && !one->work.abandoned); /* fiber-G1 */
    } else if (*fresh != NULL) {
        one = *fresh;
        *fresh = NULL;
        one->in_table = true;
        hf_keys_add(&flight->keys, &one->key);
    }
    if (one != NULL) {
        one->waiter_count++;
        flight->users++;
        atomic_fetch_add_explicit(&one->refs, 1, memory_order_relaxed);
    }
    hf_spin_unlock(&flight->lock);
    return one;
}

/* HF_OK: the flight has ended. */
static hf_status await_end(hf_fiber *self, flying *one, hf_instant deadline)
{
    hf_flight *flight = one->flight;
    hf_wait wait;
    HF_TRY(hf_may_wait(self, RUN.verb));
    hf_wait_init(&wait, self, &RUN, flight, flight->name);
    hf_sync_point(self);
    hf_spin_lock(&flight->lock);
    bool waits_for_itself = one->work.runner == self;
    bool has_ended = one->ended;
    if (!has_ended && !waits_for_itself) {
        hf_list_push_back(&one->waiters, &wait.node);
    }
    hf_spin_unlock(&flight->lock);
    if (waits_for_itself) {
        return hf_refuse_at(self, HF_ERR_MISUSE, RUN.verb, "the work of '%s' waits for its own key", flight->name);
    }
    return has_ended ? HF_OK : hf_park(self, &wait, deadline);
}

/* The caller no longer waits (fiber-G3). When the last waiter leaves a flight under way, the flight is abandoned. */
static void get_off(flying *one)
{
    hf_flight *flight = one->flight;
    hf_spin_lock(&flight->lock);
    hf_assert(flight->users > 0 && one->waiter_count > 0); /* fiber-G3 */
    flight->users--;
    one->waiter_count--;
    bool is_last = one->waiter_count == 0 || HF_CANARY(HF_BUG_FLIGHT_ANY_LEAVES);
    if (is_last && !one->ended && !flight->detach && !HF_CANARY(HF_BUG_FLIGHT_NOT_CANCELED)) {
        if (!HF_CANARY(HF_BUG_FLIGHT_STALE)) {
            leave_table(one);
        }
        hf_work_abandon(&one->work);
    }
    hf_spin_unlock(&flight->lock);
}

static hf_status result_of(hf_fiber *self, const flying *one, hf_value **ret_value)
{
    hf_assert(one->ended && (one->status == HF_OK) == (one->failure == NULL)); /* fiber-G4 */
    if (one->status != HF_OK) {
        hf_self_fail(self, hf_box_ref(one->failure));
    } else if (ret_value != NULL) {
        *ret_value = hf_value_ref(one->value);
    }
    return one->status;
}

static hf_status check(hf_fiber *self, const hf_flight *flight, const void *key, size_t key_len, hf_flight_body body)
{
    if (flight == NULL || body == NULL) {
        return hf_refuse_at(self, HF_ERR_MISUSE, RUN.verb, "a flight and a body are needed");
    }
    HF_TRY(hf_key_check(self, RUN.verb, key, key_len));
    return hf_may_wait(self, RUN.verb);
}

hf_status hf_flight_run_with(hf_flight *flight, const void *key, size_t key_len, hf_flight_body body, void *arg,
                             hf_value **ret_value, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_flight_run);
    HF_VERB_ENTER(self, hf_flight_run, flight != NULL ? flight->rt : NULL);
    hf_status status = check(self, flight, key, key_len, body);
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    hf_instant deadline = hf_wait_deadline(self, flight->rt, options);
    uint64_t hash = hf_key_hash(flight->seed, key, key_len);
    flying *fresh = NULL;
    hf_sync_point(self);
    flying *one = board(flight, hash, key, key_len, &fresh);
    if (one == NULL) {
        fresh = flying_new(flight, hash, key, key_len);
        if (fresh == NULL) {
            HF_LEAVE(self, hf_refuse(self, HF_ERR_NOMEM, "no memory for a flight of '%s'", flight->name));
        }
        fresh->body = body;
        fresh->arg = arg;
        one = board(flight, hash, key, key_len, &fresh);
        if (fresh == NULL) {
            hf_leave(self);
            (void)hf_work_start(&one->work); /* if it fails, the flight ends with that */
            self = hf_enter(flight->rt);
            hf_assert(self != NULL);
        }
    }
    status = await_end(self, one, deadline);
    if (status == HF_OK) {
        status = result_of(self, one, ret_value);
    }
    get_off(one);
    hf_leave(self);
    flying_unref(one);
    flying_unref(fresh);
    return status;
}

size_t hf_flight_count(hf_flight *flight)
{
    if (flight == NULL) {
        return 0;
    }
    hf_fiber *self = hf_enter(flight->rt);
    if (self == NULL) {
        return 0;
    }
    hf_spin_lock(&flight->lock);
    size_t count = flight->keys.count;
    hf_spin_unlock(&flight->lock);
    hf_leave(self);
    return count;
}
