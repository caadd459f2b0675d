/* Base64 in the standard alphabet. */
#ifndef HF_WIRE_BASE64_H
#define HF_WIRE_BASE64_H

#include "base/buf.h"
#include "base/str.h"

/* Appends the text. The status is the buffer's. */
void hf_base64_encode(hf_str bytes, hf_buf *out);
/* Appends the bytes; the padding may be missing, as in gRPC's headers. False: it is not base64, or there is no memory. */
bool hf_base64_parse(hf_str text, hf_buf *out);

#endif
