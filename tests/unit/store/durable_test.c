/* A log that an earlier process left, and the names of files: durable before they are trusted (src/store/sqlite/durable.c). What
 * chance makes of it over several lives is in lives_test.c. */
#include "script.h"

#include "folder.h"

#include <errno.h>
#include <sys/stat.h>

typedef struct disks {
    script script;
    hf_vfs *disk;
    hf_vfs *image; /* of it */
    hf_rng rng;    /* of the images */
    hf_store *store;
    hf_op op;
} disks;

static int setup(void **state)
{
    disks *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return -1;
    }
    script_init(&d->script, 11);
    d->disk = hf_vfs_new("disk", 1);
    d->image = hf_vfs_new("image", 2);
    d->rng.state = 3;
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    disks *d = *state;
    hf_store_close(d->store);
    hf_vfs_free(d->disk);
    hf_vfs_free(d->image);
    free(d);
    return 0;
}

/* ---- A process --------------------------------------------------------------------------------------------------------- */

static hf_status begin(disks *d)
{
    return open_on(d->disk, "test.db", false, HF_DURABILITY_FULL, &d->store, &d->op);
}

static hf_status commit_next(disks *d)
{
    uint64_t i = d->store->ops->last_commit(d->store);
    hf_store_request commit = {.verb = HF_STORE_COMMIT,
                               .commit = i + 1,
                               .writes = d->script.writes[i],
                               .write_count = d->script.write_count[i]};
    hf_store_execute(d->store, &commit);
    d->op = commit.op;
    return commit.status;
}

static void end(disks *d, bool is_killed)
{
    if (is_killed) {
        hf_vfs_power_off(d->disk);
    }
    hf_store_close(d->store);
    d->store = NULL;
    hf_vfs_power_on(d->disk);
    hf_vfs_fail(d->disk, 0, 0, HF_FAULT_EIO, false);
}

static void live(disks *d, int commits, bool is_killed)
{
    assert_int_equal(begin(d), HF_OK);
    for (int i = 0; i < commits; i++) {
        assert_int_equal(commit_next(d), HF_OK);
    }
    end(d, is_killed);
}

/* A power cut that takes whatever it may. */
static void assert_durable(disks *d, uint64_t commits)
{
    hf_vfs_image(d->disk, HF_CRASH_NONE, &d->rng, d->image);
    assert_true(disk_is_good(&d->script, d->image, commits, commits, "after a power cut"));
}

/* ---- The log ----------------------------------------------------------------------------------------------------------- */

typedef struct calls {
    uint64_t writes, syncs, dir_syncs;
} calls;

static calls count_calls(const hf_vfs *disk)
{
    return (calls){hf_vfs_io_ops(disk, HF_IO_WRITE), hf_vfs_io_ops(disk, HF_IO_SYNC),
                   hf_vfs_io_ops(disk, HF_IO_SYNC_DIR)};
}

static calls calls_of_opening(disks *d)
{
    calls before = count_calls(d->disk);
    assert_int_equal(begin(d), HF_OK);
    calls after = count_calls(d->disk);
    return (calls){after.writes - before.writes, after.syncs - before.syncs, after.dir_syncs - before.dir_syncs};
}

/* store-D1 */
static void only_a_log_that_was_left_is_written_again(void **state)
{
    disks *d = *state;
    live(d, 3, false);
    calls clean = calls_of_opening(d);
    assert_true(clean.writes == 0 && clean.syncs == 0 && clean.dir_syncs == 0);
    calls before = count_calls(d->disk);
    assert_int_equal(commit_next(d), HF_OK);
    assert_int_equal(count_calls(d->disk).dir_syncs, before.dir_syncs + 1); /* store-D2 */
    for (int i = 0; i < 12; i++) {
        assert_int_equal(commit_next(d), HF_OK);
    }
    end(d, true);
    uint64_t len = 0;
    assert_true(hf_vfs_file_size(d->disk, "test.db-wal", &len) && len > 100000);
    calls killed = calls_of_opening(d);
    assert_int_equal(killed.writes, (len + 65535) / 65536);
    assert_true(killed.syncs == 3 && killed.dir_syncs == 1); /* log and database before they are read, then the log */
    assert_int_equal(commit_next(d), HF_OK);
    end(d, false);
}

/* The longest log that an opening may find: a checkpoint is due beyond it, and the commit that made it due is in it, too. Its time is
 * bench/engine/reopen.c's; here the calls are counted, each of which reads or writes at most a piece of the log. */
