#include "support/fake_service.h"

#include "base/spin.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 4096, ACTIVITIES_MAX = 256, TIMERS_MAX = 256, LOG_LEN = 1 << 16 };

typedef struct fake_activity {
    int64_t scheduled_event_id;                               /* 0 = the place is free */
    hf_pb_schedule_activity_task_command_attributes *command; /* a copy in the run's arena */
    int attempt;
    bool is_out;  /* a worker has it */
    bool is_held; /* nobody is to have it */
    bool is_cancel_requested;
    hf_pb_payloads *details; /* of the last heartbeat */
} fake_activity;

typedef struct fake_timer {
    char id[24];
    int64_t started_event_id; /* 0 = the place is free */
    int64_t due_ns;
} fake_timer;

typedef enum fake_wft { WFT_NONE, WFT_SCHEDULED, WFT_STARTED } fake_wft;

typedef struct fake_run {
    hf_node node;
    hf_arena arena;
    hf_str id;
    hf_str run_id;
    hf_str queue;
    hf_str sticky; /* empty = none */
    hf_str type;
    hf_pb_history_event *events[EVENTS_MAX];
    size_t event_count;
    hf_pb_history_event *buffered[64]; /* came while a task was out */
    size_t buffered_count;
    fake_activity activities[ACTIVITIES_MAX];
    fake_timer timers[TIMERS_MAX];
    fake_wft wft;
    int wft_attempt;
    int64_t wft_scheduled_id;
    int64_t wft_started_id;
    int64_t wft_started_before; /* of the last that was completed */
    bool is_closed;
} fake_run;

struct fake_service {
    hf_service base; /* first */
    hf_spin lock;
    fake_options options;
    hf_list runs;  /* oldest first */
    hf_list calls; /* that wait */
    hf_list done;  /* to be answered once the lock is free */
    hf_status closed;
    int64_t now_ns;
    int completions;
    int heartbeats;
    int given;
    int histories;
    const char *held;
    char log[LOG_LEN];
    size_t log_len;
};

/* ---- Small things ------------------------------------------------------------------------------------------------ */

static void *allocate(void *state, size_t len, size_t align)
{
    (void)state;
    return aligned_alloc(align < 16 ? 16 : align, (len + 15) & ~(size_t)15);
}

static void release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

static const hf_allocator MEMORY = {allocate, release, NULL};

