/* Updates. A workflow counts the updates that it has completed, and the outcome of one is its number. So the updates of a run are in one
 * order, that of their events, and (I10) an update that was sent after another one's outcome was told has a greater number; each id
 * has one outcome, whoever asks and however often; what was told is in the history. */
#include "sim/engine/asks.h"
#include "sim/engine/workers.h"

#include "history/payload.h"

#include <stdlib.h>
#include <string.h>

#define TYPE_PREFIX "type.googleapis.com/temporal.api.update.v1."

/* ---- Callers ----------------------------------------------------------------------------------------------------------- */

/* The greatest number that anybody was told for this run. */
static int64_t told_most(const sim_world *world, const char *run_id)
{
    int64_t most = 0;
    for (size_t i = 0; i < world->updates.count; i++) {
        const sim_update *update = &world->updates.items[i];
        if (strcmp(update->run_id, run_id) == 0 && update->told_number > most) {
            most = update->told_number;
        }
    }
    return most;
}

static void over(sim_world *world, sim_asker *asker)
{
    asker->has_update = false;
    sim_ask_again(world, asker);
}

static void told_outcome(sim_world *world, sim_update *update, const hf_pb_outcome *outcome)
{
    if (outcome->value_case == HF_PB_OUTCOME_FAILURE) {
        hf_str type = hf_failure_type(outcome->failure);
        update->is_outlived = hf_str_equal(type, HF_STR("AcceptedUpdateCompletedWorkflow"));
        if (!update->is_outlived && update->is_accepted) {
            sim_fail(world, "I10: update %s was accepted and then rejected (%.*s)", update->id, HF_STR_ARGS(type));
        }
        return;
    }
    char text[64];
    (void)snprintf(text, sizeof text, "%.*s", HF_STR_ARGS(outcome->success->payloads.items[0].data));
    char *end = NULL;
    int64_t number = strtoll(text, &end, 10);
    if (*end != ':' || strcmp(end + 1, update->id) != 0) {
        sim_fail(world, "I10: update %s has the outcome %s", update->id, text);
    } else if (update->told_number != 0 && update->told_number != number) {
        sim_fail(world, "I10: update %s has two outcomes, %lld and %lld", update->id, (long long)update->told_number,
                 (long long)number);
    } else if (number <= update->before) {
        sim_fail(world, "I10: update %s is number %lld, and was sent after number %lld was told", update->id,
                 (long long)number, (long long)update->before);
    }
    update->told_number = number;
}

static bool is_final_refusal(sim_world *world, const sim_call *call, const sim_update *update)
{
    char name[SIM_NAME_LEN];
    (void)snprintf(name, sizeof name, "wf-%d", update->workflow);
    switch ((int)call->call.status) {
    case HF_ERR_NOT_FOUND: /* the run is closed, or not there, and the update was not accepted */
        if (update->is_accepted && world->knobs.deletes == 0 && !sim_is_damaged(world, hf_str_of(name))) {
            sim_fail(world, "I10: update %s was accepted, and is not there: %s", update->id, call->call.message);
        }
        return true;
    case HF_ERR_LIMIT:
    case HF_ERR_NOT_READY:
    case HF_ERR_EXISTS:
    case HF_ERR_TOO_BIG:
        return true;
    default:
        if (!sim_is_stopped(world, call, hf_str_of(name))) {
            sim_fail(world, "an update was refused with %s: %s", hf_status_name(call->call.status), call->call.message);
        }
        return true;
    }
}