static void an_opening_reads_a_full_log_twice_and_writes_it_once(void **state)
{
    enum { LOG_LEN_MAX = 8 << 20, FRAME_LEN = 4096 + 24, PIECE_LEN = 65536, ROWS = 4, VALUE_LEN = 30000 };
    disks *d = *state;
    char *value = calloc(1, VALUE_LEN);
    assert_non_null(value);
    uint64_t len = 0;
    uint64_t commits = 0;
    assert_int_equal(begin(d), HF_OK);
    while (len <= LOG_LEN_MAX) {
        hf_write writes[ROWS];
        for (int i = 0; i < ROWS; i++) {
            writes[i] = put(HF_TABLE_RUN, key_a((int64_t)commits * ROWS + i + 1), hf_str_of_len(value, VALUE_LEN));
        }
        hf_store_request commit = {.verb = HF_STORE_COMMIT, .commit = ++commits, .writes = writes, .write_count = ROWS};
        hf_store_execute(d->store, &commit);
        assert_int_equal(commit.status, HF_OK);
        assert_true(hf_vfs_file_size(d->disk, "test.db-wal", &len));
    }
    free(value);
    end(d, true);
    uint64_t reads = hf_vfs_io_ops(d->disk, HF_IO_READ);
    calls killed = calls_of_opening(d);
    reads = hf_vfs_io_ops(d->disk, HF_IO_READ) - reads;
    uint64_t pieces = (len + PIECE_LEN - 1) / PIECE_LEN;
    uint64_t frames = len / FRAME_LEN;
    print_message("a log of %llu bytes, %llu frames: %llu reads, %llu writes, %llu syncs\n", (unsigned long long)len,
                  (unsigned long long)frames, (unsigned long long)reads, (unsigned long long)killed.writes,
                  (unsigned long long)killed.syncs);
    assert_int_equal(d->store->ops->last_commit(d->store), commits);
    assert_int_equal(killed.writes, pieces);                 /* store-D1 */
    assert_true(killed.syncs == 3 && killed.dir_syncs == 1); /* as of a short log */
    assert_true(reads >= pieces);
    assert_true(reads <= pieces + frames + 64); /* store-D1 by the piece, SQLite by the frame, and the first pages */
    end(d, false);
}

/* store-D0, store-D1, store-S7 */
static void what_an_opening_finds_after_a_failed_sync_is_durable(void **state)
{
    disks *d = *state;
    for (uint64_t nth = 1; nth <= 3; nth++) {
        live(d, 2, true);
        assert_int_equal(begin(d), HF_OK);
        hf_vfs_fail(d->disk, HF_IO_SYNC, 1, nth < 3 ? HF_FAULT_EIO : HF_FAULT_LATE_ENOSPC, false);
        uint64_t last = d->store->ops->last_commit(d->store);
        assert_int_equal(commit_next(d), HF_ERR_STORE);
        assert_int_equal(strstr(d->op.message, "it is full: make room") != NULL, nth == 3);
        assert_int_equal(commit_next(d), HF_ERR_STORE); /* store-S5: it stays so */
        end(d, nth == 2);
        assert_int_equal(begin(d), HF_OK);
        uint64_t found = d->store->ops->last_commit(d->store);
        assert_true(found == last || found == last + 1); /* nobody was told what became of it */
        assert_durable(d, found);
        assert_int_equal(commit_next(d), HF_OK);
        assert_durable(d, found + 1);
        end(d, true);
    }
}

static void an_error_that_others_were_told_of_loses_nothing_that_was_synced(void **state)
{
    disks *d = *state;
    uint64_t lost = 0;
    for (int i = 0; i < 10; i++) {
        live(d, 1, true);
        assert_int_equal(open_on(d->disk, "test.db", false, HF_DURABILITY_NORMAL, &d->store, &d->op), HF_OK);
        uint64_t last = d->store->ops->last_commit(d->store);
        assert_int_equal(commit_next(d), HF_OK); /* which syncs nothing */
        end(d, true);
        assert_true(hf_vfs_writeback_fails(d->disk, "test.db-wal", EIO, i % 2 == 0));
        assert_int_equal(begin(d), HF_OK);
        uint64_t found = d->store->ops->last_commit(d->store);
        assert_true(found == last || found == last + 1);
        lost += last + 1 - found;
        assert_durable(d, found);
        end(d, true);
    }
    assert_true(lost > 0);
}

