/* The commit that a batch becomes: rows, journal, meta record. */
#ifndef HF_ENGINE_BATCH_H
#define HF_ENGINE_BATCH_H

#include "base/list.h"
#include "engine/core.h"
#include "ledger/writes.h"
#include "run/run.h"
#include "store/store.h"

/* A commit on its way. */
typedef struct hf_commit_batch {
    hf_store_request request;
    hf_writes writes;
    hf_buf journal;  /* the journal row, built in place */
    hf_list replies; /* calls that are answered once the commit is durable */
    hf_list notices; /* hf_notice: lines of the log, likewise */
} hf_commit_batch;

void hf_spill(hf_core *core, hf_commit_batch *batch, hf_run *run);
void hf_spill_old(hf_core *core, hf_commit_batch *batch);
void hf_journal_put(hf_core *core, hf_commit_batch *batch);

void hf_core_put_meta(hf_core *core, hf_commit_batch *batch);

#endif
