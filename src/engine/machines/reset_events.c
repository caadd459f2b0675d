/* Resets: the events of the base, and of the runs that continued it, are copied, applied again or left out.
 *
 *     1 ........ point | point + 1 ............... last |  1 ......... last of the run that continued it, and so on
 *     copied as is     | signals, updates, options and the ends of children are applied again, all others are left behind
 *
 * Behind the copied events the new run has WorkflowTaskFailed with the cause RESET_WORKFLOW. A worker that replays it gets a new workflow
 * task there. */
#include "engine/machines/reset_private.h"

#include "engine/emit.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "history/limits.h"

#define HISTORY_SERVICE HF_STR("history-service")

/* ---- The new run ------------------------------------------------------------------------------------------------------- */

static hf_status apply(hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    /* No history shows attempts, so every outcome may follow. No caller can find the run yet: its effects are carried out when it is born. */
    hf_apply a = {.op = &core->op, .memory = &core->runs_memory, .effects = &core->effects, .is_history = true};
    hf_status status = hf_apply_event(&a, run, event, bytes);
    hf_effects_clear(&core->runs_memory, &core->effects);
    return status;
}

static bool has_memory(hf_core *core, const hf_run *run)
{
    if (run->log.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    return hf_core_is_whole(core);
}

/* A new event of the run. */
static void put(hf_core *core, hf_reset *it, hf_pb_history_event *event)
{
    hf_run *run = &it->made->run;
    event->event_id = run->event_count + 1;
    event->event_time =
        hf_pb_timestamp_of((hf_time){core->now.wall > run->last_time ? core->now.wall : run->last_time});
    size_t start = run->log.len;
    hf_pb_encode_field(HF_CHANGE_EVENT, &hf_pb_history_event_type, event, &run->log);
    if (!has_memory(core, run)) {
        return;
    }
    hf_str rest = hf_str_of_len(run->log.data + start, run->log.len - start);
    hf_pb_raw field = {0};
    hf_assert(hf_pb_next(&rest, &field));
    hf_status status = apply(core, run, event, field.bytes);
    if (status != HF_OK) {
        hf_core_break(core, status, "a reset: %s", core->op.message);
    }
}

static hf_slot *new_slot(hf_core *core, const hf_run *base)
{
    hf_slot *slot = hf_slot_new(core, 0);
    if (slot != NULL) {
        hf_run *run = &slot->run;
        run->kind = base->kind;
        hf_owned_set(&core->runs_memory, &run->namespace, hf_owned_str(&base->namespace));
        hf_owned_set(&core->runs_memory, &run->workflow_id, hf_owned_str(&base->workflow_id));
        hf_owned_set(&core->runs_memory, &run->start_request_id, hf_owned_str(&base->start_request_id));
    }
    return slot;
}

/* ---- Copied events ----------------------------------------------------------------------------------------------------- */

static void note_task(hf_reset *it, const hf_pb_history_event *event)
{
    if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED) {
        it->scheduled_id = event->event_id;
        it->started_id = 0;
    } else if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_STARTED) {
        it->started_id = event->event_id;
    }
}

/* A signal is accepted once, whether it is applied again or left behind. */
static void remember_signal(hf_core *core, hf_run *run, const hf_pb_history_event *event)
{
    hf_str id = event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
                    ? event->workflow_execution_signaled_event_attributes->request_id
                    : HF_STR("");
    if (id.len > 0 && run->request_ids.count < HF_REQUEST_IDS_MAX && !hf_request_is_known(run, id)) {
        hf_run_remember(&core->runs_memory, run, id);
    }
}

/* Whether the new run can go on behind the copied events: a workflow task is pending. An activity whose Started event was copied without its
 * outcome, which always follows at once, would start twice. */
static bool is_boundary(const hf_run *run, const hf_pb_history_event *last)
{
    return run->wft.state != HF_WFT_NONE && last->event_type != HF_EVENT_TYPE_ACTIVITY_TASK_STARTED;
}

