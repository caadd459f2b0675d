/* Shared by the files of the codec: reading and writing single values on the wire. */
#ifndef HF_WIRE_PB_PRIVATE_H
#define HF_WIRE_PB_PRIVATE_H

#include "wire/pb.h"

#define HF_PB_VARINT_LEN_MAX 10
#define HF_PB_NUMBER_MAX ((1u << 29) - 1)
#define HF_PB_ALIGN _Alignof(int64_t) /* no member of a generated struct needs more */

/* The layout of all generated lists. List members are read and written by memcpy, because each has a type of its own. */
typedef struct hf_pb_list {
    void *items;
    size_t count;
} hf_pb_list;

static inline hf_pb_list hf_pb_list_at(const void *member)
{
    hf_pb_list list;
    memcpy(&list, member, sizeof list);
    return list;
}

static inline void *hf_pb_ptr_at(const void *member)
{
    void *ptr;
    memcpy(&ptr, member, sizeof ptr);
    return ptr;
}

static inline hf_str hf_pb_str_at(const void *member)
{
    hf_str str;
    memcpy(&str, member, sizeof str);
    return str;
}

static inline uint32_t hf_pb_case_of(const hf_pb_field *field, const char *msg)
{
    uint32_t number;
    memcpy(&number, msg + field->case_offset, sizeof number);
    return number;
}

/* Properties of a kind. */
typedef struct hf_pb_kind_info {
    uint8_t size; /* bytes of a value in a struct or in the items of a list */
    uint8_t wire; /* wire type when not packed */
} hf_pb_kind_info;

static const hf_pb_kind_info HF_PB_KINDS[HF_PB_KIND_COUNT] = {
    [HF_PB_BOOL] = {sizeof(bool), HF_PB_WIRE_VARINT},
    [HF_PB_INT32] = {4, HF_PB_WIRE_VARINT},
    [HF_PB_INT64] = {8, HF_PB_WIRE_VARINT},
    [HF_PB_UINT32] = {4, HF_PB_WIRE_VARINT},
    [HF_PB_UINT64] = {8, HF_PB_WIRE_VARINT},
    [HF_PB_SINT32] = {4, HF_PB_WIRE_VARINT},
    [HF_PB_SINT64] = {8, HF_PB_WIRE_VARINT},
    [HF_PB_FIXED32] = {4, HF_PB_WIRE_32},
    [HF_PB_FIXED64] = {8, HF_PB_WIRE_64},
    [HF_PB_SFIXED32] = {4, HF_PB_WIRE_32},
    [HF_PB_SFIXED64] = {8, HF_PB_WIRE_64},
    [HF_PB_FLOAT] = {4, HF_PB_WIRE_32},
    [HF_PB_DOUBLE] = {8, HF_PB_WIRE_64},
    [HF_PB_ENUM] = {4, HF_PB_WIRE_VARINT},
    [HF_PB_STRING] = {sizeof(hf_str), HF_PB_WIRE_BYTES},
    [HF_PB_BYTES] = {sizeof(hf_str), HF_PB_WIRE_BYTES},
    [HF_PB_MESSAGE] = {sizeof(void *), HF_PB_WIRE_BYTES},
    [HF_PB_TIMESTAMP] = {sizeof(hf_pb_timestamp), HF_PB_WIRE_BYTES},
    [HF_PB_DURATION] = {sizeof(hf_pb_duration), HF_PB_WIRE_BYTES},
};

_Static_assert(offsetof(hf_pb_timestamp, has) == offsetof(hf_pb_duration, has) &&
                   sizeof(hf_pb_timestamp) == sizeof(hf_pb_duration),
               "the two are handled alike");

static inline size_t hf_pb_kind_size(hf_pb_kind kind)
{
    return HF_PB_KINDS[kind].size;
}

static inline hf_pb_wire hf_pb_kind_wire(hf_pb_kind kind)
{
    return (hf_pb_wire)HF_PB_KINDS[kind].wire;
}

