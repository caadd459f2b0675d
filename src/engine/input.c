/* Inputs: a call is checked, finds its run, and is given to the machine it is for. */
#include "engine/input.h"

#include "base/uuid.h"
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/history_page.h"
#include "engine/history_read.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/machines/multi.h"
#include "engine/machines/query.h"
#include "engine/machines/speculative.h"
#include "engine/machines/update.h"
#include "engine/matching.h"
#include "engine/retry.h"
#include "engine/size.h"
#include "engine/system.h"
#include "engine/token.h"
#include "engine/zone.h"
#include "history/limits.h"
#include "ledger/run_id.h"

#include <stddef.h>

/* What a call is about: a workflow id (and perhaps a run), a task token, or a task queue of its namespace. */
typedef struct hf_target {
    hf_str namespace_;
    bool names_workflow; /* the request has a place for a workflow id, and that place is there */
    hf_str workflow_id;
    hf_str run_id; /* empty = the current one */
    hf_str token;
} hf_target;

#define REQUEST(stem) const hf_pb_##stem##_request *request = call->request

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

static hf_target target_of(const hf_call *call)
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

/* ---- Checks ---------------------------------------------------------------------------------------------------------- */

static bool refuse(hf_core *core, hf_call *call, const char *why)
{
    hf_call_fail(core, call, HF_ERR_INVALID, "%s", why);
    return false;
}

static bool id_is_good(hf_str id)
{
    return id.len > 0 && id.len <= HF_ID_LEN_MAX;
}

/* Users' data that comes with a call may not be longer than one blob. */
static bool data_fits(hf_core *core, hf_call *call, const char *what, size_t len)
{
    if (hf_fits(core, len)) {
        return true;
    }
    hf_call_fail(core, call, HF_ERR_TOO_BIG, "the %s has %zu bytes, at most %zu are taken", what, len,
                 core->options.limits.payload_len);
    return false;
}

/* Identity and reason are stored in the history and may be as long as an id. */
static bool words_are_short(hf_core *core, hf_call *call)
{
    const hf_target_fields *fields = &TARGET_FIELDS[call->method];
    if (str_at(call->request, fields->identity).len > HF_ID_LEN_MAX) {
        return refuse(core, call, "Identity is longer than 1000 bytes.");
    }
    if (str_at(call->request, fields->request_id).len > HF_ID_LEN_MAX) {
        return refuse(core, call, "RequestId is longer than 1000 bytes.");
    }
    return str_at(call->request, fields->reason).len <= HF_ID_LEN_MAX ||
           refuse(core, call, "Reason is longer than 1000 bytes.");
}

/* Checks the fields of an answer to a workflow task that are stored in the history beside its commands. */
static bool completion_is_good(hf_core *core, hf_call *call)
{
    REQUEST(respond_workflow_task_completed);
    if (request->binary_checksum.len > HF_ID_LEN_MAX) {
        return refuse(core, call, "BinaryChecksum is longer than 1000 bytes.");
    }
    return data_fits(core, call, "worker version",
                     hf_message_len(core, &hf_pb_worker_version_stamp_type, request->worker_version_stamp)) &&
           data_fits(core, call, "SDK metadata",
                     hf_message_len(core, &hf_pb_workflow_task_completed_metadata_type, request->sdk_metadata)) &&
           data_fits(core, call, "metering metadata",
                     hf_message_len(core, &hf_pb_metering_metadata_type, request->metering_metadata));
}

static bool signal_is_good(hf_core *core, hf_call *call, hf_str name, const hf_pb_payloads *input,
                           const hf_pb_header *header)
{
    if (!id_is_good(name)) {
        return refuse(core, call, "SignalName is not set on request, or longer than 1000 bytes.");
    }
    return data_fits(core, call, "input", hf_payloads_len(input)) &&
           data_fits(core, call, "header", hf_message_len(core, &hf_pb_header_type, header));
}

/* The conflict policy is about an id whose run is open, the reuse policy about one whose run is closed. Where both decide about an
 * open run they must agree. */
static bool policies_agree(const hf_pb_start_workflow_execution_request *request)
{
    int32_t reuse = request->workflow_id_reuse_policy;
    int32_t conflict = request->workflow_id_conflict_policy;
    if (reuse == HF_WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING) {
        return conflict == HF_WORKFLOW_ID_CONFLICT_POLICY_UNSPECIFIED;
    }
    return reuse != HF_WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE ||
           conflict != HF_WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING;
}

