/* Updates: a caller asks a workflow's code to do something, and gets its answer.
 *
 *                                  a workflow task                accept                     respond
 *     UpdateWorkflowExecution --> admitted -----> sent --------------------> accepted --------------------> completed
 *                                     ^            |   reject
 *                                     +------------+----------> (gone: the caller gets the failure)
 *                                       it failed
 *
 * Before it is accepted an update is in memory only (hf_unwritten): nobody was told more than that it is there, and a caller who
 * gets no answer sends it again, with the same id. Accepted and completed updates are events, and part of the run's state
 * (run/machines/update.c), and so are updates that a reset has applied again: an event admits them. Of these only the calls that wait are
 * kept here. Answers are decided with the events and sent with their commit.
 *
 * engine-Y1  An id names one update of a run: whoever sends it again gets the same outcome, unless it was rejected.
 * engine-Y2  An update is sent only with a workflow task that starts after it came. */
#include "engine/machines/update_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/emit.h"
#include "engine/fetch.h"
#include "engine/machines/machines.h"
#include "engine/machines/multi.h"
#include "engine/machines/speculative.h"
#include "engine/size.h"
#include "history/limits.h"
#include "history/payload.h"

#include <stdio.h>

#define FAIL_FROM_ATTEMPT 3 /* of a workflow task: its code fails, and an update would change nothing */

/* ---- Calls ------------------------------------------------------------------------------------------------------------- */

bool hf_update_is_good(hf_core *core, hf_call *call, const hf_pb_update_workflow_execution_request *request)
{
    const hf_pb_request *update = request->request;
    if (update == NULL || update->meta == NULL) {
        hf_update_refuse(core, call, HF_ERR_INVALID, "the Meta of the update is not set on request");
        return false;
    }
    if (update->input == NULL || !hf_id_is_good(update->input->name)) {
        hf_update_refuse(core, call, HF_ERR_INVALID,
                         "the name of the update is not set on request, longer than 1000 bytes, or not UTF-8");
        return false;
    }
    if (!hf_text_is_good(update->meta->update_id) || !hf_text_is_good(update->meta->identity)) {
        hf_update_refuse(core, call, HF_ERR_INVALID, "UpdateId or Identity is longer than 1000 bytes, or not UTF-8.");
        return false;
    }
    if (request->wait_policy != NULL && request->wait_policy->lifecycle_stage == STAGE_ADMITTED) {
        hf_update_refuse(
            core, call, HF_ERR_DENIED,
            "UpdateWorkflowExecution issued asynchronously and waiting on update admitted is not supported.");
        return false;
    }
    if (!hf_fits(core, hf_message_len(core, &hf_pb_request_type, update))) {
        hf_update_refuse(core, call, HF_ERR_TOO_BIG, "the update is longer than one blob may be");
        return false;
    }
    return true;
}

static int32_t stage_of(const hf_pb_wait_policy *policy)
{
    return policy != NULL && policy->lifecycle_stage == STAGE_COMPLETED ? STAGE_COMPLETED : STAGE_ACCEPTED;
}

static size_t total_max(const hf_core *core)
{
    return core->options.limits.updates > 0 ? core->options.limits.updates : HF_UPDATES_MAX;
}

bool hf_updates_are_many(const hf_core *core, const hf_run *run, bool with_asked)
{
    size_t total = run->updates.count;
    if (with_asked && HF_SLOT(run)->unwritten != NULL) {
        HF_LIST_EACH(node, &HF_SLOT(run)->unwritten->updates)
        {
            total += HF_CONTAINER(node, hf_asked, link)->state != ASKED_WRITTEN;
        }
    }
    return total >= (total_max(core) * 9 + 9) / 10;
}

/* Whether an update that was admitted by an event had its workflow task, and was not accepted: it is as good as gone. */
bool hf_update_was_passed(const hf_run *run, const hf_update *update)
{
    return update->accepted_id == 0 && run->wft.completed_id > update->admitted_id;
}

