#include "unit/time/times.h"

#include "time/zone_private.h"

/* ---- Looking up -------------------------------------------------------------------------------------------------------- */

static void clocks_show_the_local_time(void **state)
{
    static const struct {
        const char *zone;
        const char *utc;
        const char *local;
    } ROWS[] = {
        {"UTC", "2026-03-29 01:00:00", "2026-03-29 01:00:00"},
        {"Asia/Kolkata", "2026-03-29 01:00:00", "2026-03-29 06:30:00"},
        {"Europe/Berlin", "1800-01-01 00:00:00", "1800-01-01 00:53:28"}, /* before the first change */
        {"Europe/Berlin", "1980-07-01 12:00:00", "1980-07-01 14:00:00"},
        {"Europe/Berlin", "2026-03-29 00:59:59", "2026-03-29 01:59:59"},
        {"Europe/Berlin", "2026-03-29 01:00:00", "2026-03-29 03:00:00"},
        {"Europe/Berlin", "2026-10-25 00:59:59", "2026-10-25 02:59:59"},
        {"Europe/Berlin", "2026-10-25 01:00:00", "2026-10-25 02:00:00"},
        {"Europe/Berlin", "2300-07-01 12:00:00", "2300-07-01 14:00:00"},
        {"America/New_York", "2026-03-08 06:59:59", "2026-03-08 01:59:59"},
        {"America/New_York", "2026-03-08 07:00:00", "2026-03-08 03:00:00"},
        {"fat/New_York", "2026-11-01 05:59:59", "2026-11-01 01:59:59"},
        {"fat/New_York", "2026-11-01 06:00:00", "2026-11-01 01:00:00"},
        {"fat/New_York", "2040-07-01 12:00:00", "2040-07-01 08:00:00"}, /* behind the last change */
        {"Australia/Lord_Howe", "2026-04-04 14:59:59", "2026-04-05 01:59:59"},
        {"Australia/Lord_Howe", "2026-04-04 15:00:00", "2026-04-05 01:30:00"},
        {"Australia/Lord_Howe", "2026-10-03 15:30:00", "2026-10-04 02:30:00"},
        {"Europe/Dublin", "2026-01-01 12:00:00", "2026-01-01 12:00:00"}, /* winter is the exception there */
        {"Europe/Dublin", "2026-07-01 12:00:00", "2026-07-01 13:00:00"},
        {"Africa/Cairo", "2026-04-23 21:59:59", "2026-04-23 23:59:59"},
        {"Africa/Cairo", "2026-04-23 22:00:00", "2026-04-24 01:00:00"},
        {"Pacific/Apia", "2011-12-30 09:59:59", "2011-12-29 23:59:59"},
        {"Pacific/Apia", "2011-12-30 10:00:00", "2011-12-31 00:00:00"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        print_message("%s %s\n", ROWS[i].zone, ROWS[i].utc);
        hf_civil local = hf_zone_local(zone_of_name(ROWS[i].zone), seconds_of_text(ROWS[i].utc));
        assert_string_equal(text_of_civil(local).text, ROWS[i].local);
    }
}

/* The times are those of time.Date in Go. */
static void local_times_in_gaps_and_folds_are_those_of_go(void **state)
{
    static const struct {
        const char *zone;
        const char *local;
        const char *utc;
    } ROWS[] = {
        {"UTC", "2026-03-29 02:30:00", "2026-03-29 02:30:00"},
        {"Europe/Berlin", "2026-03-29 01:30:00", "2026-03-29 00:30:00"},
        {"Europe/Berlin", "2026-03-29 02:30:00", "2026-03-29 01:30:00"}, /* a gap: it is 03:30 */
        {"Europe/Berlin", "2026-03-29 03:30:00", "2026-03-29 01:30:00"},
        {"Europe/Berlin", "2026-10-25 02:30:00", "2026-10-25 01:30:00"},    /* a fold: the second one */
        {"America/New_York", "2026-03-08 02:30:00", "2026-03-08 06:30:00"}, /* a gap: it is 01:30 */
        {"America/New_York", "2026-11-01 01:30:00", "2026-11-01 05:30:00"}, /* a fold: the first one */
        {"Australia/Lord_Howe", "2026-10-04 02:15:00", "2026-10-03 15:45:00"},
        {"Australia/Lord_Howe", "2026-04-05 01:45:00", "2026-04-04 15:15:00"},
        {"Pacific/Apia", "2011-12-30 09:00:00", "2011-12-29 19:00:00"}, /* a day that was left out */
        {"Pacific/Apia", "2011-12-30 12:00:00", "2011-12-30 22:00:00"},
        {"Africa/Cairo", "2026-04-24 00:30:00", "2026-04-23 22:30:00"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        print_message("%s %s\n", ROWS[i].zone, ROWS[i].local);
        int64_t utc = hf_zone_utc(zone_of_name(ROWS[i].zone), civil_of_text(ROWS[i].local));
        assert_string_equal(text_of_civil(hf_civil_of(utc)).text, ROWS[i].utc);
    }
}

static void both_forms_of_a_file_say_the_same(void **state)
{
    (void)state;
    const hf_zone *slim = zone_of_name("America/New_York");
    const hf_zone *fat = zone_of_name("fat/New_York");
    assert_true(slim->count < fat->count);
    for (int64_t at = seconds_of_text("1850-01-01"); at < seconds_of_text("2100-01-01"); at += 17999) {
        assert_int_equal(hf_zone_offset(slim, at), hf_zone_offset(fat, at));
    }
}

/* ---- Bytes ------------------------------------------------------------------------------------------------------------- */

/* A file of version 2 with two types (0 and one hour) and the changes and footer that are wanted. */
typedef struct file {
    char bytes[4096];
    size_t len;
} file;

static void put(file *f, const void *bytes, size_t len)
{
    assert_true(f->len + len <= sizeof f->bytes);
    memcpy(f->bytes + f->len, bytes, len);
    f->len += len;
}

static void put_number(file *f, int64_t number, int len)
{
    for (int i = len - 1; i >= 0; i--) {
        char byte = (char)((uint64_t)number >> (8 * i));
        put(f, &byte, 1);
    }
}

static void put_header(file *f, char version, const uint32_t counts[6])
{
    char zeros[15] = {0};
    put(f, "TZif", 4);
    put(f, &version, 1);
    put(f, zeros, sizeof zeros);
    for (int i = 0; i < 6; i++) {
        put_number(f, counts[i], 4);
    }
}

static void put_type(file *f, int32_t offset, char is_dst, char name)
{
    put_number(f, offset, 4);
    put(f, &is_dst, 1);
    put(f, &name, 1);
}

static file make_file(const char *footer)
{
    static const uint32_t NONE[6] = {0};
    static const uint32_t COUNTS[6] = {0, 0, 0, 2, 2, 8};
    file f = {.len = 0};
    put_header(&f, '2', NONE);
    put_header(&f, '2', COUNTS);
    put_number(&f, 1000, 8);
    put_number(&f, 2000, 8);
    put(&f, "\1\0", 2);
    put_type(&f, 0, 0, 0);
    put_type(&f, 3600, 1, 4);
    put(&f, "STD\0DST\0", 8);
    put(&f, footer, strlen(footer));
    return f;
}

enum { SECOND_HEADER = 44, BLOCK = 88, TYPES = BLOCK + 18, FOOTER = TYPES + 20 };

static void expect_refused(const char *bytes, size_t len, const char *sentence)
{
    hf_op op;
    hf_arena arena;
    const hf_zone *zone = NULL;
    hf_op_init(&op);
    hf_arena_init(&arena, HEAP);
    char *exact = malloc(len > 0 ? len : 1); /* a sanitizer sees the first byte read too far */
    memcpy(exact, bytes, len);
    assert_int_equal(hf_zone_parse(&op, hf_str_of_len(exact, len), &arena, &zone), HF_ERR_INVALID);
    if (sentence != NULL) {
        assert_string_equal(op.message, sentence);
    }
    assert_null(zone);
    free(exact);
    hf_arena_deinit(&arena);
}

static void a_file_that_is_cut_anywhere_is_refused(void **state)
{
    (void)state;
    file f = make_file("\nSTD0DST,M3.5.0,M10.5.0\n");
    hf_op op;
    hf_arena arena;
    const hf_zone *zone = NULL;
    hf_op_init(&op);
    hf_arena_init(&arena, HEAP);
    assert_int_equal(hf_zone_parse(&op, hf_str_of_len(f.bytes, f.len), &arena, &zone), HF_OK);
    assert_int_equal(hf_zone_offset(zone, 999), 0);
    assert_int_equal(hf_zone_offset(zone, 1000), 3600);
    assert_int_equal(hf_zone_offset(zone, 2000), 0);
    hf_arena_deinit(&arena);
    for (size_t len = 0; len < f.len; len++) {
        expect_refused(f.bytes, len, NULL);
    }
}

static void bytes_that_are_wrong_are_named(void **state)
{
    static const struct {
        size_t at;
        char byte;
        const char *sentence;
    } ROWS[] = {
        {0, 'X', "time zone data: not a TZif file"},
        {4, '5', "time zone data: version 0x35 of TZif is not known"},
        {4, 1, "time zone data: version 0x01 of TZif is not known"},
        {36, 1, "time zone data: it ends too early"}, /* types of the first block */
        {SECOND_HEADER, 'X', "time zone data: not a TZif file"},
        {SECOND_HEADER + 23, 1, "time zone data: the counts in the header do not fit together"},
        {SECOND_HEADER + 27, 1, "time zone data: the counts in the header do not fit together"},
        {SECOND_HEADER + 31, 1, "time zone data: zones that count leap seconds are not supported"},
        {SECOND_HEADER + 34, 100, "time zone data: 25602 transitions, at most 2000 are allowed"},
        {SECOND_HEADER + 35, 100, "time zone data: it ends too early"},
        {SECOND_HEADER + 39, 0, "time zone data: the counts in the header do not fit together"},
        {SECOND_HEADER + 43, 0, "time zone data: the counts in the header do not fit together"},
        {BLOCK, 1, "time zone data: transition 1 is not after the one before"},
        {BLOCK + 16, 2, "time zone data: transition 0 has a type that does not exist"},
        {TYPES, 1, "time zone data: local time type 0 is out of range"},
        {TYPES + 4, 2, "time zone data: local time type 0 is out of range"},
        {TYPES + 6 + 5, 8, "time zone data: local time type 1 is out of range"},
        {FOOTER, 'x', "time zone data: it does not end with one rule for later years"},
        {FOOTER + 3, '\n', "time zone data: it does not end with one rule for later years"},
        {FOOTER + 1, '1', "time zone data: the rule for later years cannot be read"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        file f = make_file("\nSTD0\n");
        print_message("byte %zu\n", ROWS[i].at);
        assert_true(ROWS[i].at < f.len);
        f.bytes[ROWS[i].at] = ROWS[i].byte;
        expect_refused(f.bytes, f.len, ROWS[i].sentence);
    }
    static char large[HF_ZONE_LEN_MAX + 1];
    expect_refused(large, sizeof large, "time zone data: 65537 bytes, at most 65536 are allowed");
}

static void version_1_has_no_footer(void **state)
{
    static const uint32_t COUNTS[6] = {0, 0, 0, 1, 2, 4};
    (void)state;
    file f = {.len = 0};
    put_header(&f, '\0', COUNTS);
    put_number(&f, -5, 4);
    put(&f, "\1", 1);
    put_type(&f, -7200, 0, 0);
    put_type(&f, 3600, 0, 0);
    put(&f, "ABC\0", 4);
    hf_op op;
    hf_arena arena;
    const hf_zone *zone = NULL;
    hf_op_init(&op);
    hf_arena_init(&arena, HEAP);
    assert_int_equal(hf_zone_parse(&op, hf_str_of_len(f.bytes, f.len), &arena, &zone), HF_OK);
    assert_int_equal(hf_zone_offset(zone, -6), -7200);
    assert_int_equal(hf_zone_offset(zone, -5), 3600);
    assert_int_equal(hf_zone_offset(zone, HF_ZONE_S_MAX), 3600);
    hf_arena_deinit(&arena);
}

static void *allocate_none(void *state, size_t len, size_t align)
{
    (void)state;
    (void)len;
    (void)align;
    return NULL;
}

static void without_memory_there_is_no_zone(void **state)
{
    (void)state;
    file f = make_file("\n\n");
    for (size_t room_len = 0; room_len < 256; room_len += 16) {
        _Alignas(16) char room[256];
        hf_op op;
        hf_arena arena;
        const hf_zone *zone = NULL;
        hf_op_init(&op);
        hf_arena_init_in(&arena, (hf_allocator){allocate_none, heap_release, NULL}, room, room_len);
        hf_status status = hf_zone_parse(&op, hf_str_of_len(f.bytes, f.len), &arena, &zone);
        assert_true(status == HF_ERR_NOMEM || (status == HF_OK && zone != NULL && room_len >= sizeof(hf_zone)));
    }
}

/* ---- Rules ------------------------------------------------------------------------------------------------------------- */

static void rules_of_later_years(void **state)
{
    static const struct {
        const char *text;
        const char *utc;
        int offset;
    } ROWS[] = {
        {"UTC0", "2026-07-01", 0},
        {"IST-5:30", "2026-07-01", 19800},
        {"<-03>3", "2026-07-01", -10800},
        {"ABC1:02:03", "2026-07-01", -3723},
        {"EST5EDT", "2026-03-08 06:59:59", -18000}, /* without dates: those of the United States */
        {"EST5EDT", "2026-03-08 07:00:00", -14400},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2027-03-28 00:59:59", 3600},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2027-03-28 01:00:00", 7200},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2027-10-31 01:00:00", 3600},
        {"NZST-12NZDT,M9.5.0,M4.1.0/3", "2026-01-01", 46800}, /* south: summer is over the turn of the year */
        {"NZST-12NZDT,M9.5.0,M4.1.0/3", "2026-06-01", 43200},
        {"NZST-12NZDT,M9.5.0,M4.1.0/3", "2026-12-31", 46800},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", "2026-01-01", 0},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", "2026-07-01", 3600},
        {"EET-2EEST,M3.4.4/50,M10.4.4/50", "2026-03-27 23:59:59", 7200}, /* 50 hours after Thursday begins */
        {"EET-2EEST,M3.4.4/50,M10.4.4/50", "2026-03-28 00:00:00", 10800},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29 00:59:59", -7200},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29 01:00:00", -3600},
        {"AAA0BBB,J60/0,J61/0", "2024-02-29 12:00:00", 0}, /* J60 is March 1 in every year */
        {"AAA0BBB,J60/0,J61/0", "2024-03-01 12:00:00", 3600},
        {"AAA0BBB,J60/0,J61/0", "2025-03-01 12:00:00", 3600},
        {"AAA0BBB,59/0,60/0", "2024-02-29 12:00:00", 3600},
        {"AAA0BBB,59/0,60/0", "2025-03-01 12:00:00", 3600},
        {"AAA0BBB0,J1/0,J1/0", "2025-01-01 12:00:00", 0},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        hf_op op;
        hf_zone_rule rule;
        hf_op_init(&op);
        print_message("%s at %s\n", ROWS[i].text, ROWS[i].utc);
        assert_int_equal(hf_zone_rule_parse(&op, hf_str_of(ROWS[i].text), &rule), HF_OK);
        assert_int_equal(hf_zone_rule_offset(&rule, seconds_of_text(ROWS[i].utc)), ROWS[i].offset);
    }
}

