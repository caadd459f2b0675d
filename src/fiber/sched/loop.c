/* The loop of a scheduler's thread. It runs on the thread's own stack, when no fiber is ready: it steals, lingers and sleeps.
 * sched.c has the rules by which ready fibers and unstarted branches are chosen.
 *
 *   fiber-S4  An idle scheduler steals unstarted branches, the oldest first: at most half of those of a victim, and
 *             only if two or more wait there, or if the monitor saw one wait for a tick. A branch that has started
 *             is never stolen.
 *   fiber-S5  A scheduler without work looks around and lingers once (linger.h), then sleeps without a deadline if it
 *             has no alarm. So an idle runtime causes no wake-ups. */
#include "fiber/core.h"
#include "fiber/enter.h"
#include "fiber/io/fd.h"
#include "fiber/sched/leave.h"
#include "fiber/sched/runq.h"
#include "fiber/watch/watch.h"

enum {
    SPIN_ROUNDS = 200,
    NAP_NS = 25 * 1000, /* a sleep as short as this: looking for a little longer would have been cheaper */
    LUCK_MAX = 4,
    LINGER_ROUNDS = 32, /* looks at the inbox, between two at everything else: about a microsecond */
    TURN_BUDGET = 1024  /* picks of a hosted turn; up to 15 fibers run between two of them */
};

/* ---- Stealing ---------------------------------------------------------------------------------------------------- */

/* Branches that a thief may take from `victim` now (fiber-S4). */
static unsigned stealable(const hf_sched *thief, hf_sched *victim)
{
    unsigned count = hf_runq_count(victim);
    if (count < 2 && !thief->has_point &&
        (atomic_load_explicit(&victim->branch_waited, memory_order_relaxed) == 0 ||
         atomic_exchange_explicit(&victim->branch_waited, 0, memory_order_relaxed) == 0)) {
        return 0;
    }
    unsigned half = (count + 1) / 2;
    return half > HF_STEAL_COUNT_MAX ? HF_STEAL_COUNT_MAX : half;
}

/* A last look before going to sleep: a thread that pushed a branch while this one was searching saw a searcher, and
 * woke nobody. */
static bool anything_to_steal(hf_sched *thief)
{
    hf_runtime *rt = thief->rt;
    for (int i = 0; thief->multi && i < rt->sched_count; i++) {
        if (rt->scheds[i] != thief && hf_runq_count(rt->scheds[i]) >= 2) {
            return true;
        }
    }
    return false;
}

static bool steal(hf_sched *thief)
{
    hf_runtime *rt = thief->rt;
    hf_point_at(thief, HF_POINT_STEAL, (uint64_t)thief->index);
    for (int i = 1; i < rt->sched_count; i++) {
        hf_sched *victim = rt->scheds[(thief->index + i) % rt->sched_count];
        unsigned count = stealable(thief, victim);
        unsigned taken = 0;
        for (hf_branch *branch = NULL; taken < count && (branch = hf_runq_steal(victim)) != NULL; taken++) {
            hf_assert(atomic_load_explicit(&branch->at, memory_order_relaxed) == NULL); /* fiber-S4: it has not run */
            hf_runq_push_back(thief, branch);
        }
        if (taken > 0) {
            __atomic_store_n(&thief->counters.steals, thief->counters.steals + taken, __ATOMIC_RELAXED);
            return true;
        }
    }
    return false;
}

/* ---- Looking for work, and sleeping ------------------------------------------------------------------------------ */

static bool is_stopping(const hf_sched *sched)
{
    return atomic_load_explicit(&sched->rt->stop_word, memory_order_acquire) != 0;
}

static void note_core(hf_sched *sched)
{
    atomic_store_explicit(&sched->core, sched->env->ops->thread_core(sched->env), memory_order_relaxed);
}

/* Whether the scheduler that is expected to answer last worked on this core. The kernel tends to put a thread on the
 * core of its waker; there the other thread would have to wait until this one stops looking. */
