/* Every allocation fails once: the call fails or the core breaks cleanly, what was acknowledged is there, nothing leaks.
 * Scenes on SQLite are sampled. `./dev campaign memory` takes them all and goes further: memory stays away, and every opening after it fails at each of its allocations. */
#include "support/nomem.h"

#include "store/sqlite/sqlite.h"
#include "support/vfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hf_rig rig;

/* Workers die with the process: what they held is handed out again at open. */
static const char *const STEPS[] = {
    "start wf request=r1 input=3000",
    "poll in_process",
    "signal wf s request=r2",
    "complete publish=rec activity a, timer t 1s, marker m",
    "apoll in_process",
    "time 1s",
    "heartbeat details=half publish=beat rid=r9",
    "poll in_process as=x",
    "acomplete input=2000",
    "complete of=x sticky=s",
    "time 10s",
    "poll in_process as=y",
    "complete of=y publish=last done",
    "stream wf says=0:rec+1:beat+2:last/3",
};
enum { ACTIVITY_POLLED = 4, ACTIVITY_DONE = 8 }; /* steps */

/* After a crash: the activity is another attempt, for who polls next. False: it has ended. */
static bool regain_activity(void)
{
    hf_rig_call *slot = hf_rig_slot(&rig, "a");
    (void)hf_rig_try(&rig, "apoll in_process");
    if (slot->done) {
        return true;
    }
    hf_rig_do(&rig, "drop a");
    return false;
}

static void repeat(size_t i)
{
    bool held = i > ACTIVITY_POLLED && i <= ACTIVITY_DONE && regain_activity();
    if (strncmp(STEPS[i], "time", 4) == 0 || (i == ACTIVITY_DONE && !held)) {
        return;
    }
    hf_status status = hf_rig_try(&rig, STEPS[i]);
    assert_true(status == HF_OK || status == HF_ERR_NOT_FOUND); /* done, and only the answer was lost */
}

/* The steps from the first to the last, one of them again after the crash that the failing allocation made. */
static bool run_all(const hf_core_options *options, uint64_t fail_at)
{
    bool broke = false;
    hf_rig_open(&rig, *options);
    rig.allocations = 0;
    rig.fail_at = fail_at;
    rig.may_break = true;
    for (size_t i = 0; i < HF_COUNT_OF(STEPS); i++) {
        hf_status status = hf_rig_try(&rig, STEPS[i]);
        if (hf_core_status(rig.core) != HF_OK) {
            assert_int_equal(hf_core_status(rig.core), HF_ERR_NOMEM);
            broke = true;
            rig.fail_at = 0;
            hf_rig_crash(&rig);
            assert_true(hf_rig_settle(&rig));
            repeat(i);
        } else {
            assert_int_equal(status, HF_OK);
        }
    }
    return broke;
}

static void history_of(hf_buf *out)
{
    hf_buf_init(out, hf_rig_heap, SIZE_MAX / 4);
    hf_rig_history_text(hf_rig_history_bytes(&rig, "wf"), true, out);
}

static void sweep(hf_core_options options)
{
    (void)run_all(&options, 0);
    uint64_t count = rig.allocations;
    hf_buf expected;
    history_of(&expected);
    hf_rig_close(&rig);
    uint64_t breaks = 0;
    for (uint64_t n = 1; n <= count; n++) {
        breaks += run_all(&options, n) ? 1 : 0;
        rig.fail_at = 0;
        rig.may_break = false;
        hf_buf is;
        history_of(&is);
        if (strcmp(hf_buf_text(&is), hf_buf_text(&expected)) != 0) {
            fail_msg("when allocation %llu fails:\n%s", (unsigned long long)n, hf_buf_text(&is));
        }
        hf_buf_deinit(&is);
        hf_rig_close(&rig);
    }
    print_message("%llu allocations, %llu broke the core\n", (unsigned long long)count, (unsigned long long)breaks);
    assert_true(breaks > 0);
    hf_buf_deinit(&expected);
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    sweep((hf_core_options){0});
}

