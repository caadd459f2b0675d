/* Clients that reset runs: open and closed ones, old ones, those that were continued; to good and bad points, with requests that are repeated
 * while they are under way, after a crash, or long after. They signal, update, delete and start as well. The workflows are in a
 * namespace of their own, where one worker does something random with each task: events that are there twice, in two runs,
 * would confuse the judge of the others. */
#include "sim/engine/resets.h"

#include "history/history.h"
#include "history/payload.h"
#include "ledger/run_id.h"

#include <stdlib.h>
#include <string.h>

enum { OPS_MAX = 80 };

#define UPDATE_TYPE "type.googleapis.com/temporal.api.update.v1."

void sim_reset_name(int family, char text[SIM_NAME_LEN])
{
    (void)snprintf(text, SIM_NAME_LEN, "rs-%d", family);
}

void sim_reset_child_name(int child, char text[SIM_NAME_LEN])
{
    (void)snprintf(text, SIM_NAME_LEN, "rs.%d", child);
}

static sim_call *ask(sim_world *world, hf_method method, sim_actor *actor, void (*then)(sim_world *, sim_call *))
{
    bool counts = world->core != NULL && method != HF_METHOD_UPDATE_WORKFLOW_EXECUTION; /* else calls.c does it */
    world->asked_inputs += counts ? 1 : 0;
    return sim_call_new(world, method, actor, then);
}

/* ---- Requests ---------------------------------------------------------------------------------------------------------- */

static hf_pb_workflow_execution *execution_of(sim_call *call, const sim_reset_op *op)
{
    hf_pb_workflow_execution *execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    execution->workflow_id = sim_copy(call, op->workflow_id);
    execution->run_id = sim_copy(call, op->run_id);
    return execution;
}

#define REQUEST(stem)                                                                     \
    hf_pb_##stem##_request *request = HF_ARENA_NEW(&call->arena, hf_pb_##stem##_request); \
    request->namespace = HF_STR(SIM_RESETS_NAMESPACE);                                    \
    call->call.request = request

static void fill_start(sim_call *call, const sim_reset_op *op)
{
    REQUEST(start_workflow_execution);
    request->workflow_id = sim_copy(call, op->workflow_id);
    request->workflow_type = HF_ARENA_NEW(&call->arena, hf_pb_workflow_type);
    request->workflow_type->name = HF_STR("reset");
    request->task_queue = HF_ARENA_NEW(&call->arena, hf_pb_task_queue);
    request->task_queue->name = HF_STR(SIM_RESETS_QUEUE);
    request->request_id = sim_copy(call, op->request_id);
    request->workflow_task_timeout = hf_pb_duration_of(hf_seconds(1));
}

static void fill_signal(sim_call *call, const sim_reset_op *op)
{
    REQUEST(signal_workflow_execution);
    request->workflow_execution = execution_of(call, op);
    request->signal_name = HF_STR("go");
    request->request_id = sim_copy(call, op->request_id);
}

static void fill_update(sim_call *call, const sim_reset_op *op)
{
    REQUEST(update_workflow_execution);
    request->workflow_execution = execution_of(call, op);
    request->request = HF_ARENA_NEW(&call->arena, hf_pb_request);
    request->request->meta = HF_ARENA_NEW(&call->arena, hf_pb_meta);
    request->request->meta->update_id = sim_copy(call, op->request_id);
    request->request->input = HF_ARENA_NEW(&call->arena, hf_pb_input);
    request->request->input->name = HF_STR("up");
    call->call.timeout = hf_seconds(1);
}

int32_t sim_reset_priority(const sim_reset_op *op)
{
    uint64_t hash = hf_hash_bytes(7, op->request_id, strlen(op->request_id));
    return hash % 4 == 0 ? 1 + (int32_t)(hash / 4 % 1000000) : 0;
}

