/* The twin of the evaluator: it has no tree and no types of its own. It reads the text of a filter again for each row and computes the
 * answer on the way, in the plainest form that comes to mind. It knows only filters that are right. */
#ifndef HF_TESTS_WHERE_NAIVE_H
#define HF_TESTS_WHERE_NAIVE_H

#include "unit/where/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

typedef struct naive {
    const char *at;
    const attr_row *row;
} naive;

static bool naive_or(naive *self);

static inline void naive_skip(naive *self)
{
    self->at += strspn(self->at, " \t\r\n");
}

/* Steps over a word of the language, if it is next. */
static inline bool naive_word(naive *self, const char *word)
{
    size_t len = strlen(word);
    naive_skip(self);
    bool is_sign = strspn(word, "()=<>!,") > 0;
    char after = self->at[0] != '\0' ? self->at[strnlen(self->at, len)] : '\0';
    bool goes_on = (after >= 'a' && after <= 'z') || (after >= 'A' && after <= 'Z') || after == '_';
    if (strncasecmp(self->at, word, len) != 0 || (!is_sign && goes_on)) {
        return false;
    }
    self->at += len;
    return true;
}

/* A text between quotes, or a number or word as it stands. */
static inline bool naive_value(naive *self, char text[256])
{
    naive_skip(self);
    size_t len = 0;
    char quote = *self->at;
    if (quote != '\'' && quote != '"' && quote != '`') {
        while (strchr(" \t\r\n),(=<>!", *self->at) == NULL) {
            text[len++] = *self->at++;
        }
        text[len] = '\0';
        return false;
    }
    for (self->at++; *self->at != quote || self->at[1] == quote; self->at++) {
        if (*self->at == quote || (*self->at == '\\' && quote != '`')) {
            self->at++;
        }
        text[len++] = *self->at;
    }
    self->at++;
    text[len] = '\0';
    return true;
}

