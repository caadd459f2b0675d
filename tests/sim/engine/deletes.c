/* Runs that are deleted: open and closed, by run id and by workflow id, the newest and those behind it, all of an id at once, damaged
 * ones, and older ones of which one is damaged.
 *
 * sim-X1  a run whose deletion was acknowledged is never seen again
 * sim-X2  a workflow id leads to its newest run or to none: no older run takes the place of one that was deleted
 * sim-X3  nothing of a deleted run is left in any table, and no deletion is left undone
 * sim-X4  all other runs are there, by their run ids (judge.c) */
#include "sim/engine/children.h"
#include "sim/engine/sim.h"

#include "inspect/check.h"
#include "ledger/kept.h"
#include "ledger/run_id.h"

#include <string.h>

/* ---- Asking ---------------------------------------------------------------------------------------------------------- */

/* The workflow of a run that is hard to delete, because one of its messages is on its way; -1 = there is none. */
static int find_busy(const sim_world *world)
{
    if (world->core == NULL) {
        return -1;
    }
    HF_LIST_EACH(node, &world->core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        char name[SIM_NAME_LEN];
        int workflow = 0;
        (void)snprintf(name, sizeof name, "%.*s", HF_STR_ARGS(hf_owned_str(&run->workflow_id)));
        if (hf_run_has_messages(run) && sscanf(name, "wf-%d", &workflow) == 1 && workflow < world->knobs.workflows) {
            return workflow;
        }
    }
    return -1;
}

bool sim_delete_tempts(sim_world *world)
{
    return world->ops.count >= 8 && world->knobs.deletes > 0 &&
           (sim_chance(world, world->knobs.deletes) || (find_busy(world) >= 0 && sim_chance(world, 300)) ||
            (sim_chance(world, 250) && sim_published_run(world) < world->runs.count));
}

void sim_delete_choose(sim_world *world, sim_op *op)
{
    if (world->damages.count > 0 && sim_chance(world, 700)) { /* a damaged run, or one that may have it behind it */
        const sim_damage *damage = &world->damages.items[hf_rng_below(&world->rng, world->damages.count)];
        int workflow = 0;
        if (!sim_is_child_name(hf_str_of(damage->workflow_id)) &&
            sscanf(damage->workflow_id, "wf-%d", &workflow) == 1 && workflow < world->knobs.workflows) {
            op->workflow = workflow;
            (void)snprintf(op->run_id, sizeof op->run_id, "%s",
                           sim_chance(world, 500) ? world->runs.items[damage->log].run_id : "");
        }
    }
    int busy = find_busy(world);
    if (busy >= 0 && sim_chance(world, 700)) {
        op->workflow = busy;
        op->run_id[0] = '\0';
    }
    size_t published = sim_published_run(world);
    int owner = 0;
    if (published < world->runs.count && sim_chance(world, 800) && /* a run of a chain that goes on without it */
        sscanf(world->runs.items[published].workflow_id, "wf-%d", &owner) == 1 && owner < world->knobs.workflows) {
        op->workflow = owner;
        (void)snprintf(op->run_id, sizeof op->run_id, "%s", world->runs.items[published].run_id);
    }
    op->is_all = op->run_id[0] == '\0' && sim_chance(world, 400);
}

static bool is_of(const sim_run_log *log, int workflow)
{
    char name[SIM_NAME_LEN];
    (void)snprintf(name, sizeof name, "wf-%d", workflow);
    return strcmp(log->workflow_id, name) == 0;
}

/* Runs that this operation may delete: those that are known, and those that somebody hears of later, as the next one of a chain. */
static void mark(sim_world *world, const sim_op *op)
{
    if (op->run_id[0] == '\0' && world->run_next > world->gone_below[op->workflow]) {
        world->gone_below[op->workflow] = world->run_next;
    }
    for (size_t i = 0; i < world->runs.count; i++) {
        sim_run_log *log = &world->runs.items[i];
        if (op->run_id[0] != '\0' ? strcmp(log->run_id, op->run_id) == 0 : is_of(log, op->workflow)) {
            log->may_be_gone = log->is_unwanted = true;
        }
    }
}

void sim_delete_fill(sim_world *world, sim_call *call, sim_op *op)
{
    char name[SIM_NAME_LEN];
    (void)snprintf(name, sizeof name, "wf-%d", op->workflow);
    hf_pb_delete_workflow_execution_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_delete_workflow_execution_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->workflow_execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->workflow_execution->workflow_id = sim_copy(call, name);
    request->workflow_execution->run_id = sim_copy(call, op->run_id);
    request->holdfast_all_runs = op->is_all;
    call->call.request = request;
    if (op->runs == 0) {
        op->runs = world->runs.count;
        op->is_first = world->deletes[op->workflow] == 0;
    }
    world->deletes[op->workflow]++;
    mark(world, op);
}

