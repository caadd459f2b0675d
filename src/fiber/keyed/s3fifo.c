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
 * neither queues nor ghosts. Writers hold the shard's lock for a few steps. What they take out goes to the shard's limbo,
 * and is freed when no reader can see it, some dozens at a time.
 *
 * fiber-U4  After every put: in each shard count <= count_max and bytes <= bytes_max.
 * fiber-U5  An entry in the table is in one of the queues, or parked. Only pinned entries are parked: eviction takes
 *           them out of its way, and they return to the front of their queue when the last pin has gone.
 * fiber-U6  A put that could only succeed by evicting a pinned entry changes nothing and fails with HF_ERR_LIMIT.
 * fiber-U7  The bytes of a shard are the sum of what its entries take. */
#include "fiber/keyed/cache_private.h"
#include "fiber/keyed/ghosts.h"
#include "fiber/keyed/readers.h"
#include "fiber/keyed/slots.h"
#include "fiber/sync/value.h"

enum {
    SHARD_COUNT_MIN = 8192,       /* fewer shards rather than a bound below this in each: of entries ... */
    SHARD_BYTES_MIN = 8 << 20,    /* ... and of bytes */
    INDEX_SHARE = 16,             /* bytes of the table and of the ghosts for one entry */
    MALLOC_HEAD = 8,              /* what an allocation takes beside its bytes, which are rounded up to 16 */
    LIMBO_COUNT_MAX = 64,         /* entries that wait for readers before these are looked at ... */
    LIMBO_BYTES_MIN = 64 << 10,   /* ... or bytes, in a small shard ... */
    LIMBO_BYTES_MAX = 1024 << 10, /* ... and in a large one */
    TRIM_PORTION = 64             /* evictions of a trim under one hold of the lock */
};

typedef struct queue {
    hf_cached *first; /* the next to leave */
    hf_cached *last;
    uint64_t count; /* parked entries included, and in bytes, too */
    uint64_t bytes;
} queue;

typedef struct hf_s3_shard {
    _Alignas(64) _Atomic(hf_slots *) slots; /* replaced under the lock */
    _Alignas(64) hf_spin lock;              /* guards everything else, but the limbo */
    uint64_t used;                          /* slots that are not empty */
    queue small;
    queue main;
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
} shard;

struct hf_s3 {
    hf_readers readers;
    uint64_t shard_mask; /* number of shards - 1; the low bits of a hash choose one */
    shard shards[];
};

/* ---- Hashes and costs -------------------------------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 wide;

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t word_at(const unsigned char *at, size_t len)
{
    uint64_t word = 0;
    memcpy(&word, at, len);
    return word;
}

/* Two multiplications for keys of up to 16 bytes, by the method of wyhash. */
static inline uint64_t hash_of(uint64_t seed, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t a = 0;
    uint64_t b = 0;
    if (HF_LIKELY(len >= 8)) {
        size_t left = len;
        for (; left > 16; left -= 16, at += 16) {
            seed = fold(word_at(at, 8) ^ UINT64_C(0xa0761d6478bd642f), word_at(at + 8, 8) ^ seed);
        }
        at = (const unsigned char *)bytes + len;
        a = word_at(at - (left > 8 ? left : 8), 8);
        b = word_at(at - 8, 8);
    } else if (len >= 4) {
        a = word_at(at, 4);
        b = word_at(at + len - 4, 4);
    } else if (len > 0) {
        a = (uint64_t)at[0] << 16 | (uint64_t)at[len / 2] << 8 | at[len - 1];
    }
    return fold(UINT64_C(0xe7037ed1a0b428db) ^ len, fold(a ^ UINT64_C(0x8ebc6af09c88c6e3), b ^ seed));
}

uint64_t hf_cache_hash(const hf_cache *cache, const void *key, size_t key_len)
{
    return hash_of(cache->seed, key, key_len);
}

static uint64_t allocation(uint64_t len)
{
    return (len + MALLOC_HEAD + 15) & ~UINT64_C(15);
}

static size_t entry_len(const hf_cache *cache, size_t key_len)
{
    return sizeof(hf_cached) + key_len + (cache->ttl_ns != 0 ? sizeof(int64_t) : 0);
}

uint64_t hf_s3_cost(const hf_cache *cache, size_t key_len, size_t value_len)
{
    return allocation(entry_len(cache, key_len)) + allocation(sizeof(hf_value) + (uint64_t)value_len) + INDEX_SHARE;
}

