#include "support/engine_ask.h"

#include "history/payload.h"

#include <stdio.h>

static hf_str copied(hf_arena *arena, const hf_words *w, const char *key, const char *otherwise)
{
    return hf_arena_copy(arena, hf_words_str(w, key, otherwise));
}

static hf_pb_payloads *text_of(hf_arena *arena, hf_str text)
{
    return hf_payloads_of(arena, hf_payload_json(arena, hf_arena_copy(arena, text)));
}

/* The same as a JSON text, as an SDK gives it. */
static hf_pb_payloads *quoted(hf_arena *arena, hf_str text)
{
    char json[200];
    (void)snprintf(json, sizeof json, "\"%.*s\"", HF_STR_ARGS(text));
    return text_of(arena, hf_str_of(json));
}

static hf_str unquoted(hf_str json)
{
    bool is_quoted = json.len >= 2 && json.data[0] == '"';
    return is_quoted ? hf_str_of_len(json.data + 1, json.len - 2) : json;
}

static hf_pb_workflow_execution *execution_of(hf_arena *arena, const hf_words *w)
{
    hf_pb_workflow_execution *execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    execution->workflow_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
    execution->run_id = copied(arena, w, "run_id", "");
    return execution;
}

/* ---- Calls of clients -------------------------------------------------------------------------------------------- */

static void query(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    hf_pb_query_workflow_request *request = HF_RIG_REQUEST(slot, query_workflow);
    hf_arena *arena = &slot->request;
    request->namespace = copied(arena, w, "ns", HF_RIG_NS);
    request->execution = execution_of(arena, w);
    request->query = HF_ARENA_NEW(arena, hf_pb_workflow_query);
    request->query->query_type = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 2)));
    request->query->query_args = hf_words_input(arena, w);
    request->query_reject_condition = hf_words_number(w, "reject", 0);
    if (hf_words_option(w, "timeout") != NULL) {
        slot->call.timeout.ns = hf_rig_span(hf_words_option(w, "timeout"));
    }
    hf_rig_send(rig, slot, HF_METHOD_QUERY_WORKFLOW, request);
}

static hf_pb_wait_policy *stage_of(hf_arena *arena, const hf_words *w)
{
    hf_pb_wait_policy *policy = HF_ARENA_NEW(arena, hf_pb_wait_policy);
    hf_str stage = hf_words_str(w, "wait", "completed");
    policy->lifecycle_stage =
        hf_str_equal(stage, HF_STR("admitted"))   ? HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED
        : hf_str_equal(stage, HF_STR("accepted")) ? HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED
        : hf_str_equal(stage, HF_STR("nothing"))  ? HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_UNSPECIFIED
                                                  : HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED;
    return policy;
}

static void fill_update(hf_arena *arena, const hf_words *w, hf_pb_update_workflow_execution_request *request)
{
    request->namespace = copied(arena, w, "ns", HF_RIG_NS);
    request->workflow_execution = execution_of(arena, w);
    request->first_execution_run_id = copied(arena, w, "first", "");
    request->wait_policy = stage_of(arena, w);
    request->request = HF_ARENA_NEW(arena, hf_pb_request);
    request->request->meta = HF_ARENA_NEW(arena, hf_pb_meta);
    request->request->meta->update_id = copied(arena, w, "id", hf_words_place(w, 2));
    request->request->meta->identity = copied(arena, w, "identity", "");
    request->request->input = HF_ARENA_NEW(arena, hf_pb_input);
    request->request->input->name = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 2)));
    if (hf_words_option(w, "uinput") != NULL) {
        char *data = hf_arena_zero(arena, (size_t)hf_words_number(w, "uinput", 0), 1);
        hf_pb_payload payload = {.data = hf_str_of_len(data, (size_t)hf_words_number(w, "uinput", 0))};
        request->request->input->args = hf_payloads_of(arena, payload);
    }
}

static void update(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    hf_pb_update_workflow_execution_request *request = HF_RIG_REQUEST(slot, update_workflow_execution);
    fill_update(&slot->request, w, request);
    hf_rig_send(rig, slot, HF_METHOD_UPDATE_WORKFLOW_EXECUTION, request);
}

static void poll_update(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    hf_pb_poll_workflow_execution_update_request *request = HF_RIG_REQUEST(slot, poll_workflow_execution_update);
    hf_arena *arena = &slot->request;
    request->namespace = copied(arena, w, "ns", HF_RIG_NS);
    request->wait_policy = stage_of(arena, w);
    request->update_ref = HF_ARENA_NEW(arena, hf_pb_update_ref);
    request->update_ref->workflow_execution = execution_of(arena, w);
    request->update_ref->update_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 2)));
    hf_rig_send(rig, slot, HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE, request);
}

