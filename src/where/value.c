/* Values of a filter: from a word and the type of an attribute. */
#include "where/where_private.h"

#include "time/civil.h"

#include <errno.h>
#include <stdlib.h>

#define SECOND_NS INT64_C(1000000000)
#define NUMBER_LEN_MAX 64 /* bytes of a number: enough for every double */

/* ---- Numbers --------------------------------------------------------------------------------------------------------- */

static bool number_text(hf_str raw, char text[NUMBER_LEN_MAX])
{
    if (raw.len >= NUMBER_LEN_MAX) {
        return false;
    }
    memcpy(text, raw.data, raw.len);
    text[raw.len] = '\0';
    return true;
}

static bool int_of(hf_str raw, int64_t *ret_number)
{
    int64_t number = 0;
    size_t i = raw.len > 0 && (raw.data[0] == '-' || raw.data[0] == '+') ? 1 : 0;
    bool is_minus = i == 1 && raw.data[0] == '-';
    if (i == raw.len) {
        return false;
    }
    for (; i < raw.len; i++) {
        int digit = raw.data[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, is_minus ? -digit : digit, &number)) {
            return false;
        }
    }
    *ret_number = number;
    return true;
}

/* Only decimal digits: strtod also knows "0x1p3", "inf" and "nan". */
static bool real_of(hf_str raw, double *ret_real)
{
    char text[NUMBER_LEN_MAX];
    bool has_digit = false;
    if (!number_text(raw, text)) {
        return false;
    }
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.data[i];
        has_digit = has_digit || (c >= '0' && c <= '9');
        if (!(c >= '0' && c <= '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E') {
            return false;
        }
    }
    char *end = NULL;
    *ret_real = strtod(text, &end);
    return has_digit && end == text + raw.len && *ret_real - *ret_real == 0; /* not too large for a double */
}

/* ---- Times ----------------------------------------------------------------------------------------------------------- */

/* So many digits as a number; false: there are fewer. */
static bool digits(hf_str *rest, size_t count, int64_t *ret_number)
{
    int64_t number = 0;
    if (rest->len < count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (rest->data[i] < '0' || rest->data[i] > '9') {
            return false;
        }
        number = number * 10 + (rest->data[i] - '0');
    }
    *rest = hf_str_of_len(rest->data + count, rest->len - count);
    *ret_number = number;
    return true;
}

static bool sign(hf_str *rest, char c)
{
    if (rest->len == 0 || rest->data[0] != c) {
        return false;
    }
    *rest = hf_str_of_len(rest->data + 1, rest->len - 1);
    return true;
}

/* ".5" as nanoseconds; digits behind the ninth are dropped. */
static bool fraction(hf_str *rest, int64_t *ret_ns)
{
    int64_t ns = 0;
    int64_t unit = SECOND_NS / 10;
    *ret_ns = 0;
    if (!sign(rest, '.') && !sign(rest, ',')) {
        return true;
    }
    size_t count = 0;
    int64_t digit = 0;
    while (digits(rest, 1, &digit)) {
        ns += digit * unit;
        unit /= 10;
        count++;
    }
    *ret_ns = ns;
    return count > 0;
}

