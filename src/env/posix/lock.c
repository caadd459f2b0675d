/* Locks by name: the process that has the file open and locked holds the lock. The kernel takes the lock away when the
 * process ends, however it ends.
 *
 * The lock belongs to the open file description (F_OFD_SETLK). So it also keeps out a second opener in the same
 * process, and closing another descriptor of the file does not release it. The file contains the holder's pid as
 * text, which is negative if the holder will be brief: for error messages, and for a process that would wait for a
 * brief holder.
 *
 * The holder deletes the file before it releases the lock. A process that opened the file before that and gets the lock
 * afterwards has locked a file without a name, while a third one may lock a new file. So a process that got the lock
 * checks whether the name still means this file, and begins again if not. */
#include "env/posix/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES_MAX 100 /* each retry means that a holder came and went meanwhile */

static int open_quietly(const char *path)
{
    int fd;
    do {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0600);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/* A link is not followed: it may lead to a file that is not ours, which would be written to. */
static hf_status refuse_to_open(hf_op *op, int error, const char *path)
{
    if (error == ELOOP) {
        return hf_fail(op, HF_ERR_INVALID, "%s is in the way, and is a symbolic link: remove it", path);
    }
    if (error == EISDIR || error == ENXIO) {
        return hf_fail(op, HF_ERR_INVALID, "%s is in the way, and is not a regular file: move it away", path);
    }
    return hf_fail_errno(op, error, "cannot open %s", path);
}

static bool is_named(int fd, const char *path)
{
    struct stat mine;
    struct stat there;
    return fstat(fd, &mine) == 0 && lstat(path, &there) == 0 && mine.st_dev == there.st_dev &&
           mine.st_ino == there.st_ino;
}

static int64_t read_pid(int fd)
{
    char text[32];
    ssize_t len = pread(fd, text, sizeof text - 1, 0);
    if (len <= 0) {
        return 0;
    }
    text[len] = '\0';
    return strtoll(text, NULL, 10);
}

/* Best effort: the lock counts, not the text. */
static void write_pid(int fd, bool is_brief)
{
    char text[32];
    int len = snprintf(text, sizeof text, "%s%lld\n", is_brief ? "-" : "", (long long)getpid());
    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)len, 0) != len) {
        (void)ftruncate(fd, 0);
    }
}

hf_status hf_posix_lock_open(hf_env *env, hf_op *op, const char *path, bool is_brief, int *ret_fd, int64_t *ret_holder)
{
    (void)env;
    for (int i = 0; i < TRIES_MAX; i++) {
        int fd = open_quietly(path);
        if (fd < 0) {
            return refuse_to_open(op, errno, path);
        }
        struct stat mine;
        if (fstat(fd, &mine) == 0 && !S_ISREG(mine.st_mode)) {
            (void)close(fd);
            return hf_fail(op, HF_ERR_INVALID, "%s is in the way, and is not a regular file: move it away", path);
        }
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (fcntl(fd, F_OFD_SETLK, &whole) != 0) {
            int error = errno;
            *ret_holder = read_pid(fd);
            (void)close(fd);
            return error == EAGAIN || error == EACCES
                       ? hf_fail(op, HF_ERR_EXISTS, "%s is held by process %lld", path, (long long)*ret_holder)
                       : hf_fail_errno(op, error, "cannot lock %s", path);
        }
        if (is_named(fd, path)) {
            write_pid(fd, is_brief);
            *ret_fd = fd;
            return HF_OK;
        }
        (void)close(fd);
    }
    return hf_fail(op, HF_ERR_EXISTS, "%s cannot be locked: its holder changes all the time", path);
}

void hf_posix_lock_close(hf_env *env, const char *path, int fd)
{
    (void)env;
    hf_assert(fd >= 0);
    if (is_named(fd, path)) {
        (void)unlink(path);
    }
    (void)close(fd);
}

hf_status hf_posix_file_remove(hf_env *env, hf_op *op, const char *path)
{
    (void)env;
    return unlink(path) == 0 || errno == ENOENT ? HF_OK : hf_fail_errno(op, errno, "cannot remove %s", path);
}

hf_status hf_posix_socket_remove(hf_env *env, hf_op *op, const char *path)
{
    struct stat there;
    if (lstat(path, &there) == 0 && !S_ISSOCK(there.st_mode)) {
        return hf_fail(op, HF_ERR_EXISTS, "%s is in the way, and is not a socket: move it away", path);
    }
    return hf_posix_file_remove(env, op, path);
}
