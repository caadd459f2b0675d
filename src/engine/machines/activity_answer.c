/* Answers of workers: an activity has completed, failed or was canceled, or its worker sends a heartbeat. The call names the activity by the
 * token of its task, or by its id. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "engine/machines/speculative.h"
#include "engine/size.h"
#include "engine/stream.h"
#include "engine/token.h"

/* ---- Heartbeats and ends ----------------------------------------------------------------------------------------- */

/* `left`: the process that held the attempt does not answer for it any more. That must survive the process, so it is always written. */
static void record_heartbeat(hf_core *core, hf_run *run, hf_activity *activity, const hf_pb_payloads *given, bool left)
{
    hf_assert(activity->state == HF_ACTIVITY_STARTED);
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
        .left = left,
    };
    if (left && core->status == HF_OK && given == NULL) { /* it has nothing new to say: the last details stay */
        msg.details = hf_owned_str(&activity->heartbeat_details);
    }
    if (!left && core->status == HF_OK && hf_str_equal(msg.details, hf_owned_str(&activity->heartbeat_details))) {
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
    int32_t retry_state = hf_activity_retry(core, run, activity, failure, NULL);
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

/* Answers a heartbeat, whether its call named the activity by a token or by its id. */
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

/* Appends the records that come with a heartbeat. False: they are refused, and the call has failed. */
static bool publish(hf_core *core, hf_call *call, hf_run *run, const hf_activity *activity,
                    const hf_pb_record_activity_task_heartbeat_request *request)
{
    uint64_t hash = request->holdfast_request_id.len > 0 ? hf_request_hash(request->holdfast_request_id) : 0;
    if (hash != 0 && hf_run_stream_knows(run, hash) && !HF_CANARY(HF_BUG_STREAM_TWICE)) {
        HF_PROBE(core, HF_PROBE_STREAM_DEDUPED);
        return true;
    }
    if (!hf_records_fit(core, run, request->holdfast_stream, false)) {
        if (core->op.status == HF_ERR_LIMIT) {
            hf_call_fail_for_good(core, call, NULL, "%s", core->op.message);
        } else {
            hf_call_fail(core, call, core->op.status, "%s", core->op.message);
        }
        return false;
    }
    hf_records_append(core, run, request->holdfast_stream, activity->scheduled_id, hash);
    return true;
}

static void heartbeat(hf_core *core, hf_call *call, hf_run *run, hf_activity *activity,
                      const hf_pb_record_activity_task_heartbeat_request *request)
{
    bool cancel = activity->cancel_requested_id != 0;
    bool is_paused = hf_activity_is_paused(activity);
    bool is_reset = activity->is_reset;
    size_t len = hf_payloads_len(request->details);
    bool publishes = request->holdfast_stream.count > 0;
    if (publishes && !publish(core, call, run, activity, request)) {
        return;
    }
    if (publishes && request->details == NULL && !call->lets_go) {
        activity->heard_time = core->now.wall; /* the last details stay */
    } else if (hf_fits(core, len)) {
        bool left = call->lets_go && activity->incarnation != 0;
        if (left) {
            HF_PROBE(core, HF_PROBE_ATTEMPT_LEFT);
        }
        record_heartbeat(core, run, activity, request->details, left);
    } else {
        cancel = true;
        if (fail_too_big(core, run, activity, HEARTBEAT_TOO_BIG, len, request->identity)) {
            hf_wft_schedule(core, run);
        }
    }
    answer_heartbeat(core, call, cancel, is_paused, is_reset);
}

/* The worker says that the attempt failed. True: the activity has ended. */
static bool failed(hf_core *core, hf_run *run, hf_activity *activity,
                   const hf_pb_respond_activity_task_failed_request *request)
{
    size_t len = hf_payloads_len(request->last_heartbeat_details);
    if (!hf_fits(core, len)) {
        return fail_too_big(core, run, activity, HEARTBEAT_TOO_BIG, len, request->identity);
    }
    if (request->last_heartbeat_details != NULL) { /* the next attempt can continue from there */
        record_heartbeat(core, run, activity, request->last_heartbeat_details, false);
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

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* A late answer is refused with the reason, which the worker can pass on to the activity. */
static void refuse_late(hf_core *core, hf_call *call, const hf_run *run, const hf_activity *activity)
{
    HF_PROBE(core, HF_PROBE_LATE_ANSWER);
    hf_call_say(core, call, "%s",
                hf_run_is_open(run) ? "invalid activityID or activity already timed out or invoking workflow is completed"
                                    : "workflow execution already completed");
    if (!hf_run_is_open(run)) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "the workflow of this activity has ended");
    } else if (activity == NULL) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "the activity has ended: it timed out, or was answered already");
    } else {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "this attempt of the activity has ended, and attempt %d comes next",
                     (int)activity->attempt);
    }
}

/* The request of a call by token. */
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

/* Makes the request of a call by id into one by token. Returns the method of the latter. */
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
    if (!runs) { /* its work is done: no worker needs to take it */
        HF_PROBE(core, HF_PROBE_ACTIVITY_DONE_UNSTARTED);
        hf_activity_give(core, activity, call, request.completed.identity);
    }
    if (core->status == HF_OK) {
        answer(core, call, run, activity, method, &request);
    }
}
