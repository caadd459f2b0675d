/* SQL, and keys in it. Each table has one of five shapes of key, and each shape the same seven statements: they are built
 * from literals here, prepared when first used and kept.
 *
 *     number        id = a                       journal, run, name_log, block, summary; pending
 *     packed        id = a * 2^20 + b            history: 0 <= a < 2^42, 0 <= b < 2^20
 *     text          text                         meta; entry, space, alias. entry is two tables: keys with a number, and values by number
 *     text, number  text, a                      task
 *     two numbers   a, b                         name, due, inbox
 *
 * An end of a range need not fit: it is moved to the nearest packed number that is not before it. */
#include "store/sqlite/sqlite_private.h"

enum { PACKED_BITS = 20, RUN_BITS = 42 };
_Static_assert(PACKED_BITS + RUN_BITS < 63, "there is room behind the last packed number");

typedef enum key_shape { SHAPE_NUMBER, SHAPE_PACKED, SHAPE_TEXT, SHAPE_TEXT_NUMBER, SHAPE_TWO_NUMBERS } key_shape;

/* table, its key as in a comparison, first and second key as parameters, how to order it backwards, how to put a row, and what
 * follows the key among the columns of a row */
#define STATEMENTS(table, columns, first, second, backwards, put, value)                                        \
    {                                                                                                           \
        [HF_STATEMENT_PUT] = (put),                                                                             \
        [HF_STATEMENT_DELETE] = ("DELETE FROM " table " WHERE (" columns ") = (" first ")"),                    \
        [HF_STATEMENT_DELETE_RANGE] = ("DELETE FROM " table RANGE(columns, first, second)),                     \
        [HF_STATEMENT_GET] = ("SELECT " value " FROM " table " WHERE (" columns ") = (" first ")"),             \
        [HF_STATEMENT_SCAN] =                                                                                   \
            ("SELECT " columns ", " value " FROM " table RANGE(columns, first, second) " ORDER BY " columns),   \
        [HF_STATEMENT_SCAN_BACKWARDS] =                                                                         \
            ("SELECT " columns ", " value " FROM " table RANGE(columns, first, second) " ORDER BY " backwards), \
        [HF_STATEMENT_SCAN_KEYS] =                                                                              \
            ("SELECT " columns ", x'' FROM " table RANGE(columns, first, second) " ORDER BY " columns),         \
    }
#define RANGE(columns, first, second) " WHERE (" columns ") >= (" first ") AND (" columns ") < (" second ")"
#define REPLACE(table, values) "INSERT OR REPLACE INTO " table " VALUES (" values ")"
#define ONE(table, column) STATEMENTS(table, column, "?1", "?2", column " DESC", REPLACE(table, "?1, ?2"), "v")
/* A row that is replaced keeps its number, so `keys` does not change. */
#define APART(table, keys)                                                                                            \
    {                                                                                                                 \
        [HF_STATEMENT_PUT_KEY] = ("INSERT INTO " keys " VALUES (?1, ?2) ON CONFLICT (text) DO NOTHING"),              \
        [HF_STATEMENT_PUT_VALUE] = ("INSERT OR REPLACE INTO " table " VALUES (?1, ?2)"),                              \
        [HF_STATEMENT_PUT] = ("INSERT OR REPLACE INTO " table " SELECT id, ?2 FROM " keys " WHERE text = ?1"),        \
        [HF_STATEMENT_DELETE_VALUE] = ("DELETE FROM " table " WHERE id = (SELECT id FROM " keys " WHERE text = ?1)"), \
        [HF_STATEMENT_DELETE] = ("DELETE FROM " keys " WHERE text = ?1"),                                             \
        [HF_STATEMENT_DELETE_RANGE_VALUES] =                                                                          \
            ("DELETE FROM " table " WHERE id IN (SELECT id FROM " keys RANGE("text", "?1", "?2") ")"),                \
        [HF_STATEMENT_DELETE_RANGE] = ("DELETE FROM " keys RANGE("text", "?1", "?2")),                                \
        [HF_STATEMENT_GET] = ("SELECT v FROM " keys " CROSS JOIN " table " USING (id) WHERE text = ?1"),              \
        [HF_STATEMENT_SCAN] = ("SELECT text, v FROM " keys " CROSS JOIN " table                                       \
                               " USING (id)" RANGE("text", "?1", "?2") " ORDER BY text"),                             \
        [HF_STATEMENT_SCAN_BACKWARDS] = ("SELECT text, v FROM " keys " CROSS JOIN " table                             \
                                         " USING (id)" RANGE("text", "?1", "?2") " ORDER BY text DESC"),              \
        [HF_STATEMENT_SCAN_KEYS] = ("SELECT text, x'' FROM " keys RANGE("text", "?1", "?2") " ORDER BY text"),        \
    }
