#include "base/siphash.h"

#include <endian.h>
#include <string.h>

typedef struct state {
    uint64_t a, b, c, d;
} state;

static inline uint64_t rotate(uint64_t word, int bits)
{
    return (word << bits) | (word >> (64 - bits));
}

static inline uint64_t load(const void *bytes)
{
    uint64_t word = 0;
    memcpy(&word, bytes, sizeof word);
    return le64toh(word);
}

static inline state turn(state v)
{
    v.a += v.b;
    v.c += v.d;
    v.b = rotate(v.b, 13) ^ v.a;
    v.d = rotate(v.d, 16) ^ v.c;
    v.a = rotate(v.a, 32);
    v.c += v.b;
    v.a += v.d;
    v.b = rotate(v.b, 17) ^ v.c;
    v.d = rotate(v.d, 21) ^ v.a;
    v.c = rotate(v.c, 32);
    return v;
}

static inline state take(state v, uint64_t word)
{
    v.d ^= word;
    v = turn(turn(v));
    v.a ^= word;
    return v;
}

uint64_t hf_siphash(const unsigned char key[HF_SIPHASH_KEY_LEN], hf_str bytes)
{
    uint64_t k0 = load(key);
    uint64_t k1 = load(key + 8);
    state v = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d), k0 ^ UINT64_C(0x6c7967656e657261),
               k1 ^ UINT64_C(0x7465646279746573)};
    size_t left = bytes.len;
    const char *at = bytes.data;
    for (; left >= 8; left -= 8, at += 8) {
        v = take(v, load(at));
    }
    uint64_t last = (uint64_t)bytes.len << 56;
    for (size_t i = 0; i < left; i++) {
        last |= (uint64_t)(unsigned char)at[i] << (8 * i);
    }
    v = take(v, last);
    v.c ^= 0xff;
    v = turn(turn(turn(turn(v))));
    return v.a ^ v.b ^ v.c ^ v.d;
}
