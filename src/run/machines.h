/* What the machines offer to apply.c and state.c. Private to this layer. */
#ifndef HF_RUN_MACHINES_H
#define HF_RUN_MACHINES_H

#include "run/run.h"

/* An event becomes state. */
typedef hf_status hf_apply_fn(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes);

/* ---- machines/execution.c ------------------------------------------------------------------------------------------------ */
hf_apply_fn hf_execution_started, hf_execution_closed_event, hf_execution_signaled, hf_execution_cancel_requested;

/* ---- machines/workflow_task.c -------------------------------------------------------------------------------------------- */
bool hf_wft_move(hf_apply *a, hf_run *run, hf_wft_state state);
hf_apply_fn hf_wft_scheduled, hf_wft_started, hf_wft_completed, hf_wft_timed_out, hf_wft_failed;
hf_status hf_wft_apply_scheduled(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_wft_apply_started(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_wft_apply_reset(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_task_apply_moved(hf_apply *a, hf_run *run, hf_str bytes);

/* ---- machines/activity.c ------------------------------------------------------------------------------------------------- */
/* At the end of the run's list. `bytes` is its ActivityTaskScheduled event, which `event` says, too. NULL: no memory. */
hf_activity *hf_activity_add(hf_run_memory *memory, hf_run *run, const hf_pb_history_event *event, hf_str bytes);
hf_apply_fn hf_activity_scheduled, hf_activity_started_event, hf_activity_ended, hf_activity_cancel_requested;
/* It has ended, and its event waits for the end of the workflow task. Other events than those that end an activity change nothing. */
hf_status hf_activity_mark_ended(hf_apply *a, hf_run *run, const hf_pb_history_event *event);
hf_status hf_activity_apply_started(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_activity_apply_retry(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_activity_apply_heartbeat(hf_apply *a, hf_run *run, hf_str bytes);

/* ---- machines/timer.c ------------------------------------------------------------------------------------------------------ */
hf_timer *hf_timer_add(hf_run_memory *memory, hf_run *run, int64_t started_id, hf_str timer_id, int64_t fire_time);
hf_apply_fn hf_timer_started, hf_timer_ended;
hf_status hf_timer_mark_fired(hf_apply *a, hf_run *run, const hf_pb_history_event *event);

/* ---- machines/external.c ----------------------------------------------------------------------------------------------------- */
/* Whether an event says to whom a message goes, and what it is. */
bool hf_external_is_good(const hf_pb_history_event *event);
hf_external *hf_external_add(hf_run_memory *memory, hf_run *run, int64_t initiated_id, hf_str event);
hf_apply_fn hf_external_initiated, hf_external_ended;
hf_status hf_external_apply_gone(hf_apply *a, hf_run *run, int64_t initiated_id);
/* As hf_activity_mark_ended. */
hf_status hf_external_mark_ended(hf_apply *a, hf_run *run, const hf_pb_history_event *event);

#endif
