/* What watch.c (the monitor), watch_lost.c (the signal, lost threads) and watch_pool.c (branches on a pool) share. */
#ifndef HF_FIBER_WATCH_PRIVATE_H
#define HF_FIBER_WATCH_PRIVATE_H

#include "fiber/watch/watch.h"
#include "fiber/watch/watch_policy.h"

enum { HF_WATCHDOG_NAME_LEN = 48, HF_WATCHDOG_STACK_LEN = 760 };

/* What a signal handler saw. */
typedef struct hf_evidence {
    uint64_t id;                     /* of the fiber's branch, as in dumps */
    char name[HF_WATCHDOG_NAME_LEN]; /* its name, cut; "" = it has none */
    int pc_count;                    /* 0 = the stack was not taken */
    void *pcs[HF_BACKTRACE_DEPTH_MAX];
} hf_evidence;

/* One question to a thread, carried by a signal. The monitor owns the other fields while it is free or answered, the
 * handler while it is being answered. */
typedef enum hf_inquiry_state {
    HF_INQUIRY_FREE,    /* nothing was asked */
    HF_INQUIRY_SENT,    /* a signal is on its way */
    HF_INQUIRY_TAKEN,   /* the handler is at it */
    HF_INQUIRY_SEEN,    /* evidence was taken, the thread stays as it is */
    HF_INQUIRY_GRANTED, /* evidence was taken, and the thread has given its scheduler up */
    HF_INQUIRY_OUTDATED /* the fiber had moved on */
} hf_inquiry_state;

typedef struct hf_lost hf_lost;

typedef struct hf_inquiry {
    atomic_uint state; /* hf_inquiry_state */
    hf_fiber *fiber;   /* who is meant */
    unsigned tick;     /* and in which turn of its scheduler */
    hf_lost *lost;     /* where the thread finds itself afterwards; NULL = only the stack is wanted */
    hf_evidence evidence;
} hf_inquiry;

/* A thread that lost its scheduler because its fiber does not come back. */
struct hf_lost {
    hf_fiber away;         /* its own stack, to end by: a copy of the scheduler's idle context */
    int slot;              /* in the policy's eyes */
    hf_fiber *fiber;       /* who is stuck on it */
    hf_sched *sched;       /* where that fiber belongs */
    hf_thread *thread;     /* owned; NULL = a spare: nothing is lost yet */
    hf_inquiry ask;        /* later looks at the stack */
    hf_msg cancel;         /* to the home of the branch's scope */
    hf_branch *branch;     /* for that message */
    atomic_bool canceling; /* the message is under way */
    atomic_bool has_ended; /* the fiber was carried back; the last thing the thread touches here */
    bool is_over;          /* the policy knows that */
};

/* The monitor's notes on a branch of a pool that was canceled: from when it has taken it until a look at which it had left. */
typedef struct hf_watchdog_notes {
    hf_watchdog_post *watched; /* NULL = it has left; under posts_lock */
    int slot;                  /* in the policy's eyes */
    bool has_left;             /* at the last look */
    bool is_counted;           /* under posts_lock */
    bool owes_place;           /* its pool could not be made wider */
    int64_t since_ns;          /* it was canceled, by the environment's clock */
    hf_inquiry ask;
    hf_label label;
} hf_watchdog_notes;

/* The monitor's notes on one scheduler. */
typedef struct hf_seat {
    hf_inquiry ask;
    hf_lost *spare;     /* for the next replacement; in watch->lost, so that there will be room for it */
    unsigned tick_seen; /* as of the last sample */
    hf_fiber *seen;     /* fiber of the last sample */
    uint64_t id_seen;
    uint64_t stuck_id;                     /* of the fiber that was reported last */
    char stuck_name[HF_WATCHDOG_NAME_LEN]; /* as far as it can be seen from outside */
    bool wants_signal;                     /* this step */
    bool wants_replace;                    /* this step */
    bool wants_cancel;                     /* of this episode, done when its thread is replaced */
    bool owes_report;                      /* the stuck fiber was not logged yet: its stack is on the way */
    bool owes_thread;                      /* it was replaced, but the new thread could not be started yet */
    bool has_failed;                       /* and that was said */
    int64_t report_by;                     /* then it is logged without a stack */
    int64_t stuck_for;                     /* for that line */
} hf_seat;

typedef enum hf_watchdog_state { HF_WATCHDOG_NEW, HF_WATCHDOG_STARTING, HF_WATCHDOG_RUNNING } hf_watchdog_state;

