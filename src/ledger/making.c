#include "ledger/making.h"

#include "base/canary.h"
#include "ledger/numbered.h"
#include "run/run.h"

#define PREFIX HF_STR("making/")

int64_t hf_making_run(const hf_row *row)
{
    return hf_numbered_run(PREFIX, row);
}

hf_status hf_making_scan(hf_op *op, hf_store *store, hf_arena *arena, hf_row **ret_rows, size_t *ret_count)
{
    return hf_numbered_scan(op, store, PREFIX, arena, ret_rows, ret_count);
}

void hf_making_put(hf_writes *writes, int64_t run, int64_t base)
{
    hf_assert(hf_run_is_number(run) && hf_run_is_number(base));
    hf_pb_run_in_making msg = {.run = run, .base = base};
    hf_writes_put_message(writes, HF_TABLE_META, hf_numbered_key(writes, PREFIX, run), &hf_pb_run_in_making_type, &msg);
}

void hf_making_remove(hf_writes *writes, int64_t run)
{
    hf_writes_delete(writes, HF_TABLE_META, hf_numbered_key(writes, PREFIX, run));
}

void hf_making_undo(hf_writes *writes, int64_t run)
{
    hf_making_remove(writes, run);
    if (!HF_CANARY(HF_BUG_MAKING_LEFT)) {
        hf_writes_delete_range(writes, HF_TABLE_HISTORY, (hf_key){.a = run}, (hf_key){.a = run + 1});
    }
}
