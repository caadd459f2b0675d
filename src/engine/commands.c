/* The answer to a workflow task: commands become events.
 *
 * In order: WorkflowTaskCompleted; one event per command; the events that were buffered meanwhile; the end of activities that were canceled
 * before they started; a new workflow task if there is anything new to see. All of it or nothing: all commands are checked first,
 * and a bad command fails the task instead. A command that closes the run while events are buffered fails it too
 * (UnhandledCommand): the workflow has not seen them. Firings of timers that the list cancels do not count: they are taken back. */
#include "engine/commands.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/emit.h"
#include "engine/input.h"
#include "engine/machines/chain.h"
#include "engine/machines/machines.h"
#include "engine/machines/query.h"
#include "engine/machines/speculative.h"
#include "engine/machines/update.h"
#include "engine/matching.h"
#include "engine/size.h"
#include "engine/stream.h"
#include "history/limits.h"
#include "history/payload.h"

#include <stdio.h>

#define FORGOTTEN_MAX 10 /* events that a worker may have to see again after a task that is dropped */
#define STICKY_SECONDS 5 /* how long a task waits in a sticky queue if the worker gives no timeout */

/* ---- The commands ---------------------------------------------------------------------------------------------------- */

static void act_schedule_activity(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    (void)plan;
    hf_activity_schedule(core, run, command->schedule_activity_task_command_attributes);
}

static void act_cancel_activity(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    (void)plan;
    hf_activity_request_cancel(core, run, command->request_cancel_activity_task_command_attributes->scheduled_event_id);
}

static void act_start_timer(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    (void)plan;
    hf_timer_start(core, run, command->start_timer_command_attributes);
}

static void act_cancel_timer(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    hf_timer_cancel(core, run, command->cancel_timer_command_attributes->timer_id, plan->request->identity);
}

static void act_signal_external(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    (void)plan;
    hf_external_decide_signal(core, run, command->signal_external_workflow_execution_command_attributes);
}

static void act_cancel_external(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    (void)plan;
    hf_external_decide_cancel(core, run, command->request_cancel_external_workflow_execution_command_attributes);
}

typedef struct hf_command_rule {
    uint32_t attributes; /* the member of the union that goes with it: reading another one would give garbage */
    hf_command_check *check;
    hf_command_act *act;
    bool closes; /* it closes the run */
} hf_command_rule;

static const hf_command_rule RULES[] = {
    [HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK] = {HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES,
                                                hf_check_schedule_activity, act_schedule_activity, false},
    [HF_COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK] = {HF_PB_COMMAND_REQUEST_CANCEL_ACTIVITY_TASK_COMMAND_ATTRIBUTES,
                                                      hf_check_cancel_activity, act_cancel_activity, false},
    [HF_COMMAND_TYPE_START_TIMER] = {HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES, hf_check_start_timer,
                                     act_start_timer, false},
    [HF_COMMAND_TYPE_CANCEL_TIMER] = {HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES, hf_check_cancel_timer,
                                      act_cancel_timer, false},
    [HF_COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION] =
        {HF_PB_COMMAND_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES, hf_check_signal_external,
         act_signal_external, false},
    [HF_COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION] =
        {HF_PB_COMMAND_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES, hf_check_cancel_external,
         act_cancel_external, false},
    [HF_COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION] = {HF_PB_COMMAND_START_CHILD_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
                                                        hf_check_start_child, hf_act_start_child, false},
    [HF_COMMAND_TYPE_RECORD_MARKER] = {HF_PB_COMMAND_RECORD_MARKER_COMMAND_ATTRIBUTES, hf_check_marker, hf_act_marker,
                                       false},
    [HF_COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES] =
        {HF_PB_COMMAND_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES_COMMAND_ATTRIBUTES, hf_check_upsert_attributes,
         hf_act_upsert_attributes, false},
    [HF_COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES] = {HF_PB_COMMAND_MODIFY_WORKFLOW_PROPERTIES_COMMAND_ATTRIBUTES,
                                                    hf_check_upsert_memo, hf_act_upsert_memo, false},
    [HF_COMMAND_TYPE_PROTOCOL_MESSAGE] = {HF_PB_COMMAND_PROTOCOL_MESSAGE_COMMAND_ATTRIBUTES, hf_check_protocol_message,
                                          hf_act_protocol_message, false},
    [HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION] = {HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
                                                     hf_check_complete, hf_act_complete, true},
    [HF_COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION] = {HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
                                                 hf_check_fail, hf_act_fail, true},
    [HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION] = {HF_PB_COMMAND_CANCEL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
                                                   hf_check_cancel, hf_act_cancel, true},
    [HF_COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION] =
        {HF_PB_COMMAND_CONTINUE_AS_NEW_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES, hf_check_continue_as_new,
         hf_act_continue_as_new, true},
};

