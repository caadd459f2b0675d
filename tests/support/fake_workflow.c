/* Workflow tasks of the fake service: given to polls, and the commands of their answers. */
#include "support/fake_private.h"

#include "support/support.h"

#include <stdio.h>

/* ---- Commands ---------------------------------------------------------------------------------------------------- */

static void do_schedule_activity(fake_service *f, fake_run *run,
                                 const hf_pb_schedule_activity_task_command_attributes *command)
{
    fake_activity *place = run->activities;
    while (place->scheduled_event_id != 0) {
        place++;
    }
    *place = (fake_activity){.attempt = 1};
    place->command = HF_ARENA_NEW(&run->arena, hf_pb_schedule_activity_task_command_attributes);
    assert_int_equal(
        hf_pb_copy(&hf_pb_schedule_activity_task_command_attributes_type, command, &run->arena, place->command), HF_OK);
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED);
    FAKE_ATTRIBUTES(run, event, ACTIVITY_TASK_SCHEDULED, activity_task_scheduled);
    hf_pb_activity_task_scheduled_event_attributes *a = event->activity_task_scheduled_event_attributes;
    a->activity_id = place->command->activity_id;
    a->activity_type = place->command->activity_type;
    a->task_queue = place->command->task_queue;
    a->input = place->command->input;
    a->start_to_close_timeout = place->command->start_to_close_timeout;
    place->scheduled_event_id = fake_append(f, run, event);
}

static void do_start_timer(fake_service *f, fake_run *run, const hf_pb_start_timer_command_attributes *command)
{
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_TIMER_STARTED);
    FAKE_ATTRIBUTES(run, event, TIMER_STARTED, timer_started);
    event->timer_started_event_attributes->timer_id = hf_arena_copy(&run->arena, command->timer_id);
    event->timer_started_event_attributes->start_to_fire_timeout = command->start_to_fire_timeout;
    (void)fake_append(f, run, event);
    fake_add_timer(f, run, event);
}

static void do_cancel_timer(fake_service *f, fake_run *run, hf_str timer_id)
{
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_TIMER_CANCELED);
    FAKE_ATTRIBUTES(run, event, TIMER_CANCELED, timer_canceled);
    event->timer_canceled_event_attributes->timer_id = hf_arena_copy(&run->arena, timer_id);
    event->timer_canceled_event_attributes->started_event_id = fake_drop_timer(run, timer_id);
    bool may_miss = run->buffered_count > 0; /* it may have fired while the task was out */
    HF_CHECK_SAY(event->timer_canceled_event_attributes->started_event_id != 0 || may_miss,
                 "CancelTimer of %.*s, which is not pending", HF_STR_ARGS(timer_id));
    (void)fake_append(f, run, event);
}

static void do_complete(fake_service *f, fake_run *run, const hf_pb_payloads *result)
{
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED);
    FAKE_ATTRIBUTES(run, event, WORKFLOW_EXECUTION_COMPLETED, workflow_execution_completed);
    if (result != NULL) {
        hf_pb_payloads *copy = HF_ARENA_NEW(&run->arena, hf_pb_payloads);
        (void)hf_pb_copy(&hf_pb_payloads_type, result, &run->arena, copy);
        event->workflow_execution_completed_event_attributes->result = copy;
    }
    (void)fake_append(f, run, event);
    fake_close_run(run);
}

static void do_command(fake_service *f, fake_run *run, const hf_pb_command *command)
{
    switch (command->attributes_case) {
    case HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES:
        do_schedule_activity(f, run, command->schedule_activity_task_command_attributes);
        break;
    case HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES:
        do_start_timer(f, run, command->start_timer_command_attributes);
        break;
    case HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES:
        do_cancel_timer(f, run, command->cancel_timer_command_attributes->timer_id);
        break;
    case HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES:
        do_complete(f, run, command->complete_workflow_execution_command_attributes->result);
        break;
    default:
        fail_msg("the fake does not know command %d", (int)command->command_type);
    }
}

/* ---- Workflow tasks ---------------------------------------------------------------------------------------------- */

/* A task without its history. */
static hf_pb_poll_workflow_task_queue_response *make_task(fake_run *run, hf_call *call, int64_t started_id)
{
    hf_pb_poll_workflow_task_queue_response *r = fake_respond(call);
    r->task_token = fake_token_of(call->arena, run, started_id);
    r->workflow_execution = HF_ARENA_NEW(call->arena, hf_pb_workflow_execution);
    r->workflow_execution->workflow_id = hf_arena_copy(call->arena, run->id);
    r->workflow_execution->run_id = hf_arena_copy(call->arena, run->run_id);
    r->workflow_type = HF_ARENA_NEW(call->arena, hf_pb_workflow_type);
    r->workflow_type->name = hf_arena_copy(call->arena, run->type);
    r->attempt = run->wft_attempt;
    r->previous_started_event_id = run->wft_started_before;
    r->started_event_id = started_id;
    return r;
}

