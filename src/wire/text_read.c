/* days_of counts days from 0000-03-01, as src/wire/time_text.c does: there the leap day is the last day of a year. */
#include "wire/text_read.h"

#define DAYS_PER_ERA 146097               /* 400 years */
#define DAYS_BEFORE_1970 719468           /* from 0000-03-01 */
#define SECONDS_MIN INT64_C(-62135596800) /* 0001-01-01 */
#define SECONDS_MAX INT64_C(253402300799) /* 9999-12-31T23:59:59 */

/* ---- Times ----------------------------------------------------------------------------------------------------- */

static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           DAYS_BEFORE_1970;
}

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

/* ---- Base64 ---------------------------------------------------------------------------------------------------- */

/* -1: not a character of either alphabet. */
static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    if (c == '+' || c == '-') {
        return 62;
    }
    return c == '/' || c == '_' ? 63 : -1;
}

hf_status hf_base64_decode(hf_str text, hf_arena *arena, hf_str *ret_bytes)
{
    size_t len = text.len;
    for (int i = 0; i < 2 && len > 0 && text.data[len - 1] == '='; i++) {
        len--;
    }
    if (len % 4 == 1 || (len != text.len && text.len % 4 != 0)) {
        return HF_ERR_INVALID;
    }
    uint8_t *bytes = hf_arena_take(arena, len / 4 * 3 + 3, 1);
    if (bytes == NULL) {
        return HF_ERR_NOMEM;
    }
    uint32_t bits = 0;
    int bit_count = 0;
    size_t count = 0;
    for (size_t i = 0; i < len; i++) {
        int value = value_of(text.data[i]);
        if (value < 0) {
            return HF_ERR_INVALID;
        }
        bits = bits << 6 | (uint32_t)value;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            bytes[count++] = (uint8_t)(bits >> bit_count);
        }
    }
    *ret_bytes = hf_str_of_len(bytes, count);
    return HF_OK;
}
