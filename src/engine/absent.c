/* Fields of requests that ask for what this engine does not have: worker versioning, callbacks, skipped time. Each is refused, callbacks and skipped
 * time in the words of a Temporal server on which they are switched off, so that nobody waits for what never happens. Other fields about such features change nothing
 * there either, and are passed over (README.md). */
#include "engine/absent.h"

#include "engine/answer.h"
#include "engine/core_private.h"

static bool refuse(hf_core *core, hf_call *call, hf_status status, const char *why)
{
    hf_assert(status != HF_OK);
    hf_call_fail(core, call, status, "%s", why);
    return false;
}

bool hf_absent_in_start(hf_core *core, hf_call *call, const hf_pb_start_workflow_execution_request *request)
{
    if (request->time_skipping_config != NULL) {
        return refuse(core, call, HF_ERR_UNSUPPORTED, "The Time-Skipping feature is not enabled for namespace.");
    }
    if (request->completion_callbacks.count == 0) {
        return true;
    }
    const hf_pb_callback *first = &request->completion_callbacks.items[0];
    if (first->variant_case != HF_PB_CALLBACK_NEXUS || first->nexus == NULL) {
        return refuse(core, call, HF_ERR_INVALID, "unsupported callback variant");
    }
    hf_call_fail(core, call, HF_ERR_INVALID,
                 "invalid url: url does not match any configured callback address: %.*s; this server calls nobody",
                 (int)(first->nexus->url.len < 200 ? first->nexus->url.len : 200),
                 first->nexus->url.data != NULL ? first->nexus->url.data : "");
    return false;
}

/* FAILED_PRECONDITION, without the detail that the status has elsewhere: no workflow is meant. */
static bool refuse_version(hf_core *core, hf_call *call, const char *why)
{
    hf_assert(call->maker == HF_CALL_OF_CLIENT); /* its answer waits for the batch */
    hf_call_fail(core, call, HF_ERR_NOT_READY, "%s", why);
    call->detail_type = NULL;
    call->detail = NULL;
    return false;
}

bool hf_absent_in_poll(hf_core *core, hf_call *call, const hf_pb_worker_version_capabilities *capabilities,
                       const hf_pb_worker_deployment_options *deployment)
{
    hf_assert(call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE || call->method == HF_METHOD_POLL_ACTIVITY_TASK_QUEUE);
    if (capabilities != NULL && capabilities->use_versioning) {
        return refuse_version(core, call,
                              "this server has no worker versioning: start the worker without useVersioning");
    }
    if (deployment != NULL && deployment->worker_versioning_mode == HF_WORKER_VERSIONING_MODE_VERSIONED) {
        return refuse_version(core, call,
                              "this server has no worker versioning: start the worker with a deployment that is not "
                              "versioned, or without one");
    }
    return true;
}
