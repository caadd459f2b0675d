/* Activities as a workflow sees them. As in verbs.c, verbs run on the crew's fibers, and the functions for events run
 * on the driver, between turns.
 *
 *     scheduling --> a bucket of activities --> gone: its end was seen, and its fiber woken
 *         |                 |
 *         |                 +--> given_up --> leftovers --> gone: its end was seen
 *         +--> gone: its command was not sent   (the fiber was canceled, has run, and has asked for the cancel)
 *
 * With HF_CANCEL_WAIT, which is the default, a canceled fiber asks for the cancel and goes on waiting: the activity stays
 * in its bucket. given_up and leftovers are for the others, and for histories from before rule 3. */
#include "worker/wf.h"

#include "base/canary.h"
#include "fiber/crew/strand.h"
#include "fiber/verbs.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- The command ------------------------------------------------------------------------------------------------- */

static bool abort_activity(hf_wait *wait)
{
    hf_wf_activity *activity = wait->object;
    if (activity->is_given_up || !hf_node_is_linked(&activity->node)) {
        return false;
    }
    activity->is_given_up = true;
    if (activity->is_joined && activity->scheduled_event_id != 0 && !wait->fiber->is_evicted) {
        return true; /* its end may come before its fiber runs */
    }
    hf_list_remove(&activity->node);
    if (activity->scheduled_event_id != 0 &&
        !activity->has_ended) { /* until its fiber runs and moves it to the leftovers */
        hf_list_push_back(&activity->wf->given_up, &activity->node);
    }
    return true;
}

static const hf_wait_kind ACTIVITY = {"hf_activity_run", abort_activity};

/* The wait of a fiber that is canceled already. */
static bool abort_end(hf_wait *wait)
{
    hf_wf_activity *activity = wait->object;
    bool is_over = wait->fiber->is_evicted && hf_node_is_linked(&activity->node);
    if (is_over) {
        hf_list_remove(&activity->node);
    }
    return is_over;
}

static const hf_wait_kind ACTIVITY_END = {"hf_activity_run, canceled", abort_end};

hf_pb_str_list hf_wf_final_types(hf_arena *arena, const char *const *types)
{
    size_t count = 0;
    while (types != NULL && types[count] != NULL) {
        count++;
    }
    hf_pb_str_list list = {count > 0 ? HF_ARENA_ARRAY(arena, hf_str, count) : NULL, 0};
    while (list.items != NULL && list.count < count) {
        list.items[list.count] = hf_arena_copy(arena, hf_str_of(types[list.count]));
        list.count++;
    }
    return list;
}

/* As the service counts: 0 = no limit. */
static int attempts_of(const hf_activity_options *options)
{
    if (options->attempts_max == HF_OFF) {
        return 1;
    }
    return options->attempts_max > 0 ? options->attempts_max : 0;
}

static hf_pb_retry_policy *retry_of(hf_arena *arena, const hf_activity_options *options)
{
    hf_pb_retry_policy *retry = HF_ARENA_NEW(arena, hf_pb_retry_policy);
    if (retry != NULL) {
        retry->initial_interval = hf_pb_duration_of(hf_wf_first_pause(options));
        retry->backoff_coefficient = options->retry_coefficient > 0 ? options->retry_coefficient : 2.0;
        retry->maximum_interval = hf_duration_of_bound(options->retry_max);
        retry->maximum_attempts = attempts_of(options);
        retry->non_retryable_error_types = hf_wf_final_types(arena, options->final_types);
    }
    return retry;
}

