/* The codec against itself: whatever a table can describe comes back as it was, and byte by byte. */
#include "support/support.h"

#include "proto/pb.h"
#include "unit/wire/pb_kinds.h"
#include "unit/wire/pb_random.h"

typedef struct bench {
    hf_op op;
    hf_arena arena;
    hf_buf first;
    hf_buf second;
} bench;

static void bench_init(bench *b)
{
    hf_op_init(&b->op);
    hf_arena_init(&b->arena, heap());
    hf_buf_init(&b->first, heap(), 1 << 26);
    hf_buf_init(&b->second, heap(), 1 << 26);
}

static void bench_deinit(bench *b)
{
    hf_buf_deinit(&b->first);
    hf_buf_deinit(&b->second);
    hf_arena_deinit(&b->arena);
}

static hf_str content(const hf_buf *buf)
{
    return hf_str_of_len(buf->data, buf->len);
}

/* Encodes, decodes, compares, encodes again, copies. */
static void round_trip(bench *b, const hf_pb_type *type, const void *msg)
{
    hf_pb_encode(type, msg, &b->first);
    if (!HF_CHECK(hf_buf_status(&b->first) == HF_OK)) {
        return;
    }
    void *again = hf_arena_take(&b->arena, type->size, 8);
    hf_status status = hf_pb_decode(&b->op, type, content(&b->first), &b->arena, again);
    HF_CHECK_SAY(status == HF_OK, "%s: %s", type->name, b->op.message);
    HF_CHECK_SAY(hf_pb_equal(type, msg, again), "%s comes back different", type->name);
    hf_pb_encode(type, again, &b->second);
    HF_CHECK_SAY(hf_str_equal(content(&b->first), content(&b->second)), "%s is written differently", type->name);

    void *copy = hf_arena_take(&b->arena, type->size, 8);
    HF_CHECK(hf_pb_copy(type, again, &b->arena, copy) == HF_OK);
    if (b->first.len > 0) {
        memset(b->first.data, 0x55, b->first.len); /* what the decoded message borrows from; the copy does not */
    }
    b->second.len = 0;
    hf_pb_encode(type, copy, &b->second);
    HF_CHECK_SAY(hf_pb_equal(type, msg, copy), "%s is copied differently", type->name);
}

static void one_message(uint64_t seed)
{
    bench b;
    bench_init(&b);
    random_maker m = {.rng = {seed}, .arena = &b.arena, .budget = 200};
    const hf_pb_type *type = hf_pb_types[seed % hf_pb_type_count];
    void *msg = hf_arena_take(&b.arena, type->size, 8);
    random_message(&m, type, msg, 0);
    round_trip(&b, type, msg);
    bench_deinit(&b);
}

/* wire-W1 */
static void any_message_comes_back_as_it_was(void **state)
{
    (void)state;
    hf_each_seed("random messages", 20000, one_message);
}

static void one_of_kinds(uint64_t seed)
{
    bench b;
    bench_init(&b);
    random_maker m = {.rng = {seed}, .arena = &b.arena, .budget = 100};
    kinds msg;
    random_message(&m, &KINDS, &msg, 0);
    round_trip(&b, &KINDS, &msg);
    bench_deinit(&b);
}

static void every_kind_comes_back_as_it_was(void **state)
{
    (void)state;
    hf_each_seed("random kinds", 2000, one_of_kinds);
}

/* ---- Bytes computed by hand ------------------------------------------------------------------------------------ */

static void assert_bytes(const hf_buf *buf, const char *bytes, size_t len)
{
    assert_int_equal(buf->len, len);
    assert_memory_equal(buf->data, bytes, len);
}

static void a_payload_has_the_bytes_of_the_standard(void **state)
{
    (void)state;
    bench b;
    bench_init(&b);
    hf_pb_payload_metadata_entry entry = {.key = HF_STR("encoding"), .value = HF_STR("json/plain")};
    hf_pb_payload payload = {.metadata = {&entry, 1}, .data = HF_STR("\"hi\"")};
    hf_pb_encode(&hf_pb_payload_type, &payload, &b.first);
    static const char BYTES[] = "\x0a\x16"
                                "\x0a\x08"
                                "encoding"
                                "\x12\x0a"
                                "json/plain"
                                "\x12\x04\"hi\"";
    assert_bytes(&b.first, BYTES, sizeof BYTES - 1);
    bench_deinit(&b);
}