static bool is_in_the_way(hf_sched *sched)
{
    note_core(sched);
    int core = atomic_load_explicit(&sched->core, memory_order_relaxed);
    return sched->called != NULL && core >= 0 &&
           atomic_load_explicit(&sched->called->core, memory_order_relaxed) == core;
}

static bool watch_inbox(const hf_sched *sched)
{
    for (int i = 0; i < LINGER_ROUNDS; i++) {
        if (atomic_load_explicit(&sched->inbox, memory_order_relaxed) != NULL) {
            return true;
        }
        hf_relax();
    }
    return false;
}

/* Waits for the answer of a neighbour for as long as the policy says (linger.h), or until something else is due. */
static bool linger(hf_sched *sched)
{
    if (is_in_the_way(sched)) {
        hf_linger_missed(&sched->linger);
        return false;
    }
    hf_instant now = sched->env->ops->now(sched->env);
    hf_instant alarm = hf_alarms_next(&sched->alarms);
    int64_t until_ns = now.ns + sched->linger.limit_ns;
    while (now.ns < until_ns) {
        if (watch_inbox(sched)) {
            return true;
        }
        if (is_stopping(sched) || atomic_load_explicit(&sched->stop_request, memory_order_relaxed) != 0) {
            return false;
        }
        if (__atomic_load_n(&sched->fd_count, __ATOMIC_RELAXED) > 0) {
            hf_fd_poll(sched, (hf_instant){0});
        }
        if (sched->ready_head != NULL || steal(sched)) {
            return true;
        }
        now = sched->env->ops->now(sched->env);
        if (now.ns >= alarm.ns) {
            return true;
        }
    }
    hf_linger_missed(&sched->linger);
    return false;
}

/* Looks for work elsewhere for a moment before going to sleep, and for longer if that has paid lately. If answers take
 * longer than a look, or if the threads that give them need the processor, looking around only delays them. */
static bool look_elsewhere(hf_sched *sched)
{
    hf_runtime *rt = sched->rt;
    atomic_fetch_add(&rt->searchers, 1);
    bool found = false;
    int rounds = sched->has_point || sched->luck == 0 ? 1 : SPIN_ROUNDS;
    for (int i = 0; i < rounds && !found; i++) {
        if (atomic_load_explicit(&sched->inbox, memory_order_relaxed) != NULL || is_stopping(sched)) {
            found = true;
        } else {
            found = (i % 16 == 0) && steal(sched);
            hf_relax();
        }
    }
    if (!found && sched->linger.limit_ns > 0) {
        found = linger(sched);
    }
    int searchers = atomic_fetch_sub(&rt->searchers, 1);
    hf_assert(searchers > 0 && searchers <= rt->sched_count);
    if (found) {
        sched->luck += sched->luck < LUCK_MAX;
    } else {
        sched->luck -= sched->luck > 0;
    }
    return found;
}

static bool search(hf_sched *sched)
{
    if (!sched->multi) {
        return false;
    }
    hf_linger_begin(&sched->linger);
    /* An answer that is expected at once is worth a look at the inbox alone, before counters that all schedulers share. */
    if ((sched->linger.limit_ns == 0 || !watch_inbox(sched)) && !look_elsewhere(sched)) {
        return false;
    }
    hf_linger_found(&sched->linger);
    sched->late_ns = 0;
    return true;
}

/* Sleeps until there may be something to do. `sleeping` is set before the last look at the inbox, and a thread that
 * posts a message reads `sleeping` afterwards: one of the two sees the other. */
