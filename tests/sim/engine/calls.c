/* Calls of clients and workers: sent to the core, answered once, and never before the commit that they depend on (D3). */
#include "sim/engine/sim.h"

#include <string.h>

sim_call *sim_call_new(sim_world *world, hf_method method, sim_actor *actor, void (*then)(sim_world *, sim_call *))
{
    sim_call *call = world->memory.allocate(world->memory.state, sizeof *call, 0);
    memset(call, 0, sizeof *call);
    hf_arena_init(&call->arena, world->memory);
    hf_call_init(&call->call, method, NULL, &call->arena, NULL);
    call->world = world;
    call->actor = actor;
    call->then = then;
    return call;
}

bool sim_is_lost(const sim_call *call)
{
    return call->call.status == HF_ERR_CLOSED || call->call.status == HF_ERR_NOMEM;
}

static void keep_answered(sim_world *world, sim_call *call)
{
    call->is_done = true;
    if (world->answered == NULL) {
        world->answered = call;
    } else {
        world->answered_last->next = call;
    }
    world->answered_last = call;
}

/* Answers that contain no fact that a crash could undo. */
static bool says_nothing(const sim_call *call)
{
    if (sim_is_lost(call) || call->call.status == HF_ERR_CANCELED || call->call.status == HF_ERR_TIMEOUT ||
        call->call.status == HF_ERR_STORE) {
        return true;
    }
    if (call->call.status != HF_OK) {
        return false;
    }
    switch ((int)call->call.method) {
    case HF_METHOD_POLL_WORKFLOW_TASK_QUEUE: {
        const hf_pb_poll_workflow_task_queue_response *response = call->call.response;
        return response->task_token.len == 0 ||
               (call->call.run_ahead && call->call.in_process && !call->world->was_left_open);
    }
    case HF_METHOD_POLL_ACTIVITY_TASK_QUEUE: {
        const hf_pb_poll_activity_task_queue_response *response = call->call.response;
        return response->task_token.len == 0;
    }
    default:
        return false;
    }
}

/* D3: the call's commit was executed, or everything that was decided is durable. */
static void check_order(sim_world *world, const sim_call *call)
{
    if (world->core == NULL || says_nothing(call)) {
        return;
    }
    uint64_t commit = call->is_decided ? call->commit : world->core->commit_next;
    bool at_rest = hf_list_is_empty(&world->core->touched) && world->executed + 1 == world->core->commit_next;
    if (world->executed < commit && !at_rest) {
        sim_fail(world, "D3: an answer to %s was given before commit %llu, the last is %llu",
                 hf_method_info_of(call->call.method)->name, (unsigned long long)commit,
                 (unsigned long long)world->executed);
    }
}

static void on_done(hf_call *call)
{
    sim_call *mine = HF_CONTAINER(call, sim_call, call);
    if (mine->is_done) {
        sim_fail(mine->world, "service-V1: a call was answered twice");
        return;
    }
    check_order(mine->world, mine);
    keep_answered(mine->world, mine);
}

/* Calls of askers and operators, which not every world has, do not shorten it. */
static bool is_extra(hf_method method)
{
    static const hf_method EXTRA[] = {
        HF_METHOD_QUERY_WORKFLOW,
        HF_METHOD_UPDATE_WORKFLOW_EXECUTION,
        HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE,
        HF_METHOD_RESPOND_QUERY_TASK_COMPLETED,
        HF_METHOD_PAUSE_ACTIVITY,
        HF_METHOD_UNPAUSE_ACTIVITY,
        HF_METHOD_RESET_ACTIVITY,
        HF_METHOD_UPDATE_ACTIVITY_OPTIONS,
    };
    for (size_t i = 0; i < HF_COUNT_OF(EXTRA); i++) {
        if (method == EXTRA[i]) {
            return true;
        }
    }
    return false;
}

void sim_call_submit(sim_world *world, sim_call *call)
{
    call->call.done = on_done;
    call->opened = world->opened;
    if (world->core == NULL) {
        call->call.status = HF_ERR_CLOSED;
        keep_answered(world, call);
        return;
    }
    world->totals.inputs++;
    world->totals.methods[call->call.method]++;
    world->asked_inputs += is_extra(call->call.method);
    hf_core_call(world->core, &call->call, sim_now(world));
}

void sim_call_free(sim_world *world, sim_call *call)
{
    hf_arena_deinit(&call->arena);
    world->memory.release(world->memory.state, call, sizeof *call);
}

static void note_commit(hf_list *replies, uint64_t commit)
{
    HF_LIST_EACH(node, replies)
    {
        hf_call *any = HF_CONTAINER(node, hf_call, link);
        if (any->maker != HF_CALL_OF_CLIENT) {
            continue; /* a message between runs, not a call of the simulator */
        }
        sim_call *call = HF_CONTAINER(any, sim_call, call);
        if (!call->is_decided) {
            call->is_decided = true;
            call->commit = commit;
        }
    }
}

/* Calls that were decided just now learn which commit they wait for: the open one, or, when it has no changes yet, the
 * one before. Some are decided while their batch is sealed. */
void sim_note_commits(sim_world *world)
{
    hf_core *core = world->core;
    uint64_t commit = hf_list_is_empty(&core->touched) ? core->commit_next - 1 : core->commit_next;
    note_commit(&core->batches[core->open_idx].replies, commit);
    if (core->committing) {
        note_commit(&core->batches[1 - core->open_idx].replies, core->commit_next - 1);
    }
}
