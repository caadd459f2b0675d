/* Scopes: open, fork, join, close. Everything that touches a scope's list, counters or policy runs on its home's thread
 * (F1 in core.h): directly when the caller is there, else as a message, for which the caller waits only when it needs
 * the answer.
 *
 *   open --fork*--> running > 0 --last child ends--> idle --close--> gone
 *                      |  policy says stop, deadline, hf_scope_cancel, outer cancel
 *                      v
 *                   canceled: children are woken and end; join clears a cancel of the scope's own
 *
 * J1  a child counts as running from hf_fork (at home) until its end was processed at home;
 * J2  the joiner is woken by the end of the last child and by nothing else;
 * J3  a message about a scope is counted in `pending` before it is posted: close waits for it. */
#include "fiber/dispatch.h"
#include "fiber/job.h"
#include "fiber/metrics.h"
#include "fiber/wait.h"

#include <stdio.h>
#include <string.h>

/* ---- Being at home ----------------------------------------------------------------------------------------------- */

static bool is_home(const hf_fiber *self, const hf_scope *scope)
{
    return self->sched == scope->home;
}

static const hf_wait_kind CALL = {"call", NULL};

typedef struct home_call {
    hf_msg msg;
    hf_wait wait;
    hf_scope *scope;
    /* Runs at home. True: done, the caller goes on; false: it will be woken through `wait` later. */
    bool (*fn)(hf_sched *sched, hf_scope *scope, struct home_call *call);
    hf_job *job;
    hf_status status;
} home_call;

static void on_home_call(hf_sched *sched, hf_msg *msg)
{
    home_call *call = HF_CONTAINER(msg, home_call, msg);
    hf_scope *scope = call->scope;
    if (call->fn(sched, scope, call)) {
        hf_wake(&call->wait, HF_OK);
    }
}

/* Runs fn on the scope's home and waits for it. Cannot be canceled: it is short, or it is a join. */
static void call_home(hf_fiber *self, hf_scope *scope, home_call *call, const hf_wait_kind *kind)
{
    call->scope = scope;
    call->msg.run = on_home_call;
    hf_wait_init(&call->wait, self, kind, scope, scope->name);
    if (is_home(self, scope)) {
        if (!call->fn(self->sched, scope, call)) {
            (void)hf_park(self, &call->wait, HF_INSTANT_NEVER);
        }
        return;
    }
    hf_sched_post(scope->home, &call->msg);
    (void)hf_park(self, &call->wait, HF_INSTANT_NEVER);
}

/* ---- Open -------------------------------------------------------------------------------------------------------- */

static void on_deadline(hf_sched *sched, hf_alarm *alarm)
{
    hf_scope *scope = HF_CONTAINER(alarm, hf_scope, alarm);
    if (!atomic_load_explicit(&scope->cx.canceled, memory_order_relaxed)) {
        scope->deadline_passed = true;
        scope->deadline_fired = scope->tally.running > 0;
    }
    hf_scope_mark(sched, scope, HF_CAUSE_DEADLINE, scope->name, NULL, false);
}

static bool arm_at_home(hf_sched *sched, hf_scope *scope, home_call *call)
{
    scope->alarm.fire = on_deadline;
    call->status = HF_OK;
    if (scope->timeout_ns < 0) {
        on_deadline(sched, &scope->alarm); /* passed already */
    } else {
        call->status = hf_alarm_arm(sched, &scope->alarm, scope->deadline);
    }
    return true;
}

static hf_instant outer_deadline(const hf_fiber *self)
{
    if (self->scope != NULL) {
        return self->scope->deadline;
    }
    return self->job != NULL ? self->job->scope->deadline : HF_INSTANT_NEVER;
}

static hf_cx *outer_cx(hf_fiber *self, hf_runtime *rt)
{
    return self->cx != NULL ? self->cx : &rt->root_cx;
}

