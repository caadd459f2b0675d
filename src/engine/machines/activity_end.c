/* The events that end an activity. ActivityTaskStarted is written only now, just before the outcome: attempts that failed and were
 * tried again are not in the history. */
#include "engine/core_private.h"

#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "history/limits.h"
#include "history/payload.h"

#include <stdio.h>

/* ActivityTaskStarted, just before the outcome; its id, 0 when it is buffered. */
static int64_t emit_started(hf_core *core, hf_run *run, const hf_activity *activity)
{
    hf_assert(activity->state == HF_ACTIVITY_STARTED && activity->attempt > 0);
    hf_pb_failure last = {0};
    hf_pb_activity_task_started_event_attributes body = {
        .scheduled_event_id = activity->scheduled_id,
        .identity = hf_arena_copy(&core->scratch, hf_owned_str(&activity->identity)),
        .attempt = activity->attempt,
    };
    if (activity->last_failure.len > 0) {
        hf_str bytes = hf_arena_copy(&core->scratch, hf_owned_str(&activity->last_failure));
        if (hf_pb_decode(&core->op, &hf_pb_failure_type, bytes, &core->scratch, &last) == HF_OK) {
            body.last_failure = &last;
        }
    }
    hf_pb_history_event event = {
        .event_time = hf_pb_timestamp_of((hf_time){activity->started_time}),
        .event_type = HF_EVENT_TYPE_ACTIVITY_TASK_STARTED,
        .attributes_case = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_STARTED_EVENT_ATTRIBUTES,
        .activity_task_started_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
    return event.event_id;
}

void hf_activity_emit_completed(hf_core *core, hf_run *run, const hf_activity *activity, hf_pb_payloads *result,
                                hf_str identity)
{
    int64_t scheduled_id = activity->scheduled_id;
    hf_pb_activity_task_completed_event_attributes body = {
        .result = result,
        .scheduled_event_id = scheduled_id,
        .started_event_id = emit_started(core, run, activity),
        .identity = identity,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
        .attributes_case = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_COMPLETED_EVENT_ATTRIBUTES,
        .activity_task_completed_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
}

void hf_activity_emit_failed(hf_core *core, hf_run *run, const hf_activity *activity, hf_pb_failure *failure,
                             hf_str identity, int32_t retry_state)
{
    hf_pb_activity_task_failed_event_attributes body = {
        .failure = failure,
        .scheduled_event_id = activity->scheduled_id,
        .started_event_id = emit_started(core, run, activity),
        .identity = identity,
        .retry_state = retry_state,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_ACTIVITY_TASK_FAILED,
        .attributes_case = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_FAILED_EVENT_ATTRIBUTES,
        .activity_task_failed_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
}

/* The timeout of this type, ns. */
static int64_t bound_of(const hf_activity *activity, int32_t type)
{
    switch (type) {
    case HF_TIMEOUT_TYPE_START_TO_CLOSE:
        return activity->start_to_close;
    case HF_TIMEOUT_TYPE_SCHEDULE_TO_START:
        return activity->schedule_to_start;
    case HF_TIMEOUT_TYPE_HEARTBEAT:
        return activity->heartbeat;
    default:
        return activity->schedule_to_close;
    }
}

hf_pb_failure *hf_activity_timeout_failure(hf_core *core, const hf_activity *activity, int32_t type, const char *more)
{
    char text[160];
    (void)snprintf(text, sizeof text, "activity %s timeout after %.10g s%s",
                   hf_pb_enum_brief(&hf_pb_timeout_type_enum, type), (double)bound_of(activity, type) / 1e9, more);
    hf_str message = hf_arena_copy(&core->scratch, hf_str_of(text));
    hf_pb_failure *failure = hf_failure_timeout(&core->scratch, type, message);
    if (failure == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    return failure;
}

/* Whether the last attempt ended with the same timeout: that is reported once. */
static bool says_the_same(const hf_pb_failure *last, const hf_pb_failure *failure)
{
    return last->failure_info_case == HF_PB_FAILURE_TIMEOUT_FAILURE_INFO && last->cause == NULL &&
           hf_str_equal(last->message, failure->message);
}

/* Adds the last heartbeat's details and the failure of the attempt before. For the final failure only. */
static hf_pb_failure *add_last_words(hf_core *core, const hf_activity *activity, hf_pb_failure *failure)
{
    hf_arena *arena = &core->scratch;
    if (failure != NULL && activity->heartbeat_details.len > 0) {
        hf_pb_payloads *details = HF_ARENA_NEW(arena, hf_pb_payloads);
        hf_str bytes = hf_arena_copy(arena, hf_owned_str(&activity->heartbeat_details));
        if (details != NULL && hf_pb_decode(&core->op, &hf_pb_payloads_type, bytes, arena, details) == HF_OK) {
            failure->timeout_failure_info->last_heartbeat_details = details;
        }
    }
    if (failure != NULL && activity->last_failure.len > 0) {
        hf_pb_failure *last = HF_ARENA_NEW(arena, hf_pb_failure);
        hf_str bytes = hf_arena_copy(arena, hf_owned_str(&activity->last_failure));
        if (last != NULL && hf_pb_decode(&core->op, &hf_pb_failure_type, bytes, arena, last) == HF_OK) {
            failure->cause = says_the_same(last, failure) ? NULL : last;
        }
    }
    if (failure == NULL || arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    hf_pb_failure *each = failure; /* with one more cause than `last` it may have too many */
    for (int depth = 1; each != NULL; depth++, each = each->cause) {
        each->cause = depth < HF_FAILURE_DEPTH_MAX ? each->cause : NULL;
    }
    return failure;
}

void hf_activity_emit_timed_out(hf_core *core, hf_run *run, const hf_activity *activity, hf_pb_failure *failure,
                                int32_t retry_state)
{
    hf_assert(hf_activity_is_pending(activity) &&
              !hf_activity_is_paused(activity)); /* no timeout passes while it is paused */
    hf_pb_activity_task_timed_out_event_attributes body = {
        .failure = add_last_words(core, activity, failure),
        .scheduled_event_id = activity->scheduled_id,
        .retry_state = retry_state,
    };
    if (activity->state == HF_ACTIVITY_STARTED) {
        body.started_event_id = emit_started(core, run, activity);
    }
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT,
        .attributes_case = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_TIMED_OUT_EVENT_ATTRIBUTES,
        .activity_task_timed_out_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
}

void hf_activity_emit_canceled(hf_core *core, hf_run *run, const hf_activity *activity, hf_pb_payloads *details,
                               hf_str identity)
{
    hf_assert(activity->cancel_requested_id > 0 && hf_activity_is_pending(activity));
    hf_pb_activity_task_canceled_event_attributes body = {
        .details = details,
        .latest_cancel_requested_event_id = activity->cancel_requested_id,
        .scheduled_event_id = activity->scheduled_id,
        .identity = identity,
    };
    if (activity->state == HF_ACTIVITY_STARTED) {
        body.started_event_id = emit_started(core, run, activity);
    }
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED,
        .attributes_case = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_CANCELED_EVENT_ATTRIBUTES,
        .activity_task_canceled_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
}
