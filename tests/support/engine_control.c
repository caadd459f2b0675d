/* Steps of the rig's language (engine_rig.h) that act on activities from outside, and tasks that come with other answers. */
#include "support/engine_control.h"

#include "history/payload.h"

#include <string.h>

static hf_pb_workflow_execution *execution_of(hf_arena *arena, const hf_words *w)
{
    hf_pb_workflow_execution *execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    execution->workflow_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
    execution->run_id = hf_arena_copy(arena, hf_words_str(w, "run_id", ""));
    return execution;
}

/* ---- By id --------------------------------------------------------------------------------------------------------- */

#define BY_ID(request)                                                                 \
    do {                                                                               \
        (request)->namespace = hf_arena_copy(arena, hf_words_str(w, "ns", HF_RIG_NS)); \
        (request)->workflow_id = workflow_id;                                          \
        (request)->activity_id = activity_id;                                          \
        (request)->run_id = hf_arena_copy(arena, hf_words_str(w, "run_id", ""));       \
        (request)->identity = hf_arena_copy(arena, hf_words_str(w, "identity", ""));   \
    } while (0)

static hf_pb_payloads *details_of(hf_arena *arena, const hf_words *w)
{
    const char *text = hf_words_option(w, "details");
    return text != NULL ? hf_payloads_of(arena, hf_payload_json(arena, hf_arena_copy(arena, hf_str_of(text)))) : NULL;
}

void hf_rig_by_id(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    const char *verb = hf_words_place(w, 0);
    const char *by = hf_words_option(w, "by");
    size_t at = strcspn(by, "/");
    hf_str workflow_id = hf_str_of_len(by, at);
    hf_str activity_id = hf_str_of(by[at] == '/' ? by + at + 1 : "");
    hf_arena *arena = NULL;
    if (strcmp(verb, "acomplete") == 0) {
        hf_pb_respond_activity_task_completed_by_id_request *request =
            HF_RIG_REQUEST(slot, respond_activity_task_completed_by_id);
        arena = &slot->request;
        BY_ID(request);
        request->result = hf_words_input(arena, w);
        hf_rig_send(rig, slot, HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID, request);
    } else if (strcmp(verb, "afail") == 0) {
        hf_pb_respond_activity_task_failed_by_id_request *request =
            HF_RIG_REQUEST(slot, respond_activity_task_failed_by_id);
        arena = &slot->request;
        BY_ID(request);
        request->failure = hf_failure_application(arena, HF_STR("Oops"), HF_STR("no luck"), hf_words_has(w, "final"));
        request->last_heartbeat_details = details_of(arena, w);
        hf_rig_send(rig, slot, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID, request);
    } else if (strcmp(verb, "acancel") == 0) {
        hf_pb_respond_activity_task_canceled_by_id_request *request =
            HF_RIG_REQUEST(slot, respond_activity_task_canceled_by_id);
        arena = &slot->request;
        BY_ID(request);
        request->details = hf_words_input(arena, w);
        hf_rig_send(rig, slot, HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID, request);
    } else {
        hf_pb_record_activity_task_heartbeat_by_id_request *request =
            HF_RIG_REQUEST(slot, record_activity_task_heartbeat_by_id);
        arena = &slot->request;
        BY_ID(request);
        request->details = details_of(arena, w);
        hf_rig_send(rig, slot, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID, request);
        if (slot->done && slot->call.status == HF_OK) {
            const hf_pb_record_activity_task_heartbeat_by_id_response *response = slot->call.response;
            assert_int_equal(response->cancel_requested, hf_words_has(w, "asked"));
            assert_int_equal(response->activity_paused, hf_words_has(w, "paused"));
            assert_int_equal(response->activity_reset, hf_words_has(w, "reset"));
        }
    }
}

/* ---- Control ------------------------------------------------------------------------------------------------------- */

/* Which activities: ID, or type=T, or all. */
#define CHOOSE(request, name, all_case, all_field)                                     \
    do {                                                                               \
        (request)->namespace = hf_arena_copy(arena, hf_words_str(w, "ns", HF_RIG_NS)); \
        (request)->execution = execution_of(arena, w);                                 \
        (request)->identity = hf_arena_copy(arena, hf_words_str(w, "identity", ""));   \
        if (hf_words_option(w, "type") != NULL) {                                      \
            (request)->activity_case = name##_TYPE;                                    \
            (request)->type = hf_arena_copy(arena, hf_words_str(w, "type", ""));       \
        } else if (hf_words_has(w, "all")) {                                           \
            (request)->activity_case = all_case;                                       \
            all_field;                                                                 \
        } else {                                                                       \
            (request)->activity_case = name##_ID;                                      \
            (request)->id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 2)));     \
        }                                                                              \
    } while (0)

static void add_path(hf_arena *arena, hf_pb_field_mask *mask, const hf_words *w, const char *key, const char *path)
{
    (void)arena;
    if (hf_words_option(w, key) != NULL) {
        mask->paths.items[mask->paths.count++] = hf_str_of(path);
    }
}

