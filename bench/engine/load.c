/* A run that is not in memory: what it costs to bring it back, beside the least, a SELECT of the same row.
 *
 * The core is driven by hand, without threads, with a budget so small that every run is dropped as soon as nothing holds it:
 * ask for the row, execute, decode, drop. The SELECT then reads the same rows in the same order with the same cache. */
#include "engine/load.h"
#include "bench.h"
#include "engine/cells.h"
#include "engine/core_private.h"
#include "store/sqlite/sqlite.h"

#include <sqlite3.h>

static hf_store_request *asked; /* by the core, one at a time */

static void keep_request(void *state, hf_store_request *request)
{
    (void)state;
    asked = request;
}

static void *heap_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len);
}

static void heap_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

static const hf_allocator HEAP = {heap_allocate, heap_release, NULL};

/* The i-th run in an order that no cache of pages likes. */
static int64_t number_of(const cell_options *o, long long i)
{
    return 1 + (int64_t)((uint64_t)i * UINT64_C(0x9E3779B1) % (uint64_t)o->count);
}

static void make_runs(const cell_options *o, const char *path)
{
    cell_remove(path);
    cell_options small = *o;
    small.journal_max = 1 << 20; /* so that nearly all of them get their rows */
    hf_service *service = cell_open(&small, path);
    play_options options = {.service = service,
                            .env = hf_env_posix(),
                            .wait = PLAY_SIGNAL,
                            .stays_open = true,
                            .polls = 64,
                            .runs_max = (size_t)o->count};
    play p;
    play_open(&p, &options);
    (void)play_start_all(&p, o->count, o->window);
    play_await(&p.waiting, o->count);
    cell_check(&p);
    cell_close(service);
    play_close(&p);
}

/* Executes what the core asked for, and tells it. */
static void turn(hf_core *core, hf_store *store, hf_clock now)
{
    while (asked != NULL) {
        hf_store_request *request = asked;
        asked = NULL;
        hf_store_execute(store, request);
        hf_core_done(core, request, now);
    }
}

static void settle(hf_core *core, hf_store *store, hf_clock now)
{
    hf_store_request *commit = NULL;
    do {
        turn(core, store, now);
        commit = hf_core_seal(core, now);
        if (commit != NULL) {
            hf_store_execute(store, commit);
            hf_core_done(core, commit, now);
        }
    } while (commit != NULL || asked != NULL);
    if (hf_core_status(core) != HF_OK) {
        play_die("the core: %s", core->why);
    }
}

static double load_ns(const cell_options *o, const char *path, long long loads)
{
    hf_op op;
    hf_op_init(&op);
    hf_store *store = NULL;
    hf_core *core = NULL;
    hf_core_options options = {.memory = HEAP, .mem_max = 1, .journal_len_max = 1 << 20, .seed = "bench load"};
    hf_clock now = {INT64_C(1000000000000000000), INT64_C(1000000000)};
    hf_sqlite_options sqlite = {.cache_len = o->cache_len};
    if (hf_sqlite_open(&op, HEAP, path, &sqlite, &store) != HF_OK ||
        hf_core_open(&op, &options, store, now, &core) != HF_OK) {
        play_die("cannot open %s: %s", path, op.message);
    }
    core->submit = keep_request;
    settle(core, store, now);
    int64_t begun = 0;
    long long loaded = 0;
    for (long long i = -loads; i < loads; i++) { /* the first half warms the cache */
        if (i == 0) {
            begun = bench_cpu_ns();
            loaded = 0;
        }
        /* Those whose last changes are still in the journal have stayed in memory: they do not count. */
        const hf_run *run = hf_run_load(core, number_of(o, i + loads));
        loaded += run != NULL && HF_SLOT(run)->loading;
        turn(core, store, now);
    }
    double ns = (double)(bench_cpu_ns() - begun) / (double)loaded;
    bench_print("loaded", (double)loaded / (double)loads);
    if (hf_core_status(core) != HF_OK) {
        play_die("the core: %s", core->why);
    }
    hf_core_stop(core, HF_ERR_CLOSED, "measured");
    hf_core_free(core);
    hf_store_close(store);
    return ns;
}

static double select_ns(const cell_options *o, const char *path, long long loads)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    char pragma[64];
    (void)snprintf(pragma, sizeof pragma, "PRAGMA cache_size=-%zu",
                   (o->cache_len > 0 ? o->cache_len : 8u << 20) / 1024 + 1);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db, pragma, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v3(db, "SELECT v FROM run WHERE id = ?1", -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) !=
            SQLITE_OK) {
        play_die("sqlite: %s", sqlite3_errmsg(db));
    }
    int64_t begun = 0;
    uint64_t bytes = 0;
    for (long long i = -loads; i < loads; i++) {
        if (i == 0) {
            begun = bench_cpu_ns();
            bytes = 0;
        }
        (void)sqlite3_bind_int64(statement, 1, number_of(o, i + loads));
        if (sqlite3_step(statement) != SQLITE_ROW || sqlite3_column_blob(statement, 0) == NULL) {
            play_die("no row of run %lld", (long long)number_of(o, i + loads));
        }
        bytes += (uint64_t)sqlite3_column_bytes(statement, 0);
        (void)sqlite3_reset(statement);
    }
    double ns = (double)(bench_cpu_ns() - begun) / (double)loads;
    bench_print("row_b", (double)bytes / (double)loads);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(db);
    return ns;
}

void cell_load(const cell_options *o)
{
    const char *path = cell_path(o, "load");
    make_runs(o, path);
    long long loads = 50000;
    double load = load_ns(o, path, loads);
    double select = select_ns(o, path, loads);
    bench_print("load_ns", load);
    bench_print("select_ns", select);
    bench_print("ratio", load / select);
    cell_remove(path);
}
