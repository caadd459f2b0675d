#include "service/service.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

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
        INFO(HF_METHOD_GET_SYSTEM_INFO, "GetSystemInfo", get_system_info),
        INFO(HF_METHOD_DESCRIBE_NAMESPACE, "DescribeNamespace", describe_namespace),
        INFO(HF_METHOD_DESCRIBE_TASK_QUEUE, "DescribeTaskQueue", describe_task_queue),
        INFO(HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION, "SignalWithStartWorkflowExecution",
             signal_with_start_workflow_execution),
        INFO(HF_METHOD_QUERY_WORKFLOW, "QueryWorkflow", query_workflow),
        INFO(HF_METHOD_UPDATE_WORKFLOW_EXECUTION, "UpdateWorkflowExecution", update_workflow_execution),
        INFO(HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE, "PollWorkflowExecutionUpdate", poll_workflow_execution_update),
        INFO(HF_METHOD_EXECUTE_MULTI_OPERATION, "ExecuteMultiOperation", execute_multi_operation),
        INFO(HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE, "GetWorkflowExecutionHistoryReverse",
             get_workflow_execution_history_reverse),
        INFO(HF_METHOD_RESPOND_QUERY_TASK_COMPLETED, "RespondQueryTaskCompleted", respond_query_task_completed),
        INFO(HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID, "RespondActivityTaskCompletedById",
             respond_activity_task_completed_by_id),
        INFO(HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID, "RespondActivityTaskFailedById",
             respond_activity_task_failed_by_id),
        INFO(HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID, "RespondActivityTaskCanceledById",
             respond_activity_task_canceled_by_id),
        INFO(HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID, "RecordActivityTaskHeartbeatById",
             record_activity_task_heartbeat_by_id),
        INFO(HF_METHOD_RESET_WORKFLOW_EXECUTION, "ResetWorkflowExecution", reset_workflow_execution),
        INFO(HF_METHOD_DELETE_WORKFLOW_EXECUTION, "DeleteWorkflowExecution", delete_workflow_execution),
        INFO(HF_METHOD_UPDATE_WORKFLOW_EXECUTION_OPTIONS, "UpdateWorkflowExecutionOptions",
             update_workflow_execution_options),
        INFO(HF_METHOD_PAUSE_ACTIVITY, "PauseActivity", pause_activity),
        INFO(HF_METHOD_UNPAUSE_ACTIVITY, "UnpauseActivity", unpause_activity),
        INFO(HF_METHOD_RESET_ACTIVITY, "ResetActivity", reset_activity),
        INFO(HF_METHOD_UPDATE_ACTIVITY_OPTIONS, "UpdateActivityOptions", update_activity_options),
        INFO(HF_METHOD_TELL_LISTENER, "TellListener", tell_listener),
        INFO(HF_METHOD_LIST_WORKFLOW_EXECUTIONS, "ListWorkflowExecutions", list_workflow_executions),
        INFO(HF_METHOD_SCAN_WORKFLOW_EXECUTIONS, "ScanWorkflowExecutions", scan_workflow_executions),
        INFO(HF_METHOD_COUNT_WORKFLOW_EXECUTIONS, "CountWorkflowExecutions", count_workflow_executions),
        INFO(HF_METHOD_LIST_OPEN_WORKFLOW_EXECUTIONS, "ListOpenWorkflowExecutions", list_open_workflow_executions),
        INFO(HF_METHOD_LIST_CLOSED_WORKFLOW_EXECUTIONS, "ListClosedWorkflowExecutions",
             list_closed_workflow_executions),
        INFO(HF_METHOD_REGISTER_NAMESPACE, "RegisterNamespace", register_namespace),
        INFO(HF_METHOD_UPDATE_NAMESPACE, "UpdateNamespace", update_namespace),
        INFO(HF_METHOD_DEPRECATE_NAMESPACE, "DeprecateNamespace", deprecate_namespace),
        INFO(HF_METHOD_LIST_NAMESPACES, "ListNamespaces", list_namespaces),
        INFO(HF_METHOD_ADD_SEARCH_ATTRIBUTES, "AddSearchAttributes", add_search_attributes),
        INFO(HF_METHOD_REMOVE_SEARCH_ATTRIBUTES, "RemoveSearchAttributes", remove_search_attributes),
        INFO(HF_METHOD_LIST_SEARCH_ATTRIBUTES, "ListSearchAttributes", list_search_attributes),
        INFO(HF_METHOD_GET_SEARCH_ATTRIBUTES, "GetSearchAttributes", get_search_attributes),
        INFO(HF_METHOD_GET_CLUSTER_INFO, "GetClusterInfo", get_cluster_info),
        INFO(HF_METHOD_LOCK_TIME_SKIPPING, "LockTimeSkipping", lock_time_skipping),
        INFO(HF_METHOD_UNLOCK_TIME_SKIPPING, "UnlockTimeSkipping", unlock_time_skipping),
        INFO(HF_METHOD_SLEEP, "Sleep", sleep),
        [HF_METHOD_SLEEP_UNTIL] = {"SleepUntil", &hf_pb_sleep_until_request_type, &hf_pb_sleep_response_type,
                                   sizeof(hf_pb_sleep_response)},
        [HF_METHOD_UNLOCK_TIME_SKIPPING_WITH_SLEEP] = {"UnlockTimeSkippingWithSleep", &hf_pb_sleep_request_type,
                                                       &hf_pb_sleep_response_type, sizeof(hf_pb_sleep_response)},
        [HF_METHOD_GET_CURRENT_TIME] = {"GetCurrentTime", &hf_pb_empty_type, &hf_pb_get_current_time_response_type,
                                        sizeof(hf_pb_get_current_time_response)},
        INFO(HF_METHOD_START_BATCH_OPERATION, "StartBatchOperation", start_batch_operation),
        INFO(HF_METHOD_STOP_BATCH_OPERATION, "StopBatchOperation", stop_batch_operation),
        INFO(HF_METHOD_DESCRIBE_BATCH_OPERATION, "DescribeBatchOperation", describe_batch_operation),
        INFO(HF_METHOD_LIST_BATCH_OPERATIONS, "ListBatchOperations", list_batch_operations),
        INFO(HF_METHOD_DELETE_NAMESPACE, "DeleteNamespace", delete_namespace),
        INFO(HF_METHOD_READ_STREAM, "ReadStream", read_stream),
        INFO(HF_METHOD_READ_CHANGES, "ReadChanges", read_changes),
        INFO(HF_METHOD_LIST_TASK_QUEUES, "ListTaskQueues", list_task_queues),
    };
    _Static_assert(HF_COUNT_OF(INFOS) == HF_METHOD_COUNT, "every method has its line");
    hf_assert((size_t)method < HF_COUNT_OF(INFOS));
    return &INFOS[method];
}

