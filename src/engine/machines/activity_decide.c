/* Activities: cancel requests, retries and deadlines. The machine itself is in run/machines/activity.c. An activity is scheduled by
 * activity_command.c and given to a worker by activity_start.c; the worker's answers come to activity_answer.c; its last events are in
 * activity_end.c. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "engine/matching.h"
#include "engine/retry.h"
#include "engine/size.h"
#include "engine/suspect.h"
#include "history/payload.h"

/* ---- Cancel requests ------------------------------------------------------------------------------------------------- */

void hf_activity_request_cancel(hf_core *core, hf_run *run, int64_t scheduled_id)
{
    hf_assert(hf_run_activity(run, scheduled_id) != NULL); /* the command was checked */
    hf_pb_activity_task_cancel_requested_event_attributes body = {
        .scheduled_event_id = scheduled_id,
        .workflow_task_completed_event_id = run->wft.completed_id,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED,
        .attributes_case = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_CANCEL_REQUESTED_EVENT_ATTRIBUTES,
        .activity_task_cancel_requested_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

bool hf_activities_cancel_early(hf_core *core, hf_run *run, hf_str identity)
{
    bool news = false;
    for (size_t i = 0; i < run->activities.count && core->status == HF_OK;) {
        hf_activity *activity = run->activities.items[i];
        bool waits = hf_activity_is_pending(activity) && activity->state != HF_ACTIVITY_STARTED;
        if (activity->cancel_requested_id == 0 || !waits) {
            i++;
            continue;
        }
        HF_PROBE(core, HF_PROBE_ACTIVITY_CANCELED_EARLY);
        hf_pb_payload why = hf_payload_json(&core->scratch, HF_STR("\"ACTIVITY_ID_NOT_STARTED\""));
        hf_pb_payloads *details = hf_payloads_of(&core->scratch, why);
        hf_activity_emit_canceled(core, run, activity, details, identity); /* the activity leaves the list */
        news = true;
    }
    return news;
}

/* ---- Retries --------------------------------------------------------------------------------------------------------- */

/* Whether the schedule-to-close or the schedule-to-start timeout has passed: no further attempt would help. */
static bool is_out_of_time(const hf_pb_failure *failure)
{
    if (failure->failure_info_case != HF_PB_FAILURE_TIMEOUT_FAILURE_INFO) {
        return false;
    }
    int32_t type = failure->timeout_failure_info->timeout_type;
    return type == HF_TIMEOUT_TYPE_SCHEDULE_TO_START || type == HF_TIMEOUT_TYPE_SCHEDULE_TO_CLOSE;
}

int32_t hf_activity_retry(hf_core *core, hf_run *run, hf_activity *activity, const hf_pb_failure *failure,
                          const hf_loss *loss)
{
    hf_assert(activity->attempt > 0 && activity->task.run == run);
    const hf_pb_retry_policy *policy = hf_activity_policy(core, activity, &core->scratch);
    if (policy == NULL) {
        return core->status == HF_OK ? HF_RETRY_STATE_RETRY_POLICY_NOT_SET : HF_RETRY_STATE_INTERNAL_SERVER_ERROR;
    }
    if (activity->cancel_requested_id != 0) {
        return HF_RETRY_STATE_CANCEL_REQUESTED;
    }
    if (is_out_of_time(failure)) {
        return HF_RETRY_STATE_TIMEOUT;
    }
    int64_t pause = 0;
    bool is_paused = hf_activity_is_paused(activity); /* then neither attempts nor time are counted */
    int32_t retry_state = hf_retry_next(&(hf_retry_case){policy, failure, activity->attempt, false}, &pause);
    if (failure->failure_info_case == HF_PB_FAILURE_APPLICATION_FAILURE_INFO &&
        failure->application_failure_info->next_retry_delay.has) {
        HF_PROBE(core, HF_PROBE_RETRY_DELAY_NAMED);
    }
    if (retry_state != HF_RETRY_STATE_IN_PROGRESS &&
        !(is_paused && retry_state == HF_RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED)) {
        return retry_state;
    }
    pause = loss != NULL ? loss->pause : pause;
    int64_t time = pause > 0 ? hf_bound_end(core->now.wall, pause) : core->now.wall;
    int64_t whole = hf_bound_end(activity->first_time, activity->schedule_to_close);
    if (loss != NULL && time >= whole) { /* a pause that is not the policy's must not prevent the next attempt */
        pause = 0;
        time = core->now.wall;
    }
    if (time >= whole && !is_paused) {
        return HF_RETRY_STATE_TIMEOUT;
    }
    hf_buf bytes;
    hf_buf_init(&bytes, core->memory, SIZE_MAX / 4);
    failure = hf_failure_keep(core, failure);
    if (failure != NULL) {
        hf_pb_encode(&hf_pb_failure_type, failure, &bytes);
    }
    if (bytes.status != HF_OK) {
        hf_core_break(core, bytes.status, "out of memory");
    }
    HF_PROBE(core, HF_PROBE_ACTIVITY_RETRIED);
    hf_pb_activity_retry msg = {
        .scheduled_id = activity->scheduled_id,
        .attempt = activity->attempt + (HF_CANARY(HF_BUG_ATTEMPT_NOT_COUNTED) ? 0 : 1),
        .time = time,
        .failure = hf_str_of_len(bytes.data, bytes.len),
        .crashes = loss != NULL ? loss->crashes : 0,
        .ended = core->now.wall,
    };
    hf_record(core, run, HF_CHANGE_ACTIVITY_RETRY, &hf_pb_activity_retry_type, &msg);
    hf_buf_deinit(&bytes);
    hf_assert(core->status != HF_OK || activity->state != HF_ACTIVITY_STARTED); /* no attempt runs */
    if (pause <= 0 && !is_paused) {
        hf_activity_fire(core, run, activity);
    }
    return HF_RETRY_STATE_IN_PROGRESS;
}

/* The attempt fails: its process has gone, and whether it has done anything is not known. */
static bool lose(hf_core *core, hf_run *run, hf_activity *activity, const hf_loss *loss)
{
    hf_assert(activity->state == HF_ACTIVITY_STARTED && !activity->again);
    HF_PROBE(core, HF_PROBE_WORKER_LOST);
    hf_pb_failure *failure =
        hf_failure_application(&core->scratch, HF_STR("WorkerLost"),
                               HF_STR("the process that ran this attempt ended before it answered"), false);
    if (failure == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return false;
    }
    int32_t retry_state = hf_activity_retry(core, run, activity, failure, loss);
    if (retry_state == HF_RETRY_STATE_IN_PROGRESS) {
        return false;
    }
    hf_activity_emit_failed(core, run, activity, failure, HF_STR(""), retry_state);
    return true;
}

bool hf_activity_lost(hf_core *core, hf_run *run, hf_activity *activity)
{
    hf_assert(activity->incarnation != core->incarnation);
    hf_loss loss = {.crashes = hf_suspect_count(core, &activity->task, core->options.was_left_open)};
    loss.pause = hf_suspect_pause(loss.crashes);
    return lose(core, run, activity, &loss);
}

bool hf_activity_gone(hf_core *core, hf_run *run, hf_activity *activity, bool is_unclean)
{
    if (activity->state != HF_ACTIVITY_STARTED || activity->again) {
        return false; /* nobody has it */
    }
    hf_loss loss = {.crashes = hf_suspect_count(core, &activity->task, is_unclean)};
    loss.pause = hf_suspect_pause(loss.crashes);
    return lose(core, run, activity, &loss);
}

/* ---- Deadlines ------------------------------------------------------------------------------------------------------- */

bool hf_activity_fire(hf_core *core, hf_run *run, hf_activity *activity)
{
    if (core->status != HF_OK || hf_activity_deadline(activity) > core->now.wall) {
        return false;
    }
    int32_t type = hf_activity_timeout_passed(activity, core->now.wall);
    if (type == HF_TIMEOUT_TYPE_HEARTBEAT && activity->heard_time < core->opened_at) {
        /* Heartbeats with nothing new are not written, so a crash loses the time of the last one: it may have been any time before this
         * opening. */
        HF_PROBE(core, HF_PROBE_HEARTBEAT_GRACE);
        activity->heard_time = core->opened_at;
        type = hf_activity_timeout_passed(activity, core->now.wall);
        if (type == 0) {
            return false;
        }
    }
    if (type == 0) { /* its pause is over */
        hf_pb_activity_retry msg = {
            .scheduled_id = activity->scheduled_id, .time = activity->scheduled_time, .order = hf_order_next(core)};
        hf_record(core, run, HF_CHANGE_ACTIVITY_RETRY, &hf_pb_activity_retry_type, &msg);
        return false;
    }
    hf_pb_failure *failure = hf_activity_timeout_failure(core, activity, type, "");
    int32_t retry_state = failure != NULL ? hf_activity_retry(core, run, activity, failure, NULL) : 0;
    if (core->status != HF_OK || retry_state == HF_RETRY_STATE_IN_PROGRESS) {
        return false;
    }
    bool of_attempt = type == HF_TIMEOUT_TYPE_START_TO_CLOSE || type == HF_TIMEOUT_TYPE_HEARTBEAT;
    if (of_attempt && retry_state == HF_RETRY_STATE_TIMEOUT) { /* there is no time for another attempt */
        failure = hf_activity_timeout_failure(core, activity, HF_TIMEOUT_TYPE_SCHEDULE_TO_CLOSE,
                                              ": no time is left for another attempt");
    }
    hf_activity_emit_timed_out(core, run, activity, failure, retry_state);
    return true;
}
