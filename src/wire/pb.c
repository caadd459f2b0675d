/* The parts of the wire format that need no tables: varints, skipping, a cursor over raw fields, names of enums. */
#include "wire/pb_private.h"

#include <stddef.h>
#include <string.h>

_Static_assert(sizeof(hf_pb_str_list) == sizeof(hf_pb_list) &&
                   offsetof(hf_pb_str_list, count) == offsetof(hf_pb_list, count),
               "every list looks like hf_pb_list");
_Static_assert(sizeof(hf_pb_bool_list) == sizeof(hf_pb_list) &&
                   offsetof(hf_pb_bool_list, count) == offsetof(hf_pb_list, count),
               "every list looks like hf_pb_list");
_Static_assert(sizeof(hf_pb_int32_list) == sizeof(hf_pb_list) &&
                   offsetof(hf_pb_int32_list, count) == offsetof(hf_pb_list, count),
               "every list looks like hf_pb_list");
_Static_assert(sizeof(hf_pb_int64_list) == sizeof(hf_pb_list) &&
                   offsetof(hf_pb_int64_list, count) == offsetof(hf_pb_list, count),
               "every list looks like hf_pb_list");
_Static_assert(sizeof(hf_pb_uint32_list) == sizeof(hf_pb_list) &&
                   offsetof(hf_pb_uint32_list, count) == offsetof(hf_pb_list, count),
               "every list looks like hf_pb_list");
_Static_assert(sizeof(hf_pb_uint64_list) == sizeof(hf_pb_list) &&
                   offsetof(hf_pb_uint64_list, count) == offsetof(hf_pb_list, count),
               "every list looks like hf_pb_list");
_Static_assert(sizeof(hf_pb_float_list) == sizeof(hf_pb_list) &&
                   offsetof(hf_pb_float_list, count) == offsetof(hf_pb_list, count),
               "every list looks like hf_pb_list");
_Static_assert(sizeof(hf_pb_double_list) == sizeof(hf_pb_list) &&
                   offsetof(hf_pb_double_list, count) == offsetof(hf_pb_list, count),
               "every list looks like hf_pb_list");
_Static_assert(HF_PB_NUMBER_MAX == UINT32_MAX >> 3, "a tag is 32 bits");
_Static_assert(HF_PB_VARINT_LEN_MAX * 7 >= 64, "a varint holds 64 bits");

const uint8_t *hf_pb_get_varint_slow(const uint8_t *at, const uint8_t *end, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
        uint8_t byte = *at++;
        if (shift == 63 && byte > 1) {
            return NULL; /* more than 64 bits */
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return at;
        }
    }
    return NULL;
}

/* A tag: its number is 1 to 2^29 - 1. NULL: malformed. */
static const uint8_t *get_tag(const uint8_t *at, const uint8_t *end, uint32_t *ret_number, hf_pb_wire *ret_wire)
{
    uint64_t tag = 0;
    at = hf_pb_get_varint(at, end, &tag);
    if (at == NULL || tag > UINT32_MAX || tag < 8) {
        return NULL;
    }
    *ret_number = (uint32_t)(tag >> 3);
    *ret_wire = (hf_pb_wire)(tag & 7);
    return at;
}

/* Steps over the fields of a group and its end, which must name the same number. */
static const uint8_t *skip_group(const uint8_t *at, const uint8_t *end, uint32_t group, int depth)
{
    if (depth >= HF_PB_DEPTH_MAX) {
        return NULL;
    }
    for (;;) {
        uint32_t number = 0;
        hf_pb_wire wire = HF_PB_WIRE_VARINT;
        at = get_tag(at, end, &number, &wire);
        if (at == NULL) {
            return NULL;
        }
        if (wire == HF_PB_WIRE_GROUP_END) {
            return number == group ? at : NULL;
        }
        at = hf_pb_skip(at, end, number, wire, depth + 1);
        if (at == NULL) {
            return NULL;
        }
    }
}

const uint8_t *hf_pb_skip(const uint8_t *at, const uint8_t *end, uint32_t number, hf_pb_wire wire, int depth)
{
    uint64_t value = 0;
    switch (wire) {
    case HF_PB_WIRE_VARINT:
        return hf_pb_get_varint(at, end, &value);
    case HF_PB_WIRE_64:
        return end - at >= 8 ? at + 8 : NULL;
    case HF_PB_WIRE_BYTES:
        at = hf_pb_get_varint(at, end, &value);
        return at != NULL && value <= (uint64_t)(end - at) ? at + value : NULL;
    case HF_PB_WIRE_GROUP:
        return skip_group(at, end, number, depth);
    case HF_PB_WIRE_GROUP_END:
        return NULL; /* the end of a group that was not opened */
    case HF_PB_WIRE_32:
        return end - at >= 4 ? at + 4 : NULL;
    }
    return NULL; /* 6 and 7 have no meaning */
}

/* The bytes between a group's tag and its end tag; the group is known to be well formed. */
static hf_str group_content(const uint8_t *start, const uint8_t *end)
{
    const uint8_t *at = start;
    for (;;) {
        uint32_t number = 0;
        hf_pb_wire wire = HF_PB_WIRE_VARINT;
        const uint8_t *behind = get_tag(at, end, &number, &wire);
        if (wire == HF_PB_WIRE_GROUP_END) {
            return hf_str_of_len(start, (size_t)(at - start));
        }
        at = hf_pb_skip(behind, end, number, wire, 1);
        hf_assert(at != NULL);
    }
}

