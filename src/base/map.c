#include "base/map.h"

#include <string.h>

enum { BUCKETS_FIRST = 16 };

void hf_map_init(hf_map *map, hf_allocator memory)
{
    *map = (hf_map){.memory = memory};
}

void hf_map_deinit(hf_map *map)
{
    if (map->buckets != NULL) {
        map->memory.release(map->memory.state, map->buckets, map->bucket_count * sizeof *map->buckets);
    }
    hf_map_init(map, map->memory);
}

/* False: no memory; the table stays as it is. */
static bool resize(hf_map *map, size_t bucket_count)
{
    hf_assert(bucket_count > 0 && (bucket_count & (bucket_count - 1)) == 0); /* a mask finds the bucket */
    hf_map_node **buckets = map->memory.allocate(map->memory.state, bucket_count * sizeof *buckets, 0);
    if (buckets == NULL) {
        return false;
    }
    memset(buckets, 0, bucket_count * sizeof(void *));
    for (size_t i = 0; i < map->bucket_count; i++) {
        hf_map_node *node = map->buckets[i];
        while (node != NULL) {
            hf_map_node *next = node->next;
            hf_map_node **bucket = &buckets[node->hash & (bucket_count - 1)];
            node->next = *bucket;
            *bucket = node;
            node = next;
        }
    }
    if (map->buckets != NULL) {
        map->memory.release(map->memory.state, map->buckets, map->bucket_count * sizeof *map->buckets);
    }
    map->buckets = buckets;
    map->bucket_count = bucket_count;
    return true;
}

hf_status hf_map_insert(hf_map *map, hf_map_node *node, uint64_t hash)
{
    if (map->count >= map->bucket_count) {
        bool grown = resize(map, map->bucket_count > 0 ? map->bucket_count * 2 : BUCKETS_FIRST);
        if (!grown && map->bucket_count == 0) {
            return HF_ERR_NOMEM;
        }
    }
    hf_map_node **bucket = &map->buckets[hash & (map->bucket_count - 1)];
    node->hash = hash;
    node->next = *bucket;
    *bucket = node;
    map->count++;
    return HF_OK;
}

void hf_map_remove(hf_map *map, hf_map_node *node)
{
    hf_map_node **at = &map->buckets[node->hash & (map->bucket_count - 1)];
    while (*at != node) {
        hf_assert(*at != NULL);
        at = &(*at)->next;
    }
    hf_assert(map->count > 0);
    *at = node->next;
    node->next = NULL;
    map->count--;
}
