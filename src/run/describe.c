/* Descriptions of a run: in full, and as one line of a list. The engine and tools that look at a file at rest use the same code, so that
 * they show the same. */
#include "run/run.h"
#include "run/visible.h"

#include <stddef.h>

/* Decodes a copy in the arena, to which the message then points. False: no memory, or the bytes are not that message. */
static bool decode_copy(hf_arena *arena, const hf_owned *bytes, const hf_pb_type *type, void *ret_msg)
{
    hf_op op;
    hf_op_init(&op);
    hf_str copy = hf_arena_copy(arena, hf_owned_str(bytes));
    return ret_msg != NULL && arena->status == HF_OK && hf_pb_decode(&op, type, copy, arena, ret_msg) == HF_OK;
}

/* The same in memory of the arena; NULL: there are no bytes, or it cannot be read. */
static void *decode_new(hf_arena *arena, const hf_owned *bytes, const hf_pb_type *type, size_t len)
{
    void *msg = bytes->len > 0 ? hf_arena_zero(arena, len, _Alignof(max_align_t)) : NULL;
    return msg != NULL && decode_copy(arena, bytes, type, msg) ? msg : NULL;
}

/* The same, or an empty message if there are no bytes. */
static void *decode_or_empty(hf_arena *arena, const hf_owned *bytes, const hf_pb_type *type, size_t len)
{
    return bytes->len > 0 ? decode_new(arena, bytes, type, len) : hf_arena_zero(arena, len, _Alignof(max_align_t));
}

/* When a span that begins at `time` is over; none, if it never is. */
static hf_pb_timestamp end_of(int64_t time, int64_t span)
{
    int64_t end = 0;
    bool ends = span > 0 && !__builtin_add_overflow(time, span, &end);
    return ends ? hf_pb_timestamp_of((hf_time){end}) : (hf_pb_timestamp){0};
}

/* Its current options: those of its event, unless they were changed since. */
static hf_pb_activity_options *describe_options(hf_arena *arena, const hf_activity *activity)
{
    hf_pb_history_event event = {0};
    hf_pb_activity_options changed = {0};
    hf_pb_activity_options *options = HF_ARENA_NEW(arena, hf_pb_activity_options);
    hf_pb_task_queue *queue = HF_ARENA_NEW(arena, hf_pb_task_queue);
    hf_pb_retry_policy *policy = HF_ARENA_NEW(arena, hf_pb_retry_policy);
    if (policy == NULL || !decode_copy(arena, &activity->scheduled, &hf_pb_history_event_type, &event) ||
        !decode_copy(arena, &activity->options, &hf_pb_activity_options_type, &changed)) {
        return NULL;
    }
    const hf_pb_activity_task_scheduled_event_attributes *attrs = event.activity_task_scheduled_event_attributes;
    bool is_changed = activity->options.len > 0;
    const hf_pb_retry_policy *is = is_changed ? changed.retry_policy : attrs->retry_policy;
    queue->name = queue->normal_name = hf_arena_copy(arena, activity->task_queue);
    options->task_queue = queue;
    options->schedule_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(activity->schedule_to_close));
    options->schedule_to_start_timeout = hf_pb_duration_of(hf_nanoseconds(activity->schedule_to_start));
    options->start_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(activity->start_to_close));
    options->heartbeat_timeout = hf_pb_duration_of(hf_nanoseconds(activity->heartbeat));
    options->priority = is_changed ? changed.priority : attrs->priority;
    if (is != NULL) { /* without the failures that it does not retry: those are not among the options */
        policy->initial_interval = is->initial_interval;
        policy->backoff_coefficient = is->backoff_coefficient;
        policy->maximum_interval = is->maximum_interval;
        policy->maximum_attempts = is->maximum_attempts;
        options->retry_policy = policy;
    }
    return options;
}

