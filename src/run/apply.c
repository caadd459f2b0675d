/* Apply: changes become state (run.h).
 *
 * A change may have been decided by a live step, recorded in a journal, or be part of a history from outside. So it is checked: a change
 * that the machines do not allow is refused. In a live step that is a broken invariant and stops the engine; in a history from outside
 * it is a bad history. */
#include "run/machines.h"

#include "base/digest.h"
#include "run/stream.h"

#include <string.h>

/* Bytes of an event as an element of a History: tag, length, event. */
static size_t element_len(size_t len)
{
    size_t prefix = 2;
    for (size_t left = len; left >= 0x80; left >>= 7) {
        prefix++;
    }
    return prefix + len;
}

static hf_status cannot(hf_apply *a, const hf_run *run, const hf_pb_history_event *event, const char *why)
{
    return hf_fail(a->op, HF_ERR_INVALID, "run %lld: event %lld (type %d) cannot follow: %s", (long long)run->number,
                   (long long)event->event_id, (int)event->event_type, why);
}

/* Kinds that are not named here change nothing but the count, the chain and the clock: markers, and what later versions
 * give a meaning to (hf_event_has_meaning). */
static hf_apply_fn *const EVENTS[] = {
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED] = hf_execution_started,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED] = hf_execution_closed_event,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED] = hf_execution_closed_event,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT] = hf_execution_closed_event,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED] = hf_execution_closed_event,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED] = hf_execution_closed_event,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW] = hf_execution_closed_event,
    [HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED] = hf_wft_scheduled,
    [HF_EVENT_TYPE_WORKFLOW_TASK_STARTED] = hf_wft_started,
    [HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED] = hf_wft_completed,
    [HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT] = hf_wft_timed_out,
    [HF_EVENT_TYPE_WORKFLOW_TASK_FAILED] = hf_wft_failed,
    [HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED] = hf_activity_scheduled,
    [HF_EVENT_TYPE_ACTIVITY_TASK_STARTED] = hf_activity_started_event,
    [HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED] = hf_activity_ended,
    [HF_EVENT_TYPE_ACTIVITY_TASK_FAILED] = hf_activity_ended,
    [HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT] = hf_activity_ended,
    [HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED] = hf_activity_ended,
    [HF_EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED] = hf_activity_cancel_requested,
    [HF_EVENT_TYPE_TIMER_STARTED] = hf_timer_started,
    [HF_EVENT_TYPE_TIMER_FIRED] = hf_timer_ended,
    [HF_EVENT_TYPE_TIMER_CANCELED] = hf_timer_ended,
    [HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED] = hf_external_initiated,
    [HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED] = hf_external_initiated,
    [HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED] = hf_external_ended,
    [HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED] = hf_external_ended,
    [HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED] = hf_external_ended,
    [HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED] = hf_external_ended,
    [HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED] = hf_child_initiated,
    [HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED] = hf_child_ended,
    [HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED] = hf_child_started,
    [HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED] = hf_child_ended,
    [HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED] = hf_child_ended,
    [HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED] = hf_child_ended,
    [HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT] = hf_child_ended,
    [HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED] = hf_child_ended,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED] = hf_update_admitted,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED] = hf_update_accepted,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED] = hf_update_completed,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED] = hf_execution_signaled,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED] = hf_execution_cancel_requested,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED] = hf_options_updated,
    [HF_EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES] = hf_attributes_upserted,
    [HF_EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED] = hf_memo_upserted,
};

