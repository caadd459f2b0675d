/* Updates as a workflow sees them. A request comes as a message of the workflow task; in a replay it is in the
 * UpdateAccepted event that the step led to. A fiber asks the validator, accepts, calls the handler and answers:
 *
 *     a message --> the validator refuses --> rejected: a message, no event
 *         |
 *         +--> accepted: a message, a command and an event --> the handler returns --> completed: the same
 *
 * worker-Y1  The validator is asked in the step to which the request came, and never in a replay.
 *
 * Updates are accepted in the order in which they were delivered: the fibers of handlers begin in that order, and accept
 * before they wait for anything. */
#include "worker/wf.h"

#include "base/canary.h"
#include "service/codec.h"

#include "history/limits.h"
#include "history/payload.h"

#include <stdio.h>

#define UPDATE_TYPE "type.googleapis.com/temporal.api.update.v1."

/* ---- What goes out ----------------------------------------------------------------------------------------------- */

static hf_str joined(hf_arena *arena, const char *id, const char *end)
{
    size_t len = strlen(id) + strlen(end);
    char *text = hf_arena_take(arena, len + 1, 1);
    if (text == NULL) {
        return (hf_str){NULL, 0};
    }
    (void)snprintf(text, len + 1, "%s%s", id, end);
    return hf_str_of_len(text, len);
}

/* A message of an update; in the recorder's arena. NULL: no memory. */
static hf_pb_message *message_of(hf_wf *wf, const char *id, const char *end, hf_str type, const hf_pb_type *body_type,
                                 const void *body)
{
    hf_arena *arena = &wf->recorder.arena;
    hf_pb_message *message = HF_ARENA_NEW(arena, hf_pb_message);
    hf_pb_any *any = HF_ARENA_NEW(arena, hf_pb_any);
    hf_buf bytes;
    /* The codec does not see the bytes of a body with the answer. */
    if (hf_codec_encode(NULL, wf->worker->service->codec, body_type, body, arena, &body) != HF_OK) {
        return NULL;
    }
    hf_buf_init(&bytes, wf->worker->memory, HF_HISTORY_LEN_MAX);
    hf_pb_encode(body_type, body, &bytes);
    if (message != NULL && any != NULL && bytes.status == HF_OK) {
        any->type_url = type;
        any->value = hf_arena_copy(arena, hf_str_of_len(bytes.data, bytes.len));
        message->id = joined(arena, id, end);
        message->protocol_instance_id = hf_arena_copy(arena, hf_str_of(id));
        message->body = any;
    }
    bool is_good = bytes.status == HF_OK && arena->status == HF_OK;
    hf_buf_deinit(&bytes);
    return is_good ? message : NULL;
}

/* A command for a message, which is NULL in a replay: there only the record is needed. */
static bool record_message(hf_wf *wf, const char *id, hf_str what, hf_pb_message *message)
{
    hf_assert(id != NULL && what.len > 0); /* a replay finds the event by both */
    void *room = NULL;
    hf_command_record *record = hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_PROTOCOL_MESSAGE,
                                                HF_PB_COMMAND_PROTOCOL_MESSAGE_COMMAND_ATTRIBUTES,
                                                sizeof(hf_pb_protocol_message_command_attributes), &room);
    if (record == NULL) {
        return false;
    }
    record->id = hf_arena_copy(&wf->recorder.arena, hf_str_of(id));
    record->name = what;
    record->message = message;
    if (message != NULL) {
        ((hf_pb_protocol_message_command_attributes *)room)->message_id = message->id;
    }
    return wf->recorder.arena.status == HF_OK;
}

/* A message without a command: it leaves nothing in the history. */
static bool record_rejection(hf_wf *wf, hf_pb_message *message)
{
    hf_command_record *record = HF_ARENA_NEW(&wf->recorder.arena, hf_command_record);
    if (record == NULL || message == NULL) {
        return false;
    }
    hf_assert(wf->is_current); /* worker-Y1: a replay never comes here */
    record->is_withdrawn = true;
    record->message = message;
    hf_list_push_back(&wf->recorder.records, &record->node);
    return true;
}

static bool reject(hf_wf *wf, const hf_wf_update_request *from, const char *id, hf_pb_failure *failure)
{
    hf_assert(wf->is_current); /* worker-Y1 */
    hf_pb_rejection body = {
        .rejected_request_message_id = from->message_id,
        .rejected_request_sequencing_event_id = from->event_id,
        .rejected_request = from->request,
        .failure = failure,
    };
    return record_rejection(
        wf, message_of(wf, id, "/reject", HF_STR(UPDATE_TYPE "Rejection"), &hf_pb_rejection_type, &body));
}

static bool accept(hf_wf *wf, const hf_wf_update_request *from, const char *id)
{
    hf_pb_message *message = NULL;
    hf_assert((from->message_id.len > 0) == wf->is_current);
    if (from->message_id.len > 0) {
        hf_pb_acceptance body = {
            .accepted_request_message_id = from->message_id,
            .accepted_request_sequencing_event_id = from->event_id,
            .accepted_request = from->request,
        };
        message = message_of(wf, id, "/accept", HF_STR(UPDATE_TYPE "Acceptance"), &hf_pb_acceptance_type, &body);
        if (message == NULL) {
            return false;
        }
    }
    return record_message(wf, id, HF_STR("accepted"), message);
}

