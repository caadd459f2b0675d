/* JSON in payloads: objects from typed fields, values by their path, and structs by a table.
 *
 *     HF_TRY(hf_payload_object(&order, hf_field_text("item", name), hf_field_int("count", 3)));
 *
 *     int64_t cents = 0;
 *     HF_TRY(hf_json_get_int(in, "lines[2].price.cents", &cents));
 *
 * The functions may be used in workflows: what they answer depends on the text alone. Numbers keep their digits: nothing
 * here turns a number into another one before a function is asked for an int or a real.
 *
 * A path names keys, separated by dots, and elements of arrays, from 0 on: "a.b[2].c". "" is the whole text. A dot, a
 * bracket or a backslash that is part of a key has a backslash before it: "a\\.b" is the key "a.b". Of a key that is
 * there twice the last one counts. A path has at most 32 parts. */
#ifndef HOLDFAST_JSON_H
#define HOLDFAST_JSON_H

#include <holdfast/payload.h>
#include <holdfast/time.h>

#include <stddef.h>
#include <stdint.h>

/* ---- Writing ------------------------------------------------------------------------------------------------------- */

typedef enum hf_field_kind {
    HF_FIELD_END, /* the end of a list of fields or members */
    HF_FIELD_TEXT,
    HF_FIELD_INT,
    HF_FIELD_REAL,
    HF_FIELD_BOOL,
    HF_FIELD_JSON, /* a JSON text */
    HF_FIELD_NULL,
    HF_FIELD_TIME /* as text: "2024-02-29T12:00:00.500Z" */
} hf_field_kind;

/* A key and its value. Borrowed. */
typedef struct hf_field {
    const char *key;
    hf_field_kind kind;
    const char *text; /* HF_FIELD_TEXT; NULL is written as null */
    int64_t number;   /* HF_FIELD_INT, HF_FIELD_BOOL, HF_FIELD_TIME: nanoseconds */
    double real;      /* HF_FIELD_REAL */
    hf_payload json;  /* HF_FIELD_JSON */
} hf_field;

/* One member of a struct: see HF_MEMBER. */
typedef struct hf_member {
    const char *key; /* in the JSON object */
    hf_field_kind kind;
    bool is_optional; /* a missing or null value leaves the member as it is */
    size_t offset;    /* in the struct */
    size_t len;       /* bytes of the member; of a char array, with its NUL */
} hf_member;

typedef enum hf_json_kind {
    HF_KIND_MISSING, /* the path leads nowhere */
    HF_KIND_NULL,
    HF_KIND_BOOL,
    HF_KIND_NUMBER,
    HF_KIND_TEXT,
    HF_KIND_ARRAY,
    HF_KIND_OBJECT
} hf_json_kind;

HF_BEGIN_DECLS

/* A JSON object that the caller owns. Keys and texts are quoted and escaped; texts must be UTF-8. `fields` ends with
 * hf_field_end(). hf_payload_object below makes the list.
 * Fails: HF_ERR_INVALID: a text is not UTF-8, a real is not a number, a JSON text is none, a time is out of range;
 * HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_payload_object_of(const hf_field *fields, hf_payload *ret_payload);

/* ---- Reading -------------------------------------------------------------------------------------------------------
 *
 * Each reads the whole text, so that text that is not JSON is refused wherever it is broken. On failure nothing is
 * written. Fails, all of them: HF_ERR_INVALID: the payload is not JSON (its encoding says so, or its text), the path has
 * no value, or it is of another kind; the message names path and byte; HF_ERR_NOMEM: strings with long escapes only. */

/* A text, with a NUL behind it. Fails also: HF_ERR_TOO_BIG: `capacity` is too small; HF_ERR_INVALID: a character of 0 is
 * in it. */
HF_API HF_MUST_USE hf_status hf_json_get_text(hf_payload in, const char *path, size_t capacity, char *ret_text);
/* A number without fraction and exponent. Fails also: HF_ERR_TOO_BIG: it does not fit. */
HF_API HF_MUST_USE hf_status hf_json_get_int(hf_payload in, const char *path, int64_t *ret_number);
/* Any number, rounded to the nearest double. Fails also: HF_ERR_TOO_BIG: it does not fit. */
HF_API HF_MUST_USE hf_status hf_json_get_real(hf_payload in, const char *path, double *ret_number);
HF_API HF_MUST_USE hf_status hf_json_get_bool(hf_payload in, const char *path, bool *ret_flag);
/* Elements of an array, keys of an object. */
HF_API HF_MUST_USE hf_status hf_json_get_count(hf_payload in, const char *path, size_t *ret_count);
/* The kind of the value at the path. A missing value is HF_KIND_MISSING and not a failure, so optional values can be looked for. */
HF_API HF_MUST_USE hf_status hf_json_get_kind(hf_payload in, const char *path, hf_json_kind *ret_kind);
/* The value itself, as JSON text, borrowed from `in`: no NUL follows it. Numbers have their digits. */
HF_API HF_MUST_USE hf_status hf_json_get_view(hf_payload in, const char *path, hf_payload *ret_view);

