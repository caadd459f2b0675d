/* hf_buf: grows, keeps its limit, and its status sticks. */
#include "support/support.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

typedef struct counted {
    int live; /* blocks */
    int left; /* allocations until one fails; negative = never */
} counted;

static void *counted_allocate(void *state, size_t len, size_t align)
{
    counted *c = state;
    (void)align;
    if (c->left == 0) {
        return NULL;
    }
    c->left--;
    c->live++;
    return malloc(len);
}

static void counted_release(void *state, void *ptr, size_t len)
{
    counted *c = state;
    (void)len;
    c->live--;
    free(ptr);
}

static hf_allocator memory_of(counted *c)
{
    return (hf_allocator){counted_allocate, counted_release, c};
}

static void buf_grows_and_stays_a_string(void **state)
{
    (void)state;
    counted c = {0, -1};
    hf_buf buf;
    hf_buf_init(&buf, memory_of(&c), 1 << 20);
    assert_string_equal(hf_buf_text(&buf), "");
    for (int i = 0; i < 10000; i++) {
        hf_buf_putf(&buf, "%04d,", i);
    }
    hf_buf_put(&buf, "a\0b", 3);
    hf_buf_putc(&buf, '!');
    hf_buf_puts(&buf, "");
    assert_int_equal(hf_buf_status(&buf), HF_OK);
    assert_int_equal(buf.len, 50004);
    assert_memory_equal(buf.data, "0000,0001,", 10);
    assert_memory_equal(buf.data + 49995, "9999,a\0b!", 10);
    hf_buf_deinit(&buf);
    assert_int_equal(c.live, 0);
}

static void buf_puts_fit_exactly_or_not_at_all(void **state)
{
    (void)state;
    for (size_t limit = 0; limit < 700; limit++) {
        counted c = {0, -1};
        hf_buf buf;
        hf_buf_init(&buf, memory_of(&c), limit);
        size_t expected = 0;
        for (int i = 0; i < 60; i++) {
            static const char TEXT[] = "0123456789abc";
            if (i % 2 == 0) {
                hf_buf_put(&buf, TEXT, 13);
            } else {
                hf_buf_putf(&buf, "%s", TEXT);
            }
            expected += hf_buf_status(&buf) == HF_OK ? 13 : 0;
            assert_int_equal(buf.len, expected);
            assert_int_equal(strlen(hf_buf_text(&buf)), expected);
        }
        assert_int_equal(expected, limit / 13 * 13);
        assert_int_equal(hf_buf_status(&buf), HF_ERR_TOO_BIG);
        hf_buf_putc(&buf, 'x'); /* would fit by now, but the status sticks */
        assert_int_equal(buf.len, expected);
        hf_buf_deinit(&buf);
        assert_int_equal(c.live, 0);
    }
}

static void buf_without_memory_says_so_and_keeps_what_it_had(void **state)
{
    (void)state;
    for (int n = 0; n < 6; n++) {
        counted c = {0, n};
        hf_buf buf;
        hf_buf_init(&buf, memory_of(&c), 1 << 20);
        size_t fitted = 0;
        while (hf_buf_status(&buf) == HF_OK) {
            fitted = buf.len;
            hf_buf_putf(&buf, "%d", 1234567);
        }
        assert_int_equal(hf_buf_status(&buf), HF_ERR_NOMEM);
        assert_int_equal(buf.len, fitted);
        assert_int_equal(strlen(hf_buf_text(&buf)), fitted);
        hf_buf_deinit(&buf);
        assert_int_equal(c.live, 0);
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(buf_grows_and_stays_a_string),
    cmocka_unit_test(buf_puts_fit_exactly_or_not_at_all),
    cmocka_unit_test(buf_without_memory_says_so_and_keeps_what_it_had),
};

int main(int argc, char **argv)
{
    return hf_test_main("buf", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
