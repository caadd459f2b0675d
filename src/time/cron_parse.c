/* Cron schedules as text. The parser accepts what robfig/cron accepts, with two exceptions: a list without parts (","), which
 * can never match, and spaces that are not ASCII. So it accepts oddities, too: "+5" is 5, "1,,2" is "1,2", "*-7"
 * is "*", and an "@every" of less than a second, or of a negative duration, is one second. */
#include "base/glyph.h"
#include "time/cron.h"

#define FIELD_COUNT 5
#define SHOWN_LEN_MAX 60 /* bytes of a wrong part that its sentence quotes */
#define SECOND_NS UINT64_C(1000000000)

typedef struct field {
    const char *what;  /* for sentences */
    int64_t min, max;  /* the numbers that it may have */
    const char *names; /* three letters each, for min and what follows; "" = none */
} field;

static const field FIELDS[FIELD_COUNT] = {
    {"minute", 0, 59, ""},
    {"hour", 0, 23, ""},
    {"day of month", 1, 31, ""},
    {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
    {"day of week", 0, 6, "sunmontuewedthufrisat"},
};
enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY };

/* A part of a schedule, so that it can be shown. */
typedef struct quoted {
    char text[SHOWN_LEN_MAX + 4];
} quoted;

static quoted quote(hf_str part)
{
    quoted q = {{0}};
    size_t len = part.len < SHOWN_LEN_MAX ? part.len : SHOWN_LEN_MAX;
    for (size_t i = 0; i < len; i++) {
        q.text[i] = (char)(part.data[i] != '\0' ? part.data[i] : '?');
    }
    hf_text_clean(q.text);
    if (len < part.len) {
        memcpy(q.text + strlen(q.text), "...", 4);
    }
    return q;
}

static hf_status refuse(hf_op *op, const char *what, hf_str part, const char *why)
{
    return hf_fail(op, HF_ERR_INVALID, "cron schedule: %s \"%s\" %s", what, quote(part).text, why);
}

/* ---- Pieces of text ---------------------------------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static hf_str skip(hf_str text, size_t len)
{
    hf_assert(len <= text.len);
    return hf_str_of_len(text.data + len, text.len - len);
}

static hf_str trim(hf_str text)
{
    while (text.len > 0 && is_space(text.data[0])) {
        text = skip(text, 1);
    }
    while (text.len > 0 && is_space(text.data[text.len - 1])) {
        text.len--;
    }
    return text;
}

static bool starts_with(hf_str text, hf_str start)
{
    return text.len >= start.len && memcmp(text.data, start.data, start.len) == 0;
}

/* Where the character is first, or the end. */
static size_t find(hf_str text, char c)
{
    const char *at = text.len > 0 ? memchr(text.data, c, text.len) : NULL;
    return at != NULL ? (size_t)(at - text.data) : text.len;
}

/* Takes what stands before the next `c`, which goes, too. False: there is nothing left. */
static bool take_until(hf_str *rest, char c, hf_str *ret_part)
{
    if (rest->data == NULL) {
        return false;
    }
    size_t len = find(*rest, c);
    *ret_part = hf_str_of_len(rest->data, len);
    *rest = len < rest->len ? skip(*rest, len + 1) : (hf_str){NULL, 0};
    return true;
}

/* ---- Fields ------------------------------------------------------------------------------------------------------------ */

/* Numbers that do not fit become the largest one, which is over every bound. False: it is not a number. */
static bool read_number(hf_str text, int64_t *ret_number)
{
    int64_t number = 0;
    if (text.len > 0 && text.data[0] == '+') {
        text = skip(text, 1);
    }
    for (size_t i = 0; i < text.len; i++) {
        if (!is_digit(text.data[i])) {
            return false;
        }
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, text.data[i] - '0', &number)) {
            number = INT64_MAX;
        }
    }
    *ret_number = number;
    return text.len > 0;
}

static bool read_value(const field *f, hf_str text, int64_t *ret_value)
{
    if (text.len == 3) {
        for (int64_t i = 0; f->names[i * 3] != '\0'; i++) {
            const char *name = f->names + i * 3;
            if ((text.data[0] | 0x20) == name[0] && (text.data[1] | 0x20) == name[1] &&
                (text.data[2] | 0x20) == name[2]) {
                *ret_value = f->min + i;
                return true;
            }
        }
    }
    return read_number(text, ret_value);
}

