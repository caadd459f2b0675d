/* Activities.
 *
 *     new --> scheduled --> started --> completed, failed, timed out, canceled --> (gone)
 *                ^  |          |
 *                |  |          +--> backoff --+   a failed attempt that may be tried again
 *                +--|-------------------------+
 *                   +--> timed out, canceled: without having been started
 *
 * From outside an activity can be paused, from scheduled and backoff at once (-> paused), while an attempt runs when that has failed.
 * Unpause, reset and other options lead through backoff, which may be over at once. A waiting activity that a client completes by its id is
 * started by that call. While an activity is paused none of its timeouts passes.
 *
 * History sees an activity three times: ActivityTaskScheduled when the workflow asks for it, and ActivityTaskStarted together
 * with the outcome, at the end. Attempts, back-off and heartbeats are state only.
 *
 * Four timeouts: schedule-to-start (no worker took it), start-to-close (one attempt), heartbeat (a started one gave no sign
 * of life), schedule-to-close (all attempts together). Start-to-close and heartbeat end one attempt, and another may follow. */
#include "run/machines.h"

#include "base/canary.h"

#include <string.h>

#define ENDED (HF_BIT(HF_ACTIVITY_COMPLETED) | HF_BIT(HF_ACTIVITY_FAILED) | HF_BIT(HF_ACTIVITY_TIMED_OUT))
#define WAITS (HF_BIT(HF_ACTIVITY_BACKOFF) | HF_BIT(HF_ACTIVITY_PAUSED))

_Static_assert(HF_ACTIVITY_STATE_COUNT == HF_ACTIVITY_PAUSED + 1, "the table has a row for every state");
_Static_assert(HF_ACTIVITY_STARTED < HF_ACTIVITY_BACKOFF && HF_ACTIVITY_BACKOFF < HF_ACTIVITY_COMPLETED,
               "hf_activity_is_pending compares states");
static const hf_rule RULES[HF_ACTIVITY_STATE_COUNT] = {
    [HF_ACTIVITY_NEW] = {"new", HF_BIT(HF_ACTIVITY_SCHEDULED)},
    [HF_ACTIVITY_SCHEDULED] = {"scheduled", HF_BIT(HF_ACTIVITY_STARTED) | HF_BIT(HF_ACTIVITY_TIMED_OUT) |
                                                HF_BIT(HF_ACTIVITY_CANCELED) | WAITS},
    [HF_ACTIVITY_STARTED] = {"started", HF_BIT(HF_ACTIVITY_STARTED) | WAITS | ENDED | HF_BIT(HF_ACTIVITY_CANCELED)},
    [HF_ACTIVITY_BACKOFF] = {"backoff", HF_BIT(HF_ACTIVITY_SCHEDULED) | HF_BIT(HF_ACTIVITY_STARTED) |
                                            HF_BIT(HF_ACTIVITY_TIMED_OUT) | HF_BIT(HF_ACTIVITY_CANCELED) | WAITS},
    [HF_ACTIVITY_PAUSED] = {"paused",
                            HF_BIT(HF_ACTIVITY_BACKOFF) | HF_BIT(HF_ACTIVITY_STARTED) | HF_BIT(HF_ACTIVITY_CANCELED)},
    [HF_ACTIVITY_COMPLETED] = {"completed", 0},
    [HF_ACTIVITY_FAILED] = {"failed", 0},
    [HF_ACTIVITY_TIMED_OUT] = {"timed out", 0},
    [HF_ACTIVITY_CANCELED] = {"canceled", 0},
};
const hf_machine hf_activity_machine = {"activity", RULES, HF_ACTIVITY_STATE_COUNT};

static bool move(hf_apply *a, hf_activity *activity, hf_activity_state state)
{
    if (!hf_arrow_take(&a->memory->arrows, HF_MACHINE_ACTIVITY, (int)activity->state, (int)state)) {
        return false;
    }
    activity->state = state;
    return true;
}

/* Copies the names that an activity is found and shown by. */
static void take_names(hf_run_memory *memory, hf_activity *activity,
                       const hf_pb_activity_task_scheduled_event_attributes *attrs)
{
    const hf_str names[] = {attrs->activity_id, attrs->activity_type != NULL ? attrs->activity_type->name : HF_STR(""),
                            attrs->task_queue != NULL ? attrs->task_queue->name : HF_STR("")};
    hf_str *const to[] = {&activity->activity_id, &activity->activity_type, &activity->task_queue};
    size_t len = names[0].len + names[1].len + names[2].len;
    char *at = len > 0 ? hf_run_alloc(memory, len) : NULL;
    if (at == NULL) {
        return; /* all three names are empty, or there was no memory: see its status */
    }
    activity->names = (hf_owned){at, len};
    for (size_t i = 0; i < HF_COUNT_OF(names); i++) {
        if (names[i].len > 0) {
            memcpy(at, names[i].data, names[i].len);
        }
        *to[i] = hf_str_of_len(at, names[i].len);
        at += names[i].len;
    }
}

