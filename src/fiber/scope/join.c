/* Joining: waits for the last child, clears a cancel of the scope's own, and returns the result of the policy. See
 * scope.c, fiber-J1 to fiber-J3. */
#include "fiber/crew/crew_private.h"
#include "fiber/crew/strand.h"
#include "fiber/scope/scope_private.h"
#include "fiber/verbs.h"

#include <stdio.h>

static const hf_wait_kind JOIN = {"hf_join", NULL};

/* At home: tells the policy that the owner joins. True: no child is left to wait for. */
static bool begin_join(hf_sched *sched, hf_scope *scope)
{
    hf_assert(scope->home == sched);  /* fiber-F1 */
    hf_assert(scope->joiner == NULL); /* fiber-J2 */
    scope->tally.joining = true;
    hf_verdict verdict = HF_GO_ON;
    if (scope->policy.hooks->on_done != NULL) {
        HF_IN_HOOK(sched, verdict = scope->policy.hooks->on_done(&scope->tally, NULL));
    }
    if (HF_UNLIKELY(verdict == HF_STOP) && scope->tally.running > 0) {
        hf_scope_mark(sched, scope, scope->tally.failed > 0 ? HF_CAUSE_SIBLING : HF_CAUSE_WINNER, scope->name,
                      scope->first != NULL ? &scope->first->failure : NULL, false);
    }
    return scope->tally.running == 0;
}

static bool join_at_home(hf_sched *sched, hf_scope *scope, hf_home_call *call)
{
    if (begin_join(sched, scope)) {
        return true;
    }
    scope->joiner = &call->wait;
    return false;
}

/* The scope's own deadline ends with its alarm: a scope that is opened inside later must not inherit a deadline that
 * nothing enforces. */
static HF_NOINLINE void end_deadline(hf_scope *scope)
{
    hf_assert(scope->own_deadline && scope->alarm.pos == 0);
    scope->own_deadline = false;
    scope->deadline_passed = false;
    if (scope->outer != NULL) {
        scope->deadline = scope->outer->deadline;
    } else {
        scope->deadline = scope->owner->branch != NULL ? scope->owner->branch->scope->deadline : HF_INSTANT_NEVER;
    }
}

/* At home, when all children have ended: a cancel of the scope itself has done its work, one from further out stays. */
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

static bool settle_at_home(hf_sched *sched, hf_scope *scope, hf_home_call *call)
{
    hf_assert(scope->home == sched); /* fiber-F1 */
    (void)call;
    settle(sched, scope);
    return true;
}

/* Waits for the last child; forks from elsewhere that are on their way count. */
static inline __attribute__((always_inline)) void await_children(hf_fiber *self, hf_scope *scope)
{
    do {
        if (HF_LIKELY(hf_is_home(self, scope))) {
            if (!begin_join(self->sched, scope)) {
                hf_park_joiner(self, scope, &JOIN);
            }
        } else {
            hf_home_call call;
            call.fn = join_at_home;
            hf_call_home(self, scope, &call, &JOIN);
        }
    } while (HF_UNLIKELY(!hf_scope_is_over(self, scope)));
    if (HF_LIKELY(hf_is_home(self, scope))) {
        hf_assert(scope->tally.running == 0); /* fiber-J1 */
        settle(self->sched, scope);
    } else {
        hf_home_call call;
        call.fn = settle_at_home;
        hf_call_home(self, scope, &call, &hf_home_call_kind);
    }
}

static hf_status timeout_of(const hf_scope *scope, char *text, size_t capacity)
{
    hf_assert(scope->timeout_ns != 0);
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
    hf_status first = scope->first != NULL ? scope->first->as : HF_OK;
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

/* A missed quorum is more than its first failure: the hook's sentence stays, and that failure is its cause. */
static bool is_missed_quorum(const hf_fiber *self, const hf_scope *scope, hf_status status)
{
    return status == HF_ERR_FAILED && scope->policy.hooks == &hf_join_quorum_hooks && scope->first != NULL &&
           !hf_crew_tells_first(self->crew);
}

static hf_status report(hf_fiber *self, hf_scope *scope, hf_status status, bool is_timeout)
{
    if (status == HF_OK) {
        return HF_OK;
    }
    hf_assert(!is_timeout || status == HF_ERR_TIMEOUT);
    if (is_timeout) {
        char text[HF_MESSAGE_LEN_MAX];
        (void)timeout_of(scope, text, sizeof text);
        return hf_refuse_at(self, status, "hf_join", "%s", text);
    }
    if (is_missed_quorum(self, scope, status)) {
        hf_runtime *rt = self->kind == HF_FIBER_THREAD ? NULL : self->rt;
        hf_self_fail(self, hf_box_new(rt, status, NULL, "hf_join", self->failure->message, hf_box_ref(scope->first)));
    } else if (scope->first != NULL && scope->first->as == status) {
        hf_self_fail(self, hf_box_ref(scope->first));
    } else if (status == HF_ERR_CANCELED && scope->ended_cause == HF_CAUSE_NONE && scope->tally.canceled > 0) {
        unsigned long long count = scope->tally.canceled;
        return hf_refuse_at(self, status, "hf_join", "%llu of the %llu children of scope '%s' %s canceled", count,
                            (unsigned long long)scope->tally.forked, scope->name, count == 1 ? "was" : "were");
    } else if (status == HF_ERR_CANCELED && scope->ended_cause != HF_CAUSE_NONE) {
        return hf_refuse_at(self, status, "hf_join", "scope '%s' was canceled (%s: %s)", scope->name,
                            hf_cause_name((hf_cause)scope->ended_cause), scope->ended_reason);
    } else if (self->last_status != status || self->last_where != NULL) {
        hf_self_note(self, status, "hf_join"); /* unless the result hook said more */
    }
    return status;
}

hf_status hf_join(hf_scope *scope)
{
    HF_VERB_ENTER(self, hf_join, scope != NULL ? scope->rt : NULL);
    if (HF_UNLIKELY(scope == NULL || scope->owner != self)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "only the owner of a scope may join it"));
    }
    await_children(self, scope);
    if (HF_UNLIKELY(self->is_evicted)) {
        HF_LEAVE(self, hf_not_evicted(self, "hf_join"));
    }
    bool is_timeout = false;
    self->hook_depth++; /* the result hook may raise, and must not wait */
    hf_status status = verdict_of(scope, &scope->tally, &is_timeout);
    self->hook_depth--;
    HF_LEAVE(self, HF_LIKELY(status == HF_OK) ? HF_OK : report(self, scope, status, is_timeout));
}
