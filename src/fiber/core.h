/* The structs of the runtime and how they are connected. Internal to src/fiber.
 *
 *   hf_runtime -- hf_sched (one per fiber thread) -- ready fibers, unstarted branches, alarms, inbox
 *        |                                              |
 *        +-- root scopes (owned by plain threads)       +-- hf_fiber (a stack) -- hf_branch (a node of the tree)
 *                 |                                                                 |
 *                 +-- hf_scope -- children: hf_branch ... -- each one's fiber -- its open scopes, inner to outer
 *
 * fiber-F1  A scope belongs to its home scheduler. Its list, counters, policy and cancel state are touched on the
 *           home's thread only; everybody else posts a message to the home's inbox. No scope has a lock.
 * fiber-F2  A fiber that has run stays with its scheduler. Waking it means putting it into that scheduler's ready
 *           list, directly at home, through the inbox from elsewhere. A woken fiber can therefore never run before
 *           it has parked.
 * fiber-F3  A waiter is linked into the queue of the object that it waits for, under that object's lock. Unlinking a
 *           waiter is claiming it, and only the claimer may wake it. Cancel and timeout claim in the same way, on
 *           the home's thread.
 * fiber-F4  While a fiber is in user code its `in_lib` is 0, and nothing of the library is half done on its thread:
 *           see safepoint.h.
 * fiber-F5  A wake-up or message is the sender's last access to the object that it is about, and to the runtime: the
 *           receiver may end at once. The runtime joins its own threads before it is freed, and awaits threads from
 *           outside that are still ringing its bell (`guests`; base/latch.h has the reasons). */
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
typedef struct hf_watchdog hf_watchdog;
typedef struct hf_scope_names hf_scope_names;

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

/* A closure that runs on another scheduler's thread. Embedded in the object that it is about. Messages of one sender
 * keep their order. */
struct hf_msg {
    hf_msg *next;
    void (*run)(hf_sched *sched, hf_msg *msg);
};

/* ---- Cancellation ------------------------------------------------------------------------------------------------ */

/* Whether this node of the tree is canceled, and why. Written on the home's thread only, `canceled` last. */
typedef struct hf_cx {
    atomic_bool canceled;
    bool inherited;            /* the cancel came from an outer scope: hf_join does not clear it */
    uint8_t cause;             /* hf_cause */
    const char *reason;        /* for people; borrowed, never NULL once canceled */
    const hf_failure *failure; /* failure of the sibling that caused the cancel, owned by the scope; or NULL */
} hf_cx;

/* ---- Branches ---------------------------------------------------------------------------------------------------- */

typedef enum hf_branch_state {
    HF_BRANCH_NEW,     /* not started: a node without a stack */
    HF_BRANCH_DELAYED, /* waits for its alarm */
    HF_BRANCH_RUNNING, /* has a fiber, or a pool thread */
    HF_BRANCH_DONE
} hf_branch_state;

/* Three cache lines. A branch that is forked, runs and ends touches only the first two. A free branch is clean
 * (hf_branch_free). */
struct hf_branch {
    _Alignas(64) hf_node siblings; /* in scope->children while not done, in scope->kept with a handle */
    hf_scope *scope;
    hf_body body;
    void *arg;
    hf_fiber *fiber;              /* while running */
    _Atomic(hf_sched *) at;       /* scheduler that runs it; NULL = it has not started, or runs on a pool */
    atomic_bool cancel_requested; /* cx.cause and cx.reason are set; checked when it starts */
    uint8_t state;                /* hf_branch_state */
    uint8_t stack_class;
    bool keep;       /* a handle was given out */
    bool is_delayed; /* delay_ns is set */
    bool pinned;     /* cancel_msg is under way: the branch is not freed before it is back */
    union {
        hf_branch *next;       /* in a queue of unstarted branches, or in a free list */
        hf_sched *cancel_home; /* while pinned: scheduler to which cancel_msg returns; the scope may be gone by then */
    };
    hf_status status;
    union {
        hf_failure_box *failure; /* owned; valid once it has started */
        hf_branch *prev;         /* in a queue of unstarted branches */
    };
    void (*drop)(void *arg);
    hf_dispatcher *on; /* pool or serial; NULL = fiber threads */
    const char *name;  /* borrowed */
    uint64_t index;    /* in fork order; set at home */
    union {
        int64_t born_ns;  /* when it was counted, by the coarse clock of its home */
        int64_t delay_ns; /* before that: delay until it starts, if is_delayed */
    };
    hf_cx cx;
    union {
        hf_msg msg;     /* fork from elsewhere, completion from elsewhere */
        hf_alarm alarm; /* while delayed */
    };
    hf_msg cancel_msg;             /* a cancel on its way to where it runs, and back; else links the walk of a cancel */
    struct hf_branch_extra *extra; /* place in a pool's queue; NULL for most */
};
_Static_assert(sizeof(hf_branch) == 192, "a queued branch must stay small");