static void any_allocation_may_fail_when_runs_come_from_the_store(void **state)
{
    (void)state;
    sweep((hf_core_options){.mem_max = 1, .trim_count = 1});
}

static void hear(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    assert_non_null(event);
    assert_non_null(fields);
}

static void any_allocation_may_fail_when_runs_come_near_to_a_limit(void **state)
{
    (void)state;
    sweep((hf_core_options){.limits = {.history_count = 100, .history_len = 10000}, .log = hear});
}

static void any_allocation_of_an_opening_may_fail(void **state)
{
    (void)state;
    hf_rig_open(&rig, (hf_core_options){0});
    hf_rig_do(&rig, "start wf; poll in_process; complete activity a1, activity a2, timer t 1h; apoll in_process;"
                    "signal wf s; start other queue=o; poll as=y queue=o; complete of=y timer t 1h; crash");
    uint64_t failed = 0;
    rig.may_break = true;
    for (uint64_t n = 1;; n++) {
        rig.allocations = 0;
        rig.fail_at = 0;
        hf_core_stop(rig.core, HF_ERR_CLOSED, "again");
        hf_core_free(rig.core);
        rig.allocations = 0;
        rig.fail_at = n;
        hf_status status = hf_rig_reopen(&rig);
        uint64_t made = rig.allocations;
        rig.fail_at = 0;
        if (status != HF_OK) {
            assert_int_equal(status, HF_ERR_NOMEM);
            failed++;
            assert_int_equal(hf_rig_reopen(&rig), HF_OK);
        }
        if (made < n) {
            break;
        }
    }
    print_message("%llu openings failed\n", (unsigned long long)failed);
    rig.may_break = false;
    assert_true(failed > 0);
    hf_rig_do(&rig, "apoll; acomplete; poll; complete done");
    hf_rig_close(&rig);
}

/* Else a row that was not decoded would be taken for a damaged one: calls for its run would be refused until the next opening. */
static void engine_E2_a_core_without_memory_for_a_message_is_broken_at_once(void **state)
{
    (void)state;
    hf_rig_open(&rig, (hf_core_options){0});
    hf_rig_do(&rig, "start wf");
    rig.may_break = true;
    rig.allocations = 0;
    rig.fail_at = 1;
    assert_null(hf_arena_take(&rig.core->scratch, 1 << 20, 1));
    rig.fail_at = 0;
    assert_int_equal(hf_core_status(rig.core), HF_ERR_NOMEM);
    (void)hf_core_hash(rig.core); /* a look at it changes nothing */
    assert_int_equal(hf_core_status(rig.core), HF_ERR_NOMEM);
    hf_rig_crash(&rig);
    rig.may_break = false;
    hf_rig_do(&rig, "poll; complete done");
    hf_rig_close(&rig);
}

enum { SQLITE_STRIDE = 5 }; /* each scene begins at another */

/* ---- Older files ------------------------------------------------------------------------------------------------------- */

