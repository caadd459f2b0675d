/* What a memo keeps: the keys of inputs, and payloads and failures as bytes. */
#include "worker/memo_private.h"

#include "base/sha256.h"
#include "history/payload.h"

#include <stdio.h>

typedef struct hf_activity_work activity;

/* How an answer is kept: this byte, and the list of payloads as the wire has it. */
static const char KEPT = 1;

/* ---- Keys -------------------------------------------------------------------------------------------------------- */

static const char HASHED[] = "sha256:";

/* The bytes as an id: themselves if they are short enough, and cannot be taken for a hash. */
static hf_str id_of(hf_arena *arena, hf_str bytes)
{
    size_t prefix = sizeof HASHED - 1;
    bool is_hash_like = bytes.len >= prefix && memcmp(bytes.data, HASHED, prefix) == 0;
    if (bytes.len > 0 && bytes.len <= HF_MEMO_ID_LEN_MAX && !is_hash_like) {
        return hf_arena_copy(arena, bytes);
    }
    char text[sizeof HASHED - 1 + HF_SHA256_HEX_LEN];
    memcpy(text, HASHED, prefix);
    hf_sha256_hex(bytes, text + prefix);
    return hf_arena_copy(arena, hf_str_of_len(text, sizeof text));
}

/* Lengths, encoding and data of each payload. Other metadata says how a value came here, not what it is. */
static hf_str canonical(hf_arena *arena, hf_payload in)
{
    const hf_pb_payloads *list = hf_payload_encode(arena, in);
    size_t count = list != NULL ? list->payloads.count : 0;
    size_t len = 1; /* no input has an id, too */
    for (size_t i = 0; i < count; i++) {
        const hf_pb_payload *item = &list->payloads.items[i];
        len += 2 * sizeof(uint64_t) + hf_payload_encoding(item).len + item->data.len;
    }
    char *bytes = arena->status == HF_OK ? hf_arena_take(arena, len, 1) : NULL;
    if (bytes == NULL) {
        return (hf_str){NULL, 0};
    }
    char *at = bytes;
    *at++ = KEPT;
    for (size_t i = 0; i < count; i++) {
        const hf_pb_payload *item = &list->payloads.items[i];
        hf_str parts[2] = {hf_payload_encoding(item), item->data};
        for (size_t j = 0; j < HF_COUNT_OF(parts); j++) {
            for (size_t k = 0; k < sizeof(uint64_t); k++) {
                *at++ = (char)((uint64_t)parts[j].len >> (8 * k));
            }
            if (parts[j].len > 0) {
                memcpy(at, parts[j].data, parts[j].len);
            }
            at += parts[j].len;
        }
    }
    hf_assert((size_t)(at - bytes) == len);
    return id_of(arena, hf_str_of_len(bytes, len));
}

hf_status hf_memo_no_memory(activity *act, hf_pb_failure **ret_failure)
{
    hf_status status = hf_raise(HF_ERR_NOMEM, "no memory for the activity '%s'", act->facts.name);
    *ret_failure = hf_failure_encode(&act->arena, hf_error(), status);
    return status;
}

/* Fails: HF_ERR_NOMEM, and what .key returned. */
static hf_status make_id(activity *act, hf_pb_failure **ret_failure)
{
    const hf_memo *memo = &act->entry->memo;
    if (memo->key == NULL) {
        act->memo_id = canonical(&act->arena, act->in);
        return act->memo_id.data != NULL ? HF_OK : hf_memo_no_memory(act, ret_failure);
    }
    HF_AUTO(hf_payload_free) hf_payload key = hf_payload_none();
    hf_op op;
    hf_op_init(&op);
    hf_status status = memo->key(act->in, &key);
    if (status == HF_OK && hf_payload_check_result(&op, "the key of the activity's memo", key, act->in) != HF_OK) {
        status = hf_raise(op.status, "%s", op.message);
    }
    if (status != HF_OK) {
        *ret_failure = hf_failure_encode(&act->arena, hf_error_as(status), status);
        return status;
    }
    act->memo_id = id_of(&act->arena, hf_str_of_len(key.data, key.len));
    return act->memo_id.data != NULL ? HF_OK : hf_memo_no_memory(act, ret_failure);
}

hf_memo_place hf_memo_place_of(const activity *act)
{
    return (hf_memo_place){act->facts.name, act->memo_id};
}

/* ---- Payloads as they are kept ----------------------------------------------------------------------------------- */

