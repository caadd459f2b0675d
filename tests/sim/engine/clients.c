/* Clients: one operation after the other, each repeated with the same request id until somebody answers. At the end a
 * janitor signals every workflow until all of them are over. */
#include "sim/engine/along.h"
#include "sim/engine/asks.h"
#include "sim/engine/batches.h"
#include "sim/engine/children.h"
#include "sim/engine/operator.h"
#include "sim/engine/resets.h"
#include "sim/engine/sim.h"

#include "history/payload.h"

#include <string.h>

#define SWEEP_MAX (30 * SIM_SECOND)  /* between two rounds of the janitor */
#define TRIED_MAX (300 * SIM_SECOND) /* so long it leaves a run alone whose workflow task is tried again */

static void next_operation(sim_world *world, sim_client *client);

hf_str sim_copy(sim_call *call, const char *text)
{
    return hf_arena_copy(&call->arena, hf_str_of(text));
}

hf_pb_payloads *sim_payload(sim_call *call, const char *text, size_t large)
{
    hf_str data = hf_arena_copy(&call->arena, hf_str_of(text));
    if (large > 0) {
        char *bytes = hf_arena_zero(&call->arena, large, 1);
        memcpy(bytes, data.data, data.len);
        data = hf_str_of_len(bytes, large);
    }
    return hf_payloads_of(&call->arena, hf_payload_bytes(&call->arena, data));
}

static sim_client *client_of(sim_actor *actor)
{
    return HF_CONTAINER(actor, sim_client, actor);
}

static hf_str workflow_name(sim_call *call, int workflow)
{
    char text[SIM_NAME_LEN];
    sim_name_of(call->world, workflow, text);
    return sim_copy(call, text);
}

static hf_pb_workflow_execution *execution_of(sim_call *call, int workflow, const char *run_id)
{
    hf_pb_workflow_execution *execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    execution->workflow_id = workflow_name(call, workflow);
    execution->run_id = sim_copy(call, run_id);
    return execution;
}

static hf_str identity_of(sim_call *call, int client)
{
    char text[SIM_NAME_LEN];
    (void)snprintf(text, sizeof text, "client-%d", client);
    return sim_copy(call, text);
}

/* ---- Requests ---------------------------------------------------------------------------------------------------------- */

static void fill_start(sim_world *world, sim_call *call, const sim_op *op)
{
    hf_pb_start_workflow_execution_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_start_workflow_execution_request);
    char queue[SIM_NAME_LEN];
    (void)snprintf(queue, sizeof queue, "q%d", op->workflow % world->knobs.queues);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->workflow_id = workflow_name(call, op->workflow);
    request->workflow_type = HF_ARENA_NEW(&call->arena, hf_pb_workflow_type);
    request->workflow_type->name = HF_STR("program");
    request->task_queue = HF_ARENA_NEW(&call->arena, hf_pb_task_queue);
    request->task_queue->name = sim_copy(call, queue);
    request->identity = identity_of(call, op->client);
    request->request_id = sim_copy(call, op->request_id);
    request->workflow_id_reuse_policy = op->reuse;
    request->workflow_id_conflict_policy = op->conflict;
    uint64_t chance = hf_hash_mix(world->seed, op->number);
    if (chance % 8 == 0) {
        request->workflow_run_timeout = hf_pb_duration_of(hf_seconds(5 + (int64_t)(chance / 8 % 60)));
    }
    if (chance % 16 == 1) {
        request->workflow_execution_timeout = hf_pb_duration_of(hf_seconds(3 + (int64_t)(chance / 16 % 60)));
    }
    if (chance % 4 == 2) {
        request->workflow_task_timeout = hf_pb_duration_of(hf_seconds(1 + (int64_t)(chance / 4 % 5)));
    }
    request->input = sim_payload(call, "input", op->is_large ? 60000 : 0);
    if (op->is_chain) {
        sim_chain_fill(world, op, &call->arena, request);
    }
    sim_keep_tempts(world, request);
    sim_along_start(world, call, op, request);
    sim_attach_fill(call, op, request);
    call->call.request = request;
}

