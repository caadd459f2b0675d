/* hf_result: long polls for the event that closes the run, and the result that this event holds. */
#include "base/env.h"
#include "client/errand.h"
#include "fiber/sched/wait.h"
#include "fiber/verbs.h"
#include "history/reason.h"
#include "service/codec.h"

#include <stdio.h>

enum { POLL_SECONDS = 20 };

/* `failure` has the kind. */
static hf_status closed_as(const char *type, const char *what, hf_str reason, hf_pb_failure *failure)
{
    char text[HF_MESSAGE_LEN_MAX];
    hf_assert(type != NULL && what != NULL);
    (void)snprintf(text, sizeof text, "%s%s%.*s", what, reason.len > 0 ? ": " : "", HF_STR_ARGS(reason));
    failure->message = hf_str_of(text);
    return hf_failure_raise(HF_ERR_FAILED, type, failure);
}

/* A run that exceeded its run_timeout may be followed by another run; the execution_timeout, of all runs, is final. */
static hf_status timed_out(const hf_pb_workflow_execution_timed_out_event_attributes *attrs)
{
    bool is_last = attrs->retry_state == HF_RETRY_STATE_TIMEOUT;
    hf_pb_timeout_failure_info info = {.timeout_type = HF_TIMEOUT_TYPE_START_TO_CLOSE};
    return closed_as(
        "WorkflowTimedOut", "the workflow timed out",
        is_last ? HF_STR("it took longer than its execution_timeout")
                : HF_STR("its run took longer than its run_timeout"),
        &(hf_pb_failure){.failure_info_case = HF_PB_FAILURE_TIMEOUT_FAILURE_INFO, .timeout_failure_info = &info});
}

static hf_status terminated(const hf_pb_workflow_execution_terminated_event_attributes *attrs)
{
    hf_pb_terminated_failure_info info = {.identity = attrs->identity};
    return closed_as(
        "WorkflowTerminated", "the workflow was terminated", hf_terminated_why(attrs),
        &(hf_pb_failure){.failure_info_case = HF_PB_FAILURE_TERMINATED_FAILURE_INFO, .terminated_failure_info = &info});
}

/* Converts the close event into the result. `*ret_next` is the run that continues in its place; empty = none. */
static hf_status outcome_of(const hf_pb_history_event *event, hf_payload *ret_out, hf_str *ret_next)
{
    switch (event->attributes_case) {
    case HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_COMPLETED_EVENT_ATTRIBUTES:
        *ret_next = event->workflow_execution_completed_event_attributes->new_execution_run_id;
        return ret_next->len > 0
                   ? HF_OK
                   : hf_payload_decode(event->workflow_execution_completed_event_attributes->result, NULL, ret_out);
    case HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES:
        *ret_next = event->workflow_execution_failed_event_attributes->new_execution_run_id;
        return ret_next->len > 0
                   ? HF_OK
                   : hf_failure_raise_of(HF_ERR_FAILED, event->workflow_execution_failed_event_attributes->failure);
    case HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_TIMED_OUT_EVENT_ATTRIBUTES:
        *ret_next = event->workflow_execution_timed_out_event_attributes->new_execution_run_id;
        return ret_next->len > 0 ? HF_OK : timed_out(event->workflow_execution_timed_out_event_attributes);
    case HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CONTINUED_AS_NEW_EVENT_ATTRIBUTES:
        *ret_next = event->workflow_execution_continued_as_new_event_attributes->new_execution_run_id;
        return HF_OK;
    case HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_TERMINATED_EVENT_ATTRIBUTES:
        return terminated(event->workflow_execution_terminated_event_attributes);
    default:
        return hf_raise(HF_ERR_INVALID, "the service answered with an event that does not close a run");
    }
}

