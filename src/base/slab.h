/* hf_slab: memory for many small things of few sizes, by one thread.
 *
 * Lengths are rounded up to one of some thirty classes, four to a doubling; what is released goes to the list of its class and
 * is given out again from there. New pieces are cut from chunks, which go back to the allocator behind it only all at
 * once, at the end: the slab holds, for each class, what that class needed at its peak. Longer things than a class has are
 * passed through.
 *
 * Under AddressSanitizer everything is passed through, so that it sees every single piece. */
#ifndef HF_BASE_SLAB_H
#define HF_BASE_SLAB_H

#include "base/env.h"

#define HF_SLAB_CLASS_COUNT 32
#define HF_SLAB_LEN_MAX 2048 /* of a class */

typedef struct hf_slab_piece hf_slab_piece;
typedef struct hf_slab_chunk hf_slab_chunk;

typedef struct hf_slab {
    hf_allocator memory;                      /* behind it */
    hf_slab_piece *free[HF_SLAB_CLASS_COUNT]; /* released pieces by class */
    hf_slab_chunk *chunks;                    /* newest first */
    char *cut;                                /* the unused rest of the newest one ... */
    char *cut_end;                            /* ... and its end */
    size_t held;                              /* bytes in chunks */
} hf_slab;

void hf_slab_init(hf_slab *slab, hf_allocator memory);
/* Everything that was taken is gone, but what was passed through. */
void hf_slab_deinit(hf_slab *slab);
/* An allocator that takes from it; valid as long as the slab. */
hf_allocator hf_slab_memory(hf_slab *slab);

#endif
