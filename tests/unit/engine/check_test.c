/* hf_check_store finds what is wrong with a store, whatever it is, and nothing where nothing is. hf_look shows what is there. */
#include "support/engine_rig.h"

#include "engine/blocks.h"
#include "inspect/check.h"
#include "inspect/look.h"

#include <stdio.h>
#include <stdlib.h>

/* Runs of every kind, with rows and with a journal: closed, waiting for a timer, a signal, an activity's retry, a worker. */
static void play(hf_rig *rig)
{
    hf_rig_open(rig,
                (hf_core_options){
                    .tail_len_max = 1, .mem_max = 40000, .journal_len_max = 20000, .trim_count = 4, .names_max = 1});
    for (int i = 0; i < 12; i++) {
        char script[400];
        (void)snprintf(script, sizeof script,
                       "start done-%d input=500; poll; complete done; start timer-%d; poll; complete timer t 1h", i, i);
        hf_rig_do(rig, script);
        (void)snprintf(
            script, sizeof script,
            "start retry-%d; poll; complete activity a each=10s retries=9 initial=1h; apoll; afail type=Busy", i);
        hf_rig_do(rig, script);
        (void)snprintf(script, sizeof script, "start task-%d queue=other; signal task-%d s input=300", i, i);
        hf_rig_do(rig, script);
    }
    hf_rig_do(
        rig, "start held input=9000; poll in_process; signal held s; start big input=30000; poll; complete timer t 1h");
}

typedef struct told {
    size_t count;
    char first[400];
} told;

static void on_found(void *state, const char *sentence)
{
    told *t = state;
    if (t->count++ == 0) {
        (void)snprintf(t->first, sizeof t->first, "%s", sentence);
    }
}

static told check(hf_store *store, hf_check_report *report)
{
    told t = {0};
    hf_op op;
    hf_op_init(&op);
    hf_check_options options = {.deep = true, .found = on_found, .state = &t};
    assert_int_equal(hf_check_store(&op, hf_rig_heap, store, &options, report), HF_OK);
    assert_int_equal(t.count, report->damages);
    return t;
}

static void a_sound_store_is_found_sound(void **state)
{
    (void)state;
    hf_rig rig;
    play(&rig);
    hf_check_report report;
    told t = check(rig.store, &report);
    if (t.count > 0) {
        fail_msg("%s", t.first);
    }
    assert_true(report.runs == 50 && report.open_runs == 38 && report.events > 100 && report.commits > 0);
    assert_true(report.records > report.runs);
    hf_rig_close(&rig);
}

/* A check that has not read everything says so, and takes nothing for damaged. */
static void a_check_without_memory_finds_no_damage(void **state)
{
    (void)state;
    hf_rig rig;
    hf_rig_open(
        &rig, (hf_core_options){.tail_len_max = 1, .mem_max = 1, .trim_count = 1, .part_len_min = 1, .block_size = 4});
    hf_rig_do(&rig, "start a memo=m:1 input=3000; poll; complete activity a, timer t 1h; start b; start c; terminate c;"
                    "start d; terminate d; start e; terminate e; start f; terminate f; start g; terminate g; start h");
    for (int i = 0; i < 200; i++) { /* a block is made */
        rig.now.wall += HF_HOUSE_PACE;
        rig.now.mono += HF_HOUSE_PACE;
        hf_rig_settle(&rig);
    }
    assert_true(hf_rig_probe(&rig, HF_PROBE_BLOCK_WRITTEN) > 0);
    for (uint64_t nth = 1;; nth++) {
        told t = {0};
        hf_op op;
        hf_op_init(&op);
        hf_check_options options = {.deep = true, .found = on_found, .state = &t};
        hf_check_report report;
        rig.allocations = 0;
        rig.fail_at = nth;
        hf_status status = hf_check_store(&op, rig.options.memory, rig.store, &options, &report);
        rig.fail_at = 0;
        if (t.count > 0) {
            fail_msg("allocation %llu: %s", (unsigned long long)nth, t.first);
        }
        bool has_failed = nth <= rig.allocations;
        assert_int_equal(status, has_failed ? HF_ERR_NOMEM : HF_OK);
        if (!has_failed) {
            print_message("%llu allocations\n", (unsigned long long)rig.allocations);
            break;
        }
    }
    hf_rig_close(&rig);
}

