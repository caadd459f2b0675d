/* How a thread loses its scheduler, and how its fiber comes back.
 *
 *     monitor                    the stuck thread                          the new thread
 *     ask, signal  ------------> handler: in user code?
 *                                  takes its stack,
 *                                  keeps the idle context as `away`,
 *     granted <----------------    marks the fiber lost; goes on in user code
 *     takes the scheduler,       ...
 *     cancels the job,           ...
 *     starts a thread  --------------------------------------------------> runs the scheduler's other fibers
 *                                the fiber calls the library: hf_enter_slow, hf_watch_carry
 *                                switches to `away`, its own stack
 *                                posts the fiber, ends ------------------> the fiber goes on in hf_watch_carry
 *
 * L1  Nobody but the thread itself gives its scheduler up, and only while its fiber's in_lib is 0: then nothing of the
 *     library is half done, and everything the scheduler owns can be taken over as it is.
 * L2  From the grant on the old thread reads nothing of the scheduler but its inbox. The fiber still belongs to it.
 * L3  The fiber is posted from the thread's own stack: whoever resumes it must find its stack left.
 * L4  The job of a lost fiber cannot end before the new thread ran, so a message about it that was posted before that
 *     thread was started finds it alive. */
#include "fiber/backtrace.h"
#include "fiber/watch_private.h"

/* ---- On the stuck thread ------------------------------------------------------------------------------------------- */

static void take_evidence(hf_evidence *evidence, const hf_fiber *self)
{
    const char *name = self->job != NULL && self->job->name != NULL ? self->job->name : "";
    size_t len = 0;
    while (len < HF_WATCH_NAME_LEN - 1 && name[len] != '\0') {
        evidence->name[len] = name[len];
        len++;
    }
    evidence->name[len] = '\0';
    evidence->id = self->id;
    evidence->pc_count = hf_backtrace_here(evidence->pcs, HF_BACKTRACE_DEPTH_MAX);
}

static void give_up_scheduler(hf_fiber *self, hf_lost *lost)
{
    lost->away.self = self->self;
    lost->away.context = self->sched->idle.context; /* suspended: where this thread left its own stack */
    lost->fiber = self;
    self->zombie_idle = &lost->away;
    self->lost = 1;
}

/* The signal handler. It may interrupt anything, on any thread of the process. */
static void on_signal(void)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    if (self == NULL || self->kind != HF_FIBER_PLAIN || self->rt->watch == NULL) {
        return;
    }
    bool is_lost = self->lost != 0;
    hf_ask *ask = is_lost ? &HF_CONTAINER(self->zombie_idle, hf_lost, away)->ask
                          : &self->rt->watch->seats[self->sched->index].ask;
    unsigned expected = HF_ASK_SENT;
    if (!atomic_compare_exchange_strong(&ask->state, &expected, HF_ASK_TAKEN)) {
        return;
    }
    if (!is_lost && (ask->fiber != self || ask->tick != self->sched->tick)) {
        atomic_store(&ask->state, HF_ASK_OUTDATED);
        return;
    }
    take_evidence(&ask->evidence, self);
    if (is_lost || ask->lost == NULL || self->in_lib != 0) {
        atomic_store(&ask->state, HF_ASK_SEEN);
        return;
    }
    give_up_scheduler(self, ask->lost);
    atomic_store(&ask->state, HF_ASK_GRANTED);
}

void hf_watch_carry(hf_fiber *self)
{
    hf_fiber *away = self->zombie_idle;
    hf_self_set(&away->self);
    hf_context_switch(&self->context, &away->context, false);
    hf_sched *sched = self->sched;
    hf_context_arrived(&self->context, sched->left != NULL ? &sched->left->context : NULL);
}

static void on_carried(hf_sched *sched, hf_msg *msg)
{
    (void)sched;
    hf_fiber *fiber = HF_CONTAINER(msg, hf_fiber, msg);
    fiber->lost = 0;
    fiber->zombie_idle = NULL;
    hf_fiber_ready(fiber);
}

void hf_watch_left(hf_fiber *away)
{
    hf_lost *lost = HF_CONTAINER(away, hf_lost, away);
    hf_fiber *fiber = lost->fiber;
    hf_context_arrived(&away->context, &fiber->context);
    hf_self_set(NULL);
    fiber->msg.run = on_carried;
    hf_sched_post(lost->sched, &fiber->msg); /* the fiber may run, and end, from here on */
    atomic_store(&lost->has_ended, true);
}

/* ---- Asking -------------------------------------------------------------------------------------------------------- */

hf_status hf_watch_signal_open(hf_watch *watch, hf_op *op)
{
    hf_env *env = watch->rt->env;
    int number = watch->rt->watchdog.signal;
    if (number == 0) {
        return HF_OK;
    }
    HF_TRY(env->ops->interrupt_open(env, op, number, on_signal));
    watch->signal = number;
    void *pcs[4];
    (void)hf_backtrace_here(pcs, 4); /* whatever the unwinder does once, it does now and not in the handler */
    return HF_OK;
}

void hf_watch_signal_close(hf_watch *watch)
{
    if (watch->signal != 0) {
        watch->rt->env->ops->interrupt_close(watch->rt->env, watch->signal);
        watch->signal = 0;
    }
}

static int free_lost_slot(const hf_watch *watch)
{
    for (int i = 0; i < HF_LOST_MAX; i++) {
        if (watch->lost[i] == NULL) {
            return i;
        }
    }
    return -1;
}

