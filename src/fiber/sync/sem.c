/* The semaphore. Waiters are served in order, also those that want many permits: a waiter that wants fewer does not
 * overtake. When the first waiter gives up, those behind it may be served, so a waiter that leaves serves them. */
#include "fiber/crew/strand.h"
#include "fiber/sync/sync.h"
#include "fiber/verbs.h"

struct hf_sem {
    int64_t permits;
    hf_waitable base; /* hf_wait.number: how many permits the waiter wants */
};

static bool is_sem_used(const hf_waitable *base)
{
    return !hf_list_is_empty(&base->waiters);
}

static const hf_waitable_kind KIND = HF_WAITABLE_KIND(hf_sem, "semaphore", "sem", is_sem_used);

hf_status hf_sem_new_with(int64_t permits, hf_sem **ret_sem, const hf_sync_options *options)
{
    HF_OPTIONS(hf_sync_options, options, hf_sem_new);
    HF_VERB_ENTER(self, hf_sem_new, options->runtime);
    if (permits < 0) {
        HF_LEAVE(self,
                 hf_refuse(self, HF_ERR_INVALID, "a semaphore cannot start with %lld permits", (long long)permits));
    }
    hf_status status = HF_OK;
    hf_waitable *made = hf_waitable_new(self, &KIND, "hf_sem_new", ret_sem != NULL, options, &status);
    if (made != NULL) {
        *ret_sem = HF_CONTAINER(made, hf_sem, base);
        (*ret_sem)->permits = permits;
    }
    HF_LEAVE(self, status);
}

hf_status hf_sem_free(hf_sem *sem)
{
    if (sem == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_sem_free, sem->base.rt);
    HF_LEAVE(self, hf_waitable_free(self, &sem->base, "hf_sem_free"));
}

static hf_status check(hf_fiber *self, const hf_sem *sem, int64_t permits, const char *verb)
{
    if (HF_UNLIKELY(sem == NULL || permits <= 0)) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "a semaphore and at least one permit are needed");
    }
    return HF_OK;
}

/* Under the lock: claims every waiter that can be served now, in order. */
static void serve(hf_sem *sem, hf_claimed *claimed)
{
    HF_LIST_EACH(node, &sem->base.waiters)
    {
        hf_wait *wait = HF_CONTAINER(node, hf_wait, node);
        hf_assert(wait->number > 0 && sem->permits >= 0);
        if (wait->number > sem->permits) {
            return;
        }
        sem->permits -= wait->number;
        hf_claimed_add(claimed, wait);
    }
}

static bool take(hf_sem *sem, int64_t permits)
{
    hf_assert(permits > 0 && sem->permits >= 0);
    if (!hf_list_is_empty(&sem->base.waiters) || sem->permits < permits) {
        return false;
    }
    sem->permits -= permits;
    return true;
}

static const hf_wait_kind ACQUIRE = {"hf_sem_acquire", hf_wait_abort_linked};

static hf_status acquire(hf_fiber *self, hf_sem *sem, int64_t permits, const hf_wait_options *options)
{
    hf_wait wait;
    hf_sync_point(self);
    hf_spin_lock(&sem->base.lock);
    if (HF_LIKELY(take(sem, permits))) {
        hf_spin_unlock(&sem->base.lock);
        return HF_OK;
    }
    hf_wait_init(&wait, self, &ACQUIRE, &sem->base, sem->base.name);
    wait.number = permits;
    hf_list_push_back(&sem->base.waiters, &wait.node);
    hf_spin_unlock(&sem->base.lock);
    hf_status status = hf_park(self, &wait, hf_wait_deadline(self, sem->base.rt, options));
    if (status != HF_OK) { /* this waiter may have held up those behind it */
        hf_claimed claimed = {NULL, NULL};
        hf_spin_lock(&sem->base.lock);
        serve(sem, &claimed);
        hf_spin_unlock(&sem->base.lock);
        hf_claimed_wake(&claimed, HF_OK);
    }
    return status;
}

hf_status hf_sem_acquire_with(hf_sem *sem, int64_t permits, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_sem_acquire);
    HF_VERB_ENTER(self, hf_sem_acquire, sem != NULL ? sem->base.rt : NULL);
    hf_status status = check(self, sem, permits, ACQUIRE.verb);
    status = status == HF_OK ? hf_may_wait_for(self, ACQUIRE.verb, options) : status;
    HF_LEAVE(self, status == HF_OK ? acquire(self, sem, permits, options) : status);
}

hf_status hf_sem_try_acquire(hf_sem *sem, int64_t permits)
{
    HF_VERB_ENTER(self, hf_sem_try_acquire, sem != NULL ? sem->base.rt : NULL);
    hf_status status = check(self, sem, permits, "hf_sem_try_acquire");
    if (status == HF_OK) {
        hf_sync_point(self);
        hf_spin_lock(&sem->base.lock);
        bool taken = take(sem, permits);
        hf_spin_unlock(&sem->base.lock);
        if (!taken) {
            status = HF_ERR_AGAIN;
            hf_count_if_evicted(self);
            hf_self_note(self, status, "hf_sem_try_acquire");
        }
    }
    HF_LEAVE(self, status);
}

hf_status hf_sem_release(hf_sem *sem, int64_t permits)
{
    HF_VERB_ENTER(self, hf_sem_release, sem != NULL ? sem->base.rt : NULL);
    hf_status status = check(self, sem, permits, "hf_sem_release");
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    hf_claimed claimed = {NULL, NULL};
    hf_sync_point(self);
    hf_spin_lock(&sem->base.lock);
    bool fits = permits <= INT64_MAX - sem->permits;
    if (fits) {
        sem->permits += permits;
        serve(sem, &claimed);
    }
    hf_spin_unlock(&sem->base.lock);
    if (HF_UNLIKELY(!fits)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "semaphore '%s' cannot count that many permits", sem->base.name));
    }
    hf_claimed_wake(&claimed, HF_OK);
    HF_LEAVE(self, HF_OK);
}
