/* Checks of commands: nothing is changed before the whole list was found to be good. */
#include "engine/commands.h"

#include "base/uuid.h"
#include "engine/core_private.h"
#include "engine/machines/machines.h"
#include "engine/size.h"
#include "history/limits.h"

#include <stdio.h>

bool hf_command_bad(hf_core *core, hf_plan *plan, int32_t cause, const char *why)
{
    plan->cause = cause;
    hf_fail(&core->op, HF_ERR_INVALID, "%s", why);
    return false;
}

bool hf_command_fits(hf_core *core, hf_plan *plan, size_t len, int32_t cause, const char *why)
{
    if (hf_fits(core, len)) {
        return true;
    }
    char text[HF_MESSAGE_LEN_MAX];
    (void)snprintf(text, sizeof text, "%s (%zu bytes, and at most %zu are taken)", why, len,
                   core->options.limits.payload_len);
    return hf_command_bad(core, plan, cause, text);
}

hf_listed *hf_command_listed(hf_core *core, const hf_plan *plan, hf_ids *ids, hf_str id)
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

/* Whether a timer is pending after the commands checked so far; `*ret_place` is its entry in timer_ids. */
static bool timer_is_pending(hf_core *core, const hf_run *run, hf_plan *plan, hf_str timer_id, hf_listed **ret_place)
{
    hf_listed *place = hf_command_listed(core, plan, &plan->timer_ids, timer_id);
    *ret_place = place;
    return place != NULL && place->id.data != NULL ? place->pending : hf_run_timer_by_id(run, timer_id) != NULL;
}

bool hf_check_start_timer(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    const hf_pb_start_timer_command_attributes *attrs = command->start_timer_command_attributes;
    if (attrs == NULL || !hf_id_is_good(attrs->timer_id) || hf_pb_duration_span(attrs->start_to_fire_timeout).ns < 0) {
        return hf_command_bad(
            core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_START_TIMER_ATTRIBUTES,
            "TimerId or StartToFireTimeout is missing, out of range or not UTF-8 on StartTimerCommand.");
    }
    hf_listed *place = NULL;
    if (timer_is_pending(core, run, plan, attrs->timer_id, &place) || place == NULL) {
        return hf_command_bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_START_TIMER_DUPLICATE_ID,
                              "a timer with this id is pending");
    }
    *place = (hf_listed){attrs->timer_id, true};
    return true;
}

bool hf_check_cancel_timer(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    const hf_pb_cancel_timer_command_attributes *attrs = command->cancel_timer_command_attributes;
    hf_listed *place = NULL;
    if (attrs == NULL || attrs->timer_id.len == 0 || !timer_is_pending(core, run, plan, attrs->timer_id, &place) ||
        place == NULL) {
        return hf_command_bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_CANCEL_TIMER_ATTRIBUTES,
                              "CancelTimerCommand names a timer that is not pending");
    }
    const hf_timer *timer = place->id.data == NULL ? hf_run_timer_by_id(run, attrs->timer_id) : NULL;
    plan->unfired += timer != NULL && timer->state == HF_TIMER_FIRED;
    *place = (hf_listed){attrs->timer_id, false};
    return true;
}

/* Bytes of an activity's texts that are neither ids nor users' data. */
static size_t words_len(const hf_pb_retry_policy *policy, const hf_pb_priority *priority)
{
    size_t len = priority != NULL ? priority->fairness_key.len : 0;
    for (size_t i = 0; policy != NULL && i < policy->non_retryable_error_types.count; i++) {
        len += policy->non_retryable_error_types.items[i].len + 1;
    }
    return len;
}

