/* Messages as JSON, both ways. */
#include "support/support.h"

#include "base/env.h"
#include "history/pb_json_read.h"
#include "proto/pb.h"
#include "unit/wire/pb_random.h"
#include "wire/base64.h"
#include "wire/json_read.h"
#include "wire/pb_json.h"
#include "wire/text_read.h"
#include "wire/time_text.h"
#include "json/json_read.h"

#include <math.h>

static void one_message(uint64_t seed)
{
    hf_arena arena;
    hf_arena_init(&arena, heap());
    hf_buf text;
    hf_buf_init(&text, heap(), 1 << 24);
    hf_op op;
    hf_op_init(&op);
    random_maker m = {.rng = {seed}, .arena = &arena, .budget = 200, .is_tame = true};
    const hf_pb_type *type = hf_pb_types[seed % hf_pb_type_count];
    void *msg = hf_arena_take(&arena, type->size, 8);
    void *again = hf_arena_take(&arena, type->size, 8);
    random_message(&m, type, msg, 0);
    HF_CHECK(hf_pb_json_write(type, msg, &text) == HF_OK);
    hf_status status = hf_pb_json_read(&op, type, hf_str_of_len(text.data, text.len), &arena, again);
    HF_CHECK_SAY(status == HF_OK, "%s: %s: %s", type->name, op.message, hf_buf_text(&text));
    HF_CHECK_SAY(status != HF_OK || hf_pb_equal(type, msg, again), "%s comes back different: %s", type->name,
                 hf_buf_text(&text));
    hf_buf_deinit(&text);
    hf_arena_deinit(&arena);
}

static void any_message_comes_back_from_json(void **state)
{
    (void)state;
    hf_each_seed("random messages as JSON", 10000, one_message);
}

typedef struct desk {
    hf_op op;
    hf_arena arena;
    hf_buf buf;
} desk;

static void desk_init(desk *d)
{
    hf_op_init(&d->op);
    hf_arena_init(&d->arena, heap());
    hf_buf_init(&d->buf, heap(), 1 << 20);
}

static void desk_deinit(desk *d)
{
    hf_buf_deinit(&d->buf);
    hf_arena_deinit(&d->arena);
}

static void an_event_looks_as_the_standard_says(void **state)
{
    (void)state;
    desk d;
    desk_init(&d);
    hf_pb_payload_metadata_entry entry = {.key = HF_STR("encoding"), .value = HF_STR("json/plain")};
    hf_pb_payload payload = {.metadata = {&entry, 1}, .data = HF_STR("\"hi\"")};
    hf_pb_payloads input = {.payloads = {&payload, 1}};
    hf_pb_workflow_execution_signaled_event_attributes signal = {.signal_name = HF_STR("gr\xc3\xbc\xc3\x9f \"x\""),
                                                                 .input = &input};
    hf_pb_history_event event = {
        .event_id = 9007199254740993,
        .event_time = {1709208000, 500000000, true},
        .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES,
        .workflow_execution_signaled_event_attributes = &signal,
        .worker_may_ignore = true,
    };
    assert_int_equal(hf_pb_json_write(&hf_pb_history_event_type, &event, &d.buf), HF_OK);
    assert_string_equal(hf_buf_text(&d.buf),
                        "{\"eventId\":\"9007199254740993\",\"eventTime\":\"2024-02-29T12:00:00.500Z\","
                        "\"eventType\":\"EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED\","
                        "\"workflowExecutionSignaledEventAttributes\":{\"signalName\":\"gr\xc3\xbc\xc3\x9f \\\"x\\\"\","
                        "\"input\":{\"payloads\":[{\"metadata\":{\"encoding\":\"anNvbi9wbGFpbg==\"},"
                        "\"data\":\"ImhpIg==\"}]}},\"workerMayIgnore\":true}");
    desk_deinit(&d);
}

