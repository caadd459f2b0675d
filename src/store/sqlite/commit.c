/* Commits.
 *
 * Everything before COMMIT can be undone: an error there leaves nothing behind (store-S5). COMMIT itself appends the changed
 * pages to the write-ahead log, the last of them with the mark that makes them valid, and flushes. If that fails, the mark may
 * or may not be on the disk, and SQLite's own rollback happens in memory only: the outcome is unknown, and the store is poisoned.
 *
 * A full disk is the exception. The store should go on after it, and the outcome can be made certain: the pages of this commit begin
 * right after the last valid page of the log. Wiping the header of the first of them makes all of them invalid, because each page's
 * checksum continues the one before. Wiping needs no space.
 *
 * An unsynced commit is the same without the flush, where the disk allows it (store-D3): synchronous=NORMAL instead of FULL, changed between transactions and only when two commits
 * in a row differ. SQLite still syncs the header of a log that it begins again, and the log before a checkpoint copies
 * it: so a power cut takes commits from the end only (store-S2), because each page's checksum continues the one before. A synced commit
 * always writes at least one page, that of its number; its flush covers all of the log before it.
 *
 * If the file or its log was deleted or renamed, commits would be lost when this process ends: that is checked before a commit, every
 * LOOK_MS. To check it with every flush, three lookups of names, would cost a seventh of the speed of one workflow at a time.
 *
 * The number of the last commit is the greatest in the journal, so that it costs no page of its own. If a commit writes no
 * journal row, or empties the journal, or the file has no journal, the number is kept in the table mark. The lock on the file ensures that no one else writes
 * (store-S4 is checked against the number in memory, which only this connection can have changed). */
#include "store/sqlite/sqlite_private.h"

#include <stdio.h>

enum { LOG_HEADER_LEN = 32, FRAME_HEADER_LEN = 24 };

/* The greatest number in the journal; 0 if it is empty or there is none. */
static int journal_last(hf_sqlite *store, int64_t *ret_number)
{
    if (!hf_table_set_has(store->base.tables, HF_TABLE_JOURNAL)) {
        *ret_number = 0;
        return SQLITE_OK;
    }
    return hf_sqlite_step_plain(store, HF_PLAIN_JOURNAL_LAST, 0, ret_number);
}

int hf_sqlite_read_last_commit(hf_sqlite *store)
{
    int64_t journal = 0;
    int64_t mark = 0;
    int rc = journal_last(store, &journal);
    if (rc == SQLITE_OK) {
        rc = hf_sqlite_step_plain(store, HF_PLAIN_MARK_GET, 0, &mark);
    }
    if (rc == SQLITE_OK) {
        store->last_commit = (uint64_t)(journal > mark ? journal : mark);
    }
    return rc;
}

