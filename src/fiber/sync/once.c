/* Once. While the body runs, other callers wait. If it fails, the first waiter is woken with HF_ERR_AGAIN and runs
 * the body itself. */
#include "fiber/sync/sync.h"
#include "fiber/verbs.h"

typedef enum once_state { ONCE_NEW, ONCE_RUNNING, ONCE_DONE } once_state;

struct hf_once {
    once_state state;
    hf_holder runner; /* while running */
    hf_waitable base; /* without waiters unless running */
};

static bool is_once_used(const hf_waitable *base)
{
    return HF_CONTAINER_CONST(base, hf_once, base)->state == ONCE_RUNNING;
}

static const hf_waitable_kind KIND = HF_WAITABLE_KIND(hf_once, "once", "once", is_once_used);

hf_status hf_once_new_with(hf_once **ret_once, const hf_sync_options *options)
{
    HF_OPTIONS(hf_sync_options, options, hf_once_new);
    HF_VERB_ENTER(self, hf_once_new, options->runtime);
    hf_status status = HF_OK;
    hf_waitable *made = hf_waitable_new(self, &KIND, "hf_once_new", ret_once != NULL, options, &status);
    if (made != NULL) {
        *ret_once = HF_CONTAINER(made, hf_once, base);
    }
    HF_LEAVE(self, status);
}

hf_status hf_once_free(hf_once *once)
{
    if (once == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_once_free, once->base.rt);
    HF_LEAVE(self, hf_waitable_free(self, &once->base, "hf_once_free"));
}

static const hf_wait_kind RUN = {"hf_once_run", hf_wait_abort_linked};

/* HF_OK: it is done. HF_ERR_AGAIN: the caller has the turn. */
static hf_status await(hf_fiber *self, hf_once *once)
{
    hf_wait wait;
    hf_status status = HF_OK;
    hf_sync_point(self);
    hf_spin_lock(&once->base.lock);
    switch (once->state) {
    case ONCE_DONE:
        break;
    case ONCE_NEW:
        hf_assert(hf_list_is_empty(&once->base.waiters));
        once->state = ONCE_RUNNING;
        once->runner = hf_holder_of(self);
        status = HF_ERR_AGAIN;
        break;
    case ONCE_RUNNING:
        if (hf_holder_is(once->runner, self)) {
            status = HF_ERR_MISUSE;
            break;
        }
        hf_wait_init(&wait, self, &RUN, &once->base, once->base.name);
        hf_list_push_back(&once->base.waiters, &wait.node);
        hf_spin_unlock(&once->base.lock);
        return hf_park(self, &wait, HF_INSTANT_NEVER);
    }
    hf_spin_unlock(&once->base.lock);
    if (status == HF_ERR_MISUSE) {
        (void)hf_refuse_at(self, status, RUN.verb, "the body of once '%s' waits for itself", once->base.name);
    }
    return status;
}

static void end_turn(hf_fiber *self, hf_once *once, bool is_done)
{
    hf_claimed claimed = {NULL, NULL};
    hf_sync_point(self);
    hf_spin_lock(&once->base.lock);
    hf_assert(once->state == ONCE_RUNNING);
    hf_assert(hf_holder_is(once->runner, self));
    if (is_done) {
        once->state = ONCE_DONE;
        once->runner = HF_HOLDER_NONE;
        hf_claimed_add_all(&claimed, &once->base.waiters);
    } else if (!hf_list_is_empty(&once->base.waiters)) {
        hf_wait *next = HF_CONTAINER(hf_list_first(&once->base.waiters), hf_wait, node);
        once->runner = hf_holder_of(next->fiber);
        hf_claimed_add(&claimed, next);
    } else {
        once->state = ONCE_NEW;
        once->runner = HF_HOLDER_NONE;
    }
    hf_spin_unlock(&once->base.lock);
    hf_claimed_wake(&claimed, is_done ? HF_OK : HF_ERR_AGAIN);
}

hf_status hf_once_run(hf_once *once, hf_body body, void *arg)
{
    HF_VERB_ENTER(self, hf_once_run, once != NULL ? once->base.rt : NULL);
    if (HF_UNLIKELY(once == NULL || body == NULL)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_once_run needs a once and a body"));
    }
    hf_status status = hf_may_wait(self, RUN.verb);
    status = status == HF_OK ? await(self, once) : status;
    hf_leave(self);
    if (status != HF_ERR_AGAIN) {
        return status;
    }
    status = body(arg);
    self = hf_enter(once->base.rt);
    hf_assert(self != NULL);
    end_turn(self, once, status == HF_OK);
    HF_LEAVE(self, status);
}
