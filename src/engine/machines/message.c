#include "engine/machines/message.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/emit.h"
#include "engine/input.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/matching.h"
#include "history/limits.h"

#include <stdio.h>

hf_message *hf_message_of(hf_call *call)
{
    return call->maker == HF_CALL_OF_RUN ? (hf_message *)(void *)call : NULL;
}

const hf_message *hf_message_of_const(const hf_call *call)
{
    return call->maker == HF_CALL_OF_RUN ? (const hf_message *)(const void *)call : NULL;
}

/* ---- Making one ------------------------------------------------------------------------------------------------------ */

static void message_free(hf_core *core, hf_message *message)
{
    hf_assert(message->core == core && !hf_node_is_linked(&message->call.all)); /* it was answered, or never posted */
    hf_arena_deinit(&message->arena);
    hf_core_free_mem(core, message, sizeof *message);
}

hf_message *hf_message_new(hf_core *core, hf_run *run, hf_message_kind kind, int64_t id, hf_str event)
{
    hf_message *message = core->status == HF_OK ? hf_core_alloc(core, sizeof *message) : NULL;
    if (message == NULL) {
        return NULL;
    }
    message->core = core;
    message->kind = kind;
    message->source = run->number;
    message->id = id;
    hf_arena_init(&message->arena, core->memory);
    hf_arena *arena = &message->arena;
    hf_str bytes = hf_arena_copy(arena, event);
    hf_status status = hf_pb_decode(&core->op, &hf_pb_history_event_type, bytes, arena, &message->event);
    message->sender.workflow_id = hf_arena_copy(arena, hf_owned_str(&run->workflow_id));
    message->sender.run_id = hf_arena_copy(arena, hf_owned_str(&run->run_id));
    if (status != HF_OK || arena->status != HF_OK) {
        hf_core_break(core, status != HF_OK ? status : HF_ERR_NOMEM, "a message to another run cannot be made");
        message_free(core, message);
        return NULL;
    }
    return message;
}

hf_str hf_message_request_id(hf_message *message)
{
    char id[HF_ID_LEN_MAX + 32];
    int len = snprintf(id, sizeof id, "%.*s/%lld", HF_STR_ARGS(message->sender.run_id), (long long)message->id);
    return hf_arena_copy(&message->arena, hf_str_of_len(id, len > 0 ? (size_t)len : 0));
}

static void answered(hf_call *call);

void hf_message_post(hf_core *core, hf_message *message, hf_method method, const void *request)
{
    if (message->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "a message to another run cannot be made");
        message_free(core, message);
        return;
    }
    hf_call_init(&message->call, method, request, &message->arena, answered);
    message->call.maker = HF_CALL_OF_RUN;
    hf_list_push_back(&core->calls_all, &message->call.all);
    hf_list_push_back(&core->inbox, &message->call.link);
}

/* ---- What others ask of one ------------------------------------------------------------------------------------------- */

hf_pb_workflow_execution *hf_message_sender(hf_call *call, int64_t *ret_initiated_id)
{
    hf_message *message = hf_message_of(call);
    if (message == NULL || message->kind == HF_MESSAGE_BATCH) {
        return NULL; /* a client did, by way of an operation */
    }
    *ret_initiated_id = message->kind == HF_MESSAGE_CLOSE_CHILD ? 0 : message->id; /* no event of the parent says it */
    return &message->sender;
}

static bool only_for_children(const hf_message *message)
{
    if (message->kind == HF_MESSAGE_CANCEL) {
        return message->event.request_cancel_external_workflow_execution_initiated_event_attributes
            ->child_workflow_only;
    }
    return message->kind == HF_MESSAGE_SIGNAL &&
           message->event.signal_external_workflow_execution_initiated_event_attributes->child_workflow_only;
}

/* A run that took the place of its parent by a reset has the child as well. */
static bool has_child(const hf_run *parent, const hf_run *run)
{
    for (size_t i = 0; parent != NULL && i < parent->children.count; i++) {
        const hf_child *child = &parent->children.items[i];
        if (hf_str_equal(hf_owned_str(&child->workflow_id), hf_owned_str(&run->workflow_id)) &&
            hf_str_equal(hf_owned_str(&child->run_id), hf_owned_str(&run->first_run_id))) {
            return true;
        }
    }
    return false;
}

