/* Timers: the decisions about them. Their states and how changes are applied: run/machines/timer.c. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/emit.h"
#include "engine/machines/machines.h"

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
    hf_assert(hf_run_is_open(run));
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
