/* Calls of the disk that fail: an engine opens on the disk of a world and makes its first commit, with the first call
 * failing, then the second, and so on, in each of several ways. Either it opens with the right state, or it reports a
 * failure; and when the disk works again, nothing acknowledged is missing. The same holds if the power goes after that:
 * a failed sync leaves the cache right but the disk incomplete, and the next engine must notice. */
#include "sim/engine/disk.h"

#include "support/support.h"

#include <errno.h>

enum {
    COMMITS_BETWEEN = 23, /* from one scenario of a world to the next */
    RUNS_MAX = 1000       /* of an engine that has just opened */
};

/* The part of a run's state that does not depend on the engine's other runs. */
typedef struct seen_run {
    int64_t number;
    int64_t event_count;
    uint64_t chain;
    int32_t status;
} seen_run;

typedef struct fault_plan {
    hf_io_fault fault;
    unsigned kinds;
    bool forever;
    bool writes; /* the engine also makes a commit; not after a wrong bit, which it would write back */
    bool kills;  /* it is killed, not closed; the writeback of its unsynced changes fails, and only others are told */
} fault_plan;

static const fault_plan PLANS[] = {
    {HF_FAULT_EIO, HF_IO_ANY, false, true, false},          {HF_FAULT_EIO, HF_IO_ANY, true, true, false},
    {HF_FAULT_ENOSPC, HF_IO_ANY, false, true, false},       {HF_FAULT_ENOSPC, HF_IO_ANY, true, true, false},
    {HF_FAULT_SHORT_READ, HF_IO_READ, false, true, false},  {HF_FAULT_SHORT_READ, HF_IO_READ, true, true, false},
    {HF_FAULT_BIT_FLIP, HF_IO_READ, false, false, false},   {HF_FAULT_BIT_FLIP, HF_IO_READ, true, false, false},
    {HF_FAULT_EIO, HF_IO_SYNC, false, true, true},          {HF_FAULT_EIO, HF_IO_WRITE, false, true, true},
    {HF_FAULT_LATE_ENOSPC, HF_IO_SYNC, false, true, false}, {HF_FAULT_LATE_ENOSPC, HF_IO_SYNC, true, true, false},
    {HF_FAULT_EIO, HF_IO_SYNC_DIR, false, true, false},     {HF_FAULT_EIO, HF_IO_SYNC_DIR, true, true, false},
};

typedef struct scenario {
    hf_vfs *from, *work; /* the disk as it was, and the one that fails */
    hf_vfs *rested;      /* the disk after a proper close: without a log */
    hf_vfs *cut;         /* what a power cut leaves of the one that failed */
    uint64_t commit;     /* last one on it */
    uint64_t hash;       /* of the contents */
    uint64_t core_hash;  /* an engine's state on it */
    seen_run runs[RUNS_MAX];
    size_t run_count;
    hf_rng rng;
    sim_io_counts *counts;
} scenario;

static seen_run see(const hf_run *run)
{
    return (seen_run){run->number, run->event_count, run->chain, run->status};
}

static bool is_in_memory(const hf_core *core, int64_t number)
{
    HF_LIST_EACH(node, &core->runs_all)
    {
        if (HF_CONTAINER(node, hf_slot, all_link)->run.number == number) {
            return true;
        }
    }
    return false;
}

/* Records the runs of an engine on the undamaged disk. */
static void see_runs(scenario *it, hf_store *store)
{
    hf_core *core = NULL;
    hf_op op;
    hf_op_init(&op);
    if (!HF_CHECK_SAY(sim_open_engine(&op, store, &core) == HF_OK, "%s", op.message)) {
        return;
    }
    HF_LIST_EACH(node, &core->runs_all)
    {
        hf_assert(it->run_count < RUNS_MAX);
        it->runs[it->run_count++] = see(&HF_CONTAINER(node, hf_slot, all_link)->run);
    }
    sim_close_engine(core);
}