static void take_timeouts(hf_activity *activity, const hf_pb_activity_task_scheduled_event_attributes *attrs)
{
    activity->schedule_to_start = hf_pb_duration_span(attrs->schedule_to_start_timeout).ns;
    activity->schedule_to_close = hf_pb_duration_span(attrs->schedule_to_close_timeout).ns;
    activity->start_to_close = hf_pb_duration_span(attrs->start_to_close_timeout).ns;
    activity->heartbeat = hf_pb_duration_span(attrs->heartbeat_timeout).ns;
}

static int32_t key_of(const hf_pb_priority *priority)
{
    return priority != NULL ? priority->priority_key : 0;
}

hf_activity *hf_activity_add(hf_run_memory *memory, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    hf_assert(event->attributes_case == HF_PB_HISTORY_EVENT_ACTIVITY_TASK_SCHEDULED_EVENT_ATTRIBUTES);
    const hf_pb_activity_task_scheduled_event_attributes *attrs = event->activity_task_scheduled_event_attributes;
    hf_activity *activity = HF_VEC_RESERVE(memory, &run->activities) ? hf_run_alloc(memory, sizeof *activity) : NULL;
    if (activity == NULL) {
        return NULL;
    }
    hf_owned_set(memory, &activity->scheduled, bytes);
    take_names(memory, activity, attrs);
    activity->scheduled_id = event->event_id;
    activity->first_time = activity->scheduled_time = hf_pb_timestamp_time(event->event_time).ns;
    activity->attempt = 1;
    take_timeouts(activity, attrs);
    activity->priority_key = key_of(attrs->priority);
    activity->task.run = run;
    activity->task.scheduled_id = event->event_id;
    run->activities.items[run->activities.count++] = activity;
    return activity;
}

hf_status hf_activity_scheduled(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    hf_activity *activity = hf_activity_add(a->memory, run, event, bytes);
    if (activity == NULL || !move(a, activity, HF_ACTIVITY_SCHEDULED)) {
        return HF_ERR_NOMEM;
    }
    hf_effects_due(a->effects, hf_activity_deadline(activity));
    hf_effects_ready(a->effects, &activity->task);
    return a->memory->status;
}

hf_status hf_activity_started_event(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    int64_t scheduled_id = event->activity_task_started_event_attributes->scheduled_event_id;
    if (hf_run_activity(run, scheduled_id) == NULL) {
        return hf_fail(a->op, HF_ERR_INVALID, "there is no activity of event %lld", (long long)scheduled_id);
    }
    return HF_OK; /* its outcome follows at once */
}

static int64_t ended_id(const hf_pb_history_event *event, hf_activity_state *ret_state)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        *ret_state = HF_ACTIVITY_COMPLETED;
        return event->activity_task_completed_event_attributes->scheduled_event_id;
    case HF_EVENT_TYPE_ACTIVITY_TASK_FAILED:
        *ret_state = HF_ACTIVITY_FAILED;
        return event->activity_task_failed_event_attributes->scheduled_event_id;
    case HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
        *ret_state = HF_ACTIVITY_TIMED_OUT;
        return event->activity_task_timed_out_event_attributes->scheduled_event_id;
    case HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED:
        *ret_state = HF_ACTIVITY_CANCELED;
        return event->activity_task_canceled_event_attributes->scheduled_event_id;
    default:
        return 0;
    }
}

hf_status hf_activity_mark_ended(hf_apply *a, hf_run *run, const hf_pb_history_event *event)
{
    hf_activity_state state = HF_ACTIVITY_NEW;
    int64_t scheduled_id = event->attributes_case != 0 ? ended_id(event, &state) : 0;
    if (scheduled_id == 0) {
        return HF_OK; /* another kind of event */
    }
    hf_activity *activity = hf_run_activity(run, scheduled_id);
    /* A history alone does not show attempts: for rebuild() every outcome may follow. */
    bool can = activity != NULL && (a->is_history ? hf_activity_is_pending(activity) : move(a, activity, state));
    if (!can) {
        return hf_fail(a->op, HF_ERR_INVALID, "the activity of event %lld has ended or never existed",
                       (long long)scheduled_id);
    }
    activity->state = state;
    hf_effects_gone(a->memory, a->effects, &activity->task);
    return HF_OK;
}

