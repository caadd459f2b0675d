/* Children: the command that starts one, the messages about it (message.h), and its outcome. Their states: run/machines/child.c. */
#include "engine/commands.h"

#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/emit.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/namespaces.h"
#include "engine/retry.h"
#include "engine/size.h"
#include "engine/zone.h"
#include "history/limits.h"

#define BAD_CHILD HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_START_CHILD_EXECUTION_ATTRIBUTES

typedef hf_pb_start_child_workflow_execution_command_attributes child_attrs;
typedef hf_pb_start_child_workflow_execution_initiated_event_attributes initiated_attrs;

/* ---- The command ----------------------------------------------------------------------------------------------------- */

static bool names_are_good(hf_core *core, const hf_run *run, hf_plan *plan, const child_attrs *attrs)
{
    if (!hf_id_is_good(attrs->workflow_id)) {
        return hf_command_bad(core, plan, BAD_CHILD,
                              "WorkflowId is not set on StartChildWorkflowExecutionCommand, too long, or not UTF-8.");
    }
    if (attrs->workflow_type == NULL || !hf_id_is_good(attrs->workflow_type->name)) {
        return hf_command_bad(core, plan, BAD_CHILD,
                              "WorkflowType is not set on StartChildWorkflowExecutionCommand, too long, or not UTF-8.");
    }
    if (!hf_queue_is_good_or_none(attrs->task_queue) || !hf_text_is_good(attrs->control)) {
        return hf_command_bad(core, plan, BAD_CHILD,
                              "TaskQueue or Control of StartChildWorkflowExecutionCommand is too long or not UTF-8, or "
                              "the queue begins with /_sys/.");
    }
    if (attrs->namespace.len > 0 && !hf_str_equal(attrs->namespace, hf_owned_str(&run->namespace))) {
        return hf_command_bad(core, plan, BAD_CHILD,
                              "StartChildWorkflowExecutionCommand names another namespace than that of its parent.");
    }
    if (attrs->parent_close_policy < 0 || attrs->parent_close_policy > (int32_t)HF_PARENT_CLOSE_POLICY_REQUEST_CANCEL) {
        return hf_command_bad(core, plan, BAD_CHILD, "ParentClosePolicy of a child is not one.");
    }
    return true;
}

static bool rules_are_good(hf_core *core, hf_plan *plan, const child_attrs *attrs)
{
    hf_cron cron;
    if (hf_pb_duration_span(attrs->workflow_execution_timeout).ns < 0 ||
        hf_pb_duration_span(attrs->workflow_run_timeout).ns < 0 ||
        hf_pb_duration_span(attrs->workflow_task_timeout).ns < 0) {
        return hf_command_bad(core, plan, BAD_CHILD, "A timeout of StartChildWorkflowExecutionCommand is negative.");
    }
    bool is_good = hf_retry_check(&core->op, attrs->retry_policy) == HF_OK &&
                   (attrs->cron_schedule.len == 0 || hf_cron_parse(&core->op, attrs->cron_schedule, &cron) == HF_OK);
    plan->cause = is_good ? plan->cause : (int32_t)BAD_CHILD;
    return is_good;
}

bool hf_check_start_child(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    const child_attrs *attrs = command->start_child_workflow_execution_command_attributes;
    if (attrs == NULL) {
        return hf_command_bad(core, plan, BAD_CHILD, "StartChildWorkflowExecutionCommand has no attributes");
    }
    if (!names_are_good(core, run, plan, attrs) || !rules_are_good(core, plan, attrs)) {
        return false;
    }
    const struct {
        size_t len;
        const char *why;
    } PARTS[] = {
        {hf_payloads_len(attrs->input), "StartChildWorkflowExecutionCommandAttributes. Input exceeds size limit."},
        {hf_message_len(core, &hf_pb_header_type, attrs->header),
         "StartChildWorkflowExecutionCommandAttributes. Header exceeds size limit."},
        {hf_message_len(core, &hf_pb_memo_type, attrs->memo),
         "StartChildWorkflowExecutionCommandAttributes. Memo exceeds size limit."},
        {hf_message_len(core, &hf_pb_search_attributes_type, attrs->search_attributes),
         "StartChildWorkflowExecutionCommandAttributes. SearchAttributes exceeds size limit."},
    };
    for (size_t i = 0; i < HF_COUNT_OF(PARTS); i++) {
        if (!hf_command_fits(core, plan, PARTS[i].len, BAD_CHILD, PARTS[i].why)) {
            return false;
        }
    }
    hf_listed *place = hf_command_listed(core, plan, &plan->child_ids, attrs->workflow_id);
    if (place == NULL) {
        return false;
    }
    *place = (hf_listed){attrs->workflow_id, true};
    if (++plan->children > core->options.limits.pending) {
        HF_PROBE(core, HF_PROBE_LIMIT_HIT);
        return hf_command_bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_PENDING_CHILD_WORKFLOWS_LIMIT_EXCEEDED,
                              "too many children are pending");
    }
    return true;
}

