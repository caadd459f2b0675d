/* SHA-256 by the examples of FIPS 180-4 and one of every length around a block. */
#include "support/support.h"

#include "base/sha256.h"

#include <string.h>

static const struct {
    const char *text;
    const char *hash;
} CASES[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
};

static void known_hashes(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char text[HF_SHA256_HEX_LEN + 1] = {0};
        hf_sha256_hex(hf_str_of(CASES[i].text), text);
        assert_string_equal(text, CASES[i].hash);
    }
}

static void a_million_letters(void **state)
{
    (void)state;
    static char letters[1000000];
    char text[HF_SHA256_HEX_LEN + 1] = {0};
    memset(letters, 'a', sizeof letters);
    hf_sha256_hex(hf_str_of_len(letters, sizeof letters), text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The length is part of the hash: no two prefixes of zeroes have the same one, whatever the padding is. */
static void every_length_has_its_own(void **state)
{
    (void)state;
    static const char zeroes[200];
    unsigned char before[HF_SHA256_BYTES] = {0};
    for (size_t len = 0; len <= sizeof zeroes; len++) {
        unsigned char hash[HF_SHA256_BYTES];
        hf_sha256_of(hf_str_of_len(zeroes, len), hash);
        assert_memory_not_equal(hash, before, sizeof hash);
        memcpy(before, hash, sizeof hash);
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(known_hashes),
    cmocka_unit_test(a_million_letters),
    cmocka_unit_test(every_length_has_its_own),
};

int main(int argc, char **argv)
{
    return hf_test_main("sha256", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
