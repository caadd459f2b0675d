/* What the engine's tests share: a rig that is opened and closed around every test. */
#ifndef HF_TESTS_ENGINE_FIXTURE_H
#define HF_TESTS_ENGINE_FIXTURE_H

#include "support/engine_rig.h"

static hf_rig rig;

static inline int open_rig(void **state)
{
    (void)state;
    hf_rig_open(&rig, (hf_core_options){0});
    return 0;
}

static inline int close_rig(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    return 0;
}

/* With other options. */
static inline void again(const hf_core_options *options)
{
    hf_rig_close(&rig);
    hf_rig_open(&rig, *options);
}

/* One more commit, behind the engine's back; the journal goes on as it was. Then the engine has to be opened again. */
static inline void both_behind(hf_write write, hf_write other)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    uint64_t last = rig.store->ops->last_commit(rig.store);
    hf_store_request end = {
        .verb = HF_STORE_GET, .table = HF_TABLE_JOURNAL, .key = {.a = (int64_t)last}, .arena = &arena};
    hf_op_init(&end.op);
    hf_store_execute(rig.store, &end);
    assert_true(end.found);
    hf_str body = {0};
    hf_key key = {.a = (int64_t)last + 1};
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_record_open(&op, HF_TABLE_JOURNAL, &end.key, end.value, &body), HF_OK);
    hf_buf row;
    hf_buf_init(&row, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_put(&row, "            ", HF_RECORD_HEADER_LEN);
    hf_pb_put_uint(&row, 1, last + 1);
    hf_pb_put_tag(&row, 3, HF_PB_WIRE_64);
    hf_buf_put(&row, &rig.core->journal_hash, sizeof rig.core->journal_hash);
    hf_pb_put_uint(&row, 5, (uint64_t)rig.core->run_next);
    hf_pb_put_uint(&row, 6, (uint64_t)rig.core->order_next);
    hf_pb_put_uint(&row, 8, rig.core->index.log_count);
    hf_pb_put_uint(&row, 10, (uint64_t)rig.core->held_rows + 1);
    hf_record_seal(HF_TABLE_JOURNAL, &key, row.data, row.len - HF_RECORD_HEADER_LEN);
    hf_write writes[] = {
        write,
        other,
        {.table = HF_TABLE_JOURNAL, .kind = HF_WRITE_PUT, .key = key, .value = hf_str_of_len(row.data, row.len)},
    };
    hf_store_request commit = {.verb = HF_STORE_COMMIT, .commit = last + 1, .writes = writes, .write_count = 3};
    hf_op_init(&commit.op);
    hf_store_execute(rig.store, &commit);
    assert_int_equal(commit.status, HF_OK);
    hf_buf_deinit(&row);
    hf_arena_deinit(&arena);
}

static inline void behind(hf_write write)
{
    both_behind(write, write);
}

/* The first row of a table is gone. */
static inline void lose_row(hf_table table)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_store_request scan = {
        .verb = HF_STORE_SCAN, .table = table, .key_end = hf_key_last(), .row_max = 1, .arena = &arena};
    hf_op_init(&scan.op);
    hf_store_execute(rig.store, &scan);
    assert_int_equal(scan.row_count, 1);
    behind((hf_write){.table = table, .kind = HF_WRITE_DELETE, .key = scan.rows[0].key});
    hf_arena_deinit(&arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

/* A test that is a script and the history it leaves. */
#define GOLDEN(name, script, history)        \
    static void name(void **state)           \
    {                                        \
        (void)state;                         \
        hf_rig_do(&rig, script);             \
        hf_rig_history(&rig, "wf", history); \
    }

#define START                      \
    "1 WorkflowExecutionStarted\n" \
    "2 WorkflowTaskScheduled attempt=1\n"
#define FIRST_TASK                        \
    START                                 \
    "3 WorkflowTaskStarted scheduled=2\n" \
    "4 WorkflowTaskCompleted scheduled=2 started=3\n"
#define FIRST_ACTIVITY FIRST_TASK "5 ActivityTaskScheduled a1\n"

#endif
