/* Bytes to structs, in one pass over the bytes.
 *
 * A message is read by read_message into a struct that was cleared before. The table finds the field of a tag by its
 * number. A tag without a field, or with another wire type than its field, is an unknown field and is kept unchanged.
 *
 * Repeated fields become arrays whose length must be known before the first element is decoded into them. At the first
 * element of a list the rest of the message is skimmed for further ones (count_ahead), and a bit in the frame says that
 * room has been made: so n elements cost two passes and no copy. Unknown fields work alike: as long as they are
 * neighbours they are just a piece of the input; when the first gap shows, the rest is skimmed for their total length.
 *
 * Both have to copy earlier elements only if a message comes in several parts, which must be merged. No normal writer
 * does that, but an attacker might send thousands of parts, and each would copy everything before it. So the number of
 * copied bytes is bounded by a multiple of the input (wire-W4; README.md has the invariants).
 *
 * Nothing outside [at, end) of the message at hand is read (wire-W2). Time is linear in the input but for a factor, the
 * number of lists in a message type (wire-W4). */
#include "wire/pb_private.h"

#include <string.h>

/* store_number copies these unchanged from the wire. */
_Static_assert(sizeof(bool) == 1 && sizeof(float) == 4 && sizeof(double) == 8, "as the wire has them");
_Static_assert(HF_PB_DOUBLE < HF_PB_KIND_COUNT && HF_PB_DURATION == HF_PB_KIND_COUNT - 1, "the last kind is counted");

#define COPIED_FACTOR 16 /* how often merging may copy the input: see wire-W4 */

typedef struct reader {
    hf_op *op;            /* where failures are recorded */
    hf_arena *arena;      /* lists, sub-messages, gathered unknown fields */
    const uint8_t *start; /* of the whole input, for offsets in error messages */
    size_t copied;        /* bytes copied for merging */
    size_t copied_max;
    bool drops_unknown;
} reader;

/* One message that is being read. */
typedef struct frame {
    reader *r;
    const hf_pb_type *type;
    const uint8_t *end; /* of its bytes */
    char *msg;          /* the struct */
    uint64_t made_room; /* bit n: list n has room for all elements up to the end */
    bool gathers;       /* unknown fields are collected in the arena, with room for all of them */
    int depth;
} frame;

static hf_status read_message(reader *r, const hf_pb_type *type, const uint8_t *at, const uint8_t *end, char *msg,
                              int depth);

static HF_NOINLINE hf_status malformed(const frame *f, const hf_pb_field *field, const uint8_t *at, const char *what)
{
    const char *name = field != NULL ? f->type->names[field - f->type->fields].name : "?";
    return hf_fail(f->r->op, HF_ERR_INVALID, "%s.%s: %s at byte %zu", f->type->name, name, what,
                   (size_t)(at - f->r->start));
}

static HF_NOINLINE hf_status no_memory(const frame *f)
{
    return hf_fail(f->r->op, HF_ERR_NOMEM, "no memory for a %s", f->type->name);
}

static inline const hf_pb_field *find_field(const hf_pb_type *type, uint64_t number)
{
    if (HF_UNLIKELY(number >= type->index_count)) {
        return NULL;
    }
    unsigned place = type->index[number];
    return place != 0 ? &type->fields[place - 1] : NULL;
}

/* Whether a field may have this wire type. Numbers in a list may be packed or single. */
static inline bool is_readable(const hf_pb_field *field, hf_pb_wire wire)
{
    hf_pb_wire own = (hf_pb_wire)(field->tag & 7);
    return HF_LIKELY(wire == own) ||
           (field->shape == HF_PB_LIST && wire == hf_pb_kind_wire((hf_pb_kind)field->kind) && wire != HF_PB_WIRE_BYTES);
}

/* ---- Single values --------------------------------------------------------------------------------------------- */

