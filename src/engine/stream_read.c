/* Reading streams: see stream.h. An answer that needs rows waits for them, and like every answer for the open batch. */
#include "engine/stream.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/history_read.h"
#include "engine/input_private.h"
#include "ledger/rows.h"
#include "ledger/run_id.h"

#include <stdio.h>

static void serve(hf_core *core, hf_call *call, hf_stream_want want);

/* ---- Answers ----------------------------------------------------------------------------------------------------------- */

static hf_pb_read_stream_response *respond(hf_core *core, hf_call *call, const hf_run *run, int64_t next)
{
    hf_pb_read_stream_response *response = hf_call_response(core, call);
    if (response != NULL) {
        response->next = next;
        response->run_id = hf_arena_copy(call->arena, hf_owned_str(&run->run_id));
    }
    return response;
}

/* Lets the answer go: when it waits for rows it is in the list of a batch already. */
static void let_go(hf_core *core, hf_call *call, const hf_stream_want *want)
{
    if (core->status != HF_OK) {
        return;
    }
    if (want->is_held) {
        hf_call_let_go(call);
    } else if (HF_CANARY(HF_BUG_STREAM_EARLY)) {
        hf_call_now(call);
    } else {
        hf_call_reply(core, call); /* engine-T2 */
    }
}

/* Records before this one were deleted with their run. */
static void tell_gap(hf_core *core, hf_call *call, const hf_stream_want *want)
{
    hf_pb_read_stream_response *response = call->response;
    hf_assert(want->next_first > want->from);
    HF_PROBE(core, HF_PROBE_STREAM_GAP);
    response->is_gap = response->records.len == 0;
    response->next = response->is_gap ? want->next_first : want->from;
    let_go(core, call, want);
}

static void fail(hf_core *core, hf_call *call, const hf_stream_want *want, const char *why)
{
    HF_PROBE(core, HF_PROBE_BAD_RECORD);
    hf_call_set_failure(call, HF_ERR_STORE, why);
    let_go(core, call, want);
}

/* ---- Pages ------------------------------------------------------------------------------------------------------------- */

/* A page that is being filled: records are gathered in `bytes`, and copied once. */
typedef struct page {
    hf_buf bytes;
    bool is_full;
} page;

static page page_open(hf_core *core, const hf_call *call)
{
    const hf_pb_read_stream_response *response = call->response;
    page it = {.is_full = false};
    hf_buf_init(&it.bytes, core->memory, SIZE_MAX / 4);
    hf_buf_put(&it.bytes, response->records.data, response->records.len);
    return it;
}

/* Takes records of a walk that begins at or before want->from. */
static void take(page *it, hf_stream_want *want, hf_run_stream_walk walk)
{
    hf_buf *out = &it->bytes;
    hf_str element = {0};
    while (!it->is_full && hf_run_stream_walk_next(&walk, &element)) {
        if (walk.sequence <= want->from) {
            continue;
        }
        hf_assert(walk.sequence == want->from + 1); /* engine-T1 */
        it->is_full = want->count_max == 0 || (out->len > 0 && out->len + element.len > want->len_max);
        if (!it->is_full) {
            hf_buf_put(out, element.data, element.len);
            want->from++;
            want->count_max--;
        }
    }
}

