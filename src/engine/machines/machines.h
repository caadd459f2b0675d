/* The decisions about a run and its parts. How their changes are applied: src/run. Times are ns. */
#ifndef HF_ENGINE_MACHINES_MACHINES_H
#define HF_ENGINE_MACHINES_MACHINES_H

#include "base/op.h"
#include "engine/slot.h"
#include "service/service.h"

/* The identity in events that the engine itself decided: a Temporal server's word. */
#define HF_IDENTITY_ENGINE HF_STR("history-service")

/* ---- execution.c --------------------------------------------------------------------------------------------------- */
typedef struct hf_signal hf_signal;
/* A link to the event of this type that the request has made. NULL: the arena has no memory. */
hf_pb_link *hf_link_to_request(hf_arena *arena, const hf_run *run, hf_str request_id, int32_t event_type);
/* A start whose workflow id is known. */
void hf_execution_start(hf_core *core, hf_call *call, hf_name *name);
/* Whether the policies of the start let a new run follow the current one, which is terminated if it is open. If not the call has failed. */
bool hf_execution_make_room(hf_core *core, hf_call *call, const hf_pb_start_workflow_execution_request *request,
                            hf_run *current);
/* The new run of a start, with a first signal unless it is NULL. NULL: engine-E2. */
hf_run *hf_execution_new(hf_core *core, hf_call *call, const hf_pb_start_workflow_execution_request *request,
                         hf_name *name, const hf_signal *signal);
/* A new run with a number and an id, and nothing else. NULL: engine-E2. */
hf_run *hf_execution_create(hf_core *core, hf_str namespace_, hf_str workflow_id, hf_str request_id, hf_run_kind kind);
/* The id of a new run, in the scratch. */
hf_str hf_execution_new_id(hf_core *core, int64_t number);
/* Its first event, of which `event` has the metadata and links, and its first workflow task, now or after its pause. */
void hf_execution_begin(hf_core *core, hf_run *run, hf_start_facts *body, hf_pb_history_event *event);
/* Before its first event: it is deleted so many ns after its end; 0 = when its namespace says. */
void hf_execution_keep(hf_core *core, hf_run *run, int64_t span);
void hf_execution_terminate(hf_core *core, hf_run *run, hf_str reason, hf_pb_payloads *details, hf_str identity);
/* True: with `more` events the history is beyond a limit, and the run was ended. */
bool hf_execution_is_too_long(hf_core *core, hf_run *run, int64_t more);
/* Whether the run may have `count` events. If not, nothing of the call is done: the run is ended, and the call answered. */
bool hf_execution_may_have(hf_core *core, hf_call *call, hf_run *run, int64_t count);
/* The same for `more` events that a call brings while no workflow task is started, and the task that they need. */
bool hf_execution_has_room(hf_core *core, hf_call *call, hf_run *run, int64_t more);
void hf_execution_time_out(hf_core *core, hf_run *run);
/* The run has just closed: it leaves queues, watchers are told. */
void hf_execution_closed(hf_core *core, hf_run *run);
void hf_execution_terminate_call(hf_core *core, hf_call *call, hf_run *run);

/* ---- input_check.c ----------------------------------------------------------------------------------------------------- */
bool hf_queue_name_is_good(hf_str name); /* set, not too long, and not one that Temporal keeps for itself */
bool hf_queue_is_good_or_none(const hf_pb_task_queue *queue);

/* ---- options.c ------------------------------------------------------------------------------------------------------ */
/* UpdateWorkflowExecutionOptions. */
void hf_options_call(hf_core *core, hf_call *call, hf_run *run);
/* Whether a run may get these options; false: the call has failed. */
bool hf_options_are_good(hf_core *core, hf_call *call, const hf_pb_workflow_execution_options *options,
                         const hf_pb_field_mask *mask);