/* A poll that does not wait returns the last event, whatever its type. */
static bool closes(const hf_pb_history_event *event)
{
    switch (event->attributes_case) {
    case HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_COMPLETED_EVENT_ATTRIBUTES:
    case HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES:
    case HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_TIMED_OUT_EVENT_ATTRIBUTES:
    case HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CONTINUED_AS_NEW_EVENT_ATTRIBUTES:
    case HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CANCELED_EVENT_ATTRIBUTES:
    case HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_TERMINATED_EVENT_ATTRIBUTES:
        return true;
    default:
        return false;
    }
}

/* One long poll, or, with a timeout of 0, one that does not wait. `*ret_event` NULL: the workflow still runs. */
static hf_status poll_close(hf_errand *e, const hf_execution *execution, hf_str run_id, hf_str *token, hf_span timeout,
                            const hf_pb_history_event **ret_event)
{
    hf_pb_workflow_execution which = {.workflow_id = execution->id, .run_id = run_id};
    hf_pb_get_workflow_execution_history_request request = {
        .namespace = execution->namespace_,
        .execution = &which,
        .next_page_token = *token,
        .wait_new_event = timeout.ns > 0,
        .history_event_filter_type = HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
    };
    e->timeout = timeout.ns > 0 ? timeout : hf_nanoseconds(0);
    HF_TRY(hf_errand_ask(e, execution->service, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request));
    const hf_pb_get_workflow_execution_history_response *response = e->call.response;
    hf_assert(response != NULL); /* service-V3 */
    hf_pb_history *history = HF_ARENA_NEW(&e->arena, hf_pb_history);
    if (history == NULL) {
        return hf_fail(&e->op, HF_ERR_NOMEM, "no memory for a close event");
    }
    HF_TRY(hf_pb_decode(&e->op, &hf_pb_history_type, response->history, &e->arena, history));
    HF_TRY(hf_codec_decode(&e->op, execution->service->codec, &hf_pb_history_type, history, &e->arena, false));
    *token = response->next_page_token;
    const hf_pb_history_event *last =
        history->events.count > 0 ? &history->events.items[history->events.count - 1] : NULL;
    *ret_event = last != NULL && closes(last) ? last : NULL;
    return HF_OK;
}

/* A workflow may take months, and each poll uses memory of the arena. So it is freed, and only the two texts are
 * kept. */
static void begin_look(hf_errand *e, hf_str *run_id, hf_str *token)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    *run_id = hf_arena_copy(&arena, *run_id);
    *token = hf_arena_copy(&arena, *token);
    hf_arena_deinit(&e->arena);
    e->arena = arena;
}

/* Identifies the event that closed a run: when the history is read, the workflow id may belong to another run. */
typedef struct mark {
    int64_t event_id;
    int32_t type;
    int64_t ns;
} mark;

static mark mark_of(const hf_pb_history_event *event)
{
    return (mark){event->event_id, event->event_type, hf_pb_timestamp_time(event->event_time).ns};
}

/* One page of the history; `text` is the reason of the last request to cancel in it. True: it ends with that event. */
static bool read_page(hf_errand *e, const hf_execution *execution, hf_str run_id, hf_str *token, mark end_of_run,
                      char *text)
{
    bool is_end = false;
    hf_pb_workflow_execution which = {.workflow_id = execution->id, .run_id = run_id};
    hf_pb_get_workflow_execution_history_request request = {
        .namespace = execution->namespace_, .execution = &which, .next_page_token = *token};
    hf_pb_history history = {.events = {NULL, 0}};
    *token = (hf_str){NULL, 0};
    if (hf_errand_ask(e, execution->service, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request) != HF_OK) {
        return false;
    }
    const hf_pb_get_workflow_execution_history_response *response = e->call.response;
    hf_assert(response != NULL); /* service-V3 */
    if (hf_pb_decode(&e->op, &hf_pb_history_type, response->history, &e->arena, &history) != HF_OK) {
        return false;
    }
    for (size_t i = 0; i < history.events.count; i++) {
        const hf_pb_history_event *event = &history.events.items[i];
        mark at = mark_of(event);
        is_end = at.event_id == end_of_run.event_id && at.type == end_of_run.type && at.ns == end_of_run.ns;
        if (event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CANCEL_REQUESTED_EVENT_ATTRIBUTES) {
            (void)snprintf(text, HF_MESSAGE_LEN_MAX, "%.*s",
                           HF_STR_ARGS(event->workflow_execution_cancel_requested_event_attributes->cause));
        }
    }
    *token = response->next_page_token;
    return is_end;
}