static void rules_that_are_wrong_are_refused(void **state)
{
    static const char *const ROWS[] = {
        "",
        "A",
        "AB1",
        "<AB1",
        "ABC",
        "ABC25",
        "ABC1:60",
        "ABC1:",
        "ABC1:1:60",
        "ABC1,",
        "ABC1DEF,",
        "ABC1DEF,M3.5.0",
        "ABC1D",
        "ABC1DEF!",
        "ABC1DEF,M0.1.1,M1.1.1",
        "ABC1DEF,M13.1.1,M1.1.1",
        "ABC1DEF,M1.6.1,M1.1.1",
        "ABC1DEF,M1.1.7,M1.1.1",
        "ABC1DEF,J0,J1",
        "ABC1DEF,366,1",
        "ABC1DEF,M1.1.1,M1.1.1x",
        "ABC1DEF,M1.1.1/168,M1.1.1",
        "ABC1DEF,M1.1,M1.1.1",
        "ABC1DEF,J99999999999,J1",
        "ABC-",
        "ABC+",
        "ABC1DEF,J1/,J2",
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        hf_op op;
        hf_zone_rule rule;
        hf_op_init(&op);
        print_message("%s\n", ROWS[i]);
        assert_int_equal(hf_zone_rule_parse(&op, hf_str_of(ROWS[i]), &rule), HF_ERR_INVALID);
    }
}

