/* A host with its own event loop, here poll(2), that runs fibers without giving up a thread.
 *
 * A runtime with .threads = HF_OFF has no fiber threads. Its one descriptor becomes readable
 * when there is something to run, an I/O event or an alarm that is due included; hf_runtime_turn
 * then runs it and comes back. The host's descriptors stand beside it in the same poll. Any loop
 * that can watch a descriptor works the same way: GLib, libuv, Qt. */
#include <holdfast/holdfast.h>

#include <poll.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* A fiber: ordinary code that waits, although only the host's loop runs it. */
static hf_status talk(void *arg)
{
    const int *bell = arg; /* the write end of the host's pipe */
    for (int i = 1; i <= 3; i++) {
        HF_TRY(hf_sleep(hf_milliseconds(20)));
        printf("fiber: %d. ring\n", i);
        if (write(*bell, "!", 1) != 1) {
            return hf_raise(HF_ERR_IO, "the bell is broken");
        }
    }
    return HF_OK;
}

/* Echoes over loopback inside the same loop: I/O on fibers needs no thread either. */
static hf_status serve_one(void *arg)
{
    hf_listener *listener = arg;
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    char buf[32];
    size_t len = 0;
    HF_TRY(hf_listener_accept(listener, &conn));
    HF_TRY(hf_conn_read(conn, buf, sizeof buf, &len));
    return hf_conn_write(conn, buf, len);
}

static hf_status network(void *arg)
{
    (void)arg;
    HF_AUTO(hf_listener_close) hf_listener *listener = NULL;
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    char buf[32];
    size_t len = 0;
    HF_TRY(hf_listener_open("tcp:127.0.0.1:0", &listener));
    HF_TRY(hf_scope_open(&scope, .name = "network"));
    HF_TRY(hf_fork(scope, serve_one, listener));
    HF_TRY(hf_conn_open(hf_listener_address(listener), &conn));
    HF_TRY(hf_conn_write(conn, "over loopback", 13));
    HF_TRY(hf_conn_read(conn, buf, sizeof buf, &len));
    printf("fiber: \"%.*s\" came back\n", (int)len, buf);
    return hf_join(scope);
}

/* The host's loop, until the scope has nothing left to do. */
static hf_status loop(hf_runtime *runtime, hf_scope *scope, int timer, int bell)
{
    int ticks = 0;
    while (!hf_scope_is_idle(scope)) {
        struct pollfd fds[] = {{.fd = hf_runtime_fd(runtime), .events = POLLIN},
                               {.fd = timer, .events = POLLIN},
                               {.fd = bell, .events = POLLIN}};
        (void)poll(fds, 3, -1);
        uint64_t count = 0;
        char ring = 0;
        if (fds[1].revents != 0 && read(timer, &count, sizeof count) > 0) {
            printf("host:  tick %d\n", ++ticks);
        }
        if (fds[2].revents != 0 && read(bell, &ring, 1) == 1) {
            printf("host:  the bell rang\n");
        }
        if (fds[0].revents != 0) {
            hf_status status = hf_runtime_turn(runtime, HF_SPAN_OFF); /* never waits: the host's poll does */
            if (status != HF_ERR_TIMEOUT) {
                HF_TRY(status);
            }
        }
    }
    return hf_join(scope); /* idle, so it returns at once */
}

static hf_status app(void *arg)
{
    const int *fds = arg; /* timer, and the bell's two ends */
    HF_AUTO(hf_runtime_free) hf_runtime *runtime = NULL;
    HF_TRY(hf_runtime_new(&runtime, .threads = HF_OFF, .name = "guest"));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "host", .runtime = runtime)); /* owned by this plain thread */
    int bell = fds[2];
    HF_TRY(hf_fork(scope, talk, &bell));
    HF_TRY(hf_fork(scope, network, NULL));
    return loop(runtime, scope, fds[0], fds[1]);
}

int main(void)
{
    int fds[3] = {timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), -1, -1};
    struct itimerspec every = {.it_interval.tv_nsec = 25000000, .it_value.tv_nsec = 25000000};
    if (fds[0] < 0 || timerfd_settime(fds[0], 0, &every, NULL) != 0 || pipe(&fds[1]) != 0) {
        perror("08_own_poll_loop");
        return 1;
    }
    HF_OR_DIE(app(fds));
    for (int i = 0; i < 3; i++) {
        (void)close(fds[i]);
    }
    return 0;
}
