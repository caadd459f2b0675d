/* ExecuteMultiOperation: a start and an update as one decision. */
#ifndef HF_ENGINE_MACHINES_MULTI_H
#define HF_ENGINE_MACHINES_MULTI_H

#include "engine/core.h"
#include "engine/slot.h"

typedef enum hf_multi_part { HF_MULTI_START, HF_MULTI_UPDATE } hf_multi_part;

/* A call whose workflow id is known. */
void hf_multi_call(hf_core *core, hf_call *call, hf_name *name);
/* The same, after it has waited for an event of the run that it found. */
void hf_multi_again(hf_core *core, hf_call *call, hf_run *run);
/* Both answers: that to the start is filled, that to the update is returned. NULL: engine-E2. */
hf_pb_update_workflow_execution_response *hf_multi_fill(hf_core *core, hf_call *call, const hf_run *run, bool is_new);
/* One of the two has failed, and with it the call, which says so of each. If the call is not a multi-operation, it has failed. `type`:
 * of the detail, NULL = what the status says. */
void hf_multi_fail(hf_core *core, hf_call *call, hf_multi_part part, hf_status status, const hf_pb_type *type,
                   const void *detail, const char *why);

#endif
