/* Deep copies and comparison of messages, by the same tables. */
#include "wire/pb_private.h"

#include <string.h>

static bool copy_message(const hf_pb_type *type, const char *from, hf_arena *arena, char *to);

/* Replaces the memory that the member at `at` points to by a copy; the member itself has been copied. False: out of
 * memory. */
static bool own_value(const hf_pb_field *field, hf_arena *arena, char *at)
{
    if (field->kind == HF_PB_STRING || field->kind == HF_PB_BYTES) {
        hf_str str = hf_pb_str_at(at);
        if (str.len > 0) {
            str = hf_arena_copy(arena, str);
            memcpy(at, &str, sizeof str);
        }
        return arena->status == HF_OK;
    }
    if (field->kind == HF_PB_MESSAGE) {
        const char *from = hf_pb_ptr_at(at);
        if (from == NULL) {
            return true;
        }
        char *to = hf_arena_take(arena, field->of.type->size, HF_PB_ALIGN);
        memcpy(at, &to, sizeof to);
        return to != NULL && copy_message(field->of.type, from, arena, to);
    }
    return true;
}

static bool own_list(const hf_pb_field *field, hf_arena *arena, char *at)
{
    hf_pb_list list = hf_pb_list_at(at);
    size_t size = hf_pb_item_size(field);
    const char *from = list.items;
    if (list.count == 0) {
        return true;
    }
    char *to = hf_arena_take(arena, hf_arena_array_len(list.count, size), HF_PB_ALIGN);
    if (to == NULL) {
        return false;
    }
    list.items = to;
    memcpy(at, &list, sizeof list);
    for (size_t i = 0; i < list.count; i++, from += size, to += size) {
        if (field->kind == HF_PB_MESSAGE) {
            if (!copy_message(field->of.type, from, arena, to)) {
                return false;
            }
            continue;
        }
        memcpy(to, from, size);
        if (!own_value(field, arena, to)) {
            return false;
        }
    }
    return true;
}

static bool copy_message(const hf_pb_type *type, const char *from, hf_arena *arena, char *to)
{
    memcpy(to, from, type->size);
    for (const hf_pb_field *field = type->fields; field < type->fields + type->field_count; field++) {
        if (field->shape == HF_PB_ONEOF && hf_pb_case_of(field, from) != field->number) {
            continue;
        }
        char *at = to + field->offset;
        if (!(field->shape >= HF_PB_LIST ? own_list(field, arena, at) : own_value(field, arena, at))) {
            return false;
        }
    }
    hf_str unknown = hf_pb_str_at(from + type->unknown_offset);
    if (unknown.len > 0) {
        unknown = hf_arena_copy(arena, unknown);
        memcpy(to + type->unknown_offset, &unknown, sizeof unknown);
    }
    return arena->status == HF_OK;
}

hf_status hf_pb_copy(const hf_pb_type *type, const void *msg, hf_arena *arena, void *ret_msg)
{
    return copy_message(type, msg, arena, ret_msg) ? HF_OK : HF_ERR_NOMEM;
}

/* ---- Comparison ------------------------------------------------------------------------------------------------ */

static bool equal_values(const hf_pb_field *field, const char *a, const char *b)
{
    if (field->kind == HF_PB_STRING || field->kind == HF_PB_BYTES) {
        return hf_str_equal(hf_pb_str_at(a), hf_pb_str_at(b));
    }
    if (field->kind == HF_PB_MESSAGE) {
        const void *left = hf_pb_ptr_at(a);
        const void *right = hf_pb_ptr_at(b);
        return left == right || (left != NULL && right != NULL && hf_pb_equal(field->of.type, left, right));
    }
    if (field->kind == HF_PB_TIMESTAMP || field->kind == HF_PB_DURATION) {
        hf_pb_timestamp left;
        hf_pb_timestamp right;
        memcpy(&left, a, sizeof left);
        memcpy(&right, b, sizeof right);
        return left.has == right.has && (!left.has || (left.seconds == right.seconds && left.nanos == right.nanos));
    }
    return memcmp(a, b, hf_pb_kind_size((hf_pb_kind)field->kind)) == 0;
}

static bool equal_lists(const hf_pb_field *field, hf_pb_list a, hf_pb_list b)
{
    size_t size = hf_pb_item_size(field);
    if (a.count != b.count) {
        return false;
    }
    for (size_t i = 0; i < a.count; i++) {
        const char *left = (const char *)a.items + i * size;
        const char *right = (const char *)b.items + i * size;
        if (!(field->kind == HF_PB_MESSAGE ? hf_pb_equal(field->of.type, left, right)
                                           : equal_values(field, left, right))) {
            return false;
        }
    }
    return true;
}

bool hf_pb_equal(const hf_pb_type *type, const void *a, const void *b)
{
    const char *left = a;
    const char *right = b;
    for (const hf_pb_field *field = type->fields; field < type->fields + type->field_count; field++) {
        size_t at = field->offset;
        if (field->shape >= HF_PB_LIST) {
            if (!equal_lists(field, hf_pb_list_at(left + at), hf_pb_list_at(right + at))) {
                return false;
            }
            continue;
        }
        if (field->shape == HF_PB_ONEOF) {
            uint32_t number = hf_pb_case_of(field, left);
            if (number != hf_pb_case_of(field, right)) {
                return false;
            }
            if (number != field->number) {
                continue;
            }
        }
        if (!equal_values(field, left + at, right + at)) {
            return false;
        }
    }
    return hf_str_equal(hf_pb_str_at(left + type->unknown_offset), hf_pb_str_at(right + type->unknown_offset));
}
