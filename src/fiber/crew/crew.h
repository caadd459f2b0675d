/* hf_crew: fibers that run only when their driver says so. Workflows are made of them.
 *
 * A crew belongs to one fiber at a time, its driver, and always to the scheduler of its first driver. Its fibers, the members, have a ready list
 * of their own: first in first out by wake-up, and a fork appends to it. They run inside hf_crew_turn and nowhere
 * else. There the first member runs until it parks or ends, then the next, until none is ready. No other thread
 * steals them. So the same inputs in the same order give the same run. With its own scopes, channels and locks a
 * member may do everything that a plain fiber may do.
 *
 *     hf_crew_open(&op, &crew, &options);
 *     hf_crew_fork(crew, body, arg, "order");
 *     do {
 *         ... tell it what happened: hf_crew_set_now, hf_crew_fire, hf_wake on a member's hf_wait ...
 *         hf_crew_turn(crew);
 *     } while (!hf_crew_is_over(crew));
 *     hf_crew_close(crew);
 *
 * Time: a member's clock shows the time that hf_crew_set_now set. A wait that would arm an alarm asks the crew's
 * owner for a timer instead. A wait with a negative span asks for nothing and ends at once. Eviction: from then on
 * every wait of a member returns HF_ERR_EVICTED, and the member is expected to return. It is not canceled. A member
 * that does not return is stranded (strand.h). Objects that members made and did not free are freed with the crew
 * (owned.h).
 *
 * Unless a comment says otherwise, only the driver calls these functions, between turns. */
#ifndef HF_FIBER_CREW_H
#define HF_FIBER_CREW_H

#include "base/buf.h"
#include "base/list.h"
#include "base/op.h"

#include <holdfast/chan.h>
#include <holdfast/scope.h>

typedef struct hf_crew hf_crew;
typedef struct hf_crew_timer hf_crew_timer;
typedef struct hf_fiber hf_fiber;

/* A deadline that a member waits for. Made by the crew, which frees it after it has fired or was canceled. */
struct hf_crew_timer {
    uint64_t id; /* for the owner's use: set by timer_start */
};

/* Functions of the crew's owner. They are called on a member, inside the library, and must not wait. */
typedef struct hf_crew_ops {
    /* The owner is to call hf_crew_fire after `span` (>= 0). Fails: HF_ERR_NOMEM, HF_ERR_LIMIT (there are too many
     * timers); the verb that wanted to wait then returns the same. */
    hf_status (*timer_start)(void *state, hf_crew_timer *timer, hf_span span);
    /* The timer is no longer needed, and is freed afterwards. Not called for timers that an eviction removes. */
    void (*timer_cancel)(void *state, hf_crew_timer *timer);
    /* Cases of hf_select that are signals. The first says whether a member may wait for a signal of this name: HF_ERR_MISUSE,
     * HF_ERR_INVALID, reported to the member. The second takes one that is there; HF_ERR_AGAIN: none is. The third is the
     * list of waits for signals, each with the name in hf_wait.object_name. All NULL: the crew knows no signals. */
    hf_status (*signal_check)(hf_fiber *self, void *state, const char *verb, const char *name);
    hf_status (*signal_take)(void *state, hf_signal_case *signal);
    hf_list *(*signal_waits)(void *state);
} hf_crew_ops;

typedef struct hf_crew_options {
    const char *name; /* name of its scope in dumps; borrowed */
    const hf_crew_ops *ops;
    void *state;   /* the owner's: passed to ops, and returned by hf_crew_self_state */
    uint64_t seed; /* seed of hf_random on its fibers */
} hf_crew_options;

/* The calling fiber becomes the driver. Until hf_crew_close it is inside a scope that no cancel from outside enters.
 * Fails: HF_ERR_NOMEM, HF_ERR_MISUSE (the caller is not a plain fiber). */
