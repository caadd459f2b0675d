/* The marker of a local activity, as sdk-core writes it, so that tools that read histories know it: its name, a JSON text
 * under "data", the result under "result", and the failure in the marker's own field. */
#include "worker/local.h"

#include "base/json.h"
#include "history/limits.h"
#include "history/payload.h"

#include <holdfast/json.h>

#include <inttypes.h>
#include <stdio.h>

#define DATA_KEY "data"
#define RESULT_KEY "result"

bool hf_local_marker_is(const hf_pb_history_event *event)
{
    return event->attributes_case == HF_PB_HISTORY_EVENT_MARKER_RECORDED_EVENT_ATTRIBUTES &&
           hf_str_equal(event->marker_recorded_event_attributes->marker_name, HF_STR(HF_LOCAL_MARKER));
}

static const hf_pb_payloads *detail(const hf_pb_marker_recorded_event_attributes *marker, const char *key)
{
    for (size_t i = 0; i < marker->details.count; i++) {
        if (hf_str_equal(marker->details.items[i].key, hf_str_of(key))) {
            return marker->details.items[i].value;
        }
    }
    return NULL;
}

static hf_payload data_of(const hf_pb_marker_recorded_event_attributes *marker)
{
    const hf_pb_payload *data = hf_payloads_first(detail(marker, DATA_KEY));
    return data != NULL ? (hf_payload){data->data.data, data->data.len, HF_ENCODING_JSON_TEXT, NULL}
                        : hf_payload_none();
}

hf_str hf_wf_local_key(const hf_pb_marker_recorded_event_attributes *marker)
{
    hf_payload view = hf_payload_none();
    if (!hf_str_equal(marker->marker_name, HF_STR(HF_LOCAL_MARKER)) ||
        hf_json_get_view(data_of(marker), "seq", &view) != HF_OK) {
        return (hf_str){NULL, 0};
    }
    return hf_str_of_len(view.data, view.len);
}

/* ---- Reading ------------------------------------------------------------------------------------------------------- */

/* {"seconds": 1, "nanos": 2} as nanoseconds; 0 if it is null or missing. */
static hf_status read_ns(hf_payload data, const char *key, int64_t *ret_ns)
{
    char path[64];
    hf_json_kind kind = HF_KIND_MISSING;
    int64_t seconds = 0;
    int64_t nanos = 0;
    *ret_ns = 0;
    HF_TRY(hf_json_get_kind(data, key, &kind));
    if (kind != HF_KIND_OBJECT) {
        return HF_OK;
    }
    (void)snprintf(path, sizeof path, "%s.seconds", key);
    HF_TRY(hf_json_get_int(data, path, &seconds));
    (void)snprintf(path, sizeof path, "%s.nanos", key);
    HF_TRY(hf_json_get_int(data, path, &nanos));
    if (__builtin_mul_overflow(seconds, INT64_C(1000000000), ret_ns) ||
        __builtin_add_overflow(*ret_ns, nanos, ret_ns)) {
        return hf_raise(HF_ERR_INVALID, "'%s' is out of range", key);
    }
    return HF_OK;
}

static hf_status read_text(hf_payload data, const char *path, hf_arena *arena, hf_str *ret_text)
{
    char *room = hf_arena_take(arena, HF_ID_LEN_MAX + 1, 1);
    if (room == NULL) {
        return hf_raise(HF_ERR_NOMEM, "no memory for the marker of a local activity");
    }
    HF_TRY(hf_json_get_text(data, path, HF_ID_LEN_MAX + 1, room));
    *ret_text = hf_str_of(room);
    return HF_OK;
}

static hf_status read_data(hf_payload data, hf_arena *arena, hf_local_end *end)
{
    int64_t seq = 0;
    int64_t attempt = 0;
    HF_TRY(hf_json_get_int(data, "seq", &seq));
    HF_TRY(hf_json_get_int(data, "attempt", &attempt));
    HF_TRY(read_text(data, "activity_id", arena, &end->id));
    HF_TRY(read_text(data, "activity_type", arena, &end->type));
    HF_TRY(read_ns(data, "complete_time", &end->completed.ns));
    HF_TRY(read_ns(data, "backoff", &end->backoff.ns));
    HF_TRY(read_ns(data, "original_schedule_time", &end->scheduled.ns));
    if (seq <= 0 || attempt <= 0 || attempt > INT32_MAX || end->backoff.ns < 0) {
        return hf_raise(HF_ERR_INVALID, "a number in it makes no sense");
    }
    hf_assert(end->id.data != NULL && end->type.data != NULL);
    end->seq = (uint64_t)seq;
    end->attempt = (int)attempt;
    return HF_OK;
}

