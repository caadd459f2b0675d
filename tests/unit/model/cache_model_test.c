/* Random programs on an S3-FIFO cache against a twin of plain arrays that does the same by the rules:
 *
 *   cache-M1  what is found, what is refused and what is new;
 *   cache-M2  count, bytes and pins after every step, and never more than the bounds;
 *   cache-M3  which entries leave, and in which order;
 *   cache-M4  hits, misses and evictions;
 *   cache-M5  nothing is left allocated; the same seed gives the same trace. */
#include "support/support.h"

#include "base/rng.h"
#include "fiber/keyed/cache.h"

#include <string.h>

enum { KEYS = 12, SHARDS_MAX = 4, LOG_MAX = 4096, STEPS = 250 };
#define NO_BOUND UINT64_MAX

typedef struct item {
    int key;
    size_t len;
    int counter;
    int pins;
    bool is_main;
    int64_t expires;
} item;

typedef struct list {
    item items[KEYS + 1];
    int count;
} list;

/* The lists have their next to leave in front. */
typedef struct twin {
    list small;
    list main;
    list parked; /* pinned, and out of its queue */
    int departures;
    int left[KEYS]; /* departure by which the key left the small queue; -1 = it is not remembered */
    uint64_t count_max;
    uint64_t bytes_max;
    uint64_t evictions;
} twin;

typedef struct evictions {
    int keys[LOG_MAX];
    int count;
} evictions;

static struct world {
    hf_rng rng;
    hf_cache *cache;
    int shard_count;
    bool is_small; /* short keys */
    int64_t ttl;
    uint64_t bytes_least; /* bound of the smallest shard */
    twin twins[SHARDS_MAX];
    evictions seen;     /* by on_evict */
    evictions expected; /* by the twin */
    uint64_t hits;
    uint64_t misses;
} world;

static uint64_t below(uint64_t bound)
{
    return hf_rng_below(&world.rng, bound);
}

static int64_t now(void)
{
    return hf_now(NULL).ns;
}

/* Keys of 1 to 20 bytes. */
static size_t key_of(int key, char *ret_bytes)
{
    size_t len = world.is_small ? 1 : 1 + (size_t)key * 7 % 20;
    memset(ret_bytes, 'a' + key, len);
    return len;
}

static int key_from(const void *bytes)
{
    return *(const char *)bytes - 'a';
}

static twin *twin_of(int key)
{
    char bytes[32];
    size_t len = key_of(key, bytes);
    return &world.twins[hf_cache_hash(world.cache, bytes, len) % (uint64_t)world.shard_count];
}

/* ---- The twin ---------------------------------------------------------------------------------------------------- */

static uint64_t rounded(uint64_t len)
{
    return (len + 8 + 15) / 16 * 16;
}

static uint64_t cost_of(int key, size_t len)
{
    char bytes[32];
    return rounded(24 + key_of(key, bytes) + (world.ttl != 0 ? 8 : 0)) + rounded(16 + len) + 16;
}

static uint64_t bytes_in(const list *l)
{
    uint64_t bytes = 0;
    for (int i = 0; i < l->count; i++) {
        bytes += cost_of(l->items[i].key, l->items[i].len);
    }
    return bytes;
}

static uint64_t count_all(const twin *t)
{
    return (uint64_t)(t->small.count + t->main.count + t->parked.count);
}

static uint64_t bytes_all(const twin *t)
{
    return bytes_in(&t->small) + bytes_in(&t->main) + bytes_in(&t->parked);
}

static item list_take(list *l, int at)
{
    item taken = l->items[at];
    l->count--;
    memmove(&l->items[at], &l->items[at + 1], (size_t)(l->count - at) * sizeof(item));
    return taken;
}

static void list_push(list *l, item pushed)
{
    l->items[l->count++] = pushed;
}

static void list_push_front(list *l, item pushed)
{
    memmove(&l->items[1], &l->items[0], (size_t)l->count * sizeof(item));
    l->items[0] = pushed;
    l->count++;
}

