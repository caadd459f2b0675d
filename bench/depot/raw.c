/* SQLite without a depot: the same keys and bytes with the same settings, in a table as one would make it, by upserts. */
#include "depot/parts.h"

static void check(const raw *one, int rc)
{
    if (rc != SQLITE_OK) {
        fail(sqlite3_errmsg(one->db));
    }
}

static sqlite3_stmt *prepare(raw *one, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    check(one, sqlite3_prepare_v2(one->db, sql, -1, &statement, NULL));
    return statement;
}

void raw_open(raw *one, const char *path, bool is_synced)
{
    *one = (raw){.db = NULL};
    if (sqlite3_open(path, &one->db) != SQLITE_OK) {
        fail("SQLite cannot open a file");
    }
    check(one, sqlite3_exec(one->db,
                            "PRAGMA page_size=4096; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA locking_mode=EXCLUSIVE;"
                            "PRAGMA journal_mode=WAL; PRAGMA cache_size=-8193; PRAGMA secure_delete=OFF;"
                            "PRAGMA wal_autocheckpoint=2048;" /* 8 MiB, as the depot */
                            "CREATE TABLE IF NOT EXISTS entry (text BLOB NOT NULL UNIQUE, v BLOB NOT NULL);"
                            "CREATE TABLE IF NOT EXISTS pending (id INTEGER PRIMARY KEY, v BLOB NOT NULL)",
                            NULL, NULL, NULL));
    check(one,
          sqlite3_exec(one->db, is_synced ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", NULL, NULL, NULL));
    one->begin = prepare(one, "BEGIN IMMEDIATE");
    one->commit = prepare(one, "COMMIT");
    one->entry = prepare(one, "INSERT INTO entry (text, v) VALUES (?1, ?2) ON CONFLICT (text) DO UPDATE SET v = ?2");
    one->pending = prepare(one, "INSERT OR REPLACE INTO pending (id, v) VALUES (?1, ?2)");
    one->select = prepare(one, "SELECT v FROM entry WHERE text = ?1");
}

void raw_close(raw *one)
{
    sqlite3_stmt *const statements[] = {one->begin, one->commit, one->entry, one->pending, one->select};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        (void)sqlite3_finalize(statements[i]);
    }
    check(one, sqlite3_close(one->db));
}

void raw_step(raw *one, sqlite3_stmt *statement)
{
    if (sqlite3_step(statement) != SQLITE_DONE) {
        fail(sqlite3_errmsg(one->db));
    }
    (void)sqlite3_reset(statement);
}

static const char PREFIX[] = "bench\0user"; /* with its last NUL, as a depot packs the key */

static void bind_key(raw *one, sqlite3_stmt *statement, uint32_t number, char ret_bytes[sizeof PREFIX + ID_LEN])
{
    id place;
    (void)key_of(&place, "bench", number);
    memcpy(ret_bytes, PREFIX, sizeof PREFIX);
    memcpy(ret_bytes + sizeof PREFIX, place.text, ID_LEN);
    check(one, sqlite3_bind_blob(statement, 1, ret_bytes, (int)sizeof PREFIX + ID_LEN, SQLITE_STATIC));
}

static void bind_record(raw *one, sqlite3_stmt *statement, int record_len)
{
    static const char RECORD[4096] = {1};
    if (record_len > (int)sizeof RECORD) {
        fail("a record is too long");
    }
    check(one, sqlite3_bind_blob(statement, 2, RECORD, record_len, SQLITE_STATIC));
}

void raw_put_entry(raw *one, uint32_t number, int record_len)
{
    char key[sizeof PREFIX + ID_LEN];
    bind_key(one, one->entry, number, key);
    bind_record(one, one->entry, record_len);
    raw_step(one, one->entry);
}

void raw_put_pending(raw *one, int64_t sequence, int record_len)
{
    check(one, sqlite3_bind_int64(one->pending, 1, sequence));
    bind_record(one, one->pending, record_len);
    raw_step(one, one->pending);
}

bool raw_get(raw *one, uint32_t number)
{
    char key[sizeof PREFIX + ID_LEN];
    bind_key(one, one->select, number, key);
    bool is_there = sqlite3_step(one->select) == SQLITE_ROW;
    if (is_there) {
        const volatile char *bytes = sqlite3_column_blob(one->select, 0);
        is_there = bytes != NULL && sqlite3_column_bytes(one->select, 0) > 0;
    }
    (void)sqlite3_reset(one->select);
    return is_there;
}

int raw_record_len(const char *path, const char *table)
{
    raw one = {.db = NULL};
    char sql[128];
    if (sqlite3_open(path, &one.db) != SQLITE_OK) {
        fail("SQLite cannot open a file");
    }
    (void)snprintf(sql, sizeof sql, "SELECT CAST(avg(length(v)) AS INT) FROM %s", table);
    sqlite3_stmt *statement = prepare(&one, sql);
    int len = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int(statement, 0) : 0;
    (void)sqlite3_finalize(statement);
    check(&one, sqlite3_close(one.db));
    return len;
}
