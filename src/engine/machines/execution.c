/* The execution: a run as a whole.
 *
 *     (nothing) --> running --> completed | failed | canceled | terminated | continued as new | timed out
 *
 * One terminal event per run, and it is the last (run-R4). A terminate or a timeout ends a started
 * workflow task before it closes the run, so that buffered events are not lost. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/due.h"
#include "engine/emit.h"
#include "engine/fetch.h"
#include "engine/history_read.h"
#include "engine/load.h"
#include "engine/machines/chain.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/machines/speculative.h"
#include "engine/matching.h"
#include "engine/namespaces.h"
#include "engine/notice.h"
#include "engine/retry.h"
#include "engine/zone.h"
#include "history/limits.h"
#include "history/payload.h"
#include "history/reason.h"
#include "ledger/run_id.h"

#include <stdio.h>

/* ---- Start ----------------------------------------------------------------------------------------------------------- */

static hf_pb_link_workflow_event *link_new(hf_arena *arena, const hf_run *run, hf_pb_link **ret_link)
{
    hf_pb_link *link = HF_ARENA_NEW(arena, hf_pb_link);
    hf_pb_link_workflow_event *event = HF_ARENA_NEW(arena, hf_pb_link_workflow_event);
    if (arena->status != HF_OK) {
        return NULL;
    }
    link->variant_case = HF_PB_LINK_WORKFLOW_EVENT;
    link->workflow_event = event;
    event->namespace = hf_arena_copy(arena, hf_owned_str(&run->namespace));
    event->workflow_id = hf_arena_copy(arena, hf_owned_str(&run->workflow_id));
    event->run_id = hf_arena_copy(arena, hf_owned_str(&run->run_id));
    *ret_link = link;
    return event;
}

hf_pb_link *hf_link_to_request(hf_arena *arena, const hf_run *run, hf_str request_id, int32_t event_type)
{
    hf_pb_link *link = NULL;
    hf_pb_link_workflow_event *event = link_new(arena, run, &link);
    hf_pb_link_workflow_event_request_id_reference *reference =
        HF_ARENA_NEW(arena, hf_pb_link_workflow_event_request_id_reference);
    if (event != NULL && reference != NULL) {
        reference->request_id = hf_arena_copy(arena, request_id);
        reference->event_type = event_type;
        event->reference_case = HF_PB_LINK_WORKFLOW_EVENT_REQUEST_ID_REF;
        event->request_id_ref = reference;
    }
    return link;
}

/* A link to the first event of the run, or to the event that tells of this request id. */
static hf_pb_link *link_to(hf_arena *arena, const hf_run *run, hf_str attached_id)
{
    if (attached_id.len > 0) {
        return hf_link_to_request(arena, run, attached_id, HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED);
    }
    hf_pb_link *link = NULL;
    hf_pb_link_workflow_event *event = link_new(arena, run, &link);
    hf_pb_link_workflow_event_event_reference *first = HF_ARENA_NEW(arena, hf_pb_link_workflow_event_event_reference);
    if (event != NULL && first != NULL) {
        first->event_id = 1;
        first->event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED;
        event->reference_case = HF_PB_LINK_WORKFLOW_EVENT_EVENT_REF;
        event->event_ref = first;
    }
    return link;
}

static void answer_start(hf_core *core, hf_call *call, const hf_run *run, bool started, hf_str attached_id)
{
    hf_pb_start_workflow_execution_response *response = hf_call_response(core, call);
    if (response != NULL) {
        response->run_id = hf_arena_copy(call->arena, hf_owned_str(&run->run_id));
        response->first_execution_run_id = hf_arena_copy(call->arena, hf_owned_str(&run->first_run_id));
        response->started = started;
        response->status = run->status;
        response->link = link_to(call->arena, run, attached_id);
        hf_call_reply(core, call);
    }
}

/* The same for a new run whose first task goes to the caller with the answer. */
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
    response->link = link_to(call->arena, run, HF_STR(""));
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

hf_run *hf_execution_create(hf_core *core, hf_str namespace_, hf_str workflow_id, hf_str request_id, hf_run_kind kind)
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
        .kind = (int32_t)kind,
    };
    hf_record(core, run, HF_CHANGE_CREATED, &hf_pb_created_type, &created);
    hf_assert(run->event_count == 0 && run->number < core->run_next); /* run-R1: its first event has the id 1 */
    return core->status == HF_OK ? run : NULL;
}

void hf_execution_keep(hf_core *core, hf_run *run, int64_t span)
{
    if (span > 0) {
        HF_PROBE(core, HF_PROBE_OWN_SPAN);
        hf_record_int(core, run, HF_CHANGE_KEPT, span);
    }
}

static void emit_first(hf_core *core, hf_run *run, hf_start_facts *body, hf_pb_history_event *event)
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
}