/* "Z", "+02:00"; as seconds east of Greenwich. */
static bool offset(hf_str *rest, int64_t *ret_seconds)
{
    int64_t hours = 0;
    int64_t minutes = 0;
    *ret_seconds = 0;
    if (sign(rest, 'Z') || sign(rest, 'z')) {
        return true;
    }
    bool is_minus = rest->len > 0 && rest->data[0] == '-';
    if ((!sign(rest, '+') && !sign(rest, '-')) || !digits(rest, 2, &hours) || !sign(rest, ':') ||
        !digits(rest, 2, &minutes) || hours > 23 || minutes > 59) {
        return false;
    }
    *ret_seconds = (is_minus ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
}

/* As RFC 3339 has it. */
bool hf_where_time(hf_str text, int64_t *ret_ns)
{
    int64_t part[6] = {0};
    int64_t ns = 0;
    int64_t east = 0;
    hf_str rest = text;
    bool is_good = digits(&rest, 4, &part[0]) && sign(&rest, '-') && digits(&rest, 2, &part[1]) && sign(&rest, '-') &&
                   digits(&rest, 2, &part[2]) && (sign(&rest, 'T') || sign(&rest, 't')) && digits(&rest, 2, &part[3]) &&
                   sign(&rest, ':') && digits(&rest, 2, &part[4]) && sign(&rest, ':') && digits(&rest, 2, &part[5]) &&
                   fraction(&rest, &ns) && offset(&rest, &east) && rest.len == 0;
    if (!is_good || part[1] < 1 || part[1] > 12 || part[2] < 1 || part[2] > hf_month_days(part[0], (int)part[1]) ||
        part[3] > 23 || part[4] > 59 || part[5] > 59) {
        return false;
    }
    hf_civil civil = {part[0], (int)part[1], (int)part[2], (int)part[3], (int)part[4], (int)part[5], 0};
    int64_t seconds = hf_civil_seconds(civil) - east;
    /* A time that nanoseconds cannot say is before or after every time that a run can have. */
    if (seconds >= INT64_MAX / SECOND_NS) {
        *ret_ns = INT64_MAX;
    } else if (seconds <= INT64_MIN / SECOND_NS) {
        *ret_ns = INT64_MIN;
    } else {
        *ret_ns = seconds * SECOND_NS + ns;
    }
    return true;
}

static const struct {
    const char *text;
    int64_t ns;
} UNITS[] = {{"ns", 1},        {"us", 1000},          {"ms", 1000000},
             {"s", SECOND_NS}, {"m", 60 * SECOND_NS}, {"h", 3600 * SECOND_NS}};

static bool unit(hf_str *rest, int64_t *ret_ns)
{
    for (size_t i = 0; i < HF_COUNT_OF(UNITS); i++) {
        size_t len = strlen(UNITS[i].text);
        if (rest->len >= len && memcmp(rest->data, UNITS[i].text, len) == 0) {
            *rest = hf_str_of_len(rest->data + len, rest->len - len);
            *ret_ns = UNITS[i].ns;
            return true;
        }
    }
    return false;
}

/* As Go writes durations: "1h30m", "1.5s", "-2ms". */
static bool go_duration(hf_str text, int64_t *ret_ns)
{
    hf_str rest = text;
    int64_t sum = 0;
    bool is_minus = sign(&rest, '-');
    if (rest.len == 0) {
        return false;
    }
    while (rest.len > 0) {
        int64_t whole = 0;
        int64_t billionths = 0;
        int64_t unit_ns = 0;
        int64_t ns = 0;
        int64_t digit = 0;
        size_t count = 0;
        for (; digits(&rest, 1, &digit); count++) {
            if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, digit, &whole)) {
                return false;
            }
        }
        if (count == 0 || !fraction(&rest, &billionths) || !unit(&rest, &unit_ns) ||
            __builtin_mul_overflow(whole, unit_ns, &ns)) {
            return false;
        }
        int64_t part = unit_ns >= SECOND_NS ? billionths * (unit_ns / SECOND_NS) : billionths / (SECOND_NS / unit_ns);
        if (__builtin_add_overflow(sum, ns, &sum) || __builtin_add_overflow(sum, part, &sum)) {
            return false;
        }
    }
    *ret_ns = is_minus ? -sum : sum;
    return true;
}

/* "01:30:00". */
static bool clock_duration(hf_str text, int64_t *ret_ns)
{
    hf_str rest = text;
    int64_t part[3] = {0};
    if (!digits(&rest, 2, &part[0]) || !sign(&rest, ':') || !digits(&rest, 2, &part[1]) || !sign(&rest, ':') ||
        !digits(&rest, 2, &part[2]) || rest.len > 0 || part[1] > 59 || part[2] > 59) {
        return false;
    }
    *ret_ns = (part[0] * 3600 + part[1] * 60 + part[2]) * SECOND_NS;
    return true;
}