static void refuse_point(hf_core *core, hf_reset *it)
{
    HF_PROBE(core, HF_PROBE_RESET_REFUSED);
    long long finish = (long long)it->point + 1;
    if (it->scheduled_id == 0) {
        hf_reset_fail(core, it, HF_ERR_INVALID,
                      "event %lld cannot be reset to: no workflow task is scheduled before it", finish);
        return;
    }
    long long from = (long long)it->scheduled_id + 1;
    long long to = it->started_id != 0 ? (long long)it->started_id + 1 : from;
    hf_reset_fail(core, it, HF_ERR_INVALID,
                  "event %lld cannot be reset to: it must follow a WorkflowTaskScheduled or WorkflowTaskStarted event "
                  "directly. The last workflow task before it allows %lld to %lld",
                  finish, from, to);
}

static void put_started(hf_core *core, hf_reset *it)
{
    hf_pb_workflow_task_started_event_attributes body = {
        .scheduled_event_id = it->made->run.wft.scheduled_id,
        .identity = HISTORY_SERVICE,
        .history_size_bytes = it->made->run.history_len,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_STARTED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_STARTED_EVENT_ATTRIBUTES,
        .workflow_task_started_event_attributes = &body,
    };
    put(core, it, &event);
}

/* The workflow task that is pending at the point fails: the next one replays up to here. */
static void fail_task(hf_core *core, hf_reset *it)
{
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    const hf_run *base = hf_run_find(core, it->base);
    hf_reset_number(core, it);
    if (core->status == HF_OK && it->made->run.wft.state == HF_WFT_SCHEDULED) {
        put_started(core, it);
    }
    hf_pb_reset_workflow_failure_info info = {0};
    hf_pb_failure failure = {
        .message = request->reason,
        .failure_info_case = HF_PB_FAILURE_RESET_WORKFLOW_FAILURE_INFO,
        .reset_workflow_failure_info = &info,
    };
    hf_pb_workflow_task_failed_event_attributes body = {
        .scheduled_event_id = it->made->run.wft.scheduled_id,
        .started_event_id = it->made->run.wft.started_id,
        .cause = HF_WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
        .failure = &failure,
        .identity = HISTORY_SERVICE,
        .base_run_id = hf_owned_str(&base->run_id),
        .new_run_id = hf_owned_str(&it->made->run.run_id),
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_FAILED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_FAILED_EVENT_ATTRIBUTES,
        .workflow_task_failed_event_attributes = &body,
    };
    if (core->status == HF_OK) {
        put(core, it, &event);
    }
}

static bool copy(hf_core *core, hf_reset *it, const hf_pb_history_event *event, hf_str bytes)
{
    if (it->made == NULL) {
        it->made = new_slot(core, hf_run_find(core, it->base));
        if (it->made == NULL) {
            return false;
        }
    }
    hf_run *run = &it->made->run;
    hf_pb_put_bytes(&run->log, HF_CHANGE_EVENT, bytes);
    if (!has_memory(core, run)) {
        return false;
    }
    hf_status status = apply(core, run, event, bytes);
    if (status != HF_OK && core->status == HF_OK) {
        hf_reset_fail(core, it, HF_ERR_STORE, "the history of this run cannot be read: %s; see holdfast db check",
                      core->op.message);
        return false;
    }
    note_task(it, event);
    remember_signal(core, run, event);
    if (event->event_id < it->point || core->status != HF_OK) {
        return core->status == HF_OK;
    }
    if (!is_boundary(run, event)) {
        refuse_point(core, it);
        return false;
    }
    fail_task(core, it);
    it->stage = RESET_REAPPLY;
    return core->status == HF_OK;
}

/* ---- Events that are applied again --------------------------------------------------------------------------------------- */

static bool is_excluded(const hf_reset *it, int32_t type)
{
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    for (size_t i = 0; i < request->reset_reapply_exclude_types.count; i++) {
        if (request->reset_reapply_exclude_types.items[i] == type) {
            return true;
        }
    }
    if (type == (int32_t)HF_RESET_REAPPLY_EXCLUDE_TYPE_UPDATE) {
        return request->reset_reapply_type == (int32_t)HF_RESET_REAPPLY_TYPE_SIGNAL ||
               request->reset_reapply_type == (int32_t)HF_RESET_REAPPLY_TYPE_NONE;
    }
    return request->reset_reapply_type == (int32_t)HF_RESET_REAPPLY_TYPE_NONE;
}

static void signal_again(hf_core *core, hf_reset *it, const hf_pb_history_event *event)
{
    remember_signal(core, &it->made->run, event);
    if (is_excluded(it, HF_RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL)) {
        return;
    }
    HF_PROBE(core, HF_PROBE_RESET_SIGNAL);
    hf_pb_history_event again = {
        .event_type = event->event_type,
        .attributes_case = event->attributes_case,
        .workflow_execution_signaled_event_attributes = event->workflow_execution_signaled_event_attributes,
        .links = event->links,
    };
    put(core, it, &again);
}

