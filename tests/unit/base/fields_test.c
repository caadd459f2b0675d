/* Log fields can be taken apart again, and do nothing to a terminal. */
#include "support/support.h"

#include "base/fields.h"
#include "base/glyph.h"

#include <stdio.h>

static void a_value_is_quoted_where_it_must_be(void **state)
{
    (void)state;
    static const struct {
        hf_str value;
        const char *written;
    } CASES[] = {
        {HF_STR_INIT("orders"), "orders"},
        {HF_STR_INIT(""), "\"\""},
        {HF_STR_INIT("two words"), "\"two words\""},
        {HF_STR_INIT("a=b"), "\"a=b\""},
        {HF_STR_INIT("say \"no\""), "\"say \\\"no\\\"\""},
        {HF_STR_INIT("C:\\x"), "\"C:\\\\x\""},
        {HF_STR_INIT("one\ntwo\t3"), "\"one\\ntwo\\t3\""},
        {HF_STR_INIT("\x1b[2J"), "\"\\x1b[2J\""},
        {HF_STR_INIT("\x7f"), "\"\\x7f\""},
        {HF_STR_INIT("h\xc3\xa9 \xe2\x82\xac"), "\"h\xc3\xa9 \xe2\x82\xac\""},
        {HF_STR_INIT("\xe2\x82\xac"), "\xe2\x82\xac"},
        {HF_STR_INIT("\xc2\x9b"), "\"\\x9b\""},                /* U+009B, which begins a command */
        {HF_STR_INIT("\x9b"), "\"\\x9b\""},                    /* the same in Latin-1: not UTF-8 */
        {HF_STR_INIT("\xff\xfe"), "\"\\xff\\xfe\""},           /* never UTF-8 */
        {HF_STR_INIT("\xc3"), "\"\\xc3\""},                    /* cut */
        {HF_STR_INIT("\xe2\x80\xae"), "\"\\u202e\""},          /* U+202E turns what follows around */
        {HF_STR_INIT("\xf0\x9f\x90\x9f"), "\xf0\x9f\x90\x9f"}, /* beyond U+FFFF */
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char out[128];
        char expected[128];
        print_message("value %zu\n", i);
        hf_fields_format(out, sizeof out, "key=%.*s n=%d", HF_STR_ARGS(CASES[i].value), 7);
        (void)snprintf(expected, sizeof expected, "key=%s n=7", CASES[i].written);
        assert_string_equal(out, expected);
    }
}

static void a_format_may_ask_for_quotes(void **state)
{
    (void)state;
    char out[128];
    hf_fields_format(out, sizeof out, "name=\"%s\" why=\"%s\" on=%s", "plain", "not \"plain\"", "a");
    assert_string_equal(out, "name=\"plain\" why=\"not \\\"plain\\\"\" on=a");
    hf_fields_format(out, sizeof out, "a=1%s", " b=\"two words\""); /* fields that were made before */
    assert_string_equal(out, "a=1 b=\"two words\"");
    hf_fields_format(out, sizeof out, "%s", "b=\"two words\"");
    assert_string_equal(out, "b=\"two words\"");
    hf_fields_format(out, sizeof out, "a=%.3s b=%.0s", "abcdef", "x");
    assert_string_equal(out, "a=abc b=\"\"");
}

static void numbers_are_written_as_they_are(void **state)
{
    (void)state;
    char out[256];
    hf_fields_format(out, sizeof out, "a=%d b=%u c=%ld d=%lu e=%lld f=%llu g=%zu", -1, 2u, -3L, 4UL, -5LL, 6ULL,
                     (size_t)7);
    assert_string_equal(out, "a=-1 b=2 c=-3 d=4 e=-5 f=6 g=7");
    hf_fields_format(out, sizeof out, "low=%lld high=%llu", (long long)INT64_MIN, (unsigned long long)UINT64_MAX);
    assert_string_equal(out, "low=-9223372036854775808 high=18446744073709551615");
}

/* Whatever the room, the line is a beginning of the whole one, but for the quote that closes it. */
static void what_is_cut_is_still_well_formed(void **state)
{
    (void)state;
    static const char WHY[] = "a \"b\" \\ \xc2\x9b\xe2\x82\xac";
    char whole[128];
    hf_fields_format(whole, sizeof whole, "n=%d why=%s last=%s", 12, WHY, "x");
    for (size_t room = 1; room <= strlen(whole) + 1; room++) {
        char out[128];
        memset(out, '#', sizeof out);
        hf_fields_format(out, room, "n=%d why=%s last=%s", 12, WHY, "x");
        size_t len = strlen(out);
        assert_true(len < room);
        assert_int_equal(out[room], '#');
        int quotes = 0;
        for (size_t i = 0; i < len; i++) {
            if (out[i] == '\\') {
                i++;
                assert_true(i < len);
            } else {
                quotes += out[i] == '"';
            }
        }
        assert_int_equal(quotes % 2, 0);
        bool is_closed = len > 0 && out[len - 1] == '"';
        assert_memory_equal(out, whole, is_closed ? len - 1 : len);
    }
}

static void a_text_is_cleaned_where_it_lies(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *clean;
    } CASES[] = {
        {"", ""},
        {"plain text", "plain text"},
        {"\x1b[2Jred", "?[2Jred"},
        {"a\xc2\x9b"
         "b",
         "a?b"},
        {"a\x9b"
         "b",
         "a?b"},
        {"\xe2\x82\xac\xe2\x80\xae\xe2\x82", "\xe2\x82\xac???"},
        {"one\ntwo", "one?two"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char text[64];
        print_message("text %zu\n", i);
        (void)snprintf(text, sizeof text, "%s", CASES[i].text);
        hf_text_clean(text);
        assert_string_equal(text, CASES[i].clean);
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_value_is_quoted_where_it_must_be), cmocka_unit_test(a_format_may_ask_for_quotes),
    cmocka_unit_test(numbers_are_written_as_they_are),    cmocka_unit_test(what_is_cut_is_still_well_formed),
    cmocka_unit_test(a_text_is_cleaned_where_it_lies),
};

int main(int argc, char **argv)
{
    return hf_test_main("fields", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
