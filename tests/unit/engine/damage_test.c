/* Records that are damaged when the store is opened: they stop their run and nobody else, and nothing of it is lost (kept.c). */
#include "fixture.h"

#include "engine/load.h"
#include "inspect/check.h"
#include "inspect/look.h"
#include "ledger/rows.h"

#include <stdio.h>
#include <stdlib.h>

/* A row as it was. */
typedef struct saved {
    hf_table table;
    hf_arena arena;
    hf_key key;
    hf_str value;
} saved;

static saved take(hf_table table, size_t index)
{
    saved row = {.table = table};
    hf_arena_init(&row.arena, hf_rig_heap);
    hf_store_request scan = {
        .verb = HF_STORE_SCAN, .table = table, .key_end = hf_key_last(), .row_max = index + 1, .arena = &row.arena};
    hf_op_init(&scan.op);
    hf_store_execute(rig.store, &scan);
    assert_int_equal(scan.row_count, index + 1);
    row.key = scan.rows[index].key;
    row.value = scan.rows[index].value;
    return row;
}

/* All of these have to happen between a step and a crash: the engine does not know of the commit. */
static hf_write damaged(saved *row)
{
    char *bytes = hf_arena_take(&row->arena, row->value.len, 1);
    memcpy(bytes, row->value.data, row->value.len);
    bytes[row->value.len - 1] ^= 4;
    return (hf_write){
        .table = row->table, .kind = HF_WRITE_PUT, .key = row->key, .value = hf_str_of_len(bytes, row->value.len)};
}

static void damage(saved *row)
{
    behind(damaged(row));
}

static void lose(const saved *row)
{
    behind((hf_write){.table = row->table, .kind = HF_WRITE_DELETE, .key = row->key});
}

static void repair(saved *row)
{
    behind((hf_write){.table = row->table, .kind = HF_WRITE_PUT, .key = row->key, .value = row->value});
    hf_arena_deinit(&row->arena);
}

/* The engine's own row and that of the namespace; a row of kept changes is one more. */
enum { META_ROWS = 2 };

static size_t rows_of(hf_table table)
{
    hf_store_count count = {0};
    hf_store_request stats = {.verb = HF_STORE_STATS, .count = &count};
    hf_store_execute(rig.store, &stats);
    return (size_t)stats.stats.rows[table];
}

/* What `holdfast db check` says of the store: how much is wrong, and whether it names the run. */
typedef struct told {
    const char *name;
    size_t count;
    bool named;
} told;

static void on_found(void *state, const char *sentence)
{
    told *t = state;
    t->count++;
    t->named = t->named || strstr(sentence, t->name) != NULL;
}

static told check(const char *name)
{
    told t = {.name = name};
    hf_check_report report;
    hf_op op;
    hf_op_init(&op);
    hf_check_options options = {.deep = true, .found = on_found, .state = &t};
    assert_int_equal(hf_check_store(&op, hf_rig_heap, rig.store, &options, &report), HF_OK);
    return t;
}

static void assert_sound(void)
{
    assert_int_equal(check("").count, 0);
}

/* Run 1 has a row and changes in the journal behind it; run 2 goes on whatever happens to it. */
static void play(void)
{
    const hf_core_options options = {.trim_count = 2, .journal_len_max = 1 << 20, .mem_max = 1 << 20};
    again(&options);
    hf_rig_do(&rig, "start wf; poll; complete timer t 10h");
    rig.core->options.mem_max = 1; /* everything gets rows */
    hf_rig_do(&rig, "start other; poll; complete timer t 10h");
    rig.core->options.mem_max = options.mem_max;
    assert_int_equal(rows_of(HF_TABLE_RUN), 2);
    hf_rig_do(&rig, "signal wf s request=r1 input=300; signal wf s request=r2");
    assert_true(hf_node_is_linked(&HF_SLOT(hf_run_find(rig.core, 1))->dirty_link));
}

/* All that was answered for, and the timer, which comes late. */
#define ANSWERED                                     \
    FIRST_TASK "5 TimerStarted t after=36000s\n"     \
               "6 WorkflowExecutionSignaled s\n"     \
               "7 WorkflowTaskScheduled attempt=1\n" \
               "8 WorkflowExecutionSignaled s\n"     \
               "9 TimerFired t started=5\n"

