/* Checking a store. Two passes: all tables row by row for their checksums (inspect-K1), then run by run (inspect-K3, inspect-K4).
 *
 * inspect-K4 has two directions. Rows that a run names are looked up. That the tables hold nothing else is checked by counting: if
 * there are as many rows as the runs account for, and no row is accounted for twice (keys are unique), there is no stranger (a
 * row that no run names). Only if the numbers differ is the table walked to name the strangers. */
#include "inspect/check.h"

#include "history/history.h"
#include "inspect/check_blocks.h"
#include "inspect/look.h"
#include "ledger/names.h"
#include "ledger/rows.h"
#include "run/stream.h"

#include <stdarg.h>
#include <stdio.h>

enum { PROGRESS_EVERY = 256, DAMAGES_TOLD_MAX = 1000 };

typedef struct checking {
    hf_allocator memory;
    hf_store *store;
    hf_check_options options;
    hf_check_report report;
    uint64_t rows[HF_TABLE_COUNT];      /* in the table */
    uint64_t accounted[HF_TABLE_COUNT]; /* that runs name */
    int64_t made_id;                    /* of a run that is being made: the last event of its rows so far */
    uint64_t made_chain;                /* after that */
    uint64_t unsure;                    /* rows of one table that lead to runs which cannot be read */
    hf_look *look;
    hf_arena arena; /* of one row */
    hf_buf history; /* of one run */
} checking;

static void found(checking *c, const char *format, ...) HF_PRINTF(2, 3);
static void found(checking *c, const char *format, ...)
{
    c->report.damages++;
    if (c->options.found == NULL || c->report.damages > DAMAGES_TOLD_MAX) {
        return;
    }
    char sentence[HF_MESSAGE_LEN_MAX + 128];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    c->options.found(c->options.state, sentence);
}

static void progress(checking *c, const char *what, uint64_t done, uint64_t total)
{
    if (c->options.progress != NULL && done % PROGRESS_EVERY == 0) {
        c->options.progress(c->options.state, what, done, total);
    }
}

/* Damage is reported and the check goes on; any other failure ends the check. */
static bool is_damage(hf_status status)
{
    return status == HF_ERR_INVALID || status == HF_ERR_NOT_FOUND;
}

/* A record that cannot be decoded because memory is out is not damaged. */
static hf_status memory_of(hf_op *op, const checking *c)
{
    return c->arena.status == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for the check");
}

/* ---- Every row of a table --------------------------------------------------------------------------------------------- */

typedef hf_status row_fn(hf_op *op, checking *c, hf_table table, const hf_row *row);

typedef struct table_walk {
    checking *c;
    hf_table table;
    row_fn *fn;
} table_walk;

static hf_status visit_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    const table_walk *walk = arg;
    (void)arena;
    return walk->fn(op, walk->c, walk->table, row);
}

static hf_status each_row(hf_op *op, checking *c, hf_table table, row_fn *fn)
{
    table_walk walk = {c, table, fn};
    return hf_store_each_row(op, c->store, c->memory, table, NULL, NULL, visit_row, &walk);
}

/* inspect-K1. */
static hf_status check_record(hf_op *op, checking *c, hf_table table, const hf_row *row)
{
    (void)op;
    hf_assert(hf_table_set_has(hf_store_tables(c->store), table)); /* inspect-K1: every table there is */
    c->rows[table]++;
    if (!hf_table_info_of(table)->has_value) {
        return HF_OK;
    }
    hf_op bad;
    hf_op_init(&bad);
    hf_str body = {0};
    c->report.records++;
    progress(c, "records", c->report.records, 0);
    if (hf_record_open(&bad, table, &row->key, row->value, &body) != HF_OK) {
        found(c, "%s", bad.message);
    }
    return HF_OK;
}

/* ---- One run ---------------------------------------------------------------------------------------------------------- */