/* Stores a number that has been read: `bits` is the varint or the fixed bytes. */
static inline void store_number(hf_pb_kind kind, uint64_t bits, void *at)
{
    int64_t zigzag = 0;
    int32_t zigzag32 = 0;
    bool truth = false;
    uint32_t low = (uint32_t)bits;
    switch (kind) {
    case HF_PB_BOOL:
        truth = bits != 0;
        memcpy(at, &truth, sizeof truth);
        return;
    case HF_PB_INT32:
    case HF_PB_UINT32:
    case HF_PB_FIXED32:
    case HF_PB_SFIXED32:
    case HF_PB_FLOAT:
    case HF_PB_ENUM:
        memcpy(at, &low, sizeof low);
        return;
    case HF_PB_SINT32:
        zigzag32 = (int32_t)hf_pb_unzigzag(low);
        memcpy(at, &zigzag32, sizeof zigzag32);
        return;
    case HF_PB_SINT64:
        zigzag = hf_pb_unzigzag(bits);
        memcpy(at, &zigzag, sizeof zigzag);
        return;
    case HF_PB_INT64:
    case HF_PB_UINT64:
    case HF_PB_FIXED64:
    case HF_PB_SFIXED64:
    case HF_PB_DOUBLE:
        memcpy(at, &bits, sizeof bits);
        return;
    case HF_PB_STRING:
    case HF_PB_BYTES:
    case HF_PB_MESSAGE:
    case HF_PB_TIMESTAMP:
    case HF_PB_DURATION:
        break;
    }
    hf_panic("kind is a number", __FILE__, __LINE__);
}

/* Reads a number's bits. NULL: malformed. */
static inline const uint8_t *get_bits(hf_pb_wire wire, const uint8_t *at, const uint8_t *end, uint64_t *ret_bits)
{
    if (wire == HF_PB_WIRE_VARINT) {
        return hf_pb_get_varint(at, end, ret_bits);
    }
    if (wire == HF_PB_WIRE_64) {
        if (end - at < 8) {
            return NULL;
        }
        *ret_bits = hf_pb_load64(at);
        return at + 8;
    }
    if (end - at < 4) {
        return NULL;
    }
    *ret_bits = hf_pb_load32(at);
    return at + 4;
}

/* Timestamp or Duration: two numbers. Fields that it does not have are dropped. */
static hf_status read_time(const frame *f, const hf_pb_field *field, const uint8_t *at, const uint8_t *end, char *to)
{
    hf_pb_timestamp time;
    memcpy(&time, to, sizeof time); /* parts are merged */
    time.has = true;
    while (at < end) {
        uint64_t value = 0;
        const uint8_t *here = at;
        if (end - at >= 2 && (*at == 0x08 || *at == 0x10)) {
            at = hf_pb_get_varint(at + 1, end, &value);
            if (HF_UNLIKELY(at == NULL)) {
                return malformed(f, field, here, "a malformed number");
            }
            if (*here == 0x08) {
                time.seconds = (int64_t)value;
            } else {
                time.nanos = (int32_t)value;
            }
            continue;
        }
        hf_pb_raw other;
        hf_str rest = hf_str_of_len(at, (size_t)(end - at));
        if (!hf_pb_next(&rest, &other)) {
            return malformed(f, field, here, "a malformed field");
        }
        at += other.whole.len;
    }
    memcpy(to, &time, sizeof time);
    return HF_OK;
}

/* A value with a length, in a struct or as an element of a list. */
static inline hf_status read_bytes(frame *f, const hf_pb_field *field, const uint8_t *at, const uint8_t *end, char *to,
                                   bool is_item)
{
    if (field->kind == HF_PB_MESSAGE) {
        char *msg = to;
        if (!is_item) {
            msg = hf_pb_ptr_at(to);
            if (HF_LIKELY(msg == NULL)) {
                msg = hf_arena_zero(f->r->arena, field->of.type->size, HF_PB_ALIGN);
                if (HF_UNLIKELY(msg == NULL)) {
                    return no_memory(f);
                }
                memcpy(to, &msg, sizeof msg);
            }
        }
        if (HF_UNLIKELY(f->depth >= HF_PB_DEPTH_MAX)) {
            return malformed(f, field, at, "messages are nested too deep");
        }
        return at < end ? read_message(f->r, field->of.type, at, end, msg, f->depth + 1) : HF_OK;
    }
    if (field->kind == HF_PB_TIMESTAMP || field->kind == HF_PB_DURATION) {
        return read_time(f, field, at, end, to);
    }
    hf_str str = hf_str_of_len(at, (size_t)(end - at));
    memcpy(to, &str, sizeof str);
    return HF_OK;
}

