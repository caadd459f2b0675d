/* Activities as somebody outside of their workflow changes them: paused, unpaused, reset, with other options. No event tells of it: like
 * attempts, all of this is state only. A call names an activity by its id, or all of a type, or all: the list is checked as a whole, and
 * then changed. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "engine/mask.h"
#include "engine/retry.h"
#include "history/limits.h"

#include <stddef.h>

/* ---- Which activities ------------------------------------------------------------------------------------------------ */

typedef struct hf_choice {
    bool is_all;
    bool is_type; /* `name` is a type ... */
    bool is_id;   /* ... or an id */
    hf_str name;
} hf_choice;

/* Where a request has its choice. */
typedef struct hf_choice_fields {
    size_t which, name;     /* offsets */
    uint32_t id, type, all; /* the values of `which`; 0 = there is no such choice */
} hf_choice_fields;

#define FIELDS(stem, name, all)                                                                                        \
    {                                                                                                                  \
        offsetof(hf_pb_##stem##_request, activity_case), offsetof(hf_pb_##stem##_request, id), name##_ID, name##_TYPE, \
            all                                                                                                        \
    }

static hf_choice choice_of(const hf_call *call)
{
    static const hf_choice_fields ALL[] = {
        FIELDS(pause_activity, HF_PB_PAUSE_ACTIVITY_REQUEST, 0),
        FIELDS(unpause_activity, HF_PB_UNPAUSE_ACTIVITY_REQUEST, HF_PB_UNPAUSE_ACTIVITY_REQUEST_UNPAUSE_ALL),
        FIELDS(reset_activity, HF_PB_RESET_ACTIVITY_REQUEST, HF_PB_RESET_ACTIVITY_REQUEST_MATCH_ALL),
        FIELDS(update_activity_options, HF_PB_UPDATE_ACTIVITY_OPTIONS_REQUEST,
               HF_PB_UPDATE_ACTIVITY_OPTIONS_REQUEST_MATCH_ALL),
    };
    size_t index = call->method == HF_METHOD_PAUSE_ACTIVITY     ? 0
                   : call->method == HF_METHOD_UNPAUSE_ACTIVITY ? 1
                   : call->method == HF_METHOD_RESET_ACTIVITY   ? 2
                                                                : 3;
    const hf_choice_fields *fields = &ALL[index];
    const char *request = call->request;
    uint32_t which = *(const uint32_t *)(const void *)(request + fields->which);
    hf_choice choice = {
        .is_all = which != 0 && which == fields->all, .is_type = which == fields->type, .is_id = which == fields->id};
    if (choice.is_id || choice.is_type) {
        choice.name = *(const hf_str *)(const void *)(request + fields->name);
    }
    return choice;
}

bool hf_activity_is_named(const hf_call *call)
{
    hf_choice choice = choice_of(call);
    return choice.is_all || choice.is_type || choice.is_id;
}

static bool is_chosen(const hf_choice *choice, const hf_activity *activity)
{
    return hf_activity_is_pending(activity) &&
           (choice->is_all ||
            hf_str_equal(choice->is_type ? activity->activity_type : activity->activity_id, choice->name));
}

/* The activities that a call names, in core->scratch; none: the call has failed. */
typedef struct hf_chosen {
    hf_activity **items;
    size_t count;
} hf_chosen;

static hf_chosen choose(hf_core *core, hf_call *call, const hf_run *run)
{
    hf_chosen chosen = {HF_ARENA_ARRAY(&core->scratch, hf_activity *, run->activities.count + 1), 0};
    if (chosen.items == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return (hf_chosen){0};
    }
    hf_choice choice = choice_of(call);
    for (size_t i = 0; i < run->activities.count; i++) {
        if (is_chosen(&choice, run->activities.items[i])) {
            chosen.items[chosen.count++] = run->activities.items[i];
        }
    }
    hf_assert(chosen.count <= run->activities.count);
    if (chosen.count == 0) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND,
                     "Can't find pending activity with such ID. Invalid activityID or activity already completed");
    }
    return chosen;
}

