/* The mutex. Unlocking gives it to the first waiter, so no other can overtake. A claimed waiter holds it, so a
 * cancel or timeout that comes later finds nothing to abort. */
#include "fiber/crew/strand.h"
#include "fiber/sync/sync.h"
#include "fiber/verbs.h"

static bool is_mutex_used(const hf_waitable *base)
{
    return HF_CONTAINER_CONST(base, hf_mutex, base)->owner.fiber != NULL;
}

static const hf_waitable_kind KIND = HF_WAITABLE_KIND(hf_mutex, "mutex", "mutex", is_mutex_used);

hf_status hf_mutex_new_with(hf_mutex **ret_mutex, const hf_sync_options *options)
{
    HF_OPTIONS(hf_sync_options, options, hf_mutex_new);
    HF_VERB_ENTER(self, hf_mutex_new, options->runtime);
    hf_status status = HF_OK;
    hf_waitable *made = hf_waitable_new(self, &KIND, "hf_mutex_new", ret_mutex != NULL, options, &status);
    if (made != NULL) {
        *ret_mutex = HF_CONTAINER(made, hf_mutex, base);
    }
    HF_LEAVE(self, status);
}

hf_status hf_mutex_free(hf_mutex *mutex)
{
    if (mutex == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_mutex_free, mutex->base.rt);
    HF_LEAVE(self, hf_waitable_free(self, &mutex->base, "hf_mutex_free"));
}

static const hf_wait_kind LOCK = {"hf_mutex_lock", hf_wait_abort_linked};

hf_status hf_mutex_lock_on(hf_fiber *self, hf_mutex *mutex, const hf_wait_kind *kind, const hf_wait_options *options)
{
    hf_wait wait;
    hf_sync_point(self);
    hf_spin_lock(&mutex->base.lock);
    if (HF_LIKELY(mutex->owner.fiber == NULL)) {
        hf_assert(hf_list_is_empty(&mutex->base.waiters)); /* unlocking hands it to the first waiter */
        mutex->owner = hf_holder_of(self);
        hf_spin_unlock(&mutex->base.lock);
        return HF_OK;
    }
    if (HF_UNLIKELY(hf_holder_is(mutex->owner, self))) {
        hf_spin_unlock(&mutex->base.lock);
        return hf_refuse_at(self, HF_ERR_MISUSE, kind->verb,
                            "mutex '%s' is held by the caller already and is not recursive", mutex->base.name);
    }
    hf_wait_init(&wait, self, kind, &mutex->base, mutex->base.name);
    hf_list_push_back(&mutex->base.waiters, &wait.node);
    hf_spin_unlock(&mutex->base.lock);
    hf_status status = hf_park(self, &wait, hf_wait_deadline(self, mutex->base.rt, options));
    if (HF_CANARY(HF_BUG_MUTEX_CANCELED) && status == HF_ERR_CANCELED) {
        mutex->owner = hf_holder_of(self);
    }
    return status;
}

hf_status hf_mutex_unlock_on(hf_fiber *self, hf_mutex *mutex)
{
    hf_wait *next = NULL;
    hf_sync_point(self);
    hf_spin_lock(&mutex->base.lock);
    if (HF_UNLIKELY(!hf_holder_is(mutex->owner, self))) {
        hf_spin_unlock(&mutex->base.lock);
        return HF_ERR_MISUSE;
    }
    hf_node *node = hf_list_pop_front(&mutex->base.waiters);
    if (node != NULL) {
        next = HF_CONTAINER(node, hf_wait, node);
        hf_assert(next->object == &mutex->base && next->fiber != self); /* fiber-F3 */
        mutex->owner = hf_holder_of(next->fiber); /* it is parked, so its branch does not change */
    } else {
        mutex->owner = HF_HOLDER_NONE;
    }
    hf_spin_unlock(&mutex->base.lock);
    if (next != NULL) {
        hf_wake(next, HF_OK);
    }
    return HF_OK;
}

hf_status hf_mutex_lock_with(hf_mutex *mutex, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_mutex_lock);
    HF_VERB_ENTER(self, hf_mutex_lock, mutex != NULL ? mutex->base.rt : NULL);
    if (HF_UNLIKELY(mutex == NULL)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "no mutex to lock"));
    }
    hf_status status = hf_may_wait_for(self, LOCK.verb, options);
    HF_LEAVE(self, status == HF_OK ? hf_mutex_lock_on(self, mutex, &LOCK, options) : status);
}

hf_status hf_mutex_try_lock(hf_mutex *mutex)
{
    HF_VERB_ENTER(self, hf_mutex_try_lock, mutex != NULL ? mutex->base.rt : NULL);
    if (HF_UNLIKELY(mutex == NULL)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "no mutex to lock"));
    }
    hf_sync_point(self);
    hf_spin_lock(&mutex->base.lock);
    bool is_free = mutex->owner.fiber == NULL;
    if (is_free) {
        mutex->owner = hf_holder_of(self);
    }
    hf_spin_unlock(&mutex->base.lock);
    if (!is_free) {
        hf_count_if_evicted(self);
        hf_self_note(self, HF_ERR_AGAIN, "hf_mutex_try_lock");
    }
    HF_LEAVE(self, is_free ? HF_OK : HF_ERR_AGAIN);
}

hf_status hf_mutex_unlock(hf_mutex *mutex)
{
    HF_VERB_ENTER(self, hf_mutex_unlock, mutex != NULL ? mutex->base.rt : NULL);
    hf_status status = mutex != NULL ? hf_mutex_unlock_on(self, mutex) : HF_ERR_MISUSE;
    if (HF_UNLIKELY(status != HF_OK)) {
        (void)hf_refuse(self, status, "mutex '%s' is not held by the caller",
                        mutex != NULL ? mutex->base.name : "NULL");
    }
    HF_LEAVE(self, status);
}
