/* Deleting runs: nobody finds them any more, all of their rows go and nobody else's, older runs do not take their place, and a
 * crash at any moment changes nothing of that. */
#include "engine/load.h"
#include "fixture.h"
#include "inspect/check.h"
#include "inspect/look.h"
#include "ledger/kept.h"

#include <stdio.h>

static size_t rows_of(hf_table table)
{
    hf_store_count count = {0};
    hf_store_request stats = {.verb = HF_STORE_STATS, .count = &count};
    hf_store_execute(rig.store, &stats);
    return (size_t)stats.stats.rows[table];
}

static void on_found(void *state, const char *sentence)
{
    (void)state;
    fail_msg("%s", sentence);
}

static void assert_sound(void)
{
    if (rig.core->options.name_bits_off != 0) {
        return; /* a tool takes the names for others */
    }
    hf_check_report report;
    hf_op op;
    hf_op_init(&op);
    hf_check_options options = {.deep = true, .found = on_found};
    assert_int_equal(hf_check_store(&op, hf_rig_heap, rig.store, &options, &report), HF_OK);
}

typedef struct id {
    char text[40];
} id;

/* Starts a run, and ends it if `ends`. */
static id start(const char *workflow_id, bool ends)
{
    char script[100];
    id it;
    (void)snprintf(script, sizeof script, "start %s; poll", workflow_id);
    hf_rig_do(&rig, script);
    (void)snprintf(it.text, sizeof it.text, "%.*s", HF_STR_ARGS(hf_rig_task(&rig, "w")->workflow_execution->run_id));
    hf_rig_do(&rig, ends ? "complete done" : "complete timer t 10h");
    return it;
}

static hf_status describe(const char *workflow_id, const char *run_id)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_describe_workflow_execution_request *request = HF_RIG_REQUEST(slot, describe_workflow_execution);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(workflow_id), .run_id = hf_str_of(run_id)};
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = &execution;
    hf_rig_send(&rig, slot, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, request);
    assert_true(slot->done);
    return slot->call.status;
}

static void delete_run(const char *workflow_id, const id *run, const char *expected)
{
    char script[160];
    (void)snprintf(script, sizeof script, "delete %s run_id=%s%s%s", workflow_id, run->text,
                   expected[0] != '\0' ? " => " : "", expected);
    hf_rig_do(&rig, script);
}

/* Journals so short that they are cut, and so long that they are not; names in memory and in the table; runs in memory and not. */
static const hf_core_options OPTIONS[] = {
    {.mem_max = 0},
    {.mem_max = 1, .names_max = 1, .trim_count = 1, .tail_len_max = 1},
    {.mem_max = 1, .names_max = 1, .trim_count = 100000, .tail_len_max = 1},
    {.names_max = 2, .trim_count = 2},
    {.mem_max = 1, .names_max = 100, .trim_count = 1, .name_bits_off = HF_NAME_BITS},
    {.mem_max = 1, .names_max = 1, .trim_count = 3, .name_bits_off = HF_NAME_BITS - 1},
};

static void an_open_run_is_terminated_and_goes(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        (void)start("other", false);
        size_t runs = rows_of(HF_TABLE_RUN);
        id run = start("wf", false);
        hf_rig_do(&rig, "signal wf s; delete wf");
        assert_int_equal(describe("wf", ""), HF_ERR_NOT_FOUND);
        assert_int_equal(describe("wf", run.text), HF_ERR_NOT_FOUND);
        hf_rig_do(&rig, "signal wf s => not_found; cancel wf => not_found; terminate wf => not_found;"
                        "delete wf => not_found");
        delete_run("wf", &run, "not_found");
        assert_int_equal(hf_rig_probe(&rig, HF_PROBE_DELETED), 1);
        assert_true(rows_of(HF_TABLE_RUN) <= runs + 1); /* "other" may have got its row */
        assert_sound();
        for (int crash = 0; crash < 3; crash++) {
            hf_rig_do(&rig, "crash");
            assert_int_equal(describe("wf", ""), HF_ERR_NOT_FOUND);
            assert_int_equal(describe("wf", run.text), HF_ERR_NOT_FOUND);
            assert_int_equal(describe("other", ""), HF_OK);
            assert_sound();
        }
        hf_rig_do(&rig, "start wf; signal wf s; terminate wf; delete wf; terminate other; delete other; crash");
        assert_int_equal(rows_of(HF_TABLE_RUN), 0);
        assert_int_equal(rows_of(HF_TABLE_HISTORY), 0);
        assert_int_equal(rows_of(HF_TABLE_DUE), 0);
        assert_int_equal(rows_of(HF_TABLE_TASK), 0);
        assert_sound();
    }
}

