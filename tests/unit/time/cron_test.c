#include "unit/time/times.h"

#include "unit/time/cron_facts.h"

/* ---- Text -------------------------------------------------------------------------------------------------------------- */

#define MINUTES_ALL ((UINT64_C(1) << 60) - 1)
#define HOURS_ALL ((UINT64_C(1) << 24) - 1)
#define DAYS_ALL (((UINT64_C(1) << 31) - 1) << 1)
#define MONTHS_ALL (((UINT64_C(1) << 12) - 1) << 1)
#define WEEKDAYS_ALL ((UINT64_C(1) << 7) - 1)
#define BIT(n) (UINT64_C(1) << (n))

static void schedules_are_sets_of_times(void **state)
{
    static const struct {
        const char *text;
        uint64_t minutes, hours, days, months, weekdays;
        bool both_days;
        const char *zone;
    } ROWS[] = {
        {"* * * * *", MINUTES_ALL, HOURS_ALL, DAYS_ALL, MONTHS_ALL, WEEKDAYS_ALL, true, ""},
        {"? ? ? ? ?", MINUTES_ALL, HOURS_ALL, DAYS_ALL, MONTHS_ALL, WEEKDAYS_ALL, true, ""},
        {"  5\t* *\n* * ", BIT(5), HOURS_ALL, DAYS_ALL, MONTHS_ALL, WEEKDAYS_ALL, true, ""},
        {"5 4 3 2 1", BIT(5), BIT(4), BIT(3), BIT(2), BIT(1), false, ""},
        {"1,2,59 0,23 1,31 1,12 0,6", BIT(1) | BIT(2) | BIT(59), BIT(0) | BIT(23), BIT(1) | BIT(31), BIT(1) | BIT(12),
         BIT(0) | BIT(6), false, ""},
        {"1-3 0-23 1-31 1-12 0-6", 14, HOURS_ALL, DAYS_ALL, MONTHS_ALL, WEEKDAYS_ALL, false, ""},
        {"*/20 5/9 1-9/4 */6 *", BIT(0) | BIT(20) | BIT(40), BIT(5) | BIT(14) | BIT(23), BIT(1) | BIT(5) | BIT(9),
         BIT(1) | BIT(7), WEEKDAYS_ALL, true, ""},
        {"*/99999999999 * */1 * */2", BIT(0), HOURS_ALL, DAYS_ALL, MONTHS_ALL, BIT(0) | BIT(2) | BIT(4) | BIT(6), true,
         ""},
        {"0 0 */2 * */2", BIT(0), BIT(0), UINT64_C(0xaaaaaaaa), MONTHS_ALL, BIT(0) | BIT(2) | BIT(4) | BIT(6), false,
         ""},
        {"0 0 5,* * 1", BIT(0), BIT(0), DAYS_ALL, MONTHS_ALL, BIT(1), true, ""},
        {"0 0 1 jan,FEB,mAr-May Mon-fri", BIT(0), BIT(0), BIT(1), BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(5), 62, false,
         ""},
        {"0 0 1 dec/2 SAT", BIT(0), BIT(0), BIT(1), BIT(12), BIT(6), false, ""},
        {"007,+8 0 1 1 0", BIT(7) | BIT(8), BIT(0), BIT(1), BIT(1), BIT(0), false, ""},
        {"1,,2, 0 1 1 0", BIT(1) | BIT(2), BIT(0), BIT(1), BIT(1), BIT(0), false, ""},
        {"*-7 0 1 1 0", MINUTES_ALL, BIT(0), BIT(1), BIT(1), BIT(0), false, ""},
        {"@yearly", BIT(0), BIT(0), BIT(1), BIT(1), WEEKDAYS_ALL, true, ""},
        {"@annually", BIT(0), BIT(0), BIT(1), BIT(1), WEEKDAYS_ALL, true, ""},
        {"@monthly", BIT(0), BIT(0), BIT(1), MONTHS_ALL, WEEKDAYS_ALL, true, ""},
        {"@weekly", BIT(0), BIT(0), DAYS_ALL, MONTHS_ALL, BIT(0), true, ""},
        {"@daily", BIT(0), BIT(0), DAYS_ALL, MONTHS_ALL, WEEKDAYS_ALL, true, ""},
        {"@midnight", BIT(0), BIT(0), DAYS_ALL, MONTHS_ALL, WEEKDAYS_ALL, true, ""},
        {"@hourly", BIT(0), HOURS_ALL, DAYS_ALL, MONTHS_ALL, WEEKDAYS_ALL, true, ""},
        {"TZ=Europe/Berlin 5 4 3 2 1", BIT(5), BIT(4), BIT(3), BIT(2), BIT(1), false, "Europe/Berlin"},
        {"CRON_TZ=UTC   @hourly  ", BIT(0), HOURS_ALL, DAYS_ALL, MONTHS_ALL, WEEKDAYS_ALL, true, "UTC"},
        {"TZ= 5 4 3 2 1", BIT(5), BIT(4), BIT(3), BIT(2), BIT(1), false, ""},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        print_message("'%s'\n", ROWS[i].text);
        hf_cron cron = cron_of_text(ROWS[i].text);
        assert_int_equal(cron.every_ns, 0);
        assert_int_equal(cron.minutes, ROWS[i].minutes);
        assert_int_equal(cron.hours, ROWS[i].hours);
        assert_int_equal(cron.days, ROWS[i].days);
        assert_int_equal(cron.months, ROWS[i].months);
        assert_int_equal(cron.weekdays, ROWS[i].weekdays);
        assert_int_equal(cron.both_days, ROWS[i].both_days);
        assert_string_equal(cron.zone, ROWS[i].zone);
    }
}

