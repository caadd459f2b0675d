/* Letting go of an object that another thread frees.
 *
 * A thread that sets a word, unlocks a lock or posts a message may thereby allow another thread to free the object
 * around it. That store is then the last access: whatever is needed afterwards is copied before it.
 *
 *     opener                                 waiter
 *     copies env and the address
 *     stores 1            ---------------->  sees it, goes on, frees the object
 *     wakes by address                       (may be long gone)
 *
 * The wake-up may follow because it does not touch the object: a futex is woken by its address alone, and nothing is
 * read there. If the memory belongs to something else by then, a thread that sleeps on a word in it wakes for nothing;
 * if it is unmapped, the kernel answers EFAULT, which is ignored. Therefore a thread that sleeps on a word always
 * checks it in a loop.
 *
 * After each such store the code calls hf_point_let_go: a simulation can run the waiter there, and notices a later
 * access. */
#ifndef HF_BASE_LATCH_H
#define HF_BASE_LATCH_H

#include "base/canary.h"
#include "base/env.h"
#include "base/spin.h"

/* The caller has let go of something. Not under a lock: a simulation may let others run here. */
static inline void hf_point_let_go(hf_env *env)
{
    if (HF_UNLIKELY(env->ops->point != NULL)) {
        env->ops->point(env, HF_POINT_LET_GO, 0);
    }
}

/* ---- A latch: one thread waits until another has opened it ------------------------------------------------------------- */

typedef struct hf_latch {
    hf_word is_open; /* 0 = shut, as in zeroed memory */
} hf_latch;

/* Shuts the latch for another use. No thread uses it at that time. */
static inline void hf_latch_shut(hf_latch *latch)
{
    atomic_store_explicit(&latch->is_open, 0, memory_order_relaxed);
}

static inline bool hf_latch_is_open(hf_latch *latch)
{
    return atomic_load_explicit(&latch->is_open, memory_order_acquire) != 0;
}

static inline void hf_latch_open(hf_env *env, hf_latch *latch)
{
    hf_word *word = &latch->is_open;
    atomic_store_explicit(word, 1, memory_order_release); /* from here on the latch may be gone */
    hf_point_let_go(env);
    if (HF_CANARY(HF_BUG_LATCH_TOUCHED)) {
        atomic_store_explicit(word, 1, memory_order_relaxed);
    }
    env->ops->word_wake(env, word, 1);
    hf_point_let_go(env);
}

/* Blocks. When it returns the opener does not touch the latch any more. */
static inline void hf_latch_wait(hf_env *env, hf_latch *latch)
{
    while (!hf_latch_is_open(latch)) {
        (void)env->ops->word_wait(env, &latch->is_open, 0, HF_INSTANT_NEVER);
    }
}

/* ---- A bell: wakes a thread that has noted under a lock that it sleeps -------------------------------------------------- */

/* Unlocks, and wakes the thread that sleeps on the word if `ring`. The woken thread may free lock and word at once. */
static inline void hf_unlock_and_ring(hf_env *env, hf_spin *lock, hf_word *word, bool ring)
{
    if (ring) {
        atomic_store_explicit(word, 1, memory_order_release);
    }
    hf_spin_unlock(lock); /* from here on the object may be gone */
    if (ring) {
        env->ops->word_wake(env, word, 1);
    }
}

/* ---- Guests: threads that use an object for a moment; its destroyer waits for them -------------------------------------- */

/* A guest enters while something else still keeps the object alive, such as a call that the destroyer waits for. It may
 * leave after that has ended. Both cost one atomic operation, and no system call unless the destroyer sleeps. */
typedef struct hf_guests {
    hf_word word; /* HF_GUEST for each guest inside, plus HF_GUESTS_AWAITED once the destroyer waits */
} hf_guests;

enum { HF_GUESTS_AWAITED = 1, HF_GUEST = 2 };

static inline void hf_guest_enter(hf_guests *guests)
{
    atomic_fetch_add_explicit(&guests->word, HF_GUEST, memory_order_relaxed);
}

/* The last access to the object. */
static inline void hf_guest_leave(hf_env *env, hf_guests *guests)
{
    hf_word *word = &guests->word;
    uint32_t before = atomic_fetch_sub_explicit(word, HF_GUEST, memory_order_release);
    if (HF_UNLIKELY(before == HF_GUEST + HF_GUESTS_AWAITED)) {
        env->ops->word_wake(env, word, 1);
    }
}

/* Blocks until nobody is inside. No guest enters any more. */
static inline void hf_guests_await(hf_env *env, hf_guests *guests)
{
    uint32_t seen = atomic_fetch_or_explicit(&guests->word, HF_GUESTS_AWAITED, memory_order_acquire);
    seen |= HF_GUESTS_AWAITED;
    while (seen != HF_GUESTS_AWAITED) {
        (void)env->ops->word_wait(env, &guests->word, seen, HF_INSTANT_NEVER);
        seen = atomic_load_explicit(&guests->word, memory_order_acquire);
    }
}

#endif
