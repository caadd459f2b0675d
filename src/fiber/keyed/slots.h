/* The index of an S3-FIFO cache: entries by key, by open addressing. One writer at a time, who holds the shard's lock;
 * readers have no lock, and see an entry or do not see it.
 *
 *   slot   63 ......... 44  43 .......................... 0
 *          tag of the hash  address of the entry / 16          0 = empty, 1 = an entry was here
 *
 * An entry is looked for from its home on, up to the first empty slot. Its home is its tag, scaled to the length of
 * the table. So homes are in the order of tags in every table, and a table is copied to a longer one front to back
 * and without a look at the entries.
 *
 * A table that is full is replaced by another one. Readers may still look at the old one: it is freed by the rules of
 * readers.h, and so are entries. Nothing ever moves inside a table. */
#ifndef HF_FIBER_SLOTS_H
#define HF_FIBER_SLOTS_H

#include "fiber/core.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { HF_TAG_BITS = 20, HF_SLOT_ADDRESS_BITS = 44, HF_SLOTS_LEN_MIN = 16, HF_SLOTS_AT_ONCE = 4 };
#define HF_SLOT_EMPTY UINT64_C(0)
#define HF_SLOT_GONE UINT64_C(1)

/* An entry: 24 bytes, then its key, then its end of life if the cache has a ttl. Addresses have 48 bits. Everything
 * but `counter` and the links is constant while readers can reach it: a new value is a new entry. */
typedef struct hf_cached {
    uint64_t value_and_len; /* address of the hf_value, of which the entry has a reference; above it the key's length */
    uint32_t prev_low;      /* neighbours in the queue; under the shard's lock */
    uint32_t next_low;
    uint16_t prev_high;
    uint16_t next_high;
    uint16_t pins;            /* under the shard's lock, as the flags */
    uint8_t flags;            /* HF_CACHED_... */
    _Atomic(uint8_t) counter; /* 0 to 3: uses since it came, or moved on; readers raise it without a lock */
    unsigned char key[];
} hf_cached;
_Static_assert(sizeof(hf_cached) == 24, "an entry must stay small");

enum {
    HF_CACHED_MAIN = 1,   /* in the main queue; else in the small one */
    HF_CACHED_PARKED = 2, /* pinned, and taken out of its queue because it was the next to leave */
    HF_COUNTER_MAX = 3
};

static inline hf_value *hf_cached_value(const hf_cached *entry)
{
    return (hf_value *)(uintptr_t)(entry->value_and_len & UINT64_C(0xffffffffffff));
}

static inline size_t hf_cached_key_len(const hf_cached *entry)
{
    return (size_t)(entry->value_and_len >> 48);
}

static inline hf_cached *hf_cached_prev(const hf_cached *entry)
{
    return (hf_cached *)(uintptr_t)((uint64_t)entry->prev_high << 32 | entry->prev_low);
}

static inline hf_cached *hf_cached_next(const hf_cached *entry)
{
    return (hf_cached *)(uintptr_t)((uint64_t)entry->next_high << 32 | entry->next_low);
}

static inline void hf_cached_set_prev(hf_cached *entry, const hf_cached *prev)
{
    entry->prev_low = (uint32_t)(uintptr_t)prev;
    entry->prev_high = (uint16_t)((uintptr_t)prev >> 32);
}

static inline void hf_cached_set_next(hf_cached *entry, const hf_cached *next)
{
    entry->next_low = (uint32_t)(uintptr_t)next;
    entry->next_high = (uint16_t)((uintptr_t)next >> 32);
}

