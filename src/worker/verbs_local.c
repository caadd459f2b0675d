/* Local activities and side effects as a workflow sees them. Verbs run on the crew's fibers; the functions for the driver are
 * called between turns. local.h has the picture.
 *
 *     locals: asked for --> begun --> gone: its end was given to the fiber
 *                |            +-----> gone: the fiber was canceled and does not wait (HF_CANCEL_TRY, HF_CANCEL_ABANDON)
 *                +--> gone: the fiber was canceled in the step that asked for it */
#include "worker/local.h"

#include "base/span.h"
#include "fiber/crew/crew_private.h"
#include "fiber/crew/strand.h"
#include "fiber/verbs.h"
#include "history/limits.h"

#include <inttypes.h>
#include <stdio.h>

static bool abort_local(hf_wait *wait)
{
    hf_wf_local *local = HF_CONTAINER(wait, hf_wf_local, wait);
    if (local->is_given_up || !hf_node_is_linked(&local->node)) {
        return false;
    }
    local->is_given_up = true;
    if (!local->is_begun || !local->is_joined || wait->fiber->is_evicted) {
        hf_list_remove(&local->node);
    }
    return true;
}

static bool abort_end(hf_wait *wait)
{
    hf_wf_local *local = HF_CONTAINER(wait, hf_wf_local, wait);
    bool is_over = wait->fiber->is_evicted && hf_node_is_linked(&local->node);
    if (is_over) {
        hf_list_remove(&local->node);
    }
    return is_over;
}

static const hf_wait_kind LOCAL = {"hf_activity_run_local", abort_local};
static const hf_wait_kind LOCAL_END = {"hf_activity_run_local, canceled", abort_end};

static hf_status join_local(hf_fiber *self, hf_wf_local *local)
{
    local->is_given_up = false;
    if (local->end != NULL) {
        return HF_OK; /* it ended in the same turn */
    }
    hf_assert(hf_node_is_linked(&local->node));
    local->is_cancel_asked = true; /* the driver tells it, after this turn */
    hf_wait_init(&local->wait, self, &LOCAL_END, local, local->wait.object_name);
    return hf_park(self, &local->wait, HF_INSTANT_NEVER); /* nobody but its end or an eviction wakes it */
}

/* The fiber does not wait any more. */
static void leave_local(hf_wf_local *local, hf_on_cancel how)
{
    if (local->job != NULL) { /* else it was not started, as in a replay */
        local->job->is_left = true;
        local->job->is_abandoned = how == HF_CANCEL_ABANDON;
        local->job = NULL;
    }
}

/* Waits for the end. HF_OK: local->end tells it. */
static hf_status wait_for(hf_fiber *self, hf_wf *wf, hf_wf_local *local, const char *name, hf_on_cancel how)
{
    local->seq = ++wf->local_seq;
    local->is_joined = how == HF_CANCEL_WAIT;
    local->is_begun = local->is_given_up = local->is_cancel_asked = false;
    local->job = NULL;
    local->end = NULL;
    local->scope = hf_crew_self_scope();
    wf->locals_count++;
    hf_wait_init(&local->wait, self, &LOCAL, local, name);
    hf_list_push_back(&wf->locals, &local->node);
    hf_status status = hf_park(self, &local->wait, HF_INSTANT_NEVER);
    if (status == HF_ERR_CANCELED && local->is_begun && local->is_joined) {
        status = join_local(self, local);
        self->last_status = status; /* its outcome tells what happened, not the cancel */
        self->last_where = NULL;
    } else if (status == HF_ERR_CANCELED) {
        leave_local(local, how);
    }
    if (hf_node_is_linked(&local->node)) {
        hf_list_remove(&local->node);
    }
    hf_assert(wf->locals_count > 0);
    wf->locals_count--;
    return status;
}

/* ---- Outcomes ------------------------------------------------------------------------------------------------------ */

static hf_status failed(hf_wf *wf, const hf_wf_local *local, hf_payload *ret_details)
{
    hf_pb_failure *failure = local->end->failure;
    hf_pb_activity_failure_info info = {.activity_id = local->end->id};
    hf_assert(failure != NULL);
    if (ret_details != NULL && hf_payload_decode(hf_failure_details_of(failure), &wf->payloads, ret_details) != HF_OK) {
        wf->is_nomem = true;
        return hf_raise(HF_ERR_NOMEM, "no memory for the details of a failure");
    }
    switch (failure->failure_info_case) {
    case HF_PB_FAILURE_CANCELED_FAILURE_INFO:
        return hf_wf_is_canceled("hf_activity_run_local")
                   ? HF_ERR_CANCELED /* and why is noted */
                   : hf_wf_raise_activity(wf, HF_ERR_CANCELED, "ActivityCanceled", local->name, "was canceled", &info,
                                          failure);
    case HF_PB_FAILURE_TIMEOUT_FAILURE_INFO:
        return hf_wf_raise_activity(wf, HF_ERR_TIMEOUT, "ActivityTimedOut", local->name, "timed out", &info, failure);
    default:
        return hf_wf_raise_activity(wf, HF_ERR_FAILED, "ActivityFailed", local->name, "failed", &info, failure);
    }
}

