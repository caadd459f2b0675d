/* What is decided about the things of a run. How their changes are applied: src/run. Times are ns. */
#ifndef HF_ENGINE_MACHINES_MACHINES_H
#define HF_ENGINE_MACHINES_MACHINES_H

#include "base/op.h"
#include "engine/slot.h"
#include "service/service.h"

/* ---- execution.c --------------------------------------------------------------------------------------------------- */
/* A start whose workflow id is known. */
void hf_execution_start(hf_core *core, hf_call *call, hf_name *name);
void hf_execution_terminate(hf_core *core, hf_run *run, hf_str reason, hf_pb_payloads *details, hf_str identity);
/* The history is as long as it may get: the run is ended, true. */
bool hf_execution_is_too_long(hf_core *core, hf_run *run);
void hf_execution_time_out(hf_core *core, hf_run *run);
/* The run has just closed: it leaves queues, watchers are told. */
void hf_execution_closed(hf_core *core, hf_run *run);
void hf_execution_terminate_call(hf_core *core, hf_call *call, hf_run *run);

/* ---- signal.c -------------------------------------------------------------------------------------------------------- */
void hf_signal_call(hf_core *core, hf_call *call, hf_run *run);
void hf_cancel_call(hf_core *core, hf_call *call, hf_run *run);
/* True: a signal with this request id was accepted before. An empty id is never known. */
bool hf_request_is_known(const hf_run *run, hf_str request_id);
bool hf_run_has_buffered(hf_core *core, const hf_run *run, int32_t event_type);

/* ---- workflow_task_decide.c ------------------------------------------------------------------------------------------ */
/* Schedules one unless one is pending or the run is closed. The last thing a step does with a run: the task may start. */
void hf_wft_schedule(hf_core *core, hf_run *run);
/* A poller is there. Answers its call. */
void hf_wft_start(hf_core *core, hf_run *run, hf_call *call);
/* Ends the started task with a failure; buffered events follow. Does not schedule the next. */
void hf_wft_fail(hf_core *core, hf_run *run, int32_t cause, hf_pb_failure *failure, hf_str identity);
/* A transient task gets its events, so that it can be completed. */
void hf_wft_materialise(hf_core *core, hf_run *run);
void hf_wft_fail_call(hf_core *core, hf_call *call, hf_run *run);
void hf_wft_time_out(hf_core *core, hf_run *run); /* if it is due */
/* The holder is gone: the same task goes to the next poller. */
void hf_wft_again(hf_core *core, hf_run *run);
/* Its holder ended with an earlier process. The same, and the task is counted (suspect.c). */
void hf_wft_lost(hf_core *core, hf_run *run);
/* Puts a waiting task into its queue, once its pause is over. */
void hf_wft_enqueue(hf_core *core, hf_run *run);
void hf_wft_unstick(hf_core *core, hf_run *run);
/* The two events of a transient task, as the worker sees them: History bytes, in core->scratch. */
hf_str hf_wft_transient_events(hf_core *core, hf_run *run);

/* ---- activity_command.c, activity_decide.c, activity_end.c -------------------------------------------------------------- */
/* Is the command well-formed? Fills in defaults. The sentence is in core->op. */
bool hf_activity_command_is_good(hf_core *core, const hf_run *run,
                                 hf_pb_schedule_activity_task_command_attributes *attrs);
void hf_activity_schedule(hf_core *core, hf_run *run, const hf_pb_schedule_activity_task_command_attributes *attrs);
void hf_activity_request_cancel(hf_core *core, hf_run *run, int64_t scheduled_id);
/* Those that no worker has end at once, behind the events of all commands. True: there were some. */
bool hf_activities_cancel_early(hf_core *core, hf_run *run);
void hf_activity_start(hf_core *core, hf_activity *activity, hf_call *call);
void hf_activity_again(hf_core *core, hf_activity *activity);
void hf_activity_enqueue(hf_core *core, hf_run *run, hf_activity *activity);
/* Respond*, heartbeat: the call's token names this run. */
void hf_activity_answer(hf_core *core, hf_call *call, hf_run *run, const hf_token *token);
/* What is due: timeouts, the end of a back-off. True: an event was made. */
bool hf_activity_fire(hf_core *core, hf_run *run, hf_activity *activity);
/* Its worker died with an earlier incarnation. True: an event was made. */
bool hf_activity_lost(hf_core *core, hf_run *run, hf_activity *activity);
/* The outcome, and before it ActivityTaskStarted if an attempt runs. */
void hf_activity_emit_completed(hf_core *core, hf_run *run, const hf_activity *activity, hf_pb_payloads *result,
                                hf_str identity);
void hf_activity_emit_failed(hf_core *core, hf_run *run, const hf_activity *activity, hf_pb_failure *failure,
                             hf_str identity, int32_t retry_state);
/* Says which bound it was, how long that is, and `more`. In core->scratch; NULL: engine-E2. */
hf_pb_failure *hf_activity_timeout_failure(hf_core *core, const hf_activity *activity, int32_t type, const char *more);
/* The failure gets the last heartbeat's details, and as its cause the failure of the attempt before, unless that says the same. */
void hf_activity_emit_timed_out(hf_core *core, hf_run *run, const hf_activity *activity, hf_pb_failure *failure,
                                int32_t retry_state);
void hf_activity_emit_canceled(hf_core *core, hf_run *run, const hf_activity *activity, hf_pb_payloads *details,
                               hf_str identity);

/* ---- timer.c --------------------------------------------------------------------------------------------------------- */
void hf_timer_start(hf_core *core, hf_run *run, const hf_pb_start_timer_command_attributes *attrs);
void hf_timer_cancel(hf_core *core, hf_run *run, hf_str timer_id, hf_str identity);
bool hf_timer_is_due(const hf_core *core, const hf_timer *timer);
/* True: it was due and an event was made. */
bool hf_timer_fire(hf_core *core, hf_run *run, hf_timer *timer);

/* ---- external.c ------------------------------------------------------------------------------------------------------ */
void hf_external_signal(hf_core *core, hf_run *run,
                        const hf_pb_signal_external_workflow_execution_command_attributes *attrs);
void hf_external_cancel(hf_core *core, hf_run *run,
                        const hf_pb_request_cancel_external_workflow_execution_command_attributes *attrs);
/* The run that sent a signal or cancel request, and its event that says so; NULL: a client did. */
hf_pb_workflow_execution *hf_external_sender(hf_call *call, int64_t *ret_initiated_id);
/* It may only go to a child of the run that sent it, and no run has children so far. */
bool hf_external_is_for_child(const hf_call *call);
/* The message of this event goes out. */
void hf_external_post(hf_core *core, hf_run *run, int64_t initiated_id);
/* After a restart: what is on its way is sent again. */
void hf_external_post_all(hf_core *core, hf_run *run);
/* There is no room in the buffer of the message's run: it waits there. Sent on when the workflow task or the run ends. */
void hf_external_hold(hf_core *core, hf_call *message, hf_run *run);
void hf_external_release(hf_core *core, hf_run *run);
/* Messages that the last step made. */
void hf_inbox_pump(hf_core *core);

#endif