static int step(sqlite3_stmt *statement, int rc)
{
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
        (void)sqlite3_reset(statement); /* returns the error of step again */
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int step_write(hf_sqlite *store, const hf_write *write, hf_statement which)
{
    bool is_range = write->kind == HF_WRITE_DELETE_RANGE;
    sqlite3_stmt *statement = NULL;
    int rc = hf_sqlite_prepare(store, write->table, which, &statement);
    if (rc != SQLITE_OK) {
        return rc;
    }
    int at = hf_sqlite_bind_key(statement, 1, write->table, &write->key, is_range, &rc);
    if (is_range) {
        (void)hf_sqlite_bind_key(statement, at, write->table, &write->key_end, true, &rc);
    } else if (write->kind == HF_WRITE_PUT && hf_table_info_of(write->table)->has_value) {
        hf_sqlite_bind_bytes(statement, at, write->value, &rc);
    }
    return step(statement, rc);
}

/* A new row of `entry`: the key gets the next number, and the value is at the end of its table. `*ret_is_new` false: the key is
 * there. The number after the last one is kept in memory; one that a rollback gave back is not used again before the next opening. */
static int put_new_entry(hf_sqlite *store, const hf_write *write, bool *ret_is_new)
{
    sqlite3_stmt *keys = NULL;
    sqlite3_stmt *values = NULL;
    int rc = hf_sqlite_prepare(store, write->table, HF_STATEMENT_PUT_KEY, &keys);
    rc = rc == SQLITE_OK ? hf_sqlite_prepare(store, write->table, HF_STATEMENT_PUT_VALUE, &values) : rc;
    if (rc == SQLITE_OK && store->entry_next == 0) {
        int64_t last = 0;
        rc = hf_sqlite_step_plain(store, HF_PLAIN_ENTRY_LAST, 0, &last);
        store->entry_next = rc == SQLITE_OK ? last + 1 : 0;
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    hf_assert(store->entry_next > 0);
    hf_sqlite_bind_bytes(keys, 1, write->key.text, &rc);
    rc = rc == SQLITE_OK ? sqlite3_bind_int64(keys, 2, store->entry_next) : rc;
    rc = step(keys, rc);
    *ret_is_new = rc == SQLITE_OK && sqlite3_changes(store->db) > 0;
    if (*ret_is_new) {
        rc = sqlite3_bind_int64(values, 1, store->entry_next++);
        hf_sqlite_bind_bytes(values, 2, write->value, &rc);
        rc = step(values, rc);
    }
    return rc;
}

static int apply(hf_sqlite *store, const hf_write *write)
{
    static const hf_statement STATEMENT_OF[] = {
        [HF_WRITE_PUT] = HF_STATEMENT_PUT,
        [HF_WRITE_DELETE] = HF_STATEMENT_DELETE,
        [HF_WRITE_DELETE_RANGE] = HF_STATEMENT_DELETE_RANGE,
    };
    hf_assert((size_t)write->kind < HF_COUNT_OF(STATEMENT_OF));
    if (write->kind != HF_WRITE_DELETE_RANGE && !hf_sqlite_fits(write->table, &write->key)) {
        return SQLITE_OK; /* a delete of a key that cannot exist */
    }
    int rc = SQLITE_OK;
    bool is_done = false;
    if (write->table == HF_TABLE_ENTRY && write->kind == HF_WRITE_PUT) {
        rc = put_new_entry(store, write, &is_done);
    } else if (write->table == HF_TABLE_ENTRY) {
        rc = step_write(store, write,
                        write->kind == HF_WRITE_DELETE ? HF_STATEMENT_DELETE_VALUE : HF_STATEMENT_DELETE_RANGE_VALUES);
    }
    return rc == SQLITE_OK && !is_done ? step_write(store, write, STATEMENT_OF[write->kind]) : rc;
}

static int apply_all(hf_sqlite *store, const hf_store_request *request)
{
    int rc = hf_sqlite_step_plain(store, HF_PLAIN_BEGIN, 0, NULL);
    for (size_t i = 0; i < request->write_count && rc == SQLITE_OK; i++) {
        rc = apply(store, &request->writes[i]);
    }
    int64_t last = 0;
    if (rc == SQLITE_OK) {
        rc = journal_last(store, &last);
    }
    if (rc == SQLITE_OK && last > (int64_t)request->commit) {
        return SQLITE_CORRUPT; /* no commit wrote that: the pages of the table are damaged */
    }
    if (rc == SQLITE_OK && last != (int64_t)request->commit) {
        rc = hf_sqlite_step_plain(store, HF_PLAIN_MARK_PUT, (int64_t)request->commit, NULL);
    }
    return rc;
}

static void roll_back(hf_sqlite *store)
{
    if (sqlite3_get_autocommit(store->db) == 0) { /* some errors have rolled back already */
        (void)hf_sqlite_step_plain(store, HF_PLAIN_ROLLBACK, 0, NULL);
    }
    if (sqlite3_get_autocommit(store->db) == 0) {
        store->is_poisoned = true;
    }
}

int hf_sqlite_set_syncing(hf_sqlite *store, bool is_syncing)
{
    hf_assert(sqlite3_get_autocommit(store->db) != 0); /* SQLite refuses to change it within a transaction */
    store->is_syncing = false;                         /* store-S2: after a failure the next synced commit sets it */
    int rc =
        sqlite3_exec(store->db, is_syncing ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
    store->is_syncing = rc == SQLITE_OK && is_syncing;
    return rc;
}

/* Makes sure that a commit which failed because the disk is full is not in the log. False: that was not possible. */
static bool wipe_unfinished(hf_sqlite *store)
{
    sqlite3_file *log = NULL;
    sqlite3_int64 len = 0;
    int64_t at = LOG_HEADER_LEN + (int64_t)store->log_frames * (store->page_size + FRAME_HEADER_LEN);
    static const char ZEROS[FRAME_HEADER_LEN] = {0};
    hf_assert(sqlite3_get_autocommit(store->db) != 0); /* it was rolled back */
    if (!store->log_is_known) {
        return false; /* commits of an earlier process may be there and must not be touched */
    }
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) != SQLITE_OK || log == NULL ||
        log->pMethods == NULL || log->pMethods->xFileSize(log, &len) != SQLITE_OK) {
        return false;
    }
    if (len < at + FRAME_HEADER_LEN) {
        return true; /* nothing of this commit is in the log */
    }
    return log->pMethods->xWrite(log, ZEROS, FRAME_HEADER_LEN, at) == SQLITE_OK &&
           log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) == SQLITE_OK;
}