void sim_fill_update_start(sim_world *world, sim_call *call, int workflow, const char *request_id,
                           hf_pb_start_workflow_execution_request *request)
{
    sim_op op = {.kind = SIM_OP_START, .client = SIM_CLIENTS_MAX + 1, .workflow = workflow};
    (void)snprintf(op.request_id, sizeof op.request_id, "%s", request_id);
    op.conflict = HF_WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING;
    fill_start(world, call, &op);
    *request = *(const hf_pb_start_workflow_execution_request *)call->call.request;
}

static void fill_signal(sim_call *call, const sim_op *op)
{
    hf_pb_signal_workflow_execution_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_signal_workflow_execution_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->workflow_execution = execution_of(call, op->workflow, op->run_id);
    request->signal_name = HF_STR("go");
    request->input = sim_payload(call, op->request_id, op->is_large ? 60000 : 0);
    request->identity = identity_of(call, op->client);
    request->request_id = sim_copy(call, op->request_id);
    call->call.request = request;
}

static void fill_cancel(sim_call *call, const sim_op *op)
{
    hf_pb_request_cancel_workflow_execution_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_request_cancel_workflow_execution_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->workflow_execution = execution_of(call, op->workflow, op->run_id);
    request->identity = identity_of(call, op->client);
    request->request_id = sim_copy(call, op->request_id);
    request->first_execution_run_id = sim_copy(call, op->first_run_id);
    call->call.request = request;
}

static void fill_terminate(sim_call *call, const sim_op *op)
{
    hf_pb_terminate_workflow_execution_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_terminate_workflow_execution_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->workflow_execution = execution_of(call, op->workflow, op->run_id);
    request->identity = identity_of(call, op->client);
    request->reason = sim_copy(call, op->request_id);
    request->first_execution_run_id = sim_copy(call, op->first_run_id);
    call->call.request = request;
}

static sim_call *make_call(sim_world *world, sim_actor *actor, uint64_t log, void (*then)(sim_world *, sim_call *))
{
    static const hf_method METHODS[] = {
        [SIM_OP_START] = HF_METHOD_START_WORKFLOW_EXECUTION,
        [SIM_OP_SIGNAL] = HF_METHOD_SIGNAL_WORKFLOW_EXECUTION,
        [SIM_OP_CANCEL] = HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION,
        [SIM_OP_TERMINATE] = HF_METHOD_TERMINATE_WORKFLOW_EXECUTION,
        [SIM_OP_DELETE] = HF_METHOD_DELETE_WORKFLOW_EXECUTION,
        [SIM_OP_OPTIONS] = HF_METHOD_UPDATE_WORKFLOW_EXECUTION_OPTIONS,
        [SIM_OP_SIGNAL_START] = HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION,
    };
    sim_op *op = &world->ops.items[log];
    sim_call *call = sim_call_new(world, METHODS[op->kind], actor, then);
    call->log = log;
    call->newest = sim_newest(world, op->workflow);
    switch (op->kind) {
    case SIM_OP_START:
        fill_start(world, call, op);
        break;
    case SIM_OP_SIGNAL:
        fill_signal(call, op);
        break;
    case SIM_OP_CANCEL:
        fill_cancel(call, op);
        break;
    case SIM_OP_TERMINATE:
        fill_terminate(call, op);
        break;
    case SIM_OP_DELETE:
        sim_delete_fill(world, call, op);
        break;
    case SIM_OP_SIGNAL_START:
        fill_start(world, call, op);
        sim_signal_start_fill(call, op);
        break;
    case SIM_OP_OPTIONS:
        sim_options_fill(call, op);
        break;
    }
    return call;
}

/* ---- Answers ----------------------------------------------------------------------------------------------------------- */

/* Whether the payload is longer than the limit. */
static bool is_too_big(const sim_world *world, const sim_op *op)
{
    return op->is_large && (sim_op_starts(op) || sim_op_signals(op)) && world->knobs.core.limits.payload_len > 0;
}

