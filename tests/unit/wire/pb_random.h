/* Random messages of any type, made by walking its table; and the memory that such tests need. */
#ifndef HF_TESTS_WIRE_PB_RANDOM_H
#define HF_TESTS_WIRE_PB_RANDOM_H

#include "base/rng.h"
#include "wire/pb_private.h"

#include <stdio.h>
#include <stdlib.h>

static inline void *heap_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len);
}

static inline void heap_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

static inline hf_allocator heap(void)
{
    return (hf_allocator){heap_allocate, heap_release, NULL};
}

typedef struct random_maker {
    hf_rng rng;
    hf_arena *arena;
    bool is_tame; /* only what JSON can carry: UTF-8, times in range, no unknown fields, no entry without a value */
    int budget;   /* values that may still be made: keeps messages small */
} random_maker;

static inline uint64_t random_number(random_maker *m)
{
    uint64_t number = hf_rng_next(&m->rng) >> hf_rng_below(&m->rng, 64);
    return hf_rng_below(&m->rng, 4) == 0 ? ~number : number;
}

static inline hf_str random_str(random_maker *m, bool is_text)
{
    static const char *const PIECES[] = {"a",
                                         "Z",
                                         "0",
                                         " ",
                                         "\"",
                                         "\\",
                                         "\n",
                                         "\x01",
                                         "\xc3\xa4",
                                         "\xe2\x82\xac",
                                         "\xf0\x9f\x98\x80",
                                         "</x>",
                                         "_long_enough_to_matter_"};
    size_t len = hf_rng_below(&m->rng, hf_rng_below(&m->rng, 10) == 0 ? 300 : 12);
    char *data = hf_arena_take(m->arena, len + 32, 1);
    size_t at = 0;
    while (at < len) {
        if (is_text) {
            const char *piece = PIECES[hf_rng_below(&m->rng, HF_COUNT_OF(PIECES))];
            memcpy(data + at, piece, strlen(piece));
            at += strlen(piece);
        } else {
            data[at++] = (char)hf_rng_next(&m->rng);
        }
    }
    return hf_str_of_len(data, at);
}

static inline hf_pb_timestamp random_time(random_maker *m, bool is_span)
{
    hf_pb_timestamp time = {0, 0, true};
    static const int32_t UNITS[] = {1, 1000, 1000000, 0};
    if (!m->is_tame) {
        return (hf_pb_timestamp){(int64_t)random_number(m), (int32_t)random_number(m), true};
    }
    int64_t bound = is_span ? INT64_C(315576000000) : INT64_C(253402300799);
    int64_t low = is_span ? -bound : INT64_C(-62135596800);
    time.seconds = hf_rng_below(&m->rng, 4) == 0 ? (int64_t)hf_rng_below(&m->rng, 3)
                                                 : low + (int64_t)hf_rng_below(&m->rng, (uint64_t)(bound - low + 1));
    int32_t unit = UNITS[hf_rng_below(&m->rng, HF_COUNT_OF(UNITS))];
    time.nanos = unit > 0 ? (int32_t)hf_rng_below(&m->rng, (uint64_t)(1000000000 / unit)) * unit : 0;
    time.nanos = is_span && time.seconds < 0 ? -time.nanos : time.nanos;
    return time;
}

static inline void random_message(random_maker *m, const hf_pb_type *type, void *ret_msg, int depth);

static inline void random_value(random_maker *m, const hf_pb_field *field, char *at, int depth)
{
    m->budget--;
    hf_pb_kind kind = (hf_pb_kind)field->kind;
    if (kind == HF_PB_STRING || kind == HF_PB_BYTES) {
        hf_str str = random_str(m, m->is_tame && kind == HF_PB_STRING);
        memcpy(at, &str, sizeof str);
    } else if (kind == HF_PB_TIMESTAMP || kind == HF_PB_DURATION) {
        hf_pb_timestamp time = random_time(m, kind == HF_PB_DURATION);
        memcpy(at, &time, sizeof time);
    } else if (kind == HF_PB_MESSAGE) {
        void *child = hf_arena_zero(m->arena, field->of.type->size, 8);
        random_message(m, field->of.type, child, depth + 1);
        memcpy(at, &child, sizeof child);
    } else if (kind == HF_PB_BOOL) {
        *(bool *)(void *)at = hf_rng_below(&m->rng, 2) == 1;
    } else if (kind == HF_PB_FLOAT && m->is_tame) {
        float value = (float)(int32_t)hf_rng_next(&m->rng) / 7.0f;
        memcpy(at, &value, sizeof value);
    } else if (kind == HF_PB_DOUBLE && m->is_tame) {
        double value = (double)(int64_t)hf_rng_next(&m->rng) / 7e15;
        memcpy(at, &value, sizeof value);
    } else if (kind == HF_PB_ENUM && hf_rng_below(&m->rng, 4) != 0) {
        int32_t value = field->of.set->items[hf_rng_below(&m->rng, field->of.set->count)].value;
        memcpy(at, &value, sizeof value);
    } else {
        uint64_t number = random_number(m);
        memcpy(at, &number, hf_pb_kind_size(kind));
    }
}