/* What the options of a run become; parts of it are in the scratch arena. False: they stay as they are, or the core is broken. */
bool hf_options_change(hf_core *core, const hf_run *run, const hf_pb_workflow_execution_options *options,
                       const hf_pb_field_mask *mask, hf_pb_workflow_execution_options *ret_after);
/* A start is answered with this run, and leaves with it what its on_conflict_options say. False: the call has failed, or engine-E2. */
bool hf_options_attach(hf_core *core, hf_call *call, hf_run *run,
                       const hf_pb_start_workflow_execution_request *request);
/* Whether a priority has possible values; if not the call has failed. */
bool hf_priority_is_good(hf_core *core, hf_call *call, const hf_pb_priority *priority);

/* ---- delete.c -------------------------------------------------------------------------------------------------------- */
void hf_delete_call(hf_core *core, hf_call *call, hf_run *run);
/* The same of a run whose records are damaged, and which the call names by its run id. False: it is being deleted already. */
bool hf_delete_bad_call(hf_core *core, hf_call *call, hf_run *run);

/* ---- signal.c, signal_start.c ---------------------------------------------------------------------------------------- */
/* A signal, whoever sends it. */
typedef struct hf_signal {
    hf_str name, identity, request_id;
    hf_pb_payloads *input;
    hf_pb_header *header;
    hf_pb_link_list links;
    hf_pb_workflow_execution *sender; /* another run; NULL = a client */
} hf_signal;

/* Whether the run may get one more; if not the call has failed. */
bool hf_signal_fits(hf_core *core, hf_call *call, hf_run *run);
/* Its event, now or behind the started workflow task; hf_wft_schedule follows. */
void hf_signal_add(hf_core *core, hf_run *run, const hf_signal *signal);
/* SignalWithStartWorkflowExecution, whose workflow id is known. */
void hf_signal_start_call(hf_core *core, hf_call *call, hf_name *name);
/* The start among its fields. */
hf_pb_start_workflow_execution_request hf_signal_start_of(const hf_call *call);
void hf_signal_call(hf_core *core, hf_call *call, hf_run *run);
void hf_cancel_call(hf_core *core, hf_call *call, hf_run *run);
/* True: a signal with this request id was accepted before. An empty id is never known. */
bool hf_request_is_known(const hf_run *run, hf_str request_id);
bool hf_run_has_buffered(hf_core *core, const hf_run *run, int32_t event_type);

/* ---- workflow_task_*.c ----------------------------------------------------------------------------------------------- */
/* Schedules a workflow task unless one is pending or the run is closed. A step calls it last: the task may start at once. */
void hf_wft_schedule(hf_core *core, hf_run *run);
/* The same, even if the first task of the run should wait still: for an update or a signal with start, whose caller does not want to wait. */
void hf_wft_schedule_now(hf_core *core, hf_run *run);
/* Events were added for which no task is needed: are there too many, in the history or in the buffer? */
void hf_wft_check_length(hf_core *core, hf_run *run);
/* The same for a task that goes on with the last one, which a worker has kept alive since `first_time`; 0 = it does not. */
void hf_wft_schedule_next(hf_core *core, hf_run *run, int64_t first_time);
/* Whether the task waits and may go to the caller with the answer to `call`, which is not a poll. Then starts it so, and replies. */
bool hf_wft_may_go_with(const hf_core *core, const hf_run *run, const hf_call *call);
void hf_wft_start_with(hf_core *core, hf_run *run, hf_call *call, hf_str identity,
                       hf_pb_poll_workflow_task_queue_response **ret_task);
/* A worker has kept the started task alive for too long: it times out. */
void hf_wft_keep_alive_over(hf_core *core, hf_run *run);
/* Whether the worker that has the run is alive: its task goes to the sticky queue. */
bool hf_wft_wants_sticky(hf_core *core, const hf_run *run);
/* Fills in the fields that the answer to a poll has for every task: its token and its run. False: engine-E2. */
bool hf_wft_name_task(hf_core *core, const hf_run *run, hf_call *call, const hf_token *token,
                      hf_pb_poll_workflow_task_queue_response *response);
