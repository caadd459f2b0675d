/* JSON in payloads: paths, typed values, objects and structs. wire/json_read.h reads the texts, base/json.h writes them. */
#include "wire/time_text.h"

#include <holdfast/json.h>

#include "base/env.h"
#include "base/glyph.h"
#include "base/json.h"
#include "client/data.h"
#include "history/limits.h"
#include "history/payload.h"
#include "wire/json_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS_MAX = 32, ROOM_LEN = 6144 };

static hf_allocator memory_of_process(void)
{
    return hf_env_memory(hf_env_posix());
}

/* ---- Paths --------------------------------------------------------------------------------------------------------- */

typedef struct json_path {
    hf_json_step steps[STEPS_MAX];
    size_t count;
    char *room; /* the keys, without backslashes; as long as the path */
} json_path;

static hf_status bad_path(hf_op *op, const char *verb, const char *text, const char *at)
{
    return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: '%.200s' is not a path: byte %zu", verb, text,
                      (size_t)(at - text));
}

/* The number of "[12]", and `*at` behind it. False: there is none. */
static bool parse_index(const char **at, size_t *ret_index)
{
    size_t index = 0;
    const char *digit = *at + 1;
    for (; *digit >= '0' && *digit <= '9'; digit++) {
        if (index > (SIZE_MAX - 9) / 10) {
            return false;
        }
        index = index * 10 + (size_t)(*digit - '0');
    }
    if (digit == *at + 1 || *digit != ']') {
        return false;
    }
    *at = digit + 1;
    *ret_index = index;
    return true;
}

/* A key without its backslashes, and `*at` behind it. False: a backslash is the last character. */
static bool parse_key(const char **at, char **room, hf_str *ret_key)
{
    char *start = *room;
    const char *c = *at;
    for (; *c != '\0' && *c != '.' && *c != '['; c++) {
        c += *c == '\\';
        if (*c == '\0') {
            return false;
        }
        *(*room)++ = *c;
    }
    *at = c;
    *ret_key = hf_str_of_len(start, (size_t)(*room - start));
    return true;
}

/* `room` has as many bytes as the path. */
static hf_status parse_path(hf_op *op, const char *verb, const char *text, json_path *ret_path)
{
    char *room = ret_path->room;
    const char *at = text;
    bool may_be_key = true; /* at the beginning, and behind a dot */
    ret_path->count = 0;
    while (*at != '\0') {
        if (ret_path->count == STEPS_MAX) {
            return bad_path(op, verb, text, at);
        }
        hf_assert(ret_path->count < STEPS_MAX && room <= ret_path->room + (at - text)); /* keys never grow */
        hf_json_step *step = &ret_path->steps[ret_path->count++];
        *step = (hf_json_step){.is_index = *at == '['};
        bool is_good = step->is_index ? (!may_be_key || at == text) && parse_index(&at, &step->index)
                                      : may_be_key && parse_key(&at, &room, &step->key);
        if (!is_good) {
            return bad_path(op, verb, text, at);
        }
        may_be_key = *at == '.';
        at += may_be_key;
        if (may_be_key && *at == '\0') {
            return bad_path(op, verb, text, at);
        }
    }
    return HF_OK;
}

/* ---- Finding ------------------------------------------------------------------------------------------------------- */

/* One look into a payload. */
typedef struct look {
    hf_op op;
    hf_arena arena;
    const char *verb;
    const char *where; /* path or key, for messages */
    hf_str text;
    hf_json_found found;
    char shown[208]; /* `where` for a message */
    char room[ROOM_LEN];
} look;

/* "'a.b'"; the path "" means all of it. */
static const char *shown(look *l)
{
    if (l->where[0] == '\0') {
        return "the JSON text";
    }
    (void)snprintf(l->shown, sizeof l->shown, "'%.200s'", l->where);
    return l->shown;
}

static const char *const KINDS[] = {"nothing", "null", "a boolean", "a number", "a text", "an array", "an object"};

