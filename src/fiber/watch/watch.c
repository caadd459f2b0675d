/* The monitor: one thread per runtime that looks at the schedulers every tick, while any of them is busy.
 *
 * At each look it takes the answers of signalled threads, samples every slot, lets the policy decide, and acts. Then
 * it does its chores: it offers branches that have waited for a whole tick to other threads, reports stacks that are
 * nearly full, and gives the memory of unused stacks back.
 *
 * fiber-M1  Samples are read from running threads without their knowledge. They may be torn or old, so they decide
 *           nothing that matters. The handler decides on the thread itself whether the fiber is still in the same
 *           turn, and in user code.
 * fiber-M2  The watchdog's clock is the sum of the times between looks, each cut to a quarter of stuck_after. So a
 *           process that was stopped (by a debugger, or with the machine) continues without a stuck fiber.
 * fiber-M3  When all schedulers have slept for a second and nothing is stuck, the monitor sleeps without a deadline.
 *           It sets is_asleep before it reads `sleeping` for the last time, and a scheduler clears `sleeping` before
 *           it reads is_asleep: one of the two sees the other. */
#include "fiber/watch/watch.h"

#include "fiber/enter.h"
#include "fiber/watch/backtrace.h"
#include "fiber/watch/watch_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TRIM_COUNT = 1024, USED_STEADY = 64, MONITOR_STACK_LEN = 256 * 1024 };

static const int64_t TICK_NS = 20 * INT64_C(1000000);
static const int64_t TICK_NS_MIN = INT64_C(1000000);   /* however short stuck_after is */
static const int64_t STEP_NS = 500 * INT64_C(1000000); /* when stuck_after is off */
static const int64_t LINGER_NS = INT64_C(1000000000);
static const int64_t REPORT_WAIT_NS = INT64_C(1000000000); /* for the stack of a stuck fiber */
const char hf_watchdog_no_stack[] =
    " message=\"no stack: only a signal can read it, and none was given; set .watchdog.signal, for example to SIGURG\"";
static const char REASON_FATAL[] = "holdfast: too many fibers are stuck and do not end; the process has to end";

/* ---- Samples ----------------------------------------------------------------------------------------------------- */

/* See fiber-M1. Not instrumented: the races are intended. */
__attribute__((no_sanitize("thread"))) static int64_t sample_sched(hf_watch_seat *seat, hf_sched *sched,
                                                                   hf_watchdog_sample *ret)
{
    hf_fiber *volatile *current = &sched->current;
    const volatile unsigned *tick = &sched->tick;
    const volatile uint64_t *fibers = &sched->counters.fibers;
    const volatile hf_fiber *fiber = seat->seen = *current;
    seat->tick_seen = *tick;
    seat->id_seen = fiber->id;
    ret->run = (uint64_t)(uintptr_t)fiber;
    ret->progress = seat->tick_seen;
    ret->in_user = fiber->in_lib == 0;
    ret->is_idle = seat->owes_thread || fiber->kind == HF_FIBER_IDLE;
    ret->is_gone = false;
    return (int64_t)*fibers;
}

/* Fills the samples; returns how many. */
static int sample_all(hf_watchdog *watch, int64_t *ret_used)
{
    hf_runtime *rt = watch->rt;
    int count = 0;
    int64_t used = 0;
    for (int i = 0; i < rt->sched_count; i++) {
        hf_watchdog_sample *sample = &watch->samples[count++];
        sample->slot = i;
        used += sample_sched(&watch->seats[i], rt->scheds[i], sample);
    }
    for (int i = 0; i < HF_LOST_MAX; i++) {
        hf_lost *lost = watch->lost[i];
        if (lost != NULL && lost->thread != NULL && !lost->is_over) {
            lost->is_over = atomic_load(&lost->has_ended);
            watch->samples[count++] =
                (hf_watchdog_sample){.slot = lost->slot, .in_user = true, .is_gone = lost->is_over};
        }
    }
    *ret_used = used;
    return count + hf_watchdog_sample_pools(watch, watch->samples + count);
}