static void on_updated(sim_world *world, sim_call *call)
{
    sim_asker *asker = HF_CONTAINER(call->actor, sim_asker, actor);
    sim_update *update = &world->updates.items[call->log];
    sim_trace(world, "update %s of wf-%d %.8s: %s %s", update->id, update->workflow, update->run_id,
              hf_status_name(call->call.status), call->call.message);
    asker->is_waiting = false;
    if (sim_is_lost(call) || call->call.status == HF_ERR_CANCELED) {
        sim_ask_again(world, asker); /* the same again */
        return;
    }
    if (call->call.status != HF_OK) {
        if (is_final_refusal(world, call, update)) {
            over(world, asker);
        }
        return;
    }
    const hf_pb_update_workflow_execution_response *response = call->call.response;
    hf_pb_update_workflow_execution_response flat = {0};
    if (call->call.method == HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE) {
        const hf_pb_poll_workflow_execution_update_response *poll = call->call.response;
        flat.update_ref = poll->update_ref;
        flat.outcome = poll->outcome;
        flat.stage = poll->stage;
        response = &flat;
    } else if (call->call.method == HF_METHOD_EXECUTE_MULTI_OPERATION) {
        const hf_pb_execute_multi_operation_response *both = call->call.response;
        response = both->responses.items[1].update_workflow;
        char name[SIM_NAME_LEN];
        (void)snprintf(name, sizeof name, "wf-%d", update->workflow);
        (void)sim_log_run(world, both->responses.items[0].start_workflow->run_id, hf_str_of(name));
        update = &world->updates.items[call->log];
    }
    if (response->stage == HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED) {
        sim_ask_again(world, asker);
        return;
    }
    hf_str run_id = response->update_ref->workflow_execution->run_id;
    if (update->is_accepted && !hf_str_equal(hf_str_of(update->run_id), run_id)) {
        sim_fail(world, "I10: update %s was accepted by two runs", update->id);
    }
    bool is_rejected =
        response->outcome != NULL && response->outcome->value_case == HF_PB_OUTCOME_FAILURE &&
        !hf_str_equal(hf_failure_type(response->outcome->failure), HF_STR("AcceptedUpdateCompletedWorkflow"));
    if (!is_rejected) {
        (void)snprintf(update->run_id, sizeof update->run_id, "%.*s", HF_STR_ARGS(run_id));
    }
    if (response->outcome != NULL) {
        told_outcome(world, update, response->outcome);
        update->is_accepted = update->is_accepted || !is_rejected;
        over(world, asker);
    } else {
        update->is_accepted = true;
        sim_ask_again(world, asker);
    }
}

static void fill_update(sim_call *call, const sim_update *update, hf_pb_update_workflow_execution_request *request)
{
    char name[SIM_NAME_LEN];
    (void)snprintf(name, sizeof name, "wf-%d", update->workflow);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->workflow_execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->workflow_execution->workflow_id = sim_copy(call, name);
    request->wait_policy = HF_ARENA_NEW(&call->arena, hf_pb_wait_policy);
    request->wait_policy->lifecycle_stage = update->stage;
    request->request = HF_ARENA_NEW(&call->arena, hf_pb_request);
    request->request->meta = HF_ARENA_NEW(&call->arena, hf_pb_meta);
    request->request->meta->update_id = sim_copy(call, update->id);
    request->request->input = HF_ARENA_NEW(&call->arena, hf_pb_input);
    request->request->input->name = HF_STR("count");
}

static sim_call *make_update(sim_world *world, sim_actor *actor, size_t index)
{
    const sim_update *update = &world->updates.items[index];
    void (*then)(sim_world *, sim_call *) = actor != NULL ? on_updated : NULL;
    sim_call *call = NULL;
    if (update->is_accepted && sim_chance(world, 500)) {
        call = sim_call_new(world, HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE, actor, then);
        hf_pb_poll_workflow_execution_update_request *request =
            HF_ARENA_NEW(&call->arena, hf_pb_poll_workflow_execution_update_request);
        char name[SIM_NAME_LEN];
        (void)snprintf(name, sizeof name, "wf-%d", update->workflow);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->update_ref = HF_ARENA_NEW(&call->arena, hf_pb_update_ref);
        request->update_ref->update_id = sim_copy(call, update->id);
        request->update_ref->workflow_execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
        request->update_ref->workflow_execution->workflow_id = sim_copy(call, name);
        request->update_ref->workflow_execution->run_id = sim_copy(call, update->run_id);
        request->wait_policy = HF_ARENA_NEW(&call->arena, hf_pb_wait_policy);
        request->wait_policy->lifecycle_stage = HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED;
        call->call.request = request;
    } else if (update->with_start && !update->is_accepted) {
        call = sim_call_new(world, HF_METHOD_EXECUTE_MULTI_OPERATION, actor, then);
        hf_pb_execute_multi_operation_request *request =
            HF_ARENA_NEW(&call->arena, hf_pb_execute_multi_operation_request);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->operations.items = HF_ARENA_ARRAY(&call->arena, hf_pb_execute_multi_operation_request_operation, 2);
        request->operations.count = 2;
        request->operations.items[0].operation_case = HF_PB_EXECUTE_MULTI_OPERATION_REQUEST_OPERATION_START_WORKFLOW;
        request->operations.items[0].start_workflow =
            HF_ARENA_NEW(&call->arena, hf_pb_start_workflow_execution_request);
        sim_fill_update_start(world, call, update->workflow, update->id, request->operations.items[0].start_workflow);
        request->operations.items[1].operation_case = HF_PB_EXECUTE_MULTI_OPERATION_REQUEST_OPERATION_UPDATE_WORKFLOW;
        request->operations.items[1].update_workflow =
            HF_ARENA_NEW(&call->arena, hf_pb_update_workflow_execution_request);
        fill_update(call, update, request->operations.items[1].update_workflow);
        call->call.request = request;
    } else {
        call = sim_call_new(world, HF_METHOD_UPDATE_WORKFLOW_EXECUTION, actor, then);
        hf_pb_update_workflow_execution_request *request =
            HF_ARENA_NEW(&call->arena, hf_pb_update_workflow_execution_request);
        fill_update(call, update, request);
        request->workflow_execution->run_id = sim_copy(call, update->run_id);
        call->call.request = request;
    }
    call->log = index;
    return call;
}

