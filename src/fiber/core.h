/* The nouns of the runtime and how they hang together. Internal to src/fiber.
 *
 *   hf_runtime -- hf_sched (one per fiber thread) -- ready fibers, unstarted jobs, alarms, inbox
 *        |                                              |
 *        +-- root scopes (owned by plain threads)       +-- hf_fiber (a stack) -- hf_branch (a node of the tree)
 *                 |                                                                 |
 *                 +-- hf_scope -- children: hf_branch ... -- each job's fiber -- its open scopes, inner to outer
 *
 * Ownership (F1): a scope belongs to its home scheduler. Its list, counters, policy and cancel state are touched on the
 * home's thread only; everybody else posts a message to the home's inbox. No scope has a lock.
 * F2: a fiber that has run stays with its scheduler. Waking it means putting it into that scheduler's ready list, directly
 * at home, through the inbox from elsewhere. A woken fiber can therefore never run before it has parked.
 * F3: whoever waits is linked to what it waits for under that object's lock; unlinking it is claiming it, and only who
 * claimed it may wake it. Cancel and timeout claim the same way, on the home's thread.
 * F4: in user code `in_lib` of the running fiber is 0 and nobody is in the middle of anything; see safepoint.h.
 * F5: a wake-up or message is the sender's last access to whatever it is about, the runtime included: the receiver may end at
 * once. The runtime joins its own threads before it goes, and awaits those from outside that are still ringing its bell
 * (`guests`; base/latch.h has the reasons). */
#ifndef HF_FIBER_CORE_H
#define HF_FIBER_CORE_H

#include "base/canary.h"
#include "base/current.h"
#include "base/env.h"
#include "base/latch.h"
#include "base/list.h"
#include "base/spin.h"
#include "base/switch.h"
#include "env/exceptions.h"
#include "fiber/fail.h"
#include "fiber/sched/alarm.h"
#include "fiber/sched/linger.h"

#include <holdfast/holdfast.h>

typedef struct hf_fiber hf_fiber;
typedef struct hf_crew hf_crew;
typedef struct hf_msg hf_msg;
typedef struct hf_wait hf_wait;
typedef struct hf_stack_class hf_stack_class;
typedef struct hf_fd_table hf_fd_table;
typedef struct hf_watch hf_watch;
typedef struct hf_names hf_names;

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

/* A closure for another scheduler. Embedded in what it is about; per sender first in, first out. */
struct hf_msg {
    hf_msg *next;
    void (*run)(hf_sched *sched, hf_msg *msg);
};

/* ---- Cancellation ------------------------------------------------------------------------------------------------ */

/* Whether this node of the tree is canceled, and why. Written at home only, `canceled` last. */
typedef struct hf_cx {
    atomic_bool canceled;
    bool inherited;            /* a cancel from further out arrived: hf_join does not clear it */
    uint8_t cause;             /* hf_cause */
    const char *reason;        /* who or what; borrowed, never NULL once canceled */
    const hf_failure *failure; /* of the sibling that failed, kept by the scope; or NULL */
} hf_cx;

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

typedef enum hf_branch_state {
    HF_BRANCH_NEW,     /* not started: a node without a stack */
    HF_BRANCH_DELAYED, /* waits for its alarm */
    HF_BRANCH_RUNNING, /* has a fiber, or a pool thread */
    HF_BRANCH_DONE
} hf_branch_state;

