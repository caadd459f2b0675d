/* The language of the rig: see engine_rig.h. A step is words; a word with '=' is an option, the others count by place. */
#include "support/engine_rig.h"

#include "history/payload.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS_MAX = 32, STEP_LEN_MAX = 600, COMMANDS_MAX = 64 };

typedef struct words {
    const char *items[WORDS_MAX];
    size_t count;
} words;

typedef struct step {
    char text[STEP_LEN_MAX];     /* cut into words */
    char commands[STEP_LEN_MAX]; /* of a completion, cut too */
    words w;
    const char *expected; /* behind "=>", or NULL */
} step;

int64_t hf_rig_span(const char *text)
{
    if (strcmp(text, "never") == 0) {
        return INT64_MAX;
    }
    char *unit = NULL;
    double number = strtod(text, &unit);
    double ns = strcmp(unit, "ms") == 0  ? 1e6
                : strcmp(unit, "s") == 0 ? 1e9
                : strcmp(unit, "m") == 0 ? 60e9
                : strcmp(unit, "h") == 0 ? 3600e9
                : strcmp(unit, "d") == 0 ? 86400e9
                                         : 0;
    if (ns == 0) {
        fail_msg("'%s' is no span", text);
    }
    return (int64_t)(number * ns);
}

static void cut(char *text, words *ret_words)
{
    ret_words->count = 0;
    for (char *word = strtok(text, " \n\t"); word != NULL; word = strtok(NULL, " \n\t")) {
        assert_true(ret_words->count < WORDS_MAX);
        ret_words->items[ret_words->count++] = word;
    }
}

static const char *option(const words *w, const char *key)
{
    size_t len = strlen(key);
    for (size_t i = 0; i < w->count; i++) {
        if (strncmp(w->items[i], key, len) == 0 && w->items[i][len] == '=') {
            return w->items[i] + len + 1;
        }
    }
    return NULL;
}

static bool has(const words *w, const char *flag)
{
    for (size_t i = 0; i < w->count; i++) {
        if (strcmp(w->items[i], flag) == 0) {
            return true;
        }
    }
    return false;
}

static const char *place(const words *w, size_t index)
{
    if (index >= w->count) {
        fail_msg("'%s' needs %zu words", w->items[0], index + 1);
    }
    return w->items[index];
}

static hf_str str_or(const words *w, const char *key, const char *otherwise)
{
    const char *value = option(w, key);
    return hf_str_of(value != NULL ? value : otherwise);
}

static int32_t number_or(const words *w, const char *key, int32_t otherwise)
{
    const char *value = option(w, key);
    return value != NULL ? (int32_t)strtol(value, NULL, 10) : otherwise;
}

static hf_pb_duration span_of(const words *w, const char *key)
{
    const char *value = option(w, key);
    if (value == NULL) {
        return (hf_pb_duration){0};
    }
    if (strcmp(value, "never") == 0) { /* as long as the wire can say */
        return (hf_pb_duration){INT64_MAX, 999999999, true};
    }
    return hf_pb_duration_of((hf_span){hf_rig_span(value)});
}

static hf_pb_payloads *payloads(hf_arena *arena, const char *text)
{
    return text != NULL ? hf_payloads_of(arena, hf_payload_json(arena, hf_arena_copy(arena, hf_str_of(text)))) : NULL;
}

/* So many bytes of input, when a step says so. */
static hf_pb_payloads *input_of(hf_arena *arena, const words *w)
{
    const char *value = option(w, "input");
    size_t len = value != NULL ? strtoul(value, NULL, 10) : 0;
    if (len == 0) {
        return NULL;
    }
    char *bytes = hf_arena_zero(arena, len, 1);
    return hf_payloads_of(arena, hf_payload_bytes(arena, hf_str_of_len(bytes, len)));
}

static hf_pb_task_queue *queue_of(hf_arena *arena, hf_str name)
{
    hf_pb_task_queue *queue = HF_ARENA_NEW(arena, hf_pb_task_queue);
    queue->name = hf_arena_copy(arena, name);
    return queue;
}

static hf_str keep(hf_arena *arena, hf_str text)
{
    return hf_arena_copy(arena, text);
}

