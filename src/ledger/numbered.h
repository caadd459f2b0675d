/* Rows of the meta table that belong to a run: a prefix that ends with '/', and the number of the run in hexadecimal digits, so that the
 * order of the texts is the order of the runs. */
#ifndef HF_LEDGER_NUMBERED_H
#define HF_LEDGER_NUMBERED_H

#include "ledger/writes.h"

#define HF_NUMBERED_PREFIX_MAX 16 /* bytes of a prefix */

/* All rows with the prefix, in the arena. Fails: HF_ERR_INVALID (a key does not name a run), as the store does. */
hf_status hf_numbered_scan(hf_op *op, hf_store *store, hf_str prefix, hf_arena *arena, hf_row **ret_rows,
                           size_t *ret_count);
int64_t hf_numbered_run(hf_str prefix, const hf_row *row); /* from its key; 0 = the key does not name a run */
hf_key hf_numbered_key(hf_writes *writes, hf_str prefix, int64_t run);

#endif
