/* Signals with start: a client starts a run unless one is open, and signals it, in one call. At the end each that was acknowledged is a
 * signal of the run that its answer named, and of no run if it was refused (I1, I2); judge.c finds those that are there twice or out of
 * order among all signals (I9), and those that made two runs among all starts. */
#include "sim/engine/sim.h"

#include <string.h>

#define PART_PERMILLE 200 /* of the starts and signals of clients */

bool sim_signal_start_tempts(sim_world *world)
{
    return sim_chance(world, PART_PERMILLE);
}

void sim_signal_start_choose(sim_world *world, sim_op *op)
{
    static const int CONFLICTS[] = {HF_WORKFLOW_ID_CONFLICT_POLICY_UNSPECIFIED,
                                    HF_WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
                                    HF_WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING};
    static const int REUSES[] = {HF_WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED, HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
                                 HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
                                 HF_WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE};
    op->reuse = REUSES[sim_chance(world, 700) ? 1 : hf_rng_below(&world->rng, HF_COUNT_OF(REUSES))];
    op->conflict = CONFLICTS[hf_rng_below(&world->rng, HF_COUNT_OF(CONFLICTS))];
    if (op->reuse == HF_WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE) {
        op->conflict = HF_WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING; /* the two policies cannot be combined otherwise */
    }
}

void sim_signal_start_fill(sim_call *call, const sim_op *op)
{
    const hf_pb_start_workflow_execution_request *start = call->call.request;
    hf_pb_signal_with_start_workflow_execution_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_signal_with_start_workflow_execution_request);
    *request = (hf_pb_signal_with_start_workflow_execution_request){
        .namespace = start->namespace,
        .workflow_id = start->workflow_id,
        .workflow_type = start->workflow_type,
        .task_queue = start->task_queue,
        .input = start->input,
        .workflow_execution_timeout = start->workflow_execution_timeout,
        .workflow_run_timeout = start->workflow_run_timeout,
        .workflow_task_timeout = start->workflow_task_timeout,
        .identity = start->identity,
        .request_id = start->request_id,
        .workflow_id_reuse_policy = start->workflow_id_reuse_policy,
        .workflow_id_conflict_policy = start->workflow_id_conflict_policy,
        .retry_policy = start->retry_policy,
        .cron_schedule = start->cron_schedule,
        .memo = start->memo,
        .search_attributes = start->search_attributes,
        .workflow_start_delay = start->workflow_start_delay,
        .signal_name = HF_STR("go"),
        .signal_input = sim_payload(call, op->request_id, 0),
    };
    call->call.request = request;
}

hf_str sim_signal_start_answered(sim_world *world, const sim_call *call)
{
    const hf_pb_signal_with_start_workflow_execution_response *response = call->call.response;
    if (response->run_id.len != 36 || response->first_execution_run_id.len != 36) {
        sim_fail(world, "a signal with start was answered without a run id");
    }
    return response->run_id;
}

bool sim_is_signal_start(const sim_world *world, hf_str request_id)
{
    for (size_t i = 0; i < world->ops.count; i++) {
        const sim_op *op = &world->ops.items[i];
        if (op->kind == SIM_OP_SIGNAL_START && hf_str_equal(hf_str_of(op->request_id), request_id)) {
            return true;
        }
    }
    return false;
}

void sim_judge_signal_start(sim_world *world, const sim_op *op, bool is_there, bool is_anywhere)
{
    if (op->outcome == SIM_ACKED && !is_there) {
        sim_fail(world, "I1: signal with start %s was acknowledged for run %s and is not there", op->request_id,
                 op->run_id);
    } else if (op->outcome == SIM_REFUSED && !op->maybe && is_anywhere) {
        sim_fail(world, "I2: signal with start %s was refused and is there", op->request_id);
    }
}
