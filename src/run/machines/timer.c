/* Timers.
 *
 *     new --> started --> fired --> (gone)
 *                |          |
 *                +----------+--> canceled --> (gone)
 *
 * A timer fires when its time has come, by the wall clock, and never before. If a workflow task is started just then, its
 * TimerFired event is buffered: the timer is "fired" meanwhile, and a CancelTimer of that very task takes the event back, so
 * that a workflow never sees a timer fire that it has canceled. */
#include "run/machines.h"

_Static_assert(HF_TIMER_STATE_COUNT == HF_TIMER_CANCELED + 1, "the table has a row for every state");
static const hf_rule RULES[HF_TIMER_STATE_COUNT] = {
    [HF_TIMER_NEW] = {"new", HF_BIT(HF_TIMER_STARTED)},
    [HF_TIMER_STARTED] = {"started", HF_BIT(HF_TIMER_FIRED) | HF_BIT(HF_TIMER_CANCELED)},
    [HF_TIMER_FIRED] = {"fired", HF_BIT(HF_TIMER_CANCELED)},
    [HF_TIMER_CANCELED] = {"canceled", 0},
};
const hf_machine hf_timer_machine = {"timer", RULES, HF_TIMER_STATE_COUNT};

static bool move(hf_apply *a, hf_timer *timer, hf_timer_state state)
{
    if (!hf_arrow_take(&a->memory->arrows, HF_MACHINE_TIMER, (int)timer->state, (int)state)) {
        return false;
    }
    timer->state = state;
    return true;
}

/* ---- Apply ----------------------------------------------------------------------------------------------------------- */

hf_status hf_timer_started(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_timer_started_event_attributes *attrs = event->timer_started_event_attributes;
    if (hf_run_timer_by_id(run, attrs->timer_id) != NULL) {
        return hf_fail(a->op, HF_ERR_INVALID, "timer %.*s is started twice", HF_STR_ARGS(attrs->timer_id));
    }
    int64_t fire_time = 0;
    int64_t span = hf_pb_duration_span(attrs->start_to_fire_timeout).ns;
    if (__builtin_add_overflow(hf_pb_timestamp_time(event->event_time).ns, span, &fire_time)) {
        fire_time = INT64_MAX - 1;
    }
    hf_assert(hf_arrow_take(&a->memory->arrows, HF_MACHINE_TIMER, HF_TIMER_NEW, HF_TIMER_STARTED));
    hf_timer_add(a->memory, run, event->event_id, attrs->timer_id, fire_time);
    hf_effects_due(a->effects, fire_time);
    return a->memory->status;
}

hf_status hf_timer_ended(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    bool fired = event->event_type == HF_EVENT_TYPE_TIMER_FIRED;
    int64_t started_id = fired ? event->timer_fired_event_attributes->started_event_id
                               : event->timer_canceled_event_attributes->started_event_id;
    hf_timer *timer = hf_run_timer(run, started_id);
    if (timer == NULL) {
        return hf_fail(a->op, HF_ERR_INVALID, "there is no timer of event %lld", (long long)started_id);
    }
    /* If the firing was buffered, the timer was moved to FIRED then. */
    if (!(fired && timer->state == HF_TIMER_FIRED) && !move(a, timer, fired ? HF_TIMER_FIRED : HF_TIMER_CANCELED)) {
        return hf_fail(a->op, HF_ERR_INVALID, "the timer of event %lld has ended", (long long)started_id);
    }
    hf_timer_drop(a->memory, run, timer);
    return HF_OK;
}

hf_status hf_timer_mark_fired(hf_apply *a, hf_run *run, const hf_pb_history_event *event)
{
    hf_timer *timer = hf_run_timer(run, event->timer_fired_event_attributes->started_event_id);
    if (timer == NULL || !move(a, timer, HF_TIMER_FIRED)) {
        return hf_fail(a->op, HF_ERR_INVALID, "a timer has fired that does not exist or has ended");
    }
    return HF_OK;
}
