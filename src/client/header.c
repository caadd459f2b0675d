#include "client/header.h"

#include "fiber/verbs.h"
#include "history/limits.h"

#include <string.h>

struct hf_header {
    hf_arena *arena;
    hf_pb_header *pb;
    size_t bytes; /* of all keys and values */
};

static bool has(const hf_header *header, hf_str key)
{
    for (size_t i = 0; i < header->pb->fields.count; i++) {
        if (hf_str_equal(header->pb->fields.items[i].key, key)) {
            return true;
        }
    }
    return false;
}

static hf_status add(hf_op *op, hf_header *header, const char *key, hf_payload value)
{
    HF_TRY(hf_text_check(op, "a header", "a key", key != NULL ? key : "", 1, HF_KEY_LEN_MAX));
    if (strncmp(key, HF_HEADER_OURS, strlen(HF_HEADER_OURS)) == 0) {
        return hf_fail(op, HF_ERR_INVALID, "a header: the key '%.100s' is the library's", key);
    }
    HF_TRY(hf_payload_check(op, "a field of a header", value));
    if (value.data == NULL && value.encoding == NULL) {
        return hf_fail(op, HF_ERR_INVALID, "a header: the key '%.100s' has no value", key);
    }
    if (has(header, hf_str_of(key))) {
        return HF_OK;
    }
    size_t bytes = strlen(key) + value.len;
    if (header->pb->fields.count == HF_HEADER_COUNT_MAX || bytes > HF_HEADER_LEN_MAX - header->bytes) {
        return hf_fail(op, HF_ERR_TOO_BIG, "a header has at most %d fields and %d bytes: there is no room for '%.100s'",
                       HF_HEADER_COUNT_MAX, HF_HEADER_LEN_MAX, key);
    }
    if (header->pb->fields.items == NULL) {
        header->pb->fields.items = HF_ARENA_ARRAY(header->arena, hf_pb_header_fields_entry, HF_HEADER_COUNT_MAX);
    }
    hf_pb_payloads *list = hf_payload_encode(header->arena, value);
    hf_str copy = hf_arena_copy(header->arena, hf_str_of(key));
    if (header->pb->fields.items == NULL || list == NULL || header->arena->status != HF_OK) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a header");
    }
    hf_assert(list->payloads.count == 1);
    header->pb->fields.items[header->pb->fields.count++] =
        (hf_pb_header_fields_entry){.key = copy, .value = list->payloads.items};
    header->bytes += bytes;
    hf_assert(header->bytes <= HF_HEADER_LEN_MAX && header->pb->fields.count <= HF_HEADER_COUNT_MAX);
    return HF_OK;
}

hf_status hf_header_put(hf_header *header, const char *key, hf_payload value)
{
    hf_op op;
    hf_op_init(&op);
    if (header == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_header_put needs the header that the hook was given");
    }
    return add(&op, header, key, value) == HF_OK ? HF_OK : hf_failure_raise_op(&op);
}

hf_status hf_header_make(hf_op *op, const char *verb, const hf_service *service, const hf_entry *entries,
                         hf_arena *arena, hf_pb_header **ret_header)
{
    *ret_header = NULL;
    if (entries == NULL && service->on_header == NULL) {
        return HF_OK;
    }
    hf_header header = {.arena = arena, .pb = HF_ARENA_NEW(arena, hf_pb_header)};
    if (header.pb == NULL) {
        return hf_fail_at(op, HF_ERR_NOMEM, verb, "%s: no memory for a header", verb);
    }
    for (size_t i = 0; entries != NULL && entries[i].key != NULL; i++) {
        if (has(&header, hf_str_of(entries[i].key))) {
            return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: .header has the key '%.100s' twice", verb, entries[i].key);
        }
        HF_TRY(add(op, &header, entries[i].key, entries[i].value));
    }
    hf_status status = service->on_header != NULL ? service->on_header(service->on_header_arg, &header) : HF_OK;
    if (status != HF_OK) {
        return hf_fail_at(op, status, verb, "%s: the hook for headers failed: %.300s", verb, hf_error_text());
    }
    *ret_header = header.pb->fields.count > 0 ? header.pb : NULL;
    return HF_OK;
}
