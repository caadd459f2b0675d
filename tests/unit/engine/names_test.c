/* The index from workflow ids to runs: in memory, on its way to the table, in the table; with hashes that are alike; over
 * crashes; and with rows that were lost. */
#include "engine/load.h"
#include "fixture.h"

#include <stdio.h>

enum { MANY = 60 };

/* A script in which '#' is the number. */
static void do_numbered(const char *script, int number)
{
    char text[200];
    size_t len = 0;
    for (; *script != '\0' && len + 12 < sizeof text; script++) {
        len += *script == '#' ? (size_t)snprintf(text + len, 12, "%d", number)
                              : (size_t)snprintf(text + len, 2, "%c", *script);
    }
    text[len] = '\0';
    hf_rig_do(&rig, text);
}

static uint64_t rows_of(hf_table table)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_store_request scan = {.verb = HF_STORE_SCAN, .table = table, .key_end = hf_key_last(), .arena = &arena};
    hf_op_init(&scan.op);
    hf_store_execute(rig.store, &scan);
    assert_int_equal(scan.status, HF_OK);
    hf_arena_deinit(&arena);
    return scan.row_count;
}

/* Ids in every part of the index find their runs, and nobody else finds any. */
static void expect_all_found(void)
{
    for (int i = 0; i < MANY; i++) {
        if (i % 2 == 0) {
            do_numbered("start wf-# reuse=3 => exists", i); /* it is over, and its id may not be used again */
            do_numbered("signal wf-# s => not_found", i);
        } else {
            do_numbered("signal wf-# s", i);
        }
        do_numbered("signal other-# s => not_found", i);
    }
}

static void play_many(const hf_core_options *options)
{
    again(options);
    for (int i = 0; i < MANY; i++) {
        do_numbered(i % 2 == 0 ? "start wf-#; poll; complete done" : "start wf-#; poll; complete timer t 10h", i);
    }
}

static void every_id_is_found_wherever_its_name_is(void **state)
{
    (void)state;
    static const size_t SIZES[] = {1, 4, 20, MANY};
    for (size_t i = 0; i < HF_COUNT_OF(SIZES); i++) {
        const hf_core_options options = {.mem_max = 20000, .names_max = SIZES[i], .trim_count = 3};
        play_many(&options);
        assert_true(rig.core->index.count <= SIZES[i]);
        assert_true(rows_of(HF_TABLE_NAME) + rig.core->index.count >= MANY / 2);
        expect_all_found();
        for (int crash = 0; crash < 3; crash++) {
            hf_rig_do(&rig, "crash");
            expect_all_found();
        }
    }
}

static void the_log_of_names_is_cut_behind_the_sweep(void **state)
{
    (void)state;
    const hf_core_options options = {.names_max = 3, .trim_count = 2};
    again(&options);
    uint64_t most = 0;
    for (int i = 0; i < 400; i++) {
        do_numbered("start wf-#; poll; complete done", i);
        uint64_t rows = rows_of(HF_TABLE_NAME_LOG);
        most = rows > most ? rows : most;
    }
    print_message("at most %d rows\n", (int)most);
    assert_true(most > 0 && most < 40);
    assert_true(hf_rig_probe(&rig, HF_PROBE_NAMES_SWEPT) > 20);
    assert_int_equal(rows_of(HF_TABLE_NAME) + rig.core->index.count, 400);
}

static void names_that_are_alike_are_told_apart(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 3; bits++) {
        const hf_core_options options = {
            .mem_max = bits == 0 ? 1 : 20000, .names_max = 10, .name_bits_off = HF_NAME_BITS - bits};
        play_many(&options);
        expect_all_found();
        hf_rig_do(&rig, "crash");
        expect_all_found();
        assert_true(hf_rig_probe(&rig, HF_PROBE_NAME_ALIKE) > 100);
    }
}

static void an_id_that_is_used_again_leads_to_its_last_run(void **state)
{
    (void)state;
    const hf_core_options options = {.mem_max = 1, .names_max = 5};
    again(&options);
    for (int i = 0; i < 20; i++) {
        do_numbered("start wf; poll; complete done; start other-#; poll; complete done", i);
        if (i % 7 == 0) {
            hf_rig_do(&rig, "crash");
        }
    }
    hf_rig_do(&rig, "start wf; crash; signal wf s; poll; complete timer t 1h; start wf => exists");
}