/* Three cache lines: a job that is forked, runs and ends touches the first two. A free job is clean (hf_branch_free). */
struct hf_branch {
    _Alignas(64) hf_node siblings; /* in scope->children while not done, in scope->kept with a handle */
    hf_scope *scope;
    hf_body body;
    void *arg;
    hf_fiber *fiber;              /* while running */
    _Atomic(hf_sched *) at;       /* scheduler that runs it; NULL = not started, or on a pool */
    atomic_bool cancel_requested; /* cx.cause and cx.reason are set; seen by who starts it */
    uint8_t state;                /* hf_branch_state */
    uint8_t stack_class;
    bool keep;       /* a handle was given out */
    bool is_delayed; /* delay_ns is set */
    bool pinned;     /* cancel_msg is under way: not freed before it is back */
    union {
        hf_branch *next;       /* in a queue of unstarted jobs, a free list */
        hf_sched *cancel_home; /* while pinned: where cancel_msg returns to; the scope may be gone by then */
    };
    hf_status status;
    union {
        hf_failure_box *failure; /* owned; once it has started */
        hf_branch *prev;         /* in a queue of unstarted jobs */
    };
    void (*drop)(void *arg);
    hf_dispatcher *on; /* pool or serial; NULL = fiber threads */
    const char *name;  /* borrowed */
    uint64_t index;    /* in fork order; set at home */
    union {
        int64_t born_ns;  /* by the coarse clock of the scheduler that counted it */
        int64_t delay_ns; /* before: how long to wait, for a job that is to be delayed */
    };
    hf_cx cx;
    union {
        hf_msg msg;     /* fork from elsewhere, completion from elsewhere */
        hf_alarm alarm; /* while delayed */
    };
    hf_msg cancel_msg; /* cancel on its way to where the job runs, and the answer; else links a cancel's walk */
    struct hf_branch_extra *extra; /* place in a pool's queue; NULL for most */
};
_Static_assert(sizeof(hf_branch) == 192, "a queued job must stay small");

/* ---- Scopes ------------------------------------------------------------------------------------------------------ */

struct hf_scope {
    hf_cx cx;
    hf_runtime *rt;
    hf_sched *home;
    hf_fiber *owner;
    hf_scope *outer;  /* next open scope of the same owner */
    hf_cx *parent_cx; /* of outer, of the owner's job, or of the runtime */
    hf_list children; /* jobs that are not done */
    hf_list kept;     /* done jobs with a handle */
    hf_join_policy policy;
    hf_tally tally;            /* forked, running, ok, failed, canceled */
    hf_wait *joiner;           /* the owner, in join or close */
    hf_failure_box *first;     /* failure that hf_join reports; owned */
    hf_failure_box **failures; /* in order of arrival, HF_SCOPE_FAILURES_MAX at most; owned */
    size_t failure_count;
    hf_alarm alarm;              /* own deadline */
    hf_instant deadline;         /* the nearest around, own one included */
    int64_t timeout_ns;          /* own timeout, for the sentence */
    const char *deadline_reason; /* of a cancel by the own deadline; the name, unless the owner knows better */
    bool own_deadline;           /* alarm was needed: own deadline is the nearest */
    bool deadline_fired;         /* it ended children: hf_join says so */
    bool deadline_passed;        /* it is why the scope is canceled: who is forked now ends by it too */
    uint8_t ended_cause;         /* hf_cause that the last join cleared, for its sentence */
    bool is_shield;
    bool by_thread; /* owned by a plain thread or pool thread */
    bool closing;
    int64_t jobs_max;
    hf_dispatcher *on;
    struct hf_binding *locals; /* what children start with */
    const char *name;
    int64_t opened_ns;
    uint64_t id;       /* in dumps and traces */
    hf_node roots;     /* in rt->roots when by_thread */
    hf_msg cancel_msg; /* cancel from elsewhere */
    atomic_bool cancel_posted;
    atomic_bool cancel_inherited; /* it came from further out */
    hf_cause cancel_cause;
    const char *cancel_reason;
    const char *ended_reason;
    atomic_uint pending; /* messages about this scope that are under way */
};

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

typedef struct hf_wait_kind {
    const char *verb; /* in dumps: "recv" */
    /* Claims the waiter for cancel or timeout: unlinks it under the object's lock. False: somebody else was first.
     * NULL: cannot be aborted. */
    bool (*abort)(hf_wait *wait);
} hf_wait_kind;

/* Lives on the waiter's stack from before it is linked until after it was woken. */
struct hf_wait {
    hf_node node; /* in the object's queue; under the object's lock */
    hf_fiber *fiber;
    const hf_wait_kind *kind;
    void *object;
    const char *object_name; /* copied for dumps: the object may be gone by then */
    void *value;             /* of the object's own use: where a message goes */
    int64_t number;          /* of the object's own use */
    hf_alarm alarm;
    hf_status status; /* set by who claimed it */
    hf_word word;     /* plain threads sleep on it: 0 = waiting, 1 = woken */
};

