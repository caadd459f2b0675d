/* A run for people: a head, a line per event with what matters about it, and what it waits for now.
 *
 *     order-1  order  Running for 3 d 4 h                        run 0f41...  queue orders
 *
 *        1  +0.000 s  WorkflowExecutionStarted    {"item": "kelp"}
 *        5  +0.004 s  ActivityTaskScheduled       1 charge  {"item": "kelp"}
 *
 *     waits for
 *       activity 1 charge, attempt 3, begins in 2.100 s; the last one failed: BankBusy: the bank does not answer */
#include "main/tool.h"

#include "base/limits.h"
#include "history/history.h"
#include "history/payload.h"
#include "wire/base64.h"
#include "wire/time_text.h"

#include <stdio.h>

enum {
    TEXT_LEN_MAX = 100,    /* of payloads, names and the like */
    MESSAGE_LEN_MAX = 400, /* of failures: what to do stands at their end */
    TIMERS_MAX = 64,
    ACTIVITIES_MAX = 256
};

typedef struct timer {
    int64_t started_id;
    char id[64];
    int64_t fires_at; /* ns */
} timer;

/* An activity that has not ended: later events have the number of its first one, and readers want its name. */
typedef struct named {
    int64_t scheduled_id;
    char name[64];
} named;

typedef struct writing {
    hf_buf *out;
    bool is_full;             /* nothing is cut */
    hf_arena arena;           /* of one event */
    int64_t first;            /* ns: when it began */
    int64_t last;             /* ns: of the last event */
    timer timers[TIMERS_MAX]; /* that have not fired */
    size_t timer_count;
    size_t timers_untold;             /* more than that */
    named activities[ACTIVITIES_MAX]; /* that have not ended; of more than that only the numbers are told */
    size_t activity_count;
    char type[TEXT_LEN_MAX];  /* of the workflow */
    char queue[TEXT_LEN_MAX]; /* its task queue */
    int32_t task;             /* kind of the last event of a workflow task; 0 = there was none */
    int64_t task_id;          /* its number */
} writing;

/* ---- Small texts ------------------------------------------------------------------------------------------------------ */

/* What users have named: cut to one line of a bearable length, unless all of it was asked for. */
static void put_cut(writing *w, hf_str text, size_t len_max)
{
    (void)hf_put_text(w->out, text, w->is_full ? SIZE_MAX : len_max);
}

static void put_text(writing *w, hf_str text)
{
    put_cut(w, text, TEXT_LEN_MAX);
}

static void put_payload(writing *w, const hf_pb_payload *payload)
{
    hf_str encoding = hf_payload_encoding(payload);
    if (hf_str_equal(encoding, HF_ENCODING_JSON)) {
        put_text(w, payload->data);
    } else if (hf_str_equal(encoding, HF_ENCODING_NULL)) {
        hf_buf_puts(w->out, "null");
    } else {
        hf_buf_putf(w->out, "<%zu bytes, ", payload->data.len);
        put_text(w, encoding);
        hf_buf_putc(w->out, '>');
        if (w->is_full) {
            hf_buf_putc(w->out, ' ');
            hf_base64_encode(payload->data, w->out);
        }
    }
}

static void put_payloads(writing *w, const hf_pb_payloads *payloads)
{
    for (size_t i = 0; payloads != NULL && i < payloads->payloads.count; i++) {
        hf_buf_puts(w->out, i == 0 ? "  " : ", ");
        put_payload(w, &payloads->payloads.items[i]);
    }
}

static void put_failure(writing *w, const hf_pb_failure *failure)
{
    for (int depth = 0; failure != NULL && depth < 5; depth++, failure = failure->cause) {
        hf_str type = hf_failure_type(failure);
        hf_buf_puts(w->out, depth == 0 ? "" : " <- ");
        if (type.len > 0) {
            put_text(w, type);
            hf_buf_puts(w->out, ": ");
        }
        put_cut(w, failure->message, MESSAGE_LEN_MAX);
    }
}

/* ---- Timers ----------------------------------------------------------------------------------------------------------- */

