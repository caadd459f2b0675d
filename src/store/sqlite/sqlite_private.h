/* Declarations that the files of the SQLite store share. */
#ifndef HF_STORE_SQLITE_SQLITE_PRIVATE_H
#define HF_STORE_SQLITE_SQLITE_PRIVATE_H

#include "store/sqlite/sqlite.h"
#include "store/store_private.h"

#include <sqlite3.h>

#define HF_SQLITE_UNFINISHED_ID 0x48465350 /* "HFSP": a backup, of either kind of file, that is not finished */

/* ---- shim.c: a VFS that counts ------------------------------------------------------------------------------------- */

/* The part that could not be made durable while a file was opened. */
typedef enum hf_shim_trouble {
    HF_SHIM_FINE,
    HF_SHIM_LOG,
    HF_SHIM_JOURNAL,
    HF_SHIM_FOLDER,
    HF_SHIM_LINK
} hf_shim_trouble;

typedef struct hf_shim {
    sqlite3_vfs vfs;         /* what SQLite sees; registered under `name` while the shim lives */
    sqlite3_vfs *inner;      /* the real VFS */
    char name[40];           /* unique in the process */
    uint64_t flushes;        /* syncs that were asked for */
    uint64_t bytes_written;  /* of writes that succeeded */
    bool sync_failed;        /* a sync reported an error: the contents of the disk are unknown */
    int sync_error;          /* its errno; 0 = not known */
    bool is_writer;          /* logs and journals are opened by durable.c */
    int lock;                /* SQLITE_LOCK_* that SQLite has on the database */
    hf_shim_trouble trouble; /* why an opening failed, if it is about durability ... */
    int trouble_error;       /* ... and its errno; 0 = not known */
    struct shim_file *log;   /* the write-ahead log, while it is open */
    sqlite3_file *witness;   /* the same file, to check whether it still has its name; NULL = cannot be checked */
    bool had_log;            /* the log was not empty when it was opened: the store was not closed */
    bool unfinished;         /* the application id of the database is written as HF_SQLITE_UNFINISHED_ID */
    char late[65536];        /* writes to the log that are gathered: fifteen pages */
} hf_shim;

/* In front of the VFS `inner`, NULL = the default one. Fails: HF_ERR_NOT_FOUND (no such VFS), HF_ERR_NOMEM. */
hf_status hf_shim_open(hf_op *op, hf_shim *shim, const char *inner);
/* Writes the bytes that were gathered for the log, if no sync has written them. Returns an SQLite code. */
int hf_shim_settle(hf_shim *shim);
/* Whether the log was written, and `name` is now missing or the name of another file. */
bool hf_shim_log_is_gone(hf_shim *shim, const char *name);
/* To be called after the last connection was closed. Accepts a shim that was never opened (zeroed). */
void hf_shim_close(hf_shim *shim);
/* xAccess of `vfs`, which takes every error for "no"; this returns errors. An empty file counts as missing, as in SQLite. */
int hf_shim_exists(sqlite3_vfs *vfs, const char *name, int flags, int *ret_exists);
/* errno of the last call for this file that failed; 0 = not known. */
int hf_shim_errno(sqlite3_file *file);
/* Whether this errno means that there is no room: the disk is full, or a quota or the maximum file size is reached. */
bool hf_shim_no_room(int error);

/* ---- durable.c: logs and journals that survive a power cut ------------------------------------------------------------- */

/* store-D0: by options->reread, if the database at `path` was not closed. Nothing of it is open or locked yet. */
hf_status hf_sqlite_reread(hf_op *op, sqlite3_vfs *vfs, const char *path, const hf_sqlite_options *options);
/* xOpen of the inner VFS for a log or journal, to read and write. Afterwards every byte of it is durable, and its name is too, unless
 * `*ret_is_new`: then hf_shim_name_durably comes before the first write (store-D2). On failure `file` is not open, and `trouble` says
 * more if it is about durability. */
int hf_shim_open_durably(hf_shim *shim, const char *name, sqlite3_file *file, int flags, int *ret_flags,
                         bool *ret_is_new);
/* Syncs the folder of a new file. An SQLite code; a failure counts as a failed sync of the store. */
int hf_shim_name_durably(hf_shim *shim, const char *name);
/* The message for `trouble`, which is not HF_SHIM_FINE. `path`: the database; `status`: the status of the failed opening. */
hf_status hf_shim_explain(hf_op *op, const hf_shim *shim, const char *path, hf_status status);