/* ---- What is done to one --------------------------------------------------------------------------------------------- */

/* Whether an attempt has its number. It may have lost its worker (`again`): then a pause takes effect at once. */
static bool runs(const hf_activity *activity)
{
    return activity->state == HF_ACTIVITY_STARTED;
}

static void control(hf_core *core, hf_run *run, hf_activity *activity, hf_pb_activity_controlled *msg)
{
    msg->scheduled_id = activity->scheduled_id;
    hf_assert(msg->time == 0 || !runs(activity)); /* an attempt that runs is left alone */
    hf_record(core, run, HF_CHANGE_ACTIVITY_CONTROLLED, &hf_pb_activity_controlled_type, msg);
    if (msg->time != 0) {
        (void)hf_activity_fire(core, run, activity); /* at once, if its time has come; too late for a timeout to pass */
    }
}

static bool same_pause(hf_core *core, const hf_activity *activity, hf_str request_id)
{
    hf_pb_activity_paused pause;
    return hf_pb_decode(&core->op, &hf_pb_activity_paused_type, hf_owned_str(&activity->pause), &core->scratch,
                        &pause) == HF_OK &&
           hf_str_equal(pause.request_id, request_id);
}

static bool pause_all(hf_core *core, hf_call *call, hf_run *run, hf_chosen chosen)
{
    const hf_pb_pause_activity_request *request = call->request;
    for (size_t i = 0; i < chosen.count; i++) {
        if (hf_activity_is_paused(chosen.items[i]) && !same_pause(core, chosen.items[i], request->request_id)) {
            hf_call_fail(core, call, HF_ERR_NOT_READY, "activity is already paused");
            call->detail_type = NULL; /* the detail of this status would tell of a workflow */
            call->detail = NULL;
            return false;
        }
    }
    for (size_t i = 0; i < chosen.count; i++) {
        hf_activity *activity = chosen.items[i];
        if (hf_activity_is_paused(activity)) {
            continue;
        }
        HF_PROBE(core, runs(activity) ? HF_PROBE_ACTIVITY_PAUSED_RUNNING : HF_PROBE_ACTIVITY_PAUSED);
        hf_pb_activity_paused msg = {
            .scheduled_id = activity->scheduled_id,
            .time = core->now.wall,
            .identity = request->identity,
            .reason = request->reason,
            .request_id = request->request_id,
        };
        if (!HF_CANARY(HF_BUG_PAUSE_IGNORED)) {
            hf_record(core, run, HF_CHANGE_ACTIVITY_PAUSED, &hf_pb_activity_paused_type, &msg);
            hf_assert(core->status != HF_OK ||
                      (hf_activity_is_paused(activity) && activity->task.queue == NULL)); /* run-R6 */
        }
    }
    return true;
}

/* The jitter of an unpause or a reset is not used: one engine hands out all tasks, so they need not be spread over time. */
static void unpause_all(hf_core *core, const hf_call *call, hf_run *run, hf_chosen chosen)
{
    const hf_pb_unpause_activity_request *request = call->request;
    for (size_t i = 0; i < chosen.count && core->status == HF_OK; i++) {
        hf_activity *activity = chosen.items[i];
        if (!hf_activity_is_paused(activity)) {
            continue;
        }
        HF_PROBE(core, HF_PROBE_ACTIVITY_UNPAUSED);
        hf_pb_activity_controlled msg = {
            .unpaused = true,
            .attempt = request->reset_attempts ? 1 : 0,
            .forget_heartbeat = request->reset_heartbeat,
            .time = runs(activity) ? 0 : core->now.wall,
        };
        control(core, run, activity, &msg);
    }
}

