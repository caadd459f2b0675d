#include "base/arenas.h"

void hf_arenas_init(hf_arenas *arenas, hf_allocator memory)
{
    arenas->memory = memory;
    arenas->count = 0;
    arenas->lock = (hf_spin){0};
}

void hf_arenas_deinit(hf_arenas *arenas)
{
    while (arenas->count > 0) {
        hf_arena_deinit(&arenas->spare[--arenas->count]);
    }
}

hf_arena hf_arenas_take(hf_arenas *arenas)
{
    hf_arena arena;
    hf_spin_lock(&arenas->lock);
    if (arenas->count > 0) {
        arena = arenas->spare[--arenas->count];
    } else {
        hf_arena_init(&arena, arenas->memory);
    }
    hf_spin_unlock(&arenas->lock);
    return arena;
}

void hf_arenas_give(hf_arenas *arenas, hf_arena *arena)
{
    bool is_kept = false;
    hf_assert(arena->memory.state == arenas->memory.state); /* the pool gives it to others */
    if (!HF_ASAN && arena->used >= HF_ARENA_KEEP_MIN && arena->used <= HF_ARENA_KEEP_MAX) {
        hf_arena_reset(arena);
        hf_spin_lock(&arenas->lock);
        is_kept = arenas->count < HF_ARENAS_MAX;
        if (is_kept) {
            arenas->spare[arenas->count++] = *arena;
        }
        hf_spin_unlock(&arenas->lock);
    }
    if (!is_kept) {
        hf_arena_deinit(arena);
    }
    hf_arena_init(arena, arenas->memory);
}
