/* What others see of a run: its memo and its search attributes. Both are maps of the same form.
 *
 * The run knows both as they are now: those of its start, and what its code has set since. So they depend on the code and on
 * the first event alone, in a replay, too. hf_continue_as_new takes them along (HF_WF_RULE_CARRIES). */
#include "worker/wf.h"

#include "fiber/crew/strand.h"
#include "fiber/verbs.h"
#include "history/limits.h"
#include "history/payload.h"

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
        if (count == HF_FIELDS_MAX) {
            return hf_fail(op, HF_ERR_INVALID, "%s: there are more than %d fields", verb, HF_FIELDS_MAX);
        }
        const char *key = fields[count].key;
        HF_TRY(hf_text_check(op, verb, "a key", key != NULL ? key : "", 1, HF_ID_LEN_MAX));
        for (size_t i = 0; i < count; i++) {
            if (strcmp(fields[i].key, key) == 0) {
                return hf_fail(op, HF_ERR_INVALID, "%s: the key '%.100s' is there twice", verb, key);
            }
        }
    }
    hf_assert(count <= HF_FIELDS_MAX);
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
    hf_assert(count > 0 && count <= HF_FIELDS_MAX);
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

/* ---- As the run has them --------------------------------------------------------------------------------------------- */

enum { ENTRY_LEN = 16 }; /* of an entry in its message: tags and lengths beside the key and the value */

static size_t len_of(const hf_wf_field *field)
{
    return ENTRY_LEN + field->key_len + field->value_len;
}

/* The memo or the search attributes; NULL = there never were any. */
static hf_wf_fields *fields_of(const hf_wf *wf, int which)
{
    return wf->fields != NULL ? &wf->fields[which] : NULL;
}

/* The same, made if need be. NULL = no memory. */
static hf_wf_fields *fields_for(hf_wf *wf, int which)
{
    if (wf->fields == NULL) {
        wf->fields = HF_ARENA_ARRAY(&wf->kept, hf_wf_fields, HF_WF_FIELDS_COUNT);
        for (int i = 0; wf->fields != NULL && i < HF_WF_FIELDS_COUNT; i++) {
            hf_list_init(&wf->fields[i].list);
            wf->fields[i].len = 0;
        }
    }
    return fields_of(wf, which);
}

size_t hf_wf_fields_len(const hf_wf *wf)
{
    return wf->fields != NULL ? wf->fields[HF_WF_MEMO].len + wf->fields[HF_WF_SEARCH].len : 0;
}

static hf_wf_field *find_field(const hf_wf_fields *fields, hf_str key)
{
    HF_LIST_EACH(node, &fields->list)
    {
        hf_wf_field *field = HF_CONTAINER(node, hf_wf_field, node);
        if (hf_str_equal(key, hf_str_of_len(field->bytes, field->key_len))) {
            return field;
        }
    }
    return NULL;
}

static void remove_field(hf_wf *wf, hf_wf_fields *fields, hf_wf_field *field)
{
    hf_assert(fields->len >= len_of(field));
    fields->len -= len_of(field);
    hf_list_remove(&field->node);
    wf->worker->memory.release(wf->worker->memory.state, field, sizeof *field + field->key_len + field->value_len);
}

/* Payloads that mean "no value", to the engine, too (run/attributes.c). */
static bool is_nothing(const hf_pb_payload *payload)
{
    return payload == NULL || payload->data.len == 0 || hf_str_equal(payload->data, HF_STR("null")) ||
           hf_str_equal(payload->data, HF_STR("[]"));
}

/* False: no memory. */
static bool put_field(hf_wf *wf, hf_wf_fields *fields, const entry *from)
{
    hf_allocator memory = wf->worker->memory;
    hf_wf_field *old = find_field(fields, from->key);
    if (old != NULL) {
        remove_field(wf, fields, old);
    }
    if (is_nothing(from->value)) {
        return true;
    }
    hf_buf value;
    hf_buf_init(&value, memory, SIZE_MAX / 4);
    hf_pb_encode(&hf_pb_payload_type, from->value, &value);
    hf_wf_field *field =
        value.status == HF_OK
            ? memory.allocate(memory.state, sizeof *field + from->key.len + value.len, _Alignof(hf_wf_field))
            : NULL;
    if (field != NULL) {
        *field = (hf_wf_field){.key_len = from->key.len, .value_len = value.len};
        memcpy(field->bytes, from->key.data, from->key.len);
        memcpy(field->bytes + from->key.len, value.data, value.len);
        hf_list_push_back(&fields->list, &field->node);
        fields->len += len_of(field);
    }
    hf_buf_deinit(&value);
    return field != NULL;
}

static hf_pb_memo_fields_entry_list as_entries(hf_pb_search_attributes *search)
{
    return (hf_pb_memo_fields_entry_list){(entry *)(void *)search->indexed_fields.items, search->indexed_fields.count};
}

