/* What others see of a run: its memo and its search attributes. Both are maps of the same form. */
#include "worker/wf.h"

#include "fiber/crew/strand.h"
#include "fiber/verbs.h"
#include "history/limits.h"
#include "history/payload.h"

enum { FIELDS_MAX = 100 };

/* The type of a search attribute, as services name it. */
static hf_str type_of(const hf_field *field)
{
    switch (field->kind) {
    case HF_FIELD_TEXT:
        return HF_STR("Keyword");
    case HF_FIELD_INT:
        return HF_STR("Int");
    case HF_FIELD_REAL:
        return HF_STR("Double");
    case HF_FIELD_BOOL:
        return HF_STR("Bool");
    case HF_FIELD_TIME:
        return HF_STR("Datetime");
    case HF_FIELD_JSON:
        return HF_STR("KeywordList");
    case HF_FIELD_NULL:
    case HF_FIELD_END:
        break;
    }
    return HF_STR("");
}

static hf_status check_keys(hf_op *op, const char *verb, const hf_field *fields, size_t *ret_count)
{
    size_t count = 0;
    for (; fields[count].kind != HF_FIELD_END; count++) {
        if (count == FIELDS_MAX) {
            return hf_fail(op, HF_ERR_INVALID, "%s: there are more than %d fields", verb, FIELDS_MAX);
        }
        const char *key = fields[count].key;
        HF_TRY(hf_text_check(op, verb, "a key", key != NULL ? key : "", 1, HF_ID_LEN_MAX));
        for (size_t i = 0; i < count; i++) {
            if (strcmp(fields[i].key, key) == 0) {
                return hf_fail(op, HF_ERR_INVALID, "%s: the key '%.100s' is there twice", verb, key);
            }
        }
    }
    hf_assert(count <= FIELDS_MAX);
    *ret_count = count;
    return count > 0 ? HF_OK : hf_fail(op, HF_ERR_INVALID, "%s needs a field", verb);
}

/* Both maps have entries of this form. */
typedef hf_pb_memo_fields_entry entry;
_Static_assert(sizeof(entry) == sizeof(hf_pb_search_attributes_indexed_fields_entry), "both maps have entries alike");

static hf_status encode(hf_op *op, const char *verb, hf_arena *arena, const hf_field *fields, size_t count,
                        bool is_typed, hf_pb_memo_fields_entry_list *ret_list)
{
    size_t len = 0;
    hf_assert(count > 0 && count <= FIELDS_MAX);
    entry *entries = HF_ARENA_ARRAY(arena, entry, count);
    hf_pb_payload *values = HF_ARENA_ARRAY(arena, hf_pb_payload, count);
    for (size_t i = 0; i < count && entries != NULL && values != NULL; i++) {
        hf_str json = {NULL, 0};
        HF_TRY(hf_field_encode(op, verb, &fields[i], arena, &json));
        hf_str type = is_typed ? type_of(&fields[i]) : HF_STR("");
        hf_pb_payload_metadata_entry *metadata = HF_ARENA_ARRAY(arena, hf_pb_payload_metadata_entry, 2);
        if (metadata == NULL) {
            break;
        }
        metadata[0] = (hf_pb_payload_metadata_entry){.key = HF_STR("encoding"), .value = HF_ENCODING_JSON};
        metadata[1] = (hf_pb_payload_metadata_entry){.key = HF_STR("type"), .value = type};
        values[i].metadata.items = metadata;
        values[i].metadata.count = type.len > 0 ? 2 : 1;
        values[i].data = json;
        entries[i].key = hf_arena_copy(arena, hf_str_of(fields[i].key));
        entries[i].value = &values[i];
        len += json.len + entries[i].key.len + 64;
    }
    if (len > HF_PAYLOAD_LEN_MAX) {
        return hf_fail(op, HF_ERR_TOO_BIG, "%s: the fields have more than %u bytes", verb, HF_PAYLOAD_LEN_MAX);
    }
    ret_list->items = entries;
    ret_list->count = count;
    return arena->status == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "%s: no memory for the fields", verb);
}

static hf_status record_memo(hf_op *op, hf_wf *wf, const hf_pb_memo_fields_entry_list *list)
{
    void *room = NULL;
    hf_command_record *record = hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES,
                                                HF_PB_COMMAND_MODIFY_WORKFLOW_PROPERTIES_COMMAND_ATTRIBUTES,
                                                sizeof(hf_pb_modify_workflow_properties_command_attributes), &room);
    hf_pb_memo *memo = HF_ARENA_NEW(&wf->recorder.arena, hf_pb_memo);
    if (record == NULL || memo == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a memo");
    }
    hf_assert(list->count > 0 && list->items != NULL);
    memo->fields = *list;
    ((hf_pb_modify_workflow_properties_command_attributes *)room)->upserted_memo = memo;
    return HF_OK;
}

static hf_status record_search(hf_op *op, hf_wf *wf, const hf_pb_memo_fields_entry_list *list)
{
    void *room = NULL;
    hf_arena *arena = &wf->recorder.arena;
    hf_command_record *record =
        hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
                        HF_PB_COMMAND_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES_COMMAND_ATTRIBUTES,
                        sizeof(hf_pb_upsert_workflow_search_attributes_command_attributes), &room);
    hf_pb_search_attributes *search = HF_ARENA_NEW(arena, hf_pb_search_attributes);
    hf_pb_search_attributes_indexed_fields_entry *entries =
        HF_ARENA_ARRAY(arena, hf_pb_search_attributes_indexed_fields_entry, list->count);
    if (record == NULL || search == NULL || entries == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for search attributes");
    }
    hf_assert(list->count > 0 && list->items != NULL);
    for (size_t i = 0; i < list->count; i++) {
        entries[i].key = list->items[i].key;
        entries[i].value = list->items[i].value;
    }
    search->indexed_fields.items = entries;
    search->indexed_fields.count = list->count;
    ((hf_pb_upsert_workflow_search_attributes_command_attributes *)room)->search_attributes = search;
    return HF_OK;
}

static hf_status set(hf_fiber *self, hf_wf *wf, const char *verb, const hf_field *fields, bool is_search)
{
    hf_op op;
    size_t count = 0;
    hf_pb_memo_fields_entry_list list = {NULL, 0};
    hf_op_init(&op);
    if (wf == NULL || fields == NULL) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s needs fields, and can only be called in a workflow", verb);
    }
    HF_TRY(hf_not_evicted(self, verb));
    HF_TRY(hf_wf_not_over(self, wf, verb));
    hf_status status = check_keys(&op, verb, fields, &count);
    if (status == HF_OK) {
        status = encode(&op, verb, &wf->recorder.arena, fields, count, is_search, &list);
    }
    if (status == HF_OK) {
        status = is_search ? record_search(&op, wf, &list) : record_memo(&op, wf, &list);
    }
    wf->is_nomem |= status == HF_ERR_NOMEM;
    return status == HF_OK ? HF_OK : hf_refuse_at(self, status, verb, "%s", op.message);
}

hf_status hf_memo_set_of(const hf_field *fields)
{
    HF_VERB_ENTER(self, hf_memo_set_of, NULL);
    HF_LEAVE(self, set(self, hf_wf_self(), "hf_memo_set", fields, false));
}

hf_status hf_search_set_of(const hf_field *fields)
{
    HF_VERB_ENTER(self, hf_search_set_of, NULL);
    HF_LEAVE(self, set(self, hf_wf_self(), "hf_search_set", fields, true));
}
