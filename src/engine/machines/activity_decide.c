/* Activities: the decisions after they were scheduled (activity_command.c): starts, retries, deadlines, answers. The machine
 * itself is in run/machines/activity.c, the events that end an activity are in activity_end.c. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "engine/machines/speculative.h"
#include "engine/matching.h"
#include "engine/retry.h"
#include "engine/size.h"
#include "engine/suspect.h"
#include "engine/token.h"
#include "history/limits.h"
#include "history/payload.h"

/* ---- Queue and start ------------------------------------------------------------------------------------------------- */

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

hf_pb_retry_policy *hf_activity_policy(hf_core *core, const hf_activity *activity, hf_arena *arena)
{
    const hf_pb_activity_task_scheduled_event_attributes *attrs = NULL;
    hf_pb_activity_options changed;
    if (decode_scheduled(core, activity, arena, &attrs) != HF_OK) {
        return NULL;
    }
    hf_str bytes = hf_arena_copy(arena, hf_owned_str(&activity->options));
    if (bytes.len == 0) {
        return attrs->retry_policy;
    }
    hf_status status = hf_pb_decode(&core->op, &hf_pb_activity_options_type, bytes, arena, &changed);
    if (status != HF_OK || changed.retry_policy == NULL) {
        return attrs->retry_policy;
    }
    if (attrs->retry_policy != NULL) { /* this part of a policy is not among the options */
        changed.retry_policy->non_retryable_error_types = attrs->retry_policy->non_retryable_error_types;
    }
    return changed.retry_policy;
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
    response->retry_policy = hf_activity_policy(core, activity, arena);
    response->priority = attrs->priority;
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

/* A timeout of the whole, or of the wait for a worker: no further attempt would help. */
static bool is_out_of_time(const hf_pb_failure *failure)
{
    if (failure->failure_info_case != HF_PB_FAILURE_TIMEOUT_FAILURE_INFO) {
        return false;
    }
    int32_t type = failure->timeout_failure_info->timeout_type;
    return type == HF_TIMEOUT_TYPE_SCHEDULE_TO_START || type == HF_TIMEOUT_TYPE_SCHEDULE_TO_CLOSE;
}

/* An attempt whose process ended: how often in a row that has been so, and the pause (ns) that follows. */
typedef struct hf_loss {
    uint32_t crashes;
    int64_t pause;
} hf_loss;

/* Schedules another attempt after `failure`, or returns why not. The pause is the policy's, or that of `loss` if there is one. */
static int32_t retry(hf_core *core, hf_run *run, hf_activity *activity, const hf_pb_failure *failure,
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
    if (pause <= 0 && !is_paused) {
        hf_activity_fire(core, run, activity);
    }
    return HF_RETRY_STATE_IN_PROGRESS;
}

bool hf_activity_lost(hf_core *core, hf_run *run, hf_activity *activity)
{
    hf_assert(activity->state == HF_ACTIVITY_STARTED && !activity->again && activity->incarnation != core->incarnation);
    HF_PROBE(core, HF_PROBE_WORKER_LOST);
    hf_pb_failure *failure =
        hf_failure_application(&core->scratch, HF_STR("WorkerLost"),
                               HF_STR("the process that ran this attempt ended before it answered"), false);
    if (failure == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return false;
    }
    hf_loss loss = {.crashes = hf_suspect_count(core, &activity->task)};
    loss.pause = hf_suspect_pause(loss.crashes);
    int32_t retry_state = retry(core, run, activity, failure, &loss);
    if (retry_state == HF_RETRY_STATE_IN_PROGRESS) {
        return false;
    }
    hf_activity_emit_failed(core, run, activity, failure, HF_STR(""), retry_state);
    return true;
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
    int32_t retry_state = failure != NULL ? retry(core, run, activity, failure, NULL) : 0;
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

/* ---- Answers --------------------------------------------------------------------------------------------------------- */

static void record_heartbeat(hf_core *core, hf_run *run, hf_activity *activity, const hf_pb_payloads *given)
{
    hf_buf details;
    hf_buf_init(&details, core->memory, SIZE_MAX / 4);
    if (given != NULL) {
        hf_pb_encode(&hf_pb_payloads_type, given, &details);
    }
    if (details.status != HF_OK) {
        hf_core_break(core, details.status, "out of memory");
    }
    hf_pb_activity_heartbeat msg = {
        .scheduled_id = activity->scheduled_id,
        .time = core->now.wall,
        .details = hf_str_of_len(details.data, details.len),
    };
    if (core->status == HF_OK && hf_str_equal(msg.details, hf_owned_str(&activity->heartbeat_details))) {
        HF_PROBE(core, HF_PROBE_HEARTBEAT_UNWRITTEN); /* only its deadline moves */
        activity->heard_time = core->now.wall;
    } else {
        hf_record(core, run, HF_CHANGE_ACTIVITY_HEARTBEAT, &hf_pb_activity_heartbeat_type, &msg);
    }
    hf_buf_deinit(&details);
}

/* True: the activity has ended; false: it is tried again. */
static bool fail(hf_core *core, hf_run *run, hf_activity *activity, hf_pb_failure *failure, hf_str identity)
{
    int32_t retry_state = retry(core, run, activity, failure, NULL);
    if (core->status != HF_OK || retry_state == HF_RETRY_STATE_IN_PROGRESS) {
        return false;
    }
    hf_activity_emit_failed(core, run, activity, failure, identity, retry_state);
    return true;
}

/* A worker sent more data than may be stored: that ends the activity. (After a heartbeat its worker gets a cancel request.) */
static bool fail_too_big(hf_core *core, hf_run *run, hf_activity *activity, const char *what, size_t len,
                         hf_str identity)
{
    hf_pb_failure *failure = hf_failure_too_big(core, what, len);
    return failure != NULL && fail(core, run, activity, failure, identity);
}

#define HEARTBEAT_TOO_BIG "the details of the heartbeat are too long"

/* What a heartbeat is told: it makes the response of its call, with or without a token. */
static void answer_heartbeat(hf_core *core, hf_call *call, bool cancel, bool is_paused, bool is_reset)
{
    if (cancel) {
        HF_PROBE(core, HF_PROBE_HEARTBEAT_CANCEL);
    }
    void *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    if (call->method == HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT) {
        *(hf_pb_record_activity_task_heartbeat_response *)response = (hf_pb_record_activity_task_heartbeat_response){
            .cancel_requested = cancel, .activity_paused = is_paused, .activity_reset = is_reset};
    } else {
        *(hf_pb_record_activity_task_heartbeat_by_id_response *)response =
            (hf_pb_record_activity_task_heartbeat_by_id_response){
                .cancel_requested = cancel, .activity_paused = is_paused, .activity_reset = is_reset};
    }
    hf_call_reply(core, call);
}

static void heartbeat(hf_core *core, hf_call *call, hf_run *run, hf_activity *activity,
                      const hf_pb_record_activity_task_heartbeat_request *request)
{
    bool cancel = activity->cancel_requested_id != 0;
    bool is_paused = hf_activity_is_paused(activity);
    bool is_reset = activity->is_reset;
    size_t len = hf_payloads_len(request->details);
    if (hf_fits(core, len)) {
        record_heartbeat(core, run, activity, request->details);
    } else {
        cancel = true;
        if (fail_too_big(core, run, activity, HEARTBEAT_TOO_BIG, len, request->identity)) {
            hf_wft_schedule(core, run);
        }
    }
    answer_heartbeat(core, call, cancel, is_paused, is_reset);
}

/* The same, for the worker's answer. */
static bool failed(hf_core *core, hf_run *run, hf_activity *activity,
                   const hf_pb_respond_activity_task_failed_request *request)
{
    size_t len = hf_payloads_len(request->last_heartbeat_details);
    if (!hf_fits(core, len)) {
        return fail_too_big(core, run, activity, HEARTBEAT_TOO_BIG, len, request->identity);
    }
    if (request->last_heartbeat_details != NULL) { /* the next attempt can continue from there */
        record_heartbeat(core, run, activity, request->last_heartbeat_details);
    }
    hf_pb_failure none = {.message = HF_STR("the activity failed and gave no failure")};
    hf_pb_failure *failure = hf_failure_fit(core, request->failure != NULL ? request->failure : &none);
    return failure != NULL && fail(core, run, activity, failure, request->identity);
}

static bool completed(hf_core *core, hf_run *run, hf_activity *activity,
                      const hf_pb_respond_activity_task_completed_request *request)
{
    size_t len = hf_payloads_len(request->result);
    if (!hf_fits(core, len)) {
        return fail_too_big(core, run, activity, "the result of the activity is too long", len, request->identity);
    }
    hf_activity_emit_completed(core, run, activity, request->result, request->identity);
    return true;
}

static bool canceled(hf_core *core, hf_run *run, hf_activity *activity,
                     const hf_pb_respond_activity_task_canceled_request *request)
{
    size_t len = hf_payloads_len(request->details);
    if (!hf_fits(core, len)) {
        return fail_too_big(core, run, activity, "the details of the canceled activity are too long", len,
                            request->identity);
    }
    hf_activity_emit_canceled(core, run, activity, request->details, request->identity);
    return true;
}

/* A late answer is refused with the reason, which the worker can pass on to the activity. */
static void refuse_late(hf_core *core, hf_call *call, const hf_run *run, const hf_activity *activity)
{
    HF_PROBE(core, HF_PROBE_LATE_ANSWER);
    if (!hf_run_is_open(run)) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "the workflow of this activity has ended");
    } else if (activity == NULL) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "the activity has ended: it timed out, or was answered already");
    } else {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "this attempt of the activity has ended, and attempt %d comes next",
                     (int)activity->attempt);
    }
}

