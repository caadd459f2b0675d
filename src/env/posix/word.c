/* Sleeping on a word, and the barrier that one thread makes all others execute.
 *
 * The barrier is membarrier(2). Where the kernel or a sandbox refuses it, the caller visits every core it may run on: a
 * thread that ran there was switched out meanwhile, and a context switch is a full barrier. That takes microseconds per
 * core instead of nanoseconds, and is as correct. */
#include "env/posix/posix.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool hf_posix_word_wait(hf_env *env, hf_word *word, uint32_t expected, hf_instant deadline)
{
    (void)env;
    struct timespec until;
    struct timespec *timeout = NULL;
    if (deadline.ns != HF_INSTANT_NEVER.ns) {
        int64_t ns = deadline.ns > 0 ? deadline.ns : 0;
        until = (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
        timeout = &until;
    }
    /* WAIT_BITSET and not WAIT: its timeout is a point in time, so an early wake-up loses nothing. */
    long result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, timeout, NULL,
                          FUTEX_BITSET_MATCH_ANY);
    if (result == 0) {
        return true;
    }
    int error = errno;
    hf_assert(error == ETIMEDOUT || error == EAGAIN || error == EINTR);
    return error != ETIMEDOUT;
}

void hf_posix_word_wake(hf_env *env, hf_word *word, int count)
{
    (void)env;
    long result = syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0);
    /* The word may be gone by now, if the thread that saw its value freed it: EFAULT is ignored. */
    (void)result;
}

#define CORES_MAX 8192 /* the kernel's largest NR_CPUS */

void hf_posix_barrier_by_visit(void)
{
    size_t len = CPU_ALLOC_SIZE(CORES_MAX);
    cpu_set_t *home = CPU_ALLOC(CORES_MAX);
    cpu_set_t *visit = CPU_ALLOC(CORES_MAX);
    hf_assert(home != NULL && visit != NULL); /* 2 KiB: without them the barrier would silently not be one */
    CPU_ZERO_S(len, home);
    int result = sched_getaffinity(0, len, home);
    hf_assert(result == 0);
    long core_count = sysconf(_SC_NPROCESSORS_CONF);
    for (size_t core = 0; core < (size_t)core_count && core < CORES_MAX; core++) {
        CPU_ZERO_S(len, visit);
        CPU_SET_S(core, len, visit);
        /* Our threads cannot run on a core to which this thread cannot move. */
        if (sched_setaffinity(0, len, visit) == 0) {
            (void)sched_yield();
        }
    }
    (void)sched_setaffinity(0, len, home);
    CPU_FREE(home);
    CPU_FREE(visit);
}

void hf_posix_barrier_all(hf_env *env)
{
    (void)env;
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) {
        return;
    }
    /* EPERM: this process has not registered yet. A forked one has to do it again, so nothing is remembered. */
    if (errno == EPERM && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) {
        return;
    }
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0) {
        return;
    }
    hf_posix_barrier_by_visit();
}
