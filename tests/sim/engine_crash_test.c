/* The power goes at every operation of the disk under the engine.
 *
 * Worlds of sim/engine run on SQLite, on a disk in memory. Before each change of the disk images are made of what could be
 * left if the power went now. Whatever the image: the store opens, and its contents are those after the last commit that
 * was executed or, while one is under way, after that one: nothing between, nothing older. The contents are known
 * from a twin in memory that gets the same commits. As nothing is acknowledged before its commit (D3, checked by the
 * world), no acknowledged operation is lost. From every distinct contents an engine opens, and its runs check.
 *
 * Then the same with calls of the disk that fail: the engine opens and is what it should be, or says that it cannot. */
#include "support/support.h"

#include "sim/engine/sim.h"
#include "store/sqlite/sqlite.h"
#include "support/vfs.h"

#include <stdlib.h>
#include <string.h>

enum { IMAGES = 300000, RANDOM_IMAGES = 4, KNOWN_MAX = 4096, NESTED_EVERY = 48, ENGINES_EVERY = 64 };

static void *heap_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len);
}

static void heap_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

static const hf_allocator HEAP = {heap_allocate, heap_release, NULL};

typedef struct outage {
    sim_world *world;
    hf_store *twin;         /* gets every commit first */
    hf_vfs *image, *second; /* what is left; what is left when the power goes again while that is opened */
    hf_rng rng;
    uint64_t commit_before, commit_after; /* which contents may be found */
    uint64_t hash_before, hash_after;
    uint64_t known[KNOWN_MAX]; /* hashes of images that were judged in this state, direct mapped */
    uint64_t engine_checked;   /* last contents an engine was opened on */
    uint64_t nested_commit;    /* number of the commit that an engine on the image makes */
    uint64_t nested_hash[2];   /* contents before it and, once somebody has seen them, after it */
    bool nested_done;          /* it is durable */
    uint64_t images, judged, nested, engines;
} outage;

static uint64_t images_made, images_judged, images_nested, engines_opened, images_wanted;

/* ---- An image ------------------------------------------------------------------------------------------------------ */

static hf_status open_store(const hf_vfs *disk, hf_op *op, hf_store **ret_store)
{
    hf_sqlite_options options = {.vfs = hf_vfs_name(disk), .cache_len = 64 * 1024};
    hf_op_init(op);
    *ret_store = NULL;
    return hf_sqlite_open(op, HEAP, "sim.db", &options, ret_store);
}

static const hf_clock NOW = {.wall = INT64_C(1700000000) * SIM_SECOND, .mono = SIM_SECOND};

/* Reads that the engine asks for are never answered: nobody waits for them here. */
static void ignore(void *state, hf_store_request *request)
{
    (void)state;
    (void)request;
}

static hf_status open_engine(hf_op *op, hf_store *store, hf_core **ret_core)
{
    hf_core_options options = {.memory = HEAP, .seed = {7}};
    hf_status status = hf_core_open(op, &options, store, NOW, ret_core);
    if (status == HF_OK) {
        (*ret_core)->submit = ignore;
    }
    return status;
}

static void close_engine(hf_core *core)
{
    hf_core_stop(core, HF_ERR_CLOSED, "enough");
    hf_core_free(core);
}

/* The first commit of an engine, which says that it was there. */
static hf_status make_commit(hf_core *core, hf_store *store)
{
    hf_store_request *request = hf_core_seal(core, NOW);
    assert_non_null(request);
    hf_store_execute(store, request);
    hf_status status = request->status;
    hf_core_done(core, request, NOW);
    return status;
}

/* An engine opens on the store, and its runs are what their histories say; gives the hash of its state. */
static hf_status try_engine(hf_op *op, hf_store *store, uint64_t *ret_hash)
{
    hf_core *core = NULL;
    hf_status status = open_engine(op, store, &core);
    if (status == HF_OK) {
        status = hf_core_check(op, core, store);
        *ret_hash = hf_core_hash(core);
        close_engine(core);
    }
    return status;
}

static void judge_store(outage *it, hf_store *store)
{
    hf_op op;
    hf_op_init(&op);
    uint64_t hash = 0;
    uint64_t last = store->ops->last_commit(store);
    bool is_after = last == it->commit_after;
    bool may_be_before = it->world->executed < it->commit_after; /* it has not returned yet */
    HF_CHECK_SAY(is_after || (may_be_before && last == it->commit_before), "S1, S2: commit %llu was left of %llu",
                 (unsigned long long)last, (unsigned long long)it->commit_after);
    HF_CHECK(hf_store_hash(&op, store, HEAP, &hash) == HF_OK);
    HF_CHECK_SAY(hash == (is_after ? it->hash_after : it->hash_before), "S1: other contents after commit %llu",
                 (unsigned long long)last);
    if (hash != it->engine_checked || hf_rng_below(&it->rng, ENGINES_EVERY) == 0) {
        it->engine_checked = hash;
        it->engines++;
        hf_status status = try_engine(&op, store, &hash);
        HF_CHECK_SAY(status == HF_OK, "an engine opens on what is left: %s", op.message);
    }
}

