/* Clients that change the options of a run, and starts that leave their request id with the run that they are answered with.
 *
 * Each change has a priority of its own, by which the judge finds it. One that was acknowledged is an event of the run, one that was
 * refused is none (I1, I2); one that was sent once is there once. An attached request id is there once in its run, and whoever sent it was
 * told of that run. */
#include "sim/engine/children.h"
#include "sim/engine/sim.h"

#include <string.h>

bool sim_options_tempt(sim_world *world)
{
    return sim_chance(world, 60);
}

static int32_t priority_of(const sim_op *op)
{
    return (int32_t)op->number * (SIM_CLIENTS_MAX + 1) + op->client + 1;
}

void sim_options_fill(sim_call *call, const sim_op *op)
{
    static hf_str paths[] = {{"priority.priority_key", 21}};
    char name[SIM_NAME_LEN];
    sim_name_of(call->world, op->workflow, name);
    hf_pb_update_workflow_execution_options_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_update_workflow_execution_options_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->workflow_execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->workflow_execution->workflow_id = sim_copy(call, name);
    request->workflow_execution->run_id = sim_copy(call, op->run_id);
    request->workflow_execution_options = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution_options);
    request->workflow_execution_options->priority = HF_ARENA_NEW(&call->arena, hf_pb_priority);
    request->workflow_execution_options->priority->priority_key = priority_of(op);
    request->update_mask = HF_ARENA_NEW(&call->arena, hf_pb_field_mask);
    request->update_mask->paths.items = paths;
    request->update_mask->paths.count = 1;
    call->call.request = request;
}

void sim_attach_choose(sim_world *world, sim_op *op)
{
    op->attaches =
        op->conflict == HF_WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING && op->reuse <= 1 && sim_chance(world, 600);
}

void sim_attach_fill(sim_call *call, const sim_op *op, hf_pb_start_workflow_execution_request *request)
{
    if (op->attaches) {
        request->on_conflict_options = HF_ARENA_NEW(&call->arena, hf_pb_on_conflict_options);
        request->on_conflict_options->attach_request_id = true;
    }
}

/* ---- The judgement --------------------------------------------------------------------------------------------------------- */

void sim_saw_options(sim_world *world, size_t run, const hf_pb_history_event *event)
{
    const hf_pb_workflow_execution_options_updated_event_attributes *attrs =
        event->workflow_execution_options_updated_event_attributes;
    sim_option *it = SIM_PUSH(&world->options_seen);
    it->run = run;
    it->priority = attrs->priority != NULL && attrs->attached_request_id.len == 0 ? attrs->priority->priority_key : 0;
    (void)snprintf(it->request_id, sizeof it->request_id, "%.*s", HF_STR_ARGS(attrs->attached_request_id));
}

/* How often the operation is in histories: of the run `run_id`, or of any. */
static int count_of(const sim_world *world, const sim_op *op, const char *run_id)
{
    int count = 0;
    for (size_t i = 0; i < world->options_seen.count; i++) {
        const sim_option *it = &world->options_seen.items[i];
        bool is_it =
            op->kind == SIM_OP_OPTIONS ? it->priority == priority_of(op) : strcmp(it->request_id, op->request_id) == 0;
        count += is_it && (run_id[0] == '\0' || strcmp(world->runs.items[it->run].run_id, run_id) == 0);
    }
    return count;
}

static bool may_be_gone(const sim_world *world, const sim_op *op)
{
    return op->run_id[0] != '\0'
               ? sim_may_be_gone(world, op->run_id)
               : world->is_retaining || (op->workflow < SIM_WORKFLOWS_MAX && world->deletes[op->workflow] > 0);
}

static void judge_change(sim_world *world, const sim_op *op)
{
    int count = count_of(world, op, op->run_id);
    if (op->outcome == SIM_ACKED && count == 0 && !may_be_gone(world, op)) {
        sim_fail(world, "I1: options %s were acknowledged for %s and are not there", op->request_id, op->run_id);
    } else if (op->outcome == SIM_REFUSED && !op->maybe && count_of(world, op, "") > 0) {
        sim_fail(world, "I2: options %s were refused and are there", op->request_id);
    } else if (!op->maybe && count > 1) {
        sim_fail(world, "I2: options %s are there %d times", op->request_id, count);
    }
}

static void judge_attached(sim_world *world, const sim_op *op)
{
    if (op->outcome == SIM_REFUSED && !op->maybe && count_of(world, op, "") > 0) {
        sim_fail(world, "I2: start %s was refused, and its request id is attached", op->request_id);
    }
    if (op->outcome == SIM_ACKED && op->was_used && count_of(world, op, op->run_id) != 1 && !may_be_gone(world, op)) {
        sim_fail(world, "I1: start %s was answered with run %s, where its request id is %d times", op->request_id,
                 op->run_id, count_of(world, op, op->run_id));
    }
}

void sim_judge_options(sim_world *world)
{
    for (size_t i = 0; i < world->ops.count && !world->failed; i++) {
        const sim_op *op = &world->ops.items[i];
        if (op->kind == SIM_OP_OPTIONS) {
            judge_change(world, op);
        } else if (op->kind == SIM_OP_START && op->attaches) {
            judge_attached(world, op);
        }
    }
}
