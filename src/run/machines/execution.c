/* The execution: a run as a whole.
 *
 *     (nothing) --> running --> completed | failed | canceled | terminated | continued as new | timed out
 *
 * A run has one terminal event, and it is the last one (run-R4). */
#include "run/machines.h"

#define CLOSED                                                                                         \
    (HF_BIT(HF_WORKFLOW_EXECUTION_STATUS_COMPLETED) | HF_BIT(HF_WORKFLOW_EXECUTION_STATUS_FAILED) |    \
     HF_BIT(HF_WORKFLOW_EXECUTION_STATUS_CANCELED) | HF_BIT(HF_WORKFLOW_EXECUTION_STATUS_TERMINATED) | \
     HF_BIT(HF_WORKFLOW_EXECUTION_STATUS_TIMED_OUT))

static const hf_rule RULES[HF_MACHINE_STATE_MAX] = {
    [HF_WORKFLOW_EXECUTION_STATUS_UNSPECIFIED] = {"nothing", HF_BIT(HF_WORKFLOW_EXECUTION_STATUS_RUNNING)},
    [HF_WORKFLOW_EXECUTION_STATUS_RUNNING] = {"running", CLOSED},
    [HF_WORKFLOW_EXECUTION_STATUS_COMPLETED] = {"completed", 0},
    [HF_WORKFLOW_EXECUTION_STATUS_FAILED] = {"failed", 0},
    [HF_WORKFLOW_EXECUTION_STATUS_CANCELED] = {"canceled", 0},
    [HF_WORKFLOW_EXECUTION_STATUS_TERMINATED] = {"terminated", 0},
    [HF_WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW] = {"continued as new", 0},
    [HF_WORKFLOW_EXECUTION_STATUS_TIMED_OUT] = {"timed out", 0},
};
const hf_machine hf_execution_machine = {"execution", RULES, HF_MACHINE_STATE_MAX};

static bool move(hf_apply *a, hf_run *run, int32_t status)
{
    /* Only histories from outside continue as new so far. */
    bool from_outside = a->is_history && status == HF_WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW && hf_run_is_open(run);
    if (!from_outside && !hf_arrow_take(&a->memory->arrows, HF_MACHINE_EXECUTION, run->status, status)) {
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
    run->run_deadline = hf_execution_deadline(run);
    if (run->run_deadline != 0) {
        hf_effects_due(a->effects, run->run_deadline);
    }
    return HF_OK;
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
