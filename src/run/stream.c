#include "run/stream.h"

#include "base/canary.h"
#include "history/limits.h"

#include <string.h>

static hf_run_stream *stream_of(hf_run_memory *memory, hf_run *run)
{
    if (run->stream == NULL) {
        run->stream = hf_run_alloc(memory, sizeof *run->stream);
    }
    return run->stream;
}

void hf_run_stream_free(hf_run_memory *memory, hf_run *run)
{
    hf_run_stream *stream = run->stream;
    if (stream != NULL) {
        HF_VEC_FREE(memory, &stream->stops);
        HF_VEC_FREE(memory, &stream->requests);
        HF_VEC_FREE(memory, &stream->marks);
        hf_run_release(memory, stream, sizeof *stream);
        run->stream = NULL;
    }
}

bool hf_run_stream_knows(const hf_run *run, uint64_t request)
{
    for (size_t i = run->stream != NULL ? run->stream->requests.count : 0; i > 0; i--) {
        if (run->stream->requests.items[i - 1] == request) {
            return true;
        }
    }
    return false;
}

static void remember(hf_run_memory *memory, hf_run_stream *stream, uint64_t request)
{
    hf_assert(stream->requests.count <= HF_STREAM_REQUESTS_MAX);
    if (stream->requests.count == HF_STREAM_REQUESTS_MAX) {
        stream->requests.count--;
        memmove(&stream->requests.items[0], &stream->requests.items[1], stream->requests.count * sizeof(uint64_t));
    }
    if (HF_VEC_RESERVE(memory, &stream->requests)) {
        stream->requests.items[stream->requests.count++] = request;
    }
}

static void add_stop(hf_run_memory *memory, hf_run_stream *stream, hf_run_stream_stop stop)
{
    if (HF_VEC_RESERVE(memory, &stream->stops)) {
        stream->stops.items[stream->stops.count++] = stop;
    }
}

bool hf_run_stream_follow(const hf_run *run, size_t stops_max, hf_arena *arena, hf_pb_stream_began *ret_began)
{
    const hf_run_stream *stream = run->stream;
    hf_assert(stream != NULL && stream->first <= stream->next); /* run-R7 */
    bool has_own = stream->next > stream->first;
    size_t count = stream->stops.count + (has_own ? 1 : 0);
    hf_assert(stops_max > 0 && stops_max <= HF_STREAM_STOPS_MAX);
    size_t from = count > stops_max ? count - stops_max : 0;
    *ret_began = (hf_pb_stream_began){.first = HF_CANARY(HF_BUG_STREAM_RESTARTS) ? 0 : stream->next,
                                      .len = stream->len,
                                      .stops = {HF_ARENA_ARRAY(arena, hf_pb_stream_stop, count), 0}};
    if (ret_began->stops.items == NULL) {
        return false;
    }
    for (size_t i = from; i < count; i++) {
        bool is_own = i == stream->stops.count;
        ret_began->stops.items[ret_began->stops.count++] =
            is_own ? (hf_pb_stream_stop){.run = run->number, .first = stream->first}
                   : (hf_pb_stream_stop){.run = stream->stops.items[i].run, .first = stream->stops.items[i].first};
    }
    return true;
}

/* ---- Changes ---------------------------------------------------------------------------------------------------------- */

static hf_status cannot(hf_apply *a, const hf_run *run)
{
    return hf_fail(a->op, HF_ERR_INVALID, "run %lld: records of its stream cannot follow", (long long)run->number);
}

hf_status hf_run_stream_apply_appended(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_stream_appended msg;
    HF_TRY(hf_pb_decode(a->op, &hf_pb_stream_appended_type, bytes, a->memory->scratch, &msg));
    if (run->event_count == 0 || msg.first != hf_run_stream_next(run) || msg.count <= 0 ||
        msg.count > 2 * HF_STREAM_COUNT_MAX - msg.first) {
        return cannot(a, run);
    }
    hf_run_stream *stream = stream_of(a->memory, run);
    if (stream == NULL) {
        return a->memory->status;
    }
    stream->next += msg.count;
    stream->len += (int64_t)msg.records.len;
    if (msg.request != 0) {
        remember(a->memory, stream, msg.request);
    }
    hf_assert(stream->spilled <= stream->next); /* run-R7 */
    return a->memory->status;
}