/* False: there is no room for another update of this run, and the call has failed. */
static bool has_room(hf_core *core, hf_call *call, const hf_run *run, size_t len)
{
    size_t in_flight = 0;
    size_t total = run->updates.count;
    for (size_t i = 0; i < run->updates.count; i++) {
        const hf_update *update = &run->updates.items[i];
        in_flight += update->completed_id == 0 && !hf_update_was_passed(run, update);
    }
    if (HF_SLOT(run)->unwritten != NULL) {
        HF_LIST_EACH(node, &HF_SLOT(run)->unwritten->updates)
        {
            const hf_asked *asked = HF_CONTAINER(node, hf_asked, link);
            bool is_in_memory = asked->state == ASKED_ADMITTED || asked->state == ASKED_SENT;
            in_flight += is_in_memory;
            total += is_in_memory && hf_run_update(run, hf_owned_str(&asked->id)) == NULL;
            len += asked->request.len;
        }
    }
    const hf_core_limits *limits = &core->options.limits;
    size_t in_flight_max = limits->updates_in_flight > 0 ? limits->updates_in_flight : HF_UPDATES_UNDER_WAY_MAX;
    if (in_flight >= in_flight_max || len > HF_UPDATES_UNDER_WAY_LEN_MAX) {
        HF_PROBE(core, HF_PROBE_UPDATE_LIMIT);
        char why[HF_MESSAGE_LEN_MAX];
        (void)snprintf(why, sizeof why, "limit on number of concurrent in-flight updates has been reached (%zu)",
                       in_flight_max);
        hf_update_refuse_busy(core, call, HF_RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT, why);
        return false;
    }
    if (total >= total_max(core)) {
        HF_PROBE(core, HF_PROBE_LIMIT_HIT);
        char why[HF_MESSAGE_LEN_MAX];
        (void)snprintf(
            why, sizeof why,
            "The limit on the total number of distinct updates in this workflow has been reached (%zu). Make "
            "sure any duplicate updates share an Update ID so the server can deduplicate them, and consider "
            "rejecting updates that you aren't going to process. You can also Continue-as-New to avoid this; "
            "we recommend you check Continue-as-New Suggested in your Workflow.",
            total_max(core));
        hf_update_refuse(core, call, HF_ERR_NOT_READY, why);
        if (call->method == HF_METHOD_UPDATE_WORKFLOW_EXECUTION) {
            call->detail_type = NULL; /* the detail of this status would tell of a task that is not there yet */
            call->detail = NULL;
        }
        return false;
    }
    return true;
}

/* Asks for an update again that was admitted by an event and then rejected. The request is that of the event. */
static hf_asked *asked_again(hf_core *core, hf_run *run, hf_str id, const hf_pb_request *request)
{
    hf_buf bytes;
    hf_buf_init(&bytes, core->memory, SIZE_MAX / 4);
    hf_pb_encode(&hf_pb_request_type, request, &bytes);
    if (bytes.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    hf_asked *asked = core->status == HF_OK ? hf_asked_new(core, run, id, ASKED_ADMITTED) : NULL;
    if (asked != NULL) {
        hf_owned_set(&core->runs_memory, &asked->request, hf_str_of_len(bytes.data, bytes.len));
    }
    hf_buf_deinit(&bytes);
    return asked;
}

/* The history has the update, and it is admitted. */
static void of_admitted(hf_core *core, hf_call *call, hf_run *run, const hf_update *update, int32_t stage, bool is_new)
{
    hf_str id = hf_owned_str(&update->id);
    hf_asked *asked = hf_asked_find(run, id);
    bool was_rejected = asked == NULL && hf_update_was_passed(run, update);
    if (!hf_run_is_open(run)) {
        hf_update_refuse(core, call, HF_ERR_NOT_FOUND, "workflow update was aborted by closing workflow");
    } else if (was_rejected && call->method == HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "update \"%.*s\" not found", HF_STR_ARGS(id));
    } else if (was_rejected) {
        hf_pb_history_event event;
        if (hf_event_for_call(core, call, run, update->admitted_id, HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED,
                              &event)) {
            const hf_pb_request *request = event.workflow_execution_update_admitted_event_attributes->request;
            if (has_room(core, call, run, hf_message_len(core, &hf_pb_request_type, request))) {
                HF_PROBE(core, HF_PROBE_UPDATE_ADMITTED);
                hf_asked_wait(core, call, run, asked_again(core, run, id, request), stage, is_new);
            }
        }
    } else if (stage <= STAGE_ADMITTED) {
        hf_update_tell(core, call, run, id, STAGE_ADMITTED, NULL, is_new);
    } else {
        hf_asked_wait(core, call, run, asked != NULL ? asked : hf_asked_new(core, run, id, ASKED_EVENT), stage, is_new);
    }
}

