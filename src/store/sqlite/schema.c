/* Versions of the tables; each set of tables has its own. The version number is in the header of the file (user_version). The step to a version sets it in the same
 * transaction, so an interrupted step has changed nothing. */
#include "store/sqlite/sqlite_private.h"

int hf_schema_version(const hf_table_set *tables)
{
    hf_assert(tables->step_count > 0);
    return tables->steps[tables->step_count - 1].version;
}

static int read_version(sqlite3 *db, int *ret_version)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
        *ret_version = rc == SQLITE_ROW ? sqlite3_column_int(statement, 0) : 0;
    }
    int finalized = sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? SQLITE_OK : rc != SQLITE_OK && rc != SQLITE_DONE ? rc : finalized;
}

static hf_status run_step(hf_op *op, sqlite3 *db, const hf_schema_step *step)
{
    int version = 0;
    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db, step->sql, NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = read_version(db, &version);
        hf_assert(rc != SQLITE_OK || version == step->version); /* the script names its version */
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    }
    if (rc != SQLITE_OK) {
        hf_status status = hf_sqlite_fail(op, db, rc, "cannot bring the tables of the database up to date");
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        return status;
    }
    return HF_OK;
}

hf_status hf_schema_migrate(hf_op *op, sqlite3 *db, const hf_schema_step *steps, size_t count)
{
    hf_assert(count > 0);
    int version = 0;
    int rc = read_version(db, &version);
    if (rc != SQLITE_OK) {
        return hf_sqlite_fail(op, db, rc, "cannot read the version of the database");
    }
    if (version > steps[count - 1].version) {
        return hf_fail(op, HF_ERR_UNSUPPORTED,
                       "the database has version %d and this program knows %d at most: use a newer program", version,
                       steps[count - 1].version);
    }
    for (size_t i = 0; i < count; i++) {
        hf_assert(i == 0 || steps[i].version > steps[i - 1].version);
        if (steps[i].version > version) {
            HF_TRY(run_step(op, db, &steps[i]));
        }
    }
    return HF_OK;
}
