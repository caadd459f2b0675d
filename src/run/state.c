/* The state of a run as bytes: for its row in the store, and to compare two runs. */
#include "run/machines.h"

#include "base/canary.h"
#include "run/stream.h"

static hf_pb_workflow_task_state encode_wft(const hf_wft *wft, bool rest)
{
    hf_pb_workflow_task_state msg = {
        .last_started_id = wft->last_started_id,
        .completed_id = wft->completed_id,
    };
    if (!rest && (wft->state == HF_WFT_NONE || wft->is_transient)) {
        return msg; /* no history shows the attempts of a transient task */
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
        msg.first_time = wft->first_time;
        msg.identity = hf_owned_str(&wft->identity);
        msg.request_id = hf_owned_str(&wft->request_id);
    }
    return msg;
}

/* A piece of the state, unless it has a row of its own. */
static hf_str piece_of(const hf_run *run, hf_encode mode, int64_t key, const hf_owned *piece)
{
    bool is_part = mode == HF_ENCODE_ROW && run->parts.count > 0 && hf_run_has_part(run, key);
    return is_part ? HF_STR("") : hf_owned_str(piece);
}

static hf_pb_activity_state encode_activity(const hf_run *run, const hf_activity *activity, hf_encode mode)
{
    bool rest = mode != HF_ENCODE_TOLD;
    hf_pb_activity_state msg = {
        .scheduled_id = activity->scheduled_id,
        .scheduled = piece_of(run, mode, HF_PART_ACTIVITIES + activity->scheduled_id, &activity->scheduled),
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
        msg.pause = hf_owned_str(&activity->pause);
        msg.reset = activity->is_reset;
        msg.forget_heartbeat = activity->forgets_heartbeat;
        msg.attempt_given = activity->attempt_given;
        msg.options = hf_owned_str(&activity->options);
        msg.attempt_end = activity->attempt_end;
        msg.first_time = activity->is_renewed ? activity->first_time : 0;
    }
    return msg;
}

static hf_pb_child_state encode_child(const hf_child *child, bool rest)
{
    hf_pb_child_state msg = {
        .initiated_id = child->initiated_id,
        .started_id = child->started_id,
        .policy = child->policy,
        .event = hf_owned_str(&child->event),
        .workflow_id = hf_owned_str(&child->workflow_id),
        .workflow_type = hf_owned_str(&child->workflow_type),
    };
    if (rest || child->started_id != 0) {
        msg.run_id = hf_owned_str(&child->run_id);
    }
    msg.state = rest ? (int32_t)child->state : 0;
    return msg;
}

/* Request ids, and the parts that have rows of their own. */
static bool encode_parts(hf_arena *arena, const hf_run *run, hf_encode mode, hf_pb_run_state *msg)
{
    size_t count = HF_CANARY(HF_BUG_IDS_NOT_WRITTEN) ? 0 : run->request_ids.count;
    size_t in_parts = mode == HF_ENCODE_ROW ? count - count % HF_PART_REQUEST_COUNT : 0;
    if (count > in_parts) {
        msg->request_hashes =
            hf_str_of_len(&run->request_ids.items[in_parts], (count - in_parts) * sizeof *run->request_ids.items);
    }
    if (mode != HF_ENCODE_ROW) {
        return true;
    }
    msg->parts.items = HF_ARENA_ARRAY(arena, hf_pb_state_part, run->parts.count);
    for (; arena->status == HF_OK && msg->parts.count < run->parts.count; msg->parts.count++) {
        const hf_part *part = &run->parts.items[msg->parts.count];
        msg->parts.items[msg->parts.count] = (hf_pb_state_part){.key = part->key, .crc = part->crc};
    }
    return arena->status == HF_OK;
}