static hf_command_record *record_schedule(hf_wf *wf, const char *name, hf_payload in,
                                          const hf_activity_options *options)
{
    hf_arena *arena = &wf->recorder.arena;
    void *room = NULL;
    hf_command_record *record = hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
                                                HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES,
                                                sizeof(hf_pb_schedule_activity_task_command_attributes), &room);
    hf_pb_activity_type *type = HF_ARENA_NEW(arena, hf_pb_activity_type);
    hf_pb_task_queue *queue = HF_ARENA_NEW(arena, hf_pb_task_queue);
    if (record == NULL || type == NULL || queue == NULL) {
        return NULL;
    }
    uint64_t seq = wf->activity_seq; /* already incremented for this activity */
    hf_assert(seq > 0);
    record->id = options->id != NULL ? hf_arena_copy(arena, hf_str_of(options->id)) : hf_wf_number_text(arena, seq);
    record->name = hf_arena_copy(arena, hf_str_of(name));
    type->name = record->name;
    queue->name =
        hf_arena_copy(arena, options->task_queue != NULL ? hf_str_of(options->task_queue) : wf->worker->queue);
    queue->kind = HF_TASK_QUEUE_KIND_NORMAL;
    hf_pb_schedule_activity_task_command_attributes *a = room;
    a->activity_id = record->id;
    a->activity_type = type;
    a->task_queue = queue;
    a->input = hf_payload_encode(arena, in);
    a->schedule_to_close_timeout = hf_duration_of_bound(options->schedule_to_close);
    a->schedule_to_start_timeout = hf_duration_of_bound(options->schedule_to_start);
    a->start_to_close_timeout = hf_duration_of_bound(options->start_to_close);
    a->heartbeat_timeout = hf_duration_of_bound(options->heartbeat);
    a->retry_policy = retry_of(arena, options);
    a->header = hf_wf_header_take(wf);
    hf_wf_summarize(wf, record, options->summary);
    return arena->status == HF_OK ? record : NULL;
}

/* Its own id, or its number in `room`. */
static hf_str id_of(const hf_wf_activity *activity, char room[24])
{
    (void)snprintf(room, 24, "%" PRIu64, activity->seq);
    return hf_str_of(activity->id != NULL ? activity->id : room);
}

/* Moves an activity to the leftovers: its id stays in use until the history shows its end. */
static void leave_over(hf_wf *wf, const hf_wf_activity *activity)
{
    char room[24];
    hf_assert(activity->scheduled_event_id > 0);
    hf_str id = id_of(activity, room);
    hf_allocator memory = wf->worker->memory;
    hf_wf_leftover *leftover = memory.allocate(memory.state, sizeof *leftover + id.len, _Alignof(hf_wf_leftover));
    if (leftover == NULL) {
        wf->is_nomem = true;
        return;
    }
    *leftover = (hf_wf_leftover){.scheduled_event_id = activity->scheduled_event_id, .id_len = id.len};
    memcpy(leftover->id, id.data, id.len);
    hf_list_push_back(&wf->leftovers, &leftover->node);
}

void hf_wf_leftover_free(hf_wf *wf, hf_wf_leftover *leftover)
{
    hf_assert(hf_node_is_linked(&leftover->node));
    hf_list_remove(&leftover->node);
    wf->worker->memory.release(wf->worker->memory.state, leftover, sizeof *leftover + leftover->id_len);
}

void hf_wf_cancel_activity(hf_wf *wf, const hf_wf_activity *activity)
{
    void *room = NULL;
    char number[24];
    if (wf->has_closed) {
        return; /* the closing command is the last one */
    }
    hf_command_record *record = hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK,
                                                HF_PB_COMMAND_REQUEST_CANCEL_ACTIVITY_TASK_COMMAND_ATTRIBUTES,
                                                sizeof(hf_pb_request_cancel_activity_task_command_attributes), &room);
    if (record == NULL) {
        wf->is_nomem = true;
        return;
    }
    hf_pb_request_cancel_activity_task_command_attributes *a = room;
    a->scheduled_event_id = activity->scheduled_event_id;
    record->file = activity->file; /* a cancel comes from anywhere */
    record->line = activity->line;
    record->scheduled_event_id = activity->scheduled_event_id;
    record->id = hf_arena_copy(&wf->recorder.arena, id_of(activity, number));
    wf->is_nomem |= wf->recorder.arena.status != HF_OK;
}

/* The waiting fiber was canceled before the command was sent: the activity never exists. */
void hf_wf_withdraw_activity(hf_wf *wf, const hf_wf_activity *activity)
{
    hf_assert(wf->activities_count > 0);
    hf_assert(activity->record != NULL && activity->record->activity == activity);
    activity->record->is_withdrawn = !wf->has_closed; /* what a handler asked for goes along with the end of the run */
    activity->record->activity = NULL;
    wf->activities_count--;
}

/* The waiting fiber was canceled, and does not wait for the end of the activity. */
void hf_wf_leave_activity(hf_wf *wf, const hf_wf_activity *activity, hf_on_cancel how)
{
    hf_assert(wf->activities_count > 0);
    if (activity->has_ended) { /* the service no longer knows it, and would refuse the step */
        wf->activities_count--;
        return;
    }
    if (how != HF_CANCEL_ABANDON) {
        hf_wf_cancel_activity(wf, activity);
    }
    leave_over(wf, activity);
}