/* The power goes again, while an engine on the image makes its first commit and closes. */
static void on_nested(void *state, uint64_t number, hf_vfs_op_kind kind, const char *file)
{
    (void)number;
    (void)kind;
    (void)file;
    outage *it = state;
    hf_store *store = NULL;
    hf_op op;
    uint64_t hash = 0;
    it->nested++;
    hf_vfs_image(it->image, (hf_crash_mode)hf_rng_below(&it->rng, HF_CRASH_MODE_COUNT), &it->rng, it->second);
    if (!HF_CHECK_SAY(open_store(it->second, &op, &store) == HF_OK, "nested: %s", op.message)) {
        return;
    }
    uint64_t last = store->ops->last_commit(store);
    HF_CHECK(last == it->nested_commit || last + 1 == it->nested_commit);
    HF_CHECK(hf_store_hash(&op, store, HEAP, &hash) == HF_OK);
    if (!it->nested_done && last == it->commit_after && hash == it->hash_after) {
        /* The commit that was under way at the first outage, complete after all: what was missing of it is now there,
         * from the one that began like it. Nobody was told of either. */
        hf_store_close(store);
        return;
    }
    uint64_t *expected = &it->nested_hash[last == it->nested_commit];
    *expected = *expected == 0 ? hash : *expected;
    HF_CHECK_SAY(hash == *expected, "nested: other contents after commit %llu", (unsigned long long)last);
    hf_store_close(store);
}

static void nest(outage *it, hf_store *store)
{
    hf_op op;
    hf_op_init(&op);
    hf_core *core = NULL;
    uint64_t hash = 0;
    it->nested_commit = store->ops->last_commit(store) + 1;
    it->nested_hash[1] = 0;
    it->nested_done = false;
    HF_CHECK(hf_store_hash(&op, store, HEAP, &it->nested_hash[0]) == HF_OK);
    if (!HF_CHECK_SAY(open_engine(&op, store, &core) == HF_OK, "%s", op.message)) {
        return;
    }
    hf_vfs_on_op(it->image, on_nested, it);
    HF_CHECK(make_commit(core, store) == HF_OK);
    HF_CHECK(hf_store_hash(&op, store, HEAP, &hash) == HF_OK);
    HF_CHECK(it->nested_hash[1] == 0 || it->nested_hash[1] == hash);
    it->nested_hash[1] = hash;
    it->nested_hash[0] = hash; /* it is durable: from here on nothing else may be found */
    it->nested_done = true;
    close_engine(core);
}

static void judge_image(outage *it)
{
    hf_store *store = NULL;
    hf_op op;
    it->judged++;
    if (HF_CHECK_SAY(open_store(it->image, &op, &store) == HF_OK, "%s", op.message)) {
        judge_store(it, store);
        if (hf_rng_below(&it->rng, NESTED_EVERY) == 0) {
            nest(it, store);
        }
        hf_store_close(store); /* moves the log into the file: the power may go there too */
    }
    hf_vfs_on_op(it->image, NULL, NULL);
}

static void on_op(void *state, uint64_t number, hf_vfs_op_kind kind, const char *file)
{
    (void)number;
    (void)kind;
    (void)file;
    outage *it = state;
    if (it->world->failed || hf_checks_failed() > 0 || it->commit_before == UINT64_MAX) {
        return;
    }
    for (int i = 0; i < HF_CRASH_MODE_COUNT - 1 + RANDOM_IMAGES; i++) {
        hf_crash_mode mode = i < HF_CRASH_MODE_COUNT - 1 ? (hf_crash_mode)i : HF_CRASH_RANDOM;
        hf_vfs_image(it->world->disk, mode, &it->rng, it->image);
        uint64_t hash = hf_vfs_hash(it->image) ^ it->commit_before;
        it->images++;
        if (it->known[hash % KNOWN_MAX] != hash) { /* an equal one was judged already */
            it->known[hash % KNOWN_MAX] = hash;
            judge_image(it);
        }
    }
}

/* ---- A world -------------------------------------------------------------------------------------------------------- */

static void on_disk(sim_world *world, bool goes)
{
    outage *it = world->options.state;
    it->world = world;
    hf_vfs_on_op(world->disk, goes ? NULL : on_op, it);
}