static bool respond(hf_wf *wf, const char *id, hf_payload out, hf_pb_failure *failure)
{
    hf_arena *arena = &wf->recorder.arena;
    hf_assert(!wf->has_closed); /* the closing command is the last one */
    hf_pb_meta meta = {.update_id = hf_str_of(id), .identity = wf->worker->identity};
    hf_pb_outcome outcome = {.value_case = HF_PB_OUTCOME_SUCCESS};
    if (failure != NULL) {
        outcome.value_case = HF_PB_OUTCOME_FAILURE;
        outcome.failure = failure;
    } else {
        hf_pb_payloads *result = hf_payload_encode(arena, out);
        outcome.success = result != NULL ? result : HF_ARENA_NEW(arena, hf_pb_payloads); /* no result is an outcome */
    }
    hf_pb_response body = {.meta = &meta, .outcome = &outcome};
    hf_pb_message *message =
        message_of(wf, id, "/complete", HF_STR(UPDATE_TYPE "Response"), &hf_pb_response_type, &body);
    return message != NULL && record_message(wf, id, HF_STR("completed"), message);
}

/* ---- On the handler's fiber -------------------------------------------------------------------------------------- */

static hf_status validate(const hf_wf_handling *handling)
{
    if (handling->validator == NULL || !handling->wf->is_current) {
        return HF_OK;
    }
    hf_crew_self_reads(true);
    hf_status status = handling->validator(handling->arg, handling->in);
    hf_crew_self_reads(false);
    return status;
}

static hf_pb_failure *failure_of(hf_wf *wf, hf_status status)
{
    return hf_failure_encode(&wf->recorder.arena, hf_error_as(status), status);
}

void hf_wf_run_update(hf_wf_handling *handling)
{
    hf_wf *wf = handling->wf;
    hf_assert(handling->kind == HF_WF_ON_UPDATE && handling->update_id != NULL && handling->reply != NULL);
    const hf_wf_update_request from =
        handling->request; /* its messages are there as long as the fiber has not waited */
    hf_status status = validate(handling);
    if (hf_crew_self_is_evicted()) { /* it did not return in time: its step has failed */
        return;
    }
    if (status != HF_OK) {
        wf->is_nomem |= !reject(wf, &from, handling->update_id, failure_of(wf, status));
        return;
    }
    if (!accept(wf, &from, handling->update_id)) {
        wf->is_nomem = true;
        return;
    }
    handling->is_counted = true; /* from here on a replay knows it, too */
    hf_payload out = hf_payload_none();
    hf_op op;
    hf_op_init(&op);
    status = handling->reply(handling->arg, handling->in, &out);
    if (hf_crew_self_is_evicted() || wf->has_closed) {
        hf_payload_free(&out); /* nobody is told any more */
        return;
    }
    if (status == HF_OK && hf_payload_check_result(&op, "the result of the update", out, handling->in) != HF_OK) {
        status = hf_failure_raise_op(&op);
    }
    wf->is_nomem |= !respond(wf, handling->update_id, out, status != HF_OK ? failure_of(wf, status) : NULL);
    hf_payload_free(&out);
}

/* ---- What comes in ----------------------------------------------------------------------------------------------- */

/* Starts the handler of an update, or rejects it: no handler has its name. */
static hf_status deliver(hf_op *op, hf_wf *wf, const hf_wf_update_request *from, hf_str id)
{
    const hf_pb_input *input = from->request != NULL ? from->request->input : NULL;
    hf_str name = input != NULL ? input->name : HF_STR("");
    const hf_wf_handler *handler = hf_wf_handler_of(wf, HF_WF_ON_UPDATE, name);
    hf_payload in = hf_payload_none();
    if (handler == NULL && !wf->is_current) {
        return hf_fail(op, HF_ERR_CONFLICT,
                       "not deterministic: the history has an update '%.*s', and the workflow has no handler for it",
                       HF_STR_ARGS(name));
    }
    if (handler == NULL) {
        char text[HF_MESSAGE_LEN_MAX];
        hf_arena *arena = &wf->recorder.arena;
        hf_wf_tell_no_handler(wf, HF_WF_ON_UPDATE, name, text);
        const char *text_id = hf_arena_copy(arena, id).data;
        hf_pb_failure *failure =
            hf_failure_application(arena, HF_STR("NotFound"), hf_arena_copy(arena, hf_str_of(text)), true);
        return text_id != NULL && reject(wf, from, text_id, failure)
                   ? HF_OK
                   : hf_fail(op, HF_ERR_NOMEM, "no memory for the rejection of an update");
    }
    if (hf_payload_decode(input != NULL ? input->args : NULL, &wf->payloads, &in) != HF_OK) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for an update");
    }
    hf_status status = hf_wf_handle(op, wf, HF_WF_ON_UPDATE, handler, name, id, in);
    if (status != HF_OK) {
        hf_payload_free(&in);
        return status;
    }
    hf_wf_handling *handling = HF_CONTAINER(hf_list_last(&wf->handlings), hf_wf_handling, node);
    handling->request = *from;
    if (!hf_wf_header_keep(wf, input != NULL ? input->header : NULL, &handling->header)) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for an update"); /* it goes with the run */
    }
    return HF_OK;
}