static void durations_are_those_of_go(void **state)
{
    static const struct {
        const char *text;
        int64_t ns; /* 0: it is refused */
    } ROWS[] = {
        {"@every 5s", 5 * SECOND},
        {"@every 1h30m", 5400 * SECOND},
        {"@every 1.5h", 5400 * SECOND},
        {"@every 1h1m1s1ms1us1ns", 3661 * SECOND},
        {"@every 1500ms", SECOND},
        {"@every 3000000us", 3 * SECOND},
        {"@every 3000000\xc2\xb5s", 3 * SECOND},
        {"@every 3000000\xce\xbcs", 3 * SECOND},
        {"@every 4000000000ns", 4 * SECOND},
        {"@every 0.999s", SECOND},
        {"@every 1ns", SECOND},
        {"@every 0", SECOND},
        {"@every -1h", SECOND},
        {"@every +2m", 120 * SECOND},
        {"@every .5m", 30 * SECOND},
        {"@every 2.m", 120 * SECOND},
        {"@every 0.1h", 360 * SECOND},
        {"@every 0.33333333333333333333333333h", 1200 * SECOND},
        {"@every 30m30m", 3600 * SECOND},
        {"@every 2562047h47m16.854775807s", INT64_C(9223372036) * SECOND},
        {"CRON_TZ=Europe/Berlin @every 1h", 3600 * SECOND},
        {"@every 2562047h47m16.854775808s", 0},
        {"@every 9999999h", 0},
        {"@every 99999999999999999999s", 0},
        {"@every 9223372036854775807h", 0},
        {"@every 5", 0},
        {"@every ", 0},
        {"@every  5s", 0},
        {"@every -", 0},
        {"@every .s", 0},
        {"@every s", 0},
        {"@every 5d", 0},
        {"@every 5s ", 0},
        {"@every 5S", 0},
        {"@every 1..5s", 0},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        hf_op op;
        hf_cron cron = {.every_ns = 0};
        hf_op_init(&op);
        print_message("'%s'\n", ROWS[i].text);
        assert_int_equal(hf_cron_parse(&op, hf_str_of(ROWS[i].text), &cron), ROWS[i].ns > 0 ? HF_OK : HF_ERR_INVALID);
        assert_int_equal(cron.every_ns, ROWS[i].ns);
    }
}

