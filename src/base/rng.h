/* Seeded random numbers (splitmix64): for simulations and tests, never for secrets. */
#ifndef HF_BASE_RNG_H
#define HF_BASE_RNG_H

#include "base/base.h"

typedef struct hf_rng {
    uint64_t state;
} hf_rng;

static inline uint64_t hf_rng_next(hf_rng *rng)
{
    uint64_t z = (rng->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 <= result < bound; bound > 0. */
static inline uint64_t hf_rng_below(hf_rng *rng, uint64_t bound)
{
    return hf_rng_next(rng) % bound;
}

static inline bool hf_rng_permille(hf_rng *rng, int permille)
{
    return permille > 0 && hf_rng_below(rng, 1000) < (uint64_t)permille;
}

/* Mixes a word into a running hash: traces, keys. */
static inline uint64_t hf_hash_mix(uint64_t hash, uint64_t word)
{
    hash ^= word + UINT64_C(0x9e3779b97f4a7c15) + (hash << 6) + (hash >> 2);
    hash *= UINT64_C(0xff51afd7ed558ccd);
    return hash ^ (hash >> 32);
}

static inline uint64_t hf_hash_bytes(uint64_t seed, const void *bytes, size_t len)
{
    const unsigned char *p = (const unsigned char *)bytes;
    uint64_t hash = seed ^ (len * UINT64_C(0x9e3779b97f4a7c15));
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t word = 0;
        __builtin_memcpy(&word, p, 8);
        hash = hf_hash_mix(hash, word);
    }
    uint64_t last = 0;
    if (len > 0) { /* `bytes` may be NULL when there are none */
        __builtin_memcpy(&last, p, len);
    }
    return hf_hash_mix(hash, last);
}

#endif