/* ---- Names and files --------------------------------------------------------------------------------------------------- */

static void names_stay_in_their_folder(void **state)
{
    static const struct {
        const char *name;
        bool is_fine;
    } ROWS[] = {
        {"", true},
        {"UTC", true},
        {"Europe/Berlin", true},
        {"America/Port-au-Prince", true},
        {"Etc/GMT+12", true},
        {"a_b", true},
        {"..", false},
        {"../etc/passwd", false},
        {"a/../b", false},
        {"/etc", false},
        {"a.b", false},
        {"a b", false},
        {"a\\b", false},
        {"Europe/K\xc3\xb6ln", false},
    };
    char longest[HF_ZONE_NAME_LEN_MAX + 1];
    hf_op op;
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        hf_op_init(&op);
        print_message("'%s'\n", ROWS[i].name);
        assert_int_equal(hf_zone_name_check(&op, hf_str_of(ROWS[i].name)), ROWS[i].is_fine ? HF_OK : HF_ERR_INVALID);
    }
    memset(longest, 'a', sizeof longest);
    assert_int_equal(hf_zone_name_check(&op, hf_str_of_len(longest, HF_ZONE_NAME_LEN_MAX)), HF_OK);
    assert_int_equal(hf_zone_name_check(&op, hf_str_of_len(longest, sizeof longest)), HF_ERR_INVALID);
    assert_string_equal(op.message, "the name of a time zone has 256 bytes, at most 255 are allowed");
    assert_int_equal(hf_zone_name_check(&op, HF_STR("a\0b")), HF_ERR_INVALID);
    assert_string_equal(op.message,
                        "byte 2 of the name of a time zone, 0x00, is not allowed there (Europe/Berlin is a name)");
    assert_true(hf_zone_name_is_utc(HF_STR("")) && hf_zone_name_is_utc(HF_STR("UTC")));
    assert_false(hf_zone_name_is_utc(HF_STR("utc")) || hf_zone_name_is_utc(HF_STR("Etc/UTC")));
}

