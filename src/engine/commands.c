/* The answer to a workflow task: commands become events.
 *
 * In order: WorkflowTaskCompleted; one event per command; what was buffered meanwhile; the end of activities that were canceled
 * before they started; a new workflow task if there is anything new to see. All of it or nothing: commands are checked first,
 * and one that is bad fails the task instead. A command that closes the run while events are buffered fails it too
 * (UnhandledCommand): the workflow has not seen them. Firings of timers that it cancels do not count: they are taken back. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/input.h"
#include "engine/machines/machines.h"
#include "engine/matching.h"
#include "engine/size.h"
#include "history/limits.h"
#include "history/payload.h"

#include <stdio.h>

#define STICKY_SECONDS 5 /* how long a task waits for its worker when that says nothing */

/* Ids that commands of the list have named: a hash table, since a list may be as long as a history. */
typedef struct hf_listed {
    hf_str id;    /* without data: nobody's place */
    bool pending; /* started, and not canceled after that */
} hf_listed;

typedef struct hf_ids {
    hf_listed *items; /* in the scratch, made for the first id */
    size_t mask;      /* their count is a power of two, less one */
} hf_ids;

/* What a list of commands does to the run, as far as later commands of the list depend on it. */
typedef struct hf_plan {
    const hf_pb_respond_workflow_task_completed_request *request;
    size_t activities; /* pending, with those of the list */
    size_t timers;
    size_t unfired; /* buffered firings that are taken back */
    size_t externals;
    hf_ids activity_ids; /* scheduled */
    hf_ids cancel_ids;   /* of activities that are to be canceled */
    hf_ids timer_ids;
    bool closes;
    int32_t cause; /* of the failure, if there is one */
} hf_plan;

static bool bad(hf_core *core, hf_plan *plan, int32_t cause, const char *why)
{
    plan->cause = cause;
    hf_fail(&core->op, HF_ERR_INVALID, "%s", why);
    return false;
}

/* Users' data of a command, `len` bytes of it. */
static bool fits(hf_core *core, hf_plan *plan, size_t len, int32_t cause, const char *why)
{
    if (hf_fits(core, len)) {
        return true;
    }
    char text[HF_MESSAGE_LEN_MAX];
    (void)snprintf(text, sizeof text, "%s (%zu bytes, and at most %zu are taken)", why, len,
                   core->options.limits.payload_len);
    return bad(core, plan, cause, text);
}

/* The place of an id: its own, or the one it would have. NULL: no memory. */
static hf_listed *listed(hf_core *core, const hf_plan *plan, hf_ids *ids, hf_str id)
{
    if (ids->items == NULL) {
        size_t count = 16;
        while (count < 2 * plan->request->commands.count) {
            count *= 2;
        }
        ids->items = HF_ARENA_ARRAY(&core->scratch, hf_listed, count);
        if (ids->items == NULL) {
            hf_core_break(core, HF_ERR_NOMEM, "out of memory");
            return NULL;
        }
        ids->mask = count - 1;
    }
    hf_assert(ids->mask >= 2 * plan->request->commands.count - 1 || ids->mask == 15); /* never full: the search ends */
    size_t at = (size_t)hf_siphash(core->mac_key, id) & ids->mask;
    while (ids->items[at].id.data != NULL && !hf_str_equal(ids->items[at].id, id)) {
        at = (at + 1) & ids->mask;
    }
    return &ids->items[at];
}

/* Whether a timer is pending when the list has come so far; its place in the list. */
static bool timer_is_pending(hf_core *core, const hf_run *run, hf_plan *plan, hf_str timer_id, hf_listed **ret_place)
{
    hf_listed *place = listed(core, plan, &plan->timer_ids, timer_id);
    *ret_place = place;
    return place != NULL && place->id.data != NULL ? place->pending : hf_run_timer_by_id(run, timer_id) != NULL;
}

static bool check_start_timer(hf_core *core, const hf_run *run, hf_plan *plan, size_t index)
{
    const hf_pb_start_timer_command_attributes *attrs =
        plan->request->commands.items[index].start_timer_command_attributes;
    if (attrs == NULL || attrs->timer_id.len == 0 || attrs->timer_id.len > HF_ID_LEN_MAX ||
        hf_pb_duration_span(attrs->start_to_fire_timeout).ns < 0) {
        return bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_START_TIMER_ATTRIBUTES,
                   "TimerId or StartToFireTimeout is missing or out of range on StartTimerCommand.");
    }
    hf_listed *place = NULL;
    if (timer_is_pending(core, run, plan, attrs->timer_id, &place) || place == NULL) {
        return bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_START_TIMER_DUPLICATE_ID,
                   "a timer with this id is pending");
    }
    if (++plan->timers > core->options.limits.pending) {
        HF_PROBE(core, HF_PROBE_LIMIT_HIT);
        return bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_START_TIMER_ATTRIBUTES, "too many timers are pending");
    }
    *place = (hf_listed){attrs->timer_id, true};
    return true;
}

