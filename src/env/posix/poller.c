/* Waiting for descriptors, a bell and a deadline at once: epoll, an eventfd, and a timerfd when a host's loop waits
 * for us.
 *
 * Everything is edge-triggered, also the bell and the timer, so nobody has to read them empty: each write to the
 * eventfd and each expiry makes a new edge. `rung` merges the rings that come before the waiter has heard the first:
 *
 *     ringer   its message is out, rung 0 -> 1, write the eventfd     (rung was 1: nothing more to do)
 *     waiter   hears the edge, rung 1 -> 0, then looks for messages
 *
 * env-P1  A ringer that finds rung == 1 did so before the waiter's exchange, which therefore sees its message.
 * env-P2  rung == 1 means an edge is due or on its way: only the ringer that set it writes, and only its edge clears it. */
#include "env/posix/posix.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

typedef struct hf_posix_poller { /* an hf_poller, to others */
    int epoll_fd;
    int bell_fd;      /* an eventfd; its address here is the cookie of the bell */
    int timer_fd;     /* -1 until poller_arm is first called; its address here is the cookie of the timer */
    int64_t armed_ns; /* deadline to which the timer is set; 0 = none */
    atomic_uint rung; /* 1 from a ring until it is heard */
} hf_posix_poller;

static hf_posix_poller *of(hf_poller *poller)
{
    return (hf_posix_poller *)(void *)poller;
}

static int watch(int epoll_fd, int fd, uint32_t events, void *cookie)
{
    struct epoll_event event = {.events = events | EPOLLET, .data.ptr = cookie};
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

hf_status hf_posix_poller_open(hf_env *env, hf_op *op, hf_poller **ret_poller)
{
    hf_posix_poller *poller = calloc(1, sizeof *poller);
    if (poller == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a poller");
    }
    poller->timer_fd = -1;
    poller->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    poller->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (poller->epoll_fd < 0 || poller->bell_fd < 0 ||
        watch(poller->epoll_fd, poller->bell_fd, EPOLLIN, &poller->bell_fd) != 0) {
        int error = errno;
        hf_posix_poller_close(env, (hf_poller *)(void *)poller);
        return hf_fail_errno(op, error, "cannot open a poller");
    }
    hf_assert(poller->timer_fd == -1 && poller->armed_ns == 0);
    *ret_poller = (hf_poller *)(void *)poller;
    return HF_OK;
}

void hf_posix_poller_close(hf_env *env, hf_poller *base)
{
    hf_posix_poller *poller = of(base);
    if (poller == NULL) {
        return;
    }
    hf_posix_close(env, poller->timer_fd);
    hf_posix_close(env, poller->bell_fd);
    hf_posix_close(env, poller->epoll_fd);
    free(poller);
}

static hf_status fail_watch(hf_op *op, int error, int fd)
{
    if (error == EPERM) {
        return hf_fail(op, HF_ERR_UNSUPPORTED,
                       "descriptor %d is a file or directory: it is always ready and cannot be waited for", fd);
    }
    if (error == ENOSPC) {
        return hf_fail(op, HF_ERR_LIMIT, "cannot watch descriptor %d: fs.epoll.max_user_watches is reached", fd);
    }
    return hf_fail_errno(op, error, "cannot watch descriptor %d", fd);
}

hf_status hf_posix_poller_set(hf_env *env, hf_op *op, hf_poller *base, int fd, int events, bool is_new, void *cookie)
{
    (void)env;
    hf_posix_poller *poller = of(base);
    hf_assert((events & ~(HF_READABLE | HF_WRITABLE)) == 0);
    struct epoll_event event = {.events = EPOLLET, .data.ptr = cookie};
    if (events == 0) {
        /* Closing a descriptor takes it out of the set too: not finding it is success. */
        int result = epoll_ctl(poller->epoll_fd, EPOLL_CTL_DEL, fd, &event);
        if (result != 0 && errno != ENOENT && errno != EBADF && errno != EPERM) {
            return hf_fail_errno(op, errno, "cannot stop watching descriptor %d", fd);
        }
        return HF_OK;
    }
    if ((events & HF_READABLE) != 0) {
        event.events |= EPOLLIN | EPOLLRDHUP;
    }
    if ((events & HF_WRITABLE) != 0) {
        event.events |= EPOLLOUT;
    }
    int how = is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    int result = epoll_ctl(poller->epoll_fd, how, fd, &event);
    if (result != 0 && (errno == EEXIST || errno == ENOENT)) {
        /* The number was closed and opened again without our knowledge: the kernel's state counts. */
        how = errno == EEXIST ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
        result = epoll_ctl(poller->epoll_fd, how, fd, &event);
    }
    return result == 0 ? HF_OK : fail_watch(op, errno, fd);
}

/* epoll_wait with the finest timeout there is. `left_ns` < 0 = for ever. */
static int wait_once(int epoll_fd, struct epoll_event *batch, int count, int64_t left_ns)
{
#if defined(SYS_epoll_pwait2) && !HF_TSAN /* TSan knows only epoll_wait as a place where signals may run */
    static atomic_bool is_missing;
    if (!atomic_load_explicit(&is_missing, memory_order_relaxed)) {
        struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000), .tv_nsec = (long)(left_ns % 1000000000)};
        long result = syscall(SYS_epoll_pwait2, epoll_fd, batch, count, left_ns < 0 ? NULL : &left, NULL, (size_t)0);
        if (result >= 0 || (errno != ENOSYS && errno != EPERM)) {
            return (int)result;
        }
        atomic_store_explicit(&is_missing, true, memory_order_relaxed);
    }
