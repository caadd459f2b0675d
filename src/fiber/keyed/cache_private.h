/* The struct of hf_cache, and the functions of an S3-FIFO cache (s3fifo.c) that the verbs in cache.c call. */
#ifndef HF_FIBER_CACHE_PRIVATE_H
#define HF_FIBER_CACHE_PRIVATE_H

#include "fiber/keyed/cache.h"
#include "fiber/keyed/keys.h"
#include "fiber/sync/sync.h"

enum { HF_SHARDS_MAX = 64 };

typedef struct hf_s3 hf_s3;

struct hf_cache {
    /* What a hit reads: */
    hf_s3 *s3;      /* its entries, if it evicts by S3-FIFO; NULL: by LRU */
    uint64_t seed;  /* of the hashes */
    int64_t ttl_ns; /* 0 = entries do not expire */
    hf_runtime *rt;
    bool is_quick; /* S3-FIFO, and not simulated: a hit need not enter the library (s3_read.h) */
    /* Of LRU: */
    hf_spin lock;
    hf_keys keys;
    hf_list order; /* least recently used first */
    uint64_t bytes;
    uint64_t pinned_count;
    uint64_t pinned_bytes;
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions;
    /* Both: */
    uint64_t count_max;
    uint64_t bytes_max;
    const char *name;
    void (*on_evict)(void *state, const void *key, size_t key_len, hf_value *value);
    void *state;
};

static inline int64_t hf_cache_now(const hf_cache *cache)
{
    return cache->ttl_ns != 0 ? hf_rt_now(cache->rt).ns : 0;
}

/* Inside the library, but the last: hf_s3_free. NULL = out of memory. */
hf_s3 *hf_s3_new(const hf_cache *cache, int64_t shards);
void hf_s3_free(hf_cache *cache);
bool hf_s3_has_pins(hf_s3 *s3);
void hf_s3_counts(hf_s3 *s3, hf_cache_counts *ret_counts);
/* What an entry takes, in bytes, and the most that one may take. */
uint64_t hf_s3_cost(const hf_cache *cache, size_t key_len, size_t value_len);
uint64_t hf_s3_cost_max(const hf_s3 *s3);

/* A reference of the value goes to `*ret_value` (may be NULL). Returns whether it was a hit. */
bool hf_s3_get(hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value);
bool hf_s3_visit(hf_cache *cache, const void *key, size_t key_len, bool (*look)(void *arg, hf_value *value), void *arg);
/* HF_ERR_NOT_FOUND, HF_ERR_LIMIT: it has as many pins as an entry can have. */
hf_status hf_s3_pin(hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value);
bool hf_s3_unpin(hf_cache *cache, const void *key, size_t key_len); /* false = it is not pinned */

typedef struct hf_s3_chain {
    struct hf_cached *first;
    struct hf_cached *last;
} hf_s3_chain;

/* What has left a cache, for the time after the lock was released. */
typedef struct hf_s3_gone {
    hf_s3_chain evicted;      /* on_evict is told */
    hf_s3_chain removed;      /* replaced, removed or expired */
    struct hf_cached *unused; /* was never in the cache */
    struct hf_slots *tables;  /* of the shard `home` */
    struct hf_s3_shard *home; /* the shard that was changed; NULL = none, or several */
} hf_s3_gone;

/* These leave what is gone in `*gone`. HF_ERR_LIMIT, HF_ERR_NOMEM. */
hf_status hf_s3_put(hf_cache *cache, const void *key, size_t key_len, hf_value *value, bool *ret_is_new,
                    hf_s3_gone *gone);
/* HF_ERR_NOT_FOUND, HF_ERR_MISUSE: it is pinned. */
hf_status hf_s3_remove(hf_cache *cache, const void *key, size_t key_len, hf_s3_gone *gone);
/* Both do a portion and return whether there is more. */
bool hf_s3_sweep(hf_cache *cache, uint64_t *cursor, size_t portion, hf_cache_test is_gone, void *arg, size_t *ret_count,
                 hf_s3_gone *gone);
bool hf_s3_trim(hf_cache *cache, uint64_t bytes, hf_s3_gone *gone);
/* Outside the library: calls on_evict, and frees what no reader can see any more. */
void hf_s3_clean_up(hf_cache *cache, hf_s3_gone *gone);
/* Outside the library: frees everything that no reader can see any more. */
void hf_s3_flush(hf_cache *cache);

#endif
