/* Queries: a caller asks a workflow's code, and nothing changes. */
#ifndef HF_ENGINE_MACHINES_QUERY_H
#define HF_ENGINE_MACHINES_QUERY_H

#include "engine/core.h"
#include "engine/slot.h"
#include "engine/unwritten.h"

bool hf_query_is_good(hf_core *core, hf_call *call);           /* before its run is known; false: the call has failed */
void hf_query_call(hf_core *core, hf_call *call, hf_run *run); /* QueryWorkflow */
void hf_query_answer_call(hf_core *core, hf_call *call, hf_run *run, /* RespondQueryTaskCompleted */
                          const hf_token *token);
/* The caller of a parked query goes, or has waited long enough for its next stage. */
void hf_query_drop(hf_core *core, hf_call *call);
void hf_query_expire(hf_core *core, hf_call *call);

/* The run has changed: each query is where it belongs. */
void hf_queries_settle(hf_core *core, hf_run *run, hf_unwritten *unwritten);
/* A workflow task goes to a worker, and the queries that wait for it go along; `again`: those that went before. */
void hf_queries_attach(hf_core *core, hf_run *run, bool again, hf_call *call,
                       hf_pb_poll_workflow_task_queue_response *response);
/* The workflow task was completed, with these answers. */
void hf_queries_answered(hf_core *core, hf_run *run, const hf_pb_respond_workflow_task_completed_request *request);
/* The workflow task has failed because the code does not fit the history: so would the queries that went with it. `failure` may be NULL. */
void hf_queries_refuse_attached(hf_core *core, hf_run *run, hf_pb_failure *failure);

/* A query's own task meets a poll; the holder does not want it; its sticky queue was shut. */
void hf_query_start(hf_core *core, hf_task *task, hf_call *call);
void hf_query_again(hf_core *core, hf_run *run, const hf_token *token);
void hf_query_unstick(hf_core *core, hf_task *task);

void hf_queries_free(hf_core *core, hf_unwritten *unwritten);
uint64_t hf_queries_hash(const hf_unwritten *unwritten, uint64_t hash);

#endif
