/* hf_store: ordered tables of bytes with one atomic commit. The contract that every backend meets, checked by one suite
 * (tests/unit/store).
 *
 * A backend is an ordered map per table. It knows nothing of runs and events: the engine writes keys and records with
 * checksums (record.c) and reads them back. So backends are small, equal inputs give equal tables in all of them (I21), and
 * one place decides what is written when: the engine's spill.c.
 *
 * There are two kinds of files, each with its own set of tables (hf_table_set). A handle has one set. The engine's:
 *
 *     table     key                        value                                             written
 *     meta      text                       format, MAC key, incarnation                      at open, rarely
 *     journal   a = commit                 all changes of one commit                         with every commit
 *     run       a = run                    state of a run                                    when it goes cold or closes
 *     history   a = run, b = first event   consecutive events of a run                       with its state
 *               a = run, b >= 2^18         records of its stream                             with its state
 *               a = run, b >= 2^19         a large piece of its state                        when that changes
 *     name      a = hash, b = run          nothing: a run that may have the name             in batches, after its state
 *     due       a = time ns, b = run       nothing: the earliest deadline of the run         with its state
 *     task      text = queue, a = order    tasks that wait, of a run that is cold            with its state
 *     inbox     a = run, b = order         a message from another shard                      never: there is only one shard
 *     name_log  a = commit                 names on their way to their table                 when the journal is cut
 *     block     a = first run              what filters ask of runs that have ended          by housekeeping, later
 *     summary   a = first run              what the runs of that block have in common        with the block
 *
 * The depot's, where keys are arbitrary bytes (up to 1,210 of them):
 *
 *     meta      text                       format, generation of the whole depot             at open, rarely
 *     entry     text = key                 a fetched or written value, or its absence        when it lands or is put
 *     space     text = namespace           generation of the namespace                       when it is invalidated
 *     pending   a = write                  a write that the origin has not acknowledged      with its entry
 *     alias     text = provisional key     the key that the origin gave instead              with the acknowledgement
 *
 * Keys are compared by text (bytes), then a, then b; parts that a table does not use are empty and 0 in a put or delete,
 * and do not count in a range. a and b of a stored key are below INT64_MAX. The upper bits of run numbers hold the shard: on
 * SQLite it is 0, so run numbers are small.
 *
 * store-S1  A commit is atomic: after a crash all of its writes are there or none.
 * store-S2  When a synced commit returns HF_OK its writes survive a crash (durability full), and so do those of all earlier ones. The writes
 *     of an unsynced commit survive a crash of the process, and a power cut from the next synced commit, checkpoint or close on.
 *     A power cut before that may take it, with all commits after it: commits are lost from the end only.
 * store-S3  Requests are executed one at a time in the order submitted: a read sees every earlier commit and no later one.
 * store-S4  A commit names its number, one more than the last (the first is 1); a backend that expects another number
 *     refuses with HF_ERR_CONFLICT and changes nothing: there is another writer. Numbers survive a close, also when the journal is
 *     empty.
 * store-S5  A failed commit changed nothing, unless the status is HF_ERR_STORE: then the outcome is unknown, and every later request
 *     fails with HF_ERR_STORE until the store is closed and opened again.
 * store-S6  Checkpoint, backup and shrinking run between commits, on the connection that commits.
 * store-S7  What a store shows after it was opened is durable, whatever durability was asked for: commits that an earlier process left
 *     only in the page cache, or that did not reach the disk because a sync failed, are not shown before they are on the disk. */
#ifndef HF_STORE_STORE_H
#define HF_STORE_STORE_H

#include "base/arena.h"
#include "base/env.h"
#include "base/list.h"
#include "base/op.h"

typedef enum hf_table {
    HF_TABLE_META,
    HF_TABLE_JOURNAL,
    HF_TABLE_RUN,
    HF_TABLE_HISTORY,
    HF_TABLE_NAME,
    HF_TABLE_DUE,
    HF_TABLE_TASK,
    HF_TABLE_INBOX,
    HF_TABLE_NAME_LOG,
    HF_TABLE_BLOCK,
    HF_TABLE_SUMMARY,
    HF_TABLE_ENTRY,
    HF_TABLE_SPACE,
    HF_TABLE_PENDING,
    HF_TABLE_ALIAS,
    HF_TABLE_COUNT /* of all sets; records carry the numbers, so new tables come last */
} hf_table;

