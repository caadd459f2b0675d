/* A run for people: a head, a line per event, and what the run waits for now.
 *
 *     order-1  order  Running for 3 d 4 h                        run 0f41...  queue orders
 *
 *        1  +0.000 s  WorkflowExecutionStarted    {"item": "kelp"}
 *        5  +0.004 s  ActivityTaskScheduled       1 charge  {"item": "kelp"}
 *
 *     waits for
 *       signal delivered
 *       activity 1 charge, attempt 3, begins in 2.100 s; the last one failed: BankBusy: the bank does not answer */
#include "main/grid.h"
#include "main/timeline_private.h"

#include "history/history.h"
#include "history/payload.h"
#include "history/reason.h"
#include "wire/base64.h"
#include "wire/time_text.h"

#include <holdfast/memo.h>

#include <stdio.h>

/* ---- Small texts ------------------------------------------------------------------------------------------------------ */

void hf_timeline_put_cut(hf_timeline *w, hf_str text, size_t len_max)
{
    (void)hf_put_text(w->out, text, w->is_full ? SIZE_MAX : len_max);
}

void hf_timeline_put_text(hf_timeline *w, hf_str text)
{
    hf_timeline_put_cut(w, text, HF_TIMELINE_TEXT_MAX);
}

static void put_payload(hf_timeline *w, const hf_pb_payload *payload)
{
    hf_str encoding = hf_payload_encoding(payload);
    if (hf_str_equal(encoding, HF_ENCODING_JSON)) {
        hf_timeline_put_text(w, payload->data);
    } else if (hf_str_equal(encoding, HF_ENCODING_NULL)) {
        hf_buf_puts(w->out, "null");
    } else {
        hf_buf_putf(w->out, "<%zu bytes, ", payload->data.len);
        hf_timeline_put_text(w, encoding);
        hf_buf_putc(w->out, '>');
        if (w->is_full) {
            hf_buf_putc(w->out, ' ');
            hf_base64_encode(payload->data, w->out);
        }
    }
}

static void put_payloads(hf_timeline *w, const hf_pb_payloads *payloads)
{
    for (size_t i = 0; payloads != NULL && i < payloads->payloads.count; i++) {
        hf_buf_puts(w->out, i == 0 ? "  " : ", ");
        put_payload(w, &payloads->payloads.items[i]);
    }
}

/* Whether the answer was kept, or made for another run. */
static void put_memo(hf_timeline *w, const hf_pb_payloads *result)
{
    const hf_pb_payload *first = hf_payloads_first(result);
    hf_str memo = first != NULL ? hf_payload_metadata(first, HF_STR(HF_MEMO_NAME)) : (hf_str){NULL, 0};
    if (memo.len > 0) {
        hf_buf_puts(w->out, "  (memo: ");
        hf_timeline_put_text(w, memo);
        hf_buf_putc(w->out, ')');
    }
}

void hf_timeline_put_failure(hf_timeline *w, const hf_pb_failure *failure)
{
    for (int depth = 0; failure != NULL && depth < 5; depth++, failure = failure->cause) {
        hf_str type = hf_failure_type(failure);
        hf_buf_puts(w->out, depth == 0 ? "" : " <- ");
        if (type.len > 0) {
            hf_timeline_put_text(w, type);
            hf_buf_puts(w->out, ": ");
        }
        hf_timeline_put_cut(w, failure->message, HF_TIMELINE_MESSAGE_MAX);
        if (failure->encoded_attributes != NULL) { /* its own message, made by a codec of the program */
            hf_buf_putc(w->out, ' ');
            put_payload(w, failure->encoded_attributes);
        }
    }
}

/* ---- Timers ----------------------------------------------------------------------------------------------------------- */

