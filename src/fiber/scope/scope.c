/* Scopes: opening and closing. fork.c and join.c have the rest. All code that touches a scope's list, counters or
 * policy runs on the thread of its home (fiber-F1 in core.h): directly if the caller is there, else as a message.
 * The caller waits for a message only if it needs the answer.
 *
 *   open --fork*--> running > 0 --last child ends--> idle --close--> gone
 *                      |  policy says stop, deadline, hf_scope_cancel, outer cancel
 *                      v
 *                   canceled: children are woken and end; join clears a cancel of the scope's own
 *
 * fiber-J1  A child counts as running from hf_fork (at home) until its end was processed at home.
 * fiber-J2  The joiner is woken by the end of the last child, and by nothing else.
 * fiber-J3  A message about a scope is counted in `pending` before it is posted, and close waits for it. */
#include "fiber/crew/crew_private.h"
#include "fiber/crew/strand.h"
#include "fiber/scope/branch.h"
#include "fiber/scope/scope_private.h"
#include "fiber/verbs.h"
#include "fiber/watch/metrics.h"

#include <string.h>

/* ---- Being at home ----------------------------------------------------------------------------------------------- */

const hf_wait_kind hf_home_call_kind = {"call", NULL};

static void on_home_call(hf_sched *sched, hf_msg *msg)
{
    hf_home_call *call = HF_CONTAINER(msg, hf_home_call, msg);
    hf_scope *scope = call->scope;
    hf_assert(scope->home == sched); /* fiber-F1 */
    if (call->fn(sched, scope, call)) {
        hf_wake(&call->wait, HF_OK);
    }
}

