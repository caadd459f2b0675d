/* JSON in payloads: values by path, objects by fields, structs by tables. */
#include "support/broken_memory.h"
#include "support/support.h"

#include "base/base.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char DOC[] =
    "{\"a\": {\"b\": [10, -20, {\"c\": \"x\\\"\\u00e9\\ud83d\\ude00\"}], \"n\": null},\n"
    " \"yes\": true, \"a.b\": {\"[1]\": 5}, \"big\": 9223372036854775808, \"max\": 9223372036854775807,\n"
    " \"min\": -9223372036854775808, \"price\": 12.30, \"huge\": 1e400, \"exp\": 1e3, \"\": {\"\": 7},\n"
    " \"twice\": {\"in\": 1}, \"zero\": \"a\\u0000b\", \"empty\": [], \"none\": {}, \"twice\": {\"out\": 2}}";

/* ---- Reading ------------------------------------------------------------------------------------------------------- */

static void values_are_found_by_their_path(void **state)
{
    (void)state;
    hf_payload in = hf_payload_of_json(DOC);
    static const struct {
        const char *path;
        int64_t number;
    } INTS[] = {{"a.b[0]", 10},     {"a.b[1]", -20},    {"a\\.b.\\[1\\]", 5},
                {"max", INT64_MAX}, {"min", INT64_MIN}, {"twice.out", 2}};
    for (size_t i = 0; i < HF_COUNT_OF(INTS); i++) {
        int64_t number = 0;
        print_message("%s\n", INTS[i].path);
        assert_int_equal(hf_json_get_int(in, INTS[i].path, &number), HF_OK);
        assert_int_equal(number, INTS[i].number);
    }
    char text[20];
    bool flag = false;
    double real = 0;
    size_t count = 0;
    assert_int_equal(hf_json_get_text(in, "a.b[2].c", sizeof text, text), HF_OK);
    assert_string_equal(text, "x\"\xc3\xa9\xf0\x9f\x98\x80");
    assert_int_equal(hf_json_get_bool(in, "yes", &flag), HF_OK);
    assert_true(flag);
    assert_int_equal(hf_json_get_real(in, "price", &real), HF_OK);
    assert_true(real == 12.3);
    assert_int_equal(hf_json_get_real(in, "big", &real), HF_OK);
    assert_true(real == 9223372036854775808.0);
    assert_int_equal(hf_json_get_count(in, "a.b", &count), HF_OK);
    assert_int_equal(count, 3);
    assert_int_equal(hf_json_get_count(in, "", &count), HF_OK);
    assert_int_equal(count, 15); /* one is there twice */
    assert_int_equal(hf_json_get_count(in, "empty", &count), HF_OK);
    assert_int_equal(count, 0);
    assert_int_equal(hf_json_get_count(in, "none", &count), HF_OK);
    assert_int_equal(count, 0);
}

static void a_view_has_the_digits_of_the_text(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *text;
    } VIEWS[] = {{"big", "9223372036854775808"},
                 {"price", "12.30"},
                 {"huge", "1e400"},
                 {"a.n", "null"},
                 {"a.b[2]", "{\"c\": \"x\\\"\\u00e9\\ud83d\\ude00\"}"},
                 {"empty", "[]"},
                 {"a.b[2].c", "\"x\\\"\\u00e9\\ud83d\\ude00\""},
                 {"", DOC}};
    for (size_t i = 0; i < HF_COUNT_OF(VIEWS); i++) {
        hf_payload view = hf_payload_none();
        print_message("%s\n", VIEWS[i].path);
        assert_int_equal(hf_json_get_view(hf_payload_of_json(DOC), VIEWS[i].path, &view), HF_OK);
        assert_int_equal(view.len, strlen(VIEWS[i].text));
        assert_memory_equal(view.data, VIEWS[i].text, view.len);
        assert_string_equal(view.encoding, HF_ENCODING_JSON_TEXT);
    }
    /* A text that is only a value, of each kind. */
    static const char *const ALONE[] = {"17", " -0.5e-7 ", "\"x\"", "true", "null", "\n[1]\n"};
    static const hf_json_kind KINDS[] = {HF_KIND_NUMBER, HF_KIND_NUMBER, HF_KIND_TEXT,
                                         HF_KIND_BOOL,   HF_KIND_NULL,   HF_KIND_ARRAY};
    for (size_t i = 0; i < HF_COUNT_OF(ALONE); i++) {
        hf_payload view = hf_payload_none();
        hf_json_kind kind = HF_KIND_MISSING;
        assert_int_equal(hf_json_get_view(hf_payload_of_json(ALONE[i]), "", &view), HF_OK);
        assert_int_equal(view.len, strlen(ALONE[i]) - 2 * (i == 1 || i == 5));
        assert_int_equal(hf_json_get_kind(hf_payload_of_json(ALONE[i]), "", &kind), HF_OK);
        assert_int_equal(kind, KINDS[i]);
    }
}

