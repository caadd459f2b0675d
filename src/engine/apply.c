/* Apply: changes become state. The only code that changes a run; see run.h.
 *
 * It takes what a live step decided, what a journal recorded and what a stranger's history says alike, so it checks: a change
 * that the machines do not allow is refused. In a live step that is a broken invariant and stops the core; in a history from
 * outside it is a bad history. */
#include "engine/core.h"

#include "base/digest.h"

typedef hf_status (*event_fn)(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes);

/* Bytes of an event as an element of a History: tag, length, event. */
static size_t element_len(size_t len)
{
    size_t prefix = 2;
    for (size_t left = len; left >= 0x80; left >>= 7) {
        prefix++;
    }
    return prefix + len;
}

static hf_status cannot(hf_op *op, const hf_run *run, const hf_pb_history_event *event, const char *why)
{
    return hf_fail(op, HF_ERR_INVALID, "run %lld: event %lld (type %d) cannot follow: %s", (long long)run->number,
                   (long long)event->event_id, (int)event->event_type, why);
}

static hf_status started(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_execution_started_event_attributes *attrs = event->workflow_execution_started_event_attributes;
    if (run->event_count != 1 || !hf_execution_move(core, run, HF_WORKFLOW_EXECUTION_STATUS_RUNNING)) {
        return cannot(op, run, event, "a run starts once");
    }
    hf_owned_set(core, &run->workflow_type, attrs->workflow_type != NULL ? attrs->workflow_type->name : HF_STR(""));
    hf_owned_set(core, &run->task_queue, attrs->task_queue != NULL ? attrs->task_queue->name : HF_STR(""));
    if (run->workflow_id.len == 0) {
        hf_owned_set(core, &run->workflow_id, attrs->workflow_id);
    }
    hf_owned_set(core, &run->first_run_id, attrs->first_execution_run_id);
    run->execution_timeout = hf_pb_duration_span(attrs->workflow_execution_timeout).ns;
    run->run_timeout = hf_pb_duration_span(attrs->workflow_run_timeout).ns;
    run->task_timeout = hf_pb_duration_span(attrs->workflow_task_timeout).ns;
    run->start_time = hf_pb_timestamp_time(event->event_time).ns;
    run->run_deadline = hf_execution_deadline(run);
    if (run->run_deadline != 0) {
        hf_due_at(core, run, run->run_deadline);
    }
    return HF_OK;
}

static hf_status closed(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    static const int32_t STATUS[] = {
        [HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED] = HF_WORKFLOW_EXECUTION_STATUS_COMPLETED,
        [HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED] = HF_WORKFLOW_EXECUTION_STATUS_FAILED,
        [HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT] = HF_WORKFLOW_EXECUTION_STATUS_TIMED_OUT,
        [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED] = HF_WORKFLOW_EXECUTION_STATUS_CANCELED,
        [HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED] = HF_WORKFLOW_EXECUTION_STATUS_TERMINATED,
        [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW] = HF_WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
    };
    if (!hf_execution_move(core, run, STATUS[event->event_type])) {
        return cannot(op, run, event, "the run is not open");
    }
    if (run->wft.state != HF_WFT_NONE && !hf_wft_move(core, run, HF_WFT_NONE)) {
        return cannot(op, run, event, "its workflow task is pending");
    }
    run->close_time = hf_pb_timestamp_time(event->event_time).ns;
    run->close_event_id = event->event_id;
    hf_run_drop_pending(core, run);
    return HF_OK;
}

static hf_status signaled(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)op;
    (void)core;
    (void)event;
    (void)bytes;
    run->signal_count++;
    return HF_OK;
}

static hf_status cancel_requested(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)op;
    (void)core;
    (void)event;
    (void)bytes;
    run->cancel_requested = true;
    return HF_OK;
}

/* Kinds that are not named here change nothing but the count, the chain and the clock: markers, and what later versions
 * give a meaning to. */