static void older_runs_do_not_take_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        id runs[6];
        for (int j = 0; j < 6; j++) {
            runs[j] = start("wf", j < 5);
            (void)start("noise", true);
        }
        hf_rig_do(&rig, "delete wf");
        for (int crash = 0; crash < 2; crash++) {
            assert_int_equal(describe("wf", ""), HF_ERR_NOT_FOUND);
            for (int j = 0; j < 6; j++) {
                assert_int_equal(describe("wf", runs[j].text), j < 5 ? HF_OK : HF_ERR_NOT_FOUND);
            }
            assert_int_equal(describe("noise", ""), HF_OK);
            assert_sound();
            hf_rig_do(&rig, "crash");
        }
        assert_int_equal(hf_rig_probe(&rig, HF_PROBE_UNNAMED), 5);
        delete_run("wf", &runs[2], "");
        assert_int_equal(describe("wf", runs[2].text), HF_ERR_NOT_FOUND);
        hf_rig_do(&rig, "start wf reuse=3 request=r; signal wf s; crash; delete wf; signal wf s => not_found; crash");
        assert_int_equal(describe("wf", ""), HF_ERR_NOT_FOUND);
        assert_int_equal(describe("wf", runs[4].text), HF_OK);
        assert_sound();
    }
}

static void a_run_behind_another_goes_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        id runs[3];
        for (int j = 0; j < 3; j++) {
            runs[j] = start("wf", true);
        }
        delete_run("wf", &runs[1], "");
        delete_run("other", &runs[0], "not_found");
        assert_int_equal(hf_rig_probe(&rig, HF_PROBE_UNNAMED), 0);
        for (int crash = 0; crash < 2; crash++) {
            assert_int_equal(describe("wf", ""), HF_OK);
            assert_int_equal(describe("wf", runs[0].text), HF_OK);
            assert_int_equal(describe("wf", runs[1].text), HF_ERR_NOT_FOUND);
            assert_int_equal(describe("wf", runs[2].text), HF_OK);
            hf_rig_do(&rig, "start wf reuse=3 => exists");
            assert_sound();
            hf_rig_do(&rig, "crash");
        }
    }
}

static void all_runs_of_an_id_go_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        id runs[5];
        for (int j = 0; j < 5; j++) {
            runs[j] = start("wf", j < 4);
        }
        (void)start("other", true);
        hf_rig_do(&rig, "delete wf all");
        for (int crash = 0; crash < 2; crash++) {
            for (int j = 0; j < 5; j++) {
                assert_int_equal(describe("wf", runs[j].text), HF_ERR_NOT_FOUND);
            }
            assert_int_equal(describe("wf", ""), HF_ERR_NOT_FOUND);
            assert_int_equal(describe("other", ""), HF_OK);
            assert_int_equal(rows_of(HF_TABLE_RUN), 1);
            assert_sound();
            hf_rig_do(&rig, "crash");
        }
        hf_rig_do(&rig, "delete wf all => not_found; start wf; signal wf s");
        char script[100];
        (void)snprintf(script, sizeof script, "delete wf all run_id=%s => not_found", runs[0].text);
        hf_rig_do(&rig, script);
    }
}