bool hf_status_detail(hf_status status, const hf_pb_type **ret_type, const void **ret_detail)
{
    static const hf_pb_not_found_failure NOT_FOUND = {0};
    static const hf_pb_workflow_not_ready_failure NOT_READY = {0};
    static const hf_pb_permission_denied_failure DENIED = {0};
    static const hf_pb_resource_exhausted_failure LIMIT = {.scope = HF_RESOURCE_EXHAUSTED_SCOPE_NAMESPACE};
    static const hf_pb_resource_exhausted_failure NO_MEMORY = {.cause = HF_RESOURCE_EXHAUSTED_CAUSE_SYSTEM_OVERLOADED,
                                                               .scope = HF_RESOURCE_EXHAUSTED_SCOPE_SYSTEM};
    static const hf_pb_resource_exhausted_failure DISK_FULL = {
        .cause = HF_RESOURCE_EXHAUSTED_CAUSE_PERSISTENCE_STORAGE_LIMIT, .scope = HF_RESOURCE_EXHAUSTED_SCOPE_SYSTEM};
    static const struct {
        hf_status status;
        const hf_pb_type *type;
        const void *detail;
    } DETAILS[] = {
        {HF_ERR_NOT_FOUND, &hf_pb_not_found_failure_type, &NOT_FOUND},
        {HF_ERR_NOT_READY, &hf_pb_workflow_not_ready_failure_type, &NOT_READY},
        {HF_ERR_DENIED, &hf_pb_permission_denied_failure_type, &DENIED},
        {HF_ERR_LIMIT, &hf_pb_resource_exhausted_failure_type, &LIMIT},
        {HF_ERR_NOMEM, &hf_pb_resource_exhausted_failure_type, &NO_MEMORY},
        {HF_ERR_FULL, &hf_pb_resource_exhausted_failure_type, &DISK_FULL},
    };
    for (size_t i = 0; i < HF_COUNT_OF(DETAILS); i++) {
        if (DETAILS[i].status == status) {
            *ret_type = DETAILS[i].type;
            *ret_detail = DETAILS[i].detail;
            return true;
        }
    }
    return false;
}

void hf_call_set_failure(hf_call *call, hf_status status, const char *why)
{
    hf_assert(status != HF_OK);
    call->status = status;
    call->response = NULL;
    call->detail_type = NULL;
    call->detail = NULL;
    call->is_final = false;
    call->words = NULL;
    call->retry_after = (hf_span){0};
    (void)hf_status_detail(status, &call->detail_type, &call->detail);
    (void)snprintf(call->message, sizeof call->message, "%s", why);
}

void hf_call_init(hf_call *call, hf_method method, const void *request, hf_arena *arena, void (*done)(hf_call *call))
{
    memset(call, 0, offsetof(hf_call, message) + 1); /* half of a call is room for a sentence */
    memset(&call->link, 0, sizeof *call - offsetof(hf_call, link));
    call->method = method;
    call->request = request;
    call->arena = arena;
    call->done = done;
}