/* An update that was acknowledged becomes an event at once: its caller does not send it again. */
static void admit_again(hf_core *core, hf_reset *it, hf_pb_request *request)
{
    hf_str id = request != NULL && request->meta != NULL ? request->meta->update_id : HF_STR("");
    if (is_excluded(it, HF_RESET_REAPPLY_EXCLUDE_TYPE_UPDATE) || id.len == 0 ||
        hf_run_update(&it->made->run, id) != NULL) {
        return;
    }
    HF_PROBE(core, HF_PROBE_RESET_UPDATE);
    hf_pb_workflow_execution_update_admitted_event_attributes body = {
        .request = request,
        .origin = HF_UPDATE_ADMITTED_EVENT_ORIGIN_REAPPLY,
    };
    hf_pb_history_event again = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_UPDATE_ADMITTED_EVENT_ATTRIBUTES,
        .workflow_execution_update_admitted_event_attributes = &body,
    };
    put(core, it, &again);
}

/* An event of the base about a child that the new run has as well. */
static void child_again(hf_core *core, hf_reset *it, hf_pb_history_event *event)
{
    int64_t initiated_id = 0;
    int64_t *started_id = NULL;
    const hf_run *run = &it->made->run;
    bool is_end = hf_event_completion_of(event, &initiated_id, &started_id);
    if (event->event_type == HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED) {
        initiated_id = event->child_workflow_execution_started_event_attributes->initiated_event_id;
    } else if (event->event_type == HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED) {
        initiated_id = event->start_child_workflow_execution_failed_event_attributes->initiated_event_id;
    } else if (!is_end) {
        return;
    }
    const hf_child *child = it->source == it->base ? hf_run_child(run, initiated_id) : NULL;
    if (child == NULL || child->state != (is_end ? HF_CHILD_STARTED : HF_CHILD_INITIATED)) {
        return;
    }
    HF_PROBE(core, HF_PROBE_RESET_CHILD);
    if (is_end) {
        *started_id = child->started_id;
    }
    put(core, it, event);
}

/* Other options, and what starts have left with the run. A request never leaves these behind. */
static void options_again(hf_core *core, hf_reset *it, const hf_pb_history_event *event)
{
    HF_PROBE(core, HF_PROBE_RESET_OPTIONS);
    hf_pb_history_event again = {
        .event_type = event->event_type,
        .attributes_case = event->attributes_case,
        .workflow_execution_options_updated_event_attributes =
            event->workflow_execution_options_updated_event_attributes,
        .links = event->links,
    };
    put(core, it, &again);
}

static void reapply(hf_core *core, hf_reset *it, hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
        signal_again(core, it, event);
        return;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED:
        admit_again(core, it, event->workflow_execution_update_admitted_event_attributes->request);
        return;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED: /* without a request it was admitted by an event */
        admit_again(core, it, event->workflow_execution_update_accepted_event_attributes->accepted_request);
        return;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED:
        options_again(core, it, event);
        return;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
        hf_owned_set(&core->runs_memory, &it->next_run_id,
                     event->workflow_execution_continued_as_new_event_attributes->new_execution_run_id);
        return;
    default:
        if (event->event_type != HF_EVENT_TYPE_ACTIVITY_TASK_STARTED) {
            child_again(core, it, event);
        }
        return;
    }
}

static void put_signal(hf_core *core, hf_reset *it, const hf_pb_post_reset_operation_signal_workflow *signal)
{
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    hf_pb_workflow_execution_signaled_event_attributes body = {
        .signal_name = signal->signal_name,
        .input = signal->input,
        .header = signal->header,
        .identity = request->identity,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES,
        .workflow_execution_signaled_event_attributes = &body,
        .links = {signal->links.items, signal->links.count},
    };
    put(core, it, &event);
}

