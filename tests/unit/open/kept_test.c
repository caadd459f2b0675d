/* labels: threads */
/* A database with streams, operations on many runs, blocks and retention (tests/fixtures/make.c, from 0005 on): it is sound, it says what it holds, and
 * what is under way is finished. */
#include "unit/open/place.h"

#include "fixtures/fixture.h"
#include "inspect/check.h"

static const char *const FILES[] = {"0005.db"};

static void copy(const char *name, const place *p)
{
    char path[1000];
    (void)snprintf(path, sizeof path, "%s/%s", HF_FIXTURES, name);
    size_t len = 0;
    char *bytes = file_bytes(path, &len);
    assert_non_null(bytes);
    (void)unlink(p->path);
    file_put(p->path, 0, bytes, len);
    free(bytes);
}

static void on_found(void *state, const char *sentence)
{
    (void)state;
    print_message("%s\n", sentence);
}

static hf_check_report check(hf_store *store)
{
    hf_check_report report = {0};
    hf_check_options options = {.deep = true, .found = on_found};
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_check_store(&op, hf_rig_heap, store, &options, &report), HF_OK);
    assert_int_equal(report.damages, 0);
    return report;
}

static uint64_t rows_of(hf_store *store, hf_table table)
{
    hf_store_count count = {0};
    hf_store_request stats = {.verb = HF_STORE_STATS, .count = &count};
    hf_op_init(&stats.op);
    do {
        hf_store_execute(store, &stats);
    } while (stats.more);
    return stats.stats.rows[table];
}

static void pass(hf_rig *rig, int64_t span)
{
    rig->now.wall += span;
    rig->now.mono += span;
    assert_true(hf_rig_settle(rig));
}

static void keep_house(hf_rig *rig)
{
    for (int i = 0; i < 400; i++) {
        pass(rig, HF_HOUSE_PACE);
    }
}

static void what_is_kept_is_there(void **state)
{
    const place *p = *state;
    for (size_t i = 0; i < HF_COUNT_OF(FILES); i++) {
        copy(FILES[i], p);
        hf_rig rig;
        fixture_open(&rig, p->path, true);
        rig.no_check = true;
        (void)check(rig.store);
        assert_true(rows_of(rig.store, HF_TABLE_BLOCK) > 0);
        for (int again = 0; again < 2; again++) {
            hf_rig_do(&rig, "count query=K_IS_NOT_NULL says=16; list query=K='v7' says=ended-7");
            hf_rig_do(&rig, "list query=K='open' says=open-4+open-3+open-2+open-1; count ns=brief says=5");
            hf_rig_do(&rig, "stream talk says=0:one+1:two/2; stream talk from=2 says=2:three+3:four/4;"
                            "stream talk from=4 says=4:five+5:six/6");
            hf_rig_do(&rig, "batchshow j says=completed:4/0/4; batches says=slow+j*; describe kept");
            hf_rig_do(&rig, "crash");
        }
        hf_rig_close(&rig);
    }
}

static void what_is_under_way_is_finished(void **state)
{
    const place *p = *state;
    for (size_t i = 0; i < HF_COUNT_OF(FILES); i++) {
        copy(FILES[i], p);
        hf_rig rig;
        fixture_open(&rig, p->path, true);
        rig.no_check = true;
        for (int second = 0; second < 30; second++) {
            pass(&rig, hf_seconds(1).ns);
        }
        hf_rig_do(&rig, "batchshow slow says=completed:4/0/4; count ns=brief says=5");
        pass(&rig, hf_hours(2).ns);
        keep_house(&rig);
        hf_rig_do(&rig, "list ns=brief says=brief-5; describe kept; count query=K_IS_NOT_NULL says=16");
        pass(&rig, hf_hours(9).ns);
        keep_house(&rig);
        hf_rig_do(&rig, "describe kept => not_found; signal talk go; poll queue=t; complete publish=seven done");
        hf_rig_do(&rig, "stream talk from=5 says=5:six+6:seven/7; batch all op=delete query=K_IS_NOT_NULL");
        hf_rig_do(&rig, "batchshow all says=completed:16/0/16; count query=K_IS_NOT_NULL says=0");
        keep_house(&rig);
        hf_check_report report = check(rig.store);
        assert_int_equal(report.open_runs, 1); /* brief-5 */
        hf_rig_close(&rig);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)
static const struct CMUnitTest TESTS[] = {
    TEST(what_is_kept_is_there),
    TEST(what_is_under_way_is_finished),
};

int main(int argc, char **argv)
{
    return hf_test_main("kept", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
