/* The target of a call: a table says where each request has its workflow id, its task token and the words that are stored. */
#include "engine/input_private.h"

#include <stddef.h>

/* Where a request type has these fields: offset + 1; 0 = it does not have the field. */
typedef struct hf_target_fields {
    size_t namespace_;
    size_t execution;           /* workflow id and run, as a message ... */
    size_t update_ref;          /* ... of which this one has one ... */
    size_t workflow_id, run_id; /* ... or as two strings */
    size_t token, identity, reason, request_id;
} hf_target_fields;

#define AT(stem, field) (offsetof(hf_pb_##stem##_request, field) + 1)
#define OF_TASK(stem)                                                                                    \
    {                                                                                                    \
        .namespace_ = AT(stem, namespace), .token = AT(stem, task_token), .identity = AT(stem, identity) \
    }
#define OF_QUEUE(stem)                                                    \
    {                                                                     \
        .namespace_ = AT(stem, namespace), .identity = AT(stem, identity) \
    }
#define OF_READER(stem)                                                     \
    {                                                                       \
        .namespace_ = AT(stem, namespace), .execution = AT(stem, execution) \
    }
#define OF_OPERATOR(stem)                                                                                    \
    {                                                                                                        \
        .namespace_ = AT(stem, namespace), .execution = AT(stem, execution), .identity = AT(stem, identity), \
    }
#define OF_ACTIVITY_ID(stem)                                                                                 \
    {                                                                                                        \
        .namespace_ = AT(stem, namespace), .workflow_id = AT(stem, workflow_id), .run_id = AT(stem, run_id), \
        .identity = AT(stem, identity)                                                                       \
    }

