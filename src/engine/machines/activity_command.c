/* ScheduleActivityTask: checks the command, fills in defaults, and makes its event. */
#include "engine/core_private.h"

#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "engine/matching.h"
#include "engine/retry.h"
#include "engine/size.h"
#include "history/limits.h"

static bool is_bad_span(hf_pb_duration span)
{
    return hf_pb_duration_span(span).ns < 0;
}

static bool bad(hf_core *core, const char *why)
{
    hf_fail(&core->op, HF_ERR_INVALID, "%s", why);
    return false;
}

bool hf_activity_command_is_good(hf_core *core, const hf_run *run,
                                 hf_pb_schedule_activity_task_command_attributes *attrs)
{
    if (!hf_id_is_good(attrs->activity_id)) {
        return bad(core, "ActivityId is not set on ScheduleActivityTaskCommand, too long, or not UTF-8.");
    }
    if (attrs->activity_type == NULL || !hf_id_is_good(attrs->activity_type->name)) {
        return bad(core, "ActivityType is not set on ScheduleActivityTaskCommand, too long, or not UTF-8.");
    }
    if (attrs->task_queue == NULL || !hf_queue_name_is_good(attrs->task_queue->name)) {
        return bad(core,
                   "TaskQueue is not set on ScheduleActivityTaskCommand, too long, not UTF-8, or begins with /_sys/.");
    }
    if (is_bad_span(attrs->schedule_to_close_timeout) || is_bad_span(attrs->schedule_to_start_timeout) ||
        is_bad_span(attrs->start_to_close_timeout) || is_bad_span(attrs->heartbeat_timeout)) {
        return bad(core, "A timeout of ScheduleActivityTaskCommand is negative.");
    }
    if (hf_retry_check(&core->op, attrs->retry_policy) != HF_OK) {
        return false;
    }
    int64_t close = hf_pb_duration_span(attrs->schedule_to_close_timeout).ns;
    int64_t start = hf_pb_duration_span(attrs->schedule_to_start_timeout).ns;
    int64_t each = hf_pb_duration_span(attrs->start_to_close_timeout).ns;
    int64_t beat = hf_pb_duration_span(attrs->heartbeat_timeout).ns;
    if (close == 0 && each == 0) {
        return bad(core, "A valid StartToClose or ScheduleToCloseTimeout is not set on ScheduleActivityTaskCommand.");
    }
    /* A timeout that is not set is taken from the others; none is longer than schedule-to-close or than the run's timeout. */
    if (close == 0) {
        close = run->run_timeout;
    }
    if (run->run_timeout > 0 && close > run->run_timeout) {
        close = run->run_timeout;
    }
    if (close > 0) {
        start = start == 0 || start > close ? close : start;
        each = each == 0 || each > close ? close : each;
    }
    beat = beat > each ? each : beat;
    attrs->schedule_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(close));
    attrs->schedule_to_start_timeout = hf_pb_duration_of(hf_nanoseconds(start));
    attrs->start_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(each));
    attrs->heartbeat_timeout = hf_pb_duration_of(hf_nanoseconds(beat));
    return true;
}

void hf_activity_schedule(hf_core *core, hf_run *run, const hf_pb_schedule_activity_task_command_attributes *attrs)
{
    hf_pb_task_queue queue = {.name = attrs->task_queue->name, .kind = HF_TASK_QUEUE_KIND_NORMAL};
    hf_pb_activity_type type = {.name = attrs->activity_type->name};
    hf_pb_activity_task_scheduled_event_attributes body = {
        .activity_id = attrs->activity_id,
        .activity_type = &type,
        .task_queue = &queue,
        .header = attrs->header,
        .input = attrs->input,
        .schedule_to_close_timeout = attrs->schedule_to_close_timeout,
        .schedule_to_start_timeout = attrs->schedule_to_start_timeout,
        .start_to_close_timeout = attrs->start_to_close_timeout,
        .heartbeat_timeout = attrs->heartbeat_timeout,
        .workflow_task_completed_event_id = run->wft.completed_id,
        .retry_policy = hf_retry_fill(&core->scratch, attrs->retry_policy),
        .priority = attrs->priority,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
        .attributes_case = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_SCHEDULED_EVENT_ATTRIBUTES,
        .activity_task_scheduled_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

static bool is_eager(const hf_run *run, const hf_pb_command *command)
{
    if (command->command_type != HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK) {
        return false;
    }
    const hf_pb_schedule_activity_task_command_attributes *attrs = command->schedule_activity_task_command_attributes;
    const hf_activity *activity = hf_run_activity_by_id(run, attrs->activity_id);
    return attrs->request_eager_execution && activity != NULL && activity->state == HF_ACTIVITY_SCHEDULED &&
           activity->task.queue != NULL && hf_str_equal(activity->task_queue, hf_owned_str(&run->task_queue));
}

void hf_activities_go_with(hf_core *core, hf_run *run, hf_call *call,
                           hf_pb_respond_workflow_task_completed_response *response)
{
    const hf_pb_respond_workflow_task_completed_request *request = call->request;
    size_t count = 0;
    for (size_t i = 0; i < request->commands.count && hf_run_is_open(run); i++) {
        count += is_eager(run, &request->commands.items[i]) ? 1 : 0;
    }
    if (count == 0 || core->status != HF_OK || (core->alone.run != 0 && call->in_process)) {
        return;
    }
    response->activity_tasks.items = HF_ARENA_ARRAY(call->arena, hf_pb_poll_activity_task_queue_response, count);
    if (response->activity_tasks.items == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    for (size_t i = 0; i < request->commands.count && core->status == HF_OK; i++) {
        const hf_pb_command *command = &request->commands.items[i];
        if (!is_eager(run, command)) {
            continue;
        }
        HF_PROBE(core, HF_PROBE_ACTIVITY_EAGER);
        hf_activity *activity =
            hf_run_activity_by_id(run, command->schedule_activity_task_command_attributes->activity_id);
        hf_assert(activity != NULL && response->activity_tasks.count < count);
        hf_activity_give(core, activity, call, request->identity);
        if (core->status == HF_OK) {
            hf_activity_task(core, activity, call->arena,
                             &response->activity_tasks.items[response->activity_tasks.count++]);
        }
    }
}
