/* The SQLite store over several lives of its process, on a disk whose syncs fail as they do on Linux: the cache stays right, the
 * disk lacks what was to be written, and nobody is told twice. Nothing that was acknowledged in any life may be missing after a
 * power cut in a later one.
 *
 * A story runs the script of commits (script.h). Each life ends with a trouble: it is planned when the life begins, and the
 * life ends when it is met, or after some commits. Before each change of the disk, from the second life on, images of what
 * the power could leave are opened and compared with the script. */
#include "script.h"

#include <errno.h>

typedef enum trouble {
    KILLED,         /* nothing but a process that dies, before some change of the disk */
    SYNC_FAILS,     /* a sync, once: of the log, the file or a journal, in a commit, a checkpoint or while opening */
    SYNCS_FAIL,     /* from one on, until the process is gone */
    FULL_AT_SYNC,   /* the disk took the writes and finds at a sync that it has no room */
    DIR_SYNC_FAILS, /* a sync of the directory */
    TOLD_TO_OTHERS, /* killed; then the kernel fails to write its writes, and tells somebody else */
    TOLD_TO_NOBODY, /* the same, and whoever opens the file next is told */
    CALL_FAILS,     /* any call of the disk */
    KILLED_OPENING, /* while it opens, by a change of the disk: above all while the log is made durable */
    TROUBLE_COUNT
} trouble;

typedef struct story {
    const script *script;
    hf_vfs *disk;
    hf_vfs *image;
    hf_durability durability;
    hf_rng rng;
    uint64_t acked;   /* commits acknowledged, in any life */
    uint64_t asked;   /* commits begun */
    uint64_t least;   /* commits that no power cut may take */
    int life;         /* this one, from 0 */
    uint64_t kill_at; /* the change at which the process dies; 0 = none */
    uint64_t faults;  /* of the disk, when it was last opened */
    uint64_t images;
    bool is_bad; /* something was found */
} story;

static uint64_t images_in_all;
static uint64_t met[TROUBLE_COUNT + 1];

/* ---- Power --------------------------------------------------------------------------------------------------------- */

static void look_at_images(story *t, const char *when)
{
    for (int mode = 0; mode < HF_CRASH_MODE_COUNT && !t->is_bad; mode++) {
        hf_vfs_image(t->disk, (hf_crash_mode)mode, &t->rng, t->image);
        t->is_bad = !disk_is_good(t->script, t->image, t->least, t->asked, when);
        t->images++;
    }
}

static void on_change(void *state, uint64_t op, hf_vfs_op_kind kind, const char *file)
{
    story *t = state;
    (void)kind;
    (void)file;
    if (t->life > 0) {
        look_at_images(t, "after a power cut in a later life");
    }
    if (op == t->kill_at) {
        hf_vfs_power_off(t->disk);
    }
}

/* ---- Lives --------------------------------------------------------------------------------------------------------- */

static void plan(story *t, trouble what)
{
    uint64_t nth = 1 + hf_rng_below(&t->rng, 30);
    t->kill_at = 0;
    hf_vfs_fail(t->disk, 0, 0, HF_FAULT_EIO, false);
    switch (what) {
    case SYNC_FAILS:
    case SYNCS_FAIL:
        hf_vfs_fail(t->disk, HF_IO_SYNC, nth, HF_FAULT_EIO, what == SYNCS_FAIL);
        return;
    case FULL_AT_SYNC:
        hf_vfs_fail(t->disk, HF_IO_SYNC, nth, HF_FAULT_LATE_ENOSPC, hf_rng_below(&t->rng, 2) == 0);
        return;
    case DIR_SYNC_FAILS:
        hf_vfs_fail(t->disk, HF_IO_SYNC_DIR, 1 + nth % 4, HF_FAULT_EIO, hf_rng_below(&t->rng, 2) == 0);
        return;
    case CALL_FAILS:
        hf_vfs_fail(t->disk, HF_IO_ANY, nth * 3, HF_FAULT_EIO, false);
        return;
    case KILLED_OPENING:
        t->kill_at = hf_vfs_ops(t->disk) + 1 + hf_rng_below(&t->rng, 8);
        return;
    case KILLED:
    case TOLD_TO_OTHERS:
    case TOLD_TO_NOBODY:
        t->kill_at = hf_vfs_ops(t->disk) + 8 + hf_rng_below(&t->rng, 60);
        return;
    case TROUBLE_COUNT:
        return;
    }
}

static void plan_nothing(story *t)
{
    plan(t, TROUBLE_COUNT);
}

static void checkpoint(story *t, hf_store *store)
{
    hf_store_request request = {.verb = HF_STORE_CHECKPOINT, .force = true};
    hf_store_execute(store, &request);
    if (request.status == HF_OK) {
        t->least = t->acked;
    }
}

/* Some commits; false: the store does not want to go on. */
static bool commit_some(story *t, hf_store *store)
{
    uint64_t count = hf_rng_below(&t->rng, 7);
    for (uint64_t i = store->ops->last_commit(store); count > 0 && i < COMMITS && !t->is_bad; i++, count--) {
        hf_store_request commit = script_commit(t->script, i + 1);
        t->asked = commit.commit;
        hf_store_execute(store, &commit);
        if (commit.status != HF_OK) {
            return false;
        }
        t->acked = commit.commit;
        if (t->durability == HF_DURABILITY_FULL && !commit.unsynced) {
            t->least = t->acked;
        }
        if (t->script->checkpoint_after[i]) {
            checkpoint(t, store);
        }
    }
    return true;
}

