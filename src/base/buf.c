#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

enum { CAPACITY_FIRST = 256, SMALL_MIN = 512, SMALL_MAX = 64 * 1024 };

void hf_buf_init(hf_buf *buf, hf_allocator memory, size_t limit)
{
    *buf = (hf_buf){.memory = memory, .limit = limit < SIZE_MAX / 4 ? limit : SIZE_MAX / 4};
}

void hf_buf_deinit(hf_buf *buf)
{
    if (buf->data != NULL) {
        buf->memory.release(buf->memory.state, buf->data, buf->capacity);
    }
    buf->data = NULL;
    buf->len = 0;
    buf->capacity = 0;
}

/* Doubles, so that n puts copy O(n) bytes. By half between the two: most of the buffers that live for long are in that range
 * (the logs of runs), and half of what they would take is not used. */
static size_t grown(size_t capacity)
{
    return capacity < SMALL_MIN || capacity > SMALL_MAX ? capacity * 2 : capacity + capacity / 2;
}

/* The last step goes to the limit and not beyond. */
bool hf_buf_grow(hf_buf *buf, size_t len)
{
    if (buf->status != HF_OK) {
        return false;
    }
    if (len > buf->limit - buf->len) {
        buf->status = HF_ERR_TOO_BIG;
        return false;
    }
    size_t needed = buf->len + len + 1;
    if (needed <= buf->capacity) {
        return true;
    }
    size_t capacity = buf->capacity > 0 ? buf->capacity : CAPACITY_FIRST;
    while (capacity < needed) {
        capacity = grown(capacity);
    }
    if (capacity > buf->limit + 1) {
        capacity = buf->limit + 1;
    }
    hf_assert(capacity >= needed); /* the limit leaves room for the NUL */
    char *data = buf->memory.allocate(buf->memory.state, capacity, 0);
    if (data == NULL) {
        buf->status = HF_ERR_NOMEM;
        return false;
    }
    if (buf->len > 0) {
        memcpy(data, buf->data, buf->len);
    }
    data[buf->len] = '\0';
    size_t kept = buf->len;
    hf_buf_deinit(buf);
    buf->data = data;
    buf->len = kept;
    buf->capacity = capacity;
    return true;
}

void hf_buf_putf(hf_buf *buf, const char *format, ...)
{
    if (buf->status != HF_OK) {
        return;
    }
    va_list args;
    va_start(args, format);
    size_t room = buf->capacity - buf->len;
    int len = vsnprintf(buf->data != NULL ? buf->data + buf->len : NULL, room, format, args);
    va_end(args);
    hf_assert(len >= 0);
    if ((size_t)len >= room || (size_t)len > buf->limit - buf->len) {
        bool fits = hf_buf_grow(buf, (size_t)len);
        if (!fits) {
            if (buf->data != NULL) {
                buf->data[buf->len] = '\0'; /* all or nothing */
            }
            return;
        }
        va_start(args, format);
        (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, format, args);
        va_end(args);
    }
    buf->len += (size_t)len;
}