static hf_status open_look(look *l, const char *verb, hf_payload in, const char *where)
{
    hf_op_init(&l->op);
    hf_arena_init_in(&l->arena, memory_of_process(), l->room, sizeof l->room);
    l->verb = verb;
    l->where = where;
    l->text = hf_str_of_len(in.data, in.len);
    if (where == NULL || (in.data == NULL && in.len > 0)) {
        return hf_fail_at(&l->op, HF_ERR_MISUSE, verb, "%s needs a payload and a path", verb);
    }
    if (in.data == NULL) {
        return hf_fail_at(&l->op, HF_ERR_INVALID, verb, "%s: %s: the payload is empty", verb, shown(l));
    }
    if (in.encoding == NULL || strncmp(in.encoding, "json/", 5) != 0) {
        return hf_fail_at(&l->op, HF_ERR_INVALID, verb, "%s: %s: the payload is not JSON, its encoding is %.60s", verb,
                          shown(l), in.encoding != NULL ? in.encoding : HF_ENCODING_BYTES_TEXT);
    }
    return HF_OK;
}

static hf_status close_look(look *l, hf_status status)
{
    hf_arena_deinit(&l->arena);
    return status == HF_OK ? HF_OK : hf_failure_raise_op(&l->op);
}

/* Finds the value of these steps; a text that is not JSON is refused with the path. */
static hf_status find_steps(look *l, const hf_json_step *steps, size_t count)
{
    hf_op inner;
    hf_op_init(&inner);
    hf_assert(count <= STEPS_MAX && l->text.data != NULL);
    hf_status status = hf_json_find(&inner, l->text, steps, count, &l->arena, &l->found);
    return status == HF_OK
               ? HF_OK
               : hf_fail_at(&l->op, status, l->verb, "%s: %.100s: %.300s", l->verb, shown(l), inner.message);
}

static hf_status find(look *l, const char *verb, hf_payload in, const char *text)
{
    HF_TRY(open_look(l, verb, in, text));
    json_path p = {.room = hf_arena_take(&l->arena, strlen(text) + 1, 1)};
    if (p.room == NULL) {
        return hf_fail_at(&l->op, HF_ERR_NOMEM, verb, "%s: no memory", verb);
    }
    HF_TRY(parse_path(&l->op, verb, text, &p));
    HF_TRY(find_steps(l, p.steps, p.count));
    return HF_OK;
}

static hf_status expect(look *l, hf_json_kind kind)
{
    hf_assert((size_t)l->found.kind < HF_COUNT_OF(KINDS) && (size_t)kind < HF_COUNT_OF(KINDS));
    if (l->found.kind == kind) {
        return HF_OK;
    }
    if (l->found.kind == HF_KIND_MISSING) {
        if (l->found.steps == 0) {
            return hf_fail_at(&l->op, HF_ERR_INVALID, l->verb, "%s: there is no '%.200s' in the JSON text", l->verb,
                              l->where);
        }
        return hf_fail_at(
            &l->op, HF_ERR_INVALID, l->verb,
            "%s: there is no '%.200s': the value at byte %zu, where its first %zu part%s, does not have the next",
            l->verb, l->where, l->found.start, l->found.steps, l->found.steps == 1 ? " leads" : "s lead");
    }
    return hf_fail_at(&l->op, HF_ERR_INVALID, l->verb, "%s: %s is %s, not %s, at byte %zu", l->verb, shown(l),
                      KINDS[l->found.kind], KINDS[kind], l->found.start);
}

static hf_status too_big(look *l, const char *what)
{
    return hf_fail_at(&l->op, HF_ERR_TOO_BIG, l->verb, "%s: %s is %s, at byte %zu", l->verb, shown(l), what,
                      l->found.start);
}

/* ---- Values -------------------------------------------------------------------------------------------------------- */

static hf_str raw_of(const look *l)
{
    hf_assert(l->found.start <= l->found.end && l->found.end <= l->text.len);
    return hf_str_of_len(l->text.data + l->found.start, l->found.end - l->found.start);
}

static hf_status take_text(look *l, size_t capacity, char *ret_text)
{
    HF_TRY(expect(l, HF_KIND_TEXT));
    hf_str text = l->found.text;
    if (text.len > 0 && memchr(text.data, '\0', text.len) != NULL) {
        return hf_fail_at(&l->op, HF_ERR_INVALID, l->verb, "%s: %s is a text with a character of 0, at byte %zu",
                          l->verb, shown(l), l->found.start);
    }
    if (text.len >= capacity) {
        return hf_fail_at(&l->op, HF_ERR_TOO_BIG, l->verb, "%s: %s has %zu bytes, there is room for %zu, at byte %zu",
                          l->verb, shown(l), text.len, capacity > 0 ? capacity - 1 : 0, l->found.start);
    }
    hf_assert(text.len < capacity);
    if (text.len > 0) {
        memcpy(ret_text, text.data, text.len);
    }
    ret_text[text.len] = '\0';
    return HF_OK;
}

