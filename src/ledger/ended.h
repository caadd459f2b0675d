/* When runs that have ended are deleted, and what they take until then. */
#ifndef HF_LEDGER_ENDED_H
#define HF_LEDGER_ENDED_H

#include "base/op.h"
#include "store/store.h"

/* How long the runs of a namespace stay. */
typedef struct hf_keeping {
    hf_str namespace_;
    int64_t span; /* ns after the end */
} hf_keeping;

/* When a run goes that ended then; INT64_MAX = never. `keep`: its own span, 0 = that of its namespace. */
int64_t hf_keeping_expiry(const hf_keeping *keepings, size_t count, hf_str namespace_, int64_t keep,
                          int64_t close_time);

typedef struct hf_ended_report {
    uint64_t runs;
    uint64_t len;          /* bytes of their states, histories and streams */
    uint64_t expired_runs; /* of those, whose time is over */
    uint64_t expired_len;
} hf_ended_report;

/* Adds a row of the table run, unless the run is open, is not a workflow, or its row cannot be read. `now`: wall ns. Fails: HF_ERR_NOMEM. */
hf_status hf_ended_add(hf_op *op, const hf_row *row, const hf_keeping *keepings, size_t count, int64_t now,
                       hf_arena *arena, hf_ended_report *report);

#endif
