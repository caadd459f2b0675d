/* How a thread loses its scheduler, and how its fiber comes back.
 *
 *     monitor                    the stuck thread                          the new thread
 *     ask, signal  ------------> handler: in user code?
 *                                  takes its stack,
 *                                  keeps the idle context as `away`,
 *     granted <----------------    marks the fiber lost; goes on in user code
 *     takes the scheduler,       ...
 *     cancels the branch,           ...
 *     starts a thread  --------------------------------------------------> runs the scheduler's other fibers
 *                                the fiber calls the library: hf_enter_slow, hf_watchdog_carry
 *                                switches to `away`, its own stack
 *                                posts the fiber, ends ------------------> the fiber goes on in hf_watchdog_carry
 *
 * fiber-L1  Only the thread itself gives its scheduler up, and only while its fiber's in_lib is 0: then nothing of
 *           the library is half done, and everything that the scheduler owns can be taken over as it is.
 * fiber-L2  After the grant the old thread reads nothing of the scheduler but its inbox. The fiber still belongs to
 *           the scheduler.
 * fiber-L3  The fiber is posted from the thread's own stack, because whoever resumes the fiber must find its stack
 *           left. From there until the new thread takes it in, the fiber counts as in user code (in_lib is 0). It
 *           may be the scheduler's current fiber while the scheduler has no thread; a thread that stops the world
 *           would otherwise wait for the fiber, and the monitor for that thread.
 * fiber-L4  The branch of a lost fiber cannot end before the new thread runs. So a message about it that was posted
 *           before that thread was started finds the branch alive.
 * fiber-L5  A lost member of a crew is not canceled: its driver, which waits for the end of a turn, is resumed
 *           without it and evicts the crew. Members run in turns again once it is back (crew.c, fiber-W4). */
#include "fiber/crew/crew_private.h"
#include "fiber/watch/backtrace.h"
#include "fiber/watch/watch_private.h"

#include <inttypes.h>

/* ---- On the stuck thread ----------------------------------------------------------------------------------------- */

static void take_evidence(hf_evidence *evidence, const hf_fiber *self)
{
    const char *name = self->branch != NULL && self->branch->name != NULL ? self->branch->name : "";
    size_t len = 0;
    while (len < HF_WATCHDOG_NAME_LEN - 1 && name[len] != '\0') {
        evidence->name[len] = name[len];
        len++;
    }
    evidence->name[len] = '\0';
    evidence->id = self->id;
    evidence->pc_count = hf_backtrace_here(evidence->pcs, HF_BACKTRACE_DEPTH_MAX);
}

static void give_up_scheduler(hf_fiber *self, hf_lost *lost)
{
    hf_assert(self->in_lib == 0 && self->lost == 0 && lost->thread == NULL); /* fiber-L1, fiber-M1 */
    lost->away.self = self->self;
    lost->away.context = self->sched->idle.context; /* suspended: where this thread left its own stack */
    lost->fiber = self;
    self->zombie_idle = &lost->away;
    __atomic_store_n(&self->lost, 1, __ATOMIC_RELEASE); /* a dump may be looking */
}

/* On a pool thread: only its stack is wanted. */
static void on_pool_thread(hf_fiber *self)
{
    hf_watchdog_notes *notes = atomic_load(&hf_pool_thread_watched(self)->notes);
    unsigned expected = HF_INQUIRY_SENT;
    if (notes != NULL && atomic_compare_exchange_strong(&notes->ask.state, &expected, HF_INQUIRY_TAKEN)) {
        take_evidence(&notes->ask.evidence, self);
        atomic_store(&notes->ask.state, HF_INQUIRY_SEEN);
    }
}