static bool check_cancel_timer(hf_core *core, const hf_run *run, hf_plan *plan, size_t index)
{
    const hf_pb_cancel_timer_command_attributes *attrs =
        plan->request->commands.items[index].cancel_timer_command_attributes;
    hf_listed *place = NULL;
    if (attrs == NULL || attrs->timer_id.len == 0 || !timer_is_pending(core, run, plan, attrs->timer_id, &place) ||
        place == NULL) {
        return bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_CANCEL_TIMER_ATTRIBUTES,
                   "there is no timer of the id that CancelTimerCommand names");
    }
    hf_assert(plan->timers > 0);
    plan->timers--; /* there is room for another one */
    const hf_timer *timer = place->id.data == NULL ? hf_run_timer_by_id(run, attrs->timer_id) : NULL;
    plan->unfired += timer != NULL && timer->state == HF_TIMER_FIRED;
    *place = (hf_listed){attrs->timer_id, false};
    return true;
}

/* Texts of an activity that are neither ids nor users' data. */
static size_t words_len(const hf_pb_retry_policy *policy, const hf_pb_priority *priority)
{
    size_t len = priority != NULL ? priority->fairness_key.len : 0;
    for (size_t i = 0; policy != NULL && i < policy->non_retryable_error_types.count; i++) {
        len += policy->non_retryable_error_types.items[i].len + 1;
    }
    return len;
}

static bool check_schedule_activity(hf_core *core, const hf_run *run, hf_plan *plan, size_t index)
{
    hf_pb_schedule_activity_task_command_attributes *attrs =
        plan->request->commands.items[index].schedule_activity_task_command_attributes;
    if (attrs == NULL || !hf_activity_command_is_good(core, run, attrs)) {
        plan->cause = HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES;
        return false;
    }
    if (!fits(core, plan, hf_payloads_len(attrs->input), HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES,
              "ScheduleActivityTaskCommandAttributes.Input exceeds size limit.") ||
        !fits(core, plan, hf_message_len(core, &hf_pb_header_type, attrs->header),
              HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES,
              "ScheduleActivityTaskCommandAttributes.Header exceeds size limit.") ||
        !fits(core, plan, words_len(attrs->retry_policy, attrs->priority),
              HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES,
              "ScheduleActivityTaskCommandAttributes.RetryPolicy or Priority exceeds size limit.")) {
        return false;
    }
    hf_listed *place = listed(core, plan, &plan->activity_ids, attrs->activity_id);
    if (place == NULL || place->id.data != NULL) {
        return bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_SCHEDULE_ACTIVITY_DUPLICATE_ID,
                   "two activities of one workflow task have the same id");
    }
    *place = (hf_listed){attrs->activity_id, true};
    if (hf_run_activity_by_id(run, attrs->activity_id) != NULL) {
        return bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_SCHEDULE_ACTIVITY_DUPLICATE_ID,
                   "an activity with this id is pending");
    }
    if (++plan->activities > core->options.limits.pending) {
        HF_PROBE(core, HF_PROBE_LIMIT_HIT);
        return bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_PENDING_ACTIVITIES_LIMIT_EXCEEDED,
                   "too many activities are pending");
    }
    return true;
}

/* It names the event of an activity that nobody has asked to cancel. One that ended while the task ran is fine, since its
 * worker cannot know: its outcome is buffered, and comes behind the request. */
static bool check_cancel_activity(hf_core *core, const hf_run *run, hf_plan *plan, size_t index)
{
    const hf_pb_request_cancel_activity_task_command_attributes *attrs =
        plan->request->commands.items[index].request_cancel_activity_task_command_attributes;
    const int32_t cause = HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES;
    const hf_activity *activity = attrs != NULL ? hf_run_activity(run, attrs->scheduled_event_id) : NULL;
    if (activity == NULL) {
        return bad(core, plan, cause, "RequestCancelActivityTaskCommand names no activity that is pending");
    }
    hf_listed *place = listed(core, plan, &plan->cancel_ids, activity->activity_id);
    if (place == NULL || place->id.data != NULL || activity->cancel_requested_id != 0) {
        return bad(core, plan, cause, "RequestCancelActivityTaskCommand names an activity that is being canceled");
    }
    *place = (hf_listed){activity->activity_id, false};
    return true;
}