/* ---- Actions ----------------------------------------------------------------------------------------------------- */

static hf_lost *lost_of(hf_watchdog *watch, int slot)
{
    hf_assert(slot >= 0 && slot < hf_watchdog_pool_first(&watch->policy));
    return slot < watch->rt->sched_count ? NULL : watch->lost[slot - watch->rt->sched_count];
}

static void log_fiber(hf_watchdog *watch, hf_log_level level, const char *event, int thread, uint64_t id, int64_t ns,
                      const hf_evidence *evidence)
{
    const char *name = watch->seats[thread].stuck_name;
    bool may_have_stack = watch->policy.figures.may_interrupt;
    char stack[HF_WATCHDOG_STACK_LEN] = "";
    if (evidence != NULL && evidence->pc_count > 0) {
        hf_backtrace_format(evidence->pcs, evidence->pc_count, stack, sizeof stack);
    }
    hf_log(watch->rt, level, event, "fiber=%" PRIu64 " name=\"%s\" thread=%d ms=%" PRId64 " stack=\"%s\"%s",
           evidence != NULL ? evidence->id : id, evidence != NULL ? evidence->name : name, thread, ns / 1000000, stack,
           may_have_stack || level != HF_LOG_ERROR || stack[0] != '\0' ? "" : hf_watchdog_no_stack);
}

/* A stuck fiber is logged when its stack has arrived, or did not arrive in time. */
static void report(hf_watchdog *watch, int index)
{
    hf_watch_seat *seat = &watch->seats[index];
    if (!seat->owes_report) {
        return;
    }
    unsigned state = atomic_load_explicit(&seat->ask.state, memory_order_acquire);
    bool has_come = state == HF_INQUIRY_SEEN || state == HF_INQUIRY_GRANTED;
    if (has_come || state == HF_INQUIRY_OUTDATED || state == HF_INQUIRY_FREE || watch->clock_ns >= seat->report_by) {
        seat->owes_report = false;
        log_fiber(watch, HF_LOG_ERROR, "fiber_stuck", index, seat->stuck_id, seat->stuck_for,
                  has_come ? &seat->ask.evidence : NULL);
    }
}

/* About a zombie: one whose thread was replaced, or one that still blocks its scheduler. */
static void log_zombie(hf_watchdog *watch, hf_log_level level, const char *event, const hf_watchdog_action *action)
{
    hf_lost *lost = lost_of(watch, action->slot);
    if (lost != NULL) {
        const hf_evidence *seen =
            action->kind == HF_WATCHDOG_UNCOUNT ? &lost->ask.evidence : hf_watchdog_evidence(&lost->ask);
        log_fiber(watch, level, event, lost->sched->index, 0, action->ns, seen);
        return;
    }
    hf_watch_seat *seat = &watch->seats[action->slot];
    unsigned state = atomic_load_explicit(&seat->ask.state, memory_order_acquire);
    log_fiber(watch, level, event, action->slot, seat->stuck_id, action->ns,
              state == HF_INQUIRY_SEEN ? &seat->ask.evidence : NULL);
}

/* Without a signal the thread itself reports nothing, so the name is read from here. The fiber is stuck, and its
 * memory stays even if it continues. Not instrumented: it may continue at this very moment (fiber-M1). */
__attribute__((no_sanitize("thread"))) static void see_name(hf_watch_seat *seat, const hf_sched *sched)
{
    hf_fiber *fiber = __atomic_load_n(&sched->current, __ATOMIC_ACQUIRE);
    hf_branch *branch = fiber->kind == HF_FIBER_PLAIN || fiber->kind == HF_FIBER_MEMBER
                            ? __atomic_load_n(&fiber->branch, __ATOMIC_ACQUIRE)
                            : NULL;
    const char *name = branch != NULL && branch->name != NULL ? branch->name : "";
    size_t len = strnlen(name, sizeof seat->stuck_name - 1);
    memcpy(seat->stuck_name, name, len);
    seat->stuck_name[len] = '\0';
}