static void an_opening_that_cannot_make_the_log_durable_says_so_and_changes_nothing(void **state)
{
    disks *d = *state;
    static const struct {
        unsigned kind;
        uint64_t nth;
        bool forever;
        hf_io_fault fault;
        hf_status status;
        const char *says;
    } CASES[] = {
        /* Of the reads the first is that of the file's header, by probe.c, and the second SQLite's. Of the syncs the first two are
         * those of the log and of the file before anything is read. */
        {HF_IO_READ, 3, false, HF_FAULT_EIO, HF_ERR_IO, "left in test.db-wal could not be written to the disk again"},
        {HF_IO_READ, 3, false, HF_FAULT_SHORT_READ, HF_ERR_IO,
         "left in test.db-wal could not be written to the disk again"},
        {HF_IO_WRITE, 1, false, HF_FAULT_EIO, HF_ERR_IO, "Nothing was changed: check the disk, then open it again"},
        {HF_IO_WRITE, 1, false, HF_FAULT_ENOSPC, HF_ERR_FULL, "(the disk is full). Nothing was changed: make room"},
        {HF_IO_SYNC, 3, false, HF_FAULT_EIO, HF_ERR_IO, "written to the disk again (Input/output error)"},
        {HF_IO_SYNC, 3, false, HF_FAULT_LATE_ENOSPC, HF_ERR_FULL, "(the disk is full). Nothing was changed: make room"},
        {HF_IO_SYNC_DIR, 1, false, HF_FAULT_EIO, HF_ERR_IO, "its folder could not be flushed (Input/output error)"},
        {HF_IO_SYNC, 1, true, HF_FAULT_EIO, HF_ERR_IO,
         "the data it left cannot be written to the disk (cannot make test.db-wal"},
        {HF_IO_SYNC, 1, true, HF_FAULT_LATE_ENOSPC, HF_ERR_FULL, "make room, then open it again"},
    };
    live(d, 12, true);
    uint64_t hash = hf_vfs_hash(d->disk);
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_vfs_fail(d->disk, CASES[i].kind, CASES[i].nth, CASES[i].fault, CASES[i].forever);
        hf_status status = begin(d);
        if (status != CASES[i].status || strstr(d->op.message, CASES[i].says) == NULL) {
            fail_msg("case %d: %s: %s", (int)i, hf_status_name(status), d->op.message);
        }
        hf_vfs_fail(d->disk, 0, 0, HF_FAULT_EIO, false);
        assert_int_equal(hf_vfs_hash(d->disk), hash);
        for (int mode = 0; mode < HF_CRASH_MODE_COUNT; mode++) {
            hf_vfs_image(d->disk, (hf_crash_mode)mode, &d->rng, d->image);
            assert_true(disk_is_good(&d->script, d->image, 12, 12, "after a failed opening"));
        }
    }
    live(d, 1, true);
    assert_durable(d, 13);
}

/* ext4: a block whose first write failed is lost for as long as it is cached (vfs-D5 in vfs_disk.c). */
static void a_block_that_stays_lost_in_the_cache_takes_nothing_with_it(void **state)
{
    disks *d = *state;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(begin(d), HF_OK);
        hf_vfs_fail(d->disk, HF_IO_SYNC, 1, HF_FAULT_EIO, false);
        assert_int_equal(commit_next(d), HF_ERR_STORE);
        end(d, true);
        live(d, 1, true);
        assert_int_equal(begin(d), HF_OK);
        uint64_t found = d->store->ops->last_commit(d->store);
        end(d, true);
        assert_durable(d, found);
    }
}