/* Before, between and after the commits of a deletion. */
static void a_crash_at_any_commit_delays_it_and_does_not_undo_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        for (int commits = 0; commits < 8; commits++) {
            again(&OPTIONS[i]);
            id old = start("wf", true);
            id run = start("wf", false);
            hf_rig_do(&rig, "signal wf s");
            hf_rig_call *slot = hf_rig_slot(&rig, NULL);
            hf_pb_delete_workflow_execution_request *request = HF_RIG_REQUEST(slot, delete_workflow_execution);
            hf_pb_workflow_execution execution = {.workflow_id = HF_STR("wf"), .run_id = hf_str_of(run.text)};
            request->namespace = HF_STR(HF_RIG_NS);
            request->workflow_execution = &execution;
            rig.hold = true;
            hf_rig_submit(&rig, slot, HF_METHOD_DELETE_WORKFLOW_EXECUTION, request);
            for (int j = 0; j < commits; j++) {
                while (hf_rig_read(&rig)) {
                }
                hf_core_tick(rig.core, rig.now);
                while (hf_rig_read(&rig)) {
                }
                (void)hf_rig_commit(&rig, false);
            }
            rig.hold = false;
            bool was_told = slot->done && slot->call.status == HF_OK;
            hf_rig_crash(&rig);
            (void)hf_rig_settle(&rig);
            hf_status there = describe("wf", run.text);
            if (was_told) {
                assert_int_equal(there, HF_ERR_NOT_FOUND);
            }
            assert_int_equal(describe("wf", ""), there);
            assert_int_equal(describe("wf", old.text), HF_OK);
            assert_sound();
            assert_true(commits < 2 || was_told);
            assert_int_equal(there == HF_OK, commits == 0);
            if (commits > 0) {
                assert_null(hf_run_find(rig.core, 2));
                hf_rig_do(&rig, "start wf; signal wf s; terminate wf");
            }
        }
    }
}

/* A message of "wf" waits, because its target is on disk and the store does not answer; "wf" is to be deleted. */
static void send_and_delete(const char *start)
{
    again(&(hf_core_options){.mem_max = 1});
    hf_rig_do(&rig, "start to; poll; complete timer t 1h");
    hf_rig_do(&rig, start);
    hf_rig_do(&rig, "poll; time 1s");
    rig.hold = true;
    (void)hf_rig_try(&rig, "complete xsignal to s2, timer t 1h");
    assert_true(hf_rig_read(&rig)); /* "wf" itself */
    assert_true(hf_rig_commit(&rig, false));
    char step[120];
    (void)snprintf(step, sizeof step, "delete wf run_id=%.*s",
                   HF_STR_ARGS(hf_rig_task(&rig, "w")->workflow_execution->run_id));
    (void)hf_rig_try(&rig, step);
    assert_true(hf_rig_commit(&rig, false));
}

static void it_waits_for_its_messages(void **state)
{
    (void)state;
    send_and_delete("start wf");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_DELETED), 0);
    assert_true(hf_rig_probe(&rig, HF_PROBE_DELETED_WAITED) > 0);
    rig.hold = false;
    assert_true(hf_rig_settle(&rig));
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_DELETED), 1);
    assert_int_equal(describe("to", ""), HF_OK);
    assert_sound();
    hf_rig_do(&rig, "start wf; crash; signal wf s");
}

static void a_start_takes_the_id_of_a_run_that_waits_to_go(void **state)
{
    (void)state;
    send_and_delete("start wf request=r");
    (void)hf_rig_try(&rig, "start wf request=r reuse=3");
    rig.hold = false;
    assert_true(hf_rig_settle(&rig));
    hf_rig_do(&rig, "crash; start wf => exists; signal wf s; crash");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_DELETED), 1);
    hf_rig_do(&rig, "signal wf s; terminate wf");
    assert_sound();
}

static void a_long_poll_on_it_is_answered(void **state)
{
    (void)state;
    id run = start("wf", false);
    hf_rig_call *slot = hf_rig_slot(&rig, "h");
    hf_pb_get_workflow_execution_history_request *request = HF_RIG_REQUEST(slot, get_workflow_execution_history);
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("wf"), .run_id = hf_str_of(run.text)};
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = &execution;
    request->wait_new_event = true;
    request->history_event_filter_type = HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT;
    hf_rig_send(&rig, slot, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, request);
    assert_false(slot->done);
    hf_rig_do(&rig, "delete wf");
    assert_true(slot->done);
    assert_int_equal(slot->call.status, HF_OK);
    assert_sound();
}

