/* labels: threads */
/* What lies beside a database: the socket and the lock's file, and what others have put in their places. */
#include "unit/open/place.h"

#include "base/base.h"
#include "base/env.h"
#include "store/sqlite/owner.h"

#include <errno.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- The socket: who is answered when ----------------------------------------------------------------------------------- */

static int connect_to(const place *p)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.100s-sock", p->path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void count(void *state, hf_str kind, hf_str chunk)
{
    (void)kind;
    *(size_t *)state += chunk.len;
}

static void ask_stats(const place *p)
{
    hf_op op;
    hf_op_init(&op);
    size_t len = 0;
    assert_int_equal(hf_admin_ask(&op, hf_env_posix(), p->path, "stats", NULL, 0, count, &len), HF_OK);
    assert_true(len > 0);
}

/* More of them than are kept, some with half a request: whoever has a whole one is answered at once. */
/* open-O3 */
static void connections_that_say_nothing_hold_up_nobody(void **state)
{
    const place *p = *state;
    enum { COUNT = 80 }; /* HF_SHARE_CONNECTIONS_MAX and some more */
    int fds[COUNT];
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < COUNT / 4; i++) {
            int fd = fds[round * COUNT / 4 + i] = connect_to(p);
            assert_int_equal(send(fd, "\x09\x00\x00\x00\x0a", (size_t)i % 6, MSG_NOSIGNAL), i % 6);
        }
        ask_stats(p);
    }
    char byte = 0;
    assert_int_equal(recv(fds[0], &byte, 1, 0), 0); /* the first was given up for the others */
    assert_int_equal(hf_close(service), HF_OK);
    for (int i = 0; i < COUNT; i++) {
        (void)close(fds[i]);
    }
}

/* A request in pieces, with another's whole one in between. */
static void a_request_may_come_slowly(void **state)
{
    const place *p = *state;
    static const char STATS[] = "\x07\x00\x00\x00\x0a\x05stats";
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    int fd = connect_to(p);
    for (size_t i = 0; i < sizeof STATS - 1; i++) {
        assert_int_equal(send(fd, STATS + i, 1, MSG_NOSIGNAL), 1);
        if (i % 4 == 0) {
            ask_stats(p);
        }
    }
    char buf[512];
    ssize_t got = 0;
    size_t all = 0;
    while ((got = recv(fd, buf, sizeof buf, 0)) > 0) {
        all += (size_t)got;
    }
    assert_true(all > 20);
    (void)close(fd);
    assert_int_equal(hf_close(service), HF_OK);
}

/* ---- What is in the way ----------------------------------------------------------------------------------------------- */

static char logged[1000];

static void keep_log(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    if (level >= HF_LOG_WARN) {
        (void)snprintf(logged, sizeof logged, "%s %s", event, fields);
    }
}

/* Whatever lies where the socket would go is somebody's, unless it is a socket. */
static void only_a_socket_is_removed_for_the_socket(void **state)
{
    const place *p = *state;
    char sock[PATH_MAX];
    char other[PATH_MAX];
    (void)snprintf(sock, sizeof sock, "%s-sock", p->path);
    (void)snprintf(other, sizeof other, "%s-other", p->path);
    for (int kind = 0; kind < 4; kind++) {
        hf_runtime *runtime = NULL;
        hf_service *service = NULL;
        struct stat before;
        struct stat after;
        print_message("kind %d\n", kind);
        if (kind == 0) {
            assert_int_equal(close(open(sock, O_CREAT | O_EXCL | O_WRONLY, 0600)), 0);
        } else if (kind == 1) {
            assert_int_equal(mkdir(sock, 0700), 0);
        } else if (kind == 2) {
            assert_int_equal(symlink(other, sock), 0);
        } else { /* of a process that died */
            struct sockaddr_un address = {.sun_family = AF_UNIX};
            (void)snprintf(address.sun_path, sizeof address.sun_path, "%.100s", sock);
            int fd = socket(AF_UNIX, SOCK_STREAM, 0);
            assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
            (void)close(fd);
        }
        assert_int_equal(lstat(sock, &before), 0);
        assert_int_equal(hf_runtime_new(&runtime, .threads = 1, .log = keep_log), HF_OK);
        logged[0] = '\0';
        assert_int_equal(hf_open(p->address, &service, .runtime = runtime), HF_OK);
        bool is_missing = strstr(logged, "admin_socket_missing") != NULL;
        assert_int_equal(is_missing, kind < 3);
        assert_true(!is_missing || strstr(logged, "-sock is in the way, and is not a socket: move it away") != NULL);
        assert_int_equal(hf_close(service), HF_OK);
        assert_int_equal(hf_runtime_free(runtime), HF_OK);
        if (kind < 3) {
            assert_int_equal(lstat(sock, &after), 0);
            assert_int_equal(after.st_ino, before.st_ino);
            assert_int_equal(remove(sock), 0);
        } else {
            assert_int_equal(lstat(sock, &after), -1);
        }
    }
}

