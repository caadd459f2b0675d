/* hf_slab: memory for many small blocks of few sizes, for one thread.
 *
 * Lengths are rounded up to one of some thirty classes, four to a doubling. A released block goes to the list of its
 * class and is given out again from there. New blocks are cut from chunks, which go back to the allocator only all at
 * once, at the end: for each class the slab keeps as much memory as that class needed at its peak. Blocks that are
 * longer than the largest class are passed through to the allocator.
 *
 * Under AddressSanitizer everything is passed through, so that it sees every single block. */
#ifndef HF_BASE_SLAB_H
#define HF_BASE_SLAB_H

#include "base/env.h"

#define HF_SLAB_CLASS_COUNT 32
#define HF_SLAB_LEN_MAX 2048 /* bytes of the largest class */

typedef struct hf_slab_piece hf_slab_piece;
typedef struct hf_slab_chunk hf_slab_chunk;

typedef struct hf_slab {
    hf_allocator memory;                      /* source of the chunks */
    hf_slab_piece *free[HF_SLAB_CLASS_COUNT]; /* released pieces by class */
    hf_slab_chunk *chunks;                    /* newest first */
    char *cut;                                /* the unused rest of the newest one ... */
    char *cut_end;                            /* ... and its end */
    size_t held;                              /* bytes in chunks */
} hf_slab;

void hf_slab_init(hf_slab *slab, hf_allocator memory);
/* Frees all blocks that were taken, except those that were passed through. */
void hf_slab_deinit(hf_slab *slab);
/* An allocator that takes from it; valid as long as the slab. */
hf_allocator hf_slab_memory(hf_slab *slab);

#endif
