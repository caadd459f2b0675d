/* The execution: a run as a whole.
 *
 *     (nothing) --> running --> completed | failed | canceled | terminated | continued as new | timed out
 *
 * A run has one terminal event, and it is the last one (run-R4). */
#include "run/machines.h"

#include "base/canary.h"

#define CLOSED                                                                                         \
    (HF_BIT(HF_WORKFLOW_EXECUTION_STATUS_COMPLETED) | HF_BIT(HF_WORKFLOW_EXECUTION_STATUS_FAILED) |    \
     HF_BIT(HF_WORKFLOW_EXECUTION_STATUS_CANCELED) | HF_BIT(HF_WORKFLOW_EXECUTION_STATUS_TERMINATED) | \
     HF_BIT(HF_WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW) | HF_BIT(HF_WORKFLOW_EXECUTION_STATUS_TIMED_OUT))

#define STATE_COUNT (HF_WORKFLOW_EXECUTION_STATUS_TIMED_OUT + 1)

static const hf_rule RULES[STATE_COUNT] = {
    [HF_WORKFLOW_EXECUTION_STATUS_UNSPECIFIED] = {"nothing", HF_BIT(HF_WORKFLOW_EXECUTION_STATUS_RUNNING)},
    [HF_WORKFLOW_EXECUTION_STATUS_RUNNING] = {"running", CLOSED},
    [HF_WORKFLOW_EXECUTION_STATUS_COMPLETED] = {"completed", 0},
    [HF_WORKFLOW_EXECUTION_STATUS_FAILED] = {"failed", 0},
    [HF_WORKFLOW_EXECUTION_STATUS_CANCELED] = {"canceled", 0},
    [HF_WORKFLOW_EXECUTION_STATUS_TERMINATED] = {"terminated", 0},
    [HF_WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW] = {"continued as new", 0},
    [HF_WORKFLOW_EXECUTION_STATUS_TIMED_OUT] = {"timed out", 0},
};
const hf_machine hf_execution_machine = {"execution", RULES, STATE_COUNT};

static bool move(hf_apply *a, hf_run *run, int32_t status)
{
    if (!hf_arrow_take(&a->memory->arrows, HF_MACHINE_EXECUTION, run->status, status)) {
        return false;
    }
    run->status = status;
    return true;
}

static hf_status cannot(hf_apply *a, const hf_run *run, const hf_pb_history_event *event, const char *why)
{
    return hf_fail(a->op, HF_ERR_INVALID, "run %lld: event %lld (type %d) cannot follow: %s", (long long)run->number,
                   (long long)event->event_id, (int)event->event_type, why);
}

hf_status hf_execution_started(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_execution_started_event_attributes *attrs = event->workflow_execution_started_event_attributes;
    if (run->event_count != 1 || !move(a, run, HF_WORKFLOW_EXECUTION_STATUS_RUNNING)) {
        return cannot(a, run, event, "a run starts once");
    }
    hf_owned_set(a->memory, &run->workflow_type,
                 attrs->workflow_type != NULL ? attrs->workflow_type->name : HF_STR(""));
    hf_owned_set(a->memory, &run->task_queue, attrs->task_queue != NULL ? attrs->task_queue->name : HF_STR(""));
    if (run->workflow_id.len == 0) {
        hf_owned_set(a->memory, &run->workflow_id, attrs->workflow_id);
    }
    hf_owned_set(a->memory, &run->first_run_id, attrs->first_execution_run_id);
    run->execution_timeout = hf_pb_duration_span(attrs->workflow_execution_timeout).ns;
    run->run_timeout = hf_pb_duration_span(attrs->workflow_run_timeout).ns;
    run->task_timeout = hf_pb_duration_span(attrs->workflow_task_timeout).ns;
    run->start_time = hf_pb_timestamp_time(event->event_time).ns;
    hf_run_learn(a->memory, run, event);
    int64_t pause = hf_pb_duration_span(attrs->first_workflow_task_backoff).ns;
    run->first_task_at = pause > 0 ? hf_bound_end(run->start_time, pause) : 0;
    run->run_deadline = hf_execution_deadline(run);
    if (run->run_deadline != 0) {
        hf_effects_due(a->effects, run->run_deadline);
    }
    if (run->first_task_at != 0) {
        hf_effects_due(a->effects, run->first_task_at);
    }
    return a->memory->status;
}

/* The id of the run that follows this one; empty = none does. */
static hf_str next_run_id(const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
        return event->workflow_execution_completed_event_attributes->new_execution_run_id;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
        return event->workflow_execution_failed_event_attributes->new_execution_run_id;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
        return event->workflow_execution_timed_out_event_attributes->new_execution_run_id;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
        return event->workflow_execution_continued_as_new_event_attributes->new_execution_run_id;
    default:
        return HF_STR("");
    }
}

hf_status hf_execution_closed_event(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    static const int32_t STATUS[] = {
        [HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED] = HF_WORKFLOW_EXECUTION_STATUS_COMPLETED,
        [HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED] = HF_WORKFLOW_EXECUTION_STATUS_FAILED,
        [HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT] = HF_WORKFLOW_EXECUTION_STATUS_TIMED_OUT,
        [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED] = HF_WORKFLOW_EXECUTION_STATUS_CANCELED,
        [HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED] = HF_WORKFLOW_EXECUTION_STATUS_TERMINATED,
        [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW] = HF_WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
    };
    if (!move(a, run, STATUS[event->event_type])) {
        return cannot(a, run, event, "the run is not open");
    }
    if (run->wft.state != HF_WFT_NONE && !hf_wft_move(a, run, HF_WFT_NONE)) {
        return cannot(a, run, event, "its workflow task is pending");
    }
    run->close_time = hf_pb_timestamp_time(event->event_time).ns;
    run->close_event_id = event->event_id;
    hf_run_drop_pending(a->memory, run, a->effects);
    hf_assert(run->close_event_id == run->event_count); /* run-R4: it is the last */
    hf_children_leave(a->memory, run, hf_event_is_of_reset(event));
    hf_owned_set(a->memory, &run->next_run_id, next_run_id(event));
    hf_start_facts facts;
    bool is_last = (next_run_id(event).len == 0 && !hf_event_is_of_reset(event)) || HF_CANARY(HF_BUG_EACH_RUN_TELLS);
    run->is_untold = is_last && hf_run_has_listener(run, a->memory->scratch, &facts);
    hf_assert(!hf_run_is_open(run) && run->wft.state == HF_WFT_NONE); /* run-R4 */
    a->effects->is_closed = true;
    return HF_OK;
}

hf_status hf_execution_signaled(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)a;
    (void)event;
    (void)bytes;
    run->signal_count++;
    return HF_OK;
}

hf_status hf_execution_cancel_requested(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)a;
    (void)event;
    (void)bytes;
    run->cancel_requested = true;
    return HF_OK;
}
