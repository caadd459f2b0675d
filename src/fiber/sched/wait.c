#include "fiber/sched/wait.h"

#include "fiber/crew/crew_private.h"
#include "fiber/crew/strand.h"
#include "fiber/verbs.h"

#include <string.h>

bool hf_wait_abort_linked(hf_wait *wait)
{
    hf_assert(wait->object != NULL); /* fiber-F3 */
    hf_spin *lock = wait->object;
    hf_spin_lock(lock);
    bool claimed = hf_node_is_linked(&wait->node);
    if (claimed) {
        hf_list_remove(&wait->node);
    }
    hf_spin_unlock(lock);
    return claimed;
}

void hf_wake(hf_wait *wait, hf_status status)
{
    hf_fiber *fiber = wait->fiber;
    wait->status = status;
    if (fiber->kind != HF_FIBER_THREAD) {
        hf_fiber_ready(fiber);
        return;
    }
    hf_assert(atomic_load_explicit(&wait->word, memory_order_relaxed) == 0); /* fiber-F3: it is claimed once */
    hf_env *env = fiber->rt != NULL ? fiber->rt->env : hf_env_posix();
    hf_runtime *hosted = fiber->rt != NULL && fiber->rt->hosted ? fiber->rt : NULL;
    hf_word *word = &wait->word;
    if (hosted != NULL) { /* the thread may free it as soon as it goes on */
        hf_guest_enter(&hosted->guests);
    }
    atomic_store_explicit(word, 1, memory_order_release); /* from here on the wait may be gone (latch.h) */
    env->ops->word_wake(env, word, 1);
    if (env->ops->point != NULL) {
        env->ops->point(env, HF_POINT_WAKE, 0);
    }
    if (hosted != NULL) { /* it may be driving the runtime: then it sleeps in the poller, or is about to */
        atomic_store(&hosted->thread_woken, true);
        env->ops->poller_ring(env, hosted->scheds[0]->poller);
        atomic_fetch_add(&hosted->turn_word, 1); /* or waiting for its turn to drive */
        env->ops->word_wake(env, &hosted->turn_word, HF_THREADS_MAX);
        hf_guest_leave(env, &hosted->guests);
    }
}

static void on_timeout(hf_sched *sched, hf_alarm *alarm)
{
    (void)sched;
    hf_wait *wait = HF_CONTAINER(alarm, hf_wait, alarm);
    hf_assert(wait->alarm.pos == 0 && wait->kind->abort != NULL);
    bool is_waiting = wait->fiber->wait == wait; /* else it was woken already, and its object may be gone */
    if ((is_waiting && wait->kind->abort(wait)) || HF_CANARY(HF_BUG_TIMEOUT_NOT_CLAIMED)) {
        hf_wake(wait, HF_ERR_TIMEOUT);
    }
}

static hf_status park_fiber(hf_fiber *self, hf_wait *wait, hf_instant deadline)
{
    hf_assert(self->in_lib != 0);                         /* fiber-F4 */
    hf_assert(self->wait == NULL && wait->fiber == self); /* fiber-F3 */
    hf_sched *sched = self->sched;
    if (HF_UNLIKELY(self->is_evicted) && wait->kind->abort != NULL && wait->kind->abort(wait)) {
        return HF_ERR_EVICTED;
    }
    if (deadline.ns != INT64_MAX && wait->kind->abort != NULL) {
        if (HF_UNLIKELY(self->crew != NULL) && hf_crew_is_past(self->crew, deadline) && wait->kind->abort(wait)) {
            return HF_ERR_TIMEOUT;
        }
        wait->alarm.fire = on_timeout;
        hf_status armed = hf_crew_or_sched_arm(self->crew, sched, &wait->alarm, deadline);
        if (HF_UNLIKELY(armed != HF_OK) && wait->kind->abort(wait)) {
            return armed == HF_ERR_LIMIT ? hf_crew_refuse_timer(self, wait->kind->verb) : armed;
        }
    }
    self->wait = wait;
    hf_point_at(sched, HF_POINT_PARK, self->id);
    hf_sched_leave(sched, self);
    self->wait = NULL;
    hf_alarm_disarm(self->sched, &wait->alarm);
    return wait->status;
}

