/* The execution: a run as a whole.
 *
 *     (nothing) --> running --> completed | failed | canceled | terminated | continued as new | timed out
 *
 * One terminal event per run, and it is the last (run-R4). What closes a run from outside, terminate and timeout, ends a
 * started workflow task first, so that buffered events are not lost. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/history_read.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/matching.h"
#include "engine/notice.h"
#include "history/limits.h"
#include "history/payload.h"
#include "ledger/run_id.h"

/* ---- Start ----------------------------------------------------------------------------------------------------------- */

static void answer_start(hf_core *core, hf_call *call, const hf_run *run, bool started)
{
    hf_pb_start_workflow_execution_response *response = hf_call_response(core, call);
    if (response != NULL) {
        response->run_id = hf_arena_copy(call->arena, hf_owned_str(&run->run_id));
        response->first_execution_run_id = hf_arena_copy(call->arena, hf_owned_str(&run->first_run_id));
        response->started = started;
        response->status = run->status;
        hf_call_reply(core, call);
    }
}

static hf_str new_run_id(hf_core *core, int64_t number)
{
    uint64_t words[2] = {core->incarnation, core->run_ids++};
    uint64_t chance = hf_siphash(core->options.seed, hf_str_of_len(words, sizeof words));
    return hf_run_id_make(core->mac_key, &core->scratch, chance, number);
}

/* The shorter of two spans; 0 = there is no bound. */
static hf_pb_duration nearer(hf_pb_duration a, hf_pb_duration b)
{
    int64_t ns = hf_pb_duration_span(a).ns;
    int64_t other = hf_pb_duration_span(b).ns;
    return hf_pb_duration_of(hf_nanoseconds(ns == 0 || (other > 0 && other < ns) ? other : ns));
}

