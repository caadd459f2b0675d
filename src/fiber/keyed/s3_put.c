/* Putting into an S3-FIFO cache. The entry, a longer table and more room for ghosts are allocated before the lock is
 * taken, or between two holds of it. */
#include "fiber/keyed/s3_private.h"
#include "fiber/keyed/s3_queue.h"

typedef struct putting {
    uint64_t hash;
    hf_cached *fresh; /* NULL when it was used */
    uint64_t cost;
    int64_t now;
    bool is_new;
    bool without_ghosts; /* there was no memory for them */
    hf_slots *slots;     /* a table for the shard, if it asked for one */
    hf_ghosts *ghosts;   /* the same of ghosts */
    uint64_t wanted;     /* what it asks for: slots, or ghosts */
} putting;

typedef enum put_result { PUT_DONE, PUT_LIMIT, PUT_WANTS_SLOTS, PUT_WANTS_GHOSTS } put_result;

static hf_cached *entry_new(hf_cache *cache, const void *key, size_t key_len, hf_value *value, int64_t now)
{
    size_t len = hf_s3_entry_len(cache, key_len);
    hf_cached *fresh = cache->rt->allocator.allocate(cache->rt->allocator.state, len, 16);
    if (fresh != NULL) {
        memset(fresh, 0, sizeof *fresh);
        uint64_t address = (uint64_t)(uintptr_t)hf_value_hold(value);
        hf_assert(address >> 48 == 0);
        fresh->value_and_len = (uint64_t)key_len << 48 | address;
        if (key_len > 0) {
            memcpy(fresh->key, key, key_len);
        }
        if (cache->ttl_ns != 0) {
            int64_t expires = now > INT64_MAX - cache->ttl_ns ? INT64_MAX : now + cache->ttl_ns;
            memcpy(fresh->key + key_len, &expires, sizeof expires);
        }
    }
    return fresh;
}

/* Whether the bounds can be kept by evicting everything that is not pinned, but not the entry itself (fiber-U6). */
static bool may_hold(const hf_cache *cache, const hf_s3_shard *at, const hf_cached *old, uint64_t cost)
{
    uint64_t count = at->pinned_count;
    uint64_t bytes = at->pinned_bytes;
    if (old != NULL && old->pins > 0) {
        count--;
        bytes -= hf_s3_cost_of(cache, old);
    }
    return cost <= at->bytes_max && count < at->count_max && bytes <= at->bytes_max - cost;
}

static bool is_full(const hf_slots *slots, uint64_t used)
{
    return (used + 1) * 5 > slots->len * 4;
}

/* Ghosts are remembered for as many entries as the main queue has when it has its share. */
static uint64_t window_of(const hf_s3_shard *at)
{
    return hf_s3_count(at) - hf_s3_count(at) / 10;
}

static void grow(hf_s3_shard *at, putting *put, hf_s3_gone *gone)
{
    hf_slots *old = hf_s3_slots(at);
    hf_slots_copy(old, put->slots);
    atomic_store_explicit(&at->slots, put->slots, memory_order_release);
    atomic_store_explicit(&at->slots_len, put->slots->len, memory_order_relaxed);
    at->used = hf_s3_count(at);
    put->slots = NULL;
    old->next = gone->tables;
    gone->tables = old;
}

/* The shard gets a table with a free place, and room for the ghosts that a put may make; PUT_DONE = it has them. */
static put_result prepare(hf_s3_shard *at, putting *put, hf_s3_gone *gone)
{
    if (is_full(hf_s3_slots(at), at->used)) {
        if (put->slots == NULL || is_full(put->slots, hf_s3_count(at))) {
            put->wanted = hf_s3_count(at) + hf_s3_count(at) / 16 * 7 + HF_SLOTS_LEN_MIN; /* some 70 % are used then */
            return PUT_WANTS_SLOTS;
        }
        grow(at, put, gone);
    }
    bool leaves = hf_s3_count(at) >= at->count_max || hf_s3_bytes(at) > at->bytes_max - put->cost;
    if (leaves && !put->without_ghosts && !hf_ghosts_fit(at->ghosts, window_of(at))) {
        if (put->ghosts == NULL || !hf_ghosts_fit(put->ghosts, window_of(at))) {
            put->wanted = window_of(at);
            return PUT_WANTS_GHOSTS;
        }
        hf_ghosts *old = at->ghosts;
        hf_ghosts_copy(old, put->ghosts, at->departures);
        at->ghosts = put->ghosts;
        put->ghosts = old; /* freed by the caller */
    }
    return PUT_DONE;
}

/* The new entry takes the place of the old one, its counter and its pins. It is not evicted by this: it is pinned
 * meanwhile. */
