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

/* What SQLite alone takes to replace the row of a run, any run: a hundred per commit, checkpoints between them. */
static void print_raw_update(const cell_options *o, const char *path)
{
    enum { UPDATES = 20000, PER_COMMIT = 100, PER_CHECKPOINT = 2000 };
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    char pragma[64];
    (void)snprintf(pragma, sizeof pragma, "PRAGMA cache_size=-%zu",
                   (o->cache_len > 0 ? o->cache_len : 8u << 20) / 1024);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL", NULL, NULL,
                     NULL) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA wal_autocheckpoint=0", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db, pragma, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "UPDATE run SET v = zeroblob(length(v)) WHERE id = ?1", -1, &statement, NULL) !=
            SQLITE_OK) {
        play_die("sqlite: %s", sqlite3_errmsg(db));
    }
    int64_t begun = bench_cpu_ns();
    for (long long i = 0; i < UPDATES; i++) {
        if (i % PER_COMMIT == 0) {
            (void)sqlite3_exec(db, i > 0 ? "COMMIT; BEGIN IMMEDIATE" : "BEGIN IMMEDIATE", NULL, NULL, NULL);
        }
        (void)sqlite3_bind_int64(statement, 1, 1 + (sqlite3_int64)((uint64_t)i * 0x9E3779B1u % (uint64_t)o->count));
        if (sqlite3_step(statement) != SQLITE_DONE) {
            play_die("sqlite: %s", sqlite3_errmsg(db));
        }
        (void)sqlite3_reset(statement);
        if (i % PER_CHECKPOINT == PER_CHECKPOINT - 1) {
            (void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
            (void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
            (void)sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
        }
    }
    (void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    bench_print("raw_update_us", (double)(bench_cpu_ns() - begun) / UPDATES / 1000);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(db);
}

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
    cell_ask(service);
    bench_print("serving_s", (double)(bench_wall_ns() - begun) * 1e-9);
    bench_print("open_rss_mib", (double)bench_rss() / 1048576);
    bench_print("program_rss_mib", (double)rss_before / 1048576);
    (void)usleep(500000); /* what it still reads in the background */
    atomic_store(&p.measuring, true);
    cell_moment from = cell_now(service, &p);
    int64_t ns = play_signal_all(&p, o->signals, o->window, true);
    cell_moment to = cell_now(service, &p);
    bench_print("ops_s", (double)o->signals / ((double)ns * 1e-9));
    cell_print(&from, &to, (double)o->signals);
    cell_check(&p);
    bench_print("p50_ms", play_quantile(&p.sweep_times, 0.5) / 1000);
    bench_print("p99_ms", play_quantile(&p.sweep_times, 0.99) / 1000);
    p.sweep_times.count = 0;
    (void)play_signal_all(&p, 500, 1, true); /* one at a time */
    bench_print("alone_ms", play_quantile(&p.sweep_times, 0.5) / 1000);
    cell_close(service);
    play_close(&p);
    print_raw_update(o, path);
}
