/* Pieces of a run's state that have rows of their own (ledger-P1), and task rows, one for each queue (ledger-W3): written once, read
 * with the run, gone with it. */
#include "fixture.h"
#include "inspect/check.h"
#include "ledger/rows.h"

#include <stdio.h>

static unsigned found_count;
static char found_first[200];

static void on_found(void *state, const char *sentence)
{
    (void)state;
    if (found_count++ == 0) {
        (void)snprintf(found_first, sizeof found_first, "%s", sentence);
    }
}

static unsigned check(void)
{
    hf_check_report report;
    hf_op op;
    hf_op_init(&op);
    hf_check_options options = {.deep = true, .found = on_found};
    found_count = 0;
    assert_int_equal(hf_check_store(&op, hf_rig_heap, rig.store, &options, &report), HF_OK);
    return found_count;
}

/* The rows of a table between two keys. */
static size_t rows_between(hf_table table, hf_key from, hf_key to)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_store_request scan = {.verb = HF_STORE_SCAN, .table = table, .key = from, .key_end = to, .arena = &arena};
    hf_op_init(&scan.op);
    hf_store_execute(rig.store, &scan);
    assert_int_equal(scan.status, HF_OK);
    size_t count = scan.row_count;
    hf_arena_deinit(&arena);
    return count;
}

static size_t parts_of(int64_t run)
{
    hf_key from;
    hf_key to;
    hf_parts_range(run, &from, &to);
    return rows_between(HF_TABLE_HISTORY, from, to);
}

static size_t task_rows(void)
{
    return rows_between(HF_TABLE_TASK, (hf_key){HF_STR(""), 0, 0}, (hf_key){HF_STR("\xff"), 0, 0});
}

/* Everything is dropped from memory with each commit. */
static const hf_core_options COLD = {.mem_max = 1, .names_max = 1, .trim_count = 1, .tail_len_max = 1};

static void ledger_P1_request_ids_are_written_once_and_known_for_ever(void **state)
{
    (void)state;
    enum { COUNT = 2 * HF_PART_REQUEST_COUNT + 10 };
    again(&COLD);
    rig.no_check = true; /* takes the length of the history each time */
    char script[64];
    hf_rig_do(&rig, "start wf");
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(script, sizeof script, "signal wf s request=r%d", i);
        hf_rig_do(&rig, script);
    }
    assert_int_equal(parts_of(1), 2);
    hf_rig_do(&rig, "crash");
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(script, sizeof script, "signal wf s request=r%d", i);
        hf_rig_do(&rig, script);
    }
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_SIGNAL_DEDUPED), COUNT);
    assert_true(hf_rig_probe(&rig, HF_PROBE_PARTS_READ) > 0);
    assert_int_equal(check(), 0);
    hf_rig_do(&rig, "terminate wf; signal wf s request=r7; signal wf s request=new => not_found; delete wf; crash");
    assert_int_equal(parts_of(1), 0);
    assert_int_equal(check(), 0);
}

/* A hash of the record of a part; 0 = there is none. */
static uint64_t part_hash(hf_part_key key)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_store_request get = {.verb = HF_STORE_GET,
                            .table = HF_TABLE_HISTORY,
                            .key = {.a = 1, .b = HF_PART_BASE + (int64_t)key},
                            .arena = &arena};
    hf_op_init(&get.op);
    hf_store_execute(rig.store, &get);
    uint64_t hash = get.found ? hf_hash_bytes(1, get.value.data, get.value.len) : 0;
    hf_arena_deinit(&arena);
    return hash;
}

static void ledger_P1_large_pieces_follow_the_state(void **state)
{
    (void)state;
    hf_core_options options = COLD;
    options.part_len_min = 30;
    again(&options);
    hf_rig_do(&rig, "start wf memo=key:a_value_that_is_quite_long attrs=K:another_one_that_is_long; poll;"
                    "complete activity a input=2000, activity b");
    assert_int_equal(parts_of(1), 4); /* memo, attributes, both activities */
    uint64_t memo = part_hash(HF_PART_MEMO);
    assert_true(memo != 0);
    hf_rig_do(&rig, "signal wf s; crash; describe wf");
    assert_int_equal(part_hash(HF_PART_MEMO), memo);
    assert_int_equal(check(), 0);
    hf_rig_do(&rig, "apoll; acomplete; poll; complete remember key:some_other_value_that_is_long_enough");
    assert_int_equal(parts_of(1), 3);
    assert_true(part_hash(HF_PART_MEMO) != memo);
    assert_int_equal(check(), 0);
    hf_rig_do(&rig, "crash; apoll; acomplete; poll; complete done");
    assert_int_equal(parts_of(1), 2);
    assert_int_equal(check(), 0);
    hf_rig_do(&rig, "crash; describe wf");
}

static void change_part(bool is_removed)
{
    behind((hf_write){.table = HF_TABLE_HISTORY,
                      .kind = is_removed ? HF_WRITE_DELETE : HF_WRITE_PUT,
                      .key = {.a = 1, .b = HF_PART_BASE + HF_PART_MEMO},
                      .value = is_removed ? HF_STR("") : HF_STR("rubbish in the place of a record")});
}

static void ledger_P1_a_part_that_is_missing_or_damaged_stops_its_run(void **state)
{
    (void)state;
    for (int is_removed = 0; is_removed < 2; is_removed++) {
        hf_core_options options = COLD;
        options.part_len_min = 30;
        again(&options);
        hf_rig_do(&rig, "start wf memo=key:a_value_that_is_quite_long; start other; poll; complete timer t 5h");
        change_part(is_removed != 0);
        hf_rig_do(&rig, "crash; signal wf s => store; signal other s");
        assert_true(check() > 0);
        assert_non_null(strstr(found_first, is_removed ? "is missing" : "damaged"));
    }
}

static void ledger_W3_tasks_of_one_queue_share_a_row(void **state)
{
    (void)state;
    again(&COLD);
    hf_rig_do(&rig, "start wf; poll; complete activity a, activity b, activity c, activity d queue=other");
    assert_int_equal(task_rows(), 2);
    assert_int_equal(check(), 0);
    hf_rig_do(&rig, "crash; apoll; apoll as=b in_process; apoll as=c in_process; apoll as=none => parked; drop none;"
                    "apoll as=d queue=other");
    assert_int_equal(task_rows(), 1); /* those that a worker of this process has */
    assert_int_equal(check(), 0);
    hf_rig_do(&rig, "crash; acomplete; acomplete of=d; apoll as=b; acomplete of=b; apoll as=c; acomplete of=c; poll;"
                    "complete done");
    assert_int_equal(task_rows(), 0);
    assert_int_equal(check(), 0);
}

static const struct CMUnitTest TESTS[] = {
    TEST(ledger_P1_request_ids_are_written_once_and_known_for_ever),
    TEST(ledger_P1_large_pieces_follow_the_state),
    TEST(ledger_P1_a_part_that_is_missing_or_damaged_stops_its_run),
    TEST(ledger_W3_tasks_of_one_queue_share_a_row),
};

int main(int argc, char **argv)
{
    return hf_test_main("parts", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
