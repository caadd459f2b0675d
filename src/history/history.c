#include "history/history.h"

#include "base/glyph.h"
#include "wire/json_read.h"
#include "wire/pb_json.h"

#define EVENTS_FIELD 1 /* of temporal.api.history.v1.History */

bool hf_history_next(hf_str *rest, hf_str *ret_event_bytes)
{
    hf_pb_raw field;
    while (hf_pb_next(rest, &field)) {
        if (field.number == EVENTS_FIELD && field.wire == HF_PB_WIRE_BYTES) {
            *ret_event_bytes = field.bytes;
            return true;
        }
    }
    return false;
}

/* JSON as it is, on one line. Whatever in it is not plain ASCII is part of a string, and may be written as an escape there. */
static void put_json(hf_str text, hf_buf *out)
{
    for (size_t at = 0; at < text.len;) {
        hf_glyph glyph = hf_glyph_of(hf_str_of_len(text.data + at, text.len - at));
        hf_assert(glyph.is_utf8); /* hf_json_check has seen it */
        if (glyph.is_printable) {
            hf_buf_put(out, text.data + at, glyph.len);
        } else if (glyph.code < 0x20) {
            hf_buf_putc(out, ' ');
        } else {
            hf_buf_putf(out, "\\u%04x", (unsigned)glyph.code);
        }
        at += glyph.len;
    }
}

void hf_history_put_readable(const hf_pb_type *type, const void *msg, hf_buf *out)
{
    const hf_pb_payload *payload = msg;
    if (type != &hf_pb_payload_type || !hf_str_equal(hf_payload_encoding(payload), HF_ENCODING_JSON)) {
        return;
    }
    hf_status status =
        hf_json_check(NULL, payload->data, out->memory); /* nobody has checked the program's claim before */
    if (status == HF_OK) {
        hf_buf_puts(out, ",\"json\":");
        put_json(payload->data, out);
    } else if (status == HF_ERR_NOMEM) {
        out->status = status;
    }
}

static hf_status write_event(hf_op *op, hf_str bytes, bool readable, hf_arena *arena, hf_buf *out)
{
    hf_pb_history_event event;
    HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, bytes, arena, &event));
    hf_status status =
        hf_pb_json_write_more(&hf_pb_history_event_type, &event, out, readable ? hf_history_put_readable : NULL);
    if (status != HF_OK) {
        return hf_fail(op, status, "event %lld cannot be written as JSON", (long long)event.event_id);
    }
    return HF_OK;
}

hf_status hf_history_to_json(hf_op *op, hf_str history_bytes, bool readable, hf_buf *out)
{
    hf_assert(hf_pb_history_type.fields[0].number == EVENTS_FIELD); /* history-H2: numbers are Temporal's */
    hf_arena arena;
    hf_arena_init(&arena, out->memory);
    hf_status status = HF_OK;
    hf_str rest = history_bytes;
    hf_str event = {0};
    bool comma = false;
    hf_buf_puts(out, "{\"events\":[");
    while (status == HF_OK && hf_history_next(&rest, &event)) {
        if (comma) {
            hf_buf_putc(out, ',');
        }
        comma = true;
        hf_arena_reset(&arena);
        status = write_event(op, event, readable, &arena, out);
    }
    hf_buf_puts(out, "]}");
    hf_arena_deinit(&arena);
    if (status == HF_OK && rest.data == NULL && history_bytes.len > 0) {
        status = hf_fail(op, HF_ERR_INVALID, "the history's bytes are malformed");
    }
    if (status == HF_OK && hf_buf_status(out) != HF_OK) {
        status = hf_fail(op, hf_buf_status(out), "the history's JSON does not fit");
    }
    return status;
}

_Static_assert(HF_EVENT_TYPE_TIMER_STARTED == 17, "history-H2: numbers are Temporal's");
_Static_assert(HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED == 1, "history-H2: the same");

const char *hf_event_name(int32_t event_type)
{
    const char *name = hf_pb_enum_brief(&hf_pb_event_type_enum, event_type);
    return name != NULL ? name : "Unknown";
}