static void add_options(sim_call *call, int32_t priority, hf_pb_reset_workflow_execution_request *request)
{
    static hf_str paths[] = {{"priority.priority_key", 21}};
    hf_arena *arena = &call->arena;
    hf_pb_post_reset_operation *operation = HF_ARENA_NEW(arena, hf_pb_post_reset_operation);
    operation->variant_case = HF_PB_POST_RESET_OPERATION_UPDATE_WORKFLOW_OPTIONS;
    operation->update_workflow_options = HF_ARENA_NEW(arena, hf_pb_post_reset_operation_update_workflow_options);
    operation->update_workflow_options->workflow_execution_options =
        HF_ARENA_NEW(arena, hf_pb_workflow_execution_options);
    operation->update_workflow_options->workflow_execution_options->priority = HF_ARENA_NEW(arena, hf_pb_priority);
    operation->update_workflow_options->workflow_execution_options->priority->priority_key = priority;
    operation->update_workflow_options->update_mask = HF_ARENA_NEW(arena, hf_pb_field_mask);
    operation->update_workflow_options->update_mask->paths.items = paths;
    operation->update_workflow_options->update_mask->paths.count = 1;
    request->post_reset_operations.items = operation;
    request->post_reset_operations.count = 1;
}

static void fill_reset(sim_call *call, const sim_reset_op *op)
{
    REQUEST(reset_workflow_execution);
    request->workflow_execution = execution_of(call, op);
    request->request_id = sim_copy(call, op->request_id);
    request->reason = HF_STR("again");
    request->holdfast_point = op->point < 0 ? -op->point : 0;
    request->workflow_task_finish_event_id = op->point > 0 ? op->point : 0;
    if (op->exclude != 0) {
        request->reset_reapply_exclude_types.items = HF_ARENA_NEW(&call->arena, int32_t);
        request->reset_reapply_exclude_types.items[0] = op->exclude;
        request->reset_reapply_exclude_types.count = 1;
    }
    if (sim_reset_priority(op) != 0) {
        add_options(call, sim_reset_priority(op), request);
    }
}

static void fill_delete(sim_call *call, const sim_reset_op *op)
{
    REQUEST(delete_workflow_execution);
    request->workflow_execution = execution_of(call, op);
}

static void fill_describe(sim_call *call, const sim_reset_op *op)
{
    REQUEST(describe_workflow_execution);
    request->execution = execution_of(call, op);
}

static void fill_terminate(sim_call *call, const sim_reset_op *op)
{
    REQUEST(terminate_workflow_execution);
    request->workflow_execution = execution_of(call, op);
    request->reason = HF_STR("over");
}

static const struct {
    hf_method method;
    void (*fill)(sim_call *call, const sim_reset_op *op);
} KINDS[] = {
    [SIM_RESET_START] = {HF_METHOD_START_WORKFLOW_EXECUTION, fill_start},
    [SIM_RESET_SIGNAL] = {HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, fill_signal},
    [SIM_RESET_UPDATE] = {HF_METHOD_UPDATE_WORKFLOW_EXECUTION, fill_update},
    [SIM_RESET_RESET] = {HF_METHOD_RESET_WORKFLOW_EXECUTION, fill_reset},
    [SIM_RESET_DELETE] = {HF_METHOD_DELETE_WORKFLOW_EXECUTION, fill_delete},
    [SIM_RESET_DESCRIBE] = {HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, fill_describe},
    [SIM_RESET_TERMINATE] = {HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, fill_terminate},
};

/* ---- Answers ----------------------------------------------------------------------------------------------------------- */

static bool is_refusal(const sim_reset_op *op, hf_status status)
{
    switch ((int)status) {
    case HF_ERR_NOT_FOUND:
        return op->kind != SIM_RESET_START;
    case HF_ERR_EXISTS:
        return op->kind == SIM_RESET_START;
    case HF_ERR_INVALID:
    case HF_ERR_UNAVAILABLE:
        return op->kind == SIM_RESET_RESET;
    case HF_ERR_LIMIT:
    case HF_ERR_NOT_READY:
    case HF_ERR_TIMEOUT:
        return op->kind == SIM_RESET_SIGNAL || op->kind == SIM_RESET_UPDATE || op->kind == SIM_RESET_RESET;
    default:
        return false;
    }
}

