/* Activities that are answered by their ids: by the workers that have them, perhaps too late, and by operators, whether or not a worker
 * has them (operator.c). Such an answer is for whatever attempt there is, so that it is not held against a number of attempts (I7), but it
 * counts once: judge.c. */
#include "sim/engine/operator.h"

#include "history/payload.h"

#include <string.h>

#define IDENTITY "by-id"

hf_method sim_by_id_method(hf_method method)
{
    switch ((int)method) {
    case HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED:
        return HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID;
    case HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED:
        return HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID;
    case HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED:
        return HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID;
    case HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT:
        return HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID;
    default:
        return method;
    }
}

bool sim_is_by_id(hf_method method)
{
    return method >= HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID &&
           method <= HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID;
}

bool sim_was_polled(hf_str identity)
{
    return !hf_str_equal(identity, HF_STR(IDENTITY));
}

static hf_str activity_id(sim_call *call, int64_t number)
{
    const char text[] = {'a', (char)('0' + (number - 1) / SIM_ITEMS_MAX), '-',
                         (char)('0' + (number - 1) % SIM_ITEMS_MAX)};
    return hf_arena_copy(&call->arena, hf_str_of_len(text, sizeof text));
}

void sim_by_id_fill(sim_world *world, sim_call *call, const sim_by_id *it)
{
    hf_arena *arena = &call->arena;
    hf_str workflow_id = sim_copy(call, it->workflow_id);
    hf_str run_id = sim_copy(call, it->run_id);
    hf_str id = activity_id(call, it->number);
    switch ((int)call->call.method) {
    case HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID: {
        hf_pb_respond_activity_task_completed_by_id_request *request =
            HF_ARENA_NEW(arena, hf_pb_respond_activity_task_completed_by_id_request);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->workflow_id = workflow_id;
        request->run_id = run_id;
        request->activity_id = id;
        request->identity = HF_STR(IDENTITY);
        request->result = sim_payload(call, it->nonce, 0);
        call->call.request = request;
        return;
    }
    case HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID: {
        hf_pb_respond_activity_task_canceled_by_id_request *request =
            HF_ARENA_NEW(arena, hf_pb_respond_activity_task_canceled_by_id_request);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->workflow_id = workflow_id;
        request->run_id = run_id;
        request->activity_id = id;
        request->details = sim_payload(call, it->nonce, 0);
        call->call.request = request;
        return;
    }
    case HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID: {
        hf_pb_record_activity_task_heartbeat_by_id_request *request =
            HF_ARENA_NEW(arena, hf_pb_record_activity_task_heartbeat_by_id_request);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->workflow_id = workflow_id;
        request->run_id = run_id;
        request->activity_id = id;
        request->details = sim_payload(call, "half", 0);
        call->call.request = request;
        return;
    }
    default: {
        hf_pb_respond_activity_task_failed_by_id_request *request =
            HF_ARENA_NEW(arena, hf_pb_respond_activity_task_failed_by_id_request);
        hf_assert(call->call.method == HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->workflow_id = workflow_id;
        request->run_id = run_id;
        request->activity_id = id;
        request->failure =
            hf_failure_application(arena, HF_STR("Oops"), sim_copy(call, it->nonce), sim_chance(world, 200));
        call->call.request = request;
        return;
    }
    }
}
