/* Leaving a fiber for the next one, inline.
 *
 * Every `ret` that a resumed fiber executes is mispredicted, because the processor's return stack belongs to the
 * fiber that ran before. So the verbs that park often (channels, joins, yield) inline everything down to the switch,
 * and return only once. */
#ifndef HF_FIBER_LEAVE_H
#define HF_FIBER_LEAVE_H

#include "fiber/core.h"

enum {
    HF_BRANCH_TURN = 16, /* turns after which an unstarted branch goes before ready fibers */
    HF_LOOK_TURN = 32    /* turns after which alarms and descriptors are checked */
};
_Static_assert(HF_LOOK_TURN % HF_BRANCH_TURN == 0,
               "hf_sched_pick_ready leaves every look to hf_sched_next"); /* fiber-S2, fiber-S3 */

/* The next fiber by all the rules of sched.c; NULL = nothing to do. */
hf_fiber *hf_sched_next(hf_sched *sched);

static inline void hf_sched_ready_push(hf_sched *sched, hf_fiber *fiber)
{
    fiber->next = NULL;
    if (sched->ready_tail != NULL) {
        sched->ready_tail->next = fiber;
    } else {
        sched->ready_head = fiber;
    }
    sched->ready_tail = fiber;
}

/* The common case: a fiber is ready, and nothing else is due. */
static inline hf_fiber *hf_sched_pick_ready(hf_sched *sched)
{
    hf_fiber *fiber = sched->ready_head;
    unsigned tick = sched->tick + 1;
    if (HF_UNLIKELY(fiber == NULL || tick % HF_BRANCH_TURN == 0 || sched->has_point ||
                    atomic_load_explicit(&sched->inbox, memory_order_relaxed) != NULL)) {
        return NULL;
    }
    sched->tick = tick;
    sched->ready_head = fiber->next;
    if (fiber->next == NULL) {
        sched->ready_tail = NULL;
    }
    return fiber;
}

static inline void hf_sched_switch(hf_sched *sched, hf_fiber *from, hf_fiber *to, bool dying)
{
    HF_BUMP(sched->counters.switches);
    __atomic_store_n(&sched->current, to, __ATOMIC_RELEASE);
#if HF_ASAN
    sched->left = from;
#endif
    hf_self_set(&to->self);
    hf_exceptions_swap(sched->exceptions, &from->exceptions, &to->exceptions);
    hf_context_switch(&from->context, &to->context, dying);
    hf_context_arrived(&from->context, from->sched->left != NULL ? &from->sched->left->context : NULL);
}

/* Leaves the running fiber, whose state is set up, and runs the next one. Returns when the fiber is resumed. */
static inline __attribute__((always_inline)) void hf_sched_leave_inline(hf_sched *sched, hf_fiber *self)
{
    hf_fiber *next = hf_sched_pick_ready(sched);
    if (HF_UNLIKELY(next == NULL) && (next = hf_sched_next(sched)) == NULL) {
        next = &sched->idle;
    }
    if (HF_LIKELY(next != self)) {
        hf_sched_switch(sched, self, next, false);
    }
}

#endif
