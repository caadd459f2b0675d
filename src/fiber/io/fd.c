/* Waiting for descriptors.
 *
 * Every descriptor on which a fiber has waited has a slot, found by its number. It is watched edge-triggered by the poller
 * of the scheduler whose fiber waited last, so that a busy thread does not delay the waiters of another. An event is
 * remembered in `ready` until a wait consumes it, so a reader that saw "would block" just before cannot miss it. An
 * event carries the number and the generation of its slot, not an address: if the slot was dropped meanwhile, it is
 * simply not found. */
#include "fiber/io/fd.h"

#include "fiber/sched/wait.h"

enum {
    BUCKETS = 256,
    POKED = 4 /* in `ready`: hf_fd_poke came while nobody waited */
};
_Static_assert((POKED & (HF_READABLE | HF_WRITABLE)) == 0, "a bit of its own");

typedef struct fd_slot {
    struct fd_slot *next;
    int fd;
    uint32_t generation;
    int ready; /* events seen and not consumed */
    bool watched;
    bool is_foreign;    /* the user's: it may have been closed since then, and its number reused */
    hf_sched *sched;    /* whose poller watches it */
    hf_wait *waiter[2]; /* for HF_READABLE, for HF_WRITABLE; the same one when it waits for both */
} fd_slot;

typedef struct fd_bucket {
    hf_spin lock; /* first: hf_wait.object points at it */
    fd_slot *slots;
} fd_bucket;

struct hf_fd_table {
    fd_bucket buckets[BUCKETS];
    atomic_uint generations;
};

static fd_bucket *bucket_of(hf_runtime *rt, int fd)
{
    return &rt->fds->buckets[((unsigned)fd * 2654435761u) >> 24];
}

static fd_slot *find(fd_bucket *bucket, int fd)
{
    fd_slot *slot = bucket->slots;
    while (slot != NULL && slot->fd != fd) {
        slot = slot->next;
    }
    return slot;
}

hf_status hf_fds_init(hf_runtime *rt, hf_op *op)
{
    rt->fds = hf_rt_alloc(rt, sizeof *rt->fds);
    return rt->fds != NULL ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for the table of descriptors");
}

void hf_fds_deinit(hf_runtime *rt)
{
    if (rt->fds == NULL) {
        return;
    }
    for (int i = 0; i < BUCKETS; i++) {
        while (rt->fds->buckets[i].slots != NULL) {
            fd_slot *slot = rt->fds->buckets[i].slots;
            rt->fds->buckets[i].slots = slot->next;
            hf_rt_free(rt, slot, sizeof *slot);
        }
    }
    hf_rt_free(rt, rt->fds, sizeof *rt->fds);
    rt->fds = NULL;
}

static void *cookie_of(const fd_slot *slot)
{
    return (void *)(uintptr_t)(((uint64_t)slot->generation << 32) | (uint32_t)slot->fd);
}

/* Under the bucket's lock: takes the waiters of `events` out. At most two. */
static int take_waiters(fd_slot *slot, int events, hf_wait *taken[2])
{
    int count = 0;
    for (int i = 0; i < 2; i++) {
        hf_wait *wait = slot->waiter[i];
        if (wait == NULL || (events & (i == 0 ? HF_READABLE : HF_WRITABLE)) == 0) {
            continue;
        }
        slot->waiter[i] = NULL;
        if (slot->waiter[1 - i] == wait) {
            slot->waiter[1 - i] = NULL;
        }
        hf_assert(count < 2);
        taken[count++] = wait;
    }
    return count;
}

static void deliver(hf_runtime *rt, const hf_event *event)
{
    uint64_t cookie = (uint64_t)(uintptr_t)event->cookie;
    int fd = (int)(uint32_t)cookie;
    fd_bucket *bucket = bucket_of(rt, fd);
    hf_wait *taken[2];
    int count = 0;
    hf_spin_lock(&bucket->lock);
    fd_slot *slot = find(bucket, fd);
    if (slot != NULL && slot->generation == (uint32_t)(cookie >> 32)) {
        count = take_waiters(slot, event->events, taken);
        slot->ready |= event->events;
        for (int i = 0; i < count; i++) {
            slot->ready &= ~(int)taken[i]->number; /* consumed by the fiber that is woken */
        }
    }
    hf_spin_unlock(&bucket->lock);
    for (int i = 0; i < count; i++) {
        hf_wake(taken[i], HF_OK);
    }
}

