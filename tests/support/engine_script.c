/* The language of the rig: see engine_rig.h. A step consists of words (engine_words.h) and an expected result. */
#include "support/engine_ask.h"
#include "support/engine_calls.h"
#include "support/engine_control.h"
#include "support/engine_list.h"
#include "support/engine_rig.h"
#include "support/engine_stream.h"
#include "support/engine_words.h"

#include "history/payload.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEP_LEN_MAX = 600 };

typedef struct step {
    char text[STEP_LEN_MAX];     /* cut into words */
    char commands[STEP_LEN_MAX]; /* of a completion, cut too */
    hf_words w;
    const char *expected; /* the word after "=>", or NULL */
} step;

static hf_pb_payloads *payloads(hf_arena *arena, const char *text)
{
    return text != NULL ? hf_payloads_of(arena, hf_payload_json(arena, hf_arena_copy(arena, hf_str_of(text)))) : NULL;
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

static hf_pb_workflow_execution *execution_of(hf_arena *arena, const hf_words *w)
{
    hf_pb_workflow_execution *execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    execution->workflow_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
    execution->run_id = hf_arena_copy(arena, hf_words_str(w, "run_id", ""));
    return execution;
}

/* Every option and flag of the step is one of these: a word that is not known yet must not be passed over. */
static void only(const step *s, const char *known)
{
    for (size_t i = 1; i < s->w.count; i++) {
        const char *word = s->w.items[i];
        size_t len = strcspn(word, "=");
        const char *at = known;
        for (; (at = strstr(at, " ")) != NULL; at++) {
            if (strncmp(at + 1, word, len) == 0 && at[1 + len] == (word[len] == '=' ? '=' : ' ')) {
                break;
            }
        }
        if (at == NULL && (word[len] == '=' || strcmp(s->w.items[0], "complete") == 0)) {
            fail_msg("'%s' of '%s' is not known", word, s->w.items[0]);
        }
    }
}

void hf_words_start(hf_arena *arena, const hf_words *w, hf_pb_start_workflow_execution_request *request)
{
    request->namespace = hf_arena_copy(arena, hf_words_str(w, "ns", HF_RIG_NS));
    request->workflow_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
    request->workflow_type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
    request->workflow_type->name = HF_STR("type");
    request->task_queue = hf_words_queue(arena, hf_words_str(w, "queue", HF_RIG_QUEUE));
    request->request_id = hf_arena_copy(arena, hf_words_str(w, "request", ""));
    request->workflow_run_timeout = hf_words_span(w, "run");
    request->workflow_execution_timeout = hf_words_span(w, "exec");
    request->workflow_task_timeout = hf_words_span(w, "task");
    request->workflow_id_reuse_policy = hf_words_number(w, "reuse", 0);
    request->workflow_id_conflict_policy = hf_words_number(w, "conflict", 0);
    request->input = hf_words_input(arena, w);
    request->header = hf_words_header(arena, w);
    request->retry_policy = hf_words_retry(arena, w);
    request->cron_schedule = hf_words_spaced(arena, w, "cron");
    request->workflow_start_delay = hf_words_span(w, "delay");
    request->holdfast_keep = hf_words_span(w, "keep");
    request->memo = hf_words_memo(arena, hf_words_option(w, "memo"));
    request->search_attributes = hf_words_attributes(arena, hf_words_option(w, "attrs"));
    hf_words_attach(arena, w, request);
    if (hf_words_option(w, "meta") != NULL) {
        request->user_metadata = HF_ARENA_NEW(arena, hf_pb_user_metadata);
        request->user_metadata->summary = HF_ARENA_NEW(arena, hf_pb_payload);
        *request->user_metadata->summary = hf_payload_json(arena, hf_arena_copy(arena, hf_words_str(w, "meta", "")));
    }
}

static void do_start(hf_rig *rig, hf_rig_call *slot, step *s)
{
    hf_pb_start_workflow_execution_request *request = HF_RIG_REQUEST(slot, start_workflow_execution);
    only(s,
         " request= run= exec= task= reuse= conflict= queue= ns= input= header= delay= keep= cron= memo= attrs= meta= "
         "retries= "
         "initial= factor= longest= never= eager attach attach_links link= priority= ");
    hf_words_start(&slot->request, &s->w, request);
    request->request_eager_execution = hf_words_has(&s->w, "eager");
    hf_rig_send(rig, slot, HF_METHOD_START_WORKFLOW_EXECUTION, request);
    hf_rig_take_tasks(rig, slot);
}

static void do_poll(hf_rig *rig, step *s)
{
    bool workflow = s->w.items[0][0] == 'p';
    const char *as = hf_words_option(&s->w, "as");
    hf_rig_call *slot = hf_rig_slot(rig, as != NULL ? as : workflow ? "w" : "a");
    hf_pb_poll_workflow_task_queue_request *w = NULL;
    hf_pb_poll_activity_task_queue_request *a = NULL;
    hf_str ns = hf_words_str(&s->w, "ns", HF_RIG_NS);
    hf_str queue = hf_words_str(&s->w, "queue", HF_RIG_QUEUE);
    hf_str identity = hf_words_str(&s->w, "identity", "worker");
    if (workflow) {
        w = HF_RIG_REQUEST(slot, poll_workflow_task_queue);
        w->namespace = hf_arena_copy(&slot->request, ns);
        w->task_queue = hf_words_queue(&slot->request, queue);
        w->identity = hf_arena_copy(&slot->request, identity);
        w->worker_instance_key = hf_arena_copy(&slot->request, hf_words_str(&s->w, "key", ""));
    } else {
        a = HF_RIG_REQUEST(slot, poll_activity_task_queue);
        a->namespace = hf_arena_copy(&slot->request, ns);
        a->task_queue = hf_words_queue(&slot->request, queue);
        a->identity = hf_arena_copy(&slot->request, identity);
        a->worker_instance_key = hf_arena_copy(&slot->request, hf_words_str(&s->w, "key", ""));
        if (hf_words_option(&s->w, "rate") != NULL) {
            a->task_queue_metadata = HF_ARENA_NEW(&slot->request, hf_pb_task_queue_metadata);
            a->task_queue_metadata->max_tasks_per_second = HF_ARENA_NEW(&slot->request, hf_pb_double_value);
            a->task_queue_metadata->max_tasks_per_second->value = strtod(hf_words_option(&s->w, "rate"), NULL);
        }
    }
    slot->call.in_process = hf_words_has(&s->w, "in_process");
    slot->call.run_ahead = hf_words_has(&s->w, "run_ahead");
    if (hf_words_option(&s->w, "timeout") != NULL) {
        slot->call.timeout.ns = hf_rig_span(hf_words_option(&s->w, "timeout"));
    }
    hf_rig_send(rig, slot, workflow ? HF_METHOD_POLL_WORKFLOW_TASK_QUEUE : HF_METHOD_POLL_ACTIVITY_TASK_QUEUE,
                workflow ? (const void *)w : (const void *)a);
}

static hf_str token_of(hf_rig *rig, hf_rig_call *slot, const hf_words *w, const char *otherwise)
{
    const char *of = hf_words_option(w, "of");
    hf_str token = otherwise[0] == 'w' ? hf_rig_task(rig, of != NULL ? of : otherwise)->task_token
                                       : hf_rig_activity(rig, of != NULL ? of : otherwise)->task_token;
    return hf_arena_copy(&slot->request, token);
}

static void do_complete(hf_rig *rig, hf_rig_call *slot, step *s)
{
    hf_pb_respond_workflow_task_completed_request *request = HF_RIG_REQUEST(slot, respond_workflow_task_completed);
    hf_arena *arena = &slot->request;
    request->namespace = hf_arena_copy(arena, hf_words_str(&s->w, "ns", HF_RIG_NS));
    only(s, " of= sticky= sticky_for= ns= force return in_process answer= answerfail= discard says= publish= size= ");
    request->identity = HF_STR("worker");
    request->task_token = token_of(rig, slot, &s->w, "w");
    request->force_create_new_workflow_task = hf_words_has(&s->w, "force");
    request->return_new_workflow_task = hf_words_has(&s->w, "return");
    request->holdfast_stream = hf_words_records(arena, &s->w);
    if (hf_words_option(&s->w, "sticky") != NULL) {
        request->sticky_attributes = HF_ARENA_NEW(arena, hf_pb_sticky_execution_attributes);
        request->sticky_attributes->worker_task_queue = hf_words_queue(arena, hf_words_str(&s->w, "sticky", ""));
        request->sticky_attributes->schedule_to_start_timeout = hf_words_span(&s->w, "sticky_for");
        if (!request->sticky_attributes->schedule_to_start_timeout.has) {
            request->sticky_attributes->schedule_to_start_timeout = hf_pb_duration_of(hf_seconds(10));
        }
    }
    const char *of = hf_words_option(&s->w, "of");
    hf_rig_complete_with(slot, &s->w, hf_rig_task(rig, of != NULL ? of : "w"), request, s->commands,
                         sizeof s->commands);
    request->commands = hf_words_commands(arena, s->commands);
    request->return_new_workflow_task = hf_words_has(&s->w, "return");
    slot->call.in_process = hf_words_has(&s->w, "in_process");
    hf_rig_send(rig, slot, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, request);
    hf_rig_take_tasks(rig, slot);
}

static void do_fail(hf_rig *rig, hf_rig_call *slot, step *s)
{
    hf_pb_respond_workflow_task_failed_request *request = HF_RIG_REQUEST(slot, respond_workflow_task_failed);
    request->namespace = HF_STR(HF_RIG_NS);
    request->task_token = token_of(rig, slot, &s->w, "w");
    request->cause = hf_words_number(&s->w, "cause", HF_WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE);
    if (hf_words_option(&s->w, "input") != NULL) {
        request->failure = hf_failure_application(&slot->request, HF_STR("Oops"), HF_STR("no luck"), false);
        request->failure->application_failure_info->details = hf_words_input(&slot->request, &s->w);
    }
    hf_rig_send(rig, slot, HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED, request);
}

static void do_activity(hf_rig *rig, hf_rig_call *slot, step *s)
{
    const char *verb = s->w.items[0];
    hf_arena *arena = &slot->request;
    if (hf_words_option(&s->w, "by") != NULL) {
        hf_rig_by_id(rig, slot, &s->w);
        return;
    }
    if (strcmp(verb, "acomplete") == 0) {
        hf_pb_respond_activity_task_completed_request *request = HF_RIG_REQUEST(slot, respond_activity_task_completed);
        request->namespace = hf_arena_copy(arena, hf_words_str(&s->w, "ns", HF_RIG_NS));
        request->task_token = token_of(rig, slot, &s->w, "a");
        request->result = hf_words_input(arena, &s->w);
        hf_rig_send(rig, slot, HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED, request);
    } else if (strcmp(verb, "afail") == 0) {
        hf_pb_respond_activity_task_failed_request *request = HF_RIG_REQUEST(slot, respond_activity_task_failed);
        request->namespace = HF_STR(HF_RIG_NS);
        request->task_token = token_of(rig, slot, &s->w, "a");
        request->failure = hf_failure_application(arena, hf_arena_copy(arena, hf_words_str(&s->w, "type", "Oops")),
                                                  HF_STR("no luck"), hf_words_has(&s->w, "final"));
        request->failure->application_failure_info->next_retry_delay = hf_words_span(&s->w, "delay");
        request->failure->application_failure_info->details = hf_words_input(arena, &s->w);
        request->last_heartbeat_details = payloads(arena, hf_words_option(&s->w, "details"));
        hf_rig_send(rig, slot, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, request);
    } else if (strcmp(verb, "acancel") == 0) {
        hf_pb_respond_activity_task_canceled_request *request = HF_RIG_REQUEST(slot, respond_activity_task_canceled);
        request->namespace = HF_STR(HF_RIG_NS);
        request->task_token = token_of(rig, slot, &s->w, "a");
        request->details = hf_words_input(arena, &s->w);
        hf_rig_send(rig, slot, HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED, request);
    } else {
        hf_pb_record_activity_task_heartbeat_request *request = HF_RIG_REQUEST(slot, record_activity_task_heartbeat);
        request->namespace = HF_STR(HF_RIG_NS);
        request->task_token = token_of(rig, slot, &s->w, "a");
        request->details = payloads(arena, hf_words_option(&s->w, "details"));
        slot->call.lets_go = hf_words_has(&s->w, "leaves");
        request->holdfast_stream = hf_words_records(arena, &s->w);
        request->holdfast_request_id = hf_arena_copy(arena, hf_words_str(&s->w, "rid", ""));
        hf_rig_send(rig, slot, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT, request);
        if (slot->done && slot->call.status == HF_OK) {
            const hf_pb_record_activity_task_heartbeat_response *response = slot->call.response;
            assert_int_equal(response->cancel_requested, hf_words_has(&s->w, "asked"));
            assert_true(response->activity_paused || !hf_words_has(&s->w, "paused"));
            assert_true(response->activity_reset || !hf_words_has(&s->w, "reset"));
        }
    }
}

/* A request id that no other step has, unless the step gives one. */
static hf_str request_id_of(hf_arena *arena, const hf_words *w)
{
    static unsigned count;
    char text[32];
    (void)snprintf(text, sizeof text, "request-%u", ++count);
    return hf_arena_copy(arena, hf_words_str(w, "request", text));
}

static void do_reset(hf_rig *rig, hf_rig_call *slot, const step *s)
{
    hf_arena *arena = &slot->request;
    hf_pb_reset_workflow_execution_request *request = HF_RIG_REQUEST(slot, reset_workflow_execution);
    const char *to = hf_words_place(&s->w, 2);
    request->namespace = hf_arena_copy(arena, hf_words_str(&s->w, "ns", HF_RIG_NS));
    request->workflow_execution = execution_of(arena, &s->w);
    request->reason = HF_STR("again");
    request->request_id = request_id_of(arena, &s->w);
    request->reset_reapply_type = hf_words_number(&s->w, "reapply", 0);
    request->holdfast_point = strcmp(to, "first") == 0 ? 1 : strcmp(to, "last") == 0 ? 2 : 0;
    request->workflow_task_finish_event_id = strtoll(to, NULL, 10);
    if (strncmp(to, "activity=", 9) == 0) {
        request->holdfast_activity_id = hf_arena_copy(arena, hf_str_of(to + 9));
    }
    if (hf_words_option(&s->w, "exclude") != NULL) {
        request->reset_reapply_exclude_types.items = HF_ARENA_NEW(arena, int32_t);
        request->reset_reapply_exclude_types.items[0] = hf_words_number(&s->w, "exclude", 0);
        request->reset_reapply_exclude_types.count = 1;
    }
    hf_pb_field_mask *mask = HF_ARENA_NEW(arena, hf_pb_field_mask);
    hf_pb_workflow_execution_options *options = HF_ARENA_NEW(arena, hf_pb_workflow_execution_options);
    hf_rig_options(&s->w, arena, options, mask);
    if (mask->paths.count > 0) {
        hf_pb_post_reset_operation *operation = HF_ARENA_NEW(arena, hf_pb_post_reset_operation);
        operation->variant_case = HF_PB_POST_RESET_OPERATION_UPDATE_WORKFLOW_OPTIONS;
        operation->update_workflow_options = HF_ARENA_NEW(arena, hf_pb_post_reset_operation_update_workflow_options);
        operation->update_workflow_options->workflow_execution_options = options;
        operation->update_workflow_options->update_mask = mask;
        request->post_reset_operations.items = operation;
        request->post_reset_operations.count = 1;
    }
    if (hf_words_option(&s->w, "signal") != NULL) {
        hf_pb_post_reset_operation *operation = HF_ARENA_NEW(arena, hf_pb_post_reset_operation);
        operation->variant_case = HF_PB_POST_RESET_OPERATION_SIGNAL_WORKFLOW;
        operation->signal_workflow = HF_ARENA_NEW(arena, hf_pb_post_reset_operation_signal_workflow);
        operation->signal_workflow->signal_name = hf_arena_copy(arena, hf_words_str(&s->w, "signal", ""));
        request->post_reset_operations.items = operation;
        request->post_reset_operations.count = 1;
    }
    hf_rig_send(rig, slot, HF_METHOD_RESET_WORKFLOW_EXECUTION, request);
}

static void do_client(hf_rig *rig, hf_rig_call *slot, step *s)
{
    const char *verb = s->w.items[0];
    hf_arena *arena = &slot->request;
    if (strcmp(verb, "signal") == 0) {
        hf_pb_signal_workflow_execution_request *request = HF_RIG_REQUEST(slot, signal_workflow_execution);
        request->namespace = hf_arena_copy(arena, hf_words_str(&s->w, "ns", HF_RIG_NS));
        request->workflow_execution = execution_of(arena, &s->w);
        request->signal_name = hf_arena_copy(arena, hf_str_of(hf_words_place(&s->w, 2)));
        request->request_id = hf_arena_copy(arena, hf_words_str(&s->w, "request", ""));
        request->input = hf_words_input(arena, &s->w);
        hf_rig_send(rig, slot, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, request);
    } else if (strcmp(verb, "cancel") == 0) {
        hf_pb_request_cancel_workflow_execution_request *request =
            HF_RIG_REQUEST(slot, request_cancel_workflow_execution);
        request->namespace = HF_STR(HF_RIG_NS);
        request->workflow_execution = execution_of(arena, &s->w);
        request->first_execution_run_id = hf_arena_copy(arena, hf_words_str(&s->w, "first", ""));
        hf_rig_send(rig, slot, HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION, request);
    } else if (strcmp(verb, "terminate") == 0) {
        hf_pb_terminate_workflow_execution_request *request = HF_RIG_REQUEST(slot, terminate_workflow_execution);
        request->namespace = HF_STR(HF_RIG_NS);
        request->workflow_execution = execution_of(arena, &s->w);
        request->reason = HF_STR("enough");
        request->first_execution_run_id = hf_arena_copy(arena, hf_words_str(&s->w, "first", ""));
        hf_rig_send(rig, slot, HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, request);
    } else if (strcmp(verb, "delete") == 0) {
        hf_pb_delete_workflow_execution_request *request = HF_RIG_REQUEST(slot, delete_workflow_execution);
        request->namespace = hf_arena_copy(arena, hf_words_str(&s->w, "ns", HF_RIG_NS));
        request->workflow_execution = execution_of(arena, &s->w);
        request->holdfast_all_runs = hf_words_has(&s->w, "all");
        hf_rig_send(rig, slot, HF_METHOD_DELETE_WORKFLOW_EXECUTION, request);
    } else if (strcmp(verb, "unstick") == 0) {
        hf_pb_reset_sticky_task_queue_request *request = HF_RIG_REQUEST(slot, reset_sticky_task_queue);
        request->namespace = HF_STR(HF_RIG_NS);
        request->execution = execution_of(arena, &s->w);
        hf_rig_send(rig, slot, HF_METHOD_RESET_STICKY_TASK_QUEUE, request);
    } else if (strcmp(verb, "cluster") == 0) {
        hf_rig_send(rig, slot, HF_METHOD_GET_CLUSTER_INFO, HF_RIG_REQUEST(slot, get_cluster_info));
    } else if (strcmp(verb, "system") == 0) {
        hf_rig_send(rig, slot, HF_METHOD_GET_SYSTEM_INFO, HF_RIG_REQUEST(slot, get_system_info));
    } else if (strcmp(verb, "namespace") == 0) {
        hf_pb_describe_namespace_request *request = HF_RIG_REQUEST(slot, describe_namespace);
        request->namespace = hf_arena_copy(arena, hf_str_of(hf_words_place(&s->w, 1)));
        hf_rig_send(rig, slot, HF_METHOD_DESCRIBE_NAMESPACE, request);
    } else if (strcmp(verb, "describe") == 0) {
        hf_pb_describe_workflow_execution_request *request = HF_RIG_REQUEST(slot, describe_workflow_execution);
        request->namespace = HF_STR(HF_RIG_NS);
        request->execution = execution_of(arena, &s->w);
        hf_rig_send(rig, slot, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, request);
    } else {
        hf_pb_shutdown_worker_request *request = HF_RIG_REQUEST(slot, shutdown_worker);
        request->namespace = hf_arena_copy(arena, hf_words_str(&s->w, "ns", HF_RIG_NS));
        request->sticky_task_queue = hf_arena_copy(arena, hf_str_of(hf_words_place(&s->w, 1)));
        request->worker_instance_key = hf_arena_copy(arena, hf_words_str(&s->w, "key", ""));
        request->task_queue = hf_arena_copy(arena, hf_words_str(&s->w, "queue", ""));
        if (hf_words_option(&s->w, "type") != NULL) {
            request->task_queue_types.items = HF_ARENA_NEW(arena, int32_t);
            request->task_queue_types.items[0] = hf_words_number(&s->w, "type", 0);
            request->task_queue_types.count = 1;
        }
        hf_rig_send(rig, slot, HF_METHOD_SHUTDOWN_WORKER, request);
    }
}

/* Steps that are not calls. */
static bool do_other(hf_rig *rig, const step *s)
{
    const char *verb = s->w.items[0];
    if (strcmp(verb, "time") == 0) {
        int64_t span = hf_rig_span(hf_words_place(&s->w, 1));
        rig->now.wall += span;
        rig->now.mono += span;
    } else if (strcmp(verb, "crash") == 0) {
        hf_rig_crash(rig);
    } else if (strcmp(verb, "unwanted") == 0 || strcmp(verb, "lost") == 0 || strcmp(verb, "left") == 0) {
        const hf_rig_call *slot = hf_rig_slot(rig, hf_words_place(&s->w, 1));
        hf_str token = slot->call.method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE
                           ? hf_rig_task(rig, hf_words_place(&s->w, 1))->task_token
                           : hf_rig_activity(rig, hf_words_place(&s->w, 1))->task_token;
        hf_core_take_back(rig->core, token,
                          strcmp(verb, "lost") == 0   ? HF_HELD_BY_LOST
                          : strcmp(verb, "left") == 0 ? HF_HELD_BY_LEFT
                                                      : HF_HELD_BY_NONE,
                          rig->now);
    } else if (strcmp(verb, "until") == 0 || strcmp(verb, "gone") == 0 || strcmp(verb, "listed") == 0 ||
               strcmp(verb, "batchdone") == 0) {
        return true; /* all that is due has been done */
    } else if (strcmp(verb, "drop") == 0) {
        if (!hf_core_cancel(rig->core, &hf_rig_slot(rig, hf_words_place(&s->w, 1))->call, rig->now)) {
            fail_msg("the portion has had all the cancels that it takes");
        }
    } else {
        return false;
    }
    if (!rig->hold && rig->core != NULL) {
        (void)hf_rig_settle(rig);
    }
    return true;
}

/* ---- Expectations ------------------------------------------------------------------------------------------------ */

/* "says=TEXT": the answer, in short. */
static bool says_so(const step *s, const hf_rig_call *slot)
{
    char text[200];
    const char *expected = hf_words_option(&s->w, "says");
    hf_buf listed;
    hf_buf_init(&listed, hf_rig_heap, sizeof text - 1);
    if (hf_rig_list_text(slot, &listed) || hf_rig_stream_text(slot, &listed)) {
        (void)snprintf(text, sizeof text, "%s", hf_buf_text(&listed));
    } else {
        hf_rig_says(slot, text, sizeof text);
    }
    hf_buf_deinit(&listed);
    if (expected != NULL && strcmp(text, expected) != 0) {
        print_error("it says %s\n", text);
        return false;
    }
    return true;
}

static hf_status outcome_of_poll(hf_rig *rig, const step *s, const hf_rig_call *slot)
{
    bool asks = hf_rig_is_ask(slot->call.method);
    bool waits = strcmp(s->w.items[0], "is") != 0 && strcmp(s->w.items[0], "stream") != 0 &&
                 strcmp(s->w.items[0], "changes") != 0 && strcmp(s->w.items[0], "queues") != 0;
    const char *first = asks ? waits ? "parked" : "answer" : "task";
    const char *expected = s->expected != NULL ? s->expected : first;
    const char *is = "parked";
    if (slot->done && slot->call.status != HF_OK) {
        return slot->call.status;
    }
    if (slot->done && asks) {
        is = "answer";
    } else if (slot->done) {
        bool workflow = slot->call.method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE;
        const hf_pb_poll_workflow_task_queue_response *w = slot->call.response;
        const hf_pb_poll_activity_task_queue_response *a = slot->call.response;
        is = (workflow ? w->task_token.len : a->task_token.len) > 0 ? "task" : "empty";
    }
    if (strcmp(is, expected) == 0) {
        return says_so(s, slot) ? HF_OK : HF_ERR_AGAIN;
    }
    if (!rig->may_break) {
        print_error("this poll is %s\n", is);
    }
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
    static const char *const COMMANDS[] = {"timer ",  "untimer ", "activity ", "unactivity ", "xsignal ", "marker ",
                                           "done",    "failed",   "canceled",  "xcancel ",    "accept ",  "respond ",
                                           "reject ", "continue", "upsert ",   "remember ",   "child "};
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
    hf_words_cut(ret_step->text, &ret_step->w);
}

/* The slot with the answer; NULL = the step is no call. */
static hf_rig_call *run_step(hf_rig *rig, step *s)
{
    const char *verb = s->w.items[0];
    hf_rig_call *slot = hf_rig_slot(rig, NULL);
    if (do_other(rig, s)) {
        return NULL;
    }
    if (strcmp(verb, "poll") == 0 || strcmp(verb, "apoll") == 0) {
        do_poll(rig, s);
        const char *as = hf_words_option(&s->w, "as");
        return hf_rig_slot(rig, as != NULL ? as : verb[0] == 'p' ? "w" : "a");
    }
    hf_rig_call *asked = hf_rig_ask(rig, &s->w);
    asked = asked != NULL ? asked : hf_rig_stream(rig, &s->w);
    if (asked != NULL) {
        return asked;
    }
    if (strcmp(verb, "is") == 0) {
        return hf_rig_slot(rig, hf_words_place(&s->w, 1));
    }
    if (strcmp(verb, "start") == 0) {
        do_start(rig, slot, s);
    } else if (strcmp(verb, "complete") == 0) {
        do_complete(rig, slot, s);
    } else if (strcmp(verb, "qanswer") == 0) {
        hf_rig_answer_query(rig, slot, &s->w, token_of(rig, slot, &s->w, "w"));
    } else if (strcmp(verb, "fail") == 0) {
        do_fail(rig, slot, s);
    } else if (strcmp(verb, "acomplete") == 0 || strcmp(verb, "afail") == 0 || strcmp(verb, "acancel") == 0 ||
               strcmp(verb, "heartbeat") == 0) {
        do_activity(rig, slot, s);
    } else if (strcmp(verb, "reset") == 0) {
        const char *as = hf_words_option(&s->w, "as");
        slot = as != NULL ? hf_rig_slot(rig, as) : slot;
        do_reset(rig, slot, s);
    } else if (strcmp(verb, "signal") == 0 || strcmp(verb, "cancel") == 0 || strcmp(verb, "terminate") == 0 ||
               strcmp(verb, "unstick") == 0 || strcmp(verb, "shutdown") == 0 || strcmp(verb, "system") == 0 ||
               strcmp(verb, "cluster") == 0 || strcmp(verb, "namespace") == 0 || strcmp(verb, "describe") == 0 ||
               strcmp(verb, "delete") == 0) {
        do_client(rig, slot, s);
    } else if (!hf_rig_control(rig, slot, &s->w) && !hf_rig_client(rig, slot, &s->w) &&
               !hf_rig_registry(rig, slot, &s->w)) {
        fail_msg("'%s' is not a step", verb);
    }
    return slot;
}

static hf_status outcome_of(hf_rig *rig, step *s)
{
    const hf_rig_call *slot = run_step(rig, s);
    if (slot == NULL) {
        return HF_OK;
    }
    if (slot != hf_rig_slot(rig, NULL)) {
        return outcome_of_poll(rig, s, slot);
    }
    if (slot->done && slot->call.status == HF_OK && !says_so(s, slot)) {
        return HF_ERR_AGAIN;
    }
    return slot->done ? slot->call.status : HF_ERR_AGAIN;
}

hf_rig_call *hf_rig_step(hf_rig *rig, const char *text)
{
    step s;
    parse(text, &s);
    return s.w.count > 0 ? run_step(rig, &s) : NULL;
}

hf_status hf_rig_try(hf_rig *rig, const char *text)
{
    step s;
    parse(text, &s);
    return s.w.count > 0 ? outcome_of(rig, &s) : HF_OK;
}

static bool is_among(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void do_one(hf_rig *rig, const char *text)
{
    step s;
    parse(text, &s);
    if (s.w.count == 0) {
        return;
    }
    hf_status status = outcome_of(rig, &s);
    static const char *const WAITING[] = {"poll",    "apoll",    "is",     "query",   "update",
                                          "updpoll", "updstart", "stream", "changes", "queues"};
    static const char *const OUTCOMES[] = {"task", "parked", "empty", "answer"};
    bool poll = is_among(s.w.items[0], WAITING, HF_COUNT_OF(WAITING));
    bool words_of_poll = poll && (s.expected == NULL || is_among(s.expected, OUTCOMES, HF_COUNT_OF(OUTCOMES)));
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
