/* CRC32C: known answers, pieces like the whole, and the processor's answer like the table's. */
#include "support/support.h"

#include "base/crc32c.h"
#include "base/rng.h"

#include <string.h>

static void crc32c_gives_the_known_answers(void **state)
{
    (void)state;
    char zeros[32] = {0};
    char ones[32];
    char rising[32];
    memset(ones, 0xff, sizeof ones);
    for (int i = 0; i < 32; i++) {
        rising[i] = (char)i;
    }
    const struct {
        const char *bytes;
        size_t len;
        uint32_t crc;
    } cases[] = {
        {"", 0, 0},
        {"123456789", 9, 0xe3069283},
        {zeros, 32, 0x8a9136aa}, /* this and the next two: RFC 3720, B.4 */
        {ones, 32, 0x62a8ab43},
        {rising, 32, 0x46dd794e},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(hf_crc32c(0, cases[i].bytes, cases[i].len), cases[i].crc);
        assert_int_equal(hf_crc32c_portable(0, cases[i].bytes, cases[i].len), cases[i].crc);
    }
}

static void crc32c_of_pieces_is_that_of_the_whole_at_every_length_and_offset(void **state)
{
    (void)state;
    hf_rng rng = {7};
    unsigned char bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)hf_rng_next(&rng);
    }
    for (size_t offset = 0; offset < 9; offset++) {
        for (size_t len = 0; len + offset <= sizeof bytes; len++) {
            uint32_t whole = hf_crc32c_portable(0, bytes + offset, len);
            size_t cut = hf_rng_below(&rng, len + 1);
            uint32_t first = hf_crc32c(0, bytes + offset, cut);
            assert_int_equal(hf_crc32c(0, bytes + offset, len), whole);
            assert_int_equal(hf_crc32c(first, bytes + offset + cut, len - cut), whole);
        }
    }
}

static void crc32c_notices_every_flipped_bit(void **state)
{
    (void)state;
    unsigned char bytes[64] = "a record that should stay as it was";
    uint32_t crc = hf_crc32c(0, bytes, sizeof bytes);
    for (size_t bit = 0; bit < sizeof bytes * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_not_equal(hf_crc32c(0, bytes, sizeof bytes), crc);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(crc32c_gives_the_known_answers),
    cmocka_unit_test(crc32c_of_pieces_is_that_of_the_whole_at_every_length_and_offset),
    cmocka_unit_test(crc32c_notices_every_flipped_bit),
};

int main(int argc, char **argv)
{
    return hf_test_main("crc32c", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