static void nothing_is_written_by_an_opening_that_only_reads(void **state)
{
    (void)state;
    folder f = folder_new();
    hf_store *store = NULL;
    hf_op op;
    hf_op_init(&op);
    char log[200];
    (void)snprintf(log, sizeof log, "%s-wal", f.copy);
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &store), HF_OK);
    hf_write write = put(HF_TABLE_JOURNAL, key_a(1), HF_STR("one"));
    hf_store_request commit = {.verb = HF_STORE_COMMIT, .commit = 1, .writes = &write, .write_count = 1};
    hf_store_execute(store, &commit);
    assert_int_equal(commit.status, HF_OK);
    assert_int_equal(link(f.file, f.copy),
                     0); /* as a process leaves them that is killed: two names, so that it need not be */
    assert_int_equal(link(f.log, log), 0);
    hf_store_close(store);
    struct stat before;
    struct stat after;
    assert_int_equal(stat(log, &before), 0);
    assert_true(before.st_size > 0);
    hf_sqlite_options only_read = {.read_only = true};
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.copy, &only_read, &store), HF_OK);
    assert_int_equal(store->ops->last_commit(store), 1);
    hf_store_close(store);
    assert_int_equal(stat(log, &after), 0);
    assert_true(before.st_mtim.tv_sec == after.st_mtim.tv_sec && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.copy, NULL, &store), HF_OK); /* and one that writes does */
    assert_int_equal(stat(log, &after), 0);
    assert_true(before.st_mtim.tv_sec != after.st_mtim.tv_sec || before.st_mtim.tv_nsec != after.st_mtim.tv_nsec);
    hf_store_close(store);
    (void)unlink(log);
    (void)snprintf(log, sizeof log, "%s-shm", f.copy);
    (void)unlink(log);
    folder_free(&f);
}

/* ---- Names ------------------------------------------------------------------------------------------------------------- */

/* store-D2 */
static void no_log_is_used_whose_name_is_not_durable(void **state)
{
    disks *d = *state;
    live(d, 2, false);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(begin(d), HF_OK);
        hf_vfs_fail(d->disk, HF_IO_SYNC_DIR, 1, HF_FAULT_EIO, false);
        calls before = count_calls(d->disk);
        assert_int_equal(commit_next(d), HF_ERR_STORE);
        assert_non_null(strstr(d->op.message, "could not be flushed"));
        assert_int_equal(count_calls(d->disk).writes, before.writes); /* nothing went into the log */
        assert_int_equal(commit_next(d), HF_ERR_STORE);               /* though the kernel tells an error only once */
        end(d, i == 1);
    }
    live(d, 2, true);
    assert_durable(d, 4);
}

/* Killed after the sync of the log's name has failed. */
static void an_empty_log_is_made_anew(void **state)
{
    disks *d = *state;
    live(d, 2, false);
    assert_int_equal(begin(d), HF_OK);
    hf_vfs_fail(d->disk, HF_IO_SYNC_DIR, 1, HF_FAULT_EIO, false);
    assert_int_equal(commit_next(d), HF_ERR_STORE);
    end(d, true);
    uint64_t len = 1;
    assert_true(hf_vfs_file_size(d->disk, "test.db-wal", &len) && len == 0);
    live(d, 1, true);
    assert_durable(d, 3);
}

static void an_old_log_does_not_come_back_over_a_newer_file(void **state)
{
    disks *d = *state;
    live(d, 4, true);
    assert_int_equal(begin(d), HF_OK);
    hf_vfs_fail(d->disk, HF_IO_SYNC_DIR, 1, HF_FAULT_EIO, false);
    end(d, false); /* the log is deleted, but a power cut would bring it back */
    assert_false(hf_vfs_file_size(d->disk, "test.db-wal", &(uint64_t){0}));
    hf_vfs_image(d->disk, HF_CRASH_NONE, &d->rng, d->image);
    assert_true(hf_vfs_file_size(d->image, "test.db-wal", &(uint64_t){0}));
    assert_int_equal(begin(d), HF_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(commit_next(d), HF_OK);
    }
    hf_store_request checkpoint = {.verb = HF_STORE_CHECKPOINT, .force = true};
    hf_store_execute(d->store, &checkpoint);
    assert_int_equal(checkpoint.status, HF_OK);
    assert_durable(d, 8);
    assert_int_equal(commit_next(d), HF_OK);
    assert_durable(d, 9);
    end(d, true);
}

