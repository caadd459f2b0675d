/* SignalWithStartWorkflowExecution: a signal for the run that is open, or for a new one that it starts, as one decision in one commit.
 *
 * A request id is accepted once. If the run that took the signal has ended since, a repeated call starts no other one: the caller may
 * repeat it because the answer was lost, and the work is done. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/load.h"
#include "engine/machines/machines.h"

hf_pb_start_workflow_execution_request hf_signal_start_of(const hf_call *call)
{
    const hf_pb_signal_with_start_workflow_execution_request *request = call->request;
    return (hf_pb_start_workflow_execution_request){
        .namespace = request->namespace,
        .workflow_id = request->workflow_id,
        .workflow_type = request->workflow_type,
        .task_queue = request->task_queue,
        .input = request->input,
        .workflow_execution_timeout = request->workflow_execution_timeout,
        .workflow_run_timeout = request->workflow_run_timeout,
        .workflow_task_timeout = request->workflow_task_timeout,
        .identity = request->identity,
        .request_id = request->request_id,
        .workflow_id_reuse_policy = request->workflow_id_reuse_policy,
        .retry_policy = request->retry_policy,
        .cron_schedule = request->cron_schedule,
        .memo = request->memo,
        .search_attributes = request->search_attributes,
        .header = request->header,
        .workflow_start_delay = request->workflow_start_delay,
        .workflow_id_conflict_policy = request->workflow_id_conflict_policy,
        .user_metadata = request->user_metadata,
        .links = request->links,
        .versioning_override = request->versioning_override,
        .priority = request->priority,
        .time_skipping_config = request->time_skipping_config,
        .holdfast_keep = request->holdfast_keep,
    };
}

static void answer(hf_core *core, hf_call *call, const hf_run *run, bool is_new)
{
    hf_pb_signal_with_start_workflow_execution_response *response = hf_call_response(core, call);
    if (response != NULL) {
        response->run_id = hf_arena_copy(call->arena, hf_owned_str(&run->run_id));
        response->first_execution_run_id = hf_arena_copy(call->arena, hf_owned_str(&run->first_run_id));
        response->started = is_new;
        response->signal_link = hf_link_to_request(
            call->arena, run, ((const hf_pb_signal_with_start_workflow_execution_request *)call->request)->request_id,
            HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
        hf_call_reply(core, call);
    }
}

/* Whether the call wants another run in the place of one that is open. */
static bool wants_new(const hf_pb_start_workflow_execution_request *start)
{
    return start->workflow_id_reuse_policy == HF_WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING ||
           start->workflow_id_conflict_policy == HF_WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING;
}

void hf_signal_start_call(hf_core *core, hf_call *call, hf_name *name)
{
    const hf_pb_signal_with_start_workflow_execution_request *request = call->request;
    hf_pb_start_workflow_execution_request start = hf_signal_start_of(call);
    bool is_free = name->run == NULL || name->run->deleting != HF_DELETING_NOT;
    hf_run *run = is_free ? NULL : name->run;
    hf_signal signal = {
        .name = request->signal_name,
        .input = request->signal_input,
        .header = request->header,
        .identity = request->identity,
        .request_id = request->request_id,
        .links = request->links,
    };
    if (run != NULL && hf_request_is_known(run, request->request_id)) {
        HF_PROBE(core, HF_PROBE_SIGNAL_START_DEDUPED);
        answer(core, call, run, false);
        return;
    }
    if (run != NULL && hf_run_is_open(run) && !wants_new(&start)) {
        if (hf_signal_fits(core, call, run)) {
            HF_PROBE(core, HF_PROBE_SIGNAL_START_USED);
            hf_signal_add(core, run, &signal);
            hf_wft_schedule_now(core, run); /* unlike a signal alone, it ends the wait of a start delay */
            answer(core, call, run, false);
        }
        return;
    }
    if (!hf_execution_make_room(core, call, &start, run)) {
        return;
    }
    run = hf_execution_new(core, call, &start, name, HF_CANARY(HF_BUG_SIGNAL_START_LOST) ? NULL : &signal);
    if (run != NULL) {
        HF_PROBE(core, HF_PROBE_SIGNAL_START_NEW);
        hf_assert(name->run == run); /* engine-E3: it is a run of this workflow id */
        answer(core, call, run, true);
    }
}
