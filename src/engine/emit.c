/* Emit: a decision is written to the run's log and applied. */
#include "engine/emit.h"

#include "engine/core_private.h"
#include "engine/due.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/machines/speculative.h"
#include "engine/matching.h"
#include "engine/notice.h"

/* Carries out the effects of the change that was just applied. Some of them lead to further changes, which have effects of their own,
 * so these are copied and cleared first. */
static void do_effects(hf_core *core, hf_run *run)
{
    hf_effects *effects = &core->effects;
    for (size_t i = 0; i < effects->gone.count; i++) {
        hf_match_remove(core, effects->gone.items[i]);
    }
    for (hf_activity *activity = effects->ended; activity != NULL; activity = activity->next_ended) {
        hf_match_remove(core, &activity->task);
    }
    int64_t due = effects->due;
    int64_t message = effects->message;
    hf_task *ready = effects->ready;
    bool is_closed = effects->is_closed;
    hf_effects_clear(&core->runs_memory, effects);
    hf_assert(effects->gone.count == 0 && effects->ended == NULL && effects->ready == NULL);
    if (due != INT64_MAX) {
        hf_due_at(core, run, due);
    }
    if (message != 0) {
        hf_message_send(core, run, message);
    }
    if (ready != NULL) {
        hf_match_ready(core, run, ready);
    }
    if (is_closed) {
        hf_execution_closed(core, run);
    }
}

static hf_apply application(hf_core *core)
{
    return (hf_apply){.op = &core->op, .memory = &core->runs_memory, .effects = &core->effects};
}

static void applied(hf_core *core, hf_run *run, hf_status status)
{
    if (status != HF_OK) {
        hf_core_break(core, status, "run %lld: %s", (long long)run->number, core->op.message);
    }
    do_effects(core, run);
}

/* Accounts for a change that was written from `start` on; false: there was no memory for it. */
static bool written(hf_core *core, const hf_run *run, size_t start)
{
    hf_assert(run->log.len >= start && start >= HF_SLOT(run)->batch_start); /* the open batch has it */
    if (run->log.status != HF_OK) {
        hf_core_break(core, run->log.status, "out of memory");
        return false;
    }
    core->open_len += run->log.len - start;
    return true;
}

/* Applies the change that was just written from `start` on. `msg` is what was written, if the caller has it as a struct. */
static void apply_last(hf_core *core, hf_run *run, size_t start, const hf_pb_type *type, const void *msg)
{
    if (!written(core, run, start)) {
        return;
    }
    hf_str rest = hf_str_of_len(run->log.data + start, run->log.len - start);
    hf_pb_raw field;
    if (!hf_pb_next(&rest, &field)) {
        hf_core_break(core, HF_ERR_INVALID, "run %lld: a change cannot be read back", (long long)run->number);
        return;
    }
    hf_assert(rest.len == 0); /* one change at a time */
    hf_apply a = application(core);
    a.msg = msg;
    a.msg_type = type;
    applied(core, run, hf_apply_change(&a, run, &field));
}

/* The run is about to change: a speculative workflow task becomes a real one first (machines/speculative.c). */
static void change(hf_core *core, hf_run *run)
{
    hf_speculative_convert(core, run);
    hf_core_touch(core, run);
}

void hf_record(hf_core *core, hf_run *run, uint32_t field, const hf_pb_type *type, const void *msg)
{
    hf_assert(field != HF_CHANGE_EVENT); /* those are emitted */
    if (core->status != HF_OK) {
        return;
    }
    change(core, run);
    size_t start = run->log.len;
    hf_pb_encode_field(field, type, msg, &run->log);
    apply_last(core, run, start, type, msg);
}

void hf_record_str(hf_core *core, hf_run *run, uint32_t field, hf_str bytes)
{
    hf_assert(field != HF_CHANGE_EVENT); /* those are emitted */
    if (core->status != HF_OK) {
        return;
    }
    change(core, run);
    size_t start = run->log.len;
    hf_pb_put_bytes(&run->log, field, bytes);
    apply_last(core, run, start, NULL, NULL);
}

void hf_record_int(hf_core *core, hf_run *run, uint32_t field, int64_t value)
{
    hf_assert(field != HF_CHANGE_EVENT); /* those are emitted */
    if (core->status != HF_OK) {
        return;
    }
    change(core, run);
    size_t start = run->log.len;
    hf_pb_put_uint(&run->log, field, (uint64_t)value);
    apply_last(core, run, start, NULL, NULL);
}

/* Whether the event is the last one of the started workflow task. */
static bool ends_task(const hf_pb_history_event *event)
{
    return event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED ||
           event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_FAILED ||
           event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT;
}

void hf_event_emit(hf_core *core, hf_run *run, hf_pb_history_event *event)
{
    if (core->status != HF_OK) {
        return;
    }
    change(core, run);
    hf_assert(event->event_type != 0 && event->attributes_case != 0);
    hf_assert(run->wft.state != HF_WFT_STARTED || ends_task(event)); /* run-R5 */
    core->event_total++;
    int64_t len_before = run->history_len;
    int64_t signals_before = run->signal_count;
    if (core->event_metadata != NULL) {
        event->user_metadata = core->event_metadata;
        core->event_metadata = NULL;
    }
    event->event_id = run->event_count + 1;
    if (!event->event_time.has) { /* no event is older than the one before, even if the clock was set back */
        event->event_time =
            hf_pb_timestamp_of((hf_time){core->now.wall > run->last_time ? core->now.wall : run->last_time});
    }
    size_t start = run->log.len;
    if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_STARTED) {
        run->marks[1] = run->marks[0];
        run->marks[0] = (hf_mark){event->event_id, start};
    }
    hf_pb_encode_field(HF_CHANGE_EVENT, &hf_pb_history_event_type, event, &run->log);
    if (!written(core, run, start)) {
        return;
    }
    hf_str rest = hf_str_of_len(run->log.data + start, run->log.len - start);
    hf_pb_raw field = {0};
    hf_assert(hf_pb_next(&rest, &field));
    hf_apply a = application(core);
    applied(core, run, hf_apply_event(&a, run, event, field.bytes));
    hf_assert(core->status != HF_OK || run->event_count == event->event_id); /* run-R1 */
    hf_notice_event(core, run, len_before, signals_before);
}

