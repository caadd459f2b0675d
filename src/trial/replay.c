/* The reel: a service that gives a worker one workflow task, whose history is a recorded one with one more task at its end, and takes the answer.
 * So every recorded step is an old one, also the one that ended the run: the worker compares the commands of the code with the events that
 * they became. Nothing else happens: no timer fires, no activity runs. */
#include "trial/replay.h"

#include "base/buf.h"
#include "base/env.h"
#include "base/latch.h"
#include "client/data.h"
#include "worker/worker_private.h"

#include <stdio.h>
#include <string.h>

typedef struct hf_reel {
    hf_service service; /* first: the worker sees this */
    hf_env *env;
    hf_arena arena;
    hf_buf bytes; /* of the history, with the task at its end */
    hf_str run_id;
    hf_str workflow_id;
    hf_str type;
    int64_t started_event_id; /* of that task */
    size_t event_count;       /* that were recorded */
    hf_latch answered;
    hf_spin lock; /* protects what follows */
    uint64_t calls;
    bool is_given;
    bool is_answered;
    hf_list parked; /* hf_call: polls */
    bool is_same;
    char why[HF_MESSAGE_LEN_MAX];
} hf_reel;

/* ---- Reading ------------------------------------------------------------------------------------------------------------------ */

static bool is_of_open_task(const hf_pb_history_event *event)
{
    return event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED ||
           event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_STARTED;
}

static hf_status take_start(hf_op *op, hf_reel *reel, const hf_pb_history *history)
{
    const hf_pb_history_event *first = history->events.count > 0 ? &history->events.items[0] : NULL;
    if (first == NULL || first->attributes_case != HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES) {
        return hf_fail(op, HF_ERR_INVALID, "the history does not begin with WorkflowExecutionStarted");
    }
    const hf_pb_workflow_execution_started_event_attributes *started =
        first->workflow_execution_started_event_attributes;
    if (started->workflow_type == NULL) {
        return hf_fail(op, HF_ERR_INVALID, "the history does not name the type of its workflow");
    }
    reel->type = started->workflow_type->name;
    reel->workflow_id = started->workflow_id.len > 0 ? started->workflow_id : HF_STR("replayed");
    reel->run_id = started->original_execution_run_id.len > 0 ? started->original_execution_run_id : HF_STR("replayed");
    for (size_t i = 0; i < history->events.count; i++) {
        const hf_pb_history_event *event = &history->events.items[i];
        if (event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_TASK_FAILED_EVENT_ATTRIBUTES &&
            event->workflow_task_failed_event_attributes->new_run_id.len > 0) {
            reel->run_id = event->workflow_task_failed_event_attributes->new_run_id; /* a reset has made it */
        }
    }
    return HF_OK;
}

/* The recorded events, without a task that had not ended, and one more workflow task. */
static void put_events(hf_reel *reel, const hf_pb_history *history)
{
    size_t count = history->events.count;
    while (count > 1 && is_of_open_task(&history->events.items[count - 1])) {
        count--;
    }
    for (size_t i = 0; i < count; i++) {
        hf_pb_encode_field(1, &hf_pb_history_event_type, &history->events.items[i], &reel->bytes);
    }
    const hf_pb_history_event *last = &history->events.items[count - 1];
    hf_pb_workflow_task_scheduled_event_attributes scheduled = {.attempt = 1};
    hf_pb_workflow_task_started_event_attributes started = {.scheduled_event_id = last->event_id + 1};
    hf_pb_history_event event = {.event_id = last->event_id + 1,
                                 .event_time = last->event_time,
                                 .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
                                 .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_SCHEDULED_EVENT_ATTRIBUTES,
                                 .workflow_task_scheduled_event_attributes = &scheduled};
    hf_pb_encode_field(1, &hf_pb_history_event_type, &event, &reel->bytes);
    event = (hf_pb_history_event){.event_id = last->event_id + 2,
                                  .event_time = last->event_time,
                                  .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_STARTED,
                                  .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_STARTED_EVENT_ATTRIBUTES,
                                  .workflow_task_started_event_attributes = &started};
    hf_pb_encode_field(1, &hf_pb_history_event_type, &event, &reel->bytes);
    reel->started_event_id = last->event_id + 2;
    reel->event_count = history->events.count;
}

static hf_status read_history(hf_op *op, hf_reel *reel, hf_str bytes)
{
    hf_pb_history *history = HF_ARENA_NEW(&reel->arena, hf_pb_history);
    if (history == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a history");
    }
    HF_TRY(hf_pb_decode(op, &hf_pb_history_type, bytes, &reel->arena, history));
    HF_TRY(take_start(op, reel, history));
    put_events(reel, history);
    return hf_buf_status(&reel->bytes) == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for a history");
}

/* ---- The service --------------------------------------------------------------------------------------------------------------- */

static void *respond(hf_call *call)
{
    void *response = hf_arena_zero(call->arena, hf_method_info_of(call->method)->response_len, 16);
    if (response == NULL) {
        hf_call_set_failure(call, HF_ERR_NOMEM, "no memory for an answer");
    } else {
        call->status = HF_OK;
        call->response = response;
    }
    return response;
}