/* ---- Scopes ------------------------------------------------------------------------------------------------------ */

struct hf_scope {
    hf_cx cx;
    hf_runtime *rt;
    hf_sched *home;
    hf_fiber *owner;
    hf_scope *outer;  /* next open scope of the same owner */
    hf_cx *parent_cx; /* that of outer, of the owner's branch, or of the runtime */
    hf_list children; /* branches that are not done */
    hf_list kept;     /* done branches with a handle */
    hf_join_policy policy;
    hf_tally tally;            /* forked, running, ok, failed, canceled */
    hf_wait *joiner;           /* the owner, while it waits in join or close */
    hf_failure_box *first;     /* the failure that hf_join reports; owned */
    hf_failure_box **failures; /* in order of arrival, HF_SCOPE_FAILURES_MAX at most; owned */
    size_t failure_count;
    hf_alarm alarm;              /* own deadline */
    hf_instant deadline;         /* the nearest of its own and those of outer scopes */
    int64_t timeout_ns;          /* own timeout, for error messages */
    const char *deadline_reason; /* reason of a cancel by the own deadline: the name, unless the owner sets another */
    bool own_deadline;           /* the own deadline is the nearest, so the alarm is needed */
    bool deadline_fired;         /* the deadline has canceled children: hf_join reports it */
    bool deadline_passed;        /* the scope is canceled because of it; so are children that are forked now */
    uint8_t ended_cause;         /* hf_cause that the last join cleared, for its error message */
    bool is_shield;
    bool by_thread; /* owned by a plain thread or pool thread */
    bool closing;
    bool is_placed; /* its memory is its owner's (hf_scope_open_in) */
    int64_t branches_max;
    hf_dispatcher *on;
    struct hf_binding *locals; /* bindings that children start with */
    const char *name;
    int64_t opened_ns;
    uint64_t id;       /* in dumps and traces */
    uint32_t number;   /* of a workflow's scope, in its history; 0 = it has none; given by the crew's owner */
    hf_node roots;     /* in rt->roots when by_thread; in rt->parked when it is a crew's and has no owner */
    hf_msg cancel_msg; /* cancel from elsewhere */
    atomic_bool cancel_posted;
    atomic_bool cancel_inherited; /* that cancel came from an outer scope */
    hf_cause cancel_cause;
    const char *cancel_reason;
    const char *ended_reason;
    atomic_uint pending; /* number of messages about this scope that are under way */
};

#define HF_SCOPE_OF_RUN UINT32_MAX /* number of the scope around a workflow's main function */

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

typedef struct hf_wait_kind {
    const char *verb; /* in dumps: "recv" */
    /* Claims the waiter for a cancel or timeout: unlinks it under the object's lock. False: it was claimed already.
     * NULL: the wait cannot be aborted. */
    bool (*abort)(hf_wait *wait);
} hf_wait_kind;

/* A waiter. Lives on its own stack, from before it is linked until after it was woken. */
struct hf_wait {
    hf_node node; /* in the object's queue; under the object's lock */
    hf_fiber *fiber;
    const hf_wait_kind *kind;
    void *object;
    const char *object_name; /* a copy for dumps: the object may be gone by then */
    void *value;             /* for the object's own use: where a message goes */
    int64_t number;          /* for the object's own use */
    hf_alarm alarm;
    hf_status status; /* set by the claimer */
    hf_word word;     /* plain threads sleep on it: 0 = waiting, 1 = woken */
};

