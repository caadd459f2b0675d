/* Reading an S3-FIFO cache by callers who are inside the library, and pins. */
#include "fiber/keyed/s3_read.h"
#include "fiber/keyed/s3_queue.h"

/* For threads without a seat: while the lock is held nothing leaves the table. */
static HF_NOINLINE bool get_locked(hf_cache *cache, uint64_t hash, const void *key, size_t key_len, hf_s3_look look,
                                   void *arg, hf_value **ret_value)
{
    hf_s3_shard *at = hf_s3_shard_of(cache->s3, hash);
    hf_spin_lock(&at->lock);
    hf_cached *found = hf_slots_find_slow(atomic_load_explicit(&at->slots, memory_order_relaxed), hash, key, key_len);
    bool is_hit = hf_s3_look_at(cache, found, look, arg, ret_value);
    at->hits += is_hit;
    at->misses += !is_hit;
    hf_spin_unlock(&at->lock);
    return is_hit;
}

static bool get(hf_cache *cache, const void *key, size_t key_len, hf_s3_look look, void *arg, hf_value **ret_value)
{
    uint64_t hash = hf_s3_hash(cache->seed, key, key_len);
    hf_seat *seat = hf_readers_seat(&cache->s3->readers, cache->rt);
    if (HF_UNLIKELY(seat == NULL)) {
        return get_locked(cache, hash, key, key_len, look, arg, ret_value);
    }
    bool is_hit = hf_s3_read(cache, seat, hash, key, key_len, look, arg, ret_value);
    if (!is_hit) {
        hf_seat_count(&seat->misses);
    }
    return is_hit;
}

bool hf_s3_get(hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value)
{
    return get(cache, key, key_len, NULL, NULL, ret_value);
}

bool hf_s3_visit(hf_cache *cache, const void *key, size_t key_len, bool (*look)(void *arg, hf_value *value), void *arg)
{
    return get(cache, key, key_len, look, arg, NULL);
}

/* ---- Pins -------------------------------------------------------------------------------------------------------- */

hf_status hf_s3_pin(hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value)
{
    uint64_t hash = hf_s3_hash(cache->seed, key, key_len);
    hf_s3_shard *at = hf_s3_shard_of(cache->s3, hash);
    int64_t now = hf_cache_now(cache);
    hf_status status = HF_OK;
    hf_spin_lock(&at->lock);
    hf_cached *found = hf_slots_find_slow(hf_s3_slots(at), hash, key, key_len);
    if (found == NULL || hf_s3_is_expired(cache, found, now)) {
        at->misses++;
        status = HF_ERR_NOT_FOUND;
    } else if (found->pins == UINT16_MAX) {
        status = HF_ERR_LIMIT;
    } else {
        at->hits++;
        hf_cached_use(found);
        if (found->pins++ == 0) {
            at->pinned_count++;
            at->pinned_bytes += hf_s3_cost_of(cache, found);
        }
        if (ret_value != NULL) {
            *ret_value = hf_value_hold(hf_cached_value(found));
        }
    }
    hf_spin_unlock(&at->lock);
    return status;
}

bool hf_s3_unpin(hf_cache *cache, const void *key, size_t key_len)
{
    uint64_t hash = hf_s3_hash(cache->seed, key, key_len);
    hf_s3_shard *at = hf_s3_shard_of(cache->s3, hash);
    hf_spin_lock(&at->lock);
    hf_cached *found = hf_slots_find_slow(hf_s3_slots(at), hash, key, key_len);
    bool is_pinned = found != NULL && found->pins > 0;
    if (is_pinned && --found->pins == 0) {
        hf_assert(at->pinned_count > 0 && at->pinned_bytes >= hf_s3_cost_of(cache, found));
        at->pinned_count--;
        at->pinned_bytes -= hf_s3_cost_of(cache, found);
        if ((found->flags & HF_CACHED_PARKED) != 0) { /* fiber-U5 */
            found->flags &= (uint8_t)~HF_CACHED_PARKED;
            hf_s3_link(hf_s3_queue_of(at, found), found, NULL, hf_s3_queue_of(at, found)->first);
        }
    }
    hf_spin_unlock(&at->lock);
    return is_pinned;
}