static void init_scope(hf_scope *scope, hf_fiber *self, hf_runtime *rt, const hf_scope_options *options, bool is_shield)
{
    atomic_store_explicit(&scope->cx.canceled, false, memory_order_relaxed);
    scope->cx.inherited = false;
    scope->cx.cause = HF_CAUSE_NONE;
    scope->cx.reason = "";
    scope->cx.failure = NULL;
    scope->rt = rt;
    scope->owner = self;
    scope->is_shield = is_shield;
    scope->by_thread = false;
    scope->closing = false;
    scope->own_deadline = false;
    scope->deadline_fired = false;
    scope->deadline_passed = false;
    scope->ended_cause = HF_CAUSE_NONE;
    scope->ended_reason = "";
    scope->joiner = NULL;
    scope->first = NULL;
    scope->failures = NULL;
    scope->failure_count = 0;
    scope->alarm.pos = 0;
    scope->roots.next = NULL;
    atomic_store_explicit(&scope->cancel_posted, false, memory_order_relaxed);
    atomic_store_explicit(&scope->cancel_inherited, false, memory_order_relaxed);
    atomic_store_explicit(&scope->cancel_inherited, false, memory_order_relaxed);
    atomic_store_explicit(&scope->pending, 0, memory_order_relaxed);
    scope->name = options->name != NULL ? options->name : (is_shield ? hf_unnamed_shield : hf_unnamed_scope);
    scope->policy = options->join;
    if (scope->policy.hooks == NULL) {
        scope->policy.hooks = &hf_join_all_hooks;
    }
    scope->tally = (hf_tally){.n = scope->policy.n, .state = scope->policy.state};
    scope->jobs_max = options->jobs_max > 0 ? options->jobs_max : INT64_MAX;
    scope->on = options->on;
    scope->locals = self->locals;
    hf_list_init(&scope->children);
    hf_list_init(&scope->kept);
    scope->deadline = is_shield || HF_CANARY(HF_BUG_DEADLINE_NOT_MIN) ? HF_INSTANT_NEVER : outer_deadline(self);
    scope->timeout_ns = options->timeout.ns;
    if (options->timeout.ns != 0) {
        hf_instant own = hf_rt_deadline(rt, options->timeout);
        if (own.ns < scope->deadline.ns) {
            scope->deadline = own;
            scope->own_deadline = true;
        }
    }
    if (self->sched != NULL) {
        scope->home = self->sched;
        HF_BUMP(self->sched->counters.scopes_opened);
        scope->id = ((uint64_t)self->sched->index << 48) | self->sched->counters.scopes_opened;
        scope->opened_ns = options->name != NULL ? hf_rt_now(rt).ns : self->sched->coarse_ns;
    } else {
        unsigned turn = atomic_fetch_add_explicit(&rt->round_robin, 1, memory_order_relaxed);
        scope->home = rt->scheds[turn % (unsigned)rt->sched_count];
        scope->by_thread = true;
        scope->id = (UINT64_C(0xffff) << 48) | atomic_fetch_add_explicit(&rt->ids, 1, memory_order_relaxed);
        scope->opened_ns = hf_rt_now(rt).ns;
    }
}

static void link_scope(hf_fiber *self, hf_scope *scope)
{
    hf_spin_lock(&self->lock);
    scope->outer = self->scope;
    scope->parent_cx = outer_cx(self, scope->rt);
    if (!scope->is_shield) {
        hf_cx_inherit(&scope->cx, scope->parent_cx);
    }
    self->scope = scope;
    self->cx = &scope->cx;
    hf_spin_unlock(&self->lock);
}

static void unlink_scope(hf_fiber *self, hf_scope *scope)
{
    hf_assert(self->scope == scope);
    hf_spin_lock(&self->lock);
    self->scope = scope->outer;
    self->cx = scope->outer != NULL ? &scope->outer->cx : (self->job != NULL ? &self->job->cx : NULL);
    hf_spin_unlock(&self->lock);
}

/* Who stops the runtime marks it before it walks the list: a scope that comes too late for the walk sees the mark. */
static void add_root(hf_runtime *rt, hf_scope *scope)
{
    hf_spin_lock(&rt->roots_lock);
    hf_list_push_back(&rt->roots, &scope->roots);
    bool is_stopped = hf_scope_is_outermost(scope) && atomic_load(&rt->root_cx.canceled);
    hf_spin_unlock(&rt->roots_lock);
    if (is_stopped) {
        hf_scope_cancel_post(scope, HF_CAUSE_SHUTDOWN, rt->root_cx.reason, true);
    }
}

hf_status hf_scope_open_on(hf_fiber *self, hf_runtime *rt, hf_scope **ret_scope, const hf_scope_options *options,
                           bool is_shield)
{
    hf_scope *scope = hf_scope_alloc(rt, self->sched);
    if (scope == NULL) {
        return hf_refuse_at(self, HF_ERR_NOMEM, "hf_scope_open", "no memory for a scope");
    }
    init_scope(scope, self, rt, options, is_shield);
    if (self->sched != NULL) { /* a fiber's lock is never contended: only threads are interrupted under it */
        scope->outer = self->scope;
        scope->parent_cx = self->cx;
        if (!is_shield) {
            hf_cx_inherit(&scope->cx, scope->parent_cx);
        }
        self->scope = scope;
        self->cx = &scope->cx;
    } else {
        link_scope(self, scope);
        add_root(rt, scope);
    }
    if (scope->own_deadline) {
        home_call call;
        call.fn = arm_at_home;
        call_home(self, scope, &call, &CALL);
        if (call.status != HF_OK) {
            (void)hf_scope_close_on(self, scope);
            return hf_refuse_at(self, HF_ERR_NOMEM, "hf_scope_open", "no memory for the deadline of a scope");
        }
    }
    *ret_scope = scope;
    return HF_OK;
}

/* What runs when the runtime stops may open scopes until it has ended, above all for its cleanup: a job, on a fiber or a
 * pool thread, and a plain thread inside a shield. */
static bool is_part_of_job(const hf_fiber *self)
{
    bool is_shielded = false;
    for (const hf_scope *at = self->scope; at != NULL && !is_shielded; at = at->outer) {
        is_shielded = at->is_shield;
    }
    return self->sched != NULL || self->job != NULL || is_shielded;
}

