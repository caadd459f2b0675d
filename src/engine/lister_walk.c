/* A list goes over the runs that are not in memory, on the store's thread: newest first, by blocks where there are some, else by rows. */
#include "engine/lister.h"

#include "base/canary.h"
#include "ledger/blocks.h"
#include "ledger/rows.h"

_Static_assert(HF_BLOCK_RUNS / 4 <= HF_LIST_GETS_MAX, "engine-S2");
#define OTHERS_MAX   \
    (HF_BLOCK_RUNS / \
     4) /* runs that a block leaves out, above which the rows of its range are read one after the other */

/* engine-S1: how many of the runs that were looked at in memory have numbers below this. Their rows are older than what was seen. */
static size_t seen_below(const hf_list_work *work, int64_t number)
{
    size_t low = 0;
    size_t high = work->number_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (work->numbers[middle] < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool was_in_memory(const hf_list_work *work, int64_t number)
{
    size_t at = seen_below(work, number);
    return at < work->number_count && work->numbers[at] == number;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------------ */

/* How many rows are read at once. The first ones are often all that the page needs: those of a batch operation are. */
static size_t scan_max(hf_list_work *work)
{
    size_t wanted = work->found_max - work->found_count + 1;
    bool is_first = !work->has_scanned && !work->is_count && work->where.order_count == 0;
    work->has_scanned = true;
    return is_first && wanted < work->rows_max ? wanted : work->rows_max;
}

/* The next rows from `from` on; a step has no more of them. */
static void take_rows(hf_list_work *work, hf_store *store, hf_store_request *request, int64_t from)
{
    hf_assert(from < work->below);
    hf_store_request scan = {
        .verb = HF_STORE_SCAN,
        .table = HF_TABLE_RUN,
        .key = {.a = from},
        .key_end = {.a = work->below},
        .backwards = true,
        .row_max = scan_max(work),
        .len_max = HF_LIST_LEN_MAX,
        .arena = request->arena,
    };
    if (!hf_list_ask(work, &scan)) {
        return;
    }
    hf_assert(scan.row_count <= HF_LIST_ROWS_MAX); /* engine-S2 */
    for (size_t i = 0; i < scan.row_count && work->status == HF_OK; i++) {
        if (!was_in_memory(work, scan.rows[i].key.a)) {
            hf_list_take_row(work, store, &scan.rows[i]);
        }
    }
    hf_assert(!scan.more || (scan.row_count > 0 && scan.rows[scan.row_count - 1].key.a < work->below));
    work->below = scan.more ? scan.rows[scan.row_count - 1].key.a : from;
}

/* ---- Blocks ---------------------------------------------------------------------------------------------------------------- */

/* A block whose runs are counted without a look at them. */
static bool count_block(hf_list_work *work, int64_t first, const hf_pb_block_summary *summary)
{
    if (!work->is_count || !hf_where_is_of_status(&work->where) || work->below < summary->end || work->from > first ||
        seen_below(work, summary->end) != seen_below(work, first)) {
        return false;
    }
    const hf_pb_block_count *count = hf_summary_count(summary, work->namespace_);
    for (int32_t status = 0; count != NULL && status < HF_BLOCK_STATUS_COUNT; status++) {
        if (count->counts.items[status] > 0 && hf_where_status_fits(&work->where, status)) {
            work->counts[status] += count->counts.items[status];
        }
    }
    work->blocks_counted++;
    return true;
}

/* A run that its block leaves out. False: the list fails. */
static bool take_other(hf_list_work *work, hf_store *store, hf_store_request *request, int64_t number)
{
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = number}, .arena = request->arena};
    if (!hf_list_ask(work, &get)) {
        return false;
    }
    if (get.found) {
        hf_row row = {get.key, get.value};
        hf_list_take_row(work, store, &row);
    }
    work->others_read++;
    return work->status == HF_OK;
}

/* The runs of a range, newest first: those of its block, and the others, of which `left` are read at most. Ends before the range does when that
 * is over, or the page full. */
static void take_range(hf_list_work *work, hf_store *store, hf_store_request *request, int64_t first,
                       const hf_visible *runs, size_t count, const hf_pb_int64_list *others, size_t left)
{
    size_t other = others->count;
    int64_t from = first > work->from ? first : work->from;
    while ((count > 0 || other > 0) && left > 0 && !(work->is_cut && hf_list_is_full(work))) {
        bool is_other = count == 0 || (other > 0 && others->items[other - 1] > runs[count - 1].number);
        int64_t number = is_other ? others->items[--other] : runs[--count].number;
        if (number < from) {
            break;
        }
        if (number >= work->below) {
            continue;
        }
        work->below = number;
        if (was_in_memory(work, number)) {
            continue;
        }
        if (!is_other) {
            hf_list_take(work, &runs[count], true);
            hf_arena_rewind(&work->scratch);
        } else if (!take_other(work, store, request, number)) {
            return;
        }
        left -= is_other ? 1 : 0;
        if (work->looked_up >= HF_LIST_GETS_MAX) {
            return; /* engine-S2: the next step goes on with this range */
        }
    }
    if (left > 0 && !(work->is_cut && hf_list_is_full(work))) {
        work->below = from;
    }
}

/* The runs of a block. A block that cannot be read is as if it were not there. */
static void take_block(hf_list_work *work, hf_store *store, hf_store_request *request, int64_t first,
                       const hf_pb_block_summary *summary)
{
    hf_op op;
    hf_op_init(&op);
    hf_visible *runs = NULL;
    size_t count = 0;
    hf_store_request get = {
        .verb = HF_STORE_GET, .table = HF_TABLE_BLOCK, .key = {.a = first}, .arena = request->arena};
    if (!hf_list_ask(work, &get)) {
        return;
    }
    hf_row row = {get.key, get.value};
    hf_status status = get.found ? hf_block_open(&op, &row, summary, request->arena, &runs, &count) : HF_ERR_INVALID;
    if (status == HF_ERR_NOMEM) {
        work->status = status;
        return;
    }
    if (status != HF_OK) {
        take_rows(work, store, request, first > work->from ? first : work->from);
        return;
    }
    work->blocks_read++;
    take_range(work, store, request, first, runs, count, &summary->others, work->gets_max);
}

/* ---- The walk -------------------------------------------------------------------------------------------------------------- */

/* The range of a summary, which ends at `below` or behind it. True: the step may go on. */
static bool take_summary(hf_list_work *work, hf_store *store, hf_store_request *request, int64_t first,
                         const hf_pb_block_summary *summary)
{
    if (summary->others.count > OTHERS_MAX) {
        take_rows(work, store, request, first > work->from ? first : work->from);
        return false;
    }
    bool is_counted = count_block(work, first, summary);
    if (!is_counted && hf_summary_may_fit(summary, work->namespace_, &work->where)) {
        take_block(work, store, request, first, summary);
        return false;
    }
    work->blocks_skipped += is_counted ? 0 : 1;
    /* A range that is counted is done in one step, or its runs would be counted again. */
    take_range(work, store, request, first, NULL, 0, &summary->others, is_counted ? OTHERS_MAX + 1 : work->gets_max);
    hf_assert(!is_counted || work->below <= first || work->status != HF_OK || request->status != HF_OK);
    return summary->others.count == 0;
}

static void walk(hf_list_work *work, hf_store *store, hf_store_request *request)
{
    hf_op op;
    hf_op_init(&op);
    for (size_t i = 0; i < request->row_count && work->below > work->from; i++) {
        hf_pb_block_summary summary;
        int64_t first = request->rows[i].key.a;
        hf_status status = hf_summary_open(&op, &request->rows[i], request->arena, &summary);
        if (status == HF_ERR_NOMEM) {
            work->status = status;
            return;
        }
        hf_assert(first < work->below);
        if (status != HF_OK) { /* as if there were no block */
            take_rows(work, store, request, first > work->from ? first : work->from);
            return;
        }
        if (summary.end < work->below) {
            take_rows(work, store, request, summary.end > work->from ? summary.end : work->from);
            return;
        }
        if (!take_summary(work, store, request, first, &summary)) {
            return;
        }
    }
    if (!request->more && work->below > work->from) {
        take_rows(work, store, request, work->from);
    }
}

/* A run that was found in a block gets what only its row tells. False: the list fails. */
static bool fill_one(hf_list_work *work, hf_store *store, hf_store_request *request, hf_list_found *found)
{
    hf_store_request get = {
        .verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = found->run.number}, .arena = request->arena};
    if (!hf_list_ask(work, &get)) {
        return false;
    }
    hf_row row = {get.key, get.value};
    hf_visible run;
    found->is_light = false;
    found->is_gone = !get.found || !hf_list_read_row(work, store, &row, &run) || run.is_hidden;
    if (!found->is_gone) {
        found->run = hf_visible_copy(&work->room[work->room_idx], &run);
    }
    hf_arena_rewind(&work->scratch);
    return work->status == HF_OK;
}

