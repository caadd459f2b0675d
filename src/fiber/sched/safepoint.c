#include "fiber/sched/safepoint.h"

#include "fiber/enter.h"

static const int64_t RECHECK_NS = 50 * 1000;

static bool is_quiet(hf_sched *sched)
{
    hf_fiber *current = __atomic_load_n(&sched->current, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&current->in_lib, __ATOMIC_ACQUIRE) == 0 &&
           current == __atomic_load_n(&sched->current, __ATOMIC_ACQUIRE); /* else its stack may have been wiped */
}

void hf_world_stop(hf_runtime *rt)
{
    hf_env *env = rt->env;
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    hf_sched *own = self != NULL && self->rt == rt ? self->sched : NULL;
    hf_word never = 0;
    while (atomic_exchange(&rt->world_stops, 1) != 0) { /* another stopper: it may be stopping us */
        if (own != NULL) {
            hf_leave(self);
        }
        (void)env->ops->word_wait(env, &never, 0, (hf_instant){hf_rt_now(rt).ns + RECHECK_NS});
        if (own != NULL) {
            self = hf_enter(NULL);
            hf_assert(self != NULL);
        }
    }
    hf_assert(own == NULL || self->in_lib != 0); /* fiber-F4 */
    for (int i = 0; i < rt->sched_count; i++) {
        if (rt->scheds[i] != own) {
            atomic_store(&rt->scheds[i]->stop_request, 1);
        }
    }
    env->ops->barrier_all(env);
    for (int i = 0; i < rt->sched_count; i++) {
        while (rt->scheds[i] != own && !is_quiet(rt->scheds[i])) {
            (void)env->ops->word_wait(env, &never, 0, (hf_instant){hf_rt_now(rt).ns + RECHECK_NS});
        }
    }
    env->ops->barrier_all(env); /* their writes before they left the library are visible now, on any machine */
}

void hf_world_start(hf_runtime *rt)
{
    hf_assert(atomic_load(&rt->world_stops) == 1);
    for (int i = 0; i < rt->sched_count; i++) {
        atomic_store(&rt->scheds[i]->stop_request, 0);
    }
    atomic_store(&rt->world_stops, 0);
    atomic_fetch_add(&rt->world_word, 1);
    rt->env->ops->word_wake(rt->env, &rt->world_word, HF_THREADS_MAX);
}
