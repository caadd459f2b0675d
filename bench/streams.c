/* Streams: appending and reading, beside SQLite doing the same rows; and many readers of one run.
 *
 *     streams append|read COUNT [DIR]          an activity publishes COUNT records of 100 bytes, one after the other; then one reader reads all
 *     streams readers COUNT RATE [DIR]         COUNT readers follow one run that publishes RATE records a second, for 5 s; one of them stalls
 *
 * `ratio` compares with SQLite in the same file system: one row in each transaction (WAL, synchronous=FULL), and a scan of them. `late_ms` is
 * the time from the return of hf_publish to the reader's function. */
#include "bench.h"

#include <holdfast/holdfast.h>

#include <sqlite3.h>
#include <stdatomic.h>

enum { SECONDS = 5, READERS_MAX = 2000, LEN = 100 };

static int count;
static int rate; /* records a second; 0 = as fast as it goes */
static char path[4096];
static atomic_llong published_ns[200000]; /* by number: when hf_publish had returned */
static atomic_llong append_ns;
static hf_service *service;

static void check(bool fine, const char *what)
{
    if (!fine) {
        (void)fprintf(stderr, "streams: %s: %s\n", what, hf_error_text());
        exit(1);
    }
}

/* ---- The workflow ------------------------------------------------------------------------------------------------------ */

static hf_status append(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    char text[LEN];
    memset(text, 'x', sizeof text);
    int64_t begun = bench_wall_ns();
    for (int i = 0; i < count; i++) {
        int64_t due = begun + (rate > 0 ? (int64_t)i * 1000000000 / rate : 0);
        if (rate > 0 && bench_wall_ns() < due) {
            HF_TRY(hf_sleep(hf_nanoseconds(due - bench_wall_ns())));
        }
        HF_TRY(hf_publish("row", hf_payload_of_bytes(text, sizeof text)));
        atomic_store(&published_ns[i], bench_wall_ns());
    }
    atomic_store(&append_ns, bench_wall_ns() - begun);
    return HF_OK;
}

static hf_status run_append(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("append", in, ret_out, .start_to_close = hf_hours(1));
}

/* ---- Readers ------------------------------------------------------------------------------------------------------------- */

typedef struct reader {
    hf_execution *execution;
    bool stalls;
    int64_t seen;
    int64_t late_max, late_sum;
} reader;

static bool saw(void *arg, const hf_stream_record *record)
{
    reader *r = arg;
    check(record->sequence == r->seen, "a record is missing");
    int64_t at = atomic_load(&published_ns[record->sequence]);
    int64_t late = at != 0 ? bench_wall_ns() - at : 0; /* it may come before hf_publish has returned */
    r->late_max = late > r->late_max ? late : r->late_max;
    r->late_sum += late > 0 ? late : 0;
    r->seen++;
    if (r->stalls && r->seen == 10) {
        HF_IGNORE(hf_sleep(hf_seconds(SECONDS - 1)));
    }
    return true;
}

static hf_status follow(void *arg)
{
    reader *r = arg;
    int64_t cursor = 0;
    return hf_stream_read(r->execution, &cursor, saw, r);
}

/* ---- SQLite ---------------------------------------------------------------------------------------------------------------- */

static void sqlite_rows(const char *dir, double *ret_append_us, double *ret_read_us)
{
    char name[4200];
    (void)snprintf(name, sizeof name, "%s/streams-limit.db", dir);
    (void)unlink(name);
    sqlite3 *db = NULL;
    sqlite3_stmt *put = NULL;
    check(sqlite3_open(name, &db) == SQLITE_OK, "sqlite");
    check(sqlite3_exec(
              db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(id INTEGER PRIMARY KEY, b BLOB)",
              NULL, NULL, NULL) == SQLITE_OK,
          "sqlite");
    char text[LEN] = {0};
    check(sqlite3_prepare_v2(db, "INSERT INTO t(b) VALUES(?)", -1, &put, NULL) == SQLITE_OK, "sqlite");
    int64_t begun = bench_wall_ns();
    for (int i = 0; i < count; i++) {
        sqlite3_bind_blob(put, 1, text, sizeof text, SQLITE_STATIC);
        check(sqlite3_step(put) == SQLITE_DONE, "sqlite");
        sqlite3_reset(put);
    }
    *ret_append_us = (double)(bench_wall_ns() - begun) / 1000 / count;
    sqlite3_finalize(put);
    begun = bench_wall_ns();
    check(sqlite3_prepare_v2(db, "SELECT id, b FROM t ORDER BY id", -1, &put, NULL) == SQLITE_OK, "sqlite");
    int rows = 0;
    while (sqlite3_step(put) == SQLITE_ROW) {
        rows += sqlite3_column_bytes(put, 1) == LEN;
    }
    check(rows == count, "sqlite lost rows");
    *ret_read_us = (double)(bench_wall_ns() - begun) / 1000 / count;
    sqlite3_finalize(put);
    sqlite3_close(db);
    (void)unlink(name);
    (void)snprintf(name, sizeof name, "%s/streams-limit.db-wal", dir);
    (void)unlink(name);
    (void)snprintf(name, sizeof name, "%s/streams-limit.db-shm", dir);
    (void)unlink(name);
}