/* A row as it was, damaged behind the engine's back. */
static void damage_run(int64_t number)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = number}, .arena = &arena};
    hf_op_init(&get.op);
    hf_store_execute(rig.store, &get);
    assert_true(get.found);
    char *bytes = hf_arena_take(&arena, get.value.len, 1);
    memcpy(bytes, get.value.data, get.value.len);
    bytes[get.value.len - 1] ^= 4;
    behind((hf_write){
        .table = HF_TABLE_RUN, .kind = HF_WRITE_PUT, .key = get.key, .value = hf_str_of_len(bytes, get.value.len)});
    hf_arena_deinit(&arena);
    hf_rig_do(&rig, "crash");
}

static void a_damaged_run_can_be_deleted_by_its_run_id(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        if (OPTIONS[i].name_bits_off != 0) {
            continue; /* names that are alike cannot be told apart without the row */
        }
        hf_core_options options = OPTIONS[i];
        options.mem_max = 1; /* it gets rows, deadline and task */
        again(&options);
        id old = start("wf", true);
        hf_rig_do(&rig, "start wf queue=q2");
        hf_rig_do(&rig, "poll as=x queue=q2; complete of=x timer t 10h, activity a queue=q3");
        id run;
        (void)snprintf(run.text, sizeof run.text, "%.*s",
                       HF_STR_ARGS(hf_rig_task(&rig, "x")->workflow_execution->run_id));
        (void)start("other", false);
        hf_rig_do(&rig, "signal wf s");
        damage_run(2);
        hf_rig_do(&rig, "signal wf s => store; delete wf => store");
        delete_run("nobody", &run, "not_found");
        hf_rig_do(&rig, "signal wf s => store");
        delete_run("wf", &run, "");
        for (int crash = 0; crash < 2; crash++) {
            assert_int_equal(describe("wf", ""), HF_ERR_NOT_FOUND);
            assert_int_equal(describe("wf", run.text), HF_ERR_NOT_FOUND);
            assert_int_equal(describe("wf", old.text), HF_OK);
            assert_int_equal(describe("other", ""), HF_OK);
            assert_sound();
            hf_rig_do(&rig, "crash");
        }
        assert_int_equal(hf_rig_probe(&rig, HF_PROBE_DELETED_BAD), 1);
        hf_rig_do(&rig, "start wf; signal wf s");
        hf_rig_do(&rig, "apoll queue=q3 => parked"); /* its task is gone, too */
    }
}

static void an_older_run_that_is_damaged_holds_it_up(void **state)
{
    (void)state;
    static const hf_core_options ROWS = {.mem_max = 1, .trim_count = 2, .names_max = 1};
    again(&ROWS);
    id old = start("wf", true);
    (void)start("wf", false);
    hf_rig_do(&rig, "signal wf s");
    damage_run(1);
    hf_rig_do(&rig, "delete wf; signal wf s => not_found");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_DELETED_STUCK), 1);
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_DELETED), 0);
    hf_rig_do(&rig, "crash; signal wf s => not_found");
    delete_run("wf", &old, "");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_DELETED), 1); /* now nothing is in its way */
    hf_rig_do(&rig, "signal wf s => not_found; start wf; signal wf s; crash; signal wf s");
    assert_sound();
}

/* A parent ends, and its close policy is for a child that cannot be read; or a child ends, and its parent cannot be read. Each waits in
 * memory for the other, until that is deleted: then nobody is left who could hear of it. */
