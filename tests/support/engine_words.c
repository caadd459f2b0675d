/* The words of a step: options, places, spans, and the commands of a completion. See engine_rig.h. */
#include "support/engine_words.h"

#include "support/engine_rig.h"

#include "history/payload.h"

#include <stdio.h>
#include <stdlib.h>

enum { COMMANDS_MAX = 64 };

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
        fail_msg("'%s' is not a span", text);
    }
    return (int64_t)(number * ns);
}

void hf_words_cut(char *text, hf_words *ret_words)
{
    ret_words->count = 0;
    for (char *word = strtok(text, " \n\t"); word != NULL; word = strtok(NULL, " \n\t")) {
        assert_true(ret_words->count < HF_WORDS_MAX);
        ret_words->items[ret_words->count++] = word;
    }
}

const char *hf_words_option(const hf_words *w, const char *key)
{
    size_t len = strlen(key);
    for (size_t i = 0; i < w->count; i++) {
        if (strncmp(w->items[i], key, len) == 0 && w->items[i][len] == '=') {
            return w->items[i] + len + 1;
        }
    }
    return NULL;
}

bool hf_words_has(const hf_words *w, const char *flag)
{
    for (size_t i = 0; i < w->count; i++) {
        if (strcmp(w->items[i], flag) == 0) {
            return true;
        }
    }
    return false;
}

const char *hf_words_place(const hf_words *w, size_t index)
{
    if (index >= w->count) {
        fail_msg("'%s' needs %zu words", w->items[0], index + 1);
    }
    return w->items[index];
}

hf_str hf_words_str(const hf_words *w, const char *key, const char *otherwise)
{
    const char *value = hf_words_option(w, key);
    return hf_str_of(value != NULL ? value : otherwise);
}

int32_t hf_words_number(const hf_words *w, const char *key, int32_t otherwise)
{
    const char *value = hf_words_option(w, key);
    return value != NULL ? (int32_t)strtol(value, NULL, 10) : otherwise;
}

hf_pb_duration hf_words_span(const hf_words *w, const char *key)
{
    const char *value = hf_words_option(w, key);
    if (value == NULL) {
        return (hf_pb_duration){0};
    }
    if (strcmp(value, "never") == 0) { /* the longest span that a message can have */
        return (hf_pb_duration){INT64_MAX, 999999999, true};
    }
    return hf_pb_duration_of(hf_nanoseconds(hf_rig_span(value)));
}

/* A payload of input=BYTES bytes; NULL = the step has no such option. */
hf_pb_payloads *hf_words_input(hf_arena *arena, const hf_words *w)
{
    const char *value = hf_words_option(w, "input");
    size_t len = value != NULL ? strtoul(value, NULL, 10) : 0;
    if (len == 0) {
        return NULL;
    }
    char *bytes = hf_arena_zero(arena, len, 1);
    return hf_payloads_of(arena, hf_payload_bytes(arena, hf_str_of_len(bytes, len)));
}

hf_pb_header *hf_words_header(hf_arena *arena, const hf_words *w)
{
    size_t len = (size_t)hf_words_number(w, "header", 0);
    if (len == 0) {
        return NULL;
    }
    hf_pb_header *header = HF_ARENA_NEW(arena, hf_pb_header);
    header->fields.items = HF_ARENA_NEW(arena, hf_pb_header_fields_entry);
    header->fields.items[0].key = HF_STR("h");
    header->fields.items[0].value = HF_ARENA_NEW(arena, hf_pb_payload);
    header->fields.items[0].value->data = hf_str_of_len(hf_arena_zero(arena, len, 1), len);
    header->fields.count = 1;
    return header;
}

hf_pb_task_queue *hf_words_queue(hf_arena *arena, hf_str name)
{
    hf_pb_task_queue *queue = HF_ARENA_NEW(arena, hf_pb_task_queue);
    queue->name = hf_arena_copy(arena, name);
    return queue;
}

