/* The fake service: requests of clients, waiting calls, and the lock around everything. The rest is in fake_run.c
 * (events, timers), fake_workflow.c (workflow tasks) and fake_activity.c. */
#include "support/fake_private.h"

#include "history/history.h"
#include "history/pb_json_read.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Clients ----------------------------------------------------------------------------------------------------- */

static void on_start(fake_service *f, hf_call *call)
{
    const hf_pb_start_workflow_execution_request *r = call->request;
    hf_pb_workflow_execution which = {.workflow_id = r->workflow_id};
    fake_run *other = fake_find_run(f, &which);
    if (other != NULL && !other->is_closed) {
        fake_finish(f, call, HF_ERR_EXISTS, "a workflow of this id runs");
        return;
    }
    fake_run *run = calloc(1, sizeof *run);
    char run_id[64];
    hf_arena_init(&run->arena, fake_memory);
    (void)snprintf(run_id, sizeof run_id, "run-of-%.*s", HF_STR_ARGS(r->workflow_id));
    run->id = hf_arena_copy(&run->arena, r->workflow_id);
    run->run_id = hf_arena_copy(&run->arena, hf_str_of(run_id));
    run->queue = hf_arena_copy(&run->arena, r->task_queue->name);
    run->type = hf_arena_copy(&run->arena, r->workflow_type->name);
    run->wft_attempt = 1;
    hf_list_push_back(&f->runs, &run->node);
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED);
    FAKE_ATTRIBUTES(run, event, WORKFLOW_EXECUTION_STARTED, workflow_execution_started);
    if (r->input != NULL) {
        hf_pb_payloads *copy = HF_ARENA_NEW(&run->arena, hf_pb_payloads);
        (void)hf_pb_copy(&hf_pb_payloads_type, r->input, &run->arena, copy);
        event->workflow_execution_started_event_attributes->input = copy;
    }
    fake_happen(f, run, event);
    hf_pb_start_workflow_execution_response *response = fake_respond(call);
    response->run_id = hf_arena_copy(call->arena, run->run_id);
    response->started = true;
    fake_finish(f, call, HF_OK, "");
}

static void on_signal(fake_service *f, hf_call *call)
{
    const hf_pb_signal_workflow_execution_request *r = call->request;
    fake_run *run = fake_find_run(f, r->workflow_execution);
    if (run == NULL || run->is_closed) {
        fake_finish(f, call, HF_ERR_NOT_FOUND, "no such workflow runs");
        return;
    }
    hf_pb_history_event *event = fake_make_event(run, HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
    FAKE_ATTRIBUTES(run, event, WORKFLOW_EXECUTION_SIGNALED, workflow_execution_signaled);
    event->workflow_execution_signaled_event_attributes->signal_name = hf_arena_copy(&run->arena, r->signal_name);
    hf_assert(r->input == NULL); /* no test sends one here */
    fake_happen(f, run, event);
    fake_answer(f, call);
}

/* True: it was answered. */
static bool try_history(fake_service *f, hf_call *call)
{
    const hf_pb_get_workflow_execution_history_request *r = call->request;
    fake_run *run = fake_find_run(f, r->execution);
    if (run == NULL) {
        fake_finish(f, call, HF_ERR_NOT_FOUND, "no such workflow");
        return true;
    }
    bool wants_close = r->history_event_filter_type == HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT;
    if (wants_close && !run->is_closed && r->wait_new_event) {
        return false;
    }
    int64_t last = (int64_t)run->event_count;
    int64_t from = !wants_close ? 1 : run->is_closed ? last : last + 1; /* an open run has no such event */
    hf_pb_get_workflow_execution_history_response *response = fake_respond(call);
    response->history = fake_history_bytes(run, from, last, call->arena);
    fake_finish(f, call, HF_OK, "");
    return true;
}

/* ---- The service ------------------------------------------------------------------------------------------------- */

static void handle(fake_service *f, hf_call *call)
{
    static void (*const HANDLERS[HF_METHOD_COUNT])(fake_service *, hf_call *) = {
        [HF_METHOD_START_WORKFLOW_EXECUTION] = on_start,
        [HF_METHOD_SIGNAL_WORKFLOW_EXECUTION] = on_signal,
        [HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED] = fake_on_completed,
        [HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED] = fake_on_task_failed,
        [HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED] = fake_on_activity_completed,
        [HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED] = fake_on_activity_failed,
        [HF_METHOD_SHUTDOWN_WORKER] = fake_answer,
        [HF_METHOD_RESET_STICKY_TASK_QUEUE] = fake_answer,
    };
    if (HANDLERS[call->method] != NULL) {
        HANDLERS[call->method](f, call);
    } else {
        hf_list_push_back(&f->calls, &call->link); /* polls: see match */
    }
}

static bool try_call(fake_service *f, hf_call *call)
{
    switch ((int)call->method) {
    case HF_METHOD_POLL_WORKFLOW_TASK_QUEUE:
        return fake_try_workflow_poll(f, call);
    case HF_METHOD_POLL_ACTIVITY_TASK_QUEUE:
        return fake_try_activity_poll(f, call);
    case HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY:
        return try_history(f, call);
    default:
        fake_finish(f, call, HF_ERR_UNSUPPORTED, "the fake cannot do that");
        return true;
    }
}

/* Answers waiting polls that have something to get; moves time on if nothing else can happen. */
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
            fake_timer *timer = fake_waits_for_time_only(run) ? fake_next_timer(run) : NULL;
            if (timer != NULL) {
                fake_fire_timer(f, run, timer);
                again = true;
            }
        }
    }
}

