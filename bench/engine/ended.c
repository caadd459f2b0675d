/* Lists and counts over COUNT runs that have ended. The file is made by copying the row of one run; then the engine makes its blocks in the
 * background, and is asked. Beside it, in the same run, SQLite's own scan of the rows. In the end it works, with one list a second and without. A
 * figure with a bar has it beside it, as `bar_*`. */
#include "base/rng.h"
#include "bench.h"
#include "engine/cells.h"
#include "history/payload.h"
#include "ledger/journal.h"
#include "ledger/rows.h"
#include "service/call.h"
#include "store/sqlite/sqlite.h"

#include <sqlite3.h>

enum { ROWS_PER_COMMIT = 5000, SAMPLES = 5, CUSTOMER_RUNS = 50, CLIENTS = 128, PAIRS = 5 };
#define WINDOW 2.0 /* seconds */

static hf_status keep_tail(hf_op *op, void *arg, const hf_commit_read *commit, hf_arena *arena)
{
    (void)op;
    (void)arena;
    hf_journal_tail *tail = arg;
    *tail =
        (hf_journal_tail){.run_next = commit->fields.next_run > 0 ? commit->fields.next_run : tail->run_next,
                          .order_next = commit->fields.next_order > 0 ? commit->fields.next_order : tail->order_next,
                          .names_logged = commit->fields.names_logged,
                          .held = hf_journal_held(commit)};
    return HF_OK;
}

static hf_str attributes_of(hf_arena *arena, hf_buf *out, const char *customer)
{
    char json[64];
    (void)snprintf(json, sizeof json, "\"%s\"", customer);
    hf_pb_payload payload = hf_payload_json(arena, hf_arena_copy(arena, hf_str_of(json)));
    hf_pb_search_attributes_indexed_fields_entry entry = {.key = HF_STR("Customer"), .value = &payload};
    hf_pb_search_attributes attributes = {.indexed_fields = {&entry, 1}};
    out->len = 0;
    hf_pb_encode(&hf_pb_search_attributes_type, &attributes, out);
    return hf_arena_copy(arena, hf_str_of_len(out->data, out->len));
}

