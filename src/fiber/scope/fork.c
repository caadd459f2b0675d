/* Children: how a branch is made and counted, where it goes, and what its end means for its scope. See scope.c,
 * fiber-J1 to fiber-J3. */
#include "fiber/crew/crew_private.h"
#include "fiber/crew/crew_struct.h"
#include "fiber/crew/job.h"
#include "fiber/crew/strand.h"
#include "fiber/sched/dispatch.h"
#include "fiber/scope/branch.h"
#include "fiber/scope/scope_private.h"
#include "fiber/verbs.h"

/* ---- Fork -------------------------------------------------------------------------------------------------------- */

static void start_child(hf_sched *sched, hf_branch *branch)
{
    if (HF_LIKELY(branch->on == NULL)) {
        hf_sched_push_branch(sched, branch);
    } else {
        hf_dispatch_branch(sched, branch);
    }
}

void hf_delay_end(hf_sched *sched, hf_branch *branch)
{
    hf_assert(branch->state == HF_BRANCH_DELAYED && branch->scope->home == sched); /* fiber-F1 */
    hf_alarm_disarm(sched, &branch->alarm);
    branch->state = HF_BRANCH_NEW;
    start_child(sched, branch);
}

static void on_delay(hf_sched *sched, hf_alarm *alarm)
{
    hf_delay_end(sched, HF_CONTAINER(alarm, hf_branch, alarm));
}

bool hf_alarm_is_delay(const hf_alarm *alarm)
{
    return alarm->fire == on_delay;
}

static hf_status arm_delay(hf_sched *sched, hf_branch *branch, hf_span delay)
{
    hf_crew *crew = hf_crew_of_scope(branch->scope);
    return crew == NULL ? hf_alarm_arm(sched, &branch->alarm, hf_rt_deadline(sched->rt, delay))
                        : hf_crew_arm(crew, &branch->alarm, hf_instant_after(hf_crew_now(crew), delay));
}

/* Called before the child is counted, so that a fork at home can fail if no alarm or timer can be armed. */
static hf_status begin_delay(hf_sched *sched, hf_scope *scope, hf_branch *branch)
{
    if (HF_LIKELY(!branch->is_delayed) || atomic_load_explicit(&scope->cx.canceled, memory_order_relaxed)) {
        return HF_OK;
    }
    hf_assert(scope->home == sched && branch->state == HF_BRANCH_NEW); /* fiber-F1 */
    branch->alarm.pos = 0;
    branch->alarm.fire = on_delay;
    hf_status status = arm_delay(sched, branch, hf_nanoseconds(branch->delay_ns));
    branch->state = status == HF_OK ? HF_BRANCH_DELAYED : HF_BRANCH_NEW;
    return status;
}

static inline hf_status ask_scope(hf_sched *sched, hf_scope *scope)
{
    if (scope->tally.running >= (uint64_t)scope->branches_max) {
        return HF_ERR_LIMIT;
    }
    hf_status status = HF_OK;
    if (HF_UNLIKELY(scope->policy.hooks->on_fork != NULL)) {
        HF_IN_HOOK(sched, status = scope->policy.hooks->on_fork(&scope->tally));
    }
    return status;
}

static inline hf_status may_add(hf_sched *sched, hf_scope *scope, hf_branch *branch)
{
    HF_TRY(begin_delay(sched, scope, branch));
    hf_status status = ask_scope(sched, scope);
    if (HF_UNLIKELY(status != HF_OK && branch->state == HF_BRANCH_DELAYED)) {
        hf_alarm_disarm(sched, &branch->alarm);
    }
    return status;
}