/* The waiting fiber was canceled: asks the activity to end, and waits until it has. */
static hf_status join_activity(hf_fiber *self, hf_wf *wf, hf_wf_activity *activity)
{
    activity->is_given_up = false;
    if (activity->end != NULL) {
        return HF_OK; /* it ended in the same step */
    }
    hf_assert(hf_node_is_linked(&activity->node));
    if (!activity->has_ended || HF_CANARY(HF_BUG_CANCEL_OF_ENDED)) {
        hf_wf_cancel_activity(wf, activity);
    }
    hf_wait_init(activity->wait, self, &ACTIVITY_END, activity, activity->wait->object_name);
    return hf_park(self, activity->wait, HF_INSTANT_NEVER); /* nobody but its end or an eviction wakes it */
}

/* The details of a failure, or of the failure that the server wrapped in it. */
static const hf_pb_payloads *details_of(const hf_pb_failure *failure)
{
    for (; failure != NULL; failure = failure->cause) {
        if (failure->failure_info_case == HF_PB_FAILURE_APPLICATION_FAILURE_INFO) {
            return failure->application_failure_info->details;
        }
        if (failure->failure_info_case == HF_PB_FAILURE_TIMEOUT_FAILURE_INFO) {
            return failure->timeout_failure_info->last_heartbeat_details;
        }
    }
    return NULL;
}

static const hf_pb_payloads *details_of_end(const hf_pb_history_event *end)
{
    switch (end->attributes_case) {
    case HF_PB_HISTORY_EVENT_ACTIVITY_TASK_FAILED_EVENT_ATTRIBUTES:
        return details_of(end->activity_task_failed_event_attributes->failure);
    case HF_PB_HISTORY_EVENT_ACTIVITY_TASK_TIMED_OUT_EVENT_ATTRIBUTES:
        return details_of(end->activity_task_timed_out_event_attributes->failure);
    case HF_PB_HISTORY_EVENT_ACTIVITY_TASK_CANCELED_EVENT_ATTRIBUTES:
        return end->activity_task_canceled_event_attributes->details;
    default:
        return NULL;
    }
}

/* Tells the code how an activity failed: that it did (ActivityFailureInfo), because of what it said. */
hf_status hf_wf_raise_activity(hf_wf *wf, hf_status status, const char *type, const char *name, const char *what,
                               hf_pb_activity_failure_info *info, hf_pb_failure *cause)
{
    char text[HF_MESSAGE_LEN_MAX];
    hf_pb_activity_type activity_type = {.name = hf_str_of(name)};
    hf_pb_failure failure = {
        .cause = cause, .failure_info_case = HF_PB_FAILURE_ACTIVITY_FAILURE_INFO, .activity_failure_info = info};
    (void)snprintf(text, sizeof text, "activity '%s' %s", name, what);
    if (!hf_wf_plays_by(wf, HF_WF_RULE_FAILURES)) {
        return status == HF_ERR_CANCELED ? hf_raise(status, "%s", text)
                                         : hf_failure_raise_flat(status, type, hf_str_of(text), cause);
    }
    failure.message = hf_str_of(text);
    info->activity_type = &activity_type;
    HF_IGNORE(hf_failure_raise(status, type, &failure));
    wf->is_nomem |= !hf_failure_is_whole(&failure);
    return status;
}

static hf_status failed(hf_wf *wf, const char *name, hf_str id, const hf_pb_activity_task_failed_event_attributes *end)
{
    hf_pb_activity_failure_info info = {.scheduled_event_id = end->scheduled_event_id,
                                        .started_event_id = end->started_event_id,
                                        .identity = end->identity,
                                        .activity_id = id,
                                        .retry_state = end->retry_state};
    return hf_wf_raise_activity(wf, HF_ERR_FAILED, "ActivityFailed", name, "failed", &info, end->failure);
}

static hf_status timed_out(hf_wf *wf, const char *name, hf_str id,
                           const hf_pb_activity_task_timed_out_event_attributes *end)
{
    hf_pb_activity_failure_info info = {.scheduled_event_id = end->scheduled_event_id,
                                        .started_event_id = end->started_event_id,
                                        .activity_id = id,
                                        .retry_state = end->retry_state};
    return hf_wf_raise_activity(wf, HF_ERR_TIMEOUT, "ActivityTimedOut", name, "timed out", &info, end->failure);
}

