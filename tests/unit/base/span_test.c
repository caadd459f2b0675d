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
        bool is_wait_fine;
        bool is_bound_fine;
        const char *sentence; /* of a bound */
    } ROWS[] = {
        {0, true, true, ""},
        {MS, true, true, ""},
        {LAST, true, true, ""},
        {1, false, false, "it: .timeout is 1 ns: give it a unit, hf_seconds(1)"},
        {30, false, false, "it: .timeout is 30 ns: give it a unit, hf_seconds(30)"},
        {99999, false, false, "it: .timeout is 99999 ns: give it a unit, hf_seconds(99999)"},
        {100000, false, false, "it: .timeout is 100000 ns: at least a millisecond is needed here"},
        {MS - 1, false, false, "it: .timeout is 999999 ns: at least a millisecond is needed here"},
        {-1, true, false, "it: .timeout is negative: leave it out, or give a time"},
        {INT64_MIN, true, false, "it: .timeout is negative: leave it out, or give a time"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        hf_op op;
        hf_op_init(&op);
        print_message("%lld ns\n", (long long)ROWS[i].ns);
        assert_int_equal(hf_span_check_unit(&op, "it", ".timeout", hf_nanoseconds(ROWS[i].ns)),
                         ROWS[i].is_wait_fine ? HF_OK : HF_ERR_INVALID);
        hf_op_init(&op);
        assert_int_equal(hf_span_check_bound(&op, "it", ".timeout", hf_nanoseconds(ROWS[i].ns)),
                         ROWS[i].is_bound_fine ? HF_OK : HF_ERR_INVALID);
        assert_string_equal(op.message, ROWS[i].sentence);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_span_until_a_time_is_never_nothing),
        cmocka_unit_test(a_bound_has_a_unit_and_is_not_negative),
    };
    return hf_test_main("span", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