/* Whether a start of this run was acknowledged. */
static bool is_known(const sim_world *world, const sim_run_log *log)
{
    for (size_t i = 0; i < world->ops.count; i++) {
        const sim_op *op = &world->ops.items[i];
        if (sim_op_starts(op) && op->outcome == SIM_ACKED && strcmp(op->run_id, log->run_id) == 0) {
            return true;
        }
    }
    return false;
}

void sim_delete_answered(sim_world *world, const sim_op *op)
{
    mark(world, op); /* a start may have been answered meanwhile */
    for (size_t i = 0; i < world->runs.count && op->status == HF_OK; i++) {
        sim_run_log *log = &world->runs.items[i];
        bool is_it = op->run_id[0] != '\0' && strcmp(log->run_id, op->run_id) == 0;
        /* Runs that lost their names to an earlier deletion are not found by their id. */
        bool is_one_of_all = op->is_all && op->is_first && !op->maybe && !world->is_retaining && i < op->runs &&
                             is_of(log, op->workflow) && is_known(world, log);
        log->is_deleted = log->is_deleted || is_it || is_one_of_all;
    }
}

/* ---- Seeing ---------------------------------------------------------------------------------------------------------- */

static int64_t number_of(const sim_world *world, hf_str run_id)
{
    return world->core != NULL ? hf_run_id_number(world->core->mac_key, run_id) : 0;
}

int64_t sim_newest(const sim_world *world, int workflow)
{
    int64_t newest = 0;
    for (size_t i = 0; i < world->ops.count; i++) {
        const sim_op *op = &world->ops.items[i];
        if (sim_op_starts(op) && op->workflow == workflow && op->run_id[0] != '\0') {
            int64_t number = number_of(world, hf_str_of(op->run_id));
            newest = number > newest ? number : newest;
        }
    }
    return newest;
}

void sim_check_current(sim_world *world, int workflow, hf_str run_id, int64_t newest)
{
    int64_t number = number_of(world, run_id);
    if (number != 0 && number < newest) {
        sim_fail(world, "sim-X2: wf-%d leads to run %.*s, number %lld, but its newest was %lld", workflow,
                 HF_STR_ARGS(run_id), (long long)number, (long long)newest);
    }
}

/* Whether a deletion by this workflow id was asked for and is not answered: it may find a run that began since. */
static bool is_being_deleted(const sim_world *world, int workflow)
{
    for (size_t i = 0; i < world->ops.count; i++) {
        const sim_op *op = &world->ops.items[i];
        if (op->kind == SIM_OP_DELETE && op->workflow == workflow && op->run_id[0] == '\0' &&
            op->outcome == SIM_UNKNOWN) {
            return true;
        }
    }
    return false;
}

bool sim_is_gone_below(const sim_world *world, const sim_run_log *log)
{
    int workflow = 0;
    return (world->is_retaining && !world->is_settled) ||
           (sscanf(log->workflow_id, "wf-%d", &workflow) == 1 && workflow < SIM_WORKFLOWS_MAX &&
            (number_of(world, hf_str_of(log->run_id)) < world->gone_below[workflow] ||
             is_being_deleted(world, workflow)));
}

bool sim_may_be_gone(const sim_world *world, const char *run_id)
{
    if (world->is_retaining && !world->is_settled) {
        return true;
    }
    for (size_t i = 0; i < world->runs.count; i++) {
        if (strcmp(world->runs.items[i].run_id, run_id) == 0 && world->runs.items[i].may_be_gone) {
            return true;
        }
    }
    return sim_is_retired(world, run_id);
}

bool sim_had_deletes(const sim_world *world, const char *workflow_id)
{
    int workflow = 0;
    return world->is_retaining || (sscanf(workflow_id, "wf-%d", &workflow) == 1 && workflow < SIM_WORKFLOWS_MAX &&
                                   world->deletes[workflow] > 0);
}

static void on_read(sim_world *world, sim_call *call)
{
    const sim_run_log *log = &world->runs.items[call->log];
    if (call->call.status == HF_OK) {
        sim_fail(world, "sim-X1: run %s was deleted and is there", log->run_id);
    } else if (!sim_is_lost(call) && call->call.status != HF_ERR_NOT_FOUND &&
               !sim_is_stopped(world, call, hf_str_of(log->workflow_id))) {
        sim_fail(world, "sim-X1: run %s was deleted: %s: %s", log->run_id, hf_status_name(call->call.status),
                 call->call.message);
    }
}

