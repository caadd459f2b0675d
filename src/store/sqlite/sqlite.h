/* The SQLite store: one file, one connection that reads, writes, checkpoints and backs up. */
#ifndef HF_STORE_SQLITE_SQLITE_H
#define HF_STORE_SQLITE_SQLITE_H

#include "store/store.h"

typedef enum hf_durability {
    HF_DURABILITY_FULL,  /* synchronous=FULL: a commit survives power loss */
    HF_DURABILITY_NORMAL /* synchronous=NORMAL: survives a crash of the process; power loss may cost the last commits,
                            never consistency */
} hf_durability;

typedef struct hf_sqlite_options {
    const hf_table_set *tables; /* the kind of file; NULL = the engine's */
    const char *vfs;            /* NULL = the default one */
    hf_durability durability;   /* default FULL */
    size_t cache_len;           /* bytes of page cache; 0 = 8 MiB */
    size_t log_len_max;         /* a checkpoint is due when the write-ahead log is longer; 0 = 8 MiB */
    int page_size;              /* at creation only, a power of two from 1024 to 65536; 0 = 4096 */
    bool must_exist;            /* do not create */
    bool read_only;             /* for tools: no write, no recovery that writes; works while no one has it open */
    /* Syncs a file and drops it from the cache, so that it is read from the disk from then on; HF_ERR_NOT_FOUND if there is no such
     * file. Called for files that were not closed, before anything of them is read; not with read_only. NULL = the page cache is
     * trusted. */
    hf_status (*reread)(void *state, hf_op *op, const char *path);
    void *reread_state; /* for `reread` */
    bool at_rest;       /* with read_only: there is no log, and no one opens it meanwhile. Creates no file beside it */
} hf_sqlite_options;

/* Opens the database at `path`, or creates it (mode 0600). NULL options are the defaults. Closing moves the log into the file and
 * deletes it; a poisoned store (store-S5) leaves it for the next open.
 *
 * A log that an earlier process left is read from the disk if there is a `reread`, and written to the disk again before anything of it counts (store-S7), unless read_only.
 *
 * Fails, with a message that says what is wrong and what to do, without changing the file:
 * HF_ERR_NOT_FOUND (must_exist), HF_ERR_INVALID (not a database, not ours, of the other kind, truncated, zeroed, damaged),
 * HF_ERR_UNSUPPORTED (written by a newer version), HF_ERR_DENIED (read only), HF_ERR_CONFLICT (it is open already),
 * HF_ERR_FULL (no space), HF_ERR_IO, HF_ERR_NOMEM, HF_ERR_MISUSE (an invalid page size). */
hf_status hf_sqlite_open(hf_op *op, hf_allocator memory, const char *path, const hf_sqlite_options *options,
                         hf_store **ret_store);

/* The file that `path` leads to: SQLite follows symbolic links, and the files beside a database (above all its log) lie beside
 * the file itself. `ret_path` has room for `len` bytes and gets the absolute path, or `path` unchanged if it cannot be
 * followed. True: there was a link. */
bool hf_sqlite_follow(const char *path, char *ret_path, size_t len);

/* SQLite's integrity_check: reads the whole file, calls `found` for every error. `store` must come from hf_sqlite_open.
 * Returns HF_OK if the check could be made. Fails: HF_ERR_IO, HF_ERR_NOMEM, HF_ERR_INVALID (too damaged to be checked). */
hf_status hf_sqlite_integrity(hf_op *op, hf_store *store, void (*found)(void *state, const char *sentence),
                              void *state);

#endif
