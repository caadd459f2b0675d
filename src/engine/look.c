/* Looking at a store. A run is its row and, on top of it, what was kept for it (kept.c) and what the journal holds for it, as far as
 * the row does not (W2 in spill.c): the same sources as in recovery, put together by other code, and without what recovery does
 * next. */
#include "engine/look.h"

#include "base/digest.h"
#include "history/limits.h"

#define PAGE_LEN (1u << 20) /* bytes read at once */

/* What one commit did to one run. */
typedef struct hf_look_change {
    int64_t run;
    uint64_t commit; /* 0 = changes were kept for the run, and cannot be read */
    hf_str changes;  /* fields of a log; in the arena */
    bool kept;       /* not from the journal */
} hf_look_change;

struct hf_look {
    hf_core *core; /* empty: it gives runs their memory, and counts it */
    hf_store *store;
    hf_arena journal;               /* its bytes */
    HF_VEC(hf_look_change) changes; /* by run, then commit */
    uint64_t commits;               /* in the journal */
    uint64_t names_logged;          /* in name_log, says its last commit */
    hf_arena arena;                 /* of one question */
};

hf_status hf_look_ask(hf_op *op, hf_look *look, hf_store_request *request)
{
    hf_op_init(&request->op);
    hf_store_execute(look->store, request);
    return request->status == HF_OK ? HF_OK : hf_fail(op, request->status, "%s", request->op.message);
}

hf_core *hf_look_core(hf_look *look)
{
    return look->core;
}

uint64_t hf_look_commits(const hf_look *look)
{
    return look->commits;
}

/* ---- The journal ------------------------------------------------------------------------------------------------------ */

static hf_status add_change(hf_op *op, hf_look *look, hf_look_change change)
{
    if (!HF_VEC_RESERVE(&look->core->runs_memory, &look->changes)) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the journal");
    }
    change.changes = hf_arena_copy(&look->journal, change.changes);
    look->changes.items[look->changes.count++] = change;
    return look->journal.status == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for the journal");
}

static hf_status add_run_changes(hf_op *op, hf_look *look, uint64_t commit, hf_str bytes)
{
    hf_pb_run_changes msg;
    HF_TRY(hf_pb_decode(op, &hf_pb_run_changes_type, bytes, &look->arena, &msg));
    if (!hf_run_is_number(msg.run)) {
        return hf_fail(op, HF_ERR_INVALID, "commit %llu of the journal has changes of no run",
                       (unsigned long long)commit);
    }
    return add_change(op, look, (hf_look_change){.run = msg.run, .commit = commit, .changes = msg.changes});
}

/* A row that cannot be read is damage of its run alone. */
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

/* Names that are not in their table yet. */
static hf_status add_names(hf_op *op, hf_look *look, uint64_t commit, hf_str bytes, uint64_t *count)
{
    hf_name_entry entry;
    while (hf_names_next(&bytes, &entry)) {
        hf_names_restore(look->core, entry.hash, entry.run);
        *count += 1;
    }
    return bytes.len == 0
               ? HF_OK
               : hf_fail(op, HF_ERR_INVALID, "names of commit %llu cannot be read", (unsigned long long)commit);
}

static hf_status read_commit(hf_op *op, hf_look *look, const hf_row *row, uint64_t *hash)
{
    hf_str body = {0};
    HF_TRY(hf_record_open(op, HF_TABLE_JOURNAL, &row->key, row->value, &body));
    uint64_t commit = (uint64_t)row->key.a;
    uint64_t says = 0;
    uint64_t previous = 0;
    hf_str rest = body;
    hf_pb_raw field;
    look->names_logged = 0;
    while (rest.len > 0 && hf_pb_next(&rest, &field)) {
        if (field.number == 1) {
            says = field.value;
        } else if (field.number == 3) {
            previous = field.value;
        } else if (field.number == 4) {
            HF_TRY(add_run_changes(op, look, commit, field.bytes));
        } else if (field.number == 7) {
            uint64_t count = 0;
            HF_TRY(add_names(op, look, commit, field.bytes, &count));
        } else if (field.number == 8) {
            look->names_logged = field.value;
        }
    }
    if (rest.data == NULL || says != commit) {
        return hf_fail(op, HF_ERR_INVALID, "commit %lld of the journal cannot be read", (long long)row->key.a);
    }
    if (look->commits > 0 && previous != *hash) {
        return hf_fail(op, HF_ERR_INVALID, "commit %lld of the journal does not follow the one before",
                       (long long)row->key.a);
    }
    *hash = hf_digest(previous, body);
    look->commits++;
    return HF_OK;
}