/* No longer than an id: what is not checked elsewhere and is in the history from then on. */
static bool is_short(hf_str text)
{
    return text.len <= HF_ID_LEN_MAX;
}

/* What no run could take is refused here: once it is a message, its failure has no word for it. */
static bool check_external(hf_core *core, hf_plan *plan, hf_str namespace_, hf_str workflow_id, int32_t bad_cause,
                           int32_t many_cause)
{
    if (workflow_id.len == 0 || workflow_id.len > HF_ID_LEN_MAX) {
        return bad(core, plan, bad_cause, "a message to another workflow names none, or its id is too long");
    }
    if (namespace_.len > 0 && !hf_namespace_is_good(namespace_)) { /* empty: its own */
        return bad(core, plan, bad_cause,
                   "the namespace of a message to another workflow is longer than 1000 bytes, or has a byte 0x1f");
    }
    if (++plan->externals > core->options.limits.pending) {
        HF_PROBE(core, HF_PROBE_LIMIT_HIT);
        return bad(core, plan, many_cause, "too many messages to other workflows are on their way");
    }
    return true;
}

static bool check_signal_external(hf_core *core, hf_plan *plan, size_t index)
{
    const hf_pb_signal_external_workflow_execution_command_attributes *attrs =
        plan->request->commands.items[index].signal_external_workflow_execution_command_attributes;
    const int32_t cause = HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES;
    if (attrs == NULL || attrs->execution == NULL || attrs->signal_name.len == 0 ||
        attrs->signal_name.len > HF_ID_LEN_MAX) {
        return bad(core, plan, cause,
                   "a signal to another workflow names none, or its own name is missing or too long");
    }
    if (!is_short(attrs->execution->run_id) || !is_short(attrs->control)) {
        return bad(core, plan, cause, "RunId or Control of SignalExternalWorkflowExecutionCommand is too long.");
    }
    return fits(core, plan, hf_payloads_len(attrs->input), cause,
                "SignalExternalWorkflowExecutionCommandAttributes.Input exceeds size limit.") &&
           fits(core, plan, hf_message_len(core, &hf_pb_header_type, attrs->header), cause,
                "SignalExternalWorkflowExecutionCommandAttributes.Header exceeds size limit.") &&
           check_external(core, plan, attrs->namespace, attrs->execution->workflow_id, cause,
                          HF_WORKFLOW_TASK_FAILED_CAUSE_PENDING_SIGNALS_LIMIT_EXCEEDED);
}

static bool check_cancel_external(hf_core *core, hf_plan *plan, size_t index)
{
    const hf_pb_request_cancel_external_workflow_execution_command_attributes *attrs =
        plan->request->commands.items[index].request_cancel_external_workflow_execution_command_attributes;
    const int32_t cause = HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES;
    if (attrs != NULL && (!is_short(attrs->run_id) || !is_short(attrs->control) || !is_short(attrs->reason))) {
        return bad(core, plan, cause,
                   "RunId, Control or Reason of RequestCancelExternalWorkflowExecutionCommand is too long.");
    }
    return check_external(core, plan, attrs != NULL ? attrs->namespace : HF_STR(""),
                          attrs != NULL ? attrs->workflow_id : HF_STR(""), cause,
                          HF_WORKFLOW_TASK_FAILED_CAUSE_PENDING_REQUEST_CANCEL_LIMIT_EXCEEDED);
}

static bool check_marker(hf_core *core, hf_plan *plan, const hf_pb_record_marker_command_attributes *attrs)
{
    const int32_t cause = HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_RECORD_MARKER_ATTRIBUTES;
    if (attrs == NULL || attrs->marker_name.len == 0 || !is_short(attrs->marker_name)) {
        return bad(core, plan, cause, "a marker has no name, or one that is too long");
    }
    if (!fits(core, plan, hf_message_len(core, &hf_pb_header_type, attrs->header), cause,
              "RecordMarkerCommandAttributes.Header exceeds size limit.")) {
        return false;
    }
    if (hf_failure_is_deep(attrs->failure)) {
        return bad(core, plan, cause, "the failure of RecordMarkerCommand has too many causes");
    }
    size_t len = hf_message_len(core, &hf_pb_failure_type, attrs->failure);
    for (size_t i = 0; i < attrs->details.count; i++) {
        len += attrs->details.items[i].key.len + hf_payloads_len(attrs->details.items[i].value);
    }
    return fits(core, plan, len, cause, "RecordMarkerCommandAttributes.Details exceeds size limit.");
}