/* A script that makes or changes the tables of an SQLite file. */
typedef struct hf_schema_step {
    int version;     /* that the script ends with; ascending */
    const char *sql; /* run in one transaction */
} hf_schema_step;

/* The tables of one kind of file. */
typedef struct hf_table_set {
    const char *name;            /* "engine", "depot" */
    const hf_table *tables;      /* in ascending order */
    size_t count;                /* of them */
    uint32_t bits;               /* the same: bit t is set if table t is among them */
    uint32_t application_id;     /* of SQLite files: tells the kinds apart */
    const hf_schema_step *steps; /* to the newest version that this program knows */
    size_t step_count;           /* of them, at least 1 */
    int version_readable;        /* files from this version on can be opened read-only as they are ... */
    const char *later_tables;    /* ... with these tables, which later versions have, as empty ones */
    const char *is_called;       /* "a depot's file", in messages */
    const char *opened_with;     /* "hf_depot_open", in messages */
    const char *looked_at_with;  /* "holdfast depot stats", in messages */
    const char *shared_with;     /* how a second program works on it, in messages; "" = it cannot */
} hf_table_set;

extern const hf_table_set hf_engine_tables; /* META to SUMMARY */
extern const hf_table_set hf_depot_tables;  /* META, ENTRY, SPACE, PENDING, ALIAS: no journal */

/* Accepts any number for a table. */
static inline bool hf_table_set_has(const hf_table_set *set, hf_table table)
{
    return (unsigned)table < HF_TABLE_COUNT && (set->bits >> (unsigned)table & 1) != 0;
}
/* The first table of the set that comes after this one; HF_TABLE_COUNT if there is none. */
hf_table hf_table_after(const hf_table_set *set, hf_table table);
/* The set of files with this application id; NULL if it is unknown. */
const hf_table_set *hf_table_set_of_id(uint32_t application_id);

/* Bytes of a key's text: a namespace, a separator and an id, each as long as an id may be, with room. */
#define HF_KEY_TEXT_LEN_MAX 3000

typedef struct hf_key {
    hf_str text; /* names and queues; borrowed */
    int64_t a;   /* first number */
    int64_t b;   /* second number */
} hf_key;

typedef enum hf_write_kind {
    HF_WRITE_PUT,         /* inserts or replaces */
    HF_WRITE_DELETE,      /* one key; not an error if it does not exist */
    HF_WRITE_DELETE_RANGE /* key <= k < key_end */
} hf_write_kind;

typedef struct hf_write {
    hf_table table;     /* table to change */
    hf_write_kind kind; /* action */
    hf_key key;         /* of a range: first, inclusive */
    hf_key key_end;     /* of a range: end, exclusive */
    hf_str value;       /* of a put */
} hf_write;

typedef struct hf_row {
    hf_key key;   /* its text lies in the arena of the scan */
    hf_str value; /* the same */
} hf_row;

typedef enum hf_store_verb {
    HF_STORE_COMMIT,
    HF_STORE_GET,
    HF_STORE_SCAN,
    HF_STORE_CHECKPOINT, /* moves the log into the file, if the log is long enough or `force` */
    HF_STORE_BACKUP,     /* a consistent copy at `path`, in steps between commits; `more` = call again */
    HF_STORE_SHRINK,     /* gives pages on the free list back, some at a time between commits; `more` = call again */
    HF_STORE_STATS       /* figures; with `count` the rows too, in steps between commits; `more` = call again */
} hf_store_verb;

typedef struct hf_store_stats {
    uint64_t commits;              /* since open */
    uint64_t flushes;              /* syncs of any file since open */
    uint64_t bytes_written;        /* to any file since open, checkpoints included */
    uint64_t checkpoints;          /* since open */
    uint64_t log_len;              /* bytes of the write-ahead log now */
    uint64_t file_len;             /* bytes of the file now */
    uint64_t free_len;             /* of those, on the free list */
    uint64_t rows[HF_TABLE_COUNT]; /* counted only when asked for: it reads the tables; see hf_store_count. 0 for
                                      tables outside of the store's set */
} hf_store_stats;

