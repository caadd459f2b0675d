/* The call that asks for a reset: it is checked, recognised if it is repeated, and begins a reset (reset.c). */
#include "engine/machines/reset_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/size.h"
#include "history/limits.h"

void hf_reset_answer(hf_core *core, hf_call *call, hf_str run_id)
{
    hf_pb_reset_workflow_execution_response *response = hf_call_response(core, call);
    if (response != NULL) {
        response->run_id = hf_arena_copy(call->arena, run_id);
        hf_call_reply(core, call);
    }
}

static bool refuse(hf_core *core, hf_call *call, const char *why)
{
    HF_PROBE(core, HF_PROBE_RESET_REFUSED);
    hf_call_fail(core, call, HF_ERR_INVALID, "%s", why);
    return false;
}

static bool signal_is_good(hf_core *core, hf_call *call, const hf_pb_post_reset_operation_signal_workflow *signal)
{
    if (!hf_id_is_good(signal->signal_name)) {
        return refuse(core, call,
                      "SignalName is not set on a PostResetOperation, longer than 1000 bytes, or not UTF-8.");
    }
    if (!hf_fits(core, hf_payloads_len(signal->input)) ||
        !hf_fits(core, hf_message_len(core, &hf_pb_header_type, signal->header))) {
        hf_call_fail(core, call, HF_ERR_TOO_BIG, "a signal of a PostResetOperation is longer than one blob may be");
        return false;
    }
    return true;
}

/* Options without a mask change nothing. */
static bool options_are_good(hf_core *core, hf_call *call,
                             const hf_pb_post_reset_operation_update_workflow_options *update)
{
    static const hf_pb_workflow_execution_options NONE = {0};
    const hf_pb_workflow_execution_options *options = update->workflow_execution_options;
    return update->update_mask == NULL ||
           hf_options_are_good(core, call, options != NULL ? options : &NONE, update->update_mask);
}

static bool operations_are_good(hf_core *core, hf_call *call)
{
    const hf_pb_reset_workflow_execution_request *request = call->request;
    bool is_good = true;
    for (size_t i = 0; is_good && i < request->post_reset_operations.count; i++) {
        const hf_pb_post_reset_operation *operation = &request->post_reset_operations.items[i];
        if (operation->variant_case == HF_PB_POST_RESET_OPERATION_SIGNAL_WORKFLOW) {
            is_good = signal_is_good(core, call, operation->signal_workflow);
        } else if (operation->variant_case == HF_PB_POST_RESET_OPERATION_UPDATE_WORKFLOW_OPTIONS) {
            is_good = options_are_good(core, call, operation->update_workflow_options);
        } else {
            is_good = refuse(core, call, "a PostResetOperation is neither a signal nor an update of options");
        }
    }
    return is_good;
}

static bool request_is_good(hf_core *core, hf_call *call, const hf_run *run)
{
    const hf_pb_reset_workflow_execution_request *request = call->request;
    bool has_event = request->workflow_task_finish_event_id != 0;
    if (request->holdfast_point < 0 || request->holdfast_point > RESET_TO_LAST) {
        return refuse(core, call, "HoldfastPoint is neither 1, the first workflow task, nor 2, the last one.");
    }
    if (has_event + (request->holdfast_point != 0) + (request->holdfast_activity_id.len > 0) > 1) {
        return refuse(core, call,
                      "of WorkflowTaskFinishEventId, HoldfastPoint and HoldfastActivityId more than one is set");
    }
    if (!has_event && (request->holdfast_point != 0 || request->holdfast_activity_id.len > 0)) {
        return operations_are_good(core, call);
    }
    if (request->workflow_task_finish_event_id <= 1 || request->workflow_task_finish_event_id > run->event_count) {
        HF_PROBE(core, HF_PROBE_RESET_REFUSED);
        hf_call_say(core, call, "Workflow task finish ID must be > 1 && <= workflow last event ID.");
        hf_call_fail(core, call, HF_ERR_INVALID,
                     "WorkflowTaskFinishEventId is %lld: it must be greater than 1 and at most %lld, the last event",
                     (long long)request->workflow_task_finish_event_id, (long long)run->event_count);
        return false;
    }
    return operations_are_good(core, call);
}

