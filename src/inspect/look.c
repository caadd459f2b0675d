/* Looking at a store. The state of a run is its row, then its kept changes (ledger/kept.h), then its changes in the journal that the row
 * does not include (ledger-W2): the same sources as in recovery. Unlike recovery, nothing is written or handed out. */
#include "inspect/look.h"

#include "ledger/journal.h"
#include "ledger/kept.h"
#include "ledger/making.h"
#include "ledger/meta.h"
#include "ledger/names.h"
#include "ledger/operations.h"
#include "ledger/rows.h"
#include "ledger/run_id.h"

/* The changes of one run by one commit. */
typedef struct hf_look_change {
    int64_t run;
    uint64_t commit; /* 0 = the run has kept changes that cannot be read */
    int64_t time;    /* ns: of the commit; 0 = kept changes do not say it */
    hf_str changes;  /* fields of a log; in the arena */
    bool kept;       /* not from the journal */
    bool is_gone;    /* the commit deleted the run */
} hf_look_change;

struct hf_look {
    hf_allocator memory; /* of everything */
    hf_run_memory runs;  /* the same, for runs */
    hf_store *store;
    hf_meta meta;
    hf_names names;                 /* those that are not in their table */
    hf_arena journal;               /* its bytes */
    HF_VEC(hf_look_change) changes; /* by run, then commit; without those of deleted runs */
    HF_VEC(int64_t) gone;           /* runs that the journal deletes, by number */
    HF_VEC(int64_t) unmade;         /* runs that a reset was making, by number */
    uint64_t commits;               /* in the journal */
    uint64_t names_logged;          /* in name_log, according to the last commit */
    hf_arena arena;                 /* of one question */
    hf_arena scratch;               /* of one change, for `runs` */
};

hf_store *hf_look_store(const hf_look *look)
{
    return look->store;
}

hf_run_memory *hf_look_memory(hf_look *look)
{
    return &look->runs;
}

const hf_names *hf_look_names(const hf_look *look)
{
    return &look->names;
}

uint64_t hf_look_commits(const hf_look *look)
{
    return look->commits;
}

/* ---- The journal ------------------------------------------------------------------------------------------------------ */

static hf_status add_change(hf_op *op, hf_look *look, hf_look_change change)
{
    hf_assert(change.run > 0 && (change.commit > 0 || change.kept));
    if (!HF_VEC_RESERVE(&look->runs, &look->changes)) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the journal");
    }
    change.changes = hf_arena_copy(&look->journal, change.changes);
    look->changes.items[look->changes.count++] = change;
    return look->journal.status == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for the journal");
}

/* A kept row that cannot be read damages only its run. */
static hf_status read_kept(hf_op *op, hf_look *look)
{
    hf_row *rows = NULL;
    size_t count = 0;
    hf_arena_reset(&look->arena);
    HF_TRY(hf_kept_scan(op, look->store, &look->arena, &rows, &count));
    for (size_t i = 0; i < count; i++) {
        hf_op bad;
        hf_op_init(&bad);
        hf_pb_kept_changes kept = {0};
        hf_look_change change = {.run = hf_kept_run(&rows[i]), .kept = true};
        hf_status status = hf_kept_open(&bad, &rows[i], &look->arena, &kept);
        if (status != HF_OK && status != HF_ERR_INVALID) {
            return hf_fail(op, status, "%s", bad.message);
        }
        if (status != HF_OK) {
            HF_TRY(add_change(op, look, change));
        }
        for (size_t j = 0; status == HF_OK && j < kept.commits.count; j++) {
            change.commit = kept.commits.items[j].commit;
            change.changes = kept.commits.items[j].changes;
            HF_TRY(add_change(op, look, change));
        }
    }
    return HF_OK;
}

static hf_status read_unmade(hf_op *op, hf_look *look)
{
    hf_row *rows = NULL;
    size_t count = 0;
    hf_arena_reset(&look->arena);
    HF_TRY(hf_making_scan(op, look->store, &look->arena, &rows, &count));
    for (size_t i = 0; i < count; i++) {
        if (!HF_VEC_RESERVE(&look->runs, &look->unmade)) {
            return hf_fail(op, HF_ERR_NOMEM, "no memory for the runs that are being made");
        }
        look->unmade.items[look->unmade.count++] = hf_making_run(&rows[i]);
    }
    return HF_OK;
}

