/* Days are counted from 0000-03-01. A year that begins in March has its leap day at its end, so all months before it
 * have the same lengths every year, and 400 years are always 146,097 days. */
#include "time/civil.h"

#define DAYS_PER_ERA 146097     /* 400 years */
#define DAYS_BEFORE_1970 719468 /* from 0000-03-01 */
#define YEAR_MAX INT64_C(100000000000)

hf_civil hf_civil_of(int64_t seconds)
{
    int64_t days = hf_floor_div(seconds, HF_DAY_S);
    int rest = (int)hf_floor_rest(seconds, HF_DAY_S);
    int64_t shifted = days + DAYS_BEFORE_1970;
    int64_t era = hf_floor_div(shifted, DAYS_PER_ERA);
    int64_t day_of_era = shifted - era * DAYS_PER_ERA;
    int64_t year = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* 0 = March */
    hf_civil civil = {
        .month = (int)(month < 10 ? month + 3 : month - 9),
        .day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
        .hour = rest / 3600,
        .minute = rest / 60 % 60,
        .second = rest % 60,
        .weekday = (int)((days % 7 + 11) % 7), /* 1970-01-01 was a Thursday */
    };
    civil.year = year + era * 400 + (civil.month <= 2);
    hf_assert(rest >= 0 && rest < HF_DAY_S);
    hf_assert(civil.month >= 1 && civil.month <= 12);
    hf_assert(civil.day >= 1 && civil.day <= 31);
    hf_assert(civil.weekday >= 0 && civil.weekday <= 6);
    return civil;
}

int64_t hf_civil_seconds(hf_civil civil)
{
    hf_assert(civil.year >= -YEAR_MAX && civil.year <= YEAR_MAX);
    int64_t carry = hf_floor_div(civil.month - 1, 12);
    int64_t month = civil.month - 12 * carry;
    hf_assert(month >= 1 && month <= 12);
    int64_t year = civil.year + carry - (month <= 2); /* the one that began in March */
    int64_t era = hf_floor_div(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    int64_t days = era * DAYS_PER_ERA + day_of_era - DAYS_BEFORE_1970 + civil.day - 1;
    return days * HF_DAY_S + civil.hour * INT64_C(3600) + civil.minute * INT64_C(60) + civil.second;
}

bool hf_year_is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int hf_month_days(int64_t year, int month)
{
    static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    hf_assert(month >= 1 && month <= 12);
    return DAYS[month - 1] + (month == 2 && hf_year_is_leap(year));
}