/* ---- Commands ---------------------------------------------------------------------------------------------------- */

static void activity_command(hf_arena *arena, const words *w, hf_pb_command *command)
{
    hf_pb_schedule_activity_task_command_attributes *attrs =
        HF_ARENA_NEW(arena, hf_pb_schedule_activity_task_command_attributes);
    command->command_type = HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK;
    command->attributes_case = HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES;
    command->schedule_activity_task_command_attributes = attrs;
    attrs->activity_id = keep(arena, hf_str_of(place(w, 1)));
    attrs->activity_type = HF_ARENA_NEW(arena, hf_pb_activity_type);
    attrs->activity_type->name = HF_STR("act");
    attrs->task_queue = queue_of(arena, str_or(w, "queue", ""));
    attrs->schedule_to_close_timeout = span_of(w, "close");
    attrs->schedule_to_start_timeout = span_of(w, "start");
    attrs->start_to_close_timeout = span_of(w, "each");
    attrs->heartbeat_timeout = span_of(w, "beat");
    if (option(w, "close") == NULL && option(w, "each") == NULL && !has(w, "endless")) {
        attrs->start_to_close_timeout = hf_pb_duration_of(hf_minutes(10));
    }
    if (option(w, "retries") != NULL || option(w, "initial") != NULL || option(w, "never") != NULL) {
        hf_pb_retry_policy *policy = HF_ARENA_NEW(arena, hf_pb_retry_policy);
        attrs->retry_policy = policy;
        policy->maximum_attempts = number_or(w, "retries", 0);
        policy->initial_interval = span_of(w, "initial");
        if (option(w, "never") != NULL) {
            policy->non_retryable_error_types.items = HF_ARENA_NEW(arena, hf_str);
            policy->non_retryable_error_types.items[0] = keep(arena, str_or(w, "never", ""));
            policy->non_retryable_error_types.count = 1;
        }
    }
}

static void timer_command(hf_arena *arena, const words *w, hf_pb_command *command)
{
    if (strcmp(w->items[0], "timer") == 0) {
        hf_pb_start_timer_command_attributes *attrs = HF_ARENA_NEW(arena, hf_pb_start_timer_command_attributes);
        command->command_type = HF_COMMAND_TYPE_START_TIMER;
        command->attributes_case = HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES;
        command->start_timer_command_attributes = attrs;
        attrs->timer_id = keep(arena, hf_str_of(place(w, 1)));
        int64_t ns = hf_rig_span(place(w, 2));
        attrs->start_to_fire_timeout =
            ns == INT64_MAX ? (hf_pb_duration){INT64_MAX, 0, true} : hf_pb_duration_of((hf_span){ns});
        return;
    }
    hf_pb_cancel_timer_command_attributes *attrs = HF_ARENA_NEW(arena, hf_pb_cancel_timer_command_attributes);
    command->command_type = HF_COMMAND_TYPE_CANCEL_TIMER;
    command->attributes_case = HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES;
    command->cancel_timer_command_attributes = attrs;
    attrs->timer_id = keep(arena, hf_str_of(place(w, 1)));
}

static void external_command(hf_arena *arena, const words *w, hf_pb_command *command)
{
    if (strcmp(place(w, 0), "xcancel") == 0) {
        command->command_type = HF_COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION;
        command->attributes_case = HF_PB_COMMAND_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->request_cancel_external_workflow_execution_command_attributes =
            HF_ARENA_NEW(arena, hf_pb_request_cancel_external_workflow_execution_command_attributes);
        command->request_cancel_external_workflow_execution_command_attributes->workflow_id =
            keep(arena, hf_str_of(place(w, 1)));
        return;
    }
    command->command_type = HF_COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION;
    command->attributes_case = HF_PB_COMMAND_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    hf_pb_signal_external_workflow_execution_command_attributes *attrs =
        HF_ARENA_NEW(arena, hf_pb_signal_external_workflow_execution_command_attributes);
    attrs->execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    attrs->execution->workflow_id = keep(arena, hf_str_of(place(w, 1)));
    attrs->signal_name = keep(arena, hf_str_of(place(w, 2)));
    command->signal_external_workflow_execution_command_attributes = attrs;
}

