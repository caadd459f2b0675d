/* hf_arena: memory that is freed all at once, with the operation that asked for it.
 *
 * Allocation is a pointer bump in chunks that double up to a bound; a request that does not fit a chunk gets one of its
 * own. Like hf_buf it has a sticky status: after a failed allocation everything fails, so the caller may check the
 * status once, at the end. Reset keeps one chunk, so that a loop of operations does not call the allocator again. */
#ifndef HF_BASE_ARENA_H
#define HF_BASE_ARENA_H

#include "base/str.h"

#include <holdfast/runtime.h>

typedef struct hf_arena_chunk hf_arena_chunk;

typedef struct hf_arena {
    hf_arena_chunk *chunks; /* newest first; NULL until the first allocation */
    char *free;             /* first unused byte of the newest chunk */
    char *end;              /* behind its last */
    size_t used;            /* bytes held in chunks, for budgets */
    size_t chunk_len_next;  /* length of the next chunk */
    hf_status status;       /* HF_OK or HF_ERR_NOMEM; sticky until hf_arena_reset */
    hf_allocator memory;    /* where chunks come from */
} hf_arena;

void hf_arena_init(hf_arena *arena, hf_allocator memory);
/* The same with `room` of the caller's as its first memory: an operation that fits in there allocates nothing. The room is
 * borrowed until hf_arena_deinit. Each of its bytes is handed out once: hf_arena_reset does not rewind it. */
void hf_arena_init_in(hf_arena *arena, hf_allocator memory, void *room, size_t room_len);
/* Frees everything; the arena is as after init. */
void hf_arena_deinit(hf_arena *arena);
/* Forgets everything, the status too, but keeps one chunk: another operation begins. */
void hf_arena_reset(hf_arena *arena);
/* The same, but keeps the status: for the steps of one operation that looks at the status at its end. */
void hf_arena_rewind(hf_arena *arena);
/* The slow half of hf_arena_take. */
void *hf_arena_take_slow(hf_arena *arena, size_t len, size_t align);

/* `len` bytes, not cleared, aligned for `align` (a power of two up to 16). NULL: out of memory. */
static inline void *hf_arena_take(hf_arena *arena, size_t len, size_t align)
{
    uintptr_t at = ((uintptr_t)arena->free + align - 1) & ~(uintptr_t)(align - 1);
    if (HF_LIKELY(arena->free != NULL && at <= (uintptr_t)arena->end && len <= (uintptr_t)arena->end - at)) {
        arena->free = (char *)at + len;
        return (void *)at;
    }
    return hf_arena_take_slow(arena, len, align);
}

/* The same, cleared. */
static inline void *hf_arena_zero(hf_arena *arena, size_t len, size_t align)
{
    void *ptr = hf_arena_take(arena, len, align);
    return ptr != NULL ? memset(ptr, 0, len) : NULL;
}

#define HF_ARENA_NEW(arena, type) ((type *)hf_arena_zero((arena), sizeof(type), _Alignof(type)))
#define HF_ARENA_ARRAY(arena, type, count) \
    ((type *)hf_arena_zero((arena), hf_arena_array_len((count), sizeof(type)), _Alignof(type)))

/* The product, or, if it overflows, a length that cannot be allocated. */
static inline size_t hf_arena_array_len(size_t count, size_t len)
{
    size_t product = 0;
    return __builtin_mul_overflow(count, len, &product) ? SIZE_MAX / 2 : product;
}

/* A copy of the bytes, followed by a NUL that is not counted in `len`. Empty if there is no memory, also for an absurd
 * length: check the status. */
hf_str hf_arena_copy(hf_arena *arena, hf_str bytes);

#endif