static HF_NOINLINE bool next_slow(hf_str *rest, hf_pb_raw *ret_field)
{
    const uint8_t *start = (const uint8_t *)rest->data;
    const uint8_t *end = start + rest->len;
    hf_pb_raw field = {0};
    const uint8_t *at = get_tag(start, end, &field.number, &field.wire);
    const uint8_t *next = at != NULL ? hf_pb_skip(at, end, field.number, field.wire, 0) : NULL;
    if (next == NULL) {
        *rest = (hf_str){NULL, 0};
        return false;
    }
    switch (field.wire) {
    case HF_PB_WIRE_VARINT:
        (void)hf_pb_get_varint(at, end, &field.value);
        break;
    case HF_PB_WIRE_64:
        field.value = hf_pb_load64(at);
        break;
    case HF_PB_WIRE_32:
        field.value = hf_pb_load32(at);
        break;
    case HF_PB_WIRE_BYTES:
        at = hf_pb_get_varint(at, end, &field.value);
        field.bytes = hf_str_of_len(at, (size_t)field.value);
        break;
    case HF_PB_WIRE_GROUP:
        field.bytes = group_content(at, next);
        break;
    case HF_PB_WIRE_GROUP_END:
        break;
    }
    field.whole = hf_str_of_len(start, (size_t)(next - start));
    *rest = hf_str_of_len(next, (size_t)(end - next));
    *ret_field = field;
    return true;
}

bool hf_pb_next(hf_str *rest, hf_pb_raw *ret_field)
{
    const uint8_t *start = (const uint8_t *)rest->data;
    size_t len = rest->len;
    if (HF_UNLIKELY(len < 2)) {
        return len > 0 && next_slow(rest, ret_field);
    }
    unsigned tag = start[0];
    size_t value = start[1];
    hf_pb_wire wire = (hf_pb_wire)(tag & 7);
    size_t head = 2;
    if (value >= 0x80 && len > 2 && start[2] < 0x80) {
        value = (value & 0x7f) | (size_t)start[2] << 7;
        head = 3;
    }
    /* Most fields have a tag of one byte, and then a varint of one or two, or so many bytes. */
    size_t taken = wire == HF_PB_WIRE_BYTES ? head + value : head;
    bool is_short = tag >= 8 && tag < 0x80 && start[head - 1] < 0x80 && taken <= len &&
                    (wire == HF_PB_WIRE_BYTES || wire == HF_PB_WIRE_VARINT);
    if (HF_UNLIKELY(!is_short)) {
        return next_slow(rest, ret_field);
    }
    *ret_field = (hf_pb_raw){
        .number = tag >> 3,
        .wire = wire,
        .value = value,
        .bytes = wire == HF_PB_WIRE_BYTES ? hf_str_of_len(start + head, value) : (hf_str){NULL, 0},
        .whole = hf_str_of_len(start, taken),
    };
    *rest = hf_str_of_len(start + taken, len - taken);
    return true;
}

void hf_pb_put_varint(hf_buf *out, uint64_t value)
{
    if (HF_LIKELY(hf_buf_reserve(out, HF_PB_VARINT_LEN_MAX))) {
        char *end = (char *)hf_pb_set_varint((uint8_t *)out->data + out->len, value);
        out->len = (size_t)(end - out->data);
        *end = '\0';
    }
}

void hf_pb_put_tag(hf_buf *out, uint32_t number, hf_pb_wire wire)
{
    hf_pb_put_varint(out, (uint64_t)number << 3 | (uint64_t)wire);
}

void hf_pb_put_uint(hf_buf *out, uint32_t number, uint64_t value)
{
    hf_pb_put_tag(out, number, HF_PB_WIRE_VARINT);
    hf_pb_put_varint(out, value);
}

void hf_pb_put_bytes(hf_buf *out, uint32_t number, hf_str bytes)
{
    hf_pb_put_tag(out, number, HF_PB_WIRE_BYTES);
    hf_pb_put_varint(out, bytes.len);
    hf_buf_put(out, bytes.data, bytes.len);
}

/* ---- Enums ------------------------------------------------------------------------------------------------------ */

static const hf_pb_enumerator *find_enumerator(const hf_pb_enum *set, int32_t value)
{
    size_t low = 0;
    size_t high = set->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (set->items[mid].value < value) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < set->count && set->items[low].value == value ? &set->items[low] : NULL;
}

const char *hf_pb_enum_name(const hf_pb_enum *set, int32_t value)
{
    const hf_pb_enumerator *item = find_enumerator(set, value);
    return item != NULL ? item->name : NULL;
}

const char *hf_pb_enum_brief(const hf_pb_enum *set, int32_t value)
{
    const hf_pb_enumerator *item = find_enumerator(set, value);
    return item != NULL ? item->brief : NULL;
}

bool hf_pb_enum_value(const hf_pb_enum *set, hf_str name, int32_t *ret_value)
{
    for (size_t i = 0; i < set->count; i++) {
        const hf_pb_enumerator *item = &set->items[i];
        if (hf_str_equal(name, hf_str_of(item->name)) || hf_str_equal(name, hf_str_of(item->brief))) {
            *ret_value = item->value;
            return true;
        }
    }
    return false;
}