static inline uint64_t hf_word_at(const unsigned char *at)
{
    uint64_t word = 0;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline bool hf_bytes_equal(const unsigned char *a, const unsigned char *b, size_t len)
{
    if (HF_LIKELY(len - 8 <= 8)) { /* 8 to 16: two words, which may overlap */
        return ((hf_word_at(a) ^ hf_word_at(b)) | (hf_word_at(a + len - 8) ^ hf_word_at(b + len - 8))) == 0;
    }
    if (len < sizeof(uint64_t)) {
        while (len > 0 && a[len - 1] == b[len - 1]) {
            len--;
        }
        return len == 0;
    }
    for (size_t at = 0;; at += sizeof(uint64_t)) {
        size_t from = at + sizeof(uint64_t) <= len ? at : len - sizeof(uint64_t); /* the last word may overlap */
        uint64_t x = hf_word_at(a + from);
        uint64_t y = hf_word_at(b + from);
        if (x != y || at + sizeof(uint64_t) >= len) {
            return x == y;
        }
    }
}

typedef struct hf_slots hf_slots;
struct hf_slots {
    uint64_t len;                        /* slots */
    hf_slots *next;                      /* among tables that are to be freed */
    _Alignas(64) _Atomic(uint64_t) at[]; /* as pictured above */
};

/* Memory for a table, zeroed, at a cache line. Large ones have pages of their own, which go back to the system: in the heap each
 * would leave a hole when it is replaced by a larger one. NULL = out of memory. */
void *hf_table_alloc(hf_runtime *rt, size_t len);
void hf_table_free(hf_runtime *rt, void *table, size_t len);

/* NULL = out of memory. */
hf_slots *hf_slots_new(hf_runtime *rt, uint64_t len);
void hf_slots_free(hf_runtime *rt, hf_slots *slots); /* accepts NULL */

static inline uint64_t hf_slots_tag(uint64_t hash)
{
    return hash >> (64 - HF_TAG_BITS);
}

static inline uint64_t hf_slots_home(const hf_slots *slots, uint64_t tag)
{
    return (tag * slots->len) >> HF_TAG_BITS;
}

static inline uint64_t hf_slots_next(const hf_slots *slots, uint64_t at)
{
    return at + 1 < slots->len ? at + 1 : 0;
}

static inline hf_cached *hf_slot_entry(uint64_t slot)
{
    return (hf_cached *)(uintptr_t)((slot & ((UINT64_C(1) << HF_SLOT_ADDRESS_BITS) - 1)) << 4);
}

static inline bool hf_slot_has(uint64_t slot, uint64_t tag, const void *key, size_t key_len)
{
    if (slot >> HF_SLOT_ADDRESS_BITS != tag || slot <= HF_SLOT_GONE) {
        return false;
    }
    const hf_cached *entry = hf_slot_entry(slot);
    __builtin_prefetch(hf_cached_value(entry), 1); /* the count of its holders is next */
    return hf_cached_key_len(entry) == key_len && hf_bytes_equal(entry->key, key, key_len);
}

/* Which of the four slots from `at` on have this tag: a bit for each. A hint: the slot is loaded again. */
static inline unsigned hf_slots_fits(const hf_slots *slots, uint64_t at, uint64_t tag)
{
#if defined(__SSE2__) && !HF_TSAN
    /* Four loads of 8 bytes, in two. Each half is read whole, as an aligned word is. */
    __m128i low = _mm_loadu_si128((const __m128i_u *)(uintptr_t)&slots->at[at]);
    __m128i high = _mm_loadu_si128((const __m128i_u *)(uintptr_t)&slots->at[at + 2]);
    __m128 uppers = _mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high), _MM_SHUFFLE(3, 1, 3, 1));
    __m128i tags = _mm_srli_epi32(_mm_castps_si128(uppers), HF_SLOT_ADDRESS_BITS - 32);
    __m128i are_equal = _mm_cmpeq_epi32(tags, _mm_set1_epi32((int)tag));
    return (unsigned)_mm_movemask_ps(_mm_castsi128_ps(are_equal));
#else
    unsigned fits = 0;
    for (unsigned i = 0; i < HF_SLOTS_AT_ONCE; i++) {
        uint64_t slot = atomic_load_explicit(&slots->at[at + i], memory_order_relaxed);
        fits |= (unsigned)(slot >> HF_SLOT_ADDRESS_BITS == tag) << i;
    }
    return fits;
#endif
}

/* The entry of a key, or NULL; `*ret_at` (may be NULL) is its place. By readers and by the writer. */
static inline __attribute__((always_inline)) hf_cached *hf_slots_find(hf_slots *slots, uint64_t hash, const void *key,
                                                                      size_t key_len, uint64_t *ret_at)
{
    uint64_t tag = hf_slots_tag(hash);
    uint64_t at = hf_slots_home(slots, tag);
    /* The next few slots at once: nearly all entries are there, and how far away is not a branch to be mispredicted. */
    if (HF_LIKELY(at + HF_SLOTS_AT_ONCE <= slots->len)) {
        for (unsigned fits = hf_slots_fits(slots, at, tag); fits != 0; fits &= fits - 1) {
            uint64_t place = at + (unsigned)__builtin_ctz(fits);
            uint64_t slot = atomic_load_explicit(&slots->at[place], memory_order_acquire);
            if (HF_LIKELY(hf_slot_has(slot, tag, key, key_len))) {
                if (ret_at != NULL) {
                    *ret_at = place;
                }
                return hf_slot_entry(slot);
            }
        }
    }
    for (;; at = hf_slots_next(slots, at)) {
        uint64_t slot = atomic_load_explicit(&slots->at[at], memory_order_acquire);
        if (slot == HF_SLOT_EMPTY) {
            return NULL;
        }
        if (hf_slot_has(slot, tag, key, key_len)) {
            if (ret_at != NULL) {
                *ret_at = at;
            }
            return hf_slot_entry(slot);
        }
    }
}

/* By the writer. Puts an entry whose key is not there. Returns whether the place was empty before. */
bool hf_slots_add(hf_slots *slots, uint64_t tag, hf_cached *entry);
/* Puts another entry with the same key in place of the one that is there. */
void hf_slots_replace(hf_slots *slots, uint64_t at, hf_cached *entry);
/* Takes an entry out. Returns how many places have become empty; they were counted as used. */
uint64_t hf_slots_remove(hf_slots *slots, uint64_t at);
/* Copies all entries to a new table. */
void hf_slots_copy(const hf_slots *slots, hf_slots *to);

#endif