/* COUNT rows like that of the last run. */
static void copy_runs(hf_store *store, long long count)
{
    hf_op op;
    hf_op_init(&op);
    hf_allocator memory = cell_memory();
    hf_arena arena;
    hf_arena_init(&arena, memory);
    hf_journal_tail tail = {.run_next = 1, .order_next = 1};
    hf_journal_span span;
    hf_store_request last = {.verb = HF_STORE_SCAN,
                             .table = HF_TABLE_RUN,
                             .key_end = {.a = INT64_MAX},
                             .backwards = true,
                             .row_max = 1,
                             .arena = &arena};
    hf_pb_run_state state;
    bool is_good = false;
    if (hf_journal_walk(&op, store, memory, keep_tail, &tail, &span) != HF_OK ||
        hf_store_ask(&op, store, &last) != HF_OK || last.row_count == 0 ||
        hf_run_row_open(&op, &last.rows[0], &arena, &state, &is_good) != HF_OK || !is_good) {
        play_die("no run to copy: %s", op.message);
    }
    hf_arena scratch;
    hf_arena_init(&scratch, memory);
    hf_run_memory runs_memory = {.heap = memory, .scratch = &scratch};
    hf_buf row;
    hf_buf journal;
    hf_buf text;
    hf_buf_init(&row, memory, SIZE_MAX / 4);
    hf_buf_init(&journal, memory, SIZE_MAX / 4);
    hf_buf_init(&text, memory, SIZE_MAX / 4);
    hf_writes writes;
    hf_writes_init(&writes, &runs_memory, &row);
    uint64_t commit = store->ops->last_commit(store);
    uint64_t hash = span.hash;
    int64_t span_ns = 1000000;
    int64_t begun = state.start_time - count * span_ns;
    for (long long n = 0; n < count;) {
        hf_writes_reset(&writes);
        for (int i = 0; i < ROWS_PER_COMMIT && n < count; i++, n++) {
            char id[64];
            char run_id[64];
            char customer[32];
            hf_arena_reset(&scratch);
            (void)snprintf(id, sizeof id, "order-%08llx",
                           (unsigned long long)hf_rng_next(&(hf_rng){(uint64_t)n}) >> 32);
            (void)snprintf(run_id, sizeof run_id, "%08llx-0000-4000-8000-%012llx", n, n);
            (void)snprintf(customer, sizeof customer, "c%lld", n / CUSTOMER_RUNS);
            state.run = tail.run_next++;
            state.commit = commit + 1;
            state.workflow_id = hf_str_of(id);
            state.run_id = hf_str_of(run_id);
            state.first_run_id = HF_STR("");
            state.search_attributes = attributes_of(&scratch, &text, customer);
            int64_t life = state.last_time - state.start_time;
            state.start_time = begun + n * span_ns;
            state.last_time = state.start_time + life;
            state.status = (int32_t)(n % 10 == 0 ? 3 : 2);
            hf_writes_put_message(&writes, HF_TABLE_RUN, (hf_key){.a = state.run}, &hf_pb_run_state_type, &state);
        }
        size_t len = 0;
        hf_journal_begin(&journal, commit + 1, begun, hash);
        hf_journal_end(&journal, &tail, commit + 1, hash, &writes, &hash, &len);
        hf_store_request request = {
            .verb = HF_STORE_COMMIT, .commit = ++commit, .writes = writes.list.items, .write_count = writes.list.count};
        hf_store_request checkpoint = {.verb = HF_STORE_CHECKPOINT};
        if (hf_store_ask(&op, store, &request) != HF_OK || hf_store_ask(&op, store, &checkpoint) != HF_OK) {
            play_die("cannot copy: %s", op.message);
        }
    }
    hf_writes_deinit(&writes);
    hf_buf_deinit(&row);
    hf_buf_deinit(&journal);
    hf_buf_deinit(&text);
    hf_arena_deinit(&arena);
    hf_arena_deinit(&scratch);
}

static void make(const cell_options *o, const char *path)
{
    hf_op op;
    hf_op_init(&op);
    hf_service *service = cell_open(o, path);
    play_options options = cell_play(o, service, 1);
    options.wait = PLAY_ACTIVITIES;
    options.rounds = 1;
    options.width = 1;
    play p;
    play_open(&p, &options);
    play_slots(&p, 1);
    play_await(&p.results, 3);
    atomic_store(&p.stopping, true);
    while (atomic_load(&p.slots_busy) > 0) {
        (void)usleep(1000);
    }
    cell_close(service);
    play_close(&p);
    hf_store *store = NULL;
    hf_sqlite_options fast = {.durability = HF_DURABILITY_NORMAL};
    if (hf_sqlite_open(&op, cell_memory(), path, &fast, &store) != HF_OK) {
        play_die("cannot open %s: %s", path, op.message);
    }
    copy_runs(store, o->count);
    hf_store_close(store);
}

static double seconds_scan(const char *path)
{
    sqlite3 *db = NULL;
    int64_t begun = bench_cpu_ns();
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, "SELECT max(hex(substr(v, 1, 1))), sum(length(v)) FROM run", NULL, NULL, NULL) != SQLITE_OK) {
        play_die("SQLite cannot scan %s", path);
    }
    (void)sqlite3_close(db);
    return (double)(bench_cpu_ns() - begun) * 1e-9; /* of the processor, as beside it: the machine may be shared */
}

static void ignore_call(hf_call *call)
{
    (void)call;
}

