/* Which runs have this workflow id? The index from names to runs, in two parts.
 *
 * A name is namespace and workflow id. In the index it is a number, a keyed hash of it, beside the number of the run: sixteen
 * bytes. Two names may have the same hash, so a reader of the index must compare the name with the run's own.
 *
 * New names come in random order, and each would dirty a page of the table by itself. They are gathered in memory, in buckets by hash. A sweep
 * over the buckets moves them to the table, neighbours together, as fast as new ones come. Until then they are in the journal (the commit
 * that writes a run's first row holds its name), and when that part of the journal is cut, in the table name_log, one row per cut.
 *
 * A name goes in the same way: when its run is deleted, or when the run loses it, an entry with the bit HF_NAME_GONE takes its place. It is
 * gathered, written to the journal and to name_log like others, and swept as the deletion of a row. Once gone, a name never comes back: run
 * numbers are used once. So the order in which journal and name_log are read does not matter.
 *
 * ledger-N1  A run that has a row and a name (hf_run.is_nameless) has that name in the table or in memory, and in the latter case in the
 *     journal or in name_log too. A name that is gone in memory counts for nothing, whether the table still has it or not. No other run
 *     has a name.
 * ledger-N2  Names of one workflow id come in the order of its runs: those in memory that are not gone are newer than those in the table, or
 *     the same. */
#ifndef HF_LEDGER_NAMES_H
#define HF_LEDGER_NAMES_H

#include "base/siphash.h"
#include "history/limits.h"
#include "ledger/writes.h"

#define HF_NAME_BITS 62
#define HF_NAME_BUCKET_BITS 10
#define HF_NAME_BUCKETS (1u << HF_NAME_BUCKET_BITS)
#define HF_NAME_TEXT_LEN (2 * HF_ID_LEN_MAX + 1)

/* A bit of the hash of an entry: the name is gone. An earlier version takes such an entry for damage. */
#define HF_NAME_GONE (INT64_C(1) << HF_NAME_BITS)

typedef struct hf_name_entry {
    int64_t hash; /* with HF_NAME_GONE, if it is */
    int64_t run;
} hf_name_entry;

static inline bool hf_name_is_gone(const hf_name_entry *entry)
{
    return (entry->hash & HF_NAME_GONE) != 0;
}

/* Without the bit. */
static inline int64_t hf_name_entry_hash(const hf_name_entry *entry)
{
    return entry->hash & ~HF_NAME_GONE;
}

/* A row of name_log. */
typedef struct hf_name_row {
    uint64_t commit; /* its key: the commit that wrote it, later than those of its names */
    size_t count;    /* of its names */
} hf_name_row;

/* A name whose only copy on disk is the journal. */
typedef struct hf_name_fresh {
    hf_name_entry entry;
    uint64_t commit; /* the commit that holds it */
} hf_name_fresh;

typedef struct hf_name_bucket {
    HF_VEC(hf_name_entry) entries; /* by hash, then run */
} hf_name_bucket;

typedef struct hf_names {
    hf_run_memory *memory;        /* of everything below */
    const unsigned char *mac_key; /* of the store; borrowed */
    unsigned bits_off;            /* bits left out of the hash, so that tests get names with equal hashes */
    hf_name_bucket buckets[HF_NAME_BUCKETS];
    size_t count;                /* in all buckets */
    uint64_t deletes;            /* rows of the table that sweeps have deleted: see hf_names_remove */
    size_t sweep;                /* the bucket that is written next */
    uint64_t sweep_commit;       /* when the sweep ends, all names of earlier commits are in the table */
    HF_VEC(hf_name_row) log;     /* name_log as it will be after the open batch */
    size_t log_count;            /* names in it; also in the journal, so that a lost row is noticed */
    HF_VEC(hf_name_fresh) fresh; /* by commit */
} hf_names;

void hf_names_init(hf_names *names, hf_run_memory *memory, const unsigned char *mac_key);
void hf_names_deinit(hf_names *names);

/* Namespace, 0x1f, workflow id. Fails: HF_ERR_TOO_BIG. */
hf_status hf_name_text(hf_str namespace_, hf_str workflow_id, char text[HF_NAME_TEXT_LEN], size_t *ret_len);
/* The hash of such a text; below 2^62. */
int64_t hf_name_hash(const hf_names *names, hf_str text);
int64_t hf_name_hash_by(const unsigned char *mac_key, unsigned bits_off, hf_str text);

/* A run gets its first row with this commit. */
void hf_names_add(hf_names *names, int64_t hash, int64_t run, uint64_t commit);
/* The run loses its name with this commit. A reader of the table that finds the name asks hf_names_is_gone. If `deletes` has changed
 * since it asked the table, a sweep may have made that answer stale, and it must ask again. */
void hf_names_remove(hf_names *names, int64_t hash, int64_t run, uint64_t commit);
/* Whether this name is gone, although the table may still have it. */
bool hf_names_is_gone(const hf_names *names, int64_t hash, int64_t run);
/* The name is in name_log or in a journal row already: adds it in memory only. `hash` may have the bit HF_NAME_GONE. */
void hf_names_restore(hf_names *names, int64_t hash, int64_t run);
/* The greatest run below `below` with this hash that is in memory and not gone; 0 = none. */
int64_t hf_names_below(const hf_names *names, int64_t hash, int64_t below);

/* All names in memory, by hash, then run; `ret_entries` has room for names->count. Returns their number. */
size_t hf_names_copy(const hf_names *names, hf_name_entry *ret_entries);

/* For a commit: moves names from memory to their table while there are more than `count_max`. True: a round over the buckets has ended. */
bool hf_names_sweep(hf_names *names, hf_writes *writes, uint64_t commit, size_t count_max);
/* The names that this commit adds, as bytes for its journal row. */
void hf_names_put(const hf_names *names, uint64_t commit, hf_buf *out);
/* Commits before `keep` leave the journal with this commit. */
void hf_names_trim(hf_names *names, hf_writes *writes, uint64_t commit, uint64_t keep);

/* Adds the names of a journal row in memory, as names that are on disk in that row only. `visit` gets each one first; it may be NULL.
 * Fails: HF_ERR_INVALID. */
typedef void hf_name_visit(void *arg, const hf_name_entry *entry);
hf_status hf_names_read(hf_op *op, hf_names *names, uint64_t commit, hf_str bytes, hf_name_visit *visit, void *arg);
/* Adds all names of name_log. `logged`: their number according to the journal. Fails: HF_ERR_INVALID, HF_ERR_NOMEM, as the store does. */
hf_status hf_names_read_log(hf_op *op, hf_names *names, hf_store *store, uint64_t logged);

/* One entry as bytes, as hf_names_next reads it. */
void hf_name_entry_put(hf_buf *out, const hf_name_entry *entry);
/* The next entry of a journal row or a row of name_log. False: there are no more, or, if `*rest` is not empty, the next one is damaged. */
bool hf_names_next(hf_str *rest, hf_name_entry *ret_entry);

#endif
