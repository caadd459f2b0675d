#include "support/engine_batch.h"

#define CASE(name) HF_PB_START_BATCH_OPERATION_REQUEST_##name##_OPERATION

static hf_str copied(hf_arena *arena, const hf_words *w, const char *key, const char *otherwise)
{
    return hf_arena_copy(arena, hf_words_str(w, key, otherwise));
}

/* "a+b" */
static void put_ids(hf_arena *arena, const char *text, hf_pb_start_batch_operation_request *request)
{
    request->executions.items = HF_ARENA_ARRAY(arena, hf_pb_workflow_execution, 64);
    while (*text != 0) {
        size_t len = strcspn(text, "+");
        assert_true(request->executions.count < 64);
        request->executions.items[request->executions.count++].workflow_id =
            hf_arena_copy(arena, hf_str_of_len(text, len));
        text += len + (text[len] == '+' ? 1 : 0);
    }
}

static hf_pb_field_mask *mask_of(hf_arena *arena, const char *path)
{
    hf_pb_field_mask *mask = HF_ARENA_NEW(arena, hf_pb_field_mask);
    mask->paths.items = HF_ARENA_NEW(arena, hf_str);
    mask->paths.items[0] = hf_str_of(path);
    mask->paths.count = 1;
    return mask;
}

#define USE(name, field, message)         \
    request->operation_case = CASE(name); \
    request->field = HF_ARENA_NEW(arena, message)

/* All activities, or those of a type. */
#define ACTIVITIES(field, prefix)                                                      \
    request->field->activity_case = type.len > 0 ? prefix##_TYPE : prefix##_MATCH_ALL; \
    if (type.len > 0) {                                                                \
        request->field->type = type;                                                   \
    } else {                                                                           \
        request->field->match_all = true;                                              \
    }

static void put_operation(hf_arena *arena, const hf_words *w, hf_pb_start_batch_operation_request *request)
{
    hf_str op = hf_words_str(w, "op", "terminate");
    hf_str type = copied(arena, w, "type", "");
    if (hf_str_equal(op, HF_STR("terminate"))) {
        USE(TERMINATION, termination_operation, hf_pb_batch_operation_termination);
        request->termination_operation->identity = copied(arena, w, "identity", "me");
    } else if (hf_str_equal(op, HF_STR("cancel"))) {
        USE(CANCELLATION, cancellation_operation, hf_pb_batch_operation_cancellation);
    } else if (hf_str_equal(op, HF_STR("signal"))) {
        USE(SIGNAL, signal_operation, hf_pb_batch_operation_signal);
        request->signal_operation->signal = copied(arena, w, "name", "s");
        request->signal_operation->input = hf_words_input(arena, w);
    } else if (hf_str_equal(op, HF_STR("delete"))) {
        USE(DELETION, deletion_operation, hf_pb_batch_operation_deletion);
    } else if (hf_str_equal(op, HF_STR("reset"))) {
        USE(RESET, reset_operation, hf_pb_batch_operation_reset);
        request->reset_operation->reset_type = hf_words_number(
            w, "to", hf_words_has(w, "first") ? HF_RESET_TYPE_FIRST_WORKFLOW_TASK : HF_RESET_TYPE_LAST_WORKFLOW_TASK);
        if (hf_words_has(w, "targetless")) {
            request->reset_operation->options = HF_ARENA_NEW(arena, hf_pb_reset_options);
        }
    } else if (hf_str_equal(op, HF_STR("options"))) {
        USE(UPDATE_WORKFLOW_OPTIONS, update_workflow_options_operation,
            hf_pb_batch_operation_update_workflow_execution_options);
        hf_pb_workflow_execution_options *options = HF_ARENA_NEW(arena, hf_pb_workflow_execution_options);
        options->priority = HF_ARENA_NEW(arena, hf_pb_priority);
        options->priority->priority_key = 2;
        request->update_workflow_options_operation->workflow_execution_options = options;
        if (!hf_words_has(w, "maskless")) {
            request->update_workflow_options_operation->update_mask = mask_of(arena, "priority");
        }
    } else if (hf_str_equal(op, HF_STR("unpause"))) {
        USE(UNPAUSE_ACTIVITIES, unpause_activities_operation, hf_pb_batch_operation_unpause_activities);
        if (!hf_words_has(w, "none")) {
            ACTIVITIES(unpause_activities_operation, HF_PB_BATCH_OPERATION_UNPAUSE_ACTIVITIES)
        }
    } else if (hf_str_equal(op, HF_STR("areset"))) {
        USE(RESET_ACTIVITIES, reset_activities_operation, hf_pb_batch_operation_reset_activities);
        ACTIVITIES(reset_activities_operation, HF_PB_BATCH_OPERATION_RESET_ACTIVITIES)
    } else if (hf_str_equal(op, HF_STR("aoptions"))) {
        USE(UPDATE_ACTIVITY_OPTIONS, update_activity_options_operation, hf_pb_batch_operation_update_activity_options);
        ACTIVITIES(update_activity_options_operation, HF_PB_BATCH_OPERATION_UPDATE_ACTIVITY_OPTIONS)
        hf_pb_activity_options *options = HF_ARENA_NEW(arena, hf_pb_activity_options);
        options->start_to_close_timeout = hf_pb_duration_of(hf_seconds(77));
        request->update_activity_options_operation->activity_options = options;
        request->update_activity_options_operation->update_mask = mask_of(arena, "start_to_close_timeout");
    } else {
        assert_true(hf_str_equal(op, HF_STR("none")));
    }
}

