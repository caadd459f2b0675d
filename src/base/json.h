/* A small JSON writer on hf_buf. It puts the commas; the caller opens, closes and names:
 *
 *     hf_json json;
 *     hf_json_init(&json, &buf);
 *     hf_json_object(&json);
 *     hf_json_key(&json, "fibers");
 *     hf_json_int(&json, 3);
 *     hf_json_end(&json);
 *
 * For any bytes of a string the output is valid JSON in valid UTF-8: control characters are escaped, and bytes that are
 * not UTF-8 become U+FFFD. The status is the buffer's. */
#ifndef HF_BASE_JSON_H
#define HF_BASE_JSON_H

#include "base/buf.h"

#define HF_JSON_DEPTH_MAX 64 /* nested objects and arrays: our output is flat, and readers have limits */

typedef struct hf_json {
    hf_buf *buf;
    bool comma;       /* a value stands before: the next one needs a comma */
    bool after_key;   /* the next value belongs to a key */
    int depth;        /* open objects and arrays */
    uint64_t objects; /* bit n: the n-th open one is an object */
} hf_json;

void hf_json_init(hf_json *json, hf_buf *buf);
void hf_json_object(hf_json *json);
void hf_json_array(hf_json *json);
void hf_json_end(hf_json *json); /* closes the innermost object or array */
void hf_json_key(hf_json *json, const char *key);
void hf_json_string(hf_json *json, const char *text); /* NULL is written as null */
void hf_json_string_len(hf_json *json, const char *text, size_t len);
void hf_json_int(hf_json *json, int64_t value);
void hf_json_uint(hf_json *json, uint64_t value);
void hf_json_bool(hf_json *json, bool value);
void hf_json_null(hf_json *json);
void hf_json_raw(hf_json *json, const char *text, size_t len); /* JSON already: written as it is */

/* A key and its value in one go. */
void hf_json_key_string(hf_json *json, const char *key, const char *text);
void hf_json_key_int(hf_json *json, const char *key, int64_t value);
void hf_json_key_uint(hf_json *json, const char *key, uint64_t value);
void hf_json_key_bool(hf_json *json, const char *key, bool value);

/* Text between quotes, escaped as above, for formats that quote like JSON. */
void hf_json_quote(hf_buf *buf, const char *text, size_t len);

#endif