/* The history has the update. */
static void of_written(hf_core *core, hf_call *call, hf_run *run, const hf_update *update, int32_t stage, bool is_new)
{
    hf_str id = hf_owned_str(&update->id);
    if (update->accepted_id == 0) {
        of_admitted(core, call, run, update, stage, is_new);
    } else if (update->completed_id != 0) {
        hf_pb_history_event event;
        if (hf_event_for_call(core, call, run, update->completed_id, HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED,
                              &event)) {
            HF_PROBE(core, HF_PROBE_UPDATE_OUTCOME_READ);
            hf_update_tell(core, call, run, id, STAGE_COMPLETED,
                           event.workflow_execution_update_completed_event_attributes->outcome, is_new);
        }
    } else if (!hf_run_is_open(run)) {
        hf_pb_outcome outcome = hf_update_outlived(core);
        hf_update_tell(core, call, run, id, STAGE_COMPLETED, &outcome, is_new);
    } else if (stage <= STAGE_ACCEPTED) {
        hf_update_tell(core, call, run, id, STAGE_ACCEPTED, NULL, is_new);
    } else {
        hf_asked *asked = hf_asked_find(run, id);
        hf_asked_wait(core, call, run, asked != NULL ? asked : hf_asked_new(core, run, id, ASKED_WRITTEN), stage,
                      is_new);
    }
}

/* The id of an update whose caller gave none. */
static hf_str made_id(hf_core *core)
{
    uint64_t number = ++core->query_count;
    uint64_t high = hf_siphash(core->options.seed, hf_str_of_len(&number, sizeof number));
    return hf_uuid_in(&core->scratch, high, hf_hash_mix(high, number));
}

static void admit(hf_core *core, hf_call *call, hf_run *run, const hf_pb_update_workflow_execution_request *request,
                  hf_str id, bool is_new)
{
    hf_pb_meta meta = request->request->meta != NULL ? *request->request->meta : (hf_pb_meta){0};
    hf_pb_request update = *request->request;
    meta.update_id = id;
    update.meta = &meta;
    hf_buf bytes;
    hf_buf_init(&bytes, core->memory, SIZE_MAX / 4);
    hf_pb_encode(&hf_pb_request_type, &update, &bytes);
    if (bytes.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    } else if (has_room(core, call, run, bytes.len)) {
        HF_PROBE(core, HF_PROBE_UPDATE_ADMITTED);
        hf_asked *asked = hf_asked_new(core, run, id, ASKED_ADMITTED);
        if (asked != NULL) {
            hf_owned_set(&core->runs_memory, &asked->request, hf_str_of_len(bytes.data, bytes.len));
            hf_asked_wait(core, call, run, asked, stage_of(request->wait_policy), is_new);
        }
    }
    hf_buf_deinit(&bytes);
}

