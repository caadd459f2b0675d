#include "base/heap.h"

#include <string.h>

enum { CAPACITY_FIRST = 64, CHILDREN = 4 };

void hf_heap_init(hf_heap *heap, hf_allocator memory)
{
    *heap = (hf_heap){.memory = memory};
}

void hf_heap_deinit(hf_heap *heap)
{
    if (heap->entries != NULL) {
        heap->memory.release(heap->memory.state, heap->entries, heap->capacity * sizeof *heap->entries);
    }
    hf_heap_init(heap, heap->memory);
}

static inline bool is_before(const hf_heap_entry *a, const hf_heap_entry *b)
{
    return a->key != b->key ? a->key < b->key : a->order < b->order;
}

static inline void put(hf_heap *heap, size_t index, const hf_heap_entry *entry)
{
    heap->entries[index] = *entry;
    *entry->place = index + 1;
}

/* The smallest of the children of `index`, or `count` when it has none. */
static inline size_t first_child(const hf_heap *heap, size_t index)
{
    size_t first = CHILDREN * index + 1;
    if (first >= heap->count) {
        return heap->count;
    }
    size_t end = first + CHILDREN < heap->count ? first + CHILDREN : heap->count;
    for (size_t i = first + 1; i < end; i++) {
        first = is_before(&heap->entries[i], &heap->entries[first]) ? i : first;
    }
    return first;
}

/* The place at `index` is free: puts `entry` into its place, from there up or down. */
static void sift(hf_heap *heap, size_t index, hf_heap_entry entry)
{
    while (index > 0 && is_before(&entry, &heap->entries[(index - 1) / CHILDREN])) {
        put(heap, index, &heap->entries[(index - 1) / CHILDREN]);
        index = (index - 1) / CHILDREN;
    }
    size_t child = 0;
    while ((child = first_child(heap, index)) < heap->count && is_before(&heap->entries[child], &entry)) {
        put(heap, index, &heap->entries[child]);
        index = child;
    }
    put(heap, index, &entry);
}

static bool grow(hf_heap *heap)
{
    size_t capacity = heap->capacity > 0 ? heap->capacity * 2 : CAPACITY_FIRST;
    hf_heap_entry *entries = heap->memory.allocate(heap->memory.state, capacity * sizeof *entries, 0);
    if (entries == NULL) {
        return false;
    }
    if (heap->count > 0) {
        memcpy(entries, heap->entries, heap->count * sizeof *entries);
    }
    if (heap->entries != NULL) {
        heap->memory.release(heap->memory.state, heap->entries, heap->capacity * sizeof *heap->entries);
    }
    heap->entries = entries;
    heap->capacity = capacity;
    return true;
}

hf_status hf_heap_reserve(hf_heap *heap, size_t count)
{
    while (heap->capacity < count) {
        if (!grow(heap)) {
            return HF_ERR_NOMEM;
        }
    }
    return HF_OK;
}

hf_status hf_heap_put(hf_heap *heap, size_t *place, int64_t key)
{
    hf_heap_entry entry = {key, 0, place};
    if (*place == 0) {
        if (heap->count == heap->capacity && !grow(heap)) {
            return HF_ERR_NOMEM;
        }
        entry.order = heap->order_next++;
        *place = ++heap->count;
    } else {
        hf_assert(*place <= heap->count && heap->entries[*place - 1].place == place);
        entry.order = heap->entries[*place - 1].order;
    }
    sift(heap, *place - 1, entry);
    return HF_OK;
}

void hf_heap_take(hf_heap *heap, size_t *place)
{
    if (*place == 0) {
        return;
    }
    size_t index = *place - 1;
    hf_assert(index < heap->count && heap->entries[index].place == place);
    hf_heap_entry last = heap->entries[--heap->count];
    *place = 0;
    if (last.place != place) {
        sift(heap, index, last);
    }
}

hf_status hf_heap_set(hf_heap *heap, hf_heap_node *node, int64_t key)
{
    hf_status status = hf_heap_put(heap, &node->place, key);
    if (status == HF_OK) {
        node->key = key;
    }
    return status;
}