static void update_with_start(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    hf_pb_execute_multi_operation_request *request = HF_RIG_REQUEST(slot, execute_multi_operation);
    hf_arena *arena = &slot->request;
    request->namespace = copied(arena, w, "ns", HF_RIG_NS);
    request->operations.items = HF_ARENA_ARRAY(arena, hf_pb_execute_multi_operation_request_operation, 2);
    request->operations.count = hf_words_has(w, "half") ? 1 : 2;
    request->operations.items[0].operation_case = HF_PB_EXECUTE_MULTI_OPERATION_REQUEST_OPERATION_START_WORKFLOW;
    request->operations.items[0].start_workflow = HF_ARENA_NEW(arena, hf_pb_start_workflow_execution_request);
    hf_words_start(arena, w, request->operations.items[0].start_workflow);
    request->operations.items[0].start_workflow->request_eager_execution = hf_words_has(w, "eager");
    request->operations.items[1].operation_case = HF_PB_EXECUTE_MULTI_OPERATION_REQUEST_OPERATION_UPDATE_WORKFLOW;
    request->operations.items[1].update_workflow = HF_ARENA_NEW(arena, hf_pb_update_workflow_execution_request);
    fill_update(arena, w, request->operations.items[1].update_workflow);
    hf_rig_send(rig, slot, HF_METHOD_EXECUTE_MULTI_OPERATION, request);
}

bool hf_rig_is_ask(hf_method method)
{
    return method == HF_METHOD_QUERY_WORKFLOW || method == HF_METHOD_UPDATE_WORKFLOW_EXECUTION ||
           method == HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE || method == HF_METHOD_EXECUTE_MULTI_OPERATION ||
           method == HF_METHOD_READ_STREAM || method == HF_METHOD_READ_CHANGES || method == HF_METHOD_LIST_TASK_QUEUES;
}

hf_rig_call *hf_rig_ask(hf_rig *rig, const hf_words *w)
{
    const char *verb = w->items[0];
    const char *as = hf_words_option(w, "as");
    if (strcmp(verb, "query") == 0) {
        hf_rig_call *slot = hf_rig_slot(rig, as != NULL ? as : "q");
        query(rig, slot, w);
        return slot;
    }
    if (strcmp(verb, "update") != 0 && strcmp(verb, "updpoll") != 0 && strcmp(verb, "updstart") != 0) {
        return NULL;
    }
    hf_rig_call *slot = hf_rig_slot(rig, as != NULL ? as : "u");
    if (strcmp(verb, "update") == 0) {
        update(rig, slot, w);
    } else if (strcmp(verb, "updpoll") == 0) {
        poll_update(rig, slot, w);
    } else {
        update_with_start(rig, slot, w);
    }
    return slot;
}

static void say_update(int32_t stage, const hf_pb_outcome *outcome, char *out, size_t len_max)
{
    static const char *const STAGES[] = {"", "admitted", "accepted", "completed"};
    hf_str text = {0};
    if (outcome != NULL && outcome->value_case == HF_PB_OUTCOME_SUCCESS) {
        text = unquoted(outcome->success->payloads.items[0].data);
    } else if (outcome != NULL && outcome->value_case == HF_PB_OUTCOME_FAILURE) {
        text = hf_failure_type(outcome->failure);
    }
    (void)snprintf(out, len_max, "%s%s%.*s", STAGES[stage], text.len > 0 ? ":" : "", HF_STR_ARGS(text));
}