/* Ends the locked part: calls `done` of the calls that ended. */
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
    call->number = ++f->calls_count;
    handle(f, call);
    tell(f);
}

static void cancel(hf_service *service, uint64_t number)
{
    fake_service *f = (fake_service *)(void *)service;
    hf_spin_lock(&f->lock);
    HF_LIST_EACH(node, &f->calls)
    {
        if (HF_CONTAINER(node, hf_call, link)->number == number) {
            fake_finish(f, HF_CONTAINER(node, hf_call, link), HF_ERR_CANCELED, "the caller has gone");
        }
    }
    tell(f);
}

static void unwanted(hf_service *service, hf_str token)
{
    fake_service *f = (fake_service *)(void *)service;
    int64_t number = 0;
    hf_spin_lock(&f->lock);
    fake_run *run = fake_run_of_token(f, token, &number);
    if (run != NULL && run->wft == WFT_STARTED && run->wft_started_id == number) {
        run->event_count--; /* removes the started event, as if there had been no poll */
        run->wft = WFT_SCHEDULED;
        run->sticky = (hf_str){NULL, 0};
    }
    tell(f);
}

/* All calls are done, and no thread is in the tap before it: nobody is here any more. */
static hf_status close_service(hf_op *op, hf_service *service)
{
    fake_service *f = (fake_service *)(void *)service;
    (void)op;
    HF_CHECK(hf_list_is_empty(&f->calls));
    while (!hf_list_is_empty(&f->runs)) {
        fake_run *run = HF_CONTAINER(hf_list_pop_front(&f->runs), fake_run, node);
        hf_arena_deinit(&run->arena);
        free(run);
    }
    free(f);
    return HF_OK;
}

hf_status fake_open(hf_service **ret_service)
{
    static const hf_service_ops OPS = {submit, cancel, unwanted, close_service, NULL};
    fake_service *f = calloc(1, sizeof *f);
    hf_assert(f != NULL);
    f->base.ops = &OPS;
    f->now_ns = INT64_C(1700000000000000000);
    hf_list_init(&f->runs);
    hf_list_init(&f->calls);
    hf_list_init(&f->done);
    *ret_service = &f->base;
    return HF_OK;
}

/* Applies an event of a recorded history to the run. */
static void put_event(fake_service *f, fake_run *run, hf_pb_history_event *event)
{
    int64_t ns = hf_pb_timestamp_time(event->event_time).ns;
    f->now_ns = ns > f->now_ns ? ns : f->now_ns;
    run->events[run->event_count++] = event;
    if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_STARTED) {
        run->wft_started_before = event->event_id;
    } else if (event->event_type == HF_EVENT_TYPE_TIMER_STARTED) {
        fake_add_timer(f, run, event);
    } else if (event->event_type == HF_EVENT_TYPE_TIMER_FIRED) {
        fake_drop_timer(run, event->timer_fired_event_attributes->timer_id);
    } else if (event->event_type == HF_EVENT_TYPE_TIMER_CANCELED) {
        fake_drop_timer(run, event->timer_canceled_event_attributes->timer_id);
    }
}

size_t fake_put_history(hf_service *service, const char *id, const char *queue, hf_str json, size_t count)
{
    fake_service *f = (fake_service *)(void *)service;
    fake_run *run = calloc(1, sizeof *run);
    hf_op op;
    hf_buf bytes;
    hf_op_init(&op);
    hf_arena_init(&run->arena, fake_memory);
    hf_buf_init(&bytes, fake_memory, (size_t)1 << 26);
    hf_pb_history *history = HF_ARENA_NEW(&run->arena, hf_pb_history);
    if (hf_history_from_json(&op, json, &run->arena, &bytes) != HF_OK ||
        hf_pb_decode(&op, &hf_pb_history_type, hf_arena_copy(&run->arena, hf_str_of_len(bytes.data, bytes.len)),
                     &run->arena, history) != HF_OK) {
        fail_msg("%s", op.message);
    }
    hf_buf_deinit(&bytes);
    const hf_pb_workflow_execution_started_event_attributes *started =
        history->events.items[0].workflow_execution_started_event_attributes;
    run->id = hf_arena_copy(&run->arena, hf_str_of(id));
    run->run_id = hf_arena_copy(&run->arena, started->original_execution_run_id);
    run->queue = hf_arena_copy(&run->arena, hf_str_of(queue));
    run->type = started->workflow_type->name;
    run->wft_attempt = 1;
    hf_spin_lock(&f->lock);
    for (size_t i = 0; i < history->events.count && (count == 0 || i < count); i++) {
        put_event(f, run, &history->events.items[i]);
    }
    hf_list_push_back(&f->runs, &run->node);
    hf_spin_unlock(&f->lock);
    return run->event_count;
}
