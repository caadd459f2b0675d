/* The scheduler: one per fiber thread. It chooses in this order:
 *
 *   fiber-S1  Ready fibers run first in, first out. The thread does not sleep while a fiber is ready.
 *   fiber-S2  On every 16th turn, and when no fiber is ready, an unstarted branch starts, in the order of runq.h
 *             (depth first, siblings in order). A fiber that has just finished a branch takes it on its own warm
 *             stack, without a switch; the branch keeps that stack only if it parks.
 *   fiber-S3  The inbox is emptied on every turn. Alarms and descriptors are checked on every 32nd turn, and when
 *             the thread is idle.
 * Fibers switch directly to each other. The thread's own stack (`idle`) runs only when nothing is ready: loop.c. */
#include "fiber/core.h"
#include "fiber/crew/crew_private.h"
#include "fiber/crew/strand.h"
#include "fiber/enter.h"
#include "fiber/io/fd.h"
#include "fiber/sched/leave.h"
#include "fiber/sched/runq.h"
#include "fiber/sched/stack.h"
#include "fiber/sched/wait.h"
#include "fiber/verbs.h"

enum { CLOCK_TURN = 1024 }; /* turns after which the clock is read even if no alarm is armed */

/* ---- Inbox ------------------------------------------------------------------------------------------------------- */

static hf_sched *here(void)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    return self == NULL ? NULL : self->sched;
}

void hf_sched_ring(hf_sched *sched, hf_sched *by)
{
    if (HF_CANARY(HF_BUG_LOST_WAKE)) {
        return;
    }
    if (atomic_load(&sched->sleeping) != 0 && atomic_exchange(&sched->sleeping, 0) != 0) {
        if (by != NULL && !by->has_point) { /* only hints: if they come too late, the guess is wrong and nothing else */
            atomic_store_explicit(&sched->called_late, by->late_ns, memory_order_relaxed);
            atomic_store_explicit(&sched->called_ns, hf_rt_now(by->rt).ns, memory_order_relaxed);
            hf_linger_woke(&by->linger);
        }
        sched->env->ops->poller_ring(sched->env, sched->poller);
    }
}

/* Whether the caller is on a foreign thread, and not on one that is joined before the runtime is freed. */
static bool is_outside(const hf_runtime *rt)
{
    const hf_fiber *self = (const hf_fiber *)(const void *)hf_self_get();
    if (self == NULL || self->rt != rt) {
        return true;
    }
    return self->sched == NULL && HF_CONTAINER_CONST(self, hf_thread_fiber, fiber)->home != rt;
}

/* As soon as the message is in the inbox its receiver may run and end, and the runtime may be freed. A thread of the
 * runtime is joined before that. A thread from outside is a guest of the runtime until it has rung the poller; it
 * becomes one while the receiver still waits. */
static inline void post(hf_sched *sched, hf_msg *msg, bool may_switch)
{
    hf_assert(msg->run != NULL);
    hf_runtime *rt = sched->rt;
    hf_env *env = sched->env;
    uint64_t index = (uint64_t)sched->index;
    bool has_point = may_switch && sched->has_point;
    bool is_guest = is_outside(rt) && !HF_CANARY(HF_BUG_POSTER_NOT_COUNTED);
    if (is_guest) {
        hf_guest_enter(&rt->guests);
    }
    hf_msg *head = atomic_load_explicit(&sched->inbox, memory_order_relaxed);
    do {
        msg->next = head;
    } while (!atomic_compare_exchange_weak(&sched->inbox, &head, msg));
    if (HF_UNLIKELY(has_point)) {
        env->ops->point(env, HF_POINT_POST, index);
    }
    hf_sched_ring(sched, is_guest ? NULL : here());
    if (is_guest) {
        hf_guest_leave(env, &rt->guests);
    }
    if (HF_UNLIKELY(has_point)) {
        hf_point_let_go(env);
    }
}

void hf_sched_post_locked(hf_sched *sched, hf_msg *msg)
{
    post(sched, msg, false);
}

void hf_sched_post(hf_sched *sched, hf_msg *msg)
{
    post(sched, msg, true);
}

void hf_sched_drain(hf_sched *sched)
{
    hf_msg *list = atomic_exchange_explicit(&sched->inbox, NULL, memory_order_acquire);
    hf_msg *ordered = NULL;
    while (list != NULL) { /* newest first: turn it round */
        hf_msg *next = list->next;
        list->next = ordered;
        ordered = list;
        list = next;
    }
    while (ordered != NULL) {
        hf_msg *next = ordered->next;
        ordered->run(sched, ordered);
        ordered = next;
    }
}

/* ---- Ready fibers ------------------------------------------------------------------------------------------------ */

