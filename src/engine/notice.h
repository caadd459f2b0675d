/* Lines in the log about runs and their limits. */
#ifndef HF_ENGINE_NOTICE_H
#define HF_ENGINE_NOTICE_H

#include "engine/batch.h"

typedef enum hf_notice_kind {
    HF_NOTICE_EVENTS,  /* a fifth of the events that a run may have */
    HF_NOTICE_BYTES,   /* the same for the bytes of its history */
    HF_NOTICE_SIGNALS, /* the same for its signals */
    HF_NOTICE_ENDED    /* its history was as long as it may get */
} hf_notice_kind;
/* An event was added to the run's history, which had `len_before` bytes and `signals_before` signals before. */
void hf_notice_event(hf_core *core, hf_run *run, int64_t len_before, int64_t signals_before);
/* Writes to `text` which of the two limits the history has reached, its size (over_count, over_len), and what to do. */
void hf_notice_sentence(const hf_core *core, const hf_run *run, char text[HF_MESSAGE_LEN_MAX]);
void hf_notice_gather(hf_core *core, hf_commit_batch *batch, hf_run *run); /* moves the run's notices to this batch */
void hf_notice_tell(hf_core *core, hf_commit_batch *batch);                /* logs them: the batch is durable */

#endif
