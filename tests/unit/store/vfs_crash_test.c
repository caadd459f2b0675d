/* SQLite on the simulated disk. A workload of numbered transactions runs on one disk; before each change images of it are made, opened and questioned. The oracle: the database is whole, every
 * acknowledged transaction is there, and at most the one under way besides. Settings that are known to lose
 * transactions must be caught losing them, else the images would prove nothing. */
#include "support/support.h"
#include "support/vfs.h"

#include <sqlite3.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- A database of numbered transactions ------------------------------------------------------------------------- */

typedef struct setting {
    const char *journal; /* PRAGMA journal_mode */
    const char *sync;    /* PRAGMA synchronous */
    const char *locking; /* PRAGMA locking_mode */
    bool is_powersafe;   /* what the disk promises */
    bool is_losing;      /* it may lose transactions at a power cut, says SQLite's manual */
} setting;

static const setting WAL_FULL = {"wal", "full", "exclusive", true, false};

enum { NO_TABLES = -1, BROKEN = -2, CUT_OFF = -3 };

/* The first column of the first row as a number; `no_row` where there is none, BROKEN when SQLite says so. */
static int64_t ask(sqlite3 *db, const char *sql, int64_t no_row)
{
    sqlite3_stmt *stmt = NULL;
    int64_t answer = no_row;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        answer = sqlite3_column_int64(stmt, 0);
        rc = SQLITE_OK;
    }
    (void)sqlite3_finalize(stmt);
    if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB) {
        return BROKEN;
    }
    return rc == SQLITE_ROW || rc == SQLITE_DONE || rc == SQLITE_OK || rc == SQLITE_ERROR ? answer : CUT_OFF;
}

static bool is_whole(sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    bool is_ok = sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL) == SQLITE_OK &&
                 sqlite3_step(stmt) == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") == 0;
    (void)sqlite3_finalize(stmt);
    return is_ok;
}

static int exec(sqlite3 *db, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *sql = sqlite3_vmprintf(format, args);
    va_end(args);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return rc;
}

static int open_on(hf_vfs *disk, const char *locking, sqlite3 **ret_db)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2("test.db", ret_db, flags, hf_vfs_name(disk));
    return rc == SQLITE_OK ? exec(*ret_db, "PRAGMA locking_mode=%s", locking) : rc;
}

/* The number of the last transaction, NO_TABLES before the first, BROKEN if anything is not as it should be. */
static int64_t last_of(sqlite3 *db)
{
    int64_t last = ask(db,
                       "SELECT CASE WHEN t.last = (SELECT count(*) FROM log)"
                       " AND t.last = (SELECT ifnull(max(n), 0) FROM log)"
                       " AND t.len = (SELECT ifnull(sum(length(body)), 0) FROM log)"
                       " AND NOT EXISTS (SELECT 1 FROM log"
                       "   WHERE body <> printf('%.*c', length(body), char(97 + n % 26)))"
                       " THEN t.last ELSE -2 END FROM total t",
                       NO_TABLES);
    return last == CUT_OFF || is_whole(db) ? last : BROKEN;
}

/* Opens what is on the disk and asks, like a process that is killed afterwards. */
static int64_t last_on(hf_vfs *disk)
{
    sqlite3 *db = NULL;
    int64_t last = open_on(disk, "exclusive", &db) == SQLITE_OK ? last_of(db) : CUT_OFF;
    hf_vfs_power_off(disk);
    (void)sqlite3_close(db);
    hf_vfs_power_on(disk);
    return last;
}

static int transact(sqlite3 *db, int64_t n, hf_rng *rng)
{
    int rc = exec(db,
                  "BEGIN IMMEDIATE; INSERT INTO log VALUES (%lld, printf('%%.*c', %d, char(97 + %lld %% 26)));"
                  "UPDATE log SET body = substr(body, 1 + length(body) / 2) WHERE n = %d;"
                  "UPDATE total SET last = %lld, len = (SELECT sum(length(body)) FROM log); COMMIT",
                  (long long)n, (int)hf_rng_below(rng, n % 5 == 0 ? 9000 : 300), (long long)n,
                  (int)hf_rng_below(rng, (uint64_t)n), (long long)n);
    return rc;
}

/* ---- Runs with images -------------------------------------------------------------------------------------------- */

enum { SEEN_COUNT = 4096 };

