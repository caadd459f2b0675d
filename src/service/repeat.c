#include "service/repeat.h"

#include "service/grpc_path.h"

enum {
    POLL_SECONDS = 70, /* as other SDKs: a server answers a poll after 60 s */
    CALL_SECONDS = 30,
    PATIENCE_SECONDS = 10, /* as other SDKs */
    OPEN_SECONDS = 5,      /* hf_open waits as long for a server that is just starting */
    ANSWER_SECONDS = 2,    /* the worker sends it again with the same token, until it has to stop */
};

static const hf_manner POLL = {HF_REPEAT_ALWAYS, 0, POLL_SECONDS, false};
static const hf_manner WAIT = {HF_REPEAT_ALWAYS, PATIENCE_SECONDS, CALL_SECONDS, true};
static const hf_manner WAIT_BY_ID = {HF_REPEAT_BY_ID, PATIENCE_SECONDS, CALL_SECONDS, true};
static const hf_manner ANSWER = {HF_REPEAT_ALWAYS, ANSWER_SECONDS, CALL_SECONDS, false};
static const hf_manner PROBE = {HF_REPEAT_ALWAYS, OPEN_SECONDS, CALL_SECONDS, false};
static const hf_manner READ = {HF_REPEAT_ALWAYS, PATIENCE_SECONDS, CALL_SECONDS, false};
static const hf_manner WRITE_BY_ID = {HF_REPEAT_BY_ID, PATIENCE_SECONDS, CALL_SECONDS, false};
static const hf_manner WRITE_ONCE = {HF_REPEAT_NEVER, PATIENCE_SECONDS, CALL_SECONDS, false};

/* A switch without a default: a method without a row does not compile. */
static hf_manner row_of(hf_method method)
{
    switch (method) {
    case HF_METHOD_POLL_WORKFLOW_TASK_QUEUE:
    case HF_METHOD_POLL_ACTIVITY_TASK_QUEUE:
        return POLL;

    case HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY:
    case HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE:
    case HF_METHOD_QUERY_WORKFLOW:
    case HF_METHOD_READ_STREAM:
    case HF_METHOD_READ_CHANGES:
        return WAIT;
    case HF_METHOD_UPDATE_WORKFLOW_EXECUTION: /* its id is that of the update, and always there */
    case HF_METHOD_EXECUTE_MULTI_OPERATION:   /* the same, and the request id of the start */
        return WAIT_BY_ID;

    /* The task token names the attempt: a second answer is refused with NOT_FOUND, and changes nothing. */
    case HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED:
    case HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT:
        return ANSWER;
    case HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED: /* the worker sends these once */
    case HF_METHOD_RESPOND_QUERY_TASK_COMPLETED:
    case HF_METHOD_RESET_STICKY_TASK_QUEUE:
    case HF_METHOD_SHUTDOWN_WORKER:
    case HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID:
        return READ;

    case HF_METHOD_GET_SYSTEM_INFO:
        return PROBE;
    case HF_METHOD_DESCRIBE_NAMESPACE:
    case HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION:
    case HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE:
    case HF_METHOD_DESCRIBE_TASK_QUEUE:
    case HF_METHOD_LIST_WORKFLOW_EXECUTIONS:
    case HF_METHOD_SCAN_WORKFLOW_EXECUTIONS:
    case HF_METHOD_COUNT_WORKFLOW_EXECUTIONS:
    case HF_METHOD_LIST_OPEN_WORKFLOW_EXECUTIONS:
    case HF_METHOD_LIST_CLOSED_WORKFLOW_EXECUTIONS:
    case HF_METHOD_LIST_NAMESPACES:
    case HF_METHOD_LIST_SEARCH_ATTRIBUTES:
    case HF_METHOD_GET_SEARCH_ATTRIBUTES:
    case HF_METHOD_GET_CLUSTER_INFO:
    case HF_METHOD_DESCRIBE_BATCH_OPERATION:
    case HF_METHOD_LIST_BATCH_OPERATIONS:
    case HF_METHOD_LIST_TASK_QUEUES:
    case HF_METHOD_GET_CURRENT_TIME:
        return READ;

    case HF_METHOD_START_WORKFLOW_EXECUTION:
    case HF_METHOD_SIGNAL_WORKFLOW_EXECUTION:
    case HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION:
    case HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION:
    case HF_METHOD_RESET_WORKFLOW_EXECUTION:
        return WRITE_BY_ID;

    case HF_METHOD_TERMINATE_WORKFLOW_EXECUTION: /* the second time it would find another run, or none */
    case HF_METHOD_DELETE_WORKFLOW_EXECUTION:
    case HF_METHOD_UPDATE_WORKFLOW_EXECUTION_OPTIONS:
    case HF_METHOD_PAUSE_ACTIVITY:
    case HF_METHOD_UNPAUSE_ACTIVITY:
    case HF_METHOD_RESET_ACTIVITY:
    case HF_METHOD_UPDATE_ACTIVITY_OPTIONS:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID: /* an id names all attempts: the second time fails the next one */
    case HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID:
    case HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID:
    case HF_METHOD_REGISTER_NAMESPACE:
    case HF_METHOD_UPDATE_NAMESPACE:
    case HF_METHOD_DEPRECATE_NAMESPACE:
    case HF_METHOD_ADD_SEARCH_ATTRIBUTES:
    case HF_METHOD_REMOVE_SEARCH_ATTRIBUTES:
    case HF_METHOD_START_BATCH_OPERATION: /* the second time its id would be in use */
    case HF_METHOD_STOP_BATCH_OPERATION:
    case HF_METHOD_DELETE_NAMESPACE:
    case HF_METHOD_LOCK_TIME_SKIPPING: /* locks are counted */
    case HF_METHOD_UNLOCK_TIME_SKIPPING:
    case HF_METHOD_SLEEP:
    case HF_METHOD_SLEEP_UNTIL:
    case HF_METHOD_UNLOCK_TIME_SKIPPING_WITH_SLEEP:
        return WRITE_ONCE;

    case HF_METHOD_TELL_LISTENER: /* inside the engine: submit refuses it */
    case HF_METHOD_COUNT:
        break;
    }
    return WRITE_ONCE;
}