static void other_spellings_are_read(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "{\"eventId\":\"5\",\"eventType\":\"EVENT_TYPE_TIMER_FIRED\",\"timerFiredEventAttributes\":{\"timerId\":\"x\"}"
        "}",
        "{\"event_id\":5,\"event_type\":\"TimerFired\",\"timer_fired_event_attributes\":{\"timer_id\":\"x\"}}",
        " { \"eventId\" : 5.0, \"eventType\" : 18, \"new\" : [1, {\"a\": null}], \"version\": null,"
        "   \"timerFiredEventAttributes\" : {\"timerId\": \"\\u0078\", \"startedEventId\": \"0\"} } ",
        "{\"eventId\":5e0,\"eventType\":\"18\",\"timerFiredEventAttributes\":{\"timerId\":\"x\"},\"links\":[]}",
    };
    for (size_t i = 0; i < HF_COUNT_OF(TEXTS); i++) {
        desk d;
        desk_init(&d);
        hf_pb_history_event event;
        print_message("%s\n", TEXTS[i]);
        hf_status status = hf_pb_json_read(&d.op, &hf_pb_history_event_type, hf_str_of(TEXTS[i]), &d.arena, &event);
        if (i == 3) { /* a number in a string is an int, but not an enum */
            assert_int_equal(status, HF_ERR_INVALID);
        } else {
            assert_int_equal(status, HF_OK);
            assert_int_equal(event.event_id, 5);
            assert_int_equal(event.event_type, HF_EVENT_TYPE_TIMER_FIRED);
            assert_true(hf_str_equal(event.timer_fired_event_attributes->timer_id, HF_STR("x")));
        }
        desk_deinit(&d);
    }
}

static void what_does_not_fit_is_refused_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says;
    } CASES[] = {
        {"[]", "object"},
        {"{", "byte 1"},
        {"{\"eventId\":1,\"eventId\":2}", "duplicate"},
        {"{\"eventId\":\"one\"}", "event_id: an integer"},
        {"{\"eventId\":1.5}", "integer"},
        {"{\"eventId\":\"9223372036854775808\"}", "does not fit"},
        {"{\"eventType\":\"EVENT_TYPE_NOBODY\"}", "enum"},
        {"{\"eventType\":4294967296}", "does not fit"},
        {"{\"eventTime\":\"2023-02-29T00:00:00Z\"}", "time"},
        {"{\"eventTime\":12}", "string"},
        {"{\"workerMayIgnore\":\"true\"}", "true or false"},
        {"{\"links\":{}}", "array"},
        {"{\"timerFiredEventAttributes\":[]}", "object"},
        {"{\"timerFiredEventAttributes\":{},\"timerStartedEventAttributes\":{}}", "oneof"},
        {"{\"workflowExecutionSignaledEventAttributes\":{\"input\":{\"payloads\":[{\"data\":\"a\"}]}}}", "base64"},
        {"{\"workflowExecutionSignaledEventAttributes\":{\"input\":{\"payloads\":[{\"data\":\"a!bc\"}]}}}", "base64"},
        {"{\"timerStartedEventAttributes\":{\"startToFireTimeout\":\"5\"}}", "duration"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        desk d;
        desk_init(&d);
        hf_pb_history_event event;
        print_message("%s\n", CASES[i].text);
        assert_int_equal(hf_pb_json_read(&d.op, &hf_pb_history_event_type, hf_str_of(CASES[i].text), &d.arena, &event),
                         HF_ERR_INVALID);
        if (strstr(d.op.message, CASES[i].says) == NULL) {
            fail_msg("it says: %s", d.op.message);
        }
        desk_deinit(&d);
    }
}

static void json_nested_too_deep_is_refused(void **state)
{
    (void)state;
    static char text[400000];
    desk d;
    desk_init(&d);
    hf_json_value value;
    memset(text, '[', sizeof text);
    assert_int_equal(hf_json_read(&d.op, hf_str_of_len(text, sizeof text), &d.arena, &value), HF_ERR_INVALID);
    memset(text + 100, ']', 100);
    assert_int_equal(hf_json_read(&d.op, hf_str_of_len(text, 200), &d.arena, &value), HF_OK);
    assert_int_equal(value.array.count, 1);
    assert_int_equal(hf_json_read(&d.op, HF_STR("\"[[\\\"[\\\\\""), &d.arena, &value), HF_OK);
    assert_true(hf_str_equal(value.string, HF_STR("[[\"[\\")));
    desk_deinit(&d);
}

