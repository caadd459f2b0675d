/* Messages between runs: signals and cancel requests, and the inbox that carries them.
 *
 * A step changes the runs of one workflow id (engine-E3), so an effect on another one is a message: a call of the core's own, which finds its
 * run like any other call, waits while that is loaded, and is answered inside the core. When both runs are in memory everything is in
 * one batch. The message itself is never written: while the run that sent it says "initiated" it can be made again, and the request id
 * that it carries makes a second arrival harmless. Runs with something initiated stay in memory, or have a row that opening finds
 * (spill.c), so that a crash delays a message and does not lose it.
 *
 * A run whose buffer of events is full takes no more until its workflow task ends, which it does in time. A client is told so and tries
 * again; a message waits with that run, in order, and then comes before all younger ones.
 *
 * The states of a message, as the run that sent it sees them: run/machines/external.c. */
#include "engine/core_private.h"

#include "engine/emit.h"
#include "engine/input.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/matching.h"
#include "history/limits.h"

#include <stdio.h>

/* ---- The inbox ------------------------------------------------------------------------------------------------------- */

typedef struct hf_message {
    hf_call call; /* first */
    hf_arena arena;
    hf_core *core;
    int64_t source;       /* run that sent it */
    int64_t initiated_id; /* event of that run */
    bool cancel;
    hf_pb_history_event event;          /* that event, in the arena */
    hf_pb_workflow_execution execution; /* it is for */
    hf_pb_workflow_execution sender;
    hf_pb_signal_workflow_execution_request signal;
    hf_pb_request_cancel_workflow_execution_request request_cancel;
} hf_message;

/* What is neither is no fault of the message, such as a target that cannot be read. */
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