hf_status hf_scope_open_with(hf_scope **ret_scope, const hf_scope_options *options)
{
    static const hf_scope_options DEFAULTS = {.size = sizeof DEFAULTS};
    options = options != NULL ? options : &DEFAULTS;
    hf_fiber *self = hf_enter(options->runtime);
    if (self == NULL) {
        return hf_forked();
    }
    if (ret_scope == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_scope_open needs a place for the scope"));
    }
    if (self->hook_depth != 0) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "a hook of a join cannot open a scope"));
    }
    if (options->jobs_max < 0 && options->jobs_max != HF_UNLIMITED) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_INVALID, "hf_scope_open",
                                    "jobs_max is a number of children or HF_UNLIMITED, not %lld",
                                    (long long)options->jobs_max));
    }
    hf_op op;
    hf_op_init(&op);
    hf_runtime *rt = hf_rt_choose(&op, options->runtime);
    if (rt == NULL) {
        HF_LEAVE(self, hf_op_end(self, &op));
    }
    if ((atomic_load(&rt->root_cx.canceled) || atomic_load(&rt->is_draining)) && !is_part_of_job(self)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_CLOSED, "the runtime is stopping and takes no new scopes"));
    }
    HF_LEAVE(self, hf_scope_open_on(self, rt, ret_scope, options, false));
}

/* ---- Fork -------------------------------------------------------------------------------------------------------- */

/* Runs a hook of the policy, on the home's thread; a hook must not wait. */
#define IN_HOOK(sched, expression)                     \
    do {                                               \
        hf_fiber *in_hook_ = (sched)->current;         \
        in_hook_->hook_depth += HF_HOOK_AWAY;          \
        expression;                                    \
        in_hook_->hook_depth -= HF_HOOK_AWAY;          \
        if (HF_UNLIKELY((sched)->hook_kept.is_kept)) { \
            hf_hook_restore(in_hook_);                 \
        }                                              \
    } while (0)

static inline hf_status may_add(hf_sched *sched, hf_scope *scope)
{
    if (scope->tally.running >= (uint64_t)scope->jobs_max) {
        return HF_ERR_LIMIT;
    }
    hf_status status = HF_OK;
    if (HF_UNLIKELY(scope->policy.hooks->on_fork != NULL)) {
        IN_HOOK(sched, status = scope->policy.hooks->on_fork(&scope->tally));
    }
    return status;
}

static void start_child(hf_sched *sched, hf_job *job)
{
    if (HF_LIKELY(job->on == NULL)) {
        hf_sched_push_job(sched, job);
    } else {
        hf_dispatch_job(sched, job);
    }
}

void hf_delay_end(hf_sched *sched, hf_job *job)
{
    hf_alarm_disarm(sched, &job->alarm);
    job->state = HF_JOB_NEW;
    start_child(sched, job);
}

static void on_delay(hf_sched *sched, hf_alarm *alarm)
{
    hf_delay_end(sched, HF_CONTAINER(alarm, hf_job, alarm));
}

static void start_delayed(hf_sched *sched, hf_job *job, hf_span delay)
{
    job->state = HF_JOB_DELAYED;
    job->alarm.pos = 0;
    job->alarm.fire = on_delay;
    if (atomic_load_explicit(&job->cancel_requested, memory_order_relaxed) ||
        hf_alarm_arm(sched, &job->alarm, hf_rt_deadline(sched->rt, delay)) != HF_OK) {
        hf_delay_end(sched, job); /* starting early beats losing it */
    }
}

/* At home: the child is counted and put on its way. */
static void add_child(hf_sched *sched, hf_scope *scope, hf_job *job)
{
    hf_span delay = {job->delay_ns};
    job->index = scope->tally.forked;
    HF_BUMP(scope->tally.forked);
    if (!HF_CANARY(HF_BUG_CHILD_NOT_COUNTED) || job->drop == NULL) {
        HF_BUMP(scope->tally.running);
    }
    job->born_ns = sched->coarse_ns;
    hf_list_push_back(&scope->children, &job->siblings);
    HF_BUMP(sched->counters.forks);
    if (HF_UNLIKELY(atomic_load_explicit(&scope->cx.canceled, memory_order_relaxed))) {
        job->cx.cause = scope->cx.cause;
        job->cx.reason = scope->cx.reason;
        scope->deadline_fired |= scope->deadline_passed;
        atomic_store_explicit(&job->cancel_requested, true, memory_order_relaxed);
    }
    if (HF_UNLIKELY(job->is_delayed)) {
        start_delayed(sched, job, delay);
        return;
    }
    start_child(sched, job);
}

static void on_fork_msg(hf_sched *sched, hf_msg *msg)
{
    hf_job *job = HF_CONTAINER(msg, hf_job, msg);
    hf_scope *scope = job->scope;
    add_child(sched, scope, job);
    atomic_fetch_sub(&scope->pending, HF_CANARY(HF_BUG_FORK_NOT_PENDING) ? 0 : 1);
}

static bool fork_at_home(hf_sched *sched, hf_scope *scope, home_call *call)
{
    call->status = may_add(sched, scope);
    if (call->status == HF_OK) {
        add_child(sched, scope, call->job);
    }
    return true;
}

