/* Dispatchers inside the library. See pool.c and serial.c. */
#ifndef HF_FIBER_DISPATCH_H
#define HF_FIBER_DISPATCH_H

#include "fiber/sched/wait.h"

typedef enum hf_dispatcher_kind {
    HF_DISPATCH_POOL,
    HF_DISPATCH_VIEW,
    HF_DISPATCH_SERIAL,
    HF_DISPATCH_CREW
} hf_dispatcher_kind;

/* Work for a pool thread. Embedded in the call or branch. */
typedef struct hf_pool_task hf_pool_task;
struct hf_pool_task {
    hf_node node;       /* in a queue, under the pool's lock */
    hf_dispatcher *via; /* pool or view that it was given to */
    bool in_pool;       /* in the pool's queue, not in the view's */
    /* On a pool thread; calls hf_pool_done before it tells who waits, and the task may be gone when it returns. */
    void (*run)(hf_pool_task *task, hf_fiber *thread);
};

/* What the watchdog wants to know about the branch of a pool thread. In the thread, whose branches come and go. See watch_pool.c. */
typedef struct hf_watchdog_post {
    hf_node node;                              /* in watch->fresh until the monitor has taken it; under posts_lock */
    atomic_bool is_on;                         /* its branch was canceled: the monitor knows, or is about to */
    _Atomic(struct hf_watchdog_notes *) notes; /* the monitor's; NULL = it has none, or no more */
    hf_fiber *thread;                          /* where this is */
    const struct hf_watchdog_ops *ops;         /* of the pool */
    void *arg;                                 /* of the branch */
    int64_t since_ns;                          /* it was canceled, by the environment's clock */
    bool is_extra;                             /* the pool has a thread more because of it */
} hf_watchdog_post;

/* What a branch on a pool needs: a place in its queue. */
typedef struct hf_branch_extra {
    hf_branch *branch;
    hf_pool_task task;
} hf_branch_extra;

struct hf_dispatcher {
    hf_spin lock; /* of a pool: also guards its views */
    hf_dispatcher_kind kind;
    hf_runtime *rt;
    const char *name;
    hf_dispatcher *pool; /* view: whose threads it uses; pool: itself */
    int limit;           /* pool: threads; view: tasks at once */
    int64_t queue_max;
    int64_t queued;           /* waiting here */
    hf_list queue;            /* tasks that wait */
    int running;              /* view, serial: given to the pool or running */
    atomic_int branches;      /* forked on it, and their end is not known at home yet */
    hf_branch *branches_head; /* serial: branches that wait */
    hf_branch *branches_tail;
    /* pool */
    const struct hf_watchdog_ops *watch_ops; /* canceled branches are watched (watch.h); NULL = they are not */
    hf_span idle;
    int extra; /* of `limit`: for zombies */
    int threads;
    int working;    /* threads that run tasks */
    int sleeping;   /* threads without work */
    bool standby;   /* one thread looks after the queue, or is on its way to */
    bool appointed; /* a sleeping thread is to become the standby */
    bool stopping;
    uint64_t pushed;      /* tasks ever queued */
    uint64_t taken;       /* tasks ever taken out */
    atomic_uint arrivals; /* as pushed, for a thread that looks without the lock */
    int luck;             /* whether looking around before a sleep has paid lately; 0 = it has not */
    unsigned unlucky;     /* times that it was not even tried */
    hf_word word;         /* threads sleep on it */
    struct hf_pool_thread *living;
    struct hf_pool_thread *dead; /* ended, to be joined */
    hf_node pools;               /* in rt->pools; not of the default pool */
};

/* Gives a task to a pool or view. Fails: HF_ERR_LIMIT (queue_max, or no thread could be started and none is there). */
hf_status hf_pool_submit(hf_dispatcher *dispatcher, hf_pool_task *task);
/* On the pool's thread, at the end of a task and before anybody is told: who learns of the end may free the dispatcher. */
void hf_pool_done(hf_dispatcher *via);
/* Takes a task back that no thread has begun. */
bool hf_pool_withdraw(hf_pool_task *task);
/* A pool thread finds the branch it runs interrupted, and stays until nobody holds it: see fiber-P3. */
void hf_pool_thread_pin(hf_fiber *thread);
void hf_pool_thread_unpin(hf_fiber *thread);
void hf_pool_thread_settle(hf_fiber *thread); /* by the thread itself: waits until unpinned */
hf_watchdog_post *hf_pool_thread_watched(hf_fiber *thread);
hf_thread *hf_pool_thread_handle(hf_fiber *thread);
/* A thread more, because this one will not come back soon; and one less, because it did. Widening fails at
 * HF_POOL_ZOMBIES_MAX. The thread runs a branch of the pool, or is pinned. */
bool hf_pool_widen(hf_fiber *thread);
void hf_pool_narrow(hf_fiber *thread);
void hf_pool_free(hf_dispatcher *pool); /* joins its threads */
/* NULL: out of memory. */
hf_dispatcher *hf_dispatcher_make(hf_runtime *rt, const hf_dispatcher_options *options, hf_dispatcher_kind kind);
void hf_serial_start(hf_sched *sched, hf_branch *branch);
void hf_serial_ended(hf_sched *sched, hf_branch *branch);

#endif