/* ---- Damage ----------------------------------------------------------------------------------------------------------- */

/* One more commit behind the engine's back, with a row of the journal that follows the last, so that the store goes on as if
 * the engine had made it. The engine is not asked again. */
static void put(hf_rig *rig, hf_write write)
{
    uint64_t number = rig->store->ops->last_commit(rig->store) + 1;
    hf_buf row;
    hf_buf_init(&row, hf_rig_heap, 1000);
    hf_buf_put(&row, "            ", HF_RECORD_HEADER_LEN);
    hf_pb_put_uint(&row, 1, number);
    hf_pb_put_tag(&row, 3, HF_PB_WIRE_64);
    hf_buf_put(&row, &rig->core->journal_hash, sizeof rig->core->journal_hash);
    hf_pb_put_uint(&row, 8, rig->core->index.log_count);
    hf_key key = {.a = (int64_t)number};
    hf_record_seal(HF_TABLE_JOURNAL, &key, row.data, row.len - HF_RECORD_HEADER_LEN);
    hf_write writes[] = {
        write,
        {.table = HF_TABLE_JOURNAL, .kind = HF_WRITE_PUT, .key = key, .value = hf_str_of_len(row.data, row.len)},
    };
    hf_store_request commit = {
        .verb = HF_STORE_COMMIT,
        .commit = number,
        .writes = writes,
        .write_count = 2,
    };
    hf_op_init(&commit.op);
    hf_store_execute(rig->store, &commit);
    assert_int_equal(commit.status, HF_OK);
    hf_buf_deinit(&row);
}

static hf_row row_of(hf_rig *rig, hf_table table, size_t index, hf_arena *arena)
{
    hf_store_request scan = {
        .verb = HF_STORE_SCAN, .table = table, .key_end = hf_key_last(), .row_max = index + 1, .arena = arena};
    hf_op_init(&scan.op);
    hf_store_execute(rig->store, &scan);
    assert_int_equal(scan.status, HF_OK);
    assert_int_equal(scan.row_count, index + 1);
    return scan.rows[index];
}

typedef enum wound { FLIPPED, GONE, COPIED } wound;

static void hurt(hf_rig *rig, hf_table table, wound how, hf_arena *arena)
{
    hf_row row = row_of(rig, table, 1, arena);
    hf_write write = {.table = table, .key = row.key, .kind = how == GONE ? HF_WRITE_DELETE : HF_WRITE_PUT};
    if (how == FLIPPED) {
        char *bytes = hf_arena_take(arena, row.value.len, 1);
        memcpy(bytes, row.value.data, row.value.len);
        bytes[row.value.len - 1] ^= 4;
        write.value = hf_str_of_len(bytes, row.value.len);
    }
    if (how == COPIED) { /* sound in itself, but nobody knows of it */
        write.key.a += 1000000;
        write.value = row.value;
        if (row.value.len > 0) {
            char *bytes = hf_arena_take(arena, row.value.len, 1);
            memcpy(bytes, row.value.data, row.value.len);
            hf_record_seal(table, &write.key, bytes, row.value.len - HF_RECORD_HEADER_LEN);
            write.value = hf_str_of_len(bytes, row.value.len);
        }
    }
    put(rig, write);
}