static hf_status outcome_of(hf_wf *wf, const hf_wf_local *local, hf_payload *ret_out, hf_payload *ret_details)
{
    hf_assert(local->end != NULL && local->end->seq == local->seq); /* worker-J2 */
    if (local->end->failure != NULL) {
        return failed(wf, local, ret_details);
    }
    if (hf_payload_decode(local->end->result, &wf->payloads, ret_out) != HF_OK) {
        wf->is_nomem = true;
        return hf_raise(HF_ERR_NOMEM, "no memory for the result of '%s'", local->name);
    }
    return HF_OK;
}

/* ---- The verbs ----------------------------------------------------------------------------------------------------- */

static hf_status may_begin(hf_fiber *self, const hf_wf *wf, const char *verb)
{
    HF_TRY(hf_not_evicted(self, verb));
    HF_TRY(hf_wf_not_over(self, wf, verb));
    if (wf->locals_count >= HF_LOCAL_ACTIVITIES_MAX) {
        return hf_refuse_at(self, HF_ERR_LIMIT, verb, "%s: a workflow has at most %d local activities at once", verb,
                            HF_LOCAL_ACTIVITIES_MAX);
    }
    return hf_may_wait(self, verb);
}

static hf_activity_options as_activity(const hf_local_options *o)
{
    return (hf_activity_options){.size = sizeof(hf_activity_options),
                                 .start_to_close = o->start_to_close,
                                 .schedule_to_close = o->schedule_to_close,
                                 .schedule_to_start = o->schedule_to_start,
                                 .attempts_max = o->attempts_max,
                                 .retry_initial = o->retry_initial,
                                 .retry_coefficient = o->retry_coefficient,
                                 .retry_max = o->retry_max,
                                 .final_types = o->final_types,
                                 .on_cancel = o->on_cancel,
                                 .summary = o->summary};
}

static hf_status check(hf_fiber *self, hf_wf *wf, const char *name, hf_payload in, const hf_local_options *options)
{
    static const char VERB[] = "hf_activity_run_local";
    hf_op op;
    hf_op_init(&op);
    if (wf == NULL) {
        return hf_refuse(self, HF_ERR_MISUSE,
                         "hf_activity_run_local is for workflows; elsewhere call the function itself");
    }
    HF_TRY(hf_not_evicted(self, VERB));
    const hf_activity_options same = as_activity(options);
    if (hf_wf_check_work(&op, wf, name, in, &same) != HF_OK ||
        hf_span_check(&op, VERB, ".timer_after", options->timer_after, HF_MAY_BE_UNLIMITED) != HF_OK) {
        return hf_refuse_at(self, op.status, VERB, "%s", op.message);
    }
    return may_begin(self, wf, VERB);
}

/* One call of the service's, so to speak: all attempts up to a pause that becomes a timer. */
static hf_status run_until_pause(hf_wf *wf, hf_wf_local *local, const hf_local_options *options)
{
    HF_VERB_ENTER(self, hf_activity_run_local, NULL);
    hf_status status = may_begin(self, wf, "hf_activity_run_local");
    HF_LEAVE(self, status != HF_OK ? status : wait_for(self, wf, local, local->name, options->on_cancel));
}

static hf_status enter(const char *name, hf_payload in, const hf_local_options *options, hf_wf **ret_wf)
{
    HF_VERB_ENTER(self, hf_activity_run_local, NULL);
    *ret_wf = hf_wf_self();
    HF_LEAVE(self, check(self, *ret_wf, name, in, options));
}