bool hf_start_is_good(hf_core *core, hf_call *call, const hf_pb_start_workflow_execution_request *request)
{
    if (!id_is_good(request->workflow_id)) {
        return refuse(core, call, "WorkflowId is not set on request, or longer than 1000 bytes.");
    }
    if (request->workflow_type == NULL || !id_is_good(request->workflow_type->name)) {
        return refuse(core, call, "WorkflowType is not set on request, or longer than 1000 bytes.");
    }
    if (request->task_queue == NULL || !id_is_good(request->task_queue->name)) {
        return refuse(core, call, "TaskQueue is not set on request, or longer than 1000 bytes.");
    }
    if (hf_pb_duration_span(request->workflow_execution_timeout).ns < 0 ||
        hf_pb_duration_span(request->workflow_run_timeout).ns < 0 ||
        hf_pb_duration_span(request->workflow_task_timeout).ns < 0) {
        return refuse(core, call, "A timeout of the request is negative.");
    }
    if (!policies_agree(request)) {
        return refuse(core, call, "WorkflowIdReusePolicy and WorkflowIdConflictPolicy contradict each other.");
    }
    if (hf_failure_is_deep(request->continued_failure)) {
        return refuse(core, call, "ContinuedFailure has too many causes.");
    }
    if (hf_pb_duration_span(request->workflow_start_delay).ns < 0) {
        return refuse(core, call, "WorkflowStartDelay is negative.");
    }
    if (request->cron_schedule.len > 0 && hf_pb_duration_span(request->workflow_start_delay).ns > 0) {
        return refuse(core, call, "CronSchedule and WorkflowStartDelay may not be used together.");
    }
    const hf_pb_on_conflict_options *attach = request->on_conflict_options;
    if (attach != NULL && attach->attach_completion_callbacks && !attach->attach_request_id) {
        return refuse(core, call, "OnConflictOptions: callbacks are attached together with the request id.");
    }
    if (!hf_priority_is_good(core, call, request->priority)) {
        return false;
    }
    if (hf_retry_check(&core->op, request->retry_policy) != HF_OK) {
        return refuse(core, call, core->op.message);
    }
    if (!hf_zone_check_cron(core, call, request->cron_schedule)) {
        return false;
    }
    return data_fits(core, call, "input", hf_payloads_len(request->input)) &&
           data_fits(core, call, "last result", hf_payloads_len(request->last_completion_result)) &&
           data_fits(core, call, "continued failure",
                     hf_message_len(core, &hf_pb_failure_type, request->continued_failure)) &&
           data_fits(core, call, "memo", hf_message_len(core, &hf_pb_memo_type, request->memo)) &&
           data_fits(core, call, "search attributes",
                     hf_message_len(core, &hf_pb_search_attributes_type, request->search_attributes)) &&
           data_fits(core, call, "header", hf_message_len(core, &hf_pb_header_type, request->header));
}

static bool signal_start_is_good(hf_core *core, hf_call *call)
{
    REQUEST(signal_with_start_workflow_execution);
    hf_pb_start_workflow_execution_request start = hf_signal_start_of(call);
    if (request->workflow_id_conflict_policy == HF_WORKFLOW_ID_CONFLICT_POLICY_FAIL) {
        return refuse(core, call, "WorkflowIdConflictPolicy FAIL is not supported for this operation.");
    }
    return signal_is_good(core, call, request->signal_name, request->signal_input, request->header) &&
           hf_start_is_good(core, call, &start);
}

static bool queue_is_good(hf_core *core, hf_call *call, const hf_pb_task_queue *queue)
{
    if (queue == NULL || !id_is_good(queue->name)) {
        return refuse(core, call, "TaskQueue is not set on request, or longer than 1000 bytes.");
    }
    return true;
}

/* How many tasks a second a poll wants. */
static bool rate_is_good(hf_core *core, hf_call *call, const hf_pb_task_queue_metadata *metadata)
{
    const hf_pb_double_value *rate = metadata != NULL ? metadata->max_tasks_per_second : NULL;
    return rate == NULL || rate->value >= 0 || refuse(core, call, "MaxTasksPerSecond is not a number of tasks.");
}

/* ---- Finding the run ------------------------------------------------------------------------------------------------- */

/* Loads the run of a token. A token that was handed out ahead of a commit that failed may name a run that does not exist, or one that
 * got this number later. */
