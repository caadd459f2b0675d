/* The SQLite store on a disk that loses its power or fails its calls, at every operation of a script of commits (script.h).
 *
 * Whatever happened to the disk: what is found there is the contents after commit n, for an n that was acknowledged last or was
 * under way. Where commits ask not to be synced, n is at least the last one that was synced, or was in a checkpoint. */
#include "script.h"

/* ---- Power --------------------------------------------------------------------------------------------------------- */

typedef struct outage {
    const script *script;
    hf_vfs *disk;             /* where the script runs */
    hf_vfs *image;            /* what is left of it */
    hf_vfs *second;           /* what is left of that, when the power goes again while it is opened */
    hf_durability durability; /* of the script's store */
    hf_rng rng;
    uint64_t least;  /* commits that must be there: acknowledged, and synced */
    uint64_t acked;  /* commits acknowledged */
    uint64_t asked;  /* commits begun */
    uint64_t images; /* looked at */
    uint64_t fewer;  /* of them, with acknowledged commits missing */
    bool nested;     /* an image is being opened under the hook */
    bool bad;        /* something was found */
} outage;

static void power_goes_again(void *state, uint64_t op, hf_vfs_op_kind kind, const char *file)
{
    outage *o = state;
    (void)op;
    (void)kind;
    (void)file;
    if (!o->bad) {
        hf_vfs_image(o->image, (hf_crash_mode)hf_rng_below(&o->rng, HF_CRASH_MODE_COUNT), &o->rng, o->second);
        o->bad = !disk_is_good(o->script, o->second, o->least, o->asked, "after a second power cut");
        o->images++;
    }
}

static void power_goes(void *state, uint64_t op, hf_vfs_op_kind kind, const char *file)
{
    outage *o = state;
    (void)kind;
    (void)file;
    for (int mode = 0; mode < HF_CRASH_MODE_COUNT && !o->bad; mode++) {
        hf_vfs_image(o->disk, (hf_crash_mode)mode, &o->rng, o->image);
        bool twice = (op + (uint64_t)mode) % 23 == 0;
        hf_vfs_on_op(o->image, twice ? power_goes_again : NULL, o);
        bool good = disk_is_good(o->script, o->image, o->least, o->asked, "after a power cut");
        hf_vfs_on_op(o->image, NULL, NULL);
        o->fewer += good && last_seen < o->acked;
        o->bad = o->bad || !good;
        o->images++;
    }
}

static uint64_t images_in_all;
static uint64_t fewer_in_all;

static void cut_power_at_every_change(const script *s, hf_durability durability)
{
    uint64_t seed = s->seed;
    outage o = {
        .script = s,
        .disk = hf_vfs_new("disk", seed),
        .image = hf_vfs_new("image", seed),
        .second = hf_vfs_new("second", seed),
        .durability = durability,
        .rng = {seed},
    };
    hf_vfs_set_powersafe(o.disk, seed % 3 != 0);
    hf_vfs_on_op(o.disk, power_goes, &o);
    hf_store *store = NULL;
    hf_op op;
    if (HF_CHECK(open_of(s->tables, o.disk, "test.db", false, durability, &store, &op) == HF_OK)) {
        for (int i = 0; i < COMMITS && !o.bad; i++) {
            hf_store_request commit = script_commit(s, (uint64_t)i + 1);
            o.asked = commit.commit;
            hf_store_execute(store, &commit);
            HF_CHECK_SAY(commit.status == HF_OK, "%s", commit.op.message);
            o.acked = commit.commit;
            o.least = durability == HF_DURABILITY_FULL && !commit.unsynced ? o.acked : o.least;
            if (s->checkpoint_after[i]) {
                hf_store_request checkpoint = {.verb = HF_STORE_CHECKPOINT, .force = true};
                hf_store_execute(store, &checkpoint);
                HF_CHECK(checkpoint.status == HF_OK);
                o.least = o.acked;
            }
        }
        hf_store_close(store);
        o.least = o.acked; /* closing moves the log into the file */
        power_goes(&o, 0, HF_VFS_SYNC, "");
    }
    images_in_all += o.images;
    fewer_in_all += o.fewer;
    hf_vfs_free(o.disk);
    hf_vfs_free(o.image);
    hf_vfs_free(o.second);
}

