/* Changes of runs that cannot be read.
 *
 * A run whose records do not check when the store is opened is bad: calls for it are refused, its rows stay as they are, all
 * other runs go on. The journal may hold changes of it that no row has, and the journal is cut sooner or later. So the first
 * commit after the opening copies them to a row of the meta table, "kept/<run>". There they wait until somebody has repaired
 * the run's row: the opening that can read it again applies them, and its first commit writes the run's rows and removes
 * what was kept.
 *
 * B1  A kept row has all changes that the journal has of its run: a bad run gets no new ones, and one that is sound again
 *     gets its rows with the commit that removes the kept one.
 * B2  A run that was bad at opening stays so, and in memory, until the next opening: its row alone may look sound and yet be
 *     without changes that were answered for.
 * B3  A run with a kept row had a row: if there is none now it is bad, whatever its first changes are. */
#include "engine/core.h"

#include "base/canary.h"

#include <stdio.h>

#define PREFIX "kept/"
#define BEHIND "kept0" /* the first text behind all that begin with it */
#define DIGITS 16      /* so that the order of texts is the order of runs */

enum { PREFIX_LEN = sizeof PREFIX - 1 };

hf_key hf_kept_key(int64_t run, char text[HF_KEPT_TEXT_LEN])
{
    (void)snprintf(text, HF_KEPT_TEXT_LEN, PREFIX "%016llx", (unsigned long long)run);
    return (hf_key){.text = hf_str_of_len(text, PREFIX_LEN + DIGITS)};
}

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
    hf_op_init(&scan.op);
    hf_store_execute(store, &scan);
    if (scan.status != HF_OK) {
        return hf_fail(op, scan.status, "%s", scan.op.message);
    }
    for (size_t i = 0; i < scan.row_count; i++) {
        if (hf_kept_run(&scan.rows[i]) == 0) {
            return hf_fail(op, HF_ERR_INVALID, "a row of kept changes, '%.*s', names no run",
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
               : hf_fail(op, HF_ERR_INVALID, "changes that are kept for run %lld are another's",
                         (long long)hf_kept_run(row));
}

void hf_kept_gather(hf_core *core, hf_run *run, uint64_t commit, hf_str changes)
{
    hf_assert(HF_SLOT(run)->bad && !HF_SLOT(run)->kept); /* B1 */
    if (run->log.len == 0) {
        hf_pb_put_uint(&run->log, 1, (uint64_t)run->number);
    }
    core->events.len = 0;
    hf_pb_put_uint(&core->events, 1, commit);
    hf_pb_put_bytes(&core->events, 2, changes);
    hf_pb_put_bytes(&run->log, 2, hf_str_of_len(core->events.data, core->events.len));
    if (core->events.status != HF_OK || run->log.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}

static hf_key key_of(hf_core *core, hf_batch *batch, int64_t run)
{
    char text[HF_KEPT_TEXT_LEN];
    hf_key key = hf_kept_key(run, text);
    key.text = hf_arena_copy(&batch->arena, key.text);
    if (batch->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    return key;
}

void hf_kept_put(hf_core *core, hf_batch *batch)
{
    HF_LIST_EACH(node, &core->runs_all)
    {
        hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (!HF_SLOT(run)->bad || run->log.len == 0 || core->status != HF_OK) {
            continue;
        }
        HF_PROBE(core, HF_PROBE_KEPT);
        hf_key key = key_of(core, batch, run->number);
        if (core->status == HF_OK && !HF_CANARY(HF_BUG_NOT_KEPT)) {
            hf_batch_put_record(core, batch, HF_TABLE_META, key, &run->log);
        }
        hf_buf_deinit(&run->log);
        hf_buf_init(&run->log, core->memory, SIZE_MAX / 4);
        HF_SLOT(run)->kept = true;
    }
}

void hf_kept_remove(hf_core *core, hf_batch *batch, hf_run *run)
{
    if (HF_SLOT(run)->kept) {
        hf_batch_write(
            core, batch,
            (hf_write){.table = HF_TABLE_META, .kind = HF_WRITE_DELETE, .key = key_of(core, batch, run->number)});
        HF_SLOT(run)->kept = false;
    }
}
