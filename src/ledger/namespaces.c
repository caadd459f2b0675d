#include "ledger/namespaces.h"

#define PREFIX "namespace/"
#define PREFIX_LEN (sizeof PREFIX - 1)

static hf_key key_of(hf_writes *writes, hf_str name)
{
    char text[HF_KEY_TEXT_LEN_MAX];
    hf_assert(name.len > 0 && PREFIX_LEN + name.len <= sizeof text); /* its length was checked when it was registered */
    memcpy(text, PREFIX, PREFIX_LEN);
    memcpy(text + PREFIX_LEN, name.data, name.len);
    return (hf_key){.text = hf_writes_copy(writes, hf_str_of_len(text, PREFIX_LEN + name.len))};
}

void hf_namespace_row_put(hf_writes *writes, const hf_pb_namespace_record *record)
{
    hf_writes_put_message(writes, HF_TABLE_META, key_of(writes, record->name), &hf_pb_namespace_record_type, record);
}

void hf_namespace_row_remove(hf_writes *writes, hf_str name)
{
    hf_writes_delete(writes, HF_TABLE_META, key_of(writes, name));
}

typedef struct walk {
    hf_namespace_visit *visit;
    void *arg;
} walk;

static hf_status visit_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    const walk *self = arg;
    hf_str body;
    hf_pb_namespace_record record;
    HF_TRY(hf_record_open(op, HF_TABLE_META, &row->key, row->value, &body));
    HF_TRY(hf_pb_decode(op, &hf_pb_namespace_record_type, body, arena, &record));
    hf_str name = {row->key.text.data + PREFIX_LEN, row->key.text.len - PREFIX_LEN};
    if (!hf_str_equal(name, record.name) || name.len == 0) { /* ledger-S1 */
        return hf_fail(op, HF_ERR_INVALID, "the record of the namespace '%.*s' lies under another name",
                       HF_STR_ARGS(record.name));
    }
    return self->visit(op, self->arg, &record);
}

hf_status hf_namespace_rows_read(hf_op *op, hf_store *store, hf_allocator memory, hf_namespace_visit *visit, void *arg)
{
    walk self = {visit, arg};
    hf_key from = {.text = HF_STR(PREFIX)};
    hf_key to = {.text = HF_STR("namespace0")}; /* '0' follows '/' */
    return hf_store_each_row(op, store, memory, HF_TABLE_META, &from, &to, visit_row, &self);
}
