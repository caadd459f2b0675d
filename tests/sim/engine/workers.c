/* Workers: poll, work, answer; and all that can go wrong with that.
 *
 *     idle --> polling --> working --> answering --> idle
 *                 |           ^  ^         |
 *                 +-> fetching+  +---------+  nobody knows whether it arrived: again
 *
 * A worker in the process dies with it and forgets everything; one outside keeps its tasks and its cache, and answers with
 * old tokens after the restart. */
#include "sim/engine/sim.h"

#include "history/payload.h"

#include <string.h>

enum { IDLE, POLLING, FETCHING, WORKING, ANSWERING };
enum { WORKFLOW, STICKY, ACTIVITY };

static void wake(sim_world *world, sim_actor *actor);

static sim_slot *slot_of(sim_actor *actor)
{
    return HF_CONTAINER(actor, sim_slot, actor);
}

static void copy_text(char *to, size_t capacity, hf_str from)
{
    size_t len = from.len < capacity - 1 ? from.len : capacity - 1;
    memcpy(to, from.data, len);
    to[len] = '\0';
}

static void rest(sim_world *world, sim_slot *slot, int64_t span)
{
    slot->state = IDLE;
    slot->has_answer = false;
    sim_wake_in(world, &slot->actor, span);
}

/* A worker may give a task back, or lose it without a word. */
static bool is_dropped(sim_world *world, sim_slot *slot, sim_delivery *delivery, hf_str token)
{
    if (sim_evil(world, world->knobs.unwanted) && world->core != NULL) {
        sim_fault(world, HF_SIM_TASK_UNWANTED);
        delivery->allowed++;
        hf_core_unwanted(world->core, token, sim_now(world));
        rest(world, slot, sim_upto(world, 10 * SIM_MS));
        return true;
    }
    if (sim_evil(world, world->knobs.lost)) {
        sim_fault(world, HF_SIM_TASK_LOST);
        rest(world, slot, sim_upto(world, 100 * SIM_MS));
        return true;
    }
    return false;
}

static void queue_name(const sim_worker *worker, char text[SIM_NAME_LEN])
{
    (void)snprintf(text, SIM_NAME_LEN, "q%d", worker->queue);
}

static sim_call *ask(sim_world *world, sim_slot *slot, hf_method method, void (*then)(sim_world *, sim_call *))
{
    sim_call *call = sim_call_new(world, method, &slot->actor, then);
    call->epoch = slot->epoch;
    call->call.in_process = slot->worker->in_process;
    return call;
}

