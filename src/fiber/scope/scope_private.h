/* Shared by scope.c, fork.c and join.c: calling a scope's home, running its hooks, waiting for its last child. */
#ifndef HF_FIBER_SCOPE_PRIVATE_H
#define HF_FIBER_SCOPE_PRIVATE_H

#include "fiber/sched/wait.h"

static inline bool hf_is_home(const hf_fiber *self, const hf_scope *scope)
{
    return self->sched == scope->home;
}

/* A function to run on the thread of a scope's home. */
typedef struct hf_home_call {
    hf_msg msg;
    hf_wait wait;
    hf_scope *scope;
    /* Runs at home. True: it is done, and the caller continues. False: the caller is woken through `wait` later. */
    bool (*fn)(hf_sched *sched, hf_scope *scope, struct hf_home_call *call);
    hf_branch *branch;
    hf_status status;
} hf_home_call;

extern const hf_wait_kind hf_home_call_kind;
/* Runs fn at the scope's home and waits for it. The wait cannot be canceled: it is short, or it is a join. */
void hf_call_home(hf_fiber *self, hf_scope *scope, hf_home_call *call, const hf_wait_kind *kind);

/* Runs a hook of the policy, on the home's thread; a hook must not wait. */
#define HF_IN_HOOK(sched, expression)                  \
    do {                                               \
        hf_fiber *in_hook_ = (sched)->current;         \
        in_hook_->hook_depth += HF_HOOK_AWAY;          \
        expression;                                    \
        in_hook_->hook_depth -= HF_HOOK_AWAY;          \
        if (HF_UNLIKELY((sched)->hook_kept.is_kept)) { \
            hf_hook_restore(in_hook_);                 \
        }                                              \
    } while (0)

static inline __attribute__((always_inline)) void hf_park_joiner(hf_fiber *self, hf_scope *scope,
                                                                 const hf_wait_kind *kind)
{
    hf_assert(kind->abort == NULL && scope->joiner == NULL); /* fiber-C4, fiber-J2 */
    hf_wait wait;
    hf_wait_init(&wait, self, kind, scope, scope->name);
    scope->joiner = &wait;
    (void)hf_park_hot(self, &wait);
}

/* Whether no child is left and no message is on its way. The end of the last child woke the owner, but before the
 * owner ran, a fork from another thread may have arrived. */
static inline bool hf_scope_is_over(hf_fiber *self, hf_scope *scope)
{
    if (HF_UNLIKELY(atomic_load(&scope->pending) != 0)) {
        hf_yield_in(self);
        return false;
    }
    return __atomic_load_n(&scope->tally.running, __ATOMIC_RELAXED) == 0 || HF_CANARY(HF_BUG_JOIN_EARLY);
}

#endif
