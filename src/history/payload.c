#include "history/payload.h"

#include "history/limits.h"

hf_pb_payload hf_payload_make(hf_arena *arena, hf_str encoding, hf_str data)
{
    hf_pb_payload payload = {0};
    hf_pb_payload_metadata_entry *entry = HF_ARENA_NEW(arena, hf_pb_payload_metadata_entry);
    if (entry != NULL) {
        entry->key = HF_STR("encoding");
        entry->value = encoding;
        payload.metadata.items = entry;
        payload.metadata.count = 1;
        payload.data = data;
    }
    return payload;
}

hf_pb_payload hf_payload_json(hf_arena *arena, hf_str text)
{
    return hf_payload_make(arena, HF_ENCODING_JSON, text);
}

hf_pb_payload hf_payload_bytes(hf_arena *arena, hf_str bytes)
{
    return hf_payload_make(arena, HF_ENCODING_BINARY, bytes);
}

hf_pb_payload hf_payload_null(hf_arena *arena)
{
    return hf_payload_make(arena, HF_ENCODING_NULL, (hf_str){NULL, 0});
}

hf_pb_payloads *hf_payloads_of(hf_arena *arena, hf_pb_payload payload)
{
    hf_pb_payloads *payloads = HF_ARENA_NEW(arena, hf_pb_payloads);
    hf_pb_payload *only = HF_ARENA_NEW(arena, hf_pb_payload);
    if (payloads == NULL || only == NULL) {
        return NULL;
    }
    *only = payload;
    payloads->payloads.items = only;
    payloads->payloads.count = 1;
    return payloads;
}

hf_str hf_payload_metadata(const hf_pb_payload *payload, hf_str key)
{
    /* Of keys that are there twice the last one counts: a map read from the wire works that way. */
    for (size_t i = payload->metadata.count; i > 0; i--) {
        const hf_pb_payload_metadata_entry *entry = &payload->metadata.items[i - 1];
        if (hf_str_equal(entry->key, key)) {
            return entry->value;
        }
    }
    return (hf_str){NULL, 0};
}

hf_str hf_payload_encoding(const hf_pb_payload *payload)
{
    return hf_payload_metadata(payload, HF_STR("encoding"));
}

const hf_pb_payload *hf_payloads_first(const hf_pb_payloads *payloads)
{
    return payloads != NULL && payloads->payloads.count > 0 ? &payloads->payloads.items[0] : NULL;
}

/* Bytes of a payload beside its data: metadata and encoding overhead. */
static size_t metadata_len(const hf_pb_payload *payload)
{
    size_t len = HF_ELEMENT_LEN_MIN + payload->unknown.len;
    for (size_t i = 0; i < payload->external_payloads.count; i++) {
        len += HF_ELEMENT_LEN_MIN + payload->external_payloads.items[i].unknown.len;
    }
    for (size_t i = 0; i < payload->metadata.count; i++) {
        const hf_pb_payload_metadata_entry *entry = &payload->metadata.items[i];
        len += entry->key.len + entry->value.len + entry->unknown.len;
    }
    return len;
}

size_t hf_payloads_len(const hf_pb_payloads *payloads)
{
    size_t len = 0;
    size_t metadata = payloads != NULL ? payloads->unknown.len : 0;
    for (size_t i = 0; payloads != NULL && i < payloads->payloads.count; i++) {
        len += payloads->payloads.items[i].data.len;
        metadata += metadata_len(&payloads->payloads.items[i]);
    }
    return metadata > HF_METADATA_FREE_LEN ? len + metadata - HF_METADATA_FREE_LEN : len;
}

/* ---- Failures -------------------------------------------------------------------------------------------------- */

static hf_pb_failure *new_failure(hf_arena *arena, hf_str message, uint32_t info)
{
    hf_pb_failure *failure = HF_ARENA_NEW(arena, hf_pb_failure);
    if (failure != NULL) {
        failure->message = message;
        hf_assert(info != 0); /* a failure says what kind it is */
        failure->failure_info_case = info;
    }
    return failure;
}

hf_pb_failure *hf_failure_application(hf_arena *arena, hf_str type, hf_str message, bool non_retryable)
{
    hf_pb_failure *failure = new_failure(arena, message, HF_PB_FAILURE_APPLICATION_FAILURE_INFO);
    hf_pb_application_failure_info *info = HF_ARENA_NEW(arena, hf_pb_application_failure_info);
    if (failure == NULL || info == NULL) {
        return NULL;
    }
    info->type = type;
    info->non_retryable = non_retryable;
    failure->application_failure_info = info;
    return failure;
}

hf_pb_failure *hf_failure_timeout(hf_arena *arena, int32_t timeout_type, hf_str message)
{
    hf_pb_failure *failure = new_failure(arena, message, HF_PB_FAILURE_TIMEOUT_FAILURE_INFO);
    hf_pb_timeout_failure_info *info = HF_ARENA_NEW(arena, hf_pb_timeout_failure_info);
    if (failure == NULL || info == NULL) {
        return NULL;
    }
    info->timeout_type = timeout_type;
    failure->timeout_failure_info = info;
    failure->source = HF_STR("Server");
    return failure;
}

hf_pb_failure *hf_failure_canceled(hf_arena *arena, hf_str message, hf_pb_payloads *details)
{
    hf_pb_failure *failure = new_failure(arena, message, HF_PB_FAILURE_CANCELED_FAILURE_INFO);
    hf_pb_canceled_failure_info *info = HF_ARENA_NEW(arena, hf_pb_canceled_failure_info);
    if (failure == NULL || info == NULL) {
        return NULL;
    }
    info->details = details;
    failure->canceled_failure_info = info;
    return failure;
}

hf_pb_failure *hf_failure_terminated(hf_arena *arena, hf_str message)
{
    hf_pb_failure *failure = new_failure(arena, message, HF_PB_FAILURE_TERMINATED_FAILURE_INFO);
    hf_pb_terminated_failure_info *info = HF_ARENA_NEW(arena, hf_pb_terminated_failure_info);
    if (failure == NULL || info == NULL) {
        return NULL;
    }
    failure->terminated_failure_info = info;
    return failure;
}

hf_pb_failure *hf_failure_server(hf_arena *arena, hf_str message, bool non_retryable)
{
    hf_pb_failure *failure = new_failure(arena, message, HF_PB_FAILURE_SERVER_FAILURE_INFO);
    hf_pb_server_failure_info *info = HF_ARENA_NEW(arena, hf_pb_server_failure_info);
    if (failure == NULL || info == NULL) {
        return NULL;
    }
    info->non_retryable = non_retryable;
    failure->server_failure_info = info;
    return failure;
}

hf_str hf_failure_type(const hf_pb_failure *failure)
{
    if (failure == NULL || failure->failure_info_case != HF_PB_FAILURE_APPLICATION_FAILURE_INFO ||
        failure->application_failure_info == NULL) {
        return (hf_str){NULL, 0};
    }
    return failure->application_failure_info->type;
}
