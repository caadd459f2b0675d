/* The options of a caller with an older or a newer header: hf_options_copy. */
#include "support/support.h"

#include "base/options.h"

#include <string.h>

typedef struct known {
    size_t size;
    int64_t first;
    int64_t second;
} known;

typedef struct newer {
    size_t size;
    int64_t first;
    int64_t second;
    int64_t third;
} newer;

static void no_options_are_the_defaults(void **state)
{
    (void)state;
    known own = {1, 2, 3};
    assert_int_equal(hf_options_copy(NULL, &own, sizeof own, NULL), HF_OK);
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.first, 0);
    assert_int_equal(own.second, 0);
}

static void a_smaller_struct_is_completed_with_zeros(void **state)
{
    (void)state;
    known given = {.size = offsetof(known, second), .first = 7, .second = 8};
    known own = {1, 2, 3};
    assert_int_equal(hf_options_copy(NULL, &own, sizeof own, &given), HF_OK);
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.first, 7);
    assert_int_equal(own.second, 0);
}

static void a_larger_struct_is_taken_while_its_unknown_part_is_zero(void **state)
{
    (void)state;
    newer given = {.size = sizeof given, .first = 7, .second = 8};
    known own = {0};
    assert_int_equal(hf_options_copy(NULL, &own, sizeof own, &given), HF_OK);
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.second, 8);

    hf_op op;
    hf_op_init(&op);
    given.third = 9;
    memset(&own, 0, sizeof own);
    assert_int_equal(hf_options_copy(&op, &own, sizeof own, &given), HF_ERR_UNSUPPORTED);
    assert_non_null(strstr(op.message, "newer header"));
    assert_int_equal(own.first, 7); /* the known part is there all the same: hf_fork needs its .drop */
}

static void a_size_that_cannot_be_one_is_misuse(void **state)
{
    (void)state;
    static const size_t SIZES[] = {0, 1, sizeof(size_t) - 1, HF_OPTIONS_LEN_MAX + 1, SIZE_MAX};
    for (size_t i = 0; i < HF_COUNT_OF(SIZES); i++) {
        hf_op op;
        hf_op_init(&op);
        known given = {.size = SIZES[i], .first = 7};
        known own = {1, 2, 3};
        print_message("size %zu\n", SIZES[i]);
        assert_int_equal(hf_options_copy(&op, &own, sizeof own, &given), HF_ERR_MISUSE);
        assert_non_null(strstr(op.message, ".size = "));
        assert_int_equal(own.size, sizeof own);
        assert_int_equal(own.first, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_options_are_the_defaults),
        cmocka_unit_test(a_smaller_struct_is_completed_with_zeros),
        cmocka_unit_test(a_larger_struct_is_taken_while_its_unknown_part_is_zero),
        cmocka_unit_test(a_size_that_cannot_be_one_is_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