static void a_wrong_schedule_is_refused_with_its_wrong_part(void **state)
{
    static const struct {
        const char *text;
        const char *sentence; /* behind "cron schedule: " */
    } ROWS[] = {
        {"", "it is empty"},
        {"* * * *", "\"* * * *\" has 4 fields, not 5: minute, hour, day of month, month, day of week"},
        {"* * * * * *", "\"* * * * * *\" has 6 fields, not 5: minute, hour, day of month, month, day of week"},
        {"   ", "\"   \" has 0 fields, not 5: minute, hour, day of month, month, day of week"},
        {"60 * * * *", "minute \"60\" is not between 0 and 59"},
        {"* 24 * * *", "hour \"24\" is not between 0 and 23"},
        {"* * 0 * *", "day of month \"0\" is not between 1 and 31"},
        {"* * 32 * *", "day of month \"32\" is not between 1 and 31"},
        {"* * * 0 *", "month \"0\" is not between 1 and 12"},
        {"* * * 13 *", "month \"13\" is not between 1 and 12"},
        {"* * * * 7", "day of week \"7\" is not between 0 and 6"},
        {"99999999999999999999 * * * *", "minute \"99999999999999999999\" is not between 0 and 59"},
        {"1,5-60,7 * * * *", "minute \"5-60\" is not between 0 and 59"},
        {"* 5-3 * * *", "hour \"5-3\" ends before it begins"},
        {"* * * dec-jan *", "month \"dec-jan\" ends before it begins"},
        {"x * * * *", "minute \"x\" has a part that is not a number"},
        {"jan * * * *", "minute \"jan\" has a part that is not a number"},
        {"* * * mon *", "month \"mon\" has a part that is not a number or a name"},
        {"* * * january *", "month \"january\" has a part that is not a number or a name"},
        {"* * * * mon-", "day of week \"mon-\" has a part that is not a number or a name"},
        {"-5 * * * *", "minute \"-5\" has a part that is not a number"},
        {"1-2-3 * * * *", "minute \"1-2-3\" has more than one hyphen"},
        {"1/2/3 * * * *", "minute \"1/2/3\" has more than one slash"},
        {"*/0 * * * *", "minute \"*/0\" has a step that is not a number above 0"},
        {"*/-1 * * * *", "minute \"*/-1\" has a step that is not a number above 0"},
        {"*/ * * * *", "minute \"*/\" has a step that is not a number above 0"},
        {"*/99999999999999999999 * * * *", "minute \"*/99999999999999999999\" has a step that is not a number above 0"},
        {"*/x * * * *", "minute \"*/x\" has a step that is not a number above 0"},
        {"* * * */jan *", "month \"*/jan\" has a step that is not a number above 0"},
        {"/5 * * * *", "minute \"\" has a part that is not a number"},
        {"** * * * *", "minute \"**\" has a part that is not a number"},
        {", * * * *", "minute \",\" is an empty list"},
        {"\x1b[31m * * * *", "minute \"?[31m\" has a part that is not a number"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa * * * *",
         "minute \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\" has a part that is not a number"},
        {"@reboot",
         "the word \"@reboot\" is not one of @yearly @annually @monthly @weekly @daily @midnight @hourly, or "
         "@every with a duration"},
        {"@Daily", "the word \"@Daily\" is not one of @yearly @annually @monthly @weekly @daily @midnight @hourly, or "
                   "@every with a duration"},
        {"@every 5 minutes", "the duration of @every, \"5 minutes\" cannot be read: it looks like 1h30m or 90s"},
        {" @daily", "\" @daily\" has 1 fields, not 5: minute, hour, day of month, month, day of week"},
        {"TZ=Europe/Berlin", "the zone \"TZ=Europe/Berlin\" is not followed by a space and a schedule"},
        {"TZ=../x @daily", "the zone \"../x\": byte 1 of the name of a time zone, 0x2e, is not allowed there "
                           "(Europe/Berlin is a name)"},
        {"CRON_TZ=UTC ", "\"\" has 0 fields, not 5: minute, hour, day of month, month, day of week"},
        {"CRON_TZ=UTC TZ=UTC * * * * *", "\"TZ=UTC * * * * *\" has 6 fields, not 5: minute, hour, day of month, month, "
                                         "day of week"},
    };
    (void)state;
    hf_op op;
    hf_cron cron;
    memset(&cron, 0x5a, sizeof cron);
    hf_cron before = cron;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        hf_op_init(&op);
        print_message("'%s'\n", ROWS[i].text);
        assert_int_equal(hf_cron_parse(&op, hf_str_of(ROWS[i].text), &cron), HF_ERR_INVALID);
        assert_memory_equal(op.message, "cron schedule: ", strlen("cron schedule: "));
        assert_string_equal(op.message + strlen("cron schedule: "), ROWS[i].sentence);
        assert_memory_equal(&cron, &before, sizeof cron);
    }
    assert_int_equal(hf_cron_parse(&op, HF_STR("0\0 0 1 1 *"), &cron), HF_ERR_INVALID);
    assert_string_equal(op.message, "cron schedule: minute \"0?\" has a part that is not a number");
    char text[HF_CRON_LEN_MAX + 1];
    memset(text, ' ', sizeof text);
    memcpy(text, "* * * * *", strlen("* * * * *"));
    assert_int_equal(hf_cron_parse(&op, hf_str_of_len(text, HF_CRON_LEN_MAX), &cron), HF_OK);
    assert_int_equal(hf_cron_parse(&op, hf_str_of_len(text, sizeof text), &cron), HF_ERR_INVALID);
    assert_string_equal(op.message, "cron schedule: it has 1001 bytes, at most 1000 are allowed");
}

