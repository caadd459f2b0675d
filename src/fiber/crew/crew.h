/* hf_crew: fibers that run only when their driver says so. Workflows are made of them.
 *
 * A crew belongs to one fiber, its driver, and to that fiber's scheduler. Its fibers, the members, have a ready list of
 * their own, first in first out by wake-up, and a fork appends to it. They run inside hf_crew_turn and nowhere else: the
 * driver runs the first until it parks or ends, then the next, until nobody is ready. Nobody steals them. So the same
 * inputs in the same order give the same run, and everything that a plain fiber may do with its own scopes, channels and
 * locks a member may do, too.
 *
 *     hf_crew_open(&op, &crew, &options);
 *     hf_crew_fork(crew, body, arg, "order");
 *     do {
 *         ... tell it what happened: hf_crew_set_now, hf_crew_fire, hf_wake on a member's hf_wait ...
 *         hf_crew_turn(crew);
 *     } while (!hf_crew_is_over(crew));
 *     hf_crew_close(crew);
 *
 * Time: a member's clock shows what hf_crew_set_now said. Whatever would arm an alarm asks the owner for a timer instead; a
 * wait with a negative span asks for nothing and is over at once.
 * Eviction: every wait of a member returns HF_ERR_EVICTED from then on, and it is to return. It is not canceled. One that
 * does not return is stranded (strand.h). Objects that members made and did not free go with the crew (owned.h).
 *
 * All calls are the driver's, between turns, but for the ones that say otherwise. */
#ifndef HF_FIBER_CREW_H
#define HF_FIBER_CREW_H

#include "base/op.h"

#include <holdfast/scope.h>

typedef struct hf_crew hf_crew;
typedef struct hf_crew_timer hf_crew_timer;

/* A deadline that a member waits for. Made by the crew, which frees it when it was fired or canceled. */
struct hf_crew_timer {
    uint64_t id; /* the owner's own: set by timer_start */
};

/* What a crew asks of its owner; called on a member, inside the library: must not wait. */
typedef struct hf_crew_ops {
    /* The member wants hf_crew_fire after `span` (>= 0). Fails: HF_ERR_NOMEM, HF_ERR_LIMIT (there are too many), which is
     * what the waiting verb then says. */
    hf_status (*timer_start)(void *state, hf_crew_timer *timer, hf_span span);
    /* It was not needed: the timer is freed afterwards. Not called for timers that an eviction takes away. */
    void (*timer_cancel)(void *state, hf_crew_timer *timer);
} hf_crew_ops;

typedef struct hf_crew_options {
    const char *name; /* of its scope in dumps; borrowed */
    const hf_crew_ops *ops;
    void *state;   /* the owner's: given to ops, and by hf_crew_self_state */
    uint64_t seed; /* of hf_random on its fibers */
} hf_crew_options;

/* The calling fiber becomes the driver, and is inside a scope that no cancel from outside enters until hf_crew_close.
 * Fails: HF_ERR_NOMEM, HF_ERR_MISUSE on anything but a plain fiber. */
hf_status hf_crew_open(hf_op *op, hf_crew **ret_crew, const hf_crew_options *options);
/* Evicts what is left, waits for a lost member but for nobody else, frees it. Accepts NULL. */
void hf_crew_close(hf_crew *crew);
/* The first member; once. It runs in the next turn. Fails: HF_ERR_NOMEM. */
hf_status hf_crew_fork(hf_op *op, hf_crew *crew, hf_body body, void *arg, const char *name);
/* Runs the members until none is ready. False: one of them did not yield, and the watchdog has taken the thread away from
 * under it (watch_lost.c). That member still runs, elsewhere, and whatever members share is its alone: the driver may
 * do nothing with the crew but hf_crew_close, which waits until it has come back. */
bool hf_crew_turn(hf_crew *crew);
/* The first member has ended; a member never outlives it. */
bool hf_crew_is_over(const hf_crew *crew);
/* The clock of its members: hf_now and hf_wall_now. It never goes back. */
void hf_crew_set_now(hf_crew *crew, hf_time now);
/* Strict, as a new crew is: a member's wait whose time is over ends at once, and a span under a millisecond is refused
 * (HF_ERR_INVALID). Not strict: both get a timer like any other, which is what histories of the first version have. */
void hf_crew_set_strict(hf_crew *crew, bool is_strict);
/* What hf_random on its fibers gives from now on. */
void hf_crew_set_seed(hf_crew *crew, uint64_t seed);
/* About how many bytes its fibers hold in memory: of each stack what is in use and what was touched beyond it. */
size_t hf_crew_bytes(const hf_crew *crew);
/* The timer's time has come. Frees it. */
void hf_crew_fire(hf_crew *crew, hf_crew_timer *timer);
/* Cancels the first member, and with it everything that it has open. */
void hf_crew_cancel(hf_crew *crew, const char *reason);
/* Releases the members: their waits return HF_ERR_EVICTED, forks are refused, and they run until they have ended, or were
 * stranded. None is left when this returns. */
void hf_crew_evict(hf_crew *crew);
/* Something that is not part of the crew has woken a member: what it does is no longer repeatable. */
bool hf_crew_is_disturbed(const hf_crew *crew);

/* The owner's state if a member of a crew with these ops calls, else NULL. On any fiber or thread. */
void *hf_crew_self_state(const hf_crew_ops *ops);
/* Whether the calling member may still do anything that lasts. */
bool hf_crew_self_is_evicted(void);

#endif
