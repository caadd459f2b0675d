#include "fiber/watch/text.h"

/* hf_text_free gets a pointer and nothing else, so the memory is the operating system's, whichever allocator the
 * runtime was given. */
hf_status hf_text_give(hf_op *op, const hf_buf *buf, char **ret_text)
{
    if (hf_buf_status(buf) == HF_ERR_TOO_BIG) {
        return hf_fail(op, HF_ERR_TOO_BIG, "the text is longer than %zu bytes", buf->limit);
    }
    hf_env *env = hf_env_posix();
    char *text = hf_buf_status(buf) == HF_OK ? env->ops->allocate(env, buf->len + 1, 0) : NULL;
    if (text == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a text of %zu bytes", buf->len);
    }
    memcpy(text, hf_buf_text(buf), buf->len + 1);
    *ret_text = text;
    return HF_OK;
}