static hf_status read_journal(hf_op *op, hf_look *look)
{
    int64_t next = 0;
    uint64_t hash = 0;
    bool more = true;
    while (more) {
        hf_arena_reset(&look->arena);
        hf_store_request scan = {
            .verb = HF_STORE_SCAN,
            .table = HF_TABLE_JOURNAL,
            .key = {.a = next},
            .key_end = {.a = INT64_MAX},
            .len_max = PAGE_LEN,
            .arena = &look->arena,
        };
        HF_TRY(hf_look_ask(op, look, &scan));
        for (size_t i = 0; i < scan.row_count; i++) {
            if (next != 0 && scan.rows[i].key.a != next) {
                return hf_fail(op, HF_ERR_INVALID, "commit %lld of the journal is missing", (long long)next);
            }
            HF_TRY(read_commit(op, look, &scan.rows[i], &hash));
            next = scan.rows[i].key.a + 1;
        }
        more = scan.more;
    }
    uint64_t last = look->store->ops->last_commit(look->store);
    if (next != 0 && (uint64_t)next != last + 1) {
        return hf_fail(op, HF_ERR_INVALID, "the journal ends with commit %lld, the store with %llu",
                       (long long)next - 1, (unsigned long long)last);
    }
    return HF_OK;
}

static hf_status read_name_log(hf_op *op, hf_look *look)
{
    hf_store_request scan = {
        .verb = HF_STORE_SCAN,
        .table = HF_TABLE_NAME_LOG,
        .key_end = {.a = INT64_MAX},
        .len_max = PAGE_LEN,
        .arena = &look->arena,
    };
    uint64_t count = 0;
    do {
        hf_arena_reset(&look->arena);
        HF_TRY(hf_look_ask(op, look, &scan));
        for (size_t i = 0; i < scan.row_count; i++) {
            hf_str body = {0};
            HF_TRY(hf_record_open(op, HF_TABLE_NAME_LOG, &scan.rows[i].key, scan.rows[i].value, &body));
            HF_TRY(add_names(op, look, (uint64_t)scan.rows[i].key.a, body, &count));
            scan.key.a = scan.rows[i].key.a + 1;
        }
    } while (scan.more);
    return count == look->names_logged
               ? HF_OK
               : hf_fail(op, HF_ERR_INVALID, "the table name_log has %llu names, the journal says %llu",
                         (unsigned long long)count, (unsigned long long)look->names_logged);
}

/* The key of the store, without which names and run ids say nothing. A store that was never opened has none. */
static hf_status read_key(hf_op *op, hf_look *look)
{
    hf_key key = {HF_STR("engine"), 0, 0};
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_META, .key = key, .arena = &look->arena};
    HF_TRY(hf_look_ask(op, look, &get));
    if (!get.found) {
        return HF_OK;
    }
    hf_str body = {0};
    hf_pb_engine_meta meta;
    HF_TRY(hf_record_open(op, HF_TABLE_META, &key, get.value, &body));
    HF_TRY(hf_pb_decode(op, &hf_pb_engine_meta_type, body, &look->arena, &meta));
    if (meta.mac_key.len != sizeof look->core->mac_key) {
        return hf_fail(op, HF_ERR_INVALID, "the store's meta record is damaged");
    }
    memcpy(look->core->mac_key, meta.mac_key.data, sizeof look->core->mac_key);
    return HF_OK;
}

/* Which of two changes comes first. */
static bool is_before(const hf_look_change *a, const hf_look_change *b)
{
    return a->run != b->run ? a->run < b->run : a->commit < b->commit;
}

/* Heap sort: in place, and never slow. They come by commit. */
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

hf_status hf_look_open(hf_op *op, hf_allocator memory, hf_store *store, hf_look **ret_look)
{
    hf_look *look = memory.allocate(memory.state, sizeof *look, _Alignof(hf_look));
    if (look == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory to look at a store");
    }
    *look = (hf_look){.store = store, .core = hf_core_new(&(hf_core_options){.memory = memory})};
    if (look->core == NULL) {
        memory.release(memory.state, look, sizeof *look);
        return hf_fail(op, HF_ERR_NOMEM, "no memory to look at a store");
    }
    hf_arena_init(&look->journal, look->core->memory);
    hf_arena_init(&look->arena, look->core->memory);
    hf_status status = read_key(op, look);
    status = status == HF_OK ? read_kept(op, look) : status;
    status = status == HF_OK ? read_journal(op, look) : status;
    status = status == HF_OK ? read_name_log(op, look) : status;
    if (status != HF_OK) {
        hf_look_close(look);
        return status;
    }
    sort_changes(look);
    *ret_look = look;
    return HF_OK;
}

void hf_look_close(hf_look *look)
{
    if (look == NULL) {
        return;
    }
    hf_allocator memory = look->core->options.memory;
    hf_core_free_mem(look->core, look->changes.items, look->changes.capacity * sizeof *look->changes.items);
    hf_arena_deinit(&look->journal);
    hf_arena_deinit(&look->arena);
    hf_core_free(look->core);
    memory.release(memory.state, look, sizeof *look);
}

