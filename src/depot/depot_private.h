/* The depot itself: who does what, its invariants, and the struct.
 *
 * One at a time: the state of a depot (slots, flights, writes, breakers, watchers) is changed by its driver and by
 * nobody else. Whoever has something to say posts it. If nobody drives, the poster does, until nothing is left; else it
 * parks until it is answered (drive.c). So no lock is held while memory is allocated or the user's functions are
 * called, and every effect happens in one place.
 *
 *     caller, fetch, send          driver                                   thread of the store
 *     post ----------------------> act: decide, a change for a key
 *                                  settle: start fetches and sends,
 *                                          one commit of all changes ------> writes
 *                                  act: apply: memory, watchers, waiters <--- post
 *     goes on <------------------- answer
 *
 * depot-D1  Only the driver touches what is not marked otherwise. It is one fiber or thread at a time.
 * depot-D2  The changes of a key are decided, written and applied one after the other, in the order in which they came.
 * depot-D3  An ask is answered once, by the driver, unless it was aborted before; then its caller takes it back
 * (`leave`).
 * depot-D4  A slot lives while somebody holds it: asks, a flight, watchers, changes, writes, a load.
 * depot-D5  What is visible is the entry with its pending writes folded in, in order (DP5); memory has the same.
 * depot-D6  Memory is changed after the commit, watchers and waiters hear of it after memory.
 * depot-D7  A key that got another name has an alias, and no slot that can be found, no entry and no rows. An alias
 * leads to a key that has none. */
#ifndef HF_DEPOT_DEPOT_PRIVATE_H
#define HF_DEPOT_DEPOT_PRIVATE_H

#include "base/rng.h"
#include "depot/driven.h"
#include "depot/slot.h"
#include "fiber/sync/sync.h"
#include "fiber/sync/work.h"
#include "fiber/watch/panel.h"
#include "store/store.h"

#include <holdfast/pages.h>

/* ---- Who refers to a key: refs.c --------------------------------------------------------------------------------- */

typedef struct hf_refs {
    hf_keys nodes;      /* hf_ref_node: lists that are watched, and their members */
    hf_list all;        /* the same */
    size_t lost;        /* lists that were let go since the last sweep */
    size_t edges;       /* from lists to members */
    size_t watched;     /* list watchers */
    uint64_t walk;      /* number of the last walk */
    bool is_overflowed; /* not all edges are there: every change tells all list watchers */
} hf_refs;

/* ---- Housekeeping: housekeep.c ----------------------------------------------------------------------------------- */

typedef struct hf_depot_keeping {
    hf_depot *depot;
    hf_depot_timer_node timer;
    hf_post post;
    hf_store_request scan;
    hf_arena arena; /* of the scan */
    bool is_scanning;
    char next[HF_DEPOT_KEY_LEN_MAX + 1]; /* the key where the next step begins */
    size_t next_len;
    uint64_t bytes[65]; /* of the pass so far, by class of age */
    unsigned cutoff;    /* values of this class of age and older go */
} hf_depot_keeping;

/* ---- The depot --------------------------------------------------------------------------------------------------- */

enum { HF_ORIGINS = 64, HF_VOIDED = 64, HF_SPARE_CLASSES = 24 };

struct hf_depot {
    hf_spin lock; /* first: hf_wait.object. Guards inbox, is_driven, waiters' lists, users, keeper */
    hf_list inbox;
    bool is_driven;
    bool is_kept;                   /* by the keeper */
    const hf_fiber *_Atomic driver; /* who drives: a callback of the depot must not call it */
    unsigned users;                 /* calls inside */
    bool is_closing;
    hf_list keeper_waits; /* the keeper, when it sleeps */
    bool keeper_ends;
    bool timer_moved;     /* the keeper sleeps until another moment than the first timer's */
    bool tick_is_posted;  /* `tick` is in the inbox */
    hf_list closer_waits; /* hf_depot_close, until no call is inside */
    atomic_uint refs;     /* the owner's, and one per watcher */

    hf_runtime *rt;
    const char *name;
    hf_depot_options options; /* with the defaults filled in */
    hf_scope *scope;
    const hf_fiber *owner;
    uint64_t seed; /* of the hashes of keys */
    hf_rng rng;
    bool jitter_is_full; /* tests: every pause is as long as it may be */

    hf_cache *memory;
    hf_keys slots;
    hf_keys spaces;
    _Atomic(uint64_t) generation; /* of all */
    _Atomic(uint64_t) hard;
    uint64_t generation_last, hard_last; /* as decided; may not be written yet */
    uint64_t stir;                       /* counts writes and invalidations, over all keys */
    /* `stir` of the last invalidation of a key, and of the last hard one, by the hash of the key: for keys that have no
     * slot yet when a write begins that will become theirs. */
    uint64_t voided[HF_VOIDED], hard_voided[HF_VOIDED];
    hf_keys stirs; /* keys whose base was stirred while something flies: stir.c */
    hf_list stirs_by_age;
    uint64_t stir_floor; /* stirs up to this one are forgotten: take it that they concern every key */

    hf_refs index;       /* who refers to a key */
    hf_keys paging;      /* hf_paging */
    hf_list paging_idle; /* those that nobody has open, the oldest first */

