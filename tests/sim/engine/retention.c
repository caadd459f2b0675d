/* Retention: runs of the namespace of all clients go by themselves some time after their end. I18: that no row of them is left is judged with
 * all other deletions (deletes.c).
 *
 * sim-K4  a run goes only if somebody asked for its deletion, or if it has ended and the shortest retention of this world has passed since
 *
 * Every commit that deletes the row of a run is looked at before it is executed, so nothing depends on what clients happen to see. At the
 * end every run that was there must be there, but for those that were seen to go. */
#include "sim/engine/sim.h"

#include <string.h>

/* ---- Asking ------------------------------------------------------------------------------------------------------------ */

static void on_told(sim_world *world, sim_call *call)
{
    if (call->call.status != HF_OK && call->call.status != HF_ERR_STORE && !sim_is_lost(call)) {
        sim_fail(world, "the retention cannot be changed: %s", call->call.message);
    }
}

/* From now on any run may be gone. */
static void begin(sim_world *world)
{
    world->is_retaining = true;
    for (size_t i = 0; i < world->runs.count; i++) {
        world->runs.items[i].may_be_gone = true;
    }
    world->resets.has_deletes = true;
}

/* `span`: 0 = runs stay for ever. */
static void ask_retention(sim_world *world, int64_t span)
{
    sim_call *call = sim_call_new(world, HF_METHOD_UPDATE_NAMESPACE, NULL, on_told);
    hf_pb_update_namespace_request *request = HF_ARENA_NEW(&call->arena, hf_pb_update_namespace_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->config = HF_ARENA_NEW(&call->arena, hf_pb_namespace_config);
    request->config->workflow_execution_retention_ttl = hf_pb_duration_of(hf_nanoseconds(span));
    call->call.request = request;
    begin(world);
    sim_call_submit(world, call);
}

void sim_keep_tempts(sim_world *world, hf_pb_start_workflow_execution_request *request)
{
    if (world->knobs.retention > 0 && sim_chance(world, 150)) {
        begin(world);
        request->holdfast_keep = hf_pb_duration_of(hf_nanoseconds(1 + sim_upto(world, SIM_KEEP_MAX - 1)));
    }
}

void sim_keep_all(sim_world *world)
{
    if (world->knobs.retention > 0) {
        ask_retention(world, 0);
    }
}

bool sim_retention_tempts(sim_world *world)
{
    if (world->knobs.retention == 0 || !sim_chance(world, 400)) {
        return false;
    }
    int64_t span = world->knobs.retention;
    ask_retention(world, sim_chance(world, 200) ? 0 : span + (sim_chance(world, 300) ? sim_upto(world, span) : 0));
    return true;
}

/* ---- Seeing ------------------------------------------------------------------------------------------------------------ */

bool sim_is_retired(const sim_world *world, const char *run_id)
{
    for (size_t i = 0; i < world->retired.count; i++) {
        if (strcmp(world->retired.items[i].run_id, run_id) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether a client has asked for the deletion of this run, or of whatever run its id leads to. */
static bool is_asked_for(const sim_world *world, int64_t number, const hf_pb_run_state *state)
{
    char run_id[SIM_RUN_ID_LEN];
    char workflow_id[SIM_NAME_LEN];
    (void)snprintf(run_id, sizeof run_id, "%.*s", HF_STR_ARGS(state->run_id));
    (void)snprintf(workflow_id, sizeof workflow_id, "%.*s", HF_STR_ARGS(state->workflow_id));
    for (size_t i = 0; i < world->ops.count; i++) {
        const sim_op *op = &world->ops.items[i];
        char name[SIM_NAME_LEN];
        (void)snprintf(name, sizeof name, "wf-%d", op->workflow);
        if (op->kind != SIM_OP_DELETE || strcmp(name, workflow_id) != 0) {
            continue;
        }
        bool is_it = op->run_id[0] != '\0' ? strcmp(op->run_id, run_id) == 0
                                           : op->outcome == SIM_UNKNOWN || number < world->gone_below[op->workflow];
        if (is_it) {
            return true;
        }
    }
    return world->resets.asks_deletes && strncmp(workflow_id, "rs", 2) == 0;
}

static void judge_gone(sim_world *world, int64_t number, const hf_pb_run_state *state)
{
    if (state->kind != HF_KIND_WORKFLOW || !hf_str_equal(state->namespace, HF_STR(SIM_NAMESPACE))) {
        return;
    }
    sim_retired *retired = SIM_PUSH(&world->retired);
    (void)snprintf(retired->run_id, sizeof retired->run_id, "%.*s", HF_STR_ARGS(state->run_id));
    if (world->is_settled || is_asked_for(world, number, state)) { /* settled: the judge itself deletes one */
        return;
    }
    int64_t closed = state->close_time != 0 ? state->close_time : state->last_time;
    int64_t span = state->keep > 0 ? state->keep : world->knobs.retention; /* its own, or the shortest of all */
    int64_t latest = world->mono + world->wall_offset_max;                 /* by any clock that the engine had so far */
    bool is_open = state->status == HF_WORKFLOW_EXECUTION_STATUS_RUNNING;
    if (!world->is_retaining) {
        sim_fail(world, "sim-K4: run %lld of %.*s is deleted, and nobody asked for it", (long long)number,
                 HF_STR_ARGS(state->workflow_id));
    } else if (is_open || closed + span > latest) {
        sim_fail(world, "sim-K4: run %lld of %.*s goes %s", (long long)number, HF_STR_ARGS(state->workflow_id),
                 is_open           ? "and is open"
                 : state->keep > 0 ? "before its own span is over"
                                   : "before its retention is over");
    }
}

static void look_at(sim_world *world, int64_t number)
{
    hf_arena arena;
    hf_arena_init(&arena, world->memory);
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = number}, .arena = &arena};
    hf_op op;
    hf_op_init(&op);
    hf_op_init(&get.op);
    hf_store_execute(world->store, &get);
    hf_str body = {0};
    hf_pb_run_state state;
    if (get.status == HF_OK && get.found && hf_record_open(&op, HF_TABLE_RUN, &get.key, get.value, &body) == HF_OK &&
        hf_pb_decode(&op, &hf_pb_run_state_type, body, &arena, &state) == HF_OK) {
        judge_gone(world, number, &state);
    }
    hf_arena_deinit(&arena);
}

void sim_retention_commit(sim_world *world, const hf_store_request *request)
{
    for (size_t i = 0; i < request->write_count && !world->failed; i++) {
        if (request->writes[i].table == HF_TABLE_RUN && request->writes[i].kind == HF_WRITE_DELETE) {
            look_at(world, request->writes[i].key.a);
        }
    }
}

/* ---- The end ----------------------------------------------------------------------------------------------------------- */

void sim_retention_settle(sim_world *world)
{
    for (size_t i = 0; i < world->runs.count; i++) {
        sim_run_log *log = &world->runs.items[i];
        log->may_be_gone = log->is_unwanted || sim_is_gone_below(world, log) || sim_is_retired(world, log->run_id);
    }
    world->is_settled = true;
}