/* Its limits: the number of attempts, and the time until which it may be tried. */
static void describe_retries(hf_arena *arena, const hf_activity *activity, hf_pb_pending_activity_info *info)
{
    info->activity_options = describe_options(arena, activity);
    if (info->activity_options != NULL) {
        const hf_pb_retry_policy *policy = info->activity_options->retry_policy;
        info->maximum_attempts = policy != NULL ? policy->maximum_attempts : 0;
        info->priority = info->activity_options->priority;
    }
    info->expiration_time = end_of(activity->first_time, activity->schedule_to_close);
    if (activity->attempt_end > 0) {
        info->last_attempt_complete_time = hf_pb_timestamp_of((hf_time){activity->attempt_end});
    }
    if (activity->state == HF_ACTIVITY_BACKOFF) {
        info->next_attempt_schedule_time = hf_pb_timestamp_of((hf_time){activity->scheduled_time});
        if (activity->attempt_end > 0 && activity->attempt_end <= activity->scheduled_time) {
            info->current_retry_interval =
                hf_pb_duration_of(hf_nanoseconds(activity->scheduled_time - activity->attempt_end));
        }
    }
}

static void describe_pause(hf_arena *arena, const hf_activity *activity, hf_pb_pending_activity_info *info)
{
    hf_pb_activity_paused pause = {0};
    hf_pb_pending_activity_info_pause_info *shown = HF_ARENA_NEW(arena, hf_pb_pending_activity_info_pause_info);
    hf_pb_pending_activity_info_pause_info_manual *manual =
        HF_ARENA_NEW(arena, hf_pb_pending_activity_info_pause_info_manual);
    if (manual == NULL || !decode_copy(arena, &activity->pause, &hf_pb_activity_paused_type, &pause)) {
        return;
    }
    manual->identity = pause.identity;
    manual->reason = pause.reason;
    shown->pause_time = hf_pb_timestamp_of((hf_time){pause.time});
    shown->paused_by_case = HF_PB_PENDING_ACTIVITY_INFO_PAUSE_INFO_MANUAL;
    shown->manual = manual;
    info->paused = true;
    info->pause_info = shown;
}

static int32_t pending_state(const hf_activity *activity)
{
    bool is_paused = hf_activity_is_paused(activity);
    if (activity->cancel_requested_id != 0) {
        return HF_PENDING_ACTIVITY_STATE_CANCEL_REQUESTED;
    }
    if (activity->state == HF_ACTIVITY_STARTED) {
        return is_paused ? HF_PENDING_ACTIVITY_STATE_PAUSE_REQUESTED : HF_PENDING_ACTIVITY_STATE_STARTED;
    }
    return is_paused ? HF_PENDING_ACTIVITY_STATE_PAUSED : HF_PENDING_ACTIVITY_STATE_SCHEDULED;
}

static void describe_activity(hf_arena *arena, const hf_activity *activity, hf_pb_pending_activity_info *info)
{
    info->activity_id = hf_arena_copy(arena, activity->activity_id);
    info->activity_type = HF_ARENA_NEW(arena, hf_pb_activity_type);
    if (info->activity_type != NULL) {
        info->activity_type->name = hf_arena_copy(arena, activity->activity_type);
    }
    bool started = activity->state == HF_ACTIVITY_STARTED;
    info->state = pending_state(activity);
    info->attempt = activity->attempt;
    info->holdfast_crashes = activity->task.crashes;
    describe_retries(arena, activity, info);
    info->scheduled_time = hf_pb_timestamp_of((hf_time){activity->scheduled_time});
    if (started) {
        info->last_started_time = hf_pb_timestamp_of((hf_time){activity->started_time});
    }
    int64_t heard = activity->heard_time > activity->heartbeat_time ? activity->heard_time : activity->heartbeat_time;
    if (heard > 0) {
        info->last_heartbeat_time = hf_pb_timestamp_of((hf_time){heard});
    }
    if (hf_activity_is_paused(activity)) {
        describe_pause(arena, activity, info);
    }
    info->last_worker_identity = hf_arena_copy(arena, hf_owned_str(&activity->identity));
    if (activity->last_failure.len > 0) {
        info->last_failure = HF_ARENA_NEW(arena, hf_pb_failure);
        (void)decode_copy(arena, &activity->last_failure, &hf_pb_failure_type, info->last_failure);
    }
    if (activity->heartbeat_details.len > 0) {
        info->heartbeat_details = HF_ARENA_NEW(arena, hf_pb_payloads);
        (void)decode_copy(arena, &activity->heartbeat_details, &hf_pb_payloads_type, info->heartbeat_details);
    }
}

