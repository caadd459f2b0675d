#include "support/support.h"

#include "base/str.h"

#include <stdio.h>

static void equal_means_the_same_bytes(void **state)
{
    (void)state;
    assert_true(hf_str_equal(HF_STR("abc"), hf_str_of("abc")));
    assert_false(hf_str_equal(HF_STR("abc"), HF_STR("abd")));
    assert_false(hf_str_equal(HF_STR("abc"), HF_STR("ab")));
    assert_true(hf_str_equal(hf_str_of_len("a\0b", 3), HF_STR("a\0b")));
    assert_false(hf_str_equal(hf_str_of_len("a\0b", 3), HF_STR("a\0c")));
    assert_true(hf_str_equal((hf_str){NULL, 0}, HF_STR("")));
    assert_true(hf_str_equal(hf_str_of(NULL), HF_STR("")));
}

static void order_is_by_bytes_then_by_length(void **state)
{
    (void)state;
    static const hf_str SORTED[] = {HF_STR_INIT(""),     HF_STR_INIT("\0"),      HF_STR_INIT("a"),
                                    HF_STR_INIT("a\0"),  HF_STR_INIT("a\x1f"),   HF_STR_INIT("aa"),
                                    HF_STR_INIT("b"),    HF_STR_INIT("\x7f"),    HF_STR_INIT("\x80"),
                                    HF_STR_INIT("\xff"), HF_STR_INIT("\xff\xff")};
    for (size_t i = 0; i < HF_COUNT_OF(SORTED); i++) {
        for (size_t j = 0; j < HF_COUNT_OF(SORTED); j++) {
            int order = hf_str_compare(SORTED[i], SORTED[j]);
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
    assert_int_equal(hf_str_compare((hf_str){NULL, 0}, HF_STR("")), 0);
}

static void printf_gets_what_it_can_take(void **state)
{
    (void)state;
    static char text[2000];
    char out[2000];
    memset(text, 'x', sizeof text);
    assert_int_equal(snprintf(out, sizeof out, "%.*s", HF_STR_ARGS(hf_str_of_len(text, sizeof text))), 1000);
    assert_int_equal(snprintf(out, sizeof out, "%.*s", HF_STR_ARGS(((hf_str){NULL, 0}))), 0);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(equal_means_the_same_bytes),
    cmocka_unit_test(order_is_by_bytes_then_by_length),
    cmocka_unit_test(printf_gets_what_it_can_take),
};

int main(int argc, char **argv)
{
    return hf_test_main("str", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