static void send(hf_watch *watch, hf_thread *thread, hf_ask *ask)
{
    hf_env *env = watch->rt->env;
    hf_op op;
    hf_op_init(&op);
    ask->evidence.pc_count = 0;
    atomic_store(&ask->state, HF_ASK_SENT);
    if (env->ops->thread_signal(env, &op, thread, watch->signal) != HF_OK) {
        unsigned expected = HF_ASK_SENT;
        (void)atomic_compare_exchange_strong(&ask->state, &expected, HF_ASK_OUTDATED);
    }
}

void hf_watch_ask(hf_watch *watch, int index, bool may_replace)
{
    hf_runtime *rt = watch->rt;
    hf_seat *seat = &watch->seats[index];
    if (hf_ask_is_open(&seat->ask) || seat->owes_thread) {
        return;
    }
    if (may_replace && seat->spare == NULL && free_lost_slot(watch) >= 0) {
        seat->spare = hf_rt_alloc(rt, sizeof *seat->spare);
        if (seat->spare != NULL) {
            seat->spare->away.kind = HF_FIBER_IDLE;
            seat->spare->away.rt = rt;
            seat->spare->away.in_lib = 1;
            seat->spare->sched = rt->scheds[index];
        }
    }
    seat->ask.fiber = seat->seen;
    seat->ask.tick = seat->tick_seen;
    seat->ask.lost = may_replace && free_lost_slot(watch) >= 0 ? seat->spare : NULL;
    send(watch, rt->scheds[index]->thread, &seat->ask);
}

void hf_watch_ask_lost(hf_watch *watch, hf_lost *lost)
{
    if (!hf_ask_is_open(&lost->ask)) {
        send(watch, lost->thread, &lost->ask);
    }
}

/* ---- Replacing ----------------------------------------------------------------------------------------------------- */

static void on_cancel(hf_sched *home, hf_msg *msg)
{
    hf_lost *lost = HF_CONTAINER(msg, hf_lost, cancel);
    hf_job_mark(home, lost->job, HF_CAUSE_STUCK, "watchdog", NULL);
    atomic_store(&lost->canceling, false);
}

static void cancel_job(hf_lost *lost)
{
    lost->job = lost->fiber->job;
    lost->cancel.run = on_cancel;
    atomic_store(&lost->canceling, true);
    hf_sched_post(lost->job->scope->home, &lost->cancel);
}

/* The scheduler as one whose thread has not begun yet. False: the world is being stopped, try again. */
static bool take_scheduler(hf_runtime *rt, hf_sched *sched)
{
    if (atomic_exchange(&rt->world_stops, 1) != 0) {
        return false;
    }
    sched->idle.in_lib = 0;
    __atomic_store_n(&sched->current, &sched->idle, __ATOMIC_RELEASE);
    atomic_store(&rt->world_stops, 0);
    return true;
}

static void replace(hf_watch *watch, int index)
{
    hf_seat *seat = &watch->seats[index];
    hf_sched *sched = watch->rt->scheds[index];
    int slot = free_lost_slot(watch);
    hf_assert(slot >= 0); /* one was free when we asked, and only we use them up: see hf_watch_settle */
    if (!take_scheduler(watch->rt, sched)) {
        return;
    }
    hf_lost *lost = seat->spare;
    seat->spare = NULL;
    lost->thread = sched->thread;
    lost->ask.evidence = seat->ask.evidence;
    sched->thread = NULL;
    watch->lost[slot] = lost;
    hf_watch_policy_replaced(&watch->policy, index, watch->rt->sched_count + slot);
    if (seat->wants_cancel) {
        seat->wants_cancel = false;
        cancel_job(lost);
    }
    seat->owes_thread = true;
    atomic_store(&seat->ask.state, HF_ASK_FREE);
}

static void start_thread(hf_watch *watch, int index)
{
    hf_seat *seat = &watch->seats[index];
    hf_op op;
    hf_op_init(&op);
    if (hf_sched_thread_start(&op, watch->rt->scheds[index]) == HF_OK) {
        seat->owes_thread = false;
        hf_log(watch->rt, HF_LOG_WARN, "thread_replaced", "thread=%d fiber=%" PRIu64 " name=\"%s\"", index,
               seat->ask.evidence.id, seat->ask.evidence.name);
    } else if (!seat->has_failed) {
        seat->has_failed = true; /* tried at every look, said once */
        hf_log(watch->rt, HF_LOG_ERROR, "thread_not_replaced", "thread=%d why=\"%s\"", index, op.message);
    }
}

void hf_watch_settle(hf_watch *watch, int index)
{
    hf_seat *seat = &watch->seats[index];
    if (atomic_load_explicit(&seat->ask.state, memory_order_acquire) == HF_ASK_GRANTED) {
        replace(watch, index);
    }
    if (seat->owes_thread) {
        start_thread(watch, index);
    }
}

void hf_watch_reap(hf_watch *watch, bool all)
{
    hf_env *env = watch->rt->env;
    for (int i = 0; i < HF_LOST_MAX; i++) {
        hf_lost *lost = watch->lost[i];
        if (lost == NULL || (!all && (!atomic_load(&lost->has_ended) || atomic_load(&lost->canceling)))) {
            continue;
        }
        env->ops->thread_join(env, lost->thread);
        hf_assert(!atomic_load(&lost->canceling)); /* L4 */
        watch->lost[i] = NULL;
        hf_rt_free(watch->rt, lost, sizeof *lost);
    }
}
