/* The power goes at every operation of the disk under the engine.
 *
 * Worlds run on SQLite, on a disk in memory. Before each change of the disk, images are made of what could be left if
 * the power went now. On every image the store opens, and its contents are those after the last commit that was
 * executed or, while one is under way, after that one: nothing in between, nothing older. The right contents are known
 * from a twin in memory that gets the same commits. As nothing is acknowledged before its commit (D3, checked by the
 * world), no acknowledged operation is lost. On each different image an engine opens, and its runs are checked.
 *
 * The same holds on a disk whose syncs fail (troubles.c): after a failed sync and a restart, and after any number of
 * these. With durability normal, the contents are at least as new as the last opening or checkpoint. */
#include "sim/engine/disk.h"

#include "support/support.h"

#include <stdlib.h>
#include <string.h>

enum { RANDOM_IMAGES = 4, KNOWN_MAX = 4096, NESTED_EVERY = 48, ENGINES_EVERY = 64 };

typedef struct outage {
    sim_world *world;
    sim_twin *twin;         /* gets every commit first */
    hf_vfs *image, *second; /* an image; an image of that one, if the power goes again while it is opened */
    hf_rng rng;
    bool has_begun;            /* before its first commit there is nothing to lose */
    uint64_t known[KNOWN_MAX]; /* hashes of images that were judged in this state, direct mapped */
    uint64_t engine_checked;   /* last contents an engine was opened on */
    uint64_t nested_commit;    /* number of the commit that an engine on the image makes */
    uint64_t nested_hash[2];   /* hash of the contents before it and, once they were seen, after it */
    bool nested_done;          /* it is durable */
    uint64_t troubles, images, judged, nested, engines;
} outage;

/* ---- An image ------------------------------------------------------------------------------------------------------ */

static void judge_store(outage *it, hf_store *store)
{
    hf_op op;
    hf_op_init(&op);
    uint64_t hash = 0;
    uint64_t last = store->ops->last_commit(store);
    const sim_world *world = it->world;
    if (!HF_CHECK_SAY(last >= world->durable && last <= world->asked,
                      "store-S1, store-S2: commit %llu was left of %llu to %llu", (unsigned long long)last,
                      (unsigned long long)world->durable, (unsigned long long)world->asked)) {
        return;
    }
    HF_CHECK(hf_store_hash(&op, store, sim_heap, &hash) == HF_OK);
    /* A commit that was under way when its process died may become complete later: the next process gives its number to another commit, which
     * may begin with the same bytes in the same place and so write the missing ones. Neither was acknowledged, so either may be found. */
    bool is_lost_one = last > world->durable && sim_twin_has_lost(it->twin, last, hash);
    HF_CHECK_SAY(is_lost_one || hash == sim_twin_hash(it->twin, last), "store-S1: other contents after commit %llu",
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
    if (!it->nested_done && last == it->world->asked && hash == sim_twin_hash(it->twin, last)) {
        /* The commit that was under way at the first outage became complete: the nested commit begins with the same
         * bytes and has written the missing ones. Neither commit was acknowledged. */
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
        if (hf_rng_below(&it->rng, NESTED_EVERY) == 0 && !it->world->options.is_normal) {
            nest(it, store);
        }
        hf_store_close(store); /* moves the log into the file: the power may go there too */
    }
    hf_vfs_on_op(it->image, NULL, NULL);
}

static uint64_t troubles_of(const sim_world *world)
{
    return world->troubles + hf_vfs_faults_hit(world->disk);
}

static void make_images(outage *it)
{
    if (it->world->failed || hf_checks_failed() > 0 || !it->has_begun) {
        return;
    }
    if (it->world->options.is_failing && troubles_of(it->world) == 0) {
        return; /* no sync has failed yet: other worlds test such disks */
    }
    for (int i = 0; i < HF_CRASH_MODE_COUNT - 1 + RANDOM_IMAGES; i++) {
        hf_crash_mode mode = i < HF_CRASH_MODE_COUNT - 1 ? (hf_crash_mode)i : HF_CRASH_RANDOM;
        hf_vfs_image(it->world->disk, mode, &it->rng, it->image);
        uint64_t hash = hf_vfs_hash(it->image) ^ hf_hash_mix(it->world->durable, it->world->asked);
        it->images++;
        if (it->known[hash % KNOWN_MAX] != hash) { /* an equal one was judged already */
            it->known[hash % KNOWN_MAX] = hash;
            judge_image(it);
        }
    }
}

static void on_op(void *state, uint64_t number, hf_vfs_op_kind kind, const char *file)
{
    (void)kind;
    (void)file;
    outage *it = state;
    make_images(it);
    (void)sim_trouble_kills(it->world, number);
}

/* ---- A world -------------------------------------------------------------------------------------------------------- */

static void on_disk(sim_world *world, bool goes)
{
    outage *it = world->options.state;
    it->world = world;
    it->troubles = troubles_of(world);
    hf_vfs_on_op(world->disk, goes ? NULL : on_op, it);
}

static void on_commit(sim_world *world, const hf_store_request *request)
{
    outage *it = world->options.state;
    sim_twin_commit(it->twin, request);
    it->has_begun = true;
}

/* store-S5: of several commits with the number of one that was under way, any may be the one that an opening finds. From then on it is the only one. */
static void on_reopen(sim_world *world, uint64_t last)
{
    outage *it = world->options.state;
    hf_op op;
    hf_op_init(&op);
    uint64_t hash = 0;
    HF_CHECK(hf_store_hash(&op, world->store, sim_heap, &hash) == HF_OK);
    if (last > world->durable && sim_twin_has_lost(it->twin, last, hash)) {
        sim_twin_find(it->twin, last, hash);
    }
}

void sim_outage_world(uint64_t seed, bool is_failing, sim_outage_counts *counts)
{
    outage *it = calloc(1, sizeof *it);
    if (it == NULL) {
        abort();
    }
    it->rng.state = seed;
    it->image = hf_vfs_new("image", seed);
    it->second = hf_vfs_new("second", seed);
    it->twin = sim_twin_new();
    char why[800];
    uint64_t hash = 0;
    sim_totals ignored = {0};
    sim_options options = {
        .sqlite = true,
        .is_failing = is_failing,
        .is_normal = is_failing && seed % 3 == 0,
        .on_commit = on_commit,
        .on_disk = on_disk,
        .on_reopen = on_reopen,
        .state = it,
    };
    HF_CHECK_SAY(sim_run(seed, options, &ignored, &hash, why, sizeof why), "%s", why);
    counts->worlds++;
    counts->troubles += it->troubles;
    counts->images += it->images + it->nested;
    counts->judged += it->judged + it->nested;
    counts->nested += it->nested;
    counts->engines += it->engines;
    sim_twin_free(it->twin);
    hf_vfs_free(it->image);
    hf_vfs_free(it->second);
    free(it);
}
