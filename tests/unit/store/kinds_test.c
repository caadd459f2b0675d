/* Two kinds of files, an engine's and a depot's, and commits that are not synced: the SQLite store as a file. */
#include "backends.h"

#include "store/sqlite/sqlite_private.h"

#include <stdio.h>

/* ---- Kinds of files -------------------------------------------------------------------------------------------------- */

static const hf_table_set *other_set(const hf_table_set *tables)
{
    return tables == &hf_engine_tables ? &hf_depot_tables : &hf_engine_tables;
}

/* Closes the store. With `left`, like a process that is killed: the log stays. */
static void put_away(place *p, bool left)
{
    ((hf_sqlite *)p->store)->is_poisoned = left;
    hf_store_close(p->store);
    p->store = NULL;
}

static void expect_refusal(hf_vfs *disk, const char *file, const hf_table_set *tables, hf_status status,
                           const char *sentence)
{
    static const hf_sqlite_options WAYS[] = {{0}, {.must_exist = true}, {.read_only = true, .at_rest = true}};
    for (size_t i = 0; i < HF_COUNT_OF(WAYS); i++) {
        hf_sqlite_options options = WAYS[i];
        options.vfs = hf_vfs_name(disk);
        options.tables = tables;
        uint64_t before = hf_vfs_hash(disk);
        hf_store *store = NULL;
        hf_op op;
        hf_op_init(&op);
        assert_int_equal(hf_sqlite_open(&op, HEAP, file, &options, &store), status);
        assert_non_null(strstr(op.message, sentence));
        assert_int_equal(hf_vfs_hash(disk), before);
    }
}

static void sqlite_file_of_the_other_kind_is_refused_and_left_alone(void **state)
{
    (void)state;
    static const char *const SENTENCES[] = {
        "test.db is an engine's file: open it with hf_open or name another file",
        "test.db is a depot's file: open it with hf_depot_open or name another file",
    };
    for (size_t i = 0; i < HF_COUNT_OF(SETS); i++) {
        for (int left = 0; left < 2; left++) {
            place p = place_new_of("sqlite", SETS[i]);
            COMMIT(&p, put(number_table(&p), key_a(1), HF_STR("x")));
            uint64_t hash = hash_of(&p);
            put_away(&p, left != 0);
            expect_refusal(p.disk, "test.db", other_set(SETS[i]), HF_ERR_INVALID, SENTENCES[i]);
            place_open(&p);
            assert_int_equal(p.commit, 1);
            assert_int_equal(hash_of(&p), hash);
            place_free(&p);
        }
    }
}

static void sqlite_default_is_a_file_of_the_engine(void **state)
{
    (void)state;
    place p = place_new("sqlite");
    assert_ptr_equal(hf_store_tables(p.store), &hf_engine_tables);
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
    unsigned char id[4];
    size_t len = 0;
    place_reopen(&p);
    assert_true(hf_vfs_read_file(p.disk, "test.db", 68, id, sizeof id, &len));
    assert_memory_equal(id, "HFST", 4);
    place_free(&p);
    p = place_new_of("sqlite", &hf_depot_tables);
    assert_ptr_equal(hf_store_tables(p.store), &hf_depot_tables);
    place_reopen(&p);
    assert_true(hf_vfs_read_file(p.disk, "test.db", 68, id, sizeof id, &len));
    assert_memory_equal(id, "HFDP", 4);
    place_free(&p);
}

/* The versions of the kinds are counted apart: version 3 is known of an engine, and not yet of a depot. */
static void sqlite_versions_belong_to_the_kind_of_file(void **state)
{
    (void)state;
    place p = place_new_of("sqlite", &hf_depot_tables);
    sqlite3 *db = ((hf_sqlite *)p.store)->db;
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=3", NULL, NULL, NULL), SQLITE_OK);
    put_away(&p, false);
    expect_refusal(p.disk, "test.db", &hf_depot_tables, HF_ERR_UNSUPPORTED,
                   "has version 3 and this program knows 2 at most: use a newer program");
    expect_refusal(p.disk, "test.db", &hf_engine_tables, HF_ERR_INVALID, "is a depot's file");
    place_free(&p);
}

