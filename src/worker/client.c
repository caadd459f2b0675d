/* What a program asks of a service: start, result, signal, cancel, terminate. Each is one call, but for the result, which is
 * a row of long polls for the event that closes the run. */
#include "base/span.h"
#include "service/call.h"
#include "worker/data.h"

#include "fiber/sched/wait.h"
#include "fiber/verbs.h"

#include <holdfast/service.h>

#include <stdio.h>

enum {
    POLL_SECONDS = 20,
    TEXT_LEN_MAX = HF_KEY_LEN_MAX,
    SHOWN_LEN_MAX = 120 /* of an id in a sentence: the reason must fit, too */
};

struct hf_execution {
    hf_service *service;
    hf_arena arena; /* the texts below; this struct, too */
    hf_str name_space;
    hf_str id;
    hf_str run_id; /* may be empty */
};

/* One call and what it needs. */
typedef struct errand {
    hf_arena arena;
    hf_op op;
    hf_call call;
    const char *verb;             /* what the program called, for its failure ... */
    hf_str id;                    /* ... and of which workflow */
    hf_span timeout;              /* of a long poll; 0 = none */
    _Alignas(16) char room[1536]; /* for the arena: what most errands need */
} errand;

static void begin(errand *e, const char *verb, hf_str id)
{
    e->verb = verb;
    e->id = id;
    hf_arena_init_in(&e->arena, hf_data_memory(), e->room, sizeof e->room);
    hf_op_init(&e->op);
    e->timeout = hf_nanoseconds(0);
}

/* Frees everything, and tells the caller what went wrong. */
static hf_status end(errand *e)
{
    hf_arena_deinit(&e->arena);
    return e->op.status == HF_OK ? HF_OK : hf_data_give_up(&e->op);
}

/* A failure begins with the verb; here the workflow comes behind it. */
static hf_status name_workflow(errand *e)
{
    char text[HF_MESSAGE_LEN_MAX];
    size_t len = strlen(e->verb);
    if (strncmp(e->op.message, e->verb, len) != 0) {
        return e->op.status;
    }
    (void)snprintf(text, sizeof text, "%s", e->op.message + len);
    int shown = e->id.len > SHOWN_LEN_MAX ? SHOWN_LEN_MAX : (int)e->id.len;
    bool is_cut = (size_t)shown < e->id.len;
    while (is_cut && shown > 0 && ((unsigned char)e->id.data[shown] & 0xc0) == 0x80) {
        shown--; /* not within a character */
    }
    return hf_fail_at(&e->op, e->op.status, e->verb, "%s of workflow '%.*s%s'%s", e->verb, shown, e->id.data,
                      is_cut ? "..." : "", text);
}

static hf_status ask(errand *e, hf_service *service, hf_method method, const void *request)
{
    if (e->arena.status != HF_OK) {
        (void)hf_fail(&e->op, HF_ERR_NOMEM, "%s: no memory to ask", e->verb);
        return name_workflow(e);
    }
    hf_call_init(&e->call, method, request, &e->arena, NULL);
    e->call.timeout = e->timeout;
    e->call.in_process = true;
    e->call.verb = e->verb;
    return hf_service_ask(&e->op, service, &e->call) == HF_OK ? HF_OK : name_workflow(e);
}

static hf_str text_or(const char *text, const char *by_default)
{
    return hf_str_of(text != NULL ? text : by_default);
}

/* What every call with options of this kind looks at before it asks. */
static hf_status check_request(hf_op *op, const char *verb, const hf_request_options *o)
{
    HF_TRY(hf_text_check(op, verb, ".request_id", o->request_id, 1, TEXT_LEN_MAX));
    return hf_text_check(op, verb, ".reason", o->reason, 0, TEXT_LEN_MAX);
}

/* The caller's word, or a random one in `room`. */
static hf_str id_or_random(hf_op *op, const char *given, char room[HF_UUID_LEN])
{
    if (given != NULL) {
        return hf_str_of(given);
    }
    if (hf_uuid_make(NULL, room) != HF_OK) {
        (void)hf_fail(op, HF_ERR_IO, "no random numbers for an id");
        return (hf_str){NULL, 0};
    }
    return hf_str_of(room);
}

