#include "base/arena.h"

#define HF_ARENA_CHUNK_LEN_MIN 1024
#define HF_ARENA_CHUNK_LEN_MAX (64 * 1024)

struct hf_arena_chunk {
    hf_arena_chunk *older;
    size_t len; /* of the allocation, this header included */
};

_Static_assert(sizeof(hf_arena_chunk) == 16, "the memory behind the header is aligned for anything");

void hf_arena_init(hf_arena *arena, hf_allocator memory)
{
    *arena = (hf_arena){.chunk_len_next = HF_ARENA_CHUNK_LEN_MIN, .memory = memory};
}

void hf_arena_init_in(hf_arena *arena, hf_allocator memory, void *room, size_t room_len)
{
    hf_assert(room != NULL || room_len == 0);
    hf_arena_init(arena, memory);
    arena->free = room;
    arena->end = arena->free + room_len;
}

static void release_chunks(hf_arena *arena, hf_arena_chunk *chunk)
{
    while (chunk != NULL) {
        hf_arena_chunk *older = chunk->older;
        arena->memory.release(arena->memory.state, chunk, chunk->len);
        chunk = older;
    }
}

void hf_arena_deinit(hf_arena *arena)
{
    release_chunks(arena, arena->chunks);
    hf_arena_init(arena, arena->memory);
}

void hf_arena_rewind(hf_arena *arena)
{
    hf_arena_chunk *kept = arena->chunks;
    if (kept == NULL) {
        return;
    }
    if (kept->len > HF_ARENA_CHUNK_LEN_MAX) { /* a chunk for a single large request: not worth keeping */
        hf_status status = arena->status;
        hf_arena_deinit(arena);
        arena->status = status;
        return;
    }
    release_chunks(arena, kept->older);
    kept->older = NULL;
    arena->used = kept->len;
    arena->free = (char *)(kept + 1);
    arena->end = (char *)kept + kept->len;
}

void hf_arena_reset(hf_arena *arena)
{
    arena->status = HF_OK;
    hf_arena_rewind(arena);
}

void *hf_arena_take_slow(hf_arena *arena, size_t len, size_t align)
{
    hf_assert(align > 0 && align <= 16 && (align & (align - 1)) == 0);
    if (arena->status != HF_OK || len > SIZE_MAX / 2 - sizeof(hf_arena_chunk)) {
        arena->status = HF_ERR_NOMEM;
        return NULL;
    }
    size_t chunk_len = arena->chunk_len_next;
    bool own = len > chunk_len - sizeof(hf_arena_chunk);
    if (own) {
        chunk_len = len + sizeof(hf_arena_chunk);
    }
    hf_arena_chunk *chunk = arena->memory.allocate(arena->memory.state, chunk_len, 16);
    if (chunk == NULL) {
        arena->status = HF_ERR_NOMEM;
        return NULL;
    }
    chunk->len = chunk_len;
    arena->used += chunk_len;
    if (own && arena->chunks != NULL) {
        /* Linked behind the newest chunk, whose unused rest stays in use. */
        chunk->older = arena->chunks->older;
        arena->chunks->older = chunk;
        return chunk + 1;
    }
    chunk->older = arena->chunks;
    arena->chunks = chunk;
    arena->end = (char *)chunk + chunk_len;
    arena->free = (char *)(chunk + 1) + len;
    if (arena->chunk_len_next < HF_ARENA_CHUNK_LEN_MAX) {
        arena->chunk_len_next *= 2;
    }
    return chunk + 1;
}

hf_str hf_arena_copy(hf_arena *arena, hf_str bytes)
{
    char *copy =
        bytes.len < SIZE_MAX ? hf_arena_take(arena, bytes.len + 1, 1) : NULL; /* SIZE_MAX + 1 for the NUL would be 0 */
    if (copy == NULL) {
        arena->status = HF_ERR_NOMEM;
        return (hf_str){NULL, 0};
    }
    if (bytes.len > 0) {
        memcpy(copy, bytes.data, bytes.len);
    }
    copy[bytes.len] = '\0';
    return (hf_str){copy, bytes.len};
}
