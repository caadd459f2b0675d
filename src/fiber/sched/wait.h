/* Parking: how a fiber or a plain thread waits for something. See fiber-F3 in core.h.
 *
 *     hf_wait wait;
 *     hf_wait_init(&wait, self, &KIND, object, object->name);
 *     hf_spin_lock(&object->lock);
 *     ... the fast path returns here ...
 *     hf_list_push_back(&object->queue, &wait.node);
 *     hf_spin_unlock(&object->lock);
 *     status = hf_park(self, &wait, deadline);
 *
 * The peer takes the object's lock, unlinks the first waiter (which claims it), releases the lock and calls
 * hf_wake(wait, HF_OK). KIND.abort locks the object and unlinks the waiter if it is still linked. */
#ifndef HF_FIBER_WAIT_H
#define HF_FIBER_WAIT_H

#include "fiber/core.h"
#include "fiber/enter.h"
#include "fiber/sched/leave.h"

static inline void hf_wait_init(hf_wait *wait, hf_fiber *self, const hf_wait_kind *kind, void *object,
                                const char *object_name)
{
    wait->node.next = wait->node.prev = NULL;
    wait->fiber = self;
    wait->kind = kind;
    wait->object = object;
    wait->object_name = object_name;
    wait->value = NULL;
    wait->number = 0;
    wait->alarm.pos = 0;
    wait->status = HF_OK;
    atomic_store_explicit(&wait->word, 0, memory_order_relaxed);
}

/* Waits until hf_wake, a cancel or the deadline. Returns the waker's status, or HF_ERR_CANCELED, HF_ERR_TIMEOUT or
 * HF_ERR_NOMEM (the deadline could not be armed); after these three the waiter is unlinked. Only hf_wake ends the
 * wait of a kind without abort. */
hf_status hf_park(hf_fiber *self, hf_wait *wait, hf_instant deadline);
/* Wakes a waiter that the caller has claimed. When this returns, the wait may be gone. Must not be called under the
 * object's lock: waking a plain thread is a system call, and a simulation may switch threads here. */
void hf_wake(hf_wait *wait, hf_status status);

/* hf_wake for verbs that wake often: the waker is `self`. A fiber of its own scheduler is woken without a call. */
static inline __attribute__((always_inline)) void hf_wake_hot(hf_fiber *self, hf_wait *wait, hf_status status)
{
    hf_fiber *fiber = wait->fiber;
    if (HF_UNLIKELY(fiber->kind != HF_FIBER_PLAIN || fiber->sched != self->sched)) {
        hf_wake(wait, status);
        return;
    }
    wait->status = status;
    fiber->wait = NULL;
    hf_sched_ready_push(fiber->sched, fiber);
}

/* hf_park without a deadline, inlined down to the switch (leave.h), for verbs that park often. */
static inline __attribute__((always_inline)) hf_status hf_park_hot(hf_fiber *self, hf_wait *wait)
{
    if (HF_UNLIKELY(self->kind != HF_FIBER_PLAIN || self->sched->has_point)) {
        return hf_park(self, wait, HF_INSTANT_NEVER);
    }
    self->wait = wait;
    hf_sched_leave_inline(self->sched, self);
    self->wait = NULL;
    if (HF_UNLIKELY(wait->status == HF_ERR_CANCELED)) {
        hf_self_note(self, wait->status, wait->kind->verb);
    }
    return wait->status;
}

/* A deadline on the clock that applies to self: that of its crew, which stands still during a turn, or that of the
 * runtime. */
hf_instant hf_self_deadline(const hf_fiber *self, const hf_runtime *rt, hf_span timeout);

/* The abort of most kinds: the object begins with an hf_spin, which is locked to unlink the waiter. */
bool hf_wait_abort_linked(hf_wait *wait);

/* The deadline of a wait option struct (may be NULL). */
static inline hf_instant hf_wait_deadline(hf_fiber *self, hf_runtime *rt, const hf_wait_options *options)
{
    if (HF_LIKELY(options == NULL || options->timeout.ns == 0)) {
        return HF_INSTANT_NEVER;
    }
    hf_set_place(self, options->file, options->line);
    return hf_self_deadline(self, rt, options->timeout);
}
/* HF_OK, or why self must not wait now: it is canceled, evicted, or inside a hook. */
hf_status hf_may_not_wait(hf_fiber *self, const char *verb);
static inline hf_status hf_may_wait(hf_fiber *self, const char *verb)
{
    if (HF_UNLIKELY(self->hook_depth !=
                    0)) { /* apart: where HF_VERB_ENTER has just looked, the compiler leaves it out */
        return hf_may_not_wait(self, verb);
    }
    return HF_UNLIKELY(self->is_evicted || hf_is_canceled(self)) ? hf_may_not_wait(self, verb) : HF_OK;
}

/* The same for a verb with a timeout. In a workflow the timeout must not be under a millisecond. */
hf_status hf_may_not_wait_for(hf_fiber *self, const char *verb, hf_span timeout);
static inline hf_status hf_may_wait_for(hf_fiber *self, const char *verb, const hf_wait_options *options)
{
    if (HF_UNLIKELY(options != NULL && options->timeout.ns != 0) && self->crew != NULL) {
        return hf_may_not_wait_for(self, verb, options->timeout);
    }
    return hf_may_wait(self, verb);
}

/* Hosted: the caller has turned the runtime; another thread may turn it now. */
void hf_turn_end(hf_runtime *rt);

/* Lets other fibers run, even if self is canceled. For loops that wait for something that is certain to come. */
void hf_yield_in(hf_fiber *self);

#endif
