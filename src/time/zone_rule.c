/* POSIX TZ texts: what a zone does every year from now on.
 *
 *     text    = name offset [ name [offset] [ "," change "," change ] ]
 *     name    = three letters or more | "<" anything ">"
 *     offset  = [ + | - ] hours [ ":" minutes [ ":" seconds ] ]      what is added to local time to get UTC
 *     change  = ( "J" day | day | "M" month "." week "." weekday ) [ "/" offset ]
 *
 * Both changes of a year are those of the year in UTC, as in Go: a zone whose daylight saving time lasts the whole
 * year, which tzdata does not have, would be off for some hours around New Year. */
#include "time/zone_private.h"

#define OFFSET_HOURS_MAX 24  /* POSIX; more would not be a zone */
#define CHANGE_HOURS_MAX 167 /* RFC 9636: a change may be said to be days away from its day */
#define CHANGE_TIME_S 7200   /* unless said otherwise: two o'clock */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes the character off the front if it is there. */
static bool take_char(hf_str *text, char c)
{
    if (text->len == 0 || text->data[0] != c) {
        return false;
    }
    *text = hf_str_of_len(text->data + 1, text->len - 1);
    return true;
}

static bool take_number(hf_str *text, int min, int max, int *ret_number)
{
    int number = 0;
    size_t len = 0;
    for (; len < text->len && is_digit(text->data[len]); len++) {
        number = number * 10 + (text->data[len] - '0');
        if (number > max) {
            return false;
        }
    }
    if (len == 0 || number < min) {
        return false;
    }
    *text = hf_str_of_len(text->data + len, text->len - len);
    *ret_number = number;
    return true;
}

static bool take_name(hf_str *text)
{
    size_t len = 0;
    if (take_char(text, '<')) {
        const char *end = text->len > 0 ? memchr(text->data, '>', text->len) : NULL;
        if (end == NULL) {
            return false;
        }
        len = (size_t)(end - text->data) + 1;
    } else {
        while (len < text->len && ((text->data[len] | 0x20) >= 'a' && (text->data[len] | 0x20) <= 'z')) {
            len++;
        }
        if (len < 3) {
            return false;
        }
    }
    *text = hf_str_of_len(text->data + len, text->len - len);
    return true;
}

static bool take_offset(hf_str *text, int hours_max, int32_t *ret_seconds)
{
    bool is_negative = take_char(text, '-');
    if (!is_negative) {
        (void)take_char(text, '+');
    }
    int hours = 0;
    int minutes = 0;
    int seconds = 0;
    if (!take_number(text, 0, hours_max, &hours) || (take_char(text, ':') && !take_number(text, 0, 59, &minutes)) ||
        (take_char(text, ':') && !take_number(text, 0, 59, &seconds))) {
        return false;
    }
    int32_t sum = hours * 3600 + minutes * 60 + seconds;
    *ret_seconds = is_negative ? -sum : sum;
    return true;
}

static bool take_day(hf_str *text, hf_zone_change *change)
{
    if (take_char(text, 'J')) {
        change->kind = HF_ZONE_DAY_JULIAN;
        return take_number(text, 1, 365, &change->day);
    }
    if (take_char(text, 'M')) {
        change->kind = HF_ZONE_DAY_OF_WEEK;
        return take_number(text, 1, 12, &change->month) && take_char(text, '.') &&
               take_number(text, 1, 5, &change->week) && take_char(text, '.') && take_number(text, 0, 6, &change->day);
    }
    change->kind = HF_ZONE_DAY_OF_YEAR;
    return take_number(text, 0, 365, &change->day);
}

static bool take_change(hf_str *text, hf_zone_change *change)
{
    change->time_s = CHANGE_TIME_S;
    return take_day(text, change) && (!take_char(text, '/') || take_offset(text, CHANGE_HOURS_MAX, &change->time_s));
}

/* The second half, from the name of daylight saving time on. */
static bool take_dst(hf_str *text, hf_zone_rule *rule)
{
    rule->has_dst = true;
    rule->dst_offset_s = rule->std_offset_s + 3600;
    if (!take_name(text)) {
        return false;
    }
    if (text->len > 0 && text->data[0] != ',') {
        if (!take_offset(text, OFFSET_HOURS_MAX, &rule->dst_offset_s)) {
            return false;
        }
        rule->dst_offset_s = -rule->dst_offset_s;
    }
    if (text->len == 0) {
        *text = HF_STR(",M3.2.0,M11.1.0"); /* what tzcode takes then */
    }
    return take_char(text, ',') && take_change(text, &rule->begin) && take_char(text, ',') &&
           take_change(text, &rule->end);
}

hf_status hf_zone_rule_parse(hf_op *op, hf_str text, hf_zone_rule *ret_rule)
{
    hf_zone_rule rule = {0};
    hf_str rest = text;
    bool is_right = take_name(&rest) && take_offset(&rest, OFFSET_HOURS_MAX, &rule.std_offset_s);
    rule.std_offset_s = -rule.std_offset_s; /* ahead of UTC, not behind */
    if (is_right && rest.len > 0) {
        is_right = take_dst(&rest, &rule);
    }
    if (!is_right || rest.len > 0) {
        return hf_fail(op, HF_ERR_INVALID, "time zone data: the rule for later years cannot be read");
    }
    *ret_rule = rule;
    return HF_OK;
}

/* Seconds from the start of the year to the start of the day. */
static int64_t day_of_change(const hf_zone_change *change, int64_t year)
{
    if (change->kind == HF_ZONE_DAY_JULIAN) {
        return (change->day - 1 + (hf_year_is_leap(year) && change->day >= 60)) * HF_DAY_S;
    }
    if (change->kind == HF_ZONE_DAY_OF_YEAR) {
        return change->day * HF_DAY_S;
    }
    int64_t month_s = hf_civil_seconds((hf_civil){.year = year, .month = change->month, .day = 1});
    int days = (change->day - hf_civil_of(month_s).weekday + 7) % 7 + 7 * (change->week - 1);
    if (days >= hf_month_days(year, change->month)) {
        days -= 7; /* the last one is the fourth */
    }
    hf_assert(days >= 0 && days < 31);
    return month_s + days * HF_DAY_S - hf_civil_seconds((hf_civil){.year = year, .month = 1, .day = 1});
}

int32_t hf_zone_rule_offset(const hf_zone_rule *rule, int64_t utc_s)
{
    if (!rule->has_dst) {
        return rule->std_offset_s;
    }
    int64_t year = hf_civil_of(utc_s).year;
    int64_t second = utc_s - hf_civil_seconds((hf_civil){.year = year, .month = 1, .day = 1});
    int64_t begin = day_of_change(&rule->begin, year) + rule->begin.time_s - rule->std_offset_s;
    int64_t end = day_of_change(&rule->end, year) + rule->end.time_s - rule->dst_offset_s;
    hf_assert(second >= 0 && second < 366 * HF_DAY_S);
    bool is_dst = begin <= end ? second >= begin && second < end : second < end || second >= begin;
    return is_dst ? rule->dst_offset_s : rule->std_offset_s;
}
