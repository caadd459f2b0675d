/* A heap of intrusive elements, smallest key first; equal keys in the order of insertion.
 *
 * A node has four children, and the keys lie beside the pointers: a comparison reads the heap's own memory and not the
 * element, which is hardly ever in a cache if there are thousands.
 *
 * An element contains only one `size_t` for the heap, its place: index + 1, or 0 while it is in no heap. Alarms are
 * such elements: they have no room for more (fiber/sched/alarm.h). hf_heap_node is a place with a copy of the key
 * beside it. */
#ifndef HF_BASE_HEAP_H
#define HF_BASE_HEAP_H

#include "base/base.h"

#include <holdfast/runtime.h>

typedef struct hf_heap_node {
    int64_t key;  /* as it was set last */
    size_t place; /* index + 1, 0 = in no heap */
} hf_heap_node;

typedef struct hf_heap_entry {
    int64_t key;
    uint64_t order; /* of insertion: the second key */
    size_t *place;  /* inside the element */
} hf_heap_entry;

typedef struct hf_heap {
    hf_heap_entry *entries;
    size_t count;
    size_t capacity;
    uint64_t order_next;
    hf_allocator memory;
} hf_heap;

void hf_heap_init(hf_heap *heap, hf_allocator memory);
void hf_heap_deinit(hf_heap *heap);
/* Puts the element with this place in, or moves it when it is in already. Fails: HF_ERR_NOMEM; then nothing changed. */
hf_status hf_heap_put(hf_heap *heap, size_t *place, int64_t key);
/* Room for that many elements in all: hf_heap_put does not fail until there are more. Fails: HF_ERR_NOMEM. */
hf_status hf_heap_reserve(hf_heap *heap, size_t count);
void hf_heap_take(hf_heap *heap, size_t *place); /* does nothing if it is in no heap */

/* The same for a node, which remembers the key. */
hf_status hf_heap_set(hf_heap *heap, hf_heap_node *node, int64_t key);
static inline void hf_heap_remove(hf_heap *heap, hf_heap_node *node)
{
    hf_heap_take(heap, &node->place);
}

static inline hf_heap_node *hf_heap_first(const hf_heap *heap)
{
    return heap->count > 0 ? HF_CONTAINER(heap->entries[0].place, hf_heap_node, place) : NULL;
}

#endif
