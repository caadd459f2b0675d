#include "fiber/keyed/keys.h"

#include <string.h>

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x9e6c63d0676a9a99);
    x ^= x >> 29;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x;
}

uint64_t hf_keys_seed(hf_runtime *rt)
{
    uint64_t seed = 0;
    hf_op op;
    hf_op_init(&op);
    if (rt->env->ops->random(rt->env, &op, &seed, sizeof seed) != HF_OK) {
        seed = UINT64_C(0x243f6a8885a308d3); /* without a random seed the paths are only less even */
    }
    return seed;
}

uint64_t hf_key_hash(uint64_t seed, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t hash = mix(seed ^ len);
    for (; len >= sizeof(uint64_t); at += sizeof(uint64_t), len -= sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, at, sizeof word);
        hash = mix(hash ^ word) + seed;
    }
    if (len > 0) {
        uint64_t word = 0;
        memcpy(&word, at, len);
        hash = mix(hash ^ word);
    }
    return mix(hash);
}

/* Returns the child of a node in which a path continues, and leaves the rest of the path in `*path`. The hash is
 * rotated, not shifted, so the path never ends: keys with equal hashes lie below each other. */
static unsigned next_turn(uint64_t *path)
{
    unsigned turn = (unsigned)(*path & 3);
    *path = (*path >> 2) | (*path << 62);
    return turn;
}

void hf_keys_add(hf_keys *keys, hf_key_node *key)
{
    hf_assert(key->len == 0 || key->bytes != NULL);
    memset(key->child, 0, sizeof key->child);
    hf_key_node **place = &keys->root;
    uint64_t path = key->hash;
    while (*place != NULL) {
        place = &(*place)->child[next_turn(&path)];
    }
    *place = key;
    keys->count++;
}

hf_key_node *hf_keys_find(const hf_keys *keys, uint64_t hash, const void *bytes, size_t len)
{
    uint64_t path = hash;
    hf_key_node *key = keys->root;
    while (key != NULL) {
        if (key->hash == hash && key->len == len && (len == 0 || memcmp(key->bytes, bytes, len) == 0)) {
            return key;
        }
        key = key->child[next_turn(&path)];
    }
    return NULL;
}

static hf_key_node **below(hf_key_node *key)
{
    for (size_t i = 0; i < HF_COUNT_OF(key->child); i++) {
        if (key->child[i] != NULL) {
            return &key->child[i];
        }
    }
    return NULL;
}

void hf_keys_remove(hf_keys *keys, hf_key_node *key)
{
    hf_assert(keys->count > 0);
    hf_key_node **place = &keys->root;
    uint64_t path = key->hash;
    while (*place != key) {
        hf_assert(*place != NULL);
        place = &(*place)->child[next_turn(&path)];
    }
    hf_key_node **leaf_place = place;
    for (hf_key_node **next = below(key); next != NULL; next = below(*next)) {
        leaf_place = next;
    }
    hf_key_node *leaf = *leaf_place;
    *leaf_place = NULL;
    if (leaf != key) {
        memcpy(leaf->child, key->child, sizeof leaf->child);
        *place = leaf;
    }
    keys->count--;
}

hf_status hf_key_check(hf_fiber *self, const char *verb, const void *bytes, size_t len)
{
    if (HF_UNLIKELY(bytes == NULL && len > 0)) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s needs a key", verb);
    }
    if (HF_UNLIKELY(len > HF_KEY_LEN_MAX)) {
        return hf_refuse_at(self, HF_ERR_TOO_BIG, verb, "a key of %zu bytes is over the %d that a key may have", len,
                            HF_KEY_LEN_MAX);
    }
    return HF_OK;
}
