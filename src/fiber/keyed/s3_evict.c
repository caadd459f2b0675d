/* Entries leave an S3-FIFO cache: by eviction, by removal, by a sweep. */
#include "fiber/keyed/s3_private.h"
#include "fiber/keyed/s3_queue.h"

enum { TRIM_PORTION = 64 /* evictions of a trim under one hold of the lock */ };

void hf_s3_take_out(hf_cache *cache, hf_s3_shard *at, hf_cached *entry, uint64_t place)
{
    hf_assert(entry->pins == 0 && (entry->flags & HF_CACHED_PARKED) == 0); /* fiber-U5 */
    hf_s3_unlink(hf_s3_queue_of(at, entry), entry);
    uint64_t cost = hf_s3_cost_of(cache, entry);
    hf_s3_count_out(hf_s3_queue_of(at, entry), HF_CANARY(HF_BUG_BYTES_DRIFT) ? cost - 16 : cost);
    at->used -= hf_slots_remove(hf_s3_slots(at), place);
}

static void evict(hf_cache *cache, hf_s3_shard *at, hf_cached *entry, hf_s3_gone *gone)
{
    uint64_t hash = hf_s3_hash(cache->seed, entry->key, hf_cached_key_len(entry));
    uint64_t place = 0;
    hf_cached *found = hf_slots_find_at(hf_s3_slots(at), hash, entry->key, hf_cached_key_len(entry), &place);
    hf_assert(found == entry); /* fiber-U5 */
    if ((entry->flags & HF_CACHED_MAIN) == 0) {
        hf_ghosts_add(at->ghosts, hash, at->departures++);
    }
    hf_s3_take_out(cache, at, entry, place);
    at->evictions++;
    hf_s3_chain_add(&gone->evicted, entry);
}

static bool has_share(const hf_s3_queue *of, uint64_t bytes_max, uint64_t count_max)
{
    return of->bytes > 0 && (of->bytes >= bytes_max / 10 || of->count >= count_max / 10);
}

/* The first of a queue: it is evicted, or moves on. Returns whether it was evicted. */
static bool step(hf_cache *cache, hf_s3_shard *at, hf_s3_queue *from, int64_t now, hf_s3_gone *gone)
{
    hf_cached *entry = from->first;
    uint8_t counter = atomic_load_explicit(&entry->counter, memory_order_relaxed);
    if (entry->pins > 0) {
        hf_s3_unlink(from, entry);
        entry->flags |= HF_CACHED_PARKED;
    } else if (hf_s3_is_expired(cache, entry, now)) {
        evict(cache, at, entry, gone);
        return true;
    } else if (from == &at->small && counter > 1) {
        uint64_t cost = hf_s3_cost_of(cache, entry);
        hf_s3_unlink(from, entry);
        hf_s3_count_out(from, cost);
        entry->flags |= HF_CACHED_MAIN;
        atomic_store_explicit(&entry->counter, 0, memory_order_relaxed);
        hf_s3_push_back(&at->main, entry);
        hf_s3_count_in(&at->main, cost);
    } else if (from == &at->main && counter > 0) {
        hf_s3_unlink(from, entry);
        atomic_store_explicit(&entry->counter, (uint8_t)(counter - 1), memory_order_relaxed);
        hf_s3_push_back(from, entry);
    } else {
        evict(cache, at, entry, gone);
        return true;
    }
    return false;
}

bool hf_s3_evict_one(hf_cache *cache, hf_s3_shard *at, uint64_t bytes_max, uint64_t count_max, int64_t now,
                     hf_s3_gone *gone)
{
    while (at->small.first != NULL || at->main.first != NULL) {
        bool from_small =
            at->main.first == NULL || (at->small.first != NULL && has_share(&at->small, bytes_max, count_max));
        if (step(cache, at, from_small ? &at->small : &at->main, now, gone)) {
            return true;
        }
    }
    return false;
}

void hf_s3_make_room(hf_cache *cache, hf_s3_shard *at, uint64_t count, uint64_t bytes, int64_t now, hf_s3_gone *gone)
{
    bool has_evicted = true;
    while (has_evicted) {
        if (hf_s3_bytes(at) > at->bytes_max - bytes) {
            has_evicted = hf_s3_evict_one(cache, at, at->bytes_max, UINT64_MAX, now, gone);
        } else if (hf_s3_count(at) > at->count_max - count) {
            has_evicted = hf_s3_evict_one(cache, at, UINT64_MAX, at->count_max, now, gone);
        } else {
            break;
        }
    }
    hf_assert(has_evicted); /* fiber-U6: may_hold said so */
    hf_assert(hf_s3_count(at) + count <= at->count_max && hf_s3_bytes(at) + bytes <= at->bytes_max); /* fiber-U4 */
}