void hf_call_home(hf_fiber *self, hf_scope *scope, hf_home_call *call, const hf_wait_kind *kind)
{
    call->scope = scope;
    call->msg.run = on_home_call;
    hf_wait_init(&call->wait, self, kind, scope, scope->name);
    if (hf_is_home(self, scope)) {
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
    hf_assert(scope->home == sched);  /* fiber-F1 */
    hf_assert(scope->alarm.pos == 0); /* it fires once */
    if (!atomic_load_explicit(&scope->cx.canceled, memory_order_relaxed)) {
        scope->deadline_passed = true;
        scope->deadline_fired = scope->tally.running > 0;
    }
    hf_scope_mark(sched, scope, HF_CAUSE_DEADLINE, scope->deadline_reason, NULL, false);
}

static bool arm_at_home(hf_sched *sched, hf_scope *scope, hf_home_call *call)
{
    hf_assert(scope->home == sched && scope->own_deadline); /* fiber-F1 */
    scope->alarm.fire = on_deadline;
    call->status = HF_OK;
    if (scope->timeout_ns < 0) {
        on_deadline(sched, &scope->alarm); /* passed already */
    } else {
        call->status = hf_crew_or_sched_arm(hf_crew_of_scope(scope), sched, &scope->alarm, scope->deadline);
    }
    return true;
}

static hf_instant outer_deadline(const hf_fiber *self)
{
    if (self->scope != NULL) {
        return self->scope->deadline;
    }
    return self->branch != NULL ? self->branch->scope->deadline : HF_INSTANT_NEVER;
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
    scope->is_placed = false;
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
    scope->number = 0;
    atomic_store_explicit(&scope->cancel_posted, false, memory_order_relaxed);
    atomic_store_explicit(&scope->cancel_inherited, false, memory_order_relaxed);
    atomic_store_explicit(&scope->pending, 0, memory_order_relaxed);
    scope->name = options->name != NULL ? options->name : (is_shield ? hf_unnamed_shield : hf_unnamed_scope);
    scope->policy = options->join;
    if (scope->policy.hooks == NULL) {
        scope->policy.hooks = &hf_join_all_hooks;
    }
    scope->tally = (hf_tally){.n = scope->policy.n, .state = scope->policy.state};
    scope->branches_max = options->branches_max > 0 ? options->branches_max : INT64_MAX;
    scope->on = self->crew != NULL ? hf_crew_dispatcher(self->crew) : options->on;
    scope->locals = self->locals;
    hf_list_init(&scope->children);
    hf_list_init(&scope->kept);
    scope->deadline = is_shield || HF_CANARY(HF_BUG_DEADLINE_NOT_MIN) ? HF_INSTANT_NEVER : outer_deadline(self);
    scope->timeout_ns = options->timeout.ns;
    if (options->timeout.ns != 0) {
        hf_instant own = hf_self_deadline(self, rt, options->timeout);
        if (own.ns < scope->deadline.ns) {
            scope->deadline = own;
            scope->deadline_reason = scope->name;
            scope->own_deadline = true;
        }
    }
    if (self->sched != NULL) {
        scope->home = self->sched;
        HF_BUMP(self->sched->counters.scopes_opened);
        scope->id = ((uint64_t)self->sched->index << 48) | self->sched->counters.scopes_opened;
        scope->opened_ns = options->name != NULL ? hf_rt_now(rt).ns : self->sched->coarse_ns;
    } else {
        hf_sched *near = HF_CONTAINER(self, hf_thread_fiber, fiber)->near;
        unsigned turn = atomic_fetch_add_explicit(&rt->round_robin, 1, memory_order_relaxed);
        scope->home = near != NULL ? near : rt->scheds[turn % (unsigned)rt->sched_count];
        scope->by_thread = true;
        scope->id = (UINT64_C(0xffff) << 48) | atomic_fetch_add_explicit(&rt->ids, 1, memory_order_relaxed);
        scope->opened_ns = hf_rt_now(rt).ns;
    }
}

static void link_scope(hf_fiber *self, hf_scope *scope)
{
    hf_assert(self->sched == NULL); /* a fiber needs no lock for this */
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
    hf_assert(self->cx == &scope->cx); /* fiber-C1 */
    hf_spin_lock(&self->lock);
    self->scope = scope->outer;
    self->cx = scope->outer != NULL ? &scope->outer->cx : (self->branch != NULL ? &self->branch->cx : NULL);
    hf_spin_unlock(&self->lock);
}

/* A stop marks the runtime before it walks the list, so a scope that comes too late for the walk sees the mark. */
static void add_root(hf_runtime *rt, hf_scope *scope)
{
    hf_assert(scope->by_thread && !hf_node_is_linked(&scope->roots));
    hf_spin_lock(&rt->roots_lock);
    hf_list_push_back(&rt->roots, &scope->roots);
    bool is_stopped = hf_scope_is_outermost(scope) && atomic_load(&rt->root_cx.canceled);
    hf_spin_unlock(&rt->roots_lock);
    if (is_stopped) {
        hf_scope_cancel_post(scope, HF_CAUSE_SHUTDOWN, rt->root_cx.reason, true);
    }
}

/* On a fiber. A fiber's lock is never contended: only threads are interrupted under it. */
static inline void enter_scope(hf_fiber *self, hf_scope *scope)
{
    hf_assert(self->cx != NULL); /* fiber-C1 */
    scope->outer = self->scope;
    scope->parent_cx = self->cx;
    if (!scope->is_shield) {
        hf_cx_inherit(&scope->cx, scope->parent_cx);
    }
    self->scope = scope;
    self->cx = &scope->cx;
}

void hf_scope_open_in(hf_fiber *self, hf_scope *room, const char *name)
{
    hf_assert(self->crew != NULL); /* of others, a cancel from another thread may come late */
    init_scope(room, self, self->rt, &(hf_scope_options){.size = sizeof(hf_scope_options), .name = name}, false);
    room->is_placed = true;
    enter_scope(self, room);
}

hf_status hf_scope_open_on(hf_fiber *self, hf_runtime *rt, hf_scope **ret_scope, const hf_scope_options *options,
                           bool is_shield)
{
    hf_scope *scope = hf_scope_alloc(rt, self->sched);
    if (scope == NULL) {
        return hf_refuse_at(self, HF_ERR_NOMEM, "hf_scope_open", "no memory for a scope");
    }
    init_scope(scope, self, rt, options, is_shield);
    if (self->sched != NULL) {
        enter_scope(self, scope);
    } else {
        link_scope(self, scope);
        add_root(rt, scope);
    }
    if (scope->own_deadline) {
        hf_home_call call;
        call.fn = arm_at_home;
        hf_call_home(self, scope, &call, &hf_home_call_kind);
        if (call.status != HF_OK) {
            (void)hf_scope_close_on(self, scope);
            if (call.status == HF_ERR_LIMIT) {
                return hf_crew_refuse_timer(self, "hf_scope_open");
            }
            return hf_refuse_at(self, HF_ERR_NOMEM, "hf_scope_open", "no memory for the deadline of a scope");
        }
    }
    *ret_scope = scope;
    return HF_OK;
}

/* Code that runs while the runtime stops may open scopes until it has ended, above all for its cleanup: a branch, on
 * a fiber or a pool thread, and a plain thread inside a shield. */
static bool is_part_of_branch(const hf_fiber *self)
{
    bool is_shielded = false;
    for (const hf_scope *at = self->scope; at != NULL && !is_shielded; at = at->outer) {
        is_shielded = at->is_shield;
    }
    return self->sched != NULL || self->branch != NULL || is_shielded;
}

hf_status hf_scope_open_with(hf_scope **ret_scope, const hf_scope_options *options)
{
    HF_OPTIONS(hf_scope_options, options, hf_scope_open);
    HF_VERB_ENTER(self, hf_scope_open, options->runtime);
    if (ret_scope == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_scope_open needs a place for the scope"));
    }
    if (HF_UNLIKELY(self->crew != NULL && options->on != NULL)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "the children of a workflow run on its own fibers: use no .on"));
    }
    hf_set_place(self, options->file, options->line);
    if (HF_UNLIKELY(self->crew != NULL) &&
        hf_crew_check_span(self, "hf_scope_open", ".timeout", options->timeout) != HF_OK) {
        HF_LEAVE(self, HF_ERR_INVALID);
    }
    if (options->branches_max < 0 && options->branches_max != HF_UNLIMITED) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_INVALID, "hf_scope_open",
                                    "branches_max is a number of children or HF_UNLIMITED, not %lld",
                                    (long long)options->branches_max));
    }
    hf_op op;
    hf_op_init(&op);
    hf_runtime *rt = hf_rt_choose(&op, options->runtime);
    if (rt == NULL) {
        HF_LEAVE(self, hf_op_end(self, &op));
    }
    if ((atomic_load(&rt->root_cx.canceled) || atomic_load(&rt->is_draining)) && !is_part_of_branch(self)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_CLOSED, "the runtime is stopping and takes no new scopes"));
    }
    HF_LEAVE(self, hf_scope_open_on(self, rt, ret_scope, options, false));
}
/* ---- Close ------------------------------------------------------------------------------------------------------- */