static hf_status submit(hf_fiber *self, hf_scope *scope, hf_job *job)
{
    if (HF_LIKELY(is_home(self, scope))) {
        hf_status status = may_add(self->sched, scope);
        if (HF_LIKELY(status == HF_OK)) {
            add_child(self->sched, scope, job);
        }
        return status;
    }
    if (scope->policy.hooks->on_fork != NULL || scope->jobs_max != INT64_MAX) { /* the answer matters */
        if (self->hook_depth != 0) {
            return HF_ERR_MISUSE; /* it would have to wait for it */
        }
        home_call call;
        call.fn = fork_at_home;
        call.job = job;
        call_home(self, scope, &call, &CALL);
        return call.status;
    }
    atomic_fetch_add(&scope->pending, HF_CANARY(HF_BUG_FORK_NOT_PENDING) ? 0 : 1);
    job->msg.run = on_fork_msg;
    hf_sched_post(scope->home, &job->msg);
    return HF_OK;
}

/* `job`: only compared. NULL: it was not even made. */
static hf_status fork_failed(hf_fiber *self, hf_scope *scope, const hf_job *job, hf_status status)
{
    if (status == HF_ERR_NOMEM) {
        return hf_refuse_at(self, status, "hf_fork", "no memory for a child of scope '%s'", scope->name);
    }
    if (status == HF_ERR_LIMIT) {
        return hf_refuse_at(self, status, "hf_fork", "scope '%s' has its %lld children running already", scope->name,
                            (long long)scope->jobs_max);
    }
    if (status == HF_ERR_MISUSE && job == NULL) {
        return hf_refuse_at(self, status, "hf_fork", "a serial dispatcher takes jobs of its own runtime only");
    }
    if (status == HF_ERR_MISUSE && self->hook_depth != 0) {
        return hf_refuse_at(self, status, "hf_fork",
                            "a hook must not wait, and scope '%s' of another thread must be asked first", scope->name);
    }
    return hf_refuse_at(self, status, "hf_fork", "the join '%s' of scope '%s' refused the child",
                        scope->policy.hooks->name, scope->name);
}

/* The child may run before submit returns, and look for its own handle. */
static inline hf_status submit_with_handle(hf_fiber *self, hf_scope *scope, hf_job *job, hf_job **ret_job)
{
    if (HF_LIKELY(ret_job == NULL)) {
        return submit(self, scope, job);
    }
    hf_job *before = *ret_job;
    *ret_job = job;
    hf_status status = submit(self, scope, job);
    if (status != HF_OK) {
        *ret_job = before;
    }
    return status;
}

static hf_status make_job(hf_fiber *self, hf_scope *scope, hf_body body, void *arg, const hf_fork_options *options,
                          hf_job **ret_job)
{
    hf_runtime *rt = scope->rt;
    hf_sched *sched = self->rt == rt ? self->sched : NULL;
    hf_job *job = hf_job_new(rt, sched);
    if (job == NULL) {
        return HF_ERR_NOMEM;
    }
    job->scope = scope;
    job->body = body;
    job->arg = arg;
    job->stack_class = scope->home->stack_class;
    job->on = scope->on;
    job->index = 0;
    job->drop = NULL;
    job->name = NULL;
    job->keep = false;
    job->is_delayed = false;
    if (HF_LIKELY(options != NULL)) {
        job->drop = options->drop;
        job->name = options->name;
        job->keep = options->ret_job != NULL;
        if (HF_UNLIKELY(options->on != NULL)) {
            job->on = options->on;
        }
        if (HF_UNLIKELY(options->stack_size != 0)) {
            job->stack_class = hf_stack_class_of(options->stack_size);
        }
        if (HF_UNLIKELY(options->delay.ns > 0)) {
            job->is_delayed = true;
            job->delay_ns = options->delay.ns;
        }
    }
    if (HF_UNLIKELY(job->on != NULL) && hf_dispatch_hold(job) != HF_OK) {
        hf_job_free(rt, sched, job);
        return HF_ERR_MISUSE;
    }
    *ret_job = job;
    return HF_OK;
}

hf_status hf_fork_with(hf_scope *scope, hf_body body, void *arg, const hf_fork_options *options)
{
    hf_fiber *self = hf_enter(scope != NULL ? scope->rt : NULL);
    if (HF_UNLIKELY(self == NULL)) {
        return hf_forked();
    }
    hf_status status = HF_OK;
    hf_job *job = NULL;
    if (HF_UNLIKELY(scope == NULL || body == NULL)) {
        status = hf_refuse(self, HF_ERR_MISUSE, "hf_fork needs an open scope and a body");
    } else if (HF_UNLIKELY(scope->is_shield)) {
        status = hf_refuse(self, HF_ERR_MISUSE, "a shield has no children: open a scope inside it");
    } else if (HF_UNLIKELY(options != NULL && options->stack_size > 256 * 1024)) {
        status = hf_refuse_at(self, HF_ERR_INVALID, "hf_fork", "a stack has up to 256 K, not %zu bytes",
                              options->stack_size);
    } else {
        status = make_job(self, scope, body, arg, options, &job);
        if (HF_LIKELY(status == HF_OK)) {
            status = submit_with_handle(self, scope, job, options != NULL ? options->ret_job : NULL);
        }
        if (HF_UNLIKELY(status != HF_OK)) {
            if (job != NULL) {
                if (job->on != NULL) {
                    hf_dispatch_let_go(scope->rt, job);
                }
                hf_job_free(scope->rt, self->rt == scope->rt ? self->sched : NULL, job);
            }
            (void)fork_failed(self, scope, job, status);
        }
    }
    hf_leave(self);
    if (HF_UNLIKELY(status != HF_OK && options != NULL && options->drop != NULL)) {
        options->drop(arg);
    }
    return status;
}