void hf_rig_says(const hf_rig_call *slot, char *out, size_t len_max)
{
    out[0] = '\0';
    if (!slot->done || slot->call.status != HF_OK) {
        return;
    }
    if (slot->call.method == HF_METHOD_QUERY_WORKFLOW) {
        const hf_pb_query_workflow_response *response = slot->call.response;
        if (response->query_rejected != NULL) {
            (void)snprintf(out, len_max, "rejected");
        } else if (response->query_result != NULL && response->query_result->payloads.count > 0) {
            (void)snprintf(out, len_max, "%.*s", HF_STR_ARGS(unquoted(response->query_result->payloads.items[0].data)));
        }
    } else if (slot->call.method == HF_METHOD_UPDATE_WORKFLOW_EXECUTION) {
        const hf_pb_update_workflow_execution_response *response = slot->call.response;
        say_update(response->stage, response->outcome, out, len_max);
    } else if (slot->call.method == HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE) {
        const hf_pb_poll_workflow_execution_update_response *response = slot->call.response;
        say_update(response->stage, response->outcome, out, len_max);
    } else if (slot->call.method == HF_METHOD_EXECUTE_MULTI_OPERATION) {
        const hf_pb_execute_multi_operation_response *response = slot->call.response;
        bool is_new = response->responses.items[0].start_workflow->started;
        int len = snprintf(out, len_max, "%s", is_new ? "started/" : "used/");
        const hf_pb_update_workflow_execution_response *it = response->responses.items[1].update_workflow;
        say_update(it->stage, it->outcome, out + len, len_max - (size_t)len);
    } else if (slot->call.method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
        const hf_pb_respond_workflow_task_completed_response *response = slot->call.response;
        (void)snprintf(out, len_max, "reset%lld", (long long)response->reset_history_event_id);
    } else if (slot->call.method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE) {
        const hf_pb_poll_workflow_task_queue_response *response = slot->call.response;
        (void)snprintf(out, len_max, "%s%.*s/%zu/%zu", response->history.len > 0 ? "" : "-",
                       HF_STR_ARGS(response->query != NULL ? response->query->query_type : HF_STR("")),
                       response->queries.count, response->messages.count);
    }
}

/* ---- Calls of workers -------------------------------------------------------------------------------------------- */

void hf_rig_answer_query(hf_rig *rig, hf_rig_call *slot, const hf_words *w, hf_str token)
{
    char bytes[256]; /* the token may lie in the memory of the slot's last request */
    assert_true(token.len <= sizeof bytes);
    if (token.len > 0) {
        memcpy(bytes, token.data, token.len);
    }
    hf_pb_respond_query_task_completed_request *request = HF_RIG_REQUEST(slot, respond_query_task_completed);
    hf_arena *arena = &slot->request;
    request->namespace = copied(arena, w, "ns", HF_RIG_NS);
    request->task_token = hf_arena_copy(arena, hf_str_of_len(bytes, token.len));
    if (hf_words_option(w, "error") != NULL) {
        request->completed_type = HF_QUERY_RESULT_TYPE_FAILED;
        request->error_message = copied(arena, w, "error", "");
        request->failure = hf_failure_application(arena, HF_STR("Oops"), request->error_message, false);
    } else {
        request->completed_type = HF_QUERY_RESULT_TYPE_ANSWERED;
        request->query_result = hf_words_option(w, "input") != NULL ? hf_words_input(arena, w)
                                                                    : quoted(arena, hf_words_str(w, "result", "fine"));
    }
    hf_rig_send(rig, slot, HF_METHOD_RESPOND_QUERY_TASK_COMPLETED, request);
}

static void answer_queries(hf_arena *arena, const hf_words *w, const hf_pb_poll_workflow_task_queue_response *task,
                           hf_pb_respond_workflow_task_completed_request *request)
{
    bool fails = hf_words_option(w, "answerfail") != NULL;
    if (!fails && hf_words_option(w, "answer") == NULL) {
        return;
    }
    request->query_results.items = HF_ARENA_ARRAY(
        arena, hf_pb_respond_workflow_task_completed_request_query_results_entry, task->queries.count + 1);
    for (size_t i = 0; i < task->queries.count; i++) {
        hf_pb_workflow_query_result *result = HF_ARENA_NEW(arena, hf_pb_workflow_query_result);
        request->query_results.items[i].key = hf_arena_copy(arena, task->queries.items[i].key);
        request->query_results.items[i].value = result;
        request->query_results.count++;
        if (fails) {
            result->result_type = HF_QUERY_RESULT_TYPE_FAILED;
            result->error_message = copied(arena, w, "answerfail", "");
            result->failure = hf_failure_application(arena, HF_STR("Oops"), result->error_message, false);
        } else {
            result->result_type = HF_QUERY_RESULT_TYPE_ANSWERED;
            result->answer = quoted(arena, hf_words_str(w, "answer", ""));
        }
    }
}