/* The progress of counting rows; all zero before the first step. A row that is there all the time is counted once. Whether a row that
 * is written or deleted meanwhile is counted depends on whether its place was passed already. So the counts are those of one moment
 * only if nothing is written. */
typedef struct hf_store_count {
    hf_table table;                 /* of the store's set: this one is being counted; HF_TABLE_COUNT = all are done */
    bool is_inside;                 /* part of it was counted; counting goes on ... */
    hf_key next;                    /* ... from here */
    char text[HF_KEY_TEXT_LEN_MAX]; /* of that key */
    uint64_t rows[HF_TABLE_COUNT];
} hf_store_count;

typedef struct hf_store hf_store;
typedef struct hf_store_request hf_store_request;
struct hf_store_request {
    hf_node link; /* of the queue that holds it */
    hf_store_verb verb;

    uint64_t commit;        /* COMMIT: its number */
    const hf_write *writes; /* COMMIT: in this order, later ones win; borrowed until done */
    size_t write_count;     /* COMMIT */
    bool unsynced;          /* COMMIT: need not survive a power cut until the next synced one (store-S2) */

    hf_table table;        /* GET, SCAN */
    hf_key key;            /* GET; SCAN: first key, inclusive. Borrowed until done */
    hf_key key_end;        /* SCAN: end, exclusive */
    bool backwards;        /* SCAN: from the end of the range */
    size_t row_max;        /* SCAN: rows at most; 0 = no bound */
    size_t len_max;        /* SCAN: stops after the row with which texts and values reach this length; 0 = no bound */
    hf_arena *arena;       /* GET, SCAN: for the results; the requester's, untouched until done */
    const char *path;      /* BACKUP: where to */
    bool force;            /* CHECKPOINT: also a short log */
    hf_store_count *count; /* STATS: count the rows, and keep the progress here; NULL = do not count */

    /* Results. */
    hf_status status;     /* of the request */
    bool found;           /* GET */
    hf_str value;         /* GET, in the arena */
    hf_row *rows;         /* SCAN, in the arena, in the order of the scan */
    size_t row_count;     /* SCAN */
    bool more;            /* SCAN: the range has more rows; BACKUP, SHRINK, STATS: not finished */
    hf_store_stats stats; /* STATS */
    hf_op op;             /* the message of a failure */

    /* GET, SCAN: called with the results, on the thread that executed the request and before anybody else sees them; NULL = not called. It may
     * ask the store for more. For work that belongs on that thread. */
    void (*look)(hf_store *store, hf_store_request *request);
    /* GET, SCAN: called by the queue's thread behind a step of longer work, if nothing else waits for that thread. True = the request was made ready for
     * the next step, which is executed at once, and `done` is called later; false = it is done. NULL = false. */
    bool (*goes_on)(hf_store_request *request);
    void (*done)(hf_store_request *request); /* called by hf_store_queue; not used by execute */
    void *state;                             /* the requester's own */
    void *owner;                             /* the submitter's, for `done` */
};

typedef struct hf_store_ops {
    const char *name; /* "memory", "sqlite" */
    /* Executes one request and returns its status. The caller has cleared its results and checked its arguments. May block; one
     * thread at a time. */
    hf_status (*execute)(hf_store *store, hf_store_request *request);
    /* Number of the last commit. */
    uint64_t (*last_commit)(hf_store *store);
    void (*close)(hf_store *store);
} hf_store_ops;

/* Backends embed this as their first member. */
struct hf_store {
    const hf_store_ops *ops;
    const hf_table_set *tables; /* that it has; NULL = the engine's. Read it with hf_store_tables */
    bool was_left_open;         /* the last process that had it open did not close it, as far as the backend can tell */
};

static inline const hf_table_set *hf_store_tables(const hf_store *store)
{
    return store->tables != NULL ? store->tables : &hf_engine_tables;
}

/* Executes one request and sets its results. May block; one thread at a time.
 * Fails, as request->status: HF_ERR_CONFLICT (store-S4), HF_ERR_STORE (store-S5), HF_ERR_IO, HF_ERR_FULL, HF_ERR_NOMEM, HF_ERR_TOO_BIG (a
 * value the backend cannot hold), HF_ERR_MISUSE (a key that breaks the rules above, a table outside of the
 * store's set, a journal row of a later commit), HF_ERR_UNSUPPORTED (no backups here), HF_ERR_EXISTS (a backup's file). */