static void reset_all(hf_core *core, const hf_call *call, hf_run *run, hf_chosen chosen)
{
    const hf_pb_reset_activity_request *request = call->request;
    for (size_t i = 0; i < chosen.count && core->status == HF_OK; i++) {
        hf_activity *activity = chosen.items[i];
        HF_PROBE(core, HF_PROBE_ACTIVITY_RESET);
        bool stays_paused = hf_activity_is_paused(activity) && request->keep_paused;
        hf_pb_activity_controlled msg = {
            .unpaused = !request->keep_paused,
            .attempt = 1,
            .reset = runs(activity),
            .forget_heartbeat = request->reset_heartbeat,
            .has_options = request->restore_original_options,
            .time = runs(activity) || stays_paused ? 0 : core->now.wall,
        };
        control(core, run, activity, &msg);
    }
}

/* ---- Options --------------------------------------------------------------------------------------------------------- */

static hf_pb_activity_options *options_of(hf_core *core, const hf_activity *activity)
{
    hf_arena *arena = &core->scratch;
    hf_pb_activity_options *options = HF_ARENA_NEW(arena, hf_pb_activity_options);
    hf_pb_task_queue *queue = HF_ARENA_NEW(arena, hf_pb_task_queue);
    hf_pb_retry_policy *policy = HF_ARENA_NEW(arena, hf_pb_retry_policy);
    const hf_pb_retry_policy *is = hf_activity_policy(core, activity, arena);
    hf_pb_history_event event;
    if (policy == NULL || core->status != HF_OK ||
        hf_pb_decode(&core->op, &hf_pb_history_event_type, hf_owned_str(&activity->scheduled), arena, &event) !=
            HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    if (is != NULL) {
        *policy = *is;
        policy->non_retryable_error_types.count = 0; /* not among the options */
    }
    options->priority = event.activity_task_scheduled_event_attributes->priority;
    if (activity->options.len > 0) {
        hf_pb_activity_options *changed = HF_ARENA_NEW(arena, hf_pb_activity_options);
        if (changed != NULL && hf_pb_decode(&core->op, &hf_pb_activity_options_type, hf_owned_str(&activity->options),
                                            arena, changed) == HF_OK) {
            options->priority = changed->priority;
        }
    }
    queue->name = hf_arena_copy(arena, activity->task_queue);
    options->task_queue = queue;
    options->retry_policy = policy;
    options->schedule_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(activity->schedule_to_close));
    options->schedule_to_start_timeout = hf_pb_duration_of(hf_nanoseconds(activity->schedule_to_start));
    options->start_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(activity->start_to_close));
    options->heartbeat_timeout = hf_pb_duration_of(hf_nanoseconds(activity->heartbeat));
    return options;
}

static bool bad(hf_core *core, hf_call *call, const char *why)
{
    hf_call_fail(core, call, HF_ERR_INVALID, "%s", why);
    return false;
}

static bool merge_policy(hf_core *core, hf_call *call, const hf_pb_update_activity_options_request *request,
                         hf_pb_retry_policy *into)
{
    static const char *const PATHS[] = {"retry_policy", "retry_policy.initial_interval",
                                        "retry_policy.backoff_coefficient", "retry_policy.maximum_interval",
                                        "retry_policy.maximum_attempts"};
    const hf_pb_field_mask *mask = request->update_mask;
    const hf_pb_retry_policy *from = request->activity_options->retry_policy;
    bool is_whole = hf_mask_has(mask, PATHS[0]);
    bool is_set[HF_COUNT_OF(PATHS)];
    for (size_t i = 0; i < HF_COUNT_OF(PATHS); i++) {
        is_set[i] = is_whole || hf_mask_has(mask, PATHS[i]);
        if (is_set[i] && from == NULL) {
            return bad(core, call, "RetryPolicy is not provided");
        }
    }
    into->initial_interval = is_set[1] ? from->initial_interval : into->initial_interval;
    into->backoff_coefficient = is_set[2] ? from->backoff_coefficient : into->backoff_coefficient;
    into->maximum_interval = is_set[3] ? from->maximum_interval : into->maximum_interval;
    into->maximum_attempts = is_set[4] ? from->maximum_attempts : into->maximum_attempts;
    return hf_retry_check(&core->op, into) == HF_OK || bad(core, call, core->op.message);
}

