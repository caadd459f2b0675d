/* Activities wait in a queue and are given to workers: the task, with everything that the worker needs to know. */
#include "engine/core_private.h"

#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "engine/matching.h"
#include "engine/token.h"

void hf_activity_enqueue(hf_core *core, hf_run *run, hf_activity *activity)
{
    hf_assert(activity->task.run == run && activity->task.scheduled_id == activity->scheduled_id);
    bool waits =
        activity->state == HF_ACTIVITY_SCHEDULED || (activity->state == HF_ACTIVITY_STARTED && activity->again);
    if (core->status != HF_OK || !waits || activity->task.queue != NULL) {
        return;
    }
    if (activity->task.order == 0) {
        activity->task.order = hf_order_next(core); /* a first attempt is as old as its event: no record is needed */
    }
    hf_match_add(core, &activity->task, hf_queue_get(core, 'a', hf_owned_str(&run->namespace), activity->task_queue));
}

void hf_activity_again(hf_core *core, hf_activity *activity)
{
    if (activity->state != HF_ACTIVITY_STARTED || activity->again) {
        return;
    }
    HF_PROBE(core, HF_PROBE_TASK_AGAIN);
    hf_run *run = activity->task.run;
    hf_pb_task_moved msg = {.scheduled_id = activity->scheduled_id, .order = hf_order_next(core)};
    hf_record(core, run, HF_CHANGE_TASK_MOVED, &hf_pb_task_moved_type, &msg);
}

static hf_status decode_scheduled(hf_core *core, const hf_activity *activity, hf_arena *arena,
                                  const hf_pb_activity_task_scheduled_event_attributes **ret_attrs)
{
    hf_pb_history_event event;
    hf_str bytes = hf_arena_copy(arena, hf_owned_str(&activity->scheduled));
    hf_status status = hf_pb_decode(&core->op, &hf_pb_history_event_type, bytes, arena, &event);
    if (status == HF_OK) {
        *ret_attrs = event.activity_task_scheduled_event_attributes;
    } else {
        hf_core_break(core, status, "an activity cannot be read: %s", core->op.message);
    }
    return status;
}

/* The options of an activity if somebody changed them since it was scheduled; else false. */
static bool changed_options(hf_core *core, const hf_activity *activity, hf_arena *arena, hf_pb_activity_options *ret)
{
    hf_str bytes = hf_arena_copy(arena, hf_owned_str(&activity->options));
    return bytes.len > 0 && hf_pb_decode(&core->op, &hf_pb_activity_options_type, bytes, arena, ret) == HF_OK;
}

/* As its command said, or as it was changed since. */
static hf_pb_retry_policy *own_policy(hf_core *core, const hf_activity *activity,
                                      const hf_pb_activity_task_scheduled_event_attributes *attrs, hf_arena *arena)
{
    hf_pb_activity_options changed;
    if (!changed_options(core, activity, arena, &changed) || changed.retry_policy == NULL) {
        return attrs->retry_policy;
    }
    if (attrs->retry_policy != NULL) { /* this part of a policy is not among the options */
        changed.retry_policy->non_retryable_error_types = attrs->retry_policy->non_retryable_error_types;
    }
    return changed.retry_policy;
}

hf_pb_retry_policy *hf_activity_policy(hf_core *core, const hf_activity *activity, hf_arena *arena)
{
    const hf_pb_activity_task_scheduled_event_attributes *attrs = NULL;
    if (decode_scheduled(core, activity, arena, &attrs) != HF_OK) {
        return NULL;
    }
    return own_policy(core, activity, attrs, arena);
}

/* As its command said, or as it was changed since. */
static hf_pb_priority *own_priority(hf_core *core, const hf_activity *activity,
                                    const hf_pb_activity_task_scheduled_event_attributes *attrs, hf_arena *arena)
{
    hf_pb_activity_options changed;
    return changed_options(core, activity, arena, &changed) ? changed.priority : attrs->priority;
}