hf_status hf_activity_ended(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    hf_activity_state state = HF_ACTIVITY_NEW;
    hf_activity *activity = hf_run_activity(run, ended_id(event, &state));
    if (activity == NULL || activity->state != state) { /* unless that was done when it was buffered */
        HF_TRY(hf_activity_mark_ended(a, run, event));
    }
    activity = hf_run_activity(run, ended_id(event, &state));
    if (activity == NULL) {
        return hf_fail(a->op, HF_ERR_INVALID, "an event ends an activity but does not name it");
    }
    size_t index = 0;
    while (run->activities.items[index] != activity) {
        index++;
    }
    run->activities.count--;
    memmove(&run->activities.items[index], &run->activities.items[index + 1],
            (run->activities.count - index) * sizeof(hf_activity *));
    hf_effects_end(a->effects, activity);
    return HF_OK;
}

hf_status hf_activity_cancel_requested(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    int64_t scheduled_id = event->activity_task_cancel_requested_event_attributes->scheduled_event_id;
    hf_activity *activity = hf_run_activity(run, scheduled_id);
    if (activity == NULL) {
        return hf_fail(a->op, HF_ERR_INVALID, "there is no activity of event %lld", (long long)scheduled_id);
    }
    activity->cancel_requested_id = event->event_id;
    return HF_OK;
}

static hf_status no_activity(hf_apply *a, int64_t scheduled_id)
{
    return hf_fail(a->op, HF_ERR_INVALID,
                   "a change of the activity of event %lld, which does not exist or is in another state",
                   (long long)scheduled_id);
}

/* No attempt runs any more. */
static void stop(hf_apply *a, hf_activity *activity)
{
    activity->started_time = 0;
    activity->incarnation = 0;
    activity->heard_time = 0;
    activity->attempt_given = 0;
    activity->again = activity->is_reset = false;
    if (activity->forgets_heartbeat) {
        activity->forgets_heartbeat = false;
        activity->heartbeat_time = 0;
        hf_owned_free(a->memory, &activity->heartbeat_details);
    }
}

hf_status hf_activity_apply_started(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_activity_started msg;
    HF_TRY(hf_apply_read(a, &hf_pb_activity_started_type, bytes, &msg));
    hf_activity *activity = hf_run_activity(run, msg.scheduled_id);
    if (activity == NULL || !move(a, activity, HF_ACTIVITY_STARTED)) {
        return no_activity(a, msg.scheduled_id);
    }
    activity->started_time = msg.time;
    activity->heartbeat_time = 0;
    activity->heard_time = 0;
    activity->attempt_given = 0;
    activity->incarnation = msg.incarnation;
    activity->again = false;
    hf_owned_set(a->memory, &activity->identity, msg.identity);
    hf_effects_gone(a->memory, a->effects, &activity->task);
    hf_effects_due(a->effects, hf_activity_deadline(activity));
    return HF_OK;
}

hf_status hf_activity_apply_retry(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_activity_retry msg;
    HF_TRY(hf_pb_decode(a->op, &hf_pb_activity_retry_type, bytes, a->memory->scratch, &msg));
    hf_activity *activity = hf_run_activity(run, msg.scheduled_id);
    bool back = msg.order != 0; /* it is back in its queue; else it waits for its next attempt */
    hf_activity_state next =
        activity != NULL && hf_activity_is_paused(activity) ? HF_ACTIVITY_PAUSED : HF_ACTIVITY_BACKOFF;
    if (activity == NULL || !move(a, activity, back ? HF_ACTIVITY_SCHEDULED : next)) {
        return no_activity(a, msg.scheduled_id);
    }
    activity->scheduled_time = msg.time;
    activity->again = false;
    activity->task.order = msg.order;
    if (!back) {
        activity->attempt = msg.attempt;
        activity->task.crashes = msg.crashes;
        activity->attempt_end = msg.ended;
        stop(a, activity);
        hf_owned_set(a->memory, &activity->last_failure, msg.failure);
        hf_effects_gone(a->memory, a->effects, &activity->task);
    } else {
        hf_effects_ready(a->effects, &activity->task);
    }
    hf_effects_due(a->effects, hf_activity_deadline(activity));
    return HF_OK;
}

hf_status hf_activity_apply_heartbeat(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_activity_heartbeat msg;
    HF_TRY(hf_pb_decode(a->op, &hf_pb_activity_heartbeat_type, bytes, a->memory->scratch, &msg));
    hf_activity *activity = hf_run_activity(run, msg.scheduled_id);
    if (activity == NULL) {
        return no_activity(a, msg.scheduled_id);
    }
    activity->heartbeat_time = msg.time;
    activity->heard_time = 0;
    if (msg.left && !HF_CANARY(HF_BUG_LEFT_FORGOTTEN)) {
        activity->incarnation = 0;
    }
    hf_owned_set(a->memory, &activity->heartbeat_details, msg.details);
    return HF_OK;
}