hf_status hf_crew_open(hf_op *op, hf_crew **ret_crew, const hf_crew_options *options);
/* The driver leaves the crew, which waits for its next turn without one. Until hf_crew_take_over nobody may use it. */
void hf_crew_let_go(hf_crew *crew);
/* The calling fiber, a plain one of the crew's scheduler, becomes the driver. */
void hf_crew_take_over(hf_crew *crew);
/* The number of its scheduler: hf_home_dispatcher_new. */
int hf_crew_home(const hf_crew *crew);
/* Evicts the members that are left and frees the crew. Waits for a lost member, but for nothing else. Returns how many
 * were stranded. Accepts NULL. */
size_t hf_crew_close(hf_crew *crew);
/* Forks a member beside those that are there. It runs in the next turn. The first one is the crew's main member. Fails:
 * HF_ERR_NOMEM. */
hf_status hf_crew_fork(hf_op *op, hf_crew *crew, hf_body body, void *arg, const char *name);
/* Runs the members until none is ready. False: a member did not yield, and the watchdog has moved the scheduler to
 * another thread (watch_lost.c). That member still runs on the old thread and may use everything that members share,
 * so the driver may do nothing with the crew but hf_crew_close, which waits until the member has come back. */
bool hf_crew_turn(hf_crew *crew);
/* Whether a turn would do something: a member is ready, or a cancel is on its way to one. */
bool hf_crew_is_ready(const hf_crew *crew);
/* Where its members wait, a line for each: "main: hf_signal_wait on 'delivered'". By its driver, between turns. */
void hf_crew_put_waits(const hf_crew *crew, hf_buf *out);
/* Whether all members have ended. */
bool hf_crew_is_over(const hf_crew *crew);
/* Sets the clock of its members (hf_now and hf_wall_now). It never goes back. */
void hf_crew_set_now(hf_crew *crew, hf_time now);
/* In a strict crew, which is the default, a wait whose time is over ends at once, and a span under a millisecond is
 * refused (HF_ERR_INVALID). In a crew that is not strict both get a timer like any other wait, as in histories of
 * the first version. */
void hf_crew_set_strict(hf_crew *crew, bool is_strict);
/* A join whose quorum is missed says how many have succeeded, with the first failure as its cause. In a crew that tells the
 * first it reports that failure alone, if it has the same status, as in histories before rule 10 of the worker. */
void hf_crew_set_tells_first(hf_crew *crew, bool tells_first);
/* The class of stack of members that are forked from now on without .stack_size; 0 = the runtime's default. */
void hf_crew_set_stack(hf_crew *crew, size_t stack_size);
/* Seeds hf_random on its fibers again. */
void hf_crew_set_seed(hf_crew *crew, uint64_t seed);
/* Approximate number of bytes that its fibers hold in memory: of each stack the used part and about a page below it. */
size_t hf_crew_bytes(const hf_crew *crew);
/* The time of the timer has come. Frees the timer. */
void hf_crew_fire(hf_crew *crew, hf_crew_timer *timer);
/* Cancels the first member, and with it all scopes that it has open. */
void hf_crew_cancel(hf_crew *crew, const char *reason);
/* The same for another member that hf_crew_fork has made and that has not ended: `branch` is what hf_crew_self_branch told
 * it. */
void hf_crew_cancel_member(hf_crew *crew, hf_branch *branch, const char *reason);
/* Of the calling member. */
hf_branch *hf_crew_self_branch(void);
/* The caller, a member, is in a query, a validator or a condition from now on, or is no longer: the verbs that change
 * something, or wait, refuse. */
void hf_crew_self_reads(bool is_reading);
/* Makes the waits of all members return HF_ERR_EVICTED, refuses forks, and runs the members until each has ended or
 * is stranded. None is left when this returns. Returns how many were stranded. */
size_t hf_crew_evict(hf_crew *crew);
/* Whether something outside the crew has woken a member: then the run cannot be repeated. */
bool hf_crew_is_disturbed(const hf_crew *crew);

/* The owner's state if the caller is a member of a crew with these ops, else NULL. On any fiber or thread. */
void *hf_crew_self_state(const hf_crew_ops *ops);
/* Where the verb was called that the caller, a member, is in (hf_here), and forgets it. NULL: unknown, or the caller is the
 * driver. */
const char *hf_crew_self_place(int *ret_line);
/* Whether the caller is a member of an evicted crew, whose actions have no effect any more. */
bool hf_crew_self_is_evicted(void);

#endif
