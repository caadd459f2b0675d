/* Shared by the files of workflow tasks: workflow_task_events.c, _schedule.c, _start.c and _end.c. */
#ifndef HF_ENGINE_MACHINES_WORKFLOW_TASK_PRIVATE_H
#define HF_ENGINE_MACHINES_WORKFLOW_TASK_PRIVATE_H

#include "engine/core_private.h"

/* The facts that a Started event tells. */
typedef struct hf_wft_facts {
    int64_t count; /* events of the history before it ... */
    int64_t len;   /* ... and their bytes */
    bool has_many_updates;
    hf_str identity;
    hf_str request_id;
    int64_t time;
    int64_t scheduled_id;
} hf_wft_facts;

/* ---- workflow_task_events.c --------------------------------------------------------------------------------------------- */

void hf_wft_emit_scheduled(hf_core *core, hf_run *run, int32_t attempt, int64_t timeout, int64_t time);
/* The Started event, which is not written; its body is in the scratch. */
hf_pb_history_event hf_wft_started_event(hf_core *core, const hf_wft_facts *facts);

/* ---- workflow_task_end.c ------------------------------------------------------------------------------------------------ */

/* The started task fails. Buffered events stay where they are. */
void hf_wft_fail_task(hf_core *core, hf_run *run, int32_t cause, hf_pb_failure *failure, hf_str identity);
/* An attempt has failed or timed out. If it was sticky that may be the fault of the one worker: the next one counts as a first
 * attempt and is for all workers. */
void hf_wft_unstick_failed(hf_core *core, hf_run *run);

#endif
