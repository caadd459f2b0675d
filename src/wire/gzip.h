/* gzip, whole texts at a time. The only place that knows zlib. */
#ifndef HF_WIRE_GZIP_H
#define HF_WIRE_GZIP_H

#include "base/buf.h"
#include "base/op.h"
#include "base/str.h"

/* Appends the inflated bytes, at most `len_max` of them. Time and memory follow the output, not what the input claims.
 * Fails: HF_ERR_INVALID (not gzip, damaged, or something behind it), HF_ERR_TOO_BIG, HF_ERR_NOMEM. */
hf_status hf_gunzip(hf_op *op, hf_str bytes, size_t len_max, hf_buf *out);

/* Appends the compressed bytes, quickly rather than well. Fails: HF_ERR_NOMEM. */
hf_status hf_gzip(hf_op *op, hf_str bytes, hf_buf *out);

#endif