static void describe_config(hf_arena *arena, const hf_run *run, hf_pb_workflow_execution_config *config)
{
    config->task_queue = HF_ARENA_NEW(arena, hf_pb_task_queue);
    if (config->task_queue != NULL) {
        config->task_queue->name = hf_arena_copy(arena, hf_owned_str(&run->task_queue));
        config->task_queue->kind = HF_TASK_QUEUE_KIND_NORMAL;
    }
    config->workflow_execution_timeout = hf_pb_duration_of(hf_nanoseconds(run->execution_timeout)); /* 0 = none */
    config->workflow_run_timeout = hf_pb_duration_of(hf_nanoseconds(run->run_timeout));
    config->default_workflow_task_timeout = hf_pb_duration_of(hf_nanoseconds(run->task_timeout));
    config->user_metadata =
        decode_new(arena, &run->user_metadata, &hf_pb_user_metadata_type, sizeof(hf_pb_user_metadata));
}

/* Parent, root, and when the first workflow task was or is due. */
static void describe_start(hf_arena *arena, const hf_run *run, hf_pb_workflow_execution_info *info)
{
    hf_start_facts facts = {0};
    hf_op op;
    hf_op_init(&op);
    info->execution_time = hf_pb_timestamp_of((hf_time){run->start_time});
    info->memo = decode_or_empty(arena, &run->memo, &hf_pb_memo_type, sizeof(hf_pb_memo));
    info->search_attributes =
        decode_or_empty(arena, &run->search_attributes, &hf_pb_search_attributes_type, sizeof(hf_pb_search_attributes));
    hf_visible_put_paused(arena, hf_visible_paused(run, arena), &info->search_attributes);
    if (run->start.len == 0 ||
        !decode_copy(arena, &run->start, &hf_pb_workflow_execution_started_event_attributes_type, &facts)) {
        return;
    }
    info->execution_time = end_of(run->start_time, hf_pb_duration_span(facts.first_workflow_task_backoff).ns);
    if (!info->execution_time.has) {
        info->execution_time = hf_pb_timestamp_of((hf_time){run->start_time});
    }
    info->parent_namespace_id = facts.parent_workflow_namespace_id;
    info->parent_execution = facts.parent_workflow_execution;
    info->root_execution = facts.root_workflow_execution != NULL ? facts.root_workflow_execution : info->root_execution;
}

/* Options that may have changed since its start. */
static void describe_changed(hf_arena *arena, const hf_run *run, hf_pb_workflow_execution_info *info)
{
    hf_pb_workflow_execution_options now;
    hf_pb_workflow_execution_options *copy = HF_ARENA_NEW(arena, hf_pb_workflow_execution_options);
    if ((run->start.len == 0 && run->buffered.count == 0) || copy == NULL || !hf_run_options(run, arena, &now) ||
        hf_pb_copy(&hf_pb_workflow_execution_options_type, &now, arena, copy) != HF_OK) {
        return;
    }
    info->priority = copy->priority;
    if (copy->versioning_override != NULL) {
        info->versioning_info = HF_ARENA_NEW(arena, hf_pb_workflow_execution_versioning_info);
        if (info->versioning_info != NULL) {
            info->versioning_info->versioning_override = copy->versioning_override;
        }
    }
}

