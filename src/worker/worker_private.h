/* The structs of the worker and how they are connected. Internal to src/worker.
 *
 *   hf_worker -- pollers (fibers) ---- hf_wtask: a workflow task --------> hf_wf: one run of a workflow in memory
 *       |                                                                    driver (a plain fiber), a crew of its own
 *       +-- activities: a fiber each, which waits for a thread of the pool
 *       +-- cache: runs by run id, least recently used first
 *       +-- keeper: the thread that owns all of this while it runs (keeper.c)
 *
 * worker-K1  A run's hf_wf belongs to the driver that plays it: one at a time, always on the same scheduler, and none while
 *     it has nothing to do (drivers.c). Others reach it under the cache's lock, and only to put something into its mailbox.
 * worker-K2  A run is in the cache's table from its first task until it is taken out. Code that takes it out tells it to
 *     end. So code that finds it in the table may post to it.
 * worker-K3  The behaviour of a workflow's fibers depends on the events that were applied, in their order, and on
 *     nothing else.
 * worker-K4  Work that hf_worker_run leaves behind, because it does not end, keeps the worker and all of its memory. It
 *     may not call the service any more, which may be closed by then: all calls go through `guard`, which refuses them
 *     from then on.
 * worker-K5  An activity or child without a fiber costs at most 512 bytes beside its payload: its job, its branch and its
 *     command (forks.c).
 * worker-K6  A task that a poll brought is played, or returned; and where the service takes nothing back, returned means answered
 *     as failed. A task that is dropped waits until it times out. The exceptions: worker-D2, and no memory to answer a task that
 *     was tried before. */
#ifndef HF_WORKER_WORKER_PRIVATE_H
#define HF_WORKER_WORKER_PRIVATE_H

#include "base/arenas.h"
#include "base/status.h"
#include "client/data.h"
#include "fiber/crew/crew.h"
#include "fiber/sched/wait.h"
#include "service/call.h"
#include "service/guard.h"
#include "service/witness.h"
#include "worker/life.h"
#include "worker/tempo.h"

#include <holdfast/worker.h>

typedef struct hf_wf hf_wf;
typedef struct hf_activity_work hf_activity_work;

/* ---- The worker -------------------------------------------------------------------------------------------------- */

/* A function by its name. */
/* A hook of a workflow type, for parts of the library that drive workflows (not for programs): called by the driver when no
 * fiber of the run is ready and no condition passes, before the next stage or the answer of the task; in a replay at the same
 * places. It may change what the workflow's conditions look at, and depends on nothing else. True: it has, and they look
 * again. */
typedef bool (*hf_wf_at_rest)(void *arg);

typedef struct hf_function_entry {
    hf_node node; /* in worker->workflows or worker->activities */
    hf_str name;
    hf_function function;
    bool on_fiber; /* an activity that never blocks */
    void *arg;     /* the program's */
    size_t stack_size;
    hf_memo memo;          /* of an activity; memo.ops NULL = none */
    hf_wf_at_rest at_rest; /* of a workflow; NULL = none */
    void *at_rest_arg;
} hf_function_entry;

enum { HF_WF_BUCKETS = 1024, HF_THROTTLE_MAX_SECONDS = 60 };

/* Runs in memory. Everything under `lock`. */
typedef struct hf_wf_cache {
    hf_spin lock;
    hf_list buckets[HF_WF_BUCKETS]; /* hf_wf.bucket, by the hash of the run id */
    hf_list lru;                    /* hf_wf.lru, least recently used first */
    hf_list stuck;                  /* hf_wf.bucket of runs that were given up and have not ended; not in the table */
    size_t count;
    size_t bytes;      /* sum of the memory that the runs have reported */
    bool is_closed;    /* stopping: runs end after their step */
    int64_t look_ns;   /* mono: when the keeper looks for idle runs; 0 = it has no date */
    size_t given_back; /* bytes of runs that were released because they were idle, since the heap was trimmed */
    uint64_t released; /* runs that were told to end, so far */
} hf_wf_cache;

/* Where the runs of one scheduler get their drivers. Under the cache's lock. See drivers.c. */
typedef struct hf_wf_seat {
    hf_worker *worker;
    hf_list ready; /* hf_wf.ready: runs that want a driver */
    hf_list idle;  /* hf_wait.node: drivers without a run */
    int idle_count;
    hf_dispatcher *on; /* drivers that are forked onto this run on the seat's scheduler */
} hf_wf_seat;