int64_t hf_look_unmade(const hf_look *look, size_t index)
{
    return index < look->unmade.count ? look->unmade.items[index] : 0;
}

static hf_status add_commit(hf_op *op, void *arg, const hf_commit_read *commit, hf_arena *arena)
{
    hf_look *look = arg;
    const hf_pb_journal_commit *fields = &commit->fields;
    (void)arena;
    for (size_t i = 0; i < fields->runs.count; i++) {
        const hf_pb_run_changes *run = &fields->runs.items[i];
        hf_look_change change = {
            .run = run->run, .commit = fields->commit, .time = fields->time, .changes = run->changes};
        HF_TRY(add_change(op, look, change));
    }
    hf_str gone = fields->gone;
    int64_t number = 0;
    while (hf_journal_next_gone(&gone, &number)) {
        HF_TRY(add_change(op, look, (hf_look_change){.run = number, .commit = fields->commit, .is_gone = true}));
    }
    look->commits++;
    look->names_logged = fields->names_logged;
    return hf_names_read(op, &look->names, fields->commit, fields->names, NULL, NULL);
}

static hf_status read_journal(hf_op *op, hf_look *look)
{
    hf_journal_span span;
    HF_TRY(hf_journal_walk(op, look->store, look->memory, add_commit, look, &span));
    uint64_t last = look->store->ops->last_commit(look->store);
    if (span.first != 0 && span.last != last) {
        return hf_fail(op, HF_ERR_INVALID, "the journal ends with commit %llu, the store with %llu",
                       (unsigned long long)span.last, (unsigned long long)last);
    }
    return HF_OK;
}

/* Which of two changes comes first. */
static bool is_before(const hf_look_change *a, const hf_look_change *b)
{
    return a->run != b->run ? a->run < b->run : a->commit < b->commit;
}

/* Heap sort: in place, and never slow. The changes come in the order of commits. */
static void sift(hf_look_change *items, size_t at, size_t count)
{
    for (size_t child = 0; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(&items[child], &items[child + 1])) {
            child++;
        }
        if (!is_before(&items[at], &items[child])) {
            return;
        }
        hf_look_change moved = items[at];
        items[at] = items[child];
        items[child] = moved;
    }
}

static void sort_changes(hf_look *look)
{
    hf_look_change *items = look->changes.items;
    size_t count = look->changes.count;
    for (size_t at = count / 2; at > 0; at--) {
        sift(items, at - 1, count);
    }
    while (count > 1) {
        count--;
        hf_look_change greatest = items[0];
        items[0] = items[count];
        items[count] = greatest;
        sift(items, 0, count);
    }
}

/* Takes out all changes of runs that were deleted later (ledger-J3). */
static hf_status drop_gone(hf_op *op, hf_look *look)
{
    size_t kept = 0;
    size_t count = look->changes.count;
    hf_look_change *items = look->changes.items;
    for (size_t from = 0, to = 0; from < count; from = to) {
        bool is_gone = false;
        for (to = from; to < count && items[to].run == items[from].run; to++) {
            is_gone = is_gone || items[to].is_gone;
        }
        if (is_gone && !HF_VEC_RESERVE(&look->runs, &look->gone)) {
            return hf_fail(op, HF_ERR_NOMEM, "no memory for the journal");
        }
        if (is_gone) {
            look->gone.items[look->gone.count++] = items[from].run;
            continue;
        }
        memmove(&items[kept], &items[from], (to - from) * sizeof *items);
        kept += to - from;
    }
    look->changes.count = kept;
    return HF_OK;
}

int64_t hf_look_gone(const hf_look *look, size_t index)
{
    return index < look->gone.count ? look->gone.items[index] : 0;
}