static void describe_info(hf_arena *arena, const hf_run *run, hf_pb_workflow_execution_info *info)
{
    info->execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    info->type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
    info->root_execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    if (arena->status != HF_OK) {
        return;
    }
    info->execution->workflow_id = hf_arena_copy(arena, hf_owned_str(&run->workflow_id));
    info->execution->run_id = hf_arena_copy(arena, hf_owned_str(&run->run_id));
    *info->root_execution = *info->execution;
    describe_start(arena, run, info);
    describe_changed(arena, run, info);
    info->type->name = hf_arena_copy(arena, hf_owned_str(&run->workflow_type));
    info->start_time = hf_pb_timestamp_of((hf_time){run->start_time});
    info->status = run->status;
    info->history_length = run->event_count;
    info->history_size_bytes = run->history_len;
    info->state_transition_count = (int64_t)run->transitions;
    info->task_queue = hf_arena_copy(arena, hf_owned_str(&run->task_queue));
    info->first_run_id = hf_arena_copy(arena, hf_owned_str(&run->first_run_id));
    if (!hf_run_is_open(run)) {
        info->close_time = hf_pb_timestamp_of((hf_time){run->close_time});
        info->execution_duration = hf_pb_duration_of(hf_nanoseconds(run->close_time - run->start_time));
    }
}

static void describe_task(const hf_run *run, hf_arena *arena, hf_pb_describe_workflow_execution_response *response)
{
    const hf_wft *wft = &run->wft;
    if (wft->state == HF_WFT_NONE) {
        return;
    }
    hf_pb_pending_workflow_task_info *info = HF_ARENA_NEW(arena, hf_pb_pending_workflow_task_info);
    response->pending_workflow_task = info;
    if (info == NULL) {
        return;
    }
    bool started = wft->state == HF_WFT_STARTED;
    info->state = started ? HF_PENDING_WORKFLOW_TASK_STATE_STARTED : HF_PENDING_WORKFLOW_TASK_STATE_SCHEDULED;
    info->attempt = wft->attempt;
    info->scheduled_time = hf_pb_timestamp_of((hf_time){wft->scheduled_time});
    info->original_scheduled_time =
        hf_pb_timestamp_of((hf_time){wft->first_time != 0 ? wft->first_time : wft->scheduled_time});
    if (started) {
        info->started_time = hf_pb_timestamp_of((hf_time){wft->started_time});
    }
    info->holdfast_crashes = wft->task.crashes;
    info->holdfast_buffered = (uint32_t)run->buffered.count;
    if (wft->pause_until != 0) {
        info->holdfast_pause_until = hf_pb_timestamp_of((hf_time){wft->pause_until});
    }
}

static void describe_children(const hf_run *run, hf_arena *arena, hf_pb_describe_workflow_execution_response *response)
{
    response->pending_children.items = HF_ARENA_ARRAY(arena, hf_pb_pending_child_execution_info, run->children.count);
    for (size_t i = 0; arena->status == HF_OK && hf_run_is_open(run) && i < run->children.count; i++) {
        const hf_child *child = &run->children.items[i];
        if (child->state == HF_CHILD_ENDED || child->state == HF_CHILD_FAILED) {
            continue;
        }
        response->pending_children.items[response->pending_children.count++] = (hf_pb_pending_child_execution_info){
            .workflow_id = hf_arena_copy(arena, hf_owned_str(&child->workflow_id)),
            .run_id = hf_arena_copy(arena, hf_owned_str(&child->run_id)),
            .workflow_type_name = hf_arena_copy(arena, hf_owned_str(&child->workflow_type)),
            .initiated_id = child->initiated_id,
            .parent_close_policy = child->policy,
        };
    }
}

