/* Which keys the file of a depot may have: a Bloom filter of those that were written to it. It is there if the file was empty when it
 * was opened, so while it is filled for the first time a new key is not looked for in it. That would be a read of the file and
 * two changes of threads for each.
 *
 * A key is added before the commit that writes it begins, and never leaves: so whatever becomes of a commit, a key that the file has
 * is in the filter. A filter with too many keys says yes too often, and its owner frees it. */
#ifndef HF_DEPOT_BLOOM_H
#define HF_DEPOT_BLOOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HF_BLOOM_BITS = 1 << 20,         /* 128 KiB */
    HF_BLOOM_MAX = HF_BLOOM_BITS / 4 /* keys; one new key in seven is looked for in vain then */
};

typedef struct hf_bloom {
    size_t count; /* of keys that were added; one that comes twice counts twice */
    uint64_t words[HF_BLOOM_BITS / 64];
} hf_bloom;

/* Each key has two bits, at places of its hash. */
static inline uint64_t hf_bloom_place(uint64_t hash, int which)
{
    return (which == 0 ? hash : hash >> 32) % HF_BLOOM_BITS;
}

static inline void hf_bloom_add(hf_bloom *filter, uint64_t hash)
{
    for (int i = 0; i < 2; i++) {
        uint64_t place = hf_bloom_place(hash, i);
        filter->words[place / 64] |= UINT64_C(1) << place % 64;
    }
    filter->count++;
}

/* False: the key was never added. */
static inline bool hf_bloom_may_have(const hf_bloom *filter, uint64_t hash)
{
    bool has = true;
    for (int i = 0; i < 2; i++) {
        uint64_t place = hf_bloom_place(hash, i);
        has = has && (filter->words[place / 64] >> place % 64 & 1) != 0;
    }
    return has;
}

#endif
