/* hf_arenas: a pool of empty arenas that keep their memory, because the next task needs about as much as the last one.
 *
 * Any thread. A pool holds at most HF_ARENAS_MAX arenas of HF_ARENA_KEEP_MIN to HF_ARENA_KEEP_MAX bytes each; other memory
 * goes back to the allocator. Under ASan nothing is kept, so that ASan notices late accesses to an arena's memory. */
#ifndef HF_BASE_ARENAS_H
#define HF_BASE_ARENAS_H

#include "base/arena.h"
#include "base/spin.h"

enum { HF_ARENAS_MAX = 256, HF_ARENA_KEEP_MIN = 1024, HF_ARENA_KEEP_MAX = 16 * 1024 };

typedef struct hf_arenas {
    hf_spin lock;                  /* guards the next two */
    int count;                     /* arenas in `spare` */
    hf_arena spare[HF_ARENAS_MAX]; /* empty; each has one chunk */
    hf_allocator memory;           /* for arenas that the pool does not have */
} hf_arenas;

void hf_arenas_init(hf_arenas *arenas, hf_allocator memory);
/* Frees the arenas of the pool; all that were taken have been given back. */
void hf_arenas_deinit(hf_arenas *arenas);
/* An empty arena, the caller's. */
hf_arena hf_arenas_take(hf_arenas *arenas);
/* Forgets the content of the arena and takes its memory; `*arena` is as after hf_arena_init. */
void hf_arenas_give(hf_arenas *arenas, hf_arena *arena);

#endif