static const hf_command_rule *rule_of(const hf_pb_command *command)
{
    bool is_known = command->command_type > 0 && (size_t)command->command_type < HF_COUNT_OF(RULES);
    return is_known && RULES[command->command_type].check != NULL ? &RULES[command->command_type] : NULL;
}

static bool check_one(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    const hf_command_rule *rule = rule_of(command);
    hf_assert(!plan->closes); /* is_in_order */
    if (rule == NULL) {
        bool is_nexus = command->command_type == HF_COMMAND_TYPE_SCHEDULE_NEXUS_OPERATION ||
                        command->command_type == HF_COMMAND_TYPE_REQUEST_CANCEL_NEXUS_OPERATION;
        return hf_command_bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_FEATURE_DISABLED,
                              is_nexus ? "this server has no Nexus operations"
                                       : "this version does not know the command");
    }
    if (command->attributes_case != 0 && command->attributes_case != rule->attributes) {
        return hf_command_bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED,
                              "the attributes of a command are those of another");
    }
    if (command->user_metadata != NULL &&
        !hf_command_fits(core, plan, hf_message_len(core, &hf_pb_user_metadata_type, command->user_metadata),
                         HF_WORKFLOW_TASK_FAILED_CAUSE_PAYLOADS_TOO_LARGE,
                         "UserMetadata of a command exceeds size limit.")) {
        return false;
    }
    plan->closes = rule->closes;
    return rule->check(core, run, plan, command);
}

/* Whether a command that closes the run is the last one. */
static bool is_in_order(const hf_pb_respond_workflow_task_completed_request *request)
{
    for (size_t i = 0; i + 1 < request->commands.count; i++) {
        const hf_command_rule *rule = rule_of(&request->commands.items[i]);
        if (rule != NULL && rule->closes) {
            return false;
        }
    }
    return true;
}

static bool check_all(hf_core *core, const hf_run *run, hf_plan *plan)
{
    size_t count = plan->request->commands.count;
    plan->event_ids = HF_ARENA_ARRAY(&core->scratch, int64_t, count + 1);
    if (plan->event_ids == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const hf_pb_command *command = &plan->request->commands.items[i];
        plan->event_ids[i] = plan->event_id;
        if (!check_one(core, run, plan, command)) {
            return false;
        }
        plan->event_id +=
            command->command_type != HF_COMMAND_TYPE_PROTOCOL_MESSAGE; /* the check of a message counts its event */
    }
    return hf_updates_check_rest(core, run, plan);
}

/* The number of events that the history has when the task is completed, with the events that wait for its end and the next task. */
static int64_t count_after(const hf_run *run, const hf_plan *plan)
{
    int64_t waiting = (int64_t)(run->buffered.count - plan->unfired) + plan->early;
    bool is_next = waiting > 0 || plan->request->force_create_new_workflow_task;
    return plan->event_id - 1 + waiting + (is_next ? 1 : 0);
}

/* ---- Events ---------------------------------------------------------------------------------------------------------- */

