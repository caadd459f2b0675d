#include "base/op.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

hf_status hf_fail_at(hf_op *op, hf_status status, const char *where, const char *format, ...)
{
    hf_assert(status != HF_OK);
    if (op != NULL) {
        op->status = status;
        op->where = where;
        va_list args;
        va_start(args, format);
        (void)vsnprintf(op->message, sizeof op->message, format, args);
        va_end(args);
    }
    return status;
}

hf_status hf_status_of_errno(int error)
{
    static const struct {
        int error;
        hf_status status;
    } MAP[] = {
        {EAGAIN, HF_ERR_AGAIN},
        {EINTR, HF_ERR_AGAIN},
        {EINPROGRESS, HF_ERR_AGAIN},
        {ENOMEM, HF_ERR_NOMEM},
        {ENOBUFS, HF_ERR_NOMEM},
        {EMFILE, HF_ERR_LIMIT},
        {ENFILE, HF_ERR_LIMIT},
        {EDQUOT, HF_ERR_FULL},
        {ENOSPC, HF_ERR_FULL},
        {EFBIG, HF_ERR_FULL},
        {EACCES, HF_ERR_DENIED},
        {EPERM, HF_ERR_DENIED},
        {EROFS, HF_ERR_DENIED},
        {ENOENT, HF_ERR_NOT_FOUND},
        {EEXIST, HF_ERR_EXISTS},
        {EADDRINUSE, HF_ERR_EXISTS},
        {ECONNREFUSED, HF_ERR_REFUSED},
        {ECONNRESET, HF_ERR_RESET},
        {EPIPE, HF_ERR_RESET},
        {ETIMEDOUT, HF_ERR_TIMEOUT},
        {EINVAL, HF_ERR_INVALID},
        {ENAMETOOLONG, HF_ERR_INVALID},
        {ENOTDIR, HF_ERR_NOT_FOUND},
        {ESRCH, HF_ERR_NOT_FOUND},
        {E2BIG, HF_ERR_TOO_BIG},
        {ENOSYS, HF_ERR_UNSUPPORTED},
        {EOPNOTSUPP, HF_ERR_UNSUPPORTED},
        {EAFNOSUPPORT, HF_ERR_UNSUPPORTED},
        {ECONNABORTED, HF_ERR_AGAIN},
        {ELOOP, HF_ERR_DENIED},
    };
    for (size_t i = 0; i < HF_COUNT_OF(MAP); i++) {
        if (MAP[i].error == error) {
            return MAP[i].status;
        }
    }
    return HF_ERR_IO;
}

hf_status hf_fail_errno_at(hf_op *op, int error, const char *where, const char *format, ...)
{
    hf_status status = hf_status_of_errno(error);
    if (op == NULL) {
        return status;
    }
    char what[HF_MESSAGE_LEN_MAX / 2];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    char text[128];
    return hf_fail_at(op, status, where, "%s: %s", what, strerror_r(error, text, sizeof text));
}