static void zones_are_read_from_a_folder(void **state)
{
    (void)state;
    hf_op op;
    hf_arena arena;
    hf_str bytes = {0};
    hf_env *env = hf_env_posix();
    hf_op_init(&op);
    hf_arena_init(&arena, HEAP);
    assert_int_equal(hf_zone_read(&op, env, HF_ZONES, HF_STR("Asia/Kolkata"), &arena, &bytes), HF_OK);
    assert_true(bytes.len > 100 && memcmp(bytes.data, "TZif", 4) == 0);
    assert_int_equal(hf_zone_read(&op, env, HF_ZONES, HF_STR("Asia/Atlantis"), &arena, &bytes), HF_ERR_NOT_FOUND);
    assert_string_equal(op.message, "there is no time zone Asia/Atlantis in " HF_ZONES " (Debian: package tzdata)");
    assert_int_equal(hf_zone_read(&op, env, HF_ZONES, HF_STR("Asia"), &arena, &bytes), HF_ERR_NOT_FOUND);
    assert_int_equal(hf_zone_read(&op, env, HF_ZONES, HF_STR("Asia/Kolkata/x"), &arena, &bytes), HF_ERR_NOT_FOUND);
    assert_int_equal(hf_zone_read(&op, env, "/nowhere", HF_STR("Asia/Kolkata"), &arena, &bytes), HF_ERR_NOT_FOUND);
    assert_int_equal(hf_zone_read(&op, env, HF_ZONES, HF_STR("../zoneinfo/Asia"), &arena, &bytes), HF_ERR_INVALID);
    assert_int_equal(hf_zone_read(&op, env, HF_ZONES, HF_STR(""), &arena, &bytes), HF_ERR_INVALID);
    assert_int_equal(hf_zone_read(&op, env, "/dev", HF_STR("zero"), &arena, &bytes), HF_ERR_INVALID);
    hf_arena_deinit(&arena);
}

