/* Listeners: a run is told of the end of a chain, once, by the last run of that chain (engine-H1). */
#include "engine/machines/message.h"

#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/emit.h"
#include "engine/fetch.h"
#include "engine/machines/machines.h"

/* Encodes the closing event; the message keeps a copy of the bytes. */
static hf_str encode(hf_core *core, const hf_pb_history_event *event)
{
    core->events.len = 0;
    hf_pb_encode(&hf_pb_history_event_type, event, &core->events);
    if (core->events.status != HF_OK) {
        hf_core_break(core, core->events.status, "out of memory");
    }
    return hf_str_of_len(core->events.data, core->events.len);
}

void hf_listener_tell(hf_core *core, hf_run *run)
{
    hf_assert(run->is_untold && run->close_event_id > 0);
    hf_pb_history_event last = {0};
    hf_fetch fetch = hf_event_get(core, run, run->close_event_id, HF_EVENT_TYPE_UNSPECIFIED, &last);
    HF_SLOT(run)->fetch_tell = fetch == HF_FETCH_COMING;
    hf_start_facts facts;
    if (fetch == HF_FETCH_COMING || !hf_run_has_listener(run, &core->scratch, &facts)) {
        return;
    }
    hf_str bytes = fetch == HF_FETCH_HERE ? encode(core, &last) : HF_STR("");
    hf_message *message = hf_message_new(core, run, HF_MESSAGE_TELL, run->close_event_id, bytes);
    if (message == NULL) {
        return;
    }
    hf_arena *arena = &message->arena;
    hf_pb_workflow_execution *child = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    message->execution.workflow_id = hf_arena_copy(arena, facts.parent_workflow_execution->workflow_id);
    message->execution.run_id = hf_arena_copy(arena, facts.parent_workflow_execution->run_id);
    if (child != NULL) {
        *child = message->sender;
    }
    message->tell = (hf_pb_tell_listener_request){
        .namespace = hf_arena_copy(arena, hf_owned_str(&run->namespace)),
        .execution = &message->execution,
        .initiated_id = facts.parent_initiated_event_id,
        .child = child,
        .workflow_type = hf_arena_copy(arena, hf_owned_str(&run->workflow_type)),
        .event = hf_arena_copy(arena, bytes),
        .first_run_id = hf_arena_copy(arena, hf_owned_str(&run->first_run_id)),
    };
    hf_message_post(core, message, HF_METHOD_TELL_LISTENER, &message->tell);
}

/* A listener that is gone, or no longer wants to hear of it, has been told as well. One that cannot be read may be mended: it is told at
 * the next opening. */
void hf_listener_told(hf_core *core, hf_run *run, const hf_message *message)
{
    hf_assert(!hf_run_is_open(run) && message->id == run->close_event_id); /* run-R4 */
    if (run->is_untold && !hf_message_is_refused(message)) {
        hf_record_int(core, run, HF_CHANGE_TOLD, 1);
        HF_SLOT(run)->spill_now = true;
    }
}

/* ---- The listener ---------------------------------------------------------------------------------------------------- */

typedef struct child_end {
    hf_str namespace_;
    hf_pb_workflow_execution *execution;
    hf_pb_workflow_type *type;
    int64_t initiated_id;
    int64_t started_id;
} child_end;