static uint64_t cost_of(const hf_cache *cache, const hf_cached *entry)
{
    return hf_s3_cost(cache, hf_cached_key_len(entry), hf_cached_value(entry)->len);
}

static inline shard *shard_of(hf_s3 *s3, uint64_t hash)
{
    return &s3->shards[hash & s3->shard_mask];
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
    return sizeof(hf_s3) + (size_t)shard_count * sizeof(shard);
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
        shard *at = &s3->shards[i];
        at->count_max = share(cache->count_max, count, i);
        at->bytes_max = share(cache->bytes_max, count, i);
        hf_slots *slots = hf_slots_new(rt, HF_SLOTS_LEN_MIN);
        atomic_store_explicit(&at->slots, slots, memory_order_relaxed);
        at->ghosts = hf_ghosts_new(rt, 0);
        if (slots == NULL || at->ghosts == NULL) {
            s3_free(rt, s3);
            return NULL;
        }
    }
    return s3;
}

/* Outside the library: letting a value go may run the user's code. */
static void entry_free(hf_cache *cache, hf_cached *entry)
{
    hf_value_unref(hf_cached_value(entry));
    hf_rt_free(cache->rt, entry, entry_len(cache, hf_cached_key_len(entry)));
}

static void chain_free(hf_cache *cache, hf_cached *first)
{
    while (first != NULL) {
        hf_cached *next = hf_cached_next(first);
        entry_free(cache, first);
        first = next;
    }
}

static void tables_free(hf_cache *cache, hf_slots *first)
{
    while (first != NULL) {
        hf_slots *next = first->next;
        hf_slots_free(cache->rt, first);
        first = next;
    }
}

