/* The answers of workers: as the program says, or wrong, too much, twice, with a forged token, or repeated because the
 * worker does not know whether the answer arrived. */
#include "sim/engine/workers.h"

#include "sim/engine/along.h"
#include "sim/engine/asks.h"
#include "sim/engine/operator.h"

#include "history/payload.h"

#include <string.h>

/* engine-V2: a token fits its own task only, though another one may have the same ids. */
static void check_fits(sim_world *world, const sim_call *call)
{
    if (call->is_of_old_task && call->call.status == HF_OK) {
        const sim_slot *slot = sim_slot_of(call->actor);
        sim_fail(world, "I7: a workflow task of run %s was answered by worker %d, which had the one before it",
                 world->runs.items[world->answers.items[call->log].run].run_id, slot->worker->index);
    }
}

static void on_answered(sim_world *world, sim_call *call)
{
    sim_slot *slot = sim_slot_of(call->actor);
    check_fits(world, call);
    sim_saw_answer(world, call->log, call);
    sim_published(world, call, call->call.status == HF_OK);
    if (!sim_is_mine(call)) {
        sim_along_lose(world, call);
        return;
    }
    if (sim_is_lost(call)) {
        sim_fault(world, HF_SIM_ANSWER_AGAIN);
        slot->state = SIM_WORKING;
        sim_wake_in(world, &slot->actor, 20 * SIM_MS + sim_upto(world, 500 * SIM_MS));
        return;
    }
    bool is_dropped = world->answers.items[call->log].is_dropped; /* what it knew before still holds */
    if (is_dropped && sim_evil(world, world->knobs.twice)) {      /* once more, when another task may have its ids */
        sim_fault(world, HF_SIM_ANSWER_TWICE);
        slot->state = SIM_WORKING;
        sim_wake_in(world, &slot->actor, sim_upto(world, SIM_SECOND));
        return;
    }
    if (slot->kind != SIM_ACTIVITY && !is_dropped) {
        if (call->call.status == HF_OK && slot->worker->sticky &&
            call->call.method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
            sim_remember(slot->worker, slot);
        } else {
            sim_forget(slot->worker, slot->run_id);
        }
    }
    if (!sim_along_take(world, slot, call)) {
        sim_rest(world, slot, sim_upto(world, 5 * SIM_MS));
    }
}

static void on_second(sim_world *world, sim_call *call)
{
    check_fits(world, call);
    sim_saw_answer(world, call->log, call);
    sim_published(world, call, call->call.status == HF_OK);
    sim_along_lose(world, call);
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
        .is_by_id = sim_is_by_id(method),
        .round = slot->round,
    };
    sim_suspect_answered(world, &world->answers.items[world->answers.count - 1]); /* it may count from now on */
}

/* Activities are for the workers of the same queue. */
static void name_queues(const sim_slot *slot, sim_call *call, const hf_pb_command_list *commands)
{
    char name[SIM_NAME_LEN];
    (void)snprintf(name, sizeof name, "q%d", slot->worker->queue);
    for (size_t i = 0; i < commands->count; i++) {
        if (commands->items[i].command_type == HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK) {
            hf_pb_task_queue *queue = HF_ARENA_NEW(&call->arena, hf_pb_task_queue);
            queue->name = sim_copy(call, name);
            commands->items[i].schedule_activity_task_command_attributes->task_queue = queue;
        }
    }
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
    } else if (commands->count > 0 && sim_chance(world, 300)) { /* others come behind the close */
        items[0].command_type = HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION;
        items[0].attributes_case = 0;
        items[0].cancel_timer_command_attributes = NULL;
    }
    for (size_t i = 0; i < commands->count; i++) {
        items[i + 1] = commands->items[i];
    }
    commands->items = items;
    commands->count++;
}

