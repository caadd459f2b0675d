/* What other layers use of hf_cache beside its public verbs. All of it may be called where hf_cache_get may be. */
#ifndef HF_FIBER_CACHE_H
#define HF_FIBER_CACHE_H

#include <holdfast/keyed.h>

/* Looks at the value of a key without holding it: `look` gets it borrowed, and takes a reference if it keeps it. It returns
 * whether this was a hit, which counts as a use of the entry; otherwise it counts as a miss. In an S3-FIFO cache no
 * lock is taken. `look` must not wait, and must not call a verb of the library; hf_value_ref, hf_value_data and hf_value_len are
 * allowed. Returns false if there is no entry, or no hit, or the key is not valid. */
bool hf_cache_visit(hf_cache *cache, const void *key, size_t key_len, bool (*look)(void *arg, hf_value *value),
                    void *arg);

/* Whether an entry is to be removed. Called under a lock: it must not wait, nor call a verb of the library. */
typedef bool (*hf_cache_test)(void *arg, const void *key, size_t key_len, hf_value *value);

/* Removes entries that `is_gone` names, some `portion` of the cache at a time: `*cursor` is 0 before the first call, and
 * the calls go on until this returns false. An entry that was there all the time, and is not pinned, is seen at least
 * once. on_evict is not called. `*ret_count` (may be NULL) is the number of entries that were removed. */
bool hf_cache_sweep(hf_cache *cache, uint64_t *cursor, size_t portion, hf_cache_test is_gone, void *arg,
                    size_t *ret_count);

/* Evicts entries, in the order of eviction, until at most `bytes` are left, or only pinned entries. */
void hf_cache_trim(hf_cache *cache, uint64_t bytes);

/* hf_cache_stats, also inside the library. */
void hf_cache_count(hf_cache *cache, hf_cache_counts *ret_counts);

/* The hash by which an S3-FIFO cache finds a key. The low bits choose the shard, the bits from 20 to 39 make a ghost. */
uint64_t hf_cache_hash(const hf_cache *cache, const void *key, size_t key_len);

#endif