static void an_event_has_the_bytes_of_the_standard(void **state)
{
    (void)state;
    bench b;
    bench_init(&b);
    hf_pb_timer_started_event_attributes timer = {.timer_id = HF_STR("1"),
                                                  .start_to_fire_timeout = {0, 0, true}, /* present and zero */
                                                  .workflow_task_completed_event_id = 300};
    hf_pb_history_event event = {.event_id = 5,
                                 .event_time = {1, 500, true},
                                 .event_type = HF_EVENT_TYPE_TIMER_STARTED,
                                 .attributes_case = HF_PB_HISTORY_EVENT_TIMER_STARTED_EVENT_ATTRIBUTES,
                                 .timer_started_event_attributes = &timer};
    hf_pb_encode_field(1, &hf_pb_history_event_type, &event, &b.first);
    static const char BYTES[] = "\x0a\x16"                     /* field 1, 22 bytes */
                                "\x08\x05"                     /* event_id */
                                "\x12\x05\x08\x01\x10\xf4\x03" /* event_time: 1 s, 500 ns */
                                "\x18\x11"                     /* event_type 17 */
                                "\xa2\x01\x08"                 /* field 20, 8 bytes */
                                "\x0a\x01"
                                "1"
                                "\x12\x00"
                                "\x18\xac\x02";
    assert_bytes(&b.first, BYTES, sizeof BYTES - 1);

    hf_pb_history history;
    assert_int_equal(hf_pb_decode(&b.op, &hf_pb_history_type, content(&b.first), &b.arena, &history), HF_OK);
    assert_int_equal(history.events.count, 1);
    assert_true(history.events.items[0].timer_started_event_attributes->start_to_fire_timeout.has);
    assert_true(hf_pb_equal(&hf_pb_history_event_type, &event, &history.events.items[0]));
    bench_deinit(&b);
}

static void numbers_have_the_bytes_of_the_standard(void **state)
{
    (void)state;
    bench b;
    bench_init(&b);
    int32_t packed[] = {1, -1, 300};
    kinds msg = {.a_bool = true,
                 .a_sint32 = -2,
                 .a_fixed32 = 0x04030201,
                 .a_double = 1.0,
                 .a_int32 = -1,
                 .int32s = {packed, 3},
                 .one_case = 22};
    hf_pb_encode(&KINDS, &msg, &b.first);
    static const char BYTES[] = "\x08\x01"
                                "\x10\x03"
                                "\x25\x01\x02\x03\x04"
                                "\x49\x00\x00\x00\x00\x00\x00\xf0\x3f"
                                "\x60\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                                "\x92\x01\x0d\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xac\x02"
                                "\xb0\x01\x00"; /* a oneof's zero is written */
    assert_bytes(&b.first, BYTES, sizeof BYTES - 1);
    bench_deinit(&b);
}

/* ---- The rules of reading -------------------------------------------------------------------------------------- */

static void lists_are_read_packed_and_one_by_one(void **state)
{
    (void)state;
    bench b;
    bench_init(&b);
    static const char BYTES[] = "\x90\x01\x07"         /* one by one */
                                "\xaa\x01\x01x"        /* another list in between */
                                "\x92\x01\x02\x08\x09" /* packed */
                                "\x92\x01\x00"         /* packed, and empty */
                                "\xaa\x01\x01y"
                                "\x90\x01\x0a";
    kinds msg;
    assert_int_equal(hf_pb_decode(&b.op, &KINDS, hf_str_of_len(BYTES, sizeof BYTES - 1), &b.arena, &msg), HF_OK);
    assert_int_equal(msg.int32s.count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(msg.int32s.items[i], 7 + i);
    }
    assert_int_equal(msg.strs.count, 2);
    assert_memory_equal(msg.strs.items[1].data, "y", 1);
    bench_deinit(&b);
}

