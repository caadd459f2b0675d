/* Protocol Buffers by tables: bytes to plain C structs and back.
 *
 * tools/protogen turns proto/ into `proto/pb.h`: a struct and a table for each message. The functions here take the
 * table and a pointer to the struct:
 *
 *     hf_pb_history_event event;
 *     HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, bytes, arena, &event));
 *     hf_pb_encode(&hf_pb_history_event_type, &event, &buf);
 *
 * In the structs string and bytes fields are hf_str, sub-messages are pointers (NULL = absent), repeated fields are
 * {items, count}, maps are lists of entries, a oneof is a union and a `..._case` that holds the number of the field
 * that is set (0 = none). Timestamp and Duration are members of the struct itself and have a flag for their presence. A
 * struct that is all zero is the empty message. Fields that the tables do not know are kept, and written again in
 * order. */
#ifndef HF_WIRE_PB_H
#define HF_WIRE_PB_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/op.h"
#include "base/str.h"

#include <holdfast/time.h>

#define HF_PB_DEPTH_MAX 100 /* nested messages: other readers allow as many, and our recursion fits a fiber's stack */

/* ---- Values ---------------------------------------------------------------------------------------------------- */

/* A point in time; any range that the wire can carry. */
typedef struct hf_pb_timestamp {
    int64_t seconds; /* since 1970-01-01 UTC */
    int32_t nanos;   /* 0 to 999,999,999, forward in time */
    bool has;        /* present on the wire, also when zero */
} hf_pb_timestamp;

/* A length of time. */
typedef struct hf_pb_duration {
    int64_t seconds;
    int32_t nanos; /* same sign as `seconds` */
    bool has;      /* present on the wire, also when zero */
} hf_pb_duration;

typedef struct hf_pb_str_list {
    hf_str *items;
    size_t count;
} hf_pb_str_list;

typedef struct hf_pb_bool_list {
    bool *items;
    size_t count;
} hf_pb_bool_list;

typedef struct hf_pb_int32_list {
    int32_t *items;
    size_t count;
} hf_pb_int32_list;

typedef struct hf_pb_int64_list {
    int64_t *items;
    size_t count;
} hf_pb_int64_list;

typedef struct hf_pb_uint32_list {
    uint32_t *items;
    size_t count;
} hf_pb_uint32_list;

typedef struct hf_pb_uint64_list {
    uint64_t *items;
    size_t count;
} hf_pb_uint64_list;

typedef struct hf_pb_float_list {
    float *items;
    size_t count;
} hf_pb_float_list;

typedef struct hf_pb_double_list {
    double *items;
    size_t count;
} hf_pb_double_list;

/* ---- Tables ---------------------------------------------------------------------------------------------------- */

typedef struct hf_pb_type hf_pb_type;
typedef struct hf_pb_enum hf_pb_enum;

typedef enum hf_pb_kind {
    HF_PB_BOOL,
    HF_PB_INT32,
    HF_PB_INT64,
    HF_PB_UINT32,
    HF_PB_UINT64,
    HF_PB_SINT32,
    HF_PB_SINT64,
    HF_PB_FIXED32,
    HF_PB_FIXED64,
    HF_PB_SFIXED32,
    HF_PB_SFIXED64,
    HF_PB_FLOAT,
    HF_PB_DOUBLE,
    HF_PB_ENUM,
    HF_PB_STRING,
    HF_PB_BYTES,
    HF_PB_MESSAGE,
    HF_PB_TIMESTAMP,
    HF_PB_DURATION
} hf_pb_kind;
#define HF_PB_KIND_COUNT 19

typedef enum hf_pb_shape {
    HF_PB_SINGLE, /* zero = absent */
    HF_PB_ONEOF,  /* set when the case holds its number */
    HF_PB_LIST,   /* repeated */
    HF_PB_MAP     /* repeated entry messages */
} hf_pb_shape;