/* Whether the slot still waits for this answer. */
static bool is_mine(const sim_call *call)
{
    return slot_of(call->actor)->epoch == call->epoch;
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

static void forget(sim_worker *worker, const char *run_id)
{
    sim_cached *entry = cached(worker, run_id);
    if (entry != NULL) {
        *entry = worker->cache.items[--worker->cache.count];
    }
}

static void remember(sim_worker *worker, const sim_slot *slot)
{
    sim_cached *entry = cached(worker, slot->run_id);
    if (entry == NULL) {
        entry = SIM_PUSH(&worker->cache);
        (void)snprintf(entry->run_id, sizeof entry->run_id, "%s", slot->run_id);
    }
    entry->summary = slot->summary;
}

static void reset_slots(sim_world *world, sim_worker *worker)
{
    worker->cache.count = 0;
    for (int i = 0; i < SIM_SLOTS; i++) {
        sim_slot *slot = &worker->slots[i];
        slot->epoch++;
        slot->poll = NULL;
        rest(world, slot, sim_upto(world, 100 * SIM_MS));
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
    slot->state = WORKING;
    sim_wake_in(world, &slot->actor, span);
}

static void fetch(sim_world *world, sim_slot *slot);

static void keep_page(sim_slot *slot, hf_str token)
{
    slot->page_len = token.len <= sizeof slot->page ? token.len : 0;
    memcpy(slot->page, token.data != NULL ? token.data : "", slot->page_len);
}

/* The slot knows what it was sent, or all that it fetched. The task may be over by now: then there is more than it began with, or,
 * of a later attempt, less, since its last two events were never written; the answer will be refused. */
static void begin_or_rest(sim_world *world, sim_slot *slot)
{
    const sim_summary *known = &slot->summary;
    if (known->last_id > slot->started_id || (slot->attempt > 1 && known->last_id < slot->started_id)) {
        rest(world, slot, 10 * SIM_MS);
        return;
    }
    if (known->last_id == slot->started_id && known->last_completed_started != slot->previous_id) {
        sim_fail(world, "previous_started_event_id is %lld, it should be %lld", (long long)slot->previous_id,
                 (long long)known->last_completed_started);
        return;
    }
    begin_workflow(world, slot);
}

/* Events at the end of a page that are not written yet: of a later attempt the last two. */
static int unwritten(const sim_slot *slot, hf_str history)
{
    int64_t first = first_id(history);
    int64_t count = 0;
    hf_pb_raw field;
    while (history.len > 0 && hf_pb_next(&history, &field)) {
        count++;
    }
    return slot->attempt > 1 && first + count - 1 == slot->started_id ? 2 : 0;
}

static void on_fetched(sim_world *world, sim_call *call)
{
    sim_slot *slot = slot_of(call->actor);
    if (!is_mine(call)) {
        return;
    }
    const hf_pb_get_workflow_execution_history_response *response = call->call.response;
    if (call->call.status != HF_OK) {
        rest(world, slot, 10 * SIM_MS); /* its timeout will give the task to somebody */
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
    sim_call *call = ask(world, slot, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, on_fetched);
    hf_pb_get_workflow_execution_history_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_get_workflow_execution_history_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->execution->workflow_id = sim_copy(call, slot->workflow_id);
    request->execution->run_id = sim_copy(call, slot->run_id);
    request->next_page_token = hf_arena_copy(&call->arena, hf_str_of_len(slot->page, slot->page_len));
    call->call.request = request;
    slot->state = FETCHING;
    sim_call_submit(world, call);
}

static bool is_complete(const hf_pb_poll_workflow_task_queue_response *response)
{
    return response->task_token.len == HF_TOKEN_LEN && response->workflow_execution != NULL &&
           response->workflow_type != NULL && response->workflow_execution_task_queue != NULL &&
           response->history.len > 0 && response->attempt > 0;
}

static void take_workflow(sim_world *world, sim_slot *slot, const hf_pb_poll_workflow_task_queue_response *response)
{
    if (!is_complete(response)) {
        sim_fail(world, "a workflow task is not complete");
        return;
    }
    copy_text(slot->run_id, sizeof slot->run_id, response->workflow_execution->run_id);
    copy_text(slot->workflow_id, sizeof slot->workflow_id, response->workflow_execution->workflow_id);
    slot->attempt = response->attempt;
    slot->started_id = response->started_event_id;
    slot->previous_id = response->previous_started_event_id;
    slot->scheduled_id = 0;
    sim_trace(world, "worker %d.%d got workflow task of %s %.8s, event %lld, attempt %d", slot->worker->index,
              slot->kind, slot->workflow_id, slot->run_id, (long long)slot->started_id, (int)slot->attempt);
    size_t run = sim_log_run(world, response->workflow_execution->run_id, response->workflow_execution->workflow_id);
    bool ahead = slot->worker->run_ahead && slot->worker->in_process;
    sim_delivery *delivery = sim_saw_task(world, false, run, slot->started_id, slot->attempt);
    sim_saw_history(world, run, response->history, !ahead, unwritten(slot, response->history));
    if (is_dropped(world, slot, delivery, response->task_token)) {
        return;
    }
    memcpy(slot->token, response->task_token.data, HF_TOKEN_LEN);
    int64_t first = first_id(response->history);
    const sim_cached *entry = cached(slot->worker, slot->run_id);
    if (first != 1 && slot->kind != STICKY) {
        sim_fail(world, "a task of a normal queue begins at event %lld", (long long)first);
    } else if (first == 1 || (entry != NULL && entry->summary.last_id + 1 == first)) {
        slot->summary = first == 1 ? (sim_summary){0} : entry->summary;
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

/* "a2-1" as a number that stands for its event. */
static int64_t item_number(hf_str activity_id)
{
    return (activity_id.data[1] - '0') * SIM_ITEMS_MAX + (activity_id.data[3] - '0') + 1;
}

static void take_activity(sim_world *world, sim_slot *slot, const hf_pb_poll_activity_task_queue_response *response)
{
    if (response->workflow_execution == NULL || response->activity_id.len != 4 ||
        response->task_token.len != HF_TOKEN_LEN || !response->schedule_to_close_timeout.has) {
        sim_fail(world, "an activity task is not complete");
        return;
    }
    copy_text(slot->run_id, sizeof slot->run_id, response->workflow_execution->run_id);
    copy_text(slot->workflow_id, sizeof slot->workflow_id, response->workflow_execution->workflow_id);
    slot->attempt = response->attempt;
    slot->scheduled_id = item_number(response->activity_id);
    sim_trace(world, "worker %d.%d got activity %.*s of %s %.8s, attempt %d", slot->worker->index, slot->kind,
              HF_STR_ARGS(response->activity_id), slot->workflow_id, slot->run_id, (int)slot->attempt);
    size_t run = sim_log_run(world, response->workflow_execution->run_id, response->workflow_execution->workflow_id);
    sim_delivery *delivery = sim_saw_task(world, true, run, slot->scheduled_id, slot->attempt);
    if (response->retry_policy != NULL && response->retry_policy->maximum_attempts > 0 &&
        slot->attempt > response->retry_policy->maximum_attempts) {
        sim_fail(world, "I5: attempt %d of at most %d", (int)slot->attempt,
                 (int)response->retry_policy->maximum_attempts);
    }
    if (is_dropped(world, slot, delivery, response->task_token)) {
        return;
    }
    memcpy(slot->token, response->task_token.data, HF_TOKEN_LEN);
    int64_t timeout = hf_pb_duration_span(response->start_to_close_timeout).ns;
    int64_t beat = hf_pb_duration_span(response->heartbeat_timeout).ns;
    slot->heartbeats = beat > 0 || sim_chance(world, 250);
    slot->is_canceled = false;
    int64_t span = sim_upto(world, world->knobs.work_ns_max);
    if (sim_evil(world, world->knobs.late)) {
        sim_fault(world, HF_SIM_ANSWER_LATE);
        span = timeout + sim_upto(world, 3 * SIM_SECOND);
    }
    slot->state = WORKING;
    sim_wake_in(world, &slot->actor, span);
}

/* ---- Answers ------------------------------------------------------------------------------------------------------------- */

static void on_answered(sim_world *world, sim_call *call)
{
    sim_slot *slot = slot_of(call->actor);
    sim_saw_answer(world, call->log, call);
    if (!is_mine(call)) {
        return;
    }
    if (sim_is_lost(call)) {
        sim_fault(world, HF_SIM_ANSWER_AGAIN);
        slot->state = WORKING;
        sim_wake_in(world, &slot->actor, 20 * SIM_MS + sim_upto(world, 500 * SIM_MS));
        return;
    }
    if (slot->kind != ACTIVITY) {
        if (call->call.status == HF_OK && slot->worker->sticky &&
            call->call.method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
            remember(slot->worker, slot);
        } else {
            forget(slot->worker, slot->run_id);
        }
    }
    rest(world, slot, sim_upto(world, 5 * SIM_MS));
}

static void on_second(sim_world *world, sim_call *call)
{
    sim_saw_answer(world, call->log, call);
}

static void on_forged(sim_world *world, sim_call *call)
{
    if (call->call.status == HF_OK) {
        sim_fail(world, "I7: a forged token was accepted");
    }
}

static void log_answer(sim_world *world, sim_slot *slot, hf_method method)
{
    if (slot->has_answer) {
        world->answers.items[slot->answer].maybe = true;
        return;
    }
    slot->has_answer = true;
    slot->answer = world->answers.count;
    *SIM_PUSH(&world->answers) = (sim_answer){
        .method = method,
        .worker = slot->worker->index,
        .attempt = slot->attempt,
        .scheduled_id = slot->scheduled_id != 0 ? slot->scheduled_id : slot->started_id,
        .run = sim_log_run(world, hf_str_of(slot->run_id), hf_str_of(slot->workflow_id)),
    };
}

static void bad_command(sim_world *world, sim_call *call, hf_pb_command_list *commands)
{
    hf_pb_command *items = HF_ARENA_ARRAY(&call->arena, hf_pb_command, commands->count + 1);
    items[0].command_type = HF_COMMAND_TYPE_CANCEL_TIMER;
    items[0].attributes_case = HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES;
    items[0].cancel_timer_command_attributes = HF_ARENA_NEW(&call->arena, hf_pb_cancel_timer_command_attributes);
    items[0].cancel_timer_command_attributes->timer_id = HF_STR("nobody");
    if (sim_chance(world, 300)) {
        items[0].command_type = HF_COMMAND_TYPE_START_TIMER;
        items[0].attributes_case = 0;
        items[0].cancel_timer_command_attributes = NULL;
    }
    for (size_t i = 0; i < commands->count; i++) {
        items[i + 1] = commands->items[i];
    }
    commands->items = items;
    commands->count++;
}

/* More timers, activities or messages at once than a run may have. */
static void too_many_commands(sim_world *world, sim_call *call, hf_pb_command_list *commands)
{
    hf_arena *arena = &call->arena;
    int kind = (int)sim_upto(world, 2);
    commands->count = world->knobs.core.limits.pending + 1;
    commands->items = HF_ARENA_ARRAY(arena, hf_pb_command, commands->count);
    for (size_t i = 0; i < commands->count; i++) {
        hf_pb_command *command = &commands->items[i];
        char text[SIM_NAME_LEN];
        (void)snprintf(text, sizeof text, "many-%d", (int)i);
        if (kind == 0) {
            command->command_type = HF_COMMAND_TYPE_START_TIMER;
            command->attributes_case = HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES;
            command->start_timer_command_attributes = HF_ARENA_NEW(arena, hf_pb_start_timer_command_attributes);
            command->start_timer_command_attributes->timer_id = sim_copy(call, text);
            command->start_timer_command_attributes->start_to_fire_timeout = hf_pb_duration_of(hf_seconds(1));
        } else if (kind == 1) {
            hf_pb_schedule_activity_task_command_attributes *attrs =
                HF_ARENA_NEW(arena, hf_pb_schedule_activity_task_command_attributes);
            attrs->activity_id = sim_copy(call, text);
            attrs->activity_type = HF_ARENA_NEW(arena, hf_pb_activity_type);
            attrs->activity_type->name = HF_STR("act");
            attrs->start_to_close_timeout = hf_pb_duration_of(hf_seconds(1));
            command->command_type = HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK;
            command->attributes_case = HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES;
            command->schedule_activity_task_command_attributes = attrs;
        } else {
            command->command_type = HF_COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION;
            command->attributes_case = HF_PB_COMMAND_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
            command->request_cancel_external_workflow_execution_command_attributes =
                HF_ARENA_NEW(arena, hf_pb_request_cancel_external_workflow_execution_command_attributes);
            command->request_cancel_external_workflow_execution_command_attributes->workflow_id = HF_STR("wf-0");
        }
    }
}

static void fill_completed(sim_world *world, sim_slot *slot, sim_call *call)
{
    hf_pb_respond_workflow_task_completed_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_respond_workflow_task_completed_request);
    char nonce[SIM_NAME_LEN];
    (void)snprintf(nonce, sizeof nonce, "n%llu", (unsigned long long)slot->answer);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->task_token = hf_arena_copy(&call->arena, hf_str_of_len(slot->token, HF_TOKEN_LEN));
    request->identity = sim_copy(call, slot->worker->identity);
    request->binary_checksum = sim_copy(call, nonce);
    if (sim_evil(world, world->knobs.task_heartbeat)) {
        request->force_create_new_workflow_task = true;
    } else if (sim_evil(world, world->knobs.over_limit)) {
        sim_fault(world, HF_SIM_LIMIT_IGNORED);
        too_many_commands(world, call, &request->commands);
    } else {
        sim_program_commands(world, hf_str_of(slot->workflow_id), &slot->summary, &call->arena, &request->commands);
        if (sim_evil(world, world->knobs.bad_command)) {
            sim_fault(world, HF_SIM_COMMAND_BAD);
            bad_command(world, call, &request->commands);
        }
    }
    if (slot->worker->sticky) {
        request->sticky_attributes = HF_ARENA_NEW(&call->arena, hf_pb_sticky_execution_attributes);
        request->sticky_attributes->worker_task_queue = HF_ARENA_NEW(&call->arena, hf_pb_task_queue);
        request->sticky_attributes->worker_task_queue->name = sim_copy(call, slot->worker->sticky_queue);
        request->sticky_attributes->schedule_to_start_timeout = hf_pb_duration_of(hf_seconds(5));
    }
    call->call.request = request;
}

static void fill_task_failed(sim_slot *slot, sim_call *call)
{
    hf_pb_respond_workflow_task_failed_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_respond_workflow_task_failed_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->task_token = hf_arena_copy(&call->arena, hf_str_of_len(slot->token, HF_TOKEN_LEN));
    request->identity = sim_copy(call, slot->worker->identity);
    request->cause = HF_WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE;
    request->failure = hf_failure_application(&call->arena, HF_STR("Bug"), HF_STR("a bug in the workflow"), false);
    call->call.request = request;
}

static void fill_activity(sim_world *world, sim_slot *slot, sim_call *call)
{
    char nonce[SIM_NAME_LEN];
    (void)snprintf(nonce, sizeof nonce, "n%llu", (unsigned long long)slot->answer);
    hf_str token = hf_arena_copy(&call->arena, hf_str_of_len(slot->token, HF_TOKEN_LEN));
    switch ((int)call->call.method) {
    case HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED: {
        hf_pb_respond_activity_task_completed_request *request =
            HF_ARENA_NEW(&call->arena, hf_pb_respond_activity_task_completed_request);
        *request = (hf_pb_respond_activity_task_completed_request){.task_token = token,
                                                                   .namespace = HF_STR(SIM_NAMESPACE),
                                                                   .identity = sim_copy(call, slot->worker->identity)};
        bool large = sim_evil(world, world->knobs.large);
        request->result = sim_payload(call, nonce, large ? 60000 : 0);
        if (large) {
            sim_fault(world, HF_SIM_PAYLOAD_LARGE);
            request->identity = sim_copy(call, nonce); /* all that is left of it if it is too large */
        }
        call->call.request = request;
        return;
    }
    case HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED: {
        hf_pb_respond_activity_task_canceled_request *request =
            HF_ARENA_NEW(&call->arena, hf_pb_respond_activity_task_canceled_request);
        *request = (hf_pb_respond_activity_task_canceled_request){
            .task_token = token, .namespace = HF_STR(SIM_NAMESPACE), .details = sim_payload(call, nonce, 0)};
        call->call.request = request;
        return;
    }
    case HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT: {
        hf_pb_record_activity_task_heartbeat_request *request =
            HF_ARENA_NEW(&call->arena, hf_pb_record_activity_task_heartbeat_request);
        *request = (hf_pb_record_activity_task_heartbeat_request){
            .task_token = token, .namespace = HF_STR(SIM_NAMESPACE), .details = sim_payload(call, "half", 0)};
        call->call.request = request;
        return;
    }
    default: {
        hf_pb_respond_activity_task_failed_request *request =
            HF_ARENA_NEW(&call->arena, hf_pb_respond_activity_task_failed_request);
        *request =
            (hf_pb_respond_activity_task_failed_request){.task_token = token, .namespace = HF_STR(SIM_NAMESPACE)};
        request->failure =
            hf_failure_application(&call->arena, HF_STR("Oops"), sim_copy(call, nonce), sim_chance(world, 200));
        call->call.request = request;
        return;
    }
    }
}

static void on_beat(sim_world *world, sim_call *call)
{
    sim_slot *slot = slot_of(call->actor);
    if (!is_mine(call)) {
        return;
    }
    if (call->call.status == HF_OK) {
        const hf_pb_record_activity_task_heartbeat_response *response = call->call.response;
        slot->is_canceled = response->cancel_requested && sim_chance(world, 800);
    } else if (!sim_is_lost(call)) {
        rest(world, slot, sim_upto(world, 5 * SIM_MS)); /* the attempt is over */
        return;
    }
    slot->heartbeats = sim_chance(world, 500);
    slot->state = WORKING;
    sim_wake_in(world, &slot->actor, SIM_MS + sim_upto(world, world->knobs.work_ns_max));
}

static hf_method choose_method(sim_world *world, const sim_slot *slot)
{
    if (slot->has_answer) {
        return world->answers.items[slot->answer].method; /* the same again */
    }
    if (slot->kind != ACTIVITY) {
        bool fails = sim_evil(world, world->knobs.task_fails);
        if (fails) {
            sim_fault(world, HF_SIM_TASK_FAILED);
        }
        return fails ? HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED : HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED;
    }
    if (slot->is_canceled) {
        return HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED;
    }
    return sim_evil(world, 200) ? HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED : HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED;
}

static sim_call *make_answer(sim_world *world, sim_slot *slot, hf_method method, void (*then)(sim_world *, sim_call *))
{
    sim_call *call = ask(world, slot, method, then);
    call->log = slot->answer;
    if (method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
        fill_completed(world, slot, call);
    } else if (method == HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED) {
        fill_task_failed(slot, call);
    } else {
        fill_activity(world, slot, call);
    }
    return call;
}

static void answer(sim_world *world, sim_slot *slot)
{
    if (slot->kind == ACTIVITY && slot->heartbeats && !slot->has_answer) {
        slot->state = ANSWERING;
        sim_call_submit(world, make_answer(world, slot, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT, on_beat));
        return;
    }
    hf_method method = choose_method(world, slot);
    log_answer(world, slot, method);
    slot->state = ANSWERING;
    if (sim_evil(world, world->knobs.forged)) {
        sim_fault(world, HF_SIM_TOKEN_FORGED);
        char *at = &slot->token[hf_rng_below(&world->rng, HF_TOKEN_LEN)];
        char flip = (char)(1 << hf_rng_below(&world->rng, 7));
        *at = (char)(*at ^ flip);
        sim_call *forged = make_answer(world, slot, method, on_forged);
        *at = (char)(*at ^ flip);
        sim_call_submit(world, forged);
    }
    sim_call *call = make_answer(world, slot, method, on_answered);
    sim_call *second = NULL;
    if (sim_evil(world, world->knobs.twice)) {
        sim_fault(world, HF_SIM_ANSWER_TWICE);
        second = make_answer(world, slot, method, on_second);
    }
    sim_call_submit(world, call);
    if (second != NULL) {
        sim_call_submit(world, second);
    }
}

/* ---- Polls ---------------------------------------------------------------------------------------------------------------- */

/* Who asked for it has forgotten that it did. */
static void lose_task(sim_world *world, const sim_slot *slot, const sim_call *call)
{
    if (call->call.status != HF_OK) {
        return;
    }
    if (slot->kind == ACTIVITY) {
        const hf_pb_poll_activity_task_queue_response *response = call->call.response;
        if (response->task_token.len > 0) {
            size_t run =
                sim_log_run(world, response->workflow_execution->run_id, response->workflow_execution->workflow_id);
            (void)sim_saw_task(world, true, run, item_number(response->activity_id), response->attempt);
        }
        return;
    }
    const hf_pb_poll_workflow_task_queue_response *response = call->call.response;
    if (response->task_token.len > 0) {
        size_t run =
            sim_log_run(world, response->workflow_execution->run_id, response->workflow_execution->workflow_id);
        (void)sim_saw_task(world, false, run, response->started_event_id, response->attempt);
    }
}

static void on_polled(sim_world *world, sim_call *call)
{
    sim_slot *slot = slot_of(call->actor);
    if (!is_mine(call)) {
        lose_task(world, slot, call);
        return;
    }
    slot->poll = NULL;
    if (call->call.status == HF_ERR_STORE && !sim_is_history_damaged(world)) {
        sim_fail(world, "D4: a poll was refused with all histories sound: %s", call->call.message);
    }
    if (call->call.status != HF_OK) {
        rest(world, slot,
             sim_is_lost(call) ? 20 * SIM_MS + sim_upto(world, 300 * SIM_MS) : sim_upto(world, 50 * SIM_MS));
        return;
    }
    if (slot->kind == ACTIVITY) {
        const hf_pb_poll_activity_task_queue_response *response = call->call.response;
        if (response->task_token.len > 0) {
            take_activity(world, slot, response);
            return;
        }
    } else {
        const hf_pb_poll_workflow_task_queue_response *response = call->call.response;
        if (response->task_token.len > 0) {
            take_workflow(world, slot, response);
            return;
        }
    }
    rest(world, slot, sim_upto(world, 5 * SIM_MS));
}

static void poll(sim_world *world, sim_slot *slot)
{
    char name[SIM_NAME_LEN];
    queue_name(slot->worker, name);
    sim_call *call = NULL;
    if (slot->kind == ACTIVITY) {
        call = ask(world, slot, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, on_polled);
        hf_pb_poll_activity_task_queue_request *request =
            HF_ARENA_NEW(&call->arena, hf_pb_poll_activity_task_queue_request);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->identity = sim_copy(call, slot->worker->identity);
        request->task_queue = HF_ARENA_NEW(&call->arena, hf_pb_task_queue);
        request->task_queue->name = sim_copy(call, name);
        call->call.request = request;
    } else {
        call = ask(world, slot, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, on_polled);
        hf_pb_poll_workflow_task_queue_request *request =
            HF_ARENA_NEW(&call->arena, hf_pb_poll_workflow_task_queue_request);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->identity = sim_copy(call, slot->worker->identity);
        request->task_queue = HF_ARENA_NEW(&call->arena, hf_pb_task_queue);
        request->task_queue->name = sim_copy(call, slot->kind == STICKY ? slot->worker->sticky_queue : name);
        call->call.request = request;
        call->call.run_ahead = slot->worker->run_ahead;
    }
    if (world->is_healed) {
        call->call.timeout = hf_seconds(120); /* nothing is learned from polls that end */
    }
    slot->state = POLLING;
    slot->poll = call;
    if (sim_evil(world, world->knobs.poll_cancel)) {
        sim_wake_in(world, &slot->actor, sim_upto(world, 2 * SIM_SECOND));
    }
    sim_call_submit(world, call);
}

/* Things that happen to a whole worker. */
static bool trouble(sim_world *world, sim_slot *slot)
{
    sim_worker *worker = slot->worker;
    if (worker->away_until > world->mono) {
        sim_wake_at(world, &slot->actor, worker->away_until);
        return true;
    }
    if (slot->kind != WORKFLOW) {
        return false;
    }
    if (!worker->in_process && sim_evil(world, world->knobs.worker_crash)) {
        sim_fault(world, HF_SIM_WORKER_CRASH);
        worker->away_until = world->mono + sim_upto(world, 5 * SIM_SECOND);
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
    sim_call *call = sim_call_new(world, HF_METHOD_SHUTDOWN_WORKER, NULL, NULL);
    hf_pb_shutdown_worker_request *request = HF_ARENA_NEW(&call->arena, hf_pb_shutdown_worker_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->sticky_task_queue = sim_copy(call, slot->worker->sticky_queue);
    call->call.request = request;
    sim_call_submit(world, call);
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

static void wake(sim_world *world, sim_actor *actor)
{
    sim_slot *slot = slot_of(actor);
    switch (slot->state) {
    case IDLE:
        if (slot->kind == STICKY && !slot->worker->sticky) {
            return;
        }
        if (slot->worker->sticky && slot->kind == WORKFLOW && sim_evil(world, world->knobs.shutdown)) {
            say_goodbye(world, slot);
        }
        if (slot->worker->sticky && slot->kind == WORKFLOW && slot->run_id[0] != '\0' &&
            sim_evil(world, world->knobs.sticky_reset)) {
            reset_sticky(world, slot);
        }
        if (!trouble(world, slot)) {
            poll(world, slot);
        }
        return;
    case POLLING:
        if (world->core != NULL && slot->poll != NULL && !slot->poll->is_done && slot->poll->opened == world->opened) {
            sim_fault(world, HF_SIM_POLL_CANCELED);
            hf_core_cancel(world->core, &slot->poll->call, sim_now(world));
        }
        return;
    case WORKING:
        answer(world, slot);
        return;
    default:
        return;
    }
}

void sim_workers_init(sim_world *world)
{
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
            worker->slots[j] = (sim_slot){.actor = {.wake = wake}, .worker = worker, .kind = j};
            sim_wake_in(world, &worker->slots[j].actor, sim_upto(world, SIM_SECOND));
        }
    }
}
