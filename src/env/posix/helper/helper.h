/* The parts of the helper program. It is built from helper.c, exec.c and kill.c, apart from the library. */
#ifndef HF_ENV_POSIX_HELPER_HELPER_H
#define HF_ENV_POSIX_HELPER_HELPER_H

#include "env/posix/helper/sys.h"
#include "env/posix/helper/wire.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>

__attribute__((noreturn)) static inline void leave(int code)
{
    for (;;) {
        (void)sys1(SYS_exit_group, code);
    }
}

static inline void close_fd(int fd)
{
    if (fd >= 0) {
        (void)sys1(SYS_close, fd);
    }
}

static inline void set_cloexec(int fd)
{
    (void)sys3(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
}

/* exec.c: how a new child is executed. */
typedef struct hf_exec_plan {
    const hf_wire_request *request;
    int payload_fd;
    int directory_fd; /* the host's working directory */
    int fds[3];       /* -1 = /dev/null, which the helper has as its own 0, 1 and 2 */
} hf_exec_plan;

/* Becomes the program. Returns only when that failed, a negative errno. */
long hf_helper_exec(const hf_exec_plan *plan);

/* helper.c: reaps everything that has ended. False: there are no children at all. */
bool hf_helper_reap(void);

/* kill.c: kills all descendants and waits for their end. */
void hf_helper_kill_all(void);

#endif
