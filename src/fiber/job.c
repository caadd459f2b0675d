/* Nodes of the tree: jobs and scopes, in dense slabs. A free node goes to the scheduler that freed it; what piles up there
 * moves to the runtime's depot in batches, so that forking on one thread and finishing on another does not drift. */
#include "fiber/core.h"

#include <string.h>

enum { SLAB_LEN = 64 * 1024, CACHE_MAX = 512, BATCH = 256 };

typedef struct slab {
    struct slab *next;
} slab;

_Static_assert(sizeof(hf_job) <= 256, "a queued job must stay small");

/* Under depot_lock: carves a slab into jobs and chains them in front of the depot. */
static void carve_jobs(hf_runtime *rt, slab *fresh)
{
    fresh->next = rt->slabs;
    rt->slabs = fresh;
    hf_job *jobs = (hf_job *)(void *)((char *)fresh + 64);
    size_t count = (SLAB_LEN - 64) / sizeof *jobs;
    for (size_t i = count; i-- > 0;) {
        jobs[i].next = rt->depot_jobs;
        rt->depot_jobs = &jobs[i];
    }
}

/* Takes up to `count` jobs from the depot. */
static hf_job *depot_take(hf_runtime *rt, unsigned count, unsigned *ret_count)
{
    hf_spin_lock(&rt->depot_lock);
    if (rt->depot_jobs == NULL) {
        hf_spin_unlock(&rt->depot_lock);
        slab *fresh = rt->allocator.allocate(rt->allocator.state, SLAB_LEN, 64);
        if (fresh == NULL) {
            return NULL;
        }
        hf_spin_lock(&rt->depot_lock);
        carve_jobs(rt, fresh);
    }
    hf_job *first = rt->depot_jobs;
    hf_job *last = first;
    unsigned taken = 1;
    while (taken < count && last->next != NULL) {
        last = last->next;
        taken++;
    }
    rt->depot_jobs = last->next;
    hf_spin_unlock(&rt->depot_lock);
    last->next = NULL;
    *ret_count = taken;
    return first;
}

hf_job *hf_job_new(hf_runtime *rt, hf_sched *sched)
{
    hf_job *job = NULL;
    if (sched != NULL) {
        if (HF_UNLIKELY(sched->free_jobs == NULL)) {
            unsigned count = 0;
            sched->free_jobs = depot_take(rt, BATCH, &count);
            sched->free_job_count = sched->free_jobs == NULL ? 0 : count;
            if (sched->free_jobs == NULL) {
                return NULL;
            }
        }
        job = sched->free_jobs;
        sched->free_jobs = job->next;
        sched->free_job_count--;
    } else {
        unsigned count = 0;
        job = depot_take(rt, 1, &count);
        if (job == NULL) {
            return NULL;
        }
    }
    memset(job, 0, sizeof *job);
    return job;
}

static void depot_give(hf_runtime *rt, hf_job *first, hf_job *last)
{
    hf_spin_lock(&rt->depot_lock);
    last->next = rt->depot_jobs;
    rt->depot_jobs = first;
    hf_spin_unlock(&rt->depot_lock);
}

void hf_job_free(hf_runtime *rt, hf_sched *sched, hf_job *job)
{
    hf_assert(!hf_node_is_linked(&job->siblings));
    if (job->failure != NULL) {
        hf_box_unref(job->failure);
        job->failure = NULL;
    }
    if (sched == NULL) {
        depot_give(rt, job, job);
        return;
    }
    job->next = sched->free_jobs;
    sched->free_jobs = job;
    if (HF_UNLIKELY(++sched->free_job_count > CACHE_MAX)) {
        hf_job *first = sched->free_jobs;
        hf_job *last = first;
        for (unsigned i = 1; i < BATCH; i++) {
            last = last->next;
        }
        sched->free_jobs = last->next;
        sched->free_job_count -= BATCH;
        depot_give(rt, first, last);
    }
}

/* Scopes are fewer: a list per scheduler, the rest straight from the allocator. */
enum { SCOPES_CACHED_MAX = 64 };

hf_scope *hf_scope_alloc(hf_runtime *rt, hf_sched *sched)
{
    if (sched != NULL && sched->free_scopes != NULL) {
        hf_scope *scope = sched->free_scopes;
        sched->free_scopes = scope->outer;
        memset(scope, 0, sizeof *scope);
        return scope;
    }
    return hf_rt_alloc(rt, sizeof(hf_scope));
}

void hf_scope_release(hf_runtime *rt, hf_sched *sched, hf_scope *scope)
{
    if (sched != NULL && (sched->free_scopes == NULL || sched->free_scopes->id < SCOPES_CACHED_MAX)) {
        scope->id = sched->free_scopes == NULL ? 1 : sched->free_scopes->id + 1; /* length of the list from here */
        scope->outer = sched->free_scopes;
        sched->free_scopes = scope;
        return;
    }
    hf_rt_free(rt, scope, sizeof *scope);
}

void hf_slabs_deinit(hf_runtime *rt)
{
    slab *at = rt->slabs;
    while (at != NULL) {
        slab *next = at->next;
        rt->allocator.release(rt->allocator.state, at, SLAB_LEN);
        at = next;
    }
    rt->slabs = NULL;
    rt->depot_jobs = NULL;
}
