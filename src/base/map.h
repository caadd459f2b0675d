/* An intrusive hash table: the elements contain the link, the table has only its buckets. Code whose result depends on
 * an order must not walk the buckets: it keeps a list beside the table. */
#ifndef HF_BASE_MAP_H
#define HF_BASE_MAP_H

#include "base/base.h"

#include <holdfast/runtime.h>

typedef struct hf_map_node hf_map_node;
struct hf_map_node {
    hf_map_node *next; /* in its bucket */
    uint64_t hash;
};

typedef struct hf_map {
    hf_map_node **buckets; /* a power of two of them; NULL until the first insert */
    size_t bucket_count;
    size_t count;        /* elements */
    hf_allocator memory; /* where the buckets come from */
} hf_map;

void hf_map_init(hf_map *map, hf_allocator memory);
/* The elements stay the caller's. */
void hf_map_deinit(hf_map *map);
/* Fails: HF_ERR_NOMEM, only for the first element; later the table goes on with the buckets it has. */
hf_status hf_map_insert(hf_map *map, hf_map_node *node, uint64_t hash);
void hf_map_remove(hf_map *map, hf_map_node *node);

/* The elements with this hash: compare the keys yourself.
 *     for (hf_map_node *node = hf_map_first(map, hash); node != NULL; node = hf_map_next(node)) */
static inline hf_map_node *hf_map_skip_(hf_map_node *node, uint64_t hash)
{
    while (node != NULL && node->hash != hash) {
        node = node->next;
    }
    return node;
}

static inline hf_map_node *hf_map_first(const hf_map *map, uint64_t hash)
{
    return map->count == 0 ? NULL : hf_map_skip_(map->buckets[hash & (map->bucket_count - 1)], hash);
}

static inline hf_map_node *hf_map_next(const hf_map_node *node)
{
    return hf_map_skip_(node->next, node->hash);
}

#endif
