/* Commands about the run as a whole: it ends, continues as new, or changes its memo and search attributes; and markers. */
#include "engine/commands.h"

#include "engine/core_private.h"
#include "engine/emit.h"
#include "engine/machines/chain.h"
#include "engine/machines/machines.h"
#include "engine/namespaces.h"
#include "engine/retry.h"
#include "engine/size.h"
#include "engine/zone.h"
#include "history/limits.h"

#include <stddef.h>

/* ---- The end --------------------------------------------------------------------------------------------------------- */

bool hf_check_complete(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    (void)run;
    const hf_pb_complete_workflow_execution_command_attributes *attrs =
        command->complete_workflow_execution_command_attributes;
    return hf_command_fits(core, plan, attrs != NULL ? hf_payloads_len(attrs->result) : 0,
                           HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_COMPLETE_WORKFLOW_EXECUTION_ATTRIBUTES,
                           "CompleteWorkflowExecutionCommandAttributes.Result exceeds size limit.");
}

void hf_act_complete(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    hf_next next = {0};
    hf_pb_payloads *result = command->complete_workflow_execution_command_attributes != NULL
                                 ? command->complete_workflow_execution_command_attributes->result
                                 : NULL;
    if (plan->first != NULL) {
        hf_chain_after_success(core, run, &next);
        hf_chain_reserve(core, run, &next);
    }
    hf_pb_workflow_execution_completed_event_attributes body = {
        .result = result,
        .workflow_task_completed_event_id = run->wft.completed_id,
        .new_execution_run_id = next.run_id,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_COMPLETED_EVENT_ATTRIBUTES,
        .workflow_execution_completed_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
    hf_assert(core->status != HF_OK || !hf_run_is_open(run)); /* run-R4 */
    hf_chain_repeat_success(core, run, &next, plan->first, result);
}

bool hf_check_fail(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    (void)run;
    const int32_t cause = HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES;
    const hf_pb_fail_workflow_execution_command_attributes *attrs = command->fail_workflow_execution_command_attributes;
    if (attrs == NULL || attrs->failure == NULL) {
        return hf_command_bad(core, plan, cause, "FailWorkflowExecutionCommand has no failure");
    }
    if (hf_failure_is_deep(attrs->failure)) {
        return hf_command_bad(core, plan, cause, "the failure of FailWorkflowExecutionCommand has too many causes");
    }
    return hf_command_fits(core, plan, hf_message_len(core, &hf_pb_failure_type, attrs->failure), cause,
                           "FailWorkflowExecutionCommandAttributes.Failure exceeds size limit.");
}

void hf_act_fail(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    hf_next next = {0};
    hf_pb_failure *failure = command->fail_workflow_execution_command_attributes->failure;
    hf_pb_workflow_execution_failed_event_attributes body = {
        .failure = failure,
        .retry_state = HF_RETRY_STATE_RETRY_POLICY_NOT_SET,
        .workflow_task_completed_event_id = run->wft.completed_id,
    };
    if (plan->first != NULL) {
        body.retry_state = hf_chain_after_failure(core, run, failure, &next);
        hf_chain_reserve(core, run, &next);
        body.new_execution_run_id = next.run_id;
    }
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES,
        .workflow_execution_failed_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
    hf_assert(core->status != HF_OK || !hf_run_is_open(run)); /* run-R4 */
    hf_chain_repeat_failure(core, run, &next, plan->first, failure);
}

bool hf_check_cancel(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    (void)run;
    const hf_pb_cancel_workflow_execution_command_attributes *attrs =
        command->cancel_workflow_execution_command_attributes;
    return hf_command_fits(core, plan, attrs != NULL ? hf_payloads_len(attrs->details) : 0,
                           HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_CANCEL_WORKFLOW_EXECUTION_ATTRIBUTES,
                           "CancelWorkflowExecutionCommandAttributes.Details exceeds size limit.");
}

/* A canceled run is the last of its chain. */
void hf_act_cancel(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    (void)plan;
    hf_pb_workflow_execution_canceled_event_attributes body = {
        .workflow_task_completed_event_id = run->wft.completed_id,
        .details = command->cancel_workflow_execution_command_attributes != NULL
                       ? command->cancel_workflow_execution_command_attributes->details
                       : NULL,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CANCELED_EVENT_ATTRIBUTES,
        .workflow_execution_canceled_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
    hf_assert(core->status != HF_OK || !hf_run_is_open(run)); /* run-R4 */
}

/* ---- Continue as new ------------------------------------------------------------------------------------------------- */

#define BAD_CONTINUE HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_CONTINUE_AS_NEW_ATTRIBUTES

typedef hf_pb_continue_as_new_workflow_execution_command_attributes continue_attrs;

/* Fields that the command leaves out are taken from the run that continues. `attrs` is a copy, because the command may have to wait and be
 * decided again, and the fields that are filled in here last for one step. */
static bool fill_continue(hf_core *core, const hf_run *run, continue_attrs *attrs)
{
    if (attrs->workflow_type == NULL || attrs->workflow_type->name.len == 0) {
        attrs->workflow_type = HF_ARENA_NEW(&core->scratch, hf_pb_workflow_type);
        if (attrs->workflow_type != NULL) {
            attrs->workflow_type->name = hf_arena_copy(&core->scratch, hf_owned_str(&run->workflow_type));
        }
    }
    if (attrs->task_queue == NULL || attrs->task_queue->name.len == 0) {
        attrs->task_queue = HF_ARENA_NEW(&core->scratch, hf_pb_task_queue);
        if (attrs->task_queue != NULL) {
            attrs->task_queue->name = hf_arena_copy(&core->scratch, hf_owned_str(&run->task_queue));
            attrs->task_queue->kind = HF_TASK_QUEUE_KIND_NORMAL;
        }
    }
    if (hf_pb_duration_span(attrs->workflow_run_timeout).ns == 0) {
        attrs->workflow_run_timeout = hf_pb_duration_of(hf_nanoseconds(run->run_timeout));
    }
    if (hf_pb_duration_span(attrs->workflow_task_timeout).ns == 0) {
        attrs->workflow_task_timeout = hf_pb_duration_of(hf_nanoseconds(run->task_timeout));
    }
    attrs->retry_policy = attrs->retry_policy != NULL ? hf_retry_fill(&core->scratch, attrs->retry_policy) : NULL;
    attrs->search_attributes = hf_attributes_typed(core, hf_owned_str(&run->namespace), attrs->search_attributes);
    if (core->scratch.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    return core->status == HF_OK;
}

static bool continue_names_are_good(hf_core *core, hf_plan *plan, const continue_attrs *attrs)
{
    if ((attrs->workflow_type != NULL && !hf_text_is_good(attrs->workflow_type->name)) ||
        !hf_queue_is_good_or_none(attrs->task_queue)) {
        return hf_command_bad(
            core, plan, BAD_CONTINUE,
            "WorkflowType or TaskQueue of ContinueAsNewWorkflowExecutionCommand is too long or not UTF-8, or the queue "
            "begins with /_sys/.");
    }
    if (hf_pb_duration_span(attrs->workflow_run_timeout).ns < 0 ||
        hf_pb_duration_span(attrs->workflow_task_timeout).ns < 0 ||
        hf_pb_duration_span(attrs->backoff_start_interval).ns < 0) {
        return hf_command_bad(core, plan, BAD_CONTINUE,
                              "A timeout of ContinueAsNewWorkflowExecutionCommand is negative.");
    }
    if (hf_failure_is_deep(attrs->failure)) {
        return hf_command_bad(core, plan, BAD_CONTINUE,
                              "the failure of ContinueAsNewWorkflowExecutionCommand has too many causes");
    }
    hf_cron cron;
    bool is_good = hf_retry_check(&core->op, attrs->retry_policy) == HF_OK &&
                   (attrs->cron_schedule.len == 0 || hf_cron_parse(&core->op, attrs->cron_schedule, &cron) == HF_OK);
    plan->cause = is_good ? plan->cause : (int32_t)BAD_CONTINUE;
    return is_good;
}

bool hf_check_continue_as_new(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    (void)run;
    const continue_attrs *attrs = command->continue_as_new_workflow_execution_command_attributes;
    if (attrs == NULL) {
        return hf_command_bad(core, plan, BAD_CONTINUE, "ContinueAsNewWorkflowExecutionCommand has no attributes");
    }
    if (!continue_names_are_good(core, plan, attrs)) {
        return false;
    }
    const struct {
        size_t len;
        const char *why;
    } PARTS[] = {
        {hf_payloads_len(attrs->input), "ContinueAsNewWorkflowExecutionCommandAttributes. Input exceeds size limit."},
        {hf_message_len(core, &hf_pb_header_type, attrs->header),
         "ContinueAsNewWorkflowExecutionCommandAttributes. Header exceeds size limit."},
        {hf_message_len(core, &hf_pb_memo_type, attrs->memo),
         "ContinueAsNewWorkflowExecutionCommandAttributes. Memo exceeds size limit."},
        {hf_message_len(core, &hf_pb_search_attributes_type, attrs->search_attributes),
         "ContinueAsNewWorkflowExecutionCommandAttributes. SearchAttributes exceeds size limit."},
        {hf_message_len(core, &hf_pb_failure_type, attrs->failure),
         "ContinueAsNewWorkflowExecutionCommandAttributes. Failure exceeds size limit."},
        {hf_payloads_len(attrs->last_completion_result),
         "ContinueAsNewWorkflowExecutionCommandAttributes. LastCompletionResult exceeds size limit."},
    };
    for (size_t i = 0; i < HF_COUNT_OF(PARTS); i++) {
        if (!hf_command_fits(core, plan, PARTS[i].len, BAD_CONTINUE, PARTS[i].why)) {
            return false;
        }
    }
    return true;
}

void hf_act_continue_as_new(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    (void)plan;
    continue_attrs filled = *command->continue_as_new_workflow_execution_command_attributes;
    if (!fill_continue(core, run, &filled)) {
        return;
    }
    const continue_attrs *attrs = &filled;
    int32_t initiator = attrs->initiator != HF_CONTINUE_AS_NEW_INITIATOR_UNSPECIFIED
                            ? attrs->initiator
                            : (int32_t)HF_CONTINUE_AS_NEW_INITIATOR_WORKFLOW; /* its event says what the command said */
    hf_next next = {.initiator = initiator, .pause = hf_pb_duration_span(attrs->backoff_start_interval).ns};
    hf_chain_reserve(core, run, &next);
    hf_pb_workflow_execution_continued_as_new_event_attributes body = {
        .new_execution_run_id = next.run_id,
        .workflow_type = attrs->workflow_type,
        .task_queue = attrs->task_queue,
        .input = attrs->input,
        .workflow_run_timeout = attrs->workflow_run_timeout,
        .workflow_task_timeout = attrs->workflow_task_timeout,
        .workflow_task_completed_event_id = run->wft.completed_id,
        .backoff_start_interval = attrs->backoff_start_interval,
        .initiator = attrs->initiator,
        .failure = attrs->failure,
        .last_completion_result = attrs->last_completion_result,
        .header = attrs->header,
        .memo = attrs->memo,
        .search_attributes = attrs->search_attributes,
        .inherit_build_id = attrs->inherit_build_id,
        .initial_versioning_behavior = attrs->initial_versioning_behavior,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CONTINUED_AS_NEW_EVENT_ATTRIBUTES,
        .workflow_execution_continued_as_new_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
    hf_assert(core->status != HF_OK || !hf_run_is_open(run)); /* run-R4 */
    hf_chain_continue(core, run, &next, attrs);
}

/* ---- Memo and search attributes -------------------------------------------------------------------------------------- */

bool hf_check_upsert_attributes(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    char why[HF_MESSAGE_LEN_MAX];
    const hf_pb_search_attributes *given =
        command->upsert_workflow_search_attributes_command_attributes != NULL
            ? command->upsert_workflow_search_attributes_command_attributes->search_attributes
            : NULL;
    if (given == NULL || given->indexed_fields.count == 0) {
        return hf_command_bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES,
                              "IndexedFields is not set on UpsertWorkflowSearchAttributesCommand.");
    }
    if (!hf_attributes_are_good(core, hf_owned_str(&run->namespace), given, why)) {
        return hf_command_bad(core, plan, HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES,
                              hf_arena_copy(&core->scratch, hf_str_of(why)).data);
    }
    return hf_command_fits(core, plan, hf_message_len(core, &hf_pb_search_attributes_type, given),
                           HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES,
                           "UpsertWorkflowSearchAttributesCommandAttributes exceeds size limit.");
}

void hf_act_upsert_attributes(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    (void)plan;
    HF_PROBE(core, HF_PROBE_UPSERTED);
    hf_pb_upsert_workflow_search_attributes_event_attributes body = {
        .workflow_task_completed_event_id = run->wft.completed_id,
        .search_attributes =
            hf_attributes_typed(core, hf_owned_str(&run->namespace),
                                command->upsert_workflow_search_attributes_command_attributes->search_attributes),
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
        .attributes_case = HF_PB_HISTORY_EVENT_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES_EVENT_ATTRIBUTES,
        .upsert_workflow_search_attributes_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

bool hf_check_upsert_memo(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command)
{
    (void)run;
    const int32_t cause = HF_WORKFLOW_TASK_FAILED_CAUSE_BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES;
    const hf_pb_memo *given = command->modify_workflow_properties_command_attributes != NULL
                                  ? command->modify_workflow_properties_command_attributes->upserted_memo
                                  : NULL;
    if (given == NULL) {
        return hf_command_bad(core, plan, cause, "UpsertedMemo is not set on ModifyWorkflowPropertiesCommand.");
    }
    return hf_command_fits(core, plan, hf_message_len(core, &hf_pb_memo_type, given), cause,
                           "ModifyWorkflowPropertiesCommandAttributes. Memo exceeds size limit.");
}

void hf_act_upsert_memo(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    (void)plan;
    HF_PROBE(core, HF_PROBE_UPSERTED);
    hf_pb_workflow_properties_modified_event_attributes body = {
        .workflow_task_completed_event_id = run->wft.completed_id,
        .upserted_memo = command->modify_workflow_properties_command_attributes->upserted_memo,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_PROPERTIES_MODIFIED_EVENT_ATTRIBUTES,
        .workflow_properties_modified_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

/* ---- Markers --------------------------------------------------------------------------------------------------------- */

void hf_act_marker(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command)
{
    (void)plan;
    const hf_pb_record_marker_command_attributes *attrs = command->record_marker_command_attributes;
    hf_pb_marker_recorded_event_attributes body = {
        .marker_name = attrs->marker_name,
        .header = attrs->header,
        .failure = attrs->failure,
        .workflow_task_completed_event_id = run->wft.completed_id,
    };
    body.details.items = (hf_pb_marker_recorded_event_attributes_details_entry *)hf_arena_zero(
        &core->scratch, attrs->details.count * sizeof *body.details.items, _Alignof(max_align_t));
    if (core->scratch.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    for (size_t i = 0; i < attrs->details.count; i++) {
        body.details.items[i].key = attrs->details.items[i].key;
        body.details.items[i].value = attrs->details.items[i].value;
        body.details.count++;
    }
    hf_assert(body.details.count == attrs->details.count);
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_MARKER_RECORDED,
        .attributes_case = HF_PB_HISTORY_EVENT_MARKER_RECORDED_EVENT_ATTRIBUTES,
        .marker_recorded_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}
