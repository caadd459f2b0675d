/* hf_update, hf_update_start, hf_start_and_update, hf_update_result. Their handles are in update_handle.c.
 *
 *     send (UpdateWorkflowExecution, or ExecuteMultiOperation with a start)
 *      |  ^
 *      |  +-- admitted: the service has the update in memory only, so it is sent again, with the same id
 *      |  +-- the run is closing and continues as another one: sent again, to that one
 *      v
 *     accepted: it is an event of one run. From here on that run is polled (PollWorkflowExecutionUpdate)
 *      |  ^
 *      |  +-- not completed
 *      v
 *     completed: a result or a failure. A rejected update goes from send to here */
#include "base/env.h"
#include "client/errand.h"
#include "client/header.h"
#include "fiber/verbs.h"
#include "service/grpc_code.h"

#include <stdio.h>
#include <string.h>

enum { POLL_SECONDS = 20 };
enum {
    ACCEPTED = HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED,
    COMPLETED = HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED
};

/* One update on its way. */
typedef struct update {
    hf_service *service;
    const hf_execution *execution; /* that it is sent to; NULL = the start names the workflow */
    const hf_start_request *start; /* that is sent with it; NULL = none */
    hf_str namespace_;
    hf_str workflow_id;
    const char *name;
    hf_payload in;
    const hf_entry *given; /* .header of the caller, or NULL ... */
    hf_pb_header *header;  /* ... and what became of it */
    hf_str id;
    int64_t until_ns;             /* end of the wait */
    int32_t wanted;               /* stage that ends the wait */
    int32_t stage;                /* that it has reached */
    hf_str run_id;                /* of the run that has it ... */
    hf_str first_run_id;          /* ... and of its chain; empty = unknown */
    char rooms[2][HF_UUID_LEN];   /* for these two */
    const hf_pb_outcome *outcome; /* in the errand's arena; NULL = not completed */
} update;

/* ---- One call ---------------------------------------------------------------------------------------------------- */

static hf_status out_of_time(hf_errand *e, const update *u)
{
    return hf_call_report(&e->op, &e->call, HF_ERR_TIMEOUT, ": ",
                          u->stage >= ACCEPTED ? "the update is accepted, but has not ended in time"
                                               : "the update was not accepted in time");
}

/* The service answers when the stage is reached, or when this is over. It takes 0 as its own default. */
static void set_poll(hf_errand *e, const update *u)
{
    int64_t left = hf_errand_left(u->until_ns);
    hf_assert(u->wanted == ACCEPTED || u->wanted == COMPLETED);
    e->timeout = hf_seconds(POLL_SECONDS);
    e->timeout.ns = left < 1 ? 1 : left < e->timeout.ns ? left : e->timeout.ns;
}

/* Keeps the id of a run, which is a UUID, beyond the errand's arena. */
static hf_status keep_id(hf_errand *e, char room[HF_UUID_LEN], hf_str id, hf_str *ret_id)
{
    if (id.len >= HF_UUID_LEN) {
        return hf_call_report(&e->op, &e->call, HF_ERR_INVALID, ": ",
                              "the service named a run by an id that is too long");
    }
    if (id.len > 0) {
        memcpy(room, id.data, id.len);
    }
    *ret_id = hf_str_of_len(room, id.len);
    return HF_OK;
}

static hf_status reached(hf_errand *e, update *u, const hf_pb_update_ref *ref, int32_t stage,
                         const hf_pb_outcome *outcome)
{
    u->stage = stage;
    u->outcome = outcome;
    return ref != NULL && ref->workflow_execution != NULL
               ? keep_id(e, u->rooms[0], ref->workflow_execution->run_id, &u->run_id)
               : HF_OK;
}

