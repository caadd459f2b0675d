/* The stage of a step in which local activities end, and the heartbeat of a step that takes long. On the driver. */
#include "worker/local.h"

#include "history/limits.h"

/* ---- Waiting ----------------------------------------------------------------------------------------------------------- */

static bool abort_wait(hf_wait *wait)
{
    hf_wf *wf = wait->object;
    hf_spin_lock(&wf->worker->local_lock);
    bool claimed = wf->local_waiter == wait;
    if (claimed) {
        wf->local_waiter = NULL;
    }
    hf_spin_unlock(&wf->worker->local_lock);
    return claimed;
}

static const hf_wait_kind LOCAL_ENDS = {"local activities", abort_wait};

static hf_local_job *pop(hf_wf *wf)
{
    hf_node *node = hf_list_pop_front(&wf->local_ends);
    return node != NULL ? HF_CONTAINER(node, hf_local_job, end_node) : NULL;
}

/* The next job that has ended; NULL: none did until `deadline`, or none has if it should not wait. */
static hf_local_job *next_end(hf_wf *wf, bool waits, hf_instant deadline)
{
    hf_worker *worker = wf->worker;
    hf_fiber *self = hf_enter(NULL);
    hf_wait wait;
    hf_wait_init(&wait, self, &LOCAL_ENDS, wf, wf->id.data);
    hf_spin_lock(&worker->local_lock);
    hf_local_job *job = pop(wf);
    if (job == NULL && waits) {
        hf_assert(wf->local_waiter == NULL); /* worker-K1 */
        wf->local_waiter = &wait;
        hf_spin_unlock(&worker->local_lock);
        (void)hf_park(self, &wait, deadline);
        hf_spin_lock(&worker->local_lock);
        job = pop(wf);
    }
    hf_spin_unlock(&worker->local_lock);
    hf_leave(self);
    if (job != NULL) {
        job->is_over = true;
    }
    return job;
}

/* The same, and others may use the slot of this step meanwhile. */
static hf_local_job *await_end(hf_wf *wf, hf_instant deadline)
{
    hf_worker *worker = wf->worker;
    hf_local_job *job = next_end(wf, false, HF_INSTANT_NEVER);
    if (job == NULL && deadline.ns > hf_now(NULL).ns) {
        (void)hf_sem_release(worker->workflow_slots, 1);
        job = next_end(wf, true, deadline);
        HF_IGNORE(hf_sem_acquire(worker->workflow_slots, 1)); /* the driver cannot be canceled */
    }
    return job;
}

/* ---- Beginning --------------------------------------------------------------------------------------------------------- */

/* Whether the run still has the task that is being played. A task that was given out ahead of its commit is undone if the engine's process
 * dies before the commit: the next engine starts another one, at another time, and what came before it may differ, too. */
static bool has_task(const hf_wf *wf, const hf_pb_describe_workflow_execution_response *run)
{
    const hf_pb_pending_workflow_task_info *now = run->pending_workflow_task;
    const hf_pb_timestamp *ours = &wf->at_work->task->started_time;
    if (!ours->has) { /* a recorded history is played: nothing of it is undone */
        return true;
    }
    return now != NULL && now->state == HF_PENDING_WORKFLOW_TASK_STATE_STARTED &&
           now->started_time.seconds == ours->seconds && now->started_time.nanos == ours->nanos;
}

/* worker-J1: a task may be given to a worker before the commit that started it. An answer about the run is not. */
static hf_status make_durable(hf_op *op, hf_wf *wf)
{
    hf_worker *worker = wf->worker;
    if (!wf->is_ahead) {
        return HF_OK;
    }
    hf_arena arena = hf_arenas_take(&worker->arenas);
    hf_pb_workflow_execution execution = {.workflow_id = wf->id, .run_id = wf->run_id};
    hf_pb_describe_workflow_execution_request request = {.namespace = worker->namespace_, .execution = &execution};
    hf_call call;
    hf_worker_call_init(worker, &call, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, &arena);
    hf_status status = hf_service_ask(op, worker->service, &call);
    if (status == HF_OK && !has_task(wf, call.response)) {
        status = hf_fail(op, HF_ERR_EVICTED, "the task was given out ahead of a commit that never was");
    }
    hf_arenas_give(&worker->arenas, &arena);
    wf->is_ahead = status != HF_OK;
    return status;
}

static hf_status begin_all(hf_op *op, hf_wf *wf)
{
    HF_LIST_EACH(node, &wf->locals)
    {
        hf_wf_local *local = HF_CONTAINER(node, hf_wf_local, node);
        if (local->job == NULL) {
            HF_TRY(make_durable(op, wf));
            hf_status status = hf_local_job_begin(op, local);
            wf->hands_over |= status == HF_ERR_CANCELED; /* the worker stops, and takes nothing on */
            HF_TRY(status == HF_ERR_CANCELED ? HF_OK : status);
        }
    }
    return HF_OK;
}

