/* Records with right checksums that make no sense: their run is bad, as if they were damaged, and nothing else is (sound.c). */
#include "fixture.h"

#include "history/limits.h"
#include "inspect/look.h"

#include <stdio.h>

static const hf_core_options SMALL = {.mem_max = 1}; /* every run gets its row with every commit */

/* Run 1 has one of everything: timers, activities, a workflow task in hand, and events that wait for its end. */
static void play(void)
{
    again(&SMALL);
    hf_rig_do(&rig,
              "start wf; poll; complete timer t 1h, timer u 2h, activity a each=1h queue=q, activity b each=1h queue=q;"
              "apoll; signal wf s; poll in_process; signal wf s; cancel wf; start other; poll; complete timer t 10h");
}

/* ---- The row of a run -------------------------------------------------------------------------------------------------- */

static hf_arena arena;

static hf_str row_of_run(void)
{
    hf_key key = {.a = 1};
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = key, .arena = &arena};
    hf_op_init(&get.op);
    hf_store_execute(rig.store, &get);
    assert_true(get.found);
    hf_op op;
    hf_op_init(&op);
    hf_str body = {0};
    assert_int_equal(hf_record_open(&op, HF_TABLE_RUN, &key, get.value, &body), HF_OK);
    return body;
}

static void put(hf_table table, hf_key key, const hf_pb_type *type, const void *msg)
{
    hf_buf row;
    hf_buf_init(&row, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_put(&row, "            ", HF_RECORD_HEADER_LEN);
    hf_pb_encode(type, msg, &row);
    hf_record_seal(table, &key, row.data, row.len - HF_RECORD_HEADER_LEN);
    behind((hf_write){.table = table, .kind = HF_WRITE_PUT, .key = key, .value = hf_str_of_len(row.data, row.len)});
    hf_buf_deinit(&row);
}

static hf_str bytes_of(const hf_pb_history_event *event)
{
    hf_buf buf;
    hf_buf_init(&buf, hf_rig_heap, SIZE_MAX / 4);
    hf_pb_encode(&hf_pb_history_event_type, event, &buf);
    hf_str bytes = hf_arena_copy(&arena, hf_str_of_len(buf.data, buf.len));
    hf_buf_deinit(&buf);
    return bytes;
}

/* The type of one kind of event and the attributes of another. */
static hf_str confused(int32_t type)
{
    hf_pb_marker_recorded_event_attributes marker = {.marker_name = HF_STR("m")};
    hf_pb_history_event event = {
        .event_type = type,
        .attributes_case = HF_PB_HISTORY_EVENT_MARKER_RECORDED_EVENT_ATTRIBUTES,
        .marker_recorded_event_attributes = &marker,
    };
    return bytes_of(&event);
}

static hf_pb_external_state *one_message(hf_pb_run_state *s, hf_str event)
{
    s->externals.items = HF_ARENA_NEW(&arena, hf_pb_external_state);
    s->externals.items[0] = (hf_pb_external_state){.initiated_id = 5, .event = event, .state = HF_EXTERNAL_INITIATED};
    s->externals.count = 1;
    return s->externals.items;
}

static void message_to_nobody(hf_pb_run_state *s)
{
    hf_pb_signal_external_workflow_execution_initiated_event_attributes attrs = {.signal_name = HF_STR("s")};
    hf_pb_history_event event = {
        .event_type = HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
        .attributes_case = HF_PB_HISTORY_EVENT_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES,
        .signal_external_workflow_execution_initiated_event_attributes = &attrs,
    };
    (void)one_message(s, bytes_of(&event));
}

static char long_name[HF_ID_LEN_MAX + 1];

#define SPOIL(name, statement)           \
    static void name(hf_pb_run_state *s) \
    {                                    \
        statement;                       \
    }
SPOIL(unknown_status, s->status = 99)
SPOIL(closed_with_tasks, s->status = HF_WORKFLOW_EXECUTION_STATUS_COMPLETED)
SPOIL(no_events, s->event_count = 0)
SPOIL(negative_events, s->event_count = INT64_MIN)
SPOIL(endless_events, s->event_count = s->spilled = INT64_MAX)
SPOIL(more_spilled_than_there_are, s->spilled = s->event_count + 1)
SPOIL(one_event_too_many, s->event_count++)
SPOIL(another_chain, s->chain++)
SPOIL(another_length, s->history_len++)
SPOIL(half_a_tail, s->tail.len /= 2)
SPOIL(endless_signals, s->signal_count = INT64_MAX)
SPOIL(no_namespace, s->namespace.len = 0)
SPOIL(no_workflow_id, s->workflow_id.len = 0)
SPOIL(long_workflow_id, s->workflow_id = hf_str_of_len(long_name, sizeof long_name))
SPOIL(long_task_queue, s->task_queue = hf_str_of_len(long_name, sizeof long_name))
SPOIL(task_without_an_event, s->task->scheduled_id = 0)
SPOIL(task_started_first, s->task->started_id = s->task->scheduled_id)
SPOIL(task_of_another_world, s->task->last_started_id = INT64_MAX)
SPOIL(endless_attempts, s->task->attempt = INT32_MAX)
SPOIL(negative_order, s->task->order = INT64_MIN)
SPOIL(waits_for_no_task, s->task->state = HF_WFT_SCHEDULED)
SPOIL(timers_out_of_order, s->timers.items[0].started_id = s->timers.items[1].started_id)
SPOIL(timer_of_the_future, s->timers.items[1].started_id = s->event_count + 1)
SPOIL(activities_out_of_order, s->activities.items[1].scheduled_id = s->activities.items[0].scheduled_id)
SPOIL(activity_without_attempt, s->activities.items[0].attempt = -1)
SPOIL(activity_of_a_marker, s->activities.items[0].scheduled = confused(HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED))
SPOIL(activity_in_no_state, s->activities.items[0].state = 77)
SPOIL(waiting_marker, s->buffered.items[0] = confused(HF_EVENT_TYPE_MARKER_RECORDED))
SPOIL(waiting_confusion, s->buffered.items[0] = confused(HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED))
SPOIL(waiting_noise, s->buffered.items[0] = HF_STR("\x0a\x7f"))
SPOIL(message_of_a_marker, one_message(s, confused(HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED)))
SPOIL(row_of_no_table, s->rows_written.items[0].order = INT64_MAX)
SPOIL(endless_deadline, s->due_written = INT64_MAX)

typedef void spoil_fn(hf_pb_run_state *s);
#define CASE(name)  \
    {               \
#name, name \
    }
static const struct {
    const char *name;
    spoil_fn *spoil;
} CASES[] = {
    CASE(unknown_status),
    CASE(closed_with_tasks),
    CASE(no_events),
    CASE(negative_events),
    CASE(endless_events),
    CASE(more_spilled_than_there_are),
    CASE(one_event_too_many),
    CASE(another_chain),
    CASE(another_length),
    CASE(half_a_tail),
    CASE(endless_signals),
    CASE(no_namespace),
    CASE(no_workflow_id),
    CASE(long_workflow_id),
    CASE(long_task_queue),
    CASE(task_without_an_event),
    CASE(task_started_first),
    CASE(task_of_another_world),
    CASE(endless_attempts),
    CASE(negative_order),
    CASE(waits_for_no_task),
    CASE(timers_out_of_order),
    CASE(timer_of_the_future),
    CASE(activities_out_of_order),
    CASE(activity_without_attempt),
    CASE(activity_of_a_marker),
    CASE(activity_in_no_state),
    CASE(waiting_marker),
    CASE(waiting_confusion),
    CASE(waiting_noise),
    CASE(message_to_nobody),
    CASE(message_of_a_marker),
    CASE(row_of_no_table),
    CASE(endless_deadline),
};

static void assert_not_seen(void)
{
    hf_op op;
    hf_op_init(&op);
    hf_look *look = NULL;
    hf_run *run = NULL;
    assert_int_equal(hf_look_open(&op, hf_rig_heap, rig.store, &look), HF_OK);
    assert_int_equal(hf_look_run(&op, look, 1, &run), HF_ERR_INVALID);
    assert_int_equal(hf_look_run(&op, look, 2, &run), HF_OK);
    hf_look_run_free(look, run);
    hf_look_close(look);
}

static void a_run_that_makes_no_sense_is_bad_and_no_other(void **state)
{
    (void)state;
    memset(long_name, 'n', sizeof long_name);
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        print_message("%s\n", CASES[i].name);
        hf_arena_init(&arena, hf_rig_heap);
        play();
        hf_op op;
        hf_op_init(&op);
        hf_pb_run_state msg;
        assert_int_equal(hf_pb_decode(&op, &hf_pb_run_state_type, row_of_run(), &arena, &msg), HF_OK);
        assert_true(msg.buffered.count == 2 && msg.timers.count == 2 && msg.activities.count == 2 && msg.tail.len > 0);
        CASES[i].spoil(&msg);
        put(HF_TABLE_RUN, (hf_key){.a = 1}, &hf_pb_run_state_type, &msg);
        assert_not_seen();
        hf_rig_crash(&rig);
        hf_rig_do(&rig, "signal wf s => store; terminate wf => store; signal other s; poll; complete done");
        assert_true(hf_rig_probe(&rig, HF_PROBE_BAD_RECORD) > 0);
        hf_arena_deinit(&arena);
    }
}