static hf_status take_int(look *l, int64_t *ret_number)
{
    HF_TRY(expect(l, HF_KIND_NUMBER));
    hf_str raw = raw_of(l);
    hf_assert(raw.len > 0); /* a number has a digit */
    size_t at = raw.data[0] == '-';
    int64_t number = 0;
    for (; at < raw.len; at++) {
        if (raw.data[at] < '0' || raw.data[at] > '9') {
            return hf_fail_at(&l->op, HF_ERR_INVALID, l->verb,
                              "%s: %s is a number with a fraction or an exponent, at byte %zu", l->verb, shown(l),
                              l->found.start);
        }
        int digit = raw.data[at] - '0';
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, raw.data[0] == '-' ? -digit : digit, &number)) {
            return too_big(l, "a number that does not fit 64 bits");
        }
    }
    *ret_number = number;
    return HF_OK;
}

/* strtod reads the decimal point of the locale, which may have several bytes. */
static char *put_point_of_locale(char *to)
{
    char text[16];
    int len = snprintf(text, sizeof text, "%.1f", 0.5);
    hf_assert(len > 2 && len < (int)sizeof text);
    memcpy(to, text + 1, (size_t)len - 2);
    return to + len - 2;
}

static hf_status take_real(look *l, double *ret_number)
{
    HF_TRY(expect(l, HF_KIND_NUMBER));
    hf_str raw = raw_of(l);
    char *digits = hf_arena_take(&l->arena, raw.len + 16, 1);
    char *to = digits;
    if (digits == NULL) {
        return hf_fail_at(&l->op, HF_ERR_NOMEM, l->verb, "%s: no memory", l->verb);
    }
    for (size_t i = 0; i < raw.len; i++) {
        if (raw.data[i] == '.') {
            to = put_point_of_locale(to);
        } else {
            *to++ = raw.data[i];
        }
    }
    *to = '\0';
    double number = strtod(digits, NULL);
    if (isinf(number)) {
        return too_big(l, "a number that does not fit a double");
    }
    *ret_number = number;
    return HF_OK;
}

hf_status hf_json_get_text(hf_payload in, const char *path, size_t capacity, char *ret_text)
{
    look l;
    hf_status status = find(&l, "hf_json_get_text", in, path);
    return close_look(&l, status == HF_OK ? take_text(&l, capacity, ret_text) : status);
}

hf_status hf_json_get_int(hf_payload in, const char *path, int64_t *ret_number)
{
    look l;
    hf_status status = find(&l, "hf_json_get_int", in, path);
    return close_look(&l, status == HF_OK ? take_int(&l, ret_number) : status);
}

hf_status hf_json_get_real(hf_payload in, const char *path, double *ret_number)
{
    look l;
    hf_status status = find(&l, "hf_json_get_real", in, path);
    return close_look(&l, status == HF_OK ? take_real(&l, ret_number) : status);
}

hf_status hf_json_get_bool(hf_payload in, const char *path, bool *ret_flag)
{
    look l;
    hf_status status = find(&l, "hf_json_get_bool", in, path);
    status = status == HF_OK ? expect(&l, HF_KIND_BOOL) : status;
    if (status == HF_OK) {
        *ret_flag = l.found.flag;
    }
    return close_look(&l, status);
}

hf_status hf_json_get_count(hf_payload in, const char *path, size_t *ret_count)
{
    look l;
    hf_status status = find(&l, "hf_json_get_count", in, path);
    status = status == HF_OK && l.found.kind != HF_KIND_OBJECT ? expect(&l, HF_KIND_ARRAY) : status;
    if (status == HF_OK) {
        *ret_count = l.found.count;
    }
    return close_look(&l, status);
}

hf_status hf_json_get_kind(hf_payload in, const char *path, hf_json_kind *ret_kind)
{
    look l;
    hf_status status = find(&l, "hf_json_get_kind", in, path);
    if (status == HF_OK) {
        *ret_kind = l.found.kind;
    }
    return close_look(&l, status);
}