static void give_workflow_task(fake_service *f, fake_run *run, hf_call *call, bool is_sticky)
{
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_WORKFLOW_TASK_STARTED);
    FAKE_ATTRIBUTES(run, event, WORKFLOW_TASK_STARTED, workflow_task_started);
    event->workflow_task_started_event_attributes->scheduled_event_id = run->wft_scheduled_id;
    run->wft_started_id = fake_append(f, run, event);
    run->wft = WFT_STARTED;
    hf_pb_poll_workflow_task_queue_response *r = make_task(run, call, run->wft_started_id);
    int64_t from = is_sticky ? run->wft_started_before + 1 : 1;
    r->history = fake_history_bytes(run, from, run->wft_started_id, call->arena);
    fake_finish(f, call, HF_OK, "");
}

bool fake_try_workflow_poll(fake_service *f, hf_call *call)
{
    const hf_pb_poll_workflow_task_queue_request *poll = call->request;
    HF_LIST_EACH(node, &f->runs)
    {
        fake_run *run = HF_CONTAINER(node, fake_run, node);
        bool is_sticky = run->sticky.len > 0;
        if (run->wft == WFT_SCHEDULED && hf_str_equal(poll->task_queue->name, is_sticky ? run->sticky : run->queue)) {
            give_workflow_task(f, run, call, is_sticky);
            return true;
        }
    }
    return false;
}

void fake_on_completed(fake_service *f, hf_call *call)
{
    const hf_pb_respond_workflow_task_completed_request *r = call->request;
    int64_t number = 0;
    fake_run *run = fake_run_of_token(f, r->task_token, &number);
    if (run == NULL || run->wft != WFT_STARTED || run->wft_started_id != number) {
        fake_finish(f, call, HF_ERR_NOT_FOUND, "no such workflow task");
        return;
    }
    bool closes = false;
    for (size_t i = 0; i < r->commands.count; i++) {
        closes |= r->commands.items[i].command_type == HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION;
    }
    run->sticky = (hf_str){NULL, 0};
    run->wft = WFT_NONE;
    if (closes && run->buffered_count > 0) {
        hf_pb_history_event *failed = fake_make_event(run, HF_EVENT_TYPE_WORKFLOW_TASK_FAILED);
        FAKE_ATTRIBUTES(run, failed, WORKFLOW_TASK_FAILED, workflow_task_failed);
        (void)fake_append(f, run, failed);
        fake_flush(f, run);
        fake_schedule_wft(f, run);
        call->task_failed_cause = HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND;
        fake_finish(f, call, HF_ERR_INVALID, "UnhandledCommand");
        return;
    }
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED);
    FAKE_ATTRIBUTES(run, event, WORKFLOW_TASK_COMPLETED, workflow_task_completed);
    if (r->sdk_metadata != NULL) {
        hf_pb_workflow_task_completed_metadata *copy =
            HF_ARENA_NEW(&run->arena, hf_pb_workflow_task_completed_metadata);
        (void)hf_pb_copy(&hf_pb_workflow_task_completed_metadata_type, r->sdk_metadata, &run->arena, copy);
        event->workflow_task_completed_event_attributes->sdk_metadata = copy;
    }
    (void)fake_append(f, run, event);
    run->wft_started_before = run->wft_started_id;
    run->wft_attempt = 1;
    if (r->sticky_attributes != NULL) {
        run->sticky = hf_arena_copy(&run->arena, r->sticky_attributes->worker_task_queue->name);
    }
    for (size_t i = 0; i < r->commands.count; i++) {
        do_command(f, run, &r->commands.items[i]);
    }
    fake_flush(f, run);
    fake_answer(f, call);
}

void fake_on_task_failed(fake_service *f, hf_call *call)
{
    const hf_pb_respond_workflow_task_failed_request *r = call->request;
    int64_t number = 0;
    fake_run *run = fake_run_of_token(f, r->task_token, &number);
    if (run == NULL || run->wft != WFT_STARTED || run->wft_started_id != number) {
        fake_finish(f, call, HF_ERR_NOT_FOUND, "no such workflow task");
        return;
    }
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_WORKFLOW_TASK_FAILED);
    FAKE_ATTRIBUTES(run, event, WORKFLOW_TASK_FAILED, workflow_task_failed);
    (void)fake_append(f, run, event);
    run->wft = WFT_NONE; /* not given out again before another event: it would fail in the same way */
    run->wft_attempt++;
    run->sticky = (hf_str){NULL, 0};
    fake_flush(f, run);
    if (r->cause == HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND) { /* unless only its answer was refused */
        fake_schedule_wft(f, run);
    }
    fake_answer(f, call);
}
