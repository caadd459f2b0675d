/* Checkpoints and figures. */
#include "store/sqlite/sqlite_private.h"

enum { ROWS_PER_STEP = 512 }; /* a commit waits for one or two megabytes of pages, as in a backup */

static uint64_t log_len(const hf_sqlite *store)
{
    enum { LOG_HEADER_LEN = 32, FRAME_HEADER_LEN = 24 };
    return store->log_frames == 0
               ? 0
               : LOG_HEADER_LEN + store->log_frames * ((uint64_t)store->page_size + FRAME_HEADER_LEN);
}

/* The log is not truncated afterwards but written again from its beginning: syncing a file that keeps its length needs no change of
 * the file system's metadata. */
hf_status hf_sqlite_checkpoint(hf_sqlite *store, hf_store_request *request)
{
    if (store->log_frames == 0 || (!request->force && log_len(store) <= store->log_len_max)) {
        return HF_OK;
    }
    hf_assert(sqlite3_get_autocommit(store->db) != 0); /* store-S6 */
    int in_log = 0;
    int moved = 0;
    int rc = sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_PASSIVE, &in_log, &moved);
    if (rc != SQLITE_OK) {
        return hf_sqlite_fail(&request->op, store->db, rc, "cannot move the log into the database");
    }
    hf_assert(moved <= in_log);
    if (in_log == moved) {
        store->log_frames = 0;
    }
    store->checkpoints++;
    return HF_OK;
}

/* Remembers the row from which counting goes on. It is after the last such row, unless pages are damaged. */
static int stop_before(hf_store_count *count, sqlite3_stmt *statement)
{
    hf_key next;
    hf_str value;
    hf_sqlite_read_row(statement, count->table, &next, &value);
    if (next.text.len > sizeof count->text || (count->is_inside && hf_key_compare(&next, &count->next) <= 0)) {
        return SQLITE_CORRUPT;
    }
    count->is_inside = true;
    count->next = next;
    if (count->next.text.len > 0) {
        memcpy(count->text, count->next.text.data, count->next.text.len);
        count->next.text.data = count->text;
    }
    return SQLITE_OK;
}

/* Rows of one table, no more than `*left`. Their values are not read, only the pages their keys are on. */
static int count_table(hf_sqlite *store, hf_store_count *count, int *left)
{
    hf_assert(hf_table_set_has(store->base.tables, count->table) && *left > 0);
    hf_key first = hf_key_first();
    hf_key end = hf_key_last();
    sqlite3_stmt *statement = NULL;
    int rc = hf_sqlite_prepare(store, count->table, HF_STATEMENT_SCAN_KEYS, &statement);
    if (rc == SQLITE_OK) {
        int at = hf_sqlite_bind_key(statement, 1, count->table, count->is_inside ? &count->next : &first, true, &rc);
        (void)hf_sqlite_bind_key(statement, at, count->table, &end, true, &rc);
    }
    rc = rc == SQLITE_OK ? sqlite3_step(statement) : rc;
    for (; rc == SQLITE_ROW && *left > 0; (*left)--) {
        count->rows[count->table]++;
        rc = sqlite3_step(statement);
    }
    if (rc == SQLITE_ROW) {
        rc = stop_before(count, statement);
    } else if (rc == SQLITE_DONE) {
        count->table = hf_table_after(store->base.tables, count->table);
        count->is_inside = false;
        rc = SQLITE_OK;
    }
    (void)sqlite3_reset(statement);
    return rc;
}

hf_status hf_sqlite_stats(hf_sqlite *store, hf_store_request *request)
{
    int64_t page_count = 0;
    int64_t free_count = 0;
    hf_store_count *count = request->count;
    int rc = hf_sqlite_step_plain(store, HF_PLAIN_PAGE_COUNT, 0, &page_count);
    if (rc == SQLITE_OK) {
        rc = hf_sqlite_step_plain(store, HF_PLAIN_FREE_COUNT, 0, &free_count);
    }
    int left = ROWS_PER_STEP;
    while (count != NULL && rc == SQLITE_OK && count->table < HF_TABLE_COUNT && left > 0) {
        rc = count_table(store, count, &left);
    }
    if (rc != SQLITE_OK) {
        return hf_sqlite_fail(&request->op, store->db, rc, "cannot count the rows");
    }
    request->stats = (hf_store_stats){
        .commits = store->commits,
        .flushes = store->shim.flushes,
        .bytes_written = store->shim.bytes_written,
        .checkpoints = store->checkpoints,
        .log_len = log_len(store),
        .file_len = (uint64_t)page_count * (uint64_t)store->page_size,
        .free_len = (uint64_t)free_count * (uint64_t)store->page_size,
    };
    if (count != NULL) {
        memcpy(request->stats.rows, count->rows, sizeof count->rows);
    }
    request->more = count != NULL && count->table < HF_TABLE_COUNT;
    return HF_OK;
}