hf_status hf_local_marker_read(hf_op *op, const hf_pb_history_event *event, hf_arena *arena, hf_local_end *ret_end)
{
    hf_assert(hf_local_marker_is(event));
    const hf_pb_marker_recorded_event_attributes *marker = event->marker_recorded_event_attributes;
    *ret_end = (hf_local_end){.result = detail(marker, RESULT_KEY), .failure = marker->failure};
    hf_status status = read_data(data_of(marker), arena, ret_end);
    if (status == HF_OK) {
        return HF_OK;
    }
    return hf_fail(op, status == HF_ERR_NOMEM ? status : HF_ERR_INVALID,
                   "the marker of a local activity cannot be read (event %" PRId64 "): %s", event->event_id,
                   hf_error_text());
}

/* ---- Writing ------------------------------------------------------------------------------------------------------- */

static void put_ns(hf_json *json, const char *key, int64_t ns)
{
    hf_json_key(json, key);
    if (ns <= 0) {
        hf_json_null(json);
        return;
    }
    hf_json_object(json);
    hf_json_key_int(json, "seconds", ns / 1000000000);
    hf_json_key_int(json, "nanos", ns % 1000000000);
    hf_json_end(json);
}

static hf_str data_text(hf_wf *wf, const hf_local_end *end)
{
    hf_buf text;
    hf_json json;
    hf_buf_init(&text, wf->worker->memory, 16 * HF_ID_LEN_MAX);
    hf_json_init(&json, &text);
    hf_json_object(&json);
    hf_json_key_uint(&json, "seq", end->seq);
    hf_json_key_int(&json, "attempt", end->attempt);
    hf_json_key(&json, "activity_id");
    hf_json_string_len(&json, end->id.data, end->id.len);
    hf_json_key(&json, "activity_type");
    hf_json_string_len(&json, end->type.data, end->type.len);
    put_ns(&json, "complete_time", end->completed.ns);
    put_ns(&json, "backoff", end->backoff.ns);
    put_ns(&json, "original_schedule_time", end->scheduled.ns);
    hf_json_end(&json);
    hf_str copy = {NULL, 0};
    if (text.status == HF_OK) {
        copy = hf_arena_copy(&wf->recorder.arena, hf_str_of_len(text.data, text.len));
    }
    hf_buf_deinit(&text);
    return copy;
}

bool hf_local_marker_record(const hf_wf_local *local, const hf_local_end *end, bool has_scope)
{
    hf_wf *wf = local->wf;
    hf_arena *arena = &wf->recorder.arena;
    void *room = NULL;
    hf_assert(end->seq == local->seq && end->attempt > 0 && !wf->has_closed); /* worker-J2 */
    wf->forking = has_scope ? local->scope : NULL;
    hf_command_record *record =
        hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_RECORD_MARKER, HF_PB_COMMAND_RECORD_MARKER_COMMAND_ATTRIBUTES,
                        sizeof(hf_pb_record_marker_command_attributes), &room);
    wf->forking = NULL;
    hf_pb_record_marker_command_attributes_details_entry *entries =
        HF_ARENA_ARRAY(arena, hf_pb_record_marker_command_attributes_details_entry, 2);
    hf_pb_payloads *result = HF_ARENA_NEW(arena, hf_pb_payloads);
    hf_pb_failure *failure = end->failure != NULL ? HF_ARENA_NEW(arena, hf_pb_failure) : NULL;
    hf_str data = data_text(wf, end);
    if (record == NULL || entries == NULL || result == NULL || data.len == 0 ||
        (end->failure != NULL &&
         (failure == NULL || hf_pb_copy(&hf_pb_failure_type, end->failure, arena, failure) != HF_OK)) ||
        (end->result != NULL && hf_pb_copy(&hf_pb_payloads_type, end->result, arena, result) != HF_OK)) {
        return false;
    }
    hf_pb_record_marker_command_attributes *a = room;
    a->marker_name = HF_STR(HF_LOCAL_MARKER);
    a->failure = failure;
    entries[0].key = HF_STR(DATA_KEY);
    entries[0].value = hf_payloads_of(arena, hf_payload_json(arena, data));
    entries[1].key = HF_STR(RESULT_KEY);
    entries[1].value = result;
    a->details.items = entries;
    a->details.count = end->result != NULL ? 2 : 1;
    record->name = HF_STR(HF_LOCAL_MARKER);
    record->id = hf_wf_number_text(arena, end->seq);
    record->file = local->file; /* the driver makes it, not the fiber that asked for it */
    record->line = local->line;
    hf_wf_summarize(wf, record, local->options != NULL ? local->options->summary : NULL);
    return arena->status == HF_OK;
}
