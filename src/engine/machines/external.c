/* Signals and cancel requests from one run to another: the commands, the messages (message.h), and their outcomes.
 *
 * The states of a message, as the run that sent it sees them: run/machines/external.c. */
#include "engine/core_private.h"

#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/input.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/matching.h"
#include "history/limits.h"

#include <stdio.h>

/* Any other status is not the fault of the message, for example if the target cannot be read. */
static int32_t signal_cause(hf_status status)
{
    if (status == HF_ERR_NOT_FOUND) {
        return HF_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND;
    }
    return status == HF_ERR_LIMIT ? HF_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_SIGNAL_COUNT_LIMIT_EXCEEDED
                                  : HF_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_UNSPECIFIED;
}

static int32_t cancel_cause(hf_status status)
{
    return status == HF_ERR_NOT_FOUND
               ? HF_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
               : HF_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_UNSPECIFIED;
}

/* A command without a namespace means the namespace of its run. */
static hf_str home_of(const hf_run *run, hf_str namespace_)
{
    return namespace_.len > 0 ? namespace_ : hf_owned_str(&run->namespace);
}

static void emit_signal_outcome(hf_core *core, hf_run *run, const hf_message *message)
{
    const hf_pb_signal_external_workflow_execution_initiated_event_attributes *asked =
        message->event.signal_external_workflow_execution_initiated_event_attributes;
    hf_pb_external_workflow_execution_signaled_event_attributes signaled = {
        .initiated_event_id = message->id,
        .namespace = home_of(run, asked->namespace),
        .workflow_execution = asked->workflow_execution,
        .control = asked->control,
    };
    hf_pb_signal_external_workflow_execution_failed_event_attributes failed = {
        .cause = signal_cause(message->call.status),
        .namespace = home_of(run, asked->namespace),
        .workflow_execution = asked->workflow_execution,
        .initiated_event_id = message->id,
        .control = asked->control,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED,
        .attributes_case = HF_PB_HISTORY_EVENT_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES,
        .external_workflow_execution_signaled_event_attributes = &signaled,
    };
    if (message->call.status != HF_OK) {
        event.event_type = HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED;
        event.attributes_case = HF_PB_HISTORY_EVENT_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES;
        event.signal_external_workflow_execution_failed_event_attributes = &failed;
    }
    hf_event_emit_or_buffer(core, run, &event);
}

static void emit_cancel_outcome(hf_core *core, hf_run *run, const hf_message *message)
{
    const hf_pb_request_cancel_external_workflow_execution_initiated_event_attributes *asked =
        message->event.request_cancel_external_workflow_execution_initiated_event_attributes;
    hf_pb_external_workflow_execution_cancel_requested_event_attributes requested = {
        .initiated_event_id = message->id,
        .namespace = home_of(run, asked->namespace),
        .workflow_execution = asked->workflow_execution,
    };
    hf_pb_request_cancel_external_workflow_execution_failed_event_attributes failed = {
        .cause = cancel_cause(message->call.status),
        .namespace = home_of(run, asked->namespace),
        .workflow_execution = asked->workflow_execution,
        .initiated_event_id = message->id,
        .control = asked->control,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
        .attributes_case = HF_PB_HISTORY_EVENT_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED_EVENT_ATTRIBUTES,
        .external_workflow_execution_cancel_requested_event_attributes = &requested,
    };
    if (message->call.status != HF_OK) {
        event.event_type = HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED;
        event.attributes_case = HF_PB_HISTORY_EVENT_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES;
        event.request_cancel_external_workflow_execution_failed_event_attributes = &failed;
    }
    hf_event_emit_or_buffer(core, run, &event);
}

void hf_external_answered(hf_core *core, hf_run *run, const hf_message *message)
{
    hf_assert(message->kind == HF_MESSAGE_SIGNAL || message->kind == HF_MESSAGE_CANCEL); /* engine-M1 */
    if (hf_run_external(run, message->id) == NULL) {
        return;
    }
    if (!hf_run_is_open(run)) {
        hf_record_int(core, run, HF_CHANGE_EXTERNAL_GONE, message->id);
        HF_SLOT(run)->spill_now = true;
        return;
    }
    if (message->kind == HF_MESSAGE_CANCEL) {
        emit_cancel_outcome(core, run, message);
    } else {
        emit_signal_outcome(core, run, message);
    }
    hf_wft_schedule(core, run);
}

