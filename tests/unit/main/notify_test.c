/* What the service manager is told, and what it hands over. */
#include "support/support.h"

#include "base/env.h"

#include "main/notify.c"

#include <netinet/in.h>
#include <stdio.h>

static void readiness_is_told_to_the_socket(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"/tmp/holdfast_notify_", "@holdfast_notify_"};
    for (size_t i = 0; i < HF_COUNT_OF(NAMES); i++) {
        char path[64];
        char text[64] = "";
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        (void)snprintf(path, sizeof path, "%s%ld", NAMES[i], (long)getpid());
        memcpy(at.sun_path, path, strlen(path));
        if (path[0] == '@') {
            at.sun_path[0] = '\0';
        }
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)&at,
                              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))),
                         0);
        assert_int_equal(setenv("NOTIFY_SOCKET", path, 1), 0);
        hf_notify("READY=1");
        assert_int_equal(recv(fd, text, sizeof text - 1, MSG_DONTWAIT), 7);
        assert_string_equal(text, "READY=1");
        (void)close(fd);
        (void)unlink(path);
        hf_notify("STOPPING=1"); /* to nobody */
    }
    assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
    hf_notify("READY=1");
}

static void a_watchdog_is_meant_for_one_process(void **state)
{
    (void)state;
    char pid[32];
    (void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    assert_int_equal(hf_notify_watchdog().ns, 0);
    assert_int_equal(setenv("WATCHDOG_USEC", "3000000", 1), 0);
    assert_int_equal(hf_notify_watchdog().ns, 3000000000);
    assert_int_equal(setenv("WATCHDOG_PID", "1", 1), 0);
    assert_int_equal(hf_notify_watchdog().ns, 0);
    assert_int_equal(setenv("WATCHDOG_PID", pid, 1), 0);
    assert_int_equal(hf_notify_watchdog().ns, 3000000000);
    assert_int_equal(setenv("WATCHDOG_USEC", "soon", 1), 0);
    assert_int_equal(hf_notify_watchdog().ns, 0);
}

static void sockets_are_handed_over_once(void **state)
{
    (void)state;
    char pid[32];
    (void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    assert_int_equal(setenv("LISTEN_FDS", "2", 1), 0);
    assert_int_equal(hf_notify_sockets(), 0); /* for no process in particular: not for us */
    assert_int_equal(setenv("LISTEN_FDS", "2", 1), 0);
    assert_int_equal(setenv("LISTEN_PID", "1", 1), 0);
    assert_int_equal(hf_notify_sockets(), 0);
    assert_int_equal(setenv("LISTEN_FDS", "2", 1), 0);
    assert_int_equal(setenv("LISTEN_PID", pid, 1), 0);
    assert_int_equal(hf_notify_sockets(), 2);
    assert_int_equal(hf_notify_sockets(), 0);
}

/* "fd:N", as a listener of hf_listener_open. */
static void a_socket_that_was_handed_over_is_listened_on(void **state)
{
    (void)state;
    hf_env *env = hf_env_posix();
    hf_op op;
    hf_op_init(&op);
    char address[HF_ADDRESS_LEN_MAX];
    char name[32];
    int adopted = -1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(name, sizeof name, "fd:%d", fd);
    assert_int_equal(env->ops->listen(env, &op, name, 0, false, &adopted, address), HF_ERR_INVALID); /* not yet */
    assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 5), 0);
    assert_int_equal(env->ops->listen(env, &op, name, 0, false, &adopted, address), HF_OK);
    assert_int_equal(adopted, fd);
    assert_int_equal(strncmp(address, "tcp:127.0.0.1:", 14), 0);
    int accepted = -1;
    char peer[HF_ADDRESS_LEN_MAX];
    assert_int_equal(env->ops->accept(env, &op, fd, &accepted, peer), HF_ERR_AGAIN); /* it does not block any more */
    env->ops->close(env, fd);
    assert_int_equal(env->ops->listen(env, &op, name, 0, false, &adopted, address), HF_ERR_INVALID);
    assert_int_equal(env->ops->listen(env, &op, "fd:", 0, false, &adopted, address), HF_ERR_INVALID);
    assert_int_equal(env->ops->listen(env, &op, "fd:3x", 0, false, &adopted, address), HF_ERR_INVALID);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(readiness_is_told_to_the_socket),
    cmocka_unit_test(a_watchdog_is_meant_for_one_process),
    cmocka_unit_test(sockets_are_handed_over_once),
    cmocka_unit_test(a_socket_that_was_handed_over_is_listened_on),
};

int main(int argc, char **argv)
{
    return hf_test_main("notify", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
