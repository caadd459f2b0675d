#include "ledger/kept.h"

#include "base/canary.h"

#include <stdio.h>

#define PREFIX "kept/"
#define BEHIND "kept0" /* the first text after all that begin with PREFIX */
#define DIGITS 16      /* so that the order of texts is the order of runs */

enum { PREFIX_LEN = sizeof PREFIX - 1, TEXT_LEN = 24, KEPT_RUN = 1, KEPT_COMMIT = 2 };

int64_t hf_kept_run(const hf_row *row)
{
    uint64_t run = 0;
    hf_str text = row->key.text;
    for (size_t i = PREFIX_LEN; i < text.len; i++) {
        char c = text.data[i];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) {
            return 0;
        }
        run = run << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return text.len == PREFIX_LEN + DIGITS && run < INT64_MAX ? (int64_t)run : 0;
}

hf_status hf_kept_scan(hf_op *op, hf_store *store, hf_arena *arena, hf_row **ret_rows, size_t *ret_count)
{
    hf_store_request scan = {
        .verb = HF_STORE_SCAN,
        .table = HF_TABLE_META,
        .key = {.text = HF_STR(PREFIX)},
        .key_end = {.text = HF_STR(BEHIND)},
        .arena = arena,
    };
    HF_TRY(hf_store_ask(op, store, &scan));
    for (size_t i = 0; i < scan.row_count; i++) {
        if (hf_kept_run(&scan.rows[i]) == 0) {
            return hf_fail(op, HF_ERR_INVALID, "the row of kept changes '%.*s' does not name a run",
                           HF_STR_ARGS(scan.rows[i].key.text));
        }
    }
    *ret_rows = scan.rows;
    *ret_count = scan.row_count;
    return HF_OK;
}

hf_status hf_kept_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_kept_changes *ret_kept)
{
    hf_str body = {0};
    HF_TRY(hf_record_open(op, HF_TABLE_META, &row->key, row->value, &body));
    HF_TRY(hf_pb_decode(op, &hf_pb_kept_changes_type, body, arena, ret_kept));
    return ret_kept->run == hf_kept_run(row)
               ? HF_OK
               : hf_fail(op, HF_ERR_INVALID, "the changes that are kept for run %lld belong to another run",
                         (long long)hf_kept_run(row));
}

void hf_kept_add(hf_buf *body, int64_t run, uint64_t commit, hf_str changes)
{
    hf_assert(run > 0 && commit > 0);
    if (body->len == 0) {
        hf_pb_put_uint(body, KEPT_RUN, (uint64_t)run);
    }
    hf_ledger_put_pair(body, KEPT_COMMIT, commit, changes);
}

static hf_key key_of(hf_writes *writes, int64_t run)
{
    char text[TEXT_LEN];
    int len = snprintf(text, sizeof text, PREFIX "%016llx", (unsigned long long)run);
    hf_assert(len == PREFIX_LEN + DIGITS);
    return (hf_key){.text = hf_writes_copy(writes, hf_str_of_len(text, (size_t)len))};
}

void hf_kept_put(hf_writes *writes, int64_t run, const hf_buf *body)
{
    if (!HF_CANARY(HF_BUG_NOT_KEPT)) {
        hf_writes_put_record(writes, HF_TABLE_META, key_of(writes, run), body);
    }
}

void hf_kept_remove(hf_writes *writes, int64_t run)
{
    hf_writes_delete(writes, HF_TABLE_META, key_of(writes, run));
}
