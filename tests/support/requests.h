/* Sequences of requests for keys, for hit ratios of caches: the same numbers for the same seed. */
#ifndef HF_TESTS_REQUESTS_H
#define HF_TESTS_REQUESTS_H

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

typedef enum requests_kind {
    REQUESTS_ZIPF,    /* key number n with a weight of 1 / n^skew */
    REQUESTS_SCAN,    /* zipf, and one request in five is for the next key of a long row of others */
    REQUESTS_SHIFTED, /* zipf, and halfway other keys become the popular ones */
    REQUESTS_LOOP     /* all keys in order, again and again */
} requests_kind;

typedef struct requests {
    requests_kind kind;
    uint32_t key_count;
    uint64_t count; /* requests of the whole sequence */
    uint64_t at;
    uint32_t scan;
    hf_rng rng;
    double *sums; /* weights of the keys up to each, of 1 in all; NULL for a loop */
} requests;

/* False: out of memory. */
static inline bool requests_init(requests *r, requests_kind kind, double skew, uint32_t key_count, uint64_t count)
{
    *r = (requests){.kind = kind, .key_count = key_count, .count = count, .rng = {.state = 4711}};
    if (kind == REQUESTS_LOOP) {
        return true;
    }
    r->sums = malloc(key_count * sizeof *r->sums);
    if (r->sums == NULL) {
        return false;
    }
    double sum = 0;
    for (uint32_t i = 0; i < key_count; i++) {
        sum += 1 / pow((double)i + 1, skew);
        r->sums[i] = sum;
    }
    for (uint32_t i = 0; i < key_count; i++) {
        r->sums[i] /= sum;
    }
    return true;
}

static inline void requests_deinit(requests *r)
{
    free(r->sums);
}

static inline uint32_t requests_zipf(requests *r)
{
    double chance = (double)(hf_rng_next(&r->rng) >> 11) / 9007199254740992.0;
    uint32_t low = 0;
    uint32_t high = r->key_count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->sums[middle] < chance) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static inline uint32_t requests_next(requests *r)
{
    uint64_t at = r->at++;
    if (r->kind == REQUESTS_LOOP) {
        return (uint32_t)(at % r->key_count);
    }
    if (r->kind == REQUESTS_SCAN && at % 5 == 4) {
        return r->key_count + r->scan++;
    }
    uint32_t key = requests_zipf(r);
    bool is_shifted = r->kind == REQUESTS_SHIFTED && at >= r->count / 2;
    return is_shifted ? (key + r->key_count / 2) % r->key_count : key;
}

/* The hit ratio of a cache that holds the best `count` keys for ever. */
static inline double requests_best(const requests *r, uint32_t count)
{
    double best = r->kind == REQUESTS_LOOP ? (double)count / r->key_count : r->sums[count - 1];
    return r->kind == REQUESTS_SCAN ? best * 4 / 5 : best;
}

/* The rows that are measured: caches of `size` entries. */
typedef struct requests_row {
    const char *what;
    requests_kind kind;
    double skew;
    uint32_t key_count;
    uint32_t size;
    double of_best_min; /* at least this part of the best static set; 0 = it does not matter */
} requests_row;

static const requests_row REQUESTS_ROWS[] = {
    {"zipf 1.0, 1 %", REQUESTS_ZIPF, 1.0, 100000, 1000, 0.95},
    {"zipf 1.0, 10 %", REQUESTS_ZIPF, 1.0, 100000, 10000, 0.95},
    {"zipf 0.8, 10 %", REQUESTS_ZIPF, 0.8, 100000, 10000, 0},
    {"20 % scan, zipf 1.0, 1 %", REQUESTS_SCAN, 1.0, 100000, 1000, 0},
    {"popularity shifted halfway, 10 %", REQUESTS_SHIFTED, 1.0, 100000, 10000, 0},
    {"loop of 1.2 x the size", REQUESTS_LOOP, 0, 12000, 10000, 0},
};

#endif
