/* The queues of a shard, which are linked through their entries, and chains of entries that have left. Under the
 * shard's lock. */
#ifndef HF_FIBER_S3_QUEUE_H
#define HF_FIBER_S3_QUEUE_H

#include "fiber/keyed/s3_private.h"

static inline hf_s3_queue *hf_s3_queue_of(hf_s3_shard *at, const hf_cached *entry)
{
    return (entry->flags & HF_CACHED_MAIN) != 0 ? &at->main : &at->small;
}

/* The neighbours of a place in a queue come to know the entry that takes it; NULL = they become neighbours. */
static inline void hf_s3_relink(hf_s3_queue *of, hf_cached *prev, hf_cached *next, hf_cached *left, hf_cached *right)
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

static inline void hf_s3_link(hf_s3_queue *of, hf_cached *entry, hf_cached *prev, hf_cached *next)
{
    hf_cached_set_prev(entry, prev);
    hf_cached_set_next(entry, next);
    hf_s3_relink(of, prev, next, entry, entry);
}

static inline void hf_s3_unlink(hf_s3_queue *of, hf_cached *entry)
{
    hf_cached *prev = hf_cached_prev(entry);
    hf_cached *next = hf_cached_next(entry);
    hf_assert(prev != NULL || of->first == entry);
    hf_assert(next != NULL || of->last == entry);
    hf_s3_relink(of, prev, next, next, prev);
}

static inline void hf_s3_push_back(hf_s3_queue *of, hf_cached *entry)
{
    hf_s3_link(of, entry, of->last, NULL);
}

static inline void hf_s3_count_in(hf_s3_queue *of, uint64_t cost)
{
    of->count++;
    of->bytes += cost;
}

static inline void hf_s3_count_out(hf_s3_queue *of, uint64_t cost)
{
    hf_assert(of->count > 0 && of->bytes >= cost); /* fiber-U7 */
    of->count--;
    of->bytes -= cost;
}

/* In the order in which they left. */
static inline void hf_s3_chain_add(hf_s3_chain *gone, hf_cached *entry)
{
    hf_cached_set_next(entry, NULL);
    if (gone->last != NULL) {
        hf_cached_set_next(gone->last, entry);
    } else {
        gone->first = entry;
    }
    gone->last = entry;
}

#endif
