/* The runs of the fake service: their events, in order or buffered until the end of a workflow task, and their timers. */
#include "support/fake_private.h"

#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const hf_allocator fake_memory = {allocate, release, NULL};

void fake_finish(fake_service *f, hf_call *call, hf_status status, const char *message)
{
    call->status = status;
    (void)snprintf(call->message, sizeof call->message, "%s", message);
    if (hf_node_is_linked(&call->link)) {
        hf_list_remove(&call->link);
    }
    hf_list_push_back(&f->done, &call->link);
}

void *fake_respond(hf_call *call)
{
    call->response = hf_arena_zero(call->arena, hf_method_info_of(call->method)->response_len, 16);
    return call->response;
}

void fake_answer(fake_service *f, hf_call *call)
{
    (void)fake_respond(call);
    fake_finish(f, call, HF_OK, "");
}

fake_run *fake_find_run(fake_service *f, const hf_pb_workflow_execution *which)
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
fake_run *fake_run_of_token(fake_service *f, hf_str token, int64_t *ret_number)
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

hf_str fake_token_of(hf_arena *arena, const fake_run *run, int64_t number)
{
    char text[128];
    (void)snprintf(text, sizeof text, "%.*s/%lld", HF_STR_ARGS(run->run_id), (long long)number);
    return hf_arena_copy(arena, hf_str_of(text));
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

hf_pb_history_event *fake_make_event(fake_run *run, int32_t type)
{
    hf_pb_history_event *event = HF_ARENA_NEW(&run->arena, hf_pb_history_event);
    event->event_type = type;
    return event;
}

int64_t fake_append(fake_service *f, fake_run *run, hf_pb_history_event *event)
{
    f->now_ns += 1000000;
    event->event_id = (int64_t)run->event_count + 1;
    event->event_time = hf_pb_timestamp_of((hf_time){f->now_ns});
    assert_true(run->event_count < EVENTS_MAX);
    run->events[run->event_count++] = event;
    return event->event_id;
}

void fake_schedule_wft(fake_service *f, fake_run *run)
{
    if (run->wft != WFT_NONE || run->is_closed) {
        return;
    }
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED);
    FAKE_ATTRIBUTES(run, event, WORKFLOW_TASK_SCHEDULED, workflow_task_scheduled);
    run->wft_scheduled_id = fake_append(f, run, event);
    run->wft = WFT_SCHEDULED;
}

/* Appends an event to the run: at once, or after the task that is out. */
void fake_happen(fake_service *f, fake_run *run, hf_pb_history_event *event)
{
    if (run->wft == WFT_STARTED) {
        run->buffered[run->buffered_count++] = event;
        return;
    }
    (void)fake_append(f, run, event);
    fake_schedule_wft(f, run);
}

void fake_flush(fake_service *f, fake_run *run)
{
    size_t count = run->buffered_count;
    run->buffered_count = 0;
    for (size_t i = 0; i < count && !run->is_closed; i++) {
        (void)fake_append(f, run, run->buffered[i]);
    }
    if (count > 0) {
        fake_schedule_wft(f, run);
    }
}

void fake_close_run(fake_run *run)
{
    run->is_closed = true;
    run->wft = WFT_NONE;
}

hf_str fake_history_bytes(const fake_run *run, int64_t from, int64_t to, hf_arena *arena)
{
    hf_buf buf;
    hf_buf_init(&buf, fake_memory, (size_t)1 << 26);
    for (int64_t id = from; id <= to && id <= (int64_t)run->event_count; id++) {
        hf_pb_encode_field(1, &hf_pb_history_event_type, run->events[id - 1], &buf);
    }
    hf_str bytes = hf_arena_copy(arena, hf_str_of_len(hf_buf_text(&buf), buf.len));
    hf_buf_deinit(&buf);
    return bytes;
}

/* ---- Timers ------------------------------------------------------------------------------------------------------ */

void fake_fire_timer(fake_service *f, fake_run *run, fake_timer *timer)
{
    f->now_ns = timer->due_ns > f->now_ns ? timer->due_ns : f->now_ns;
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_TIMER_FIRED);
    FAKE_ATTRIBUTES(run, event, TIMER_FIRED, timer_fired);
    event->timer_fired_event_attributes->timer_id = hf_arena_copy(&run->arena, hf_str_of(timer->id));
    event->timer_fired_event_attributes->started_event_id = timer->started_event_id;
    timer->started_event_id = 0;
    fake_happen(f, run, event);
}

void fake_add_timer(const fake_service *f, fake_run *run, const hf_pb_history_event *started)
{
    const hf_pb_timer_started_event_attributes *a = started->timer_started_event_attributes;
    fake_timer *place = run->timers;
    while (place->started_event_id != 0) {
        place++;
    }
    place->started_event_id = started->event_id;
    place->due_ns = f->now_ns + hf_pb_duration_span(a->start_to_fire_timeout).ns;
    (void)snprintf(place->id, sizeof place->id, "%.*s", HF_STR_ARGS(a->timer_id));
}

int64_t fake_drop_timer(fake_run *run, hf_str timer_id)
{
    for (size_t i = 0; i < TIMERS_MAX; i++) {
        fake_timer *timer = &run->timers[i];
        if (timer->started_event_id != 0 && hf_str_equal(hf_str_of(timer->id), timer_id)) {
            int64_t started_event_id = timer->started_event_id;
            timer->started_event_id = 0;
            return started_event_id;
        }
    }
    return 0;
}

fake_timer *fake_next_timer(fake_run *run)
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

bool fake_waits_for_time_only(const fake_run *run)
{
    for (size_t i = 0; i < ACTIVITIES_MAX; i++) {
        if (run->activities[i].scheduled_event_id != 0) {
            return false;
        }
    }
    return run->wft == WFT_NONE;
}