static hf_status canceled(hf_wf *wf, const char *name, hf_str id,
                          const hf_pb_activity_task_canceled_event_attributes *end)
{
    hf_pb_activity_failure_info info = {.scheduled_event_id = end->scheduled_event_id,
                                        .started_event_id = end->started_event_id,
                                        .identity = end->identity,
                                        .activity_id = id};
    hf_pb_canceled_failure_info how = {.details = end->details};
    hf_pb_failure cause = {.failure_info_case = HF_PB_FAILURE_CANCELED_FAILURE_INFO, .canceled_failure_info = &how};
    return hf_wf_raise_activity(wf, HF_ERR_CANCELED, "ActivityCanceled", name, "was canceled", &info, &cause);
}

hf_status hf_wf_activity_outcome(hf_wf *wf, const char *name, const hf_wf_activity *activity, bool is_canceled,
                                 hf_payload *ret_out, hf_payload *ret_details)
{
    char room[24];
    const hf_pb_history_event *end = activity->end;
    if (hf_payload_decode(details_of_end(end), &wf->payloads, ret_details) != HF_OK) {
        wf->is_nomem = true;
        return hf_raise(HF_ERR_NOMEM, "no memory for the details of activity '%s'", name);
    }
    if (end->attributes_case == HF_PB_HISTORY_EVENT_ACTIVITY_TASK_COMPLETED_EVENT_ATTRIBUTES) {
        if (hf_payload_decode(end->activity_task_completed_event_attributes->result, &wf->payloads, ret_out) != HF_OK) {
            wf->is_nomem = true;
            return hf_raise(HF_ERR_NOMEM, "no memory for the result of activity '%s'", name);
        }
        return HF_OK;
    }
    hf_str id = id_of(activity, room);
    switch (end->attributes_case) {
    case HF_PB_HISTORY_EVENT_ACTIVITY_TASK_FAILED_EVENT_ATTRIBUTES:
        return failed(wf, name, id, end->activity_task_failed_event_attributes);
    case HF_PB_HISTORY_EVENT_ACTIVITY_TASK_TIMED_OUT_EVENT_ATTRIBUTES:
        return timed_out(wf, name, id, end->activity_task_timed_out_event_attributes);
    default:
        hf_assert(end->attributes_case == HF_PB_HISTORY_EVENT_ACTIVITY_TASK_CANCELED_EVENT_ATTRIBUTES);
        return is_canceled ? HF_ERR_CANCELED : canceled(wf, name, id, end->activity_task_canceled_event_attributes);
    }
}

hf_command_record *hf_wf_schedule(hf_wf *wf, hf_wf_activity *activity, const char *name, hf_payload in,
                                  const hf_activity_options *options)
{
    activity->seq = ++wf->activity_seq;
    activity->file = options->file;
    activity->line = options->line;
    hf_here(options->file, options->line);
    hf_command_record *record = record_schedule(wf, name, in, options);
    if (record == NULL) {
        wf->is_nomem = true;
        return NULL;
    }
    activity->record = record;
    record->activity = activity;
    wf->activities_count++;
    hf_list_push_back(&wf->scheduling, &activity->node);
    return record;
}

/* `name` is the caller's, which waits here. The name in the record is freed before the wait ends. */
static hf_status run_activity(hf_fiber *self, hf_wf *wf, hf_wf_activity *activity, const char *name, hf_on_cancel how)
{
    hf_wait_init(activity->wait, self, &ACTIVITY, activity, name);
    activity->is_joined =
        how == HF_CANCEL_WAIT && hf_wf_plays_by(wf, HF_WF_RULE_JOINS) && !HF_CANARY(HF_BUG_ACTIVITY_NOT_JOINED);
    hf_status status = hf_park(self, activity->wait, HF_INSTANT_NEVER);
    if (status == HF_ERR_CANCELED && activity->is_joined && activity->scheduled_event_id != 0) {
        status = join_activity(self, wf, activity);
        self->last_status = status; /* its outcome tells what happened, not the cancel */
        self->last_where = NULL;
    } else if (status == HF_ERR_CANCELED && activity->scheduled_event_id == 0) {
        hf_wf_withdraw_activity(wf, activity);
    } else if (status == HF_ERR_CANCELED) {
        hf_wf_leave_activity(wf, activity, how);
    }
    if (hf_node_is_linked(&activity->node)) {
        hf_list_remove(&activity->node);
    }
    return status;
}