struct hf_watchdog {
    hf_runtime *rt;
    hf_thread *thread;  /* the monitor */
    atomic_uint state;  /* hf_watchdog_state of the monitor */
    bool has_fibers;    /* it looks at the schedulers every tick; else only at branches, when something is due */
    int signal;         /* 0 = none */
    int64_t tick_ns;    /* between two looks */
    int64_t step_max;   /* time of the watchdog's clock between two looks, at most */
    int64_t clock_ns;   /* the watchdog's clock: stands still while the monitor itself could not run */
    int64_t last_ns;    /* of the environment's clock, at the last look */
    int64_t quiet_ns;   /* all schedulers have slept since, by the same clock; 0 = they do not */
    int64_t used_since; /* the number of used stacks has been steady since */
    int64_t used_last;
    bool is_trimmed;   /* nothing to give back since then */
    int64_t stacks_at; /* when it was last looked how full stacks are */
    hf_stack_names stacks_told;
    hf_word word;          /* the monitor sleeps on it */
    atomic_bool is_asleep; /* for good, until a scheduler wakes up */
    atomic_bool is_stopping;
    hf_spin listeners_lock;    /* of the next */
    hf_list listeners;         /* hf_watchdog_listener */
    _Atomic(uint64_t) stuck;   /* reported so far */
    _Atomic(uint64_t) zombies; /* now */
    hf_watchdog_policy policy;
    hf_watchdog_sample *samples; /* owned, as the next and the policy's cases: as many as there are slots */
    hf_watchdog_action *actions;
    hf_lost *lost[HF_LOST_MAX];                            /* owned; slot = sched_count + index */
    const hf_fiber *counted[HF_THREADS_MAX + HF_LOST_MAX]; /* zombies by slot, or NULL; under posts_lock */
    hf_spin posts_lock;                                    /* of the next, and of what says so */
    hf_list fresh; /* hf_watchdog_post: canceled, not taken by the monitor yet */
    hf_watchdog_notes *
        *notes; /* owned, with holes; slot = hf_watchdog_pool_first + index; changed by the monitor only */
    int notes_max;
    hf_seat seats[]; /* one per scheduler */
};

extern const char hf_watchdog_no_stack[]; /* what a line without a stack says when no signal was granted */

/* ---- watch.c ----------------------------------------------------------------------------------------------------- */
hf_status hf_watchdog_run(hf_watchdog *watch, hf_op *op); /* starts the monitor */
void hf_watchdog_ring(hf_watchdog *watch);                /* it looks at once */

/* ---- watch_listen.c ---------------------------------------------------------------------------------------------- */
void hf_watchdog_tell(hf_watchdog *watch); /* the listeners */
/* The fiber in this slot, of a scheduler or a lost thread, is a zombie; or it is none any more. */
void hf_watchdog_set_counted(hf_watchdog *watch, int slot, bool is_counted);

/* ---- watch_pool.c: all by the monitor ---------------------------------------------------------------------------- */
/* The tables for so many branches. Fails: HF_ERR_NOMEM. */
hf_status hf_watchdog_tables(hf_watchdog *watch, hf_op *op, int notes_max);
void hf_watchdog_tables_free(hf_watchdog *watch);
/* Takes what was canceled since the last look. What finds no memory is tried again at the next. */
void hf_watchdog_take_posts(hf_watchdog *watch);
/* Returns how many samples there are. */
int hf_watchdog_sample_pools(hf_watchdog *watch, hf_watchdog_sample *ret_samples);
void hf_watchdog_act_on_pool(hf_watchdog *watch, const hf_watchdog_action *action);
/* Forgets those that have left; gives places that were owed. */
void hf_watchdog_settle_pools(hf_watchdog *watch);
bool hf_watchdog_owes_pools(hf_watchdog *watch); /* something is to be tried again soon */

/* ---- watch_lost.c ------------------------------------------------------------------------------------------------ */
hf_status hf_watchdog_signal_open(hf_watchdog *watch, hf_op *op);
void hf_watchdog_signal_close(hf_watchdog *watch);
/* Asks the thread for its stack, and for its scheduler if `may_replace`. While the same question is open, it is sent
 * once more if `again`. */
void hf_watchdog_ask(hf_watchdog *watch, int index, bool may_replace, bool again);
/* Signals a lost thread, or that of a pool's branch, for EINTR and a newer stack. */
void hf_watchdog_ask_again(hf_watchdog *watch, hf_thread *thread, hf_inquiry *ask);
/* What was seen last, and no handler is about to change it: an open question is withdrawn. NULL: one is at it. */
const hf_evidence *hf_watchdog_evidence(hf_inquiry *ask);
/* Takes the answers that have come: replaces threads. */
void hf_watchdog_settle(hf_watchdog *watch, int index);
/* Joins and forgets lost threads that have ended. `all`: waits for every one, and drops the spares. */
void hf_watchdog_reap(hf_watchdog *watch, bool all);

#endif