static void describe_times(const hf_run *run, hf_pb_workflow_execution_extended_info *info)
{
    info->cancel_requested = run->cancel_requested;
    int64_t idle = run->transition_time > run->last_time ? run->transition_time : run->last_time;
    info->holdfast_idle_since = hf_pb_timestamp_of((hf_time){idle});
    info->original_start_time = hf_pb_timestamp_of((hf_time){run->start_time});
    if (run->keep > 0) {
        info->holdfast_keep = hf_pb_duration_of(hf_nanoseconds(run->keep));
    }
    if (run->expiration != 0) {
        info->execution_expiration_time = hf_pb_timestamp_of((hf_time){run->expiration});
    }
    if (run->run_deadline != 0) {
        info->run_expiration_time = hf_pb_timestamp_of((hf_time){run->run_deadline});
    }
}

void hf_run_describe(const hf_run *run, hf_arena *arena, hf_pb_describe_workflow_execution_response *response)
{
    response->execution_config = HF_ARENA_NEW(arena, hf_pb_workflow_execution_config);
    response->workflow_execution_info = HF_ARENA_NEW(arena, hf_pb_workflow_execution_info);
    response->workflow_extended_info = HF_ARENA_NEW(arena, hf_pb_workflow_execution_extended_info);
    response->pending_activities.items = HF_ARENA_ARRAY(arena, hf_pb_pending_activity_info, run->activities.count);
    if (arena->status != HF_OK) {
        return;
    }
    describe_config(arena, run, response->execution_config);
    describe_info(arena, run, response->workflow_execution_info);
    describe_task(run, arena, response);
    describe_times(run, response->workflow_extended_info);
    hf_run_describe_requests(run, arena, response->workflow_extended_info);
    describe_children(run, arena, response);
    for (size_t i = 0; i < run->activities.count; i++) {
        if (hf_activity_is_pending(run->activities.items[i])) {
            describe_activity(arena, run->activities.items[i],
                              &response->pending_activities.items[response->pending_activities.count++]);
        }
    }
    hf_assert(response->pending_activities.count <= run->activities.count);
}

/* ---- One line ------------------------------------------------------------------------------------------------------------ */

void hf_run_brief(const hf_run *run, hf_arena *arena, hf_pb_admin_run *ret_brief)
{
    *ret_brief = (hf_pb_admin_run){
        .number = run->number,
        .namespace = hf_arena_copy(arena, hf_owned_str(&run->namespace)),
        .workflow_id = hf_arena_copy(arena, hf_owned_str(&run->workflow_id)),
        .run_id = hf_arena_copy(arena, hf_owned_str(&run->run_id)),
        .type = hf_arena_copy(arena, hf_owned_str(&run->workflow_type)),
        .status = run->status,
        .start_ns = run->start_time,
        .close_ns = run->close_time,
        .last_ns = run->last_time,
        .events = run->event_count,
    };
}

void hf_run_brief_damaged(int64_t number, const char *why, hf_arena *arena, hf_pb_admin_run *ret_brief)
{
    *ret_brief = (hf_pb_admin_run){.number = number, .damage = hf_arena_copy(arena, hf_str_of(why))};
}

hf_status hf_run_brief_of_row(hf_op *op, int64_t number, hf_str body, hf_arena *arena, hf_pb_admin_run *ret_brief)
{
    hf_pb_run_state state;
    HF_TRY(hf_pb_decode(op, &hf_pb_run_state_type, body, arena, &state));
    if (state.is_deleting != HF_DELETING_NOT) {
        return hf_fail(op, HF_ERR_NOT_FOUND, "run %lld is being deleted", (long long)number);
    }
    if (state.kind != HF_KIND_WORKFLOW) {
        return hf_fail(op, HF_ERR_NOT_FOUND, "run %lld is not a workflow", (long long)number);
    }
    hf_run_unabridge(&state);
    *ret_brief = (hf_pb_admin_run){
        .number = number,
        .namespace = state.namespace,
        .workflow_id = state.workflow_id,
        .run_id = state.run_id,
        .type = state.workflow_type,
        .status = state.status,
        .start_ns = state.start_time,
        .close_ns = state.close_time,
        .last_ns = state.last_time,
        .events = state.event_count,
    };
    return HF_OK;
}
