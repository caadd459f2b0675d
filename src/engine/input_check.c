/* Checks of a call that do not need its run: fields that must be set, and lengths that are bounded. */
#include "engine/input_private.h"

#include "engine/absent.h"
#include "engine/answer.h"
#include "engine/links.h"
#include "engine/machines/machines.h"
#include "engine/machines/query.h"
#include "engine/machines/update.h"
#include "engine/namespaces.h"
#include "engine/retry.h"
#include "engine/size.h"
#include "engine/zone.h"
#include "history/limits.h"

#define BAD_QUEUE "TaskQueue is not set on request, longer than 1000 bytes, not UTF-8, or begins with /_sys/."

bool hf_call_refuse(hf_core *core, hf_call *call, const char *why)
{
    hf_call_fail(core, call, HF_ERR_INVALID, "%s", why);
    return false;
}

/* Temporal keeps names that begin like this for the parts of a queue that it divides, and so we keep them, too. */
bool hf_queue_name_is_good(hf_str name)
{
    static const char KEPT[] = "/_sys/";
    return hf_id_is_good(name) && !(name.len >= sizeof KEPT - 1 && memcmp(name.data, KEPT, sizeof KEPT - 1) == 0);
}

bool hf_queue_is_good_or_none(const hf_pb_task_queue *queue)
{
    return queue == NULL || queue->name.len == 0 || hf_queue_name_is_good(queue->name);
}

/* Users' data that comes with a call may not be longer than one blob. */
bool hf_call_data_fits(hf_core *core, hf_call *call, const char *what, size_t len)
{
    if (hf_fits(core, len)) {
        return true;
    }
    hf_call_fail(core, call, HF_ERR_TOO_BIG, "the %s has %zu bytes, at most %zu are taken", what, len,
                 core->options.limits.payload_len);
    return false;
}

/* Identity and reason are stored in the history and may be as long as an id. */
bool hf_call_words_are_short(hf_core *core, hf_call *call)
{
    hf_call_words words = hf_call_words_of(call);
    if (!hf_text_is_good(words.identity)) {
        return hf_call_refuse(core, call, "Identity is longer than 1000 bytes, or not UTF-8.");
    }
    if (!hf_text_is_good(words.request_id)) {
        return hf_call_refuse(core, call, "RequestId is longer than 1000 bytes, or not UTF-8.");
    }
    return hf_text_is_good(words.reason) ||
           hf_call_refuse(core, call, "Reason is longer than 1000 bytes, or not UTF-8.");
}

/* Checks the fields of an answer to a workflow task that are stored in the history beside its commands. */
static bool completion_is_good(hf_core *core, hf_call *call)
{
    REQUEST(respond_workflow_task_completed);
    if (!hf_text_is_good(request->binary_checksum)) {
        return hf_call_refuse(core, call, "BinaryChecksum is longer than 1000 bytes, or not UTF-8.");
    }
    return hf_call_data_fits(core, call, "worker version",
                             hf_message_len(core, &hf_pb_worker_version_stamp_type, request->worker_version_stamp)) &&
           hf_call_data_fits(
               core, call, "SDK metadata",
               hf_message_len(core, &hf_pb_workflow_task_completed_metadata_type, request->sdk_metadata)) &&
           hf_call_data_fits(core, call, "metering metadata",
                             hf_message_len(core, &hf_pb_metering_metadata_type, request->metering_metadata));
}

