/* Opening: the core comes back from the store as it was, but for what was never durable.
 *
 * Counters and dirty runs come from the journal; everything else stays on disk until it is asked for. Tasks that workers of
 * an earlier process held in memory are theirs no longer: workflow tasks are handed out again as they are, activities as
 * their next attempt.
 *
 * What cannot be read of one run makes that run bad and stops nobody else (D4); what the journal has of it is kept aside
 * (kept.c). Without the meta record, the journal or the log of names nobody can tell what the others are: that refuses. */
#include "engine/core.h"

#include "base/canary.h"
#include "base/digest.h"
#include "history/limits.h"

#define PAGE_LEN (1u << 20) /* bytes read at once */
#define NAMES_VERSION 1     /* EngineMeta.names */

static hf_status execute(hf_op *op, hf_store *store, hf_store_request *request)
{
    hf_op_init(&request->op);
    hf_store_execute(store, request);
    return request->status == HF_OK ? HF_OK : hf_fail(op, request->status, "%s", request->op.message);
}

static const hf_key META_KEY = {HF_STR_INIT("engine"), 0, 0};

static hf_status read_meta(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena, uint32_t *ret_names)
{
    *ret_names = NAMES_VERSION;
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_META, .key = META_KEY, .arena = arena};
    HF_TRY(execute(op, store, &get));
    core->meta_dirty = true;
    if (!get.found) {
        uint64_t words[2] = {1, 2};
        uint64_t high = hf_siphash(core->options.seed, hf_str_of_len(words, sizeof words));
        words[0] = 3;
        uint64_t low = hf_siphash(core->options.seed, hf_str_of_len(words, sizeof words));
        memcpy(core->mac_key, &high, 8);
        memcpy(core->mac_key + 8, &low, 8);
        core->incarnation = core->options.incarnation != 0 ? core->options.incarnation : 1;
        return HF_OK;
    }
    hf_str body = {0};
    hf_pb_engine_meta meta;
    HF_TRY(hf_record_open(op, HF_TABLE_META, &META_KEY, get.value, &body));
    HF_TRY(hf_pb_decode(op, &hf_pb_engine_meta_type, body, arena, &meta));
    if (meta.mac_key.len != sizeof core->mac_key || meta.incarnation == UINT64_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "the store's meta record is damaged");
    }
    memcpy(core->mac_key, meta.mac_key.data, sizeof core->mac_key);
    *ret_names = meta.names;
    core->incarnation = core->options.incarnation != 0 ? core->options.incarnation : meta.incarnation + 1;
    return HF_OK;
}

void hf_core_put_meta(hf_core *core, hf_batch *batch)
{
    hf_pb_engine_meta meta = {
        .mac_key = hf_str_of_len(core->mac_key, sizeof core->mac_key),
        .incarnation = core->incarnation,
        .names = NAMES_VERSION,
    };
    core->row.len = 0;
    hf_pb_encode(&hf_pb_engine_meta_type, &meta, &core->row);
    char *bytes = hf_arena_take(&batch->arena, HF_RECORD_HEADER_LEN + core->row.len, 8);
    if (bytes == NULL || core->row.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    memcpy(bytes + HF_RECORD_HEADER_LEN, core->row.data, core->row.len);
    hf_record_seal(HF_TABLE_META, &META_KEY, bytes, core->row.len);
    hf_batch_write(core, batch,
                   (hf_write){.table = HF_TABLE_META,
                              .kind = HF_WRITE_PUT,
                              .key = META_KEY,
                              .value = hf_str_of_len(bytes, HF_RECORD_HEADER_LEN + core->row.len)});
    hf_kept_put(core, batch);
    core->meta_dirty = false;
}

/* ---- Journal --------------------------------------------------------------------------------------------------------- */

/* Its records do not check: nothing of it is left in memory but its number, and that stays (B2). */
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
    }
    return core->status;
}

