/* Signals and cancel requests: inputs of a run that its workflow sees as events. They have no states of their own. A signal is accepted
 * once per request id (hf_request_is_known), a cancel request once per run. The answer means that the event is in the history, or
 * in the buffer and will be in the history. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/machines/speculative.h"
#include "history/limits.h"

bool hf_request_is_known(const hf_run *run, hf_str request_id)
{
    if (request_id.len == 0 || HF_CANARY(HF_BUG_SIGNAL_NOT_DEDUPED)) {
        return false;
    }
    uint64_t hash = hf_request_hash(request_id);
    for (size_t i = 0; i < run->request_ids.count; i++) {
        if (run->request_ids.items[i] == hash) {
            return true;
        }
    }
    return false;
}

bool hf_run_has_buffered(hf_core *core, const hf_run *run, int32_t event_type)
{
    for (size_t i = 0; i < run->buffered.count; i++) {
        hf_pb_history_event event;
        hf_str bytes = hf_owned_str(&run->buffered.items[i]);
        if (hf_pb_decode(&core->op, &hf_pb_history_event_type, bytes, &core->scratch, &event) == HF_OK &&
            event.event_type == event_type) {
            return true;
        }
    }
    return false;
}

/* Whether the run has its maximum of signals, in the history and in the buffer. Buffered events are decoded only if they matter. */
static bool has_all_signals(hf_core *core, const hf_run *run)
{
    int64_t most = core->options.limits.signals;
    if (run->signal_count + (int64_t)run->buffered.count < most) {
        return false;
    }
    int64_t count = run->signal_count;
    for (size_t i = 0; i < run->buffered.count; i++) {
        hf_pb_history_event event;
        hf_str bytes = hf_owned_str(&run->buffered.items[i]);
        count += hf_pb_decode(&core->op, &hf_pb_history_event_type, bytes, &core->scratch, &event) == HF_OK &&
                 event.event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED;
    }
    return count >= most;
}

static void remember(hf_core *core, hf_run *run, hf_str request_id)
{
    if (request_id.len > 0 && run->request_ids.count < HF_REQUEST_IDS_MAX) {
        hf_record_str(core, run, HF_CHANGE_REQUEST_ID, request_id);
    }
}

bool hf_signal_fits(hf_core *core, hf_call *call, hf_run *run)
{
    if (!has_all_signals(core, run)) {
        return hf_wft_state_now(run) == HF_WFT_STARTED || hf_execution_has_room(core, call, run, 1);
    }
    HF_PROBE(core, HF_PROBE_LIMIT_HIT);
    hf_call_fail_for_good(core, call, "exceeded workflow execution limit for signal events",
                          "run %.*s has had %lld signals, the most that one run may get: a workflow that gets more of "
                          "them has to continue as new before (hf_continue_as_new)",
                          HF_STR_ARGS(run->run_id), (long long)core->options.limits.signals);
    return false;
}

void hf_signal_add(hf_core *core, hf_run *run, const hf_signal *signal)
{
    hf_assert(core->status != HF_OK || hf_run_is_open(run)); /* run-R4 */
    bool buffered = hf_wft_state_now(run) == HF_WFT_STARTED; /* if the buffer is full hf_wft_schedule ends the task */
    if (buffered) {
        HF_PROBE(core, HF_PROBE_SIGNAL_BUFFERED);
    }
    hf_pb_workflow_execution_signaled_event_attributes body = {
        .signal_name = signal->name,
        .input = signal->input,
        .identity = signal->identity,
        .header = signal->header,
        .external_workflow_execution = signal->sender,
        .request_id = signal->request_id,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        .links = signal->links,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES,
        .workflow_execution_signaled_event_attributes = &body,
    };
    remember(core, run, signal->request_id);
    if (!(buffered && HF_CANARY(HF_BUG_BUFFERED_LOST))) {
        hf_event_emit_or_buffer(core, run, &event);
    }
}

void hf_signal_call(hf_core *core, hf_call *call, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->loading && !HF_SLOT(run)->bad);
    const hf_pb_signal_workflow_execution_request *request = call->request;
    if (hf_request_is_known(run, request->request_id)) { /* also when the run has ended since */
        HF_PROBE(core, HF_PROBE_SIGNAL_DEDUPED);
        hf_call_response(core, call);
        hf_call_reply(core, call);
        return;
    }
    if (!hf_run_is_open(run)) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "workflow execution already completed");
        return;
    }
    if (hf_message_is_for_others(core, call, run)) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "this workflow is not a child of the one that sent the signal");
        return;
    }
    if (!hf_signal_fits(core, call, run)) {
        return;
    }
    int64_t initiated_id = 0;
    hf_signal signal = {
        .name = request->signal_name,
        .input = request->input,
        .header = request->header,
        .identity = request->identity,
        .request_id = request->request_id,
        .links = request->links,
        .sender = hf_message_sender(call, &initiated_id),
    };
    hf_signal_add(core, run, &signal);
    hf_wft_schedule(core, run);
    hf_pb_signal_workflow_execution_response *response = hf_call_response(core, call);
    if (response != NULL && request->request_id.len > 0) {
        response->link =
            hf_link_to_request(call->arena, run, request->request_id, HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
    }
    hf_call_reply(core, call);
}

void hf_cancel_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_request_cancel_workflow_execution_request *request = call->request;
    if (hf_run_is_open(run) && hf_message_is_for_others(core, call, run)) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "this workflow is not a child of the one that sent the request");
        return;
    }
    bool again =
        run->cancel_requested || hf_run_has_buffered(core, run, HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED);
    if (again || !hf_run_is_open(run)) {
        HF_PROBE(core, HF_PROBE_CANCEL_TWICE);
        hf_call_response(core, call); /* its cancellation was requested before, or it has ended: nothing to do */
        hf_call_reply(core, call);
        return;
    }
    hf_pb_workflow_execution_cancel_requested_event_attributes body = {
        .cause = request->reason,
        .identity = request->identity,
    };
    body.external_workflow_execution = hf_message_sender(call, &body.external_initiated_event_id);
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
        .links = request->links,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CANCEL_REQUESTED_EVENT_ATTRIBUTES,
        .workflow_execution_cancel_requested_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
    hf_assert(core->status != HF_OK || run->cancel_requested ||
              run->buffered.count > 0); /* it is found the next time */
    hf_wft_schedule(core, run);
    hf_call_response(core, call);
    hf_call_reply(core, call);
}
