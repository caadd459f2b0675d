/* The calendar is counted in days from 0000-03-01: a year that begins in March has its leap day at the end, so that the
 * months before it have the same lengths every year, and 400 years are always 146,097 days. */
#include "wire/time_text.h"

#include <stdio.h>

#define DAYS_PER_ERA 146097               /* 400 years */
#define DAYS_BEFORE_1970 719468           /* from 0000-03-01 */
#define SECONDS_MIN INT64_C(-62135596800) /* 0001-01-01 */
#define SECONDS_MAX INT64_C(253402300799) /* 9999-12-31T23:59:59 */

static void date_of(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
    days += DAYS_BEFORE_1970;
    int64_t era = days / DAYS_PER_ERA;
    int64_t day_of_era = days - era * DAYS_PER_ERA;
    int64_t year = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* 0 = March */
    *ret_day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    *ret_month = (int)(month < 10 ? month + 3 : month - 9);
    *ret_year = (int)(year + era * 400 + (*ret_month <= 2));
    hf_assert(*ret_month >= 1 && *ret_month <= 12);
    hf_assert(*ret_day >= 1 && *ret_day <= 31);
    hf_assert(*ret_year >= 1 && *ret_year <= 9999); /* the caller has checked the range */
}

/* Writes the fraction with 0, 3, 6 or 9 digits, as few as are exact: ".500", not ".5". */
static size_t put_fraction(char *text, size_t room, int32_t nanos)
{
    hf_assert(nanos >= 0 && nanos <= 999999999);
    if (nanos == 0) {
        return 0;
    }
    int digits = nanos % 1000000 == 0 ? 3 : nanos % 1000 == 0 ? 6 : 9;
    int32_t shown = digits == 3 ? nanos / 1000000 : digits == 6 ? nanos / 1000 : nanos;
    return (size_t)snprintf(text, room, ".%0*d", digits, shown);
}

size_t hf_timestamp_format(hf_pb_timestamp at, char ret_text[HF_TIME_TEXT_LEN_MAX])
{
    if (at.seconds < SECONDS_MIN || at.seconds > SECONDS_MAX || at.nanos < 0 || at.nanos > 999999999) {
        return 0;
    }
    int64_t days = at.seconds / 86400;
    int64_t rest = at.seconds % 86400;
    if (rest < 0) {
        rest += 86400;
        days--;
    }
    int year = 0;
    int month = 0;
    int day = 0;
    date_of(days, &year, &month, &day);
    size_t len = (size_t)snprintf(ret_text, HF_TIME_TEXT_LEN_MAX, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day,
                                  (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
    len += put_fraction(ret_text + len, HF_TIME_TEXT_LEN_MAX - len, at.nanos);
    hf_assert(len + 2 <= HF_TIME_TEXT_LEN_MAX);
    ret_text[len++] = 'Z';
    ret_text[len] = '\0';
    return len;
}

size_t hf_duration_format(hf_pb_duration span, char ret_text[HF_TIME_TEXT_LEN_MAX])
{
    if (span.nanos < -999999999 || span.nanos > 999999999 || (span.seconds > 0 && span.nanos < 0) ||
        (span.seconds < 0 && span.nanos > 0)) {
        return 0;
    }
    bool is_negative = span.seconds < 0 || span.nanos < 0;
    uint64_t seconds = span.seconds < 0 ? -(uint64_t)span.seconds : (uint64_t)span.seconds;
    size_t len =
        (size_t)snprintf(ret_text, HF_TIME_TEXT_LEN_MAX, "%s%llu", is_negative ? "-" : "", (unsigned long long)seconds);
    len += put_fraction(ret_text + len, HF_TIME_TEXT_LEN_MAX - len, span.nanos < 0 ? -span.nanos : span.nanos);
    hf_assert(len + 2 <= HF_TIME_TEXT_LEN_MAX);
    ret_text[len++] = 's';
    ret_text[len] = '\0';
    return len;
}
