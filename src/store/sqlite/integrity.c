/* SQLite's own check of its file: pages, indexes, free list. */
#include "store/sqlite/sqlite_private.h"

hf_status hf_sqlite_integrity(hf_op *op, hf_store *base, void (*found)(void *state, const char *sentence), void *state)
{
    hf_sqlite *store = HF_CONTAINER(base, hf_sqlite, base);
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(store->db, "PRAGMA integrity_check(100)", -1, &statement, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        if (text != NULL && strcmp(text, "ok") != 0) {
            found(state, text);
        }
        rc = SQLITE_OK;
    }
    (void)sqlite3_finalize(statement);
    return rc == SQLITE_DONE ? HF_OK : hf_sqlite_fail(op, store->db, rc, "cannot check the file");
}