static void timer_started(hf_timeline *w, const hf_pb_history_event *event)
{
    const hf_pb_timer_started_event_attributes *attrs = event->timer_started_event_attributes;
    int64_t span = hf_pb_duration_span(attrs->start_to_fire_timeout).ns;
    hf_buf_puts(w->out, "  ");
    hf_timeline_put_text(w, attrs->timer_id);
    hf_buf_puts(w->out, "  fires after ");
    hf_put_span(w->out, span);
    if (w->timer_count == HF_TIMELINE_TIMERS_MAX) {
        w->timers_untold++;
        return;
    }
    hf_timeline_timer *t = &w->timers[w->timer_count++];
    *t = (hf_timeline_timer){.started_id = event->event_id};
    (void)snprintf(t->id, sizeof t->id, "%.*s", HF_STR_ARGS(attrs->timer_id));
    if (__builtin_add_overflow(hf_pb_timestamp_time(event->event_time).ns, span, &t->fires_at)) {
        t->fires_at = INT64_MAX;
    }
}

static void timer_ended(hf_timeline *w, int64_t started_id, hf_str id)
{
    hf_buf_puts(w->out, "  ");
    hf_timeline_put_text(w, id);
    for (size_t i = 0; i < w->timer_count; i++) {
        if (w->timers[i].started_id == started_id) {
            w->timers[i] = w->timers[--w->timer_count];
            return;
        }
    }
    w->timers_untold -= w->timers_untold > 0 ? 1 : 0;
}

/* ---- Activities ------------------------------------------------------------------------------------------------------- */

static hf_timeline_name *find_activity(hf_timeline *w, int64_t scheduled_id)
{
    for (size_t i = 0; i < w->activity_count; i++) {
        if (w->activities[i].scheduled_id == scheduled_id) {
            return &w->activities[i];
        }
    }
    return NULL;
}

static void keep_name(hf_timeline *w, int64_t scheduled_id, hf_str name)
{
    if (w->activity_count < HF_TIMELINE_ACTIVITIES_MAX) {
        hf_timeline_name *activity = &w->activities[w->activity_count++];
        *activity = (hf_timeline_name){.scheduled_id = scheduled_id};
        (void)snprintf(activity->name, sizeof activity->name, "%.*s", HF_STR_ARGS(name));
    }
}

static void put_of(hf_timeline *w, int64_t scheduled_id)
{
    hf_timeline_name *activity = find_activity(w, scheduled_id);
    hf_buf_putf(w->out, "  of %lld", (long long)scheduled_id);
    if (activity != NULL) {
        hf_buf_putc(w->out, ' ');
        hf_timeline_put_text(w, hf_str_of(activity->name));
    }
}

/* The same for the last event of an activity or update. */
static void put_end_of(hf_timeline *w, int64_t scheduled_id)
{
    put_of(w, scheduled_id);
    hf_timeline_name *activity = find_activity(w, scheduled_id);
    if (activity != NULL) {
        *activity = w->activities[--w->activity_count];
    }
}

static void put_activity_event(hf_timeline *w, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: {
        const hf_pb_activity_task_scheduled_event_attributes *attrs = event->activity_task_scheduled_event_attributes;
        hf_buf_puts(w->out, "  ");
        hf_timeline_put_text(w, attrs->activity_id);
        hf_buf_puts(w->out, " ");
        hf_str name = attrs->activity_type != NULL ? attrs->activity_type->name : HF_STR("");
        hf_timeline_put_text(w, name);
        put_payloads(w, attrs->input);
        keep_name(w, event->event_id, name);
        break;
    }
    case HF_EVENT_TYPE_ACTIVITY_TASK_STARTED:
        put_of(w, event->activity_task_started_event_attributes->scheduled_event_id);
        hf_buf_putf(w->out, "  attempt %d", (int)event->activity_task_started_event_attributes->attempt);
        if (event->activity_task_started_event_attributes->last_failure != NULL) {
            hf_buf_puts(w->out, ", after ");
            hf_timeline_put_failure(w, event->activity_task_started_event_attributes->last_failure);
        }
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        put_end_of(w, event->activity_task_completed_event_attributes->scheduled_event_id);
        put_payloads(w, event->activity_task_completed_event_attributes->result);
        put_memo(w, event->activity_task_completed_event_attributes->result);
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_FAILED:
        put_end_of(w, event->activity_task_failed_event_attributes->scheduled_event_id);
        hf_buf_puts(w->out, "  ");
        hf_timeline_put_failure(w, event->activity_task_failed_event_attributes->failure);
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
        put_end_of(w, event->activity_task_timed_out_event_attributes->scheduled_event_id);
        hf_buf_puts(w->out, "  ");
        hf_timeline_put_failure(w, event->activity_task_timed_out_event_attributes->failure);
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED:
        put_end_of(w, event->activity_task_canceled_event_attributes->scheduled_event_id);
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED:
        put_of(w, event->activity_task_cancel_requested_event_attributes->scheduled_event_id);
        break;
    default:
        break;
    }
}

