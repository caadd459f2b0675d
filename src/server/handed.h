/* Which runs a worker was handed a workflow task or a query of, lately: their histories are those that a key with the role worker may read
 * from their first event on.
 *
 * A run is remembered for the key and for the connection that got the task. So a worker that has connected again is known by its key, and one that
 * was given another key meanwhile by its connection.
 *
 * Only hashes are kept, in a table of fixed size; where there is no room, what was handed out first is forgotten. The hash has a random key, so
 * nobody can choose two runs with the same one. */
#ifndef HF_SERVER_HANDED_H
#define HF_SERVER_HANDED_H

#include "base/env.h"
#include "base/siphash.h"
#include "base/spin.h"
#include "base/str.h"

enum { HF_HANDED_SETS = 32768, HF_HANDED_WAYS = 8, HF_HANDED_SECONDS = 3600 };

/* A caller: the id of its key, and the number of its connection. */
typedef struct hf_bearer {
    hf_str key_id;
    uint64_t link;
} hf_bearer;

typedef struct hf_handed hf_handed;

/* NULL: out of memory. */
hf_handed *hf_handed_new(hf_env *env);
void hf_handed_free(hf_handed *handed); /* accepts NULL */
/* Both from any thread. */
void hf_handed_note(hf_handed *handed, hf_bearer to, hf_str namespace_, hf_str run_id, int64_t now_ns);
bool hf_handed_has(hf_handed *handed, hf_bearer to, hf_str namespace_, hf_str run_id, int64_t now_ns);

#endif
