/* Locks by key, single-flight, the cache. */
#include "unit/fiber/everywhere.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Key locks --------------------------------------------------------------------------------------------------- */

enum { KEYS = 10 };

typedef struct desk {
    hf_keylock *keylock;
    atomic_int inside[KEYS];
    atomic_int done;
} desk;

typedef struct visitor {
    desk *desk;
    int number;
} visitor;

static hf_status visit(void *arg)
{
    visitor *v = arg;
    for (int i = 0; i < 5; i++) {
        int key = (v->number + i) % KEYS;
        hf_key_guard *guard = NULL;
        HF_TRY(hf_keylock_lock(v->desk->keylock, &key, sizeof key, &guard));
        HF_CHECK(atomic_fetch_add(&v->desk->inside[key], 1) == 0); /* X6: never two holders */
        HF_TRY(hf_yield());
        atomic_fetch_sub(&v->desk->inside[key], 1);
        HF_TRY(hf_key_unlock(guard));
    }
    atomic_fetch_add(&v->desk->done, 1);
    return HF_OK;
}

static hf_status visit_with(int64_t idle_max)
{
    enum { VISITORS = 100 };
    desk d = {0};
    visitor visitors[VISITORS];
    HF_AUTO(hf_keylock_free) hf_keylock *keylock = NULL;
    HF_TRY(hf_keylock_new(&keylock, .idle_max = idle_max));
    d.keylock = keylock;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < VISITORS; i++) {
        visitors[i] = (visitor){&d, i};
        HF_TRY(hf_fork(scope, visit, &visitors[i]));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK(d.done == VISITORS);
    HF_CHECK(hf_keylock_count(keylock) <= (idle_max < 0 ? 0 : (size_t)idle_max));
    return HF_OK;
}

static hf_status visit_with_one_idle(void *arg)
{
    (void)arg;
    HF_TRY(visit_with(1));
    return visit_with(HF_OFF);
}

static void S6_X6_a_key_has_one_holder_though_idle_entries_come_and_go(void **state)
{
    (void)state;
    everywhere("key locks", 60, visit_with_one_idle);
}

static hf_status hold_and_wait(void *arg)
{
    (void)arg;
    hf_key_guard *one = NULL;
    hf_key_guard *two = NULL;
    hf_key_guard *again = NULL;
    HF_AUTO(hf_keylock_free) hf_keylock *keylock = NULL;
    HF_TRY(hf_keylock_new(&keylock));
    HF_TRY(hf_keylock_lock(keylock, "one", 3, &one));
    HF_TRY(hf_keylock_lock(keylock, "two", 3, &two)); /* another key is another lock */
    HF_CHECK(hf_keylock_try_lock(keylock, "one", 3, &again) == HF_ERR_AGAIN && again == NULL);
    HF_CHECK(hf_keylock_lock(keylock, "one", 3, &again) == HF_ERR_MISUSE);
    HF_CHECK(hf_keylock_count(keylock) == 2);
    HF_CHECK(hf_keylock_free(keylock) == HF_ERR_MISUSE);
    HF_TRY(hf_key_unlock(one));
    HF_TRY(hf_keylock_try_lock(keylock, "one", 3, &one));
    HF_TRY(hf_key_unlock(one));
    HF_TRY(hf_key_unlock(two));
    HF_CHECK(hf_keylock_count(keylock) == 2); /* idle, kept */
    hf_key_guard *empty = NULL;
    HF_TRY(hf_keylock_lock(keylock, NULL, 0, &empty)); /* an empty key is a key */
    HF_TRY(hf_key_unlock(empty));
    char large[1001] = {0};
    HF_CHECK(hf_keylock_lock(keylock, large, sizeof large, &empty) == HF_ERR_TOO_BIG);
    HF_CHECK(hf_keylock_lock(keylock, NULL, 1, &empty) == HF_ERR_MISUSE);
    HF_CHECK(hf_key_unlock(NULL) == HF_OK);
    return HF_OK;
}

static void S6_locks_are_per_key(void **state)
{
    (void)state;
    everywhere("per key", 10, hold_and_wait);
}

static hf_status try_held(void *arg)
{
    hf_keylock *keylock = arg;
    for (int key = 0; key < 20; key++) {
        hf_key_guard *guard = NULL;
        HF_CHECK(hf_keylock_try_lock(keylock, &key, sizeof key, &guard) == HF_ERR_AGAIN);
    }
    return HF_OK;
}

