/* Addresses, listening, connecting, bytes, pipes, name lookup. */
#include "unit/env/posix_check.h"

#include "env/posix/address.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void addresses_parse_and_come_back_as_they_were(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        hf_status status;
    } CASES[] = {
        {"tcp:127.0.0.1:80", HF_OK},
        {"tcp:[::1]:65535", HF_OK},
        {"tcp:[fe80::1%1]:7", HF_OK},
        {"unix:/run/x.sock", HF_OK},
        {"unix:relative", HF_OK},
        {"tcp:127.0.0.1:65536", HF_ERR_INVALID},
        {"tcp:127.0.0.1:", HF_ERR_INVALID},
        {"tcp:127.0.0.1", HF_ERR_INVALID},
        {"tcp:127.0.0.1:+1", HF_ERR_INVALID},
        {"tcp:127.0.0.1:99999999999", HF_ERR_INVALID},
        {"tcp:example.org:80", HF_ERR_INVALID},
        {"tcp:::1:80", HF_ERR_INVALID},
        {"tcp:[::1:80", HF_ERR_INVALID},
        {"tcp:[fe80::1%nosuchif]:7", HF_ERR_INVALID},
        {"unix:", HF_ERR_INVALID},
        {"udp:127.0.0.1:1", HF_ERR_INVALID},
        {"", HF_ERR_INVALID},
        {"tcp:", HF_ERR_INVALID},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        print_message("'%s'\n", CASES[i].text);
        hf_address address;
        ASSERT_STATUS(CASES[i].status, hf_address_parse(&op, CASES[i].text, &address));
        if (CASES[i].status == HF_OK) {
            char text[HF_ADDRESS_LEN_MAX];
            hf_address_format(&address, text);
            assert_string_equal(text, CASES[i].text);
        }
    }
    char text[300] = "unix:";
    hf_address address;
    memset(text + 5, 'x', 107);
    ASSERT_STATUS(HF_OK, hf_address_parse(&op, text, &address));
    text[5 + 107] = 'x';
    ASSERT_STATUS(HF_ERR_INVALID, hf_address_parse(&op, text, &address));
    memset(text, 'x', sizeof text - 1);
    memcpy(text, "tcp:", 4);
    memcpy(text + 200, ":80", 4);
    ASSERT_STATUS(HF_ERR_INVALID, hf_address_parse(&op, text, &address));
}

/* Connects to a listener and talks both ways until the end. */
static void talk_over(const char *listen_address, const char *prefix)
{
    int listen_fd = -1;
    char bound[HF_ADDRESS_LEN_MAX];
    ASSERT_STATUS(HF_OK, ops()->listen(posix(), &op, listen_address, 0, false, &listen_fd, bound));
    print_message("%s is %s\n", listen_address, bound);
    assert_memory_equal(bound, prefix, strlen(prefix));
    assert_true((fcntl(listen_fd, F_GETFD) & FD_CLOEXEC) != 0); /* env-E2 */
    assert_true((fcntl(listen_fd, F_GETFL) & O_NONBLOCK) != 0);
    int server = -1;
    int client = -1;
    char peer[HF_ADDRESS_LEN_MAX];
    ASSERT_STATUS(HF_ERR_AGAIN, ops()->accept(posix(), &op, listen_fd, &server, peer));
    ASSERT_STATUS(HF_OK, ops()->connect(posix(), &op, bound, &client));
    wait_for(client, HF_WRITABLE);
    ASSERT_STATUS(HF_OK, ops()->connect_finish(posix(), &op, client));
    wait_for(listen_fd, HF_READABLE);
    ASSERT_STATUS(HF_OK, ops()->accept(posix(), &op, listen_fd, &server, peer));
    assert_memory_equal(peer, prefix, 4);
    assert_true((fcntl(server, F_GETFD) & FD_CLOEXEC) != 0);
    assert_true((fcntl(server, F_GETFL) & O_NONBLOCK) != 0);

    char buf[16] = {0};
    size_t len = 99;
    ASSERT_STATUS(HF_ERR_AGAIN, ops()->read(posix(), &op, server, buf, sizeof buf, &len));
    ASSERT_STATUS(HF_OK, ops()->write(posix(), &op, client, "hello", 5, &len));
    assert_int_equal(len, 5);
    wait_for(server, HF_READABLE);
    ASSERT_STATUS(HF_OK, ops()->read(posix(), &op, server, buf, sizeof buf, &len));
    assert_int_equal(len, 5);
    assert_string_equal(buf, "hello");
    ASSERT_STATUS(HF_OK, ops()->shutdown(posix(), &op, client));
    wait_for(server, HF_READABLE);
    ASSERT_STATUS(HF_OK, ops()->read(posix(), &op, server, buf, sizeof buf, &len));
    assert_int_equal(len, 0);

    /* Until the other side's buffers are full. */
    static char big[1 << 16];
    hf_status status;
    do {
        status = ops()->write(posix(), &op, server, big, sizeof big, &len);
    } while (status == HF_OK);
    ASSERT_STATUS(HF_ERR_AGAIN, status);
    ops()->close(posix(), client);
    do { /* without SIGPIPE, which would end the test */
        status = ops()->write(posix(), &op, server, big, sizeof big, &len);
    } while (status == HF_OK || status == HF_ERR_AGAIN);
    ASSERT_STATUS(HF_ERR_RESET, status);
    ops()->close(posix(), server);
    ops()->close(posix(), listen_fd);
    ops()->close(posix(), -1);
}