static void begin_report(hf_watchdog *watch, const hf_watchdog_action *action)
{
    hf_watch_seat *seat = &watch->seats[action->slot];
    if (seat->owes_report) { /* of an earlier fiber, whose stack never arrived */
        log_fiber(watch, HF_LOG_ERROR, "fiber_stuck", action->slot, seat->stuck_id, seat->stuck_for, NULL);
    }
    see_name(seat, watch->rt->scheds[action->slot]);
    seat->owes_report = true;
    seat->wants_cancel = false;
    seat->stuck_for = action->ns;
    seat->stuck_id = seat->id_seen;
    seat->report_by = watch->clock_ns + REPORT_WAIT_NS;
    atomic_fetch_add(&watch->stuck, 1);
    hf_watchdog_tell(watch);
}

static void act_on_slot(hf_watchdog *watch, const hf_watchdog_action *action)
{
    if (action->slot >= hf_watchdog_pool_first(&watch->policy)) {
        hf_watchdog_act_on_pool(watch, action);
        return;
    }
    hf_lost *lost = lost_of(watch, action->slot);
    hf_watch_seat *seat = lost == NULL ? &watch->seats[action->slot] : NULL;
    hf_assert(lost == NULL || action->kind > HF_WATCHDOG_CANCEL); /* it was reported and canceled before it was lost */
    switch (action->kind) {
    case HF_WATCHDOG_REPORT:
        begin_report(watch, action);
        break;
    case HF_WATCHDOG_CANCEL:
        seat->wants_cancel = true;
        break;
    case HF_WATCHDOG_REPLACE:
        hf_assert(seat != NULL); /* a thread is replaced once */
        seat->wants_replace = true;
        break;
    case HF_WATCHDOG_INTERRUPT:
        if (lost != NULL) {
            hf_watchdog_ask_again(watch, lost->thread, &lost->ask);
        } else {
            seat->wants_signal = true;
        }
        break;
    case HF_WATCHDOG_COUNT:
        hf_watchdog_set_counted(watch, action->slot, true);
        log_zombie(watch, HF_LOG_ERROR, "zombie", action);
        break;
    case HF_WATCHDOG_GIVE_UP:
        log_zombie(watch, HF_LOG_ERROR, "zombie_gave_up", action);
        break;
    case HF_WATCHDOG_UNCOUNT:
        hf_watchdog_set_counted(watch, action->slot, false);
        log_zombie(watch, HF_LOG_WARN, "zombie_gone", action);
        break;
    case HF_WATCHDOG_SHUTDOWN:
    case HF_WATCHDOG_CANCEL_ALL:
    case HF_WATCHDOG_FATAL:
        break;
    }
}

static void act_on_runtime(hf_watchdog *watch, const hf_watchdog_action *action)
{
    hf_runtime *rt = watch->rt;
    hf_assert(action->slot < 0);
    int count = watch->policy.zombie_count;
    int64_t ms = action->ns / 1000000;
    if (action->kind == HF_WATCHDOG_SHUTDOWN) {
        atomic_store(&rt->is_draining, true);
        hf_log(rt, HF_LOG_ERROR, "shutdown", "step=drain zombies=%d zombies_max=%d", count,
               watch->policy.figures.zombies_max);
        if (!rt->has_fatal_hook && watch->policy.figures.fatal_ns != HF_WATCHDOG_NEVER) {
            hf_log(rt, HF_LOG_ERROR, "no_fatal_hook", "message=%s",
                   "the program will be aborted unless the zombies end: it gave no .fatal hook that would end it");
        }
        hf_watchdog_tell(watch);
    } else if (action->kind == HF_WATCHDOG_CANCEL_ALL) {
        hf_log(rt, HF_LOG_ERROR, "shutdown", "step=cancel zombies=%d ms=%" PRId64, count, ms);
        HF_IGNORE(hf_runtime_stop(rt));
    } else {
        hf_log(rt, HF_LOG_ERROR, "shutdown", "step=fatal zombies=%d ms=%" PRId64, count, ms);
        hf_fatal(rt, REASON_FATAL, 1);
    }
}

