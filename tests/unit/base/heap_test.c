#include "support/support.h"

#include "base/heap.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

static size_t live;
static int fail_after = -1; /* allocations until one fails; -1 = none does */

static void *allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    if (fail_after == 0) {
        return NULL;
    }
    fail_after -= fail_after > 0 ? 1 : 0;
    live += len;
    return malloc(len);
}

static void release(void *state, void *ptr, size_t len)
{
    (void)state;
    live -= len;
    free(ptr);
}

static const hf_allocator MEMORY = {allocate, release, NULL};

static void the_smallest_comes_first_and_equal_ones_in_order(void **state)
{
    (void)state;
    hf_heap heap;
    hf_heap_node nodes[6] = {0};
    static const int64_t KEYS[] = {5, 1, 5, INT64_MIN, 1, INT64_MAX};
    static const size_t ORDER[] = {3, 1, 4, 0, 2, 5};
    hf_heap_init(&heap, MEMORY);
    assert_null(hf_heap_first(&heap));
    for (size_t i = 0; i < HF_COUNT_OF(KEYS); i++) {
        assert_int_equal(hf_heap_set(&heap, &nodes[i], KEYS[i]), HF_OK);
    }
    for (size_t i = 0; i < HF_COUNT_OF(ORDER); i++) {
        hf_heap_node *first = hf_heap_first(&heap);
        assert_ptr_equal(first, &nodes[ORDER[i]]);
        hf_heap_remove(&heap, first);
        hf_heap_remove(&heap, first); /* fine when it is not in it */
        assert_int_equal(first->place, 0);
    }
    hf_heap_deinit(&heap);
    assert_int_equal(live, 0);
}

/* Against an array that is searched. */
static void it_agrees_with_a_search(void **state)
{
    (void)state;
    enum { COUNT = 300, STEPS = 20000 };
    static hf_heap_node nodes[COUNT];
    static uint64_t orders[COUNT]; /* when it was put in */
    hf_rng rng = {7};
    hf_heap heap;
    hf_heap_init(&heap, MEMORY);
    memset(nodes, 0, sizeof nodes);
    for (int step = 0; step < STEPS; step++) {
        size_t at = hf_rng_below(&rng, COUNT);
        hf_heap_node *node = &nodes[at];
        orders[at] = node->place == 0 ? (uint64_t)step : orders[at];
        if (hf_rng_below(&rng, 3) == 0) {
            hf_heap_remove(&heap, node);
        } else {
            assert_int_equal(hf_heap_set(&heap, node, (int64_t)hf_rng_below(&rng, 50)), HF_OK);
        }
        const hf_heap_node *least = NULL;
        size_t count = 0;
        for (size_t i = 0; i < COUNT; i++) {
            const hf_heap_node *other = &nodes[i];
            count += other->place != 0;
            if (other->place != 0 && (least == NULL || other->key < least->key ||
                                      (other->key == least->key && orders[i] < orders[least - nodes]))) {
                least = other;
            }
        }
        assert_int_equal(heap.count, count);
        assert_ptr_equal(hf_heap_first(&heap), least);
    }
    hf_heap_deinit(&heap);
    assert_int_equal(live, 0);
}

static void without_memory_it_stays_as_it_was(void **state)
{
    (void)state;
    static hf_heap_node nodes[200];
    hf_heap heap;
    hf_heap_init(&heap, MEMORY);
    fail_after = 1;
    size_t in = 0;
    for (size_t i = 0; i < HF_COUNT_OF(nodes); i++) {
        in += hf_heap_set(&heap, &nodes[i], (int64_t)i) == HF_OK ? 1 : 0;
    }
    fail_after = -1;
    assert_int_equal(heap.count, in);
    assert_true(in > 0 && in < HF_COUNT_OF(nodes));
    assert_int_equal(nodes[in].place, 0);
    assert_int_equal(hf_heap_set(&heap, &nodes[0], 1000), HF_OK); /* a move needs none */
    assert_ptr_equal(hf_heap_first(&heap), &nodes[1]);
    hf_heap_deinit(&heap);
    assert_int_equal(live, 0);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(the_smallest_comes_first_and_equal_ones_in_order),
    cmocka_unit_test(it_agrees_with_a_search),
    cmocka_unit_test(without_memory_it_stays_as_it_was),
};

int main(int argc, char **argv)
{
    return hf_test_main("heap", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