static hf_str run_in(const sim_reset_op *op, const hf_call *call)
{
    if (op->kind == SIM_RESET_RESET) {
        return ((const hf_pb_reset_workflow_execution_response *)call->response)->run_id;
    }
    if (op->kind == SIM_RESET_START) {
        return ((const hf_pb_start_workflow_execution_response *)call->response)->run_id;
    }
    const hf_pb_describe_workflow_execution_response *described = call->response;
    return op->kind == SIM_RESET_DESCRIBE ? described->workflow_execution_info->execution->run_id : HF_STR("");
}

/* sim-Z1: a request is carried out once. sim-Z2: an id leads to its newest run. */
static void take_run(sim_world *world, sim_reset_op *op, hf_str run_id, int64_t newest)
{
    sim_resets *all = &world->resets;
    if (run_id.len != 36) {
        sim_fail(world, "%s was answered without a run id", op->request_id);
        return;
    }
    if (op->kind == SIM_RESET_RESET && op->has_answer && !hf_str_equal(hf_str_of(op->made), run_id)) {
        sim_fail(world, "sim-Z1: reset %s was answered with run %s, and later with run %.*s", op->request_id, op->made,
                 HF_STR_ARGS(run_id));
    }
    int64_t number = world->core != NULL ? hf_run_id_number(world->core->mac_key, run_id) : 0;
    /* A reset that began before the newest run was made and deleted has a smaller number. */
    if (op->kind == SIM_RESET_DESCRIBE && op->run_id[0] == '\0' && number != 0 && number < newest &&
        !all->has_deletes) {
        sim_fail(world, "sim-Z2: %s leads to run %.*s, number %lld, but a client has seen %lld", op->workflow_id,
                 HF_STR_ARGS(run_id), (long long)number, (long long)newest);
    }
    (void)snprintf(op->made, sizeof op->made, "%.*s", HF_STR_ARGS(run_id));
    if (op->family >= 0 && number > all->newest[op->family]) {
        all->newest[op->family] = number;
    }
}

static void on_answered(sim_world *world, sim_call *call)
{
    sim_reset_client *client = HF_CONTAINER(call->actor, sim_reset_client, actor);
    sim_reset_op *op = &world->resets.ops.items[call->log];
    client->is_waiting = false;
    sim_trace(world, "reset client: %s of %s %.8s (%s): %s %s", hf_method_info_of(call->call.method)->name,
              op->workflow_id, op->run_id, op->request_id, hf_status_name(call->call.status), call->call.message);
    sim_wake_in(world, &client->actor, 5 * SIM_MS + sim_upto(world, world->knobs.think_ns_max));
    if (sim_is_lost(call)) {
        return; /* the same again */
    }
    client->is_busy = false;
    op->is_answered = true;
    op->is_acked = call->call.status == HF_OK;
    if (op->is_acked) {
        hf_str run_id = run_in(op, &call->call);
        if (op->kind == SIM_RESET_RESET || op->kind == SIM_RESET_START || op->kind == SIM_RESET_DESCRIBE) {
            take_run(world, op, run_id, call->newest);
        }
    } else if (op->has_answer && call->call.status == HF_ERR_INVALID) {
        sim_fail(world, "sim-Z1: reset %s was answered with run %s, and is refused now: %s", op->request_id, op->made,
                 call->call.message);
    } else if (!is_refusal(op, call->call.status)) {
        sim_fail(world, "%s was refused with %s: %s", hf_method_info_of(call->call.method)->name,
                 hf_status_name(call->call.status), call->call.message);
    }
}

/* A second call of the same request, whose answer nobody hears. */
static void on_second(sim_world *world, sim_call *call)
{
    (void)world;
    (void)call;
}