/* What does not change leaves no event. */
static void put_options(hf_core *core, hf_reset *it, const hf_pb_post_reset_operation_update_workflow_options *update)
{
    static const hf_pb_workflow_execution_options NONE = {0};
    const hf_pb_workflow_execution_options *options = update->workflow_execution_options;
    hf_pb_workflow_execution_options after = {0};
    if (update->update_mask == NULL ||
        !hf_options_change(core, &it->made->run, options != NULL ? options : &NONE, update->update_mask, &after)) {
        return;
    }
    HF_PROBE(core, HF_PROBE_RESET_OPTIONS);
    hf_pb_workflow_execution_options_updated_event_attributes body = {
        .versioning_override = after.versioning_override,
        .unset_versioning_override = after.versioning_override == NULL,
        .priority = after.priority,
    };
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_OPTIONS_UPDATED_EVENT_ATTRIBUTES,
        .workflow_execution_options_updated_event_attributes = &body,
    };
    put(core, it, &event);
}

void hf_reset_add_operations(hf_core *core, hf_reset *it)
{
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    for (size_t i = 0; i < request->post_reset_operations.count && core->status == HF_OK; i++) {
        const hf_pb_post_reset_operation *operation = &request->post_reset_operations.items[i];
        if (operation->variant_case == HF_PB_POST_RESET_OPERATION_SIGNAL_WORKFLOW) {
            put_signal(core, it, operation->signal_workflow);
        } else { /* the others were refused */
            put_options(core, it, operation->update_workflow_options);
        }
    }
}

/* ---- The search ---------------------------------------------------------------------------------------------------------- */

static bool is_searched_activity(const hf_pb_reset_workflow_execution_request *request,
                                 const hf_pb_history_event *event)
{
    return event->event_type == HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED &&
           hf_str_equal(event->activity_task_scheduled_event_attributes->activity_id, request->holdfast_activity_id);
}

static void begin_copy(hf_reset *it)
{
    it->point = it->found - 1;
    it->stage = RESET_COPY;
    it->next = 1;
    it->scheduled_id = it->started_id = 0;
}

/* Looks at one event for the point. */
static void look(hf_reset *it, const hf_pb_history_event *event)
{
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    if (request->holdfast_activity_id.len > 0) {
        if (is_searched_activity(request, event)) {
            it->found = event->activity_task_scheduled_event_attributes->workflow_task_completed_event_id;
        }
        return; /* the last one of this id counts */
    }
    if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED) {
        it->found = event->event_id;
        begin_copy(it);
    } else if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED && it->scheduled_id == 0) {
        it->scheduled_id = event->event_id;
    }
}

bool hf_reset_found(hf_core *core, hf_reset *it)
{
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    if (it->found == 0 && request->holdfast_activity_id.len == 0 && it->scheduled_id != 0) {
        it->found = it->scheduled_id + 1; /* no task was completed so far */
    }
    if (it->found > 1) {
        begin_copy(it);
        return true;
    }
    HF_PROBE(core, HF_PROBE_RESET_REFUSED);
    if (request->holdfast_activity_id.len > 0) {
        hf_reset_fail(core, it, HF_ERR_INVALID, "this run has not scheduled an activity '%.*s'",
                      HF_STR_ARGS(request->holdfast_activity_id));
    } else {
        hf_reset_fail(core, it, HF_ERR_INVALID, "this run has not had a workflow task that it could be reset to");
    }
    return false;
}

/* ---- One event --------------------------------------------------------------------------------------------------------- */

bool hf_reset_take(hf_core *core, hf_reset *it, hf_str bytes)
{
    hf_core_reset_scratch(core);
    hf_pb_history_event event;
    hf_status status = hf_pb_decode(&core->op, &hf_pb_history_event_type, bytes, &core->scratch, &event);
    if (status == HF_ERR_NOMEM || core->scratch.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    if (core->status != HF_OK) {
        return false;
    }
    if (status != HF_OK || event.event_id != it->next || !hf_event_fits(&event)) {
        hf_reset_fail(core, it, HF_ERR_STORE, "event %lld of run %lld cannot be read; see holdfast db check",
                      (long long)it->next, (long long)it->source);
        return false;
    }
    it->next++;
    switch (it->stage) {
    case RESET_FIND:
        look(it, &event);
        return true;
    case RESET_COPY:
        return copy(core, it, &event, bytes);
    case RESET_REAPPLY:
        reapply(core, it, &event);
        return core->status == HF_OK;
    case RESET_ASK_NEXT:
    case RESET_ASK_CURRENT:
    case RESET_LAST:
        break;
    }
    hf_assert(false); /* it takes no events */
    return false;
}