static inline int64_t naive_time(const char *text)
{
    struct tm tm = {0};
    char fraction[10] = "000000000";
    int sign_at = 0;
    (void)sscanf(text, "%d-%d-%d%*[Tt]%d:%d:%d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
                 &tm.tm_sec, &sign_at);
    const char *rest = text + sign_at;
    if (*rest == '.') {
        size_t len = strspn(rest + 1, "0123456789");
        memcpy(fraction, rest + 1, len < 9 ? len : 9);
        rest += 1 + len;
    }
    int hours = 0;
    int minutes = 0;
    if (*rest == '+' || *rest == '-') {
        (void)sscanf(rest + 1, "%d:%d", &hours, &minutes);
    }
    int64_t east = (*rest == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    __int128 ns = ((__int128)timegm(&tm) - east) * 1000000000 + strtol(fraction, NULL, 10);
    return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

static inline int64_t naive_duration(const char *text)
{
    double sum = 0;
    int h = 0;
    int m = 0;
    int s = 0;
    if (sscanf(text, "%2d:%2d:%2d", &h, &m, &s) == 3) {
        return (int64_t)(h * 3600 + m * 60 + s) * 1000000000;
    }
    bool is_minus = *text == '-';
    for (text += is_minus; *text != '\0';) {
        char *end = NULL;
        double number = strtod(text, &end);
        double unit = strncmp(end, "ns", 2) == 0   ? 1
                      : strncmp(end, "us", 2) == 0 ? 1e3
                      : strncmp(end, "ms", 2) == 0 ? 1e6
                      : *end == 's'                ? 1e9
                      : *end == 'm'                ? 60e9
                                                   : 3600e9;
        sum += number * unit;
        text = end + (unit < 1e9 ? 2 : 1);
    }
    return (int64_t)(is_minus ? -sum : sum);
}

static inline int64_t naive_status(const char *text)
{
    static const char *const NAMES[] = {"Running",    "Completed",      "Failed",   "Canceled",
                                        "Terminated", "ContinuedAsNew", "TimedOut", "Paused"};
    for (size_t i = 0; i < HF_COUNT_OF(NAMES); i++) {
        if (strcmp(text, NAMES[i]) == 0 || (strcmp(text, "WORKFLOW_EXECUTION_STATUS_FAILED") == 0 && i == 2)) {
            return (int64_t)i + 1;
        }
    }
    return strtol(text, NULL, 10);
}

/* Less, equal or more: -1, 0, 1. For lists and texts: 0 = it has the value, else 1. */
static inline int naive_compare(const hf_attr *attr, const hf_attr_value *value, const char *text, bool is_quoted)
{
    int64_t number = strtoll(text, NULL, 10);
    char copy[256];
    switch (attr->type) {
    case HF_ATTR_KEYWORD: {
        char own[256];
        (void)snprintf(own, sizeof own, "%.*s", (int)value->text.len, value->text.len > 0 ? value->text.data : "");
        int order = strcmp(own, text);
        return order < 0 ? -1 : order > 0;
    }
    case HF_ATTR_KEYWORD_LIST:
        for (size_t i = 0; i < value->item_count; i++) {
            if (hf_str_equal(value->items[i], hf_str_of(text))) {
                return 0;
            }
        }
        return 1;
    case HF_ATTR_TEXT:
        (void)snprintf(copy, sizeof copy, "%s", text);
        for (char *word = strtok(copy, " ,!'\\-"); word != NULL; word = strtok(NULL, " ,!'\\-")) {
            char padded[300];
            char wanted[300];
            int len = snprintf(padded, sizeof padded, " %.*s ", (int)value->text.len, value->text.data);
            for (int i = 0; i < len; i++) {
                padded[i] = strchr(",!'\\-", padded[i]) != NULL ? ' ' : padded[i];
            }
            (void)snprintf(wanted, sizeof wanted, " %s ", word);
            if (strcasestr(padded, wanted) != NULL) {
                return 0;
            }
        }
        return 1;
    case HF_ATTR_DOUBLE: {
        double real = strtod(text, NULL);
        return value->real < real ? -1 : value->real > real;
    }
    case HF_ATTR_BOOL:
        number = strcasecmp(text, "true") == 0;
        break;
    case HF_ATTR_DATETIME:
        number = is_quoted ? naive_time(text) : number;
        break;
    case HF_ATTR_DURATION:
        number = is_quoted ? naive_duration(text) : number;
        break;
    case HF_ATTR_STATUS:
        number = naive_status(text);
        break;
    case HF_ATTR_INT:
    case HF_ATTR_NONE:
        break;
    }
    return value->number < number ? -1 : value->number > number;
}

/* Reads the next value and compares. */
static inline int naive_next(naive *self, const hf_attr *attr, const hf_attr_value *value)
{
    char text[256];
    bool is_quoted = naive_value(self, text);
    return naive_compare(attr, value, text, is_quoted);
}

static inline bool naive_in(naive *self, const hf_attr *attr, const hf_attr_value *value)
{
    bool is_in = false;
    (void)naive_word(self, "(");
    do {
        is_in = (naive_next(self, attr, value) == 0) || is_in;
    } while (naive_word(self, ","));
    (void)naive_word(self, ")");
    return is_in;
}

static inline bool naive_test(naive *self)
{
    char name[256];
    hf_attr attr = {0};
    hf_attr_value value = {0};
    (void)naive_value(self, name);
    if (!hf_attr_known(hf_str_of(name), &attr)) {
        attr = (hf_attr){.id = HF_ATTR_CUSTOM, .name = hf_str_of(name)};
        if (!custom_find(NULL, attr.name, &attr.type)) {
            abort();
        }
    }
    row_get(self->row, &attr, &value);
    if (naive_word(self, "IS")) {
        bool is_not = naive_word(self, "NOT");
        (void)naive_word(self, "NULL");
        return value.is_set == is_not;
    }
    bool is_not = naive_word(self, "NOT") || naive_word(self, "!=") || naive_word(self, "<>");
    bool answer = false;
    if (naive_word(self, "IN")) {
        answer = naive_in(self, &attr, &value);
    } else if (naive_word(self, "BETWEEN")) {
        bool above = naive_next(self, &attr, &value) >= 0;
        (void)naive_word(self, "AND");
        answer = naive_next(self, &attr, &value) <= 0 && above;
    } else if (naive_word(self, "STARTS_WITH")) {
        char start[256];
        (void)naive_value(self, start);
        size_t len = strlen(start);
        answer = value.text.len >= len && (len == 0 || memcmp(value.text.data, start, len) == 0);
    } else if (naive_word(self, "<=")) {
        answer = naive_next(self, &attr, &value) <= 0;
    } else if (naive_word(self, ">=")) {
        answer = naive_next(self, &attr, &value) >= 0;
    } else if (naive_word(self, "<")) {
        answer = naive_next(self, &attr, &value) < 0;
    } else if (naive_word(self, ">")) {
        answer = naive_next(self, &attr, &value) > 0;
    } else {
        (void)naive_word(self, "=");
        answer = naive_next(self, &attr, &value) == 0;
    }
    return (answer && value.is_set) != is_not;
}

static inline bool naive_not(naive *self)
{
    if (naive_word(self, "NOT")) {
        return !naive_not(self);
    }
    if (naive_word(self, "(")) {
        bool answer = naive_or(self);
        (void)naive_word(self, ")");
        return answer;
    }
    return naive_test(self);
}

static inline bool naive_and(naive *self)
{
    bool answer = naive_not(self);
    while (naive_word(self, "AND")) {
        answer = naive_not(self) && answer;
    }
    return answer;
}

static inline bool naive_or(naive *self)
{
    bool answer = naive_and(self);
    while (naive_word(self, "OR")) {
        answer = naive_and(self) || answer;
    }
    return answer;
}

static inline bool naive_fits(const char *text, const attr_row *row)
{
    naive self = {text, row};
    naive_skip(&self);
    if (*self.at == '\0' || strncasecmp(self.at, "ORDER BY", 8) == 0) {
        return true;
    }
    return naive_or(&self);
}

#endif