/* How a field is written, and read unless it is of a oneof: by its kind, or as a list. */
typedef enum hf_pb_put {
    HF_PB_PUT_STR,   /* text, bytes */
    HF_PB_PUT_64,    /* a varint of 64 bits */
    HF_PB_PUT_32,    /* a varint with sign of 32 bits: int32, enum */
    HF_PB_PUT_CHILD, /* a message */
    HF_PB_PUT_TIME,  /* timestamp, duration */
    HF_PB_PUT_LIST,  /* repeated, maps */
    HF_PB_PUT_NUMBER /* any other number */
} hf_pb_put;

/* The form of a message in JSON. */
typedef enum hf_pb_look {
    HF_PB_LOOK_OBJECT, /* its fields */
    HF_PB_LOOK_ENTRY,  /* an entry of a map: key and value, both always written */
    HF_PB_LOOK_ANY,    /* google.protobuf.Any */
    HF_PB_LOOK_WRAPPER /* google.protobuf.DoubleValue and the like: the bare value */
} hf_pb_look;

typedef struct hf_pb_field {
    uint32_t number;
    uint32_t tag;         /* as it stands on the wire, first byte lowest; a list of numbers is packed */
    uint16_t offset;      /* of the member in the struct */
    uint16_t case_offset; /* of a oneof's case */
    uint16_t run;         /* oneof: how many fields of the same oneof follow in the table, this one included */
    uint8_t tag_len;      /* bytes of `tag` */
    uint8_t kind;         /* hf_pb_kind */
    uint8_t shape;        /* hf_pb_shape */
    uint8_t probe_shift;  /* bits of the word at `probe` that do not belong to the probed value */
    uint16_t
        probe; /* offset of a value that is zero when the field is absent: number, length, pointer, count, has; the case of a oneof */
    uint8_t list_idx; /* lists and maps: index among the lists and maps of the message, from 0 */
    uint8_t put;      /* hf_pb_put */
    union {
        const hf_pb_type *type; /* messages and map entries */
        const hf_pb_enum *set;  /* enums */
    } of;
} hf_pb_field;

typedef struct hf_pb_name {
    const char *name; /* "activity_id" */
    const char *json; /* "activityId" */
} hf_pb_name;

struct hf_pb_type {
    const char *name;          /* "temporal.api.common.v1.Payload" */
    const hf_pb_field *fields; /* by number */
    const hf_pb_name *names;   /* of the fields, in the same order */
    const uint8_t *index;      /* by number: place in `fields` + 1; 0 = there is no such field */
    uint32_t size;             /* of the struct */
    uint16_t unknown_offset;   /* of its last member, hf_str unknown */
    uint16_t index_count;      /* entries of `index` */
    uint8_t field_count;
    uint8_t look; /* hf_pb_look */
};

typedef struct hf_pb_enumerator {
    int32_t value;
    const char *name;  /* "EVENT_TYPE_TIMER_STARTED" */
    const char *brief; /* "TimerStarted" */
} hf_pb_enumerator;

struct hf_pb_enum {
    const char *name;              /* "temporal.api.enums.v1.EventType" */
    const hf_pb_enumerator *items; /* by value; aliases in the order written */
    size_t count;
};

/* ---- Messages -------------------------------------------------------------------------------------------------- */

/* Fills `*ret_msg` in place. Its strings point into `bytes`, which must live as long; lists and sub-messages are in the
 * arena. Enums are open, text is not checked for UTF-8. On failure `*ret_msg` is half filled and not to be used.
 * Fails: HF_ERR_INVALID (the error message names message, field and offset), HF_ERR_NOMEM. */
hf_status hf_pb_decode(hf_op *op, const hf_pb_type *type, hf_str bytes, hf_arena *arena, void *ret_msg);
/* The same, but fields that the tables do not know are dropped, in sub-messages, too. For a type that has some fields of another: what
 * its reader does not need costs little. */
hf_status hf_pb_decode_some(hf_op *op, const hf_pb_type *type, hf_str bytes, hf_arena *arena, void *ret_msg);
/* Appends the message; fields in the order of their numbers. The status is the buffer's; on failure nothing is added.
 * The encoder reserves more room than it needs: a message that would end within 64 bytes of the buffer's limit may be
 * refused. */
void hf_pb_encode(const hf_pb_type *type, const void *msg, hf_buf *out);
/* The same as a field of an outer message: tag, length, message. The bytes of a History are just one such field,
 * number 1, for each event. */
