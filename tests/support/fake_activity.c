/* Activities of the fake service: given to polls, answered, tried again at once. */
#include "support/fake_private.h"

fake_activity *fake_find_activity(fake_run *run, int64_t scheduled_event_id)
{
    for (size_t i = 0; i < ACTIVITIES_MAX; i++) {
        if (run->activities[i].scheduled_event_id == scheduled_event_id) {
            return &run->activities[i];
        }
    }
    return NULL;
}

bool fake_try_activity_poll(fake_service *f, hf_call *call)
{
    const hf_pb_poll_activity_task_queue_request *poll = call->request;
    HF_LIST_EACH(node, &f->runs)
    {
        fake_run *run = HF_CONTAINER(node, fake_run, node);
        for (size_t i = 0; i < ACTIVITIES_MAX && !run->is_closed; i++) {
            fake_activity *activity = &run->activities[i];
            if (activity->scheduled_event_id == 0 || activity->is_out ||
                !hf_str_equal(poll->task_queue->name, activity->command->task_queue->name)) {
                continue;
            }
            activity->is_out = true;
            hf_pb_poll_activity_task_queue_response *r = fake_respond(call);
            r->task_token = fake_token_of(call->arena, run, activity->scheduled_event_id * 1000 + activity->attempt);
            r->activity_id = hf_arena_copy(call->arena, activity->command->activity_id);
            r->attempt = activity->attempt;
            r->start_to_close_timeout = activity->command->start_to_close_timeout;
            r->heartbeat_timeout = activity->command->heartbeat_timeout;
            r->activity_type = HF_ARENA_NEW(call->arena, hf_pb_activity_type);
            (void)hf_pb_copy(&hf_pb_activity_type_type, activity->command->activity_type, call->arena,
                             r->activity_type);
            r->workflow_execution = HF_ARENA_NEW(call->arena, hf_pb_workflow_execution);
            r->workflow_execution->workflow_id = hf_arena_copy(call->arena, run->id);
            r->workflow_execution->run_id = hf_arena_copy(call->arena, run->run_id);
            if (activity->command->input != NULL) {
                r->input = HF_ARENA_NEW(call->arena, hf_pb_payloads);
                (void)hf_pb_copy(&hf_pb_payloads_type, activity->command->input, call->arena, r->input);
            }
            fake_finish(f, call, HF_OK, "");
            return true;
        }
    }
    return false;
}

static fake_activity *activity_of_token(fake_service *f, hf_str token, fake_run **ret_run)
{
    int64_t number = 0;
    *ret_run = fake_run_of_token(f, token, &number);
    fake_activity *activity = *ret_run != NULL ? fake_find_activity(*ret_run, number / 1000) : NULL;
    bool is_current = activity != NULL && number / 1000 != 0 && activity->attempt == number % 1000 && activity->is_out;
    return is_current && !(*ret_run)->is_closed ? activity : NULL;
}

static void activity_started(fake_service *f, fake_run *run, const fake_activity *activity)
{
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_ACTIVITY_TASK_STARTED);
    FAKE_ATTRIBUTES(run, event, ACTIVITY_TASK_STARTED, activity_task_started);
    event->activity_task_started_event_attributes->scheduled_event_id = activity->scheduled_event_id;
    fake_happen(f, run, event);
}

void fake_on_activity_completed(fake_service *f, hf_call *call)
{
    const hf_pb_respond_activity_task_completed_request *r = call->request;
    fake_run *run = NULL;
    fake_activity *activity = activity_of_token(f, r->task_token, &run);
    if (activity == NULL) {
        fake_finish(f, call, HF_ERR_NOT_FOUND, "no such activity");
        return;
    }
    activity_started(f, run, activity);
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED);
    FAKE_ATTRIBUTES(run, event, ACTIVITY_TASK_COMPLETED, activity_task_completed);
    event->activity_task_completed_event_attributes->scheduled_event_id = activity->scheduled_event_id;
    if (r->result != NULL) {
        event->activity_task_completed_event_attributes->result = HF_ARENA_NEW(&run->arena, hf_pb_payloads);
        (void)hf_pb_copy(&hf_pb_payloads_type, r->result, &run->arena,
                         event->activity_task_completed_event_attributes->result);
    }
    activity->scheduled_event_id = 0;
    fake_happen(f, run, event);
    fake_answer(f, call);
}

void fake_on_activity_failed(fake_service *f, hf_call *call)
{
    const hf_pb_respond_activity_task_failed_request *r = call->request;
    fake_run *run = NULL;
    fake_activity *activity = activity_of_token(f, r->task_token, &run);
    if (activity == NULL) {
        fake_finish(f, call, HF_ERR_NOT_FOUND, "no such activity");
        return;
    }
    const hf_pb_retry_policy *retry = activity->command->retry_policy;
    if (retry == NULL || retry->maximum_attempts == 0 || activity->attempt < retry->maximum_attempts) {
        activity->attempt++;
        activity->is_out = false;
        fake_answer(f, call);
        return;
    }
    activity_started(f, run, activity);
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_ACTIVITY_TASK_FAILED);
    FAKE_ATTRIBUTES(run, event, ACTIVITY_TASK_FAILED, activity_task_failed);
    event->activity_task_failed_event_attributes->scheduled_event_id = activity->scheduled_event_id;
    event->activity_task_failed_event_attributes->failure = HF_ARENA_NEW(&run->arena, hf_pb_failure);
    (void)hf_pb_copy(&hf_pb_failure_type, r->failure, &run->arena,
                     event->activity_task_failed_event_attributes->failure);
    activity->scheduled_event_id = 0;
    fake_happen(f, run, event);
    fake_answer(f, call);
}