static script the_script;

static void cut_full(uint64_t seed)
{
    script_init(&the_script, seed);
    cut_power_at_every_change(&the_script, HF_DURABILITY_FULL);
}

static void cut_full_depot(uint64_t seed)
{
    script_init_of(&the_script, seed, &hf_depot_tables);
    cut_power_at_every_change(&the_script, HF_DURABILITY_FULL);
}

static void cut_normal(uint64_t seed)
{
    script_init(&the_script, seed);
    cut_power_at_every_change(&the_script, HF_DURABILITY_NORMAL);
}

static void cut_mixed(uint64_t seed)
{
    script_init_of(&the_script, seed, seed % 4 == 0 ? &hf_engine_tables : &hf_depot_tables);
    script_mix(&the_script);
    cut_power_at_every_change(&the_script, HF_DURABILITY_FULL);
}

static void store_S1_S2_hold_when_the_power_goes_at_any_change(void **state)
{
    (void)state;
    images_in_all = 0;
    hf_each_seed("power cuts", 12, cut_full);
    hf_each_seed("power cuts, tables of a depot", 4, cut_full_depot);
    print_message("%d images\n", (int)images_in_all);
}

static void store_S1_S2_hold_when_the_power_goes_between_unsynced_commits(void **state)
{
    (void)state;
    images_in_all = 0;
    fewer_in_all = 0;
    hf_each_seed("power cuts", 12, cut_mixed);
    print_message("%d images, %d without the last unsynced commits\n", (int)images_in_all, (int)fewer_in_all);
    assert_true(fewer_in_all > 100); /* or the images would prove nothing */
}

static void store_S1_holds_when_the_power_goes_with_durability_normal(void **state)
{
    (void)state;
    images_in_all = 0;
    hf_each_seed("power cuts", 4, cut_normal);
    print_message("%d images\n", (int)images_in_all);
}

/* ---- Errors -------------------------------------------------------------------------------------------------------- */

typedef struct fault_case {
    hf_io_fault fault;
    unsigned kinds;
    bool forever;
    bool powersafe;
} fault_case;

/* What the program that met the error has to say for itself. */
typedef struct witness {
    uint64_t least; /* commits that no power cut may take: acknowledged, and synced */
    uint64_t acked; /* commits acknowledged */
    uint64_t most;  /* commits that may be there */
    bool opened;    /* it came that far */
} witness;

/* One commit, tried again when it failed cleanly. False: the program stops here. */
static bool commit_under_errors(const script *s, hf_store *store, hf_vfs *disk, hf_vfs *image, hf_rng *rng, int i,
                                witness *w)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        hf_store_request commit = script_commit(s, (uint64_t)i + 1);
        hf_store_execute(store, &commit);
        if (commit.status == HF_OK) {
            w->acked = w->most = commit.commit;
            w->least = commit.unsynced ? w->least : commit.commit;
            return true;
        }
        if (commit.status == HF_ERR_STORE) {
            w->most = commit.commit;
            return false;
        }
        if (!HF_CHECK_SAY(commit.status == HF_ERR_IO || commit.status == HF_ERR_FULL, "%s", commit.op.message)) {
            return false;
        }
        /* store-S5: it changed nothing, and no power cut brings it back. */
        hf_vfs_image(disk, (hf_crash_mode)hf_rng_below(rng, HF_CRASH_MODE_COUNT), rng, image);
        if (!disk_is_good(s, image, w->least, w->acked, "after a refused commit")) {
            return false;
        }
    }
    return false;
}