/* ---- probe.c: checks a file before SQLite may touch it ------------------------------------------------------------ */

typedef enum hf_sqlite_probe {
    HF_PROBE_MISSING, /* no such file, or an empty one */
    HF_PROBE_OURS,    /* the header is that of a database of the wanted kind, of a version we know */
    HF_PROBE_UNSURE   /* no valid header, or a bare one, as during creation: SQLite must identify the file */
} hf_sqlite_probe;

/* Reads the first bytes of `path` and checks them. Fails as hf_sqlite_open does. */
hf_status hf_probe_file(hf_op *op, sqlite3_vfs *vfs, const char *path, const hf_table_set *tables,
                        const hf_sqlite_options *options, hf_sqlite_probe *ret_probe);
/* Whether the application id of the file is that of the wanted kind. Fails: HF_ERR_INVALID, and says what the file is. */
hf_status hf_probe_id(hf_op *op, const char *path, const hf_table_set *tables, uint32_t application_id);

/* ---- schema.c: versions --------------------------------------------------------------------------------------------- */

/* The newest version that this program knows. */
int hf_schema_version(const hf_table_set *tables);
/* Runs those that are newer than the database, each in a transaction of its own; refuses a database that is newer than the
 * last, HF_ERR_UNSUPPORTED. After an interruption the next call continues with the first step that was not finished. */
hf_status hf_schema_migrate(hf_op *op, sqlite3 *db, const hf_schema_step *steps, size_t count);

/* ---- The store ------------------------------------------------------------------------------------------------------ */

typedef enum hf_statement {
    HF_STATEMENT_PUT,
    HF_STATEMENT_DELETE,
    HF_STATEMENT_DELETE_RANGE,
    HF_STATEMENT_GET,
    HF_STATEMENT_SCAN,
    HF_STATEMENT_SCAN_BACKWARDS,
    HF_STATEMENT_SCAN_KEYS, /* the keys alone; values are empty */
    /* Of a table whose keys and values are two tables. */
    HF_STATEMENT_PUT_KEY,             /* with the number of its value, unless it is there */
    HF_STATEMENT_PUT_VALUE,           /* by its number */
    HF_STATEMENT_DELETE_VALUE,        /* before its key */
    HF_STATEMENT_DELETE_RANGE_VALUES, /* before their keys */
    HF_STATEMENT_COUNT
} hf_statement;

typedef enum hf_plain_statement {
    HF_PLAIN_BEGIN,
    HF_PLAIN_COMMIT,
    HF_PLAIN_ROLLBACK,
    HF_PLAIN_ENTRY_LAST,   /* greatest number of a value in `entry`, or NULL */
    HF_PLAIN_JOURNAL_LAST, /* greatest number in the journal, or NULL */
    HF_PLAIN_MARK_GET,
    HF_PLAIN_MARK_PUT,
    HF_PLAIN_PAGE_COUNT,
    HF_PLAIN_FREE_COUNT,
    HF_PLAIN_COUNT
} hf_plain_statement;

/* A backup under way. */
typedef struct hf_sqlite_backup {
    sqlite3_backup *copy; /* NULL = none is under way */
    sqlite3 *db;          /* the copy's connection */
    hf_shim shim;         /* marks it unfinished */
    char *path;           /* owned */
    size_t path_len;      /* bytes of it, the NUL included */
} hf_sqlite_backup;

typedef struct hf_sqlite {
    hf_store base;            /* the interface */
    hf_allocator memory;      /* for this struct and names; SQLite has its own */
    sqlite3 *db;              /* the connection */
    hf_shim shim;             /* the VFS of the connection */
    uint64_t last_commit;     /* number of the last commit that is there */
    hf_durability durability; /* of commits that do not ask for less */
    bool is_powersafe;        /* store-D3: a write that the power interrupts leaves the bytes beside it alone */
    bool is_syncing;          /* synchronous=FULL is set: COMMIT syncs the log */
    bool is_poisoned;         /* store-S5: the contents of the file are unknown */
    int page_size;            /* bytes */
    uint64_t log_frames;      /* pages in the write-ahead log that are not yet in the file, once known */
    sqlite3_int64 looked_ms;  /* when a commit last checked that file and log have their names, by SQLite's clock */
    bool log_is_known;        /* false until the first commit where an earlier process left a log */
    size_t log_len_max;       /* bytes of log from which a checkpoint is due */
    uint64_t commits;         /* since open */
    uint64_t checkpoints;     /* since open */
    hf_sqlite_backup backup;  /* the one under way */
    int64_t entry_next;       /* number of the next new value in `entry`; 0 = not known yet */
    sqlite3_stmt *plain[HF_PLAIN_COUNT]; /* prepared when first used */
    bool is_older;                       /* only read: the file lacks tables of later versions */
    sqlite3_stmt *statements[HF_TABLE_COUNT][HF_STATEMENT_COUNT]; /* the same */
} hf_sqlite;