hf_pb_retry_policy *hf_words_retry(hf_arena *arena, const hf_words *w)
{
    const char *factor = hf_words_option(w, "factor");
    if (hf_words_option(w, "retries") == NULL && hf_words_option(w, "initial") == NULL &&
        hf_words_option(w, "never") == NULL && hf_words_option(w, "longest") == NULL && factor == NULL) {
        return NULL;
    }
    hf_pb_retry_policy *policy = HF_ARENA_NEW(arena, hf_pb_retry_policy);
    policy->maximum_attempts = hf_words_number(w, "retries", 0);
    policy->initial_interval = hf_words_span(w, "initial");
    policy->maximum_interval = hf_words_span(w, "longest");
    policy->backoff_coefficient = factor != NULL ? strtod(factor, NULL) : 0;
    if (hf_words_option(w, "never") != NULL) {
        policy->non_retryable_error_types.items = HF_ARENA_NEW(arena, hf_str);
        policy->non_retryable_error_types.items[0] = hf_arena_copy(arena, hf_words_str(w, "never", ""));
        policy->non_retryable_error_types.count = 1;
    }
    return policy;
}

static hf_pb_payload *value_of(hf_arena *arena, const char *text, size_t len)
{
    char json[128];
    bool is_number = len > 0 && ((text[0] >= '0' && text[0] <= '9') || text[0] == '['); /* or a list, as it stands */
    (void)snprintf(json, sizeof json, is_number ? "%.*s" : "\"%.*s\"", (int)len, text);
    hf_pb_payload *payload = HF_ARENA_NEW(arena, hf_pb_payload);
    hf_pb_payloads *made =
        hf_payloads_of(arena, hf_payload_json(arena, hf_arena_copy(arena, hf_str_of(len > 0 ? json : "null"))));
    *payload = made->payloads.items[0];
    return payload;
}

hf_pb_memo *hf_words_memo(hf_arena *arena, const char *text)
{
    enum { FIELDS_MAX = 8 };
    if (text == NULL) {
        return NULL;
    }
    hf_pb_memo *memo = HF_ARENA_NEW(arena, hf_pb_memo);
    memo->fields.items = HF_ARENA_ARRAY(arena, hf_pb_memo_fields_entry, FIELDS_MAX);
    while (*text != '\0') {
        size_t len = strcspn(text, "+");
        size_t key = strcspn(text, ":");
        assert_true(key < len && memo->fields.count < FIELDS_MAX);
        hf_pb_memo_fields_entry *entry = &memo->fields.items[memo->fields.count++];
        entry->key = hf_arena_copy(arena, hf_str_of_len(text, key));
        entry->value = value_of(arena, text + key + 1, len - key - 1);
        text += text[len] == '+' ? len + 1 : len;
    }
    return memo;
}

hf_pb_search_attributes *hf_words_attributes(hf_arena *arena, const char *text)
{
    const hf_pb_memo *memo = hf_words_memo(arena, text);
    if (memo == NULL) {
        return NULL;
    }
    hf_pb_search_attributes *attributes = HF_ARENA_NEW(arena, hf_pb_search_attributes);
    attributes->indexed_fields.items =
        HF_ARENA_ARRAY(arena, hf_pb_search_attributes_indexed_fields_entry, memo->fields.count);
    for (size_t i = 0; i < memo->fields.count; i++) {
        attributes->indexed_fields.items[i].key = memo->fields.items[i].key;
        attributes->indexed_fields.items[i].value = memo->fields.items[i].value;
        attributes->indexed_fields.count++;
    }
    return attributes;
}

hf_str hf_words_spaced(hf_arena *arena, const hf_words *w, const char *key)
{
    hf_str text = hf_words_str(w, key, "");
    char *copy = hf_arena_zero(arena, text.len + 1, 1);
    for (size_t i = 0; i < text.len; i++) {
        copy[i] = text.data[i] == '_' ? ' ' : text.data[i];
    }
    return hf_str_of(copy);
}

/* ---- Commands ---------------------------------------------------------------------------------------------------- */

static hf_pb_priority *priority_of(hf_arena *arena, const hf_words *w)
{
    hf_pb_priority *priority = hf_words_option(w, "priority") != NULL ? HF_ARENA_NEW(arena, hf_pb_priority) : NULL;
    if (priority != NULL) {
        priority->priority_key = hf_words_number(w, "priority", 0);
    }
    return priority;
}

