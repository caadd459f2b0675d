/* hf_query: one call of the service, which waits until a worker has answered. */
#include "client/errand.h"
#include "client/header.h"
#include "fiber/verbs.h"

static hf_status check(hf_op *op, const char *name, hf_payload in)
{
    HF_TRY(hf_text_check(op, "hf_query", "the name", name != NULL ? name : "", 1, HF_ERRAND_TEXT_LEN_MAX));
    return hf_payload_check(op, "the input of the query", in);
}

/* The service ends the wait. It takes 0 as its own default, so no time at all is the shortest span. */
static hf_span wait_of(const hf_query_options *options)
{
    hf_span span = options->timeout;
    span.ns = span.ns == 0 ? INT64_MAX : span.ns < 0 ? 1 : span.ns;
    return span;
}

/* The answer of the workflow's code, or its failure; `*ret_is_raised`: that is the last failure of the caller already. */
static hf_status take_answer(hf_errand *e, hf_payload *ret_out, bool *ret_is_raised)
{
    if (e->op.status == HF_OK) {
        const hf_pb_query_workflow_response *response = e->call.response;
        hf_assert(response != NULL && response->query_rejected == NULL); /* remote-R6 */
        return hf_payload_decode(response->query_result, NULL, ret_out) == HF_OK
                   ? HF_OK
                   : hf_fail(&e->op, HF_ERR_NOMEM, "hf_query: no memory for the answer");
    }
    if (e->call.status == HF_ERR_INVALID && e->call.detail_type == &hf_pb_query_failed_failure_type) {
        const hf_pb_query_failed_failure *detail = e->call.detail;
        hf_assert(detail != NULL);
        *ret_is_raised = true;
        return hf_errand_raise(e, detail->failure, "QueryFailed", hf_str_of(e->call.message));
    }
    return e->op.status;
}

hf_status hf_query_with(hf_execution *execution, const char *name, hf_payload in, hf_payload *ret_out,
                        const hf_query_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_query));
    HF_OPTIONS(hf_query_options, options, hf_query);
    if (execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_query needs an execution");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_query", execution->id);
    hf_pb_header *header = NULL;
    if (check(&e.op, name, in) != HF_OK ||
        hf_header_make(&e.op, "hf_query", execution->service, options->header, &e.arena, &header) != HF_OK) {
        return hf_errand_end(&e);
    }
    hf_pb_workflow_execution which = hf_execution_target(execution);
    hf_pb_workflow_query query = {
        .query_type = hf_str_of(name), .query_args = hf_payload_encode(&e.arena, in), .header = header};
    hf_pb_query_workflow_request request = {
        .namespace = execution->namespace_,
        .execution = &which,
        .query = &query,
    };
    bool is_raised = false;
    e.call.status = HF_OK;
    e.timeout = wait_of(options);
    (void)hf_errand_ask(&e, execution->service, HF_METHOD_QUERY_WORKFLOW, &request);
    hf_status status = take_answer(&e, ret_out, &is_raised);
    hf_status ended = hf_errand_end(&e);
    return is_raised ? status : ended;
}
