/* JSON texts, read: the only place of the library that does. The work is done by yajl (docs/adr/0020), which reads a text
 * without building a tree and gives numbers with all of their digits. */
#ifndef HF_WIRE_JSON_READ_H
#define HF_WIRE_JSON_READ_H

#include "base/arena.h"
#include "base/op.h"
#include "base/str.h"

#include <holdfast/json.h>

#define HF_JSON_READ_DEPTH_MAX 100 /* nested arrays and objects: as deep as HTTP requests may be */

/* One step of a path: the value of a key, or an element of an array. */
typedef struct hf_json_step {
    hf_str key;
    size_t index;
    bool is_index;
} hf_json_step;

/* A value of a text. */
typedef struct hf_json_found {
    hf_json_kind kind; /* HF_KIND_MISSING: the path leads nowhere */
    size_t steps;      /* of the path that were found */
    size_t start; /* byte of the text where it begins; if it is missing, where the last one begins that was found */
    size_t end;   /* the byte behind it */
    bool flag;    /* HF_KIND_BOOL */
    size_t count; /* HF_KIND_ARRAY, HF_KIND_OBJECT: elements or keys */
    hf_str text;  /* HF_KIND_TEXT: without escapes, in the arena; bytes of 0 may be in it */
} hf_json_found;

/* Reads the whole text, which must be one JSON value in UTF-8 (RFC 8259), and finds the value that the steps lead to. Of
 * a key that is there twice the last one counts.
 * Fails: HF_ERR_INVALID: it is not JSON, or is nested deeper than HF_JSON_READ_DEPTH_MAX; the message names the byte;
 * HF_ERR_NOMEM. */
hf_status hf_json_find(hf_op *op, hf_str text, const hf_json_step *steps, size_t count, hf_arena *arena,
                       hf_json_found *ret_value);
/* Whether the text is JSON. Fails: as above. */
hf_status hf_json_check(hf_op *op, hf_str text, hf_allocator memory);

#endif