static hf_status poll(hf_errand *e, update *u)
{
    hf_pb_workflow_execution which = {.workflow_id = u->workflow_id, .run_id = u->run_id};
    hf_pb_update_ref ref = {.workflow_execution = &which, .update_id = u->id};
    hf_pb_wait_policy policy = {.lifecycle_stage = u->wanted};
    hf_pb_poll_workflow_execution_update_request request = {
        .namespace = u->namespace_,
        .update_ref = &ref,
        .identity = HF_STR("client"),
        .wait_policy = &policy,
    };
    HF_TRY(hf_errand_ask(e, u->service, HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE, &request));
    const hf_pb_poll_workflow_execution_update_response *response = e->call.response;
    hf_assert(response != NULL); /* service-V3 */
    return reached(e, u, response->update_ref, response->stage, response->outcome);
}

/* The start and the update as one call. */
static hf_status send_both(hf_errand *e, update *u, hf_pb_update_workflow_execution_request *request)
{
    hf_pb_start_workflow_execution_request start = u->start->pb;
    hf_pb_execute_multi_operation_request_operation operations[] = {
        {.operation_case = HF_PB_EXECUTE_MULTI_OPERATION_REQUEST_OPERATION_START_WORKFLOW, .start_workflow = &start},
        {.operation_case = HF_PB_EXECUTE_MULTI_OPERATION_REQUEST_OPERATION_UPDATE_WORKFLOW, .update_workflow = request},
    };
    hf_pb_execute_multi_operation_request both = {
        .namespace = u->namespace_,
        .operations = {operations, HF_COUNT_OF(operations)},
        .resource_id = u->workflow_id,
    };
    HF_TRY(hf_errand_ask(e, u->service, HF_METHOD_EXECUTE_MULTI_OPERATION, &both));
    const hf_pb_execute_multi_operation_response *response = e->call.response;
    hf_assert(response != NULL && response->responses.count == HF_COUNT_OF(operations));
    const hf_pb_start_workflow_execution_response *started = response->responses.items[0].start_workflow;
    const hf_pb_update_workflow_execution_response *updated = response->responses.items[1].update_workflow;
    HF_TRY(keep_id(e, u->rooms[1], started->first_execution_run_id, &u->first_run_id));
    return reached(e, u, updated->update_ref, updated->stage, updated->outcome);
}

static hf_status send(hf_errand *e, update *u)
{
    hf_pb_workflow_execution which = {.workflow_id = u->workflow_id};
    hf_pb_wait_policy policy = {.lifecycle_stage = u->wanted};
    hf_pb_meta meta = {.update_id = u->id, .identity = HF_STR("client")};
    hf_pb_input input = {.name = hf_str_of(u->name), .args = hf_payload_encode(&e->arena, u->in)};
    input.header = u->header;
    hf_pb_request body = {.meta = &meta, .input = &input};
    hf_pb_update_workflow_execution_request request = {
        .namespace = u->namespace_,
        .workflow_execution = &which,
        .wait_policy = &policy,
        .request = &body,
    };
    if (u->start != NULL) {
        return send_both(e, u, &request);
    }
    which = hf_execution_target(u->execution);
    request.first_execution_run_id = u->execution->first_run_id;
    HF_TRY(hf_errand_ask(e, u->service, HF_METHOD_UPDATE_WORKFLOW_EXECUTION, &request));
    const hf_pb_update_workflow_execution_response *response = e->call.response;
    hf_assert(response != NULL); /* service-V3 */
    return reached(e, u, response->update_ref, response->stage, response->outcome);
}

/* ---- Failures of the call ---------------------------------------------------------------------------------------- */

/* Of two operations that failed together, the one that is the cause; NULL: the call did not say. */
static const hf_pb_multi_operation_execution_failure_operation_status *cause_of(const hf_call *call)
{
    if (call->detail_type != &hf_pb_multi_operation_execution_failure_type) {
        return NULL;
    }
    const hf_pb_multi_operation_execution_failure *failure = call->detail;
    for (size_t i = 0; i < failure->statuses.count; i++) {
        const hf_pb_multi_operation_execution_failure_operation_status *status = &failure->statuses.items[i];
        if (status->code != HF_GRPC_ABORTED) {
            return status;
        }
    }
    return NULL;
}