void hf_update_of_start(hf_core *core, hf_call *call, hf_run *run,
                        const hf_pb_update_workflow_execution_request *request, bool is_new)
{
    hf_str id = request->request->meta != NULL ? request->request->meta->update_id : HF_STR("");
    const hf_update *written = id.len > 0 ? hf_run_update(run, id) : NULL;
    hf_asked *asked = id.len > 0 ? hf_asked_find(run, id) : NULL;
    if (written != NULL) {
        HF_PROBE(core, HF_PROBE_UPDATE_ATTACHED);
        of_written(core, call, run, written, stage_of(request->wait_policy), is_new);
    } else if (!hf_run_is_open(run)) {
        hf_update_refuse(core, call, HF_ERR_NOT_FOUND, "workflow execution already completed");
    } else if (asked != NULL) {
        HF_PROBE(core, HF_PROBE_UPDATE_ATTACHED);
        hf_asked_wait(core, call, run, asked, stage_of(request->wait_policy), is_new);
    } else if (run->wft.attempt >= FAIL_FROM_ATTEMPT) {
        hf_update_refuse(core, call, HF_ERR_NOT_READY,
                         "Unable to perform workflow execution update due to Workflow Task in failed state.");
    } else {
        admit(core, call, run, request, id.len > 0 ? id : made_id(core), is_new);
    }
}

void hf_update_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_update_workflow_execution_request *request = call->request;
    hf_assert(request->request != NULL && request->request->input != NULL); /* hf_update_is_good */
    if (request->first_execution_run_id.len > 0 &&
        !hf_str_equal(request->first_execution_run_id, hf_owned_str(&run->first_run_id))) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "workflow execution not found");
        return;
    }
    hf_update_of_start(core, call, run, request, false);
}

void hf_update_poll_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_poll_workflow_execution_update_request *request = call->request;
    hf_str id = request->update_ref != NULL ? request->update_ref->update_id : HF_STR("");
    int32_t stage = request->wait_policy != NULL ? request->wait_policy->lifecycle_stage : 0;
    const hf_update *written = hf_run_update(run, id);
    hf_asked *asked = hf_asked_find(run, id);
    if (written != NULL) {
        of_written(core, call, run, written, stage, false);
    } else if (asked == NULL) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "update \"%.*s\" not found", HF_STR_ARGS(id));
    } else if (stage <= STAGE_ADMITTED) {
        hf_update_tell(core, call, run, id, STAGE_ADMITTED, NULL, false);
    } else {
        hf_asked_wait(core, call, run, asked, stage, false);
    }
}

void hf_update_drop(hf_core *core, hf_call *call)
{
    (void)hf_waiter_end(core, call->parked);
}

void hf_update_expire(hf_core *core, hf_call *call)
{
    hf_waiter *waiter = call->parked;
    const hf_run *run = waiter->run;
    const hf_asked *asked = waiter->asked;
    bool is_new = waiter->is_new;
    HF_PROBE(core, HF_PROBE_UPDATE_WAITED);
    (void)hf_waiter_end(core, waiter); /* the update stays until the end of the step */
    hf_update_tell(core, call, run, hf_owned_str(&asked->id),
                   asked->state == ASKED_WRITTEN ? STAGE_ACCEPTED : STAGE_ADMITTED, NULL, is_new);
}

/* ---- With a workflow task ------------------------------------------------------------------------------------------------ */

static hf_str joined(hf_arena *arena, hf_str id, const char *end)
{
    size_t len = strlen(end);
    char *text = hf_arena_take(arena, id.len + len, 1);
    if (text == NULL) {
        return HF_STR("");
    }
    memcpy(text, id.data, id.len);
    memcpy(text + id.len, end, len);
    return hf_str_of_len(text, id.len + len);
}

