/* ScheduleActivityTask: whether the command is good, what it leaves out, and the event it becomes. */
#include "engine/core_private.h"

#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "engine/matching.h"
#include "history/limits.h"

#define RETRY_INITIAL_DEFAULT (INT64_C(1000000000))
#define RETRY_COEFFICIENT_DEFAULT 2.0
#define RETRY_MAX_FACTOR 100 /* longest interval, in first intervals */

static bool is_bad_span(hf_pb_duration span)
{
    return hf_pb_duration_span(span).ns < 0;
}

static bool bad(hf_core *core, const char *why)
{
    hf_fail(&core->op, HF_ERR_INVALID, "%s", why);
    return false;
}

static bool retry_is_good(hf_core *core, const hf_pb_retry_policy *policy)
{
    if (policy == NULL) {
        return true;
    }
    int64_t initial = hf_pb_duration_span(policy->initial_interval).ns;
    int64_t longest = hf_pb_duration_span(policy->maximum_interval).ns;
    if (initial < 0 || longest < 0 || policy->maximum_attempts < 0) {
        return bad(core, "A retry policy has a negative value.");
    }
    /* Also refuses a NaN. */
    if (policy->backoff_coefficient != 0 &&
        !(policy->backoff_coefficient >= 1 && policy->backoff_coefficient <= HF_RETRY_COEFFICIENT_MAX)) {
        return bad(core, "BackoffCoefficient of a retry policy is below 1 or above 1000000.");
    }
    if (longest > 0 && longest < initial) {
        return bad(core, "MaximumInterval of a retry policy is below its InitialInterval.");
    }
    return true;
}

bool hf_activity_command_is_good(hf_core *core, const hf_run *run,
                                 hf_pb_schedule_activity_task_command_attributes *attrs)
{
    if (attrs->activity_id.len == 0 || attrs->activity_id.len > HF_ID_LEN_MAX) {
        return bad(core, "ActivityId is not set on ScheduleActivityTaskCommand, or too long.");
    }
    if (attrs->activity_type == NULL || attrs->activity_type->name.len == 0 ||
        attrs->activity_type->name.len > HF_ID_LEN_MAX) {
        return bad(core, "ActivityType is not set on ScheduleActivityTaskCommand, or too long.");
    }
    if (attrs->task_queue != NULL && attrs->task_queue->name.len > HF_ID_LEN_MAX) {
        return bad(core, "TaskQueue of ScheduleActivityTaskCommand is too long.");
    }
    if (is_bad_span(attrs->schedule_to_close_timeout) || is_bad_span(attrs->schedule_to_start_timeout) ||
        is_bad_span(attrs->start_to_close_timeout) || is_bad_span(attrs->heartbeat_timeout)) {
        return bad(core, "A timeout of ScheduleActivityTaskCommand is negative.");
    }
    if (!retry_is_good(core, attrs->retry_policy)) {
        return false;
    }
    int64_t close = hf_pb_duration_span(attrs->schedule_to_close_timeout).ns;
    int64_t start = hf_pb_duration_span(attrs->schedule_to_start_timeout).ns;
    int64_t each = hf_pb_duration_span(attrs->start_to_close_timeout).ns;
    int64_t beat = hf_pb_duration_span(attrs->heartbeat_timeout).ns;
    if (close == 0 && each == 0) {
        return bad(core, "A valid StartToClose or ScheduleToCloseTimeout is not set on ScheduleActivityTaskCommand.");
    }
    /* What is missing is taken from the others, and nothing is longer than the whole or than the run. */
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

static hf_pb_retry_policy *retry_with_defaults(hf_core *core, const hf_pb_retry_policy *given)
{
    hf_pb_retry_policy *policy = HF_ARENA_NEW(&core->scratch, hf_pb_retry_policy);
    if (policy == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    if (given != NULL) {
        *policy = *given;
    }
    int64_t initial = hf_pb_duration_span(policy->initial_interval).ns;
    if (initial == 0) {
        initial = RETRY_INITIAL_DEFAULT;
    }
    policy->initial_interval = hf_pb_duration_of(hf_nanoseconds(initial));
    if (policy->backoff_coefficient == 0) {
        policy->backoff_coefficient = RETRY_COEFFICIENT_DEFAULT;
    }
    if (hf_pb_duration_span(policy->maximum_interval).ns == 0) {
        int64_t longest = initial > INT64_MAX / RETRY_MAX_FACTOR ? INT64_MAX : initial * RETRY_MAX_FACTOR;
        policy->maximum_interval = hf_pb_duration_of(hf_nanoseconds(longest));
    }
    return policy;
}

void hf_activity_schedule(hf_core *core, hf_run *run, const hf_pb_schedule_activity_task_command_attributes *attrs)
{
    hf_pb_task_queue queue = {.name = hf_owned_str(&run->task_queue), .kind = HF_TASK_QUEUE_KIND_NORMAL};
    if (attrs->task_queue != NULL && attrs->task_queue->name.len > 0) {
        queue.name = attrs->task_queue->name;
    }
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
        .retry_policy = retry_with_defaults(core, attrs->retry_policy),
        .priority = attrs->priority,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
        .attributes_case = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_SCHEDULED_EVENT_ATTRIBUTES,
        .activity_task_scheduled_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}