bool hf_check_schedule_activity(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    hf_pb_schedule_activity_task_command_attributes *attrs = command->schedule_activity_task_command_attributes;
    if (attrs == NULL || !hf_activity_command_is_good(core, run, attrs)) {
        plan->cause = HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES;
        return false;
    }
    if (!hf_command_fits(core, plan, hf_payloads_len(attrs->input),
                         HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES,
                         "ScheduleActivityTaskCommandAttributes.Input exceeds size limit.") ||
        !hf_command_fits(core, plan, hf_message_len(core, &hf_pb_header_type, attrs->header),
                         HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES,
                         "ScheduleActivityTaskCommandAttributes.Header exceeds size limit.") ||
        !hf_command_fits(core, plan, words_len(attrs->retry_policy, attrs->priority),
                         HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES,
                         "ScheduleActivityTaskCommandAttributes.RetryPolicy or Priority exceeds size limit.")) {
        return false;
    }
    hf_listed *place = hf_command_listed(core, plan, &plan->activity_ids, attrs->activity_id);
    if (place == NULL || place->id.data != NULL) {
        return hf_command_bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_SCHEDULE_ACTIVITY_DUPLICATE_ID,
                              "two activities of one workflow task have the same id");
    }
    *place = (hf_listed){attrs->activity_id, true};
    if (hf_run_activity_by_id(run, attrs->activity_id) != NULL) {
        return hf_command_bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_SCHEDULE_ACTIVITY_DUPLICATE_ID,
                              "an activity with this id is pending");
    }
    if (++plan->activities > core->options.limits.pending) {
        HF_PROBE(core, HF_PROBE_LIMIT_HIT);
        return hf_command_bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_PENDING_ACTIVITIES_LIMIT_EXCEEDED,
                              "too many activities are pending");
    }
    return true;
}

