/* What the tests of env/posix share. */
#ifndef HF_TESTS_UNIT_ENV_POSIX_CHECK_H
#define HF_TESTS_UNIT_ENV_POSIX_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/env.h"

#include <holdfast/error.h>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* The call's status is `wanted`; a failure names both, and the sentence that was recorded in `op`. */
#define ASSERT_STATUS(wanted, call)                                                                           \
    do {                                                                                                      \
        hf_status status_ = (call);                                                                           \
        if (status_ != (wanted)) {                                                                            \
            print_message("%s gave %s, not %s: %s\n", #call, hf_status_name(status_), hf_status_name(wanted), \
                          op.message);                                                                        \
        }                                                                                                     \
        assert_int_equal(status_, (wanted));                                                                  \
    } while (0)

static hf_op op; /* of the test's own thread */

static inline hf_env *posix(void)
{
    return hf_env_posix();
}

static inline const hf_env_ops *ops(void)
{
    return hf_env_posix()->ops;
}

/* Waits for a process of the test's own and returns what waitpid says. */
static inline int reap(pid_t pid)
{
    int status = 0;
    pid_t reaped;
    do {
        reaped = waitpid(pid, &status, 0);
    } while (reaped < 0);
    return status;
}

/* A poller's wait for one thing, for ever. */
static inline void wait_for(int fd, int events)
{
    hf_poller *poller = NULL;
    hf_event event = {0};
    ASSERT_STATUS(HF_OK, ops()->poller_open(posix(), &op, &poller));
    ASSERT_STATUS(HF_OK, ops()->poller_set(posix(), &op, poller, fd, events, true, &event));
    while (ops()->poller_wait(posix(), poller, &event, 1, HF_INSTANT_NEVER) == 0) {
    }
    ops()->poller_close(posix(), poller);
}

#endif