/* ---- One run ---------------------------------------------------------------------------------------------------------- */

static hf_status apply_changes(hf_op *op, hf_look *look, hf_run *run)
{
    uint64_t last = run->commit_last;
    for (size_t i = first_change(look, run->number);
         i < look->changes.count && look->changes.items[i].run == run->number; i++) {
        const hf_look_change *change = &look->changes.items[i];
        if (change->kept && (change->commit == 0 || !run->is_written)) { /* B3 */
            return hf_fail(op, HF_ERR_INVALID, "changes are kept for run %lld, which %s", (long long)run->number,
                           run->is_written ? "cannot be read" : "has no row");
        }
        if (change->commit <= last) { /* W2, or kept and in the journal as well */
            continue;
        }
        last = change->commit;
        hf_buf_put(&run->log, change->changes.data, change->changes.len);
        HF_TRY(hf_apply_log(op, &look->core->runs_memory, run, change->changes));
    }
    return run->log.status;
}

hf_status hf_look_run(hf_op *op, hf_look *look, int64_t number, hf_run **ret_run)
{
    hf_arena_reset(&look->arena);
    hf_arena_reset(&look->core->scratch);
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = number}, .arena = &look->arena};
    HF_TRY(hf_look_ask(op, look, &get));
    hf_run *run = hf_run_new(&look->core->runs_memory, number);
    if (run == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a run");
    }
    hf_status status = get.found ? hf_run_fill(op, &look->core->runs_memory, run, get.value) : HF_OK;
    run->is_written = get.found;
    if (status == HF_OK) {
        status = apply_changes(op, look, run);
    }
    if (status == HF_OK && run->event_count == 0) {
        status = hf_fail(op, HF_ERR_NOT_FOUND, "there is no run %lld", (long long)number);
    }
    if (status == HF_OK) {
        status = hf_run_sound(op, run);
    }
    if (status == HF_OK && look->core->status != HF_OK) {
        status = hf_fail(op, look->core->status, "%s", look->core->why);
    }
    if (status != HF_OK) {
        hf_run_free(&look->core->runs_memory, run);
        return status;
    }
    *ret_run = run;
    return HF_OK;
}

void hf_look_run_free(hf_look *look, hf_run *run)
{
    if (run != NULL) {
        hf_run_free(&look->core->runs_memory, run);
    }
}

static hf_status add_record(hf_op *op, hf_look *look, const hf_row *row, hf_pb_history_record *last, hf_buf *out)
{
    hf_str body = {0};
    hf_pb_history_record record;
    HF_TRY(hf_record_open(op, HF_TABLE_HISTORY, &row->key, row->value, &body));
    HF_TRY(hf_pb_decode(op, &hf_pb_history_record_type, body, &look->arena, &record));
    if (record.first_id != last->last_id + 1 || record.first_id != row->key.b || record.last_id < record.first_id) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: event %lld is missing", (long long)row->key.a,
                       (long long)last->last_id + 1);
    }
    if (record.chain_before != last->chain_after) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: the hash chain is broken at event %lld", (long long)row->key.a,
                       (long long)record.first_id);
    }
    hf_buf_put(out, record.events.data, record.events.len);
    *last = record;
    return HF_OK;
}

hf_status hf_look_history(hf_op *op, hf_look *look, const hf_run *run, hf_buf *out)
{
    hf_pb_history_record last = {0};
    int64_t next = 0;
    bool more = true;
    while (more) {
        hf_arena_reset(&look->arena);
        hf_store_request scan = {
            .verb = HF_STORE_SCAN,
            .table = HF_TABLE_HISTORY,
            .key = {.a = run->number, .b = next},
            .key_end = {.a = run->number + 1},
            .len_max = PAGE_LEN,
            .arena = &look->arena,
        };
        HF_TRY(hf_look_ask(op, look, &scan));
        for (size_t i = 0; i < scan.row_count; i++) {
            HF_TRY(add_record(op, look, &scan.rows[i], &last, out));
            next = scan.rows[i].key.b + 1;
        }
        more = scan.more;
    }
    if (last.last_id != run->spilled || last.chain_after != run->spilled_chain) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: its row knows %lld written events, its history has %lld",
                       (long long)run->number, (long long)run->spilled, (long long)last.last_id);
    }
    hf_log_events(run, run->spilled + 1, run->event_count, out);
    return out->status == HF_OK ? HF_OK : hf_fail(op, out->status, "no memory for a history");
}

/* ---- Finding ---------------------------------------------------------------------------------------------------------- */