/* The signal handler. It may interrupt anything, on any thread of the process. */
static void on_signal(void)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    if (self != NULL && self->kind == HF_FIBER_THREAD && HF_CONTAINER(self, hf_thread_fiber, fiber)->home != NULL) {
        on_pool_thread(self);
        return;
    }
    if (self == NULL || (self->kind != HF_FIBER_PLAIN && self->kind != HF_FIBER_MEMBER) || self->rt->watch == NULL) {
        return;
    }
    bool is_lost = self->lost != 0;
    hf_inquiry *ask = is_lost ? &HF_CONTAINER(self->zombie_idle, hf_lost, away)->ask
                              : &self->rt->watch->seats[self->sched->index].ask;
    unsigned expected = HF_INQUIRY_SENT;
    if (!atomic_compare_exchange_strong(&ask->state, &expected, HF_INQUIRY_TAKEN)) {
        return;
    }
    if (!is_lost && (ask->fiber != self || ask->tick != self->sched->tick)) {
        atomic_store(&ask->state, HF_INQUIRY_OUTDATED);
        return;
    }
    take_evidence(&ask->evidence, self);
    if (is_lost || ask->lost == NULL || self->in_lib != 0) {
        atomic_store(&ask->state, HF_INQUIRY_SEEN);
        return;
    }
    give_up_scheduler(self, ask->lost);
    atomic_store(&ask->state, HF_INQUIRY_GRANTED);
}

void hf_watchdog_carry(hf_fiber *self)
{
    hf_fiber *away = self->zombie_idle;
    hf_assert(self->lost != 0 && away != NULL); /* fiber-L2 */
    hf_self_set(&away->self);
    hf_exceptions_swap(hf_exceptions_here(), &self->exceptions,
                       &away->exceptions); /* the scheduler has another thread's */
    hf_context_switch(&self->context, &away->context, false);
    hf_sched *sched = self->sched;
    hf_context_arrived(&self->context, sched->left != NULL ? &sched->left->context : NULL);
}

static void on_carried(hf_sched *sched, hf_msg *msg)
{
    hf_fiber *fiber = HF_CONTAINER(msg, hf_fiber, msg);
    hf_assert(fiber->sched == sched && fiber->lost != 0);  /* fiber-F2, fiber-L2 */
    hf_assert(fiber->in_lib == 0);                         /* fiber-L3 */
    __atomic_store_n(&fiber->in_lib, 1, __ATOMIC_RELEASE); /* where it left: in hf_enter_slow */
    __atomic_store_n(&fiber->lost, 0, __ATOMIC_RELEASE);
    fiber->zombie_idle = NULL;
    if (fiber->kind == HF_FIBER_MEMBER) {
        hf_crew_returned(fiber);
    } else {
        hf_fiber_ready(fiber);
    }
}

void hf_watchdog_left(hf_fiber *away)
{
    hf_lost *lost = HF_CONTAINER(away, hf_lost, away);
    hf_fiber *fiber = lost->fiber;
    hf_assert(fiber != NULL && fiber->sched == lost->sched); /* fiber-L2 */
    hf_context_arrived(&away->context, &fiber->context);
    hf_self_set(NULL);
    fiber->msg.run = on_carried;
    __atomic_store_n(&fiber->in_lib, 0, __ATOMIC_RELEASE); /* fiber-L3 */
    hf_sched_post(lost->sched, &fiber->msg);               /* the fiber may run, and end, from here on */
    atomic_store(&lost->has_ended, true);
}

/* ---- Asking ------------------------------------------------------------------------------------------------------ */

hf_status hf_watchdog_signal_open(hf_watchdog *watch, hf_op *op)
{
    hf_env *env = watch->rt->env;
    int number = watch->rt->watchdog.signal;
    if (number == 0) {
        return HF_OK;
    }
    HF_TRY(env->ops->interrupt_open(env, op, number, on_signal));
    watch->signal = number;
    void *pcs[4];
    (void)hf_backtrace_here(pcs, 4); /* one-time work of the unwinder is done now, and not in the handler */
    return HF_OK;
}

void hf_watchdog_signal_close(hf_watchdog *watch)
{
    if (watch->signal != 0) {
        watch->rt->env->ops->interrupt_close(watch->rt->env, watch->signal);
        watch->signal = 0;
    }
}

/* Makes the object for the next replacement, before the signal is sent. NULL: there is no room or no memory for it. */
static hf_lost *spare_of(hf_watchdog *watch, int index)
{
    hf_watch_seat *seat = &watch->seats[index];
    for (int i = 0; i < HF_LOST_MAX && seat->spare == NULL; i++) {
        if (watch->lost[i] != NULL) {
            continue;
        }
        hf_lost *lost = hf_rt_alloc(watch->rt, sizeof *lost);
        if (lost == NULL) {
            break;
        }
        lost->away.kind = HF_FIBER_IDLE;
        lost->away.rt = watch->rt;
        lost->away.in_lib = 1;
        lost->sched = watch->rt->scheds[index];
        lost->slot = watch->rt->sched_count + i;
        watch->lost[i] = lost;
        seat->spare = lost;
    }
    return seat->spare;
}