/* The activity's new options; NULL: the call has failed. */
static hf_pb_activity_options *merge(hf_core *core, hf_call *call, const hf_run *run, const hf_activity *activity)
{
    const hf_pb_update_activity_options_request *request = call->request;
    const hf_pb_activity_options *from = request->activity_options;
    const hf_pb_field_mask *mask = request->update_mask;
    hf_pb_activity_options *into = options_of(core, activity);
    if (into == NULL || !merge_policy(core, call, request, into->retry_policy)) {
        return NULL;
    }
    if (hf_mask_has(mask, "task_queue.name") || hf_mask_has(mask, "task_queue")) {
        if (from->task_queue == NULL || from->task_queue->name.len == 0) {
            (void)bad(core, call, "TaskQueue is not provided");
            return NULL;
        }
        into->task_queue->name = from->task_queue->name;
    }
    if (hf_mask_has(mask, "schedule_to_close_timeout")) {
        into->schedule_to_close_timeout = from->schedule_to_close_timeout;
    }
    if (hf_mask_has(mask, "schedule_to_start_timeout")) {
        into->schedule_to_start_timeout = from->schedule_to_start_timeout;
    }
    if (hf_mask_has(mask, "start_to_close_timeout")) {
        into->start_to_close_timeout = from->start_to_close_timeout;
    }
    if (hf_mask_has(mask, "heartbeat_timeout")) {
        into->heartbeat_timeout = from->heartbeat_timeout;
    }
    if (hf_mask_has(mask, "priority")) {
        into->priority = from->priority;
    }
    hf_pb_activity_type type = {.name = activity->activity_type};
    hf_pb_schedule_activity_task_command_attributes attrs = {
        .activity_id = activity->activity_id,
        .activity_type = &type,
        .task_queue = into->task_queue,
        .schedule_to_close_timeout = into->schedule_to_close_timeout,
        .schedule_to_start_timeout = into->schedule_to_start_timeout,
        .start_to_close_timeout = into->start_to_close_timeout,
        .heartbeat_timeout = into->heartbeat_timeout,
    };
    if (!hf_activity_command_is_good(core, run, &attrs)) { /* the same rules as for a command */
        (void)bad(core, call, core->op.message);
        return NULL;
    }
    if (into->priority != NULL && into->priority->fairness_key.len > HF_ID_LEN_MAX) {
        (void)bad(core, call, "the fairness key of Priority is longer than 1000 bytes");
        return NULL;
    }
    into->schedule_to_close_timeout = attrs.schedule_to_close_timeout;
    into->schedule_to_start_timeout = attrs.schedule_to_start_timeout;
    into->start_to_close_timeout = attrs.start_to_close_timeout;
    into->heartbeat_timeout = attrs.heartbeat_timeout;
    return into;
}

/* When the next attempt goes to its queue under the new policy. */
static int64_t next_time(const hf_activity *activity, const hf_pb_retry_policy *policy)
{
    if (activity->attempt <= 1 || activity->attempt_end == 0) {
        return activity->scheduled_time;
    }
    int64_t pause = 0;
    hf_pb_failure any = {0};
    hf_retry_case c = {policy, &any, activity->attempt - 1, false};
    if (policy == NULL || hf_retry_next(&c, &pause) != HF_RETRY_STATE_IN_PROGRESS) {
        return activity->scheduled_time; /* it has no attempt left: this one is still made */
    }
    return hf_bound_end(activity->attempt_end, pause > 0 ? pause : 1);
}