static void a_missing_value_has_a_kind(void **state)
{
    (void)state;
    static const char *const PATHS[] = {"x", "a.x", "a.b[3]", "a.b.c", "a[0]", "yes.x", "twice.in", "a.n.x"};
    for (size_t i = 0; i < HF_COUNT_OF(PATHS); i++) {
        hf_json_kind kind = HF_KIND_TEXT;
        assert_int_equal(hf_json_get_kind(hf_payload_of_json(DOC), PATHS[i], &kind), HF_OK);
        assert_int_equal(kind, HF_KIND_MISSING);
    }
}

/* Each failure names path and byte, and writes nothing. */
static void failures_name_path_and_byte(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *path;
        hf_status status;
        const char *sentence;
    } ROWS[] = {
        {"{\"a\":{\"b\":1}}", "a.c", HF_ERR_INVALID,
         "hf_json_get_int: there is no 'a.c': the value at byte 5, where its first 1 part leads, does not have the "
         "next"},
        {"{\"a\":[1,\"x\"]}", "a[1]", HF_ERR_INVALID, "hf_json_get_int: 'a[1]' is a text, not a number, at byte 8"},
        {"{\"a\":[1,null]}", "a[1]", HF_ERR_INVALID, "hf_json_get_int: 'a[1]' is null, not a number, at byte 8"},
        {"[1.5]", "[0]", HF_ERR_INVALID,
         "hf_json_get_int: '[0]' is a number with a fraction or an exponent, at byte 1"},
        {"[9223372036854775808]", "[0]", HF_ERR_TOO_BIG,
         "hf_json_get_int: '[0]' is a number that does not fit 64 bits, at byte 1"},
        {"{\"a\":1,}", "a", HF_ERR_INVALID,
         "hf_json_get_int: 'a': no JSON: parse error: invalid object key (must be a string) at byte 7"},
        {"[1, x]", "[0]", HF_ERR_INVALID,
         "hf_json_get_int: '[0]': no JSON: lexical error: invalid char in json text at byte 4"},
        {"[1", "[0]", HF_ERR_INVALID, "hf_json_get_int: '[0]': no JSON: parse error: premature EOF at byte 2"},
        {"[1] 2", "[0]", HF_ERR_INVALID, "hf_json_get_int: '[0]': no JSON: parse error: trailing garbage at byte 4"},
        {"", "", HF_ERR_INVALID, "hf_json_get_int: the JSON text: no JSON: parse error: premature EOF at byte 0"},
        {"[\"\\ud800\", 1]", "[1]", HF_ERR_INVALID,
         "hf_json_get_int: '[1]': no JSON: half of a surrogate pair at byte 2"},
        {"[\"\xc0\x80\", 1]", "[1]", HF_ERR_INVALID, "hf_json_get_int: '[1]': no JSON: no UTF-8 at byte 2"},
        {"[1,\f2]", "[1]", HF_ERR_INVALID, "hf_json_get_int: '[1]': no JSON: a control character at byte 3"},
        {"[1]", "[0", HF_ERR_INVALID, "hf_json_get_int: '[0' is not a path: byte 0"},
        {"[1]", "a..b", HF_ERR_INVALID, NULL},
        {"[1]", "a.", HF_ERR_INVALID, "hf_json_get_int: 'a.' is not a path: byte 2"},
        {"[1]", "a[0]b", HF_ERR_INVALID, "hf_json_get_int: 'a[0]b' is not a path: byte 4"},
        {"[1]", "a[-1]", HF_ERR_INVALID, "hf_json_get_int: 'a[-1]' is not a path: byte 1"},
        {"[1]", "a\\", HF_ERR_INVALID, NULL},
        {"[1]", "[99999999999999999999999]", HF_ERR_INVALID, NULL},
    };
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        int64_t number = 99;
        print_message("%s in %s\n", ROWS[i].path, ROWS[i].text);
        assert_int_equal(hf_json_get_int(hf_payload_of_json(ROWS[i].text), ROWS[i].path, &number), ROWS[i].status);
        assert_int_equal(number, 99);
        if (ROWS[i].sentence != NULL) {
            assert_string_equal(hf_error_text(), ROWS[i].sentence);
        }
    }
    int64_t number = 99;
    char text[4] = "old";
    double real = 0;
    assert_int_equal(hf_json_get_int(hf_payload_of_bytes("1", 1), "", &number), HF_ERR_INVALID);
    assert_string_equal(hf_error_text(),
                        "hf_json_get_int: the JSON text: the payload is not JSON, its encoding is binary/plain");
    assert_int_equal(hf_json_get_int(hf_payload_none(), "", &number), HF_ERR_INVALID);
    assert_int_equal(hf_json_get_int(hf_payload_of_json("\"1\""), "", &number), HF_ERR_INVALID);
    assert_string_equal(hf_error_text(), "hf_json_get_int: the JSON text is a text, not a number, at byte 0");
    assert_int_equal(hf_json_get_int(hf_payload_of_json("1"), NULL, &number), HF_ERR_MISUSE);
    assert_int_equal(hf_json_get_text(hf_payload_of_json("\"abcd\""), "", sizeof text, text), HF_ERR_TOO_BIG);
    assert_int_equal(hf_json_get_text(hf_payload_of_json(DOC), "zero", sizeof text, text), HF_ERR_INVALID);
    assert_string_equal(text, "old");
    assert_int_equal(hf_json_get_text(hf_payload_of_json("\"abc\""), "", sizeof text, text), HF_OK);
    assert_int_equal(hf_json_get_real(hf_payload_of_json(DOC), "huge", &real), HF_ERR_TOO_BIG);
}

