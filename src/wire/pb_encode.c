/* Structs to bytes, in one pass over the struct.
 *
 * A sub-message is preceded by its length, which is known only afterwards. One byte is left for it; a message of 128
 * bytes or more is moved on by as many bytes as its length needs. That is one memmove for each level of a large message
 * and none for the small ones, which are most.
 *
 * Fields are written in the order of their numbers, and unknown fields are merged in at their place. So decoding and
 * encoding a message that was written in that order gives the same bytes. In the table the fields of a oneof are
 * neighbours: the whole run is skipped by checking the case once. */
#include "wire/pb_private.h"

#include <string.h>

#define FIXED_LEN_MAX 24 /* tag and length, or tag and number */

/* The place where the next byte goes is not in here: every function takes it and returns the next one, so that it stays in a register. */
typedef struct writer {
    uint8_t *end; /* of the room in the buffer; the byte behind it is for the NUL */
    hf_buf *buf;
} writer;

static uint8_t *put_message(writer *w, const hf_pb_type *type, const char *msg, uint8_t *at);

static inline size_t offset_of(const writer *w, const uint8_t *at)
{
    return (size_t)(at - (const uint8_t *)w->buf->data);
}

/* NULL: the buffer has failed. */
static HF_NOINLINE uint8_t *grow(writer *w, const uint8_t *at, size_t len)
{
    if (w->buf->status != HF_OK) {
        return NULL;
    }
    w->buf->len = offset_of(w, at);
    if (!hf_buf_grow(w->buf, len)) {
        return NULL;
    }
    w->end = (uint8_t *)w->buf->data + w->buf->capacity - 1;
    return (uint8_t *)w->buf->data + w->buf->len;
}

/* Where to write `len` bytes; NULL: the buffer has failed, and nothing more is written. */
static inline uint8_t *reserve(writer *w, uint8_t *at, size_t len)
{
    return HF_LIKELY((size_t)(w->end - at) >= len) ? at : grow(w, at, len);
}