/* Decodes every event by itself; checks its number and that it has attributes. */
static hf_status check_events(hf_op *op, checking *c, const hf_run *run, hf_str history)
{
    int64_t id = 0;
    hf_str bytes = {0};
    while (hf_history_next(&history, &bytes)) {
        hf_op bad;
        hf_op_init(&bad);
        hf_pb_history_event event;
        hf_arena_reset(&c->arena);
        id++;
        hf_status status = hf_pb_decode(&bad, &hf_pb_history_event_type, bytes, &c->arena, &event);
        if (status != HF_OK && !is_damage(status)) {
            return hf_fail(op, status, "%s", bad.message);
        }
        if (status != HF_OK) {
            found(c, "run %lld: event %lld: %s", (long long)run->number, (long long)id, bad.message);
        } else if (event.event_id != id || event.attributes_case == 0) {
            found(c, "run %lld: event %lld has the id %lld, or has no attributes", (long long)run->number,
                  (long long)id, (long long)event.event_id);
        }
    }
    if (id != run->event_count) {
        found(c, "run %lld: its history has %lld events, its state says %lld", (long long)run->number, (long long)id,
              (long long)run->event_count);
    }
    return HF_OK;
}

/* inspect-K3. */
static hf_status check_history(hf_op *op, checking *c, const hf_run *run)
{
    hf_op bad;
    hf_op_init(&bad);
    c->history.len = 0;
    hf_status status = hf_look_history(&bad, c->look, run, &c->history);
    hf_str history = hf_str_of_len(c->history.data, c->history.len);
    if (status == HF_OK) {
        status = hf_rebuild_compare(&bad, hf_look_memory(c->look), run, history);
    }
    if (status == HF_OK && c->options.deep) {
        status = check_events(&bad, c, run, history);
    }
    if (status != HF_OK && !is_damage(status)) {
        return hf_fail(op, status, "%s", bad.message);
    }
    if (status != HF_OK) {
        found(c, "%s", bad.message);
    }
    hf_assert(run->event_count > 0 ||
              run->kind == HF_KIND_OPERATION); /* inspect-K3: a run from hf_look_run has its first event */
    c->report.events += (uint64_t)run->event_count;
    return HF_OK;
}

/* A row that must exist. NULL body: it does not, or it is damaged, which was reported by inspect-K1. */
static hf_status get_row(hf_op *op, checking *c, hf_table table, hf_key key, bool *ret_found, hf_str *ret_body)
{
    hf_arena_reset(&c->arena);
    hf_store_request get = {.verb = HF_STORE_GET, .table = table, .key = key, .arena = &c->arena};
    HF_TRY(hf_store_ask(op, c->store, &get));
    hf_op bad;
    hf_op_init(&bad);
    *ret_found = get.found;
    *ret_body = (hf_str){0};
    if (get.found && hf_table_info_of(table)->has_value) {
        (void)hf_record_open(&bad, table, &key, get.value, ret_body);
    }
    c->accounted[table] += get.found ? 1 : 0;
    return HF_OK;
}

/* The hash under which the index has a run. */
static int64_t name_of(checking *c, const hf_run *run)
{
    char text[HF_NAME_TEXT_LEN];
    size_t len = 0;
    return hf_name_text(hf_owned_str(&run->namespace), hf_owned_str(&run->workflow_id), text, &len) == HF_OK
               ? hf_name_hash(hf_look_names(c->look), hf_str_of_len(text, len))
               : 0;
}

static hf_status check_name(hf_op *op, checking *c, const hf_run *row)
{
    bool is_there = false;
    hf_str body = {0};
    int64_t hash = name_of(c, row);
    if (hf_names_is_gone(hf_look_names(c->look), hash, row->number)) { /* check_index has counted its row */
        if (!row->is_nameless) {
            found(c, "run %lld has lost its name %.*s, but its row does not say so", (long long)row->number,
                  HF_STR_ARGS(hf_owned_str(&row->workflow_id)));
        }
        return HF_OK;
    }
    HF_TRY(get_row(op, c, HF_TABLE_NAME, (hf_key){.a = hash, .b = row->number}, &is_there, &body));
    is_there = is_there || hf_names_below(hf_look_names(c->look), hash, row->number + 1) == row->number;
    if (row->is_nameless && is_there) {
        found(c, "run %lld has no name any more, but its workflow id %.*s still leads to it", (long long)row->number,
              HF_STR_ARGS(hf_owned_str(&row->workflow_id)));
    } else if (!row->is_nameless && !is_there) {
        found(c, "run %lld cannot be found by its name %.*s", (long long)row->number,
              HF_STR_ARGS(hf_owned_str(&row->workflow_id)));
    }
    return HF_OK;
}

