/* The texts that hf_dump and hf_metrics give to the user. */
#ifndef HF_FIBER_TEXT_H
#define HF_FIBER_TEXT_H

#include "base/buf.h"
#include "fiber/core.h"

#define HF_TEXT_LEN_MAX ((size_t)64 << 20) /* bytes of one text: an editor can still open it */

/* A copy of the text in `buf`, freed with hf_text_free. Fails: HF_ERR_NOMEM, the buffer's own status. */
hf_status hf_text_give(hf_op *op, const hf_buf *buf, char **ret_text);

#endif
