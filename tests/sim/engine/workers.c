/* Workers: poll, work, answer; and everything that can go wrong in between.
 *
 *     idle --> polling --> working --> answering --> idle
 *                 |           ^  ^         |
 *                 +-> fetching+  +---------+  unknown whether it arrived: sent again
 *
 * A worker in the process dies with it and forgets everything; one outside keeps its tasks and its cache, and answers with
 * old tokens after the restart. */
#include "sim/engine/workers.h"

#include "sim/engine/asks.h"
#include "sim/engine/operator.h"

#include "history/payload.h"

#include <string.h>

static void wake(sim_world *world, sim_actor *actor);

sim_slot *sim_slot_of(sim_actor *actor)
{
    return HF_CONTAINER(actor, sim_slot, actor);
}

static void copy_text(char *to, size_t capacity, hf_str from)
{
    size_t len = from.len < capacity - 1 ? from.len : capacity - 1;
    memcpy(to, from.data, len);
    to[len] = '\0';
}

void sim_rest(sim_world *world, sim_slot *slot, int64_t span)
{
    slot->state = SIM_IDLE;
    slot->has_answer = false;
    slot->is_left = false;
    sim_wake_in(world, &slot->actor, span);
}

/* A worker may give a task back, or lose it silently. */
static bool is_dropped(sim_world *world, sim_slot *slot, sim_delivery *delivery, hf_str token)
{
    if (sim_evil(world, world->knobs.unwanted) && world->core != NULL) {
        sim_fault(world, HF_SIM_TASK_UNWANTED);
        delivery->allowed++;
        hf_core_unwanted(world->core, token, sim_now(world));
        sim_rest(world, slot, sim_upto(world, 10 * SIM_MS));
        return true;
    }
    if (sim_evil(world, world->knobs.lost)) {
        sim_fault(world, HF_SIM_TASK_LOST);
        sim_rest(world, slot, sim_upto(world, 100 * SIM_MS));
        return true;
    }
    return false;
}

static void queue_name(const sim_worker *worker, char text[SIM_NAME_LEN])
{
    (void)snprintf(text, SIM_NAME_LEN, "q%d", worker->queue);
}

sim_call *sim_ask(sim_world *world, sim_slot *slot, hf_method method, void (*then)(sim_world *, sim_call *))
{
    sim_call *call = sim_call_new(world, method, &slot->actor, then);
    call->epoch = slot->epoch;
    call->call.in_process = slot->worker->in_process;
    return call;
}

/* Whether the slot still waits for this answer. */
bool sim_is_mine(const sim_call *call)
{
    return sim_slot_of(call->actor)->epoch == call->epoch;
}

/* ---- What a worker remembers --------------------------------------------------------------------------------------- */

static sim_cached *cached(sim_worker *worker, const char *run_id)
{
    for (size_t i = 0; i < worker->cache.count; i++) {
        if (strcmp(worker->cache.items[i].run_id, run_id) == 0) {
            return &worker->cache.items[i];
        }
    }
    return NULL;
}

void sim_forget(sim_worker *worker, const char *run_id)
{
    sim_cached *entry = cached(worker, run_id);
    if (entry != NULL) {
        *entry = worker->cache.items[--worker->cache.count];
    }
}

void sim_remember(sim_worker *worker, const sim_slot *slot)
{
    sim_cached *entry = cached(worker, slot->run_id);
    if (entry == NULL) {
        entry = SIM_PUSH(&worker->cache);
        (void)snprintf(entry->run_id, sizeof entry->run_id, "%s", slot->run_id);
    }
    entry->summary = slot->summary;
}

/* The slots of activities that their process has left stay. */
static void reset_slots(sim_world *world, sim_worker *worker)
{
    worker->cache.count = 0;
    for (int i = 0; i < SIM_SLOTS; i++) {
        sim_slot *slot = &worker->slots[i];
        if (slot->is_left) {
            sim_fault(world, HF_SIM_CRASH_LEFT);
            continue;
        }
        slot->epoch++;
        slot->poll = NULL;
        sim_rest(world, slot, sim_upto(world, 100 * SIM_MS));
    }
}

