/* Lists and counts of runs (docs/adr/0023). A lister is one call that is under way: it goes over runs in memory, then over rows, in steps.
 *
 *     1. runs in memory with changes that are in no row, HF_LIST_RUNS_MAX in a step; their numbers are remembered
 *     2. all others, newest first: where there is a block (ledger/blocks.h) its runs, if its summary says that one of them may fit; elsewhere
 *        their rows, HF_LIST_ROWS_MAX or HF_LIST_LEN_MAX in a step. Those of 1 are left out
 *     3. the rows of runs that were found in blocks, for what an entry of a block does not have
 *
 * The core's thread copies what a step needs of memory and asks the store for rows. The filter is evaluated on the store's thread, between
 * two commits (lister_look.c). While a step is out, `work` belongs to that thread. It goes on with the next step by itself until somebody else wants the
 * store: beside work a list then waits for a few commits, not for one with each step.
 *
 * engine-S1  A list sees everything that was decided before it was asked: a change that is in no row is in a run in memory, and rows are read
 *     by requests that come after the commits of all others. Its answer waits for the open batch, like every other.
 * engine-S2  A step takes at most HF_LIST_RUNS_MAX runs, HF_LIST_SUMMARIES_MAX summaries, one block, HF_LIST_ROWS_MAX rows in order and
 *     HF_LIST_GETS_MAX by their keys, and ends with the row with which HF_LIST_LEN_MAX bytes are reached.
 * engine-S4  A list of current runs (lister_current.c) has of each workflow id the newest run that began before its first page was asked for, if the id still
 *     leads to it, and no other.
 * engine-S3  A page token is sealed, and valid only for the namespace, the method and the query that it was given for. */
#ifndef HF_ENGINE_LISTER_H
#define HF_ENGINE_LISTER_H

#include "engine/core_private.h"
#include "engine/load.h"
#include "history/limits.h"
#include "run/visible.h"

/* Planned for at most a millisecond of the store's thread: rows that are read in order take 1.5 us each. Beside work every step waits for a commit, so
 * smaller steps make lists that take longer. */
enum { HF_LIST_RUNS_MAX = 256, HF_LIST_ROWS_MAX = 512, HF_LIST_GETS_MAX = 256, HF_LIST_SUMMARIES_MAX = 64 };
#define HF_LIST_LEN_MAX ((size_t)512 << 10)
#define HF_LIST_PAGE_LEN \
    ((size_t)2 << 20) /* bytes of their texts: a page ends with the run with which it has more, but has one at least */
#define HF_LIST_STEPS_MAX \
    64 /* that follow each other on the store's thread while nobody else waits for it; then the core looks after the list */
#define HF_LIST_STATUS_COUNT 9

/* A run on the page that is made. */
typedef struct hf_list_found {
    hf_visible run;
    hf_str key;    /* where-F3; empty without ORDER BY */
    bool is_light; /* from a block: without memo and first run id, until its own row was read */
    bool is_gone;  /* that row was deleted meanwhile, or cannot be read */
} hf_list_found;

