/* Unstarted branches of one scheduler.
 *
 *     front: forked by the running branch, in order | forked by its parent | ... | oldest: back
 *
 * The owner takes from the front: depth first, so that a tree of scopes needs only as many stacks as it is deep, and
 * siblings in the order of their forks. Thieves take from the back, where the oldest and largest pieces are. Now and
 * then the owner does so, too, so that an endless chain of forks does not starve older branches. The lock is taken
 * only if there are thieves. */
#ifndef HF_FIBER_RUNQ_H
#define HF_FIBER_RUNQ_H

#include "fiber/core.h"

enum { HF_OLDEST_TURN = 64 }; /* turns after which the owner takes the oldest branch, if it is of another scope */

static inline void hf_runq_lock(hf_sched *sched)
{
    if (sched->multi) {
        hf_spin_lock(&sched->branches.lock);
    }
}

static inline void hf_runq_unlock(hf_sched *sched)
{
    if (sched->multi) {
        hf_spin_unlock(&sched->branches.lock);
    }
}

static inline unsigned hf_runq_count(const hf_sched *sched)
{
    return atomic_load_explicit(&sched->branches.count, memory_order_acquire);
}

/* Locked. */
static inline void hf_runq_count_add(hf_sched *sched, int delta)
{
    unsigned count = atomic_load_explicit(&sched->branches.count, memory_order_relaxed);
    atomic_store_explicit(&sched->branches.count, count + (unsigned)delta, memory_order_release);
}

/* By the owner, for a branch that was forked here. */
static inline void hf_runq_push(hf_sched *sched, hf_branch *branch)
{
    hf_runq *branches = &sched->branches;
    hf_runq_lock(sched);
    hf_branch *prev = sched->fresh_turn == sched->tick ? branches->fresh : NULL;
    sched->fresh_turn = sched->tick;
    branches->fresh = branch;
    hf_branch *next = prev != NULL ? prev->next : branches->front;
    branch->prev = prev;
    branch->next = next;
    *(prev != NULL ? &prev->next : &branches->front) = branch;
    *(next != NULL ? &next->prev : &branches->back) = branch;
    hf_runq_count_add(sched, 1);
    hf_runq_unlock(sched);
}

/* By the owner, for stolen branches: they come oldest first, and keep that order. */
static inline void hf_runq_push_back(hf_sched *sched, hf_branch *branch)
{
    hf_runq *branches = &sched->branches;
    hf_runq_lock(sched);
    branch->prev = branches->back;
    branch->next = NULL;
    *(branches->back != NULL ? &branches->back->next : &branches->front) = branch;
    branches->back = branch;
    hf_runq_count_add(sched, 1);
    hf_runq_unlock(sched);
}

/* Locked. The branch is in the queue. */
static inline hf_branch *hf_runq_take(hf_sched *sched, hf_branch *branch)
{
    hf_runq *branches = &sched->branches;
    *(branch->prev != NULL ? &branch->prev->next : &branches->front) = branch->next;
    *(branch->next != NULL ? &branch->next->prev : &branches->back) = branch->prev;
    if (branches->fresh == branch) {
        branches->fresh = branch->prev;
    }
    branch->failure = NULL; /* `prev` was in its place */
    hf_runq_count_add(sched, -1);
    HF_BUMP(branches->taken);
    return branch;
}

/* By the owner. */
static inline hf_branch *hf_runq_pop(hf_sched *sched)
{
    if (hf_runq_count(sched) == 0) {
        return NULL;
    }
    hf_branch *branch = NULL;
    hf_runq_lock(sched);
    if (HF_LIKELY(sched->branches.front != NULL)) {
        bool is_old_turn = HF_UNLIKELY(sched->tick % HF_OLDEST_TURN == 0) &&
                           sched->branches.back->scope != sched->branches.front->scope;
        branch = hf_runq_take(sched, is_old_turn ? sched->branches.back : sched->branches.front);
    }
    hf_runq_unlock(sched);
    return branch;
}

/* By a thief. */
static inline hf_branch *hf_runq_steal(hf_sched *victim)
{
    hf_branch *branch = NULL;
    hf_spin_lock(&victim->branches.lock);
    if (victim->branches.back != NULL) {
        branch = hf_runq_take(victim, victim->branches.back);
    }
    hf_spin_unlock(&victim->branches.lock);
    return branch;
}

#endif