hf_status hf_look_next(hf_op *op, hf_look *look, int64_t after, int64_t *ret_number)
{
    hf_arena_reset(&look->arena);
    hf_store_request scan = {
        .verb = HF_STORE_SCAN,
        .table = HF_TABLE_RUN,
        .key = {.a = after + 1},
        .key_end = {.a = INT64_MAX},
        .row_max = 1,
        .arena = &look->arena,
    };
    HF_TRY(hf_look_ask(op, look, &scan));
    int64_t next = scan.row_count > 0 ? scan.rows[0].key.a : INT64_MAX;
    size_t i = first_change(look, after + 1);
    if (i < look->changes.count && look->changes.items[i].run < next) {
        next = look->changes.items[i].run;
    }
    *ret_number = next == INT64_MAX ? 0 : next;
    return HF_OK;
}

hf_status hf_look_before(hf_op *op, hf_look *look, int64_t before, int64_t *ret_number)
{
    hf_arena_reset(&look->arena);
    hf_store_request scan = {
        .verb = HF_STORE_SCAN,
        .table = HF_TABLE_RUN,
        .key_end = {.a = before},
        .backwards = true,
        .row_max = 1,
        .arena = &look->arena,
    };
    HF_TRY(hf_look_ask(op, look, &scan));
    int64_t last = scan.row_count > 0 ? scan.rows[0].key.a : 0;
    size_t i = first_change(look, before);
    if (i > 0 && look->changes.items[i - 1].run > last) {
        last = look->changes.items[i - 1].run;
    }
    *ret_number = last;
    return HF_OK;
}

/* Rows are counted by the store; what the journal alone knows of comes on top. */
hf_status hf_look_count(hf_op *op, hf_look *look, uint64_t *ret_count)
{
    hf_store_count rows = {.table = HF_TABLE_RUN};
    hf_store_request stats = {.verb = HF_STORE_STATS, .count = &rows};
    do {
        HF_TRY(hf_look_ask(op, look, &stats));
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
        HF_TRY(hf_look_ask(op, look, &get));
        count += get.found ? 0 : 1;
    }
    *ret_count = count;
    return HF_OK;
}

/* What is looked for, and the greatest number that fits. */
typedef struct hf_look_search {
    hf_str name_space;
    hf_str text;
    int64_t by_workflow;
    int64_t by_run;
} hf_look_search;

/* Is it this run? */
static hf_status consider(hf_op *op, hf_look *look, hf_look_search *search, int64_t number)
{
    hf_run *run = NULL;
    hf_status status = hf_look_run(op, look, number, &run);
    if (status != HF_OK) {
        return status == HF_ERR_NOT_FOUND ? HF_OK : status;
    }
    if (hf_str_equal(hf_owned_str(&run->namespace), search->name_space)) {
        if (hf_str_equal(hf_owned_str(&run->workflow_id), search->text) && number > search->by_workflow) {
            search->by_workflow = number;
        }
        if (hf_str_equal(hf_owned_str(&run->run_id), search->text) && number > search->by_run) {
            search->by_run = number;
        }
    }
    hf_look_run_free(look, run);
    return HF_OK;
}

/* By the index, from the latest run on. */
static hf_status search_names(hf_op *op, hf_look *look, hf_look_search *search)
{
    char text[2 * HF_ID_LEN_MAX + 1];
    size_t len = 0;
    if (hf_name_text(search->name_space, search->text, text, &len) != HF_OK) {
        return HF_OK; /* too long to be one */
    }
    int64_t hash = hf_name_hash(look->core, hf_str_of_len(text, len));
    int64_t below = INT64_MAX;
    while (search->by_workflow == 0 && (below = hf_names_below(look->core, hash, below)) != 0) {
        HF_TRY(consider(op, look, search, below));
    }
    below = INT64_MAX;
    while (search->by_workflow == 0) {
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
        HF_TRY(hf_look_ask(op, look, &scan));
        if (scan.row_count == 0) {
            break;
        }
        below = scan.rows[0].key.b;
        HF_TRY(consider(op, look, search, below));
    }
    return HF_OK;
}

/* Runs that have no row yet. One that cannot be read has had one, and was looked for by its name. */
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

hf_status hf_look_find(hf_op *op, hf_look *look, hf_str name_space, hf_str workflow_or_run_id, int64_t *ret_number)
{
    hf_look_search search = {.name_space = name_space, .text = workflow_or_run_id};
    HF_TRY(search_names(op, look, &search));
    int64_t number = hf_run_id_number(look->core->mac_key, workflow_or_run_id);
    if (number > 0) {
        HF_TRY(consider(op, look, &search, number));
    }
    HF_TRY(search_journal(op, look, &search));
    *ret_number = search.by_workflow != 0 ? search.by_workflow : search.by_run;
    if (*ret_number == 0) {
        return hf_fail(op, HF_ERR_NOT_FOUND, "there is no workflow and no run \"%.*s\" in the namespace \"%.*s\"",
                       HF_STR_ARGS(workflow_or_run_id), HF_STR_ARGS(name_space));
    }
    return HF_OK;
}