struct hf_worker {
    hf_service *service; /* the guard's: all calls go here */
    hf_guard guard;      /* worker-K4 */
    hf_service
        *given; /* the service that hf_worker_new was given; it counts its workers and has a list of its witnesses */
    hf_runtime *rt;
    bool owns_runtime;
    bool unknown_is_final; /* an activity that it does not have fails for good: a test would wait for ever */
    hf_allocator memory;
    hf_arenas arenas; /* for tasks and steps */
    hf_arena names;   /* memory of the texts that follow, and of the entries */
    hf_str queue;
    hf_str namespace_;
    hf_str identity;
    hf_str sticky_queue; /* queue of the tasks of cached runs; empty without a cache */
    hf_str instance_key; /* names its polls to a service that takes nothing back; else empty */
    hf_list workflows;
    hf_list activities;
    hf_worker_options options; /* with the defaults filled in */
    hf_wf_cache cache;
    hf_witness witness;          /* of its runs, while it runs */
    atomic_uint life;            /* hf_life_state; changed by hf_worker_tell alone */
    atomic_bool is_started;      /* by hf_worker_start: hf_worker_wait or hf_worker_free ends it ... */
    atomic_bool is_waited;       /* ... and one of them has begun to */
    atomic_bool has_pollers;     /* they were forked */
    atomic_bool has_signed_off;  /* it polls no more */
    atomic_int polls_count;      /* polls that are under way, at a service that takes nothing back */
    _Atomic(uint64_t) replays;   /* runs that were made again from their first event, so far */
    _Atomic(uint64_t) conflicts; /* workflow tasks whose code did not do what the history says, so far */
    _Atomic(uint64_t) dropped;   /* fibers of evicted runs that did not return, so far */
    hf_chan *stop;               /* it should stop: a reason, const char * */
    hf_sem *workflow_slots;
    hf_sem *activity_slots;
    hf_sem *local_slots;       /* of local activities: an activity's poller holds a slot while it waits */
    hf_dispatcher *local_pool; /* of local activities: theirs do not wait for threads of the others */
    hf_tempo tempo;            /* of activities */
    hf_dispatcher *pool;       /* activities' threads */
    hf_scope *runs;            /* drivers; open while it runs */
    hf_wf_seat *seats;         /* by the number of the scheduler */
    int seat_count;
    int home;                /* number of the scheduler that new drivers are sent to; set before there are runs */
    hf_scope *jobs;          /* activities */
    hf_chan *ended;          /* while it stops: one of the two below, or of polls_count, has gone down */
    atomic_int runs_count;   /* runs in memory */
    atomic_int jobs_count;   /* activities that have not ended */
    hf_chan *hush;           /* closed: answers that were refused are no longer sent again */
    hf_spin local_lock;      /* between runs and their local activities (local.h) */
    hf_spin busy_lock;       /* of the next four */
    hf_list busy;            /* activities that have not ended, for reports */
    int unsaid_count;        /* answers of activities that were given up while it stopped */
    hf_status unsaid_status; /* status with which the service refused the last such answer ... */
    char unsaid_why[HF_MESSAGE_LEN_MAX]; /* ... and its message */

    /* keeper.c */
    hf_thread *keeper;
    hf_spin signals_lock;   /* held by the keeper while it looks, and by the fiber that closes the signals */
    hf_os_signals *signals; /* .stop_on arrives here; NULL = none was asked for, or the worker stops */
    bool listens;      /* the keeper looks for the signal, too: a workflow keeps a thread, maybe the one that waits */
    hf_sched *near;    /* of the fiber that called hf_worker_run, where work begins; NULL = a plain thread called */
    atomic_int owners; /* the caller, and the keeper while there is one: the last frees the worker */
    hf_word word; /* the keeper sleeps on it and is woken when the worker should stop, is over, or a fiber is stuck */
    _Atomic(int64_t) stop_ns; /* mono: when it was told to stop; 0 = it was not */
    int64_t started_ns;       /* mono */
    size_t trim_seen; /* the keeper: bytes of the release after which it will trim the heap; 0 = it has no reason to */
    int64_t trim_first_ns;         /* mono: since when */
    int64_t trim_ns;               /* mono: when it does, if no more is released until then */
    int64_t trimmed_ns;            /* mono: when it has done so */
    int64_t hushed_ns;             /* the keeper: since when `hush` is closed; 0 = it is not */
    hf_chan *over;                 /* hf_worker_run may return */
    hf_status status;              /* why it stopped by itself */
    atomic_bool has_given_up;      /* that was logged */
    _Atomic(int64_t) quiet_ns;     /* mono: until then failing polls are not logged again */
    hf_status result;              /* what hf_worker_run returns */
    char why[HF_MESSAGE_LEN_MAX];  /* its message */
    char left[HF_MESSAGE_LEN_MAX]; /* the message if work was left behind */
};

/* keeper.c: reports an event of the worker's life. Returns the actions (life.h) that the caller must do. */
unsigned hf_worker_tell(hf_worker *worker, hf_life_event event);
static inline hf_life_state hf_worker_life(const hf_worker *worker)
{
    return (hf_life_state)atomic_load(&worker->life);
}

