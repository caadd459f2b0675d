/* The records of a stream as rows (ledger-T1). */
#include "base/canary.h"
#include "ledger/rows.h"
#include "run/stream.h"

_Static_assert(2 * HF_HISTORY_COUNT_MAX < HF_STREAM_BASE, "stream rows come behind all events");
_Static_assert(2 * HF_STREAM_COUNT_MAX < HF_PART_BASE - HF_STREAM_BASE, "every record has a key of its own");

void hf_run_stream_range(int64_t run, int64_t from, hf_key *ret_from, hf_key *ret_to)
{
    hf_assert(from >= 0);
    *ret_from = (hf_key){.a = run, .b = HF_STREAM_BASE + (from < HF_PART_BASE ? from : HF_PART_BASE)};
    *ret_to = (hf_key){.a = run, .b = HF_PART_BASE};
}

hf_status hf_run_stream_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_stream_row *ret_record)
{
    hf_str body = {0};
    HF_TRY(hf_record_open(op, HF_TABLE_HISTORY, &row->key, row->value, &body));
    HF_TRY(hf_pb_decode(op, &hf_pb_stream_row_type, body, arena, ret_record));
    hf_run_stream_walk walk = hf_run_stream_walk_records(ret_record->first, ret_record->records);
    hf_str element = {0};
    while (hf_run_stream_walk_next(&walk, &element)) {
    }
    if (ret_record->first != row->key.b - HF_STREAM_BASE || ret_record->count <= 0 || walk.records.len > 0 ||
        walk.sequence != ret_record->first + ret_record->count) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: the row of record %lld of its stream holds other records",
                       (long long)row->key.a, (long long)row->key.b - HF_STREAM_BASE);
    }
    return HF_OK;
}

typedef struct stream_read {
    int64_t run;
    int64_t from; /* wanted */
    int64_t next; /* of the rows so far */
    size_t len_max;
    hf_buf *out;
} stream_read;

static void take(stream_read *it, hf_run_stream_walk walk)
{
    hf_str element = {0};
    while (it->out->len < it->len_max && hf_run_stream_walk_next(&walk, &element)) {
        if (walk.sequence > it->from) {
            hf_buf_put(it->out, element.data, element.len);
            it->from = walk.sequence;
        }
    }
}

static hf_status add_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    stream_read *it = arg;
    hf_pb_stream_row record;
    HF_TRY(hf_run_stream_row_open(op, row, arena, &record));
    if (record.first != it->next) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: record %lld of its stream is missing", (long long)it->run,
                       (long long)it->next);
    }
    it->next = record.first + record.count;
    take(it, hf_run_stream_walk_records(record.first, record.records));
    return HF_OK;
}

hf_status hf_run_stream_read(hf_op *op, hf_store *store, hf_run_memory *memory, hf_run *run, int64_t from,
                             size_t len_max, hf_buf *out, int64_t *ret_next)
{
    hf_assert(from >= hf_run_stream_first(run));
    stream_read it = {
        .run = run->number, .from = from, .next = hf_run_stream_first(run), .len_max = len_max, .out = out};
    hf_key first = {0};
    hf_key end = {0};
    hf_run_stream_range(run->number, 0, &first, &end);
    HF_TRY(hf_store_each_row(op, store, memory->heap, HF_TABLE_HISTORY, &first, &end, add_row, &it));
    if (it.next != hf_run_stream_spilled(run)) {
        return hf_fail(op, HF_ERR_INVALID,
                       "run %lld: its row says that the rows of its stream end before record %lld, but they end "
                       "before %lld",
                       (long long)run->number, (long long)hf_run_stream_spilled(run), (long long)it.next);
    }
    if (it.from >= it.next) {
        take(&it, hf_run_stream_walk_log(memory, run, it.from));
    }
    *ret_next = it.from;
    return out->status == HF_OK ? memory->status : hf_fail(op, out->status, "no memory for the records of a stream");
}

static void put_stops(hf_writes *writes, const hf_run_stream *stream, hf_pb_stream_row *record)
{
    record->stops.items = HF_ARENA_ARRAY(&writes->arena, hf_pb_stream_stop, stream->stops.count);
    for (; record->stops.items != NULL && record->stops.count < stream->stops.count; record->stops.count++) {
        const hf_run_stream_stop *stop = &stream->stops.items[record->stops.count];
        record->stops.items[record->stops.count] = (hf_pb_stream_stop){.run = stop->run, .first = stop->first};
    }
    if (writes->arena.status != HF_OK) {
        hf_run_memory_fail(writes->memory);
    }
}

static void put_row(hf_writes *writes, const hf_run *run, int64_t first, int64_t count, const hf_buf *records)
{
    hf_assert(count > 0 && first + count <= 2 * HF_STREAM_COUNT_MAX); /* ledger-T1: its key is that of no part */
    hf_pb_stream_row record = {.first = first, .count = count, .records = hf_str_of_len(records->data, records->len)};
    if (first == run->stream->first) {
        put_stops(writes, run->stream, &record);
    }
    hf_writes_put_message(writes, HF_TABLE_HISTORY, (hf_key){.a = run->number, .b = HF_STREAM_BASE + first},
                          &hf_pb_stream_row_type, &record);
}

void hf_run_stream_put(hf_writes *writes, hf_run *run, size_t row_len_max)
{
    hf_run_stream *stream = run->stream;
    if (stream == NULL || stream->next == stream->spilled) {
        return;
    }
    hf_buf records;
    hf_buf_init(&records, writes->memory->heap, SIZE_MAX / 4);
    hf_run_stream_walk walk = hf_run_stream_walk_log(writes->memory, run, stream->spilled);
    int64_t first = stream->spilled;
    hf_str element = {0};
    bool is_lost = HF_CANARY(HF_BUG_STREAM_LOST) && hf_run_is_open(run);
    while (!is_lost && hf_run_stream_walk_next(&walk, &element)) {
        hf_buf_put(&records, element.data, element.len);
        if (records.len >= row_len_max) {
            put_row(writes, run, first, walk.sequence - first, &records);
            first = walk.sequence;
            records.len = 0;
        }
    }
    if (first < walk.sequence && writes->memory->status == HF_OK) {
        put_row(writes, run, first, walk.sequence - first, &records);
    }
    if (records.status != HF_OK) {
        hf_run_memory_fail(writes->memory);
    }
    hf_assert(writes->memory->status != HF_OK || is_lost || walk.sequence == stream->next); /* ledger-T1 */
    hf_buf_deinit(&records);
    hf_run_stream_written(writes->memory, run);
}