bool hf_message_is_for_others(hf_core *core, const hf_call *call, const hf_run *run)
{
    const hf_message *message = hf_message_of_const(call);
    if (message == NULL || !only_for_children(message)) {
        return false;
    }
    HF_PROBE(core, HF_PROBE_CHILD_ONLY);
    hf_start_facts facts;
    if (!hf_run_has_listener(run, &core->scratch, &facts) ||
        !hf_str_equal(facts.parent_workflow_execution->workflow_id, message->sender.workflow_id)) {
        return true;
    }
    return !hf_str_equal(facts.parent_workflow_execution->run_id, message->sender.run_id) &&
           !has_child(hf_run_find(core, message->source), run);
}

bool hf_message_is_refused(const hf_message *message)
{
    return message->call.status == HF_ERR_STORE;
}

bool hf_message_is_void(hf_core *core, const hf_call *call)
{
    const hf_message *message = hf_message_of_const(call);
    const hf_run *run =
        message != NULL && message->kind == HF_MESSAGE_START_CHILD ? hf_run_find(core, message->source) : NULL;
    return message != NULL && message->kind == HF_MESSAGE_START_CHILD &&
           (run == NULL || !hf_run_is_open(run) || hf_run_child(run, message->id) == NULL);
}

/* ---- The inbox ------------------------------------------------------------------------------------------------------- */

typedef void hf_message_answer(hf_core *core, hf_run *run, const hf_message *message);

static hf_message_answer *const ANSWERS[HF_MESSAGE_KIND_COUNT] = {
    [HF_MESSAGE_SIGNAL] = hf_external_answered,
    [HF_MESSAGE_CANCEL] = hf_external_answered,
    [HF_MESSAGE_START_CHILD] = hf_child_start_answered,
    [HF_MESSAGE_CLOSE_CHILD] = hf_child_close_answered,
    [HF_MESSAGE_TELL] = hf_listener_told,
    [HF_MESSAGE_BATCH] = hf_operation_answered,
};

/* Its run is damaged, and the sender goes on waiting for its answer. */
static bool is_put_aside(const hf_message *message)
{
    return hf_message_is_refused(message) &&
           (message->kind == HF_MESSAGE_CLOSE_CHILD || message->kind == HF_MESSAGE_TELL);
}

/* The message is answered: its sender learns the outcome. If the core is broken only the memory is freed. */
static void answered(hf_call *call)
{
    hf_message *message = hf_message_of(call);
    hf_core *core = message->core;
    hf_run *run = core->status == HF_OK ? hf_run_find(core, message->source) : NULL;
    if (run != NULL) {
        hf_assert(run->number == message->source); /* engine-M1 */
        ANSWERS[message->kind](core, run, message);
        hf_core_unuse(core, run);
        if (is_put_aside(message)) {
            hf_assert(hf_run_has_messages(run)); /* which holds the sender in memory */
            hf_list_push_back(&core->refused, &call->link);
            return;
        }
    }
    message_free(core, message);
}

void hf_messages_again(hf_core *core)
{
    hf_node *node = NULL;
    while (core->status == HF_OK && (node = hf_list_pop_front(&core->refused)) != NULL) {
        hf_message *message = hf_message_of(HF_CONTAINER(node, hf_call, link));
        HF_PROBE(core, HF_PROBE_MESSAGE_AGAIN);
        hf_message_post(core, message, message->call.method, message->call.request);
    }
}

void hf_messages_deinit(hf_core *core)
{
    hf_node *node = NULL;
    while ((node = hf_list_pop_front(&core->refused)) != NULL) {
        message_free(core, hf_message_of(HF_CONTAINER(node, hf_call, link)));
    }
}

