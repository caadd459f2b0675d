/* By key: locks, single-flight, and a bounded cache. Keys are bytes; they are copied. */
#ifndef HOLDFAST_KEYED_H
#define HOLDFAST_KEYED_H

#include <holdfast/scope.h>
#include <holdfast/wait.h>

/* A shared result: bytes or an object with a count of its holders. */
typedef struct hf_value hf_value;

/* A lock per key. Entries are counted by their users; only idle entries are bounded. */
typedef struct hf_keylock hf_keylock;
typedef struct hf_key_guard hf_key_guard;

typedef struct hf_keylock_options {
    size_t size; /* set by the macro */
    const char *name;
    hf_runtime *runtime; /* needed on a plain thread only */
    int64_t idle_max;    /* unused entries that are kept, the oldest go first; 1000, HF_OFF = none, HF_UNLIMITED */
} hf_keylock_options;

/* Single-flight: concurrent calls for one key share one run of the work. */
typedef struct hf_flight hf_flight;
/* The shared work. Runs as a fiber of the flight's scope. Gives a value to share (may stay NULL). */
typedef hf_status (*hf_flight_body)(void *arg, hf_value **ret_value);

typedef struct hf_flight_options {
    size_t size; /* set by the macro */
    const char *name;
    hf_scope *scope; /* where the work runs; must stay open as long as the flight; required */
    bool detach;     /* the work goes on when the last waiter has left; default: it is canceled */
} hf_flight_options;

/* A bounded map from keys to values, with eviction and pins. */
typedef struct hf_cache hf_cache;

/* Which entry leaves when a new one needs room. */
typedef enum hf_evict {
    HF_EVICT_LRU, /* the least recently used one, exactly; every call takes the cache's lock */
    /* One that was not used again soon after it came, else the oldest of those that were not used lately. Entries that are
     * read once, as by a scan, do not drive out the others. A get that finds its entry takes no lock. The cache's own
     * reference to a value that has left may be released a little later: with one of the next puts or removals, or by
     * hf_cache_free. */
    HF_EVICT_S3FIFO
} hf_evict;

typedef struct hf_cache_options {
    size_t size; /* set by the macro */
    const char *name;
    hf_runtime *runtime; /* needed on a plain thread only */
    int64_t count_max;   /* entries; LRU: 100, S3-FIFO: no bound; HF_UNLIMITED */
    /* LRU: sum of the lengths of keys and values; no bound. S3-FIFO: sum of what the entries take, with their headers and
     * their share of the index; 64 MiB. HF_UNLIMITED */
    int64_t bytes_max;
    /* Called when an entry is evicted, but not when it is replaced or removed. No locks are held; it must not wait. May
     * be NULL. */
    void (*on_evict)(void *state, const void *key, size_t key_len, hf_value *value);
    void *state;
    hf_evict evict;
    hf_span ttl; /* an entry is not found any more when this has passed since its put; 0 or HF_SPAN_UNLIMITED = never */
    /* S3-FIFO: parts that change side by side, a power of two up to 64. Each has its part of the bounds, and keys go to
     * them by their hash. 0 = one for each 8 MiB and 8,192 entries of the bounds. */
    int64_t shards;
} hf_cache_options;

typedef struct hf_cache_counts {
    uint64_t count;     /* entries now */
    uint64_t bytes;     /* of their keys and values; S3-FIFO: all that they take */
    uint64_t pinned;    /* entries that are pinned now */
    uint64_t hits;      /* since the cache was made: calls of get and pin that found the entry */
    uint64_t misses;    /* calls that did not */
    uint64_t evictions; /* entries that left to make room */
} hf_cache_counts;

HF_BEGIN_DECLS

/* Takes `data`, also on failure; `release` (may be NULL) is called with it when the last reference is released. One
 * reference is the caller's. */
HF_API HF_MUST_USE hf_status hf_value_new(void *data, size_t len, void (*release)(void *data), hf_value **ret_value);
/* The same with a copy of the bytes. */
HF_API HF_MUST_USE hf_status hf_value_copy(const void *data, size_t len, hf_value **ret_value);
HF_API hf_value *hf_value_ref(hf_value *value);
HF_API void hf_value_unref(hf_value *value); /* accepts NULL */
HF_API void *hf_value_data(const hf_value *value);
HF_API size_t hf_value_len(const hf_value *value);

HF_API HF_MUST_USE hf_status hf_keylock_new_with(hf_keylock **ret_keylock, const hf_keylock_options *options);
HF_API hf_status hf_keylock_free(hf_keylock *keylock); /* HF_ERR_MISUSE while a key is held or waited for */
/* FIFO per key. Fails: HF_ERR_CANCELED, HF_ERR_TIMEOUT, HF_ERR_NOMEM, HF_ERR_MISUSE (the caller holds it already). */
HF_API HF_MUST_USE hf_status hf_keylock_lock_with(hf_keylock *keylock, const void *key, size_t key_len,
                                                  hf_key_guard **ret_guard, const hf_wait_options *options);
/* Never waits. Fails: HF_ERR_AGAIN: the key is held; HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_keylock_try_lock(hf_keylock *keylock, const void *key, size_t key_len,
                                                 hf_key_guard **ret_guard);
/* Only the fiber or thread that locked it may call this, else HF_ERR_MISUSE. */
HF_API hf_status hf_key_unlock(hf_key_guard *guard);
HF_API size_t hf_keylock_count(hf_keylock *keylock); /* entries now: held, waited for and idle */

