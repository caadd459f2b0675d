/* Spans: made of two points in time, and refused when they have no unit. */
#include "base/span.h"

#include "support/support.h"

#include <string.h>

#define MS INT64_C(1000000)
#define LAST INT64_MAX

static void a_span_until_a_time_is_never_nothing(void **state)
{
    static const struct {
        int64_t now;
        int64_t then;
        int64_t span;
    } ROWS[] = {
        {0, 5 * MS, 5 * MS}, /* as it is ... */
        {7, 7 + MS, MS},
        {7, 6 + MS, MS}, /* ... or the shortest that can be waited for */
        {7, 8, MS},
        {7, 7, -1}, /* it has come */
        {7, 6, -1},
        {7, -3, -10},
        {5 * MS, 0, -5 * MS},
        {0, LAST, LAST}, /* never */
        {LAST, LAST, LAST},
        {INT64_MIN, LAST - 1, LAST - 1}, /* very long is not for ever */
        {-1, LAST - 1, LAST - 1},
        {LAST - 1, INT64_MIN, -LAST}, /* very long ago */
        {0, LAST - 1, LAST - 1},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        print_message("from %lld until %lld\n", (long long)ROWS[i].now, (long long)ROWS[i].then);
        assert_int_equal(hf_time_until((hf_time){ROWS[i].now}, (hf_time){ROWS[i].then}).ns, ROWS[i].span);
        assert_int_equal(hf_instant_until((hf_instant){ROWS[i].now}, (hf_instant){ROWS[i].then}).ns, ROWS[i].span);
    }
}

static void a_bound_has_a_unit_and_is_not_negative(void **state)
{
    static const struct {
        int64_t ns;
        bool is_wait_fine;    /* as the timeout of a wait */
        bool is_setting_fine; /* as a figure that can be switched off, of any length */
        bool is_bound_fine;
        const char *sentence; /* of a bound */
    } ROWS[] = {
        {0, true, true, true, ""},
        {MS, true, true, true, ""},
        {LAST, true, true, true, ""},
        {1, false, true, false, "it: .timeout is 1 ns: give it a unit, hf_seconds(1)"},
        {30, false, true, false, "it: .timeout is 30 ns: give it a unit, hf_seconds(30)"},
        {99999, false, true, false, "it: .timeout is 99999 ns: give it a unit, hf_seconds(99999)"},
        {100000, false, true, false, "it: .timeout is 100000 ns: at least a millisecond is needed here"},
        {MS - 1, false, true, false, "it: .timeout is 999999 ns: at least a millisecond is needed here"},
        {-1, true, true, false, "it: .timeout is negative: leave it out, or give a time"},
        {-2, true, false, false, "it: .timeout is negative: leave it out, or give a time"},
        {INT64_MIN, true, false, false, "it: .timeout is negative: leave it out, or give a time"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        hf_op op;
        hf_op_init(&op);
        print_message("%lld ns\n", (long long)ROWS[i].ns);
        hf_span span = hf_nanoseconds(ROWS[i].ns);
        assert_int_equal(hf_span_check(&op, "it", ".timeout", span, HF_MAY_BE_PAST),
                         ROWS[i].is_wait_fine ? HF_OK : HF_ERR_INVALID);
        hf_op_init(&op);
        assert_int_equal(hf_span_check(&op, "it", ".timeout", span, HF_MAY_BE_OFF | HF_MAY_BE_SHORT),
                         ROWS[i].is_setting_fine ? HF_OK : HF_ERR_INVALID);
        hf_op_init(&op);
        assert_int_equal(hf_span_check(&op, "it", ".timeout", span, 0), ROWS[i].is_bound_fine ? HF_OK : HF_ERR_INVALID);
        assert_int_equal(hf_span_is_bound(span), ROWS[i].is_bound_fine);
        assert_string_equal(op.message, ROWS[i].sentence);
    }
}

static void a_number_is_positive_or_one_of_the_two_words(void **state)
{
    static const struct {
        int64_t number;
        int may_be;
        const char *sentence;
    } ROWS[] = {
        {0, 0, ""},
        {INT64_MAX, 0, ""},
        {HF_OFF, HF_MAY_BE_OFF, ""},
        {HF_UNLIMITED, HF_MAY_BE_UNLIMITED, ""},
        {HF_OFF, 0, "it: .n is -1: give a number above 0"},
        {HF_OFF, HF_MAY_BE_UNLIMITED, "it: .n is -1: give a number above 0, or HF_UNLIMITED"},
        {HF_UNLIMITED, HF_MAY_BE_OFF, "it: .n is -2: give a number above 0, or HF_OFF"},
        {-3, HF_MAY_BE_OFF | HF_MAY_BE_UNLIMITED, "it: .n is -3: give a number above 0, HF_OFF or HF_UNLIMITED"},
        {INT64_MIN, 0, "it: .n is -9223372036854775808: give a number above 0"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        hf_op op;
        hf_op_init(&op);
        print_message("%lld, %d\n", (long long)ROWS[i].number, ROWS[i].may_be);
        assert_int_equal(hf_number_check(&op, "it", ".n", ROWS[i].number, ROWS[i].may_be),
                         ROWS[i].sentence[0] == '\0' ? HF_OK : HF_ERR_INVALID);
        assert_string_equal(op.message, ROWS[i].sentence);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_span_until_a_time_is_never_nothing),
        cmocka_unit_test(a_bound_has_a_unit_and_is_not_negative),
        cmocka_unit_test(a_number_is_positive_or_one_of_the_two_words),
    };
    return hf_test_main("span", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