/* ---- Fibers ------------------------------------------------------------------------------------------------------ */

typedef enum hf_fiber_kind {
    HF_FIBER_PLAIN,  /* runs a job on a stack of ours */
    HF_FIBER_IDLE,   /* a scheduler's own context, on its thread's stack */
    HF_FIBER_THREAD, /* stands for a plain thread, or a pool thread */
    HF_FIBER_MEMBER  /* runs a job of a crew: in its driver's turns only (crew.h) */
} hf_fiber_kind;

/* Lies on top of its stack; of a plain thread in thread-local storage. */
struct hf_fiber {
    hf_self self; /* first: what hf_self_get returns */
    hf_context context;
    hf_sched *sched;          /* home; NULL for threads */
    hf_fiber *next;           /* in the ready list, a free list */
    hf_branch *job;           /* NULL for idle and foreign threads */
    hf_scope *scope;          /* innermost open scope or shield */
    hf_cx *cx;                /* what decides whether its waits are canceled */
    hf_wait *wait;            /* while parked */
    volatile uint8_t in_lib;  /* 0 = user code; own thread writes, safepoints read */
    volatile uint8_t lost;    /* its thread was taken away while it ran: set in the signal handler */
    _Alignas(8) uint8_t kind; /* hf_fiber_kind; apart from in_lib: a wide load over a byte just stored would stall */
    uint8_t stack_class;
    uint8_t hook_depth;     /* inside a hook: must not wait; HF_HOOK_AWAY per hook of a scope, 1 for a result hook */
    bool is_evicted;        /* a member whose crew was evicted: every wait fails */
    bool is_made;           /* its context exists: it rests in runner_main */
    bool is_told;           /* its stack was found nearly full once; the monitor's */
    uint16_t evicted_calls; /* refused since the eviction began; see strand.h */
    hf_status last_status;  /* of the last failure when it has no box */
    const char *last_where;
    hf_failure_box *failure;       /* last failure; owned; of a thread: inside hf_thread_fiber */
    hf_exceptions exceptions;      /* of C++, while it does not run; not of threads */
    hf_msg msg;                    /* wake-up from another scheduler's thread */
    struct hf_binding *locals;     /* innermost binding */
    struct hf_binding *own_locals; /* to be freed with the job */
    char *stack_lo;                /* bounds of the stack, guard excluded */
    char *stack_hi;
    uint64_t id;           /* of the current job, for dumps and reports */
    hf_spin lock;          /* threads: guards scope, cx, wait against a canceling home */
    hf_runtime *rt;        /* NULL for foreign threads */
    hf_fiber *zombie_idle; /* lost: the context to leave the lost thread by */
    unsigned valgrind;     /* id of the registered stack */
    hf_crew *crew;         /* of a member; NULL for all others */
    hf_node members;       /* in crew->members */
};

/* A plain or pool thread as a waiter. Its failure is stored flat, so that nothing has to be freed when it ends. */
typedef struct hf_thread_fiber {
    hf_fiber fiber;
    hf_failure_box box; /* its last failure; not counted; with a cause only while it runs a job */
    hf_runtime *home;   /* of a pool thread: whose pool; NULL for foreign threads */
    hf_sched *near;     /* home of the scopes that it opens; NULL = any */
} hf_thread_fiber;

/* ---- Schedulers -------------------------------------------------------------------------------------------------- */

typedef struct hf_counters {
    uint64_t forks, joins, switches, steals, wakes_remote, fibers /* with a stack, now */, jobs_done, scopes_opened,
        scopes_closed, stranded;
} hf_counters;

/* Hooks of a scope run on whatever fiber is at home. What they raise is theirs: the fiber gets its own last failure back. */
enum { HF_HOOK_AWAY = 2 };
typedef struct hf_hook_kept {
    bool is_kept;
    hf_failure_box *failure;
    hf_status last_status;
    const char *last_where;
} hf_hook_kept;

