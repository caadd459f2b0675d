#include "history/pb_json_read.h"

#include "proto/pb.h"
#include "wire/json_tree.h"
#include "wire/pb_private.h"
#include "wire/text_read.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct scanner {
    hf_op *op;
    hf_arena *arena;
} scanner;

/* Where a value goes, for sentences. */
typedef struct place {
    const hf_pb_type *type;
    const hf_pb_field *field;
} place;

static hf_status scan_message(scanner *s, const hf_pb_type *type, const hf_json_value *value, char *msg);

static hf_status refuse(scanner *s, place where, const char *what)
{
    const char *name = where.type->names[where.field - where.type->fields].name;
    if (s->arena->status != HF_OK) {
        return hf_fail(s->op, HF_ERR_NOMEM, "no memory for %s.%s", where.type->name, name);
    }
    return hf_fail(s->op, HF_ERR_INVALID, "%s.%s: %s", where.type->name, name, what);
}

/* ---- Numbers --------------------------------------------------------------------------------------------------- */

/* An integer as sign and size, from a number or from a string of digits. */
static bool take_integer(const hf_json_value *value, bool *ret_negative, uint64_t *ret_size)
{
    if (value->kind == HF_JSON_INT) {
        *ret_negative = value->integer < 0;
        *ret_size = value->integer < 0 ? -(uint64_t)value->integer : (uint64_t)value->integer;
        return true;
    }
    if (value->kind == HF_JSON_REAL) { /* 1e3 is an integer too */
        double real = fabs(value->real);
        *ret_negative = value->real < 0;
        *ret_size = real < 0x1p64 ? (uint64_t)real : 0;
        return real < 0x1p64 && (double)*ret_size == real;
    }
    if (value->kind != HF_JSON_STRING) {
        return false;
    }
    hf_str digits = value->string;
    *ret_negative = digits.len > 0 && digits.data[0] == '-';
    *ret_size = 0;
    size_t i = *ret_negative ? 1 : 0;
    bool is_number = i < digits.len;
    for (; i < digits.len; i++) {
        char c = digits.data[i];
        if (c < '0' || c > '9' || __builtin_mul_overflow(*ret_size, 10u, ret_size) ||
            __builtin_add_overflow(*ret_size, (uint64_t)(c - '0'), ret_size)) {
            return false;
        }
    }
    return is_number;
}

static hf_status scan_integer(scanner *s, place where, const hf_json_value *value, bool is_signed, char *at)
{
    bool is_negative = false;
    uint64_t size = 0;
    if (!take_integer(value, &is_negative, &size)) {
        return refuse(s, where, "an integer is expected");
    }
    bool is_long = hf_pb_kind_size((hf_pb_kind)where.field->kind) == 8;
    uint64_t max = is_signed ? (is_long ? INT64_MAX : INT32_MAX) : (is_long ? UINT64_MAX : UINT32_MAX);
    if (is_negative ? size > (is_signed ? max + 1 : 0) : size > max) {
        return refuse(s, where, "the number does not fit");
    }
    uint64_t bits = is_negative ? -size : size;
    uint32_t low = (uint32_t)bits;
    memcpy(at, is_long ? (void *)&bits : (void *)&low, is_long ? sizeof bits : sizeof low);
    return HF_OK;
}

static bool take_real(scanner *s, const hf_json_value *value, double *ret_real)
{
    if (value->kind == HF_JSON_STRING) {
        hf_json_value number;
        if (hf_str_equal(value->string, HF_STR("NaN"))) {
            *ret_real = (double)NAN;
        } else if (hf_str_equal(value->string, HF_STR("Infinity"))) {
            *ret_real = (double)INFINITY;
        } else if (hf_str_equal(value->string, HF_STR("-Infinity"))) {
            *ret_real = -(double)INFINITY;
        } else {
            return hf_json_tree_read(s->op, value->string, s->arena, &number) == HF_OK &&
                   number.kind != HF_JSON_STRING && take_real(s, &number, ret_real);
        }
        return true;
    }
    *ret_real = value->kind == HF_JSON_INT ? (double)value->integer : value->kind == HF_JSON_REAL ? value->real : 0;
    return value->kind == HF_JSON_INT || value->kind == HF_JSON_REAL;
}