static void nesting_has_a_bound(void **state)
{
    (void)state;
    char text[500];
    for (size_t depth = 100; depth <= 101; depth++) {
        hf_json_kind kind = HF_KIND_MISSING;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = '\0';
        assert_int_equal(hf_json_get_kind(hf_payload_of_json(text), "[0][0]", &kind),
                         depth == 100 ? HF_OK : HF_ERR_INVALID);
    }
    assert_string_equal(hf_error_text(), "hf_json_get_kind: '[0][0]': JSON that is nested deeper than 100 at byte 100");
    char path[200];
    for (size_t i = 0; i < 33; i++) {
        memcpy(path + 3 * i, "[0]", 4);
    }
    hf_json_kind kind = HF_KIND_MISSING;
    assert_int_equal(hf_json_get_kind(hf_payload_of_json("[]"), path, &kind), HF_ERR_INVALID);
    path[3 * 32] = '\0';
    assert_int_equal(hf_json_get_kind(hf_payload_of_json("[]"), path, &kind), HF_OK);
}

/* ---- Writing ------------------------------------------------------------------------------------------------------- */

static void an_object_is_quoted_and_escaped(void **state)
{
    (void)state;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload outer = hf_payload_none();
    assert_int_equal(hf_payload_object(&out, hf_field_text("na\"me", "a \"b\"\n\\"), hf_field_int("n", INT64_MIN),
                                       hf_field_real("r", 0.1), hf_field_bool("yes", true), hf_field_null("no"),
                                       hf_field_text("none", NULL), hf_field_real("third", 1.0 / 3)),
                     HF_OK);
    assert_string_equal(out.data,
                        "{\"na\\\"me\":\"a \\\"b\\\"\\n\\\\\",\"n\":-9223372036854775808,\"r\":0.1,\"yes\":true,"
                        "\"no\":null,\"none\":null,\"third\":0.3333333333333333}");
    assert_string_equal(out.encoding, HF_ENCODING_JSON_TEXT);
    assert_int_equal(
        hf_payload_object(&outer, hf_field_json("in", out), hf_field_json("digits", hf_payload_of_json("1e400"))),
        HF_OK);
    hf_payload view = hf_payload_none();
    char text[20];
    assert_int_equal(hf_json_get_view(outer, "digits", &view), HF_OK);
    assert_memory_equal(view.data, "1e400", 5);
    assert_int_equal(hf_json_get_text(outer, "in.na\"me", sizeof text, text), HF_OK);
    assert_string_equal(text, "a \"b\"\n\\");
}

