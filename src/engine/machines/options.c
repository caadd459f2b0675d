/* UpdateWorkflowExecutionOptions: a client changes the versioning override and the priority of an open run, by field mask. And starts that
 * are answered with a run that is open: with on_conflict_options they leave their request id, links and callbacks with it.
 *
 * Both are the same event, which the workflow does not see before its next task: it asks for none. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "engine/mask.h"
#include "engine/size.h"
#include "history/limits.h"

static bool bad(hf_core *core, hf_call *call, const char *why)
{
    hf_call_fail(core, call, HF_ERR_INVALID, "%s", why);
    return false;
}

bool hf_priority_is_good(hf_core *core, hf_call *call, const hf_pb_priority *priority)
{
    if (priority == NULL) {
        return true;
    }
    if (priority->priority_key < 0) {
        return bad(core, call, "PriorityKey of Priority is negative.");
    }
    if (priority->fairness_key.len > HF_FAIRNESS_KEY_LEN_MAX) {
        return bad(core, call, "FairnessKey of Priority is longer than 64 bytes.");
    }
    return priority->fairness_weight >= 0 || bad(core, call, "FairnessWeight of Priority is negative.");
}

static void emit(hf_core *core, hf_run *run, hf_pb_workflow_execution_options_updated_event_attributes *body,
                 hf_pb_link_list links)
{
    hf_assert(hf_run_is_open(run)); /* run-R4 */
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED,
        .links = links,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_OPTIONS_UPDATED_EVENT_ATTRIBUTES,
        .workflow_execution_options_updated_event_attributes = body,
    };
    hf_event_emit_or_buffer(core, run, &event);
    hf_wft_check_length(core, run);
}

/* ---- Starts that use a run ------------------------------------------------------------------------------------------------ */

bool hf_options_attach(hf_core *core, hf_call *call, hf_run *run, const hf_pb_start_workflow_execution_request *request)
{
    const hf_pb_on_conflict_options *options = request->on_conflict_options;
    if (options == NULL) {
        return true;
    }
    if (run->attached.count >= HF_ATTACHED_MAX) {
        HF_PROBE(core, HF_PROBE_LIMIT_HIT);
        hf_call_fail_for_good(core, call, "exceeded workflow execution limit for attached request ids",
                              "run %.*s has %d request ids of other starts, the most that one run may get",
                              HF_STR_ARGS(run->run_id), HF_ATTACHED_MAX);
        return false;
    }
    HF_PROBE(core, HF_PROBE_REQUEST_ATTACHED);
    hf_pb_workflow_execution_options_updated_event_attributes body = {
        .attached_request_id =
            options->attach_request_id && !HF_CANARY(HF_BUG_ATTACHED_FORGOTTEN) ? request->request_id : HF_STR(""),
    };
    hf_pb_link_list links = {NULL, 0};
    if (options->attach_completion_callbacks) {
        body.attached_completion_callbacks = request->completion_callbacks;
    }
    if (options->attach_links) {
        links = request->links;
    }
    emit(core, run, &body, links);
    return core->status == HF_OK;
}

/* ---- UpdateWorkflowExecutionOptions --------------------------------------------------------------------------------------- */

/* Every path is a field of the options, and the override is taken as a whole. */
static bool mask_is_good(hf_core *core, hf_call *call, const hf_pb_field_mask *mask)
{
    static const char *const KNOWN[] = {
        "versioning_override",   "versioning_override.behavior", "versioning_override.deployment", "priority",
        "priority.priority_key", "priority.fairness_key",        "priority.fairness_weight"};
    static const char *const PARTS[] = {"versioning_override.pinned_version", "versioning_override.pinned",
                                        "versioning_override.auto_upgrade", "versioning_override.one_time"};
    for (size_t i = 0; i < mask->paths.count; i++) {
        bool is_known = false;
        for (size_t j = 0; j < HF_COUNT_OF(KNOWN); j++) {
            is_known = is_known || hf_mask_is(mask->paths.items[i], KNOWN[j]);
        }
        for (size_t j = 0; j < HF_COUNT_OF(PARTS); j++) {
            if (hf_mask_is(mask->paths.items[i], PARTS[j])) {
                return bad(core, call, "UpdateMask: versioning_override is updated as a whole.");
            }
        }
        if (!is_known) {
            hf_call_fail(core, call, HF_ERR_INVALID, "UpdateMask: \"%.*s\" is not an option that can be updated",
                         HF_STR_ARGS(mask->paths.items[i]));
            return false;
        }
    }
    return hf_mask_has(mask, KNOWN[1]) == hf_mask_has(mask, KNOWN[2]) ||
           bad(core, call, "UpdateMask: the fields of versioning_override are updated together.");
}