static hf_status hold_past_the_bound(void *arg)
{
    (void)arg;
    HF_AUTO(hf_keylock_free) hf_keylock *keylock = NULL;
    HF_TRY(hf_keylock_new(&keylock, .idle_max = 3));
    hf_key_guard *guards[20] = {NULL};
    for (int key = 0; key < 20; key++) {
        HF_TRY(hf_keylock_lock(keylock, &key, sizeof key, &guards[key]));
    }
    HF_CHECK(hf_keylock_count(keylock) == 20);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, try_held, keylock)); /* every one of them is still there */
    HF_TRY(hf_join(scope));
    for (int key = 0; key < 20; key++) {
        HF_TRY(hf_key_unlock(guards[key]));
        size_t held = (size_t)(19 - key);
        HF_CHECK(hf_keylock_count(keylock) <= held + 3); /* S11: the bound is over idle entries */
        HF_CHECK(hf_keylock_count(keylock) >= held);
    }
    HF_CHECK(hf_keylock_count(keylock) == 3);
    return HF_OK;
}

static void N9_S11_key_table_at_its_bound_never_drops_a_held_key(void **state)
{
    (void)state;
    everywhere("bound", 20, hold_past_the_bound);
}

static hf_status lock_one(void *arg)
{
    hf_key_guard *guard = NULL;
    HF_TRY(hf_keylock_lock(arg, "k", 1, &guard));
    return hf_key_unlock(guard);
}

static hf_status cancel_key_waiters(void *arg)
{
    (void)arg;
    HF_AUTO(hf_keylock_free) hf_keylock *keylock = NULL;
    HF_TRY(hf_keylock_new(&keylock, .idle_max = HF_OFF));
    hf_key_guard *guard = NULL;
    HF_TRY(hf_keylock_lock(keylock, "k", 1, &guard));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    hf_job *jobs[4] = {NULL};
    for (int i = 0; i < 4; i++) {
        HF_TRY(hf_fork(scope, lock_one, keylock, .ret_job = &jobs[i]));
    }
    HF_TRY(hf_yield());
    HF_TRY(hf_job_cancel(jobs[0]));
    HF_TRY(hf_key_unlock(guard));
    HF_TRY(hf_job_cancel(jobs[2]));
    (void)hf_join(scope);
    for (int i = 0; i < 4; i++) {
        hf_status status = hf_job_status(jobs[i]);
        HF_CHECK(status == HF_OK || ((i == 0 || i == 2) && status == HF_ERR_CANCELED));
    }
    HF_CHECK(hf_keylock_count(keylock) == 0); /* nothing is left of it */
    return HF_OK;
}

static void S18_a_canceled_waiter_for_a_key_leaves_nothing_behind(void **state)
{
    (void)state;
    everywhere("cancel", 500, cancel_key_waiters);
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static int released;

static void on_release(void *data)
{
    HF_CHECK(data == &released);
    released++;
}

static void a_value_is_released_by_its_last_holder(void **state)
{
    (void)state;
    released = 0;
    hf_value *value = NULL;
    assert_int_equal(hf_value_new(&value, &released, 7, on_release), HF_OK);
    assert_ptr_equal(hf_value_ref(value), value);
    assert_ptr_equal(hf_value_data(value), &released);
    assert_int_equal(hf_value_len(value), 7);
    hf_value_unref(value);
    assert_int_equal(released, 0);
    hf_value_unref(value);
    assert_int_equal(released, 1);
    hf_value_unref(NULL);
    assert_null(hf_value_ref(NULL));
    char text[] = "copied";
    assert_int_equal(hf_value_copy(&value, text, sizeof text), HF_OK);
    text[0] = 'X';
    assert_string_equal(hf_value_data(value), "copied");
    hf_value_unref(value);
    assert_int_equal(hf_value_copy(&value, NULL, 0), HF_OK);
    assert_int_equal(hf_value_len(value), 0);
    hf_value_unref(value);
    assert_int_equal(hf_value_copy(&value, NULL, 1), HF_ERR_MISUSE);
}

/* ---- Cache ------------------------------------------------------------------------------------------------------- */

typedef struct evicted {
    char keys[32];
    size_t count;
} evicted;

static void on_evict(void *state, const void *key, size_t key_len, hf_value *value)
{
    evicted *e = state;
    HF_CHECK(key_len == 1 && value != NULL);
    e->keys[e->count++] = *(const char *)key;
    e->keys[e->count] = '\0';
}

/* Puts a value of `len` bytes. */
static hf_status put(hf_cache *cache, char key, size_t len, bool *ret_is_new)
{
    static const char BYTES[64] = {0};
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_value_copy(&value, BYTES, len));
    return hf_cache_put(cache, &key, 1, value, ret_is_new);
}

static bool has(hf_cache *cache, char key)
{
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    return hf_cache_get(cache, &key, 1, &value) == HF_OK;
}

