/* Threads of the library.
 *
 * They block all signals but faults and the library's own interrupts: a host's handler must not run on a fiber's
 * small stack, and a host's sigwait must get the signals that it waits for. The record of a thread has two owners, the
 * thread itself and its starter; the last one that lets go frees it. */
#include "env/posix/posix.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_LEN_MAX 16 /* the kernel's, with the terminator */
#define CORES_MAX 8192  /* the kernel's largest NR_CPUS */

struct hf_thread {
    pthread_t handle;        /* valid until joined or forgotten */
    atomic_int owner_count;  /* 2 while it runs and is known, then 1, then freed */
    char name[NAME_LEN_MAX]; /* as the kernel shows it */
    void (*main)(void *);    /* the function that it runs, once */
    void *arg;               /* the caller's */
};

int hf_posix_core_count(hf_env *env)
{
    (void)env;
    cpu_set_t *cores = CPU_ALLOC(CORES_MAX);
    if (cores == NULL) {
        return 1;
    }
    size_t len = CPU_ALLOC_SIZE(CORES_MAX);
    CPU_ZERO_S(len, cores);
    int count = sched_getaffinity(0, len, cores) == 0 ? CPU_COUNT_S(len, cores) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    CPU_FREE(cores);
    return count > 0 ? count : 1;
}

int hf_posix_thread_core(hf_env *env)
{
    (void)env;
    return sched_getcpu();
}

static void let_go(hf_thread *thread)
{
    int before = atomic_fetch_sub_explicit(&thread->owner_count, 1, memory_order_acq_rel);
    hf_assert(before == 1 || before == 2); /* the thread itself, and the one that joins or forgets it */
    if (before == 1) {
        free(thread);
    }
}

static void *thread_main(void *arg)
{
    hf_thread *thread = arg;
    (void)pthread_setname_np(pthread_self(), thread->name);
    hf_posix_overflow_thread(NULL);
    thread->main(thread->arg);
    let_go(thread);
    return NULL;
}

/* The smallest stack that holds `len` and that pthread_create takes. 0 = the system's default. */
static int set_stack_len(pthread_attr_t *attr, size_t len)
{
    if (len == 0) {
        return 0;
    }
    size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
    size_t min = (size_t)PTHREAD_STACK_MIN;
    len = len < min ? min : len;
    return pthread_attr_setstacksize(attr, (len + page_len - 1) & ~(page_len - 1));
}

hf_status hf_posix_thread_start(hf_env *env, hf_op *op, const char *name, size_t stack_len, void (*main)(void *),
                                void *arg, hf_thread **ret_thread)
{
    (void)env;
    hf_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the thread %s", name);
    }
    memcpy(thread->name, name, strnlen(name, NAME_LEN_MAX - 1));
    atomic_init(&thread->owner_count, 2);
    thread->main = main;
    thread->arg = arg;

    pthread_attr_t attr;
    int error = pthread_attr_init(&attr);
    if (error == 0) {
        error = set_stack_len(&attr, stack_len);
        /* The new thread inherits the mask, so it never runs with the host's. */
        sigset_t blocked;
        sigset_t before;
        hf_posix_thread_mask(&blocked);
        (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
        error = error != 0 ? error : pthread_create(&thread->handle, &attr, thread_main, thread);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void)pthread_attr_destroy(&attr);
    }
    if (error != 0) {
        free(thread);
        /* EAGAIN means a limit on threads or memory here, and not "try again". */
        hf_status status = error == EAGAIN ? HF_ERR_LIMIT : hf_status_of_errno(error);
        char text[128];
        return hf_fail(op, status, "cannot start the thread %s: %s", name, strerror_r(error, text, sizeof text));
    }
    *ret_thread = thread;
    return HF_OK;
}

void hf_posix_thread_join(hf_env *env, hf_thread *thread)
{
    (void)env;
    if (thread == NULL) {
        return;
    }
    int error = pthread_join(thread->handle, NULL);
    hf_assert(error == 0);
    let_go(thread);
}

void hf_posix_thread_forget(hf_env *env, hf_thread *thread)
{
    (void)env;
    if (thread == NULL) {
        return;
    }
    int error = pthread_detach(thread->handle);
    hf_assert(error == 0);
    let_go(thread);
}

hf_status hf_posix_thread_signal(hf_env *env, hf_op *op, hf_thread *thread, int number)
{
    (void)env;
    if (!hf_posix_interrupt_is_open(number)) {
        /* Its default action could end the process. */
        return hf_fail(op, HF_ERR_MISUSE, "signal %d was not opened as an interrupt", number);
    }
    int error = pthread_kill(thread->handle, number);
    if (error != 0) {
        return hf_fail_errno(op, error, "cannot signal the thread %s", thread->name);
    }
    return HF_OK;
}

uint64_t hf_posix_thread_id(hf_env *env)
{
    (void)env;
    static _Thread_local uint64_t id; /* gettid is a system call */
    if (id == 0) {
        id = (uint64_t)gettid();
    }
    return id;
}
