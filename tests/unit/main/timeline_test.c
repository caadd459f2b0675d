/* A run for people: whatever its users have named things, nothing of it commands the terminal. */
#include "support/support.h"

#include "base/glyph.h"
#include "main/grid.c"
#include "main/put.c"
#include "main/timeline.c"
#include "main/waits.c"
#include "support/engine_rig.h"

/* Escape, newlines, delete; U+009B, which some terminals take for escape and a bracket; the same in Latin-1; U+202E, which turns
 * the rest of the line around; a character that is cut. */
#define NASTY HF_STR("\x1b[31mx\r\n\x7f\xc2\x9b\x9b\xe2\x80\xae\xe2\x82")

static void put(hf_buf *history, hf_pb_history_event *event)
{
    hf_pb_encode_field(1, &hf_pb_history_event_type, event, history);
}

static void put_history(hf_buf *history)
{
    hf_pb_payload_metadata_entry encoding = {.key = HF_STR("encoding"), .value = NASTY};
    hf_pb_payload payload = {.metadata = {&encoding, 1}, .data = NASTY};
    hf_pb_payloads input = {.payloads = {&payload, 1}};
    hf_pb_workflow_type type = {.name = NASTY};
    hf_pb_task_queue queue = {.name = NASTY};
    hf_pb_workflow_execution_started_event_attributes started = {
        .workflow_type = &type, .task_queue = &queue, .input = &input};
    hf_pb_history_event first = {
        .event_id = 1,
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES,
        .workflow_execution_started_event_attributes = &started,
    };
    put(history, &first);
    hf_pb_timer_started_event_attributes timer_started = {.timer_id = NASTY,
                                                          .start_to_fire_timeout = hf_pb_duration_of(hf_seconds(10))};
    hf_pb_payload summary_text = {.metadata = {&encoding, 1}, .data = NASTY};
    hf_pb_user_metadata summary = {.summary = &summary_text};
    hf_pb_history_event second = {
        .user_metadata = &summary,
        .event_id = 2,
        .event_type = HF_EVENT_TYPE_TIMER_STARTED,
        .attributes_case = HF_PB_HISTORY_EVENT_TIMER_STARTED_EVENT_ATTRIBUTES,
        .timer_started_event_attributes = &timer_started,
    };
    put(history, &second);
}

static void assert_is_plain(const hf_buf *text)
{
    for (size_t at = 0; at < text->len;) {
        hf_glyph glyph = hf_glyph_of(hf_str_of_len(text->data + at, text->len - at));
        assert_true(glyph.is_printable || glyph.code == '\n');
        at += glyph.len;
    }
}

static void names_do_not_command_the_terminal(void **state)
{
    (void)state;
    hf_op op;
    hf_op_init(&op);
    hf_buf history;
    hf_buf text;
    hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
    put_history(&history);
    hf_run_view view = {
        .workflow_id = NASTY,
        .run_id = HF_STR("run"),
        .status = HF_WORKFLOW_EXECUTION_STATUS_RUNNING,
        .history = hf_str_of_len(history.data, history.len),
    };
    assert_int_equal(hf_timeline_write(&op, &view, 0, &text), HF_OK);
    assert_non_null(strstr(hf_buf_text(&text), "timer ?[31mx  ?????"));
    assert_non_null(strstr(hf_buf_text(&text), "  (<"));
    assert_is_plain(&text);
    hf_buf_deinit(&text);
    hf_buf_deinit(&history);
}