/* ---- Executions ------------------------------------------------------------------------------------------------------------ */

static hf_status execution_make(hf_op *op, hf_service *service, hf_str name_space, hf_str id, hf_str run_id,
                                hf_execution **ret_execution)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_data_memory());
    hf_execution *execution = HF_ARENA_NEW(&arena, hf_execution);
    hf_str texts[] = {hf_arena_copy(&arena, name_space), hf_arena_copy(&arena, id), hf_arena_copy(&arena, run_id)};
    if (arena.status != HF_OK) {
        hf_arena_deinit(&arena);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for an execution");
    }
    *execution = (hf_execution){service, arena, texts[0], texts[1], texts[2]};
    (void)atomic_fetch_add_explicit(&service->executions, 1, memory_order_relaxed);
    *ret_execution = execution;
    return HF_OK;
}

static hf_status check_execution(hf_op *op, const char *id, const hf_execution_options *o)
{
    HF_TRY(hf_text_check(op, "hf_execution_new", "the id", id != NULL ? id : "", 1, TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, "hf_execution_new", ".namespace_", o->namespace_, 1, TEXT_LEN_MAX));
    return hf_text_check(op, "hf_execution_new", ".run_id", o->run_id, 0, TEXT_LEN_MAX);
}

hf_status hf_execution_new_with(hf_service *service, const char *id, hf_execution **ret_execution,
                                const hf_execution_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_execution_new));
    HF_OPTIONS(hf_execution_options, options, hf_execution_new);
    if (service == NULL || ret_execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_execution_new needs a service and a place for the execution");
    }
    hf_op op;
    hf_op_init(&op);
    hf_status status = check_execution(&op, id, options);
    if (status == HF_OK) {
        status = execution_make(&op, service, text_or(options->namespace_, "default"), hf_str_of(id),
                                text_or(options->run_id, ""), ret_execution);
    }
    return status == HF_OK ? HF_OK : hf_data_give_up(&op);
}

void hf_execution_free(hf_execution *execution)
{
    if (execution != NULL) {
        hf_arena arena = execution->arena; /* it lies in there itself */
        hf_service *service = execution->service;
        hf_arena_deinit(&arena);
        (void)atomic_fetch_sub_explicit(&service->executions, 1,
                                        memory_order_release); /* it may be closed from here on */
    }
}

const char *hf_execution_id(const hf_execution *execution)
{
    return execution != NULL ? execution->id.data : "";
}

const char *hf_execution_run_id(const hf_execution *execution)
{
    return execution != NULL ? execution->run_id.data : "";
}

/* ---- Start ----------------------------------------------------------------------------------------------------------------- */

static hf_pb_duration duration_of(hf_span span)
{
    return span.ns > 0 && span.ns != INT64_MAX ? hf_pb_duration_of(span) : (hf_pb_duration){0};
}

static hf_pb_retry_policy *retry_of(hf_arena *arena, const hf_start_options *o)
{
    if (o->attempts_max <= 1 && o->attempts_max != HF_UNLIMITED) {
        return NULL; /* workflows are not tried again unless asked for */
    }
    hf_pb_retry_policy *retry = HF_ARENA_NEW(arena, hf_pb_retry_policy);
    if (retry != NULL) {
        retry->initial_interval = hf_pb_duration_of(o->retry_initial.ns > 0 ? o->retry_initial : hf_seconds(1));
        retry->backoff_coefficient = o->retry_coefficient > 0 ? o->retry_coefficient : 2.0;
        retry->maximum_interval = duration_of(o->retry_max);
        retry->maximum_attempts = o->attempts_max > 0 ? o->attempts_max : 0;
    }
    return retry;
}

static int32_t reuse_of(hf_id_reuse reuse)
{
    static const int32_t MAP[] = {
        [HF_ID_REUSE_DEFAULT] = HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
        [HF_ID_REUSE_ALLOW] = HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
        [HF_ID_REUSE_FAILED_ONLY] = HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
        [HF_ID_REUSE_REJECT] = HF_WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
    };
    return (size_t)reuse < HF_COUNT_OF(MAP) ? MAP[reuse] : MAP[0];
}

