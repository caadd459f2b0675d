#include "ledger/ended.h"

#include "ledger/rows.h"
#include "run/run.h"

int64_t hf_keeping_expiry(const hf_keeping *keepings, size_t count, hf_str namespace_, int64_t keep, int64_t close_time)
{
    int64_t at = 0;
    hf_assert(keep >= 0 && (count == 0 || keepings != NULL));
    for (size_t i = 0; i < count && keep == 0; i++) {
        keep = hf_str_equal(keepings[i].namespace_, namespace_) ? keepings[i].span : 0;
    }
    return keep == 0 || __builtin_add_overflow(close_time, keep, &at) ? INT64_MAX : at;
}

hf_status hf_ended_add(hf_op *op, const hf_row *row, const hf_keeping *keepings, size_t count, int64_t now,
                       hf_arena *arena, hf_ended_report *report)
{
    hf_pb_run_state state;
    bool is_good = false;
    HF_TRY(hf_run_row_open(op, row, arena, &state, &is_good));
    if (!is_good || state.status == HF_WORKFLOW_EXECUTION_STATUS_RUNNING || state.kind != HF_KIND_WORKFLOW) {
        return HF_OK; /* operations go by a deadline of their own */
    }
    hf_assert(row->value.len > 0 && state.spilled_len >= 0);
    int64_t stream_len =
        state.stream_len - state.stream_first_len; /* of its own records: earlier runs of its chain keep theirs */
    uint64_t len = row->value.len + (uint64_t)state.spilled_len + (stream_len > 0 ? (uint64_t)stream_len : 0);
    int64_t close_time = state.close_time != 0 ? state.close_time : state.last_time;
    report->runs++;
    report->len += len;
    if (hf_keeping_expiry(keepings, count, state.namespace, state.keep > 0 ? state.keep : 0, close_time) <= now) {
        report->expired_runs++;
        report->expired_len += len;
    }
    return HF_OK;
}