HF_API HF_MUST_USE hf_status hf_flight_new_with(hf_flight **ret_flight, const hf_flight_options *options);
HF_API hf_status hf_flight_free(hf_flight *flight);
/* Joins the flight of `key`, or starts one that runs body(arg). All waiters get the same value, failure or
 * cancellation. A canceled waiter leaves and the others go on waiting. When the last one leaves, the work is
 * canceled and the key is free at once. `arg` must stay valid until the work has ended, which may be after a
 * canceled caller has left: let it live as long as the flight's scope. `*ret_value` (may be NULL) holds a reference. */
HF_API HF_MUST_USE hf_status hf_flight_run_with(hf_flight *flight, const void *key, size_t key_len, hf_flight_body body,
                                                void *arg, hf_value **ret_value, const hf_wait_options *options);
HF_API size_t hf_flight_count(hf_flight *flight); /* keys in flight now */

HF_API HF_MUST_USE hf_status hf_cache_new_with(hf_cache **ret_cache, const hf_cache_options *options);
HF_API hf_status hf_cache_free(hf_cache *cache);
/* Puts a value (takes its own reference) under key, or in place of the one that is there. `*ret_is_new` (may be NULL) is
 * true only for a new entry. Fails: HF_ERR_TOO_BIG: the entry is larger than bytes_max, or a shard's part of it;
 * HF_ERR_LIMIT: there is room only if a pinned entry is dropped; HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_cache_put(hf_cache *cache, const void *key, size_t key_len, hf_value *value,
                                          bool *ret_is_new);
/* Gives the value with a reference, and counts as a use of the entry. Fails: HF_ERR_NOT_FOUND: no such key. */
HF_API HF_MUST_USE hf_status hf_cache_get(hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value);
/* As get, but the entry cannot be evicted until hf_cache_unpin. Pins count. Fails: also HF_ERR_LIMIT: an S3-FIFO entry
 * has 65,535 pins already. */
HF_API HF_MUST_USE hf_status hf_cache_pin(hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value);
HF_API hf_status hf_cache_unpin(hf_cache *cache, const void *key, size_t key_len);
HF_API HF_MUST_USE hf_status hf_cache_remove(hf_cache *cache, const void *key, size_t key_len);
/* As hf_runtime_stats. Fails: HF_ERR_MISUSE without a cache or a place for the counts. */
HF_API HF_MUST_USE hf_status hf_cache_stats(hf_cache *cache, hf_cache_counts *ret_counts);

HF_END_DECLS

HF_AUTO_DEFINE(hf_value_unref, hf_value)
HF_AUTO_DEFINE(hf_keylock_free, hf_keylock)
HF_AUTO_DEFINE(hf_key_unlock, hf_key_guard)
HF_AUTO_DEFINE(hf_flight_free, hf_flight)
HF_AUTO_DEFINE(hf_cache_free, hf_cache)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_keylock_new(...) HF_KEYLOCK_NEW_(__VA_ARGS__, .size = sizeof(hf_keylock_options))
#define HF_KEYLOCK_NEW_(ret_keylock, ...) \
    hf_keylock_new_with((ret_keylock), &(hf_keylock_options){__VA_ARGS__})
#define hf_keylock_lock(...) HF_KEYLOCK_LOCK_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_KEYLOCK_LOCK_(keylock, key, key_len, ret_guard, ...) \
    hf_keylock_lock_with((keylock), (key), (key_len), (ret_guard), &(hf_wait_options){__VA_ARGS__})
#define hf_flight_new(...) HF_FLIGHT_NEW_(__VA_ARGS__, .size = sizeof(hf_flight_options))
#define HF_FLIGHT_NEW_(ret_flight, ...) \
    hf_flight_new_with((ret_flight), &(hf_flight_options){__VA_ARGS__})
#define hf_flight_run(...) HF_FLIGHT_RUN_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_FLIGHT_RUN_(flight, key, key_len, body, arg, ret_value, ...) \
    hf_flight_run_with((flight), (key), (key_len), (body), (arg), (ret_value), &(hf_wait_options){__VA_ARGS__})
#define hf_cache_new(...) HF_CACHE_NEW_(__VA_ARGS__, .size = sizeof(hf_cache_options))
#define HF_CACHE_NEW_(ret_cache, ...) \
    hf_cache_new_with((ret_cache), &(hf_cache_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_keylock_new(hf_keylock **ret_keylock,
    hf_keylock_options options = hf_keylock_options())
{
    options.size = sizeof options;
    return hf_keylock_new_with(ret_keylock, &options);
}
static inline HF_MUST_USE hf_status
hf_keylock_lock(hf_keylock *keylock, const void *key, size_t key_len, hf_key_guard **ret_guard,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_keylock_lock_with(keylock, key, key_len, ret_guard, &options);
}
static inline HF_MUST_USE hf_status
hf_flight_new(hf_flight **ret_flight,
    hf_flight_options options = hf_flight_options())
{
    options.size = sizeof options;
    return hf_flight_new_with(ret_flight, &options);
}
static inline HF_MUST_USE hf_status
hf_flight_run(hf_flight *flight, const void *key, size_t key_len, hf_flight_body body, void *arg, hf_value **ret_value,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_flight_run_with(flight, key, key_len, body, arg, ret_value, &options);
}
static inline HF_MUST_USE hf_status
hf_cache_new(hf_cache **ret_cache,
    hf_cache_options options = hf_cache_options())
{
    options.size = sizeof options;
    return hf_cache_new_with(ret_cache, &options);
}
#endif
/* clang-format on */

#endif
