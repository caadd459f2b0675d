/* The end of a timeline: what the run waits for, and remarks about times that look wrong but are not. */
#include "main/timeline_private.h"

#include "history/limits.h"

#define CLOCK_SLACK_NS INT64_C(1000000000) /* the clocks of the program and of this tool differ by less */

/* Says how often the program ended while it worked on this task: the task's code may be the reason. */
static void put_crashes(hf_timeline *w, uint32_t crashes)
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

/* An activity that was asked to end, or to pause, is at work all the same: only what is has a start. */
static void put_pending(hf_timeline *w, const hf_run_view *view, size_t idx, int64_t now_ns)
{
    const hf_pb_pending_activity_info *info = &view->pending[idx];
    bool is_at_rest = view->is_at_rest;
    bool is_started = info->last_started_time.has;
    hf_buf_puts(w->out, "  activity ");
    hf_timeline_put_text(w, info->activity_id);
    hf_buf_puts(w->out, " ");
    hf_timeline_put_text(w, info->activity_type != NULL ? info->activity_type->name : HF_STR(""));
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
    if (view->unpolled != NULL && view->unpolled[idx]) {
        hf_buf_puts(w->out, "; no worker polls the task queue ");
        hf_timeline_put_text(w, info->activity_options->task_queue->name);
        hf_buf_puts(w->out, " for activities");
    }
    if (info->state == HF_PENDING_ACTIVITY_STATE_CANCEL_REQUESTED) {
        hf_buf_puts(w->out, "; it was asked to end");
    }
    if (info->last_failure != NULL) {
        hf_buf_puts(w->out, "; the last one failed: ");
        hf_timeline_put_failure(w, info->last_failure);
    }
    hf_buf_putc(w->out, '\n');
    put_crashes(w, info->holdfast_crashes);
}

static void put_child(hf_timeline *w, const hf_pb_pending_child_execution_info *info)
{
    hf_buf_puts(w->out, "  child workflow ");
    hf_timeline_put_text(w, info->workflow_id);
    hf_buf_puts(w->out, " ");
    hf_timeline_put_text(w, info->workflow_type_name);
    hf_buf_puts(w->out, info->run_id.len == 0 ? ", which has not started\n" : "\n");
}

/* Writes what must happen before the run's code can go on; true = something was written. */
static bool put_task(hf_timeline *w, const hf_run_view *view, int64_t now_ns)
{
    switch (w->task) {
    case HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
        hf_buf_puts(w->out, "  a worker that polls the task queue ");
        hf_timeline_put_text(w, hf_str_of(w->queue));
        hf_buf_puts(w->out, " and has the workflow ");
        hf_timeline_put_text(w, hf_str_of(w->type));
        hf_buf_puts(w->out, view->is_unpolled ? ": none polls this queue" : "");
        break;
    case HF_EVENT_TYPE_WORKFLOW_TASK_STARTED:
        if (view->buffered_count > 0) {
            return false; /* the line about buffered events says it, too */
        }
        hf_buf_puts(w->out, view->is_at_rest ? "  a worker: no program has this file open"
                                             : "  the worker's answer to a workflow task");
        break;
    case HF_EVENT_TYPE_WORKFLOW_TASK_FAILED:
        hf_buf_putf(w->out, "  a workflow task that succeeds: it is retried; event %lld tells why the last one failed",
                    (long long)w->task_id);
        break;
    case HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
        hf_buf_putf(w->out,
                    "  a workflow task that succeeds: it is retried; the last one was not answered (event %lld)",
                    (long long)w->task_id);
        if (w->failed_id != 0) {
            hf_buf_putf(w->out, ", and event %lld tells why one failed before", (long long)w->failed_id);
        }
        break;
    default:
        return false;
    }
    if (view->pause_until > now_ns) {
        hf_buf_puts(w->out, "; the task is handed out in ");
        hf_put_span(w->out, view->pause_until - now_ns);
        hf_buf_puts(w->out, " at the earliest");
    }
    hf_buf_putc(w->out, '\n');
    put_crashes(w, view->crashes);
    return true;
}

static void put_names(hf_timeline *w, const char *what, const hf_str *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hf_buf_puts(w->out, i == 0 ? what : ", ");
        hf_timeline_put_text(w, names[i]);
    }
}

/* A fiber in hf_wait_until waits for what handlers change, if there are any: "signals go; updates u". */
static bool put_condition(hf_timeline *w, const hf_pb_admin_insight *insight)
{
    if (!insight->looks || insight->signals.count + insight->updates.count == 0) {
        return false;
    }
    hf_buf_puts(w->out, "  a condition, which its handlers can make true: ");
    put_names(w, "signals ", insight->signals.items, insight->signals.count);
    put_names(w, insight->signals.count > 0 ? "; updates " : "updates ", insight->updates.items,
              insight->updates.count);
    hf_buf_putc(w->out, '\n');
    return true;
}

