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

/* The first of the four slots from `at` on that has this tag, or the last one. Four loads and three conditional moves: nearly
 * all entries are there, and how far away they are is not a branch to be mispredicted. */
static inline uint64_t hf_slots_choose(hf_slots *slots, uint64_t at, uint64_t tag)
{
    uint64_t chosen = atomic_load_explicit(&slots->at[at + HF_SLOTS_AT_ONCE - 1], memory_order_acquire);
#pragma GCC unroll 4
    for (unsigned i = HF_SLOTS_AT_ONCE - 1; i > 0; i--) {
        uint64_t slot = atomic_load_explicit(&slots->at[at + i - 1], memory_order_acquire);
        chosen = slot >> HF_SLOT_ADDRESS_BITS == tag ? slot : chosen;
        __asm__("" : "+r"(chosen)); /* else the compiler makes a branch of the last one */
    }
    return chosen;
}

/* As hf_slots_find_at. */
hf_cached *hf_slots_find_slow(hf_slots *slots, uint64_t hash, const void *key, size_t key_len);

/* The entry of a key, or NULL; `*ret_at` is its place. By readers and by the writer. */
static inline hf_cached *hf_slots_find_at(hf_slots *slots, uint64_t hash, const void *key, size_t key_len,
                                          uint64_t *ret_at)
{
    uint64_t tag = hf_slots_tag(hash);
    for (uint64_t at = hf_slots_home(slots, tag);; at = hf_slots_next(slots, at)) {
        uint64_t slot = atomic_load_explicit(&slots->at[at], memory_order_acquire);
        if (slot == HF_SLOT_EMPTY) {
            return NULL;
        }
        if (hf_slot_has(slot, tag, key, key_len)) {
            *ret_at = at;
            return hf_slot_entry(slot);
        }
    }
}

/* The same without the place, for readers: quick if it is among the first. `len`: the length of the table, by somebody
 * who knew it before the table was loaded; another one costs time. */
static inline __attribute__((always_inline)) hf_cached *hf_slots_find(hf_slots *slots, uint64_t len, uint64_t hash,
                                                                      const void *key, size_t key_len)
{
    uint64_t tag = hf_slots_tag(hash);
    uint64_t home = (tag * len) >> HF_TAG_BITS;
    if (HF_LIKELY(len == slots->len && home + HF_SLOTS_AT_ONCE <= len)) {
        uint64_t slot = hf_slots_choose(slots, home, tag);
        if (HF_LIKELY(hf_slot_has(slot, tag, key, key_len))) {
            return hf_slot_entry(slot);
        }
    }
    return hf_slots_find_slow(slots, hash, key, key_len);
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