#define TWO(table, a, b) \
    STATEMENTS(table, a ", " b, "?1, ?2", "?3, ?4", a " DESC, " b " DESC", REPLACE(table, "?1, ?2, ?3"), "v")
#define BARE(table, a, b) \
    STATEMENTS(table, a ", " b, "?1, ?2", "?3, ?4", a " DESC, " b " DESC", REPLACE(table, "?1, ?2"), "x''")

static const struct {
    key_shape shape;                     /* how its key is bound and read */
    const char *sql[HF_STATEMENT_COUNT]; /* by statement */
} TABLES[HF_TABLE_COUNT] = {
    [HF_TABLE_META] = {SHAPE_TEXT, ONE("meta", "text")},
    [HF_TABLE_JOURNAL] = {SHAPE_NUMBER, ONE("journal", "id")},
    [HF_TABLE_RUN] = {SHAPE_NUMBER, ONE("run", "id")},
    [HF_TABLE_HISTORY] = {SHAPE_PACKED, ONE("history", "id")},
    [HF_TABLE_NAME] = {SHAPE_TWO_NUMBERS, BARE("name", "hash", "run")},
    [HF_TABLE_DUE] = {SHAPE_TWO_NUMBERS, BARE("due", "at", "run")},
    [HF_TABLE_TASK] = {SHAPE_TEXT_NUMBER, TWO("task", "queue", "id")},
    [HF_TABLE_INBOX] = {SHAPE_TWO_NUMBERS, TWO("inbox", "run", "id")},
    [HF_TABLE_NAME_LOG] = {SHAPE_NUMBER, ONE("name_log", "id")},
    [HF_TABLE_BLOCK] = {SHAPE_NUMBER, ONE("block", "id")},
    [HF_TABLE_SUMMARY] = {SHAPE_NUMBER, ONE("summary", "id")},
    [HF_TABLE_ENTRY] = {SHAPE_TEXT, APART("entry", "entry_key")},
    [HF_TABLE_SPACE] = {SHAPE_TEXT, ONE("space", "text")},
    [HF_TABLE_PENDING] = {SHAPE_NUMBER, ONE("pending", "id")},
    [HF_TABLE_ALIAS] = {SHAPE_TEXT, ONE("alias", "text")},
};

_Static_assert(HF_COUNT_OF(TABLES) == HF_TABLE_COUNT, "every table has its statements");

static const char *const PLAIN[HF_PLAIN_COUNT] = {
    [HF_PLAIN_BEGIN] = "BEGIN IMMEDIATE",
    [HF_PLAIN_COMMIT] = "COMMIT",
    [HF_PLAIN_ROLLBACK] = "ROLLBACK",
    [HF_PLAIN_ENTRY_LAST] = "SELECT max(id) FROM entry",
    [HF_PLAIN_JOURNAL_LAST] = "SELECT max(id) FROM journal",
    [HF_PLAIN_MARK_GET] = "SELECT number FROM mark WHERE id = 1",
    [HF_PLAIN_MARK_PUT] = "INSERT OR REPLACE INTO mark VALUES (1, ?1)",
    [HF_PLAIN_PAGE_COUNT] = "PRAGMA page_count",
    [HF_PLAIN_FREE_COUNT] = "PRAGMA freelist_count",
};

/* ---- Preparing ----------------------------------------------------------------------------------------------------- */

static int prepare(hf_sqlite *store, const char *sql, sqlite3_stmt **kept)
{
    return *kept != NULL ? SQLITE_OK : sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, kept, NULL);
}

int hf_sqlite_prepare(hf_sqlite *store, hf_table table, hf_statement which, sqlite3_stmt **ret_statement)
{
    hf_assert(hf_table_set_has(store->base.tables, table) && (unsigned)which < HF_STATEMENT_COUNT);
    sqlite3_stmt **kept = &store->statements[table][which];
    hf_assert(TABLES[table].sql[which] != NULL);
    int rc = prepare(store, TABLES[table].sql[which], kept);
    hf_assert(rc != SQLITE_OK || *kept != NULL);
    *ret_statement = *kept;
    return rc;
}

int hf_sqlite_prepare_plain(hf_sqlite *store, hf_plain_statement which, sqlite3_stmt **ret_statement)
{
    hf_assert((unsigned)which < HF_PLAIN_COUNT);
    int rc = prepare(store, PLAIN[which], &store->plain[which]);
    hf_assert(rc != SQLITE_OK || store->plain[which] != NULL);
    *ret_statement = store->plain[which];
    return rc;
}

void hf_sqlite_finalize_all(hf_sqlite *store)
{
    for (int i = 0; i < HF_PLAIN_COUNT; i++) {
        (void)sqlite3_finalize(store->plain[i]);
        store->plain[i] = NULL;
    }
    for (int table = 0; table < HF_TABLE_COUNT; table++) {
        for (int i = 0; i < HF_STATEMENT_COUNT; i++) {
            (void)sqlite3_finalize(store->statements[table][i]);
            store->statements[table][i] = NULL;
        }
    }
}

