/* Whether a text is JSON. */
#ifndef HF_WIRE_JSON_CHECK_H
#define HF_WIRE_JSON_CHECK_H

#include "base/str.h"

#define HF_JSON_DEPTH_MAX 100 /* arrays and objects in each other; one byte for each is on the stack */

/* One JSON value in UTF-8 and nothing else (RFC 8259). Texts nested deeper than HF_JSON_DEPTH_MAX are refused. An object that holds
 * a key twice, and a number that no C type holds, are JSON too. */
bool hf_json_is_valid(hf_str text);

#endif