/* ---- The end of a child ------------------------------------------------------------------------------------------ */

static void keep_failure(hf_scope *scope, hf_job *job)
{
    hf_runtime *rt = scope->rt;
    if (scope->policy.hooks->discard) {
        hf_log(rt, HF_LOG_WARN, "fiber_failed", "scope=%s fiber=%s status=%s message=%s", scope->name,
               job->name != NULL ? job->name : "", hf_status_name(job->status), job->failure->failure.message);
        return;
    }
    if (scope->first == NULL || HF_CANARY(HF_BUG_FIRST_FAILURE)) {
        hf_box_unref(scope->first);
        scope->first = hf_box_ref(job->failure);
    }
    if (scope->failures == NULL) {
        scope->failures = hf_rt_alloc(rt, HF_SCOPE_FAILURES_MAX * sizeof(hf_failure_box *));
    }
    if (scope->failures != NULL && scope->failure_count < HF_SCOPE_FAILURES_MAX) {
        scope->failures[scope->failure_count++] = hf_box_ref(job->failure);
    }
}

/* Counts the child and asks the policy. */
static void judge(hf_sched *sched, hf_scope *scope, hf_job *job)
{
    hf_tally *tally = &scope->tally;
    bool failed = false;
    if (HF_LIKELY(job->status == HF_OK)) {
        HF_BUMP(tally->ok);
    } else if (job->status == HF_ERR_CANCELED && job->failure == NULL) {
        HF_BUMP(tally->canceled);
    } else {
        HF_BUMP(tally->failed);
        failed = true;
        keep_failure(scope, job);
    }
    if (scope->policy.hooks->on_done == NULL) {
        return;
    }
    hf_outcome outcome = {job->index, job->name, job->arg, job->status,
                          job->failure != NULL ? &job->failure->failure : NULL};
    hf_verdict verdict = HF_GO_ON;
    IN_HOOK(sched, verdict = scope->policy.hooks->on_done(tally, &outcome));
    if (HF_UNLIKELY(verdict == HF_STOP) && !atomic_load_explicit(&scope->cx.canceled, memory_order_relaxed)) {
        hf_scope_mark(sched, scope, failed ? HF_CAUSE_SIBLING : HF_CAUSE_WINNER,
                      job->name != NULL ? job->name : scope->name, outcome.failure, false);
    }
}

void hf_scope_child_done(hf_sched *sched, hf_scope *scope, hf_job *job)
{
    hf_list_remove(&job->siblings);
    hf_assert(scope->tally.running > 0);
    HF_DROP(scope->tally.running);
    HF_BUMP(sched->counters.jobs_done);
    judge(sched, scope, job);
    if (HF_UNLIKELY(job->on != NULL)) {
        hf_dispatch_let_go(scope->rt, job);
    }
    __atomic_store_n(&job->state, HF_JOB_DONE, __ATOMIC_RELEASE);
    if (HF_UNLIKELY(job->keep)) {
        hf_list_push_back(&scope->kept, &job->siblings);
    } else if (HF_LIKELY(!job->pinned)) {
        hf_job_free(scope->rt, sched, job);
    }
    bool is_last = scope->tally.running == (HF_CANARY(HF_BUG_JOIN_EARLY) ? 1 : 0);
    if (is_last && scope->joiner != NULL) {
        hf_wait *joiner = scope->joiner;
        scope->joiner = NULL;
        if (HF_LIKELY(!scope->by_thread)) { /* a fiber of this scheduler, parked: what hf_wake does, in line */
            joiner->status = HF_OK;
            scope->owner->wait = NULL;
            hf_sched_ready_push(sched, scope->owner);
        } else {
            hf_wake(joiner, HF_OK);
        }
    }
}

static void on_done_msg(hf_sched *sched, hf_msg *msg)
{
    hf_job *job = HF_CONTAINER(msg, hf_job, msg);
    hf_scope_child_done(sched, job->scope, job);
}

void hf_job_ended(hf_sched *sched, hf_job *job)
{
    if (HF_UNLIKELY(job->on != NULL && sched != NULL)) {
        hf_dispatch_ended(sched, job);
    }
    hf_scope *scope = job->scope;
    if (HF_LIKELY(scope->home == sched)) {
        hf_scope_child_done(sched, scope, job);
        return;
    }
    job->msg.run = on_done_msg;
    hf_sched_post(scope->home, &job->msg);
}

/* ---- Join and close ---------------------------------------------------------------------------------------------- */

static const hf_wait_kind JOIN = {"hf_join", NULL};
static const hf_wait_kind CLOSE = {"hf_scope_close", NULL};

/* At home: tells the policy that the owner joins. True: nobody is left to wait for. */
static bool begin_join(hf_sched *sched, hf_scope *scope)
{
    scope->tally.joining = true;
    hf_verdict verdict = HF_GO_ON;
    if (scope->policy.hooks->on_done != NULL) {
        IN_HOOK(sched, verdict = scope->policy.hooks->on_done(&scope->tally, NULL));
    }
    if (HF_UNLIKELY(verdict == HF_STOP) && scope->tally.running > 0) {
        hf_scope_mark(sched, scope, scope->tally.failed > 0 ? HF_CAUSE_SIBLING : HF_CAUSE_WINNER, scope->name,
                      scope->first != NULL ? &scope->first->failure : NULL, false);
    }
    return scope->tally.running == 0;
}

