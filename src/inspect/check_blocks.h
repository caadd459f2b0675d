/* Blocks of runs that have ended, compared with the rows of these runs: ledger-E1 to ledger-E3. */
#ifndef HF_INSPECT_CHECK_BLOCKS_H
#define HF_INSPECT_CHECK_BLOCKS_H

#include "base/op.h"
#include "store/store.h"

/* `found` gets a sentence for each block that is wrong. Records that do not check are left out. Fails: HF_ERR_NOMEM, as the store does. */
hf_status hf_check_blocks(hf_op *op, hf_allocator memory, hf_store *store,
                          void (*found)(void *state, const char *sentence), void *state);

#endif
