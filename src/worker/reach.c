/* A workflow cancels an activity that a worker of the same process executes: the activity hears of it at once, and not
 * only from its next heartbeat (service/witness.h).
 *
 * The cancel comes from the workflow's thread, and the scope of the activity goes when its function has returned. So the
 * activity is pinned under the lock of worker->busy, canceled without the lock, and waits until nobody pins it before it
 * closes the scope. */
#include "worker/activity_private.h"
#include "worker/local.h"

typedef struct hf_activity_work activity;

void *hf_activity_pin(hf_witness *witness, hf_str namespace_, hf_str run_id, hf_str activity_id)
{
    hf_worker *worker = HF_CONTAINER(witness, hf_worker, witness);
    activity *found = NULL;
    if (!hf_str_equal(namespace_, worker->namespace_)) {
        return NULL;
    }
    hf_spin_lock(&worker->busy_lock);
    HF_LIST_EACH(node, &worker->busy)
    {
        activity *act = HF_CONTAINER(node, activity, busy);
        const hf_pb_workflow_execution *execution = act->task->workflow_execution;
        if (act->job == NULL && execution != NULL && hf_str_equal(execution->run_id, run_id) &&
            hf_str_equal(act->task->activity_id, activity_id) && !atomic_load(&act->has_returned)) {
            found = act; /* the newest one: an earlier attempt may still hang */
        }
    }
    if (found != NULL) {
        atomic_fetch_add(&found->pins, 1);
    }
    hf_spin_unlock(&worker->busy_lock);
    return found;
}

hf_activity_work *hf_activity_pin_local(const hf_local_job *job)
{
    hf_worker *worker = job->worker;
    activity *found = NULL;
    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&worker->busy_lock);
    HF_LIST_EACH(node, &worker->busy)
    {
        activity *act = HF_CONTAINER(node, activity, busy);
        if (act->job == job && !atomic_load(&act->has_returned)) {
            found = act; /* the newest one: an earlier attempt may still hang */
        }
    }
    if (found != NULL) {
        atomic_fetch_add(&found->pins, 1);
    }
    hf_spin_unlock(&worker->busy_lock);
    hf_leave(self);
    return found;
}

static void cancel_work(activity *act, hf_scope *scope)
{
    hf_assert(scope != NULL && atomic_load(&act->is_cancel_requested));
    hf_activity_note_why(act, HF_WHY_CANCELED);
    HF_IGNORE(hf_scope_cancel(scope, .reason = act->body != NULL ? "no workflow waits for the activity any more"
                                                                 : "the workflow canceled the activity"));
}

void hf_activity_cancel(void *pinned)
{
    activity *act = pinned;
    hf_worker *worker = act->worker;
    hf_assert(atomic_load(&act->pins) > 0);
    hf_spin_lock(&worker->busy_lock);
    hf_scope *scope = act->work;
    atomic_store(&act->is_cancel_requested, true); /* if there is no scope yet, the one who opens it sees this */
    hf_spin_unlock(&worker->busy_lock);
    if (scope != NULL) {
        cancel_work(act, scope); /* the scope stays: see hf_activity_be_unreachable */
    }
    atomic_fetch_sub(&act->pins, 1);
}

void hf_activity_be_reachable(activity *act, hf_scope *scope)
{
    hf_assert(scope != NULL);
    hf_spin_lock(&act->worker->busy_lock);
    hf_assert(act->work == NULL); /* one scope at a time */
    act->work = scope;
    bool is_canceled = atomic_load(&act->is_cancel_requested);
    hf_spin_unlock(&act->worker->busy_lock);
    if (is_canceled) {
        cancel_work(act, scope);
    }
}

void hf_activity_await_pins(activity *act)
{
    while (atomic_load(&act->pins) > 0) { /* a call that is about to cancel it, and does not wait itself */
        hf_fiber *self = hf_enter(NULL);
        hf_yield_in(self); /* also if the activity is canceled, as it just may have been */
        hf_leave(self);
    }
}

void hf_activity_be_unreachable(activity *act)
{
    hf_spin_lock(&act->worker->busy_lock);
    act->work = NULL;
    hf_spin_unlock(&act->worker->busy_lock);
    hf_activity_await_pins(act);
}