/* ---- open.c ---------------------------------------------------------------------------------------------------------- */

typedef enum hf_sqlite_way {
    HF_SQLITE_OLD,    /* a file that is there */
    HF_SQLITE_NEW,    /* one that is created; it gets the mode 0600 */
    HF_SQLITE_AT_REST /* one that no one changes meanwhile: no lock is taken, no file created beside it */
} hf_sqlite_way;

/* sqlite3_open_v2 for any path. The caller closes `*ret_db`, also on failure. */
int hf_sqlite_connect(const char *path, int flags, hf_sqlite_way way, const char *vfs, sqlite3 **ret_db);

/* ---- statement.c: SQL, and keys in it -------------------------------------------------------------------------------- */

/* Prepares it if that has not been done. Returns a result code of SQLite. */
int hf_sqlite_prepare(hf_sqlite *store, hf_table table, hf_statement which, sqlite3_stmt **ret_statement);
int hf_sqlite_prepare_plain(hf_sqlite *store, hf_plain_statement which, sqlite3_stmt **ret_statement);
void hf_sqlite_finalize_all(hf_sqlite *store);
/* Executes a plain statement whose first column, if it has a row, is the result; NULL and no row give 0. */
int hf_sqlite_step_plain(hf_sqlite *store, hf_plain_statement which, int64_t argument, int64_t *ret_number);
/* Whether the backend can hold the key: run and first event of history share 63 bits. */
bool hf_sqlite_fits(hf_table table, const hf_key *key);
/* Binds a key to the parameters from `at` on; returns the next parameter. `bound`: the key is an end of a range and need not fit. */
int hf_sqlite_bind_key(sqlite3_stmt *statement, int at, hf_table table, const hf_key *key, bool bound, int *rc);
void hf_sqlite_bind_bytes(sqlite3_stmt *statement, int at, hf_str bytes, int *rc);
/* The key and value of the row that a scan stands on; valid until the next step. */
void hf_sqlite_read_row(sqlite3_stmt *statement, hf_table table, hf_key *ret_key, hf_str *ret_value);

/* ---- request.c, commit.c, upkeep.c ------------------------------------------------------------------------------------ */

/* The status for a result code. The message has two parts: `what`, which names the action, and SQLite's own message. */
hf_status hf_sqlite_fail(hf_op *op, sqlite3 *db, int rc, const char *what);
/* Sets whether COMMIT syncs the log; between transactions only. Returns an SQLite code. */
int hf_sqlite_set_syncing(hf_sqlite *store, bool is_syncing);
/* The number of the last commit, from the file. */
int hf_sqlite_read_last_commit(hf_sqlite *store);

hf_status hf_sqlite_execute(hf_store *base, hf_store_request *request);
/* Gives some pages of the free list back, as a transaction of its own: the tables are as before. */
hf_status hf_sqlite_shrink(hf_sqlite *store, hf_store_request *request);
hf_status hf_sqlite_commit(hf_sqlite *store, hf_store_request *request);
hf_status hf_sqlite_get(hf_sqlite *store, hf_store_request *request);
hf_status hf_sqlite_scan(hf_sqlite *store, hf_store_request *request);
hf_status hf_sqlite_checkpoint(hf_sqlite *store, hf_store_request *request);
hf_status hf_sqlite_backup_step(hf_sqlite *store, hf_store_request *request);
/* Gives up a backup that is under way and deletes its unfinished file. */
void hf_sqlite_backup_drop(hf_sqlite *store);
hf_status hf_sqlite_stats(hf_sqlite *store, hf_store_request *request);

#endif