static void sleep_until(hf_sched *sched, hf_instant deadline)
{
    hf_assert(sched->ready_head == NULL); /* fiber-S1 */
    hf_assert(sched->current == &sched->idle);
    hf_runtime *rt = sched->rt;
    hf_instant alarm = hf_alarms_next(&sched->alarms);
    if (alarm.ns < deadline.ns) {
        deadline = alarm;
    }
    atomic_store_explicit(&sched->called_ns, 0, memory_order_relaxed);
    atomic_store(&sched->sleeping, 1);
    atomic_fetch_add(&rt->idlers, 1);
    bool is_due = rt->hosted && atomic_exchange(&rt->thread_woken, false);
    if (atomic_load(&sched->inbox) == NULL && !is_stopping(sched) && !is_due && !anything_to_steal(sched)) {
        int64_t slept_from = hf_rt_now(rt).ns;
        hf_fd_poll(sched, deadline);
        sched->coarse_ns = hf_rt_now(rt).ns;
        int64_t called_ns = atomic_load_explicit(&sched->called_ns, memory_order_relaxed);
        sched->late_ns = called_ns != 0 ? sched->coarse_ns - called_ns : 0;
        if (called_ns != 0) {
            note_core(sched);
            int64_t late = atomic_load_explicit(&sched->called_late, memory_order_relaxed);
            hf_linger_called(&sched->linger, called_ns - slept_from, late);
        }
        sched->luck += sched->luck < LUCK_MAX && sched->coarse_ns - slept_from < NAP_NS;
    }
    int idlers = atomic_fetch_sub(&rt->idlers, 1);
    hf_assert(idlers > 0 && idlers <= rt->sched_count);
    atomic_store(&sched->sleeping, 0);
    hf_watchdog_busy(sched);
}

/* ---- The loop ---------------------------------------------------------------------------------------------------- */

static hf_fiber *enter_idle(hf_sched *sched)
{
    hf_fiber *idle = &sched->idle; /* is `current`, outside the library, and maybe being looked at by a dump */
    hf_self_set(&idle->self);
    hf_fiber *self = hf_enter(NULL);
    hf_assert(self == idle && sched->current == idle);
    return idle;
}

/* False: a fiber kept this thread and the scheduler went to another one (watch_lost.c). */
static bool switch_from_idle(hf_sched *sched, hf_fiber *idle, hf_fiber *next)
{
    hf_assert(next != idle && next->sched == sched); /* fiber-F2 */
    HF_BUMP(sched->counters.switches);
    __atomic_store_n(&sched->current, next, __ATOMIC_RELEASE);
#if HF_ASAN
    sched->left = idle;
#endif
    hf_self_set(&next->self);
    hf_exceptions_swap(sched->exceptions, &idle->exceptions, &next->exceptions);
    hf_context_switch(&idle->context, &next->context, false);
    hf_fiber *back = (hf_fiber *)(void *)hf_self_get();
    if (HF_UNLIKELY(back != idle)) {
        hf_watchdog_left(back);
        return false;
    }
    hf_context_arrived(&idle->context, sched->left != NULL ? &sched->left->context : NULL);
    return true;
}

/* Between turns the host's loop sleeps instead of us: posting a message rings the poller, and the next alarm makes
 * it readable. */
static void leave_to_host(hf_sched *sched)
{
    hf_assert(sched->rt->hosted);
    sched->env->ops->poller_arm(sched->env, sched->poller, hf_alarms_next(&sched->alarms));
    atomic_store(&sched->sleeping, 1);
    if (atomic_load(&sched->inbox) != NULL || sched->ready_head != NULL || hf_runq_count(sched) > 0) {
        hf_sched_ring(sched, NULL);
    }
}

