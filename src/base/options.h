/* How a verb reads the options of its caller, which may have been compiled with an older or a newer header.
 *
 * Every options struct begins with its size as the caller knows it. New options are added at the end, never into padding, and 0
 * means the default. So an older, smaller struct is completed with zeros, and a newer, larger one is fine as long as
 * the part that this library does not know is zero. */
#ifndef HF_BASE_OPTIONS_H
#define HF_BASE_OPTIONS_H

#include "base/op.h"

#define HF_OPTIONS_LEN_MAX \
    ((size_t)4096) /* bytes: larger is not the size of an options struct, but an uninitialised field */

/* Whether the verb can use the caller's struct as it is, without a copy. */
static inline bool hf_options_fit(const void *given, size_t len)
{
    return given != NULL && *(const size_t *)given == len;
}

/* Makes `own`, `own_len` bytes, of the caller's struct; NULL gives the defaults. Fails: HF_ERR_MISUSE: the size is 0 or cannot
 * be one, and `own` has the defaults; HF_ERR_UNSUPPORTED: an option is set that this library does not know, and `own` has all
 * the others. */
hf_status hf_options_copy(hf_op *op, void *own, size_t own_len, const void *given);

#endif