/* Stops a worker that hf_worker_start has started, and waits for it; then returns what hf_worker_wait would return.
 * HF_ERR_MISUSE without `*ret_is_over`: another call waits for it, or hf_worker_run has it. */
hf_status hf_worker_end(hf_worker *worker, bool *ret_is_over);
/* One owner less; the last one frees it. */
hf_status hf_worker_release(hf_worker *worker);
/* Pauses before an answer is sent again. False: it must not be sent again. */
bool hf_worker_may_try_again(hf_worker *worker, int64_t pause);
/* A shield without a bound: the waits inside have bounds of their own. Fails: HF_ERR_NOMEM. */
hf_status hf_worker_shield_open(hf_runtime *rt, hf_shield **ret_shield);
/* Something has happened that the keeper is to look at. */
void hf_worker_ring(hf_worker *worker);
/* Whether this process may call the service: a process that fork() made may not. Fails: HF_ERR_MISUSE. */
hf_status hf_worker_may_ask(const hf_service *service);
/* Adds an activity; `like` has what is kept beside the name. Fails: as hf_worker_add_activity. */
/* Before it runs: forgets the activity of this name, if it has one. */
void hf_worker_forget_activity(hf_worker *worker, const char *name);
hf_status hf_worker_add_function(hf_worker *worker, const char *name, const hf_function_entry *like, const char *verb);
const hf_function_entry *hf_function_find(const hf_list *entries, hf_str name);
/* Before the worker runs. Fails: HF_ERR_NOT_FOUND: there is no such workflow. */
hf_status hf_worker_at_rest(hf_worker *worker, const char *name, hf_wf_at_rest hook, void *arg);
/* Changes the number of drivers or activities, and wakes the fiber that waits for their end. */
void hf_worker_count(hf_worker *worker, atomic_int *which, int delta);
/* The worker cannot continue and stops with this status. Any of its fibers may call it. */
void hf_worker_give_up(hf_worker *worker, hf_status status, const char *why);
static inline void hf_worker_call_init(hf_worker *worker, hf_call *call, hf_method method, const void *request,
                                       hf_arena *arena)
{
    (void)worker;
    hf_call_init(call, method, request, arena, NULL);
    call->in_process = true;
    call->run_ahead = true;
}

/* verbs.c: the payloads that a workflow's fibers own, if the caller is one of them; NULL elsewhere. */
hf_payload_bag *hf_wf_self_payloads(void);

/* note.c: for hf_note_prefix_with. */
bool hf_wf_note_prefix(char *fields, size_t capacity);

/* ---- poller.c, activity.c ---------------------------------------------------------------------------------------- */

/* The body of a poller; it ends when it is canceled. */
typedef struct hf_poller_seat {
    hf_worker *worker;
    bool is_sticky; /* workflow pollers: which queue */
} hf_poller_seat;
hf_status hf_poll_workflows(void *seat);
hf_status hf_poll_activities(void *seat);

/* Activities that have not ended: those whose function runs, and those whose function has returned and whose result
 * is being sent. */
typedef struct hf_activity_counts {
    int running;
    int answering;
    int unsaid; /* ended while the worker stopped, and the service did not take the result */
} hf_activity_counts;
hf_activity_counts hf_activity_count(hf_worker *worker);
/* Logs each activity whose function still runs, by name. */
void hf_activity_report(hf_worker *worker, const char *event);
/* The watchdog looks after a pool of the worker. Fails: HF_ERR_NOMEM, HF_ERR_LIMIT. */
hf_status hf_activity_watch_pool(hf_worker *worker, hf_dispatcher *pool);
/* The worker stops, and cancels its activities now: they are told that this is the reason. */
void hf_activity_note_stop(hf_worker *worker);
/* Activities whose function runs; and those of them whose slot went to another one, because they are zombies. */
void hf_activity_tally(hf_worker *worker, uint64_t *ret_running, uint64_t *ret_zombies);
/* Called by the keeper when a fiber may have become a zombie: frees the slot of an activity on it. */
void hf_activity_see_zombies(hf_worker *worker);
/* Starts an activity. Takes the task, the arena it lies in and a slot, also on failure; the slot is free again when
 * the activity has ended. Fails: HF_ERR_NOMEM. */
hf_status hf_activity_begin(hf_op *op, hf_worker *worker, hf_arena *arena,
                            hf_pb_poll_activity_task_queue_response *task);

/* ---- A workflow task that a poll brought ------------------------------------------------------------------------- */

typedef struct hf_wtask {
    hf_node node;   /* in a run's mailbox */
    hf_arena arena; /* memory of everything about the task, `task` included; freed with it */
    const hf_pb_poll_workflow_task_queue_response *task;
    bool is_ahead;     /* it may have come before its start was durable (service-V2) */
    hf_arena steps[2]; /* decoded events of the step at hand, and of what follows it: history.c */
    hf_list pages;     /* of history, that were asked for */
} hf_wtask;

