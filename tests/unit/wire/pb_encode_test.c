/* The encoder against a second one that is only simple: it knows nothing of probes and ways of writing, and each message is a buffer of its
 * own. Random messages of all types, with what a caller may set and a decoder never makes; into buffers that grow at any place, find no memory,
 * or are full. */
#include "support/support.h"

#include "proto/pb.h"
#include "unit/wire/pb_kinds.h"
#include "unit/wire/pb_random.h"

/* ---- The simple encoder ------------------------------------------------------------------------------------------ */

static void put_varint(hf_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        hf_buf_putc(out, (char)(value | 0x80));
    }
    hf_buf_putc(out, (char)value);
}

static void put_tag(hf_buf *out, const hf_pb_field *field, hf_pb_wire wire)
{
    put_varint(out, (uint64_t)field->number << 3 | wire);
}

static void put_bytes(hf_buf *out, const hf_pb_field *field, hf_str bytes)
{
    put_tag(out, field, HF_PB_WIRE_BYTES);
    put_varint(out, bytes.len);
    hf_buf_put(out, bytes.data, bytes.len);
}

static uint64_t bits_at(const hf_pb_field *field, const char *at)
{
    uint64_t bits = 0;
    memcpy(&bits, at, hf_pb_kind_size((hf_pb_kind)field->kind));
    return bits;
}

static void put_number(hf_buf *out, const hf_pb_field *field, const char *at)
{
    hf_pb_kind kind = (hf_pb_kind)field->kind;
    uint64_t bits = bits_at(field, at);
    if (kind == HF_PB_INT32 || kind == HF_PB_ENUM) {
        bits = (uint64_t)(int64_t)(int32_t)(uint32_t)bits;
    } else if (kind == HF_PB_SINT32) {
        bits = (uint32_t)((uint32_t)bits << 1) ^ ((bits >> 31 & 1) != 0 ? UINT32_MAX : 0);
    } else if (kind == HF_PB_SINT64) {
        bits = bits << 1 ^ ((bits >> 63) != 0 ? UINT64_MAX : 0);
    }
    if (hf_pb_kind_wire(kind) == HF_PB_WIRE_VARINT) {
        put_varint(out, bits);
    } else {
        hf_buf_put(out, &bits, hf_pb_kind_size(kind));
    }
}

static void simple_message(const hf_pb_type *type, const char *msg, hf_buf *out);

static void put_child(hf_buf *out, const hf_pb_field *field, const char *msg)
{
    hf_buf inner;
    hf_buf_init(&inner, heap(), SIZE_MAX / 2);
    simple_message(field->of.type, msg, &inner);
    put_bytes(out, field, hf_str_of_len(inner.data, inner.len));
    hf_buf_deinit(&inner);
}

static void put_time(hf_buf *out, const hf_pb_field *field, const char *at)
{
    hf_buf inner;
    hf_pb_timestamp time;
    memcpy(&time, at, sizeof time);
    hf_buf_init(&inner, heap(), 100);
    if (time.seconds != 0) {
        hf_buf_putc(&inner, 0x08);
        put_varint(&inner, (uint64_t)time.seconds);
    }
    if (time.nanos != 0) {
        hf_buf_putc(&inner, 0x10);
        put_varint(&inner, (uint64_t)(int64_t)time.nanos);
    }
    if (time.has) {
        put_bytes(out, field, hf_str_of_len(inner.data, inner.len));
    }
    hf_buf_deinit(&inner);
}

static void put_value(hf_buf *out, const hf_pb_field *field, const char *at)
{
    switch ((hf_pb_kind)field->kind) {
    case HF_PB_STRING:
    case HF_PB_BYTES:
        put_bytes(out, field, hf_pb_str_at(at));
        break;
    case HF_PB_MESSAGE:
        if (hf_pb_ptr_at(at) != NULL) {
            put_child(out, field, hf_pb_ptr_at(at));
        }
        break;
    case HF_PB_TIMESTAMP:
    case HF_PB_DURATION:
        put_time(out, field, at);
        break;
    default:
        put_tag(out, field, hf_pb_kind_wire((hf_pb_kind)field->kind));
        put_number(out, field, at);
        break;
    }
}

static void put_list(hf_buf *out, const hf_pb_field *field, hf_pb_list list)
{
    hf_buf packed;
    hf_buf_init(&packed, heap(), SIZE_MAX / 2);
    bool is_packed = hf_pb_kind_wire((hf_pb_kind)field->kind) != HF_PB_WIRE_BYTES;
    for (size_t i = 0; i < list.count; i++) {
        const char *item = (const char *)list.items + i * hf_pb_item_size(field);
        if (is_packed) {
            put_number(&packed, field, item);
        } else if (field->kind == HF_PB_MESSAGE) {
            put_child(out, field, item);
        } else {
            put_bytes(out, field, hf_pb_str_at(item));
        }
    }
    if (is_packed && list.count > 0) {
        put_bytes(out, field, hf_str_of_len(packed.data, packed.len));
    }
    hf_buf_deinit(&packed);
}