static hf_status evict_oldest(void *arg)
{
    (void)arg;
    evicted e = {.count = 0};
    HF_AUTO(hf_cache_free) hf_cache *cache = NULL;
    HF_TRY(hf_cache_new(&cache, .count_max = 3, .on_evict = on_evict, .state = &e));
    bool is_new = false;
    for (char key = 'a'; key <= 'c'; key++) {
        HF_TRY(put(cache, key, 1, &is_new));
        HF_CHECK(is_new);
    }
    HF_TRY(put(cache, 'a', 2, &is_new));
    HF_CHECK(!is_new); /* S8 */
    HF_CHECK(has(cache, 'b'));
    HF_TRY(put(cache, 'd', 1, NULL)); /* c was used last before a and b */
    HF_TRY(put(cache, 'e', 1, NULL)); /* S7: then a, touched by its put */
    HF_CHECK(strcmp(e.keys, "ca") == 0);
    HF_CHECK(!has(cache, 'a') && has(cache, 'b') && !has(cache, 'c') && has(cache, 'd') && has(cache, 'e'));
    char key = 'b';
    HF_TRY(hf_cache_remove(cache, &key, 1));
    HF_CHECK(hf_cache_remove(cache, &key, 1) == HF_ERR_NOT_FOUND);
    HF_CHECK(e.count == 2); /* removing is not evicting */
    hf_cache_stats stats = hf_cache_stat(cache);
    HF_CHECK(stats.count == 2 && stats.bytes == 4 && stats.evictions == 2 && stats.hits == 4 && stats.misses == 2);
    return HF_OK;
}

static void S7_S8_put_at_capacity_evicts_the_least_recently_used(void **state)
{
    (void)state;
    everywhere("cache order", 10, evict_oldest);
}

static hf_status pin_and_bound(void *arg)
{
    (void)arg;
    HF_AUTO(hf_cache_free) hf_cache *cache = NULL;
    HF_TRY(hf_cache_new(&cache, .count_max = 10, .bytes_max = 20));
    HF_CHECK(put(cache, 'x', 20, NULL) == HF_ERR_TOO_BIG); /* with its key it is 21 */
    HF_TRY(put(cache, 'x', 19, NULL));
    HF_TRY(put(cache, 'a', 4, NULL)); /* drops x */
    HF_CHECK(!has(cache, 'x'));
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_cache_pin(cache, "a", 1, &value));
    HF_TRY(hf_cache_pin(cache, "a", 1, NULL)); /* pins count */
    HF_TRY(put(cache, 'b', 9, NULL));
    HF_CHECK(put(cache, 'c', 15, NULL) == HF_ERR_LIMIT); /* only with the pinned one gone: nothing changes */
    HF_CHECK(has(cache, 'a') && has(cache, 'b'));
    HF_TRY(put(cache, 'c', 14, NULL));
    HF_CHECK(has(cache, 'a') && !has(cache, 'b') && has(cache, 'c'));
    HF_CHECK(hf_cache_remove(cache, "a", 1) == HF_ERR_MISUSE);
    HF_CHECK(hf_cache_free(cache) == HF_ERR_MISUSE);
    HF_TRY(hf_cache_unpin(cache, "a", 1));
    HF_CHECK(put(cache, 'd', 19, NULL) == HF_ERR_LIMIT);
    HF_TRY(put(cache, 'a', 5, NULL)); /* a pinned entry can get another value; this drops c */
    HF_CHECK(hf_cache_stat(cache).pinned == 1 && hf_cache_stat(cache).bytes == 6);
    HF_TRY(hf_cache_unpin(cache, "a", 1));
    HF_CHECK(hf_cache_unpin(cache, "a", 1) == HF_ERR_MISUSE);
    HF_CHECK(hf_cache_unpin(cache, "z", 1) == HF_ERR_MISUSE);
    HF_CHECK(hf_cache_put(cache, "a", 1, NULL, NULL) == HF_ERR_MISUSE);
    HF_TRY(put(cache, 'd', 19, NULL));
    HF_CHECK(hf_cache_stat(cache).count == 1 && hf_cache_stat(cache).bytes == 20);
    return HF_OK;
}

static void M7_pinned_entries_stay_and_the_byte_bound_holds(void **state)
{
    (void)state;
    everywhere("pins and bytes", 10, pin_and_bound);
}

/* The obvious twin: an array in the order of use. */
typedef struct twin {
    char keys[16];
    size_t lens[16];
    int pins[16];
    size_t count;
    size_t bytes;
} twin;

static int twin_find(const twin *t, char key)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->keys[i] == key) {
            return (int)i;
        }
    }
    return -1;
}

static void twin_drop(twin *t, size_t at)
{
    t->bytes -= t->lens[at] + 1;
    t->count--;
    memmove(&t->keys[at], &t->keys[at + 1], (t->count - at) * sizeof t->keys[0]);
    memmove(&t->lens[at], &t->lens[at + 1], (t->count - at) * sizeof t->lens[0]);
    memmove(&t->pins[at], &t->pins[at + 1], (t->count - at) * sizeof t->pins[0]);
}

static void twin_append(twin *t, char key, size_t len, int pins)
{
    t->keys[t->count] = key;
    t->lens[t->count] = len;
    t->pins[t->count] = pins;
    t->count++;
    t->bytes += len + 1;
}