/* So many commits that the journal is cut behind all that came before. */
static void go_on(void)
{
    for (int i = 0; i < 20; i++) {
        hf_rig_do(&rig, "signal other s");
    }
    hf_rig_do(&rig, "poll; complete done; start other; poll; complete timer t 10h; start third; poll; complete done");
    hf_rig_do(&rig, "terminate other; start other; poll; complete timer t 10h");
}

static void refused(const char *step)
{
    hf_rig_do(&rig, step);
    assert_non_null(strstr(hf_rig_slot(&rig, NULL)->call.message, "the records of run 1 are damaged"));
}

/* It is bad, and stays so; the others go on. */
static void others_go_on(void)
{
    refused("signal wf s request=r3 => store");
    refused("terminate wf => store");
    refused("start wf request=r4 => store");
    uint64_t first = rig.core->journal_first;
    go_on();
    assert_true(rig.core->journal_first > first);
    refused("signal wf s request=r3 => store");
    hf_rig_do(&rig, "time 11h; poll; complete done; start other; poll; complete timer t 10h");
    refused("cancel wf => store");
}

static void a_run_whose_row_is_damaged_stops_alone_and_keeps_its_changes(void **state)
{
    (void)state;
    play();
    saved row = take(HF_TABLE_RUN, 0);
    damage(&row);
    hf_rig_do(&rig, "crash");
    others_go_on();
    told t = check("run a=1");
    assert_true(t.count > 0 && t.named);
    hf_rig_do(&rig, "crash"); /* what the journal had of it is cut by now */
    others_go_on();
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_KEPT), 1);
    assert_int_equal(rows_of(HF_TABLE_META), META_ROWS + 1);
    repair(&row);
    assert_sound();                                                           /* row, kept changes and history fit */
    hf_rig_do(&rig, "crash; signal wf s request=r1; signal wf s request=r2"); /* both are known */
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_KEPT_APPLIED), 1);
    assert_int_equal(rows_of(HF_TABLE_META), META_ROWS);
    assert_sound();
    hf_rig_history(&rig, "wf", ANSWERED);
    hf_rig_do(&rig, "crash; poll; complete done; crash");
    assert_sound();
}

/* As often as it takes: each of these openings ends before its first commit is durable. */
static void a_crash_before_the_first_commit_changes_nothing(void **state)
{
    (void)state;
    play();
    saved row = take(HF_TABLE_RUN, 0);
    damage(&row);
    for (int i = 0; i < 3; i++) {
        hf_rig_crash(&rig);
        assert_int_equal(rows_of(HF_TABLE_META), META_ROWS);
    }
    assert_true(hf_rig_settle(&rig));
    others_go_on();
    assert_int_equal(rows_of(HF_TABLE_META), META_ROWS + 1);
    repair(&row);
    for (int i = 0; i < 3; i++) {
        hf_rig_crash(&rig);
        assert_int_equal(rows_of(HF_TABLE_META), META_ROWS + 1);
    }
    assert_true(hf_rig_settle(&rig));
    hf_rig_do(&rig, "signal wf s request=r2");
    hf_rig_history(&rig, "wf", ANSWERED);
    assert_sound();
}

static void a_run_whose_row_is_gone_stops_alone(void **state)
{
    (void)state;
    play();
    saved row = take(HF_TABLE_RUN, 0);
    lose(&row);
    hf_rig_do(&rig, "crash");
    others_go_on();
    hf_rig_do(&rig, "crash");
    others_go_on();
    assert_true(check("run 1").named);
    repair(&row);
    hf_rig_do(&rig, "crash; signal wf s request=r1");
    hf_rig_history(&rig, "wf", ANSWERED);
    assert_sound();
}

/* The journal begins with the run's first commit and knows that it had rows later: what came between is in those alone. */
static void a_run_is_not_brought_back_without_its_row(void **state)
{
    (void)state;
    const hf_core_options options = {.trim_count = 1000};
    again(&options);
    hf_rig_do(&rig, "start wf; start other; poll");
    rig.core->options.mem_max = 1;
    hf_rig_do(&rig, "complete done");
    rig.core->options.mem_max = 1 << 20;
    saved row = take(HF_TABLE_RUN, 0);
    assert_int_equal(row.key.a, 1);
    lose(&row);
    hf_rig_do(&rig, "crash");
    refused("signal wf s => store");
    hf_rig_do(&rig, "crash; signal other s; crash");
    refused("signal wf s => store");
    repair(&row);
    hf_rig_do(&rig, "crash; signal wf s => not_found"); /* it is closed */
    assert_sound();
}

