/* The stream of a chain in a store at rest. */
#ifndef HF_INSPECT_STREAM_H
#define HF_INSPECT_STREAM_H

#include "inspect/look.h"

/* Appends records of the chain that ends with this run as StreamRecords, from `from` on, at most until `out` has `len_max` bytes. `*ret_next`:
 * the number behind them, or, if nothing was appended, of the next record that was not deleted; `*ret_is_end`: there is none. Fails:
 * HF_ERR_INVALID (the message names the record), HF_ERR_NOMEM, as the store does. */
hf_status hf_look_stream(hf_op *op, hf_look *look, int64_t number, int64_t from, size_t len_max, hf_buf *out,
                         int64_t *ret_next, bool *ret_is_end);

#endif