/* ---- Fibers ------------------------------------------------------------------------------------------------------ */

typedef enum hf_fiber_kind {
    HF_FIBER_PLAIN,  /* runs a branch on a stack of ours */
    HF_FIBER_IDLE,   /* a scheduler's own context, on its thread's stack */
    HF_FIBER_THREAD, /* stands for a plain thread, or a pool thread */
    HF_FIBER_MEMBER  /* runs a branch of a crew: in its driver's turns only (crew.h) */
} hf_fiber_kind;

/* Lies at the top of its stack; that of a plain thread is in thread-local storage. */
struct hf_fiber {
    hf_self self; /* first: hf_self_get returns its address */
    hf_context context;
    hf_sched *sched;          /* home; NULL for threads */
    hf_fiber *next;           /* in the ready list, or in a free list */
    hf_branch *branch;        /* NULL for idle and foreign threads */
    hf_scope *scope;          /* innermost open scope or shield */
    hf_cx *cx;                /* decides whether its waits are canceled (fiber-C1) */
    hf_wait *wait;            /* while parked */
    volatile uint8_t in_lib;  /* 0 = user code; own thread writes, safepoints read */
    volatile uint8_t lost;    /* its thread was taken away while it ran: set in the signal handler */
    _Alignas(8) uint8_t kind; /* hf_fiber_kind; apart from in_lib: a wide load over a byte just stored would stall */
    uint8_t stack_class;
    union {
        struct {
            uint8_t
                hook_depth; /* > 0 inside a hook, which must not wait: HF_HOOK_AWAY per hook of a scope, 1 for a result */
            bool is_reading; /* in a query, a validator or a condition of a workflow: it must change nothing */
        };
        uint16_t is_narrow; /* not 0: one of the two */
    };
    bool is_evicted;        /* a member whose crew was evicted: every wait fails */
    bool is_made;           /* its context exists: it is at rest in runner_main */
    bool is_told;           /* its stack was reported as nearly full; used by the monitor only */
    uint16_t evicted_calls; /* calls that were refused since the eviction; see strand.h */
    hf_status last_status;  /* status of the last failure, also when it has no box */
    const char *last_where;
    hf_failure_box *failure;       /* last failure; owned; that of a thread is inside hf_thread_fiber */
    hf_exceptions exceptions;      /* C++ state while the fiber does not run; not used for threads */
    hf_msg msg;                    /* wake-up from another scheduler's thread */
    struct hf_binding *locals;     /* innermost binding */
    struct hf_binding *own_locals; /* bindings to be freed when the branch ends */
    char *stack_lo;                /* bounds of the stack, guard excluded */
    char *stack_hi;
    uint64_t id;           /* of the current branch, for dumps and reports */
    hf_spin lock;          /* threads: guards scope, cx and wait against a home that cancels */
    hf_runtime *rt;        /* NULL for foreign threads */
    hf_fiber *zombie_idle; /* while lost: the context by which it leaves the lost thread */
    unsigned valgrind;     /* id of the registered stack */
    hf_crew *crew;         /* of a member; NULL for other fibers */
    hf_node members;       /* in crew->members */
    const char *file; /* of a member: where the verb is called that makes its next command (hf_here); NULL = unknown */
    int line;
};

/* A plain or pool thread as a waiter. When it ends, hf_self_drop_chain frees what its failure has. */
typedef struct hf_thread_fiber {
    hf_fiber fiber;
    hf_failure_box box; /* its last failure; not reference-counted; causes and body are in memory of the process */
    hf_runtime *home;   /* of a pool thread: runtime of the pool; NULL for foreign threads */
    hf_sched *near;     /* home for the scopes that it opens; NULL = any */
} hf_thread_fiber;

/* ---- Schedulers -------------------------------------------------------------------------------------------------- */

typedef struct hf_counters {
    uint64_t forks, joins, switches, steals, wakes_remote, fibers /* with a stack, now */, branches_done, scopes_opened,
        scopes_closed, stranded;
} hf_counters;

/* The last failure of a fiber while a hook of a scope runs on it. Hooks run on any fiber of the home, and a failure
 * that a hook raises is not the fiber's: afterwards the fiber gets its own last failure back. */