static void kept_changes_that_are_damaged_are_not_passed_over(void **state)
{
    (void)state;
    play();
    saved row = take(HF_TABLE_RUN, 0);
    damage(&row);
    hf_rig_do(&rig, "crash");
    go_on();
    saved kept = take(HF_TABLE_META, 1);
    damage(&kept);
    hf_rig_do(&rig, "crash");
    repair(&row);
    hf_rig_do(&rig, "crash"); /* the row alone is not the run */
    others_go_on();
    assert_true(check("kept/0000000000000001").named && check("kept for run 1").named);
    hf_rig_do(&rig, "crash");
    repair(&kept);
    hf_rig_do(&rig, "crash; signal wf s request=r2");
    hf_rig_history(&rig, "wf", ANSWERED);
    assert_sound();
}

/* ---- What dead workers held ------------------------------------------------------------------------------------------- */

static void play_held(void)
{
    const hf_core_options options = {.mem_max = 1, .trim_count = 1};
    again(&options);
    hf_rig_do(&rig, "start wf; poll in_process as=x; start other; poll in_process as=y");
}

static void a_held_task_of_a_damaged_run_stops_that_run_alone(void **state)
{
    (void)state;
    play_held();
    saved row = take(HF_TABLE_RUN, 0);
    damage(&row);
    hf_rig_do(&rig, "crash; poll; complete done"); /* the other one's */
    refused("signal wf s => store");
    hf_rig_do(&rig, "crash");
    repair(&row);
    hf_rig_do(&rig, "crash; poll; complete done; signal wf s => not_found");
    assert_sound();
}

static void a_held_task_whose_record_is_damaged_is_handed_out_again(void **state)
{
    (void)state;
    play_held();
    saved row = take(HF_TABLE_TASK, 0);
    assert_true(hf_str_equal(row.key.text, HF_STR("h")));
    damage(&row);
    hf_rig_do(&rig, "crash; poll as=x; complete of=x done; poll as=y; complete of=y done");
    hf_rig_do(&rig, "signal wf s => not_found; signal other s => not_found");
    assert_int_equal(rows_of(HF_TABLE_TASK), 0);
    assert_sound();
    hf_arena_deinit(&row.arena);
}

/* The row is there, under a key that no opening looks at. The bit may be in the queue's text or in the order. */
static void ledger_J4_a_held_task_whose_key_is_wrong_is_handed_out_again(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        play_held();
        assert_int_equal(rig.core->held_rows, 2);
        saved row = take(HF_TABLE_TASK, 0);
        assert_true(hf_str_equal(row.key.text, HF_STR("h")));
        hf_key wrong = row.key;
        wrong.text = i == 0 ? HF_STR("i") : i == 1 ? HF_STR("H") : row.key.text;
        wrong.a ^= i == 2 ? INT64_C(1) << 40 : 0;
        both_behind((hf_write){.table = HF_TABLE_TASK, .kind = HF_WRITE_DELETE, .key = row.key},
                    (hf_write){.table = HF_TABLE_TASK, .kind = HF_WRITE_PUT, .key = wrong, .value = row.value});
        assert_true(check("").count > 0);
        hf_rig_do(&rig, "crash; poll as=x; complete of=x done; poll as=y; complete of=y done");
        hf_rig_do(&rig, "signal wf s => not_found; signal other s => not_found");
        assert_int_equal(rig.core->held_rows, 0);
        assert_int_equal(rows_of(HF_TABLE_TASK), 1); /* the row that nobody names, which db check shows */
        assert_true(check("").count > 0);
        hf_arena_deinit(&row.arena);
    }
}

