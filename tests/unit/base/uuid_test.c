/* UUIDs as text. */
#include "support/support.h"

#include "base/rng.h"
#include "base/uuid.h"

static void a_uuid_is_of_version_4(void **state)
{
    (void)state;
    static const struct {
        uint64_t high;
        uint64_t low;
        const char *text;
    } CASES[] = {
        {0, 0, "00000000-0000-4000-8000-000000000000"},
        {UINT64_MAX, UINT64_MAX, "ffffffff-ffff-4fff-bfff-ffffffffffff"},
        {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210), "01234567-89ab-4def-bedc-ba9876543210"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char text[HF_UUID_LEN];
        hf_uuid_text(CASES[i].high, CASES[i].low, text);
        assert_string_equal(text, CASES[i].text);
    }
}

static void the_text_is_read_again(void **state)
{
    (void)state;
    hf_rng rng = {7};
    for (int i = 0; i < 1000; i++) {
        uint64_t high = hf_rng_next(&rng);
        uint64_t low = hf_rng_next(&rng);
        char text[HF_UUID_LEN];
        uint64_t again[2] = {0};
        hf_uuid_text(high, low, text);
        assert_true(hf_uuid_parse(hf_str_of(text), &again[0], &again[1]));
        assert_true(((again[0] ^ high) & ~UINT64_C(0xf000)) == 0);
        assert_true(((again[1] ^ low) & (UINT64_MAX >> 2)) == 0);
    }
}

static void other_text_is_refused(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "",
        "01234567-89ab-4def-bedc-ba987654321",   /* a digit short */
        "01234567-89ab-4def-bedc-ba98765432100", /* a digit long */
        "0123456789ab4defbedcba98765432100000",  /* no hyphens */
        "01234567-89ab-4def-bedc-ba987654321g",
        "01234567-89AB-4def-bedc-ba9876543210",
        "0123456-789ab-4def-bedc-ba9876543210",
    };
    for (size_t i = 0; i < HF_COUNT_OF(TEXTS); i++) {
        uint64_t high = 1;
        uint64_t low = 2;
        print_message("'%s'\n", TEXTS[i]);
        assert_false(hf_uuid_parse(hf_str_of(TEXTS[i]), &high, &low));
        assert_true(high == 1 && low == 2);
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_uuid_is_of_version_4),
    cmocka_unit_test(the_text_is_read_again),
    cmocka_unit_test(other_text_is_refused),
};

int main(int argc, char **argv)
{
    return hf_test_main("uuid", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