/* ---- Removal, sweep, trim ---------------------------------------------------------------------------------------- */

hf_status hf_s3_remove(hf_cache *cache, const void *key, size_t key_len, hf_s3_gone *gone)
{
    uint64_t hash = hf_s3_hash(cache->seed, key, key_len);
    hf_s3_shard *at = hf_s3_shard_of(cache->s3, hash);
    int64_t now = hf_cache_now(cache);
    hf_status status = HF_OK;
    hf_spin_lock(&at->lock);
    uint64_t place = 0;
    hf_cached *found = hf_slots_find_at(hf_s3_slots(at), hash, key, key_len, &place);
    if (found == NULL) {
        status = HF_ERR_NOT_FOUND;
    } else if (found->pins > 0) {
        status = HF_ERR_MISUSE;
    } else {
        status = hf_s3_is_expired(cache, found, now) ? HF_ERR_NOT_FOUND : HF_OK;
        hf_s3_take_out(cache, at, found, place);
        hf_s3_chain_add(&gone->removed, found);
        gone->home = at;
    }
    hf_spin_unlock(&at->lock);
    return status;
}

/* The cursor is the shard and a tag: a table may be replaced between two calls, but entries are in the order of their
 * tags in each. A portion ends at an empty slot, in front of which are all entries with a home in front of it. */
bool hf_s3_sweep(hf_cache *cache, uint64_t *cursor, size_t portion, hf_cache_test is_gone, void *arg, size_t *ret_count,
                 hf_s3_gone *gone)
{
    uint64_t index = *cursor >> 32;
    uint64_t tag = *cursor & UINT32_MAX;
    *ret_count = 0;
    if (index > cache->s3->shard_mask) {
        return false;
    }
    hf_s3_shard *at = &cache->s3->shards[index];
    gone->home = at;
    hf_spin_lock(&at->lock);
    hf_slots *slots = hf_s3_slots(at);
    uint64_t place = hf_slots_home(slots, tag);
    bool is_behind = false; /* the end was passed: this is what hangs over it */
    for (size_t seen = 0;; seen++) {
        uint64_t slot = atomic_load_explicit(&slots->at[place], memory_order_relaxed);
        if (slot == HF_SLOT_EMPTY && (is_behind || seen >= portion)) {
            break;
        }
        if (slot > HF_SLOT_GONE) {
            hf_cached *entry = hf_slot_entry(slot);
            if (entry->pins == 0 && (entry->flags & HF_CACHED_PARKED) == 0 &&
                is_gone(arg, entry->key, hf_cached_key_len(entry), hf_cached_value(entry))) {
                hf_s3_take_out(cache, at, entry, place);
                hf_s3_chain_add(&gone->removed, entry);
                ++*ret_count;
            }
        }
        place = hf_slots_next(slots, place);
        is_behind = is_behind || place == 0;
    }
    /* The first tag whose home is behind `place`. */
    uint64_t next =
        is_behind ? UINT64_C(1) << HF_TAG_BITS : (((place + 1) << HF_TAG_BITS) + slots->len - 1) / slots->len;
    hf_spin_unlock(&at->lock);
    bool is_last = next >> HF_TAG_BITS != 0;
    *cursor = is_last ? (index + 1) << 32 : index << 32 | next;
    return !is_last || index < cache->s3->shard_mask;
}

bool hf_s3_trim(hf_cache *cache, uint64_t bytes, hf_s3_gone *gone)
{
    hf_cache_counts counts;
    hf_s3_counts(cache->s3, &counts);
    int64_t now = hf_cache_now(cache);
    bool has_more = false;
    for (uint64_t i = 0; i <= cache->s3->shard_mask && counts.bytes > bytes; i++) {
        hf_s3_shard *at = &cache->s3->shards[i];
        hf_spin_lock(&at->lock);
        /* Each shard gives in proportion to what it has. */
        uint64_t left = (uint64_t)((hf_wide)bytes * hf_s3_bytes(at) / counts.bytes);
        bool has_evicted = true;
        for (int n = 0; n < TRIM_PORTION && has_evicted && hf_s3_bytes(at) > left; n++) {
            has_evicted = hf_s3_evict_one(cache, at, hf_s3_bytes(at), UINT64_MAX, now, gone);
        }
        has_more = has_more || (has_evicted && hf_s3_bytes(at) > left);
        hf_spin_unlock(&at->lock);
    }
    return has_more;
}
