/* A message as JSON, in the form of proto3, by the table of its type. */
#include "wire/pb_json.h"

#include "base/json.h"
#include "wire/base64.h"
#include "wire/pb_private.h"
#include "wire/time_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct printer {
    hf_buf *out;
    hf_status status;      /* HF_ERR_INVALID once something has no JSON; the buffer has a status of its own */
    hf_pb_json_more *more; /* NULL = nothing more */
} printer;

static void print_message(printer *p, const hf_pb_type *type, const char *msg, int depth);

static void print_quoted(printer *p, const char *text)
{
    hf_buf_putc(p->out, '"');
    hf_buf_puts(p->out, text);
    hf_buf_putc(p->out, '"');
}

/* Prints the shortest digits that read back as the same number, with a decimal point in every locale. */
static void print_real(printer *p, double value, bool is_float)
{
    char text[40];
    if (isnan(value) || isinf(value)) {
        print_quoted(p, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    if (value == 0 && signbit(value)) {
        hf_buf_puts(p->out, "-0.0"); /* "-0" is read as an integer, which has no sign */
        return;
    }
    for (int digits = is_float ? 6 : 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (is_float ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value) {
            break;
        }
    }
    for (char *c = text; *c != '\0'; c++) {
        bool is_usual = (*c >= '0' && *c <= '9') || *c == '-' || *c == '+' || *c == 'e';
        hf_buf_putc(p->out, is_usual ? *c : '.');
    }
}

static void print_time(printer *p, hf_pb_kind kind, const char *at)
{
    char text[HF_TIME_TEXT_LEN_MAX];
    size_t len = 0;
    if (kind == HF_PB_TIMESTAMP) {
        hf_pb_timestamp time;
        memcpy(&time, at, sizeof time);
        len = hf_timestamp_format(time, text);
    } else {
        hf_pb_duration span;
        memcpy(&span, at, sizeof span);
        len = hf_duration_format(span, text);
    }
    if (len == 0) {
        p->status = HF_ERR_INVALID;
        return;
    }
    print_quoted(p, text);
}

static void print_enum(printer *p, const hf_pb_enum *set, int32_t value)
{
    const char *name = hf_pb_enum_name(set, value);
    if (name != NULL) {
        print_quoted(p, name);
    } else {
        hf_buf_putf(p->out, "%d", value);
    }
}

static void print_number(printer *p, const hf_pb_field *field, const char *at)
{
    union {
        bool truth;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f;
        double d;
    } v = {.u64 = 0};
    memcpy(&v, at, hf_pb_kind_size((hf_pb_kind)field->kind));
    switch ((hf_pb_kind)field->kind) {
    case HF_PB_BOOL:
        hf_buf_puts(p->out, v.truth ? "true" : "false");
        break;
    case HF_PB_INT32:
    case HF_PB_SINT32:
    case HF_PB_SFIXED32:
        hf_buf_putf(p->out, "%d", v.i32);
        break;
    case HF_PB_UINT32:
    case HF_PB_FIXED32:
        hf_buf_putf(p->out, "%u", v.u32);
        break;
    case HF_PB_INT64:
    case HF_PB_SINT64:
    case HF_PB_SFIXED64:
        hf_buf_putf(p->out, "\"%lld\"", (long long)v.i64);
        break;
    case HF_PB_UINT64:
    case HF_PB_FIXED64:
        hf_buf_putf(p->out, "\"%llu\"", (unsigned long long)v.u64);
        break;
    case HF_PB_FLOAT:
        print_real(p, (double)v.f, true);
        break;
    case HF_PB_DOUBLE:
        print_real(p, v.d, false);
        break;
    case HF_PB_ENUM:
        print_enum(p, field->of.set, v.i32);
        break;
    case HF_PB_STRING:
    case HF_PB_BYTES:
    case HF_PB_MESSAGE:
    case HF_PB_TIMESTAMP:
    case HF_PB_DURATION:
        hf_panic("kind is a number", __FILE__, __LINE__);
    }
}

static void print_bytes(printer *p, hf_str bytes)
{
    hf_buf_putc(p->out, '"');
    hf_base64_encode(bytes, p->out);
    hf_buf_putc(p->out, '"');
}

static void print_str(printer *p, hf_str str)
{
    hf_json_quote(p->out, str.len > 0 ? str.data : "", str.len);
}

/* Prints one value. For a message `at` points to the message itself, both for an item of a list and for a member. */
static void print_value(printer *p, const hf_pb_field *field, const char *at, int depth)
{
    switch (field->kind) {
    case HF_PB_STRING:
        print_str(p, hf_pb_str_at(at));
        break;
    case HF_PB_BYTES:
        print_bytes(p, hf_pb_str_at(at));
        break;
    case HF_PB_MESSAGE:
        print_message(p, field->of.type, at, depth + 1);
        break;
    case HF_PB_TIMESTAMP:
    case HF_PB_DURATION:
        print_time(p, (hf_pb_kind)field->kind, at);
        break;
    default:
        print_number(p, field, at);
        break;
    }
}

/* Prints a member's value: if it is a message, the member is a pointer to it. */
static void print_member(printer *p, const hf_pb_field *field, const char *at, int depth)
{
    if (field->kind == HF_PB_MESSAGE) {
        const char *child = hf_pb_ptr_at(at);
        if (child == NULL) {
            hf_buf_puts(p->out, "{}"); /* an entry without a value */
            return;
        }
        at = child;
    }
    print_value(p, field, at, depth);
}

/* Keys are always strings in JSON, whatever their type in the map. */
static void print_key(printer *p, const hf_pb_field *key, const char *at)
{
    bool is_bare = key->kind == HF_PB_BOOL || hf_pb_kind_size((hf_pb_kind)key->kind) == 4;
    if (is_bare) {
        hf_buf_putc(p->out, '"');
    }
    print_value(p, key, at, 0);
    if (is_bare) {
        hf_buf_putc(p->out, '"');
    }
    hf_buf_putc(p->out, ':');
}

static void print_list(printer *p, const hf_pb_field *field, hf_pb_list list, int depth)
{
    bool is_map = field->shape == HF_PB_MAP;
    size_t size = hf_pb_item_size(field);
    hf_buf_putc(p->out, is_map ? '{' : '[');
    for (size_t i = 0; i < list.count && hf_buf_status(p->out) == HF_OK; i++) {
        const char *item = (const char *)list.items + i * size;
        if (i > 0) {
            hf_buf_putc(p->out, ',');
        }
        if (is_map) {
            const hf_pb_field *key = &field->of.type->fields[0];
            print_key(p, key, item + key->offset);
            print_member(p, key + 1, item + key[1].offset, depth + 1);
        } else {
            print_value(p, field, item, depth);
        }
    }
    hf_buf_putc(p->out, is_map ? '}' : ']');
}

static void print_fields(printer *p, const hf_pb_type *type, const char *msg, int depth)
{
    bool comma = false;
    hf_buf_putc(p->out, '{');
    for (size_t i = 0; i < type->field_count; i++) {
        const hf_pb_field *field = &type->fields[i];
        const char *at = msg + field->offset;
        if (!hf_pb_is_set(field, msg) ||
            (field->kind == HF_PB_MESSAGE && field->shape < HF_PB_LIST && hf_pb_ptr_at(at) == NULL)) {
            continue;
        }
        if (comma) {
            hf_buf_putc(p->out, ',');
        }
        comma = true;
        print_quoted(p, type->names[i].json);
        hf_buf_putc(p->out, ':');
        if (field->shape >= HF_PB_LIST) {
            print_list(p, field, hf_pb_list_at(at), depth);
        } else {
            print_member(p, field, at, depth);
        }
    }
    if (p->more != NULL && comma) {
        p->more(type, msg, p->out);
    }
    hf_buf_putc(p->out, '}');
}

static void print_any(printer *p, const hf_pb_type *type, const char *msg)
{
    hf_buf_puts(p->out, "{\"@type\":");
    print_str(p, hf_pb_str_at(msg + type->fields[0].offset));
    hf_buf_puts(p->out, ",\"value\":");
    print_bytes(p, hf_pb_str_at(msg + type->fields[1].offset));
    hf_buf_putc(p->out, '}');
}

static void print_message(printer *p, const hf_pb_type *type, const char *msg, int depth)
{
    if (depth > HF_PB_DEPTH_MAX) {
        p->status = HF_ERR_INVALID;
        return;
    }
    switch ((hf_pb_look)type->look) {
    case HF_PB_LOOK_OBJECT:
    case HF_PB_LOOK_ENTRY:
        print_fields(p, type, msg, depth);
        break;
    case HF_PB_LOOK_ANY:
        print_any(p, type, msg);
        break;
    case HF_PB_LOOK_WRAPPER:
        print_value(p, &type->fields[0], msg + type->fields[0].offset, depth);
        break;
    }
}

hf_status hf_pb_json_write(const hf_pb_type *type, const void *msg, hf_buf *out)
{
    return hf_pb_json_write_more(type, msg, out, NULL);
}

hf_status hf_pb_json_write_more(const hf_pb_type *type, const void *msg, hf_buf *out, hf_pb_json_more *more)
{
    printer p = {out, HF_OK, more};
    print_message(&p, type, msg, 1);
    return hf_buf_status(out) != HF_OK ? hf_buf_status(out) : p.status;
}
