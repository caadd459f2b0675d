#include "support/support.h"

#include "base/arenas.h"
#include "base/rng.h"

#include <stdlib.h>

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

static void pieces_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    static unsigned char *pieces[COUNT];
    static size_t lens[COUNT];
    hf_arena arena;
    hf_rng rng = {3};
    hf_arena_init(&arena, MEMORY);
    for (size_t i = 0; i < COUNT; i++) {
        size_t align = (size_t)1 << hf_rng_below(&rng, 5);
        lens[i] = (size_t)hf_rng_below(&rng, hf_rng_below(&rng, 50) == 0 ? 200000 : 100);
        pieces[i] = hf_arena_take(&arena, lens[i], align);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % align, 0);
        memset(pieces[i], (int)(i & 0xff), lens[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t j = 0; j < lens[i]; j++) {
            assert_int_equal(pieces[i][j], i & 0xff);
        }
    }
    assert_int_equal(arena.used, live);
    hf_arena_deinit(&arena);
    assert_int_equal(live, 0);
}

static void a_loop_of_operations_does_not_come_back_for_memory(void **state)
{
    (void)state;
    hf_arena arena;
    hf_arena_init(&arena, MEMORY);
    for (int warm = 0; warm < 3; warm++) {
        hf_arena_reset(&arena);
        for (int i = 0; i < 50; i++) {
            assert_non_null(hf_arena_zero(&arena, 100, 8));
        }
    }
    size_t before = allocations;
    for (int round = 0; round < 100; round++) {
        hf_arena_reset(&arena);
        for (int i = 0; i < 5; i++) {
            assert_non_null(hf_arena_take(&arena, 100, 8));
        }
    }
    assert_int_equal(allocations, before);
    assert_non_null(hf_arena_take(&arena, 1 << 20, 8)); /* a big one is not kept */
    hf_arena_reset(&arena);
    assert_true(live < 1 << 20);
    hf_arena_deinit(&arena);
    assert_int_equal(live, 0);
}

static void zero_means_zero_also_after_a_reset(void **state)
{
    (void)state;
    hf_arena arena;
    hf_arena_init(&arena, MEMORY);
    memset(hf_arena_take(&arena, 500, 1), 0xff, 500);
    hf_arena_reset(&arena);
    const unsigned char *zero = hf_arena_zero(&arena, 500, 1);
    for (size_t i = 0; i < 500; i++) {
        assert_int_equal(zero[i], 0);
    }
    hf_arena_deinit(&arena);
}

static void without_memory_everything_fails_until_a_reset(void **state)
{
    (void)state;
    hf_arena arena;
    hf_arena_init(&arena, MEMORY);
    assert_non_null(hf_arena_take(&arena, 10, 1));
    full = true;
    assert_null(hf_arena_take(&arena, 1 << 20, 1));
    full = false;
    assert_int_equal(arena.status, HF_ERR_NOMEM);
    assert_null(hf_arena_take(&arena, 1 << 20, 1));
    assert_int_equal(hf_arena_copy(&arena, hf_str_of_len("x", 1)).len <= 1, 1);
    hf_arena_reset(&arena);
    assert_int_equal(arena.status, HF_OK);
    assert_non_null(hf_arena_take(&arena, 1 << 20, 1));
    hf_arena_deinit(&arena);
    assert_int_equal(live, 0);
}

static void a_rewind_does_not_forget_that_memory_was_missing(void **state)
{
    (void)state;
    static const size_t BEFORE[] = {10, 1 << 20}; /* in a chunk that is kept, in one that is not */
    for (size_t i = 0; i < HF_COUNT_OF(BEFORE); i++) {
        hf_arena arena;
        hf_arena_init(&arena, MEMORY);
        assert_non_null(hf_arena_take(&arena, BEFORE[i], 1));
        hf_arena_rewind(&arena);
        assert_int_equal(arena.status, HF_OK);
        full = true;
        assert_null(hf_arena_take(&arena, 1 << 20, 1));
        full = false;
        hf_arena_rewind(&arena);
        assert_int_equal(arena.status, HF_ERR_NOMEM);
        assert_null(hf_arena_take(&arena, 1 << 20, 1));
        hf_arena_reset(&arena);
        assert_non_null(hf_arena_take(&arena, 1 << 20, 1));
        hf_arena_deinit(&arena);
        assert_int_equal(live, 0);
    }
}