static void timer_started(writing *w, const hf_pb_history_event *event)
{
    const hf_pb_timer_started_event_attributes *attrs = event->timer_started_event_attributes;
    int64_t span = hf_pb_duration_span(attrs->start_to_fire_timeout).ns;
    hf_buf_puts(w->out, "  ");
    put_text(w, attrs->timer_id);
    hf_buf_puts(w->out, "  fires after ");
    hf_put_span(w->out, span);
    if (w->timer_count == TIMERS_MAX) {
        w->timers_untold++;
        return;
    }
    timer *t = &w->timers[w->timer_count++];
    *t = (timer){.started_id = event->event_id};
    (void)snprintf(t->id, sizeof t->id, "%.*s", HF_STR_ARGS(attrs->timer_id));
    if (__builtin_add_overflow(hf_pb_timestamp_time(event->event_time).ns, span, &t->fires_at)) {
        t->fires_at = INT64_MAX;
    }
}

static void timer_ended(writing *w, int64_t started_id, hf_str id)
{
    hf_buf_puts(w->out, "  ");
    put_text(w, id);
    for (size_t i = 0; i < w->timer_count; i++) {
        if (w->timers[i].started_id == started_id) {
            w->timers[i] = w->timers[--w->timer_count];
            return;
        }
    }
    w->timers_untold -= w->timers_untold > 0 ? 1 : 0;
}

/* ---- Events ----------------------------------------------------------------------------------------------------------- */

static named *find_activity(writing *w, int64_t scheduled_id)
{
    for (size_t i = 0; i < w->activity_count; i++) {
        if (w->activities[i].scheduled_id == scheduled_id) {
            return &w->activities[i];
        }
    }
    return NULL;
}

static void keep_name(writing *w, int64_t scheduled_id, hf_str name)
{
    if (w->activity_count < ACTIVITIES_MAX) {
        named *activity = &w->activities[w->activity_count++];
        activity->scheduled_id = scheduled_id;
        (void)snprintf(activity->name, sizeof activity->name, "%.*s", HF_STR_ARGS(name));
    }
}

static void put_of(writing *w, int64_t scheduled_id)
{
    named *activity = find_activity(w, scheduled_id);
    hf_buf_putf(w->out, "  of %lld", (long long)scheduled_id);
    if (activity != NULL) {
        hf_buf_putc(w->out, ' ');
        put_text(w, hf_str_of(activity->name));
    }
}

/* The same for an event that is an activity's last. */
static void put_end_of(writing *w, int64_t scheduled_id)
{
    put_of(w, scheduled_id);
    named *activity = find_activity(w, scheduled_id);
    if (activity != NULL) {
        *activity = w->activities[--w->activity_count];
    }
}

static void put_activity_event(writing *w, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: {
        const hf_pb_activity_task_scheduled_event_attributes *attrs = event->activity_task_scheduled_event_attributes;
        hf_buf_puts(w->out, "  ");
        put_text(w, attrs->activity_id);
        hf_buf_puts(w->out, " ");
        hf_str name = attrs->activity_type != NULL ? attrs->activity_type->name : HF_STR("");
        put_text(w, name);
        put_payloads(w, attrs->input);
        keep_name(w, event->event_id, name);
        break;
    }
    case HF_EVENT_TYPE_ACTIVITY_TASK_STARTED:
        put_of(w, event->activity_task_started_event_attributes->scheduled_event_id);
        hf_buf_putf(w->out, "  attempt %d", (int)event->activity_task_started_event_attributes->attempt);
        if (event->activity_task_started_event_attributes->last_failure != NULL) {
            hf_buf_puts(w->out, ", after ");
            put_failure(w, event->activity_task_started_event_attributes->last_failure);
        }
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        put_end_of(w, event->activity_task_completed_event_attributes->scheduled_event_id);
        put_payloads(w, event->activity_task_completed_event_attributes->result);
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_FAILED:
        put_end_of(w, event->activity_task_failed_event_attributes->scheduled_event_id);
        hf_buf_puts(w->out, "  ");
        put_failure(w, event->activity_task_failed_event_attributes->failure);
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
        put_end_of(w, event->activity_task_timed_out_event_attributes->scheduled_event_id);
        hf_buf_puts(w->out, "  ");
        put_failure(w, event->activity_task_timed_out_event_attributes->failure);
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

static void put_execution_event(writing *w, const hf_pb_history_event *event)
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
        put_failure(w, event->workflow_execution_failed_event_attributes->failure);
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
        hf_buf_puts(w->out, "  ");
        put_text(w, event->workflow_execution_signaled_event_attributes->signal_name);
        put_payloads(w, event->workflow_execution_signaled_event_attributes->input);
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
        hf_buf_puts(w->out, "  ");
        put_text(w, event->workflow_execution_terminated_event_attributes->reason);
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
        hf_buf_puts(w->out, "  ");
        put_text(w, event->workflow_execution_cancel_requested_event_attributes->cause);
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
        put_payloads(w, event->workflow_execution_canceled_event_attributes->details);
        break;
    case HF_EVENT_TYPE_WORKFLOW_TASK_FAILED:
        hf_buf_puts(w->out, "  ");
        put_failure(w, event->workflow_task_failed_event_attributes->failure);
        break;
    case HF_EVENT_TYPE_MARKER_RECORDED:
        hf_buf_puts(w->out, "  ");
        put_text(w, event->marker_recorded_event_attributes->marker_name);
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
        put_activity_event(w, event);
        break;
    }
}

