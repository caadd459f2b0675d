/* hf_slot: a run that the engine has in memory, and what the engine knows of it besides its state. */
#ifndef HF_ENGINE_SLOT_H
#define HF_ENGINE_SLOT_H

#include "base/heap.h"
#include "base/map.h"
#include "run/run.h"

typedef struct hf_core hf_core;
typedef struct hf_name hf_name;

/* What a task token names. */
typedef struct hf_token {
    bool activity;
    int64_t run;
    int64_t scheduled_id;
    int64_t started_id; /* of a workflow task; 0 for activities, whose started event comes last */
    int32_t attempt;
    int64_t stamp; /* started_time */
} hf_token;

typedef struct hf_slot {
    hf_run run; /* first; every hf_run of the engine is one of a slot */

    /* The cache (cache.c). */
    hf_map_node by_number;
    hf_node all_link;      /* of core->runs_all: every run in memory, in order of arrival */
    hf_node lru_link;      /* of core->lru or core->ended, when nothing holds it in memory */
    bool is_ended;         /* ... of core->ended */
    bool bad;              /* its records do not check: every call answers so, nothing is written (ledger/kept.h) */
    bool kept;             /* the meta table has changes of it (ledger/kept.h) */
    hf_name *name;         /* when it is the current run of its workflow id */
    hf_list waiting;       /* calls that wait for it to be loaded */
    hf_list held;          /* messages that wait for room in its buffer; they hold it in memory */
    size_t suspects;       /* its tasks in core->suspects: they hold it in memory, too */
    uint64_t step;         /* of the core, that changed it last */
    uint64_t commit_ahead; /* its workflow task went out before this commit, and is not answered */

    /* While it is loading; the run is empty then. */
    bool loading;
    bool due_load;                    /* for its deadline */
    hf_queue *wanted_by;              /* the queue whose poller set it off; it looks on when the run brings nothing */
    hf_list wanted_as;                /* names that it may have */
    HF_VEC(struct hf_token) unwanted; /* tasks that are to be taken back then */

    /* Deadlines. */
    hf_heap_node due; /* of core->due: its earliest deadline of any kind, or earlier */

    /* The open batch, and rows. */
    hf_node dirty_link;    /* of core->dirty, when it has changes that are not in its rows */
    hf_node batch_link;    /* of core->touched, when the open batch has changes of it */
    size_t batch_start;    /* of the log: where the open batch begins */
    uint64_t commit_dirty; /* the first commit that is not in its rows */
    bool spill_now;        /* closed: its rows are written with the open batch */
    unsigned notices;   /* HF_BIT of hf_notice_kind: what the log is told when the open batch is durable (notice.c) */
    int64_t over_count; /* with HF_NOTICE_ENDED: events of the run when a limit ended it, as its last event says */
    int64_t over_len;   /* the same of its history's bytes */
} hf_slot;

static inline hf_slot *hf_slot_of(hf_run *run)
{
    return (hf_slot *)(void *)run;
}

static inline const hf_slot *hf_slot_of_const(const hf_run *run)
{
    return (const hf_slot *)(const void *)run;
}

/* The slot of a run of the engine. */
#define HF_SLOT(run) _Generic((run), const hf_run * : hf_slot_of_const, hf_run * : hf_slot_of)(run)

#endif