typedef struct run {
    const setting *how;        /* how the database is opened */
    hf_vfs *disk;              /* where the workload runs */
    hf_vfs *image;             /* what a power cut leaves of it */
    hf_vfs *second;            /* what one during the recovery leaves */
    hf_rng rng;                /* of workload and images */
    int64_t acked;             /* last acknowledged transaction, NO_TABLES before the first */
    int64_t seen_last;         /* in a second run: what the first image held */
    uint64_t per_mode;         /* images per change and random mode; 0 = none at all */
    uint64_t images;           /* looked at */
    uint64_t second_images;    /* of these, of a recovery */
    uint64_t lost;             /* that lacked an acknowledged transaction */
    uint64_t broken;           /* that were damaged, or ahead of time */
    uint64_t trace;            /* hash over all changes and what they were made to */
    uint64_t seen[SEEN_COUNT]; /* images that were looked at already */
} run;

static run *run_new(const setting *how, uint64_t seed)
{
    run *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->how = how;
    r->disk = hf_vfs_new("disk", seed);
    r->image = hf_vfs_new("image", seed + 1);
    r->second = hf_vfs_new("second", seed + 2);
    r->rng.state = seed;
    r->acked = NO_TABLES;
    hf_vfs_set_powersafe(r->disk, how->is_powersafe);
    hf_vfs_set_powersafe(r->image, how->is_powersafe);
    hf_vfs_seed_sqlite(seed);
    return r;
}

static void run_free(run *r)
{
    hf_vfs_free(r->disk);
    hf_vfs_free(r->image);
    hf_vfs_free(r->second);
    free(r);
}

static bool is_new(run *r, const hf_vfs *image)
{
    uint64_t hash = hf_hash_mix(hf_vfs_hash(image), (uint64_t)r->acked);
    bool is_known = r->seen[hash % SEEN_COUNT] == hash;
    r->seen[hash % SEEN_COUNT] = hash;
    return !is_known;
}

static void judge(run *r, int64_t last, int64_t at_least)
{
    bool is_lost = last >= NO_TABLES && last < at_least;
    bool is_broken = last < NO_TABLES || last > at_least + 1;
    r->images++;
    r->lost += is_lost;
    r->broken += is_broken;
    HF_CHECK_SAY(!is_broken && (!is_lost || r->how->is_losing), "%s %s, change %d: %d acknowledged, %d there",
                 r->how->journal, r->how->sync, (int)hf_vfs_ops(r->disk), (int)at_least, (int)last);
}

static void on_recovery_change(void *state, uint64_t op, hf_vfs_op_kind kind, const char *file)
{
    run *r = state;
    (void)op;
    (void)kind;
    (void)file;
    for (int mode = 0; mode < HF_CRASH_MODE_COUNT; mode++) {
        hf_vfs_image(r->image, (hf_crash_mode)mode, &r->rng, r->second);
        if (is_new(r, r->second)) {
            r->second_images++;
            judge(r, last_on(r->second), r->seen_last);
        }
    }
}

/* Life goes on with the image: recovery, a checkpoint, one more transaction; with power cuts. */
static void recover_with_cuts(run *r, int64_t last)
{
    sqlite3 *db = NULL;
    r->seen_last = last;
    hf_vfs_on_op(r->image, on_recovery_change, r);
    if (open_on(r->image, r->how->locking, &db) == SQLITE_OK && last >= 0) {
        HF_CHECK(exec(db, "PRAGMA synchronous=%s; PRAGMA wal_checkpoint(TRUNCATE)", r->how->sync) == SQLITE_OK);
        HF_CHECK(transact(db, last + 1, &r->rng) == SQLITE_OK);
    }
    hf_vfs_on_op(r->image, NULL, NULL);
    hf_vfs_power_off(r->image);
    (void)sqlite3_close(db);
    hf_vfs_power_on(r->image);
}

static void on_change(void *state, uint64_t op, hf_vfs_op_kind kind, const char *file)
{
    run *r = state;
    r->trace = hf_hash_mix(r->trace, op * 8 + (uint64_t)kind);
    r->trace = hf_hash_mix(hf_hash_bytes(r->trace, file, strlen(file)), hf_vfs_hash(r->disk));
    for (int mode = 0; mode < HF_CRASH_MODE_COUNT; mode++) {
        bool is_random = mode == HF_CRASH_PREFIX || mode == HF_CRASH_RANDOM;
        for (uint64_t i = 0; i < (is_random ? r->per_mode : r->per_mode > 0); i++) {
            hf_vfs_image(r->disk, (hf_crash_mode)mode, &r->rng, r->image);
            if (!is_new(r, r->image)) {
                continue;
            }
            int64_t last = last_on(r->image);
            judge(r, last, r->acked);
            if (hf_rng_below(&r->rng, r->how->is_powersafe ? 32 : 256) == 0 && last >= NO_TABLES) {
                recover_with_cuts(r, last);
            }
        }
    }
}

