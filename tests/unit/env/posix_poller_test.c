/* The poller: events, edges, the bell, the deadline, and a host's loop around it. */
/* labels: threads */
#include "unit/env/posix_check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

static const hf_instant PAST = {0};

static hf_poller *open_poller(void)
{
    hf_poller *poller = NULL;
    ASSERT_STATUS(HF_OK, ops()->poller_open(posix(), &op, &poller));
    return poller;
}

/* env-E3 */
static void a_first_watch_reports_what_is_ready_and_later_only_edges(void **state)
{
    (void)state;
    hf_poller *poller = open_poller();
    int fds[2];
    char mark = 0;
    hf_event event[4];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(write(fds[1], "a", 1), 1);
    ASSERT_STATUS(HF_OK, ops()->poller_set(posix(), &op, poller, fds[0], HF_READABLE, true, &mark));
    assert_int_equal(ops()->poller_wait(posix(), poller, event, 4, HF_INSTANT_NEVER), 1);
    assert_ptr_equal(event[0].cookie, &mark);
    assert_int_equal(event[0].events, HF_READABLE);
    assert_int_equal(ops()->poller_wait(posix(), poller, event, 4, PAST), 0); /* the byte is still there: no edge */
    assert_int_equal(write(fds[1], "b", 1), 1);
    assert_int_equal(ops()->poller_wait(posix(), poller, event, 4, HF_INSTANT_NEVER), 1);

    /* Both directions; a watch that exists or does not is corrected either way. */
    ASSERT_STATUS(HF_OK, ops()->poller_set(posix(), &op, poller, fds[0], HF_READABLE | HF_WRITABLE, true, &mark));
    assert_int_equal(ops()->poller_wait(posix(), poller, event, 4, HF_INSTANT_NEVER), 1);
    assert_int_equal(event[0].events, HF_READABLE | HF_WRITABLE);
    ASSERT_STATUS(HF_OK, ops()->poller_set(posix(), &op, poller, fds[1], HF_WRITABLE, false, &op));
    assert_int_equal(ops()->poller_wait(posix(), poller, event, 4, HF_INSTANT_NEVER), 1);
    assert_ptr_equal(event[0].cookie, &op);
    assert_int_equal(event[0].events, HF_WRITABLE);

    ASSERT_STATUS(HF_OK, ops()->poller_set(posix(), &op, poller, fds[1], 0, false, NULL));
    ASSERT_STATUS(HF_OK, ops()->poller_set(posix(), &op, poller, fds[1], 0, false, NULL));
    (void)close(fds[1]);
    assert_int_equal(ops()->poller_wait(posix(), poller, event, 4, HF_INSTANT_NEVER), 1);
    assert_int_equal(event[0].events, HF_READABLE | HF_WRITABLE); /* a hang-up concerns both */
    (void)close(fds[0]);
    ops()->poller_close(posix(), poller);
    ops()->poller_close(posix(), NULL);
}