/* Whether a wrong bit was noticed: the run that it hit is marked as bad, and all other runs are right (D4). */
static bool is_beside_the_damage(const scenario *it, const hf_core *core)
{
    size_t bad = 0;
    for (size_t i = 0; i < it->run_count; i++) {
        if (!is_in_memory(core, it->runs[i].number)) {
            return false;
        }
    }
    HF_LIST_EACH(node, &core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        seen_run now = see(run);
        bool is_same = false;
        for (size_t i = 0; i < it->run_count; i++) {
            const seen_run *then = &it->runs[i];
            is_same = is_same || (then->number == now.number && then->event_count == now.event_count &&
                                  then->chain == now.chain && then->status == now.status);
        }
        bad += HF_SLOT(run)->bad ? 1 : 0;
        if (!HF_SLOT(run)->bad && !is_same) {
            return false;
        }
    }
    /* More that are bad were met when it looked for the holder of a task; or it found the holder, and only the order of tasks differs. */
    return bad > 0 || core->probes[HF_PROBE_BAD_RECORD] > 0;
}

/* Uses the disk with the fault in place. Returns the last commit that was acknowledged. */
static uint64_t use_faulty(const scenario *it, const fault_plan *plan)
{
    hf_store *store = NULL;
    hf_core *core = NULL;
    hf_op op;
    uint64_t acknowledged = it->commit;
    hf_status status = sim_open_store(it->work, &op, &store);
    if (status == HF_OK) {
        status = sim_open_engine(&op, store, &core);
    }
    if (status == HF_OK) {
        bool is_same = hf_core_hash(core) == it->core_hash;
        bool may_differ = !is_same && plan->fault == HF_FAULT_BIT_FLIP && is_beside_the_damage(it, core);
        it->counts->beside += may_differ ? 1 : 0;
        HF_CHECK_SAY(is_same || may_differ, "fault %d%s: the engine opened on something else", (int)plan->fault,
                     plan->forever ? " for ever" : "");
        if (plan->writes && sim_make_commit(core, store) == HF_OK) {
            acknowledged++;
        }
        sim_close_engine(core);
    } else {
        it->counts->reported++;
    }
    if (plan->kills) {
        hf_vfs_power_off(it->work);
    }
    hf_store_close(store);
    hf_vfs_power_on(it->work);
    if (plan->kills) {
        (void)hf_vfs_writeback_fails(it->work, "sim.db", EIO, true);
        (void)hf_vfs_writeback_fails(it->work, "sim.db-wal", EIO, true);
    }
    return acknowledged;
}

/* Cuts the power. The contents must be the same as before. */
static void cut_power(scenario *it, const fault_plan *plan, hf_crash_mode mode, uint64_t acknowledged, uint64_t hash)
{
    hf_store *store = NULL;
    hf_op op;
    uint64_t left = 0;
    it->counts->cuts++;
    hf_vfs_image(it->work, mode, &it->rng, it->cut);
    if (!HF_CHECK_SAY(sim_open_store(it->cut, &op, &store) == HF_OK, "%s", op.message)) {
        return;
    }
    uint64_t last = store->ops->last_commit(store);
    HF_CHECK_SAY(last == acknowledged, "I1: after fault %d%s and a power cut commit %llu is left, not %llu",
                 (int)plan->fault, plan->forever ? " for ever" : "", (unsigned long long)last,
                 (unsigned long long)acknowledged);
    HF_CHECK(hf_store_hash(&op, store, sim_heap, &left) == HF_OK && left == hash);
    hf_store_close(store);
}

