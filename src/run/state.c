/* The state of a run as bytes: its row in the store, and what two runs are compared by. */
#include "run/machines.h"

#include "base/canary.h"

static hf_pb_workflow_task_state encode_wft(const hf_wft *wft, bool rest)
{
    hf_pb_workflow_task_state msg = {
        .last_started_id = wft->last_started_id,
        .completed_id = wft->completed_id,
    };
    if (!rest && (wft->state == HF_WFT_NONE || wft->is_transient)) {
        return msg; /* the attempts of a transient task are known to nobody but us */
    }
    msg.state = (int32_t)wft->state;
    msg.attempt = wft->attempt;
    msg.scheduled_id = wft->scheduled_id;
    msg.started_id = wft->started_id;
    msg.scheduled_time = wft->scheduled_time;
    msg.started_time = wft->started_time;
    msg.timeout = wft->timeout;
    if (rest) {
        msg.sticky = wft->sticky;
        msg.incarnation = wft->incarnation;
        msg.order = wft->task.order;
        msg.is_transient = wft->is_transient;
        msg.again = wft->again;
        msg.crashes = wft->task.crashes;
        msg.pause_until = wft->pause_until;
        msg.identity = hf_owned_str(&wft->identity);
        msg.request_id = hf_owned_str(&wft->request_id);
    }
    return msg;
}

static hf_pb_activity_state encode_activity(const hf_activity *activity, bool rest)
{
    hf_pb_activity_state msg = {
        .scheduled_id = activity->scheduled_id,
        .scheduled = hf_owned_str(&activity->scheduled),
        .cancel_requested_id = activity->cancel_requested_id,
    };
    if (rest) {
        msg.state = (int32_t)activity->state;
        msg.attempt = activity->attempt;
        msg.scheduled_time = activity->scheduled_time;
        msg.started_time = activity->started_time;
        msg.heartbeat_time = activity->heartbeat_time;
        msg.heartbeat_details = hf_owned_str(&activity->heartbeat_details);
        msg.last_failure = hf_owned_str(&activity->last_failure);
        msg.identity = hf_owned_str(&activity->identity);
        msg.incarnation = activity->incarnation;
        msg.order = activity->task.order;
        msg.again = activity->again;
        msg.crashes = activity->task.crashes;
    }
    return msg;
}

static bool encode_lists(hf_run_memory *memory, const hf_run *run, bool rest, hf_pb_run_state *msg)
{
    hf_arena *arena = memory->scratch;
    msg->activities.items = HF_ARENA_ARRAY(arena, hf_pb_activity_state, run->activities.count);
    msg->timers.items = HF_ARENA_ARRAY(arena, hf_pb_timer_state, run->timers.count);
    msg->externals.items = HF_ARENA_ARRAY(arena, hf_pb_external_state, run->externals.count);
    msg->buffered.items = HF_ARENA_ARRAY(arena, hf_str, run->buffered.count);
    msg->request_ids.items = HF_ARENA_ARRAY(arena, hf_str, run->request_ids.count);
    msg->rows_written.items = HF_ARENA_ARRAY(arena, hf_pb_task_row, run->rows_written.count);
    if (arena->status != HF_OK) {
        return false;
    }
    for (; msg->activities.count < run->activities.count; msg->activities.count++) {
        msg->activities.items[msg->activities.count] =
            encode_activity(run->activities.items[msg->activities.count], rest);
    }
    for (; msg->timers.count < run->timers.count; msg->timers.count++) {
        const hf_timer *timer = run->timers.items[msg->timers.count];
        msg->timers.items[msg->timers.count] = (hf_pb_timer_state){
            .started_id = timer->started_id,
            .timer_id = hf_owned_str(&timer->id),
            .fire_time = timer->fire_time,
            .fired = rest && timer->state == HF_TIMER_FIRED,
        };
    }
    /* A closed run's messages are nobody's business but the inbox's. */
    for (; (rest || hf_run_is_open(run)) && msg->externals.count < run->externals.count; msg->externals.count++) {
        const hf_external *external = &run->externals.items[msg->externals.count];
        msg->externals.items[msg->externals.count] = (hf_pb_external_state){
            .initiated_id = external->initiated_id,
            .event = hf_owned_str(&external->event),
            .state = rest ? (int32_t)external->state : 0,
        };
    }
    if (!rest) {
        return true;
    }
    for (; msg->buffered.count < run->buffered.count; msg->buffered.count++) {
        msg->buffered.items[msg->buffered.count] = hf_owned_str(&run->buffered.items[msg->buffered.count]);
    }
    for (; msg->request_ids.count < run->request_ids.count && !HF_CANARY(HF_BUG_IDS_NOT_WRITTEN);
         msg->request_ids.count++) {
        msg->request_ids.items[msg->request_ids.count] = hf_owned_str(&run->request_ids.items[msg->request_ids.count]);
    }
    for (; msg->rows_written.count < run->rows_written.count; msg->rows_written.count++) {
        const hf_task_key *key = &run->rows_written.items[msg->rows_written.count];
        msg->rows_written.items[msg->rows_written.count] =
            (hf_pb_task_row){.queue = hf_owned_str(&key->queue), .order = key->order};
    }
    return true;
}