static hf_status back_up(place *p, const char *path)
{
    hf_store_request backup = {.verb = HF_STORE_BACKUP, .path = path};
    do {
        hf_store_execute(p->store, &backup);
    } while (backup.status == HF_OK && backup.more);
    return backup.status;
}

static void store_S6_backup_is_a_file_of_the_same_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(SETS); i++) {
        const hf_table_set *set = SETS[i];
        place p = place_new_of("sqlite", set);
        for (int64_t n = 1; n <= 50; n++) {
            hf_write write = put(number_table(&p), key_a(n), HF_STR("value"));
            commit_writes_with(&p, &write, 1, n % 2 == 0); /* those that are not synced are in the copy too */
        }
        uint64_t hash = hash_of(&p);
        assert_int_equal(back_up(&p, "copy.db"), HF_OK);
        hf_rng rng = {3};
        hf_vfs *image = hf_vfs_new("image", 3);
        hf_vfs_image(p.disk, HF_CRASH_NONE, &rng, image); /* a copy that is done is durable */
        expect_refusal(image, "copy.db", other_set(set), HF_ERR_INVALID, set->is_called);
        hf_sqlite_options options = {.tables = set, .vfs = hf_vfs_name(image), .must_exist = true};
        place copy = {.kind = "sqlite", .tables = set, .disk = image};
        hf_op op;
        hf_op_init(&op);
        assert_int_equal(hf_sqlite_open(&op, HEAP, "copy.db", &options, &copy.store), HF_OK);
        assert_int_equal(copy.store->ops->last_commit(copy.store), 50);
        assert_int_equal(hash_of(&copy), hash);
        place_free(&copy);
        place_free(&p);
    }
}

/* The n-th call fails while a file is made, and then the power goes: the next opening makes it. */
static void sqlite_file_of_a_depot_is_made_whole_or_not_at_all(void **state)
{
    (void)state;
    bool done = false;
    uint64_t nth = 1;
    for (; !done; nth++) {
        place p = {.kind = "sqlite", .tables = &hf_depot_tables, .disk = hf_vfs_new("place", nth)};
        hf_op op;
        hf_vfs_fail(p.disk, HF_IO_WRITE | HF_IO_SYNC, nth, HF_FAULT_EIO, true);
        done = place_try_open(&p, &op) == HF_OK;
        hf_vfs_power_off(p.disk);
        hf_store_close(done ? p.store : NULL);
        hf_rng rng = {nth};
        hf_vfs_image(p.disk, HF_CRASH_RANDOM, &rng, p.disk);
        hf_vfs_fail(p.disk, 0, 0, HF_FAULT_EIO, false);
        place_open(&p);
        assert_int_equal(p.commit, 0);
        COMMIT(&p, put(HF_TABLE_ENTRY, key_text("k"), HF_STR("v")));
        place_free(&p);
    }
    print_message("interrupted at %d places\n", (int)nth - 2);
    assert_true(nth > 5);
}

/* ---- Syncs --------------------------------------------------------------------------------------------------------- */

static uint64_t flushes_of(place *p)
{
    hf_store_request stats = {.verb = HF_STORE_STATS};
    run(p, &stats);
    return stats.stats.flushes;
}

static uint64_t flushes_of_commit(place *p, bool unsynced)
{
    uint64_t before = flushes_of(p);
    hf_write write = put(text_table(p), key_text("k"), HF_STR("value"));
    commit_writes_with(p, &write, 1, unsynced);
    return flushes_of(p) - before;
}