static void activity_command(hf_arena *arena, const hf_words *w, hf_pb_command *command)
{
    hf_pb_schedule_activity_task_command_attributes *attrs =
        HF_ARENA_NEW(arena, hf_pb_schedule_activity_task_command_attributes);
    command->command_type = HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK;
    command->attributes_case = HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES;
    command->schedule_activity_task_command_attributes = attrs;
    attrs->priority = priority_of(arena, w);
    attrs->activity_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
    attrs->activity_type = HF_ARENA_NEW(arena, hf_pb_activity_type);
    attrs->activity_type->name = hf_arena_copy(arena, hf_words_str(w, "act", "act"));
    attrs->request_eager_execution = hf_words_has(w, "eager");
    attrs->task_queue = hf_words_queue(arena, hf_words_str(w, "queue", "q"));
    attrs->schedule_to_close_timeout = hf_words_span(w, "close");
    attrs->schedule_to_start_timeout = hf_words_span(w, "start");
    attrs->start_to_close_timeout = hf_words_span(w, "each");
    attrs->heartbeat_timeout = hf_words_span(w, "beat");
    attrs->input = hf_words_input(arena, w);
    if (hf_words_option(w, "close") == NULL && hf_words_option(w, "each") == NULL && !hf_words_has(w, "endless")) {
        attrs->start_to_close_timeout = hf_pb_duration_of(hf_minutes(10));
    }
    attrs->retry_policy = hf_words_retry(arena, w);
}

static void timer_command(hf_arena *arena, const hf_words *w, hf_pb_command *command)
{
    if (strcmp(w->items[0], "timer") == 0) {
        hf_pb_start_timer_command_attributes *attrs = HF_ARENA_NEW(arena, hf_pb_start_timer_command_attributes);
        command->command_type = HF_COMMAND_TYPE_START_TIMER;
        command->attributes_case = HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES;
        command->start_timer_command_attributes = attrs;
        attrs->timer_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
        int64_t ns = hf_rig_span(hf_words_place(w, 2));
        attrs->start_to_fire_timeout =
            ns == INT64_MAX ? (hf_pb_duration){INT64_MAX, 0, true} : hf_pb_duration_of(hf_nanoseconds(ns));
        return;
    }
    hf_pb_cancel_timer_command_attributes *attrs = HF_ARENA_NEW(arena, hf_pb_cancel_timer_command_attributes);
    command->command_type = HF_COMMAND_TYPE_CANCEL_TIMER;
    command->attributes_case = HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES;
    command->cancel_timer_command_attributes = attrs;
    attrs->timer_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
}

static void external_command(hf_arena *arena, const hf_words *w, hf_pb_command *command)
{
    if (strcmp(hf_words_place(w, 0), "xcancel") == 0) {
        hf_pb_request_cancel_external_workflow_execution_command_attributes *cancel =
            HF_ARENA_NEW(arena, hf_pb_request_cancel_external_workflow_execution_command_attributes);
        command->command_type = HF_COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION;
        command->attributes_case = HF_PB_COMMAND_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->request_cancel_external_workflow_execution_command_attributes = cancel;
        cancel->workflow_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
        cancel->run_id = hf_arena_copy(arena, hf_words_str(w, "run_id", ""));
        cancel->namespace = hf_arena_copy(arena, hf_words_str(w, "ns", ""));
        cancel->reason = hf_arena_copy(arena, hf_words_str(w, "reason", ""));
        cancel->child_workflow_only = hf_words_has(w, "child");
        return;
    }
    command->command_type = HF_COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION;
    command->attributes_case = HF_PB_COMMAND_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    hf_pb_signal_external_workflow_execution_command_attributes *attrs =
        HF_ARENA_NEW(arena, hf_pb_signal_external_workflow_execution_command_attributes);
    attrs->execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    attrs->execution->workflow_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
    attrs->execution->run_id = hf_arena_copy(arena, hf_words_str(w, "run_id", ""));
    attrs->signal_name = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 2)));
    attrs->input = hf_words_input(arena, w);
    attrs->header = hf_words_header(arena, w);
    attrs->namespace = hf_arena_copy(arena, hf_words_str(w, "ns", ""));
    attrs->child_workflow_only = hf_words_has(w, "child");
    command->signal_external_workflow_execution_command_attributes = attrs;
}

