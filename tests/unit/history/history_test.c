/* Histories as bytes and as JSON, payloads and failures. */
#include "support/support.h"

#include "history/history.h"
#include "history/pb_json_read.h"
#include "unit/wire/pb_random.h"

typedef struct desk {
    hf_op op;
    hf_arena arena;
    hf_buf bytes;
    hf_buf text;
    hf_buf again;
} desk;

static void desk_init(desk *d)
{
    hf_op_init(&d->op);
    hf_arena_init(&d->arena, heap());
    hf_buf_init(&d->bytes, heap(), 1 << 24);
    hf_buf_init(&d->text, heap(), 1 << 24);
    hf_buf_init(&d->again, heap(), 1 << 24);
}

static void desk_deinit(desk *d)
{
    hf_buf_deinit(&d->bytes);
    hf_buf_deinit(&d->text);
    hf_buf_deinit(&d->again);
    hf_arena_deinit(&d->arena);
}

static hf_str content(const hf_buf *buf)
{
    return hf_str_of_len(buf->data, buf->len);
}

static void one_history(uint64_t seed)
{
    desk d;
    desk_init(&d);
    random_maker m = {.rng = {seed}, .arena = &d.arena, .budget = 400, .is_tame = true};
    uint64_t count = hf_rng_below(&m.rng, 8);
    for (uint64_t i = 0; i < count; i++) {
        hf_pb_history_event event;
        random_message(&m, &hf_pb_history_event_type, &event, 0);
        hf_pb_encode_field(1, &hf_pb_history_event_type, &event, &d.bytes);
    }
    HF_CHECK(hf_history_to_json(&d.op, content(&d.bytes), seed % 2 == 0, &d.text) == HF_OK);
    HF_CHECK_SAY(hf_history_from_json(&d.op, content(&d.text), &d.arena, &d.again) == HF_OK, "%s", d.op.message);
    HF_CHECK(hf_str_equal(content(&d.bytes), content(&d.again)));
    hf_str rest = content(&d.bytes);
    hf_str event;
    while (hf_history_next(&rest, &event)) {
        count--;
    }
    HF_CHECK(count == 0);
    desk_deinit(&d);
}

/* history-H1 */
static void any_history_comes_back_from_json(void **state)
{
    (void)state;
    hf_each_seed("random histories", 2000, one_history);
}

/* Beside base64, which nobody reads; and only what is JSON. */
static void payloads_are_readable_for_people(void **state)
{
    (void)state;
    static const struct {
        hf_str data;
        const char *encoding;
        const char *json; /* NULL = none */
    } CASES[] = {
        {HF_STR_INIT("{\"item\": \"kelp\",\n\t\"n\": 7}"), "json/plain", "{\"item\": \"kelp\",  \"n\": 7}"},
        {HF_STR_INIT("7"), "json/plain", "7"},
        {HF_STR_INIT("\"\xc2\x9b \xe2\x82\xac\x7f\""), "json/plain", "\"\\u009b \xe2\x82\xac\\u007f\""},
        {HF_STR_INIT("{\"no JSON\""), "json/plain", NULL},
        {HF_STR_INIT("\"\x9b\""), "json/plain", NULL},
        {HF_STR_INIT(""), "json/plain", NULL},
        {HF_STR_INIT("7"), "binary/plain", NULL},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        desk d;
        desk_init(&d);
        print_message("payload %zu\n", i);
        hf_pb_payloads *input =
            hf_payloads_of(&d.arena, hf_payload_make(&d.arena, hf_str_of(CASES[i].encoding), CASES[i].data));
        hf_pb_workflow_execution_started_event_attributes started = {.input = input};
        hf_pb_history_event event = {
            .event_id = 1,
            .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
            .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES,
            .workflow_execution_started_event_attributes = &started,
        };
        hf_pb_encode_field(1, &hf_pb_history_event_type, &event, &d.bytes);
        assert_int_equal(hf_history_to_json(&d.op, content(&d.bytes), true, &d.text), HF_OK);
        char expected[100];
        (void)snprintf(expected, sizeof expected, ",\"json\":%s}", CASES[i].json != NULL ? CASES[i].json : "");
        assert_true((strstr(hf_buf_text(&d.text), ",\"json\":") != NULL) == (CASES[i].json != NULL));
        assert_true(CASES[i].json == NULL || strstr(hf_buf_text(&d.text), expected) != NULL);
        assert_int_equal(hf_history_from_json(&d.op, content(&d.text), &d.arena, &d.again), HF_OK);
        assert_true(hf_str_equal(content(&d.bytes), content(&d.again)));
        d.text.len = 0;
        assert_int_equal(hf_history_to_json(&d.op, content(&d.bytes), false, &d.text), HF_OK);
        assert_null(strstr(hf_buf_text(&d.text), "\"json\":"));
        desk_deinit(&d);
    }
}