static bool join_at_home(hf_sched *sched, hf_scope *scope, home_call *call)
{
    if (begin_join(sched, scope)) {
        return true;
    }
    scope->joiner = &call->wait;
    return false;
}

/* The scope's own deadline ends with its alarm: what is opened inside later must not take one for its minimum that
 * nothing stands for any more. */
static HF_NOINLINE void end_deadline(hf_scope *scope)
{
    scope->own_deadline = false;
    scope->deadline_passed = false;
    if (scope->outer != NULL) {
        scope->deadline = scope->outer->deadline;
    } else {
        scope->deadline = scope->owner->job != NULL ? scope->owner->job->scope->deadline : HF_INSTANT_NEVER;
    }
}

/* At home, everybody has ended: a cancel of the scope's own has done its work, one from further out stays. */
static inline void settle(hf_sched *sched, hf_scope *scope)
{
    scope->tally.joining = false;
    HF_BUMP(sched->counters.joins);
    hf_alarm_disarm(sched, &scope->alarm);
    if (HF_UNLIKELY(scope->own_deadline)) {
        scope->deadline_fired |=
            scope->deadline_passed && scope->tally.forked == 0; /* it ended the owner's own waits */
        end_deadline(scope);
    }
    scope->ended_cause = scope->cx.cause;
    scope->ended_reason = scope->cx.reason;
    if (!scope->cx.inherited || HF_CANARY(HF_BUG_JOIN_CLEARS_OUTER)) {
        atomic_store_explicit(&scope->cx.canceled, false, memory_order_relaxed);
        scope->cx.cause = HF_CAUSE_NONE;
    }
}

static bool settle_at_home(hf_sched *sched, hf_scope *scope, home_call *call)
{
    (void)call;
    settle(sched, scope);
    return true;
}

static inline __attribute__((always_inline)) void park_joiner(hf_fiber *self, hf_scope *scope, const hf_wait_kind *kind)
{
    hf_wait wait;
    hf_wait_init(&wait, self, kind, scope, scope->name);
    scope->joiner = &wait;
    (void)hf_park_hot(self, &wait);
}

/* Nobody is left, and nothing is on its way. The end of the last child woke the owner, but a fork from elsewhere may have
 * come in before its turn. */
static inline bool is_over(hf_fiber *self, hf_scope *scope)
{
    if (HF_UNLIKELY(atomic_load(&scope->pending) != 0)) {
        hf_yield_in(self);
        return false;
    }
    return __atomic_load_n(&scope->tally.running, __ATOMIC_RELAXED) == 0 || HF_CANARY(HF_BUG_JOIN_EARLY);
}

/* Waits for the last child; forks from elsewhere that are on their way count. */
static inline __attribute__((always_inline)) void await_children(hf_fiber *self, hf_scope *scope)
{
    do {
        if (HF_LIKELY(is_home(self, scope))) {
            if (!begin_join(self->sched, scope)) {
                park_joiner(self, scope, &JOIN);
            }
        } else {
            home_call call;
            call.fn = join_at_home;
            call_home(self, scope, &call, &JOIN);
        }
    } while (HF_UNLIKELY(!is_over(self, scope)));
    if (HF_LIKELY(is_home(self, scope))) {
        settle(self->sched, scope);
    } else {
        home_call call;
        call.fn = settle_at_home;
        call_home(self, scope, &call, &CALL);
    }
}

static hf_status timeout_of(const hf_scope *scope, char *text, size_t capacity)
{
    const hf_tally *tally = &scope->tally;
    (void)snprintf(text, capacity, "scope '%s' did not finish within its %lld ms: %llu of %llu children had ended",
                   scope->name, (long long)(scope->timeout_ns / 1000000),
                   (unsigned long long)(tally->ok + tally->failed), (unsigned long long)tally->forked);
    return HF_ERR_TIMEOUT;
}

/* In the owner's own context. */
static hf_status verdict_of(hf_scope *scope, const hf_tally *tally, bool *ret_timeout)
{
    const hf_join_hooks *hooks = scope->policy.hooks;
    hf_status first = scope->first != NULL ? scope->first->failure.status : HF_OK;
    hf_status status = first;
    if (hooks->result != NULL) {
        status = hooks->result(tally, first);
    } else if (first == HF_OK && tally->canceled > 0) {
        status = HF_ERR_CANCELED;
    }
    if (scope->deadline_fired && (status != HF_OK || tally->forked == 0)) {
        status = hooks->on_deadline != NULL ? hooks->on_deadline(tally) : HF_ERR_TIMEOUT;
        *ret_timeout = status == HF_ERR_TIMEOUT;
    }
    return status;
}

