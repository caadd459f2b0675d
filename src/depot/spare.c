/* Memory of slots, flights, calls and changes: what is freed is kept for the next one of about the same size. A fetch needs one of each,
 * and with 1,000 at once they are more, and larger, than what the allocator keeps at hand itself.
 *
 * By the driver. With the address sanitizer nothing is kept, so that a use after the end is seen. */
#include "depot/depot_private.h"

enum { STEP = 64, SPARE_BYTES_MAX = 1024 * 1024 };

typedef struct spare {
    struct spare *next;
} spare;

static size_t class_of(size_t size)
{
    return (size + STEP - 1) / STEP;
}

void *hf_spare_take(hf_depot *depot, size_t size)
{
    size_t which = class_of(size);
    spare *one = which < HF_SPARE_CLASSES ? depot->spares[which] : NULL;
    if (one == NULL) {
        return hf_rt_alloc(depot->rt, which * STEP);
    }
    hf_assert(depot->spare_bytes >= which * STEP);
    depot->spares[which] = one->next;
    depot->spare_bytes -= which * STEP;
    memset(one, 0, size);
    return one;
}

void hf_spare_give(hf_depot *depot, void *memory, size_t size)
{
    size_t which = class_of(size);
    if (memory == NULL) {
        return;
    }
    if (HF_ASAN || depot->is_ending || which >= HF_SPARE_CLASSES ||
        depot->spare_bytes + which * STEP > SPARE_BYTES_MAX) {
        hf_rt_free(depot->rt, memory, which * STEP);
        return;
    }
    spare *one = memory;
    one->next = depot->spares[which];
    depot->spares[which] = one;
    depot->spare_bytes += which * STEP;
}

void hf_spare_drop_all(hf_depot *depot)
{
    for (size_t which = 0; which < HF_SPARE_CLASSES; which++) {
        for (spare *one = depot->spares[which]; one != NULL; one = depot->spares[which]) {
            depot->spares[which] = one->next;
            hf_rt_free(depot->rt, one, which * STEP);
        }
    }
    depot->spare_bytes = 0;
}