hf_status hf_json_get_view(hf_payload in, const char *path, hf_payload *ret_view)
{
    look l;
    hf_status status = find(&l, "hf_json_get_view", in, path);
    if (status == HF_OK && l.found.kind == HF_KIND_MISSING) {
        status = expect(&l, HF_KIND_OBJECT);
    }
    if (status == HF_OK) {
        hf_str raw = raw_of(&l);
        *ret_view = hf_payload_of_bytes(raw.data, raw.len);
        ret_view->encoding = HF_ENCODING_JSON_TEXT;
    }
    return close_look(&l, status);
}

/* ---- Objects ------------------------------------------------------------------------------------------------------- */

static hf_status check_text(hf_op *op, const char *verb, const char *key, const char *text)
{
    hf_str rest = hf_str_of(text);
    while (rest.len > 0) {
        hf_glyph glyph = hf_glyph_of(rest);
        if (!glyph.is_utf8) {
            return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: the text of '%.100s' is not UTF-8, at byte %zu", verb, key,
                              (size_t)(rest.data - text));
        }
        rest = hf_str_of_len(rest.data + glyph.len, rest.len - glyph.len);
    }
    return HF_OK;
}

/* The shortest digits that read back as the same number, with a decimal point in every locale. */
static void put_real(hf_json *json, double value)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    char *to = text;
    for (const char *c = text; *c != '\0'; c++) {
        bool is_usual = (*c >= '0' && *c <= '9') || *c == '-' || *c == '+' || *c == 'e';
        if (is_usual || to == text || to[-1] != '.') { /* a point may have several bytes */
            *to++ = is_usual ? *c : '.';
        }
    }
    *to = '\0';
    hf_json_raw(json, text, strlen(text));
}

static hf_status put_time(hf_op *op, const char *verb, hf_json *json, const hf_field *field)
{
    char text[HF_TIME_TEXT_LEN_MAX];
    size_t len = hf_timestamp_format(hf_pb_timestamp_of((hf_time){field->number}), text);
    if (len == 0) {
        return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: '%.100s' is not a time of the years 1 to 9999", verb,
                          field->key);
    }
    hf_json_string_len(json, text, len);
    return HF_OK;
}

static hf_status put_value(hf_op *op, const char *verb, hf_json *json, const hf_field *field)
{
    switch (field->kind) {
    case HF_FIELD_TEXT:
        HF_TRY(field->text != NULL ? check_text(op, verb, field->key, field->text) : HF_OK);
        hf_json_string(json, field->text);
        return HF_OK;
    case HF_FIELD_INT:
        hf_json_int(json, field->number);
        return HF_OK;
    case HF_FIELD_REAL:
        if (!isfinite(field->real)) {
            return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: '%.100s' is not a number that JSON can hold", verb,
                              field->key);
        }
        put_real(json, field->real);
        return HF_OK;
    case HF_FIELD_BOOL:
        hf_json_bool(json, field->number != 0);
        return HF_OK;
    case HF_FIELD_JSON: {
        hf_op inner;
        hf_op_init(&inner);
        hf_str text = hf_str_of_len(field->json.data, field->json.len);
        hf_status status = text.data == NULL ? hf_fail(&inner, HF_ERR_INVALID, "it is empty")
                                             : hf_json_check(&inner, text, memory_of_process());
        if (status != HF_OK) {
            return hf_fail_at(op, status, verb, "%s: '%.100s': %.300s", verb, field->key, inner.message);
        }
        hf_json_raw(json, text.data, text.len);
        return HF_OK;
    }
    case HF_FIELD_NULL:
        hf_json_null(json);
        return HF_OK;
    case HF_FIELD_TIME:
        return put_time(op, verb, json, field);
    case HF_FIELD_END:
        break;
    }
    return hf_fail_at(op, HF_ERR_MISUSE, verb, "%s: '%.100s' has no kind that is known", verb, field->key);
}

static hf_status put_field(hf_op *op, const char *verb, hf_json *json, const hf_field *field)
{
    HF_TRY(check_text(op, verb, field->key, field->key));
    hf_json_key(json, field->key);
    return put_value(op, verb, json, field);
}