static void a_length_that_cannot_be_is_out_of_memory(void **state)
{
    (void)state;
    static const size_t LENS[] = {SIZE_MAX, SIZE_MAX - 16, SIZE_MAX / 2, SIZE_MAX / 2 + 1};
    for (size_t i = 0; i < HF_COUNT_OF(LENS); i++) {
        hf_arena arena;
        hf_arena_init(&arena, MEMORY);
        assert_non_null(hf_arena_take(&arena, 10, 1));
        assert_null(hf_arena_take(&arena, LENS[i], 16));
        assert_int_equal(arena.status, HF_ERR_NOMEM);
        hf_arena_deinit(&arena);
    }
    hf_arena arena;
    hf_arena_init(&arena, MEMORY);
    assert_null(HF_ARENA_ARRAY(&arena, uint64_t, SIZE_MAX / 4));
    hf_arena_deinit(&arena);
    assert_int_equal(live, 0);
}

static void a_copy_of_a_length_that_cannot_be_is_out_of_memory(void **state)
{
    static const size_t LENGTHS[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 17, SIZE_MAX / 2};
    (void)state;
    for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
        hf_arena arena;
        hf_arena_init(&arena, MEMORY);
        assert_non_null(hf_arena_take(&arena, 100, 1)); /* there is room left in a chunk */
        hf_str copy = hf_arena_copy(&arena, hf_str_of_len("x", LENGTHS[i]));
        assert_true(copy.data == NULL && copy.len == 0);
        assert_int_equal(arena.status, HF_ERR_NOMEM);
        hf_arena_deinit(&arena);
    }
}

static void a_copy_ends_with_a_nul(void **state)
{
    (void)state;
    hf_arena arena;
    hf_arena_init(&arena, MEMORY);
    hf_str copy = hf_arena_copy(&arena, hf_str_of_len("abcdef", 3));
    assert_int_equal(copy.len, 3);
    assert_string_equal(copy.data, "abc");
    copy = hf_arena_copy(&arena, (hf_str){NULL, 0});
    assert_int_equal(copy.len, 0);
    assert_string_equal(copy.data, "");
    hf_arena_deinit(&arena);
}

static void room_of_the_caller_is_used_before_the_allocator(void **state)
{
    (void)state;
    _Alignas(16) char room[64];
    hf_arena arena;
    hf_arena_init_in(&arena, MEMORY, room, sizeof room);
    size_t before = allocations;
    assert_ptr_equal(hf_arena_take(&arena, 48, 16), room);
    assert_int_equal(allocations, before);
    assert_non_null(hf_arena_take(&arena, 48, 16));
    assert_int_equal(allocations, before + 1);
    hf_arena_deinit(&arena);
    assert_int_equal(live, 0);
}

static void a_pool_gives_the_same_memory_again(void **state)
{
    (void)state;
    static hf_arenas arenas;
    hf_arenas_init(&arenas, MEMORY);
    for (int i = 0; i < 3; i++) {
        size_t before = allocations;
        hf_arena arena = hf_arenas_take(&arenas);
        assert_non_null(hf_arena_take(&arena, 100, 8));
        assert_int_equal(allocations - before, i == 0 || HF_ASAN);
        hf_arenas_give(&arenas, &arena);
        assert_null(arena.chunks);
    }
    hf_arena big = hf_arenas_take(&arenas);
    assert_non_null(hf_arena_take(&big, HF_ARENA_KEEP_MAX, 8));
    hf_arenas_give(&arenas, &big);
    assert_int_equal(arenas.count, 0); /* it was too large to be kept */
    hf_arenas_deinit(&arenas);
    assert_int_equal(live, 0);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(pieces_are_aligned_and_do_not_overlap),
    cmocka_unit_test(a_loop_of_operations_does_not_come_back_for_memory),
    cmocka_unit_test(zero_means_zero_also_after_a_reset),
    cmocka_unit_test(without_memory_everything_fails_until_a_reset),
    cmocka_unit_test(a_rewind_does_not_forget_that_memory_was_missing),
    cmocka_unit_test(a_length_that_cannot_be_is_out_of_memory),
    cmocka_unit_test(a_copy_of_a_length_that_cannot_be_is_out_of_memory),
    cmocka_unit_test(a_copy_ends_with_a_nul),
    cmocka_unit_test(room_of_the_caller_is_used_before_the_allocator),
    cmocka_unit_test(a_pool_gives_the_same_memory_again),
};

int main(int argc, char **argv)
{
    return hf_test_main("arena", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