static bool is_busy(hf_errand *e)
{
    hf_pb_resource_exhausted_failure limit = {0};
    const hf_pb_multi_operation_execution_failure_operation_status *cause = cause_of(&e->call);
    if (e->call.status != HF_ERR_LIMIT) {
        return false;
    }
    if (e->call.detail_type == &hf_pb_resource_exhausted_failure_type) {
        limit = *(const hf_pb_resource_exhausted_failure *)e->call.detail;
    } else if (cause != NULL && cause->details.count > 0) {
        hf_op op;
        hf_op_init(&op);
        if (hf_pb_decode(&op, &hf_pb_resource_exhausted_failure_type, cause->details.items[0].value, &e->arena,
                         &limit) != HF_OK) {
            return false;
        }
    }
    return limit.cause == HF_RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW;
}

/* A start and an update that fail together have one sentence, which does not say why. */
static hf_status explain(hf_errand *e)
{
    char why[HF_MESSAGE_LEN_MAX];
    const hf_pb_multi_operation_execution_failure_operation_status *cause = cause_of(&e->call);
    if (cause == NULL || cause->message.len == 0) {
        return e->op.status;
    }
    (void)snprintf(why, sizeof why, "%.*s", HF_STR_ARGS(cause->message));
    hf_op_init(&e->op);
    return hf_call_report(&e->op, &e->call, e->call.status, ": ", why);
}

/* ---- The wait ---------------------------------------------------------------------------------------------------- */

/* Sends the update until the run has written it. */
static hf_status send_on(hf_errand *e, update *u)
{
    hf_assert(u->id.len > 0 && (u->start != NULL) != (u->execution != NULL)); /* the same id each time */
    while (u->stage < ACCEPTED) {
        set_poll(e, u);
        bool was_last = hf_errand_left(u->until_ns) <= 0;
        hf_status status = send(e, u);
        if (status != HF_OK && !is_busy(e)) {
            return explain(e);
        }
        if (u->stage < ACCEPTED) {
            if (was_last) {
                hf_op_init(&e->op);
                return out_of_time(e, u);
            }
            hf_errand_again(e);
        }
    }
    return HF_OK;
}

/* The same, with a header that stays the same however often the update is sent. */
static hf_status bring(hf_errand *e, update *u)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_status status = hf_header_make(&e->op, e->verb, u->service, u->given, &arena, &u->header);
    status = status == HF_OK ? send_on(e, u) : status;
    hf_arena_deinit(&arena);
    return status;
}

/* Waits until it has ended. */
static hf_status follow(hf_errand *e, update *u)
{
    hf_assert(u->id.len > 0);
    while (u->outcome == NULL) {
        bool was_last = hf_errand_left(u->until_ns) <= 0;
        hf_errand_again(e);
        set_poll(e, u);
        HF_TRY(poll(e, u));
        if (u->outcome == NULL && was_last) {
            return out_of_time(e, u);
        }
    }
    return HF_OK;
}

/* The result of an update that has ended, or its failure; `*ret_is_raised`: that is the last failure of the caller
 * already. */
static hf_status take_outcome(hf_errand *e, const update *u, hf_payload *ret_out, bool *ret_is_raised)
{
    hf_assert(u->outcome != NULL && *ret_is_raised == false);
    if (u->outcome->value_case == HF_PB_OUTCOME_FAILURE) {
        *ret_is_raised = true;
        return hf_errand_raise(e, u->outcome->failure, "UpdateFailed", HF_STR("the update failed"));
    }
    const hf_pb_payloads *result = u->outcome->value_case == HF_PB_OUTCOME_SUCCESS ? u->outcome->success : NULL;
    return hf_payload_decode(result, NULL, ret_out) == HF_OK
               ? HF_OK
               : hf_fail(&e->op, HF_ERR_NOMEM, "%s: no memory for the result of the update", e->verb);
}