static item *twin_find(twin *t, int key, list **ret_list, int *ret_at)
{
    list *lists[] = {&t->small, &t->main, &t->parked};
    for (size_t i = 0; i < 3; i++) {
        for (int at = 0; at < lists[i]->count; at++) {
            if (lists[i]->items[at].key == key) {
                *ret_list = lists[i];
                *ret_at = at;
                return &lists[i]->items[at];
            }
        }
    }
    return NULL;
}

static bool has_expired(const item *it)
{
    return world.ttl != 0 && now() >= it->expires;
}

static void twin_use(item *it)
{
    it->counter += it->counter < 3;
}

static void twin_evict(twin *t, item gone)
{
    if (!gone.is_main) {
        t->left[gone.key] = t->departures++;
    }
    t->evictions++;
    world.expected.keys[world.expected.count++] = gone.key;
}

/* What is pinned still counts in its queue. */
static bool small_has_share(const twin *t, uint64_t bytes_max, uint64_t count_max)
{
    uint64_t bytes = bytes_in(&t->small);
    uint64_t count = (uint64_t)t->small.count;
    for (int i = 0; i < t->parked.count; i++) {
        if (!t->parked.items[i].is_main) {
            bytes += cost_of(t->parked.items[i].key, t->parked.items[i].len);
            count++;
        }
    }
    return bytes >= bytes_max / 10 || count >= count_max / 10;
}

static bool twin_evict_one(twin *t, uint64_t bytes_max, uint64_t count_max, int held)
{
    while (t->small.count > 0 || t->main.count > 0) {
        bool from_small = t->main.count == 0 || (t->small.count > 0 && small_has_share(t, bytes_max, count_max));
        item first = list_take(from_small ? &t->small : &t->main, 0);
        if (first.pins > 0 || first.key == held) {
            list_push(&t->parked, first);
        } else if (!has_expired(&first) && from_small && first.counter > 1) {
            first.counter = 0;
            first.is_main = true;
            list_push(&t->main, first);
        } else if (!has_expired(&first) && !from_small && first.counter > 0) {
            first.counter--;
            list_push(&t->main, first);
        } else {
            twin_evict(t, first);
            return true;
        }
    }
    return false;
}

static void twin_make_room(twin *t, uint64_t count, uint64_t bytes, int held)
{
    for (bool is_room = false; !is_room;) {
        if (bytes_all(t) + bytes > t->bytes_max) {
            HF_CHECK(twin_evict_one(t, t->bytes_max, NO_BOUND, held));
        } else if (count_all(t) + count > t->count_max) {
            HF_CHECK(twin_evict_one(t, NO_BOUND, t->count_max, held));
        } else {
            is_room = true;
        }
    }
}

static void twin_pinned(const twin *t, int but, uint64_t *ret_count, uint64_t *ret_bytes)
{
    const list *lists[] = {&t->small, &t->main, &t->parked};
    *ret_count = 0;
    *ret_bytes = 0;
    for (size_t i = 0; i < 3; i++) {
        for (int at = 0; at < lists[i]->count; at++) {
            const item *it = &lists[i]->items[at];
            if (it->pins > 0 && it->key != but) {
                ++*ret_count;
                *ret_bytes += cost_of(it->key, it->len);
            }
        }
    }
}

static void twin_unpark(twin *t, int key)
{
    for (int i = 0; i < t->parked.count; i++) {
        if (t->parked.items[i].key == key && t->parked.items[i].pins == 0) {
            item back = list_take(&t->parked, i);
            list_push_front(back.is_main ? &t->main : &t->small, back);
            return;
        }
    }
}

