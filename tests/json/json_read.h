/* JSON text to a tree, by jansson: a reader that is not the library's, for tests that compare. */
#ifndef HF_TESTS_JSON_JSON_READ_H
#define HF_TESTS_JSON_JSON_READ_H

#include "wire/json_tree.h"

#define HF_TREE_DEPTH_MAX 100 /* arrays and objects in each other: recursion fits a fiber's stack */

/* As hf_json_tree_read; no key twice. Fails: HF_ERR_INVALID (with line and column), HF_ERR_TOO_BIG, HF_ERR_NOMEM. */
hf_status hf_json_read(hf_op *op, hf_str text, hf_arena *arena, hf_json_value *ret_value);

#endif