hf_status hf_run_stream_apply_began(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_stream_began msg;
    HF_TRY(hf_pb_decode(a->op, &hf_pb_stream_began_type, bytes, a->memory->scratch, &msg));
    if (run->stream != NULL || msg.first < 0 || msg.first > 2 * HF_STREAM_COUNT_MAX || msg.len < 0 ||
        msg.stops.count > HF_STREAM_STOPS_MAX) {
        return cannot(a, run);
    }
    hf_run_stream *stream = stream_of(a->memory, run);
    if (stream == NULL) {
        return a->memory->status;
    }
    stream->first = stream->spilled = stream->next = msg.first;
    stream->first_len = stream->len = msg.len;
    for (size_t i = 0; i < msg.stops.count; i++) {
        add_stop(a->memory, stream, (hf_run_stream_stop){msg.stops.items[i].run, msg.stops.items[i].first});
    }
    return a->memory->status;
}

/* ---- The state --------------------------------------------------------------------------------------------------------- */

bool hf_run_stream_encode(const hf_run *run, hf_arena *arena, hf_pb_run_state *msg)
{
    const hf_run_stream *stream = run->stream;
    if (stream == NULL) {
        return true;
    }
    msg->stream_first = stream->first;
    msg->stream_next = stream->next;
    msg->stream_len = stream->len;
    msg->stream_first_len = stream->first_len;
    msg->stream_requests = hf_str_of_len(stream->requests.items, stream->requests.count * sizeof(uint64_t));
    msg->stream_stops.items = HF_ARENA_ARRAY(arena, hf_pb_stream_stop, stream->stops.count);
    for (; arena->status == HF_OK && msg->stream_stops.count < stream->stops.count; msg->stream_stops.count++) {
        const hf_run_stream_stop *stop = &stream->stops.items[msg->stream_stops.count];
        msg->stream_stops.items[msg->stream_stops.count] = (hf_pb_stream_stop){.run = stop->run, .first = stop->first};
    }
    return arena->status == HF_OK;
}

void hf_run_stream_decode(hf_run_memory *memory, hf_run *run, const hf_pb_run_state *msg)
{
    if (msg->stream_next == 0 && msg->stream_first == 0) {
        return;
    }
    hf_run_stream *stream = stream_of(memory, run);
    if (stream == NULL) {
        return;
    }
    stream->first = msg->stream_first;
    stream->next = stream->spilled = msg->stream_next; /* everything is in rows */
    stream->len = msg->stream_len;
    stream->first_len = msg->stream_first_len;
    for (size_t i = 0; i < msg->stream_stops.count && i < HF_STREAM_STOPS_MAX; i++) {
        add_stop(memory, stream,
                 (hf_run_stream_stop){msg->stream_stops.items[i].run, msg->stream_stops.items[i].first});
    }
    for (size_t i = 0; i < msg->stream_requests.len / sizeof(uint64_t) && i < HF_STREAM_REQUESTS_MAX; i++) {
        uint64_t request = 0;
        memcpy(&request, msg->stream_requests.data + i * sizeof request, sizeof request);
        remember(memory, stream, request);
    }
}

const char *hf_run_stream_wrong(const hf_run *run)
{
    const hf_run_stream *stream = run->stream;
    if (stream == NULL) {
        return NULL;
    }
    bool is_good = stream->first >= 0 && stream->first <= stream->spilled && stream->spilled <= stream->next &&
                   stream->next <= 2 * HF_STREAM_COUNT_MAX && stream->len >= stream->first_len &&
                   stream->first_len >= 0 && stream->len < INT64_MAX / 4; /* run-R7 */
    for (size_t i = 0; is_good && i < stream->stops.count; i++) {
        const hf_run_stream_stop *stop = &stream->stops.items[i];
        is_good = hf_run_is_number(stop->run) && stop->first >= 0 && stop->first < stream->first &&
                  (i == 0 || stop[-1].first < stop->first);
    }
    return is_good ? NULL : "the numbers of its stream are impossible";
}

