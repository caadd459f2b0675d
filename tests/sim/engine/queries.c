/* Callers that ask: queries and updates. A query's answer is how many signals the workflow has seen. It must be no less than
 * the signals to that run that were acknowledged when the query was sent (I11), and a query must not change anything. */
#include "sim/engine/asks.h"
#include "sim/engine/workers.h"

#include "history/payload.h"

#include <stdlib.h>
#include <string.h>

/* ---- Callers ----------------------------------------------------------------------------------------------------------- */

static int64_t signals_acknowledged(const sim_world *world, const char *run_id)
{
    int64_t count = 0;
    for (size_t i = 0; i < world->ops.count; i++) {
        const sim_op *op = &world->ops.items[i];
        count += sim_op_signals(op) && op->outcome == SIM_ACKED && strcmp(op->run_id, run_id) == 0;
    }
    return count;
}

void sim_ask_again(sim_world *world, sim_asker *asker)
{
    sim_wake_in(world, &asker->actor, 20 * SIM_MS + sim_upto(world, 4 * world->knobs.think_ns_max));
}

static void on_queried(sim_world *world, sim_call *call)
{
    sim_asker *asker = HF_CONTAINER(call->actor, sim_asker, actor);
    const sim_run_log *log = &world->runs.items[call->log];
    const hf_pb_query_workflow_response *response = call->call.response;
    sim_trace(world, "query of %s %.8s: %s %s", log->workflow_id, log->run_id, hf_status_name(call->call.status),
              call->call.message);
    asker->is_waiting = false;
    sim_ask_again(world, asker);
    switch ((int)call->call.status) {
    case HF_OK:
        break;
    case HF_ERR_CLOSED:
    case HF_ERR_NOMEM:
    case HF_ERR_TIMEOUT:
    case HF_ERR_CANCELED:
    case HF_ERR_INVALID:   /* the worker could not answer */
    case HF_ERR_NOT_READY: /* no workflow task was completed, or one keeps failing */
    case HF_ERR_LIMIT:
        return;
    case HF_ERR_NOT_FOUND:
        if (log->count > 0 && !log->may_be_gone && world->knobs.deletes == 0 &&
            !sim_is_damaged(world, hf_str_of(log->workflow_id))) {
            sim_fail(world, "I1: a query says that run %s is not there", log->run_id);
        }
        return;
    default:
        if (!sim_is_stopped(world, call, hf_str_of(log->workflow_id))) {
            sim_fail(world, "a query was refused with %s: %s", hf_status_name(call->call.status), call->call.message);
        }
        return;
    }
    if (response->query_rejected != NULL) {
        return;
    }
    hf_str text = response->query_result != NULL ? response->query_result->payloads.items[0].data : HF_STR("");
    if (text.len < 2 || text.data[0] != 's') {
        sim_fail(world, "a query was answered with something else");
        return;
    }
    char number[SIM_NAME_LEN];
    (void)snprintf(number, sizeof number, "%.*s", (int)text.len - 1, text.data + 1);
    int64_t seen = strtoll(number, NULL, 10);
    if (seen < (int64_t)call->epoch) {
        sim_fail(world, "I11: a query of run %s saw %lld signals, %lld were acknowledged before it", log->run_id,
                 (long long)seen, (long long)call->epoch);
    }
}

/* I11: whatever a query does at once, no run changes. */
static void submit_query(sim_world *world, sim_call *call)
{
    hf_core *core = world->core;
    bool is_still = core != NULL && hf_list_is_empty(&core->inbox) && hf_list_is_empty(&core->suspects) &&
                    hf_list_is_empty(&core->resets.next) && hf_list_is_empty(&core->deletions.next) &&
                    hf_list_is_empty(&core->queues_marked) && core->alone.run == 0;
    uint64_t events = core != NULL ? core->event_total : 0;
    size_t len = core != NULL ? core->open_len : 0;
    sim_call_submit(world, call);
    if (is_still && world->core == core && hf_core_status(core) == HF_OK &&
        (core->event_total != events || core->open_len != len)) {
        sim_fail(world, "I11: a query has changed a run");
    }
}