static void write_down(fake_service *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void write_down(fake_service *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(f->log + f->log_len, LOG_LEN - f->log_len, format, args);
    va_end(args);
    f->log_len += len > 0 && (size_t)len < LOG_LEN - f->log_len ? (size_t)len : 0;
}

static void finish(fake_service *f, hf_call *call, hf_status status, const char *message)
{
    call->status = status;
    (void)snprintf(call->message, sizeof call->message, "%s", message);
    if (hf_node_is_linked(&call->link)) {
        hf_list_remove(&call->link);
    }
    hf_list_push_back(&f->done, &call->link);
}

static void *respond(hf_call *call)
{
    call->response = hf_arena_zero(call->arena, hf_method_info_of(call->method)->response_len, 16);
    return call->response;
}

static void answer(fake_service *f, hf_call *call)
{
    (void)respond(call);
    finish(f, call, HF_OK, "");
}

static fake_run *find_run(fake_service *f, const hf_pb_workflow_execution *which)
{
    fake_run *found = NULL;
    HF_LIST_EACH(node, &f->runs)
    {
        fake_run *run = HF_CONTAINER(node, fake_run, node);
        if (hf_str_equal(run->id, which->workflow_id) &&
            (which->run_id.len == 0 || hf_str_equal(run->run_id, which->run_id))) {
            found = run;
        }
    }
    return found;
}

/* A token is "run id/number". */
static fake_run *run_of_token(fake_service *f, hf_str token, int64_t *ret_number)
{
    HF_LIST_EACH(node, &f->runs)
    {
        fake_run *run = HF_CONTAINER(node, fake_run, node);
        if (token.len > run->run_id.len + 1 && memcmp(token.data, run->run_id.data, run->run_id.len) == 0) {
            *ret_number = strtoll(token.data + run->run_id.len + 1, NULL, 10);
            return run;
        }
    }
    return NULL;
}

static hf_str token_of(hf_arena *arena, const fake_run *run, int64_t number)
{
    char text[128];
    (void)snprintf(text, sizeof text, "%.*s/%lld", HF_STR_ARGS(run->run_id), (long long)number);
    return hf_arena_copy(arena, hf_str_of(text));
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

#define ATTRIBUTES(run, event, NAME, name)                                     \
    ((event)->attributes_case = HF_PB_HISTORY_EVENT_##NAME##_EVENT_ATTRIBUTES, \
     (event)->name##_event_attributes = HF_ARENA_NEW(&(run)->arena, hf_pb_##name##_event_attributes))

static hf_pb_history_event *make_event(fake_run *run, int32_t type)
{
    hf_pb_history_event *event = HF_ARENA_NEW(&run->arena, hf_pb_history_event);
    event->event_type = type;
    return event;
}

static int64_t append(fake_service *f, fake_run *run, hf_pb_history_event *event)
{
    f->now_ns += 1000000;
    event->event_id = (int64_t)run->event_count + 1;
    event->event_time = hf_pb_timestamp_of((hf_time){f->now_ns});
    assert_true(run->event_count < EVENTS_MAX);
    run->events[run->event_count++] = event;
    return event->event_id;
}

static void schedule_wft(fake_service *f, fake_run *run)
{
    if (run->wft != WFT_NONE || run->is_closed) {
        return;
    }
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED);
    ATTRIBUTES(run, event, WORKFLOW_TASK_SCHEDULED, workflow_task_scheduled);
    run->wft_scheduled_id = append(f, run, event);
    run->wft = WFT_SCHEDULED;
}

/* Something happened to the run: at once, or after the task that is out. */
static void happen(fake_service *f, fake_run *run, hf_pb_history_event *event)
{
    if (run->wft == WFT_STARTED) {
        run->buffered[run->buffered_count++] = event;
        return;
    }
    (void)append(f, run, event);
    schedule_wft(f, run);
}

static void flush(fake_service *f, fake_run *run)
{
    size_t count = run->buffered_count;
    run->buffered_count = 0;
    for (size_t i = 0; i < count && !run->is_closed; i++) {
        (void)append(f, run, run->buffered[i]);
    }
    if (count > 0) {
        schedule_wft(f, run);
    }
}

static void close_run(fake_run *run)
{
    run->is_closed = true;
    run->wft = WFT_NONE;
}

static hf_str history_bytes(const fake_run *run, int64_t from, int64_t to, hf_arena *arena)
{
    hf_buf buf;
    hf_buf_init(&buf, MEMORY, (size_t)1 << 26);
    for (int64_t id = from; id <= to && id <= (int64_t)run->event_count; id++) {
        hf_pb_encode_field(1, &hf_pb_history_event_type, run->events[id - 1], &buf);
    }
    hf_str bytes = hf_arena_copy(arena, hf_str_of_len(hf_buf_text(&buf), buf.len));
    hf_buf_deinit(&buf);
    return bytes;
}

/* One page from `from` on; the token is the next event's number. */
static hf_str page_bytes(const fake_service *f, const fake_run *run, int64_t from, hf_arena *arena, hf_str *ret_token)
{
    int64_t last = (int64_t)run->event_count;
    int64_t to = f->options.page_events > 0 ? from + f->options.page_events - 1 : last;
    if (to < last) {
        *ret_token = token_of(arena, run, to + 1);
    }
    return history_bytes(run, from, to, arena);
}

/* ---- Timers ------------------------------------------------------------------------------------------------------ */

static void fire_timer(fake_service *f, fake_run *run, fake_timer *timer)
{
    f->now_ns = timer->due_ns > f->now_ns ? timer->due_ns : f->now_ns;
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_TIMER_FIRED);
    ATTRIBUTES(run, event, TIMER_FIRED, timer_fired);
    event->timer_fired_event_attributes->timer_id = hf_arena_copy(&run->arena, hf_str_of(timer->id));
    event->timer_fired_event_attributes->started_event_id = timer->started_event_id;
    timer->started_event_id = 0;
    happen(f, run, event);
}

static fake_timer *next_timer(fake_run *run)
{
    fake_timer *next = NULL;
    for (size_t i = 0; i < TIMERS_MAX && !run->is_closed; i++) {
        fake_timer *timer = &run->timers[i];
        if (timer->started_event_id != 0 && (next == NULL || timer->due_ns < next->due_ns)) {
            next = timer;
        }
    }
    return next;
}

static bool waits_for_time_only(const fake_run *run)
{
    for (size_t i = 0; i < ACTIVITIES_MAX; i++) {
        if (run->activities[i].scheduled_event_id != 0 && !run->activities[i].is_held) {
            return false;
        }
    }
    return run->wft == WFT_NONE;
}

/* ---- Commands ---------------------------------------------------------------------------------------------------- */

static void do_schedule_activity(fake_service *f, fake_run *run,
                                 const hf_pb_schedule_activity_task_command_attributes *command)
{
    fake_activity *place = run->activities;
    while (place->scheduled_event_id != 0) {
        place++;
    }
    *place = (fake_activity){.attempt = 1};
    place->command = HF_ARENA_NEW(&run->arena, hf_pb_schedule_activity_task_command_attributes);
    assert_int_equal(
        hf_pb_copy(&hf_pb_schedule_activity_task_command_attributes_type, command, &run->arena, place->command), HF_OK);
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED);
    ATTRIBUTES(run, event, ACTIVITY_TASK_SCHEDULED, activity_task_scheduled);
    hf_pb_activity_task_scheduled_event_attributes *a = event->activity_task_scheduled_event_attributes;
    a->activity_id = place->command->activity_id;
    a->activity_type = place->command->activity_type;
    a->task_queue = place->command->task_queue;
    a->input = place->command->input;
    a->start_to_close_timeout = place->command->start_to_close_timeout;
    place->is_held = f->held != NULL && hf_str_equal(hf_str_of(f->held), place->command->activity_type->name);
    place->scheduled_event_id = append(f, run, event);
}