static bool is_there(const hf_pb_field *field, const char *msg)
{
    const char *at = msg + field->offset;
    switch ((hf_pb_kind)field->kind) {
    case HF_PB_STRING:
    case HF_PB_BYTES:
        return hf_pb_str_at(at).len > 0;
    case HF_PB_MESSAGE:
    case HF_PB_TIMESTAMP:
    case HF_PB_DURATION:
        return true; /* it is seen when it is written */
    default:
        return bits_at(field, at) != 0;
    }
}

static void simple_message(const hf_pb_type *type, const char *msg, hf_buf *out)
{
    hf_str rest = hf_pb_str_at(msg + type->unknown_offset);
    hf_pb_raw raw = {0};
    bool has_raw = hf_pb_next(&rest, &raw);
    for (uint32_t i = 0; i <= type->field_count; i++) {
        const hf_pb_field *field = &type->fields[i];
        while (has_raw && (i == type->field_count || raw.number < field->number)) {
            hf_buf_put(out, raw.whole.data, raw.whole.len);
            has_raw = hf_pb_next(&rest, &raw);
        }
        if (i == type->field_count) {
            break;
        }
        if (field->shape == HF_PB_LIST || field->shape == HF_PB_MAP) {
            put_list(out, field, hf_pb_list_at(msg + field->offset));
        } else if (field->shape == HF_PB_ONEOF ? hf_pb_case_of(field, msg) == field->number
                                               : type->look == HF_PB_LOOK_ENTRY || is_there(field, msg)) {
            put_value(out, field, msg + field->offset);
        }
    }
}

/* ---- Messages that no decoder makes ------------------------------------------------------------------------------ */

