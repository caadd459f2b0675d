/* Unstarted jobs of one scheduler.
 *
 *     front: what the running job forked, in its order | what its parent forked | ... | oldest: back
 *
 * The owner takes from the front: depth first, so that a tree of scopes holds as many stacks as it is deep, and first in
 * first out among siblings. Thieves take from the back, where the oldest and largest pieces are; so does the owner now and
 * then, lest an endless chain of forks starves what is older. The lock is taken only where there are thieves. */
#ifndef HF_FIBER_RUNQ_H
#define HF_FIBER_RUNQ_H

#include "fiber/core.h"

enum { HF_OLDEST_TURN = 64 }; /* every so many turns the owner takes the oldest job, if it is of another scope */

static inline void hf_runq_lock(hf_sched *sched)
{
    if (sched->multi) {
        hf_spin_lock(&sched->jobs.lock);
    }
}

static inline void hf_runq_unlock(hf_sched *sched)
{
    if (sched->multi) {
        hf_spin_unlock(&sched->jobs.lock);
    }
}

static inline unsigned hf_runq_count(const hf_sched *sched)
{
    return atomic_load_explicit(&sched->jobs.count, memory_order_acquire);
}

/* Locked. */
static inline void hf_runq_count_add(hf_sched *sched, int delta)
{
    unsigned count = atomic_load_explicit(&sched->jobs.count, memory_order_relaxed);
    atomic_store_explicit(&sched->jobs.count, count + (unsigned)delta, memory_order_release);
}

/* By the owner, for a job that was forked here. */
static inline void hf_runq_push(hf_sched *sched, hf_branch *job)
{
    hf_runq *jobs = &sched->jobs;
    hf_runq_lock(sched);
    hf_branch *prev = sched->fresh_turn == sched->tick ? jobs->fresh : NULL;
    sched->fresh_turn = sched->tick;
    jobs->fresh = job;
    hf_branch *next = prev != NULL ? prev->next : jobs->front;
    job->prev = prev;
    job->next = next;
    *(prev != NULL ? &prev->next : &jobs->front) = job;
    *(next != NULL ? &next->prev : &jobs->back) = job;
    hf_runq_count_add(sched, 1);
    hf_runq_unlock(sched);
}

/* By the owner, for a job that was stolen: they come oldest first, and keep that order. */
static inline void hf_runq_push_back(hf_sched *sched, hf_branch *job)
{
    hf_runq *jobs = &sched->jobs;
    hf_runq_lock(sched);
    job->prev = jobs->back;
    job->next = NULL;
    *(jobs->back != NULL ? &jobs->back->next : &jobs->front) = job;
    jobs->back = job;
    hf_runq_count_add(sched, 1);
    hf_runq_unlock(sched);
}

/* Locked; there is one. */
static inline hf_branch *hf_runq_take(hf_sched *sched, hf_branch *job)
{
    hf_runq *jobs = &sched->jobs;
    *(job->prev != NULL ? &job->prev->next : &jobs->front) = job->next;
    *(job->next != NULL ? &job->next->prev : &jobs->back) = job->prev;
    if (jobs->fresh == job) {
        jobs->fresh = job->prev;
    }
    job->failure = NULL; /* its place was the link's */
    hf_runq_count_add(sched, -1);
    HF_BUMP(jobs->taken);
    return job;
}

/* By the owner. */
static inline hf_branch *hf_runq_pop(hf_sched *sched)
{
    if (hf_runq_count(sched) == 0) {
        return NULL;
    }
    hf_branch *job = NULL;
    hf_runq_lock(sched);
    if (HF_LIKELY(sched->jobs.front != NULL)) {
        bool is_old_turn =
            HF_UNLIKELY(sched->tick % HF_OLDEST_TURN == 0) && sched->jobs.back->scope != sched->jobs.front->scope;
        job = hf_runq_take(sched, is_old_turn ? sched->jobs.back : sched->jobs.front);
    }
    hf_runq_unlock(sched);
    return job;
}

/* By a thief. */
static inline hf_branch *hf_runq_steal(hf_sched *victim)
{
    hf_branch *job = NULL;
    hf_spin_lock(&victim->jobs.lock);
    if (victim->jobs.back != NULL) {
        job = hf_runq_take(victim, victim->jobs.back);
    }
    hf_spin_unlock(&victim->jobs.lock);
    return job;
}

#endif
