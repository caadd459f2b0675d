/* A call has found its run: it is given to the machine that it is for. */
#include "engine/input_private.h"

#include "engine/answer.h"
#include "engine/history_read.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/machines/multi.h"
#include "engine/machines/query.h"
#include "engine/machines/speculative.h"
#include "engine/machines/update.h"
#include "engine/matching.h"
#include "engine/size.h"
#include "engine/stream.h"
#include "engine/token.h"

static bool chain_matches(const hf_run *run, hf_str first_run_id)
{
    return first_run_id.len == 0 || hf_str_equal(hf_owned_str(&run->first_run_id), first_run_id);
}

static void of_task(hf_core *core, hf_call *call, hf_run *run, hf_str bytes)
{
    hf_token token = core->token;
    bool workflow = call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED ||
                    call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED;
    if (core->token_call != call) { /* the call has waited for its run */
        bool is_ours = hf_token_decode(core, bytes, &token);
        hf_assert(is_ours); /* by_token has decoded it before */
    }
    hf_assert(token.run == run->number);
    if (call->method == HF_METHOD_RESPOND_QUERY_TASK_COMPLETED) {
        hf_query_answer_call(core, call, run, &token);
        return;
    }
    if (!workflow) {
        hf_activity_answer(core, call, run, &token);
        return;
    }
    if (!hf_wft_holds(core, run, &token)) {
        HF_PROBE(core, HF_PROBE_LATE_ANSWER);
        hf_call_say(core, call, "Workflow task not found.");
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "this workflow task is not running any more: it ended or timed out");
        return;
    }
    if (HF_SLOT(run)->commit_ahead == core->commit_next) {
        hf_assert(core->ahead > 0);
        HF_SLOT(run)->commit_ahead = 0;
        core->ahead--;
    }
    if (call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
        hf_respond_workflow_task_completed(core, call, run);
    } else {
        hf_speculative_convert(core, run);
        hf_match_remove(core, &run->wft.task);
        if (core->status == HF_OK) {
            hf_wft_fail_call(core, call, run);
        }
    }
}

static void refuse_other_chain(hf_core *core, hf_call *call)
{
    hf_call_say(core, call, "workflow execution not found");
    hf_call_fail(core, call, HF_ERR_NOT_FOUND, "the current run belongs to another chain");
}