/* At home: the child is counted and put on its way. */
static void add_child(hf_sched *sched, hf_scope *scope, hf_branch *branch)
{
    hf_assert(scope->home == sched); /* fiber-F1 */
    __atomic_store_n(&branch->index, scope->tally.forked,
                     __ATOMIC_RELAXED); /* a thread that has forked it may ask meanwhile */
    HF_BUMP(scope->tally.forked);
    if (!HF_CANARY(HF_BUG_CHILD_NOT_COUNTED) || branch->drop == NULL) {
        HF_BUMP(scope->tally.running);
    }
    branch->born_ns = sched->coarse_ns;
    hf_list_push_back(&scope->children, &branch->siblings);
    HF_BUMP(sched->counters.forks);
    if (HF_UNLIKELY(atomic_load_explicit(&scope->cx.canceled, memory_order_relaxed))) {
        branch->cx.cause = scope->cx.cause;
        branch->cx.reason = scope->cx.reason;
        scope->deadline_fired |= scope->deadline_passed;
        atomic_store_explicit(&branch->cancel_requested, true, memory_order_relaxed);
    }
    if (HF_LIKELY(branch->state != HF_BRANCH_DELAYED)) {
        start_child(sched, branch);
    }
}

static void on_fork_msg(hf_sched *sched, hf_msg *msg)
{
    hf_branch *branch = HF_CONTAINER(msg, hf_branch, msg);
    hf_scope *scope = branch->scope;
    (void)begin_delay(sched, scope,
                      branch); /* the forker has gone on: if no alarm can be armed, the child starts at once */
    add_child(sched, scope, branch);
    unsigned before = atomic_fetch_sub(&scope->pending, HF_CANARY(HF_BUG_FORK_NOT_PENDING) ? 0 : 1);
    hf_assert(before > 0); /* fiber-J3 */
}

static bool fork_at_home(hf_sched *sched, hf_scope *scope, hf_home_call *call)
{
    call->status = may_add(sched, scope, call->branch);
    if (call->status == HF_OK) {
        add_child(sched, scope, call->branch);
    }
    return true;
}

static hf_status submit(hf_fiber *self, hf_scope *scope, hf_branch *branch)
{
    if (HF_LIKELY(hf_is_home(self, scope))) {
        hf_status status = may_add(self->sched, scope, branch);
        if (HF_LIKELY(status == HF_OK)) {
            add_child(self->sched, scope, branch);
        }
        return status;
    }
    if (scope->policy.hooks->on_fork != NULL || scope->branches_max != INT64_MAX) { /* the scope may refuse the child */
        if (self->hook_depth != 0) {
            return HF_ERR_MISUSE; /* a hook must not wait for the answer */
        }
        hf_home_call call;
        call.fn = fork_at_home;
        call.branch = branch;
        hf_call_home(self, scope, &call, &hf_home_call_kind);
        return call.status;
    }
    atomic_fetch_add(&scope->pending, HF_CANARY(HF_BUG_FORK_NOT_PENDING) ? 0 : 1);
    branch->msg.run = on_fork_msg;
    hf_sched_post(scope->home, &branch->msg);
    return HF_OK;
}

/* `branch` is only compared with NULL: NULL = it could not be made, or its dispatcher refused it. */
static hf_status fork_failed(hf_fiber *self, hf_scope *scope, const hf_branch *branch, const char *verb,
                             hf_status status)
{
    hf_assert(status != HF_OK);
    if (status == HF_ERR_NOMEM) {
        return hf_refuse_at(self, status, verb, "no memory for a child of scope '%s'", scope->name);
    }
    if (status == HF_ERR_LIMIT && self->crew != NULL && scope->tally.running < (uint64_t)scope->branches_max) {
        return hf_crew_refuse_timer(self, verb);
    }
    if (status == HF_ERR_LIMIT) {
        return hf_refuse_at(self, status, verb, "scope '%s' already has %lld children running, its .branches_max",
                            scope->name, (long long)scope->branches_max);
    }
    if (status == HF_ERR_EVICTED) {
        hf_self_note(self, status, verb);
        return status;
    }
    if (status == HF_ERR_MISUSE && branch == NULL && (self->crew != NULL || hf_crew_of_scope(scope) != NULL)) {
        return hf_refuse_at(self, status, verb,
                            "scope '%s': only the workflow itself forks into its scopes, and only onto its own fibers",
                            scope->name);
    }
    if (status == HF_ERR_MISUSE && branch == NULL) {
        return hf_refuse_at(self, status, verb, "a serial dispatcher takes branches of its own runtime only");
    }
    if (status == HF_ERR_MISUSE && self->hook_depth != 0) {
        return hf_refuse_at(self, status, verb,
                            "a hook must not wait for the answer of scope '%s', which is on another thread",
                            scope->name);
    }
    return hf_refuse_at(self, status, verb, "the join '%s' of scope '%s' refused the child", scope->policy.hooks->name,
                        scope->name);
}