static void set_options(hf_core *core, hf_run *run, hf_activity *activity, const hf_pb_activity_options *options)
{
    HF_PROBE(core, HF_PROBE_ACTIVITY_OPTIONS);
    hf_buf bytes;
    hf_buf_init(&bytes, core->memory, SIZE_MAX / 4);
    if (options != NULL) {
        hf_pb_encode(&hf_pb_activity_options_type, options, &bytes);
    }
    if (bytes.status != HF_OK) {
        hf_core_break(core, bytes.status, "out of memory");
    }
    bool waits = !runs(activity) && !hf_activity_is_paused(activity);
    hf_pb_activity_controlled msg = {.has_options = true, .options = hf_str_of_len(bytes.data, bytes.len)};
    if (waits) {
        hf_pb_history_event event;
        const hf_pb_retry_policy *policy = options != NULL ? options->retry_policy : NULL;
        if (options == NULL && hf_pb_decode(&core->op, &hf_pb_history_event_type, hf_owned_str(&activity->scheduled),
                                            &core->scratch, &event) == HF_OK) {
            policy = event.activity_task_scheduled_event_attributes->retry_policy;
        }
        msg.time = next_time(activity, policy);
    }
    control(core, run, activity, &msg);
    hf_buf_deinit(&bytes);
}

static bool change_options(hf_core *core, hf_call *call, hf_run *run, hf_chosen chosen)
{
    const hf_pb_update_activity_options_request *request = call->request;
    hf_pb_activity_options **options = HF_ARENA_ARRAY(&core->scratch, hf_pb_activity_options *, chosen.count);
    if (options == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return false;
    }
    for (size_t i = 0; i < chosen.count && !request->restore_original; i++) {
        options[i] = merge(core, call, run, chosen.items[i]);
        if (options[i] == NULL) {
            return false;
        }
    }
    hf_activity *last = chosen.items[chosen.count - 1];
    int64_t last_id = last->scheduled_id;
    for (size_t i = 0; i < chosen.count && core->status == HF_OK; i++) {
        set_options(core, run, chosen.items[i], options[i]);
    }
    hf_pb_update_activity_options_response *response = hf_call_response(core, call);
    last = hf_run_activity(run, last_id); /* a shorter timeout may have ended it */
    if (response != NULL && (last != NULL || options[chosen.count - 1] != NULL)) {
        const hf_pb_activity_options *is = last != NULL ? options_of(core, last) : options[chosen.count - 1];
        response->activity_options = HF_ARENA_NEW(call->arena, hf_pb_activity_options);
        if (is == NULL || response->activity_options == NULL ||
            hf_pb_copy(&hf_pb_activity_options_type, is, call->arena, response->activity_options) != HF_OK) {
            hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        }
    }
    hf_call_reply(core, call);
    return false; /* it is answered */
}

static bool options_are_good(hf_core *core, hf_call *call)
{
    const hf_pb_update_activity_options_request *request = call->request;
    bool has_mask = request->update_mask != NULL && request->update_mask->paths.count > 0;
    if (request->restore_original) {
        return !has_mask || bad(core, call, "Both UpdateMask and RestoreOriginal are provided");
    }
    if (request->activity_options == NULL) {
        return bad(core, call, "ActivityOptions are not provided");
    }
    return request->update_mask != NULL || bad(core, call, "UpdateMask is not provided");
}

void hf_activity_control_call(hf_core *core, hf_call *call, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->loading && !HF_SLOT(run)->bad);
    if (!hf_run_is_open(run)) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "workflow execution already completed");
        return;
    }
    if (call->method == HF_METHOD_UPDATE_ACTIVITY_OPTIONS && !options_are_good(core, call)) {
        return;
    }
    int64_t events = run->event_count;
    size_t buffered = run->buffered.count;
    hf_chosen chosen = choose(core, call, run);
    bool is_open = chosen.count > 0; /* the call has no answer yet */
    if (is_open && call->method == HF_METHOD_PAUSE_ACTIVITY) {
        is_open = pause_all(core, call, run, chosen);
    } else if (is_open && call->method == HF_METHOD_UNPAUSE_ACTIVITY) {
        unpause_all(core, call, run, chosen);
    } else if (is_open && call->method == HF_METHOD_RESET_ACTIVITY) {
        reset_all(core, call, run, chosen);
    } else if (is_open) {
        is_open = change_options(core, call, run, chosen);
    }
    if (run->event_count != events || run->buffered.count != buffered) { /* a timeout had passed meanwhile */
        hf_wft_schedule(core, run);
    }
    if (is_open) {
        hf_call_response(core, call);
        hf_call_reply(core, call);
    }
}