static bool put_all(hf_wf *wf, int which, const hf_pb_memo_fields_entry_list *list)
{
    hf_wf_fields *fields = list->count > 0 ? fields_for(wf, which) : NULL;
    bool is_good = fields != NULL || list->count == 0;
    for (size_t i = 0; is_good && i < list->count; i++) {
        is_good = put_field(wf, fields, &list->items[i]);
    }
    return is_good;
}

bool hf_wf_fields_learn(hf_wf *wf, const hf_pb_workflow_execution_started_event_attributes *started)
{
    hf_assert(wf->fields == NULL && (started->retry_policy == NULL || wf->origin != NULL)); /* hf_wf_learn */
    if (started->retry_policy != NULL) {
        hf_buf bytes;
        hf_buf_init(&bytes, wf->worker->memory, SIZE_MAX / 4);
        hf_pb_encode(&hf_pb_retry_policy_type, started->retry_policy, &bytes);
        wf->origin->retry_policy = hf_arena_copy(&wf->kept, hf_str_of_len(bytes.data, bytes.len));
        bool is_kept = bytes.status == HF_OK && wf->kept.status == HF_OK;
        hf_buf_deinit(&bytes);
        if (!is_kept) {
            return false;
        }
    }
    if (started->search_attributes != NULL) {
        hf_pb_memo_fields_entry_list list = as_entries(started->search_attributes);
        if (!put_all(wf, HF_WF_SEARCH, &list)) {
            return false;
        }
    }
    return started->memo == NULL || put_all(wf, HF_WF_MEMO, &started->memo->fields);
}

void hf_wf_fields_free(hf_wf *wf)
{
    for (int i = 0; wf->fields != NULL && i < HF_WF_FIELDS_COUNT; i++) {
        hf_wf_fields *fields = &wf->fields[i];
        while (!hf_list_is_empty(&fields->list)) {
            remove_field(wf, fields, HF_CONTAINER(hf_list_first(&fields->list), hf_wf_field, node));
        }
        hf_assert(fields->len == 0); /* every field was counted once */
    }
}

/* All of them, in the recorder's arena. Fails: HF_ERR_NOMEM. */
static hf_status list_fields(hf_op *op, hf_wf *wf, const hf_wf_fields *fields, hf_pb_memo_fields_entry_list *ret_list)
{
    hf_arena *arena = &wf->recorder.arena;
    size_t count = 0;
    HF_LIST_EACH(node, &fields->list)
    {
        count++;
    }
    entry *entries = HF_ARENA_ARRAY(arena, entry, count);
    hf_pb_payload *values = HF_ARENA_ARRAY(arena, hf_pb_payload, count);
    if (entries == NULL || values == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the memo and the search attributes of the next run");
    }
    size_t i = 0;
    HF_LIST_EACH(node, &fields->list)
    {
        const hf_wf_field *field = HF_CONTAINER_CONST(node, hf_wf_field, node);
        hf_str value = hf_arena_copy(arena, hf_str_of_len(field->bytes + field->key_len, field->value_len));
        HF_TRY(hf_pb_decode(op, &hf_pb_payload_type, value, arena, &values[i]));
        entries[i].key = hf_arena_copy(arena, hf_str_of_len(field->bytes, field->key_len));
        entries[i].value = &values[i];
        i++;
    }
    hf_assert(i == count);
    *ret_list = (hf_pb_memo_fields_entry_list){entries, count};
    return arena->status == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for the next run");
}