static void replace(hf_cache *cache, hf_s3_shard *at, hf_cached *old, uint64_t place, putting *put, hf_s3_gone *gone)
{
    hf_cached *fresh = put->fresh;
    hf_s3_queue *of = hf_s3_queue_of(at, old);
    uint64_t cost = hf_s3_cost_of(cache, old);
    fresh->flags = old->flags;
    fresh->pins = old->pins;
    atomic_store_explicit(&fresh->counter, atomic_load_explicit(&old->counter, memory_order_relaxed),
                          memory_order_relaxed);
    hf_cached_use(fresh);
    if ((old->flags & HF_CACHED_PARKED) == 0) {
        hf_s3_link(of, fresh, hf_cached_prev(old), hf_cached_next(old));
    }
    hf_s3_count_out(of, cost);
    hf_s3_count_in(of, put->cost);
    if (old->pins > 0) {
        at->pinned_bytes += put->cost - cost;
    }
    hf_slots_replace(hf_s3_slots(at), place, fresh);
    hf_s3_chain_add(&gone->removed, old);
    put->fresh = NULL;
    uint16_t pins = fresh->pins;
    fresh->pins = pins > 0 ? pins : 1;
    hf_s3_make_room(cache, at, 0, 0, put->now, gone);
    fresh->pins = pins;
    if (pins == 0 && (fresh->flags & HF_CACHED_PARKED) != 0) {
        fresh->flags &= (uint8_t)~HF_CACHED_PARKED;
        hf_s3_link(of, fresh, NULL, of->first);
    }
}

static void insert(hf_cache *cache, hf_s3_shard *at, putting *put, hf_s3_gone *gone)
{
    hf_cached *fresh = put->fresh;
    bool is_ghost = at->departures > 0 && hf_ghosts_take(at->ghosts, put->hash, at->departures - 1, window_of(at));
    hf_s3_make_room(cache, at, 1, put->cost, put->now, gone);
    fresh->flags = is_ghost ? HF_CACHED_MAIN : 0;
    hf_s3_push_back(hf_s3_queue_of(at, fresh), fresh);
    hf_s3_count_in(hf_s3_queue_of(at, fresh), put->cost);
    at->used += hf_slots_add(hf_s3_slots(at), hf_slots_tag(put->hash), fresh);
    put->fresh = NULL;
    put->is_new = true;
}

static put_result put_locked(hf_cache *cache, hf_s3_shard *at, putting *put, hf_s3_gone *gone)
{
    uint64_t place = 0;
    size_t key_len = hf_cached_key_len(put->fresh);
    hf_cached *old = hf_slots_find_at(hf_s3_slots(at), put->hash, put->fresh->key, key_len, &place);
    if (!may_hold(cache, at, old, put->cost)) {
        return PUT_LIMIT;
    }
    if (old != NULL && (old->pins > 0 || !hf_s3_is_expired(cache, old, put->now))) {
        replace(cache, at, old, place, put, gone);
        return PUT_DONE;
    }
    put_result result = prepare(at, put, gone);
    if (result != PUT_DONE) {
        return result;
    }
    if (old != NULL) { /* expired; `place` may be one of another table by now */
        hf_cached *found = hf_slots_find_at(hf_s3_slots(at), put->hash, put->fresh->key, key_len, &place);
        hf_assert(found == old);
        hf_s3_take_out(cache, at, old, place);
        hf_s3_chain_add(&gone->removed, old);
    }
    insert(cache, at, put, gone);
    return PUT_DONE;
}

hf_status hf_s3_put(hf_cache *cache, const void *key, size_t key_len, hf_value *value, bool *ret_is_new,
                    hf_s3_gone *gone)
{
    putting put = {.hash = hf_s3_hash(cache->seed, key, key_len), .now = hf_cache_now(cache)};
    put.cost = hf_s3_cost(cache, key_len, value->len);
    put.fresh = entry_new(cache, key, key_len, value, put.now);
    if (put.fresh == NULL) {
        return HF_ERR_NOMEM;
    }
    hf_s3_shard *at = hf_s3_shard_of(cache->s3, put.hash);
    hf_status status = HF_OK;
    for (bool is_done = false; !is_done;) {
        hf_spin_lock(&at->lock);
        put_result result = put_locked(cache, at, &put, gone);
        hf_spin_unlock(&at->lock);
        is_done = result == PUT_DONE || result == PUT_LIMIT;
        if (result == PUT_LIMIT) {
            status = HF_ERR_LIMIT;
        } else if (result == PUT_WANTS_SLOTS) {
            hf_slots_free(cache->rt, put.slots);
            put.slots = hf_slots_new(cache->rt, put.wanted);
            if (put.slots == NULL) {
                status = HF_ERR_NOMEM;
                is_done = true;
            }
        } else if (result == PUT_WANTS_GHOSTS) {
            hf_ghosts_free(cache->rt, put.ghosts);
            put.ghosts = hf_ghosts_new(cache->rt, put.wanted);
            put.without_ghosts = put.ghosts == NULL;
        }
    }
    hf_slots_free(cache->rt, put.slots);
    hf_ghosts_free(cache->rt, put.ghosts);
    gone->unused = put.fresh;
    gone->home = at;
    *ret_is_new = put.is_new;
    return status;
}
