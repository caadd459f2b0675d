/* gRPC's frames, timeouts and texts; gzip. */
#include "support/support.h"

#include "base/env.h"
#include "wire/base64.h"
#include "wire/grpc.h"
#include "wire/gzip.h"

static void frames_are_taken_one_by_one(void **state)
{
    (void)state;
    static const char BYTES[] = "\0\0\0\0\3abc\1\0\0\0\0";
    hf_grpc_frame frame;
    hf_op op;
    hf_op_init(&op);
    for (size_t len = 0; len < 8; len++) {
        assert_int_equal(hf_grpc_take(&op, hf_str_of_len(BYTES, len), 100, &frame), HF_ERR_AGAIN);
    }
    assert_int_equal(hf_grpc_take(&op, hf_str_of_len(BYTES, 13), 100, &frame), HF_OK);
    assert_true(hf_str_equal(frame.message, HF_STR("abc")));
    assert_false(frame.is_compressed);
    assert_int_equal(frame.rest.len, 5);
    assert_int_equal(hf_grpc_take(&op, frame.rest, 100, &frame), HF_OK);
    assert_true(frame.is_compressed);
    assert_int_equal(frame.message.len, 0);
}

static void a_frame_that_is_too_long_is_refused_by_its_head(void **state)
{
    (void)state;
    hf_grpc_frame frame;
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_grpc_take(&op, hf_str_of_len("\0\xff\xff\xff\xff", 5), 4 << 20, &frame), HF_ERR_TOO_BIG);
    assert_non_null(strstr(op.message, "grpc: received message larger than max")); /* SDKs look for these words */
    assert_int_equal(hf_grpc_take(&op, hf_str_of_len("\2", 1), 100, &frame), HF_ERR_INVALID);
}

static void timeouts_have_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns; /* -1 = refused */
    } CASES[] = {
        {"70000000u", 70000000000},
        {"9924m", 9924000000},
        {"1S", 1000000000},
        {"99999999H", INT64_MAX},
        {"5n", 5},
        {"2M", 120000000000},
        {"0m", 0},
        {"", -1},
        {"5", -1},
        {"m", -1},
        {"-5m", -1},
        {"123456789m", -1},
        {"5x", -1},
        {"5 m", -1},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_span span = {0};
        print_message("timeout '%s'\n", CASES[i].text);
        assert_int_equal(hf_grpc_timeout_parse(hf_str_of(CASES[i].text), &span), CASES[i].ns >= 0);
        if (CASES[i].ns >= 0) {
            assert_int_equal(span.ns, CASES[i].ns);
        }
    }
}

static void timeouts_are_written_as_they_are_read(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *text;
    } CASES[] = {
        {1, "1n"},
        {99999999, "99999999n"},
        {100000000, "100000u"},
        {70000000000, "70000000u"},
        {100000000001, "100001m"}, /* rounded up */
        {INT64_MAX, "2562048H"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char text[HF_GRPC_TIMEOUT_LEN];
        hf_span span = {0};
        hf_grpc_timeout_format(hf_nanoseconds(CASES[i].ns), text);
        assert_string_equal(text, CASES[i].text);
        assert_true(hf_grpc_timeout_parse(hf_str_of(text), &span) && span.ns >= CASES[i].ns);
    }
}

static void messages_are_read_as_they_are_written(void **state)
{
    (void)state;
    static const char *const TEXTS[][2] = {{"100%25 of %C3%A4%0D%0A'x'", "100% of \xc3\xa4\r\n'x'"},
                                           {"%", "%"},
                                           {"%4", "%4"},
                                           {"%zz%41", "%zzA"},
                                           {"%c3", "\xc3"},
                                           {"", ""}};
    for (size_t i = 0; i < HF_COUNT_OF(TEXTS); i++) {
        hf_buf out;
        hf_buf_init(&out, hf_env_memory(hf_env_posix()), 1000);
        hf_grpc_message_parse(hf_str_of(TEXTS[i][0]), &out);
        assert_string_equal(hf_buf_text(&out), TEXTS[i][1]);
        hf_buf_deinit(&out);
    }
}

static void base64_is_read_with_and_without_padding(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *bytes; /* NULL = refused */
    } CASES[] = {{"", ""},
                 {"Zg==", "f"},
                 {"Zg", "f"},
                 {"Zm8", "fo"},
                 {"Zm9v", "foo"},
                 {"Zm9vYg=", "foob"},
                 {"+/+/", "\xfb\xff\xbf"},
                 {"Z", NULL},
                 {"Zm9v!", NULL},
                 {"Zm-v", NULL}};
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_buf out;
        hf_buf_init(&out, hf_env_memory(hf_env_posix()), 1000);
        assert_int_equal(hf_base64_parse(hf_str_of(CASES[i].text), &out), CASES[i].bytes != NULL);
        if (CASES[i].bytes != NULL) {
            assert_string_equal(hf_buf_text(&out), CASES[i].bytes);
        }
        hf_buf_deinit(&out);
    }
}

