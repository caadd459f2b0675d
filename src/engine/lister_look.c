/* A step of a list, on the store's thread: runs and rows are decoded, filtered, and counted or put on the page. Nothing of the core is
 * touched here but the hf_list_work of this list. */
#include "engine/lister.h"

#include "ledger/blocks.h"
#include "ledger/rows.h"

#include <stdlib.h>

int hf_list_order(hf_str a_key, int64_t a_number, hf_str b_key, int64_t b_number)
{
    int order = hf_str_compare(a_key, b_key);
    return order != 0 ? order : (a_number < b_number) - (a_number > b_number); /* newest first */
}

/* ---- The page ------------------------------------------------------------------------------------------------------------ */

/* The texts of the page in the other room: what had to make room for others is freed. */
static void tidy(hf_list_work *work)
{
    hf_arena *old = &work->room[work->room_idx];
    work->room_idx = 1 - work->room_idx;
    hf_arena *room = &work->room[work->room_idx];
    for (size_t i = 0; i < work->found_count; i++) {
        work->found[i].run = hf_visible_copy(room, &work->found[i].run);
        work->found[i].key = hf_arena_copy(room, work->found[i].key);
    }
    hf_arena_deinit(old);
    work->thrown = 0;
    work->thrown_len = 0;
}

/* The last run makes room. */
static void throw_last(hf_list_work *work)
{
    size_t len = hf_visible_len(&work->found[--work->found_count].run);
    hf_assert(work->found_len >= len);
    work->found_len -= len;
    work->thrown_len += len;
    work->thrown++;
    work->is_cut = true;
}

bool hf_list_is_full(const hf_list_work *work)
{
    return !work->is_count && work->where.order_count == 0 && work->found_count == work->found_max &&
           work->found[work->found_count - 1].run.number >= work->below;
}

/* Whether the page has a newer run of its workflow id. That one was the current run when the list began, and may have been deleted since it was
 * put on the page: then no name leads to it any more, and this one looks like the newest. */
static bool is_outlived(const hf_list_work *work, const hf_visible *run)
{
    for (size_t i = 0; i < work->found_count; i++) {
        const hf_visible *other = &work->found[i].run;
        if (other->number > run->number && hf_str_equal(other->workflow_id, run->workflow_id)) {
            return true;
        }
    }
    return false;
}

static void put_on_page(hf_list_work *work, const hf_visible *run, hf_str key, bool is_light)
{
    if (work->is_current && is_outlived(work, run)) {
        return; /* engine-S4 */
    }
    if (work->has_after && hf_list_order(key, run->number, work->after_key, work->after_number) <= 0) {
        return; /* on an earlier page */
    }
    size_t at = work->found_count;
    while (at > 0 && hf_list_order(key, run->number, work->found[at - 1].key, work->found[at - 1].run.number) < 0) {
        at--;
    }
    if (at == work->found_max) {
        work->is_cut = true;
        return;
    }
    if (work->found_count == work->found_max) {
        throw_last(work);
    }
    hf_assert(work->found_count < work->found_max && at <= work->found_count);
    memmove(work->found + at + 1, work->found + at, (work->found_count - at) * sizeof *work->found);
    hf_arena *room = &work->room[work->room_idx];
    work->found[at] = (hf_list_found){hf_visible_copy(room, run), hf_arena_copy(room, key), is_light, false};
    work->found_count++;
    work->found_len += hf_visible_len(run);
    while (work->found_len > HF_LIST_PAGE_LEN && work->found_count > 1) {
        throw_last(work);
        work->found_max = work->found_count; /* a shorter page: the next one goes on behind it */
    }
    if (work->thrown > 4 * work->found_max || work->thrown_len > 4 * HF_LIST_PAGE_LEN) {
        tidy(work);
    }
}

/* ---- One run ------------------------------------------------------------------------------------------------------------- */

void hf_list_take(hf_list_work *work, const hf_visible *run, bool is_light)
{
    hf_visible_row row = {.run = run, .arena = &work->scratch};
    if (run->is_hidden || run->kind != HF_KIND_WORKFLOW || !hf_str_equal(run->namespace_, work->namespace_) ||
        !hf_where_fits(&work->where, hf_visible_get, &row) || (work->is_current && !hf_list_is_current(work, run))) {
        return;
    }
    if (work->is_count) {
        hf_assert(run->status >= 0);
        work->counts[run->status < HF_LIST_STATUS_COUNT ? run->status : 0]++;
        return;
    }
    work->key.len = 0;
    hf_where_sort_key(&work->where, hf_visible_get, &row, &work->key);
    put_on_page(work, run, hf_str_of_len(work->key.data, work->key.len), is_light);
}