/* ---- Children --------------------------------------------------------------------------------------------------------- */

/* "ship "order-1"": the type and id of a child workflow. */
static void put_child_name(hf_timeline *w, const hf_pb_workflow_type *type, hf_str id)
{
    hf_timeline_put_text(w, type != NULL ? type->name : HF_STR(""));
    hf_buf_puts(w->out, " \"");
    hf_timeline_put_text(w, id);
    hf_buf_putc(w->out, '"');
}

static void put_of_child(hf_timeline *w, int64_t initiated_id, const hf_pb_workflow_type *type,
                         const hf_pb_workflow_execution *execution)
{
    hf_buf_putf(w->out, "  of %lld ", (long long)initiated_id);
    put_child_name(w, type, execution != NULL ? execution->workflow_id : HF_STR(""));
}

static void put_child_end(hf_timeline *w, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED: {
        const hf_pb_child_workflow_execution_completed_event_attributes *attrs =
            event->child_workflow_execution_completed_event_attributes;
        put_of_child(w, attrs->initiated_event_id, attrs->workflow_type, attrs->workflow_execution);
        put_payloads(w, attrs->result);
        break;
    }
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED: {
        const hf_pb_child_workflow_execution_failed_event_attributes *attrs =
            event->child_workflow_execution_failed_event_attributes;
        put_of_child(w, attrs->initiated_event_id, attrs->workflow_type, attrs->workflow_execution);
        hf_buf_puts(w->out, "  ");
        hf_timeline_put_failure(w, attrs->failure);
        break;
    }
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED: {
        const hf_pb_child_workflow_execution_canceled_event_attributes *attrs =
            event->child_workflow_execution_canceled_event_attributes;
        put_of_child(w, attrs->initiated_event_id, attrs->workflow_type, attrs->workflow_execution);
        put_payloads(w, attrs->details);
        break;
    }
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT: {
        const hf_pb_child_workflow_execution_timed_out_event_attributes *attrs =
            event->child_workflow_execution_timed_out_event_attributes;
        put_of_child(w, attrs->initiated_event_id, attrs->workflow_type, attrs->workflow_execution);
        break;
    }
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED: {
        const hf_pb_child_workflow_execution_terminated_event_attributes *attrs =
            event->child_workflow_execution_terminated_event_attributes;
        put_of_child(w, attrs->initiated_event_id, attrs->workflow_type, attrs->workflow_execution);
        break;
    }
    default:
        put_activity_event(w, event);
        break;
    }
}

