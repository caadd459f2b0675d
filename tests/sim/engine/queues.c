/* Task queues: workers that ask for no more than so many activities a second, workers whose polls end when they shut down, and clients that
 * describe queues.
 *
 * sim-Q1  in no stretch of time do workers get more activities from a queue than its rate and its burst allow
 * sim-Q2  once ShutdownWorker was answered, no poll that the worker had sent before waits any more
 * sim-Q3  a description names workers that poll, once each, and no poll that is older than five minutes */
#include "sim/engine/sim.h"

#include "sim/engine/workers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Polls ----------------------------------------------------------------------------------------------------------------- */

static hf_str key_of(sim_call *call, const sim_worker *worker)
{
    char key[2 * SIM_NAME_LEN];
    (void)snprintf(key, sizeof key, "%s/%llu", worker->identity, (unsigned long long)worker->shutdowns);
    return sim_copy(call, key);
}

void sim_poll_workflow_as(sim_call *call, const sim_worker *worker, hf_pb_poll_workflow_task_queue_request *request)
{
    request->worker_instance_key = key_of(call, worker);
}

void sim_poll_activity_as(sim_call *call, const sim_worker *worker, hf_pb_poll_activity_task_queue_request *request)
{
    const sim_world *world = call->world;
    request->worker_instance_key = key_of(call, worker);
    if (world->knobs.rate > 0 && !world->is_healed) {
        request->task_queue_metadata = HF_ARENA_NEW(&call->arena, hf_pb_task_queue_metadata);
        request->task_queue_metadata->max_tasks_per_second = HF_ARENA_NEW(&call->arena, hf_pb_double_value);
        request->task_queue_metadata->max_tasks_per_second->value = world->knobs.rate;
    }
}

bool sim_is_rated(const hf_core *core, const hf_queue *queue)
{
    return queue->rate == 0 ||
           (queue->rate > 0 && queue->rate_wait.place != 0 && queue->rate_wait.key > core->now.mono);
}

/* ---- Rates ----------------------------------------------------------------------------------------------------------------- */

void sim_rate_saw(sim_world *world, const sim_worker *worker, const hf_pb_poll_activity_task_queue_response *response)
{
    bool counts = world->knobs.rate > 0 && !world->is_healed && world->knobs.poison == 0;
    hf_str run_id = response->workflow_execution->run_id;
    int64_t time = hf_pb_timestamp_time(response->started_time).ns;
    /* One that comes again says when it came first. Its attempt may be another by then: a reset counts from 1. */
    uint64_t task = hf_hash_bytes((uint64_t)time, run_id.data, run_id.len);
    task = hf_hash_bytes(task, response->activity_id.data, response->activity_id.len);
    for (size_t i = 0; i < world->given.count; i++) {
        counts = counts && world->given.items[i].task != task;
    }
    if (counts && !world->knobs.has_clock_steps) {
        sim_given *given = SIM_PUSH(&world->given);
        given->task = task;
        given->queue = worker != NULL ? worker->queue : -1;
        given->opened = world->opened;
        given->time = time;
    }
}

static int by_time(const void *a, const void *b)
{
    const sim_given *x = a;
    const sim_given *y = b;
    return x->queue != y->queue     ? x->queue - y->queue
           : x->opened != y->opened ? (x->opened < y->opened ? -1 : 1)
           : x->time != y->time     ? (x->time < y->time ? -1 : 1)
                                    : 0;
}

void sim_judge_queues(sim_world *world)
{
    size_t first = 0;
    if (world->given.count > 0) {
        qsort(world->given.items, world->given.count, sizeof *world->given.items, by_time);
    }
    for (size_t i = 0; i < world->given.count && !world->failed; i++) {
        const sim_given *last = &world->given.items[i];
        if (last->queue < 0) {
            continue; /* it needed no token */
        }
        if (last->queue != world->given.items[first].queue || last->opened != world->given.items[first].opened) {
            first = i;
        }
        for (size_t j = first; j <= i && !world->failed; j++) {
            double span = (double)(last->time - world->given.items[j].time) / 1e9;
            double most = ceil(world->knobs.rate) + span * world->knobs.rate + 0.001;
            if ((double)(i - j + 1) > most) {
                sim_fail(world, "sim-Q1: %zu activities came from queue q%d in %.4f s, at %.1f a second", i - j + 1,
                         last->queue, span, world->knobs.rate);
            }
        }
    }
}

/* ---- Workers that shut down -------------------------------------------------------------------------------------------------- */

static void on_shut(sim_world *world, sim_call *call)
{
    const sim_worker *worker = &world->workers[call->log];
    if (call->call.status != HF_OK || call->opened != world->opened) {
        return;
    }
    for (int i = 0; i < SIM_SLOTS; i++) {
        const sim_call *poll = worker->slots[i].poll;
        bool waits = poll != NULL && !poll->is_done && poll->opened == call->opened && poll->epoch_shut < call->epoch &&
                     poll->call.place == HF_PLACE_QUEUE;
        if (waits) {
            sim_fail(world, "sim-Q2: worker %d has shut down, and a poll of it still waits", worker->index);
        }
    }
}