static uint64_t twin_hash(outage *it)
{
    hf_op op;
    hf_op_init(&op);
    uint64_t hash = 0;
    HF_CHECK(hf_store_hash(&op, it->twin, HEAP, &hash) == HF_OK);
    return hash;
}

static void on_commit(sim_world *world, const hf_store_request *request)
{
    outage *it = world->options.state;
    hf_store_request same = *request;
    it->commit_before = world->executed;
    it->hash_before = twin_hash(it);
    hf_store_execute(it->twin, &same);
    it->commit_after = request->commit;
    it->hash_after = twin_hash(it);
    HF_CHECK(same.status == HF_OK);
}

static void one_world(uint64_t seed)
{
    if (images_made >= images_wanted) {
        return;
    }
    outage *it = calloc(1, sizeof *it);
    hf_op op;
    hf_op_init(&op);
    assert_non_null(it);
    it->rng.state = seed;
    it->commit_before = UINT64_MAX; /* while the database is made there is nothing to lose */
    it->image = hf_vfs_new("image", seed);
    it->second = hf_vfs_new("second", seed);
    HF_CHECK(hf_mem_store_open(&op, HEAP, &it->twin) == HF_OK);
    char why[800];
    uint64_t hash = 0;
    sim_totals ignored = {0};
    sim_options options = {.sqlite = true, .on_commit = on_commit, .on_disk = on_disk, .state = it};
    HF_CHECK_SAY(sim_run(seed, options, &ignored, &hash, why, sizeof why), "%s", why);
    images_made += it->images + it->nested;
    images_judged += it->judged + it->nested;
    images_nested += it->nested;
    engines_opened += it->engines;
    hf_store_close(it->twin);
    hf_vfs_free(it->image);
    hf_vfs_free(it->second);
    free(it);
}

static void nothing_acknowledged_is_lost_whenever_the_power_goes(void **state)
{
    (void)state;
    images_made = images_judged = images_nested = engines_opened = 0;
    images_wanted = hf_test_seeds(IMAGES);
    hf_each_seed("worlds on a disk without power", 100000, one_world);
    print_message("%llu images, %llu of them different and opened, %llu made while another was opened, %llu engines\n",
                  (unsigned long long)images_made, (unsigned long long)images_judged, (unsigned long long)images_nested,
                  (unsigned long long)engines_opened);
}

/* ---- Calls that fail -------------------------------------------------------------------------------------------------- */

enum { SCENARIOS = 40, COMMITS_BETWEEN = 23 };

typedef struct fault_plan {
    hf_io_fault fault;
    unsigned kinds;
    bool forever;
    bool writes; /* the engine also makes a commit; not after a wrong bit, which it would write back */
} fault_plan;

static const fault_plan PLANS[] = {
    {HF_FAULT_EIO, HF_IO_ANY, false, true},         {HF_FAULT_EIO, HF_IO_ANY, true, true},
    {HF_FAULT_ENOSPC, HF_IO_ANY, false, true},      {HF_FAULT_ENOSPC, HF_IO_ANY, true, true},
    {HF_FAULT_SHORT_READ, HF_IO_READ, false, true}, {HF_FAULT_SHORT_READ, HF_IO_READ, true, true},
    {HF_FAULT_BIT_FLIP, HF_IO_READ, false, false},  {HF_FAULT_BIT_FLIP, HF_IO_READ, true, false},
};

typedef struct scenario {
    hf_vfs *from, *work; /* the disk as it was, and the one that fails */
    hf_vfs *rested;      /* the disk after a proper close: without a log */
    uint64_t commit;     /* last one on it */
    uint64_t hash;       /* its contents */
    uint64_t core_hash;  /* an engine's state on it */
    hf_rng rng;
} scenario;

static uint64_t errors_tried, errors_reported;

/* With the fault in place. Gives the last commit that was acknowledged. */
static uint64_t use_faulty(const scenario *it, const fault_plan *plan)
{
    hf_store *store = NULL;
    hf_core *core = NULL;
    hf_op op;
    uint64_t acknowledged = it->commit;
    hf_status status = open_store(it->work, &op, &store);
    if (status == HF_OK) {
        status = open_engine(&op, store, &core);
    }
    if (status == HF_OK) {
        HF_CHECK_SAY(hf_core_hash(core) == it->core_hash, "fault %d%s: the engine opened on something else",
                     (int)plan->fault, plan->forever ? " for ever" : "");
        if (plan->writes && make_commit(core, store) == HF_OK) {
            acknowledged++;
        }
        close_engine(core);
    } else {
        errors_reported++;
    }
    hf_store_close(store);
    return acknowledged;
}

