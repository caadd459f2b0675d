/* Which runs have this workflow id? The index from names to runs, in two parts.
 *
 * A name is namespace and workflow id. In the index it is a number, a keyed hash of it, beside the number of the run: sixteen
 * bytes. Two names may have the same hash: whoever follows the index compares the name with the run's own.
 *
 * New names come in no order, so that each would dirty a page of the table by itself. They are gathered in memory, in buckets by
 * hash, and a sweep over the buckets moves them to the table, neighbours together, as fast as new ones come. Until then
 * they are in the journal (the commit that writes a run's first row holds its name), and from the cut of the journal on in
 * the table name_log, one row per cut.
 *
 * N1  A run that has a row has its name in the table or in memory, and in the latter case in the journal or in name_log too.
 * N2  Names of one workflow id come in the order of its runs: those in memory are newer than those in the table. */
#ifndef HF_ENGINE_NAMES_H
#define HF_ENGINE_NAMES_H

#include "engine/slot.h"

typedef struct hf_batch hf_batch;

#define HF_NAME_BITS 62
#define HF_NAME_BUCKET_BITS 10
#define HF_NAME_BUCKETS (1u << HF_NAME_BUCKET_BITS)

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

typedef struct hf_names {
    struct hf_name_bucket {
        HF_VEC(hf_name_entry) entries; /* by hash, then run */
    } buckets[HF_NAME_BUCKETS];
    size_t count;                /* in all buckets */
    size_t sweep;                /* the bucket that is written next */
    uint64_t sweep_commit;       /* names of earlier commits are in the table when the sweep comes to its end */
    HF_VEC(hf_name_row) log;     /* name_log as it will be after the open batch */
    size_t log_count;            /* names in it: the journal says so too, lest a row be lost */
    HF_VEC(hf_name_fresh) fresh; /* by commit */
} hf_names;

void hf_names_deinit(hf_core *core);
/* Of the text of a name (namespace, 0x1f, workflow id); below 2^62. */
int64_t hf_name_hash(const hf_core *core, hf_str text);
/* A run gets its first row with the open batch. */
void hf_names_add(hf_core *core, int64_t hash, int64_t run);
/* From name_log: in memory only. */
void hf_names_restore(hf_core *core, int64_t hash, int64_t run);
/* A row of name_log with so many names is there. */
void hf_names_logged(hf_core *core, uint64_t commit, size_t count);
/* The greatest run below `below` with this hash that is not in the table yet; 0 = none. */
int64_t hf_names_below(const hf_core *core, int64_t hash, int64_t below);

/* For spill.c: names leave memory with this batch; those of the open batch as bytes for its journal row; commits before
 * `keep` leave the journal. */
void hf_names_sweep(hf_core *core, hf_batch *batch);
void hf_names_put(const hf_core *core, hf_buf *out);
void hf_names_trim(hf_core *core, hf_batch *batch, uint64_t keep);

/* The entries of a journal row or a row of name_log, one after the other. False: there are no more, or, when
 * something is left, the next one is none. */
bool hf_names_next(hf_str *rest, hf_name_entry *ret_entry);

/* Run ids are UUIDs that hold the run's number, hidden: the run of an id is found without an index. `chance` makes them
 * different in every life of the store. */
hf_str hf_run_id_make(const hf_core *core, hf_arena *arena, uint64_t chance, int64_t number);
/* 0: not one of this store. The run that is found says whether it has this id. */
int64_t hf_run_id_number(const unsigned char mac_key[16], hf_str run_id);

#endif