/* Starts the waiting task for the poll `call`, and answers the call. */
void hf_wft_start(hf_core *core, hf_run *run, hf_call *call);
/* Ends the started task with a failure; buffered events follow. Does not schedule the next. */
void hf_wft_fail(hf_core *core, hf_run *run, int32_t cause, hf_pb_failure *failure, hf_str identity);
/* Writes the events of a transient task, so that it can be completed. */
void hf_wft_materialise(hf_core *core, hf_run *run);
void hf_wft_fail_call(hf_core *core, hf_call *call, hf_run *run);
void hf_wft_time_out(hf_core *core, hf_run *run); /* if it is due */
/* The holder is gone: the same task goes to the next poller. */
void hf_wft_again(hf_core *core, hf_run *run);
/* Its holder ended with its process. The same, and the task is counted if that process did not end well (suspect.c). */
void hf_wft_lost(hf_core *core, hf_run *run, bool is_unclean);
/* Puts a waiting task into its queue, once its pause is over. */
void hf_wft_enqueue(hf_core *core, hf_run *run);
void hf_wft_unstick(hf_core *core, hf_run *run);
/* The same, and a task that waits in the sticky queue goes to the normal one. */
void hf_wft_move_to_all(hf_core *core, hf_run *run);
/* The two events of a transient task, as the worker sees them: History bytes, in core->scratch. */
hf_str hf_wft_transient_events(hf_core *core, const hf_run *run, const hf_wft *wft);
/* The same for a reader of the history that has no task: of a task that is only scheduled the first one; empty = they are written. */
hf_str hf_wft_unwritten_events(hf_core *core, const hf_run *run, const hf_wft *wft);
/* For speculative tasks (speculative.c): the parts of the above that are alike. */
int64_t hf_wft_timeout(hf_core *core, const hf_run *run, int32_t attempt);
void hf_wft_answer(hf_core *core, hf_run *run, const hf_wft *wft, hf_call *call, bool sticky, bool again);
/* The speculative task becomes the workflow task of the run, with its events. `identity` goes into the Started event. */
void hf_wft_write(hf_core *core, hf_run *run, const hf_wft *from, hf_str identity);

/* ---- activity_*.c ------------------------------------------------------------------------------------------------------- */
/* Whether the command is well-formed; fills in defaults. If not, the message is in core->op. */
bool hf_activity_command_is_good(hf_core *core, const hf_run *run,
                                 hf_pb_schedule_activity_task_command_attributes *attrs);
/* The activities of these commands that are to run where their workflow does begin with its worker, in the answer to its call. */
void hf_activities_go_with(hf_core *core, hf_run *run, hf_call *call,
                           hf_pb_respond_workflow_task_completed_response *response);
void hf_activity_schedule(hf_core *core, hf_run *run, const hf_pb_schedule_activity_task_command_attributes *attrs);
void hf_activity_request_cancel(hf_core *core, hf_run *run, int64_t scheduled_id);
/* Canceled activities that no worker has end at once, after the events of all commands of the worker `identity`. True: there were
 * some. */
bool hf_activities_cancel_early(hf_core *core, hf_run *run, hf_str identity);
void hf_activity_start(hf_core *core, hf_activity *activity, hf_call *call);
/* An attempt begins with the caller, and what its worker needs. */
void hf_activity_give(hf_core *core, hf_activity *activity, const hf_call *call, hf_str identity);
void hf_activity_task(hf_core *core, hf_activity *activity, hf_arena *arena,
                      hf_pb_poll_activity_task_queue_response *response);
