/* The decisions of the watchdog (docs/promises.md: T13-T18, N1-N3, X12, X13): a pure step from samples to actions. It
 * has no clock, no threads, and no memory but the table that it is given. watch.c and watch_pool.c take the samples
 * and carry out the actions.
 *
 * A slot is a place where code may be stuck:
 *
 *     0 .. sched_count-1      the schedulers' threads
 *     the next HF_LOST_MAX    threads that were lost to their fiber and replaced
 *     the others              branches on threads of a pool that were canceled and have not returned
 *
 * Times are in nanoseconds, of any clock that does not go back. */
#ifndef HF_FIBER_WATCH_POLICY_H
#define HF_FIBER_WATCH_POLICY_H

#include "base/limits.h"

#include <holdfast/runtime.h>

#define HF_LOST_MAX 128            /* lost threads of a runtime at once; zombies_max is usually far below */
#define HF_WATCHDOG_PER_SLOT_MAX 6 /* actions about one slot in one step */
#define HF_WATCHDOG_ACTIONS_MAX(slot_count) \
    ((slot_count)*HF_WATCHDOG_PER_SLOT_MAX + 2) /* and at most two of the ladder */
#define HF_WATCHDOG_NEVER INT64_MAX

/* hf_watchdog_options with the defaults filled in. HF_WATCHDOG_NEVER: this part is off. */
typedef struct hf_watchdog_figures {
    int64_t stuck_ns;
    int64_t zombie_ns;
    int64_t interrupt_first_ns;
    int64_t interrupt_max_ns;
    int64_t give_up_ns;
    int64_t grace_ns;
    int64_t force_ns;
    int64_t fatal_ns;
    int zombies_max;    /* 0 = no limit */
    bool may_interrupt; /* a signal was granted */
} hf_watchdog_figures;

hf_watchdog_figures hf_watchdog_figures_of(const hf_watchdog_options *options);

/* The state of one slot now. */
typedef struct hf_watchdog_sample {
    int slot;
    uint64_t run;      /* the fiber that runs; only compared */
    uint64_t progress; /* changes whenever the scheduler takes a turn */
    bool in_user;      /* the fiber is in user code, not inside the library */
    bool is_idle;      /* schedulers: runs no fiber */
    bool is_on_pool;   /* a branch on a pool: it was canceled */
    bool is_gone;      /* lost threads: the fiber came back to its scheduler; branches: it has returned */
} hf_watchdog_sample;

typedef enum hf_watchdog_kind {
    HF_WATCHDOG_REPORT,     /* a fiber is stuck: say so, with its stack; once per episode */
    HF_WATCHDOG_CANCEL,     /* cancel its branch, cause HF_CAUSE_STUCK; once */
    HF_WATCHDOG_INTERRUPT,  /* signal its thread */
    HF_WATCHDOG_REPLACE,    /* give its scheduler to a new thread; repeated until hf_watchdog_policy_replaced says so */
    HF_WATCHDOG_COUNT,      /* it is a zombie now: log an error with its stack, once; an activity's slot becomes free */
    HF_WATCHDOG_GIVE_UP,    /* no more interrupts; it stays counted */
    HF_WATCHDOG_UNCOUNT,    /* a zombie came back */
    HF_WATCHDOG_SHUTDOWN,   /* too many zombies: take no new work; once per runtime, as are the next two */
    HF_WATCHDOG_CANCEL_ALL, /* the grace is over */
    HF_WATCHDOG_FATAL       /* the stuck code will not end: call the fatal hook */
} hf_watchdog_kind;

typedef struct hf_watchdog_action {
    hf_watchdog_kind kind;
    int slot; /* -1 for the ladder */
    int64_t
        ns; /* how long the fiber has not yielded; branches: since the cancel was seen; ladder: since the threshold */
} hf_watchdog_action;

/* One slot. All zero: nothing is known. */
typedef struct hf_watchdog_case {
    uint64_t run;
    uint64_t progress;
    int64_t since_ns;    /* since when it has not moved */
    int64_t stuck_ns;    /* when it was found stuck; interrupts, grace and giving up count from here */
    int64_t retry_after; /* time of the next interrupt, counted from stuck_ns */
    bool is_known;
    bool is_on_pool;
    bool is_stuck;
    bool is_counted;
    bool has_given_up;
    bool is_replaced; /* the slot is a lost thread's */
} hf_watchdog_case;

/* The ladder: serving -> draining -> canceling -> forced -> over. */
typedef enum hf_watchdog_stage {
    HF_WATCHDOG_SERVING,
    HF_WATCHDOG_DRAINING,  /* no new work */
    HF_WATCHDOG_CANCELING, /* everything was canceled */
    HF_WATCHDOG_FORCED,    /* stuck fibers were given up: fatal as soon as no other fiber runs */
    HF_WATCHDOG_OVER       /* the fatal hook was called, or no zombie is left */
} hf_watchdog_stage;

typedef struct hf_watchdog_policy {
    hf_watchdog_figures figures;
    int sched_count;
    int slot_count;
    int stuck_count; /* cases that are stuck, zombies included */
    int zombie_count;
    hf_watchdog_stage stage;
    int64_t threshold_ns;    /* when the ladder began */
    hf_watchdog_case *cases; /* slot_count; the caller's */
} hf_watchdog_policy;

/* `cases` is zeroed, and has room at least for the schedulers and lost threads. */
void hf_watchdog_policy_init(hf_watchdog_policy *policy, const hf_watchdog_figures *figures, int sched_count,
                             hf_watchdog_case *cases, int slot_count);
/* Replaces the table by a larger one, which is zeroed, and copies the cases. */
void hf_watchdog_policy_grow(hf_watchdog_policy *policy, hf_watchdog_case *cases, int slot_count);
/* One look. Every slot in use is sampled at most once. `ret_actions` has room for
 * HF_WATCHDOG_ACTIONS_MAX(slot_count) actions. Returns how many there are. */
int hf_watchdog_policy_step(hf_watchdog_policy *policy, int64_t now_ns, const hf_watchdog_sample *samples,
                            int sample_count, hf_watchdog_action *ret_actions);
/* The stuck fiber of scheduler `slot` keeps its thread as `lost_slot`; the scheduler has a new one. */
void hf_watchdog_policy_replaced(hf_watchdog_policy *policy, int slot, int lost_slot);
/* Whether time alone changes nothing: nothing is stuck, and no ladder is under way. */
bool hf_watchdog_policy_is_calm(const hf_watchdog_policy *policy);
/* When the next step is due if nothing moves before; HF_WATCHDOG_NEVER = not by time alone. It is in the past if
 * every look may change something. */
int64_t hf_watchdog_policy_next(const hf_watchdog_policy *policy);
static inline int hf_watchdog_pool_first(const hf_watchdog_policy *policy) /* slot of the first branch */
{
    return policy->sched_count + HF_LOST_MAX;
}

#endif