/* Whether such an operation may be refused with this status. */
static bool is_refusal(sim_world *world, const sim_op *op, const sim_call *call)
{
    char name[SIM_NAME_LEN];
    sim_name_of(world, op->workflow, name);
    switch ((int)call->call.status) {
    case HF_ERR_NOT_FOUND:
        return !sim_op_starts(op);
    case HF_ERR_LIMIT:
        return sim_op_signals(op) || op->kind == SIM_OP_CANCEL;
    case HF_ERR_TOO_BIG:
        return is_too_big(world, op);
    case HF_ERR_INVALID:
        return op->may_be_bad;
    default:
        return sim_is_stopped(world, call, hf_str_of(name));
    }
}

/* True: the call was answered. */
static bool note_answer(sim_world *world, sim_call *call)
{
    sim_op *op = &world->ops.items[call->log];
    char name[SIM_NAME_LEN];
    sim_name_of(world, op->workflow, name);
    sim_trace(world, "client %d: %s of %s %.8s (%s): %s %s", op->client, hf_method_info_of(call->call.method)->name,
              name, op->run_id, op->request_id, hf_status_name(call->call.status), call->call.message);
    if (sim_is_lost(call)) {
        op->maybe = true;
        return false;
    }
    op->status = call->call.status;
    op->time = sim_now(world).wall;
    op->outcome = call->call.status == HF_OK ? SIM_ACKED : SIM_REFUSED;
    if (op->kind == SIM_OP_DELETE) {
        sim_delete_answered(world, op);
    }
    hf_str run_id = {0};
    if (op->kind == SIM_OP_START && call->call.status == HF_OK) {
        const hf_pb_start_workflow_execution_response *response = call->call.response;
        run_id = response->run_id;
        op->was_used = !response->started;
    } else if (op->kind == SIM_OP_SIGNAL_START && call->call.status == HF_OK) {
        run_id = sim_signal_start_answered(world, call);
    } else if (sim_op_starts(op) && call->call.status == HF_ERR_EXISTS) {
        run_id = call->call.existing_run_id;
    } else if (call->call.status != HF_OK) {
        if (!is_refusal(world, op, call)) {
            sim_fail(world, "%s was refused with %s: %s", hf_method_info_of(call->call.method)->name,
                     hf_status_name(call->call.status), call->call.message);
        }
        return true;
    }
    if (is_too_big(world, op)) {
        sim_fail(world, "a payload was taken that is longer than may be");
    }
    if (op->is_bad) {
        sim_fail(world, "start %s was taken, with a schedule that is none", op->request_id);
    }
    if (sim_op_starts(op) && run_id.len != 36) {
        sim_fail(world, "a start was answered without a run id");
    } else if (sim_op_starts(op)) {
        memcpy(op->run_id, run_id.data, run_id.len);
        sim_check_current(world, op->workflow, run_id, call->newest);
        (void)sim_log_run(world, run_id, hf_str_of(name));
        if (call->call.status == HF_OK) {
            sim_along_started(world, op, call);
        }
    }
    return true;
}

static void on_answered(sim_world *world, sim_call *call)
{
    sim_client *client = client_of(call->actor);
    if (note_answer(world, call)) {
        client->busy = false;
    } else {
        sim_fault(world, HF_SIM_REQUEST_AGAIN);
    }
    sim_wake_in(world, &client->actor, 5 * SIM_MS + sim_upto(world, world->knobs.think_ns_max));
}

static void submit(sim_world *world, sim_client *client)
{
    sim_op *op = &world->ops.items[client->op];
    sim_call *second = NULL;
    if (op->kind != SIM_OP_TERMINATE && sim_evil(world, world->knobs.client_twice)) {
        sim_fault(world, HF_SIM_REQUEST_TWICE);
        op->maybe = true;
        second = make_call(world, NULL, client->op, NULL);
    }
    sim_call_submit(world, make_call(world, &client->actor, client->op, on_answered));
    if (second != NULL) {
        sim_call_submit(world, second);
    }
}

/* ---- Reading ------------------------------------------------------------------------------------------------------------ */

