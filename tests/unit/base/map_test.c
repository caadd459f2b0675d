#include "support/support.h"

#include "base/map.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

static size_t live;
static bool full; /* no memory any more */

static void *allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    if (full) {
        return NULL;
    }
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

typedef struct entry {
    hf_map_node node;
    uint64_t key;
    bool in;
} entry;

static entry *find(const hf_map *map, uint64_t hash, uint64_t key)
{
    for (hf_map_node *node = hf_map_first(map, hash); node != NULL; node = hf_map_next(node)) {
        assert_true(node->hash == hash);
        entry *found = HF_CONTAINER(node, entry, node);
        if (found->key == key) {
            return found;
        }
    }
    return NULL;
}

/* Few hashes, so that many share one. */
static void it_agrees_with_an_array(void **state)
{
    (void)state;
    enum { COUNT = 500 };
    static entry entries[COUNT];
    for (uint64_t spread = 1; spread <= UINT64_C(1) << 40; spread <<= 8) {
        hf_rng rng = {spread};
        hf_map map;
        hf_map_init(&map, MEMORY);
        memset(entries, 0, sizeof entries);
        size_t count = 0;
        assert_null(hf_map_first(&map, 0));
        for (int step = 0; step < 5000; step++) {
            uint64_t i = hf_rng_below(&rng, COUNT);
            uint64_t hash = (i * UINT64_C(0x9e3779b97f4a7c15)) % spread;
            entry *it = &entries[i];
            assert_ptr_equal(find(&map, hash, i), it->in ? it : NULL);
            it->key = i;
            if (it->in) {
                hf_map_remove(&map, &it->node);
            } else {
                assert_int_equal(hf_map_insert(&map, &it->node, hash), HF_OK);
            }
            it->in = !it->in;
            count = it->in ? count + 1 : count - 1;
            assert_int_equal(map.count, count);
        }
        hf_map_deinit(&map);
    }
    assert_int_equal(live, 0);
}

static void without_memory_it_goes_on_with_the_buckets_it_has(void **state)
{
    (void)state;
    static entry entries[100];
    hf_map map;
    hf_map_init(&map, MEMORY);
    full = true;
    assert_int_equal(hf_map_insert(&map, &entries[0].node, 0), HF_ERR_NOMEM);
    full = false;
    for (uint64_t i = 0; i < HF_COUNT_OF(entries); i++) {
        entries[i].key = i;
        assert_int_equal(hf_map_insert(&map, &entries[i].node, i), HF_OK);
        full = true;
    }
    full = false;
    for (uint64_t i = 0; i < HF_COUNT_OF(entries); i++) {
        assert_ptr_equal(find(&map, i, i), &entries[i]);
    }
    hf_map_deinit(&map);
    assert_int_equal(live, 0);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(it_agrees_with_an_array),
    cmocka_unit_test(without_memory_it_goes_on_with_the_buckets_it_has),
};

int main(int argc, char **argv)
{
    return hf_test_main("map", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