void hf_fd_poll(hf_sched *sched, hf_instant deadline)
{
    hf_event events[HF_EVENTS_PER_POLL];
    hf_fiber *idle = &sched->idle;
    bool sleeps = deadline.ns != 0;
    if (sleeps) {
        hf_leave(idle);
    }
    int count = sched->env->ops->poller_wait(sched->env, sched->poller, events, HF_EVENTS_PER_POLL, deadline);
    if (sleeps) {
        (void)hf_enter(NULL);
    }
    for (int i = 0; i < count; i++) {
        deliver(sched->rt, &events[i]);
    }
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

/* Under the bucket's lock. */
static bool unlink_waiter(fd_slot *slot, const hf_wait *wait)
{
    bool found = false;
    for (int i = 0; i < 2; i++) {
        if (slot->waiter[i] == wait) {
            slot->waiter[i] = NULL;
            found = true;
        }
    }
    return found;
}

bool hf_fd_abort(hf_wait *wait)
{
    fd_bucket *bucket = wait->object;
    bool claimed = false;
    hf_spin_lock(&bucket->lock);
    for (fd_slot *slot = bucket->slots; slot != NULL; slot = slot->next) {
        claimed = unlink_waiter(slot, wait) || claimed;
    }
    hf_spin_unlock(&bucket->lock);
    return claimed;
}

/* Locks the bucket and finds or makes the slot in it. NULL: no memory, and the lock is not held. */
static fd_slot *lock_slot(hf_runtime *rt, fd_bucket *bucket, int fd)
{
    hf_spin_lock(&bucket->lock);
    fd_slot *slot = find(bucket, fd);
    if (slot != NULL) {
        return slot;
    }
    hf_spin_unlock(&bucket->lock);
    fd_slot *fresh = hf_rt_alloc(rt, sizeof *fresh);
    if (fresh == NULL) {
        return NULL;
    }
    fresh->fd = fd;
    fresh->generation = atomic_fetch_add(&rt->fds->generations, 1);
    hf_spin_lock(&bucket->lock);
    slot = find(bucket, fd);
    if (slot == NULL) {
        fresh->next = bucket->slots;
        bucket->slots = fresh;
        return fresh;
    }
    hf_spin_unlock(&bucket->lock); /* somebody else made it meanwhile, and might have dropped it again by now */
    hf_rt_free(rt, fresh, sizeof *fresh);
    return lock_slot(rt, bucket, fd);
}

/* Makes the scheduler's poller watch the slot, and, if `again`, report events that are ready already. Under the bucket's lock: a
 * reader and a writer on two threads may both want the watch, and a close removes it. */
static hf_status watch(hf_runtime *rt, hf_op *op, fd_slot *slot, hf_sched *sched, bool again)
{
    hf_env *env = rt->env;
    const int both = HF_READABLE | HF_WRITABLE;
    if (slot->watched && slot->sched != sched) {
        (void)env->ops->poller_set(env, NULL, slot->sched->poller, slot->fd, 0, false, NULL);
        int before = __atomic_fetch_sub(&slot->sched->fd_count, 1, __ATOMIC_RELAXED);
        hf_assert(before > 0);
        slot->watched = false;
    }
    if (slot->watched) {
        return again ? env->ops->poller_set(env, op, sched->poller, slot->fd, both, false, cookie_of(slot)) : HF_OK;
    }
    slot->sched = sched;
    HF_TRY(env->ops->poller_set(env, op, sched->poller, slot->fd, both, true, cookie_of(slot)));
    slot->watched = true;
    __atomic_fetch_add(&sched->fd_count, 1, __ATOMIC_RELAXED);
    return HF_OK;
}

static bool is_taken(const fd_slot *slot, int events)
{
    return ((events & HF_READABLE) != 0 && slot->waiter[0] != NULL) ||
           ((events & HF_WRITABLE) != 0 && slot->waiter[1] != NULL);
}

/* Under the bucket's lock. HF_OK: ready by now; HF_ERR_AGAIN: `wait` is linked, and its fiber has to park. */
static hf_status begin(hf_runtime *rt, hf_op *op, fd_slot *slot, hf_sched *sched, const hf_fd_user *user, hf_wait *wait)
{
    int events = (int)wait->number;
    if (user->closed != NULL && atomic_load(user->closed)) {
        return HF_ERR_CLOSED;
    }
    if (is_taken(slot, events)) {
        return hf_fail(op, HF_ERR_MISUSE, "somebody else waits for the same direction of %s (descriptor %d)",
                       user->object, slot->fd);
    }
    if ((slot->ready & POKED) != 0) {
        slot->ready &= ~POKED;
        return HF_OK;
    }
    bool again = user->level || slot->is_foreign;
    if (!again && slot->watched && (slot->ready & events) != 0) {
        slot->ready &= ~events;
        return HF_OK;
    }
    slot->ready &= slot->is_foreign ? 0 : ~events; /* not poked: see above */
    HF_TRY(watch(rt, op, slot, sched, again));
    slot->is_foreign = user->level;
    for (int i = 0; i < 2; i++) {
        if ((events & (i == 0 ? HF_READABLE : HF_WRITABLE)) != 0) {
            hf_assert(slot->waiter[i] == NULL && slot->watched); /* fiber-F3 */
            slot->waiter[i] = wait;
        }
    }
    return HF_ERR_AGAIN;
}

hf_status hf_fd_wait_on(hf_fiber *self, hf_runtime *rt, int fd, int events, hf_instant deadline, const hf_fd_user *user)
{
    const char *verb = user->kind->verb;
    HF_TRY(hf_may_wait(self, verb));
    hf_sched *sched = self->sched != NULL && self->rt == rt ? self->sched : rt->scheds[0];
    fd_bucket *bucket = bucket_of(rt, fd);
    fd_slot *slot = lock_slot(rt, bucket, fd);
    if (slot == NULL) {
        return hf_refuse_at(self, HF_ERR_NOMEM, verb, "no memory to wait for a descriptor");
    }
    hf_op op;
    hf_op_init(&op);
    hf_wait wait;
    hf_wait_init(&wait, self, user->kind, bucket, user->object);
    wait.number = events;
    hf_status status = begin(rt, &op, slot, sched, user, &wait);
    hf_wait *taken[2];
    /* If a watch moved to this poller and could not be made there, a waiter in the other direction has lost its
     * watch: it is woken, and tries again. */
    int count = !slot->watched ? take_waiters(slot, HF_READABLE | HF_WRITABLE, taken) : 0;
    hf_spin_unlock(&bucket->lock);
    for (int i = 0; i < count; i++) {
        hf_wake(taken[i], HF_OK);
    }
    if (status == HF_ERR_AGAIN) {
        status = hf_park(self, &wait, deadline);
        if (status == HF_ERR_NOMEM) {
            return hf_refuse_at(self, status, verb, "no memory for the deadline of a wait");
        }
    } else if (op.status != HF_OK) {
        return hf_refuse_at(self, op.status, verb, "%s", op.message);
    }
    if (status == HF_ERR_CLOSED) {
        hf_self_note(self, status, verb);
    }
    return status;
}

void hf_fd_poke(hf_runtime *rt, int fd)
{
    fd_bucket *bucket = bucket_of(rt, fd);
    hf_wait *taken[2];
    int count = 0;
    hf_spin_lock(&bucket->lock);
    fd_slot *slot = find(bucket, fd);
    if (slot != NULL) {
        count = take_waiters(slot, HF_READABLE | HF_WRITABLE, taken);
        slot->ready |= count == 0 ? POKED : 0;
    }
    hf_spin_unlock(&bucket->lock);
    for (int i = 0; i < count; i++) {
        hf_wake(taken[i], HF_OK);
    }
}

void hf_fd_drop(hf_runtime *rt, int fd)
{
    fd_bucket *bucket = bucket_of(rt, fd);
    hf_wait *taken[2];
    int count = 0;
    hf_spin_lock(&bucket->lock);
    fd_slot **link = &bucket->slots;
    while (*link != NULL && (*link)->fd != fd) {
        link = &(*link)->next;
    }
    fd_slot *slot = *link;
    if (slot != NULL) {
        *link = slot->next;
        count = take_waiters(slot, HF_READABLE | HF_WRITABLE, taken);
    }
    hf_spin_unlock(&bucket->lock);
    if (slot != NULL) {
        if (slot->watched) {
            (void)rt->env->ops->poller_set(rt->env, NULL, slot->sched->poller, fd, 0, false, NULL);
            int before = __atomic_fetch_sub(&slot->sched->fd_count, 1, __ATOMIC_RELAXED);
            hf_assert(before > 0);
        }
        hf_rt_free(rt, slot, sizeof *slot);
    }
    for (int i = 0; i < count; i++) {
        hf_wake(taken[i], HF_ERR_CLOSED);
    }
}
