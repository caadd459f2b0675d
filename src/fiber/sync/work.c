/* How the work is canceled without its siblings: it opens a scope on its own fiber and runs inside it. The scope is
 * published under the lock before the work begins, and withdrawn under the lock before the scope is closed. So a
 * thread that holds the lock and sees the scope may post a cancel to it; closing waits for messages under way
 * (fiber-J3 in scope.c). A handle of the branch is not needed: in a scope that stays open for ever, handles would
 * pile up. */
#include "fiber/sync/work.h"

static hf_failure_box *take_failure(hf_fiber *self, const hf_work *work, hf_status status)
{
    return status != HF_OK ? hf_self_take_failure(self, work->scope->rt, status, work->name) : NULL;
}

/* Whether it may begin; from then on abandon reaches it. */
static bool begin(hf_work *work, hf_scope *inside)
{
    hf_fiber *self = hf_enter(work->scope->rt);
    hf_assert(self != NULL);
    hf_spin_lock(work->lock);
    hf_assert(work->inside == NULL && work->runner == NULL);
    bool may_run = !work->abandoned;
    if (may_run) {
        work->inside = inside;
        work->runner = self;
    }
    hf_spin_unlock(work->lock);
    if (!may_run) {
        (void)hf_refuse_at(self, HF_ERR_CANCELED, work->name, "nobody waits for '%s' any more", work->name);
    }
    hf_leave(self);
    return may_run;
}

/* From here on nobody can cancel it. The sentence of a cancel is made while the scope still knows the cause. */
static hf_failure_box *stop(hf_work *work, hf_status status)
{
    hf_fiber *self = hf_enter(work->scope->rt);
    hf_assert(self != NULL);
    hf_spin_lock(work->lock);
    hf_assert(work->runner == NULL || work->runner == self);
    work->inside = NULL;
    work->runner = NULL;
    hf_spin_unlock(work->lock);
    hf_failure_box *failure = take_failure(self, work, status);
    hf_leave(self);
    return failure;
}

/* Returns the status for the scope: a failure that goes to a waiter is not reported to the scope; a cancel of the scope
 * itself is. */
static hf_status finish(hf_work *work, hf_status status, hf_failure_box *failure)
{
    hf_fiber *self = hf_enter(work->scope->rt);
    hf_assert(self != NULL);
    void (*unref)(hf_work *) = work->kind->unref;
    hf_failure_box *kept = hf_box_ref(failure);
    bool is_told = work->kind->end(work, status, failure);
    if (status == HF_ERR_CANCELED && hf_is_canceled(self)) {
        hf_self_note(self, status, "hf_fork");
    } else if (status != HF_OK && !is_told) {
        hf_self_fail(self, kept);
        kept = NULL;
    } else {
        status = HF_OK;
    }
    hf_box_unref(kept);
    hf_leave(self);
    unref(work);
    return status;
}

static hf_status work_main(void *arg)
{
    hf_work *work = arg;
    hf_scope *inside = NULL;
    hf_status status = hf_scope_open(&inside, .name = work->name);
    if (status != HF_OK) {
        return finish(work, status, stop(work, status));
    }
    status = begin(work, inside) ? work->kind->run(work) : HF_ERR_CANCELED;
    hf_failure_box *failure = stop(work, status);
    (void)hf_scope_close(inside);
    return finish(work, status, failure);
}

/* Called instead of work_main if the branch does not run: on a fiber that is about to end, on a scheduler inside the
 * library, or by hf_fork on the forker itself. In the last case hf_work_start ends the work, with the failure of hf_fork. */
static void work_drop(void *arg)
{
    hf_work *work = arg;
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    bool in_lib = self->in_lib != 0;
    if (!in_lib) {
        self = hf_enter(work->scope->rt);
        hf_assert(self != NULL);
    }
    hf_spin_lock(work->lock);
    bool is_forker = work->forker == self;
    hf_spin_unlock(work->lock);
    if (!is_forker) {
        bool canceled = (self->branch != NULL && self->branch->arg == work) ||
                        atomic_load_explicit(&work->scope->cx.canceled, memory_order_relaxed);
        hf_status status = canceled ? HF_ERR_CANCELED : HF_ERR_LIMIT;
        hf_failure_box *failure =
            hf_box_new(work->scope->rt, status, NULL, work->name,
                       canceled ? "the work was canceled before it started" : "there was no stack for the work", NULL);
        (void)work->kind->end(work, status, failure);
    }
    if (!in_lib) {
        hf_leave(self);
    }
    if (!is_forker) {
        work->kind->unref(work);
    }
}

hf_status hf_work_start(hf_work *work)
{
    hf_fiber *self = hf_enter(work->scope->rt);
    if (self == NULL) {
        return hf_forked();
    }
    hf_spin_lock(work->lock);
    hf_assert(work->forker == NULL && work->runner == NULL);
    work->forker = self;
    hf_spin_unlock(work->lock);
    hf_leave(self);
    hf_status status = hf_fork(work->scope, work_main, work, .name = work->name, .drop = work_drop);
    self = hf_enter(work->scope->rt);
    hf_assert(self != NULL);
    hf_spin_lock(work->lock);
    work->forker = NULL;
    hf_spin_unlock(work->lock);
    if (status != HF_OK) {
        hf_failure_box *failure = take_failure(self, work, status);
        hf_self_fail(self, hf_box_ref(failure));
        (void)work->kind->end(work, status, failure);
    }
    hf_leave(self);
    if (status != HF_OK) {
        work->kind->unref(work);
    }
    return status;
}

void hf_work_strand(const hf_branch *branch)
{
    if (branch->drop != work_drop) {
        return;
    }
    hf_assert(branch->fiber != NULL); /* else the drop of the branch ends the work */
    hf_work *work = branch->arg;
    hf_spin_lock(work->lock);
    work->inside = NULL;
    work->runner = NULL;
    hf_spin_unlock(work->lock);
    (void)work->kind->end(work, HF_ERR_EVICTED, NULL);
    work->kind->unref(work);
}

void hf_work_abandon(hf_work *work)
{
    if (work->abandoned) {
        return;
    }
    work->abandoned = true;
    if (work->inside != NULL) {
        hf_scope_cancel_post(work->inside, HF_CAUSE_ABANDONED, work->name, false);
    }
}
