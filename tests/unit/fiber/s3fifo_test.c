/* S3-FIFO caches: the rules by tables, expiry, sweeps and trims, and many threads at once. The model is in
 * unit/model/cache_model_test.c. */
#include "unit/fiber/everywhere.h"

#include "fiber/keyed/cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- The rules --------------------------------------------------------------------------------------------------- */

/* A program: a letter puts that key, a capital gets it, +a pins, -a unpins, !a removes. */
typedef struct rule {
    const char *what;
    int64_t count_max;
    const char *program;
    const char *evicted; /* in this order */
} rule;

static const rule RULES[] = {
    {"nothing leaves before the bound", 4, "abcd", ""},
    {"small: the oldest that was not used leaves", 4, "abcde", "a"},
    {"small: one use is not enough", 4, "abcdAe", "a"},
    {"small: two uses, and it moves to main", 4, "abcdAAe", "b"},
    {"a put of a key that is there is a use", 4, "abcdAae", "b"},
    {"a ghost goes to main: all others leave first", 4, "abcdeafghi", "abcdef"},
    {"a key that is not a ghost goes to small", 4, "abcdexfghij", "abcdexf"},
    {"a ghost is one only once", 4,
     "abcdea!a"
     "afghij",
     "abcdeaf"},
    {"a ghost of more departures ago than there are entries is forgotten", 4, "abcdefghija", "abcdefg"},
    {"main: the oldest without a use leaves when small is under its share", 20,
     "abcdefghijklmnopqrst"
     "AABBCCDDEEFFGGHHIIJJKKLLMMNNOOPPQQRRSSTT"
     "u",
     "a"},
    {"main: a use is a second round", 20,
     "abcdefghijklmnopqrst"
     "AABBCCDDEEFFGGHHIIJJKKLLMMNNOOPPQQRRSSTT"
     "u"
     "BD"
     "v",
     "ac"},
    {"main: three uses are three rounds", 2,
     "aabb"
     "AAABBBB"
     "c",
     "a"},
    {"pinned: it stays, the next one leaves", 4, "abcd+aef", "bc"},
    {"pinned: it is back at its place", 4, "abcd+ae-af", "ba"},
    {"pinned: two of them", 4, "abcd+a+bef", "cd"},
    {"removed: that is not an eviction, and leaves no ghost", 4, "abcd!aeafg", "bcd"},
};

typedef struct evicted {
    char keys[64];
    size_t count;
} evicted;

static void on_evict(void *state, const void *key, size_t key_len, hf_value *value)
{
    evicted *e = state;
    HF_CHECK(key_len == 1 && value != NULL);
    e->keys[e->count++] = *(const char *)key;
    e->keys[e->count] = '\0';
}

static hf_status put(hf_cache *cache, char key, size_t len, bool *ret_is_new)
{
    static const char BYTES[64] = {0};
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_value_copy(BYTES, len, &value));
    return hf_cache_put(cache, &key, 1, value, ret_is_new);
}

static bool has(hf_cache *cache, char key)
{
    return hf_cache_get(cache, &key, 1, NULL) == HF_OK;
}

static void step(hf_cache *cache, const char **at)
{
    char what = *(*at)++;
    char key = what;
    if (what == '+' || what == '-' || what == '!') {
        key = *(*at)++;
    }
    if (what == '+') {
        HF_CHECK(hf_cache_pin(cache, &key, 1, NULL) == HF_OK);
    } else if (what == '-') {
        HF_CHECK(hf_cache_unpin(cache, &key, 1) == HF_OK);
    } else if (what == '!') {
        HF_CHECK(hf_cache_remove(cache, &key, 1) == HF_OK);
    } else if (what >= 'A' && what <= 'Z') {
        HF_CHECK(has(cache, (char)(what - 'A' + 'a')));
    } else {
        HF_CHECK(put(cache, key, 1, NULL) == HF_OK);
    }
}

static hf_status play_rules(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++) {
        evicted e = {.count = 0};
        hf_cache *cache = NULL;
        HF_TRY(hf_cache_new(&cache, .evict = HF_EVICT_S3FIFO, .count_max = RULES[i].count_max, .on_evict = on_evict,
                            .state = &e));
        const char *at = RULES[i].program;
        while (*at != '\0') {
            step(cache, &at);
        }
        HF_CHECK_SAY(strcmp(e.keys, RULES[i].evicted) == 0, "%s: '%s' left, not '%s'", RULES[i].what, e.keys,
                     RULES[i].evicted);
        hf_cache_counts counts = {0};
        HF_TRY(hf_cache_stats(cache, &counts));
        HF_CHECK(counts.count <= (uint64_t)RULES[i].count_max && counts.evictions == e.count);
        for (char key = 'a'; key <= 'z'; key++) {
            while (counts.pinned > 0 && has(cache, key) && hf_cache_unpin(cache, &key, 1) == HF_OK) {
            }
        }
        HF_TRY(hf_cache_free(cache));
    }
    return HF_OK;
}

