/* Histories as text: one line per event, with the attributes that tests check. */
#include "support/engine_rig.h"

#include "history/history.h"

#include <stdio.h>

static const char *brief(const hf_pb_enum *set, int32_t value)
{
    const char *name = hf_pb_enum_brief(set, value);
    return name != NULL ? name : "?";
}

static void put_span(hf_buf *out, const char *key, hf_pb_duration span)
{
    if (hf_pb_duration_span(span).ns != 0) {
        hf_buf_putf(out, " %s=%gs", key, (double)hf_pb_duration_span(span).ns / 1e9);
    }
}

static void put_ids(hf_buf *out, int64_t scheduled, int64_t started)
{
    hf_buf_putf(out, " scheduled=%lld", (long long)scheduled);
    if (started != 0) {
        hf_buf_putf(out, " started=%lld", (long long)started);
    }
}

static void put_failure(hf_buf *out, const hf_pb_failure *failure)
{
    if (failure == NULL) {
        return;
    }
    if (failure->failure_info_case == HF_PB_FAILURE_APPLICATION_FAILURE_INFO) {
        hf_buf_putf(out, " failure=%.*s", HF_STR_ARGS(failure->application_failure_info->type));
    } else if (failure->failure_info_case == HF_PB_FAILURE_TIMEOUT_FAILURE_INFO) {
        hf_buf_putf(out, " timeout=%s", brief(&hf_pb_timeout_type_enum, failure->timeout_failure_info->timeout_type));
    } else if (failure->failure_info_case == HF_PB_FAILURE_SERVER_FAILURE_INFO) {
        hf_buf_putf(out, " server='%.*s'", HF_STR_ARGS(failure->message));
    }
    if (failure->cause != NULL) {
        hf_buf_puts(out, " because");
        put_failure(out, failure->cause);
    }
}

#define ATTRS(stem) const hf_pb_##stem##_event_attributes *a = event->stem##_event_attributes

static void put_task(const hf_pb_history_event *event, hf_buf *out)
{
    if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED) {
        ATTRS(workflow_task_scheduled);
        hf_buf_putf(out, " attempt=%d", (int)a->attempt);
        if (hf_pb_duration_span(a->start_to_close_timeout).ns != hf_seconds(10).ns) {
            put_span(out, "timeout", a->start_to_close_timeout);
        }
    } else if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_STARTED) {
        ATTRS(workflow_task_started);
        put_ids(out, a->scheduled_event_id, 0);
        hf_buf_puts(out, a->suggest_continue_as_new ? " suggest" : "");
    } else if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED) {
        ATTRS(workflow_task_completed);
        put_ids(out, a->scheduled_event_id, a->started_event_id);
    } else if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT) {
        ATTRS(workflow_task_timed_out);
        put_ids(out, a->scheduled_event_id, a->started_event_id);
        hf_buf_putf(out, " %s", brief(&hf_pb_timeout_type_enum, a->timeout_type));
    } else {
        ATTRS(workflow_task_failed);
        put_ids(out, a->scheduled_event_id, a->started_event_id);
        hf_buf_putf(out, " %s", brief(&hf_pb_workflow_task_failed_cause_enum, a->cause));
    }
}

static void put_activity(const hf_pb_history_event *event, hf_buf *out)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: {
        ATTRS(activity_task_scheduled);
        hf_buf_putf(out, " %.*s", HF_STR_ARGS(a->activity_id));
        break;
    }
    case HF_EVENT_TYPE_ACTIVITY_TASK_STARTED: {
        ATTRS(activity_task_started);
        put_ids(out, a->scheduled_event_id, 0);
        hf_buf_putf(out, " attempt=%d", (int)a->attempt);
        put_failure(out, a->last_failure);
        break;
    }
    case HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED: {
        ATTRS(activity_task_completed);
        put_ids(out, a->scheduled_event_id, a->started_event_id);
        break;
    }
    case HF_EVENT_TYPE_ACTIVITY_TASK_FAILED: {
        ATTRS(activity_task_failed);
        put_ids(out, a->scheduled_event_id, a->started_event_id);
        put_failure(out, a->failure);
        hf_buf_putf(out, " %s", brief(&hf_pb_retry_state_enum, a->retry_state));
        break;
    }
    case HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: {
        ATTRS(activity_task_timed_out);
        put_ids(out, a->scheduled_event_id, a->started_event_id);
        put_failure(out, a->failure);
        hf_buf_putf(out, " %s", brief(&hf_pb_retry_state_enum, a->retry_state));
        break;
    }
    case HF_EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED: {
        ATTRS(activity_task_cancel_requested);
        put_ids(out, a->scheduled_event_id, 0);
        break;
    }
    default: {
        ATTRS(activity_task_canceled);
        put_ids(out, a->scheduled_event_id, a->started_event_id);
        break;
    }
    }
}

