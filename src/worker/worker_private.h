/* The nouns of the worker and how they hang together. Internal to src/worker.
 *
 *   hf_worker -- pollers (fibers) ---- hf_wtask: what a poll brought ----> hf_wf: one run of a workflow in memory
 *       |                                                                    driver (a plain fiber), a crew of its own
 *       +-- activities: a fiber each, which waits for a thread of the pool
 *       +-- cache: runs by run id, least recently used first
 *
 * K1  A run's hf_wf belongs to its driver, which lives on one scheduler for good. Others reach it under the cache's lock
 *     and only to put something into its mailbox.
 * K2  A run is in the cache's table from its first task until somebody takes it out, and is told to end by the same who
 *     took it out. So what finds it in the table may post to it.
 * K3  Whatever a workflow's fibers do is decided by the events that were applied, in their order, and nothing else. */
#ifndef HF_WORKER_WORKER_PRIVATE_H
#define HF_WORKER_WORKER_PRIVATE_H

#include "base/arena.h"
#include "fiber/crew.h"
#include "fiber/wait.h"
#include "service/call.h"
#include "worker/data.h"

#include <holdfast/worker.h>

typedef struct hf_wf hf_wf;

/* ---- The worker ------------------------------------------------------------------------------------------------------ */

/* A function by its name. */
typedef struct hf_entry {
    hf_node node; /* in worker->workflows or worker->activities */
    hf_str name;
    hf_function function;
} hf_entry;

enum { HF_WF_BUCKETS = 1024 };

/* Runs in memory. Everything under `lock`. */
typedef struct hf_wf_cache {
    hf_spin lock;
    hf_list buckets[HF_WF_BUCKETS]; /* hf_wf.bucket, by the hash of the run id */
    hf_list lru;                    /* hf_wf.lru, least recently used first */
    size_t count;
    size_t bytes;   /* what the runs said they use */
    bool is_closed; /* stopping: runs end after their step */
} hf_wf_cache;

struct hf_worker {
    hf_service *service;
    hf_runtime *rt;
    bool owns_runtime;
    hf_allocator memory;
    hf_arena names; /* what follows, and the entries */
    hf_str queue;
    hf_str name_space;
    hf_str identity;
    hf_str sticky_queue; /* where the steps of cached runs come by; empty without a cache */
    hf_list workflows;
    hf_list activities;
    hf_worker_options options; /* with the defaults filled in */
    hf_wf_cache cache;
    atomic_uint state; /* hf_worker_state */
    hf_chan *stop;     /* somebody wants it to stop: a reason, const char * */
    hf_chan *never;    /* nobody sends: to wait for a cancel */
    hf_sem *workflow_slots;
    hf_sem *activity_slots;
    hf_dispatcher *pool;   /* activities' threads */
    hf_scope *runs;        /* drivers; open while it runs */
    hf_scope *jobs;        /* activities */
    hf_chan *ended;        /* one of the two below has changed */
    atomic_int runs_count; /* drivers that have not ended */
    atomic_int jobs_count; /* activities that have not ended */
    hf_status status;      /* what hf_worker_run returns: why it stopped by itself */
};

typedef enum hf_worker_state { HF_WORKER_NEW, HF_WORKER_RUNNING, HF_WORKER_DONE } hf_worker_state;

const hf_entry *hf_entry_find(const hf_list *entries, hf_str name);
/* Counts drivers and activities, and tells who waits for their end. */
void hf_worker_count(hf_worker *worker, atomic_int *which, int delta);
/* The worker cannot go on. From any of its fibers. */
void hf_worker_give_up(hf_worker *worker, hf_status status, const char *why);
static inline void hf_worker_call_init(hf_worker *worker, hf_call *call, hf_method method, const void *request,
                                       hf_arena *arena)
{
    (void)worker;
    hf_call_init(call, method, request, arena, NULL);
    call->in_process = true;
    call->run_ahead = true;
}

/* ---- poller.c, activity.c -------------------------------------------------------------------------------------------- */

/* The body of a poller; it ends when it is canceled. */
typedef struct hf_poller_seat {
    hf_worker *worker;
    bool is_sticky; /* workflow pollers: which queue */
} hf_poller_seat;
hf_status hf_poll_workflows(void *seat);
hf_status hf_poll_activities(void *seat);

/* Starts an activity, which gives its slot back in the end. Takes the task that lies in `arena`, the arena and the slot,
 * also on failure. Fails: HF_ERR_NOMEM. */
hf_status hf_activity_begin(hf_op *op, hf_worker *worker, hf_arena *arena,
                            hf_pb_poll_activity_task_queue_response *task);

/* ---- A workflow task: what a poll brought ------------------------------------------------------------------------------ */

typedef struct hf_wtask {
    hf_node node;   /* in a run's mailbox */
    hf_arena arena; /* everything about it, `task` too; goes with it */
    const hf_pb_poll_workflow_task_queue_response *task;
} hf_wtask;

hf_wtask *hf_wtask_new(hf_worker *worker); /* NULL = out of memory */
void hf_wtask_free(hf_worker *worker, hf_wtask *task);

/* ---- cache.c ----------------------------------------------------------------------------------------------------------- */

void hf_wf_cache_init(hf_wf_cache *cache);
/* Gives the task to its run, which is made if it is not there. Takes `task`. Fails: HF_ERR_NOMEM. */
hf_status hf_wf_cache_post(hf_worker *worker, hf_wtask *task);
/* By the driver, after a step: it was used just now, and uses so many bytes. What is over the bounds is told to end. */
void hf_wf_cache_touch(hf_wf *wf, size_t bytes);
/* By the driver, before it ends; also when somebody took it out already. */
void hf_wf_cache_remove(hf_wf *wf);
/* Tells all runs to end, also those to come, after the step they are at. */
void hf_wf_cache_close(hf_worker *worker);

#endif