static bool was_deleted(const hf_look *look, int64_t run)
{
    size_t low = 0;
    size_t high = look->gone.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (look->gone.items[middle] < run) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < look->gone.count && look->gone.items[low] == run;
}

/* Index of the first change of a run with this number or a greater one. */
static size_t first_change(const hf_look *look, int64_t run)
{
    size_t low = 0;
    size_t high = look->changes.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (look->changes.items[middle].run < run) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- Life ------------------------------------------------------------------------------------------------------------- */

static hf_status read_all(hf_op *op, hf_look *look)
{
    bool found = false;
    HF_TRY(hf_meta_read(op, look->store, &look->arena, &look->meta, &found));
    HF_TRY(read_kept(op, look));
    HF_TRY(read_unmade(op, look));
    HF_TRY(read_journal(op, look));
    sort_changes(look);
    HF_TRY(drop_gone(op, look));
    return hf_names_read_log(op, &look->names, look->store, look->names_logged);
}

hf_status hf_look_open(hf_op *op, hf_allocator memory, hf_store *store, hf_look **ret_look)
{
    hf_look *look = memory.allocate(memory.state, sizeof *look, _Alignof(hf_look));
    if (look == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory to look at a store");
    }
    memset(look, 0, sizeof *look);
    look->store = store;
    look->memory = memory;
    look->runs = (hf_run_memory){.heap = memory, .scratch = &look->scratch};
    hf_names_init(&look->names, &look->runs, look->meta.mac_key);
    hf_arena_init(&look->journal, memory);
    hf_arena_init(&look->arena, memory);
    hf_arena_init(&look->scratch, memory);
    hf_status status = read_all(op, look);
    if (status != HF_OK) {
        hf_look_close(look);
        return status;
    }
    hf_assert(look->runs.status == HF_OK && look->journal.status == HF_OK);
    *ret_look = look;
    return HF_OK;
}

void hf_look_close(hf_look *look)
{
    if (look == NULL) {
        return;
    }
    hf_allocator memory = look->memory;
    HF_VEC_FREE(&look->runs, &look->changes);
    HF_VEC_FREE(&look->runs, &look->gone);
    HF_VEC_FREE(&look->runs, &look->unmade);
    hf_names_deinit(&look->names);
    hf_arena_deinit(&look->journal);
    hf_arena_deinit(&look->arena);
    hf_arena_deinit(&look->scratch);
    memory.release(memory.state, look, sizeof *look);
}

/* ---- One run ---------------------------------------------------------------------------------------------------------- */

static hf_status apply_changes(hf_op *op, hf_look *look, hf_run *run)
{
    uint64_t last = run->commit_last;
    for (size_t i = first_change(look, run->number);
         i < look->changes.count && look->changes.items[i].run == run->number; i++) {
        const hf_look_change *change = &look->changes.items[i];
        if (change->kept && (change->commit == 0 || !run->is_written)) { /* ledger-B3 */
            return hf_fail(op, HF_ERR_INVALID, "changes are kept for run %lld, which %s", (long long)run->number,
                           run->is_written ? "cannot be read" : "has no row");
        }
        if (change->commit <= last) { /* ledger-W2, or kept and in the journal as well */
            continue;
        }
        hf_assert(change->commit > last); /* ledger-W2: each change once, in order */
        last = change->commit;
        hf_buf_put(&run->log, change->changes.data, change->changes.len);
        run->transitions++;
        run->transition_time = change->time != 0 ? change->time : run->transition_time;
        HF_TRY(hf_apply_log(op, &look->runs, run, change->changes));
    }
    return run->log.status;
}

hf_status hf_look_run(hf_op *op, hf_look *look, int64_t number, hf_run **ret_run)
{
    hf_arena_reset(&look->arena);
    hf_arena_reset(&look->scratch);
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = number}, .arena = &look->arena};
    HF_TRY(hf_store_ask(op, look->store, &get));
    hf_run *run = hf_run_new(&look->runs, number);
    if (run == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a run");
    }
    hf_status status = get.found ? hf_run_row_load(op, look->store, &look->runs, run, get.value) : HF_OK;
    run->is_written = get.found;
    if (status == HF_OK) {
        status = apply_changes(op, look, run);
    }
    if (status == HF_OK && run->event_count == 0 && run->operation.len == 0) {
        status = hf_fail(op, HF_ERR_NOT_FOUND, "there is no run %lld%s", (long long)number,
                         was_deleted(look, number) ? " any more: it was deleted" : "");
    }
    if (status == HF_OK) {
        status = hf_run_sound(op, run);
    }
    if (status == HF_OK && look->runs.status != HF_OK) {
        status = hf_fail(op, look->runs.status, "no memory for a run");
    }
    if (status != HF_OK) {
        hf_run_free(&look->runs, run);
        return status;
    }
    *ret_run = run;
    return HF_OK;
}