void hf_updates_attach(hf_core *core, hf_run *run, bool again, int64_t started_id, hf_call *call,
                       hf_pb_poll_workflow_task_queue_response *response)
{
    hf_unwritten *unwritten = HF_SLOT(run)->unwritten;
    if (unwritten == NULL || hf_list_is_empty(&unwritten->updates)) {
        return;
    }
    hf_assert(hf_wft_state_now(run) == HF_WFT_STARTED); /* engine-Y2 */
    size_t count = 0;
    HF_LIST_EACH(node, &unwritten->updates)
    {
        count++;
    }
    response->messages.items = HF_ARENA_ARRAY(call->arena, hf_pb_message, count);
    HF_LIST_EACH(node, &unwritten->updates)
    {
        hf_asked *asked = HF_CONTAINER(node, hf_asked, link);
        if (asked->state != (again ? ASKED_SENT : ASKED_ADMITTED) || call->arena->status != HF_OK) { /* engine-Y2 */
            continue;
        }
        hf_pb_any *body = HF_ARENA_NEW(call->arena, hf_pb_any);
        hf_str id = hf_owned_str(&asked->id);
        asked->state = ASKED_SENT;
        if (body != NULL) {
            body->type_url = HF_STR(HF_UPDATE_TYPE "Request");
            body->value = hf_arena_copy(call->arena, hf_owned_str(&asked->request));
            response->messages.items[response->messages.count++] = (hf_pb_message){
                .id = joined(call->arena, id, "/request"),
                .protocol_instance_id = hf_arena_copy(call->arena, id),
                .sequencing_id_case = HF_PB_MESSAGE_EVENT_ID,
                .event_id = started_id - 1,
                .body = body,
            };
        }
    }
    if (call->arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}

static void settle_closed(hf_core *core, hf_run *run, hf_asked *asked)
{
    bool goes_on = HF_SLOT(run)->name == NULL && run->status != HF_WORKFLOW_EXECUTION_STATUS_TERMINATED;
    if (asked->state == ASKED_WRITTEN) {
        HF_PROBE(core, HF_PROBE_UPDATE_OUTLIVED);
        hf_pb_outcome outcome = hf_update_outlived(core);
        hf_asked_tell(core, run, asked, STAGE_COMPLETED, &outcome);
    } else if (goes_on) { /* the caller sends it again, to the next run */
        HF_PROBE(core, HF_PROBE_UPDATE_ABORTED);
        HF_LIST_EACH(node, &asked->waiters)
        {
            hf_update_refuse_busy(core, hf_waiter_end(core, HF_CONTAINER(node, hf_waiter, link)),
                                  HF_RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW,
                                  "workflow operation can not be applied because workflow is closing");
        }
    } else {
        HF_PROBE(core, HF_PROBE_UPDATE_ABORTED);
        hf_asked_refuse(core, asked, HF_ERR_NOT_FOUND, "workflow update was aborted by closing workflow");
    }
    if (core->status == HF_OK) {
        hf_asked_free(core, asked);
    }
}

void hf_updates_settle(hf_core *core, hf_run *run, hf_unwritten *unwritten)
{
    bool wants_task = false;
    HF_LIST_EACH(node, &unwritten->updates)
    {
        hf_asked *asked = HF_CONTAINER(node, hf_asked, link);
        if (core->status != HF_OK) {
            return;
        }
        if (!hf_run_is_open(run)) {
            settle_closed(core, run, asked);
            continue;
        }
        if (asked->state == ASKED_SENT && hf_wft_state_now(run) != HF_WFT_STARTED) {
            HF_PROBE(core, HF_PROBE_UPDATE_SENT_AGAIN);
            asked->state = ASKED_ADMITTED; /* its task has failed, or timed out */
        }
        bool is_event = asked->state == ASKED_WRITTEN || asked->state == ASKED_EVENT;
        if (is_event && hf_list_is_empty(&asked->waiters)) {
            hf_asked_free(core, asked);
            continue;
        }
        wants_task = wants_task || asked->state == ASKED_ADMITTED;
    }
    if (wants_task && hf_wft_state_now(run) == HF_WFT_NONE) {
        hf_speculative_schedule(core, run);
    }
}