/* Unstarted jobs: see runq.h. */
typedef struct hf_runq {
    _Alignas(64) hf_spin lock; /* taken only where there are thieves */
    atomic_uint count;
    hf_branch *front;
    hf_branch *back;
    hf_branch *fresh; /* the newest fork of the owner's fresh_turn, or NULL */
    uint64_t taken;   /* ever: the monitor sees by it whether the queue moves */
} hf_runq;

struct hf_sched {
    hf_runtime *rt;
    hf_env *env;
    hf_fiber *current;    /* who runs; its in_lib says whether it is in user code */
    hf_fiber *ready_head; /* fibers that have run and can go on, first in first out */
    hf_fiber *ready_tail;
    unsigned tick; /* turns taken */
    int index;
    bool multi;          /* there are thieves */
    bool has_point;      /* simulated: scheduling points matter */
    uint8_t stack_class; /* default */
    hf_word *fork_marker;
    hf_exceptions *exceptions; /* of C++, on the thread that runs it; NULL = the process has none */
    int luck;                  /* whether looking around before a sleep has paid lately; 0 = it has not */
    hf_linger linger;          /* whether to wait for an answer of a neighbour before a sleep */
    hf_sched *called;          /* whom it called last, and so expects an answer from; NULL = nobody yet */
    int64_t late_ns; /* from the neighbour's call to the end of its last sleep; 0 = it did not sleep, or no neighbour */
    int64_t coarse_ns;        /* clock as of the last look */
    hf_fiber *free_fibers[3]; /* stacks by class */
    unsigned free_fiber_count[3];
    hf_branch *free_jobs;
    unsigned free_job_count;
    hf_scope *free_scopes;
    hf_heap alarms; /* of hf_alarm.pos */
    hf_counters counters;
    hf_fiber idle;          /* context of the thread itself */
    hf_fiber *left;         /* who was left by the last switch (for ASan) */
    hf_hook_kept hook_kept; /* of the fiber on which a hook failed */
    hf_poller *poller;
    int fd_count;          /* descriptors watched here */
    hf_names *names;       /* scope durations by name */
    hf_thread *thread;     /* NULL when hosted */
    uint64_t waited_taken; /* the monitor's last sample of jobs.taken */
    unsigned fresh_turn;   /* turn in which jobs.fresh was forked */
    unsigned budget;       /* hosted: picks left in this turn; the host's loop must have its turn, too */
    _Alignas(64) _Atomic(hf_msg *) inbox;
    atomic_uint sleeping;             /* 1 while it is in, or about to enter, the poller */
    atomic_uint stop_request;         /* safepoint wanted */
    atomic_int core;                  /* on which it last began to look or to work; -1 = not known */
    atomic_int_least64_t called_ns;   /* when a neighbour ended its sleep; 0 = nobody, or somebody else; see linger.h */
    atomic_int_least64_t called_late; /* late_ns of that neighbour */
    atomic_uint job_waited;           /* the monitor saw the oldest job wait for a tick */
    hf_runq jobs;                     /* unstarted */
    hf_branch *interrupt_head; /* canceled, still to be interrupted, before anybody else runs here; see cancel.c */
    hf_branch *interrupt_tail;
    hf_msg interrupt_msg;
};

typedef enum hf_turning {
    HF_TURNING_NOBODY,
    HF_TURNING_WAITER, /* a plain thread, while it waits for something */
    HF_TURNING_HOST    /* somebody in hf_runtime_turn */
} hf_turning;