hf_status hf_field_encode(hf_op *op, const char *verb, const hf_field *field, hf_arena *arena, hf_str *ret_json)
{
    hf_buf buf;
    hf_json json;
    hf_buf_init(&buf, memory_of_process(), HF_PAYLOAD_COPY_LEN_MAX);
    hf_json_init(&json, &buf);
    hf_status status = put_value(op, verb, &json, field);
    if (status == HF_OK && hf_buf_status(&buf) == HF_OK) {
        *ret_json = hf_arena_copy(arena, hf_str_of_len(buf.data, buf.len));
    }
    if (status == HF_OK && (hf_buf_status(&buf) != HF_OK || arena->status != HF_OK)) {
        status = hf_fail_at(op, HF_ERR_NOMEM, verb, "%s: no memory for '%.100s'", verb, field->key);
    }
    hf_buf_deinit(&buf);
    return status;
}

/* One object that is being written. */
typedef struct writing {
    hf_op op;
    hf_buf buf;
    hf_json json;
    const char *verb;
} writing;

static void begin_object(writing *w, const char *verb)
{
    hf_op_init(&w->op);
    hf_buf_init(&w->buf, memory_of_process(), HF_PAYLOAD_COPY_LEN_MAX);
    hf_json_init(&w->json, &w->buf);
    hf_json_object(&w->json);
    w->verb = verb;
}

static hf_status end_object(writing *w, hf_status status, hf_payload *ret_payload)
{
    if (status == HF_OK) {
        hf_json_end(&w->json);
    }
    hf_assert(w->verb != NULL && (status == HF_OK || w->op.status != HF_OK)); /* a failure has its sentence */
    if (status == HF_OK && hf_buf_status(&w->buf) != HF_OK) {
        status = hf_fail_at(&w->op, hf_buf_status(&w->buf), w->verb, "%s: no memory for the object", w->verb);
    }
    if (status != HF_OK) {
        hf_buf_deinit(&w->buf);
        return hf_failure_raise_op(&w->op);
    }
    hf_payload text = hf_payload_of_bytes(hf_buf_text(&w->buf), w->buf.len);
    text.encoding = HF_ENCODING_JSON_TEXT;
    status = hf_payload_copy(text, ret_payload);
    hf_buf_deinit(&w->buf);
    return status;
}

hf_status hf_payload_object_of(const hf_field *fields, hf_payload *ret_payload)
{
    if (fields == NULL || ret_payload == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_payload_object needs fields and a place for the payload");
    }
    writing w;
    hf_status status = HF_OK;
    begin_object(&w, "hf_payload_object");
    for (; fields->key != NULL && status == HF_OK; fields++) {
        status = put_field(&w.op, w.verb, &w.json, fields);
    }
    return end_object(&w, status, ret_payload);
}

/* ---- Structs ------------------------------------------------------------------------------------------------------- */

static hf_status bad_member(hf_op *op, const char *verb, const hf_member *member)
{
    return hf_fail_at(op, HF_ERR_MISUSE, verb, "%s: member '%.100s' is of %zu bytes, or of a kind, that is not known",
                      verb, member->key, member->len);
}

static hf_status take_member(look *l, const hf_member *member, char *to)
{
    int64_t number = 0;
    switch (member->kind) {
    case HF_FIELD_TEXT:
        return take_text(l, member->len, to);
    case HF_FIELD_REAL:
        return member->len == sizeof(double) ? take_real(l, (double *)(void *)to) : bad_member(&l->op, l->verb, member);
    case HF_FIELD_BOOL:
        HF_TRY(member->len == sizeof(bool) ? expect(l, HF_KIND_BOOL) : bad_member(&l->op, l->verb, member));
        memcpy(to, &l->found.flag, sizeof(bool));
        return HF_OK;
    case HF_FIELD_INT:
        HF_TRY(take_int(l, &number));
        if (member->len == sizeof(int64_t)) {
            memcpy(to, &number, sizeof number);
        } else if (member->len == sizeof(int32_t)) {
            int32_t narrow = (int32_t)number;
            if (narrow != number) {
                return too_big(l, "a number that does not fit 32 bits");
            }
            memcpy(to, &narrow, sizeof narrow);
        } else {
            return bad_member(&l->op, l->verb, member);
        }
        return HF_OK;
    case HF_FIELD_JSON:
    case HF_FIELD_NULL:
    case HF_FIELD_TIME:
    case HF_FIELD_END:
        break;
    }
    return bad_member(&l->op, l->verb, member);
}