/* A row that vanished is as good as one with a wrong key; and the count is right again after that. */
static void ledger_J4_a_held_task_whose_row_is_gone_is_handed_out_again(void **state)
{
    (void)state;
    play_held();
    saved row = take(HF_TABLE_TASK, 0);
    lose(&row);
    hf_rig_do(&rig, "crash; poll as=x; complete of=x timer t 1h; poll as=y; complete of=y timer t 1h");
    assert_int_equal(rig.core->held_rows, 0);
    uint64_t seen = hf_rig_probe(&rig, HF_PROBE_BAD_RECORD);
    assert_true(seen > 0);
    hf_rig_do(&rig, "crash; time 2h; poll in_process as=x; crash; poll as=x; complete of=x done");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_BAD_RECORD), seen); /* nothing more was looked for */
    hf_rig_do(&rig, "poll as=y; complete of=y done");
    assert_sound();
    hf_arena_deinit(&row.arena);
}

/* A store of an earlier version does not say how many there are: what is found counts. */
static void a_commit_without_a_count_of_held_tasks_is_read(void **state)
{
    (void)state;
    play_held();
    int64_t count = rig.core->held_rows;
    rig.core->held_rows = -1; /* field 10 is 0, as if it were not there */
    saved row = take(HF_TABLE_RUN, 0);
    behind((hf_write){.table = HF_TABLE_RUN, .kind = HF_WRITE_PUT, .key = row.key, .value = row.value});
    hf_rig_crash(&rig);
    assert_int_equal(rig.core->held_rows, count);
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_BAD_RECORD), 0);
    assert_true(hf_rig_settle(&rig));
    hf_rig_do(&rig, "poll as=x; complete of=x done; poll as=y; complete of=y done");
    assert_int_equal(rig.core->held_rows, 0);
    assert_sound();
    hf_arena_deinit(&row.arena);
}

/* Nobody can tell whose the task was: a run that cannot be read either may be the one, and is known as bad at once. */
static void a_held_task_that_nobody_can_be_found_for_stops_the_damaged_run(void **state)
{
    (void)state;
    play_held();
    saved task = take(HF_TABLE_TASK, 0);
    saved row = take(HF_TABLE_RUN, 0);
    both_behind(damaged(&task), damaged(&row));
    hf_rig_do(&rig, "crash");
    assert_true(HF_SLOT(hf_run_find(rig.core, row.key.a))->bad);
    hf_arena_deinit(&task.arena);
    hf_arena_deinit(&row.arena);
}

/* ---- Without memory --------------------------------------------------------------------------------------------------- */

static void end_core(void)
{
    if (rig.core != NULL) {
        hf_core_stop(rig.core, HF_ERR_CLOSED, "the test ends it");
        hf_core_free(rig.core);
        rig.core = NULL;
        rig.read_count = 0;
    }
}

/* Opens and makes the first commit with each allocation failing in turn, until none is left that does. */
static void open_in_need(void)
{
    rig.may_break = true;
    bool is_open = false;
    for (uint64_t i = 1; !is_open; i++) {
        end_core();
        rig.allocations = 0;
        rig.fail_at = i;
        hf_status status = hf_rig_reopen(&rig);
        is_open = status == HF_OK && hf_rig_settle(&rig);
        assert_true(is_open || (rig.core != NULL ? hf_core_status(rig.core) : status) == HF_ERR_NOMEM);
        is_open = is_open && rig.allocations < i;
    }
    rig.fail_at = 0;
    rig.may_break = false;
}

static void no_memory_is_not_taken_for_damage(void **state)
{
    (void)state;
    play();
    saved row = take(HF_TABLE_RUN, 0);
    damage(&row);
    open_in_need();
    assert_int_equal(rows_of(HF_TABLE_META), META_ROWS + 1);
    others_go_on();
    repair(&row);
    open_in_need();
    hf_rig_do(&rig, "signal wf s request=r2");
    hf_rig_history(&rig, "wf", ANSWERED);
    assert_sound();
}

/* ---- Looking ---------------------------------------------------------------------------------------------------------- */

static void sound_runs_are_shown_beside_a_damaged_one(void **state)
{
    (void)state;
    play();
    saved row = take(HF_TABLE_RUN, 0);
    damage(&row);
    for (int i = 0; i < 2; i++) { /* with its changes in the journal, and kept */
        hf_op op;
        hf_op_init(&op);
        hf_look *look = NULL;
        int64_t number = 0;
        assert_int_equal(hf_look_open(&op, hf_rig_heap, rig.store, &look), HF_OK);
        assert_int_equal(hf_look_find(&op, look, HF_STR(HF_RIG_NS), HF_STR("other"), &number), HF_OK);
        assert_int_equal(hf_look_find(&op, look, HF_STR(HF_RIG_NS), HF_STR("wf"), &number), HF_ERR_INVALID);
        hf_look_close(look);
        hf_rig_do(&rig, "crash");
        go_on();
    }
    hf_arena_deinit(&row.arena);
}

