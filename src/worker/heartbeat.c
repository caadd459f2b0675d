/* Heartbeats: the function reports its progress, and a fiber of the activity sends the latest report. The answer says
 * whether the activity was canceled.
 *
 * With a heartbeat timeout that fiber exists from the beginning and cancels the function when the service has taken
 * no heartbeat in time. The service ends the attempt then, too, but an activity that sends nothing gets no answer
 * that says so. */
#include "worker/memo_private.h"

#include "base/status.h"
#include "history/payload.h"

#include <stdio.h>

typedef struct hf_activity_work activity;

static hf_span throttle_of(const activity *act)
{
    hf_span span = act->facts.heartbeat.ns > 0 ? hf_nanoseconds(act->facts.heartbeat.ns / 10 * 8)
                                               : act->worker->options.heartbeat_throttle;
    hf_assert(span.ns > 0);
    return span.ns < hf_seconds(HF_THROTTLE_MAX_SECONDS).ns ? span : hf_seconds(HF_THROTTLE_MAX_SECONDS);
}

hf_payload hf_activity_take_details(activity *act)
{
    hf_spin_lock(&act->lock);
    hf_payload details = act->details;
    act->details = hf_payload_none();
    act->is_dirty = false;
    hf_spin_unlock(&act->lock);
    return details;
}

/* `details` was not sent. The next heartbeat or the result sends it, unless there is a newer one. */
static void give_back(activity *act, hf_payload details)
{
    hf_spin_lock(&act->lock);
    bool is_newest = !act->is_dirty;
    if (is_newest) {
        act->details = details;
        act->is_dirty = true;
    }
    hf_spin_unlock(&act->lock);
    if (is_newest) {
        HF_IGNORE(hf_chan_try_send(atomic_load(&act->beat), ""));
    } else {
        hf_payload_free(&details);
    }
}

/* The service has taken no heartbeat within the timeout, so to the service the attempt has timed out. */
static void lapse(activity *act)
{
    hf_assert(act->facts.heartbeat.ns > 0 && !act->has_lapsed); /* once, and only of a timeout */
    act->lapse_ns = INT64_MAX;
    act->has_lapsed = true;
    hf_activity_note_why(act, HF_WHY_TIMED_OUT);
    hf_fiber *self = hf_enter(NULL);
    hf_scope_cancel_post(act->work, HF_CAUSE_DEADLINE, "the heartbeat timeout of the activity is over", false);
    hf_leave(self);
}

/* Handles the answer to a heartbeat. `why` is the message of a failed status. */
static void hear(activity *act, hf_status status, const hf_pb_record_activity_task_heartbeat_response *response,
                 const char *why)
{
    hf_assert(status != HF_OK || response != NULL);      /* service-V3 */
    if (status == HF_OK && act->lapse_ns != INT64_MAX) { /* the service took the heartbeat before now */
        act->lapse_ns = hf_ns_later(hf_now(NULL).ns, act->facts.heartbeat);
    }
    if (status == HF_OK && response->cancel_requested) {
        atomic_store(&act->is_cancel_requested, true);
        hf_activity_note_why(act, HF_WHY_CANCELED);
        HF_IGNORE(hf_scope_cancel(act->work, .reason = "the workflow canceled the activity"));
    } else if (status == HF_OK && response->activity_reset) {
        hf_activity_note_why(act, HF_WHY_RESET);
        HF_IGNORE(hf_scope_cancel(act->work, .reason = "the activity was reset"));
    } else if (status == HF_OK && response->activity_paused) {
        hf_activity_note_why(act, HF_WHY_PAUSED);
        HF_IGNORE(hf_scope_cancel(act->work, .reason = "the activity was paused"));
    } else if (status == HF_ERR_NOT_FOUND && !atomic_load(&act->is_gone)) {
        (void)snprintf(act->gone_why, sizeof act->gone_why, "%.*s", (int)sizeof act->gone_why - 1, why);
        atomic_store(&act->is_gone, true);
        hf_activity_note_why(act, HF_WHY_GONE);
        HF_IGNORE(hf_scope_cancel(act->work, .reason = act->gone_why));
    }
}

/* A heartbeat that was refused with a status that stays is not sent again; the next one may have other details. */
static void tell_refused_beat(const activity *act, hf_status status, const hf_op *op)
{
    if (status != HF_OK && status != HF_ERR_NOT_FOUND && !hf_guard_is_shut(&act->worker->guard)) {
        hf_log(act->worker->rt, HF_LOG_WARN, "heartbeat_refused", "activity=%s id=%s message=%s", act->facts.name,
               act->facts.id, op->message);
    }
}

/* Waits until there is something to send. */
static hf_status await_beat(activity *act, hf_chan *beat)
{
    char token = 0;
    while (act->lapse_ns != INT64_MAX) {
        int64_t left = act->lapse_ns - hf_now(NULL).ns;
        hf_status status = left > 0 ? hf_chan_recv(beat, &token, .timeout = hf_nanoseconds(left)) : HF_ERR_TIMEOUT;
        if (status != HF_ERR_TIMEOUT) {
            return status;
        }
        lapse(act);
    }
    return hf_chan_recv(beat, &token);
}