static void query(sim_world *world, sim_asker *asker)
{
    size_t run = hf_rng_below(&world->rng, world->runs.count);
    for (size_t i = world->ops.count; i-- > 0 && sim_chance(world, 900);) { /* mostly one that was signaled just now */
        const sim_op *op = &world->ops.items[i];
        if (sim_op_signals(op) && op->outcome == SIM_ACKED && op->run_id[0] != '\0') {
            run = sim_log_run(world, hf_str_of(op->run_id), HF_STR(""));
            break;
        }
    }
    for (size_t i = world->answers.count; i-- > 0 && sim_chance(world, 800);) { /* or one whose workflow tasks fail */
        if (world->answers.items[i].method == HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED) {
            run = world->answers.items[i].run;
            break;
        }
    }
    const sim_run_log *log = &world->runs.items[run];
    if (log->workflow_id[0] == '\0') {
        sim_ask_again(world, asker);
        return;
    }
    sim_call *call = sim_call_new(world, HF_METHOD_QUERY_WORKFLOW, &asker->actor, on_queried);
    hf_pb_query_workflow_request *request = HF_ARENA_NEW(&call->arena, hf_pb_query_workflow_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->execution->workflow_id = sim_copy(call, log->workflow_id);
    request->execution->run_id = sim_copy(call, log->run_id);
    request->query = HF_ARENA_NEW(&call->arena, hf_pb_workflow_query);
    request->query->query_type = HF_STR("signals");
    request->query_reject_condition = sim_chance(world, 200) ? 1 + (int32_t)sim_upto(world, 2) : 0;
    call->call.request = request;
    call->call.timeout = hf_seconds(sim_chance(world, 100) ? 1 : 7 + sim_upto(world, 20));
    call->log = run;
    call->epoch = (uint64_t)signals_acknowledged(world, log->run_id);
    asker->is_waiting = true;
    submit_query(world, call);
}

static void wake(sim_world *world, sim_actor *actor)
{
    sim_asker *asker = HF_CONTAINER(actor, sim_asker, actor);
    if (asker->is_waiting) {
        return;
    }
    if (asker->has_update) {
        sim_update_again(world, asker);
    } else if (world->is_healed) {
        return;
    } else if (world->runs.count == 0) {
        sim_ask_again(world, asker);
    } else if (sim_chance(world, 500)) {
        query(world, asker);
    } else {
        sim_update_next(world, asker);
    }
}

bool sim_askers_are_busy(const sim_world *world)
{
    for (int i = 0; i < world->knobs.askers; i++) {
        const sim_asker *asker = &world->askers[i];
        char name[SIM_NAME_LEN] = "";
        if (asker->has_update) {
            (void)snprintf(name, sizeof name, "wf-%d", world->updates.items[asker->update].workflow);
        }
        /* One that waits for a damaged run is answered when its records are restored. */
        bool may_wait = asker->has_update && sim_is_still_damaged(world, hf_str_of(name));
        if ((asker->is_waiting || asker->has_update) && !may_wait) {
            return true;
        }
    }
    return false;
}

void sim_askers_init(sim_world *world)
{
    for (int i = 0; i < world->knobs.askers; i++) {
        world->askers[i] = (sim_asker){.actor = {.wake = wake}, .index = i};
        sim_wake_in(world, &world->askers[i].actor, sim_upto(world, 2 * SIM_SECOND));
    }
}

/* ---- Workers ----------------------------------------------------------------------------------------------------------- */

static hf_pb_payloads *seen_text(sim_call *call, const sim_summary *summary)
{
    char text[SIM_NAME_LEN];
    (void)snprintf(text, sizeof text, "s%d", summary->signals);
    return sim_payload(call, text, 0);
}

static void respond(sim_world *world, sim_slot *slot, hf_str token, const sim_summary *known)
{
    sim_call *call = sim_call_new(world, HF_METHOD_RESPOND_QUERY_TASK_COMPLETED, NULL, NULL);
    hf_pb_respond_query_task_completed_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_respond_query_task_completed_request);
    (void)slot;
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->task_token = hf_arena_copy(&call->arena, token);
    request->completed_type = known != NULL ? HF_QUERY_RESULT_TYPE_ANSWERED : HF_QUERY_RESULT_TYPE_FAILED;
    if (known != NULL) {
        request->query_result = seen_text(call, known);
    } else {
        request->error_message = HF_STR("I do not know");
    }
    call->call.request = request;
    sim_call_submit(world, call);
}

