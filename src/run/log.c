/* The log of a run: its changes as bytes, in order (run-R2). */
#include "run/run.h"

hf_str hf_log_from(const hf_run *run, int64_t from, int64_t *ret_first)
{
    hf_assert(from > 0 && run->spilled <= run->event_count); /* run-R2 */
    hf_mark start = {run->spilled + 1, 0};
    for (size_t i = HF_COUNT_OF(run->marks); i-- > 0;) {
        if (run->marks[i].id != 0 && from >= run->marks[i].id) {
            start = run->marks[i];
        }
    }
    *ret_first = start.id;
    return hf_str_of_len(hf_buf_text(&run->log) + start.at, run->log.len - start.at);
}

void hf_log_events(const hf_run *run, int64_t from, int64_t to, hf_buf *out)
{
    hf_assert(from > run->spilled && to <= run->event_count); /* run-R2: the others are in rows */
    int64_t id = 0;
    hf_str rest = hf_log_from(run, from, &id);
    hf_pb_raw field;
    while (rest.len > 0 && hf_pb_next(&rest, &field)) {
        if (field.number != HF_CHANGE_EVENT) {
            continue;
        }
        if (id >= from && id <= to) {
            hf_buf_put(out, field.whole.data, field.whole.len);
        }
        id++;
    }
}
