/* Readers that begin at the end of a history. The events of a page and of the pages after it follow each other downwards to the first
 * one, without a gap (engine-G2), and are those that everybody else has seen (I3). */
#include "sim/engine/sim.h"

/* A history that is being read; lives with its call. */
typedef struct reading {
    int64_t last; /* the oldest event so far; 0 = none yet */
    int32_t size; /* of a page */
} reading;

static void ask(sim_world *world, size_t run, reading it, hf_str token);

static int64_t id_of(hf_str event)
{
    hf_pb_raw field;
    return hf_pb_next(&event, &field) && field.number == 1 ? (int64_t)field.value : 0;
}

static void on_read(sim_world *world, sim_call *call)
{
    const sim_run_log *log = &world->runs.items[call->log];
    const hf_pb_get_workflow_execution_history_reverse_response *response = call->call.response;
    if (call->call.status != HF_OK) {
        bool may_fail = sim_is_lost(call) || sim_is_stopped(world, call, hf_str_of(log->workflow_id)) ||
                        log->may_be_gone || (log->count == 0 && !log->is_named);
        if (!may_fail) {
            sim_fail(world, "the history of run %s cannot be read from its end: %s", log->run_id, call->call.message);
        }
        return;
    }
    reading it = {.last = call->newest, .size = (int32_t)call->epoch};
    hf_str rest = response->history;
    hf_pb_raw field;
    size_t run = call->log;
    while (rest.len > 0 && hf_pb_next(&rest, &field)) {
        int64_t id = id_of(field.bytes);
        if (id <= 0 || (it.last != 0 && id != it.last - 1)) {
            sim_fail(world, "engine-G2: from its end, event %lld of run %s follows event %lld", (long long)id,
                     world->runs.items[run].run_id, (long long)it.last);
            return;
        }
        it.last = id;
        sim_saw_history(world, run, field.whole, true, 0);
    }
    if (response->history.len == 0 || (response->next_page_token.len == 0) != (it.last == 1)) {
        sim_fail(world, "engine-G1: run %s was read from its end to event %lld, and the token has %zu bytes",
                 world->runs.items[run].run_id, (long long)it.last, response->next_page_token.len);
    } else if (response->next_page_token.len > 0) {
        ask(world, run, it, response->next_page_token);
    }
}

static void ask(sim_world *world, size_t run, reading it, hf_str token)
{
    sim_call *call = sim_call_new(world, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE, NULL, on_read);
    hf_pb_get_workflow_execution_history_reverse_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_get_workflow_execution_history_reverse_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->execution->workflow_id = sim_copy(call, world->runs.items[run].workflow_id);
    request->execution->run_id = sim_copy(call, world->runs.items[run].run_id);
    request->maximum_page_size = it.size;
    request->next_page_token = hf_arena_copy(&call->arena, token);
    call->call.request = request;
    call->log = run;
    call->newest = it.last;
    call->epoch = (uint64_t)it.size;
    sim_call_submit(world, call);
}

void sim_read_back(sim_world *world)
{
    if (world->runs.count > 0) {
        size_t run = hf_rng_below(&world->rng, world->runs.count);
        reading it = {.size = sim_chance(world, 500) ? 1 + (int32_t)sim_upto(world, 20) : 0};
        if (world->runs.items[run].workflow_id[0] != '\0') {
            ask(world, run, it, HF_STR(""));
        }
    }
}
