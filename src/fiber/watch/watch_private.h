/* Shared by watch.c (the monitor), watch_lost.c (the signal, lost threads) and watch_pool.c (branches on a pool). */
#ifndef HF_FIBER_WATCH_PRIVATE_H
#define HF_FIBER_WATCH_PRIVATE_H

#include "fiber/watch/watch.h"
#include "fiber/watch/watch_policy.h"

enum { HF_WATCHDOG_NAME_LEN = 48, HF_WATCHDOG_STACK_LEN = 760 };

/* The findings of a signal handler. */
typedef struct hf_evidence {
    uint64_t id;                     /* of the fiber's branch, as in dumps */
    char name[HF_WATCHDOG_NAME_LEN]; /* its name, cut; "" = it has none */
    int pc_count;                    /* 0 = the stack was not taken */
    void *pcs[HF_BACKTRACE_DEPTH_MAX];
} hf_evidence;

/* The state of a question that the monitor asks a thread by a signal. The monitor owns the other fields while the
 * question is free or answered, the handler while it is being answered. */
typedef enum hf_inquiry_state {
    HF_INQUIRY_FREE,    /* there is no question */
    HF_INQUIRY_SENT,    /* a signal is on its way */
    HF_INQUIRY_TAKEN,   /* the handler is answering */
    HF_INQUIRY_SEEN,    /* evidence was taken; the thread keeps its scheduler */
    HF_INQUIRY_GRANTED, /* evidence was taken, and the thread has given its scheduler up */
    HF_INQUIRY_OUTDATED /* the fiber had yielded meanwhile */
} hf_inquiry_state;

typedef struct hf_lost hf_lost;

typedef struct hf_inquiry {
    atomic_uint state; /* hf_inquiry_state */
    hf_fiber *fiber;   /* the fiber that is meant */
    unsigned tick;     /* and the turn of its scheduler */
    hf_lost *lost;     /* for a thread that gives its scheduler up; NULL = only the stack is wanted */
    hf_evidence evidence;
} hf_inquiry;

/* A thread that lost its scheduler because its fiber does not yield. */
struct hf_lost {
    hf_fiber away;         /* the context on its own stack, by which it ends: a copy of the scheduler's idle context */
    int slot;              /* in the policy */
    hf_fiber *fiber;       /* the fiber that is stuck on it */
    hf_sched *sched;       /* the scheduler of that fiber */
    hf_thread *thread;     /* owned; NULL = a spare: nothing is lost yet */
    hf_inquiry ask;        /* later looks at the stack */
    hf_msg cancel;         /* message to the home of the branch's scope */
    hf_branch *branch;     /* for that message */
    atomic_bool canceling; /* the message is under way */
    atomic_bool has_ended; /* the fiber has moved back; the last field that the thread writes */
    bool is_over;          /* the policy knows that */
};

/* The monitor's notes on a canceled branch of a pool: from the look at which the monitor takes it, until a look
 * after it has left. */
typedef struct hf_watchdog_notes {
    hf_watchdog_post *watched; /* NULL = it has left; under posts_lock */
    int slot;                  /* in the policy */
    bool has_left;             /* it had left at the last look */
    bool is_counted;           /* under posts_lock */
    bool owes_place;           /* its place was not given away, because the pool could not get another thread */
    int64_t since_ns;          /* when it was canceled, by the environment's clock */
    hf_inquiry ask;
    hf_label label;
} hf_watchdog_notes;

/* The monitor's notes on one scheduler. */
typedef struct hf_watch_seat {
    hf_inquiry ask;
    hf_lost *spare;     /* for the next replacement; it is in watch->lost already, so there is room for it */
    unsigned tick_seen; /* as of the last sample */
    hf_fiber *seen;     /* fiber of the last sample */
    uint64_t id_seen;
    uint64_t stuck_id;                     /* id of the fiber that was reported last */
    char stuck_name[HF_WATCHDOG_NAME_LEN]; /* its name, as far as another thread can read it */
    bool wants_signal;                     /* in this step */
    bool wants_replace;                    /* in this step */
    bool wants_cancel;                     /* in this episode; done when the thread is replaced */
    bool owes_report;                      /* the stuck fiber is not logged yet, because its stack is on the way */
    bool owes_thread;                      /* the new thread for the scheduler could not be started yet */
    bool has_failed;                       /* that was logged */
    int64_t report_by;                     /* time at which it is logged even without a stack */
    int64_t stuck_for;                     /* how long it was stuck, for that line */
} hf_watch_seat;

typedef enum hf_watchdog_state { HF_WATCHDOG_NEW, HF_WATCHDOG_STARTING, HF_WATCHDOG_RUNNING } hf_watchdog_state;

