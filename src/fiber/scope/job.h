/* Making and freeing jobs: a list per scheduler, in line; the rest in job.c. */
#ifndef HF_FIBER_JOB_H
#define HF_FIBER_JOB_H

#include "fiber/core.h"

enum { HF_JOBS_CACHED_MAX = 2048 }; /* free jobs a scheduler keeps; more go to the depot */

void hf_branch_free_slow(hf_runtime *rt, hf_branch *job);

/* Neither started nor canceled; what make_job does not set is 0 or NULL. sched NULL: not on a fiber thread of rt. */
static inline hf_branch *hf_branch_new(hf_runtime *rt, hf_sched *sched)
{
    if (HF_UNLIKELY(sched == NULL || sched->free_jobs == NULL)) {
        return hf_branch_new_slow(rt, sched);
    }
    hf_branch *job = sched->free_jobs;
    sched->free_jobs = job->next;
    sched->free_job_count--;
    return job;
}

static inline void hf_branch_free(hf_runtime *rt, hf_sched *sched, hf_branch *job)
{
    hf_assert(!hf_node_is_linked(&job->siblings) && job->extra == NULL);
    if (HF_UNLIKELY(job->failure != NULL)) {
        hf_box_unref(job->failure);
        job->failure = NULL;
    }
    if (HF_UNLIKELY(atomic_load_explicit(&job->cancel_requested, memory_order_relaxed))) {
        atomic_store_explicit(&job->cancel_requested, false, memory_order_relaxed);
        atomic_store_explicit(&job->cx.canceled, false, memory_order_relaxed);
        job->cx.inherited = false;
        job->cx.cause = HF_CAUSE_NONE;
        job->cx.reason = NULL;
        job->cx.failure = NULL;
    }
    atomic_store_explicit(&job->at, NULL, memory_order_relaxed);
    job->fiber = NULL;
    job->state = HF_BRANCH_NEW;
    job->pinned = false;
    if (HF_UNLIKELY(sched == NULL)) {
        hf_branch_free_slow(rt, job);
        return;
    }
    job->next = sched->free_jobs;
    sched->free_jobs = job;
    if (HF_UNLIKELY(++sched->free_job_count > HF_JOBS_CACHED_MAX)) {
        hf_branch_free_many(sched);
    }
}

#endif
