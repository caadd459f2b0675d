/* Shared by the files of an input: input.c, input_target.c, input_check.c and input_dispatch.c. */
#ifndef HF_ENGINE_INPUT_PRIVATE_H
#define HF_ENGINE_INPUT_PRIVATE_H

#include "engine/core_private.h"
#include "engine/input.h"

/* The target of a call: a workflow id (and perhaps a run), a task token, or a task queue of its namespace. */
typedef struct hf_target {
    hf_str namespace_;
    bool names_workflow; /* the request has a place for a workflow id, and that place is there */
    hf_str workflow_id;
    hf_str run_id; /* empty = the current one */
    hf_str token;
} hf_target;

#define REQUEST(stem) const hf_pb_##stem##_request *request = call->request

/* Words of a request that are stored in the history; empty = it has no such field, or it is not set. */
typedef struct hf_call_words {
    hf_str identity, reason, request_id;
} hf_call_words;

/* ---- input_target.c ----------------------------------------------------------------------------------------------------- */

hf_target hf_call_target(const hf_call *call);
hf_call_words hf_call_words_of(const hf_call *call);
hf_str hf_call_token(const hf_call *call); /* the task token; empty = it has none */

/* ---- input_check.c ------------------------------------------------------------------------------------------------------ */

/* Fails the call with HF_ERR_INVALID; returns false. */
bool hf_call_refuse(hf_core *core, hf_call *call, const char *why);
/* If one of the following is false the call has failed. */
bool hf_call_namespace_is_good(hf_core *core, hf_call *call, hf_str name);
bool hf_call_words_are_short(hf_core *core, hf_call *call);
bool hf_call_data_fits(hf_core *core, hf_call *call, const char *what, size_t len);
bool hf_call_queue_is_good(hf_core *core, hf_call *call, const hf_pb_task_queue *queue);
bool hf_call_rate_is_good(hf_core *core, hf_call *call, const hf_pb_task_queue_metadata *metadata);
bool hf_call_is_good(hf_core *core, hf_call *call); /* the fields that only its own method has */

/* ---- input_dispatch.c --------------------------------------------------------------------------------------------------- */

/* The run is in memory and sound, and the call may have it. */
void hf_input_dispatch(hf_core *core, hf_call *call, hf_run *run);

#endif
