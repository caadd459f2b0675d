#include "fiber/keyed/ghosts.h"

#include "fiber/keyed/slots.h"

enum { TIME_BITS = 12, TAG_BITS = 20, PER_BUCKET = 16, UNITS = 1024 };
#define TIME_MASK ((UINT32_C(1) << TIME_BITS) - 1)

static size_t bytes_of(uint64_t bucket_count)
{
    return sizeof(hf_ghosts) + (size_t)bucket_count * PER_BUCKET * sizeof(uint32_t);
}

hf_ghosts *hf_ghosts_new(hf_runtime *rt, uint64_t window)
{
    uint64_t bucket_count = (window + window / 8) / PER_BUCKET + 1; /* some room: buckets are not filled evenly */
    hf_ghosts *ghosts = hf_table_alloc(rt, bytes_of(bucket_count));
    if (ghosts != NULL) {
        ghosts->bucket_count = bucket_count;
        ghosts->unit = (bucket_count * PER_BUCKET + UNITS - 1) / UNITS;
    }
    return ghosts;
}

void hf_ghosts_free(hf_runtime *rt, hf_ghosts *ghosts)
{
    if (ghosts != NULL) {
        hf_table_free(rt, ghosts, bytes_of(ghosts->bucket_count));
    }
}

bool hf_ghosts_fit(const hf_ghosts *ghosts, uint64_t window)
{
    return window <= ghosts->bucket_count * PER_BUCKET;
}

/* Never 0, so that a mark is not. */
static uint32_t tag_of(uint64_t hash)
{
    uint32_t tag = (uint32_t)(hash >> 20) & ((UINT32_C(1) << TAG_BITS) - 1);
    return tag > 0 ? tag : 1;
}

static uint32_t *bucket_of(hf_ghosts *ghosts, uint32_t tag)
{
    return ghosts->marks[(tag * ghosts->bucket_count) >> TAG_BITS];
}

static uint32_t ticks(const hf_ghosts *ghosts, uint64_t now)
{
    return (uint32_t)(now / ghosts->unit) & TIME_MASK;
}

static uint32_t age_of(uint32_t mark, uint32_t tick)
{
    return (tick - mark) & TIME_MASK;
}

/* Into a place of the same tag, else a free one, else that of the oldest. */
static void set(hf_ghosts *ghosts, uint32_t tag, uint32_t time, uint32_t tick)
{
    uint32_t *bucket = bucket_of(ghosts, tag);
    size_t place = 0;
    uint32_t best = 0;
    for (size_t i = 0; i < PER_BUCKET; i++) {
        uint32_t age = bucket[i] == 0 ? TIME_MASK + 1 : age_of(bucket[i], tick);
        if (bucket[i] >> TIME_BITS == tag) {
            place = i;
            break;
        }
        if (age >= best) {
            best = age;
            place = i;
        }
    }
    bucket[place] = tag << TIME_BITS | time;
}

void hf_ghosts_copy(const hf_ghosts *ghosts, hf_ghosts *to, uint64_t now)
{
    for (uint64_t i = 0; i < ghosts->bucket_count; i++) {
        for (size_t j = 0; j < PER_BUCKET; j++) {
            uint32_t mark = ghosts->marks[i][j];
            uint64_t age = age_of(mark, ticks(ghosts, now)) * ghosts->unit;
            if (mark != 0 && age <= now && age / to->unit <= TIME_MASK) {
                set(to, mark >> TIME_BITS, ticks(to, now - age), ticks(to, now));
            }
        }
    }
}

void hf_ghosts_add(hf_ghosts *ghosts, uint64_t hash, uint64_t now)
{
    set(ghosts, tag_of(hash), ticks(ghosts, now), ticks(ghosts, now));
}

bool hf_ghosts_take(hf_ghosts *ghosts, uint64_t hash, uint64_t now, uint64_t window)
{
    uint32_t tag = tag_of(hash);
    uint32_t *bucket = bucket_of(ghosts, tag);
    for (size_t i = 0; i < PER_BUCKET; i++) {
        if (bucket[i] >> TIME_BITS == tag && bucket[i] != 0) {
            bool is_ghost = age_of(bucket[i], ticks(ghosts, now)) * ghosts->unit < window;
            if (!HF_CANARY(HF_BUG_GHOST_TWICE)) {
                bucket[i] = 0;
            }
            return is_ghost;
        }
    }
    return false;
}