void hf_activity_task(hf_core *core, hf_activity *activity, hf_arena *arena,
                      hf_pb_poll_activity_task_queue_response *response)
{
    hf_assert(activity->state == HF_ACTIVITY_STARTED && !activity->again);
    hf_run *run = activity->task.run;
    const hf_pb_activity_task_scheduled_event_attributes *attrs = NULL;
    if (decode_scheduled(core, activity, arena, &attrs) != HF_OK) {
        return;
    }
    hf_token token = {
        .kind = HF_TASK_ACTIVITY,
        .run = run->number,
        .scheduled_id = activity->scheduled_id,
        .attempt = hf_activity_given(activity),
        .stamp = activity->started_time,
    };
    char bytes[HF_TOKEN_LEN];
    hf_token_encode(core, &token, bytes);
    response->task_token = hf_arena_copy(arena, hf_str_of_len(bytes, sizeof bytes));
    response->workflow_namespace = hf_arena_copy(arena, hf_owned_str(&run->namespace));
    response->workflow_type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
    response->workflow_execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    if (activity->heartbeat_details.len > 0) {
        response->heartbeat_details = HF_ARENA_NEW(arena, hf_pb_payloads);
    }
    if (arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    response->workflow_type->name = hf_arena_copy(arena, hf_owned_str(&run->workflow_type));
    response->workflow_execution->workflow_id = hf_arena_copy(arena, hf_owned_str(&run->workflow_id));
    response->workflow_execution->run_id = hf_arena_copy(arena, hf_owned_str(&run->run_id));
    response->activity_type = attrs->activity_type;
    response->activity_id = attrs->activity_id;
    response->header = attrs->header;
    response->input = attrs->input;
    if (response->heartbeat_details != NULL) {
        hf_str details = hf_arena_copy(arena, hf_owned_str(&activity->heartbeat_details));
        (void)hf_pb_decode(&core->op, &hf_pb_payloads_type, details, arena, response->heartbeat_details);
    }
    response->scheduled_time = hf_pb_timestamp_of((hf_time){activity->first_time});
    response->current_attempt_scheduled_time = hf_pb_timestamp_of((hf_time){activity->scheduled_time});
    response->started_time = hf_pb_timestamp_of((hf_time){activity->started_time});
    response->attempt = activity->attempt;
    /* As scheduled, even if the options have changed since, like a Temporal server. */
    response->schedule_to_close_timeout = attrs->schedule_to_close_timeout;
    response->start_to_close_timeout = attrs->start_to_close_timeout;
    response->heartbeat_timeout = attrs->heartbeat_timeout;
    response->retry_policy = own_policy(core, activity, attrs, arena);
    response->priority =
        hf_priority_merge(arena, hf_run_priority(run, arena), own_priority(core, activity, attrs, arena));
}

void hf_activity_give(hf_core *core, hf_activity *activity, const hf_call *call, hf_str identity)
{
    hf_assert(hf_activity_is_pending(activity) && (activity->state != HF_ACTIVITY_STARTED || activity->again));
    bool again = activity->again;
    hf_pb_activity_started msg = {
        .scheduled_id = activity->scheduled_id,
        .time = again ? activity->started_time : core->now.wall,
        .incarnation = call->in_process ? core->incarnation : 0,
        .identity = identity,
    };
    hf_record(core, activity->task.run, HF_CHANGE_ACTIVITY_STARTED, &hf_pb_activity_started_type, &msg);
}

void hf_activity_start(hf_core *core, hf_activity *activity, hf_call *call)
{
    hf_assert(activity->state == HF_ACTIVITY_SCHEDULED || activity->again);
    const hf_pb_poll_activity_task_queue_request *request = call->request;
    hf_activity_give(core, activity, call, request->identity);
    hf_pb_poll_activity_task_queue_response *response = hf_call_response(core, call);
    if (response != NULL) {
        hf_activity_task(core, activity, call->arena, response);
        hf_call_reply(core, call);
    }
}