/* The event that closed the run does not have the reason of the cancel; its history has. If there is no reason, or
 * it cannot be read, the outcome is reported without it. */
static hf_status canceled_as(hf_errand *e, const hf_execution *execution, hf_str run_id, mark end_of_run)
{
    char reason[HF_MESSAGE_LEN_MAX] = "";
    hf_str token = {NULL, 0};
    bool is_it = false;
    e->timeout = hf_nanoseconds(0);
    do {
        begin_look(e, &run_id, &token);
        is_it = read_page(e, execution, run_id, &token, end_of_run, reason);
    } while (token.len > 0);
    hf_op_init(&e->op);
    hf_pb_canceled_failure_info info = {.details = NULL};
    return closed_as(
        "WorkflowCanceled", "the workflow was canceled", hf_str_of(is_it ? reason : ""),
        &(hf_pb_failure){.failure_info_case = HF_PB_FAILURE_CANCELED_FAILURE_INFO, .canceled_failure_info = &info});
}

/* A server that comes back goes on with the workflow, and so the wait goes on, too. */
static bool is_out_of_reach(const hf_execution *execution, hf_status status)
{
    return execution->service->is_remote && (status == HF_ERR_UNAVAILABLE || status == HF_ERR_TIMEOUT);
}

/* True: the outcome is in `*ret_status`, and its failure was raised. False: the errand failed. */
static bool wait_for_close(hf_errand *e, hf_execution *execution, int64_t until_ns, hf_payload *ret_out,
                           hf_status *ret_status)
{
    hf_assert(execution->id.len > 0);
    hf_str run_id = execution->run_id;
    hf_str token = {NULL, 0};
    for (;;) {
        int64_t left = hf_errand_left(until_ns);
        hf_span poll = hf_seconds(POLL_SECONDS);
        poll.ns = left < poll.ns ? left : poll.ns; /* the last look does not wait */
        const hf_pb_history_event *event = NULL;
        hf_status status = poll_close(e, execution, run_id, &token, poll, &event);
        if (status != HF_OK && (left <= 0 || !is_out_of_reach(execution, status))) {
            return false;
        }
        if (status != HF_OK) { /* the poll has waited for its time, so this is not a busy loop */
            hf_op_init(&e->op);
        }
        if (event == NULL && left <= 0) {
            (void)hf_fail(&e->op, HF_ERR_TIMEOUT, "workflow '%s' still runs", execution->id.data);
            return false;
        }
        hf_str next = {NULL, 0};
        if (event != NULL) {
            *ret_status = event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CANCELED_EVENT_ATTRIBUTES
                              ? canceled_as(e, execution, run_id, mark_of(event))
                              : outcome_of(event, ret_out, &next);
            if (next.len == 0) {
                return true;
            }
            run_id = next;
            token = (hf_str){NULL, 0};
        }
        begin_look(e, &run_id, &token);
    }
}

hf_status hf_result_with(hf_execution *execution, hf_payload *ret_out, const hf_wait_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_result));
    HF_OPTIONS(hf_wait_options, options, hf_result);
    if (execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_result needs an execution");
    }
    int64_t until = hf_errand_until(options->timeout);
    hf_errand e;
    hf_errand_begin(&e, "hf_result", execution->id);
    hf_status status = HF_OK;
    bool is_told = wait_for_close(&e, execution, until, ret_out, &status);
    hf_status ended = hf_errand_end(&e);
    return is_told ? status : ended;
}