static fake_activity *find_activity(fake_run *run, int64_t scheduled_event_id)
{
    for (size_t i = 0; i < ACTIVITIES_MAX; i++) {
        if (run->activities[i].scheduled_event_id == scheduled_event_id) {
            return &run->activities[i];
        }
    }
    return NULL;
}

static void activity_canceled(fake_service *f, fake_run *run, fake_activity *activity)
{
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED);
    ATTRIBUTES(run, event, ACTIVITY_TASK_CANCELED, activity_task_canceled);
    event->activity_task_canceled_event_attributes->scheduled_event_id = activity->scheduled_event_id;
    activity->scheduled_event_id = 0;
    happen(f, run, event);
}

static void do_cancel_activity(fake_service *f, fake_run *run, int64_t scheduled_event_id)
{
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED);
    ATTRIBUTES(run, event, ACTIVITY_TASK_CANCEL_REQUESTED, activity_task_cancel_requested);
    event->activity_task_cancel_requested_event_attributes->scheduled_event_id = scheduled_event_id;
    (void)append(f, run, event);
    fake_activity *activity = find_activity(run, scheduled_event_id);
    if (activity != NULL) {
        activity->is_cancel_requested = true;
    }
}

static void do_start_timer(fake_service *f, fake_run *run, const hf_pb_start_timer_command_attributes *command)
{
    fake_timer *place = run->timers;
    while (place->started_event_id != 0) {
        place++;
    }
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_TIMER_STARTED);
    ATTRIBUTES(run, event, TIMER_STARTED, timer_started);
    event->timer_started_event_attributes->timer_id = hf_arena_copy(&run->arena, command->timer_id);
    event->timer_started_event_attributes->start_to_fire_timeout = command->start_to_fire_timeout;
    place->started_event_id = append(f, run, event);
    place->due_ns = f->now_ns + hf_pb_duration_span(command->start_to_fire_timeout).ns;
    (void)snprintf(place->id, sizeof place->id, "%.*s", HF_STR_ARGS(command->timer_id));
}

static void do_cancel_timer(fake_service *f, fake_run *run, hf_str timer_id)
{
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_TIMER_CANCELED);
    ATTRIBUTES(run, event, TIMER_CANCELED, timer_canceled);
    event->timer_canceled_event_attributes->timer_id = hf_arena_copy(&run->arena, timer_id);
    for (size_t i = 0; i < TIMERS_MAX; i++) {
        fake_timer *timer = &run->timers[i];
        if (timer->started_event_id != 0 && hf_str_equal(hf_str_of(timer->id), timer_id)) {
            event->timer_canceled_event_attributes->started_event_id = timer->started_event_id;
            timer->started_event_id = 0;
        }
    }
    (void)append(f, run, event);
}

static void do_complete(fake_service *f, fake_run *run, const hf_pb_payloads *result)
{
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED);
    ATTRIBUTES(run, event, WORKFLOW_EXECUTION_COMPLETED, workflow_execution_completed);
    if (result != NULL) {
        hf_pb_payloads *copy = HF_ARENA_NEW(&run->arena, hf_pb_payloads);
        (void)hf_pb_copy(&hf_pb_payloads_type, result, &run->arena, copy);
        event->workflow_execution_completed_event_attributes->result = copy;
    }
    (void)append(f, run, event);
    close_run(run);
}

static void do_fail(fake_service *f, fake_run *run, const hf_pb_failure *failure)
{
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED);
    ATTRIBUTES(run, event, WORKFLOW_EXECUTION_FAILED, workflow_execution_failed);
    hf_pb_failure *copy = HF_ARENA_NEW(&run->arena, hf_pb_failure);
    (void)hf_pb_copy(&hf_pb_failure_type, failure, &run->arena, copy);
    event->workflow_execution_failed_event_attributes->failure = copy;
    (void)append(f, run, event);
    close_run(run);
}

static void do_cancel_workflow(fake_service *f, fake_run *run)
{
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED);
    ATTRIBUTES(run, event, WORKFLOW_EXECUTION_CANCELED, workflow_execution_canceled);
    (void)append(f, run, event);
    close_run(run);
}

static void log_command(fake_service *f, const hf_pb_command *command)
{
    write_down(f, " %s", hf_pb_enum_brief(&hf_pb_command_type_enum, command->command_type));
    if (command->attributes_case == HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES) {
        const hf_pb_schedule_activity_task_command_attributes *a = command->schedule_activity_task_command_attributes;
        write_down(f, " %.*s %.*s", HF_STR_ARGS(a->activity_id), HF_STR_ARGS(a->activity_type->name));
    } else if (command->attributes_case == HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES) {
        const hf_pb_start_timer_command_attributes *a = command->start_timer_command_attributes;
        write_down(f, " %.*s %llds", HF_STR_ARGS(a->timer_id), (long long)a->start_to_fire_timeout.seconds);
    } else if (command->attributes_case == HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES) {
        write_down(f, " %.*s", HF_STR_ARGS(command->cancel_timer_command_attributes->timer_id));
    } else if (command->attributes_case == HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES) {
        const hf_pb_failure *failure = command->fail_workflow_execution_command_attributes->failure;
        write_down(f, " '%.*s'", HF_STR_ARGS(failure->message));
    }
    write_down(f, ";");
}

