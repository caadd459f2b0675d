/* Taking a stack and giving it back. The common path is inline: a list per scheduler and class. The rest is in
 * stack.c. */
#ifndef HF_FIBER_STACK_H
#define HF_FIBER_STACK_H

#include "fiber/core.h"

enum { HF_STACKS_CACHED_MAX = 256 }; /* free stacks of a class that a scheduler keeps; the rest goes to the depot */

/* Takes a stack from the depot, or carves one. NULL: `*ret_why` is HF_ERR_NOMEM or HF_ERR_LIMIT. */
hf_fiber *hf_stack_get_slow(hf_sched *sched, uint8_t stack_class, hf_status *ret_why);
/* Moves older free stacks to the depot. */
void hf_stack_spill(hf_sched *sched, uint8_t stack_class);

/* A fiber on a stack of the class, ready to be bound to a branch. NULL: ask hf_stack_get_slow. */
static inline hf_fiber *hf_stack_get(hf_sched *sched, uint8_t stack_class)
{
    hf_fiber *fiber = sched->free_fibers[stack_class];
    if (HF_UNLIKELY(fiber == NULL || sched->rt->fibers_max > 0)) {
        return NULL;
    }
    sched->free_fibers[stack_class] = fiber->next;
    sched->free_fiber_count[stack_class]--;
    return fiber;
}

/* The caller may still be running on this very stack, and nobody else may get it before the caller has left. So it
 * goes on top of the scheduler's own list, and only older stacks move to the depot. */
static inline void hf_stack_put(hf_sched *sched, hf_fiber *fiber)
{
    uint8_t index = fiber->stack_class;
    fiber->next = sched->free_fibers[index];
    sched->free_fibers[index] = fiber;
    if (HF_UNLIKELY(++sched->free_fiber_count[index] > HF_STACKS_CACHED_MAX)) {
        hf_stack_spill(sched, index);
    }
}

#endif