/* What the steps work with. */
typedef struct hf_list_work {
    hf_where where;
    hf_str namespace_;
    bool is_count;
    hf_allocator memory;
    hf_arena arena;    /* filter, namespace, place of the page */
    hf_arena scratch;  /* of one run */
    hf_arena room[2];  /* texts of the runs that were found ... */
    int room_idx;      /* ... and which of the two has them */
    size_t thrown;     /* texts in there of runs that had to make room for others ... */
    size_t thrown_len; /* ... and their bytes */
    size_t found_len;  /* bytes of the runs on the page */
    hf_buf key;        /* sort key of the run that is looked at */
    bool has_after;    /* the page begins behind this run: */
    hf_str after_key;
    int64_t after_number;
    int64_t *numbers; /* of runs that were looked at in memory */
    size_t number_count, number_room;
    bool is_sorted;       /* they are */
    hf_list_found *found; /* in order, HF_LIST_PAGE_MAX at most */
    size_t found_count, found_max;
    bool is_cut; /* a run fits, and there is no room for it on this page */
    int64_t counts[HF_LIST_STATUS_COUNT];
    uint64_t damaged;    /* rows that cannot be read */
    hf_status status;    /* HF_ERR_NOMEM */
    int64_t from, below; /* numbers of the runs that are left to look at: from <= number < below */
    size_t rows_max;     /* engine-S2: of this step, in order ... */
    size_t gets_max;     /* ... and by their keys */
    int steps;           /* since the core had it */
    bool has_scanned;    /* rows in order */
    size_t filled;       /* of those found: they were made whole ... */
    size_t filled_len;   /* ... and have so many bytes */
    bool is_done;
    uint64_t blocks_read, blocks_skipped, blocks_counted, others_read; /* for probes */

    /* Of a list of current runs: names that were in memory when it began. */
    bool is_current;
    int64_t bound_number; /* runs with this number or a greater one began later */
    hf_name_entry *names; /* of runs with rows: by hash, then run */
    size_t name_count;
    hf_name_entry *fresh; /* of runs without: the same, with another hash */
    size_t fresh_count;
    unsigned char mac_key[HF_SIPHASH_KEY_LEN];
    unsigned bits_off;
    hf_store *store;           /* of this step */
    hf_store_request *request; /* of this step: fails if a read within it does */
    size_t looked_up;          /* runs, in this step */

    /* Of this step: runs in memory, which lie in the arena of its request. */
    const hf_visible *runs;
    size_t run_count;
} hf_list_work;

struct hf_lister {
    hf_node link;  /* of core->listers */
    hf_call *call; /* NULL = its caller has gone */
    hf_node *next; /* of core->dirty: the run in memory that is looked at next; the list's head = all were */
    uint64_t
        commit; /* a run whose first unwritten change is of a later commit was looked at already, or its row tells enough */
    bool has_memory_done;
    uint64_t bound; /* what its page tokens are bound to: engine-S3 */
    hf_list_work work;
};

/* List, Scan, ListOpen, ListClosed and Count. */
void hf_list_call(hf_core *core, hf_call *call);
/* A step is done. */
void hf_list_rows_read(hf_core *core, hf_lister *lister, const hf_read *read);
/* The store cannot read its own pages: only the list fails. */
void hf_list_failed(hf_core *core, hf_lister *lister, const char *why);
/* The caller does not want its list any more. */
void hf_list_drop(hf_core *core, hf_call *call);
/* A run leaves core->dirty. */
void hf_lists_pass(hf_core *core, hf_node *dirty_link);
void hf_lists_deinit(hf_core *core);

/* lister_look.c: on the store's thread, with the rows of a step. */
void hf_list_look(hf_store *store, hf_store_request *request);
/* Reads more within a step. False: the list fails as this read did. */
bool hf_list_ask(hf_list_work *work, hf_store_request *inner);
/* Then, if nobody else waits for that thread: the next step. */
bool hf_list_goes_on(hf_store_request *request);
/* Which summaries a step reads. */
void hf_list_aim(const hf_list_work *work, hf_store_request *request);
void hf_list_take(hf_list_work *work, const hf_visible *run, bool is_light);
/* The run of a row; its texts lie in the row and in work->scratch. False: it cannot be read, or there is no memory. */
bool hf_list_read_row(hf_list_work *work, hf_store *store, const hf_row *row, hf_visible *ret_run);
void hf_list_take_row(hf_list_work *work, hf_store *store, const hf_row *row);
/* Whether every run that the page is to have is on it. */
bool hf_list_is_full(const hf_list_work *work);
/* lister_current.c: on the core's thread, when the list begins; check the arena's status. */
void hf_list_note_names(hf_core *core, hf_list_work *work);
/* On the store's thread: whether its workflow id leads to this run. What it reads lies in work->scratch. */
bool hf_list_is_current(hf_list_work *work, const hf_visible *run);
/* lister_walk.c: the same; goes on to the next runs. */
void hf_list_walk(hf_list_work *work, hf_store *store, hf_store_request *request);
/* The order of two runs on a page: below 0 = the first one comes before the other. */
int hf_list_order(hf_str a_key, int64_t a_number, hf_str b_key, int64_t b_number);

#endif