static bool check_close(hf_core *core, hf_plan *plan, const hf_pb_command *command)
{
    if (command->command_type == HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION) {
        const hf_pb_complete_workflow_execution_command_attributes *attrs =
            command->complete_workflow_execution_command_attributes;
        return fits(core, plan, attrs != NULL ? hf_payloads_len(attrs->result) : 0,
                    HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_COMPLETE_WORKFLOW_EXECUTION_ATTRIBUTES,
                    "CompleteWorkflowExecutionCommandAttributes.Result exceeds size limit.");
    }
    if (command->command_type == HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION) {
        const hf_pb_cancel_workflow_execution_command_attributes *attrs =
            command->cancel_workflow_execution_command_attributes;
        return fits(core, plan, attrs != NULL ? hf_payloads_len(attrs->details) : 0,
                    HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_CANCEL_WORKFLOW_EXECUTION_ATTRIBUTES,
                    "CancelWorkflowExecutionCommandAttributes.Details exceeds size limit.");
    }
    const int32_t cause = HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES;
    const hf_pb_fail_workflow_execution_command_attributes *attrs = command->fail_workflow_execution_command_attributes;
    if (attrs == NULL || attrs->failure == NULL) {
        return bad(core, plan, cause, "FailWorkflowExecutionCommand has no failure");
    }
    if (hf_failure_is_deep(attrs->failure)) {
        return bad(core, plan, cause, "the failure of FailWorkflowExecutionCommand has too many causes");
    }
    return fits(core, plan, hf_message_len(core, &hf_pb_failure_type, attrs->failure), cause,
                "FailWorkflowExecutionCommandAttributes.Failure exceeds size limit.");
}

/* The attributes that go with a command: a union, so reading others would be reading anything. */
static uint32_t attributes_of(int32_t command_type)
{
    switch (command_type) {
    case HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK:
        return HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES;
    case HF_COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK:
        return HF_PB_COMMAND_REQUEST_CANCEL_ACTIVITY_TASK_COMMAND_ATTRIBUTES;
    case HF_COMMAND_TYPE_START_TIMER:
        return HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES;
    case HF_COMMAND_TYPE_CANCEL_TIMER:
        return HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES;
    case HF_COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION:
        return HF_PB_COMMAND_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    case HF_COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION:
        return HF_PB_COMMAND_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    case HF_COMMAND_TYPE_RECORD_MARKER:
        return HF_PB_COMMAND_RECORD_MARKER_COMMAND_ATTRIBUTES;
    case HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION:
        return HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    case HF_COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION:
        return HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    case HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION:
        return HF_PB_COMMAND_CANCEL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    default:
        return 0;
    }
}

static bool check_one(hf_core *core, const hf_run *run, hf_plan *plan, size_t index)
{
    const hf_pb_command *command = &plan->request->commands.items[index];
    if (plan->closes) {
        return bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
                   "a command follows the one that closes the run");
    }
    uint32_t expected = attributes_of(command->command_type);
    if (expected != 0 && command->attributes_case != 0 && command->attributes_case != expected) {
        return bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED,
                   "the attributes of a command are those of another");
    }
    switch (command->command_type) {
    case HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK:
        return check_schedule_activity(core, run, plan, index);
    case HF_COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK:
        return check_cancel_activity(core, run, plan, index);
    case HF_COMMAND_TYPE_START_TIMER:
        return check_start_timer(core, run, plan, index);
    case HF_COMMAND_TYPE_CANCEL_TIMER:
        return check_cancel_timer(core, run, plan, index);
    case HF_COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION:
        return check_signal_external(core, plan, index);
    case HF_COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION:
        return check_cancel_external(core, plan, index);
    case HF_COMMAND_TYPE_RECORD_MARKER:
        return check_marker(core, plan, command->record_marker_command_attributes);
    case HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION:
    case HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION:
    case HF_COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION:
        plan->closes = true;
        return check_close(core, plan, command);
    default:
        return bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_FEATURE_DISABLED,
                   "this version does not know the command");
    }
}