static void act(hf_watchdog *watch, int count)
{
    atomic_store(&watch->zombies, (uint64_t)watch->policy.zombie_count);
    for (int i = 0; i < count; i++) {
        if (watch->actions[i].slot >= 0) {
            act_on_slot(watch, &watch->actions[i]);
        }
    }
    for (int i = 0; i < watch->rt->sched_count; i++) { /* one signal is both the interrupt and the question */
        hf_watch_seat *seat = &watch->seats[i];
        if (seat->wants_signal || seat->wants_replace) {
            hf_watchdog_ask(watch, i, seat->wants_replace, seat->wants_signal);
        }
        seat->wants_signal = seat->wants_replace = false;
    }
    for (int i = 0; i < count; i++) {
        if (watch->actions[i].slot < 0) {
            act_on_runtime(watch, &watch->actions[i]);
        }
    }
}

/* ---- Chores ------------------------------------------------------------------------------------------------------ */

static void wake_thief(hf_runtime *rt)
{
    for (int i = 0; i < rt->sched_count; i++) {
        hf_sched *sched = rt->scheds[i];
        if (atomic_load(&sched->sleeping) != 0 && atomic_exchange(&sched->sleeping, 0) != 0) {
            rt->env->ops->poller_ring(rt->env, sched->poller);
            return;
        }
    }
}

/* A single unstarted branch is not stolen at first (fiber-S4). If it has waited for a whole tick, it may be. */
static void offer_waiting_branches(hf_runtime *rt)
{
    for (int i = 0; i < rt->sched_count && rt->sched_count > 1; i++) {
        hf_sched *sched = rt->scheds[i];
        uint64_t taken = __atomic_load_n(&sched->branches.taken, __ATOMIC_RELAXED);
        bool waits = atomic_load_explicit(&sched->branches.count, memory_order_relaxed) != 0;
        if (waits && sched->waited_taken == taken) {
            atomic_store_explicit(&sched->branch_waited, 1, memory_order_relaxed);
            wake_thief(rt);
        }
        sched->waited_taken = waits ? taken : UINT64_MAX;
    }
}

/* If the number of used stacks was steady for a second, those in the depots will not be needed soon. */
static void give_memory_back(hf_watchdog *watch, int64_t now, int64_t used)
{
    int64_t change = used - watch->used_last;
    if (change > USED_STEADY || change < -USED_STEADY) {
        watch->used_last = used;
        watch->used_since = now;
        watch->is_trimmed = false;
    } else if (!watch->is_trimmed && now - watch->used_since >= LINGER_NS) {
        watch->is_trimmed = hf_stack_trim(watch->rt, TRIM_COUNT) < TRIM_COUNT;
    }
}

/* This also runs once more before the monitor sleeps without a deadline, because all schedulers sleep for longer
 * than LINGER_NS first. */
static void look_at_stacks(hf_watchdog *watch, int64_t now)
{
    if (now - watch->stacks_at >= LINGER_NS) {
        watch->stacks_at = now;
        hf_stack_look(watch->rt, &watch->stacks_told);
    }
}

/* ---- The thread -------------------------------------------------------------------------------------------------- */

static void look(hf_watchdog *watch, int64_t now)
{
    hf_runtime *rt = watch->rt;
    int64_t passed = now - watch->last_ns;
    watch->last_ns = now;
    watch->clock_ns += passed < watch->step_max ? passed : watch->step_max;
    hf_assert(watch->step_max > 0 && watch->tick_ns > 0); /* fiber-M2 */
    for (int i = 0; i < rt->sched_count; i++) {
        report(watch, i);
        hf_watchdog_settle(watch, i);
    }
    hf_watchdog_take_posts(watch);
    int64_t used = 0;
    int sample_count = sample_all(watch, &used);
    hf_assert(sample_count <= watch->policy.slot_count);
    act(watch, hf_watchdog_policy_step(&watch->policy, watch->clock_ns, watch->samples, sample_count, watch->actions));
    hf_watchdog_reap(watch, false);
    hf_watchdog_settle_pools(watch);
    if (watch->has_fibers) {
        offer_waiting_branches(rt);
        look_at_stacks(watch, now); /* before memory is given back, because then the touched pages are forgotten */
        give_memory_back(watch, now, used);
    }
}

