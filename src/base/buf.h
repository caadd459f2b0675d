/* hf_buf: a growing, owned byte buffer with a limit and a sticky status.
 *
 * Puts return nothing: a put that does not fit or finds no memory leaves the buffer as it was and sets the status,
 * and every later put does nothing. So the caller checks the status once, at the end. A put is all or nothing, so
 * the content always consists of whole puts. One byte beyond `len` is kept for a NUL: the content can be read as a
 * string. */
#ifndef HF_BASE_BUF_H
#define HF_BASE_BUF_H

#include "base/base.h"

#include <holdfast/runtime.h>

#include <string.h>

typedef struct hf_buf {
    char *data;          /* owned; NULL until something is put */
    size_t len;          /* bytes put */
    size_t capacity;     /* bytes of `data`, the one for the NUL included */
    size_t limit;        /* `len` never exceeds it */
    hf_status status;    /* HF_OK, HF_ERR_NOMEM or HF_ERR_TOO_BIG; sticky */
    hf_allocator memory; /* where `data` comes from */
} hf_buf;

void hf_buf_init(hf_buf *buf, hf_allocator memory, size_t limit);
void hf_buf_deinit(hf_buf *buf);
/* Makes room for `len` bytes more. False: the status says why. */
bool hf_buf_grow(hf_buf *buf, size_t len);
void hf_buf_putf(hf_buf *buf, const char *format, ...) HF_PRINTF(2, 3);

static inline bool hf_buf_reserve(hf_buf *buf, size_t len)
{
    return HF_LIKELY(buf->status == HF_OK && len < buf->capacity - buf->len) || hf_buf_grow(buf, len);
}

/* `bytes` must not lie in the buffer itself. */
static inline void hf_buf_put(hf_buf *buf, const void *bytes, size_t len)
{
    if (len > 0 && HF_LIKELY(hf_buf_reserve(buf, len))) {
        memcpy(buf->data + buf->len, bytes, len);
        buf->len += len;
        buf->data[buf->len] = '\0';
    }
}

static inline void hf_buf_puts(hf_buf *buf, const char *text)
{
    hf_buf_put(buf, text, strlen(text));
}

static inline void hf_buf_putc(hf_buf *buf, char byte)
{
    hf_buf_put(buf, &byte, 1);
}

static inline hf_status hf_buf_status(const hf_buf *buf)
{
    return buf->status;
}

/* The content as a string; valid until the next put. */
static inline const char *hf_buf_text(const hf_buf *buf)
{
    return buf->data != NULL ? buf->data : "";
}

#endif