static hf_status report(hf_fiber *self, hf_scope *scope, hf_status status, bool is_timeout)
{
    if (status == HF_OK) {
        return HF_OK;
    }
    if (is_timeout) {
        char text[HF_MESSAGE_LEN_MAX];
        (void)timeout_of(scope, text, sizeof text);
        return hf_refuse_at(self, status, "hf_join", "%s", text);
    }
    if (scope->first != NULL && scope->first->failure.status == status) {
        hf_self_fail(self, hf_box_ref(scope->first));
    } else if (status == HF_ERR_CANCELED) {
        return hf_refuse_at(self, status, "hf_join", "scope '%s' was canceled (%s: %s)", scope->name,
                            hf_cause_name((hf_cause)scope->ended_cause), scope->ended_reason);
    } else if (self->last_status != status || self->last_where != NULL) {
        hf_self_note(self, status, "hf_join"); /* unless the result hook said more */
    }
    return status;
}

hf_status hf_join(hf_scope *scope)
{
    hf_fiber *self = hf_enter(scope != NULL ? scope->rt : NULL);
    if (HF_UNLIKELY(self == NULL)) {
        return hf_forked();
    }
    if (HF_UNLIKELY(scope == NULL || scope->owner != self)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "only the owner of a scope may join it"));
    }
    if (HF_UNLIKELY(self->hook_depth != 0)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_join may wait, and a hook of a join must not"));
    }
    await_children(self, scope);
    bool is_timeout = false;
    self->hook_depth++; /* the result hook may raise, and must not wait */
    hf_status status = verdict_of(scope, &scope->tally, &is_timeout);
    self->hook_depth--;
    HF_LEAVE(self, HF_LIKELY(status == HF_OK) ? HF_OK : report(self, scope, status, is_timeout));
}

static inline bool begin_close(hf_sched *sched, hf_scope *scope)
{
    scope->closing = true;
    if (scope->tally.running > 0) {
        hf_scope_mark(sched, scope, HF_CAUSE_CLOSED, scope->name, NULL, false);
    }
    return scope->tally.running == 0;
}

static bool close_at_home(hf_sched *sched, hf_scope *scope, home_call *call)
{
    if (begin_close(sched, scope)) {
        return true;
    }
    scope->joiner = &call->wait;
    return false;
}

/* At home: nobody is left; alarms go, kept jobs go. */
static void finish(hf_sched *sched, hf_scope *scope)
{
    hf_alarm_disarm(sched, &scope->alarm);
    HF_LIST_EACH(node, &scope->kept)
    {
        hf_list_remove(node);
        hf_job *job = HF_CONTAINER(node, hf_job, siblings);
        job->keep = false;
        if (!job->pinned) {
            hf_job_free(scope->rt, sched, job);
        }
    }
    HF_BUMP(sched->counters.scopes_closed);
    hf_metrics_scope(sched, scope);
}

static bool finish_at_home(hf_sched *sched, hf_scope *scope, home_call *call)
{
    (void)call;
    finish(sched, scope);
    return true;
}

static bool pass_at_home(hf_sched *sched, hf_scope *scope, home_call *call)
{
    (void)sched;
    (void)scope;
    (void)call;
    return true;
}

static void free_failures(hf_scope *scope)
{
    hf_box_unref(scope->first);
    for (size_t i = 0; i < scope->failure_count; i++) {
        hf_box_unref(scope->failures[i]);
    }
    hf_rt_free(scope->rt, scope->failures, HF_SCOPE_FAILURES_MAX * sizeof(hf_failure_box *));
}

static void close_by_thread(hf_fiber *self, hf_scope *scope)
{
    home_call call;
    do {
        call.fn = close_at_home;
        call_home(self, scope, &call, &CLOSE);
    } while (!is_over(self, scope));
    hf_spin_lock(&scope->rt->roots_lock);
    hf_list_remove(&scope->roots);
    hf_spin_unlock(&scope->rt->roots_lock);
    unlink_scope(self, scope);
    while (atomic_load(&scope->pending) != 0) { /* a cancel that saw it just before */
        call.fn = pass_at_home; /* not merely a pause: a hosted home gets to it only while somebody waits */
        call_home(self, scope, &call, &CALL);
    }
    call.fn = finish_at_home;
    call_home(self, scope, &call, &CALL);
}

hf_status hf_scope_close_on(hf_fiber *self, hf_scope *scope)
{
    if (HF_UNLIKELY(self->last_where != NULL && self->last_status == HF_ERR_CANCELED)) {
        hf_self_tell(self); /* the sentence names the scope and the reason: make it while they are there */
    }
    while (self->scope != scope) { /* inner ones first */
        hf_assert(self->scope != NULL);
        hf_log(scope->rt, HF_LOG_WARN, "scope_left_open", "scope=%s closed_with=%s", self->scope->name, scope->name);
        (void)hf_scope_close_on(self, self->scope);
    }
    if (scope->by_thread) {
        close_by_thread(self, scope);
    } else {
        do {
            if (!begin_close(self->sched, scope)) {
                park_joiner(self, scope, &CLOSE);
            }
        } while (HF_UNLIKELY(!is_over(self, scope)));
        self->scope = scope->outer;
        self->cx = scope->parent_cx;
        finish(self->sched, scope);
    }
    if (HF_UNLIKELY(scope->first != NULL || scope->failures != NULL)) {
        free_failures(scope);
    }
    hf_scope_release(scope->rt, self->rt == scope->rt ? self->sched : NULL, scope);
    return HF_OK;
}

