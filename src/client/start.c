/* hf_start: starts a workflow. */
#include "base/span.h"
#include "client/errand.h"
#include "fiber/verbs.h"
#include "history/limits.h"

static int32_t reuse_of(hf_id_reuse reuse)
{
    static const int32_t MAP[] = {
        [HF_ID_REUSE_DEFAULT] = HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
        [HF_ID_REUSE_ALLOW] = HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
        [HF_ID_REUSE_FAILED_ONLY] = HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
        [HF_ID_REUSE_REJECT] = HF_WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
    };
    _Static_assert(HF_COUNT_OF(MAP) == HF_ID_REUSE_REJECT + 1, "every policy has its line");
    return (size_t)reuse < HF_COUNT_OF(MAP) ? MAP[reuse] : MAP[0];
}

static int32_t conflict_of(hf_id_conflict conflict)
{
    static const int32_t MAP[] = {
        [HF_ID_CONFLICT_DEFAULT] = HF_WORKFLOW_ID_CONFLICT_POLICY_FAIL,
        [HF_ID_CONFLICT_FAIL] = HF_WORKFLOW_ID_CONFLICT_POLICY_FAIL,
        [HF_ID_CONFLICT_USE_EXISTING] = HF_WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
        [HF_ID_CONFLICT_TERMINATE] = HF_WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
    };
    _Static_assert(HF_COUNT_OF(MAP) == HF_ID_CONFLICT_TERMINATE + 1, "every policy has its line");
    return (size_t)conflict < HF_COUNT_OF(MAP) ? MAP[conflict] : MAP[0];
}

static hf_status check_start(hf_op *op, const char *type, hf_payload in, const hf_start_options *o)
{
    static const char VERB[] = "hf_start";
    const struct {
        const char *what;
        hf_span span;
    } spans[] = {
        {".execution_timeout", o->execution_timeout},
        {".run_timeout", o->run_timeout},
        {".task_timeout", o->task_timeout},
    };
    HF_TRY(hf_text_check(op, VERB, "the type", type != NULL ? type : "", 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".id", o->id, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".task_queue", o->task_queue, 1, HF_QUEUE_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".namespace_", o->namespace_, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".request_id", o->request_id, 1, HF_ERRAND_TEXT_LEN_MAX));
    for (size_t i = 0; i < HF_COUNT_OF(spans); i++) {
        HF_TRY(hf_span_check(op, VERB, spans[i].what, spans[i].span, 0));
    }
    return hf_payload_check(op, "the input of the workflow", in);
}

static hf_status start(hf_errand *e, hf_service *service, const char *type, hf_payload in, hf_execution **ret_execution,
                       const hf_start_options *o)
{
    char id[HF_UUID_LEN];
    hf_pb_workflow_type workflow_type = {.name = hf_str_of(type)};
    hf_pb_task_queue queue = {.name = hf_text_or(o->task_queue, "default"), .kind = HF_TASK_QUEUE_KIND_NORMAL};
    hf_pb_start_workflow_execution_request request = {
        .namespace = hf_text_or(o->namespace_, "default"),
        .workflow_id = hf_id_or_random(&e->op, o->id, id),
        .workflow_type = &workflow_type,
        .task_queue = &queue,
        .input = hf_payload_encode(&e->arena, in),
        .workflow_execution_timeout = hf_duration_of_bound(o->execution_timeout),
        .workflow_run_timeout = hf_duration_of_bound(o->run_timeout),
        .workflow_task_timeout = hf_duration_of_bound(o->task_timeout),
        .identity = HF_STR("client"),
        .workflow_id_reuse_policy = reuse_of(o->id_reuse),
        .workflow_id_conflict_policy = conflict_of(o->id_conflict),
    };
    char request_id[HF_UUID_LEN]; /* a random workflow id can serve as the request id, too */
    request.request_id = o->id == NULL && o->request_id == NULL ? request.workflow_id
                                                                : hf_id_or_random(&e->op, o->request_id, request_id);
    HF_TRY(e->op.status);
    e->id = request.workflow_id;
    HF_TRY(hf_errand_ask(e, service, HF_METHOD_START_WORKFLOW_EXECUTION, &request));
    const hf_pb_start_workflow_execution_response *response = e->call.response;
    if (ret_execution == NULL) {
        return HF_OK;
    }
    return hf_execution_make(&e->op, service, request.namespace, request.workflow_id, response->run_id, ret_execution);
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
    if (check_start(&e.op, type, in, options) == HF_OK) {
        (void)start(&e, service, type, in, ret_execution, options);
    }
    return hf_errand_end(&e);
}