hf_wtask *hf_wtask_new(hf_worker *worker); /* NULL = out of memory */
/* history.c: frees the pages whose last event comes before this one. */
void hf_wf_pages_free(hf_worker *worker, hf_list *pages, int64_t before);
void hf_wtask_free(hf_worker *worker, hf_wtask *task);

/* ---- drivers.c --------------------------------------------------------------------------------------------------- */

hf_status hf_wf_seats_open(hf_worker *worker); /* Fails: HF_ERR_NOMEM */
hf_status hf_wf_seats_fill(hf_worker *worker); /* when worker->runs is open. Fails: as hf_fork */
void hf_wf_seats_close(hf_worker *worker);     /* accepts seats that were opened in part */

/* ---- cache.c ----------------------------------------------------------------------------------------------------- */

void hf_wf_cache_init(hf_wf_cache *cache);
/* Gives the task to its run, and makes the run if it is not in the cache. Takes `task`. Fails: HF_ERR_NOMEM. */
hf_status hf_wf_cache_post(hf_worker *worker, hf_wtask *task);
/* A step of a run that does not yield, with all that is needed to answer it. In the arena of hf_wf_cache_give_up. */
typedef struct hf_stuck_step {
    hf_str id;
    hf_str run_id;
    hf_str token;
    int attempt;
    bool is_query;    /* the task of a query */
    bool has_queries; /* which came with it, and fail with it if it is not deterministic */
    int seat;         /* of the run: where its fiber is */
    int64_t since_ns; /* mono */
} hf_stuck_step;
/* Finds a run whose turn began before `before_ns` and gives it up: it leaves the table, so that its next task is played on a
 * new fiber, and the caller must answer its step. Tasks in its mailbox are moved to `left`, and are the caller's. Until it calls
 * hf_worker_count(worker, &worker->runs_count, -1), the worker does not end. False: there is none, or no memory. */
bool hf_wf_cache_give_up(hf_worker *worker, int64_t before_ns, hf_arena *arena, hf_stuck_step *ret_step, hf_list *left);
/* run.c: what becomes of a task that its run does not play (worker-K6).
 * The run that takes the place of its own plays it. Slots stay taken. A worker that stops returns it, if it can. */
void hf_wf_pass_on(hf_worker *worker, hf_list *tasks);
/* Frees a task that nobody here will play. The next poll gets it; a service that takes nothing back is told that it failed, because
 * the worker has no memory for it (HF_ERR_NOMEM), stops (HF_ERR_CLOSED) or has no thread for it (HF_ERR_TIMEOUT). */
void hf_wf_return(hf_worker *worker, hf_wtask *task, hf_status why);
/* The same for tasks of a mailbox, whose slots are free again. */
void hf_wf_return_all(hf_worker *worker, hf_list *tasks, hf_status why);
/* How many runs are in the code of their workflow, or were given up because they did not come back from it. */
int hf_wf_cache_in_code(hf_worker *worker);
/* Logs each run that is in the middle of a step, by name. */
void hf_wf_cache_report(hf_worker *worker, const char *event);
/* reach.c: hf_witness.pin and hf_witness.cancel. */
void *hf_activity_pin(hf_witness *witness, hf_str namespace_, hf_str run_id, hf_str activity_id);
void hf_activity_cancel(void *pinned);
/* Tells a witness about a run that is in memory and not in a step. */
void hf_wf_cache_look(hf_witness *witness, hf_str namespace_, hf_str run_id, hf_insight *insight);
/* Called by the driver around a step. hf_wf_cache_leave_step returns whether the driver must still answer the step;
 * a lost run is given up from then on, as hf_wf_cache_give_up does it. */
void hf_wf_cache_enter_step(hf_wf *wf, const hf_wtask *task);
bool hf_wf_cache_leave_step(hf_wf *wf, bool is_lost);
/* Called by the driver after a step: the run was used just now, and uses `bytes` of memory. Runs beyond the bounds
 * of the cache are told to end. */
void hf_wf_cache_touch(hf_wf *wf, size_t bytes);
/* Called by the keeper: runs that have waited for .idle_timeout are told to end. Returns when it is to look again;
 * INT64_MAX = when it is rung for. */
int64_t hf_wf_cache_release_idle(hf_worker *worker, int64_t now_ns);
/* Bytes that idle runs have given back since the last call with `clears`. */
size_t hf_wf_cache_given_back(hf_worker *worker, bool clears);
/* Called by the driver before it ends, also if the run was taken out before. */
void hf_wf_cache_remove(hf_wf *wf);
/* Tells all runs to end after the step they are at, and runs that come later, too. */
void hf_wf_cache_close(hf_worker *worker);
bool hf_wf_cache_is_closed(hf_worker *worker);

#endif