static void closing_command(hf_arena *arena, const hf_words *w, hf_pb_command *command)
{
    if (strcmp(w->items[0], "done") == 0) {
        command->command_type = HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION;
        command->attributes_case = HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->complete_workflow_execution_command_attributes =
            HF_ARENA_NEW(arena, hf_pb_complete_workflow_execution_command_attributes);
        command->complete_workflow_execution_command_attributes->result = hf_words_input(arena, w);
    } else if (strcmp(w->items[0], "failed") == 0) {
        command->command_type = HF_COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION;
        command->attributes_case = HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->fail_workflow_execution_command_attributes =
            HF_ARENA_NEW(arena, hf_pb_fail_workflow_execution_command_attributes);
        command->fail_workflow_execution_command_attributes->failure =
            hf_failure_application(arena, hf_arena_copy(arena, hf_words_str(w, "type", "Oops")), HF_STR("it failed"),
                                   hf_words_has(w, "final"));
        command->fail_workflow_execution_command_attributes->failure->application_failure_info->next_retry_delay =
            hf_words_span(w, "delay");
        command->fail_workflow_execution_command_attributes->failure->application_failure_info->details =
            hf_words_input(arena, w);
    } else {
        command->command_type = HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION;
        command->attributes_case = HF_PB_COMMAND_CANCEL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->cancel_workflow_execution_command_attributes =
            HF_ARENA_NEW(arena, hf_pb_cancel_workflow_execution_command_attributes);
        command->cancel_workflow_execution_command_attributes->details = hf_words_input(arena, w);
    }
}

static void continue_command(hf_arena *arena, const hf_words *w, hf_pb_command *command)
{
    hf_pb_continue_as_new_workflow_execution_command_attributes *attrs =
        HF_ARENA_NEW(arena, hf_pb_continue_as_new_workflow_execution_command_attributes);
    command->command_type = HF_COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION;
    command->attributes_case = HF_PB_COMMAND_CONTINUE_AS_NEW_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    command->continue_as_new_workflow_execution_command_attributes = attrs;
    if (hf_words_option(w, "type") != NULL) {
        attrs->workflow_type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
        attrs->workflow_type->name = hf_arena_copy(arena, hf_words_str(w, "type", ""));
    }
    attrs->task_queue =
        hf_words_option(w, "queue") != NULL ? hf_words_queue(arena, hf_words_str(w, "queue", "")) : NULL;
    attrs->input = hf_words_input(arena, w);
    attrs->workflow_run_timeout = hf_words_span(w, "run");
    attrs->workflow_task_timeout = hf_words_span(w, "task");
    attrs->backoff_start_interval = hf_words_span(w, "delay");
    attrs->retry_policy = hf_words_retry(arena, w);
    attrs->initiator = hf_words_number(w, "initiator", 0);
    attrs->cron_schedule = hf_words_spaced(arena, w, "cron");
    attrs->header = hf_words_header(arena, w);
    attrs->memo = hf_words_memo(arena, hf_words_option(w, "memo"));
    attrs->search_attributes = hf_words_attributes(arena, hf_words_option(w, "attrs"));
}

static void child_command(hf_arena *arena, const hf_words *w, hf_pb_command *command)
{
    hf_pb_start_child_workflow_execution_command_attributes *attrs =
        HF_ARENA_NEW(arena, hf_pb_start_child_workflow_execution_command_attributes);
    command->command_type = HF_COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION;
    command->attributes_case = HF_PB_COMMAND_START_CHILD_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    command->start_child_workflow_execution_command_attributes = attrs;
    attrs->priority = priority_of(arena, w);
    attrs->namespace = hf_arena_copy(arena, hf_words_str(w, "ns", ""));
    attrs->workflow_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
    attrs->workflow_type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
    attrs->workflow_type->name = hf_arena_copy(arena, hf_words_str(w, "type", "type"));
    attrs->task_queue =
        hf_words_option(w, "queue") != NULL ? hf_words_queue(arena, hf_words_str(w, "queue", "")) : NULL;
    attrs->input = hf_words_input(arena, w);
    attrs->workflow_execution_timeout = hf_words_span(w, "exec");
    attrs->workflow_run_timeout = hf_words_span(w, "run");
    attrs->workflow_task_timeout = hf_words_span(w, "task");
    attrs->parent_close_policy = hf_words_number(w, "policy", 0);
    attrs->workflow_id_reuse_policy = hf_words_number(w, "reuse", 0);
    attrs->retry_policy = hf_words_retry(arena, w);
    attrs->cron_schedule = hf_words_spaced(arena, w, "cron");
    attrs->header = hf_words_header(arena, w);
    attrs->memo = hf_words_memo(arena, hf_words_option(w, "memo"));
    attrs->search_attributes = hf_words_attributes(arena, hf_words_option(w, "attrs"));
}

