#include "base/sha256.h"

#include <string.h>

enum { BLOCK_LEN = 64, ROUNDS = 64 };

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turned(uint32_t word, int bits)
{
    return word >> bits | word << (32 - bits);
}

static uint32_t word_at(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void take_block(uint32_t hash[8], const unsigned char *block)
{
    uint32_t w[ROUNDS];
    uint32_t s[8];
    for (int i = 0; i < 16; i++) {
        w[i] = word_at(block + (size_t)i * 4);
    }
    for (int i = 16; i < ROUNDS; i++) {
        uint32_t low = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t high = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + low + w[i - 7] + high;
    }
    memcpy(s, hash, sizeof s);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t sum = turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25);
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t first = s[7] + sum + choice + K[i] + w[i];
        uint32_t other = turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        memmove(s + 1, s, 7 * sizeof s[0]);
        s[4] += first;
        s[0] = first + other + majority;
    }
    for (int i = 0; i < 8; i++) {
        hash[i] += s[i];
    }
}

void hf_sha256_of(hf_str bytes, unsigned char ret_hash[HF_SHA256_BYTES])
{
    uint32_t hash[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned char last[2 * BLOCK_LEN] = {0};
    const unsigned char *at = (const unsigned char *)bytes.data;
    size_t left = bytes.len;
    for (; left >= BLOCK_LEN; left -= BLOCK_LEN, at += BLOCK_LEN) {
        take_block(hash, at);
    }
    if (left > 0) {
        memcpy(last, at, left);
    }
    last[left] = 0x80;
    size_t last_len = left < BLOCK_LEN - 8 ? BLOCK_LEN : 2 * BLOCK_LEN;
    uint64_t bits = (uint64_t)bytes.len * 8;
    for (size_t i = 0; i < 8; i++) {
        last[last_len - 1 - i] = (unsigned char)(bits >> (8 * i));
    }
    for (size_t i = 0; i < last_len; i += BLOCK_LEN) {
        take_block(hash, last + i);
    }
    for (size_t i = 0; i < HF_SHA256_BYTES; i++) {
        ret_hash[i] = (unsigned char)(hash[i / 4] >> (24 - 8 * (i % 4)));
    }
}

void hf_sha256_hex(hf_str bytes, char ret_text[HF_SHA256_HEX_LEN])
{
    static const char DIGITS[] = "0123456789abcdef";
    unsigned char hash[HF_SHA256_BYTES];
    hf_sha256_of(bytes, hash);
    for (size_t i = 0; i < sizeof hash; i++) {
        ret_text[2 * i] = DIGITS[hash[i] >> 4];
        ret_text[2 * i + 1] = DIGITS[hash[i] & 15];
    }
}
