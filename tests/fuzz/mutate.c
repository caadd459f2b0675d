/* How libFuzzer changes inputs that are fields of a protobuf message: a field is changed, dropped, doubled, moved or put in, at any
 * depth, and the lengths around it are written anew. Bytes that can be walked as fields are taken for a message; all other
 * bytes are left to libFuzzer. Without this nearly every change of a nested message would only break a length. */
#include "fuzz/mutate.h"

#include "base/rng.h"
#include "fuzz/fuzz.h"

enum { FIELDS_MAX = 256, DEPTH_MAX = 12 };

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2, size_t size2, uint8_t *out,
                                 size_t out_max, unsigned seed);

/* ---- Reading ----------------------------------------------------------------------------------------------------------- */

typedef struct fields {
    hf_pb_raw items[FIELDS_MAX];
    size_t count;
} fields;

/* False: that is not a message, or an empty one, or a very long one. */
static bool split(hf_str bytes, fields *ret_fields)
{
    ret_fields->count = 0;
    while (bytes.len > 0 && ret_fields->count < FIELDS_MAX &&
           hf_pb_next(&bytes, &ret_fields->items[ret_fields->count])) {
        ret_fields->count++;
    }
    return bytes.data != NULL && bytes.len == 0 && ret_fields->count > 0;
}

static bool is_message(const hf_pb_raw *field)
{
    hf_str rest = field->bytes;
    hf_pb_raw inner;
    while (rest.len > 0 && hf_pb_next(&rest, &inner)) {
    }
    return field->wire == HF_PB_WIRE_BYTES && field->bytes.len > 0 && rest.data != NULL && rest.len == 0;
}

/* ---- Values ------------------------------------------------------------------------------------------------------------ */

static uint64_t changed_number(hf_rng *rng, uint64_t value)
{
    static const uint64_t OFTEN[] = {
        0,
        1,
        2,
        3,
        127,
        128,
        UINT32_MAX,
        INT32_MAX,
        INT64_MAX,
        INT64_MIN,
        UINT64_MAX,
        INT64_MAX - 1,
        UINT64_C(1) << 31,
        UINT64_C(1) << 32,
        UINT64_C(1700000000000000000),
    };
    switch (hf_rng_below(rng, 6)) {
    case 0:
        return OFTEN[hf_rng_below(rng, HF_COUNT_OF(OFTEN))];
    case 1:
        return value + 1;
    case 2:
        return value - 1;
    case 3:
        return value ^ UINT64_C(1) << hf_rng_below(rng, 64);
    case 4:
        return hf_rng_below(rng, 64);
    default:
        return -value;
    }
}

static void put_fixed(hf_buf *out, uint64_t value, size_t len)
{
    hf_buf_put(out, &value, len); /* little endian, as this machine is */
}

static void put_value(hf_buf *out, uint32_t number, hf_pb_wire wire, uint64_t value)
{
    hf_pb_put_tag(out, number, wire);
    if (wire == HF_PB_WIRE_VARINT) {
        hf_pb_put_varint(out, value);
    } else {
        put_fixed(out, value, wire == HF_PB_WIRE_64 ? 8 : 4);
    }
}

static void put_any(hf_rng *rng, hf_buf *out)
{
    uint32_t number = 1 + (uint32_t)hf_rng_below(rng, 40);
    uint64_t kind = hf_rng_below(rng, 8);
    if (kind == 0) {
        put_value(out, number, HF_PB_WIRE_64, changed_number(rng, 0));
    } else if (kind < 5) {
        put_value(out, number, HF_PB_WIRE_VARINT, changed_number(rng, 0));
    } else {
        hf_pb_put_bytes(out, number, hf_str_of_len("\x08\x01\x10\x02", hf_rng_below(rng, 5)));
    }
}

/* Bytes that libFuzzer changes. */
static void put_mutated(hf_buf *out, hf_str bytes, size_t more)
{
    uint8_t *copy = malloc(bytes.len + more + 1);
    if (bytes.len > 0) {
        memcpy(copy, bytes.data, bytes.len);
    }
    size_t len = LLVMFuzzerMutate(copy, bytes.len, bytes.len + more);
    hf_buf_put(out, copy, len);
    free(copy);
}

/* ---- Changes ----------------------------------------------------------------------------------------------------------- */

static void put_changed(hf_rng *rng, hf_buf *out, hf_str bytes, int depth);

static void put_changed_field(hf_rng *rng, hf_buf *out, const hf_pb_raw *field, int depth)
{
    fuzz_memory memory = {0};
    hf_buf inner;
    switch (field->wire) {
    case HF_PB_WIRE_VARINT:
    case HF_PB_WIRE_64:
    case HF_PB_WIRE_32:
        put_value(out, field->number, field->wire, changed_number(rng, field->value));
        return;
    case HF_PB_WIRE_BYTES:
        hf_buf_init(&inner, fuzz_heap(&memory), SIZE_MAX / 4);
        if (depth < DEPTH_MAX && is_message(field) && hf_rng_below(rng, 8) != 0) {
            put_changed(rng, &inner, field->bytes, depth + 1);
        } else {
            put_mutated(&inner, field->bytes, 32);
        }
        hf_pb_put_bytes(out, field->number, hf_str_of_len(inner.data, inner.len));
        hf_buf_deinit(&inner);
        return;
    case HF_PB_WIRE_GROUP:
    case HF_PB_WIRE_GROUP_END:
        return; /* dropped */
    }
}