/* "5", "1-5", "*": its ends. */
static hf_status read_range(hf_op *op, const field *f, hf_str text, int64_t *ret_low, int64_t *ret_high,
                            bool *ret_is_any)
{
    const char *why_not =
        f->names[0] != '\0' ? "has a part that is not a number or a name" : "has a part that is not a number";
    hf_str rest = text;
    hf_str low = {0};
    hf_str high = {0};
    hf_str more = {0};
    (void)take_until(&rest, '-', &low);
    if (hf_str_equal(low, HF_STR("*")) || hf_str_equal(low, HF_STR("?"))) {
        *ret_low = f->min;
        *ret_high = f->max;
        *ret_is_any = true;
        return HF_OK;
    }
    bool has_high = take_until(&rest, '-', &high);
    if (take_until(&rest, '-', &more)) {
        return refuse(op, f->what, text, "has more than one hyphen");
    }
    if (!read_value(f, low, ret_low) || (has_high && !read_value(f, high, ret_high))) {
        return refuse(op, f->what, text, why_not);
    }
    if (!has_high) {
        *ret_high = *ret_low;
    }
    *ret_is_any = false;
    return HF_OK;
}

static hf_status check_range(hf_op *op, const field *f, hf_str part, int64_t low, int64_t high)
{
    if (low < f->min || high > f->max) {
        return hf_fail(op, HF_ERR_INVALID, "cron schedule: %s \"%s\" is not between %d and %d", f->what,
                       quote(part).text, (int)f->min, (int)f->max);
    }
    return low <= high ? HF_OK : refuse(op, f->what, part, "ends before it begins");
}

/* One part of a list. `*is_any` becomes true if it is * or ?, and every one of them. */
static hf_status read_part(hf_op *op, const field *f, hf_str part, uint64_t *bits, bool *is_any)
{
    int64_t low = 0;
    int64_t high = 0;
    int64_t step = 1;
    bool is_star = false;
    hf_str rest = part;
    hf_str range = {0};
    hf_str every = {0};
    hf_str more = {0};
    (void)take_until(&rest, '/', &range);
    HF_TRY(read_range(op, f, range, &low, &high, &is_star));
    if (take_until(&rest, '/', &every)) {
        if (take_until(&rest, '/', &more)) {
            return refuse(op, f->what, part, "has more than one slash");
        }
        if (!read_number(every, &step) || step == 0 || step == INT64_MAX) {
            return refuse(op, f->what, part, "has a step that is not a number above 0");
        }
        if (find(range, '-') == range.len) {
            high = f->max;
        }
    }
    HF_TRY(check_range(op, f, part, low, high));
    for (int64_t value = low; value <= high; value += step) {
        hf_assert(value >= 0 && value < 64 && value <= f->max);
        *bits |= UINT64_C(1) << value;
        if (step > high - value) {
            break;
        }
    }
    *is_any = *is_any || (is_star && step == 1);
    return HF_OK;
}

static hf_status read_field(hf_op *op, const field *f, hf_str text, uint64_t *ret_bits, bool *ret_is_any)
{
    uint64_t bits = 0;
    bool is_any = false;
    hf_str rest = text;
    hf_str part = {0};
    while (take_until(&rest, ',', &part)) {
        if (part.len > 0) {
            HF_TRY(read_part(op, f, part, &bits, &is_any));
        }
    }
    if (bits == 0) {
        return refuse(op, f->what, text, "is an empty list");
    }
    *ret_bits = bits;
    *ret_is_any = is_any;
    return HF_OK;
}