static inline void push_ready(hf_sched *home, hf_fiber *fiber)
{
    if (HF_UNLIKELY(fiber->kind == HF_FIBER_MEMBER)) {
        hf_crew_ready(fiber);
    } else {
        hf_sched_ready_push(home, fiber);
    }
}

static void on_wake_msg(hf_sched *sched, hf_msg *msg)
{
    hf_fiber *fiber = HF_CONTAINER(msg, hf_fiber, msg);
    hf_assert(fiber->sched == sched); /* fiber-F2 */
    fiber->wait = NULL;               /* it was claimed long ago: the object may be gone */
    push_ready(sched, fiber);
}

void hf_fiber_ready(hf_fiber *fiber)
{
    hf_sched *home = fiber->sched;
    hf_sched *at = here();
    if (at == home) {
        fiber->wait = NULL;
        push_ready(home, fiber);
        return;
    }
    if (at != NULL) {
        HF_BUMP(at->counters.wakes_remote);
        at->called = at->rt == home->rt ? home : at->called;
    }
    hf_assert(home != NULL); /* fiber-F2: threads are woken by their word */
    fiber->msg.run = on_wake_msg;
    hf_sched_post(home, &fiber->msg);
}

/* ---- Unstarted branches ------------------------------------------------------------------------------------------ */

/* Wakes one sleeping scheduler to come and steal. */
static void call_thief(hf_runtime *rt, const hf_sched *except)
{
    for (int i = 0; i < rt->sched_count; i++) {
        hf_sched *other = rt->scheds[i];
        if (other != except && atomic_load_explicit(&other->sleeping, memory_order_relaxed) != 0 &&
            atomic_exchange(&other->sleeping, 0) != 0) {
            other->env->ops->poller_ring(other->env, other->poller);
            return;
        }
    }
}

void hf_sched_push_branch(hf_sched *sched, hf_branch *branch)
{
    hf_runq_push(sched, branch);
    hf_runtime *rt = sched->rt;
    if (sched->multi && hf_runq_count(sched) >= 2 && atomic_load_explicit(&rt->idlers, memory_order_relaxed) > 0 &&
        atomic_load_explicit(&rt->searchers, memory_order_relaxed) == 0) {
        call_thief(rt, sched);
    }
}

/* ---- Running branches -------------------------------------------------------------------------------------------- */

static inline void bind_branch(hf_sched *sched, hf_fiber *fiber, hf_branch *branch)
{
    __atomic_store_n(&fiber->branch, branch, __ATOMIC_RELEASE); /* the monitor may look */
    fiber->cx = &branch->cx;
    /* At rest a fiber has no scope, no wait, no hook and no locals of its own: finish_branch saw to it. */
    __atomic_store_n(&fiber->in_lib, 1, __ATOMIC_RELAXED); /* read by a thread that stops the world */
    fiber->last_status = HF_OK;
    fiber->last_where = NULL;
    fiber->locals = branch->scope->locals;
    fiber->id = branch->index;
    branch->fiber = fiber;
    __atomic_store_n(&branch->state, HF_BRANCH_RUNNING, __ATOMIC_RELAXED); /* a cancel at home looks at it */
    if (branch->scope->home == sched) {
        atomic_store_explicit(&branch->at, sched, memory_order_relaxed);
    } else {
        atomic_store(&branch->at, sched); /* against a cancel at home: one of us sees the other */
    }
    if (HF_UNLIKELY(atomic_load(&branch->cancel_requested) && !HF_CANARY(HF_BUG_CANCEL_BEFORE_START))) {
        hf_branch_start_cx(branch);
    }
}

/* The body has returned: closes the scopes that it left open, and tells its own scope. */
static void finish_branch(hf_fiber *self, hf_status status)
{
    hf_branch *branch = self->branch;
    if (HF_UNLIKELY(self->scope != NULL)) {
        (void)hf_scope_close_leftovers(self);
        hf_assert(self->scope == NULL && self->cx == &branch->cx); /* fiber-C1 */
        if (status == HF_OK) {
            status = hf_refuse_at(self, HF_ERR_MISUSE, branch->name != NULL ? branch->name : "fiber",
                                  "the body of a fiber returned with a scope still open; close every scope it opens "
                                  "(HF_AUTO(hf_scope_close) does)");
        }
    }
    branch->status = status;
    if (HF_UNLIKELY(status != HF_OK)) {
        hf_assert(self->hook_depth == 0 && self->wait == NULL);
        bool is_canceled =
            status == HF_ERR_CANCELED && atomic_load_explicit(&branch->cx.canceled, memory_order_relaxed);
        branch->failure = is_canceled ? NULL : hf_self_take_failure(self, self->rt, status, branch->name);
    }
    if (HF_UNLIKELY(self->own_locals != NULL)) {
        hf_locals_drop(self, NULL);
    }
    hf_sched *sched = self->sched;
    self->branch = NULL;
    self->cx = NULL;
    branch->fiber = NULL;
    hf_branch_ended(sched, branch);
    if (HF_UNLIKELY(self->failure != NULL)) { /* of the body, or of a hook of the join */
        hf_box_unref(self->failure);
        self->failure = NULL;
    }
}