hf_value *hf_memo_pack(hf_allocator memory, hf_payload payload)
{
    hf_arena arena;
    hf_buf buf;
    hf_value *value = NULL;
    hf_arena_init(&arena, memory);
    hf_buf_init(&buf, memory, SIZE_MAX);
    const hf_pb_payloads *list = hf_payload_encode(&arena, payload);
    hf_buf_put(&buf, &KEPT, 1);
    if (list != NULL) {
        hf_pb_encode(&hf_pb_payloads_type, list, &buf);
    }
    if (arena.status == HF_OK && hf_buf_status(&buf) == HF_OK) {
        HF_IGNORE(hf_value_copy(hf_buf_text(&buf), buf.len, &value)); /* NULL says it */
    }
    hf_buf_deinit(&buf);
    hf_arena_deinit(&arena);
    return value;
}

/* The first payload of the list says that its answer was not made for this attempt. */
static bool mark_first(hf_arena *arena, hf_pb_payloads *list, const char *mark)
{
    hf_pb_payload *first = &list->payloads.items[0];
    size_t count = first->metadata.count;
    hf_pb_payload_metadata_entry *items = HF_ARENA_ARRAY(arena, hf_pb_payload_metadata_entry, count + 1);
    if (items == NULL) {
        return false;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!hf_str_equal(first->metadata.items[i].key, HF_STR(HF_MEMO_NAME))) {
            items[used++] = first->metadata.items[i];
        }
    }
    items[used++] = (hf_pb_payload_metadata_entry){.key = HF_STR(HF_MEMO_NAME), .value = hf_str_of(mark)};
    first->metadata.items = items;
    first->metadata.count = used;
    return true;
}

/* The payload, with a mark in its metadata unless `mark` is NULL. Fails: HF_ERR_NOMEM; HF_ERR_INVALID: these bytes are not
 * an answer. */
hf_status hf_memo_unpack(hf_worker *worker, const hf_value *value, const char *mark, hf_payload *ret_payload)
{
    hf_str bytes = hf_str_of_len(hf_value_data(value), hf_value_len(value));
    if (bytes.len < 1 || bytes.data[0] != KEPT) {
        return HF_ERR_INVALID;
    }
    hf_arena arena = hf_arenas_take(&worker->arenas);
    hf_pb_payloads list = {0};
    hf_status status =
        hf_pb_decode(NULL, &hf_pb_payloads_type, hf_str_of_len(bytes.data + 1, bytes.len - 1), &arena, &list);
    if (status == HF_OK && mark != NULL && list.payloads.count > 0 && !mark_first(&arena, &list, mark)) {
        status = HF_ERR_NOMEM;
    }
    if (status == HF_OK) {
        status = hf_payload_decode(&list, NULL, ret_payload);
    }
    hf_arenas_give(&worker->arenas, &arena);
    return status;
}

void hf_memo_mark_of_hit(hf_span age, char mark[HF_MEMO_MARK_LEN])
{
    (void)snprintf(mark, HF_MEMO_MARK_LEN, "hit, age %lld s", (long long)(age.ns / 1000000000));
}

hf_value *hf_memo_pack_failure(hf_allocator memory, const hf_pb_failure *failure)
{
    hf_buf buf;
    hf_value *value = NULL;
    hf_buf_init(&buf, memory, SIZE_MAX);
    hf_pb_encode(&hf_pb_failure_type, failure, &buf);
    if (hf_buf_status(&buf) == HF_OK) {
        HF_IGNORE(hf_value_copy(hf_buf_text(&buf), buf.len, &value)); /* NULL says it */
    }
    hf_buf_deinit(&buf);
    return value;
}

hf_pb_failure *hf_memo_unpack_failure(hf_arena *arena, const hf_value *value)
{
    hf_pb_failure *failure = value != NULL ? HF_ARENA_NEW(arena, hf_pb_failure) : NULL;
    hf_str bytes = value != NULL ? hf_arena_copy(arena, hf_str_of_len(hf_value_data(value), hf_value_len(value)))
                                 : (hf_str){NULL, 0};
    bool is_there = failure != NULL && bytes.data != NULL &&
                    hf_pb_decode(NULL, &hf_pb_failure_type, bytes, arena, failure) == HF_OK;
    return is_there ? failure : NULL;
}

/* ---- Kept answers ------------------------------------------------------------------------------------------------ */

bool hf_memo_answer(activity *act, hf_status *ret_status, hf_pb_failure **ret_failure)
{
    const hf_memo *memo = &act->entry->memo;
    hf_value *value = NULL;
    hf_span age = {0};
    hf_assert(memo->ops != NULL);
    *ret_status = make_id(act, ret_failure);
    if (*ret_status != HF_OK) {
        return true;
    }
    hf_memo_place place = hf_memo_place_of(act);
    if (!memo->ops->peek(memo, &place, &value, &age)) {
        return false;
    }
    char mark[HF_MEMO_MARK_LEN];
    hf_memo_mark_of_hit(age, mark);
    *ret_status = hf_memo_unpack(act->worker, value, mark, &act->out);
    hf_value_unref(value);
    return *ret_status == HF_OK; /* else it is made again */
}
