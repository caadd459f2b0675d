/* Updates: a caller asks a workflow's code to do something, and gets its answer. */
#ifndef HF_ENGINE_MACHINES_UPDATE_H
#define HF_ENGINE_MACHINES_UPDATE_H

#include "engine/commands.h"
#include "engine/core.h"
#include "engine/slot.h"
#include "engine/unwritten.h"

void hf_update_call(hf_core *core, hf_call *call, hf_run *run);      /* UpdateWorkflowExecution */
void hf_update_poll_call(hf_core *core, hf_call *call, hf_run *run); /* PollWorkflowExecutionUpdate */
/* The update of an ExecuteMultiOperation, whose run is there. `is_new`: the call has started it. */
void hf_update_of_start(hf_core *core, hf_call *call, hf_run *run,
                        const hf_pb_update_workflow_execution_request *request, bool is_new);
/* Whether the request can be an update; if not the call has failed. */
bool hf_update_is_good(hf_core *core, hf_call *call, const hf_pb_update_workflow_execution_request *request);
/* The caller of a parked call goes, or has waited long enough. */
void hf_update_drop(hf_core *core, hf_call *call);
void hf_update_expire(hf_core *core, hf_call *call);

/* The run has changed. */
void hf_updates_settle(hf_core *core, hf_run *run, hf_unwritten *unwritten);
/* Whether the run has nine tenths of the updates that it may have; `with_asked`: with those that are not accepted yet. */
bool hf_updates_are_many(const hf_core *core, const hf_run *run, bool with_asked);
/* A workflow task goes to a worker, and the updates that wait for it go along; `again`: those that went before. */
void hf_updates_attach(hf_core *core, hf_run *run, bool again, int64_t started_id, hf_call *call,
                       hf_pb_poll_workflow_task_queue_response *response);

/* ---- The answer to a workflow task ------------------------------------------------------------------------------------- */

/* A message of the task's answer that belongs to no command must be possible, too. False: as a check of commands. */
bool hf_updates_check_rest(hf_core *core, const hf_run *run, hf_plan *plan);
/* Whether the answer does nothing but reject updates. */
bool hf_updates_only_reject(const hf_plan *plan);
void hf_updates_act_rest(hf_core *core, hf_run *run, const hf_plan *plan);
/* All is decided: the calls that wait are told. */
void hf_updates_tell(hf_core *core, hf_run *run, const hf_plan *plan);
/* The answer was refused, and the task has failed. */
void hf_updates_abort_sent(hf_core *core, hf_run *run);
hf_command_check hf_check_protocol_message;
hf_command_act hf_act_protocol_message;

void hf_updates_free(hf_core *core, hf_unwritten *unwritten);
uint64_t hf_updates_hash(const hf_unwritten *unwritten, uint64_t hash);

#endif
