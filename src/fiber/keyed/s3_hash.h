/* The hash by which an S3-FIFO cache finds a key. */
#ifndef HF_FIBER_S3_HASH_H
#define HF_FIBER_S3_HASH_H

#include "base/base.h"

#include <string.h>

__extension__ typedef unsigned __int128 hf_wide;

static inline uint64_t hf_s3_fold(uint64_t a, uint64_t b)
{
    hf_wide product = (hf_wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hf_s3_word(const unsigned char *at, size_t len)
{
    uint64_t word = 0;
    memcpy(&word, at, len);
    return word;
}

/* One multiplication of 64 by 64 bits for each 16 bytes of the key, and one more, as in wyhash. Both factors are mixed
 * with a secret: with a public number, somebody who chooses keys could make one factor 0, and so all keys equal.
 * Without the last one, one seed in some hundred has many short keys in few places. */
static inline uint64_t hf_s3_hash(uint64_t seed, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t other = (seed << 32 | seed >> 32) ^ UINT64_C(0x8ebc6af09c88c6e3);
    uint64_t a = 0;
    uint64_t b = 0;
    if (HF_LIKELY(len - 8 <= 8)) {
        a = hf_s3_word(at, 8);
        b = hf_s3_word(at + len - 8, 8);
    } else if (len > 16) {
        size_t left = len;
        for (; left > 16; left -= 16, at += 16) {
            seed = hf_s3_fold(hf_s3_word(at, 8) ^ other, hf_s3_word(at + 8, 8) ^ seed);
        }
        at = (const unsigned char *)bytes + len;
        a = hf_s3_word(at - 16, 8); /* the last 16, of which some may have been taken already */
        b = hf_s3_word(at - 8, 8);
    } else if (len >= 4) {
        a = hf_s3_word(at, 4);
        b = hf_s3_word(at + len - 4, 4);
    } else if (len > 0) {
        a = (uint64_t)at[0] << 16 | (uint64_t)at[len / 2] << 8 | at[len - 1];
    }
    return hf_s3_fold(UINT64_C(0xe7037ed1a0b428db) ^ len, hf_s3_fold(a ^ other, b ^ seed));
}

#endif