static void put_child_event(hf_timeline *w, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: {
        const hf_pb_start_child_workflow_execution_initiated_event_attributes *attrs =
            event->start_child_workflow_execution_initiated_event_attributes;
        hf_buf_puts(w->out, "  ");
        put_child_name(w, attrs->workflow_type, attrs->workflow_id);
        put_payloads(w, attrs->input);
        break;
    }
    case HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED: {
        const hf_pb_start_child_workflow_execution_failed_event_attributes *attrs =
            event->start_child_workflow_execution_failed_event_attributes;
        const char *cause = hf_pb_enum_brief(&hf_pb_start_child_workflow_execution_failed_cause_enum, attrs->cause);
        put_of_child(w, attrs->initiated_event_id, attrs->workflow_type,
                     &(hf_pb_workflow_execution){.workflow_id = attrs->workflow_id});
        hf_buf_putf(w->out, "  %s", cause != NULL ? cause : "");
        break;
    }
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED: {
        const hf_pb_child_workflow_execution_started_event_attributes *attrs =
            event->child_workflow_execution_started_event_attributes;
        put_of_child(w, attrs->initiated_event_id, attrs->workflow_type, attrs->workflow_execution);
        break;
    }
    default:
        put_child_end(w, event);
        break;
    }
}

/* ---- Updates ---------------------------------------------------------------------------------------------------------- */

static hf_timeline_name *find_update(hf_timeline *w, hf_str id)
{
    for (size_t i = 0; i < w->activity_count; i++) {
        if (w->activities[i].update_id[0] != '\0' && hf_str_equal(hf_str_of(w->activities[i].update_id), id)) {
            return &w->activities[i];
        }
    }
    return NULL;
}

/* "ID NAME  INPUT". An update that a reset brought here is admitted by one event and accepted by another; only the first of
 * them has the request, so the name is kept from there. */
static void put_request(hf_timeline *w, int64_t event_id, hf_str id, const hf_pb_request *request)
{
    const hf_pb_input *input = request != NULL ? request->input : NULL;
    hf_timeline_name *known = find_update(w, id);
    hf_buf_puts(w->out, "  ");
    hf_timeline_put_text(w, id);
    if (known != NULL) {
        known->scheduled_id = event_id;
    } else if (input != NULL && w->activity_count < HF_TIMELINE_ACTIVITIES_MAX) {
        keep_name(w, event_id, input->name);
        known = &w->activities[w->activity_count - 1];
        (void)snprintf(known->update_id, sizeof known->update_id, "%.*s", HF_STR_ARGS(id));
    }
    if (input != NULL || known != NULL) {
        hf_buf_putc(w->out, ' ');
        hf_timeline_put_text(w, input != NULL ? input->name : hf_str_of(known->name));
    }
    put_payloads(w, input != NULL ? input->args : NULL);
}

static void put_update_event(hf_timeline *w, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED: {
        const hf_pb_request *request = event->workflow_execution_update_admitted_event_attributes->request;
        bool has_id = request != NULL && request->meta != NULL;
        put_request(w, event->event_id, has_id ? request->meta->update_id : HF_STR(""), request);
        break;
    }
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
        put_request(w, event->event_id,
                    event->workflow_execution_update_accepted_event_attributes->protocol_instance_id,
                    event->workflow_execution_update_accepted_event_attributes->accepted_request);
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED: {
        const hf_pb_workflow_execution_update_completed_event_attributes *attrs =
            event->workflow_execution_update_completed_event_attributes;
        put_end_of(w, attrs->accepted_event_id);
        if (attrs->meta != NULL) {
            hf_buf_puts(w->out, ", id ");
            hf_timeline_put_text(w, attrs->meta->update_id);
        }
        if (attrs->outcome != NULL && attrs->outcome->value_case == HF_PB_OUTCOME_SUCCESS) {
            put_payloads(w, attrs->outcome->success);
        } else if (attrs->outcome != NULL && attrs->outcome->value_case == HF_PB_OUTCOME_FAILURE) {
            hf_buf_puts(w->out, "  ");
            hf_timeline_put_failure(w, attrs->outcome->failure);
        }
        break;
    }
    default:
        put_child_event(w, event);
        break;
    }
}

/* ---- All events ------------------------------------------------------------------------------------------------------- */

/* A worker took the task and did not answer. Else the worker that had the run in memory did not come for it, and any other one gets it. */
static bool is_unanswered(const hf_pb_history_event *event)
{
    return event->workflow_task_timed_out_event_attributes->timeout_type == HF_TIMEOUT_TYPE_START_TO_CLOSE;
}