static void submit(sim_world *world, sim_reset_client *client)
{
    const sim_reset_op *op = &world->resets.ops.items[client->op];
    int calls = op->kind == SIM_RESET_RESET && sim_evil(world, 200) ? 2 : 1;
    client->is_waiting = true;
    for (int i = 0; i < calls; i++) {
        op = &world->resets.ops.items[client->op];
        sim_call *call =
            ask(world, KINDS[op->kind].method, i == 0 ? &client->actor : NULL, i == 0 ? on_answered : on_second);
        KINDS[op->kind].fill(call, op);
        call->log = client->op;
        call->newest = op->family >= 0 ? world->resets.newest[op->family] : 0;
        sim_call_submit(world, call);
    }
}

/* ---- Clients ----------------------------------------------------------------------------------------------------------- */

static sim_reset_op *new_op(sim_world *world, sim_reset_client *client, sim_reset_kind kind, int family)
{
    sim_resets *all = &world->resets;
    sim_reset_op *op = SIM_PUSH(&all->ops);
    *op = (sim_reset_op){.kind = kind, .family = family};
    if (family >= 0) {
        sim_reset_name(family, op->workflow_id);
    }
    (void)snprintf(op->request_id, sizeof op->request_id, "z%llu", (unsigned long long)all->numbers++);
    client->op = all->ops.count - 1;
    client->is_busy = true;
    return op;
}

/* A run of the family that somebody knows. */
static void name_run(sim_world *world, sim_reset_op *op)
{
    const sim_resets *all = &world->resets;
    for (int i = 0; i < 4 && all->ops.count > 1; i++) {
        const sim_reset_op *other = &all->ops.items[hf_rng_below(&world->rng, all->ops.count - 1)];
        if (other->family == op->family && other->made[0] != '\0') {
            (void)snprintf(op->run_id, sizeof op->run_id, "%s", other->made);
            return;
        }
    }
}

/* Resets of this run, which remembers only the last ones. */
static int named_count(const sim_resets *all, const char *run_id)
{
    int count = 0;
    for (size_t i = 0; i < all->ops.count; i++) {
        count += all->ops.items[i].kind == SIM_RESET_RESET && strcmp(all->ops.items[i].run_id, run_id) == 0;
    }
    return count;
}

static void choose_reset(sim_world *world, sim_reset_op *op)
{
    const sim_resets *all = &world->resets;
    if (sim_chance(world, 600)) {
        name_run(world, op);
    }
    int64_t chance = sim_upto(world, 9);
    op->point = chance < 2 ? -1 : chance < 5 ? -2 : (int)sim_upto(world, 30);
    op->exclude = sim_chance(world, 200) ? 1 + (int)sim_upto(world, 1) : 0;
    /* Or one that was asked for before, perhaps with a run id that names its base, or without. */
    for (int i = 0; i < 3 && all->ops.count > 1 && sim_chance(world, 300); i++) {
        const sim_reset_op *other = &all->ops.items[hf_rng_below(&world->rng, all->ops.count - 1)];
        if (other->kind == SIM_RESET_RESET && other->is_acked && other->family == op->family) {
            *op = *other;
            /* One that names no run may meet one that was started later and knows nothing of it. */
            op->has_answer = other->run_id[0] != '\0' && named_count(all, other->run_id) < HF_RESETS_KEPT_MAX;
            op->is_answered = op->is_acked = false;
            return;
        }
    }
}

static void choose(sim_world *world, sim_reset_client *client)
{
    int family = (int)sim_upto(world, SIM_RESET_FAMILIES - 1);
    int64_t chance = sim_upto(world, 99);
    sim_reset_kind kind = chance < 25   ? SIM_RESET_RESET
                          : chance < 55 ? SIM_RESET_SIGNAL
                          : chance < 65 ? SIM_RESET_UPDATE
                          : chance < 80 ? SIM_RESET_START
                          : chance < 98 ? SIM_RESET_DESCRIBE
                                        : SIM_RESET_DELETE;
    sim_reset_op *op = new_op(world, client, kind, family);
    if (kind == SIM_RESET_RESET) {
        choose_reset(world, op);
    }
    if (kind == SIM_RESET_DELETE) {
        world->resets.has_deletes = world->resets.asks_deletes = true;
        if (sim_chance(world, 400)) {
            name_run(world, op);
        }
    }
}