/* The child may run before submit returns, and look for its own handle. */
static inline hf_status submit_with_handle(hf_fiber *self, hf_scope *scope, hf_branch *branch, hf_branch **ret_branch)
{
    if (HF_LIKELY(ret_branch == NULL)) {
        return submit(self, scope, branch);
    }
    hf_branch *before = *ret_branch;
    *ret_branch = branch;
    hf_status status = submit(self, scope, branch);
    if (status != HF_OK) {
        *ret_branch = before;
    }
    return status;
}

/* Inlined into hf_fork, which is called millions of times a second; a job's fork calls make_job_branch. */
static inline __attribute__((always_inline)) hf_status make_branch(hf_fiber *self, hf_scope *scope, hf_body body,
                                                                   void *arg, const hf_fork_options *options,
                                                                   hf_branch **ret_branch)
{
    hf_runtime *rt = scope->rt;
    hf_sched *sched = self->rt == rt ? self->sched : NULL;
    hf_branch *branch = hf_branch_new(rt, sched);
    if (branch == NULL) {
        return HF_ERR_NOMEM;
    }
    branch->scope = scope;
    branch->body = body;
    branch->arg = arg;
    branch->stack_class = scope->home->stack_class;
    branch->on = scope->on;
    branch->index = 0;
    branch->drop = options->drop;
    branch->name = options->name;
    branch->keep = options->ret_branch != NULL;
    branch->is_delayed = false;
    if (HF_UNLIKELY(options->on != NULL)) {
        branch->on = options->on;
    }
    if (HF_UNLIKELY(options->stack_size != 0)) {
        branch->stack_class = hf_stack_class_of(options->stack_size);
    }
    if (HF_UNLIKELY(options->delay.ns > 0)) {
        hf_set_place(self, options->file, options->line);
        branch->is_delayed = true;
        branch->delay_ns = options->delay.ns;
    }
    if (HF_UNLIKELY(branch->on != NULL || self->kind == HF_FIBER_MEMBER)) {
        const hf_crew *crew = branch->on != NULL ? hf_crew_of_dispatcher(branch->on) : NULL;
        if (crew != NULL && options->stack_size == 0) {
            branch->stack_class = crew->stack_class;
        }
        hf_status status = hf_dispatch_hold(self, branch);
        if (status != HF_OK) {
            hf_branch_free(rt, sched, branch);
            return status;
        }
    }
    *ret_branch = branch;
    return HF_OK;
}

static HF_NOINLINE hf_status make_job_branch(hf_fiber *self, hf_scope *scope, hf_crew_job *job,
                                             const hf_fork_options *options, hf_branch **ret_branch)
{
    return make_branch(self, scope, NULL, job, options, ret_branch);
}

/* A branch that its scope did not take. Accepts NULL. */
static void unmake_branch(hf_fiber *self, hf_scope *scope, hf_branch *branch)
{
    if (branch != NULL) {
        if (branch->on != NULL) {
            hf_dispatch_let_go(scope->rt, branch);
        }
        hf_branch_free(scope->rt, self->rt == scope->rt ? self->sched : NULL, branch);
    }
}