static hf_status sleep_until(int64_t ns)
{
    int64_t left = ns - hf_now(NULL).ns;
    return left > 0 ? hf_sleep(hf_nanoseconds(left)) : HF_OK;
}

/* Waits between two heartbeats. Meanwhile the last one that was taken may become too old. A heartbeat that was
 * refused with a status that may pass is sent again sooner, because after a whole pause the timeout would be over. */
static hf_status pause_beats(activity *act, bool is_refused)
{
    hf_span span = throttle_of(act);
    span = is_refused ? hf_nanoseconds(span.ns / 8) : span;
    int64_t until = hf_ns_later(hf_now(NULL).ns, span);
    if (act->lapse_ns < until) {
        HF_TRY(sleep_until(act->lapse_ns));
        lapse(act);
    }
    return sleep_until(until);
}

/* Sends the latest heartbeat, waits a while, and repeats. The first one is sent at once, and the latest one is never
 * lost. */
static hf_status send_beats(void *arg)
{
    activity *act = arg;
    hf_worker *worker = act->worker;
    hf_chan *beat = atomic_load(&act->beat);
    hf_assert(beat != NULL);
    for (;;) {
        HF_TRY(await_beat(act, beat));
        hf_arena arena;
        hf_arena_init(&arena, worker->memory);
        hf_payload details = hf_activity_take_details(act);
        hf_pb_record_activity_task_heartbeat_request request = {.namespace = worker->namespace_,
                                                                .identity = worker->identity,
                                                                .task_token = act->task->task_token,
                                                                .details = hf_payload_encode(&arena, details)};
        hf_call call;
        hf_op op;
        hf_op_init(&op);
        hf_worker_call_init(worker, &call, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT, &request, &arena);
        hf_status status = arena.status == HF_OK ? hf_service_ask(&op, worker->service, &call)
                                                 : hf_fail(&op, HF_ERR_NOMEM, "no memory for a heartbeat");
        hear(act, status, call.response, call.message);
        hf_arena_deinit(&arena);
        if (hf_status_may_pass(status) || status == HF_ERR_CANCELED) {
            give_back(act, details); /* also when the activity has just ended, which cancels this */
        } else {
            hf_payload_free(&details);
            tell_refused_beat(act, status, &op);
        }
        HF_TRY(pause_beats(act, hf_status_may_pass(status)));
    }
}

/* Called by one fiber at a time, which has set is_beating. If the rest fails, the channel stays, because others may
 * have seen it. */
static hf_status start_beats(activity *act)
{
    hf_status status = HF_OK;
    hf_assert(atomic_load(&act->is_beating));
    if (atomic_load(&act->beat) == NULL) {
        hf_chan *beat = NULL;
        status = hf_chan_new(1, &beat, .name = "heartbeats", .capacity = 1, .runtime = act->worker->rt);
        atomic_store(&act->beat, beat);
    }
    if (status == HF_OK) {
        status = hf_fork(act->beats, send_beats, act, .name = "heartbeats");
    }
    if (status != HF_OK) {
        atomic_store(&act->is_beating, false); /* the next heartbeat tries again */
    }
    return status;
}

void hf_activity_expect_beats(activity *act)
{
    hf_assert(!atomic_load(&act->is_beating)); /* the function has not begun */
    if (act->facts.heartbeat.ns > 0) {
        act->lapse_ns = hf_ns_later(hf_now(NULL).ns, act->facts.heartbeat);
        atomic_store(&act->is_beating, true);
        (void)start_beats(act); /* else the first heartbeat tries again */
    }
}

hf_status hf_activity_heartbeat(hf_payload details)
{
    activity *act = hf_local_get(&hf_activity_local);
    if (act == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_activity_heartbeat can only be called in an activity");
    }
    hf_op op;
    hf_op_init(&op);
    if (hf_payload_check(&op, "hf_activity_heartbeat: the payload", details) != HF_OK) {
        return hf_failure_raise_op(&op);
    }
    if (act->body != NULL) {
        return hf_memo_beat(act, details);
    }
    if (act->job != NULL) {
        return hf_canceled(); /* nobody waits for it */
    }
    hf_payload copy = hf_payload_none();
    HF_TRY(hf_payload_copy(details, &copy));
    hf_spin_lock(&act->lock);
    hf_payload old = act->details;
    act->details = copy;
    act->is_dirty = true;
    hf_spin_unlock(&act->lock);
    hf_payload_free(&old);
    if (!atomic_exchange(&act->is_beating, true)) {
        HF_TRY(start_beats(act));
    }
    hf_chan *beat = atomic_load(&act->beat);
    if (beat != NULL) {                        /* else another fiber is about to send the first */
        HF_IGNORE(hf_chan_try_send(beat, "")); /* full: a heartbeat is about to be sent, with these details */
    }
    return hf_canceled();
}
