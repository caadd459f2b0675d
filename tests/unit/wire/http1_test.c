/* Heads of HTTP/1.1 requests: what is taken, and what is refused with which status, in one piece and byte by byte. */
#include "support/support.h"

#include "base/env.h"
#include "wire/http1.h"

static int feed(hf_http1 *http, const char *text, size_t len, size_t piece)
{
    int status = 0;
    for (size_t at = 0; at < len && status == 0; at += piece) {
        status = hf_http1_recv(http, hf_str_of_len(text + at, len - at < piece ? len - at : piece));
    }
    return status;
}

static void wire_P2_what_is_ambiguous_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int status;
    } CASES[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200},
        {"GET / HTTP/1.0\r\n\r\n", 200},
        {"GET /x?y=z HTTP/1.1\r\nhost:   b:80  \r\nAuthorization: Bearer k\r\n\r\n", 200},
        {"GET / HTTP/1.1\r\nHost: a\r\n", 0},
        {"GET / HTTP/1.1\r\n\r\n", 400},                       /* no Host */
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400}, /* two */
        {"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", 400},      /* a folded line */
        {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},           /* an indented one */
        {"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400},      /* a lone CR */
        {"GET / HTTP/1.1\r\nHost: a\r\n\rX", 400},             /* an end that is none */
        {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},           /* white space before the colon */
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
        {"hello\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 413},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 413},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        for (size_t piece = 1; piece < 100; piece += 98) {
            hf_op op;
            hf_op_init(&op);
            hf_http1 *http = NULL;
            assert_int_equal(hf_http1_open(&op, hf_env_memory(hf_env_posix()), &http), HF_OK);
            print_message("%zu in pieces of %zu\n", i, piece);
            assert_int_equal(feed(http, CASES[i].text, strlen(CASES[i].text), piece), CASES[i].status);
            hf_http1_close(http);
        }
    }
}

static void a_head_is_told(void **state)
{
    (void)state;
    static const char HEAD[] =
        "HEAD /metrics?x=1 HTTP/1.1\r\nHOST: localhost:80\r\nX: y\r\nauthorization: Bearer k\r\n\r\nmore";
    hf_op op;
    hf_op_init(&op);
    hf_http1 *http = NULL;
    assert_int_equal(hf_http1_open(&op, hf_env_memory(hf_env_posix()), &http), HF_OK);
    assert_int_equal(feed(http, HEAD, sizeof HEAD - 1, 7), 200);
    assert_string_equal(hf_http1_method(http), "HEAD");
    assert_true(hf_str_equal(hf_http1_path(http), HF_STR("/metrics")));
    assert_true(hf_str_equal(hf_http1_host(http), HF_STR("localhost:80")));
    assert_true(hf_str_equal(hf_http1_authorization(http), HF_STR("Bearer k")));
    hf_http1_close(http);
}

/* `count` times `text` behind a request line and Host. */
static int long_head(const char *first, const char *text, int count)
{
    hf_op op;
    hf_op_init(&op);
    hf_buf head;
    hf_http1 *http = NULL;
    hf_buf_init(&head, hf_env_memory(hf_env_posix()), SIZE_MAX / 2);
    hf_buf_puts(&head, first);
    for (int i = 0; i < count; i++) {
        hf_buf_puts(&head, text);
    }
    assert_int_equal(hf_http1_open(&op, hf_env_memory(hf_env_posix()), &http), HF_OK);
    int status = feed(http, head.data, head.len, 1000);
    hf_http1_close(http);
    hf_buf_deinit(&head);
    return status;
}

static void wire_P1_a_head_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(long_head("GET /", "x", 8190), 0);
    assert_int_equal(long_head("GET /", "x", 9000), 414);
    assert_int_equal(long_head("GET / HTTP/1.1\r\nHost: a\r\n", "A: b\r\n", 99), 0);
    assert_int_equal(long_head("GET / HTTP/1.1\r\nHost: a\r\n", "A: b\r\n", 101), 431);
    assert_int_equal(long_head("GET / HTTP/1.1\r\nHost: a\r\nA: ", "b", 20000), 431);
    assert_int_equal(long_head("GET / HTTP/1.1\r\nHost: ", "b", 600), 431);
    assert_int_equal(long_head("GET / HTTP/1.1\r\n", "b", 600), 431);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(wire_P2_what_is_ambiguous_is_refused),
    cmocka_unit_test(a_head_is_told),
    cmocka_unit_test(wire_P1_a_head_is_bounded),
};

int main(int argc, char **argv)
{
    return hf_test_main("http1", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