void hf_run_encode(hf_run_memory *memory, const hf_run *run, bool rest, hf_str tail, hf_buf *out)
{
    hf_assert(memory->scratch != NULL && run->spilled <= run->event_count); /* run-R2 */
    hf_pb_workflow_task_state wft = encode_wft(&run->wft, rest);
    hf_pb_run_state msg = {
        .run = run->number,
        .namespace = hf_owned_str(&run->namespace),
        .workflow_id = hf_owned_str(&run->workflow_id),
        .run_id = hf_owned_str(&run->run_id),
        .start_request_id = hf_owned_str(&run->start_request_id),
        .first_run_id = hf_owned_str(&run->first_run_id),
        .workflow_type = hf_owned_str(&run->workflow_type),
        .task_queue = hf_owned_str(&run->task_queue),
        .execution_timeout = run->execution_timeout,
        .run_timeout = run->run_timeout,
        .task_timeout = run->task_timeout,
        .start_time = run->start_time,
        .run_deadline = run->run_deadline,
        .status = run->status,
        .close_time = run->close_time,
        .event_count = run->event_count,
        .history_len = run->history_len,
        .chain = run->chain,
        .last_time = run->last_time,
        .cancel_requested = run->cancel_requested,
        .task = &wft,
        .signal_count = run->signal_count,
        .close_event_id = run->close_event_id,
    };
    if (rest) {
        msg.commit = run->commit_last;
        msg.sticky_queue = hf_owned_str(&run->sticky_queue);
        msg.sticky_timeout = run->sticky_timeout;
        msg.due_written = run->due_written;
        msg.spilled = run->spilled;
        msg.spilled_chain = run->spilled_chain;
        msg.spilled_len = run->spilled_len;
        msg.tail = tail;
        msg.unknown = hf_owned_str(&run->unknown);
    }
    if (!encode_lists(memory, run, rest, &msg)) {
        hf_run_memory_fail(memory);
        return;
    }
    hf_pb_encode(&hf_pb_run_state_type, &msg, out);
}

static void decode_wft(hf_run_memory *memory, hf_wft *wft, const hf_pb_workflow_task_state *msg)
{
    wft->state = (hf_wft_state)msg->state;
    wft->attempt = msg->attempt > 0 ? msg->attempt : 1;
    wft->scheduled_id = msg->scheduled_id;
    wft->started_id = msg->started_id;
    wft->scheduled_time = msg->scheduled_time;
    wft->started_time = msg->started_time;
    wft->timeout = msg->timeout;
    wft->last_started_id = msg->last_started_id;
    wft->completed_id = msg->completed_id;
    wft->sticky = msg->sticky;
    wft->incarnation = msg->incarnation;
    wft->task.order = msg->order;
    wft->is_transient = msg->is_transient;
    wft->again = msg->again;
    wft->task.crashes = msg->crashes;
    wft->pause_until = msg->pause_until;
    hf_owned_set(memory, &wft->identity, msg->identity);
    hf_owned_set(memory, &wft->request_id, msg->request_id);
}