/* ---- Next times -------------------------------------------------------------------------------------------------------- */

/* `nexts` is the times, with commas between them; "never" may be the last. */
static void expect_nexts(const char *text, const char *zone_name, const char *after, const char *nexts)
{
    hf_cron cron = cron_of_text(text);
    const hf_zone *zone = zone_of_name(zone_name);
    int64_t at = seconds_of_text(after) * SECOND;
    char expected[400];
    (void)snprintf(expected, sizeof expected, "%s", nexts);
    char *rest = expected;
    for (char *next = strtok_r(expected, ",", &rest); next != NULL; next = strtok_r(NULL, ",", &rest)) {
        int64_t got = hf_cron_next(&cron, zone, at);
        if (strcmp(text_of_ns(got).text, next) != 0) {
            fail_msg("'%s' in %s, after %s: %s, not %s", text, zone_name, text_of_ns(at).text, text_of_ns(got).text,
                     next);
        }
        assert_true(got > at); /* time-T1 */
        at = got;
    }
}

static void next_times_where_clocks_are_changed(void **state)
{
    static const struct {
        const char *text;
        const char *zone;
        const char *after;
        const char *nexts;
    } ROWS[] = {
        /* A gap: 02:30 does not exist on that day. */
        {"30 2 * * *", "Europe/Berlin", "2026-03-28 00:00:00", "2026-03-28 01:30:00,2026-03-30 00:30:00"},
        {"30 2 * * *", "America/New_York", "2026-03-07 00:00:00", "2026-03-07 07:30:00,2026-03-09 06:30:00"},
        {"0 * * * *", "Europe/Berlin", "2026-03-28 23:30:00", "2026-03-29 00:00:00,2026-03-29 01:00:00"},
        /* A fold: it exists twice. */
        {"30 2 * * *", "Europe/Berlin", "2026-10-24 12:00:00",
         "2026-10-25 00:30:00,2026-10-25 01:30:00,2026-10-26 01:30:00"},
        {"30 1 * * *", "America/New_York", "2026-10-31 12:00:00",
         "2026-11-01 05:30:00,2026-11-01 06:30:00,2026-11-02 06:30:00"},
        {"*/30 * * * *", "Europe/Berlin", "2026-10-25 00:15:00",
         "2026-10-25 00:30:00,2026-10-25 01:00:00,2026-10-25 01:30:00,2026-10-25 02:00:00"},
        {"0 9 * * MON-FRI", "Asia/Kolkata", "2026-03-27 04:00:00", "2026-03-30 03:30:00,2026-03-31 03:30:00"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        expect_nexts(ROWS[i].text, ROWS[i].zone, ROWS[i].after, ROWS[i].nexts);
    }
}

static void next_times_are_those_of_robfig_cron(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(CRON_FACTS); i++) {
        expect_nexts(CRON_FACTS[i].text, CRON_FACTS[i].zone, CRON_FACTS[i].after, CRON_FACTS[i].nexts);
    }
    print_message("%zu facts\n", HF_COUNT_OF(CRON_FACTS));
}