static void do_command(fake_service *f, fake_run *run, const hf_pb_command *command)
{
    switch (command->attributes_case) {
    case HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES:
        do_schedule_activity(f, run, command->schedule_activity_task_command_attributes);
        break;
    case HF_PB_COMMAND_REQUEST_CANCEL_ACTIVITY_TASK_COMMAND_ATTRIBUTES:
        do_cancel_activity(f, run, command->request_cancel_activity_task_command_attributes->scheduled_event_id);
        break;
    case HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES:
        do_start_timer(f, run, command->start_timer_command_attributes);
        break;
    case HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES:
        do_cancel_timer(f, run, command->cancel_timer_command_attributes->timer_id);
        break;
    case HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES:
        do_complete(f, run, command->complete_workflow_execution_command_attributes->result);
        break;
    case HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES:
        do_fail(f, run, command->fail_workflow_execution_command_attributes->failure);
        break;
    case HF_PB_COMMAND_CANCEL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES:
        do_cancel_workflow(f, run);
        break;
    default:
        fail_msg("the fake does not know command %d", (int)command->command_type);
    }
}

/* ---- Workflow tasks ---------------------------------------------------------------------------------------------- */

static void give_workflow_task(fake_service *f, fake_run *run, hf_call *call, bool is_sticky)
{
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_WORKFLOW_TASK_STARTED);
    ATTRIBUTES(run, event, WORKFLOW_TASK_STARTED, workflow_task_started);
    event->workflow_task_started_event_attributes->scheduled_event_id = run->wft_scheduled_id;
    run->wft_started_id = append(f, run, event);
    run->wft = WFT_STARTED;
    hf_pb_poll_workflow_task_queue_response *r = respond(call);
    int64_t from = is_sticky ? run->wft_started_before + 1 : 1;
    r->task_token = token_of(call->arena, run, run->wft_started_id);
    r->workflow_execution = HF_ARENA_NEW(call->arena, hf_pb_workflow_execution);
    r->workflow_execution->workflow_id = hf_arena_copy(call->arena, run->id);
    r->workflow_execution->run_id = hf_arena_copy(call->arena, run->run_id);
    r->workflow_type = HF_ARENA_NEW(call->arena, hf_pb_workflow_type);
    r->workflow_type->name = hf_arena_copy(call->arena, run->type);
    r->attempt = run->wft_attempt;
    r->previous_started_event_id = run->wft_started_before;
    r->started_event_id = run->wft_started_id;
    r->history = page_bytes(f, run, from, call->arena, &r->next_page_token);
    finish(f, call, HF_OK, "");
}

static bool try_workflow_poll(fake_service *f, hf_call *call)
{
    const hf_pb_poll_workflow_task_queue_request *poll = call->request;
    HF_LIST_EACH(node, &f->runs)
    {
        fake_run *run = HF_CONTAINER(node, fake_run, node);
        bool is_sticky = run->sticky.len > 0;
        if (run->wft == WFT_SCHEDULED && hf_str_equal(poll->task_queue->name, is_sticky ? run->sticky : run->queue)) {
            give_workflow_task(f, run, call, is_sticky);
            return true;
        }
    }
    return false;
}

static void on_completed(fake_service *f, hf_call *call)
{
    const hf_pb_respond_workflow_task_completed_request *r = call->request;
    int64_t number = 0;
    fake_run *run = run_of_token(f, r->task_token, &number);
    if (run == NULL || run->wft != WFT_STARTED || run->wft_started_id != number) {
        finish(f, call, HF_ERR_NOT_FOUND, "no such workflow task");
        return;
    }
    bool closes = false;
    for (size_t i = 0; i < r->commands.count; i++) {
        int32_t type = r->commands.items[i].command_type;
        closes |= type == HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION ||
                  type == HF_COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION || type == HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION;
    }
    bool is_refused = f->options.refuse_every > 0 && ++f->completions % f->options.refuse_every == 0;
    run->sticky = (hf_str){NULL, 0};
    run->wft = WFT_NONE;
    if ((closes && run->buffered_count > 0) || is_refused) {
        hf_pb_history_event *failed = make_event(run, HF_EVENT_TYPE_WORKFLOW_TASK_FAILED);
        ATTRIBUTES(run, failed, WORKFLOW_TASK_FAILED, workflow_task_failed);
        (void)append(f, run, failed);
        flush(f, run);
        schedule_wft(f, run);
        finish(f, call, HF_ERR_INVALID, "UnhandledCommand");
        return;
    }
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED);
    ATTRIBUTES(run, event, WORKFLOW_TASK_COMPLETED, workflow_task_completed);
    (void)append(f, run, event);
    run->wft_started_before = run->wft_started_id;
    run->wft_attempt = 1;
    if (r->sticky_attributes != NULL && !f->options.ignore_sticky) {
        run->sticky = hf_arena_copy(&run->arena, r->sticky_attributes->worker_task_queue->name);
    }
    for (size_t i = 0; i < r->commands.count; i++) {
        if (i == 0) {
            write_down(f, "%.*s:", HF_STR_ARGS(run->id));
        }
        log_command(f, &r->commands.items[i]);
        do_command(f, run, &r->commands.items[i]);
    }
    if (r->commands.count > 0) {
        write_down(f, "\n");
    }
    flush(f, run);
    answer(f, call);
}

