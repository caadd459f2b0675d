/* Freeing what readers of an S3-FIFO cache may still see: entries and tables wait in the limbo of their shard
 * (readers.h). */
#include "fiber/enter.h"
#include "fiber/keyed/s3_private.h"

enum {
    LIMBO_COUNT_MAX = 32,        /* entries that wait for readers before these are looked at ... */
    LIMBO_BYTES_MIN = 64 << 10,  /* ... or bytes, in a small shard ... */
    LIMBO_BYTES_MAX = 1024 << 10 /* ... and in a large one */
};

void hf_s3_entry_free(hf_cache *cache, hf_cached *entry)
{
    hf_value_unref(hf_cached_value(entry));
    hf_rt_free(cache->rt, entry, hf_s3_entry_len(cache, hf_cached_key_len(entry)));
}

void hf_s3_entries_free(hf_cache *cache, hf_cached *first)
{
    while (first != NULL) {
        hf_cached *next = hf_cached_next(first);
        hf_s3_entry_free(cache, first);
        first = next;
    }
}

void hf_s3_tables_free(hf_cache *cache, hf_slots *first)
{
    while (first != NULL) {
        hf_slots *next = first->next;
        hf_slots_free(cache->rt, first);
        first = next;
    }
}

static void limbo_add(hf_cache *cache, hf_s3_shard *at, hf_cached *entry)
{
    uint64_t bytes = hf_s3_cost_of(cache, entry);
    hf_cached *first = atomic_load_explicit(&at->limbo, memory_order_relaxed);
    do {
        hf_cached_set_next(entry, first);
    } while (
        !atomic_compare_exchange_weak_explicit(&at->limbo, &first, entry, memory_order_release, memory_order_relaxed));
    atomic_fetch_add_explicit(&at->limbo_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&at->limbo_bytes, bytes, memory_order_relaxed);
}

static void limbo_add_table(hf_s3_shard *at, hf_slots *table)
{
    uint64_t bytes = table->len * sizeof(uint64_t); /* once it is in limbo, others may free it */
    hf_slots *first = atomic_load_explicit(&at->limbo_tables, memory_order_relaxed);
    do {
        table->next = first;
    } while (!atomic_compare_exchange_weak_explicit(&at->limbo_tables, &first, table, memory_order_release,
                                                    memory_order_relaxed));
    atomic_fetch_add_explicit(&at->limbo_bytes, bytes, memory_order_relaxed);
}

static bool is_limbo_full(const hf_s3_shard *at)
{
    uint64_t bytes_max = at->bytes_max / 8;
    bytes_max = bytes_max < LIMBO_BYTES_MIN ? LIMBO_BYTES_MIN : bytes_max;
    bytes_max = bytes_max > LIMBO_BYTES_MAX ? LIMBO_BYTES_MAX : bytes_max;
    return atomic_load_explicit(&at->limbo_count, memory_order_relaxed) >= LIMBO_COUNT_MAX ||
           atomic_load_explicit(&at->limbo_bytes, memory_order_relaxed) >= bytes_max;
}

/* Inside the library. Gives what may be freed, if anything, or leaves it for the next time. */
static void reclaim(hf_cache *cache, hf_s3_shard *at, bool is_urgent, hf_cached **ret_entries, hf_slots **ret_tables)
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
    if (hf_readers_have_left(readers, at->target)) { /* fiber-Y2 */
        *ret_entries = at->waiting;
        *ret_tables = at->waiting_tables;
        at->waiting = NULL;
        at->waiting_tables = NULL;
    }
    atomic_store_explicit(&at->is_reclaiming, false, memory_order_release);
}

/* Frees what has left the shard and may be freed. Begins and ends outside the library. */
static void flush(hf_cache *cache, hf_s3_shard *at, bool is_urgent)
{
    hf_fiber *self = hf_enter(cache->rt);
    if (self != NULL) {
        hf_cached *entries = NULL;
        hf_slots *tables = NULL;
        reclaim(cache, at, is_urgent, &entries, &tables);
        hf_leave(self);
        hf_s3_entries_free(cache, entries);
        hf_s3_tables_free(cache, tables);
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
        uint64_t hash = hf_s3_hash(cache->seed, first->key, hf_cached_key_len(first));
        limbo_add(cache, hf_s3_shard_of(cache->s3, hash), first);
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
        hf_s3_entry_free(cache, gone->unused);
    }
    if (gone->home != NULL) {
        flush(cache, gone->home, gone->tables != NULL); /* tables are large */
    }
}

void hf_s3_flush(hf_cache *cache)
{
    for (uint64_t i = 0; i <= cache->s3->shard_mask; i++) {
        flush(cache, &cache->s3->shards[i], true);
    }
}