static void run_branch(hf_fiber *self)
{
    hf_branch *branch = self->branch;
    if (HF_UNLIKELY(branch->drop != NULL && hf_is_canceled(self) && !HF_CANARY(HF_BUG_DROP_FORGOTTEN))) {
        void (*drop)(void *) = branch->drop;
        hf_leave(self);
        drop(branch->arg);
        self = hf_enter(NULL);
        hf_assert(self != NULL);
        finish_branch(self, HF_ERR_CANCELED);
        return;
    }
    hf_leave(self);
    hf_status status = (hf_status)hf_call_guarded((int (*)(void *))(void (*)(void))branch->body, branch->arg);
    hf_fiber *still = hf_enter(NULL);
    if (HF_UNLIKELY(still == NULL)) {
        hf_panic("the body of a fiber returned in a process that fork() made: end the child with _exit or exec",
                 __FILE__, __LINE__);
    }
    hf_assert(still == self);
    finish_branch(self, status);
}

static bool pick(hf_sched *sched, hf_fiber **ret_fiber, hf_branch **ret_branch);

/* The function at the bottom of every stack: runs branches until something else is due. Then it gives the stack back
 * and rests, until it is resumed with another branch. */
static void runner_main(void *arg)
{
    hf_fiber *self = arg;
    hf_context_arrived(NULL, self->sched->left != NULL ? &self->sched->left->context : NULL);
    for (;;) {
        run_branch(self);
        hf_sched *sched = self->sched;
        hf_branch *branch = NULL;
        bool is_member = self->kind == HF_FIBER_MEMBER;
        hf_fiber *next = HF_UNLIKELY(is_member) ? hf_crew_dismiss(self) : hf_sched_pick_ready(sched);
        if (next == NULL && pick(sched, &next, &branch) && branch != NULL) {
            if (HF_LIKELY(branch->stack_class == self->stack_class)) {
                bind_branch(sched, self, branch);
                continue;
            }
            hf_sched_push_branch(sched, branch); /* needs another stack: the idle context starts it */
        }
        if (next == NULL) {
            next = &sched->idle;
        }
        hf_assert(self->branch == NULL && self->kind == HF_FIBER_PLAIN);
        HF_DROP(sched->counters.fibers);
        hf_stack_put(sched, self);
        hf_sched_switch(sched, self, next, false); /* resumed here by start_branch, bound to its next branch */
    }
}

void hf_branch_drop(hf_sched *sched, hf_branch *branch)
{
    if (branch->drop != NULL) {
        hf_assert(branch->fiber == NULL); /* its body has not begun */
        hf_fiber *self = sched->current;
        self->hook_depth += HF_HOOK_AWAY;
        branch->drop(branch->arg);
        self->hook_depth -= HF_HOOK_AWAY;
    }
}

/* A branch that cannot have a stack ends without having run. */
static void fail_start(hf_sched *sched, hf_branch *branch, hf_status why)
{
    static const char LIMIT[] = "no stack for the fiber: the limit of stacks is reached (fibers_max, or guards by "
                                "mprotect up to half of vm.max_map_count; raise it, or set .guards = HF_OFF)";
    static const char MEMORY[] = "no stack for the fiber: the system gives no more memory";
    hf_assert(why == HF_ERR_LIMIT || why == HF_ERR_NOMEM);
    __atomic_store_n(&branch->state, HF_BRANCH_RUNNING, __ATOMIC_RELAXED);
    branch->status = why;
    atomic_store(&branch->at, sched);
    branch->failure = hf_box_new(sched->rt, why, NULL, branch->name, why == HF_ERR_LIMIT ? LIMIT : MEMORY, NULL);
    hf_branch_drop(sched, branch);
    hf_branch_ended(sched, branch);
}

/* NULL: there is none, and the branch has ended. */
static HF_NOINLINE hf_fiber *find_stack(hf_sched *sched, hf_branch *branch)
{
    hf_status why = HF_OK;
    hf_fiber *fiber = hf_stack_get_slow(sched, branch->stack_class, &why);
    if (fiber == NULL) {
        fail_start(sched, branch, why);
    }
    return fiber;
}

