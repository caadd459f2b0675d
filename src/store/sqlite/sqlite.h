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
    const char *vfs;          /* NULL = the default one */
    hf_durability durability; /* FULL unless asked */
    size_t cache_len;         /* bytes of page cache; 0 = 8 MiB */
    size_t log_len_max;       /* a checkpoint is due when the write-ahead log is longer; 0 = chosen by measurement */
    int page_size;            /* at creation only; 0 = chosen by measurement */
    bool must_exist;          /* do not create */
    bool read_only;           /* for tools: no write, no recovery that writes */
} hf_sqlite_options;

/* Fails, with a sentence that says what is wrong and what to do, without touching the file:
 * HF_ERR_NOT_FOUND (must_exist), HF_ERR_INVALID (not a database, not ours, truncated, zeroed, damaged),
 * HF_ERR_UNSUPPORTED (written by a newer version), HF_ERR_DENIED (read only), HF_ERR_CONFLICT (somebody has it open),
 * HF_ERR_FULL (no space), HF_ERR_IO, HF_ERR_NOMEM. */
hf_status hf_sqlite_open(hf_op *op, hf_allocator memory, const char *path, const hf_sqlite_options *options,
                         hf_store **ret_store);

#endif