void hf_pb_encode_field(uint32_t number, const hf_pb_type *type, const void *msg, hf_buf *out);
/* A deep copy that shares nothing with `msg`. Fails: HF_ERR_NOMEM. */
hf_status hf_pb_copy(const hf_pb_type *type, const void *msg, hf_arena *arena, void *ret_msg);
/* Compares field by field: maps and unknown fields in order, numbers by their bits. */
bool hf_pb_equal(const hf_pb_type *type, const void *a, const void *b);

/* The name of an enum's value, "EVENT_TYPE_TIMER_STARTED"; NULL when it has none. */
const char *hf_pb_enum_name(const hf_pb_enum *set, int32_t value);
/* The short form, "TimerStarted"; NULL when it has none. */
const char *hf_pb_enum_brief(const hf_pb_enum *set, int32_t value);
/* The value of a name in either form. False: there is no such name. */
bool hf_pb_enum_value(const hf_pb_enum *set, hf_str name, int32_t *ret_value);

/* ---- Without tables -------------------------------------------------------------------------------------------- */

typedef enum hf_pb_wire {
    HF_PB_WIRE_VARINT = 0,
    HF_PB_WIRE_64 = 1,
    HF_PB_WIRE_BYTES = 2,
    HF_PB_WIRE_GROUP = 3,     /* an old way to nest */
    HF_PB_WIRE_GROUP_END = 4, /* never given to a caller */
    HF_PB_WIRE_32 = 5
} hf_pb_wire;

typedef struct hf_pb_raw {
    uint32_t number;
    hf_pb_wire wire;
    uint64_t value; /* varint, 32 and 64 bits */
    hf_str bytes;   /* HF_PB_WIRE_BYTES: the content; a group: its fields */
    hf_str whole;   /* the field with its tag */
} hf_pb_raw;

/* Takes the first field off `*rest`. False at the end, and if the next field is malformed: then rest->data is NULL. */
bool hf_pb_next(hf_str *rest, hf_pb_raw *ret_field);

void hf_pb_put_varint(hf_buf *out, uint64_t value);
void hf_pb_put_tag(hf_buf *out, uint32_t number, hf_pb_wire wire);
/* Writes a whole field. Unlike hf_pb_encode, these functions write zeros too. */
void hf_pb_put_uint(hf_buf *out, uint32_t number, uint64_t value);
void hf_pb_put_bytes(hf_buf *out, uint32_t number, hf_str bytes);

static inline uint64_t hf_pb_zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t hf_pb_unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* ---- Time ------------------------------------------------------------------------------------------------------ */

/* Present, and equal to `time`. */
static inline hf_pb_timestamp hf_pb_timestamp_of(hf_time time)
{
    int64_t seconds = time.ns / 1000000000;
    int64_t nanos = time.ns % 1000000000;
    if (nanos < 0) { /* before 1970 the fraction still counts forward */
        seconds--;
        nanos += 1000000000;
    }
    return (hf_pb_timestamp){seconds, (int32_t)nanos, true};
}

static inline hf_pb_duration hf_pb_duration_of(hf_span span)
{
    return (hf_pb_duration){span.ns / 1000000000, (int32_t)(span.ns % 1000000000), true};
}

/* Nanoseconds that stay at the bounds instead of wrapping. */
static inline int64_t hf_pb_ns_(int64_t seconds, int32_t nanos)
{
    int64_t ns = 0;
    if (__builtin_mul_overflow(seconds, INT64_C(1000000000), &ns) || __builtin_add_overflow(ns, nanos, &ns)) {
        return seconds < 0 ? INT64_MIN : INT64_MAX;
    }
    return ns;
}

/* 1970 when absent. */
static inline hf_time hf_pb_timestamp_time(hf_pb_timestamp at)
{
    return (hf_time){at.has ? hf_pb_ns_(at.seconds, at.nanos) : 0};
}

/* Zero when absent. */
static inline hf_span hf_pb_duration_span(hf_pb_duration span)
{
    return hf_nanoseconds(span.has ? hf_pb_ns_(span.seconds, span.nanos) : 0);
}

#endif
