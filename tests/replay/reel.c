/* See reel.h. */
#include "replay/reel.h"

#include "replay/programs.h"
#include "unit/worker/play.h"

#include "history/history.h"
#include "history/pb_json_read.h"
#include "wire/pb_json.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PAGE_COUNT = 3, TEXT_LEN_MAX = 1 << 26 };

static void *heap_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len);
}

static void heap_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

static const hf_allocator HEAP = {heap_allocate, heap_release, NULL};

typedef struct step {
    size_t started; /* place of its WorkflowTaskStarted */
    int64_t completed_event_id;
    uint32_t rules; /* that hold in it */
} step;

struct reel {
    hf_arena arena;
    hf_buf bytes;                /* of all events, and of the two that follow */
    size_t *ends;                /* of each event in bytes */
    hf_pb_history_event *events; /* decoded */
    size_t count;                /* with the two */
    step *steps;
    size_t steps_count;
    hf_str run_id;
    hf_str type;
};

/* ---- Reading ------------------------------------------------------------------------------------------------------ */

static void must(const hf_op *op, hf_status status)
{
    if (status != HF_OK) {
        fail_msg("%s", op->message);
    }
}

/* A workflow task behind the last event, which makes all steps before it old ones. */
static void append_task(reel *r, const hf_pb_history_event *last)
{
    hf_pb_workflow_task_scheduled_event_attributes scheduled = {.attempt = 1};
    hf_pb_workflow_task_started_event_attributes started = {.scheduled_event_id = last->event_id + 1};
    hf_pb_history_event event = {.event_id = last->event_id + 1,
                                 .event_time = last->event_time,
                                 .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
                                 .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_SCHEDULED_EVENT_ATTRIBUTES,
                                 .workflow_task_scheduled_event_attributes = &scheduled};
    hf_pb_encode_field(1, &hf_pb_history_event_type, &event, &r->bytes);
    event = (hf_pb_history_event){.event_id = last->event_id + 2,
                                  .event_time = last->event_time,
                                  .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_STARTED,
                                  .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_STARTED_EVENT_ATTRIBUTES,
                                  .workflow_task_started_event_attributes = &started};
    hf_pb_encode_field(1, &hf_pb_history_event_type, &event, &r->bytes);
}

static void decode(reel *r)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_history *history = HF_ARENA_NEW(&r->arena, hf_pb_history);
    must(&op, hf_pb_decode(&op, &hf_pb_history_type,
                           hf_arena_copy(&r->arena, hf_str_of_len(r->bytes.data, r->bytes.len)), &r->arena, history));
    r->events = history->events.items;
    r->count = history->events.count;
}

static void find_steps(reel *r)
{
    uint32_t rules = 0;
    for (size_t i = 0; i + 1 < r->count; i++) {
        const hf_pb_history_event *event = &r->events[i];
        const hf_pb_history_event *next = &r->events[i + 1];
        if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_FAILED &&
            event->workflow_task_failed_event_attributes->new_run_id.len > 0) {
            r->run_id = event->workflow_task_failed_event_attributes->new_run_id; /* a reset has made it */
        }
        if (next->event_type != HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED) {
            continue;
        }
        const hf_pb_workflow_task_completed_metadata *sdk =
            next->workflow_task_completed_event_attributes->sdk_metadata;
        for (size_t k = 0; sdk != NULL && k < sdk->lang_used_flags.count; k++) {
            rules |= UINT32_C(1) << sdk->lang_used_flags.items[k] % 32;
        }
        for (size_t k = 0; sdk != NULL && k < sdk->core_used_flags.count; k++) {
            uint32_t flag = sdk->core_used_flags.items[k];
            rules |= flag > HF_WF_FLAG_BASE ? UINT32_C(1) << (flag - HF_WF_FLAG_BASE) % 32 : 0;
        }
        r->steps[r->steps_count++] = (step){i, next->event_id, rules};
    }
}

static reel *reel_empty(void)
{
    reel *r = calloc(1, sizeof *r);
    hf_arena_init(&r->arena, HEAP);
    hf_buf_init(&r->bytes, HEAP, TEXT_LEN_MAX);
    return r;
}