/* The attributes that go with each event type. They are a union, so reading the wrong member would give garbage. */
static const uint32_t ATTRIBUTES[HF_COUNT_OF(EVENTS)] = {
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED] = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED] = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_COMPLETED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED] = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT] = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_TIMED_OUT_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED] = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CANCELED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED] = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_TERMINATED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW] =
        HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CONTINUED_AS_NEW_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED] = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_SCHEDULED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_TASK_STARTED] = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_STARTED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED] = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_COMPLETED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT] = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_TIMED_OUT_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_TASK_FAILED] = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_FAILED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED] = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_SCHEDULED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_ACTIVITY_TASK_STARTED] = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_STARTED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED] = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_COMPLETED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_ACTIVITY_TASK_FAILED] = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_FAILED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT] = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_TIMED_OUT_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED] = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_CANCELED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED] =
        HF_PB_HISTORY_EVENT_ACTIVITY_TASK_CANCEL_REQUESTED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_TIMER_STARTED] = HF_PB_HISTORY_EVENT_TIMER_STARTED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_TIMER_FIRED] = HF_PB_HISTORY_EVENT_TIMER_FIRED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_TIMER_CANCELED] = HF_PB_HISTORY_EVENT_TIMER_CANCELED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED] =
        HF_PB_HISTORY_EVENT_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED] =
        HF_PB_HISTORY_EVENT_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED] =
        HF_PB_HISTORY_EVENT_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED] =
        HF_PB_HISTORY_EVENT_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED] =
        HF_PB_HISTORY_EVENT_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED] =
        HF_PB_HISTORY_EVENT_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED] =
        HF_PB_HISTORY_EVENT_START_CHILD_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED] =
        HF_PB_HISTORY_EVENT_START_CHILD_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED] =
        HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED] =
        HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_COMPLETED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED] =
        HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED] =
        HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_CANCELED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT] =
        HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_TIMED_OUT_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED] =
        HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_TERMINATED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED] =
        HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_UPDATE_ADMITTED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED] =
        HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_UPDATE_ACCEPTED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED] =
        HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_UPDATE_COMPLETED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED] = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED] =
        HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CANCEL_REQUESTED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED] =
        HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_OPTIONS_UPDATED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES] =
        HF_PB_HISTORY_EVENT_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED] = HF_PB_HISTORY_EVENT_WORKFLOW_PROPERTIES_MODIFIED_EVENT_ATTRIBUTES,
};

bool hf_event_has_meaning(int32_t event_type)
{
    bool is_named = event_type > 0 && (size_t)event_type < HF_COUNT_OF(EVENTS) && EVENTS[event_type] != NULL;
    return is_named || event_type == HF_EVENT_TYPE_MARKER_RECORDED; /* which is for the workflow's code alone */
}

bool hf_event_fits(const hf_pb_history_event *event)
{
    bool known = event->event_type > 0 && (size_t)event->event_type < HF_COUNT_OF(EVENTS);
    return !known || EVENTS[event->event_type] == NULL || event->attributes_case == ATTRIBUTES[event->event_type];
}

hf_status hf_apply_event(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    hf_assert(a->op != NULL && a->memory != NULL && a->effects != NULL);
    if (event->event_id != run->event_count + 1) {
        return cannot(a, run, event, "its id is not the next one");
    }
    if (run->event_count > 0 && !hf_run_is_open(run)) {
        return cannot(a, run, event, "the run is closed");
    }
    run->event_count++;
    run->history_len += (int64_t)element_len(bytes.len);
    run->chain = hf_digest(run->chain, bytes);
    run->last_time = hf_pb_timestamp_time(event->event_time).ns;
    if (event->event_type > 0 && (size_t)event->event_type < HF_COUNT_OF(EVENTS) && EVENTS[event->event_type] != NULL) {
        if (!hf_event_fits(event)) {
            return cannot(a, run, event, "its attributes are missing, or those of another event type");
        }
        return EVENTS[event->event_type](a, run, event, bytes);
    }
    return HF_OK;
}

static hf_status apply_created(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_created msg;
    HF_TRY(hf_apply_read(a, &hf_pb_created_type, bytes, &msg));
    if (msg.kind < 0 || msg.kind >= HF_RUN_KIND_COUNT) {
        return hf_fail(a->op, HF_ERR_UNSUPPORTED, "run %lld is of a kind from a newer version", (long long)run->number);
    }
    run->kind = (hf_run_kind)msg.kind;
    hf_owned_set(a->memory, &run->namespace, msg.namespace);
    hf_owned_set(a->memory, &run->workflow_id, msg.workflow_id);
    hf_owned_set(a->memory, &run->run_id, msg.run_id);
    hf_owned_set(a->memory, &run->start_request_id, msg.start_request_id);
    return HF_OK;
}