static bool is_open_by(const hf_fiber *self, const hf_scope *scope)
{
    for (const hf_scope *at = self->scope; at != NULL; at = at->outer) {
        if (at == scope) {
            return true;
        }
    }
    return false;
}

hf_status hf_scope_close(hf_scope *scope)
{
    if (scope == NULL) {
        return HF_OK;
    }
    hf_fiber *self = hf_enter(scope->rt);
    if (HF_UNLIKELY(self == NULL)) {
        return hf_forked();
    }
    if (HF_UNLIKELY(self->hook_depth != 0 || !is_open_by(self, scope) || scope->is_shield)) {
        hf_status status = hf_refuse(self, HF_ERR_MISUSE, "only the owner of an open scope may close it");
        hf_log(self->rt, HF_LOG_ERROR, "misuse", "verb=hf_scope_close message=not_the_owner");
        HF_LEAVE(self, status);
    }
    HF_LEAVE(self, hf_scope_close_on(self, scope));
}

bool hf_scope_close_leftovers(hf_fiber *self)
{
    bool any = false;
    while (self->scope != NULL) {
        any = true;
        hf_log(self->scope->rt, HF_LOG_ERROR, "misuse", "message=body_returned_with_open_scope scope=%s",
               self->scope->name);
        (void)hf_scope_close_on(self, self->scope);
    }
    return any;
}

/* ---- Cancel, questions ------------------------------------------------------------------------------------------- */

hf_status hf_scope_cancel_with(hf_scope *scope, const hf_cancel_options *options)
{
    hf_fiber *self = hf_enter(scope != NULL ? scope->rt : NULL);
    if (HF_UNLIKELY(self == NULL)) {
        return hf_forked();
    }
    if (HF_UNLIKELY(scope == NULL)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_scope_cancel needs an open scope"));
    }
    const char *reason = options != NULL && options->reason != NULL ? options->reason : scope->name;
    if (is_home(self, scope)) {
        hf_scope_mark(self->sched, scope, HF_CAUSE_EXPLICIT, reason, NULL, false);
    } else {
        hf_scope_cancel_post(scope, HF_CAUSE_EXPLICIT, reason, false);
        hf_point_rt(scope->rt, HF_POINT_POST, 0);
    }
    HF_LEAVE(self, HF_OK);
}

static bool cancel_job_at_home(hf_sched *sched, hf_scope *scope, home_call *call)
{
    if (__atomic_load_n(&call->job->state, __ATOMIC_RELAXED) != HF_JOB_DONE) {
        hf_job_mark(sched, call->job, HF_CAUSE_EXPLICIT, scope->name, NULL);
    }
    return true;
}

hf_status hf_job_cancel(hf_job *job)
{
    hf_fiber *self = hf_enter(job != NULL ? job->scope->rt : NULL);
    if (self == NULL) {
        return hf_forked();
    }
    if (job == NULL || self->hook_depth != 0) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_job_cancel needs a job, and not from a hook"));
    }
    home_call call;
    call.fn = cancel_job_at_home;
    call.job = job;
    call_home(self, job->scope, &call, &CALL);
    HF_LEAVE(self, HF_OK);
}

const char *hf_scope_name(const hf_scope *scope)
{
    return scope != NULL ? scope->name : "";
}

hf_tally hf_scope_tally(const hf_scope *scope)
{
    if (scope == NULL) {
        return (hf_tally){.n = 0};
    }
    hf_tally tally = {.n = scope->tally.n, .state = scope->tally.state};
    tally.forked = __atomic_load_n(&scope->tally.forked, __ATOMIC_RELAXED);
    tally.running = __atomic_load_n(&scope->tally.running, __ATOMIC_RELAXED);
    tally.ok = __atomic_load_n(&scope->tally.ok, __ATOMIC_RELAXED);
    tally.failed = __atomic_load_n(&scope->tally.failed, __ATOMIC_RELAXED);
    tally.canceled = __atomic_load_n(&scope->tally.canceled, __ATOMIC_RELAXED);
    return tally;
}

bool hf_scope_is_idle(const hf_scope *scope)
{
    return scope == NULL ||
           (atomic_load(&scope->pending) == 0 && __atomic_load_n(&scope->tally.running, __ATOMIC_RELAXED) == 0);
}

const hf_failure *hf_scope_failure(const hf_scope *scope, size_t idx)
{
    return scope != NULL && idx < scope->failure_count ? &scope->failures[idx]->failure : NULL;
}

bool hf_job_is_done(const hf_job *job)
{
    return job != NULL && __atomic_load_n(&job->state, __ATOMIC_ACQUIRE) == HF_JOB_DONE;
}

hf_status hf_job_status(const hf_job *job)
{
    if (HF_UNLIKELY(job == NULL)) {
        hf_fiber *self = hf_enter(NULL);
        if (self == NULL) {
            return hf_forked();
        }
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_job_status needs a job: ask hf_fork for it with .ret_job"));
    }
    return hf_job_is_done(job) ? job->status : HF_ERR_AGAIN;
}

const hf_failure *hf_job_failure(const hf_job *job)
{
    return hf_job_is_done(job) && job->failure != NULL ? &job->failure->failure : NULL;
}

uint64_t hf_job_index(const hf_job *job)
{
    return job != NULL ? job->index : 0;
}