/* Writes the signals that the code waits for, which are known only while the code is in memory. `any`: it waits for
 * something else, too. */
static void put_signals(hf_timeline *w, const hf_run_view *view, bool any)
{
    bool is_known = view->insight != NULL && view->insight->in_memory;
    for (size_t i = 0; is_known && i < view->insight->waits.count; i++) {
        hf_buf_puts(w->out, "  signal ");
        hf_timeline_put_text(w, view->insight->waits.items[i]);
        hf_buf_putc(w->out, '\n');
        any = true;
    }
    any |= is_known && put_condition(w, view->insight);
    bool has_timer_only = w->timer_count > 0 && view->pending_count + view->child_count + view->buffered_count == 0;
    if (any && !is_known && has_timer_only) { /* it may be the timeout of a wait */
        hf_buf_puts(w->out, view->is_at_rest
                                ? "  perhaps a signal; its code knows which, and no program has it in memory\n"
                                : "  perhaps a signal; its code knows which, and the program does not have it in "
                                  "memory now\n");
    }
    if (any) {
        return;
    }
    hf_buf_puts(w->out, is_known ? "  nothing from outside: its fibers wait for each other (hf_dump shows for what)\n"
                        : view->is_at_rest
                            ? "  a signal; its code knows which, and no program has it in memory\n"
                            : "  a signal; its code knows which, and the program does not have it in memory now\n");
}

/* Writes the signals that the code has not taken, or all signals if that is unknown: a misspelled name is among them. */
static void put_unread(hf_timeline *w, const hf_run_view *view)
{
    bool is_known = view->insight != NULL && view->insight->in_memory;
    size_t count = is_known ? view->insight->unread.count : (size_t)w->signals.count;
    if (count > 0) {
        hf_buf_puts(w->out, is_known ? "signals that came and that it has not taken\n" : "signals that came\n");
    }
    for (size_t i = 0; i < count; i++) {
        hf_buf_puts(w->out, "  ");
        hf_timeline_put_text(w, is_known ? view->insight->unread.items[i] : hf_str_of(w->signals.items[i]));
        hf_buf_putc(w->out, '\n');
    }
}

/* Explains times that look wrong but are not. */
void hf_timeline_put_remarks(hf_timeline *w, int64_t now_ns)
{
    if (w->goes_back) {
        hf_buf_puts(w->out,
                    "\nTimes go back where an event was recorded later than it happened: ActivityTaskStarted is "
                    "recorded with the end of its activity, but has the time at which the attempt began.\n");
    }
    if (w->last - now_ns > CLOCK_SLACK_NS) {
        hf_buf_puts(w->out, "\nThe last event is ");
        hf_put_span(w->out, w->last - now_ns);
        hf_buf_puts(w->out, " ahead of the clock, which was set back since then; timers follow the clock.\n");
    }
}

void hf_timeline_put_waits(hf_timeline *w, const hf_run_view *view, int64_t now_ns)
{
    if (view->status != HF_WORKFLOW_EXECUTION_STATUS_RUNNING) {
        return;
    }
    hf_buf_puts(w->out, "\nwaits for\n");
    bool any = put_task(w, view, now_ns) ||
               view->pending_count + view->child_count + w->timer_count + view->buffered_count > 0;
    put_signals(w, view, any);
    for (size_t i = 0; i < view->pending_count; i++) {
        put_pending(w, view, i, now_ns);
    }
    for (size_t i = 0; i < view->child_count; i++) {
        put_child(w, &view->children[i]);
    }
    for (size_t i = 0; i < w->timer_count; i++) {
        hf_buf_puts(w->out, "  timer ");
        hf_timeline_put_text(w, hf_str_of(w->timers[i].id));
        hf_buf_puts(w->out, w->timers[i].fires_at > now_ns ? ", fires in " : ", due for ");
        int64_t span = w->timers[i].fires_at - now_ns;
        hf_put_span(w->out, span < 0 ? -span : span);
        hf_buf_putc(w->out, '\n');
    }
    if (w->timers_untold > 0) {
        hf_buf_putf(w->out, "  %zu more %s\n", w->timers_untold, w->timers_untold == 1 ? "timer" : "timers");
    }
    if (view->buffered_count > 0) {
        hf_buf_putf(w->out, "  the worker's answer to a workflow task: %zu %s recorded after it\n",
                    view->buffered_count, view->buffered_count == 1 ? "event is" : "events are");
        put_crashes(w,
                    w->task == HF_EVENT_TYPE_WORKFLOW_TASK_STARTED ? view->crashes : 0); /* else they are told above */
    }
    if (w->asked_id != 0) {
        hf_buf_putf(w->out,
                    "it was asked to end (event %lld), and goes on: its code cleans up, or ignores HF_ERR_CANCELED\n",
                    (long long)w->asked_id);
    }
    put_unread(w, view);
}
