/* The workflow task: at most one is pending per run.
 *
 *              schedule            a poller              completed, failed, timed out
 *     none ----------------> scheduled -----> started ---------------------------------> none
 *       ^                        |  sticky, not taken in time
 *       +------------------------+
 *
 * The first attempt writes its Scheduled and Started events as it goes. After a failure or a timeout, which is an event, the
 * next attempts are *transient*: they are state only, shown to the worker as the two events that would come next, and
 * written when one of them completes. When new events arrive before a transient task is started, it becomes a first attempt
 * again, with events.
 *
 * While a task is started, what happens to the run is buffered (run-R5 in run.h) and becomes events when the task ends. */
#include "run/machines.h"

_Static_assert(HF_WFT_STATE_COUNT == HF_WFT_STARTED + 1, "the table has a row for every state");
static const hf_rule RULES[HF_WFT_STATE_COUNT] = {
    [HF_WFT_NONE] = {"none", HF_BIT(HF_WFT_SCHEDULED)},
    [HF_WFT_SCHEDULED] = {"scheduled", HF_BIT(HF_WFT_STARTED) | HF_BIT(HF_WFT_NONE)},
    [HF_WFT_STARTED] = {"started", HF_BIT(HF_WFT_NONE) | HF_BIT(HF_WFT_STARTED)}, /* to another holder */
};
const hf_machine hf_workflow_task_machine = {"workflow task", RULES, HF_WFT_STATE_COUNT};

bool hf_wft_move(hf_apply *a, hf_run *run, hf_wft_state state)
{
    if (!hf_arrow_take(&a->memory->arrows, HF_MACHINE_WORKFLOW_TASK, (int)run->wft.state, (int)state)) {
        return false;
    }
    run->wft.state = state;
    return true;
}

static hf_status cannot(hf_apply *a, const hf_run *run, const char *what)
{
    return hf_fail(a->op, HF_ERR_INVALID, "run %lld: its workflow task cannot be %s while it is %s",
                   (long long)run->number, what, RULES[run->wft.state].name);
}

static int32_t next_attempt(int32_t attempt)
{
    return attempt < INT32_MAX - 1 ? attempt + 1 : attempt;
}

static void forget(hf_apply *a, hf_run *run, int32_t attempt_next)
{
    hf_wft *wft = &run->wft;
    hf_assert(wft->state == HF_WFT_NONE); /* the task has ended */
    wft->attempt = attempt_next;
    wft->scheduled_id = wft->started_id = 0;
    wft->scheduled_time = wft->started_time = wft->timeout = wft->first_time = 0;
    wft->incarnation = 0;
    wft->is_transient = wft->sticky = wft->again = false;
    wft->task.order = 0;
    hf_owned_free(a->memory, &wft->identity);
    hf_owned_free(a->memory, &wft->request_id);
}

hf_status hf_wft_scheduled(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_task_scheduled_event_attributes *attrs = event->workflow_task_scheduled_event_attributes;
    if (!hf_wft_move(a, run, HF_WFT_SCHEDULED)) {
        return cannot(a, run, "scheduled");
    }
    hf_wft *wft = &run->wft;
    wft->scheduled_id = event->event_id;
    wft->started_id = 0;
    wft->attempt = attrs->attempt > 0 ? attrs->attempt : 1;
    wft->scheduled_time = hf_pb_timestamp_time(event->event_time).ns;
    wft->started_time = 0;
    wft->timeout = hf_pb_duration_span(attrs->start_to_close_timeout).ns;
    wft->is_transient = wft->again = false;
    run->first_task_at = 0;
    return HF_OK;
}

hf_status hf_wft_started(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_task_started_event_attributes *attrs = event->workflow_task_started_event_attributes;
    if (run->wft.state != HF_WFT_SCHEDULED || attrs->scheduled_event_id != run->wft.scheduled_id ||
        !hf_wft_move(a, run, HF_WFT_STARTED)) {
        return cannot(a, run, "started");
    }
    run->wft.started_id = event->event_id;
    run->wft.started_time = hf_pb_timestamp_time(event->event_time).ns;
    hf_effects_due(a->effects, hf_wft_deadline(run));
    return HF_OK;
}

hf_status hf_wft_completed(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_task_completed_event_attributes *attrs = event->workflow_task_completed_event_attributes;
    if (run->wft.state != HF_WFT_STARTED || attrs->started_event_id != run->wft.started_id ||
        !hf_wft_move(a, run, HF_WFT_NONE)) {
        return cannot(a, run, "completed");
    }
    run->wft.last_started_id = attrs->started_event_id;
    run->wft.completed_id = event->event_id;
    run->wft.task.crashes = 0; /* engine-U1 */
    run->wft.pause_until = 0;
    forget(a, run, 1);
    return HF_OK;
}

hf_status hf_wft_timed_out(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_task_timed_out_event_attributes *attrs = event->workflow_task_timed_out_event_attributes;
    if (attrs->scheduled_event_id != run->wft.scheduled_id || !hf_wft_move(a, run, HF_WFT_NONE)) {
        return cannot(a, run, "timed out");
    }
    /* A sticky task that no worker took in time has not failed: the number of the attempt stays the same. */
    bool sticky = attrs->timeout_type == HF_TIMEOUT_TYPE_SCHEDULE_TO_START;
    forget(a, run, sticky ? run->wft.attempt : next_attempt(run->wft.attempt));
    return HF_OK;
}

