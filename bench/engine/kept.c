/* What is kept of runs, beside the first shape of work (w1) or beside SQLite doing the same rows.
 *
 *     retire   COUNT runs that have ended go by retention while w1 goes on; windows with and without it, in turns. Then the rest goes, as many
 *              runs are written again, and the file must not have grown
 *     batch    one operation terminates COUNT runs while others work: the longest time in which none of them is answered, beside as long a time
 *              without it
 *     delete   COUNT runs that have ended are listed and deleted, one call for each, against SQLite selecting and deleting the same rows
 *
 * Each prints its figures and, beside those that have one, `bar_*`. */
#include "bench.h"
#include "engine/cells.h"
#include "inspect/check.h"
#include "store/sqlite/sqlite.h"

#include <semaphore.h>
#include <sqlite3.h>

enum { CLIENTS = 128, OTHERS = 16, PAIRS = 5, CALLS = 128, PAGE = 1000 };
#define WINDOW 1.5 /* seconds */
#define DELETES_A_COMMIT 64

/* ---- What they share ----------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static play_options work(const cell_options *o, hf_service *service, int clients)
{
    cell_options mine = *o;
    mine.count = clients;
    play_options options = cell_play(&mine, service, 1);
    options.wait = PLAY_ACTIVITIES;
    options.rounds = 1;
    options.width = 1;
    return options;
}

static void stop(play *p)
{
    atomic_store(&p->stopping, true);
    while (atomic_load(&p->slots_busy) > 0) {
        (void)usleep(1000);
    }
    cell_check(p);
}

/* COUNT more runs, by CLIENTS clients. */
static void fill(const cell_options *o, hf_service *service, play *p, bool is_in_order)
{
    play_options options = work(o, service, CLIENTS);
    options.is_in_order = is_in_order; /* else ids would come twice */
    play_open(p, &options);
    play_slots(p, CLIENTS);
    play_await(&p->results, o->count);
}

static hf_engine_stats figures(hf_service *service, bool counts_rows)
{
    hf_engine_stats stats = {0};
    hf_op op;
    hf_op_init(&op);
    if (hf_engine_stats_get(&op, service, counts_rows, &stats) != HF_OK) {
        play_die("no figures of the engine: %s", op.message);
    }
    return stats;
}

static double file_mib(hf_service *service)
{
    return (double)figures(service, false).store.file_len / 1048576;
}

/* ---- Retention ----------------------------------------------------------------------------------------------------------- */

static void keep_for(hf_service *service, hf_span span)
{
    hf_arena arena;
    hf_arena_init(&arena, cell_memory());
    hf_pb_namespace_config config = {.workflow_execution_retention_ttl = hf_pb_duration_of(span)};
    hf_pb_update_namespace_request request = {.namespace = HF_STR("default"), .config = &config};
    (void)cell_call(service, &arena, HF_METHOD_UPDATE_NAMESPACE, &request);
    hf_arena_deinit(&arena);
}

/* Until no run is left. */
static double drain(hf_service *service)
{
    int64_t begun = bench_wall_ns();
    keep_for(service, hf_milliseconds(1));
    while (figures(service, true).ended > 0) {
        cell_sleep(0.5);
    }
    keep_for(service, hf_milliseconds(0));
    return (double)(bench_wall_ns() - begun) * 1e-9;
}

static void check(const char *path)
{
    hf_op op;
    hf_op_init(&op);
    hf_store *store = NULL;
    hf_sqlite_options options = {.read_only = true};
    hf_check_options how = {.deep = false};
    hf_check_report report = {0};
    if (hf_sqlite_open(&op, cell_memory(), path, &options, &store) != HF_OK ||
        hf_check_store(&op, cell_memory(), store, &how, &report) != HF_OK) {
        play_die("cannot check %s: %s", path, op.message);
    }
    hf_store_close(store);
    bench_print("check_runs", (double)report.runs);
    bench_print("check_damages", (double)report.damages);
    bench_print("bar_check_damages", 0);
}