struct hf_runtime {
    hf_env *env;
    const char *name;
    hf_allocator allocator;
    hf_log_sink log;
    void *log_state;
    hf_fatal_hook fatal;
    void *fatal_state;
    int sched_count;
    bool hosted; /* no threads of its own */
    hf_sched **scheds;
    hf_cx root_cx; /* canceled by hf_runtime_stop */
    hf_spin roots_lock;
    hf_list roots;           /* scopes owned by plain threads */
    atomic_int closing;      /* of those, taken off the list by who is still about to close them */
    hf_word *fork_marker;    /* reads 0 in a forked child */
    hf_word stop_word;       /* threads end when 1 */
    atomic_uint round_robin; /* home of the next thread-owned scope */
    atomic_int idlers;       /* schedulers asleep */
    atomic_int searchers;    /* schedulers looking for work to steal */
    _Atomic(uint64_t) ids;   /* for scopes and jobs made off the fiber threads */
    hf_spin depot_lock;      /* what follows, and slabs */
    hf_branch *depot_jobs;
    void *slabs;             /* all memory carved into jobs and scopes, chained */
    hf_stack_class *classes; /* three */
    hf_guard_kind guard_kind;
    int64_t guards;     /* protect guards made so far */
    int64_t guards_max; /* HF_ERR_LIMIT beyond */
    int64_t fibers_max;
    hf_dispatcher *pool; /* default pool */
    hf_spin pools_lock;  /* of the next */
    hf_list pools;       /* those of the user, which have threads, too */
    int pool_max;
    size_t stack_size;
    hf_fd_table *fds;
    hf_watch *watch; /* watchdog and monitor */
    hf_watchdog_options watchdog;
    atomic_bool is_draining;     /* the watchdog's ladder: no new root scopes */
    atomic_bool has_left_behind; /* hf_worker_run gave up waiting for something, which may run still */
    hf_spin world_lock;
    hf_word world_word; /* changes when a stopped world goes on */
    atomic_uint world_stops;
    struct hf_processes *processes; /* child processes; NULL until used */
    hf_spin processes_lock;
    bool reports_overflow;
    atomic_uint turning; /* hosted: hf_turning, who turns it now */
    atomic_bool
        thread_woken; /* hosted: a plain thread was woken, perhaps the one that turns it: it must not fall asleep */
    _Atomic(uint64_t) driver; /* hosted: thread that calls hf_runtime_turn; 0 = none does, whoever waits turns it */
    hf_word turn_word;        /* hosted: changes when a turn ends and when a plain thread is woken */
    _Atomic(uint64_t) pool_calls;
    _Atomic(uint64_t) pool_depth;
    _Atomic(uint64_t) pool_threads;
    hf_spin stranded_lock;                            /* of the next two */
    uint64_t stranded_places[HF_STRANDED_PLACES_MAX]; /* that were logged, by a hash of the stack */
    unsigned stranded_place_count;
    /* Threads from outside that are waking something in here: they still need the runtime when whatever they woke has ended.
     * On a line of its own, which its own threads do not touch. */
    _Alignas(64) hf_guests guests;
};

/* Counters that one thread writes and others may read: aligned words, which our processors never tear. */
#if HF_TSAN
#define HF_BUMP(counter) __atomic_store_n(&(counter), (counter) + 1, __ATOMIC_RELAXED)
#define HF_DROP(counter) __atomic_store_n(&(counter), (counter)-1, __ATOMIC_RELAXED)
#else
#define HF_BUMP(counter) ((counter)++)
#define HF_DROP(counter) ((counter)--)
#endif

/* ---- runtime.c --------------------------------------------------------------------------------------------------- */
void *hf_rt_alloc(hf_runtime *rt, size_t len);          /* zeroed; NULL = out of memory */
void hf_rt_free(hf_runtime *rt, void *ptr, size_t len); /* accepts NULL */
void hf_log(hf_runtime *rt, hf_log_level level, const char *event, const char *format, ...) HF_PRINTF(4, 5);
void hf_fatal(hf_runtime *rt, const char *message, int exit_code);
/* The runtime a verb belongs to: the option, else the running fiber's; NULL with a recorded misuse. */
hf_runtime *hf_rt_choose(hf_op *op, hf_runtime *option);
static inline hf_instant hf_rt_now(const hf_runtime *rt)
{
    return rt->env->ops->now(rt->env);
}
/* A deadline from a timeout option: 0 and HF_SPAN_UNLIMITED never. */
hf_instant hf_rt_deadline(const hf_runtime *rt, hf_span timeout);
/* Whether this process is a fork() of the one that made the runtime. */
static inline bool hf_rt_is_forked(const hf_runtime *rt)
{
    return atomic_load_explicit(rt->fork_marker, memory_order_relaxed) == 0;
}

/* Releases what a job's body would have: its drop runs inside the library, as a hook that must not wait. */
void hf_branch_drop(hf_sched *sched, hf_branch *job);

