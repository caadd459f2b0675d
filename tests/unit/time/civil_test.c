#include "unit/time/times.h"

static void dates_have_their_seconds_and_weekdays(void **state)
{
    static const struct {
        const char *text;
        int64_t seconds;
        int weekday;
    } ROWS[] = {
        {"1970-01-01 00:00:00", 0, 4},
        {"1969-12-31 23:59:59", -1, 3},
        {"2000-02-29 12:00:00", 951825600, 2},
        {"2000-03-01 00:00:00", 951868800, 3},
        {"1900-03-01 00:00:00", INT64_C(-2203891200), 4},
        {"2026-03-29 01:30:00", 1774747800, 0},
        {"2262-04-11 23:47:16", INT64_C(9223372036), 5},
        {"1677-09-21 00:12:43", INT64_C(-9223372037), 2},
        {"0000-01-01 00:00:00", INT64_C(-62167219200), 6},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        print_message("%s\n", ROWS[i].text);
        assert_int_equal(seconds_of_text(ROWS[i].text), ROWS[i].seconds);
        hf_civil civil = hf_civil_of(ROWS[i].seconds);
        assert_string_equal(text_of_civil(civil).text, ROWS[i].text);
        assert_int_equal(civil.weekday, ROWS[i].weekday);
    }
}

static void every_day_of_many_years_follows_the_one_before(void **state)
{
    (void)state;
    hf_civil last = hf_civil_of(seconds_of_text("1599-12-31"));
    for (int64_t at = seconds_of_text("1600-01-01"); last.year < 2405; at += HF_DAY_S) {
        hf_civil civil = hf_civil_of(at);
        bool is_month = last.day == hf_month_days(last.year, last.month);
        bool is_year = is_month && last.month == 12;
        assert_int_equal(civil.day, is_month ? 1 : last.day + 1);
        assert_int_equal(civil.month, is_year ? 1 : last.month + is_month);
        assert_int_equal(civil.year, last.year + is_year);
        assert_int_equal(civil.weekday, (last.weekday + 1) % 7);
        assert_int_equal(hf_civil_seconds(civil), at);
        last = civil;
    }
}

static void months_and_days_out_of_range_carry_over(void **state)
{
    static const struct {
        hf_civil civil;
        const char *text;
    } ROWS[] = {
        {{.year = 2026, .month = 13, .day = 1}, "2027-01-01 00:00:00"},
        {{.year = 2026, .month = 0, .day = 1}, "2025-12-01 00:00:00"},
        {{.year = 2026, .month = 1, .day = 32, .hour = 5}, "2026-02-01 05:00:00"},
        {{.year = 2026, .month = 2, .day = 31}, "2026-03-03 00:00:00"},
        {{.year = 2026, .month = 3, .day = 0}, "2026-02-28 00:00:00"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        assert_string_equal(text_of_civil(hf_civil_of(hf_civil_seconds(ROWS[i].civil))).text, ROWS[i].text);
    }
}

static void all_of_int64_has_a_date(void **state)
{
    static const int64_t ROWS[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 86400};
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        (void)hf_civil_of(ROWS[i]); /* its asserts look at it */
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(dates_have_their_seconds_and_weekdays),
    cmocka_unit_test(every_day_of_many_years_follows_the_one_before),
    cmocka_unit_test(months_and_days_out_of_range_carry_over),
    cmocka_unit_test(all_of_int64_has_a_date),
};

int main(int argc, char **argv)
{
    return hf_test_main("civil", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
