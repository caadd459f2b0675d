/* A heap of intrusive nodes, smallest key first; equal keys in the order of insertion.
 *
 * Four children to a place, and the keys beside the pointers: a comparison touches the heap's own memory and not the node,
 * which with thousands of them is hardly ever in a cache. */
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
    hf_heap_node *node;
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
/* Puts a node in, or moves it when it is in already. Fails: HF_ERR_NOMEM. */
hf_status hf_heap_set(hf_heap *heap, hf_heap_node *node, int64_t key);
void hf_heap_remove(hf_heap *heap, hf_heap_node *node); /* fine when it is in no heap */

static inline hf_heap_node *hf_heap_first(const hf_heap *heap)
{
    return heap->count > 0 ? heap->entries[0].node : NULL;
}

#endif