static void a_file_that_is_too_large_is_not_a_zone(void **state)
{
    (void)state;
    hf_env *env = hf_sim_begin(1);
    hf_op op;
    hf_arena arena;
    hf_str bytes = {0};
    int fd = -1;
    static char content[HF_ZONE_LEN_MAX];
    hf_op_init(&op);
    hf_arena_init(&arena, HEAP);
    assert_int_equal(env->ops->file_open(env, &op, "zones/Large", HF_FILE_WRITE_NEW, &fd), HF_OK);
    assert_int_equal(env->ops->file_write(env, &op, fd, content, sizeof content), HF_OK);
    assert_int_equal(hf_zone_read(&op, env, "zones", HF_STR("Large"), &arena, &bytes), HF_OK);
    assert_int_equal(bytes.len, sizeof content);
    assert_int_equal(env->ops->file_write(env, &op, fd, content, 1), HF_OK);
    assert_int_equal(hf_zone_read(&op, env, "zones", HF_STR("Large"), &arena, &bytes), HF_ERR_INVALID);
    assert_string_equal(op.message, "zones/Large has over 65536 bytes and is not a time zone");
    assert_int_equal(env->ops->file_close(env, &op, fd), HF_OK);
    assert_int_equal(hf_zone_read(&op, env, "zones", HF_STR("Small"), &arena, &bytes), HF_ERR_NOT_FOUND);
    hf_arena_deinit(&arena);
    hf_sim_end(env, NULL);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(clocks_show_the_local_time),
    cmocka_unit_test(local_times_in_gaps_and_folds_are_those_of_go),
    cmocka_unit_test(both_forms_of_a_file_say_the_same),
    cmocka_unit_test(a_file_that_is_cut_anywhere_is_refused),
    cmocka_unit_test(bytes_that_are_wrong_are_named),
    cmocka_unit_test(version_1_has_no_footer),
    cmocka_unit_test(without_memory_there_is_no_zone),
    cmocka_unit_test(rules_of_later_years),
    cmocka_unit_test(rules_that_are_wrong_are_refused),
    cmocka_unit_test(names_stay_in_their_folder),
    cmocka_unit_test(zones_are_read_from_a_folder),
    cmocka_unit_test(a_file_that_is_too_large_is_not_a_zone),
};

int main(int argc, char **argv)
{
    return hf_test_main("zone", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