static void an_object_that_json_cannot_hold_is_refused(void **state)
{
    (void)state;
    hf_payload out = hf_payload_none();
    assert_int_equal(hf_payload_object(&out, hf_field_text("a", "x\xff")), HF_ERR_INVALID);
    assert_string_equal(hf_error_text(), "hf_payload_object: the text of 'a' is not UTF-8, at byte 1");
    assert_int_equal(hf_payload_object(&out, hf_field_text("\xff", "x")), HF_ERR_INVALID);
    assert_int_equal(hf_payload_object(&out, hf_field_real("a", NAN)), HF_ERR_INVALID);
    assert_int_equal(hf_payload_object(&out, hf_field_real("a", INFINITY)), HF_ERR_INVALID);
    assert_int_equal(hf_payload_object(&out, hf_field_json("a", hf_payload_of_json("[1,]"))), HF_ERR_INVALID);
    assert_int_equal(hf_payload_object(&out, hf_field_json("a", hf_payload_none())), HF_ERR_INVALID);
    assert_int_equal(hf_payload_object_of(NULL, &out), HF_ERR_MISUSE);
    assert_null(out.data);
}

static void reals_have_a_point_in_every_locale(void **state)
{
    (void)state;
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL && setlocale(LC_NUMERIC, "fr_FR.UTF-8") == NULL) {
        print_message("no locale with a comma is installed: only the locale C was tried\n");
    }
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    double real = 0;
    assert_int_equal(hf_payload_object(&out, hf_field_real("r", 1.5)), HF_OK);
    assert_string_equal(out.data, "{\"r\":1.5}");
    assert_int_equal(hf_json_get_real(out, "r", &real), HF_OK);
    assert_true(real == 1.5);
    (void)setlocale(LC_NUMERIC, "C");
}

/* ---- Structs ------------------------------------------------------------------------------------------------------- */

typedef struct order {
    char item[8];
    int64_t cents;
    int count;
    double weight;
    bool is_express;
} order;

static const hf_member ORDER[] = {HF_MEMBER(order, item),   HF_MEMBER(order, cents),        HF_MEMBER(order, count),
                                  HF_MEMBER(order, weight), HF_OPTIONAL(order, is_express), HF_MEMBERS_END};

static void a_struct_goes_both_ways(void **state)
{
    (void)state;
    order from = {"pen", INT64_MAX, -7, 0.25, true};
    order to = {"", 0, 0, 0, false};
    HF_AUTO(hf_payload_free) hf_payload text = hf_payload_none();
    assert_int_equal(hf_payload_write(&from, ORDER, &text), HF_OK);
    assert_string_equal(text.data, "{\"item\":\"pen\",\"cents\":9223372036854775807,\"count\":-7,\"weight\":0.25,"
                                   "\"is_express\":true}");
    assert_int_equal(hf_payload_read(text, ORDER, &to), HF_OK);
    assert_string_equal(to.item, "pen");
    assert_true(to.cents == from.cents && to.count == -7 && to.weight == 0.25 && to.is_express);
    /* Other keys are ignored, optional ones may be missing or null. */
    static const char *const FEWER[] = {
        "{\"x\":[{\"item\":1}],\"item\":\"a\",\"cents\":1,\"count\":2,\"weight\":3}",
        "{\"item\":\"a\",\"cents\":1,\"count\":2,\"weight\":3,\"is_express\":null}",
    };
    for (size_t i = 0; i < HF_COUNT_OF(FEWER); i++) {
        assert_int_equal(hf_payload_read(hf_payload_of_json(FEWER[i]), ORDER, &to), HF_OK);
        assert_true(to.cents == 1 && to.weight == 3 && to.is_express);
    }
}

