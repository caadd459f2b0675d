#include "wire/json_memory.h"

enum { SIZE_ROOM = 16 }; /* in front of each piece: its length, so that it can be moved */

void hf_json_memory_fail(hf_json_memory *memory)
{
    longjmp(memory->none, 1);
}

static void *take(void *ctx, size_t len)
{
    hf_json_memory *memory = ctx;
    char *piece = len < SIZE_MAX - SIZE_ROOM ? hf_arena_take(memory->arena, len + SIZE_ROOM, 16) : NULL;
    if (piece == NULL) {
        hf_json_memory_fail(memory);
    }
    memcpy(piece, &len, sizeof len);
    return piece + SIZE_ROOM;
}

static void give(void *ctx, void *ptr)
{
    (void)ctx; /* it goes with the arena */
    (void)ptr;
}

static void *move(void *ctx, void *ptr, size_t len)
{
    void *moved = take(ctx, len);
    if (ptr != NULL) {
        size_t old = 0;
        memcpy(&old, (char *)ptr - SIZE_ROOM, sizeof old);
        memcpy(moved, ptr, old < len ? old : len);
    }
    return moved;
}

yajl_alloc_funcs hf_json_memory_funcs(hf_json_memory *memory)
{
    hf_assert(memory->arena != NULL);
    return (yajl_alloc_funcs){.malloc = take, .realloc = move, .free = give, .ctx = memory};
}

hf_str hf_json_memory_copy(hf_json_memory *memory, const unsigned char *text, size_t len)
{
    hf_str copy = hf_arena_copy(memory->arena, hf_str_of_len((const char *)text, len));
    if (memory->arena->status != HF_OK) {
        hf_json_memory_fail(memory);
    }
    return copy;
}
