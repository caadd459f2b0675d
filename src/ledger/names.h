/* Which runs have this workflow id? The index from names to runs, in two parts.
 *
 * A name is namespace and workflow id. In the index it is a number, a keyed hash of it, beside the number of the run: sixteen
 * bytes. Two names may have the same hash, so whoever follows the index compares the name with the run's own.
 *
 * New names come in no order, and each would dirty a page of the table by itself. They are gathered in memory, in buckets by hash. A sweep
 * over the buckets moves them to the table, neighbours together, as fast as new ones come. Until then they are in the journal (the commit
 * that writes a run's first row holds its name), and when that part of the journal is cut, in the table name_log, one row per cut.
 *
 * ledger-N1  A run that has a row has its name in the table or in memory, and in the latter case in the journal or in name_log too.
 * ledger-N2  Names of one workflow id come in the order of its runs: those in memory are newer than those in the table. */
#ifndef HF_LEDGER_NAMES_H
#define HF_LEDGER_NAMES_H

#include "base/siphash.h"
#include "history/limits.h"
#include "ledger/writes.h"

#define HF_NAME_BITS 62
#define HF_NAME_BUCKET_BITS 10
#define HF_NAME_BUCKETS (1u << HF_NAME_BUCKET_BITS)
#define HF_NAME_TEXT_LEN (2 * HF_ID_LEN_MAX + 1)

typedef struct hf_name_entry {
    int64_t hash;
    int64_t run;
} hf_name_entry;

/* A row of name_log. */
typedef struct hf_name_row {
    uint64_t commit; /* its key: the commit that wrote it, later than those of its names */
    size_t count;    /* of its names */
} hf_name_row;

/* A name whose only copy on disk is the journal. */
typedef struct hf_name_fresh {
    hf_name_entry entry;
    uint64_t commit; /* that holds it */
} hf_name_fresh;

typedef struct hf_name_bucket {
    HF_VEC(hf_name_entry) entries; /* by hash, then run */
} hf_name_bucket;

typedef struct hf_names {
    hf_run_memory *memory;        /* of everything below */
    const unsigned char *mac_key; /* of the store; borrowed */
    unsigned bits_off;            /* of the hash, for tests: many names then have the same one */
    hf_name_bucket buckets[HF_NAME_BUCKETS];
    size_t count;                /* in all buckets */
    size_t sweep;                /* the bucket that is written next */
    uint64_t sweep_commit;       /* names of earlier commits are in the table when the sweep comes to its end */
    HF_VEC(hf_name_row) log;     /* name_log as it will be after the open batch */
    size_t log_count;            /* names in it: the journal says so too, lest a row be lost */
    HF_VEC(hf_name_fresh) fresh; /* by commit */
} hf_names;

void hf_names_init(hf_names *names, hf_run_memory *memory, const unsigned char *mac_key);
void hf_names_deinit(hf_names *names);

/* Namespace, 0x1f, workflow id. Fails: HF_ERR_TOO_BIG. */
hf_status hf_name_text(hf_str namespace_, hf_str workflow_id, char text[HF_NAME_TEXT_LEN], size_t *ret_len);
/* Of such a text; below 2^62. */
int64_t hf_name_hash(const hf_names *names, hf_str text);

/* A run gets its first row with this commit. */
void hf_names_add(hf_names *names, int64_t hash, int64_t run, uint64_t commit);
/* The name is in name_log or in a journal row already: in memory only. */
void hf_names_restore(hf_names *names, int64_t hash, int64_t run);
/* The greatest run below `below` with this hash that is not in the table yet; 0 = none. */
int64_t hf_names_below(const hf_names *names, int64_t hash, int64_t below);

/* For a commit: names leave memory for their table while there are more than `count_max`. True: a round over the buckets has ended. */
bool hf_names_sweep(hf_names *names, hf_writes *writes, uint64_t commit, size_t count_max);
/* The names that this commit brings, as bytes for its journal row. */
void hf_names_put(const hf_names *names, uint64_t commit, hf_buf *out);
/* Commits before `keep` leave the journal with this commit. */
void hf_names_trim(hf_names *names, hf_writes *writes, uint64_t commit, uint64_t keep);

/* The names of a journal row go to memory and are known to be in that row only. `visit` sees each one first; it may be NULL.
 * Fails: HF_ERR_INVALID. */
typedef void hf_name_visit(void *arg, const hf_name_entry *entry);
hf_status hf_names_read(hf_op *op, hf_names *names, uint64_t commit, hf_str bytes, hf_name_visit *visit, void *arg);
/* All of name_log. `logged`: as many names as the journal says. Fails: HF_ERR_INVALID, HF_ERR_NOMEM, as the store does. */
hf_status hf_names_read_log(hf_op *op, hf_names *names, hf_store *store, uint64_t logged);

/* The next entry of a journal row or a row of name_log. False: there are no more, or, when something is left, the next one is none. */
bool hf_names_next(hf_str *rest, hf_name_entry *ret_entry);

#endif