/* The disk works again. */
static void use_healed(const scenario *it, const fault_plan *plan, uint64_t acknowledged)
{
    hf_store *store = NULL;
    hf_op op;
    uint64_t hash = 0;
    if (!HF_CHECK_SAY(open_store(it->work, &op, &store) == HF_OK, "after fault %d: %s", (int)plan->fault, op.message)) {
        return;
    }
    uint64_t last = store->ops->last_commit(store);
    HF_CHECK_SAY(last >= acknowledged && last <= it->commit + 1,
                 "I1: after fault %d%s commit %llu is left, %llu was acknowledged", (int)plan->fault,
                 plan->forever ? " for ever" : "", (unsigned long long)last, (unsigned long long)acknowledged);
    HF_CHECK(hf_store_hash(&op, store, HEAP, &hash) == HF_OK);
    HF_CHECK_SAY(last != it->commit || hash == it->hash, "S5: a failed commit left something");
    hf_status status = try_engine(&op, store, &hash);
    HF_CHECK_SAY(status == HF_OK, "after fault %d: %s", (int)plan->fault, op.message);
    hf_store_close(store);
}

static void fail_everywhere(scenario *it, const fault_plan *plan)
{
    for (uint64_t nth = 1; hf_checks_failed() == 0; nth++) {
        /* A wrong bit in the log looks like the end of what was written, and no reader of it can tell: SQLite gives what
         * comes before. In the file itself every one must be noticed. */
        hf_vfs_image(plan->fault == HF_FAULT_BIT_FLIP ? it->rested : it->from, HF_CRASH_ALL, &it->rng, it->work);
        uint64_t hits = hf_vfs_faults_hit(it->work);
        hf_vfs_fail(it->work, plan->kinds, nth, plan->fault, plan->forever);
        uint64_t acknowledged = use_faulty(it, plan);
        hf_vfs_fail(it->work, 0, 0, HF_FAULT_EIO, false);
        if (hf_vfs_faults_hit(it->work) == hits) {
            return; /* it has fewer calls */
        }
        errors_tried++;
        use_healed(it, plan, acknowledged);
    }
}

static unsigned scenarios_done;

static void on_commit_fail(sim_world *world, const hf_store_request *request)
{
    (void)request;
    if (world->executed == 0 || world->executed % COMMITS_BETWEEN != 0 || hf_checks_failed() > 0) {
        return;
    }
    scenarios_done++;
    scenario it = {.commit = world->executed, .rng = {world->seed}};
    it.from = hf_vfs_new("from", 1);
    it.work = hf_vfs_new("work", world->seed);
    it.rested = hf_vfs_new("rested", 1);
    hf_store *store = NULL;
    hf_op op;
    hf_vfs_image(world->disk, HF_CRASH_ALL, &it.rng, it.from);
    hf_vfs_image(it.from, HF_CRASH_ALL, &it.rng, it.work);
    if (HF_CHECK_SAY(open_store(it.work, &op, &store) == HF_OK, "%s", op.message)) {
        HF_CHECK(hf_store_hash(&op, store, HEAP, &it.hash) == HF_OK);
        HF_CHECK(try_engine(&op, store, &it.core_hash) == HF_OK);
        hf_store_close(store);
        hf_vfs_image(it.work, HF_CRASH_ALL, &it.rng, it.rested);
        for (size_t i = 0; i < HF_COUNT_OF(PLANS); i++) {
            fail_everywhere(&it, &PLANS[i]);
        }
    }
    hf_vfs_free(it.from);
    hf_vfs_free(it.work);
    hf_vfs_free(it.rested);
}

static void one_failing_world(uint64_t seed)
{
    if (scenarios_done >= hf_test_seeds(SCENARIOS)) {
        return;
    }
    char why[800];
    uint64_t hash = 0;
    sim_totals ignored = {0};
    sim_options options = {.sqlite = true, .on_commit = on_commit_fail};
    HF_CHECK_SAY(sim_run(seed, options, &ignored, &hash, why, sizeof why), "%s", why);
}

static void a_failing_disk_gives_no_wrong_answer(void **state)
{
    (void)state;
    errors_tried = errors_reported = 0;
    scenarios_done = 0;
    hf_each_seed("worlds on a failing disk", 1000, one_failing_world);
    print_message("%u scenarios, %llu failures at every call, %llu of them reported by the open\n", scenarios_done,
                  (unsigned long long)errors_tried, (unsigned long long)errors_reported);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost_whenever_the_power_goes),
        cmocka_unit_test(a_failing_disk_gives_no_wrong_answer),
    };
    return hf_test_main("engine_crash", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