/* NULL = the event does not accept an update. */
static const hf_pb_workflow_execution_update_accepted_event_attributes *accepted_by(const hf_pb_history_event *event)
{
    return event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_UPDATE_ACCEPTED_EVENT_ATTRIBUTES
               ? event->workflow_execution_update_accepted_event_attributes
               : NULL;
}

static bool is_accepted(const hf_wf *wf, hf_str id)
{
    for (size_t i = 0; i < wf->own_count; i++) {
        const hf_pb_workflow_execution_update_accepted_event_attributes *a = accepted_by(wf->own[i]);
        if (a != NULL && hf_str_equal(a->protocol_instance_id, id)) {
            return true;
        }
    }
    return false;
}

hf_status hf_wf_admitted(hf_op *op, hf_wf *wf, const hf_pb_history_event *event)
{
    hf_pb_request *request = event->workflow_execution_update_admitted_event_attributes->request;
    if (request == NULL || request->meta == NULL || request->meta->update_id.len == 0) {
        return hf_fail(op, HF_ERR_INVALID, "event %lld admits an update without an id", (long long)event->event_id);
    }
    hf_str id = request->meta->update_id;
    if (!wf->is_current && !is_accepted(wf, id)) {
        return HF_OK; /* the step rejected it */
    }
    hf_wf_update_request from = {.request = request, .event_id = event->event_id};
    if (wf->is_current) {
        hf_str text = hf_arena_copy(&wf->recorder.arena, id);
        from.message_id = text.len > 0 ? joined(&wf->recorder.arena, text.data, "/request") : text;
        if (from.message_id.len == 0) {
            return hf_fail(op, HF_ERR_NOMEM, "no memory for an update");
        }
    }
    return deliver(op, wf, &from, id);
}

/* The k-th update that came to the step at hand. False: there is none. */
static hf_status request_at(hf_op *op, hf_wf *wf, size_t k, hf_wf_update_request *ret_request, hf_str *ret_id,
                            bool *ret_found)
{
    *ret_found = false;
    *ret_request = (hf_wf_update_request){.event_id = 0};
    if (wf->is_current) {
        if (wf->messages == NULL || k >= wf->messages->count) {
            return HF_OK;
        }
        const hf_pb_message *message = &wf->messages->items[k];
        hf_pb_request *request = HF_ARENA_NEW(&wf->recorder.arena, hf_pb_request);
        if (request == NULL) {
            return hf_fail(op, HF_ERR_NOMEM, "no memory for an update");
        }
        if (message->body == NULL || !hf_str_equal(message->body->type_url, HF_STR(UPDATE_TYPE "Request"))) {
            return hf_fail(op, HF_ERR_UNSUPPORTED, "a message of the workflow task is not the request of an update");
        }
        if (message->id.len == 0 || message->protocol_instance_id.len == 0) {
            return hf_fail(op, HF_ERR_INVALID, "the request of an update has no id");
        }
        HF_TRY(hf_pb_decode(op, &hf_pb_request_type, message->body->value, &wf->recorder.arena, request));
        HF_TRY(
            hf_codec_decode(op, wf->worker->service->codec, &hf_pb_request_type, request, &wf->recorder.arena, false));
        *ret_request = (hf_wf_update_request){
            .message_id = message->id,
            .request = request,
            .event_id = message->sequencing_id_case == HF_PB_MESSAGE_EVENT_ID ? message->event_id : INT64_MAX - 1,
        };
        *ret_id = message->protocol_instance_id;
        *ret_found = true;
        return HF_OK;
    }
    for (size_t i = 0; i < wf->own_count; i++) {
        const hf_pb_workflow_execution_update_accepted_event_attributes *a = accepted_by(wf->own[i]);
        if (a != NULL && a->accepted_request != NULL && k-- == 0) { /* else hf_wf_admitted has it */
            *ret_request = (hf_wf_update_request){.request = a->accepted_request,
                                                  .event_id = a->accepted_request_sequencing_event_id};
            *ret_id = a->protocol_instance_id;
            *ret_found = true;
            return HF_OK;
        }
    }
    return HF_OK;
}

hf_status hf_wf_deliver_updates(hf_op *op, hf_wf *wf, int64_t before, size_t *next)
{
    hf_wf_update_request request;
    hf_str id = {NULL, 0};
    bool is_found = true;
    while (is_found) {
        HF_TRY(request_at(op, wf, *next, &request, &id, &is_found));
        if (is_found && request.event_id >= before && !(HF_CANARY(HF_BUG_UPDATE_OUT_OF_ORDER) && wf->is_current)) {
            return HF_OK;
        }
        if (is_found) {
            (*next)++;
            HF_TRY(deliver(op, wf, &request, id));
        }
    }
    return HF_OK;
}