static bool signal_is_good(hf_core *core, hf_call *call, hf_str name, const hf_pb_payloads *input,
                           const hf_pb_header *header)
{
    if (!hf_id_is_good(name)) {
        return hf_call_refuse(core, call, "SignalName is not set on request, longer than 1000 bytes, or not UTF-8.");
    }
    return hf_call_data_fits(core, call, "input", hf_payloads_len(input)) &&
           hf_call_data_fits(core, call, "header", hf_message_len(core, &hf_pb_header_type, header));
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

static bool attributes_are_good(hf_core *core, hf_call *call, hf_str namespace_, const hf_pb_search_attributes *given)
{
    char why[HF_MESSAGE_LEN_MAX];
    if (hf_attributes_are_good(core, namespace_, given, why)) {
        return true;
    }
    return hf_call_refuse(core, call, why);
}

bool hf_start_is_good(hf_core *core, hf_call *call, const hf_pb_start_workflow_execution_request *request)
{
    if (!hf_id_is_good(request->workflow_id)) {
        return hf_call_refuse(core, call, "WorkflowId is not set on request, longer than 1000 bytes, or not UTF-8.");
    }
    if (request->workflow_id.data[0] == HF_KIND_MARK) {
        return hf_call_refuse(core, call, "WorkflowId begins with a byte 0x1f, which marks what is not a workflow.");
    }
    if (request->workflow_type == NULL || !hf_id_is_good(request->workflow_type->name)) {
        return hf_call_refuse(core, call, "WorkflowType is not set on request, longer than 1000 bytes, or not UTF-8.");
    }
    if (request->task_queue == NULL || !hf_queue_name_is_good(request->task_queue->name)) {
        return hf_call_refuse(core, call, BAD_QUEUE);
    }
    if (hf_pb_duration_span(request->workflow_execution_timeout).ns < 0 ||
        hf_pb_duration_span(request->workflow_run_timeout).ns < 0 ||
        hf_pb_duration_span(request->workflow_task_timeout).ns < 0) {
        return hf_call_refuse(core, call, "A timeout of the request is negative.");
    }
    if (!policies_agree(request)) {
        return hf_call_refuse(core, call, "WorkflowIdReusePolicy and WorkflowIdConflictPolicy contradict each other.");
    }
    if (hf_failure_is_deep(request->continued_failure)) {
        return hf_call_refuse(core, call, "ContinuedFailure has too many causes.");
    }
    if (hf_pb_duration_span(request->workflow_start_delay).ns < 0) {
        return hf_call_refuse(core, call, "WorkflowStartDelay is negative.");
    }
    if (hf_pb_duration_span(request->holdfast_keep).ns < 0) {
        return hf_call_refuse(core, call, "HoldfastKeep is negative.");
    }
    if (request->cron_schedule.len > 0 && hf_pb_duration_span(request->workflow_start_delay).ns > 0) {
        return hf_call_refuse(core, call, "CronSchedule and WorkflowStartDelay may not be used together.");
    }
    const hf_pb_on_conflict_options *attach = request->on_conflict_options;
    if (attach != NULL && attach->attach_completion_callbacks && !attach->attach_request_id) {
        return hf_call_refuse(core, call, "OnConflictOptions: callbacks are attached together with the request id.");
    }
    if (!hf_absent_in_start(core, call, request) || !hf_links_are_good(core, call, request->links) ||
        !hf_priority_is_good(core, call, request->priority)) {
        return false;
    }
    if (hf_retry_check(&core->op, request->retry_policy) != HF_OK) {
        return hf_call_refuse(core, call, core->op.message);
    }
    if (!hf_zone_check_cron(core, call, request->cron_schedule)) {
        return false;
    }
    return hf_call_data_fits(core, call, "input", hf_payloads_len(request->input)) &&
           hf_call_data_fits(core, call, "last result", hf_payloads_len(request->last_completion_result)) &&
           hf_call_data_fits(core, call, "continued failure",
                             hf_message_len(core, &hf_pb_failure_type, request->continued_failure)) &&
           hf_call_data_fits(core, call, "memo", hf_message_len(core, &hf_pb_memo_type, request->memo)) &&
           hf_call_data_fits(core, call, "user metadata",
                             hf_message_len(core, &hf_pb_user_metadata_type, request->user_metadata)) &&
           hf_call_data_fits(core, call, "search attributes",
                             hf_message_len(core, &hf_pb_search_attributes_type, request->search_attributes)) &&
           hf_call_data_fits(core, call, "header", hf_message_len(core, &hf_pb_header_type, request->header)) &&
           attributes_are_good(core, call, request->namespace, request->search_attributes);
}

static bool signal_start_is_good(hf_core *core, hf_call *call)
{
    REQUEST(signal_with_start_workflow_execution);
    hf_pb_start_workflow_execution_request start = hf_signal_start_of(call);
    if (request->workflow_id_conflict_policy == HF_WORKFLOW_ID_CONFLICT_POLICY_FAIL) {
        return hf_call_refuse(core, call, "WorkflowIdConflictPolicy FAIL is not supported for this operation.");
    }
    return signal_is_good(core, call, request->signal_name, request->signal_input, request->header) &&
           hf_start_is_good(core, call, &start);
}

bool hf_call_queue_is_good(hf_core *core, hf_call *call, const hf_pb_task_queue *queue)
{
    if (queue == NULL || !hf_queue_name_is_good(queue->name)) {
        return hf_call_refuse(core, call, BAD_QUEUE);
    }
    return true;
}

/* How many tasks a second a poll wants. */
bool hf_call_rate_is_good(hf_core *core, hf_call *call, const hf_pb_task_queue_metadata *metadata)
{
    const hf_pb_double_value *rate = metadata != NULL ? metadata->max_tasks_per_second : NULL;
    return rate == NULL || rate->value >= 0 ||
           hf_call_refuse(core, call, "MaxTasksPerSecond is not a number of tasks.");
}

/* A namespace is found only by its name, because its id is made of the name. */
bool hf_call_namespace_is_good(hf_core *core, hf_call *call, hf_str name)
{
    REQUEST(describe_namespace);
    if (call->method == HF_METHOD_DESCRIBE_NAMESPACE && name.len == 0 && request->id.len > 0) {
        hf_pb_namespace_not_found_failure detail = {.namespace = request->id};
        hf_call_fail_with(core, call, HF_ERR_NOT_FOUND, &hf_pb_namespace_not_found_failure_type, &detail,
                          "there is no namespace with this id: ask for it by its name");
        return false;
    }
    if (!hf_namespace_is_good(name)) {
        return hf_call_refuse(core, call,
                              "Namespace is not set on request, longer than 1000 bytes, or has a byte 0x1f.");
    }
    if (call->method == HF_METHOD_REGISTER_NAMESPACE) {
        return hf_text_is_good(name) || hf_call_refuse(core, call, "Namespace is not UTF-8.");
    }
    if (hf_namespace_is_known(core, name)) {
        return true;
    }
    bool is_own = call->maker != HF_CALL_OF_CLIENT && call->method != HF_METHOD_START_WORKFLOW_EXECUTION;
    if (is_own && hf_namespace_find(core, name) != NULL) {
        return true; /* it is being deleted: runs that end still tell each other, but none begins */
    }
    hf_pb_namespace_not_found_failure detail = {.namespace = name};
    hf_call_say(core, call, "Namespace %.*s is not found.", HF_STR_ARGS(name));
    hf_call_fail_with(core, call, HF_ERR_NOT_FOUND, &hf_pb_namespace_not_found_failure_type, &detail,
                      "there is no namespace '%.*s': register it first", HF_STR_ARGS(name));
    return false; /* engine-B2 */
}

/* Links of a call that starts nothing: hf_start_is_good checks the others. */
static hf_pb_link_list links_of(const hf_call *call)
{
    switch ((int)call->method) {
    case HF_METHOD_SIGNAL_WORKFLOW_EXECUTION: {
        REQUEST(signal_workflow_execution);
        return request->links;
    }
    case HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION: {
        REQUEST(request_cancel_workflow_execution);
        return request->links;
    }
    case HF_METHOD_TERMINATE_WORKFLOW_EXECUTION: {
        REQUEST(terminate_workflow_execution);
        return request->links;
    }
    default:
        return (hf_pb_link_list){NULL, 0};
    }
}

/* The checks of its own method that do not need its run. */
bool hf_call_is_good(hf_core *core, hf_call *call)
{
    hf_pb_link_list links = links_of(call);
    if (links.count > 0 && call->maker == HF_CALL_OF_CLIENT && !hf_links_are_good(core, call, links)) {
        return false;
    }
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
    switch ((int)call->method) {
    case HF_METHOD_QUERY_WORKFLOW:
        return hf_query_is_good(core, call);
    case HF_METHOD_UPDATE_WORKFLOW_EXECUTION:
        return hf_update_is_good(core, call, call->request);
    case HF_METHOD_PAUSE_ACTIVITY:
    case HF_METHOD_UNPAUSE_ACTIVITY:
    case HF_METHOD_RESET_ACTIVITY:
    case HF_METHOD_UPDATE_ACTIVITY_OPTIONS:
        return hf_activity_is_named(call) ||
               hf_call_refuse(core, call, "Activity is not set on request: its id or type.");
    case HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED:
        return completion_is_good(core, call);
    default:
        return true;
    }
}
