/* Dispatch of requests; reads; SQLite's result codes as statuses. */
#include "store/sqlite/sqlite_private.h"

static hf_status status_of(int rc)
{
    static const struct {
        int rc;           /* a primary result code */
        hf_status status; /* the status for it */
    } MAP[] = {
        {SQLITE_NOMEM, HF_ERR_NOMEM},        {SQLITE_FULL, HF_ERR_FULL},       {SQLITE_TOOBIG, HF_ERR_TOO_BIG},
        {SQLITE_CORRUPT, HF_ERR_INVALID},    {SQLITE_NOTADB, HF_ERR_INVALID},  {SQLITE_BUSY, HF_ERR_CONFLICT},
        {SQLITE_LOCKED, HF_ERR_CONFLICT},    {SQLITE_READONLY, HF_ERR_DENIED}, {SQLITE_PERM, HF_ERR_DENIED},
        {SQLITE_CANTOPEN, HF_ERR_NOT_FOUND},
    };
    for (size_t i = 0; i < HF_COUNT_OF(MAP); i++) {
        if (MAP[i].rc == (rc & 0xff)) {
            return MAP[i].status;
        }
    }
    return rc == SQLITE_IOERR_NOMEM ? HF_ERR_NOMEM : HF_ERR_IO;
}

hf_status hf_sqlite_fail(hf_op *op, sqlite3 *db, int rc, const char *what)
{
    int error = db != NULL ? sqlite3_system_errno(db) : 0;
    if (error != 0 && (rc & 0xff) == SQLITE_CANTOPEN) {
        return hf_fail_errno(op, error, "%s", what);
    }
    if (rc == SQLITE_FULL ||
        ((rc & 0xff) == SQLITE_IOERR && hf_shim_no_room(error))) { /* for example, for the index of a log */
        return hf_fail(op, HF_ERR_FULL, "%s: the disk is full: make room", what);
    }
    /* The connection's own message may be about an earlier call if this one never reached it. */
    const char *text = db != NULL && sqlite3_extended_errcode(db) == rc ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    return hf_fail(op, status_of(rc), "%s: %s (SQLite %d)", what, text, rc);
}

static hf_status fail_reading(hf_sqlite *store, hf_store_request *request, int rc)
{
    char what[64] = "cannot read ";
    const char *name = hf_table_info_of(request->table)->name;
    hf_assert(strlen(what) + strlen(name) < sizeof what);
    memcpy(what + strlen(what), name, strlen(name) + 1);
    return hf_sqlite_fail(&request->op, store->db, rc, what);
}

hf_status hf_sqlite_get(hf_sqlite *store, hf_store_request *request)
{
    if (!hf_sqlite_fits(request->table, &request->key)) {
        return HF_OK; /* a key that cannot be stored does not exist */
    }
    sqlite3_stmt *statement = NULL;
    int rc = hf_sqlite_prepare(store, request->table, HF_STATEMENT_GET, &statement);
    if (rc != SQLITE_OK) {
        return fail_reading(store, request, rc);
    }
    (void)hf_sqlite_bind_key(statement, 1, request->table, &request->key, false, &rc);
    rc = rc == SQLITE_OK ? sqlite3_step(statement) : rc;
    hf_status status = HF_OK;
    if (rc == SQLITE_ROW) {
        const void *bytes = sqlite3_column_blob(statement, 0);
        size_t len = bytes != NULL ? (size_t)sqlite3_column_bytes(statement, 0) : 0;
        request->value = hf_arena_copy(request->arena, hf_str_of_len(bytes, len));
        request->found = request->arena->status == HF_OK;
        if (!request->found) {
            status = hf_fail(&request->op, HF_ERR_NOMEM, "no memory for a value of %zu bytes", len);
        }
    } else if (rc != SQLITE_DONE) {
        status = fail_reading(store, request, rc);
    }
    (void)sqlite3_reset(statement);
    return status;
}

/* Whether a row is in the requested range, and after the row before it. If pages of the file are damaged, SQLite returns rows in any
 * order, and a walk that goes on from the last row might never end. */
