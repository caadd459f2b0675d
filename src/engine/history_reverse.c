/* GetWorkflowExecutionHistoryReverse: a history from its end, newest event first, in pages (history_page.c has them the other way round).
 *
 *     rows of the history table            the run's log
 *     [1 .. 40] [41 .. 97] [98 .. 130]     131 .. event_count
 *                              ^ page.next: the newest event that is missing in the answer so far
 *
 * The log's part is taken when the call comes, because the run may have left memory by the time its rows are read. The rows are one
 * scan backwards, no longer than the page has room for. A page is never shorter than one event, and the token names the newest event
 * that did not fit (engine-G1, engine-G2). */
#include "engine/history_read.h"

#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/history_page.h"
#include "engine/token.h"
#include "history/limits.h"
#include "ledger/rows.h"

/* The next event of History bytes, or of a log. */
static bool next_event(hf_str *rest, hf_pb_raw *ret_field)
{
    while (rest->len > 0 && hf_pb_next(rest, ret_field)) {
        if (ret_field->number == HF_CHANGE_EVENT) {
            return true;
        }
    }
    return false;
}

/* Puts the newest of these events that fit behind those in the answer; `first` is the id of the oldest. True: not all of them have fitted. */
static bool take(hf_core *core, hf_call *call, hf_page_want *want, hf_str events, int64_t first)
{
    size_t before = want->ret_history->len;
    size_t room = core->options.history_page_len > before ? core->options.history_page_len - before : 0;
    size_t len = 0;
    size_t count = 0;
    hf_pb_raw field;
    hf_str rest = events;
    for (int64_t id = first; id <= want->page.next && next_event(&rest, &field); id++) {
        len += field.whole.len;
        count++;
    }
    bool is_full = false;
    rest = events;
    while (count > want->count_max || (len > room && (before > 0 || count > 1))) {
        bool is_there = next_event(&rest, &field); /* the oldest one does not fit */
        hf_assert(is_there);
        len -= field.whole.len;
        count--;
        is_full = true;
    }
    char *bytes = hf_arena_take(call->arena, before + len, 1);
    if (bytes == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return true;
    }
    memcpy(bytes, before > 0 ? want->ret_history->data : "", before);
    *want->ret_history = hf_str_of_len(bytes, before + len);
    want->page.next -= (int64_t)count;
    want->count_max -= count;
    for (size_t at = before + len; count > 0 && next_event(&rest, &field); count--) {
        at -= field.whole.len;
        memcpy(bytes + at, field.whole.data, field.whole.len);
    }
    return is_full;
}

/* The page is complete. */
static void finish(const hf_core *core, hf_call *call, const hf_page_want *want)
{
    if (want->page.next > 0) {
        char bytes[HF_TOKEN_LEN];
        hf_page_encode(core, &want->page, bytes);
        *want->ret_token = hf_arena_copy(call->arena, hf_str_of_len(bytes, sizeof bytes));
    }
}

/* One row. Checks its record, and that it ends where the page goes on, or later. */
static hf_status take_row(hf_core *core, hf_call *call, hf_page_want *want, const hf_row *row, bool *ret_is_full)
{
    hf_pb_history_record record;
    int64_t next = want->page.next;
    HF_TRY(hf_history_row_open(&core->op, row, &core->scratch, &record));
    int64_t count = 0;
    hf_str rest = record.events;
    hf_pb_raw field;
    while (next_event(&rest, &field)) {
        count++;
    }
    if (record.first_id > next || record.last_id < next || record.first_id < 1 ||
        count != record.last_id - record.first_id + 1) {
        return hf_fail(&core->op, HF_ERR_INVALID, "run %lld: event %lld is missing in its rows",
                       (long long)want->page.run, (long long)next);
    }
    *ret_is_full = take(core, call, want, record.events, record.first_id);
    return HF_OK;
}

void hf_history_rows_read_back(hf_core *core, hf_read *read)
{
    hf_page_want *want = &read->want;
    bool is_full = false;
    hf_status status = HF_OK;
    for (size_t i = 0; i < read->request.row_count && status == HF_OK && !is_full && want->page.next > 0; i++) {
        status = take_row(core, read->call, want, &read->request.rows[i], &is_full);
    }
    if (core->status != HF_OK) {
        return;
    }
    bool is_short = want->page.next > 0 && !is_full && (read->request.row_count == 0 || !read->request.more);
    if (status == HF_OK && is_short) {
        status = hf_fail(&core->op, HF_ERR_INVALID, "run %lld: event %lld is missing in its rows",
                         (long long)want->page.run, (long long)want->page.next);
    }
    if (status != HF_OK) {
        hf_history_failed(core, read->call, core->op.message);
        return;
    }
    finish(core, read->call, want); /* a read that stopped at its bound makes a page */
    hf_call_let_go(read->call);
}

static void read_rows(hf_core *core, hf_call *call, const hf_page_want *want)
{
    size_t len = want->ret_history->len;
    hf_read *read = hf_read_new(core, HF_READ_HISTORY, HF_TABLE_HISTORY);
    if (read == NULL) {
        return;
    }
    read->call = call;
    read->want = *want;
    read->request.key = (hf_key){.a = want->page.run, .b = 0};
    read->request.key_end = (hf_key){.a = want->page.run, .b = want->page.next + 1};
    read->request.backwards = true;
    read->request.len_max = len < core->options.history_page_len ? core->options.history_page_len - len : 1;
    hf_read_submit(core, read);
}

void hf_history_reverse_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_get_workflow_execution_history_reverse_request *request = call->request;
    hf_page page = {.run = run->number, .next = run->event_count, .is_reverse = true};
    if (request->next_page_token.len > 0) {
        hf_assert(hf_page_decode(core, request->next_page_token, &page)); /* by_page of input.c has decoded it before */
    }
    if (page.next > run->event_count) {
        hf_call_fail(core, call, HF_ERR_INVALID, "NextPageToken belongs to another history");
        return;
    }
    hf_pb_get_workflow_execution_history_reverse_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    HF_PROBE(core, HF_PROBE_HISTORY_REVERSED);
    hf_page_want want = {
        .page = page,
        .count_max = request->maximum_page_size > 0 ? (size_t)request->maximum_page_size : HF_HISTORY_PAGE_COUNT,
        .ret_history = &response->history,
        .ret_token = &response->next_page_token,
    };
    bool is_full = false;
    if (page.next > run->spilled) {
        int64_t first = 0;
        hf_str log = hf_log_from(run, run->spilled + 1, &first);
        is_full = take(core, call, &want, log, first);
    }
    if (core->status != HF_OK) {
        return;
    }
    if (is_full || want.page.next == 0) {
        finish(core, call, &want);
        hf_call_reply(core, call);
        return;
    }
    HF_PROBE(core, HF_PROBE_HISTORY_FROM_ROWS);
    call->place = HF_PLACE_ELSEWHERE;
    call->holds = 2; /* the rows and the commit */
    hf_call_reply(core, call);
    read_rows(core, call, &want);
}
