/* hf_cron: the cron schedule of a workflow, and when it comes next. A text means what it means to a Temporal server,
 * which uses the "standard" parser of robfig/cron v3:
 *
 *     [CRON_TZ=ZONE | TZ=ZONE ] minute hour day month weekday
 *     [CRON_TZ=ZONE | TZ=ZONE ] @yearly | @annually | @monthly | @weekly | @daily | @midnight | @hourly
 *     [CRON_TZ=ZONE | TZ=ZONE ] @every DURATION
 *
 *     field      list of parts, with commas
 *     part       * or ? (any), a, a-b, and any of them with /n: every n-th, where a/n goes on to the maximum
 *     names      JAN .. DEC, SUN .. SAT, in any case; Sunday is 0, and 7 is not a weekday
 *     days       if neither day nor weekday is * or ?, one of the two must match, else both
 *     DURATION   as in Go: "1h30m", "90s"; whole seconds count, and at least one
 *
 * Without a zone the schedule is in UTC. */
#ifndef HF_TIME_CRON_H
#define HF_TIME_CRON_H

#include "base/op.h"
#include "base/str.h"
#include "time/zone.h"

#define HF_CRON_LEN_MAX 1000     /* bytes of a schedule: as long as a name may be */
#define HF_CRON_YEARS_MAX 5      /* years that are searched: February 29 comes within 4, or 8 around 2100 */
#define HF_CRON_STEPS_MAX 100000 /* moments that are looked at for one next time: 5 years of days, many times over */
#define HF_CRON_MISSED_MAX 1000  /* times passed by one after the other: 16 hours of minutes, some milliseconds */

#define HF_CRON_NEVER INT64_MAX

typedef struct hf_cron {
    int64_t every_ns;  /* above 0: "@every", whole seconds; what follows is not used then, but for the zone */
    uint64_t minutes;  /* bit n: minute n, 0 .. 59 */
    uint64_t hours;    /* 0 .. 23 */
    uint64_t days;     /* of the month, 1 .. 31 */
    uint64_t months;   /* 1 .. 12 */
    uint64_t weekdays; /* 0 .. 6, 0 = Sunday */
    bool both_days;    /* day and weekday must both match */
    char zone[HF_ZONE_NAME_LEN_MAX + 1]; /* its name, checked by hf_zone_name_check; "" = none was given */
} hf_cron;

/* Reads a schedule. Fails: HF_ERR_INVALID with a sentence that quotes the part that is wrong. A schedule that is accepted
 * may still never come: "0 0 31 2 *". */
hf_status hf_cron_parse(hf_op *op, hf_str text, hf_cron *ret_cron);

/* The next time after `after_ns`, both in nanoseconds since 1970 in UTC; whole seconds. HF_CRON_NEVER: it does not come in
 * this year and the next five, or not before the last time that can be said (2262). `zone` is that of cron->zone: NULL if
 * hf_zone_name_is_utc. When clocks are changed it does what robfig/cron does; see cron_next.c. */
int64_t hf_cron_next(const hf_cron *cron, const hf_zone *zone, int64_t after_ns);

/* How long the first workflow task of a run has to wait for its schedule, in ns, whole seconds rounded up: a Temporal
 * server's GetBackoffForNextSchedule.
 *
 *     first run     both times are when it is started
 *     next run      scheduled_ns: when the run before was due, which is its start plus its own back-off
 *                   now_ns:       when that run closed
 *
 * So "@every" counts from when the run before was due, not from its end, and times that have passed while it ran are left
 * out; now itself is not too late. A schedule that is still to come (now_ns < scheduled_ns) is kept. HF_CRON_NEVER: there
 * is no next run. */
int64_t hf_cron_backoff(const hf_cron *cron, const hf_zone *zone, int64_t scheduled_ns, int64_t now_ns);

#endif