static void a_struct_that_does_not_fit_stays_as_it_was(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        hf_status status;
        const char *sentence;
    } ROWS[] = {
        {"{\"item\":\"a\",\"cents\":1,\"count\":2}", HF_ERR_INVALID,
         "hf_payload_read: there is no 'weight' in the JSON text"},
        {"{\"item\":\"12345678\",\"cents\":1,\"count\":2,\"weight\":3}", HF_ERR_TOO_BIG,
         "hf_payload_read: 'item' has 8 bytes, there is room for 7, at byte 8"},
        {"{\"item\":\"a\",\"cents\":1,\"count\":2147483648,\"weight\":3}", HF_ERR_TOO_BIG,
         "hf_payload_read: 'count' is a number that does not fit 32 bits, at byte 30"},
        {"{\"item\":\"a\",\"cents\":\"1\",\"count\":2,\"weight\":3}", HF_ERR_INVALID,
         "hf_payload_read: 'cents' is a text, not a number, at byte 20"},
        {"{\"item\":\"a\",\"cents\":1,\"count\":2,\"weight\":3,\"is_express\":1}", HF_ERR_INVALID, NULL},
        {"[]", HF_ERR_INVALID, "hf_payload_read: the text is an array, not an object, at byte 0"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        order to = {"old", 5, 6, 7, true};
        print_message("%s\n", ROWS[i].text);
        assert_int_equal(hf_payload_read(hf_payload_of_json(ROWS[i].text), ORDER, &to), ROWS[i].status);
        if (ROWS[i].sentence != NULL) {
            assert_string_equal(hf_error_text(), ROWS[i].sentence);
        }
        assert_true(strcmp(to.item, "old") == 0 && to.cents == 5 && to.count == 6 && to.weight == 7 && to.is_express);
    }
    order open = {"12345678", 1, 2, 3, false};
    hf_payload out = hf_payload_none();
    assert_int_equal(hf_payload_write(&open, ORDER, &out), HF_ERR_INVALID);
    assert_null(out.data);
}

/* ---- Memory -------------------------------------------------------------------------------------------------------- */

static char long_text[20000];

static void read_long(void)
{
    static char out[20000];
    hf_status status = hf_json_get_text(hf_payload_of_json(long_text), "[0]", sizeof out, out);
    broken_memory_pause();
    assert_int_equal(status, broken_memory_has_failed() ? HF_ERR_NOMEM : HF_OK);
    assert_true(status != HF_OK || strlen(out) == 9000);
}

static void write_and_read(void)
{
    order from = {"pen", 1, 2, 3, true};
    order to = from;
    HF_AUTO(hf_payload_free) hf_payload text = hf_payload_none();
    hf_status status = hf_payload_write(&from, ORDER, &text);
    status = status == HF_OK ? hf_payload_read(text, ORDER, &to) : status;
    broken_memory_pause();
    assert_int_equal(status, broken_memory_has_failed() ? HF_ERR_NOMEM : HF_OK);
}

static void read_short(void)
{
    int64_t number = 0;
    assert_int_equal(hf_json_get_int(hf_payload_of_json(DOC), "a.b[1]", &number), HF_OK);
}

static void every_allocation_may_fail_and_short_texts_need_none(void **state)
{
    (void)state;
    size_t at = 0;
    long_text[at++] = '[';
    long_text[at++] = '"';
    for (int i = 0; i < 9000; i++) {
        memcpy(long_text + at, "\\n", 2);
        at += 2;
    }
    memcpy(long_text + at, "\"]", 3);
    assert_true(broken_memory_each(read_long) >= 2);
    assert_true(broken_memory_each(write_and_read) >= 2);
    assert_int_equal(broken_memory_each(read_short), 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(values_are_found_by_their_path),
        cmocka_unit_test(a_view_has_the_digits_of_the_text),
        cmocka_unit_test(a_missing_value_has_a_kind),
        cmocka_unit_test(failures_name_path_and_byte),
        cmocka_unit_test(nesting_has_a_bound),
        cmocka_unit_test(an_object_is_quoted_and_escaped),
        cmocka_unit_test(an_object_that_json_cannot_hold_is_refused),
        cmocka_unit_test(reals_have_a_point_in_every_locale),
        cmocka_unit_test(a_struct_goes_both_ways),
        cmocka_unit_test(a_struct_that_does_not_fit_stays_as_it_was),
        cmocka_unit_test(every_allocation_may_fail_and_short_texts_need_none),
    };
    return hf_test_main("json", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
