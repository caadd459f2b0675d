/* Reading JSON by jansson, whose header is included here and nowhere else.
 *
 * jansson nests as deep as 2,048 levels, which a fiber's stack might not survive, so the depth is looked at before it is
 * called. Its tree is on its own heap; it is copied into the caller's arena and freed before anything else happens. */
#include "json/json_read.h"

#include <jansson.h>
#include <string.h>

/* Counts brackets outside strings. Text that is not JSON may be miscounted, but never below what jansson would see. */
static bool is_too_deep(hf_str text)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > HF_TREE_DEPTH_MAX) {
                return true;
            }
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return false;
}

static bool copy_value(json_t *from, hf_arena *arena, hf_json_value *to);

static bool copy_array(json_t *from, hf_arena *arena, hf_json_value *to)
{
    to->kind = HF_JSON_ARRAY;
    to->array.count = json_array_size(from);
    to->array.items = HF_ARENA_ARRAY(arena, hf_json_value, to->array.count);
    for (size_t i = 0; to->array.items != NULL && i < to->array.count; i++) {
        if (!copy_value(json_array_get(from, i), arena, &to->array.items[i])) {
            return false;
        }
    }
    return to->array.items != NULL;
}

static bool copy_object(json_t *from, hf_arena *arena, hf_json_value *to)
{
    to->kind = HF_JSON_OBJECT;
    to->object.count = json_object_size(from);
    to->object.members = HF_ARENA_ARRAY(arena, hf_json_member, to->object.count);
    hf_json_member *member = to->object.members;
    for (void *at = json_object_iter(from); member != NULL && at != NULL; at = json_object_iter_next(from, at)) {
        const char *key = json_object_iter_key(at);
        member->key = hf_arena_copy(arena, hf_str_of_len(key, json_object_iter_key_len(at)));
        if (!copy_value(json_object_iter_value(at), arena, &member->value)) {
            return false;
        }
        member++;
    }
    return member != NULL;
}

static bool copy_value(json_t *from, hf_arena *arena, hf_json_value *to)
{
    switch (json_typeof(from)) {
    case JSON_OBJECT:
        return copy_object(from, arena, to);
    case JSON_ARRAY:
        return copy_array(from, arena, to);
    case JSON_STRING:
        to->kind = HF_JSON_STRING;
        to->string = hf_arena_copy(arena, hf_str_of_len(json_string_value(from), json_string_length(from)));
        break;
    case JSON_INTEGER:
        to->kind = HF_JSON_INT;
        to->integer = json_integer_value(from);
        break;
    case JSON_REAL:
        to->kind = HF_JSON_REAL;
        to->real = json_real_value(from);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        to->kind = HF_JSON_BOOL;
        to->truth = json_is_true(from);
        break;
    case JSON_NULL:
        to->kind = HF_JSON_NULL;
        break;
    }
    return arena->status == HF_OK;
}

hf_status hf_json_read(hf_op *op, hf_str text, hf_arena *arena, hf_json_value *ret_value)
{
    if (text.len > HF_JSON_READ_LEN_MAX) {
        return hf_fail(op, HF_ERR_TOO_BIG, "a JSON text of %zu bytes; %u are allowed", text.len, HF_JSON_READ_LEN_MAX);
    }
    if (is_too_deep(text)) {
        return hf_fail(op, HF_ERR_INVALID, "JSON nested deeper than %d", HF_TREE_DEPTH_MAX);
    }
    if (text.len > 0 &&
        memchr(text.data, '\0', text.len) != NULL) { /* jansson passes over one that follows a word or number */
        return hf_fail(op, HF_ERR_INVALID, "a JSON text with a NUL byte");
    }
    json_error_t error;
    json_t *root = json_loadb(text.len > 0 ? text.data : "", text.len,
                              JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (root == NULL) {
        bool no_memory = json_error_code(&error) == json_error_out_of_memory;
        return hf_fail(op, no_memory ? HF_ERR_NOMEM : HF_ERR_INVALID, "JSON: line %d, column %d: %s", error.line,
                       error.column, error.text);
    }
    *ret_value = (hf_json_value){.kind = HF_JSON_NULL};
    bool ok = copy_value(root, arena, ret_value);
    json_decref(root);
    return ok ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for a JSON text of %zu bytes", text.len);
}