static void send_cancel(hf_core *core, hf_message *message, hf_str home)
{
    const hf_pb_request_cancel_external_workflow_execution_initiated_event_attributes *asked =
        message->event.request_cancel_external_workflow_execution_initiated_event_attributes;
    message->execution = *asked->workflow_execution;
    message->cancel = (hf_pb_request_cancel_workflow_execution_request){
        .namespace = asked->namespace.len > 0 ? asked->namespace : home,
        .workflow_execution = &message->execution,
        .identity = HF_IDENTITY_ENGINE,
        .request_id = hf_message_request_id(message),
        .reason = asked->reason,
    };
    hf_message_post(core, message, HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION, &message->cancel);
}

static void send_signal(hf_core *core, hf_message *message, hf_str home)
{
    const hf_pb_signal_external_workflow_execution_initiated_event_attributes *asked =
        message->event.signal_external_workflow_execution_initiated_event_attributes;
    message->execution = *asked->workflow_execution;
    message->signal = (hf_pb_signal_workflow_execution_request){
        .namespace = asked->namespace.len > 0 ? asked->namespace : home,
        .workflow_execution = &message->execution,
        .signal_name = asked->signal_name,
        .input = asked->input,
        .identity = HF_IDENTITY_ENGINE,
        .header = asked->header,
        .request_id = hf_message_request_id(message),
    };
    hf_message_post(core, message, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &message->signal);
}

void hf_external_send(hf_core *core, hf_run *run, const hf_external *external)
{
    hf_assert(external->state == HF_EXTERNAL_INITIATED);
    hf_message *message =
        hf_message_new(core, run, HF_MESSAGE_SIGNAL, external->initiated_id, hf_owned_str(&external->event));
    if (message == NULL) {
        return;
    }
    hf_str home = hf_arena_copy(&message->arena, hf_owned_str(&run->namespace));
    if (message->event.event_type == HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED) {
        message->kind = HF_MESSAGE_CANCEL;
        send_cancel(core, message, home);
    } else {
        send_signal(core, message, home);
    }
}

/* ---- Commands -------------------------------------------------------------------------------------------------------- */

void hf_external_decide_signal(hf_core *core, hf_run *run,
                               const hf_pb_signal_external_workflow_execution_command_attributes *attrs)
{
    hf_pb_workflow_execution execution = {.workflow_id = attrs->execution->workflow_id,
                                          .run_id = attrs->execution->run_id};
    hf_pb_signal_external_workflow_execution_initiated_event_attributes body = {
        .workflow_task_completed_event_id = run->wft.completed_id,
        .namespace = attrs->namespace, /* empty: that of the run */
        .workflow_execution = &execution,
        .signal_name = attrs->signal_name,
        .input = attrs->input,
        .control = attrs->control,
        .child_workflow_only = attrs->child_workflow_only,
        .header = attrs->header,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
        .attributes_case = HF_PB_HISTORY_EVENT_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES,
        .signal_external_workflow_execution_initiated_event_attributes = &body,
    };
    hf_event_emit(core, run, &event); /* whose effect is the message */
}

void hf_external_decide_cancel(hf_core *core, hf_run *run,
                               const hf_pb_request_cancel_external_workflow_execution_command_attributes *attrs)
{
    hf_pb_workflow_execution execution = {.workflow_id = attrs->workflow_id, .run_id = attrs->run_id};
    hf_pb_request_cancel_external_workflow_execution_initiated_event_attributes body = {
        .workflow_task_completed_event_id = run->wft.completed_id,
        .namespace = attrs->namespace, /* empty: that of the run */
        .workflow_execution = &execution,
        .control = attrs->control,
        .child_workflow_only = attrs->child_workflow_only,
        .reason = attrs->reason,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
        .attributes_case = HF_PB_HISTORY_EVENT_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES,
        .request_cancel_external_workflow_execution_initiated_event_attributes = &body,
    };
    hf_event_emit(core, run, &event); /* whose effect is the message */
}