static void a_search_ends(void **state)
{
    static const struct {
        const char *text;
        const char *zone;
        const char *after;
        const char *nexts;
    } ROWS[] = {
        {"0 0 31 2 *", "UTC", "2026-01-01 00:00:00", "never"},
        {"0 0 31 2,4,6,9,11 *", "Europe/Berlin", "2026-01-01 00:00:00", "never"},
        {"0 0 29 2 *", "UTC", "2096-02-28 12:00:00", "2096-02-29 00:00:00,never"}, /* 2100 is not a leap year */
        {"0 0 29 2 *", "UTC", "2098-12-31 23:59:59", "2104-02-29 00:00:00"},
        {"0 0 29 2 *", "UTC", "2098-12-31 23:59:58", "never"},
        /* The day that Apia left out. robfig/cron does not come back from here. */
        {"0 0 31 12 *", "Pacific/Apia", "2011-12-28 20:00:00", "2011-12-30 10:00:00,2012-12-30 10:00:00"},
        {"0 5 30 12 *", "Pacific/Apia", "2011-12-28 20:00:00", "2012-12-29 15:00:00"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        expect_nexts(ROWS[i].text, ROWS[i].zone, ROWS[i].after, ROWS[i].nexts);
    }
}

static void the_ends_of_time(void **state)
{
    (void)state;
    hf_cron minutely = cron_of_text("* * * * *");
    hf_cron every = cron_of_text("@every 10s");
    hf_cron longest = cron_of_text("@every 2562047h");
    assert_int_equal(hf_cron_next(&minutely, NULL, INT64_MAX), HF_CRON_NEVER);
    assert_int_equal(hf_cron_next(&every, NULL, INT64_MAX - SECOND), HF_CRON_NEVER);
    assert_int_equal(hf_cron_next(&longest, NULL, 3600 * SECOND), HF_CRON_NEVER);
    assert_string_equal(text_of_ns(hf_cron_next(&minutely, NULL, INT64_MIN)).text, "1677-09-21 00:13:00");
    assert_string_equal(text_of_ns(hf_cron_next(&every, NULL, INT64_MIN)).text, "1677-09-21 00:12:53");
    assert_string_equal(text_of_ns(hf_cron_next(&every, NULL, -1)).text, "1970-01-01 00:00:09");
    assert_string_equal(text_of_ns(hf_cron_next(&every, NULL, 5 * SECOND + 1)).text, "1970-01-01 00:00:15");
    assert_string_equal(text_of_ns(hf_cron_next(&minutely, NULL, -1)).text, "1970-01-01 00:00:00");
    assert_string_equal(text_of_ns(hf_cron_next(&minutely, NULL, 0)).text, "1970-01-01 00:01:00");
}

/* ---- Back-off ---------------------------------------------------------------------------------------------------------- */

/* The first ones are those of common/backoff/cron_test.go in Temporal's server. */
static void runs_wait_as_they_do_on_a_temporal_server(void **state)
{
    static const struct {
        const char *text;
        const char *zone;
        const char *scheduled;
        const char *now;
        int64_t seconds; /* -1: never */
    } ROWS[] = {
        {"0 0 31 2 *", "", "2018-12-17 16:00:00", "2018-12-17 16:00:00", -1},
        {"0 10 * * *", "", "2018-12-17 16:00:00", "2018-12-17 16:00:00", 18 * 3600},
        {"0 10 * * *", "", "2018-12-18 10:00:00", "2018-12-18 10:00:00", 24 * 3600},
        {"0 * * * *", "", "2018-12-17 08:08:00", "2018-12-17 08:08:00", 52 * 60},
        {"0 * * * *", "", "2018-12-17 09:00:00", "2018-12-17 09:00:00", 3600},
        {"* * * * *", "", "2018-12-17 08:08:18", "2018-12-17 08:08:18", 42},
        {"0 10 * * *", "", "2018-12-17 08:00:00", "2018-12-20 00:00:00", 10 * 3600},
        {"0 10 * * *", "", "2018-12-17 08:00:00", "2018-12-17 09:00:00", 3600},
        {"*/10 * * * *", "", "2018-12-17 00:04:00", "2018-12-17 01:02:00", 8 * 60},
        {"@every 5h", "", "2018-12-17 08:00:00", "2018-12-17 09:00:00", 4 * 3600},
        {"@every 5h", "", "2018-12-17 08:00:00", "2018-12-18 00:00:00", 4 * 3600},
        {"0 3 * * 0-6", "", "2018-12-17 16:00:00", "2018-12-17 16:00:00", 11 * 3600},
        {"@every 30s", "", "2020-07-17 10:00:02", "2020-07-17 10:00:02", 30},
        {"@every 30s", "", "2020-07-17 10:00:02", "2020-09-17 04:00:53", 9},
        {"@every 30m", "", "2020-07-17 10:00:00", "2020-07-17 09:45:00", 15 * 60},
        {"5 16 * * *", "America/New_York", "2021-03-14 04:00:00", "2021-03-14 19:05:00", 3600},
        {"5 4 * * *", "America/New_York", "2021-11-25 05:00:00", "2021-11-25 08:05:00", 3600},
        /* Now is not too late. */
        {"0 * * * *", "", "2018-12-17 09:00:00", "2018-12-17 11:00:00", 0},
        {"@every 30s", "", "2020-07-17 10:00:02", "2020-07-17 10:01:32", 0},
        /* Many that were missed. */
        {"* * * * *", "Europe/Berlin", "2000-01-01 00:00:00", "2026-07-01 00:00:30", 30},
        {"@every 1s", "", "1970-01-01 00:00:00", "2026-07-01 00:00:30", 0},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        print_message("%s, %s, %s\n", ROWS[i].text, ROWS[i].scheduled, ROWS[i].now);
        hf_cron cron = cron_of_text(ROWS[i].text);
        int64_t wait = hf_cron_backoff(&cron, zone_of_name(ROWS[i].zone), seconds_of_text(ROWS[i].scheduled) * SECOND,
                                       seconds_of_text(ROWS[i].now) * SECOND);
        assert_int_equal(wait, ROWS[i].seconds >= 0 ? ROWS[i].seconds * SECOND : HF_CRON_NEVER);
    }
}

static void waits_are_those_of_temporals_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(BACKOFF_FACTS); i++) {
        hf_cron cron = cron_of_text(BACKOFF_FACTS[i].text);
        int64_t wait = hf_cron_backoff(&cron, zone_of_name(BACKOFF_FACTS[i].zone), BACKOFF_FACTS[i].scheduled_ns,
                                       BACKOFF_FACTS[i].now_ns);
        if (wait != BACKOFF_FACTS[i].wait_s * SECOND) {
            fail_msg("'%s' in %s, scheduled for %s, at %s: %lld ns", BACKOFF_FACTS[i].text, BACKOFF_FACTS[i].zone,
                     text_of_ns(BACKOFF_FACTS[i].scheduled_ns).text, text_of_ns(BACKOFF_FACTS[i].now_ns).text,
                     (long long)wait);
        }
    }
    print_message("%zu facts\n", HF_COUNT_OF(BACKOFF_FACTS));
}

