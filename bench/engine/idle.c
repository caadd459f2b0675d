/* Runs that wait for ever, in one file: half of them for a signal only, half also for a timer that is weeks away.
 *
 * Two programs: one that makes them, and one that opens the file afterwards, so that the memory of the second is what
 * serving so many costs. Both keep the same little memory (cell_options). */
#include "bench.h"
#include "engine/cells.h"

#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

static play_options idle_options(const cell_options *o, hf_service *service)
{
    return (play_options){
        .service = service,
        .env = hf_env_posix(),
        .wait = PLAY_SIGNAL,
        .stays_open = true,
        .far_every = 2,
        .is_direct = o->is_direct,
        .polls = o->polls > 0 ? o->polls : 128,
        .runs_max = (size_t)o->count,
    };
}

void cell_idle_make(const cell_options *o)
{
    const char *path = cell_path(o, "idle");
    cell_remove(path);
    hf_service *service = cell_open(o, path);
    play_options options = idle_options(o, service);
    play p;
    play_open(&p, &options);
    cell_moment from = cell_now(service, &p);
    int64_t ns = play_start_all(&p, o->count, o->window);
    play_await(&p.waiting, o->count);
    cell_moment to = cell_now(service, &p);
    bench_print("starts_s", (double)o->count / ((double)ns * 1e-9));
    cell_print(&from, &to, (double)o->count);
    cell_check(&p);
    cell_close(service);
    play_close(&p);
    struct stat st;
    bench_print("file_run_b", stat(path, &st) == 0 ? (double)st.st_size / (double)o->count : 0);
}

/* ---- SQLite alone ---------------------------------------------------------------------------------------------------------- */

enum { OPERATIONS = 20000, PER_COMMIT = 100, PER_CHECKPOINT = 2000 };

typedef struct raw_name {
    sqlite3_int64 hash;
    sqlite3_int64 run;
} raw_name;

typedef struct raw {
    sqlite3 *db;
    sqlite3_stmt *find;   /* the run of a name */
    sqlite3_stmt *load;   /* the row of a run */
    sqlite3_stmt *update; /* the same, replaced by one of the same length */
    raw_name *names;      /* OPERATIONS of them, in no order */
} raw;

static void prepare(const raw *r, const char *sql, sqlite3_stmt **statement)
{
    if (sqlite3_prepare_v3(r->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) != SQLITE_OK) {
        play_die("sqlite: %s", sqlite3_errmsg(r->db));
    }
}