void hf_event_emit_or_buffer(hf_core *core, hf_run *run, hf_pb_history_event *event)
{
    hf_speculative_convert(core, run); /* the event may have to wait for its end */
    if (run->wft.state != HF_WFT_STARTED) {
        hf_event_emit(core, run, event);
        return;
    }
    if (core->status != HF_OK) {
        return;
    }
    change(core, run);
    if (!event->event_time.has) {
        event->event_time = hf_pb_timestamp_of((hf_time){core->now.wall});
    }
    size_t start = run->log.len;
    hf_pb_encode_field(HF_CHANGE_BUFFERED, &hf_pb_history_event_type, event, &run->log);
    apply_last(core, run, start, &hf_pb_history_event_type, event);
}

bool hf_event_completion_of(const hf_pb_history_event *event, int64_t *ret_begun_id, int64_t **ret_started_id)
{
#define ENDS(type, stem, begun)                                              \
    case type:                                                               \
        *ret_begun_id = event->stem##_event_attributes->begun;               \
        *ret_started_id = &event->stem##_event_attributes->started_event_id; \
        return true
    switch (event->event_type) {
        ENDS(HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED, activity_task_completed, scheduled_event_id);
        ENDS(HF_EVENT_TYPE_ACTIVITY_TASK_FAILED, activity_task_failed, scheduled_event_id);
        ENDS(HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT, activity_task_timed_out, scheduled_event_id);
        ENDS(HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED, activity_task_canceled, scheduled_event_id);
        ENDS(HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED, child_workflow_execution_completed, initiated_event_id);
        ENDS(HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED, child_workflow_execution_failed, initiated_event_id);
        ENDS(HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED, child_workflow_execution_canceled, initiated_event_id);
        ENDS(HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT, child_workflow_execution_timed_out, initiated_event_id);
        ENDS(HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED, child_workflow_execution_terminated,
             initiated_event_id);
    default:
        return false;
    }
#undef ENDS
}

static bool is_completion(const hf_pb_history_event *event)
{
    int64_t begun_id = 0;
    int64_t *started_id = NULL;
    return hf_event_completion_of(event, &begun_id, &started_id);
}

/* A completion that was buffered with its started event learns that event's id. */
static void fix_started_id(hf_pb_history_event *event, const int64_t (*started)[2], size_t count)
{
    int64_t begun_id = 0;
    int64_t *started_id = NULL;
    if (!hf_event_completion_of(event, &begun_id, &started_id)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (started[i][0] == begun_id) {
            *started_id = started[i][1];
        }
    }
}

void hf_flush_buffered(hf_core *core, hf_run *run)
{
    size_t count = run->buffered.count;
    if (count == 0 || core->status != HF_OK) {
        return;
    }
    hf_arena *arena = &core->scratch;
    hf_pb_history_event *events = HF_ARENA_ARRAY(arena, hf_pb_history_event, count);
    int64_t(*started)[2] = hf_arena_zero(arena, count * sizeof *started, _Alignof(int64_t));
    if (arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        hf_str bytes = hf_arena_copy(arena, hf_owned_str(&run->buffered.items[i]));
        hf_status status = hf_pb_decode(&core->op, &hf_pb_history_event_type, bytes, arena, &events[i]);
        if (status != HF_OK || arena->status != HF_OK) {
            hf_core_break(core, arena->status != HF_OK ? HF_ERR_NOMEM : HF_ERR_INVALID,
                          "run %lld: a buffered event cannot be read", (long long)run->number);
            return;
        }
    }
    hf_assert(run->wft.state != HF_WFT_STARTED); /* run-R5 */
    hf_record_int(core, run, HF_CHANGE_UNBUFFERED_ALL, 1);
    hf_assert(core->status != HF_OK || run->buffered.count == 0);
    size_t started_count = 0;
    bool moved = false;
    for (size_t i = 0; i < count; i++) {
        if (is_completion(&events[i])) {
            moved = moved || (i + 1 < count && !is_completion(&events[i + 1]));
            continue;
        }
        hf_event_emit(core, run, &events[i]);
        if (events[i].event_type == HF_EVENT_TYPE_ACTIVITY_TASK_STARTED) {
            started[started_count][0] = events[i].activity_task_started_event_attributes->scheduled_event_id;
            started[started_count++][1] = events[i].event_id;
        } else if (events[i].event_type == HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED) {
            started[started_count][0] = events[i].child_workflow_execution_started_event_attributes->initiated_event_id;
            started[started_count++][1] = events[i].event_id;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (is_completion(&events[i])) {
            fix_started_id(&events[i], (const int64_t(*)[2])started, started_count);
            hf_event_emit(core, run, &events[i]);
        }
    }
    if (moved) {
        HF_PROBE(core, HF_PROBE_FLUSH_REORDERED);
    }
}