static hf_status read_fields(hf_op *op, hf_str text, hf_cron *cron)
{
    hf_str texts[FIELD_COUNT];
    size_t count = 0;
    for (hf_str rest = trim(text); rest.len > 0; rest = trim(rest)) {
        size_t len = 0;
        while (len < rest.len && !is_space(rest.data[len])) {
            len++;
        }
        if (count < FIELD_COUNT) {
            texts[count] = hf_str_of_len(rest.data, len);
        }
        count++;
        rest = skip(rest, len);
    }
    if (count != FIELD_COUNT) {
        return hf_fail(op, HF_ERR_INVALID,
                       "cron schedule: \"%s\" has %zu fields, not 5: minute, hour, day of month, month, day of week",
                       quote(text).text, count);
    }
    uint64_t bits[FIELD_COUNT];
    bool is_any[FIELD_COUNT];
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        HF_TRY(read_field(op, &FIELDS[i], texts[i], &bits[i], &is_any[i]));
    }
    cron->minutes = bits[MINUTE];
    cron->hours = bits[HOUR];
    cron->days = bits[DAY];
    cron->months = bits[MONTH];
    cron->weekdays = bits[WEEKDAY];
    cron->both_days = is_any[DAY] || is_any[WEEKDAY];
    return HF_OK;
}

/* ---- Durations --------------------------------------------------------------------------------------------------------- */

static const struct {
    hf_str name;
    uint64_t ns;
} UNITS[] = {
    {HF_STR_INIT("ns"), 1},
    {HF_STR_INIT("us"), 1000},
    {HF_STR_INIT("\xc2\xb5s"), 1000}, /* the micro sign */
    {HF_STR_INIT("\xce\xbcs"), 1000}, /* the letter mu */
    {HF_STR_INIT("ms"), 1000000},
    {HF_STR_INIT("s"), SECOND_NS},
    {HF_STR_INIT("m"), 60 * SECOND_NS},
    {HF_STR_INIT("h"), 3600 * SECOND_NS},
};

/* Takes the digits off the front. They count as long as they fit; `*ret_scale` is the power of ten that goes with them. */
static bool take_digits(hf_str *rest, bool is_fraction, uint64_t *ret_number, double *ret_scale)
{
    uint64_t number = 0;
    double scale = 1;
    bool is_full = false;
    while (rest->len > 0 && is_digit(rest->data[0])) {
        uint64_t digit = (uint64_t)(rest->data[0] - '0');
        *rest = skip(*rest, 1);
        is_full = is_full || number > (uint64_t)INT64_MAX / 10 || number * 10 + digit > (uint64_t)INT64_MAX;
        if (is_full && !is_fraction) {
            return false;
        }
        if (!is_full) {
            number = number * 10 + digit;
            scale *= 10;
        }
    }
    *ret_number = number;
    *ret_scale = scale;
    return true;
}

/* Takes "1.5h" off the front. */
static bool take_time(hf_str *rest, uint64_t *ret_ns)
{
    uint64_t whole = 0;
    uint64_t fraction = 0;
    double scale = 1;
    size_t len = rest->len;
    if (!take_digits(rest, false, &whole, &scale)) {
        return false;
    }
    size_t digits = len - rest->len;
    scale = 1;
    if (rest->len > 0 && rest->data[0] == '.') {
        *rest = skip(*rest, 1);
        len = rest->len;
        (void)take_digits(rest, true, &fraction, &scale); /* digits that do not fit do not count */
        digits += len - rest->len;
    }
    size_t unit_len = 0;
    while (unit_len < rest->len && rest->data[unit_len] != '.' && !is_digit(rest->data[unit_len])) {
        unit_len++;
    }
    hf_str name = hf_str_of_len(rest->data, unit_len);
    *rest = skip(*rest, unit_len);
    for (size_t i = 0; digits > 0 && i < HF_COUNT_OF(UNITS); i++) {
        if (hf_str_equal(name, UNITS[i].name)) {
            uint64_t part = (uint64_t)((double)fraction * ((double)UNITS[i].ns / scale)); /* as Go does it */
            hf_assert(part <= UNITS[i].ns);
            return !__builtin_mul_overflow(whole, UNITS[i].ns, &whole) && !__builtin_add_overflow(whole, part, ret_ns);
        }
    }
    return false;
}

/* A duration of Go's, which has a sign. */
static bool read_duration(hf_str text, int64_t *ret_ns)
{
    uint64_t sum = 0;
    bool is_negative = text.len > 0 && text.data[0] == '-';
    if (text.len > 0 && (text.data[0] == '-' || text.data[0] == '+')) {
        text = skip(text, 1);
    }
    if (text.len == 0) {
        return false;
    }
    if (hf_str_equal(text, HF_STR("0"))) {
        *ret_ns = 0;
        return true;
    }
    while (text.len > 0) {
        uint64_t part = 0;
        if (!take_time(&text, &part) || __builtin_add_overflow(sum, part, &sum) || sum > (uint64_t)INT64_MAX) {
            return false;
        }
    }
    *ret_ns = is_negative ? -(int64_t)sum : (int64_t)sum;
    return true;
}