static void emit_signal_outcome(hf_core *core, hf_run *run, const hf_message *message)
{
    const hf_pb_signal_external_workflow_execution_initiated_event_attributes *asked =
        message->event.signal_external_workflow_execution_initiated_event_attributes;
    hf_pb_external_workflow_execution_signaled_event_attributes signaled = {
        .initiated_event_id = message->initiated_id,
        .namespace = asked->namespace,
        .workflow_execution = asked->workflow_execution,
        .control = asked->control,
    };
    hf_pb_signal_external_workflow_execution_failed_event_attributes failed = {
        .cause = signal_cause(message->call.status),
        .workflow_task_completed_event_id = asked->workflow_task_completed_event_id,
        .namespace = asked->namespace,
        .workflow_execution = asked->workflow_execution,
        .initiated_event_id = message->initiated_id,
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
        .initiated_event_id = message->initiated_id,
        .namespace = asked->namespace,
        .workflow_execution = asked->workflow_execution,
    };
    hf_pb_request_cancel_external_workflow_execution_failed_event_attributes failed = {
        .cause = cancel_cause(message->call.status),
        .workflow_task_completed_event_id = asked->workflow_task_completed_event_id,
        .namespace = asked->namespace,
        .workflow_execution = asked->workflow_execution,
        .initiated_event_id = message->initiated_id,
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

/* The answer, inside the core. After a broken step only the memory is left to care for. */
static void message_done(hf_call *call)
{
    hf_message *message = (hf_message *)(void *)call;
    hf_core *core = message->core;
    hf_run *run = core->status == HF_OK ? hf_run_find(core, message->source) : NULL;
    if (run != NULL && hf_run_external(run, message->initiated_id) != NULL) {
        if (!hf_run_is_open(run)) {
            hf_record_int(core, run, HF_CHANGE_EXTERNAL_GONE, message->initiated_id);
            HF_SLOT(run)->spill_now = true;
        } else if (message->cancel) {
            emit_cancel_outcome(core, run, message);
        } else {
            emit_signal_outcome(core, run, message);
        }
        hf_wft_schedule(core, run);
        hf_core_unuse(core, run);
    }
    hf_arena_deinit(&message->arena);
    hf_core_free_mem(core, message, sizeof *message);
}

hf_pb_workflow_execution *hf_external_sender(hf_call *call, int64_t *ret_initiated_id)
{
    if (!call->internal) {
        return NULL;
    }
    hf_message *message = (hf_message *)(void *)call;
    *ret_initiated_id = message->initiated_id;
    return &message->sender;
}

bool hf_external_is_for_child(const hf_call *call)
{
    if (!call->internal) {
        return false;
    }
    const hf_message *message = (const hf_message *)(const void *)call;
    return message->cancel
               ? message->event.request_cancel_external_workflow_execution_initiated_event_attributes
                     ->child_workflow_only
               : message->event.signal_external_workflow_execution_initiated_event_attributes->child_workflow_only;
}

/* Fills the request from the event that initiated it. */
static void address(hf_message *message, const hf_run *run)
{
    char id[HF_ID_LEN_MAX];
    int len =
        snprintf(id, sizeof id, "%.*s/%lld", HF_STR_ARGS(hf_owned_str(&run->run_id)), (long long)message->initiated_id);
    hf_str request_id = hf_arena_copy(&message->arena, hf_str_of_len(id, len > 0 ? (size_t)len : 0));
    hf_str home = hf_arena_copy(&message->arena, hf_owned_str(&run->namespace));
    message->sender.workflow_id = hf_arena_copy(&message->arena, hf_owned_str(&run->workflow_id));
    message->sender.run_id = hf_arena_copy(&message->arena, hf_owned_str(&run->run_id));
    if (message->cancel) {
        const hf_pb_request_cancel_external_workflow_execution_initiated_event_attributes *asked =
            message->event.request_cancel_external_workflow_execution_initiated_event_attributes;
        message->execution = *asked->workflow_execution;
        message->request_cancel = (hf_pb_request_cancel_workflow_execution_request){
            .namespace = asked->namespace.len > 0 ? asked->namespace : home,
            .workflow_execution = &message->execution,
            .request_id = request_id,
            .reason = asked->reason,
        };
        return;
    }
    const hf_pb_signal_external_workflow_execution_initiated_event_attributes *asked =
        message->event.signal_external_workflow_execution_initiated_event_attributes;
    message->execution = *asked->workflow_execution;
    message->signal = (hf_pb_signal_workflow_execution_request){
        .namespace = asked->namespace.len > 0 ? asked->namespace : home,
        .workflow_execution = &message->execution,
        .signal_name = asked->signal_name,
        .input = asked->input,
        .header = asked->header,
        .request_id = request_id,
    };
}

static void post(hf_core *core, hf_run *run, const hf_external *external)
{
    hf_assert(external->state == HF_EXTERNAL_INITIATED);
    hf_message *message = hf_core_alloc(core, sizeof *message);
    if (message == NULL) {
        return;
    }
    message->core = core;
    message->source = run->number;
    message->initiated_id = external->initiated_id;
    hf_arena_init(&message->arena, core->memory);
    hf_str bytes = hf_arena_copy(&message->arena, hf_owned_str(&external->event));
    hf_status status = hf_pb_decode(&core->op, &hf_pb_history_event_type, bytes, &message->arena, &message->event);
    message->cancel = message->event.event_type == HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED;
    if (status == HF_OK && message->arena.status == HF_OK) { /* else there is no event to look at */
        address(message, run);
    }
    if (status != HF_OK || message->arena.status != HF_OK) {
        hf_core_break(core, status != HF_OK ? status : HF_ERR_NOMEM, "a message to another run cannot be made");
        hf_arena_deinit(&message->arena);
        hf_core_free_mem(core, message, sizeof *message);
        return;
    }
    hf_method method =
        message->cancel ? HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION : HF_METHOD_SIGNAL_WORKFLOW_EXECUTION;
    const void *request = message->cancel ? (const void *)&message->request_cancel : (const void *)&message->signal;
    hf_call_init(&message->call, method, request, &message->arena, message_done);
    message->call.internal = true;
    hf_list_push_back(&core->calls_all, &message->call.all);
    hf_list_push_back(&core->inbox, &message->call.link);
}

void hf_external_post(hf_core *core, hf_run *run, int64_t initiated_id)
{
    const hf_external *external = core->status == HF_OK ? hf_run_external(run, initiated_id) : NULL;
    if (external != NULL) {
        post(core, run, external);
    }
}

void hf_external_post_all(hf_core *core, hf_run *run)
{
    for (size_t i = 0; i < run->externals.count && core->status == HF_OK; i++) {
        if (run->externals.items[i].state == HF_EXTERNAL_INITIATED) {
            HF_PROBE(core, HF_PROBE_MESSAGE_AGAIN);
            post(core, run, &run->externals.items[i]);
        }
    }
}

void hf_external_hold(hf_core *core, hf_call *message, hf_run *run)
{
    hf_assert(message->internal && hf_run_is_open(run)); /* engine-E3: only messages wait for room */
    HF_PROBE(core, HF_PROBE_MESSAGE_HELD);
    message->place = HF_PLACE_ELSEWHERE;
    hf_list_push_back(&HF_SLOT(run)->held, &message->link);
}

void hf_external_release(hf_core *core, hf_run *run)
{
    hf_node *node = NULL;
    while ((node = hf_list_last(&HF_SLOT(run)->held)) != NULL) {
        hf_list_remove(node);
        hf_list_push_front(&core->inbox, node);
    }
}

void hf_inbox_pump(hf_core *core)
{
    hf_node *node = NULL;
    while (core->status == HF_OK && (node = hf_list_pop_front(&core->inbox)) != NULL) {
        HF_PROBE(core, HF_PROBE_MESSAGE);
        hf_core_reset_scratch(core);
        hf_input(core, HF_CONTAINER(node, hf_call, link));
        hf_match_all(core);
    }
}

/* ---- Commands -------------------------------------------------------------------------------------------------------- */

void hf_external_signal(hf_core *core, hf_run *run,
                        const hf_pb_signal_external_workflow_execution_command_attributes *attrs)
{
    hf_pb_workflow_execution execution = {.workflow_id = attrs->execution->workflow_id,
                                          .run_id = attrs->execution->run_id};
    hf_pb_signal_external_workflow_execution_initiated_event_attributes body = {
        .workflow_task_completed_event_id = run->wft.completed_id,
        .namespace = attrs->namespace.len > 0 ? attrs->namespace : hf_owned_str(&run->namespace),
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

void hf_external_cancel(hf_core *core, hf_run *run,
                        const hf_pb_request_cancel_external_workflow_execution_command_attributes *attrs)
{
    hf_pb_workflow_execution execution = {.workflow_id = attrs->workflow_id, .run_id = attrs->run_id};
    hf_pb_request_cancel_external_workflow_execution_initiated_event_attributes body = {
        .workflow_task_completed_event_id = run->wft.completed_id,
        .namespace = attrs->namespace.len > 0 ? attrs->namespace : hf_owned_str(&run->namespace),
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