static void on_task_failed(fake_service *f, hf_call *call)
{
    const hf_pb_respond_workflow_task_failed_request *r = call->request;
    int64_t number = 0;
    fake_run *run = run_of_token(f, r->task_token, &number);
    if (run == NULL || run->wft != WFT_STARTED || run->wft_started_id != number) {
        finish(f, call, HF_ERR_NOT_FOUND, "no such workflow task");
        return;
    }
    write_down(f, "%.*s: FAILED %d %.*s\n", HF_STR_ARGS(run->id), (int)r->cause, HF_STR_ARGS(r->failure->message));
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_WORKFLOW_TASK_FAILED);
    ATTRIBUTES(run, event, WORKFLOW_TASK_FAILED, workflow_task_failed);
    (void)append(f, run, event);
    run->wft = WFT_NONE; /* it stays there until something else happens: nothing would change */
    run->wft_attempt++;
    run->sticky = (hf_str){NULL, 0};
    flush(f, run);
    answer(f, call);
}

/* ---- Activities -------------------------------------------------------------------------------------------------- */

static bool try_activity_poll(fake_service *f, hf_call *call)
{
    const hf_pb_poll_activity_task_queue_request *poll = call->request;
    HF_LIST_EACH(node, &f->runs)
    {
        fake_run *run = HF_CONTAINER(node, fake_run, node);
        for (size_t i = 0; i < ACTIVITIES_MAX && !run->is_closed; i++) {
            fake_activity *activity = &run->activities[i];
            if (activity->scheduled_event_id == 0 || activity->is_out || activity->is_held ||
                !hf_str_equal(poll->task_queue->name, activity->command->task_queue->name)) {
                continue;
            }
            activity->is_out = true;
            f->given++;
            hf_pb_poll_activity_task_queue_response *r = respond(call);
            r->task_token = token_of(call->arena, run, activity->scheduled_event_id * 1000 + activity->attempt);
            r->activity_id = hf_arena_copy(call->arena, activity->command->activity_id);
            r->attempt = activity->attempt;
            r->start_to_close_timeout = activity->command->start_to_close_timeout;
            r->heartbeat_timeout = activity->command->heartbeat_timeout;
            r->activity_type = HF_ARENA_NEW(call->arena, hf_pb_activity_type);
            (void)hf_pb_copy(&hf_pb_activity_type_type, activity->command->activity_type, call->arena,
                             r->activity_type);
            r->workflow_execution = HF_ARENA_NEW(call->arena, hf_pb_workflow_execution);
            r->workflow_execution->workflow_id = hf_arena_copy(call->arena, run->id);
            r->workflow_execution->run_id = hf_arena_copy(call->arena, run->run_id);
            if (activity->command->input != NULL) {
                r->input = HF_ARENA_NEW(call->arena, hf_pb_payloads);
                (void)hf_pb_copy(&hf_pb_payloads_type, activity->command->input, call->arena, r->input);
            }
            if (activity->details != NULL) {
                r->heartbeat_details = HF_ARENA_NEW(call->arena, hf_pb_payloads);
                (void)hf_pb_copy(&hf_pb_payloads_type, activity->details, call->arena, r->heartbeat_details);
            }
            finish(f, call, HF_OK, "");
            return true;
        }
    }
    return false;
}

static fake_activity *activity_of_token(fake_service *f, hf_str token, fake_run **ret_run)
{
    int64_t number = 0;
    *ret_run = run_of_token(f, token, &number);
    fake_activity *activity = *ret_run != NULL ? find_activity(*ret_run, number / 1000) : NULL;
    bool is_current = activity != NULL && number / 1000 != 0 && activity->attempt == number % 1000 && activity->is_out;
    return is_current && !(*ret_run)->is_closed ? activity : NULL;
}

static void activity_started(fake_service *f, fake_run *run, const fake_activity *activity)
{
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_ACTIVITY_TASK_STARTED);
    ATTRIBUTES(run, event, ACTIVITY_TASK_STARTED, activity_task_started);
    event->activity_task_started_event_attributes->scheduled_event_id = activity->scheduled_event_id;
    happen(f, run, event);
}