/* An answer of one method as the same of another: by a token. */
typedef union hf_activity_request {
    hf_pb_respond_activity_task_completed_request completed;
    hf_pb_respond_activity_task_failed_request failed;
    hf_pb_respond_activity_task_canceled_request canceled;
    hf_pb_record_activity_task_heartbeat_request heartbeat;
} hf_activity_request;

static void answer(hf_core *core, hf_call *call, hf_run *run, hf_activity *activity, hf_method method,
                   const void *request)
{
    hf_assert(activity->state == HF_ACTIVITY_STARTED);
    if (method == HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT) {
        heartbeat(core, call, run, activity, request);
        return;
    }
    if (method == HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED && activity->cancel_requested_id == 0) {
        hf_call_fail(core, call, HF_ERR_INVALID,
                     "unable to mark activity as canceled without activity being request canceled first");
        return;
    }
    bool is_last = method != HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED; /* which may be tried again */
    if (is_last && hf_wft_state_now(run) != HF_WFT_STARTED && !hf_execution_has_room(core, call, run, 2)) {
        return;
    }
    bool news = false;
    if (method == HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED) {
        news = completed(core, run, activity, request);
    } else if (method == HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED) {
        news = canceled(core, run, activity, request);
    } else {
        news = failed(core, run, activity, request);
    }
    if (news) {
        hf_wft_schedule(core, run);
    }
    hf_call_response(core, call);
    hf_call_reply(core, call);
}

