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

typedef struct writer {
    uint8_t *at;  /* where the next byte goes */
    uint8_t *end; /* of the room in the buffer; the byte behind it is for the NUL */
    hf_buf *buf;
} writer;

static void put_message(writer *w, const hf_pb_type *type, const char *msg);

static inline size_t offset_of(const writer *w)
{
    return (size_t)(w->at - (uint8_t *)w->buf->data);
}

static inline void look_at_buffer(writer *w, size_t len)
{
    w->at = (uint8_t *)w->buf->data + len;
    w->end = (uint8_t *)w->buf->data + w->buf->capacity - 1;
}

/* After a failure there is no room any more: every put does nothing. */
static HF_NOINLINE bool grow(writer *w, size_t len)
{
    if (w->buf->status != HF_OK) {
        return false;
    }
    w->buf->len = offset_of(w);
    if (!hf_buf_grow(w->buf, len)) {
        w->end = w->at;
        return false;
    }
    look_at_buffer(w, w->buf->len);
    return true;
}

static inline bool reserve(writer *w, size_t len)
{
    return HF_LIKELY((size_t)(w->end - w->at) >= len) || grow(w, len);
}

/* There is room. Writes four bytes and steps over those that belong to the tag. */
static inline void set_tag(writer *w, const hf_pb_field *field)
{
    (void)hf_pb_set32(w->at, field->tag);
    w->at += field->tag_len;
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
static inline void set_number(writer *w, hf_pb_wire wire, uint64_t bits)
{
    if (wire == HF_PB_WIRE_VARINT) {
        w->at = hf_pb_set_varint(w->at, bits);
    } else if (wire == HF_PB_WIRE_64) {
        w->at = hf_pb_set64(w->at, bits);
    } else {
        w->at = hf_pb_set32(w->at, (uint32_t)bits);
    }
}

static inline void put_varint(writer *w, const hf_pb_field *field, uint64_t value)
{
    if (reserve(w, FIXED_LEN_MAX)) {
        set_tag(w, field);
        w->at = hf_pb_set_varint(w->at, value);
    }
}

static inline void put_number(writer *w, const hf_pb_field *field, uint64_t bits)
{
    if (reserve(w, FIXED_LEN_MAX)) {
        set_tag(w, field);
        set_number(w, (hf_pb_wire)(field->tag & 7), bits);
    }
}

static inline void put_str(writer *w, const hf_pb_field *field, hf_str str)
{
    if (HF_UNLIKELY(str.len > SIZE_MAX - FIXED_LEN_MAX) || !reserve(w, FIXED_LEN_MAX + str.len)) {
        return;
    }
    set_tag(w, field);
    w->at = hf_pb_set_varint(w->at, str.len);
    if (str.len > 0) {
        memcpy(w->at, str.data, str.len);
        w->at += str.len;
    }
}

static inline void put_time(writer *w, const hf_pb_field *field, const char *at)
{
    hf_pb_timestamp time;
    memcpy(&time, at, sizeof time);
    if (!reserve(w, 2 * FIXED_LEN_MAX)) {
        return;
    }
    set_tag(w, field);
    uint8_t *len = w->at++;
    if (time.seconds != 0) {
        *w->at++ = 0x08;
        w->at = hf_pb_set_varint(w->at, (uint64_t)time.seconds);
    }
    if (time.nanos != 0) {
        *w->at++ = 0x10;
        w->at = hf_pb_set_varint(w->at, (uint64_t)(int64_t)time.nanos);
    }
    *len = (uint8_t)(w->at - len - 1);
}

/* Fills in the length of the bytes written since offset `mark`, and moves these on if one byte is not enough for it. */
static inline void close_length(writer *w, size_t mark)
{
    size_t len = offset_of(w) - mark - 1;
    if (HF_LIKELY(len < 0x80)) {
        w->buf->data[mark] = (char)len;
        return;
    }
    size_t extra = hf_pb_varint_len(len) - 1;
    if (!reserve(w, extra)) {
        return;
    }
    uint8_t *start = (uint8_t *)w->buf->data + mark;
    memmove(start + 1 + extra, start + 1, len);
    (void)hf_pb_set_varint(start, len);
    w->at += extra;
}

static inline void put_child(writer *w, const hf_pb_field *field, const char *msg)
{
    if (!reserve(w, FIXED_LEN_MAX)) {
        return;
    }
    set_tag(w, field);
    size_t mark = offset_of(w);
    w->at++;
    put_message(w, field->of.type, msg);
    if (HF_LIKELY(w->buf->status == HF_OK)) {
        close_length(w, mark);
    }
}

/* ---- Fields ---------------------------------------------------------------------------------------------------- */

static void put_packed(writer *w, const hf_pb_field *field, hf_pb_list list)
{
    hf_pb_kind kind = (hf_pb_kind)field->kind;
    hf_pb_wire wire = hf_pb_kind_wire(kind);
    size_t size = hf_pb_kind_size(kind);
    if (!reserve(w, FIXED_LEN_MAX)) {
        return;
    }
    set_tag(w, field);
    size_t mark = offset_of(w);
    w->at++;
    for (size_t i = 0; i < list.count; i++) {
        if (!reserve(w, HF_PB_VARINT_LEN_MAX)) {
            return;
        }
        set_number(w, wire, number_bits(kind, (const char *)list.items + i * size));
    }
    close_length(w, mark);
}

static HF_NOINLINE void put_list(writer *w, const hf_pb_field *field, hf_pb_list list)
{
    if (hf_pb_kind_wire((hf_pb_kind)field->kind) != HF_PB_WIRE_BYTES) {
        put_packed(w, field, list);
        return;
    }
    size_t size = hf_pb_item_size(field);
    const char *item = list.items;
    for (size_t i = 0; i < list.count; i++, item += size) {
        if (field->kind == HF_PB_MESSAGE) {
            put_child(w, field, item);
        } else {
            put_str(w, field, hf_pb_str_at(item));
        }
    }
}

/* Writes a field, even if it is zero. One jump by its kind: this is where most of the time of a commit's encoding goes. */
static inline void put_field(writer *w, const hf_pb_field *field, const char *msg)
{
    const char *at = msg + field->offset;
    if (HF_UNLIKELY(field->shape >= HF_PB_LIST)) {
        put_list(w, field, hf_pb_list_at(at));
        return;
    }
    switch ((hf_pb_kind)field->kind) {
    case HF_PB_STRING:
    case HF_PB_BYTES:
        put_str(w, field, hf_pb_str_at(at));
        return;
    case HF_PB_MESSAGE: {
        const char *child = hf_pb_ptr_at(at);
        if (child != NULL) {
            put_child(w, field, child);
        }
        return;
    }
    case HF_PB_TIMESTAMP:
    case HF_PB_DURATION:
        if (at[offsetof(hf_pb_timestamp, has)] != 0) {
            put_time(w, field, at);
        }
        return;
    case HF_PB_INT64:
    case HF_PB_UINT64:
        put_varint(w, field, load64(at));
        return;
    case HF_PB_INT32:
    case HF_PB_ENUM:
        put_varint(w, field, (uint64_t)(int64_t)(int32_t)load32(at)); /* negative ones take ten bytes */
        return;
    case HF_PB_BOOL:
        put_varint(w, field, *at != 0);
        return;
    case HF_PB_UINT32:
    case HF_PB_SINT32:
    case HF_PB_SINT64:
    case HF_PB_FIXED32:
    case HF_PB_FIXED64:
    case HF_PB_SFIXED32:
    case HF_PB_SFIXED64:
    case HF_PB_FLOAT:
    case HF_PB_DOUBLE:
        put_number(w, field, number_bits((hf_pb_kind)field->kind, at));
        return;
    }
}

/* A message with unknown fields: those with smaller numbers go before a field, the rest to the end. */
static HF_NOINLINE void put_with_unknown(writer *w, const hf_pb_type *type, const char *msg, hf_str unknown)
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
            if (reserve(w, raw.whole.len)) {
                memcpy(w->at, raw.whole.data, raw.whole.len);
                w->at += raw.whole.len;
            }
            has_raw = hf_pb_next(&rest, &raw);
        }
        put_field(w, field, msg);
    }
    if (has_raw) {
        size_t len = (size_t)(unknown.data + unknown.len - raw.whole.data);
        if (reserve(w, len)) {
            memcpy(w->at, raw.whole.data, len);
            w->at += len;
        }
    }
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

