/* Messages about updates in the answer of a worker to a workflow task. Acceptances and responses become events, in the place of the
 * command that names them or behind all commands; a rejection becomes none. All of them are checked first, like commands. Then they
 * are carried out, and when all is decided the callers are told. */
#include "engine/machines/update_private.h"

#include "engine/core_private.h"
#include "engine/emit.h"
#include "engine/size.h"
#include "history/limits.h"

#include <stdio.h>

typedef enum hf_said { SAID_ACCEPT, SAID_RESPOND, SAID_REJECT } hf_said;

typedef struct hf_saying {
    const hf_pb_message *message;
    hf_said said;
    union { /* in the scratch */
        hf_pb_acceptance *acceptance;
        hf_pb_response *response;
        hf_pb_rejection *rejection;
    };
    bool is_taken; /* a command names it, or it comes behind all commands */
    bool is_again; /* its update was admitted by an event, and a task passed it: then its request comes as a message */
} hf_saying;

struct hf_update_plan {
    hf_saying *sayings; /* as the messages */
    size_t count;
    size_t *order; /* in which they are carried out */
    size_t order_count;
    size_t command_count; /* of the order: those that commands name */
};

static bool bad(hf_core *core, hf_plan *plan, const char *why)
{
    char text[HF_MESSAGE_LEN_MAX + 40];
    (void)snprintf(text, sizeof text, "BadUpdateWorkflowExecutionMessage: %s", why);
    return hf_command_bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE, text);
}

static bool decode(hf_core *core, hf_plan *plan, const hf_pb_message *message, hf_saying *ret_saying)
{
    static const struct {
        const char *name;
        const hf_pb_type *type;
    } KINDS[] = {
        [SAID_ACCEPT] = {HF_UPDATE_TYPE "Acceptance", &hf_pb_acceptance_type},
        [SAID_RESPOND] = {HF_UPDATE_TYPE "Response", &hf_pb_response_type},
        [SAID_REJECT] = {HF_UPDATE_TYPE "Rejection", &hf_pb_rejection_type},
    };
    if (message->body == NULL || message->protocol_instance_id.len == 0 ||
        message->protocol_instance_id.len > HF_ID_LEN_MAX || message->id.len > 2 * HF_ID_LEN_MAX) {
        return bad(core, plan, "a message has no body, or its ids are missing or too long");
    }
    if (!hf_fits(core, message->body->value.len)) {
        return bad(core, plan, "a message exceeds size limit.");
    }
    for (size_t i = 0; i < HF_COUNT_OF(KINDS); i++) {
        if (hf_str_equal(message->body->type_url, hf_str_of(KINDS[i].name))) {
            void *body = hf_arena_zero(&core->scratch, KINDS[i].type->size, _Alignof(max_align_t));
            if (body == NULL) {
                hf_core_break(core, HF_ERR_NOMEM, "out of memory");
                return false;
            }
            *ret_saying = (hf_saying){.message = message, .said = (hf_said)i, .acceptance = body};
            return hf_pb_decode(&core->op, KINDS[i].type, message->body->value, &core->scratch, body) == HF_OK ||
                   bad(core, plan, "the body of a message cannot be read");
        }
    }
    return bad(core, plan, "a message is of a type that is not known");
}