static void twin_touch(twin *t, int at)
{
    char key = t->keys[at];
    size_t len = t->lens[at];
    int pins = t->pins[at];
    twin_drop(t, (size_t)at);
    twin_append(t, key, len, pins);
}

enum { TWIN_COUNT_MAX = 5, TWIN_BYTES_MAX = 40 };

static hf_status twin_put(twin *t, char key, size_t len)
{
    twin next = *t;
    int at = twin_find(&next, key);
    int pins = at >= 0 ? next.pins[at] : 0;
    if (at >= 0) {
        twin_drop(&next, (size_t)at);
    }
    twin_append(&next, key, len, pins);
    while (next.count > TWIN_COUNT_MAX || next.bytes > TWIN_BYTES_MAX) {
        size_t oldest = 0;
        while (oldest < next.count - 1 && next.pins[oldest] > 0) {
            oldest++;
        }
        if (oldest == next.count - 1) {
            return HF_ERR_LIMIT;
        }
        twin_drop(&next, oldest);
    }
    *t = next;
    return HF_OK;
}

static void twin_step(hf_cache *cache, twin *t, char key, unsigned what, size_t len)
{
    int at = twin_find(t, key);
    if (what < 3) {
        bool is_new = at >= 0;
        hf_status status = put(cache, key, len, &is_new);
        HF_CHECK(status == twin_put(t, key, len));
        HF_CHECK(status != HF_OK || is_new == (at < 0));
    } else if (what < 6) {
        HF_CHECK(has(cache, key) == (at >= 0));
        if (at >= 0) {
            twin_touch(t, at);
        }
    } else if (what == 6 && at >= 0) {
        HF_CHECK(hf_cache_pin(cache, &key, 1, NULL) == HF_OK);
        t->pins[at]++;
        twin_touch(t, at);
    } else if (what == 7 && at >= 0 && t->pins[at] > 0) {
        HF_CHECK(hf_cache_unpin(cache, &key, 1) == HF_OK);
        if (--t->pins[at] == 0) {
            twin_touch(t, at); /* the end of a pin is a use */
        }
    } else if (what == 8 && at >= 0 && t->pins[at] == 0) {
        HF_CHECK(hf_cache_remove(cache, &key, 1) == HF_OK);
        twin_drop(t, (size_t)at);
    }
}

static hf_status compare_with_twin(void *arg)
{
    (void)arg;
    twin t = {.count = 0};
    hf_cache *cache = NULL;
    HF_TRY(hf_cache_new(&cache, .count_max = TWIN_COUNT_MAX, .bytes_max = TWIN_BYTES_MAX));
    for (int i = 0; i < 300; i++) {
        unsigned char chance[3];
        HF_TRY(hf_random(NULL, chance, sizeof chance));
        twin_step(cache, &t, (char)('a' + chance[0] % 9), chance[1] % 9, chance[2] % 20);
        hf_cache_stats stats = hf_cache_stat(cache);
        HF_CHECK(stats.count == t.count && stats.bytes == t.bytes);
    }
    for (size_t i = 0; i < t.count; i++) {
        for (; t.pins[i] > 0; t.pins[i]--) {
            HF_TRY(hf_cache_unpin(cache, &t.keys[i], 1));
        }
    }
    return hf_cache_free(cache);
}

static void M7_the_cache_behaves_as_its_twin(void **state)
{
    (void)state;
    everywhere("cache and twin", 300, compare_with_twin);
}

static hf_status use_cache(void *arg)
{
    hf_cache *cache = arg;
    for (int i = 0; i < 50; i++) {
        char key = (char)('a' + i % 7);
        HF_TRY(put(cache, key, (size_t)(i % 5), NULL));
        HF_AUTO(hf_value_unref) hf_value *value = NULL;
        if (hf_cache_pin(cache, &key, 1, &value) == HF_OK) {
            HF_TRY(hf_cache_unpin(cache, &key, 1));
        }
        HF_CHECK(hf_cache_stat(cache).count <= 40);
        HF_TRY(hf_yield());
    }
    return HF_OK;
}

static hf_status share_cache(void *arg)
{
    (void)arg;
    HF_AUTO(hf_cache_free) hf_cache *cache = NULL;
    HF_TRY(hf_cache_new(&cache, .count_max = 40));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 8; i++) {
        HF_TRY(hf_fork(scope, use_cache, cache));
    }
    return hf_join(scope);
}

static void S9_S5_the_cache_is_used_from_many_threads(void **state)
{
    (void)state;
    everywhere("shared cache", 30, share_cache);
}

/* ---- Single-flight ----------------------------------------------------------------------------------------------- */

typedef struct store {
    hf_flight *flight;
    hf_chan *gate;      /* the fetch waits for a value of it; NULL = it does not wait */
    atomic_int fetches;
    atomic_int canceled;
    atomic_int got;
    atomic_int failed;
    hf_status fail_with;
} store;