static void messages_are_percent_encoded(void **state)
{
    (void)state;
    hf_buf out;
    hf_buf_init(&out, hf_env_memory(hf_env_posix()), 1000);
    hf_grpc_message_put(HF_STR("100% of \xc3\xa4\r\n'x'"), &out);
    assert_string_equal(hf_buf_text(&out), "100%25 of %C3%A4%0D%0A'x'");
    hf_buf_deinit(&out);
}

static void gzip_comes_back(void **state)
{
    (void)state;
    hf_allocator memory = hf_env_memory(hf_env_posix());
    hf_op op;
    hf_op_init(&op);
    for (size_t len = 0; len < 200000; len = len * 3 + 1) {
        hf_buf text;
        hf_buf packed;
        hf_buf plain;
        hf_buf_init(&text, memory, SIZE_MAX / 2);
        hf_buf_init(&packed, memory, SIZE_MAX / 2);
        hf_buf_init(&plain, memory, SIZE_MAX / 2);
        for (size_t i = 0; i < len; i++) {
            hf_buf_putc(&text, (char)(i * i >> 3));
        }
        assert_int_equal(hf_gzip(&op, hf_str_of_len(text.data, text.len), &packed), HF_OK);
        assert_int_equal(hf_gunzip(&op, hf_str_of_len(packed.data, packed.len), len, &plain), HF_OK);
        assert_int_equal(plain.len, len);
        assert_true(len == 0 || memcmp(plain.data, text.data, len) == 0);
        plain.len = 0;
        if (len > 0) { /* one byte more than is allowed */
            assert_int_equal(hf_gunzip(&op, hf_str_of_len(packed.data, packed.len), len - 1, &plain), HF_ERR_TOO_BIG);
        }
        plain.len = 0; /* cut, or with something behind it */
        assert_int_equal(hf_gunzip(&op, hf_str_of_len(packed.data, packed.len - 1), len, &plain), HF_ERR_INVALID);
        hf_buf_putc(&packed, 'x');
        plain.len = 0;
        assert_int_equal(hf_gunzip(&op, hf_str_of_len(packed.data, packed.len), len, &plain), HF_ERR_INVALID);
        hf_buf_deinit(&text);
        hf_buf_deinit(&packed);
        hf_buf_deinit(&plain);
    }
}

/* 10 MB of zeros in about 10 KB: refused after as many bytes as are allowed. */
static void a_gzip_bomb_takes_no_more_than_is_allowed(void **state)
{
    (void)state;
    enum { LEN = 10 << 20, MAX = 1 << 20 };
    hf_allocator memory = hf_env_memory(hf_env_posix());
    hf_op op;
    hf_op_init(&op);
    hf_buf text;
    hf_buf packed;
    hf_buf plain;
    hf_buf_init(&text, memory, SIZE_MAX / 2);
    hf_buf_init(&packed, memory, SIZE_MAX / 2);
    hf_buf_init(&plain, memory, SIZE_MAX / 2);
    assert_true(hf_buf_reserve(&text, LEN));
    memset(text.data, 0, LEN);
    text.len = LEN;
    assert_int_equal(hf_gzip(&op, hf_str_of_len(text.data, text.len), &packed), HF_OK);
    assert_true(packed.len < LEN / 100);
    assert_int_equal(hf_gunzip(&op, hf_str_of_len(packed.data, packed.len), MAX, &plain), HF_ERR_TOO_BIG);
    assert_true(plain.capacity <= 4 * MAX);
    hf_buf_deinit(&text);
    hf_buf_deinit(&packed);
    hf_buf_deinit(&plain);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(frames_are_taken_one_by_one),
    cmocka_unit_test(a_frame_that_is_too_long_is_refused_by_its_head),
    cmocka_unit_test(timeouts_have_units),
    cmocka_unit_test(timeouts_are_written_as_they_are_read),
    cmocka_unit_test(messages_are_percent_encoded),
    cmocka_unit_test(messages_are_read_as_they_are_written),
    cmocka_unit_test(base64_is_read_with_and_without_padding),
    cmocka_unit_test(gzip_comes_back),
    cmocka_unit_test(a_gzip_bomb_takes_no_more_than_is_allowed),
};

int main(int argc, char **argv)
{
    return hf_test_main("grpc", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