enum { HF_HOOK_AWAY = 2 };
typedef struct hf_hook_kept {
    bool is_kept;
    hf_failure_box *failure;
    hf_status last_status;
    const char *last_where;
} hf_hook_kept;

/* Unstarted branches: see runq.h. */
typedef struct hf_runq {
    _Alignas(64) hf_spin lock; /* taken only where there are thieves */
    atomic_uint count;
    hf_branch *front;
    hf_branch *back;
    hf_branch *fresh; /* the newest fork of the owner's fresh_turn, or NULL */
    uint64_t taken;   /* total; the monitor compares it to see whether the queue moves */
} hf_runq;

struct hf_sched {
    hf_runtime *rt;
    hf_env *env;
    hf_fiber *current;    /* the running fiber; its in_lib says whether it is in user code */
    hf_fiber *ready_head; /* fibers that have started and can continue, first in first out */
    hf_fiber *ready_tail;
    unsigned tick; /* turns taken */
    int index;
    bool multi;          /* there are thieves */
    bool has_point;      /* simulated: scheduling points matter */
    uint8_t stack_class; /* default */
    hf_word *fork_marker;
    hf_exceptions *exceptions; /* C++ state of the thread that runs it; NULL = the process has no C++ runtime */
    int luck;                  /* > 0 if searching for work before sleeping has paid lately */
    hf_linger linger;          /* whether to wait for an answer of a neighbour before a sleep */
    hf_sched *called;          /* the scheduler that it called last, and so expects an answer from; NULL = none yet */
    int64_t late_ns; /* from the neighbour's call to the end of its last sleep; 0 = it did not sleep, or no neighbour */
    int64_t coarse_ns;   /* the clock when it was last read */
    uint8_t chance[256]; /* random bytes of the system for hf_random, each given out once: the last chance_left */
    uint32_t chance_left;
    hf_fiber *free_fibers[3]; /* stacks by class */
    unsigned free_fiber_count[3];
    hf_branch *free_branches;
    unsigned free_branch_count;
    hf_scope *free_scopes;
    hf_heap alarms; /* of hf_alarm.pos */
    hf_counters counters;
    hf_fiber idle;          /* context of the thread itself */
    hf_fiber *left;         /* the fiber that the last switch left (for ASan) */
    hf_hook_kept hook_kept; /* last failure of the fiber on which a hook failed */
    hf_poller *poller;
    int fd_count;          /* descriptors watched here */
    hf_scope_names *names; /* scope durations by name */
    hf_thread *thread;     /* NULL when hosted */
    uint64_t waited_taken; /* the monitor's last sample of branches.taken */
    unsigned fresh_turn;   /* turn in which branches.fresh was forked */
    unsigned budget;       /* hosted: picks left in this turn, so that the host's loop gets its turn, too */
    _Alignas(64) _Atomic(hf_msg *) inbox;
    atomic_uint sleeping;             /* 1 while the thread is in the poller, or about to enter it */
    atomic_uint stop_request;         /* another thread wants to stop the world */
    atomic_int core;                  /* the core on which it last began to look or to work; -1 = not known */
    atomic_int_least64_t called_ns;   /* when a neighbour ended its sleep; 0 = none did; see linger.h */
    atomic_int_least64_t called_late; /* late_ns of that neighbour */
    atomic_uint branch_waited;        /* the monitor saw the oldest branch wait for a tick */
    hf_runq branches;                 /* unstarted */
    hf_branch *interrupt_head; /* canceled branches, to be interrupted before any fiber runs here; see cancel.c */
    hf_branch *interrupt_tail;
    hf_msg interrupt_msg;
};

typedef enum hf_turning {
    HF_TURNING_NOBODY,
    HF_TURNING_WAITER, /* a plain thread that waits for something */
    HF_TURNING_HOST    /* a thread in hf_runtime_turn */
} hf_turning;