static hf_status fetch(void *arg, hf_value **ret_value)
{
    store *s = arg;
    int number = atomic_fetch_add(&s->fetches, 1) + 1;
    hf_status status = HF_OK;
    if (s->gate != NULL) {
        int token = 0;
        status = hf_chan_recv(s->gate, &token);
    } else {
        status = hf_yield();
    }
    if (status != HF_OK) {
        atomic_fetch_add(&s->canceled, 1);
        return status;
    }
    if (s->fail_with != HF_OK) {
        return hf_raise(s->fail_with, "fetch %d found nothing", number);
    }
    return hf_value_copy(ret_value, &number, sizeof number);
}

static hf_status get(void *arg)
{
    store *s = arg;
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    hf_status status = hf_flight_run(s->flight, "key", 3, fetch, s, &value);
    if (status == HF_OK) {
        int number = 0;
        memcpy(&number, hf_value_data(value), sizeof number);
        HF_CHECK(number == 1);
        atomic_fetch_add(&s->got, 1);
        return HF_OK;
    }
    if (status == s->fail_with) {
        HF_CHECK(strcmp(hf_error()->message, "fetch 1 found nothing") == 0);
        atomic_fetch_add(&s->failed, 1);
        return HF_OK;
    }
    return status;
}

static hf_status get_many(hf_status fail_with)
{
    enum { CALLERS = 100 };
    store s = {.fail_with = fail_with};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work, .name = "store"));
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(&gate, sizeof(int)));
    s.gate = gate;
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work, .name = "fetch"));
    s.flight = flight;
    HF_AUTO(hf_scope_close) hf_scope *callers = NULL;
    HF_TRY(hf_scope_open(&callers));
    for (int i = 0; i < CALLERS; i++) {
        HF_TRY(hf_fork(callers, get, &s));
    }
    while (atomic_load(&s.fetches) == 0) {
        HF_TRY(hf_yield());
    }
    HF_CHECK(hf_flight_count(flight) == 1); /* the gate is shut: it is under way */
    for (int i = 0; i < 20; i++) {
        HF_TRY(hf_yield());
    }
    int token = 0;
    HF_TRY(hf_chan_send(gate, &token));
    (void)hf_chan_close(gate); /* who comes after the end starts anew, and finds this */
    hf_status status = hf_join(callers);
    HF_CHECK(hf_flight_count(flight) == 0);
    HF_CHECK(s.fetches >= 1);
    if (s.fetches == 1) {
        HF_CHECK(status == HF_OK);
        HF_CHECK(fail_with == HF_OK ? s.got == CALLERS : s.failed == CALLERS);
    }
    return HF_OK;
}

static hf_status get_ok(void *arg)
{
    (void)arg;
    return get_many(HF_OK);
}

static hf_status get_failure(void *arg)
{
    (void)arg;
    return get_many(HF_ERR_NOT_FOUND);
}

static void S10_single_flight_gives_all_waiters_the_same_result(void **state)
{
    (void)state;
    everywhere("same result", 60, get_ok);
    everywhere("same failure", 60, get_failure);
}

static hf_status hundred_and_one_fetch(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work));
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(&gate, sizeof(int)));
    s.gate = gate;
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work));
    s.flight = flight;
    HF_AUTO(hf_scope_close) hf_scope *callers = NULL;
    HF_TRY(hf_scope_open(&callers));
    for (int i = 0; i < 100; i++) {
        HF_TRY(hf_fork(callers, get, &s));
    }
    let_settle();
    HF_CHECK(s.fetches == 1);
    int token = 0;
    HF_TRY(hf_chan_send(gate, &token));
    HF_TRY(hf_join(callers));
    HF_CHECK(s.got == 100 && s.fetches == 1);
    HF_TRY(hf_chan_close(gate));
    HF_CHECK(hf_flight_run(flight, "key", 3, fetch, &s, NULL) == HF_ERR_CLOSED); /* a later call starts anew */
    HF_CHECK(s.fetches == 2);
    return HF_OK;
}

static void S17_a_hundred_gets_are_one_fetch_and_a_later_one_starts_anew(void **state)
{
    (void)state;
    in_order("one fetch", hundred_and_one_fetch);
}

