/* Ghosts: hashes of entries that have left a cache lately, with the time when they left, counted in departures. Under
 * the lock of the cache's shard.
 *
 *   mark   31 ......... 12  11 ............. 0
 *          tag of the hash  departures / unit     0 = free
 *
 * A ghost is in the bucket of its tag, 16 marks in a cache line. A new one takes a free place there, or that of the oldest, so
 * nothing is ever cleaned up. Up to 1,024 marks times are exact. In larger tables a unit is some 1/700 of the ghosts
 * that are remembered, and a bucket that is full forgets its oldest early. Two hashes with equal tags are taken for one. */
#ifndef HF_FIBER_GHOSTS_H
#define HF_FIBER_GHOSTS_H

#include "fiber/core.h"

typedef struct hf_ghosts {
    uint64_t bucket_count;
    uint64_t unit; /* departures per tick of a mark's time */
    _Alignas(64) uint32_t marks[][16];
} hf_ghosts;

/* For as many ghosts as `window`; NULL = out of memory. */
hf_ghosts *hf_ghosts_new(hf_runtime *rt, uint64_t window);
void hf_ghosts_free(hf_runtime *rt, hf_ghosts *ghosts); /* accepts NULL */
bool hf_ghosts_fit(const hf_ghosts *ghosts, uint64_t window);
/* Copies what is remembered; `now` = departures so far. */
void hf_ghosts_copy(const hf_ghosts *ghosts, hf_ghosts *to, uint64_t now);
/* An entry leaves, as departure number `now`. */
void hf_ghosts_add(hf_ghosts *ghosts, uint64_t hash, uint64_t now);
/* Whether the entry was among the last `window` of `now` departures. It is forgotten. */
bool hf_ghosts_take(hf_ghosts *ghosts, uint64_t hash, uint64_t now, uint64_t window);

#endif
