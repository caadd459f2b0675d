/* Opening: the runs that the journal has changed, and those whose records are damaged. Before the journal is read, the changes that were kept
 * aside for damaged runs are loaded (ledger/kept.h). */
#include "engine/open_private.h"

#include "base/canary.h"
#include "engine/due.h"
#include "engine/load.h"
#include "ledger/journal.h"
#include "ledger/kept.h"
#include "ledger/making.h"
#include "ledger/rows.h"

/* ---- One run ----------------------------------------------------------------------------------------------------- */

/* The run's records are damaged: only its number stays in memory, until the next opening (ledger-B2). */
static hf_status make_bad(hf_core *core, hf_run **run)
{
    HF_PROBE(core, HF_PROBE_BAD_RECORD);
    int64_t number = (*run)->number;
    bool kept = HF_SLOT(*run)->kept;
    hf_run_remove(core, *run);
    *run = hf_run_add(core, number);
    if (*run != NULL) {
        HF_SLOT(*run)->bad = true;
        HF_SLOT(*run)->kept = kept;
        hf_assert(!hf_node_is_linked(&HF_SLOT(*run)->lru_link)); /* ledger-B2: nothing drops it from memory */
    }
    return core->status;
}

/* Reading a run failed. Damage makes the run bad; any other failure, lack of memory above all, fails the opening. */
static hf_status stop_run(hf_op *op, hf_core *core, hf_run **run, hf_status status, const hf_op *why)
{
    if (!hf_core_is_whole(core)) {
        return core->status;
    }
    return status == HF_ERR_INVALID ? make_bad(core, run) : hf_fail(op, status, "%s", why->message);
}

hf_status hf_open_run(hf_op *op, hf_core *core, hf_store *store, int64_t number, hf_run **ret_run)
{
    *ret_run = hf_run_find(core, number);
    if (*ret_run != NULL) {
        return HF_OK;
    }
    *ret_run = hf_run_add(core, number);
    if (*ret_run == NULL) {
        return core->status;
    }
    hf_op bad;
    hf_op_init(&bad);
    hf_arena arena;
    hf_arena_init(&arena, core->memory);
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = number}, .arena = &arena};
    hf_status status = hf_store_ask(&bad, store, &get);
    if (status == HF_OK && get.found) {
        status = hf_run_row_load(&bad, store, &core->runs_memory, *ret_run, get.value);
    }
    hf_arena_deinit(&arena);
    if (status != HF_OK) {
        return stop_run(op, core, ret_run, status, &bad);
    }
    if (get.found) {
        hf_core_unuse(core, *ret_run);
    }
    return HF_OK;
}

/* The changes that one commit made to a run. */
static hf_status apply(hf_op *op, hf_core *core, hf_run *run, uint64_t commit, hf_str changes)
{
    hf_assert(commit > 0 && !HF_SLOT(run)->bad && !HF_SLOT(run)->loading);
    if (run->commit_last >= commit && !HF_CANARY(HF_BUG_CHANGES_TWICE)) { /* ledger-W2: its rows include this commit */
        return HF_OK;
    }
    hf_core_use(core, run);
    if (!hf_node_is_linked(&HF_SLOT(run)->dirty_link)) {
        HF_SLOT(run)->commit_dirty = commit;
        hf_list_push_back(&core->dirty, &HF_SLOT(run)->dirty_link);
    }
    run->commit_last = commit;
    run->transitions++;
    hf_buf_put(&run->log, changes.data, changes.len);
    HF_SLOT(run)->batch_start = run->log.len;
    HF_TRY(hf_apply_log(op, &core->runs_memory, run, changes));
    if (run->log.status != HF_OK) {
        hf_core_break(core, run->log.status, "out of memory");
    }
    return core->status;
}

/* ---- The journal ------------------------------------------------------------------------------------------------- */

