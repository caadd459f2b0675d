/* Dispatchers inside the library. See pool.c and serial.c. */
#ifndef HF_FIBER_DISPATCH_H
#define HF_FIBER_DISPATCH_H

#include "fiber/sched/wait.h"

typedef enum hf_dispatcher_kind {
    HF_DISPATCH_POOL,
    HF_DISPATCH_VIEW,
    HF_DISPATCH_SERIAL,
    HF_DISPATCH_CREW,
    HF_DISPATCH_HOME /* one scheduler: its branches are not stolen */
} hf_dispatcher_kind;

/* Work for a pool thread. Embedded in a blocking call or a branch. */
typedef struct hf_pool_task hf_pool_task;
struct hf_pool_task {
    hf_node node;       /* in a queue, under the pool's lock */
    hf_dispatcher *via; /* pool or view that it was given to */
    bool in_pool;       /* in the pool's queue, not in the view's */
    /* Runs on a pool thread. Calls hf_pool_done before it wakes anybody; when it returns, the task may be gone. */
    void (*run)(hf_pool_task *task, hf_fiber *thread);
};

/* The watchdog's knowledge of the branch that a pool thread runs. One per pool thread, used for one branch
 * after another. See watch_pool.c. */
typedef struct hf_watchdog_post {
    hf_node node;                              /* in watch->fresh until the monitor has taken it; under posts_lock */
    atomic_bool is_on;                         /* its branch was canceled: the monitor knows, or will know soon */
    _Atomic(struct hf_watchdog_notes *) notes; /* owned by the monitor; NULL = it has none */
    hf_fiber *thread;                          /* the thread that contains this */
    const struct hf_watchdog_ops *ops;         /* of the pool */
    void *arg;                                 /* of the branch */
    int64_t since_ns;                          /* when it was canceled, by the environment's clock */
    bool is_extra;                             /* the pool has one more thread because of it */
} hf_watchdog_post;

/* The additional part of a branch on a pool: its place in the pool's queue. */
typedef struct hf_branch_extra {
    hf_branch *branch;
    hf_pool_task task;
} hf_branch_extra;

/* The threads of a pool. Behind its dispatcher, in the same memory. */
typedef struct hf_pool_staff {
    hf_dispatcher *of;
    hf_span idle;
    int extra; /* how many of `limit` stand for zombies */
    int threads;
    int working;    /* threads that run tasks */
    int sleeping;   /* threads without work */
    bool standby;   /* one thread watches the queue, or will soon */
    bool appointed; /* a sleeping thread is woken to become the standby */
    bool stopping;
    uint64_t pushed;      /* total of tasks queued */
    uint64_t taken;       /* total of tasks taken out */
    atomic_uint arrivals; /* the same as pushed, for a thread that reads it without the lock */
    int luck;             /* > 0 if looking for work before sleeping has paid lately */
    unsigned unlucky;     /* how often that was not even tried */
    hf_word word;         /* threads sleep on it */
    struct hf_pool_thread *living;
    struct hf_pool_thread *dead; /* ended, to be joined */
    hf_node pools;               /* in rt->pools; not of the default pool */
} hf_pool_staff;

/* Every run of a workflow in memory has one: that of its crew. */
struct hf_dispatcher {
    hf_spin lock; /* of a pool: also guards its views */
    hf_dispatcher_kind kind;
    hf_runtime *rt;
    const char *name;
    hf_dispatcher *pool; /* view: the pool whose threads it uses; pool: itself */
    int limit;           /* pool: threads; view: tasks at once */
    int running;         /* view, serial: given to the pool or running */
    int64_t queue_max;
    int64_t queued;           /* tasks that wait here */
    hf_list queue;            /* tasks that wait */
    atomic_int branches;      /* branches that were forked onto it and whose end is not known at home yet */
    hf_branch *branches_head; /* serial: branches that wait */
    hf_branch *branches_tail;
    const struct hf_watchdog_ops *watch_ops; /* pool; not NULL: canceled branches are watched (watch.h) */
    hf_pool_staff *staff;                    /* pool */
    hf_sched *home;                          /* HF_DISPATCH_HOME: where its branches run */
};

/* Gives a task to a pool or view. Fails: HF_ERR_LIMIT (queue_max, or no thread could be started and none is there). */
hf_status hf_pool_submit(hf_dispatcher *dispatcher, hf_pool_task *task);
/* On the pool's thread, at the end of a task and before anybody is told: whoever learns of the end may free the
 * dispatcher. */
void hf_pool_done(hf_dispatcher *via);
/* Takes back a task that no thread has begun. False: a thread has. */
bool hf_pool_withdraw(hf_pool_task *task);
/* A pinned thread does not finish its branch before it is unpinned: see fiber-P3. */
void hf_pool_thread_pin(hf_fiber *thread);
void hf_pool_thread_unpin(hf_fiber *thread);
void hf_pool_thread_settle(hf_fiber *thread); /* by the thread itself: waits until it is not pinned */
hf_watchdog_post *hf_pool_thread_watched(hf_fiber *thread);
hf_thread *hf_pool_thread_handle(hf_fiber *thread);
/* Allows the pool one more thread, because this one will not come back soon, and one less when it has come back.
 * False: there are HF_POOL_ZOMBIES_MAX already. The thread runs a branch of the pool, or is pinned. */
bool hf_pool_widen(hf_fiber *thread);
void hf_pool_narrow(hf_fiber *thread);
void hf_pool_free(hf_dispatcher *pool); /* joins its threads */
/* Onto this dispatcher branches are forked that must run on the scheduler with this number: each gets its stack there and
 * stays. Freed by hf_dispatcher_free. NULL: out of memory. */
hf_dispatcher *hf_home_dispatcher_new(hf_runtime *rt, int index);
/* NULL: out of memory. */
hf_dispatcher *hf_dispatcher_make(hf_runtime *rt, const hf_dispatcher_options *options, hf_dispatcher_kind kind);
void hf_serial_start(hf_sched *sched, hf_branch *branch);
void hf_serial_ended(hf_sched *sched, hf_branch *branch);

#endif
