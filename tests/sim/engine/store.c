/* The store of the engine, and what a crash does to it.
 *
 * The memory store survives a crash unchanged. SQLite is on a disk in memory that loses its power with the process:
 * unsynced writes are there in part, torn, or not at all. As executed commits are durable (store-S2) and others leave
 * no trace (store-S1), a seed must give the same result on both. */
#include "sim/engine/sim.h"

#include "store/sqlite/sqlite.h"
#include "support/vfs.h"

hf_status sim_store_try_open(sim_world *world, hf_op *op)
{
    hf_sqlite_options options = {
        .vfs = hf_vfs_name(world->disk),
        .cache_len = 256 * 1024,
        .durability = world->options.is_normal ? HF_DURABILITY_NORMAL : HF_DURABILITY_FULL,
        .reread = hf_vfs_reread,
        .reread_state = world->disk,
    };
    hf_op_init(op);
    world->store = NULL;
    return hf_sqlite_open(op, world->memory, "sim.db", &options, &world->store);
}

static bool open_sqlite(sim_world *world)
{
    hf_op op;
    if (sim_store_try_open(world, &op) != HF_OK) {
        sim_fail(world, "the store does not open: %s", op.message);
        return false;
    }
    return true;
}

bool sim_store_open(sim_world *world)
{
    hf_op op;
    hf_op_init(&op);
    if (world->options.sqlite) {
        char name[32];
        (void)snprintf(name, sizeof name, "sim-%llu", (unsigned long long)world->seed);
        hf_vfs_seed_sqlite(world->seed);
        world->disk = hf_vfs_new(name, world->seed);
        world->trouble_rng.state = world->seed;
        if (world->options.on_disk != NULL) {
            world->options.on_disk(world, false);
        }
        return open_sqlite(world);
    }
    if (hf_mem_store_open(&op, world->memory, NULL, &world->store) != HF_OK) {
        sim_fail(world, "no store: %s", op.message);
        return false;
    }
    return true;
}

void sim_store_upkeep(sim_world *world)
{
    if (world->options.sqlite && hf_hash_mix(world->seed, world->executed) % 16 == 0) {
        hf_store_request request = {.verb = HF_STORE_CHECKPOINT, .force = true};
        hf_op_init(&request.op);
        hf_store_execute(world->store, &request);
        if (request.status == HF_OK) {
            world->durable = world->executed;
        } else if (world->options.is_failing) {
            world->is_store_gone = world->is_store_gone || request.status == HF_ERR_STORE;
        } else {
            sim_fail(world, "a checkpoint failed: %s", request.op.message);
        }
    }
    sim_trouble_plan(world);
}

void sim_store_crash(sim_world *world)
{
    if (!world->options.sqlite) {
        return;
    }
    if (world->options.is_failing && (world->options.is_normal || hf_rng_below(&world->trouble_rng, 3) > 0)) {
        sim_trouble_reopen(world);
        return;
    }
    hf_vfs_power_off(world->disk);
    hf_store_close(world->store);
    world->store = NULL;
    hf_rng rng = {hf_hash_mix(world->seed, world->opened)};
    hf_vfs_image(world->disk, (hf_crash_mode)hf_rng_below(&rng, HF_CRASH_MODE_COUNT), &rng, world->disk);
    if (world->options.is_failing) {
        sim_trouble_clear(world);
    }
    if (!open_sqlite(world)) {
        return;
    }
    uint64_t last = world->store->ops->last_commit(world->store);
    uint64_t most = world->is_store_gone ? world->asked : world->executed; /* store-S5: a failed commit may be there */
    if (last < world->executed || last > most) {
        sim_fail(world, "store-S1, store-S2: %llu commits were executed, %llu are there",
                 (unsigned long long)world->executed, (unsigned long long)last);
    }
    if (world->options.on_reopen != NULL && !world->failed) {
        world->options.on_reopen(world, last);
    }
    world->executed = world->asked = world->durable = last;
    world->is_store_gone = false;
}

void sim_store_close(sim_world *world)
{
    uint64_t hash = 0;
    hf_op op;
    hf_op_init(&op);
    if (world->is_store_gone && world->store != NULL) {
        sim_trouble_reopen(world);
    }
    if (world->store != NULL && !world->failed) {
        if (hf_store_hash(&op, world->store, world->memory, &hash) != HF_OK) {
            sim_fail(world, "the store cannot be read: %s", op.message);
        }
        world->hash = hf_hash_mix(world->hash, hash);
    }
    hf_store_close(world->store);
    world->store = NULL;
    if (world->disk != NULL && world->options.on_disk != NULL) {
        world->options.on_disk(world, true);
    }
    hf_vfs_free(world->disk);
    world->disk = NULL;
}