/* ---- From outside -------------------------------------------------------------------------------------------------------- */

hf_status hf_activity_set_options(hf_op *op, hf_run_memory *memory, hf_activity *activity, hf_str options)
{
    hf_pb_history_event event;
    hf_pb_activity_options changed;
    HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, hf_owned_str(&activity->scheduled), memory->scratch, &event));
    HF_TRY(hf_pb_decode(op, &hf_pb_activity_options_type, options, memory->scratch, &changed));
    const hf_pb_activity_task_scheduled_event_attributes *attrs = event.activity_task_scheduled_event_attributes;
    hf_pb_task_queue *queue = changed.task_queue != NULL ? changed.task_queue : attrs->task_queue;
    if (options.len > 0) {
        activity->schedule_to_start = hf_pb_duration_span(changed.schedule_to_start_timeout).ns;
        activity->schedule_to_close = hf_pb_duration_span(changed.schedule_to_close_timeout).ns;
        activity->start_to_close = hf_pb_duration_span(changed.start_to_close_timeout).ns;
        activity->heartbeat = hf_pb_duration_span(changed.heartbeat_timeout).ns;
    } else {
        take_timeouts(activity, attrs);
    }
    activity->priority_key = key_of(options.len > 0 ? changed.priority : attrs->priority);
    hf_owned_set(memory, &activity->queue_name, queue != NULL ? queue->name : HF_STR(""));
    activity->task_queue = hf_owned_str(&activity->queue_name);
    hf_owned_set(memory, &activity->options, options);
    return memory->status;
}

hf_status hf_activity_apply_paused(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_activity_paused msg;
    HF_TRY(hf_pb_decode(a->op, &hf_pb_activity_paused_type, bytes, a->memory->scratch, &msg));
    hf_activity *activity = hf_run_activity(run, msg.scheduled_id);
    bool runs = activity != NULL && activity->state == HF_ACTIVITY_STARTED && !activity->again;
    if (activity == NULL || bytes.len == 0 || (!runs && !move(a, activity, HF_ACTIVITY_PAUSED))) {
        return no_activity(a, msg.scheduled_id);
    }
    hf_owned_set(a->memory, &activity->pause, bytes);
    if (!runs) {
        activity->task.order = 0;
        stop(a, activity);
        hf_effects_gone(a->memory, a->effects, &activity->task);
    }
    return a->memory->status;
}

hf_status hf_activity_apply_controlled(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_activity_controlled msg;
    HF_TRY(hf_pb_decode(a->op, &hf_pb_activity_controlled_type, bytes, a->memory->scratch, &msg));
    hf_activity *activity = hf_run_activity(run, msg.scheduled_id);
    if (activity == NULL || (msg.time != 0 && !move(a, activity, HF_ACTIVITY_BACKOFF))) {
        return no_activity(a, msg.scheduled_id);
    }
    bool runs = activity->state == HF_ACTIVITY_STARTED;
    if (msg.unpaused) {
        hf_owned_free(a->memory, &activity->pause);
    }
    if (msg.attempt != 0) {
        activity->attempt_given = runs ? hf_activity_given(activity) : 0;
        activity->attempt = msg.attempt;
    }
    activity->is_reset = activity->is_reset || msg.reset;
    activity->forgets_heartbeat = activity->forgets_heartbeat || msg.forget_heartbeat;
    if (msg.has_options) {
        HF_TRY(hf_activity_set_options(a->op, a->memory, activity, msg.options));
    }
    if (!runs) {
        stop(a, activity);
        hf_effects_gone(a->memory, a->effects, &activity->task);
    } else if (activity->again && msg.has_options) { /* it waits for another worker, and may have another queue now */
        hf_effects_gone(a->memory, a->effects, &activity->task);
        hf_effects_ready(a->effects, &activity->task);
    }
    if (msg.time != 0) {
        activity->scheduled_time = msg.time;
        activity->task.order = 0;
        hf_owned_free(a->memory, &activity->last_failure);
    }
    hf_effects_due(a->effects, hf_activity_deadline(activity));
    return a->memory->status;
}

hf_status hf_activity_apply_moved(hf_apply *a, hf_run *run, hf_activity *activity, int64_t order)
{
    if (hf_activity_is_paused(activity)) { /* no worker takes it now */
        if (!move(a, activity, HF_ACTIVITY_PAUSED)) {
            return no_activity(a, activity->scheduled_id);
        }
        activity->task.order = 0;
        stop(a, activity);
        return HF_OK;
    }
    (void)run;
    activity->task.order = order;
    activity->again = true;
    hf_effects_ready(a->effects, &activity->task);
    return HF_OK;
}