/* All the rest, from its bytes. */
static void complete(reel *r)
{
    decode(r);
    assert_true(r->count > 0);
    append_task(r, &r->events[r->count - 1]);
    decode(r);
    r->ends = HF_ARENA_ARRAY(&r->arena, size_t, r->count);
    r->steps = HF_ARENA_ARRAY(&r->arena, step, r->count);
    hf_str rest = hf_str_of_len(r->bytes.data, r->bytes.len);
    hf_str event;
    for (size_t i = 0; i < r->count; i++) {
        assert_true(hf_history_next(&rest, &event));
        r->ends[i] = r->bytes.len - rest.len;
    }
    const hf_pb_workflow_execution_started_event_attributes *started =
        r->events[0].workflow_execution_started_event_attributes;
    r->run_id = started->original_execution_run_id;
    r->type = started->workflow_type->name;
    find_steps(r);
}

reel *reel_new(const char *json, size_t len)
{
    reel *r = reel_empty();
    hf_op op;
    hf_op_init(&op);
    must(&op, hf_history_from_json(&op, hf_str_of_len(json, len), &r->arena, &r->bytes));
    complete(r);
    return r;
}

void reel_free(reel *r)
{
    hf_buf_deinit(&r->bytes);
    hf_arena_deinit(&r->arena);
    free(r);
}

size_t reel_count(const reel *r)
{
    return r->steps_count;
}

bool reel_is_of_today(const reel *r, size_t idx)
{
    return r->steps[idx].rules == HF_WF_RULES_ALL;
}

bool reel_beats(const reel *r, size_t idx)
{
    size_t at = r->steps[idx].started + 2; /* behind its WorkflowTaskCompleted */
    while (at < r->count && hf_event_is_of_command(r->events[at].event_type)) {
        at++;
    }
    return at < r->count - 2 && r->events[at].event_type == HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED;
}

static hf_str events_of(const reel *r, size_t from, size_t to)
{
    size_t begin = from > 0 ? r->ends[from - 1] : 0;
    return hf_str_of_len(r->bytes.data + begin, r->ends[to - 1] - begin);
}

/* ---- Writing down ----------------------------------------------------------------------------------------------------- */

typedef struct projector {
    hf_service base; /* first */
    const reel *r;
    reel_mode mode;
    size_t until;
    hf_spin lock;
    hf_list calls; /* that wait */
    hf_list done;  /* to be answered once the lock is free */
    uint64_t calls_count;
    size_t tasks_count;
    size_t task; /* the one at hand, from 0 */
    bool is_out; /* a worker has it */
    hf_buf text;
    size_t heads; /* steps whose first line is in the text */
    reel *next;   /* gets the events of the answer; NULL = nobody wants them */
} projector;

static projector *playing;

/* The first lines of all steps up to this one. */
static void write_heads(projector *p, size_t count)
{
    for (; p->heads < count; p->heads++) {
        hf_buf_putf(&p->text, "step %zu, event %" PRId64 "\n", p->heads + 1, p->r->steps[p->heads].completed_event_id);
    }
}

/* Sentences of the library may be improved; those of programs are theirs. */
static bool is_of_library(hf_str type)
{
    static const char *const STEMS[] = {"HF_ERR_", "ActivityFailed", "ActivityTimedOut"};
    for (size_t i = 0; i < HF_COUNT_OF(STEMS); i++) {
        size_t len = strlen(STEMS[i]);
        if (type.len >= len && memcmp(type.data, STEMS[i], len) == 0) {
            return true;
        }
    }
    return false;
}

static void hush(hf_pb_failure *failure)
{
    for (; failure != NULL; failure = failure->cause) {
        bool has_type = failure->failure_info_case == HF_PB_FAILURE_APPLICATION_FAILURE_INFO;
        if (!has_type || is_of_library(failure->application_failure_info->type)) {
            failure->message = (hf_str){NULL, 0};
        }
    }
}

/* The marker of a local activity says when it ended: a step that is not an old one executes it again, at another time. */
static void hush_marker(hf_pb_record_marker_command_attributes *marker)
{
    static const char TIME[] = ",\"complete_time\":";
    hush(marker->failure);
    for (size_t i = 0; i < marker->details.count; i++) {
        hf_pb_payloads *payloads = marker->details.items[i].value;
        hf_str *data = payloads != NULL && payloads->payloads.count > 0 ? &payloads->payloads.items[0].data : NULL;
        const char *at = data != NULL ? memmem(data->data, data->len, TIME, strlen(TIME)) : NULL;
        if (at != NULL) {
            data->len = (size_t)(at - data->data);
        }
    }
}

