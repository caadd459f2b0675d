/* Tasks that come along with another answer: activities with the completion of the workflow task that scheduled them, the next workflow
 * task with the completion of the last one, the first workflow task with the answer to a start.
 *
 * A worker has slots that never poll: two for activities, one for the first task of a workflow that was started beside it. The next
 * workflow task stays in the slot of the last one. If the worker is gone by now, or its slots are taken, the task is lost.
 *
 * Such tasks are like those that were polled for, and I5 to I7 are judged as for these. Besides:
 *
 * sim-G1  no task comes along that was not asked for
 * sim-G2  a start that was recognised as a repeated one brings no task
 * sim-G3  the next workflow task begins right behind the events that its worker knows */
#include "sim/engine/along.h"

#include "sim/engine/workers.h"

#include <string.h>

/* ---- Asking ------------------------------------------------------------------------------------------------------------ */

static sim_slot *find_free(sim_worker *worker, int kind)
{
    for (int i = 0; i < SIM_SLOTS; i++) {
        sim_slot *slot = &worker->slots[i];
        if (slot->is_reserve && slot->kind == kind && slot->state == SIM_IDLE) {
            return slot;
        }
    }
    return NULL;
}

void sim_along_ask(sim_world *world, const sim_slot *slot, hf_pb_respond_workflow_task_completed_request *request)
{
    int free = 0;
    for (int i = 0; i < SIM_SLOTS; i++) {
        const sim_slot *each = &slot->worker->slots[i];
        free += each->is_reserve && each->kind == SIM_ACTIVITY && each->state == SIM_IDLE;
    }
    for (size_t i = 0; i < request->commands.count && free > 0; i++) {
        const hf_pb_command *command = &request->commands.items[i];
        if (command->attributes_case == HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES &&
            sim_chance(world, world->knobs.eager)) {
            command->schedule_activity_task_command_attributes->request_eager_execution = true;
            free--;
        }
    }
    request->return_new_workflow_task = sim_chance(world, world->knobs.inlined);
}

void sim_along_choose(sim_world *world, sim_op *op)
{
    int worker = (int)sim_upto(world, world->knobs.workers - 1);
    op->is_eager = op->kind == SIM_OP_START && sim_chance(world, world->knobs.eager_start);
    op->worker = worker;
}

void sim_along_start(sim_world *world, sim_call *call, const sim_op *op,
                     hf_pb_start_workflow_execution_request *request)
{
    if (op->is_eager) {
        const sim_slot *slot = find_free(&world->workers[op->worker], SIM_WORKFLOW);
        request->request_eager_execution = slot != NULL;
        call->epoch = slot != NULL ? slot->epoch : 0;
        call->call.in_process = world->workers[op->worker].in_process;
    }
}

/* ---- Taking ------------------------------------------------------------------------------------------------------------ */

static const hf_pb_respond_workflow_task_completed_response *response_of(const sim_call *call)
{
    bool is_completion = call->call.status == HF_OK && call->call.method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED;
    return is_completion ? call->call.response : NULL;
}

void sim_along_lose(sim_world *world, const sim_call *call)
{
    const hf_pb_respond_workflow_task_completed_response *response = response_of(call);
    for (size_t i = 0; response != NULL && i < response->activity_tasks.count; i++) {
        sim_fault(world, HF_SIM_ALONG_LOST);
        sim_lose_activity(world, &response->activity_tasks.items[i]);
    }
    if (response != NULL && response->workflow_task != NULL) {
        sim_fault(world, HF_SIM_ALONG_LOST);
        sim_lose_workflow(world, response->workflow_task);
    }
}

static bool was_asked_for(const hf_pb_respond_workflow_task_completed_request *request, hf_str activity_id)
{
    for (size_t i = 0; i < request->commands.count; i++) {
        const hf_pb_command *command = &request->commands.items[i];
        if (command->attributes_case == HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES &&
            command->schedule_activity_task_command_attributes->request_eager_execution &&
            hf_str_equal(command->schedule_activity_task_command_attributes->activity_id, activity_id)) {
            return true;
        }
    }
    return false;
}

static void take_activity(sim_world *world, sim_slot *from,
                          const hf_pb_respond_workflow_task_completed_request *request,
                          const hf_pb_poll_activity_task_queue_response *task)
{
    if (!was_asked_for(request, task->activity_id) || task->attempt != 1 ||
        !hf_str_equal(task->workflow_execution->run_id, hf_str_of(from->run_id))) {
        sim_fail(world, "sim-G1: activity %.*s came along with a task of run %s, and nobody wanted it",
                 HF_STR_ARGS(task->activity_id), from->run_id);
        return;
    }
    sim_slot *slot = find_free(from->worker, SIM_ACTIVITY);
    if (slot != NULL) {
        sim_take_activity(world, slot, task);
    } else {
        sim_fault(world, HF_SIM_ALONG_LOST);
        sim_lose_activity(world, task);
    }
}

bool sim_along_take(sim_world *world, sim_slot *slot, const sim_call *call)
{
    const hf_pb_respond_workflow_task_completed_response *response = response_of(call);
    const hf_pb_respond_workflow_task_completed_request *request = call->call.request;
    if (response == NULL) {
        return false;
    }
    for (size_t i = 0; i < response->activity_tasks.count && !world->failed; i++) {
        sim_rate_saw(world, NULL, &response->activity_tasks.items[i]);
        take_activity(world, slot, request, &response->activity_tasks.items[i]);
    }
    const hf_pb_poll_workflow_task_queue_response *task = response->workflow_task;
    if (task == NULL || world->failed) {
        return false;
    }
    if (!request->return_new_workflow_task ||
        !hf_str_equal(task->workflow_execution->run_id, hf_str_of(slot->run_id))) {
        sim_fail(world, "sim-G1: a workflow task came along with one of run %s, and nobody wanted it", slot->run_id);
        return false;
    }
    slot->has_answer = false;
    sim_take_workflow(world, slot, task, true);
    return true;
}

void sim_along_started(sim_world *world, const sim_op *op, const sim_call *call)
{
    const hf_pb_start_workflow_execution_response *response = call->call.response;
    const hf_pb_start_workflow_execution_request *request = call->call.request;
    const hf_pb_poll_workflow_task_queue_response *task =
        call->call.method == HF_METHOD_START_WORKFLOW_EXECUTION ? response->eager_workflow_task : NULL;
    if (task == NULL) {
        return;
    }
    if (!request->request_eager_execution || !hf_str_equal(task->workflow_execution->run_id, response->run_id)) {
        sim_fail(world, "sim-G1: a workflow task came along with start %s, and nobody wanted it", op->request_id);
        return;
    }
    if (!response->started || task->attempt != 1 || task->previous_started_event_id != 0) {
        sim_fail(world, "sim-G2: start %s was known, and a workflow task came along", op->request_id);
        return;
    }
    sim_slot *slot = find_free(&world->workers[op->worker], SIM_WORKFLOW);
    if (slot != NULL && slot->epoch == call->epoch) {
        sim_take_workflow(world, slot, task, true);
    } else {
        sim_fault(world, HF_SIM_ALONG_LOST);
        sim_lose_workflow(world, task);
    }
}