void hf_turn_end(hf_runtime *rt)
{
    hf_assert(rt->hosted && atomic_load(&rt->turning) != HF_TURNING_NOBODY);
    atomic_store(&rt->turning, HF_TURNING_NOBODY);
    atomic_fetch_add(&rt->turn_word, 1); /* another thread that waits may drive from here on */
    rt->env->ops->word_wake(rt->env, &rt->turn_word, HF_THREADS_MAX);
}

/* If the host turns its runtime itself, only the host's thread may drive it: all fibers run there. Pool threads never
 * drive. */
static bool may_drive(hf_fiber *self, hf_runtime *rt)
{
    uint64_t driver = atomic_load(&rt->driver);
    return HF_CONTAINER(self, hf_thread_fiber, fiber)->home == NULL &&
           (driver == 0 || driver == rt->env->ops->thread_id(rt->env));
}

/* A plain thread of a runtime that has no threads drives it while it waits. */
static void turn_until(hf_fiber *self, hf_runtime *rt, hf_wait *wait, hf_instant deadline)
{
    hf_assert(self->kind == HF_FIBER_THREAD);
    for (;;) {
        uint32_t seen = atomic_load(&rt->turn_word);
        if (atomic_load(&wait->word) != 0 || hf_rt_now(rt).ns >= deadline.ns) {
            return;
        }
        unsigned nobody = HF_TURNING_NOBODY;
        if (!may_drive(self, rt) || !atomic_compare_exchange_strong(&rt->turning, &nobody, HF_TURNING_WAITER)) {
            (void)rt->env->ops->word_wait(rt->env, &rt->turn_word, seen, deadline); /* somebody else drives */
            continue;
        }
        (void)hf_sched_turn(rt->scheds[0], deadline);
        hf_self_set(&self->self);
        hf_turn_end(rt);
    }
}

static void sleep_thread(hf_fiber *self, hf_wait *wait, hf_instant deadline)
{
    hf_runtime *rt = self->rt;
    if (rt != NULL && rt->hosted) {
        turn_until(self, rt, wait, deadline);
        return;
    }
    hf_env *env = rt != NULL ? rt->env : hf_env_posix();
    while (atomic_load_explicit(&wait->word, memory_order_acquire) == 0) {
        if (!env->ops->word_wait(env, &wait->word, 0, deadline)) {
            return;
        }
    }
}

static hf_status park_thread(hf_fiber *self, hf_wait *wait, hf_instant deadline)
{
    bool can_abort = wait->kind->abort != NULL;
    hf_spin_lock(&self->lock);
    hf_assert(self->wait == NULL && wait->fiber == self); /* fiber-F3 */
    bool canceled = can_abort && hf_is_canceled(self);
    if (!canceled) {
        self->wait = wait;
    }
    hf_spin_unlock(&self->lock);
    if (canceled && wait->kind->abort(wait)) {
        return HF_ERR_CANCELED;
    }
    hf_instant until = can_abort ? deadline : HF_INSTANT_NEVER;
    for (;;) {
        sleep_thread(self, wait, until);
        if (atomic_load_explicit(&wait->word, memory_order_acquire) != 0) {
            break;
        }
        if (wait->kind->abort(wait)) {
            wait->status = HF_ERR_TIMEOUT;
            break;
        }
        until = HF_INSTANT_NEVER; /* claimed by somebody: the wake-up is on its way */
    }
    hf_spin_lock(&self->lock);
    self->wait = NULL;
    hf_spin_unlock(&self->lock);
    return wait->status;
}