int hf_sqlite_step_plain(hf_sqlite *store, hf_plain_statement which, int64_t argument, int64_t *ret_number)
{
    sqlite3_stmt *statement = NULL;
    int rc = hf_sqlite_prepare_plain(store, which, &statement);
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (sqlite3_bind_parameter_count(statement) > 0) {
        rc = sqlite3_bind_int64(statement, 1, argument);
    }
    int64_t number = 0;
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
        number = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    }
    (void)sqlite3_reset(statement); /* returns the error of step again */
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        return rc;
    }
    if (ret_number != NULL) {
        *ret_number = number;
    }
    return SQLITE_OK;
}

/* ---- Keys ---------------------------------------------------------------------------------------------------------- */

bool hf_sqlite_fits(hf_table table, const hf_key *key)
{
    return TABLES[table].shape != SHAPE_PACKED ||
           (key->a >= 0 && key->a < INT64_C(1) << RUN_BITS && key->b >= 0 && key->b < INT64_C(1) << PACKED_BITS);
}

/* The least packed number whose key is not before this one. */
static int64_t pack_bound(const hf_key *key)
{
    if (key->a < 0) {
        return 0;
    }
    if (key->a >= INT64_C(1) << RUN_BITS) {
        return INT64_MAX;
    }
    hf_assert(key->a >= 0 && key->a < INT64_C(1) << RUN_BITS);
    int64_t base = key->a << PACKED_BITS;
    int64_t end = INT64_C(1) << PACKED_BITS;
    return base + (key->b < 0 ? 0 : key->b > end ? end : key->b);
}

void hf_sqlite_bind_bytes(sqlite3_stmt *statement, int at, hf_str bytes, int *rc)
{
    if (*rc == SQLITE_OK) { /* a NULL pointer would bind a NULL, which is not an empty text */
        *rc = sqlite3_bind_blob64(statement, at, bytes.len > 0 ? bytes.data : "", bytes.len, SQLITE_STATIC);
    }
}

static void bind_number(sqlite3_stmt *statement, int at, int64_t number, int *rc)
{
    if (*rc == SQLITE_OK) {
        *rc = sqlite3_bind_int64(statement, at, number);
    }
}

int hf_sqlite_bind_key(sqlite3_stmt *statement, int at, hf_table table, const hf_key *key, bool bound, int *rc)
{
    hf_assert(at == 1 || bound); /* only a range has a second key */
    switch (TABLES[table].shape) {
    case SHAPE_NUMBER:
        bind_number(statement, at, key->a, rc);
        return at + 1;
    case SHAPE_PACKED:
        hf_assert(bound || hf_sqlite_fits(table, key));
        bind_number(statement, at, pack_bound(key), rc);
        return at + 1;
    case SHAPE_TEXT:
        hf_sqlite_bind_bytes(statement, at, key->text, rc);
        return at + 1;
    case SHAPE_TEXT_NUMBER:
        hf_sqlite_bind_bytes(statement, at, key->text, rc);
        bind_number(statement, at + 1, key->a, rc);
        return at + 2;
    case SHAPE_TWO_NUMBERS:
        bind_number(statement, at, key->a, rc);
        bind_number(statement, at + 1, key->b, rc);
        return at + 2;
    }
    return at;
}

static hf_str read_bytes(sqlite3_stmt *statement, int column)
{
    const void *bytes = sqlite3_column_blob(statement, column);
    return hf_str_of_len(bytes, bytes != NULL ? (size_t)sqlite3_column_bytes(statement, column) : 0);
}

void hf_sqlite_read_row(sqlite3_stmt *statement, hf_table table, hf_key *ret_key, hf_str *ret_value)
{
    hf_key key = {0};
    int at = 1;
    switch (TABLES[table].shape) {
    case SHAPE_NUMBER:
        key.a = sqlite3_column_int64(statement, 0);
        break;
    case SHAPE_PACKED:
        key.a = sqlite3_column_int64(statement, 0) >> PACKED_BITS;
        key.b = sqlite3_column_int64(statement, 0) & ((INT64_C(1) << PACKED_BITS) - 1);
        break;
    case SHAPE_TEXT:
        key.text = read_bytes(statement, 0);
        break;
    case SHAPE_TEXT_NUMBER:
        key.text = read_bytes(statement, 0);
        key.a = sqlite3_column_int64(statement, 1);
        at = 2;
        break;
    case SHAPE_TWO_NUMBERS:
        key.a = sqlite3_column_int64(statement, 0);
        key.b = sqlite3_column_int64(statement, 1);
        at = 2;
        break;
    }
    *ret_key = key;
    *ret_value = read_bytes(statement, at);
}
