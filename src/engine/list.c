/* See list.h. */
#include "engine/list.h"

#define ROWS_LEN (4u << 20) /* bytes of rows read for one list */

/* ---- In memory ---------------------------------------------------------------------------------------------------------- */

/* Inserts a run by its number; if the list is full the oldest run is dropped. */
static void insert(const hf_run **newest, size_t *count, size_t count_max, const hf_run *run)
{
    hf_assert(count_max > 0 && *count <= count_max);
    if (*count == count_max && newest[*count - 1]->number > run->number) {
        return;
    }
    size_t at = *count < count_max ? (*count)++ : *count - 1;
    while (at > 0 && newest[at - 1]->number < run->number) {
        newest[at] = newest[at - 1];
        at--;
    }
    newest[at] = run;
}

void hf_list_memory(hf_core *core, hf_listing *listing)
{
    const hf_run **newest = HF_ARENA_ARRAY(listing->arena, const hf_run *, listing->count_max);
    listing->runs.items = HF_ARENA_ARRAY(listing->arena, hf_pb_admin_run, 2 * listing->count_max);
    if (newest == NULL || listing->runs.items == NULL) {
        return;
    }
    size_t count = 0;
    size_t fitting = 0;
    /* From the end: the run that was added last is mostly the newest, so nothing has to be moved for it. */
    for (hf_node *node = core->runs_all.head.prev; node != &core->runs_all.head; node = node->prev) {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (HF_SLOT(run)->loading || HF_SLOT(run)->bad || run->event_count == 0) { /* its row tells as much or more */
            continue;
        }
        if (run->deleting != HF_DELETING_NOT) { /* hidden from all calls */
            continue;
        }
        listing->unwritten += run->is_written ? 0 : 1;
        if (run->number < listing->before) {
            insert(newest, &count, listing->count_max, run);
            fitting++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        hf_run_brief(newest[i], listing->arena, &listing->runs.items[listing->runs.count++]);
    }
    listing->complete_from = fitting > count ? newest[count - 1]->number : 0;
    listing->is_there = true;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------------- */

hf_store_request hf_list_scan(const hf_listing *listing)
{
    return (hf_store_request){
        .verb = HF_STORE_SCAN,
        .table = HF_TABLE_RUN,
        .key_end = {.a = listing->before},
        .backwards = true,
        .row_max = listing->count_max,
        .len_max = ROWS_LEN,
        .arena = listing->arena,
    };
}

static hf_status brief_of_row(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_admin_run *ret_brief)
{
    hf_str body = {0};
    HF_TRY(hf_record_open(op, HF_TABLE_RUN, &row->key, row->value, &body));
    return hf_run_brief_of_row(op, row->key.a, body, arena, ret_brief);
}

/* Adds a run to the list of those in memory, unless it is one of them. */
static void merge(hf_pb_admin_run_list *runs, const hf_pb_admin_run *run)
{
    size_t at = runs->count;
    while (at > 0 && runs->items[at - 1].number < run->number) {
        at--;
    }
    if (at > 0 && runs->items[at - 1].number == run->number) {
        return;
    }
    memmove(&runs->items[at + 1], &runs->items[at], (runs->count - at) * sizeof *runs->items);
    runs->items[at] = *run;
    runs->count++;
}

hf_status hf_list_rows(hf_op *op, hf_listing *listing, const hf_store_request *scan)
{
    for (size_t i = 0; i < scan->row_count && i < listing->count_max; i++) {
        hf_pb_admin_run run;
        hf_op bad;
        hf_op_init(&bad);
        hf_status status = brief_of_row(&bad, &scan->rows[i], listing->arena, &run);
        if (status == HF_ERR_INVALID) {
            hf_run_brief_damaged(scan->rows[i].key.a, bad.message, listing->arena, &run);
        } else if (status == HF_ERR_NOT_FOUND) {
            continue;
        } else if (status != HF_OK) {
            return hf_fail(op, status, "%s", bad.message);
        }
        merge(&listing->runs, &run);
    }
    if (scan->more && scan->row_count > 0 && scan->rows[scan->row_count - 1].key.a > listing->complete_from) {
        listing->complete_from = scan->rows[scan->row_count - 1].key.a;
    }
    hf_pb_admin_run_list *runs = &listing->runs;
    while (runs->count > 0 &&
           (runs->count > listing->count_max || runs->items[runs->count - 1].number < listing->complete_from)) {
        runs->count--;
    }
    return HF_OK;
}
