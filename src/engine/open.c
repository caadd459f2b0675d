/* Opening: builds the core from the store as it was, except for changes that were never durable.
 *
 * Counters and dirty runs come from the journal; everything else stays on disk until it is asked for. Tasks that in-process workers of
 * an earlier process held are taken from them: workflow tasks are handed out again as they are, activities as
 * their next attempt.
 *
 * If a record of one run cannot be read, that run is bad and no other is affected (D4); its changes in the journal are kept aside
 * (ledger/kept.h). Without the meta record, the journal or the log of names no run can be trusted: then opening fails. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/batch.h"
#include "engine/due.h"
#include "engine/fetch.h"
#include "engine/filter.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/matching.h"
#include "ledger/journal.h"
#include "ledger/kept.h"
#include "ledger/making.h"
#include "ledger/meta.h"
#include "ledger/rows.h"

/* The argument of the functions that visit the store's rows. */
typedef struct opening {
    hf_core *core;
    hf_store *store;
    uint64_t logged; /* names in name_log, according to the last commit */
} opening;

/* ---- Meta ------------------------------------------------------------------------------------------------------------ */

static void make_key(hf_core *core)
{
    uint64_t words[2] = {1, 2};
    uint64_t high = hf_siphash(core->options.seed, hf_str_of_len(words, sizeof words));
    words[0] = 3;
    uint64_t low = hf_siphash(core->options.seed, hf_str_of_len(words, sizeof words));
    memcpy(core->mac_key, &high, 8);
    memcpy(core->mac_key + 8, &low, 8);
}

static hf_status read_meta(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena, uint32_t *ret_names)
{
    hf_meta meta;
    bool found = false;
    HF_TRY(hf_meta_read(op, store, arena, &meta, &found));
    core->meta_dirty = true;
    *ret_names = found ? meta.names : HF_META_NAMES;
    if (found) {
        memcpy(core->mac_key, meta.mac_key, sizeof core->mac_key);
    } else {
        make_key(core);
    }
    core->incarnation = core->options.incarnation != 0 ? core->options.incarnation : meta.incarnation + 1;
    return HF_OK;
}

/* Adds the kept rows of bad runs, with their changes from the journal, to the batch: ledger-B1. */
static void put_kept(hf_core *core, hf_commit_batch *batch)
{
    HF_LIST_EACH(node, &core->runs_all)
    {
        hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (!HF_SLOT(run)->bad || run->log.len == 0 || core->status != HF_OK) {
            continue;
        }
        HF_PROBE(core, HF_PROBE_KEPT);
        hf_assert(!HF_SLOT(run)->kept); /* ledger-B1: once, with all that the journal has */
        hf_kept_put(&batch->writes, run->number, &run->log);
        hf_buf_deinit(&run->log);
        hf_buf_init(&run->log, core->memory, SIZE_MAX / 4);
        HF_SLOT(run)->kept = true;
    }
}

void hf_core_put_meta(hf_core *core, hf_commit_batch *batch)
{
    hf_assert(core->meta_dirty && core->incarnation > 0);
    hf_meta meta = {.incarnation = core->incarnation, .names = HF_META_NAMES};
    memcpy(meta.mac_key, core->mac_key, sizeof meta.mac_key);
    hf_meta_put(&batch->writes, &meta);
    put_kept(core, batch);
    core->meta_dirty = false;
}

/* ---- Journal --------------------------------------------------------------------------------------------------------- */

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

static hf_status load_now(hf_op *op, hf_core *core, hf_store *store, int64_t number, hf_run **ret_run)
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

static hf_status replay_run(hf_op *op, const opening *o, uint64_t commit, const hf_pb_run_changes *changes)
{
    hf_run *run = NULL;
    HF_TRY(load_now(op, o->core, o->store, changes->run, &run));
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
    opening *o = arg;
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
    if (HF_VEC_RESERVE(&core->runs_memory, &core->journal_lens)) {
        core->journal_lens.items[core->journal_lens.count++] = (uint32_t)commit->len;
        core->journal_len += commit->len;
    }
    return core->status;
}