/* Something about a run failed. Damage stops the run; all else, lack of memory above all, stops the opening. */
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
    hf_status status = execute(&bad, store, &get);
    if (status == HF_OK && get.found) {
        status = hf_run_fill(&bad, &core->runs_memory, *ret_run, get.value);
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
    if (run->commit_last >= commit && !HF_CANARY(HF_BUG_CHANGES_TWICE)) { /* W2: its rows hold this */
        return HF_OK;
    }
    hf_core_use(core, run);
    if (!hf_node_is_linked(&HF_SLOT(run)->dirty_link)) {
        HF_SLOT(run)->commit_dirty = commit;
        hf_list_push_back(&core->dirty, &HF_SLOT(run)->dirty_link);
    }
    run->commit_last = commit;
    hf_buf_put(&run->log, changes.data, changes.len);
    HF_SLOT(run)->batch_start = run->log.len;
    HF_TRY(hf_apply_log(op, &core->runs_memory, run, changes));
    if (run->log.status != HF_OK) {
        hf_core_break(core, run->log.status, "out of memory");
    }
    return core->status;
}

static hf_status replay_run(hf_op *op, hf_core *core, hf_store *store, uint64_t commit, hf_str bytes)
{
    hf_pb_run_changes msg;
    HF_TRY(hf_pb_decode(op, &hf_pb_run_changes_type, bytes, &core->scratch, &msg));
    if (!hf_run_is_number(msg.run)) {
        return hf_fail(op, HF_ERR_INVALID, "commit %llu of the journal has changes of no run",
                       (unsigned long long)commit);
    }
    hf_run *run = NULL;
    HF_TRY(load_now(op, core, store, msg.run, &run));
    if (HF_SLOT(run)->bad) {
        return HF_OK;
    }
    hf_op bad;
    hf_op_init(&bad);
    hf_status status = apply(&bad, core, run, commit, msg.changes);
    return status == HF_OK ? HF_OK : stop_run(op, core, &run, status, &bad);
}

/* Names of runs that had their first row with this commit. */
static hf_status replay_names(hf_op *op, hf_core *core, uint64_t commit, hf_str bytes)
{
    hf_name_entry entry;
    while (hf_names_next(&bytes, &entry)) {
        hf_run *run = hf_run_find(core, entry.run); /* earlier commits have changed it */
        if (run != NULL && !HF_SLOT(run)->bad && !run->is_written) {
            HF_TRY(make_bad(core, &run)); /* its row is gone */
        }
        hf_names_restore(core, entry.hash, entry.run);
        if (HF_VEC_RESERVE(&core->runs_memory, &core->index.fresh)) {
            core->index.fresh.items[core->index.fresh.count++] = (hf_name_fresh){entry, commit};
        }
    }
    return bytes.len == 0 ? core->status
                          : hf_fail(op, HF_ERR_INVALID, "commit %llu of the journal: its names cannot be read",
                                    (unsigned long long)commit);
}

static hf_status replay_commit(hf_op *op, hf_core *core, hf_store *store, const hf_row *row, bool first,
                               uint64_t *ret_logged)
{
    *ret_logged = 0;
    hf_str body = {0};
    hf_pb_journal_commit msg = {0};
    uint64_t commit = (uint64_t)row->key.a;
    HF_TRY(hf_record_open(op, HF_TABLE_JOURNAL, &row->key, row->value, &body));
    hf_str rest = body;
    hf_pb_raw field;
    while (rest.len > 0 && hf_pb_next(&rest, &field)) { /* runs are taken as they come, the others are few */
        switch (field.number) {
        case 1:
            msg.commit = field.value;
            break;
        case 3:
            msg.previous = field.value;
            if (!first && msg.previous != core->journal_hash) {
                return hf_fail(op, HF_ERR_INVALID, "commit %llu of the journal does not follow the one before",
                               (unsigned long long)commit);
            }
            break;
        case 4:
            hf_core_reset_scratch(core);
            HF_TRY(replay_run(op, core, store, commit, field.bytes));
            break;
        case 5:
            core->run_next = (int64_t)field.value;
            break;
        case 6:
            core->order_next = (int64_t)field.value;
            break;
        case 8:
            *ret_logged = field.value;
            break;
        case 7:
            HF_TRY(replay_names(op, core, commit, field.bytes));
            break;
        default:
            break;
        }
    }
    if (rest.data == NULL || msg.commit != commit || !hf_run_is_number(core->run_next) ||
        !hf_run_is_number(core->order_next)) {
        return hf_fail(op, HF_ERR_INVALID, "commit %lld of the journal cannot be read", (long long)row->key.a);
    }
    core->journal_hash = hf_digest(msg.previous, body);
    if (HF_VEC_RESERVE(&core->runs_memory, &core->journal_lens)) {
        core->journal_lens.items[core->journal_lens.count++] = (uint32_t)body.len;
        core->journal_len += body.len;
    }
    return core->status;
}

