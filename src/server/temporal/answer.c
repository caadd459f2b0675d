/* Answers: a message, or a code with a sentence and details. */
#include "server/server_private.h"

#include "base/glyph.h"
#include "service/grpc_code.h"
#include "wire/base64.h"
#include "wire/grpc.h"
#include "wire/gzip.h"

#include <stdio.h>

enum { DETAIL_LEN_MAX = 8 * 1024, TEXT_LEN_MAX = 2 * 1024 }; /* bytes of what trailers carry: a head has 16 KiB */

static const hf_h2_field HEAD[] = {
    {HF_STR_INIT(":status"), HF_STR_INIT("200")},
    {HF_STR_INIT("content-type"), HF_STR_INIT("application/grpc")},
    {HF_STR_INIT("grpc-accept-encoding"), HF_STR_INIT("gzip")},
    {HF_STR_INIT("grpc-encoding"), HF_STR_INIT("gzip")}, /* last: only if it is used */
};
static const hf_h2_field FINE[] = {{HF_STR_INIT("grpc-status"), HF_STR_INIT("0")}};

static void count(hf_stream *stream, bool is_failure)
{
    hf_door *door = stream->link->door;
    hf_assert(!stream->is_answered || stream->is_watching); /* server-D2: one answer */
    stream->is_answered = true;
    hf_heap_remove(&stream->link->deadlines, &stream->deadline);
    size_t ignored = 0;
    size_t place = stream->route != NULL ? (size_t)(stream->route - hf_routes(&ignored)) : SIZE_MAX;
    atomic_fetch_add(&door->calls, 1);
    atomic_fetch_add(&door->failures, is_failure ? 1 : 0);
    if (place != SIZE_MAX) {
        hf_assert(place < HF_COUNT_OF(door->by_route));
        atomic_fetch_add(&door->by_route[place].calls, 1);
        atomic_fetch_add(&door->by_route[place].failures, is_failure ? 1 : 0);
    }
}

/* Puts a frame into the body; `is_gzip`: try to make it smaller. True: it was compressed. */
static hf_status put_frame(hf_op *op, hf_stream *stream, hf_buf *message, bool is_gzip, bool *ret_gzip)
{
    unsigned char head[HF_GRPC_HEAD_LEN];
    hf_buf *out = &stream->h2.out;
    *ret_gzip = false;
    if (is_gzip && message->len >= HF_DOOR_GZIP_FROM) {
        hf_buf packed;
        hf_buf_init(&packed, stream->link->door->memory, SIZE_MAX / 2);
        hf_status status = hf_gzip(op, hf_str_of_len(message->data, message->len), &packed);
        if (status == HF_OK) {
            hf_buf_deinit(message);
            *message = packed;
            *ret_gzip = true;
        } else {
            hf_buf_deinit(&packed);
        }
    }
    hf_assert(message->len <= UINT32_MAX);
    hf_grpc_head(head, *ret_gzip, (uint32_t)message->len);
    (void)hf_buf_reserve(out, sizeof head + message->len);
    hf_buf_put(out, head, sizeof head);
    hf_buf_put(out, message->data, message->len);
    return hf_buf_status(out) == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for the answer");
}

/* Takes the content of `message`. */
static void answer_with(hf_stream *stream, hf_buf *message)
{
    hf_h2 *h2 = stream->link->h2;
    bool is_gzip = false;
    hf_op op;
    hf_op_init(&op);
    hf_status status =
        hf_buf_status(message) == HF_OK
            ? put_frame(&op, stream, message, stream->takes_gzip && stream->is_gzip, &is_gzip)
            : hf_fail(&op, hf_buf_status(message), "the answer is too large, or there is no memory for it");
    hf_buf_deinit(message);
    if (status == HF_OK) {
        status = hf_h2_respond(&op, h2, &stream->h2, HEAD, HF_COUNT_OF(HEAD) - (is_gzip ? 0 : 1), false);
    }
    if (status != HF_OK) {
        hf_buf_deinit(&stream->h2.out);
        hf_answer_status(stream, HF_GRPC_RESOURCE_EXHAUSTED, op.message, NULL, NULL);
        return;
    }
    count(stream, false);
    hf_h2_put(h2, &stream->h2, stream->h2.out.len);
    hf_h2_end(h2, &stream->h2, FINE, HF_COUNT_OF(FINE));
}

void hf_answer_message(hf_stream *stream, const hf_pb_type *type, const void *message)
{
    hf_buf bytes;
    hf_buf_init(&bytes, stream->link->door->memory, HF_DOOR_ANSWER_LEN_MAX);
    hf_pb_encode(type, message, &bytes);
    answer_with(stream, &bytes);
}

void hf_answer_bytes(hf_stream *stream, hf_str message)
{
    hf_buf bytes;
    hf_buf_init(&bytes, stream->link->door->memory, HF_DOOR_ANSWER_LEN_MAX);
    hf_buf_put(&bytes, message.data, message.len);
    answer_with(stream, &bytes);
}

/* google.rpc.Status with one detail, in base64. Empty = there is none, or it is too long for a head. */
/* Sentences are cut by their bytes, and names in them may have any characters: without the rest of the last one. Clients read no details from
 * a text that is not UTF-8. */
