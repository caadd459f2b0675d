/* Base64 in the standard alphabet, padded. */
#ifndef HF_WIRE_BASE64_H
#define HF_WIRE_BASE64_H

#include "base/buf.h"
#include "base/str.h"

/* Appends the text. The status is the buffer's. */
void hf_base64_encode(hf_str bytes, hf_buf *out);

#endif