/* Runs transactions up to `count`; stops at the first error, which it returns. The database stays open. */
static int work(run *r, int64_t count, sqlite3 **ret_db)
{
    int rc = open_on(r->disk, r->how->locking, ret_db);
    sqlite3 *db = *ret_db;
    uint64_t every = 3 + hf_rng_below(&r->rng, 9);
    unsigned page_len = 512U << hf_rng_below(&r->rng, 4);
    rc = rc != SQLITE_OK ? rc : exec(db, "PRAGMA page_size=%u; PRAGMA journal_mode=%s", page_len, r->how->journal);
    rc = rc != SQLITE_OK ? rc : exec(db, "PRAGMA synchronous=%s; PRAGMA wal_autocheckpoint=0", r->how->sync);
    rc = rc != SQLITE_OK ? rc
                         : exec(db, "BEGIN; CREATE TABLE log (n INTEGER PRIMARY KEY, body TEXT);"
                                    "CREATE TABLE total (last INTEGER, len INTEGER);"
                                    "INSERT INTO total VALUES (0, 0); COMMIT");
    for (int64_t n = 0; rc == SQLITE_OK && n <= count; n++) {
        rc = n > 0 ? transact(db, n, &r->rng) : SQLITE_OK;
        if (rc != SQLITE_OK) {
            break;
        }
        r->acked = n;
        if (n % (int64_t)every == 0) {
            rc = exec(db, "PRAGMA wal_checkpoint(%s)", hf_rng_below(&r->rng, 2) == 0 ? "PASSIVE" : "TRUNCATE");
        }
    }
    return rc;
}

static void kill_process(hf_vfs *disk, sqlite3 *db)
{
    hf_vfs_power_off(disk);
    (void)sqlite3_close(db);
    hf_vfs_power_on(disk);
}

/* hf_each_seed calls without a state. */
static const setting *setting_now;
static struct {
    uint64_t images;        /* over all seeds of a setting */
    uint64_t second_images; /* as in run */
    uint64_t lost;          /* as in run */
} sum;

static void cut_with_seed(uint64_t seed)
{
    run *r = run_new(setting_now, seed);
    sqlite3 *db = NULL;
    int64_t count = hf_test_scale() > 1 ? 12 : 25;
    r->per_mode = hf_test_scale() > 1 ? 1 : 3;
    hf_vfs_on_op(r->disk, on_change, r);
    HF_CHECK(work(r, count, &db) == SQLITE_OK);
    HF_CHECK(sqlite3_close(db) == SQLITE_OK);
    hf_vfs_on_op(r->disk, NULL, NULL);
    HF_CHECK(last_on(r->disk) == count);
    sum.images += r->images;
    sum.second_images += r->second_images;
    sum.lost += r->lost;
    run_free(r);
}

static void acknowledged_transactions_survive_power_cuts(void **state)
{
    (void)state;
    static const setting SETTINGS[] = {
        {"wal", "full", "exclusive", true, false},   {"wal", "full", "exclusive", false, false},
        {"wal", "normal", "exclusive", true, true},  {"delete", "extra", "normal", true, false},
        {"delete", "extra", "normal", false, false}, {"delete", "full", "normal", true, true},
        {"truncate", "full", "normal", true, false}, {"persist", "full", "exclusive", true, false},
    };
    for (size_t i = 0; i < HF_COUNT_OF(SETTINGS) && hf_checks_failed() == 0; i++) {
        const setting *how = &SETTINGS[i];
        char what[64];
        (void)sqlite3_snprintf(sizeof what, what, "%s %s %s%s", how->journal, how->sync, how->locking,
                               how->is_powersafe ? "" : ", not powersafe");
        memset(&sum, 0, sizeof sum);
        setting_now = how;
        hf_each_seed(what, how->is_powersafe ? 4 : 1, cut_with_seed);
        print_message("  %" PRIu64 " images, %" PRIu64 " of recoveries, %" PRIu64
                      " without an acknowledged transaction\n",
                      sum.images, sum.second_images, sum.lost);
        assert_int_equal(sum.lost > 0, how->is_losing);
        assert_true(sum.images > 200 && sum.second_images > 50);
    }
}