hf_status hf_wf_fields_carry(hf_op *op, hf_wf *wf)
{
    hf_arena *arena = &wf->recorder.arena;
    if (wf->closing->type != HF_COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION ||
        !hf_wf_plays_by(wf, HF_WF_RULE_CARRIES)) {
        return HF_OK;
    }
    hf_pb_continue_as_new_workflow_execution_command_attributes *next =
        wf->closing->pb->continue_as_new_workflow_execution_command_attributes;
    hf_pb_memo_fields_entry_list list = {NULL, 0};
    const hf_wf_fields *memo = fields_of(wf, HF_WF_MEMO);
    const hf_wf_fields *search = fields_of(wf, HF_WF_SEARCH);
    if (next->memo == NULL && memo != NULL && memo->len > 0) {
        HF_TRY(list_fields(op, wf, memo, &list));
        next->memo = HF_ARENA_NEW(arena, hf_pb_memo);
        HF_TRY(next->memo != NULL ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for the memo of the next run"));
        next->memo->fields = list;
    }
    if (next->search_attributes == NULL && search != NULL && search->len > 0) {
        HF_TRY(list_fields(op, wf, search, &list));
        next->search_attributes = HF_ARENA_NEW(arena, hf_pb_search_attributes);
        HF_TRY(next->search_attributes != NULL
                   ? HF_OK
                   : hf_fail(op, HF_ERR_NOMEM, "no memory for the search attributes of the next run"));
        next->search_attributes->indexed_fields.items =
            (hf_pb_search_attributes_indexed_fields_entry *)(void *)list.items;
        next->search_attributes->indexed_fields.count = list.count;
    }
    if (next->retry_policy == NULL && wf->origin != NULL && wf->origin->retry_policy.len > 0) {
        next->retry_policy = HF_ARENA_NEW(arena, hf_pb_retry_policy);
        HF_TRY(next->retry_policy != NULL ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for the next run"));
        HF_TRY(hf_pb_decode(op, &hf_pb_retry_policy_type, wf->origin->retry_policy, arena, next->retry_policy));
    }
    return HF_OK;
}

/* The whole map goes along to the next run, and a service takes as much as it takes of one payload. */
static hf_status check_len(hf_op *op, const hf_wf *wf, const char *verb, const hf_wf_fields *fields,
                           const hf_pb_memo_fields_entry_list *list)
{
    size_t len = fields->len;
    for (size_t i = 0; i < list->count; i++) {
        const hf_wf_field *old = find_field(fields, list->items[i].key);
        hf_assert(old == NULL || len >= len_of(old)); /* check_keys: no key is there twice */
        len -= old != NULL ? len_of(old) : 0;
        len += is_nothing(list->items[i].value) ? 0 : list->items[i].key.len + list->items[i].value->data.len + 64;
    }
    return len <= HF_PAYLOAD_LEN_MAX || !hf_wf_plays_by(wf, HF_WF_RULE_CARRIES)
               ? HF_OK
               : hf_fail(op, HF_ERR_TOO_BIG, "%s: all fields of the run together have more than %u bytes", verb,
                         HF_PAYLOAD_LEN_MAX);
}

/* ---- The verbs ------------------------------------------------------------------------------------------------------ */

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
    hf_wf_fields *now = status == HF_OK ? fields_for(wf, is_search ? HF_WF_SEARCH : HF_WF_MEMO) : NULL;
    if (status == HF_OK && now == NULL) {
        status = hf_fail(&op, HF_ERR_NOMEM, "%s: no memory for the fields", verb);
    }
    if (status == HF_OK) {
        status = check_len(&op, wf, verb, now, &list);
    }
    if (status == HF_OK) {
        status = is_search ? record_search(&op, wf, &list) : record_memo(&op, wf, &list);
    }
    if (status == HF_OK && !put_all(wf, is_search ? HF_WF_SEARCH : HF_WF_MEMO, &list)) {
        status = hf_fail(&op, HF_ERR_NOMEM, "%s: no memory for the fields", verb);
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

/* ---- Reading -------------------------------------------------------------------------------------------------------- */

static hf_status give_value(hf_wf *wf, const char *verb, const hf_wf_field *field, hf_payload *ret_value)
{
    hf_op op;
    hf_op_init(&op);
    hf_arena arena;
    hf_pb_payload value = {0};
    hf_pb_payloads one = {.payloads = {&value, 1}};
    hf_arena_init(&arena, wf->worker->memory);
    hf_str bytes = hf_str_of_len(field->bytes + field->key_len, field->value_len);
    bool is_given = hf_pb_decode(&op, &hf_pb_payload_type, bytes, &arena, &value) == HF_OK &&
                    hf_payload_decode(&one, &wf->payloads, ret_value) == HF_OK;
    hf_arena_deinit(&arena);
    wf->is_nomem |= !is_given;
    return is_given ? HF_OK
                    : hf_raise(HF_ERR_NOMEM, "%s: no memory for '%.*s'", verb, (int)field->key_len, field->bytes);
}

static hf_status get(hf_wf *wf, const char *verb, const hf_wf_fields *fields, const char *key, hf_payload *ret_value)
{
    if (wf == NULL || key == NULL || ret_value == NULL) {
        return hf_raise(HF_ERR_MISUSE, "%s needs a key and a place for its value, in a workflow", verb);
    }
    const hf_wf_field *field = fields != NULL ? find_field(fields, hf_str_of(key)) : NULL;
    return field != NULL ? give_value(wf, verb, field, ret_value)
                         : hf_raise(HF_ERR_NOT_FOUND, "%s: there is no key '%.100s'", verb, key);
}

static hf_status enter_memo_get(void)
{
    HF_VERB_ENTER(self, hf_memo_get, NULL);
    HF_LEAVE(self, HF_OK);
}

hf_status hf_memo_get(const char *key, hf_payload *ret_value)
{
    HF_TRY(enter_memo_get());
    hf_wf *wf = hf_wf_self();
    return get(wf, "hf_memo_get", wf != NULL ? fields_of(wf, HF_WF_MEMO) : NULL, key, ret_value);
}

static hf_status enter_search_get(void)
{
    HF_VERB_ENTER(self, hf_search_get, NULL);
    HF_LEAVE(self, HF_OK);
}

hf_status hf_search_get(const char *key, hf_payload *ret_value)
{
    HF_TRY(enter_search_get());
    hf_wf *wf = hf_wf_self();
    return get(wf, "hf_search_get", wf != NULL ? fields_of(wf, HF_WF_SEARCH) : NULL, key, ret_value);
}
