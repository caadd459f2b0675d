/* Children without a fiber: see job.h. */
#include "fiber/crew/job.h"

#include "fiber/crew/crew_struct.h"
#include "fiber/enter.h"

void hf_crew_job_start(hf_branch *branch)
{
    hf_crew *crew = hf_crew_of_dispatcher(branch->on);
    hf_crew_job *job = branch->arg;
    hf_assert(crew != NULL && !crew->is_evicted);             /* hf_crew_may_fork has looked */
    hf_assert(job != NULL && !hf_node_is_linked(&job->node)); /* fiber-H1 */
    job->branch = branch;
    branch->state = HF_BRANCH_RUNNING;
    hf_list_push_back(&crew->jobs, &job->node);
    crew->job_count++;
}

/* The branch has ended; the job is not looked at any more. */
static hf_branch *forget(hf_crew *crew, hf_crew_job *job)
{
    hf_branch *branch = job->branch;
    hf_assert(hf_node_is_linked(&job->node) && crew->job_count > 0); /* fiber-H1 */
    hf_assert(branch->fiber == NULL && branch->state == HF_BRANCH_RUNNING);
    hf_list_remove(&job->node);
    crew->job_count--;
    branch->arg = NULL;
    return branch;
}

bool hf_crew_job_is_canceled(const hf_crew_job *job)
{
    return atomic_load_explicit(&job->branch->cancel_requested, memory_order_relaxed);
}

void hf_crew_job_end(hf_fiber *self, hf_crew_job *job, hf_status status)
{
    bool is_canceled = status == HF_ERR_CANCELED && hf_crew_job_is_canceled(job);
    hf_crew *crew = hf_crew_of_dispatcher(job->branch->on);
    hf_assert(hf_crew_owns(crew, self)); /* fiber-W2 */
    hf_branch *branch = forget(crew, job);
    branch->status = status;
    if (status != HF_OK && !is_canceled) {
        branch->failure = hf_self_take_failure(self, self->rt, status, branch->name);
    }
    hf_branch_ended(crew->sched, branch);
}

static void on_canceled(hf_sched *sched, hf_msg *msg)
{
    hf_branch_ended(sched, HF_CONTAINER(msg, hf_branch, msg));
}

/* The walk that cancels is not to be disturbed, so the end of the branch is left to the next switch. */
void hf_crew_job_cancel(hf_branch *branch)
{
    hf_crew_job *job = branch->arg;
    hf_crew *crew = hf_crew_of_dispatcher(branch->on);
    if (job == NULL || crew->is_evicted) { /* its end is on its way */
        return;
    }
    hf_assert(job->branch == branch && hf_node_is_linked(&job->node)); /* fiber-H1 */
    hf_list_remove(&job->node);
    if (!job->kind->cancel(job)) {
        hf_list_push_back(&crew->jobs, &job->node);
        return;
    }
    crew->job_count--;
    branch->arg = NULL;
    branch->status = HF_ERR_CANCELED;
    branch->msg.run = on_canceled;
    hf_crew_mail(crew, &branch->msg);
}

void hf_crew_drop_jobs(hf_crew *crew)
{
    hf_assert(crew->is_evicted);
    while (!hf_list_is_empty(&crew->jobs)) {
        hf_crew_job *job = HF_CONTAINER(hf_list_first(&crew->jobs), hf_crew_job, node);
        hf_branch *branch = forget(crew, job);
        job->kind->drop(job);
        branch->status = HF_ERR_EVICTED;
        hf_branch_ended(crew->sched, branch);
    }
    hf_assert(crew->job_count == 0); /* fiber-H1 */
}