void cell_retire(const cell_options *o)
{
    const char *path = cell_path(o, o->mode);
    cell_remove(path);
    hf_service *service = cell_open(o, path);
    play p;
    fill(o, service, &p, false);
    double alone[PAIRS], beside[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        alone[i] = cell_rate(&p, WINDOW);
        keep_for(service, hf_milliseconds(1));
        beside[i] = cell_rate(&p, WINDOW);
        keep_for(service, hf_milliseconds(0));
    }
    stop(&p);
    double without = median(alone, PAIRS);
    double with = median(beside, PAIRS);
    bench_print("w1_alone_s", without);
    bench_print("w1_beside_s", with);
    bench_print("w1_lost_percent", 100 * (1 - with / without));
    bench_print("bar_w1_lost_percent", 10);
    uint64_t rest = figures(service, true).ended;
    bench_print("retired_beside_s", (double)(atomic_load(&p.results) - (long long)rest) / (PAIRS * WINDOW));
    double seconds = drain(service);
    bench_print("retired_alone_s", (double)rest / seconds);
    double before = file_mib(service);
    bench_print("file_mib", before);
    cell_close(service);
    play_close(&p);
    service = cell_open(o, path);
    fill(o, service, &p, true);
    stop(&p);
    (void)drain(service);
    bench_print("file_again_mib", file_mib(service));
    bench_print("file_growth", file_mib(service) / before);
    bench_print("bar_file_growth", 1);
    cell_close(service);
    play_close(&p);
    check(path);
    cell_remove(path);
}

/* ---- Batches ------------------------------------------------------------------------------------------------------------- */

static void park(const cell_options *o, const char *path)
{
    hf_service *service = cell_open(o, path);
    play_options options = cell_play(o, service, 1);
    options.wait = PLAY_SIGNAL;
    options.is_in_order = true;
    play p;
    play_open(&p, &options);
    (void)play_start_all(&p, o->count, o->window);
    play_await(&p.waiting, o->count);
    cell_close(service);
    play_close(&p);
}

/* Terminates all that began before `before`, and waits for its end; seconds. */
static double operate(hf_service *service, const char *before)
{
    char query[100];
    (void)snprintf(query, sizeof query, "StartTime < '%s'", before);
    hf_pb_batch_operation_termination terminate = {.identity = HF_STR("bench")};
    hf_pb_start_batch_operation_request request = {
        .namespace = HF_STR("default"),
        .visibility_query = hf_str_of(query),
        .job_id = HF_STR("all"),
        .reason = HF_STR("bench"),
        .operation_case = HF_PB_START_BATCH_OPERATION_REQUEST_TERMINATION_OPERATION,
        .termination_operation = &terminate,
    };
    hf_arena arena;
    hf_arena_init(&arena, cell_memory());
    int64_t begun = bench_wall_ns();
    (void)cell_call(service, &arena, HF_METHOD_START_BATCH_OPERATION, &request);
    hf_pb_describe_batch_operation_request look = {.namespace = HF_STR("default"), .job_id = HF_STR("all")};
    const hf_pb_describe_batch_operation_response *is = NULL;
    do {
        cell_sleep(0.1);
        hf_arena_reset(&arena);
        is = cell_call(service, &arena, HF_METHOD_DESCRIBE_BATCH_OPERATION, &look);
    } while (is->state == HF_BATCH_OPERATION_STATE_RUNNING);
    double seconds = (double)(bench_wall_ns() - begun) * 1e-9;
    bench_print("batch_complete", (double)is->complete_operation_count);
    bench_print("batch_failed", (double)is->failure_operation_count);
    hf_arena_deinit(&arena);
    return seconds;
}

void cell_batch(const cell_options *o)
{
    const char *path = cell_path(o, o->mode);
    cell_remove(path);
    park(o, path);
    char now[40];
    time_t wall = time(NULL) + 1;
    struct tm utc;
    (void)strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&wall, &utc));
    cell_sleep(1.5); /* what begins from here on began later than that */
    hf_service *service = cell_open(o, path);
    play_options options = work(o, service, OTHERS);
    play p;
    play_open(&p, &options);
    play_slots(&p, OTHERS);
    cell_sleep(1);
    play_gap_begin(&p);
    double rate = cell_rate(&p, 5);
    long long begun = atomic_load(&p.results);
    play_gap_begin(&p);
    double seconds = operate(service, now);
    double gap = (double)play_gap(&p) / 1e6;
    double beside = (double)(atomic_load(&p.results) - begun) / seconds;
    cell_sleep(0.5);
    play_gap_begin(&p);
    cell_sleep(seconds);
    double alone = (double)play_gap(&p) / 1e6;
    stop(&p);
    bench_print("batch_s", seconds);
    bench_print("batch_runs_s", (double)o->count / seconds);
    bench_print("others_alone_s", rate);
    bench_print("others_beside_s", beside);
    bench_print("gap_alone_ms", alone);
    bench_print("gap_ms", gap);
    bench_print("gap_more_ms", gap - alone);
    bench_print("bar_gap_more_ms", 50);
    cell_close(service);
    play_close(&p);
    cell_remove(path);
}