void hf_look_run_free(hf_look *look, hf_run *run)
{
    if (run != NULL) {
        hf_run_free(&look->runs, run);
    }
}

hf_status hf_look_history(hf_op *op, hf_look *look, const hf_run *run, hf_buf *out)
{
    return hf_history_read(op, look->store, run, look->memory, out);
}

/* A process that did not close the store counts as one that ended with its tasks in hand, as the next one will count it (engine-U1). */
static void count_last_process(const hf_run *run, hf_pb_describe_workflow_execution_response *description)
{
    const hf_wft *wft = &run->wft;
    hf_pb_pending_workflow_task_info *task = description->pending_workflow_task;
    if (task != NULL && wft->state == HF_WFT_STARTED && !wft->again && wft->incarnation != 0) {
        task->holdfast_crashes++;
    }
    for (size_t i = 0, at = 0; i < run->activities.count; i++) {
        const hf_activity *activity = run->activities.items[i];
        if (!hf_activity_is_pending(activity)) {
            continue;
        }
        hf_assert(at < description->pending_activities.count);
        hf_pb_pending_activity_info *info = &description->pending_activities.items[at++];
        if (activity->state == HF_ACTIVITY_STARTED && !activity->again && activity->incarnation != 0) {
            info->holdfast_crashes++;
        }
    }
}

hf_status hf_look_describe(hf_op *op, hf_look *look, int64_t number, hf_arena *arena, hf_buf *history,
                           hf_str *ret_namespace, hf_pb_describe_workflow_execution_response *ret_description)
{
    hf_run *run = NULL;
    HF_TRY(hf_look_run(op, look, number, &run));
    if (run->kind != HF_KIND_WORKFLOW) {
        hf_look_run_free(look, run);
        return hf_fail(op, HF_ERR_UNSUPPORTED, "run %lld is an operation on many runs: it has no history",
                       (long long)number);
    }
    hf_status status = hf_look_history(op, look, run, history);
    *ret_description = (hf_pb_describe_workflow_execution_response){0};
    if (status == HF_OK) {
        *ret_namespace = hf_arena_copy(arena, hf_owned_str(&run->namespace));
        hf_run_describe(run, arena, ret_description);
        if (look->store->was_left_open && arena->status == HF_OK) {
            count_last_process(run, ret_description);
        }
        status = arena->status == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for a run");
    }
    hf_look_run_free(look, run);
    return status;
}

/* ---- Finding ---------------------------------------------------------------------------------------------------------- */

/* The number of the first run that has a row with from <= number < to, or of the last one; 0 = there is none. */
static hf_status find_row(hf_op *op, hf_look *look, int64_t from, int64_t to, bool is_last, int64_t *ret_number)
{
    hf_arena_reset(&look->arena);
    hf_store_request scan = {
        .verb = HF_STORE_SCAN,
        .table = HF_TABLE_RUN,
        .key = {.a = from},
        .key_end = {.a = to},
        .backwards = is_last,
        .row_max = 1,
        .arena = &look->arena,
    };
    HF_TRY(hf_store_ask(op, look->store, &scan));
    *ret_number = scan.row_count > 0 ? scan.rows[0].key.a : 0;
    return HF_OK;
}