static void raw_open(raw *r, const cell_options *o, const char *path)
{
    char pragma[64];
    (void)snprintf(pragma, sizeof pragma, "PRAGMA cache_size=-%zu",
                   (o->cache_len > 0 ? o->cache_len : 8u << 20) / 1024);
    if (sqlite3_open_v2(path, &r->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
        sqlite3_exec(r->db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL", NULL,
                     NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(r->db, "PRAGMA wal_autocheckpoint=0", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(r->db, pragma, NULL, NULL, NULL) != SQLITE_OK) {
        play_die("sqlite: %s", sqlite3_errmsg(r->db));
    }
    prepare(r, "SELECT run FROM name WHERE hash = ?1", &r->find);
    prepare(r, "SELECT v FROM run WHERE id = ?1", &r->load);
    prepare(r, "UPDATE run SET v = zeroblob(length(v)) WHERE id = ?1", &r->update);
}

static void raw_close(raw *r)
{
    (void)sqlite3_finalize(r->find);
    (void)sqlite3_finalize(r->load);
    (void)sqlite3_finalize(r->update);
    (void)sqlite3_close(r->db);
    free(r->names);
}

/* Some names, far from each other. False: there are few in the table; those of the last runs are elsewhere. */
static bool raw_gather(raw *r, long long count)
{
    sqlite3_stmt *all = NULL;
    long long seen = 0;
    long long kept = 0;
    long long step = count * 9 / 10 / OPERATIONS;
    r->names = calloc(OPERATIONS, sizeof *r->names);
    if (r->names == NULL || step == 0) {
        return false;
    }
    prepare(r, "SELECT hash, run FROM name", &all);
    for (; kept < OPERATIONS && sqlite3_step(all) == SQLITE_ROW; seen++) {
        if (seen % step == 0) {
            long long at = (long long)((uint64_t)kept++ * 7919 % OPERATIONS); /* a prime: each place once */
            r->names[at] = (raw_name){sqlite3_column_int64(all, 0), sqlite3_column_int64(all, 1)};
        }
    }
    (void)sqlite3_finalize(all);
    return kept == OPERATIONS;
}

static void replace_row(const raw *r, sqlite3_int64 run)
{
    (void)sqlite3_bind_int64(r->update, 1, run);
    if (sqlite3_step(r->update) != SQLITE_DONE) {
        play_die("sqlite: %s", sqlite3_errmsg(r->db));
    }
    (void)sqlite3_reset(r->update);
}

/* A signal to a run that is not in memory: its name is looked up, its row is read, and written again. */
static void read_and_replace(const raw *r, const raw_name *name)
{
    static char row[65536];
    (void)sqlite3_bind_int64(r->find, 1, name->hash);
    if (sqlite3_step(r->find) != SQLITE_ROW) {
        play_die("sqlite: a name is not there");
    }
    (void)sqlite3_reset(r->find);
    (void)sqlite3_bind_int64(r->load, 1, name->run);
    if (sqlite3_step(r->load) != SQLITE_ROW) {
        play_die("sqlite: a run is not there");
    }
    size_t len = (size_t)sqlite3_column_bytes(r->load, 0);
    memcpy(row, sqlite3_column_blob(r->load, 0), len < sizeof row ? len : sizeof row);
    (void)sqlite3_reset(r->load);
    replace_row(r, name->run);
}

/* CPU us of one operation: a hundred per commit, checkpoints between them. Without names: only the row is replaced. */
static double raw_us(const raw *r, long long count, bool by_name)
{
    int64_t begun = bench_cpu_ns();
    for (long long i = 0; i < OPERATIONS; i++) {
        if (i % PER_COMMIT == 0) {
            (void)sqlite3_exec(r->db, i > 0 ? "COMMIT; BEGIN IMMEDIATE" : "BEGIN IMMEDIATE", NULL, NULL, NULL);
        }
        if (by_name) {
            read_and_replace(r, &r->names[i]);
        } else {
            replace_row(r, 1 + (sqlite3_int64)((uint64_t)i * 0x9E3779B1u % (uint64_t)count));
        }
        if (i % PER_CHECKPOINT == PER_CHECKPOINT - 1) {
            (void)sqlite3_exec(r->db, "COMMIT", NULL, NULL, NULL);
            (void)sqlite3_wal_checkpoint_v2(r->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
            (void)sqlite3_exec(r->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
        }
    }
    (void)sqlite3_exec(r->db, "COMMIT", NULL, NULL, NULL);
    return (double)(bench_cpu_ns() - begun) / OPERATIONS / 1000;
}

static void print_raw(const cell_options *o, const char *path)
{
    raw r = {0};
    raw_open(&r, o, path);
    if (raw_gather(&r, o->count)) {
        bench_print("raw_signal_us", raw_us(&r, o->count, true));
    }
    bench_print("raw_update_us", raw_us(&r, o->count, false));
    raw_close(&r);
}

/* ---- The cell -------------------------------------------------------------------------------------------------------------- */

void cell_idle_use(const cell_options *o)
{
    const char *path = cell_path(o, "idle");
    int64_t rss_before = bench_rss();
    int64_t begun = bench_wall_ns();
    hf_service *service = cell_open(o, path);
    play_options options = idle_options(o, service);
    options.table_max = 4096; /* it has nothing to remember of a run, and its memory is measured */
    play p = {.memory = {0}};
    play_open(&p, &options);
    cell_serves(service);
    bench_print("serving_s", (double)(bench_wall_ns() - begun) * 1e-9);
    bench_print("open_rss_mib", (double)bench_rss() / 1048576);
    bench_print("program_rss_mib", (double)rss_before / 1048576);
    (void)usleep(500000); /* what it still reads in the background */
    atomic_store(&p.measuring, true);
    cell_moment from = cell_now(service, &p);
    int64_t ns = play_signal_all(&p, o->signals, o->window, true);
    cell_moment to = cell_now(service, &p);
    bench_print("ops_s", (double)o->signals / ((double)ns * 1e-9));
    bench_print("engine_op_us", (to.thread_cpu[0] + to.thread_cpu[1] - from.thread_cpu[0] - from.thread_cpu[1]) * 1e6 /
                                    (double)o->signals);
    cell_print(&from, &to, (double)o->signals);
    cell_check(&p);
    bench_print("p50_ms", play_quantile(&p.sweep_times, 0.5) / 1000);
    bench_print("p99_ms", play_quantile(&p.sweep_times, 0.99) / 1000);
    p.sweep_times.count = 0;
    (void)play_signal_all(&p, 500, 1, true); /* one at a time */
    bench_print("alone_ms", play_quantile(&p.sweep_times, 0.5) / 1000);
    cell_close(service);
    play_close(&p);
    print_raw(o, path);
}
