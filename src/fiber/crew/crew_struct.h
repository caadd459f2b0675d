/* The crew itself, for crew.c and strand.c. */
#ifndef HF_FIBER_CREW_STRUCT_H
#define HF_FIBER_CREW_STRUCT_H

#include "base/rng.h"
#include "fiber/crew/crew_private.h"
#include "fiber/sched/dispatch.h"

struct hf_crew {
    hf_dispatcher on;     /* first: the dispatcher onto which the members' scopes fork */
    hf_sched *sched;      /* the driver's; never changes */
    hf_fiber *driver;     /* runs when no member is ready; NULL = none has it (hf_crew_let_go) */
    hf_fiber *ready_head; /* members that can continue, first in first out */
    hf_fiber *ready_tail;
    hf_msg *mail_head; /* cancels that members posted to scopes of the crew, in order: fiber-W1 */
    hf_msg *mail_tail;
    hf_list members;  /* fibers with a branch of the crew */
    hf_list timers;   /* armed */
    hf_list jobs;     /* hf_crew_job.node: children without a fiber (job.h) */
    size_t job_count; /* in jobs */
    hf_list owned;    /* objects that members made: owned.h */
    hf_scope *root;   /* owned by the driver; holds the first member's branch */
    hf_branch *first; /* kept by the root scope */
    const hf_crew_ops *ops;
    void *state;
    hf_instant now; /* the members' clock */
    hf_rng rng;
    hf_wait *returning; /* the driver, while it waits for a lost member */
    bool is_turning;
    bool is_lost;     /* a member kept its thread in the last turn (fiber-W4) */
    bool is_returned; /* and has come back */
    bool is_evicted;
    bool is_disturbed;
    bool is_strict;      /* see hf_crew_set_strict */
    bool tells_first;    /* see hf_crew_set_tells_first */
    uint8_t stack_class; /* of members that ask for no other */
};

#endif