static hf_status check_due(hf_op *op, checking *c, const hf_run *row)
{
    int64_t due = hf_run_next_due(row);
    if (row->due_written != (due == INT64_MAX ? 0 : due)) {
        found(c, "run %lld: its next deadline is %lld, but its row says %lld", (long long)row->number,
              (long long)(due == INT64_MAX ? 0 : due), (long long)row->due_written);
    }
    if (row->due_written == 0) {
        return HF_OK;
    }
    bool is_there = false;
    hf_str body = {0};
    HF_TRY(get_row(op, c, HF_TABLE_DUE, (hf_key){.a = row->due_written, .b = row->number}, &is_there, &body));
    if (!is_there) {
        found(c, "run %lld: the table due has no row for its deadline %lld", (long long)row->number,
              (long long)row->due_written);
    }
    return HF_OK;
}

/* The tasks of a run that need rows. A started task may be waiting again: then it is in a queue, and not held. */
typedef enum task_need {
    NEEDS_NONE,
    NEEDS_QUEUE,  /* it waits */
    NEEDS_EITHER, /* a worker of this process had started it: it waits again, or an opening hands it out */
    MAY_WAIT      /* a worker outside had */
} task_need;

static task_need need_of(bool waits, bool is_started, uint64_t incarnation)
{
    return waits ? NEEDS_QUEUE : !is_started ? NEEDS_NONE : incarnation != 0 ? NEEDS_EITHER : MAY_WAIT;
}

static task_need need_of_workflow(const hf_run *row)
{
    return need_of(row->wft.state == HF_WFT_SCHEDULED, row->wft.state == HF_WFT_STARTED, row->wft.incarnation);
}

static task_need need_of_activity(const hf_activity *activity)
{
    return activity == NULL ? NEEDS_NONE
                            : need_of(activity->state == HF_ACTIVITY_SCHEDULED, activity->state == HF_ACTIVITY_STARTED,
                                      activity->incarnation);
}

static bool has_row_in(const hf_run *row, char kind, hf_str queue)
{
    char text[HF_QUEUE_TEXT_LEN];
    size_t len = 0;
    bool is_good = hf_queue_text(kind, hf_owned_str(&row->namespace), queue, text, &len);
    for (size_t i = 0; i < row->rows_written.count && is_good; i++) {
        if (hf_str_equal(hf_owned_str(&row->rows_written.items[i].queue), hf_str_of_len(text, len))) {
            return true;
        }
    }
    return false;
}

static bool has_held_row(const hf_run *row)
{
    for (size_t i = 0; i < row->rows_written.count; i++) {
        if (hf_str_equal(hf_owned_str(&row->rows_written.items[i].queue), HF_QUEUE_HELD)) {
            return true;
        }
    }
    return false;
}

/* Whether a run has a row that makes an opening go on with it: with its messages, or with its end. */
static bool has_own_row(const hf_run *row)
{
    return hf_run_has_messages(row) || row->deleting != HF_DELETING_NOT;
}

/* Whether a row may be one of this run. Earlier versions wrote a row for each held task, with its scheduled id. */
static bool is_wanted(const hf_run *row, const hf_pb_task_record *record)
{
    task_need need = record->scheduled_id == 0 ? need_of_workflow(row)
                                               : need_of_activity(hf_run_activity(row, record->scheduled_id));
    bool may_hold = has_own_row(row) || need_of_workflow(row) == NEEDS_EITHER;
    for (size_t i = 0; i < row->activities.count && record->held; i++) {
        may_hold = may_hold || need_of_activity(row->activities.items[i]) == NEEDS_EITHER;
    }
    return record->run == row->number && (record->held ? may_hold : need != NEEDS_NONE);
}