static void nothing_is_acknowledged_before_it_is_durable(void **state)
{
    (void)state;
    static const struct {
        const char *sync;
        bool is_durable;
    } CASES[] = {{"full", true}, {"normal", false}};
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        setting how = WAL_FULL;
        how.sync = CASES[i].sync;
        run *r = run_new(&how, 7);
        sqlite3 *db = NULL;
        assert_int_equal(work(r, 5, &db), SQLITE_OK);
        for (int64_t n = 6; n < 20; n++) {
            assert_int_equal(transact(db, n, &r->rng), SQLITE_OK);
            assert_int_equal(hf_vfs_unsynced(r->disk) == 0, CASES[i].is_durable);
        }
        kill_process(r->disk, db);
        assert_int_equal(last_on(r->disk), 19); /* a killed process loses nothing, the kernel has it all */
        run_free(r);
    }
}

static void equal_seeds_make_equal_disks(void **state)
{
    (void)state;
    uint64_t traces[3] = {0};
    for (size_t i = 0; i < HF_COUNT_OF(traces); i++) {
        run *r = run_new(&WAL_FULL, i < 2 ? 3 : 4);
        sqlite3 *db = NULL;
        hf_vfs_on_op(r->disk, on_change, r);
        assert_int_equal(work(r, 20, &db), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        traces[i] = r->trace;
        run_free(r);
    }
    assert_true(traces[0] == traces[1]);
    assert_true(traces[0] != traces[2]);
}

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

/* One run with one planned fault. False: it was too late to hit anything. */
static bool try_fault(const setting *how, hf_io_fault fault, bool forever, uint64_t nth, bool is_polite)
{
    run *r = run_new(how, nth);
    sqlite3 *db = NULL;
    hf_vfs_fail(r->disk, HF_IO_ANY & ~(unsigned)HF_IO_SYNC_DIR, nth, fault, forever);
    int rc = work(r, 8, &db);
    if (is_polite) {
        (void)sqlite3_close(db);
    } else {
        kill_process(r->disk, db);
    }
    bool was_hit = hf_vfs_faults_hit(r->disk) > 0;
    hf_vfs_fail(r->disk, HF_IO_ANY, 0, fault, false);
    bool is_honest = fault == HF_FAULT_EIO || fault == HF_FAULT_ENOSPC || fault == HF_FAULT_LATE_ENOSPC;
    if (is_honest) { /* an error was told, so nothing may be wrong */
        HF_CHECK_SAY(rc == SQLITE_OK || was_hit, "rc %d without a fault", rc);
        hf_vfs_image(r->disk, is_polite ? HF_CRASH_NONE : HF_CRASH_RANDOM, &r->rng, r->image);
        int64_t last = last_on(r->disk);
        int64_t last_cut = last_on(r->image);
        HF_CHECK_SAY(last == r->acked || last == r->acked + 1, "%s fault %d nth %d: %d acked, %d there", how->journal,
                     fault, (int)nth, (int)r->acked, (int)last);
        HF_CHECK_SAY(last_cut == r->acked || last_cut == r->acked + 1, "%s fault %d nth %d: %d acked, %d after a cut",
                     how->journal, fault, (int)nth, (int)r->acked, (int)last_cut);
    } else {
        (void)last_on(r->disk); /* a disk that lies may ruin it, but only it */
    }
    run_free(r);
    return was_hit;
}

static void every_io_error_leaves_a_whole_database(void **state)
{
    (void)state;
    static const setting SETTINGS[] = {{"wal", "full", "exclusive", true, false},
                                       {"delete", "extra", "normal", true, false}};
    uint64_t points = 0;
    for (size_t i = 0; i < HF_COUNT_OF(SETTINGS); i++) {
        for (int fault = 0; fault < HF_IO_FAULT_COUNT; fault++) {
            for (int way = 0; way < 4; way++) {
                uint64_t step = hf_test_scale() > 1 ? 7 : 1;
                uint64_t nth = 1;
                while (try_fault(&SETTINGS[i], (hf_io_fault)fault, way % 2 != 0, nth, way / 2 != 0)) {
                    nth += step;
                    points++;
                }
                assert_true(nth > 10);
            }
        }
    }
    print_message("%" PRIu64 " calls failed, each in a run of its own\n", points);
}

/* Why the store syncs directories itself (src/store/sqlite/shim.c). */
static void a_log_whose_name_was_not_synced_is_lost_and_sqlite_says_nothing(void **state)
{
    (void)state;
    run *r = run_new(&WAL_FULL, 17);
    sqlite3 *db = NULL;
    hf_vfs_fail(r->disk, HF_IO_SYNC_DIR, 1, HF_FAULT_EIO, true);
    assert_int_equal(work(r, 5, &db), SQLITE_OK);
    assert_int_equal(transact(db, 6, &r->rng), SQLITE_OK);
    hf_vfs_image(r->disk, HF_CRASH_NONE, &r->rng, r->image);
    assert_int_equal(last_on(r->image), NO_TABLES);
    kill_process(r->disk, db);
    run_free(r);
}

/* Why the store writes a log that it finds again: SQLite goes on behind a hole that only the disk has. */
static void sqlite_appends_behind_a_hole_that_a_failed_sync_left(void **state)
{
    (void)state;
    uint64_t lost = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        run *r = run_new(&WAL_FULL, seed);
        sqlite3 *db = NULL;
        assert_int_equal(work(r, 4, &db), SQLITE_OK);
        hf_vfs_fail(r->disk, HF_IO_SYNC, 1, HF_FAULT_EIO, false);
        assert_int_equal(transact(db, 5, &r->rng), SQLITE_IOERR); /* a big one */
        kill_process(r->disk, db);
        assert_int_equal(open_on(r->disk, "exclusive", &db), SQLITE_OK);
        int64_t last = last_of(db);
        assert_int_equal(exec(db, "PRAGMA synchronous=full; PRAGMA wal_autocheckpoint=0"), SQLITE_OK);
        assert_int_equal(transact(db, last + 1, &r->rng), SQLITE_OK);
        hf_vfs_image(r->disk, HF_CRASH_NONE, &r->rng, r->image);
        lost += last_on(r->image) < last + 1;
        kill_process(r->disk, db);
        run_free(r);
    }
    print_message("%" PRIu64 " of 40 lost what was acknowledged after the failed sync\n", lost);
    assert_true(lost > 5);
}

