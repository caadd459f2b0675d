/* Whether a text is JSON. */
#ifndef HF_WIRE_JSON_CHECK_H
#define HF_WIRE_JSON_CHECK_H

#include "base/str.h"

#define HF_JSON_DEPTH_MAX 100 /* nested arrays and objects; one byte for each is on the stack */

/* Whether the text is one JSON value in UTF-8 and nothing else (RFC 8259). Texts nested deeper than HF_JSON_DEPTH_MAX
 * are refused. Duplicate keys, and numbers that fit no C type, are accepted. */
bool hf_json_is_valid(hf_str text);

#endif
