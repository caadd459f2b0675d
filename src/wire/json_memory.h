/* The memory of yajl: an arena. A request that cannot be fulfilled leaves yajl by longjmp, because yajl does not check. */
#ifndef HF_WIRE_JSON_MEMORY_H
#define HF_WIRE_JSON_MEMORY_H

#include "base/arena.h"

#include <setjmp.h>
#include <yajl/yajl_common.h>

typedef struct hf_json_memory {
    hf_arena *arena;
    jmp_buf none; /* set by setjmp before yajl is called */
} hf_json_memory;

/* What yajl_alloc takes. */
yajl_alloc_funcs hf_json_memory_funcs(hf_json_memory *memory);
/* A copy in the arena, with a NUL. */
hf_str hf_json_memory_copy(hf_json_memory *memory, const unsigned char *text, size_t len);
/* Leaves yajl. */
_Noreturn void hf_json_memory_fail(hf_json_memory *memory);

#endif
