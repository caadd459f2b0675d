/* hf_meta: the row "engine" of the meta table, with the data of the store as a whole. */
#ifndef HF_LEDGER_META_H
#define HF_LEDGER_META_H

#include "base/siphash.h"
#include "ledger/writes.h"

#define HF_META_NAMES 1      /* current format of the names: hashes (names.h) */
#define HF_META_NAMESPACES 1 /* current format of the namespaces: rows (namespaces.h) */

typedef struct hf_meta {
    unsigned char mac_key[HF_SIPHASH_KEY_LEN]; /* seals tokens, hashes names, hides numbers in run ids */
    uint64_t incarnation;                      /* of the last opening */
    uint32_t names;                            /* HF_META_NAMES, or less in an older file */
    uint32_t namespaces;                       /* HF_META_NAMESPACES, the same */
} hf_meta;

/* `*ret_found` false: the store was never opened by an engine, and `*ret_meta` is empty. The arena is for the row.
 * Fails: HF_ERR_INVALID, HF_ERR_NOMEM, and as the store does. */
hf_status hf_meta_read(hf_op *op, hf_store *store, hf_arena *arena, hf_meta *ret_meta, bool *ret_found);
void hf_meta_put(hf_writes *writes, const hf_meta *meta);

#endif