void sim_read_deleted(sim_world *world)
{
    size_t from = world->runs.count > 0 ? hf_rng_below(&world->rng, world->runs.count) : 0;
    for (size_t i = 0; i < world->runs.count; i++) {
        size_t at = (from + i) % world->runs.count;
        const sim_run_log *log = &world->runs.items[at];
        if (!log->is_deleted) {
            continue;
        }
        sim_call *call = sim_call_new(world, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, NULL, on_read);
        hf_pb_describe_workflow_execution_request *request =
            HF_ARENA_NEW(&call->arena, hf_pb_describe_workflow_execution_request);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
        request->execution->workflow_id = sim_copy(call, log->workflow_id);
        request->execution->run_id = sim_copy(call, log->run_id);
        call->call.request = request;
        call->log = at;
        sim_call_submit(world, call);
        return;
    }
}

/* ---- The end --------------------------------------------------------------------------------------------------------- */

static bool has_row(sim_world *world, hf_arena *arena, int64_t run)
{
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = run}, .arena = arena};
    hf_op_init(&get.op);
    hf_store_execute(world->store, &get);
    return get.found;
}

static hf_store_request scan_of(sim_world *world, hf_arena *arena, hf_table table)
{
    hf_store_request scan = {.verb = HF_STORE_SCAN, .table = table, .key_end = hf_key_last(), .arena = arena};
    hf_op_init(&scan.op);
    hf_store_execute(world->store, &scan);
    return scan;
}

static void judge_rows(sim_world *world, hf_arena *arena)
{
    hf_store_request runs = scan_of(world, arena, HF_TABLE_RUN);
    for (size_t i = 0; i < runs.row_count; i++) {
        hf_op op;
        hf_op_init(&op);
        hf_str body = {0};
        hf_pb_run_state state;
        if (hf_record_open(&op, HF_TABLE_RUN, &runs.rows[i].key, runs.rows[i].value, &body) != HF_OK ||
            hf_pb_decode(&op, &hf_pb_run_state_type, body, arena, &state) != HF_OK) {
            sim_fail(world, "the row of a run cannot be read: %s", op.message);
            return;
        }
        if (state.is_deleting != 0) {
            sim_fail(world, "sim-X3: run %lld of %.*s is being deleted for ever", (long long)runs.rows[i].key.a,
                     HF_STR_ARGS(state.workflow_id));
        }
        for (size_t j = 0; j < world->runs.count; j++) {
            if (world->runs.items[j].is_deleted && hf_str_equal(hf_str_of(world->runs.items[j].run_id), state.run_id)) {
                sim_fail(world, "sim-X1: run %s was deleted and has a row", world->runs.items[j].run_id);
            }
        }
    }
    static const hf_table TABLES[] = {HF_TABLE_HISTORY, HF_TABLE_DUE, HF_TABLE_NAME, HF_TABLE_TASK, HF_TABLE_META};
    for (size_t i = 0; i < HF_COUNT_OF(TABLES); i++) {
        hf_store_request rows = scan_of(world, arena, TABLES[i]);
        for (size_t j = 0; j < rows.row_count && !world->failed; j++) {
            const hf_row *row = &rows.rows[j];
            int64_t run = TABLES[i] == HF_TABLE_HISTORY ? row->key.a : row->key.b;
            hf_pb_task_record record = {0};
            hf_op op;
            hf_op_init(&op);
            hf_str body = {0};
            if (TABLES[i] == HF_TABLE_NAME && hf_names_is_gone(&world->core->index, row->key.a, run)) {
                continue; /* not swept yet */
            }
            if (TABLES[i] == HF_TABLE_META) {
                run = hf_kept_run(row);
            }
            if (TABLES[i] == HF_TABLE_TASK) {
                run = hf_record_open(&op, HF_TABLE_TASK, &row->key, row->value, &body) == HF_OK &&
                              hf_pb_decode(&op, &hf_pb_task_record_type, body, arena, &record) == HF_OK
                          ? record.run
                          : 0;
            }
            if (run != 0 && !has_row(world, arena, run)) {
                sim_fail(world, "sim-X3: a row of the table %s leads to run %lld, which has no row",
                         hf_table_info_of(TABLES[i])->name, (long long)run);
            }
        }
    }
}

static void on_found(void *state, const char *sentence)
{
    sim_fail(state, "sim-X3: holdfast db check: %s", sentence);
}

void sim_judge_deletes(sim_world *world)
{
    hf_arena arena;
    hf_arena_init(&arena, world->memory);
    (void)sim_world_rest(world); /* the rows are compared with what the core knows */
    judge_rows(world, &arena);
    hf_arena_deinit(&arena);
    if (world->failed || world->knobs.core.name_bits_off != 0) { /* the check does not know of names that are alike */
        return;
    }
    hf_op op;
    hf_op_init(&op);
    hf_check_report report;
    hf_check_options options = {.deep = true, .found = on_found, .state = world};
    if (hf_check_store(&op, world->memory, world->store, &options, &report) != HF_OK) {
        sim_fail(world, "holdfast db check: %s", op.message);
    }
}
