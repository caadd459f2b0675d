/* Resets that are under way (machines/reset.c). */
#ifndef HF_ENGINE_RESET_H
#define HF_ENGINE_RESET_H

#include "base/list.h"
#include "engine/slot.h"
#include "history/limits.h"
#include "service/service.h"

typedef struct hf_commit_batch hf_commit_batch;
typedef struct hf_read hf_read;

/* A portion: what one step takes of histories, and what one commit writes of a run that does not exist yet. Some tenths of a millisecond of
 * work, and a commit that is not much longer than others. */
#define HF_RESET_PORTION_LEN ((size_t)256 << 10) /* bytes; an event that begins below this is part of it */
#define HF_RESET_PORTION_COUNT ((size_t)512)     /* events */

enum {
    HF_RESET_TRIES_MAX = 16
}; /* times that a reset begins again because other runs of its id have begun meanwhile */

/* All resets of a core; each is in one of the lists. */
typedef struct hf_resets {
    hf_list next;         /* have something to do in this step */
    hf_list idle;         /* wait for an answer of the store or a run */
    hf_list full;         /* their portion goes with the next commit */
    size_t count;         /* of all of them */
    HF_VEC(int64_t) undo; /* runs that are not made after all: their rows go with the next commit */
    size_t taken_len;     /* of histories by this step: bytes, events; engine-R1 */
    size_t taken_count;
} hf_resets;

void hf_resets_init(hf_core *core);
void hf_resets_deinit(hf_core *core);

void hf_reset_call(hf_core *core, hf_call *call, hf_run *run); /* ResetWorkflowExecution */

/* A step begins, ends. */
void hf_resets_begin_step(hf_core *core);
void hf_resets_pump(hf_core *core);
bool hf_resets_have_work(const hf_core *core); /* for another step */

/* Whether a commit would write or delete rows of runs that do not exist, and that commit. */
bool hf_resets_can_go(const hf_core *core);
/* Whether this is the number of a run that does not exist yet. Nobody may look for it: engine-R2. */
bool hf_resets_make(const hf_core *core, int64_t number);
void hf_resets_go(hf_core *core, hf_commit_batch *batch);
/* An opening has found rows of a run that was not made. Its first commit deletes them. */
void hf_reset_undo(hf_core *core, int64_t run);

/* Answers of the store to HF_READ_RESET. */
void hf_reset_rows_read(hf_core *core, hf_reset *reset, hf_read *read);
void hf_reset_failed(hf_core *core, hf_reset *reset, const char *why);

uint64_t hf_resets_hash(const hf_core *core, uint64_t hash);

#endif