/* Reads into `draft`, a copy of the struct. */
static hf_status read_member(hf_payload in, const hf_member *member, char *draft)
{
    look l;
    hf_status status = open_look(&l, "hf_payload_read", in, member->key);
    status = status == HF_OK ? find_steps(&l, &(hf_json_step){.key = hf_str_of(member->key)}, 1) : status;
    bool is_absent = status == HF_OK && (l.found.kind == HF_KIND_MISSING || l.found.kind == HF_KIND_NULL);
    if (status == HF_OK && !(is_absent && member->is_optional)) {
        status = take_member(&l, member, draft + member->offset);
    }
    return close_look(&l, status);
}

static size_t struct_len(const hf_member *members)
{
    size_t len = 0;
    for (; members->key != NULL; members++) {
        len = members->offset + members->len > len ? members->offset + members->len : len;
    }
    return len;
}

hf_status hf_payload_read(hf_payload in, const hf_member *members, void *ret_struct)
{
    if (members == NULL || ret_struct == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_payload_read needs members and a struct");
    }
    hf_arena arena;
    char room[1024];
    hf_json_kind kind = HF_KIND_MISSING;
    HF_TRY(hf_json_get_kind(in, "", &kind));
    if (kind != HF_KIND_OBJECT) {
        return hf_raise(HF_ERR_INVALID, "hf_payload_read: the text is %s, not an object, at byte 0", KINDS[kind]);
    }
    hf_arena_init_in(&arena, memory_of_process(), room, sizeof room);
    size_t len = struct_len(members);
    char *draft = hf_arena_take(&arena, len + 1, 16);
    hf_status status = draft != NULL ? HF_OK : hf_raise(HF_ERR_NOMEM, "hf_payload_read: no memory");
    if (draft != NULL) {
        memcpy(draft, ret_struct, len);
    }
    for (const hf_member *m = members; m->key != NULL && status == HF_OK; m++) {
        status = read_member(in, m, draft);
    }
    for (const hf_member *m = members; m->key != NULL && status == HF_OK; m++) {
        hf_assert(m->offset + m->len <= len);
        memcpy((char *)ret_struct + m->offset, draft + m->offset, m->len);
    }
    hf_arena_deinit(&arena);
    return status;
}

/* The member as a field. */
static hf_status field_of(hf_op *op, const char *verb, const hf_member *member, const char *at, hf_field *ret_field)
{
    hf_field field = hf_field_make(member->key, member->kind);
    int32_t narrow = 0;
    bool flag = false;
    bool is_known = true;
    if (member->kind == HF_FIELD_TEXT) {
        field.text = at;
        if (memchr(at, '\0', member->len) == NULL) {
            return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: the text of '%.100s' has no NUL in its %zu bytes", verb,
                              member->key, member->len);
        }
    } else if (member->kind == HF_FIELD_INT && member->len == sizeof field.number) {
        memcpy(&field.number, at, sizeof field.number);
    } else if (member->kind == HF_FIELD_INT && member->len == sizeof narrow) {
        memcpy(&narrow, at, sizeof narrow);
        field.number = narrow;
    } else if (member->kind == HF_FIELD_REAL && member->len == sizeof field.real) {
        memcpy(&field.real, at, sizeof field.real);
    } else if (member->kind == HF_FIELD_BOOL && member->len == sizeof flag) {
        memcpy(&flag, at, sizeof flag);
        field.number = flag;
    } else {
        is_known = false;
    }
    *ret_field = field;
    return is_known ? HF_OK : bad_member(op, verb, member);
}

hf_status hf_payload_write(const void *from, const hf_member *members, hf_payload *ret_payload)
{
    if (from == NULL || members == NULL || ret_payload == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_payload_write needs a struct, members and a place for the payload");
    }
    writing w;
    hf_status status = HF_OK;
    begin_object(&w, "hf_payload_write");
    for (; members->key != NULL && status == HF_OK; members++) {
        hf_field field;
        status = field_of(&w.op, w.verb, members, (const char *)from + members->offset, &field);
        status = status == HF_OK ? put_field(&w.op, w.verb, &w.json, &field) : status;
    }
    return end_object(&w, status, ret_payload);
}