static void write_command(projector *p, const hf_pb_command *from)
{
    hf_arena arena;
    hf_pb_command command;
    hf_arena_init(&arena, HEAP);
    HF_CHECK(hf_pb_copy(&hf_pb_command_type, from, &arena, &command) == HF_OK);
    command.user_metadata = NULL;
    if (command.attributes_case == HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES) {
        hush(command.fail_workflow_execution_command_attributes->failure);
    }
    if (command.attributes_case == HF_PB_COMMAND_RECORD_MARKER_COMMAND_ATTRIBUTES) {
        hush_marker(command.record_marker_command_attributes);
    }
    HF_CHECK(hf_pb_json_write(&hf_pb_command_type, &command, &p->text) == HF_OK);
    hf_buf_puts(&p->text, "\n");
    hf_arena_deinit(&arena);
}

hf_status __real_hf_recorder_check(hf_op *op, hf_recorder *recorder, const hf_pb_history_event *event,
                                   hf_command_record **ret_record);
hf_status __wrap_hf_recorder_check(hf_op *op, hf_recorder *recorder, const hf_pb_history_event *event,
                                   hf_command_record **ret_record);

/* The worker compares a command with its event. A command that was sent has been written down then. */
hf_status __wrap_hf_recorder_check(hf_op *op, hf_recorder *recorder, const hf_pb_history_event *event,
                                   hf_command_record **ret_record)
{
    const hf_command_record *next = NULL;
    HF_LIST_EACH(node, &recorder->records)
    {
        const hf_command_record *record = HF_CONTAINER(node, hf_command_record, node);
        next = next == NULL && !record->is_withdrawn ? record : next;
    }
    if (playing != NULL && next != NULL && next->pb != NULL) {
        size_t count = 0;
        while (count < playing->r->steps_count && playing->r->steps[count].completed_event_id < event->event_id) {
            count++;
        }
        write_heads(playing, count);
        write_command(playing, next->pb);
    }
    return __real_hf_recorder_check(op, recorder, event, ret_record);
}

/* ---- Taking over -------------------------------------------------------------------------------------------------------- */

static void *attributes(reel *r, size_t len)
{
    return hf_arena_zero(&r->arena, len, 16);
}