void hf_s3_free(hf_cache *cache)
{
    for (uint64_t i = 0; i <= cache->s3->shard_mask; i++) {
        shard *at = &cache->s3->shards[i];
        chain_free(cache, at->small.first);
        chain_free(cache, at->main.first);
        chain_free(cache, atomic_load(&at->limbo));
        chain_free(cache, at->waiting);
        tables_free(cache, atomic_load(&at->limbo_tables));
        tables_free(cache, at->waiting_tables);
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

static uint64_t count_of(const shard *at)
{
    return at->small.count + at->main.count;
}

static uint64_t bytes_of(const shard *at)
{
    return at->small.bytes + at->main.bytes;
}

void hf_s3_counts(hf_s3 *s3, hf_cache_counts *ret_counts)
{
    *ret_counts = (hf_cache_counts){.count = 0};
    hf_readers_counts(&s3->readers, &ret_counts->hits, &ret_counts->misses);
    for (uint64_t i = 0; i <= s3->shard_mask; i++) {
        shard *at = &s3->shards[i];
        hf_spin_lock(&at->lock);
        ret_counts->count += count_of(at);
        ret_counts->bytes += bytes_of(at);
        ret_counts->pinned += at->pinned_count;
        ret_counts->hits += at->hits;
        ret_counts->misses += at->misses;
        ret_counts->evictions += at->evictions;
        hf_spin_unlock(&at->lock);
    }
}

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

static queue *queue_of(shard *at, const hf_cached *entry)
{
    return (entry->flags & HF_CACHED_MAIN) != 0 ? &at->main : &at->small;
}

/* The neighbours of a place in a queue come to know the entry that takes it; NULL = they become neighbours. */
static void relink(queue *of, hf_cached *prev, hf_cached *next, hf_cached *left, hf_cached *right)
{
    if (prev != NULL) {
        hf_cached_set_next(prev, left);
    } else {
        of->first = left;
    }
    if (next != NULL) {
        hf_cached_set_prev(next, right);
    } else {
        of->last = right;
    }
}

static void link_between(queue *of, hf_cached *entry, hf_cached *prev, hf_cached *next)
{
    hf_cached_set_prev(entry, prev);
    hf_cached_set_next(entry, next);
    relink(of, prev, next, entry, entry);
}

static void unlink_entry(queue *of, hf_cached *entry)
{
    hf_cached *prev = hf_cached_prev(entry);
    hf_cached *next = hf_cached_next(entry);
    hf_assert(prev != NULL || of->first == entry);
    hf_assert(next != NULL || of->last == entry);
    relink(of, prev, next, next, prev);
}

static void push_back(queue *of, hf_cached *entry)
{
    link_between(of, entry, of->last, NULL);
}

static void count_in(queue *of, uint64_t cost)
{
    of->count++;
    of->bytes += cost;
}

static void count_out(queue *of, uint64_t cost)
{
    hf_assert(of->count > 0 && of->bytes >= cost); /* fiber-U7 */
    of->count--;
    of->bytes -= cost;
}

/* In the order in which they left. */
static void chain(hf_s3_chain *gone, hf_cached *entry)
{
    hf_cached_set_next(entry, NULL);
    if (gone->last != NULL) {
        hf_cached_set_next(gone->last, entry);
    } else {
        gone->first = entry;
    }
    gone->last = entry;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static bool is_expired(const hf_cache *cache, const hf_cached *entry, int64_t now)
{
    if (HF_LIKELY(cache->ttl_ns == 0)) {
        return false;
    }
    int64_t expires = 0;
    memcpy(&expires, entry->key + hf_cached_key_len(entry), sizeof expires);
    return now >= expires;
}

/* Two readers at once may count as one: the counter is a hint. */
static inline void use(hf_cached *entry)
{
    uint8_t counter = atomic_load_explicit(&entry->counter, memory_order_relaxed);
    if (counter < HF_COUNTER_MAX) {
        atomic_store_explicit(&entry->counter, (uint8_t)(counter + 1), memory_order_relaxed);
    }
}

static inline bool look_at(const hf_cache *cache, hf_cached *found, bool (*look)(void *arg, hf_value *value), void *arg,
                           hf_value **ret_value)
{
    if (found == NULL || is_expired(cache, found, hf_cache_now(cache))) {
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
    use(found);
    return true;
}

/* For threads without a seat: while the lock is held nothing leaves the table. */
static HF_NOINLINE bool get_locked(hf_cache *cache, uint64_t hash, const void *key, size_t key_len,
                                   bool (*look)(void *arg, hf_value *value), void *arg, hf_value **ret_value)
{
    shard *at = shard_of(cache->s3, hash);
    hf_spin_lock(&at->lock);
    hf_cached *found = hf_slots_find(atomic_load_explicit(&at->slots, memory_order_relaxed), hash, key, key_len, NULL);
    bool is_hit = look_at(cache, found, look, arg, ret_value);
    at->hits += is_hit;
    at->misses += !is_hit;
    hf_spin_unlock(&at->lock);
    return is_hit;
}

bool hf_s3_get(hf_cache *cache, const void *key, size_t key_len, bool (*look)(void *arg, hf_value *value), void *arg,
               hf_value **ret_value)
{
    hf_s3 *s3 = cache->s3;
    uint64_t hash = hash_of(cache->seed, key, key_len);
    hf_seat *seat = hf_readers_seat(&s3->readers, cache->rt);
    if (HF_UNLIKELY(seat == NULL)) {
        return get_locked(cache, hash, key, key_len, look, arg, ret_value);
    }
    uint64_t was = hf_reading_begin(&s3->readers, seat);
    hf_slots *slots = atomic_load_explicit(&shard_of(s3, hash)->slots, memory_order_acquire);
    hf_cached *found = hf_slots_find(slots, hash, key, key_len, NULL);
    bool is_hit = look_at(cache, found, look, arg, ret_value);
    hf_reading_end(seat, was);
    hf_seat_count(is_hit ? &seat->hits : &seat->misses);
    return is_hit;
}

/* ---- Leaving ----------------------------------------------------------------------------------------------------- */

static hf_slots *slots_of(shard *at)
{
    return atomic_load_explicit(&at->slots, memory_order_relaxed);
}

/* The entry leaves the table and its queue. */
static void take_out(hf_cache *cache, shard *at, hf_cached *entry, uint64_t place)
{
    hf_assert(entry->pins == 0 && (entry->flags & HF_CACHED_PARKED) == 0); /* fiber-U5 */
    unlink_entry(queue_of(at, entry), entry);
    uint64_t cost = cost_of(cache, entry);
    count_out(queue_of(at, entry), HF_CANARY(HF_BUG_BYTES_DRIFT) ? cost - 16 : cost);
    at->used -= hf_slots_remove(slots_of(at), place);
}

static void evict(hf_cache *cache, shard *at, hf_cached *entry, hf_s3_gone *gone)
{
    uint64_t hash = hash_of(cache->seed, entry->key, hf_cached_key_len(entry));
    uint64_t place = 0;
    hf_cached *found = hf_slots_find(slots_of(at), hash, entry->key, hf_cached_key_len(entry), &place);
    hf_assert(found == entry); /* fiber-U5 */
    if ((entry->flags & HF_CACHED_MAIN) == 0) {
        hf_ghosts_add(at->ghosts, hash, at->departures++);
    }
    take_out(cache, at, entry, place);
    at->evictions++;
    chain(&gone->evicted, entry);
}

static bool has_share(const queue *of, uint64_t bytes_max, uint64_t count_max)
{
    return of->bytes > 0 && (of->bytes >= bytes_max / 10 || of->count >= count_max / 10);
}

/* The first of a queue: it is evicted, or moves on. Returns whether it was evicted. */
static bool step(hf_cache *cache, shard *at, queue *from, int64_t now, hf_s3_gone *gone)
{
    hf_cached *entry = from->first;
    uint8_t counter = atomic_load_explicit(&entry->counter, memory_order_relaxed);
    if (entry->pins > 0) {
        unlink_entry(from, entry);
        entry->flags |= HF_CACHED_PARKED;
    } else if (is_expired(cache, entry, now)) {
        evict(cache, at, entry, gone);
        return true;
    } else if (from == &at->small && counter > 1) {
        uint64_t cost = cost_of(cache, entry);
        unlink_entry(from, entry);
        count_out(from, cost);
        entry->flags |= HF_CACHED_MAIN;
        atomic_store_explicit(&entry->counter, 0, memory_order_relaxed);
        push_back(&at->main, entry);
        count_in(&at->main, cost);
    } else if (from == &at->main && counter > 0) {
        unlink_entry(from, entry);
        atomic_store_explicit(&entry->counter, (uint8_t)(counter - 1), memory_order_relaxed);
        push_back(from, entry);
    } else {
        evict(cache, at, entry, gone);
        return true;
    }
    return false;
}

/* Evicts one entry; false = all that are left are pinned. The share of the small queue is of the bound that counts. */
static bool evict_one(hf_cache *cache, shard *at, uint64_t bytes_max, uint64_t count_max, int64_t now, hf_s3_gone *gone)
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

/* Evicts until there is room for `count` more entries with `bytes`. */
static void make_room(hf_cache *cache, shard *at, uint64_t count, uint64_t bytes, int64_t now, hf_s3_gone *gone)
{
    bool has_evicted = true;
    while (has_evicted) {
        if (bytes_of(at) > at->bytes_max - bytes) {
            has_evicted = evict_one(cache, at, at->bytes_max, UINT64_MAX, now, gone);
        } else if (count_of(at) > at->count_max - count) {
            has_evicted = evict_one(cache, at, UINT64_MAX, at->count_max, now, gone);
        } else {
            return; /* fiber-U4 */
        }
    }
    hf_assert(has_evicted); /* fiber-U6: may_hold said so */
}

/* ---- Putting ----------------------------------------------------------------------------------------------------- */

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
    size_t len = entry_len(cache, key_len);
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
static bool may_hold(const hf_cache *cache, const shard *at, const hf_cached *old, uint64_t cost)
{
    uint64_t count = at->pinned_count;
    uint64_t bytes = at->pinned_bytes;
    if (old != NULL && old->pins > 0) {
        count--;
        bytes -= cost_of(cache, old);
    }
    return cost <= at->bytes_max && count < at->count_max && bytes <= at->bytes_max - cost;
}

static bool is_full(const hf_slots *slots, uint64_t used)
{
    return (used + 1) * 5 > slots->len * 4;
}

/* Ghosts are remembered for as many entries as the main queue has when it has its share. */
static uint64_t window_of(const shard *at)
{
    return count_of(at) - count_of(at) / 10;
}

static void grow(shard *at, putting *put, hf_s3_gone *gone)
{
    hf_slots *old = slots_of(at);
    hf_slots_copy(old, put->slots);
    atomic_store_explicit(&at->slots, put->slots, memory_order_release);
    at->used = count_of(at);
    put->slots = NULL;
    old->next = gone->tables;
    gone->tables = old;
}

/* The shard gets a table with a free place, and room for the ghosts that a put may make; PUT_DONE = it has them. */
static put_result prepare(shard *at, putting *put, hf_s3_gone *gone)
{
    if (is_full(slots_of(at), at->used)) {
        if (put->slots == NULL || is_full(put->slots, count_of(at))) {
            put->wanted = count_of(at) + count_of(at) / 2 + HF_SLOTS_LEN_MIN; /* two thirds are used then */
            return PUT_WANTS_SLOTS;
        }
        grow(at, put, gone);
    }
    bool leaves = count_of(at) >= at->count_max || bytes_of(at) > at->bytes_max - put->cost;
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

/* The new entry takes the place of the old one, its counter and its pins. It is not evicted by this: it is pinned meanwhile. */
static void replace(hf_cache *cache, shard *at, hf_cached *old, uint64_t place, putting *put, hf_s3_gone *gone)
{
    hf_cached *fresh = put->fresh;
    queue *of = queue_of(at, old);
    uint64_t cost = cost_of(cache, old);
    fresh->flags = old->flags;
    fresh->pins = old->pins;
    atomic_store_explicit(&fresh->counter, atomic_load_explicit(&old->counter, memory_order_relaxed),
                          memory_order_relaxed);
    use(fresh);
    if ((old->flags & HF_CACHED_PARKED) == 0) {
        link_between(of, fresh, hf_cached_prev(old), hf_cached_next(old));
    }
    count_out(of, cost);
    count_in(of, put->cost);
    if (old->pins > 0) {
        at->pinned_bytes += put->cost - cost;
    }
    hf_slots_replace(slots_of(at), place, fresh);
    chain(&gone->removed, old);
    put->fresh = NULL;
    uint16_t pins = fresh->pins;
    fresh->pins = pins > 0 ? pins : 1;
    make_room(cache, at, 0, 0, put->now, gone);
    fresh->pins = pins;
    if (pins == 0 && (fresh->flags & HF_CACHED_PARKED) != 0) {
        fresh->flags &= (uint8_t)~HF_CACHED_PARKED;
        link_between(of, fresh, NULL, of->first);
    }
}

static void insert(hf_cache *cache, shard *at, putting *put, hf_s3_gone *gone)
{
    hf_cached *fresh = put->fresh;
    bool is_ghost = at->departures > 0 && hf_ghosts_take(at->ghosts, put->hash, at->departures - 1, window_of(at));
    make_room(cache, at, 1, put->cost, put->now, gone);
    fresh->flags = is_ghost ? HF_CACHED_MAIN : 0;
    push_back(queue_of(at, fresh), fresh);
    count_in(queue_of(at, fresh), put->cost);
    at->used += hf_slots_add(slots_of(at), hf_slots_tag(put->hash), fresh);
    put->fresh = NULL;
    put->is_new = true;
}

static put_result put_locked(hf_cache *cache, shard *at, putting *put, hf_s3_gone *gone)
{
    uint64_t place = 0;
    size_t key_len = hf_cached_key_len(put->fresh);
    hf_cached *old = hf_slots_find(slots_of(at), put->hash, put->fresh->key, key_len, &place);
    if (!may_hold(cache, at, old, put->cost)) {
        return PUT_LIMIT;
    }
    if (old != NULL && (old->pins > 0 || !is_expired(cache, old, put->now))) {
        replace(cache, at, old, place, put, gone);
        return PUT_DONE;
    }
    put_result result = prepare(at, put, gone);
    if (result != PUT_DONE) {
        return result;
    }
    if (old != NULL) { /* expired; `place` may be one of another table by now */
        hf_cached *found = hf_slots_find(slots_of(at), put->hash, put->fresh->key, key_len, &place);
        hf_assert(found == old);
        take_out(cache, at, old, place);
        chain(&gone->removed, old);
    }
    insert(cache, at, put, gone);
    return PUT_DONE;
}

hf_status hf_s3_put(hf_cache *cache, const void *key, size_t key_len, hf_value *value, bool *ret_is_new,
                    hf_s3_gone *gone)
{
    putting put = {.hash = hash_of(cache->seed, key, key_len), .now = hf_cache_now(cache)};
    put.cost = hf_s3_cost(cache, key_len, value->len);
    put.fresh = entry_new(cache, key, key_len, value, put.now);
    if (put.fresh == NULL) {
        return HF_ERR_NOMEM;
    }
    shard *at = shard_of(cache->s3, put.hash);
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

/* ---- Pins, removal, trim ----------------------------------------------------------------------------------------- */

hf_status hf_s3_pin(hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value)
{
    uint64_t hash = hash_of(cache->seed, key, key_len);
    shard *at = shard_of(cache->s3, hash);
    int64_t now = hf_cache_now(cache);
    hf_status status = HF_OK;
    hf_spin_lock(&at->lock);
    hf_cached *found = hf_slots_find(slots_of(at), hash, key, key_len, NULL);
    if (found == NULL || is_expired(cache, found, now)) {
        at->misses++;
        status = HF_ERR_NOT_FOUND;
    } else if (found->pins == UINT16_MAX) {
        status = HF_ERR_LIMIT;
    } else {
        at->hits++;
        use(found);
        if (found->pins++ == 0) {
            at->pinned_count++;
            at->pinned_bytes += cost_of(cache, found);
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
    uint64_t hash = hash_of(cache->seed, key, key_len);
    shard *at = shard_of(cache->s3, hash);
    hf_spin_lock(&at->lock);
    hf_cached *found = hf_slots_find(slots_of(at), hash, key, key_len, NULL);
    bool is_pinned = found != NULL && found->pins > 0;
    if (is_pinned && --found->pins == 0) {
        hf_assert(at->pinned_count > 0 && at->pinned_bytes >= cost_of(cache, found));
        at->pinned_count--;
        at->pinned_bytes -= cost_of(cache, found);
        if ((found->flags & HF_CACHED_PARKED) != 0) { /* fiber-U5 */
            found->flags &= (uint8_t)~HF_CACHED_PARKED;
            link_between(queue_of(at, found), found, NULL, queue_of(at, found)->first);
        }
    }
    hf_spin_unlock(&at->lock);
    return is_pinned;
}

hf_status hf_s3_remove(hf_cache *cache, const void *key, size_t key_len, hf_s3_gone *gone)
{
    uint64_t hash = hash_of(cache->seed, key, key_len);
    shard *at = shard_of(cache->s3, hash);
    int64_t now = hf_cache_now(cache);
    hf_status status = HF_OK;
    hf_spin_lock(&at->lock);
    uint64_t place = 0;
    hf_cached *found = hf_slots_find(slots_of(at), hash, key, key_len, &place);
    if (found == NULL) {
        status = HF_ERR_NOT_FOUND;
    } else if (found->pins > 0) {
        status = HF_ERR_MISUSE;
    } else {
        status = is_expired(cache, found, now) ? HF_ERR_NOT_FOUND : HF_OK;
        take_out(cache, at, found, place);
        chain(&gone->removed, found);
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
    shard *at = &cache->s3->shards[index];
    gone->home = at;
    hf_spin_lock(&at->lock);
    hf_slots *slots = slots_of(at);
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
                take_out(cache, at, entry, place);
                chain(&gone->removed, entry);
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
        shard *at = &cache->s3->shards[i];
        hf_spin_lock(&at->lock);
        /* Each shard gives in proportion to what it has. */
        uint64_t left = (uint64_t)((wide)bytes * bytes_of(at) / counts.bytes);
        bool has_evicted = true;
        for (int n = 0; n < TRIM_PORTION && has_evicted && bytes_of(at) > left; n++) {
            has_evicted = evict_one(cache, at, bytes_of(at), UINT64_MAX, now, gone);
        }
        has_more = has_more || (has_evicted && bytes_of(at) > left);
        hf_spin_unlock(&at->lock);
    }
    return has_more;
}

/* ---- Freeing what readers may see -------------------------------------------------------------------------------- */

static void limbo_add(hf_cache *cache, shard *at, hf_cached *entry)
{
    uint64_t bytes = cost_of(cache, entry);
    hf_cached *first = atomic_load_explicit(&at->limbo, memory_order_relaxed);
    do {
        hf_cached_set_next(entry, first);
    } while (
        !atomic_compare_exchange_weak_explicit(&at->limbo, &first, entry, memory_order_release, memory_order_relaxed));
    atomic_fetch_add_explicit(&at->limbo_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&at->limbo_bytes, bytes, memory_order_relaxed);
}

static void limbo_add_table(shard *at, hf_slots *table)
{
    hf_slots *first = atomic_load_explicit(&at->limbo_tables, memory_order_relaxed);
    do {
        table->next = first;
    } while (!atomic_compare_exchange_weak_explicit(&at->limbo_tables, &first, table, memory_order_release,
                                                    memory_order_relaxed));
    atomic_fetch_add_explicit(&at->limbo_bytes, table->len * sizeof(uint64_t), memory_order_relaxed);
}

static bool is_limbo_full(const shard *at)
{
    uint64_t bytes_max = at->bytes_max / 8;
    bytes_max = bytes_max < LIMBO_BYTES_MIN ? LIMBO_BYTES_MIN : bytes_max;
    bytes_max = bytes_max > LIMBO_BYTES_MAX ? LIMBO_BYTES_MAX : bytes_max;
    return atomic_load_explicit(&at->limbo_count, memory_order_relaxed) >= LIMBO_COUNT_MAX ||
           atomic_load_explicit(&at->limbo_bytes, memory_order_relaxed) >= bytes_max;
}

/* Inside the library. Gives what may be freed, if anything, or leaves it for the next time. */
static void reclaim(hf_cache *cache, shard *at, bool is_urgent, hf_cached **ret_entries, hf_slots **ret_tables)
{
    *ret_entries = NULL;
    *ret_tables = NULL;
    if ((!is_urgent && !is_limbo_full(at)) ||
        atomic_exchange_explicit(&at->is_reclaiming, true, memory_order_acquire)) {
        return;
    }
    hf_readers *readers = &cache->s3->readers;
    if (at->waiting == NULL && at->waiting_tables == NULL) {
        atomic_store_explicit(&at->limbo_count, 0, memory_order_relaxed);
        atomic_store_explicit(&at->limbo_bytes, 0, memory_order_relaxed);
        at->waiting = atomic_exchange_explicit(&at->limbo, NULL, memory_order_acquire);
        at->waiting_tables = atomic_exchange_explicit(&at->limbo_tables, NULL, memory_order_acquire);
        at->target = hf_readers_target(readers, cache->rt);
    }
    if (hf_readers_have_left(readers, at->target)) { /* fiber-R2 */
        *ret_entries = at->waiting;
        *ret_tables = at->waiting_tables;
        at->waiting = NULL;
        at->waiting_tables = NULL;
    }
    atomic_store_explicit(&at->is_reclaiming, false, memory_order_release);
}

/* Frees what has left the shard and may be freed. Begins and ends outside the library. */
static void flush(hf_cache *cache, shard *at, bool is_urgent)
{
    hf_fiber *self = hf_enter(cache->rt);
    if (self != NULL) {
        hf_cached *entries = NULL;
        hf_slots *tables = NULL;
        reclaim(cache, at, is_urgent, &entries, &tables);
        hf_leave(self);
        chain_free(cache, entries);
        tables_free(cache, tables);
    }
}

static void tell_evicted(hf_cache *cache, hf_cached *evicted)
{
    for (; evicted != NULL && cache->on_evict != NULL; evicted = hf_cached_next(evicted)) {
        cache->on_evict(cache->state, evicted->key, hf_cached_key_len(evicted), hf_cached_value(evicted));
    }
}

static void limbo_add_all(hf_cache *cache, hf_cached *first)
{
    while (first != NULL) {
        hf_cached *next = hf_cached_next(first);
        uint64_t hash = hash_of(cache->seed, first->key, hf_cached_key_len(first));
        limbo_add(cache, shard_of(cache->s3, hash), first);
        first = next;
    }
}

void hf_s3_clean_up(hf_cache *cache, hf_s3_gone *gone)
{
    tell_evicted(cache, gone->evicted.first);
    limbo_add_all(cache, gone->evicted.first);
    limbo_add_all(cache, gone->removed.first);
    for (hf_slots *table = gone->tables; table != NULL;) {
        hf_slots *next = table->next;
        limbo_add_table(gone->home, table);
        table = next;
    }
    if (gone->unused != NULL) {
        entry_free(cache, gone->unused);
    }
    if (gone->home != NULL) {
        flush(cache, gone->home, false);
    }
}

void hf_s3_flush(hf_cache *cache)
{
    for (uint64_t i = 0; i <= cache->s3->shard_mask; i++) {
        flush(cache, &cache->s3->shards[i], true);
    }
}