/* A parent and its child, both with rows only: runs 1 and 2. */
static void play_family(void)
{
    again(&(hf_core_options){.mem_max = 1});
    hf_rig_do(&rig, "start wf; poll; complete child kid queue=p; poll; complete");
    assert_int_equal(rig.core->runs.count, 0);
}

static void a_close_policy_waits_for_a_damaged_child(void **state)
{
    (void)state;
    play_family();
    saved row = take(HF_TABLE_RUN, 1);
    damage(&row);
    hf_rig_crash(&rig);
    hf_rig_do(&rig, "terminate wf; signal kid s => store");
    repair(&row);
    hf_rig_crash(&rig);
    hf_rig_do(&rig, "time 1s");
    hf_rig_history(&rig, "kid", START "3 WorkflowExecutionTerminated 'by parent close policy'\n");
    hf_rig_do(&rig, "time 1s");
    assert_int_equal(rig.core->runs.count, 0);
}

static void the_end_of_a_child_waits_for_a_damaged_parent(void **state)
{
    (void)state;
    play_family();
    saved row = take(HF_TABLE_RUN, 0);
    damage(&row);
    hf_rig_crash(&rig);
    hf_rig_do(&rig, "poll queue=p as=k; complete of=k done; signal wf s => store");
    repair(&row);
    hf_rig_crash(&rig);
    hf_rig_do(&rig, "time 1s");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK
                   "5 StartChildWorkflowExecutionInitiated kid\n6 ChildWorkflowExecutionStarted initiated=5\n"
                   "7 WorkflowTaskScheduled attempt=1\n8 WorkflowTaskStarted scheduled=7\n"
                   "9 WorkflowTaskCompleted scheduled=7 started=8\n"
                   "10 ChildWorkflowExecutionCompleted initiated=5 started=6\n11 WorkflowTaskScheduled attempt=1\n");
    hf_rig_do(&rig, "poll; complete done; time 1s");
    assert_int_equal(rig.core->runs.count, 0);
}