/* At the end all workflows are terminated, and their children. */
static bool sweep(sim_world *world, sim_reset_client *client)
{
    int count = SIM_RESET_FAMILIES + world->resets.children;
    if (client != &world->resets.clients[0] || client->sweep >= count) {
        return false;
    }
    for (int i = 1; i < SIM_RESET_CLIENTS; i++) {
        if (world->resets.clients[i].is_busy) { /* it may still reset something */
            sim_wake_in(world, &client->actor, SIM_SECOND / 2);
            return false;
        }
    }
    int at = client->sweep++;
    sim_reset_op *op = new_op(world, client, SIM_RESET_TERMINATE, at < SIM_RESET_FAMILIES ? at : -1);
    if (at >= SIM_RESET_FAMILIES) {
        sim_reset_child_name(at - SIM_RESET_FAMILIES, op->workflow_id);
    }
    return true;
}

/* sim-Z2 */
static void check_open(sim_world *world)
{
    int open[SIM_RESET_FAMILIES] = {0};
    if (world->core == NULL || hf_core_status(world->core) != HF_OK) {
        return;
    }
    HF_LIST_EACH(node, &world->core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        for (int i = 0; i < SIM_RESET_FAMILIES; i++) {
            char name[SIM_NAME_LEN];
            sim_reset_name(i, name);
            if (hf_run_is_open(run) && hf_str_equal(hf_owned_str(&run->workflow_id), hf_str_of(name)) &&
                ++open[i] > 1) {
                sim_fail(world, "sim-Z2: two runs of %s are open", name);
            }
        }
    }
}

static void wake_client(sim_world *world, sim_actor *actor)
{
    sim_reset_client *client = HF_CONTAINER(actor, sim_reset_client, actor);
    check_open(world);
    if (client->is_waiting) {
        return;
    }
    if (!client->is_busy && world->is_healed && !sweep(world, client)) {
        return;
    }
    if (!client->is_busy && world->resets.ops.count >= OPS_MAX && !world->is_healed) {
        sim_wake_in(world, actor, SIM_SECOND); /* until the end: where reads fail often, nobody else gets on */
        return;
    }
    if (!client->is_busy) {
        choose(world, client);
    }
    submit(world, client);
}

bool sim_resets_are_busy(const sim_world *world)
{
    const sim_resets *all = &world->resets;
    bool busy = all->is_on && all->clients[0].sweep < SIM_RESET_FAMILIES + all->children;
    for (int i = 0; i < SIM_RESET_CLIENTS; i++) {
        busy = busy || all->clients[i].is_busy || all->clients[i].is_waiting;
    }
    return busy;
}

/* ---- The worker -------------------------------------------------------------------------------------------------------- */

static void poll(sim_world *world);

static void on_completed(sim_world *world, sim_call *call)
{
    (void)call; /* taken or not: the next task will show */
    poll(world);
}

typedef struct answer {
    sim_call *call;
    hf_pb_respond_workflow_task_completed_request *request;
} answer;

static hf_pb_command *add_command(answer *it, int32_t type)
{
    hf_pb_command *command = &it->request->commands.items[it->request->commands.count++];
    command->command_type = type;
    return command;
}

static void add_marker(answer *it)
{
    hf_pb_command *command = add_command(it, HF_COMMAND_TYPE_RECORD_MARKER);
    command->attributes_case = HF_PB_COMMAND_RECORD_MARKER_COMMAND_ATTRIBUTES;
    command->record_marker_command_attributes = HF_ARENA_NEW(&it->call->arena, hf_pb_record_marker_command_attributes);
    command->record_marker_command_attributes->marker_name = HF_STR("m");
}

static void add_child(sim_world *world, answer *it)
{
    char name[SIM_NAME_LEN];
    sim_reset_child_name(world->resets.children++, name);
    hf_pb_command *command = add_command(it, HF_COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION);
    command->attributes_case = HF_PB_COMMAND_START_CHILD_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    hf_pb_start_child_workflow_execution_command_attributes *attrs =
        HF_ARENA_NEW(&it->call->arena, hf_pb_start_child_workflow_execution_command_attributes);
    attrs->workflow_id = sim_copy(it->call, name);
    attrs->workflow_type = HF_ARENA_NEW(&it->call->arena, hf_pb_workflow_type);
    attrs->workflow_type->name = HF_STR("reset");
    attrs->workflow_task_timeout = hf_pb_duration_of(hf_seconds(1));
    command->start_child_workflow_execution_command_attributes = attrs;
}

