#include "fiber/keyed/slots.h"

enum { PAGE_LEN = 4096, IN_PAGES_MIN = 8 * PAGE_LEN };

void *hf_table_alloc(hf_runtime *rt, size_t len)
{
    void *table = len >= IN_PAGES_MIN ? rt->env->ops->pages_reserve(rt->env, len)
                                      : rt->allocator.allocate(rt->allocator.state, len, 64);
    if (table != NULL) {
        memset(table, 0, len); /* pages are touched here, and not later under a lock */
    }
    return table;
}

void hf_table_free(hf_runtime *rt, void *table, size_t len)
{
    if (len >= IN_PAGES_MIN) {
        rt->env->ops->pages_release(rt->env, table, len);
    } else {
        rt->allocator.release(rt->allocator.state, table, len);
    }
}

static size_t bytes_of(uint64_t len)
{
    size_t bytes = sizeof(hf_slots) + (size_t)len * sizeof(uint64_t);
    return bytes >= IN_PAGES_MIN ? (bytes + PAGE_LEN - 1) / PAGE_LEN * PAGE_LEN : bytes;
}

hf_slots *hf_slots_new(hf_runtime *rt, uint64_t len)
{
    hf_assert(len >= HF_SLOTS_LEN_MIN);
    hf_slots *slots = hf_table_alloc(rt, bytes_of(len));
    if (slots != NULL) {
        slots->len = len;
    }
    return slots;
}

void hf_slots_free(hf_runtime *rt, hf_slots *slots)
{
    if (slots != NULL) {
        hf_table_free(rt, slots, bytes_of(slots->len));
    }
}

static uint64_t load(const hf_slots *slots, uint64_t at)
{
    return atomic_load_explicit(&slots->at[at], memory_order_relaxed); /* the writer reads what it wrote */
}

static uint64_t slot_of(uint64_t tag, const hf_cached *entry)
{
    uint64_t address = (uint64_t)(uintptr_t)entry;
    hf_assert((address & 15) == 0 && address >> (HF_SLOT_ADDRESS_BITS + 4) == 0 && address > 16);
    return tag << HF_SLOT_ADDRESS_BITS | address >> 4;
}

bool hf_slots_add(hf_slots *slots, uint64_t tag, hf_cached *entry)
{
    uint64_t at = hf_slots_home(slots, tag);
    while (load(slots, at) > HF_SLOT_GONE) {
        at = hf_slots_next(slots, at);
    }
    bool was_empty = load(slots, at) == HF_SLOT_EMPTY;
    atomic_store_explicit(&slots->at[at], slot_of(tag, entry), memory_order_release);
    return was_empty;
}

void hf_slots_replace(hf_slots *slots, uint64_t at, hf_cached *entry)
{
    uint64_t tag = load(slots, at) >> HF_SLOT_ADDRESS_BITS;
    atomic_store_explicit(&slots->at[at], slot_of(tag, entry), memory_order_release);
}

uint64_t hf_slots_remove(hf_slots *slots, uint64_t at)
{
    atomic_store_explicit(&slots->at[at], HF_SLOT_GONE, memory_order_release);
    if (load(slots, hf_slots_next(slots, at)) != HF_SLOT_EMPTY) {
        return 0;
    }
    /* No search goes on beyond here, so the marks before it are not needed. */
    uint64_t emptied = 0;
    while (load(slots, at) == HF_SLOT_GONE) {
        atomic_store_explicit(&slots->at[at], HF_SLOT_EMPTY, memory_order_release);
        emptied++;
        at = at > 0 ? at - 1 : slots->len - 1;
    }
    return emptied;
}

void hf_slots_copy(const hf_slots *slots, hf_slots *to)
{
    for (uint64_t at = 0; at < slots->len; at++) {
        uint64_t slot = load(slots, at);
        if (slot > HF_SLOT_GONE) {
            (void)hf_slots_add(to, slot >> HF_SLOT_ADDRESS_BITS, hf_slot_entry(slot));
        }
    }
}

HF_NOINLINE hf_cached *hf_slots_find_slow(hf_slots *slots, uint64_t hash, const void *key, size_t key_len)
{
    uint64_t at = 0;
    return hf_slots_find_at(slots, hash, key, key_len, &at);
}
