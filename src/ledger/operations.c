#include "ledger/operations.h"

#include "ledger/numbered.h"
#include "run/run.h"

#define PREFIX HF_STR("operation/")

hf_status hf_operation_scan(hf_op *op, hf_store *store, hf_arena *arena, hf_row **ret_rows, size_t *ret_count)
{
    return hf_numbered_scan(op, store, PREFIX, arena, ret_rows, ret_count);
}

hf_status hf_operation_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_operation_record *ret_record)
{
    hf_str body;
    HF_TRY(hf_record_open(op, HF_TABLE_META, &row->key, row->value, &body));
    HF_TRY(hf_pb_decode(op, &hf_pb_operation_record_type, body, arena, ret_record));
    bool is_good = ret_record->run == hf_numbered_run(PREFIX, row) && hf_namespace_is_good(ret_record->namespace) &&
                   ret_record->job_id.len > 0 && ret_record->state > HF_OPERATION_NEW &&
                   ret_record->state < HF_OPERATION_STATE_COUNT;
    return is_good ? HF_OK
                   : hf_fail(op, HF_ERR_INVALID, "the record of the operation of run %lld is damaged",
                             (long long)ret_record->run);
}

void hf_operation_row_put(hf_writes *writes, const hf_pb_operation_record *record)
{
    hf_assert(hf_run_is_number(record->run) && record->state > HF_OPERATION_NEW);
    hf_writes_put_message(writes, HF_TABLE_META, hf_numbered_key(writes, PREFIX, record->run),
                          &hf_pb_operation_record_type, record);
}

void hf_operation_row_remove(hf_writes *writes, int64_t run)
{
    hf_writes_delete(writes, HF_TABLE_META, hf_numbered_key(writes, PREFIX, run));
}
