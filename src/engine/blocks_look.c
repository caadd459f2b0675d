/* A step of housekeeping, on the store's thread. Nothing of the core is touched here but the hf_house_work. */
#include "engine/blocks.h"
#include "engine/core_private.h"
#include "engine/load.h"

#include "base/canary.h"
#include "ledger/rows.h"

/* When a run of the namespace goes that ended then; INT64_MAX = never. */
static int64_t expiry_of(const hf_house_work *work, hf_str namespace_, int64_t close_time)
{
    return hf_keeping_expiry(work->keepings, work->keeping_count, namespace_, 0, close_time);
}

/* ---- Load ---------------------------------------------------------------------------------------------------------------- */

static void load(hf_house_work *work, const hf_store_request *request)
{
    work->loaded = HF_ARENA_ARRAY(&work->arena, hf_block_loaded, request->row_count + 1);
    work->loaded_count = 0;
    for (size_t i = 0; work->loaded != NULL && i < request->row_count; i++) {
        hf_op op;
        hf_op_init(&op);
        hf_pb_block_summary summary;
        hf_status status = hf_summary_open(&op, &request->rows[i], &work->scratch, &summary);
        if (status == HF_ERR_NOMEM) {
            work->status = status;
        }
        if (status == HF_OK) { /* one that cannot be read is made anew */
            hf_block_loaded *loaded = &work->loaded[work->loaded_count++];
            *loaded = (hf_block_loaded){request->rows[i].key.a, INT64_MAX, summary.others.count > 0};
            for (size_t j = 0; j < summary.counts.count; j++) {
                const hf_pb_block_count *count = &summary.counts.items[j];
                int64_t at = expiry_of(work, count->namespace, count->closed_first);
                loaded->expires_at = at < loaded->expires_at ? at : loaded->expires_at;
            }
        }
        hf_arena_rewind(&work->scratch);
    }
    work->is_done = !request->more;
    if (request->row_count > 0) {
        work->from = request->rows[request->row_count - 1].key.a + 1;
    }
}

/* ---- Visit --------------------------------------------------------------------------------------------------------------- */

static void add_other(hf_house_work *work, int64_t number)
{
    if (work->has_maker) {
        hf_block_add_other(&work->maker, number);
    }
}

static void note_expired(hf_house_work *work, const hf_visible *run)
{
    if (work->expired == NULL) {
        work->expired = HF_ARENA_ARRAY(&work->arena, hf_expired, (size_t)(work->end - work->first));
    }
    if (work->expired != NULL) {
        work->expired[work->expired_count++] = (hf_expired){
            .run = run->number,
            .namespace_ = hf_arena_copy(&work->arena, run->namespace_),
            .workflow_id = hf_arena_copy(&work->arena, run->workflow_id),
            .run_id = hf_arena_copy(&work->arena, run->run_id),
        };
    }
}

static void visit_run(hf_house_work *work, const hf_visible *run)
{
    bool is_open = run->close_time == 0 && !HF_CANARY(HF_BUG_OPEN_RETIRED);
    if (!is_open && !run->is_hidden && run->keep == 0) { /* engine-K4; others have a deadline of their own */
        int64_t at = expiry_of(work, run->namespace_, run->close_time);
        if (at <= work->now) {
            note_expired(work, run);
        } else if (at < work->expires_at) {
            work->expires_at = at;
        }
    }
    if (work->has_maker && !hf_block_add(&work->maker, run)) {
        hf_block_add_other(&work->maker, run->number);
    }
}

/* A row of an earlier version, or one whose attributes have rows of their own: the whole run is made of them. */
static void visit_whole(hf_house_work *work, hf_store *store, const hf_row *row)
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
        visit_run(work, &visible);
    } else if (status == HF_ERR_NOMEM) {
        work->status = status;
    } else {
        add_other(work, row->key.a);
    }
    if (run != NULL) {
        hf_run_free(&memory, run);
    }
    hf_arena_deinit(&scratch);
}

static void visit_row(hf_house_work *work, hf_store *store, const hf_row *row)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_run_sight sight;
    hf_visible visible;
    bool is_good = false;
    hf_status status = hf_run_row_see(&op, row, &work->scratch, &sight, &is_good);
    if (status != HF_OK) {
        work->status = status;
    } else if (!is_good) {
        add_other(work, row->key.a); /* damaged */
    } else if (hf_visible_of_sight(&sight, &visible)) {
        visit_run(work, &visible);
    } else {
        visit_whole(work, store, row);
    }
    hf_arena_rewind(&work->scratch);
}

/* Runs below `number` that had no row when the visit began, and have none now. */
static void pass_rowless(hf_house_work *work, int64_t number)
{
    while (work->rowless_next < work->rowless_count && work->rowless[work->rowless_next] < number) {
        if (!HF_CANARY(HF_BUG_ROWLESS_FORGOTTEN)) {
            add_other(work, work->rowless[work->rowless_next]);
        }
        work->rowless_next++;
    }
    if (work->rowless_next < work->rowless_count && work->rowless[work->rowless_next] == number) {
        work->rowless_next++; /* it has one now */
    }
}

static void end_visit(hf_house_work *work)
{
    pass_rowless(work, work->end);
    work->is_done = true;
    bool is_worth = work->expired_count == 0 && work->has_maker && work->maker.block.entries.count > 0;
    work->has_maker = is_worth; /* else there is no block to write */
    if (is_worth) {
        hf_status status = hf_block_finish(&work->maker, work->maker.summary.commit, &work->block, &work->summary);
        work->status = work->status == HF_OK ? status : work->status;
    }
}

static void visit(hf_house_work *work, hf_store *store, const hf_store_request *request)
{
    for (size_t i = 0; i < request->row_count && work->status == HF_OK; i++) {
        const hf_row *row = &request->rows[i];
        if (row->key.a >= work->end) {
            work->next_run = row->key.a;
            end_visit(work);
            return;
        }
        pass_rowless(work, row->key.a);
        work->rows++;
        work->from = row->key.a + 1;
        visit_row(work, store, row);
    }
    if (!request->more && work->status == HF_OK) {
        end_visit(work);
    }
}

/* Runs that are remembered take less than half of the time of rows, so a step has twice as many. */
static void visit_gathered(hf_house_work *work, size_t row_max)
{
    for (size_t left = 2 * row_max; left > 0 && work->from < work->end && work->status == HF_OK; left--) {
        const hf_visible *run = work->gather->runs[work->from - work->first];
        if (run != NULL) {
            hf_assert(run->number == work->from && run->close_time != 0); /* engine-K6 */
            pass_rowless(work, run->number);
            work->rows++;
            visit_run(work, run);
        }
        work->from++;
    }
    if (work->from == work->end && work->status == HF_OK) {
        end_visit(work);
    }
}

void hf_house_look(hf_store *store, hf_store_request *request)
{
    hf_house_work *work = ((hf_read *)request->state)->house;
    hf_assert(request->row_count <= HF_HOUSE_ROWS_MAX && !work->is_done); /* engine-K1 */
    if (work->is_load) {
        load(work, request);
    } else if (work->gather != NULL) {
        visit_gathered(work, request->row_max);
    } else {
        visit(work, store, request);
    }
    if (work->arena.status != HF_OK || work->scratch.status != HF_OK) {
        work->status = HF_ERR_NOMEM;
    }
}