struct hf_runtime {
    hf_env *env;
    const char *name;
    hf_allocator allocator;
    hf_log_sink log;
    void *log_state;
    hf_fatal_hook fatal;
    bool has_fatal_hook; /* the program gave one */
    void *fatal_state;
    int sched_count;
    bool hosted;      /* no threads of its own */
    bool pin_threads; /* each fiber thread is bound to a core */
    hf_sched **scheds;
    hf_cx root_cx; /* canceled by hf_runtime_stop */
    hf_spin roots_lock;
    hf_list roots;           /* scopes owned by plain threads */
    hf_list parked;          /* root scopes of crews that have no driver; under roots_lock, too */
    atomic_int closing;      /* number of scopes that are off the list but not yet closed completely */
    hf_word *fork_marker;    /* reads 0 in a forked child */
    hf_word stop_word;       /* threads end when 1 */
    atomic_uint round_robin; /* home of the next thread-owned scope */
    atomic_int idlers;       /* schedulers asleep */
    atomic_int searchers;    /* schedulers looking for work to steal */
    _Atomic(uint64_t) ids;   /* last id given to a scope that a thread opened */
    hf_spin depot_lock;      /* guards the depot, slabs and guards */
    hf_branch *depot_branches;
    void *slabs;             /* all memory carved into branches and scopes, chained */
    hf_stack_class *classes; /* three */
    hf_guard_kind guard_kind;
    int64_t guards;     /* guards of the kind PROTECT made so far */
    int64_t guards_max; /* beyond it HF_ERR_LIMIT */
    int64_t fibers_max;
    hf_dispatcher *pool; /* default pool */
    hf_spin pools_lock;  /* guards pools */
    hf_list pools;       /* pools that the user made */
    int pool_max;
    size_t stack_size;
    hf_fd_table *fds;
    hf_watchdog *watch; /* watchdog and monitor */
    hf_watchdog_options watchdog;
    atomic_bool is_draining;     /* the watchdog's ladder: no new root scopes */
    atomic_bool has_left_behind; /* hf_worker_run gave up waiting for something that may still run */
    hf_spin world_lock;
    hf_word world_word; /* changes when a stopped world continues */
    atomic_uint world_stops;
    hf_spin panels_lock;
    hf_list panels;                 /* hf_panel: what depots show in metrics and dumps (watch/panel.h) */
    struct hf_processes *processes; /* child processes; NULL until used */
    hf_spin processes_lock;
    bool reports_overflow;
    atomic_uint turning;      /* hosted: hf_turning */
    atomic_bool thread_woken; /* hosted: a plain thread was woken; if it turns the runtime, it must not sleep */
    _Atomic(uint64_t) driver; /* hosted: thread that calls hf_runtime_turn; 0 = none: threads that wait turn it */
    hf_word turn_word;        /* hosted: changes when a turn ends and when a plain thread is woken */
    _Atomic(uint64_t) pool_calls;
    _Atomic(uint64_t) pool_depth;
    _Atomic(uint64_t) pool_threads;
    hf_spin stranded_lock;                            /* guards the next two */
    uint64_t stranded_places[HF_STRANDED_PLACES_MAX]; /* hashes of stacks that were logged */
    unsigned stranded_place_count;
    /* Threads from outside that are waking something in the runtime: they still need the runtime after the fiber that
     * they woke has ended. On a cache line of its own, which the runtime's threads do not touch. */
    _Alignas(64) hf_guests guests;
};

/* Counters that one thread writes and others may read. They are aligned words, which our processors read and write
 * whole. */
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
/* The fields with which every line of hf_note begins, on the running fiber or thread. False: nothing is written. There is one
 * such function in a process, the worker's. */
typedef bool (*hf_note_prefix)(char *fields, size_t capacity);
void hf_note_prefix_with(hf_note_prefix prefix);
/* The runtime that a verb acts on: the option, else that of the running fiber. NULL: neither fits, and `op` says
 * why. */
hf_runtime *hf_rt_choose(hf_op *op, hf_runtime *option);
static inline hf_instant hf_rt_now(const hf_runtime *rt)
{
    return rt->env->ops->now(rt->env);
}
/* The deadline for a timeout option; 0 and HF_SPAN_UNLIMITED mean never. */
hf_instant hf_rt_deadline(const hf_runtime *rt, hf_span timeout);
/* Whether this process is a fork() of the one that made the runtime. */
static inline bool hf_rt_is_forked(const hf_runtime *rt)
{
    return atomic_load_explicit(rt->fork_marker, memory_order_relaxed) == 0;
}