static void put_execution_event(hf_timeline *w, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
        put_payloads(w, event->workflow_execution_started_event_attributes->input);
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
        put_payloads(w, event->workflow_execution_completed_event_attributes->result);
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
        hf_buf_puts(w->out, "  ");
        hf_timeline_put_failure(w, event->workflow_execution_failed_event_attributes->failure);
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
        hf_insight_add(&w->signals, event->workflow_execution_signaled_event_attributes->signal_name);
        hf_buf_puts(w->out, "  ");
        hf_timeline_put_text(w, event->workflow_execution_signaled_event_attributes->signal_name);
        put_payloads(w, event->workflow_execution_signaled_event_attributes->input);
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
        hf_buf_puts(w->out, "  ");
        hf_timeline_put_cut(w, hf_terminated_why(event->workflow_execution_terminated_event_attributes),
                            HF_TIMELINE_MESSAGE_MAX);
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
        hf_buf_puts(w->out, "  ");
        hf_timeline_put_cut(w, event->workflow_execution_cancel_requested_event_attributes->cause,
                            HF_TIMELINE_MESSAGE_MAX);
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
        put_payloads(w, event->workflow_execution_canceled_event_attributes->details);
        break;
    case HF_EVENT_TYPE_WORKFLOW_TASK_FAILED:
        hf_buf_puts(w->out, "  ");
        hf_timeline_put_failure(w, event->workflow_task_failed_event_attributes->failure);
        break;
    case HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
        hf_buf_puts(w->out, is_unanswered(event) ? "  its worker has ended, or the code does not yield" : "");
        break;
    case HF_EVENT_TYPE_MARKER_RECORDED:
        hf_buf_puts(w->out, "  ");
        hf_timeline_put_text(w, event->marker_recorded_event_attributes->marker_name);
        break;
    case HF_EVENT_TYPE_TIMER_STARTED:
        timer_started(w, event);
        break;
    case HF_EVENT_TYPE_TIMER_FIRED:
        timer_ended(w, event->timer_fired_event_attributes->started_event_id,
                    event->timer_fired_event_attributes->timer_id);
        break;
    case HF_EVENT_TYPE_TIMER_CANCELED:
        timer_ended(w, event->timer_canceled_event_attributes->started_event_id,
                    event->timer_canceled_event_attributes->timer_id);
        break;
    default:
        put_update_event(w, event);
        break;
    }
}

static void note_task(hf_timeline *w, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_STARTED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_FAILED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
        w->task = event->event_type;
        w->task_id = event->event_id;
        w->failed_id = event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED ? 0
                       : event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_FAILED  ? event->event_id
                                                                                  : w->failed_id;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
        w->asked_id = event->event_id;
        break;
    default:
        break;
    }
}

/* What a person looks for stands out; the workflow tasks between do not. */
static hf_tone tone_of(int32_t type)
{
    switch (type) {
    case HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_STARTED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
        return HF_TONE_DIM;
    case HF_EVENT_TYPE_WORKFLOW_TASK_FAILED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
    case HF_EVENT_TYPE_ACTIVITY_TASK_FAILED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
        return HF_TONE_BAD;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
        return HF_TONE_WARN;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
        return HF_TONE_GOOD;
    default:
        return HF_TONE_PLAIN;
    }
}

static void put_event(hf_timeline *w, const hf_pb_history_event *event)
{
    note_task(w, event);
    int64_t at = hf_pb_timestamp_time(event->event_time).ns;
    w->goes_back |= event->event_id > 1 && at < w->last;
    w->last = at;
    double offset = (double)(w->last - w->first) / 1e9;
    hf_tone tone = tone_of(event->event_type);
    hf_buf_putf(w->out, "%6lld  %+12.3f s  %s%-34s%s", (long long)event->event_id, offset, hf_tone_on(tone),
                hf_event_name(event->event_type), hf_tone_off(tone));
    if (event->attributes_case != 0) {
        put_execution_event(w, event);
    }
    if (event->user_metadata != NULL && event->user_metadata->summary != NULL) {
        hf_buf_puts(w->out, "  (");
        put_payload(w, event->user_metadata->summary);
        hf_buf_putc(w->out, ')');
    }
    while (w->out->len > 0 && w->out->data[w->out->len - 1] == ' ') {
        w->out->len--;
    }
    hf_buf_putc(w->out, '\n');
}