static hf_status replay(hf_op *op, opening *o)
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
    return HF_OK;
}

/* ---- Tasks of dead workers ------------------------------------------------------------------------------------------- */

static bool is_of_dead(const hf_core *core, uint64_t incarnation)
{
    return incarnation != 0 && incarnation != core->incarnation;
}

static void hand_out_again(hf_core *core, hf_run *run)
{
    if (HF_SLOT(run)->loading || HF_SLOT(run)->bad) {
        return;
    }
    hf_message_send_all(core, run);
    hf_deletion_resume(core, run);
    if (!hf_run_is_open(run)) {
        return;
    }
    bool news = false;
    int64_t last = 0;
    for (size_t i = 0; i < run->activities.count && core->status == HF_OK;) {
        hf_activity *activity = run->activities.items[i];
        if (activity->scheduled_id <= last) {
            i++;
            continue;
        }
        last = activity->scheduled_id;
        hf_core_reset_scratch(core);
        /* An activity that was given back waits for its next worker: that attempt was not lost. */
        bool held = activity->state == HF_ACTIVITY_STARTED && !activity->again;
        if (held && is_of_dead(core, activity->incarnation)) {
            news = hf_activity_lost(core, run, activity) || news;
        }
    }
    if (run->wft.state == HF_WFT_STARTED && is_of_dead(core, run->wft.incarnation)) {
        hf_wft_lost(core, run);
    }
    if (news) {
        hf_wft_schedule(core, run);
    }
}

/* Loads the run of a row if the row says that the task table has a held task of it. A row that cannot be read may be such a run: the
 * run is bad from now on. */
static hf_status load_holder(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    const opening *o = arg;
    hf_pb_run_state state;
    bool is_good = false;
    HF_TRY(hf_run_row_open(op, row, arena, &state, &is_good));
    bool is_holder = !is_good;
    for (size_t i = 0; is_good && i < state.rows_written.count; i++) {
        is_holder = is_holder || hf_str_equal(state.rows_written.items[i].queue, HF_QUEUE_HELD);
    }
    hf_run *run = NULL;
    hf_core_reset_scratch(o->core);
    return is_holder ? load_now(op, o->core, o->store, row->key.a, &run) : HF_OK;
}

typedef struct held_walk {
    opening *o;
    bool any_bad; /* a record cannot be read, so its run is not known */
} held_walk;

static hf_status load_held_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    held_walk *walk = arg;
    hf_core *core = walk->o->core;
    hf_pb_task_record record;
    hf_op bad;
    hf_op_init(&bad);
    hf_status status = hf_task_row_open(&bad, row, arena, &record);
    if (status == HF_ERR_INVALID) {
        HF_PROBE(core, HF_PROBE_BAD_RECORD);
        walk->any_bad = true;
        return HF_OK;
    }
    if (status != HF_OK) {
        return hf_fail(op, status, "%s", bad.message);
    }
    hf_run *run = NULL;
    hf_core_reset_scratch(core);
    return load_now(op, core, walk->o->store, record.run, &run);
}

static hf_status load_held(hf_op *op, opening *o)
{
    held_walk walk = {.o = o};
    hf_key from = {HF_QUEUE_HELD, 0, 0};
    hf_key to = {HF_QUEUE_HELD, INT64_MAX, 0};
    HF_TRY(hf_store_each_row(op, o->store, o->core->memory, HF_TABLE_TASK, &from, &to, load_held_row, &walk));
    /* A damaged record does not tell its run, but the run's row names the record: all runs are read, however long that takes. */
    return walk.any_bad ? hf_store_each_row(op, o->store, o->core->memory, HF_TABLE_RUN, NULL, NULL, load_holder, o)
                        : HF_OK;
}

