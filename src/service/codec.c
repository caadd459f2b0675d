#include "service/codec.h"

#include "base/env.h"
#include "base/json.h"
#include "history/limits.h"
#include "history/payload.h"
#include "wire/json_read.h"

#define ENCODED_TEXT "Encoded failure" /* the message of a failure whose own is encoded, as in other SDKs */

/* One walk through a message. */
typedef struct walk {
    hf_op *op;
    const hf_codec *codec;
    hf_arena *arena;
    bool encodes;
    bool is_lenient;
} walk;

static hf_status no_memory(const walk *w)
{
    return hf_fail(w->op, HF_ERR_NOMEM, "no memory to %s payloads", w->encodes ? "encode" : "decode");
}

/* ---- One payload --------------------------------------------------------------------------------------------------- */

static bool is_encoded(const walk *w, const hf_pb_payload *payload)
{
    return hf_str_equal(hf_payload_encoding(payload), hf_str_of(w->codec->encoding));
}

/* Gives bytes to the codec. The result is in the arena; empty data = the codec leaves them alone. */
static hf_status convert(walk *w, hf_str bytes, hf_str *ret_bytes)
{
    hf_payload out = hf_payload_none();
    hf_payload in = hf_payload_of_bytes(bytes.data, bytes.len);
    hf_status status =
        w->encodes ? w->codec->encode(w->codec->state, in, &out) : w->codec->decode(w->codec->state, in, &out);
    if (status != HF_OK) {
        return hf_fail(w->op, status, "the codec for '%.60s' cannot %s a payload of %zu bytes: %.200s",
                       w->codec->encoding, w->encodes ? "encode" : "decode", bytes.len, hf_status_text(status));
    }
    *ret_bytes = out.data != NULL ? hf_arena_copy(w->arena, hf_str_of_len(out.data, out.len)) : (hf_str){NULL, 0};
    bool is_there = out.data == NULL || ret_bytes->data != NULL;
    hf_payload_free(&out);
    return is_there ? HF_OK : no_memory(w);
}

static hf_status encode_payload(walk *w, hf_pb_payload *payload)
{
    hf_buf wire;
    hf_str bytes = {NULL, 0};
    if (is_encoded(w, payload)) {
        return HF_OK; /* it came so, and could not be decoded */
    }
    hf_buf_init(&wire, hf_env_memory(hf_env_posix()), SIZE_MAX);
    hf_pb_encode(&hf_pb_payload_type, payload, &wire);
    hf_status status = hf_buf_status(&wire) == HF_OK ? HF_OK : no_memory(w);
    status = status == HF_OK ? convert(w, hf_str_of_len(hf_buf_text(&wire), wire.len), &bytes) : status;
    size_t plain_len = wire.len;
    hf_buf_deinit(&wire);
    if (status != HF_OK || bytes.data == NULL) {
        return status;
    }
    if (bytes.len > plain_len + HF_CODEC_GROWTH_MAX) {
        return hf_fail(w->op, HF_ERR_TOO_BIG, "the codec made %zu bytes of %zu: at most %d more are taken", bytes.len,
                       plain_len, HF_CODEC_GROWTH_MAX);
    }
    *payload = hf_payload_make(w->arena, hf_arena_copy(w->arena, hf_str_of(w->codec->encoding)), bytes);
    return w->arena->status == HF_OK ? HF_OK : no_memory(w);
}

static hf_status decode_payload(walk *w, hf_pb_payload *payload)
{
    hf_str bytes = {NULL, 0};
    hf_pb_payload plain;
    if (!is_encoded(w, payload)) {
        return HF_OK;
    }
    hf_status status = convert(w, payload->data, &bytes);
    if (status == HF_OK && bytes.data == NULL) {
        status = hf_fail(w->op, HF_ERR_INVALID, "the codec for '%.60s' gave nothing", w->codec->encoding);
    }
    status = status == HF_OK ? hf_pb_decode(w->op, &hf_pb_payload_type, bytes, w->arena, &plain) : status;
    if (status == HF_OK) {
        *payload = plain;
    } else if (w->is_lenient && status != HF_ERR_NOMEM) {
        status = HF_OK;
    }
    return status;
}

/* ---- Failures ------------------------------------------------------------------------------------------------------ */

/* Message and stack trace go into a payload, which the walk then encodes. */
static hf_status hide_texts(walk *w, hf_pb_failure *failure)
{
    if (!w->codec->with_failures || failure->encoded_attributes != NULL ||
        (failure->message.len == 0 && failure->stack_trace.len == 0)) {
        return HF_OK;
    }
    hf_buf buf;
    hf_json json;
    hf_buf_init(&buf, hf_env_memory(hf_env_posix()), SIZE_MAX);
    hf_json_init(&json, &buf);
    hf_json_object(&json);
    hf_json_key(&json, "message");
    hf_json_string_len(&json, failure->message.data, failure->message.len);
    hf_json_key(&json, "stack_trace");
    hf_json_string_len(&json, failure->stack_trace.data, failure->stack_trace.len);
    hf_json_end(&json);
    hf_pb_payload *hidden = HF_ARENA_NEW(w->arena, hf_pb_payload);
    bool is_there = hidden != NULL && hf_buf_status(&buf) == HF_OK;
    if (is_there) {
        hf_str text = hf_arena_copy(w->arena, hf_str_of_len(hf_buf_text(&buf), buf.len));
        *hidden = hf_payload_json(w->arena, text);
        failure->encoded_attributes = hidden;
        failure->message = HF_STR(ENCODED_TEXT);
        failure->stack_trace = (hf_str){NULL, 0};
    }
    hf_buf_deinit(&buf);
    return is_there && w->arena->status == HF_OK ? HF_OK : no_memory(w);
}

