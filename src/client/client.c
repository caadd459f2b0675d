/* What a client tells a workflow: signals, cancels, terminates. Each is one call of the service. */
#include "client/errand.h"
#include "client/header.h"
#include "fiber/verbs.h"

hf_status hf_signal_with(hf_execution *execution, const char *name, hf_payload in, const hf_signal_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_signal));
    HF_OPTIONS(hf_signal_options, options, hf_signal);
    if (execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_signal needs an execution");
    }
    hf_errand e;
    char request_id[HF_UUID_LEN];
    hf_errand_begin(&e, "hf_signal", execution->id);
    if (hf_text_check(&e.op, "hf_signal", "the name", name != NULL ? name : "", 1, HF_ERRAND_TEXT_LEN_MAX) != HF_OK ||
        hf_text_check(&e.op, "hf_signal", ".request_id", options->request_id, 1, HF_ERRAND_TEXT_LEN_MAX) != HF_OK ||
        hf_payload_check(&e.op, "the input of the signal", in) != HF_OK) {
        return hf_errand_end(&e);
    }
    hf_pb_header *header = NULL;
    if (hf_header_make(&e.op, "hf_signal", execution->service, options->header, &e.arena, &header) != HF_OK) {
        return hf_errand_end(&e);
    }
    hf_pb_workflow_execution which = hf_execution_target(execution);
    hf_pb_signal_workflow_execution_request request = {
        .namespace = execution->namespace_,
        .workflow_execution = &which,
        .signal_name = hf_str_of(name),
        .input = hf_payload_encode(&e.arena, in),
        .identity = HF_STR("client"),
        .request_id = hf_id_or_random(&e.op, options->request_id, request_id),
        .header = header,
    };
    if (e.op.status == HF_OK) {
        (void)hf_errand_ask(&e, execution->service, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &request);
    }
    return hf_errand_end(&e);
}

hf_status hf_cancel_with(hf_execution *execution, const hf_cancel_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_cancel));
    HF_OPTIONS(hf_cancel_options, options, hf_cancel);
    if (execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_cancel needs an execution");
    }
    hf_errand e;
    char request_id[HF_UUID_LEN];
    hf_errand_begin(&e, "hf_cancel", execution->id);
    if (hf_text_check(&e.op, "hf_cancel", ".reason", options->reason, 0, HF_ERRAND_TEXT_LEN_MAX) != HF_OK) {
        return hf_errand_end(&e);
    }
    hf_pb_workflow_execution which = hf_execution_target(execution);
    hf_pb_request_cancel_workflow_execution_request request = {
        .namespace = execution->namespace_,
        .workflow_execution = &which,
        .identity = HF_STR("client"),
        .request_id = hf_id_or_random(&e.op, NULL, request_id),
        .first_execution_run_id = execution->first_run_id,
        .reason = hf_text_or(options->reason, ""),
    };
    hf_method method = HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION;
    if (e.op.status == HF_OK && hf_errand_ask(&e, execution->service, method, &request) == HF_ERR_NOT_FOUND &&
        execution->first_run_id.len > 0) {
        hf_assert(!execution->is_bound && execution->run_id.len > 0);
        /* Either the id belongs to another chain by now, so that this one has ended, or there was never such a run. */
        which.run_id = execution->run_id;
        request.first_execution_run_id = HF_STR("");
        hf_errand_again(&e);
        (void)hf_errand_ask(&e, execution->service, method, &request);
    }
    return hf_errand_end(&e);
}

hf_status hf_terminate_with(hf_execution *execution, const hf_terminate_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_terminate));
    HF_OPTIONS(hf_terminate_options, options, hf_terminate);
    if (execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_terminate needs an execution");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_terminate", execution->id);
    if (hf_text_check(&e.op, "hf_terminate", ".reason", options->reason, 0, HF_ERRAND_TEXT_LEN_MAX) != HF_OK) {
        return hf_errand_end(&e);
    }
    hf_pb_workflow_execution which = hf_execution_target(execution);
    hf_pb_terminate_workflow_execution_request request = {
        .namespace = execution->namespace_,
        .workflow_execution = &which,
        .identity = HF_STR("client"),
        .reason = hf_text_or(options->reason, ""),
        .first_execution_run_id = execution->first_run_id,
    };
    (void)hf_errand_ask(&e, execution->service, HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, &request);
    return hf_errand_end(&e);
}
