/* Jobs: children of a workflow's scope that have no fiber. What a job stands for happens elsewhere, such as an activity
 * or another workflow; the owner of the crew ends it when it has heard of the end. To its scope a job is a branch like
 * any other: joins count it, deadlines and cancels reach it, and it has a handle.
 *
 *     fork --> in crew->jobs --hf_crew_job_end--> its branch has ended
 *                   |
 *                   +-- canceled, and kind->cancel says that it is over: its branch ends at the next switch
 *                   +-- the crew is evicted: kind->drop, and its branch ends
 *
 * fiber-H1  A job is in crew->jobs from its fork until its end is decided. Its owner frees it: after hf_crew_job_end, in
 *           kind->drop, or before kind->cancel returns true. */
#ifndef HF_FIBER_JOB_H
#define HF_FIBER_JOB_H

#include "fiber/core.h"

typedef struct hf_crew_job hf_crew_job;

typedef struct hf_crew_job_kind {
    /* The branch was canceled; maybe not for the first time. True: the job is over, as canceled, and the owner has freed
     * it. Called in the middle of a walk over scopes: it must not end other branches. */
    bool (*cancel)(hf_crew_job *job);
    /* The crew is evicted: the owner frees the job. */
    void (*drop)(hf_crew_job *job);
} hf_crew_job_kind;

/* Embedded in a struct of the owner's. */
struct hf_crew_job {
    hf_node node; /* in crew->jobs */
    const hf_crew_job_kind *kind;
    hf_branch *branch;
};

/* fork.c: forks a job into a scope of the crew whose member is calling. `name` must outlive the scope. If the scope is
 * canceled, so is the job: the caller asks hf_crew_job_is_canceled, and ends it. Fails: as hf_fork; the failure is
 * noted, and the caller still owns the job. */
hf_status hf_fork_job(hf_fiber *self, hf_scope *scope, hf_crew_job *job, const char *verb, const char *name,
                      hf_branch **ret_branch);
bool hf_crew_job_is_canceled(const hf_crew_job *job);
/* By the driver or a member. The last failure of the caller becomes that of the branch, unless `status` is HF_OK, or
 * HF_ERR_CANCELED and the job was canceled. */
void hf_crew_job_end(hf_fiber *self, hf_crew_job *job, hf_status status);

/* For the rest of the layer. The branch of a job has no body. */
static inline bool hf_branch_is_job(const hf_branch *branch)
{
    return branch->body == NULL;
}
void hf_crew_job_start(hf_branch *branch);
void hf_crew_job_cancel(hf_branch *branch);
void hf_crew_drop_jobs(hf_crew *crew); /* when it is evicted */

#endif
