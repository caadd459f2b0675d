/* What the fuzz targets share. A target is a file with one LLVMFuzzerTestOneInput: the preset `fuzz` links it with libFuzzer,
 * every other build with replay.c, which feeds it the files of corpus/ and crashes/.
 *
 * A target checks with FUZZ_CHECK and ends the process when something is not so. Its memory comes from a fuzz_memory, which
 * counts: an input may not leave anything behind, and may not take more than the target allows for.
 *
 * The inputs of most targets are fields of a protobuf message. mutate.c changes such inputs field by field, so that lengths
 * stay right at every depth. */
#ifndef HF_TESTS_FUZZ_H
#define HF_TESTS_FUZZ_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/op.h"
#include "wire/pb.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(cond, ...)                                                \
    do {                                                                     \
        if (!(cond)) {                                                       \
            (void)fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond); \
            (void)fprintf(stderr, __VA_ARGS__);                              \
            (void)fputc('\n', stderr);                                       \
            abort();                                                         \
        }                                                                    \
    } while (0)

/* Memory of one input. */
typedef struct fuzz_memory {
    size_t live; /* bytes that are allocated */
    size_t most; /* the most that ever were */
} fuzz_memory;

static inline void *fuzz_allocate_(void *state, size_t len, size_t align)
{
    fuzz_memory *memory = state;
    (void)align;
    void *ptr = malloc(len > 0 ? len : 1);
    if (ptr != NULL) {
        memory->live += len;
        memory->most = memory->live > memory->most ? memory->live : memory->most;
    }
    return ptr;
}

static inline void fuzz_release_(void *state, void *ptr, size_t len)
{
    fuzz_memory *memory = state;
    FUZZ_CHECK(memory->live >= len, "%zu bytes are released, %zu are allocated", len, memory->live);
    memory->live -= len;
    free(ptr);
}

static inline hf_allocator fuzz_heap(fuzz_memory *memory)
{
    return (hf_allocator){fuzz_allocate_, fuzz_release_, memory};
}

static inline void fuzz_memory_check(const fuzz_memory *memory, size_t allowed)
{
    FUZZ_CHECK(memory->live == 0, "%zu bytes are left behind", memory->live);
    FUZZ_CHECK(memory->most <= allowed, "%zu bytes were taken, %zu are allowed", memory->most, allowed);
}

/* A copy that ends where its block ends: a sanitizer sees the first byte read too far. The caller frees it. */
static inline char *fuzz_copy(hf_str bytes)
{
    char *copy = malloc(bytes.len > 0 ? bytes.len : 1);
    if (bytes.len > 0) {
        memcpy(copy, bytes.data, bytes.len);
    }
    return copy;
}

#endif