hf_status hf_fork_with(hf_scope *scope, hf_body body, void *arg, const hf_fork_options *options)
{
    hf_fork_options own;
    if (HF_UNLIKELY(!hf_options_fit(options, sizeof own))) {
        hf_status taken = hf_options_take(&own, sizeof own, options, "hf_fork");
        options = &own;
        if (taken != HF_OK) {
            if (own.drop != NULL) {
                own.drop(arg);
            }
            return taken;
        }
    }
    HF_VERB_ENTER(self, hf_fork, scope != NULL ? scope->rt : NULL);
    hf_status status = HF_OK;
    hf_branch *branch = NULL;
    if (HF_UNLIKELY(scope == NULL || body == NULL)) {
        status = hf_refuse(self, HF_ERR_MISUSE, "hf_fork needs an open scope and a body");
    } else if (HF_UNLIKELY(scope->is_shield)) {
        status = hf_refuse(self, HF_ERR_MISUSE, "a shield has no children: open a scope inside it");
    } else if (HF_UNLIKELY(options->stack_size > 256 * 1024)) {
        status = hf_refuse_at(self, HF_ERR_INVALID, "hf_fork", "a stack has up to 256 K, not %zu bytes",
                              options->stack_size);
    } else if (HF_UNLIKELY(options->delay.ns > 0) && self->crew != NULL &&
               hf_crew_check_span(self, "hf_fork", ".delay", options->delay) != HF_OK) {
        status = HF_ERR_INVALID;
    } else {
        status = make_branch(self, scope, body, arg, options, &branch);
        if (HF_LIKELY(status == HF_OK)) {
            status = submit_with_handle(self, scope, branch, options->ret_branch);
        }
        if (HF_UNLIKELY(status != HF_OK)) {
            unmake_branch(self, scope, branch);
            (void)fork_failed(self, scope, branch, "hf_fork", status);
        }
    }
    hf_leave(self);
    if (HF_UNLIKELY(status != HF_OK)) {
        if (options->drop != NULL) {
            options->drop(arg);
        }
        if (status == HF_ERR_EVICTED) {
            hf_count_look(); /* now that nothing is left to do for the call */
        }
    }
    return status;
}

hf_status hf_fork_job(hf_fiber *self, hf_scope *scope, hf_crew_job *job, const char *verb, const char *name,
                      hf_branch **ret_branch)
{
    hf_branch *branch = NULL;
    hf_assert(self->crew != NULL); /* fiber-W2 */
    if (scope == NULL) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s needs an open scope", verb);
    }
    if (scope->is_shield) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "a shield has no children: open a scope inside it");
    }
    hf_fork_options options = {.size = sizeof options, .name = name, .ret_branch = ret_branch};
    hf_status status = make_job_branch(self, scope, job, &options, &branch);
    if (status == HF_OK) {
        status = submit_with_handle(self, scope, branch, ret_branch);
    }
    if (status != HF_OK) {
        unmake_branch(self, scope, branch);
        return fork_failed(self, scope, branch, verb, status);
    }
    return HF_OK;
}

/* ---- The end of a child ------------------------------------------------------------------------------------------ */

static void keep_failure(hf_scope *scope, hf_branch *branch)
{
    hf_assert(branch->status != HF_OK && branch->failure != NULL);
    hf_assert(scope->failure_count <= HF_SCOPE_FAILURES_MAX);
    hf_runtime *rt = scope->rt;
    if (scope->policy.hooks->discard) {
        char word[HF_TYPE_LEN_MAX];
        hf_status_word(branch->status, word, sizeof word);
        hf_log(rt, HF_LOG_WARN, "fiber_failed", "scope=%s fiber=%s status=%s message=%s", scope->name,
               branch->name != NULL ? branch->name : "", word, branch->failure->failure.message);
        return;
    }
    if (scope->first == NULL || HF_CANARY(HF_BUG_FIRST_FAILURE)) {
        hf_box_unref(scope->first);
        scope->first = hf_box_ref(branch->failure);
    }
    if (scope->failures == NULL) {
        scope->failures = hf_rt_alloc(rt, HF_SCOPE_FAILURES_MAX * sizeof(hf_failure_box *));
    }
    if (scope->failures != NULL && scope->failure_count < HF_SCOPE_FAILURES_MAX) {
        scope->failures[scope->failure_count++] = hf_box_ref(branch->failure);
    }
}