void sim_workers_crashed(sim_world *world)
{
    for (int i = 0; i < world->knobs.workers; i++) {
        if (world->workers[i].in_process) {
            reset_slots(world, &world->workers[i]);
        }
    }
}

/* ---- Workflow tasks ---------------------------------------------------------------------------------------------------- */

static int64_t first_id(hf_str history)
{
    hf_pb_raw event;
    hf_pb_raw field;
    if (!hf_pb_next(&history, &event)) {
        return 0;
    }
    hf_str rest_of = event.bytes;
    return hf_pb_next(&rest_of, &field) && field.number == 1 ? (int64_t)field.value : 0;
}

/* The slot knows all events up to the started one: it works for a while. */
static void begin_workflow(sim_world *world, sim_slot *slot)
{
    const sim_summary *known = &slot->summary;
    if (slot->update_count > 0 && known->last_started != slot->started_id) {
        sim_rest(world, slot, 10 * SIM_MS); /* its task is gone, and other events have its ids */
        return;
    }
    if (known->last_id != slot->started_id || known->last_started != slot->started_id) {
        sim_fail(world, "I3: a workflow task of run %s was started by event %lld, its history ends at %lld",
                 slot->run_id, (long long)slot->started_id, (long long)known->last_id);
        return;
    }
    int64_t span = sim_upto(world, world->knobs.work_ns_max);
    if (sim_evil(world, world->knobs.late)) {
        sim_fault(world, HF_SIM_ANSWER_LATE);
        span = 11 * SIM_SECOND + sim_upto(world, 10 * SIM_SECOND);
    }
    slot->is_poison = slot->update_count == 0 && sim_is_poison(world, slot);
    slot->state = SIM_WORKING;
    sim_wake_in(world, &slot->actor, slot->is_poison ? sim_upto(world, 2 * SIM_MS) : span);
}

static void fetch(sim_world *world, sim_slot *slot);

static void keep_page(sim_slot *slot, hf_str token)
{
    slot->page_len = token.len <= sizeof slot->page ? token.len : 0;
    memcpy(slot->page, token.data != NULL ? token.data : "", slot->page_len);
}

/* The slot has the events that it was sent, or all that it fetched. The task may be over by now: then there are more
 * events than it began with, or, for a later attempt, fewer, because its last two events were never written; the answer
 * will be refused. */
static void begin_or_rest(sim_world *world, sim_slot *slot)
{
    const sim_summary *known = &slot->summary;
    bool may_be_gone = slot->attempt > 1 || slot->update_count > 0;
    if (known->last_id > slot->started_id || (may_be_gone && known->last_id < slot->started_id)) {
        sim_rest(world, slot, 10 * SIM_MS);
        return;
    }
    if (known->last_id == slot->started_id && known->last_started == slot->started_id &&
        known->last_completed_started != slot->previous_id) {
        sim_fail(world, "previous_started_event_id is %lld, it should be %lld", (long long)slot->previous_id,
                 (long long)known->last_completed_started);
        return;
    }
    begin_workflow(world, slot);
}

/* Number of events at the end of a page that are not written yet: the last two of a later attempt. */
static int unwritten(const sim_slot *slot, hf_str history)
{
    int64_t first = first_id(history);
    int64_t count = 0;
    hf_pb_raw field;
    while (history.len > 0 && hf_pb_next(&history, &field)) {
        count++;
    }
    bool may_be_unwritten = slot->attempt > 1 || slot->update_count > 0;
    return may_be_unwritten && first + count - 1 == slot->started_id ? 2 : 0;
}