/* ---- sched.c ----------------------------------------------------------------------------------------------------- */
void hf_sched_init(hf_runtime *rt, hf_sched *sched, int index);
void hf_sched_deinit(hf_sched *sched);
void hf_sched_thread_main(void *arg);
hf_status hf_sched_thread_start(hf_op *op, hf_sched *sched); /* as sched->thread */
/* Runs what is ready; waits until `deadline` when there is nothing. Returns whether anything ran. */
bool hf_sched_turn(hf_sched *sched, hf_instant deadline);
/* Leaves the running fiber (its state is set up by the caller) and runs the next. Returns when it is resumed. */
void hf_sched_leave(hf_sched *sched, hf_fiber *self);
/* Puts the message into the inbox, from any thread; the receiver is kept by whatever the message is about. The scheduler may be
 * gone when this returns. */
void hf_sched_post(hf_sched *sched, hf_msg *msg);
/* The same while a lock is held: a simulation must not let others run here. */
void hf_sched_post_locked(hf_sched *sched, hf_msg *msg);
void hf_sched_drain(hf_sched *sched); /* runs what is in the inbox */
void hf_sched_push_job(hf_sched *sched, hf_branch *job);
/* A fiber bound to the job, which has not run yet. NULL: there was no stack, and the job has ended. */
hf_fiber *hf_sched_start_job(hf_sched *sched, hf_branch *job);
/* Makes a parked fiber that was claimed go on. From any thread. It may have ended, and its runtime be gone, when this
 * returns. */
void hf_fiber_ready(hf_fiber *fiber);
static inline void hf_point_at(const hf_sched *sched, hf_point point, uint64_t detail)
{
    if (HF_UNLIKELY(sched != NULL && sched->has_point)) {
        sched->env->ops->point(sched->env, point, detail);
    }
}
static inline void hf_point_rt(const hf_runtime *rt, hf_point point, uint64_t detail)
{
    if (HF_UNLIKELY(rt->env->ops->point != NULL)) {
        rt->env->ops->point(rt->env, point, detail);
    }
}

/* ---- stack.c ----------------------------------------------------------------------------------------------------- */
hf_status hf_stacks_init(hf_runtime *rt, hf_op *op);
void hf_stacks_deinit(hf_runtime *rt);
uint8_t hf_stack_class_of(size_t stack_size);           /* smallest that fits */
size_t hf_stack_trim(hf_runtime *rt, size_t count_max); /* gives memory of unused stacks back */
bool hf_stack_is_guard(hf_runtime *rt, const void *address);
uint64_t hf_stacks_bytes(hf_runtime *rt);
int64_t hf_stacks_used(hf_runtime *rt); /* fibers that hold one now */
/* Stretches of slots that were carved so far: one more for each call, from `*cursor` (NULL at first) on. False: no more. */
typedef struct hf_stack_stretch {
    char *slots;
    size_t len;      /* bytes of all of them */
    size_t slot_len; /* bytes of one */
} hf_stack_stretch;
bool hf_stack_next_stretch(hf_runtime *rt, int class_index, void **cursor, hf_stack_stretch *ret);
hf_fiber *hf_stack_fiber_at(char *slot, size_t slot_len); /* its control block; NULL = it has none yet */

/* Names that hf_stack_look has told: a few programs' worth. */
typedef struct hf_stack_names {
    char names[32][48];
    int count;
} hf_stack_names;

/* ---- stack_use.c ------------------------------------------------------------------------------------------------- */
/* Bytes of its stack that were ever touched, in whole pages, also by fibers that had this stack before; 0 = not known. */
size_t hf_stack_most(const hf_fiber *fiber);
/* The monitor's: says in the log which fibers have used three quarters of their stacks; once for each name and stack. */
void hf_stack_look(hf_runtime *rt, hf_stack_names *told);

/* ---- job.c ------------------------------------------------------------------------------------------------------- */
hf_branch *hf_branch_new_slow(hf_runtime *rt, hf_sched *sched_or_null);
void hf_branch_free_many(hf_sched *sched);
hf_scope *hf_scope_alloc(hf_runtime *rt, hf_sched *sched_or_null);
void hf_scope_release(hf_runtime *rt, hf_sched *sched_or_null, hf_scope *scope);
void hf_slabs_deinit(hf_runtime *rt);