static void upsert_command(hf_arena *arena, const hf_words *w, hf_pb_command *command)
{
    if (strcmp(w->items[0], "upsert") == 0) {
        command->command_type = HF_COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES;
        command->attributes_case = HF_PB_COMMAND_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES_COMMAND_ATTRIBUTES;
        command->upsert_workflow_search_attributes_command_attributes =
            HF_ARENA_NEW(arena, hf_pb_upsert_workflow_search_attributes_command_attributes);
        command->upsert_workflow_search_attributes_command_attributes->search_attributes =
            hf_words_attributes(arena, hf_words_place(w, 1));
        return;
    }
    command->command_type = HF_COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES;
    command->attributes_case = HF_PB_COMMAND_MODIFY_WORKFLOW_PROPERTIES_COMMAND_ATTRIBUTES;
    command->modify_workflow_properties_command_attributes =
        HF_ARENA_NEW(arena, hf_pb_modify_workflow_properties_command_attributes);
    command->modify_workflow_properties_command_attributes->upserted_memo = hf_words_memo(arena, hf_words_place(w, 1));
}

static void marker_command(hf_arena *arena, const hf_words *w, hf_pb_command *command)
{
    hf_pb_record_marker_command_attributes *attrs = HF_ARENA_NEW(arena, hf_pb_record_marker_command_attributes);
    command->command_type = HF_COMMAND_TYPE_RECORD_MARKER;
    command->attributes_case = HF_PB_COMMAND_RECORD_MARKER_COMMAND_ATTRIBUTES;
    command->record_marker_command_attributes = attrs;
    attrs->marker_name = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
    if (hf_words_option(w, "input") != NULL) {
        attrs->details.items = HF_ARENA_NEW(arena, hf_pb_record_marker_command_attributes_details_entry);
        attrs->details.items[0].value = hf_words_input(arena, w);
        attrs->details.count = 1;
    }
}

static void command_of(hf_arena *arena, const hf_words *w, hf_pb_command *command)
{
    const char *kind = hf_words_place(w, 0);
    if (strcmp(kind, "activity") == 0) {
        activity_command(arena, w, command);
    } else if (strcmp(kind, "timer") == 0 || strcmp(kind, "untimer") == 0) {
        timer_command(arena, w, command);
    } else if (strcmp(kind, "unactivity") == 0) {
        command->command_type = HF_COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK;
        command->attributes_case = HF_PB_COMMAND_REQUEST_CANCEL_ACTIVITY_TASK_COMMAND_ATTRIBUTES;
        command->request_cancel_activity_task_command_attributes =
            HF_ARENA_NEW(arena, hf_pb_request_cancel_activity_task_command_attributes);
        command->request_cancel_activity_task_command_attributes->scheduled_event_id =
            strtol(hf_words_place(w, 1), NULL, 10);
    } else if (strcmp(kind, "xsignal") == 0 || strcmp(kind, "xcancel") == 0) {
        external_command(arena, w, command);
    } else if (strcmp(kind, "continue") == 0) {
        continue_command(arena, w, command);
    } else if (strcmp(kind, "child") == 0) {
        child_command(arena, w, command);
    } else if (strcmp(kind, "upsert") == 0 || strcmp(kind, "remember") == 0) {
        upsert_command(arena, w, command);
    } else if (strcmp(kind, "marker") == 0) {
        marker_command(arena, w, command);
    } else if (strcmp(kind, "protocol") == 0) {
        command->command_type = HF_COMMAND_TYPE_PROTOCOL_MESSAGE;
        command->attributes_case = HF_PB_COMMAND_PROTOCOL_MESSAGE_COMMAND_ATTRIBUTES;
        command->protocol_message_command_attributes = HF_ARENA_NEW(arena, hf_pb_protocol_message_command_attributes);
        command->protocol_message_command_attributes->message_id =
            hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
    } else if (strcmp(kind, "done") == 0 || strcmp(kind, "failed") == 0 || strcmp(kind, "canceled") == 0) {
        closing_command(arena, w, command);
    } else {
        fail_msg("'%s' is not a command", kind);
    }
}

/* "complete of=x timer t 5s, done": options come before the first command. */
hf_pb_command_list hf_words_commands(hf_arena *arena, char *text)
{
    hf_pb_command_list list = {HF_ARENA_ARRAY(arena, hf_pb_command, COMMANDS_MAX), 0};
    char *rest = text;
    while (rest != NULL && *rest != '\0') {
        char *comma = strchr(rest, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        hf_words w;
        hf_words_cut(rest, &w);
        if (w.count > 0) {
            assert_true(list.count < COMMANDS_MAX);
            command_of(arena, &w, &list.items[list.count++]);
        }
        rest = comma != NULL ? comma + 1 : NULL;
    }
    return list;
}