/* What the worker knows of a run without a history; NULL: it does not know it, or is just learning more. */
static const sim_summary *known_of(sim_worker *worker, const char *run_id)
{
    for (int i = 0; i < SIM_SLOTS; i++) {
        const sim_slot *slot = &worker->slots[i];
        if (slot->kind != SIM_ACTIVITY && slot->state > SIM_POLLING && strcmp(slot->run_id, run_id) == 0) {
            return NULL;
        }
    }
    for (size_t i = 0; i < worker->cache.count; i++) {
        if (strcmp(worker->cache.items[i].run_id, run_id) == 0) {
            return &worker->cache.items[i].summary;
        }
    }
    return NULL;
}

bool sim_take_query(sim_world *world, sim_slot *slot, const hf_pb_poll_workflow_task_queue_response *response)
{
    if (response->query == NULL) {
        return false;
    }
    char run_id[SIM_RUN_ID_LEN];
    (void)snprintf(run_id, sizeof run_id, "%.*s", HF_STR_ARGS(response->workflow_execution->run_id));
    size_t run = sim_log_run(world, response->workflow_execution->run_id, response->workflow_execution->workflow_id);
    bool ahead = slot->worker->run_ahead && slot->worker->in_process && !world->was_left_open;
    sim_saw_history(world, run, response->history, !ahead, 0);
    sim_trace(world, "worker %d.%d got a query of %.8s", slot->worker->index, slot->kind, run_id);
    sim_rest(world, slot, sim_upto(world, 10 * SIM_MS));
    if (response->started_event_id != 0 || response->queries.count > 0 || response->messages.count > 0) {
        sim_fail(world, "a query's own task is more than that");
    } else if (sim_evil(world, world->knobs.unwanted) && world->core != NULL) {
        hf_core_unwanted(world->core, response->task_token, sim_now(world));
    } else if (!sim_evil(world, slot->kind == SIM_STICKY ? 600 : world->knobs.lost)) {
        sim_summary summary = {0};
        const sim_summary *known = NULL;
        if (response->history.len == 0) {
            known = slot->kind == SIM_STICKY ? known_of(slot->worker, run_id) : NULL;
        } else if (response->next_page_token.len == 0 && sim_summary_add(world, &summary, response->history)) {
            known = &summary;
        }
        respond(world, slot, response->task_token, known);
        if (sim_evil(world, world->knobs.twice)) {
            respond(world, slot, response->task_token, known);
        }
    }
    return true;
}

void sim_keep_queries(sim_slot *slot, const hf_pb_poll_workflow_task_queue_response *response)
{
    slot->query_count = 0;
    for (size_t i = 0; i < response->queries.count && slot->query_count < SIM_QUERIES_MAX; i++) {
        (void)snprintf(slot->queries[slot->query_count++], sizeof slot->queries[0], "%.*s",
                       HF_STR_ARGS(response->queries.items[i].key));
    }
}

void sim_answer_queries(sim_world *world, const sim_slot *slot, sim_call *call,
                        hf_pb_respond_workflow_task_completed_request *request)
{
    request->query_results.items = HF_ARENA_ARRAY(
        &call->arena, hf_pb_respond_workflow_task_completed_request_query_results_entry, SIM_QUERIES_MAX);
    for (int i = 0; i < slot->query_count; i++) {
        if (sim_evil(world, 100)) {
            continue; /* forgotten */
        }
        hf_pb_workflow_query_result *result = HF_ARENA_NEW(&call->arena, hf_pb_workflow_query_result);
        result->result_type = HF_QUERY_RESULT_TYPE_ANSWERED;
        result->answer = seen_text(call, &slot->summary);
        if (sim_evil(world, 50)) {
            result->result_type = HF_QUERY_RESULT_TYPE_FAILED;
            result->error_message = HF_STR("no");
        }
        request->query_results.items[request->query_results.count].key = sim_copy(call, slot->queries[i]);
        request->query_results.items[request->query_results.count++].value = result;
    }
}