/* Runs the script with the n-th call failing. Returns whether the failure was met. */
static bool fail_once(const script *s, const fault_case *c, uint64_t nth)
{
    hf_vfs *disk = hf_vfs_new("disk", s->seed);
    hf_vfs *image = hf_vfs_new("image", s->seed);
    hf_rng rng = {s->seed + nth};
    witness w = {0};
    hf_vfs_set_powersafe(disk, c->powersafe);
    hf_vfs_fail(disk, c->kinds, nth, c->fault, c->forever);
    hf_store *store = NULL;
    hf_op op;
    hf_status status = open_of(s->tables, disk, "test.db", false, HF_DURABILITY_FULL, &store, &op);
    if (status == HF_OK) {
        w.opened = true;
        for (int i = 0; i < COMMITS; i++) {
            if (!commit_under_errors(s, store, disk, image, &rng, i, &w)) {
                break;
            }
            if (s->checkpoint_after[i]) {
                hf_store_request checkpoint = {.verb = HF_STORE_CHECKPOINT, .force = true};
                hf_store_execute(store, &checkpoint);
                w.least = checkpoint.status == HF_OK ? w.acked : w.least;
            }
        }
        if (nth % 2 == 0) {
            hf_vfs_image(disk, (hf_crash_mode)hf_rng_below(&rng, HF_CRASH_MODE_COUNT), &rng, image);
            (void)disk_is_good(s, image, w.least, w.most, "after an error and a power cut");
        }
        hf_store_close(store);
    }
    bool met = hf_vfs_faults_hit(disk) > 0;
    hf_vfs_fail(disk, 0, 0, HF_FAULT_EIO, false);
    /* Without a power cut only a failed sync loses something: it drops what it should have written. */
    bool may_drop = met && c->fault == HF_FAULT_EIO && (c->kinds & HF_IO_SYNC) != 0;
    (void)disk_is_good(s, disk, may_drop ? w.least : w.acked, w.most, "after an error");
    hf_vfs_free(disk);
    hf_vfs_free(image);
    return met;
}

static const fault_case FAULTS[] = {
    {HF_FAULT_EIO, HF_IO_READ | HF_IO_WRITE | HF_IO_SYNC | HF_IO_TRUNCATE | HF_IO_DELETE | HF_IO_OPEN, false, true},
    {HF_FAULT_EIO, HF_IO_READ | HF_IO_WRITE | HF_IO_SYNC | HF_IO_TRUNCATE | HF_IO_DELETE | HF_IO_OPEN, true, true},
    {HF_FAULT_EIO, HF_IO_ANY, false, false},
    {HF_FAULT_ENOSPC, HF_IO_ANY, false, true},
    {HF_FAULT_ENOSPC, HF_IO_ANY, true, true},
    {HF_FAULT_ENOSPC, HF_IO_ANY, false, false},
    {HF_FAULT_ENOSPC, HF_IO_ANY, true, false},
    {HF_FAULT_EIO, HF_IO_ANY & ~(unsigned)HF_IO_SYNC, false, true},
};

static uint64_t errors_in_all;

static void fail_every_call_of(const script *s)
{
    uint64_t step = hf_test_scale() > 1 ? 5 : 1;
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++) {
        uint64_t nth = 1;
        while (fail_once(s, &FAULTS[i], nth) && hf_checks_failed() == 0) {
            errors_in_all++;
            nth += step;
        }
        if (!HF_CHECK_SAY(hf_checks_failed() == 0, "case %d, call %d", (int)i, (int)nth)) {
            return;
        }
    }
}

static void fail_every_call(uint64_t seed)
{
    script_init(&the_script, seed);
    fail_every_call_of(&the_script);
}

static void fail_every_call_mixed(uint64_t seed)
{
    script_init_of(&the_script, seed, &hf_depot_tables);
    script_mix(&the_script);
    fail_every_call_of(&the_script);
}

