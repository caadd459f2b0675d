/* Opening, in an order in which nothing is changed that should not be:
 *
 *     1  the first bytes are looked at without SQLite           probe.c
 *     2  a connection with an exclusive lock on the file        locking_mode=EXCLUSIVE; no one else has it open
 *     3  a new file gets its tables under a rollback journal, so that its header is there before there is a log
 *     4  an old one is identified again, now with its log       (a newer program may have written it)
 *     5  the write-ahead log, then the steps that bring its tables up to date
 *
 * Until the last step succeeded, closing the connection leaves the log as it was. */
#include "store/sqlite/sqlite_private.h"

#include <stdio.h>

/* Measured. Pages of 8 KiB write half as much again where commits are small, and are not faster where they are big. A log twice
 * as long saves a few percent of what is written, and doubles the time that commits wait for a checkpoint. */
enum {
    PAGE_SIZE = 4096,
    CACHE_LEN = 8 * 1024 * 1024,
    LOG_LEN_MAX = 8 * 1024 * 1024,
};

/* ---- The connection ------------------------------------------------------------------------------------------------ */

/* A path as a URI: SQLite accepts parameters only in this form. */
static char *uri_of(const char *path, const char *query)
{
    sqlite3_str *uri = sqlite3_str_new(NULL);
    sqlite3_str_appendall(uri, path[0] == '/' ? "file://" : "file:");
    for (const char *at = path; *at != '\0'; at++) {
        bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
                     strchr("/-_.", *at) != NULL;
        sqlite3_str_appendf(uri, plain ? "%c" : "%%%02x", plain ? *at : (unsigned char)*at);
    }
    sqlite3_str_appendall(uri, query);
    return sqlite3_str_finish(uri);
}

int hf_sqlite_connect(const char *path, int flags, hf_sqlite_way way, const char *vfs, sqlite3 **ret_db)
{
    static const char *const QUERIES[] = {
        [HF_SQLITE_OLD] = "",
        /* the new file gets the mode of this one, which is owned by us and 0600 in every process */
        [HF_SQLITE_NEW] = "?modeof=/proc/self/mem",
        [HF_SQLITE_AT_REST] = "?immutable=1",
    };
    hf_assert((size_t)way < HF_COUNT_OF(QUERIES));
    char *uri = uri_of(path, QUERIES[way]);
    if (uri == NULL) {
        return SQLITE_NOMEM;
    }
    int rc = sqlite3_open_v2(uri, ret_db, flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, vfs);
    sqlite3_free(uri);
    return rc;
}

static int on_log_grown(void *state, sqlite3 *db, const char *name, int frames)
{
    (void)db;
    (void)name;
    ((hf_sqlite *)state)->log_frames = (uint64_t)frames;
    ((hf_sqlite *)state)->log_is_known = true;
    return SQLITE_OK;
}

/* Restricts what a file can make SQLite do, because the file may come from anywhere. */
static void harden(sqlite3 *db)
{
    static const struct {
        int option; /* of sqlite3_db_config */
        int value;  /* off or on */
    } OPTIONS[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
        {SQLITE_DBCONFIG_DQS_DDL, 0},
        {SQLITE_DBCONFIG_DQS_DML, 0},
        {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1},
    };
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        (void)sqlite3_db_config(db, OPTIONS[i].option, OPTIONS[i].value, NULL);
    }
}

static int read_number(sqlite3 *db, const char *sql, int *ret_number)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
        *ret_number = rc == SQLITE_ROW ? sqlite3_column_int(statement, 0) : 0;
        rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

/* Settings that hold for a connection. secure_delete is on in some builds of SQLite and would write every page that is freed. */
static int set_up(hf_sqlite *store, const hf_sqlite_options *options)
{
    sqlite3 *db = store->db;
    char cache[64];
    size_t cache_len = options->cache_len > 0 ? options->cache_len : (size_t)CACHE_LEN;
    (void)snprintf(cache, sizeof cache, "PRAGMA cache_size=-%zu", cache_len / 1024 + 1);
    int rc = sqlite3_exec(db, options->read_only ? "PRAGMA query_only=ON" : "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL,
                          NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db,
                          "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY;"
                          "PRAGMA secure_delete=OFF; PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=-1",
                          NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db, cache, NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = hf_sqlite_set_syncing(store, options->durability == HF_DURABILITY_FULL);
    }
    (void)sqlite3_wal_hook(db, on_log_grown, store);
    return rc;
}

