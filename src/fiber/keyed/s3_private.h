/* The parts of an S3-FIFO cache, for the files s3_*.c; s3fifo.c explains how it works. */
#ifndef HF_FIBER_S3_PRIVATE_H
#define HF_FIBER_S3_PRIVATE_H

#include "fiber/keyed/cache_private.h"
#include "fiber/keyed/ghosts.h"
#include "fiber/keyed/readers.h"
#include "fiber/keyed/s3_hash.h"
#include "fiber/keyed/slots.h"
#include "fiber/sync/value.h"

typedef struct hf_s3_queue {
    hf_cached *first; /* the next to leave */
    hf_cached *last;
    uint64_t count; /* parked entries included, and in bytes, too */
    uint64_t bytes;
} hf_s3_queue;

typedef struct hf_s3_shard {
    _Alignas(64) _Atomic(hf_slots *) slots; /* replaced under the lock */
    _Atomic(uint64_t) slots_len;            /* its length; for a moment that of the table before or after it */
    _Alignas(64) hf_spin lock;              /* guards everything else, but the limbo */
    uint64_t used;                          /* slots that are not empty */
    hf_s3_queue small;
    hf_s3_queue main;
    uint64_t pinned_count;
    uint64_t pinned_bytes;
    uint64_t count_max;
    uint64_t bytes_max;
    hf_ghosts *ghosts;
    uint64_t departures; /* entries that became ghosts */
    uint64_t hits;       /* of calls that held the lock */
    uint64_t misses;
    uint64_t evictions;
    /* Entries and tables that are in no table any more. Anybody adds; who has set is_reclaiming takes all of them. */
    _Alignas(64) _Atomic(hf_cached *) limbo;
    _Atomic(hf_slots *) limbo_tables;
    _Atomic(uint64_t) limbo_count;
    _Atomic(uint64_t) limbo_bytes;
    atomic_bool is_reclaiming;
    hf_cached *waiting; /* taken out of limbo: freed when all readers have left that began before `target` */
    hf_slots *waiting_tables;
    uint64_t target;
} hf_s3_shard;

struct hf_s3 {
    hf_readers readers;
    uint64_t shard_mask; /* number of shards - 1; the low bits of a hash choose one */
    hf_s3_shard shards[];
};

static inline size_t hf_s3_entry_len(const hf_cache *cache, size_t key_len)
{
    return sizeof(hf_cached) + key_len + (cache->ttl_ns != 0 ? sizeof(int64_t) : 0);
}

static inline uint64_t hf_s3_cost_of(const hf_cache *cache, const hf_cached *entry)
{
    return hf_s3_cost(cache, hf_cached_key_len(entry), hf_cached_value(entry)->len);
}

static inline hf_s3_shard *hf_s3_shard_of(hf_s3 *s3, uint64_t hash)
{
    return &s3->shards[hash & s3->shard_mask];
}

static inline hf_slots *hf_s3_slots(hf_s3_shard *at)
{
    return atomic_load_explicit(&at->slots, memory_order_relaxed);
}

static inline uint64_t hf_s3_count(const hf_s3_shard *at)
{
    return at->small.count + at->main.count;
}

static inline uint64_t hf_s3_bytes(const hf_s3_shard *at)
{
    return at->small.bytes + at->main.bytes;
}

static inline bool hf_s3_is_expired(const hf_cache *cache, const hf_cached *entry, int64_t now)
{
    if (HF_LIKELY(cache->ttl_ns == 0)) {
        return false;
    }
    int64_t expires = 0;
    memcpy(&expires, entry->key + hf_cached_key_len(entry), sizeof expires);
    return now >= expires;
}

/* Two readers at once may count as one: the counter is a hint. */
static inline void hf_cached_use(hf_cached *entry)
{
    uint8_t counter = atomic_load_explicit(&entry->counter, memory_order_relaxed);
    if (counter < HF_COUNTER_MAX) {
        atomic_store_explicit(&entry->counter, (uint8_t)(counter + 1), memory_order_relaxed);
    }
}

/* ---- s3_evict.c: entries leave; under the shard's lock ----------------------------------------------------------- */

/* The entry leaves the table and its queue. */
void hf_s3_take_out(hf_cache *cache, hf_s3_shard *at, hf_cached *entry, uint64_t place);
/* Evicts one entry; false = all that are left are pinned. The share of the small queue is of the bound that counts. */
bool hf_s3_evict_one(hf_cache *cache, hf_s3_shard *at, uint64_t bytes_max, uint64_t count_max, int64_t now,
                     hf_s3_gone *gone);
/* Evicts until there is room for `count` more entries with `bytes`. */
void hf_s3_make_room(hf_cache *cache, hf_s3_shard *at, uint64_t count, uint64_t bytes, int64_t now, hf_s3_gone *gone);

/* ---- s3_limbo.c: outside the library, because letting a value go may run the user's code ------------------------- */

void hf_s3_entry_free(hf_cache *cache, hf_cached *entry);
void hf_s3_entries_free(hf_cache *cache, hf_cached *first); /* and all that are linked behind it; accepts NULL */
void hf_s3_tables_free(hf_cache *cache, hf_slots *first);   /* the same */

#endif
