/* The condition. A waiter is in the queue before it unlocks the mutex, so a signal in between is not lost. It locks
 * the mutex again in a wait that cannot be aborted, because the caller relies on holding it. */
#include "fiber/sync/sync.h"
#include "fiber/verbs.h"

struct hf_cond {
    unsigned users; /* verbs that wait: claimed ones too, until they run again */
    hf_waitable base;
};

static bool is_cond_used(const hf_waitable *base)
{
    return HF_CONTAINER_CONST(base, hf_cond, base)->users > 0;
}

static const hf_waitable_kind KIND = HF_WAITABLE_KIND(hf_cond, "condition", "cond", is_cond_used);

hf_status hf_cond_new_with(hf_cond **ret_cond, const hf_sync_options *options)
{
    HF_OPTIONS(hf_sync_options, options, hf_cond_new);
    HF_VERB_ENTER(self, hf_cond_new, options->runtime);
    hf_status status = HF_OK;
    hf_waitable *made = hf_waitable_new(self, &KIND, "hf_cond_new", ret_cond != NULL, options, &status);
    if (made != NULL) {
        *ret_cond = HF_CONTAINER(made, hf_cond, base);
    }
    HF_LEAVE(self, status);
}

hf_status hf_cond_free(hf_cond *cond)
{
    if (cond == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_cond_free, cond->base.rt);
    HF_LEAVE(self, hf_waitable_free(self, &cond->base, "hf_cond_free"));
}

static const hf_wait_kind WAIT = {"hf_cond_wait", hf_wait_abort_linked};
const hf_wait_kind hf_cond_relock = {"hf_cond_wait", NULL};

static hf_status wait_on(hf_fiber *self, hf_cond *cond, hf_mutex *mutex, const hf_wait_options *options)
{
    hf_wait wait;
    hf_wait_init(&wait, self, &WAIT, &cond->base, cond->base.name);
    hf_spin_lock(&cond->base.lock);
    hf_list_push_back(&cond->base.waiters, &wait.node);
    cond->users++;
    hf_spin_unlock(&cond->base.lock);
    hf_status unlocked = hf_mutex_unlock_on(self, mutex);
    hf_assert(unlocked == HF_OK);
    hf_status status = hf_park(self, &wait, hf_wait_deadline(self, cond->base.rt, options));
    hf_spin_lock(&cond->base.lock);
    hf_assert(cond->users > 0 && !hf_node_is_linked(&wait.node)); /* fiber-F3 */
    cond->users--;
    hf_spin_unlock(&cond->base.lock);
    hf_status locked = hf_mutex_lock_on(self, mutex, &hf_cond_relock, NULL);
    hf_assert(locked == HF_OK);
    return status;
}

hf_status hf_cond_wait_with(hf_cond *cond, hf_mutex *mutex, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_cond_wait);
    HF_VERB_ENTER(self, hf_cond_wait, cond != NULL ? cond->base.rt : NULL);
    bool is_held = false;
    if (cond != NULL && mutex != NULL) {
        hf_spin_lock(&mutex->base.lock);
        is_held = hf_holder_is(mutex->owner, self);
        hf_spin_unlock(&mutex->base.lock);
    }
    if (HF_UNLIKELY(!is_held)) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, WAIT.verb,
                                    "a condition and a mutex that the caller holds are needed"));
    }
    hf_status status = hf_may_wait_for(self, WAIT.verb, options);
    HF_LEAVE(self, status == HF_OK ? wait_on(self, cond, mutex, options) : status);
}

static hf_status wake(hf_fiber *self, hf_cond *cond, bool all, const char *verb)
{
    if (HF_UNLIKELY(cond == NULL)) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, verb, "no condition to signal"));
    }
    hf_claimed claimed = {NULL, NULL};
    hf_sync_point(self);
    hf_spin_lock(&cond->base.lock);
    if (all) {
        hf_claimed_add_all(&claimed, &cond->base.waiters);
    } else if (!hf_list_is_empty(&cond->base.waiters)) {
        hf_claimed_add(&claimed, HF_CONTAINER(hf_list_first(&cond->base.waiters), hf_wait, node));
    }
    hf_spin_unlock(&cond->base.lock);
    hf_claimed_wake(&claimed, HF_OK);
    HF_LEAVE(self, HF_OK);
}

hf_status hf_cond_signal(hf_cond *cond)
{
    HF_VERB_ENTER(self, hf_cond_signal, cond != NULL ? cond->base.rt : NULL);
    return wake(self, cond, false, "hf_cond_signal");
}

hf_status hf_cond_broadcast(hf_cond *cond)
{
    HF_VERB_ENTER(self, hf_cond_broadcast, cond != NULL ? cond->base.rt : NULL);
    return wake(self, cond, true, "hf_cond_broadcast");
}