static void add_end(answer *it, bool continues)
{
    if (continues) {
        hf_pb_command *command = add_command(it, HF_COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION);
        command->attributes_case = HF_PB_COMMAND_CONTINUE_AS_NEW_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->continue_as_new_workflow_execution_command_attributes =
            HF_ARENA_NEW(&it->call->arena, hf_pb_continue_as_new_workflow_execution_command_attributes);
        return;
    }
    hf_pb_command *command = add_command(it, HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION);
    command->attributes_case = HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    command->complete_workflow_execution_command_attributes =
        HF_ARENA_NEW(&it->call->arena, hf_pb_complete_workflow_execution_command_attributes);
}

static void add_message(answer *it, hf_str id, const char *kind, const hf_pb_type *type, const void *body)
{
    hf_pb_message *message = &it->request->messages.items[it->request->messages.count++];
    char name[100];
    (void)snprintf(name, sizeof name, "%.*s/%s", HF_STR_ARGS(id), kind);
    message->id = sim_copy(it->call, name);
    message->protocol_instance_id = id;
    message->body = HF_ARENA_NEW(&it->call->arena, hf_pb_any);
    (void)snprintf(name, sizeof name, UPDATE_TYPE "%s", kind);
    message->body->type_url = sim_copy(it->call, name);
    hf_buf bytes;
    hf_buf_init(&bytes, it->call->world->memory, SIZE_MAX / 4);
    hf_pb_encode(type, body, &bytes);
    message->body->value = hf_arena_copy(&it->call->arena, hf_str_of_len(bytes.data, bytes.len));
    hf_buf_deinit(&bytes);
}

/* Accepts an update, and mostly completes it at once. */
static void accept(sim_world *world, answer *it, hf_str id, int64_t event_id, hf_pb_request *asked)
{
    char name[100];
    (void)snprintf(name, sizeof name, "%.*s/request", HF_STR_ARGS(id));
    hf_pb_acceptance acceptance = {sim_copy(it->call, name), event_id, asked, {0}};
    add_message(it, id, "Acceptance", &hf_pb_acceptance_type, &acceptance);
    if (sim_chance(world, 800)) {
        hf_pb_meta meta = {.update_id = id};
        hf_pb_outcome outcome = {.value_case = HF_PB_OUTCOME_SUCCESS, .success = sim_payload(it->call, "fine", 0)};
        hf_pb_response response = {.meta = &meta, .outcome = &outcome};
        add_message(it, id, "Response", &hf_pb_response_type, &response);
    }
}

/* Updates that came with the task, and those that an event of the history has admitted and no other has accepted. */
static void answer_updates(sim_world *world, answer *it, const hf_pb_poll_workflow_task_queue_response *task)
{
    enum { ROOM = 64 };
    it->request->messages.items = HF_ARENA_ARRAY(&it->call->arena, hf_pb_message, ROOM);
    hf_op op;
    hf_op_init(&op);
    for (size_t i = 0; i < task->messages.count && it->request->messages.count + 2 < ROOM; i++) {
        const hf_pb_message *message = &task->messages.items[i];
        hf_pb_request *asked = HF_ARENA_NEW(&it->call->arena, hf_pb_request);
        hf_str bytes = hf_arena_copy(&it->call->arena, message->body->value);
        if (hf_pb_decode(&op, &hf_pb_request_type, bytes, &it->call->arena, asked) == HF_OK) {
            accept(world, it, hf_arena_copy(&it->call->arena, message->protocol_instance_id), message->event_id, asked);
        }
    }
    hf_str history = task->next_page_token.len == 0 ? hf_arena_copy(&it->call->arena, task->history) : HF_STR("");
    hf_str admitted[ROOM / 2];
    int64_t at[ROOM / 2];
    size_t count = 0;
    hf_str bytes = {0};
    while (history.len > 0 && hf_history_next(&history, &bytes)) {
        hf_pb_history_event event;
        if (hf_pb_decode(&op, &hf_pb_history_event_type, bytes, &it->call->arena, &event) != HF_OK) {
            break;
        }
        if (event.event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED && count < HF_COUNT_OF(admitted)) {
            admitted[count] = event.workflow_execution_update_admitted_event_attributes->request->meta->update_id;
            at[count++] = event.event_id;
        } else if (event.event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED) {
            hf_str id = event.workflow_execution_update_accepted_event_attributes->protocol_instance_id;
            for (size_t i = 0; i < count; i++) {
                admitted[i] = hf_str_equal(admitted[i], id) ? HF_STR("") : admitted[i];
            }
        }
    }
    for (size_t i = 0; i < count && it->request->messages.count + 2 < ROOM; i++) {
        if (admitted[i].len > 0) {
            accept(world, it, admitted[i], at[i], NULL);
        }
    }
}

