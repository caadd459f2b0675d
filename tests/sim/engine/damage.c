/* Damaged records: a store in front of the real one that returns some rows with a wrong bit, or cut short.
 *
 *     engine --> damaged view --> store        oracle and judge look at the store itself
 *
 * The bytes in the store do not change, so records are restored by forgetting the damage, and every store behaves the
 * same. A write to a damaged row ends its damage. D4 must hold meanwhile: nothing breaks, calls for the damaged run
 * fail with a message, and all other runs go on to their ends. An opening that needs a damaged record goes on without
 * it. When the records are restored and the engine was opened again, the run goes on too, with everything that was ever
 * acknowledged. */
#include "sim/engine/sim.h"

#include "engine/input.h"
#include "ledger/run_id.h"

#include <string.h>

/* ---- The view -------------------------------------------------------------------------------------------------------- */

static sim_world *world_of(hf_store *store)
{
    return HF_CONTAINER(store, sim_world, view);
}

static bool is_at(const sim_damage *damage, hf_table table, const hf_key *key)
{
    return damage->table == table && damage->a == key->a && damage->b == key->b &&
           hf_str_equal(hf_str_of(damage->text), key->text);
}

/* The value as the engine gets it. */
static hf_str damaged(sim_world *world, hf_table table, const hf_key *key, hf_str value, hf_arena *arena)
{
    for (size_t i = 0; i < world->damages.count; i++) {
        sim_damage *damage = &world->damages.items[i];
        if (!damage->is_there || !is_at(damage, table, key) || damage->at >= value.len) {
            continue;
        }
        world->damage_met++;
        sim_fault(world, HF_SIM_RECORD_MET);
        if (damage->flip == 0) {
            return hf_str_of_len(value.data, damage->at);
        }
        char *bytes = hf_arena_take(arena, value.len, 1);
        memcpy(bytes, value.data, value.len);
        bytes[damage->at] = (char)(bytes[damage->at] ^ damage->flip);
        return hf_str_of_len(bytes, value.len);
    }
    return value;
}

static bool is_in(const hf_write *write, const sim_damage *damage)
{
    if (write->kind != HF_WRITE_DELETE_RANGE) {
        return is_at(damage, write->table, &write->key);
    }
    hf_key key = {hf_str_of(damage->text), damage->a, damage->b};
    return write->table == damage->table && hf_key_compare(&write->key, &key) <= 0 &&
           hf_key_compare(&key, &write->key_end) < 0;
}

static void overwrite(sim_world *world, const hf_store_request *request)
{
    for (size_t i = 0; i < world->damages.count; i++) {
        for (size_t j = 0; j < request->write_count && world->damages.items[i].is_there; j++) {
            world->damages.items[i].is_there = !is_in(&request->writes[j], &world->damages.items[i]);
        }
    }
}

static hf_status view_execute(hf_store *store, hf_store_request *request)
{
    sim_world *world = world_of(store);
    hf_status status = world->store->ops->execute(world->store, request);
    if (status != HF_OK) {
        return status;
    }
    if (request->verb == HF_STORE_COMMIT) {
        overwrite(world, request);
    } else if (request->verb == HF_STORE_GET && request->found) {
        request->value = damaged(world, request->table, &request->key, request->value, request->arena);
    } else if (request->verb == HF_STORE_SCAN) {
        for (size_t i = 0; i < request->row_count; i++) {
            hf_row *row = &request->rows[i];
            row->value = damaged(world, request->table, &row->key, row->value, request->arena);
        }
    }
    return HF_OK;
}

static uint64_t view_last_commit(hf_store *store)
{
    sim_world *world = world_of(store);
    return world->store->ops->last_commit(world->store);
}

static void view_close(hf_store *store)
{
    (void)store; /* it owns nothing */
}

/* ---- Damage ---------------------------------------------------------------------------------------------------------- */

/* Finds the run that the row belongs to; false: it belongs to none. */
static bool find_run(sim_world *world, hf_arena *arena, sim_damage *damage, const hf_row *row)
{
    hf_op op;
    hf_op_init(&op);
    hf_str body = {0};
    damage->run = row->key.a;
    if (damage->table == HF_TABLE_TASK) {
        hf_pb_task_record record;
        if (hf_record_open(&op, HF_TABLE_TASK, &row->key, row->value, &body) != HF_OK ||
            hf_pb_decode(&op, &hf_pb_task_record_type, body, arena, &record) != HF_OK) {
            return false;
        }
        damage->run = record.run;
    }
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = damage->run}, .arena = arena};
    hf_store_execute(world->store, &get);
    hf_pb_run_state state;
    if (!get.found || hf_record_open(&op, HF_TABLE_RUN, &get.key, get.value, &body) != HF_OK ||
        hf_pb_decode(&op, &hf_pb_run_state_type, body, arena, &state) != HF_OK) {
        return false;
    }
    if (!hf_str_equal(state.namespace, HF_STR(SIM_NAMESPACE))) {
        return false; /* those of resets.c are left alone */
    }
    (void)snprintf(damage->workflow_id, sizeof damage->workflow_id, "%.*s", HF_STR_ARGS(state.workflow_id));
    size_t log = sim_log_run(world, state.run_id, state.workflow_id);
    world->runs.items[log].was_damaged = true;
    damage->log = log;
    return true;
}

