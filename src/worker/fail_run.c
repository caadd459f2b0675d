/* Runs that this worker can never continue, and that it fails on request instead of waiting for another worker: their type
 * was not added (.is_strict), or the code does not do what the history says (.fails_on_conflict). */
#include "worker/wf.h"

#include "history/payload.h"

bool hf_wf_fails_run(const hf_wf *wf, hf_status status)
{
    const hf_worker_options *o = &wf->worker->options;
    bool is_unknown = status == HF_ERR_NOT_FOUND && wf->entry == NULL;
    return (o->is_strict && is_unknown) || (o->fails_on_conflict && status == HF_ERR_CONFLICT);
}

void hf_wf_fail_run(hf_wf *wf, const hf_wtask *task, const hf_op *why)
{
    hf_worker *worker = wf->worker;
    bool is_unknown = wf->entry == NULL;
    hf_assert(hf_wf_fails_run(wf, why->status));
    hf_log(worker->rt, HF_LOG_ERROR, is_unknown ? "workflow_unknown" : "workflow_not_deterministic",
           "workflow=%.*s run=%.*s message=%s", HF_STR_ARGS(wf->id), HF_STR_ARGS(wf->run_id), why->message);
    hf_arena arena;
    hf_arena_init(&arena, worker->memory);
    hf_pb_fail_workflow_execution_command_attributes attributes = {
        .failure = hf_failure_application(&arena, is_unknown ? HF_STR("NotFound") : HF_STR("NotDeterministic"),
                                          hf_str_of(why->message), true)};
    hf_pb_command command = {.command_type = HF_COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION,
                             .attributes_case = HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
                             .fail_workflow_execution_command_attributes = &attributes};
    hf_pb_respond_workflow_task_completed_request request = {.namespace = worker->namespace_,
                                                             .identity = worker->identity,
                                                             .task_token = task->task->task_token,
                                                             .commands = {&command, 1}};
    hf_op op;
    hf_op_init(&op);
    hf_call call;
    hf_worker_call_init(worker, &call, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &request, &arena);
    if (attributes.failure == NULL) {
        (void)hf_fail(&op, HF_ERR_NOMEM, "no memory for the failure of the run");
    } else {
        (void)hf_service_ask(&op, worker->service, &call);
    }
    if (op.status != HF_OK) { /* the task times out, and comes again */
        hf_log(worker->rt, HF_LOG_WARN, "workflow_task_refused", "workflow=%.*s run=%.*s message=%s",
               HF_STR_ARGS(wf->id), HF_STR_ARGS(wf->run_id), op.message);
    }
    hf_arena_deinit(&arena);
}
