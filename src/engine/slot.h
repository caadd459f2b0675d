/* hf_slot: a run that the engine has in memory, and what the engine knows of it besides its state. */
#ifndef HF_ENGINE_SLOT_H
#define HF_ENGINE_SLOT_H

#include "base/heap.h"
#include "base/map.h"
#include "engine/core.h"
#include "run/run.h"

typedef struct hf_core hf_core;
typedef struct hf_name hf_name;
typedef struct hf_unwritten hf_unwritten;
typedef struct hf_deletion hf_deletion;
typedef struct hf_reset hf_reset;
typedef struct hf_lister hf_lister;
typedef struct hf_operation hf_operation;

/* The kind of a task, and of its token. */
typedef enum hf_task_kind { HF_TASK_WORKFLOW, HF_TASK_ACTIVITY, HF_TASK_QUERY } hf_task_kind;

/* The task that a token names. */
typedef struct hf_token {
    hf_task_kind kind;
    int64_t run;
    int64_t scheduled_id;
    int64_t
        started_id; /* of a workflow task; 0 for activities, whose started event comes last; of a query: its number */
    int32_t attempt;
    int64_t stamp;         /* started_time */
    hf_task_holder holder; /* of a task that is taken back; not in the token's bytes */
} hf_token;

typedef struct hf_slot {
    hf_run run; /* first; every hf_run of the engine is one of a slot */

    /* The cache (cache.c). */
    hf_map_node by_number;
    hf_node all_link;      /* of core->runs_all: every run in memory, in order of arrival */
    hf_node lru_link;      /* of core->lru or core->ended, when nothing holds it in memory */
    bool is_ended;         /* ... of core->ended */
    bool bad;              /* its records are damaged: every call fails, nothing is written (ledger/kept.h) */
    bool kept;             /* the meta table has changes of it (ledger/kept.h) */
    hf_name *name;         /* when it is the current run of its workflow id */
    hf_list waiting;       /* calls that wait for it to be loaded */
    size_t suspects;       /* its tasks in core->suspects: they hold it in memory, too */
    uint64_t step;         /* number of the step that changed it last */
    uint64_t commit_ahead; /* its workflow task was handed out before this commit, and is not answered */

    /* While it is loading; the run is empty then. */
    bool loading;
    bool due_load;                    /* for its deadline */
    hf_queue *wanted_by;              /* the queue that loads it for a poll; looks on if the run brings no task */
    hf_list wanted_as;                /* names that it may have */
    HF_VEC(struct hf_token) unwanted; /* tasks to take back once it is loaded */

    /* Events of it that were read for an input (fetch.c). */
    int64_t fetch_id;   /* is being read; 0 = none is */
    int64_t fetched_id; /* is here; 0 = none is */
    hf_owned fetched;   /* its bytes; empty = its row cannot be read */
    bool fetch_due;     /* a deadline waits for it */
    bool fetch_tell;    /* its listener waits for it (machines/listener.c) */
    hf_node zone_link;  /* of a time zone whose rules it waits for (zone.c) */

    hf_unwritten *unwritten; /* its queries and updates that are never written (unwritten.h); NULL = it has none */

    hf_deletion *deletion; /* it is being deleted (delete.h), which holds it in memory; NULL = it is not */

    hf_operation
        *operation; /* of kind "operation": it goes on now (operations.h), which holds it in memory; NULL = it waits */

    size_t resets;     /* that read it, or will end it: they hold it in memory, too (reset.h) */
    bool is_in_making; /* the meta table says so until its rows are written (ledger/making.h) */
    uint64_t spills;   /* times that its log was written to rows */

    /* Deadlines. */
    hf_heap_node due; /* of core->due: its earliest deadline of any kind, or earlier */

    /* The open batch, and rows. */
    hf_node dirty_link;    /* of core->dirty, when it has changes that are not in its rows */
    hf_node batch_link;    /* of core->touched, when the open batch has changes of it */
    size_t batch_start;    /* of the log: where the open batch begins */
    uint64_t commit_dirty; /* the first commit that is not in its rows */
    bool spill_now;        /* closed: its rows are written with the open batch */
    bool is_row_open;      /* its row is that of an open run */
    unsigned notices;   /* HF_BIT of hf_notice_kind: warnings for the log when the open batch is durable (notice.c) */
    int64_t over_count; /* with HF_NOTICE_ENDED: events that the run had, or would have had, when a limit ended it */
    int64_t over_len;   /* the same for its history's bytes */
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
