/* Messages to the driver, calls that wait for its answer, and its timers (drive.c). */
#ifndef HF_DEPOT_DRIVE_H
#define HF_DEPOT_DRIVE_H

#include "base/heap.h"
#include "depot/key.h"
#include "depot/rules.h"
#include "fiber/fail.h"
#include "fiber/sched/wait.h"

#include <stddef.h>
#include <string.h>

typedef struct hf_depot_slot hf_depot_slot;
typedef struct hf_snap hf_snap;
typedef struct hf_pending hf_pending;
typedef struct hf_depot_flight hf_depot_flight;

typedef struct hf_post hf_post;
struct hf_post {
    hf_node node; /* in the inbox; under the lock */
    void (*act)(hf_depot *depot, hf_post *post);
};

/* A timer of the depot: rings on the driver. */
typedef struct hf_depot_timer_node hf_depot_timer_node;
struct hf_depot_timer_node {
    hf_heap_node node; /* in depot->timers */
    void (*ring)(hf_depot *depot, hf_depot_timer_node *timer);
};

/* ---- Asks: calls that wait --------------------------------------------------------------------------------------- */

typedef struct hf_ask hf_ask;
struct hf_ask {
    hf_post post;
    hf_wait wait;      /* in the list that it waits in; under the lock */
    hf_wait_kind kind; /* of the wait */
    bool wants_out;    /* its abort came while the driver had it; under the lock */
    bool is_done;      /* answered by its own caller, who drives */
    hf_instant deadline;
    hf_depot_slot *slot;     /* held */
    hf_failure_box *failure; /* the failure of another; owned */
    hf_str key;              /* NULL = it is about none; its bytes are the caller's */
    hf_ask_rule rule;
    bool is_forced;
    bool is_prefetch;
    bool may_board;    /* a get that fetches what is not there: it may join a flight without the driver ... */
    uint64_t boarding; /* ... and has: hf_depot.boarding then; under the lock */
    bool is_hard, drops;
    hf_urgency urgency;
    hf_snap *snap; /* the answer; a reference */
    bool is_stale; /* it is older than it should be */
    int64_t age;
    int64_t asked_at; /* wall; of a get */
    int64_t retry_after;
    hf_depot_place place;
    hf_pending *row; /* of a write: made by the caller, taken by the driver */
    uint64_t if_version;
    hf_depot_flight *flight; /* that it waits for */
    hf_pending *waits_row;   /* that it waits for */
    void *what;              /* other arguments */
    struct hf_many *many;    /* it is one of many: nobody waits for it alone */
    hf_op op;                /* or a failure with a sentence. The last one, because most asks never touch it */
};

/* For asks of which there may be thousands at once: what is not cleared need not be in the cache. hf_depot_ask begins `op`. */
static inline void hf_ask_init(hf_ask *ask)
{
    memset(ask, 0, offsetof(hf_ask, op));
}

/* ---- drive.c ----------------------------------------------------------------------------------------------------- */

/* Posts, and drives unless somebody else does. Outside the library. */
void hf_depot_post(hf_depot *depot, hf_post *post);
/* Posts, and lets the keeper drive unless somebody else does: for the thread of the store, and inside the library. */
void hf_depot_post_quietly(hf_depot *depot, hf_post *post);
/* Posts an ask and waits for its answer. The failure is then the last one of the caller. `verb`: for messages. */
hf_status hf_depot_ask(hf_depot *depot, hf_ask *ask, void (*act)(hf_depot *, hf_post *), const char *verb,
                       hf_span timeout);
/* Under the lock, by the driver or while nobody drives: asks that boarded without the driver become waiters like others. */
void hf_depot_count_boarded(hf_depot *depot);
/* By the driver: the ask is over. Its failure is in ask->op or ask->failure. */
void hf_depot_answer(hf_depot *depot, hf_ask *ask, hf_status status);
/* By the driver: the ask waits in this list. False: it wants out, and was answered. */
bool hf_depot_park(hf_depot *depot, hf_ask *ask, hf_list *list);
/* By the driver: true when the depot is ending; the ask was answered with that. */
bool hf_depot_refuses(hf_depot *depot, hf_ask *ask);
/* By the driver: takes the first ask out of a list; NULL = none is left. */
hf_ask *hf_depot_unpark(hf_depot *depot, hf_list *list);
/* The keeper: drives when nobody else does, and watches the timers. */
hf_status hf_depot_keeper(void *arg);
/* Fails: HF_ERR_MISUSE in a hook of a join, and in a process that fork() made. */
hf_status hf_depot_check_place(hf_runtime *rt, const char *verb);
/* Hands an operation's failure to the caller. */
hf_status hf_depot_raise(hf_depot *depot, const hf_op *op);
/* Room for the timers of what is there, and of one more write or watcher. Fails: HF_ERR_NOMEM. */
hf_status hf_depot_make_timers(hf_depot *depot);
/* Sets a timer; without memory it does not ring, but see hf_depot_make_timers. */
void hf_depot_timer(hf_depot *depot, hf_depot_timer_node *timer, int64_t when_ns);

/* The same about a key, without a timeout. Fails also: HF_ERR_INVALID: the key. */
hf_status hf_depot_ask_of(hf_depot *depot, hf_depot_key key, hf_ask *ask, void (*act)(hf_depot *, hf_post *),
                          const char *verb);
/* As hf_depot_ask, but nothing ends the wait: for calls that release something. */
void hf_depot_tell(hf_depot *depot, hf_ask *ask, void (*act)(hf_depot *, hf_post *), const char *verb);
/* A fiber that was counted in calls_new has begun, or will not. Outside the library, or by the driver. */
void hf_depot_call_begins(hf_depot *depot);
/* The keeper ends when it is told. */
void hf_depot_end_keeper(hf_depot *depot);

#endif