static bool encode_lists(hf_run_memory *memory, const hf_run *run, hf_encode mode, hf_pb_run_state *msg)
{
    bool rest = mode != HF_ENCODE_TOLD;
    hf_arena *arena = memory->scratch;
    msg->activities.items = HF_ARENA_ARRAY(arena, hf_pb_activity_state, run->activities.count);
    msg->timers.items = HF_ARENA_ARRAY(arena, hf_pb_timer_state, run->timers.count);
    msg->externals.items = HF_ARENA_ARRAY(arena, hf_pb_external_state, run->externals.count);
    msg->children.items = HF_ARENA_ARRAY(arena, hf_pb_child_state, run->children.count);
    msg->updates.items = HF_ARENA_ARRAY(arena, hf_pb_update_state, run->updates.count);
    msg->attached.items = HF_ARENA_ARRAY(arena, hf_pb_attached_id, run->attached.count);
    msg->buffered.items = HF_ARENA_ARRAY(arena, hf_str, run->buffered.count);
    msg->rows_written.items = HF_ARENA_ARRAY(arena, hf_pb_task_row, run->rows_written.count);
    msg->resets.items = HF_ARENA_ARRAY(arena, hf_pb_run_reset, run->resets.count);
    if (arena->status != HF_OK) {
        return false;
    }
    for (; msg->activities.count < run->activities.count; msg->activities.count++) {
        msg->activities.items[msg->activities.count] =
            encode_activity(run, run->activities.items[msg->activities.count], mode);
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
    for (; msg->updates.count < run->updates.count; msg->updates.count++) {
        const hf_update *update = &run->updates.items[msg->updates.count];
        msg->updates.items[msg->updates.count] = (hf_pb_update_state){
            .id = hf_owned_str(&update->id),
            .admitted_event_id = update->admitted_id,
            .accepted_event_id = update->accepted_id,
            .completed_event_id = HF_CANARY(HF_BUG_UPDATE_LOST) ? 0 : update->completed_id,
        };
    }
    for (; msg->attached.count < run->attached.count; msg->attached.count++) {
        const hf_attached *attached = &run->attached.items[msg->attached.count];
        msg->attached.items[msg->attached.count] = (hf_pb_attached_id){
            .id = hf_owned_str(&attached->id),
            .event_id = attached->event_id,
        };
    }
    /* The outcome of a closed run's messages is in no history. */
    for (; (rest || hf_run_is_open(run)) && msg->externals.count < run->externals.count; msg->externals.count++) {
        const hf_external *external = &run->externals.items[msg->externals.count];
        msg->externals.items[msg->externals.count] = (hf_pb_external_state){
            .initiated_id = external->initiated_id,
            .event = hf_owned_str(&external->event),
            .state = rest ? (int32_t)external->state : 0,
        };
    }
    for (; (rest || hf_run_is_open(run)) && msg->children.count < run->children.count; msg->children.count++) {
        msg->children.items[msg->children.count] = encode_child(&run->children.items[msg->children.count], rest);
    }
    if (!rest) {
        return true;
    }
    for (; msg->buffered.count < run->buffered.count; msg->buffered.count++) {
        msg->buffered.items[msg->buffered.count] = hf_owned_str(&run->buffered.items[msg->buffered.count]);
    }
    for (; msg->resets.count < run->resets.count; msg->resets.count++) {
        const hf_reset_made *made = &run->resets.items[msg->resets.count];
        msg->resets.items[msg->resets.count] =
            (hf_pb_run_reset){.request_id = hf_owned_str(&made->request_id), .run_id = hf_owned_str(&made->run_id)};
    }
    for (; msg->rows_written.count < run->rows_written.count; msg->rows_written.count++) {
        const hf_task_key *key = &run->rows_written.items[msg->rows_written.count];
        msg->rows_written.items[msg->rows_written.count] =
            (hf_pb_task_row){.queue = hf_owned_str(&key->queue), .order = key->order};
    }
    return hf_run_stream_encode(run, arena, msg) && encode_parts(arena, run, mode, msg);
}

/* A row leaves out what other fields of it tell: of a run that waits, with its few events inside, that is a twentieth. */
static void abridge(const hf_run *run, hf_pb_run_state *msg)
{
    if (hf_str_equal(msg->first_run_id, msg->run_id)) {
        msg->first_run_id = HF_STR("");
    }
    if (msg->transition_time == msg->last_time) {
        msg->transition_time = 0;
    }
    if (!hf_run_is_open(run) && msg->close_time == msg->last_time) {
        msg->close_time = 0;
    }
}

void hf_run_unabridge(hf_pb_run_state *msg)
{
    if (msg->first_run_id.len == 0) {
        msg->first_run_id = msg->run_id;
    }
    if (msg->transition_time == 0) {
        msg->transition_time = msg->last_time;
    }
    if (msg->status != HF_WORKFLOW_EXECUTION_STATUS_RUNNING && msg->close_time == 0) {
        msg->close_time = msg->last_time;
    }
}

void hf_run_encode(hf_run_memory *memory, const hf_run *run, hf_encode mode, hf_str tail, hf_buf *out)
{
    bool rest = mode != HF_ENCODE_TOLD;
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
        .kind = (int32_t)run->kind,
        .start = piece_of(run, mode, HF_PART_START, &run->start),
        .memo = piece_of(run, mode, HF_PART_MEMO, &run->memo),
        .search_attributes = piece_of(run, mode, HF_PART_SEARCH_ATTRIBUTES, &run->search_attributes),
        .user_metadata = piece_of(run, mode, HF_PART_USER_METADATA, &run->user_metadata),
        .first_task_at = run->first_task_at,
        .expiration = run->expiration,
        .operation = piece_of(run, mode, HF_PART_OPERATION, &run->operation),
        .progress = hf_owned_str(&run->progress),
    };
    if (rest) {
        msg.version = HF_RUN_VERSION;
        msg.is_untold = run->is_untold;
        msg.commit = run->commit_last;
        msg.transitions = run->transitions;
        msg.transition_time = run->transition_time;
        msg.sticky_queue = hf_owned_str(&run->sticky_queue);
        msg.sticky_timeout = run->sticky_timeout;
        msg.due_written = run->due_written;
        msg.spilled = run->spilled;
        msg.spilled_chain = run->spilled_chain;
        msg.spilled_len = run->spilled_len;
        msg.tail = tail;
        msg.is_deleting = HF_CANARY(HF_BUG_DELETED_BACK) ? 0 : (int32_t)run->deleting;
        msg.is_nameless = run->is_nameless;
        msg.reset_run_id = hf_owned_str(&run->reset_run_id);
        msg.next_run_id = hf_owned_str(&run->next_run_id);
        msg.keep = run->keep;
        msg.unknown = hf_owned_str(&run->unknown);
    }
    if (mode == HF_ENCODE_ROW) {
        abridge(run, &msg);
    }
    if (!encode_lists(memory, run, mode, &msg)) {
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
    wft->first_time = msg->first_time != 0 ? msg->first_time : msg->scheduled_time;
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
    if (msg->scheduled_id >= HF_PART_KEY_MAX - HF_PART_ACTIVITIES || msg->state <= HF_ACTIVITY_NEW ||
        msg->state >= HF_ACTIVITY_STATE_COUNT) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: activity %lld has an unknown state", (long long)run->number,
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
    hf_owned_set(memory, &activity->pause, msg->pause);
    activity->is_reset = msg->reset;
    activity->forgets_heartbeat = msg->forget_heartbeat;
    activity->attempt_given = msg->attempt_given;
    activity->attempt_end = msg->attempt_end;
    activity->is_renewed = msg->first_time != 0;
    activity->first_time = activity->is_renewed ? msg->first_time : activity->first_time;
    return msg->options.len > 0 ? hf_activity_set_options(op, memory, activity, msg->options) : memory->status;
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

static hf_status decode_child(hf_op *op, hf_run_memory *memory, hf_run *run, const hf_pb_child_state *msg)
{
    hf_pb_history_event event = {0};
    bool is_good = msg->state > HF_CHILD_NEW && msg->state < HF_CHILD_STATE_COUNT && msg->workflow_id.len > 0;
    if (is_good && msg->started_id == 0 && msg->state != HF_CHILD_LEFT) { /* else there is no event to look at */
        HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, msg->event, memory->scratch, &event));
        is_good =
            event.event_id == msg->initiated_id &&
            event.event_type == HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED &&
            event.attributes_case == HF_PB_HISTORY_EVENT_START_CHILD_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES;
    }
    if (!is_good) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: its child %lld cannot be read", (long long)run->number,
                       (long long)msg->initiated_id);
    }
    hf_child *child = hf_child_add(memory, run, msg->initiated_id);
    if (child != NULL) {
        hf_child_set(run, child, (hf_child_state)msg->state);
        child->policy = msg->policy;
        child->started_id = msg->started_id;
        hf_owned_set(memory, &child->event, msg->event);
        hf_owned_set(memory, &child->workflow_id, msg->workflow_id);
        hf_owned_set(memory, &child->workflow_type, msg->workflow_type);
        hf_owned_set(memory, &child->run_id, msg->run_id);
    }
    return memory->status;
}