static hf_status scan_real(scanner *s, place where, const hf_json_value *value, char *at)
{
    double real = 0;
    if (!take_real(s, value, &real)) {
        return refuse(s, where, "a number is expected");
    }
    if (where.field->kind == HF_PB_DOUBLE) {
        memcpy(at, &real, sizeof real);
        return HF_OK;
    }
    if (isfinite(real) && fabs(real) > (double)FLT_MAX) {
        return refuse(s, where, "the number does not fit");
    }
    float small = (float)real;
    memcpy(at, &small, sizeof small);
    return HF_OK;
}

static hf_status scan_enum(scanner *s, place where, const hf_json_value *value, char *at)
{
    int32_t number = 0;
    if (value->kind != HF_JSON_STRING || value->string.len == 0) {
        return scan_integer(s, where, value, true, at);
    }
    if (!hf_pb_enum_value(where.field->of.set, value->string, &number)) {
        return refuse(s, where, "a name that the enum does not have");
    }
    memcpy(at, &number, sizeof number);
    return HF_OK;
}

/* ---- Other values ---------------------------------------------------------------------------------------------- */

static hf_status scan_bool(scanner *s, place where, const hf_json_value *value, char *at)
{
    bool truth = value->kind == HF_JSON_BOOL && value->truth;
    if (value->kind == HF_JSON_STRING && where.type->look == HF_PB_LOOK_ENTRY) { /* a key */
        truth = hf_str_equal(value->string, HF_STR("true"));
        if (!truth && !hf_str_equal(value->string, HF_STR("false"))) {
            return refuse(s, where, "true or false is expected");
        }
    } else if (value->kind != HF_JSON_BOOL) {
        return refuse(s, where, "true or false is expected");
    }
    memcpy(at, &truth, sizeof truth);
    return HF_OK;
}

static hf_status scan_text(scanner *s, place where, const hf_json_value *value, char *at)
{
    if (value->kind != HF_JSON_STRING) {
        return refuse(s, where, "a string is expected");
    }
    hf_str str = value->string;
    hf_pb_timestamp time;
    hf_pb_duration span;
    switch (where.field->kind) {
    case HF_PB_TIMESTAMP:
        if (!hf_timestamp_parse(str, &time)) {
            return refuse(s, where, "a time such as 2024-02-29T12:00:00Z is expected");
        }
        memcpy(at, &time, sizeof time);
        return HF_OK;
    case HF_PB_DURATION:
        if (!hf_duration_parse(str, &span)) {
            return refuse(s, where, "a duration such as 1.500s is expected");
        }
        memcpy(at, &span, sizeof span);
        return HF_OK;
    case HF_PB_BYTES:
        if (hf_base64_decode(value->string, s->arena, &str) != HF_OK) {
            return refuse(s, where, "base64 is expected");
        }
        break;
    default:
        break;
    }
    memcpy(at, &str, sizeof str);
    return HF_OK;
}

/* A value in its place; a message is filled where `at` points. */
static hf_status scan_value(scanner *s, place where, const hf_json_value *value, char *at)
{
    switch ((hf_pb_kind)where.field->kind) {
    case HF_PB_BOOL:
        return scan_bool(s, where, value, at);
    case HF_PB_INT32:
    case HF_PB_SINT32:
    case HF_PB_SFIXED32:
    case HF_PB_INT64:
    case HF_PB_SINT64:
    case HF_PB_SFIXED64:
        return scan_integer(s, where, value, true, at);
    case HF_PB_UINT32:
    case HF_PB_FIXED32:
    case HF_PB_UINT64:
    case HF_PB_FIXED64:
        return scan_integer(s, where, value, false, at);
    case HF_PB_FLOAT:
    case HF_PB_DOUBLE:
        return scan_real(s, where, value, at);
    case HF_PB_ENUM:
        return scan_enum(s, where, value, at);
    case HF_PB_STRING:
    case HF_PB_BYTES:
    case HF_PB_TIMESTAMP:
    case HF_PB_DURATION:
        return scan_text(s, where, value, at);
    case HF_PB_MESSAGE:
        return scan_message(s, where.field->of.type, value, at);
    }
    hf_panic("kind is valid", __FILE__, __LINE__);
}

/* A member that may be a message behind a pointer. */
static hf_status scan_member(scanner *s, place where, const hf_json_value *value, char *at)
{
    if (where.field->kind != HF_PB_MESSAGE) {
        return scan_value(s, where, value, at);
    }
    char *child = hf_arena_zero(s->arena, where.field->of.type->size, HF_PB_ALIGN);
    if (child == NULL) {
        return refuse(s, where, "no memory");
    }
    memcpy(at, &child, sizeof child);
    return scan_value(s, where, value, child);
}