/* ---- Lists ----------------------------------------------------------------------------------------------------- */

static size_t count_packed(hf_pb_wire wire, const uint8_t *at, const uint8_t *end)
{
    if (wire == HF_PB_WIRE_64) {
        return (size_t)(end - at) / 8;
    }
    if (wire == HF_PB_WIRE_32) {
        return (size_t)(end - at) / 4;
    }
    size_t count = 0;
    for (; at < end; at++) {
        count += *at < 0x80;
    }
    return count;
}

/* Number of elements of this field from `at` (behind a tag with this wire type) to the end of the message. A malformed
 * field ends the count: reading will report it. */
static size_t count_ahead(const frame *f, const hf_pb_field *field, hf_pb_wire wire, const uint8_t *at)
{
    hf_pb_wire own = hf_pb_kind_wire((hf_pb_kind)field->kind);
    uint64_t number = field->number;
    size_t count = 0;
    for (;;) {
        const uint8_t *next = hf_pb_skip(at, f->end, (uint32_t)number, wire, 0);
        if (next == NULL) {
            return count;
        }
        if (number == field->number) {
            if (wire == own) {
                count++;
            } else if (wire == HF_PB_WIRE_BYTES) {
                uint64_t len = 0;
                at = hf_pb_get_varint(at, f->end, &len);
                count += count_packed(own, at, next);
            }
        }
        uint64_t tag = 0;
        at = next < f->end ? hf_pb_get_varint(next, f->end, &tag) : NULL;
        if (at == NULL || tag < 8 || tag > UINT32_MAX) {
            return count;
        }
        number = tag >> 3;
        wire = (hf_pb_wire)(tag & 7);
    }
}

/* Whether merging may copy that much more. */
static bool may_copy(reader *r, size_t len)
{
    r->copied += len;
    return r->copied <= r->copied_max;
}

static hf_status make_room(frame *f, const hf_pb_field *field, hf_pb_wire wire, const uint8_t *at, hf_pb_list *list)
{
    size_t size = hf_pb_item_size(field);
    size_t count = count_ahead(f, field, wire, at);
    f->made_room |= UINT64_C(1) << field->list_idx;
    if (count == 0) {
        return HF_OK;
    }
    if (list->count > 0 && !may_copy(f->r, list->count * size)) {
        return malformed(f, field, at, "too many parts of one message");
    }
    /* Sizes are below 64 KiB and counts below the input's length: no overflow. */
    char *items = hf_arena_take(f->r->arena, (list->count + count) * size, HF_PB_ALIGN);
    if (items == NULL) {
        return no_memory(f);
    }
    if (list->count > 0) {
        memcpy(items, list->items, list->count * size);
    }
    memset(items + list->count * size, 0, count * size);
    list->items = items;
    return HF_OK;
}

static hf_status read_packed(const frame *f, const hf_pb_field *field, const uint8_t *at, const uint8_t *end,
                             hf_pb_list *list)
{
    size_t size = hf_pb_kind_size((hf_pb_kind)field->kind);
    hf_pb_wire wire = hf_pb_kind_wire((hf_pb_kind)field->kind);
    while (at < end) {
        uint64_t bits = 0;
        const uint8_t *here = at;
        at = get_bits(wire, at, end, &bits);
        if (at == NULL) {
            return malformed(f, field, here, "a malformed number");
        }
        store_number((hf_pb_kind)field->kind, bits, (char *)list->items + list->count * size);
        list->count++;
    }
    return HF_OK;
}

static hf_status read_items(frame *f, const hf_pb_field *field, hf_pb_wire wire, const uint8_t *tag_end,
                            const uint8_t *at, const uint8_t *end)
{
    char *member = f->msg + field->offset;
    hf_pb_list list = hf_pb_list_at(member);
    if ((f->made_room >> field->list_idx & 1) == 0) {
        HF_TRY(make_room(f, field, wire, tag_end, &list));
    }
    hf_status status = HF_OK;
    if (hf_pb_kind_wire((hf_pb_kind)field->kind) != HF_PB_WIRE_BYTES) {
        if (wire == HF_PB_WIRE_BYTES) {
            status = read_packed(f, field, at, end, &list);
        } else {
            status = read_packed(f, field, tag_end, end, &list);
        }
    } else {
        status = read_bytes(f, field, at, end, (char *)list.items + list.count * hf_pb_item_size(field), true);
        list.count++;
    }
    memcpy(member, &list, sizeof list);
    return status;
}

