/* hf_reset: one call of the service, which makes the new run. */
#include "client/errand.h"
#include "fiber/verbs.h"

static hf_status check(hf_op *op, const hf_reset_options *o)
{
    static const char VERB[] = "hf_reset";
    int given = (o->point != HF_RESET_NOWHERE) + (o->event_id != 0) + (o->activity_id != NULL);
    if ((unsigned)o->point > HF_RESET_LAST) {
        return hf_fail_at(op, HF_ERR_INVALID, VERB, "hf_reset: .point is %d, which is not an hf_reset_point",
                          (int)o->point);
    }
    if (given != 1) {
        return hf_fail_at(op, HF_ERR_INVALID, VERB,
                          "hf_reset needs one of .point, .event_id and .activity_id, and got %d", given);
    }
    if (o->event_id < 0) {
        return hf_fail_at(op, HF_ERR_INVALID, VERB, "hf_reset: .event_id is %lld", (long long)o->event_id);
    }
    HF_TRY(hf_text_check(op, VERB, ".activity_id", o->activity_id, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".reason", o->reason, 0, HF_ERRAND_TEXT_LEN_MAX));
    return hf_text_check(op, VERB, ".request_id", o->request_id, 1, HF_ERRAND_TEXT_LEN_MAX);
}

static hf_status reset(hf_errand *e, hf_execution *execution, hf_execution **ret_execution, const hf_reset_options *o)
{
    _Static_assert(HF_RESET_FIRST == 1 && HF_RESET_LAST == 2, "the numbers of holdfast_point");
    char request_id[HF_UUID_LEN];
    HF_TRY(check(&e->op, o));
    hf_pb_workflow_execution which = hf_execution_target(execution);
    hf_pb_reset_workflow_execution_request request = {
        .namespace = execution->namespace_,
        .workflow_execution = &which,
        .reason = hf_text_or(o->reason, ""),
        .workflow_task_finish_event_id = o->event_id,
        .request_id = hf_id_or_random(&e->op, o->request_id, request_id),
        .identity = HF_STR("client"),
        .holdfast_point = (int32_t)o->point,
        .holdfast_activity_id = hf_text_or(o->activity_id, ""),
    };
    HF_TRY(e->op.status);
    HF_TRY(hf_errand_ask(e, execution->service, HF_METHOD_RESET_WORKFLOW_EXECUTION, &request));
    const hf_pb_reset_workflow_execution_response *response = e->call.response;
    hf_assert(response != NULL && response->run_id.len > 0); /* remote-R6 */
    if (ret_execution == NULL) {
        return HF_OK;
    }
    /* The answer does not name the chain, so calls of this handle do not check it. */
    hf_execution like = {
        .service = execution->service,
        .namespace_ = execution->namespace_,
        .id = execution->id,
        .run_id = response->run_id,
    };
    return hf_execution_make(&e->op, &like, ret_execution);
}

hf_status hf_reset_with(hf_execution *execution, hf_execution **ret_execution, const hf_reset_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_reset));
    HF_OPTIONS(hf_reset_options, options, hf_reset);
    if (execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_reset needs an execution");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_reset", execution->id);
    (void)reset(&e, execution, ret_execution, options);
    return hf_errand_end(&e);
}