void hf_input_dispatch(hf_core *core, hf_call *call, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->loading && !HF_SLOT(run)->bad);               /* engine-E3 */
    hf_assert(run->deleting == HF_DELETING_NOT || hf_deletion_asks(call)); /* engine-X1 */
    switch (call->method) {
    case HF_METHOD_SIGNAL_WORKFLOW_EXECUTION:
        hf_signal_call(core, call, run);
        return;
    case HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION: {
        REQUEST(request_cancel_workflow_execution);
        if (!chain_matches(run, request->first_execution_run_id)) {
            refuse_other_chain(core, call);
            return;
        }
        hf_cancel_call(core, call, run);
        return;
    }
    case HF_METHOD_TERMINATE_WORKFLOW_EXECUTION: {
        REQUEST(terminate_workflow_execution);
        if (!chain_matches(run, request->first_execution_run_id)) {
            refuse_other_chain(core, call);
            return;
        }
        if (!hf_call_data_fits(core, call, "details", hf_payloads_len(request->details))) {
            return;
        }
        hf_execution_terminate_call(core, call, run);
        return;
    }
    case HF_METHOD_TELL_LISTENER:
        hf_listener_call(core, call, run);
        return;
    case HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION:
        hf_describe_call(core, call, run);
        return;
    case HF_METHOD_DELETE_WORKFLOW_EXECUTION:
        hf_delete_call(core, call, run);
        return;
    case HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY:
        hf_history_call(core, call, run);
        return;
    case HF_METHOD_READ_STREAM:
        hf_read_stream_call(core, call, run);
        return;
    case HF_METHOD_RESET_STICKY_TASK_QUEUE:
        if (hf_run_is_open(run)) {
            hf_speculative_convert(core, run);
            hf_wft_move_to_all(core, run);
        }
        hf_call_response(core, call);
        hf_call_reply(core, call);
        return;
    case HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED:
    case HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED:
    case HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT:
    case HF_METHOD_RESPOND_QUERY_TASK_COMPLETED:
        of_task(core, call, run, hf_call_token(call));
        return;
    case HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID:
    case HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID:
        hf_activity_answer_by_id(core, call, run);
        return;
    case HF_METHOD_PAUSE_ACTIVITY:
    case HF_METHOD_UNPAUSE_ACTIVITY:
    case HF_METHOD_RESET_ACTIVITY:
    case HF_METHOD_UPDATE_ACTIVITY_OPTIONS:
        hf_activity_control_call(core, call, run);
        return;
    case HF_METHOD_QUERY_WORKFLOW:
        hf_query_call(core, call, run);
        return;
    case HF_METHOD_UPDATE_WORKFLOW_EXECUTION:
        hf_update_call(core, call, run);
        return;
    case HF_METHOD_EXECUTE_MULTI_OPERATION:
        hf_multi_again(core, call, run);
        return;
    case HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE:
        hf_update_poll_call(core, call, run);
        return;
    case HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE:
        hf_history_reverse_call(core, call, run);
        return;
    case HF_METHOD_RESET_WORKFLOW_EXECUTION:
        hf_reset_call(core, call, run);
        return;
    case HF_METHOD_UPDATE_WORKFLOW_EXECUTION_OPTIONS:
        hf_options_call(core, call, run);
        return;
    case HF_METHOD_STOP_BATCH_OPERATION:
    case HF_METHOD_DESCRIBE_BATCH_OPERATION:
        hf_batch_run_call(core, call, run);
        return;
    case HF_METHOD_START_BATCH_OPERATION:
    case HF_METHOD_LIST_BATCH_OPERATIONS:
    case HF_METHOD_DELETE_NAMESPACE:
    case HF_METHOD_START_WORKFLOW_EXECUTION:
    case HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION:
    case HF_METHOD_GET_SYSTEM_INFO:
    case HF_METHOD_DESCRIBE_NAMESPACE:
    case HF_METHOD_DESCRIBE_TASK_QUEUE:
    case HF_METHOD_POLL_WORKFLOW_TASK_QUEUE:
    case HF_METHOD_POLL_ACTIVITY_TASK_QUEUE:
    case HF_METHOD_SHUTDOWN_WORKER:
    case HF_METHOD_LIST_WORKFLOW_EXECUTIONS:
    case HF_METHOD_SCAN_WORKFLOW_EXECUTIONS:
    case HF_METHOD_COUNT_WORKFLOW_EXECUTIONS:
    case HF_METHOD_LIST_OPEN_WORKFLOW_EXECUTIONS:
    case HF_METHOD_LIST_CLOSED_WORKFLOW_EXECUTIONS:
    case HF_METHOD_REGISTER_NAMESPACE:
    case HF_METHOD_UPDATE_NAMESPACE:
    case HF_METHOD_DEPRECATE_NAMESPACE:
    case HF_METHOD_LIST_NAMESPACES:
    case HF_METHOD_ADD_SEARCH_ATTRIBUTES:
    case HF_METHOD_REMOVE_SEARCH_ATTRIBUTES:
    case HF_METHOD_LIST_SEARCH_ATTRIBUTES:
    case HF_METHOD_GET_SEARCH_ATTRIBUTES:
    case HF_METHOD_GET_CLUSTER_INFO:
    case HF_METHOD_LOCK_TIME_SKIPPING:
    case HF_METHOD_UNLOCK_TIME_SKIPPING:
    case HF_METHOD_SLEEP:
    case HF_METHOD_SLEEP_UNTIL:
    case HF_METHOD_UNLOCK_TIME_SKIPPING_WITH_SLEEP:
    case HF_METHOD_GET_CURRENT_TIME:
    case HF_METHOD_READ_CHANGES:
    case HF_METHOD_LIST_TASK_QUEUES:
    case HF_METHOD_COUNT:
        break;
    }
    hf_call_fail(core, call, HF_ERR_UNSUPPORTED, "this call is not about a run");
}