hf_status hf_look_next(hf_op *op, hf_look *look, int64_t after, int64_t *ret_number)
{
    int64_t next = 0;
    HF_TRY(find_row(op, look, after + 1, INT64_MAX, false, &next));
    size_t i = first_change(look, after + 1);
    if (i < look->changes.count && (next == 0 || look->changes.items[i].run < next)) {
        next = look->changes.items[i].run;
    }
    *ret_number = next;
    return HF_OK;
}

hf_status hf_look_before(hf_op *op, hf_look *look, int64_t before, int64_t *ret_number)
{
    int64_t last = 0;
    HF_TRY(find_row(op, look, 0, before, true, &last));
    size_t i = first_change(look, before);
    if (i > 0 && look->changes.items[i - 1].run > last) {
        last = look->changes.items[i - 1].run;
    }
    *ret_number = last;
    return HF_OK;
}

/* The store counts the rows; runs that are only in the journal are added, and operations left out. */
hf_status hf_look_count(hf_op *op, hf_look *look, uint64_t *ret_count)
{
    hf_store_count rows = {.table = HF_TABLE_RUN};
    hf_store_request stats = {.verb = HF_STORE_STATS, .count = &rows};
    do {
        HF_TRY(hf_store_ask(op, look->store, &stats));
    } while (stats.more && rows.table == HF_TABLE_RUN);
    uint64_t count = stats.stats.rows[HF_TABLE_RUN];
    for (size_t i = 0; i < look->changes.count; i++) {
        int64_t number = look->changes.items[i].run;
        if (i > 0 && look->changes.items[i - 1].run == number) {
            continue;
        }
        hf_arena_reset(&look->arena);
        hf_store_request get = {
            .verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = number}, .arena = &look->arena};
        HF_TRY(hf_store_ask(op, look->store, &get));
        count += get.found ? 0 : 1;
    }
    hf_row *operations = NULL; /* they have rows, but are not workflows (ledger-O1) */
    size_t operation_count = 0;
    hf_arena_reset(&look->arena);
    HF_TRY(hf_operation_scan(op, look->store, &look->arena, &operations, &operation_count));
    count -= operation_count < count ? operation_count : count;
    *ret_count = count;
    return HF_OK;
}

hf_status hf_look_page(hf_op *op, hf_look *look, int64_t before, size_t count_max, hf_arena *arena,
                       hf_pb_admin_run_list *ret_runs)
{
    hf_assert(count_max > 0);
    *ret_runs = (hf_pb_admin_run_list){.items = HF_ARENA_ARRAY(arena, hf_pb_admin_run, count_max)};
    while (ret_runs->items != NULL && ret_runs->count < count_max) {
        hf_run *run = NULL;
        HF_TRY(hf_look_before(op, look, before, &before));
        if (before == 0) {
            break;
        }
        hf_op bad;
        hf_op_init(&bad);
        hf_status status = hf_look_run(&bad, look, before, &run);
        bool is_hidden = status == HF_OK && (run->deleting != HF_DELETING_NOT || run->kind != HF_KIND_WORKFLOW);
        if (is_hidden) { /* a run that is being deleted is not listed, nor an operation */
            hf_look_run_free(look, run);
            continue;
        }
        hf_pb_admin_run *brief = &ret_runs->items[ret_runs->count++];
        if (status == HF_OK) {
            hf_run_brief(run, arena, brief);
            hf_look_run_free(look, run);
        } else if (status == HF_ERR_INVALID || status == HF_ERR_NOT_FOUND) {
            hf_run_brief_damaged(before, bad.message, arena, brief);
        } else {
            return hf_fail(op, status, "%s", bad.message);
        }
    }
    return arena->status == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for the list");
}

/* A search, and the greatest number of a run that matches. */
typedef struct hf_look_search {
    hf_str namespace_;
    hf_str text;
    int64_t by_workflow;
    int64_t by_run;
    int64_t deleted; /* the newest run of the workflow id that is being deleted: older ones are not the current run */
} hf_look_search;