static void note_task(writing *w, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_STARTED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_FAILED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
        w->task = event->event_type;
        w->task_id = event->event_id;
        break;
    default:
        break;
    }
}

static void put_event(writing *w, const hf_pb_history_event *event)
{
    note_task(w, event);
    w->last = hf_pb_timestamp_time(event->event_time).ns;
    double offset = (double)(w->last - w->first) / 1e9;
    hf_buf_putf(w->out, "%6lld  %+12.3f s  %-34s", (long long)event->event_id, offset,
                hf_event_name(event->event_type));
    if (event->attributes_case != 0) {
        put_execution_event(w, event);
    }
    while (w->out->len > 0 && w->out->data[w->out->len - 1] == ' ') {
        w->out->len--;
    }
    hf_buf_putc(w->out, '\n');
}

/* ---- Head and tail ---------------------------------------------------------------------------------------------------- */

static void put_head(writing *w, const hf_run_view *view, const hf_pb_history_event *first, int64_t now_ns)
{
    const hf_pb_workflow_execution_started_event_attributes *attrs = first->workflow_execution_started_event_attributes;
    const char *status = hf_pb_enum_brief(&hf_pb_workflow_execution_status_enum, view->status);
    char at[HF_TIME_TEXT_LEN_MAX] = "";
    (void)hf_timestamp_format(first->event_time, at);
    put_text(w, view->workflow_id);
    hf_buf_puts(w->out, "  ");
    bool is_started = first->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED && first->attributes_case != 0;
    if (is_started && attrs->workflow_type != NULL) {
        put_text(w, attrs->workflow_type->name);
        (void)snprintf(w->type, sizeof w->type, "%.*s", HF_STR_ARGS(attrs->workflow_type->name));
    }
    hf_buf_putf(w->out, "  %s", status != NULL ? status : "Unknown");
    if (view->status == HF_WORKFLOW_EXECUTION_STATUS_RUNNING) {
        hf_buf_puts(w->out, " for ");
        hf_put_span(w->out, now_ns - w->first);
    }
    hf_buf_putf(w->out, "\nrun %.*s, started %s", HF_STR_ARGS(view->run_id), at);
    if (is_started && attrs->task_queue != NULL) {
        hf_buf_puts(w->out, ", task queue ");
        put_text(w, attrs->task_queue->name);
        (void)snprintf(w->queue, sizeof w->queue, "%.*s", HF_STR_ARGS(attrs->task_queue->name));
    }
    hf_buf_puts(w->out, "\n\n");
}

/* A task that was in hand when its program ended: its code may be the reason. */
static void put_crashes(writing *w, uint32_t crashes)
{
    if (crashes == 0) {
        return;
    }
    hf_buf_putf(w->out, "    the program ended %u %s in a row while it had this task in hand", (unsigned)crashes,
                crashes == 1 ? "time" : "times");
    hf_buf_puts(w->out, crashes < HF_SUSPECT_FROM ? "\n"
                                                  : ": its code may crash; the task is handed out alone, when no other "
                                                    "task waits\n");
}

static void put_pending(writing *w, const hf_pb_pending_activity_info *info, bool is_at_rest, int64_t now_ns)
{
    bool is_started = info->state == HF_PENDING_ACTIVITY_STATE_STARTED;
    hf_buf_puts(w->out, "  activity ");
    put_text(w, info->activity_id);
    hf_buf_puts(w->out, " ");
    put_text(w, info->activity_type != NULL ? info->activity_type->name : HF_STR(""));
    hf_buf_putf(w->out, ", attempt %d, ", (int)info->attempt);
    int64_t from = hf_pb_timestamp_time(is_started ? info->last_started_time : info->scheduled_time).ns;
    if (!is_started && from > now_ns) {
        hf_buf_puts(w->out, "begins in ");
        hf_put_span(w->out, from - now_ns);
    } else {
        hf_buf_puts(w->out, !is_started ? "waits for a worker for " : is_at_rest ? "began " : "at work for ");
        hf_put_span(w->out, now_ns - from);
        hf_buf_puts(w->out, is_started && is_at_rest ? " ago; no program has this file open" : "");
    }
    if (info->last_failure != NULL) {
        hf_buf_puts(w->out, "; the last one failed: ");
        put_failure(w, info->last_failure);
    }
    hf_buf_putc(w->out, '\n');
    put_crashes(w, info->holdfast_crashes);
}