static void give_task(const hf_reel *reel, hf_call *call)
{
    hf_pb_poll_workflow_task_queue_response *task = respond(call);
    if (task == NULL) {
        return;
    }
    task->task_token = hf_arena_copy(call->arena, HF_STR("replay"));
    task->workflow_execution = HF_ARENA_NEW(call->arena, hf_pb_workflow_execution);
    task->workflow_type = HF_ARENA_NEW(call->arena, hf_pb_workflow_type);
    if (task->workflow_execution != NULL && task->workflow_type != NULL) {
        task->workflow_execution->workflow_id = hf_arena_copy(call->arena, reel->workflow_id);
        task->workflow_execution->run_id = hf_arena_copy(call->arena, reel->run_id);
        task->workflow_type->name = hf_arena_copy(call->arena, reel->type);
    }
    task->attempt = 1;
    task->started_event_id = reel->started_event_id;
    task->history = hf_arena_copy(call->arena, hf_str_of_len(reel->bytes.data, reel->bytes.len));
    if (call->arena->status != HF_OK) {
        hf_call_set_failure(call, HF_ERR_NOMEM, "no memory for a task");
    }
}

/* Locked. */
static void take_answer(hf_reel *reel, const hf_call *call)
{
    if (reel->is_answered) {
        return;
    }
    reel->is_answered = true;
    reel->is_same = call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED;
    if (!reel->is_same) {
        const hf_pb_respond_workflow_task_failed_request *request = call->request;
        hf_str message = request->failure != NULL ? request->failure->message : HF_STR("it failed");
        (void)snprintf(reel->why, sizeof reel->why, "%.*s", HF_STR_ARGS(message));
    }
}

static void submit(hf_service *service, hf_call *call)
{
    hf_reel *reel = (hf_reel *)(void *)service;
    bool is_parked = false;
    bool is_task = false;
    bool is_answer = call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED ||
                     call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED;
    hf_spin_lock(&reel->lock);
    call->number = ++reel->calls;
    if (call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE && !reel->is_given) {
        reel->is_given = is_task = true;
    } else if (call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE ||
               call->method == HF_METHOD_POLL_ACTIVITY_TASK_QUEUE) {
        is_parked = true;
        hf_list_push_back(&reel->parked, &call->link);
    } else if (is_answer) {
        take_answer(reel, call);
    }
    hf_spin_unlock(&reel->lock);
    if (is_parked) {
        return;
    }
    if (is_task) {
        give_task(reel, call);
    } else {
        (void)respond(call);
    }
    call->done(call);
    if (is_answer) {
        hf_latch_open(reel->env, &reel->answered);
    }
}

static void cancel(hf_service *service, uint64_t number)
{
    hf_reel *reel = (hf_reel *)(void *)service;
    hf_call *found = NULL;
    hf_spin_lock(&reel->lock);
    HF_LIST_EACH(node, &reel->parked)
    {
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        if (call->number == number) {
            hf_list_remove(node);
            found = call;
        }
    }
    hf_spin_unlock(&reel->lock);
    if (found != NULL) {
        hf_call_set_failure(found, HF_ERR_CANCELED, "the caller has canceled the call");
        found->done(found);
    }
}

static void unwanted(hf_service *service, hf_str task_token)
{
    (void)service;
    (void)task_token;
}

static const hf_service_ops OPS = {submit, cancel, unwanted, NULL, NULL};

/* ---- Replaying ------------------------------------------------------------------------------------------------------------------ */

static void ignore(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)event;
    (void)fields;
}

static hf_status play(hf_reel *reel, hf_runtime *rt, hf_status (*add)(void *state, hf_worker *worker), void *state,
                      hf_replay_result *result)
{
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_TRY(hf_worker_new(&reel->service, "replay", &worker, .runtime = rt, .pollers_max = 1, .activity_pollers_max = 1,
                         .shutdown_grace = HF_SPAN_OFF, .shutdown_force = hf_seconds(1)));
    HF_TRY(add(state, worker));
    result->is_known = hf_function_find(&worker->workflows, reel->type) != NULL;
    if (!result->is_known) {
        return HF_OK;
    }
    HF_TRY(hf_worker_start(worker));
    hf_latch_wait(reel->env, &reel->answered);
    hf_spin_lock(&reel->lock);
    result->is_same = reel->is_same;
    memcpy(result->why, reel->why, sizeof result->why);
    hf_spin_unlock(&reel->lock);
    return HF_OK;
}

hf_status hf_replay(hf_str history, hf_status (*add)(void *state, hf_worker *worker), void *state,
                    hf_replay_result *ret_result)
{
    hf_op op;
    hf_op_init(&op);
    hf_env *env = hf_env_posix();
    hf_runtime *rt = NULL;
    hf_reel reel = {.service = {.ops = &OPS}, .env = env};
    hf_assert(hf_runtime_current() == NULL);
    *ret_result = (hf_replay_result){.is_known = false};
    hf_list_init(&reel.parked);
    hf_arena_init(&reel.arena, hf_env_memory(env));
    hf_buf_init(&reel.bytes, hf_env_memory(env), SIZE_MAX / 4);
    hf_status status = read_history(&op, &reel, history);
    if (status != HF_OK) {
        status = hf_failure_raise_op(&op);
    } else {
        (void)snprintf(ret_result->type, sizeof ret_result->type, "%.*s", HF_STR_ARGS(reel.type));
        ret_result->event_count = reel.event_count;
        status =
            hf_runtime_new(&rt, .name = "replay", .threads = 1, .log = ignore, .watchdog = {.zombies_max = HF_OFF});
    }
    if (status == HF_OK) {
        status = play(&reel, rt, add, state, ret_result);
        (void)hf_runtime_free(rt);
    }
    hf_buf_deinit(&reel.bytes);
    hf_arena_deinit(&reel.arena);
    return status;
}
