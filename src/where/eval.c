/* The evaluator: a tree and a row. */
#include "where/where.h"

/* ---- Words of a Text ------------------------------------------------------------------------------------------------- */

/* Bytes above ASCII belong to words: letters of any script do. */
static bool is_of_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

/* The next word of a text, which loses it. False: there is none. */
static bool next_word(hf_str *rest, hf_str *ret_word)
{
    size_t at = 0;
    while (at < rest->len && !is_of_word(rest->data[at])) {
        at++;
    }
    size_t end = at;
    while (end < rest->len && is_of_word(rest->data[end])) {
        end++;
    }
    hf_assert(at <= end && end <= rest->len);
    *ret_word = hf_str_of_len(rest->data + at, end - at);
    *rest = hf_str_of_len(rest->data + end, rest->len - end);
    return end > at;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool is_same_word(hf_str a, hf_str b)
{
    size_t i = 0;
    while (a.len == b.len && i < a.len && lower(a.data[i]) == lower(b.data[i])) {
        i++;
    }
    return a.len == b.len && i == a.len;
}

/* Whether one of the words is a word of the text. */
static bool has_word(hf_str text, hf_str words)
{
    hf_str wanted;
    while (next_word(&words, &wanted)) {
        hf_str rest = text;
        hf_str word;
        while (next_word(&rest, &word)) {
            if (is_same_word(word, wanted)) {
                return true;
            }
        }
    }
    return false;
}

/* ---- Tests ------------------------------------------------------------------------------------------------------------ */

static int compare(hf_attr_type type, const hf_attr_value *a, const hf_attr_value *b)
{
    if (type == HF_ATTR_KEYWORD) {
        return hf_str_compare(a->text, b->text);
    }
    if (type == HF_ATTR_DOUBLE) {
        return (a->real > b->real) - (a->real < b->real);
    }
    return (a->number > b->number) - (a->number < b->number);
}

static bool equals(hf_attr_type type, const hf_attr_value *value, const hf_attr_value *wanted)
{
    if (type == HF_ATTR_TEXT) {
        return has_word(value->text, wanted->text);
    }
    if (type != HF_ATTR_KEYWORD_LIST) {
        return compare(type, value, wanted) == 0;
    }
    for (size_t i = 0; i < value->item_count; i++) {
        if (hf_str_equal(value->items[i], wanted->text)) {
            return true;
        }
    }
    return false;
}

static bool is_one_of(const hf_where_node *node, const hf_attr_value *value)
{
    for (size_t i = 0; i < node->value_count; i++) {
        if (equals(node->attr->type, value, &node->values[i])) {
            return true;
        }
    }
    return false;
}

static bool test(const hf_where_node *node, hf_where_get *get, const void *row)
{
    hf_attr_value value = {0};
    hf_attr_type type = node->attr->type;
    get(row, node->attr, &value);
    if (node->kind == HF_WHERE_NULL) {
        return !value.is_set;
    }
    if (!value.is_set) {
        return false; /* where-F1 */
    }
    hf_assert(node->value_count > 0);
    switch (node->kind) {
    case HF_WHERE_EQUAL:
        return equals(type, &value, &node->values[0]);
    case HF_WHERE_LESS:
        return compare(type, &value, &node->values[0]) < 0;
    case HF_WHERE_LESS_EQUAL:
        return compare(type, &value, &node->values[0]) <= 0;
    case HF_WHERE_GREATER:
        return compare(type, &value, &node->values[0]) > 0;
    case HF_WHERE_GREATER_EQUAL:
        return compare(type, &value, &node->values[0]) >= 0;
    case HF_WHERE_IN:
        return is_one_of(node, &value);
    case HF_WHERE_BETWEEN:
        return compare(type, &value, &node->values[0]) >= 0 && compare(type, &value, &node->values[1]) <= 0;
    case HF_WHERE_STARTS_WITH: {
        hf_str start = node->values[0].text;
        return value.text.len >= start.len && (start.len == 0 || memcmp(value.text.data, start.data, start.len) == 0);
    }
    case HF_WHERE_AND:
    case HF_WHERE_OR:
    case HF_WHERE_NOT:
    case HF_WHERE_NULL:
        break;
    }
    return false;
}

/* ---- Conditions ------------------------------------------------------------------------------------------------------- */

static bool fits(const hf_where_node *node, hf_where_get *get, const void *row, size_t depth)
{
    hf_assert(depth <=
              3 * HF_WHERE_DEPTH_MAX + 3); /* where-F2: each bracket may hold an OR, an AND and a NOT of a test */
    if (node->kind == HF_WHERE_NOT) {
        return !fits(node->first, get, row, depth + 1);
    }
    if (node->kind != HF_WHERE_AND && node->kind != HF_WHERE_OR) {
        return test(node, get, row);
    }
    for (const hf_where_node *part = node->first; part != NULL; part = part->next) {
        if (fits(part, get, row, depth + 1) == (node->kind == HF_WHERE_OR)) {
            return node->kind == HF_WHERE_OR;
        }
    }
    return node->kind == HF_WHERE_AND;
}

bool hf_where_fits(const hf_where *where, hf_where_get *get, const void *row)
{
    return where->root == NULL || fits(where->root, get, row, 0);
}

/* ---- What a filter says of all rows that fit -------------------------------------------------------------------------- */

/* The tests that are joined by ANDs at the top: the root itself, or its parts. `*part` is NULL before the first. */
static bool next_part(const hf_where *where, const hf_where_node **part)
{
    if (*part != NULL) {
        *part = where->root->kind == HF_WHERE_AND ? (*part)->next : NULL;
    } else if (where->root != NULL) {
        *part = where->root->kind == HF_WHERE_AND ? where->root->first : where->root;
    }
    return *part != NULL;
}

bool hf_where_pins(const hf_where *where, hf_attr_id id, hf_str *ret_text)
{
    hf_assert(id < HF_ATTR_SYSTEM_COUNT);
    for (const hf_where_node *part = NULL; next_part(where, &part);) {
        if (part->kind == HF_WHERE_EQUAL && part->attr->id == id && part->attr->type == HF_ATTR_KEYWORD) {
            *ret_text = part->values[0].text;
            return true;
        }
    }
    return false;
}

static void get_status(const void *row, const hf_attr *attr, hf_attr_value *ret_value)
{
    hf_assert(attr->id == HF_ATTR_EXECUTION_STATUS);
    *ret_value = (hf_attr_value){.is_set = true, .number = *(const int32_t *)row};
}

bool hf_where_may_have_status(const hf_where *where, int32_t status)
{
    for (const hf_where_node *part = NULL; next_part(where, &part);) {
        const hf_where_node *inner = part->kind == HF_WHERE_NOT ? part->first : part;
        if (inner->attr != NULL && inner->attr->id == HF_ATTR_EXECUTION_STATUS && !fits(part, get_status, &status, 0)) {
            return false;
        }
    }
    return true;
}

bool hf_where_status_fits(const hf_where *where, int32_t status)
{
    hf_assert(hf_where_is_of_status(where));
    return hf_where_fits(where, get_status, &status);
}

/* ---- Order ------------------------------------------------------------------------------------------------------------ */

/* Appends bytes, each of them turned over if the order goes down. */
static void put_bytes(hf_buf *out, const unsigned char *bytes, size_t len, bool is_down)
{
    for (size_t i = 0; i < len; i++) {
        hf_buf_putc(out, (char)(is_down ? ~bytes[i] : bytes[i]));
    }
}

static void put_number(hf_buf *out, uint64_t number, bool is_down)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(number >> (56 - 8 * i));
    }
    put_bytes(out, bytes, sizeof bytes, is_down);
}