static void malformed_histories_are_refused(void **state)
{
    (void)state;
    desk d;
    desk_init(&d);
    assert_int_equal(hf_history_to_json(&d.op, HF_STR("\x0a\x09z"), false, &d.text), HF_ERR_INVALID);
    assert_int_equal(hf_history_to_json(&d.op, HF_STR("\x0a\x02\x0a\x09"), false, &d.text), HF_ERR_INVALID);
    assert_int_equal(hf_history_from_json(&d.op, HF_STR("{\"events\":3}"), &d.arena, &d.again), HF_ERR_INVALID);
    d.text.len = 0;
    assert_int_equal(hf_history_to_json(&d.op, (hf_str){NULL, 0}, false, &d.text), HF_OK);
    assert_string_equal(hf_buf_text(&d.text), "{\"events\":[]}");
    desk_deinit(&d);
}

static void older_spelling_of_a_history_is_read(void **state)
{
    (void)state;
    desk d;
    desk_init(&d);
    static const char TEXT[] =
        "{\"events\":[{\"eventId\":\"1\",\"eventTime\":\"2020-07-30T00:30:03.082421843Z\","
        "\"eventType\":\"WorkflowExecutionStarted\",\"version\":\"-24\",\"taskId\":\"5242897\","
        "\"workflowExecutionStartedEventAttributes\":{\"workflowType\":{\"name\":\"greet\"},"
        "\"taskQueue\":{\"name\":\"q\",\"kind\":\"Normal\"},\"workflowTaskTimeout\":\"10s\",\"attempt\":1}}]}";
    assert_int_equal(hf_history_from_json(&d.op, hf_str_of(TEXT), &d.arena, &d.bytes), HF_OK);
    hf_pb_history history;
    assert_int_equal(hf_pb_decode(&d.op, &hf_pb_history_type, content(&d.bytes), &d.arena, &history), HF_OK);
    const hf_pb_history_event *event = &history.events.items[0];
    assert_int_equal(event->event_type, HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED);
    assert_int_equal(event->version, -24);
    assert_int_equal(event->workflow_execution_started_event_attributes->task_queue->kind, HF_TASK_QUEUE_KIND_NORMAL);
    assert_int_equal(event->workflow_execution_started_event_attributes->workflow_task_timeout.seconds, 10);
    desk_deinit(&d);
}

/* history-H2 */
static void events_have_names(void **state)
{
    (void)state;
    assert_string_equal(hf_event_name(HF_EVENT_TYPE_TIMER_STARTED), "TimerStarted");
    assert_string_equal(hf_event_name(HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW),
                        "WorkflowExecutionContinuedAsNew");
    assert_string_equal(hf_event_name(-5), "Unknown");
}