/* ---- scope.c, fork.c, join.c, cancel.c ------------------------------------------------------------------------- */
/* On the home's thread: a child has ended. */
void hf_scope_child_done(hf_sched *sched, hf_scope *scope, hf_branch *job);
/* A job has ended where it ran: tells its scope. sched NULL: a pool thread. */
void hf_branch_ended(hf_sched *sched, hf_branch *job);
/* Closes scopes that a body left open; true when there were any. */
bool hf_scope_close_leftovers(hf_fiber *self);
hf_status hf_scope_open_on(hf_fiber *self, hf_runtime *rt, hf_scope **ret_scope, const hf_scope_options *options,
                           bool is_shield);
hf_status hf_scope_close_on(hf_fiber *self, hf_scope *scope);
/* On the home's thread: cancels the scope, everything in it, and the owner's waits. */
void hf_scope_mark(hf_sched *sched, hf_scope *scope, hf_cause cause, const char *reason, const hf_failure *failure,
                   bool inherited);
/* On the home's thread of the job's scope. */
void hf_branch_mark(hf_sched *sched, hf_branch *job, hf_cause cause, const char *reason, const hf_failure *failure);
/* Of a thread's scope: nothing of its runtime is around it. A stop reaches the ones inside from there, up to a shield. */
static inline bool hf_scope_is_outermost(const hf_scope *scope)
{
    return !scope->is_shield && scope->owner->job == NULL && (scope->outer == NULL || scope->outer->rt != scope->rt);
}
/* By a verb of another thread: the scope may be closed, and its runtime gone, when this returns. */
void hf_scope_cancel_from(hf_scope *scope, const char *reason);
/* From any thread, also while it holds the lock of a thread, of the runtime's roots or of shared work. */
void hf_scope_cancel_post(hf_scope *scope, hf_cause cause, const char *reason, bool inherited);
/* When a job starts: applies a cancel that came before. */
void hf_branch_start_cx(hf_branch *job);
void hf_cx_inherit(hf_cx *cx, const hf_cx *parent);

/* ---- dispatch (pool.c, serial.c) --------------------------------------------------------------------------------- */
/* Hands a forked job to its dispatcher. Home thread. */
void hf_dispatch_job(hf_sched *sched, hf_branch *job);
/* Binds a forked job to its dispatcher, which stays until the job has let go of it. Fails: HF_ERR_MISUSE, HF_ERR_EVICTED.
 * Any thread. */
hf_status hf_dispatch_hold(hf_fiber *self, hf_branch *job);
void hf_dispatch_let_go(hf_runtime *rt, hf_branch *job); /* home thread, once it has ended; or it was never submitted */
/* A serial job has ended: the next one may start. Home thread of the serial dispatcher's scheduler. */
void hf_dispatch_ended(hf_sched *sched, hf_branch *job);
/* Cancels a job that a dispatcher has: withdraws it, or interrupts its thread. Home thread of its scope; its
 * cancel_requested is set. False: it is a fiber like any other by now. */
bool hf_dispatch_cancel(hf_sched *sched, hf_branch *job);
/* Marks the job that a pool thread runs, and what it has open. The thread cannot end meanwhile: the pool's lock is held. */
void hf_thread_job_interrupt(hf_sched *sched, hf_fiber *thread, hf_branch *job);
/* Puts a job with a delay on its way now. Home thread. */
void hf_delay_end(hf_sched *sched, hf_branch *job);
bool hf_alarm_is_delay(const hf_alarm *alarm); /* a job's, not a wait's or a scope's */
hf_status hf_pool_open(hf_runtime *rt, hf_op *op);
void hf_pool_shutdown(hf_runtime *rt);

/* ---- locals ------------------------------------------------------------------------------------------------------ */
typedef struct hf_binding hf_binding;
struct hf_binding {
    const hf_local *key;
    void *value;
    hf_binding *outer;    /* next older, possibly of an ancestor */
    hf_binding *own_next; /* of the same fiber, for freeing */
};
void hf_locals_drop(hf_fiber *self);

#endif