static void a_full_disk_takes_writes_again_when_there_is_room(void **state)
{
    (void)state;
    run *r = run_new(&WAL_FULL, 11);
    sqlite3 *db = NULL;
    assert_int_equal(work(r, 5, &db), SQLITE_OK);
    hf_vfs_fail(r->disk, HF_IO_ANY, 1, HF_FAULT_ENOSPC, true);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(transact(db, 6, &r->rng), SQLITE_FULL);
        (void)exec(db, "ROLLBACK");
    }
    assert_int_equal(last_of(db), 5);
    assert_int_equal(hf_vfs_faults_hit(r->disk), 3);
    hf_vfs_fail(r->disk, HF_IO_ANY, 0, HF_FAULT_ENOSPC, false);
    assert_int_equal(transact(db, 6, &r->rng), SQLITE_OK);
    kill_process(r->disk, db);
    assert_int_equal(last_on(r->disk), 6);
    run_free(r);
}

static void a_disk_that_lies_about_syncs_is_caught(void **state)
{
    (void)state;
    run *r = run_new(&WAL_FULL, 13);
    sqlite3 *db = NULL;
    assert_int_equal(work(r, 5, &db), SQLITE_OK);
    hf_vfs_fail(r->disk, HF_IO_SYNC, 1, HF_FAULT_LOST_SYNC, true);
    assert_int_equal(transact(db, 6, &r->rng), SQLITE_OK);
    assert_true(hf_vfs_unsynced(r->disk) > 0);
    hf_vfs_image(r->disk, HF_CRASH_NONE, &r->rng, r->image);
    assert_int_equal(last_on(r->image), 5);
    kill_process(r->disk, db);
    run_free(r);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(acknowledged_transactions_survive_power_cuts),
    cmocka_unit_test(nothing_is_acknowledged_before_it_is_durable),
    cmocka_unit_test(equal_seeds_make_equal_disks),
    cmocka_unit_test(every_io_error_leaves_a_whole_database),
    cmocka_unit_test(a_disk_that_lies_about_syncs_is_caught),
    cmocka_unit_test(a_log_whose_name_was_not_synced_is_lost_and_sqlite_says_nothing),
    cmocka_unit_test(sqlite_appends_behind_a_hole_that_a_failed_sync_left),
    cmocka_unit_test(a_full_disk_takes_writes_again_when_there_is_room),
};

int main(int argc, char **argv)
{
    return hf_test_main("vfs_crash", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