static void emit_completed(hf_core *core, hf_run *run, const child_end *end, const hf_pb_history_event *last)
{
    hf_pb_child_workflow_execution_completed_event_attributes body = {
        .result = last->workflow_execution_completed_event_attributes->result,
        .namespace = end->namespace_,
        .workflow_execution = end->execution,
        .workflow_type = end->type,
        .initiated_event_id = end->initiated_id,
        .started_event_id = end->started_id,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED,
        .attributes_case = HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_COMPLETED_EVENT_ATTRIBUTES,
        .child_workflow_execution_completed_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
}

static void emit_failed(hf_core *core, hf_run *run, const child_end *end, hf_pb_failure *failure, int32_t retry_state)
{
    hf_pb_child_workflow_execution_failed_event_attributes body = {
        .failure = failure,
        .namespace = end->namespace_,
        .workflow_execution = end->execution,
        .workflow_type = end->type,
        .initiated_event_id = end->initiated_id,
        .started_event_id = end->started_id,
        .retry_state = retry_state,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED,
        .attributes_case = HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES,
        .child_workflow_execution_failed_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
}

static void emit_canceled(hf_core *core, hf_run *run, const child_end *end, const hf_pb_history_event *last)
{
    hf_pb_child_workflow_execution_canceled_event_attributes body = {
        .details = last->workflow_execution_canceled_event_attributes->details,
        .namespace = end->namespace_,
        .workflow_execution = end->execution,
        .workflow_type = end->type,
        .initiated_event_id = end->initiated_id,
        .started_event_id = end->started_id,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED,
        .attributes_case = HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_CANCELED_EVENT_ATTRIBUTES,
        .child_workflow_execution_canceled_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
}

static void emit_timed_out(hf_core *core, hf_run *run, const child_end *end, const hf_pb_history_event *last)
{
    hf_pb_child_workflow_execution_timed_out_event_attributes body = {
        .namespace = end->namespace_,
        .workflow_execution = end->execution,
        .workflow_type = end->type,
        .initiated_event_id = end->initiated_id,
        .started_event_id = end->started_id,
        .retry_state = last->workflow_execution_timed_out_event_attributes->retry_state,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT,
        .attributes_case = HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_TIMED_OUT_EVENT_ATTRIBUTES,
        .child_workflow_execution_timed_out_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
}

static void emit_terminated(hf_core *core, hf_run *run, const child_end *end)
{
    hf_pb_child_workflow_execution_terminated_event_attributes body = {
        .namespace = end->namespace_,
        .workflow_execution = end->execution,
        .workflow_type = end->type,
        .initiated_event_id = end->initiated_id,
        .started_event_id = end->started_id,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED,
        .attributes_case = HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_TERMINATED_EVENT_ATTRIBUTES,
        .child_workflow_execution_terminated_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
}

static void emit_end(hf_core *core, hf_run *run, const child_end *end, const hf_pb_history_event *last)
{
    switch (last->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
        emit_completed(core, run, end, last);
        return;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
        emit_failed(core, run, end, last->workflow_execution_failed_event_attributes->failure,
                    last->workflow_execution_failed_event_attributes->retry_state);
        return;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
        emit_canceled(core, run, end, last);
        return;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
        emit_timed_out(core, run, end, last);
        return;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
        emit_terminated(core, run, end);
        return;
    default: {
        hf_pb_failure lost = {.message = HF_STR("the last event of the child cannot be read; see holdfast db check")};
        emit_failed(core, run, end, &lost, HF_RETRY_STATE_INTERNAL_SERVER_ERROR);
        return;
    }
    }
}

/* True: a reset has put another run in the place of this one, and the message goes on to that run, which has its children. */
static bool goes_further(hf_core *core, hf_message *message, const hf_run *run)
{
    if (hf_run_is_open(run) || run->reset_run_id.len == 0) {
        return false;
    }
    HF_PROBE(core, HF_PROBE_RESET_TOLD);
    message->execution.run_id = hf_arena_copy(&message->arena, hf_owned_str(&run->reset_run_id));
    if (message->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return true;
    }
    hf_list_push_back(&core->inbox, &message->call.link);
    return true;
}

void hf_listener_call(hf_core *core, hf_call *call, hf_run *run)
{
    hf_message *message = hf_message_of(call);
    const hf_pb_tell_listener_request *request = call->request;
    if (message == NULL || message->kind != HF_MESSAGE_TELL) {
        hf_call_fail(core, call, HF_ERR_INVALID, "only the engine itself makes this call");
        return;
    }
    if (goes_further(core, message, run)) {
        return;
    }
    const hf_child *child = hf_run_is_open(run) ? hf_run_child(run, request->initiated_id) : NULL;
    bool waits = child != NULL && child->state == HF_CHILD_STARTED &&
                 hf_str_equal(hf_owned_str(&child->workflow_id), request->child->workflow_id) &&
                 (hf_str_equal(hf_owned_str(&child->run_id), request->first_run_id) ||
                  hf_str_equal(hf_owned_str(&child->run_id), request->child->run_id));
    if (waits) {
        HF_PROBE(core, HF_PROBE_CHILD_ENDED);
        hf_pb_workflow_type type = {.name = request->workflow_type};
        child_end end = {
            .namespace_ = request->namespace,
            .execution = request->child,
            .type = &type,
            .initiated_id = request->initiated_id,
            .started_id = child->started_id,
        };
        emit_end(core, run, &end, &message->event);
        hf_wft_schedule(core, run);
    }
    hf_call_response(core, call);
    hf_call_reply(core, call);
}
