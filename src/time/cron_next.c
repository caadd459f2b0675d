/* When a schedule comes next.
 *
 * The search begins at the next whole second, and looks at month, day, hour, minute and second of the local time, in this
 * order. While one of them does not match, it is moved on by one. The first such move sets everything smaller to its
 * start. When a part starts anew (January, the first, hour 0 ...), the larger ones may have changed, and the search looks
 * at them again.
 *
 * Months and days are moved on the calendar, and the result is looked up in the zone (hf_zone_utc); hours, minutes and
 * seconds are moved in UTC. This is how robfig/cron searches, and it matters where clocks are changed, because the search
 * shows through there:
 *
 *     a time in a gap       is left out: 02:30 does not come on the day on which clocks go from 02:00 to 03:00
 *     a time in a fold      comes twice
 *     a gap at midnight     a day that begins at 01:00 is found west of Greenwich; east of it, a search that moves the day
 *                           steps over it; one that moves the hour over such a midnight does not look at the day again
 *     a change by less      an hour that is moved on arrives in the middle of one, so its full hour may be missed
 *     than an hour
 *
 * A Temporal server runs its cron workflows at these times, so we do, too. One thing differs: where a zone has left out a
 * whole day (Pacific/Apia, 2011-12-30), robfig/cron never returns. Here a move of the day always goes forward.
 *
 * time-T1  The next time is later than the time that was asked about.
 * time-T2  Local time is never more than 26 hours away from UTC.
 * time-T3  A schedule that was parsed has at least one value in each of its fields. */
#include "time/cron.h"

#define SECOND_NS INT64_C(1000000000)

typedef struct search {
    const hf_cron *cron;
    const hf_zone *zone;
    int64_t at;     /* the moment that is looked at, in seconds since 1970 */
    hf_civil local; /* what clocks show then */
    bool is_reset;  /* something was moved: what is smaller is at its start */
    int steps;      /* moments that were looked at */
} search;

static bool has(uint64_t set, int value)
{
    hf_assert(value >= 0 && value < 64);
    return (set >> value & 1) != 0;
}

static void move_to(search *s, int64_t at)
{
    s->at = at;
    s->local = hf_zone_local(s->zone, at);
    s->steps++;
}

static void move_to_local(search *s, hf_civil local)
{
    move_to(s, hf_zone_utc(s->zone, local));
}

static bool is_given_up(const search *s)
{
    return s->steps > HF_CRON_STEPS_MAX;
}

/* ---- Parts ------------------------------------------------------------------------------------------------------------- */

/* Each of these moves its part until it matches. False: the larger parts must be looked at again. */

static bool find_month(search *s)
{
    while (!has(s->cron->months, s->local.month)) {
        if (!s->is_reset) {
            s->is_reset = true;
            move_to_local(s, (hf_civil){.year = s->local.year, .month = s->local.month, .day = 1});
        }
        hf_civil next = s->local;
        next.month++;
        move_to_local(s, next);
        if (s->local.month == 1 || is_given_up(s)) {
            return false;
        }
    }
    return true;
}

static bool day_matches(const search *s)
{
    bool is_day = has(s->cron->days, s->local.day);
    bool is_weekday = has(s->cron->weekdays, s->local.weekday);
    return s->cron->both_days ? is_day && is_weekday : is_day || is_weekday;
}

/* To 00:00 of the next day, if it has one. */
static void move_day(search *s)
{
    int64_t before = s->at;
    int day = s->local.day;
    hf_civil next = s->local;
    next.day++;
    move_to_local(s, next);
    if (s->local.hour > 12) { /* the clocks skip midnight, and this is before the gap */
        move_to(s, s->at + (24 - s->local.hour) * INT64_C(3600));
    } else if (s->local.hour > 0) { /* behind it */
        move_to(s, s->at - s->local.hour * INT64_C(3600));
    }
    if (s->at > before) {
        return;
    }
    /* The next day does not exist. */
    move_to(s, before);
    while (s->local.day == day && !is_given_up(s)) {
        move_to(s, s->at + 3600);
    }
}

static bool find_day(search *s)
{
    while (!day_matches(s)) {
        if (!s->is_reset) {
            s->is_reset = true;
            hf_civil start = s->local;
            start.hour = 0;
            start.minute = 0;
            start.second = 0;
            move_to_local(s, start);
        }
        move_day(s);
        if (s->local.day == 1 || is_given_up(s)) {
            return false;
        }
    }
    return true;
}

