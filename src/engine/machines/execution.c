/* The execution: a run as a whole.
 *
 *     (nothing) --> running --> completed | failed | canceled | terminated | continued as new | timed out
 *
 * One terminal event per run, and it is the last (run-R4). A terminate or a timeout ends a started
 * workflow task before it closes the run, so that buffered events are not lost. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/fetch.h"
#include "engine/history_read.h"
#include "engine/load.h"
#include "engine/machines/chain.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/machines/speculative.h"
#include "engine/matching.h"
#include "engine/notice.h"
#include "engine/retry.h"
#include "engine/zone.h"
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

/* The same for a new run whose first task goes along. */
static void answer_eager(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_start_workflow_execution_request *request = call->request;
    hf_pb_start_workflow_execution_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    HF_PROBE(core, HF_PROBE_WFT_EAGER);
    response->run_id = hf_arena_copy(call->arena, hf_owned_str(&run->run_id));
    response->first_execution_run_id = hf_arena_copy(call->arena, hf_owned_str(&run->first_run_id));
    response->started = true;
    response->status = run->status;
    hf_wft_start_with(core, run, call, request->identity, &response->eager_workflow_task);
}

hf_str hf_execution_new_id(hf_core *core, int64_t number)
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

hf_run *hf_execution_create(hf_core *core, hf_str namespace_, hf_str workflow_id, hf_str request_id)
{
    hf_run *run = hf_run_create(core);
    if (run == NULL) {
        return NULL;
    }
    hf_pb_created created = {
        .run = run->number,
        .namespace = namespace_,
        .workflow_id = workflow_id,
        .run_id = hf_execution_new_id(core, run->number),
        .start_request_id = request_id,
    };
    hf_record(core, run, HF_CHANGE_CREATED, &hf_pb_created_type, &created);
    return core->status == HF_OK ? run : NULL;
}

void hf_execution_begin(hf_core *core, hf_run *run, hf_start_facts *body, hf_pb_history_event *event)
{
    hf_assert(run->event_count == 0 && body->workflow_type != NULL && body->task_queue != NULL);
    hf_pb_task_queue queue = {.name = body->task_queue->name, .kind = HF_TASK_QUEUE_KIND_NORMAL};
    body->task_queue = &queue;
    body->workflow_run_timeout = nearer(body->workflow_run_timeout, body->workflow_execution_timeout);
    if (hf_pb_duration_span(body->workflow_task_timeout).ns == 0) {
        body->workflow_task_timeout = hf_pb_duration_of(hf_seconds(HF_TASK_TIMEOUT_DEFAULT_SECONDS));
    }
    body->workflow_task_timeout =
        nearer(body->workflow_task_timeout, hf_pb_duration_of(hf_seconds(HF_TASK_TIMEOUT_MAX_SECONDS)));
    body->workflow_task_timeout = nearer(body->workflow_task_timeout, body->workflow_run_timeout);
    body->workflow_execution_timeout.has = true;
    event->event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED;
    event->attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES;
    event->workflow_execution_started_event_attributes = body;
    hf_event_emit(core, run, event);
    hf_wft_schedule(core, run);
}

/* ns before the first workflow task of a start. */
static int64_t first_pause(hf_core *core, const hf_pb_start_workflow_execution_request *request)
{
    if (request->cron_schedule.len == 0) {
        return hf_pb_duration_span(request->workflow_start_delay).ns;
    }
    int64_t pause = hf_zone_cron_pause(core, request->cron_schedule, core->now.wall);
    return pause == HF_CRON_NEVER ? 0 : pause; /* it was looked at when the call came */
}