static hf_str whole_characters(const char *text)
{
    enum { REST_MAX = 3 };
    size_t len = strlen(text);
    len = len < TEXT_LEN_MAX ? len : TEXT_LEN_MAX;
    for (size_t rest = 1; rest <= REST_MAX && rest < len && !hf_str_is_utf8(hf_str_of_len(text, len)); rest++) {
        if (hf_str_is_utf8(hf_str_of_len(text, len - rest))) {
            return hf_str_of_len(text, len - rest);
        }
    }
    return hf_str_of_len(text, len);
}

static void put_details(hf_allocator memory, int code, hf_str text, const hf_pb_type *type, const void *detail,
                        hf_buf *out)
{
    hf_buf value;
    hf_buf status;
    char url[160];
    hf_buf_init(&value, memory, DETAIL_LEN_MAX);
    hf_buf_init(&status, memory, DETAIL_LEN_MAX);
    hf_pb_encode(type, detail, &value);
    (void)snprintf(url, sizeof url, "type.googleapis.com/%s", type->name);
    hf_pb_any any = {.type_url = hf_str_of(url), .value = hf_str_of_len(value.data, value.len)};
    hf_pb_status message = {.code = code, .message = text, .details = {&any, 1}};
    hf_pb_encode(&hf_pb_status_type, &message, &status);
    if (hf_buf_status(&value) == HF_OK && hf_buf_status(&status) == HF_OK) {
        hf_base64_encode(hf_str_of_len(status.data, status.len), out);
    }
    hf_buf_deinit(&value);
    hf_buf_deinit(&status);
}

void hf_answer_status(hf_stream *stream, int code, const char *text, const hf_pb_type *detail_type, const void *detail)
{
    hf_allocator memory = stream->link->door->memory;
    char number[12];
    hf_buf words;
    hf_buf details;
    hf_op op;
    hf_op_init(&op);
    if (stream->is_answered) {
        return;
    }
    hf_assert(code > HF_GRPC_OK && code < HF_GRPC_CODE_COUNT);
    (void)snprintf(number, sizeof number, "%d", code);
    hf_buf_init(&words, memory, 3 * TEXT_LEN_MAX + 1);
    hf_buf_init(&details, memory, 2 * DETAIL_LEN_MAX);
    hf_str told = whole_characters(text);
    hf_grpc_message_put(told, &words);
    if (detail_type != NULL) {
        put_details(memory, code, told, detail_type, detail, &details);
    }
    hf_h2_field fields[5] = {
        HEAD[0],
        HEAD[1],
        {HF_STR("grpc-status"), hf_str_of(number)},
        {HF_STR("grpc-message"), hf_str_of_len(words.data, words.len)},
        {HF_STR("grpc-status-details-bin"), hf_str_of_len(details.data, details.len)},
    };
    count(stream, true);
    if (hf_h2_respond(&op, stream->link->h2, &stream->h2, fields, details.len > 0 ? 5 : 4, true) != HF_OK) {
        hf_h2_reset(stream->link->h2, &stream->h2, HF_H2_INTERNAL_ERROR);
    }
    hf_buf_deinit(&words);
    hf_buf_deinit(&details);
}

void hf_answer_http(hf_stream *stream, const char *http_status)
{
    static const char TEXT[] = "This is a gRPC server: requests are POST with content-type application/grpc.\n";
    hf_op op;
    hf_op_init(&op);
    hf_h2_field fields[] = {{HF_STR(":status"), hf_str_of(http_status)},
                            {HF_STR("content-type"), HF_STR("text/plain; charset=utf-8")}};
    hf_buf *out = &stream->h2.out;
    count(stream, true);
    hf_buf_put(out, TEXT, sizeof TEXT - 1);
    if (hf_buf_status(out) != HF_OK ||
        hf_h2_respond(&op, stream->link->h2, &stream->h2, fields, HF_COUNT_OF(fields), false) != HF_OK) {
        hf_buf_deinit(out);
        hf_h2_reset(stream->link->h2, &stream->h2, HF_H2_INTERNAL_ERROR);
        return;
    }
    hf_h2_put(stream->link->h2, &stream->h2, sizeof TEXT - 1);
    hf_h2_end(stream->link->h2, &stream->h2, NULL, 0);
}

/* A call that the stop of the door ended: a worker that polled is told that there was no task, others come again. */
static bool answer_drained(hf_stream *stream)
{
    if (stream->call.status != HF_ERR_CANCELED || stream->link->stage == HF_STAGE_SERVING) {
        return false;
    }
    if (stream->call.method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE ||
        stream->call.method == HF_METHOD_POLL_ACTIVITY_TASK_QUEUE) {
        hf_answer_bytes(stream, (hf_str){0});
    } else {
        hf_answer_status(stream, HF_GRPC_UNAVAILABLE, "the server is shutting down", NULL, NULL);
    }
    return true;
}

void hf_answer_call(hf_stream *stream)
{
    const hf_call *call = &stream->call;
    if (call->status == HF_OK) {
        hf_answer_message(stream, hf_method_info_of(call->method)->response_type, call->response);
        return;
    }
    if (answer_drained(stream)) {
        return;
    }
    const char *text = call->words != NULL && !stream->is_ours ? call->words : call->message;
    hf_answer_status(stream, (int)hf_grpc_code_of(call->status, call->is_final),
                     text[0] != '\0' ? text : hf_status_text(call->status), call->detail_type, call->detail);
}