/* A NUL becomes 00 ff, and the end is 00 00: so a text comes before those that it is the beginning of. */
static void put_text(hf_buf *out, hf_str text, bool is_down)
{
    for (size_t i = 0; i < text.len; i++) {
        put_bytes(out, (const unsigned char *)text.data + i, 1, is_down);
        if (text.data[i] == '\0') {
            put_bytes(out, (const unsigned char *)"\xff", 1, is_down);
        }
    }
    put_bytes(out, (const unsigned char *)"\0\0", 2, is_down);
}

/* The bits of a double as a number that orders like it. */
static uint64_t ordered_bits(double real)
{
    uint64_t bits = 0;
    double plain = real == 0 ? 0 : real; /* -0 */
    memcpy(&bits, &plain, sizeof bits);
    return (bits >> 63) != 0 ? ~bits : bits | UINT64_C(1) << 63;
}

void hf_where_sort_key(const hf_where *where, hf_where_get *get, const void *row, hf_buf *out)
{
    for (size_t i = 0; i < where->order_count; i++) {
        const hf_where_order *order = &where->order[i];
        hf_attr_value value = {0};
        get(row, order->attr, &value);
        hf_buf_putc(out, (char)(value.is_set ? 0 : 1)); /* where-F3: last, up and down */
        if (!value.is_set) {
            continue;
        }
        hf_assert(order->attr->type != HF_ATTR_TEXT && order->attr->type != HF_ATTR_KEYWORD_LIST);
        if (order->attr->type == HF_ATTR_KEYWORD) {
            put_text(out, value.text, order->is_down);
        } else if (order->attr->type == HF_ATTR_DOUBLE) {
            put_number(out, ordered_bits(value.real), order->is_down);
        } else {
            put_number(out, (uint64_t)value.number ^ UINT64_C(1) << 63, order->is_down);
        }
    }
}