/* Counts the child and asks the policy. */
static void judge(hf_sched *sched, hf_scope *scope, hf_branch *branch)
{
    hf_tally *tally = &scope->tally;
    bool failed = false;
    if (HF_LIKELY(branch->status == HF_OK)) {
        HF_BUMP(tally->ok);
    } else if (branch->status == HF_ERR_CANCELED && branch->failure == NULL) {
        HF_BUMP(tally->canceled);
    } else {
        HF_BUMP(tally->failed);
        failed = true;
        if (HF_UNLIKELY(hf_crew_is_evicted(scope))) {
            return; /* it was evicted and did not fail: no log, no verdict */
        }
        keep_failure(scope, branch);
    }
    const hf_join_hooks *hooks = scope->policy.hooks;
    if (hooks->on_done == NULL || (hooks->failures_only && branch->status == HF_OK)) {
        return;
    }
    hf_outcome outcome = {branch->index, branch->name, branch->arg /* NULL for a job */, branch->status,
                          branch->failure != NULL ? &branch->failure->failure : NULL};
    hf_verdict verdict = HF_GO_ON;
    HF_IN_HOOK(sched, verdict = hooks->on_done(tally, &outcome));
    if (HF_UNLIKELY(verdict == HF_STOP) && !atomic_load_explicit(&scope->cx.canceled, memory_order_relaxed)) {
        hf_scope_mark(sched, scope, failed ? HF_CAUSE_SIBLING : HF_CAUSE_WINNER,
                      branch->name != NULL ? branch->name : scope->name, outcome.failure, false);
    }
}

void hf_scope_child_done(hf_sched *sched, hf_scope *scope, hf_branch *branch)
{
    hf_assert(scope->home == sched);     /* fiber-F1 */
    hf_assert(scope->tally.running > 0); /* fiber-J1 */
    hf_list_remove(&branch->siblings);
    HF_DROP(scope->tally.running);
    HF_BUMP(sched->counters.branches_done);
    judge(sched, scope, branch);
    if (HF_UNLIKELY(branch->on != NULL)) {
        hf_dispatch_let_go(scope->rt, branch);
    }
    __atomic_store_n(&branch->state, HF_BRANCH_DONE, __ATOMIC_RELEASE);
    if (HF_UNLIKELY(branch->keep)) {
        hf_list_push_back(&scope->kept, &branch->siblings);
    } else if (HF_LIKELY(!branch->pinned)) {
        hf_branch_free(scope->rt, sched, branch);
    }
    bool is_last = scope->tally.running == (HF_CANARY(HF_BUG_JOIN_EARLY) ? 1 : 0);
    if (is_last && scope->joiner != NULL) {
        hf_wait *joiner = scope->joiner;
        hf_assert(joiner->fiber == scope->owner);      /* fiber-J2 */
        hf_assert(hf_list_is_empty(&scope->children)); /* fiber-J1 */
        scope->joiner = NULL;
        if (HF_LIKELY(scope->owner->kind == HF_FIBER_PLAIN)) { /* a parked fiber of this scheduler: hf_wake, inlined */
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
    hf_branch *branch = HF_CONTAINER(msg, hf_branch, msg);
    hf_scope_child_done(sched, branch->scope, branch);
}

void hf_branch_ended(hf_sched *sched, hf_branch *branch)
{
    if (HF_UNLIKELY(branch->on != NULL && sched != NULL)) {
        hf_dispatch_ended(sched, branch);
    }
    hf_scope *scope = branch->scope;
    if (HF_LIKELY(scope->home == sched)) {
        hf_scope_child_done(sched, scope, branch);
        return;
    }
    hf_assert(branch->fiber == NULL); /* fiber-F1: its fiber has let go of it */
    branch->msg.run = on_done_msg;
    hf_sched_post(scope->home, &branch->msg);
}