void hf_activity_answer(hf_core *core, hf_call *call, hf_run *run, const hf_token *token)
{
    bool named = token->kind == HF_TASK_ACTIVITY && hf_run_is_open(run);
    hf_activity *activity = named ? hf_run_activity(run, token->scheduled_id) : NULL;
    bool same = activity != NULL &&
                ((hf_activity_given(activity) == token->attempt && activity->started_time == token->stamp) ||
                 HF_CANARY(HF_BUG_OLD_ANSWER_TAKEN));
    if (!same || activity->state != HF_ACTIVITY_STARTED) {
        refuse_late(core, call, run, activity);
        return;
    }
    answer(core, call, run, activity, call->method, call->request);
}

/* The request of a call by id as that of the call by token, which is returned. */
static hf_method translate(const hf_call *call, hf_activity_request *ret_request, hf_str *ret_activity_id)
{
    if (call->method == HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID) {
        const hf_pb_respond_activity_task_completed_by_id_request *request = call->request;
        ret_request->completed =
            (hf_pb_respond_activity_task_completed_request){.result = request->result, .identity = request->identity};
        *ret_activity_id = request->activity_id;
        return HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED;
    }
    if (call->method == HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID) {
        const hf_pb_respond_activity_task_failed_by_id_request *request = call->request;
        ret_request->failed =
            (hf_pb_respond_activity_task_failed_request){.failure = request->failure,
                                                         .identity = request->identity,
                                                         .last_heartbeat_details = request->last_heartbeat_details};
        *ret_activity_id = request->activity_id;
        return HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED;
    }
    if (call->method == HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID) {
        const hf_pb_respond_activity_task_canceled_by_id_request *request = call->request;
        ret_request->canceled =
            (hf_pb_respond_activity_task_canceled_request){.details = request->details, .identity = request->identity};
        *ret_activity_id = request->activity_id;
        return HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED;
    }
    hf_assert(call->method == HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID);
    const hf_pb_record_activity_task_heartbeat_by_id_request *request = call->request;
    ret_request->heartbeat =
        (hf_pb_record_activity_task_heartbeat_request){.details = request->details, .identity = request->identity};
    *ret_activity_id = request->activity_id;
    return HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT;
}

void hf_activity_answer_by_id(hf_core *core, hf_call *call, hf_run *run)
{
    hf_activity_request request = {0};
    hf_str id = {0};
    hf_method method = translate(call, &request, &id);
    if (id.len == 0) {
        hf_call_fail(core, call, HF_ERR_INVALID, "activityID cannot be empty");
        return;
    }
    hf_activity *activity = hf_run_is_open(run) ? hf_run_activity_by_id(run, id) : NULL;
    if (!hf_run_is_open(run)) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "workflow execution already completed");
        return;
    }
    if (activity == NULL || !hf_activity_is_pending(activity)) {
        hf_call_fail(
            core, call, HF_ERR_NOT_FOUND,
            "cannot find pending activity with ActivityID %.*s, check workflow execution history for more details",
            HF_STR_ARGS(id));
        return;
    }
    bool runs = activity->state == HF_ACTIVITY_STARTED;
    if (!runs && method != HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED) {
        HF_PROBE(core, HF_PROBE_LATE_ANSWER);
        hf_call_fail(core, call, HF_ERR_NOT_FOUND,
                     "invalid activityID or activity already timed out or invoking workflow is completed");
        return;
    }
    HF_PROBE(core, HF_PROBE_ACTIVITY_BY_ID);
    if (!runs) { /* somebody has done its work: no worker needs to take it */
        HF_PROBE(core, HF_PROBE_ACTIVITY_DONE_UNSTARTED);
        hf_activity_give(core, activity, call, request.completed.identity);
    }
    if (core->status == HF_OK) {
        answer(core, call, run, activity, method, &request);
    }
}
