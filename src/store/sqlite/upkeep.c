/* Checkpoints and figures. */
#include "store/sqlite/sqlite_private.h"

static uint64_t log_len(const hf_sqlite *store)
{
    enum { LOG_HEADER_LEN = 32, FRAME_HEADER_LEN = 24 };
    return store->log_frames == 0
               ? 0
               : LOG_HEADER_LEN + store->log_frames * ((uint64_t)store->page_size + FRAME_HEADER_LEN);
}

/* The log is not cut afterwards but written from its beginning again: a file that keeps its length is synced without a
 * change to the file system's own tables. */
hf_status hf_sqlite_checkpoint(hf_sqlite *store, hf_store_request *request)
{
    if (store->log_frames == 0 || (!request->force && log_len(store) <= store->log_len_max)) {
        return HF_OK;
    }
    int in_log = 0;
    int moved = 0;
    int rc = sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_PASSIVE, &in_log, &moved);
    if (rc != SQLITE_OK) {
        return hf_sqlite_fail(&request->op, store->db, rc, "cannot move the log into the database");
    }
    if (in_log == moved) {
        store->log_frames = 0;
    }
    store->checkpoints++;
    return HF_OK;
}

hf_status hf_sqlite_stats(hf_sqlite *store, hf_store_request *request)
{
    int64_t page_count = 0;
    int64_t free_count = 0;
    int rc = hf_sqlite_step_plain(store, HF_PLAIN_PAGE_COUNT, 0, &page_count);
    if (rc == SQLITE_OK) {
        rc = hf_sqlite_step_plain(store, HF_PLAIN_FREE_COUNT, 0, &free_count);
    }
    hf_store_stats stats = {
        .commits = store->commits,
        .flushes = store->shim.flushes,
        .bytes_written = store->shim.bytes_written,
        .checkpoints = store->checkpoints,
        .log_len = log_len(store),
        .file_len = (uint64_t)page_count * (uint64_t)store->page_size,
        .free_len = (uint64_t)free_count * (uint64_t)store->page_size,
    };
    for (int table = 0; request->force && table < HF_TABLE_COUNT && rc == SQLITE_OK; table++) {
        sqlite3_stmt *statement = NULL;
        rc = hf_sqlite_prepare(store, (hf_table)table, HF_STATEMENT_COUNT_ROWS, &statement);
        if (rc == SQLITE_OK) {
            rc = sqlite3_step(statement);
            stats.rows[table] = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
            rc = rc == SQLITE_ROW ? SQLITE_OK : rc;
            (void)sqlite3_reset(statement);
        }
    }
    if (rc != SQLITE_OK) {
        return hf_sqlite_fail(&request->op, store->db, rc, "cannot count");
    }
    request->stats = stats;
    return HF_OK;
}