static void store_S1_S2_S5_hold_when_any_call_fails_between_unsynced_commits(void **state)
{
    (void)state;
    errors_in_all = 0;
    hf_each_seed("errors", 3, fail_every_call_mixed);
    print_message("%d errors\n", (int)errors_in_all);
}

static void store_S1_S2_S5_hold_when_any_call_of_the_disk_fails(void **state)
{
    (void)state;
    errors_in_all = 0;
    hf_each_seed("errors", 4, fail_every_call);
    print_message("%d errors\n", (int)errors_in_all);
}

/* ---- Backups ------------------------------------------------------------------------------------------------------- */

typedef struct copying {
    hf_vfs *disk;
    hf_vfs *image;
    hf_rng rng;
    uint64_t hash;    /* of the store that is copied */
    uint64_t refused; /* images */
    uint64_t whole;   /* the same */
} copying;

static void power_goes_while_copying(void *state, uint64_t op, hf_vfs_op_kind kind, const char *file)
{
    copying *c = state;
    (void)op;
    (void)kind;
    (void)file;
    for (int mode = 0; mode < HF_CRASH_MODE_COUNT; mode++) {
        hf_vfs_image(c->disk, (hf_crash_mode)mode, &c->rng, c->image);
        hf_store *store = NULL;
        hf_op error;
        if (open_on(c->image, "copy.db", true, HF_DURABILITY_FULL, &store, &error) != HF_OK) {
            c->refused++;
            continue;
        }
        uint64_t hash = 0;
        HF_CHECK(hf_store_hash(&error, store, HEAP, &hash) == HF_OK && hash == c->hash);
        c->whole++;
        hf_store_close(store);
    }
}

static void store_S6_backup_that_a_power_cut_ends_is_refused_or_whole(void **state)
{
    (void)state;
    static script s;
    script_init(&s, 5);
    copying c = {.disk = hf_vfs_new("disk", 5), .image = hf_vfs_new("image", 5), .rng = {5}};
    hf_store *store = NULL;
    hf_op op;
    assert_int_equal(open_on(c.disk, "test.db", false, HF_DURABILITY_FULL, &store, &op), HF_OK);
    for (int i = 0; i < COMMITS; i++) {
        hf_store_request commit = {
            .verb = HF_STORE_COMMIT, .commit = (uint64_t)i + 1, .writes = s.writes[i], .write_count = s.write_count[i]};
        hf_store_execute(store, &commit);
        assert_int_equal(commit.status, HF_OK);
    }
    c.hash = s.hashes[COMMITS];
    hf_vfs_on_op(c.disk, power_goes_while_copying, &c);
    hf_store_request backup = {.verb = HF_STORE_BACKUP, .path = "copy.db"};
    do {
        hf_store_execute(store, &backup);
        assert_int_equal(backup.status, HF_OK);
    } while (backup.more);
    power_goes_while_copying(&c, 0, HF_VFS_SYNC, "");
    hf_vfs_on_op(c.disk, NULL, NULL);
    hf_store_close(store);
    print_message("%d images refused, %d whole\n", (int)c.refused, (int)c.whole);
    assert_true(c.refused > 50);
    assert_true(c.whole >= HF_CRASH_MODE_COUNT); /* at the end all are */
    hf_vfs_free(c.disk);
    hf_vfs_free(c.image);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(store_S1_S2_hold_when_the_power_goes_at_any_change),
    cmocka_unit_test(store_S1_S2_hold_when_the_power_goes_between_unsynced_commits),
    cmocka_unit_test(store_S1_holds_when_the_power_goes_with_durability_normal),
    cmocka_unit_test(store_S1_S2_S5_hold_when_any_call_of_the_disk_fails),
    cmocka_unit_test(store_S1_S2_S5_hold_when_any_call_fails_between_unsynced_commits),
    cmocka_unit_test(store_S6_backup_that_a_power_cut_ends_is_refused_or_whole),
};

int main(int argc, char **argv)
{
    return hf_test_main("store crash", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
