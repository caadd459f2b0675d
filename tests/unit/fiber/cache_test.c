/* The cache: order, bounds, pins, and a twin to compare it with. */
#include "unit/fiber/everywhere.h"

#include <string.h>

typedef struct evicted {
    char keys[32];
    size_t count;
} evicted;

static hf_cache_counts counts_of(hf_cache *cache)
{
    hf_cache_counts counts = {0};
    HF_CHECK(hf_cache_stats(cache, &counts) == HF_OK);
    return counts;
}

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
    HF_TRY(hf_value_copy(BYTES, len, &value));
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
    hf_cache_counts stats = counts_of(cache);
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
    HF_CHECK(counts_of(cache).pinned == 1 && counts_of(cache).bytes == 6);
    HF_TRY(hf_cache_unpin(cache, "a", 1));
    HF_CHECK(hf_cache_unpin(cache, "a", 1) == HF_ERR_MISUSE);
    HF_CHECK(hf_cache_unpin(cache, "z", 1) == HF_ERR_MISUSE);
    HF_CHECK(hf_cache_put(cache, "a", 1, NULL, NULL) == HF_ERR_MISUSE);
    HF_TRY(put(cache, 'd', 19, NULL));
    HF_CHECK(counts_of(cache).count == 1 && counts_of(cache).bytes == 20);
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
        hf_cache_counts stats = counts_of(cache);
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
        HF_CHECK(counts_of(cache).count <= 40);
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

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(S7_S8_put_at_capacity_evicts_the_least_recently_used),
        cmocka_unit_test(M7_pinned_entries_stay_and_the_byte_bound_holds),
        cmocka_unit_test(M7_the_cache_behaves_as_its_twin),
        cmocka_unit_test(S9_S5_the_cache_is_used_from_many_threads),
    };
    return hf_test_main("cache", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
