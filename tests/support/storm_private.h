/* Shared by storm.c (the walk, and what fibers can do among themselves) and storm_run.c (what a run can do: handlers, conditions,
 * children, versions) and storm_own.c (local activities, sagas, several signals). */
#ifndef HF_TESTS_STORM_PRIVATE_H
#define HF_TESTS_STORM_PRIVATE_H

#include "support/storm.h"

/* Shared by the fibers of a program and its handlers; freed with the run. */
typedef struct storm_common {
    int budget; /* operations that are left */
    hf_chan *chan;
    hf_mutex *mutex;
    hf_sem *sem;
    hf_cond *cond;
    hf_keylock *keys;
    uint64_t seed;
    uint64_t state;  /* a hash of what handlers have done */
    uint64_t begun;  /* handlers so far */
    uint64_t told;   /* of the main function, at its end */
    int published;   /* records so far */
    int generation;  /* of its child, and of the run of its chain: 0 = the first */
    bool is_child;   /* it was started by another program */
    bool is_over;    /* the signal "end" has come */
    bool has_reader; /* the query "state" has a handler */
} storm_common;

/* One fiber of a program: the results of its calls so far decide what it does next. */
typedef struct storm_walk {
    uint64_t told;
    int depth;
    storm_common *all;
} storm_walk;

/* A number below `bound` that depends on all results so far. */
uint64_t storm_draw(storm_walk *w, uint64_t bound);
hf_span storm_ticks(storm_walk *w, uint64_t most);
hf_span storm_some_ticks(storm_walk *w, uint64_t most); /* for bounds: never 0, which would mean no bound */
hf_span storm_some_wait(storm_walk *w, uint64_t most);  /* for waits: sometimes HF_SPAN_OFF, which does not wait */
hf_join_policy storm_some_join(storm_walk *w);
hf_status storm_hear(storm_walk *w, hf_status status);
hf_status storm_block(storm_walk *w, int most);

/* What a run can do; one of them. */
hf_status storm_run_one(storm_walk *w);
/* storm_own.c: some of these. */
hf_status storm_run_local(storm_walk *w);
hf_status storm_look_outside(storm_walk *w);
hf_status storm_run_saga(storm_walk *w);
hf_status storm_wait_for_any(storm_walk *w);
hf_status storm_select_signal(storm_walk *w);
hf_status storm_set_facts(storm_walk *w);
hf_status storm_sleep_until(storm_walk *w);
/* The handlers that every program has from its first step on. */
hf_status storm_add_handlers(storm_common *all);

#endif