static bool is_json(hf_str text)
{
    return hf_json_check(NULL, text, hf_env_memory(hf_env_posix())) == HF_OK;
}

static void json_is_told_from_other_text(void **state)
{
    (void)state;
    static const struct {
        hf_str text;
        bool is_json;
        bool is_read; /* by jansson, which refuses some texts that are JSON */
    } CASES[] = {
        {HF_STR_INIT("null"), true, true},
        {HF_STR_INIT(" [true , false,null]\r\n\t"), true, true},
        {HF_STR_INIT("{\"a\":{},\"b\":[],\"c\":[{\"d\":[[1]]}]}"), true, true},
        {HF_STR_INIT("-0.5e+10"), true, true},
        {HF_STR_INIT("[0,-1,12,1E9]"), true, true},
        {HF_STR_INIT("\"\\ud83d\\ude00 \\u00e9 \\/\\n \xe2\x82\xac\\u0000\""), true, true},
        {HF_STR_INIT("{\"a\":1,\"a\":2}"), true, false},
        {HF_STR_INIT("99999999999999999999"), true, false},
        {HF_STR_INIT("1e999"), true, false},
        {HF_STR_INIT(""), false, false},
        {HF_STR_INIT("  "), false, false},
        {HF_STR_INIT("nul"), false, false},
        {HF_STR_INIT("nulll"), false, false},
        {HF_STR_INIT("1 2"), false, false},
        {HF_STR_INIT("01"), false, false},
        {HF_STR_INIT("-"), false, false},
        {HF_STR_INIT("1."), false, false},
        {HF_STR_INIT("1e"), false, false},
        {HF_STR_INIT("+1"), false, false},
        {HF_STR_INIT("[1,]"), false, false},
        {HF_STR_INIT("[1"), false, false},
        {HF_STR_INIT("[1}"), false, false},
        {HF_STR_INIT("]"), false, false},
        {HF_STR_INIT("{\"a\"}"), false, false},
        {HF_STR_INIT("{\"a\":}"), false, false},
        {HF_STR_INIT("{\"a\":1,}"), false, false},
        {HF_STR_INIT("{a:1}"), false, false},
        {HF_STR_INIT("{1:1}"), false, false},
        {HF_STR_INIT("\"open"), false, false},
        {HF_STR_INIT("\"\\"), false, false},
        {HF_STR_INIT("\"\\x\""), false, false},
        {HF_STR_INIT("\"\\\0\""), false, false},
        {HF_STR_INIT("\"\\u12g4\""), false, false},
        {HF_STR_INIT("\"\\u12"), false, false},
        {HF_STR_INIT("\"\\ud800\""), false, false},
        {HF_STR_INIT("\"\\ud800\\u0041\""), false, false},
        {HF_STR_INIT("\"\\udc00\""), false, false},
        {HF_STR_INIT("\"\n\""), false, false},
        {HF_STR_INIT("\"\0\""), false, false},
        {HF_STR_INIT("\"\xc0\x80\""), false, false},
        {HF_STR_INIT("\"\xed\xa0\x80\""), false, false},
        {HF_STR_INIT("\xef\xbb\xbf{}"), false, false},
    };
    static char deep[400000];
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        desk d;
        desk_init(&d);
        hf_json_value value;
        print_message("%.*s\n", HF_STR_ARGS(CASES[i].text));
        assert_int_equal(is_json(CASES[i].text), CASES[i].is_json);
        assert_int_equal(hf_json_read(&d.op, CASES[i].text, &d.arena, &value) == HF_OK, CASES[i].is_read);
        desk_deinit(&d);
    }
    memset(deep, '[', sizeof deep);
    assert_false(is_json(hf_str_of_len(deep, sizeof deep)));
    memset(deep + HF_JSON_READ_DEPTH_MAX, ']', HF_JSON_READ_DEPTH_MAX);
    assert_true(is_json(hf_str_of_len(deep, (size_t)2 * HF_JSON_READ_DEPTH_MAX)));
    memset(deep + HF_JSON_READ_DEPTH_MAX + 1, ']', HF_JSON_READ_DEPTH_MAX + 1);
    deep[HF_JSON_READ_DEPTH_MAX] = '[';
    assert_false(is_json(hf_str_of_len(deep, (size_t)2 * HF_JSON_READ_DEPTH_MAX + 2)));
}

