/* The functions of the machines that apply.c and state.c use. Private to this layer. */
#ifndef HF_RUN_MACHINES_H
#define HF_RUN_MACHINES_H

#include "run/run.h"

#include <string.h>

/* Applies an event to the run. */
/* The message of a change. Its texts lie in its bytes, or where those of the caller's struct do: the run copies what it keeps. */
static inline hf_status hf_apply_read(hf_apply *a, const hf_pb_type *type, hf_str bytes, void *ret_msg)
{
    if (a->msg_type != type) {
        return hf_pb_decode(a->op, type, bytes, a->memory->scratch, ret_msg);
    }
    hf_assert(a->msg != NULL);
    memcpy(ret_msg, a->msg, type->size);
    return HF_OK;
}

typedef hf_status hf_apply_fn(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes);

/* ---- machines/execution.c ------------------------------------------------------------------------------------------------ */
hf_apply_fn hf_execution_started, hf_execution_closed_event, hf_execution_signaled, hf_execution_cancel_requested;

/* ---- attributes.c ---------------------------------------------------------------------------------------------------------- */
hf_apply_fn hf_memo_upserted, hf_attributes_upserted;

/* ---- machines/workflow_task.c -------------------------------------------------------------------------------------------- */
bool hf_wft_move(hf_apply *a, hf_run *run, hf_wft_state state);
hf_apply_fn hf_wft_scheduled, hf_wft_started, hf_wft_completed, hf_wft_timed_out, hf_wft_failed;
hf_status hf_wft_apply_scheduled(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_wft_apply_started(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_wft_apply_reset(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_task_apply_moved(hf_apply *a, hf_run *run, hf_str bytes);

/* ---- machines/activity.c ------------------------------------------------------------------------------------------------- */
/* Adds an activity at the end of the run's list. `bytes` is its ActivityTaskScheduled event, `event` the same decoded. NULL: no memory. */
hf_activity *hf_activity_add(hf_run_memory *memory, hf_run *run, const hf_pb_history_event *event, hf_str bytes);
hf_apply_fn hf_activity_scheduled, hf_activity_started_event, hf_activity_ended, hf_activity_cancel_requested;
/* The activity has ended, and its event waits for the end of the workflow task. Events that do not end an activity change nothing. */
hf_status hf_activity_mark_ended(hf_apply *a, hf_run *run, const hf_pb_history_event *event);
hf_status hf_activity_apply_started(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_activity_apply_retry(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_activity_apply_heartbeat(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_activity_apply_paused(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_activity_apply_controlled(hf_apply *a, hf_run *run, hf_str bytes);
/* Its worker does not want it: it waits for another one, or for the end of its pause. */
hf_status hf_activity_apply_moved(hf_apply *a, hf_run *run, hf_activity *activity, int64_t order);
/* ActivityOptions; empty = those of its event. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_activity_set_options(hf_op *op, hf_run_memory *memory, hf_activity *activity, hf_str options);

/* ---- machines/timer.c ------------------------------------------------------------------------------------------------------ */
hf_timer *hf_timer_add(hf_run_memory *memory, hf_run *run, int64_t started_id, hf_str timer_id, int64_t fire_time);
hf_apply_fn hf_timer_started, hf_timer_ended;
hf_status hf_timer_mark_fired(hf_apply *a, hf_run *run, const hf_pb_history_event *event);

/* ---- machines/update.c ----------------------------------------------------------------------------------------------------- */
hf_update_state hf_update_state_of(const hf_update *update);
hf_update *hf_update_add(hf_run_memory *memory, hf_run *run, hf_str id);
hf_apply_fn hf_update_admitted, hf_update_accepted, hf_update_completed;

/* ---- reset.c --------------------------------------------------------------------------------------------------------------- */
/* Adds one at the end; the oldest goes if there are too many. */
void hf_resets_add(hf_run_memory *memory, hf_run *run, hf_str request_id, hf_str run_id);
void hf_resets_free(hf_run_memory *memory, hf_run *run);
hf_status hf_run_apply_reset(hf_apply *a, hf_run *run, hf_str bytes);
/* Whether the event ends a run because a reset puts another one in its place. */
bool hf_event_is_of_reset(const hf_pb_history_event *event);

/* ---- options.c ------------------------------------------------------------------------------------------------------------- */
hf_attached *hf_attached_add(hf_run_memory *memory, hf_run *run, hf_str id, int64_t event_id);
hf_apply_fn hf_options_updated;

/* ---- machines/external.c ----------------------------------------------------------------------------------------------------- */
/* Whether an event has the target and the content of a message. */
bool hf_external_is_good(const hf_pb_history_event *event);
hf_external *hf_external_add(hf_run_memory *memory, hf_run *run, int64_t initiated_id, hf_str event);
hf_apply_fn hf_external_initiated, hf_external_ended;
hf_status hf_external_apply_gone(hf_apply *a, hf_run *run, int64_t initiated_id);
/* As hf_activity_mark_ended. */
hf_status hf_external_mark_ended(hf_apply *a, hf_run *run, const hf_pb_history_event *event);

/* ---- machines/operation.c ------------------------------------------------------------------------------------------------ */
hf_status hf_operation_apply_started(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_operation_apply_moved(hf_apply *a, hf_run *run, hf_str bytes);
/* From its row; the run has its kind and its status. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_operation_read(hf_op *op, hf_run_memory *memory, hf_run *run, const hf_pb_run_state *state);

/* ---- machines/child.c -------------------------------------------------------------------------------------------------------- */
hf_child *hf_child_add(hf_run_memory *memory, hf_run *run,
                       int64_t initiated_id); /* initiated, without its texts; NULL: no memory */
hf_apply_fn hf_child_initiated, hf_child_started, hf_child_ended;
hf_status hf_child_apply_gone(hf_apply *a, hf_run *run, int64_t initiated_id);
/* As hf_activity_mark_ended; also a Started event that waits. */
hf_status hf_child_mark(hf_apply *a, hf_run *run, const hf_pb_history_event *event);
void hf_child_set(hf_run *run, hf_child *child, hf_child_state state); /* keeps hf_run.moving */
/* The run closes. `is_reset`: another one takes its place and its children. */
void hf_children_leave(hf_run_memory *memory, hf_run *run, bool is_reset);
void hf_children_free(hf_run_memory *memory, hf_run *run);

#endif
