/* The search attribute TemporalPauseInfo: which types of activities of a run are paused. See visible.h. */
#include "base/json.h"
#include "history/payload.h"
#include "run/visible.h"

#include <stdlib.h>

#define NAME HF_STR("TemporalPauseInfo")
#define PREFIX "property:activityType="

static bool is_paused(const hf_activity *activity)
{
    return hf_activity_is_pending(activity) && activity->pause.len > 0;
}

static int compare(const void *a, const void *b)
{
    return hf_str_compare(*(const hf_str *)a, *(const hf_str *)b);
}

static void put(hf_json *json, hf_buf *text, hf_str type)
{
    text->len = 0;
    hf_buf_put(text, PREFIX, sizeof PREFIX - 1);
    hf_buf_put(text, type.data, type.len);
    if (text->status == HF_OK) {
        hf_json_string_len(json, text->data, text->len);
    }
}

hf_str hf_visible_paused(const hf_run *run, hf_arena *arena)
{
    size_t count = 0;
    for (size_t i = 0; i < run->activities.count && hf_run_is_open(run); i++) {
        count += is_paused(run->activities.items[i]) ? 1 : 0;
    }
    hf_str *types = count > 0 ? HF_ARENA_ARRAY(arena, hf_str, count) : NULL;
    if (types == NULL) {
        return HF_STR("");
    }
    count = 0;
    for (size_t i = 0; i < run->activities.count; i++) {
        if (is_paused(run->activities.items[i])) {
            types[count++] = run->activities.items[i]->activity_type;
        }
    }
    qsort(types, count, sizeof *types, compare);
    hf_buf buf;
    hf_buf text;
    hf_json json;
    hf_buf_init(&buf, arena->memory, SIZE_MAX / 2);
    hf_buf_init(&text, arena->memory, SIZE_MAX / 2);
    hf_json_init(&json, &buf);
    hf_json_array(&json);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !hf_str_equal(types[i], types[i - 1])) {
            put(&json, &text, types[i]);
        }
    }
    hf_json_end(&json);
    hf_str paused = HF_STR("");
    if (buf.status == HF_OK && text.status == HF_OK) {
        paused = hf_arena_copy(arena, (hf_str){buf.data, buf.len});
    } else {
        arena->status = HF_ERR_NOMEM;
    }
    hf_buf_deinit(&buf);
    hf_buf_deinit(&text);
    return paused;
}

hf_pb_payload *hf_visible_paused_payload(hf_arena *arena, hf_str paused)
{
    enum { ENTRIES = 2 }; /* of its metadata */
    hf_assert(paused.len > 0);
    hf_pb_payload *payload = HF_ARENA_NEW(arena, hf_pb_payload);
    hf_pb_payload_metadata_entry *metadata = HF_ARENA_ARRAY(arena, hf_pb_payload_metadata_entry, ENTRIES);
    if (payload == NULL || metadata == NULL) {
        return NULL;
    }
    metadata[0] = (hf_pb_payload_metadata_entry){.key = HF_STR("encoding"), .value = HF_ENCODING_JSON};
    metadata[1] = (hf_pb_payload_metadata_entry){.key = HF_STR("type"), .value = HF_STR("KeywordList")};
    payload->metadata.items = metadata;
    payload->metadata.count = ENTRIES;
    payload->data = paused;
    return payload;
}

bool hf_visible_is_paused_name(hf_str name)
{
    return hf_str_equal(name, NAME);
}

void hf_visible_put_paused(hf_arena *arena, hf_str paused, hf_pb_search_attributes **attributes)
{
    if (paused.len == 0) {
        return;
    }
    const hf_pb_search_attributes *given = *attributes;
    size_t count = given != NULL ? given->indexed_fields.count : 0;
    hf_pb_search_attributes *all = HF_ARENA_NEW(arena, hf_pb_search_attributes);
    hf_pb_search_attributes_indexed_fields_entry *items =
        HF_ARENA_ARRAY(arena, hf_pb_search_attributes_indexed_fields_entry, count + 1);
    hf_pb_payload *payload = hf_visible_paused_payload(arena, paused);
    if (all == NULL || items == NULL || payload == NULL) {
        return;
    }
    all->indexed_fields.items = items;
    for (size_t i = 0; i < count; i++) {
        if (!hf_visible_is_paused_name(given->indexed_fields.items[i].key)) {
            items[all->indexed_fields.count++] = given->indexed_fields.items[i];
        }
    }
    items[all->indexed_fields.count++] = (hf_pb_search_attributes_indexed_fields_entry){.key = NAME, .value = payload};
    *attributes = all;
}