static void on_activity_completed(fake_service *f, hf_call *call)
{
    const hf_pb_respond_activity_task_completed_request *r = call->request;
    fake_run *run = NULL;
    fake_activity *activity = activity_of_token(f, r->task_token, &run);
    if (activity == NULL) {
        finish(f, call, HF_ERR_NOT_FOUND, "no such activity");
        return;
    }
    activity_started(f, run, activity);
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED);
    ATTRIBUTES(run, event, ACTIVITY_TASK_COMPLETED, activity_task_completed);
    event->activity_task_completed_event_attributes->scheduled_event_id = activity->scheduled_event_id;
    if (r->result != NULL) {
        event->activity_task_completed_event_attributes->result = HF_ARENA_NEW(&run->arena, hf_pb_payloads);
        (void)hf_pb_copy(&hf_pb_payloads_type, r->result, &run->arena,
                         event->activity_task_completed_event_attributes->result);
    }
    activity->scheduled_event_id = 0;
    happen(f, run, event);
    answer(f, call);
}

static void on_activity_failed(fake_service *f, hf_call *call)
{
    const hf_pb_respond_activity_task_failed_request *r = call->request;
    fake_run *run = NULL;
    fake_activity *activity = activity_of_token(f, r->task_token, &run);
    if (activity == NULL) {
        finish(f, call, HF_ERR_NOT_FOUND, "no such activity");
        return;
    }
    const hf_pb_retry_policy *retry = activity->command->retry_policy;
    if (retry == NULL || retry->maximum_attempts == 0 || activity->attempt < retry->maximum_attempts) {
        activity->attempt++;
        activity->is_out = false;
        answer(f, call);
        return;
    }
    activity_started(f, run, activity);
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_ACTIVITY_TASK_FAILED);
    ATTRIBUTES(run, event, ACTIVITY_TASK_FAILED, activity_task_failed);
    event->activity_task_failed_event_attributes->scheduled_event_id = activity->scheduled_event_id;
    event->activity_task_failed_event_attributes->failure = HF_ARENA_NEW(&run->arena, hf_pb_failure);
    (void)hf_pb_copy(&hf_pb_failure_type, r->failure, &run->arena,
                     event->activity_task_failed_event_attributes->failure);
    activity->scheduled_event_id = 0;
    happen(f, run, event);
    answer(f, call);
}

static void on_activity_canceled(fake_service *f, hf_call *call)
{
    const hf_pb_respond_activity_task_canceled_request *r = call->request;
    fake_run *run = NULL;
    fake_activity *activity = activity_of_token(f, r->task_token, &run);
    if (activity == NULL) {
        finish(f, call, HF_ERR_NOT_FOUND, "no such activity");
        return;
    }
    activity_canceled(f, run, activity);
    answer(f, call);
}

static void on_heartbeat(fake_service *f, hf_call *call)
{
    const hf_pb_record_activity_task_heartbeat_request *r = call->request;
    fake_run *run = NULL;
    fake_activity *activity = activity_of_token(f, r->task_token, &run);
    f->heartbeats++;
    if (activity == NULL) {
        finish(f, call, HF_ERR_NOT_FOUND, "no such activity");
        return;
    }
    if (r->details != NULL) {
        activity->details = HF_ARENA_NEW(&run->arena, hf_pb_payloads);
        (void)hf_pb_copy(&hf_pb_payloads_type, r->details, &run->arena, activity->details);
    }
    hf_pb_record_activity_task_heartbeat_response *response = respond(call);
    response->cancel_requested = activity->is_cancel_requested;
    finish(f, call, HF_OK, "");
}

/* ---- Clients ----------------------------------------------------------------------------------------------------- */

static void on_start(fake_service *f, hf_call *call)
{
    const hf_pb_start_workflow_execution_request *r = call->request;
    hf_pb_workflow_execution which = {.workflow_id = r->workflow_id};
    fake_run *other = find_run(f, &which);
    if (other != NULL && !other->is_closed) {
        finish(f, call, HF_ERR_EXISTS, "a workflow of this id runs");
        return;
    }
    fake_run *run = calloc(1, sizeof *run);
    char run_id[64];
    hf_arena_init(&run->arena, MEMORY);
    (void)snprintf(run_id, sizeof run_id, "run-of-%.*s", HF_STR_ARGS(r->workflow_id));
    run->id = hf_arena_copy(&run->arena, r->workflow_id);
    run->run_id = hf_arena_copy(&run->arena, hf_str_of(run_id));
    run->queue = hf_arena_copy(&run->arena, r->task_queue->name);
    run->type = hf_arena_copy(&run->arena, r->workflow_type->name);
    run->wft_attempt = 1;
    hf_list_push_back(&f->runs, &run->node);
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED);
    ATTRIBUTES(run, event, WORKFLOW_EXECUTION_STARTED, workflow_execution_started);
    if (r->input != NULL) {
        hf_pb_payloads *copy = HF_ARENA_NEW(&run->arena, hf_pb_payloads);
        (void)hf_pb_copy(&hf_pb_payloads_type, r->input, &run->arena, copy);
        event->workflow_execution_started_event_attributes->input = copy;
    }
    happen(f, run, event);
    hf_pb_start_workflow_execution_response *response = respond(call);
    response->run_id = hf_arena_copy(call->arena, run->run_id);
    response->started = true;
    finish(f, call, HF_OK, "");
}