static void drop(hf_watchdog *watch, hf_lost *lost)
{
    hf_assert(watch->lost[lost->slot - watch->rt->sched_count] == lost);
    watch->lost[lost->slot - watch->rt->sched_count] = NULL;
    hf_rt_free(watch->rt, lost, sizeof *lost);
}

static void send(hf_watchdog *watch, hf_thread *thread, hf_inquiry *ask)
{
    hf_assert(watch->signal != 0 && thread != NULL);
    hf_env *env = watch->rt->env;
    hf_op op;
    hf_op_init(&op);
    atomic_store(&ask->state, HF_INQUIRY_SENT);
    if (env->ops->thread_signal(env, &op, thread, watch->signal) != HF_OK) {
        unsigned expected = HF_INQUIRY_SENT;
        (void)atomic_compare_exchange_strong(&ask->state, &expected, HF_INQUIRY_OUTDATED);
    }
}

/* True: a new question may be written. An open question about another turn is withdrawn; one about this turn stays. */
static bool begin_ask(hf_watchdog *watch, int index, bool again)
{
    hf_watch_seat *seat = &watch->seats[index];
    hf_env *env = watch->rt->env;
    unsigned state = atomic_load_explicit(&seat->ask.state, memory_order_acquire);
    if (state == HF_INQUIRY_SENT && (seat->ask.fiber != seat->seen || seat->ask.tick != seat->tick_seen)) {
        return atomic_compare_exchange_strong(&seat->ask.state, &state, HF_INQUIRY_FREE);
    }
    if (state == HF_INQUIRY_SENT && again) { /* the thread blocks the signal, or was slow */
        (void)env->ops->thread_signal(env, NULL, watch->rt->scheds[index]->thread, watch->signal);
    }
    return state != HF_INQUIRY_SENT && state != HF_INQUIRY_TAKEN && state != HF_INQUIRY_GRANTED;
}

void hf_watchdog_ask(hf_watchdog *watch, int index, bool may_replace, bool again)
{
    hf_watch_seat *seat = &watch->seats[index];
    if (seat->owes_thread || !begin_ask(watch, index, again)) {
        return;
    }
    seat->ask.fiber = seat->seen;
    seat->ask.tick = seat->tick_seen;
    seat->ask.lost = may_replace ? spare_of(watch, index) : NULL;
    seat->ask.evidence.pc_count = 0;
    send(watch, watch->rt->scheds[index]->thread, &seat->ask);
}

void hf_watchdog_ask_again(hf_watchdog *watch, hf_thread *thread, hf_inquiry *ask)
{
    (void)hf_watchdog_evidence(ask); /* withdraws an older question */
    if (atomic_load_explicit(&ask->state, memory_order_acquire) != HF_INQUIRY_TAKEN) {
        send(watch, thread, ask);
    }
}

const hf_evidence *hf_watchdog_evidence(hf_inquiry *ask)
{
    unsigned state = HF_INQUIRY_SENT;
    if (!atomic_compare_exchange_strong(&ask->state, &state, HF_INQUIRY_FREE) && state == HF_INQUIRY_TAKEN) {
        return NULL;
    }
    return &ask->evidence;
}

/* ---- Replacing --------------------------------------------------------------------------------------------------- */

static void on_cancel(hf_sched *home, hf_msg *msg)
{
    hf_lost *lost = HF_CONTAINER(msg, hf_lost, cancel);
    hf_branch_mark(home, lost->branch, HF_CAUSE_STUCK, "watchdog", NULL);
    atomic_store(&lost->canceling, false);
}

static void on_member_lost(hf_sched *sched, hf_msg *msg)
{
    (void)sched;
    hf_lost *lost = HF_CONTAINER(msg, hf_lost, cancel);
    hf_crew_lost(lost->fiber);
    atomic_store(&lost->canceling, false);
}

/* fiber-L5 */
static void tell_driver(hf_lost *lost)
{
    hf_assert(lost->fiber->kind == HF_FIBER_MEMBER && !atomic_load(&lost->canceling)); /* fiber-L5 */
    lost->cancel.run = on_member_lost;
    atomic_store(&lost->canceling, true);
    hf_sched_post(lost->sched, &lost->cancel);
}