static bool all_sleep(const hf_runtime *rt)
{
    for (int i = 0; i < rt->sched_count; i++) {
        if (atomic_load(&rt->scheds[i]->sleeping) == 0) {
            return false;
        }
    }
    return true;
}

static bool has_debts(const hf_watchdog *watch)
{
    for (int i = 0; i < watch->rt->sched_count; i++) {
        if (watch->seats[i].owes_report || watch->seats[i].owes_thread) {
            return true;
        }
    }
    return !hf_watchdog_policy_is_calm(&watch->policy);
}

/* Sleeps until the next look, or until the word has changed since the last one. */
static void rest(hf_watchdog *watch, int64_t now, uint32_t seen)
{
    hf_runtime *rt = watch->rt;
    hf_assert(watch->has_fibers && !atomic_load(&watch->is_asleep)); /* fiber-M3 */
    bool is_quiet = all_sleep(rt) && !has_debts(watch);
    if (!is_quiet) {
        watch->quiet_ns = 0;
    } else if (watch->quiet_ns == 0) {
        watch->quiet_ns = now;
        watch->used_since = now; /* memory that became free between two looks is given back, too */
        watch->is_trimmed = false;
    }
    hf_instant until = {now + watch->tick_ns};
    if (is_quiet && now - watch->quiet_ns >= LINGER_NS && watch->is_trimmed) {
        atomic_store(&watch->is_asleep, true);
        until = all_sleep(rt) ? HF_INSTANT_NEVER : until;
    }
    if (!atomic_load(&watch->is_stopping)) {
        (void)rt->env->ops->word_wait(rt->env, &watch->word, seen, until);
    }
    atomic_store(&watch->is_asleep, false);
}

/* The same if only pools are watched: branches ring when they are canceled and when they end, so only deadlines are
 * left. */
static void rest_for_pools(hf_watchdog *watch, int64_t now, uint32_t seen)
{
    hf_env *env = watch->rt->env;
    int64_t next = hf_watchdog_policy_next(&watch->policy);
    int64_t left = next - watch->clock_ns > 0 ? next - watch->clock_ns : watch->tick_ns;
    left = left < watch->step_max ? left : watch->step_max;
    left = hf_watchdog_owes_pools(watch) && left > watch->tick_ns ? watch->tick_ns : left;
    bool is_calm = next == HF_WATCHDOG_NEVER && !hf_watchdog_owes_pools(watch);
    if (!atomic_load(&watch->is_stopping)) {
        (void)env->ops->word_wait(env, &watch->word, seen, is_calm ? HF_INSTANT_NEVER : (hf_instant){now + left});
    }
}

static void monitor_main(void *arg)
{
    hf_watchdog *watch = arg;
    hf_thread_fiber me = {.fiber = {.kind = HF_FIBER_THREAD}}; /* simulated threads share thread-local variables */
    hf_self_set(&me.fiber.self);
    watch->last_ns = hf_rt_now(watch->rt).ns;
    watch->used_since = watch->stacks_at = watch->last_ns;
    while (!atomic_load(&watch->is_stopping)) {
        uint32_t seen = atomic_load(&watch->word); /* read before the look: later events cause another one */
        int64_t now = hf_rt_now(watch->rt).ns;
        look(watch, now);
        if (watch->has_fibers) {
            rest(watch, now, seen);
        } else {
            rest_for_pools(watch, now, seen);
        }
    }
    hf_self_drop_chain(&me.fiber);
    hf_self_set(NULL);
}

void hf_watchdog_ring(hf_watchdog *watch)
{
    hf_env *env = watch->rt->env;
    atomic_fetch_add(&watch->word, 1);
    env->ops->word_wake(env, &watch->word, 1);
}