static void entries_leave_by_the_rules(void **state)
{
    (void)state;
    everywhere("rules of S3-FIFO", 3, play_rules);
}

/* ---- Bounds, expiry ---------------------------------------------------------------------------------------------- */

static hf_status bounds(void *arg)
{
    (void)arg;
    hf_cache *cache = NULL;
    HF_CHECK(hf_cache_new(&cache, .evict = (hf_evict)7) == HF_ERR_INVALID);
    HF_CHECK(hf_cache_new(&cache, .evict = HF_EVICT_S3FIFO, .shards = 3) == HF_ERR_INVALID);
    HF_CHECK(hf_cache_new(&cache, .evict = HF_EVICT_S3FIFO, .shards = 128) == HF_ERR_INVALID);
    HF_CHECK(hf_cache_new(&cache, .shards = 2) == HF_ERR_INVALID);
    HF_CHECK(hf_cache_new(&cache, .ttl = hf_seconds(-1)) == HF_ERR_INVALID);
    HF_TRY(hf_cache_new(&cache, .evict = HF_EVICT_S3FIFO, .bytes_max = 300));
    /* A key of one byte: 25 + 8 are 48, an empty value 16 + 8 are 32, the index 16. */
    HF_TRY(put(cache, 'a', 0, NULL));
    hf_cache_counts counts = {0};
    HF_TRY(hf_cache_stats(cache, &counts));
    HF_CHECK(counts.count == 1 && counts.bytes == 96);
    HF_TRY(put(cache, 'b', 8, NULL));
    HF_TRY(put(cache, 'c', 8, NULL));
    HF_TRY(hf_cache_stats(cache, &counts));
    HF_CHECK(counts.count == 3 && counts.bytes == 288);
    HF_TRY(put(cache, 'a', 9, NULL)); /* 16 more: one must go, and not a itself */
    HF_TRY(hf_cache_stats(cache, &counts));
    HF_CHECK(counts.count == 2 && counts.bytes == 208 && has(cache, 'a') && !has(cache, 'b') && has(cache, 'c'));
    HF_TRY(hf_cache_pin(cache, "a", 1, NULL));
    HF_TRY(hf_cache_pin(cache, "c", 1, NULL));
    HF_CHECK(put(cache, 'd', 0, NULL) == HF_ERR_LIMIT);
    HF_CHECK(hf_cache_remove(cache, "a", 1) == HF_ERR_MISUSE);
    HF_CHECK(hf_cache_free(cache) == HF_ERR_MISUSE);
    HF_TRY(hf_cache_unpin(cache, "a", 1));
    HF_CHECK(hf_cache_unpin(cache, "a", 1) == HF_ERR_MISUSE);
    HF_TRY(hf_cache_unpin(cache, "c", 1));
    char bytes[300] = {0};
    HF_AUTO(hf_value_unref) hf_value *large = NULL;
    HF_TRY(hf_value_copy(bytes, sizeof bytes, &large));
    HF_CHECK(hf_cache_put(cache, "x", 1, large, NULL) == HF_ERR_TOO_BIG);
    HF_CHECK(hf_cache_put(cache, "x", 1, NULL, NULL) == HF_ERR_MISUSE);
    return hf_cache_free(cache);
}

static void the_byte_bound_counts_all_that_an_entry_takes(void **state)
{
    (void)state;
    everywhere("bounds of S3-FIFO", 10, bounds);
}