static void start_new(hf_core *core, hf_call *call, hf_name *name)
{
    hf_assert(name->run == NULL || !hf_run_is_open(name->run) || HF_CANARY(HF_BUG_TWO_OPEN_RUNS)); /* one at a time */
    const hf_pb_start_workflow_execution_request *request = call->request;
    hf_run *run = hf_execution_create(core, request->namespace, request->workflow_id, request->request_id);
    if (run == NULL) {
        return;
    }
    hf_name_bind(name, run);
    hf_str run_id = hf_arena_copy(&core->scratch, hf_owned_str(&run->run_id));
    int64_t pause = first_pause(core, request);
    int64_t ends = hf_bound_end(core->now.wall, hf_pb_duration_span(request->workflow_execution_timeout).ns);
    hf_start_facts body = {
        .workflow_type = request->workflow_type,
        .task_queue = request->task_queue,
        .input = request->input,
        .workflow_execution_timeout = request->workflow_execution_timeout,
        .workflow_run_timeout = request->workflow_run_timeout,
        .workflow_task_timeout = request->workflow_task_timeout,
        .workflow_execution_expiration_time =
            ends != INT64_MAX ? hf_pb_timestamp_of((hf_time){ends}) : (hf_pb_timestamp){0},
        .first_workflow_task_backoff = pause > 0 ? hf_pb_duration_of(hf_nanoseconds(pause)) : (hf_pb_duration){0},
        .original_execution_run_id = run_id,
        .first_execution_run_id = run_id,
        .identity = request->identity,
        .retry_policy = request->retry_policy != NULL ? hf_retry_fill(&core->scratch, request->retry_policy) : NULL,
        .attempt = 1,
        .initiator = request->cron_schedule.len > 0 ? HF_CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE
                                                    : HF_CONTINUE_AS_NEW_INITIATOR_UNSPECIFIED,
        .cron_schedule = request->cron_schedule,
        .memo = request->memo,
        .search_attributes = request->search_attributes,
        .header = request->header,
        .workflow_id = request->workflow_id,
        .priority = request->priority,
        .versioning_override = request->versioning_override,
        .completion_callbacks = request->completion_callbacks,
        .continued_failure = request->continued_failure,
        .last_completion_result = request->last_completion_result,
        .eager_execution_accepted =
            request->request_eager_execution && pause <= 0 && (core->alone.run == 0 || !call->in_process),
    };
    hf_child_take_parent(core, call, &body);
    hf_pb_history_event event = {.user_metadata = request->user_metadata, .links = request->links};
    bool is_eager = body.eager_execution_accepted;
    hf_execution_begin(core, run, &body, &event);
    if (core->status == HF_OK && is_eager && hf_wft_may_go_with(core, run, call)) {
        answer_eager(core, call, run);
    } else if (core->status == HF_OK) {
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
    hf_pb_workflow_execution_already_started_failure detail = {
        .start_request_id = hf_owned_str(&run->start_request_id),
        .run_id = call->existing_run_id,
        .first_execution_run_id = hf_owned_str(&run->first_run_id),
    };
    hf_call_fail_with(core, call, HF_ERR_EXISTS, &hf_pb_workflow_execution_already_started_failure_type, &detail,
                      "workflow id \"%.*s\" is in use: run %.*s is %s", HF_STR_ARGS(run->workflow_id),
                      HF_STR_ARGS(run->run_id), hf_execution_machine.rules[run->status].name);
}

void hf_execution_start(hf_core *core, hf_call *call, hf_name *name)
{
    const hf_pb_start_workflow_execution_request *request = call->request;
    bool is_free = name->run == NULL || name->run->deleting != HF_DELETING_NOT;
    hf_run *run = is_free ? NULL : name->run;
    if (hf_message_is_void(core, call)) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "the run that wanted to start this child has ended");
        return;
    }
    bool same_request = run != NULL && request->request_id.len > 0 &&
                        hf_str_equal(hf_owned_str(&run->start_request_id), request->request_id);
    bool is_known = same_request && !(call->maker == HF_CALL_OF_RUN && HF_CANARY(HF_BUG_CHILD_STARTED_TWICE));
    if (is_known && !HF_CANARY(HF_BUG_START_NOT_DEDUPED)) {
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

/* Ends a started workflow task, so that buffered events become events before the run closes. */
static void end_task(hf_core *core, hf_run *run)
{
    hf_speculative_close(core, run);
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
        hf_message_send_last(core, run);
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

static hf_pb_failure *timeout_failure(hf_core *core)
{
    hf_pb_failure *failure = HF_ARENA_NEW(&core->scratch, hf_pb_failure);
    hf_pb_timeout_failure_info *info = HF_ARENA_NEW(&core->scratch, hf_pb_timeout_failure_info);
    if (core->scratch.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    info->timeout_type = HF_TIMEOUT_TYPE_START_TO_CLOSE;
    failure->message = HF_STR("workflow timeout");
    failure->source = HF_STR("Server");
    failure->failure_info_case = HF_PB_FAILURE_TIMEOUT_FAILURE_INFO;
    failure->timeout_failure_info = info;
    return failure;
}

void hf_execution_time_out(hf_core *core, hf_run *run)
{
    hf_assert(hf_run_is_open(run) && run->run_deadline <= core->now.wall);
    bool is_last = run->expiration != 0 && run->expiration <= core->now.wall;
    hf_pb_history_event first = {0};
    bool goes_on = !is_last && hf_chain_may_go_on(core, run);
    if (goes_on && !hf_chain_ready_for_due(core, run, &first)) {
        return; /* fires again when all that is needed is here */
    }
    goes_on = goes_on && first.event_id == 1;
    hf_next next = {0};
    hf_pb_failure *failure = timeout_failure(core);
    if (core->status != HF_OK) {
        return;
    }
    end_task(core, run);
    hf_pb_workflow_execution_timed_out_event_attributes body = {
        .retry_state = is_last ? HF_RETRY_STATE_TIMEOUT : HF_RETRY_STATE_RETRY_POLICY_NOT_SET,
    };
    if (goes_on) {
        body.retry_state = hf_chain_after_failure(core, run, failure, &next);
        hf_chain_reserve(core, run, &next);
        body.new_execution_run_id = next.run_id;
    }
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_TIMED_OUT_EVENT_ATTRIBUTES,
        .workflow_execution_timed_out_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
    hf_chain_repeat_failure(core, run, &next, &first, failure);
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