static void submit(sim_world *world, sim_asker *asker)
{
    sim_call *second = NULL;
    sim_update *update = &world->updates.items[asker->update];
    update->asked_last = sim_now(world).wall;
    update->asked = update->asked == 0 ? update->asked_last : update->asked;
    asker->is_waiting = true;
    if (sim_evil(world, world->knobs.client_twice)) {
        second = make_update(world, NULL, asker->update);
    }
    sim_call *call = make_update(world, &asker->actor, asker->update);
    sim_call_submit(world, call);
    if (second != NULL) {
        sim_call_submit(world, second);
    }
}

void sim_update_again(sim_world *world, sim_asker *asker)
{
    submit(world, asker);
}

void sim_update_next(sim_world *world, sim_asker *asker)
{
    const sim_run_log *log = &world->runs.items[hf_rng_below(&world->rng, world->runs.count)];
    if (sim_chance(world, 700)) {
        log = &world->runs.items[world->runs.count - 1 - hf_rng_below(&world->rng, (world->runs.count + 3) / 4)];
    }
    int workflow = 0;
    if (sscanf(log->workflow_id, "wf-%d", &workflow) != 1) {
        sim_ask_again(world, asker);
        return;
    }
    sim_update *update = SIM_PUSH(&world->updates);
    log = NULL;
    update->workflow = workflow;
    update->with_start = sim_chance(world, 80);
    update->stage = sim_chance(world, 500) ? HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED
                                           : HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED;
    (void)snprintf(update->id, sizeof update->id, "u%d-%llu", asker->index, (unsigned long long)asker->number++);
    /* It names no run: what it is held against is the greatest number of all runs of that id that are open, which is at most one. */
    asker->update = world->updates.count - 1;
    asker->has_update = true;
    if (!update->with_start && sim_chance(world, 600)) {
        for (size_t i = world->runs.count; i-- > 0;) {
            char name[SIM_NAME_LEN];
            (void)snprintf(name, sizeof name, "wf-%d", workflow);
            if (strcmp(world->runs.items[i].workflow_id, name) == 0) {
                (void)snprintf(update->run_id, sizeof update->run_id, "%s", world->runs.items[i].run_id);
                update->before = told_most(world, update->run_id);
                break;
            }
        }
    }
    submit(world, asker);
}

/* ---- Workers ----------------------------------------------------------------------------------------------------------- */

void sim_keep_updates(sim_slot *slot, const hf_pb_poll_workflow_task_queue_response *response)
{
    slot->update_count = 0;
    for (size_t i = 0; i < response->messages.count && slot->update_count < SIM_UPDATES_MAX; i++) {
        const hf_pb_message *message = &response->messages.items[i];
        slot->update_event = message->event_id;
        (void)snprintf(slot->updates[slot->update_count++], SIM_NAME_LEN, "%.*s",
                       HF_STR_ARGS(message->protocol_instance_id));
    }
}

