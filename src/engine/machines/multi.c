/* ExecuteMultiOperation: a start and an update as one decision, in one commit. The update is looked at before anything is started, so that none
 * of the two happens without the other. */
#include "engine/machines/multi.h"

#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/input.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/update.h"
#include "service/grpc_code.h"

#include <stdio.h>
#include <string.h>

typedef hf_pb_execute_multi_operation_request_operation hf_multi_operation;

/* ---- Answers ----------------------------------------------------------------------------------------------------------- */

hf_pb_update_workflow_execution_response *hf_multi_fill(hf_core *core, hf_call *call, const hf_run *run, bool is_new)
{
    hf_pb_execute_multi_operation_response *response = call->response;
    hf_arena *arena = call->arena;
    response->responses.items = HF_ARENA_ARRAY(arena, hf_pb_execute_multi_operation_response_response, 2);
    hf_pb_start_workflow_execution_response *start = HF_ARENA_NEW(arena, hf_pb_start_workflow_execution_response);
    hf_pb_update_workflow_execution_response *update = HF_ARENA_NEW(arena, hf_pb_update_workflow_execution_response);
    if (arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    start->run_id = hf_arena_copy(arena, hf_owned_str(&run->run_id));
    start->started = is_new;
    start->status = HF_WORKFLOW_EXECUTION_STATUS_RUNNING;
    if (is_new) {
        start->first_execution_run_id = hf_arena_copy(arena, hf_owned_str(&run->first_run_id));
    }
    response->responses.count = 2;
    response->responses.items[0].response_case = HF_PB_EXECUTE_MULTI_OPERATION_RESPONSE_RESPONSE_START_WORKFLOW;
    response->responses.items[0].start_workflow = start;
    response->responses.items[1].response_case = HF_PB_EXECUTE_MULTI_OPERATION_RESPONSE_RESPONSE_UPDATE_WORKFLOW;
    response->responses.items[1].update_workflow = update;
    return update;
}

static void pack(hf_core *core, const hf_pb_type *type, const void *msg, hf_pb_any_list *ret_list)
{
    hf_arena *arena = &core->scratch;
    char url[HF_MESSAGE_LEN_MAX];
    (void)snprintf(url, sizeof url, "type.googleapis.com/%s", type->name);
    ret_list->items = HF_ARENA_NEW(arena, hf_pb_any);
    core->row.len = 0;
    hf_pb_encode(type, msg, &core->row);
    if (ret_list->items == NULL || core->row.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    ret_list->items[0].type_url = hf_arena_copy(arena, hf_str_of(url));
    ret_list->items[0].value = hf_arena_copy(arena, hf_str_of_len(core->row.data, core->row.len));
    ret_list->count = 1;
}

static void fail_both(hf_core *core, hf_call *call, hf_multi_part part, hf_status status, const hf_pb_type *type,
                      const void *detail, const char *why)
{
    hf_pb_multi_operation_execution_failure_operation_status statuses[2] = {{0}, {0}};
    hf_pb_multi_operation_execution_failure failure = {.statuses = {statuses, 2}};
    hf_pb_multi_operation_execution_failure_operation_status *bad = &statuses[part == HF_MULTI_START ? 0 : 1];
    hf_pb_multi_operation_execution_failure_operation_status *other = &statuses[part == HF_MULTI_START ? 1 : 0];
    hf_pb_multi_operation_execution_aborted aborted = {0};
    bad->code = (int32_t)hf_grpc_code_of(status, false);
    bad->message = hf_str_of(why);
    if (type != NULL || hf_status_detail(status, &type, &detail)) {
        pack(core, type, detail, &bad->details);
    }
    other->code = HF_GRPC_ABORTED;
    other->message = HF_STR("Operation was aborted.");
    pack(core, &hf_pb_multi_operation_execution_aborted_type, &aborted, &other->details);
    hf_call_fail_with(core, call, status, &hf_pb_multi_operation_execution_failure_type, &failure,
                      "Update-with-Start could not be executed.");
}

void hf_multi_fail(hf_core *core, hf_call *call, hf_multi_part part, hf_status status, const hf_pb_type *type,
                   const void *detail, const char *why)
{
    hf_assert(status != HF_OK);
    if (core->status != HF_OK) {
        return;
    }
    if (call->method == HF_METHOD_EXECUTE_MULTI_OPERATION) {
        char message[HF_MESSAGE_LEN_MAX];
        (void)snprintf(message, sizeof message, "%s", why);
        fail_both(core, call, part, status, type, detail, message);
    } else if (type != NULL) {
        hf_call_fail_with(core, call, status, type, detail, "%s", why);
    } else {
        hf_call_fail(core, call, status, "%s", why);
    }
}

/* ---- The call ------------------------------------------------------------------------------------------------------------ */

static const hf_pb_start_workflow_execution_request *start_of(const hf_call *call)
{
    const hf_pb_execute_multi_operation_request *request = call->request;
    const hf_multi_operation *operation = request->operations.count == 2 ? &request->operations.items[0] : NULL;
    return operation != NULL &&
                   operation->operation_case == HF_PB_EXECUTE_MULTI_OPERATION_REQUEST_OPERATION_START_WORKFLOW
               ? operation->start_workflow
               : NULL;
}

static const hf_pb_update_workflow_execution_request *update_of(const hf_call *call)
{
    const hf_pb_execute_multi_operation_request *request = call->request;
    const hf_multi_operation *operation = request->operations.count == 2 ? &request->operations.items[1] : NULL;
    return operation != NULL &&
                   operation->operation_case == HF_PB_EXECUTE_MULTI_OPERATION_REQUEST_OPERATION_UPDATE_WORKFLOW
               ? operation->update_workflow
               : NULL;
}

static bool is_good(hf_core *core, hf_call *call)
{
    const hf_pb_start_workflow_execution_request *start = start_of(call);
    const hf_pb_update_workflow_execution_request *update = update_of(call);
    if (start == NULL || update == NULL) {
        hf_call_fail(core, call, HF_ERR_INVALID, "Operations have to be exactly [Start, Update].");
        return false;
    }
    const char *why = start->cron_schedule.len > 0 ? "CronSchedule is not allowed."
                      : start->workflow_start_delay.has && hf_pb_duration_span(start->workflow_start_delay).ns != 0
                          ? "WorkflowStartDelay is not supported."
                      : start->request_eager_execution ? "RequestEagerExecution is not supported."
                                                       : NULL;
    if (why == NULL &&
        !hf_str_equal(start->namespace, ((const hf_pb_execute_multi_operation_request *)call->request)->namespace)) {
        why = "the namespace of the start is not that of the request";
    }
    if (why != NULL) {
        hf_multi_fail(core, call, HF_MULTI_START, HF_ERR_INVALID, NULL, NULL, why);
        return false;
    }
    const hf_pb_workflow_execution *execution = update->workflow_execution;
    if (execution == NULL || !hf_str_equal(execution->workflow_id, start->workflow_id)) {
        why = "WorkflowId is not consistent with previous operation(s)";
    } else if (execution->run_id.len > 0) {
        why = "RunId is not allowed.";
    } else if (update->first_execution_run_id.len > 0) {
        why = "FirstExecutionRunId is not allowed.";
    }
    if (why != NULL) {
        hf_multi_fail(core, call, HF_MULTI_UPDATE, HF_ERR_INVALID, NULL, NULL, why);
        return false;
    }
    return hf_update_is_good(core, call, update);
}

static void on_start_done(hf_call *start)
{
    *(bool *)start->state = true;
}

/* Starts, or finds the run that is there. NULL: the call has failed. */
static hf_run *start_run(hf_core *core, hf_call *call, hf_name *name, bool *ret_is_new)
{
    bool is_done = false;
    hf_call start;
    hf_call_init(&start, HF_METHOD_START_WORKFLOW_EXECUTION, start_of(call), call->arena, on_start_done);
    start.maker = HF_CALL_OF_CALL; /* it is answered at once, and its answer waits with that of the call */
    start.state = &is_done;
    hf_list_push_back(&core->calls_all, &start.all);
    if (hf_start_is_good(core, &start, start_of(call))) {
        hf_execution_start(core, &start, name);
    }
    if (core->status != HF_OK) {
        if (!is_done) {
            hf_list_remove(&start.all);
        }
        return NULL;
    }
    hf_assert(is_done);
    if (start.status != HF_OK) {
        call->existing_run_id = start.existing_run_id;
        hf_multi_fail(core, call, HF_MULTI_START, start.status, start.detail_type, start.detail, start.message);
        return NULL;
    }
    *ret_is_new = ((const hf_pb_start_workflow_execution_response *)start.response)->started;
    return name->run;
}

void hf_multi_call(hf_core *core, hf_call *call, hf_name *name)
{
    if (!is_good(core, call)) {
        return;
    }
    const hf_pb_update_workflow_execution_request *update = update_of(call);
    hf_run *run = name->run;
    hf_str id = update->request->meta != NULL ? update->request->meta->update_id : HF_STR("");
    bool is_new = false;
    /* The call comes again, and its run has closed meanwhile. */
    bool is_known = run != NULL && !hf_run_is_open(run) && id.len > 0 && hf_run_update(run, id) != NULL;
    if (!is_known) {
        run = start_run(core, call, name, &is_new);
    }
    if (run != NULL) {
        HF_PROBE(core, HF_PROBE_UPDATE_WITH_START);
        hf_core_use(core, run);
        hf_update_of_start(core, call, run, update, is_new);
        hf_core_unuse(core, run);
    }
}

void hf_multi_again(hf_core *core, hf_call *call, hf_run *run)
{
    hf_str request_id = start_of(call)->request_id;
    hf_update_of_start(core, call, run, update_of(call),
                       request_id.len > 0 && hf_str_equal(request_id, hf_owned_str(&run->start_request_id)));
}