/* ledger-W3: every task that waits is found by a row of its queue, every run that an opening must go on with by a row of its own. */
static hf_status check_tasks(hf_op *op, checking *c, const hf_run *row)
{
    for (size_t i = 0; i < row->rows_written.count; i++) {
        const hf_task_key *key = &row->rows_written.items[i];
        bool is_there = false;
        hf_str body = {0};
        HF_TRY(get_row(op, c, HF_TABLE_TASK, (hf_key){hf_owned_str(&key->queue), key->order, 0}, &is_there, &body));
        hf_pb_task_record record = {0};
        hf_op bad;
        hf_op_init(&bad);
        bool is_good = is_there && (body.data == NULL ||
                                    (hf_pb_decode(&bad, &hf_pb_task_record_type, body, &c->arena, &record) == HF_OK &&
                                     is_wanted(row, &record)));
        HF_TRY(memory_of(op, c));
        if (!is_good) {
            found(c, "run %lld: its task row with the order %lld is %s", (long long)row->number, (long long)key->order,
                  is_there ? "that of another task" : "missing");
        }
    }
    bool is_held = has_held_row(row);
    task_need need = need_of_workflow(row);
    bool is_queued = need == NEEDS_NONE || has_row_in(row, 'w', hf_owned_str(&row->task_queue)) ||
                     has_row_in(row, 'w', hf_owned_str(&row->sticky_queue));
    int64_t lost = (need == NEEDS_QUEUE && !is_queued) || (need == NEEDS_EITHER && !is_queued && !is_held) ? 1 : 0;
    for (size_t i = 0; i < row->activities.count; i++) {
        const hf_activity *activity = row->activities.items[i];
        need = need_of_activity(activity);
        is_queued = need == NEEDS_NONE || has_row_in(row, 'a', activity->task_queue);
        lost += (need == NEEDS_QUEUE && !is_queued) || (need == NEEDS_EITHER && !is_queued && !is_held) ? 1 : 0;
    }
    if (lost > 0) {
        found(c, "run %lld: %lld of its waiting tasks are in no queue", (long long)row->number, (long long)lost);
    }
    if (has_own_row(row) && !is_held) {
        found(c, "run %lld: no row makes an opening go on with its messages or its end", (long long)row->number);
    }
    return HF_OK;
}

typedef struct history_count {
    checking *c;
    size_t parts; /* rows that hold parts of the state */
} history_count;

static hf_status count_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    (void)op;
    (void)arena;
    history_count *count = arg;
    count->c->accounted[HF_TABLE_HISTORY]++;
    count->parts += row->key.b >= HF_PART_BASE ? 1 : 0;
    return HF_OK;
}

/* ledger-P1: hf_run_row_load has found all that the state lists, so if the numbers are equal there are no other rows. */
static hf_status count_history(hf_op *op, checking *c, int64_t number, const size_t *parts)
{
    hf_key from = {.a = number};
    hf_key to = {.a = number + 1};
    history_count count = {.c = c};
    HF_TRY(hf_store_each_row(op, c->store, c->memory, HF_TABLE_HISTORY, &from, &to, count_row, &count));
    if (parts != NULL && *parts != count.parts) {
        found(c, "run %lld: its state has %zu parts, but %zu rows", (long long)number, *parts, count.parts);
    }
    return HF_OK;
}

/* ledger-T1: the rows of its stream are there, dense, and hold the records that the state counts. */
static hf_status check_stream(hf_op *op, checking *c, hf_run *row)
{
    hf_buf none;
    hf_buf_init(&none, c->memory, 1);
    hf_op bad;
    hf_op_init(&bad);
    int64_t next = 0;
    hf_status status =
        hf_run_stream_read(&bad, c->store, hf_look_memory(c->look), row, hf_run_stream_next(row), 0, &none, &next);
    hf_buf_deinit(&none);
    if (status == HF_ERR_INVALID) {
        found(c, "%s", bad.message);
        return HF_OK;
    }
    return status == HF_OK ? HF_OK : hf_fail(op, status, "%s", bad.message);
}