/* An event of this kind, with cleared attributes. */
#define EVENT_OF(r, event, NAME, name)                                         \
    ((event)->event_type = HF_EVENT_TYPE_##NAME,                               \
     (event)->attributes_case = HF_PB_HISTORY_EVENT_##NAME##_EVENT_ATTRIBUTES, \
     (event)->name##_event_attributes = attributes((r), sizeof(hf_pb_##name##_event_attributes)))

static void put_marker(reel *r, const hf_pb_record_marker_command_attributes *from,
                       hf_pb_marker_recorded_event_attributes *to)
{
    to->marker_name = from->marker_name;
    to->failure = from->failure;
    to->details.count = from->details.count;
    to->details.items = hf_arena_zero(&r->arena, (from->details.count + 1) * sizeof *to->details.items, 16);
    for (size_t i = 0; i < from->details.count; i++) {
        to->details.items[i].key = from->details.items[i].key;
        to->details.items[i].value = from->details.items[i].value;
    }
}

/* The event that a command becomes, as far as the worker reads it. */
static void put_event(reel *r, const hf_pb_command *command, hf_pb_history_event *event)
{
    switch (command->attributes_case) {
    case HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES:
        EVENT_OF(r, event, TIMER_STARTED, timer_started);
        event->timer_started_event_attributes->timer_id = command->start_timer_command_attributes->timer_id;
        event->timer_started_event_attributes->start_to_fire_timeout =
            command->start_timer_command_attributes->start_to_fire_timeout;
        break;
    case HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES:
        EVENT_OF(r, event, TIMER_CANCELED, timer_canceled);
        event->timer_canceled_event_attributes->timer_id = command->cancel_timer_command_attributes->timer_id;
        break;
    case HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES:
        EVENT_OF(r, event, ACTIVITY_TASK_SCHEDULED, activity_task_scheduled);
        event->activity_task_scheduled_event_attributes->activity_id =
            command->schedule_activity_task_command_attributes->activity_id;
        event->activity_task_scheduled_event_attributes->activity_type =
            command->schedule_activity_task_command_attributes->activity_type;
        break;
    case HF_PB_COMMAND_REQUEST_CANCEL_ACTIVITY_TASK_COMMAND_ATTRIBUTES:
        EVENT_OF(r, event, ACTIVITY_TASK_CANCEL_REQUESTED, activity_task_cancel_requested);
        event->activity_task_cancel_requested_event_attributes->scheduled_event_id =
            command->request_cancel_activity_task_command_attributes->scheduled_event_id;
        break;
    case HF_PB_COMMAND_RECORD_MARKER_COMMAND_ATTRIBUTES:
        EVENT_OF(r, event, MARKER_RECORDED, marker_recorded);
        put_marker(r, command->record_marker_command_attributes, event->marker_recorded_event_attributes);
        break;
    case HF_PB_COMMAND_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES_COMMAND_ATTRIBUTES:
        EVENT_OF(r, event, UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, upsert_workflow_search_attributes);
        break;
    case HF_PB_COMMAND_MODIFY_WORKFLOW_PROPERTIES_COMMAND_ATTRIBUTES:
        EVENT_OF(r, event, WORKFLOW_PROPERTIES_MODIFIED, workflow_properties_modified);
        break;
    case HF_PB_COMMAND_START_CHILD_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES:
        EVENT_OF(r, event, START_CHILD_WORKFLOW_EXECUTION_INITIATED, start_child_workflow_execution_initiated);
        event->start_child_workflow_execution_initiated_event_attributes->workflow_id =
            command->start_child_workflow_execution_command_attributes->workflow_id;
        event->start_child_workflow_execution_initiated_event_attributes->workflow_type =
            command->start_child_workflow_execution_command_attributes->workflow_type;
        break;
    case HF_PB_COMMAND_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES:
        EVENT_OF(r, event, REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
                 request_cancel_external_workflow_execution_initiated);
        event->request_cancel_external_workflow_execution_initiated_event_attributes->workflow_execution =
            attributes(r, sizeof(hf_pb_workflow_execution));
        event->request_cancel_external_workflow_execution_initiated_event_attributes->workflow_execution->workflow_id =
            command->request_cancel_external_workflow_execution_command_attributes->workflow_id;
        break;
    case HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES:
        EVENT_OF(r, event, WORKFLOW_EXECUTION_COMPLETED, workflow_execution_completed);
        break;
    case HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES:
        EVENT_OF(r, event, WORKFLOW_EXECUTION_FAILED, workflow_execution_failed);
        break;
    case HF_PB_COMMAND_CANCEL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES:
        EVENT_OF(r, event, WORKFLOW_EXECUTION_CANCELED, workflow_execution_canceled);
        break;
    case HF_PB_COMMAND_CONTINUE_AS_NEW_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES:
        EVENT_OF(r, event, WORKFLOW_EXECUTION_CONTINUED_AS_NEW, workflow_execution_continued_as_new);
        break;
    default:
        (void)hf_check_say(__FILE__, __LINE__, "the reel has no event for command %d", (int)command->command_type);
    }
}

/* The history as it was when the task was given, then what its answer adds. */
static void put_answer(reel *r, const hf_pb_history_event *started,
                       const hf_pb_respond_workflow_task_completed_request *answer)
{
    hf_pb_workflow_task_completed_event_attributes completed = {.started_event_id = started->event_id,
                                                                .sdk_metadata = answer->sdk_metadata};
    hf_pb_history_event event = {.event_id = started->event_id + 1,
                                 .event_time = started->event_time,
                                 .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
                                 .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_COMPLETED_EVENT_ATTRIBUTES,
                                 .workflow_task_completed_event_attributes = &completed};
    hf_pb_encode_field(1, &hf_pb_history_event_type, &event, &r->bytes);
    for (size_t i = 0; i < answer->commands.count; i++) {
        event = (hf_pb_history_event){.event_id = event.event_id + 1, .event_time = started->event_time};
        put_event(r, &answer->commands.items[i], &event);
        hf_pb_encode_field(1, &hf_pb_history_event_type, &event, &r->bytes);
    }
}

/* ---- The service ------------------------------------------------------------------------------------------------------ */

static void finish(projector *p, hf_call *call, hf_status status, const char *why)
{
    call->status = status;
    (void)snprintf(call->message, sizeof call->message, "%s", why);
    if (hf_node_is_linked(&call->link)) {
        hf_list_remove(&call->link);
    }
    hf_list_push_back(&p->done, &call->link);
}

static void *respond(hf_call *call)
{
    call->response = hf_arena_zero(call->arena, hf_method_info_of(call->method)->response_len, 16);
    return call->response;
}

/* Where the history of the task at hand begins and ends. */
static size_t task_from(const projector *p)
{
    return p->mode == REEL_STICKY && p->task > 0 ? p->r->steps[p->task - 1].started + 1 : 0;
}

static size_t task_to(const projector *p)
{
    size_t at = p->mode == REEL_STICKY ? p->task : p->until;
    return p->mode == REEL_STICKY || p->mode == REEL_UNTIL ? p->r->steps[at].started + 1 : p->r->count;
}

/* A page of events from this place on, and the token of the next. */
static hf_str page(const projector *p, hf_arena *arena, size_t from, hf_str *ret_token)
{
    size_t to = task_to(p);
    char text[32];
    if (p->mode == REEL_PAGES && to - from > PAGE_COUNT) {
        to = from + PAGE_COUNT;
        (void)snprintf(text, sizeof text, "%zu", to);
        *ret_token = hf_arena_copy(arena, hf_str_of(text));
    }
    return hf_arena_copy(arena, events_of(p->r, from, to));
}

static void give_task(projector *p, hf_call *call)
{
    hf_pb_poll_workflow_task_queue_response *t = respond(call);
    t->task_token = hf_arena_copy(call->arena, HF_STR("token"));
    t->workflow_execution = HF_ARENA_NEW(call->arena, hf_pb_workflow_execution);
    t->workflow_execution->workflow_id = HF_STR("w");
    t->workflow_execution->run_id = hf_arena_copy(call->arena, p->r->run_id);
    t->workflow_type = HF_ARENA_NEW(call->arena, hf_pb_workflow_type);
    t->workflow_type->name = hf_arena_copy(call->arena, p->r->type);
    t->attempt = 1;
    t->started_event_id = p->r->events[task_to(p) - 1].event_id;
    t->history = page(p, call->arena, task_from(p), &t->next_page_token);
    p->is_out = true;
    finish(p, call, HF_OK, "");
}

static void give_history(projector *p, hf_call *call)
{
    const hf_pb_get_workflow_execution_history_request *request = call->request;
    hf_pb_get_workflow_execution_history_response *response = respond(call);
    size_t from = 0;
    for (size_t i = 0; i < request->next_page_token.len; i++) {
        from = from * 10 + (size_t)(request->next_page_token.data[i] - '0');
    }
    response->history = page(p, call->arena, from, &response->next_page_token);
    finish(p, call, HF_OK, "");
}

static void take_answer(projector *p, hf_call *call)
{
    if (call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
        const hf_pb_respond_workflow_task_completed_request *request = call->request;
        bool is_step = p->mode == REEL_STICKY || p->mode == REEL_UNTIL;
        write_heads(p, p->mode == REEL_STICKY ? p->task + 1 : p->mode == REEL_UNTIL ? p->until + 1 : p->r->steps_count);
        if (!is_step && request->commands.count > 0) {
            hf_buf_puts(&p->text, "but nothing had happened:\n");
        }
        for (size_t i = 0; i < request->commands.count; i++) {
            write_command(p, &request->commands.items[i]);
        }
        if (p->next != NULL) {
            put_answer(p->next, &p->r->events[task_to(p) - 1], request);
        }
        p->task++;
    } else {
        const hf_pb_respond_workflow_task_failed_request *request = call->request;
        hf_buf_putf(&p->text, "FAILED %d %.*s\n", (int)request->cause, HF_STR_ARGS(request->failure->message));
        p->task = p->tasks_count;
    }
    p->is_out = false;
    (void)respond(call);
    finish(p, call, HF_OK, "");
}

/* The client waits for the end of the run; it gets an answer when all tasks were answered. */
static bool is_clients(const hf_call *call)
{
    const hf_pb_get_workflow_execution_history_request *request = call->request;
    return call->method == HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY && request->wait_new_event;
}

static void match(projector *p)
{
    HF_LIST_EACH(node, &p->calls)
    {
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        bool is_over = p->task == p->tasks_count;
        if (is_clients(call) && is_over) {
            finish(p, call, HF_ERR_NOT_FOUND, "the reel is over");
        } else if (call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE && !is_over && !p->is_out) {
            give_task(p, call);
        }
    }
}

static void handle(projector *p, hf_call *call)
{
    if (call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED ||
        call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED) {
        take_answer(p, call);
    } else if (call->method == HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY && !is_clients(call)) {
        give_history(p, call);
    } else if (is_clients(call) || call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE) {
        hf_list_push_back(&p->calls, &call->link);
    } else {
        (void)respond(call);
        finish(p, call, HF_OK, "");
    }
}

static void tell(projector *p)
{
    match(p);
    for (hf_node *node = NULL; (node = hf_list_pop_front(&p->done)) != NULL;) {
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        hf_spin_unlock(&p->lock);
        call->done(call);
        hf_spin_lock(&p->lock);
    }
    hf_spin_unlock(&p->lock);
}

static void submit(hf_service *service, hf_call *call)
{
    projector *p = (projector *)(void *)service;
    hf_spin_lock(&p->lock);
    call->number = ++p->calls_count;
    handle(p, call);
    tell(p);
}

static void cancel(hf_service *service, uint64_t number)
{
    projector *p = (projector *)(void *)service;
    hf_spin_lock(&p->lock);
    HF_LIST_EACH(node, &p->calls)
    {
        if (HF_CONTAINER(node, hf_call, link)->number == number) {
            finish(p, HF_CONTAINER(node, hf_call, link), HF_ERR_CANCELED, "the caller has gone");
        }
    }
    tell(p);
}

static void unwanted(hf_service *service, hf_str token)
{
    (void)service;
    (void)token;
    (void)hf_check_say(__FILE__, __LINE__, "a task of the reel was given back");
}

static hf_status close_service(hf_op *op, hf_service *service)
{
    (void)op;
    HF_CHECK(hf_list_is_empty(&((projector *)(void *)service)->calls));
    return HF_OK;
}

static hf_status open_projector(hf_service **ret_service)
{
    *ret_service = &playing->base;
    return HF_OK;
}

static hf_status wait_for_end(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(hf_execution_new(p->service, "w", &execution));
    HF_CHECK(hf_result(execution, NULL) == HF_ERR_NOT_FOUND);
    return HF_OK;
}

static char *project(const reel *r, reel_mode mode, size_t until, reel *next)
{
    static const hf_service_ops OPS = {submit, cancel, unwanted, close_service, NULL};
    projector p = {.base = {.ops = &OPS},
                   .r = r,
                   .mode = mode,
                   .until = until,
                   .next = next,
                   .tasks_count = mode == REEL_STICKY ? r->steps_count : 1};
    hf_list_init(&p.calls);
    hf_list_init(&p.done);
    hf_buf_init(&p.text, HEAP, TEXT_LEN_MAX);
    playing = &p;
    (void)play_once(
        (play_options){.add = programs_add_workflows,
                       .body = wait_for_end,
                       .open = open_projector,
                       .worker = {.cached_max = mode == REEL_STICKY ? 0 : HF_OFF, .activities_max = HF_OFF}},
        1, 1);
    playing = NULL;
    HF_CHECK(p.text.status == HF_OK);
    return p.text.data != NULL ? p.text.data : calloc(1, 1);
}

char *reel_play(const reel *r, reel_mode mode, size_t until)
{
    return project(r, mode, until, NULL);
}

reel *reel_take_over(const reel *r, size_t until, char **ret_text)
{
    reel *next = reel_empty();
    hf_str before = events_of(r, 0, r->steps[until].started + 1);
    hf_buf_put(&next->bytes, before.data, before.len);
    *ret_text = project(r, REEL_UNTIL, until, next);
    complete(next);
    next->run_id = hf_arena_copy(&next->arena, r->run_id); /* a reset that made it may come later */
    return next;
}
