#include "ledger/journal.h"

#include "base/digest.h"
#include "ledger/names.h"
#include "run/run.h"

/* Field numbers of JournalCommit, for the writer. The reader uses the generated struct. */
enum {
    COMMIT_NUMBER = 1,
    COMMIT_TIME = 2,
    COMMIT_PREVIOUS = 3,
    COMMIT_RUN = 4,
    COMMIT_RUN_NEXT = 5,
    COMMIT_ORDER_NEXT = 6,
    COMMIT_NAMES = 7,
    COMMIT_NAMES_LOGGED = 8,
    COMMIT_GONE = 9,
    COMMIT_HELD = 10
};

#define HELD_MAX ((uint64_t)INT64_MAX / 2) /* more rows than a file can have */

/* ---- Reading ------------------------------------------------------------------------------------------------------------ */

/* Whether a counter is valid; 0 = the commit does not change it. */
static bool may_be_next(int64_t number)
{
    return number == 0 || hf_run_is_number(number);
}

hf_status hf_journal_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_commit_read *ret_commit)
{
    hf_str body = {0};
    hf_op bad;
    hf_op_init(&bad);
    hf_pb_journal_commit *fields = &ret_commit->fields;
    HF_TRY(hf_record_open(op, HF_TABLE_JOURNAL, &row->key, row->value, &body));
    hf_status status = hf_pb_decode(&bad, &hf_pb_journal_commit_type, body, arena, fields);
    if (status != HF_OK && status != HF_ERR_INVALID) {
        return hf_fail(op, status, "%s", bad.message);
    }
    if (status != HF_OK || !hf_run_is_number(row->key.a) || fields->commit != (uint64_t)row->key.a ||
        !may_be_next(fields->next_run) || !may_be_next(fields->next_order) || fields->held > HELD_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "commit %lld of the journal cannot be read", (long long)row->key.a);
    }
    for (size_t i = 0; i < fields->runs.count; i++) {
        if (!hf_run_is_number(fields->runs.items[i].run)) {
            return hf_fail(op, HF_ERR_INVALID, "commit %lld of the journal has changes of a run that cannot exist",
                           (long long)row->key.a);
        }
    }
    hf_str rest = fields->gone;
    hf_name_entry gone;
    bool is_good = true;
    while (hf_names_next(&rest, &gone)) {
        is_good = is_good && hf_run_is_number(gone.run) && !hf_name_is_gone(&gone);
    }
    if (!is_good || rest.len > 0) {
        return hf_fail(op, HF_ERR_INVALID, "commit %lld of the journal deletes a run that cannot exist",
                       (long long)row->key.a);
    }
    ret_commit->hash = hf_digest(fields->previous, body);
    ret_commit->len = body.len;
    return HF_OK;
}

bool hf_journal_next_gone(hf_str *rest, int64_t *ret_run)
{
    hf_name_entry entry;
    if (!hf_names_next(rest, &entry)) {
        return false;
    }
    *ret_run = entry.run;
    return true;
}

int64_t hf_journal_held(const hf_commit_read *commit)
{
    return (int64_t)commit->fields.held - 1;
}

typedef struct walk {
    hf_journal_span *span;
    hf_commit_visit *visit;
    void *arg;
} walk;

static hf_status visit_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    walk *w = arg;
    hf_journal_span *span = w->span;
    bool is_first = span->first == 0;
    hf_commit_read commit;
    if (!is_first && (uint64_t)row->key.a != span->last + 1) {
        return hf_fail(op, HF_ERR_INVALID, "commit %llu of the journal is missing", (unsigned long long)span->last + 1);
    }
    HF_TRY(hf_journal_open(op, row, arena, &commit));
    if (!is_first && commit.fields.previous != span->hash) {
        return hf_fail(op, HF_ERR_INVALID, "commit %lld of the journal does not follow the one before",
                       (long long)row->key.a);
    }
    span->first = is_first ? commit.fields.commit : span->first;
    span->last = commit.fields.commit;
    span->hash = commit.hash;
    hf_assert(span->first <= span->last); /* ledger-J1 */
    return w->visit(op, w->arg, &commit, arena);
}

hf_status hf_journal_walk(hf_op *op, hf_store *store, hf_allocator memory, hf_commit_visit *visit, void *arg,
                          hf_journal_span *ret_span)
{
    *ret_span = (hf_journal_span){0};
    walk w = {.span = ret_span, .visit = visit, .arg = arg};
    return hf_store_each_row(op, store, memory, HF_TABLE_JOURNAL, NULL, NULL, visit_row, &w);
}

/* ---- Writing ------------------------------------------------------------------------------------------------------------ */

void hf_journal_begin(hf_buf *out, uint64_t commit, int64_t time, uint64_t previous)
{
    static const char HEADER[HF_RECORD_HEADER_LEN] = {0};
    hf_assert(commit > 0);
    out->len = 0;
    hf_buf_put(out, HEADER, sizeof HEADER);
    hf_pb_put_uint(out, COMMIT_NUMBER, commit);
    hf_pb_put_uint(out, COMMIT_TIME, (uint64_t)time);
    hf_pb_put_tag(out, COMMIT_PREVIOUS, HF_PB_WIRE_64);
    hf_buf_put(out, &previous, sizeof previous);
}

void hf_journal_put_run(hf_buf *out, int64_t run, hf_str changes)
{
    hf_assert(hf_run_is_number(run) && changes.len > 0); /* ledger-J2: only runs that changed are in the row */
    hf_ledger_put_pair(out, COMMIT_RUN, (uint64_t)run, changes);
}

void hf_journal_end(hf_buf *out, const hf_journal_tail *tail, uint64_t commit, uint64_t previous, hf_writes *writes,
                    uint64_t *ret_hash, size_t *ret_len)
{
    hf_assert(hf_run_is_number(tail->run_next) && hf_run_is_number(tail->order_next));
    hf_pb_put_uint(out, COMMIT_RUN_NEXT, (uint64_t)tail->run_next);
    hf_pb_put_uint(out, COMMIT_ORDER_NEXT, (uint64_t)tail->order_next);
    if (tail->names.len > 0) {
        hf_pb_put_bytes(out, COMMIT_NAMES, tail->names);
    }
    hf_pb_put_uint(out, COMMIT_NAMES_LOGGED, tail->names_logged);
    if (tail->gone.len > 0) {
        hf_pb_put_bytes(out, COMMIT_GONE, tail->gone);
    }
    hf_assert(tail->held >= 0); /* ledger-J4 */
    hf_pb_put_uint(out, COMMIT_HELD, (uint64_t)tail->held + 1);
    *ret_hash = previous;
    *ret_len = 0;
    if (out->status != HF_OK) {
        hf_run_memory_fail(writes->memory);
        return;
    }
    hf_key key = {.a = (int64_t)commit};
    hf_str body = hf_str_of_len(out->data + HF_RECORD_HEADER_LEN, out->len - HF_RECORD_HEADER_LEN);
    hf_record_seal(HF_TABLE_JOURNAL, &key, out->data, body.len);
    hf_writes_add(writes, (hf_write){
                              .table = HF_TABLE_JOURNAL,
                              .kind = HF_WRITE_PUT,
                              .key = key,
                              .value = hf_str_of_len(out->data, out->len),
                          });
    *ret_hash = hf_digest(previous, body);
    *ret_len = body.len;
}