/* ---- Kept changes --------------------------------------------------------------------------------- */

/* Before the journal is read, which has nothing newer for these runs (ledger-B1). */
static hf_status load_kept(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena)
{
    hf_row *rows = NULL;
    size_t count = 0;
    HF_TRY(hf_kept_scan(op, store, arena, &rows, &count));
    for (size_t i = 0; i < count; i++) {
        hf_run *run = NULL;
        hf_core_reset_scratch(core);
        HF_TRY(load_now(op, core, store, hf_kept_run(&rows[i]), &run));
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

/* Runs whose making a crash has interrupted: nobody has seen them, and their rows go. */
static hf_status find_unmade(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena)
{
    hf_row *rows = NULL;
    size_t count = 0;
    HF_TRY(hf_making_scan(op, store, arena, &rows, &count));
    for (size_t i = 0; i < count; i++) {
        hf_store_request get = {
            .verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = hf_making_run(&rows[i])}, .arena = arena};
        HF_TRY(hf_store_ask(op, store, &get));
        if (!get.found) { /* ledger-G1; else it is the row in the meta table that is wrong */
            hf_reset_undo(core, get.key.a);
        }
    }
    return core->status;
}

/* Visits a commit of the journal a second time, to keep its changes of bad runs (ledger-B1). */
static hf_status gather(hf_op *op, void *arg, const hf_commit_read *commit, hf_arena *arena)
{
    hf_core *core = ((opening *)arg)->core;
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
static hf_status sort_out(hf_op *op, opening *o)
{
    hf_core *core = o->core;
    bool any_bad = false;
    HF_LIST_EACH(node, &core->runs_all)
    {
        hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
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

/* ---- Names ------------------------------------------------------------------------------------------------------------ */

/* The name of a run from its own row, for a file that had no index of this kind. A row that cannot be read is left out: its run
 * cannot be used anyway (D4). */
static hf_status name_run(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    hf_core *core = ((opening *)arg)->core;
    hf_pb_run_state state;
    bool is_good = false;
    char text[HF_NAME_TEXT_LEN];
    size_t len = 0;
    HF_TRY(hf_run_row_open(op, row, arena, &state, &is_good));
    if (!is_good) {
        return HF_OK;
    }
    HF_TRY(hf_name_text(state.namespace, state.workflow_id, text, &len));
    int64_t hash = hf_name_hash(&core->index, hf_str_of_len(text, len));
    hf_names_add(&core->index, hash, row->key.a, core->commit_next);
    return core->status;
}

static hf_status recover_names(hf_op *op, opening *o, uint32_t version)
{
    hf_core *core = o->core;
    if (version < HF_META_NAMES) { /* the first commit writes them, together with the new version */
        HF_TRY(hf_store_each_row(op, o->store, core->memory, HF_TABLE_RUN, NULL, NULL, name_run, o));
    }
    HF_TRY(hf_names_read_log(op, &core->index, o->store, o->logged));
    core->index.sweep_commit = core->commit_next;
    return HF_OK;
}

static hf_status has_rows(hf_op *op, hf_store *store, hf_arena *arena, hf_table table, bool *ret_has)
{
    hf_store_request scan = {
        .verb = HF_STORE_SCAN,
        .table = table,
        .key_end = hf_key_last(),
        .row_max = 1,
        .arena = arena,
    };
    HF_TRY(hf_store_ask(op, store, &scan));
    *ret_has = scan.row_count > 0;
    return HF_OK;
}

/* Run numbers are used once: a run that has the next number, or a later one, would be taken for a new run. */
static hf_status check_numbers(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena)
{
    hf_store_request scan = {
        .verb = HF_STORE_SCAN,
        .table = HF_TABLE_RUN,
        .key_end = {.a = INT64_MAX},
        .backwards = true,
        .row_max = 1,
        .arena = arena,
    };
    HF_TRY(hf_store_ask(op, store, &scan));
    int64_t last = scan.row_count > 0 ? scan.rows[0].key.a : 0;
    HF_LIST_EACH(node, &core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        last = run->number > last ? run->number : last;
    }
    return last < core->run_next
               ? HF_OK
               : hf_fail(op, HF_ERR_INVALID, "there is a run %lld, but the journal says that the next new run is %lld",
                         (long long)last, (long long)core->run_next);
}

/* There is no driver yet that serves reads: they stay in core->reads. */
static void leave_read(void *state, hf_store_request *request)
{
    (void)state;
    (void)request;
}

/* Hands out tasks of dead workers and sends messages again. Events that these need are read here. */
static hf_status resume(hf_op *op, hf_core *core, hf_store *store)
{
    core->submit = leave_read;
    HF_LIST_EACH(node, &core->runs_all)
    {
        hand_out_again(core, &HF_CONTAINER(node, hf_slot, all_link)->run);
    }
    hf_node *node = NULL;
    while (core->status == HF_OK && (node = hf_list_first(&core->reads)) != NULL) {
        hf_read *read = HF_CONTAINER(node, hf_read, link);
        hf_assert(read->kind == HF_READ_EVENT);
        hf_core_reset_scratch(core);
        HF_TRY(hf_store_ask(op, store, &read->request));
        hf_fetch_done(core, read);
        hf_read_free(core, read);
    }
    core->submit = NULL;
    return core->status;
}

static hf_status recover(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena)
{
    uint32_t names_version = 0;
    HF_TRY(read_meta(op, core, store, arena, &names_version));
    HF_TRY(load_kept(op, core, store, arena));
    HF_TRY(find_unmade(op, core, store, arena));
    opening o = {.core = core, .store = store};
    HF_TRY(replay(op, &o));
    HF_TRY(recover_names(op, &o, names_version));
    HF_TRY(load_held(op, &o));
    HF_TRY(sort_out(op, &o));
    HF_TRY(check_numbers(op, core, store, arena));
    HF_TRY(has_rows(op, store, arena, HF_TABLE_DUE, &core->due_cursor.has_rows));
    HF_TRY(has_rows(op, store, arena, HF_TABLE_TASK, &core->tasks_on_disk));
    bool names = true;
    HF_TRY(has_rows(op, store, arena, HF_TABLE_NAME, &names));
    hf_filter_open(core, !names);
    HF_LIST_EACH(node, &core->runs_all)
    {
        hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (HF_SLOT(run)->bad || !hf_run_is_open(run)) {
            continue;
        }
        hf_name *name = hf_name_add(core, hf_owned_str(&run->namespace), hf_owned_str(&run->workflow_id));
        if (name != NULL) {
            name->fresh = false;
            hf_name_bind(name, run);
        }
        hf_match_run_loaded(core, run);
    }
    HF_TRY(resume(op, core, store));
    core->commit_first = core->commit_next;
    hf_assert(core->commit_durable + 1 == core->commit_next && core->journal_first <= core->commit_next);
    return core->status;
}

hf_status hf_core_open(hf_op *op, const hf_core_options *options, hf_store *store, hf_clock now, hf_core **ret_core)
{
    hf_core *core = hf_core_new(options);
    if (core == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "out of memory");
    }
    core->now = now;
    core->opened_at = now.wall;
    hf_arena arena;
    hf_arena_init(&arena, core->memory);
    hf_status status = recover(op, core, store, &arena);
    if (status == HF_OK && !hf_core_is_whole(core)) {
        status = core->status;
    }
    if (status != HF_OK && op->status == HF_OK) {
        hf_fail(op, status, "%s", core->why);
    }
    hf_arena_deinit(&arena);
    if (status != HF_OK) {
        hf_core_stop(core, status, op->message); /* messages that were sent again go with it */
        hf_core_free(core);
        return status;
    }
    *ret_core = core;
    return HF_OK;
}
