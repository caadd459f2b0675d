/* Housekeeping over runs that have ended (docs/adr/0025): their entries are gathered in blocks (ledger/blocks.h), and those whose time is over are
 * deleted.
 *
 * Run numbers are divided into ranges of `size`. Of each range the core knows in memory (hf_block_info):
 *
 *     unknown --load--> loose --visit, commit--> sealed          sealed: there is a block with its summary
 *                         ^                         |
 *                         +---- a run changes ------+            in the commit that changes the run
 *
 * Load: after an opening the summaries are read once, in steps. Visit: the rows of one range are read, in steps; then its runs that have expired are
 * deleted, or else its block is written with the next commit. Under load most runs of a range have ended since the program began: what a block tells of
 * them is remembered when their rows are written (hf_gather), and if that is all there is, no row is read. One step is out at a time, and the next one follows HF_HOUSE_PACE later: so this
 * work takes a known part of the store's thread, and goes on under load.
 *
 * engine-K1  A step takes at most HF_HOUSE_ROWS_MAX rows, and ends with the row with which HF_HOUSE_LEN_MAX bytes are reached; or twice as many runs
 *     that are remembered, of which at most HF_BLOCK_LEN_MAX bytes are copied. A tick looks at no more than HF_HOUSE_RANGES_MAX ranges.
 * engine-K2  A block is written only if no run of its range that had ended was changed since its visit began (ledger-E1). Runs that had no row then are
 *     among its others.
 * engine-K3  A commit that changes or deletes a run that has ended deletes the block of its range, unless there is none.
 * engine-K4  Retention deletes no run that is open, and none whose end is not as long ago as its namespace says. A run that is kept for a span of its own
 *     (hf_run.keep) goes by its own deadline instead (due.c), and not sooner.
 * engine-K5  A tick begins at most HF_RETIRING_MAX deletions, and no more than twice as many are on their way.
 * engine-K6  What is remembered of a run (hf_gather) is what its row tells. If a run of the range that had ended is changed, all of it is forgotten. */
#ifndef HF_ENGINE_BLOCKS_H
#define HF_ENGINE_BLOCKS_H

#include "base/list.h"
#include "engine/core.h"
#include "ledger/blocks.h"
#include "ledger/ended.h"
#include "run/run.h"
#include "run/visible.h"
#include "service/service.h"

typedef struct hf_commit_batch hf_commit_batch;
typedef struct hf_read hf_read;

/* A step is planned for half a millisecond of the store's thread, and comes every ten: five percent of it. */
enum { HF_HOUSE_ROWS_MAX = 512, HF_HOUSE_SUMMARIES_MAX = 64 };
enum { HF_HOUSE_RANGES_MAX = 4096 }; /* that one tick looks at in memory for something to do */
#define HF_HOUSE_LEN_MAX ((size_t)512 << 10)
#define HF_HOUSE_PACE INT64_C(10000000)
#define HF_HOUSE_PACE_BUSY INT64_C(40000000) /* beside other commits: a quarter of that ... */
enum { HF_HOUSE_BEHIND = 2 }; /* ... while no more ranges than this wait for their first block: lists read their rows */
#define HF_HOUSE_SLACK INT64_C(10000000000) /* ns: runs that expire within this are deleted together */
enum {
    HF_BLOCK_RANGES_MAX = 1 << 20
}; /* in memory: 16 MiB. Behind them (a thousand million runs) ranges have no block */
/* Runs that retention begins to delete with one step: so many less the calls that came since the last one, but some beside any number of them. A
 * deletion takes about two thirds of the work of a run with an activity, so 1,200 a second take a twentieth of a busy engine. */
enum { HF_RETIRING_MAX = 64, HF_RETIRING_MIN = 12 };

typedef enum hf_block_state { HF_BLOCK_UNKNOWN, HF_BLOCK_LOOSE, HF_BLOCK_SEALED } hf_block_state;

typedef struct hf_block_info {
    int64_t expires_at; /* wall ns: no run of the range is to go before; INT64_MAX = none, INT64_MIN = not known */
    uint16_t ended;     /* runs that have ended since the last visit began; does not overflow */
    uint8_t state;      /* hf_block_state */
    bool is_visited;    /* nothing is to be done before `ended` grows */
} hf_block_info;

enum { HF_GATHERS_MAX = 4 }; /* ranges of which something is remembered: about 350 KiB each */

/* The runs of a range that have ended since the program began. */
typedef struct hf_gather {
    int64_t first;
    hf_visible **runs; /* by number - first; NULL: it has not ended, or is not known */
    hf_arena arena;    /* of everything */
} hf_gather;