static void closing_command(hf_arena *arena, const words *w, hf_pb_command *command)
{
    if (strcmp(w->items[0], "done") == 0) {
        command->command_type = HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION;
        command->attributes_case = HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->complete_workflow_execution_command_attributes =
            HF_ARENA_NEW(arena, hf_pb_complete_workflow_execution_command_attributes);
        command->complete_workflow_execution_command_attributes->result = input_of(arena, w);
    } else if (strcmp(w->items[0], "failed") == 0) {
        command->command_type = HF_COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION;
        command->attributes_case = HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->fail_workflow_execution_command_attributes =
            HF_ARENA_NEW(arena, hf_pb_fail_workflow_execution_command_attributes);
        command->fail_workflow_execution_command_attributes->failure =
            hf_failure_application(arena, HF_STR("Oops"), HF_STR("it failed"), false);
    } else {
        command->command_type = HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION;
        command->attributes_case = HF_PB_COMMAND_CANCEL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->cancel_workflow_execution_command_attributes =
            HF_ARENA_NEW(arena, hf_pb_cancel_workflow_execution_command_attributes);
    }
}

static void command_of(hf_arena *arena, const words *w, hf_pb_command *command)
{
    const char *kind = place(w, 0);
    if (strcmp(kind, "activity") == 0) {
        activity_command(arena, w, command);
    } else if (strcmp(kind, "timer") == 0 || strcmp(kind, "untimer") == 0) {
        timer_command(arena, w, command);
    } else if (strcmp(kind, "unactivity") == 0) {
        command->command_type = HF_COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK;
        command->attributes_case = HF_PB_COMMAND_REQUEST_CANCEL_ACTIVITY_TASK_COMMAND_ATTRIBUTES;
        command->request_cancel_activity_task_command_attributes =
            HF_ARENA_NEW(arena, hf_pb_request_cancel_activity_task_command_attributes);
        command->request_cancel_activity_task_command_attributes->scheduled_event_id = strtol(place(w, 1), NULL, 10);
    } else if (strcmp(kind, "xsignal") == 0 || strcmp(kind, "xcancel") == 0) {
        external_command(arena, w, command);
    } else if (strcmp(kind, "marker") == 0) {
        command->command_type = HF_COMMAND_TYPE_RECORD_MARKER;
        command->attributes_case = HF_PB_COMMAND_RECORD_MARKER_COMMAND_ATTRIBUTES;
        command->record_marker_command_attributes = HF_ARENA_NEW(arena, hf_pb_record_marker_command_attributes);
        command->record_marker_command_attributes->marker_name = keep(arena, hf_str_of(place(w, 1)));
    } else if (strcmp(kind, "done") == 0 || strcmp(kind, "failed") == 0 || strcmp(kind, "canceled") == 0) {
        closing_command(arena, w, command);
    } else {
        fail_msg("'%s' is no command", kind);
    }
}