void sim_shut_down(sim_world *world, sim_worker *worker)
{
    char queue[SIM_NAME_LEN];
    (void)snprintf(queue, sizeof queue, "q%d", worker->queue);
    sim_call *call = sim_call_new(world, HF_METHOD_SHUTDOWN_WORKER, NULL, on_shut);
    hf_pb_shutdown_worker_request *request = HF_ARENA_NEW(&call->arena, hf_pb_shutdown_worker_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->sticky_task_queue = sim_copy(call, worker->sticky_queue);
    if (sim_chance(world, 700)) {
        request->worker_instance_key = key_of(call, worker);
        request->task_queue = sim_chance(world, 500) ? sim_copy(call, queue) : HF_STR("");
        worker->shutdowns++; /* the next one of this name is another */
    }
    call->call.request = request;
    call->log = (uint64_t)worker->index;
    call->epoch = worker->shutdowns;
    sim_call_submit(world, call);
}

/* ---- Descriptions ------------------------------------------------------------------------------------------------------------- */

/* The enhanced mode: both queues of the name. */
static void judge_versions(sim_world *world, const hf_pb_describe_task_queue_response *response)
{
    bool is_good = response->versions_info.count == 1 && response->versions_info.items[0].key.len == 0 &&
                   response->versions_info.items[0].value->types_info.count == 2;
    for (size_t i = 0; is_good && i < 2; i++) {
        const hf_pb_task_queue_stats *stats = response->versions_info.items[0].value->types_info.items[i].value->stats;
        is_good = stats != NULL && stats->approximate_backlog_count >= 0;
    }
    if (!is_good) {
        sim_fail(world, "sim-Q3: the enhanced description of a queue says nothing of its backlog");
    }
}

static void on_described(sim_world *world, sim_call *call)
{
    const hf_pb_describe_task_queue_response *response = call->call.response;
    if (call->call.status != HF_OK) {
        if (!sim_is_lost(call) && call->call.status != HF_ERR_STORE) {
            sim_fail(world, "a task queue cannot be described: %s", call->call.message);
        }
        return;
    }
    const hf_pb_describe_task_queue_request *request = call->call.request;
    if (request->api_mode == HF_DESCRIBE_TASK_QUEUE_MODE_ENHANCED) {
        judge_versions(world, response);
        return;
    }
    int64_t count = 0;
    for (size_t i = 0; i < response->stats_by_priority_key.count; i++) {
        count += response->stats_by_priority_key.items[i].value->approximate_backlog_count;
    }
    if (response->stats != NULL && response->stats->approximate_backlog_count != count) {
        sim_fail(world, "sim-Q3: %lld tasks wait in a queue, and %lld with all priorities",
                 (long long)response->stats->approximate_backlog_count, (long long)count);
    }
    for (size_t i = 0; i < response->pollers.count; i++) {
        const hf_pb_poller_info *info = &response->pollers.items[i];
        int64_t age = sim_now(world).wall - hf_pb_timestamp_time(info->last_access_time).ns;
        bool is_known = false;
        for (int j = 0; j < world->knobs.workers; j++) {
            is_known = is_known || hf_str_equal(info->identity, hf_str_of(world->workers[j].identity));
        }
        for (size_t j = 0; j < i; j++) {
            is_known = is_known && !hf_str_equal(info->identity, response->pollers.items[j].identity);
        }
        if (!is_known || (age > 302 * SIM_SECOND && !world->knobs.has_clock_steps)) {
            sim_fail(world, "sim-Q3: '%.*s' is among the pollers of a queue, %.1f s after its last poll",
                     HF_STR_ARGS(info->identity), (double)age / 1e9);
        }
    }
    if (response->stats == NULL || response->stats->approximate_backlog_count < 0) {
        sim_fail(world, "sim-Q3: the description of a queue says nothing of its backlog");
    }
}

void sim_describe_queue(sim_world *world)
{
    char name[SIM_NAME_LEN];
    (void)snprintf(name, sizeof name, "q%d", (int)hf_rng_below(&world->rng, (uint64_t)world->knobs.queues));
    sim_call *call = sim_call_new(world, HF_METHOD_DESCRIBE_TASK_QUEUE, NULL, on_described);
    hf_pb_describe_task_queue_request *request = HF_ARENA_NEW(&call->arena, hf_pb_describe_task_queue_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->task_queue = HF_ARENA_NEW(&call->arena, hf_pb_task_queue);
    request->task_queue->name = sim_copy(call, name);
    request->task_queue_type = sim_chance(world, 500) ? HF_TASK_QUEUE_TYPE_ACTIVITY : HF_TASK_QUEUE_TYPE_WORKFLOW;
    request->report_stats = true;
    request->api_mode = world->steps % 4 == 0 ? HF_DESCRIBE_TASK_QUEUE_MODE_ENHANCED : 0;
    call->call.request = request;
    sim_call_submit(world, call);
}