static hf_status replay_run(hf_op *op, const hf_opening *o, uint64_t commit, const hf_pb_run_changes *changes)
{
    hf_run *run = NULL;
    HF_TRY(hf_open_run(op, o->core, o->store, changes->run, &run));
    if (HF_SLOT(run)->bad) {
        return HF_OK;
    }
    hf_op bad;
    hf_op_init(&bad);
    hf_status status = apply(&bad, o->core, run, commit, changes->changes);
    return status == HF_OK ? HF_OK : stop_run(op, o->core, &run, status, &bad);
}

/* The name of a run that had its first row with this commit, after earlier commits have changed it. */
static void replay_name(void *arg, const hf_name_entry *entry)
{
    hf_core *core = arg;
    hf_run *run = hf_name_is_gone(entry) ? NULL : hf_run_find(core, entry->run);
    if (run != NULL && !HF_SLOT(run)->bad && !run->is_written) {
        (void)make_bad(core, &run); /* its row is missing */
    }
}

/* The runs that this commit deleted. Earlier commits may have changed them, and without their rows they seem damaged. */
static void replay_gone(hf_core *core, hf_str gone)
{
    int64_t number = 0;
    while (core->status == HF_OK && hf_journal_next_gone(&gone, &number)) {
        hf_run *run = hf_run_find(core, number);
        if (run != NULL) {
            HF_PROBE(core, HF_PROBE_DELETED_REPLAYED);
            hf_run_remove(core, run);
        }
    }
}

static hf_status replay_commit(hf_op *op, void *arg, const hf_commit_read *commit, hf_arena *arena)
{
    hf_opening *o = arg;
    hf_core *core = o->core;
    const hf_pb_journal_commit *fields = &commit->fields;
    (void)arena;
    for (size_t i = 0; i < fields->runs.count; i++) {
        hf_core_reset_scratch(core);
        HF_TRY(replay_run(op, o, fields->commit, &fields->runs.items[i]));
        hf_run *run = hf_run_find(core, fields->runs.items[i].run);
        if (run != NULL && run->commit_last == fields->commit) {
            run->transition_time = fields->time;
        }
    }
    HF_TRY(hf_names_read(op, &core->index, fields->commit, fields->names, replay_name, core));
    replay_gone(core, fields->gone);
    core->run_next = fields->next_run != 0 ? fields->next_run : core->run_next;
    core->order_next = fields->next_order != 0 ? fields->next_order : core->order_next;
    o->logged = fields->names_logged;
    o->held = hf_journal_held(commit);
    if (HF_VEC_RESERVE(&core->runs_memory, &core->journal_lens)) {
        core->journal_lens.items[core->journal_lens.count++] = (uint32_t)commit->len;
        core->journal_len += commit->len;
    }
    return core->status;
}

hf_status hf_open_journal(hf_op *op, hf_opening *o)
{
    hf_core *core = o->core;
    hf_journal_span span;
    HF_TRY(hf_journal_walk(op, o->store, core->memory, replay_commit, o, &span));
    if (span.first != 0) {
        HF_PROBE(core, HF_PROBE_RECOVERED);
        core->commit_next = span.last + 1;
        core->journal_hash = span.hash;
    }
    core->commit_durable =
        core->commit_next - 1; /* store-S7: the store guarantees it; a commit of ours could not prove it */
    core->journal_first = span.first != 0 ? span.first : core->commit_next;
    hf_assert(core->journal_lens.count == core->commit_next - core->journal_first); /* ledger-J1 */
    return HF_OK;
}

/* ---- Damaged runs ------------------------------------------------------------------------------------------------ */