    /* The flight that was boarded last. While nobody drives, and there is nothing to act on, an ask for its key may board it
     * without the driver: drive.c. */
    hf_depot_flight *open_flight; /* NULL = none */
    bool is_boarding;             /* it may be boarded so; under the lock */
    hf_list boarded;              /* asks that have, and are not counted yet; under the lock, as are ... */
    size_t boarded_count;         /* ... how many, and ... */
    uint64_t boarding;            /* ... a number for them; from 1 on */

    hf_list all_flights;
    hf_list all_watchers;
    hf_list queue[3];  /* flights that wait for a permit, by urgency: high, normal, low */
    hf_list gathering; /* flights that wait until .batch_window is over */
    size_t gathering_count;
    hf_depot_timer_node window;
    uint64_t ticket_last;
    hf_list subs;         /* slots whose subscription has to be looked at */
    hf_keylock *decoding; /* by snapshot: one decodes it, the others wait; NULL = there is no .decode */
    size_t flights;       /* calls and subscriptions that wait for the origin's word */
    size_t flight_count;  /* in all */
    size_t refreshes;     /* held by the depot */
    size_t sends;         /* under way */
    size_t works;         /* fibers under way */
    size_t loads;         /* reads under way */
    hf_breaker breakers[HF_ORIGINS];
    bool is_offline;
    bool is_ending; /* nothing new is sent or fetched */

    hf_list rows; /* hf_pending in the order of their sequence */
    size_t row_count;
    size_t row_bytes;
    uint64_t sequence_next;

    struct hf_source *source; /* NULL = memory only */
    hf_list batch;            /* changes that wait for the next commit */
    hf_list committing;       /* changes of the commit under way */
    bool is_committing;
    bool wants_commit; /* the batch waits for the keeper, who sleeps or is about to be woken; under the lock */
    size_t calls_new;  /* calls whose fibers have not begun; under the lock */
    const hf_sched *_Atomic keeper_home; /* where the keeper runs; NULL = it has not begun */
    hf_status broken;                    /* the source takes nothing any more */

    hf_keys aliases;     /* by the old key */
    hf_list alias_order; /* the oldest first */
    hf_depot_timer_node alias_timer;

    hf_heap timers;                     /* watchers' refreshes, sends that wait; monotonic */
    hf_list senders;                    /* slots with a write that may be sent now */
    const struct hf_sends_by *sends_by; /* driven.h; NULL = the depot sends by itself ... */
    bool waits_for_drive;               /* ... or not at all: .driven */
    size_t watcher_count;
    hf_depot_keeping keeping;
    hf_depot_counts counts;
    uint64_t memory_gets;      /* hits of the memory that were the driver's own */
    size_t dead_count;         /* dead rows */
    hf_list damaged;           /* rows that cannot be read (damaged.c) */
    hf_flow *events;           /* of hf_depot_news */
    atomic_bool has_listeners; /* somebody has asked for them */
    hf_panel panel;            /* in hf_metrics and hf_dump */
    hf_depot_counts last_seen; /* by hf_metrics; under the lock */
    int64_t complained_at;     /* the log heard of values that were not kept */
    hf_ask *closer;            /* hf_depot_close, until nothing is under way */
    hf_post tick;
    struct spare *spares[HF_SPARE_CLASSES]; /* spare.c: freed memory, by size */
    size_t spare_bytes;                     /* of it */
};

static inline int64_t hf_depot_wall(const hf_depot *depot)
{
    return depot->rt->env->ops->wall_now(depot->rt->env).ns;
}

/* Some milliseconds behind, for hits: a value may count as fresh that much longer. */
static inline int64_t hf_depot_wall_coarse(const hf_depot *depot)
{
    hf_env *env = depot->rt->env;
    return (env->ops->wall_coarse != NULL ? env->ops->wall_coarse(env) : env->ops->wall_now(env)).ns;
}

/* By the driver. */
static inline double hf_depot_chance(hf_depot *depot)
{
    return depot->jitter_is_full ? 1.0 : hf_rule_chance(&depot->rng);
}
/* By a fiber of a flight. */
double hf_depot_chance_of(hf_depot *depot);

/* ---- depot.c ----------------------------------------------------------------------------------------------------- */

/* hf_depot_open with a store of the depot's tables instead of a file; takes it, also on failure. NULL = none. */
hf_status hf_depot_open_in(const char *name, hf_depot **ret_depot, const hf_depot_options *options, hf_store *store);
void hf_depot_send_what_is_left(hf_depot *depot);
/* By the driver, when it has nothing to do: the closer hears of it. */
void hf_depot_look_at_end(hf_depot *depot);
void hf_depot_unref(hf_depot *depot);

/* ---- spare.c ----------------------------------------------------------------------------------------------------- */

/* As hf_rt_alloc and hf_rt_free, by the driver, for what comes and goes all the time. */
void *hf_spare_take(hf_depot *depot, size_t size);
void hf_spare_give(hf_depot *depot, void *memory, size_t size); /* accepts NULL */
void hf_spare_drop_all(hf_depot *depot);

#endif