static void on_fetched(sim_world *world, sim_call *call)
{
    sim_slot *slot = sim_slot_of(call->actor);
    if (!sim_is_mine(call)) {
        return;
    }
    const hf_pb_get_workflow_execution_history_response *response = call->call.response;
    if (call->call.status != HF_OK) {
        sim_rest(world, slot, 10 * SIM_MS); /* after its timeout the task goes to another worker */
        return;
    }
    size_t run = sim_log_run(world, hf_str_of(slot->run_id), hf_str_of(slot->workflow_id));
    sim_saw_history(world, run, response->history, true, unwritten(slot, response->history));
    if (slot->page_len == 0) {
        slot->summary = (sim_summary){0};
    }
    keep_page(slot, response->next_page_token);
    if (!sim_summary_add(world, &slot->summary, response->history)) {
        return;
    }
    if (slot->page_len > 0) {
        fetch(world, slot);
    } else {
        begin_or_rest(world, slot);
    }
}

static void fetch(sim_world *world, sim_slot *slot)
{
    sim_fault(world, slot->page_len > 0 ? HF_SIM_PAGE_FETCHED : HF_SIM_HISTORY_FETCHED);
    sim_call *call = sim_ask(world, slot, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, on_fetched);
    hf_pb_get_workflow_execution_history_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_get_workflow_execution_history_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->execution->workflow_id = sim_copy(call, slot->workflow_id);
    request->execution->run_id = sim_copy(call, slot->run_id);
    request->next_page_token = hf_arena_copy(&call->arena, hf_str_of_len(slot->page, slot->page_len));
    call->call.request = request;
    slot->state = SIM_FETCHING;
    sim_call_submit(world, call);
}

static bool is_complete(const hf_pb_poll_workflow_task_queue_response *response)
{
    return response->task_token.len == HF_TOKEN_LEN && response->workflow_execution != NULL &&
           response->workflow_type != NULL && response->workflow_execution_task_queue != NULL &&
           response->history.len > 0 && response->attempt > 0;
}

/* A speculative task has the ids of one that was dropped before it. */
static sim_delivery *saw_workflow_task(sim_world *world, size_t run,
                                       const hf_pb_poll_workflow_task_queue_response *response)
{
    if (response->messages.count > 0) {
        sim_allow_task(world, run, response->started_event_id, response->attempt);
    }
    return sim_saw_task(world, false, run, response->started_event_id, response->attempt);
}

/* Whether the slot can add the events of its new task to those that it knows, or to none. */
static bool has_base(sim_world *world, sim_slot *slot, int64_t first, bool comes_along)
{
    const sim_cached *entry = cached(slot->worker, slot->run_id);
    if (first == 1) {
        slot->summary = (sim_summary){0};
        return true;
    }
    if (comes_along) {
        if (slot->summary.last_id + 1 != first) {
            sim_fail(world, "sim-G3: the next task of run %s begins at event %lld, its worker knows %lld", slot->run_id,
                     (long long)first, (long long)slot->summary.last_id);
        }
        return true;
    }
    if (entry == NULL || entry->summary.last_id + 1 != first) {
        return false;
    }
    slot->summary = entry->summary;
    return true;
}

