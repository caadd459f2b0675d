/* A cache with S3-FIFO eviction, in shards by hash.
 *
 *                    not a ghost    +-------+  counter > 1  +------+ counter > 0: counter - 1
 *   put of a new key -------------> | small | ------------> | main | <---+
 *        |                          +-------+  counter = 0  +------+ ----+
 *        | a ghost                      | counter <= 1         ^   | counter = 0
 *        +------------------------------|----------------------+   v
 *                                       v                         out
 *                               out, and a ghost
 *
 * A hit only raises the counter of its entry, to at most 3. Entries leave when a put needs room: from the small queue as
 * long as it has its share, a tenth of the bound, else from the main queue. The ghosts are the last that left the small queue,
 * as many as the main queue would have entries if it had its share, nine tenths of all.
 *
 * Readers take no lock (readers.h). They find an entry in the shard's table (slots.h), use its counter and its value, and see
 * neither queues nor ghosts. Writers hold the shard's lock for a few steps. Entries that they take out go to the shard's limbo,
 * and are freed when no reader can see them, some dozens at a time.
 *
 * s3_read.c reads and pins, s3_put.c puts, s3_evict.c takes out, s3_limbo.c frees. This file makes and frees the whole.
 *
 * fiber-U4  After every put: in each shard count <= count_max and bytes <= bytes_max.
 * fiber-U5  An entry in the table is in one of the queues, or parked. Only pinned entries are parked: eviction takes
 *           them out of its way, and they return to the front of their queue when the last pin has gone.
 * fiber-U6  A put that could only succeed by evicting a pinned entry changes nothing and fails with HF_ERR_LIMIT.
 * fiber-U7  The bytes of a shard are the sum of what its entries take. */
#include "fiber/keyed/s3_private.h"

enum {
    SHARD_COUNT_MIN = 8192,    /* fewer shards rather than a bound below this in each: of entries ... */
    SHARD_BYTES_MIN = 8 << 20, /* ... and of bytes */
    INDEX_SHARE = 16,          /* bytes of the table and of the ghosts for one entry */
    MALLOC_HEAD = 8            /* what an allocation takes beside its bytes, which are rounded up to 16 */
};

/* ---- Costs ------------------------------------------------------------------------------------------------------- */

uint64_t hf_cache_hash(const hf_cache *cache, const void *key, size_t key_len)
{
    return hf_s3_hash(cache->seed, key, key_len);
}

static uint64_t allocation(uint64_t len)
{
    return (len + MALLOC_HEAD + 15) & ~UINT64_C(15);
}

uint64_t hf_s3_cost(const hf_cache *cache, size_t key_len, size_t value_len)
{
    return allocation(hf_s3_entry_len(cache, key_len)) + allocation(sizeof(hf_value) + (uint64_t)value_len) +
           INDEX_SHARE;
}

uint64_t hf_s3_cost_max(const hf_s3 *s3)
{
    return s3->shards[s3->shard_mask].bytes_max; /* the last has the least */
}

/* ---- Making and freeing ------------------------------------------------------------------------------------------ */

/* A power of two. */
static uint64_t shards_for(const hf_cache *cache, int64_t option)
{
    uint64_t most = option > 0 ? (uint64_t)option : HF_SHARDS_MAX;
    uint64_t count = 1;
    while (count * 2 <= most && count < HF_SHARDS_MAX && count * 2 <= cache->count_max) {
        if (option == 0 &&
            (cache->count_max / (count * 2) < SHARD_COUNT_MIN || cache->bytes_max / (count * 2) < SHARD_BYTES_MIN)) {
            break;
        }
        count *= 2;
    }
    return count;
}

static uint64_t share(uint64_t bound, uint64_t count, uint64_t index)
{
    return bound == UINT64_MAX ? UINT64_MAX : bound / count + (index < bound % count);
}

static size_t s3_len(uint64_t shard_count)
{
    return sizeof(hf_s3) + (size_t)shard_count * sizeof(hf_s3_shard);
}

static void s3_free(hf_runtime *rt, hf_s3 *s3)
{
    for (uint64_t i = 0; i <= s3->shard_mask; i++) {
        hf_slots_free(rt, atomic_load_explicit(&s3->shards[i].slots, memory_order_relaxed));
        hf_ghosts_free(rt, s3->shards[i].ghosts);
    }
    hf_readers_deinit(&s3->readers, rt);
    rt->allocator.release(rt->allocator.state, s3, s3_len(s3->shard_mask + 1));
}

hf_s3 *hf_s3_new(const hf_cache *cache, int64_t shards)
{
    hf_runtime *rt = cache->rt;
    uint64_t count = shards_for(cache, shards);
    hf_s3 *s3 = rt->allocator.allocate(rt->allocator.state, s3_len(count), 64);
    if (s3 == NULL) {
        return NULL;
    }
    memset(s3, 0, s3_len(count));
    s3->shard_mask = count - 1;
    hf_readers_init(&s3->readers);
    for (uint64_t i = 0; i < count; i++) {
        hf_s3_shard *at = &s3->shards[i];
        at->count_max = share(cache->count_max, count, i);
        at->bytes_max = share(cache->bytes_max, count, i);
        hf_slots *slots = hf_slots_new(rt, HF_SLOTS_LEN_MIN);
        atomic_store_explicit(&at->slots, slots, memory_order_relaxed);
        atomic_store_explicit(&at->slots_len, HF_SLOTS_LEN_MIN, memory_order_relaxed);
        at->ghosts = hf_ghosts_new(rt, 0);
        if (slots == NULL || at->ghosts == NULL) {
            s3_free(rt, s3);
            return NULL;
        }
    }
    return s3;
}

void hf_s3_free(hf_cache *cache)
{
    for (uint64_t i = 0; i <= cache->s3->shard_mask; i++) {
        hf_s3_shard *at = &cache->s3->shards[i];
        hf_s3_entries_free(cache, at->small.first);
        hf_s3_entries_free(cache, at->main.first);
        hf_s3_entries_free(cache, atomic_load(&at->limbo));
        hf_s3_entries_free(cache, at->waiting);
        hf_s3_tables_free(cache, atomic_load(&at->limbo_tables));
        hf_s3_tables_free(cache, at->waiting_tables);
    }
    s3_free(cache->rt, cache->s3);
    cache->s3 = NULL;
}

bool hf_s3_has_pins(hf_s3 *s3)
{
    bool has_pins = false;
    for (uint64_t i = 0; i <= s3->shard_mask; i++) {
        hf_spin_lock(&s3->shards[i].lock);
        has_pins = has_pins || s3->shards[i].pinned_count > 0;
        hf_spin_unlock(&s3->shards[i].lock);
    }
    return has_pins;
}

void hf_s3_counts(hf_s3 *s3, hf_cache_counts *ret_counts)
{
    *ret_counts = (hf_cache_counts){.count = 0};
    hf_readers_counts(&s3->readers, &ret_counts->hits, &ret_counts->misses);
    for (uint64_t i = 0; i <= s3->shard_mask; i++) {
        hf_s3_shard *at = &s3->shards[i];
        hf_spin_lock(&at->lock);
        ret_counts->count += hf_s3_count(at);
        ret_counts->bytes += hf_s3_bytes(at);
        ret_counts->pinned += at->pinned_count;
        ret_counts->hits += at->hits;
        ret_counts->misses += at->misses;
        ret_counts->evictions += at->evictions;
        hf_spin_unlock(&at->lock);
    }
}