static void on_read(sim_world *world, sim_call *call)
{
    sim_client *client = client_of(call->actor);
    if (call->call.status == HF_OK) {
        const hf_pb_get_workflow_execution_history_request *request = call->call.request;
        const hf_pb_get_workflow_execution_history_response *response = call->call.response;
        size_t run = call->log;
        sim_saw_history(world, run, response->history, true, 0);
        /* An open run has no closing event. */
        bool may_be_empty =
            !request->wait_new_event && request->history_event_filter_type == HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT;
        bool more = response->next_page_token.len > 0 && response->next_page_token.len <= sizeof client->page;
        client->page_len = 0;
        if (more) {
            client->page_len = response->next_page_token.len;
            memcpy(client->page, response->next_page_token.data, client->page_len);
        } else if (response->history.len == 0 && !may_be_empty) {
            sim_fail(world, "a history was answered without events and without an end (filter %d)",
                     (int)request->history_event_filter_type);
        }
    } else if (!sim_is_lost(call) &&
               !sim_is_stopped(world, call, hf_str_of(world->runs.items[call->log].workflow_id)) &&
               !world->runs.items[call->log].may_be_gone &&
               (world->runs.items[call->log].count > 0 ||
                world->runs.items[call->log].is_named)) { /* else it was taken back by a crash */
        sim_fail(world, "the history of run %s cannot be read: %s", world->runs.items[call->log].run_id,
                 call->call.message);
    }
    client->watching = false;
}

static void read_history(sim_world *world, sim_client *client)
{
    if (client->watching || world->runs.count == 0) {
        return;
    }
    size_t run = hf_rng_below(&world->rng, world->runs.count);
    const sim_run_log *log = &world->runs.items[run];
    sim_call *call = sim_call_new(world, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &client->actor, on_read);
    hf_pb_get_workflow_execution_history_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_get_workflow_execution_history_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->execution->workflow_id = sim_copy(call, log->workflow_id);
    request->execution->run_id = sim_copy(call, log->run_id);
    request->wait_new_event = sim_chance(world, 500);
    request->history_event_filter_type =
        sim_chance(world, 300) ? HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT : HF_HISTORY_EVENT_FILTER_TYPE_ALL_EVENT;
    request->maximum_page_size = sim_chance(world, 300) ? 1 + (int32_t)sim_upto(world, 5) : 0;
    call->call.request = request;
    call->log = run;
    client->watching = true;
    sim_call_submit(world, call);
}

static void on_described(sim_world *world, sim_call *call)
{
    if (call->call.status == HF_OK) {
        const hf_pb_describe_workflow_execution_response *response = call->call.response;
        if (response->workflow_execution_info == NULL || response->workflow_execution_info->history_length <= 0) {
            sim_fail(world, "a description is empty");
        } else {
            sim_chain_described(world, response->workflow_execution_info);
            sim_check_current(world, (int)call->log, response->workflow_execution_info->execution->run_id,
                              call->newest);
        }
    } else if (!sim_is_lost(call) && call->call.status != HF_ERR_NOT_FOUND) {
        const hf_pb_describe_workflow_execution_request *request = call->call.request;
        if (!sim_is_stopped(world, call, request->execution->workflow_id)) {
            sim_fail(world, "describe: %s", call->call.message);
        }
    }
}

static void describe(sim_world *world, int workflow)
{
    sim_call *call = sim_call_new(world, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, NULL, on_described);
    hf_pb_describe_workflow_execution_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_describe_workflow_execution_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = execution_of(call, workflow, "");
    call->log = (uint64_t)workflow;
    call->newest = sim_newest(world, workflow);
    call->call.request = request;
    sim_call_submit(world, call);
}

/* ---- Choosing ------------------------------------------------------------------------------------------------------------ */

/* The run of an acknowledged start of this workflow: the last one, or, now and then, an old one. */
static const char *some_run(sim_world *world, int workflow)
{
    bool stale = sim_evil(world, world->knobs.stale_signal);
    const char *found = "";
    for (size_t i = 0; i < world->ops.count; i++) {
        const sim_op *op = &world->ops.items[i];
        if (op->kind == SIM_OP_START && op->workflow == workflow && op->run_id[0] != '\0') {
            found = op->run_id;
            if (stale) {
                break;
            }
        }
    }
    if (stale && found[0] != '\0') {
        sim_fault(world, HF_SIM_SIGNAL_TO_CLOSED);
    }
    return found;
}

