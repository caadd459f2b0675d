/* The state row: what is written is read back, and what a newer version wrote is kept. */
#include "fixture.h"

/* A run with something of every kind. */
static hf_run *rich_run(void)
{
    hf_rig_do(&rig,
              "start wf request=r0 run=1d exec=2d task=5s; poll; complete activity a1 beat=5s, activity a2, "
              "activity a3 initial=1h, activity a4, timer t1 1s, timer t2 1h; apoll as=x in_process;"
              "heartbeat of=x details=half; apoll as=y; afail of=y; apoll as=z; unwanted z; signal wf s0 request=r1;"
              "poll; fail; poll in_process identity=me; time 1s; signal wf s1 request=r2; cancel wf");
    hf_node *node = hf_list_first(&rig.core->runs_all);
    assert_non_null(node);
    return &HF_CONTAINER(node, hf_slot, all_link)->run;
}

static void encode_as(const hf_run *run, hf_encode mode, hf_buf *out)
{
    hf_arena_reset(&rig.core->scratch);
    hf_buf_init(out, hf_rig_heap, SIZE_MAX / 4);
    hf_buf tail;
    hf_buf_init(&tail, hf_rig_heap, SIZE_MAX / 4);
    hf_log_events(run, run->spilled + 1, run->event_count, &tail);
    hf_run_encode(&rig.core->runs_memory, run, mode, hf_str_of_len(tail.data, tail.len), out);
    assert_int_equal(out->status, HF_OK);
    hf_buf_deinit(&tail);
}

static void encode(const hf_run *run, hf_buf *out)
{
    encode_as(run, HF_ENCODE_ALL, out);
}

static bool wants_parts; /* of the row that was decoded last */

static hf_run *decode(hf_str body, int64_t number, hf_status expected)
{
    hf_op op;
    hf_op_init(&op);
    hf_run *run = hf_run_new(&rig.core->runs_memory, number);
    hf_arena_reset(&rig.core->scratch);
    assert_int_equal(hf_run_decode(&op, &rig.core->runs_memory, run, body, NULL, &wants_parts), expected);
    return run;
}

static void a_state_comes_back_from_its_row(void **state)
{
    (void)state;
    const hf_run *run = rich_run();
    assert_int_equal(run->buffered.count, 3); /* timer, signal, cancel */
    assert_int_equal(run->activities.count, 4);
    hf_buf first;
    hf_buf second;
    encode(run, &first);
    hf_run *copy = decode(hf_str_of_len(first.data, first.len), run->number, HF_OK);
    copy->spilled = run->spilled; /* a row says that everything is in rows */
    encode(copy, &second);
    assert_int_equal(first.len, second.len);
    assert_memory_equal(first.data, second.data, first.len);
    hf_run_free(&rig.core->runs_memory, copy);
    hf_buf_deinit(&first);
    hf_buf_deinit(&second);
}

static void what_a_row_leaves_out_comes_back(void **state)
{
    (void)state;
    static const char *const SCRIPTS[] = {
        "start wf; poll; complete done",
        "start wf; poll; complete timer t1 1s; time 5s; cancel wf; time 9s; signal wf s",
        "start wf; poll; complete continue; time 1s; poll; complete done"};
    for (size_t i = 0; i < sizeof SCRIPTS / sizeof *SCRIPTS; i++) {
        print_message("%s\n", SCRIPTS[i]);
        hf_rig_close(&rig);
        hf_rig_open(&rig, (hf_core_options){0});
        hf_rig_do(&rig, SCRIPTS[i]);
        HF_LIST_EACH(node, &rig.core->runs_all)
        {
            const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
            hf_buf row;
            hf_buf all;
            hf_buf again;
            encode_as(run, HF_ENCODE_ROW, &row);
            encode(run, &all);
            hf_run *copy = decode(hf_str_of_len(row.data, row.len), run->number, HF_OK);
            copy->spilled = run->spilled;
            encode(copy, &again);
            assert_true(row.len < all.len);
            assert_int_equal(all.len, again.len);
            assert_memory_equal(all.data, again.data, all.len);
            hf_run_free(&rig.core->runs_memory, copy);
            hf_buf_deinit(&row);
            hf_buf_deinit(&all);
            hf_buf_deinit(&again);
        }
    }
}

