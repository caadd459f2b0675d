/* JSON text to a tree in an arena. The text is checked and bounded. */
#ifndef HF_WIRE_JSON_TREE_H
#define HF_WIRE_JSON_TREE_H

#include "base/arena.h"
#include "base/op.h"

#define HF_JSON_READ_LEN_MAX (1u << 28) /* bytes of a text: a history of 50 MiB, in base64, with room to spare */

typedef enum hf_tree_kind {
    HF_JSON_NULL,
    HF_JSON_BOOL,
    HF_JSON_INT,
    HF_JSON_REAL,
    HF_JSON_STRING,
    HF_JSON_ARRAY,
    HF_JSON_OBJECT
} hf_tree_kind;

typedef struct hf_json_value hf_json_value;
typedef struct hf_json_member hf_json_member;

struct hf_json_value {
    hf_tree_kind kind;
    union {
        bool truth;
        int64_t integer; /* an integer that fits */
        double real;
        hf_str string; /* UTF-8; may hold NUL */
        struct {
            hf_json_value *items;
            size_t count;
        } array;
        struct {
            hf_json_member *members; /* in the order of the text */
            size_t count;
        } object;
    };
};

struct hf_json_member {
    hf_str key;
    hf_json_value value;
};

/* Any value may stand at the top. Nothing of the result points into `text`.
 * Fails: HF_ERR_INVALID (with the byte; also if it is nested deeper than HF_JSON_READ_DEPTH_MAX), HF_ERR_TOO_BIG, HF_ERR_NOMEM. */
hf_status hf_json_tree_read(hf_op *op, hf_str text, hf_arena *arena, hf_json_value *ret_value);

#endif
