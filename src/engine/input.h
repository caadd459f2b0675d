/* A call finds its run and is given to the machine that it is for. */
#ifndef HF_ENGINE_INPUT_H
#define HF_ENGINE_INPUT_H

#include "engine/core.h"
#include "engine/load.h"

void hf_input(hf_core *core, hf_call *call);                     /* a call whose run may have to be found */
void hf_input_run(hf_core *core, hf_call *call, hf_run *run);    /* its run is here */
void hf_input_name(hf_core *core, hf_call *call, hf_name *name); /* its workflow id is known */

void hf_call_say_no_run(hf_core *core, hf_call *call); /* before it fails: the run that it names is not there */
hf_str hf_call_run_id(const hf_call *call); /* the run it names, empty = the current one */

void hf_respond_workflow_task_completed(hf_core *core, hf_call *call, hf_run *run);

/* Whether a start can be done; if not the call has failed. */
bool hf_start_is_good(hf_core *core, hf_call *call, const hf_pb_start_workflow_execution_request *request);

#endif
