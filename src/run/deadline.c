/* Deadlines: the next time at which a run changes without a call. All of them follow from its state. */
#include "run/run.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t after(int64_t time, int64_t span)
{
    int64_t sum = 0;
    return __builtin_add_overflow(time, span, &sum) ? INT64_MAX : sum;
}

int64_t hf_bound_end(int64_t time, int64_t bound)
{
    return bound <= 0 ? INT64_MAX : after(time, bound);
}

/* ---- The execution ----------------------------------------------------------------------------------------------------- */

/* The run timeout counts from the time at which the first workflow task may start. The expiration counts from the first run of the chain. */
int64_t hf_execution_deadline(const hf_run *run)
{
    int64_t begin = run->first_task_at != 0 ? run->first_task_at : run->start_time;
    int64_t deadline = hf_bound_end(begin, run->run_timeout);
    deadline = run->expiration != 0 ? least(deadline, run->expiration) : deadline;
    return deadline == INT64_MAX ? 0 : deadline;
}

/* ---- The workflow task --------------------------------------------------------------------------------------------------- */

bool hf_wft_is(const hf_run *run, int64_t scheduled_id, int64_t started_id, int32_t attempt, int64_t stamp)
{
    const hf_wft *wft = &run->wft;
    return hf_run_is_open(run) && wft->state == HF_WFT_STARTED && wft->scheduled_id == scheduled_id &&
           wft->started_id == started_id && wft->attempt == attempt && wft->started_time == stamp;
}

bool hf_wft_waits(const hf_wft *wft)
{
    return wft->state == HF_WFT_SCHEDULED || (wft->state == HF_WFT_STARTED && wft->again);
}

int64_t hf_wft_timeout_at(const hf_run *run)
{
    const hf_wft *wft = &run->wft;
    switch (wft->state) {
    case HF_WFT_STARTED:
        return after(wft->started_time, wft->timeout);
    case HF_WFT_SCHEDULED:
        return wft->sticky ? hf_bound_end(wft->scheduled_time, run->sticky_timeout) : INT64_MAX;
    case HF_WFT_NONE:
        break;
    }
    return INT64_MAX;
}

int64_t hf_wft_deadline(const hf_run *run)
{
    const hf_wft *wft = &run->wft;
    int64_t timeout = hf_wft_timeout_at(run);
    bool is_paused = wft->pause_until != 0 && wft->task.queue == NULL && hf_wft_waits(wft);
    return is_paused ? least(wft->pause_until, timeout) : timeout;
}

/* ---- Activities ---------------------------------------------------------------------------------------------------------- */

/* When a started activity last gave a sign of life: its start or its last heartbeat. */
static int64_t heard_at(const hf_activity *activity)
{
    int64_t written = activity->heartbeat_time > 0 ? activity->heartbeat_time : activity->started_time;
    return activity->heard_time > written ? activity->heard_time : written;
}

int64_t hf_activity_deadline(const hf_activity *activity)
{
    int64_t whole = hf_bound_end(activity->first_time, activity->schedule_to_close);
    if (hf_activity_is_paused(activity)) {
        return INT64_MAX;
    }
    switch (activity->state) {
    case HF_ACTIVITY_SCHEDULED:
        return least(whole, hf_bound_end(activity->scheduled_time, activity->schedule_to_start));
    case HF_ACTIVITY_STARTED: {
        int64_t each = hf_bound_end(activity->started_time, activity->start_to_close);
        return least(whole, least(each, hf_bound_end(heard_at(activity), activity->heartbeat)));
    }
    case HF_ACTIVITY_BACKOFF:
        return least(whole, activity->scheduled_time);
    case HF_ACTIVITY_NEW:
    case HF_ACTIVITY_COMPLETED:
    case HF_ACTIVITY_FAILED:
    case HF_ACTIVITY_TIMED_OUT:
    case HF_ACTIVITY_CANCELED:
    case HF_ACTIVITY_PAUSED:
        break;
    }
    return INT64_MAX;
}

/* The timeout that was due first; of two with the same time the one that is first in the table, as on a Temporal server. */
int32_t hf_activity_timeout_passed(const hf_activity *activity, int64_t now)
{
    bool is_started = activity->state == HF_ACTIVITY_STARTED;
    bool is_scheduled = activity->state == HF_ACTIVITY_SCHEDULED;
    const struct {
        int32_t type;
        int64_t due;
    } bounds[] = {
        {HF_TIMEOUT_TYPE_START_TO_CLOSE,
         is_started ? hf_bound_end(activity->started_time, activity->start_to_close) : INT64_MAX},
        {HF_TIMEOUT_TYPE_SCHEDULE_TO_START,
         is_scheduled ? hf_bound_end(activity->scheduled_time, activity->schedule_to_start) : INT64_MAX},
        {HF_TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, hf_bound_end(activity->first_time, activity->schedule_to_close)},
        {HF_TIMEOUT_TYPE_HEARTBEAT, is_started ? hf_bound_end(heard_at(activity), activity->heartbeat) : INT64_MAX},
    };
    int32_t type = 0;
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < HF_COUNT_OF(bounds) && !hf_activity_is_paused(activity); i++) {
        if (bounds[i].due <= now && bounds[i].due < due) {
            type = bounds[i].type;
            due = bounds[i].due;
        }
    }
    return type;
}

/* ---- All of them --------------------------------------------------------------------------------------------------------- */

int64_t hf_run_next_due(const hf_run *run)
{
    if (run->kind == HF_KIND_OPERATION) { /* also one that has ended: it is deleted then */
        return run->deleting == HF_DELETING_NOT ? run->operation_due : INT64_MAX;
    }
    if (!hf_run_is_open(run)) { /* one that is kept for a span of its own is deleted then */
        return run->keep > 0 && run->deleting == HF_DELETING_NOT ? hf_bound_end(run->close_time, run->keep) : INT64_MAX;
    }
    int64_t due = hf_wft_deadline(run);
    if (run->first_task_at != 0) {
        due = least(due, run->first_task_at);
    }
    if (run->run_deadline != 0) {
        due = least(due, run->run_deadline);
    }
    for (size_t i = 0; i < run->activities.count; i++) {
        due = least(due, hf_activity_deadline(run->activities.items[i]));
    }
    for (size_t i = 0; i < run->timers.count; i++) {
        if (run->timers.items[i]->state == HF_TIMER_STARTED) {
            due = least(due, run->timers.items[i]->fire_time);
        }
    }
    return due;
}