static void emit_completed(hf_core *core, hf_run *run, const hf_pb_respond_workflow_task_completed_request *request)
{
    hf_pb_workflow_task_completed_event_attributes body = {
        .scheduled_event_id = run->wft.scheduled_id,
        .started_event_id = run->wft.started_id,
        .identity = request->identity,
        .binary_checksum = request->binary_checksum,
        .worker_version = request->worker_version_stamp,
        .sdk_metadata = request->sdk_metadata,
        .metering_metadata = request->metering_metadata,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_COMPLETED_EVENT_ATTRIBUTES,
        .workflow_task_completed_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

static void set_sticky(hf_core *core, hf_run *run, const hf_pb_sticky_execution_attributes *attrs)
{
    bool sticky = attrs != NULL && attrs->worker_task_queue != NULL && attrs->worker_task_queue->name.len > 0 &&
                  attrs->worker_task_queue->name.len <= HF_ID_LEN_MAX;
    if (!sticky) {
        hf_wft_unstick(core, run);
        return;
    }
    hf_pb_sticky msg = {
        .queue = attrs->worker_task_queue->name,
        .timeout = hf_pb_duration_span(attrs->schedule_to_start_timeout).ns,
    };
    if (msg.timeout <= 0) { /* a task must not wait for ever for a worker that is gone */
        msg.timeout = hf_seconds(STICKY_SECONDS).ns;
    }
    if (!hf_str_equal(hf_owned_str(&run->sticky_queue), msg.queue) || run->sticky_timeout != msg.timeout) {
        hf_record(core, run, HF_CHANGE_STICKY, &hf_pb_sticky_type, &msg);
    }
}

/* Fails the task, tells the caller why, and schedules the next attempt. From the second attempt on the task is not failed but
 * times out, with longer and longer timeouts, so that a worker which always answers the same does not get the task again and
 * again without a pause. UnhandledCommand is not the worker's fault: then the next attempt follows at once. */
static void refuse(hf_core *core, hf_call *call, hf_run *run, int32_t cause, const char *why)
{
    const hf_pb_respond_workflow_task_completed_request *request = call->request;
    char message[HF_MESSAGE_LEN_MAX];
    (void)snprintf(message, sizeof message, "%s", why);
    call->task_failed_cause = cause;
    if (run->wft.attempt > 1 && cause != HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND) {
        hf_call_fail(core, call, HF_ERR_INVALID, "%s", message);
        return;
    }
    hf_speculative_answered(core, run);
    if (core->status != HF_OK) {
        return;
    }
    if (cause != HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND) {
        hf_updates_abort_sent(core, run);
    }
    hf_pb_failure *failure = hf_failure_server(&core->scratch, hf_str_of(message), true);
    hf_wft_fail(core, run, cause, failure, request->identity);
    hf_wft_schedule(core, run);
    hf_call_fail(core, call, HF_ERR_INVALID, "%s", message);
}

/* Whether the task can be dropped: it is speculative, and its answer only rejects updates. The next task then shows the worker again the
 * events that it saw with this one for the first time. A worker that does not say that it can handle this must not have seen any. */
static bool leaves_no_trace(const hf_run *run, const hf_plan *plan)
{
    const hf_pb_respond_workflow_task_completed_request *request = plan->request;
    bool can_forget =
        request->capabilities != NULL && request->capabilities->discard_speculative_workflow_task_with_events;
    int64_t seen = run->event_count - (run->wft.last_started_id + 1);
    return hf_speculative_started(run) != NULL && request->commands.count == 0 && request->holdfast_stream.count == 0 &&
           !request->force_create_new_workflow_task && hf_updates_only_reject(plan) &&
           seen <= (can_forget ? FORGOTTEN_MAX : 0);
}

static void discard(hf_core *core, hf_call *call, hf_run *run, const hf_plan *plan)
{
    hf_speculative_discard(core, run);
    hf_updates_tell(core, run, plan);
    hf_queries_answered(core, run, plan->request);
    hf_pb_respond_workflow_task_completed_response *response = hf_call_response(core, call);
    if (response != NULL) {
        response->reset_history_event_id = run->wft.last_started_id;
        hf_call_reply(core, call);
    }
}

void hf_respond_workflow_task_completed(hf_core *core, hf_call *call, hf_run *run)
{
    hf_assert(hf_wft_state_now(run) == HF_WFT_STARTED && hf_run_is_open(run)); /* its token is right */
    const hf_pb_respond_workflow_task_completed_request *request = call->request;
    if (!is_in_order(request)) { /* no event says so, and the task goes on: its worker may answer again */
        HF_PROBE(core, HF_PROBE_BAD_SEQUENCE);
        call->task_failed_cause = HF_WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED;
        hf_call_fail(core, call, HF_ERR_INVALID,
                     "invalid command sequence: the command that closes the run must be the last command");
        return;
    }
    bool is_written = !hf_wft_now(run)->is_transient; /* else its two events come first */
    hf_plan plan = {
        .request = request,
        .event_id = run->event_count + (is_written ? 0 : 2) + 2, /* behind WorkflowTaskCompleted */
        .activities = run->activities.count,
        .externals = run->externals.count,
        .children = run->children.count,
    };
    if (!check_all(core, run, &plan)) {
        HF_PROBE(core, HF_PROBE_BAD_COMMAND);
        refuse(core, call, run, plan.cause, core->op.message);
        return;
    }
    if (plan.closes && run->buffered.count > plan.unfired && !HF_CANARY(HF_BUG_CLOSE_OVER_BUFFERED)) {
        HF_PROBE(core, HF_PROBE_UNHANDLED_COMMAND);
        refuse(core, call, run, HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, "UnhandledCommand");
        return;
    }
    if (!hf_records_fit(core, run, request->holdfast_stream, true)) {
        HF_PROBE(core, HF_PROBE_BAD_COMMAND);
        refuse(core, call, run, HF_WORKFLOW_TASK_FAILED_CAUSE_PAYLOADS_TOO_LARGE, core->op.message);
        return;
    }
    hf_pb_history_event first;
    if (plan.closes && hf_chain_may_go_on(core, run)) {
        if (!hf_chain_ready_for_call(core, call, run, &first)) {
            return; /* decided again when the first event is here */
        }
        plan.first = &first;
    }
    if (leaves_no_trace(run, &plan)) {
        discard(core, call, run, &plan);
        return;
    }
    if (!plan.closes && !hf_execution_may_have(core, call, run, count_after(run, &plan))) {
        return;
    }
    hf_speculative_answered(core, run);
    if (core->status != HF_OK) {
        return;
    }
    bool heartbeat = request->force_create_new_workflow_task;
    int64_t first_time = 0; /* with a heartbeat: when the first of these tasks was scheduled */
    if (heartbeat && request->commands.count == 0 && request->messages.count == 0) {
        HF_PROBE(core, HF_PROBE_WFT_HEARTBEAT);
        first_time = run->wft.first_time;
        if (first_time > 0 && hf_bound_end(first_time, core->options.limits.keep_alive) < core->now.wall) {
            hf_wft_keep_alive_over(core, run);
            hf_call_fail(core, call, HF_ERR_NOT_FOUND, "workflow task heartbeat timeout");
            return;
        }
    }
    hf_match_remove(core, &run->wft.task);
    hf_wft_materialise(core, run);
    emit_completed(core, run, request);
    hf_assert(core->status != HF_OK || run->wft.completed_id == run->event_count); /* run-R5: its task is over */
    set_sticky(core, run, request->sticky_attributes);
    hf_records_append(core, run, request->holdfast_stream, run->event_count, 0);
    for (size_t i = 0; i < request->commands.count && core->status == HF_OK; i++) {
        const hf_pb_command *command = &request->commands.items[i];
        hf_assert(run->event_count + 1 == plan.event_ids[i]);
        core->event_metadata = command->user_metadata;
        rule_of(command)->act(core, run, &plan, command);
    }
    hf_updates_act_rest(core, run, &plan);
    if (core->status == HF_OK && hf_run_is_open(run)) {
        bool news = run->buffered.count > 0 || heartbeat;
        hf_flush_buffered(core, run);
        news = hf_activities_cancel_early(core, run, request->identity) || news;
        if (!hf_execution_is_too_long(core, run, 0) && news) {
            hf_wft_schedule_next(core, run, first_time);
        }
    }
    hf_pb_respond_workflow_task_completed_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    hf_updates_tell(core, run, &plan);
    hf_queries_answered(core, run, request);
    hf_activities_go_with(core, run, call, response);
    if (request->return_new_workflow_task && hf_wft_may_go_with(core, run, call)) {
        HF_PROBE(core, HF_PROBE_WFT_INLINE);
        hf_wft_start_with(core, run, call, request->identity, &response->workflow_task);
        return; /* which has replied */
    }
    hf_call_reply(core, call);
}