/* ---- By type --------------------------------------------------------------------------------------------------------- */

static bool is_of_status(hf_reader *reader, hf_attr_value *ret_value)
{
    const hf_word *word = &reader->word;
    if (word->kind == HF_WORD_TEXT) {
        ret_value->number = hf_status_of_run_name(word->text);
        return ret_value->number != 0;
    }
    return word->kind == HF_WORD_NUMBER && int_of(word->raw, &ret_value->number) && ret_value->number > 0 &&
           ret_value->number <= INT32_MAX && hf_run_status_name((int32_t)ret_value->number)[0] != '\0';
}

static bool is_of_type(hf_reader *reader, hf_attr_type type, hf_attr_value *ret_value)
{
    const hf_word *word = &reader->word;
    bool is_text = word->kind == HF_WORD_TEXT;
    switch (type) {
    case HF_ATTR_TEXT:
    case HF_ATTR_KEYWORD:
    case HF_ATTR_KEYWORD_LIST:
        ret_value->text = word->text;
        return is_text;
    case HF_ATTR_INT:
        return word->kind == HF_WORD_NUMBER && int_of(word->raw, &ret_value->number);
    case HF_ATTR_DOUBLE:
        return word->kind == HF_WORD_NUMBER && real_of(word->raw, &ret_value->real);
    case HF_ATTR_BOOL:
        ret_value->number = hf_reader_is(reader, "TRUE");
        return ret_value->number == 1 || hf_reader_is(reader, "FALSE");
    case HF_ATTR_DATETIME:
        return is_text ? hf_where_time(word->text, &ret_value->number)
                       : word->kind == HF_WORD_NUMBER && int_of(word->raw, &ret_value->number);
    case HF_ATTR_DURATION:
        return is_text ? go_duration(word->text, &ret_value->number) || clock_duration(word->text, &ret_value->number)
                       : word->kind == HF_WORD_NUMBER && int_of(word->raw, &ret_value->number);
    case HF_ATTR_STATUS:
        return is_of_status(reader, ret_value);
    case HF_ATTR_NONE:
        break;
    }
    return false;
}

static const char *const WANTED[] = {
    [HF_ATTR_NONE] = "nothing",
    [HF_ATTR_TEXT] = "a text between quotes",
    [HF_ATTR_KEYWORD] = "a text between quotes",
    [HF_ATTR_INT] = "a whole number of 64 bits",
    [HF_ATTR_DOUBLE] = "a number",
    [HF_ATTR_BOOL] = "true or false",
    [HF_ATTR_DATETIME] = "a time like '2024-02-29T12:00:00Z' or nanoseconds since 1970",
    [HF_ATTR_KEYWORD_LIST] = "a text between quotes",
    [HF_ATTR_STATUS] =
        "Running, Completed, Failed, Canceled, Terminated, ContinuedAsNew, TimedOut or Paused, between quotes",
    [HF_ATTR_DURATION] = "a duration like '1h30m' or '01:30:00', or nanoseconds",
};

hf_status hf_value_of_word(hf_reader *reader, const hf_attr *attr, hf_attr_value *ret_value)
{
    const hf_word *word = &reader->word;
    *ret_value = (hf_attr_value){.is_set = true};
    hf_assert(attr->type != HF_ATTR_NONE);
    if (is_of_type(reader, attr->type, ret_value)) {
        return HF_OK;
    }
    if (word->kind == HF_WORD_END) {
        return hf_reader_fail(reader, word->at, "a value for %.*s is missing", HF_STR_ARGS(attr->name));
    }
    int len = (int)(word->raw.len > 60 ? 60 : word->raw.len);
    return hf_reader_fail(reader, word->at, "%.*s is a %s and is compared with %s, not with %.*s",
                          HF_STR_ARGS(attr->name), hf_attr_type_name(attr->type), WANTED[attr->type], len,
                          word->raw.data);
}
