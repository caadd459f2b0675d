/* Base64 in the standard alphabet, padded. The decoder also takes the alphabet for URLs, and text without padding. */
#ifndef HF_WIRE_BASE64_H
#define HF_WIRE_BASE64_H

#include "base/arena.h"
#include "base/buf.h"

void hf_base64_encode(hf_str bytes, hf_buf *out);
/* The bytes, in the arena. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_base64_decode(hf_str text, hf_arena *arena, hf_str *ret_bytes);

#endif