static void load_given_out(hf_core *core, hf_call *call, int64_t number)
{
    hf_assert(call->place == HF_PLACE_NONE);
    if (number >= core->run_next || hf_resets_make(core, number)) {
        HF_PROBE(core, HF_PROBE_LATE_ANSWER);
        hf_call_fail(core, call, HF_ERR_NOT_FOUND,
                     "the run of this token does not exist: its creation was never committed");
        return;
    }
    hf_run *run = hf_run_load(core, number);
    if (run != NULL) {
        hf_input_run(core, call, run);
    }
}

static void by_token(hf_core *core, hf_call *call, hf_str bytes)
{
    core->token_call = NULL;
    if (!hf_token_decode(core, bytes, &core->token)) {
        HF_PROBE(core, HF_PROBE_FORGED_TOKEN);
        hf_call_fail(core, call, HF_ERR_INVALID, "the task token was not issued by this store");
        return;
    }
    core->token_call = call;
    load_given_out(core, call, core->token.run);
    core->token_call = NULL; /* the call may wait for its run, and be freed meanwhile */
}

static bool is_run_id(hf_str text)
{
    uint64_t halves[2] = {0};
    return hf_uuid_parse(text, &halves[0], &halves[1]);
}

/* A history goes on with the run it began with, whatever run its workflow id has by now. */
static void by_name(hf_core *core, hf_call *call, const hf_target *target)
{
    hf_name *name = hf_name_get(core, target->namespace_, target->workflow_id);
    if (name != NULL) {
        hf_input_name(core, call, name);
        if (core->status == HF_OK) {
            hf_name_drop(core, name); /* there is no run with this id */
        }
    }
}

/* Where the history that the call reads goes on; empty = it begins, or the call reads none. */
static hf_str page_of(const hf_call *call)
{
    if (call->method == HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY) {
        REQUEST(get_workflow_execution_history);
        return request->next_page_token;
    }
    if (call->method == HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE) {
        REQUEST(get_workflow_execution_history_reverse);
        return request->next_page_token;
    }
    return HF_STR("");
}

static bool is_paged(const hf_call *call)
{
    return page_of(call).len > 0;
}

static void by_page(hf_core *core, hf_call *call)
{
    bool is_reverse = call->method == HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE;
    hf_page page;
    if (!hf_page_decode(core, page_of(call), &page) || page.is_reverse != is_reverse) {
        HF_PROBE(core, HF_PROBE_FORGED_TOKEN);
        refuse(core, call, "NextPageToken was not issued by this store");
        return;
    }
    load_given_out(core, call, page.run);
}

/* A namespace is found by its name: its id is made of the name, and nobody keeps a list. */
static bool namespace_is_good(hf_core *core, hf_call *call, hf_str name)
{
    REQUEST(describe_namespace);
    if (call->method == HF_METHOD_DESCRIBE_NAMESPACE && name.len == 0 && request->id.len > 0) {
        hf_pb_namespace_not_found_failure detail = {.namespace = request->id};
        hf_call_fail_with(core, call, HF_ERR_NOT_FOUND, &hf_pb_namespace_not_found_failure_type, &detail,
                          "there is no namespace with this id: ask for it by its name");
        return false;
    }
    return hf_namespace_is_good(name) ||
           refuse(core, call, "Namespace is not set on request, longer than 1000 bytes, or has a byte 0x1f.");
}

/* Calls that are about no run. False: this one is about one. */
static bool is_of_no_run(hf_core *core, hf_call *call)
{
    if (call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE) {
        REQUEST(poll_workflow_task_queue);
        if (queue_is_good(core, call, request->task_queue)) {
            hf_match_poll(core, call);
        }
    } else if (call->method == HF_METHOD_POLL_ACTIVITY_TASK_QUEUE) {
        REQUEST(poll_activity_task_queue);
        if (queue_is_good(core, call, request->task_queue) && rate_is_good(core, call, request->task_queue_metadata)) {
            hf_match_poll(core, call);
        }
    } else if (call->method == HF_METHOD_SHUTDOWN_WORKER) {
        hf_shutdown_worker_call(core, call);
    } else if (call->method == HF_METHOD_DESCRIBE_NAMESPACE) {
        hf_describe_namespace_call(core, call);
    } else if (call->method == HF_METHOD_DESCRIBE_TASK_QUEUE) {
        REQUEST(describe_task_queue);
        if (queue_is_good(core, call, request->task_queue)) {
            hf_describe_task_queue_call(core, call);
        }
    } else {
        return false;
    }
    return true;
}