/* The other way round. */
static hf_status show_texts(walk *w, hf_pb_failure *failure)
{
    const hf_pb_payload *hidden = failure->encoded_attributes;
    if (hidden == NULL || !hf_str_equal(hf_payload_encoding(hidden), HF_ENCODING_JSON)) {
        return HF_OK; /* of another codec, or not decoded */
    }
    static const char *const KEYS[] = {"message", "stack_trace"};
    hf_str *const places[] = {&failure->message, &failure->stack_trace};
    hf_json_found found[2];
    for (size_t i = 0; i < 2; i++) {
        hf_json_step step = {.key = hf_str_of(KEYS[i])};
        hf_status status = hf_json_find(NULL, hidden->data, &step, 1, w->arena, &found[i]);
        if (status == HF_ERR_NOMEM) {
            return no_memory(w);
        }
        if (status != HF_OK) {
            return HF_OK; /* not made by a codec: it stays as it is */
        }
    }
    for (size_t i = 0; i < 2; i++) {
        if (found[i].kind == HF_KIND_TEXT) {
            *places[i] = found[i].text;
        }
    }
    failure->encoded_attributes = NULL;
    return HF_OK;
}

/* ---- Messages ------------------------------------------------------------------------------------------------------ */

static hf_status walk_message(walk *w, const hf_pb_type *type, char *msg);

static hf_status visit(walk *w, const hf_pb_type *type, char *msg)
{
    if (type == &hf_pb_payload_type) {
        hf_pb_payload *payload = (hf_pb_payload *)(void *)msg;
        return w->encodes ? encode_payload(w, payload) : decode_payload(w, payload);
    }
    if (type == &hf_pb_search_attributes_type) {
        return HF_OK;
    }
    bool is_failure = type == &hf_pb_failure_type;
    HF_TRY(is_failure && w->encodes ? hide_texts(w, (hf_pb_failure *)(void *)msg) : HF_OK);
    HF_TRY(walk_message(w, type, msg));
    return is_failure && !w->encodes ? show_texts(w, (hf_pb_failure *)(void *)msg) : HF_OK;
}

static hf_status walk_field(walk *w, const hf_pb_field *field, char *msg)
{
    char *at = msg + field->offset;
    hf_assert(field->kind == HF_PB_MESSAGE && field->of.type != NULL);
    if (field->shape == HF_PB_LIST || field->shape == HF_PB_MAP) {
        struct { /* any list of messages */
            char *items;
            size_t count;
        } list;
        memcpy(&list, at, sizeof list);
        for (size_t i = 0; i < list.count; i++) {
            HF_TRY(visit(w, field->of.type, list.items + i * field->of.type->size));
        }
        return HF_OK;
    }
    uint32_t which = field->number;
    if (field->shape == HF_PB_ONEOF) {
        memcpy(&which, msg + field->case_offset, sizeof which);
    }
    char *sub = NULL;
    memcpy(&sub, at, sizeof sub);
    return which == field->number && sub != NULL ? visit(w, field->of.type, sub) : HF_OK;
}

/* As deep as a message may be nested: the decoder has a bound. */
static hf_status walk_message(walk *w, const hf_pb_type *type, char *msg)
{
    for (size_t i = 0; i < type->field_count; i++) {
        if (type->fields[i].kind == HF_PB_MESSAGE) {
            HF_TRY(walk_field(w, &type->fields[i], msg));
        }
    }
    return HF_OK;
}

hf_status hf_codec_encode_with(hf_op *op, const hf_codec *codec, const hf_pb_type *type, const void *msg,
                               hf_arena *arena, const void **ret_msg)
{
    walk w = {op, codec, arena, true, false};
    hf_assert(codec != NULL && codec->encode != NULL && msg != NULL);
    char *copy = hf_arena_zero(arena, type->size, 16);
    if (copy == NULL || hf_pb_copy(type, msg, arena, copy) != HF_OK) {
        return no_memory(&w);
    }
    HF_TRY(walk_message(&w, type, copy));
    *ret_msg = copy;
    return HF_OK;
}

hf_status hf_codec_decode_with(hf_op *op, const hf_codec *codec, const hf_pb_type *type, void *msg, hf_arena *arena,
                               bool is_lenient)
{
    walk w = {op, codec, arena, false, is_lenient};
    hf_assert(codec != NULL && codec->decode != NULL && msg != NULL);
    return walk_message(&w, type, msg);
}