void hf_act_start_child(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    (void)plan;
    HF_PROBE(core, HF_PROBE_CHILD);
    const child_attrs *attrs = command->start_child_workflow_execution_command_attributes;
    hf_pb_task_queue queue = {.name = hf_owned_str(&run->task_queue), .kind = HF_TASK_QUEUE_KIND_NORMAL};
    if (attrs->task_queue != NULL && attrs->task_queue->name.len > 0) {
        queue.name = attrs->task_queue->name;
    }
    int64_t run_timeout = hf_pb_duration_span(attrs->workflow_run_timeout).ns;
    int64_t task_timeout = hf_pb_duration_span(attrs->workflow_task_timeout).ns;
    task_timeout = task_timeout > 0 ? task_timeout : hf_seconds(HF_TASK_TIMEOUT_DEFAULT_SECONDS).ns;
    task_timeout = run_timeout > 0 && run_timeout < task_timeout ? run_timeout : task_timeout;
    initiated_attrs body = {
        .namespace = hf_owned_str(&run->namespace),
        .workflow_id = attrs->workflow_id,
        .workflow_type = attrs->workflow_type,
        .task_queue = &queue,
        .input = attrs->input,
        .workflow_execution_timeout = attrs->workflow_execution_timeout,
        .workflow_run_timeout = attrs->workflow_run_timeout,
        .workflow_task_timeout = hf_pb_duration_of(hf_nanoseconds(task_timeout)),
        .parent_close_policy =
            attrs->parent_close_policy != 0 ? attrs->parent_close_policy : (int32_t)HF_PARENT_CLOSE_POLICY_TERMINATE,
        .control = attrs->control,
        .workflow_task_completed_event_id = run->wft.completed_id,
        .workflow_id_reuse_policy = attrs->workflow_id_reuse_policy != 0
                                        ? attrs->workflow_id_reuse_policy
                                        : (int32_t)HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
        .retry_policy = attrs->retry_policy != NULL ? hf_retry_fill(&core->scratch, attrs->retry_policy) : NULL,
        .cron_schedule = attrs->cron_schedule,
        .header = attrs->header,
        .memo = attrs->memo,
        .search_attributes = hf_attributes_typed(core, hf_owned_str(&run->namespace), attrs->search_attributes),
        .inherit_build_id = attrs->inherit_build_id,
        .priority = attrs->priority,
        .versioning_override = attrs->versioning_override,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
        .attributes_case = HF_PB_HISTORY_EVENT_START_CHILD_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES,
        .start_child_workflow_execution_initiated_event_attributes = &body,
    };
    hf_event_emit(core, run, &event); /* whose effect is the message */
}

/* ---- The start ------------------------------------------------------------------------------------------------------- */

void hf_child_send_start(hf_core *core, hf_run *run, const hf_child *child)
{
    hf_assert(child->state == HF_CHILD_INITIATED && hf_run_is_open(run));
    hf_message *message =
        hf_message_new(core, run, HF_MESSAGE_START_CHILD, child->initiated_id, hf_owned_str(&child->event));
    if (message == NULL) {
        return;
    }
    const initiated_attrs *asked = message->event.start_child_workflow_execution_initiated_event_attributes;
    message->start = (hf_pb_start_workflow_execution_request){
        .namespace = hf_arena_copy(&message->arena, hf_owned_str(&run->namespace)),
        .workflow_id = asked->workflow_id,
        .workflow_type = asked->workflow_type,
        .task_queue = asked->task_queue,
        .input = asked->input,
        .workflow_execution_timeout = asked->workflow_execution_timeout,
        .workflow_run_timeout = asked->workflow_run_timeout,
        .workflow_task_timeout = asked->workflow_task_timeout,
        .request_id = hf_message_request_id(message),
        .workflow_id_reuse_policy = asked->workflow_id_reuse_policy,
        .retry_policy = asked->retry_policy,
        .cron_schedule = asked->cron_schedule,
        .memo = asked->memo,
        .search_attributes = asked->search_attributes,
        .header = asked->header,
        .user_metadata = message->event.user_metadata,
        .priority = hf_priority_merge(&message->arena, hf_run_priority(run, &message->arena), asked->priority),
        .versioning_override = asked->versioning_override,
    };
    hf_message_post(core, message, HF_METHOD_START_WORKFLOW_EXECUTION, &message->start);
}

void hf_child_take_parent(hf_core *core, const hf_call *call, hf_start_facts *body)
{
    const hf_message *message = hf_message_of_const(call);
    const hf_run *parent = message != NULL ? hf_run_find(core, message->source) : NULL;
    if (parent == NULL) {
        return;
    }
    hf_start_facts facts;
    hf_pb_workflow_execution *execution = HF_ARENA_NEW(&core->scratch, hf_pb_workflow_execution);
    if (execution == NULL || !hf_run_start_facts(parent, &core->scratch, &facts)) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    *execution = message->sender;
    body->parent_workflow_namespace = hf_owned_str(&parent->namespace);
    body->parent_workflow_execution = execution;
    body->parent_initiated_event_id = message->id;
    body->root_workflow_execution = facts.root_workflow_execution != NULL ? facts.root_workflow_execution : execution;
}