void hf_store_execute(hf_store *store, hf_store_request *request);

/* hf_store_execute, with the message of a failure in `op`. Fails: as above. */
hf_status hf_store_ask(hf_op *op, hf_store *store, hf_store_request *request);

#define HF_STORE_PAGE_LEN \
    (1u << 20) /* bytes that a walk reads at once: enough that a page costs little, and little memory */

/* Called for each row of a walk. The row and the contents of `arena` are valid until the call returns. It may use the store, and change
 * the table: rows that it adds after this one may or may not be visited. Any status but HF_OK ends the walk. */
typedef hf_status hf_row_visit(hf_op *op, void *arg, const hf_row *row, hf_arena *arena);
/* Visits the rows of a table with from <= key < to, in order, reading HF_STORE_PAGE_LEN bytes at a time (more only for a row that
 * is longer). NULL for `from` is the beginning of the table, for `to` its end. Works for every table of the set.
 * Fails: the visitor's status; HF_ERR_INVALID (a key that no store writes), and as hf_store_execute. */
hf_status hf_store_each_row(hf_op *op, hf_store *store, hf_allocator memory, hf_table table, const hf_key *from,
                            const hf_key *to, hf_row_visit *visit, void *arg);

static inline void hf_store_close(hf_store *store)
{
    if (store != NULL) {
        store->ops->close(store);
    }
}

int hf_key_compare(const hf_key *a, const hf_key *b);
/* Keys before and after every other key: for ranges without a beginning or an end. */
hf_key hf_key_first(void);
hf_key hf_key_last(void);
/* "history", and which parts of a key a table uses. */
typedef struct hf_table_info {
    const char *name; /* as above */
    bool has_text;    /* uses key.text */
    bool has_a;       /* uses key.a */
    bool has_b;       /* uses key.b */
    bool has_value;   /* its rows have values; those of `due` and `name` are empty */
    bool is_short;    /* its records have the short header */
} hf_table_info;
const hf_table_info *hf_table_info_of(hf_table table);

/* A hash over all rows of all tables of the store's set: equal contents give equal hashes in every backend. */
hf_status hf_store_hash(hf_op *op, hf_store *store, hf_allocator memory, uint64_t *ret_hash);

/* ---- Records: the header of every value ----------------------------------------------------------------------- */

/* version u8, table u8, zero u16, length u32, CRC32C u32 (little endian; over table, key and body: a record that lies under
 * another key is bad too), body. */
#define HF_RECORD_HEADER_LEN 12
#define HF_RECORD_VERSION 1
/* The CRC32C alone, for tables with many short values: the backend knows the length, the checksum covers the table, and the body says its version. */
#define HF_RECORD_SHORT_LEN 4

static inline size_t hf_record_header_len(hf_table table)
{
    return hf_table_info_of(table)->is_short ? HF_RECORD_SHORT_LEN : HF_RECORD_HEADER_LEN;
}

/* Writes the header for a body of `body_len` bytes that follows at header + hf_record_header_len(table). */
void hf_record_seal(hf_table table, const hf_key *key, char *header, size_t body_len);
/* The body, within `value`. Fails: HF_ERR_INVALID with a message that names the record. */
hf_status hf_record_open(hf_op *op, hf_table table, const hf_key *key, hf_str value, hf_str *ret_body);

/* ---- A thread in front of a store --------------------------------------------------------------------------------- */

typedef struct hf_store_queue hf_store_queue;

/* Takes the store, also on failure. Requests are executed on a thread of the environment, in order; done is called there
 * and may free the request, or submit it again. Fails: HF_ERR_NOMEM, HF_ERR_LIMIT (no thread can be started). */
hf_status hf_store_queue_open(hf_op *op, hf_env *env, hf_store *store, hf_store_queue **ret_queue);
/* Takes the request until its done is called. Any thread; never waits. */
void hf_store_queue_submit(hf_store_queue *queue, hf_store_request *request);
/* Finishes all submitted requests, ends the thread and closes the store. Must not be called from done. */
void hf_store_queue_close(hf_store_queue *queue);

#endif