static void the_end_of_a_run_does_not_wait_for_a_damaged_one_that_is_deleted(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool is_child_bad = i % 2 == 0;
        again(&(hf_core_options){.mem_max = 1});
        hf_rig_do(&rig, "start wf; poll; complete child kid queue=p; poll; complete; poll queue=p as=k");
        id runs[2];
        (void)snprintf(runs[0].text, sizeof runs[0].text, "%.*s",
                       HF_STR_ARGS(hf_rig_task(&rig, "w")->workflow_execution->run_id));
        (void)snprintf(runs[1].text, sizeof runs[1].text, "%.*s",
                       HF_STR_ARGS(hf_rig_task(&rig, "k")->workflow_execution->run_id));
        hf_rig_do(&rig, "complete of=k timer t 10h");
        damage_run(is_child_bad ? 2 : 1);
        hf_rig_do(&rig, is_child_bad ? "terminate wf" : "terminate kid");
        assert_non_null(hf_run_find(rig.core, is_child_bad ? 1 : 2)); /* it waits */
        if (i >= 2) {                                                 /* the process may end meanwhile */
            hf_rig_do(&rig, "crash; time 1s");
            assert_non_null(hf_run_find(rig.core, is_child_bad ? 1 : 2));
        }
        delete_run(is_child_bad ? "kid" : "wf", &runs[is_child_bad ? 1 : 0], "");
        hf_rig_do(&rig, "time 1s");
        assert_int_equal(rig.core->runs.count, 0);
        assert_sound();
        hf_rig_do(&rig, "crash; time 1s");
        assert_int_equal(rig.core->runs.count, 0);
    }
}

/* Looking at a file: neither damaged nor there. */
static void tools_do_not_show_it(void **state)
{
    (void)state;
    id run = start("wf", false);
    (void)start("other", true);
    hf_rig_do(&rig, "delete wf");
    hf_op op;
    hf_op_init(&op);
    hf_look *look = NULL;
    int64_t number = 0;
    uint64_t count = 0;
    assert_int_equal(hf_look_open(&op, hf_rig_heap, rig.store, &look), HF_OK);
    assert_int_equal(hf_look_find(&op, look, HF_STR(HF_RIG_NS), HF_STR("wf"), &number), HF_ERR_NOT_FOUND);
    assert_int_equal(hf_look_find(&op, look, HF_STR(HF_RIG_NS), hf_str_of(run.text), &number), HF_ERR_NOT_FOUND);
    assert_int_equal(hf_look_find(&op, look, HF_STR(HF_RIG_NS), HF_STR("other"), &number), HF_OK);
    assert_int_equal(hf_look_count(&op, look, &count), HF_OK);
    assert_int_equal(count, 1);
    hf_run *it = NULL;
    hf_op_init(&op);
    assert_int_equal(hf_look_run(&op, look, 1, &it), HF_ERR_NOT_FOUND);
    assert_non_null(strstr(op.message, "it was deleted"));
    assert_int_equal(hf_look_gone(look, 0), 1);
    assert_int_equal(hf_look_gone(look, 1), 0);
    hf_look_close(look);
}

static void the_file_does_not_grow_when_runs_go(void **state)
{
    (void)state;
    static const hf_core_options SMALL = {.names_max = 4, .trim_count = 4, .journal_len_max = 4096};
    again(&SMALL);
    for (int i = 0; i < 200; i++) {
        char script[100];
        (void)snprintf(script, sizeof script, "start wf-%d; poll; complete done; delete wf-%d", i, i);
        hf_rig_do(&rig, script);
    }
    assert_int_equal(rows_of(HF_TABLE_RUN), 0);
    assert_true(rows_of(HF_TABLE_NAME) <= 4); /* gone in memory, not swept yet */
    assert_true(rows_of(HF_TABLE_NAME_LOG) < 40);
    assert_sound();
}

static const struct CMUnitTest TESTS[] = {
    TEST(an_open_run_is_terminated_and_goes),
    TEST(older_runs_do_not_take_its_place),
    TEST(a_run_behind_another_goes_alone),
    TEST(all_runs_of_an_id_go_together),
    TEST(a_crash_at_any_commit_delays_it_and_does_not_undo_it),
    TEST(it_waits_for_its_messages),
    TEST(a_start_takes_the_id_of_a_run_that_waits_to_go),
    TEST(a_long_poll_on_it_is_answered),
    TEST(a_damaged_run_can_be_deleted_by_its_run_id),
    TEST(the_end_of_a_run_does_not_wait_for_a_damaged_one_that_is_deleted),
    TEST(an_older_run_that_is_damaged_holds_it_up),
    TEST(tools_do_not_show_it),
    TEST(the_file_does_not_grow_when_runs_go),
};

int main(int argc, char **argv)
{
    return hf_test_main("delete", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
