/* What comes back: heads, bytes and trailers of a stream, and what they mean for its call. */
#include "remote/remote_private.h"

#include "service/grpc_code.h"
#include "service/grpc_path.h"
#include "wire/base64.h"
#include "wire/grpc.h"
#include "wire/gzip.h"

#include <stdio.h>

static hf_attempt *attempt_of(hf_h2_stream *h2)
{
    return (hf_attempt *)(void *)h2;
}

/* ---- Collecting -------------------------------------------------------------------------------------------------------- */

/* A small number; -1 = it is not one. */
static int number_of(hf_str text)
{
    int number = 0;
    if (text.len == 0 || text.len > 3) {
        return -1;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return -1;
        }
        number = number * 10 + (text.data[i] - '0');
    }
    return number;
}

static void on_field(void *state, hf_h2_stream *h2, hf_str name, hf_str value)
{
    hf_attempt *attempt = attempt_of(h2);
    (void)state;
    if (hf_str_equal(name, HF_STR("grpc-status"))) {
        int code = number_of(value);
        attempt->code = code >= 0 ? code : HF_GRPC_UNKNOWN;
    } else if (hf_str_equal(name, HF_STR(":status"))) {
        attempt->http = number_of(value);
    } else if (hf_str_equal(name, HF_STR("grpc-message"))) {
        attempt->message.len = 0;
        hf_buf_put(&attempt->message, value.data, value.len);
    } else if (hf_str_equal(name, HF_STR("grpc-status-details-bin"))) {
        attempt->details.len = 0;
        hf_buf_put(&attempt->details, value.data, value.len);
    } else if (hf_str_equal(name, HF_STR("grpc-encoding"))) {
        attempt->is_gzip = hf_str_equal(value, HF_STR("gzip"));
    }
}

static void on_head(void *state, hf_h2_stream *h2)
{
    hf_line *line = state;
    hf_remote *remote = line->remote;
    (void)h2;
    if (!line->has_answered) {
        line->has_answered = true;
        remote->failures = 0;
        remote->has_been = true;
        remote->why[0] = '\0';
        if (remote->has_told) {
            remote->has_told = false;
            hf_remote_report(remote, HF_LOG_INFO, "server_reached", "it answers");
        }
    }
}

static void on_data(void *state, hf_h2_stream *h2, hf_str bytes)
{
    hf_line *line = state;
    hf_attempt *attempt = attempt_of(h2);
    if (attempt->ask == NULL || attempt->is_too_big) {
        return;
    }
    size_t before = attempt->in.len;
    hf_buf_put(&attempt->in, bytes.data, bytes.len);
    hf_assert(attempt->line == line && attempt->in.len >= before);
    line->in_len += attempt->in.len - before;
    if (hf_buf_status(&attempt->in) != HF_OK || line->in_len > HF_REMOTE_IN_LEN_MAX) {
        attempt->is_too_big = true;
        hf_h2_reset(line->h2, h2, HF_H2_CANCEL);
    }
}

static void on_end(void *state, hf_h2_stream *h2)
{
    (void)state;
    (void)h2;
}

/* The stream has ended, and the ask has what it needs of it. */
static void part(hf_attempt *attempt, hf_remote_ask *ask)
{
    hf_assert(ask->attempt == attempt && attempt->ask == ask); /* remote-R4 */
    attempt->ask = NULL;
    ask->attempt = NULL;
    hf_attempt_free(attempt);
}

/* ---- Failures ---------------------------------------------------------------------------------------------------------- */

/* What a proxy means that answers in place of the server. */
static hf_grpc_code code_of_http(int http)
{
    switch (http) {
    case 400:
        return HF_GRPC_INTERNAL;
    case 401:
        return HF_GRPC_UNAUTHENTICATED;
    case 403:
        return HF_GRPC_PERMISSION_DENIED;
    case 404:
        return HF_GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return HF_GRPC_UNAVAILABLE;
    default:
        return HF_GRPC_UNKNOWN;
    }
}