/* ---- Schedules --------------------------------------------------------------------------------------------------------- */

static hf_status read_every(hf_op *op, hf_str text, hf_cron *cron)
{
    int64_t ns = 0;
    if (!read_duration(text, &ns)) {
        return refuse(op, "the duration of @every,", text, "cannot be read: it looks like 1h30m or 90s");
    }
    int64_t second = (int64_t)SECOND_NS;
    cron->every_ns = ns < second ? second : ns - ns % second;
    hf_assert(cron->every_ns > 0 && cron->every_ns % second == 0);
    return HF_OK;
}

static hf_status read_descriptor(hf_op *op, hf_str text, hf_cron *cron)
{
    static const struct {
        hf_str name;
        hf_str fields;
    } DESCRIPTORS[] = {
        {HF_STR_INIT("@yearly"), HF_STR_INIT("0 0 1 1 *")},  {HF_STR_INIT("@annually"), HF_STR_INIT("0 0 1 1 *")},
        {HF_STR_INIT("@monthly"), HF_STR_INIT("0 0 1 * *")}, {HF_STR_INIT("@weekly"), HF_STR_INIT("0 0 * * 0")},
        {HF_STR_INIT("@daily"), HF_STR_INIT("0 0 * * *")},   {HF_STR_INIT("@midnight"), HF_STR_INIT("0 0 * * *")},
        {HF_STR_INIT("@hourly"), HF_STR_INIT("0 * * * *")},
    };
    hf_str every = HF_STR("@every ");
    if (starts_with(text, every)) {
        return read_every(op, skip(text, every.len), cron);
    }
    for (size_t i = 0; i < HF_COUNT_OF(DESCRIPTORS); i++) {
        if (hf_str_equal(text, DESCRIPTORS[i].name)) {
            return read_fields(op, DESCRIPTORS[i].fields, cron);
        }
    }
    return refuse(
        op, "the word", text,
        "is not one of @yearly @annually @monthly @weekly @daily @midnight @hourly, or @every with a duration");
}

/* Takes "TZ=Europe/Berlin " off the front. */
static hf_status take_zone(hf_op *op, hf_str *text, hf_cron *cron)
{
    size_t end = find(*text, ' ');
    if (end == text->len) {
        return refuse(op, "the zone", *text, "is not followed by a space and a schedule");
    }
    size_t begin = find(*text, '=') + 1;
    hf_assert(begin <= end);
    hf_str name = hf_str_of_len(text->data + begin, end - begin);
    hf_op why;
    hf_op_init(&why);
    if (hf_zone_name_check(&why, name) != HF_OK) {
        return hf_fail(op, HF_ERR_INVALID, "cron schedule: the zone \"%s\": %s", quote(name).text, why.message);
    }
    if (name.len > 0) {
        memcpy(cron->zone, name.data, name.len);
    }
    *text = trim(skip(*text, end));
    return HF_OK;
}

hf_status hf_cron_parse(hf_op *op, hf_str text, hf_cron *ret_cron)
{
    hf_cron cron = {0};
    if (text.len == 0) {
        return hf_fail(op, HF_ERR_INVALID, "cron schedule: it is empty");
    }
    if (text.len > HF_CRON_LEN_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "cron schedule: it has %zu bytes, at most %d are allowed", text.len,
                       HF_CRON_LEN_MAX);
    }
    if (starts_with(text, HF_STR("TZ=")) || starts_with(text, HF_STR("CRON_TZ="))) {
        HF_TRY(take_zone(op, &text, &cron));
    }
    if (text.len > 0 && text.data[0] == '@') {
        HF_TRY(read_descriptor(op, text, &cron));
    } else {
        HF_TRY(read_fields(op, text, &cron));
    }
    hf_assert(cron.every_ns > 0 || (cron.minutes != 0 && cron.hours != 0 && cron.days != 0 && cron.months != 0 &&
                                    cron.weekdays != 0)); /* time-T3 */
    *ret_cron = cron;
    return HF_OK;
}