/* And what takes its place while it is open stays, too. */
static void what_takes_the_place_of_the_socket_is_not_removed(void **state)
{
    const place *p = *state;
    char sock[PATH_MAX];
    hf_service *service = NULL;
    (void)snprintf(sock, sizeof sock, "%s-sock", p->path);
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    assert_int_equal(unlink(sock), 0);
    assert_int_equal(close(open(sock, O_CREAT | O_EXCL | O_WRONLY, 0600)), 0);
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(unlink(sock), 0);
}

/* The lock's file is written to: a link, or what is no file, is not opened; and the sentence says why. */
static void only_a_regular_file_becomes_the_lock(void **state)
{
    const place *p = *state;
    char owner[PATH_MAX];
    char expected[PATH_MAX + 200];
    (void)snprintf(owner, sizeof owner, "%s-owner", p->path);
    for (int kind = 0; kind < 3; kind++) {
        hf_service *service = NULL;
        print_message("kind %d\n", kind);
        if (kind == 0) {
            assert_int_equal(symlink("/etc/hostname", owner), 0);
        } else if (kind == 1) {
            assert_int_equal(mkdir(owner, 0700), 0);
        } else {
            assert_int_equal(mkfifo(owner, 0600), 0);
        }
        assert_int_equal(hf_open(p->address, &service), HF_ERR_INVALID);
        (void)snprintf(expected, sizeof expected, "cannot open %s: %s is in the way, and is %s", p->path, owner,
                       kind == 0 ? "a symbolic link: remove it" : "not a regular file: move it away");
        assert_string_equal(hf_error_text(), expected);
        assert_int_equal(remove(owner), 0);
    }
}

static int lock_error;

static hf_status refuse_lock(hf_env *env, hf_op *op, const char *path, bool is_brief, int *ret_fd, int64_t *ret_holder)
{
    (void)env;
    (void)is_brief;
    (void)ret_fd;
    *ret_holder = 0;
    return hf_fail_errno(op, lock_error, "cannot open %s", path);
}

/* A disk may be read-only although the user may write to it: ext4 becomes so when it fails. */
static void a_folder_that_cannot_be_written_to_is_refused_with_the_reason(void **state)
{
    const place *p = *state;
    static const struct {
        int error;
        const char *why;
    } CASES[] = {{EROFS, "Read-only file system"}, {EACCES, "Permission denied"}};
    hf_env_ops ops = *hf_env_posix()->ops;
    ops.lock_open = refuse_lock;
    hf_env env = {.ops = &ops};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char expected[2 * PATH_MAX + 200];
        hf_op op;
        hf_op_init(&op);
        hf_file_owner owner;
        int64_t holder = 0;
        lock_error = CASES[i].error;
        assert_int_equal(hf_file_owner_take(&op, &env, p->path, false, &owner, &holder), HF_ERR_DENIED);
        (void)snprintf(expected, sizeof expected,
                       "cannot open %s: its folder cannot be written to, and the log is written there (cannot open "
                       "%s-owner: %s)",
                       p->path, p->path, CASES[i].why);
        assert_string_equal(op.message, expected);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)

static const struct CMUnitTest TESTS[] = {
    TEST(connections_that_say_nothing_hold_up_nobody),
    TEST(a_request_may_come_slowly),
    TEST(only_a_socket_is_removed_for_the_socket),
    TEST(what_takes_the_place_of_the_socket_is_not_removed),
    TEST(only_a_regular_file_becomes_the_lock),
    TEST(a_folder_that_cannot_be_written_to_is_refused_with_the_reason),
};

int main(int argc, char **argv)
{
    return hf_test_main("beside", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