static const hf_target_fields TARGET_FIELDS[HF_METHOD_COUNT] = {
    [HF_METHOD_START_WORKFLOW_EXECUTION] = {.namespace_ = AT(start_workflow_execution, namespace),
                                            .workflow_id = AT(start_workflow_execution, workflow_id),
                                            .identity = AT(start_workflow_execution, identity),
                                            .request_id = AT(start_workflow_execution, request_id)},
    [HF_METHOD_SIGNAL_WORKFLOW_EXECUTION] = {.namespace_ = AT(signal_workflow_execution, namespace),
                                             .execution = AT(signal_workflow_execution, workflow_execution),
                                             .identity = AT(signal_workflow_execution, identity),
                                             .request_id = AT(signal_workflow_execution, request_id)},
    [HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION] = {.namespace_ = AT(request_cancel_workflow_execution, namespace),
                                                     .execution =
                                                         AT(request_cancel_workflow_execution, workflow_execution),
                                                     .identity = AT(request_cancel_workflow_execution, identity),
                                                     .reason = AT(request_cancel_workflow_execution, reason),
                                                     .request_id = AT(request_cancel_workflow_execution, request_id)},
    [HF_METHOD_TERMINATE_WORKFLOW_EXECUTION] = {.namespace_ = AT(terminate_workflow_execution, namespace),
                                                .execution = AT(terminate_workflow_execution, workflow_execution),
                                                .identity = AT(terminate_workflow_execution, identity),
                                                .reason = AT(terminate_workflow_execution, reason)},
    [HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION] = OF_READER(describe_workflow_execution),
    [HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY] = OF_READER(get_workflow_execution_history),
    [HF_METHOD_RESET_STICKY_TASK_QUEUE] = OF_READER(reset_sticky_task_queue),
    [HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED] = OF_TASK(respond_workflow_task_completed),
    [HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED] = OF_TASK(respond_workflow_task_failed),
    [HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED] = OF_TASK(respond_activity_task_completed),
    [HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED] = OF_TASK(respond_activity_task_failed),
    [HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED] = OF_TASK(respond_activity_task_canceled),
    [HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT] = OF_TASK(record_activity_task_heartbeat),
    [HF_METHOD_TELL_LISTENER] = OF_READER(tell_listener),
    [HF_METHOD_POLL_WORKFLOW_TASK_QUEUE] = OF_QUEUE(poll_workflow_task_queue),
    [HF_METHOD_POLL_ACTIVITY_TASK_QUEUE] = OF_QUEUE(poll_activity_task_queue),
    [HF_METHOD_SHUTDOWN_WORKER] = OF_QUEUE(shutdown_worker),
    [HF_METHOD_GET_SYSTEM_INFO] = {0},
    [HF_METHOD_DESCRIBE_NAMESPACE] = {.namespace_ = AT(describe_namespace, namespace)},
    [HF_METHOD_DESCRIBE_TASK_QUEUE] = {.namespace_ = AT(describe_task_queue, namespace)},
    [HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION] =
        {.namespace_ = AT(signal_with_start_workflow_execution, namespace),
         .workflow_id = AT(signal_with_start_workflow_execution, workflow_id),
         .identity = AT(signal_with_start_workflow_execution, identity),
         .request_id = AT(signal_with_start_workflow_execution, request_id)},
    [HF_METHOD_QUERY_WORKFLOW] = OF_READER(query_workflow),
    [HF_METHOD_UPDATE_WORKFLOW_EXECUTION] = {.namespace_ = AT(update_workflow_execution, namespace),
                                             .execution = AT(update_workflow_execution, workflow_execution)},
    [HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE] = {.namespace_ = AT(poll_workflow_execution_update, namespace),
                                                  .update_ref = AT(poll_workflow_execution_update, update_ref),
                                                  .identity = AT(poll_workflow_execution_update, identity)},
    [HF_METHOD_EXECUTE_MULTI_OPERATION] = {.namespace_ = AT(execute_multi_operation, namespace)},
    [HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE] = OF_READER(get_workflow_execution_history_reverse),
    [HF_METHOD_RESPOND_QUERY_TASK_COMPLETED] = {.namespace_ = AT(respond_query_task_completed, namespace),
                                                .token = AT(respond_query_task_completed, task_token)},
    [HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID] = OF_ACTIVITY_ID(respond_activity_task_completed_by_id),
    [HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID] = OF_ACTIVITY_ID(respond_activity_task_failed_by_id),
    [HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID] = OF_ACTIVITY_ID(respond_activity_task_canceled_by_id),
    [HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID] = OF_ACTIVITY_ID(record_activity_task_heartbeat_by_id),
    [HF_METHOD_RESET_WORKFLOW_EXECUTION] = {.namespace_ = AT(reset_workflow_execution, namespace),
                                            .execution = AT(reset_workflow_execution, workflow_execution),
                                            .identity = AT(reset_workflow_execution, identity),
                                            .reason = AT(reset_workflow_execution, reason),
                                            .request_id = AT(reset_workflow_execution, request_id)},
    [HF_METHOD_DELETE_WORKFLOW_EXECUTION] = {.namespace_ = AT(delete_workflow_execution, namespace),
                                             .execution = AT(delete_workflow_execution, workflow_execution)},
    [HF_METHOD_UPDATE_WORKFLOW_EXECUTION_OPTIONS] = {.namespace_ = AT(update_workflow_execution_options, namespace),
                                                     .execution =
                                                         AT(update_workflow_execution_options, workflow_execution),
                                                     .identity = AT(update_workflow_execution_options, identity)},
    [HF_METHOD_PAUSE_ACTIVITY] = {.namespace_ = AT(pause_activity, namespace),
                                  .execution = AT(pause_activity, execution),
                                  .identity = AT(pause_activity, identity),
                                  .reason = AT(pause_activity, reason),
                                  .request_id = AT(pause_activity, request_id)},
    [HF_METHOD_UNPAUSE_ACTIVITY] = OF_OPERATOR(unpause_activity),
    [HF_METHOD_RESET_ACTIVITY] = OF_OPERATOR(reset_activity),
    [HF_METHOD_UPDATE_ACTIVITY_OPTIONS] = OF_OPERATOR(update_activity_options),
    [HF_METHOD_LIST_WORKFLOW_EXECUTIONS] = {.namespace_ = AT(list_workflow_executions, namespace)},
    [HF_METHOD_SCAN_WORKFLOW_EXECUTIONS] = {.namespace_ = AT(scan_workflow_executions, namespace)},
    [HF_METHOD_COUNT_WORKFLOW_EXECUTIONS] = {.namespace_ = AT(count_workflow_executions, namespace)},
    [HF_METHOD_LIST_OPEN_WORKFLOW_EXECUTIONS] = {.namespace_ = AT(list_open_workflow_executions, namespace)},
    [HF_METHOD_LIST_CLOSED_WORKFLOW_EXECUTIONS] = {.namespace_ = AT(list_closed_workflow_executions, namespace)},
    [HF_METHOD_REGISTER_NAMESPACE] = {.namespace_ = AT(register_namespace, namespace)},
    [HF_METHOD_UPDATE_NAMESPACE] = {.namespace_ = AT(update_namespace, namespace)},
    [HF_METHOD_DEPRECATE_NAMESPACE] = {.namespace_ = AT(deprecate_namespace, namespace)},
    [HF_METHOD_LIST_NAMESPACES] = {0},
    [HF_METHOD_ADD_SEARCH_ATTRIBUTES] = {.namespace_ = AT(add_search_attributes, namespace)},
    [HF_METHOD_REMOVE_SEARCH_ATTRIBUTES] = {.namespace_ = AT(remove_search_attributes, namespace)},
    [HF_METHOD_LIST_SEARCH_ATTRIBUTES] = {.namespace_ = AT(list_search_attributes, namespace)},
    [HF_METHOD_GET_SEARCH_ATTRIBUTES] = {0},
    [HF_METHOD_GET_CLUSTER_INFO] = {0},
    [HF_METHOD_LOCK_TIME_SKIPPING] = {0}, /* these are the loop's (skip.c) */
    [HF_METHOD_UNLOCK_TIME_SKIPPING] = {0},
    [HF_METHOD_SLEEP] = {0},
    [HF_METHOD_SLEEP_UNTIL] = {0},
    [HF_METHOD_UNLOCK_TIME_SKIPPING_WITH_SLEEP] = {0},
    [HF_METHOD_GET_CURRENT_TIME] = {0},
    [HF_METHOD_START_BATCH_OPERATION] = {.namespace_ = AT(start_batch_operation, namespace)},
    [HF_METHOD_STOP_BATCH_OPERATION] = {.namespace_ = AT(stop_batch_operation, namespace),
                                        .identity = AT(stop_batch_operation, identity),
                                        .reason = AT(stop_batch_operation, reason)},
    [HF_METHOD_DESCRIBE_BATCH_OPERATION] = {.namespace_ = AT(describe_batch_operation, namespace)},
    [HF_METHOD_LIST_BATCH_OPERATIONS] = {.namespace_ = AT(list_batch_operations, namespace)},
    [HF_METHOD_DELETE_NAMESPACE] = {.namespace_ = AT(delete_namespace, namespace)},
    [HF_METHOD_READ_STREAM] = OF_READER(read_stream),
    [HF_METHOD_READ_CHANGES] = {.namespace_ = AT(read_changes, namespace)},
    [HF_METHOD_LIST_TASK_QUEUES] = {.namespace_ = AT(list_task_queues, namespace)},
};

