/* Appending to streams. */
#include "engine/stream.h"

#include "engine/core_private.h"
#include "engine/emit.h"
#include "engine/size.h"
#include "history/limits.h"

bool hf_records_fit(hf_core *core, const hf_run *run, hf_pb_stream_record_list records, bool is_workflow)
{
    const hf_core_limits *limits = &core->options.limits;
    int64_t times = is_workflow ? 2 : 1;
    int64_t len = hf_run_stream_len(run);
    for (size_t i = 0; i < records.count; i++) {
        const hf_pb_stream_record *record = &records.items[i];
        size_t payload_len = hf_message_len(core, &hf_pb_payload_type, record->payload);
        if (!hf_fits(core, payload_len)) {
            (void)hf_fail(&core->op, HF_ERR_TOO_BIG, "a record of the stream has %zu bytes, at most %zu are taken",
                          payload_len, limits->payload_len);
            return false;
        }
        if (!hf_text_is_good(record->type)) {
            (void)hf_fail(&core->op, HF_ERR_INVALID, "the type of a record is longer than %d bytes, or not UTF-8",
                          HF_ID_LEN_MAX);
            return false;
        }
        len += (int64_t)(payload_len + record->type.len);
    }
    if (hf_run_stream_next(run) + (int64_t)records.count > times * limits->stream_count ||
        len > times * limits->stream_len) {
        HF_PROBE(core, HF_PROBE_STREAM_FULL);
        (void)hf_fail(&core->op, HF_ERR_LIMIT,
                      "the stream has %lld records and %lld bytes; it takes no more than %lld records and %lld bytes",
                      (long long)hf_run_stream_next(run), (long long)hf_run_stream_len(run),
                      (long long)limits->stream_count, (long long)limits->stream_len);
        return false;
    }
    return true;
}

void hf_records_append(hf_core *core, hf_run *run, hf_pb_stream_record_list records, int64_t event_id, uint64_t request)
{
    if (records.count == 0 || core->status != HF_OK) {
        return;
    }
    hf_assert(hf_run_is_open(run));
    hf_pb_stream_appended msg = {.first = hf_run_stream_next(run), .count = (int64_t)records.count, .request = request};
    hf_buf bytes;
    hf_buf_init(&bytes, core->memory, SIZE_MAX / 4);
    for (size_t i = 0; i < records.count; i++) {
        hf_pb_stream_record record = {
            .sequence = msg.first + (int64_t)i,
            .time = hf_pb_timestamp_of((hf_time){core->now.wall}),
            .type = records.items[i].type,
            .payload = records.items[i].payload,
            .event_id = event_id,
        };
        hf_pb_encode_field(HF_STREAM_RECORD_FIELD, &hf_pb_stream_record_type, &record, &bytes);
    }
    if (bytes.status != HF_OK) {
        hf_core_break(core, bytes.status, "out of memory");
    }
    msg.records = hf_str_of_len(bytes.data, bytes.len);
    HF_PROBE(core, request != 0 ? HF_PROBE_STREAM_BY_ACTIVITY : HF_PROBE_STREAM_BY_WORKFLOW);
    hf_record(core, run, HF_CHANGE_STREAM_APPENDED, &hf_pb_stream_appended_type, &msg);
    hf_buf_deinit(&bytes);
    hf_assert(core->status != HF_OK || hf_run_stream_next(run) == msg.first + msg.count); /* run-R7 */
}

void hf_records_go_on(hf_core *core, const hf_run *before, hf_run *run)
{
    if (before->stream == NULL || core->status != HF_OK) {
        return;
    }
    hf_pb_stream_began msg;
    if (!hf_run_stream_follow(before, core->options.stream_stops_max, &core->scratch, &msg)) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    HF_PROBE(core, HF_PROBE_STREAM_GOES_ON);
    hf_record(core, run, HF_CHANGE_STREAM_BEGAN, &hf_pb_stream_began_type, &msg);
}
