/* Bytes through sockets and pipes.
 *
 * Writing to a closed pipe raises SIGPIPE, and a library must not change the host's action for it. Sockets take a flag
 * that prevents it. For all other descriptors the signal is blocked on this thread during the write. A SIGPIPE that the
 * write made pending is removed; one that was pending before stays. */
#include "env/posix/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

hf_status hf_posix_read(hf_env *env, hf_op *op, int fd, void *buf, size_t len, size_t *ret_len)
{
    (void)env;
    ssize_t got;
    do {
        got = read(fd, buf, len);
    } while (got < 0 && errno == EINTR); /* the watch is edge-triggered: giving up here would lose the edge */
    if (got < 0) {
        return hf_fail_errno(op, errno, "cannot read from descriptor %d", fd);
    }
    *ret_len = (size_t)got;
    return HF_OK;
}

static bool is_pending(int number)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, number) == 1;
}

ssize_t hf_posix_write_quietly(int fd, const void *buf, size_t len)
{
    sigset_t only;
    sigset_t before;
    (void)sigemptyset(&only);
    (void)sigaddset(&only, SIGPIPE);
    bool was_pending = is_pending(SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &only, &before);
    ssize_t put = write(fd, buf, len);
    int error = errno;
    if (put < 0 && error == EPIPE && !was_pending) {
        int result;
        do {
            result = sigtimedwait(&only, NULL, &(struct timespec){0});
        } while (result < 0 && errno == EINTR);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return put;
}

hf_status hf_posix_write(hf_env *env, hf_op *op, int fd, const void *buf, size_t len, size_t *ret_len)
{
    (void)env;
    ssize_t put;
    do {
        put = send(fd, buf, len, MSG_NOSIGNAL);
        if (put < 0 && errno == ENOTSOCK) {
            put = hf_posix_write_quietly(fd, buf, len);
        }
    } while (put < 0 && errno == EINTR);
    if (put < 0) {
        return hf_fail_errno(op, errno, "cannot write to descriptor %d", fd);
    }
    *ret_len = (size_t)put;
    return HF_OK;
}

hf_status hf_posix_shutdown(hf_env *env, hf_op *op, int fd)
{
    (void)env;
    if (shutdown(fd, SHUT_WR) == 0) {
        return HF_OK;
    }
    if (errno == ENOTCONN) {
        return hf_fail(op, HF_ERR_RESET, "descriptor %d is not connected any more", fd);
    }
    if (errno == ENOTSOCK) {
        return hf_fail(op, HF_ERR_UNSUPPORTED, "descriptor %d is not a socket: close it to end the stream", fd);
    }
    return hf_fail_errno(op, errno, "cannot shut descriptor %d down", fd);
}

void hf_posix_close(hf_env *env, int fd)
{
    (void)env;
    if (fd >= 0) {
        (void)close(fd); /* also after EINTR the number is free, so it is never tried again */
    }
}

hf_status hf_posix_pipe(hf_env *env, hf_op *op, int *ret_read_fd, int *ret_write_fd)
{
    (void)env;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        return hf_fail_errno(op, errno, "cannot make a pipe");
    }
    *ret_read_fd = fds[0];
    *ret_write_fd = fds[1];
    return HF_OK;
}