struct hf_watchdog {
    hf_runtime *rt;
    hf_thread *thread;  /* the monitor */
    atomic_uint state;  /* hf_watchdog_state of the monitor */
    bool has_fibers;    /* it samples the schedulers every tick; else it only watches pools, when something is due */
    int signal;         /* 0 = none */
    int64_t tick_ns;    /* between two looks */
    int64_t step_max;   /* by how much the watchdog's clock moves between two looks, at most */
    int64_t clock_ns;   /* the watchdog's clock, which stands still while the monitor itself could not run */
    int64_t last_ns;    /* the environment's clock at the last look */
    int64_t quiet_ns;   /* since when all schedulers sleep, by the same clock; 0 = they do not */
    int64_t used_since; /* since when the number of used stacks is steady */
    int64_t used_last;
    bool is_trimmed;   /* all memory was given back since then */
    int64_t stacks_at; /* when the stacks were last checked for being nearly full */
    hf_stack_names stacks_told;
    hf_word word;          /* the monitor sleeps on it */
    atomic_bool is_asleep; /* without a deadline, until a scheduler wakes up */
    atomic_bool is_stopping;
    hf_spin listeners_lock;    /* guards the next */
    hf_list listeners;         /* hf_watchdog_listener */
    _Atomic(uint64_t) stuck;   /* fibers reported so far */
    _Atomic(uint64_t) zombies; /* now */
    hf_watchdog_policy policy;
    hf_watchdog_sample *samples; /* owned, like the next and the policy's cases; one element per slot */
    hf_watchdog_action *actions;
    hf_lost *lost[HF_LOST_MAX];                            /* owned; slot = sched_count + index */
    const hf_fiber *counted[HF_THREADS_MAX + HF_LOST_MAX]; /* zombies by slot, or NULL; under posts_lock */
    hf_spin posts_lock;                                    /* guards the next, and the fields that say so */
    hf_list fresh; /* hf_watchdog_post: canceled branches that the monitor has not taken yet */
    hf_watchdog_notes *
        *notes; /* owned, with holes; slot = hf_watchdog_pool_first + index; changed by the monitor only */
    int notes_max;
    hf_watch_seat seats[]; /* one per scheduler */
};

extern const char hf_watchdog_no_stack[]; /* added to a log line without a stack if no signal was granted */

/* ---- watch.c ----------------------------------------------------------------------------------------------------- */
hf_status hf_watchdog_run(hf_watchdog *watch, hf_op *op); /* starts the monitor */
void hf_watchdog_ring(hf_watchdog *watch);                /* makes it look at once */

/* ---- watch_listen.c ---------------------------------------------------------------------------------------------- */
void hf_watchdog_tell(hf_watchdog *watch); /* wakes the listeners */
/* The fiber in this slot, of a scheduler or a lost thread, has become a zombie, or is no longer one. */
void hf_watchdog_set_counted(hf_watchdog *watch, int slot, bool is_counted);

/* ---- watch_pool.c: all by the monitor ---------------------------------------------------------------------------- */
/* Makes the tables large enough for `notes_max` branches. Fails: HF_ERR_NOMEM. */
hf_status hf_watchdog_tables(hf_watchdog *watch, hf_op *op, int notes_max);
void hf_watchdog_tables_free(hf_watchdog *watch);
/* Takes the branches that were canceled since the last look. Without memory it tries again at the next look. */
void hf_watchdog_take_posts(hf_watchdog *watch);
/* Returns how many samples there are. */
int hf_watchdog_sample_pools(hf_watchdog *watch, hf_watchdog_sample *ret_samples);
void hf_watchdog_act_on_pool(hf_watchdog *watch, const hf_watchdog_action *action);
/* Forgets branches that have left, and gives away places that could not be given before. */
void hf_watchdog_settle_pools(hf_watchdog *watch);
bool hf_watchdog_owes_pools(hf_watchdog *watch); /* whether something is to be tried again soon */

/* ---- watch_lost.c ------------------------------------------------------------------------------------------------ */
hf_status hf_watchdog_signal_open(hf_watchdog *watch, hf_op *op);
void hf_watchdog_signal_close(hf_watchdog *watch);
/* Asks the thread for its stack, and for its scheduler if `may_replace`. If the same question is still open, it is
 * sent once more if `again`. */
void hf_watchdog_ask(hf_watchdog *watch, int index, bool may_replace, bool again);
/* Signals a lost thread, or the thread of a pool's branch, to interrupt its system call and to get its present
 * stack. */
void hf_watchdog_ask_again(hf_watchdog *watch, hf_thread *thread, hf_inquiry *ask);
/* The evidence that was taken last. An open question is withdrawn, so no handler changes it. NULL: a handler is
 * answering now. */
const hf_evidence *hf_watchdog_evidence(hf_inquiry *ask);
/* Handles the answers that have come: replaces threads. */
void hf_watchdog_settle(hf_watchdog *watch, int index);
/* Joins and forgets lost threads that have ended. `all`: waits for all of them, and frees the spares. */
void hf_watchdog_reap(hf_watchdog *watch, bool all);

#endif