/* Tells jobs what happened to the calls that wait for them. A fiber only marks them: what wakes others is not for the
 * fibers of a workflow. */
static void tell(hf_wf *wf)
{
    HF_LIST_EACH(node, &wf->locals)
    {
        const hf_wf_local *local = HF_CONTAINER_CONST(node, hf_wf_local, node);
        if (local->is_cancel_asked && local->job != NULL && !local->job->is_told) {
            local->job->is_told = true;
            hf_local_job_cancel(local->job);
        }
    }
    HF_LIST_EACH(node, &wf->local_jobs)
    {
        hf_local_job *job = HF_CONTAINER(node, hf_local_job, node);
        if (job->is_left) {
            if (!job->is_abandoned) {
                hf_local_job_cancel(job);
            }
            hf_local_job_leave(job);
        }
    }
}

/* ---- The stage --------------------------------------------------------------------------------------------------------- */

static void forget(hf_local_job *job)
{
    hf_assert(!hf_node_is_linked(&job->end_node));
    hf_list_remove(&job->node);
    hf_local_job_unref(job);
}

/* Gives one end to the code: a marker and a turn (worker-J2). */
static hf_status give(hf_op *op, hf_wf *wf, hf_local_job *job, hf_status (*settle)(hf_op *, hf_wf *))
{
    if (job->is_lost) { /* the worker stops, or has no memory */
        wf->hands_over = true;
        HF_LIST_EACH(node, &wf->locals)
        {
            hf_wf_local *local = HF_CONTAINER(node, hf_wf_local, node);
            local->job = local->job == job ? NULL : local->job;
        }
        return HF_OK;
    }
    hf_crew_set_now(wf->crew, job->end.completed);
    hf_wf_local *local = hf_wf_local_find(wf, job->end.seq);
    hf_assert(local != NULL); /* worker-J3: a fiber that gave it up has left the job */
    if (!hf_local_marker_record(local, &job->end, true)) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a marker");
    }
    hf_wf_local_resolve(local, &job->end);
    return settle(op, wf);
}

static hf_instant beat_at(const hf_wf *wf)
{
    hf_span timeout = wf->task_timeout.ns > 0 ? wf->task_timeout : hf_seconds(10);
    return (hf_instant){wf->step_ns + timeout.ns / 10 * 8};
}

static hf_status play_live(hf_op *op, hf_wf *wf, hf_status (*settle)(hf_op *, hf_wf *))
{
    hf_status status = HF_OK;
    while (status == HF_OK && wf->closing == NULL && !wf->is_nomem && !wf->hands_over && !wf->is_asked &&
           !hf_list_is_empty(&wf->locals)) {
        HF_TRY(begin_all(op, wf));
        tell(wf);
        hf_local_job *job = wf->hands_over ? NULL : await_end(wf, beat_at(wf));
        if (job == NULL) {
            break; /* 80 % of the task's time are over */
        }
        status = give(op, wf, job, settle);
        if (status == HF_OK) { /* else its fiber may not have seen it yet */
            forget(job);
        }
        hf_wf_locals_begin(wf);
    }
    tell(wf);
    wf->beats = wf->closing == NULL && !hf_list_is_empty(&wf->locals);
    return status;
}

hf_status hf_wf_play_locals(hf_op *op, hf_wf *wf, hf_status (*settle)(hf_op *, hf_wf *))
{
    hf_wf_locals_begin(wf);
    if (wf->is_current) {
        return play_live(op, wf, settle);
    }
    for (size_t i = 0; i < wf->own_count && wf->closing == NULL; i++) {
        if (hf_local_marker_is(wf->own[i])) {
            HF_TRY(hf_wf_local_replay(op, wf, wf->own[i]));
            HF_TRY(settle(op, wf));
            hf_wf_locals_begin(wf);
        }
    }
    return HF_OK;
}

static bool has_pinned(const hf_wf *wf)
{
    HF_LIST_EACH(node, &wf->local_jobs)
    {
        const hf_local_job *job = HF_CONTAINER_CONST(node, hf_local_job, node);
        if (job->is_pinned && !job->is_over) {
            return true;
        }
    }
    return false;
}

void hf_wf_locals_stop(hf_wf *wf)
{
    HF_LIST_EACH(node, &wf->local_jobs)
    {
        hf_local_job_cancel(HF_CONTAINER(node, hf_local_job, node));
    }
    while (has_pinned(wf)) { /* worker-J4 */
        (void)next_end(wf, true, HF_INSTANT_NEVER);
    }
}

void hf_wf_locals_close(hf_wf *wf)
{
    while (!hf_list_is_empty(&wf->local_jobs)) {
        hf_local_job_leave(HF_CONTAINER(hf_list_first(&wf->local_jobs), hf_local_job, node));
    }
}