static bool is_same(hf_core *core, const hf_reset *it, const hf_call *call, const hf_run *run)
{
    const hf_pb_reset_workflow_execution_request *ours = it->caller->request;
    const hf_pb_reset_workflow_execution_request *request = call->request;
    const hf_run *base = hf_run_find(core, it->base);
    return hf_str_equal(ours->request_id, request->request_id) &&
           hf_str_equal(hf_owned_str(&base->namespace), hf_owned_str(&run->namespace)) &&
           hf_str_equal(hf_owned_str(&base->workflow_id), hf_owned_str(&run->workflow_id));
}

/* Whether the request is known: it was carried out, or is under way. */
static bool is_repeated(hf_core *core, hf_call *call, const hf_run *run)
{
    const hf_pb_reset_workflow_execution_request *request = call->request;
    hf_str made = hf_run_reset_by(run, request->request_id);
    if (request->request_id.len == 0 || HF_CANARY(HF_BUG_RESET_TWICE)) {
        return false;
    }
    if (made.len > 0) {
        HF_PROBE(core, HF_PROBE_RESET_DEDUPED);
        hf_reset_answer(core, call, made);
        return true;
    }
    hf_list *lists[3];
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        HF_LIST_EACH(node, hf_resets_lists(core, &lists)[i])
        {
            hf_reset *it = HF_CONTAINER(node, hf_reset, link);
            if (is_same(core, it, call, run)) {
                HF_PROBE(core, HF_PROBE_RESET_JOINED);
                call->place = HF_PLACE_ELSEWHERE;
                hf_list_push_back(&it->joined, &call->link);
                return true;
            }
        }
    }
    return false;
}

/* Sets the point of the reset, if it is known without looking at events. */
static void set_point(hf_reset *it, const hf_run *base)
{
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    it->stage = RESET_FIND;
    if (request->workflow_task_finish_event_id != 0) {
        it->found = request->workflow_task_finish_event_id;
    } else if (request->holdfast_point == RESET_TO_LAST) {
        it->found = base->wft.completed_id;
    }
    if (it->found != 0) {
        it->point = it->found - 1;
        it->stage = RESET_COPY;
    }
}

static void begin(hf_core *core, hf_call *call, hf_run *base)
{
    hf_reset *it = hf_core_alloc(core, sizeof *it);
    if (it == NULL) {
        return;
    }
    core->resets.count++;
    hf_assert(core->resets.count <= HF_RESETS_MAX);
    it->core = core;
    it->caller = call;
    call->place = HF_PLACE_ELSEWHERE;
    hf_list_init(&it->joined);
    hf_arena_init(&it->arena, core->memory);
    it->execution.workflow_id = hf_arena_copy(&it->arena, hf_owned_str(&base->workflow_id));
    it->asks = (hf_pb_reset_workflow_execution_request){
        .namespace = hf_arena_copy(&it->arena, hf_owned_str(&base->namespace)),
        .workflow_execution = &it->execution,
    };
    if (it->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    hf_reset_hold(core, base);
    it->base = base->number;
    hf_reset_read_from(core, it, base, 1);
    set_point(it, base);
    hf_list_push_back(&core->resets.next, &it->link);
}

void hf_reset_call(hf_core *core, hf_call *call, hf_run *run)
{
    if (call->maker == HF_CALL_OF_RESET) {
        hf_reset_meet((hf_reset *)(void *)call, run);
        return;
    }
    if (is_repeated(core, call, run) || !request_is_good(core, call, run)) {
        return;
    }
    if (core->resets.count >= HF_RESETS_MAX) {
        hf_call_fail(core, call, HF_ERR_LIMIT, "%d resets are under way, the most that are taken at a time",
                     (int)HF_RESETS_MAX);
        return;
    }
    begin(core, call, run);
}