static char *file_bytes(const char *name, size_t *ret_len)
{
    char path[1000];
    (void)snprintf(path, sizeof path, "%s/%s", HF_FIXTURES, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *ret_len = (size_t)ftell(file);
    char *bytes = malloc(*ret_len);
    rewind(file);
    assert_true(bytes != NULL && fread(bytes, 1, *ret_len, file) == *ret_len);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

static void close_all(void)
{
    if (rig.core != NULL) {
        hf_core_stop(rig.core, HF_ERR_CLOSED, "again");
        hf_core_free(rig.core);
        rig.core = NULL;
    }
    hf_store_close(rig.store);
    rig.store = NULL;
}

/* Brings the file up to date, and then the runs that are loaded. */
static hf_status open_all(void)
{
    hf_op op;
    hf_op_init(&op);
    hf_sqlite_options options = {.vfs = hf_vfs_name(rig.disk), .cache_len = 256 * 1024, .must_exist = true};
    hf_status status = hf_sqlite_open(&op, rig.options.memory, "rig.db", &options, &rig.store);
    return status == HF_OK ? hf_rig_reopen(&rig) : status;
}

static uint64_t hash_all(void)
{
    hf_op op;
    hf_op_init(&op);
    uint64_t hash = 0;
    assert_int_equal(hf_store_hash(&op, rig.store, hf_rig_heap, &hash), HF_OK);
    if (hf_core_check(&op, rig.core, rig.store) != HF_OK) {
        fail_msg("%s", op.message);
    }
    return hash;
}

static void sweep_older(const char *name)
{
    size_t len = 0;
    char *bytes = file_bytes(name, &len);
    uint64_t failed = 0;
    uint64_t expected = 0;
    uint64_t stride = SQLITE_STRIDE * (uint64_t)hf_test_scale();
    hf_rig_open_on(&rig, (hf_core_options){0}, HF_RIG_SQLITE);
    rig.may_break = true;
    for (uint64_t nth = 0;; nth += stride) { /* the first time nothing fails */
        close_all();
        (void)hf_vfs_delete_file(rig.disk, "rig.db-wal");
        hf_vfs_write_file(rig.disk, "rig.db", bytes, len);
        rig.allocations = 0;
        rig.fail_at = nth;
        hf_status status = open_all();
        uint64_t made = rig.allocations;
        rig.fail_at = 0;
        if (status != HF_OK) {
            assert_int_equal(status, HF_ERR_NOMEM);
            failed++;
            close_all();
            assert_int_equal(open_all(), HF_OK);
        }
        expected = nth == 0 ? hash_all() : expected;
        assert_true(hash_all() == expected);
        if (made < nth) {
            break;
        }
    }
    print_message("%s: %llu openings failed\n", name, (unsigned long long)failed);
    assert_true(failed > 0);
    rig.may_break = false;
    hf_rig_close(&rig);
    free(bytes);
}

static void any_allocation_may_fail_while_an_older_file_is_opened(void **state)
{
    (void)state;
    sweep_older("0001.db");
    sweep_older("0002.db");
}

static void any_allocation_of_any_call_may_fail(void **state)
{
    (void)state;
    hf_nomem_counts counts = {0};
    for (size_t i = 0; i < hf_nomem_count(); i++) {
        uint64_t stride = (hf_nomem_is_sqlite(i) ? SQLITE_STRIDE : 1) * (uint64_t)hf_test_scale();
        hf_nomem_sweep(i, 1 + i % stride, stride, false, &counts);
    }
    print_message("%llu scenes, %llu allocations failed, %llu broke the core\n", (unsigned long long)counts.scenes,
                  (unsigned long long)counts.faults, (unsigned long long)counts.broke);
    for (int i = 0; i < HF_METHOD_COUNT; i++) {
        if (counts.methods[i] == 0 && !hf_method_is_of_clock((hf_method)i) && /* those are the loop's */
            i != HF_METHOD_TELL_LISTENER) { /* that is no caller's: scenes with children make it */
            fail_msg("no scene calls %s", hf_method_info_of((hf_method)i)->name);
        }
    }
}

static int say_where(void **state)
{
    (void)state;
    if (hf_nomem_now() != NULL) {
        print_error("that was %s\n", hf_nomem_now());
    }
    return 0;
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(any_allocation_may_fail),
    cmocka_unit_test(any_allocation_may_fail_when_runs_come_from_the_store),
    cmocka_unit_test(any_allocation_may_fail_when_runs_come_near_to_a_limit),
    cmocka_unit_test(any_allocation_of_an_opening_may_fail),
    cmocka_unit_test(engine_E2_a_core_without_memory_for_a_message_is_broken_at_once),
    cmocka_unit_test(any_allocation_may_fail_while_an_older_file_is_opened),
    cmocka_unit_test_teardown(any_allocation_of_any_call_may_fail, say_where),
};

int main(int argc, char **argv)
{
    return hf_test_main("nomem", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