static void send_options(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    hf_pb_update_activity_options_request *request = HF_RIG_REQUEST(slot, update_activity_options);
    hf_arena *arena = &slot->request;
    CHOOSE(request, HF_PB_UPDATE_ACTIVITY_OPTIONS_REQUEST, HF_PB_UPDATE_ACTIVITY_OPTIONS_REQUEST_MATCH_ALL,
           request->match_all = true);
    request->restore_original = hf_words_has(w, "original");
    request->activity_options = HF_ARENA_NEW(arena, hf_pb_activity_options);
    request->activity_options->task_queue = hf_words_queue(arena, hf_words_str(w, "queue", ""));
    request->activity_options->schedule_to_close_timeout = hf_words_span(w, "close");
    request->activity_options->schedule_to_start_timeout = hf_words_span(w, "start");
    request->activity_options->start_to_close_timeout = hf_words_span(w, "each");
    request->activity_options->heartbeat_timeout = hf_words_span(w, "beat");
    request->activity_options->retry_policy = hf_words_retry(arena, w);
    request->update_mask = HF_ARENA_NEW(arena, hf_pb_field_mask);
    request->update_mask->paths.items = HF_ARENA_ARRAY(arena, hf_str, 8);
    add_path(arena, request->update_mask, w, "queue", "task_queue.name");
    add_path(arena, request->update_mask, w, "close", "schedule_to_close_timeout");
    add_path(arena, request->update_mask, w, "start", "scheduleToStartTimeout");
    add_path(arena, request->update_mask, w, "each", "start_to_close_timeout");
    add_path(arena, request->update_mask, w, "beat", "heartbeatTimeout");
    add_path(arena, request->update_mask, w, "retries", "retry_policy.maximum_attempts");
    add_path(arena, request->update_mask, w, "initial", "retryPolicy.initialInterval");
    hf_rig_send(rig, slot, HF_METHOD_UPDATE_ACTIVITY_OPTIONS, request);
}

bool hf_rig_control(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    const char *verb = hf_words_place(w, 0);
    hf_arena *arena = &slot->request;
    if (strcmp(verb, "apause") == 0) {
        hf_pb_pause_activity_request *request = HF_RIG_REQUEST(slot, pause_activity);
        CHOOSE(request, HF_PB_PAUSE_ACTIVITY_REQUEST, 0, (void)0);
        request->reason = HF_STR("a break");
        request->request_id = hf_arena_copy(arena, hf_words_str(w, "request", ""));
        hf_rig_send(rig, slot, HF_METHOD_PAUSE_ACTIVITY, request);
    } else if (strcmp(verb, "aunpause") == 0) {
        hf_pb_unpause_activity_request *request = HF_RIG_REQUEST(slot, unpause_activity);
        CHOOSE(request, HF_PB_UNPAUSE_ACTIVITY_REQUEST, HF_PB_UNPAUSE_ACTIVITY_REQUEST_UNPAUSE_ALL,
               request->unpause_all = true);
        request->reset_attempts = hf_words_has(w, "attempts");
        request->reset_heartbeat = hf_words_has(w, "heartbeats");
        hf_rig_send(rig, slot, HF_METHOD_UNPAUSE_ACTIVITY, request);
    } else if (strcmp(verb, "areset") == 0) {
        hf_pb_reset_activity_request *request = HF_RIG_REQUEST(slot, reset_activity);
        CHOOSE(request, HF_PB_RESET_ACTIVITY_REQUEST, HF_PB_RESET_ACTIVITY_REQUEST_MATCH_ALL,
               request->match_all = true);
        request->reset_heartbeat = hf_words_has(w, "heartbeats");
        request->keep_paused = hf_words_has(w, "paused");
        request->restore_original_options = hf_words_has(w, "original");
        hf_rig_send(rig, slot, HF_METHOD_RESET_ACTIVITY, request);
    } else if (strcmp(verb, "aoptions") == 0) {
        send_options(rig, slot, w);
    } else {
        return false;
    }
    return true;
}

/* ---- Tasks in other answers ------------------------------------------------------------------------------------------ */

static void put_task(hf_rig *rig, const char *name, hf_method method, const hf_pb_type *type, const void *task)
{
    hf_rig_call *slot = hf_rig_slot(rig, name);
    (void)hf_rig_request(slot, 1); /* clears it */
    void *copy = hf_arena_zero(&slot->request, type->size, _Alignof(max_align_t));
    assert_int_equal(hf_pb_copy(type, task, &slot->request, copy), HF_OK);
    slot->call.method = method;
    slot->call.status = HF_OK;
    slot->call.response = copy;
    slot->done = slot->used = true;
}

void hf_rig_take_tasks(hf_rig *rig, hf_rig_call *slot)
{
    if (!slot->done || slot->call.status != HF_OK) {
        return;
    }
    const hf_pb_poll_workflow_task_queue_response *task = NULL;
    if (slot->call.method == HF_METHOD_START_WORKFLOW_EXECUTION) {
        task = ((const hf_pb_start_workflow_execution_response *)slot->call.response)->eager_workflow_task;
    } else {
        const hf_pb_respond_workflow_task_completed_response *response = slot->call.response;
        task = response->workflow_task;
        static const char *const NAMES[] = {"a", "b", "c", "d"};
        for (size_t i = 0; i < response->activity_tasks.count && i < HF_COUNT_OF(NAMES); i++) {
            put_task(rig, NAMES[i], HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, &hf_pb_poll_activity_task_queue_response_type,
                     &response->activity_tasks.items[i]);
        }
    }
    if (task != NULL) {
        put_task(rig, "w", HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &hf_pb_poll_workflow_task_queue_response_type, task);
    }
}