void sim_take_workflow(sim_world *world, sim_slot *slot, const hf_pb_poll_workflow_task_queue_response *response,
                       bool comes_along)
{
    if (!is_complete(response)) {
        sim_fail(world, "a workflow task is not complete");
        return;
    }
    copy_text(slot->run_id, sizeof slot->run_id, response->workflow_execution->run_id);
    copy_text(slot->workflow_id, sizeof slot->workflow_id, response->workflow_execution->workflow_id);
    slot->attempt = response->attempt;
    slot->started_time = hf_pb_timestamp_time(response->started_time).ns;
    slot->started_id = response->started_event_id;
    slot->previous_id = response->previous_started_event_id;
    slot->scheduled_id = 0;
    sim_keep_queries(slot, response);
    sim_keep_updates(slot, response);
    sim_trace(world, "worker %d.%d got workflow task of %s %.8s, event %lld, attempt %d", slot->worker->index,
              slot->kind, slot->workflow_id, slot->run_id, (long long)slot->started_id, (int)slot->attempt);
    size_t run = sim_log_run(world, response->workflow_execution->run_id, response->workflow_execution->workflow_id);
    bool ahead = slot->worker->run_ahead && slot->worker->in_process && !world->was_left_open && !comes_along;
    sim_delivery *delivery = saw_workflow_task(world, run, response);
    sim_run_log *log = &world->runs.items[run];
    /* Two answers of the service may overtake each other on their way. */
    bool is_overtaken = response->started_event_id < log->task_started_id ||
                        (response->started_event_id == log->task_started_id && response->attempt < log->task_attempt);
    if (!is_overtaken) {
        log->task_started_id = response->started_event_id;
        log->task_attempt = response->attempt;
        log->task_time = world->mono;
    }
    if (!ahead && !is_overtaken && memcmp(log->token, response->task_token.data, HF_TOKEN_LEN) != 0) {
        memcpy(log->token, response->task_token.data, HF_TOKEN_LEN);
        log->tasks++;
    }
    slot->task = is_overtaken ? UINT64_MAX : log->tasks;
    sim_saw_history(world, run, response->history, !ahead, unwritten(slot, response->history));
    if (is_dropped(world, slot, delivery, response->task_token)) {
        return;
    }
    sim_check_counted(world, slot);
    memcpy(slot->token, response->task_token.data, HF_TOKEN_LEN);
    int64_t first = first_id(response->history);
    if (first != 1 && slot->kind != SIM_STICKY && !comes_along) {
        sim_fail(world, "a task of a normal queue begins at event %lld", (long long)first);
    } else if (has_base(world, slot, first, comes_along)) {
        if (!sim_summary_add(world, &slot->summary, response->history)) {
            return;
        }
        keep_page(slot, response->next_page_token);
        if (slot->page_len > 0) {
            fetch(world, slot);
        } else if (slot->summary.last_id != slot->started_id) {
            sim_fail(world, "I3: a task without more pages ends at event %lld, not at %lld",
                     (long long)slot->summary.last_id, (long long)slot->started_id);
        } else {
            begin_or_rest(world, slot);
        }
    } else {
        slot->page_len = 0;
        fetch(world, slot);
    }
}

/* ---- Activities --------------------------------------------------------------------------------------------------------- */

int64_t sim_item_number(hf_str activity_id)
{
    return (activity_id.data[1] - '0') * SIM_ITEMS_MAX + (activity_id.data[3] - '0') + 1;
}

void sim_take_activity(sim_world *world, sim_slot *slot, const hf_pb_poll_activity_task_queue_response *response)
{
    if (response->workflow_execution == NULL || response->activity_id.len != 4 ||
        response->task_token.len != HF_TOKEN_LEN || !response->schedule_to_close_timeout.has) {
        sim_fail(world, "an activity task is not complete");
        return;
    }
    copy_text(slot->run_id, sizeof slot->run_id, response->workflow_execution->run_id);
    copy_text(slot->workflow_id, sizeof slot->workflow_id, response->workflow_execution->workflow_id);
    slot->attempt = response->attempt;
    slot->started_time = hf_pb_timestamp_time(response->started_time).ns;
    slot->scheduled_id = sim_item_number(response->activity_id);
    sim_trace(world, "worker %d.%d got activity %.*s of %s %.8s, attempt %d", slot->worker->index, slot->kind,
              HF_STR_ARGS(response->activity_id), slot->workflow_id, slot->run_id, (int)slot->attempt);
    size_t run = sim_log_run(world, response->workflow_execution->run_id, response->workflow_execution->workflow_id);
    sim_delivery *delivery = sim_saw_task(world, true, run, slot->scheduled_id, slot->attempt);
    slot->taken = world->marks;
    slot->round = sim_activity_round(world, run, slot->scheduled_id);
    int32_t most = response->retry_policy != NULL ? response->retry_policy->maximum_attempts : 0;
    most = sim_attempts_max(world, run, slot->scheduled_id, most);
    if (most > 0 && slot->attempt > most) {
        sim_fail(world, "I5: attempt %d of at most %d", (int)slot->attempt, (int)most);
    }
    if (is_dropped(world, slot, delivery, response->task_token)) {
        return;
    }
    sim_check_counted(world, slot);
    memcpy(slot->token, response->task_token.data, HF_TOKEN_LEN);
    int64_t timeout = hf_pb_duration_span(response->start_to_close_timeout).ns;
    int64_t beat = hf_pb_duration_span(response->heartbeat_timeout).ns;
    slot->heartbeats = beat > 0 || sim_chance(world, 250);
    slot->is_canceled = slot->is_left = slot->has_record = false;
    int64_t span = sim_upto(world, world->knobs.work_ns_max);
    if (sim_evil(world, world->knobs.late)) {
        sim_fault(world, HF_SIM_ANSWER_LATE);
        span = timeout + sim_upto(world, 3 * SIM_SECOND);
    }
    slot->is_poison = sim_is_poison(world, slot);
    slot->state = SIM_WORKING;
    sim_wake_in(world, &slot->actor, slot->is_poison ? sim_upto(world, 2 * SIM_MS) : span);
}