static sim_op *new_op(sim_world *world, sim_op_kind kind, int client, uint64_t number, int workflow)
{
    char run_id[SIM_RUN_ID_LEN] = "";
    if (kind != SIM_OP_START && kind != SIM_OP_SIGNAL_START &&
        sim_chance(world, kind == SIM_OP_TERMINATE ? 1000 : 600)) {
        (void)snprintf(run_id, sizeof run_id, "%s", some_run(world, workflow));
    }
    sim_op *op = SIM_PUSH(&world->ops);
    op->kind = kind;
    op->client = client;
    op->number = number;
    op->workflow = workflow;
    (void)snprintf(op->request_id, sizeof op->request_id, "c%d-%llu", client, (unsigned long long)number);
    (void)snprintf(op->run_id, sizeof op->run_id, "%s", run_id);
    op->asked = sim_now(world).wall;
    return op;
}

static void next_operation(sim_world *world, sim_client *client)
{
    int workflow = sim_child_choose(world);
    uint64_t chance = world->ops.count < 8 ? 0 : hf_rng_below(&world->rng, 100);
    if (chance >= 75) {
        if (chance >= 97) {
            sim_read_deleted(world);
        } else if (chance >= 96) {
            sim_describe_queue(world);
        } else if (chance >= 94) {
            sim_read_back(world);
        } else if (chance >= 91) {
            sim_list(world);
        } else if (chance >= 88) {
            sim_read_stream(world);
        } else if (chance >= 83) {
            read_history(world, client);
        } else {
            describe(world, workflow);
        }
        sim_wake_in(world, &client->actor, 5 * SIM_MS + sim_upto(world, world->knobs.think_ns_max));
        return;
    }
    sim_op_kind kind = chance < 35   ? SIM_OP_START
                       : chance < 62 ? SIM_OP_SIGNAL
                       : chance < 71 ? SIM_OP_CANCEL
                                     : SIM_OP_TERMINATE;
    kind = kind <= SIM_OP_SIGNAL && sim_signal_start_tempts(world) ? SIM_OP_SIGNAL_START : kind;
    kind = sim_options_tempt(world) ? SIM_OP_OPTIONS : kind;
    kind = sim_delete_tempts(world) ? SIM_OP_DELETE : kind;
    workflow = kind == SIM_OP_DELETE ? workflow % world->knobs.workflows : workflow; /* children go with nobody */
    sim_op *op = new_op(world, kind, client->index, client->number++, workflow);
    if (kind == SIM_OP_DELETE) {
        sim_delete_choose(world, op);
    }
    if (kind == SIM_OP_SIGNAL_START) {
        sim_signal_start_choose(world, op);
    } else if (kind == SIM_OP_START) {
        op->reuse = (int)hf_rng_below(&world->rng, 8);
        op->reuse = op->reuse > 4 ? 0 : op->reuse; /* most starts may use an id again */
        op->conflict = (int)hf_rng_below(&world->rng, 4);
        if (op->reuse == HF_WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING) {
            op->conflict = 0; /* this reuse policy includes a conflict policy */
        } else if (op->reuse == HF_WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE &&
                   op->conflict == HF_WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING) {
            op->reuse = 0; /* the two policies cannot be combined */
        }
        sim_attach_choose(world, op);
    }
    sim_chain_choose(world, op);
    sim_along_choose(world, op);
    op->is_large = kind != SIM_OP_CANCEL && kind != SIM_OP_DELETE && sim_evil(world, world->knobs.large);
    if (op->is_large) {
        sim_fault(world, HF_SIM_PAYLOAD_LARGE);
    }
    client->op = world->ops.count - 1;
    client->busy = true;
    submit(world, client);
}

static void wake(sim_world *world, sim_actor *actor)
{
    sim_client *client = client_of(actor);
    if (client->busy) {
        submit(world, client);
    } else if (!world->is_healed) {
        next_operation(world, client);
    }
}

/* ---- The end ------------------------------------------------------------------------------------------------------------- */

static void on_swept(sim_world *world, sim_call *call)
{
    char name[SIM_NAME_LEN];
    sim_name_of(world, world->janitor_at, name);
    bool answered = note_answer(world, call);
    world->janitor_waits = false;
    world->janitor_ends = answered && call->call.status == HF_ERR_LIMIT && world->knobs.core.limits.signals > 0 &&
                          call->call.method == HF_METHOD_SIGNAL_WORKFLOW_EXECUTION;
    if ((!answered || call->call.status != HF_ERR_NOT_FOUND) && !sim_is_still_damaged(world, hf_str_of(name))) {
        world->janitor_open++;
    }
    world->janitor_at += world->janitor_ends ? 0 : 1;
    sim_wake_in(world, &world->janitor, 10 * SIM_MS);
}