static hf_status apply_sticky(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_sticky msg;
    HF_TRY(hf_apply_read(a, &hf_pb_sticky_type, bytes, &msg));
    hf_owned_set(a->memory, &run->sticky_queue, msg.queue);
    run->sticky_timeout = msg.timeout;
    if (msg.queue.len == 0) {
        run->wft.sticky = false; /* any worker may now take a pending task, and needs the whole history */
    }
    return HF_OK;
}

bool hf_event_may_wait(const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED:
    case HF_EVENT_TYPE_TIMER_FIRED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_STARTED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_FAILED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
    case HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED:
    case HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
    case HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED:
    case HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
    case HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
    case HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
        return hf_event_fits(event);
    default:
        return false;
    }
}

/* A buffered event has no id yet, but the activity, timer or message that it ends has ended and must not end again. */
static hf_status mark_ended(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_history_event event;
    HF_TRY(hf_pb_decode(a->op, &hf_pb_history_event_type, bytes, a->memory->scratch, &event));
    if (!hf_event_may_wait(&event)) {
        return cannot(a, run, &event, "it cannot be buffered, or its attributes are missing or wrong");
    }
    if (event.event_type == HF_EVENT_TYPE_TIMER_FIRED) {
        return hf_timer_mark_fired(a, run, &event);
    }
    HF_TRY(hf_external_mark_ended(a, run, &event));
    HF_TRY(hf_child_mark(a, run, &event));
    return hf_activity_mark_ended(a, run, &event);
}

static hf_status apply_buffered(hf_apply *a, hf_run *run, hf_str bytes)
{
    HF_TRY(mark_ended(a, run, bytes));
    if (HF_VEC_RESERVE(a->memory, &run->buffered)) {
        run->buffered.items[run->buffered.count] = (hf_owned){NULL, 0};
        hf_owned_set(a->memory, &run->buffered.items[run->buffered.count++], bytes);
        run->buffered_len += bytes.len;
    }
    return a->memory->status;
}

static hf_status apply_unbuffered(hf_apply *a, hf_run *run, uint64_t index_plus_one)
{
    if (index_plus_one == 0 || index_plus_one > run->buffered.count) {
        return hf_fail(a->op, HF_ERR_INVALID, "run %lld: there is no buffered event %llu", (long long)run->number,
                       (unsigned long long)index_plus_one);
    }
    size_t index = (size_t)index_plus_one - 1;
    hf_assert(run->buffered_len >= run->buffered.items[index].len);
    run->buffered_len -= run->buffered.items[index].len;
    hf_owned_free(a->memory, &run->buffered.items[index]);
    run->buffered.count--;
    memmove(&run->buffered.items[index], &run->buffered.items[index + 1],
            (run->buffered.count - index) * sizeof *run->buffered.items);
    hf_assert(run->buffered.count > 0 || run->buffered_len == 0);
    return HF_OK;
}

static hf_status apply_request_id(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_run_remember(a->memory, run, bytes);
    return a->memory->status;
}

/* The run is marked for deletion, or loses its name. Neither is part of its history, and both happen only to a run that has ended. */
static hf_status apply_leaving(hf_apply *a, hf_run *run, const hf_pb_raw *field)
{
    bool is_known = field->number == HF_CHANGE_UNNAMED || (field->value > 0 && field->value < HF_DELETING_COUNT);
    bool has_begun = run->event_count > 0 || run->operation.len > 0;
    if (hf_run_is_open(run) || !has_begun || !is_known) {
        return hf_fail(a->op, HF_ERR_INVALID, "run %lld cannot be deleted or lose its name", (long long)run->number);
    }
    if (field->number == HF_CHANGE_UNNAMED) {
        run->is_nameless = true;
    } else {
        run->deleting = (hf_deleting)field->value;
    }
    return HF_OK;
}

