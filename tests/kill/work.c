/* The workers of the killed program. A workflow's code is its history: the first task asks for an activity and a timer; when both are
 * there and three signals it is done; a cancel request ends it. */
#include "kill/child.h"

#include "base/rng.h"
#include "history/history.h"
#include "history/payload.h"

#include <stdio.h>

typedef struct seen {
    unsigned signals;
    bool is_begun, has_result, has_fired, is_canceled;
} seen;

static seen look_back(child_asking *a, hf_str history)
{
    seen s = {0};
    hf_str bytes = {0};
    while (hf_history_next(&history, &bytes)) {
        hf_pb_history_event event;
        if (hf_pb_decode(&a->op, &hf_pb_history_event_type, bytes, &a->arena, &event) != HF_OK) {
            child_give_up("a history", a->op.message);
        }
        s.signals += event.event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED ? 1 : 0;
        s.is_begun = s.is_begun || event.event_type == HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED;
        s.has_result = s.has_result || event.event_type == HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED;
        s.has_fired = s.has_fired || event.event_type == HF_EVENT_TYPE_TIMER_FIRED;
        s.is_canceled = s.is_canceled || event.event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED;
    }
    return s;
}

/* What the workflow does next; true = it ends. `count` commands are made. */
static bool decide(hf_arena *arena, const seen *s, hf_pb_command commands[2], size_t *count)
{
    *count = 0;
    if (s->is_canceled) {
        commands[(*count)++] = (hf_pb_command){
            .command_type = HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION,
            .attributes_case = HF_PB_COMMAND_CANCEL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
            .cancel_workflow_execution_command_attributes =
                HF_ARENA_NEW(arena, hf_pb_cancel_workflow_execution_command_attributes),
        };
        return true;
    }
    if (!s->is_begun) {
        hf_pb_schedule_activity_task_command_attributes *activity =
            HF_ARENA_NEW(arena, hf_pb_schedule_activity_task_command_attributes);
        hf_pb_start_timer_command_attributes *timer = HF_ARENA_NEW(arena, hf_pb_start_timer_command_attributes);
        activity->activity_id = HF_STR("a");
        activity->activity_type = HF_ARENA_NEW(arena, hf_pb_activity_type);
        activity->activity_type->name = HF_STR("work");
        activity->task_queue = &child_queue;
        activity->start_to_close_timeout = hf_pb_duration_of(hf_seconds(60));
        activity->retry_policy = HF_ARENA_NEW(arena, hf_pb_retry_policy);
        activity->retry_policy->initial_interval = hf_pb_duration_of(hf_milliseconds(1));
        activity->retry_policy->maximum_interval = hf_pb_duration_of(hf_milliseconds(5));
        timer->timer_id = HF_STR("t");
        timer->start_to_fire_timeout = hf_pb_duration_of(hf_milliseconds(5));
        commands[(*count)++] = (hf_pb_command){
            .command_type = HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
            .attributes_case = HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES,
            .schedule_activity_task_command_attributes = activity,
        };
        commands[(*count)++] = (hf_pb_command){
            .command_type = HF_COMMAND_TYPE_START_TIMER,
            .attributes_case = HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES,
            .start_timer_command_attributes = timer,
        };
        return false;
    }
    if (s->has_result && s->has_fired && s->signals >= CHILD_SIGNALS) {
        commands[(*count)++] = (hf_pb_command){
            .command_type = HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
            .attributes_case = HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
            .complete_workflow_execution_command_attributes =
                HF_ARENA_NEW(arena, hf_pb_complete_workflow_execution_command_attributes),
        };
        return true;
    }
    return false;
}

/* A task may be gone by the time it is answered: canceled, timed out, or overtaken by a signal. */
static bool is_late(hf_status status)
{
    return status == HF_ERR_NOT_FOUND || status == HF_ERR_INVALID;
}

void *child_workflows(void *arg)
{
    hf_rng rng = {.state = hf_hash_mix(child_seed, 1000 + (uintptr_t)arg)};
    child_asking a;
    child_ask_init(&a);
    while (!atomic_load(&child_is_over)) {
        hf_arena_reset(&a.arena);
        hf_pb_poll_workflow_task_queue_request poll = {.namespace = child_namespace, .task_queue = &child_queue};
        hf_status status = child_ask(&a, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &poll, hf_rng_below(&rng, 2) == 0);
        const hf_pb_poll_workflow_task_queue_response *task = a.call.response;
        if (status != HF_OK || task->task_token.len == 0) {
            continue;
        }
        seen s = look_back(&a, task->history);
        hf_pb_command commands[2];
        hf_pb_respond_workflow_task_completed_request answer = {.namespace = child_namespace,
                                                                .task_token = task->task_token};
        bool is_end = decide(&a.arena, &s, commands, &answer.commands.count);
        answer.commands.items = commands;
        char id[40];
        (void)snprintf(id, sizeof id, "%.39s", hf_arena_copy(&a.arena, task->workflow_execution->workflow_id).data);
        status = child_ask(&a, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &answer, false);
        if (status == HF_OK && is_end) {
            child_note("D %s", id);
        } else if (status != HF_OK && !is_late(status)) {
            child_give_up(id, a.op.message);
        }
    }
    hf_arena_deinit(&a.arena);
    return NULL;
}

void *child_activities(void *arg)
{
    hf_rng rng = {.state = hf_hash_mix(child_seed, 2000 + (uintptr_t)arg)};
    child_asking a;
    child_ask_init(&a);
    while (!atomic_load(&child_is_over)) {
        hf_arena_reset(&a.arena);
        hf_pb_poll_activity_task_queue_request poll = {.namespace = child_namespace, .task_queue = &child_queue};
        hf_status status = child_ask(&a, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, &poll, false);
        const hf_pb_poll_activity_task_queue_response *task = a.call.response;
        if (status != HF_OK || task->task_token.len == 0) {
            continue;
        }
        char id[40];
        (void)snprintf(id, sizeof id, "%.39s", hf_arena_copy(&a.arena, task->workflow_execution->workflow_id).data);
        if (hf_rng_below(&rng, 5) == 0 && task->attempt < 3) {
            hf_pb_respond_activity_task_failed_request answer = {
                .namespace = child_namespace,
                .task_token = task->task_token,
                .failure = hf_failure_application(&a.arena, HF_STR("Busy"), HF_STR("not now"), false),
            };
            status = child_ask(&a, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, &answer, false);
        } else {
            hf_pb_respond_activity_task_completed_request answer = {.namespace = child_namespace,
                                                                    .task_token = task->task_token};
            status = child_ask(&a, HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED, &answer, false);
            if (status == HF_OK) {
                child_note("R %s", id);
            }
        }
        if (status != HF_OK && !is_late(status)) {
            child_give_up(id, a.op.message);
        }
    }
    hf_arena_deinit(&a.arena);
    return NULL;
}