/* inspect-K4: compares with the row of a run, without the later changes in the journal. */
static hf_status check_row(hf_op *op, checking *c, int64_t number)
{
    hf_run_memory *memory = hf_look_memory(c->look);
    hf_arena page;
    hf_arena_init(&page, c->memory);
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = number}, .arena = &page};
    hf_status status = hf_store_ask(op, c->store, &get);
    hf_run *row = status == HF_OK && get.found ? hf_run_new(memory, number) : NULL;
    if (row != NULL) {
        hf_op bad;
        hf_op_init(&bad);
        hf_arena_reset(memory->scratch);
        hf_status loaded = hf_run_row_load(&bad, c->store, memory, row, get.value);
        bool is_sound = loaded == HF_OK;
        status = is_sound ? check_name(op, c, row) : is_damage(loaded) ? HF_OK : hf_fail(op, loaded, "%s", bad.message);
        status = is_sound && status == HF_OK ? check_due(op, c, row) : status;
        status = is_sound && status == HF_OK ? check_tasks(op, c, row) : status;
        status = is_sound && status == HF_OK ? check_stream(op, c, row) : status;
        c->accounted[HF_TABLE_RUN]++;
        size_t parts = row->parts.count;
        hf_run_free(memory, row);
        status = status == HF_OK ? count_history(op, c, number, is_sound ? &parts : NULL) : status;
    }
    hf_arena_deinit(&page);
    return status;
}

static hf_status check_run(hf_op *op, checking *c, int64_t number)
{
    hf_op bad;
    hf_op_init(&bad);
    hf_run *run = NULL;
    hf_status status = hf_look_run(&bad, c->look, number, &run);
    c->report.runs++;
    progress(c, "runs", c->report.runs, c->rows[HF_TABLE_RUN]);
    if (status != HF_OK) {
        if (!is_damage(status)) {
            return hf_fail(op, status, "%s", bad.message);
        }
        found(c, "%s", bad.message);
        return check_row(op, c, number);
    }
    c->report.open_runs += hf_run_is_open(run) ? 1 : 0;
    status = check_history(op, c, run);
    hf_look_run_free(c->look, run);
    return status == HF_OK ? check_row(op, c, number) : status;
}

/* ---- Strangers -------------------------------------------------------------------------------------------------------- */

/* The run that a row leads to; 0 = unknown. Check the arena's status. */
static int64_t run_of(checking *c, hf_table table, const hf_row *row)
{
    hf_op bad;
    hf_op_init(&bad);
    hf_str body = {0};
    hf_pb_task_record record = {0};
    switch (table) {
    case HF_TABLE_HISTORY:
        return row->key.a;
    case HF_TABLE_NAME:
    case HF_TABLE_DUE:
        return row->key.b;
    case HF_TABLE_TASK:
        return hf_record_open(&bad, table, &row->key, row->value, &body) == HF_OK &&
                       hf_pb_decode(&bad, &hf_pb_task_record_type, body, &c->arena, &record) == HF_OK
                   ? record.run
                   : 0;
    case HF_TABLE_META:
    case HF_TABLE_JOURNAL:
    case HF_TABLE_RUN:
    case HF_TABLE_INBOX:
    case HF_TABLE_NAME_LOG:
    case HF_TABLE_BLOCK:
    case HF_TABLE_SUMMARY:
    case HF_TABLE_ENTRY:
    case HF_TABLE_SPACE:
    case HF_TABLE_PENDING:
    case HF_TABLE_ALIAS:
    case HF_TABLE_COUNT:
        return 0;
    }
    return 0;
}

static bool is_known(checking *c, const hf_run *run, hf_table table, const hf_row *row)
{
    if (table == HF_TABLE_NAME) {
        return name_of(c, run) == row->key.a && !run->is_nameless;
    }
    if (table == HF_TABLE_DUE) {
        return run->due_written == row->key.a;
    }
    if (table == HF_TABLE_TASK) {
        for (size_t i = 0; i < run->rows_written.count; i++) {
            const hf_task_key *key = &run->rows_written.items[i];
            if (key->order == row->key.a && hf_str_equal(hf_owned_str(&key->queue), row->key.text)) {
                return true;
            }
        }
        return false;
    }
    return true;
}