void hf_message_send(hf_core *core, hf_run *run, int64_t event_id)
{
    const hf_external *external = core->status == HF_OK ? hf_run_external(run, event_id) : NULL;
    const hf_child *child = core->status == HF_OK ? hf_run_child(run, event_id) : NULL;
    if (external != NULL) {
        hf_external_send(core, run, external);
    }
    if (child != NULL) {
        hf_child_send_start(core, run, child);
    }
    if (child != NULL && HF_CANARY(HF_BUG_CHILD_STARTED_TWICE)) {
        hf_child_send_start(core, run, child);
    }
}

static void send_policies(hf_core *core, hf_run *run)
{
    for (size_t i = 0; i < run->children.count && core->status == HF_OK; i++) {
        hf_child_send_close(core, run, &run->children.items[i]);
    }
}

void hf_message_send_last(hf_core *core, hf_run *run)
{
    hf_assert(!hf_run_is_open(run));
    send_policies(core, run);
    if (run->is_untold) {
        hf_listener_tell(core, run);
    }
}

void hf_message_send_all(hf_core *core, hf_run *run)
{
    if (hf_run_has_messages(run)) {
        HF_PROBE(core, HF_PROBE_MESSAGE_AGAIN);
    }
    for (size_t i = 0; i < run->externals.count && core->status == HF_OK; i++) {
        if (run->externals.items[i].state == HF_EXTERNAL_INITIATED) {
            hf_external_send(core, run, &run->externals.items[i]);
        }
    }
    for (size_t i = 0; i < run->children.count && core->status == HF_OK && hf_run_is_open(run); i++) {
        if (run->children.items[i].state == HF_CHILD_INITIATED) {
            hf_child_send_start(core, run, &run->children.items[i]);
        }
    }
    if (!hf_run_is_open(run) && !HF_CANARY(HF_BUG_POLICY_FORGOTTEN)) {
        send_policies(core, run);
    }
    if (run->is_untold && !HF_CANARY(HF_BUG_END_FORGOTTEN)) {
        hf_listener_tell(core, run);
    }
}

/* Why a signal or a cancel request does not go out: it is for the sender's own workflow, whichever run of it (commands name no other
 * namespace), or the sender closed with the same task or soon after. NULL = it does. */
static const char *stopped(hf_core *core, const hf_message *message)
{
    if (message->kind != HF_MESSAGE_SIGNAL && message->kind != HF_MESSAGE_CANCEL) {
        return NULL;
    }
    if (hf_str_equal(message->sender.workflow_id, message->execution.workflow_id)) {
        HF_PROBE(core, HF_PROBE_MESSAGE_TO_ITSELF);
        return "a workflow cannot send itself a message";
    }
    const hf_run *sender = hf_run_find(core, message->source);
    if (sender == NULL || !hf_run_is_open(sender)) {
        HF_PROBE(core, HF_PROBE_MESSAGE_STOPPED);
        return "the run that wanted to send it has ended";
    }
    return NULL;
}

bool hf_inbox_has_work(const hf_core *core)
{
    /* A batch without changes is not committed, so nobody waits for it. */
    bool has_room = core->delivered < core->options.messages_max || hf_list_is_empty(&core->touched);
    return !hf_list_is_empty(&core->inbox) && has_room && !hf_core_is_full(core);
}

void hf_inbox_pump(hf_core *core)
{
    for (int i = 0; core->status == HF_OK && i < HF_INBOX_MAX && hf_inbox_has_work(core); i++) {
        hf_node *node = hf_list_pop_front(&core->inbox);
        core->delivered = hf_list_is_empty(&core->touched) ? 1 : core->delivered + 1;
        HF_PROBE(core, HF_PROBE_MESSAGE);
        hf_core_reset_scratch(core);
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        hf_assert(call->maker == HF_CALL_OF_RUN);
        const char *why_not = stopped(core, hf_message_of_const(call));
        if (why_not != NULL) {
            hf_call_set_failure(call, HF_ERR_NOT_FOUND, why_not);
            hf_call_now(call);
        } else {
            hf_input(core, call);
        }
    }
    if (!hf_list_is_empty(&core->inbox) && core->delivered >= core->options.messages_max) {
        HF_PROBE(core, HF_PROBE_INBOX_FULL);
    }
}
