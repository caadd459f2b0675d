#include "history/history.h"

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

static hf_status write_event(hf_op *op, hf_str bytes, hf_arena *arena, hf_buf *out)
{
    hf_pb_history_event event;
    HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, bytes, arena, &event));
    hf_status status = hf_pb_json_write(&hf_pb_history_event_type, &event, out);
    if (status != HF_OK) {
        return hf_fail(op, status, "event %lld cannot be written as JSON", (long long)event.event_id);
    }
    return HF_OK;
}

hf_status hf_history_to_json(hf_op *op, hf_str history_bytes, hf_buf *out)
{
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
        status = write_event(op, event, &arena, out);
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

hf_status hf_history_from_json(hf_op *op, hf_str text, hf_arena *arena, hf_buf *out_bytes)
{
    hf_pb_history history;
    HF_TRY(hf_pb_json_read(op, &hf_pb_history_type, text, arena, &history));
    hf_pb_encode(&hf_pb_history_type, &history, out_bytes);
    if (hf_buf_status(out_bytes) != HF_OK) {
        return hf_fail(op, hf_buf_status(out_bytes), "the history's bytes do not fit");
    }
    return HF_OK;
}

const char *hf_event_name(int32_t event_type)
{
    const char *name = hf_pb_enum_brief(&hf_pb_event_type_enum, event_type);
    return name != NULL ? name : "Unknown";
}