static hf_status expire(void *arg)
{
    static const hf_evict KINDS[] = {HF_EVICT_LRU, HF_EVICT_S3FIFO};
    (void)arg;
    for (size_t i = 0; i < 2; i++) {
        HF_AUTO(hf_cache_free) hf_cache *cache = NULL;
        HF_TRY(hf_cache_new(&cache, .evict = KINDS[i], .ttl = hf_seconds(10)));
        bool is_new = false;
        HF_TRY(put(cache, 'a', 1, NULL));
        HF_TRY(hf_sleep(hf_seconds(6)));
        HF_TRY(put(cache, 'b', 1, NULL));
        HF_CHECK(has(cache, 'a') && has(cache, 'b'));
        HF_TRY(hf_sleep(hf_seconds(4)));
        HF_CHECK(!has(cache, 'a') && has(cache, 'b'));
        HF_CHECK(hf_cache_pin(cache, "a", 1, NULL) == HF_ERR_NOT_FOUND);
        HF_TRY(put(cache, 'a', 1, &is_new));
        HF_CHECK(is_new && has(cache, 'a'));
        HF_TRY(hf_sleep(hf_seconds(6)));
        HF_CHECK(has(cache, 'a') && !has(cache, 'b'));
        HF_CHECK(hf_cache_remove(cache, "b", 1) == HF_ERR_NOT_FOUND);
        HF_TRY(put(cache, 'a', 2, &is_new));
        HF_CHECK(!is_new);
        HF_TRY(hf_sleep(hf_seconds(9)));
        HF_CHECK(has(cache, 'a')); /* a put begins its time anew */
    }
    return HF_OK;
}

static void an_entry_is_not_found_after_its_ttl(void **state)
{
    (void)state;
    in_order("ttl", expire);
}

/* ---- Visits, sweeps, trims --------------------------------------------------------------------------------------- */

static bool look(void *arg, hf_value *value)
{
    hf_value **kept = arg;
    *kept = hf_value_ref(value);
    return hf_value_len(value) > 0;
}

static bool is_even(void *arg, const void *key, size_t key_len, hf_value *value)
{
    (void)key_len;
    (void)value;
    ++*(int *)arg;
    return (*(const uint32_t *)key) % 2 == 0;
}

static hf_status put_number(hf_cache *cache, uint32_t number)
{
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_value_copy(&number, sizeof number, &value));
    return hf_cache_put(cache, &number, sizeof number, value, NULL);
}

/* With puts between the portions: the tables are replaced. */
static hf_status sweep_and_trim(hf_evict kind, int64_t shards)
{
    HF_AUTO(hf_cache_free) hf_cache *cache = NULL;
    HF_TRY(hf_cache_new(&cache, .evict = kind, .count_max = HF_UNLIMITED, .shards = shards));
    for (uint32_t i = 0; i < 3000; i++) {
        HF_TRY(put_number(cache, i));
    }
    uint64_t cursor = 0;
    int seen = 0;
    size_t count = 0;
    size_t removed = 0;
    uint32_t next = 3001;
    for (bool has_more = true; has_more; removed += count) {
        has_more = hf_cache_sweep(cache, &cursor, 50, is_even, &seen, &count);
        for (int i = 0; i < 20; i++, next += 2) {
            HF_TRY(put_number(cache, next));
        }
    }
    HF_CHECK(removed == 1500 && seen >= 3000);
    hf_cache_counts counts = {0};
    HF_TRY(hf_cache_stats(cache, &counts));
    HF_CHECK(counts.count == 1500 + (next - 3001) / 2);
    for (uint32_t i = 1; i < next; i++) {
        HF_CHECK((hf_cache_get(cache, &i, sizeof i, NULL) == HF_OK) == (i % 2 == 1));
    }
    hf_cache_trim(cache, counts.bytes / 3);
    hf_cache_counts after = {0};
    HF_TRY(hf_cache_stats(cache, &after));
    HF_CHECK(after.bytes <= counts.bytes / 3 && after.bytes > counts.bytes / 4);
    hf_cache_trim(cache, 0);
    HF_TRY(hf_cache_stats(cache, &after));
    HF_CHECK(after.count == 0 && after.bytes == 0 && after.evictions == counts.count);
    return HF_OK;
}

static hf_status visit_and_sweep(void *arg)
{
    static const hf_evict KINDS[] = {HF_EVICT_LRU, HF_EVICT_S3FIFO, HF_EVICT_S3FIFO};
    (void)arg;
    for (size_t i = 0; i < 3; i++) {
        HF_AUTO(hf_cache_free) hf_cache *cache = NULL;
        HF_TRY(hf_cache_new(&cache, .evict = KINDS[i]));
        HF_AUTO(hf_value_unref) hf_value *kept = NULL;
        HF_CHECK(!hf_cache_visit(cache, "a", 1, look, &kept) && kept == NULL);
        HF_TRY(put(cache, 'a', 1, NULL));
        HF_CHECK(hf_cache_visit(cache, "a", 1, look, &kept) && hf_value_len(kept) == 1);
        hf_cache_counts counts = {0};
        HF_TRY(hf_cache_stats(cache, &counts));
        HF_CHECK(counts.hits == 1 && counts.misses == 1);
        HF_TRY(sweep_and_trim(KINDS[i], i == 2 ? 8 : 0));
    }
    return HF_OK;
}