/* ---- Unknown fields -------------------------------------------------------------------------------------------- */

/* Bytes of unknown fields from `at` to the end of the message. */
static size_t unknown_ahead(const frame *f, const uint8_t *at)
{
    size_t len = 0;
    hf_str rest = hf_str_of_len(at, (size_t)(f->end - at));
    hf_pb_raw raw;
    while (hf_pb_next(&rest, &raw)) {
        const hf_pb_field *field = find_field(f->type, raw.number);
        if (field == NULL || !is_readable(field, raw.wire)) {
            len += raw.whole.len;
        }
    }
    return len;
}

static hf_status keep_unknown(frame *f, const uint8_t *start, const uint8_t *end)
{
    char *member = f->msg + f->type->unknown_offset;
    hf_str unknown = hf_pb_str_at(member);
    size_t len = (size_t)(end - start);
    if (unknown.len == 0) {
        unknown = hf_str_of_len(start, len);
    } else if (!f->gathers && unknown.data + unknown.len == (const char *)start) {
        unknown.len += len; /* neighbours */
    } else {
        if (!f->gathers) {
            if (!may_copy(f->r, unknown.len)) {
                return malformed(f, NULL, start, "too many parts of one message");
            }
            char *gathered = hf_arena_take(f->r->arena, unknown.len + unknown_ahead(f, start), 1);
            if (gathered == NULL) {
                return no_memory(f);
            }
            memcpy(gathered, unknown.data, unknown.len);
            unknown.data = gathered;
            f->gathers = true;
        }
        memcpy((char *)(uintptr_t)unknown.data + unknown.len, start, len);
        unknown.len += len;
    }
    memcpy(member, &unknown, sizeof unknown);
    return HF_OK;
}

/* ---- Messages -------------------------------------------------------------------------------------------------- */

/* Another member of the union was set: this one starts from zero. */
static inline void choose_case(const hf_pb_field *field, char *msg)
{
    if (hf_pb_case_of(field, msg) != field->number) {
        memset(msg + field->offset, 0, hf_pb_kind_size((hf_pb_kind)field->kind));
        memcpy(msg + field->case_offset, &field->number, sizeof field->number);
    }
}

static HF_NOINLINE hf_status read_unknown(frame *f, uint64_t tag, const uint8_t *start, const uint8_t *at,
                                          const uint8_t **ret_next)
{
    if (tag < 8 || tag > UINT32_MAX) {
        return malformed(f, NULL, start, "a field number out of range");
    }
    *ret_next = hf_pb_skip(at, f->end, (uint32_t)(tag >> 3), (hf_pb_wire)(tag & 7), 0);
    if (*ret_next == NULL) {
        return malformed(f, NULL, start, "a malformed field");
    }
    return f->r->drops_unknown ? HF_OK : keep_unknown(f, start, *ret_next);
}

/* The field behind a tag. `*ret_next` is where the next one starts. */
static inline hf_status read_field(frame *f, const hf_pb_field *field, hf_pb_wire wire, const uint8_t *at,
                                   const uint8_t **ret_next)
{
    const uint8_t *tag_end = at;
    const uint8_t *next = NULL;
    uint64_t bits = 0;
    if (wire == HF_PB_WIRE_BYTES) {
        at = hf_pb_get_varint(at, f->end, &bits);
        if (HF_UNLIKELY(at == NULL || bits > (uint64_t)(f->end - at))) {
            return malformed(f, field, tag_end, "a length beyond the end");
        }
        next = at + bits;
    } else {
        next = get_bits(wire, at, f->end, &bits);
        if (HF_UNLIKELY(next == NULL)) {
            return malformed(f, field, tag_end, "a malformed number");
        }
    }
    *ret_next = next;
    if (field->shape >= HF_PB_LIST) {
        return read_items(f, field, wire, tag_end, at, next);
    }
    if (field->shape == HF_PB_ONEOF) {
        choose_case(field, f->msg);
    }
    if (wire == HF_PB_WIRE_BYTES) {
        return read_bytes(f, field, at, next, f->msg + field->offset, false);
    }
    store_number((hf_pb_kind)field->kind, bits, f->msg + field->offset);
    return HF_OK;
}

