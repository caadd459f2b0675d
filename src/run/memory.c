#include "run/memory.h"

#include <string.h>

hf_status hf_run_memory_judge(hf_op *op, const hf_run_memory *memory, hf_status status)
{
    bool is_short = memory->status != HF_OK || memory->scratch->status != HF_OK;
    return is_short && status != HF_ERR_NOMEM ? hf_fail(op, HF_ERR_NOMEM, "no memory for a run") : status;
}

void hf_run_memory_fail(hf_run_memory *memory)
{
    if (memory->status == HF_OK) {
        memory->status = HF_ERR_NOMEM;
        if (memory->on_failure != NULL) {
            memory->on_failure(memory->arg);
        }
    }
}

void *hf_run_alloc(hf_run_memory *memory, size_t len)
{
    hf_assert(len > 0);
    void *ptr = memory->heap.allocate(memory->heap.state, len, 0);
    if (ptr == NULL) {
        hf_run_memory_fail(memory);
        return NULL;
    }
    return memset(ptr, 0, len);
}

void hf_run_release(hf_run_memory *memory, void *ptr, size_t len)
{
    hf_assert(ptr == NULL || len > 0);
    if (ptr != NULL) {
        memory->heap.release(memory->heap.state, ptr, len);
    }
}

void hf_owned_set(hf_run_memory *memory, hf_owned *owned, hf_str bytes)
{
    char *data = NULL;
    if (bytes.len > 0) {
        data = hf_run_alloc(memory, bytes.len);
        if (data == NULL) {
            return;
        }
        memcpy(data, bytes.data, bytes.len);
    }
    hf_owned_free(memory, owned);
    *owned = (hf_owned){data, bytes.len};
}

bool hf_vec_grow(hf_run_memory *memory, void **items, size_t *capacity, size_t count, size_t item_len)
{
    hf_assert(count <= *capacity);
    if (count < *capacity) {
        return true;
    }
    size_t larger = *capacity > 0 ? *capacity * 2 : 4;
    void *grown = hf_run_alloc(memory, larger * item_len);
    if (grown == NULL) {
        return false;
    }
    if (*items != NULL) {
        memcpy(grown, *items, count * item_len);
        hf_run_release(memory, *items, *capacity * item_len);
    }
    *items = grown;
    *capacity = larger;
    return true;
}
