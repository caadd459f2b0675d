/* Pollers: fibers that wait for tasks and hand them on. Their polls are long; a cancel ends them.
 *
 * Workflow pollers take a slot after a task came: a step is short, and cached runs must not wait behind polls. Activity
 * pollers take one before they ask: an activity may last for hours, and should go to a worker that has a free slot. */
#include "worker/worker_private.h"

enum { PAUSE_FIRST_MS = 100, PAUSE_MAX_MS = 5000 };

/* When one poll fails, all fail. So the failure is logged once per pause, not once per poller. */
static void tell(hf_worker *worker, const hf_op *op, int64_t pause_ms)
{
    int64_t now = hf_now(worker->rt).ns;
    int64_t quiet = atomic_load(&worker->quiet_ns);
    int64_t next = now + hf_milliseconds(pause_ms).ns;
    if (now >= quiet && atomic_compare_exchange_strong(&worker->quiet_ns, &quiet, next)) {
        hf_log(worker->rt, HF_LOG_WARN, "poll_failed", "queue=%.*s pause_ms=%lld message=%s",
               HF_STR_ARGS(worker->queue), (long long)pause_ms, op->message);
    }
}

/* Decides after a failed poll. HF_OK: try again. A status that does not pass by itself ends the worker, because no
 * later poll would succeed. */
static hf_status pause_after(hf_worker *worker, const hf_op *op, int64_t *pause_ms)
{
    hf_assert(op->status != HF_OK);
    hf_assert(*pause_ms >= PAUSE_FIRST_MS && *pause_ms <= PAUSE_MAX_MS);
    HF_TRY(hf_canceled());
    if (!hf_status_may_pass(op->status)) {
        if (!hf_guard_is_shut(&worker->guard)) { /* else the worker was left behind, which is reported already */
            hf_worker_give_up(worker, op->status, op->message);
        }
        return op->status;
    }
    tell(worker, op, *pause_ms);
    hf_status status = hf_sleep(hf_milliseconds(*pause_ms));
    *pause_ms = *pause_ms * 2 < PAUSE_MAX_MS ? *pause_ms * 2 : PAUSE_MAX_MS;
    return status;
}

/* A service that takes nothing back ends the polls when the worker signs off (serve.c), which waits for them. */
static hf_status ask(hf_op *op, hf_worker *worker, hf_call *call)
{
    if (!worker->service->takes_nothing_back) {
        return hf_service_ask(op, worker->service, call);
    }
    hf_worker_count(worker, &worker->polls_count, 1);
    hf_status status = hf_service_ask(op, worker->service, call);
    hf_worker_count(worker, &worker->polls_count, -1);
    return status;
}

/* ---- Workflow tasks ---------------------------------------------------------------------------------------------- */

static hf_status poll_workflow(hf_op *op, const hf_poller_seat *seat, hf_wtask *task)
{
    hf_worker *worker = seat->worker;
    hf_pb_task_queue queue = {.name = worker->queue, .kind = HF_TASK_QUEUE_KIND_NORMAL};
    hf_assert(!seat->is_sticky || worker->sticky_queue.len > 0);
    if (seat->is_sticky) {
        queue = (hf_pb_task_queue){
            .name = worker->sticky_queue, .kind = HF_TASK_QUEUE_KIND_STICKY, .normal_name = worker->queue};
    }
    hf_pb_poll_workflow_task_queue_request request = {.namespace = worker->namespace_,
                                                      .task_queue = &queue,
                                                      .identity = worker->identity,
                                                      .worker_instance_key = worker->instance_key};
    hf_call call;
    hf_worker_call_init(worker, &call, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &request, &task->arena);
    HF_TRY(ask(op, worker, &call));
    const hf_pb_poll_workflow_task_queue_response *response = call.response;
    if (response->task_token.len > 0 && response->workflow_execution == NULL) {
        return hf_fail(op, HF_ERR_INVALID, "a workflow task without an execution");
    }
    task->task = response->task_token.len > 0 ? response : NULL; /* else the poll's time is over */
    task->is_ahead = call.run_ahead;
    return HF_OK;
}

/* Takes the slot, too. */
static void hand_on(hf_worker *worker, hf_wtask *task)
{
    if (hf_wf_cache_post(worker, task) != HF_OK) {
        hf_log(worker->rt, HF_LOG_ERROR, "workflow_not_started", "message=out_of_memory");
    }
}

/* The worker stops. What it cannot give back it plays if there is a slot: the drivers end after the pollers. */
static bool may_play_late(hf_worker *worker)
{
    return worker->service->takes_nothing_back && hf_sem_try_acquire(worker->workflow_slots, 1) == HF_OK;
}