static void on_signal(fake_service *f, hf_call *call)
{
    const hf_pb_signal_workflow_execution_request *r = call->request;
    fake_run *run = find_run(f, r->workflow_execution);
    if (run == NULL || run->is_closed) {
        finish(f, call, HF_ERR_NOT_FOUND, "no such workflow runs");
        return;
    }
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
    ATTRIBUTES(run, event, WORKFLOW_EXECUTION_SIGNALED, workflow_execution_signaled);
    event->workflow_execution_signaled_event_attributes->signal_name = hf_arena_copy(&run->arena, r->signal_name);
    if (r->input != NULL) {
        hf_pb_payloads *copy = HF_ARENA_NEW(&run->arena, hf_pb_payloads);
        (void)hf_pb_copy(&hf_pb_payloads_type, r->input, &run->arena, copy);
        event->workflow_execution_signaled_event_attributes->input = copy;
    }
    happen(f, run, event);
    answer(f, call);
}

static void on_cancel_request(fake_service *f, hf_call *call)
{
    const hf_pb_request_cancel_workflow_execution_request *r = call->request;
    fake_run *run = find_run(f, r->workflow_execution);
    if (run == NULL) {
        finish(f, call, HF_ERR_NOT_FOUND, "no such workflow");
        return;
    }
    if (!run->is_closed) {
        hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED);
        ATTRIBUTES(run, event, WORKFLOW_EXECUTION_CANCEL_REQUESTED, workflow_execution_cancel_requested);
        happen(f, run, event);
    }
    answer(f, call);
}

static void on_terminate(fake_service *f, hf_call *call)
{
    const hf_pb_terminate_workflow_execution_request *r = call->request;
    fake_run *run = find_run(f, r->workflow_execution);
    if (run == NULL || run->is_closed) {
        finish(f, call, HF_ERR_NOT_FOUND, "no such workflow runs");
        return;
    }
    hf_pb_history_event *event = make_event(run, HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED);
    ATTRIBUTES(run, event, WORKFLOW_EXECUTION_TERMINATED, workflow_execution_terminated);
    event->workflow_execution_terminated_event_attributes->reason = hf_arena_copy(&run->arena, r->reason);
    (void)append(f, run, event);
    close_run(run);
    answer(f, call);
}

/* True: it was answered. */
static bool try_history(fake_service *f, hf_call *call)
{
    const hf_pb_get_workflow_execution_history_request *r = call->request;
    fake_run *run = find_run(f, r->execution);
    if (run == NULL) {
        finish(f, call, HF_ERR_NOT_FOUND, "no such workflow");
        return true;
    }
    bool wants_close = r->history_event_filter_type == HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT;
    if (wants_close && !run->is_closed) {
        if (!r->wait_new_event) {
            answer(f, call);
        }
        return !r->wait_new_event;
    }
    int64_t from = wants_close ? (int64_t)run->event_count : 1;
    if (!wants_close) {
        f->histories++;
        if (r->next_page_token.len > 0) {
            (void)run_of_token(f, r->next_page_token, &from);
        }
    }
    hf_pb_get_workflow_execution_history_response *response = respond(call);
    response->history = wants_close ? history_bytes(run, from, from, call->arena)
                                    : page_bytes(f, run, from, call->arena, &response->next_page_token);
    finish(f, call, HF_OK, "");
    return true;
}

/* ---- The service ------------------------------------------------------------------------------------------------- */

static void handle(fake_service *f, hf_call *call)
{
    static void (*const HANDLERS[HF_METHOD_COUNT])(fake_service *, hf_call *) = {
        [HF_METHOD_START_WORKFLOW_EXECUTION] = on_start,
        [HF_METHOD_SIGNAL_WORKFLOW_EXECUTION] = on_signal,
        [HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION] = on_cancel_request,
        [HF_METHOD_TERMINATE_WORKFLOW_EXECUTION] = on_terminate,
        [HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED] = on_completed,
        [HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED] = on_task_failed,
        [HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED] = on_activity_completed,
        [HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED] = on_activity_failed,
        [HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED] = on_activity_canceled,
        [HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT] = on_heartbeat,
        [HF_METHOD_SHUTDOWN_WORKER] = answer,
        [HF_METHOD_RESET_STICKY_TASK_QUEUE] = answer,
    };
    if (f->closed != HF_OK) {
        finish(f, call, f->closed, "the service is closed");
    } else if (HANDLERS[call->method] != NULL) {
        HANDLERS[call->method](f, call);
    } else {
        hf_list_push_back(&f->calls, &call->link); /* polls: see match */
    }
}

static bool try_call(fake_service *f, hf_call *call)
{
    switch ((int)call->method) {
    case HF_METHOD_POLL_WORKFLOW_TASK_QUEUE:
        return try_workflow_poll(f, call);
    case HF_METHOD_POLL_ACTIVITY_TASK_QUEUE:
        return try_activity_poll(f, call);
    case HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY:
        return try_history(f, call);
    default:
        finish(f, call, HF_ERR_UNSUPPORTED, "the fake cannot do that");
        return true;
    }
}

