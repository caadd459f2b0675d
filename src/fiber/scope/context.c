/* Verbs by which a fiber asks about itself: whether and why it is canceled, how much time is left, its shields, its local
 * values. */
#include "fiber/crew/crew_private.h"
#include "fiber/crew/strand.h"
#include "fiber/sched/wait.h"
#include "fiber/verbs.h"

void hf_here(const char *file, int line)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    if (self != NULL && self->crew != NULL) {
        hf_set_place(self, file, line);
    }
}

static hf_instant deadline_around(const hf_fiber *self)
{
    if (self->scope != NULL) {
        return self->scope->deadline;
    }
    return self->branch != NULL ? self->branch->scope->deadline : HF_INSTANT_NEVER;
}

/* A deadline may have passed while the fiber computed: its alarm, or the message from the scheduler that has the alarm,
 * is only handled between turns. */
static bool is_canceled_by_now(hf_fiber *self)
{
    if (hf_is_canceled(self)) {
        return true;
    }
    hf_instant deadline = deadline_around(self);
    if (deadline.ns == INT64_MAX || self->hook_depth != 0 || self->sched == NULL || self->crew != NULL) {
        return false;
    }
    hf_instant now = hf_rt_now(self->rt);
    if (now.ns >= deadline.ns) {
        hf_assert(self->in_lib != 0); /* fiber-F4 */
        (void)hf_alarms_run(self->sched, now);
        hf_sched_drain(self->sched);
    }
    return hf_is_canceled(self);
}

hf_status hf_canceled(void)
{
    HF_VERB_ENTER(self, hf_canceled, NULL);
    hf_count_if_evicted(self);
    bool canceled = is_canceled_by_now(self);
    if (canceled) {
        hf_self_note(self, HF_ERR_CANCELED, "hf_canceled");
    }
    HF_LEAVE(self, canceled ? HF_ERR_CANCELED : HF_OK);
}

hf_cause hf_cancel_cause(const char **ret_reason)
{
    const char *reason = "";
    hf_cause cause = HF_CAUSE_NONE;
    hf_fiber *self = hf_enter(NULL);
    if (self != NULL) {
        hf_count_if_evicted(self);
        if (is_canceled_by_now(self)) {
            cause = (hf_cause)self->cx->cause;
            reason = self->cx->reason;
        }
        hf_leave(self);
    }
    if (ret_reason != NULL) {
        *ret_reason = reason;
    }
    return cause;
}

hf_span hf_time_left(void)
{
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        return HF_SPAN_UNLIMITED;
    }
    hf_count_if_evicted(self);
    hf_instant deadline = deadline_around(self);
    hf_span left = HF_SPAN_UNLIMITED;
    if (deadline.ns != INT64_MAX) {
        int64_t ns = deadline.ns - (self->crew != NULL ? hf_crew_now(self->crew) : hf_rt_now(self->rt)).ns;
        ns = ns > 0 ? ns : -1; /* as a timeout, 0 would mean "no bound" */
        left = hf_nanoseconds(self->crew != NULL ? hf_crew_time_left(self->crew, ns) : ns);
    }
    hf_leave(self);
    return left;
}

/* ---- Shields: scopes without children that an outer cancel does not enter ---------------------------------------- */

hf_status(hf_shield_open)(hf_span bound, hf_shield **ret_shield)
{
    HF_VERB_ENTER(self, hf_shield_open, NULL);
    if (ret_shield == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_shield_open needs a place for the shield"));
    }
    if (bound.ns <= 0 || bound.ns == INT64_MAX) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "a shield needs a bound above 0"));
    }
    if (self->rt == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "this thread belongs to no runtime: nothing can cancel it"));
    }
    if (HF_UNLIKELY(self->crew != NULL) && hf_crew_check_span(self, "hf_shield_open", "the bound", bound) != HF_OK) {
        HF_LEAVE(self, HF_ERR_INVALID);
    }
    hf_scope_options options = {.size = sizeof options, .timeout = bound};
    hf_scope *scope = NULL;
    hf_status status = hf_scope_open_on(self, self->rt, &scope, &options, true);
    if (status == HF_OK) {
        hf_assert(scope->is_shield && self->scope == scope && self->cx == &scope->cx); /* fiber-C1 */
        *ret_shield = (hf_shield *)(void *)scope;
    }
    HF_LEAVE(self, status);
}

hf_status hf_shield_close(hf_shield *shield)
{
    if (shield == NULL) {
        return HF_OK;
    }
    hf_scope *scope = (hf_scope *)(void *)shield;
    HF_VERB_ENTER(self, hf_shield_close, scope->rt);
    if (scope->owner != self || !scope->is_shield) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "only the owner of an open shield may close it"));
    }
    HF_LEAVE(self, hf_scope_close_on(self, scope));
}

/* ---- Local values ------------------------------------------------------------------------------------------------ */

hf_status hf_local_set(const hf_local *key, void *value)
{
    HF_VERB_ENTER(self, hf_local_set, NULL);
    if (self->kind == HF_FIBER_THREAD || key == NULL) {
        HF_LEAVE(self,
                 hf_refuse(self, HF_ERR_MISUSE,
                           "hf_local_set needs a key, and a fiber to set it on: a plain thread has thread-locals"));
    }
    size_t count = 0;
    for (const hf_binding *at = self->own_locals; at != NULL; at = at->own_next) {
        count++;
    }
    if (count >= HF_LOCALS_MAX) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_LIMIT, "a fiber binds at most %d local values", HF_LOCALS_MAX));
    }
    hf_binding *binding = hf_rt_alloc(self->rt, sizeof *binding);
    if (binding == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_NOMEM, "no memory for a local value"));
    }
    binding->key = key;
    binding->value = value;
    binding->outer = self->locals;
    binding->own_next = self->own_locals;
    self->locals = binding;
    self->own_locals = binding;
    HF_LEAVE(self, HF_OK);
}

void *hf_local_get(const hf_local *key)
{
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        return NULL;
    }
    void *value = NULL;
    for (const hf_binding *at = self->locals; at != NULL; at = at->outer) {
        if (at->key == key) {
            value = at->value;
            break;
        }
    }
    hf_leave(self);
    return value;
}

void hf_locals_drop(hf_fiber *self, const hf_binding *until)
{
    hf_assert(self->kind != HF_FIBER_THREAD); /* hf_local_set refuses threads */
    while (self->own_locals != until) {
        hf_binding *next = self->own_locals->own_next;
        hf_rt_free(self->rt, self->own_locals, sizeof *self->own_locals);
        self->own_locals = next;
    }
}
