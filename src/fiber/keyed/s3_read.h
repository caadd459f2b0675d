/* Reading an S3-FIFO cache without a lock. Inline, because a hit is short: a hash, the seat of the thread, a few slots,
 * the key, and the reference of the value. */
#ifndef HF_FIBER_S3_READ_H
#define HF_FIBER_S3_READ_H

#include "fiber/keyed/s3_private.h"

typedef bool (*hf_s3_look)(void *arg, hf_value *value);

static inline bool hf_s3_look_at(const hf_cache *cache, hf_cached *found, hf_s3_look look, void *arg,
                                 hf_value **ret_value)
{
    if (found == NULL || hf_s3_is_expired(cache, found, hf_cache_now(cache))) {
        return false;
    }
    hf_value *value = hf_cached_value(found);
    if (look != NULL) {
        if (!look(arg, value)) {
            return false;
        }
    } else if (ret_value != NULL) {
        *ret_value = hf_value_hold(value);
    }
    hf_cached_use(found);
    return true;
}

/* Finds the key, in the seat of the calling thread. A hit is counted; a miss is not. */
static inline __attribute__((always_inline)) bool hf_s3_read(hf_cache *cache, hf_seat *seat, uint64_t hash,
                                                             const void *key, size_t key_len, hf_s3_look look,
                                                             void *arg, hf_value **ret_value)
{
    hf_s3 *s3 = cache->s3;
    uint64_t was = hf_reading_begin(&s3->readers, seat);
    hf_s3_shard *at = hf_s3_shard_of(s3, hash);
    hf_slots *slots = atomic_load_explicit(&at->slots, memory_order_acquire);
    uint64_t len = atomic_load_explicit(&at->slots_len, memory_order_relaxed);
    hf_cached *found = hf_slots_find(slots, len, hash, key, key_len);
    bool is_hit = hf_s3_look_at(cache, found, look, arg, ret_value);
    hf_reading_end(seat, was);
    if (HF_LIKELY(is_hit)) {
        hf_seat_count(&seat->hits);
    }
    return is_hit;
}

/* A hit by a caller who has not entered the library. That is not needed: a hit does not wait, cannot fail, and uses
 * nothing of the fiber, only the seat of its thread. If the thread loses its scheduler in the middle of it (fiber-L1),
 * the fiber goes on here until its next verb. False: there is no hit, or the caller is in a place where verbs are
 * refused. Nothing was counted then, and the caller enters the library and looks again. */
static inline __attribute__((always_inline)) bool hf_s3_hit(hf_cache *cache, const void *key, size_t key_len,
                                                            hf_s3_look look, void *arg, hf_value **ret_value)
{
    const hf_fiber *self = (const hf_fiber *)(const void *)hf_self_get();
    if (HF_UNLIKELY(cache == NULL || !cache->is_quick || key == NULL || key_len > HF_KEY_LEN_MAX ||
                    (self != NULL && self->kind == HF_FIBER_MEMBER) || hf_rt_is_forked(cache->rt))) {
        return false;
    }
    hf_seat *seat = hf_readers_seat(&cache->s3->readers, cache->rt);
    if (HF_UNLIKELY(seat == NULL)) {
        return false;
    }
    return hf_s3_read(cache, seat, hf_s3_hash(cache->seed, key, key_len), key, key_len, look, arg, ret_value);
}

#endif