/* What can be said of a call before its run is found. */
static bool is_good(hf_core *core, hf_call *call)
{
    if (call->method == HF_METHOD_START_WORKFLOW_EXECUTION) {
        return hf_start_is_good(core, call, call->request);
    }
    if (call->method == HF_METHOD_SIGNAL_WORKFLOW_EXECUTION) {
        REQUEST(signal_workflow_execution);
        return signal_is_good(core, call, request->signal_name, request->input, request->header);
    }
    if (call->method == HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION) {
        return signal_start_is_good(core, call);
    }
    return call->method != HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED || completion_is_good(core, call);
}

void hf_input(hf_core *core, hf_call *call)
{
    hf_target target = target_of(call);
    if (call->method == HF_METHOD_GET_SYSTEM_INFO) {
        hf_system_info_call(core, call);
        return;
    }
    if (!namespace_is_good(core, call, target.namespace_) || !words_are_short(core, call)) {
        return;
    }
    if (is_of_no_run(core, call)) {
        return;
    }
    if (!is_good(core, call)) {
        return;
    }
    if (target.token.len > 0) {
        by_token(core, call, target.token);
        return;
    }
    if (!id_is_good(target.workflow_id)) {
        refuse(core, call,
               target.names_workflow ? "WorkflowId is not set on request, or longer than 1000 bytes."
                                     : "the task token or the execution is not set on request");
        return;
    }
    if (target.run_id.len > 0 && !is_run_id(target.run_id)) {
        refuse(core, call, "Invalid RunId.");
        return;
    }
    if (is_paged(call)) {
        by_page(core, call);
        return;
    }
    int64_t number = hf_run_id_number(core->mac_key, target.run_id);
    if (number > 0 && number < core->run_next && !hf_resets_make(core, number)) {
        hf_run *run = hf_run_load(core, number);
        if (run != NULL) {
            hf_input_run(core, call, run);
        }
        return;
    }
    by_name(core, call, &target);
}

static void wait_in(hf_core *core, hf_call *call, hf_list *waiting)
{
    hf_assert(call->place != HF_PLACE_QUEUE && call->place != HF_PLACE_WATCH);
    HF_PROBE(core, HF_PROBE_LOAD_WAITED);
    call->place = HF_PLACE_ELSEWHERE;
    hf_list_push_back(waiting, &call->link);
}

/* The name's text holds the namespace and the workflow id. */
static void refuse_unknown(hf_core *core, hf_call *call, const hf_name *name)
{
    const char *end = memchr(name->text.data, '\x1f', name->text.len);
    hf_assert(end != NULL); /* hf_name_text */
    hf_str namespace_ = {name->text.data, (size_t)(end - name->text.data)};
    hf_str id = {end + 1, name->text.len - namespace_.len - 1};
    hf_call_fail(core, call, HF_ERR_NOT_FOUND, "there is no workflow '%.*s' in the namespace '%.*s'", HF_STR_ARGS(id),
                 HF_STR_ARGS(namespace_));
}

static void refuse_bad(hf_core *core, hf_call *call, int64_t run)
{
    hf_call_fail(core, call, HF_ERR_STORE, "the records of run %lld are damaged; see holdfast db check",
                 (long long)run);
}

void hf_input_name(hf_core *core, hf_call *call, hf_name *name)
{
    hf_assert(name->run == NULL || HF_SLOT(name->run)->name == name);
    if (name->loading) {
        wait_in(core, call, &name->waiting);
        return;
    }
    hf_run *run = name->run;
    if (name->bad_run != 0) {
        refuse_bad(core, call, name->bad_run);
        return;
    }
    if (call->method == HF_METHOD_START_WORKFLOW_EXECUTION ||
        call->method == HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION) {
        if (run != NULL) {
            hf_core_use(core, run);
        }
        if (call->method == HF_METHOD_START_WORKFLOW_EXECUTION) {
            hf_execution_start(core, call, name);
        } else {
            hf_signal_start_call(core, call, name);
        }
        if (run != NULL) {
            hf_core_unuse(core, run);
        }
        return;
    }
    if (call->method == HF_METHOD_EXECUTE_MULTI_OPERATION) {
        call->place = HF_PLACE_NONE;
        hf_multi_call(core, call, name);
        return;
    }
    hf_str run_id = hf_call_run_id(call);
    if (run != NULL && (run_id.len == 0 || hf_str_equal(hf_owned_str(&run->run_id), run_id))) {
        hf_input_run(core, call, run);
        return;
    }
    if (run == NULL) {
        refuse_unknown(core, call, name);
        return;
    }
    hf_call_fail(core, call, HF_ERR_NOT_FOUND, "there is no run %.*s of this workflow id", HF_STR_ARGS(run_id));
}