static void tcp_and_unix_connections_carry_bytes_both_ways(void **state)
{
    (void)state;
    char folder[] = "/tmp/hf-net-XXXXXX";
    char address[HF_ADDRESS_LEN_MAX];
    assert_non_null(mkdtemp(folder));
    talk_over("tcp:127.0.0.1:0", "tcp:127.0.0.1:");
    if (access("/proc/net/if_inet6", F_OK) == 0) {
        talk_over("tcp:[::1]:0", "tcp:[::1]:");
    }
    (void)snprintf(address, sizeof address, "unix:%s/s", folder);
    talk_over(address, address);
    assert_int_equal(unlink(address + 5), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void only_a_stale_unix_socket_is_replaced(void **state)
{
    (void)state;
    char folder[] = "/tmp/hf-net-XXXXXX";
    char address[HF_ADDRESS_LEN_MAX];
    char bound[HF_ADDRESS_LEN_MAX];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(address, sizeof address, "unix:%s/s", folder);
    int first = -1;
    int second = -1;
    ASSERT_STATUS(HF_OK, ops()->listen(posix(), &op, address, 4, true, &first, bound));
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->listen(posix(), &op, address, 4, true, &second, bound)); /* alive */
    ops()->close(posix(), first);
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->listen(posix(), &op, address, 4, false, &second, bound)); /* not asked */
    ASSERT_STATUS(HF_OK, ops()->listen(posix(), &op, address, 4, true, &second, bound));
    assert_string_equal(bound, address);
    ops()->close(posix(), second);
    assert_int_equal(unlink(address + 5), 0);

    int file = open(address + 5, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    (void)close(file);
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->listen(posix(), &op, address, 4, true, &second, bound)); /* not a socket */
    struct stat info;
    assert_int_equal(stat(address + 5, &info), 0);
    assert_int_equal(unlink(address + 5), 0);
    assert_int_equal(rmdir(folder), 0);
    ASSERT_STATUS(HF_ERR_NOT_FOUND, ops()->listen(posix(), &op, address, 4, true, &second, bound)); /* no folder */
    ASSERT_STATUS(HF_ERR_NOT_FOUND, ops()->connect(posix(), &op, address, &second));
}

/* env-E4, env-E5 */
static void failures_of_the_network_are_statuses(void **state)
{
    (void)state;
    int fd = -1;
    int other = -1;
    char bound[HF_ADDRESS_LEN_MAX];
    ASSERT_STATUS(HF_ERR_INVALID, ops()->listen(posix(), &op, "nonsense", 1, false, &fd, bound));
    ASSERT_STATUS(HF_ERR_INVALID, ops()->connect(posix(), &op, "tcp:localhost:1", &fd));
    assert_int_equal(fd, -1); /* env-E1 */
    ASSERT_STATUS(HF_OK, ops()->listen(posix(), &op, "tcp:127.0.0.1:0", 1, false, &fd, bound));
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->listen(posix(), &op, bound, 1, true, &other, bound));
    assert_int_equal(other, -1);                                          /* env-E1 */
    ASSERT_STATUS(HF_ERR_AGAIN, ops()->connect_finish(posix(), &op, fd)); /* a listener never gets connected */
    ops()->close(posix(), fd);
    hf_status status = ops()->connect(posix(), &op, bound, &fd); /* nobody there any more */
    if (status == HF_OK) {
        wait_for(fd, HF_WRITABLE);
        status = ops()->connect_finish(posix(), &op, fd);
        ops()->close(posix(), fd);
    }
    ASSERT_STATUS(HF_ERR_REFUSED, status);
    size_t len = 0;
    ASSERT_STATUS(HF_ERR_IO, ops()->read(posix(), &op, -1, bound, 1, &len));
    ASSERT_STATUS(HF_ERR_IO, ops()->write(posix(), &op, -1, "x", 1, &len));
    ASSERT_STATUS(HF_ERR_IO, ops()->connect_finish(posix(), &op, -1));
    ASSERT_STATUS(HF_ERR_IO, ops()->shutdown(posix(), &op, -1));
}