static int32_t conflict_of(hf_id_conflict conflict)
{
    static const int32_t MAP[] = {
        [HF_ID_CONFLICT_DEFAULT] = HF_WORKFLOW_ID_CONFLICT_POLICY_FAIL,
        [HF_ID_CONFLICT_FAIL] = HF_WORKFLOW_ID_CONFLICT_POLICY_FAIL,
        [HF_ID_CONFLICT_USE_EXISTING] = HF_WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
        [HF_ID_CONFLICT_TERMINATE] = HF_WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
    };
    return (size_t)conflict < HF_COUNT_OF(MAP) ? MAP[conflict] : MAP[0];
}

static hf_status check_start(hf_op *op, const char *type, hf_payload in, const hf_start_options *o)
{
    static const char VERB[] = "hf_start";
    const struct {
        const char *what;
        hf_span span;
    } spans[] = {
        {".execution_timeout", o->execution_timeout},
        {".run_timeout", o->run_timeout},
        {".task_timeout", o->task_timeout},
        {".retry_initial", o->retry_initial},
        {".retry_max", o->retry_max},
    };
    HF_TRY(hf_text_check(op, VERB, "the type", type != NULL ? type : "", 1, TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".id", o->id, 1, TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".task_queue", o->task_queue, 1, HF_QUEUE_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".namespace_", o->namespace_, 1, TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".request_id", o->request_id, 1, TEXT_LEN_MAX));
    for (size_t i = 0; i < HF_COUNT_OF(spans); i++) {
        HF_TRY(hf_span_check_bound(op, VERB, spans[i].what, spans[i].span));
    }
    if (o->attempts_max < HF_UNLIMITED) {
        return hf_fail_at(op, HF_ERR_INVALID, VERB,
                          "hf_start: .attempts_max is a number of runs, HF_OFF or HF_UNLIMITED, not %d",
                          o->attempts_max);
    }
    return hf_payload_check(op, "the input of the workflow", in);
}

static hf_status start(errand *e, hf_service *service, const char *type, hf_payload in, hf_execution **ret_execution,
                       const hf_start_options *o)
{
    char id[HF_UUID_LEN];
    hf_pb_workflow_type workflow_type = {.name = hf_str_of(type)};
    hf_pb_task_queue queue = {.name = text_or(o->task_queue, "default"), .kind = HF_TASK_QUEUE_KIND_NORMAL};
    hf_pb_start_workflow_execution_request request = {
        .namespace = text_or(o->namespace_, "default"),
        .workflow_id = id_or_random(&e->op, o->id, id),
        .workflow_type = &workflow_type,
        .task_queue = &queue,
        .input = hf_payload_encode(&e->arena, in),
        .workflow_execution_timeout = duration_of(o->execution_timeout),
        .workflow_run_timeout = duration_of(o->run_timeout),
        .workflow_task_timeout = duration_of(o->task_timeout),
        .identity = HF_STR("client"),
        .workflow_id_reuse_policy = reuse_of(o->id_reuse),
        .workflow_id_conflict_policy = conflict_of(o->id_conflict),
        .retry_policy = retry_of(&e->arena, o),
    };
    char request_id[HF_UUID_LEN]; /* an id that nobody else has says as well that it is the same request */
    request.request_id =
        o->id == NULL && o->request_id == NULL ? request.workflow_id : id_or_random(&e->op, o->request_id, request_id);
    HF_TRY(e->op.status);
    e->id = request.workflow_id;
    HF_TRY(ask(e, service, HF_METHOD_START_WORKFLOW_EXECUTION, &request));
    const hf_pb_start_workflow_execution_response *response = e->call.response;
    if (ret_execution == NULL) {
        return HF_OK;
    }
    return execution_make(&e->op, service, request.namespace, request.workflow_id, response->run_id, ret_execution);
}

hf_status hf_start_with(hf_service *service, const char *type, hf_payload in, hf_execution **ret_execution,
                        const hf_start_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_start));
    HF_OPTIONS(hf_start_options, options, hf_start);
    if (service == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_start needs a service");
    }
    errand e;
    begin(&e, "hf_start", HF_STR(""));
    if (check_start(&e.op, type, in, options) == HF_OK) {
        (void)start(&e, service, type, in, ret_execution, options);
    }
    return end(&e);
}

/* ---- Result ---------------------------------------------------------------------------------------------------------------- */