static void what_cannot_be_watched_is_a_status(void **state)
{
    (void)state;
    hf_poller *poller = open_poller();
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ASSERT_STATUS(HF_ERR_UNSUPPORTED, ops()->poller_set(posix(), &op, poller, fd, HF_READABLE, true, NULL));
    assert_non_null(strstr(op.message, "always ready"));
    ASSERT_STATUS(HF_OK, ops()->poller_set(posix(), &op, poller, fd, 0, false, NULL));
    (void)close(fd);
    ASSERT_STATUS(HF_ERR_IO, ops()->poller_set(posix(), &op, poller, fd, HF_READABLE, true, NULL));
    ASSERT_STATUS(HF_OK, ops()->poller_set(posix(), &op, poller, fd, 0, false, NULL));
    ops()->poller_close(posix(), poller);

    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(0);
    (void)close(next);
    for (rlim_t room = 0; room < 2; room++) {
        struct rlimit low = {.rlim_cur = (rlim_t)next + room, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        hf_status status = ops()->poller_open(posix(), &op, &poller);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        ASSERT_STATUS(HF_ERR_LIMIT, status);
    }
}

/* env-P2 */
static void a_ring_is_heard_once_and_rings_merge(void **state)
{
    (void)state;
    hf_poller *poller = open_poller();
    hf_event event[2];
    for (int i = 0; i < 3; i++) {
        ops()->poller_ring(posix(), poller);
        ops()->poller_ring(posix(), poller);
        assert_int_equal(ops()->poller_wait(posix(), poller, event, 2, HF_INSTANT_NEVER), 0);
        struct pollfd look = {.fd = ops()->poller_fd(posix(), poller), .events = POLLIN};
        assert_int_equal(poll(&look, 1, 0), 0);
    }
    ops()->poller_close(posix(), poller);
}

typedef struct talk {
    hf_poller *here;
    hf_poller *there;
    atomic_int message; /* number of the last message to `here` */
    atomic_int answer;  /* number of the last message to `there` */
} talk;

#define TALKS 5000

static void answer_main(void *arg)
{
    talk *it = arg;
    hf_event event;
    for (int i = 1; i <= TALKS; i++) {
        while (atomic_load(&it->answer) != i) {
            (void)ops()->poller_wait(posix(), it->there, &event, 1, HF_INSTANT_NEVER);
        }
        atomic_store(&it->message, i);
        ops()->poller_ring(posix(), it->here);
    }
}

/* env-P1 */
static void no_ring_is_lost_between_threads(void **state)
{
    (void)state;
    talk it = {.here = open_poller(), .there = open_poller()};
    hf_thread *thread = NULL;
    hf_event event;
    ASSERT_STATUS(HF_OK, ops()->thread_start(posix(), &op, "answer", 0, answer_main, &it, &thread));
    for (int i = 1; i <= TALKS; i++) {
        atomic_store(&it.answer, i);
        ops()->poller_ring(posix(), it.there);
        while (atomic_load(&it.message) != i) {
            (void)ops()->poller_wait(posix(), it.here, &event, 1, HF_INSTANT_NEVER);
        }
    }
    ops()->thread_join(posix(), thread);
    ops()->poller_close(posix(), it.here);
    ops()->poller_close(posix(), it.there);
}

static void a_wait_ends_with_its_deadline_and_not_before(void **state)
{
    (void)state;
    hf_poller *poller = open_poller();
    hf_event event;
    for (int64_t ns = 1; ns < 20000000; ns *= 37) {
        hf_instant deadline = {ops()->now(posix()).ns + ns};
        assert_int_equal(ops()->poller_wait(posix(), poller, &event, 1, deadline), 0);
        assert_true(ops()->now(posix()).ns >= deadline.ns);
    }
    ops()->poller_close(posix(), poller);
}

static void an_armed_deadline_makes_the_descriptor_readable(void **state)
{
    (void)state;
    hf_poller *poller = open_poller();
    struct pollfd look = {.fd = ops()->poller_fd(posix(), poller), .events = POLLIN};
    hf_event event;
    for (int i = 0; i < 3; i++) {
        hf_instant deadline = {ops()->now(posix()).ns + 1000000};
        ops()->poller_arm(posix(), poller, deadline);
        ops()->poller_arm(posix(), poller, deadline);
        assert_int_equal(poll(&look, 1, -1), 1);
        assert_true(ops()->now(posix()).ns >= deadline.ns);
        assert_int_equal(ops()->poller_wait(posix(), poller, &event, 1, PAST), 0);
        assert_int_equal(poll(&look, 1, 0), 0);
    }
    ops()->poller_arm(posix(), poller, (hf_instant){ops()->now(posix()).ns + INT64_C(3600) * 1000000000});
    ops()->poller_arm(posix(), poller, PAST); /* already over: at once */
    assert_int_equal(poll(&look, 1, -1), 1);
    assert_int_equal(ops()->poller_wait(posix(), poller, &event, 1, PAST), 0);
    ops()->poller_arm(posix(), poller, (hf_instant){ops()->now(posix()).ns + INT64_C(3600) * 1000000000});
    ops()->poller_arm(posix(), poller, HF_INSTANT_NEVER);
    assert_int_equal(poll(&look, 1, 0), 0);
    ops()->poller_close(posix(), poller);
}

static void without_descriptors_an_armed_deadline_comes_early_instead_of_never(void **state)
{
    (void)state;
    hf_poller *poller = open_poller();
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    ops()->poller_arm(posix(), poller, (hf_instant){ops()->now(posix()).ns + INT64_C(3600) * 1000000000});
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    hf_event event;
    assert_int_equal(ops()->poller_wait(posix(), poller, &event, 1, HF_INSTANT_NEVER), 0);
    ops()->poller_close(posix(), poller);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_watch_reports_what_is_ready_and_later_only_edges),
        cmocka_unit_test(what_cannot_be_watched_is_a_status),
        cmocka_unit_test(a_ring_is_heard_once_and_rings_merge),
        cmocka_unit_test(no_ring_is_lost_between_threads),
        cmocka_unit_test(a_wait_ends_with_its_deadline_and_not_before),
        cmocka_unit_test(an_armed_deadline_makes_the_descriptor_readable),
        cmocka_unit_test(without_descriptors_an_armed_deadline_comes_early_instead_of_never),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