static void complete(sim_world *world, const hf_pb_poll_workflow_task_queue_response *task)
{
    sim_call *call = ask(world, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &world->resets.worker, on_completed);
    REQUEST(respond_workflow_task_completed);
    request->task_token = hf_arena_copy(&call->arena, task->task_token);
    request->commands.items = HF_ARENA_ARRAY(&call->arena, hf_pb_command, 8);
    answer it = {call, request};
    bool is_child = task->workflow_execution->workflow_id.data[2] == '.';
    answer_updates(world, &it, task);
    for (int64_t i = sim_upto(world, 3); i > 0; i--) {
        add_marker(&it);
    }
    if (!is_child && !world->is_healed && world->resets.children < SIM_RESET_CHILDREN_MAX && sim_chance(world, 250)) {
        add_child(world, &it);
    }
    if (is_child ? sim_chance(world, 700) : !world->is_healed && sim_chance(world, 150)) {
        add_end(&it, !is_child && sim_chance(world, 600));
    }
    sim_call_submit(world, call);
}

static void on_polled(sim_world *world, sim_call *call)
{
    const hf_pb_poll_workflow_task_queue_response *task = call->call.response;
    world->resets.is_polling = false;
    if (call->call.status != HF_OK || task->task_token.len == 0 || sim_evil(world, 50)) {
        sim_wake_in(world, &world->resets.worker, 10 * SIM_MS + sim_upto(world, 100 * SIM_MS));
        return;
    }
    complete(world, task);
}

static void poll(sim_world *world)
{
    if (world->resets.is_polling) {
        return;
    }
    world->resets.is_polling = true;
    sim_call *call = ask(world, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &world->resets.worker, on_polled);
    REQUEST(poll_workflow_task_queue);
    request->identity = HF_STR("reset worker");
    request->task_queue = HF_ARENA_NEW(&call->arena, hf_pb_task_queue);
    request->task_queue->name = HF_STR(SIM_RESETS_QUEUE);
    call->call.timeout = hf_seconds(world->is_healed ? 120 : 5);
    sim_call_submit(world, call);
}

static void wake_worker(sim_world *world, sim_actor *actor)
{
    (void)actor;
    poll(world);
}

/* ---- Life -------------------------------------------------------------------------------------------------------------- */

void sim_resets_init(sim_world *world)
{
    sim_resets *all = &world->resets;
    all->is_on = world->knobs.has_resets;
    if (!all->is_on) {
        return;
    }
    for (int i = 0; i < SIM_RESET_CLIENTS; i++) {
        all->clients[i].actor.wake = wake_client;
        sim_wake_in(world, &all->clients[i].actor, sim_upto(world, 200 * SIM_MS));
    }
    all->worker.wake = wake_worker;
    sim_wake_in(world, &all->worker, sim_upto(world, 200 * SIM_MS));
}

void sim_resets_free(sim_world *world)
{
    free(world->resets.ops.items);
}
