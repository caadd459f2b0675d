/* A depot's file of version 1, as its programs wrote it: it is read, and brought up to date. */
#include "support/support.h"
#include "unit/depot/rig.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

extern const char hf_schema_depot_0001[];

/* The value "base" of A; the write 7 of A, "mine", of which two attempts failed, "the client wins"; the write 9 of B, which is dead. */
static const char ROWS[] =
    "INSERT INTO entry_key VALUES (x'61636d6500757365720041', 1);"
    "INSERT INTO entry VALUES (1, x'd03bbf500100401e18240a0662617365');"
    "INSERT INTO pending VALUES (7, x'e090ddae010b61636d6500757365720041000001000102030405060708090a0b0c0d0e0f0200"
    "8080d0e2c6bfce972f0b10746865206c696e65206973206465616400056d696e65');"
    "INSERT INTO pending VALUES (9, x'd59b83bb010b61636d6500757365720042000100101112131415161718191a1b1c1d1e1f0100"
    "8080d0e2c6bfce972f1507726566757365640004626164');"
    "INSERT INTO mark VALUES (1, 3);";

static char folder[64];
static char path[100];

static void execute(const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s", sqlite3_errmsg(db));
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int version_of_file(void)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int version = sqlite3_column_int(statement, 0);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return version;
}

typedef struct seen {
    int count;
    uint64_t last;
} seen;

static bool see(void *arg, const hf_depot_pending_write *write)
{
    seen *all = arg;
    HF_CHECK(write->sequence > all->last);
    all->count++;
    all->last = write->sequence;
    if (write->sequence == 7) {
        HF_CHECK(!write->is_dead && write->attempts == 2 && write->status == HF_ERR_IO);
        HF_CHECK(strcmp(write->id, "000102030405060708090a0b0c0d0e0f") == 0);
        HF_CHECK(strcmp(write->message, "the line is dead") == 0);
    } else if (write->sequence == 9) {
        HF_CHECK(write->is_dead && write->attempts == 1 && write->status == HF_ERR_FAILED);
        HF_CHECK(strcmp(write->message, "refused") == 0);
    }
    return true;
}

static hf_status open_it(hf_depot **ret_depot, origin *o, bool driven)
{
    char file[120];
    (void)snprintf(file, sizeof file, "sqlite:%s", path);
    return hf_depot_open("old", ret_depot, .fetch = rig_fetch, .push = rig_push, .state = o, .file = file,
                         .keep = hf_days(100000), .driven = driven);
}

/* Nothing is sent. A number that was seen does not come again. */
static hf_status first_life(void *arg)
{
    seen *all = arg;
    origin o = {.value = "theirs"};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_it(&depot, &o, true));
    HF_CHECK(rig_counts(depot).damaged == 0);
    HF_TRY(hf_depot_pending(depot, see, all));
    HF_CHECK(all->count == 2 && all->last == 9);
    GET(depot, "A", "mine", .fresh = HF_FRESH_LOCAL);
    HF_CHECK(rig_get(depot, "B", .fresh = HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND);
    HF_TRY(rig_put(depot, "C", "new"));
    HF_TRY(hf_depot_drop(depot, 9));
    *all = (seen){0};
    HF_TRY(hf_depot_pending(depot, see, all));
    HF_CHECK(all->count == 2 && all->last > 9);
    HF_TRY(hf_depot_drop(depot, all->last));
    HF_CHECK(o.pushes == 0 && o.fetches == 0);
    return HF_OK;
}

static hf_status second_life(void *arg)
{
    seen *all = arg;
    uint64_t before = all->last;
    origin o = {.value = "theirs", .conflict_with = "mine", .theirs = "theirs"};
    hf_depot_write *write = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_it(&depot, &o, true));
    HF_TRY(rig_put(depot, "C", "new"));
    *all = (seen){0};
    HF_TRY(hf_depot_pending(depot, see, all));
    HF_CHECK(all->count == 2 && all->last > before);
    HF_TRY(hf_depot_close(depot));
    depot = NULL;
    HF_TRY(open_it(&depot, &o, false));
    HF_TRY(hf_depot_put(depot, rig_key("A"), "last", 4, .ret_write = &write));
    HF_TRY(hf_depot_write_wait(write)); /* behind write 7, which meets a conflict and wins it */
    hf_depot_write_free(write);
    int mine = 0;
    for (int i = 0; i < o.pushes; i++) {
        bool is_seven = strcmp(o.pushed[i].data, "mine") == 0;
        mine += is_seven;
        HF_CHECK(!is_seven || strcmp(o.pushed[i].write_id, "000102030405060708090a0b0c0d0e0f") == 0);
    }
    HF_CHECK(mine == 2);
    return HF_OK;
}

static void a_file_of_version_1_is_read_and_brought_up_to_date(void **state)
{
    (void)state;
    seen all = {0};
    (void)snprintf(folder, sizeof folder, "%s", "/tmp/hf-depot-versions.XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/old.db", folder);
    execute("PRAGMA journal_mode=WAL");
    execute(hf_schema_depot_0001);
    execute(ROWS);
    assert_int_equal(version_of_file(), 1);
    assert_int_equal(hf_run(first_life, &all), HF_OK);
    assert_int_equal(version_of_file(), 2);
    assert_int_equal(hf_run(second_life, &all), HF_OK);
    char command[100];
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_file_of_version_1_is_read_and_brought_up_to_date),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot_versions", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
