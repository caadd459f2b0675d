/* Values of search attributes: payloads with JSON, as SDKs and the C library write them. */
#include "run/visible.h"

#include "wire/json_read.h"

#include <errno.h>
#include <stdlib.h>

#define NUMBER_LEN_MAX 64 /* bytes of a number */
#define ITEMS_MAX 1000    /* texts of a KeywordList: all of them together are 2 KiB at most */

static bool is_nothing(const hf_pb_payload *payload)
{
    return payload->data.len == 0 || hf_str_equal(payload->data, HF_STR("null")) ||
           hf_str_equal(payload->data, HF_STR("[]"));
}

static bool find(hf_arena *arena, hf_str json, const hf_json_step *steps, size_t count, hf_json_found *ret_found)
{
    hf_op op;
    hf_op_init(&op);
    return hf_json_find(&op, json, steps, count, arena, ret_found) == HF_OK && ret_found->kind != HF_KIND_MISSING;
}

/* A number as it stands in the text: all digits count. */
static bool number_text(hf_str json, const hf_json_found *found, char text[NUMBER_LEN_MAX])
{
    size_t len = found->end - found->start;
    if (found->kind != HF_KIND_NUMBER || len >= NUMBER_LEN_MAX) {
        return false;
    }
    memcpy(text, json.data + found->start, len);
    text[len] = '\0';
    return true;
}

static bool int_of(const char *text, int64_t *ret_number)
{
    char *end = NULL;
    errno = 0;
    *ret_number = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool texts_of(hf_arena *arena, hf_str json, const hf_json_found *found, hf_attr_value *value)
{
    if (found->kind == HF_KIND_TEXT) { /* a list of one may be sent without its brackets */
        hf_str *one = HF_ARENA_NEW(arena, hf_str);
        if (one != NULL) {
            *one = found->text;
            value->items = one;
            value->item_count = 1;
        }
        return one != NULL;
    }
    if (found->kind != HF_KIND_ARRAY || found->count > ITEMS_MAX) {
        return false;
    }
    hf_str *items = HF_ARENA_ARRAY(arena, hf_str, found->count);
    for (size_t i = 0; items != NULL && i < found->count; i++) {
        hf_json_step step = {.index = i, .is_index = true};
        hf_json_found item;
        if (!find(arena, json, &step, 1, &item) || item.kind != HF_KIND_TEXT) {
            return false;
        }
        items[i] = item.text;
    }
    value->items = items;
    value->item_count = items != NULL ? found->count : 0;
    return items != NULL;
}

bool hf_attr_value_of_payload(hf_arena *arena, hf_attr_type type, const hf_pb_payload *payload,
                              hf_attr_value *ret_value)
{
    *ret_value = (hf_attr_value){0};
    if (is_nothing(payload)) {
        return true;
    }
    hf_str json = payload->data;
    hf_json_found found;
    char text[NUMBER_LEN_MAX];
    if (!find(arena, json, NULL, 0, &found)) {
        return false;
    }
    if (found.kind == HF_KIND_ARRAY && type != HF_ATTR_KEYWORD_LIST) { /* SDKs may write any value as a list of one */
        hf_json_step first = {.index = 0, .is_index = true};
        if (found.count != 1 || !find(arena, json, &first, 1, &found)) {
            return false;
        }
    }
    ret_value->is_set = true;
    ret_value->text = found.text;
    switch (type) {
    case HF_ATTR_TEXT:
    case HF_ATTR_KEYWORD:
        return found.kind == HF_KIND_TEXT;
    case HF_ATTR_INT:
        return number_text(json, &found, text) && int_of(text, &ret_value->number);
    case HF_ATTR_DOUBLE:
        if (!number_text(json, &found, text)) {
            return false;
        }
        ret_value->real = strtod(text, NULL);
        return ret_value->real - ret_value->real == 0;
    case HF_ATTR_BOOL:
        ret_value->number = found.flag;
        return found.kind == HF_KIND_BOOL;
    case HF_ATTR_DATETIME:
        return found.kind == HF_KIND_TEXT && hf_where_time(found.text, &ret_value->number);
    case HF_ATTR_KEYWORD_LIST:
        return texts_of(arena, json, &found, ret_value);
    case HF_ATTR_NONE:
    case HF_ATTR_STATUS:
    case HF_ATTR_DURATION:
        break;
    }
    return false;
}
