/* Stranded fibers: members of an evicted crew that do not return.
 *
 * On an evicted fiber every wait, fork and join returns HF_ERR_EVICTED at once. Code that tries again until it
 * succeeds would keep the thread for ever. So its calls are counted, and after HF_EVICTED_CALLS_MAX of them the next
 * one does not return: the fiber stays where it is, never runs again, and its crew is freed without it (strand.c).
 *
 * These calls count (src/fiber/verbs.def lists them): calls that are refused with HF_ERR_EVICTED or because the fiber may
 * only look, calls that would have to wait (HF_ERR_AGAIN), and calls that ask whether something has changed, because for an evicted fiber
 * nothing changes. Calls that make, open, close, unlock or free do not count: cleanup may take as many as it needs. */
#ifndef HF_FIBER_STRAND_H
#define HF_FIBER_STRAND_H

#include "fiber/enter.h"

/* Counts a call of an evicted member. Inside the library, where the verb holds no lock and has linked nothing on its
 * stack. May not return. */
void hf_evicted_call(hf_fiber *self);

static inline void hf_count_if_evicted(hf_fiber *self)
{
    if (HF_UNLIKELY(self->is_evicted)) {
        hf_evicted_call(self);
    }
}

/* The same for verbs that do not enter the library, or that have left it. */
static inline void hf_count_look(void)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    if (self != NULL && HF_UNLIKELY(self->is_evicted)) {
        self = hf_enter(NULL);
        if (self != NULL) {
            hf_evicted_call(self);
            hf_leave(self);
        }
    }
}

/* On an evicted member counts the call and returns HF_ERR_EVICTED; else HF_OK. For verbs whose arguments are checked
 * against the state of the run, which does not matter any more. */
static inline hf_status hf_not_evicted(hf_fiber *self, const char *verb)
{
    if (HF_LIKELY(!self->is_evicted)) {
        return HF_OK;
    }
    hf_evicted_call(self);
    hf_self_note(self, HF_ERR_EVICTED, verb);
    return HF_ERR_EVICTED;
}

/* Number of fibers that were stranded so far. Any thread. */
uint64_t hf_stranded_count(const hf_runtime *rt);

/* By the driver of an evicted crew, between turns. Reports, counts and frees members that will never run again.
 * True: no member is left. False: a member is about to be woken, and another turn is needed. `*stranded` grows by how many. */
bool hf_strand_rest(hf_fiber *driver, hf_crew *crew, size_t *stranded);

#endif