/* What a summary has told. */
typedef struct hf_block_loaded {
    int64_t first;
    int64_t expires_at;
    bool has_others;
} hf_block_loaded;

/* A run whose time is over. */
typedef struct hf_expired {
    int64_t run;
    hf_str namespace_, workflow_id, run_id;
} hf_expired;

/* A load or a visit. While a step is out it belongs to the store's thread. */
typedef struct hf_house_work hf_house_work;
struct hf_house_work {
    bool is_load;
    bool has_maker; /* the range may get a block */
    int64_t first, end;
    int64_t from; /* the next step begins here */
    int64_t now;  /* wall ns when it began */
    hf_allocator memory;
    hf_arena arena;   /* of everything below */
    hf_arena scratch; /* of one row */
    hf_keeping *keepings;
    size_t keeping_count;
    hf_gather *gather; /* its runs are taken from here, and no row is read; NULL = they are read */
    int64_t *rowless;  /* runs that had no row when it began, by number; with a gather all that it does not have */
    size_t rowless_count, rowless_next;
    hf_block_maker maker;
    hf_buf block, summary;
    hf_block_loaded *loaded; /* of the last step */
    size_t loaded_count;
    hf_expired *expired; /* by number */
    size_t expired_count;
    int64_t expires_at; /* of the others: the first of them */
    size_t rows;        /* of the range */
    int64_t next_run;   /* the first row behind an empty range; 0 = there is none */
    bool is_done;
    hf_status status; /* HF_ERR_NOMEM */
};

/* A run that is being retired: a call of the core's own. */
typedef struct hf_retiring {
    hf_call call; /* first */
    hf_core *core;
    hf_node link; /* of hf_blocks.retiring */
    hf_arena arena;
    hf_pb_workflow_execution execution;
    hf_pb_delete_workflow_execution_request request;
} hf_retiring;

typedef struct hf_blocks {
    int64_t size; /* runs of a range */
    int64_t base; /* the range of infos.items[0]: the first that has a run */
    HF_VEC(hf_block_info) infos;
    bool is_loaded;
    int64_t load_from;
    uint64_t commit_seen;               /* when the last step was done: the next commit */
    bool has_keepings;                  /* a namespace has a retention */
    bool is_out;                        /* a step is */
    bool is_stale;                      /* engine-K2: a run of the range has changed */
    bool is_ready;                      /* its block goes with the next commit */
    hf_gather *gathers[HF_GATHERS_MAX]; /* NULL = free */
    hf_house_work *work;
    hf_expired *victims; /* of the last visit; they lie in its arena */
    size_t victim_count, victim_next;
    hf_list retiring;
    size_t retiring_count; /* of the list */
    uint64_t calls_seen;   /* when the last ones were begun */
    size_t cursor;         /* the range that is looked at next */
    size_t search_left;    /* ranges of this round that were not looked at; 0 = the next tick begins one */
    int64_t search_wake;   /* wall ns: of those that were, the first that expires */
    bool is_woken;         /* there may be something to do that this round has passed */
    int64_t wake_mono;     /* when there is something to do; INT64_MAX = nothing */
    int64_t wake_wall;     /* the same, for runs that expire */
} hf_blocks;

/* The namespaces with a retention, in the arena; check its status. */
hf_keeping *hf_blocks_keepings(const hf_core *core, hf_arena *arena, size_t *ret_count);

void hf_blocks_init(hf_core *core);
/* At opening, when all runs and namespaces are known. There is no run below `first`. */
void hf_blocks_open(hf_core *core, int64_t first);
void hf_blocks_deinit(hf_core *core);
/* There may be something to do. */
void hf_blocks_wake(hf_core *core);
/* A namespace has another retention. */
void hf_blocks_keep_anew(hf_core *core);

/* A run that had ended is changed or deleted with this commit: engine-K3. */
void hf_blocks_run_changes(hf_core *core, hf_commit_batch *batch, int64_t run);
/* The first row of a run that has ended is written. */
void hf_blocks_run_ended(hf_core *core, const hf_run *run);

void hf_blocks_tick(hf_core *core);
/* When a tick has something to do here. */
hf_clock hf_blocks_next(const hf_core *core);
/* Whether the next commit writes a block, and that commit. */
bool hf_blocks_can_go(const hf_core *core);
void hf_blocks_go(hf_core *core, hf_commit_batch *batch);

/* Answers of the store to HF_READ_HOUSE. */
void hf_house_rows_read(hf_core *core, const hf_read *read);
void hf_house_failed(hf_core *core);

/* blocks_look.c: on the store's thread. */
void hf_house_look(hf_store *store, hf_store_request *request);

#endif