/* ---- Passing it to the run -------------------------------------------------------------------------------------------- */

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

static void dispatch(hf_core *core, hf_call *call, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->loading && !HF_SLOT(run)->bad); /* engine-E3 */
    switch (call->method) {
    case HF_METHOD_SIGNAL_WORKFLOW_EXECUTION:
        hf_signal_call(core, call, run);
        return;
    case HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION: {
        REQUEST(request_cancel_workflow_execution);
        if (!chain_matches(run, request->first_execution_run_id)) {
            hf_call_fail(core, call, HF_ERR_NOT_FOUND, "the current run belongs to another chain");
            return;
        }
        hf_cancel_call(core, call, run);
        return;
    }
    case HF_METHOD_TERMINATE_WORKFLOW_EXECUTION: {
        REQUEST(terminate_workflow_execution);
        if (!chain_matches(run, request->first_execution_run_id)) {
            hf_call_fail(core, call, HF_ERR_NOT_FOUND, "the current run belongs to another chain");
            return;
        }
        if (!data_fits(core, call, "details", hf_payloads_len(request->details))) {
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
    case HF_METHOD_RESET_STICKY_TASK_QUEUE:
        if (hf_run_is_open(run)) {
            hf_speculative_convert(core, run);
            bool waits = run->wft.state == HF_WFT_SCHEDULED && run->wft.sticky;
            hf_wft_unstick(core, run);
            if (waits) { /* in a queue that may not be polled any more */
                hf_match_remove(core, &run->wft.task);
                hf_wft_enqueue(core, run);
            }
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
        of_task(core, call, run, str_at(call->request, TARGET_FIELDS[call->method].token));
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
    case HF_METHOD_START_WORKFLOW_EXECUTION:
    case HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION:
    case HF_METHOD_GET_SYSTEM_INFO:
    case HF_METHOD_DESCRIBE_NAMESPACE:
    case HF_METHOD_DESCRIBE_TASK_QUEUE:
    case HF_METHOD_POLL_WORKFLOW_TASK_QUEUE:
    case HF_METHOD_POLL_ACTIVITY_TASK_QUEUE:
    case HF_METHOD_SHUTDOWN_WORKER:
    case HF_METHOD_COUNT:
        break;
    }
    hf_call_fail(core, call, HF_ERR_UNSUPPORTED, "this call is not about a run");
}

/* A call that names no run has waited for the one that was current, and another has followed it meanwhile. */
static bool is_overtaken(const hf_call *call, const hf_target *target, const hf_run *run)
{
    return target->names_workflow && target->run_id.len == 0 && !is_paged(call) && !hf_run_is_open(run) &&
           HF_SLOT(run)->name == NULL;
}

void hf_input_run(hf_core *core, hf_call *call, hf_run *run)
{
    if (HF_SLOT(run)->loading || HF_SLOT(run)->fetch_id != 0) {
        wait_in(core, call, &HF_SLOT(run)->waiting);
        return;
    }
    call->place = HF_PLACE_NONE;
    hf_target target = target_of(call);
    if (HF_SLOT(run)->bad) {
        bool is_named = call->method == HF_METHOD_DELETE_WORKFLOW_EXECUTION && target.run_id.len > 0;
        if (!is_named || !hf_delete_bad_call(core, call, run)) {
            refuse_bad(core, call, run->number);
        }
        return;
    }
    if (!hf_str_equal(hf_owned_str(&run->namespace), target.namespace_)) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "there is no such run in this namespace");
        return;
    }
    if (target.names_workflow &&
        (!hf_str_equal(hf_owned_str(&run->workflow_id), target.workflow_id) ||
         (target.run_id.len > 0 && !hf_str_equal(hf_owned_str(&run->run_id), target.run_id)))) {
        if (is_paged(call)) {
            refuse(core, call, "NextPageToken belongs to another history");
            return;
        }
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "there is no run %.*s of this workflow id",
                     HF_STR_ARGS(target.run_id));
        return;
    }
    if (!hf_deletion_asks(call) && run->deleting == HF_DELETING_NOT && is_overtaken(call, &target, run)) {
        by_name(core, call, &target);
        return;
    }
    if (run->deleting != HF_DELETING_NOT && !hf_deletion_asks(call)) {
        HF_PROBE(core, HF_PROBE_DELETED_ASKED);
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "there is no such run: it was deleted");
        return;
    }
    hf_core_use(core, run);
    dispatch(core, call, run);
    hf_core_unuse(core, run);
}
