/* Time, randomness, and printing to stderr when nothing else works. */
#include "env/posix/posix.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    int result = clock_gettime(clock, &now);
    hf_assert(result == 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

hf_instant hf_posix_now(hf_env *env)
{
    (void)env;
    return (hf_instant){clock_ns(CLOCK_MONOTONIC)};
}

hf_time hf_posix_wall_now(hf_env *env)
{
    (void)env;
    return (hf_time){clock_ns(CLOCK_REALTIME)};
}

hf_time hf_posix_wall_coarse(hf_env *env)
{
    (void)env;
    return (hf_time){clock_ns(CLOCK_REALTIME_COARSE)};
}

hf_status hf_posix_random(hf_env *env, hf_op *op, void *bytes, size_t len)
{
    (void)env;
    unsigned char *at = bytes;
    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return hf_fail_errno(op, errno, "no random bytes from the system");
        }
        at += got;
        len -= (size_t)got;
    }
    return HF_OK;
}

void hf_posix_whoami(hf_env *env, char *ret_text, size_t capacity)
{
    (void)env;
    char host[256];
    if (gethostname(host, sizeof host - 1) != 0) {
        (void)snprintf(host, sizeof host, "?");
    }
    host[sizeof host - 1] = '\0'; /* a name that is too long may come without a NUL */
    (void)snprintf(ret_text, capacity, "%lld@%s", (long long)getpid(), host);
}

void hf_posix_print(hf_env *env, const char *text)
{
    (void)env;
    size_t len = strlen(text);
    while (len > 0) {
        ssize_t put = hf_posix_write_quietly(STDERR_FILENO, text, len);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return; /* stderr does not work, so this cannot be reported */
        }
        text += put;
        len -= (size_t)put;
    }
}
