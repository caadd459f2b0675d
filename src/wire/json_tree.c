/* A tree of a JSON text, by yajl. The text is checked first (json_read.h), with what yajl does not check; then yajl reads it once more, and each
 * token becomes a node. */
#include "wire/json_tree.h"

#include "wire/json_memory.h"
#include "wire/json_read.h"

#include <stdlib.h>
#include <yajl/yajl_parse.h>

enum { KEYS_COMPARED_MAX = 1000 }; /* of one object: more are data, such as a map, and not a message */

/* An element or member, until its list is complete. */
typedef struct node node;
struct node {
    node *next;
    hf_str key;
    hf_json_value value;
};

/* An open array or object. */
typedef struct level {
    bool is_array;
    node *first;
    node *last;
    size_t count;
    hf_str key; /* that of the value that comes next */
} level;

typedef struct builder {
    hf_json_memory memory;
    hf_json_value *root;
    hf_str twice; /* a key that an object has twice; empty = none was found */
    size_t depth; /* open levels; levels[0] is outside of all */
    level levels[HF_JSON_READ_DEPTH_MAX + 1];
} builder;

/* ---- Tokens ------------------------------------------------------------------------------------------------------------ */

static int put(builder *b, hf_json_value value)
{
    level *in = &b->levels[b->depth];
    if (b->depth == 0) {
        *b->root = value;
        return 1;
    }
    node *made = HF_ARENA_NEW(b->memory.arena, node);
    if (made == NULL) {
        hf_json_memory_fail(&b->memory);
    }
    *made = (node){.key = in->key, .value = value};
    if (in->last != NULL) {
        in->last->next = made;
    } else {
        in->first = made;
    }
    in->last = made;
    in->count++;
    return 1;
}

static int on_null(void *ctx)
{
    return put(ctx, (hf_json_value){.kind = HF_JSON_NULL});
}

static int on_bool(void *ctx, int truth)
{
    return put(ctx, (hf_json_value){.kind = HF_JSON_BOOL, .truth = truth != 0});
}

/* An integer that fits is one; everything else is a real. */
static int on_number(void *ctx, const char *text, size_t len)
{
    hf_str digits = hf_json_memory_copy(&((builder *)ctx)->memory, (const unsigned char *)text, len); /* with a NUL */
    bool is_negative = len > 0 && text[0] == '-';
    bool is_whole = true;
    int64_t number = 0;
    for (size_t i = is_negative; i < len && is_whole; i++) {
        is_whole = text[i] >= '0' && text[i] <= '9' && !__builtin_mul_overflow(number, 10, &number) &&
                   !__builtin_sub_overflow(number, text[i] - '0', &number); /* negative: the longer side */
    }
    is_whole = is_whole && (is_negative || !__builtin_sub_overflow(0, number, &number));
    return put(ctx, is_whole ? (hf_json_value){.kind = HF_JSON_INT, .integer = number}
                             : (hf_json_value){.kind = HF_JSON_REAL, .real = strtod(digits.data, NULL)});
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
    return put(ctx, (hf_json_value){.kind = HF_JSON_STRING,
                                    .string = hf_json_memory_copy(&((builder *)ctx)->memory, text, len)});
}

static int on_key(void *ctx, const unsigned char *text, size_t len)
{
    builder *b = ctx;
    b->levels[b->depth].key = hf_json_memory_copy(&b->memory, text, len);
    return 1;
}

static int begin(builder *b, bool is_array)
{
    hf_assert(b->depth < HF_JSON_READ_DEPTH_MAX); /* was checked */
    b->levels[++b->depth] = (level){.is_array = is_array};
    return 1;
}

static int on_object(void *ctx)
{
    return begin(ctx, false);
}

static int on_array(void *ctx)
{
    return begin(ctx, true);
}

static void find_twice(builder *b, const level *object)
{
    for (const node *at = object->count <= KEYS_COMPARED_MAX ? object->first : NULL; at != NULL; at = at->next) {
        for (const node *next = at->next; next != NULL; next = next->next) {
            b->twice = hf_str_equal(at->key, next->key) ? at->key : b->twice;
        }
    }
}

static int on_end(void *ctx)
{
    builder *b = ctx;
    level *over = &b->levels[b->depth--];
    hf_json_value value = {.kind = over->is_array ? HF_JSON_ARRAY : HF_JSON_OBJECT};
    if (over->is_array) {
        value.array.count = over->count;
        value.array.items = HF_ARENA_ARRAY(b->memory.arena, hf_json_value, over->count);
    } else {
        find_twice(b, over);
        value.object.count = over->count;
        value.object.members = HF_ARENA_ARRAY(b->memory.arena, hf_json_member, over->count);
    }
    if (b->memory.arena->status != HF_OK) {
        hf_json_memory_fail(&b->memory);
    }
    size_t i = 0;
    for (node *at = over->first; at != NULL; at = at->next, i++) {
        if (over->is_array) {
            value.array.items[i] = at->value;
        } else {
            value.object.members[i] = (hf_json_member){at->key, at->value};
        }
    }
    return put(b, value);
}

static const yajl_callbacks CALLBACKS = {
    .yajl_null = on_null,
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_end,
};

static bool build(builder *b, hf_str text)
{
    if (setjmp(b->memory.none) != 0) {
        return false;
    }
    yajl_alloc_funcs memory = hf_json_memory_funcs(&b->memory);
    yajl_handle yajl = yajl_alloc(&CALLBACKS, &memory, b);
    bool is_read = yajl_parse(yajl, (const unsigned char *)text.data, text.len) == yajl_status_ok &&
                   yajl_complete_parse(yajl) == yajl_status_ok;
    hf_assert(is_read && b->depth == 0); /* was checked */
    return true;
}

hf_status hf_json_tree_read(hf_op *op, hf_str text, hf_arena *arena, hf_json_value *ret_value)
{
    if (text.len > HF_JSON_READ_LEN_MAX) {
        return hf_fail(op, HF_ERR_TOO_BIG, "a JSON text of %zu bytes; %u are allowed", text.len, HF_JSON_READ_LEN_MAX);
    }
    HF_TRY(hf_json_check(op, text, arena->memory));
    builder *b = HF_ARENA_NEW(arena, builder); /* too long for a fiber's stack */
    if (b != NULL) {
        b->memory.arena = arena;
        b->root = ret_value;
    }
    if (b == NULL || !build(b, text)) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a JSON text of %zu bytes", text.len);
    }
    return b->twice.data == NULL ? HF_OK
                                 : hf_fail(op, HF_ERR_INVALID, "JSON: duplicate key '%.*s'", HF_STR_ARGS(b->twice));
}