/* An update that failed before it was accepted is rejected. */
static bool is_rejected(const update *u)
{
    return u->outcome != NULL && u->outcome->value_case == HF_PB_OUTCOME_FAILURE;
}

static hf_status give_handle(hf_errand *e, const update *u, hf_update_handle **ret_update)
{
    if (ret_update == NULL) {
        return HF_OK;
    }
    hf_update_handle like = {
        .service = u->service,
        .namespace_ = u->namespace_,
        .workflow_id = u->workflow_id,
        .run_id = u->run_id,
        .id = u->id,
    };
    return hf_update_handle_make(&e->op, &like, ret_update);
}

/* ---- hf_update, hf_update_start ---------------------------------------------------------------------------------- */

static hf_status check(hf_op *op, const char *verb, const char *name, hf_payload in, const char *what, const char *id)
{
    HF_TRY(hf_text_check(op, verb, "the name of the update", name != NULL ? name : "", 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, verb, what, id, 1, HF_ERRAND_TEXT_LEN_MAX));
    return hf_payload_check(op, "the input of the update", in);
}

static update update_of(hf_execution *execution, const char *name, hf_payload in, int32_t wanted, hf_span timeout)
{
    return (update){
        .service = execution->service,
        .execution = execution,
        .namespace_ = execution->namespace_,
        .workflow_id = execution->id,
        .name = name,
        .in = in,
        .until_ns = hf_errand_until(timeout),
        .wanted = wanted,
    };
}

/* Checks, and sends until it is accepted. */
static hf_status begin(hf_errand *e, update *u, const hf_update_options *o, char room[HF_UUID_LEN])
{
    HF_TRY(check(&e->op, e->verb, u->name, u->in, ".id", o->id));
    u->given = o->header;
    u->id = hf_id_or_random(&e->op, o->id, room);
    HF_TRY(e->op.status);
    return bring(e, u);
}

hf_status hf_update_with(hf_execution *execution, const char *name, hf_payload in, hf_payload *ret_out,
                         const hf_update_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_update));
    HF_OPTIONS(hf_update_options, options, hf_update);
    if (execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_update needs an execution");
    }
    hf_errand e;
    char room[HF_UUID_LEN];
    bool is_raised = false;
    hf_status status = HF_OK;
    update u = update_of(execution, name, in, COMPLETED, options->timeout);
    hf_errand_begin(&e, "hf_update", execution->id);
    if (begin(&e, &u, options, room) == HF_OK && follow(&e, &u) == HF_OK) {
        status = take_outcome(&e, &u, ret_out, &is_raised);
    }
    hf_status ended = hf_errand_end(&e);
    return is_raised ? status : ended;
}

hf_status hf_update_start_with(hf_execution *execution, const char *name, hf_payload in, hf_update_handle **ret_update,
                               const hf_update_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_update_start));
    HF_OPTIONS(hf_update_options, options, hf_update_start);
    if (execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_update_start needs an execution");
    }
    hf_errand e;
    char room[HF_UUID_LEN];
    bool is_raised = false;
    hf_status status = HF_OK;
    update u = update_of(execution, name, in, ACCEPTED, options->timeout);
    hf_errand_begin(&e, "hf_update_start", execution->id);
    if (begin(&e, &u, options, room) == HF_OK) {
        status = is_rejected(&u) ? take_outcome(&e, &u, NULL, &is_raised) : give_handle(&e, &u, ret_update);
    }
    hf_status ended = hf_errand_end(&e);
    return is_raised ? status : ended;
}

/* ---- hf_update_result -------------------------------------------------------------------------------------------- */

