/* Memo and search attributes of a run, after upserts. Both are maps from names to payloads and have the same form on the wire, so that one
 * function serves both. */
#include "run/machines.h"

/* Payloads that mean "no value": an upsert with one removes the key. */
static bool is_nothing(const hf_pb_payload *payload)
{
    return payload == NULL || payload->data.len == 0 || hf_str_equal(payload->data, HF_STR("null")) ||
           hf_str_equal(payload->data, HF_STR("[]"));
}

static hf_status upsert(hf_apply *a, hf_owned *owned, const hf_pb_memo *given)
{
    hf_arena *arena = a->memory->scratch;
    hf_pb_memo now;
    HF_TRY(hf_pb_decode(a->op, &hf_pb_memo_type, hf_owned_str(owned), arena, &now));
    hf_pb_memo merged = {.unknown = now.unknown};
    merged.fields.items = HF_ARENA_ARRAY(arena, hf_pb_memo_fields_entry, now.fields.count + given->fields.count);
    if (arena->status != HF_OK) {
        hf_run_memory_fail(a->memory);
        return HF_ERR_NOMEM;
    }
    for (size_t i = 0; i < now.fields.count; i++) {
        merged.fields.items[merged.fields.count++] = now.fields.items[i];
    }
    for (size_t i = 0; i < given->fields.count; i++) {
        size_t at = 0;
        while (at < merged.fields.count && !hf_str_equal(merged.fields.items[at].key, given->fields.items[i].key)) {
            at++;
        }
        bool is_there = at < merged.fields.count;
        if (!is_nothing(given->fields.items[i].value)) {
            merged.fields.items[at] = given->fields.items[i];
            merged.fields.count += is_there ? 0 : 1;
        } else if (is_there) {
            merged.fields.items[at] = merged.fields.items[--merged.fields.count];
        }
    }
    hf_assert(merged.fields.count <= now.fields.count + given->fields.count);
    hf_buf bytes;
    hf_buf_init(&bytes, a->memory->heap, SIZE_MAX / 4);
    hf_pb_encode(&hf_pb_memo_type, &merged, &bytes);
    if (bytes.status != HF_OK) {
        hf_run_memory_fail(a->memory);
    } else {
        hf_owned_set(a->memory, owned, hf_str_of_len(bytes.data, bytes.len));
    }
    hf_buf_deinit(&bytes);
    return a->memory->status;
}

hf_status hf_memo_upserted(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_properties_modified_event_attributes *attrs =
        event->workflow_properties_modified_event_attributes;
    return attrs->upserted_memo != NULL ? upsert(a, &run->memo, attrs->upserted_memo) : HF_OK;
}

hf_status hf_attributes_upserted(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_upsert_workflow_search_attributes_event_attributes *attrs =
        event->upsert_workflow_search_attributes_event_attributes;
    if (attrs->search_attributes == NULL) {
        return HF_OK;
    }
    const hf_pb_search_attributes_indexed_fields_entry_list *given = &attrs->search_attributes->indexed_fields;
    hf_pb_memo as_memo = {0};
    as_memo.fields.items = HF_ARENA_ARRAY(a->memory->scratch, hf_pb_memo_fields_entry, given->count);
    if (a->memory->scratch->status != HF_OK) {
        hf_run_memory_fail(a->memory);
        return HF_ERR_NOMEM;
    }
    for (; as_memo.fields.count < given->count; as_memo.fields.count++) {
        as_memo.fields.items[as_memo.fields.count].key = given->items[as_memo.fields.count].key;
        as_memo.fields.items[as_memo.fields.count].value = given->items[as_memo.fields.count].value;
    }
    return upsert(a, &run->search_attributes, &as_memo);
}