enum { LOOK_MS = 10 };

static bool is_time_to_look(hf_sqlite *store)
{
    sqlite3_int64 now = 0;
    sqlite3_vfs *vfs = store->shim.inner;
    if (vfs->xCurrentTimeInt64(vfs, &now) == SQLITE_OK && now >= store->looked_ms && now < store->looked_ms + LOOK_MS) {
        return false;
    }
    store->looked_ms = now;
    return true;
}

static bool is_file_gone(hf_sqlite *store)
{
    int moved = 0;
    (void)sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved != 0;
}

/* Whether the file or its log was moved, replaced or deleted: then the next opening would not find the commits made here. */
static bool is_gone(hf_sqlite *store)
{
    const char *name = sqlite3_db_filename(store->db, "main");
    return is_file_gone(store) || (name != NULL && hf_shim_log_is_gone(&store->shim, sqlite3_filename_wal(name)));
}

/* Moves all commits from the log, which may have no name any more, into the file, which the user can put back if it was moved. A log
 * that was put in the place of ours is deleted: it may be older, and applied to the complete file it would destroy it. */
static hf_status give_up(hf_sqlite *store, hf_op *op)
{
    int in_log = 0;
    int done = -1;
    int rc = sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_PASSIVE, &in_log, &done);
    if (rc == SQLITE_OK && done == in_log && !is_file_gone(store)) {
        const char *log = sqlite3_filename_wal(sqlite3_db_filename(store->db, "main"));
        (void)store->shim.inner->xDelete(store->shim.inner, log, 1);
    }
    store->is_poisoned = true;
    return hf_fail(
        op, HF_ERR_STORE,
        "%s or its log was moved, replaced or deleted while it was open: put back what is missing and open it "
        "again",
        sqlite3_db_filename(store->db, "main"));
}

/* The end of a transaction, after which its outcome is certain, or the store is poisoned (store-S5). */
static hf_status end_commit(hf_sqlite *store, hf_op *op)
{
    hf_assert(sqlite3_get_autocommit(store->db) == 0); /* store-S1: all writes are in one transaction */
    int rc = hf_sqlite_step_plain(store, HF_PLAIN_COMMIT, 0, NULL);
    if (rc != SQLITE_OK) {
        hf_status status = hf_sqlite_fail(op, store->db, rc, "cannot commit");
        roll_back(store);
        if (rc == SQLITE_FULL && !store->is_poisoned && wipe_unfinished(store)) {
            return status;
        }
        store->is_poisoned = true;
        return hf_fail(op, HF_ERR_STORE, "the commit may or may not have happened (%s): %sopen the database again",
                       rc == SQLITE_FULL ? "the disk is full" : sqlite3_errstr(rc),
                       rc == SQLITE_FULL ? "make room, then " : "");
    }
    if (hf_shim_settle(&store->shim) != SQLITE_OK) { /* no sync has written the end of the log */
        store->is_poisoned = true;
        return hf_fail(op, HF_ERR_STORE, "the commit may or may not have happened: open the database again");
    }
    return HF_OK;
}

