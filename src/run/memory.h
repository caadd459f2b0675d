/* The memory of runs. All memory that a run owns comes from one allocator and is counted there. A failed allocation is remembered, so that
 * code which fills a run need not check every step: it checks once, at the end, and throws the run away if memory was missing. */
#ifndef HF_RUN_MEMORY_H
#define HF_RUN_MEMORY_H

#include "base/arena.h"
#include "base/op.h"
#include "run/machine.h"

typedef struct hf_run_memory {
    hf_allocator heap;             /* of everything that a run owns */
    hf_arena *scratch;             /* for messages that are decoded to fill a run; the owner resets it */
    hf_status status;              /* HF_ERR_NOMEM after an allocation failed; sticky */
    void (*on_failure)(void *arg); /* called when `status` is set; may be NULL */
    void *arg;                     /* for on_failure */
    hf_arrows arrows;              /* which arrows of the machines were taken */
    size_t part_len_min; /* bytes from which on a piece of a state gets a row of its own; 0 = HF_PART_LEN_MIN */
} hf_run_memory;

/* The status of something that was read with the scratch arena: what cannot be read for want of memory is not damaged. */
hf_status hf_run_memory_judge(hf_op *op, const hf_run_memory *memory, hf_status status);
/* Sets the sticky status. */
void hf_run_memory_fail(hf_run_memory *memory);
void *hf_run_alloc(hf_run_memory *memory, size_t len); /* cleared; NULL: the status is set */
void hf_run_release(hf_run_memory *memory, void *ptr, size_t len);

/* Bytes with an owner. */
typedef struct hf_owned {
    char *data; /* NULL when empty */
    size_t len;
} hf_owned;

static inline hf_str hf_owned_str(const hf_owned *owned)
{
    return (hf_str){owned->data, owned->len};
}

/* Copies the bytes. Leaves the old ones if there is no memory. */
void hf_owned_set(hf_run_memory *memory, hf_owned *owned, hf_str bytes);
static inline void hf_owned_free(hf_run_memory *memory, hf_owned *owned)
{
    hf_assert((owned->data == NULL) == (owned->len == 0));
    if (owned->data != NULL) {
        hf_run_release(memory, owned->data, owned->len);
        *owned = (hf_owned){NULL, 0};
    }
}

/* A growing array; items of the struct that holds it. */
#define HF_VEC(type)     \
    struct {             \
        type *items;     \
        size_t count;    \
        size_t capacity; \
    }

/* Makes room for one more item; false: no memory. */
bool hf_vec_grow(hf_run_memory *memory, void **items, size_t *capacity, size_t count, size_t item_len);
#define HF_VEC_RESERVE(memory, vec) \
    hf_vec_grow((memory), (void **)&(vec)->items, &(vec)->capacity, (vec)->count, sizeof *(vec)->items)
#define HF_VEC_FREE(memory, vec) hf_run_release((memory), (vec)->items, (vec)->capacity * sizeof *(vec)->items)

#endif