/* "accept U", "respond U fail", "reject U": a message, and its command unless it has none. */
static bool say(hf_arena *arena, const char *text, const hf_pb_poll_workflow_task_queue_response *task,
                hf_pb_message_list *messages, char *ret_command, size_t len_max)
{
    char copy[200];
    hf_words w;
    (void)snprintf(copy, sizeof copy, "%s", text);
    hf_words_cut(copy, &w);
    const char *verb = w.count > 1 ? w.items[0] : "";
    bool accepts = strcmp(verb, "accept") == 0;
    bool responds = strcmp(verb, "respond") == 0;
    if (!accepts && !responds && strcmp(verb, "reject") != 0) {
        return false;
    }
    hf_str id = hf_arena_copy(arena, hf_str_of(w.items[1]));
    char name[120];
    (void)snprintf(name, sizeof name, "%s/request", w.items[1]);
    hf_str asked_id = hf_arena_copy(arena, hf_str_of(name));
    hf_pb_request *asked = NULL;
    int64_t event_id = hf_words_number(&w, "at", 0); /* of an update that an event admitted */
    hf_op op;
    hf_op_init(&op);
    for (size_t i = 0; i < task->messages.count; i++) {
        if (hf_str_equal(task->messages.items[i].protocol_instance_id, id)) {
            asked = HF_ARENA_NEW(arena, hf_pb_request);
            event_id = task->messages.items[i].event_id;
            assert_int_equal(hf_pb_decode(&op, &hf_pb_request_type,
                                          hf_arena_copy(arena, task->messages.items[i].body->value), arena, asked),
                             HF_OK);
        }
    }
    hf_pb_acceptance acceptance = {asked_id, event_id, asked, {0}};
    hf_pb_rejection rejection = {
        asked_id, event_id, asked, hf_failure_application(arena, HF_STR("Refused"), HF_STR("no luck"), false), {0}};
    hf_pb_meta meta = {.update_id = id};
    hf_pb_outcome outcome = {.value_case = HF_PB_OUTCOME_SUCCESS, .success = quoted(arena, HF_STR("fine"))};
    if (hf_words_has(&w, "fail")) {
        outcome = (hf_pb_outcome){.value_case = HF_PB_OUTCOME_FAILURE,
                                  .failure = hf_failure_application(arena, HF_STR("Oops"), HF_STR("no luck"), false)};
    }
    hf_pb_response response = {.meta = &meta, .outcome = &outcome};
    hf_buf bytes;
    hf_buf_init(&bytes, hf_rig_heap, SIZE_MAX / 4);
    hf_pb_encode(accepts    ? &hf_pb_acceptance_type
                 : responds ? &hf_pb_response_type
                            : &hf_pb_rejection_type,
                 accepts    ? (const void *)&acceptance
                 : responds ? (const void *)&response
                            : (const void *)&rejection,
                 &bytes);
    hf_pb_message *message = &messages->items[messages->count++];
    (void)snprintf(name, sizeof name, "%s/%s", w.items[1], verb);
    message->id = hf_arena_copy(arena, hf_str_of(name));
    message->protocol_instance_id = id;
    message->body = HF_ARENA_NEW(arena, hf_pb_any);
    message->body->type_url = accepts    ? HF_STR("type.googleapis.com/temporal.api.update.v1.Acceptance")
                              : responds ? HF_STR("type.googleapis.com/temporal.api.update.v1.Response")
                                         : HF_STR("type.googleapis.com/temporal.api.update.v1.Rejection");
    message->body->value = hf_arena_copy(arena, hf_str_of_len(bytes.data, bytes.len));
    hf_buf_deinit(&bytes);
    ret_command[0] = '\0';
    if ((accepts || responds) && !hf_words_has(&w, "silent")) {
        (void)snprintf(ret_command, len_max, "protocol %s", name);
    }
    return true;
}

void hf_rig_complete_with(hf_rig_call *slot, const hf_words *w, const hf_pb_poll_workflow_task_queue_response *task,
                          hf_pb_respond_workflow_task_completed_request *request, char *commands, size_t len_max)
{
    hf_arena *arena = &slot->request;
    answer_queries(arena, w, task, request);
    if (hf_words_has(w, "discard")) {
        request->capabilities = HF_ARENA_NEW(arena, hf_pb_respond_workflow_task_completed_request_capabilities);
        request->capabilities->discard_speculative_workflow_task_with_events = true;
    }
    request->messages.items = HF_ARENA_ARRAY(arena, hf_pb_message, 64);
    char out[1200];
    size_t len = 0;
    out[0] = '\0';
    for (const char *rest = commands; *rest != '\0';) {
        char one[200];
        char command[200];
        size_t piece = strcspn(rest, ",");
        (void)snprintf(one, sizeof one, "%.*s", (int)piece, rest);
        if (!say(arena, one, task, &request->messages, command, sizeof command)) {
            (void)snprintf(command, sizeof command, "%s", one);
        }
        len += (size_t)snprintf(out + len, sizeof out - len, "%s%s", len > 0 ? "," : "", command);
        rest += piece + (rest[piece] == ',' ? 1 : 0);
    }
    assert_true(len < len_max);
    memcpy(commands, out, len + 1);
}