/* ---- Identifying the file ---------------------------------------------------------------------------------------------- */

static hf_status fail_opening(hf_op *op, sqlite3 *db, int rc, const char *path)
{
    if ((rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED) {
        return hf_fail(op, HF_ERR_CONFLICT, "%s is open already, here or in another program: close it there first",
                       path);
    }
    if ((rc & 0xff) == SQLITE_NOTADB || (rc & 0xff) == SQLITE_CORRUPT) {
        return hf_fail(op, HF_ERR_INVALID, "%s is damaged (%s): restore it from a backup", path, sqlite3_errmsg(db));
    }
    char what[HF_MESSAGE_LEN_MAX / 2];
    (void)snprintf(what, sizeof what, "cannot open %s", path);
    return hf_sqlite_fail(op, db, rc, what);
}

/* The page size of a file never changes; SQLite accepts only these. */
static int create_shape(sqlite3 *db, int page_size)
{
    static const struct {
        int page_size;   /* bytes */
        const char *sql; /* before the first table */
    } SIZES[] = {
        {1024, "PRAGMA page_size=1024"},   {2048, "PRAGMA page_size=2048"},   {4096, "PRAGMA page_size=4096"},
        {8192, "PRAGMA page_size=8192"},   {16384, "PRAGMA page_size=16384"}, {32768, "PRAGMA page_size=32768"},
        {65536, "PRAGMA page_size=65536"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(SIZES); i++) {
        if (SIZES[i].page_size == page_size) {
            int rc = sqlite3_exec(db, SIZES[i].sql, NULL, NULL, NULL);
            return rc == SQLITE_OK ? sqlite3_exec(db, "PRAGMA auto_vacuum=INCREMENTAL", NULL, NULL, NULL) : rc;
        }
    }
    return SQLITE_RANGE;
}

static hf_status migrate(hf_op *op, hf_sqlite *store)
{
    return hf_schema_migrate(op, store->db, store->base.tables->steps, store->base.tables->step_count);
}

static hf_status create(hf_op *op, hf_sqlite *store, const char *path, const hf_sqlite_options *options)
{
    if (options->must_exist || options->read_only) {
        return hf_fail(op, HF_ERR_NOT_FOUND, "there is no database %s", path);
    }
    int rc = create_shape(store->db, options->page_size != 0 ? options->page_size : PAGE_SIZE);
    if (rc == SQLITE_RANGE) {
        return hf_fail(op, HF_ERR_MISUSE, "%d is not a valid page size", options->page_size);
    }
    return rc == SQLITE_OK ? migrate(op, store) : fail_opening(op, store->db, rc, path);
}

/* The tables that an older file lacks are empty ones of the connection. */
static int add_later_tables(hf_sqlite *store)
{
    int rc = sqlite3_exec(store->db, "PRAGMA query_only=OFF", NULL, NULL, NULL);
    rc = rc == SQLITE_OK ? sqlite3_exec(store->db, store->base.tables->later_tables, NULL, NULL, NULL) : rc;
    return rc == SQLITE_OK ? sqlite3_exec(store->db, "PRAGMA query_only=ON", NULL, NULL, NULL) : rc;
}

/* Step 3 or 4 above. A file without tables and without an application id is new: its creation was interrupted after the first of
 * its two transactions (auto_vacuum has one of its own). */
static hf_status recognise(hf_op *op, hf_sqlite *store, const char *path, const hf_sqlite_options *options)
{
    int table_count = 0;
    int id = 0;
    int version = 0;
    int rc =
        read_number(store->db, "SELECT count(*) FROM sqlite_schema", &table_count); /* takes the lock, reads the log */
    if (rc == SQLITE_OK) {
        rc = read_number(store->db, "PRAGMA application_id", &id);
    }
    if (rc == SQLITE_OK) {
        rc = read_number(store->db, "PRAGMA user_version", &version);
    }
    if (rc != SQLITE_OK) {
        return fail_opening(op, store->db, rc, path);
    }
    if (table_count == 0 && id == 0 && version == 0) {
        return create(op, store, path, options);
    }
    const hf_table_set *tables = store->base.tables;
    HF_TRY(hf_probe_id(op, path, tables, (uint32_t)id));
    if (options->read_only && version < tables->version_readable) {
        return hf_fail(op, HF_ERR_UNSUPPORTED,
                       "%s has version %d, but a read-only opening needs version %d: let a program with this "
                       "version of the library open it once, which brings it up to date",
                       path, version, tables->version_readable);
    }
    if (options->read_only && version < hf_schema_version(tables)) {
        store->is_older = true;
        rc = add_later_tables(store);
    }
    return rc == SQLITE_OK ? HF_OK : fail_opening(op, store->db, rc, path);
}

/* The statement returns its row before it commits: only the step after that tells whether the change was made. */
static int set_log(sqlite3 *db, bool *ret_is_wal)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, "PRAGMA journal_mode=WAL", -1, &statement, NULL);
    rc = rc == SQLITE_OK ? sqlite3_step(statement) : rc;
    if (rc == SQLITE_ROW) {
        *ret_is_wal = sqlite3_stricmp((const char *)sqlite3_column_text(statement, 0), "wal") == 0;
        rc = sqlite3_step(statement);
    }
    (void)sqlite3_finalize(statement);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Step 5. */
static hf_status make_ready(hf_op *op, hf_sqlite *store, const char *path, const hf_sqlite_options *options)
{
    bool is_wal = options->read_only;
    int rc = is_wal ? SQLITE_OK : set_log(store->db, &is_wal);
    if (rc == SQLITE_OK && !is_wal) {
        return hf_fail(op, HF_ERR_UNSUPPORTED, "%s cannot have a write-ahead log in this place", path);
    }
    if (rc == SQLITE_OK) {
        if (!options->read_only || !store->is_older) {
            HF_TRY(migrate(op, store));
        }
        rc = read_number(store->db, "PRAGMA page_size", &store->page_size);
    }
    if (rc == SQLITE_OK) {
        rc = hf_sqlite_read_last_commit(store);
    }
    return rc == SQLITE_OK ? HF_OK : fail_opening(op, store->db, rc, path);
}

/* An empty log holds no commits of an earlier process: then a commit that finds the disk full can be undone, even the first one. */
static void look_at_log(hf_sqlite *store)
{
    sqlite3_file *log = NULL;
    sqlite3_int64 len = 0;
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log != NULL &&
        log->pMethods != NULL && log->pMethods->xFileSize(log, &len) == SQLITE_OK && len == 0) {
        store->log_is_known = true;
    }
}