/* Calls the drop of a branch whose body will not run. Inside the library, as a hook that must not wait. */
void hf_branch_drop(hf_sched *sched, hf_branch *branch);

/* ---- loop.c ------------------------------------------------------------------------------------------------------ */
void hf_sched_init(hf_runtime *rt, hf_sched *sched, int index);
void hf_sched_deinit(hf_sched *sched);
void hf_sched_thread_main(void *arg);
hf_status hf_sched_thread_start(hf_op *op, hf_sched *sched); /* as sched->thread */
/* Runs all ready fibers. If none is ready, waits until `deadline`. Returns whether anything ran. */
bool hf_sched_turn(hf_sched *sched, hf_instant deadline);

/* ---- sched.c ----------------------------------------------------------------------------------------------------- */
/* Leaves the running fiber, whose state the caller has set up, and runs the next one. Returns when the fiber is
 * resumed. */
void hf_sched_leave(hf_sched *sched, hf_fiber *self);
/* Puts the message into the inbox, from any thread. The scheduler stays at least until the message has run; when
 * this returns, it may be gone. */
void hf_sched_post(hf_sched *sched, hf_msg *msg);
/* The same while the caller holds a lock: a simulation does not switch threads here. */
void hf_sched_post_locked(hf_sched *sched, hf_msg *msg);
void hf_sched_drain(hf_sched *sched); /* runs the messages in the inbox */
/* Wakes the scheduler's thread if it sleeps. `by`: the scheduler on whose thread the caller runs, if it is one of the
 * same runtime; else NULL. */
void hf_sched_ring(hf_sched *sched, hf_sched *by);
void hf_sched_push_branch(hf_sched *sched, hf_branch *branch);
/* A new fiber that is bound to the branch and has not run yet. NULL: there was no stack, and the branch has ended. */
hf_fiber *hf_sched_start_branch(hf_sched *sched, hf_branch *branch);
/* Makes a parked fiber ready, after its wait was claimed. From any thread. When this returns, the fiber may have
 * ended, and its runtime may be gone. */
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
size_t hf_stack_trim(hf_runtime *rt, size_t count_max); /* gives the memory of unused stacks back; returns how many */
bool hf_stack_is_guard(hf_runtime *rt, const void *address);
uint64_t hf_stacks_bytes(hf_runtime *rt);
int64_t hf_stacks_used(hf_runtime *rt); /* number of fibers that have a stack now */
/* Walks the stretches of slots that were carved so far. `*cursor` is NULL before the first call. False: there are no
 * more. */
typedef struct hf_stack_stretch {
    char *slots;
    size_t len;      /* bytes of all of them */
    size_t slot_len; /* bytes of one */
} hf_stack_stretch;
bool hf_stack_next_stretch(hf_runtime *rt, int class_index, void **cursor, hf_stack_stretch *ret);
hf_fiber *hf_stack_fiber_at(char *slot, size_t slot_len); /* the control block in a slot; NULL = it has none yet */

/* Names that hf_stack_look has reported. */
typedef struct hf_stack_names {
    char names[32][48];
    int count;
} hf_stack_names;

/* ---- stack_use.c ------------------------------------------------------------------------------------------------- */
/* Bytes of its stack that were ever touched, in whole pages, also by earlier fibers on the same stack; 0 = unknown. */
size_t hf_stack_most(const hf_fiber *fiber);
/* By the monitor: logs the fibers that have used three quarters of their stacks, once for each name and stack. */
void hf_stack_look(hf_runtime *rt, hf_stack_names *told);

/* ---- branch.c ---------------------------------------------------------------------------------------------------- */
hf_branch *hf_branch_new_slow(hf_runtime *rt, hf_sched *sched_or_null);
void hf_branch_free_many(hf_sched *sched);
hf_scope *hf_scope_alloc(hf_runtime *rt, hf_sched *sched_or_null);
void hf_scope_release(hf_runtime *rt, hf_sched *sched_or_null, hf_scope *scope);
void hf_slabs_deinit(hf_runtime *rt);

