/* Payloads on their way from messages to programs and back: lists and metadata pass unchanged as long as nobody changes them. */
#include "support/broken_memory.h"
#include "support/support.h"

#include "client/data.h"
#include "history/limits.h"
#include "history/payload.h"

#include <string.h>

static hf_arena arena;

static int begin(void **state)
{
    (void)state;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_arena_deinit(&arena);
    return 0;
}

/* Three arguments of another SDK: one with metadata, one without any, one of an encoding that we do not know. */
static hf_pb_payloads *foreign_list(void)
{
    hf_pb_payloads *list = HF_ARENA_NEW(&arena, hf_pb_payloads);
    hf_pb_payload *items = hf_arena_zero(&arena, 3 * sizeof *items, _Alignof(hf_pb_payload));
    hf_pb_payload_metadata_entry *meta =
        hf_arena_zero(&arena, 3 * sizeof *meta, _Alignof(hf_pb_payload_metadata_entry));
    meta[0].key = HF_STR("messageType");
    meta[0].value = HF_STR("shop.Order");
    meta[1].key = HF_STR("encoding");
    meta[1].value = HF_STR("json/protobuf");
    meta[2].key = HF_STR("encoding");
    meta[2].value = HF_STR("binary/encrypted");
    items[0] = (hf_pb_payload){.metadata = {meta, 2}, .data = HF_STR("{\"id\":7}"), .unknown = HF_STR("\xa2\x06\x01x")};
    items[1] = (hf_pb_payload){.data = HF_STR("bare")};
    items[2] = (hf_pb_payload){.metadata = {meta + 2, 1}, .data = HF_STR("\x00\x01\x02")};
    list->payloads.items = items;
    list->payloads.count = 3;
    return list;
}

static void assert_same(const hf_pb_payloads *list, hf_payload payload)
{
    const hf_pb_payloads *again = hf_payload_encode(&arena, payload);
    assert_non_null(again);
    assert_true(hf_pb_equal(&hf_pb_payloads_type, list, again));
}

static void a_list_passes_unchanged(void **state)
{
    (void)state;
    hf_pb_payloads *list = foreign_list();
    HF_AUTO(hf_payload_free) hf_payload in = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload copy = hf_payload_none();
    assert_int_equal(hf_payload_decode(list, NULL, &in), HF_OK);
    assert_string_equal(in.data, "{\"id\":7}");
    assert_string_equal(in.encoding, "json/protobuf");
    assert_int_equal(hf_payload_count(in), 3);
    assert_same(list, in);
    assert_int_equal(hf_payload_copy(in, &copy), HF_OK);
    assert_same(list, copy);
    hf_payload view = hf_payload_view(&arena, list); /* as activities get it */
    assert_string_equal(view.data, "{\"id\":7}");
    assert_same(list, view);
    hf_payload out = view; /* *ret_out = in */
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_payload_check_result(&op, "the result", out, view), HF_OK);
    hf_payload_free(&out); /* not the view's memory */
    assert_same(list, view);
}

/* A program that changes a payload gets what it made, and nothing of what came. */
static void a_changed_payload_is_only_what_it_says(void **state)
{
    (void)state;
    hf_pb_payloads *list = foreign_list();
    HF_AUTO(hf_payload_free) hf_payload in = hf_payload_none();
    assert_int_equal(hf_payload_decode(list, NULL, &in), HF_OK);
    hf_payload changed[] = {in, in, in};
    changed[0].len = 3;
    changed[1].data = (const char *)in.data + 1;
    changed[1].len--;
    changed[2].encoding = HF_ENCODING_JSON_TEXT;
    for (size_t i = 0; i < 3; i++) {
        const hf_pb_payloads *sent = hf_payload_encode(&arena, changed[i]);
        assert_int_equal(sent->payloads.count, 1);
        assert_int_equal(sent->payloads.items[0].metadata.count, 1);
        assert_int_equal(sent->payloads.items[0].data.len, changed[i].len);
        assert_int_equal(hf_payload_count(changed[i]), 1);
    }
}