/* All messages, decoded when the first is needed. NULL: core->op says why. */
static hf_update_plan *sayings_of(hf_core *core, hf_plan *plan)
{
    if (plan->updates != NULL) {
        return plan->updates;
    }
    size_t count = plan->request->messages.count;
    hf_update_plan *updates = HF_ARENA_NEW(&core->scratch, hf_update_plan);
    hf_saying *sayings = HF_ARENA_ARRAY(&core->scratch, hf_saying, count + 1);
    size_t *order = HF_ARENA_ARRAY(&core->scratch, size_t, count + 1);
    if (updates == NULL || sayings == NULL || order == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    *updates = (hf_update_plan){.sayings = sayings, .count = count, .order = order};
    for (size_t i = 0; i < count; i++) {
        if (!decode(core, plan, &plan->request->messages.items[i], &sayings[i])) {
            return NULL;
        }
    }
    plan->updates = updates;
    return updates;
}

/* The last message about this update among those checked so far; NULL = there is none. */
static const hf_saying *said_before(const hf_update_plan *updates, hf_str id)
{
    for (size_t i = updates->order_count; i > 0; i--) {
        const hf_saying *saying = &updates->sayings[updates->order[i - 1]];
        if (hf_str_equal(saying->message->protocol_instance_id, id)) {
            return saying;
        }
    }
    return NULL;
}

static bool wrong_state(hf_core *core, hf_plan *plan, const hf_saying *saying, const char *state)
{
    static const char *const NAMES[] = {
        [SAID_ACCEPT] = "Acceptance", [SAID_RESPOND] = "Response", [SAID_REJECT] = "Rejection"};
    char why[HF_MESSAGE_LEN_MAX];
    (void)snprintf(why, sizeof why,
                   "invalid state transition attempted for Update %.*s: received *update.%s message while in state %s",
                   HF_STR_ARGS(saying->message->protocol_instance_id), NAMES[saying->said], state);
    return bad(core, plan, why);
}

static bool is_complete(hf_core *core, hf_plan *plan, const hf_saying *saying)
{
    hf_str id = saying->message->protocol_instance_id;
    if (saying->said == SAID_ACCEPT) {
        return (saying->acceptance->accepted_request_sequencing_event_id != 0 &&
                saying->acceptance->accepted_request_message_id.len > 0 &&
                saying->acceptance->accepted_request_message_id.len <= 2 * HF_ID_LEN_MAX) ||
               bad(core, plan, "an acceptance does not say which request it accepts");
    }
    if (saying->said == SAID_REJECT) {
        return !hf_failure_is_deep(saying->rejection->failure) || bad(core, plan, "a failure has too many causes");
    }
    const hf_pb_response *response = saying->response;
    if (response->meta == NULL || !hf_str_equal(response->meta->update_id, id) || response->outcome == NULL ||
        response->outcome->value_case == 0) {
        return bad(core, plan, "a response has no outcome, or names another update");
    }
    return response->outcome->value_case != HF_PB_OUTCOME_FAILURE || !hf_failure_is_deep(response->outcome->failure) ||
           bad(core, plan, "a failure has too many causes");
}

/* Checks one message behind those in `order`, and puts it there. */
static bool check_saying(hf_core *core, const hf_run *run, hf_plan *plan, size_t index)
{
    hf_update_plan *updates = plan->updates;
    hf_saying *saying = &updates->sayings[index];
    hf_str id = saying->message->protocol_instance_id;
    const hf_saying *before = said_before(updates, id);
    const hf_update *written = hf_run_update(run, id);
    const hf_asked *asked = hf_asked_find(run, id);
    if (!is_complete(core, plan, saying)) {
        return false;
    }
    bool is_admitted = written != NULL && written->accepted_id == 0; /* by an event, which has its request */
    saying->is_again = is_admitted && hf_update_was_passed(run, written);
    bool is_running =
        before != NULL ? before->said == SAID_ACCEPT : written != NULL && !is_admitted && written->completed_id == 0;
    bool is_over = before != NULL ? before->said != SAID_ACCEPT : written != NULL && written->completed_id != 0;
    if (saying->said == SAID_RESPOND ? !is_running : is_running || is_over) {
        return wrong_state(core, plan, saying, is_over ? "Completed" : is_running ? "Accepted" : "Sent");
    }
    /* After a crash only the worker knows the request, and its answer brings it back. */
    bool is_known = saying->said == SAID_RESPOND || asked != NULL || is_admitted ||
                    (saying->said == SAID_ACCEPT ? saying->acceptance->accepted_request != NULL
                                                 : saying->rejection->rejected_request != NULL);
    bool is_new = asked == NULL && !is_admitted;
    if (!is_known || (saying->said == SAID_ACCEPT && is_new && run->updates.count >= HF_UPDATES_MAX)) {
        char why[HF_MESSAGE_LEN_MAX];
        (void)snprintf(why, sizeof why,
                       "update %.*s wasn't found on the server. This is most likely a transient error which will be "
                       "resolved automatically by retries",
                       HF_STR_ARGS(id));
        return bad(core, plan, why);
    }
    if (saying->said == SAID_ACCEPT && is_new) {
        HF_PROBE(core, HF_PROBE_UPDATE_RESURRECTED);
    }
    saying->is_taken = true;
    plan->event_id += saying->said != SAID_REJECT;
    updates->order[updates->order_count++] = index;
    return true;
}

bool hf_check_protocol_message(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    const hf_pb_protocol_message_command_attributes *attrs = command->protocol_message_command_attributes;
    hf_update_plan *updates = sayings_of(core, plan);
    if (updates == NULL) {
        return false;
    }
    for (size_t i = 0; attrs != NULL && i < updates->count; i++) {
        if (!updates->sayings[i].is_taken && hf_str_equal(updates->sayings[i].message->id, attrs->message_id)) {
            return check_saying(core, run, plan, i);
        }
    }
    return bad(core, plan, "ProtocolMessageCommand referenced absent message ID");
}

bool hf_updates_check_rest(hf_core *core, const hf_run *run, hf_plan *plan)
{
    if (plan->request->messages.count == 0) {
        return true;
    }
    hf_update_plan *updates = sayings_of(core, plan);
    if (updates == NULL) {
        return false;
    }
    updates->command_count = updates->order_count;
    for (size_t i = 0; i < updates->count; i++) {
        if (updates->sayings[i].is_taken) {
            continue;
        }
        if (plan->closes && updates->sayings[i].said != SAID_REJECT) {
            return bad(core, plan, "a message comes behind the command that closes the run");
        }
        if (!check_saying(core, run, plan, i)) {
            return false;
        }
    }
    return true;
}

bool hf_updates_only_reject(const hf_plan *plan)
{
    for (size_t i = 0; plan->updates != NULL && i < plan->updates->count; i++) {
        if (plan->updates->sayings[i].said != SAID_REJECT) {
            return false;
        }
    }
    return true;
}

static void emit_accepted(hf_core *core, hf_run *run, const hf_saying *saying)
{
    hf_str id = saying->message->protocol_instance_id;
    hf_asked *asked = hf_asked_find(run, id);
    hf_pb_request *request = saying->acceptance->accepted_request;
    if (hf_run_update(run, id) != NULL && !saying->is_again) {
        request = NULL; /* the event that admitted it has the request */
    } else if (asked != NULL && asked->request.len > 0) {
        request = HF_ARENA_NEW(&core->scratch, hf_pb_request);
        hf_str bytes = hf_arena_copy(&core->scratch, hf_owned_str(&asked->request));
        if (request == NULL || core->scratch.status != HF_OK ||
            hf_pb_decode(&core->op, &hf_pb_request_type, bytes, &core->scratch, request) != HF_OK) {
            hf_core_break(core, HF_ERR_NOMEM, "out of memory");
            return;
        }
    }
    if (asked != NULL) {
        asked->state = ASKED_WRITTEN;
        hf_owned_free(&core->runs_memory, &asked->request);
    }
    hf_pb_workflow_execution_update_accepted_event_attributes body = {
        .protocol_instance_id = id,
        .accepted_request_message_id = saying->acceptance->accepted_request_message_id,
        .accepted_request_sequencing_event_id = saying->acceptance->accepted_request_sequencing_event_id,
        .accepted_request = request,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_UPDATE_ACCEPTED_EVENT_ATTRIBUTES,
        .workflow_execution_update_accepted_event_attributes = &body,
    };
    HF_PROBE(core, HF_PROBE_UPDATE_ACCEPTED);
    hf_event_emit(core, run, &event);
}

static void emit_completed(hf_core *core, hf_run *run, const hf_saying *saying)
{
    const hf_update *update = hf_run_update(run, saying->message->protocol_instance_id);
    hf_assert(core->status != HF_OK || (update != NULL && update->completed_id == 0)); /* it was checked */
    if (core->status != HF_OK) {
        return;
    }
    hf_pb_workflow_execution_update_completed_event_attributes body = {
        .meta = saying->response->meta,
        .outcome = saying->response->outcome,
        .accepted_event_id = update->accepted_id,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_UPDATE_COMPLETED_EVENT_ATTRIBUTES,
        .workflow_execution_update_completed_event_attributes = &body,
    };
    HF_PROBE(core, HF_PROBE_UPDATE_COMPLETED);
    hf_event_emit(core, run, &event);
}

static void act(hf_core *core, hf_run *run, const hf_saying *saying)
{
    if (saying->said == SAID_ACCEPT) {
        emit_accepted(core, run, saying);
    } else if (saying->said == SAID_RESPOND) {
        emit_completed(core, run, saying);
    }
}

void hf_act_protocol_message(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    const hf_update_plan *updates = plan->updates;
    hf_str id = command->protocol_message_command_attributes->message_id;
    for (size_t i = 0; i < updates->command_count; i++) {
        hf_saying *saying = &updates->sayings[updates->order[i]];
        if (saying->is_taken && hf_str_equal(saying->message->id, id)) {
            saying->is_taken = false; /* another command may name another message of the same id */
            act(core, run, saying);
            return;
        }
    }
}

void hf_updates_act_rest(hf_core *core, hf_run *run, const hf_plan *plan)
{
    const hf_update_plan *updates = plan->updates;
    for (size_t i = updates != NULL ? updates->command_count : 0; updates != NULL && i < updates->order_count; i++) {
        act(core, run, &updates->sayings[updates->order[i]]);
    }
}

static void tell_saying(hf_core *core, const hf_run *run, const hf_saying *saying)
{
    hf_asked *asked = hf_asked_find(run, saying->message->protocol_instance_id);
    if (asked == NULL || core->status != HF_OK) {
        return;
    }
    if (saying->said == SAID_RESPOND) {
        hf_asked_tell(core, run, asked, STAGE_COMPLETED, saying->response->outcome);
    } else if (saying->said == SAID_REJECT) {
        HF_PROBE(core, HF_PROBE_UPDATE_REJECTED);
        hf_pb_outcome outcome = {.value_case = HF_PB_OUTCOME_FAILURE, .failure = saying->rejection->failure};
        hf_asked_tell(core, run, asked, STAGE_COMPLETED, &outcome);
        hf_asked_free(core, asked);
    } else if (hf_run_is_open(run)) { /* else hf_updates_settle tells the end of it */
        hf_asked_tell(core, run, asked, STAGE_ACCEPTED, NULL);
    }
}

void hf_updates_tell(hf_core *core, hf_run *run, const hf_plan *plan)
{
    const hf_update_plan *updates = plan->updates;
    for (size_t i = updates != NULL ? updates->order_count : 0; i > 0; i--) { /* outcomes before acceptances */
        tell_saying(core, run, &updates->sayings[updates->order[i - 1]]);
    }
    hf_unwritten *unwritten = HF_SLOT(run)->unwritten;
    if (unwritten == NULL || !hf_run_is_open(run) || plan->request->force_create_new_workflow_task) {
        return;
    }
    HF_LIST_EACH(node, &unwritten->updates)
    {
        hf_asked *asked = HF_CONTAINER(node, hf_asked, link);
        const hf_update *written = asked->state == ASKED_EVENT ? hf_run_update(run, hf_owned_str(&asked->id)) : NULL;
        bool was_passed = written != NULL && hf_update_was_passed(run, written);
        if ((asked->state == ASKED_SENT || was_passed) && core->status == HF_OK) {
            HF_PROBE(core, HF_PROBE_UPDATE_UNPROCESSED);
            hf_pb_outcome outcome =
                hf_update_failure(core, "UnprocessedUpdate",
                                  "Workflow Update is rejected because it wasn't processed by worker. "
                                  "Probably, Workflow Update is not supported by the worker.");
            hf_asked_tell(core, run, asked, STAGE_COMPLETED, &outcome);
            hf_asked_free(core, asked);
        }
    }
    hf_unwritten_mark(core, unwritten);
}

void hf_updates_abort_sent(hf_core *core, hf_run *run)
{
    hf_unwritten *unwritten = HF_SLOT(run)->unwritten;
    if (unwritten == NULL) {
        return;
    }
    HF_LIST_EACH(node, &unwritten->updates)
    {
        hf_asked *asked = HF_CONTAINER(node, hf_asked, link);
        if (asked->state == ASKED_SENT && core->status == HF_OK) {
            hf_asked_refuse(core, asked, HF_ERR_NOT_READY,
                            "Unable to perform workflow execution update due to unexpected workflow task failure.");
            hf_asked_free(core, asked);
        }
    }
    hf_unwritten_mark(core, unwritten);
}