static hf_fiber *start_branch(hf_sched *sched, hf_branch *branch)
{
    hf_fiber *fiber = hf_stack_get(sched, branch->stack_class);
    if (HF_UNLIKELY(fiber == NULL) && (fiber = find_stack(sched, branch)) == NULL) {
        return NULL;
    }
    hf_assert(fiber->sched == sched && fiber->kind == HF_FIBER_PLAIN);               /* fiber-F2 */
    hf_assert(fiber->branch == NULL && fiber->scope == NULL && fiber->wait == NULL); /* at rest */
    HF_BUMP(sched->counters.fibers);
    if (HF_UNLIKELY(!fiber->is_made)) {
        hf_context_make(&fiber->context, fiber->stack_lo, fiber->stack_hi, runner_main, fiber);
        fiber->is_made = true;
    }
    bind_branch(sched, fiber, branch);
    return fiber;
}

hf_fiber *hf_sched_start_branch(hf_sched *sched, hf_branch *branch)
{
    return start_branch(sched, branch);
}

/* ---- Choosing and switching -------------------------------------------------------------------------------------- */

static HF_NOINLINE void look_around(hf_sched *sched)
{
    if (sched->alarms.count > 0 || sched->tick % CLOCK_TURN == 0) { /* ages in dumps need a clock that moves */
        hf_instant now = sched->env->ops->now(sched->env);
        sched->coarse_ns = now.ns;
        (void)hf_alarms_run(sched, now);
    }
    if (__atomic_load_n(&sched->fd_count, __ATOMIC_RELAXED) > 0) { /* others add to it */
        hf_fd_poll(sched, (hf_instant){0});
    }
}

/* The next thing to run: a ready fiber or an unstarted branch. False: nothing. */
static inline bool pick(hf_sched *sched, hf_fiber **ret_fiber, hf_branch **ret_branch)
{
    hf_point_at(sched, HF_POINT_SWITCH, (uint64_t)sched->index);
    if (HF_UNLIKELY(sched->rt->hosted)) {
        if (sched->budget == 0) {
            return false; /* the rest waits for the next turn */
        }
        sched->budget--;
    }
    unsigned tick = ++sched->tick;
    if (HF_UNLIKELY(atomic_load_explicit(&sched->inbox, memory_order_relaxed) != NULL)) {
        hf_sched_drain(sched);
    }
    if (HF_UNLIKELY(tick % HF_LOOK_TURN == 0)) {
        look_around(sched);
    }
    hf_fiber *fiber = sched->ready_head;
    if (fiber == NULL || HF_UNLIKELY(tick % HF_BRANCH_TURN == 0)) {
        hf_branch *branch = hf_runq_pop(sched);
        if (branch != NULL) {
            *ret_branch = branch;
            return true;
        }
        if (fiber == NULL) {
            return false;
        }
    }
    sched->ready_head = fiber->next;
    if (fiber->next == NULL) {
        sched->ready_tail = NULL;
    }
    *ret_fiber = fiber;
    return true;
}

HF_NOINLINE hf_fiber *hf_sched_next(hf_sched *sched)
{
    for (;;) {
        hf_fiber *fiber = NULL;
        hf_branch *branch = NULL;
        if (!pick(sched, &fiber, &branch)) {
            return NULL;
        }
        if (fiber != NULL || (fiber = start_branch(sched, branch)) != NULL) {
            return fiber;
        }
    }
}

void hf_sched_leave(hf_sched *sched, hf_fiber *self)
{
    if (HF_UNLIKELY(self->kind == HF_FIBER_MEMBER)) {
        hf_crew_leave(self);
    } else {
        hf_sched_leave_inline(sched, self);
    }
}

void hf_yield_in(hf_fiber *self)
{
    if (self->kind != HF_FIBER_THREAD) {
        push_ready(self->sched, self);
        hf_sched_leave(self->sched, self);
        return;
    }
    hf_assert(self->rt != NULL);
    hf_env *env = self->rt->env;
    hf_word never = 0;
    (void)env->ops->word_wait(env, &never, 0, (hf_instant){env->ops->now(env).ns + 10000});
}

hf_status hf_yield(void)
{
    HF_VERB_ENTER(self, hf_yield, NULL);
    if (HF_UNLIKELY(hf_is_canceled(self) || self->is_evicted)) {
        hf_status status = hf_not_evicted(self, "hf_yield");
        if (status == HF_OK) {
            status = HF_ERR_CANCELED;
            hf_self_note(self, status, "hf_yield");
        }
        HF_LEAVE(self, status);
    }
    if (HF_LIKELY(self->kind == HF_FIBER_PLAIN && self->hook_depth == 0)) {
        hf_sched_ready_push(self->sched, self);
        hf_sched_leave_inline(self->sched, self);
    } else if (self->kind == HF_FIBER_MEMBER && self->hook_depth == 0) {
        hf_yield_in(self);
        HF_LEAVE(self, self->is_evicted ? HF_ERR_EVICTED : HF_OK);
    }
    HF_LEAVE(self, HF_OK);
}