/* ---- Head and tail ---------------------------------------------------------------------------------------------------- */

static void put_head(hf_timeline *w, const hf_run_view *view, const hf_pb_history_event *first, int64_t now_ns)
{
    const hf_pb_workflow_execution_started_event_attributes *attrs = first->workflow_execution_started_event_attributes;
    const char *status = hf_pb_enum_brief(&hf_pb_workflow_execution_status_enum, view->status);
    char at[HF_TIME_TEXT_LEN_MAX] = "";
    (void)hf_timestamp_format(first->event_time, at);
    hf_timeline_put_text(w, view->workflow_id);
    hf_buf_puts(w->out, "  ");
    bool is_started = first->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED && first->attributes_case != 0;
    if (is_started && attrs->workflow_type != NULL) {
        hf_timeline_put_text(w, attrs->workflow_type->name);
        (void)snprintf(w->type, sizeof w->type, "%.*s", HF_STR_ARGS(attrs->workflow_type->name));
    }
    hf_tone tone = hf_tone_of_status(view->status);
    hf_buf_putf(w->out, "  %s%s%s", hf_tone_on(tone), status != NULL ? status : "Unknown", hf_tone_off(tone));
    if (view->status == HF_WORKFLOW_EXECUTION_STATUS_RUNNING) {
        hf_buf_puts(w->out, " for ");
        hf_put_span(w->out, now_ns - w->first);
    }
    hf_buf_putf(w->out, "\nrun %.*s, started %s", HF_STR_ARGS(view->run_id), at);
    if (is_started && attrs->task_queue != NULL) {
        hf_buf_puts(w->out, ", task queue ");
        hf_timeline_put_text(w, attrs->task_queue->name);
        (void)snprintf(w->queue, sizeof w->queue, "%.*s", HF_STR_ARGS(attrs->task_queue->name));
    }
    hf_buf_puts(w->out, "\n\n");
}

void hf_timeline_init(hf_timeline *w, const hf_run_view *view, hf_buf *out)
{
    *w = (hf_timeline){.out = out, .is_full = view->is_full};
    hf_arena_init(&w->arena, out->memory);
}

void hf_timeline_deinit(hf_timeline *w)
{
    hf_arena_deinit(&w->arena);
}

hf_status hf_timeline_add(hf_op *op, hf_timeline *w, const hf_run_view *view, hf_str events, int64_t now_ns)
{
    hf_str bytes = {0};
    while (hf_history_next(&events, &bytes)) {
        hf_pb_history_event event;
        hf_arena_reset(&w->arena);
        HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, bytes, &w->arena, &event));
        if (!w->has_head) {
            w->first = hf_pb_timestamp_time(event.event_time).ns;
            put_head(w, view, &event, now_ns);
            w->has_head = true;
        }
        put_event(w, &event);
    }
    return events.len > 0 ? hf_fail(op, HF_ERR_INVALID, "the history cannot be read to its end") : HF_OK;
}

hf_status hf_timeline_write(hf_op *op, const hf_run_view *view, int64_t now_ns, hf_buf *out)
{
    hf_timeline w;
    hf_timeline_init(&w, view, out);
    hf_status status = hf_timeline_add(op, &w, view, view->history, now_ns);
    if (status == HF_OK) {
        hf_timeline_put_waits(&w, view, now_ns);
        hf_timeline_put_remarks(&w, now_ns);
        status = out->status == HF_OK ? HF_OK : hf_fail(op, out->status, "no memory for the timeline");
    }
    hf_timeline_deinit(&w);
    return status;
}