void sim_damage_some(sim_world *world)
{
    static const hf_table TABLES[] = {HF_TABLE_RUN, HF_TABLE_RUN, HF_TABLE_HISTORY, HF_TABLE_TASK};
    sim_damage damage = {.table = TABLES[hf_rng_below(&world->rng, HF_COUNT_OF(TABLES))]};
    hf_arena arena;
    hf_arena_init(&arena, world->memory);
    hf_store_request scan = {.verb = HF_STORE_SCAN, .table = damage.table, .key_end = hf_key_last(), .arena = &arena};
    hf_store_execute(world->store, &scan);
    if (scan.row_count > 0) {
        const hf_row *row = &scan.rows[hf_rng_below(&world->rng, scan.row_count)];
        damage.a = row->key.a;
        damage.b = row->key.b;
        damage.at = hf_rng_below(&world->rng, row->value.len);
        damage.flip = sim_chance(world, 300) ? 0 : (char)(1 << hf_rng_below(&world->rng, 7));
        damage.is_there = true;
        (void)snprintf(damage.text, sizeof damage.text, "%.*s", HF_STR_ARGS(row->key.text));
        if (find_run(world, &arena, &damage, row)) {
            sim_fault(world, HF_SIM_RECORD_DAMAGED);
            sim_trace(world, "damage: %s %lld %lld of %s", hf_table_info_of(damage.table)->name, (long long)damage.a,
                      (long long)damage.b, damage.workflow_id);
            *SIM_PUSH(&world->damages) = damage;
        }
    }
    hf_arena_deinit(&arena);
}

static bool is_of(const sim_damage *damage, hf_str workflow_id)
{
    return damage->table != HF_TABLE_TASK && hf_str_equal(hf_str_of(damage->workflow_id), workflow_id);
}

bool sim_is_damaged(const sim_world *world, hf_str workflow_id)
{
    for (size_t i = 0; i < world->damages.count; i++) {
        if (is_of(&world->damages.items[i], workflow_id)) {
            return true;
        }
    }
    return false;
}

bool sim_is_still_damaged(const sim_world *world, hf_str workflow_id)
{
    for (size_t i = 0; i < world->damages.count; i++) {
        if (world->damages.items[i].is_there && is_of(&world->damages.items[i], workflow_id)) {
            return true;
        }
    }
    return false;
}

bool sim_is_number_damaged(const sim_world *world, int64_t run)
{
    for (size_t i = 0; i < world->damages.count; i++) {
        if (world->damages.items[i].run == run) {
            return true;
        }
    }
    return false;
}

bool sim_is_history_damaged(const sim_world *world)
{
    for (size_t i = 0; i < world->damages.count; i++) {
        if (world->damages.items[i].table == HF_TABLE_HISTORY) {
            return true;
        }
    }
    return false;
}

bool sim_is_stopped(sim_world *world, const sim_call *call, hf_str workflow_id)
{
    if (call->call.status != HF_ERR_STORE) {
        return false;
    }
    sim_fault(world, HF_SIM_RUN_STOPPED);
    /* A call may name a run that a crash undid, by its id or by the token of a page of its history: another run, perhaps a damaged one, has its number
     * by then. */
    hf_str run_id = hf_call_run_id(&call->call);
    int64_t number = world->core != NULL && run_id.len > 0 ? hf_run_id_number(world->core->mac_key, run_id) : 0;
    bool by_number = (call->call.method == HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY && world->damages.count > 0) ||
                     (number != 0 && sim_is_number_damaged(world, number));
    if (!sim_is_damaged(world, workflow_id) && !by_number) {
        sim_fail(world, "D4: %s of %.*s, whose records are sound, was refused: %s",
                 hf_method_info_of(call->call.method)->name, HF_STR_ARGS(workflow_id), call->call.message);
    } else if (call->call.message[0] == '\0') {
        sim_fail(world, "D4: a damaged record was met without a sentence");
    }
    return true;
}

bool sim_restore(sim_world *world)
{
    bool any = false;
    for (size_t i = 0; i < world->damages.count; i++) {
        any = any || world->damages.items[i].is_there;
        world->damages.items[i].is_there = false;
    }
    if (any) {
        sim_fault(world, HF_SIM_RECORD_RESTORED);
        sim_trace(world, "damaged records are restored");
    }
    return any;
}

void sim_damage_opened(sim_world *world)
{
    size_t left = 0;
    for (size_t i = 0; i < world->damages.count; i++) {
        if (world->damages.items[i].is_there) {
            world->damages.items[left++] = world->damages.items[i];
        }
    }
    world->damages.count = left;
}

/* ---- When ------------------------------------------------------------------------------------------------------------ */

static void decay(sim_world *world, sim_actor *actor)
{
    if (world->is_healed) {
        return;
    }
    if (world->damages.count > 0 && sim_chance(world, 300)) {
        if (sim_restore(world)) {
            sim_world_restart(world);
        }
    } else {
        sim_damage_some(world);
    }
    sim_wake_in(world, actor, sim_upto(world, 4 * SIM_SECOND));
}

void sim_damage_init(sim_world *world)
{
    static const hf_store_ops OPS = {"damaged", view_execute, view_last_commit, view_close};
    world->view.ops = &OPS;
    world->decay.wake = decay;
    if (world->knobs.has_damage) {
        sim_wake_in(world, &world->decay, sim_upto(world, 4 * SIM_SECOND));
    }
}