static void the_last_one_wins_and_parts_are_merged(void **state)
{
    (void)state;
    bench b;
    bench_init(&b);
    hf_pb_workflow_execution_signaled_event_attributes msg;
    static const char BYTES[] = "\x0a\x01"
                                "a"
                                "\x12\x04\x0a\x02\x12\x00" /* input: one payload */
                                "\x0a\x01"
                                "b"
                                "\x12\x04\x0a\x02\x12\x00" /* input: one more */
                                "\x32\x03\x0a\x01w"        /* workflow id of the execution */
                                "\x32\x03\x12\x01r";       /* and its run id */
    assert_int_equal(hf_pb_decode(&b.op, &hf_pb_workflow_execution_signaled_event_attributes_type,
                                  hf_str_of_len(BYTES, sizeof BYTES - 1), &b.arena, &msg),
                     HF_OK);
    assert_true(hf_str_equal(msg.signal_name, HF_STR("b")));
    assert_int_equal(msg.input->payloads.count, 2);
    assert_true(hf_str_equal(msg.external_workflow_execution->workflow_id, HF_STR("w")));
    assert_true(hf_str_equal(msg.external_workflow_execution->run_id, HF_STR("r")));

    kinds one;
    static const char CASES[] = "\xb0\x01\x05" /* one_int64 */
                                "\xba\x01\x02hi" /* one_str takes its place */;
    assert_int_equal(hf_pb_decode(&b.op, &KINDS, hf_str_of_len(CASES, sizeof CASES - 1), &b.arena, &one), HF_OK);
    assert_int_equal(one.one_case, 23);
    assert_true(hf_str_equal(one.one_str, HF_STR("hi")));
    bench_deinit(&b);
}

static void what_is_unknown_is_kept_at_its_place(void **state)
{
    (void)state;
    bench b;
    bench_init(&b);
    static const char *const CASES[] = {
        "\x08\x01\xd2\x04\x01x\xfd\x04zzzz", /* behind the known ones */
        "\x08\x01\x49"
        "12345678"
        "\x60\x05\xa0\x06\x07",     /* field 9 holds what it should; 100 is unknown */
        "\x0a\x01q\x60\x05",        /* another wire type than the table's */
        "\xab\x05\x08\x01\xac\x05", /* a group */
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        kinds msg;
        hf_str bytes = hf_str_of(CASES[i]);
        b.first.len = 0;
        assert_int_equal(hf_pb_decode(&b.op, &KINDS, bytes, &b.arena, &msg), HF_OK);
        assert_true(msg.unknown.len > 0);
        hf_pb_encode(&KINDS, &msg, &b.first);
        assert_true(hf_str_equal(content(&b.first), bytes));
    }
    /* Not neighbours: gathered in the order read. */
    static const char MIXED[] = "\xa0\x06\x01\x08\x01\xa8\x06\x02\x60\x05\xb0\x06\x03";
    kinds msg;
    assert_int_equal(hf_pb_decode(&b.op, &KINDS, hf_str_of(MIXED), &b.arena, &msg), HF_OK);
    assert_true(hf_str_equal(msg.unknown, HF_STR("\xa0\x06\x01\xa8\x06\x02\xb0\x06\x03")));
    bench_deinit(&b);
}

/* The fields of `part` are fields of `whole`, alike. */
static void check_part(const hf_pb_type *part, const hf_pb_type *whole)
{
    for (size_t i = 0; i < part->field_count; i++) {
        const hf_pb_field *field = &part->fields[i];
        uint8_t place = field->number < whole->index_count ? whole->index[field->number] : 0;
        assert_int_not_equal(place, 0);
        const hf_pb_field *same = &whole->fields[place - 1];
        assert_string_equal(part->names[i].name, whole->names[place - 1].name);
        assert_int_equal(field->kind, same->kind);
        assert_int_equal(field->shape, same->shape);
        if (field->kind == HF_PB_MESSAGE && field->of.type != same->of.type) {
            check_part(field->of.type, same->of.type);
        }
    }
}

