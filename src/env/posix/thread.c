/* Threads of the library.
 *
 * They block all signals but faults and the library's own interrupts: a host's handler must not run on a fiber's
 * small stack, and a host's sigwait must get the signals that it waits for. The record of a thread has two owners, the
 * thread itself and its starter; the last one that lets go frees it.
 *
 * A new thread inherits the cores of its starter. A thread that was bound to one core remembers which ones it had before,
 * and what it starts begins by taking those: threads here, the helper process in helper_start.c. */
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

/* ---- The end of a thread ----------------------------------------------------------------------------------------- */

static pthread_once_t end_once = PTHREAD_ONCE_INIT;
static pthread_key_t end_key; /* its value is the thread's `arg` */
static bool has_end_key;
static _Thread_local void (*end_of_thread)(void *);

static void end_thread(void *arg)
{
    end_of_thread(arg);
}

static void make_end_key(void)
{
    has_end_key = pthread_key_create(&end_key, end_thread) == 0;
}

/* The library may be unloaded before its threads end. */
__attribute__((destructor)) static void free_end_key(void)
{
    if (has_end_key) {
        (void)pthread_key_delete(end_key);
        has_end_key = false;
    }
}

void hf_env_at_thread_end(void (*end)(void *arg), void *arg)
{
    hf_assert(end != NULL && arg != NULL);
    end_of_thread = end;
    (void)pthread_once(&end_once, make_end_key);
    if (has_end_key) { /* else the process has more keys than it may: what is left is lost */
        (void)pthread_setspecific(end_key, arg);
    }
}

/* ---- Cores ------------------------------------------------------------------------------------------------------- */

/* A set of cores: a cpu_set_t has room for 1024 of them. */
typedef struct hf_cores {
    cpu_set_t sets[CORES_MAX / CPU_SETSIZE];
} hf_cores;

typedef struct hf_posix_thread { /* an hf_thread, to others */
    pthread_t handle;            /* valid until joined or forgotten */
    atomic_int owner_count;      /* 2 while it runs and is known, then 1, then freed */
    char name[NAME_LEN_MAX];     /* as the kernel shows it */
    void (*main)(void *);        /* the function that it runs, once */
    void *arg;                   /* the caller's */
    hf_cores *begins_on;  /* owned: cores that it takes first, because its starter is bound; NULL = it inherits them */
    hf_cores *bound_from; /* owned: cores that it had before thread_pin; NULL = it is not bound */
} hf_posix_thread;

static _Thread_local hf_posix_thread *self; /* NULL on threads of the host */

static hf_posix_thread *of(hf_thread *thread)
{
    return (hf_posix_thread *)(void *)thread;
}

/* False: the kernel does not say. */
static bool get_cores(hf_cores *ret_cores)
{
    if (self != NULL && self->bound_from != NULL) {
        *ret_cores = *self->bound_from;
        return true;
    }
    memset(ret_cores, 0, sizeof *ret_cores);
    return sched_getaffinity(0, sizeof *ret_cores, ret_cores->sets) == 0;
}

int hf_posix_core_count(hf_env *env)
{
    (void)env;
    hf_cores cores;
    int count = get_cores(&cores) ? CPU_COUNT_S(sizeof cores, cores.sets) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? count : 1;
}

int hf_posix_thread_core(hf_env *env)
{
    (void)env;
    return sched_getcpu();
}

/* The core with this number among those of the set, counted round. */
static size_t nth_core(const hf_cores *cores, int index)
{
    int count = CPU_COUNT_S(sizeof *cores, cores->sets);
    hf_assert(count > 0 && index >= 0);
    int left = index % count;
    size_t core = 0;
    while (!CPU_ISSET_S(core, sizeof *cores, cores->sets) || left-- > 0) {
        core++;
    }
    hf_assert(core < CORES_MAX);
    return core;
}