static void put_whole(hf_buf *out, const hf_pb_raw *field)
{
    hf_buf_put(out, field->whole.data, field->whole.len);
}

/* The content of one field under the number of another. */
static void put_renamed(hf_buf *out, const hf_pb_raw *field, uint32_t number)
{
    if (field->wire == HF_PB_WIRE_BYTES) {
        hf_pb_put_bytes(out, number, field->bytes);
    } else if (field->wire != HF_PB_WIRE_GROUP) {
        put_value(out, number, field->wire, field->value);
    }
}

/* One change of a message. */
static void put_changed(hf_rng *rng, hf_buf *out, hf_str bytes, int depth)
{
    fields *f = malloc(sizeof *f);
    uint64_t kind = hf_rng_below(rng, 20);
    if (!split(bytes, f) || kind == 0) {
        put_mutated(out, bytes, 32);
        free(f);
        return;
    }
    size_t at = (size_t)hf_rng_below(rng, f->count);
    size_t other = (size_t)hf_rng_below(rng, f->count);
    for (size_t i = 0; i < f->count; i++) {
        const hf_pb_raw *field = &f->items[i];
        if (kind == 2 && i == other) { /* doubled, perhaps elsewhere */
            put_whole(out, &f->items[at]);
        } else if (kind == 3 && i == at) {
            put_any(rng, out);
        }
        if (kind == 1 && i == at) {
            continue; /* dropped */
        } else if (kind == 4 && (i == at || i == other)) {
            put_whole(out, &f->items[i == at ? other : at]);
        } else if (kind == 5 && i == at) {
            put_renamed(out, field, 1 + (uint32_t)hf_rng_below(rng, 40));
        } else if (kind == 6 && i == at) {
            put_renamed(out, &f->items[other], field->number);
        } else if (kind > 6 && i == at) {
            put_changed_field(rng, out, field, depth);
        } else {
            put_whole(out, field);
        }
    }
    free(f);
}

/* A field of the second message goes into the first, at the same depth, where both have the same fields around it. */
static void put_crossed(hf_rng *rng, hf_buf *out, hf_str first, hf_str second, int depth)
{
    fields *f = malloc(2 * sizeof *f);
    fields *g = f + 1;
    if (!split(first, f) || !split(second, g)) {
        hf_buf_put(out, first.data, first.len);
        free(f);
        return;
    }
    size_t at = (size_t)hf_rng_below(rng, f->count);
    const hf_pb_raw *from = &g->items[hf_rng_below(rng, g->count)];
    bool goes_in = depth < DEPTH_MAX && f->items[at].number == from->number && is_message(&f->items[at]) &&
                   is_message(from) && hf_rng_below(rng, 8) != 0;
    bool replaces = hf_rng_below(rng, 2) == 0;
    for (size_t i = 0; i < f->count; i++) {
        if (i == at && goes_in) {
            fuzz_memory memory = {0};
            hf_buf inner;
            hf_buf_init(&inner, fuzz_heap(&memory), SIZE_MAX / 4);
            put_crossed(rng, &inner, f->items[i].bytes, from->bytes, depth + 1);
            hf_pb_put_bytes(out, from->number, hf_str_of_len(inner.data, inner.len));
            hf_buf_deinit(&inner);
            continue;
        }
        if (i == at) {
            put_whole(out, from);
        }
        if (i != at || !replaces) {
            put_whole(out, &f->items[i]);
        }
    }
    free(f);
}

/* ---- For libFuzzer ----------------------------------------------------------------------------------------------------- */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
    size_t head = 0;
    hf_rng rng = {seed};
    if (!fuzz_is_message(data, size, &head) || size == head || hf_rng_below(&rng, 32) == 0) {
        return LLVMFuzzerMutate(data, size, size_max);
    }
    fuzz_memory memory = {0};
    hf_buf out;
    hf_buf_init(&out, fuzz_heap(&memory), SIZE_MAX / 4);
    put_changed(&rng, &out, hf_str_of_len(data + head, size - head), 0);
    size_t len = head + out.len;
    if (out.status == HF_OK && len <= size_max) {
        memcpy(data + head, hf_buf_text(&out), out.len);
    } else {
        len = size;
    }
    hf_buf_deinit(&out);
    return len;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2, size_t size2, uint8_t *out,
                                 size_t out_max, unsigned seed)
{
    size_t head1 = 0;
    size_t head2 = 0;
    hf_rng rng = {seed};
    if (!fuzz_is_message(data1, size1, &head1) || !fuzz_is_message(data2, size2, &head2) || head1 > out_max) {
        return 0;
    }
    fuzz_memory memory = {0};
    hf_buf crossed;
    hf_buf_init(&crossed, fuzz_heap(&memory), SIZE_MAX / 4);
    put_crossed(&rng, &crossed, hf_str_of_len(data1 + head1, size1 - head1),
                hf_str_of_len(data2 + head2, size2 - head2), 0);
    size_t len = head1 + crossed.len;
    if (crossed.status == HF_OK && len <= out_max) {
        memcpy(out, data1, head1);
        memcpy(out + head1, hf_buf_text(&crossed), crossed.len);
    } else {
        len = 0;
    }
    hf_buf_deinit(&crossed);
    return len;
}