/* Gives how many names the table name_log has. */
static hf_status replay(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena, uint64_t *ret_logged)
{
    int64_t next = 0;
    bool more = true;
    while (more) {
        hf_arena_reset(arena);
        hf_store_request scan = {
            .verb = HF_STORE_SCAN,
            .table = HF_TABLE_JOURNAL,
            .key = {.a = next},
            .key_end = {.a = INT64_MAX},
            .len_max = PAGE_LEN,
            .arena = arena,
        };
        HF_TRY(execute(op, store, &scan));
        for (size_t i = 0; i < scan.row_count; i++) {
            bool first = next == 0;
            if (first) {
                core->journal_first = (uint64_t)scan.rows[i].key.a;
            } else if (scan.rows[i].key.a != next) {
                return hf_fail(op, HF_ERR_INVALID, "commit %lld of the journal is missing", (long long)next);
            }
            HF_TRY(replay_commit(op, core, store, &scan.rows[i], first, ret_logged));
            next = scan.rows[i].key.a + 1;
        }
        more = scan.more;
    }
    if (next != 0) {
        HF_PROBE(core, HF_PROBE_RECOVERED);
        core->commit_next = (uint64_t)next;
    }
    core->commit_durable =
        core->commit_next - 1; /* store-S7: the store has seen to it; no commit of ours could prove it */
    core->journal_first = core->journal_lens.count > 0 ? core->journal_first : core->commit_next;
    return HF_OK;
}

/* ---- What dead workers held ------------------------------------------------------------------------------------------- */

static bool is_of_dead(const hf_core *core, uint64_t incarnation)
{
    return incarnation != 0 && incarnation != core->incarnation;
}

