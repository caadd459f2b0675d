#include "base/options.h"

#include <string.h>

hf_status hf_options_copy(hf_op *op, void *own, size_t own_len, const void *given)
{
    size_t len = given != NULL ? *(const size_t *)given : 0;
    hf_assert(own_len >= sizeof len && own_len <= HF_OPTIONS_LEN_MAX);
    memset(own, 0, own_len);
    memcpy(own, &own_len, sizeof own_len);
    if (given == NULL) {
        return HF_OK;
    }
    if (len < sizeof len || len > HF_OPTIONS_LEN_MAX) {
        return hf_fail(op, HF_ERR_MISUSE,
                       "the options have .size = %zu: it must be sizeof the options struct, as the macro without _with "
                       "sets it",
                       len);
    }
    size_t known = len < own_len ? len : own_len;
    memcpy((char *)own + sizeof len, (const char *)given + sizeof len, known - sizeof len);
    for (size_t i = known; i < len; i++) {
        if (((const char *)given)[i] != 0) {
            return hf_fail(op, HF_ERR_UNSUPPORTED,
                           "an option at byte %zu of the options struct is set, but Holdfast " HF_VERSION_TEXT
                           " knows only %zu bytes: the program was compiled with a newer header",
                           i, own_len);
        }
    }
    return HF_OK;
}