static bool find_hour(search *s)
{
    while (!has(s->cron->hours, s->local.hour)) {
        if (!s->is_reset) {
            s->is_reset = true;
            hf_civil start = s->local;
            start.minute = 0;
            start.second = 0;
            move_to_local(s, start);
        }
        move_to(s, s->at + 3600);
        if (s->local.hour == 0 || is_given_up(s)) {
            return false;
        }
    }
    return true;
}

static bool find_minute(search *s)
{
    while (!has(s->cron->minutes, s->local.minute)) {
        if (!s->is_reset) {
            s->is_reset = true;
            move_to(s, hf_floor_div(s->at, 60) * 60); /* a full minute of UTC */
        }
        move_to(s, s->at + 60);
        if (s->local.minute == 0 || is_given_up(s)) {
            return false;
        }
    }
    return true;
}

/* A schedule means second 0. */
static bool find_second(search *s)
{
    if (s->local.second == 0) {
        return true;
    }
    s->is_reset = true;
    move_to(s, s->at + 60 - s->local.second);
    return false;
}

/* ---- The search -------------------------------------------------------------------------------------------------------- */

/* Of an "@every". */
static int64_t next_every(const hf_cron *cron, int64_t after_ns)
{
    int64_t fraction = hf_floor_rest(after_ns, SECOND_NS);
    int64_t next = 0;
    hf_assert(fraction >= 0 && fraction < cron->every_ns);
    return __builtin_add_overflow(after_ns, cron->every_ns - fraction, &next) ? HF_CRON_NEVER : next;
}

int64_t hf_cron_next(const hf_cron *cron, const hf_zone *zone, int64_t after_ns)
{
    if (cron->every_ns > 0) {
        return next_every(cron, after_ns);
    }
    int64_t after_s = hf_floor_div(after_ns, SECOND_NS);
    search s = {.cron = cron, .zone = zone};
    move_to(&s, after_s + 1);
    int64_t year_max = s.local.year + HF_CRON_YEARS_MAX;
    while (s.local.year <= year_max && !is_given_up(&s)) {
        if (!find_month(&s) || !find_day(&s) || !find_hour(&s) || !find_minute(&s) || !find_second(&s)) {
            continue;
        }
        if (s.at <= after_s) { /* no zone of tzdata leads back to here, but one from a client may */
            move_to(&s, after_s + 1);
            continue;
        }
        if (s.at > INT64_MAX / SECOND_NS) {
            return HF_CRON_NEVER;
        }
        int64_t next_ns = s.at * SECOND_NS;
        hf_assert(next_ns > after_ns); /* time-T1 */
        return next_ns;
    }
    return HF_CRON_NEVER;
}

/* ---- Back-off ---------------------------------------------------------------------------------------------------------- */

/* The first time after `scheduled_ns` that is not before `now_ns`. */
static int64_t first_from(const hf_cron *cron, const hf_zone *zone, int64_t scheduled_ns, int64_t now_ns)
{
    int64_t next = hf_cron_next(cron, zone, scheduled_ns);
    if (cron->every_ns > 0 && next < now_ns) {
        uint64_t late = (uint64_t)now_ns - (uint64_t)next;
        int64_t rest = (int64_t)(late % (uint64_t)cron->every_ns);
        int64_t wait = rest > 0 ? cron->every_ns - rest : 0;
        return __builtin_add_overflow(now_ns, wait, &next) ? HF_CRON_NEVER : next;
    }
    for (int missed = 0; next < now_ns; missed++) {
        if (missed == HF_CRON_MISSED_MAX) { /* the rest at once: only a change of clocks could show the difference */
            return hf_cron_next(cron, zone, now_ns - 1);
        }
        next = hf_cron_next(cron, zone, next);
    }
    return next;
}

int64_t hf_cron_backoff(const hf_cron *cron, const hf_zone *zone, int64_t scheduled_ns, int64_t now_ns)
{
    int64_t due = now_ns < scheduled_ns ? scheduled_ns : first_from(cron, zone, scheduled_ns, now_ns);
    int64_t wait = 0;
    if (due == HF_CRON_NEVER || __builtin_sub_overflow(due, now_ns, &wait)) {
        return HF_CRON_NEVER;
    }
    hf_assert(wait >= 0);
    int64_t seconds = wait / SECOND_NS + (wait % SECOND_NS != 0);
    return seconds <= INT64_MAX / SECOND_NS ? seconds * SECOND_NS : HF_CRON_NEVER;
}
