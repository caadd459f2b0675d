/* A disk whose syncs fail under the engine, and processes that die on it.
 *
 * A failed sync does what it does on Linux (tests/support/vfs_disk.c): the cache stays right, the disk lacks the
 * unwritten bytes, and later syncs succeed. The store then answers nothing more, and the next process finds the files
 * as they are in the cache. Between two processes the kernel may fail to write the changes of the first one, and report
 * that to another process. Openings fail and are repeated; processes die while they open. There are no power cuts here:
 * images (outage.c) and the world's crashes make those.
 *
 * With durability normal a commit that was not synced is lost when its writeback fails, because an opening reads the
 * disk and not the cache. A world ends there. */
#include "sim/engine/sim.h"

#include "support/vfs.h"

#include <errno.h>

enum {
    PLAN_EVERY = 3,   /* one in this many commits is followed by a plan */
    OPENINGS_BAD = 3, /* openings in a row that may meet a trouble */
    OPENINGS_MAX = 8  /* after those each of three files may have an error that was not reported yet */
};

static uint64_t below(sim_world *world, uint64_t count)
{
    return hf_rng_below(&world->trouble_rng, count);
}

void sim_trouble_clear(sim_world *world)
{
    hf_vfs_fail(world->disk, 0, 0, HF_FAULT_EIO, false);
    world->kill_at = 0;
}

/* The kernel writes pending changes in the background, and fails. */
static void write_back_badly(sim_world *world, bool is_told)
{
    static const char *const FILES[] = {"sim.db", "sim.db-wal", "sim.db-journal"};
    for (size_t i = 0; i < HF_COUNT_OF(FILES); i++) {
        int error = below(world, 4) == 0 ? ENOSPC : EIO;
        world->troubles += hf_vfs_writeback_fails(world->disk, FILES[i], error, is_told) ? 1 : 0;
    }
}

static void plan_one(sim_world *world)
{
    uint64_t nth = 1 + below(world, 5);
    bool forever = below(world, 4) == 0;
    sim_trouble_clear(world);
    switch (below(world, 6)) {
    case 0:
    case 1:
        hf_vfs_fail(world->disk, HF_IO_SYNC, nth, HF_FAULT_EIO, forever);
        return;
    case 2:
        hf_vfs_fail(world->disk, HF_IO_SYNC, nth, HF_FAULT_LATE_ENOSPC, forever);
        return;
    case 3:
        hf_vfs_fail(world->disk, HF_IO_SYNC_DIR, 1, HF_FAULT_EIO, forever);
        return;
    case 4:
        world->kill_at = hf_vfs_ops(world->disk) + 1 + below(world, 24);
        return;
    default:
        write_back_badly(world, below(world, 2) == 0); /* also while the process lives: then it is told */
        return;
    }
}

void sim_trouble_plan(sim_world *world)
{
    if (!world->options.is_failing) {
        return;
    }
    if (world->is_healed) {
        sim_trouble_clear(world);
    } else if (below(world, PLAN_EVERY) == 0) {
        plan_one(world);
    }
}

bool sim_trouble_kills(sim_world *world, uint64_t change)
{
    if (change != world->kill_at) {
        return false;
    }
    sim_trace(world, "the process dies at change %llu of the disk", (unsigned long long)change);
    hf_vfs_power_off(world->disk);
    world->troubles++;
    world->is_store_gone = true;
    return true;
}

/* For an opening that makes a new log, syncs of the directory matter most. */
static void plan_opening(sim_world *world)
{
    uint64_t len = 0;
    bool has_log = hf_vfs_file_size(world->disk, "sim.db-wal", &len) && len > 0;
    if (has_log || below(world, 2) == 0) {
        plan_one(world);
    } else {
        hf_vfs_fail(world->disk, HF_IO_SYNC_DIR, 1, HF_FAULT_EIO, below(world, 4) == 0);
    }
}

static bool open_somehow(sim_world *world)
{
    hf_op op;
    for (int i = 0; i < OPENINGS_MAX; i++) {
        if (i < OPENINGS_BAD && !world->is_healed && below(world, 2) == 0) {
            plan_opening(world);
        }
        hf_status status = sim_store_try_open(world, &op);
        if (status == HF_OK) {
            return true;
        }
        sim_trace(world, "an opening fails: %s", op.message);
        hf_vfs_power_on(world->disk);
        sim_trouble_clear(world);
    }
    sim_fail(world, "the store does not open: %s", op.message);
    return false;
}

static uint64_t writes_failed(const sim_world *world)
{
    return world->troubles + hf_vfs_faults_hit(world->disk);
}

void sim_trouble_reopen(sim_world *world)
{
    if (below(world, 2) == 0) {
        hf_vfs_power_off(world->disk); /* killed; otherwise it closes as far as the disk allows */
    }
    hf_store_close(world->store);
    world->store = NULL;
    hf_vfs_power_on(world->disk);
    sim_trouble_clear(world);
    if (below(world, 2) == 0) {
        write_back_badly(world, below(world, 4) != 0);
    }
    if (!open_somehow(world)) {
        return;
    }
    uint64_t last = world->store->ops->last_commit(world->store);
    bool may_lose = world->options.is_normal && writes_failed(world) != world->failed_before;
    uint64_t least = may_lose ? world->durable : world->executed;
    world->failed_before = writes_failed(world);
    if (last < least || last > world->asked) {
        sim_fail(world, "store-S2: %llu commits were executed and %llu begun, %llu are there without a power cut",
                 (unsigned long long)world->executed, (unsigned long long)world->asked, (unsigned long long)last);
    }
    if (last < world->executed && !world->failed) { /* allowed, but the judge cannot handle lost commits */
        sim_trace(world, "%llu commits are lost", (unsigned long long)(world->executed - last));
        world->failed = world->is_poorer = true;
    }
    if (world->options.on_reopen != NULL && !world->failed) {
        world->options.on_reopen(world, last);
    }
    world->executed = world->asked = world->durable = last; /* store-S7 */
    world->is_store_gone = false;
}
