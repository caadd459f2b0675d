/* Files. All of these may block: they are called on pool threads. */
#include "env/posix/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_flags(hf_file_mode mode)
{
    switch (mode) {
    case HF_FILE_READ:
        return O_RDONLY;
    case HF_FILE_WRITE_NEW:
        return O_WRONLY | O_CREAT | O_EXCL;
    case HF_FILE_WRITE:
        return O_WRONLY | O_CREAT | O_TRUNC;
    case HF_FILE_APPEND:
        return O_WRONLY | O_CREAT | O_APPEND;
    }
    return -1;
}

hf_status hf_posix_file_open(hf_env *env, hf_op *op, const char *path, hf_file_mode mode, int *ret_fd)
{
    (void)env;
    int flags = open_flags(mode);
    if (flags < 0) {
        return hf_fail(op, HF_ERR_INVALID, "%d is not a mode to open %s with", (int)mode, path);
    }
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0600);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return hf_fail_errno(op, errno, "cannot open %s", path);
    }
    *ret_fd = fd;
    return HF_OK;
}

hf_status hf_posix_file_read(hf_env *env, hf_op *op, int fd, void *buf, size_t len, size_t *ret_len)
{
    return hf_posix_read(env, op, fd, buf, len, ret_len);
}

hf_status hf_posix_file_write(hf_env *env, hf_op *op, int fd, const void *buf, size_t len)
{
    (void)env;
    const unsigned char *at = buf;
    while (len > 0) {
        ssize_t put = hf_posix_write_quietly(fd, at, len); /* the path may name a pipe */
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return hf_fail_errno(op, errno, "cannot write to descriptor %d", fd);
        }
        at += put;
        len -= (size_t)put;
    }
    return HF_OK;
}

hf_status hf_posix_file_sync(hf_env *env, hf_op *op, int fd)
{
    (void)env;
    int result;
    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? HF_OK : hf_fail_errno(op, errno, "cannot make descriptor %d durable", fd);
}

hf_status hf_posix_file_close(hf_env *env, hf_op *op, int fd)
{
    (void)env;
    /* Some file systems report a failed write only here. The number is free also after EINTR. */
    if (close(fd) != 0 && errno != EINTR) {
        return hf_fail_errno(op, errno, "cannot close descriptor %d", fd);
    }
    return HF_OK;
}

hf_status hf_posix_file_check(hf_env *env, hf_op *op, const char *path)
{
    struct stat info;
    (void)env;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
        return HF_OK;
    }
    return hf_fail(op, HF_ERR_INVALID, "%s is a %s, not a regular file", path,
                   S_ISFIFO(info.st_mode)   ? "fifo"
                   : S_ISSOCK(info.st_mode) ? "socket"
                                            : "device");
}

static int sync_data(int fd)
{
    int result;
    do {
        result = fdatasync(fd);
    } while (result != 0 && errno == EINTR);
    return result;
}

/* The first sync may fail, or report an earlier failure that no process was told of. Either way the pages concerned are
 * dropped with the cache, and later reads get the bytes that are on the disk. If a second sync fails, too, there is
 * still data that the disk does not accept. Pages that a process has mapped stay cached. */
hf_status hf_posix_file_reread(hf_env *env, hf_op *op, const char *path)
{
    (void)env;
    int fd;
    do {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return hf_fail_errno(op, errno, "cannot open %s", path);
    }
    int error = sync_data(fd) != 0 && sync_data(fd) != 0 ? errno : 0;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    (void)close(fd);
    return error == 0 ? HF_OK : hf_fail_errno(op, error, "cannot make %s durable", path);
}
