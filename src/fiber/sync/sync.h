/* What the locks and the keyed objects share: who holds, and whom to wake once a lock was released. */
#ifndef HF_FIBER_SYNC_H
#define HF_FIBER_SYNC_H

#include "fiber/crew/owned.h"
#include "fiber/sched/wait.h"

/* Who holds a lock. Fibers are reused by one branch after the other, so the branch is part of it. */
typedef struct hf_holder {
    const hf_fiber *fiber;   /* NULL = nobody */
    const hf_branch *branch; /* NULL for plain threads */
} hf_holder;

#define HF_HOLDER_NONE ((hf_holder){NULL, NULL})

static inline hf_holder hf_holder_of(const hf_fiber *fiber)
{
    return (hf_holder){fiber, fiber->branch};
}

/* A hook of a join owns nothing: it may happen to run on the owner's fiber, or on anybody else's. */
static inline bool hf_holder_is(hf_holder owner, const hf_fiber *fiber)
{
    return owner.fiber == fiber && owner.branch == fiber->branch && fiber->hook_depth == 0;
}

/* Waiters that were claimed under a lock, to be woken after it. Chained through hf_wait.value, which their object needs
 * no more: were their nodes linked again, an abort would take them for waiting still. */
typedef struct hf_claimed {
    hf_wait *first;
    hf_wait *last;
} hf_claimed;

/* Under the object's lock. The waiter may be unlinked already. */
static inline void hf_claimed_add(hf_claimed *claimed, hf_wait *wait)
{
    if (hf_node_is_linked(&wait->node)) {
        hf_list_remove(&wait->node);
    }
    wait->value = NULL;
    if (claimed->last != NULL) {
        claimed->last->value = wait;
    } else {
        claimed->first = wait;
    }
    claimed->last = wait;
}

static inline void hf_claimed_add_all(hf_claimed *claimed, hf_list *queue)
{
    HF_LIST_EACH(node, queue)
    {
        hf_claimed_add(claimed, HF_CONTAINER(node, hf_wait, node));
    }
}

/* Without locks. The object may be gone as soon as the first has been woken. */
static inline void hf_claimed_wake(const hf_claimed *claimed, hf_status status)
{
    hf_wait *wait = claimed->first;
    while (wait != NULL) {
        hf_wait *next = wait->value;
        hf_wake(wait, status);
        wait = next;
    }
}

/* The same, each with the status that the claimer wrote to it. */
static inline void hf_claimed_wake_each(const hf_claimed *claimed)
{
    hf_wait *wait = claimed->first;
    while (wait != NULL) {
        hf_wait *next = wait->value;
        hf_wake(wait, wait->status);
        wait = next;
    }
}

/* Where a simulation may let another thread run before a lock is taken. */
static inline void hf_sync_point(const hf_fiber *self)
{
    hf_point_at(self->sched, HF_POINT_LOCK, 0);
}

/* Zeroed memory for an object of the runtime that the option or the running fiber names. NULL: the failure was told to
 * self, and `*ret_status` is it. */
void *hf_object_new(hf_fiber *self, const char *verb, hf_runtime *option, size_t len, hf_runtime **ret_rt,
                    hf_status *ret_status);
/* Refuses to free an object in use, and logs it: the caller often throws the status away. */
hf_status hf_object_in_use(hf_fiber *self, hf_runtime *rt, const char *verb, const char *name);

struct hf_mutex {
    hf_spin lock; /* first: hf_wait.object points here */
    hf_holder owner;
    hf_list waiters; /* empty while nobody holds it */
    hf_runtime *rt;
    const char *name;
    hf_owned owned;
};

/* The wait for the mutex of a condition: it cannot be aborted, and its object is the mutex. */
extern const hf_wait_kind hf_cond_relock;

/* The lock without the questions that a verb asks first. options may be NULL. */
hf_status hf_mutex_lock_on(hf_fiber *self, hf_mutex *mutex, const hf_wait_kind *kind, const hf_wait_options *options);
/* HF_ERR_MISUSE, without a sentence, unless self holds it. */
hf_status hf_mutex_unlock_on(hf_fiber *self, hf_mutex *mutex);

#endif
