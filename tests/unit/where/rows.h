/* Rows of attributes for the tests of filters: a fixed set, and random ones. */
#ifndef HF_TESTS_WHERE_ROWS_H
#define HF_TESTS_WHERE_ROWS_H

#include "support/support.h"

#include "base/rng.h"
#include "where/where.h"

#define ROW_ITEMS_MAX 4

/* A value of each attribute that every run has, then of the custom ones. */
typedef struct attr_row {
    hf_attr_value system[HF_ATTR_SYSTEM_COUNT];
    hf_attr_value custom[8];
    hf_str items[ROW_ITEMS_MAX];
} attr_row;

static const struct {
    const char *name;
    hf_attr_type type;
} CUSTOM[] = {
    {"CustomKeyword", HF_ATTR_KEYWORD},   {"CustomInt", HF_ATTR_INT},           {"CustomDouble", HF_ATTR_DOUBLE},
    {"CustomBool", HF_ATTR_BOOL},         {"CustomTime", HF_ATTR_DATETIME},     {"CustomText", HF_ATTR_TEXT},
    {"CustomList", HF_ATTR_KEYWORD_LIST}, {"Custom Odd`Name", HF_ATTR_KEYWORD},
};
_Static_assert(HF_COUNT_OF(CUSTOM) == 8, "every custom attribute has its place in a row");

static inline bool custom_find(const void *state, hf_str name, hf_attr_type *ret_type)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(CUSTOM); i++) {
        if (hf_str_equal(name, hf_str_of(CUSTOM[i].name))) {
            *ret_type = CUSTOM[i].type;
            return true;
        }
    }
    return false;
}

static inline void row_get(const void *row, const hf_attr *attr, hf_attr_value *ret_value)
{
    const attr_row *self = row;
    if (attr->id < HF_ATTR_SYSTEM_COUNT) {
        *ret_value = self->system[attr->id];
        return;
    }
    for (size_t i = 0; i < HF_COUNT_OF(CUSTOM); i++) {
        if (hf_str_equal(attr->name, hf_str_of(CUSTOM[i].name))) {
            *ret_value = self->custom[i];
        }
    }
}

static inline hf_attr_value of_text(const char *text)
{
    return (hf_attr_value){.is_set = true, .text = hf_str_of(text)};
}

static inline hf_attr_value of_number(int64_t number)
{
    return (hf_attr_value){.is_set = true, .number = number};
}

/* A random row; few different values, so that tests of them often fit. */
static inline void row_random(hf_rng *rng, attr_row *ret_row)
{
    static const char *const WORDS[] = {"order-1", "order-2",    "order-17",      "a",    "A",    "",
                                        "pay",     "Pay it now", "now, or never", "it's", "x\\y", "zzz"};
    static const int64_t TIMES[] = {0, 1709208000000000000, 1709208000500000000, 1709211600000000000, INT64_MAX, -1};
    static const int64_t NUMBERS[] = {0, 1, 2, 3, -1, 7, 100, 5400000000000, 1000000000, INT64_MIN, INT64_MAX};
    *ret_row = (attr_row){0};
    hf_attr_value *values[HF_ATTR_SYSTEM_COUNT + 8];
    hf_attr_type types[HF_ATTR_SYSTEM_COUNT + 8];
    for (size_t i = 0; i < HF_COUNT_OF(values); i++) {
        bool is_custom = i >= HF_ATTR_SYSTEM_COUNT;
        values[i] = is_custom ? &ret_row->custom[i - HF_ATTR_SYSTEM_COUNT] : &ret_row->system[i];
        types[i] = is_custom ? CUSTOM[i - HF_ATTR_SYSTEM_COUNT].type : hf_attr_known_at(i)->type;
    }
    for (size_t i = 0; i < HF_COUNT_OF(values); i++) {
        uint64_t chance = hf_rng_next(rng);
        hf_attr_value *value = values[i];
        value->is_set = chance % 4 != 0;
        if (!value->is_set) {
            continue;
        }
        chance >>= 8;
        value->text = hf_str_of(WORDS[chance % HF_COUNT_OF(WORDS)]);
        value->number = types[i] == HF_ATTR_DATETIME ? TIMES[chance % HF_COUNT_OF(TIMES)]
                        : types[i] == HF_ATTR_STATUS ? (int64_t)(1 + chance % 7)
                        : types[i] == HF_ATTR_BOOL   ? (int64_t)(chance % 2)
                                                     : NUMBERS[chance % HF_COUNT_OF(NUMBERS)];
        value->real = (double)(int64_t)(chance % 9) / 2 - 1;
        if (types[i] == HF_ATTR_KEYWORD_LIST) {
            value->items = ret_row->items;
            value->item_count = chance % (ROW_ITEMS_MAX + 1);
            for (size_t n = 0; n < value->item_count; n++) {
                ret_row->items[n] = hf_str_of(WORDS[(chance >> (8 * n + 4)) % HF_COUNT_OF(WORDS)]);
            }
        }
    }
}

#endif