static void describe(const char *id, hf_str run_id, hf_status expected)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_describe_workflow_execution_request *request = HF_RIG_REQUEST(slot, describe_workflow_execution);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id), .run_id = run_id};
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = &execution;
    hf_rig_send(&rig, slot, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, request);
    assert_true(slot->done);
    assert_int_equal(slot->call.status, expected);
}

static void a_run_is_found_by_its_id_however_old_it_is(void **state)
{
    (void)state;
    const hf_core_options options = {.mem_max = 1, .names_max = 2};
    again(&options);
    char ids[10][40];
    for (int i = 0; i < 10; i++) {
        hf_rig_do(&rig, "start wf; poll");
        hf_str run_id = hf_rig_task(&rig, "w")->workflow_execution->run_id;
        (void)snprintf(ids[i], sizeof ids[i], "%.*s", HF_STR_ARGS(run_id));
        hf_rig_do(&rig, "complete done");
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(ids[i], ids[j]);
        }
    }
    hf_rig_do(&rig, "crash");
    for (int i = 0; i < 10; i++) {
        describe("wf", hf_str_of(ids[i]), HF_OK);
        describe("other", hf_str_of(ids[i]), HF_ERR_NOT_FOUND);
        char odd[40];
        (void)snprintf(odd, sizeof odd, "%s", ids[i]);
        odd[0] = odd[0] == 'a' ? 'b' : 'a';
        describe("wf", hf_str_of(odd), HF_ERR_NOT_FOUND);
        odd[0] = 'G';
        describe("wf", hf_str_of(odd), HF_ERR_INVALID);
        describe("wf", hf_str_of_len(ids[i], 35), HF_ERR_INVALID);
    }
    describe("wf", HF_STR("00000000-0000-0000-0000-000000000000"), HF_ERR_NOT_FOUND);
    describe("wf", HF_STR("no uuid"), HF_ERR_INVALID);
}

static void expect_refused(const hf_core_options *options, const char *sentence)
{
    hf_core_options same = *options;
    same.memory = hf_rig_heap;
    hf_core *core = NULL;
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_core_open(&op, &same, rig.store, rig.now, &core), HF_ERR_INVALID);
    print_message("%s\n", op.message);
    assert_non_null(strstr(op.message, sentence));
}

static void a_lost_row_of_names_is_noticed_at_opening(void **state)
{
    (void)state;
    const hf_core_options options = {.mem_max = 1, .names_max = 30, .trim_count = 2};
    play_many(&options);
    lose_row(HF_TABLE_NAME_LOG);
    expect_refused(&options, "the journal says");
}

static void a_lost_row_of_a_run_is_noticed_at_opening(void **state)
{
    (void)state;
    const hf_core_options options = {.trim_count = 1000};
    play_many(&options);
    lose_row(HF_TABLE_RUN);
    hf_rig_do(&rig, "crash");
    assert_true(hf_rig_probe(&rig, HF_PROBE_BAD_RECORD) > 0);
    assert_true(HF_SLOT(hf_run_find(rig.core, 1))->bad);
}

/* Commits that bring more than a sweep otherwise moves. The names are of runs that nobody looks for. */
static void names_in_memory_are_bounded_however_many_a_commit_brings(void **state)
{
    (void)state;
    enum { EACH = 5000, MOST = 1000 };
    const hf_core_options options = {.names_max = MOST};
    again(&options);
    for (int64_t commit = 0; commit < 20; commit++) {
        for (int64_t i = 0; i < EACH; i++) {
            int64_t hash = (int64_t)(hf_hash_mix((uint64_t)commit, (uint64_t)i) >> (64 - HF_NAME_BITS));
            hf_names_add(&rig.core->index, hash, 1000 + commit * EACH + i, rig.core->commit_next);
        }
        rig.core->meta_dirty = true;
        assert_true(hf_rig_commit(&rig, false));
        assert_true(rig.core->index.count <= MOST);
    }
}

static const struct CMUnitTest TESTS[] = {
    TEST(every_id_is_found_wherever_its_name_is),     TEST(the_log_of_names_is_cut_behind_the_sweep),
    TEST(names_that_are_alike_are_told_apart),        TEST(an_id_that_is_used_again_leads_to_its_last_run),
    TEST(a_run_is_found_by_its_id_however_old_it_is), TEST(a_lost_row_of_names_is_noticed_at_opening),
    TEST(a_lost_row_of_a_run_is_noticed_at_opening),  TEST(names_in_memory_are_bounded_however_many_a_commit_brings),
};

int main(int argc, char **argv)
{
    return hf_test_main("names", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