/* The message of errordetails.v1 that the server sent along, in the call's arena. */
static void take_detail(hf_attempt *attempt, hf_call *call)
{
    static const hf_pb_type *const TYPES[] = {
        &hf_pb_not_found_failure_type,
        &hf_pb_workflow_execution_already_started_failure_type,
        &hf_pb_namespace_not_found_failure_type,
        &hf_pb_query_failed_failure_type,
        &hf_pb_permission_denied_failure_type,
        &hf_pb_resource_exhausted_failure_type,
        &hf_pb_workflow_not_ready_failure_type,
        &hf_pb_multi_operation_execution_failure_type,
        &hf_pb_namespace_already_exists_failure_type,
    };
    hf_op op;
    hf_op_init(&op);
    hf_buf bytes;
    hf_pb_status status = {0};
    hf_buf_init(&bytes, attempt->line->remote->memory, SIZE_MAX / 2);
    bool is_fine = hf_base64_parse(hf_str_of_len(attempt->details.data, attempt->details.len), &bytes);
    hf_str copy = is_fine ? hf_arena_copy(call->arena, hf_str_of_len(bytes.data, bytes.len)) : (hf_str){0};
    hf_buf_deinit(&bytes);
    if (!is_fine || copy.len == 0 || hf_pb_decode(&op, &hf_pb_status_type, copy, call->arena, &status) != HF_OK ||
        status.details.count == 0) {
        return;
    }
    const hf_pb_any *any = &status.details.items[0];
    for (size_t i = 0; i < HF_COUNT_OF(TYPES); i++) {
        hf_str name = hf_str_of(TYPES[i]->name);
        if (any->type_url.len <= name.len ||
            memcmp(any->type_url.data + any->type_url.len - name.len, name.data, name.len) != 0) {
            continue;
        }
        void *detail = hf_arena_zero(call->arena, TYPES[i]->size, 16);
        if (detail != NULL && hf_pb_decode(&op, TYPES[i], any->value, call->arena, detail) == HF_OK) {
            call->detail_type = TYPES[i];
            call->detail = detail;
        }
        if (TYPES[i] == &hf_pb_workflow_execution_already_started_failure_type && call->detail == detail) {
            call->existing_run_id = ((const hf_pb_workflow_execution_already_started_failure *)detail)->run_id;
        }
    }
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The statuses that share a code are told apart where a program acts differently. */
static hf_status status_of(const hf_attempt *attempt, int code, const char *text)
{
    (void)attempt;
    if (code == HF_GRPC_RESOURCE_EXHAUSTED && begins(text, "grpc: received message larger than max")) {
        return HF_ERR_TOO_BIG; /* it does not pass */
    }
    return hf_status_of_grpc(code);
}

/* Whether the same call may succeed later, by its code alone; `*ret_first_ms`: after what pause. */
static bool is_for_now(const hf_remote_ask *ask, const hf_call *call, int code, int *ret_first_ms)
{
    *ret_first_ms = code == HF_GRPC_RESOURCE_EXHAUSTED ? HF_REMOTE_BUSY_MS : HF_REMOTE_PAUSE_FIRST_MS;
    switch (code) {
    case HF_GRPC_RESOURCE_EXHAUSTED:
        return call->status != HF_ERR_TOO_BIG;
    case HF_GRPC_UNAVAILABLE:
        return true;
    case HF_GRPC_DATA_LOSS:
    case HF_GRPC_INTERNAL:
    case HF_GRPC_UNKNOWN:
    case HF_GRPC_ABORTED:
    case HF_GRPC_OUT_OF_RANGE:
        return call->detail_type == NULL; /* else it is an answer */
    case HF_GRPC_CANCELLED:
    case HF_GRPC_DEADLINE_EXCEEDED:
        return ask->manner.patience_s == 0; /* a poll, whose time was over */
    default:
        return false;
    }
}

static void set_words(hf_call *call, int code, const char *text)
{
    if (code == HF_GRPC_UNIMPLEMENTED && strcmp(hf_method_grpc_service(call->method), HF_GRPC_HOLDFAST_SERVICE) == 0) {
        (void)snprintf(call->message, sizeof call->message,
                       "%s is for Holdfast servers, and this is not one that has it: %.200s",
                       hf_method_info_of(call->method)->name, text);
    } else {
        (void)snprintf(call->message, sizeof call->message, "%s", text);
    }
}

static void fail_with(hf_attempt *attempt, hf_remote_ask *ask, int code, const char *text)
{
    hf_remote *remote = ask->remote;
    hf_call *call = ask->call;
    int first_ms = 0;
    hf_assert(code != HF_GRPC_OK && attempt->ask == ask);
    hf_call_set_failure(call, status_of(attempt, code, text), "");
    call->detail_type = NULL;
    call->detail = NULL;
    call->existing_run_id = (hf_str){0};
    set_words(call, code, text);
    if (attempt->details.len > 0) {
        take_detail(attempt, call);
    }
    call->task_failed_cause = strcmp(text, "UnhandledCommand") == 0 ? HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND
                                                                    : HF_WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED;
    bool is_gzip = code == HF_GRPC_UNIMPLEMENTED && !remote->is_plain &&
                   (strstr(text, "ecompress") != NULL || strstr(text, "grpc-encoding") != NULL);
    part(attempt, ask);
    if (is_gzip) { /* it has not looked at the request: remote-R2 */
        remote->is_plain = true;
        ask->manner.repeat = HF_REPEAT_ALWAYS;
        hf_ask_refused(ask, 1);
    } else if (is_for_now(ask, call, code, &first_ms)) {
        hf_ask_refused(ask, first_ms);
    } else {
        hf_ask_finish(ask);
    }
}

/* ---- Answers ------------------------------------------------------------------------------------------------------------- */

/* The bytes of the one message, inflated, in the call's arena. */
static hf_status open_message(hf_op *op, hf_attempt *attempt, hf_arena *arena, hf_str *ret_bytes)
{
    hf_grpc_frame frame;
    hf_str bytes = hf_str_of_len(attempt->in.data, attempt->in.len);
    hf_status status = hf_grpc_take(op, bytes, HF_REMOTE_ANSWER_LEN_MAX, &frame);
    if (status == HF_ERR_AGAIN || (status == HF_OK && frame.rest.len > 0)) {
        return hf_fail(op, HF_ERR_INVALID, "the answer is not one message");
    }
    HF_TRY(status);
    if (!frame.is_compressed) {
        *ret_bytes = hf_arena_copy(arena, frame.message);
    } else if (!attempt->is_gzip) {
        return hf_fail(op, HF_ERR_INVALID, "the answer is compressed in a way that was not asked for");
    } else {
        hf_buf plain;
        hf_buf_init(&plain, attempt->line->remote->memory, SIZE_MAX / 2);
        status = hf_gunzip(op, frame.message, HF_REMOTE_ANSWER_LEN_MAX, &plain);
        if (status == HF_OK) {
            *ret_bytes = hf_arena_copy(arena, hf_str_of_len(plain.data, plain.len));
        }
        hf_buf_deinit(&plain);
        HF_TRY(status);
    }
    return arena->status == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for an answer");
}

static hf_status take_message(hf_op *op, hf_attempt *attempt, hf_call *call)
{
    const hf_method_info *info = hf_method_info_of(call->method);
    hf_str bytes = {0};
    HF_TRY(open_message(op, attempt, call->arena, &bytes));
    void *response = hf_arena_zero(call->arena, info->response_type->size, 16);
    if (response == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for an answer");
    }
    HF_TRY(hf_pb_decode(op, info->response_type, bytes, call->arena, response));
    const char *lacks = hf_answer_lacks(call->method, response); /* remote-R6 */
    if (lacks != NULL) {
        return hf_fail(op, HF_ERR_INVALID, "it has no %s", lacks);
    }
    call->status = HF_OK;
    call->response = response;
    return HF_OK;
}

static void take_answer(hf_attempt *attempt, hf_remote_ask *ask)
{
    hf_op op;
    hf_op_init(&op);
    hf_status status = take_message(&op, attempt, ask->call);
    part(attempt, ask);
    if (status == HF_OK) {
        hf_ask_finish(ask);
    } else {
        hf_ask_fail(ask, status, "the answer of %s cannot be used: %s", ask->remote->name, op.message);
    }
}

static void take_failure(hf_attempt *attempt, hf_remote_ask *ask)
{
    char text[HF_MESSAGE_LEN_MAX];
    hf_buf words;
    int code = attempt->code;
    hf_buf_init(&words, ask->remote->memory, HF_H2_HEADERS_LEN_MAX);
    hf_grpc_message_parse(hf_str_of_len(attempt->message.data, attempt->message.len), &words);
    if (code < 0) {
        code = (int)code_of_http(attempt->http);
        (void)snprintf(text, sizeof text, "%s answers with HTTP status %d, and not as a gRPC server", ask->remote->name,
                       attempt->http);
    } else {
        const char *reason = hf_buf_text(&words); /* "%00" is nothing, too */
        (void)snprintf(text, sizeof text, "%s", reason[0] != '\0' ? reason : "the server gives no reason");
    }
    hf_buf_deinit(&words);
    fail_with(attempt, ask, code, text);
}

static void on_closed(void *state, hf_h2_stream *h2, uint32_t code)
{
    hf_line *line = state;
    hf_attempt *attempt = attempt_of(h2);
    hf_remote_ask *ask = attempt->ask;
    hf_assert(attempt->line == line);
    if (ask == NULL) {
        hf_attempt_free(attempt);
    } else if (attempt->is_too_big) {
        part(attempt, ask);
        hf_ask_fail(ask, HF_ERR_TOO_BIG, "the answer of %s is too large, or there is no memory for it",
                    line->remote->name);
    } else if (attempt->code == HF_GRPC_OK) {
        take_answer(attempt, ask);
    } else if (attempt->code > 0 || (attempt->http > 0 && attempt->http != 200)) {
        take_failure(attempt, ask);
    } else {
        hf_attempt_lost(attempt, !attempt->h2.is_sent || code == HF_H2_REFUSED_STREAM);
    }
}

const hf_h2_events hf_attempt_events = {NULL, on_field, on_head, on_data, on_end, on_closed};