/* Writes another event in the place of this one of run 1, with a right checksum. */
static void forge(int64_t event_id, const hf_pb_history_event *event)
{
    hf_arena arena;
    hf_buf row;
    hf_buf events;
    hf_arena_init(&arena, hf_rig_heap);
    hf_buf_init(&row, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_init(&events, hf_rig_heap, SIZE_MAX / 4);
    hf_store_request scan = {
        .verb = HF_STORE_SCAN,
        .table = HF_TABLE_HISTORY,
        .key = {.a = 1},
        .key_end = {.a = 1, .b = event_id + 1},
        .backwards = true,
        .row_max = 1,
        .arena = &arena,
    };
    hf_op_init(&scan.op);
    hf_store_execute(rig.store, &scan);
    assert_int_equal(scan.row_count, 1);
    hf_pb_history_record record;
    assert_int_equal(hf_history_row_open(&scan.op, &scan.rows[0], &arena, &record), HF_OK);
    assert_true(record.last_id >= event_id);
    hf_pb_raw field;
    for (int64_t id = record.first_id; record.events.len > 0 && hf_pb_next(&record.events, &field); id++) {
        if (id == event_id) {
            hf_pb_encode_field(HF_CHANGE_EVENT, &hf_pb_history_event_type, event, &events);
        } else {
            hf_pb_put_bytes(&events, HF_CHANGE_EVENT, field.bytes);
        }
    }
    record.events = hf_str_of_len(events.data, events.len);
    hf_buf_put(&row, "            ", HF_RECORD_HEADER_LEN);
    hf_pb_encode(&hf_pb_history_record_type, &record, &row);
    hf_record_seal(HF_TABLE_HISTORY, &scan.rows[0].key, row.data, row.len - HF_RECORD_HEADER_LEN);
    behind((hf_write){.table = HF_TABLE_HISTORY,
                      .kind = HF_WRITE_PUT,
                      .key = scan.rows[0].key,
                      .value = hf_str_of_len(row.data, row.len)});
    hf_buf_deinit(&events);
    hf_buf_deinit(&row);
    hf_arena_deinit(&arena);
}

/* Rows with right checksums may have any bytes: an event that is not the one that is needed counts as lost. */
static void an_event_is_not_taken_for_another_one(void **state)
{
    (void)state;
    static const struct {
        const char *setup; /* until the event is in a row */
        int64_t event_id;
        const char *step; /* needs it */
    } CASES[] = {
        {"start wf; poll; complete; update wf up; poll; complete accept up, respond up", 9,
         "updpoll wf up wait=completed => store"},
        {"start wf; poll; complete; update wf up; poll; complete accept up, respond up", 9,
         "update wf up as=v => store"},
        {"start wf retries=3; poll", 1, "complete failed x => store"},
        {"start wf cron=@every_1m; time 1m; poll", 1, "complete done => store"},
        {"start wf retries=3 run=5s; poll; complete", 1, "time 5s"},
    };
    hf_pb_timer_started_event_attributes timer = {.timer_id = HF_STR("t")};
    hf_pb_workflow_execution_started_event_attributes started = {.attempt = 1};
    hf_pb_workflow_execution_update_completed_event_attributes completed = {.accepted_event_id = 8};
    const hf_pb_history_event OTHERS[] = {
        {.event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, /* without what every start has */
         .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES,
         .workflow_execution_started_event_attributes = &started},
        {.event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED,
         .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_UPDATE_COMPLETED_EVENT_ATTRIBUTES,
         .workflow_execution_update_completed_event_attributes = &completed},
        {.event_type = HF_EVENT_TYPE_MARKER_RECORDED},
        {.event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED},
        {.event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED},
        {.event_type = HF_EVENT_TYPE_TIMER_STARTED,
         .attributes_case = HF_PB_HISTORY_EVENT_TIMER_STARTED_EVENT_ATTRIBUTES,
         .timer_started_event_attributes = &timer},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES) * HF_COUNT_OF(OTHERS); i++) {
        again(&(hf_core_options){.mem_max = 1, .trim_count = 1, .tail_len_max = 1});
        size_t index = i / HF_COUNT_OF(OTHERS);
        hf_rig_do(&rig, CASES[index].setup);
        hf_rig_restart(&rig);
        assert_true(hf_rig_settle(&rig));
        hf_pb_history_event other = OTHERS[i % HF_COUNT_OF(OTHERS)];
        other.event_id = CASES[index].event_id;
        rig.no_check = true;
        forge(CASES[index].event_id, &other);
        hf_rig_restart(&rig);
        print_message("%s, event of type %d\n", CASES[index].step, (int)other.event_type);
        hf_rig_do(&rig, CASES[index].step);
        hf_rig_do(&rig, "start other; terminate other");
        rig.no_check = false;
    }
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_run_whose_row_is_damaged_stops_alone_and_keeps_its_changes),
    TEST(a_crash_before_the_first_commit_changes_nothing),
    TEST(a_run_whose_row_is_gone_stops_alone),
    TEST(a_run_is_not_brought_back_without_its_row),
    TEST(kept_changes_that_are_damaged_are_not_passed_over),
    TEST(a_held_task_of_a_damaged_run_stops_that_run_alone),
    TEST(a_held_task_whose_record_is_damaged_is_handed_out_again),
    TEST(ledger_J4_a_held_task_whose_key_is_wrong_is_handed_out_again),
    TEST(ledger_J4_a_held_task_whose_row_is_gone_is_handed_out_again),
    TEST(a_commit_without_a_count_of_held_tasks_is_read),
    TEST(a_held_task_that_nobody_can_be_found_for_stops_the_damaged_run),
    TEST(no_memory_is_not_taken_for_damage),
    TEST(sound_runs_are_shown_beside_a_damaged_one),
    TEST(a_close_policy_waits_for_a_damaged_child),
    TEST(the_end_of_a_child_waits_for_a_damaged_parent),
    TEST(an_event_is_not_taken_for_another_one),
};

int main(int argc, char **argv)
{
    return hf_test_main("damage", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
