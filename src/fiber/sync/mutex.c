/* The mutex. Unlocking gives it to the first waiter, so no other can overtake. A claimed waiter holds it, so a
 * cancel or timeout that comes later finds nothing to abort. */
#include "fiber/crew/strand.h"
#include "fiber/sync/sync.h"
#include "fiber/verbs.h"

static void drop_mutex(hf_owned *owned)
{
    hf_mutex *mutex = HF_CONTAINER(owned, hf_mutex, owned);
    if (!hf_list_is_empty(&mutex->waiters)) {
        hf_owned_in_use(mutex->rt, "mutex", mutex->name);
        return;
    }
    hf_assert(!hf_node_is_linked(&owned->node));
    hf_rt_free(mutex->rt, mutex, sizeof *mutex);
}

hf_status hf_mutex_new_with(hf_mutex **ret_mutex, const hf_sync_options *options)
{
    HF_OPTIONS(hf_sync_options, options, hf_mutex_new);
    HF_VERB_ENTER(self, hf_mutex_new, options->runtime);
    if (ret_mutex == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_mutex_new needs a place for the mutex"));
    }
    hf_runtime *rt = NULL;
    hf_status status = HF_OK;
    hf_mutex *mutex = hf_object_new(self, "hf_mutex_new", options->runtime, sizeof *mutex, &rt, &status);
    if (mutex != NULL) {
        mutex->rt = rt;
        mutex->name = options->name != NULL ? options->name : "mutex";
        hf_list_init(&mutex->waiters);
        hf_own(self, &mutex->owned, drop_mutex);
        *ret_mutex = mutex;
    }
    HF_LEAVE(self, status);
}

hf_status hf_mutex_free(hf_mutex *mutex)
{
    if (mutex == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_mutex_free, mutex->rt);
    hf_spin_lock(&mutex->lock);
    bool is_used = mutex->owner.fiber != NULL;
    hf_spin_unlock(&mutex->lock);
    if (is_used) {
        HF_LEAVE(self, hf_object_in_use(self, mutex->rt, "hf_mutex_free", mutex->name));
    }
    hf_status status = hf_disown(self, &mutex->owned, "hf_mutex_free", mutex->name);
    if (status == HF_OK) {
        hf_rt_free(mutex->rt, mutex, sizeof *mutex);
    }
    HF_LEAVE(self, status);
}

static const hf_wait_kind LOCK = {"hf_mutex_lock", hf_wait_abort_linked};

hf_status hf_mutex_lock_on(hf_fiber *self, hf_mutex *mutex, const hf_wait_kind *kind, const hf_wait_options *options)
{
    hf_wait wait;
    hf_sync_point(self);
    hf_spin_lock(&mutex->lock);
    if (HF_LIKELY(mutex->owner.fiber == NULL)) {
        hf_assert(hf_list_is_empty(&mutex->waiters)); /* unlocking hands it to the first waiter */
        mutex->owner = hf_holder_of(self);
        hf_spin_unlock(&mutex->lock);
        return HF_OK;
    }
    if (HF_UNLIKELY(hf_holder_is(mutex->owner, self))) {
        hf_spin_unlock(&mutex->lock);
        return hf_refuse_at(self, HF_ERR_MISUSE, kind->verb,
                            "mutex '%s' is held by the caller already and is not recursive", mutex->name);
    }
    hf_wait_init(&wait, self, kind, mutex, mutex->name);
    hf_list_push_back(&mutex->waiters, &wait.node);
    hf_spin_unlock(&mutex->lock);
    hf_status status = hf_park(self, &wait, hf_wait_deadline(self, mutex->rt, options));
    if (HF_CANARY(HF_BUG_MUTEX_CANCELED) && status == HF_ERR_CANCELED) {
        mutex->owner = hf_holder_of(self);
    }
    return status;
}

hf_status hf_mutex_unlock_on(hf_fiber *self, hf_mutex *mutex)
{
    hf_wait *next = NULL;
    hf_sync_point(self);
    hf_spin_lock(&mutex->lock);
    if (HF_UNLIKELY(!hf_holder_is(mutex->owner, self))) {
        hf_spin_unlock(&mutex->lock);
        return HF_ERR_MISUSE;
    }
    hf_node *node = hf_list_pop_front(&mutex->waiters);
    if (node != NULL) {
        next = HF_CONTAINER(node, hf_wait, node);
        hf_assert(next->object == mutex && next->fiber != self); /* fiber-F3 */
        mutex->owner = hf_holder_of(next->fiber);                /* it is parked, so its branch does not change */
    } else {
        mutex->owner = HF_HOLDER_NONE;
    }
    hf_spin_unlock(&mutex->lock);
    if (next != NULL) {
        hf_wake(next, HF_OK);
    }
    return HF_OK;
}

hf_status hf_mutex_lock_with(hf_mutex *mutex, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_mutex_lock);
    HF_VERB_ENTER(self, hf_mutex_lock, mutex != NULL ? mutex->rt : NULL);
    if (HF_UNLIKELY(mutex == NULL)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "no mutex to lock"));
    }
    hf_status status = hf_may_wait_for(self, LOCK.verb, options);
    HF_LEAVE(self, status == HF_OK ? hf_mutex_lock_on(self, mutex, &LOCK, options) : status);
}

hf_status hf_mutex_try_lock(hf_mutex *mutex)
{
    HF_VERB_ENTER(self, hf_mutex_try_lock, mutex != NULL ? mutex->rt : NULL);
    if (HF_UNLIKELY(mutex == NULL)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "no mutex to lock"));
    }
    hf_sync_point(self);
    hf_spin_lock(&mutex->lock);
    bool is_free = mutex->owner.fiber == NULL;
    if (is_free) {
        mutex->owner = hf_holder_of(self);
    }
    hf_spin_unlock(&mutex->lock);
    if (!is_free) {
        hf_count_if_evicted(self);
        hf_self_note(self, HF_ERR_AGAIN, "hf_mutex_try_lock");
    }
    HF_LEAVE(self, is_free ? HF_OK : HF_ERR_AGAIN);
}

hf_status hf_mutex_unlock(hf_mutex *mutex)
{
    HF_VERB_ENTER(self, hf_mutex_unlock, mutex != NULL ? mutex->rt : NULL);
    hf_status status = mutex != NULL ? hf_mutex_unlock_on(self, mutex) : HF_ERR_MISUSE;
    if (HF_UNLIKELY(status != HF_OK)) {
        (void)hf_refuse(self, status, "mutex '%s' is not held by the caller", mutex != NULL ? mutex->name : "NULL");
    }
    HF_LEAVE(self, status);
}