/* Gives to those who wait what there is; lets time pass where nothing else can happen. */
static void match(fake_service *f)
{
    bool again = true;
    while (again) {
        again = false;
        HF_LIST_EACH(node, &f->calls)
        {
            (void)try_call(f, HF_CONTAINER(node, hf_call, link));
        }
        HF_LIST_EACH(node, &f->runs)
        {
            fake_run *run = HF_CONTAINER(node, fake_run, node);
            fake_timer *timer = f->options.auto_timers && waits_for_time_only(run) ? next_timer(run) : NULL;
            if (timer != NULL) {
                fire_timer(f, run, timer);
                again = true;
            }
        }
    }
}

/* Ends the locked part: tells who is done. */
static void tell(fake_service *f)
{
    match(f);
    for (;;) {
        hf_node *node = hf_list_pop_front(&f->done);
        if (node == NULL) {
            break;
        }
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        hf_spin_unlock(&f->lock);
        call->done(call);
        hf_spin_lock(&f->lock);
    }
    hf_spin_unlock(&f->lock);
}

static void submit(hf_service *service, hf_call *call)
{
    fake_service *f = (fake_service *)(void *)service;
    hf_spin_lock(&f->lock);
    handle(f, call);
    tell(f);
}

static void cancel(hf_service *service, hf_call *call)
{
    fake_service *f = (fake_service *)(void *)service;
    hf_spin_lock(&f->lock);
    HF_LIST_EACH(node, &f->calls)
    {
        if (node == &call->link) {
            finish(f, call, HF_ERR_CANCELED, "the caller has gone");
        }
    }
    tell(f);
}

static void unwanted(hf_service *service, hf_str token)
{
    fake_service *f = (fake_service *)(void *)service;
    int64_t number = 0;
    hf_spin_lock(&f->lock);
    fake_run *run = run_of_token(f, token, &number);
    if (run != NULL && run->wft == WFT_STARTED && run->wft_started_id == number) {
        run->event_count--; /* the started event: as if nobody had polled */
        run->wft = WFT_SCHEDULED;
        run->sticky = (hf_str){NULL, 0};
    }
    tell(f);
}

static hf_status close_service(hf_op *op, hf_service *service)
{
    (void)op;
    (void)service;
    return HF_OK;
}

fake_service *fake_new(const fake_options *options)
{
    static const hf_service_ops OPS = {submit, cancel, unwanted, close_service};
    fake_service *f = calloc(1, sizeof *f);
    f->base.ops = &OPS;
    f->options = options != NULL ? *options : (fake_options){0};
    f->now_ns = INT64_C(1700000000000000000);
    hf_list_init(&f->runs);
    hf_list_init(&f->calls);
    hf_list_init(&f->done);
    return f;
}

void fake_free(fake_service *fake)
{
    HF_CHECK(hf_list_is_empty(&fake->calls));
    while (!hf_list_is_empty(&fake->runs)) {
        fake_run *run = HF_CONTAINER(hf_list_pop_front(&fake->runs), fake_run, node);
        hf_arena_deinit(&run->arena);
        free(run);
    }
    free(fake);
}

hf_service *fake_as_service(fake_service *fake)
{
    return &fake->base;
}

void fake_close(fake_service *fake, hf_status status)
{
    hf_spin_lock(&fake->lock);
    fake->closed = status;
    HF_LIST_EACH(node, &fake->calls)
    {
        finish(fake, HF_CONTAINER(node, hf_call, link), status, "the service is closed");
    }
    tell(fake);
}

bool fake_fire(fake_service *fake)
{
    fake_run *first = NULL;
    hf_spin_lock(&fake->lock);
    HF_LIST_EACH(node, &fake->runs)
    {
        fake_run *run = HF_CONTAINER(node, fake_run, node);
        fake_timer *timer = next_timer(run);
        if (timer != NULL && (first == NULL || timer->due_ns < next_timer(first)->due_ns)) {
            first = run;
        }
    }
    if (first != NULL) {
        fire_timer(fake, first, next_timer(first));
    }
    tell(fake);
    return first != NULL;
}

void fake_hold(fake_service *fake, const char *activity)
{
    hf_spin_lock(&fake->lock);
    fake->held = activity;
    hf_spin_unlock(&fake->lock);
}

const char *fake_log(fake_service *fake)
{
    return fake->log;
}

char *fake_events(fake_service *fake)
{
    char *text = calloc(1, 1 << 16);
    size_t used = 0;
    const fake_run *run = HF_CONTAINER(hf_list_last(&fake->runs), fake_run, node);
    for (size_t i = 0; i < run->event_count; i++) {
        used += (size_t)snprintf(text + used, (1 << 16) - used, "%s ",
                                 hf_pb_enum_brief(&hf_pb_event_type_enum, run->events[i]->event_type));
    }
    return text;
}

int fake_heartbeats(const fake_service *fake)
{
    return fake->heartbeats;
}

int fake_activities(const fake_service *fake)
{
    return fake->given;
}

int fake_histories(const fake_service *fake)
{
    return fake->histories;
}
