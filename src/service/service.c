#include "service/service.h"

#define INFO(number, name, stem) \
    [number] = {name, &hf_pb_##stem##_request_type, &hf_pb_##stem##_response_type, sizeof(hf_pb_##stem##_response)}

const hf_method_info *hf_method_info_of(hf_method method)
{
    static const hf_method_info INFOS[] = {
        INFO(HF_METHOD_START_WORKFLOW_EXECUTION, "StartWorkflowExecution", start_workflow_execution),
        INFO(HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, "SignalWorkflowExecution", signal_workflow_execution),
        INFO(HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION, "RequestCancelWorkflowExecution",
             request_cancel_workflow_execution),
        INFO(HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, "TerminateWorkflowExecution", terminate_workflow_execution),
        INFO(HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, "DescribeWorkflowExecution", describe_workflow_execution),
        INFO(HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, "GetWorkflowExecutionHistory", get_workflow_execution_history),
        INFO(HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, "PollWorkflowTaskQueue", poll_workflow_task_queue),
        INFO(HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, "RespondWorkflowTaskCompleted",
             respond_workflow_task_completed),
        INFO(HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED, "RespondWorkflowTaskFailed", respond_workflow_task_failed),
        INFO(HF_METHOD_RESET_STICKY_TASK_QUEUE, "ResetStickyTaskQueue", reset_sticky_task_queue),
        INFO(HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, "PollActivityTaskQueue", poll_activity_task_queue),
        INFO(HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED, "RespondActivityTaskCompleted",
             respond_activity_task_completed),
        INFO(HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, "RespondActivityTaskFailed", respond_activity_task_failed),
        INFO(HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED, "RespondActivityTaskCanceled", respond_activity_task_canceled),
        INFO(HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT, "RecordActivityTaskHeartbeat", record_activity_task_heartbeat),
        INFO(HF_METHOD_SHUTDOWN_WORKER, "ShutdownWorker", shutdown_worker),
    };
    _Static_assert(HF_COUNT_OF(INFOS) == HF_METHOD_COUNT, "every method has its line");
    hf_assert((size_t)method < HF_COUNT_OF(INFOS));
    return &INFOS[method];
}

void hf_call_init(hf_call *call, hf_method method, const void *request, hf_arena *arena, void (*done)(hf_call *call))
{
    *call = (hf_call){.method = method, .request = request, .arena = arena, .done = done};
}
