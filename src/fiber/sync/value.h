/* The layout of hf_value, for code that holds many: 16 bytes in front of a copy, 32 for an object of the user's. */
#ifndef HF_FIBER_VALUE_H
#define HF_FIBER_VALUE_H

#include "base/base.h"

#include <holdfast/keyed.h>

struct hf_value {
    atomic_uint refs;
    bool is_object; /* it is the head of an hf_value_object; else the bytes of a copy are behind it */
    size_t len;
};
_Static_assert(sizeof(hf_value) == 16, "a copy of bytes has a small header, and keeps the alignment of the allocator");

typedef struct hf_value_object {
    hf_value head; /* first */
    void *data;
    void (*release)(void *data); /* may be NULL */
} hf_value_object;

static inline void *hf_value_bytes(const hf_value *value)
{
    if (value->is_object) {
        return HF_CONTAINER_CONST(value, hf_value_object, head)->data;
    }
    union {
        const hf_value *from;
        void *to;
    } cast = {value + 1}; /* the holders of a value may write to it */
    return cast.to;
}

/* hf_value_ref of a value that is there. */
static inline hf_value *hf_value_hold(hf_value *value)
{
    unsigned before = atomic_fetch_add_explicit(&value->refs, 1, memory_order_relaxed);
    hf_assert(before > 0);
    return value;
}

#endif
