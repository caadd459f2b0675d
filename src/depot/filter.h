/* Which keys the file of a depot may have: a Bloom filter of those that were written to it. It is there if the file was empty when it
 * was opened, so while it is filled for the first time a new key is not looked for in it. That would be a read of the file and
 * two changes of threads for each.
 *
 * A key is added before the commit that writes it begins, and never leaves: so whatever becomes of a commit, a key that the file has
 * is in the filter. A filter with too many keys says yes too often, and its owner frees it. */
#ifndef HF_DEPOT_FILTER_H
#define HF_DEPOT_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HF_FILTER_BITS = 1 << 20,          /* 128 KiB */
    HF_FILTER_MAX = HF_FILTER_BITS / 4 /* keys; one new key in seven is looked for in vain then */
};

typedef struct hf_filter {
    size_t count; /* of keys that were added; one that comes twice counts twice */
    uint64_t words[HF_FILTER_BITS / 64];
} hf_filter;

/* Each key has two bits, at places of its hash. */
static inline uint64_t hf_filter_place(uint64_t hash, int which)
{
    return (which == 0 ? hash : hash >> 32) % HF_FILTER_BITS;
}

static inline void hf_filter_add(hf_filter *filter, uint64_t hash)
{
    for (int i = 0; i < 2; i++) {
        uint64_t place = hf_filter_place(hash, i);
        filter->words[place / 64] |= UINT64_C(1) << place % 64;
    }
    filter->count++;
}

/* False: the key was never added. */
static inline bool hf_filter_may_have(const hf_filter *filter, uint64_t hash)
{
    bool has = true;
    for (int i = 0; i < 2; i++) {
        uint64_t place = hf_filter_place(hash, i);
        has = has && (filter->words[place / 64] >> place % 64 & 1) != 0;
    }
    return has;
}

#endif