/* Bytes of one element in a list. */
static inline size_t hf_pb_item_size(const hf_pb_field *field)
{
    return field->kind == HF_PB_MESSAGE ? field->of.type->size : hf_pb_kind_size((hf_pb_kind)field->kind);
}

/* Whether a field outside a oneof is present. Reads a whole word, which is always inside the struct: `unknown` comes
 * after every field. The shift drops the bytes that are not the field's. */
static inline bool hf_pb_probe(const hf_pb_field *field, const char *msg)
{
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the shift drops the higher addresses");
    uint64_t word;
    memcpy(&word, msg + field->probe, sizeof word);
    return word << field->probe_shift != 0;
}

/* Whether a field of this message would be written. */
static inline bool hf_pb_is_set(const hf_pb_field *field, const char *msg)
{
    return field->shape == HF_PB_ONEOF ? hf_pb_case_of(field, msg) == field->number : hf_pb_probe(field, msg);
}

/* Reads a varint. NULL: malformed, or cut off by the end. */
const uint8_t *hf_pb_get_varint_slow(const uint8_t *at, const uint8_t *end, uint64_t *ret_value);

static inline const uint8_t *hf_pb_get_varint(const uint8_t *at, const uint8_t *end, uint64_t *ret_value)
{
    if (HF_LIKELY(at < end && *at < 0x80)) {
        *ret_value = *at;
        return at + 1;
    }
    if (HF_LIKELY(end - at >= 2 && at[1] < 0x80)) {
        *ret_value = (uint64_t)(*at & 0x7f) | (uint64_t)at[1] << 7;
        return at + 2;
    }
    return hf_pb_get_varint_slow(at, end, ret_value);
}

/* Skips the value after a tag. NULL: malformed. `depth` counts nested groups. */
const uint8_t *hf_pb_skip(const uint8_t *at, const uint8_t *end, uint32_t number, hf_pb_wire wire, int depth);

static inline uint32_t hf_pb_load32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t hf_pb_load64(const uint8_t *at)
{
    return (uint64_t)hf_pb_load32(at) | (uint64_t)hf_pb_load32(at + 4) << 32;
}

static inline uint8_t *hf_pb_set32(uint8_t *at, uint32_t bits)
{
    at[0] = (uint8_t)bits;
    at[1] = (uint8_t)(bits >> 8);
    at[2] = (uint8_t)(bits >> 16);
    at[3] = (uint8_t)(bits >> 24);
    return at + 4;
}

static inline uint8_t *hf_pb_set64(uint8_t *at, uint64_t bits)
{
    return hf_pb_set32(hf_pb_set32(at, (uint32_t)bits), (uint32_t)(bits >> 32));
}

static inline size_t hf_pb_varint_len(uint64_t value)
{
    return ((size_t)(63 - __builtin_clzll(value | 1)) * 9 + 73) / 64;
}

/* There must be room for HF_PB_VARINT_LEN_MAX bytes; those behind the varint may change. */
static inline uint8_t *hf_pb_set_varint(uint8_t *at, uint64_t value)
{
    if (HF_LIKELY(value < 0x80)) {
        *at = (uint8_t)value;
        return at + 1;
    }
    while (HF_UNLIKELY(value >> 56 != 0)) { /* at most twice */
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    /* Eight groups of seven bits go to eight bytes in three steps: two of 28 bits, four of 14, eight of 7. */
    uint64_t bits = (value & UINT64_C(0x00fffffff0000000)) << 4 | (value & UINT64_C(0x0fffffff));
    bits = (bits & UINT64_C(0x0fffc0000fffc000)) << 2 | (bits & UINT64_C(0x00003fff00003fff));
    bits = (bits & UINT64_C(0x3f803f803f803f80)) << 1 | (bits & UINT64_C(0x007f007f007f007f));
    size_t len = hf_pb_varint_len(value);
    bits |= UINT64_C(0x8080808080808080) >> (72 - 8 * len) & UINT64_C(0x0080808080808080);
    (void)hf_pb_set64(at, bits);
    return at + len;
}

#endif