static hf_status twin_put(int key, size_t len, bool *ret_is_new)
{
    twin *t = twin_of(key);
    uint64_t cost = cost_of(key, len);
    uint64_t pinned_count = 0;
    uint64_t pinned_bytes = 0;
    twin_pinned(t, key, &pinned_count, &pinned_bytes);
    if (cost > world.bytes_least) {
        return HF_ERR_TOO_BIG;
    }
    if (pinned_count >= t->count_max || pinned_bytes + cost > t->bytes_max) {
        return HF_ERR_LIMIT;
    }
    int64_t expires = now() + world.ttl;
    list *in = NULL;
    int at = 0;
    item *old = twin_find(t, key, &in, &at);
    *ret_is_new = old == NULL || (old->pins == 0 && has_expired(old));
    if (!*ret_is_new) {
        old->len = len;
        old->expires = expires;
        twin_use(old);
        twin_make_room(t, 0, 0, key);
        twin_unpark(t, key);
        return HF_OK;
    }
    if (old != NULL) {
        (void)list_take(in, at);
    }
    int window = (int)(count_all(t) - count_all(t) / 10);
    bool is_ghost = t->left[key] >= 0 && t->departures - 1 - t->left[key] < window;
    t->left[key] = -1;
    twin_make_room(t, 1, cost, -1);
    item fresh = {.key = key, .len = len, .is_main = is_ghost, .expires = expires};
    list_push(is_ghost ? &t->main : &t->small, fresh);
    return HF_OK;
}

static item *twin_get(int key)
{
    list *in = NULL;
    int at = 0;
    item *found = twin_find(twin_of(key), key, &in, &at);
    return found != NULL && !has_expired(found) ? found : NULL;
}