static hf_status closed_as(const char *type, const char *what, hf_str reason)
{
    char text[HF_MESSAGE_LEN_MAX];
    (void)snprintf(text, sizeof text, "%s%s%.*s", what, reason.len > 0 ? ": " : "", HF_STR_ARGS(reason));
    return hf_failure_raise(HF_ERR_FAILED, type, hf_str_of(text), NULL);
}

/* A run that passed its own bound might be followed by another one; the bound of all runs is the end. */
static hf_status timed_out(const hf_pb_workflow_execution_timed_out_event_attributes *attrs)
{
    bool is_last = attrs->retry_state == HF_RETRY_STATE_TIMEOUT;
    return closed_as("WorkflowTimedOut", "the workflow timed out",
                     is_last ? HF_STR("it took longer than its execution_timeout")
                             : HF_STR("its run took longer than its run_timeout"));
}

/* The close event as a result. `*ret_next` is the run that goes on in its place; empty = none. */
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
        return closed_as("WorkflowTerminated", "the workflow was terminated",
                         event->workflow_execution_terminated_event_attributes->reason);
    default:
        return hf_raise(HF_ERR_INVALID, "the service gave an event that closes nothing");
    }
}

/* A look that does not wait is given the last event, whatever it is. */
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

/* One long poll, or a look with a timeout of 0. `*ret_event` NULL: it still runs. */
static hf_status poll_close(errand *e, const hf_execution *execution, hf_str run_id, hf_str *token, hf_span timeout,
                            const hf_pb_history_event **ret_event)
{
    hf_pb_workflow_execution which = {.workflow_id = execution->id, .run_id = run_id};
    hf_pb_get_workflow_execution_history_request request = {
        .namespace = execution->name_space,
        .execution = &which,
        .next_page_token = *token,
        .wait_new_event = timeout.ns > 0,
        .history_event_filter_type = HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
    };
    e->timeout = timeout.ns > 0 ? timeout : hf_nanoseconds(0);
    HF_TRY(ask(e, execution->service, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request));
    const hf_pb_get_workflow_execution_history_response *response = e->call.response;
    hf_pb_history *history = HF_ARENA_NEW(&e->arena, hf_pb_history);
    if (history == NULL) {
        return hf_fail(&e->op, HF_ERR_NOMEM, "no memory for a close event");
    }
    HF_TRY(hf_pb_decode(&e->op, &hf_pb_history_type, response->history, &e->arena, history));
    *token = response->next_page_token;
    const hf_pb_history_event *last =
        history->events.count > 0 ? &history->events.items[history->events.count - 1] : NULL;
    *ret_event = last != NULL && closes(last) ? last : NULL;
    return HF_OK;
}

/* A workflow may take months, and every look leaves something behind: only the two texts are taken along. */
static void begin_look(errand *e, hf_str *run_id, hf_str *token)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_data_memory());
    *run_id = hf_arena_copy(&arena, *run_id);
    *token = hf_arena_copy(&arena, *token);
    hf_arena_deinit(&e->arena);
    e->arena = arena;
}

/* Which event closed a run: the id may have passed to another one when its history is read. */
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
static bool read_page(errand *e, const hf_execution *execution, hf_str run_id, hf_str *token, mark end_of_run,
                      char *text)
{
    bool is_end = false;
    hf_pb_workflow_execution which = {.workflow_id = execution->id, .run_id = run_id};
    hf_pb_get_workflow_execution_history_request request = {
        .namespace = execution->name_space, .execution = &which, .next_page_token = *token};
    hf_pb_history history = {.events = {NULL, 0}};
    *token = (hf_str){NULL, 0};
    if (ask(e, execution->service, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request) != HF_OK) {
        return false;
    }
    const hf_pb_get_workflow_execution_history_response *response = e->call.response;
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

/* The event that closed the run does not say why it was to cancel; its history does. Without one, or when it cannot be read,
 * the outcome is told without the reason. */
static hf_status canceled_as(errand *e, const hf_execution *execution, hf_str run_id, mark end_of_run)
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
    return closed_as("WorkflowCanceled", "the workflow was canceled", hf_str_of(is_it ? reason : ""));
}