/* Only the first commit to a log that begins again syncs anything: the header of the log. */
static void store_S2_only_commits_that_ask_for_it_are_synced(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(SETS); i++) {
        place p = place_new_of("sqlite", SETS[i]);
        (void)flushes_of_commit(&p, false);
        static const bool UNSYNCED[] = {false, true, true, false, true, false, false, true, true, true, false};
        for (size_t n = 0; n < HF_COUNT_OF(UNSYNCED); n++) {
            assert_int_equal(flushes_of_commit(&p, UNSYNCED[n]), UNSYNCED[n] ? 0 : 1);
            assert_int_equal(hf_vfs_unsynced(p.disk) == 0, !UNSYNCED[n]);
            assert_int_equal(((hf_sqlite *)p.store)->is_syncing, !UNSYNCED[n]);
        }
        hf_store_request checkpoint = {.verb = HF_STORE_CHECKPOINT, .force = true};
        assert_int_equal(flushes_of_commit(&p, true), 0);
        run(&p, &checkpoint);
        assert_int_equal(hf_vfs_unsynced(p.disk), 0); /* a checkpoint syncs the log, then the file */
        assert_int_equal(flushes_of_commit(&p, true), 1);
        assert_int_equal(flushes_of_commit(&p, true), 0);
        assert_int_equal(flushes_of_commit(&p, false), 1);
        place_free(&p);
    }
}

static void sqlite_with_durability_normal_never_syncs_a_commit(void **state)
{
    (void)state;
    place p = {.kind = "sqlite", .tables = &hf_depot_tables, .disk = hf_vfs_new("place", 1)};
    hf_sqlite_options options = {
        .tables = &hf_depot_tables, .vfs = hf_vfs_name(p.disk), .durability = HF_DURABILITY_NORMAL};
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_sqlite_open(&op, HEAP, "test.db", &options, &p.store), HF_OK);
    (void)flushes_of_commit(&p, false);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(flushes_of_commit(&p, i % 2 == 0), 0);
        assert_false(((hf_sqlite *)p.store)->is_syncing);
    }
    place_free(&p);
}

/* A synced commit that changes nothing but its number makes all before it durable. */
static void store_S2_empty_synced_commit_makes_earlier_ones_durable(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(SETS); i++) {
        place p = place_new_of("sqlite", SETS[i]);
        for (int n = 0; n < 10; n++) {
            (void)flushes_of_commit(&p, true);
        }
        assert_true(hf_vfs_unsynced(p.disk) > 0);
        commit_writes(&p, NULL, 0);
        assert_int_equal(hf_vfs_unsynced(p.disk), 0);
        uint64_t hash = hash_of(&p);
        hf_vfs *image = hf_vfs_new("image", 1);
        hf_rng rng = {1};
        hf_vfs_image(p.disk, HF_CRASH_NONE, &rng, image);
        place copy = {.kind = "sqlite", .tables = SETS[i], .disk = image};
        place_open(&copy);
        assert_int_equal(copy.commit, 11);
        assert_int_equal(hash_of(&copy), hash);
        place_free(&copy);
        place_free(&p);
    }
}

/* What an unsynced commit wrote is with the kernel when it returns: no byte of it waits in the process. */
static void store_S2_killed_process_has_every_unsynced_commit(void **state)
{
    (void)state;
    place p = place_new_of("sqlite", &hf_depot_tables);
    hf_vfs *copy = hf_vfs_new("copy", 2);
    static char bytes[20000];
    hf_rng rng = {9};
    for (uint64_t n = 1; n <= 60; n++) {
        memset(bytes, (int)n, sizeof bytes);
        hf_write write = put(HF_TABLE_ENTRY, key_text("k"), hf_str_of_len(bytes, hf_rng_below(&rng, sizeof bytes)));
        commit_writes_with(&p, &write, 1, n % 5 != 0);
        if (n % 13 == 0) { /* from here on the log is written over an old one, and writes are gathered */
            hf_store_request checkpoint = {.verb = HF_STORE_CHECKPOINT, .force = true};
            run(&p, &checkpoint);
        }
        hf_vfs_image(p.disk, HF_CRASH_ALL, &rng, copy);
        place again = {.kind = "sqlite", .tables = &hf_depot_tables, .disk = copy};
        place_open(&again);
        assert_int_equal(again.commit, n);
        assert_int_equal(hash_of(&again), hash_of(&p));
        hf_store_close(again.store);
    }
    hf_vfs_free(copy);
    place_free(&p);
}