static void sweeps_see_every_entry_and_trims_leave_what_they_may(void **state)
{
    (void)state;
    everywhere("sweeps", 5, visit_and_sweep);
}

/* ---- Many threads ------------------------------------------------------------------------------------------------ */

enum { SHARED_COUNT = 100, SHARED_KEYS = 160 };

typedef struct shared {
    hf_cache *cache;
    int rounds;
    _Atomic(int64_t) live; /* values that are not released */
    atomic_uint evicted;
    atomic_uint numbers;
} shared;

/* A value is its key and a mark that its release wipes out. */
typedef struct thing {
    uint32_t key;
    uint32_t mark;
    shared *in;
} thing;
enum { MARK = 0x5eed };

static void thing_release(void *data)
{
    thing *gone = data;
    HF_CHECK(gone->mark == MARK);
    gone->mark = 0;
    atomic_fetch_sub(&gone->in->live, 1);
    free(gone);
}

static void shared_evict(void *state, const void *key, size_t key_len, hf_value *value)
{
    shared *in = state;
    uint32_t number = 0;
    HF_CHECK(key_len == sizeof number);
    memcpy(&number, key, sizeof number);
    thing *evicted_thing = hf_value_data(value);
    HF_CHECK(evicted_thing->key == number && evicted_thing->mark == MARK);
    atomic_fetch_add(&in->evicted, 1);
}

static hf_status put_thing(shared *in, uint32_t key)
{
    thing *fresh = malloc(sizeof *fresh);
    if (fresh == NULL) {
        return HF_ERR_NOMEM;
    }
    *fresh = (thing){key, MARK, in};
    atomic_fetch_add(&in->live, 1);
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_value_new(fresh, sizeof *fresh, thing_release, &value));
    return hf_cache_put(in->cache, &key, sizeof key, value, NULL);
}

static bool look_at_thing(void *arg, hf_value *value)
{
    const thing *found = hf_value_data(value);
    return HF_CHECK(found->key == *(const uint32_t *)arg && found->mark == MARK);
}

static bool is_multiple(void *arg, const void *key, size_t key_len, hf_value *value)
{
    (void)value;
    uint32_t number = 0;
    memcpy(&number, key, key_len);
    return number % 16 == *(const uint32_t *)arg;
}

static void sweep_once(shared *in, uint32_t rest)
{
    uint64_t cursor = 0;
    while (hf_cache_sweep(in->cache, &cursor, 16, is_multiple, &rest, NULL)) {
    }
}

static hf_status one_of_all(shared *in, uint32_t key, unsigned what)
{
    if (what < 30) {
        return put_thing(in, key);
    }
    if (what < 60) {
        HF_AUTO(hf_value_unref) hf_value *value = NULL;
        if (hf_cache_get(in->cache, &key, sizeof key, &value) == HF_OK) {
            HF_CHECK(look_at_thing(&key, value));
        }
    } else if (what < 85) {
        (void)hf_cache_visit(in->cache, &key, sizeof key, look_at_thing, &key);
    } else if (what < 92) {
        if (hf_cache_pin(in->cache, &key, sizeof key, NULL) == HF_OK) {
            HF_TRY(hf_yield());
            HF_CHECK(hf_cache_get(in->cache, &key, sizeof key, NULL) == HF_OK); /* a pinned entry stays */
            HF_TRY(hf_cache_unpin(in->cache, &key, sizeof key));
        }
    } else if (what < 97) {
        hf_status status = hf_cache_remove(in->cache, &key, sizeof key);
        HF_CHECK(status == HF_OK || status == HF_ERR_NOT_FOUND || status == HF_ERR_MISUSE);
    } else if (what < 98) {
        sweep_once(in, key % 16);
    } else if (what < 99) {
        hf_cache_trim(in->cache, 4000);
    } else {
        hf_cache_counts counts = {0};
        HF_TRY(hf_cache_stats(in->cache, &counts));
        HF_CHECK(counts.count <= SHARED_COUNT);
    }
    return HF_OK;
}

static hf_status use_all(void *arg)
{
    shared *in = arg;
    uint64_t state = atomic_fetch_add(&in->numbers, 1) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int i = 0; i < in->rounds; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint32_t key = (uint32_t)(state >> 33) % SHARED_KEYS;
        HF_TRY(one_of_all(in, key % 3 == 0 ? key : key / 4, (unsigned)(state >> 20) % 100));
        if (i % 64 == 0) {
            HF_TRY(hf_yield());
        }
    }
    return HF_OK;
}

