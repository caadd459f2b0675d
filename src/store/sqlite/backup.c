/* Backups: a copy of the database, a few pages at a time between commits, by SQLite's backup functions. The source is this
 * connection, so a commit between two steps goes into the copy as well, and the copy is the database as of the last step.
 *
 * Until the last step the header of the copy marks it as unfinished (shim.c), and hf_sqlite_open refuses it: an incomplete copy
 * that a crash left behind is not taken for a backup. The last step turns it into a database without a log and then, in one
 * transaction, writes the real application id. */
#include "store/sqlite/sqlite_private.h"

#include <stdio.h>

enum { PAGES_PER_STEP = 256 }; /* a commit waits for at most one or two megabytes */

static void drop(hf_sqlite *store, bool is_wanted)
{
    hf_sqlite_backup *backup = &store->backup;
    (void)sqlite3_backup_finish(backup->copy);
    (void)sqlite3_close(backup->db);
    if (!is_wanted && backup->shim.inner != NULL) {
        (void)backup->shim.inner->xDelete(backup->shim.inner, backup->path, 0);
    }
    hf_shim_close(&backup->shim);
    if (backup->path != NULL) {
        store->memory.release(store->memory.state, backup->path, backup->path_len);
    }
    *backup = (hf_sqlite_backup){0};
}

void hf_sqlite_backup_drop(hf_sqlite *store)
{
    if (store->backup.path != NULL) {
        drop(store, false);
    }
}

static hf_status check_free(hf_op *op, sqlite3_vfs *vfs, const char *path)
{
    int exists = 0;
    int rc = hf_shim_exists(vfs, path, SQLITE_ACCESS_EXISTS, &exists);
    if (rc != SQLITE_OK) {
        return hf_fail(op, HF_ERR_IO, "cannot look for %s: %s", path, sqlite3_errstr(rc));
    }
    return exists != 0 ? hf_fail(op, HF_ERR_EXISTS, "%s exists already: name another file", path) : HF_OK;
}

static hf_status start(hf_sqlite *store, hf_store_request *request)
{
    hf_op *op = &request->op;
    hf_sqlite_backup *backup = &store->backup;
    hf_assert(backup->path == NULL && backup->copy == NULL && backup->db == NULL);
    HF_TRY(check_free(op, store->shim.inner, request->path));
    size_t len = strlen(request->path) + 1;
    char *path = store->memory.allocate(store->memory.state, len, 1);
    if (path == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a backup");
    }
    memcpy(path, request->path, len);
    *backup = (hf_sqlite_backup){.path = path, .path_len = len};
    hf_status status = hf_shim_open(op, &backup->shim, store->shim.inner->zName);
    if (status != HF_OK) {
        drop(store, true);
        return status;
    }
    backup->shim.unfinished = true;
    backup->shim.is_writer = true;
    int rc = hf_sqlite_connect(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, HF_SQLITE_NEW, backup->shim.name,
                               &backup->db);
    if (rc == SQLITE_OK) { /* no journal: pages are written once, and the copy is marked until it is complete */
        rc = sqlite3_exec(backup->db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=OFF; PRAGMA synchronous=FULL",
                          NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        backup->copy = sqlite3_backup_init(backup->db, "main", store->db, "main");
        rc = backup->copy != NULL ? SQLITE_OK : sqlite3_extended_errcode(backup->db);
    }
    if ((rc & 0xff) == SQLITE_CANTOPEN) { /* errno belongs to SQLite's second try, to open it read-only */
        status = hf_fail(op, HF_ERR_DENIED, "cannot create %s: its folder does not exist or is not writable", path);
    } else if (rc != SQLITE_OK) {
        status = hf_sqlite_fail(op, backup->db, rc, "cannot begin the backup");
    }
    if (status != HF_OK) {
        drop(store, false);
    }
    return status;
}

/* All pages are copied. */
static int finish(hf_sqlite_backup *backup, const hf_table_set *tables)
{
    char mark[48];
    hf_assert(tables->application_id != HF_SQLITE_UNFINISHED_ID); /* an unfinished copy has another id */
    (void)snprintf(mark, sizeof mark, "PRAGMA application_id=%lu", (unsigned long)tables->application_id);
    int rc = sqlite3_backup_finish(backup->copy);
    backup->copy = NULL;
    if (rc == SQLITE_OK) { /* no log beside it, and a rollback journal for the last transaction */
        rc = sqlite3_exec(backup->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    }
    backup->shim.unfinished = false;
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(backup->db, mark, NULL, NULL, NULL);
    }
    int closed = sqlite3_close(backup->db);
    backup->db = NULL;
    rc = rc != SQLITE_OK ? rc : closed;
    /* SQLite ignores some failures, for example while it changes the journal mode. */
    return rc == SQLITE_OK && backup->shim.sync_failed ? SQLITE_IOERR_FSYNC : rc;
}

hf_status hf_sqlite_backup_step(hf_sqlite *store, hf_store_request *request)
{
    hf_op *op = &request->op;
    hf_sqlite_backup *backup = &store->backup;
    if (request->path == NULL || (backup->path != NULL && strcmp(backup->path, request->path) != 0)) {
        return hf_fail(op, HF_ERR_MISUSE, "one backup at a time: %s is under way",
                       backup->path != NULL ? backup->path : "none");
    }
    if (backup->path == NULL) {
        HF_TRY(start(store, request));
    }
    hf_assert(backup->copy != NULL && backup->shim.unfinished);
    hf_assert(sqlite3_get_autocommit(store->db) != 0); /* store-S6 */
    int rc = sqlite3_backup_step(backup->copy, PAGES_PER_STEP);
    if (rc == SQLITE_OK) {
        request->more = true;
        return HF_OK;
    }
    if (rc == SQLITE_DONE) {
        rc = finish(backup, store->base.tables);
    }
    if (rc != SQLITE_OK) {
        hf_status status = hf_sqlite_fail(op, NULL, rc, "cannot write the backup");
        drop(store, false);
        return status;
    }
    hf_assert(backup->copy == NULL && backup->db == NULL);
    drop(store, true);
    return HF_OK;
}