static void times_have_one_text(void **state)
{
    (void)state;
    static const struct {
        hf_pb_timestamp at;
        const char *text;
    } TIMES[] = {
        {{0, 0, true}, "1970-01-01T00:00:00Z"},
        {{-1, 999999999, true}, "1969-12-31T23:59:59.999999999Z"},
        {{951782400, 1000, true}, "2000-02-29T00:00:00.000001Z"},
        {{-62135596800, 0, true}, "0001-01-01T00:00:00Z"},
        {{253402300799, 0, true}, "9999-12-31T23:59:59Z"},
        {{-2203891200, 0, true}, "1900-03-01T00:00:00Z"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(TIMES); i++) {
        char text[HF_TIME_TEXT_LEN_MAX];
        hf_pb_timestamp again;
        assert_true(hf_timestamp_format(TIMES[i].at, text) > 0);
        assert_string_equal(text, TIMES[i].text);
        assert_true(hf_timestamp_parse(hf_str_of(text), &again));
        assert_true(again.seconds == TIMES[i].at.seconds && again.nanos == TIMES[i].at.nanos);
    }
    hf_pb_timestamp at;
    assert_true(hf_timestamp_parse(HF_STR("2024-01-01T02:00:00.5+02:00"), &at));
    assert_true(at.seconds == 1704067200 && at.nanos == 500000000);
    static const char *const BAD[] = {"",
                                      "2024-01-01",
                                      "2024-01-01T00:00:00",
                                      "2024-13-01T00:00:00Z",
                                      "2024-01-01T24:00:00Z",
                                      "2024-01-01T00:00:00.Z",
                                      "2024-01-01T00:00:00Zx",
                                      "0000-01-01T00:00:00Z",
                                      "1900-02-29T00:00:00Z",
                                      "0001-01-01T00:00:00+01:00"};
    for (size_t i = 0; i < HF_COUNT_OF(BAD); i++) {
        assert_false(hf_timestamp_parse(hf_str_of(BAD[i]), &at));
    }
    char text[HF_TIME_TEXT_LEN_MAX];
    assert_int_equal(hf_timestamp_format((hf_pb_timestamp){253402300800, 0, true}, text), 0);
    assert_int_equal(hf_timestamp_format((hf_pb_timestamp){0, -1, true}, text), 0);
}

static void durations_have_one_text(void **state)
{
    (void)state;
    static const struct {
        hf_pb_duration span;
        const char *text;
    } SPANS[] = {
        {{0, 0, true}, "0s"},
        {{1, 500000000, true}, "1.500s"},
        {{0, -1, true}, "-0.000000001s"},
        {{-3, -20000, true}, "-3.000020s"},
        {{INT64_MIN, 0, true}, "-9223372036854775808s"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(SPANS); i++) {
        char text[HF_TIME_TEXT_LEN_MAX];
        hf_pb_duration again;
        assert_true(hf_duration_format(SPANS[i].span, text) > 0);
        assert_string_equal(text, SPANS[i].text);
        assert_true(hf_duration_parse(hf_str_of(text), &again));
        assert_true(again.seconds == SPANS[i].span.seconds && again.nanos == SPANS[i].span.nanos);
    }
    static const char *const BAD[] = {"", "s", "1", "-s", "1.s", ".5s", "1ss", "9223372036854775808s", "+1s"};
    hf_pb_duration span;
    for (size_t i = 0; i < HF_COUNT_OF(BAD); i++) {
        assert_false(hf_duration_parse(hf_str_of(BAD[i]), &span));
    }
    char text[HF_TIME_TEXT_LEN_MAX];
    assert_int_equal(hf_duration_format((hf_pb_duration){1, -1, true}, text), 0);
}

static void base64_comes_in_two_alphabets(void **state)
{
    (void)state;
    desk d;
    desk_init(&d);
    hf_str bytes = {0};
    hf_base64_encode(HF_STR("\xfb\xff\xfe"), &d.buf);
    assert_string_equal(hf_buf_text(&d.buf), "+//+");
    assert_int_equal(hf_base64_decode(HF_STR("-__-"), &d.arena, &bytes), HF_OK);
    assert_true(hf_str_equal(bytes, HF_STR("\xfb\xff\xfe")));
    static const char *const TEXTS[] = {"YQ==", "YQ", "YWI=", "YWI", "YWJj", ""};
    static const char *const MEAN[] = {"a", "a", "ab", "ab", "abc", ""};
    for (size_t i = 0; i < HF_COUNT_OF(TEXTS); i++) {
        assert_int_equal(hf_base64_decode(hf_str_of(TEXTS[i]), &d.arena, &bytes), HF_OK);
        assert_true(hf_str_equal(bytes, hf_str_of(MEAN[i])));
    }
    static const char *const BAD[] = {"Y", "YQ=", "Y===", "=", "YQ==YQ==", "Y Q=", "YQ\n="};
    for (size_t i = 0; i < HF_COUNT_OF(BAD); i++) {
        assert_int_equal(hf_base64_decode(hf_str_of(BAD[i]), &d.arena, &bytes), HF_ERR_INVALID);
    }
    desk_deinit(&d);
}

static void numbers_are_written_short_and_exact(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } CASES[] = {{0.1, "0.1"},
                 {2.0, "2"},
                 {1e300, "1e+300"},
                 {-0.5, "-0.5"},
                 {-0.0, "-0.0"},
                 {1.0 / 3, "0.3333333333333333"},
                 {(double)NAN, "\"NaN\""},
                 {-(double)INFINITY, "\"-Infinity\""}};
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        desk d;
        desk_init(&d);
        hf_pb_double_value value = {.value = CASES[i].value};
        assert_int_equal(hf_pb_json_write(&hf_pb_double_value_type, &value, &d.buf), HF_OK);
        assert_string_equal(hf_buf_text(&d.buf), CASES[i].text);
        hf_pb_double_value again;
        assert_int_equal(
            hf_pb_json_read(&d.op, &hf_pb_double_value_type, hf_str_of_len(d.buf.data, d.buf.len), &d.arena, &again),
            HF_OK);
        assert_true(again.value == value.value || (again.value != again.value && value.value != value.value));
        assert_int_equal(signbit(again.value) != 0, signbit(value.value) != 0 && !isnan(value.value));
        desk_deinit(&d);
    }
}

