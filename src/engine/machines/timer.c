/* Timers.
 *
 *     new --> started --> fired --> (gone)
 *                |          |
 *                +----------+--> canceled --> (gone)
 *
 * A timer fires when its time has come, by the wall clock, and never before. If a workflow task is started just then, its
 * TimerFired event is buffered: the timer is "fired" meanwhile, and a CancelTimer of that very task takes the event back, so
 * that the workflow sees a timer it has canceled never fire. */
#include "engine/core.h"

#include "base/canary.h"

static const hf_rule RULES[HF_TIMER_STATE_COUNT] = {
    [HF_TIMER_NEW] = {"new", HF_BIT(HF_TIMER_STARTED)},
    [HF_TIMER_STARTED] = {"started", HF_BIT(HF_TIMER_FIRED) | HF_BIT(HF_TIMER_CANCELED)},
    [HF_TIMER_FIRED] = {"fired", HF_BIT(HF_TIMER_CANCELED)},
    [HF_TIMER_CANCELED] = {"canceled", 0},
};
const hf_machine hf_timer_machine = {"timer", RULES, HF_TIMER_STATE_COUNT};

static bool move(hf_core *core, hf_timer *timer, hf_timer_state state)
{
    if (!hf_walk(&core->walked, HF_MACHINE_TIMER, (int)timer->state, (int)state)) {
        return false;
    }
    timer->state = state;
    return true;
}

/* ---- Apply ----------------------------------------------------------------------------------------------------------- */

hf_timer *hf_timer_add(hf_core *core, hf_run *run, int64_t started_id, hf_str timer_id, int64_t fire_time)
{
    if (!HF_VEC_RESERVE(core, &run->timers)) {
        return NULL;
    }
    hf_timer *timer = hf_core_alloc(core, sizeof *timer);
    if (timer == NULL) {
        return NULL;
    }
    timer->started_id = started_id;
    timer->fire_time = fire_time;
    timer->state = HF_TIMER_STARTED;
    hf_owned_set(core, &timer->id, timer_id);
    run->timers.items[run->timers.count++] = timer;
    hf_due_at(core, run, fire_time);
    return timer;
}

static void drop(hf_core *core, hf_run *run, hf_timer *timer)
{
    size_t index = 0;
    while (run->timers.items[index] != timer) {
        index++;
    }
    run->timers.count--;
    memmove(&run->timers.items[index], &run->timers.items[index + 1], (run->timers.count - index) * sizeof(hf_timer *));
    hf_timer_free(core, timer);
}

hf_status hf_timer_started(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_timer_started_event_attributes *attrs = event->timer_started_event_attributes;
    if (hf_run_timer_by_id(run, attrs->timer_id) != NULL) {
        return hf_fail(op, HF_ERR_INVALID, "timer %.*s is started twice", HF_STR_ARGS(attrs->timer_id));
    }
    int64_t fire_time = 0;
    int64_t span = hf_pb_duration_span(attrs->start_to_fire_timeout).ns;
    if (__builtin_add_overflow(hf_pb_timestamp_time(event->event_time).ns, span, &fire_time)) {
        fire_time = INT64_MAX - 1;
    }
    hf_walk(&core->walked, HF_MACHINE_TIMER, HF_TIMER_NEW, HF_TIMER_STARTED);
    hf_timer_add(core, run, event->event_id, attrs->timer_id, fire_time);
    return core->status;
}

hf_status hf_timer_ended(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    bool fired = event->event_type == HF_EVENT_TYPE_TIMER_FIRED;
    int64_t started_id = fired ? event->timer_fired_event_attributes->started_event_id
                               : event->timer_canceled_event_attributes->started_event_id;
    hf_timer *timer = hf_run_timer(run, started_id);
    if (timer == NULL) {
        return hf_fail(op, HF_ERR_INVALID, "there is no timer of event %lld", (long long)started_id);
    }
    /* A firing that was buffered moved it then. */
    if (!(fired && timer->state == HF_TIMER_FIRED) && !move(core, timer, fired ? HF_TIMER_FIRED : HF_TIMER_CANCELED)) {
        return hf_fail(op, HF_ERR_INVALID, "the timer of event %lld has ended", (long long)started_id);
    }
    drop(core, run, timer);
    return HF_OK;
}

hf_status hf_timer_mark_fired(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event)
{
    hf_timer *timer = hf_run_timer(run, event->timer_fired_event_attributes->started_event_id);
    if (timer == NULL || !move(core, timer, HF_TIMER_FIRED)) {
        return hf_fail(op, HF_ERR_INVALID, "a timer that is not there has fired");
    }
    return HF_OK;
}

/* ---- Decide ---------------------------------------------------------------------------------------------------------- */

void hf_timer_start(hf_core *core, hf_run *run, const hf_pb_start_timer_command_attributes *attrs)
{
    hf_pb_timer_started_event_attributes body = {
        .timer_id = attrs->timer_id,
        .start_to_fire_timeout = attrs->start_to_fire_timeout,
        .workflow_task_completed_event_id = run->wft.completed_id,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_TIMER_STARTED,
        .attributes_case = HF_PB_HISTORY_EVENT_TIMER_STARTED_EVENT_ATTRIBUTES,
        .timer_started_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

/* Takes a buffered TimerFired back. */
static void unfire(hf_core *core, hf_run *run, const hf_timer *timer)
{
    for (size_t i = 0; i < run->buffered.count && core->status == HF_OK; i++) {
        hf_pb_history_event event;
        hf_str bytes = hf_owned_str(&run->buffered.items[i]);
        if (hf_pb_decode(&core->op, &hf_pb_history_event_type, bytes, &core->scratch, &event) == HF_OK &&
            event.event_type == HF_EVENT_TYPE_TIMER_FIRED &&
            event.timer_fired_event_attributes->started_event_id == timer->started_id) {
            HF_PROBE(core, HF_PROBE_TIMER_UNFIRED);
            hf_record_int(core, run, HF_CHANGE_UNBUFFERED, (int64_t)i + 1);
            return;
        }
    }
}

void hf_timer_cancel(hf_core *core, hf_run *run, hf_str timer_id, hf_str identity)
{
    hf_timer *timer = hf_run_timer_by_id(run, timer_id);
    if (timer == NULL) {
        return;
    }
    if (timer->state == HF_TIMER_FIRED) {
        unfire(core, run, timer);
    }
    hf_pb_timer_canceled_event_attributes body = {
        .timer_id = timer_id,
        .started_event_id = timer->started_id,
        .workflow_task_completed_event_id = run->wft.completed_id,
        .identity = identity,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_TIMER_CANCELED,
        .attributes_case = HF_PB_HISTORY_EVENT_TIMER_CANCELED_EVENT_ATTRIBUTES,
        .timer_canceled_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

bool hf_timer_is_due(const hf_core *core, const hf_timer *timer)
{
    int64_t early = HF_CANARY(HF_BUG_TIMER_EARLY) ? 500000000 : 0;
    return timer->state == HF_TIMER_STARTED && timer->fire_time - early <= core->now.wall;
}

bool hf_timer_fire(hf_core *core, hf_run *run, hf_timer *timer)
{
    if (!hf_timer_is_due(core, timer)) {
        return false;
    }
    hf_pb_timer_fired_event_attributes body = {
        .timer_id = hf_arena_copy(&core->scratch, hf_owned_str(&timer->id)),
        .started_event_id = timer->started_id,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_TIMER_FIRED,
        .attributes_case = HF_PB_HISTORY_EVENT_TIMER_FIRED_EVENT_ATTRIBUTES,
        .timer_fired_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
    return true;
}