/* True: the outcome is in `*ret_status`, told already. False: the errand failed. */
static bool wait_for_close(errand *e, hf_execution *execution, int64_t until_ns, hf_payload *ret_out,
                           hf_status *ret_status)
{
    hf_str run_id = execution->run_id;
    hf_str token = {NULL, 0};
    for (;;) {
        int64_t left = until_ns == INT64_MAX ? INT64_MAX : until_ns - hf_now(NULL).ns;
        hf_span poll = hf_seconds(POLL_SECONDS);
        poll.ns = left < poll.ns ? left : poll.ns; /* the last look does not wait */
        const hf_pb_history_event *event = NULL;
        if (poll_close(e, execution, run_id, &token, poll, &event) != HF_OK) {
            return false;
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
    int64_t span = options->timeout.ns != 0 ? options->timeout.ns : INT64_MAX;
    int64_t now = hf_now(NULL).ns;
    int64_t until = span > INT64_MAX - now ? INT64_MAX : now + span;
    errand e;
    begin(&e, "hf_result", execution->id);
    hf_status status = HF_OK;
    bool is_told = wait_for_close(&e, execution, until, ret_out, &status);
    hf_status ended = end(&e);
    return is_told ? status : ended;
}

/* ---- Signal, cancel, terminate ------------------------------------------------------------------------------------------------ */

hf_status hf_signal_with(hf_execution *execution, const char *name, hf_payload in, const hf_request_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_signal));
    HF_OPTIONS(hf_request_options, options, hf_signal);
    if (execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_signal needs an execution");
    }
    errand e;
    char request_id[HF_UUID_LEN];
    begin(&e, "hf_signal", execution->id);
    if (hf_text_check(&e.op, "hf_signal", "the name", name != NULL ? name : "", 1, TEXT_LEN_MAX) != HF_OK ||
        check_request(&e.op, "hf_signal", options) != HF_OK ||
        hf_payload_check(&e.op, "the input of the signal", in) != HF_OK) {
        return end(&e);
    }
    hf_pb_workflow_execution which = {.workflow_id = execution->id, .run_id = execution->run_id};
    hf_pb_signal_workflow_execution_request request = {
        .namespace = execution->name_space,
        .workflow_execution = &which,
        .signal_name = hf_str_of(name),
        .input = hf_payload_encode(&e.arena, in),
        .identity = HF_STR("client"),
        .request_id = id_or_random(&e.op, options->request_id, request_id),
    };
    if (e.op.status == HF_OK) {
        (void)ask(&e, execution->service, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &request);
    }
    return end(&e);
}

hf_status hf_cancel_with(hf_execution *execution, const hf_request_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_cancel));
    HF_OPTIONS(hf_request_options, options, hf_cancel);
    if (execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_cancel needs an execution");
    }
    errand e;
    char request_id[HF_UUID_LEN];
    begin(&e, "hf_cancel", execution->id);
    if (check_request(&e.op, "hf_cancel", options) != HF_OK) {
        return end(&e);
    }
    hf_pb_workflow_execution which = {.workflow_id = execution->id, .run_id = execution->run_id};
    hf_pb_request_cancel_workflow_execution_request request = {
        .namespace = execution->name_space,
        .workflow_execution = &which,
        .identity = HF_STR("client"),
        .request_id = id_or_random(&e.op, options->request_id, request_id),
        .reason = text_or(options->reason, ""),
    };
    if (e.op.status == HF_OK) {
        (void)ask(&e, execution->service, HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION, &request);
    }
    return end(&e);
}

hf_status hf_terminate_with(hf_execution *execution, const hf_request_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_terminate));
    HF_OPTIONS(hf_request_options, options, hf_terminate);
    if (execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_terminate needs an execution");
    }
    errand e;
    begin(&e, "hf_terminate", execution->id);
    if (check_request(&e.op, "hf_terminate", options) != HF_OK) {
        return end(&e);
    }
    hf_pb_workflow_execution which = {.workflow_id = execution->id, .run_id = execution->run_id};
    hf_pb_terminate_workflow_execution_request request = {
        .namespace = execution->name_space,
        .workflow_execution = &which,
        .identity = HF_STR("client"),
        .reason = text_or(options->reason, ""),
    };
    (void)ask(&e, execution->service, HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, &request);
    return end(&e);
}
