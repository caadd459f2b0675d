/* A page of a history: consecutive events, as many as fit, and a token for the next page.
 *
 *     rows of the history table            the run's log
 *     [1 .. 40] [41 .. 97] [98 .. 130]     131 .. event_count
 *                   ^ next                          ^ to
 *
 * Rows are keyed by their first event, so the row that holds an event is the last one that begins at or before it: a scan of one
 * row, backwards. The rows after it are scanned forwards, no more than the page has room for. The log's part is copied when the
 * call comes, because the run may have left memory by the time its rows are read.
 *
 * An answer that needs rows waits for them; like every answer it also waits for the open batch, so that nobody sees an event
 * that a crash could take back.
 *
 * engine-G1  A page has an event, unless there is none; it is longer than its bound only if its first event alone is, or by the two
 *     events of a transient workflow task, which follow the last one on the same page.
 * engine-G2  Pages are without gaps: the token names the first event that did not fit. */
#include "engine/history_page.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/history_read.h"
#include "engine/load.h"
#include "engine/token.h"
#include "ledger/rows.h"

#include <stdio.h>

typedef struct filling {
    hf_page_want *want;
    hf_buf out;
    size_t len_max; /* of the page */
    size_t before;  /* bytes of it that earlier reads have brought */
    bool is_full;
} filling;

static filling begin(hf_core *core, hf_page_want *want)
{
    filling f = {.want = want, .len_max = core->options.history_page_len, .before = want->ret_history->len};
    hf_buf_init(&f.out, core->memory, SIZE_MAX / 4);
    return f;
}

/* Takes the wanted events out of History bytes, or a log, whose first event is `id`. */
static void fill(filling *f, hf_str events, int64_t id)
{
    hf_page_want *want = f->want;
    hf_pb_raw field;
    while (!f->is_full && id <= want->to && events.len > 0 && hf_pb_next(&events, &field)) {
        if (field.number != HF_CHANGE_EVENT) {
            continue;
        }
        if (id++ < want->page.next) {
            continue;
        }
        size_t len = f->before + f->out.len;
        if (want->count_max == 0 || (len > 0 && len + field.whole.len > f->len_max)) {
            f->is_full = true;
            return;
        }
        hf_assert(id == want->page.next + 1); /* engine-G2 */
        hf_buf_put(&f->out, field.whole.data, field.whole.len);
        want->page.next++;
        want->count_max--;
    }
}