static hf_status decode_activity(hf_op *op, hf_run_memory *memory, hf_run *run, const hf_pb_activity_state *msg)
{
    hf_pb_history_event event;
    HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, msg->scheduled, memory->scratch, &event));
    if (event.event_type != HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED || event.event_id != msg->scheduled_id ||
        event.attributes_case != HF_PB_HISTORY_EVENT_ACTIVITY_TASK_SCHEDULED_EVENT_ATTRIBUTES) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: activity %lld cannot be read", (long long)run->number,
                       (long long)msg->scheduled_id);
    }
    if (msg->state <= HF_ACTIVITY_NEW || msg->state >= HF_ACTIVITY_STATE_COUNT) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: activity %lld is in no state", (long long)run->number,
                       (long long)msg->scheduled_id);
    }
    hf_activity *activity = hf_activity_add(memory, run, &event, msg->scheduled);
    if (activity == NULL) {
        return HF_ERR_NOMEM;
    }
    activity->state = (hf_activity_state)msg->state;
    activity->attempt = msg->attempt;
    activity->scheduled_time = msg->scheduled_time;
    activity->started_time = msg->started_time;
    activity->heartbeat_time = msg->heartbeat_time;
    activity->cancel_requested_id = msg->cancel_requested_id;
    activity->incarnation = msg->incarnation;
    activity->task.order = msg->order;
    activity->again = msg->again;
    activity->task.crashes = msg->crashes;
    hf_owned_set(memory, &activity->heartbeat_details, msg->heartbeat_details);
    hf_owned_set(memory, &activity->last_failure, msg->last_failure);
    hf_owned_set(memory, &activity->identity, msg->identity);
    return HF_OK;
}

static hf_status decode_external(hf_op *op, hf_run_memory *memory, hf_run *run, const hf_pb_external_state *msg)
{
    hf_pb_history_event event;
    HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, msg->event, memory->scratch, &event));
    if (!hf_external_is_good(&event) || msg->state <= HF_EXTERNAL_NEW || msg->state >= HF_EXTERNAL_STATE_COUNT) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: its message %lld cannot be read", (long long)run->number,
                       (long long)msg->initiated_id);
    }
    hf_external *external = hf_external_add(memory, run, msg->initiated_id, msg->event);
    if (external != NULL) {
        external->state = (hf_external_state)msg->state;
    }
    return memory->status;
}

static hf_status decode_buffered(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str bytes)
{
    hf_pb_history_event event;
    HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, bytes, memory->scratch, &event));
    if (!hf_event_may_wait(&event)) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: an event that waits is not one that may", (long long)run->number);
    }
    if (HF_VEC_RESERVE(memory, &run->buffered)) {
        run->buffered.items[run->buffered.count] = (hf_owned){NULL, 0};
        hf_owned_set(memory, &run->buffered.items[run->buffered.count++], bytes);
        run->buffered_len += bytes.len;
    }
    return memory->status;
}

