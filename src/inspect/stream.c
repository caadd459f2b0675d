#include "inspect/stream.h"

#include "ledger/rows.h"
#include "run/stream.h"

/* The run that has the record, as far as this state knows; `*ret_next`: the first record behind the records of that run. */
static int64_t holder_of(const hf_run *run, int64_t from, int64_t *ret_next)
{
    *ret_next = hf_run_stream_next(run);
    if (from >= hf_run_stream_first(run)) {
        return run->number;
    }
    const hf_run_stream *stream = run->stream;
    size_t i = stream->stops.count;
    *ret_next = stream->first;
    while (i > 1 && stream->stops.items[i - 1].first > from) { /* the oldest one knows those before it */
        i--;
        *ret_next = stream->stops.items[i].first;
    }
    return i > 0 ? stream->stops.items[i - 1].run : 0;
}

hf_status hf_look_stream(hf_op *op, hf_look *look, int64_t number, int64_t from, size_t len_max, hf_buf *out,
                         int64_t *ret_next, bool *ret_is_end)
{
    hf_run *run = NULL;
    hf_assert(from >= 0);
    HF_TRY(hf_look_run(op, look, number, &run));
    *ret_is_end = from >= hf_run_stream_next(run);
    *ret_next = from;
    hf_status status = HF_OK;
    while (status == HF_OK && !*ret_is_end) {
        int64_t next = 0;
        int64_t holder = holder_of(run, from, &next);
        if (holder == run->number) {
            status =
                hf_run_stream_read(op, hf_look_store(look), hf_look_memory(look), run, from, len_max, out, ret_next);
            break;
        }
        hf_run *earlier = NULL;
        hf_op missing;
        hf_op_init(&missing);
        status = holder > 0 ? hf_look_run(&missing, look, holder, &earlier) : HF_ERR_NOT_FOUND;
        if (status == HF_ERR_NOT_FOUND || (status == HF_OK && hf_run_stream_next(earlier) <= from)) {
            *ret_next = next; /* it was deleted */
            status = HF_OK;
            hf_look_run_free(look, earlier);
            break;
        }
        if (status != HF_OK) {
            (void)hf_fail(op, status, "%s", missing.message);
            break;
        }
        hf_look_run_free(look, run);
        run = earlier;
    }
    hf_look_run_free(look, run);
    return status;
}