static double ms_of(hf_service *service, hf_method method, const void *request, long long *ret_count)
{
    hf_op op;
    hf_arena arena;
    hf_call call;
    hf_op_init(&op);
    hf_arena_init(&arena, cell_memory());
    hf_call_init(&call, method, request, &arena, ignore_call);
    int64_t begun = bench_wall_ns();
    if (hf_service_ask(&op, service, &call) != HF_OK) {
        play_die("a list failed: %s", op.message);
    }
    double ms = (double)(bench_wall_ns() - begun) * 1e-6;
    if (method == HF_METHOD_COUNT_WORKFLOW_EXECUTIONS) {
        *ret_count = ((const hf_pb_count_workflow_executions_response *)call.response)->count;
    } else {
        *ret_count = (long long)((const hf_pb_list_workflow_executions_response *)call.response)->executions.count;
    }
    hf_arena_deinit(&arena);
    return ms;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Milliseconds of the processor. */
static double ask(hf_service *service, const char *name, const char *query, bool is_count, int samples)
{
    hf_pb_list_workflow_executions_request list = {
        .namespace = HF_STR("default"), .query = hf_str_of(query), .page_size = 100};
    hf_pb_count_workflow_executions_request count = {.namespace = HF_STR("default"), .query = hf_str_of(query)};
    double ms[SAMPLES];
    long long found = 0;
    double cpu = (double)bench_cpu_ns();
    for (int i = 0; i < samples; i++) {
        ms[i] = ms_of(service, is_count ? HF_METHOD_COUNT_WORKFLOW_EXECUTIONS : HF_METHOD_LIST_WORKFLOW_EXECUTIONS,
                      is_count ? (const void *)&count : (const void *)&list, &found);
    }
    cpu = ((double)bench_cpu_ns() - cpu) * 1e-6 / samples;
    qsort(ms, (size_t)samples, sizeof *ms, compare);
    char metric[100];
    (void)snprintf(metric, sizeof metric, "%s_cpu_ms", name);
    bench_print(metric, cpu);
    (void)snprintf(metric, sizeof metric, "%s_ms", name);
    bench_print(metric, ms[samples / 2]);
    (void)snprintf(metric, sizeof metric, "%s_found", name);
    bench_print(metric, (double)found);
    return cpu;
}

static const struct {
    const char *name;
    const char *query;
    bool is_count;
    int bar_ms; /* 0 = none */
} ASKS[] = {
    {"by_customer", "Customer = 'c777'", false, 50},
    {"by_status", "ExecutionStatus = 'Failed'", false, 50},
    {"by_id", "WorkflowId = 'order-0000beef'", false, 50},
    {"newest_end", "ORDER BY CloseTime DESC", false, 0},
    {"count", "", true, 10},
    {"count_grouped", "GROUP BY ExecutionStatus", true, 10},
};

static void ask_all(hf_service *service)
{
    for (size_t i = 0; i < HF_COUNT_OF(ASKS); i++) {
        (void)ask(service, ASKS[i].name, ASKS[i].query, ASKS[i].is_count, SAMPLES);
        if (ASKS[i].bar_ms > 0) {
            char metric[64];
            (void)snprintf(metric, sizeof metric, "bar_%s_ms", ASKS[i].name);
            bench_print(metric, ASKS[i].bar_ms);
        }
    }
}

/* ---- Beside work ----------------------------------------------------------------------------------------------------------- */

/* w1 with one list a second, and without, in turns. */
static void beside(const cell_options *o, hf_service *service, play *p)
{
    cell_options mine = *o;
    mine.count = CLIENTS;
    play_options options = cell_play(&mine, service, 1);
    options.wait = PLAY_ACTIVITIES;
    options.rounds = 1;
    options.width = 1;
    options.is_in_order = true; /* the run that was copied had the other ids */
    play_open(p, &options);
    play_slots(p, CLIENTS);
    (void)cell_rate(p, 1);
    hf_pb_list_workflow_executions_request list = {
        .namespace = HF_STR("default"), .query = HF_STR("Customer = 'c777'"), .page_size = 100};
    double alone[PAIRS];
    double with[PAIRS];
    double ms[PAIRS * (int)WINDOW];
    for (int i = 0; i < PAIRS; i++) {
        alone[i] = cell_rate(p, WINDOW);
        with[i] = 0;
        for (int j = 0; j < (int)WINDOW; j++) {
            int64_t begun = bench_wall_ns();
            long long results = atomic_load(&p->results);
            long long found = 0;
            ms[i * (int)WINDOW + j] = ms_of(service, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, &list, &found);
            double left = 1 - (double)(bench_wall_ns() - begun) * 1e-9;
            cell_sleep(left > 0 ? left : 0);
            with[i] +=
                (double)(atomic_load(&p->results) - results) / ((double)(bench_wall_ns() - begun) * 1e-9) / WINDOW;
        }
    }
    atomic_store(&p->stopping, true);
    while (atomic_load(&p->slots_busy) > 0) {
        (void)usleep(1000);
    }
    cell_check(p);
    qsort(alone, PAIRS, sizeof *alone, compare);
    qsort(with, PAIRS, sizeof *with, compare);
    qsort(ms, HF_COUNT_OF(ms), sizeof *ms, compare);
    bench_print("w1_alone_s", alone[PAIRS / 2]);
    bench_print("w1_beside_s", with[PAIRS / 2]);
    bench_print("list_beside_ms", ms[HF_COUNT_OF(ms) / 2]);
    bench_print("w1_lost_percent", 100 * (1 - with[PAIRS / 2] / alone[PAIRS / 2]));
    bench_print("bar_w1_lost_percent", 10);
}

static void add_attribute(hf_service *service)
{
    hf_op op;
    hf_arena arena;
    hf_call call;
    hf_op_init(&op);
    hf_arena_init(&arena, cell_memory());
    hf_pb_add_search_attributes_request_search_attributes_entry entry = {.key = HF_STR("Customer"),
                                                                         .value = HF_INDEXED_VALUE_TYPE_KEYWORD};
    hf_pb_add_search_attributes_request request = {.namespace = HF_STR("default"), .search_attributes = {&entry, 1}};
    hf_call_init(&call, HF_METHOD_ADD_SEARCH_ATTRIBUTES, &request, &arena, ignore_call);
    if (hf_service_ask(&op, service, &call) != HF_OK) {
        play_die("%s", op.message);
    }
    hf_arena_deinit(&arena);
}

/* Only the file, which stays: for a look at it with the command line. */
void cell_ended_make(const cell_options *o)
{
    const char *path = cell_path(o, o->mode);
    cell_remove(path);
    make(o, path);
    hf_service *service = cell_open(o, path);
    add_attribute(service);
    cell_close(service);
}

void cell_ended(const cell_options *o)
{
    const char *path = cell_path(o, o->mode);
    cell_remove(path);
    make(o, path);
    double scan = seconds_scan(path);
    double again = seconds_scan(path);
    scan = 1000 * (again < scan ? again : scan);
    bench_print("sqlite_scan_cpu_ms", scan);
    hf_service *service = cell_open(o, path);
    add_attribute(service);
    (void)ask(service, "rows_by_customer", ASKS[0].query, false, 1);
    /* Until the blocks are made: two ranges at the end are left out. */
    uint64_t wanted = (uint64_t)(o->count / 1024) - 2;
    int64_t begun = bench_wall_ns();
    double cpu = (double)bench_cpu_ns();
    hf_engine_stats stats = {0};
    hf_op op;
    hf_op_init(&op);
    do {
        cell_sleep(5); /* to count all rows is work, too */
        if (hf_engine_stats_get(&op, service, true, &stats) != HF_OK) {
            play_die("%s", op.message);
        }
    } while (stats.store.rows[HF_TABLE_SUMMARY] < wanted);
    bench_print("blocks_s", (double)(bench_wall_ns() - begun) * 1e-9);
    bench_print("blocks_cpu_us_run", ((double)bench_cpu_ns() - cpu) * 1e-3 / (double)o->count);
    ask_all(service);
    bench_print("no_index_ratio", ask(service, "no_index", "Customer STARTS_WITH 'c7777'", true, SAMPLES) / scan);
    bench_print("bar_no_index_ratio", 3);
    play p;
    beside(o, service, &p);
    cell_close(service);
    play_close(&p);
    cell_remove(path);
}