/* As it is now, in the arena; NULL = there is none, or engine-E2. */
hf_pb_retry_policy *hf_activity_policy(hf_core *core, const hf_activity *activity, hf_arena *arena);
void hf_activity_again(hf_core *core, hf_activity *activity);
void hf_activity_enqueue(hf_core *core, hf_run *run, hf_activity *activity);
/* An attempt whose process ended: the number of times in a row that this has happened, and the pause (ns) that follows. */
typedef struct hf_loss {
    uint32_t crashes;
    int64_t pause;
} hf_loss;

/* Schedules another attempt after `failure`: HF_RETRY_STATE_IN_PROGRESS; any other state says why there is none. The pause is the policy's, or
 * that of `loss` if there is one. */
int32_t hf_activity_retry(hf_core *core, hf_run *run, hf_activity *activity, const hf_pb_failure *failure,
                          const hf_loss *loss);
/* Respond*, heartbeat: the call's token names this run. */
void hf_activity_answer(hf_core *core, hf_call *call, hf_run *run, const hf_token *token);
/* The same for a call that names the activity by its id. */
void hf_activity_answer_by_id(hf_core *core, hf_call *call, hf_run *run);
/* Handles a deadline that has come: a timeout, or the end of a back-off. True: an event was made. */
bool hf_activity_fire(hf_core *core, hf_run *run, hf_activity *activity);
/* Its worker died with an earlier incarnation. True: an event was made. */
bool hf_activity_lost(hf_core *core, hf_run *run, hf_activity *activity);
/* The same for one of another process, which has gone while this one goes on; `is_unclean`: without a goodbye. */
bool hf_activity_gone(hf_core *core, hf_run *run, hf_activity *activity, bool is_unclean);
/* The outcome, and before it ActivityTaskStarted if an attempt runs. */
void hf_activity_emit_completed(hf_core *core, hf_run *run, const hf_activity *activity, hf_pb_payloads *result,
                                hf_str identity);
void hf_activity_emit_failed(hf_core *core, hf_run *run, const hf_activity *activity, hf_pb_failure *failure,
                             hf_str identity, int32_t retry_state);
/* The message names the timeout and its length, and ends with `more`. In core->scratch; NULL: engine-E2. */
hf_pb_failure *hf_activity_timeout_failure(hf_core *core, const hf_activity *activity, int32_t type, const char *more);
/* The failure gets the last heartbeat's details, and as its cause the failure of the attempt before, unless that is the same. */
void hf_activity_emit_timed_out(hf_core *core, hf_run *run, const hf_activity *activity, hf_pb_failure *failure,
                                int32_t retry_state);
void hf_activity_emit_canceled(hf_core *core, hf_run *run, const hf_activity *activity, hf_pb_payloads *details,
                               hf_str identity);

/* ---- activity_control.c ------------------------------------------------------------------------------------------------ */
/* PauseActivity, UnpauseActivity, ResetActivity, UpdateActivityOptions. */
bool hf_activity_is_named(const hf_call *call); /* by such a call: by an id or a type, or all are */
void hf_activity_control_call(hf_core *core, hf_call *call, hf_run *run);

/* ---- timer.c --------------------------------------------------------------------------------------------------------- */
void hf_timer_start(hf_core *core, hf_run *run, const hf_pb_start_timer_command_attributes *attrs);
void hf_timer_cancel(hf_core *core, hf_run *run, hf_str timer_id, hf_str identity);
bool hf_timer_is_due(const hf_core *core, const hf_timer *timer);
/* True: it was due and an event was made. */
bool hf_timer_fire(hf_core *core, hf_run *run, hf_timer *timer);

/* ---- external.c ------------------------------------------------------------------------------------------------------ */
void hf_external_decide_signal(hf_core *core, hf_run *run,
                               const hf_pb_signal_external_workflow_execution_command_attributes *attrs);
void hf_external_decide_cancel(hf_core *core, hf_run *run,
                               const hf_pb_request_cancel_external_workflow_execution_command_attributes *attrs);

/* ---- child.c ---------------------------------------------------------------------------------------------------------- */
/* See message.h and commands.h. */

#endif