/* Whether a run may be open still because it waits for one that is damaged: for its end, as its parent, or for the answer to a
 * message, which stays on its way. */
static bool waits_for_damaged(const sim_world *world)
{
    enum { ROUNDS = 8 }; /* by now every other message has arrived */
    if (world->janitor_round < ROUNDS || world->core == NULL) {
        return false;
    }
    if (world->knobs.has_children) {
        return true;
    }
    HF_LIST_EACH(node, &world->core->runs_all)
    {
        if (hf_run_has_messages(&HF_CONTAINER(node, hf_slot, all_link)->run)) {
            return true;
        }
    }
    return false;
}

/* Whether the workflow task of a run is tried again and again. Later attempts get more time, and a signal would make the next
 * one a first attempt: a worker that needs more time than that to read the history would never complete one. */
static bool is_tried_again(const sim_world *world, const char *workflow_id)
{
    enum { ROUNDS = 8 }; /* by now almost every task has been completed */
    for (size_t i = 0; i < world->runs.count && world->janitor_round >= ROUNDS; i++) {
        const sim_run_log *log = &world->runs.items[i];
        if (log->task_attempt > 1 && world->mono - log->task_time < TRIED_MAX &&
            strcmp(log->workflow_id, workflow_id) == 0) {
            return true;
        }
    }
    return false;
}

static void sweep(sim_world *world, sim_actor *actor)
{
    if (!world->is_healed || world->janitor_waits) {
        return;
    }
    if (world->janitor_at == sim_name_count(world)) {
        bool busy = world->janitor_open > 0 || sim_askers_are_busy(world) || sim_operators_are_busy(world) ||
                    sim_resets_are_busy(world) || sim_batches_are_busy(world);
        for (int i = 0; i < world->knobs.clients; i++) {
            busy = busy || world->clients[i].busy || world->clients[i].watching;
        }
        bool are_restored = (!busy || waits_for_damaged(world)) && sim_restore(world);
        if (!busy && !are_restored) {
            world->is_over = true;
            return;
        }
        if (are_restored) { /* all but the damaged ones: now these */
            sim_world_restart(world);
        }
        world->janitor_at = world->janitor_open = 0;
        world->janitor_round++;
        world->janitor_pause = world->janitor_pause * 3 / 2 + SIM_SECOND / 2;
        if (world->child_names.count > 0 && world->janitor_pause > SWEEP_MAX) {
            world->janitor_pause = SWEEP_MAX; /* families need many rounds */
        }
        sim_wake_in(world, actor, world->janitor_pause);
        return;
    }
    char name[SIM_NAME_LEN];
    sim_name_of(world, world->janitor_at, name);
    sim_op_kind kind = world->janitor_ends ? SIM_OP_TERMINATE : sim_chain_sweep(world, world->janitor_at);
    if (kind == SIM_OP_SIGNAL && is_tried_again(world, name)) {
        sim_operator_sweep(world, name);
        world->janitor_open++;
        world->janitor_at++;
        sim_wake_in(world, actor, 10 * SIM_MS);
        return;
    }
    sim_op *op = new_op(world, kind, SIM_CLIENTS_MAX, world->janitor_number++, world->janitor_at);
    sim_operator_sweep(world, name);
    op->run_id[0] = '\0';
    world->janitor_waits = true;
    sim_call_submit(world, make_call(world, actor, world->ops.count - 1, on_swept));
}

void sim_clients_init(sim_world *world)
{
    for (int i = 0; i < world->knobs.clients; i++) {
        sim_client *client = &world->clients[i];
        client->actor.wake = wake;
        client->index = i;
        sim_wake_in(world, &client->actor, sim_upto(world, 100 * SIM_MS));
    }
    world->janitor.wake = sweep;
    sim_askers_init(world);
    sim_operators_init(world);
    sim_resets_init(world);
    sim_batches_init(world);
}