/* Signals are recorded only when the workflow task is answered, and it never is: all the more the crashes must be told. */
static void crashes_are_told_beside_buffered_events(void **state)
{
    (void)state;
    hf_op op;
    hf_op_init(&op);
    hf_buf history;
    hf_buf text;
    hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
    put_history(&history);
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    hf_pb_workflow_task_scheduled_event_attributes scheduled = {.task_queue = &queue};
    hf_pb_history_event third = {
        .event_id = 3,
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_SCHEDULED_EVENT_ATTRIBUTES,
        .workflow_task_scheduled_event_attributes = &scheduled,
    };
    put(&history, &third);
    hf_pb_workflow_task_started_event_attributes started = {.scheduled_event_id = 3};
    hf_pb_history_event fourth = {
        .event_id = 4,
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_STARTED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_STARTED_EVENT_ATTRIBUTES,
        .workflow_task_started_event_attributes = &started,
    };
    put(&history, &fourth);
    hf_run_view view = {
        .workflow_id = HF_STR("wf"),
        .run_id = HF_STR("run"),
        .status = HF_WORKFLOW_EXECUTION_STATUS_RUNNING,
        .history = hf_str_of_len(history.data, history.len),
        .is_at_rest = true,
        .crashes = 2,
    };
    for (size_t buffered = 0; buffered < 2; buffered++) {
        view.buffered_count = buffered;
        text.len = 0;
        assert_int_equal(hf_timeline_write(&op, &view, 0, &text), HF_OK);
        assert_non_null(
            strstr(hf_buf_text(&text), "the program ended 2 times in a row while it had this task in hand"));
    }
    hf_buf_deinit(&text);
    hf_buf_deinit(&history);
}