/* ---- Lists and deletions ------------------------------------------------------------------------------------------------- */

typedef struct deletion {
    hf_call call; /* first */
    hf_arena arena;
    hf_pb_workflow_execution execution;
    hf_pb_delete_workflow_execution_request request;
    char workflow_id[80];
    char run_id[40];
} deletion;

static sem_t places;

static void deleted(hf_call *call)
{
    if (call->status != HF_OK) {
        play_die("a deletion failed: %s", call->message);
    }
    (void)sem_post(&places);
}

/* All executions, page by page, copied to `all`; the microseconds that took. */
static double list_all(hf_service *service, deletion *all, long long count)
{
    hf_arena arena;
    hf_arena_init(&arena, cell_memory());
    char token[4096];
    hf_pb_list_workflow_executions_request list = {.namespace = HF_STR("default"), .page_size = PAGE};
    int64_t begun = bench_wall_ns();
    long long seen = 0;
    do {
        hf_arena_reset(&arena);
        const hf_pb_list_workflow_executions_response *page =
            cell_call(service, &arena, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, &list);
        for (size_t i = 0; i < page->executions.count && seen < count; i++) {
            const hf_pb_workflow_execution *execution = page->executions.items[i].execution;
            (void)snprintf(all[seen].workflow_id, sizeof all[seen].workflow_id, "%.*s",
                           HF_STR_ARGS(execution->workflow_id));
            (void)snprintf(all[seen].run_id, sizeof all[seen].run_id, "%.*s", HF_STR_ARGS(execution->run_id));
            seen++;
        }
        if (page->next_page_token.len > sizeof token) {
            play_die("a page token of %zu bytes", page->next_page_token.len);
        }
        memcpy(token, page->next_page_token.len > 0 ? page->next_page_token.data : "", page->next_page_token.len);
        list.next_page_token = hf_str_of_len(token, page->next_page_token.len);
    } while (list.next_page_token.len > 0 && seen < count);
    double us = (double)(bench_wall_ns() - begun) / 1000;
    if (seen < count) {
        play_die("%lld of %lld runs were listed", seen, count);
    }
    hf_arena_deinit(&arena);
    return us;
}

static double delete_all(hf_service *service, deletion *all, long long count)
{
    (void)sem_init(&places, 0, CALLS);
    int64_t begun = bench_wall_ns();
    for (long long i = 0; i < count; i++) {
        deletion *one = &all[i];
        hf_arena_init(&one->arena, cell_memory());
        one->execution =
            (hf_pb_workflow_execution){.workflow_id = hf_str_of(one->workflow_id), .run_id = hf_str_of(one->run_id)};
        one->request = (hf_pb_delete_workflow_execution_request){.namespace = HF_STR("default"),
                                                                 .workflow_execution = &one->execution};
        hf_call_init(&one->call, HF_METHOD_DELETE_WORKFLOW_EXECUTION, &one->request, &one->arena, deleted);
        while (sem_wait(&places) != 0) {
        }
        hf_service_submit(service, &one->call);
    }
    for (int i = 0; i < CALLS; i++) {
        while (sem_wait(&places) != 0) {
        }
    }
    while (figures(service, true).ended > 0) { /* the rows follow the answers */
        cell_sleep(0.05);
    }
    double us = (double)(bench_wall_ns() - begun) / 1000;
    for (long long i = 0; i < count; i++) {
        hf_arena_deinit(&all[i].arena);
    }
    return us;
}

static void must(sqlite3 *db, int rc, const char *what)
{
    if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW) {
        play_die("SQLite: %s: %s", what, sqlite3_errmsg(db));
    }
}

static double seconds_of(sqlite3 *db, const char *sql)
{
    int64_t begun = bench_wall_ns();
    must(db, sqlite3_exec(db, sql, NULL, NULL, NULL), sql);
    return (double)(bench_wall_ns() - begun) * 1e-9;
}

