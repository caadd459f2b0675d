/* The inside of a zone: a list of changes, and the rule that goes on behind the last of them. */
#ifndef HF_TIME_ZONE_PRIVATE_H
#define HF_TIME_ZONE_PRIVATE_H

#include "time/zone.h"

typedef enum hf_zone_day_kind {
    HF_ZONE_DAY_JULIAN,  /* Jn: day n of the year, 1 .. 365; February 29 is never counted */
    HF_ZONE_DAY_OF_YEAR, /* n: day n of the year, 0 .. 365; February 29 is counted */
    HF_ZONE_DAY_OF_WEEK  /* Mm.w.d: weekday d of week w of month m; week 5 is the last one */
} hf_zone_day_kind;

/* One of the two changes of every year. */
typedef struct hf_zone_change {
    hf_zone_day_kind kind;
    int month;      /* 1 .. 12, of an HF_ZONE_DAY_OF_WEEK */
    int week;       /* 1 .. 5, of one */
    int day;        /* as the kind says; 0 = Sunday */
    int32_t time_s; /* after midnight of that day, by the clocks before the change; may be negative or over a day */
} hf_zone_change;

/* What every year is like: a POSIX TZ text such as "CET-1CEST,M3.5.0,M10.5.0/3". */
typedef struct hf_zone_rule {
    bool has_dst;         /* the clocks are changed; otherwise only std_offset_s is used */
    int32_t std_offset_s; /* seconds ahead of UTC in standard time */
    int32_t dst_offset_s; /* in daylight saving time */
    hf_zone_change begin; /* of daylight saving time */
    hf_zone_change end;   /* may be earlier in the year than the begin: south of the equator */
} hf_zone_rule;

struct hf_zone {
    size_t count;           /* of the changes that are listed; may be 0 */
    const int64_t *at;      /* [count] when, in seconds since 1970, ascending */
    const int32_t *offsets; /* [count] seconds ahead of UTC from then on */
    int32_t first_offset_s; /* before the first */
    bool has_rule;          /* from the last change on, or always if there is none, this holds: */
    hf_zone_rule rule;
};

/* Reads a POSIX TZ text with the extensions of RFC 9636: hours of a change from -167 to 167. Fails: HF_ERR_INVALID. */
hf_status hf_zone_rule_parse(hf_op *op, hf_str text, hf_zone_rule *ret_rule);
int32_t hf_zone_rule_offset(const hf_zone_rule *rule, int64_t utc_s);

#endif