static void a_long_text_is_cut_between_characters(void **state)
{
    (void)state;
    hf_buf out;
    hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
    hf_str euros = HF_STR("\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
    assert_int_equal(hf_put_text(&out, euros, 9), 3);
    assert_string_equal(hf_buf_text(&out), euros.data);
    out.len = 0;
    assert_int_equal(hf_put_text(&out, euros, 8), 2);
    assert_string_equal(hf_buf_text(&out), "\xe2\x82\xac\xe2\x82\xac... (9 bytes)");
    hf_buf_deinit(&out);
}

static void a_payload_is_cut_unless_all_of_it_is_wanted(void **state)
{
    (void)state;
    static char data[302];
    memset(data, 'x', sizeof data);
    data[0] = data[300] = '"';
    data[301] = '\0';
    for (int kind = 0; kind < 4; kind++) {
        bool is_json = kind % 2 == 0;
        bool is_full = kind >= 2;
        hf_op op;
        hf_op_init(&op);
        hf_arena arena;
        hf_buf history;
        hf_buf text;
        hf_arena_init(&arena, hf_rig_heap);
        hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
        hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
        hf_str encoding = is_json ? HF_ENCODING_JSON : HF_STR("binary/plain");
        hf_str bytes = is_json ? hf_str_of(data) : HF_STR("\x01\x02\x03");
        hf_pb_workflow_execution_started_event_attributes started = {
            .input = hf_payloads_of(&arena, hf_payload_make(&arena, encoding, bytes))};
        hf_pb_history_event first = {
            .event_id = 1,
            .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
            .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES,
            .workflow_execution_started_event_attributes = &started,
        };
        put(&history, &first);
        hf_run_view view = {
            .run_id = HF_STR("run"), .history = hf_str_of_len(history.data, history.len), .is_full = is_full};
        assert_int_equal(hf_timeline_write(&op, &view, 0, &text), HF_OK);
        const char *expected = is_json   ? (is_full ? data : "xxx... (301 bytes)\n")
                               : is_full ? "<3 bytes, binary/plain> AQID\n"
                                         : "<3 bytes, binary/plain>\n";
        assert_non_null(strstr(hf_buf_text(&text), expected));
        hf_buf_deinit(&text);
        hf_buf_deinit(&history);
        hf_arena_deinit(&arena);
    }
}

static void what_a_codec_made_is_shown_with_its_encoding(void **state)
{
    (void)state;
    hf_op op;
    hf_op_init(&op);
    hf_arena arena;
    hf_buf history;
    hf_buf text;
    hf_arena_init(&arena, hf_rig_heap);
    hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
    hf_pb_payload made = hf_payload_make(&arena, HF_STR("binary/encrypted"), HF_STR("\x01\x02"));
    hf_pb_failure *failure = hf_failure_application(&arena, HF_STR("Declined"), HF_STR("Encoded failure"), true);
    failure->encoded_attributes = &made;
    hf_pb_workflow_execution_failed_event_attributes failed = {.failure = failure};
    hf_pb_history_event first = {
        .event_id = 1,
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES,
        .workflow_execution_failed_event_attributes = &failed,
    };
    put(&history, &first);
    hf_run_view view = {.run_id = HF_STR("run"), .history = hf_str_of_len(history.data, history.len)};
    assert_int_equal(hf_timeline_write(&op, &view, 0, &text), HF_OK);
    assert_non_null(strstr(hf_buf_text(&text), "Declined: Encoded failure <2 bytes, binary/encrypted>"));
    hf_buf_deinit(&text);
    hf_buf_deinit(&history);
    hf_arena_deinit(&arena);
}

/* ---- What it waits for ------------------------------------------------------------------------------------------------ */

static void put_at(hf_buf *history, int64_t id, int32_t type, int64_t seconds)
{
    hf_pb_history_event event = {.event_id = id, .event_type = type};
    event.event_time = hf_pb_timestamp_of((hf_time){hf_seconds(seconds).ns});
    put(history, &event);
}

static void put_signal(hf_buf *history, int64_t id, hf_str name, int64_t seconds)
{
    hf_pb_workflow_execution_signaled_event_attributes signaled = {.signal_name = name};
    hf_pb_history_event event = {
        .event_id = id,
        .event_time = hf_pb_timestamp_of((hf_time){hf_seconds(seconds).ns}),
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES,
        .workflow_execution_signaled_event_attributes = &signaled,
    };
    put(history, &event);
}

static void put_timer(hf_buf *history, int64_t id, int64_t seconds)
{
    hf_pb_timer_started_event_attributes started = {.timer_id = HF_STR("1"),
                                                    .start_to_fire_timeout = hf_pb_duration_of(hf_seconds(1000))};
    hf_pb_history_event event = {
        .event_id = id,
        .event_time = hf_pb_timestamp_of((hf_time){hf_seconds(seconds).ns}),
        .event_type = HF_EVENT_TYPE_TIMER_STARTED,
        .attributes_case = HF_PB_HISTORY_EVENT_TIMER_STARTED_EVENT_ATTRIBUTES,
        .timer_started_event_attributes = &started,
    };
    put(history, &event);
}

static void which_signal_a_run_waits_for_is_said_where_it_is_known(void **state)
{
    (void)state;
    hf_str delivered = HF_STR("delivered");
    hf_str other = HF_STR("Delivered");
    const hf_pb_admin_insight WAITS = {.in_memory = true, .waits = {&delivered, 1}, .unread = {&other, 1}};
    const hf_pb_admin_insight NOTHING = {.in_memory = true};
    hf_str handled[] = {HF_STR("go"), HF_STR("stop")};
    hf_str update = HF_STR("u");
    const hf_pb_admin_insight LOOKS = {
        .in_memory = true, .looks = true, .signals = {handled, 2}, .updates = {&update, 1}};
    const hf_pb_admin_insight LOOKS_FOR_UPDATES = {.in_memory = true, .looks = true, .updates = {&update, 1}};
    const hf_pb_admin_insight LOOKS_ALONE = {.in_memory = true, .looks = true};
    const hf_pb_admin_insight HANDLES = {.in_memory = true, .signals = {handled, 2}};
    const hf_pb_admin_insight ELSEWHERE = {.in_memory = false};
    const hf_pb_pending_child_execution_info CHILDREN[] = {
        {.workflow_id = HF_STR("c-1"), .run_id = HF_STR("run"), .workflow_type_name = HF_STR("ship")},
        {.workflow_id = HF_STR("c-2"), .workflow_type_name = HF_STR("bill")},
    };
    const struct {
        const hf_pb_admin_insight *insight;
        bool is_at_rest;
        bool has_timer; /* which may be the timeout of its wait */
        const char *end;
        size_t child_count;
    } CASES[] = {
        {&WAITS, false, false,
         "\nwaits for\n  signal delivered\nsignals that came and that it has not taken\n  Delivered\n", 0},
        {&WAITS, false, true,
         "\nwaits for\n  signal delivered\n  timer 1, fires in 15 min\n"
         "signals that came and that it has not taken\n  Delivered\n",
         0},
        {NULL, true, true,
         "\nwaits for\n  perhaps a signal; its code knows which, and no program has it in memory\n"
         "  timer 1, fires in 15 min\nsignals that came\n  Delivered\n",
         0},
        {&NOTHING, false, false,
         "\nwaits for\n  nothing from outside: its fibers wait for each other (hf_dump shows for what)\n", 0},
        {&LOOKS, false, false,
         "\nwaits for\n  a condition, which its handlers can make true: signals go, stop; updates u\n", 0},
        {&LOOKS, false, true,
         "\nwaits for\n  a condition, which its handlers can make true: signals go, stop; updates u\n"
         "  timer 1, fires in 15 min\n",
         0},
        {&LOOKS_FOR_UPDATES, false, false, "\nwaits for\n  a condition, which its handlers can make true: updates u\n",
         0},
        {&LOOKS_ALONE, false, false,
         "\nwaits for\n  nothing from outside: its fibers wait for each other (hf_dump shows for what)\n", 0},
        {&HANDLES, false, true, "\nwaits for\n  timer 1, fires in 15 min\n", 0},
        {&NOTHING, false, false, "\nwaits for\n  child workflow c-1 ship\n", 1},
        {NULL, true, false,
         "\nwaits for\n  child workflow c-1 ship\n  child workflow c-2 bill, which has not started\n"
         "signals that came\n  Delivered\n",
         2},
        {&ELSEWHERE, false, false,
         "\nwaits for\n  a signal; its code knows which, and the program does not have it in memory now\n"
         "signals that came\n  Delivered\n",
         0},
        {NULL, true, false,
         "\nwaits for\n  a signal; its code knows which, and no program has it in memory\n"
         "signals that came\n  Delivered\n",
         0},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_op op;
        hf_op_init(&op);
        hf_buf history;
        hf_buf text;
        hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
        hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
        print_message("case %zu\n", i);
        put_at(&history, 1, HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, 100);
        put_signal(&history, 2, HF_STR("Delivered"), 101);
        put_signal(&history, 3, HF_STR("Delivered"), 101);
        put_at(&history, 4, HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED, 102);
        if (CASES[i].has_timer) {
            put_timer(&history, 5, 102);
        }
        hf_run_view view = {
            .run_id = HF_STR("run"),
            .status = HF_WORKFLOW_EXECUTION_STATUS_RUNNING,
            .history = hf_str_of_len(history.data, history.len),
            .is_at_rest = CASES[i].is_at_rest,
            .insight = CASES[i].insight,
            .children = CHILDREN,
            .child_count = CASES[i].child_count,
        };
        assert_int_equal(hf_timeline_write(&op, &view, hf_seconds(200).ns, &text), HF_OK);
        size_t len = strlen(CASES[i].end);
        assert_true(text.len > len);
        assert_string_equal(text.data + text.len - len, CASES[i].end);
        hf_buf_deinit(&text);
        hf_buf_deinit(&history);
    }
}

static void an_activity_that_was_asked_to_end_is_at_work_until_it_has_ended(void **state)
{
    (void)state;
    hf_pb_activity_type type = {.name = HF_STR("ship")};
    const hf_pb_timestamp began = hf_pb_timestamp_of((hf_time){hf_seconds(197).ns});
    const hf_pb_timestamp asked = hf_pb_timestamp_of((hf_time){hf_seconds(190).ns});
    const struct {
        int32_t state;
        bool is_started;
        bool is_at_rest;
        const char *end;
    } CASES[] = {
        {HF_PENDING_ACTIVITY_STATE_SCHEDULED, false, false, "attempt 1, waits for a worker for 10.000 s\n"},
        {HF_PENDING_ACTIVITY_STATE_STARTED, true, false, "attempt 1, at work for 3.000 s\n"},
        {HF_PENDING_ACTIVITY_STATE_PAUSE_REQUESTED, true, false, "attempt 1, at work for 3.000 s\n"},
        {HF_PENDING_ACTIVITY_STATE_CANCEL_REQUESTED, true, false,
         "attempt 1, at work for 3.000 s; it was asked to end\n"},
        {HF_PENDING_ACTIVITY_STATE_CANCEL_REQUESTED, true, true,
         "attempt 1, began 3.000 s ago; no program has this file open; it was asked to end\n"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_op op;
        hf_op_init(&op);
        hf_buf history;
        hf_buf text;
        hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
        hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
        put_at(&history, 1, HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, 100);
        put_at(&history, 2, HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED, 102);
        hf_pb_pending_activity_info pending = {.activity_id = HF_STR("1"),
                                               .activity_type = &type,
                                               .state = CASES[i].state,
                                               .scheduled_time = asked,
                                               .last_started_time = CASES[i].is_started ? began : (hf_pb_timestamp){0},
                                               .attempt = 1};
        hf_run_view view = {.run_id = HF_STR("run"),
                            .status = HF_WORKFLOW_EXECUTION_STATUS_RUNNING,
                            .history = hf_str_of_len(history.data, history.len),
                            .is_at_rest = CASES[i].is_at_rest,
                            .pending = &pending,
                            .pending_count = 1};
        assert_int_equal(hf_timeline_write(&op, &view, hf_seconds(200).ns, &text), HF_OK);
        assert_non_null(strstr(hf_buf_text(&text), CASES[i].end));
        hf_buf_deinit(&text);
        hf_buf_deinit(&history);
    }
}

static void put_timed_out(hf_buf *history, int64_t id, int32_t timeout)
{
    hf_pb_workflow_task_timed_out_event_attributes attrs = {.timeout_type = timeout};
    hf_pb_history_event event = {
        .event_id = id,
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_TIMED_OUT_EVENT_ATTRIBUTES,
        .workflow_task_timed_out_event_attributes = &attrs,
    };
    put(history, &event);
}

static void a_task_that_nobody_answered_says_why_that_may_be(void **state)
{
    (void)state;
    static const struct {
        bool has_failed; /* a task before it, which says why */
        int32_t timeout;
        const char *event;
        const char *end;
    } CASES[] = {
        {true, HF_TIMEOUT_TYPE_START_TO_CLOSE, "its worker has ended, or the code does not yield\n",
         "it is retried; the last one was not answered (event 6), and event 3 tells why one failed before\n"},
        {false, HF_TIMEOUT_TYPE_START_TO_CLOSE, "its worker has ended, or the code does not yield\n",
         "it is retried; the last one was not answered (event 6)\n"},
        {false, HF_TIMEOUT_TYPE_SCHEDULE_TO_START, "WorkflowTaskTimedOut\n",
         "it is retried; the last one was not answered (event 6)\n"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_op op;
        hf_op_init(&op);
        hf_buf history;
        hf_buf text;
        hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
        hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
        print_message("case %zu\n", i);
        put_at(&history, 1, HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, 100);
        put_at(&history, 2, HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED, 100);
        if (CASES[i].has_failed) {
            put_at(&history, 3, HF_EVENT_TYPE_WORKFLOW_TASK_FAILED, 100);
        }
        put_timed_out(&history, 6, CASES[i].timeout);
        hf_run_view view = {.run_id = HF_STR("run"),
                            .status = HF_WORKFLOW_EXECUTION_STATUS_RUNNING,
                            .history = hf_str_of_len(history.data, history.len)};
        assert_int_equal(hf_timeline_write(&op, &view, hf_seconds(200).ns, &text), HF_OK);
        assert_non_null(strstr(hf_buf_text(&text), CASES[i].event));
        assert_non_null(strstr(hf_buf_text(&text), CASES[i].end));
        hf_buf_deinit(&text);
        hf_buf_deinit(&history);
    }
}

static void a_run_that_was_asked_to_end_and_goes_on_says_so(void **state)
{
    (void)state;
    hf_op op;
    hf_op_init(&op);
    hf_buf history;
    hf_buf text;
    hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
    put_at(&history, 1, HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, 100);
    put_at(&history, 2, HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED, 100);
    put_timer(&history, 3, 102);
    hf_run_view view = {.run_id = HF_STR("run"),
                        .status = HF_WORKFLOW_EXECUTION_STATUS_RUNNING,
                        .history = hf_str_of_len(history.data, history.len)};
    assert_int_equal(hf_timeline_write(&op, &view, hf_seconds(200).ns, &text), HF_OK);
    assert_non_null(strstr(hf_buf_text(&text), "it was asked to end (event 2), and goes on: "));
    view.status = HF_WORKFLOW_EXECUTION_STATUS_CANCELED;
    text.len = 0;
    assert_int_equal(hf_timeline_write(&op, &view, hf_seconds(200).ns, &text), HF_OK);
    assert_null(strstr(hf_buf_text(&text), "asked to end"));
    hf_buf_deinit(&text);
    hf_buf_deinit(&history);
}

static void times_that_look_wrong_are_explained(void **state)
{
    (void)state;
    static const struct {
        int64_t times[3];
        int64_t now;
        bool goes_back;
        const char *ahead; /* NULL = the clock is ahead of all events */
    } CASES[] = {
        {{100, 101, 102}, 102, false, NULL},
        {{100, 102, 101}, 102, true, NULL},
        {{100, 101, 102}, 101, false, NULL}, /* clocks may differ by a moment */
        {{3700, 3701, 3702}, 102, false, "The last event is 1 h ahead of the clock, which was set back since"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_op op;
        hf_op_init(&op);
        hf_buf history;
        hf_buf text;
        hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
        hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
        print_message("case %zu\n", i);
        for (int k = 0; k < 3; k++) {
            put_at(&history, k + 1, k == 0 ? HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED : HF_EVENT_TYPE_MARKER_RECORDED,
                   CASES[i].times[k]);
        }
        hf_run_view view = {.run_id = HF_STR("run"), .history = hf_str_of_len(history.data, history.len)};
        assert_int_equal(hf_timeline_write(&op, &view, hf_seconds(CASES[i].now).ns, &text), HF_OK);
        assert_true((strstr(hf_buf_text(&text), "Times go back where") != NULL) == CASES[i].goes_back);
        assert_true((strstr(hf_buf_text(&text), "ahead of the clock") != NULL) == (CASES[i].ahead != NULL));
        assert_true(CASES[i].ahead == NULL || strstr(hf_buf_text(&text), CASES[i].ahead) != NULL);
        hf_buf_deinit(&text);
        hf_buf_deinit(&history);
    }
}

/* What ends a run says what to do, at the end of a long sentence. */
static void the_reason_of_a_termination_is_not_cut(void **state)
{
    (void)state;
    hf_op op;
    hf_op_init(&op);
    hf_buf history;
    hf_buf text;
    hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
    char reason[300];
    memset(reason, 'x', sizeof reason);
    hf_pb_workflow_execution_terminated_event_attributes terminated = {.reason = {reason, sizeof reason}};
    hf_pb_history_event event = {
        .event_id = 1,
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_TERMINATED_EVENT_ATTRIBUTES,
        .workflow_execution_terminated_event_attributes = &terminated,
    };
    put(&history, &event);
    hf_run_view view = {.run_id = HF_STR("run"), .history = hf_str_of_len(history.data, history.len)};
    assert_int_equal(hf_timeline_write(&op, &view, 0, &text), HF_OK);
    assert_null(strstr(hf_buf_text(&text), "..."));
    hf_buf_deinit(&text);
    hf_buf_deinit(&history);
}

static void an_answer_that_was_kept_says_so(void **state)
{
    (void)state;
    hf_op op;
    hf_op_init(&op);
    hf_buf history;
    hf_buf text;
    hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
    hf_pb_payload_metadata_entry metadata[] = {{.key = HF_STR("encoding"), .value = HF_ENCODING_JSON},
                                               {.key = HF_STR(HF_MEMO_NAME), .value = HF_STR("hit, age 12 s")}};
    hf_pb_payload payload = {.metadata = {metadata, 2}, .data = HF_STR("47")};
    hf_pb_payloads result = {.payloads = {&payload, 1}};
    hf_pb_activity_task_completed_event_attributes completed = {.result = &result, .scheduled_event_id = 5};
    hf_pb_history_event event = {
        .event_id = 1,
        .event_type = HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
        .attributes_case = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_COMPLETED_EVENT_ATTRIBUTES,
        .activity_task_completed_event_attributes = &completed,
    };
    put(&history, &event);
    hf_run_view view = {.run_id = HF_STR("run"), .history = hf_str_of_len(history.data, history.len)};
    assert_int_equal(hf_timeline_write(&op, &view, 0, &text), HF_OK);
    assert_non_null(strstr(hf_buf_text(&text), "47  (memo: hit, age 12 s)"));
    hf_buf_deinit(&text);
    hf_buf_deinit(&history);
}

/* ---- Children --------------------------------------------------------------------------------------------------------- */

#define CHILD(KIND, ...)                    \
    &(hf_pb_##KIND##_event_attributes)      \
    {                                       \
        .workflow_type = &type, __VA_ARGS__ \
    }

static void events_of_children_say_which_child_and_what_came(void **state)
{
    (void)state;
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_pb_workflow_type type = {.name = HF_STR("ship")};
    hf_pb_workflow_execution run = {.workflow_id = HF_STR("c-1"), .run_id = HF_STR("run-of-c")};
    hf_pb_payloads *data = hf_payloads_of(&arena, hf_payload_make(&arena, HF_ENCODING_JSON, HF_STR("{\"n\": 1}")));
    hf_pb_failure *failure = hf_failure_application(&arena, HF_STR("Lost"), HF_STR("the ship is lost"), true);
    const struct {
        hf_pb_history_event event;
        const char *line;
    } CASES[] = {
        {{.event_type = HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
          .attributes_case = HF_PB_HISTORY_EVENT_START_CHILD_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES,
          .start_child_workflow_execution_initiated_event_attributes =
              CHILD(start_child_workflow_execution_initiated, .workflow_id = HF_STR("c-1"), .input = data)},
         "StartChildWorkflowExecutionInitiated  ship \"c-1\"  {\"n\": 1}\n"},
        {{.event_type = HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED,
          .attributes_case = HF_PB_HISTORY_EVENT_START_CHILD_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES,
          .start_child_workflow_execution_failed_event_attributes =
              CHILD(start_child_workflow_execution_failed, .workflow_id = HF_STR("c-1"), .initiated_event_id = 5,
                    .cause = HF_START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS)},
         "StartChildWorkflowExecutionFailed   of 5 ship \"c-1\"  WorkflowAlreadyExists\n"},
        {{.event_type = HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED,
          .attributes_case = HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES,
          .child_workflow_execution_started_event_attributes =
              CHILD(child_workflow_execution_started, .initiated_event_id = 5, .workflow_execution = &run)},
         "ChildWorkflowExecutionStarted       of 5 ship \"c-1\"\n"},
        {{.event_type = HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED,
          .attributes_case = HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_COMPLETED_EVENT_ATTRIBUTES,
          .child_workflow_execution_completed_event_attributes = CHILD(
              child_workflow_execution_completed, .initiated_event_id = 5, .workflow_execution = &run, .result = data)},
         "ChildWorkflowExecutionCompleted     of 5 ship \"c-1\"  {\"n\": 1}\n"},
        {{.event_type = HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED,
          .attributes_case = HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES,
          .child_workflow_execution_failed_event_attributes =
              CHILD(child_workflow_execution_failed, .initiated_event_id = 5, .workflow_execution = &run,
                    .failure = failure)},
         "ChildWorkflowExecutionFailed        of 5 ship \"c-1\"  Lost: the ship is lost\n"},
        {{.event_type = HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED,
          .attributes_case = HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_CANCELED_EVENT_ATTRIBUTES,
          .child_workflow_execution_canceled_event_attributes = CHILD(
              child_workflow_execution_canceled, .initiated_event_id = 5, .workflow_execution = &run, .details = data)},
         "ChildWorkflowExecutionCanceled      of 5 ship \"c-1\"  {\"n\": 1}\n"},
        {{.event_type = HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT,
          .attributes_case = HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_TIMED_OUT_EVENT_ATTRIBUTES,
          .child_workflow_execution_timed_out_event_attributes =
              CHILD(child_workflow_execution_timed_out, .initiated_event_id = 5, .workflow_execution = &run)},
         "ChildWorkflowExecutionTimedOut      of 5 ship \"c-1\"\n"},
        {{.event_type = HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED,
          .attributes_case = HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_TERMINATED_EVENT_ATTRIBUTES,
          .child_workflow_execution_terminated_event_attributes =
              CHILD(child_workflow_execution_terminated, .initiated_event_id = 5, .workflow_execution = &run)},
         "ChildWorkflowExecutionTerminated    of 5 ship \"c-1\"\n"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_op op;
        hf_op_init(&op);
        hf_buf history;
        hf_buf text;
        hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
        hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
        hf_pb_history_event event = CASES[i].event;
        event.event_id = 6;
        put(&history, &event);
        hf_run_view view = {.run_id = HF_STR("run"), .history = hf_str_of_len(history.data, history.len)};
        assert_int_equal(hf_timeline_write(&op, &view, 0, &text), HF_OK);
        print_message("%s", hf_buf_text(&text));
        assert_non_null(strstr(hf_buf_text(&text), CASES[i].line));
        hf_buf_deinit(&text);
        hf_buf_deinit(&history);
    }
    hf_arena_deinit(&arena);
}

static void one_event_that_waits_is_one(void **state)
{
    (void)state;
    hf_op op;
    hf_op_init(&op);
    hf_buf history;
    hf_buf text;
    hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
    put_at(&history, 1, HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, 100);
    put_at(&history, 2, HF_EVENT_TYPE_WORKFLOW_TASK_STARTED, 100);
    hf_run_view view = {.run_id = HF_STR("run"),
                        .status = HF_WORKFLOW_EXECUTION_STATUS_RUNNING,
                        .history = hf_str_of_len(history.data, history.len)};
    for (size_t count = 1; count <= 2; count++) {
        view.buffered_count = count;
        text.len = 0;
        assert_int_equal(hf_timeline_write(&op, &view, hf_seconds(200).ns, &text), HF_OK);
        assert_non_null(strstr(hf_buf_text(&text),
                               count == 1 ? ": 1 event is recorded after it\n" : ": 2 events are recorded after it\n"));
    }
    hf_buf_deinit(&text);
    hf_buf_deinit(&history);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(events_of_children_say_which_child_and_what_came),
    cmocka_unit_test(one_event_that_waits_is_one),
    cmocka_unit_test(an_answer_that_was_kept_says_so),
    cmocka_unit_test(which_signal_a_run_waits_for_is_said_where_it_is_known),
    cmocka_unit_test(an_activity_that_was_asked_to_end_is_at_work_until_it_has_ended),
    cmocka_unit_test(a_task_that_nobody_answered_says_why_that_may_be),
    cmocka_unit_test(a_run_that_was_asked_to_end_and_goes_on_says_so),
    cmocka_unit_test(times_that_look_wrong_are_explained),
    cmocka_unit_test(the_reason_of_a_termination_is_not_cut),
    cmocka_unit_test(a_payload_is_cut_unless_all_of_it_is_wanted),
    cmocka_unit_test(what_a_codec_made_is_shown_with_its_encoding),
    cmocka_unit_test(crashes_are_told_beside_buffered_events),
    cmocka_unit_test(a_long_text_is_cut_between_characters),
    cmocka_unit_test(names_do_not_command_the_terminal),
};

int main(int argc, char **argv)
{
    return hf_test_main("timeline", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