hf_status hf_posix_thread_pin(hf_env *env, hf_op *op, int index)
{
    (void)env;
    hf_assert(self != NULL && self->bound_from == NULL);
    hf_cores *before = calloc(1, sizeof *before);
    if (before == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a set of cores");
    }
    if (!get_cores(before)) {
        int error = errno;
        free(before);
        return hf_fail_errno(op, error, "cannot find out on which cores the thread %s may run", self->name);
    }
    hf_cores one = {0};
    size_t core = nth_core(before, index);
    CPU_SET_S(core, sizeof one, one.sets);
    if (sched_setaffinity(0, sizeof one, one.sets) != 0) {
        int error = errno;
        free(before);
        return hf_fail_errno(op, error, "cannot bind the thread %s to core %zu", self->name, core);
    }
    self->bound_from = before;
    return HF_OK;
}

void hf_posix_thread_unpin(hf_env *env, hf_thread *base)
{
    (void)env;
    const hf_posix_thread *thread = of(base);
    if (thread->bound_from != NULL) {
        (void)pthread_setaffinity_np(thread->handle, sizeof *thread->bound_from, thread->bound_from->sets);
    }
}

const void *hf_posix_thread_cores(size_t *ret_len)
{
    if (self == NULL || self->bound_from == NULL) {
        return NULL;
    }
    *ret_len = sizeof *self->bound_from;
    return self->bound_from->sets;
}

static void free_thread(hf_posix_thread *thread)
{
    free(thread->begins_on);
    free(thread->bound_from);
    free(thread);
}

static void let_go(hf_posix_thread *thread)
{
    int before = atomic_fetch_sub_explicit(&thread->owner_count, 1, memory_order_acq_rel);
    hf_assert(before == 1 || before == 2); /* the thread itself, and the one that joins or forgets it */
    if (before == 1) {
        free_thread(thread);
    }
}

static void *thread_main(void *arg)
{
    hf_posix_thread *thread = arg;
    self = thread;
    (void)pthread_setname_np(pthread_self(), thread->name);
    if (thread->begins_on != NULL) {
        (void)sched_setaffinity(0, sizeof *thread->begins_on, thread->begins_on->sets);
    }
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
    bool is_bound = self != NULL && self->bound_from != NULL;
    hf_posix_thread *thread = calloc(1, sizeof *thread);
    if (thread != NULL && is_bound) {
        thread->begins_on = malloc(sizeof *thread->begins_on);
    }
    if (thread == NULL || (is_bound && thread->begins_on == NULL)) {
        free(thread);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the thread %s", name);
    }
    if (is_bound) {
        *thread->begins_on = *self->bound_from;
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
        free_thread(thread);
        /* EAGAIN means a limit on threads or memory here, and not "try again". */
        hf_status status = error == EAGAIN ? HF_ERR_LIMIT : hf_status_of_errno(error);
        char text[128];
        return hf_fail(op, status, "cannot start the thread %s: %s", name, strerror_r(error, text, sizeof text));
    }
    *ret_thread = (hf_thread *)(void *)thread;
    return HF_OK;
}

void hf_posix_thread_join(hf_env *env, hf_thread *base)
{
    (void)env;
    hf_posix_thread *thread = of(base);
    if (thread == NULL) {
        return;
    }
    int error = pthread_join(thread->handle, NULL);
    hf_assert(error == 0);
    let_go(thread);
}

void hf_posix_thread_forget(hf_env *env, hf_thread *base)
{
    (void)env;
    hf_posix_thread *thread = of(base);
    if (thread == NULL) {
        return;
    }
    int error = pthread_detach(thread->handle);
    hf_assert(error == 0);
    let_go(thread);
}

hf_status hf_posix_thread_signal(hf_env *env, hf_op *op, hf_thread *base, int number)
{
    (void)env;
    const hf_posix_thread *thread = of(base);
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
    static _Thread_local uint64_t id; /* kept, because gettid is a system call */
    if (id == 0) {
        id = (uint64_t)gettid();
    }
    return id;
}