static hf_str str_at(const void *request, size_t at)
{
    return at > 0 ? *(const hf_str *)(const void *)((const char *)request + at - 1) : (hf_str){0};
}

static const void *message_at(const void *request, size_t at)
{
    return at > 0 ? *(const void *const *)(const void *)((const char *)request + at - 1) : NULL;
}

static const hf_pb_workflow_execution *execution_of(const hf_call *call)
{
    const hf_target_fields *fields = &TARGET_FIELDS[call->method];
    const hf_pb_update_ref *update = message_at(call->request, fields->update_ref);
    return update != NULL ? update->workflow_execution : message_at(call->request, fields->execution);
}

/* The start among the operations of one call; NULL = there is none. */
static const hf_pb_start_workflow_execution_request *start_among(const hf_call *call)
{
    REQUEST(execute_multi_operation);
    for (size_t i = 0; i < request->operations.count; i++) {
        const hf_pb_execute_multi_operation_request_operation *operation = &request->operations.items[i];
        if (operation->operation_case == HF_PB_EXECUTE_MULTI_OPERATION_REQUEST_OPERATION_START_WORKFLOW) {
            return operation->start_workflow;
        }
    }
    return NULL;
}

hf_target hf_call_target(const hf_call *call)
{
    hf_assert(call->method < HF_METHOD_COUNT && call->request != NULL);
    const hf_target_fields *fields = &TARGET_FIELDS[call->method];
    const char *request = call->request;
    hf_target target = {
        .namespace_ = str_at(request, fields->namespace_),
        .workflow_id = str_at(request, fields->workflow_id),
        .run_id = str_at(request, fields->run_id),
        .token = str_at(request, fields->token),
    };
    const hf_pb_workflow_execution *execution = execution_of(call);
    const hf_pb_start_workflow_execution_request *start =
        call->method == HF_METHOD_EXECUTE_MULTI_OPERATION ? start_among(call) : NULL;
    if (execution != NULL) {
        target.workflow_id = execution->workflow_id;
        target.run_id = execution->run_id;
    } else if (start != NULL) {
        target.workflow_id = start->workflow_id;
    }
    target.names_workflow = execution != NULL || target.workflow_id.len > 0;
    return target;
}

hf_str hf_call_run_id(const hf_call *call)
{
    const hf_pb_workflow_execution *execution = execution_of(call);
    return execution != NULL ? execution->run_id : str_at(call->request, TARGET_FIELDS[call->method].run_id);
}

hf_call_words hf_call_words_of(const hf_call *call)
{
    const hf_target_fields *fields = &TARGET_FIELDS[call->method];
    return (hf_call_words){
        .identity = str_at(call->request, fields->identity),
        .reason = str_at(call->request, fields->reason),
        .request_id = str_at(call->request, fields->request_id),
    };
}

hf_str hf_call_token(const hf_call *call)
{
    hf_assert(TARGET_FIELDS[call->method].token != 0);
    return str_at(call->request, TARGET_FIELDS[call->method].token);
}
