/* The codecs: protobuf by tables, the same messages as JSON, and JSON itself.
 *
 * An input is two bytes that pick a message type, one byte that says how to read, and what is read. Types are picked by a hash
 * of their names, so that inputs keep their meaning when messages are added.
 *
 * Whatever is accepted is a message like any other: it is written, read again, copied, compared, and comes out the same. What is
 * refused is refused with a sentence. Memory is bounded by the length of the input. */
#include "fuzz/fuzz.h"
#include "fuzz/mutate.h"

#include "base/env.h"
#include "base/rng.h"
#include "history/pb_json_read.h"
#include "proto/pb.h"
#include "wire/json_read.h"
#include "wire/pb_json.h"
#include "wire/pb_private.h"
#include "json/json_read.h"

enum { TYPES_MAX = 2048, HEAD_LEN = 3 };

/* ---- Types by their names ---------------------------------------------------------------------------------------------- */

typedef struct named_type {
    uint16_t hash;
    const hf_pb_type *type;
} named_type;

static named_type types[TYPES_MAX]; /* by hash */
static size_t type_size_max;

static int by_hash(const void *a, const void *b)
{
    const named_type *first = a;
    const named_type *second = b;
    return first->hash != second->hash ? (first->hash > second->hash) - (first->hash < second->hash)
                                       : strcmp(first->type->name, second->type->name);
}

static void sort_types(void)
{
    FUZZ_CHECK(hf_pb_type_count <= TYPES_MAX, "%zu types", hf_pb_type_count);
    for (size_t i = 0; i < hf_pb_type_count; i++) {
        const hf_pb_type *type = hf_pb_types[i];
        types[i] = (named_type){(uint16_t)hf_hash_bytes(1, type->name, strlen(type->name)), type};
        type_size_max = type->size > type_size_max ? type->size : type_size_max;
    }
    qsort(types, hf_pb_type_count, sizeof types[0], by_hash);
}

/* The first type whose hash is not below the bytes. */
static const hf_pb_type *type_of(const uint8_t bytes[2])
{
    uint16_t hash = (uint16_t)(bytes[0] | bytes[1] << 8);
    size_t i = 0;
    while (i < hf_pb_type_count && types[i].hash < hash) {
        i++;
    }
    return types[i < hf_pb_type_count ? i : 0].type;
}

/* ---- Messages ---------------------------------------------------------------------------------------------------------- */

typedef struct trial {
    fuzz_memory memory;
    hf_arena arena;
    const hf_pb_type *type;
} trial;

static void *new_message(trial *t)
{
    void *msg = hf_arena_zero(&t->arena, t->type->size, HF_PB_ALIGN);
    FUZZ_CHECK(msg != NULL, "no memory");
    return msg;
}

static hf_str written(trial *t, const void *msg)
{
    hf_buf buf;
    hf_buf_init(&buf, fuzz_heap(&t->memory), SIZE_MAX / 4);
    hf_pb_encode(t->type, msg, &buf);
    FUZZ_CHECK(buf.status == HF_OK, "%s cannot be written", t->type->name);
    hf_str copy = hf_arena_copy(&t->arena, hf_str_of_len(buf.data, buf.len));
    hf_buf_deinit(&buf);
    return copy;
}

static hf_status written_as_json(trial *t, const void *msg, hf_str *ret_text)
{
    hf_buf buf;
    hf_buf_init(&buf, fuzz_heap(&t->memory), SIZE_MAX / 4);
    hf_status status = hf_pb_json_write(t->type, msg, &buf);
    FUZZ_CHECK(status == HF_OK || status == HF_ERR_INVALID, "status %d", (int)status);
    *ret_text = hf_arena_copy(&t->arena, hf_str_of_len(buf.data, buf.len));
    hf_buf_deinit(&buf);
    return status;
}

/* Some messages cannot be read from the JSON that was written of them: a map that has a key twice, a key with a NUL byte, and
 * messages that are nested deeper than JSON may be. */
static bool may_be_refused(const hf_op *op)
{
    return strstr(op->message, "duplicate key") != NULL || strstr(op->message, "NUL byte") != NULL ||
           strstr(op->message, "nested") != NULL;
}

static void check_json(trial *t, const void *msg)
{
    hf_op op;
    hf_op_init(&op);
    hf_str text = {0};
    hf_str again = {0};
    if (written_as_json(t, msg, &text) != HF_OK) {
        return;
    }
    void *read = new_message(t);
    if (hf_pb_json_read(&op, t->type, text, &t->arena, read) != HF_OK) {
        FUZZ_CHECK(may_be_refused(&op), "%s: %s: %.*s", t->type->name, op.message, HF_STR_ARGS(text));
        return;
    }
    FUZZ_CHECK(written_as_json(t, read, &again) == HF_OK && hf_str_equal(text, again), "%s: %.*s became %.*s",
               t->type->name, HF_STR_ARGS(text), HF_STR_ARGS(again));
}