/* Before the journal is read, which has nothing newer for these runs (ledger-B1). */
hf_status hf_open_kept(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena)
{
    hf_row *rows = NULL;
    size_t count = 0;
    HF_TRY(hf_kept_scan(op, store, arena, &rows, &count));
    for (size_t i = 0; i < count; i++) {
        hf_run *run = NULL;
        hf_core_reset_scratch(core);
        HF_TRY(hf_open_run(op, core, store, hf_kept_run(&rows[i]), &run));
        HF_SLOT(run)->kept = true;
        hf_op bad;
        hf_op_init(&bad);
        hf_pb_kept_changes kept = {0};
        hf_status status = HF_SLOT(run)->bad || run->is_written ? HF_OK : HF_ERR_INVALID; /* ledger-B3 */
        status = status == HF_OK ? hf_kept_open(&bad, &rows[i], arena, &kept) : status;
        for (size_t j = 0; status == HF_OK && !HF_SLOT(run)->bad && j < kept.commits.count; j++) {
            hf_core_reset_scratch(core);
            status = apply(&bad, core, run, kept.commits.items[j].commit, kept.commits.items[j].changes);
        }
        if (status != HF_OK) {
            HF_TRY(stop_run(op, core, &run, status, &bad));
        }
    }
    return core->status;
}

/* Finds runs that a reset was making when the process ended. No caller has seen them, and the first commit deletes their rows. */
hf_status hf_open_unmade(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena)
{
    hf_row *rows = NULL;
    size_t count = 0;
    HF_TRY(hf_making_scan(op, store, arena, &rows, &count));
    for (size_t i = 0; i < count; i++) {
        hf_store_request get = {
            .verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = hf_making_run(&rows[i])}, .arena = arena};
        HF_TRY(hf_store_ask(op, store, &get));
        if (!get.found) { /* ledger-G1; if the run has a row, the row in the meta table is wrong */
            hf_reset_undo(core, get.key.a);
        }
    }
    return core->status;
}

/* Visits a commit of the journal a second time, to keep its changes of bad runs (ledger-B1). */
static hf_status gather(hf_op *op, void *arg, const hf_commit_read *commit, hf_arena *arena)
{
    hf_core *core = ((hf_opening *)arg)->core;
    (void)op;
    (void)arena;
    for (size_t i = 0; i < commit->fields.runs.count; i++) {
        const hf_pb_run_changes *changes = &commit->fields.runs.items[i];
        hf_run *run = hf_run_find(core, changes->run);
        if (run == NULL || !HF_SLOT(run)->bad || HF_SLOT(run)->kept) {
            continue;
        }
        hf_kept_add(&run->log, run->number, commit->fields.commit, changes->changes);
        if (run->log.status != HF_OK) {
            hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        }
    }
    return core->status;
}

/* All runs that opening needs are loaded: checks them, and finds out which are bad. */
hf_status hf_open_sort_out(hf_op *op, hf_opening *o)
{
    hf_core *core = o->core;
    bool any_bad = false;
    HF_LIST_EACH(node, &core->runs_all)
    {
        hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        hf_assert(!HF_SLOT(run)->loading); /* opening waits for every row */
        hf_op bad;
        hf_op_init(&bad);
        if (!HF_SLOT(run)->bad && hf_run_sound(&bad, run) != HF_OK) {
            HF_TRY(make_bad(core, &run)); /* it has no row, or the changes led to an impossible state */
        }
        any_bad = any_bad || HF_SLOT(run)->bad;
        if (!HF_SLOT(run)->bad) {
            hf_due_at(core, run, hf_run_next_due(run));
        }
        if (HF_SLOT(run)->kept && !HF_SLOT(run)->bad) {
            HF_PROBE(core, HF_PROBE_KEPT_APPLIED);
            hf_assert(run->is_written); /* ledger-B3 */
            if (hf_node_is_linked(&HF_SLOT(run)->dirty_link)) {
                hf_list_remove(
                    &HF_SLOT(run)->dirty_link); /* its changes are in its kept row: the journal need not wait for it */
            }
            hf_core_touch(core, run);
            HF_SLOT(run)->spill_now = true;
        }
    }
    hf_journal_span span;
    return any_bad ? hf_journal_walk(op, o->store, core->memory, gather, o, &span) : core->status;
}