static void put_message(writer *w, const hf_pb_type *type, const char *msg)
{
    hf_str unknown = hf_pb_str_at(msg + type->unknown_offset);
    if (HF_UNLIKELY(unknown.len > 0)) {
        put_with_unknown(w, type, msg, unknown);
        return;
    }
    const hf_pb_field *field = type->fields;
    const hf_pb_field *end = field + type->field_count;
    bool is_entry = type->look == HF_PB_LOOK_ENTRY; /* both its fields are always written */
    while (field < end) {
        if (field->run != 0) {
            const hf_pb_field *chosen = chosen_in_run(type, field, msg);
            if (chosen != NULL) {
                put_field(w, chosen, msg);
            }
            field += field->run;
            continue;
        }
        if (hf_pb_probe(field, msg) || is_entry) {
            put_field(w, field, msg);
        }
        field++;
    }
}

/* ---- Messages -------------------------------------------------------------------------------------------------- */

static void begin(writer *w, hf_buf *out)
{
    w->buf = out;
    if (out->data != NULL) {
        look_at_buffer(w, out->len);
    } else {
        w->at = w->end = NULL;
    }
}

static void finish(writer *w, hf_buf *out, size_t len_before)
{
    if (out->status != HF_OK) {
        out->len = len_before; /* all or nothing */
    } else if (out->data != NULL) {
        out->len = offset_of(w);
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
    begin(&w, out);
    put_message(&w, type, msg);
    finish(&w, out, before);
}

void hf_pb_encode_field(uint32_t number, const hf_pb_type *type, const void *msg, hf_buf *out)
{
    hf_assert(number >= 1 && number <= HF_PB_NUMBER_MAX);
    if (out->status != HF_OK) {
        return;
    }
    size_t before = out->len;
    writer w;
    begin(&w, out);
    if (reserve(&w, FIXED_LEN_MAX)) {
        w.at = hf_pb_set_varint(w.at, (uint64_t)number << 3 | HF_PB_WIRE_BYTES);
        size_t mark = offset_of(&w);
        w.at++;
        put_message(&w, type, msg);
        if (out->status == HF_OK) {
            close_length(&w, mark);
        }
    }
    finish(&w, out, before);
}