hf_status hf_sqlite_commit(hf_sqlite *store, hf_store_request *request)
{
    hf_op *op = &request->op;
    if (is_time_to_look(store) && is_gone(store)) {
        return give_up(store, op);
    }
    if (request->commit != store->last_commit + 1) {
        return hf_fail(op, HF_ERR_CONFLICT, "commit %llu cannot follow commit %llu",
                       (unsigned long long)request->commit, (unsigned long long)store->last_commit);
    }
    for (size_t i = 0; i < request->write_count; i++) {
        const hf_write *write = &request->writes[i];
        if (write->kind == HF_WRITE_PUT && !hf_sqlite_fits(write->table, &write->key)) {
            char text[HF_KEY_FORMAT_LEN];
            hf_key_format(write->table, &write->key, text);
            return hf_fail(op, HF_ERR_TOO_BIG, "%s has numbers that are too big for SQLite's row number", text);
        }
    }
    hf_assert(sqlite3_get_autocommit(store->db) != 0); /* store-S1: nothing of another commit is pending */
    bool is_synced = store->durability == HF_DURABILITY_FULL && !(request->unsynced && store->is_powersafe);
    hf_assert(is_synced || store->is_powersafe); /* store-D3 */
    int rc = is_synced == store->is_syncing ? SQLITE_OK : hf_sqlite_set_syncing(store, is_synced);
    rc = rc == SQLITE_OK ? apply_all(store, request) : rc;
    if (rc != SQLITE_OK) {
        hf_status status = hf_sqlite_fail(op, store->db, rc, "cannot commit");
        roll_back(store);
        return status;
    }
    HF_TRY(end_commit(store, op));
    hf_assert(request->commit == store->last_commit + 1); /* store-S4 */
    store->last_commit = request->commit;
    store->commits++;
    return HF_OK;
}

hf_status hf_sqlite_shrink(hf_sqlite *store, hf_store_request *request)
{
    enum { PAGES_MAX = 256 };
    hf_op *op = &request->op;
    int64_t before = 0;
    int64_t after = 0;
    char vacuum[64];
    size_t pages = request->row_max > 0 && request->row_max < PAGES_MAX ? request->row_max : PAGES_MAX;
    (void)snprintf(vacuum, sizeof vacuum, "PRAGMA incremental_vacuum(%zu)", pages);
    if (is_time_to_look(store) && is_gone(store)) {
        return give_up(store, op);
    }
    int rc = hf_sqlite_step_plain(store, HF_PLAIN_FREE_COUNT, 0, &before);
    if (rc == SQLITE_OK && before == 0) {
        return HF_OK;
    }
    rc = rc == SQLITE_OK ? hf_sqlite_step_plain(store, HF_PLAIN_BEGIN, 0, NULL) : rc;
    rc = rc == SQLITE_OK ? sqlite3_exec(store->db, vacuum, NULL, NULL, NULL) : rc;
    rc = rc == SQLITE_OK ? hf_sqlite_step_plain(store, HF_PLAIN_FREE_COUNT, 0, &after) : rc;
    if (rc != SQLITE_OK) {
        hf_status status = hf_sqlite_fail(op, store->db, rc, "cannot give space back");
        roll_back(store);
        return status;
    }
    HF_TRY(end_commit(store, op));
    hf_assert(after <= before);
    request->more = after > 0 && after < before;
    return HF_OK;
}