/* ---- The play ------------------------------------------------------------------------------------------------------------ */

static int readers_count;
static reader readers[READERS_MAX];

static hf_status play(void *arg)
{
    const char *dir = arg;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(hf_worker_new(service, "bench", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "run", run_append));
    HF_TRY(hf_worker_add_activity(worker, "append", append));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_start(service, "run", hf_payload_none(), &execution, .task_queue = "bench"));
    int64_t rss = bench_rss();
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        for (int i = 0; i < readers_count; i++) {
            readers[i] = (reader){.execution = execution, .stalls = i == 0 && readers_count > 1};
            HF_TRY(hf_fork(scope, follow, &readers[i]));
        }
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_result(execution, NULL));
    bench_print("append_us", (double)atomic_load(&append_ns) / 1000 / count);
    if (readers_count > 0) {
        double sum = 0;
        int64_t most = 0;
        for (int i = 1; i < readers_count; i++) {
            sum += (double)readers[i].late_sum / (double)count;
            most = readers[i].late_max > most ? readers[i].late_max : most;
        }
        bench_print("late_mean_ms", sum / (readers_count > 1 ? readers_count - 1 : 1) / 1e6);
        bench_print("late_max_ms", (double)most / 1e6);
        bench_print("rss_growth_mib", (double)(bench_rss() - rss) / (1 << 20));
        bench_print("records_a_second", count / ((double)atomic_load(&append_ns) / 1e9));
        return HF_OK;
    }
    reader one = {.execution = execution};
    int64_t begun = bench_wall_ns();
    HF_TRY(follow(&one));
    double read_us = (double)(bench_wall_ns() - begun) / 1000 / count;
    double limit_append = 0;
    double limit_read = 0;
    sqlite_rows(dir, &limit_append, &limit_read);
    bench_print("read_us", read_us);
    bench_print("sqlite_append_us", limit_append);
    bench_print("sqlite_read_us", limit_read);
    bench_print("append_ratio", (double)atomic_load(&append_ns) / 1000 / count / limit_append);
    bench_print("read_ratio", read_us / limit_read);
    return HF_OK;
}

int main(int argc, char **argv)
{
    bool has_readers = argc >= 4 && strcmp(argv[1], "readers") == 0;
    bool is_plain = argc >= 3 && (strcmp(argv[1], "append") == 0 || strcmp(argv[1], "read") == 0);
    if (!has_readers && !is_plain) {
        (void)fprintf(stderr, "usage: streams append|read COUNT [DIR] | readers COUNT RATE [DIR]\n");
        return 2;
    }
    const char *dir = argc > (has_readers ? 4 : 3) ? argv[has_readers ? 4 : 3] : ".";
    readers_count = has_readers ? atoi(argv[2]) : 0;
    rate = has_readers ? atoi(argv[3]) : 0;
    count = has_readers ? rate * SECONDS : atoi(argv[2]);
    if (readers_count > READERS_MAX || count <= 0 || count > 100000) {
        (void)fprintf(stderr, "streams: at most %d readers and 100000 records\n", READERS_MAX);
        return 2;
    }
    (void)snprintf(path, sizeof path, "sqlite:%s/streams-bench.db", dir);
    (void)unlink(path + 7);
    check(hf_open(path, &service) == HF_OK, "hf_open");
    check(hf_run(play, (void *)(uintptr_t)dir) == HF_OK, "play");
    check(hf_close(service) == HF_OK, "hf_close");
    (void)unlink(path + 7);
    return 0;
}