void hf_execution_begin(hf_core *core, hf_run *run, hf_start_facts *body, hf_pb_history_event *event)
{
    emit_first(core, run, body, event);
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

hf_run *hf_execution_new(hf_core *core, hf_call *call, const hf_pb_start_workflow_execution_request *request,
                         hf_name *name, const hf_signal *signal)
{
    hf_assert(name->run == NULL || !hf_run_is_open(name->run) || HF_CANARY(HF_BUG_TWO_OPEN_RUNS)); /* one at a time */
    hf_run *run =
        hf_execution_create(core, request->namespace, request->workflow_id, request->request_id, HF_KIND_WORKFLOW);
    if (run == NULL) {
        return NULL;
    }
    hf_name_bind(name, run);
    hf_execution_keep(core, run, hf_pb_duration_span(request->holdfast_keep).ns);
    hf_str run_id = hf_arena_copy(&core->scratch, hf_owned_str(&run->run_id));
    int64_t pause = first_pause(core, request);
    if (pause > 0) {
        HF_PROBE(core, HF_PROBE_FIRST_TASK_HELD);
    }
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
        .search_attributes = hf_attributes_typed(core, request->namespace, request->search_attributes),
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
    emit_first(core, run, &body, &event);
    if (signal != NULL) {
        hf_signal_add(core, run, signal);
    }
    hf_wft_schedule(core, run);
    return core->status == HF_OK ? run : NULL;
}

/* Whether the first task of a new run goes along with the answer to its start. */
static bool is_eager(const hf_core *core, const hf_call *call, const hf_run *run)
{
    const hf_pb_start_workflow_execution_request *request = call->request;
    return request->request_eager_execution && (core->alone.run == 0 || !call->in_process) &&
           hf_wft_may_go_with(core, run, call);
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

/* In a Temporal server's words. */
static void say_in_use(hf_core *core, hf_call *call, int32_t policy, const hf_run *run)
{
    const char *why = "is already running";
    const char *rule = "";
    if (!hf_run_is_open(run)) {
        bool is_strict = policy == HF_WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE;
        why = is_strict ? "already finished" : "already finished successfully";
        rule = is_strict ? " Workflow Id reuse policy: reject duplicate workflow Id."
                         : " Workflow Id reuse policy: allow duplicate workflow Id if last run failed.";
    }
    hf_call_say(core, call, "Workflow execution %s. WorkflowId: %.*s, RunId: %.*s.%s", why,
                HF_STR_ARGS(run->workflow_id), HF_STR_ARGS(run->run_id), rule);
}

static void refuse_start(hf_core *core, hf_call *call, int32_t policy, const hf_run *run)
{
    say_in_use(core, call, policy, run);
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

bool hf_execution_make_room(hf_core *core, hf_call *call, const hf_pb_start_workflow_execution_request *request,
                            hf_run *current)
{
    if (current != NULL && hf_run_is_open(current)) {
        if (request->workflow_id_reuse_policy != HF_WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING &&
            request->workflow_id_conflict_policy != HF_WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING) {
            HF_PROBE(core, HF_PROBE_START_REFUSED);
            refuse_start(core, call, request->workflow_id_reuse_policy, current);
            return false;
        }
        HF_PROBE(core, HF_PROBE_START_TERMINATED);
        if (!HF_CANARY(HF_BUG_TWO_OPEN_RUNS)) {
            hf_execution_terminate(core, current, HF_STR("terminated by a new start of the same id"), NULL,
                                   HF_IDENTITY_ENGINE);
        }
    } else if (current != NULL && !may_reuse(request->workflow_id_reuse_policy, current->status)) {
        HF_PROBE(core, HF_PROBE_START_REUSE_REFUSED);
        refuse_start(core, call, request->workflow_id_reuse_policy, current);
        return false;
    }
    return core->status == HF_OK;
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
        answer_start(core, call, run, true, HF_STR(""));
        return;
    }
    if (run != NULL && hf_run_has_attached(run, request->request_id, &core->scratch)) {
        HF_PROBE(core, HF_PROBE_START_FOUND_ATTACHED);
        answer_start(core, call, run, false, request->request_id);
        return;
    }
    if (run != NULL && hf_run_is_open(run) &&
        request->workflow_id_reuse_policy != HF_WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING &&
        request->workflow_id_conflict_policy == HF_WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING) {
        HF_PROBE(core, HF_PROBE_START_USE_EXISTING);
        if (hf_options_attach(core, call, run, request)) {
            const hf_pb_on_conflict_options *options = request->on_conflict_options;
            bool is_attached = options != NULL && options->attach_request_id;
            answer_start(core, call, run, false, is_attached ? request->request_id : HF_STR(""));
        }
        return;
    }
    if (!hf_execution_make_room(core, call, request, run)) {
        return;
    }
    run = hf_execution_new(core, call, request, name, NULL);
    if (run != NULL && is_eager(core, call, run)) {
        answer_eager(core, call, run);
    } else if (run != NULL) {
        answer_start(core, call, run, true, HF_STR(""));
    }
}

/* ---- The end from outside -------------------------------------------------------------------------------------------- */

/* Ends a started workflow task, so that buffered events become events before the run closes. */
static void end_task(hf_core *core, hf_run *run)
{
    hf_speculative_close(core, run);
    if (run->wft.state == HF_WFT_STARTED) {
        hf_wft_fail(core, run, HF_WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND, NULL, HF_IDENTITY_ENGINE);
    }
}

void hf_execution_closed(hf_core *core, hf_run *run)
{
    hf_assert(core->status != HF_OK || (!hf_run_is_open(run) && run->close_event_id == run->event_count)); /* run-R4 */
    if (core->status == HF_OK) {
        hf_heap_remove(&core->due, &HF_SLOT(run)->due);
        hf_due_at(core, run, hf_run_next_due(run)); /* if it is kept for a span of its own */
        HF_SLOT(run)->spill_now = true;
        hf_message_send_last(core, run);
        hf_watch_wake(core, run, false);
    }
}

static void terminate(hf_core *core, hf_run *run, hf_str reason, hf_pb_payloads *details, hf_str identity,
                      hf_pb_link_list links)
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
        .links = links,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_TERMINATED_EVENT_ATTRIBUTES,
        .workflow_execution_terminated_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
    hf_assert(core->status != HF_OK || !hf_run_is_open(run)); /* run-R4 */
}

void hf_execution_terminate(hf_core *core, hf_run *run, hf_str reason, hf_pb_payloads *details, hf_str identity)
{
    terminate(core, run, reason, details, identity, (hf_pb_link_list){NULL, 0});
}

/* Its history has, or would have, `count` events: that or its length ends the run. Writes the sentence for people. */
static void end_too_long(hf_core *core, hf_run *run, int64_t count, char why[HF_MESSAGE_LEN_MAX])
{
    HF_PROBE(core, HF_PROBE_LIMIT_HIT);
    HF_SLOT(run)->over_count = count;
    HF_SLOT(run)->over_len = run->history_len;
    bool is_count = count > core->options.limits.history_count;
    hf_str reason = is_count ? HF_STR(HF_REASON_TOO_MANY_EVENTS) : HF_STR(HF_REASON_TOO_MANY_BYTES);
    char quoted[HF_MESSAGE_LEN_MAX + 2];
    hf_notice_sentence(core, run, why);
    (void)snprintf(quoted, sizeof quoted, "\"%s\"", why);
    hf_str text = hf_arena_copy(&core->scratch, hf_str_of(quoted));
    hf_pb_payloads *details = hf_payloads_of(&core->scratch, hf_payload_json(&core->scratch, text));
    hf_execution_terminate(core, run, reason, details, HF_IDENTITY_ENGINE);
    HF_SLOT(run)->notices |= HF_BIT(HF_NOTICE_ENDED);
}

bool hf_execution_is_too_long(hf_core *core, hf_run *run, int64_t more)
{
    const hf_core_limits *limits = &core->options.limits;
    if (run->event_count + more <= limits->history_count && run->history_len < limits->history_len) {
        return false;
    }
    char why[HF_MESSAGE_LEN_MAX];
    end_too_long(core, run, run->event_count + more, why);
    return true;
}

bool hf_execution_has_room(hf_core *core, hf_call *call, hf_run *run, int64_t more)
{
    /* Without a new task behind them the last events may pass the limit, on a Temporal server, too. */
    bool needs_task = run->wft.state == HF_WFT_NONE && run->first_task_at <= core->now.wall;
    return hf_execution_may_have(core, call, run, needs_task ? run->event_count + more + 1 : run->event_count);
}

bool hf_execution_may_have(hf_core *core, hf_call *call, hf_run *run, int64_t count)
{
    if (count <= core->options.limits.history_count) {
        return true;
    }
    char why[HF_MESSAGE_LEN_MAX];
    end_too_long(core, run, count, why);
    hf_call_fail_for_good(core, call, HF_REASON_TOO_MANY_EVENTS, "%s", why);
    return false;
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
    if (is_last) {
        HF_PROBE(core, HF_PROBE_CHAIN_EXPIRED);
    }
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
    hf_assert(core->status != HF_OK || !hf_run_is_open(run)); /* run-R4 */
    hf_chain_repeat_failure(core, run, &next, &first, failure);
}

void hf_execution_terminate_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_terminate_workflow_execution_request *request = call->request;
    if (!hf_run_is_open(run)) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "workflow execution already completed");
        return;
    }
    hf_str identity =
        request->identity.len > 0 ? request->identity : HF_STR("frontend-service"); /* the request has no identity */
    terminate(core, run, request->reason, request->details, identity, request->links);
    hf_call_response(core, call);
    hf_call_reply(core, call);
}