static inline void random_list(random_maker *m, const hf_pb_field *field, char *at, int depth)
{
    hf_pb_list list = {NULL, 1 + hf_rng_below(&m->rng, 4)};
    size_t size = hf_pb_item_size(field);
    list.items = hf_arena_zero(m->arena, list.count * size, 8);
    for (size_t i = 0; i < list.count; i++) {
        char *item = (char *)list.items + i * size;
        if (field->kind == HF_PB_MESSAGE) {
            random_message(m, field->of.type, item, depth + 1);
        } else {
            random_value(m, field, item, depth);
        }
        if (field->shape == HF_PB_MAP && m->is_tame) { /* keys of a JSON object are distinct */
            const hf_pb_field *key_field = &field->of.type->fields[0];
            char *key = hf_arena_take(m->arena, 16, 1);
            hf_str str = {key, (size_t)snprintf(key, 16, "k%zu\"", i)};
            int64_t number = (int64_t)i - 1;
            bool is_text = key_field->kind == HF_PB_STRING;
            memcpy(item + key_field->offset, is_text ? (const void *)&str : (const void *)&number,
                   is_text ? sizeof str : hf_pb_kind_size((hf_pb_kind)key_field->kind));
        }
    }
    memcpy(at, &list, sizeof list);
}

/* Fields that the type does not have, in the order of their numbers. */
static inline hf_str random_unknown(random_maker *m, const hf_pb_type *type)
{
    hf_buf buf;
    hf_buf_init(&buf, heap(), 1 << 20);
    uint32_t number = 0;
    for (uint64_t n = 1 + hf_rng_below(&m->rng, 3); n > 0; n--) {
        do {
            number += 1 + (uint32_t)hf_rng_below(&m->rng, 20);
        } while (number < type->index_count && type->index[number] != 0);
        switch (hf_rng_below(&m->rng, 5)) {
        case 0:
            hf_pb_put_uint(&buf, number, random_number(m));
            break;
        case 1:
            hf_pb_put_bytes(&buf, number, random_str(m, false));
            break;
        case 2:
            hf_pb_put_tag(&buf, number, HF_PB_WIRE_64);
            hf_buf_put(&buf, "12345678", 8);
            break;
        case 3:
            hf_pb_put_tag(&buf, number, HF_PB_WIRE_32);
            hf_buf_put(&buf, "1234", 4);
            break;
        default:
            hf_pb_put_tag(&buf, number, HF_PB_WIRE_GROUP);
            hf_pb_put_uint(&buf, 1, random_number(m));
            hf_pb_put_tag(&buf, number, HF_PB_WIRE_GROUP_END);
            break;
        }
    }
    hf_str unknown = hf_arena_copy(m->arena, hf_str_of_len(buf.data, buf.len));
    hf_buf_deinit(&buf);
    return unknown;
}

/* Sets the case of each oneof to one of its fields, or leaves it. */
static inline bool random_chosen(random_maker *m, const hf_pb_type *type, const hf_pb_field *field, char *msg)
{
    if (hf_pb_case_of(field, msg) != 0) {
        return false;
    }
    uint64_t left = 0; /* fields of the same oneof from here on */
    for (const hf_pb_field *f = field; f < type->fields + type->field_count; f++) {
        left += f->shape == HF_PB_ONEOF && f->case_offset == field->case_offset;
    }
    if (hf_rng_below(&m->rng, left) != 0) {
        return false;
    }
    memcpy(msg + field->case_offset, &field->number, sizeof field->number);
    return true;
}

static inline void random_message(random_maker *m, const hf_pb_type *type, void *ret_msg, int depth)
{
    char *msg = ret_msg;
    memset(msg, 0, type->size);
    for (const hf_pb_field *field = type->fields; field < type->fields + type->field_count; field++) {
        bool is_entry = type->look == HF_PB_LOOK_ENTRY;
        if (m->budget <= 0 && !is_entry) {
            return;
        }
        bool is_leaf = field->kind != HF_PB_MESSAGE;
        if (!is_leaf && depth > 8 && !(is_entry && m->is_tame)) {
            continue;
        }
        if (field->shape == HF_PB_ONEOF) {
            if (random_chosen(m, type, field, msg)) {
                random_value(m, field, msg + field->offset, depth);
            }
        } else if ((is_entry && (is_leaf || m->is_tame)) || hf_rng_below(&m->rng, 2) == 0) {
            if (field->shape >= HF_PB_LIST) {
                random_list(m, field, msg + field->offset, depth);
            } else {
                random_value(m, field, msg + field->offset, depth);
            }
        }
    }
    if (!m->is_tame && hf_rng_below(&m->rng, 5) == 0) {
        hf_str unknown = random_unknown(m, type);
        memcpy(msg + type->unknown_offset, &unknown, sizeof unknown);
    }
}

#endif