/* Whether the override is one that this engine can keep: it has no versions to choose from, and pins to the one that is named. */
static bool override_is_good(hf_core *core, hf_call *call, const hf_pb_versioning_override *override)
{
    if (override == NULL) {
        return true;
    }
    if (override->override_case == HF_PB_VERSIONING_OVERRIDE_PINNED &&
        (override->pinned == NULL || override->pinned->version == NULL)) {
        hf_call_fail(core, call, HF_ERR_NOT_READY,
                     "the override names no version to pin the workflow to, and it is not pinned to one yet");
        return false;
    }
    size_t len = hf_message_len(core, &hf_pb_versioning_override_type, override);
    return len <= HF_ID_LEN_MAX || bad(core, call, "VersioningOverride is longer than 1000 bytes.");
}

bool hf_options_are_good(hf_core *core, hf_call *call, const hf_pb_workflow_execution_options *options,
                         const hf_pb_field_mask *mask)
{
    return mask_is_good(core, call, mask) && hf_priority_is_good(core, call, options->priority) &&
           override_is_good(core, call, options->versioning_override);
}

static bool is_good(hf_core *core, hf_call *call)
{
    const hf_pb_update_workflow_execution_options_request *request = call->request;
    if (request->update_mask == NULL) {
        return bad(core, call, "UpdateMask is not set on request.");
    }
    if (request->workflow_execution_options == NULL) {
        return bad(core, call, "WorkflowExecutionOptions is not set on request.");
    }
    return hf_options_are_good(core, call, request->workflow_execution_options, request->update_mask);
}

/* Makes the new options of the old ones and those of a request; the priority is made in the scratch arena. */
static void merge(hf_core *core, const hf_pb_workflow_execution_options *from, const hf_pb_field_mask *mask,
                  hf_pb_workflow_execution_options *into)
{
    if (hf_mask_has(mask, "versioning_override") || hf_mask_has(mask, "versioning_override.behavior")) {
        into->versioning_override = from->versioning_override;
    }
    if (hf_mask_has(mask, "priority")) {
        into->priority = from->priority;
    }
    bool has_key = hf_mask_has(mask, "priority.priority_key");
    bool has_fairness = hf_mask_has(mask, "priority.fairness_key");
    bool has_weight = hf_mask_has(mask, "priority.fairness_weight");
    if (!has_key && !has_fairness && !has_weight) {
        return;
    }
    hf_pb_priority *merged = HF_ARENA_NEW(&core->scratch, hf_pb_priority);
    if (merged == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    hf_pb_priority none = {0};
    const hf_pb_priority *given = from->priority != NULL ? from->priority : &none;
    *merged = into->priority != NULL ? *into->priority : none;
    merged->priority_key = has_key ? given->priority_key : merged->priority_key;
    merged->fairness_key = has_fairness ? given->fairness_key : merged->fairness_key;
    merged->fairness_weight = has_weight ? given->fairness_weight : merged->fairness_weight;
    into->priority = merged;
}

static bool is_same(hf_core *core, const hf_pb_workflow_execution_options *a, const hf_pb_workflow_execution_options *b)
{
    core->row.len = 0;
    core->events.len = 0;
    hf_pb_encode(&hf_pb_workflow_execution_options_type, a, &core->row);
    hf_pb_encode(&hf_pb_workflow_execution_options_type, b, &core->events);
    if (core->row.status != HF_OK || core->events.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return true;
    }
    bool has_same_parts = (a->priority == NULL) == (b->priority == NULL) &&
                          (a->versioning_override == NULL) == (b->versioning_override == NULL);
    return has_same_parts && hf_str_equal(hf_str_of_len(core->row.data, core->row.len),
                                          hf_str_of_len(core->events.data, core->events.len));
}

bool hf_options_change(hf_core *core, const hf_run *run, const hf_pb_workflow_execution_options *options,
                       const hf_pb_field_mask *mask, hf_pb_workflow_execution_options *ret_after)
{
    hf_pb_workflow_execution_options before;
    if (!hf_run_options(run, &core->scratch, &before)) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return false;
    }
    *ret_after = before;
    merge(core, options, mask, ret_after);
    return core->status == HF_OK && !is_same(core, &before, ret_after) && core->status == HF_OK;
}

void hf_options_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_update_workflow_execution_options_request *request = call->request;
    if (!is_good(core, call)) {
        return;
    }
    if (!hf_run_is_open(run)) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "workflow execution already completed");
        return;
    }
    hf_pb_workflow_execution_options after = {0};
    bool changes = hf_options_change(core, run, request->workflow_execution_options, request->update_mask, &after);
    if (core->status != HF_OK) {
        return;
    }
    hf_pb_update_workflow_execution_options_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    response->workflow_execution_options = HF_ARENA_NEW(call->arena, hf_pb_workflow_execution_options);
    if (response->workflow_execution_options == NULL ||
        hf_pb_copy(&hf_pb_workflow_execution_options_type, &after, call->arena, response->workflow_execution_options) !=
            HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    if (changes) {
        HF_PROBE(core, HF_PROBE_OPTIONS_UPDATED);
        hf_pb_workflow_execution_options_updated_event_attributes body = {
            .versioning_override = after.versioning_override,
            .unset_versioning_override = after.versioning_override == NULL,
            .identity = request->identity,
            .priority = after.priority,
        };
        emit(core, run, &body, (hf_pb_link_list){NULL, 0});
    }
    hf_call_reply(core, call);
}
