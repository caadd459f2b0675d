/* A set of byte keys. It is intrusive: an object with a key embeds an hf_key_node. The set allocates nothing and
 * never has to grow, so every operation may be done under an hf_spin.
 *
 * The set is a trie over the bits of the keys' hashes, two bits per level, with a key in every node: a new key goes
 * to the first free place on its path. A node that is removed is replaced by any leaf below it, because that leaf
 * shares its path. */
#ifndef HF_FIBER_KEYS_H
#define HF_FIBER_KEYS_H

#include "fiber/core.h"

typedef struct hf_key_node hf_key_node;
struct hf_key_node {
    hf_key_node *child[4];
    uint64_t hash;
    const void *bytes; /* owned by the object that embeds the node */
    size_t len;
};

typedef struct hf_keys {
    hf_key_node *root;
    size_t count;
} hf_keys;

/* A random seed for hashes, so that nobody can choose keys that share a path. */
uint64_t hf_keys_seed(hf_runtime *rt);
uint64_t hf_key_hash(uint64_t seed, const void *bytes, size_t len);

/* The caller has set hash, bytes and len. The key must not be in the set. */
void hf_keys_add(hf_keys *keys, hf_key_node *key);
hf_key_node *hf_keys_find(const hf_keys *keys, uint64_t hash, const void *bytes, size_t len);
void hf_keys_remove(hf_keys *keys, hf_key_node *key);
/* Any key, for emptying a set; NULL = the set is empty. */
static inline hf_key_node *hf_keys_any(const hf_keys *keys)
{
    return keys->root;
}

/* Fails: HF_ERR_MISUSE (there are no bytes), HF_ERR_TOO_BIG (over HF_KEY_LEN_MAX); reported to self. */
hf_status hf_key_check(hf_fiber *self, const char *verb, const void *bytes, size_t len);

#endif