static hf_status last_waiter_out(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work, .name = "store"));
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(&gate, sizeof(int)));
    s.gate = gate;
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work));
    s.flight = flight;
    HF_AUTO(hf_scope_close) hf_scope *callers = NULL;
    HF_TRY(hf_scope_open(&callers, .join = HF_JOIN_COLLECT));
    hf_job *jobs[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(callers, get, &s, .ret_job = &jobs[i]));
    }
    let_settle();
    HF_TRY(hf_job_cancel(jobs[0])); /* who started it may leave, too */
    HF_TRY(hf_job_cancel(jobs[1]));
    let_settle();
    HF_CHECK(hf_job_status(jobs[0]) == HF_ERR_CANCELED && hf_job_status(jobs[1]) == HF_ERR_CANCELED);
    HF_CHECK(s.canceled == 0 && hf_flight_count(flight) == 1); /* two left: the fetch goes on */
    HF_CHECK(hf_flight_free(flight) == HF_ERR_MISUSE);
    HF_TRY(hf_job_cancel(jobs[2]));
    let_settle();
    HF_CHECK(hf_job_status(jobs[2]) == HF_ERR_CANCELED);
    HF_CHECK(s.canceled == 1 && s.fetches == 1 && hf_flight_count(flight) == 0);
    (void)hf_join(callers);
    HF_CHECK(hf_scope_is_idle(work));
    HF_CHECK(hf_canceled() == HF_OK); /* nobody else was harmed */
    return HF_OK;
}

static void N8_S13_last_waiter_out_cancels_the_flight(void **state)
{
    (void)state;
    in_order("last waiter out", last_waiter_out);
}

static hf_status leave_before_it_starts(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work));
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work));
    s.flight = flight;
    HF_AUTO(hf_scope_close) hf_scope *callers = NULL;
    HF_TRY(hf_scope_open(&callers, .join = HF_JOIN_COLLECT));
    hf_job *job = NULL;
    HF_TRY(hf_fork(callers, get, &s, .ret_job = &job));
    while (hf_flight_count(flight) == 0) { /* fibers that can go on run before new ones: the fetch waits its turn */
        HF_TRY(hf_yield());
    }
    HF_CHECK(s.fetches == 0);
    HF_TRY(hf_job_cancel(job));
    HF_CHECK(hf_join(callers) == HF_ERR_CANCELED);
    HF_TRY(hf_join(work));
    HF_CHECK(s.fetches == 0 && hf_flight_count(flight) == 0);
    return HF_OK;
}

static void N8_work_that_nobody_waits_for_is_not_even_started(void **state)
{
    (void)state;
    in_order("leave before it starts", leave_before_it_starts);
}

/* A fetch that is slow to end when it is canceled. */
static hf_status stubborn_fetch(void *arg, hf_value **ret_value)
{
    store *s = arg;
    int number = atomic_fetch_add(&s->fetches, 1) + 1;
    hf_status status = hf_sleep(hf_milliseconds(10));
    if (status != HF_OK) {
        const char *reason = NULL;
        HF_CHECK(hf_cancel_cause(&reason) == HF_CAUSE_ABANDONED && strcmp(reason, "fetch") == 0);
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_TRY(hf_shield_open(&shield, hf_seconds(5)));
        HF_CHECK(hf_sleep(hf_milliseconds(500)) == HF_OK);
        atomic_fetch_add(&s->canceled, 1);
        return status;
    }
    return hf_value_copy(ret_value, &number, sizeof number);
}

static hf_status new_flight_while_the_old_winds_down(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work));
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work, .name = "fetch"));
    HF_CHECK(hf_flight_run(flight, "k", 1, stubborn_fetch, &s, NULL, .timeout = hf_milliseconds(5)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_flight_count(flight) == 0 && s.canceled == 0);
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_flight_run(flight, "k", 1, stubborn_fetch, &s, &value));
    int number = 0;
    memcpy(&number, hf_value_data(value), sizeof number);
    HF_CHECK(number == 2 && s.canceled == 0); /* the first is still on its way out */
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(s.canceled == 1 && hf_flight_count(flight) == 0);
    return HF_OK;
}

static void N8_a_new_caller_during_cancellation_starts_a_new_flight(void **state)
{
    (void)state;
    in_order("wind down", new_flight_while_the_old_winds_down);
}