/* Most fields: a text, or a number that is a varint, and neither a list nor of a oneof. Returns where the next field starts; NULL: it is another
 * one, or malformed, and nothing was done. */
static HF_ALWAYS_INLINE const uint8_t *read_plain(const hf_pb_field *field, hf_pb_wire wire, const uint8_t *at,
                                                  const uint8_t *end, char *msg)
{
    uint64_t bits = 0;
    if (field->shape != HF_PB_SINGLE || wire != (field->tag & 7) || field->put > HF_PB_PUT_32) {
        return NULL;
    }
    at = hf_pb_get_varint(at, end, &bits);
    if (HF_UNLIKELY(at == NULL)) {
        return NULL;
    }
    if (field->put == HF_PB_PUT_STR) {
        if (HF_UNLIKELY(bits > (uint64_t)(end - at))) {
            return NULL;
        }
        hf_str str = hf_str_of_len(at, (size_t)bits);
        memcpy(msg + field->offset, &str, sizeof str);
        return at + bits;
    }
    if (field->put == HF_PB_PUT_64) {
        memcpy(msg + field->offset, &bits, sizeof bits);
    } else {
        uint32_t low = (uint32_t)bits;
        memcpy(msg + field->offset, &low, sizeof low);
    }
    return at;
}

static hf_status read_message(reader *r, const hf_pb_type *type, const uint8_t *at, const uint8_t *end, char *msg,
                              int depth)
{
    frame f = {.r = r, .type = type, .end = end, .msg = msg, .depth = depth};
    while (at < end) {
        const uint8_t *start = at;
        uint64_t tag = 0;
        at = hf_pb_get_varint(at, end, &tag);
        if (HF_UNLIKELY(at == NULL)) {
            return malformed(&f, NULL, start, "a malformed tag");
        }
        const hf_pb_field *field = find_field(type, tag >> 3);
        hf_pb_wire wire = (hf_pb_wire)(tag & 7);
        const uint8_t *next = field != NULL ? read_plain(field, wire, at, end, msg) : NULL;
        if (HF_LIKELY(next != NULL)) {
            at = next;
        } else if (HF_LIKELY(field != NULL && is_readable(field, wire))) {
            HF_TRY(read_field(&f, field, wire, at, &at));
        } else {
            HF_TRY(read_unknown(&f, tag, start, at, &at));
        }
    }
    return HF_OK;
}

static hf_status decode(hf_op *op, const hf_pb_type *type, hf_str bytes, hf_arena *arena, bool drops_unknown,
                        void *ret_msg)
{
    const uint8_t *start = (const uint8_t *)bytes.data;
    reader r = {.op = op, .arena = arena, .start = start, .drops_unknown = drops_unknown};
    if (__builtin_mul_overflow(bytes.len, COPIED_FACTOR, &r.copied_max)) {
        r.copied_max = SIZE_MAX;
    }
    memset(ret_msg, 0, type->size);
    if (arena->status != HF_OK) { /* `bytes` may be an incomplete copy in this arena */
        return hf_fail(op, HF_ERR_NOMEM, "out of memory");
    }
    return bytes.len > 0 ? read_message(&r, type, start, start + bytes.len, ret_msg, 1) : HF_OK;
}

hf_status hf_pb_decode(hf_op *op, const hf_pb_type *type, hf_str bytes, hf_arena *arena, void *ret_msg)
{
    return decode(op, type, bytes, arena, false, ret_msg);
}

hf_status hf_pb_decode_some(hf_op *op, const hf_pb_type *type, hf_str bytes, hf_arena *arena, void *ret_msg)
{
    return decode(op, type, bytes, arena, true, ret_msg);
}