/* The kernel writes what a dead process left, and fails. */
static void write_back_badly(story *t, bool is_told)
{
    static const char *const FILES[] = {"test.db", "test.db-wal", "test.db-journal"};
    for (size_t i = 0; i < HF_COUNT_OF(FILES); i++) {
        met[is_told ? TOLD_TO_OTHERS : TOLD_TO_NOBODY] += hf_vfs_writeback_fails(t->disk, FILES[i], EIO, is_told);
    }
}

/* A commit of which nobody knows shows by itself whether it is there. */
static void settle_commit(story *t, hf_store *store)
{
    uint64_t last = store->ops->last_commit(store);
    uint64_t faults = hf_vfs_faults_hit(t->disk) + met[TOLD_TO_OTHERS] + met[TOLD_TO_NOBODY];
    uint64_t least =
        faults == t->faults ? t->acked : t->least; /* no power cut was between: only what failed can be lost */
    t->is_bad = t->is_bad || !HF_CHECK_SAY(last >= least && last <= t->asked, "life %d: commit %d instead of %d to %d",
                                           t->life, (int)last, (int)least, (int)t->asked);
    t->faults = faults;
    t->acked = t->asked = t->least = last; /* store-S7: what an opening shows is durable */
}

static void live(story *t, trouble what)
{
    hf_store *store = NULL;
    hf_op op;
    uint64_t hits = hf_vfs_faults_hit(t->disk);
    plan(t, what);
    bool is_polite = hf_rng_below(&t->rng, 2) == 0;
    hf_status status = open_of(t->script->tables, t->disk, "test.db", false, t->durability, &store, &op);
    if (status == HF_OK) {
        settle_commit(t, store);
        if (commit_some(t, store) && is_polite) {
            checkpoint(t, store);
        }
        if (!is_polite) {
            hf_vfs_power_off(t->disk);
        }
        hf_store_close(store);
    }
    met[what] += hf_vfs_faults_hit(t->disk) - hits + (what == KILLED || (what == KILLED_OPENING && status != HF_OK));
    hf_vfs_power_on(t->disk);
    plan_nothing(t);
    if (what == TOLD_TO_OTHERS || what == TOLD_TO_NOBODY) {
        write_back_badly(t, what == TOLD_TO_OTHERS);
    }
    t->life++;
}

static script the_script;

static void tell(const script *s, hf_durability durability)
{
    enum { LIVES = 8 };
    uint64_t seed = s->seed;
    story t = {
        .script = s,
        .disk = hf_vfs_new("disk", seed),
        .image = hf_vfs_new("image", seed),
        .durability = durability,
        .rng = {seed},
    };
    hf_vfs_on_op(t.disk, on_change, &t);
    for (int i = 0; i < LIVES && !t.is_bad; i++) {
        live(&t, (trouble)hf_rng_below(&t.rng, TROUBLE_COUNT));
    }
    hf_vfs_on_op(t.disk, NULL, NULL);
    look_at_images(&t, "after a power cut at the end");
    live(&t, TROUBLE_COUNT); /* it may be told of an earlier failure */
    t.is_bad = t.is_bad || !disk_is_good(s, t.disk, t.acked, t.asked, "at the end");
    images_in_all += t.images;
    hf_vfs_free(t.disk);
    hf_vfs_free(t.image);
}

static void tell_full(uint64_t seed)
{
    script_init(&the_script, seed);
    tell(&the_script, HF_DURABILITY_FULL);
}

static void tell_normal(uint64_t seed)
{
    script_init(&the_script, seed);
    tell(&the_script, HF_DURABILITY_NORMAL);
}

static void tell_mixed(uint64_t seed)
{
    script_init_of(&the_script, seed, seed % 3 == 0 ? &hf_engine_tables : &hf_depot_tables);
    script_mix(&the_script);
    tell(&the_script, HF_DURABILITY_FULL);
}

static void tell_all(const char *what, uint64_t count, void (*one)(uint64_t seed))
{
    images_in_all = 0;
    memset(met, 0, sizeof met);
    hf_each_seed(what, count, one);
    print_message("%d images; met: ", (int)images_in_all);
    for (size_t i = 0; i < TROUBLE_COUNT; i++) {
        print_message("%d%s", (int)met[i], i + 1 < TROUBLE_COUNT ? ", " : "\n");
        HF_CHECK_SAY(met[i] > 0 || hf_test_scale() > 1, "trouble %d was never met", (int)i);
    }
}

static void store_S2_S7_hold_over_lives_that_end_with_failed_syncs(void **state)
{
    (void)state;
    tell_all("stories", 60, tell_full);
}

static void store_S1_S7_hold_over_such_lives_with_durability_normal(void **state)
{
    (void)state;
    tell_all("stories", 30, tell_normal);
}

static void store_S2_S7_hold_over_such_lives_with_unsynced_commits(void **state)
{
    (void)state;
    tell_all("stories", 30, tell_mixed);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(store_S2_S7_hold_over_lives_that_end_with_failed_syncs),
    cmocka_unit_test(store_S2_S7_hold_over_such_lives_with_unsynced_commits),
    cmocka_unit_test(store_S1_S7_hold_over_such_lives_with_durability_normal),
};

int main(int argc, char **argv)
{
    return hf_test_main("store lives", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