/* ---- Polls ---------------------------------------------------------------------------------------------------------------- */

void sim_lose_activity(sim_world *world, const hf_pb_poll_activity_task_queue_response *response)
{
    size_t run = sim_log_run(world, response->workflow_execution->run_id, response->workflow_execution->workflow_id);
    (void)sim_saw_task(world, true, run, sim_item_number(response->activity_id), response->attempt);
}

void sim_lose_workflow(sim_world *world, const hf_pb_poll_workflow_task_queue_response *response)
{
    size_t run = sim_log_run(world, response->workflow_execution->run_id, response->workflow_execution->workflow_id);
    (void)saw_workflow_task(world, run, response);
}

/* The worker that polled for the task has forgotten its poll. */
static void lose_task(sim_world *world, const sim_slot *slot, const sim_call *call)
{
    if (call->call.status != HF_OK) {
        return;
    }
    if (slot->kind == SIM_ACTIVITY) {
        const hf_pb_poll_activity_task_queue_response *response = call->call.response;
        if (response->task_token.len > 0) {
            sim_lose_activity(world, response);
        }
        return;
    }
    const hf_pb_poll_workflow_task_queue_response *response = call->call.response;
    if (response->task_token.len > 0 && response->query == NULL) {
        sim_lose_workflow(world, response);
    }
}

static void on_polled(sim_world *world, sim_call *call)
{
    sim_slot *slot = sim_slot_of(call->actor);
    if (!sim_is_mine(call)) {
        lose_task(world, slot, call);
        return;
    }
    slot->poll = NULL;
    if (call->call.status == HF_ERR_STORE && !sim_is_history_damaged(world)) {
        sim_fail(world, "D4: a poll was refused with all histories sound: %s", call->call.message);
    }
    if (call->call.status != HF_OK) {
        sim_rest(world, slot,
                 sim_is_lost(call) ? 20 * SIM_MS + sim_upto(world, 300 * SIM_MS) : sim_upto(world, 50 * SIM_MS));
        return;
    }
    if (slot->kind == SIM_ACTIVITY) {
        const hf_pb_poll_activity_task_queue_response *response = call->call.response;
        if (response->task_token.len > 0) {
            sim_rate_saw(world, slot->worker, response);
            sim_take_activity(world, slot, response);
            return;
        }
    } else {
        const hf_pb_poll_workflow_task_queue_response *response = call->call.response;
        if (response->task_token.len > 0 && sim_take_query(world, slot, response)) {
            return;
        }
        if (response->task_token.len > 0) {
            sim_take_workflow(world, slot, response, false);
            return;
        }
    }
    sim_rest(world, slot, sim_upto(world, 5 * SIM_MS));
}