/* The same rows: the state, the history and the name of each run. */
static double sqlite_delete(sqlite3 *db, long long count)
{
    static const char *const SQL[] = {
        "DELETE FROM run WHERE id = ?1",
        "DELETE FROM history WHERE id >= ?1 * 1048576 AND id < (?1 + 1) * 1048576",
        "DELETE FROM name WHERE hash = ?2 AND run = ?1",
    };
    sqlite3_stmt *all[HF_COUNT_OF(SQL)];
    sqlite3_stmt *names = NULL;
    for (size_t i = 0; i < HF_COUNT_OF(SQL); i++) {
        must(db, sqlite3_prepare_v2(db, SQL[i], -1, &all[i], NULL), SQL[i]);
    }
    /* Names may not be in their table yet (ADR 0008): as many, in no order. */
    (void)seconds_of(db, "DELETE FROM name; INSERT INTO name(hash, run) SELECT random(), id FROM run");
    must(db, sqlite3_prepare_v2(db, "SELECT run, hash FROM name ORDER BY run", -1, &names, NULL), "names");
    int64_t(*rows)[2] = calloc((size_t)count, sizeof *rows);
    long long found = 0;
    while (rows != NULL && found < count && sqlite3_step(names) == SQLITE_ROW) {
        rows[found][0] = sqlite3_column_int64(names, 0);
        rows[found++][1] = sqlite3_column_int64(names, 1);
    }
    sqlite3_finalize(names);
    int64_t begun = bench_wall_ns();
    for (long long i = 0; i < found; i++) {
        if (i % DELETES_A_COMMIT == 0) {
            must(db, sqlite3_exec(db, i > 0 ? "COMMIT; BEGIN" : "BEGIN", NULL, NULL, NULL), "begin");
        }
        for (size_t j = 0; j < HF_COUNT_OF(SQL); j++) {
            must(db, sqlite3_bind_int64(all[j], 1, rows[i][0]), "bind");
            if (j == 2) {
                must(db, sqlite3_bind_int64(all[j], 2, rows[i][1]), "bind");
            }
            must(db, sqlite3_step(all[j]), SQL[j]);
            must(db, sqlite3_reset(all[j]), SQL[j]);
        }
    }
    must(db, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), "commit");
    double us = (double)(bench_wall_ns() - begun) / 1000;
    for (size_t j = 0; j < HF_COUNT_OF(SQL); j++) {
        sqlite3_finalize(all[j]);
    }
    free(rows);
    return found > 0 ? us / (double)found : 0;
}

static void print_pair(const char *name, double ours, double theirs)
{
    char metric[64];
    (void)snprintf(metric, sizeof metric, "%s_us", name);
    bench_print(metric, ours);
    (void)snprintf(metric, sizeof metric, "%s_sqlite_us", name);
    bench_print(metric, theirs);
    (void)snprintf(metric, sizeof metric, "%s_ratio", name);
    bench_print(metric, theirs > 0 ? ours / theirs : 0);
}

void cell_delete(const cell_options *o)
{
    const char *path = cell_path(o, o->mode);
    char copy[4200];
    (void)snprintf(copy, sizeof copy, "%s.copy", path);
    cell_remove(path);
    cell_remove(copy);
    hf_service *service = cell_open(o, path);
    play p;
    fill(o, service, &p, false);
    stop(&p);
    cell_close(service); /* all rows are written */
    play_close(&p);
    service = cell_open(o, path);
    hf_op op;
    hf_op_init(&op);
    if (hf_engine_backup(&op, service, copy, NULL, NULL) != HF_OK) {
        play_die("%s", op.message);
    }
    long long count = (long long)figures(service, true).ended;
    deletion *all = calloc((size_t)count, sizeof *all);
    if (all == NULL) {
        play_die("out of memory");
    }
    double list = list_all(service, all, count) / (double)count;
    hf_arena arena;
    hf_arena_init(&arena, cell_memory());
    hf_pb_count_workflow_executions_request counting = {.namespace = HF_STR("default")};
    int64_t begun = bench_wall_ns();
    (void)cell_call(service, &arena, HF_METHOD_COUNT_WORKFLOW_EXECUTIONS, &counting);
    double counted = (double)(bench_wall_ns() - begun) / 1000;
    hf_arena_deinit(&arena);
    double gone = delete_all(service, all, count) / (double)count;
    cell_close(service);
    sqlite3 *db = NULL;
    must(db, sqlite3_open(copy, &db), copy);
    must(db, sqlite3_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL", NULL, NULL, NULL), "pragmas");
    double select = seconds_of(db, "SELECT max(hex(substr(v, 1, 1))), sum(length(v)) FROM run") * 1e6 / (double)count;
    double scan = seconds_of(db, "SELECT count(*) FROM run") * 1e6;
    double theirs = sqlite_delete(db, count);
    sqlite3_close(db);
    print_pair("list_run", list, select);
    print_pair("count_all", counted, scan);
    print_pair("delete_run", gone, theirs);
    free(all);
    cell_remove(copy);
    cell_remove(path);
}
