#include "main/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

hf_status hf_file_text(hf_op *op, const char *path, hf_buf *text)
{
    char bytes[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return hf_fail_errno(op, errno, "cannot read %s", path);
    }
    ssize_t len = 0;
    while ((len = read(fd, bytes, sizeof bytes)) > 0) {
        hf_buf_put(text, bytes, (size_t)len);
    }
    int error = errno;
    (void)close(fd);
    if (len < 0) {
        return hf_fail_errno(op, error, "cannot read %s", path);
    }
    return hf_buf_status(text) == HF_OK ? HF_OK : hf_fail(op, hf_buf_status(text), "%s is too large", path);
}

static hf_status write_all(hf_op *op, int fd, const char *path, hf_str text)
{
    while (text.len > 0) {
        ssize_t len = write(fd, text.data, text.len);
        if (len < 0) {
            return hf_fail_errno(op, errno, "cannot write %s", path);
        }
        text.data += len;
        text.len -= (size_t)len;
    }
    return fsync(fd) == 0 ? HF_OK : hf_fail_errno(op, errno, "cannot write %s", path);
}

hf_status hf_file_replace(hf_op *op, const char *path, hf_str text)
{
    char fresh[4096];
    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh) {
        return hf_fail(op, HF_ERR_INVALID, "the path of the file is too long");
    }
    (void)unlink(fresh); /* of a process that was killed here */
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (fd < 0) {
        return hf_fail_errno(op, errno, "cannot write %s", fresh);
    }
    hf_status status = write_all(op, fd, fresh, text);
    if (close(fd) != 0 && status == HF_OK) {
        status = hf_fail_errno(op, errno, "cannot write %s", fresh);
    }
    if (status == HF_OK && rename(fresh, path) != 0) {
        status = hf_fail_errno(op, errno, "cannot replace %s", path);
    }
    if (status != HF_OK) {
        (void)unlink(fresh);
    }
    return status;
}