/* More activities or messages at once than a run may have. */
static void too_many_commands(sim_world *world, sim_call *call, hf_pb_command_list *commands)
{
    hf_arena *arena = &call->arena;
    int kind = (int)sim_upto(world, 1);
    commands->count = world->knobs.core.limits.pending + 1;
    commands->items = HF_ARENA_ARRAY(arena, hf_pb_command, commands->count);
    for (size_t i = 0; i < commands->count; i++) {
        hf_pb_command *command = &commands->items[i];
        char text[SIM_NAME_LEN];
        (void)snprintf(text, sizeof text, "many-%d", (int)i);
        if (kind == 0) {
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
    name_queues(slot, call, &request->commands);
    sim_answer_queries(world, slot, call, request);
    if (!request->force_create_new_workflow_task) {
        sim_answer_updates(world, slot, call, request);
    }
    sim_along_ask(world, slot, request);
    sim_publish_task(world, call, slot->run_id, slot->workflow_id, request);
    if (slot->worker->sticky) {
        request->sticky_attributes = HF_ARENA_NEW(&call->arena, hf_pb_sticky_execution_attributes);
        request->sticky_attributes->worker_task_queue = HF_ARENA_NEW(&call->arena, hf_pb_task_queue);
        request->sticky_attributes->worker_task_queue->name = sim_copy(call, slot->worker->sticky_queue);
        request->sticky_attributes->schedule_to_start_timeout = hf_pb_duration_of(hf_seconds(1 + sim_upto(world, 4)));
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
    request->cause = (unsigned char)slot->token[HF_TOKEN_LEN - 1] % 2 != 0
                         ? HF_WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR
                         : HF_WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE;
    request->failure = hf_failure_application(&call->arena, HF_STR("Bug"), HF_STR("a bug in the workflow"), false);
    call->call.request = request;
}

static void fill_activity(sim_world *world, sim_slot *slot, sim_call *call)
{
    char nonce[SIM_NAME_LEN];
    (void)snprintf(nonce, sizeof nonce, "n%llu", (unsigned long long)slot->answer);
    hf_str token = hf_arena_copy(&call->arena, hf_str_of_len(slot->token, HF_TOKEN_LEN));
    if (sim_is_by_id(call->call.method)) {
        sim_by_id_fill(world, call, &(sim_by_id){slot->workflow_id, slot->run_id, slot->scheduled_id, nonce});
        return;
    }
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
        sim_publish_beat(world, call, slot, request);
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
        if (sim_chance(world, 250)) {
            request->failure->application_failure_info->next_retry_delay =
                hf_pb_duration_of(hf_nanoseconds(sim_upto(world, 2 * SIM_SECOND)));
        }
        call->call.request = request;
        return;
    }
    }
}

static void on_beat(sim_world *world, sim_call *call)
{
    sim_slot *slot = sim_slot_of(call->actor);
    sim_published(world, call, call->call.status == HF_OK);
    if (!sim_is_mine(call)) {
        return;
    }
    if (call->call.status == HF_OK && sim_is_by_id(call->call.method)) {
        const hf_pb_record_activity_task_heartbeat_by_id_response *response = call->call.response;
        slot->is_canceled = response->cancel_requested && sim_chance(world, 800);
        sim_activity_beat(world, slot, true, response->activity_paused, response->activity_reset);
    } else if (call->call.status == HF_OK) {
        const hf_pb_record_activity_task_heartbeat_response *response = call->call.response;
        slot->is_canceled = response->cancel_requested && sim_chance(world, 800);
        if (call->call.lets_go) {
            slot->is_left = true;
            sim_left_activity(world, slot);
        }
        sim_activity_beat(world, slot, false, response->activity_paused, response->activity_reset);
    } else if (!sim_is_lost(call)) {
        sim_rest(world, slot, sim_upto(world, 5 * SIM_MS)); /* the attempt is over */
        return;
    }
    slot->heartbeats = sim_chance(world, 500);
    slot->state = SIM_WORKING;
    sim_wake_in(world, &slot->actor, SIM_MS + sim_upto(world, world->knobs.work_ns_max));
}

static hf_method choose_method(sim_world *world, const sim_slot *slot)
{
    if (slot->has_answer) {
        return world->answers.items[slot->answer].method; /* the same again */
    }
    if (slot->kind != SIM_ACTIVITY) {
        bool fails = sim_evil(world, world->knobs.task_fails);
        if (fails) {
            sim_fault(world, HF_SIM_TASK_FAILED);
        }
        return fails ? HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED : HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED;
    }
    hf_method method = slot->is_canceled                              ? HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED
                       : sim_evil(world, world->knobs.activity_fails) ? HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED
                                                                      : HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED;
    return sim_chance(world, world->knobs.by_id) ? sim_by_id_method(method) : method;
}

static sim_call *make_answer(sim_world *world, sim_slot *slot, hf_method method, void (*then)(sim_world *, sim_call *))
{
    sim_call *call = sim_ask(world, slot, method, then);
    call->log = slot->answer;
    call->is_of_old_task =
        slot->kind != SIM_ACTIVITY && slot->task < world->runs.items[world->answers.items[slot->answer].run].tasks;
    if (method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
        fill_completed(world, slot, call);
    } else if (method == HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED) {
        fill_task_failed(slot, call);
    } else {
        fill_activity(world, slot, call);
    }
    return call;
}

void sim_answer_task(sim_world *world, sim_slot *slot)
{
    if (slot->kind == SIM_ACTIVITY && slot->heartbeats && !slot->has_answer) {
        hf_method method = HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT;
        slot->state = SIM_ANSWERING;
        slot->beat = ++world->marks;
        method = sim_chance(world, world->knobs.by_id) ? sim_by_id_method(method) : method;
        sim_call *call = make_answer(world, slot, method, on_beat);
        call->call.lets_go = slot->worker->in_process && !sim_is_by_id(method) && sim_chance(world, 300);
        sim_call_submit(world, call);
        return;
    }
    hf_method method = choose_method(world, slot);
    log_answer(world, slot, method);
    slot->state = SIM_ANSWERING;
    if (!sim_is_by_id(method) && sim_evil(world, world->knobs.forged)) {
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
