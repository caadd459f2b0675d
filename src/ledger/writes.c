#include "ledger/writes.h"

#include <string.h>

void hf_writes_init(hf_writes *writes, hf_run_memory *memory, hf_buf *row)
{
    *writes = (hf_writes){.memory = memory, .row = row};
    hf_arena_init(&writes->arena, memory->heap);
}

void hf_writes_deinit(hf_writes *writes)
{
    HF_VEC_FREE(writes->memory, &writes->list);
    hf_arena_deinit(&writes->arena);
}

void hf_writes_reset(hf_writes *writes)
{
    hf_arena_reset(&writes->arena);
    writes->list.count = 0;
    writes->held = 0;
}

void hf_writes_shrink(hf_writes *writes, size_t len_max)
{
    hf_writes_reset(writes);
    if (writes->list.capacity * sizeof *writes->list.items > len_max) {
        HF_VEC_FREE(writes->memory, &writes->list);
        writes->list.items = NULL;
        writes->list.count = writes->list.capacity = 0;
    }
}

void hf_writes_add(hf_writes *writes, hf_write write)
{
    hf_assert(hf_table_set_has(&hf_engine_tables, write.table));
    hf_assert(write.kind == HF_WRITE_PUT || write.value.len == 0);
    if (HF_VEC_RESERVE(writes->memory, &writes->list)) {
        writes->list.items[writes->list.count++] = write;
    }
}

void hf_writes_put_key(hf_writes *writes, hf_table table, hf_key key)
{
    hf_assert(!hf_table_info_of(table)->has_value);
    hf_writes_add(writes, (hf_write){.table = table, .kind = HF_WRITE_PUT, .key = key});
}

void hf_writes_put_record(hf_writes *writes, hf_table table, hf_key key, const hf_buf *body)
{
    hf_assert(hf_table_info_of(table)->has_value);
    size_t len = HF_RECORD_HEADER_LEN + body->len;
    char *bytes = hf_arena_take(&writes->arena, len, 8);
    if (bytes == NULL || body->status != HF_OK) {
        hf_run_memory_fail(writes->memory);
        return;
    }
    if (body->len > 0) {
        memcpy(bytes + HF_RECORD_HEADER_LEN, body->data, body->len);
    }
    hf_record_seal(table, &key, bytes, body->len);
    hf_writes_add(writes, (hf_write){
                              .table = table,
                              .kind = HF_WRITE_PUT,
                              .key = key,
                              .value = hf_str_of_len(bytes, len),
                          });
}

void hf_writes_put_message(hf_writes *writes, hf_table table, hf_key key, const hf_pb_type *type, const void *msg)
{
    writes->row->len = 0;
    hf_pb_encode(type, msg, writes->row);
    hf_writes_put_record(writes, table, key, writes->row);
}

void hf_writes_delete(hf_writes *writes, hf_table table, hf_key key)
{
    hf_writes_add(writes, (hf_write){.table = table, .kind = HF_WRITE_DELETE, .key = key});
}

void hf_writes_delete_range(hf_writes *writes, hf_table table, hf_key from, hf_key to)
{
    hf_assert(hf_key_compare(&from, &to) < 0);
    hf_writes_add(writes, (hf_write){.table = table, .kind = HF_WRITE_DELETE_RANGE, .key = from, .key_end = to});
}

hf_str hf_writes_copy(hf_writes *writes, hf_str bytes)
{
    hf_str copy = hf_arena_copy(&writes->arena, bytes);
    if (writes->arena.status != HF_OK) {
        hf_run_memory_fail(writes->memory);
    }
    return copy;
}

/* ---- Pairs ------------------------------------------------------------------------------------------------------------ */

enum { PAIR_INTEGER = 1, PAIR_BYTES = 2, TAG_LEN = 1 };

static size_t varint_len(uint64_t value)
{
    size_t len = 1;
    while (value > 0x7f) {
        value >>= 7;
        len++;
    }
    return len;
}

void hf_ledger_put_pair(hf_buf *out, uint32_t number, uint64_t integer, hf_str bytes)
{
    hf_assert(integer != 0); /* runs and commits are counted from 1, and protobuf leaves a 0 out */
    size_t len = TAG_LEN + varint_len(integer) + TAG_LEN + varint_len(bytes.len) + bytes.len;
    hf_pb_put_tag(out, number, HF_PB_WIRE_BYTES);
    hf_pb_put_varint(out, len);
    size_t start = out->len;
    hf_pb_put_uint(out, PAIR_INTEGER, integer);
    hf_pb_put_bytes(out, PAIR_BYTES, bytes);
    hf_assert(out->status != HF_OK || out->len - start == len);
}