/* ---- Structs -------------------------------------------------------------------------------------------------------
 *
 *     typedef struct order { char item[64]; int64_t cents; bool is_express; } order;
 *     static const hf_member ORDER[] = {HF_MEMBER(order, item), HF_MEMBER(order, cents),
 *                                       HF_OPTIONAL(order, is_express), HF_MEMBERS_END};
 *
 * Members are char arrays, int, int64_t, double and bool. */

/* Keys without a member are ignored, so that the sender may know more. On failure the struct is as before.
 * Fails: as the functions above; HF_ERR_INVALID: a member that is not optional is missing. */
HF_API HF_MUST_USE hf_status hf_payload_read(hf_payload in, const hf_member *members, void *ret_struct);
/* The struct as a JSON object that the caller owns. Fails: as hf_payload_object_of; HF_ERR_INVALID: a char array has no
 * NUL. */
HF_API HF_MUST_USE hf_status hf_payload_write(const void *from, const hf_member *members, hf_payload *ret_payload);

HF_END_DECLS

/* Fields: hf_field_text("item", name). */
static inline hf_field hf_field_make(const char *key, hf_field_kind kind)
{
    hf_field field;
    field.key = key;
    field.kind = kind;
    field.text = NULL;
    field.number = 0;
    field.real = 0;
    field.json = hf_payload_none();
    return field;
}

static inline hf_field hf_field_text(const char *key, const char *value)
{
    hf_field field = hf_field_make(key, HF_FIELD_TEXT);
    field.text = value;
    return field;
}

static inline hf_field hf_field_int(const char *key, int64_t value)
{
    hf_field field = hf_field_make(key, HF_FIELD_INT);
    field.number = value;
    return field;
}

static inline hf_field hf_field_real(const char *key, double value)
{
    hf_field field = hf_field_make(key, HF_FIELD_REAL);
    field.real = value;
    return field;
}

static inline hf_field hf_field_bool(const char *key, bool value)
{
    hf_field field = hf_field_make(key, HF_FIELD_BOOL);
    field.number = value;
    return field;
}

static inline hf_field hf_field_json(const char *key, hf_payload value)
{
    hf_field field = hf_field_make(key, HF_FIELD_JSON);
    field.json = value;
    return field;
}

static inline hf_field hf_field_time(const char *key, hf_time value)
{
    hf_field field = hf_field_make(key, HF_FIELD_TIME);
    field.number = value.ns;
    return field;
}

static inline hf_field hf_field_null(const char *key)
{
    return hf_field_make(key, HF_FIELD_NULL);
}

static inline hf_field hf_field_end(void)
{
    return hf_field_make(NULL, HF_FIELD_END);
}

#define HF_MEMBER_(type, member, is_optional)                                                                      \
    {                                                                                                              \
#member, HF_MEMBER_KIND_(type, member), (is_optional), offsetof(type, member), sizeof(((type *)0)->member) \
    }
#define HF_MEMBER(type, member) HF_MEMBER_(type, member, false)
#define HF_OPTIONAL(type, member) HF_MEMBER_(type, member, true)
#define HF_MEMBERS_END                  \
    {                                   \
        NULL, HF_FIELD_END, false, 0, 0 \
    }

/* hf_payload_object(ret_payload, fields...), for C and C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_payload_object(ret_payload, ...) \
    hf_payload_object_of((const hf_field[]){__VA_ARGS__, hf_field_end()}, (ret_payload))
#define HF_MEMBER_KIND_(type, member)                                                      \
    _Generic(&((type *)0)->member,                                                         \
             char (*)[sizeof(((type *)0)->member)] : HF_FIELD_TEXT,                        \
             int * : HF_FIELD_INT, long * : HF_FIELD_INT, long long * : HF_FIELD_INT,      \
             double * : HF_FIELD_REAL, bool * : HF_FIELD_BOOL)
#else
template <class... Fields>
static inline HF_MUST_USE hf_status hf_payload_object(hf_payload *ret_payload, Fields... fields)
{
    const hf_field list[] = {fields..., hf_field_end()};
    return hf_payload_object_of(list, ret_payload);
}
template <class Type> struct hf_member_kind_;
template <size_t Len> struct hf_member_kind_<char[Len]> { static const hf_field_kind kind = HF_FIELD_TEXT; };
template <> struct hf_member_kind_<int> { static const hf_field_kind kind = HF_FIELD_INT; };
template <> struct hf_member_kind_<long> { static const hf_field_kind kind = HF_FIELD_INT; };
template <> struct hf_member_kind_<long long> { static const hf_field_kind kind = HF_FIELD_INT; };
template <> struct hf_member_kind_<double> { static const hf_field_kind kind = HF_FIELD_REAL; };
template <> struct hf_member_kind_<bool> { static const hf_field_kind kind = HF_FIELD_BOOL; };
#define HF_MEMBER_KIND_(type, member) hf_member_kind_<decltype(type::member)>::kind
#endif
/* clang-format on */

#endif
