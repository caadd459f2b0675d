/* hf_civil: a date and a time of day in the Gregorian calendar, as a clock on a wall shows them. No zone belongs to it:
 * zone.h says what the clocks of a zone show. */
#ifndef HF_TIME_CIVIL_H
#define HF_TIME_CIVIL_H

#include "base/base.h"

#define HF_DAY_S INT64_C(86400)

typedef struct hf_civil {
    int64_t year;
    int month;   /* 1 = January */
    int day;     /* of the month, from 1 */
    int hour;    /* 0 .. 23 */
    int minute;  /* 0 .. 59 */
    int second;  /* 0 .. 59; there are no leap seconds */
    int weekday; /* 0 = Sunday; hf_civil_seconds does not look at it */
} hf_civil;

/* The date of so many seconds since 1970-01-01 00:00:00. */
hf_civil hf_civil_of(int64_t seconds);
/* Seconds since 1970-01-01 00:00:00. Month and day may be out of range: month 13 is January of the next year, and
 * January 32 is February 1. */
int64_t hf_civil_seconds(hf_civil civil);

bool hf_year_is_leap(int64_t year);
/* Days of a month, 1 .. 12, of that year. */
int hf_month_days(int64_t year, int month);

/* Division that rounds down, also below zero, and what it leaves: 0 or more, below `by`. */
static inline int64_t hf_floor_div(int64_t number, int64_t by)
{
    return number / by - (number % by < 0);
}

static inline int64_t hf_floor_rest(int64_t number, int64_t by)
{
    int64_t rest = number % by;
    return rest < 0 ? rest + by : rest;
}

#endif