static void a_file_is_made_with_all_its_names_or_not_at_all(void **state)
{
    disks *d = *state;
    uint64_t nth = 1;
    for (;; nth++) {
        hf_vfs_image(d->image, HF_CRASH_NONE, &d->rng, d->disk); /* which is empty */
        uint64_t hits = hf_vfs_faults_hit(d->disk);
        hf_vfs_fail(d->disk, HF_IO_SYNC_DIR, nth, HF_FAULT_EIO, false);
        hf_status status = begin(d);
        status = status == HF_OK ? commit_next(d) : status;
        if (status == HF_OK) {
            hf_vfs_image(d->disk, HF_CRASH_NONE, &d->rng, d->disk);
        }
        end(d, true);
        assert_int_equal(status == HF_OK, hf_vfs_faults_hit(d->disk) == hits);
        if (hf_vfs_faults_hit(d->disk) == hits) {
            break;
        }
        live(d, 1, true);
        hf_vfs *image = hf_vfs_new("look", 1);
        hf_vfs_image(d->disk, HF_CRASH_NONE, &d->rng, image);
        assert_true(disk_is_good(&d->script, image, 1, 1, "made at the second try"));
        hf_vfs_free(image);
    }
    print_message("%d syncs of the directory\n", (int)nth - 1);
    assert_true(nth > 3);
}

/* A power cut leaves the copy whole. It is gone afterwards. */
static void assert_copy_durable(disks *d)
{
    hf_store *copy = NULL;
    uint64_t hash = 0;
    hf_vfs_image(d->disk, HF_CRASH_NONE, &d->rng, d->image);
    assert_int_equal(open_on(d->image, "copy.db", true, HF_DURABILITY_FULL, &copy, &d->op), HF_OK);
    assert_int_equal(hf_store_hash(&d->op, copy, HEAP, &hash), HF_OK);
    assert_int_equal(hash, d->script.hashes[COMMITS]);
    hf_store_close(copy);
    assert_true(hf_vfs_delete_file(d->disk, "copy.db"));
}

/* Makes backups with the first, the second, ... of such calls failing, until there are no more of them. Returns how many failed. */
static int back_up_under_faults(disks *d, unsigned kind, hf_io_fault fault)
{
    int failed = 0;
    uint64_t hits = 0;
    uint64_t nth = 0;
    do {
        hits = hf_vfs_faults_hit(d->disk);
        hf_vfs_fail(d->disk, kind, ++nth, fault, false);
        hf_store_request backup = {.verb = HF_STORE_BACKUP, .path = "copy.db"};
        do {
            hf_store_execute(d->store, &backup);
        } while (backup.status == HF_OK && backup.more);
        assert_int_equal(hf_vfs_file_size(d->disk, "copy.db", &(uint64_t){0}), backup.status == HF_OK);
        failed += backup.status != HF_OK;
        if (backup.status == HF_OK) { /* whatever failed did not matter: an empty log was not removed durably */
            assert_copy_durable(d);
        }
    } while (hf_vfs_faults_hit(d->disk) != hits);
    return failed;
}

static void a_backup_that_is_not_durable_has_failed(void **state)
{
    disks *d = *state;
    static const struct {
        unsigned kind;
        hf_io_fault fault;
    } CASES[] = {{HF_IO_SYNC_DIR, HF_FAULT_EIO}, {HF_IO_SYNC, HF_FAULT_EIO}, {HF_IO_SYNC, HF_FAULT_LATE_ENOSPC}};
    assert_int_equal(begin(d), HF_OK);
    for (int i = 0; i < COMMITS; i++) {
        assert_int_equal(commit_next(d), HF_OK);
    }
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        int failed = back_up_under_faults(d, CASES[i].kind, CASES[i].fault);
        assert_true(failed > 0);
        print_message("%d failed\n", failed);
    }
    hf_store_request stats = {.verb = HF_STORE_STATS};
    hf_store_execute(d->store, &stats);
    assert_int_equal(stats.status, HF_OK); /* the store itself is none the worse */
    end(d, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest TESTS[] = {
    TEST(only_a_log_that_was_left_is_written_again),
    TEST(an_opening_reads_a_full_log_twice_and_writes_it_once),
    TEST(what_an_opening_finds_after_a_failed_sync_is_durable),
    TEST(an_error_that_others_were_told_of_loses_nothing_that_was_synced),
    TEST(a_block_that_stays_lost_in_the_cache_takes_nothing_with_it),
    TEST(an_opening_that_cannot_make_the_log_durable_says_so_and_changes_nothing),
    cmocka_unit_test(nothing_is_written_by_an_opening_that_only_reads),
    TEST(no_log_is_used_whose_name_is_not_durable),
    TEST(an_empty_log_is_made_anew),
    TEST(an_old_log_does_not_come_back_over_a_newer_file),
    TEST(a_file_is_made_with_all_its_names_or_not_at_all),
    TEST(a_backup_that_is_not_durable_has_failed),
};

int main(int argc, char **argv)
{
    return hf_test_main("store durable", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