static hf_status free_while_it_winds_down(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work));
    hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work, .name = "fetch"));
    HF_CHECK(hf_flight_run(flight, "k", 1, stubborn_fetch, &s, NULL, .timeout = hf_milliseconds(5)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_flight_free(flight) == HF_OK);
    HF_TRY(hf_join(work));
    HF_CHECK(s.canceled == 1);
    HF_TRY(hf_flight_new(&flight, .scope = work, .detach = true));
    HF_CHECK(hf_flight_run(flight, "k", 1, stubborn_fetch, &s, NULL, .timeout = hf_milliseconds(5)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_flight_count(flight) == 1); /* it goes on, and can be joined */
    HF_CHECK(hf_flight_run(flight, "k", 1, stubborn_fetch, &s, NULL) == HF_OK);
    HF_CHECK(s.canceled == 1 && s.fetches == 2);
    HF_CHECK(hf_flight_run(flight, "k", 1, stubborn_fetch, &s, NULL, .timeout = hf_milliseconds(5)) == HF_ERR_TIMEOUT);
    HF_TRY(hf_flight_free(flight)); /* under the detached work */
    HF_TRY(hf_join(work));
    HF_CHECK(s.canceled == 1 && s.fetches == 3);
    return HF_OK;
}

static void a_flight_is_freed_while_its_work_goes_on(void **state)
{
    (void)state;
    in_order("free", free_while_it_winds_down);
}

/* Waiters come and go at random while the fetch ends at random: everybody gets a result of his own flight or leaves. */
static hf_status come_and_go(void *arg)
{
    store *s = arg;
    for (int i = 0; i < 4; i++) {
        HF_AUTO(hf_value_unref) hf_value *value = NULL;
        unsigned char chance = 0;
        HF_TRY(hf_random(NULL, &chance, 1));
        hf_status status = hf_flight_run(s->flight, "key", 3, fetch, s, &value, .timeout = hf_microseconds(1 + chance));
        HF_CHECK(status == HF_OK || status == HF_ERR_TIMEOUT || status == HF_ERR_NOT_FOUND || status == HF_ERR_CANCELED);
        HF_CHECK((status == HF_OK) == (value != NULL));
        if (status == HF_ERR_CANCELED) { /* of his own: an abandoned flight has nobody to tell it to */
            HF_CHECK(hf_canceled() == HF_ERR_CANCELED);
            return status;
        }
    }
    return HF_OK;
}

static hf_status flights_in_a_storm(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    unsigned char chance = 0;
    HF_TRY(hf_random(NULL, &chance, 1));
    s.fail_with = chance % 2 == 0 ? HF_OK : HF_ERR_NOT_FOUND;
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work));
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work, .detach = chance % 3 == 0));
    s.flight = flight;
    HF_AUTO(hf_scope_close) hf_scope *callers = NULL;
    HF_TRY(hf_scope_open(&callers, .join = HF_JOIN_COLLECT));
    hf_job *jobs[8] = {NULL};
    for (int i = 0; i < 8; i++) {
        HF_TRY(hf_fork(callers, come_and_go, &s, .ret_job = &jobs[i]));
    }
    HF_TRY(hf_yield());
    for (int i = 0; i < 4; i++) {
        HF_TRY(hf_job_cancel(jobs[i]));
    }
    if (chance % 5 == 0) {
        HF_TRY(hf_scope_cancel(callers));
    }
    (void)hf_join(callers);
    HF_CHECK(s.fail_with != HF_OK || hf_join(work) == HF_OK);
    return HF_OK;
}

static void S10_waiters_come_and_go_and_nothing_is_lost_or_left(void **state)
{
    (void)state;
    everywhere("storm", 1000, flights_in_a_storm);
}

static hf_status cancel_the_store(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(&gate, sizeof(int)));
    s.gate = gate;
    HF_AUTO(hf_scope_close) hf_scope *callers = NULL;
    HF_TRY(hf_scope_open(&callers, .join = HF_JOIN_COLLECT));
    hf_job *jobs[3] = {NULL};
    {
        HF_AUTO(hf_scope_close) hf_scope *work = NULL;
        HF_TRY(hf_scope_open(&work));
        HF_TRY(hf_flight_new(&s.flight, .scope = work));
        for (int i = 0; i < 3; i++) {
            HF_TRY(hf_fork(callers, get, &s, .ret_job = &jobs[i]));
        }
        let_settle();
        HF_TRY(hf_scope_cancel(work));
        HF_CHECK(hf_join(work) == HF_ERR_CANCELED);
    }
    HF_CHECK(hf_join(callers) == HF_ERR_CANCELED);
    for (int i = 0; i < 3; i++) { /* the cancellation is a result as any other */
        HF_CHECK(hf_job_status(jobs[i]) == HF_ERR_CANCELED);
    }
    HF_CHECK(s.canceled == 1);
    return hf_flight_free(s.flight);
}

static void S10_all_waiters_get_the_cancellation_of_the_work(void **state)
{
    (void)state;
    in_order("cancel the work", cancel_the_store);
}

static hf_status fail_with_message(void *arg, hf_value **ret_value)
{
    (void)ret_value;
    return hf_raise_typed(HF_ERR_FAILED, *(const char *const *)arg, "no such row");
}

static hf_status nested_flight(void *arg, hf_value **ret_value)
{
    return hf_flight_run(arg, "k", 1, nested_flight, arg, ret_value);
}

static hf_status failing_flights(void *arg)
{
    (void)arg;
    const char *type = "NoRow";
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work, .name = "fail-fast")); /* its policy does not hear of failures that somebody got */
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work));
    for (int i = 0; i < 3; i++) {
        HF_CHECK(hf_flight_run(flight, "a", 1, fail_with_message, &type, NULL) == HF_ERR_FAILED);
        HF_CHECK(strcmp(hf_error()->type, "NoRow") == 0 && strcmp(hf_error()->message, "no such row") == 0);
    }
    HF_CHECK(hf_canceled() == HF_OK);
    HF_CHECK(hf_flight_run(flight, "k", 1, nested_flight, flight, NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_flight_run(flight, "k", 1, NULL, NULL, NULL) == HF_ERR_MISUSE);
    hf_flight *none = NULL;
    HF_CHECK(hf_flight_new(&none) == HF_ERR_MISUSE);
    return hf_join(work);
}

