/* Making and freeing branches. The common path is inline: a list per scheduler. The rest is in branch.c. */
#ifndef HF_FIBER_BRANCH_H
#define HF_FIBER_BRANCH_H

#include "fiber/core.h"

enum { HF_BRANCHES_CACHED_MAX = 2048 }; /* free branches that a scheduler keeps; the rest goes to the depot */

void hf_branch_free_slow(hf_runtime *rt, hf_branch *branch);

/* A branch that is neither started nor canceled; fields that make_branch does not set are 0 or NULL. sched NULL: the
 * caller is not on a fiber thread of rt. */
static inline hf_branch *hf_branch_new(hf_runtime *rt, hf_sched *sched)
{
    if (HF_UNLIKELY(sched == NULL || sched->free_branches == NULL)) {
        return hf_branch_new_slow(rt, sched);
    }
    hf_branch *branch = sched->free_branches;
    sched->free_branches = branch->next;
    sched->free_branch_count--;
    return branch;
}

static inline void hf_branch_free(hf_runtime *rt, hf_sched *sched, hf_branch *branch)
{
    hf_assert(!hf_node_is_linked(&branch->siblings) && branch->extra == NULL);
    if (HF_UNLIKELY(branch->failure != NULL)) {
        hf_box_unref(branch->failure);
        branch->failure = NULL;
    }
    if (HF_UNLIKELY(atomic_load_explicit(&branch->cancel_requested, memory_order_relaxed))) {
        atomic_store_explicit(&branch->cancel_requested, false, memory_order_relaxed);
        atomic_store_explicit(&branch->cx.canceled, false, memory_order_relaxed);
        branch->cx.inherited = false;
        branch->cx.cause = HF_CAUSE_NONE;
        branch->cx.reason = NULL;
        branch->cx.failure = NULL;
    }
    atomic_store_explicit(&branch->at, NULL, memory_order_relaxed);
    branch->fiber = NULL;
    branch->state = HF_BRANCH_NEW;
    branch->pinned = false;
    if (HF_UNLIKELY(sched == NULL)) {
        hf_branch_free_slow(rt, branch);
        return;
    }
    branch->next = sched->free_branches;
    sched->free_branches = branch;
    if (HF_UNLIKELY(++sched->free_branch_count > HF_BRANCHES_CACHED_MAX)) {
        hf_branch_free_many(sched);
    }
}

#endif