/* The activity whose scheduled event has this id, or will have: a command of the same list may make it. Empty = none. */
static hf_str activity_scheduled_by(const hf_run *run, const hf_plan *plan, const hf_pb_command *command,
                                    int64_t scheduled_id)
{
    const hf_activity *activity = hf_run_activity(run, scheduled_id);
    if (activity != NULL) {
        return activity->activity_id;
    }
    const hf_pb_command *commands = plan->request->commands.items;
    size_t from = 0, to = (size_t)(command - commands);
    while (from < to) { /* the last command whose event has at most this id: those before it may make none */
        size_t middle = from + (to - from) / 2;
        if (plan->event_ids[middle] <= scheduled_id) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    bool is_one = from > 0 && plan->event_ids[from - 1] == scheduled_id &&
                  commands[from - 1].command_type == HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK;
    return is_one ? commands[from - 1].schedule_activity_task_command_attributes->activity_id : HF_STR("");
}

/* The command must name the scheduled event of an activity whose cancellation was not requested before. An activity that ended
 * while the task ran is accepted, because the worker cannot know that: its outcome is buffered, and follows the request. */
bool hf_check_cancel_activity(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    const hf_pb_request_cancel_activity_task_command_attributes *attrs =
        command->request_cancel_activity_task_command_attributes;
    const int32_t cause = HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES;
    hf_str id = attrs != NULL ? activity_scheduled_by(run, plan, command, attrs->scheduled_event_id) : HF_STR("");
    if (id.len == 0) {
        return hf_command_bad(core, plan, cause,
                              "RequestCancelActivityTaskCommand names an activity that is not pending");
    }
    const hf_activity *activity = hf_run_activity(run, attrs->scheduled_event_id);
    hf_listed *place = hf_command_listed(core, plan, &plan->cancel_ids, id);
    if (place == NULL || place->id.data != NULL || (activity != NULL && activity->cancel_requested_id != 0)) {
        return hf_command_bad(core, plan, cause,
                              "RequestCancelActivityTaskCommand names an activity that is being canceled");
    }
    *place = (hf_listed){id, false};
    bool waits = activity == NULL || (hf_activity_is_pending(activity) && activity->state != HF_ACTIVITY_STARTED);
    plan->early += waits;
    return true;
}

/* Texts that are stored in the history and not checked elsewhere may be as long as an id. */
static bool is_short(hf_str text)
{
    return hf_text_is_good(text);
}

/* A target that cannot exist is refused here: the event for a message that failed has no cause to express it. */
static bool check_external(hf_core *core, const hf_run *run, hf_plan *plan, hf_str namespace_, hf_str workflow_id,
                           hf_str run_id, int32_t bad_cause, int32_t many_cause)
{
    uint64_t halves[2] = {0};
    if (run_id.len > 0 && !hf_uuid_parse(run_id, &halves[0], &halves[1])) {
        return hf_command_bad(core, plan, bad_cause, "the RunId of a message to another workflow is not a run id");
    }
    if (workflow_id.len == 0 || workflow_id.len > HF_ID_LEN_MAX) {
        return hf_command_bad(core, plan, bad_cause,
                              "a message to another workflow has no workflow id, or one that is too long");
    }
    if (namespace_.len > 0 && !hf_str_equal(namespace_, hf_owned_str(&run->namespace))) { /* empty: the run's own */
        return hf_command_bad(core, plan, bad_cause, "cross namespace commands are not allowed");
    }
    if (++plan->externals > core->options.limits.pending) {
        HF_PROBE(core, HF_PROBE_LIMIT_HIT);
        return hf_command_bad(core, plan, many_cause, "too many messages to other workflows are on their way");
    }
    return true;
}

bool hf_check_signal_external(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    const hf_pb_signal_external_workflow_execution_command_attributes *attrs =
        command->signal_external_workflow_execution_command_attributes;
    const int32_t cause = HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES;
    if (attrs == NULL || attrs->execution == NULL || !hf_id_is_good(attrs->signal_name)) {
        return hf_command_bad(
            core, plan, cause,
            "a signal to another workflow has no target, no signal name, or a name that is too long or not UTF-8");
    }
    if (!is_short(attrs->execution->run_id) || !is_short(attrs->control)) {
        return hf_command_bad(core, plan, cause,
                              "RunId or Control of SignalExternalWorkflowExecutionCommand is too long.");
    }
    return hf_command_fits(core, plan, hf_payloads_len(attrs->input), cause,
                           "SignalExternalWorkflowExecutionCommandAttributes.Input exceeds size limit.") &&
           hf_command_fits(core, plan, hf_message_len(core, &hf_pb_header_type, attrs->header), cause,
                           "SignalExternalWorkflowExecutionCommandAttributes.Header exceeds size limit.") &&
           check_external(core, run, plan, attrs->namespace, attrs->execution->workflow_id, attrs->execution->run_id,
                          cause, HF_WORKFLOW_TASK_FAILED_CAUSE_PENDING_SIGNALS_LIMIT_EXCEEDED);
}

bool hf_check_cancel_external(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    const hf_pb_request_cancel_external_workflow_execution_command_attributes *attrs =
        command->request_cancel_external_workflow_execution_command_attributes;
    const int32_t cause = HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES;
    if (attrs != NULL && (!is_short(attrs->run_id) || !is_short(attrs->control) || !is_short(attrs->reason))) {
        return hf_command_bad(core, plan, cause,
                              "RunId, Control or Reason of RequestCancelExternalWorkflowExecutionCommand is too long.");
    }
    hf_listed *child = attrs != NULL && attrs->child_workflow_only
                           ? hf_command_listed(core, plan, &plan->child_ids, attrs->workflow_id)
                           : NULL;
    if (child != NULL && child->id.data != NULL) {
        return hf_command_bad(core, plan, cause, "a child cannot be started and canceled by the same workflow task");
    }
    return check_external(core, run, plan, attrs != NULL ? attrs->namespace : HF_STR(""),
                          attrs != NULL ? attrs->workflow_id : HF_STR(""), attrs != NULL ? attrs->run_id : HF_STR(""),
                          cause, HF_WORKFLOW_TASK_FAILED_CAUSE_PENDING_REQUEST_CANCEL_LIMIT_EXCEEDED);
}

bool hf_check_marker(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    (void)run;
    const hf_pb_record_marker_command_attributes *attrs = command->record_marker_command_attributes;
    const int32_t cause = HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_RECORD_MARKER_ATTRIBUTES;
    if (attrs == NULL || attrs->marker_name.len == 0 || !is_short(attrs->marker_name)) {
        return hf_command_bad(core, plan, cause, "a marker has no name, or one that is too long");
    }
    if (!hf_command_fits(core, plan, hf_message_len(core, &hf_pb_header_type, attrs->header), cause,
                         "RecordMarkerCommandAttributes.Header exceeds size limit.")) {
        return false;
    }
    if (hf_failure_is_deep(attrs->failure)) {
        return hf_command_bad(core, plan, cause, "the failure of RecordMarkerCommand has too many causes");
    }
    size_t len = hf_message_len(core, &hf_pb_failure_type, attrs->failure);
    for (size_t i = 0; i < attrs->details.count; i++) {
        len += attrs->details.items[i].key.len + hf_payloads_len(attrs->details.items[i].value);
    }
    return hf_command_fits(core, plan, len, cause, "RecordMarkerCommandAttributes.Details exceeds size limit.");
}