/* ---- The journal ------------------------------------------------------------------------------------------------------- */

/* One more commit, whose row of the journal is this. */
static void commit_row(const hf_pb_journal_commit *msg)
{
    hf_key key = {.a = (int64_t)msg->commit};
    hf_buf row;
    hf_buf_init(&row, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_put(&row, "            ", HF_RECORD_HEADER_LEN);
    hf_pb_encode(&hf_pb_journal_commit_type, msg, &row);
    hf_record_seal(HF_TABLE_JOURNAL, &key, row.data, row.len - HF_RECORD_HEADER_LEN);
    hf_write write = {
        .table = HF_TABLE_JOURNAL, .kind = HF_WRITE_PUT, .key = key, .value = hf_str_of_len(row.data, row.len)};
    hf_store_request commit = {.verb = HF_STORE_COMMIT, .commit = msg->commit, .writes = &write, .write_count = 1};
    hf_op_init(&commit.op);
    hf_store_execute(rig.store, &commit);
    assert_int_equal(commit.status, HF_OK);
    hf_buf_deinit(&row);
}

static hf_pb_journal_commit next_commit(void)
{
    return (hf_pb_journal_commit){
        .commit = rig.store->ops->last_commit(rig.store) + 1,
        .previous = rig.core->journal_hash,
        .next_run = rig.core->run_next,
        .next_order = rig.core->order_next,
        .names_logged = rig.core->index.log_count,
        .held = (uint64_t)rig.core->held_rows + 1,
    };
}

static void assert_refused(const char *why)
{
    hf_op op;
    hf_op_init(&op);
    hf_look *look = NULL;
    hf_core *core = NULL;
    hf_core_options options = {.memory = hf_rig_heap};
    assert_int_equal(hf_core_open(&op, &options, rig.store, rig.now, &core), HF_ERR_INVALID);
    if (strstr(op.message, why) == NULL) {
        fail_msg("%s", op.message);
    }
    if (hf_look_open(&op, hf_rig_heap, rig.store, &look) == HF_OK) { /* which needs less of it */
        hf_look_close(look);
    }
}

static void changes_of_no_run_refuse_the_opening(void **state)
{
    (void)state;
    static const int64_t NUMBERS[] = {0, -1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < HF_COUNT_OF(NUMBERS); i++) {
        play();
        hf_pb_run_changes changes = {.run = NUMBERS[i], .changes = HF_STR("\x6a\x01r")};
        hf_pb_journal_commit commit = next_commit();
        commit.runs.items = &changes;
        commit.runs.count = 1;
        commit_row(&commit);
        assert_refused("has changes of a run that cannot exist");
    }
}

static void counters_that_cannot_go_on_refuse_the_opening(void **state)
{
    (void)state;
    static const int64_t NUMBERS[] = {-1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < 2 * HF_COUNT_OF(NUMBERS); i++) {
        play();
        hf_pb_journal_commit commit = next_commit();
        *(i % 2 == 0 ? &commit.next_run : &commit.next_order) = NUMBERS[i / 2];
        commit_row(&commit);
        assert_refused("cannot be read");
    }
}

/* The next start would take the number of a run that is there. */
static void a_number_that_is_given_already_refuses_the_opening(void **state)
{
    (void)state;
    play();
    hf_pb_journal_commit commit = next_commit();
    commit.next_run = 2;
    commit_row(&commit);
    assert_refused("there is a run 2, but the journal says that the next new run is 2");
}

/* ---- Changes ----------------------------------------------------------------------------------------------------------- */

static void change_is_bad(hf_str changes)
{
    again(&SMALL);
    hf_rig_do(&rig, "start wf; poll; complete timer t 1h, activity a each=1h queue=q; start other");
    hf_pb_run_changes of_run = {.run = 1, .changes = changes};
    hf_pb_journal_commit commit = next_commit();
    commit.runs.items = &of_run;
    commit.runs.count = 1;
    commit_row(&commit);
    hf_rig_crash(&rig);
    hf_rig_do(&rig, "signal wf s => store; poll; complete done; start third; poll; complete done");
}

static void put_event(hf_buf *out, const hf_pb_history_event *event)
{
    hf_pb_encode_field(HF_CHANGE_EVENT, &hf_pb_history_event_type, event, out);
}

static void an_end_of_nothing_makes_its_run_bad(void **state)
{
    (void)state;
    hf_buf out;
    hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
    hf_pb_activity_task_completed_event_attributes activity = {.scheduled_event_id = 0};
    hf_pb_history_event completed = {
        .event_id = 7,
        .event_type = HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
        .attributes_case = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_COMPLETED_EVENT_ATTRIBUTES,
        .activity_task_completed_event_attributes = &activity,
    };
    put_event(&out, &completed);
    change_is_bad(hf_str_of_len(out.data, out.len));
    out.len = 0;
    hf_pb_external_workflow_execution_signaled_event_attributes message = {.initiated_event_id = 0};
    hf_pb_history_event signaled = {
        .event_id = 7,
        .event_type = HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED,
        .attributes_case = HF_PB_HISTORY_EVENT_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES,
        .external_workflow_execution_signaled_event_attributes = &message,
    };
    put_event(&out, &signaled);
    change_is_bad(hf_str_of_len(out.data, out.len));
    hf_buf_deinit(&out);
}

static void a_message_to_nobody_makes_its_run_bad(void **state)
{
    (void)state;
    hf_buf out;
    hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
    hf_pb_request_cancel_external_workflow_execution_initiated_event_attributes attrs = {.control = HF_STR("c")};
    hf_pb_history_event event = {
        .event_id = 7,
        .event_type = HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
        .attributes_case = HF_PB_HISTORY_EVENT_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES,
        .request_cancel_external_workflow_execution_initiated_event_attributes = &attrs,
    };
    put_event(&out, &event);
    change_is_bad(hf_str_of_len(out.data, out.len));
    hf_buf_deinit(&out);
}

/* Its length takes a byte more than it needs: history_len would not be what the log has. */
static void an_event_that_is_written_unusually_makes_its_run_bad(void **state)
{
    (void)state;
    hf_pb_marker_recorded_event_attributes attrs = {.marker_name = HF_STR("m")};
    hf_pb_history_event event = {
        .event_id = 7,
        .event_type = HF_EVENT_TYPE_MARKER_RECORDED,
        .attributes_case = HF_PB_HISTORY_EVENT_MARKER_RECORDED_EVENT_ATTRIBUTES,
        .marker_recorded_event_attributes = &attrs,
    };
    hf_arena_init(&arena, hf_rig_heap);
    hf_str bytes = bytes_of(&event);
    hf_buf out;
    hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
    hf_pb_put_tag(&out, HF_CHANGE_EVENT, HF_PB_WIRE_BYTES);
    hf_buf_putc(&out, (char)(bytes.len | 0x80));
    hf_buf_putc(&out, 0);
    hf_buf_put(&out, bytes.data, bytes.len);
    change_is_bad(hf_str_of_len(out.data, out.len));
    hf_buf_deinit(&out);
    hf_arena_deinit(&arena);
}

static void a_name_that_is_too_long_makes_its_run_bad(void **state)
{
    (void)state;
    memset(long_name, 'n', sizeof long_name);
    hf_pb_sticky sticky = {.queue = hf_str_of_len(long_name, sizeof long_name), .timeout = 1};
    hf_buf out;
    hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
    hf_pb_encode_field(HF_CHANGE_STICKY, &hf_pb_sticky_type, &sticky, &out);
    change_is_bad(hf_str_of_len(out.data, out.len));
    hf_buf_deinit(&out);
}

/* ---- Deadlines --------------------------------------------------------------------------------------------------------- */

/* The row of the deadline is too early, as if another version had reckoned differently. While there is no room in memory the run
 * goes back to its rows at once, and must not be looked for again before its own deadline. */
static void a_deadline_that_is_too_early_costs_one_look(void **state)
{
    (void)state;
    again(&SMALL);
    hf_rig_do(&rig, "start wf; poll; complete timer t 10h; start other; poll; complete timer t 10h");
    hf_arena_init(&arena, hf_rig_heap);
    hf_op op;
    hf_op_init(&op);
    hf_pb_run_state msg;
    assert_int_equal(hf_pb_decode(&op, &hf_pb_run_state_type, row_of_run(), &arena, &msg), HF_OK);
    hf_key due = {.a = msg.due_written, .b = 1};
    behind((hf_write){.table = HF_TABLE_DUE, .kind = HF_WRITE_DELETE, .key = due});
    hf_rig_crash(&rig);
    msg.due_written = due.a = rig.now.wall + 1;
    behind((hf_write){.table = HF_TABLE_DUE, .kind = HF_WRITE_PUT, .key = due});
    hf_rig_crash(&rig);
    put(HF_TABLE_RUN, (hf_key){.a = 1}, &hf_pb_run_state_type, &msg);
    hf_rig_crash(&rig);
    hf_rig_do(&rig, "time 1s"); /* the rig fails when this does not come to rest */
    hf_rig_do(&rig, "time 1s; time 9h; time 1h; poll; complete done; poll; complete done");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 TimerStarted t after=36000s\n"
                              "6 TimerFired t started=5\n"
                              "7 WorkflowTaskScheduled attempt=1\n"
                              "8 WorkflowTaskStarted scheduled=7\n"
                              "9 WorkflowTaskCompleted scheduled=7 started=8\n"
                              "10 WorkflowExecutionCompleted\n");
    hf_arena_deinit(&arena);
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_run_that_makes_no_sense_is_bad_and_no_other),
    TEST(changes_of_no_run_refuse_the_opening),
    TEST(counters_that_cannot_go_on_refuse_the_opening),
    TEST(a_number_that_is_given_already_refuses_the_opening),
    TEST(an_end_of_nothing_makes_its_run_bad),
    TEST(a_message_to_nobody_makes_its_run_bad),
    TEST(an_event_that_is_written_unusually_makes_its_run_bad),
    TEST(a_name_that_is_too_long_makes_its_run_bad),
    TEST(a_deadline_that_is_too_early_costs_one_look),
};

int main(int argc, char **argv)
{
    return hf_test_main("engine_sound", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