/* store-D3  On a disk that may damage the sector of an interrupted write every commit is synced. SQLite then fills the log up to the end of the
 *     sector, so that no later commit is written there. Otherwise this could happen: a checkpoint flushes the log and stops in the middle of
 *     copying it, the next commit is appended in the sector where the last one ends, and the power goes. That last commit is not in
 *     the log any more, and a part of it is in the database. SQLite takes all disks for better than that, unless it is told otherwise. */
static void look_at_disk(hf_sqlite *store)
{
    sqlite3_file *file = NULL;
    store->is_powersafe = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK &&
                          file != NULL && file->pMethods != NULL &&
                          (file->pMethods->xDeviceCharacteristics(file) & SQLITE_IOCAP_POWERSAFE_OVERWRITE) != 0;
    if (!store->is_powersafe && store->durability == HF_DURABILITY_NORMAL) {
        store->durability = HF_DURABILITY_FULL; /* the next commit sets it */
    }
}

static hf_status open_it(hf_op *op, hf_sqlite *store, const char *path, const hf_sqlite_options *options)
{
    HF_TRY(hf_shim_open(op, &store->shim, options->vfs));
    store->shim.is_writer = !options->read_only;
    HF_TRY(hf_sqlite_reread(op, store->shim.inner, path, options));
    hf_sqlite_probe probe = HF_PROBE_MISSING;
    HF_TRY(hf_probe_file(op, store->shim.inner, path, store->base.tables, options, &probe));
    bool is_new = probe == HF_PROBE_MISSING;
    int flags = options->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | (is_new ? SQLITE_OPEN_CREATE : 0);
    hf_sqlite_way way = is_new                                   ? HF_SQLITE_NEW
                        : options->read_only && options->at_rest ? HF_SQLITE_AT_REST
                                                                 : HF_SQLITE_OLD;
    int rc = hf_sqlite_connect(path, flags, way, store->shim.name, &store->db);
    if (rc != SQLITE_OK) {
        return fail_opening(op, store->db, rc, path);
    }
    if (!options->read_only && sqlite3_db_readonly(store->db, "main") == 1) {
        return hf_fail(op, HF_ERR_DENIED, "%s is read-only: give this user the right to write it", path);
    }
    harden(store->db);
    rc = set_up(store, options);
    if (rc != SQLITE_OK) {
        return fail_opening(op, store->db, rc, path);
    }
    HF_TRY(recognise(op, store, path, options));
    HF_TRY(make_ready(op, store, path, options));
    hf_assert(options->read_only || store->shim.lock == SQLITE_LOCK_EXCLUSIVE); /* store-S4: nobody else writes */
    store->base.was_left_open = store->shim.had_log;
    if (!options->read_only) { /* from here on closing moves the log into the file */
        look_at_log(store);
        look_at_disk(store);
        (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    }
    return HF_OK;
}

/* ---- The interface ------------------------------------------------------------------------------------------------- */

static uint64_t sqlite_last_commit(hf_store *base)
{
    return HF_CONTAINER(base, hf_sqlite, base)->last_commit;
}

static void sqlite_close(hf_store *base)
{
    hf_sqlite *store = HF_CONTAINER(base, hf_sqlite, base);
    hf_sqlite_backup_drop(store);
    hf_sqlite_finalize_all(store);
    hf_assert(store->backup.path == NULL && store->plain[0] == NULL);
    if (store->is_poisoned) { /* keep the log: the next opening reads it */
        (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    int rc = sqlite3_close(store->db);
    hf_assert(rc == SQLITE_OK); /* every statement and backup is finished */
    hf_shim_close(&store->shim);
    store->memory.release(store->memory.state, store, sizeof *store);
}

static const hf_store_ops SQLITE_OPS = {
    .name = "sqlite",
    .execute = hf_sqlite_execute,
    .last_commit = sqlite_last_commit,
    .close = sqlite_close,
};

hf_status hf_sqlite_open(hf_op *op, hf_allocator memory, const char *path, const hf_sqlite_options *options,
                         hf_store **ret_store)
{
    static const hf_sqlite_options DEFAULTS = {0};
    const hf_sqlite_options *wanted = options != NULL ? options : &DEFAULTS;
    hf_sqlite *store = memory.allocate(memory.state, sizeof *store, _Alignof(hf_sqlite));
    if (store == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a store");
    }
    memset(store, 0, sizeof *store);
    store->base.ops = &SQLITE_OPS;
    store->base.tables = wanted->tables != NULL ? wanted->tables : &hf_engine_tables;
    store->durability = wanted->durability;
    store->memory = memory;
    store->log_len_max = wanted->log_len_max > 0 ? wanted->log_len_max : (size_t)LOG_LEN_MAX;
    hf_status status = open_it(op, store, path, wanted);
    if (status != HF_OK && store->shim.trouble != HF_SHIM_FINE) {
        status = hf_shim_explain(op, &store->shim, path, status);
    }
    if (status != HF_OK) {
        sqlite_close(&store->base);
        return status;
    }
    *ret_store = &store->base;
    return HF_OK;
}
