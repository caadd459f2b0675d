#include "base/heap.h"

#include <string.h>

enum { CAPACITY_FIRST = 64 };

void hf_heap_init(hf_heap *heap, hf_allocator memory)
{
    *heap = (hf_heap){.memory = memory};
}

void hf_heap_deinit(hf_heap *heap)
{
    if (heap->nodes != NULL) {
        heap->memory.release(heap->memory.state, heap->nodes, heap->capacity * sizeof *heap->nodes);
    }
    hf_heap_init(heap, heap->memory);
}

static bool is_before(const hf_heap_node *a, const hf_heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->order < b->order;
}

static void put(hf_heap *heap, size_t index, hf_heap_node *node)
{
    heap->nodes[index] = node;
    node->place = index + 1;
}

static void sift(hf_heap *heap, size_t index, hf_heap_node *node)
{
    while (index > 0 && is_before(node, heap->nodes[(index - 1) / 2])) {
        put(heap, index, heap->nodes[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * index + 1;
        if (child + 1 < heap->count && is_before(heap->nodes[child + 1], heap->nodes[child])) {
            child++;
        }
        if (child >= heap->count || !is_before(heap->nodes[child], node)) {
            break;
        }
        put(heap, index, heap->nodes[child]);
        index = child;
    }
    put(heap, index, node);
}

static bool grow(hf_heap *heap)
{
    size_t capacity = heap->capacity > 0 ? heap->capacity * 2 : CAPACITY_FIRST;
    hf_heap_node **nodes = heap->memory.allocate(heap->memory.state, capacity * sizeof *nodes, 0);
    if (nodes == NULL) {
        return false;
    }
    if (heap->count > 0) {
        memcpy(nodes, heap->nodes, heap->count * sizeof(void *));
    }
    if (heap->nodes != NULL) {
        heap->memory.release(heap->memory.state, heap->nodes, heap->capacity * sizeof *heap->nodes);
    }
    heap->nodes = nodes;
    heap->capacity = capacity;
    return true;
}

hf_status hf_heap_set(hf_heap *heap, hf_heap_node *node, int64_t key)
{
    if (node->place == 0) {
        if (heap->count == heap->capacity && !grow(heap)) {
            return HF_ERR_NOMEM;
        }
        node->order = heap->order_next++;
        heap->count++;
        node->place = heap->count;
    }
    node->key = key;
    sift(heap, node->place - 1, node);
    return HF_OK;
}

void hf_heap_remove(hf_heap *heap, hf_heap_node *node)
{
    if (node->place == 0) {
        return;
    }
    size_t index = node->place - 1;
    hf_assert(index < heap->count && heap->nodes[index] == node);
    hf_heap_node *last = heap->nodes[--heap->count];
    node->place = 0;
    if (last != node) {
        sift(heap, index, last);
    }
}