static void payloads_say_how_they_are_encoded(void **state)
{
    (void)state;
    desk d;
    desk_init(&d);
    hf_pb_payloads *list = hf_payloads_of(&d.arena, hf_payload_json(&d.arena, HF_STR("{}")));
    const hf_pb_payload *first = hf_payloads_first(list);
    assert_true(hf_str_equal(hf_payload_encoding(first), HF_STR("json/plain")));
    assert_true(hf_str_equal(first->data, HF_STR("{}")));
    hf_pb_payload bytes = hf_payload_bytes(&d.arena, HF_STR("\x00\x01"));
    assert_true(hf_str_equal(hf_payload_encoding(&bytes), HF_STR("binary/plain")));
    hf_pb_payload none = hf_payload_null(&d.arena);
    assert_true(hf_str_equal(hf_payload_encoding(&none), HF_STR("binary/null")));
    assert_int_equal(none.data.len, 0);
    assert_int_equal(hf_payload_metadata(&none, HF_STR("messageType")).len, 0);
    assert_null(hf_payloads_first(NULL));
    assert_null(hf_payloads_first(&(hf_pb_payloads){0}));
    desk_deinit(&d);
}

static void failures_carry_what_they_are(void **state)
{
    (void)state;
    desk d;
    desk_init(&d);
    hf_pb_failure *failure = hf_failure_application(&d.arena, HF_STR("CardError"), HF_STR("declined"), true);
    assert_int_equal(failure->failure_info_case, HF_PB_FAILURE_APPLICATION_FAILURE_INFO);
    assert_true(failure->application_failure_info->non_retryable);
    assert_true(hf_str_equal(hf_failure_type(failure), HF_STR("CardError")));
    failure = hf_failure_timeout(&d.arena, HF_TIMEOUT_TYPE_HEARTBEAT, HF_STR("late"));
    assert_int_equal(failure->timeout_failure_info->timeout_type, HF_TIMEOUT_TYPE_HEARTBEAT);
    assert_int_equal(hf_failure_type(failure).len, 0);
    failure = hf_failure_canceled(&d.arena, HF_STR("canceled"), NULL);
    assert_int_equal(failure->failure_info_case, HF_PB_FAILURE_CANCELED_FAILURE_INFO);
    assert_non_null(failure->canceled_failure_info);
    failure = hf_failure_terminated(&d.arena, HF_STR("terminated"));
    assert_non_null(failure->terminated_failure_info);
    failure = hf_failure_server(&d.arena, HF_STR("broken"), false);
    assert_non_null(failure->server_failure_info);
    assert_int_equal(hf_failure_type(NULL).len, 0);
    desk_deinit(&d);
}

static void *no_memory(void *state, size_t len, size_t align)
{
    (void)state;
    (void)len;
    (void)align;
    return NULL;
}

static void without_memory_nothing_is_made(void **state)
{
    (void)state;
    hf_arena arena;
    hf_arena_init(&arena, (hf_allocator){no_memory, heap_release, NULL});
    assert_null(hf_failure_application(&arena, HF_STR("t"), HF_STR("m"), false));
    assert_null(hf_failure_timeout(&arena, 1, HF_STR("m")));
    assert_null(hf_failure_canceled(&arena, HF_STR("m"), NULL));
    assert_null(hf_failure_terminated(&arena, HF_STR("m")));
    assert_null(hf_failure_server(&arena, HF_STR("m"), true));
    assert_int_equal(hf_payload_json(&arena, HF_STR("1")).metadata.count, 0);
    assert_null(hf_payloads_of(&arena, (hf_pb_payload){0}));
    hf_arena_deinit(&arena);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(any_history_comes_back_from_json),
    cmocka_unit_test(payloads_are_readable_for_people),
    cmocka_unit_test(malformed_histories_are_refused),
    cmocka_unit_test(older_spelling_of_a_history_is_read),
    cmocka_unit_test(events_have_names),
    cmocka_unit_test(payloads_say_how_they_are_encoded),
    cmocka_unit_test(failures_carry_what_they_are),
    cmocka_unit_test(without_memory_nothing_is_made),
};

int main(int argc, char **argv)
{
    return hf_test_main("history", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
