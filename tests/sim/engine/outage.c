/* The power goes at every operation of the disk under the engine.
 *
 * Worlds run on SQLite, on a disk in memory. Before each change of the disk images are made of what could be left if the
 * power went now. Whatever the image: the store opens, and its contents are those after the last commit that was
 * executed or, while one is under way, after that one: nothing between, nothing older. The contents are known from a twin
 * in memory that gets the same commits. As nothing is acknowledged before its commit (D3, checked by the world), no
 * acknowledged operation is lost. From every distinct contents an engine opens, and its runs check. */
#include "sim/engine/disk.h"

#include "support/support.h"

#include <stdlib.h>
#include <string.h>

enum { RANDOM_IMAGES = 4, KNOWN_MAX = 4096, NESTED_EVERY = 48, ENGINES_EVERY = 64 };

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

/* ---- An image ------------------------------------------------------------------------------------------------------ */

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
    HF_CHECK(hf_store_hash(&op, store, sim_heap, &hash) == HF_OK);
    HF_CHECK_SAY(hash == (is_after ? it->hash_after : it->hash_before), "S1: other contents after commit %llu",
                 (unsigned long long)last);
    if (hash != it->engine_checked || hf_rng_below(&it->rng, ENGINES_EVERY) == 0) {
        it->engine_checked = hash;
        it->engines++;
        hf_status status = sim_try_engine(&op, store, &hash);
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
    if (!HF_CHECK_SAY(sim_open_store(it->second, &op, &store) == HF_OK, "nested: %s", op.message)) {
        return;
    }
    uint64_t last = store->ops->last_commit(store);
    HF_CHECK(last == it->nested_commit || last + 1 == it->nested_commit);
    HF_CHECK(hf_store_hash(&op, store, sim_heap, &hash) == HF_OK);
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
    HF_CHECK(hf_store_hash(&op, store, sim_heap, &it->nested_hash[0]) == HF_OK);
    if (!HF_CHECK_SAY(sim_open_engine(&op, store, &core) == HF_OK, "%s", op.message)) {
        return;
    }
    hf_vfs_on_op(it->image, on_nested, it);
    HF_CHECK(sim_make_commit(core, store) == HF_OK);
    HF_CHECK(hf_store_hash(&op, store, sim_heap, &hash) == HF_OK);
    HF_CHECK(it->nested_hash[1] == 0 || it->nested_hash[1] == hash);
    it->nested_hash[1] = hash;
    it->nested_hash[0] = hash; /* it is durable: from here on nothing else may be found */
    it->nested_done = true;
    sim_close_engine(core);
}

static void judge_image(outage *it)
{
    hf_store *store = NULL;
    hf_op op;
    it->judged++;
    if (HF_CHECK_SAY(sim_open_store(it->image, &op, &store) == HF_OK, "%s", op.message)) {
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
    HF_CHECK(hf_store_hash(&op, it->twin, sim_heap, &hash) == HF_OK);
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

void sim_outage_world(uint64_t seed, sim_outage_counts *counts)
{
    outage *it = calloc(1, sizeof *it);
    hf_op op;
    hf_op_init(&op);
    if (it == NULL) {
        abort();
    }
    it->rng.state = seed;
    it->commit_before = UINT64_MAX; /* while the database is made there is nothing to lose */
    it->image = hf_vfs_new("image", seed);
    it->second = hf_vfs_new("second", seed);
    HF_CHECK(hf_mem_store_open(&op, sim_heap, &it->twin) == HF_OK);
    char why[800];
    uint64_t hash = 0;
    sim_totals ignored = {0};
    sim_options options = {.sqlite = true, .on_commit = on_commit, .on_disk = on_disk, .state = it};
    HF_CHECK_SAY(sim_run(seed, options, &ignored, &hash, why, sizeof why), "%s", why);
    counts->worlds++;
    counts->images += it->images + it->nested;
    counts->judged += it->judged + it->nested;
    counts->nested += it->nested;
    counts->engines += it->engines;
    hf_store_close(it->twin);
    hf_vfs_free(it->image);
    hf_vfs_free(it->second);
    free(it);
}
