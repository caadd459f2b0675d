/* A message type that is made by hand. */
#ifndef HF_TESTS_WIRE_PB_KINDS_H
#define HF_TESTS_WIRE_PB_KINDS_H

#include "wire/pb_private.h"

/* A type with every kind in every shape; proto/ does not use them all. */
typedef struct kinds {
    bool a_bool;
    int32_t a_sint32;
    int64_t a_sint64;
    uint32_t a_fixed32;
    uint64_t a_fixed64;
    int32_t a_sfixed32;
    int64_t a_sfixed64;
    float a_float;
    double a_double;
    uint32_t a_uint32;
    uint64_t a_uint64;
    int32_t a_int32;
    hf_pb_bool_list bools;
    hf_pb_int32_list sint32s;
    hf_pb_int64_list sint64s;
    hf_pb_uint32_list fixed32s;
    hf_pb_uint64_list fixed64s;
    hf_pb_int32_list int32s;
    hf_pb_float_list floats;
    hf_pb_double_list doubles;
    hf_pb_str_list strs;
    uint32_t one_case;
    union {
        int64_t one_int64;
        hf_str one_str;
        hf_pb_duration one_span;
    };
    hf_str unknown;
} kinds;

#define TAG_OF(number, wire) ((number)*8 + (wire))
#define TAG_BYTES(tag) ((tag) < 128 ? (tag) : ((tag)&0x7f) | 0x80 | (tag) >> 7 << 8)
#define PUT_OF(kind)                                                    \
    ((kind) == HF_PB_STRING                            ? HF_PB_PUT_STR  \
     : (kind) == HF_PB_INT64 || (kind) == HF_PB_UINT64 ? HF_PB_PUT_64   \
     : (kind) == HF_PB_INT32                           ? HF_PB_PUT_32   \
     : (kind) == HF_PB_DURATION                        ? HF_PB_PUT_TIME \
                                                       : HF_PB_PUT_NUMBER)
#define FIELD(number_, wire_, kind_, member_)                                                                       \
    .number = (number_), .tag = TAG_BYTES(TAG_OF(number_, wire_)), .tag_len = TAG_OF(number_, wire_) < 128 ? 1 : 2, \
    .kind = HF_PB_##kind_, .offset = offsetof(kinds, member_)
#define SINGLE_OF(number_, wire_, kind_, member_)                                                     \
    {                                                                                                 \
        FIELD(number_, wire_, kind_, member_), .shape = HF_PB_SINGLE, .put = PUT_OF(HF_PB_##kind_),   \
                                               .probe = offsetof(kinds, member_),                     \
                                               .probe_shift = 64 - 8 * sizeof(((kinds *)0)->member_), \
    }
#define LIST_OF(number_, kind_, member_, idx_)                                                                     \
    {                                                                                                              \
        FIELD(number_, 2, kind_, member_), .shape = HF_PB_LIST, .put = HF_PB_PUT_LIST,                             \
                                           .probe = offsetof(kinds, member_) + sizeof(void *), .list_idx = (idx_), \
    }
#define ONEOF_OF(number_, wire_, kind_, member_, run_)                                                               \
    {                                                                                                                \
        FIELD(number_, wire_, kind_, member_), .shape = HF_PB_ONEOF, .put = PUT_OF(HF_PB_##kind_),                   \
                                               .case_offset = offsetof(kinds, one_case),                             \
                                               .probe = offsetof(kinds, one_case), .probe_shift = 32, .run = (run_), \
    }

static const hf_pb_field KINDS_FIELDS[] = {
    SINGLE_OF(1, 0, BOOL, a_bool),         SINGLE_OF(2, 0, SINT32, a_sint32),   SINGLE_OF(3, 0, SINT64, a_sint64),
    SINGLE_OF(4, 5, FIXED32, a_fixed32),   SINGLE_OF(5, 1, FIXED64, a_fixed64), SINGLE_OF(6, 5, SFIXED32, a_sfixed32),
    SINGLE_OF(7, 1, SFIXED64, a_sfixed64), SINGLE_OF(8, 5, FLOAT, a_float),     SINGLE_OF(9, 1, DOUBLE, a_double),
    SINGLE_OF(10, 0, UINT32, a_uint32),    SINGLE_OF(11, 0, UINT64, a_uint64),  SINGLE_OF(12, 0, INT32, a_int32),
    LIST_OF(13, BOOL, bools, 0),           LIST_OF(14, SINT32, sint32s, 1),     LIST_OF(15, SINT64, sint64s, 2),
    LIST_OF(16, FIXED32, fixed32s, 3),     LIST_OF(17, FIXED64, fixed64s, 4),   LIST_OF(18, INT32, int32s, 5),
    LIST_OF(19, FLOAT, floats, 6),         LIST_OF(20, DOUBLE, doubles, 7),     LIST_OF(21, STRING, strs, 8),
    ONEOF_OF(22, 0, INT64, one_int64, 3),  ONEOF_OF(23, 2, STRING, one_str, 2), ONEOF_OF(24, 2, DURATION, one_span, 1),
};
static const hf_pb_name KINDS_NAMES[HF_COUNT_OF(KINDS_FIELDS)] = {{"f", "f"}, {"f", "f"}};
static const uint8_t KINDS_INDEX[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                      13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24};
static const hf_pb_type KINDS = {.name = "kinds",
                                 .fields = KINDS_FIELDS,
                                 .names = KINDS_NAMES,
                                 .index = KINDS_INDEX,
                                 .size = sizeof(kinds),
                                 .unknown_offset = offsetof(kinds, unknown),
                                 .index_count = sizeof KINDS_INDEX,
                                 .field_count = HF_COUNT_OF(KINDS_FIELDS)};

#endif
