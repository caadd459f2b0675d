/* The life of a worker as a machine: a state and an event give the next state and actions, which the code that reported
 * the event must do. It is pure: serve.c and keeper.c have the threads and clocks, report the events and do the
 * actions.
 *
 *     new --> polling --> grace --> force --> last word --> left --> done
 *                |          |         |          ^            the keeper no longer waits for code that does not end
 *                +----------+---------+----------+            its time is over
 *                +----------+---------+----------+--> over --> done      everything has ended
 *
 * Events come from the worker's fiber (told, grace over, ended) and from the keeper (time over, patience over). If the
 * fiber does not get a thread, its events may come late. Their actions are then still done, and the state does not
 * change.
 *
 * worker-L1  A worker never goes back: each arrow leads to a later state in the order of hf_life_state, or stays.
 * worker-L2  A worker may be freed only in the states `new` and `done`, in which nothing of it runs. */
#ifndef HF_WORKER_LIFE_H
#define HF_WORKER_LIFE_H

#include "base/base.h"

typedef enum hf_life_state {
    HF_LIFE_NEW,       /* functions may be added */
    HF_LIFE_POLLING,   /* hf_worker_run was called */
    HF_LIFE_GRACE,     /* it stops: cached workflows are evicted, activities may finish */
    HF_LIFE_FORCE,     /* activities are canceled */
    HF_LIFE_LAST_WORD, /* its time is over: answers that the service does not take are given up */
    HF_LIFE_LEFT,      /* code that still runs is left behind */
    HF_LIFE_OVER,      /* everything has ended */
    HF_LIFE_DONE,      /* hf_worker_run has returned, or is about to */
    HF_LIFE_STATE_COUNT
} hf_life_state;

typedef enum hf_life_event {
    HF_LIFE_STARTED,       /* hf_worker_run was called */
    HF_LIFE_TOLD,          /* the fiber has heard that it is to stop */
    HF_LIFE_GRACE_OVER,    /* activities still run after the grace */
    HF_LIFE_TIME_OVER,     /* it should have stopped by now */
    HF_LIFE_PATIENCE_OVER, /* something still runs, or the service does not respond to the last answers */
    HF_LIFE_ENDED,         /* the fiber has ended: nothing runs any more */
    HF_LIFE_RETURNED,      /* hf_worker_run returns */
    HF_LIFE_EVENT_COUNT
} hf_life_event;

/* Bits. */
enum {
    HF_LIFE_DO_EVICT = 1,  /* tell the cached workflows to end, and the service that their queue has gone */
    HF_LIFE_DO_CANCEL = 2, /* cancel the activities */
    HF_LIFE_DO_HUSH = 4,   /* answers that were refused are no longer sent again */
    HF_LIFE_DO_LEAVE = 8,  /* shut the guard, say what is left, let hf_worker_run go */
    HF_LIFE_DO_RING = 16   /* wake the keeper: it is over */
};

typedef struct hf_life_step {
    bool is_known; /* false: such an event cannot come in this state */
    hf_life_state next;
    unsigned actions;
} hf_life_step;

hf_life_step hf_life_next(hf_life_state state, hf_life_event event);
const char *hf_life_name(hf_life_state state);

#endif