static void hand_out_again(hf_core *core, hf_run *run)
{
    if (HF_SLOT(run)->loading || HF_SLOT(run)->bad) {
        return;
    }
    hf_external_post_all(core, run);
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
        /* One that was given back waits for its next holder: nobody has lost that attempt. */
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

/* Every row of a table, a page at a time. */
typedef hf_status row_fn(hf_op *op, hf_core *core, hf_store *store, const hf_row *row, hf_arena *arena);

static hf_status each_row(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena, hf_table table, row_fn *fn)
{
    hf_store_request scan = {
        .verb = HF_STORE_SCAN,
        .table = table,
        .key_end = {.a = INT64_MAX},
        .len_max = PAGE_LEN,
        .arena = arena,
    };
    do {
        hf_arena_reset(arena);
        HF_TRY(execute(op, store, &scan));
        for (size_t i = 0; i < scan.row_count; i++) {
            HF_TRY(fn(op, core, store, &scan.rows[i], arena));
            scan.key.a = scan.rows[i].key.a + 1;
        }
    } while (scan.more);
    return core->status;
}

/* The state in a row of the run table, if it can be read. */
static hf_status read_state(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_run_state *ret_state,
                            bool *ret_is_good)
{
    hf_op bad;
    hf_op_init(&bad);
    hf_str body = {0};
    hf_status status = hf_record_open(&bad, HF_TABLE_RUN, &row->key, row->value, &body);
    status = status == HF_OK ? hf_pb_decode(&bad, &hf_pb_run_state_type, body, arena, ret_state) : status;
    *ret_is_good = status == HF_OK;
    return status == HF_OK || status == HF_ERR_INVALID ? HF_OK : hf_fail(op, status, "%s", bad.message);
}

/* Loads the run of a row if that says that the task table has something that a worker held. One that cannot be read may be the
 * one that is looked for: it is bad from now on. */
static hf_status load_holder(hf_op *op, hf_core *core, hf_store *store, const hf_row *row, hf_arena *arena)
{
    hf_pb_run_state state;
    bool is_good = false;
    HF_TRY(read_state(op, row, arena, &state, &is_good));
    bool is_holder = !is_good;
    for (size_t i = 0; is_good && i < state.rows_written.count; i++) {
        is_holder = is_holder || hf_str_equal(state.rows_written.items[i].queue, HF_STR("h"));
    }
    hf_run *run = NULL;
    hf_core_reset_scratch(core);
    return is_holder ? load_now(op, core, store, row->key.a, &run) : HF_OK;
}

static hf_status load_held(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena)
{
    bool any_bad = false;
    hf_arena_reset(arena);
    hf_store_request scan = {
        .verb = HF_STORE_SCAN,
        .table = HF_TABLE_TASK,
        .key = {HF_STR("h"), 0, 0},
        .key_end = {HF_STR("h"), INT64_MAX, 0},
        .arena = arena,
    };
    HF_TRY(execute(op, store, &scan));
    for (size_t i = 0; i < scan.row_count; i++) {
        hf_str body = {0};
        hf_pb_task_record record;
        hf_op bad;
        hf_op_init(&bad);
        hf_status status = hf_record_open(&bad, HF_TABLE_TASK, &scan.rows[i].key, scan.rows[i].value, &body);
        status = status == HF_OK ? hf_pb_decode(&bad, &hf_pb_task_record_type, body, arena, &record) : status;
        if (status == HF_ERR_INVALID) {
            HF_PROBE(core, HF_PROBE_BAD_RECORD);
            any_bad = true;
            continue;
        }
        if (status != HF_OK) {
            return hf_fail(op, status, "%s", bad.message);
        }
        hf_run *run = NULL;
        hf_core_reset_scratch(core);
        HF_TRY(load_now(op, core, store, record.run, &run));
    }
    /* Whose such a record is it does not say any more, but its run does: all are asked, however long that takes. */
    return any_bad ? each_row(op, core, store, arena, HF_TABLE_RUN, load_holder) : HF_OK;
}

/* ---- What was kept, and what is to be --------------------------------------------------------------------------------- */

/* Before the journal, which has nothing newer (B1). */
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
        hf_status status = HF_SLOT(run)->bad || run->is_written ? HF_OK : HF_ERR_INVALID; /* B3 */
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

/* A commit of the journal, once more. */
static hf_status gather(hf_op *op, hf_core *core, hf_store *store, const hf_row *row, hf_arena *arena)
{
    (void)store;
    hf_str rest = {0};
    hf_pb_raw field;
    HF_TRY(hf_record_open(op, HF_TABLE_JOURNAL, &row->key, row->value, &rest));
    while (rest.len > 0 && hf_pb_next(&rest, &field)) {
        hf_pb_run_changes msg;
        if (field.number != 4) {
            continue;
        }
        HF_TRY(hf_pb_decode(op, &hf_pb_run_changes_type, field.bytes, arena, &msg));
        hf_run *run = hf_run_find(core, msg.run);
        if (run != NULL && HF_SLOT(run)->bad && !HF_SLOT(run)->kept) {
            hf_kept_gather(core, run, (uint64_t)row->key.a, msg.changes);
        }
    }
    return core->status;
}

/* All that is to be loaded is: which runs are bad is known now. */
static hf_status sort_out(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena)
{
    bool any_bad = false;
    HF_LIST_EACH(node, &core->runs_all)
    {
        hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        hf_op bad;
        hf_op_init(&bad);
        if (!HF_SLOT(run)->bad && hf_run_sound(&bad, run) != HF_OK) {
            HF_TRY(make_bad(core, &run)); /* changed or held, and not there; or changed into what it cannot be */
        }
        any_bad = any_bad || HF_SLOT(run)->bad;
        if (!HF_SLOT(run)->bad) {
            hf_due_at(core, run, hf_run_next_due(run));
        }
        if (HF_SLOT(run)->kept && !HF_SLOT(run)->bad) {
            HF_PROBE(core, HF_PROBE_KEPT_APPLIED);
            if (hf_node_is_linked(&HF_SLOT(run)->dirty_link)) {
                hf_list_remove(
                    &HF_SLOT(run)->dirty_link); /* what it has is not in the journal, which need not wait for it */
            }
            hf_core_touch(core, run);
            HF_SLOT(run)->spill_now = true;
        }
    }
    return any_bad ? each_row(op, core, store, arena, HF_TABLE_JOURNAL, gather) : core->status;
}

/* ---- Names ------------------------------------------------------------------------------------------------------------ */

static hf_status read_names(hf_op *op, hf_core *core, hf_store *store, const hf_row *row, hf_arena *arena)
{
    (void)store;
    (void)arena;
    hf_str rest = {0};
    hf_name_entry entry;
    size_t count = 0;
    HF_TRY(hf_record_open(op, HF_TABLE_NAME_LOG, &row->key, row->value, &rest));
    for (; hf_names_next(&rest, &entry); count++) {
        hf_names_restore(core, entry.hash, entry.run);
    }
    hf_names_logged(core, (uint64_t)row->key.a, count);
    return rest.len == 0 ? HF_OK
                         : hf_fail(op, HF_ERR_INVALID, "names of commit %lld cannot be read", (long long)row->key.a);
}

/* The name of a run from its own row, for a file that had no index of this kind. A row that cannot be read is left out: its run
 * cannot be used anyway (D4). */
static hf_status name_run(hf_op *op, hf_core *core, hf_store *store, const hf_row *row, hf_arena *arena)
{
    (void)store;
    hf_pb_run_state state;
    bool is_good = false;
    char text[2 * HF_ID_LEN_MAX + 1];
    size_t len = 0;
    HF_TRY(read_state(op, row, arena, &state, &is_good));
    if (!is_good) {
        return HF_OK;
    }
    HF_TRY(hf_name_text(state.namespace, state.workflow_id, text, &len));
    hf_names_add(core, hf_name_hash(core, hf_str_of_len(text, len)), row->key.a);
    return core->status;
}

static hf_status recover_names(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena, uint32_t version,
                               uint64_t logged)
{
    if (version < NAMES_VERSION) { /* they are in the first commit, together with the new version */
        HF_TRY(each_row(op, core, store, arena, HF_TABLE_RUN, name_run));
    }
    HF_TRY(each_row(op, core, store, arena, HF_TABLE_NAME_LOG, read_names));
    if (core->index.log_count != logged) {
        return hf_fail(op, HF_ERR_INVALID, "the table name_log has %zu names, the journal says %llu",
                       core->index.log_count, (unsigned long long)logged);
    }
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
    HF_TRY(execute(op, store, &scan));
    *ret_has = scan.row_count > 0;
    return HF_OK;
}

/* Numbers are given once: a run that has the next one, or a later one, would be taken for a run to come. */
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
    HF_TRY(execute(op, store, &scan));
    int64_t last = scan.row_count > 0 ? scan.rows[0].key.a : 0;
    HF_LIST_EACH(node, &core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        last = run->number > last ? run->number : last;
    }
    return last < core->run_next
               ? HF_OK
               : hf_fail(op, HF_ERR_INVALID, "there is a run %lld, the journal says that %lld is the next",
                         (long long)last, (long long)core->run_next);
}

static hf_status recover(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena)
{
    uint32_t names_version = 0;
    HF_TRY(read_meta(op, core, store, arena, &names_version));
    HF_TRY(load_kept(op, core, store, arena));
    uint64_t logged = 0;
    HF_TRY(replay(op, core, store, arena, &logged));
    HF_TRY(recover_names(op, core, store, arena, names_version, logged));
    HF_TRY(load_held(op, core, store, arena));
    HF_TRY(sort_out(op, core, store, arena));
    HF_TRY(check_numbers(op, core, store, arena));
    HF_TRY(has_rows(op, store, arena, HF_TABLE_DUE, &core->due_on_disk));
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
    HF_LIST_EACH(node, &core->runs_all)
    {
        hand_out_again(core, &HF_CONTAINER(node, hf_slot, all_link)->run);
    }
    core->due_until = 0;
    core->commit_first = core->commit_next;
    return core->status;
}

hf_status hf_core_open(hf_op *op, const hf_core_options *options, hf_store *store, hf_clock now, hf_core **ret_core)
{
    hf_core *core = hf_core_new(options);
    if (core == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "out of memory");
    }
    core->now = now;
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
        hf_core_free(core);
        return status;
    }
    *ret_core = core;
    return HF_OK;
}
