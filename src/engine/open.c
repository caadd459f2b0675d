/* Opening: builds the core from the store as it was, except for changes that were never durable.
 *
 * Counters and dirty runs come from the journal; everything else stays on disk until it is asked for. Tasks that in-process workers of
 * an earlier process held are taken from them: workflow tasks are handed out again as they are, activities as
 * their next attempt.
 *
 * If a record of one run cannot be read, that run is bad and no other is affected (D4); its changes in the journal are kept aside
 * (ledger/kept.h). Without the meta record, the journal or the log of names no run can be trusted: then opening fails. */
#include "engine/open_private.h"

#include "engine/batch.h"
#include "engine/fetch.h"
#include "engine/filter.h"
#include "engine/load.h"
#include "engine/matching.h"
#include "engine/namespaces.h"
#include "ledger/kept.h"
#include "ledger/meta.h"
#include "ledger/rows.h"

enum { FEW_RANGES = 1 << 16 }; /* of runs (engine/blocks.h): a mebibyte of memory */

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

/* Which formats the file has; those of a new file are the current ones. */
static hf_status read_meta(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena, hf_meta *ret_formats)
{
    hf_meta meta;
    bool found = false;
    HF_TRY(hf_meta_read(op, store, arena, &meta, &found));
    core->meta_dirty = true;
    ret_formats->names = found ? meta.names : HF_META_NAMES;
    ret_formats->namespaces = found ? meta.namespaces : HF_META_NAMESPACES;
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
    hf_meta meta = {.incarnation = core->incarnation, .names = HF_META_NAMES, .namespaces = HF_META_NAMESPACES};
    memcpy(meta.mac_key, core->mac_key, sizeof meta.mac_key);
    hf_meta_put(&batch->writes, &meta);
    put_kept(core, batch);
    core->meta_dirty = false;
}

/* ---- Names ------------------------------------------------------------------------------------------------------------ */

/* The name of a run from its own row, for a file that had no index of this kind. A row that cannot be read is left out: its run
 * cannot be used anyway (D4). */
static hf_status name_run(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    hf_core *core = ((hf_opening *)arg)->core;
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

static hf_status recover_names(hf_op *op, hf_opening *o, uint32_t version)
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

/* No run has a number below this one. A file that never had many runs is not asked. */
static hf_status find_first(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena, int64_t *ret_first)
{
    *ret_first = 1;
    if (core->run_next / core->blocks.size < FEW_RANGES) {
        return HF_OK;
    }
    hf_store_request scan = {
        .verb = HF_STORE_SCAN, .table = HF_TABLE_RUN, .key_end = {.a = INT64_MAX}, .row_max = 1, .arena = arena};
    HF_TRY(hf_store_ask(op, store, &scan));
    *ret_first = scan.row_count > 0 ? scan.rows[0].key.a : core->run_next;
    HF_LIST_EACH(node, &core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        *ret_first = run->number < *ret_first ? run->number : *ret_first;
    }
    return HF_OK;
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
    hf_assert(core->submit == NULL); /* no driver yet */
    core->submit = leave_read;
    HF_LIST_EACH(node, &core->runs_all)
    {
        hf_open_hand_out(core, &HF_CONTAINER(node, hf_slot, all_link)->run);
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
    hf_assert(core->status != HF_OK || hf_list_is_empty(&core->reads));
    core->submit = NULL;
    return core->status;
}

static hf_status recover(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena)
{
    hf_meta formats = {0};
    HF_TRY(read_meta(op, core, store, arena, &formats));
    HF_TRY(hf_open_kept(op, core, store, arena));
    HF_TRY(hf_open_unmade(op, core, store, arena));
    hf_opening o = {.core = core, .store = store};
    HF_TRY(hf_open_journal(op, &o));
    HF_TRY(recover_names(op, &o, formats.names));
    HF_TRY(hf_open_held(op, &o));
    HF_TRY(hf_open_sort_out(op, &o));
    HF_TRY(hf_namespaces_open(op, core, store, formats.namespaces == HF_META_NAMESPACES));
    HF_TRY(hf_operations_open(op, core, store));
    HF_TRY(check_numbers(op, core, store, arena));
    bool had_runs = core->run_next > 1; /* else these tables are empty */
    if (had_runs) {                     /* an engine without deadlines does not wake up for them */
        HF_TRY(has_rows(op, store, arena, HF_TABLE_DUE, &core->due_cursor.has_rows));
    }
    core->tasks_on_disk = had_runs;
    hf_filter_open(core, !had_runs);
    HF_LIST_EACH(node, &core->runs_all)
    {
        hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (HF_SLOT(run)->bad || !hf_run_is_open(run) || run->kind != HF_KIND_WORKFLOW) {
            continue;
        }
        hf_name *name = hf_name_add(core, hf_owned_str(&run->namespace), hf_owned_str(&run->workflow_id));
        if (name != NULL) {
            name->fresh = false;
            hf_name_bind(name, run);
        }
        HF_SLOT(run)->is_row_open = run->is_written;
        hf_match_run_loaded(core, run);
    }
    int64_t first = 1;
    HF_TRY(find_first(op, core, store, arena, &first));
    hf_blocks_open(core, first);
    HF_TRY(resume(op, core, store));
    hf_match_opened(core);
    core->commit_first = core->commit_next;
    hf_assert(core->commit_durable + 1 == core->commit_next && core->journal_first <= core->commit_next);
    hf_assert(core->meta_dirty); /* engine-U2: the first commit says that this process has the store */
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
    core->is_opening = true;
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