/* Puts the events that were found into the answer; false: no memory. */
static bool keep(hf_core *core, hf_call *call, filling *f)
{
    hf_str before = *f->want->ret_history;
    if (f->out.status == HF_OK && before.len == 0) {
        *f->want->ret_history = hf_arena_copy(call->arena, hf_str_of_len(f->out.data, f->out.len));
    } else if (f->out.status == HF_OK && f->out.len > 0) {
        char *both = hf_arena_take(call->arena, before.len + f->out.len, 1);
        if (both != NULL) {
            memcpy(both, before.data, before.len);
            memcpy(both + before.len, f->out.data, f->out.len);
            *f->want->ret_history = hf_str_of_len(both, before.len + f->out.len);
        }
    }
    if (f->out.status != HF_OK || call->arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    hf_buf_deinit(&f->out);
    return core->status == HF_OK;
}

/* The page is complete. */
static void finish(hf_core *core, hf_call *call, filling *f)
{
    hf_assert(f->want->page.next > f->want->to || f->before + f->out.len > 0 || f->out.status != HF_OK); /* engine-G1 */
    hf_page_want *want = f->want;
    bool is_last = want->page.next > want->to;
    if (is_last) {
        hf_buf_put(&f->out, want->extra.data, want->extra.len);
    } else {
        HF_PROBE(core, HF_PROBE_HISTORY_PAGED);
    }
    if (!is_last || want->open_end) {
        hf_page page = want->page;
        page.next += HF_CANARY(HF_BUG_PAGE_GAP);
        char bytes[HF_TOKEN_LEN];
        hf_page_encode(core, &page, bytes);
        *want->ret_token = hf_arena_copy(call->arena, hf_str_of_len(bytes, sizeof bytes));
    }
    (void)keep(core, call, f);
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------ */

/* The row that holds the next event, or those that follow it. Takes `tail`: the log's part. */
static void read_rows(hf_core *core, hf_call *call, const hf_page_want *want, int64_t in_rows, bool follow,
                      hf_owned *tail)
{
    hf_assert(want->page.next <= in_rows);
    hf_read *read = hf_read_new(core, HF_READ_HISTORY, HF_TABLE_HISTORY);
    if (read == NULL) {
        hf_owned_free(&core->runs_memory, tail);
        return;
    }
    read->call = call;
    read->want = *want;
    read->to = in_rows;
    read->tail = *tail;
    *tail = (hf_owned){NULL, 0};
    const hf_page *page = &want->page;
    if (follow || page->next == 1) {
        size_t len = want->ret_history->len;
        read->request.key = (hf_key){.a = page->run, .b = page->next};
        read->request.key_end = (hf_key){.a = page->run, .b = in_rows + 1};
        read->request.len_max = len < core->options.history_page_len ? core->options.history_page_len - len : 1;
    } else {
        read->request.key = (hf_key){.a = page->run, .b = 0};
        read->request.key_end = (hf_key){.a = page->run, .b = page->next + 1};
        read->request.backwards = true;
        read->request.row_max = 1;
    }
    hf_read_submit(core, read);
}

void hf_history_reply(hf_core *core, hf_call *call, hf_run *run, hf_page_want want)
{
    want.extra = hf_arena_copy(call->arena, want.extra); /* it may have to wait */
    filling f = begin(core, &want);
    int64_t first = 0;
    if (want.page.next > run->spilled || want.page.next > want.to) {
        hf_str log = hf_log_from(run, want.page.next, &first);
        fill(&f, log, first);
        finish(core, call, &f);
        hf_call_reply(core, call);
        return;
    }
    HF_PROBE(core, HF_PROBE_HISTORY_FROM_ROWS);
    hf_page_want behind = want; /* copies from the log no more than a page can hold */
    behind.page.next = run->spilled + 1;
    f.want = &behind;
    hf_str log = hf_log_from(run, behind.page.next, &first);
    fill(&f, log, first);
    hf_owned tail = {NULL, 0};
    hf_owned_set(&core->runs_memory, &tail, hf_str_of_len(f.out.data, f.out.len));
    if (f.out.status != HF_OK) {
        hf_core_break(core, f.out.status, "out of memory");
    }
    hf_buf_deinit(&f.out);
    call->place = HF_PLACE_ELSEWHERE;
    call->holds = 2; /* the rows and the commit */
    hf_call_reply(core, call);
    read_rows(core, call, &want, want.to < run->spilled ? want.to : run->spilled, false, &tail);
}

/* One row. Checks its record, and that it begins where the last one ended. */
static hf_status fill_row(hf_core *core, filling *f, const hf_row *row)
{
    const hf_page *page = &f->want->page;
    hf_pb_history_record record;
    HF_TRY(hf_history_row_open(&core->op, row, &core->scratch, &record));
    if (f->is_full) {
        return HF_OK;
    }
    if (record.first_id > page->next || record.last_id < page->next) {
        return hf_fail(&core->op, HF_ERR_INVALID, "run %lld: events from %lld on are missing", (long long)page->run,
                       (long long)page->next);
    }
    fill(f, record.events, record.first_id);
    bool is_short = !f->is_full && page->next <= record.last_id && page->next <= f->want->to;
    return is_short ? hf_fail(&core->op, HF_ERR_INVALID, "run %lld: event %lld is missing in its row",
                              (long long)page->run, (long long)page->next)
                    : HF_OK;
}

/* All rows of a read. A read that stopped at its bound makes a page, though a little more might fit: another read costs more. */
static hf_status fill_rows(hf_core *core, filling *f, const hf_read *read)
{
    const hf_store_request *request = &read->request;
    const hf_page *page = &f->want->page;
    for (size_t i = 0; i < request->row_count; i++) {
        HF_TRY(fill_row(core, f, &request->rows[i]));
    }
    bool is_short = request->row_count == 0 || (!request->backwards && !request->more && page->next <= read->to);
    if (is_short && !f->is_full) {
        return hf_fail(&core->op, HF_ERR_INVALID, "run %lld: events from %lld on are missing", (long long)page->run,
                       (long long)page->next);
    }
    f->is_full = f->is_full || (!request->backwards && request->more);
    return HF_OK;
}

/* The read of the rows is over: the answer now waits at most for its commit. */
static void let_go(hf_core *core, hf_call *call)
{
    if (core->status == HF_OK) {
        hf_call_let_go(call);
    }
}

void hf_history_failed(hf_core *core, hf_call *call, const char *why)
{
    HF_PROBE(core, HF_PROBE_BAD_RECORD);
    hf_call_set_failure(call, HF_ERR_STORE, why);
    let_go(core, call);
}

void hf_history_rows_read(hf_core *core, hf_read *read)
{
    hf_call *call = read->call;
    if (read->want.page.is_reverse) {
        hf_history_rows_read_back(core, read);
        return;
    }
    filling f = begin(core, &read->want);
    if (fill_rows(core, &f, read) != HF_OK) {
        hf_buf_deinit(&f.out);
        hf_history_failed(core, call, core->op.message);
    } else if (!f.is_full && read->want.page.next <= read->to) {
        HF_PROBE(core, HF_PROBE_HISTORY_MORE_ROWS);
        if (keep(core, call, &f)) {
            read_rows(core, call, &read->want, read->to, true, &read->tail);
        }
    } else {
        fill(&f, hf_owned_str(&read->tail), read->to + 1);
        finish(core, call, &f);
        let_go(core, call);
    }
}