static const event_fn EVENTS[] = {
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED] = started,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED] = closed,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED] = closed,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT] = closed,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED] = closed,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED] = closed,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW] = closed,
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
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED] = signaled,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED] = cancel_requested,
};

/* The attributes that go with each of them: a union, so reading others would be reading anything. */
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
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED] = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED] =
        HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CANCEL_REQUESTED_EVENT_ATTRIBUTES,
};

static bool attributes_fit(const hf_pb_history_event *event)
{
    bool known = event->event_type > 0 && (size_t)event->event_type < HF_COUNT_OF(EVENTS);
    return !known || EVENTS[event->event_type] == NULL || event->attributes_case == ATTRIBUTES[event->event_type];
}

hf_status hf_apply_event(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    if (event->event_id != run->event_count + 1) {
        return cannot(op, run, event, "its id is not the next one");
    }
    if (run->event_count > 0 && !hf_run_is_open(run)) {
        return cannot(op, run, event, "the run is closed");
    }
    run->event_count++;
    run->history_len += (int64_t)element_len(bytes.len);
    run->chain = hf_digest(run->chain, bytes);
    run->last_time = hf_pb_timestamp_time(event->event_time).ns;
    if (event->event_type > 0 && (size_t)event->event_type < HF_COUNT_OF(EVENTS) && EVENTS[event->event_type] != NULL) {
        if (!attributes_fit(event)) {
            return cannot(op, run, event, "its attributes are missing, or another's");
        }
        return EVENTS[event->event_type](op, core, run, event, bytes);
    }
    return HF_OK;
}

static hf_status apply_created(hf_op *op, hf_core *core, hf_run *run, hf_str bytes)
{
    hf_pb_created msg;
    HF_TRY(hf_pb_decode(op, &hf_pb_created_type, bytes, &core->scratch, &msg));
    hf_owned_set(core, &run->namespace, msg.namespace);
    hf_owned_set(core, &run->workflow_id, msg.workflow_id);
    hf_owned_set(core, &run->run_id, msg.run_id);
    hf_owned_set(core, &run->start_request_id, msg.start_request_id);
    return HF_OK;
}

static hf_status apply_sticky(hf_op *op, hf_core *core, hf_run *run, hf_str bytes)
{
    hf_pb_sticky msg;
    HF_TRY(hf_pb_decode(op, &hf_pb_sticky_type, bytes, &core->scratch, &msg));
    hf_owned_set(core, &run->sticky_queue, msg.queue);
    run->sticky_timeout = msg.timeout;
    if (msg.queue.len == 0) {
        run->wft.sticky = false; /* a pending task is for anybody now, who needs the whole history */
    }
    return HF_OK;
}

bool hf_event_may_wait(const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
    case HF_EVENT_TYPE_TIMER_FIRED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_STARTED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_FAILED:
    case HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
    case HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED:
    case HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED:
    case HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
    case HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
    case HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
        return attributes_fit(event);
    default:
        return false;
    }
}

/* A buffered event has no id yet, but what it ends has ended: nobody may end it again. */
static hf_status mark_ended(hf_op *op, hf_core *core, hf_run *run, hf_str bytes)
{
    hf_pb_history_event event;
    HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, bytes, &core->scratch, &event));
    if (!hf_event_may_wait(&event)) {
        return cannot(op, run, &event, "it is not one that may wait, or its attributes are missing or another's");
    }
    if (event.event_type == HF_EVENT_TYPE_TIMER_FIRED) {
        return hf_timer_mark_fired(op, core, run, &event);
    }
    HF_TRY(hf_external_mark_ended(op, core, run, &event));
    return hf_activity_mark_ended(op, core, run, &event);
}