static void page_close(hf_core *core, hf_call *call, const hf_stream_want *want, page *it)
{
    hf_pb_read_stream_response *response = call->response;
    response->records = hf_arena_copy(call->arena, hf_str_of_len(it->bytes.data, it->bytes.len));
    response->next = want->from + (it->is_full && HF_CANARY(HF_BUG_STREAM_SKIPS) ? 1 : 0);
    if (it->bytes.status != HF_OK || call->arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    hf_buf_deinit(&it->bytes);
    if (it->is_full) {
        HF_PROBE(core, HF_PROBE_STREAM_PAGED);
    }
}

/* ---- Rows -------------------------------------------------------------------------------------------------------------- */

static void read_rows(hf_core *core, hf_call *call, hf_stream_want want)
{
    if (!want.is_held) {
        call->place = HF_PLACE_ELSEWHERE;
        call->holds = 2; /* the rows and the commit */
        want.is_held = true;
        hf_call_reply(core, call);
    }
    hf_read *read = hf_read_new(core, HF_READ_STREAM, HF_TABLE_HISTORY);
    if (read == NULL) {
        return;
    }
    const hf_pb_read_stream_response *response = call->response;
    read->call = call;
    read->stream = want;
    hf_store_request *request = &read->request;
    if (want.stage == HF_STREAM_ROW) {
        hf_run_stream_range(want.run, 0, &request->key, &request->key_end);
        request->key_end.b = HF_STREAM_BASE + want.from + 1;
        request->backwards = true;
        request->row_max = 1;
    } else if (want.stage == HF_STREAM_STOPS) {
        hf_run_stream_range(want.run, 0, &request->key, &request->key_end);
        request->row_max = 1;
    } else {
        hf_run_stream_range(want.run, want.from, &request->key, &request->key_end);
        request->len_max = response->records.len < want.len_max ? want.len_max - response->records.len : 1;
        request->row_max = want.count_max + 1; /* a row has one record at least */
    }
    hf_read_submit(core, read);
}

/* The run whose records hold want->from, among these stops: the oldest one that is known begins behind it, or one of them has it. */
static void choose(const hf_run_stream_stop *stops, size_t count, int64_t end, hf_stream_want *want)
{
    size_t i = count;
    while (i > 0 && stops[i - 1].first > want->from) {
        i--;
    }
    want->next_first = i < count ? stops[i].first : end;
    if (i > 0) {
        want->run = stops[i - 1].run;
        want->stage = HF_STREAM_ROW;
    } else {
        want->run = count > 0 ? stops[0].run : 0;
        want->stage = HF_STREAM_STOPS;
    }
}

static void stops_read(hf_core *core, hf_read *read)
{
    hf_stream_want want = read->stream;
    hf_pb_stream_row row = {0};
    bool is_there = read->request.row_count > 0;
    if (is_there && hf_run_stream_row_open(&core->op, &read->request.rows[0], &core->scratch, &row) != HF_OK) {
        fail(core, read->call, &want, core->op.message);
        return;
    }
    hf_run_stream_stop stops[HF_STREAM_STOPS_MAX];
    size_t count = 0;
    for (; is_there && count < row.stops.count && count < HF_STREAM_STOPS_MAX; count++) {
        stops[count] = (hf_run_stream_stop){row.stops.items[count].run, row.stops.items[count].first};
    }
    bool is_older = count > 0 && stops[count - 1].first < want.next_first && stops[count - 1].run < want.run;
    if (!is_older) { /* the run is gone, or was the first */
        tell_gap(core, read->call, &want);
        return;
    }
    HF_PROBE(core, HF_PROBE_STREAM_FAR);
    choose(stops, count, want.next_first, &want);
    serve(core, read->call, want);
}

void hf_read_stream_rows(hf_core *core, hf_read *read)
{
    hf_stream_want want = read->stream;
    hf_call *call = read->call;
    hf_assert(want.is_held && call->response != NULL);
    if (want.stage == HF_STREAM_STOPS) {
        stops_read(core, read);
        return;
    }
    int64_t before = want.from;
    bool is_bad = false;
    page it = page_open(core, call);
    for (size_t i = 0; i < read->request.row_count && !it.is_full && !is_bad; i++) {
        hf_pb_stream_row row;
        is_bad = hf_run_stream_row_open(&core->op, &read->request.rows[i], &core->scratch, &row) != HF_OK;
        if (is_bad || row.first > want.from || row.first + row.count <= want.from) {
            break; /* the one that was asked for is not there */
        }
        take(&it, &want, hf_run_stream_walk_records(row.first, row.records));
    }
    page_close(core, call, &want, &it);
    if (core->status != HF_OK) {
        return;
    }
    if (is_bad) {
        fail(core, call, &want, core->op.message);
        return;
    }
    bool is_full = it.is_full;
    bool is_short = want.from == before && !is_full;
    if (is_short && want.stage == HF_STREAM_ROW && want.next_first > want.from) {
        tell_gap(core, call, &want);
    } else if (is_short && want.stage == HF_STREAM_ROW) {
        char why[HF_MESSAGE_LEN_MAX];
        (void)snprintf(why, sizeof why, "run %lld: record %lld of its stream is missing", (long long)want.run,
                       (long long)want.from);
        fail(core, call, &want, why);
    } else if (!is_full && want.stage == HF_STREAM_ROW) {
        want.stage = HF_STREAM_MORE;
        read_rows(core, call, want);
    } else {
        let_go(core, call, &want);
    }
}

/* The run want.run has the record, or had: answers from its log or its rows. */
static void serve(hf_core *core, hf_call *call, hf_stream_want want)
{
    hf_run *run = hf_run_find(core, want.run);
    bool is_here = run != NULL && !HF_SLOT(run)->loading && !HF_SLOT(run)->bad && run->stream != NULL;
    if (want.run == 0 || (is_here && run->deleting != HF_DELETING_NOT)) {
        tell_gap(core, call, &want);
    } else if (is_here && want.stage == HF_STREAM_ROW && want.from >= hf_run_stream_spilled(run)) {
        page it = page_open(core, call);
        take(&it, &want, hf_run_stream_walk_log(&core->runs_memory, run, want.from));
        page_close(core, call, &want, &it);
        let_go(core, call, &want);
    } else {
        HF_PROBE(core, HF_PROBE_STREAM_FROM_ROWS);
        read_rows(core, call, want);
    }
}

/* ---- ReadStream -------------------------------------------------------------------------------------------------------- */

void hf_read_stream_end(hf_core *core, hf_call *call)
{
    REQUEST(read_stream);
    hf_assert(call->method == HF_METHOD_READ_STREAM && call->led_to != 0);
    hf_pb_read_stream_response *response = hf_call_response(core, call);
    if (response != NULL) {
        HF_PROBE(core, HF_PROBE_STREAM_ENDED);
        response->next = request->from;
        response->run_id =
            hf_arena_copy(call->arena, request->execution != NULL ? request->execution->run_id : HF_STR(""));
        response->is_end = true;
        hf_call_reply(core, call);
    }
}

/* Nothing follows in this run, which is closed: the call goes on with the next run of its chain. */
static void go_on(hf_core *core, hf_call *call, const hf_run *run)
{
    REQUEST(read_stream);
    hf_str id = hf_owned_str(run->reset_run_id.len > 0 ? &run->reset_run_id : &run->next_run_id);
    int64_t number = id.len > 0 ? hf_run_id_number(core->mac_key, id) : 0;
    bool is_last = number <= run->number || number >= core->run_next || hf_resets_make(core, number);
    if (is_last || call->hops >= HF_STREAM_HOPS_MAX) {
        hf_pb_read_stream_response *response = respond(core, call, run, request->from);
        if (response != NULL) {
            HF_PROBE(core, HF_PROBE_STREAM_ENDED);
            response->is_end = is_last;
            hf_call_reply(core, call);
        }
        return;
    }
    call->led_to = number;
    call->hops++;
    hf_run *next = hf_run_load(core, number);
    if (next != NULL) {
        HF_PROBE(core, HF_PROBE_STREAM_FOLLOWED);
        hf_input_run(core, call, next);
    }
}

void hf_read_stream_call(hf_core *core, hf_call *call, hf_run *run)
{
    REQUEST(read_stream);
    if (request->from < 0) {
        hf_call_refuse(core, call, "From is negative: records of a stream are numbered from 0 on.");
        return;
    }
    if (run->deleting != HF_DELETING_NOT) { /* since the reader began to wait */
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "there is no such run: it was deleted");
        return;
    }
    bool is_there = request->from < hf_run_stream_next(run);
    if (!is_there && !hf_run_is_open(run)) {
        go_on(core, call, run);
        return;
    }
    if (respond(core, call, run, request->from) == NULL) {
        return;
    }
    if (!is_there && request->wait_new_record) { /* the response is kept for the case that nothing comes */
        hf_watch_park(core, call, run->number);
        return;
    }
    if (!is_there) {
        hf_call_reply(core, call);
        return;
    }
    size_t len_max = request->maximum_page_bytes > 0 ? (size_t)request->maximum_page_bytes : HF_STREAM_PAGE_LEN;
    hf_stream_want want = {
        .run = run->number,
        .from = request->from,
        .stage = HF_STREAM_ROW,
        .count_max = request->maximum_page_size > 0 ? (size_t)request->maximum_page_size : HF_STREAM_PAGE_COUNT,
        .len_max = len_max < HF_STREAM_PAGE_LEN_MAX ? len_max : HF_STREAM_PAGE_LEN_MAX,
    };
    if (want.from < hf_run_stream_first(run)) {
        choose(run->stream->stops.items, run->stream->stops.count, run->stream->first, &want);
    }
    serve(core, call, want);
}

bool hf_read_stream_has_news(const hf_call *call, const hf_run *run)
{
    REQUEST(read_stream);
    return request->from < hf_run_stream_next(run) || !hf_run_is_open(run);
}

void hf_read_stream_expire(hf_core *core, hf_call *call)
{
    hf_watch_remove(core, call);
    hf_assert(call->response != NULL); /* made before it was parked */
    hf_call_reply(core, call);
}