static void twin_remove(int key)
{
    list *in = NULL;
    int at = 0;
    if (twin_find(twin_of(key), key, &in, &at) != NULL) {
        (void)list_take(in, at);
    }
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

static void on_evict(void *state, const void *key, size_t key_len, hf_value *value)
{
    (void)state;
    HF_CHECK(key_len > 0 && value != NULL);
    world.seen.keys[world.seen.count++] = key_from(key);
}

static void put(int key)
{
    static const char BYTES[200] = {0};
    char bytes[32];
    size_t key_len = key_of(key, bytes);
    size_t len = below(4) == 0 ? below(200) : below(20);
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_CHECK(hf_value_copy(BYTES, len, &value) == HF_OK);
    bool is_new = false;
    bool is_new_there = false;
    hf_status status = hf_cache_put(world.cache, bytes, key_len, value, &is_new);
    hf_status expected = twin_put(key, len, &is_new_there);
    HF_CHECK_SAY(status == expected, "cache-M1 put of %d: %s, not %s", key, hf_status_name(status),
                 hf_status_name(expected));
    HF_CHECK_SAY(status != HF_OK || is_new == is_new_there, "cache-M1 put of %d: new %d", key, is_new);
}

static void get(int key)
{
    char bytes[32];
    size_t key_len = key_of(key, bytes);
    item *expected = twin_get(key);
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    bool is_hit = hf_cache_get(world.cache, bytes, key_len, &value) == HF_OK;
    HF_CHECK_SAY(is_hit == (expected != NULL), "cache-M1 get of %d: %d", key, is_hit);
    if (is_hit && expected != NULL) {
        HF_CHECK_SAY(hf_value_len(value) == expected->len, "cache-M1 get of %d: %zu bytes", key, hf_value_len(value));
        twin_use(expected);
    }
    world.hits += is_hit;
    world.misses += !is_hit;
}

/* A value of an odd length is a hit. */
static bool look(void *arg, hf_value *value)
{
    *(size_t *)arg = hf_value_len(value);
    return hf_value_len(value) % 2 == 1;
}

static void visit(int key)
{
    char bytes[32];
    size_t key_len = key_of(key, bytes);
    item *expected = twin_get(key);
    size_t len = 0;
    bool is_hit = hf_cache_visit(world.cache, bytes, key_len, look, &len);
    HF_CHECK_SAY(is_hit == (expected != NULL && expected->len % 2 == 1), "cache-M1 visit of %d: %d", key, is_hit);
    HF_CHECK(expected == NULL || expected->len == len);
    if (is_hit && expected != NULL) {
        twin_use(expected);
    }
    world.hits += is_hit;
    world.misses += !is_hit;
}

static void pin(int key)
{
    char bytes[32];
    size_t key_len = key_of(key, bytes);
    item *expected = twin_get(key);
    bool is_hit = hf_cache_pin(world.cache, bytes, key_len, NULL) == HF_OK;
    HF_CHECK_SAY(is_hit == (expected != NULL), "cache-M1 pin of %d: %d", key, is_hit);
    if (expected != NULL) {
        expected->pins++;
        twin_use(expected);
    }
    world.hits += is_hit;
    world.misses += !is_hit;
}

static void unpin(int key)
{
    char bytes[32];
    size_t key_len = key_of(key, bytes);
    list *in = NULL;
    int at = 0;
    item *expected = twin_find(twin_of(key), key, &in, &at);
    if (expected != NULL && expected->pins > 0) {
        HF_CHECK(hf_cache_unpin(world.cache, bytes, key_len) == HF_OK);
        expected->pins--;
        twin_unpark(twin_of(key), key);
    }
}

static void remove_one(int key)
{
    char bytes[32];
    size_t key_len = key_of(key, bytes);
    list *in = NULL;
    int at = 0;
    item *expected = twin_find(twin_of(key), key, &in, &at);
    hf_status status = HF_ERR_NOT_FOUND;
    if (expected != NULL) {
        status = expected->pins > 0 ? HF_ERR_MISUSE : (has_expired(expected) ? HF_ERR_NOT_FOUND : HF_OK);
        if (expected->pins == 0) {
            twin_remove(key);
        }
    }
    HF_CHECK_SAY(hf_cache_remove(world.cache, bytes, key_len) == status, "cache-M1 remove of %d", key);
}

static bool is_gone(void *arg, const void *key, size_t key_len, hf_value *value)
{
    (void)key_len;
    (void)value;
    return key_from(key) % 3 == *(int *)arg;
}

static void sweep(void)
{
    int rest = (int)below(3);
    uint64_t cursor = 0;
    size_t count = 0;
    size_t swept = 0;
    while (hf_cache_sweep(world.cache, &cursor, 1 + below(8), is_gone, &rest, &count)) {
        swept += count;
    }
    swept += count;
    for (int key = rest; key < KEYS; key += 3) {
        list *in = NULL;
        int at = 0;
        item *found = twin_find(twin_of(key), key, &in, &at);
        if (found != NULL && found->pins == 0) {
            (void)list_take(in, at);
            swept--;
        }
    }
    HF_CHECK_SAY(swept == 0, "cache-M1 a sweep removed others");
}

static void trim(void)
{
    twin *t = &world.twins[0];
    if (world.shard_count == 1) { /* the shares of several change while they are trimmed */
        uint64_t bytes = below(bytes_all(t) + 1);
        hf_cache_trim(world.cache, bytes);
        while (bytes_all(t) > bytes && twin_evict_one(t, bytes_all(t), NO_BOUND, -1)) {
        }
    }
}

static void compare(void)
{
    hf_cache_counts counts = {0};
    hf_cache_counts sum = {.hits = world.hits, .misses = world.misses};
    HF_CHECK(hf_cache_stats(world.cache, &counts) == HF_OK);
    for (int i = 0; i < world.shard_count; i++) {
        twin *t = &world.twins[i];
        uint64_t pinned = 0;
        uint64_t bytes = 0;
        twin_pinned(t, -1, &pinned, &bytes);
        sum.count += count_all(t);
        sum.bytes += bytes_all(t);
        sum.pinned += pinned;
        sum.evictions += t->evictions;
        HF_CHECK_SAY(count_all(t) <= t->count_max && bytes_all(t) <= t->bytes_max, "cache-M2 over the bound");
    }
    HF_CHECK_SAY(counts.count == sum.count, "cache-M2 %d entries, not %d", (int)counts.count, (int)sum.count);
    HF_CHECK_SAY(counts.bytes == sum.bytes, "cache-M2 %d bytes, not %d", (int)counts.bytes, (int)sum.bytes);
    HF_CHECK_SAY(counts.pinned == sum.pinned, "cache-M2 %d pinned, not %d", (int)counts.pinned, (int)sum.pinned);
    HF_CHECK_SAY(world.seen.count == world.expected.count &&
                     memcmp(world.seen.keys, world.expected.keys, (size_t)world.seen.count * sizeof(int)) == 0,
                 "cache-M3 others were evicted, or in another order");
    HF_CHECK_SAY(counts.hits == sum.hits && counts.misses == sum.misses && counts.evictions == sum.evictions,
                 "cache-M4 %d hits, %d misses, %d evictions", (int)counts.hits, (int)counts.misses,
                 (int)counts.evictions);
}

static void one_step(void)
{
    int key = (int)(below(3) == 0 ? below(KEYS) : below(KEYS) * below(KEYS) / KEYS); /* some keys more than others */
    uint64_t what = below(100);
    if (what < 40) {
        put(key);
    } else if (what < 65) {
        get(key);
    } else if (what < 75) {
        visit(key);
    } else if (what < 80) {
        pin(key);
    } else if (what < 88) {
        unpin(key);
    } else if (what < 92) {
        remove_one(key);
    } else if (what < 94) {
        sweep();
    } else if (what < 96) {
        trim();
    } else if (world.ttl != 0) {
        HF_IGNORE(hf_sleep(hf_nanoseconds((int64_t)below((uint64_t)world.ttl))));
    }
}

/* Two keys with the same ghost are one to the cache, and two to the twin. */
static bool has_twins_among_ghosts(void)
{
    for (int i = 0; i < KEYS; i++) {
        for (int j = 0; j < i; j++) {
            char a[32];
            char b[32];
            uint64_t x = hf_cache_hash(world.cache, a, key_of(i, a));
            uint64_t y = hf_cache_hash(world.cache, b, key_of(j, b));
            if (((x ^ y) >> 20 & 0xfffff) <= 1) {
                return true;
            }
        }
    }
    return false;
}

static void set_bounds(int64_t count_max, int64_t bytes_max)
{
    uint64_t n = (uint64_t)world.shard_count;
    for (uint64_t i = 0; i < n; i++) {
        twin *t = &world.twins[i];
        t->count_max = count_max > 0 ? (uint64_t)count_max / n + (i < (uint64_t)count_max % n) : NO_BOUND;
        t->bytes_max = (uint64_t)bytes_max / n + (i < (uint64_t)bytes_max % n);
        memset(t->left, 0xff, sizeof t->left);
        world.bytes_least = t->bytes_max;
    }
}

static hf_status program(void *arg)
{
    (void)arg;
    world.shard_count = below(3) > 0 ? 1 : SHARDS_MAX;
    world.is_small = below(2) == 0;
    world.ttl = below(4) == 0 ? 1000000 : 0;
    int64_t count_max = below(2) == 0 ? HF_UNLIMITED : 4 + (int64_t)below(8);
    int64_t bytes_max = world.shard_count * (int64_t)(200 + below(1200));
    HF_TRY(hf_cache_new(&world.cache, .evict = HF_EVICT_S3FIFO, .count_max = count_max, .bytes_max = bytes_max,
                        .shards = world.shard_count, .ttl = hf_nanoseconds(world.ttl), .on_evict = on_evict));
    set_bounds(count_max, bytes_max);
    for (int i = 0; i < STEPS && !has_twins_among_ghosts() && hf_checks_failed() == 0; i++) {
        one_step();
        compare();
    }
    for (int key = 0; key < KEYS; key++) {
        list *in = NULL;
        int at = 0;
        char bytes[32];
        size_t key_len = key_of(key, bytes);
        item *found = twin_find(twin_of(key), key, &in, &at);
        for (; found != NULL && found->pins > 0; found->pins--) {
            HF_CHECK(hf_cache_free(world.cache) == HF_ERR_MISUSE);
            HF_CHECK(hf_cache_unpin(world.cache, bytes, key_len) == HF_OK);
        }
    }
    return hf_cache_free(world.cache);
}

static void one_seed(uint64_t seed)
{
    for (int round = 0; round < (seed % 20 == 0 ? 2 : 1); round++) {
        static uint64_t before;
        uint64_t hash = 0;
        memset(&world, 0, sizeof world);
        world.rng.state = hf_hash_mix(83, seed);
        HF_CHECK(hf_sim_run(seed, 1, program, NULL, &hash) == HF_OK);
        HF_CHECK_SAY(round == 0 || hash == before, "cache-M5 the same seed gave another trace");
        before = hash;
    }
}

static void the_cache_does_what_its_twin_says(void **state)
{
    (void)state;
    hf_each_seed("S3-FIFO caches", 20000, one_seed);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {cmocka_unit_test(the_cache_does_what_its_twin_says)};
    return hf_test_main("cache_model", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
