#include "ledger/meta.h"

#include "proto/pb.h"

#include <string.h>

static const hf_key META_KEY = {HF_STR_INIT("engine"), 0, 0};

hf_status hf_meta_read(hf_op *op, hf_store *store, hf_arena *arena, hf_meta *ret_meta, bool *ret_found)
{
    *ret_meta = (hf_meta){0};
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_META, .key = META_KEY, .arena = arena};
    HF_TRY(hf_store_ask(op, store, &get));
    *ret_found = get.found;
    if (!get.found) {
        return HF_OK;
    }
    hf_str body = {0};
    hf_pb_engine_meta msg;
    HF_TRY(hf_record_open(op, HF_TABLE_META, &META_KEY, get.value, &body));
    HF_TRY(hf_pb_decode(op, &hf_pb_engine_meta_type, body, arena, &msg));
    if (msg.mac_key.len != sizeof ret_meta->mac_key || msg.incarnation == UINT64_MAX) { /* no next one */
        return hf_fail(op, HF_ERR_INVALID, "the store's meta record is damaged");
    }
    memcpy(ret_meta->mac_key, msg.mac_key.data, sizeof ret_meta->mac_key);
    ret_meta->incarnation = msg.incarnation;
    ret_meta->names = msg.names;
    ret_meta->namespaces = msg.namespaces;
    return HF_OK;
}

void hf_meta_put(hf_writes *writes, const hf_meta *meta)
{
    hf_assert(meta->incarnation > 0 && meta->names == HF_META_NAMES && meta->namespaces == HF_META_NAMESPACES);
    hf_pb_engine_meta msg = {
        .mac_key = hf_str_of_len(meta->mac_key, sizeof meta->mac_key),
        .incarnation = meta->incarnation,
        .names = meta->names,
        .namespaces = meta->namespaces,
    };
    hf_writes_put_message(writes, HF_TABLE_META, META_KEY, &hf_pb_engine_meta_type, &msg);
}
