/* The JSON writer: commas, escapes, and valid output whatever bytes come in. */
#include "support/json_check.h"
#include "support/support.h"

#include "base/json.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

static void *plain_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len);
}

static void plain_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

static const hf_allocator MEMORY = {plain_allocate, plain_release, NULL};

static void json_puts_the_commas(void **state)
{
    (void)state;
    hf_buf buf;
    hf_buf_init(&buf, MEMORY, 1 << 20);
    hf_json json;
    hf_json_init(&json, &buf);
    hf_json_object(&json);
    hf_json_key(&json, "empty");
    hf_json_object(&json);
    hf_json_end(&json);
    hf_json_key(&json, "list");
    hf_json_array(&json);
    hf_json_int(&json, -1);
    hf_json_array(&json);
    hf_json_end(&json);
    hf_json_uint(&json, UINT64_MAX);
    hf_json_int(&json, INT64_MIN);
    hf_json_object(&json);
    hf_json_key_bool(&json, "yes", true);
    hf_json_key_bool(&json, "no", false);
    hf_json_end(&json);
    hf_json_null(&json);
    hf_json_end(&json);
    hf_json_key_string(&json, "none", NULL);
    hf_json_key_string(&json, "", "");
    hf_json_end(&json);
    assert_string_equal(hf_buf_text(&buf), "{\"empty\":{},\"list\":[-1,[],18446744073709551615,-9223372036854775808,"
                                           "{\"yes\":true,\"no\":false},null],\"none\":null,\"\":\"\"}");
    assert_int_equal(json.depth, 0);
    assert_true(json_is_valid(hf_buf_text(&buf)));
    hf_buf_deinit(&buf);
}

typedef struct quoting {
    const char *text;
    size_t len;
    const char *expected; /* without the quotes */
} quoting;

#define Q(text, expected)                \
    {                                    \
        text, sizeof(text) - 1, expected \
    }
#define BAD "\xef\xbf\xbd"

static void json_strings_are_escaped_and_always_utf8(void **state)
{
    (void)state;
    static const quoting CASES[] = {
        Q("", ""),
        Q("plain text", "plain text"),
        Q("a\"b\\c/", "a\\\"b\\\\c/"),
        Q("\b\t\n\f\r", "\\b\\t\\n\\f\\r"),
        Q("\0\x01\x0b\x1f\x7f", "\\u0000\\u0001\\u000b\\u001f\\u007f"),
        Q("\xc2\x80\xc2\x9b\xe2\x80\xa8\xe2\x80\xae", "\\u0080\\u009b\\u2028\\u202e"), /* a terminal would obey */
        Q("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8e\x89", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8e\x89"),
        Q("\x80", BAD), /* a continuation without a start */
        Q("a\xff"
          "b",
          "a" BAD "b"),
        Q("\xc3", BAD), /* cut off */
        Q("\xc3(", BAD "("),
        Q("\xe2\x82", BAD BAD),
        Q("\xc0\xaf", BAD BAD), /* overlong */
        Q("\xe0\x80\xaf", BAD BAD BAD),
        Q("\xf0\x80\x80\xaf", BAD BAD BAD BAD),
        Q("\xed\xa0\x80", BAD BAD BAD), /* a surrogate */
        Q("\xed\x9f\xbf", "\xed\x9f\xbf"),
        Q("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"), /* the last one */
        Q("\xf4\x90\x80\x80", BAD BAD BAD BAD),    /* beyond it */
        Q("\xf5\x80", BAD BAD),
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_buf buf;
        hf_buf_init(&buf, MEMORY, 1 << 20);
        hf_json json;
        hf_json_init(&json, &buf);
        hf_json_string_len(&json, CASES[i].text, CASES[i].len);
        assert_int_equal(buf.len, strlen(CASES[i].expected) + 2);
        assert_memory_equal(buf.data + 1, CASES[i].expected, strlen(CASES[i].expected));
        assert_true(json_is_valid(hf_buf_text(&buf)));
        hf_buf_deinit(&buf);
    }
}

static void one_random_string(uint64_t seed)
{
    hf_rng rng = {seed};
    char text[64];
    size_t len = hf_rng_next(&rng) % sizeof text;
    for (size_t i = 0; i < len; i++) {
        text[i] = (char)hf_rng_next(&rng);
    }
    hf_buf first;
    hf_buf second;
    hf_buf_init(&first, MEMORY, 1 << 20);
    hf_buf_init(&second, MEMORY, 1 << 20);
    hf_json_quote(&first, text, len);
    HF_CHECK(json_is_valid(hf_buf_text(&first)));
    hf_json_quote(&second, first.data, first.len); /* what is valid already loses nothing */
    HF_CHECK(second.len >= first.len + 2);
    hf_buf_deinit(&first);
    hf_buf_deinit(&second);
}

static void json_of_random_bytes_is_valid(void **state)
{
    (void)state;
    hf_each_seed("random strings", 2000, one_random_string);
}

static void json_in_a_full_buffer_sets_its_status(void **state)
{
    (void)state;
    hf_buf buf;
    hf_buf_init(&buf, MEMORY, 10);
    hf_json json;
    hf_json_init(&json, &buf);
    hf_json_array(&json);
    hf_json_string(&json, "0123456789");
    hf_json_end(&json);
    assert_int_equal(hf_buf_status(&buf), HF_ERR_TOO_BIG);
    hf_buf_deinit(&buf);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(json_puts_the_commas),
    cmocka_unit_test(json_strings_are_escaped_and_always_utf8),
    cmocka_unit_test(json_of_random_bytes_is_valid),
    cmocka_unit_test(json_in_a_full_buffer_sets_its_status),
};

int main(int argc, char **argv)
{
    return hf_test_main("json", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
