#include "fiber/enter.h"

#include "fiber/crew/strand.h"
#include "fiber/keyed/readers.h"
#include "fiber/verbs.h"
#include "fiber/watch/watch.h"

#include <string.h>

/* Stands for a plain thread. In thread-local storage, so that it need not be freed; only what its last failure has is
 * freed when the thread ends. */
static _Thread_local hf_thread_fiber plain __attribute__((tls_model("initial-exec")));

static void end_plain(void *arg)
{
    hf_thread_fiber *ending = arg;
    hf_reader_end();
    if (ending->fiber.kind == HF_FIBER_THREAD) { /* else this thread has only run fibers */
        hf_self_drop_chain(&ending->fiber);
    }
    if (hf_self_get() == &ending->fiber.self) {
        hf_self_set(NULL); /* a later destructor of the thread that calls the library begins anew */
    }
}

void hf_thread_at_end(void)
{
    hf_env_at_thread_end(end_plain, &plain);
}

hf_fiber *hf_thread_adopt(void)
{
    hf_fiber *self = &plain.fiber;
    memset(&plain, 0, sizeof plain);
    self->kind = HF_FIBER_THREAD;
    hf_self_set(&self->self);
    hf_thread_at_end();
    return self;
}

hf_status hf_forked(void)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    if (self != NULL && self->kind == HF_FIBER_THREAD) {
        return hf_refuse(self, HF_ERR_MISUSE,
                         "this process is a fork() of the one that made the runtime: the library "
                         "refuses every call here; exec or _exit instead");
    }
    if (self != NULL) {
        hf_self_note(self, HF_ERR_MISUSE, "a call in a process that fork() made");
    }
    return HF_ERR_MISUSE;
}

hf_status hf_refuse_in_workflow(hf_fiber *self, const char *verb)
{
    hf_assert(self->kind == HF_FIBER_MEMBER && self->crew != NULL);
    bool was_in_lib = self->in_lib != 0;
    (void)hf_enter(NULL);
    (void)hf_refuse_at(self, HF_ERR_MISUSE, verb,
                       "%s reaches outside the workflow, where a replay could get another answer: call it from an "
                       "activity",
                       verb);
    if (!was_in_lib) {
        hf_leave(self);
    }
    return HF_ERR_MISUSE;
}

hf_status hf_refuse_in_hook(hf_fiber *self, const char *verb, bool may_wait)
{
    if (may_wait) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s may wait, and a hook of a join must not", verb);
    }
    return hf_refuse_at(self, HF_ERR_MISUSE, verb,
                        "%s: a hook of a join must not open, lock or set anything: it may run on another fiber", verb);
}

hf_status hf_refuse_in_query(hf_fiber *self, const char *verb)
{
    hf_count_if_evicted(self); /* one that tries again for ever is stranded like any other */
    return hf_refuse_at(self, HF_ERR_MISUSE, verb,
                        "%s: a query, a validator or a condition must not wait and must not change anything", verb);
}

hf_status hf_options_take(void *own, size_t own_len, const void *given, const char *verb)
{
    hf_op op;
    hf_op_init(&op);
    if (HF_LIKELY(hf_options_copy(&op, own, own_len, given) == HF_OK)) {
        return HF_OK;
    }
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        return hf_forked();
    }
    HF_LEAVE(self, hf_refuse_at(self, op.status, verb, "%s: %s", verb, op.message));
}

hf_fiber *hf_enter_slow(hf_fiber *self, hf_runtime *rt)
{
    if (self == NULL) {
        self = hf_thread_adopt();
    }
    if (self->sched == NULL) { /* a plain or pool thread: owns nothing of a scheduler */
        if (self->branch == NULL) {
            /* The runtime it talks to now: where its waits and its memory come from. Not the one of an earlier call,
             * which may be gone. */
            hf_runtime *home = self->scope != NULL ? self->scope->rt : HF_CONTAINER(self, hf_thread_fiber, fiber)->home;
            hf_runtime *now = rt != NULL ? rt : home;
            if (self->rt !=
                now) { /* a call that posted its wait before may be woken by another thread, which reads it */
                self->rt = now;
            }
        }
        if ((rt != NULL && hf_rt_is_forked(rt)) || (self->rt != NULL && hf_rt_is_forked(self->rt))) {
            return NULL;
        }
        self->in_lib = 1;
        return self;
    }
    if (atomic_load_explicit(self->sched->fork_marker, memory_order_relaxed) == 0) {
        return NULL;
    }
    for (;;) {
        if (self->lost != 0) {
            hf_watchdog_carry(self);                         /* returns on the new thread of its scheduler */
            hf_assert(self->lost == 0 && self->in_lib != 0); /* fiber-L3 */
        }
        hf_sched *sched = self->sched;
        hf_runtime *own = sched->rt;
        hf_env *env = own->env;
        uint32_t seen = atomic_load(&own->world_word);
        /* A hook runs inside the library, and a thread that stops the world waits for it. So it must not wait for
         * that thread. */
        if (atomic_load(&sched->stop_request) == 0 || self->hook_depth != 0) {
            if (self->lost == 0) {
                return self;
            }
            continue;
        }
        hf_leave(self);
        (void)env->ops->word_wait(env, &own->world_word, seen, HF_INSTANT_NEVER);
#if HF_TSAN
        (void)__atomic_exchange_n(&self->in_lib, 1, __ATOMIC_SEQ_CST);
#else
        self->in_lib = 1;
        atomic_thread_fence(memory_order_seq_cst);
#endif
    }
}
