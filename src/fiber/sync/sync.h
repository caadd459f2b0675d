/* Shared by the locks and the keyed objects: the holder of a lock, the waiters to wake after a lock was released, and
 * how objects are made and freed. */
#ifndef HF_FIBER_SYNC_H
#define HF_FIBER_SYNC_H

#include "fiber/crew/owned.h"
#include "fiber/sched/wait.h"

/* The holder of a lock. A fiber runs one branch after another, so the branch is part of it. */
typedef struct hf_holder {
    const hf_fiber *fiber;   /* NULL = nobody */
    const hf_branch *branch; /* NULL for plain threads */
} hf_holder;

#define HF_HOLDER_NONE ((hf_holder){NULL, NULL})

static inline hf_holder hf_holder_of(const hf_fiber *fiber)
{
    return (hf_holder){fiber, fiber->branch};
}

/* A hook of a join holds nothing: it runs on any fiber, perhaps on that of the holder. */
static inline bool hf_holder_is(hf_holder owner, const hf_fiber *fiber)
{
    return owner.fiber == fiber && owner.branch == fiber->branch && fiber->hook_depth == 0;
}

/* Waiters that were claimed under a lock and are woken after it. They are chained through hf_wait.value, which their
 * object no longer needs. Their nodes are not linked again, because an abort would then take them for waiters. */
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

/* Without locks. As soon as the first waiter was woken, the object may be gone. */
static inline void hf_claimed_wake(const hf_claimed *claimed, hf_status status)
{
    hf_wait *wait = claimed->first;
    while (wait != NULL) {
        hf_wait *next = wait->value;
        hf_wake(wait, status);
        wait = next;
    }
}

/* The same, each waiter with the status that the claimer stored in it. */
static inline void hf_claimed_wake_each(const hf_claimed *claimed)
{
    hf_wait *wait = claimed->first;
    while (wait != NULL) {
        hf_wait *next = wait->value;
        hf_wake(wait, wait->status);
        wait = next;
    }
}

/* A point before a lock is taken: a simulation may switch threads here. */
static inline void hf_sync_point(const hf_fiber *self)
{
    hf_point_at(self->sched, HF_POINT_LOCK, 0);
}

/* Zeroed memory for an object of the runtime given by the option or the running fiber. NULL: `*ret_status` says why,
 * and the failure was reported to self. */
void *hf_object_new(hf_fiber *self, const char *verb, hf_runtime *option, size_t len, hf_runtime **ret_rt,
                    hf_status *ret_status);
/* Refuses to free an object that is in use, and logs it, because callers often ignore the status. */
hf_status hf_object_in_use(hf_fiber *self, hf_runtime *rt, const char *verb, const char *name);

/* The part that mutex, condition, once and semaphore share. Their hf_wait.object points to it. */
typedef struct hf_waitable hf_waitable;

typedef struct hf_waitable_kind {
    const char *noun;                         /* in messages: "semaphore" */
    const char *name;                         /* of an object without a name of its own: "sem" */
    size_t len;                               /* bytes of the object */
    size_t offset;                            /* of the base in it */
    bool (*is_used)(const hf_waitable *base); /* under the lock: whether it must not be freed */
} hf_waitable_kind;

struct hf_waitable {
    hf_spin lock; /* first: hf_wait_abort_linked locks it */
    hf_list waiters;
    hf_runtime *rt;
    const char *name;
    const hf_waitable_kind *kind;
    hf_owned_object owned;
};

#define HF_WAITABLE_KIND(type, noun, name, is_used)             \
    {                                                           \
        noun, name, sizeof(type), offsetof(type, base), is_used \
    }

/* Makes an object; all of its fields but the base are zero. `has_place`: the caller of the verb gave a place for it.
 * NULL: `*ret_status` says why, and the failure was reported to self. */
hf_waitable *hf_waitable_new(hf_fiber *self, const hf_waitable_kind *kind, const char *verb, bool has_place,
                             const hf_sync_options *options, hf_status *ret_status);
/* Frees the object. Fails: HF_ERR_MISUSE (it is in use, or belongs to a workflow). */
hf_status hf_waitable_free(hf_fiber *self, hf_waitable *base, const char *verb);

struct hf_mutex {
    hf_holder owner;
    hf_waitable base; /* without waiters while the mutex is free */
};

/* The wait for the mutex of a condition: it cannot be aborted, and its object is the mutex. */
extern const hf_wait_kind hf_cond_relock;

/* Locks without the checks that a verb makes first. options may be NULL. */
hf_status hf_mutex_lock_on(hf_fiber *self, hf_mutex *mutex, const hf_wait_kind *kind, const hf_wait_options *options);
/* HF_ERR_MISUSE, without a message, unless self holds it. */
hf_status hf_mutex_unlock_on(hf_fiber *self, hf_mutex *mutex);

#endif
