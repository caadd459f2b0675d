#include "base/slab.h"

enum { CHUNK_LEN = 64 * 1024, ALIGN = 16 };

struct hf_slab_piece {
    hf_slab_piece *next;
};

struct hf_slab_chunk {
    hf_slab_chunk *older;
    void *unused; /* aligns the pieces that follow */
};
_Static_assert(sizeof(hf_slab_chunk) == ALIGN, "pieces are aligned for anything");

/* 16, 32, 48 ... 128 in steps of 16, then four classes to a doubling: 160, 192, 224, 256, 320 ... 2048. */
static size_t class_of(size_t len, size_t *ret_len)
{
    if (len <= 128) {
        size_t at = len > 0 ? (len - 1) / ALIGN : 0;
        *ret_len = (at + 1) * ALIGN;
        return at;
    }
    size_t doubling =
        (size_t)(63 - __builtin_clzll((unsigned long long)(len - 1))); /* 2^doubling < len <= 2^(doubling+1) */
    size_t step = (size_t)1 << (doubling - 2);
    size_t quarter = (len - 1 - ((size_t)1 << doubling)) / step;
    *ret_len = ((size_t)1 << doubling) + (quarter + 1) * step;
    return 8 + (doubling - 7) * 4 + quarter;
}

static void *cut(hf_slab *slab, size_t len)
{
    if ((size_t)(slab->cut_end - slab->cut) < len) {
        hf_slab_chunk *chunk = slab->memory.allocate(slab->memory.state, CHUNK_LEN, ALIGN);
        if (chunk == NULL) {
            return NULL;
        }
        *chunk = (hf_slab_chunk){.older = slab->chunks};
        slab->chunks = chunk;
        slab->cut = (char *)(chunk + 1);
        slab->cut_end = (char *)chunk + CHUNK_LEN;
        slab->held += CHUNK_LEN;
    }
    void *piece = slab->cut;
    slab->cut += len;
    return piece;
}

static bool is_passed_through(size_t len)
{
    return HF_ASAN || len > HF_SLAB_LEN_MAX;
}

static void *slab_allocate(void *state, size_t len, size_t align)
{
    hf_slab *slab = state;
    if (is_passed_through(len)) {
        return slab->memory.allocate(slab->memory.state, len, align);
    }
    hf_assert(align <= ALIGN);
    size_t class_len = 0;
    size_t at = class_of(len, &class_len);
    hf_slab_piece *piece = slab->free[at];
    if (piece == NULL) {
        return cut(slab, class_len);
    }
    slab->free[at] = piece->next;
    return piece;
}

static void slab_release(void *state, void *ptr, size_t len)
{
    hf_slab *slab = state;
    if (ptr == NULL) {
        return;
    }
    if (is_passed_through(len)) {
        slab->memory.release(slab->memory.state, ptr, len);
        return;
    }
    size_t class_len = 0;
    size_t at = class_of(len, &class_len);
    hf_slab_piece *piece = ptr;
    piece->next = slab->free[at];
    slab->free[at] = piece;
}

void hf_slab_init(hf_slab *slab, hf_allocator memory)
{
    *slab = (hf_slab){.memory = memory};
}

void hf_slab_deinit(hf_slab *slab)
{
    while (slab->chunks != NULL) {
        hf_slab_chunk *older = slab->chunks->older;
        slab->memory.release(slab->memory.state, slab->chunks, CHUNK_LEN);
        slab->chunks = older;
    }
    *slab = (hf_slab){.memory = slab->memory};
}

hf_allocator hf_slab_memory(hf_slab *slab)
{
    return (hf_allocator){slab_allocate, slab_release, slab};
}