static bool check_all(hf_core *core, const hf_run *run, hf_plan *plan)
{
    for (size_t i = 0; i < plan->request->commands.count; i++) {
        if (!check_one(core, run, plan, i)) {
            return false;
        }
    }
    return true;
}

/* ---- Events ---------------------------------------------------------------------------------------------------------- */

static void emit_completed(hf_core *core, hf_run *run, const hf_pb_respond_workflow_task_completed_request *request)
{
    hf_pb_workflow_task_completed_event_attributes body = {
        .scheduled_event_id = run->wft.scheduled_id,
        .started_event_id = run->wft.started_id,
        .identity = request->identity,
        .binary_checksum = request->binary_checksum,
        .worker_version = request->worker_version_stamp,
        .sdk_metadata = request->sdk_metadata,
        .metering_metadata = request->metering_metadata,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_COMPLETED_EVENT_ATTRIBUTES,
        .workflow_task_completed_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

static void close_run(hf_core *core, hf_run *run, const hf_pb_command *command)
{
    hf_pb_workflow_execution_completed_event_attributes completed = {.workflow_task_completed_event_id =
                                                                         run->wft.completed_id};
    hf_pb_workflow_execution_failed_event_attributes failed = {
        .workflow_task_completed_event_id = run->wft.completed_id,
        .retry_state = HF_RETRY_STATE_RETRY_POLICY_NOT_SET,
    };
    hf_pb_workflow_execution_canceled_event_attributes canceled = {.workflow_task_completed_event_id =
                                                                       run->wft.completed_id};
    hf_pb_history_event event = {0};
    if (command->command_type == HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION) {
        if (command->complete_workflow_execution_command_attributes != NULL) {
            completed.result = command->complete_workflow_execution_command_attributes->result;
        }
        event.event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED;
        event.attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_COMPLETED_EVENT_ATTRIBUTES;
        event.workflow_execution_completed_event_attributes = &completed;
    } else if (command->command_type == HF_COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION) {
        failed.failure = command->fail_workflow_execution_command_attributes->failure;
        event.event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED;
        event.attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES;
        event.workflow_execution_failed_event_attributes = &failed;
    } else {
        if (command->cancel_workflow_execution_command_attributes != NULL) {
            canceled.details = command->cancel_workflow_execution_command_attributes->details;
        }
        event.event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED;
        event.attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CANCELED_EVENT_ATTRIBUTES;
        event.workflow_execution_canceled_event_attributes = &canceled;
    }
    hf_event_emit(core, run, &event);
}

static void record_marker(hf_core *core, hf_run *run, const hf_pb_record_marker_command_attributes *attrs)
{
    hf_pb_marker_recorded_event_attributes body = {
        .marker_name = attrs->marker_name,
        .header = attrs->header,
        .failure = attrs->failure,
        .workflow_task_completed_event_id = run->wft.completed_id,
    };
    body.details.items = (hf_pb_marker_recorded_event_attributes_details_entry *)hf_arena_zero(
        &core->scratch, attrs->details.count * sizeof *body.details.items, _Alignof(max_align_t));
    if (core->scratch.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    for (size_t i = 0; i < attrs->details.count; i++) {
        body.details.items[i].key = attrs->details.items[i].key;
        body.details.items[i].value = attrs->details.items[i].value;
        body.details.count++;
    }
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_MARKER_RECORDED,
        .attributes_case = HF_PB_HISTORY_EVENT_MARKER_RECORDED_EVENT_ATTRIBUTES,
        .marker_recorded_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

static void do_one(hf_core *core, hf_run *run, const hf_pb_command *command, hf_str identity)
{
    switch (command->command_type) {
    case HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK:
        hf_activity_schedule(core, run, command->schedule_activity_task_command_attributes);
        return;
    case HF_COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK:
        hf_activity_request_cancel(core, run,
                                   command->request_cancel_activity_task_command_attributes->scheduled_event_id);
        return;
    case HF_COMMAND_TYPE_START_TIMER:
        hf_timer_start(core, run, command->start_timer_command_attributes);
        return;
    case HF_COMMAND_TYPE_CANCEL_TIMER:
        hf_timer_cancel(core, run, command->cancel_timer_command_attributes->timer_id, identity);
        return;
    case HF_COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION:
        hf_external_signal(core, run, command->signal_external_workflow_execution_command_attributes);
        return;
    case HF_COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION:
        hf_external_cancel(core, run, command->request_cancel_external_workflow_execution_command_attributes);
        return;
    case HF_COMMAND_TYPE_RECORD_MARKER:
        record_marker(core, run, command->record_marker_command_attributes);
        return;
    default:
        close_run(core, run, command);
        return;
    }
}

static void set_sticky(hf_core *core, hf_run *run, const hf_pb_sticky_execution_attributes *attrs)
{
    bool sticky = attrs != NULL && attrs->worker_task_queue != NULL && attrs->worker_task_queue->name.len > 0 &&
                  attrs->worker_task_queue->name.len <= HF_ID_LEN_MAX;
    if (!sticky) {
        hf_wft_unstick(core, run);
        return;
    }
    hf_pb_sticky msg = {
        .queue = attrs->worker_task_queue->name,
        .timeout = hf_pb_duration_span(attrs->schedule_to_start_timeout).ns,
    };
    if (msg.timeout <= 0) { /* a task must not wait for ever for a worker that is gone */
        msg.timeout = hf_seconds(STICKY_SECONDS).ns;
    }
    if (!hf_str_equal(hf_owned_str(&run->sticky_queue), msg.queue) || run->sticky_timeout != msg.timeout) {
        hf_record(core, run, HF_CHANGE_STICKY, &hf_pb_sticky_type, &msg);
    }
}

/* The task fails, the caller hears why, the next attempt is scheduled. A worker that says the same again is not given the task
 * again and again, as fast as it can say it: from the second attempt on the task times out first, later and later. What came
 * in between is no fault of the worker's: it goes on at once. */
static void refuse(hf_core *core, hf_call *call, hf_run *run, int32_t cause, const char *why)
{
    const hf_pb_respond_workflow_task_completed_request *request = call->request;
    char message[HF_MESSAGE_LEN_MAX];
    (void)snprintf(message, sizeof message, "%s", why);
    call->task_failed_cause = cause;
    if (run->wft.attempt > 1 && cause != HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND) {
        hf_call_fail(core, call, HF_ERR_INVALID, "%s", message);
        return;
    }
    hf_pb_failure *failure = hf_failure_server(&core->scratch, hf_str_of(message), true);
    hf_wft_fail(core, run, cause, failure, request->identity);
    hf_wft_schedule(core, run);
    hf_call_fail(core, call, HF_ERR_INVALID, "%s", message);
}

void hf_respond_workflow_task_completed(hf_core *core, hf_call *call, hf_run *run)
{
    hf_assert(run->wft.state == HF_WFT_STARTED && hf_run_is_open(run)); /* its token is right */
    const hf_pb_respond_workflow_task_completed_request *request = call->request;
    hf_plan plan = {
        .request = request,
        .activities = run->activities.count,
        .timers = run->timers.count,
        .externals = run->externals.count,
    };
    if (request->commands.count > (size_t)core->options.limits.history_count) {
        HF_PROBE(core, HF_PROBE_LIMIT_HIT);
        refuse(core, call, run, HF_WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED,
               "the workflow task has more commands than a history may have events");
        return;
    }
    if (!check_all(core, run, &plan)) {
        HF_PROBE(core, HF_PROBE_BAD_COMMAND);
        refuse(core, call, run, plan.cause, core->op.message);
        return;
    }
    if (plan.closes && run->buffered.count > plan.unfired && !HF_CANARY(HF_BUG_CLOSE_OVER_BUFFERED)) {
        HF_PROBE(core, HF_PROBE_UNHANDLED_COMMAND);
        refuse(core, call, run, HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, "UnhandledCommand");
        return;
    }
    hf_match_remove(core, &run->wft.task);
    hf_wft_materialise(core, run);
    emit_completed(core, run, request);
    set_sticky(core, run, request->sticky_attributes);
    bool heartbeat = request->force_create_new_workflow_task;
    if (heartbeat && request->commands.count == 0) {
        HF_PROBE(core, HF_PROBE_WFT_HEARTBEAT);
    }
    for (size_t i = 0; i < request->commands.count && core->status == HF_OK; i++) {
        do_one(core, run, &request->commands.items[i], request->identity);
    }
    if (core->status == HF_OK && hf_run_is_open(run)) {
        bool news = run->buffered.count > 0 || heartbeat;
        hf_flush_buffered(core, run);
        news = hf_activities_cancel_early(core, run) || news;
        if (!hf_execution_is_too_long(core, run) && news) {
            hf_wft_schedule(core, run);
        }
    }
    hf_call_response(core, call);
    hf_call_reply(core, call);
}