/* True: all on the page are whole. */
static bool fill(hf_list_work *work, hf_store *store, hf_store_request *request)
{
    size_t left = work->gets_max;
    while (work->filled < work->found_count && left > 0) {
        hf_list_found *found = &work->found[work->filled];
        bool is_light = found->is_light;
        if (is_light && !fill_one(work, store, request, found)) {
            return false;
        }
        work->filled_len += hf_visible_len(&found->run);
        if (work->filled_len > HF_LIST_PAGE_LEN && work->filled > 0) {
            work->found_count = work->filled; /* a shorter page: the next one goes on behind it */
            work->is_cut = true;
            return true;
        }
        work->filled++;
        left -= is_light ? 1 : 0;
    }
    return work->filled == work->found_count;
}

void hf_list_walk(hf_list_work *work, hf_store *store, hf_store_request *request)
{
    hf_assert(work->from <= work->below && work->rows_max > 0 && work->gets_max > 0);
    bool is_over = work->below <= work->from || hf_list_is_full(work);
    if (!is_over) {
        walk(work, store, request);
        is_over = request->status == HF_OK && (work->below <= work->from || hf_list_is_full(work));
    }
    if (is_over && work->status == HF_OK) {
        work->is_cut = work->is_cut || (work->below > work->from && !work->is_count);
        work->is_done = fill(work, store, request);
    }
}