static void start(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    hf_arena *arena = &slot->request;
    hf_pb_start_batch_operation_request *request = HF_RIG_REQUEST(slot, start_batch_operation);
    request->namespace = copied(arena, w, "ns", HF_RIG_NS);
    request->job_id = hf_arena_copy(arena, hf_str_of(w->count > 1 ? hf_words_place(w, 1) : ""));
    if (hf_str_equal(request->job_id, HF_STR("-"))) {
        request->job_id = HF_STR("");
    }
    request->reason = copied(arena, w, "reason", "why");
    request->visibility_query = hf_words_spaced(arena, w, "query");
    request->max_operations_per_second = (float)hf_words_number(w, "rate", 0);
    if (hf_words_option(w, "ids") != NULL) {
        put_ids(arena, hf_words_option(w, "ids"), request);
    }
    put_operation(arena, w, request);
    hf_rig_send(rig, slot, HF_METHOD_START_BATCH_OPERATION, request);
}

static char token[64];
static size_t token_len;

static void list(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    hf_pb_list_batch_operations_request *request = HF_RIG_REQUEST(slot, list_batch_operations);
    request->namespace = copied(&slot->request, w, "ns", HF_RIG_NS);
    request->page_size = hf_words_number(w, "page", 0);
    if (hf_words_has(w, "more")) {
        request->next_page_token = hf_arena_copy(&slot->request, hf_str_of_len(token, token_len));
    }
    hf_rig_send(rig, slot, HF_METHOD_LIST_BATCH_OPERATIONS, request);
    const hf_pb_list_batch_operations_response *response = slot->call.response;
    token_len = 0;
    if (slot->done && slot->call.status == HF_OK && response->next_page_token.len <= sizeof token) {
        token_len = response->next_page_token.len;
        memcpy(token, token_len > 0 ? response->next_page_token.data : "", token_len);
    }
}

bool hf_rig_batch(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    const char *verb = hf_words_place(w, 0);
    hf_arena *arena = &slot->request;
    if (strcmp(verb, "batch") == 0) {
        start(rig, slot, w);
    } else if (strcmp(verb, "batchstop") == 0) {
        hf_pb_stop_batch_operation_request *request = HF_RIG_REQUEST(slot, stop_batch_operation);
        request->namespace = copied(arena, w, "ns", HF_RIG_NS);
        request->job_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
        request->reason = copied(arena, w, "reason", "enough");
        hf_rig_send(rig, slot, HF_METHOD_STOP_BATCH_OPERATION, request);
    } else if (strcmp(verb, "batchshow") == 0) {
        hf_pb_describe_batch_operation_request *request = HF_RIG_REQUEST(slot, describe_batch_operation);
        request->namespace = copied(arena, w, "ns", HF_RIG_NS);
        request->job_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
        hf_rig_send(rig, slot, HF_METHOD_DESCRIBE_BATCH_OPERATION, request);
    } else if (strcmp(verb, "batches") == 0) {
        list(rig, slot, w);
    } else if (strcmp(verb, "nsdelete") == 0) {
        hf_pb_delete_namespace_request *request = HF_RIG_REQUEST(slot, delete_namespace);
        request->namespace = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
        hf_rig_send(rig, slot, HF_METHOD_DELETE_NAMESPACE, request);
    } else {
        return false;
    }
    return true;
}

bool hf_rig_batch_text(const hf_rig_call *slot, hf_buf *out)
{
    if (slot->call.method == HF_METHOD_DESCRIBE_BATCH_OPERATION) {
        static const char *const STATES[] = {"none", "running", "completed", "failed"};
        const hf_pb_describe_batch_operation_response *response = slot->call.response;
        hf_buf_putf(out, "%s:%lld/%lld/%lld", STATES[response->state], (long long)response->complete_operation_count,
                    (long long)response->failure_operation_count, (long long)response->total_operation_count);
        return true;
    }
    if (slot->call.method != HF_METHOD_LIST_BATCH_OPERATIONS) {
        return false;
    }
    const hf_pb_list_batch_operations_response *response = slot->call.response;
    for (size_t i = 0; i < response->operation_info.count; i++) {
        const hf_pb_batch_operation_info *info = &response->operation_info.items[i];
        hf_buf_putf(out, "%s%.*s%s", i > 0 ? "+" : "", HF_STR_ARGS(info->job_id), info->close_time.has ? "*" : "");
    }
    hf_buf_puts(out, response->next_page_token.len > 0 ? "..." : "");
    return true;
}