/* Checks whether this run matches. */
static hf_status consider(hf_op *op, hf_look *look, hf_look_search *search, int64_t number)
{
    hf_run *run = NULL;
    hf_status status = hf_look_run(op, look, number, &run);
    if (status != HF_OK) {
        return status == HF_ERR_NOT_FOUND ? HF_OK : status;
    }
    if (run->deleting == HF_DELETING_NOT && hf_str_equal(hf_owned_str(&run->namespace), search->namespace_)) {
        if (!run->is_nameless && hf_str_equal(hf_owned_str(&run->workflow_id), search->text) &&
            number > search->by_workflow && number > search->deleted) {
            search->by_workflow = number;
        }
        if (hf_str_equal(hf_owned_str(&run->run_id), search->text) && number > search->by_run) {
            search->by_run = number;
        }
    }
    if (run->deleting != HF_DELETING_NOT && hf_str_equal(hf_owned_str(&run->namespace), search->namespace_) &&
        hf_str_equal(hf_owned_str(&run->workflow_id), search->text) && number > search->deleted) {
        search->deleted = number;
        search->by_workflow = number > search->by_workflow ? 0 : search->by_workflow;
    }
    hf_look_run_free(look, run);
    return HF_OK;
}

/* Searches the index, from the newest run to the oldest. */
static hf_status search_names(hf_op *op, hf_look *look, hf_look_search *search)
{
    char text[HF_NAME_TEXT_LEN];
    size_t len = 0;
    if (hf_name_text(search->namespace_, search->text, text, &len) != HF_OK) {
        return HF_OK; /* too long to be a workflow id */
    }
    int64_t hash = hf_name_hash(&look->names, hf_str_of_len(text, len));
    int64_t below = INT64_MAX;
    while (search->by_workflow == 0 && search->deleted == 0 &&
           (below = hf_names_below(&look->names, hash, below)) != 0) {
        HF_TRY(consider(op, look, search, below));
    }
    below = INT64_MAX;
    while (search->by_workflow == 0 && search->deleted == 0) {
        hf_arena_reset(&look->arena);
        hf_store_request scan = {
            .verb = HF_STORE_SCAN,
            .table = HF_TABLE_NAME,
            .key = {.a = hash},
            .key_end = {.a = hash, .b = below},
            .backwards = true,
            .row_max = 1,
            .arena = &look->arena,
        };
        HF_TRY(hf_store_ask(op, look->store, &scan));
        if (scan.row_count == 0) {
            break;
        }
        below = scan.rows[0].key.b;
        if (!hf_names_is_gone(&look->names, hash, below)) { /* ledger-N1 */
            HF_TRY(consider(op, look, search, below));
        }
    }
    return HF_OK;
}

/* Searches the runs that have no row yet. A run that cannot be read has had a row, and was searched by its name. */
static hf_status search_journal(hf_op *op, hf_look *look, hf_look_search *search)
{
    for (size_t i = 0; i < look->changes.count; i++) {
        int64_t number = look->changes.items[i].run;
        if (i == 0 || look->changes.items[i - 1].run != number) {
            hf_op bad;
            hf_op_init(&bad);
            hf_status status = consider(&bad, look, search, number);
            if (status != HF_OK && status != HF_ERR_INVALID) {
                return hf_fail(op, status, "%s", bad.message);
            }
        }
    }
    return HF_OK;
}

hf_status hf_look_find(hf_op *op, hf_look *look, hf_str namespace_, hf_str workflow_or_run_id, int64_t *ret_number)
{
    hf_look_search search = {.namespace_ = namespace_, .text = workflow_or_run_id};
    HF_TRY(search_names(op, look, &search));
    int64_t number = hf_run_id_number(look->meta.mac_key, workflow_or_run_id);
    if (number > 0) {
        HF_TRY(consider(op, look, &search, number));
    }
    HF_TRY(search_journal(op, look, &search));
    *ret_number = search.by_workflow != 0 ? search.by_workflow : search.by_run;
    if (*ret_number == 0) {
        return hf_fail(op, HF_ERR_NOT_FOUND, "there is no workflow and no run \"%.*s\" in the namespace \"%.*s\"",
                       HF_STR_ARGS(workflow_or_run_id), HF_STR_ARGS(namespace_));
    }
    return HF_OK;
}