static const hf_wait_kind CLOSE = {"hf_scope_close", NULL};

static inline bool begin_close(hf_sched *sched, hf_scope *scope)
{
    hf_assert(scope->home == sched);  /* fiber-F1 */
    hf_assert(scope->joiner == NULL); /* fiber-J2 */
    scope->closing = true;
    if (scope->tally.running > 0) {
        hf_scope_mark(sched, scope, HF_CAUSE_CLOSED, scope->name, NULL, false);
    }
    return scope->tally.running == 0;
}

static bool close_at_home(hf_sched *sched, hf_scope *scope, hf_home_call *call)
{
    if (begin_close(sched, scope)) {
        return true;
    }
    scope->joiner = &call->wait;
    return false;
}

/* At home, when no child is left: frees the alarm and the kept branches. */
static void finish(hf_sched *sched, hf_scope *scope)
{
    const hf_tally *tally = &scope->tally;
    hf_assert(scope->home == sched);                                         /* fiber-F1 */
    hf_assert(hf_list_is_empty(&scope->children) && tally->running == 0);    /* fiber-J1 */
    hf_assert(tally->forked == tally->ok + tally->failed + tally->canceled); /* fiber-J1 */
    hf_alarm_disarm(sched, &scope->alarm);
    HF_LIST_EACH(node, &scope->kept)
    {
        hf_list_remove(node);
        hf_branch *branch = HF_CONTAINER(node, hf_branch, siblings);
        branch->keep = false;
        if (!branch->pinned) {
            hf_branch_free(scope->rt, sched, branch);
        }
    }
    HF_BUMP(sched->counters.scopes_closed);
    hf_metrics_scope(sched, scope);
}

static bool finish_at_home(hf_sched *sched, hf_scope *scope, hf_home_call *call)
{
    (void)call;
    finish(sched, scope);
    return true;
}

static bool pass_at_home(hf_sched *sched, hf_scope *scope, hf_home_call *call)
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
    hf_home_call call;
    do {
        call.fn = close_at_home;
        hf_call_home(self, scope, &call, &CLOSE);
    } while (!hf_scope_is_over(self, scope));
    hf_assert(self->kind == HF_FIBER_THREAD);
    hf_spin_lock(&scope->rt->roots_lock);
    hf_assert(hf_node_is_linked(&scope->roots));
    hf_list_remove(&scope->roots);
    atomic_fetch_add(&scope->rt->closing, 1); /* it needs the runtime until its very end */
    hf_spin_unlock(&scope->rt->roots_lock);
    unlink_scope(self, scope);
    while (atomic_load(&scope->pending) != 0) { /* a cancel that saw it just before */
        call.fn = pass_at_home;                 /* not merely a pause: a hosted home runs only while a thread waits */
        hf_call_home(self, scope, &call, &hf_home_call_kind);
    }
    call.fn = finish_at_home;
    hf_call_home(self, scope, &call, &hf_home_call_kind);
}