/* Fibers of all threads and threads of the pool. */
static hf_status share(int rounds, int64_t shards)
{
    shared in = {.rounds = rounds};
    HF_TRY(hf_cache_new(&in.cache, .evict = HF_EVICT_S3FIFO, .count_max = SHARED_COUNT, .shards = shards,
                        .on_evict = shared_evict, .state = &in));
    hf_scope *scope = NULL;
    hf_dispatcher *pool = NULL;
    HF_TRY(hf_pool_new(&pool, .limit = 2));
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 6; i++) {
        HF_TRY(hf_fork(scope, use_all, &in, .on = i < 2 ? pool : NULL));
    }
    HF_TRY(hf_join(scope));
    HF_TRY(hf_scope_close(scope));
    HF_TRY(hf_dispatcher_free(pool));
    hf_cache_counts counts = {0};
    HF_TRY(hf_cache_stats(in.cache, &counts));
    HF_CHECK(counts.evictions == atomic_load(&in.evicted) && counts.pinned == 0);
    HF_CHECK(atomic_load(&in.live) <= (int64_t)counts.count + 2 * 64 * (shards > 1 ? shards : 1) + 200);
    HF_TRY(hf_cache_free(in.cache));
    HF_CHECK(atomic_load(&in.live) == 0);
    return HF_OK;
}

static int share_rounds;

static hf_status share_both(void *arg)
{
    (void)arg;
    HF_TRY(share(share_rounds, 1));
    return share(share_rounds, 4);
}

static void everything_at_once_on_many_threads(void **state)
{
    (void)state;
    share_rounds = 300;
    everywhere("shared S3-FIFO", 20, share_both);
    share_rounds = (int)(20000 / hf_test_scale()) + 1;
    assert_int_equal(hf_run(share_both, NULL, .threads = 4), HF_OK);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static _Atomic(int64_t) blocks_live;
static _Atomic(int64_t) countdown; /* allocations until one fails; 0 = none will */
static atomic_bool has_failed;

static void *allocate(void *state, size_t len, size_t align)
{
    (void)state;
    if (atomic_load(&countdown) > 0 && atomic_fetch_sub(&countdown, 1) == 1) {
        atomic_store(&has_failed, true);
        return NULL;
    }
    void *ptr = NULL;
    if (posix_memalign(&ptr, align < sizeof(void *) ? sizeof(void *) : align, len > 0 ? len : 1) != 0) {
        return NULL;
    }
    atomic_fetch_add(&blocks_live, 1);
    return ptr;
}

static void release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    atomic_fetch_sub(&blocks_live, ptr != NULL);
    free(ptr);
}

static hf_status fill(void)
{
    HF_AUTO(hf_cache_free) hf_cache *cache = NULL;
    HF_TRY(hf_cache_new(&cache, .evict = HF_EVICT_S3FIFO, .count_max = 40, .shards = 2));
    for (uint32_t i = 0; i < 150; i++) {
        uint32_t key = i % 60;
        hf_status status = put_number(cache, key);
        bool is_there = hf_cache_get(cache, &key, sizeof key, NULL) == HF_OK;
        HF_CHECK(is_there || status != HF_OK);
        HF_TRY(status);
    }
    return HF_OK;
}

static hf_status fill_without(void *arg)
{
    atomic_store(&countdown, *(const int64_t *)arg);
    hf_status status = fill();
    atomic_store(&countdown, 0);
    HF_CHECK(status == HF_OK || (status == HF_ERR_NOMEM && atomic_load(&has_failed)));
    return HF_OK;
}

static void every_allocation_may_fail_and_nothing_leaks(void **state)
{
    (void)state;
    int64_t nth = 1;
    for (bool is_past = false; !is_past && hf_checks_failed() == 0; nth++) {
        atomic_store(&has_failed, false);
        assert_int_equal(hf_run(fill_without, &nth, .threads = 1, .allocator = {allocate, release, NULL}), HF_OK);
        assert_int_equal(atomic_load(&blocks_live), 0);
        is_past = !atomic_load(&has_failed);
    }
    print_message("%d allocations failed, one after the other\n", (int)nth - 2);
    assert_true(nth > 150);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(entries_leave_by_the_rules),
        cmocka_unit_test(the_byte_bound_counts_all_that_an_entry_takes),
        cmocka_unit_test(an_entry_is_not_found_after_its_ttl),
        cmocka_unit_test(sweeps_see_every_entry_and_trims_leave_what_they_may),
        cmocka_unit_test(everything_at_once_on_many_threads),
        cmocka_unit_test(every_allocation_may_fail_and_nothing_leaks),
    };
    return hf_test_main("s3fifo", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