/* The disk works again. */
static void use_healed(scenario *it, const fault_plan *plan, uint64_t acknowledged)
{
    hf_store *store = NULL;
    hf_op op;
    uint64_t hash = 0;
    if (!HF_CHECK_SAY(sim_open_store(it->work, &op, &store) == HF_OK, "after fault %d: %s", (int)plan->fault,
                      op.message)) {
        return;
    }
    uint64_t last = store->ops->last_commit(store);
    HF_CHECK_SAY(last >= acknowledged && last <= it->commit + 1,
                 "I1: after fault %d%s commit %llu is left, %llu was acknowledged", (int)plan->fault,
                 plan->forever ? " for ever" : "", (unsigned long long)last, (unsigned long long)acknowledged);
    HF_CHECK(hf_store_hash(&op, store, sim_heap, &hash) == HF_OK);
    HF_CHECK_SAY(last != it->commit || hash == it->hash, "store-S5: a failed commit left something");
    cut_power(it, plan, (hf_crash_mode)hf_rng_below(&it->rng, HF_CRASH_MODE_COUNT), last, hash); /* store-S7 */
    hf_core *core = NULL;
    hf_status status = sim_try_engine(&op, store, &hash);
    HF_CHECK_SAY(status == HF_OK, "after fault %d: %s", (int)plan->fault, op.message);
    if (HF_CHECK(sim_open_engine(&op, store, &core) == HF_OK)) {
        HF_CHECK(sim_make_commit(core, store) == HF_OK);
        sim_close_engine(core);
        HF_CHECK(hf_store_hash(&op, store, sim_heap, &hash) == HF_OK);
        cut_power(it, plan, HF_CRASH_NONE, last + 1, hash);
    }
    hf_store_close(store);
}

static void fail_everywhere(scenario *it, const fault_plan *plan)
{
    for (uint64_t nth = 1; hf_checks_failed() == 0; nth++) {
        /* A wrong bit in the log looks like the end of the log, and no reader can tell the difference: SQLite returns
         * the commits before it. In the file itself every wrong bit must be noticed. */
        hf_vfs_image(plan->fault == HF_FAULT_BIT_FLIP ? it->rested : it->from, HF_CRASH_ALL, &it->rng, it->work);
        uint64_t hits = hf_vfs_faults_hit(it->work);
        hf_vfs_fail(it->work, plan->kinds, nth, plan->fault, plan->forever);
        uint64_t acknowledged = use_faulty(it, plan);
        hf_vfs_fail(it->work, 0, 0, HF_FAULT_EIO, false);
        if (hf_vfs_faults_hit(it->work) == hits) {
            return; /* it has fewer calls */
        }
        it->counts->faults++;
        use_healed(it, plan, acknowledged);
    }
}

static void on_commit_fail(sim_world *world, const hf_store_request *request)
{
    (void)request;
    if (world->executed == 0 || world->executed % COMMITS_BETWEEN != 0 || hf_checks_failed() > 0) {
        return;
    }
    scenario it = {.commit = world->executed, .rng = {world->seed}, .counts = world->options.state};
    it.counts->scenarios++;
    it.from = hf_vfs_new("from", 1);
    it.work = hf_vfs_new("work", world->seed);
    it.rested = hf_vfs_new("rested", 1);
    it.cut = hf_vfs_new("cut", 1);
    hf_store *store = NULL;
    hf_op op;
    hf_vfs_image(world->disk, HF_CRASH_ALL, &it.rng, it.from);
    hf_vfs_image(it.from, HF_CRASH_ALL, &it.rng, it.work);
    if (HF_CHECK_SAY(sim_open_store(it.work, &op, &store) == HF_OK, "%s", op.message)) {
        HF_CHECK(hf_store_hash(&op, store, sim_heap, &it.hash) == HF_OK);
        HF_CHECK(sim_try_engine(&op, store, &it.core_hash) == HF_OK);
        see_runs(&it, store);
        hf_store_close(store);
        hf_vfs_image(it.work, HF_CRASH_ALL, &it.rng, it.rested);
        for (size_t i = 0; i < HF_COUNT_OF(PLANS); i++) {
            fail_everywhere(&it, &PLANS[i]);
        }
    }
    hf_vfs_free(it.from);
    hf_vfs_free(it.work);
    hf_vfs_free(it.rested);
    hf_vfs_free(it.cut);
}

void sim_io_world(uint64_t seed, sim_io_counts *counts)
{
    char why[800];
    uint64_t hash = 0;
    sim_totals ignored = {0};
    sim_options options = {.sqlite = true, .on_commit = on_commit_fail, .state = counts};
    HF_CHECK_SAY(sim_run(seed, options, &ignored, &hash, why, sizeof why), "%s", why);
}