hf_status hf_park(hf_fiber *self, hf_wait *wait, hf_instant deadline)
{
    hf_status status =
        self->kind == HF_FIBER_THREAD ? park_thread(self, wait, deadline) : park_fiber(self, wait, deadline);
    if (HF_UNLIKELY(status == HF_ERR_CANCELED || status == HF_ERR_TIMEOUT || status == HF_ERR_EVICTED)) {
        const char *name = wait->object_name;
        if (status == HF_ERR_TIMEOUT && name != NULL && name[0] != '\0') {
            return hf_refuse_at(self, status, wait->kind->verb, "%s on '%.200s': %s", wait->kind->verb, name,
                                hf_status_text(status));
        }
        hf_self_note(self, status, wait->kind->verb);
    }
    return status;
}

hf_status hf_may_not_wait(hf_fiber *self, const char *verb)
{
    if (HF_UNLIKELY(self->hook_depth != 0)) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s may wait, and a hook of a join must not", verb);
    }
    HF_TRY(hf_not_evicted(self, verb));
    if (HF_UNLIKELY(hf_is_canceled(self))) {
        hf_self_note(self, HF_ERR_CANCELED, verb);
        return HF_ERR_CANCELED;
    }
    return HF_OK;
}

hf_status hf_may_not_wait_for(hf_fiber *self, const char *verb, hf_span timeout)
{
    HF_TRY(hf_may_wait(self, verb));
    return hf_crew_check_span(self, verb, ".timeout", timeout);
}

hf_instant hf_self_deadline(const hf_fiber *self, const hf_runtime *rt, hf_span timeout)
{
    if (HF_LIKELY(self->crew == NULL)) {
        return hf_rt_deadline(rt, timeout);
    }
    return timeout.ns == 0 || timeout.ns == INT64_MAX ? HF_INSTANT_NEVER
                                                      : hf_instant_after(hf_crew_now(self->crew), timeout);
}

/* ---- hf_sleep ---------------------------------------------------------------------------------------------------- */

/* Nobody but the alarm and a cancel wakes a sleeper; both come on its own scheduler's thread. A plain thread has a
 * canceling home as its only rival, so a flag under its lock decides. */
static bool abort_sleep(hf_wait *wait)
{
    int64_t expected = 0;
    return __atomic_compare_exchange_n(&wait->number, &expected, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static const hf_wait_kind SLEEP = {"hf_sleep", abort_sleep};

hf_status(hf_sleep)(hf_span span)
{
    HF_VERB_ENTER(self, hf_sleep, NULL);
    hf_status status = hf_may_wait(self, "hf_sleep");
    if (HF_UNLIKELY(self->crew != NULL) && status == HF_OK) {
        status = hf_crew_check_span(self, "hf_sleep", "the span", span);
    }
    if (status != HF_OK || span.ns <= 0) {
        hf_leave(self);
        return status != HF_OK ? status : hf_yield();
    }
    hf_env *env = self->rt != NULL ? self->rt->env : hf_env_posix();
    hf_instant now = self->crew != NULL ? hf_crew_now(self->crew) : env->ops->now(env);
    hf_instant until = hf_instant_after(now, span);
    hf_wait wait;
    hf_wait_init(&wait, self, &SLEEP, NULL, "");
    wait.number = 0;
    status = hf_park(self, &wait, until);
    if (status == HF_ERR_TIMEOUT) { /* expected: the sleep is over */
        self->last_status = HF_OK;
        self->last_where = NULL;
        status = HF_OK;
    }
    HF_LEAVE(self, status);
}

hf_status(hf_sleep_until)(hf_time when)
{
    hf_span span = hf_time_until(hf_wall_now(NULL), when); /* in a workflow: its own clock */
    HF_VERB_ENTER(self, hf_sleep_until, NULL);
    hf_leave(self);
    return (hf_sleep)(span.ns > 0 ? span : hf_nanoseconds(0)); /* the function: the place is the caller's */
}