/* Empties members: the value of a oneof or of an entry, a text with len 0. Now and then a text is long. */
static void twist(random_maker *m, const hf_pb_type *type, char *msg)
{
    for (const hf_pb_field *field = type->fields; field < type->fields + type->field_count; field++) {
        char *at = msg + field->offset;
        bool is_one = field->shape == HF_PB_ONEOF;
        if (is_one && hf_pb_case_of(field, msg) != field->number) {
            continue;
        }
        if (field->shape == HF_PB_LIST || field->shape == HF_PB_MAP) {
            hf_pb_list list = hf_pb_list_at(at);
            for (size_t i = 0; i < list.count && field->kind == HF_PB_MESSAGE; i++) {
                twist(m, field->of.type, (char *)list.items + i * field->of.type->size);
            }
            continue;
        }
        bool is_text = field->kind == HF_PB_STRING || field->kind == HF_PB_BYTES;
        if ((is_one || type->look == HF_PB_LOOK_ENTRY || is_text) && hf_rng_below(&m->rng, 4) == 0) {
            memset(at, 0, hf_pb_kind_size((hf_pb_kind)field->kind));
        } else if (is_text && hf_rng_below(&m->rng, 60) == 0) {
            static const size_t LENS[] = {126, 127, 128, 129, 16382, 16383, 16384, 16385, 70000};
            size_t len = LENS[hf_rng_below(&m->rng, HF_COUNT_OF(LENS))];
            char *data = hf_arena_zero(m->arena, len, 1);
            hf_str str = hf_str_of_len(data, len);
            memcpy(at, &str, sizeof str);
        } else if (field->kind == HF_PB_MESSAGE && hf_pb_ptr_at(at) != NULL) {
            twist(m, field->of.type, hf_pb_ptr_at(at));
        }
    }
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

/* Memory that is refused at the allocation number `refused`. */
typedef struct scarce {
    int count, refused;
} scarce;

static void *scarce_allocate(void *state, size_t len, size_t align)
{
    scarce *s = state;
    (void)align;
    return ++s->count == s->refused ? NULL : malloc(len);
}

typedef struct place {
    hf_allocator memory;
    size_t limit, before; /* bytes that are there already */
    bool is_field;
} place;

/* Nothing is added, or the bytes that the simple encoder has made. */
static hf_status encode_at(const place *p, const hf_pb_type *type, const void *msg, hf_str expected)
{
    static char text[400];
    hf_buf out;
    memset(text, 'p', sizeof text);
    hf_buf_init(&out, p->memory, p->limit);
    hf_buf_put(&out, text, p->before);
    size_t before = out.len;
    if (p->is_field) {
        hf_pb_encode_field(7, type, msg, &out);
    } else {
        hf_pb_encode(type, msg, &out);
    }
    hf_status status = hf_buf_status(&out);
    size_t added = out.len - before;
    bool is_good = status == HF_OK
                       ? added == expected.len &&
                             memcmp(hf_buf_text(&out) + before, expected.data != NULL ? expected.data : "", added) == 0
                       : added == 0;
    HF_CHECK_SAY(is_good, "%s: status %d, %zu bytes, and %zu of the simple encoder", type->name, (int)status, added,
                 expected.len);
    HF_CHECK(before == 0 || memcmp(out.data, text, before) == 0);
    HF_CHECK(out.len <= p->limit && (out.data == NULL || out.data[out.len] == '\0'));
    hf_buf_deinit(&out);
    return status;
}

static void one_message(uint64_t seed)
{
    hf_arena arena;
    hf_buf simple, field;
    hf_arena_init(&arena, heap());
    hf_buf_init(&simple, heap(), SIZE_MAX / 2);
    hf_buf_init(&field, heap(), SIZE_MAX / 2);
    random_maker m = {.rng = {seed}, .arena = &arena, .budget = seed % 11 == 0 ? 2000 : 150};
    const hf_pb_type *type = seed % 7 == 0 ? &KINDS : hf_pb_types[seed % hf_pb_type_count];
    char *msg = hf_arena_zero(&arena, type->size, 8);
    random_message(&m, type, msg, 0);
    twist(&m, type, msg);
    simple_message(type, msg, &simple);
    put_bytes(&field, &(const hf_pb_field){.number = 7}, hf_str_of_len(simple.data, simple.len));

    place p = {.memory = heap(), .limit = SIZE_MAX / 2, .before = hf_rng_below(&m.rng, 400)};
    for (int i = 0; i < 2; i++) {
        p.is_field = i == 1;
        hf_str expected = i == 0 ? hf_str_of_len(simple.data, simple.len) : hf_str_of_len(field.data, field.len);
        p.memory = heap();
        p.limit = SIZE_MAX / 2;
        HF_CHECK(encode_at(&p, type, msg, expected) == HF_OK);

        scarce memory = {.refused = 1 + (p.before > 0)};
        p.memory = (hf_allocator){scarce_allocate, heap_release, &memory};
        hf_status status = HF_ERR_NOMEM;
        for (; status == HF_ERR_NOMEM; memory.refused++) {
            memory.count = 0;
            status = encode_at(&p, type, msg, expected);
            HF_CHECK((status == HF_ERR_NOMEM) == (memory.count >= memory.refused));
        }
        HF_CHECK(status == HF_OK);

        p.memory = heap();
        for (size_t room = 0; room < expected.len; room += 1 + hf_rng_below(&m.rng, expected.len / 8 + 1)) {
            p.limit = p.before + room;
            HF_CHECK(encode_at(&p, type, msg, expected) == HF_ERR_TOO_BIG);
        }
        for (size_t more = 0; more <= 64;
             more++) { /* pb.h: it may be refused if it would end within 64 bytes of the limit */
            p.limit = p.before + expected.len + more;
            status = encode_at(&p, type, msg, expected);
            HF_CHECK(status == HF_OK || (status == HF_ERR_TOO_BIG && more < 64));
        }
    }
    hf_buf_deinit(&simple);
    hf_buf_deinit(&field);
    hf_arena_deinit(&arena);
}

/* wire-W1, wire-W5 */
static void the_bytes_are_those_of_a_simple_encoder_or_none(void **state)
{
    (void)state;
    hf_each_seed("messages and buffers", 3000, one_message);
}

static void one_varint(uint64_t value)
{
    hf_buf simple, out;
    hf_buf_init(&simple, heap(), 64);
    hf_buf_init(&out, heap(), 64);
    put_varint(&simple, value);
    hf_pb_put_varint(&out, value);
    assert_int_equal(out.len, hf_pb_varint_len(value));
    assert_int_equal(out.len, simple.len);
    assert_memory_equal(out.data, simple.data, out.len);
    hf_buf_deinit(&simple);
    hf_buf_deinit(&out);
}

/* Each has at most two bits that differ from all those below the highest. */
static void varints_of_every_length_are_those_of_a_simple_encoder(void **state)
{
    (void)state;
    for (unsigned high = 0; high < 64; high++) {
        for (unsigned low = 0; low <= high; low++) {
            uint64_t one = UINT64_C(1) << high;
            uint64_t two = one | UINT64_C(1) << low;
            one_varint(one);
            one_varint(two);
            one_varint(one - 1);
            one_varint((two - 1) | one);
            one_varint(~two);
        }
    }
    one_varint(UINT64_MAX);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(the_bytes_are_those_of_a_simple_encoder_or_none),
    cmocka_unit_test(varints_of_every_length_are_those_of_a_simple_encoder),
};

int main(int argc, char **argv)
{
    return hf_test_main("pb_encode", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
