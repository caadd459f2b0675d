/* A run for people: whatever its users have named things, nothing of it commands the terminal. */
#include "support/support.h"

#include "main/timeline.c"
#include "support/engine_rig.h"

#define NASTY HF_STR("\x1b[31mx\r\n\x7f")

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
    hf_pb_history_event second = {
        .event_id = 2,
        .event_type = HF_EVENT_TYPE_TIMER_STARTED,
        .attributes_case = HF_PB_HISTORY_EVENT_TIMER_STARTED_EVENT_ATTRIBUTES,
        .timer_started_event_attributes = &timer_started,
    };
    put(history, &second);
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
    assert_non_null(strstr(hf_buf_text(&text), "timer  [31mx"));
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        assert_true(byte == '\n' || (byte >= 0x20 && byte != 0x7f));
    }
    hf_buf_deinit(&text);
    hf_buf_deinit(&history);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(names_do_not_command_the_terminal),
};

int main(int argc, char **argv)
{
    return hf_test_main("timeline", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
