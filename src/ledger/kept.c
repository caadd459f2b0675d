#include "ledger/kept.h"

#include "base/canary.h"

#include "ledger/numbered.h"

#define PREFIX HF_STR("kept/")

enum { KEPT_RUN = 1, KEPT_COMMIT = 2 };

int64_t hf_kept_run(const hf_row *row)
{
    return hf_numbered_run(PREFIX, row);
}

hf_status hf_kept_scan(hf_op *op, hf_store *store, hf_arena *arena, hf_row **ret_rows, size_t *ret_count)
{
    return hf_numbered_scan(op, store, PREFIX, arena, ret_rows, ret_count);
}

hf_status hf_kept_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_kept_changes *ret_kept)
{
    hf_str body = {0};
    HF_TRY(hf_record_open(op, HF_TABLE_META, &row->key, row->value, &body));
    HF_TRY(hf_pb_decode(op, &hf_pb_kept_changes_type, body, arena, ret_kept));
    return ret_kept->run == hf_kept_run(row)
               ? HF_OK
               : hf_fail(op, HF_ERR_INVALID, "the changes that are kept for run %lld belong to another run",
                         (long long)hf_kept_run(row));
}

void hf_kept_add(hf_buf *body, int64_t run, uint64_t commit, hf_str changes)
{
    hf_assert(run > 0 && commit > 0);
    if (body->len == 0) {
        hf_pb_put_uint(body, KEPT_RUN, (uint64_t)run);
    }
    hf_ledger_put_pair(body, KEPT_COMMIT, commit, changes);
}

void hf_kept_put(hf_writes *writes, int64_t run, const hf_buf *body)
{
    if (!HF_CANARY(HF_BUG_NOT_KEPT)) {
        hf_writes_put_record(writes, HF_TABLE_META, hf_numbered_key(writes, PREFIX, run), body);
    }
}

void hf_kept_remove(hf_writes *writes, int64_t run)
{
    hf_writes_delete(writes, HF_TABLE_META, hf_numbered_key(writes, PREFIX, run));
}