static void check_message(trial *t, const void *msg)
{
    hf_op op;
    hf_op_init(&op);
    void *copy = new_message(t);
    void *read = new_message(t);
    FUZZ_CHECK(hf_pb_copy(t->type, msg, &t->arena, copy) == HF_OK, "no copy");
    FUZZ_CHECK(hf_pb_equal(t->type, msg, copy), "a copy of %s is another", t->type->name);
    hf_str bytes = written(t, msg);
    hf_status status = hf_pb_decode(&op, t->type, bytes, &t->arena, read);
    FUZZ_CHECK(status == HF_OK, "what was written cannot be read: %s", op.message);
    FUZZ_CHECK(hf_pb_equal(t->type, msg, read), "%s is another when it is read again", t->type->name);
    FUZZ_CHECK(hf_str_equal(bytes, written(t, read)) && hf_str_equal(bytes, written(t, copy)),
               "%s is written differently", t->type->name);
    check_json(t, msg);
}

static void check_refusal(hf_status status, const hf_op *op)
{
    FUZZ_CHECK(status == HF_ERR_INVALID && op->status == status && op->message[0] != '\0', "status %d: %s", (int)status,
               op->message);
}

static void read_bytes(trial *t, hf_str bytes)
{
    hf_op op;
    hf_op_init(&op);
    void *msg = new_message(t);
    hf_status status = hf_pb_decode(&op, t->type, bytes, &t->arena, msg);
    FUZZ_CHECK(t->memory.most <= 65536 + 4 * (bytes.len + 1) * (type_size_max + 64), "%zu bytes of memory for %zu",
               t->memory.most, bytes.len);
    if (status == HF_OK) {
        check_message(t, msg);
    } else {
        check_refusal(status, &op);
    }
    hf_pb_raw field;
    size_t left = bytes.len;
    while (bytes.len > 0 && hf_pb_next(&bytes, &field)) {
        FUZZ_CHECK(bytes.len < left && field.number > 0, "a field without length or number");
        left = bytes.len;
    }
    FUZZ_CHECK(status != HF_OK || bytes.len == 0, "fields that the decoder takes cannot be walked");
}

static void read_json(trial *t, hf_str text)
{
    hf_op op;
    hf_op_init(&op);
    void *msg = new_message(t);
    hf_status status = hf_pb_json_read(&op, t->type, text, &t->arena, msg);
    FUZZ_CHECK(t->memory.most <= 65536 + 4 * (text.len + 1) * (type_size_max + 64), "%zu bytes of memory for %zu",
               t->memory.most, text.len);
    if (status == HF_OK) {
        check_message(t, msg);
    } else {
        check_refusal(status, &op);
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------------- */

/* Touches every byte of a tree, and its depth. */
static uint64_t walk(const hf_json_value *value, int depth)
{
    uint64_t sum = (uint64_t)value->kind;
    FUZZ_CHECK(depth <= HF_TREE_DEPTH_MAX + 1, "depth %d", depth);
    switch (value->kind) {
    case HF_JSON_NULL:
    case HF_JSON_BOOL:
    case HF_JSON_INT:
    case HF_JSON_REAL:
        break;
    case HF_JSON_STRING:
        sum += hf_hash_bytes(1, value->string.data, value->string.len);
        break;
    case HF_JSON_ARRAY:
        for (size_t i = 0; i < value->array.count; i++) {
            sum += walk(&value->array.items[i], depth + 1);
        }
        break;
    case HF_JSON_OBJECT:
        for (size_t i = 0; i < value->object.count; i++) {
            sum += walk(&value->object.members[i].value, depth + 1);
            sum += hf_hash_bytes(1, value->object.members[i].key.data, value->object.members[i].key.len);
        }
        break;
    }
    return sum;
}

static bool is_json(hf_str text)
{
    return hf_json_check(NULL, text, hf_env_memory(hf_env_posix())) == HF_OK;
}

static void read_any_json(trial *t, hf_str text)
{
    hf_op op;
    hf_op_init(&op);
    hf_json_value value;
    hf_status status = hf_json_read(&op, text, &t->arena, &value);
    if (status != HF_OK) {
        check_refusal(status, &op);
        (void)is_json(text); /* it takes keys twice and numbers of any size */
        return;
    }
    FUZZ_CHECK(is_json(text), "jansson reads a text that is refused here");
    static volatile uint64_t sink;
    sink = walk(&value, 1);
    (void)sink;
}

bool fuzz_is_message(const uint8_t *data, size_t size, size_t *ret_head)
{
    *ret_head = HEAD_LEN;
    return size >= HEAD_LEN && data[2] % 4 < 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (type_size_max == 0) {
        sort_types();
    }
    if (size < HEAD_LEN) {
        return 0;
    }
    trial t = {.type = type_of(data)};
    hf_str bytes = hf_str_of_len(data + HEAD_LEN, size - HEAD_LEN);
    char *exact = fuzz_copy(bytes);
    bytes.data = exact;
    hf_arena_init(&t.arena, fuzz_heap(&t.memory));
    switch (data[2] % 4) {
    case 0:
    case 1:
        read_bytes(&t, bytes);
        break;
    case 2:
        read_json(&t, bytes);
        break;
    default:
        read_any_json(&t, bytes);
        break;
    }
    hf_arena_deinit(&t.arena);
    free(exact);
    fuzz_memory_check(&t.memory, SIZE_MAX);
    return 0;
}