static hf_status decode_lists(hf_op *op, hf_run_memory *memory, hf_run *run, const hf_pb_run_state *msg)
{
    for (size_t i = 0; i < msg->activities.count; i++) {
        HF_TRY(decode_activity(op, memory, run, &msg->activities.items[i]));
    }
    for (size_t i = 0; i < msg->timers.count; i++) {
        const hf_pb_timer_state *timer = &msg->timers.items[i];
        hf_timer *added = hf_timer_add(memory, run, timer->started_id, timer->timer_id, timer->fire_time);
        if (added != NULL && timer->fired) {
            added->state = HF_TIMER_FIRED;
        }
    }
    for (size_t i = 0; i < msg->externals.count; i++) {
        HF_TRY(decode_external(op, memory, run, &msg->externals.items[i]));
    }
    for (size_t i = 0; i < msg->buffered.count; i++) {
        HF_TRY(decode_buffered(op, memory, run, msg->buffered.items[i]));
    }
    for (size_t i = 0; i < msg->request_ids.count; i++) {
        if (HF_VEC_RESERVE(memory, &run->request_ids)) {
            run->request_ids.items[run->request_ids.count] = (hf_owned){NULL, 0};
            hf_owned_set(memory, &run->request_ids.items[run->request_ids.count++], msg->request_ids.items[i]);
        }
    }
    for (size_t i = 0; i < msg->rows_written.count; i++) {
        if (HF_VEC_RESERVE(memory, &run->rows_written)) {
            hf_task_key *key = &run->rows_written.items[run->rows_written.count++];
            *key = (hf_task_key){.order = msg->rows_written.items[i].order};
            hf_owned_set(memory, &key->queue, msg->rows_written.items[i].queue);
        }
    }
    return HF_OK;
}

hf_status hf_run_decode(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str body)
{
    hf_assert(run->event_count == 0 && run->log.len == 0); /* empty */
    hf_pb_run_state msg;
    HF_TRY(hf_pb_decode(op, &hf_pb_run_state_type, body, memory->scratch, &msg));
    if (msg.run != run->number || msg.task == NULL || msg.task->state < 0 || msg.task->state > HF_WFT_STARTED) {
        return hf_fail(op, HF_ERR_INVALID, "the state of run %lld cannot be decoded", (long long)run->number);
    }
    hf_owned_set(memory, &run->namespace, msg.namespace);
    hf_owned_set(memory, &run->workflow_id, msg.workflow_id);
    hf_owned_set(memory, &run->run_id, msg.run_id);
    hf_owned_set(memory, &run->start_request_id, msg.start_request_id);
    hf_owned_set(memory, &run->first_run_id, msg.first_run_id);
    hf_owned_set(memory, &run->workflow_type, msg.workflow_type);
    hf_owned_set(memory, &run->task_queue, msg.task_queue);
    run->execution_timeout = msg.execution_timeout;
    run->run_timeout = msg.run_timeout;
    run->task_timeout = msg.task_timeout;
    run->start_time = msg.start_time;
    run->run_deadline = msg.run_deadline;
    run->status = msg.status;
    run->close_time = msg.close_time;
    run->event_count = msg.event_count;
    run->history_len = msg.history_len;
    run->chain = msg.chain;
    run->last_time = msg.last_time;
    run->cancel_requested = msg.cancel_requested;
    run->signal_count = msg.signal_count;
    run->close_event_id = msg.close_event_id;
    run->commit_last = msg.commit;
    run->due_written = msg.due_written;
    bool has_tail = msg.tail.len > 0; /* else everything is in history rows */
    run->spilled = has_tail ? msg.spilled : msg.event_count;
    run->spilled_chain = has_tail ? msg.spilled_chain : msg.chain;
    run->spilled_len = has_tail ? msg.spilled_len : msg.history_len;
    hf_buf_put(&run->log, msg.tail.data, msg.tail.len);
    if (run->log.status != HF_OK) {
        hf_run_memory_fail(memory);
    }
    run->sticky_timeout = msg.sticky_timeout;
    run->is_written = true;
    hf_owned_set(memory, &run->sticky_queue, msg.sticky_queue);
    hf_owned_set(memory, &run->unknown, msg.unknown);
    decode_wft(memory, &run->wft, msg.task);
    HF_TRY(decode_lists(op, memory, run, &msg));
    if (memory->status != HF_OK) {
        return memory->status;
    }
    HF_TRY(hf_run_sound(op, run));
    return hf_tail_sound(op, run, msg.tail);
}