static void accept_without_descriptors_is_a_limit_and_loses_nothing(void **state)
{
    (void)state;
    int listen_fd = -1;
    int client = -1;
    int server = -1;
    char bound[HF_ADDRESS_LEN_MAX];
    ASSERT_STATUS(HF_OK, ops()->listen(posix(), &op, "tcp:127.0.0.1:0", 4, false, &listen_fd, bound));
    ASSERT_STATUS(HF_OK, ops()->connect(posix(), &op, bound, &client));
    wait_for(listen_fd, HF_READABLE);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    hf_status accepted = ops()->accept(posix(), &op, listen_fd, &server, bound);
    int fds[2];
    hf_status piped = ops()->pipe(posix(), &op, &fds[0], &fds[1]);
    hf_status connected = ops()->connect(posix(), &op, "tcp:127.0.0.1:1", &server);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_STATUS(HF_ERR_LIMIT, accepted);
    ASSERT_STATUS(HF_ERR_LIMIT, piped);
    ASSERT_STATUS(HF_ERR_LIMIT, connected);
    ASSERT_STATUS(HF_OK, ops()->accept(posix(), &op, listen_fd, &server, bound));
    ops()->close(posix(), server);
    ops()->close(posix(), client);
    ops()->close(posix(), listen_fd);
}

static void pipes_read_and_write_without_sigpipe(void **state)
{
    (void)state;
    int read_fd = -1;
    int write_fd = -1;
    char buf[8] = {0};
    size_t len = 0;
    ASSERT_STATUS(HF_OK, ops()->pipe(posix(), &op, &read_fd, &write_fd));
    assert_true((fcntl(read_fd, F_GETFD) & FD_CLOEXEC) != 0 && (fcntl(write_fd, F_GETFL) & O_NONBLOCK) != 0);
    ASSERT_STATUS(HF_ERR_AGAIN, ops()->read(posix(), &op, read_fd, buf, sizeof buf, &len));
    ASSERT_STATUS(HF_OK, ops()->write(posix(), &op, write_fd, "abc", 3, &len));
    assert_int_equal(len, 3);
    ASSERT_STATUS(HF_OK, ops()->read(posix(), &op, read_fd, buf, sizeof buf, &len));
    assert_string_equal(buf, "abc");
    ASSERT_STATUS(HF_ERR_UNSUPPORTED, ops()->shutdown(posix(), &op, write_fd));
    ops()->close(posix(), read_fd);
    ASSERT_STATUS(HF_ERR_RESET, ops()->write(posix(), &op, write_fd, "abc", 3, &len)); /* would end us by default */

    /* A SIGPIPE that the host had pending stays pending. */
    sigset_t only;
    sigset_t before;
    sigset_t pending;
    (void)sigemptyset(&only);
    (void)sigaddset(&only, SIGPIPE);
    assert_int_equal(sigprocmask(SIG_BLOCK, &only, &before), 0);
    ASSERT_STATUS(HF_ERR_RESET, ops()->write(posix(), &op, write_fd, "abc", 3, &len));
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    assert_int_equal(raise(SIGPIPE), 0);
    ASSERT_STATUS(HF_ERR_RESET, ops()->write(posix(), &op, write_fd, "abc", 3, &len));
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGPIPE), 1);
    assert_int_equal(sigwaitinfo(&only, NULL), SIGPIPE);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    ops()->close(posix(), write_fd);
}

static void names_become_numbers(void **state)
{
    (void)state;
    char found[4][HF_ADDRESS_LEN_MAX];
    size_t count = 0;
    ASSERT_STATUS(HF_OK, ops()->resolve(posix(), &op, "127.0.0.1", found, 4, &count));
    assert_int_equal(count, 1);
    assert_string_equal(found[0], "127.0.0.1");
    ASSERT_STATUS(HF_OK, ops()->resolve(posix(), &op, "::1", found, 4, &count));
    assert_string_equal(found[0], "::1");
    ASSERT_STATUS(HF_OK, ops()->resolve(posix(), &op, "localhost", found, 1, &count));
    assert_int_equal(count, 1);
    assert_true(strcmp(found[0], "127.0.0.1") == 0 || strcmp(found[0], "::1") == 0);
    hf_status status = ops()->resolve(posix(), &op, "no such host", found, 4, &count);
    assert_true(status == HF_ERR_NOT_FOUND || status == HF_ERR_IO); /* a machine without a name server cannot know */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_parse_and_come_back_as_they_were),
        cmocka_unit_test(tcp_and_unix_connections_carry_bytes_both_ways),
        cmocka_unit_test(only_a_stale_unix_socket_is_replaced),
        cmocka_unit_test(failures_of_the_network_are_statuses),
        cmocka_unit_test(accept_without_descriptors_is_a_limit_and_loses_nothing),
        cmocka_unit_test(pipes_read_and_write_without_sigpipe),
        cmocka_unit_test(names_become_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