static hf_status decode_buffered(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str bytes)
{
    hf_pb_history_event event;
    HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, bytes, memory->scratch, &event));
    if (!hf_event_may_wait(&event)) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: an event is buffered that cannot be", (long long)run->number);
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
    for (size_t i = 0; i < msg->children.count; i++) {
        HF_TRY(decode_child(op, memory, run, &msg->children.items[i]));
    }
    for (size_t i = 0; i < msg->updates.count; i++) {
        const hf_pb_update_state *update = &msg->updates.items[i];
        if (update->id.len == 0) {
            return hf_fail(op, HF_ERR_INVALID, "run %lld: an update has no id", (long long)run->number);
        }
        hf_update *added = hf_update_add(memory, run, update->id);
        if (added != NULL) {
            added->admitted_id = update->admitted_event_id;
            added->accepted_id = update->accepted_event_id;
            added->completed_id = update->completed_event_id;
        }
    }
    for (size_t i = 0; i < msg->attached.count; i++) {
        if (msg->attached.items[i].id.len == 0) {
            return hf_fail(op, HF_ERR_INVALID, "run %lld: an attached request id is empty", (long long)run->number);
        }
        hf_attached_add(memory, run, msg->attached.items[i].id, msg->attached.items[i].event_id);
    }
    for (size_t i = 0; i < msg->buffered.count; i++) {
        HF_TRY(decode_buffered(op, memory, run, msg->buffered.items[i]));
    }
    for (size_t i = 0; i < msg->request_ids.count; i++) {
        if (HF_VEC_RESERVE(memory, &run->request_ids)) {
            run->request_ids.items[run->request_ids.count++] = hf_request_hash(msg->request_ids.items[i]);
        }
    }
    for (size_t i = 0; i < msg->request_hashes.len / sizeof(uint64_t); i++) {
        if (HF_VEC_RESERVE(memory, &run->request_ids)) {
            memcpy(&run->request_ids.items[run->request_ids.count++], msg->request_hashes.data + i * sizeof(uint64_t),
                   sizeof(uint64_t));
        }
    }
    for (size_t i = 0; i < msg->parts.count; i++) {
        if (HF_VEC_RESERVE(memory, &run->parts)) {
            run->parts.items[run->parts.count++] = (hf_part){msg->parts.items[i].key, msg->parts.items[i].crc};
        }
    }
    for (size_t i = 0; i < msg->resets.count && i < HF_RESETS_KEPT_MAX; i++) {
        hf_resets_add(memory, run, msg->resets.items[i].request_id, msg->resets.items[i].run_id);
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

/* A row of an earlier version: the fields that were added since are in its first event. */
static hf_status learn(hf_op *op, hf_run_memory *memory, hf_run *run)
{
    if (run->spilled > 0) {
        run->is_unlearned = true; /* that event is in another row */
        return HF_OK;
    }
    return hf_run_learn_late(op, memory, run, hf_str_of_len(run->log.data, run->log.len));
}

hf_status hf_run_decode(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str body, const hf_part_rows *rows,
                        bool *ret_wants_parts)
{
    hf_assert(run->event_count == 0 && run->log.len == 0); /* empty */
    hf_pb_run_state msg;
    HF_TRY(hf_pb_decode(op, &hf_pb_run_state_type, body, memory->scratch, &msg));
    if (msg.version > HF_RUN_VERSION || msg.kind < 0 || msg.kind >= HF_RUN_KIND_COUNT) {
        return hf_fail(op, HF_ERR_UNSUPPORTED, "the state of run %lld was written by a newer version",
                       (long long)run->number);
    }
    if (msg.is_deleting < 0 || msg.is_deleting >= HF_DELETING_COUNT || msg.run != run->number || msg.task == NULL ||
        msg.task->state < 0 || msg.task->state > HF_WFT_STARTED) {
        return hf_fail(op, HF_ERR_INVALID, "the state of run %lld cannot be decoded", (long long)run->number);
    }
    *ret_wants_parts = msg.parts.count > 0 && rows == NULL;
    if (*ret_wants_parts) {
        return HF_OK;
    }
    if (msg.parts.count > 0) {
        HF_TRY(hf_parts_fill(op, rows, memory->scratch, &msg));
    }
    hf_run_unabridge(&msg);
    hf_owned_set(memory, &run->namespace, msg.namespace);
    hf_owned_set(memory, &run->workflow_id, msg.workflow_id);
    hf_owned_set(memory, &run->run_id, msg.run_id);
    hf_owned_set(memory, &run->start_request_id, msg.start_request_id);
    hf_owned_set(memory, &run->first_run_id, msg.first_run_id);
    hf_owned_set(memory, &run->workflow_type, msg.workflow_type);
    hf_owned_set(memory, &run->task_queue, msg.task_queue);
    hf_owned_set(memory, &run->start, msg.start);
    hf_owned_set(memory, &run->memo, msg.memo);
    hf_owned_set(memory, &run->search_attributes, msg.search_attributes);
    hf_owned_set(memory, &run->user_metadata, msg.user_metadata);
    run->kind = (hf_run_kind)msg.kind;
    run->first_task_at = msg.first_task_at;
    run->expiration = msg.expiration;
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
    run->deleting = (hf_deleting)msg.is_deleting;
    run->is_nameless = msg.is_nameless;
    run->commit_last = msg.commit;
    run->transitions = msg.transitions;
    run->transition_time = msg.transition_time;
    run->due_written = msg.due_written;
    bool has_tail = msg.tail.len > 0; /* else everything is in history rows */
    run->spilled = has_tail ? msg.spilled : msg.event_count;
    run->spilled_chain = has_tail ? msg.spilled_chain : msg.chain;
    run->spilled_len = has_tail ? msg.spilled_len : msg.history_len;
    hf_buf_put(&run->log, msg.tail.data, msg.tail.len);
    if (run->log.status != HF_OK) {
        hf_run_memory_fail(memory);
    }
    run->is_untold = msg.is_untold;
    run->sticky_timeout = msg.sticky_timeout;
    run->is_written = true;
    hf_owned_set(memory, &run->sticky_queue, msg.sticky_queue);
    hf_owned_set(memory, &run->unknown, msg.unknown);
    hf_owned_set(memory, &run->reset_run_id, msg.reset_run_id);
    hf_owned_set(memory, &run->next_run_id, msg.next_run_id);
    run->keep = msg.keep > 0 ? msg.keep : 0;
    hf_run_stream_decode(memory, run, &msg);
    decode_wft(memory, &run->wft, msg.task);
    HF_TRY(decode_lists(op, memory, run, &msg));
    HF_TRY(hf_operation_read(op, memory, run, &msg));
    if (memory->status != HF_OK) {
        return memory->status;
    }
    HF_TRY(hf_run_sound(op, run));
    HF_TRY(hf_tail_sound(op, run, msg.tail));
    return msg.version < HF_RUN_VERSION_START ? learn(op, memory, run) : HF_OK;
}