hf_status hf_activity_run_local_with(const char *name, hf_payload in, hf_payload *ret_out,
                                     const hf_local_options *options)
{
    HF_OPTIONS(hf_local_options, options, hf_activity_run_local);
    hf_wf *wf = NULL;
    HF_TRY(enter(name, in, options, &wf));
    const hf_activity_options same = as_activity(options);
    hf_wf_local local = {.wf = wf,
                         .name = name,
                         .in = in,
                         .options = &same,
                         .timer_after = options->timer_after.ns > 0 ? options->timer_after : hf_minutes(1),
                         .attempt = 1,
                         .first_seq = wf->local_seq + 1,
                         .line = options->line,
                         .file = options->file};
    HF_TRY(run_until_pause(wf, &local, options));
    while (local.end->backoff.ns > 0) { /* a timer, and a new number with the next attempt */
        hf_span pause = local.end->backoff;
        local.attempt = local.end->attempt + 1;
        local.scheduled = local.end->scheduled;
        hf_here(options->file, options->line);
        HF_TRY((hf_sleep)(pause)); /* the function: the place is the caller's */
        HF_TRY(run_until_pause(wf, &local, options));
    }
    return outcome_of(wf, &local, ret_out, options->ret_details);
}

static hf_status run_effect(hf_wf **ret_wf, hf_wf_local *local)
{
    HF_VERB_ENTER(self, hf_side_effect, NULL);
    hf_wf *wf = hf_wf_self();
    if (wf == NULL || local->effect == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE,
                                 "hf_side_effect needs a function, and can only be called in a workflow"));
    }
    hf_status status = may_begin(self, wf, "hf_side_effect");
    local->file = hf_crew_self_place(&local->line);
    *ret_wf = local->wf = wf;
    local->first_seq = wf->local_seq + 1;
    HF_LEAVE(self, status != HF_OK ? status : wait_for(self, wf, local, local->name, HF_CANCEL_WAIT));
}

hf_status(hf_side_effect)(hf_effect effect, void *arg, hf_payload *ret_out)
{
    hf_wf *wf = NULL;
    hf_wf_local local = {.name = "hf_side_effect", .effect = effect, .effect_arg = arg, .attempt = 1};
    HF_TRY(run_effect(&wf, &local));
    return outcome_of(wf, &local, ret_out, NULL);
}

/* ---- For the driver ------------------------------------------------------------------------------------------------ */

void hf_wf_locals_begin(hf_wf *wf)
{
    HF_LIST_EACH(node, &wf->locals)
    {
        HF_CONTAINER(node, hf_wf_local, node)->is_begun = true;
    }
}

hf_wf_local *hf_wf_local_find(hf_wf *wf, uint64_t seq)
{
    HF_LIST_EACH(node, &wf->locals)
    {
        hf_wf_local *local = HF_CONTAINER(node, hf_wf_local, node);
        if (local->seq == seq) {
            return local;
        }
    }
    return NULL;
}

void hf_wf_local_resolve(hf_wf_local *local, const hf_local_end *end)
{
    hf_assert(local->is_begun && local->end == NULL); /* worker-J2 */
    hf_fiber *self = hf_enter(NULL);
    hf_list_remove(&local->node);
    local->end = end;
    local->job = NULL;
    if (!local->is_given_up) { /* else its fiber was woken by a cancel, and sees the end when it runs */
        hf_wake(&local->wait, HF_OK);
    }
    hf_leave(self);
}

hf_status hf_wf_local_replay(hf_op *op, hf_wf *wf, const hf_pb_history_event *event)
{
    hf_local_end *end = HF_ARENA_NEW(&wf->recorder.arena, hf_local_end);
    if (end == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the end of a local activity");
    }
    HF_TRY(hf_local_marker_read(op, event, &wf->recorder.arena, end));
    hf_wf_local *local = hf_wf_local_find(wf, end->seq);
    if (local == NULL || !hf_str_equal(hf_str_of(local->name), end->type)) {
        char at[160] = "";
        hf_wf_put_place(at, sizeof at, local != NULL ? local->file : NULL, local != NULL ? local->line : 0);
        return hf_fail(
            op, HF_ERR_CONFLICT,
            "not deterministic: the history has the end of local activity %" PRIu64 " type=%.*s (event %" PRId64
            "), the workflow made %s%s%s",
            end->seq, HF_STR_ARGS(end->type), event->event_id,
            local == NULL ? "no such one" : "one with that number and type=", local == NULL ? "" : local->name, at);
    }
    hf_crew_set_now(wf->crew, end->completed);
    /* Markers of earlier versions have no scope: the numbers of scopes are given as they were. */
    bool has_scope = event->user_metadata != NULL && event->user_metadata->details != NULL;
    if (!hf_local_marker_record(local, end, has_scope)) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a marker");
    }
    hf_wf_local_resolve(local, end);
    return HF_OK;
}