static hf_status apply_buffered(hf_op *op, hf_core *core, hf_run *run, hf_str bytes)
{
    HF_TRY(mark_ended(op, core, run, bytes));
    if (HF_VEC_RESERVE(core, &run->buffered)) {
        run->buffered.items[run->buffered.count] = (hf_owned){NULL, 0};
        hf_owned_set(core, &run->buffered.items[run->buffered.count++], bytes);
        run->buffered_len += bytes.len;
    }
    return core->status;
}

static hf_status apply_unbuffered(hf_op *op, hf_core *core, hf_run *run, uint64_t index_plus_one)
{
    if (index_plus_one == 0 || index_plus_one > run->buffered.count) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: there is no buffered event %llu", (long long)run->number,
                       (unsigned long long)index_plus_one);
    }
    size_t index = (size_t)index_plus_one - 1;
    run->buffered_len -= run->buffered.items[index].len;
    hf_owned_free(core, &run->buffered.items[index]);
    run->buffered.count--;
    memmove(&run->buffered.items[index], &run->buffered.items[index + 1],
            (run->buffered.count - index) * sizeof *run->buffered.items);
    return HF_OK;
}

static hf_status apply_request_id(hf_core *core, hf_run *run, hf_str bytes)
{
    if (HF_VEC_RESERVE(core, &run->request_ids)) {
        run->request_ids.items[run->request_ids.count] = (hf_owned){NULL, 0};
        hf_owned_set(core, &run->request_ids.items[run->request_ids.count++], bytes);
    }
    return core->status;
}

hf_status hf_apply_change(hf_op *op, hf_core *core, hf_run *run, const hf_pb_raw *field)
{
    switch (field->number) {
    case HF_CHANGE_EVENT: {
        hf_pb_history_event event;
        if (field->whole.len != element_len(field->bytes.len)) { /* history_len would not be what the log has */
            return hf_fail(op, HF_ERR_INVALID, "run %lld: an event is not written as a field", (long long)run->number);
        }
        HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, field->bytes, &core->scratch, &event));
        return hf_apply_event(op, core, run, &event, field->bytes);
    }
    case HF_CHANGE_CREATED:
        return apply_created(op, core, run, field->bytes);
    case HF_CHANGE_TASK_SCHEDULED:
        return hf_wft_apply_scheduled(op, core, run, field->bytes);
    case HF_CHANGE_TASK_STARTED:
        return hf_wft_apply_started(op, core, run, field->bytes);
    case HF_CHANGE_TASK_RESET:
        return hf_wft_apply_reset(op, core, run, field->bytes);
    case HF_CHANGE_STICKY:
        return apply_sticky(op, core, run, field->bytes);
    case HF_CHANGE_ACTIVITY_STARTED:
        return hf_activity_apply_started(op, core, run, field->bytes);
    case HF_CHANGE_ACTIVITY_RETRY:
        return hf_activity_apply_retry(op, core, run, field->bytes);
    case HF_CHANGE_ACTIVITY_HEARTBEAT:
        return hf_activity_apply_heartbeat(op, core, run, field->bytes);
    case HF_CHANGE_BUFFERED:
        return apply_buffered(op, core, run, field->bytes);
    case HF_CHANGE_UNBUFFERED:
        return apply_unbuffered(op, core, run, field->value);
    case HF_CHANGE_UNBUFFERED_ALL:
        while (run->buffered.count > 0) {
            HF_TRY(apply_unbuffered(op, core, run, run->buffered.count));
        }
        return HF_OK;
    case HF_CHANGE_REQUEST_ID:
        return apply_request_id(core, run, field->bytes);
    case HF_CHANGE_EXTERNAL_GONE:
        return hf_external_apply_gone(op, core, run, (int64_t)field->value);
    case HF_CHANGE_TASK_MOVED:
        return hf_task_apply_moved(op, core, run, field->bytes);
    default:
        return hf_fail(op, HF_ERR_UNSUPPORTED, "run %lld: a change of kind %u is from a newer version",
                       (long long)run->number, field->number);
    }
}