static bool is_unmade(const checking *c, int64_t number)
{
    int64_t unmade = 0;
    for (size_t i = 0; (unmade = hf_look_unmade(c->look, i)) != 0; i++) {
        if (unmade == number) {
            return true;
        }
    }
    return false;
}

static hf_status name_stranger(hf_op *op, checking *c, hf_table table, const hf_row *row)
{
    hf_op bad;
    hf_op_init(&bad);
    hf_arena_reset(&c->arena);
    int64_t number = run_of(c, table, row);
    HF_TRY(memory_of(op, c));
    if (table == HF_TABLE_NAME && hf_names_is_gone(hf_look_names(c->look), row->key.a, row->key.b)) { /* ledger-N1 */
        return HF_OK;
    }
    if (table == HF_TABLE_HISTORY && is_unmade(c, number)) { /* check_unmade has looked at it */
        return HF_OK;
    }
    hf_run *run = NULL;
    hf_status status = number != 0 ? hf_look_run(&bad, c->look, number, &run) : HF_ERR_NOT_FOUND;
    if (status == HF_ERR_INVALID) { /* was reported; whether the run names this row is unknown */
        c->unsure++;
        return HF_OK;
    }
    if (status != HF_OK && !is_damage(status)) {
        return hf_fail(op, status, "%s", bad.message);
    }
    bool is_there = status == HF_OK && run->is_written;
    if (!is_there || !is_known(c, run, table, row)) {
        found(c, "a row of the table %s (%lld, %lld) leads to run %lld, which %s", hf_table_info_of(table)->name,
              (long long)row->key.a, (long long)row->key.b, (long long)number,
              is_there ? "does not name it" : "has no row");
    }
    hf_look_run_free(c->look, run);
    return HF_OK;
}

static hf_status check_strangers(hf_op *op, checking *c)
{
    static const hf_table TABLES[] = {HF_TABLE_HISTORY, HF_TABLE_NAME, HF_TABLE_DUE, HF_TABLE_TASK};
    for (size_t i = 0; i < HF_COUNT_OF(TABLES); i++) {
        if (c->rows[TABLES[i]] != c->accounted[TABLES[i]]) {
            uint64_t before = c->report.damages;
            c->unsure = 0;
            HF_TRY(each_row(op, c, TABLES[i], name_stranger));
            if (c->report.damages == before && c->unsure == 0) {
                found(c, "the table %s has %llu rows, but the runs name %llu", hf_table_info_of(TABLES[i])->name,
                      (unsigned long long)c->rows[TABLES[i]], (unsigned long long)c->accounted[TABLES[i]]);
            }
        }
    }
    return HF_OK;
}

/* Checks that names which are not in their table lead to runs that have rows. The table may still have names that are gone. */
static hf_status check_index(hf_op *op, checking *c)
{
    const hf_names *names = hf_look_names(c->look);
    for (size_t i = 0; i < HF_NAME_BUCKETS; i++) {
        for (size_t j = 0; j < names->buckets[i].entries.count; j++) {
            const hf_name_entry *entry = &names->buckets[i].entries.items[j];
            if (hf_name_is_gone(entry)) {
                bool is_there = false;
                hf_str body = {0};
                hf_key key = {.a = hf_name_entry_hash(entry), .b = entry->run};
                HF_TRY(get_row(op, c, HF_TABLE_NAME, key, &is_there, &body));
                continue;
            }
            hf_row row = {.key = {.a = entry->hash, .b = entry->run}};
            HF_TRY(name_stranger(op, c, HF_TABLE_NAME, &row));
        }
    }
    return HF_OK;
}

/* A run that was deleted has no row. Its other rows would be strangers. */
static hf_status check_gone(hf_op *op, checking *c)
{
    int64_t number = 0;
    for (size_t i = 0; (number = hf_look_gone(c->look, i)) != 0; i++) {
        hf_arena_reset(&c->arena);
        hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = number}, .arena = &c->arena};
        HF_TRY(hf_store_ask(op, c->store, &get));
        if (get.found) {
            found(c, "run %lld was deleted, but still has a row", (long long)number);
        }
    }
    return HF_OK;
}