static void emit_started(hf_core *core, hf_run *run, const hf_pb_start_workflow_execution_request *request)
{
    hf_str run_id = hf_owned_str(&run->run_id);
    hf_pb_task_queue queue = {.name = request->task_queue->name, .kind = HF_TASK_QUEUE_KIND_NORMAL};
    hf_pb_workflow_type type = {.name = request->workflow_type->name};
    hf_pb_workflow_execution_started_event_attributes body = {
        .workflow_type = &type,
        .task_queue = &queue,
        .input = request->input,
        .workflow_execution_timeout = request->workflow_execution_timeout,
        .workflow_run_timeout = nearer(request->workflow_run_timeout, request->workflow_execution_timeout),
        .workflow_task_timeout = request->workflow_task_timeout,
        .original_execution_run_id = run_id,
        .first_execution_run_id = run_id,
        .identity = request->identity,
        .retry_policy = request->retry_policy,
        .attempt = 1,
        .cron_schedule = request->cron_schedule,
        .memo = request->memo,
        .search_attributes = request->search_attributes,
        .header = request->header,
        .workflow_id = request->workflow_id,
        .priority = request->priority,
        .continued_failure = request->continued_failure,
        .last_completion_result = request->last_completion_result,
    };
    if (!body.workflow_task_timeout.has || hf_pb_duration_span(body.workflow_task_timeout).ns == 0) {
        body.workflow_task_timeout = hf_pb_duration_of(hf_seconds(10));
    }
    body.workflow_task_timeout = nearer(body.workflow_task_timeout, body.workflow_run_timeout);
    body.workflow_execution_timeout.has = true;
    if (hf_pb_duration_span(body.workflow_execution_timeout).ns > 0) {
        int64_t ends = 0;
        if (__builtin_add_overflow(core->now.wall, hf_pb_duration_span(body.workflow_execution_timeout).ns, &ends)) {
            ends = INT64_MAX;
        }
        body.workflow_execution_expiration_time = hf_pb_timestamp_of((hf_time){ends});
    }
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES,
        .workflow_execution_started_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

static void start_new(hf_core *core, hf_call *call, hf_name *name)
{
    hf_assert(name->run == NULL || !hf_run_is_open(name->run) || HF_CANARY(HF_BUG_TWO_OPEN_RUNS)); /* one at a time */
    const hf_pb_start_workflow_execution_request *request = call->request;
    hf_run *run = hf_run_create(core);
    if (run == NULL) {
        return;
    }
    hf_pb_created created = {
        .run = run->number,
        .namespace = request->namespace,
        .workflow_id = request->workflow_id,
        .run_id = new_run_id(core, run->number),
        .start_request_id = request->request_id,
    };
    hf_record(core, run, HF_CHANGE_CREATED, &hf_pb_created_type, &created);
    hf_name_bind(name, run);
    emit_started(core, run, request);
    hf_wft_schedule(core, run);
    if (core->status == HF_OK) {
        answer_start(core, call, run, true);
    }
}

/* Whether a closed run of the same id lets a new one start. */
static bool may_reuse(int32_t policy, int32_t status)
{
    hf_assert(status != HF_WORKFLOW_EXECUTION_STATUS_RUNNING);
    switch (policy) {
    case HF_WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE:
        return false;
    case HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY:
        return status != HF_WORKFLOW_EXECUTION_STATUS_COMPLETED &&
               status != HF_WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW;
    default:
        return true;
    }
}

static void refuse_start(hf_core *core, hf_call *call, const hf_run *run)
{
    call->existing_run_id = hf_arena_copy(call->arena, hf_owned_str(&run->run_id));
    hf_call_fail(core, call, HF_ERR_EXISTS, "workflow id \"%.*s\" is in use: run %.*s is %s",
                 HF_STR_ARGS(run->workflow_id), HF_STR_ARGS(run->run_id), hf_execution_machine.rules[run->status].name);
}

void hf_execution_start(hf_core *core, hf_call *call, hf_name *name)
{
    const hf_pb_start_workflow_execution_request *request = call->request;
    hf_run *run = name->run;
    bool same_request = run != NULL && request->request_id.len > 0 &&
                        hf_str_equal(hf_owned_str(&run->start_request_id), request->request_id);
    if (same_request && !HF_CANARY(HF_BUG_START_NOT_DEDUPED)) {
        HF_PROBE(core, HF_PROBE_START_DEDUPED);
        answer_start(core, call, run, true);
        return;
    }
    if (run != NULL && hf_run_is_open(run)) {
        int32_t policy = request->workflow_id_conflict_policy;
        if (request->workflow_id_reuse_policy == HF_WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING) {
            policy = HF_WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING;
        }
        if (policy == HF_WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING) {
            HF_PROBE(core, HF_PROBE_START_USE_EXISTING);
            answer_start(core, call, run, false);
            return;
        }
        if (policy != HF_WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING) {
            HF_PROBE(core, HF_PROBE_START_REFUSED);
            refuse_start(core, call, run);
            return;
        }
        HF_PROBE(core, HF_PROBE_START_TERMINATED);
        if (!HF_CANARY(HF_BUG_TWO_OPEN_RUNS)) {
            hf_execution_terminate(core, run, HF_STR("terminated by a new start of the same id"), NULL,
                                   request->identity);
        }
    } else if (run != NULL && !may_reuse(request->workflow_id_reuse_policy, run->status)) {
        HF_PROBE(core, HF_PROBE_START_REUSE_REFUSED);
        refuse_start(core, call, run);
        return;
    }
    if (core->status == HF_OK) {
        start_new(core, call, name);
    }
}

/* ---- The end from outside -------------------------------------------------------------------------------------------- */

/* What is buffered becomes events before the run closes. */
static void end_task(hf_core *core, hf_run *run)
{
    if (run->wft.state == HF_WFT_STARTED) {
        hf_wft_fail(core, run, HF_WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND, NULL, HF_STR(""));
    }
}

void hf_execution_closed(hf_core *core, hf_run *run)
{
    hf_assert(core->status != HF_OK || (!hf_run_is_open(run) && run->close_event_id == run->event_count)); /* run-R4 */
    if (core->status == HF_OK) {
        hf_heap_remove(&core->due, &HF_SLOT(run)->due);
        HF_SLOT(run)->spill_now = true;
        hf_external_release(core, run);
        hf_watch_wake(core, run);
    }
}

void hf_execution_terminate(hf_core *core, hf_run *run, hf_str reason, hf_pb_payloads *details, hf_str identity)
{
    hf_assert(hf_run_is_open(run));
    end_task(core, run);
    hf_pb_workflow_execution_terminated_event_attributes body = {
        .reason = reason,
        .details = details,
        .identity = identity,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_TERMINATED_EVENT_ATTRIBUTES,
        .workflow_execution_terminated_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

bool hf_execution_is_too_long(hf_core *core, hf_run *run)
{
    const hf_core_limits *limits = &core->options.limits;
    if (run->event_count < limits->history_count && run->history_len < limits->history_len) {
        return false;
    }
    HF_PROBE(core, HF_PROBE_LIMIT_HIT);
    char why[HF_MESSAGE_LEN_MAX];
    hf_notice_sentence(core, run, why);
    HF_SLOT(run)->over_count = run->event_count;
    HF_SLOT(run)->over_len = run->history_len;
    hf_execution_terminate(core, run, hf_str_of(why), NULL, HF_STR("history-service"));
    HF_SLOT(run)->notices |= HF_BIT(HF_NOTICE_ENDED);
    return true;
}

void hf_execution_time_out(hf_core *core, hf_run *run)
{
    hf_assert(hf_run_is_open(run) && run->run_deadline <= core->now.wall);
    end_task(core, run);
    int64_t ends = 0;
    bool is_last = run->execution_timeout > 0 &&
                   !__builtin_add_overflow(run->start_time, run->execution_timeout, &ends) && ends <= core->now.wall;
    hf_pb_workflow_execution_timed_out_event_attributes body = {
        .retry_state = is_last ? HF_RETRY_STATE_TIMEOUT : HF_RETRY_STATE_RETRY_POLICY_NOT_SET,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_TIMED_OUT_EVENT_ATTRIBUTES,
        .workflow_execution_timed_out_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

void hf_execution_terminate_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_terminate_workflow_execution_request *request = call->request;
    if (!hf_run_is_open(run)) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "workflow execution already completed");
        return;
    }
    hf_execution_terminate(core, run, request->reason, request->details, request->identity);
    hf_call_response(core, call);
    hf_call_reply(core, call);
}