static void fields_of_a_newer_version_are_kept(void **state)
{
    (void)state;
    const hf_run *run = rich_run();
    hf_buf body;
    hf_buf again;
    encode(run, &body);
    size_t len = body.len;
    hf_pb_put_bytes(&body, 1000, HF_STR("from the future"));
    hf_pb_put_uint(&body, 1001, 7);
    hf_run *copy = decode(hf_str_of_len(body.data, body.len), run->number, HF_OK);
    encode(copy, &again);
    assert_true(again.len >= body.len - len);
    assert_memory_equal(again.data + again.len - (body.len - len), body.data + len, body.len - len);
    hf_run_free(&rig.core->runs_memory, copy);
    hf_buf_deinit(&body);
    hf_buf_deinit(&again);
}

static void a_row_of_another_run_or_of_nothing_is_refused(void **state)
{
    (void)state;
    const hf_run *run = rich_run();
    hf_buf body;
    encode(run, &body);
    hf_run_free(&rig.core->runs_memory, decode(hf_str_of_len(body.data, body.len), run->number + 1, HF_ERR_INVALID));
    hf_run_free(&rig.core->runs_memory, decode(HF_STR(""), 1, HF_ERR_INVALID));
    hf_run_free(&rig.core->runs_memory, decode(HF_STR("\xff\xff\xff"), 1, HF_ERR_INVALID));
    hf_buf_deinit(&body);
}

static void cut_rows_never_crash_the_reader(void **state)
{
    (void)state;
    const hf_run *run = rich_run();
    hf_buf body;
    encode(run, &body);
    for (size_t len = 0; len < body.len; len++) {
        hf_op op;
        hf_op_init(&op);
        hf_run *copy = hf_run_new(&rig.core->runs_memory, run->number);
        hf_arena_reset(&rig.core->scratch);
        (void)hf_run_decode(&op, &rig.core->runs_memory, copy, hf_str_of_len(body.data, len), NULL, &wants_parts);
        hf_run_free(&rig.core->runs_memory, copy);
    }
    hf_buf_deinit(&body);
    assert_int_equal(hf_core_status(rig.core), HF_OK);
}

static void a_row_that_does_not_check_stops_only_its_run(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.mem_max = 1, .trim_count = 1});
    hf_rig_do(&rig, "start bad; start good; signal good s");
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = 1}, .arena = &arena};
    hf_store_execute(rig.store, &get);
    assert_true(get.found);
    ((char *)(uintptr_t)get.value.data)[get.value.len / 2] ^= 1;
    hf_write write = {.table = HF_TABLE_RUN, .kind = HF_WRITE_PUT, .key = {.a = 1}, .value = get.value};
    hf_store_request commit = {
        .verb = HF_STORE_COMMIT, .commit = rig.core->commit_next, .writes = &write, .write_count = 1};
    hf_store_execute(rig.store, &commit);
    assert_int_equal(commit.status, HF_OK);
    rig.core->commit_next++; /* as if it had been the core's own */
    rig.core->commit_durable++;
    rig.core->journal_first = rig.core->commit_next;
    rig.core->journal_lens.count = rig.core->journal_start = rig.core->journal_len = 0;
    hf_rig_do(&rig,
              "signal bad s => store; signal bad s => store; start bad => store; signal good s; poll; complete done");
    hf_arena_deinit(&arena);
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_state_comes_back_from_its_row),    TEST(what_a_row_leaves_out_comes_back),
    TEST(fields_of_a_newer_version_are_kept), TEST(a_row_of_another_run_or_of_nothing_is_refused),
    TEST(cut_rows_never_crash_the_reader),    TEST(a_row_that_does_not_check_stops_only_its_run),
};

int main(int argc, char **argv)
{
    return hf_test_main("state", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