static void what_has_no_json_is_refused(void **state)
{
    (void)state;
    desk d;
    desk_init(&d);
    hf_pb_history_event event = {.event_time = {INT64_MAX, 0, true}};
    assert_int_equal(hf_pb_json_write(&hf_pb_history_event_type, &event, &d.buf), HF_ERR_INVALID);
    hf_pb_failure chain[HF_PB_DEPTH_MAX + 1] = {0};
    for (size_t i = 0; i < HF_PB_DEPTH_MAX; i++) {
        chain[i].cause = &chain[i + 1];
    }
    assert_int_equal(hf_pb_json_write(&hf_pb_failure_type, &chain[0], &d.buf), HF_ERR_INVALID);
    assert_int_equal(hf_pb_json_write(&hf_pb_failure_type, &chain[1], &d.buf), HF_OK);
    desk_deinit(&d);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(any_message_comes_back_from_json),
    cmocka_unit_test(an_event_looks_as_the_standard_says),
    cmocka_unit_test(other_spellings_are_read),
    cmocka_unit_test(what_does_not_fit_is_refused_with_a_sentence),
    cmocka_unit_test(json_nested_too_deep_is_refused),
    cmocka_unit_test(json_is_told_from_other_text),
    cmocka_unit_test(times_have_one_text),
    cmocka_unit_test(durations_have_one_text),
    cmocka_unit_test(base64_comes_in_two_alphabets),
    cmocka_unit_test(numbers_are_written_short_and_exact),
    cmocka_unit_test(what_has_no_json_is_refused),
};

int main(int argc, char **argv)
{
    return hf_test_main("pb_json", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