bool sim_summary_update(sim_summary *summary, const hf_pb_history_event *event)
{
    if (event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED) {
        hf_str id = event->workflow_execution_update_accepted_event_attributes->protocol_instance_id;
        if (summary->accepted_count == SIM_UPDATES_MAX || id.len >= SIM_NAME_LEN) {
            return false;
        }
        (void)snprintf(summary->accepted[summary->accepted_count++], SIM_NAME_LEN, "%.*s", HF_STR_ARGS(id));
        return true;
    }
    if (event->event_type != HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED) {
        return true;
    }
    hf_str id = event->workflow_execution_update_completed_event_attributes->meta->update_id;
    for (int i = 0; i < summary->accepted_count; i++) {
        if (hf_str_equal(hf_str_of(summary->accepted[i]), id)) {
            summary->completed++;
            memmove(summary->accepted[i], summary->accepted[i + 1],
                    (size_t)(--summary->accepted_count - i) * SIM_NAME_LEN);
            return true;
        }
    }
    return false;
}

typedef struct saying {
    sim_call *call;
    hf_pb_respond_workflow_task_completed_request *request;
    hf_pb_command *commands; /* that name messages */
    size_t command_count;
} saying;

static void say(saying *to, const char *id, const char *verb, const char *type_url, const hf_pb_type *type,
                const void *body, bool is_silent)
{
    hf_arena *arena = &to->call->arena;
    hf_buf bytes;
    hf_buf_init(&bytes, to->call->world->memory, SIZE_MAX / 4);
    hf_pb_encode(type, body, &bytes);
    hf_pb_message *message = &to->request->messages.items[to->request->messages.count++];
    char name[2 * SIM_NAME_LEN];
    (void)snprintf(name, sizeof name, "%s/%s", id, verb);
    message->id = sim_copy(to->call, name);
    message->protocol_instance_id = sim_copy(to->call, id);
    message->body = HF_ARENA_NEW(arena, hf_pb_any);
    message->body->type_url = sim_copy(to->call, type_url);
    message->body->value = hf_arena_copy(arena, hf_str_of_len(bytes.data, bytes.len));
    hf_buf_deinit(&bytes);
    if (!is_silent) {
        hf_pb_command *command = &to->commands[to->command_count++];
        command->command_type = HF_COMMAND_TYPE_PROTOCOL_MESSAGE;
        command->attributes_case = HF_PB_COMMAND_PROTOCOL_MESSAGE_COMMAND_ATTRIBUTES;
        command->protocol_message_command_attributes = HF_ARENA_NEW(arena, hf_pb_protocol_message_command_attributes);
        command->protocol_message_command_attributes->message_id = message->id;
    }
}

static void say_response(saying *to, const char *id, int64_t number)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%lld:%s", (long long)number, id);
    hf_pb_meta meta = {.update_id = hf_str_of(id)};
    hf_pb_outcome outcome = {.value_case = HF_PB_OUTCOME_SUCCESS, .success = sim_payload(to->call, text, 0)};
    hf_pb_response response = {.meta = &meta, .outcome = &outcome};
    say(to, id, "complete", TYPE_PREFIX "Response", &hf_pb_response_type, &response, false);
}

void sim_answer_updates(sim_world *world, const sim_slot *slot, sim_call *call,
                        hf_pb_respond_workflow_task_completed_request *request)
{
    const sim_summary *known = &slot->summary;
    hf_arena *arena = &call->arena;
    size_t most = (size_t)(known->accepted_count + 2 * slot->update_count);
    saying to = {.call = call, .request = request};
    if (most == 0) {
        return;
    }
    request->messages.items = HF_ARENA_ARRAY(arena, hf_pb_message, most);
    to.commands = HF_ARENA_ARRAY(arena, hf_pb_command, most + request->commands.count);
    int64_t number = known->completed;
    for (int i = 0; i < known->accepted_count; i++) {
        say_response(&to, known->accepted[i], ++number);
    }
    for (int i = 0; i < slot->update_count; i++) {
        const char *id = slot->updates[i];
        uint64_t decision = hf_hash_bytes(world->seed, id, strlen(id)) % 16;
        char asked[2 * SIM_NAME_LEN];
        (void)snprintf(asked, sizeof asked, "%s/request", id);
        hf_pb_meta meta = {.update_id = hf_str_of(id)};
        hf_pb_input input = {.name = HF_STR("count")};
        hf_pb_request original = {.meta = &meta, .input = &input};
        if (decision == 0) {
            continue; /* says nothing of it */
        }
        if (decision < 7) {
            hf_pb_rejection rejection = {
                .rejected_request_message_id = hf_str_of(asked),
                .rejected_request_sequencing_event_id = slot->update_event,
                .rejected_request = &original,
                .failure = hf_failure_application(arena, HF_STR("Refused"), HF_STR("no"), false),
            };
            say(&to, id, "reject", TYPE_PREFIX "Rejection", &hf_pb_rejection_type, &rejection, true);
            continue;
        }
        hf_pb_acceptance acceptance = {
            .accepted_request_message_id = hf_str_of(asked),
            .accepted_request_sequencing_event_id = slot->update_event,
            .accepted_request = &original,
        };
        say(&to, id, "accept", TYPE_PREFIX "Acceptance", &hf_pb_acceptance_type, &acceptance, false);
        if (decision < 12) {
            say_response(&to, id, ++number);
        }
    }
    if (to.command_count > 0) {
        for (size_t i = 0; i < request->commands.count; i++) {
            to.commands[to.command_count + i] = request->commands.items[i];
        }
        request->commands.items = to.commands;
        request->commands.count += to.command_count;
    }
    if (sim_chance(world, 800)) {
        request->capabilities = HF_ARENA_NEW(arena, hf_pb_respond_workflow_task_completed_request_capabilities);
        request->capabilities->discard_speculative_workflow_task_with_events = true;
    }
}