/* inspect-K1 to inspect-K4: each wound breaks one of them. */
static void every_wound_is_found(void **state)
{
    (void)state;
    static const struct {
        hf_table table;
        wound how;
        const char *says;
    } WOUNDS[] = {
        {HF_TABLE_RUN, FLIPPED, "is damaged: its checksum does not fit"},
        {HF_TABLE_HISTORY, FLIPPED, "is damaged: its checksum does not fit"},
        {HF_TABLE_NAME_LOG, FLIPPED, "is damaged: its checksum does not fit"},
        {HF_TABLE_TASK, FLIPPED, "is damaged: its checksum does not fit"},
        {HF_TABLE_JOURNAL, FLIPPED, "is damaged: its checksum does not fit"},
        {HF_TABLE_HISTORY, GONE, "history rows end with"},
        {HF_TABLE_NAME, GONE, "cannot be found by its name"},
        {HF_TABLE_DUE, GONE, "has no row for its deadline"},
        {HF_TABLE_TASK, GONE, "is missing"},
        {HF_TABLE_JOURNAL, GONE, "of the journal is missing"},
        {HF_TABLE_RUN, GONE, ""},
        {HF_TABLE_RUN, COPIED, ""},
        {HF_TABLE_HISTORY, COPIED, "leads to run"},
        {HF_TABLE_NAME, COPIED, "does not name it"},
        {HF_TABLE_DUE, COPIED, "does not name it"},
        {HF_TABLE_TASK, COPIED, "does not name it"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(WOUNDS); i++) {
        hf_rig rig;
        play(&rig);
        hf_arena arena;
        hf_arena_init(&arena, hf_rig_heap);
        print_message("%s %d\n", hf_table_info_of(WOUNDS[i].table)->name, (int)WOUNDS[i].how);
        hurt(&rig, WOUNDS[i].table, WOUNDS[i].how, &arena);
        hf_check_report report;
        told t = check(rig.store, &report);
        print_message("  %zu: %s\n", t.count, t.first);
        assert_true(t.count > 0);
        assert_non_null(strstr(t.first, WOUNDS[i].says));
        hf_arena_deinit(&arena);
        hf_rig_close(&rig);
    }
}

/* ---- Looking ---------------------------------------------------------------------------------------------------------- */

static void looking_shows_what_the_service_shows(void **state)
{
    (void)state;
    hf_rig rig;
    play(&rig);
    hf_op op;
    hf_op_init(&op);
    hf_look *look = NULL;
    assert_int_equal(hf_look_open(&op, hf_rig_heap, rig.store, &look), HF_OK);
    static const char *const IDS[] = {"done-0", "done-11", "timer-3", "retry-0", "retry-11", "task-5", "held", "big"};
    for (size_t i = 0; i < HF_COUNT_OF(IDS); i++) {
        int64_t number = 0;
        int64_t again = 0;
        hf_run *run = NULL;
        hf_buf history;
        hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
        assert_int_equal(hf_look_find(&op, look, HF_STR(HF_RIG_NS), hf_str_of(IDS[i]), &number), HF_OK);
        assert_int_equal(hf_look_run(&op, look, number, &run), HF_OK);
        assert_int_equal(hf_look_history(&op, look, run, &history), HF_OK);
        assert_int_equal(hf_look_find(&op, look, HF_STR(HF_RIG_NS), hf_owned_str(&run->run_id), &again), HF_OK);
        assert_int_equal(again, number);
        hf_str bytes = hf_rig_history_bytes(&rig, IDS[i]);
        assert_true(hf_str_equal(bytes, hf_str_of_len(history.data, history.len)));
        hf_look_run_free(look, run);
        hf_buf_deinit(&history);
    }
    int64_t number = 0;
    assert_int_equal(hf_look_find(&op, look, HF_STR(HF_RIG_NS), HF_STR("nobody"), &number), HF_ERR_NOT_FOUND);
    assert_int_equal(hf_look_find(&op, look, HF_STR("elsewhere"), HF_STR("big"), &number), HF_ERR_NOT_FOUND);
    hf_look_close(look);
    hf_rig_close(&rig);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_sound_store_is_found_sound),
    cmocka_unit_test(a_check_without_memory_finds_no_damage),
    cmocka_unit_test(every_wound_is_found),
    cmocka_unit_test(looking_shows_what_the_service_shows),
};

int main(int argc, char **argv)
{
    return hf_test_main("check", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
