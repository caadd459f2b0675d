/* The deletion of a damaged run: its state row may not tell its name, its deadline and its tasks, so they are looked for in the tables. */
#include "engine/machines/delete_private.h"

#include "ledger/rows.h"

#define PAGE_ROWS 1024

/* The row of a damaged run may not tell its name. So the name that the caller gives must lead to the run, or must have led to it. */
void hf_deletion_name_known(hf_core *core, hf_deletion *it, bool is_known, bool is_gone)
{
    if (!is_known && !is_gone) {
        hf_deletion_refuse(core, it, HF_ERR_NOT_FOUND,
                           "the records of this run are damaged, and its workflow id does not lead to it");
        hf_deletion_give_up(core, it);
        return;
    }
    it->has_name = !is_gone;
    it->stage = DELETION_SEARCH;
    hf_deletion_move(it, &core->deletions.next);
}

void hf_deletion_check_name(hf_core *core, hf_deletion *it)
{
    bool is_gone = hf_names_is_gone(&core->index, it->hash, it->run);
    bool is_here = hf_names_below(&core->index, it->hash, it->run + 1) == it->run;
    if (is_gone || is_here) {
        hf_deletion_name_known(core, it, is_here, is_gone);
        return;
    }
    hf_read *read = hf_deletion_ask_table(core, it, HF_TABLE_NAME);
    if (read != NULL) {
        read->request.verb = HF_STORE_GET;
        read->request.key = (hf_key){.a = it->hash, .b = it->run};
        hf_read_submit(core, read);
    }
}

void hf_deletion_walk(hf_core *core, hf_deletion *it, hf_table table)
{
    hf_read *read = hf_deletion_ask_table(core, it, table);
    if (read != NULL) {
        read->request.key = it->from;
        read->request.key_end = hf_key_last();
        read->request.row_max = PAGE_ROWS;
        hf_read_submit(core, read);
    }
}

/* Remembers a row of the run. */
static void keep_row(hf_core *core, hf_deletion *it, hf_key **items, size_t *count, const hf_key *key)
{
    hf_key *more = HF_ARENA_ARRAY(&it->arena, hf_key, *count + 1);
    if (more == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    if (*count > 0) {
        memcpy(more, *items, *count * sizeof *more);
    }
    more[*count] = (hf_key){hf_arena_copy(&it->arena, key->text), key->a, key->b};
    *items = more;
    (*count)++;
}

/* False: a record cannot be read, so it may belong to the run. */
static bool keep_rows(hf_core *core, hf_deletion *it, const hf_read *read)
{
    for (size_t i = 0; i < read->request.row_count && core->status == HF_OK; i++) {
        const hf_row *row = &read->request.rows[i];
        if (it->stage == DELETION_DUE) {
            if (row->key.b == it->run) {
                keep_row(core, it, &it->due.items, &it->due.count, &row->key);
            }
            continue;
        }
        hf_pb_task_record record;
        hf_status status = hf_task_row_open(&core->op, row, &core->scratch, &record);
        if (status == HF_ERR_INVALID) {
            return false;
        }
        if (status != HF_OK) {
            hf_core_break(core, status, "%s", core->op.message);
        } else if (record.run == it->run) {
            keep_row(core, it, &it->tasks.items, &it->tasks.count, &row->key);
        }
    }
    return true;
}

void hf_deletion_walked(hf_core *core, hf_deletion *it, const hf_read *read)
{
    if (!keep_rows(core, it, read)) {
        hf_deletion_stick(
            core, it, "the run is damaged, and so is the record of a task that may be its own; see holdfast db check");
        return;
    }
    if (core->status != HF_OK) {
        return;
    }
    if (read->request.more && read->request.row_count > 0) {
        const hf_key *last = &read->request.rows[read->request.row_count - 1].key;
        it->from = (hf_key){hf_arena_copy(&it->arena, last->text), last->a, last->b + 1};
        hf_deletion_move(it, &core->deletions.next);
        return;
    }
    it->from = (hf_key){0};
    it->stage = it->stage == DELETION_DUE ? DELETION_TASKS : DELETION_FOUND;
    hf_deletion_move(it, it->stage == DELETION_FOUND ? &core->deletions.found : &core->deletions.next);
}