/* ---- The end ------------------------------------------------------------------------------------------------------------- */

static sim_update *update_of(sim_world *world, hf_str id)
{
    for (size_t i = 0; i < world->updates.count; i++) {
        if (hf_str_equal(hf_str_of(world->updates.items[i].id), id)) {
            return &world->updates.items[i];
        }
    }
    return NULL;
}

bool sim_saw_update(sim_world *world, size_t run, const hf_pb_history_event *event, const char **ret_why)
{
    bool accepts = event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED;
    hf_str id = accepts ? event->workflow_execution_update_accepted_event_attributes->protocol_instance_id
                        : event->workflow_execution_update_completed_event_attributes->meta->update_id;
    sim_update *update = update_of(world, id);
    sim_run_log *log = &world->runs.items[run];
    if (update == NULL) {
        *ret_why = "I10: nobody sent this update";
        return false;
    }
    if (accepts) {
        *ret_why = "I10: the update was accepted twice";
        bool fine = update->in_run[0] == '\0' || strcmp(update->in_run, log->run_id) != 0;
        if (update->is_accepted && strcmp(update->run_id, log->run_id) != 0) {
            return fine; /* sent twice, and the second one was for the next run */
        }
        (void)snprintf(update->in_run, sizeof update->in_run, "%s", log->run_id);
        update->number = 0;
        return fine;
    }
    const hf_pb_outcome *outcome = event->workflow_execution_update_completed_event_attributes->outcome;
    char text[64];
    char expected[64];
    (void)snprintf(text, sizeof text, "%.*s", HF_STR_ARGS(outcome->success->payloads.items[0].data));
    (void)snprintf(expected, sizeof expected, "%lld:%s", (long long)++log->completed, update->id);
    if (strcmp(text, expected) != 0) {
        *ret_why = "I10: the outcome does not follow from the updates before it";
        return false;
    }
    if (strcmp(update->in_run, log->run_id) == 0) {
        update->number = log->completed;
    }
    return true;
}

void sim_judge_updates(sim_world *world)
{
    for (size_t i = 0; i < world->updates.count && !world->failed; i++) {
        const sim_update *update = &world->updates.items[i];
        world->totals.outcomes += world->knobs.askers == SIM_ASKERS_MAX && update->told_number != 0;
        if (world->knobs.deletes > 0 && update->in_run[0] == '\0') {
            continue; /* it may have been deleted with its run */
        }
        if (update->is_accepted && strcmp(update->in_run, update->run_id) != 0) {
            sim_fail(world, "I10: update %s was accepted by run %s, and is not there", update->id, update->run_id);
        } else if (update->told_number != 0 && update->told_number != update->number) {
            sim_fail(world, "I10: the outcome of update %s was %lld, it is %lld", update->id,
                     (long long)update->told_number, (long long)update->number);
        } else if (update->is_outlived && update->number != 0) {
            sim_fail(world, "I10: update %s was told that its run had ended before it", update->id);
        }
    }
}