/* The store has failed within the step. */
static void fail_as(hf_list_work *work, hf_status status, const hf_op *op)
{
    hf_assert(status != HF_OK);
    work->request->status = status;
    work->request->op = *op;
}

bool hf_list_ask(hf_list_work *work, hf_store_request *inner)
{
    hf_op_init(&inner->op);
    hf_store_execute(work->store, inner);
    if (inner->status != HF_OK) {
        fail_as(work, inner->status, &inner->op);
    }
    return inner->status == HF_OK;
}

/* A row of an earlier version, or one whose memo or attributes have rows of their own: the whole run is made of them. */
static bool read_whole(hf_list_work *work, hf_store *store, const hf_row *row, hf_visible *ret_run)
{
    hf_op op;
    hf_op_init(&op);
    hf_arena scratch;
    hf_arena_init(&scratch, work->memory);
    hf_run_memory memory = {.heap = work->memory, .scratch = &scratch};
    hf_run *run = hf_run_new(&memory, row->key.a);
    hf_status status = run != NULL ? hf_run_row_load(&op, store, &memory, run, row->value) : HF_ERR_NOMEM;
    if (status == HF_OK) {
        hf_visible visible = hf_visible_of_run(run, &scratch);
        *ret_run = hf_visible_copy(&work->scratch, &visible);
        status = scratch.status;
    }
    if (status == HF_OK) {
        hf_assert(ret_run->number == row->key.a);
    } else if (status == HF_ERR_NOMEM) {
        work->status = status;
    } else if (status == HF_ERR_INVALID || status == HF_ERR_UNSUPPORTED) {
        work->damaged++;
    } else {
        fail_as(work, status, &op);
    }
    if (run != NULL) {
        hf_run_free(&memory, run);
    }
    hf_arena_deinit(&scratch);
    return status == HF_OK;
}

bool hf_list_read_row(hf_list_work *work, hf_store *store, const hf_row *row, hf_visible *ret_run)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_run_sight sight;
    bool is_good = false;
    hf_status status = hf_run_row_see(&op, row, &work->scratch, &sight, &is_good);
    if (status != HF_OK) {
        work->status = status;
        return false;
    }
    if (!is_good) {
        work->damaged++;
        return false;
    }
    return hf_visible_of_sight(&sight, ret_run) || read_whole(work, store, row, ret_run);
}

void hf_list_take_row(hf_list_work *work, hf_store *store, const hf_row *row)
{
    hf_visible run;
    if (hf_list_read_row(work, store, row, &run)) {
        hf_list_take(work, &run, false);
    }
    hf_arena_rewind(&work->scratch);
}

/* ---- The step ------------------------------------------------------------------------------------------------------------ */

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void hf_list_look(hf_store *store, hf_store_request *request)
{
    hf_list_work *work = &((hf_read *)request->state)->lister->work;
    work->store = store;
    work->request = request;
    work->looked_up = 0;
    hf_assert(work->run_count <= HF_LIST_RUNS_MAX && request->row_count <= HF_LIST_SUMMARIES_MAX); /* engine-S2 */
    for (size_t i = 0; i < work->run_count; i++) {
        hf_list_take(work, &work->runs[i], false);
        hf_arena_rewind(&work->scratch);
    }
    work->run_count = 0;
    if (request->key_end.a > 0) { /* all runs in memory were looked at */
        if (!work->is_sorted && work->number_count > 0) {
            qsort(work->numbers, work->number_count, sizeof *work->numbers, compare_numbers);
            work->is_sorted = true;
        }
        hf_list_walk(work, store, request);
    }
    if (work->room[0].status != HF_OK || work->room[1].status != HF_OK || work->key.status != HF_OK ||
        work->scratch.status != HF_OK) {
        work->status = HF_ERR_NOMEM;
    }
}

void hf_list_aim(const hf_list_work *work, hf_store_request *request)
{
    /* A block that begins before `from` may reach beyond it. */
    request->key = (hf_key){.a = work->from > HF_BLOCK_RUNS ? work->from - HF_BLOCK_RUNS : 0};
    request->key_end = (hf_key){.a = work->below > 0 ? work->below : 1};
}

bool hf_list_goes_on(hf_store_request *request)
{
    hf_list_work *work = &((hf_read *)request->state)->lister->work;
    hf_assert(request->key_end.a > 0 &&
              work->steps > 0); /* all runs in memory were looked at: the core is not needed */
    if (request->status != HF_OK || work->status != HF_OK || work->is_done || work->steps == HF_LIST_STEPS_MAX) {
        return false;
    }
    work->steps++;
    hf_arena_reset(request->arena); /* nothing of a step is needed by the next one */
    hf_list_aim(work, request);
    return true;
}