/* A reset has made this run of another one: its time begins anew, and so does the count of attempts. */
static void begin_anew(hf_apply *a, hf_run *run, int64_t time)
{
    int64_t ends = hf_bound_end(time, run->execution_timeout);
    int64_t deadline = hf_bound_end(time, run->run_timeout);
    run->expiration = ends == INT64_MAX ? 0 : ends;
    deadline = deadline < ends ? deadline : ends;
    run->run_deadline = deadline == INT64_MAX ? 0 : deadline;
    if (run->run_deadline != 0) {
        hf_effects_due(a->effects, run->run_deadline);
    }
}

hf_status hf_wft_failed(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_task_failed_event_attributes *attrs = event->workflow_task_failed_event_attributes;
    if (run->wft.state != HF_WFT_STARTED || attrs->scheduled_event_id != run->wft.scheduled_id ||
        !hf_wft_move(a, run, HF_WFT_NONE)) {
        return cannot(a, run, "failed");
    }
    bool is_reset = attrs->cause == (int32_t)HF_WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW &&
                    attrs->new_run_id.len > 0; /* a worker may give this cause, too */
    if (is_reset) {
        begin_anew(a, run, hf_pb_timestamp_time(event->event_time).ns);
    }
    forget(a, run, is_reset ? 1 : next_attempt(run->wft.attempt));
    return HF_OK;
}

hf_status hf_wft_apply_scheduled(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_workflow_task_scheduled msg;
    HF_TRY(hf_apply_read(a, &hf_pb_workflow_task_scheduled_type, bytes, &msg));
    hf_wft *wft = &run->wft;
    if (msg.is_transient) {
        if (!hf_wft_move(a, run, HF_WFT_SCHEDULED)) {
            return cannot(a, run, "scheduled");
        }
        wft->is_transient = true;
        wft->attempt = msg.attempt;
        wft->scheduled_time = msg.time;
        wft->timeout = msg.timeout;
        wft->scheduled_id = run->event_count + 1;
    }
    wft->sticky = msg.sticky;
    wft->first_time = msg.first_time != 0 ? msg.first_time : wft->scheduled_time;
    wft->task.order = msg.order;
    if (wft->sticky) {
        hf_effects_due(a->effects, hf_wft_deadline(run));
    }
    hf_effects_ready(a->effects, &wft->task);
    return HF_OK;
}

hf_status hf_wft_apply_started(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_workflow_task_started msg;
    HF_TRY(hf_apply_read(a, &hf_pb_workflow_task_started_type, bytes, &msg));
    hf_wft *wft = &run->wft;
    bool fresh = wft->is_transient && wft->state == HF_WFT_SCHEDULED;
    if (wft->state == HF_WFT_NONE || ((fresh || wft->again) && !hf_wft_move(a, run, HF_WFT_STARTED))) {
        return cannot(a, run, "given to a worker");
    }
    if (fresh) {
        wft->scheduled_id = run->event_count + 1;
        wft->started_id = run->event_count + 2;
        wft->started_time = msg.time;
        hf_effects_due(a->effects, hf_wft_deadline(run));
    }
    wft->incarnation = msg.incarnation;
    wft->again = false;
    hf_owned_set(a->memory, &wft->identity, msg.identity);
    hf_owned_set(a->memory, &wft->request_id, msg.request_id);
    hf_effects_gone(a->memory, a->effects, &wft->task);
    return HF_OK;
}

hf_status hf_wft_apply_reset(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_workflow_task_reset msg;
    HF_TRY(hf_apply_read(a, &hf_pb_workflow_task_reset_type, bytes, &msg));
    if (run->wft.state != HF_WFT_NONE && (!run->wft.is_transient || !hf_wft_move(a, run, HF_WFT_NONE))) {
        return cannot(a, run, "dropped");
    }
    forget(a, run, msg.attempt_next);
    return HF_OK;
}

hf_status hf_task_apply_moved(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_task_moved msg;
    HF_TRY(hf_apply_read(a, &hf_pb_task_moved_type, bytes, &msg));
    hf_activity *activity = msg.scheduled_id != 0 ? hf_run_activity(run, msg.scheduled_id) : NULL;
    if (msg.scheduled_id != 0 && activity == NULL) {
        return hf_fail(a->op, HF_ERR_INVALID, "there is no activity of event %lld", (long long)msg.scheduled_id);
    }
    if (activity != NULL) {
        return hf_activity_apply_moved(a, run, activity, msg.order);
    }
    run->wft.task.order = msg.order;
    run->wft.again = true;
    if (msg.crashes != 0) {
        run->wft.task.crashes = msg.crashes;
        run->wft.pause_until = msg.pause_until;
        hf_effects_due(a->effects, hf_wft_deadline(run));
    }
    hf_effects_ready(a->effects, &run->wft.task);
    return HF_OK;
}