static void emit_started(hf_core *core, hf_run *run, const hf_message *message)
{
    const initiated_attrs *asked = message->event.start_child_workflow_execution_initiated_event_attributes;
    const hf_pb_start_workflow_execution_response *answer = message->call.response;
    hf_pb_workflow_execution execution = {.workflow_id = asked->workflow_id, .run_id = answer->run_id};
    hf_pb_child_workflow_execution_started_event_attributes body = {
        .namespace = asked->namespace,
        .initiated_event_id = message->id,
        .workflow_execution = &execution,
        .workflow_type = asked->workflow_type,
        .header = asked->header,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED,
        .attributes_case = HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES,
        .child_workflow_execution_started_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
}

static void emit_start_failed(hf_core *core, hf_run *run, const hf_message *message)
{
    HF_PROBE(core, HF_PROBE_CHILD_REFUSED);
    const initiated_attrs *asked = message->event.start_child_workflow_execution_initiated_event_attributes;
    bool exists = message->call.status == HF_ERR_EXISTS;
    hf_pb_start_child_workflow_execution_failed_event_attributes body = {
        .namespace = asked->namespace,
        .workflow_id = asked->workflow_id,
        .workflow_type = asked->workflow_type,
        .cause = exists ? HF_START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS
                        : HF_START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_UNSPECIFIED,
        .control = asked->control,
        .initiated_event_id = message->id,
        .workflow_task_completed_event_id = 0, /* a Temporal server leaves it out */
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED,
        .attributes_case = HF_PB_HISTORY_EVENT_START_CHILD_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES,
        .start_child_workflow_execution_failed_event_attributes = &body,
    };
    hf_event_emit_or_buffer(core, run, &event);
}

void hf_child_start_answered(hf_core *core, hf_run *run, const hf_message *message)
{
    hf_assert(message->kind == HF_MESSAGE_START_CHILD); /* engine-M1 */
    const hf_child *child = hf_run_child(run, message->id);
    if (child == NULL || child->state != HF_CHILD_INITIATED || !hf_run_is_open(run)) {
        return; /* the parent closed meanwhile */
    }
    if (message->call.status == HF_OK) {
        emit_started(core, run, message);
    } else {
        emit_start_failed(core, run, message);
    }
    hf_wft_schedule(core, run);
}

/* ---- The parent's end ------------------------------------------------------------------------------------------------- */

#define BY_PARENT HF_STR("by parent close policy")

void hf_child_send_close(hf_core *core, hf_run *run, const hf_child *child)
{
    hf_assert(child->state == HF_CHILD_LEFT && !hf_run_is_open(run));
    hf_message *message = hf_message_new(core, run, HF_MESSAGE_CLOSE_CHILD, child->initiated_id, HF_STR(""));
    if (message == NULL) {
        return;
    }
    HF_PROBE(core, HF_PROBE_CHILD_LEFT);
    hf_arena *arena = &message->arena;
    hf_str namespace_ = hf_arena_copy(arena, hf_owned_str(&run->namespace));
    hf_str chain =
        hf_arena_copy(arena, hf_owned_str(&child->run_id)); /* its first run: the policy is for the whole chain */
    message->execution.workflow_id = hf_arena_copy(arena, hf_owned_str(&child->workflow_id));
    if (child->policy == (int32_t)HF_PARENT_CLOSE_POLICY_REQUEST_CANCEL) {
        HF_PROBE(core, HF_PROBE_CHILD_CANCELED);
        message->cancel = (hf_pb_request_cancel_workflow_execution_request){
            .namespace = namespace_,
            .workflow_execution = &message->execution,
            .identity = HF_IDENTITY_ENGINE,
            .request_id = hf_message_request_id(message),
            .first_execution_run_id = chain,
        };
        hf_message_post(core, message, HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION, &message->cancel);
        return;
    }
    HF_PROBE(core, HF_PROBE_CHILD_TERMINATED);
    message->terminate = (hf_pb_terminate_workflow_execution_request){
        .namespace = namespace_,
        .workflow_execution = &message->execution,
        .reason = BY_PARENT,
        .identity = HF_IDENTITY_ENGINE,
        .first_execution_run_id = chain,
    };
    hf_message_post(core, message, HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, &message->terminate);
}

/* The policy has been applied, or there is nothing to apply it to. A child that cannot be read may be mended: it is asked again at the
 * next opening. */
void hf_child_close_answered(hf_core *core, hf_run *run, const hf_message *message)
{
    hf_assert(message->kind == HF_MESSAGE_CLOSE_CHILD && !hf_run_is_open(run)); /* engine-M1 */
    if (hf_run_child(run, message->id) != NULL && !hf_message_is_refused(message)) {
        hf_record_int(core, run, HF_CHANGE_CHILD_GONE, message->id);
        HF_SLOT(run)->spill_now = true;
    }
}