static void payloads_of_a_list_can_be_read_one_by_one(void **state)
{
    (void)state;
    static const char *const DATA[] = {"{\"id\":7}", "bare", "\x00\x01\x02"};
    static const char *const ENCODINGS[] = {"json/protobuf", "", "binary/encrypted"};
    hf_pb_payloads *list = foreign_list();
    HF_AUTO(hf_payload_free) hf_payload in = hf_payload_none();
    assert_int_equal(hf_payload_decode(list, NULL, &in), HF_OK);
    hf_payload parts[3];
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(hf_payload_nth(in, i, &parts[i]), HF_OK);
        assert_int_equal(parts[i].len, list->payloads.items[i].data.len);
        assert_memory_equal(parts[i].data, DATA[i], parts[i].len);
        assert_string_equal(parts[i].encoding, ENCODINGS[i]);
        assert_int_equal(hf_payload_count(parts[i]), 1);
    }
    hf_payload none;
    assert_int_equal(hf_payload_nth(in, 3, &none), HF_ERR_NOT_FOUND);
    assert_int_equal(hf_payload_nth(hf_payload_none(), 0, &none), HF_ERR_NOT_FOUND);
    HF_AUTO(hf_payload_free) hf_payload again = hf_payload_none();
    assert_int_equal(hf_payload_list(parts, 3, &again), HF_OK);
    assert_same(list, again); /* put together again */
    for (size_t i = 0; i < 3; i++) {
        hf_payload_free(&parts[i]);
    }
    HF_AUTO(hf_payload_free) hf_payload empty = hf_payload_none();
    assert_int_equal(hf_payload_list(NULL, 0, &empty), HF_OK);
    assert_int_equal(hf_payload_count(empty), 0);
}

static void metadata_can_be_read(void **state)
{
    (void)state;
    HF_AUTO(hf_payload_free) hf_payload in = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload value = hf_payload_none();
    assert_int_equal(hf_payload_decode(foreign_list(), NULL, &in), HF_OK);
    assert_int_equal(hf_payload_meta(in, "messageType", &value), HF_OK);
    assert_string_equal(value.data, "shop.Order");
    hf_payload_free(&value);
    assert_int_equal(hf_payload_meta(hf_payload_of_json("1"), "encoding", &value), HF_OK);
    assert_string_equal(value.data, "json/plain");
    hf_payload none;
    assert_int_equal(hf_payload_meta(in, "nothing", &none), HF_ERR_NOT_FOUND);
    assert_int_equal(hf_payload_meta(hf_payload_none(), "encoding", &none), HF_ERR_NOT_FOUND);
}

static void a_list_has_the_bound_of_a_payload(void **state)
{
    (void)state;
    static char half[HF_PAYLOAD_LEN_MAX / 2];
    hf_payload parts[] = {hf_payload_of_bytes(half, sizeof half), hf_payload_of_bytes(half, sizeof half),
                          hf_payload_of_bytes(half, 1)};
    hf_op op;
    for (size_t count = 2; count <= 3; count++) {
        HF_AUTO(hf_payload_free) hf_payload list = hf_payload_none();
        hf_op_init(&op);
        assert_int_equal(hf_payload_list(parts, count, &list), HF_OK);
        assert_int_equal(hf_payload_check(&op, "it", list), count == 2 ? HF_OK : HF_ERR_TOO_BIG);
    }
}

/* ---- Memory -------------------------------------------------------------------------------------------------------- */

static hf_pb_payloads *list_in_use;

static void use_a_list(void)
{
    HF_AUTO(hf_payload_free) hf_payload in = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload part = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload value = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload both = hf_payload_none();
    hf_status status = hf_payload_decode(list_in_use, NULL, &in);
    status = status == HF_OK ? hf_payload_nth(in, 2, &part) : status;
    status = status == HF_OK ? hf_payload_meta(in, "messageType", &value) : status;
    status = status == HF_OK ? hf_payload_list((hf_payload[]){in, part}, 2, &both) : status;
    broken_memory_pause();
    assert_int_equal(status, broken_memory_has_failed() ? HF_ERR_NOMEM : HF_OK);
    assert_true(status != HF_OK || hf_payload_count(both) == 4);
}

static void every_allocation_of_a_payload_may_fail(void **state)
{
    (void)state;
    list_in_use = foreign_list();
    assert_true(broken_memory_each(use_a_list) >= 8);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test_setup_teardown(a_list_passes_unchanged, begin, end),
        cmocka_unit_test_setup_teardown(a_changed_payload_is_only_what_it_says, begin, end),
        cmocka_unit_test_setup_teardown(payloads_of_a_list_can_be_read_one_by_one, begin, end),
        cmocka_unit_test_setup_teardown(metadata_can_be_read, begin, end),
        cmocka_unit_test_setup_teardown(a_list_has_the_bound_of_a_payload, begin, end),
        cmocka_unit_test_setup_teardown(every_allocation_of_a_payload_may_fail, begin, end),
    };
    return hf_test_main("payload", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