static bool is_in_order(const hf_store_request *request, const hf_key *key)
{
    if (hf_key_compare(key, &request->key) < 0 || hf_key_compare(key, &request->key_end) >= 0) {
        return false;
    }
    int order = request->row_count > 0 ? hf_key_compare(key, &request->rows[request->row_count - 1].key) : 0;
    return request->row_count == 0 || (request->backwards ? order < 0 : order > 0);
}

static hf_status fail_order(hf_store_request *request, const hf_key *key)
{
    char text[HF_KEY_FORMAT_LEN];
    hf_key_format(request->table, key, text);
    return hf_fail(&request->op, HF_ERR_INVALID, "%s is not where it belongs: pages of the file are damaged", text);
}

static hf_status scan_rows(hf_sqlite *store, hf_store_request *request, sqlite3_stmt *statement)
{
    hf_scan scan = {.request = request};
    for (;;) {
        int rc = sqlite3_step(statement);
        if (rc == SQLITE_DONE) {
            return HF_OK;
        }
        if (rc != SQLITE_ROW) {
            return fail_reading(store, request, rc);
        }
        if (!hf_scan_wants(&scan)) {
            return HF_OK;
        }
        hf_key key;
        hf_str value;
        hf_sqlite_read_row(statement, request->table, &key, &value);
        if (!is_in_order(request, &key)) {
            return fail_order(request, &key);
        }
        HF_TRY(hf_scan_add(&scan, &key, value));
    }
}

hf_status hf_sqlite_scan(hf_sqlite *store, hf_store_request *request)
{
    sqlite3_stmt *statement = NULL;
    hf_statement which = request->backwards ? HF_STATEMENT_SCAN_BACKWARDS : HF_STATEMENT_SCAN;
    int rc = hf_sqlite_prepare(store, request->table, which, &statement);
    if (rc == SQLITE_OK) {
        int at = hf_sqlite_bind_key(statement, 1, request->table, &request->key, true, &rc);
        (void)hf_sqlite_bind_key(statement, at, request->table, &request->key_end, true, &rc);
    }
    hf_status status = rc == SQLITE_OK ? scan_rows(store, request, statement) : fail_reading(store, request, rc);
    (void)sqlite3_reset(statement);
    return status;
}

static hf_status dispatch(hf_sqlite *store, hf_store_request *request)
{
    hf_assert(!store->is_poisoned);                    /* store-S5 */
    hf_assert(sqlite3_get_autocommit(store->db) != 0); /* store-S3, store-S6: no request begins within a commit */
    switch (request->verb) {
    case HF_STORE_COMMIT:
        return hf_sqlite_commit(store, request);
    case HF_STORE_GET:
        return hf_sqlite_get(store, request);
    case HF_STORE_SCAN:
        return hf_sqlite_scan(store, request);
    case HF_STORE_CHECKPOINT:
        return hf_sqlite_checkpoint(store, request);
    case HF_STORE_BACKUP:
        return hf_sqlite_backup_step(store, request);
    case HF_STORE_SHRINK:
        return hf_sqlite_shrink(store, request);
    case HF_STORE_STATS:
        return hf_sqlite_stats(store, request);
    }
    return hf_fail(&request->op, HF_ERR_MISUSE, "unknown request %d", (int)request->verb);
}

hf_status hf_sqlite_execute(hf_store *base, hf_store_request *request)
{
    hf_sqlite *store = HF_CONTAINER(base, hf_sqlite, base);
    if (store->is_poisoned) {
        return hf_fail(&request->op, HF_ERR_STORE,
                       "the store failed before, and what its file holds is unknown: close it and open it again");
    }
    hf_status status = dispatch(store, request);
    if (store->shim.sync_failed) { /* even if the request succeeded: the disk may have lost earlier writes */
        store->is_poisoned = true;
        return hf_fail(&request->op, HF_ERR_STORE,
                       "the disk could not be flushed%s: %sclose the store and open it again",
                       hf_shim_no_room(store->shim.sync_error) ? ", it is full" : "",
                       hf_shim_no_room(store->shim.sync_error) ? "make room, then " : "");
    }
    hf_assert(status != HF_ERR_STORE || store->is_poisoned); /* store-S5 */
    hf_assert(status == HF_OK || request->op.status == status);
    return status;
}
