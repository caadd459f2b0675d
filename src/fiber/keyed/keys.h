/* A set of byte keys, intrusive: whoever has a key to find embeds an hf_key_node. It allocates nothing and never has to
 * grow, so every step is fit to be done under an hf_spin.
 *
 * It is a trie over the bits of the keys' hashes, two bits a level, with a key in every node: a new key goes to the
 * first free place on its path. A node that is removed is replaced by any leaf below it, which shares its path. */
#ifndef HF_FIBER_KEYS_H
#define HF_FIBER_KEYS_H

#include "fiber/core.h"

typedef struct hf_key_node hf_key_node;
struct hf_key_node {
    hf_key_node *child[4];
    uint64_t hash;
    const void *bytes; /* owned by who embeds it */
    size_t len;
};

typedef struct hf_keys {
    hf_key_node *root;
    size_t count;
} hf_keys;

/* A seed for hashes, so that nobody outside can choose keys that share a path. */
uint64_t hf_keys_seed(hf_runtime *rt);
uint64_t hf_key_hash(uint64_t seed, const void *bytes, size_t len);

/* hash and bytes are set, the rest is the set's. The key must not be there yet. */
void hf_keys_add(hf_keys *keys, hf_key_node *key);
hf_key_node *hf_keys_find(const hf_keys *keys, uint64_t hash, const void *bytes, size_t len);
void hf_keys_remove(hf_keys *keys, hf_key_node *key);
/* Any key, to empty a set; NULL when there is none. */
static inline hf_key_node *hf_keys_any(const hf_keys *keys)
{
    return keys->root;
}

/* HF_ERR_MISUSE without bytes, HF_ERR_TOO_BIG over HF_KEY_LEN_MAX; the sentence is told to self. */
hf_status hf_key_check(hf_fiber *self, const char *verb, const void *bytes, size_t len);

#endif
