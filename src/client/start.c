/* hf_start and hf_start_and_signal: each is one call of the service. */
#include "client/errand.h"
#include "fiber/verbs.h"

/* ---- hf_start ---------------------------------------------------------------------------------------------------- */

static hf_status give(hf_errand *e, hf_service *service, const hf_start_request *r, hf_str run_id, hf_str first_run_id,
                      hf_execution **ret_execution)
{
    hf_assert(run_id.len > 0); /* remote-R6 */
    hf_assert(r->pb.workflow_id.len > 0 && r->pb.namespace.len > 0);
    if (ret_execution == NULL) {
        return HF_OK;
    }
    hf_execution like = {
        .service = service,
        .namespace_ = r->pb.namespace,
        .id = r->pb.workflow_id,
        .run_id = run_id,
        .first_run_id = first_run_id,
    };
    return hf_execution_make(&e->op, &like, ret_execution);
}

/* Options that only hf_start_and_update takes. */
static hf_status refuse_update(hf_op *op, const char *verb, const hf_start_options *o)
{
    return o->update_id == NULL && o->update_timeout.ns == 0
               ? HF_OK
               : hf_fail_at(op, HF_ERR_INVALID, verb, "%s: .update_id and .update_timeout are for hf_start_and_update",
                            verb);
}

static hf_status start(hf_errand *e, hf_service *service, const char *type, hf_payload in, hf_execution **ret_execution,
                       const hf_start_options *o)
{
    hf_start_request r;
    HF_TRY(refuse_update(&e->op, e->verb, o));
    HF_TRY(hf_start_request_make(e, service, &e->arena, type, in, o->id_conflict, o, &r));
    HF_TRY(hf_errand_ask(e, service, HF_METHOD_START_WORKFLOW_EXECUTION, &r.pb));
    const hf_pb_start_workflow_execution_response *response = e->call.response;
    return give(e, service, &r, response->run_id, response->first_execution_run_id, ret_execution);
}

hf_status hf_start_with(hf_service *service, const char *type, hf_payload in, hf_execution **ret_execution,
                        const hf_start_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_start));
    HF_OPTIONS(hf_start_options, options, hf_start);
    if (service == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_start needs a service");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_start", HF_STR(""));
    (void)start(&e, service, type, in, ret_execution, options);
    return hf_errand_end(&e);
}

/* ---- hf_start_and_signal ----------------------------------------------------------------------------------------- */

static hf_status check_signal(hf_op *op, const char *verb, const char *signal, hf_payload in, const hf_start_options *o)
{
    HF_TRY(refuse_update(op, verb, o));
    if (o->id_conflict == HF_ID_CONFLICT_FAIL) {
        return hf_fail_at(op, HF_ERR_INVALID, verb,
                          "%s: .id_conflict must not be HF_ID_CONFLICT_FAIL: a workflow that runs gets the signal",
                          verb);
    }
    HF_TRY(hf_text_check(op, verb, "the name of the signal", signal != NULL ? signal : "", 1, HF_ERRAND_TEXT_LEN_MAX));
    return hf_payload_check(op, "the input of the signal", in);
}

static hf_status start_and_signal(hf_errand *e, hf_service *service, const char *type, hf_payload in,
                                  const char *signal, hf_payload signal_in, hf_execution **ret_execution,
                                  const hf_start_options *o)
{
    hf_start_request r;
    hf_id_conflict conflict = o->id_conflict == HF_ID_CONFLICT_DEFAULT ? HF_ID_CONFLICT_USE_EXISTING : o->id_conflict;
    HF_TRY(check_signal(&e->op, e->verb, signal, signal_in, o));
    HF_TRY(hf_start_request_make(e, service, &e->arena, type, in, conflict, o, &r));
    hf_pb_signal_with_start_workflow_execution_request request = {
        .namespace = r.pb.namespace,
        .workflow_id = r.pb.workflow_id,
        .workflow_type = r.pb.workflow_type,
        .task_queue = r.pb.task_queue,
        .input = r.pb.input,
        .workflow_execution_timeout = r.pb.workflow_execution_timeout,
        .workflow_run_timeout = r.pb.workflow_run_timeout,
        .workflow_task_timeout = r.pb.workflow_task_timeout,
        .identity = r.pb.identity,
        .request_id = r.pb.request_id,
        .workflow_id_reuse_policy = r.pb.workflow_id_reuse_policy,
        .signal_name = hf_str_of(signal),
        .signal_input = hf_payload_encode(&e->arena, signal_in),
        .retry_policy = r.pb.retry_policy,
        .cron_schedule = r.pb.cron_schedule,
        .memo = r.pb.memo,
        .search_attributes = r.pb.search_attributes,
        .workflow_start_delay = r.pb.workflow_start_delay,
        .workflow_id_conflict_policy = r.pb.workflow_id_conflict_policy,
        .user_metadata = r.pb.user_metadata,
        .header = r.pb.header,
        .holdfast_keep = r.pb.holdfast_keep,
    };
    HF_TRY(hf_errand_ask(e, service, HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION, &request));
    const hf_pb_signal_with_start_workflow_execution_response *response = e->call.response;
    return give(e, service, &r, response->run_id, response->first_execution_run_id, ret_execution);
}

hf_status hf_start_and_signal_with(hf_service *service, const char *type, hf_payload in, const char *signal,
                                   hf_payload signal_in, hf_execution **ret_execution, const hf_start_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_start_and_signal));
    HF_OPTIONS(hf_start_options, options, hf_start_and_signal);
    if (service == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_start_and_signal needs a service");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_start_and_signal", HF_STR(""));
    (void)start_and_signal(&e, service, type, in, signal, signal_in, ret_execution, options);
    return hf_errand_end(&e);
}