static void poll(sim_world *world, sim_slot *slot)
{
    char name[SIM_NAME_LEN];
    queue_name(slot->worker, name);
    sim_call *call = NULL;
    if (slot->kind == SIM_ACTIVITY) {
        call = sim_ask(world, slot, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, on_polled);
        hf_pb_poll_activity_task_queue_request *request =
            HF_ARENA_NEW(&call->arena, hf_pb_poll_activity_task_queue_request);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->identity = sim_copy(call, slot->worker->identity);
        request->task_queue = HF_ARENA_NEW(&call->arena, hf_pb_task_queue);
        request->task_queue->name = sim_copy(call, name);
        sim_poll_activity_as(call, slot->worker, request);
        call->call.request = request;
    } else {
        call = sim_ask(world, slot, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, on_polled);
        hf_pb_poll_workflow_task_queue_request *request =
            HF_ARENA_NEW(&call->arena, hf_pb_poll_workflow_task_queue_request);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->identity = sim_copy(call, slot->worker->identity);
        request->task_queue = HF_ARENA_NEW(&call->arena, hf_pb_task_queue);
        request->task_queue->name = sim_copy(call, slot->kind == SIM_STICKY ? slot->worker->sticky_queue : name);
        sim_poll_workflow_as(call, slot->worker, request);
        call->call.request = request;
        call->call.run_ahead = slot->worker->run_ahead;
    }
    if (world->is_healed) {
        call->call.timeout = hf_seconds(120); /* nothing is learned from polls that end */
    }
    call->epoch_shut = slot->worker->shutdowns;
    slot->state = SIM_POLLING;
    slot->is_put_off = false;
    slot->poll = call;
    if (sim_evil(world, world->knobs.poll_cancel)) {
        sim_wake_in(world, &slot->actor, sim_upto(world, 2 * SIM_SECOND));
    }
    sim_call_submit(world, call);
}

/* The worker was another process that worked through the owner of the file, which sees the end of its connection (hf_engine_lost). What the
 * worker has in hand goes out again: a workflow task as it is, an activity as its next attempt. */
static void tell_lost(sim_world *world, sim_worker *worker)
{
    for (int i = 0; i < SIM_SLOTS; i++) {
        const sim_slot *slot = &worker->slots[i];
        bool has_task = slot->state == SIM_WORKING || slot->state == SIM_FETCHING || slot->state == SIM_ANSWERING;
        if (!has_task || slot->is_left || world->core == NULL) {
            continue;
        }
        sim_fault(world, slot->kind == SIM_ACTIVITY ? HF_SIM_ACTIVITY_GONE : HF_SIM_TASK_GONE);
        if (slot->kind != SIM_ACTIVITY) {
            size_t run = sim_log_run(world, hf_str_of(slot->run_id), hf_str_of(slot->workflow_id));
            sim_allow_task(world, run, slot->started_id, slot->attempt);
        }
        hf_core_take_back(world->core, hf_str_of_len(slot->token, HF_TOKEN_LEN), HF_HELD_BY_LOST, sim_now(world));
    }
}

/* Things that happen to a whole worker. */
static bool trouble(sim_world *world, sim_slot *slot)
{
    sim_worker *worker = slot->worker;
    if (worker->away_until > world->mono) {
        sim_wake_at(world, &slot->actor, worker->away_until);
        return true;
    }
    if (slot->kind != SIM_WORKFLOW) {
        return false;
    }
    if (!worker->in_process && sim_evil(world, world->knobs.worker_crash)) {
        sim_fault(world, HF_SIM_WORKER_CRASH);
        worker->away_until = world->mono + sim_upto(world, 5 * SIM_SECOND);
        if (sim_evil(world, 500)) {
            tell_lost(world, worker);
        }
        reset_slots(world, worker);
        return true;
    }
    if (sim_evil(world, world->knobs.worker_pause)) {
        sim_fault(world, HF_SIM_WORKER_PAUSED);
        worker->away_until = world->mono + sim_upto(world, 25 * SIM_SECOND);
        sim_wake_at(world, &slot->actor, worker->away_until);
        return true;
    }
    return false;
}

static void say_goodbye(sim_world *world, sim_slot *slot)
{
    sim_fault(world, HF_SIM_WORKER_SHUTDOWN);
    sim_shut_down(world, slot->worker);
}