/* "complete of=x timer t 5s, done": options stand before the first command. */
static hf_pb_command_list commands_of(hf_arena *arena, step *s)
{
    hf_pb_command_list list = {HF_ARENA_ARRAY(arena, hf_pb_command, COMMANDS_MAX), 0};
    char *rest = s->commands;
    while (rest != NULL && *rest != '\0') {
        char *comma = strchr(rest, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        words w;
        cut(rest, &w);
        if (w.count > 0) {
            assert_true(list.count < COMMANDS_MAX);
            command_of(arena, &w, &list.items[list.count++]);
        }
        rest = comma != NULL ? comma + 1 : NULL;
    }
    return list;
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

static hf_pb_workflow_execution *execution_of(hf_arena *arena, const words *w)
{
    hf_pb_workflow_execution *execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    execution->workflow_id = keep(arena, hf_str_of(place(w, 1)));
    execution->run_id = keep(arena, str_or(w, "run_id", ""));
    return execution;
}

static void do_start(hf_rig *rig, hf_rig_call *slot, step *s)
{
    hf_pb_start_workflow_execution_request *request = HF_RIG_REQUEST(slot, start_workflow_execution);
    hf_arena *arena = &slot->request;
    request->namespace = keep(arena, str_or(&s->w, "ns", HF_RIG_NS));
    request->workflow_id = keep(arena, hf_str_of(place(&s->w, 1)));
    request->workflow_type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
    request->workflow_type->name = HF_STR("type");
    request->task_queue = queue_of(arena, str_or(&s->w, "queue", HF_RIG_QUEUE));
    request->request_id = keep(arena, str_or(&s->w, "request", ""));
    request->workflow_run_timeout = span_of(&s->w, "run");
    request->workflow_execution_timeout = span_of(&s->w, "exec");
    request->workflow_task_timeout = span_of(&s->w, "task");
    request->workflow_id_reuse_policy = number_or(&s->w, "reuse", 0);
    request->workflow_id_conflict_policy = number_or(&s->w, "conflict", 0);
    request->input = input_of(arena, &s->w);
    hf_rig_send(rig, slot, HF_METHOD_START_WORKFLOW_EXECUTION, request);
}

static void do_poll(hf_rig *rig, step *s)
{
    bool workflow = s->w.items[0][0] == 'p';
    const char *as = option(&s->w, "as");
    hf_rig_call *slot = hf_rig_slot(rig, as != NULL ? as : workflow ? "w" : "a");
    hf_pb_poll_workflow_task_queue_request *w = NULL;
    hf_pb_poll_activity_task_queue_request *a = NULL;
    hf_str ns = str_or(&s->w, "ns", HF_RIG_NS);
    hf_str queue = str_or(&s->w, "queue", HF_RIG_QUEUE);
    hf_str identity = str_or(&s->w, "identity", "worker");
    if (workflow) {
        w = HF_RIG_REQUEST(slot, poll_workflow_task_queue);
        w->namespace = keep(&slot->request, ns);
        w->task_queue = queue_of(&slot->request, queue);
        w->identity = keep(&slot->request, identity);
    } else {
        a = HF_RIG_REQUEST(slot, poll_activity_task_queue);
        a->namespace = keep(&slot->request, ns);
        a->task_queue = queue_of(&slot->request, queue);
        a->identity = keep(&slot->request, identity);
    }
    slot->call.in_process = has(&s->w, "in_process");
    slot->call.run_ahead = has(&s->w, "run_ahead");
    if (option(&s->w, "timeout") != NULL) {
        slot->call.timeout.ns = hf_rig_span(option(&s->w, "timeout"));
    }
    hf_rig_send(rig, slot, workflow ? HF_METHOD_POLL_WORKFLOW_TASK_QUEUE : HF_METHOD_POLL_ACTIVITY_TASK_QUEUE,
                workflow ? (const void *)w : (const void *)a);
}

static hf_str token_of(hf_rig *rig, hf_rig_call *slot, const words *w, const char *otherwise)
{
    const char *of = option(w, "of");
    hf_str token = otherwise[0] == 'w' ? hf_rig_task(rig, of != NULL ? of : otherwise)->task_token
                                       : hf_rig_activity(rig, of != NULL ? of : otherwise)->task_token;
    return keep(&slot->request, token);
}

static void do_complete(hf_rig *rig, hf_rig_call *slot, step *s)
{
    hf_pb_respond_workflow_task_completed_request *request = HF_RIG_REQUEST(slot, respond_workflow_task_completed);
    hf_arena *arena = &slot->request;
    request->namespace = keep(arena, str_or(&s->w, "ns", HF_RIG_NS));
    request->identity = HF_STR("worker");
    request->task_token = token_of(rig, slot, &s->w, "w");
    request->force_create_new_workflow_task = has(&s->w, "force");
    if (option(&s->w, "sticky") != NULL) {
        request->sticky_attributes = HF_ARENA_NEW(arena, hf_pb_sticky_execution_attributes);
        request->sticky_attributes->worker_task_queue = queue_of(arena, str_or(&s->w, "sticky", ""));
        request->sticky_attributes->schedule_to_start_timeout = span_of(&s->w, "sticky_for");
        if (!request->sticky_attributes->schedule_to_start_timeout.has) {
            request->sticky_attributes->schedule_to_start_timeout = hf_pb_duration_of(hf_seconds(10));
        }
    }
    request->commands = commands_of(arena, s);
    hf_rig_send(rig, slot, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, request);
}

static void do_fail(hf_rig *rig, hf_rig_call *slot, step *s)
{
    hf_pb_respond_workflow_task_failed_request *request = HF_RIG_REQUEST(slot, respond_workflow_task_failed);
    request->namespace = HF_STR(HF_RIG_NS);
    request->task_token = token_of(rig, slot, &s->w, "w");
    request->cause = number_or(&s->w, "cause", HF_WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE);
    hf_rig_send(rig, slot, HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED, request);
}

static void do_activity(hf_rig *rig, hf_rig_call *slot, step *s)
{
    const char *verb = s->w.items[0];
    hf_arena *arena = &slot->request;
    if (strcmp(verb, "acomplete") == 0) {
        hf_pb_respond_activity_task_completed_request *request = HF_RIG_REQUEST(slot, respond_activity_task_completed);
        request->namespace = keep(arena, str_or(&s->w, "ns", HF_RIG_NS));
        request->task_token = token_of(rig, slot, &s->w, "a");
        request->result = input_of(arena, &s->w);
        hf_rig_send(rig, slot, HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED, request);
    } else if (strcmp(verb, "afail") == 0) {
        hf_pb_respond_activity_task_failed_request *request = HF_RIG_REQUEST(slot, respond_activity_task_failed);
        request->namespace = HF_STR(HF_RIG_NS);
        request->task_token = token_of(rig, slot, &s->w, "a");
        request->failure = hf_failure_application(arena, keep(arena, str_or(&s->w, "type", "Oops")), HF_STR("no luck"),
                                                  has(&s->w, "final"));
        request->failure->application_failure_info->next_retry_delay = span_of(&s->w, "delay");
        request->last_heartbeat_details = payloads(arena, option(&s->w, "details"));
        hf_rig_send(rig, slot, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, request);
    } else if (strcmp(verb, "acancel") == 0) {
        hf_pb_respond_activity_task_canceled_request *request = HF_RIG_REQUEST(slot, respond_activity_task_canceled);
        request->namespace = HF_STR(HF_RIG_NS);
        request->task_token = token_of(rig, slot, &s->w, "a");
        hf_rig_send(rig, slot, HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED, request);
    } else {
        hf_pb_record_activity_task_heartbeat_request *request = HF_RIG_REQUEST(slot, record_activity_task_heartbeat);
        request->namespace = HF_STR(HF_RIG_NS);
        request->task_token = token_of(rig, slot, &s->w, "a");
        request->details = payloads(arena, option(&s->w, "details"));
        hf_rig_send(rig, slot, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT, request);
        if (slot->done && slot->call.status == HF_OK) {
            const hf_pb_record_activity_task_heartbeat_response *response = slot->call.response;
            assert_int_equal(response->cancel_requested, has(&s->w, "asked"));
        }
    }
}

static void do_client(hf_rig *rig, hf_rig_call *slot, step *s)
{
    const char *verb = s->w.items[0];
    hf_arena *arena = &slot->request;
    if (strcmp(verb, "signal") == 0) {
        hf_pb_signal_workflow_execution_request *request = HF_RIG_REQUEST(slot, signal_workflow_execution);
        request->namespace = keep(arena, str_or(&s->w, "ns", HF_RIG_NS));
        request->workflow_execution = execution_of(arena, &s->w);
        request->signal_name = keep(arena, hf_str_of(place(&s->w, 2)));
        request->request_id = keep(arena, str_or(&s->w, "request", ""));
        request->input = input_of(arena, &s->w);
        hf_rig_send(rig, slot, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, request);
    } else if (strcmp(verb, "cancel") == 0) {
        hf_pb_request_cancel_workflow_execution_request *request =
            HF_RIG_REQUEST(slot, request_cancel_workflow_execution);
        request->namespace = HF_STR(HF_RIG_NS);
        request->workflow_execution = execution_of(arena, &s->w);
        request->first_execution_run_id = keep(arena, str_or(&s->w, "first", ""));
        hf_rig_send(rig, slot, HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION, request);
    } else if (strcmp(verb, "terminate") == 0) {
        hf_pb_terminate_workflow_execution_request *request = HF_RIG_REQUEST(slot, terminate_workflow_execution);
        request->namespace = HF_STR(HF_RIG_NS);
        request->workflow_execution = execution_of(arena, &s->w);
        request->reason = HF_STR("enough");
        request->first_execution_run_id = keep(arena, str_or(&s->w, "first", ""));
        hf_rig_send(rig, slot, HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, request);
    } else if (strcmp(verb, "unstick") == 0) {
        hf_pb_reset_sticky_task_queue_request *request = HF_RIG_REQUEST(slot, reset_sticky_task_queue);
        request->namespace = HF_STR(HF_RIG_NS);
        request->execution = execution_of(arena, &s->w);
        hf_rig_send(rig, slot, HF_METHOD_RESET_STICKY_TASK_QUEUE, request);
    } else {
        hf_pb_shutdown_worker_request *request = HF_RIG_REQUEST(slot, shutdown_worker);
        request->namespace = HF_STR(HF_RIG_NS);
        request->sticky_task_queue = keep(arena, hf_str_of(place(&s->w, 1)));
        hf_rig_send(rig, slot, HF_METHOD_SHUTDOWN_WORKER, request);
    }
}

/* Steps that are no calls. */
static bool do_other(hf_rig *rig, const step *s)
{
    const char *verb = s->w.items[0];
    if (strcmp(verb, "time") == 0) {
        int64_t span = hf_rig_span(place(&s->w, 1));
        rig->now.wall += span;
        rig->now.mono += span;
    } else if (strcmp(verb, "crash") == 0) {
        hf_rig_crash(rig);
    } else if (strcmp(verb, "unwanted") == 0) {
        const hf_rig_call *slot = hf_rig_slot(rig, place(&s->w, 1));
        hf_str token = slot->call.method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE
                           ? hf_rig_task(rig, place(&s->w, 1))->task_token
                           : hf_rig_activity(rig, place(&s->w, 1))->task_token;
        hf_core_unwanted(rig->core, token, rig->now);
    } else if (strcmp(verb, "drop") == 0) {
        hf_core_cancel(rig->core, &hf_rig_slot(rig, place(&s->w, 1))->call, rig->now);
    } else {
        return false;
    }
    if (!rig->hold && rig->core != NULL) {
        (void)hf_rig_settle(rig);
    }
    return true;
}

/* ---- Expectations ------------------------------------------------------------------------------------------------ */

static hf_status outcome_of_poll(hf_rig *rig, const step *s, const hf_rig_call *slot)
{
    const char *expected = s->expected != NULL ? s->expected : "task";
    const char *is = "parked";
    (void)rig;
    if (slot->done && slot->call.status != HF_OK) {
        return slot->call.status;
    }
    if (slot->done) {
        bool workflow = slot->call.method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE;
        const hf_pb_poll_workflow_task_queue_response *w = slot->call.response;
        const hf_pb_poll_activity_task_queue_response *a = slot->call.response;
        is = (workflow ? w->task_token.len : a->task_token.len) > 0 ? "task" : "empty";
    }
    if (strcmp(is, expected) == 0) {
        return HF_OK;
    }
    print_error("this poll is %s\n", is);
    return HF_ERR_AGAIN;
}

static bool is_named(hf_status status, const char *name)
{
    char upper[40] = "HF_ERR_";
    size_t len = strcmp(name, "ok") == 0 ? 3 : 7;
    for (size_t i = 0; name[i] != '\0' && len + 1 < sizeof upper; i++) {
        upper[len++] = (char)toupper((unsigned char)name[i]);
        upper[len] = '\0';
    }
    return strcmp(upper, hf_status_name(status)) == 0;
}

static void parse(const char *text, step *ret_step)
{
    size_t len = strlen(text);
    assert_true(len < STEP_LEN_MAX);
    memcpy(ret_step->text, text, len + 1);
    ret_step->commands[0] = '\0';
    ret_step->expected = NULL;
    char *arrow = strstr(ret_step->text, "=>");
    if (arrow != NULL) {
        *arrow = '\0';
        ret_step->expected = strtok(arrow + 2, " \n\t");
    }
    static const char *const COMMANDS[] = {"timer ",  "untimer ", "activity ", "unactivity ", "xsignal ",
                                           "marker ", "done",     "failed",    "canceled",    "xcancel "};
    const char *verb = ret_step->text + strspn(ret_step->text, " \n\t");
    if (strncmp(verb, "complete", 8) == 0) { /* the first command begins the list */
        char *first = NULL;
        for (size_t i = 0; i < HF_COUNT_OF(COMMANDS); i++) {
            for (char *at = ret_step->text; (at = strstr(at, COMMANDS[i])) != NULL; at++) {
                if (at > ret_step->text && at[-1] == ' ' && (first == NULL || at < first)) {
                    first = at;
                }
            }
        }
        if (first != NULL) {
            memcpy(ret_step->commands, first, strlen(first) + 1);
            *first = '\0';
        }
    }
    cut(ret_step->text, &ret_step->w);
}

static hf_status run_step(hf_rig *rig, step *s)
{
    const char *verb = s->w.items[0];
    hf_rig_call *slot = hf_rig_slot(rig, NULL);
    if (do_other(rig, s)) {
        return HF_OK;
    }
    if (strcmp(verb, "poll") == 0 || strcmp(verb, "apoll") == 0) {
        do_poll(rig, s);
        const char *as = option(&s->w, "as");
        return outcome_of_poll(rig, s, hf_rig_slot(rig, as != NULL ? as : verb[0] == 'p' ? "w" : "a"));
    }
    if (strcmp(verb, "is") == 0) {
        return outcome_of_poll(rig, s, hf_rig_slot(rig, place(&s->w, 1)));
    }
    if (strcmp(verb, "start") == 0) {
        do_start(rig, slot, s);
    } else if (strcmp(verb, "complete") == 0) {
        do_complete(rig, slot, s);
    } else if (strcmp(verb, "fail") == 0) {
        do_fail(rig, slot, s);
    } else if (strcmp(verb, "acomplete") == 0 || strcmp(verb, "afail") == 0 || strcmp(verb, "acancel") == 0 ||
               strcmp(verb, "heartbeat") == 0) {
        do_activity(rig, slot, s);
    } else if (strcmp(verb, "signal") == 0 || strcmp(verb, "cancel") == 0 || strcmp(verb, "terminate") == 0 ||
               strcmp(verb, "unstick") == 0 || strcmp(verb, "shutdown") == 0) {
        do_client(rig, slot, s);
    } else {
        fail_msg("'%s' is no step", verb);
    }
    return slot->done ? slot->call.status : HF_ERR_AGAIN;
}

hf_status hf_rig_try(hf_rig *rig, const char *text)
{
    step s;
    parse(text, &s);
    return s.w.count > 0 ? run_step(rig, &s) : HF_OK;
}

static void do_one(hf_rig *rig, const char *text)
{
    step s;
    parse(text, &s);
    if (s.w.count == 0) {
        return;
    }
    hf_status status = run_step(rig, &s);
    bool poll =
        strcmp(s.w.items[0], "poll") == 0 || strcmp(s.w.items[0], "apoll") == 0 || strcmp(s.w.items[0], "is") == 0;
    bool words_of_poll = poll && (s.expected == NULL || strcmp(s.expected, "task") == 0 ||
                                  strcmp(s.expected, "parked") == 0 || strcmp(s.expected, "empty") == 0);
    bool good = words_of_poll ? status == HF_OK : is_named(status, s.expected != NULL ? s.expected : "ok");
    if (!good) {
        fail_msg("step '%s': %s: %s", text, hf_status_name(status), hf_rig_slot(rig, NULL)->call.message);
    }
}

void hf_rig_do(hf_rig *rig, const char *script)
{
    char text[STEP_LEN_MAX];
    while (*script != '\0') {
        size_t len = strcspn(script, ";");
        assert_true(len < sizeof text);
        memcpy(text, script, len);
        text[len] = '\0';
        do_one(rig, text);
        script += script[len] == ';' ? len + 1 : len;
    }
}