/* ---- scope.c, fork.c, join.c, cancel.c ------------------------------------------------------------------------- */
/* On the home's thread: a child has ended. */
void hf_scope_child_done(hf_sched *sched, hf_scope *scope, hf_branch *branch);
/* By the thread that ran the branch: it has ended, and its scope is told. sched NULL: a pool thread. */
void hf_branch_ended(hf_sched *sched, hf_branch *branch);
/* Closes the scopes that a body left open. True: there were some. */
bool hf_scope_close_leftovers(hf_fiber *self);
hf_status hf_scope_open_on(hf_fiber *self, hf_runtime *rt, hf_scope **ret_scope, const hf_scope_options *options,
                           bool is_shield);
/* On a member of a crew: a scope without a deadline in memory of the caller's, which must stay until it is closed. For a
 * scope that is open as long as its fiber waits: its stack has room on a page that is there in any case. */
void hf_scope_open_in(hf_fiber *self, hf_scope *room, const char *name);
hf_status hf_scope_close_on(hf_fiber *self, hf_scope *scope);
/* On the home's thread: cancels the scope, everything inside it, and the waits of its owner. */
void hf_scope_mark(hf_sched *sched, hf_scope *scope, hf_cause cause, const char *reason, const hf_failure *failure,
                   bool inherited);
/* The same for one branch, on the thread of its scope's home. */
void hf_branch_mark(hf_sched *sched, hf_branch *branch, hf_cause cause, const char *reason, const hf_failure *failure);
/* Whether a scope that a thread opened is not inside another scope of the same runtime. A stop of the runtime
 * cancels such scopes; those inside follow, up to a shield. */
static inline bool hf_scope_is_outermost(const hf_scope *scope)
{
    return !scope->is_shield && scope->owner->branch == NULL && (scope->outer == NULL || scope->outer->rt != scope->rt);
}
/* From another thread. When this returns, the scope may be closed and its runtime gone. */
void hf_scope_cancel_from(hf_scope *scope, const char *reason);
/* From any thread, also while the caller holds the lock of a thread, of the runtime's roots or of shared work. */
void hf_scope_cancel_post(hf_scope *scope, hf_cause cause, const char *reason, bool inherited);
/* When a branch starts: applies a cancel that came earlier. */
void hf_branch_start_cx(hf_branch *branch);
void hf_cx_inherit(hf_cx *cx, const hf_cx *parent);

/* ---- dispatch (pool.c, serial.c) --------------------------------------------------------------------------------- */
/* Gives a forked branch to its dispatcher. On the home's thread. */
void hf_dispatch_branch(hf_sched *sched, hf_branch *branch);
/* Binds a forked branch to its dispatcher, which is kept until hf_dispatch_let_go. Any thread. Fails: HF_ERR_MISUSE,
 * HF_ERR_EVICTED. */
hf_status hf_dispatch_hold(hf_fiber *self, hf_branch *branch);
void hf_dispatch_let_go(hf_runtime *rt,
                        hf_branch *branch); /* on the home's thread, after its end; or when it was never submitted */
/* A branch has ended on this scheduler: if its dispatcher is serial, the next one may start. */
void hf_dispatch_ended(hf_sched *sched, hf_branch *branch);
/* Cancels a branch that was given to a dispatcher: withdraws it, or interrupts its thread. On the thread of its
 * scope's home, after cancel_requested was set. False: it runs, or will run, on a fiber, and is canceled like one. */
bool hf_dispatch_cancel(hf_sched *sched, hf_branch *branch);
/* Cancels the branch that a pool thread runs, and the scopes that the thread has open. The thread is the caller, or
 * is pinned. */
void hf_thread_branch_interrupt(hf_sched *sched, hf_fiber *thread, hf_branch *branch);
/* Ends the delay of a branch now. On the home's thread. */
void hf_delay_end(hf_sched *sched, hf_branch *branch);
bool hf_alarm_is_delay(const hf_alarm *alarm); /* the delay of a branch, not the deadline of a wait or scope */
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
void hf_locals_drop(hf_fiber *self, const struct hf_binding *until);

#endif
