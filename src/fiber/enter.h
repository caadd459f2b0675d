/* How every public verb begins and ends.
 *
 * hf_enter marks the running fiber as inside the library, and checks whether it may continue: its scheduler may have
 * been given to another thread (the fiber then moves there), a dump may have stopped the world, or the process may
 * be a fork(). In a forked child it returns NULL, and the verb returns hf_forked(). Verbs never nest: between enter
 * and leave only internal functions are called. */
#ifndef HF_FIBER_ENTER_H
#define HF_FIBER_ENTER_H

#include "base/options.h"
#include "fiber/core.h"

hf_fiber *hf_thread_adopt(void); /* the calling plain thread as a waiter; made on first use */
void hf_thread_at_end(void);     /* when the calling thread ends, what it has of the library is freed */
hf_fiber *hf_enter_slow(hf_fiber *self, hf_runtime *rt);
hf_status hf_forked(void); /* HF_ERR_MISUSE, with a message if it can be stored */

/* rt: runtime of the object that the verb acts on, or NULL. */
static inline hf_fiber *hf_enter(hf_runtime *rt)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    if (HF_UNLIKELY(self == NULL || self->sched == NULL)) {
        return hf_enter_slow(self, rt);
    }
#if HF_TSAN
    (void)__atomic_exchange_n(&self->in_lib, 1, __ATOMIC_SEQ_CST);
    unsigned stop = atomic_load(&self->sched->stop_request);
    bool lost = __atomic_load_n(&self->lost, __ATOMIC_RELAXED) != 0;
#else
    self->in_lib = 1;
    atomic_signal_fence(memory_order_seq_cst);
    unsigned stop = atomic_load_explicit(&self->sched->stop_request, memory_order_relaxed);
    bool lost = self->lost != 0;
#endif
    if (HF_UNLIKELY(stop != 0 || lost || atomic_load_explicit(self->sched->fork_marker, memory_order_relaxed) == 0)) {
        return hf_enter_slow(self, rt);
    }
    return self;
}

static inline void hf_leave(hf_fiber *self)
{
#if HF_TSAN
    __atomic_store_n(&self->in_lib, self->hook_depth != 0, __ATOMIC_RELEASE);
#else
    atomic_signal_fence(memory_order_seq_cst);
    self->in_lib = self->hook_depth != 0; /* a verb called by a hook returns into the library */
#endif
}

/* HF_OK, or HF_ERR_MISUSE on a fiber of a workflow: for verbs whose answer could differ in a replay. May be called
 * before or after hf_enter. */
hf_status hf_refuse_in_workflow(hf_fiber *self, const char *verb);
static inline hf_status hf_not_in_workflow(const char *verb)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    return HF_LIKELY(self == NULL || self->kind != HF_FIBER_MEMBER) ? HF_OK : hf_refuse_in_workflow(self, verb);
}

/* The first statement of a verb with options: from here on `options` is a struct of this library's size, the
 * caller's own or one that was made of it (base/options.h). Returns with a failure when that is not possible. */
#define HF_OPTIONS(type, options, verb)                                                  \
    type options##_own;                                                                  \
    if (HF_UNLIKELY(!hf_options_fit((options), sizeof options##_own))) {                 \
        HF_TRY(hf_options_take(&options##_own, sizeof options##_own, (options), #verb)); \
        (options) = &options##_own;                                                      \
    }
hf_status hf_options_take(void *own, size_t own_len, const void *given, const char *verb);

#define HF_LEAVE(self, result)                 \
    do {                                       \
        hf_status hf_leave_status_ = (result); \
        hf_leave(self);                        \
        return hf_leave_status_;               \
    } while (0)

/* Where the running verb was called: if it makes a command of a workflow, reports name it. */
static inline void hf_set_place(hf_fiber *self, const char *file, int line)
{
    self->file = file;
    self->line = line;
}

static inline bool hf_is_canceled(const hf_fiber *self)
{
    return self->cx != NULL && atomic_load_explicit(&self->cx->canceled, memory_order_acquire);
}

#endif
