#include "base/siphash.h"

static uint64_t rotate(uint64_t word, int bits)
{
    return (word << bits) | (word >> (64 - bits));
}

static uint64_t load(const char *bytes)
{
    uint64_t word = 0;
    for (int i = 0; i < 8; i++) {
        word |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    }
    return word;
}

static void rounds(uint64_t v[4], int count)
{
    for (int i = 0; i < count; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

uint64_t hf_siphash(const unsigned char key[HF_SIPHASH_KEY_LEN], hf_str bytes)
{
    uint64_t k0 = load((const char *)key);
    uint64_t k1 = load((const char *)key + 8);
    uint64_t v[4] = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
                     k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
    size_t left = bytes.len;
    const char *at = bytes.data;
    for (; left >= 8; left -= 8, at += 8) {
        uint64_t word = load(at);
        v[3] ^= word;
        rounds(v, 2);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)bytes.len << 56;
    for (size_t i = 0; i < left; i++) {
        last |= (uint64_t)(unsigned char)at[i] << (8 * i);
    }
    v[3] ^= last;
    rounds(v, 2);
    v[0] ^= last;
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