static void cancel_branch(hf_lost *lost)
{
    hf_assert(lost->fiber->branch != NULL && !atomic_load(&lost->canceling)); /* fiber-L4 */
    lost->branch = lost->fiber->branch;
    lost->cancel.run = on_cancel;
    atomic_store(&lost->canceling, true);
    hf_sched_post(lost->branch->scope->home, &lost->cancel);
}

/* Puts the scheduler into the state before its thread has begun. False: the world is being stopped, try again. */
static bool take_scheduler(hf_runtime *rt, hf_sched *sched)
{
    if (atomic_exchange(&rt->world_stops, 1) != 0) {
        return false;
    }
    hf_assert(sched->current != &sched->idle && sched->current->lost != 0); /* fiber-L1 */
    sched->idle.in_lib = 0;
    __atomic_store_n(&sched->current, &sched->idle, __ATOMIC_RELEASE);
    atomic_store(&rt->world_stops, 0);
    return true;
}

static void replace(hf_watchdog *watch, int index)
{
    hf_watch_seat *seat = &watch->seats[index];
    hf_sched *sched = watch->rt->scheds[index];
    if (!take_scheduler(watch->rt, sched)) {
        return;
    }
    hf_lost *lost = seat->spare;
    hf_assert(lost != NULL && lost == seat->ask.lost && lost->fiber == seat->ask.fiber); /* fiber-L1 */
    seat->spare = NULL;
    lost->thread = sched->thread;
    if (watch->rt->pin_threads) { /* the new thread takes its core */
        sched->env->ops->thread_unpin(sched->env, lost->thread);
    }
    lost->ask.evidence = seat->ask.evidence;
    sched->thread = NULL;
    hf_watchdog_policy_replaced(&watch->policy, index, lost->slot);
    hf_spin_lock(&watch->posts_lock);
    watch->counted[lost->slot] = watch->counted[index];
    watch->counted[index] = NULL;
    hf_spin_unlock(&watch->posts_lock);
    if (lost->fiber->kind == HF_FIBER_MEMBER) {
        tell_driver(lost);
    } else if (seat->wants_cancel) {
        cancel_branch(lost);
    }
    seat->wants_cancel = false;
    seat->owes_thread = true;
    seat->has_failed = false;
    atomic_store(&seat->ask.state, HF_INQUIRY_FREE);
}

static void start_thread(hf_watchdog *watch, int index)
{
    hf_watch_seat *seat = &watch->seats[index];
    hf_assert(seat->owes_thread);
    hf_op op;
    hf_op_init(&op);
    if (hf_sched_thread_start(&op, watch->rt->scheds[index]) == HF_OK) {
        seat->owes_thread = false;
        hf_log(watch->rt, HF_LOG_WARN, "thread_replaced", "thread=%d fiber=%" PRIu64 " name=\"%s\"", index,
               seat->ask.evidence.id, seat->ask.evidence.name);
    } else if (!seat->has_failed) {
        seat->has_failed = true; /* tried at every look, logged once */
        hf_log(watch->rt, HF_LOG_ERROR, "thread_not_replaced", "thread=%d why=\"%s\"", index, op.message);
    }
}

void hf_watchdog_settle(hf_watchdog *watch, int index)
{
    hf_watch_seat *seat = &watch->seats[index];
    unsigned state = atomic_load_explicit(&seat->ask.state, memory_order_acquire);
    if (state == HF_INQUIRY_GRANTED) {
        replace(watch, index);
    } else if (state == HF_INQUIRY_OUTDATED && seat->spare != NULL) {
        drop(watch, seat->spare);
        seat->spare = NULL;
    }
    if (seat->owes_thread) {
        start_thread(watch, index);
    }
}

void hf_watchdog_reap(hf_watchdog *watch, bool all)
{
    hf_env *env = watch->rt->env;
    for (int i = 0; i < HF_LOST_MAX; i++) {
        hf_lost *lost = watch->lost[i];
        if (lost == NULL || (!all && (!lost->is_over || atomic_load(&lost->canceling)))) {
            continue;
        }
        env->ops->thread_join(env, lost->thread);  /* NULL for a spare */
        hf_assert(!atomic_load(&lost->canceling)); /* fiber-L4 */
        drop(watch, lost);
    }
}
