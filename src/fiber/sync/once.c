/* Once. While the body runs, other callers wait. If it fails, the first waiter is woken with HF_ERR_AGAIN and runs
 * the body itself. */
#include "fiber/sync/sync.h"
#include "fiber/verbs.h"

typedef enum once_state { ONCE_NEW, ONCE_RUNNING, ONCE_DONE } once_state;

struct hf_once {
    hf_spin lock; /* first: hf_wait.object points here */
    once_state state;
    hf_holder runner; /* while running */
    hf_list waiters;  /* empty unless running */
    hf_runtime *rt;
    const char *name;
    hf_owned owned;
};

static void drop_once(hf_owned *owned)
{
    hf_once *once = HF_CONTAINER(owned, hf_once, owned);
    if (!hf_list_is_empty(&once->waiters)) {
        hf_owned_in_use(once->rt, "once", once->name);
        return;
    }
    hf_rt_free(once->rt, once, sizeof *once);
}

hf_status hf_once_new_with(hf_once **ret_once, const hf_sync_options *options)
{
    HF_OPTIONS(hf_sync_options, options, hf_once_new);
    HF_VERB_ENTER(self, hf_once_new, options->runtime);
    if (ret_once == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_once_new needs a place for the once"));
    }
    hf_runtime *rt = NULL;
    hf_status status = HF_OK;
    hf_once *once = hf_object_new(self, "hf_once_new", options->runtime, sizeof *once, &rt, &status);
    if (once != NULL) {
        once->rt = rt;
        once->name = options->name != NULL ? options->name : "once";
        hf_list_init(&once->waiters);
        hf_own(self, &once->owned, drop_once);
        *ret_once = once;
    }
    HF_LEAVE(self, status);
}

hf_status hf_once_free(hf_once *once)
{
    if (once == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_once_free, once->rt);
    hf_spin_lock(&once->lock);
    bool is_used = once->state == ONCE_RUNNING;
    hf_spin_unlock(&once->lock);
    if (is_used) {
        HF_LEAVE(self, hf_object_in_use(self, once->rt, "hf_once_free", once->name));
    }
    hf_status status = hf_disown(self, &once->owned, "hf_once_free", once->name);
    if (status == HF_OK) {
        hf_rt_free(once->rt, once, sizeof *once);
    }
    HF_LEAVE(self, status);
}

static const hf_wait_kind RUN = {"hf_once_run", hf_wait_abort_linked};

/* HF_OK: it is done. HF_ERR_AGAIN: the caller has the turn. */
static hf_status await(hf_fiber *self, hf_once *once)
{
    hf_wait wait;
    hf_status status = HF_OK;
    hf_sync_point(self);
    hf_spin_lock(&once->lock);
    switch (once->state) {
    case ONCE_DONE:
        break;
    case ONCE_NEW:
        hf_assert(hf_list_is_empty(&once->waiters));
        once->state = ONCE_RUNNING;
        once->runner = hf_holder_of(self);
        status = HF_ERR_AGAIN;
        break;
    case ONCE_RUNNING:
        if (hf_holder_is(once->runner, self)) {
            status = HF_ERR_MISUSE;
            break;
        }
        hf_wait_init(&wait, self, &RUN, once, once->name);
        hf_list_push_back(&once->waiters, &wait.node);
        hf_spin_unlock(&once->lock);
        return hf_park(self, &wait, HF_INSTANT_NEVER);
    }
    hf_spin_unlock(&once->lock);
    if (status == HF_ERR_MISUSE) {
        (void)hf_refuse_at(self, status, RUN.verb, "the body of once '%s' waits for itself", once->name);
    }
    return status;
}

static void end_turn(hf_fiber *self, hf_once *once, bool is_done)
{
    hf_claimed claimed = {NULL, NULL};
    hf_sync_point(self);
    hf_spin_lock(&once->lock);
    hf_assert(once->state == ONCE_RUNNING);
    hf_assert(hf_holder_is(once->runner, self));
    if (is_done) {
        once->state = ONCE_DONE;
        once->runner = HF_HOLDER_NONE;
        hf_claimed_add_all(&claimed, &once->waiters);
    } else if (!hf_list_is_empty(&once->waiters)) {
        hf_wait *next = HF_CONTAINER(hf_list_first(&once->waiters), hf_wait, node);
        once->runner = hf_holder_of(next->fiber);
        hf_claimed_add(&claimed, next);
    } else {
        once->state = ONCE_NEW;
        once->runner = HF_HOLDER_NONE;
    }
    hf_spin_unlock(&once->lock);
    hf_claimed_wake(&claimed, is_done ? HF_OK : HF_ERR_AGAIN);
}

hf_status hf_once_run(hf_once *once, hf_body body, void *arg)
{
    HF_VERB_ENTER(self, hf_once_run, once != NULL ? once->rt : NULL);
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
    self = hf_enter(once->rt);
    hf_assert(self != NULL);
    end_turn(self, once, status == HF_OK);
    HF_LEAVE(self, status);
}
