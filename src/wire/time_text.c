/* The calendar is counted in days from 0000-03-01: a year that begins in March has its leap day at the end, so that the
 * months before it have the same lengths every year, and 400 years are always 146,097 days. */
#include "wire/time_text.h"

#include <stdio.h>

#define DAYS_PER_ERA 146097               /* 400 years */
#define DAYS_BEFORE_1970 719468           /* from 0000-03-01 */
#define SECONDS_MIN INT64_C(-62135596800) /* 0001-01-01 */
#define SECONDS_MAX INT64_C(253402300799) /* 9999-12-31T23:59:59 */

static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           DAYS_BEFORE_1970;
}

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
}

/* ".5" has to be ".500": the shortest of 0, 3, 6, 9 digits that loses nothing. */
static size_t put_fraction(char *text, size_t room, int32_t nanos)
{
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
    ret_text[len++] = 's';
    ret_text[len] = '\0';
    return len;
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

typedef struct cursor {
    const char *at;
    const char *end;
    bool ok; /* everything so far was as expected */
} cursor;

static void expect(cursor *c, char what)
{
    c->ok = c->ok && c->at < c->end && *c->at == what;
    c->at += c->ok;
}

static bool accept(cursor *c, char what)
{
    bool is_there = c->at < c->end && *c->at == what;
    c->at += is_there;
    return is_there;
}

/* Exactly so many digits, within bounds. */
static int64_t take_digits(cursor *c, int digits, int64_t min, int64_t max)
{
    int64_t value = 0;
    for (int i = 0; i < digits && c->ok; i++) {
        c->ok = c->at < c->end && *c->at >= '0' && *c->at <= '9';
        value = c->ok ? value * 10 + (*c->at++ - '0') : value;
    }
    c->ok = c->ok && value >= min && value <= max;
    return value;
}

static int32_t take_fraction(cursor *c)
{
    int32_t nanos = 0;
    if (!accept(c, '.')) {
        return 0;
    }
    int digits = 0;
    for (; digits < 9 && c->at < c->end && *c->at >= '0' && *c->at <= '9'; digits++) {
        nanos = nanos * 10 + (*c->at++ - '0');
    }
    c->ok = c->ok && digits > 0;
    for (; digits < 9; digits++) {
        nanos *= 10;
    }
    return nanos;
}

static int64_t take_offset(cursor *c)
{
    if (accept(c, 'Z') || accept(c, 'z')) {
        return 0;
    }
    int64_t sign = accept(c, '-') ? -1 : 1;
    if (sign > 0) {
        expect(c, '+');
    }
    int64_t hours = take_digits(c, 2, 0, 23);
    expect(c, ':');
    int64_t minutes = take_digits(c, 2, 0, 59);
    return sign * (hours * 3600 + minutes * 60);
}

bool hf_timestamp_parse(hf_str text, hf_pb_timestamp *ret_at)
{
    if (text.len == 0) {
        return false;
    }
    static const int MONTH_DAYS[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    cursor c = {text.data, text.data + text.len, true};
    int64_t year = take_digits(&c, 4, 1, 9999);
    expect(&c, '-');
    int64_t month = take_digits(&c, 2, 1, 12);
    expect(&c, '-');
    int64_t day = take_digits(&c, 2, 1, c.ok ? MONTH_DAYS[month - 1] : 0);
    if (c.ok && !accept(&c, 't')) {
        expect(&c, 'T');
    }
    int64_t hour = take_digits(&c, 2, 0, 23);
    expect(&c, ':');
    int64_t minute = take_digits(&c, 2, 0, 59);
    expect(&c, ':');
    int64_t second = take_digits(&c, 2, 0, 59);
    int32_t nanos = take_fraction(&c);
    int64_t offset = take_offset(&c);
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (!c.ok || c.at != c.end || (month == 2 && day == 29 && !is_leap)) {
        return false;
    }
    int64_t seconds = days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
    if (seconds < SECONDS_MIN || seconds > SECONDS_MAX) {
        return false;
    }
    *ret_at = (hf_pb_timestamp){seconds, nanos, true};
    return true;
}

bool hf_duration_parse(hf_str text, hf_pb_duration *ret_span)
{
    if (text.len == 0) {
        return false;
    }
    cursor c = {text.data, text.data + text.len, true};
    bool is_negative = accept(&c, '-');
    uint64_t seconds = 0;
    int digits = 0;
    for (; c.at < c.end && *c.at >= '0' && *c.at <= '9'; digits++, c.at++) {
        if (__builtin_mul_overflow(seconds, 10u, &seconds) ||
            __builtin_add_overflow(seconds, (uint64_t)(*c.at - '0'), &seconds)) {
            return false;
        }
    }
    int32_t nanos = take_fraction(&c);
    expect(&c, 's');
    uint64_t bound = (uint64_t)INT64_MAX + is_negative;
    if (!c.ok || c.at != c.end || digits == 0 || seconds > bound) {
        return false;
    }
    *ret_span = (hf_pb_duration){(int64_t)(is_negative ? -seconds : seconds), is_negative ? -nanos : nanos, true};
    return true;
}