hf_manner hf_manner_of(const hf_call *call)
{
    hf_manner manner = row_of(call->method);
    const hf_pb_type *type = hf_method_info_of(call->method)->request_type;
    hf_str id = {0};
    if (manner.repeat == HF_REPEAT_BY_ID && hf_request_text(type, call->request, "request_id", &id) && id.len == 0) {
        manner.repeat = HF_REPEAT_NEVER;
    }
    return manner;
}

#define SECOND_NS INT64_C(1000000000)
#define SPAN_MIN_NS INT64_C(100000000) /* a server needs some time even for a poll that does not wait */
#define SEND_NS (2 * SECOND_NS)        /* time that a wait has to reach the server */

int64_t hf_later(int64_t now_ns, int64_t span_ns)
{
    return span_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + span_ns;
}

int64_t hf_manner_attempt_span(const hf_manner *manner, const hf_call *call)
{
    int64_t wait = call->timeout.ns;
    if (!manner->is_wait || wait == 0) {
        return manner->attempt_s * SECOND_NS;
    }
    /* A server answers a poll a little before its caller's time is over: by a tenth of it, a second at most. */
    int64_t span = hf_later(wait, wait / 9 < SECOND_NS ? wait / 9 + 1 : SECOND_NS);
    return span > SPAN_MIN_NS ? span : SPAN_MIN_NS;
}

int64_t hf_manner_patience_until(const hf_manner *manner, const hf_call *call, int64_t now_ns)
{
    int64_t wait = call->timeout.ns;
    if (manner->is_wait && wait > 0) {
        return hf_later(now_ns, hf_later(wait, SEND_NS));
    }
    return manner->patience_s == 0 ? INT64_MAX : hf_later(now_ns, manner->patience_s * SECOND_NS);
}