/* ---- hf_activity_run --------------------------------------------------------------------------------------------- */

static hf_status start_activity(hf_fiber *self, hf_wf *wf, const char *name, hf_payload in,
                                const hf_activity_options *options, hf_wf_activity *activity)
{
    hf_op op;
    hf_op_init(&op);
    HF_TRY(hf_not_evicted(self, "hf_activity_run"));
    HF_TRY(hf_wf_not_over(self, wf, "hf_activity_run"));
    if (hf_wf_check_activity(&op, wf, name, in, options) != HF_OK) {
        return hf_refuse_at(self, op.status, "hf_activity_run", "%s", op.message);
    }
    HF_TRY(hf_may_wait(self, "hf_activity_run"));
    activity->id = options->id;
    if (hf_wf_schedule(wf, activity, name, in, options) == NULL) {
        return hf_refuse(self, HF_ERR_NOMEM, "no memory for activity '%s'", name);
    }
    return run_activity(self, wf, activity, name, options->on_cancel);
}

hf_status hf_activity_run_with(const char *name, hf_payload in, hf_payload *ret_out, const hf_activity_options *options)
{
    HF_OPTIONS(hf_activity_options, options, hf_activity_run);
    HF_TRY(hf_wf_header_make("hf_activity_run", options->header));
    HF_VERB_ENTER(self, hf_activity_run, NULL);
    hf_wf *wf = hf_wf_self();
    if (wf == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE,
                                 "hf_activity_run is for workflows; elsewhere call the function itself"));
    }
    hf_wait wait;
    hf_wf_activity activity = {.wf = wf, .wait = &wait};
    hf_status status = start_activity(self, wf, name, in, options, &activity);
    hf_leave(self);
    if (status != HF_OK) {
        return status;
    }
    bool has_ended_canceled =
        activity.end->attributes_case == HF_PB_HISTORY_EVENT_ACTIVITY_TASK_CANCELED_EVENT_ATTRIBUTES;
    bool is_canceled = has_ended_canceled && hf_wf_is_canceled("hf_activity_run"); /* and why is noted */
    return hf_wf_activity_outcome(wf, name, &activity, is_canceled, ret_out, options->ret_details);
}

void hf_wf_scheduled(hf_wf *wf, hf_wf_activity *activity, int64_t event_id)
{
    hf_list_remove(&activity->node);
    activity->scheduled_event_id = event_id;
    activity->record = NULL;
    hf_wf_pending_add(&wf->activities, wf, &activity->node, (uint64_t)event_id, wf->activities_count);
}

static hf_wf_activity *find_activity(hf_wf *wf, int64_t scheduled_event_id)
{
    hf_list *list = NULL;
    for (int i = 0; (list = hf_wf_pending_at(&wf->activities, (uint64_t)scheduled_event_id, i)) != NULL; i++) {
        HF_LIST_EACH(node, list)
        {
            hf_wf_activity *activity = HF_CONTAINER(node, hf_wf_activity, node);
            if (activity->scheduled_event_id == scheduled_event_id) {
                return activity;
            }
        }
    }
    return NULL;
}

void hf_wf_will_resolve(hf_wf *wf, int64_t scheduled_event_id)
{
    hf_wf_activity *activity = find_activity(wf, scheduled_event_id);
    if (activity != NULL) {
        activity->has_ended = true;
    }
}

void hf_wf_resolve(hf_wf *wf, int64_t scheduled_event_id, const hf_pb_history_event *event)
{
    hf_wf_activity *activity = find_activity(wf, scheduled_event_id);
    if (activity != NULL) {
        hf_list_remove(&activity->node);
        wf->activities_count--;
        activity->end = event;
        if (activity->wait == NULL) {
            hf_wf_end_activity_job(activity);
        } else if (!activity->is_given_up) { /* else its fiber was woken by the cancel, and sees the end when it runs */
            hf_fiber *self = hf_enter(NULL);
            hf_wake(activity->wait, HF_OK);
            hf_leave(self);
        }
        return;
    }
    HF_LIST_EACH(node, &wf->leftovers) /* its fiber has given it up */
    {
        hf_wf_leftover *leftover = HF_CONTAINER(node, hf_wf_leftover, node);
        if (leftover->scheduled_event_id == scheduled_event_id) {
            wf->activities_count--;
            hf_wf_leftover_free(wf, leftover);
            break;
        }
    }
}