static hf_status scan_list(scanner *s, place where, const hf_json_value *value, char *at)
{
    bool is_map = where.field->shape == HF_PB_MAP;
    if (value->kind != (is_map ? HF_JSON_OBJECT : HF_JSON_ARRAY)) {
        return refuse(s, where, is_map ? "an object is expected" : "an array is expected");
    }
    size_t size = hf_pb_item_size(where.field);
    hf_pb_list list = {NULL, is_map ? value->object.count : value->array.count};
    list.items = hf_arena_zero(s->arena, hf_arena_array_len(list.count, size), HF_PB_ALIGN);
    if (list.items == NULL) {
        return refuse(s, where, "no memory");
    }
    for (size_t i = 0; i < list.count; i++) {
        char *item = (char *)list.items + i * size;
        if (!is_map) {
            HF_TRY(scan_value(s, where, &value->array.items[i], item));
            continue;
        }
        const hf_pb_type *entry = where.field->of.type;
        const hf_json_member *member = &value->object.members[i];
        hf_json_value key = {.kind = HF_JSON_STRING, .string = member->key};
        HF_TRY(scan_value(s, (place){entry, &entry->fields[0]}, &key, item + entry->fields[0].offset));
        HF_TRY(scan_member(s, (place){entry, &entry->fields[1]}, &member->value, item + entry->fields[1].offset));
    }
    memcpy(at, &list, sizeof list);
    return HF_OK;
}

/* ---- Messages -------------------------------------------------------------------------------------------------- */

static const hf_pb_field *find_name(const hf_pb_type *type, hf_str key)
{
    for (size_t i = 0; i < type->field_count; i++) {
        if (hf_str_equal(key, hf_str_of(type->names[i].json)) || hf_str_equal(key, hf_str_of(type->names[i].name))) {
            return &type->fields[i];
        }
    }
    if (type->look == HF_PB_LOOK_ANY && hf_str_equal(key, HF_STR("@type"))) {
        return &type->fields[0];
    }
    return NULL;
}

static hf_status scan_field(scanner *s, place where, const hf_json_value *value, char *msg)
{
    const hf_pb_field *field = where.field;
    if (field->shape >= HF_PB_LIST) {
        return scan_list(s, where, value, msg + field->offset);
    }
    if (field->shape == HF_PB_ONEOF) {
        if (hf_pb_case_of(field, msg) != 0) {
            return refuse(s, where, "another field of the same oneof is there too");
        }
        memcpy(msg + field->case_offset, &field->number, sizeof field->number);
    }
    return scan_member(s, where, value, msg + field->offset);
}

static hf_status scan_message(scanner *s, const hf_pb_type *type, const hf_json_value *value, char *msg)
{
    if (type->look == HF_PB_LOOK_WRAPPER) {
        return scan_value(s, (place){type, &type->fields[0]}, value, msg + type->fields[0].offset);
    }
    if (value->kind != HF_JSON_OBJECT) {
        return hf_fail(s->op, HF_ERR_INVALID, "%s: an object is expected", type->name);
    }
    for (size_t i = 0; i < value->object.count; i++) {
        const hf_json_member *member = &value->object.members[i];
        const hf_pb_field *field = find_name(type, member->key);
        if (field != NULL && member->value.kind != HF_JSON_NULL) {
            HF_TRY(scan_field(s, (place){type, field}, &member->value, msg));
        }
    }
    return HF_OK;
}

hf_status hf_pb_json_read(hf_op *op, const hf_pb_type *type, hf_str text, hf_arena *arena, void *ret_msg)
{
    scanner s = {op, arena};
    hf_json_value root;
    HF_TRY(hf_json_tree_read(op, text, arena, &root));
    memset(ret_msg, 0, type->size);
    return scan_message(&s, type, &root, ret_msg);
}

hf_status hf_history_from_json(hf_op *op, hf_str text, hf_arena *arena, hf_buf *out_bytes)
{
    hf_pb_history history;
    HF_TRY(hf_pb_json_read(op, &hf_pb_history_type, text, arena, &history));
    hf_pb_encode(&hf_pb_history_type, &history, out_bytes);
    if (hf_buf_status(out_bytes) != HF_OK) {
        return hf_fail(op, hf_buf_status(out_bytes), "the history's bytes do not fit");
    }
    return HF_OK;
}
