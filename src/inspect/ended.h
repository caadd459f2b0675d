/* How much space runs that have ended take, and which of them retention would delete now. */
#ifndef HF_INSPECT_ENDED_H
#define HF_INSPECT_ENDED_H

#include "inspect/find.h"

#include "base/op.h"
#include "store/store.h"

typedef struct hf_ended_figures {
    uint64_t runs;
    uint64_t len;          /* bytes of their states and histories */
    uint64_t expired_runs; /* of those, whose time is over */
    uint64_t expired_len;
} hf_ended_figures;

/* Reads the row of every run of a store at rest. `now`: wall ns. Rows that cannot be read are left out. Fails: HF_ERR_INVALID (the row of a namespace
 * is damaged), HF_ERR_NOMEM, as the store does. */
hf_status hf_ended_look(hf_op *op, hf_store *store, hf_allocator memory, int64_t now, hf_find_told *progress,
                        hf_ended_figures *ret_figures);

#endif