static void a_part_of_a_message_can_be_read_alone(void **state)
{
    (void)state;
    bench b;
    bench_init(&b);
    check_part(&hf_pb_run_sight_type, &hf_pb_run_state_type);
    hf_pb_activity_state activities[2] = {{.attempt = 1, .pause = HF_STR("p")}, {.attempt = 2}};
    hf_pb_run_state all = {.run = 7, .commit = 8, .run_id = HF_STR("r"), .chain = 9, .kind = 1, .keep = 10};
    all.activities = (hf_pb_activity_state_list){activities, 2};
    hf_pb_encode(&hf_pb_run_state_type, &all, &b.first);
    hf_pb_run_sight sight;
    assert_int_equal(hf_pb_decode_some(&b.op, &hf_pb_run_sight_type, content(&b.first), &b.arena, &sight), HF_OK);
    assert_int_equal(sight.run, 7);
    assert_true(hf_str_equal(sight.run_id, HF_STR("r")));
    assert_int_equal(sight.kind, 1);
    assert_int_equal(sight.keep, 10);
    assert_int_equal(sight.activities.count, 2);
    assert_true(hf_str_equal(sight.activities.items[0].pause, HF_STR("p")));
    assert_int_equal(sight.activities.items[1].pause.len, 0);
    assert_int_equal(sight.unknown.len + sight.activities.items[0].unknown.len + sight.activities.items[1].unknown.len,
                     0);
    /* What it does not read must be whole all the same. */
    assert_int_equal(hf_pb_decode_some(&b.op, &hf_pb_run_sight_type, HF_STR("\x12\x09q"), &b.arena, &sight),
                     HF_ERR_INVALID);
    bench_deinit(&b);
}

static void the_cursor_walks_raw_fields(void **state)
{
    (void)state;
    bench b;
    bench_init(&b);
    hf_pb_put_uint(&b.first, 3, 300);
    hf_pb_put_bytes(&b.first, 100, HF_STR("abc"));
    hf_pb_put_tag(&b.first, 2, HF_PB_WIRE_GROUP);
    hf_pb_put_uint(&b.first, 1, 1);
    hf_pb_put_tag(&b.first, 2, HF_PB_WIRE_GROUP_END);
    hf_str rest = content(&b.first);
    hf_pb_raw raw;
    assert_true(hf_pb_next(&rest, &raw));
    assert_int_equal(raw.number, 3);
    assert_int_equal(raw.value, 300);
    assert_true(hf_pb_next(&rest, &raw));
    assert_int_equal(raw.number, 100);
    assert_true(hf_str_equal(raw.bytes, HF_STR("abc")));
    assert_int_equal(raw.whole.len, 6);
    assert_true(hf_pb_next(&rest, &raw));
    assert_int_equal(raw.wire, HF_PB_WIRE_GROUP);
    assert_true(hf_str_equal(raw.bytes, HF_STR("\x08\x01")));
    assert_false(hf_pb_next(&rest, &raw));
    assert_non_null(rest.data);
    rest = HF_STR("\x0a\x05xy");
    assert_false(hf_pb_next(&rest, &raw));
    assert_null(rest.data);
    bench_deinit(&b);
}

/* Every first two bytes, in messages of up to six: the cursor takes what hf_pb_skip takes. */
static void the_cursor_takes_a_field_exactly_if_it_is_whole(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 65536; first++) {
        const unsigned char bytes[] = {(unsigned char)(first >> 8), (unsigned char)first, 3, 2, 1, 0};
        for (size_t len = 1; len <= sizeof bytes; len++) {
            hf_str rest = hf_str_of_len(bytes, len);
            hf_pb_raw raw;
            uint64_t tag = 0;
            const uint8_t *at = hf_pb_get_varint(bytes, bytes + len, &tag);
            const uint8_t *next = at != NULL && tag >= 8
                                      ? hf_pb_skip(at, bytes + len, (uint32_t)(tag >> 3), (hf_pb_wire)(tag & 7), 0)
                                      : NULL;
            bool is_taken = hf_pb_next(&rest, &raw);
            assert_int_equal(is_taken, next != NULL);
            if (!is_taken) {
                assert_null(rest.data);
                continue;
            }
            uint64_t value = 0;
            assert_int_equal(raw.number, tag >> 3);
            assert_int_equal(raw.wire, tag & 7);
            assert_ptr_equal(raw.whole.data, bytes);
            assert_ptr_equal(raw.whole.data + raw.whole.len, next);
            assert_ptr_equal(rest.data, next);
            assert_int_equal(rest.len, (size_t)(bytes + len - next));
            if (raw.wire == HF_PB_WIRE_VARINT || raw.wire == HF_PB_WIRE_BYTES) {
                at = hf_pb_get_varint(at, bytes + len, &value);
                assert_int_equal(raw.value, value);
            }
            if (raw.wire == HF_PB_WIRE_BYTES) {
                assert_ptr_equal(raw.bytes.data, at);
                assert_int_equal(raw.bytes.len, value);
            } else if (raw.wire != HF_PB_WIRE_GROUP) {
                assert_null(raw.bytes.data);
            }
        }
    }
}