void hf_run_stream_written(hf_run_memory *memory, hf_run *run)
{
    hf_run_stream *stream = run->stream;
    if (stream != NULL) {
        stream->spilled = stream->next; /* run-R7 */
        HF_VEC_FREE(memory, &stream->marks);
        memset(&stream->marks, 0, sizeof stream->marks);
        stream->looked = 0;
    }
}

/* ---- Records ----------------------------------------------------------------------------------------------------------- */

/* The two fields of a change that a walk needs. */
static void open_change(hf_str bytes, int64_t *ret_first, hf_str *ret_records)
{
    hf_pb_raw field;
    *ret_first = 0; /* which is not written */
    while (bytes.len > 0 && hf_pb_next(&bytes, &field)) {
        if (field.number == 1) {
            *ret_first = (int64_t)field.value;
        } else if (field.number == 3) {
            *ret_records = field.bytes;
        }
    }
}

/* Notes where records begin in the part of the log that nobody has looked at. */
static void look(hf_run_memory *memory, hf_run *run)
{
    hf_run_stream *stream = run->stream;
    hf_str rest = hf_str_of_len(hf_buf_text(&run->log) + stream->looked, run->log.len - stream->looked);
    hf_pb_raw field;
    while (rest.len > 0 && hf_pb_next(&rest, &field)) {
        if (field.number != HF_CHANGE_STREAM_APPENDED) {
            continue;
        }
        if (!HF_VEC_RESERVE(memory, &stream->marks)) {
            return;
        }
        hf_run_stream_mark *mark = &stream->marks.items[stream->marks.count++];
        hf_str records = {0};
        stream->looked = run->log.len - rest.len;
        *mark = (hf_run_stream_mark){.at = stream->looked - field.whole.len};
        open_change(field.bytes, &mark->first, &records);
        hf_assert(mark->first >= stream->spilled && mark->first < stream->next); /* run-R7 */
    }
    stream->looked = run->log.len;
}

hf_run_stream_walk hf_run_stream_walk_log(hf_run_memory *memory, hf_run *run, int64_t from)
{
    hf_run_stream_walk walk = {.sequence = from};
    hf_run_stream *stream = run->stream;
    if (stream == NULL || from >= stream->next) {
        return walk;
    }
    hf_assert(from >= stream->spilled); /* run-R7: earlier ones are in rows */
    look(memory, run);
    if (memory->status != HF_OK) {
        return walk;
    }
    size_t low = 0; /* the last mark that begins at or before `from` */
    size_t high = stream->marks.count;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (stream->marks.items[middle].first <= from) {
            low = middle;
        } else {
            high = middle;
        }
    }
    hf_pb_raw field;
    hf_str element = {0};
    if (low < stream->marks.count) {
        size_t at = stream->marks.items[low].at;
        walk.log = hf_str_of_len(hf_buf_text(&run->log) + at, run->log.len - at);
        hf_assert(hf_pb_next(&walk.log, &field) && field.number == HF_CHANGE_STREAM_APPENDED);
        open_change(field.bytes, &walk.sequence, &walk.records);
        while (walk.sequence < from && hf_run_stream_walk_next(&walk, &element)) {
        }
        hf_assert(walk.sequence == from); /* run-R7: they are dense */
    }
    return walk;
}

bool hf_run_stream_walk_next(hf_run_stream_walk *walk, hf_str *ret_element)
{
    hf_pb_raw field;
    while (walk->records.len == 0 && walk->log.len > 0) {
        if (!hf_pb_next(&walk->log, &field)) {
            return false;
        }
        if (field.number == HF_CHANGE_STREAM_APPENDED) {
            open_change(field.bytes, &walk->sequence, &walk->records);
        }
    }
    hf_str rest = walk->records;
    if (rest.len == 0 || !hf_pb_next(&rest, &field) || field.number != HF_STREAM_RECORD_FIELD ||
        field.wire != HF_PB_WIRE_BYTES) {
        return false;
    }
    walk->records = rest;
    walk->sequence++;
    *ret_element = field.whole;
    return true;
}
