/* The client's verbs: start, signal, cancel, terminate. Each is one call of the service. hf_result is in result.c. */
#include "base/env.h"
#include "base/span.h"
#include "client/errand.h"
#include "fiber/sched/wait.h"
#include "fiber/verbs.h"
#include "history/limits.h"

static hf_str text_or(const char *text, const char *by_default)
{
    return hf_str_of(text != NULL ? text : by_default);
}

/* The caller's id, or a random one in `room`. */
static hf_str id_or_random(hf_op *op, const char *given, char room[HF_UUID_LEN])
{
    if (given != NULL) {
        return hf_str_of(given);
    }
    _Static_assert(HF_UUID_LEN - 1 <= HF_ERRAND_TEXT_LEN_MAX, "a random id is short enough to be an id");
    if (hf_uuid_make(NULL, room) != HF_OK) {
        (void)hf_fail(op, HF_ERR_IO, "no random numbers for an id");
        return (hf_str){NULL, 0};
    }
    return hf_str_of(room);
}

/* ---- Executions -------------------------------------------------------------------------------------------------- */

static hf_status execution_make(hf_op *op, hf_service *service, hf_str namespace_, hf_str id, hf_str run_id,
                                hf_execution **ret_execution)
{
    hf_arena arena;
    hf_assert(service != NULL && id.len > 0);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_execution *execution = HF_ARENA_NEW(&arena, hf_execution);
    hf_str texts[] = {hf_arena_copy(&arena, namespace_), hf_arena_copy(&arena, id), hf_arena_copy(&arena, run_id)};
    if (arena.status != HF_OK) {
        hf_arena_deinit(&arena);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for an execution");
    }
    *execution = (hf_execution){service, arena, texts[0], texts[1], texts[2]};
    (void)atomic_fetch_add_explicit(&service->executions, 1, memory_order_relaxed);
    *ret_execution = execution;
    return HF_OK;
}

static hf_status check_execution(hf_op *op, const char *id, const hf_execution_options *o)
{
    HF_TRY(hf_text_check(op, "hf_execution_new", "the id", id != NULL ? id : "", 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, "hf_execution_new", ".namespace_", o->namespace_, 1, HF_ERRAND_TEXT_LEN_MAX));
    return hf_text_check(op, "hf_execution_new", ".run_id", o->run_id, 0, HF_ERRAND_TEXT_LEN_MAX);
}

hf_status hf_execution_new_with(hf_service *service, const char *id, hf_execution **ret_execution,
                                const hf_execution_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_execution_new));
    HF_OPTIONS(hf_execution_options, options, hf_execution_new);
    if (service == NULL || ret_execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_execution_new needs a service and a place for the execution");
    }
    hf_op op;
    hf_op_init(&op);
    hf_status status = check_execution(&op, id, options);
    if (status == HF_OK) {
        status = execution_make(&op, service, text_or(options->namespace_, "default"), hf_str_of(id),
                                text_or(options->run_id, ""), ret_execution);
    }
    return status == HF_OK ? HF_OK : hf_failure_raise_op(&op);
}

void hf_execution_free(hf_execution *execution)
{
    if (execution != NULL) {
        hf_arena arena = execution->arena; /* copied: the execution itself lies in the arena */
        hf_service *service = execution->service;
        hf_arena_deinit(&arena);
        int before = atomic_fetch_sub_explicit(&service->executions, 1, memory_order_release);
        hf_assert(before > 0); /* the service may be closed from here on */
    }
}

const char *hf_execution_id(const hf_execution *execution)
{
    return execution != NULL ? execution->id.data : "";
}

const char *hf_execution_run_id(const hf_execution *execution)
{
    return execution != NULL ? execution->run_id.data : "";
}

/* ---- Start ------------------------------------------------------------------------------------------------------- */

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
    hf_pb_task_queue queue = {.name = text_or(o->task_queue, "default"), .kind = HF_TASK_QUEUE_KIND_NORMAL};
    hf_pb_start_workflow_execution_request request = {
        .namespace = text_or(o->namespace_, "default"),
        .workflow_id = id_or_random(&e->op, o->id, id),
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
    request.request_id =
        o->id == NULL && o->request_id == NULL ? request.workflow_id : id_or_random(&e->op, o->request_id, request_id);
    HF_TRY(e->op.status);
    e->id = request.workflow_id;
    HF_TRY(hf_errand_ask(e, service, HF_METHOD_START_WORKFLOW_EXECUTION, &request));
    const hf_pb_start_workflow_execution_response *response = e->call.response;
    if (ret_execution == NULL) {
        return HF_OK;
    }
    return execution_make(&e->op, service, request.namespace, request.workflow_id, response->run_id, ret_execution);
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

/* ---- Signal, cancel, terminate ----------------------------------------------------------------------------------- */

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
    hf_pb_workflow_execution which = {.workflow_id = execution->id, .run_id = execution->run_id};
    hf_pb_signal_workflow_execution_request request = {
        .namespace = execution->namespace_,
        .workflow_execution = &which,
        .signal_name = hf_str_of(name),
        .input = hf_payload_encode(&e.arena, in),
        .identity = HF_STR("client"),
        .request_id = id_or_random(&e.op, options->request_id, request_id),
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
    hf_pb_workflow_execution which = {.workflow_id = execution->id, .run_id = execution->run_id};
    hf_pb_request_cancel_workflow_execution_request request = {
        .namespace = execution->namespace_,
        .workflow_execution = &which,
        .identity = HF_STR("client"),
        .request_id = id_or_random(&e.op, NULL, request_id),
        .reason = text_or(options->reason, ""),
    };
    if (e.op.status == HF_OK) {
        (void)hf_errand_ask(&e, execution->service, HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION, &request);
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
    hf_pb_workflow_execution which = {.workflow_id = execution->id, .run_id = execution->run_id};
    hf_pb_terminate_workflow_execution_request request = {
        .namespace = execution->namespace_,
        .workflow_execution = &which,
        .identity = HF_STR("client"),
        .reason = text_or(options->reason, ""),
    };
    (void)hf_errand_ask(&e, execution->service, HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, &request);
    return hf_errand_end(&e);
}