static void put_rest(const hf_pb_history_event *event, hf_buf *out)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_TIMER_STARTED: {
        ATTRS(timer_started);
        hf_buf_putf(out, " %.*s", HF_STR_ARGS(a->timer_id));
        put_span(out, "after", a->start_to_fire_timeout);
        break;
    }
    case HF_EVENT_TYPE_TIMER_FIRED: {
        ATTRS(timer_fired);
        hf_buf_putf(out, " %.*s started=%lld", HF_STR_ARGS(a->timer_id), (long long)a->started_event_id);
        break;
    }
    case HF_EVENT_TYPE_TIMER_CANCELED: {
        ATTRS(timer_canceled);
        hf_buf_putf(out, " %.*s started=%lld", HF_STR_ARGS(a->timer_id), (long long)a->started_event_id);
        break;
    }
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED: {
        ATTRS(workflow_execution_signaled);
        hf_buf_putf(out, " %.*s", HF_STR_ARGS(a->signal_name));
        break;
    }
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT: {
        ATTRS(workflow_execution_timed_out);
        if (a->retry_state != HF_RETRY_STATE_RETRY_POLICY_NOT_SET) {
            hf_buf_putf(out, " %s", brief(&hf_pb_retry_state_enum, a->retry_state));
        }
        break;
    }
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED: {
        ATTRS(workflow_execution_terminated);
        hf_buf_putf(out, " '%.*s'", HF_STR_ARGS(a->reason));
        break;
    }
    case HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED: {
        ATTRS(signal_external_workflow_execution_failed);
        hf_buf_putf(out, " %s", brief(&hf_pb_signal_external_workflow_execution_failed_cause_enum, a->cause));
        break;
    }
    case HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED: {
        ATTRS(request_cancel_external_workflow_execution_failed);
        hf_buf_putf(out, " %s", brief(&hf_pb_cancel_external_workflow_execution_failed_cause_enum, a->cause));
        break;
    }
    case HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: {
        ATTRS(start_child_workflow_execution_initiated);
        hf_buf_putf(out, " %.*s", HF_STR_ARGS(a->workflow_id));
        break;
    }
    case HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED: {
        ATTRS(start_child_workflow_execution_failed);
        hf_buf_putf(out, " initiated=%lld %s", (long long)a->initiated_event_id,
                    brief(&hf_pb_start_child_workflow_execution_failed_cause_enum, a->cause));
        break;
    }
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED: {
        ATTRS(child_workflow_execution_started);
        hf_buf_putf(out, " initiated=%lld", (long long)a->initiated_event_id);
        break;
    }
#define CHILD_ENDS(type, stem)                                                             \
    case type: {                                                                           \
        ATTRS(stem);                                                                       \
        hf_buf_putf(out, " initiated=%lld started=%lld", (long long)a->initiated_event_id, \
                    (long long)a->started_event_id);                                       \
        break;                                                                             \
    }
        CHILD_ENDS(HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED, child_workflow_execution_completed)
        CHILD_ENDS(HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED, child_workflow_execution_failed)
        CHILD_ENDS(HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED, child_workflow_execution_canceled)
        CHILD_ENDS(HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT, child_workflow_execution_timed_out)
        CHILD_ENDS(HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED, child_workflow_execution_terminated)
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED: {
        ATTRS(workflow_execution_update_accepted);
        hf_buf_putf(out, " %.*s of=%lld", HF_STR_ARGS(a->protocol_instance_id),
                    (long long)a->accepted_request_sequencing_event_id);
        break;
    }
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED: {
        ATTRS(workflow_execution_update_completed);
        hf_buf_putf(out, " %.*s accepted=%lld", HF_STR_ARGS(a->meta->update_id), (long long)a->accepted_event_id);
        put_failure(out, a->outcome->value_case == HF_PB_OUTCOME_FAILURE ? a->outcome->failure : NULL);
        break;
    }
    case HF_EVENT_TYPE_MARKER_RECORDED: {
        ATTRS(marker_recorded);
        hf_buf_putf(out, " %.*s", HF_STR_ARGS(a->marker_name));
        break;
    }
    default:
        break;
    }
}

void hf_rig_event_text(const hf_pb_history_event *event, bool bare, hf_buf *out)
{
    hf_buf_putf(out, "%lld %s", (long long)event->event_id, hf_event_name(event->event_type));
    if (bare) {
        hf_buf_putc(out, '\n');
        return;
    }
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_STARTED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
    case HF_EVENT_TYPE_WORKFLOW_TASK_FAILED:
        put_task(event, out);
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_STARTED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_FAILED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
    case HF_EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED:
        put_activity(event, out);
        break;
    default:
        put_rest(event, out);
        break;
    }
    hf_buf_putc(out, '\n');
}

void hf_rig_history_text(hf_str history, bool bare, hf_buf *out)
{
    hf_arena arena;
    hf_op op;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_rig_heap);
    hf_str bytes = {0};
    while (history.len > 0 && hf_history_next(&history, &bytes)) {
        hf_pb_history_event event;
        hf_arena_reset(&arena);
        assert_int_equal(hf_pb_decode(&op, &hf_pb_history_event_type, bytes, &arena, &event), HF_OK);
        hf_rig_event_text(&event, bare, out);
    }
    hf_arena_deinit(&arena);
}

hf_str hf_rig_history_bytes(hf_rig *rig, const char *workflow_id)
{
    hf_rig_call *slot = hf_rig_slot(rig, NULL);
    hf_pb_get_workflow_execution_history_request *request = HF_RIG_REQUEST(slot, get_workflow_execution_history);
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = HF_ARENA_NEW(&slot->request, hf_pb_workflow_execution);
    request->execution->workflow_id = hf_str_of(workflow_id);
    hf_rig_send(rig, slot, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, request);
    if (!slot->done || slot->call.status != HF_OK) {
        fail_msg("no history of %s: %s", workflow_id, slot->done ? slot->call.message : "no answer");
    }
    return ((hf_pb_get_workflow_execution_history_response *)slot->call.response)->history;
}

void hf_rig_text(hf_rig *rig, const char *workflow_id, hf_buf *out)
{
    hf_rig_history_text(hf_rig_history_bytes(rig, workflow_id), false, out);
}

void hf_rig_history(hf_rig *rig, const char *workflow_id, const char *expected)
{
    hf_buf out;
    hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
    hf_rig_text(rig, workflow_id, &out);
    if (strcmp(hf_buf_text(&out), expected) != 0) {
        print_error("history of %s:\n%sexpected:\n%s", workflow_id, hf_buf_text(&out), expected);
        hf_buf_deinit(&out);
        fail_msg("%s", "another history was expected");
    }
    hf_buf_deinit(&out);
}
