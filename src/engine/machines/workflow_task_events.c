/* The two events of a workflow task, Scheduled and Started. Those of a first attempt are written when it is scheduled and started. Those of a
 * transient or speculative task are only shown to its worker, and written once the task has changed something. */
#include "engine/machines/workflow_task_private.h"

#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "engine/machines/update.h"
#include "history/limits.h"

/* The queue that a Scheduled event names: the sticky queue if the run has one, even if the task goes to the normal queue because the sticky
 * worker is gone. */
static hf_pb_task_queue queue_of(const hf_run *run, int32_t attempt)
{
    if (attempt == 1 && run->sticky_queue.len > 0) {
        return (hf_pb_task_queue){.name = hf_owned_str(&run->sticky_queue),
                                  .kind = HF_TASK_QUEUE_KIND_STICKY,
                                  .normal_name = hf_owned_str(&run->task_queue)};
    }
    return (hf_pb_task_queue){.name = hf_owned_str(&run->task_queue), .kind = HF_TASK_QUEUE_KIND_NORMAL};
}

void hf_wft_emit_scheduled(hf_core *core, hf_run *run, int32_t attempt, int64_t timeout, int64_t time)
{
    hf_assert(core->status != HF_OK || (run->wft.state == HF_WFT_NONE && attempt > 0));
    hf_pb_task_queue queue = queue_of(run, attempt);
    hf_pb_workflow_task_scheduled_event_attributes body = {
        .task_queue = &queue,
        .start_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(timeout)),
        .attempt = attempt,
    };
    hf_pb_history_event event = {
        .event_time = hf_pb_timestamp_of((hf_time){time}),
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_SCHEDULED_EVENT_ATTRIBUTES,
        .workflow_task_scheduled_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

/* Suggests to continue as new if the history is long, with the reasons. */
static void suggest(hf_core *core, const hf_wft_facts *facts, hf_pb_workflow_task_started_event_attributes *body)
{
    const struct {
        bool is_so;
        int32_t reason;
    } reasons[] = {
        {facts->len >= HF_HISTORY_SUGGEST_LEN, HF_SUGGEST_CONTINUE_AS_NEW_REASON_HISTORY_SIZE_TOO_LARGE},
        {facts->count + 1 >= core->options.limits.suggest_count,
         HF_SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_HISTORY_EVENTS},
        {facts->has_many_updates, HF_SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_UPDATES},
    };
    for (size_t i = 0; i < HF_COUNT_OF(reasons); i++) {
        if (!reasons[i].is_so) {
            continue;
        }
        if (!body->suggest_continue_as_new) {
            HF_PROBE(core, HF_PROBE_SUGGESTED);
            body->suggest_continue_as_new = true;
            body->suggest_continue_as_new_reasons.items = HF_ARENA_ARRAY(&core->scratch, int32_t, HF_COUNT_OF(reasons));
        }
        if (body->suggest_continue_as_new_reasons.items != NULL) { /* hf_core_is_whole sees that there was no memory */
            body->suggest_continue_as_new_reasons.items[body->suggest_continue_as_new_reasons.count++] =
                reasons[i].reason;
        }
    }
}

hf_pb_history_event hf_wft_started_event(hf_core *core, const hf_wft_facts *facts)
{
    hf_pb_workflow_task_started_event_attributes *body =
        HF_ARENA_NEW(&core->scratch, hf_pb_workflow_task_started_event_attributes);
    if (body == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return (hf_pb_history_event){0};
    }
    body->scheduled_event_id = facts->scheduled_id;
    body->identity = facts->identity;
    body->request_id = facts->request_id;
    body->history_size_bytes = facts->len;
    suggest(core, facts, body);
    return (hf_pb_history_event){
        .event_time = hf_pb_timestamp_of((hf_time){facts->time}),
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_STARTED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_STARTED_EVENT_ATTRIBUTES,
        .workflow_task_started_event_attributes = body,
    };
}

/* The answer must be the same before the Started event is written and afterwards, so only updates that cannot change in between count. */
static bool has_many_updates(const hf_core *core, const hf_run *run, const hf_wft *wft)
{
    return wft == &run->wft ? hf_updates_are_many(core, run, false) : wft->has_many_updates;
}

/* The events of a transient or speculative task; the second one if it is started. */
static hf_str events_of(hf_core *core, const hf_run *run, const hf_wft *wft, hf_str identity)
{
    hf_assert(wft->is_transient); /* its events are not written yet */
    hf_pb_task_queue queue = queue_of(run, wft->attempt);
    hf_pb_workflow_task_scheduled_event_attributes body = {
        .task_queue = &queue,
        .start_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(wft->timeout)),
        .attempt = wft->attempt,
    };
    hf_pb_history_event scheduled = {
        .event_id = wft->scheduled_id,
        .event_time = hf_pb_timestamp_of((hf_time){wft->scheduled_time}),
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_SCHEDULED_EVENT_ATTRIBUTES,
        .workflow_task_scheduled_event_attributes = &body,
    };
    hf_buf out;
    hf_buf_init(&out, core->memory, SIZE_MAX / 4);
    hf_pb_encode_field(1, &hf_pb_history_event_type, &scheduled, &out);
    /* The numbers are those it gets when it is written, after its Scheduled event. */
    if (wft->state == HF_WFT_STARTED) {
        hf_pb_history_event started =
            hf_wft_started_event(core, &(hf_wft_facts){
                                           .count = run->event_count + 1,
                                           .len = run->history_len + (int64_t)out.len,
                                           .has_many_updates = has_many_updates(core, run, wft),
                                           .identity = identity,
                                           .request_id = hf_owned_str(&wft->request_id),
                                           .time = wft->started_time,
                                           .scheduled_id = wft->scheduled_id,
                                       });
        started.event_id = wft->started_id;
        hf_pb_encode_field(1, &hf_pb_history_event_type, &started, &out);
    }
    hf_str tail = hf_arena_copy(&core->scratch, hf_str_of_len(out.data, out.len));
    if (out.status != HF_OK || core->scratch.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    hf_buf_deinit(&out);
    return tail;
}

hf_str hf_wft_transient_events(hf_core *core, const hf_run *run, const hf_wft *wft)
{
    hf_assert(wft->state == HF_WFT_STARTED);
    return events_of(core, run, wft, hf_owned_str(&wft->identity));
}

hf_str hf_wft_unwritten_events(hf_core *core, const hf_run *run, const hf_wft *wft)
{
    bool has_them = wft->state != HF_WFT_NONE && wft->is_transient && wft->scheduled_id == run->event_count + 1;
    return has_them ? events_of(core, run, wft, HF_STR(""))
                    : HF_STR(""); /* without the identity of the worker, as on Temporal */
}

void hf_wft_materialise(hf_core *core, hf_run *run)
{
    hf_assert(run->wft.state == HF_WFT_STARTED);
    hf_wft *wft = &run->wft;
    if (!wft->is_transient) {
        return;
    }
    HF_PROBE(core, HF_PROBE_WFT_TRANSIENT_DONE);
    hf_str identity = hf_arena_copy(&core->scratch, hf_owned_str(&wft->identity));
    hf_str request_id = hf_arena_copy(&core->scratch, hf_owned_str(&wft->request_id));
    int64_t scheduled_time = wft->scheduled_time;
    int64_t started_time = wft->started_time;
    int64_t timeout = wft->timeout;
    int32_t attempt = wft->attempt;
    hf_pb_workflow_task_reset reset = {.attempt_next = attempt};
    hf_record(core, run, HF_CHANGE_TASK_RESET, &hf_pb_workflow_task_reset_type, &reset);
    hf_wft_emit_scheduled(core, run, attempt, timeout, scheduled_time);
    hf_pb_history_event event =
        hf_wft_started_event(core, &(hf_wft_facts){
                                       .count = run->event_count,
                                       .len = run->history_len,
                                       .has_many_updates = hf_updates_are_many(core, run, false),
                                       .identity = identity,
                                       .request_id = request_id,
                                       .time = started_time,
                                       .scheduled_id = run->wft.scheduled_id,
                                   });
    hf_event_emit(core, run, &event);
}

void hf_wft_write(hf_core *core, hf_run *run, const hf_wft *from, hf_str identity)
{
    hf_assert(from->attempt == 1 && from->state != HF_WFT_NONE);
    hf_wft_emit_scheduled(core, run, 1, from->timeout, from->scheduled_time);
    if (from->state == HF_WFT_SCHEDULED) {
        hf_pb_workflow_task_scheduled msg = {.sticky = from->sticky, .order = from->task.order};
        hf_record(core, run, HF_CHANGE_TASK_SCHEDULED, &hf_pb_workflow_task_scheduled_type, &msg);
        return;
    }
    hf_pb_history_event event = hf_wft_started_event(core, &(hf_wft_facts){
                                                               .count = run->event_count,
                                                               .len = run->history_len,
                                                               .has_many_updates = from->has_many_updates,
                                                               .identity = identity,
                                                               .request_id = hf_owned_str(&from->request_id),
                                                               .time = from->started_time,
                                                               .scheduled_id = run->wft.scheduled_id,
                                                           });
    hf_event_emit(core, run, &event);
    hf_pb_workflow_task_started msg = {
        .time = from->started_time,
        .incarnation = from->incarnation,
        .identity = hf_owned_str(&from->identity),
        .request_id = hf_owned_str(&from->request_id),
    };
    hf_record(core, run, HF_CHANGE_TASK_STARTED, &hf_pb_workflow_task_started_type, &msg);
    if (from->again) {
        hf_pb_task_moved moved = {.order = from->task.order};
        hf_record(core, run, HF_CHANGE_TASK_MOVED, &hf_pb_task_moved_type, &moved);
    }
}