static void reset_sticky(sim_world *world, const sim_slot *slot)
{
    sim_fault(world, HF_SIM_STICKY_RESET);
    sim_call *call = sim_call_new(world, HF_METHOD_RESET_STICKY_TASK_QUEUE, NULL, NULL);
    hf_pb_reset_sticky_task_queue_request *request = HF_ARENA_NEW(&call->arena, hf_pb_reset_sticky_task_queue_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->execution->workflow_id = sim_copy(call, slot->workflow_id);
    request->execution->run_id = sim_copy(call, slot->run_id);
    call->call.request = request;
    sim_call_submit(world, call);
}

static void cancel_poll(sim_world *world, sim_slot *slot)
{
    if (world->core == NULL || slot->state != SIM_POLLING || slot->poll == NULL || slot->poll->is_done ||
        slot->poll->opened != world->opened) {
        return;
    }
    sim_fault(world, HF_SIM_POLL_CANCELED);
    if (!hf_core_cancel(world->core, &slot->poll->call, sim_now(world))) { /* in the next portion */
        int64_t end = world->portion_end > world->mono ? world->portion_end : world->mono;
        sim_wake_at(world, &slot->actor, end + 1);
        slot->is_put_off = true;
    }
}

/* Every second worker ends all of its polls at once. */
static void cancel_polls(sim_world *world, sim_slot *slot)
{
    bool is_one = slot->is_put_off || slot->worker->index % 2 == 0;
    slot->is_put_off = false;
    cancel_poll(world, slot);
    for (int i = 0; i < SIM_SLOTS && !is_one; i++) {
        cancel_poll(world, &slot->worker->slots[i]);
    }
}

static void wake(sim_world *world, sim_actor *actor)
{
    sim_slot *slot = sim_slot_of(actor);
    switch (slot->state) {
    case SIM_IDLE:
        if (slot->is_reserve || (slot->kind == SIM_STICKY && !slot->worker->sticky)) {
            return;
        }
        if (slot->worker->sticky && slot->kind == SIM_WORKFLOW && sim_evil(world, world->knobs.shutdown)) {
            say_goodbye(world, slot);
        }
        if (slot->worker->sticky && slot->kind == SIM_WORKFLOW && slot->run_id[0] != '\0' &&
            sim_evil(world, world->knobs.sticky_reset)) {
            reset_sticky(world, slot);
        }
        if (!trouble(world, slot)) {
            poll(world, slot);
        }
        return;
    case SIM_POLLING:
        cancel_polls(world, slot);
        return;
    case SIM_WORKING:
        if (slot->is_poison && !world->is_healed) {
            sim_poison(world, slot);
            return;
        }
        sim_answer_task(world, slot);
        return;
    default:
        return;
    }
}

void sim_workers_init(sim_world *world)
{
    static const int KINDS[SIM_SLOTS] = {SIM_WORKFLOW, SIM_STICKY,   SIM_ACTIVITY,
                                         SIM_ACTIVITY, SIM_ACTIVITY, SIM_WORKFLOW};
    enum { POLLING = 3 }; /* the others take tasks that come along */
    for (int i = 0; i < world->knobs.workers; i++) {
        sim_worker *worker = &world->workers[i];
        worker->index = i;
        worker->queue = i % world->knobs.queues;
        worker->in_process = sim_chance(world, 500);
        worker->run_ahead = worker->in_process && sim_chance(world, 600);
        worker->sticky = sim_chance(world, 600);
        (void)snprintf(worker->identity, sizeof worker->identity, "worker-%d", i);
        (void)snprintf(worker->sticky_queue, sizeof worker->sticky_queue, "sticky-%d", i);
        for (int j = 0; j < SIM_SLOTS; j++) {
            worker->slots[j] =
                (sim_slot){.actor = {.wake = wake}, .worker = worker, .kind = KINDS[j], .is_reserve = j >= POLLING};
            sim_wake_in(world, &worker->slots[j].actor, sim_upto(world, SIM_SECOND));
        }
    }
}
