#include "support/support.h"

#include "base/rng.h"
#include "base/slab.h"

#include <stdlib.h>
#include <string.h>

static size_t live;
static size_t allocations;
static bool full; /* no memory any more */

static void *allocate(void *state, size_t len, size_t align)
{
    (void)state;
    assert_true(align <= 16);
    if (full) {
        return NULL;
    }
    live += len;
    allocations++;
    return malloc(len);
}

static void release(void *state, void *ptr, size_t len)
{
    (void)state;
    live -= len;
    free(ptr);
}

static const hf_allocator MEMORY = {allocate, release, NULL};

/* Random pieces come and go; each is filled with its own byte, which is still there when it goes. */
static void pieces_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    enum { COUNT = 500, STEPS = 20000 };
    static unsigned char *pieces[COUNT];
    static size_t lens[COUNT];
    hf_slab slab;
    hf_slab_init(&slab, MEMORY);
    hf_allocator memory = hf_slab_memory(&slab);
    hf_rng rng = {5};
    for (size_t step = 0; step < STEPS + COUNT; step++) {
        size_t i = step < STEPS ? (size_t)hf_rng_below(&rng, COUNT) : step - STEPS;
        if (pieces[i] != NULL) {
            for (size_t j = 0; j < lens[i]; j++) {
                assert_int_equal(pieces[i][j], i & 0xff);
            }
            memory.release(memory.state, pieces[i], lens[i]);
            pieces[i] = NULL;
        } else if (step < STEPS) {
            lens[i] = (size_t)hf_rng_below(&rng, hf_rng_below(&rng, 10) == 0 ? 5000 : 300);
            pieces[i] = memory.allocate(memory.state, lens[i], 0);
            assert_non_null(pieces[i]);
            assert_int_equal((uintptr_t)pieces[i] % 16, 0);
            memset(pieces[i], (int)(i & 0xff), lens[i]);
        }
    }
    hf_slab_deinit(&slab);
    assert_int_equal(live, 0);
}

static void what_was_released_is_given_out_again(void **state)
{
    (void)state;
    hf_slab slab;
    hf_slab_init(&slab, MEMORY);
    hf_allocator memory = hf_slab_memory(&slab);
    for (size_t len = 1; len <= HF_SLAB_LEN_MAX;
         len++) { /* every class is large enough for its lengths, and shared by few */
        void *piece = memory.allocate(memory.state, len, 16);
        memset(piece, 1, len);
        memory.release(memory.state, piece, len);
    }
    allocations = 0;
    for (int round = 0; round < 1000; round++) {
        for (size_t len = 1; len <= HF_SLAB_LEN_MAX; len += 97) {
            void *piece = memory.allocate(memory.state, len, 0);
            memory.release(memory.state, piece, len);
        }
    }
    if (!HF_ASAN) {
        assert_int_equal(allocations, 0);
        assert_true(slab.held <= 2 * 65536);
    }
    hf_slab_deinit(&slab);
    assert_int_equal(live, 0);
}

static void without_memory_it_gives_none_and_goes_on_later(void **state)
{
    (void)state;
    hf_slab slab;
    hf_slab_init(&slab, MEMORY);
    hf_allocator memory = hf_slab_memory(&slab);
    full = true;
    assert_null(memory.allocate(memory.state, 100, 0));
    assert_null(memory.allocate(memory.state, 100000, 0));
    full = false;
    void *piece = memory.allocate(memory.state, 100, 0);
    assert_non_null(piece);
    memory.release(memory.state, piece, 100);
    memory.release(memory.state, NULL, 0);
    hf_slab_deinit(&slab);
    assert_int_equal(live, 0);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(pieces_are_aligned_and_do_not_overlap),
    cmocka_unit_test(what_was_released_is_given_out_again),
    cmocka_unit_test(without_memory_it_gives_none_and_goes_on_later),
};

int main(int argc, char **argv)
{
    return hf_test_main("slab", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