static void S2_a_failed_flight_is_told_to_its_waiters_and_harms_no_other(void **state)
{
    (void)state;
    everywhere("failing flights", 20, failing_flights);
}

static hf_status refused_flight(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(&gate, sizeof(int)));
    s.gate = gate;
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work, .jobs_max = 1));
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work, .detach = true));
    HF_CHECK(hf_flight_run(flight, "a", 1, fetch, &s, NULL, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_flight_run(flight, "b", 1, fetch, &s, NULL) == HF_ERR_LIMIT);
    HF_CHECK(hf_error() != NULL && strstr(hf_error()->message, "children") != NULL);
    HF_CHECK(hf_flight_count(flight) == 1);
    return hf_chan_close(gate);
}

static void a_flight_whose_work_cannot_start_fails_its_waiters(void **state)
{
    (void)state;
    everywhere("refused", 20, refused_flight);
}

/* ---- Endless series ---------------------------------------------------------------------------------------------- */

static _Atomic(int64_t) bytes_live;

static void *count_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    void *ptr = NULL;
    if (posix_memalign(&ptr, align < sizeof(void *) ? sizeof(void *) : align, len > 0 ? len : 1) != 0) {
        return NULL;
    }
    atomic_fetch_add(&bytes_live, (int64_t)len);
    return ptr;
}

static void count_release(void *state, void *ptr, size_t len)
{
    (void)state;
    if (ptr != NULL) {
        atomic_fetch_sub(&bytes_live, (int64_t)len);
    }
    free(ptr);
}

static hf_status flights_for_ever(void *arg)
{
    int64_t *grown = arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work));
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work));
    int64_t before = 0;
    for (int i = 0; i < 3000; i++) {
        if (i == 1000) { /* caches are warm */
            before = atomic_load(&bytes_live);
        }
        s.fail_with = i % 3 == 0 ? HF_ERR_NOT_FOUND : HF_OK;
        (void)hf_flight_run(flight, &i, sizeof i, fetch, &s, NULL);
    }
    HF_TRY(hf_join(work));
    *grown = atomic_load(&bytes_live) - before;
    return HF_OK;
}

static void an_endless_series_of_flights_needs_no_more_memory(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        int64_t grown = -1;
        assert_int_equal(hf_run(flights_for_ever, &grown, .threads = threads,
                                .allocator = {count_allocate, count_release, NULL}),
                         HF_OK);
        assert_true(grown < 64 * 1024 + 8192); /* a slab more at most, and the caller's last failure */
        assert_int_equal(atomic_load(&bytes_live), 0);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(S6_X6_a_key_has_one_holder_though_idle_entries_come_and_go),
        cmocka_unit_test(S6_locks_are_per_key),
        cmocka_unit_test(N9_S11_key_table_at_its_bound_never_drops_a_held_key),
        cmocka_unit_test(S18_a_canceled_waiter_for_a_key_leaves_nothing_behind),
        cmocka_unit_test(a_value_is_released_by_its_last_holder),
        cmocka_unit_test(S7_S8_put_at_capacity_evicts_the_least_recently_used),
        cmocka_unit_test(M7_pinned_entries_stay_and_the_byte_bound_holds),
        cmocka_unit_test(M7_the_cache_behaves_as_its_twin),
        cmocka_unit_test(S9_S5_the_cache_is_used_from_many_threads),
        cmocka_unit_test(S10_single_flight_gives_all_waiters_the_same_result),
        cmocka_unit_test(S17_a_hundred_gets_are_one_fetch_and_a_later_one_starts_anew),
        cmocka_unit_test(N8_S13_last_waiter_out_cancels_the_flight),
        cmocka_unit_test(N8_work_that_nobody_waits_for_is_not_even_started),
        cmocka_unit_test(N8_a_new_caller_during_cancellation_starts_a_new_flight),
        cmocka_unit_test(a_flight_is_freed_while_its_work_goes_on),
        cmocka_unit_test(S10_waiters_come_and_go_and_nothing_is_lost_or_left),
        cmocka_unit_test(S10_all_waiters_get_the_cancellation_of_the_work),
        cmocka_unit_test(S2_a_failed_flight_is_told_to_its_waiters_and_harms_no_other),
        cmocka_unit_test(a_flight_whose_work_cannot_start_fails_its_waiters),
        cmocka_unit_test(an_endless_series_of_flights_needs_no_more_memory),
    };
    return hf_test_main("keyed", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