hf_status hf_update_result_with(hf_update_handle *handle, hf_payload *ret_out, const hf_wait_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_update_result));
    HF_OPTIONS(hf_wait_options, options, hf_update_result);
    if (handle == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_update_result needs the handle of an update");
    }
    hf_errand e;
    bool is_raised = false;
    hf_status status = HF_OK;
    update u = {
        .service = handle->service,
        .namespace_ = handle->namespace_,
        .workflow_id = handle->workflow_id,
        .run_id = handle->run_id,
        .id = handle->id,
        .until_ns = hf_errand_until(options->timeout),
        .wanted = COMPLETED,
    };
    hf_errand_begin(&e, "hf_update_result", handle->workflow_id);
    if (follow(&e, &u) == HF_OK) {
        status = take_outcome(&e, &u, ret_out, &is_raised);
    }
    hf_status ended = hf_errand_end(&e);
    return is_raised ? status : ended;
}

/* ---- hf_start_and_update ----------------------------------------------------------------------------------------- */

static hf_status give_both(hf_errand *e, const update *u, hf_execution **ret_execution, hf_update_handle **ret_update)
{
    hf_execution *execution = NULL;
    if (ret_execution != NULL) {
        hf_execution like = {
            .service = u->service,
            .namespace_ = u->namespace_,
            .id = u->workflow_id,
            .run_id = u->run_id,
            .first_run_id = u->first_run_id,
        };
        HF_TRY(hf_execution_make(&e->op, &like, &execution));
    }
    if (give_handle(e, u, ret_update) != HF_OK) {
        hf_execution_free(execution);
        return e->op.status;
    }
    if (ret_execution != NULL) {
        *ret_execution = execution;
    }
    return HF_OK;
}

/* Checks, makes the request of the start, and sends until the update is accepted. */
static hf_status begin_both(hf_errand *e, update *u, const char *type, hf_payload in, const hf_start_options *o,
                            hf_arena *arena, char room[HF_UUID_LEN], hf_start_request *start)
{
    hf_id_conflict conflict = o->id_conflict == HF_ID_CONFLICT_DEFAULT ? HF_ID_CONFLICT_USE_EXISTING : o->id_conflict;
    HF_TRY(check(&e->op, e->verb, u->name, u->in, ".update_id", o->update_id));
    HF_TRY(hf_start_request_make(e, u->service, arena, type, in, conflict, o, start));
    u->id = hf_id_or_random(&e->op, o->update_id, room);
    HF_TRY(e->op.status);
    if (arena->status != HF_OK) {
        return hf_fail_at(&e->op, HF_ERR_NOMEM, e->verb, "%s: no memory to ask", e->verb);
    }
    u->start = start;
    u->namespace_ = start->pb.namespace;
    u->workflow_id = start->pb.workflow_id;
    return bring(e, u);
}

hf_status hf_start_and_update_with(hf_service *service, const char *type, hf_payload in, const char *name,
                                   hf_payload update_in, hf_execution **ret_execution, hf_update_handle **ret_update,
                                   const hf_start_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_start_and_update));
    HF_OPTIONS(hf_start_options, options, hf_start_and_update);
    if (service == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_start_and_update needs a service");
    }
    hf_errand e;
    hf_arena arena; /* of the request, which may be sent several times */
    hf_start_request start;
    char room[HF_UUID_LEN];
    bool is_raised = false;
    hf_status status = HF_OK;
    update u = {
        .service = service,
        .name = name,
        .in = update_in,
        .given = options->header,
        .until_ns = hf_errand_until(options->update_timeout),
        .wanted = ACCEPTED,
    };
    hf_errand_begin(&e, "hf_start_and_update", HF_STR(""));
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    if (begin_both(&e, &u, type, in, options, &arena, room, &start) == HF_OK) {
        status =
            is_rejected(&u) ? take_outcome(&e, &u, NULL, &is_raised) : give_both(&e, &u, ret_execution, ret_update);
    }
    hf_arena_deinit(&arena);
    hf_status ended = hf_errand_end(&e);
    return is_raised ? status : ended;
}