void hf_watchdog_busy(hf_sched *sched)
{
    hf_watchdog *watch = sched->rt->watch;
    if (watch != NULL && HF_UNLIKELY(atomic_load(&watch->is_asleep)) && atomic_exchange(&watch->is_asleep, false)) {
        hf_watchdog_ring(watch);
    }
}

/* ---- Making and ending ------------------------------------------------------------------------------------------- */

static size_t watch_len(const hf_runtime *rt)
{
    return sizeof(hf_watchdog) + (size_t)rt->sched_count * sizeof(hf_watch_seat);
}

hf_status hf_watchdog_open(hf_runtime *rt, hf_op *op)
{
    hf_watchdog *watch = hf_rt_alloc(rt, watch_len(rt));
    if (watch == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the watchdog");
    }
    hf_assert(rt->watch == NULL);
    rt->watch = watch;
    watch->rt = rt;
    hf_list_init(&watch->listeners);
    hf_list_init(&watch->fresh);
    bool is_simulated = rt->env->ops->point != NULL;
    watch->has_fibers = !rt->hosted && !is_simulated;
    hf_watchdog_figures figures = hf_watchdog_figures_of(&rt->watchdog);
    int64_t quarter = figures.stuck_ns != HF_WATCHDOG_NEVER ? figures.stuck_ns / 4 : STEP_NS;
    watch->step_max = quarter > TICK_NS_MIN ? quarter : TICK_NS_MIN;
    watch->tick_ns = watch->step_max < TICK_NS ? watch->step_max : TICK_NS;
    if (is_simulated) { /* its clock moves only while no thread can run: fiber-M2 does not apply */
        watch->step_max = HF_WATCHDOG_NEVER;
    }
    if (!watch->has_fibers) {
        figures.stuck_ns = HF_WATCHDOG_NEVER;
    }
    for (int i = 0; i < rt->sched_count; i++) {
        rt->scheds[i]->waited_taken = UINT64_MAX;
    }
    watch->policy.figures = figures; /* the rest is set with its tables */
    return hf_watchdog_signal_open(watch, op);
}

hf_status hf_watchdog_run(hf_watchdog *watch, hf_op *op)
{
    hf_env *env = watch->rt->env;
    hf_assert(watch->thread == NULL && atomic_load(&watch->state) != HF_WATCHDOG_NEW);
    HF_TRY(hf_watchdog_tables(watch, op, 0));
    return env->ops->thread_start(env, op, "hf-monitor", MONITOR_STACK_LEN, monitor_main, watch, &watch->thread);
}

hf_status hf_watchdog_start(hf_runtime *rt, hf_op *op)
{
    if (!rt->watch->has_fibers) {
        return HF_OK;
    }
    atomic_store(&rt->watch->state, HF_WATCHDOG_RUNNING);
    return hf_watchdog_run(rt->watch, op);
}

void hf_watchdog_close(hf_runtime *rt)
{
    hf_watchdog *watch = rt->watch;
    if (watch == NULL) {
        return;
    }
    atomic_store(&watch->is_stopping, true);
    if (watch->thread != NULL) {
        hf_watchdog_ring(watch);
        rt->env->ops->thread_join(rt->env, watch->thread);
        watch->thread = NULL;
    }
    for (int i = 0; i < rt->sched_count; i++) { /* questions are withdrawn, because the spares are freed soon */
        (void)hf_watchdog_evidence(&watch->seats[i].ask);
    }
}

void hf_watchdog_deinit(hf_runtime *rt)
{
    hf_watchdog *watch = rt->watch;
    if (watch == NULL) {
        return;
    }
    hf_assert(watch->thread == NULL);
    hf_assert(hf_list_is_empty(&watch->listeners) && hf_list_is_empty(&watch->fresh));
    hf_watchdog_reap(watch, true);
    hf_watchdog_tables_free(watch);
    hf_watchdog_signal_close(watch);
    rt->watch = NULL;
    hf_rt_free(rt, watch, watch_len(rt));
}