hf_status hf_poll_workflows(void *arg)
{
    const hf_poller_seat *seat = arg;
    hf_worker *worker = seat->worker;
    int64_t pause_ms = PAUSE_FIRST_MS;
    hf_status status = HF_OK;
    while (status == HF_OK && !atomic_load(&worker->has_signed_off)) {
        hf_op op;
        hf_op_init(&op);
        hf_wtask *task = hf_wtask_new(worker);
        status = task != NULL ? poll_workflow(&op, seat, task) : hf_fail(&op, HF_ERR_NOMEM, "no memory for a poll");
        if (status != HF_OK || task->task == NULL) {
            hf_wtask_free(worker, task);
            status = status == HF_OK ? HF_OK : pause_after(worker, &op, &pause_ms);
            continue;
        }
        pause_ms = PAUSE_FIRST_MS;
        hf_assert(task->task->workflow_execution != NULL); /* poll_workflow has looked */
        status = hf_sem_acquire(worker->workflow_slots, 1);
        if (status == HF_OK || may_play_late(worker)) {
            hand_on(worker, task);
        } else { /* the worker stops: another one gets the task */
            hf_wf_return(worker, task, HF_ERR_CLOSED);
        }
    }
    return HF_OK;
}

/* ---- Activity tasks ---------------------------------------------------------------------------------------------- */

static hf_status poll_activity(hf_op *op, hf_worker *worker, hf_arena *arena,
                               hf_pb_poll_activity_task_queue_response **ret_task)
{
    hf_pb_task_queue queue = {.name = worker->queue, .kind = HF_TASK_QUEUE_KIND_NORMAL};
    hf_pb_double_value rate = {.value = worker->options.queue_activities_per_second};
    hf_pb_task_queue_metadata metadata = {.max_tasks_per_second = &rate};
    hf_pb_poll_activity_task_queue_request request = {.namespace = worker->namespace_,
                                                      .task_queue = &queue,
                                                      .identity = worker->identity,
                                                      .worker_instance_key = worker->instance_key,
                                                      .task_queue_metadata = rate.value > 0 ? &metadata : NULL};
    hf_call call;
    hf_worker_call_init(worker, &call, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, &request, arena);
    HF_TRY(ask(op, worker, &call));
    hf_pb_poll_activity_task_queue_response *response = call.response;
    *ret_task = response->task_token.len > 0 ? response : NULL;
    return HF_OK;
}

/* Waits until the worker may begin another activity. */
static hf_status await_tempo(hf_worker *worker)
{
    for (;;) {
        int64_t wait = hf_tempo_take(&worker->tempo, hf_now(NULL).ns);
        hf_assert(wait >= 0);
        if (wait == 0) {
            return HF_OK;
        }
        HF_TRY(hf_sleep(hf_nanoseconds(wait)));
    }
}

/* One poll. `*ret_is_begun`: it brought a task, and hf_activity_begin has taken the slot. */
static hf_status poll_activity_once(hf_op *op, hf_worker *worker, bool *ret_is_begun)
{
    hf_arena arena = hf_arenas_take(&worker->arenas);
    hf_pb_poll_activity_task_queue_response *task = NULL;
    hf_status status = poll_activity(op, worker, &arena, &task);
    hf_tempo_settle(&worker->tempo, hf_now(NULL).ns, status == HF_OK && task != NULL);
    if (status == HF_OK && task != NULL) {
        *ret_is_begun = true;
        return hf_activity_begin(op, worker, &arena, task);
    }
    hf_arenas_give(&worker->arenas, &arena);
    return status;
}

hf_status hf_poll_activities(void *arg)
{
    const hf_poller_seat *seat = arg;
    hf_worker *worker = seat->worker;
    int64_t pause_ms = PAUSE_FIRST_MS;
    hf_status status = hf_sem_acquire(worker->activity_slots, 1);
    while (status == HF_OK) {
        hf_op op;
        hf_op_init(&op);
        bool is_begun = false;
        status = await_tempo(worker);
        if (status != HF_OK || atomic_load(&worker->has_signed_off)) { /* the worker stops */
            (void)hf_sem_release(worker->activity_slots, 1);
            return HF_OK;
        }
        status = poll_activity_once(&op, worker, &is_begun);
        if (status != HF_OK) {
            status = pause_after(worker, &op, &pause_ms);
        } else {
            pause_ms = PAUSE_FIRST_MS;
        }
        if (is_begun) { /* the activity has the slot now */
            status = status == HF_OK ? hf_sem_acquire(worker->activity_slots, 1) : status;
            continue;
        }
        if (status != HF_OK) {
            (void)hf_sem_release(worker->activity_slots, 1);
        }
    }
    return HF_OK;
}
