/* API keys: who may do what in which namespace.
 *
 * A key is "hf_<id>_<secret>": 8 and 64 hexadecimal digits, the secret of 256 random bits. The file of keys has a line for each, with
 * the SHA-256 of the whole key, so that the file cannot be used as a key:
 *
 *     <id> <hash> <expiry: seconds since 1970, or 0> <permissions: namespace:role,namespace:role> <label>
 *
 * A namespace is a name or *; a role is read, write, worker or admin. Lines that begin with # are comments.
 *
 * server-K1  Keys are compared by their hash, in constant time, and only after the id has led to the line.
 * server-K2  Without a valid key nothing is answered but health.
 * server-K3  A key that is only a worker's reads the history of a run if this key, or its connection, was handed a workflow task or a query of
 *     the run in the last hour; or with a page token that came with a task; or, after a restart, while the task that was in hand then still is. */
#ifndef HF_SERVER_AUTH_H
#define HF_SERVER_AUTH_H

#include "base/arena.h"
#include "base/op.h"
#include "server/methods.h"
#include "wire/tls.h"

enum {
    HF_KEY_ID_LEN = 8,
    HF_KEY_SECRET_LEN = 64,
    HF_KEY_LEN = 3 + HF_KEY_ID_LEN + 1 + HF_KEY_SECRET_LEN, /* "hf_", id, "_", secret */
    HF_KEYS_MAX = 10000,                                    /* of one file */
    HF_KEY_GRANTS_MAX = 64                                  /* permissions of one key */
};

typedef struct hf_grant {
    hf_str namespace_; /* "*" = all */
    hf_role role;
} hf_grant;

typedef struct hf_api_key {
    hf_str id;
    unsigned char hash[HF_SHA256_LEN];
    int64_t expires_s; /* seconds since 1970; 0 = never */
    hf_grant *grants;
    size_t grant_count;
    hf_str label;
} hf_api_key;

/* All keys of a file; never changes. */
typedef struct hf_keyring {
    hf_api_key *keys;
    size_t count;
    hf_arena arena;
    atomic_int refs;
    hf_allocator memory;
} hf_keyring;

/* Fails: HF_ERR_INVALID with the number of the line, HF_ERR_NOMEM. */
hf_status hf_keyring_parse(hf_op *op, hf_allocator memory, hf_str text, hf_keyring **ret_ring);
hf_keyring *hf_keyring_ref(hf_keyring *ring);
void hf_keyring_unref(hf_keyring *ring); /* accepts NULL */

/* The key that this token is. NULL: it is none, or has expired. */
const hf_api_key *hf_keyring_find(const hf_keyring *ring, hf_str token, int64_t now_s);
/* Whether the key may use a route in a namespace. A route of the system needs the role in any namespace. */
bool hf_api_key_may(const hf_api_key *key, const hf_route *route, hf_str namespace_);

/* Parses "ns:role,ns:role" into the arena. */
hf_status hf_grants_parse(hf_op *op, hf_arena *arena, hf_str text, hf_grant **ret_grants, size_t *ret_count);
const char *hf_role_name(hf_role role);
/* Makes the text of a key from 36 random bytes. */
void hf_api_key_format(const unsigned char random[36], char ret_text[HF_KEY_LEN + 1]);
void hf_hex(const unsigned char *bytes, size_t len, char *ret_text); /* 2 * len characters and a NUL */

#endif