#endif
    int64_t left_ms = left_ns / 1000000 + (left_ns % 1000000 > 0 ? 1 : 0);
    left_ms = left_ms > INT_MAX ? INT_MAX : left_ms;
    return epoll_wait(epoll_fd, batch, count, left_ns < 0 ? -1 : (int)left_ms);
}

static int64_t time_left(hf_env *env, hf_instant deadline)
{
    if (deadline.ns == HF_INSTANT_NEVER.ns) {
        return -1;
    }
    int64_t now_ns = hf_posix_now(env).ns;
    hf_assert(now_ns >= 0);
    return deadline.ns > now_ns ? deadline.ns - now_ns : 0;
}

static int translate(uint32_t events)
{
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
        return HF_READABLE | HF_WRITABLE;
    }
    int result = (events & (EPOLLIN | EPOLLRDHUP)) != 0 ? HF_READABLE : 0;
    return result | ((events & EPOLLOUT) != 0 ? HF_WRITABLE : 0);
}

/* Returns the caller's events, and handles those of the bell and the timer. */
static int take(hf_posix_poller *poller, const struct epoll_event *batch, int batch_count, hf_event *ret_events)
{
    hf_assert(batch_count <= HF_EVENTS_PER_POLL);
    int count = 0;
    for (int i = 0; i < batch_count; i++) {
        void *cookie = batch[i].data.ptr;
        if (cookie == &poller->bell_fd) {
            (void)atomic_exchange_explicit(&poller->rung, 0, memory_order_acq_rel); /* env-P1 */
        } else if (cookie == &poller->timer_fd) {
            poller->armed_ns = 0;
        } else {
            ret_events[count] = (hf_event){.cookie = cookie, .events = translate(batch[i].events)};
            count++;
        }
    }
    return count;
}

int hf_posix_poller_wait(hf_env *env, hf_poller *base, hf_event *ret_events, int count, hf_instant deadline)
{
    hf_posix_poller *poller = of(base);
    struct epoll_event batch[HF_EVENTS_PER_POLL];
    int batch_max = count < HF_EVENTS_PER_POLL ? count : HF_EVENTS_PER_POLL;
    hf_assert(batch_max > 0);
    for (;;) {
        int64_t left_ns = time_left(env, deadline);
        int got = wait_once(poller->epoll_fd, batch, batch_max, left_ns);
        if (got > 0) {
            return take(poller, batch, got, ret_events);
        }
        hf_assert(got == 0 || errno == EINTR);
        if (left_ns == 0 || (got == 0 && time_left(env, deadline) == 0)) {
            return 0;
        }
    }
}

void hf_posix_poller_ring(hf_env *env, hf_poller *base)
{
    (void)env;
    hf_posix_poller *poller = of(base);
    if (atomic_exchange_explicit(&poller->rung, 1, memory_order_acq_rel) != 0) {
        return; /* env-P1 */
    }
    uint64_t one = 1;
    ssize_t result = write(poller->bell_fd, &one, sizeof one);
    hf_assert(result == (ssize_t)sizeof one);
}

int hf_posix_poller_fd(hf_env *env, hf_poller *poller)
{
    (void)env;
    return of(poller)->epoll_fd;
}

static bool open_timer(hf_posix_poller *poller)
{
    hf_assert(poller->timer_fd < 0);
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0 || watch(poller->epoll_fd, fd, EPOLLIN, &poller->timer_fd) != 0) {
        hf_posix_close(NULL, fd);
        return false;
    }
    poller->timer_fd = fd;
    return true;
}

void hf_posix_poller_arm(hf_env *env, hf_poller *base, hf_instant deadline)
{
    hf_posix_poller *poller = of(base);
    int64_t want_ns = deadline.ns == HF_INSTANT_NEVER.ns ? 0 : deadline.ns > 0 ? deadline.ns : 1;
    if (want_ns == poller->armed_ns) {
        return;
    }
    if (poller->timer_fd < 0 && !open_timer(poller)) {
        /* Out of descriptors. So it becomes readable at once: that costs the host a turn, but no deadline is lost. */
        hf_posix_poller_ring(env, base);
        return;
    }
    struct itimerspec timer = {
        .it_value = {.tv_sec = (time_t)(want_ns / 1000000000), .tv_nsec = (long)(want_ns % 1000000000)},
    };
    int result = timerfd_settime(poller->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
    hf_assert(result == 0);
    poller->armed_ns = want_ns;
}