/* There is room. Writes four bytes and steps over those that belong to the tag. */
static inline uint8_t *set_tag(uint8_t *at, const hf_pb_field *field)
{
    (void)hf_pb_set32(at, field->tag);
    return at + field->tag_len;
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

static inline uint64_t load32(const char *at)
{
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    return bits;
}

static inline uint64_t load64(const char *at)
{
    uint64_t bits;
    memcpy(&bits, at, sizeof bits);
    return bits;
}

/* A number as it is sent: the value of a varint, or the bits of a fixed number. */
static inline uint64_t number_bits(hf_pb_kind kind, const char *at)
{
    switch (kind) {
    case HF_PB_BOOL:
        return *at != 0;
    case HF_PB_INT32:
    case HF_PB_ENUM:
        return (uint64_t)(int64_t)(int32_t)load32(at); /* negative ones take ten bytes */
    case HF_PB_SINT32:
        return hf_pb_zigzag((int32_t)load32(at)) & UINT32_MAX;
    case HF_PB_SINT64:
        return hf_pb_zigzag((int64_t)load64(at));
    case HF_PB_UINT32:
    case HF_PB_FIXED32:
    case HF_PB_SFIXED32:
    case HF_PB_FLOAT:
        return load32(at);
    case HF_PB_INT64:
    case HF_PB_UINT64:
    case HF_PB_FIXED64:
    case HF_PB_SFIXED64:
    case HF_PB_DOUBLE:
        return load64(at);
    case HF_PB_STRING:
    case HF_PB_BYTES:
    case HF_PB_MESSAGE:
    case HF_PB_TIMESTAMP:
    case HF_PB_DURATION:
        break;
    }
    hf_panic("kind is a number", __FILE__, __LINE__);
}

/* There is room. */
static inline uint8_t *set_number(uint8_t *at, hf_pb_wire wire, uint64_t bits)
{
    return wire == HF_PB_WIRE_VARINT ? hf_pb_set_varint(at, bits)
           : wire == HF_PB_WIRE_64   ? hf_pb_set64(at, bits)
                                     : hf_pb_set32(at, (uint32_t)bits);
}

static inline uint8_t *put_varint(writer *w, const hf_pb_field *field, uint64_t value, uint8_t *at)
{
    uint8_t *to = reserve(w, at, FIXED_LEN_MAX);
    return to != NULL ? hf_pb_set_varint(set_tag(to, field), value) : at;
}

static HF_NOINLINE uint8_t *put_number(writer *w, const hf_pb_field *field, const char *msg, uint8_t *at)
{
    uint8_t *to = reserve(w, at, FIXED_LEN_MAX);
    uint64_t bits = number_bits((hf_pb_kind)field->kind, msg + field->offset);
    return to != NULL ? set_number(set_tag(to, field), (hf_pb_wire)(field->tag & 7), bits) : at;
}

static inline uint8_t *put_bytes(writer *w, hf_str bytes, uint8_t *at)
{
    uint8_t *to = reserve(w, at, bytes.len);
    if (to == NULL) {
        return at;
    }
    memcpy(to, bytes.data, bytes.len);
    return to + bytes.len;
}

static HF_ALWAYS_INLINE uint8_t *put_str(writer *w, const hf_pb_field *field, hf_str str, uint8_t *at)
{
    uint8_t *to = HF_LIKELY(str.len <= SIZE_MAX - FIXED_LEN_MAX) ? reserve(w, at, FIXED_LEN_MAX + str.len) : NULL;
    if (to == NULL) {
        return at;
    }
    to = hf_pb_set_varint(set_tag(to, field), str.len);
    if (str.len > 0) {
        memcpy(to, str.data, str.len);
    }
    return to + str.len;
}

static HF_ALWAYS_INLINE uint8_t *put_time(writer *w, const hf_pb_field *field, const char *member, uint8_t *at)
{
    hf_pb_timestamp time;
    memcpy(&time, member, sizeof time);
    uint8_t *to = time.has ? reserve(w, at, 2 * FIXED_LEN_MAX) : NULL;
    if (to == NULL) {
        return at;
    }
    uint8_t *len = set_tag(to, field);
    to = len + 1;
    if (time.seconds != 0) {
        *to++ = 0x08;
        to = hf_pb_set_varint(to, (uint64_t)time.seconds);
    }
    if (time.nanos != 0) {
        *to++ = 0x10;
        to = hf_pb_set_varint(to, (uint64_t)(int64_t)time.nanos);
    }
    *len = (uint8_t)(to - len - 1);
    return to;
}

/* Fills in the length of the bytes written since offset `mark`, and moves these on if one byte is not enough for it. */
static inline uint8_t *close_length(writer *w, size_t mark, uint8_t *at)
{
    size_t len = offset_of(w, at) - mark - 1;
    if (HF_LIKELY(len < 0x80)) {
        w->buf->data[mark] = (char)len;
        return at;
    }
    size_t extra = hf_pb_varint_len(len) - 1;
    uint8_t *to = reserve(w, at, extra);
    if (to == NULL) {
        return at;
    }
    uint8_t *start = (uint8_t *)w->buf->data + mark;
    memmove(start + 1 + extra, start + 1, len);
    uint8_t head[HF_PB_VARINT_LEN_MAX];
    (void)hf_pb_set_varint(head, len);
    memcpy(start, head, extra + 1);
    return to + extra;
}

static HF_ALWAYS_INLINE uint8_t *put_child(writer *w, const hf_pb_field *field, const char *msg, uint8_t *at)
{
    uint8_t *to = msg != NULL ? reserve(w, at, FIXED_LEN_MAX) : NULL;
    if (to == NULL) {
        return at;
    }
    to = set_tag(to, field);
    size_t mark = offset_of(w, to);
    to = put_message(w, field->of.type, msg, to + 1);
    return HF_LIKELY(w->buf->status == HF_OK) ? close_length(w, mark, to) : to;
}

/* ---- Fields ---------------------------------------------------------------------------------------------------- */

static uint8_t *put_packed(writer *w, const hf_pb_field *field, hf_pb_list list, uint8_t *at)
{
    hf_pb_kind kind = (hf_pb_kind)field->kind;
    hf_pb_wire wire = hf_pb_kind_wire(kind);
    size_t size = hf_pb_kind_size(kind);
    uint8_t *to = reserve(w, at, FIXED_LEN_MAX);
    if (to == NULL) {
        return at;
    }
    to = set_tag(to, field);
    size_t mark = offset_of(w, to);
    to++;
    for (size_t i = 0; i < list.count; i++) {
        uint8_t *next = reserve(w, to, HF_PB_VARINT_LEN_MAX);
        if (next == NULL) {
            return to;
        }
        to = set_number(next, wire, number_bits(kind, (const char *)list.items + i * size));
    }
    return close_length(w, mark, to);
}

static HF_NOINLINE uint8_t *put_list(writer *w, const hf_pb_field *field, const char *msg, uint8_t *at)
{
    hf_pb_list list = hf_pb_list_at(msg + field->offset);
    if (hf_pb_kind_wire((hf_pb_kind)field->kind) != HF_PB_WIRE_BYTES) {
        return put_packed(w, field, list, at);
    }
    size_t size = hf_pb_item_size(field);
    const char *item = list.items;
    for (size_t i = 0; i < list.count; i++, item += size) {
        at = field->kind == HF_PB_MESSAGE ? put_child(w, field, item, at) : put_str(w, field, hf_pb_str_at(item), at);
    }
    return at;
}

/* Writes a field, even if it is zero. This is where most of the time of a commit's encoding goes: the generator has decided how. */
static HF_ALWAYS_INLINE uint8_t *put_field(writer *w, const hf_pb_field *field, const char *msg, uint8_t *at)
{
    const char *member = msg + field->offset;
    switch ((hf_pb_put)field->put) {
    case HF_PB_PUT_STR:
        return put_str(w, field, hf_pb_str_at(member), at);
    case HF_PB_PUT_64:
        return put_varint(w, field, load64(member), at);
    case HF_PB_PUT_32:
        return put_varint(w, field, (uint64_t)(int64_t)(int32_t)load32(member), at); /* negative ones take ten bytes */
    case HF_PB_PUT_CHILD:
        return put_child(w, field, hf_pb_ptr_at(member), at);
    case HF_PB_PUT_TIME:
        return put_time(w, field, member, at);
    case HF_PB_PUT_LIST:
        return put_list(w, field, msg, at);
    case HF_PB_PUT_NUMBER:
        break;
    }
    return put_number(w, field, msg, at);
}

/* A message with unknown fields: those with smaller numbers go before a field, the rest to the end. */
static HF_NOINLINE uint8_t *put_with_unknown(writer *w, const hf_pb_type *type, const char *msg, hf_str unknown,
                                             uint8_t *at)
{
    const hf_pb_field *field = type->fields;
    const hf_pb_field *end = field + type->field_count;
    hf_str rest = unknown;
    hf_pb_raw raw = {0};
    bool has_raw = hf_pb_next(&rest, &raw);
    for (; field < end; field++) {
        if (!hf_pb_is_set(field, msg) && type->look != HF_PB_LOOK_ENTRY) {
            continue;
        }
        while (has_raw && raw.number < field->number) {
            at = put_bytes(w, raw.whole, at);
            has_raw = hf_pb_next(&rest, &raw);
        }
        at = put_field(w, field, msg, at);
    }
    if (has_raw) {
        size_t len = (size_t)(unknown.data + unknown.len - raw.whole.data);
        at = put_bytes(w, hf_str_of_len(raw.whole.data, len), at);
    }
    return at;
}

/* An entry of a map: both its fields are always written. */
static HF_NOINLINE uint8_t *put_entry(writer *w, const hf_pb_type *type, const char *msg, uint8_t *at)
{
    for (size_t i = 0; i < type->field_count; i++) {
        at = put_field(w, &type->fields[i], msg, at);
    }
    return at;
}

/* The field of this run of a oneof that is set; NULL = none of them. */
static inline const hf_pb_field *chosen_in_run(const hf_pb_type *type, const hf_pb_field *first, const char *msg)
{
    uint32_t number = hf_pb_case_of(first, msg);
    if (number < first->number || number > first[first->run - 1].number) {
        return NULL;
    }
    hf_assert(type->index[number] != 0);
    const hf_pb_field *chosen = &type->fields[type->index[number] - 1];
    hf_assert(chosen->shape == HF_PB_ONEOF && chosen->case_offset == first->case_offset);
    return chosen;
}

static uint8_t *put_message(writer *w, const hf_pb_type *type, const char *msg, uint8_t *at)
{
    hf_str unknown = hf_pb_str_at(msg + type->unknown_offset);
    if (HF_UNLIKELY(unknown.len > 0)) {
        return put_with_unknown(w, type, msg, unknown, at);
    }
    if (HF_UNLIKELY(type->look == HF_PB_LOOK_ENTRY)) {
        return put_entry(w, type, msg, at);
    }
    const hf_pb_field *field = type->fields;
    const hf_pb_field *end = field + type->field_count;
    while (field < end) {
        if (!hf_pb_probe(field, msg)) { /* most of them */
            field++;
        } else if (HF_LIKELY(field->run == 0)) {
            at = put_field(w, field++, msg, at);
        } else {
            const hf_pb_field *chosen = chosen_in_run(type, field, msg);
            if (chosen != NULL) {
                at = put_field(w, chosen, msg, at);
            }
            field += field->run;
        }
    }
    return at;
}

/* ---- Messages -------------------------------------------------------------------------------------------------- */

static uint8_t *begin(writer *w, hf_buf *out)
{
    w->buf = out;
    w->end = out->data != NULL ? (uint8_t *)out->data + out->capacity - 1 : NULL;
    return out->data != NULL ? (uint8_t *)out->data + out->len : NULL;
}

static void finish(const writer *w, hf_buf *out, size_t len_before, const uint8_t *at)
{
    if (out->status != HF_OK) {
        out->len = len_before; /* all or nothing */
    } else if (out->data != NULL) {
        out->len = offset_of(w, at);
        hf_assert(out->len >= len_before && out->len < out->capacity); /* wire-W5: the NUL has its place */
    }
    if (out->data != NULL) {
        out->data[out->len] = '\0';
    }
}

void hf_pb_encode(const hf_pb_type *type, const void *msg, hf_buf *out)
{
    if (out->status != HF_OK) {
        return;
    }
    size_t before = out->len;
    writer w;
    uint8_t *at = begin(&w, out);
    at = put_message(&w, type, msg, at);
    finish(&w, out, before, at);
}

void hf_pb_encode_field(uint32_t number, const hf_pb_type *type, const void *msg, hf_buf *out)
{
    hf_assert(number >= 1 && number <= HF_PB_NUMBER_MAX);
    if (out->status != HF_OK) {
        return;
    }
    size_t before = out->len;
    writer w;
    uint8_t *at = begin(&w, out);
    uint8_t *to = reserve(&w, at, FIXED_LEN_MAX);
    if (to != NULL) {
        to = hf_pb_set_varint(to, (uint64_t)number << 3 | HF_PB_WIRE_BYTES);
        size_t mark = offset_of(&w, to);
        at = put_message(&w, type, msg, to + 1);
        if (out->status == HF_OK) {
            at = close_length(&w, mark, at);
        }
    }
    finish(&w, out, before, at);
}
