/* Fields of requests that ask for what this engine does not have. */
#ifndef HF_ENGINE_ABSENT_H
#define HF_ENGINE_ABSENT_H

#include "engine/core.h"

/* Both: false: the call has failed, because it asks for something that is not there. */
bool hf_absent_in_start(hf_core *core, hf_call *call, const hf_pb_start_workflow_execution_request *request);
bool hf_absent_in_poll(hf_core *core, hf_call *call, const hf_pb_worker_version_capabilities *capabilities,
                       const hf_pb_worker_deployment_options *deployment);

#endif