static void times_convert_and_stay_at_their_bounds(void **state)
{
    (void)state;
    static const int64_t NS[] = {0, 1, -1, 999999999, -999999999, 1000000000, -1000000001, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < HF_COUNT_OF(NS); i++) {
        hf_pb_timestamp at = hf_pb_timestamp_of((hf_time){NS[i]});
        assert_true(at.has && at.nanos >= 0 && at.nanos < 1000000000);
        if (NS[i] != INT64_MIN) { /* whose whole second lies before the bound */
            assert_true(hf_pb_timestamp_time(at).ns == NS[i]);
        }
        hf_pb_duration span = hf_pb_duration_of(hf_nanoseconds(NS[i]));
        assert_true(hf_pb_duration_span(span).ns == NS[i]);
    }
    assert_true(hf_pb_timestamp_time((hf_pb_timestamp){INT64_MAX, 0, true}).ns == INT64_MAX);
    assert_true(hf_pb_duration_span((hf_pb_duration){INT64_MIN, 0, true}).ns == INT64_MIN);
    assert_true(hf_pb_duration_span((hf_pb_duration){5, 0, false}).ns == 0);
}

static void enums_have_names_in_two_forms(void **state)
{
    (void)state;
    int32_t value = 0;
    assert_string_equal(hf_pb_enum_name(&hf_pb_event_type_enum, 17), "EVENT_TYPE_TIMER_STARTED");
    assert_string_equal(hf_pb_enum_brief(&hf_pb_event_type_enum, 17), "TimerStarted");
    assert_null(hf_pb_enum_name(&hf_pb_event_type_enum, 9999));
    assert_true(hf_pb_enum_value(&hf_pb_event_type_enum, HF_STR("EVENT_TYPE_TIMER_FIRED"), &value));
    assert_int_equal(value, HF_EVENT_TYPE_TIMER_FIRED);
    assert_true(hf_pb_enum_value(&hf_pb_event_type_enum, HF_STR("TimerStarted"), &value));
    assert_int_equal(value, HF_EVENT_TYPE_TIMER_STARTED);
    assert_false(hf_pb_enum_value(&hf_pb_event_type_enum, HF_STR("Timer"), &value));
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(any_message_comes_back_as_it_was),
    cmocka_unit_test(every_kind_comes_back_as_it_was),
    cmocka_unit_test(a_payload_has_the_bytes_of_the_standard),
    cmocka_unit_test(an_event_has_the_bytes_of_the_standard),
    cmocka_unit_test(numbers_have_the_bytes_of_the_standard),
    cmocka_unit_test(lists_are_read_packed_and_one_by_one),
    cmocka_unit_test(the_last_one_wins_and_parts_are_merged),
    cmocka_unit_test(what_is_unknown_is_kept_at_its_place),
    cmocka_unit_test(a_part_of_a_message_can_be_read_alone),
    cmocka_unit_test(the_cursor_walks_raw_fields),
    cmocka_unit_test(times_convert_and_stay_at_their_bounds),
    cmocka_unit_test(the_cursor_takes_a_field_exactly_if_it_is_whole),
    cmocka_unit_test(enums_have_names_in_two_forms),
};

int main(int argc, char **argv)
{
    return hf_test_main("pb", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