hf_status hf_scope_close_on(hf_fiber *self, hf_scope *scope)
{
    hf_assert(scope->owner == self); /* the verbs refuse everybody else */
    if (HF_UNLIKELY(self->last_where != NULL && self->last_status == HF_ERR_CANCELED)) {
        hf_self_tell(self); /* its message names the scope and the reason: made while they exist */
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
                hf_park_joiner(self, scope, &CLOSE);
            }
        } while (HF_UNLIKELY(!hf_scope_is_over(self, scope)));
        self->scope = scope->outer;
        self->cx = scope->parent_cx;
        finish(self->sched, scope);
    }
    if (HF_UNLIKELY(scope->first != NULL || scope->failures != NULL)) {
        free_failures(scope);
    }
    hf_runtime *rt = scope->rt;
    bool by_thread = scope->by_thread;
    hf_scope_release(rt, self->rt == rt ? self->sched : NULL, scope);
    if (by_thread) {
        int before = atomic_fetch_sub(&rt->closing, 1); /* from here on it may be freed by another thread */
        hf_assert(before > 0);
    }
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
    HF_VERB_ENTER(self, hf_scope_close, scope->rt);
    if (HF_UNLIKELY(!is_open_by(self, scope) || scope->is_shield)) {
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

hf_status hf_scope_cancel_with(hf_scope *scope, const hf_scope_cancel_options *options)
{
    HF_OPTIONS(hf_scope_cancel_options, options, hf_scope_cancel);
    HF_VERB_ENTER(self, hf_scope_cancel, scope != NULL ? scope->rt : NULL);
    if (HF_UNLIKELY(scope == NULL)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_scope_cancel needs an open scope"));
    }
    if (HF_UNLIKELY(!hf_crew_lets_in(self, scope))) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "only the workflow itself may cancel its scopes"));
    }
    const char *reason = options->reason != NULL ? options->reason : scope->name;
    if (hf_is_home(self, scope)) {
        hf_scope_mark(self->sched, scope, HF_CAUSE_EXPLICIT, reason, NULL, false);
    } else {
        hf_scope_cancel_from(scope, reason);
    }
    HF_LEAVE(self, HF_OK);
}

static bool cancel_branch_at_home(hf_sched *sched, hf_scope *scope, hf_home_call *call)
{
    hf_assert(call->branch->scope == scope);
    if (__atomic_load_n(&call->branch->state, __ATOMIC_RELAXED) != HF_BRANCH_DONE) {
        hf_branch_mark(sched, call->branch, HF_CAUSE_EXPLICIT, scope->name, NULL);
    }
    return true;
}

hf_status hf_branch_cancel(hf_branch *branch)
{
    HF_VERB_ENTER(self, hf_branch_cancel, branch != NULL ? branch->scope->rt : NULL);
    if (branch == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_branch_cancel needs a branch"));
    }
    if (HF_UNLIKELY(!hf_crew_lets_in(self, branch->scope))) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "only the workflow itself may cancel its branches"));
    }
    hf_home_call call;
    call.fn = cancel_branch_at_home;
    call.branch = branch;
    hf_call_home(self, branch->scope, &call, &hf_home_call_kind);
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
    hf_count_look();
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
    bool is_idle = scope == NULL ||
                   (atomic_load(&scope->pending) == 0 && __atomic_load_n(&scope->tally.running, __ATOMIC_RELAXED) == 0);
    if (!is_idle) {
        hf_count_look();
    }
    return is_idle;
}

const hf_failure *hf_scope_failure(const hf_scope *scope, size_t idx)
{
    return scope != NULL && idx < scope->failure_count ? &scope->failures[idx]->failure : NULL;
}

static bool is_done(const hf_branch *branch)
{
    return branch != NULL && __atomic_load_n(&branch->state, __ATOMIC_ACQUIRE) == HF_BRANCH_DONE;
}

bool hf_branch_is_done(const hf_branch *branch)
{
    bool done = is_done(branch);
    if (!done) {
        hf_count_look();
    }
    return done;
}

hf_status hf_branch_status(const hf_branch *branch)
{
    if (HF_UNLIKELY(branch == NULL)) {
        hf_fiber *self = hf_enter(NULL);
        if (self == NULL) {
            return hf_forked();
        }
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE,
                                 "hf_branch_status needs a branch: ask hf_fork for it with .ret_branch"));
    }
    return hf_branch_is_done(branch) ? branch->status : HF_ERR_AGAIN;
}

const hf_failure *hf_branch_failure(const hf_branch *branch)
{
    return is_done(branch) && branch->failure != NULL ? &branch->failure->failure : NULL;
}

uint64_t hf_branch_index(const hf_branch *branch)
{
    return branch != NULL ? __atomic_load_n(&branch->index, __ATOMIC_RELAXED) : 0;
}