/* A commit that finds the disk full is refused, and not there after a power cut; those before it are, and the store goes on. */
static void store_S5_unsynced_commit_on_a_full_disk_changes_nothing(void **state)
{
    (void)state;
    static char bytes[9000];
    memset(bytes, 'v', sizeof bytes);
    unsigned refused = 0;
    for (uint64_t nth = 1; nth <= 12; nth++) {
        place p = place_new_of("sqlite", &hf_depot_tables);
        for (int n = 0; n < 5; n++) {
            (void)flushes_of_commit(&p, n > 0);
        }
        uint64_t hash = hash_of(&p);
        hf_vfs_fail(p.disk, HF_IO_WRITE, nth, HF_FAULT_ENOSPC, false);
        hf_write write = put(HF_TABLE_ENTRY, key_text("big"), hf_str_of_len(bytes, sizeof bytes));
        hf_store_request commit = {
            .verb = HF_STORE_COMMIT, .commit = 6, .writes = &write, .write_count = 1, .unsynced = true};
        hf_store_execute(p.store, &commit);
        hf_vfs_fail(p.disk, 0, 0, HF_FAULT_EIO, false);
        if (commit.status == HF_OK) {
            assert_int_equal(hf_vfs_faults_hit(p.disk), 0);
            place_free(&p);
            continue;
        }
        assert_int_equal(commit.status, HF_ERR_FULL);
        refused++;
        assert_int_equal(hash_of(&p), hash);
        hf_vfs *image = hf_vfs_new("image", nth);
        hf_rng rng = {nth};
        hf_vfs_image(p.disk, (hf_crash_mode)(nth % HF_CRASH_MODE_COUNT), &rng, image);
        place copy = {.kind = "sqlite", .tables = &hf_depot_tables, .disk = image};
        place_open(&copy);
        assert_in_range(copy.commit, 1, 5);
        place_free(&copy);
        p.commit = 5;
        assert_int_equal(flushes_of_commit(&p, true), 0); /* there is room again */
        assert_int_equal(flushes_of_commit(&p, false), 1);
        place_reopen(&p);
        assert_int_equal(p.commit, 7);
        place_free(&p);
    }
    assert_true(refused > 2);
}

/* If a sync fails, earlier unsynced commits may be lost with it: the store says so and answers nothing more. */
static void store_S5_failed_sync_after_unsynced_commits_poisons_the_store(void **state)
{
    (void)state;
    place p = place_new_of("sqlite", &hf_depot_tables);
    (void)flushes_of_commit(&p, false);
    for (int n = 0; n < 5; n++) {
        (void)flushes_of_commit(&p, true);
    }
    hf_vfs_fail(p.disk, HF_IO_SYNC, 1, HF_FAULT_EIO, false);
    assert_int_equal(commit_as(&p, 7, NULL, 0), HF_ERR_STORE);
    hf_store_request stats = {.verb = HF_STORE_STATS};
    hf_store_execute(p.store, &stats);
    assert_int_equal(stats.status, HF_ERR_STORE);
    hf_vfs_fail(p.disk, 0, 0, HF_FAULT_EIO, false);
    place_reopen(&p);
    assert_in_range(p.commit, 1, 7);
    place_free(&p);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(sqlite_file_of_the_other_kind_is_refused_and_left_alone),
    cmocka_unit_test(sqlite_default_is_a_file_of_the_engine),
    cmocka_unit_test(sqlite_versions_belong_to_the_kind_of_file),
    cmocka_unit_test(store_S6_backup_is_a_file_of_the_same_kind),
    cmocka_unit_test(sqlite_file_of_a_depot_is_made_whole_or_not_at_all),
    cmocka_unit_test(store_S2_only_commits_that_ask_for_it_are_synced),
    cmocka_unit_test(sqlite_with_durability_normal_never_syncs_a_commit),
    cmocka_unit_test(store_S2_empty_synced_commit_makes_earlier_ones_durable),
    cmocka_unit_test(store_S2_killed_process_has_every_unsynced_commit),
    cmocka_unit_test(store_S5_unsynced_commit_on_a_full_disk_changes_nothing),
    cmocka_unit_test(store_S5_failed_sync_after_unsynced_commits_poisons_the_store),
};

int main(int argc, char **argv)
{
    return hf_test_main("kinds", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