static void waits_are_rounded_up_to_seconds(void **state)
{
    (void)state;
    hf_cron minutely = cron_of_text("* * * * *");
    hf_cron every = cron_of_text("@every 10s");
    assert_int_equal(hf_cron_backoff(&minutely, NULL, 0, 0), 60 * SECOND);
    assert_int_equal(hf_cron_backoff(&minutely, NULL, 0, 1), 60 * SECOND);
    assert_int_equal(hf_cron_backoff(&minutely, NULL, 0, SECOND), 59 * SECOND);
    assert_int_equal(hf_cron_backoff(&minutely, NULL, 0, 60 * SECOND - 1), SECOND);
    assert_int_equal(hf_cron_backoff(&minutely, NULL, 0, 60 * SECOND), 0);
    assert_int_equal(hf_cron_backoff(&minutely, NULL, 0, 60 * SECOND + 1), 60 * SECOND);
    /* A fraction of a second is cut off before "@every" counts. */
    assert_int_equal(hf_cron_backoff(&every, NULL, SECOND / 2, SECOND / 2), 10 * SECOND);
    assert_int_equal(hf_cron_backoff(&every, NULL, SECOND / 2, 5 * SECOND), 5 * SECOND);
    assert_int_equal(hf_cron_backoff(&every, NULL, SECOND / 2, 20 * SECOND + 1), 10 * SECOND);
    /* Still to come. */
    assert_int_equal(hf_cron_backoff(&every, NULL, 5 * SECOND, 1), 5 * SECOND);
    assert_int_equal(hf_cron_backoff(&every, NULL, INT64_MAX - 1, INT64_MIN), HF_CRON_NEVER);
    assert_int_equal(hf_cron_backoff(&every, NULL, INT64_MIN, INT64_MAX - SECOND), HF_CRON_NEVER);
    assert_int_equal(hf_cron_backoff(&every, NULL, INT64_MIN, 0), SECOND * 3);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(schedules_are_sets_of_times),
    cmocka_unit_test(durations_are_those_of_go),
    cmocka_unit_test(a_wrong_schedule_is_refused_with_its_wrong_part),
    cmocka_unit_test(next_times_where_clocks_are_changed),
    cmocka_unit_test(next_times_are_those_of_robfig_cron),
    cmocka_unit_test(a_search_ends),
    cmocka_unit_test(the_ends_of_time),
    cmocka_unit_test(runs_wait_as_they_do_on_a_temporal_server),
    cmocka_unit_test(waits_are_those_of_temporals_code),
    cmocka_unit_test(waits_are_rounded_up_to_seconds),
};

int main(int argc, char **argv)
{
    return hf_test_main("cron", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