bool hf_sched_turn(hf_sched *sched, hf_instant deadline)
{
    if (sched->rt->hosted) {
        hf_assert(atomic_load(&sched->rt->turning) != HF_TURNING_NOBODY);
        hf_context_adopt(&sched->idle.context); /* whichever thread of the host it is this time */
        sched->exceptions = hf_exceptions_here();
        atomic_store(&sched->sleeping, 0);
        sched->budget = TURN_BUDGET;
    }
    hf_fiber *idle = enter_idle(sched);
    bool ran = false;
    bool waited = false;
    for (;;) {
        if (atomic_load_explicit(&sched->inbox, memory_order_relaxed) != NULL) {
            hf_sched_drain(sched);
        }
        if (sched->alarms.count > 0) {
            hf_instant now = sched->env->ops->now(sched->env);
            sched->coarse_ns = now.ns;
            (void)hf_alarms_run(sched, now);
        }
        hf_fiber *next = hf_sched_next(sched);
        if (next != NULL) {
            ran = true;
            if (HF_UNLIKELY(!switch_from_idle(sched, idle, next))) {
                return ran; /* nothing here is this thread's any more */
            }
            continue;
        }
        if (is_stopping(sched) || (sched->rt->hosted && (ran || waited))) {
            break;
        }
        if (!search(sched)) {
            sleep_until(sched, deadline);
            waited = true;
        }
    }
    if (sched->rt->hosted) {
        leave_to_host(sched);
    }
    hf_leave(idle);
    return ran;
}

static void pin_thread(hf_sched *sched)
{
    hf_op op;
    hf_op_init(&op);
    if (sched->env->ops->thread_pin(sched->env, &op, sched->index) != HF_OK) {
        hf_log(sched->rt, HF_LOG_WARN, "thread_not_pinned", "thread=%d why=\"%s\"", sched->index, op.message);
    }
}

void hf_sched_thread_main(void *arg)
{
    hf_sched *sched = arg;
    if (sched->rt->pin_threads) {
        pin_thread(sched);
    }
    hf_context_adopt(&sched->idle.context);
    sched->exceptions = hf_exceptions_here();
    while (!is_stopping(sched)) {
        (void)hf_sched_turn(sched, HF_INSTANT_NEVER);
        if (HF_UNLIKELY(hf_self_get() == NULL)) {
            return; /* lost to a fiber; another thread runs the scheduler */
        }
    }
    hf_self_set(NULL);
}

/* ---- Its life ---------------------------------------------------------------------------------------------------- */

static void sched_fatal(hf_self *self, const char *message, int exit_code)
{
    hf_fiber *fiber = (hf_fiber *)(void *)self;
    hf_fatal(fiber->rt, message, exit_code);
}

void hf_sched_init(hf_runtime *rt, hf_sched *sched, int index)
{
    hf_assert(index >= 0 && index < rt->sched_count);
    sched->rt = rt;
    sched->env = rt->env;
    sched->index = index;
    sched->multi = rt->sched_count > 1;
    sched->has_point = rt->env->ops->point != NULL;
    sched->stack_class = hf_stack_class_of(rt->stack_size);
    sched->fork_marker = rt->fork_marker;
    sched->coarse_ns = hf_rt_now(rt).ns;
    sched->luck = LUCK_MAX;
    atomic_store(&sched->core, -1);
    sched->idle.self.fatal = sched_fatal;
    sched->idle.kind = HF_FIBER_IDLE;
    sched->idle.sched = sched;
    sched->idle.rt = rt;
    hf_heap_init(&sched->alarms, rt->allocator);
    sched->current = &sched->idle;
    atomic_store(&sched->sleeping, rt->hosted ? 1 : 0); /* as leave_to_host leaves it */
}

void hf_sched_deinit(hf_sched *sched)
{
    hf_assert(sched->ready_head == NULL);
    hf_assert(sched->current == &sched->idle && sched->interrupt_head == NULL);
    hf_assert(hf_runq_count(sched) == 0 && atomic_load(&sched->inbox) == NULL); /* fiber-F5 */
    hf_assert(sched->counters.fibers == 0);
    hf_box_unref(sched->idle.failure); /* of a hook that ran for a message */
    while (sched->free_scopes != NULL) {
        hf_scope *scope = sched->free_scopes;
        sched->free_scopes = scope->outer;
        hf_rt_free(sched->rt, scope, sizeof *scope);
    }
    hf_alarms_deinit(sched);
}