hf_status hf_apply_change(hf_apply *a, hf_run *run, const hf_pb_raw *field)
{
    hf_assert(a->op != NULL && a->memory != NULL && a->effects != NULL);
    switch (field->number) {
    case HF_CHANGE_EVENT: {
        hf_pb_history_event event;
        if (field->whole.len != element_len(field->bytes.len)) { /* history_len would be wrong for the log */
            return hf_fail(a->op, HF_ERR_INVALID, "run %lld: an event is not encoded as a field",
                           (long long)run->number);
        }
        HF_TRY(hf_pb_decode(a->op, &hf_pb_history_event_type, field->bytes, a->memory->scratch, &event));
        return hf_apply_event(a, run, &event, field->bytes);
    }
    case HF_CHANGE_CREATED:
        return apply_created(a, run, field->bytes);
    case HF_CHANGE_TASK_SCHEDULED:
        return hf_wft_apply_scheduled(a, run, field->bytes);
    case HF_CHANGE_TASK_STARTED:
        return hf_wft_apply_started(a, run, field->bytes);
    case HF_CHANGE_TASK_RESET:
        return hf_wft_apply_reset(a, run, field->bytes);
    case HF_CHANGE_STICKY:
        return apply_sticky(a, run, field->bytes);
    case HF_CHANGE_ACTIVITY_STARTED:
        return hf_activity_apply_started(a, run, field->bytes);
    case HF_CHANGE_ACTIVITY_RETRY:
        return hf_activity_apply_retry(a, run, field->bytes);
    case HF_CHANGE_ACTIVITY_HEARTBEAT:
        return hf_activity_apply_heartbeat(a, run, field->bytes);
    case HF_CHANGE_BUFFERED:
        return apply_buffered(a, run, field->bytes);
    case HF_CHANGE_UNBUFFERED:
        return apply_unbuffered(a, run, field->value);
    case HF_CHANGE_UNBUFFERED_ALL:
        while (run->buffered.count > 0) {
            HF_TRY(apply_unbuffered(a, run, run->buffered.count));
        }
        return HF_OK;
    case HF_CHANGE_REQUEST_ID:
        return apply_request_id(a, run, field->bytes);
    case HF_CHANGE_EXTERNAL_GONE:
        return hf_external_apply_gone(a, run, (int64_t)field->value);
    case HF_CHANGE_CHILD_GONE:
        return hf_child_apply_gone(a, run, (int64_t)field->value);
    case HF_CHANGE_TOLD:
        run->is_untold = false;
        return HF_OK;
    case HF_CHANGE_RUN_RESET:
        return hf_run_apply_reset(a, run, field->bytes);
    case HF_CHANGE_TASK_MOVED:
        return hf_task_apply_moved(a, run, field->bytes);
    case HF_CHANGE_ACTIVITY_PAUSED:
        return hf_activity_apply_paused(a, run, field->bytes);
    case HF_CHANGE_ACTIVITY_CONTROLLED:
        return hf_activity_apply_controlled(a, run, field->bytes);
    case HF_CHANGE_OPERATION_STARTED:
        return hf_operation_apply_started(a, run, field->bytes);
    case HF_CHANGE_OPERATION_MOVED:
        return hf_operation_apply_moved(a, run, field->bytes);
    case HF_CHANGE_STREAM_APPENDED:
        return hf_run_stream_apply_appended(a, run, field->bytes);
    case HF_CHANGE_STREAM_BEGAN:
        return hf_run_stream_apply_began(a, run, field->bytes);
    case HF_CHANGE_KEPT:
        if ((int64_t)field->value <= 0 || run->close_event_id != 0) {
            return hf_fail(a->op, HF_ERR_INVALID, "run %lld cannot be kept like that", (long long)run->number);
        }
        run->keep = (int64_t)field->value;
        return HF_OK;
    case HF_CHANGE_DELETING:
    case HF_CHANGE_UNNAMED:
        return apply_leaving(a, run, field);
    default:
        return hf_fail(a->op, HF_ERR_UNSUPPORTED, "run %lld: a change of kind %u is from a newer version",
                       (long long)run->number, field->number);
    }
}

hf_status hf_apply_log(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str log)
{
    hf_assert(memory->scratch != NULL);
    hf_effects effects;
    hf_effects_init(&effects);
    hf_apply a = {.op = op, .memory = memory, .effects = &effects};
    hf_status status = HF_OK;
    hf_pb_raw field;
    while (status == HF_OK && log.len > 0) {
        hf_arena_rewind(memory->scratch);
        status = hf_pb_next(&log, &field)
                     ? hf_apply_change(&a, run, &field)
                     : hf_fail(op, HF_ERR_INVALID, "changes of run %lld cannot be read", (long long)run->number);
        hf_effects_clear(memory, &effects);
    }
    hf_effects_deinit(memory, &effects);
    return hf_run_memory_judge(op, memory, status);
}