static hf_status check_unmade_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    checking *c = arg;
    hf_op bad;
    hf_op_init(&bad);
    hf_pb_history_record record;
    c->accounted[HF_TABLE_HISTORY]++;
    hf_status status = hf_history_row_open(&bad, row, arena, &record);
    if (status == HF_OK && (record.first_id != c->made_id + 1 || record.chain_before != c->made_chain)) {
        found(c, "run %lld, which is being made: the row of event %lld does not follow the one before it",
              (long long)row->key.a, (long long)row->key.b);
    }
    if (status == HF_OK) {
        c->made_id = record.last_id;
        c->made_chain = record.chain_after;
    }
    return status == HF_OK || is_damage(status) ? HF_OK : hf_fail(op, status, "%s", bad.message);
}

/* ledger-G1: the history rows of runs that a reset was making. Damaged ones were reported by inspect-K1. */
static hf_status check_unmade(hf_op *op, checking *c)
{
    int64_t number = 0;
    for (size_t i = 0; (number = hf_look_unmade(c->look, i)) != 0; i++) {
        hf_arena_reset(&c->arena);
        hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = number}, .arena = &c->arena};
        HF_TRY(hf_store_ask(op, c->store, &get));
        if (get.found) { /* it counts its history rows itself */
            found(c, "run %lld is being made, but has a row already", (long long)number);
            continue;
        }
        hf_key from = {.a = number};
        hf_key to = {.a = number + 1};
        c->made_id = 0;
        c->made_chain = 0;
        HF_TRY(hf_store_each_row(op, c->store, c->memory, HF_TABLE_HISTORY, &from, &to, check_unmade_row, c));
        if (c->made_id == 0) {
            found(c, "run %lld is being made, but has no events", (long long)number);
        }
    }
    return HF_OK;
}

/* ---- The whole check -------------------------------------------------------------------------------------------------------- */

static void found_in_block(void *state, const char *sentence)
{
    found(state, "%s", sentence);
}

static hf_status check_all(hf_op *op, checking *c)
{
    const hf_table_set *set = hf_store_tables(c->store);
    for (size_t i = 0; i < set->count; i++) {
        HF_TRY(each_row(op, c, set->tables[i], check_record));
    }
    hf_op bad;
    hf_op_init(&bad);
    hf_status status = hf_look_open(&bad, c->memory, c->store, &c->look);
    if (status != HF_OK && !is_damage(status)) {
        return hf_fail(op, status, "%s", bad.message);
    }
    if (status != HF_OK) { /* inspect-K2; without the journal the state of the runs is unknown */
        found(c, "%s; the runs were not compared with it", bad.message);
        return HF_OK;
    }
    c->report.commits = hf_look_commits(c->look);
    hf_assert(c->report.commits <= c->rows[HF_TABLE_JOURNAL]); /* inspect-K2: each of its rows was read */
    HF_TRY(check_index(op, c));
    HF_TRY(check_gone(op, c));
    HF_TRY(check_unmade(op, c));
    int64_t number = 0;
    do {
        HF_TRY(hf_look_next(op, c->look, number, &number));
        if (number != 0) {
            HF_TRY(check_run(op, c, number));
        }
    } while (number != 0);
    HF_TRY(hf_check_blocks(op, c->memory, c->store, found_in_block, c)); /* inspect-K5 */
    return check_strangers(op, c);
}

hf_status hf_check_store(hf_op *op, hf_allocator memory, hf_store *store, const hf_check_options *options,
                         hf_check_report *ret_report)
{
    checking c = {.memory = memory, .store = store};
    if (options != NULL) {
        c.options = *options;
    }
    hf_arena_init(&c.arena, memory);
    hf_buf_init(&c.history, memory, SIZE_MAX / 4);
    hf_status status = check_all(op, &c);
    hf_look_close(c.look);
    hf_buf_deinit(&c.history);
    hf_arena_deinit(&c.arena);
    *ret_report = c.report;
    return status;
}
