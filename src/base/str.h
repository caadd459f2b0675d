/* hf_str: borrowed bytes, as a pointer and a length. Not NUL-terminated; may contain any byte. */
#ifndef HF_BASE_STR_H
#define HF_BASE_STR_H

#include "base/base.h"

#include <string.h>

typedef struct hf_str {
    const char *data; /* may be NULL when len is 0 */
    size_t len;       /* bytes */
} hf_str;

/* A literal, for expressions and for initialisers of statics. */
#define HF_STR(literal) ((hf_str){"" literal, sizeof(literal) - 1})
#define HF_STR_INIT(literal)            \
    {                                   \
        "" literal, sizeof(literal) - 1 \
    }
/* For printf: "%.*s". Long texts are cut there: these are for messages. */
#define HF_STR_ARGS(str) (int)((str).len > 1000 ? 1000 : (str).len), ((str).data != NULL ? (str).data : "")

static inline hf_str hf_str_of(const char *text)
{
    return (hf_str){text, text != NULL ? strlen(text) : 0};
}

static inline hf_str hf_str_of_len(const void *data, size_t len)
{
    return (hf_str){(const char *)data, len};
}

static inline bool hf_str_equal(hf_str a, hf_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Orders by bytes, then by length. */
static inline int hf_str_compare(hf_str a, hf_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.data, b.data, len) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

#endif