/* What its code waits for before it can go on; true = something was written. */
static bool put_task(writing *w, const hf_run_view *view, int64_t now_ns)
{
    switch (w->task) {
    case HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
        hf_buf_puts(w->out, "  a worker that polls the task queue ");
        put_text(w, hf_str_of(w->queue));
        hf_buf_puts(w->out, " and has the workflow ");
        put_text(w, hf_str_of(w->type));
        break;
    case HF_EVENT_TYPE_WORKFLOW_TASK_STARTED:
        if (view->buffered_count > 0) {
            return false; /* that line says it, too */
        }
        hf_buf_puts(w->out, view->is_at_rest ? "  a worker: no program has this file open"
                                             : "  the worker's answer to a workflow task");
        break;
    case HF_EVENT_TYPE_WORKFLOW_TASK_FAILED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
        hf_buf_putf(w->out, "  a workflow task that succeeds, tried again and again; why the last did not: event %lld",
                    (long long)w->task_id);
        break;
    default:
        return false;
    }
    if (view->pause_until > now_ns) {
        hf_buf_puts(w->out, ", not before ");
        hf_put_span(w->out, view->pause_until - now_ns);
        hf_buf_puts(w->out, " from now");
    }
    hf_buf_putc(w->out, '\n');
    put_crashes(w, view->crashes);
    return true;
}

static void put_waits(writing *w, const hf_run_view *view, int64_t now_ns)
{
    if (view->status != HF_WORKFLOW_EXECUTION_STATUS_RUNNING) {
        return;
    }
    hf_buf_puts(w->out, "\nwaits for\n");
    bool any = put_task(w, view, now_ns) || view->pending_count + w->timer_count + view->buffered_count > 0;
    hf_buf_puts(w->out, any ? "" : "  a signal\n");
    for (size_t i = 0; i < view->pending_count; i++) {
        put_pending(w, &view->pending[i], view->is_at_rest, now_ns);
    }
    for (size_t i = 0; i < w->timer_count; i++) {
        hf_buf_puts(w->out, "  timer ");
        put_text(w, hf_str_of(w->timers[i].id));
        hf_buf_puts(w->out, w->timers[i].fires_at > now_ns ? ", fires in " : ", due for ");
        int64_t span = w->timers[i].fires_at - now_ns;
        hf_put_span(w->out, span < 0 ? -span : span);
        hf_buf_putc(w->out, '\n');
    }
    if (w->timers_untold > 0) {
        hf_buf_putf(w->out, "  %zu more timers\n", w->timers_untold);
    }
    if (view->buffered_count > 0) {
        hf_buf_putf(w->out, "  the answer to a workflow task: %zu events come behind it\n", view->buffered_count);
    }
}

hf_status hf_timeline_write(hf_op *op, const hf_run_view *view, int64_t now_ns, hf_buf *out)
{
    writing w = {.out = out, .is_full = view->is_full};
    hf_arena_init(&w.arena, out->memory);
    hf_str rest = view->history;
    hf_str bytes = {0};
    hf_status status = HF_OK;
    bool is_first = true;
    while (status == HF_OK && hf_history_next(&rest, &bytes)) {
        hf_pb_history_event event;
        hf_arena_reset(&w.arena);
        status = hf_pb_decode(op, &hf_pb_history_event_type, bytes, &w.arena, &event);
        if (status == HF_OK && is_first) {
            w.first = hf_pb_timestamp_time(event.event_time).ns;
            put_head(&w, view, &event, now_ns);
            is_first = false;
        }
        if (status == HF_OK) {
            put_event(&w, &event);
        }
    }
    if (status == HF_OK && rest.len > 0) {
        status = hf_fail(op, HF_ERR_INVALID, "the history cannot be read to its end");
    }
    if (status == HF_OK) {
        put_waits(&w, view, now_ns);
        status = out->status == HF_OK ? HF_OK : hf_fail(op, out->status, "no memory for the timeline");
    }
    hf_arena_deinit(&w.arena);
    return status;
}
