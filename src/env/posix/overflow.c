/* Telling an overflowed stack from any other crash.
 *
 * One handler per process for SIGSEGV and SIGBUS asks each runtime whether a fault's address is one of its guards.
 * In any case the process then crashes as it would have without us, at the same instruction: the old action is put
 * back and the instruction runs again. The handler needs a stack that did not overflow, so threads get an
 * alternate one; it is freed when the thread ends. Where a thread has one already (a host's, a sanitizer's), that one
 * is used. */
#include "env/posix/posix.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define RUNTIMES_MAX 64                /* runtimes of a process that report overflows */
#define ALT_STACK_LEN_MIN (64u * 1024) /* room for walking and printing a stack; used only when touched */

typedef struct hf_overflow_entry {
    bool (*_Atomic on_fault)(void *state, void *address); /* NULL = the entry is free */
    void *_Atomic state;
} hf_overflow_entry;

static hf_overflow_entry entries[RUNTIMES_MAX];
static struct sigaction before_segv; /* written before the handler is in place */
static struct sigaction before_bus;
static int entry_count; /* entries in use; under the lock */
static atomic_int
    report_count; /* handlers that are asking runtimes; an entry that they may have found is not freed meanwhile */
static _Thread_local int own_reports __attribute__((
    tls_model("initial-exec"))); /* of those, on this thread: a fatal hook may end everything from there */
static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t alt_stack_once = PTHREAD_ONCE_INIT;
static pthread_key_t alt_stack_key; /* its value is the thread's alternate stack, if it is ours */
static bool has_alt_stack_key;

#if HF_ASAN || HF_TSAN
/* A sanitizer's own handler is there before any code of the host runs. It does not count as the host's. */
static struct sigaction at_load;

__attribute__((constructor)) static void remember_sanitizer(void)
{
    (void)sigaction(SIGSEGV, NULL, &at_load);
}

static bool is_sanitizers(const struct sigaction *action)
{
    return action->sa_sigaction == at_load.sa_sigaction;
}
#else
static bool is_sanitizers(const struct sigaction *action)
{
    (void)action;
    return false;
}
#endif

static void on_fault_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    int error = errno;
    if (info->si_code > 0) { /* a real fault: one that was sent by kill(2) has no address */
        own_reports++;
        atomic_fetch_add(&report_count, 1);
        for (size_t i = 0; i < RUNTIMES_MAX; i++) {
            void *state = atomic_load(&entries[i].state);
            bool (*on_fault)(void *, void *) = atomic_load(&entries[i].on_fault);
            if (on_fault != NULL && on_fault(state, info->si_addr)) {
                break;
            }
        }
        atomic_fetch_sub(&report_count, 1);
        own_reports--;
    }
    (void)sigaction(number, number == SIGSEGV ? &before_segv : &before_bus, NULL);
    if (info->si_code <= 0) {
        (void)raise(number); /* a sent one does not come again by itself; delivered when this handler returns */
    }
    errno = error;
}

static bool is_free(const struct sigaction *action)
{
    return is_sanitizers(action) || ((action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_DFL);
}

/* Under the lock. */
static hf_status install(hf_op *op)
{
    if (sigaction(SIGSEGV, NULL, &before_segv) != 0 || sigaction(SIGBUS, NULL, &before_bus) != 0) {
        return hf_fail_errno(op, errno, "cannot read the action of SIGSEGV");
    }
    if (!is_free(&before_segv)) {
        return hf_fail(op, HF_ERR_EXISTS, "the host has a SIGSEGV handler: stack overflows are left to it");
    }
    struct sigaction action = {.sa_sigaction = on_fault_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    (void)sigemptyset(&action.sa_mask);
    if (sigaction(SIGSEGV, &action, NULL) != 0) {
        return hf_fail_errno(op, errno, "cannot catch SIGSEGV");
    }
    if (is_free(&before_bus)) {
        (void)sigaction(SIGBUS, &action, NULL);
    }
    return HF_OK;
}

static void put_back(int number, const struct sigaction *before)
{
    struct sigaction now;
    if (sigaction(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault_signal) {
        (void)sigaction(number, before, NULL);
    }
}

hf_status hf_posix_overflow_open(hf_env *env, hf_op *op, bool (*on_fault)(void *state, void *address), void *state)
{
    (void)env;
    (void)pthread_mutex_lock(&entries_lock);
    hf_status status = entry_count == 0 ? install(op) : HF_OK;
    if (status == HF_OK && entry_count == RUNTIMES_MAX) {
        status = hf_fail(op, HF_ERR_LIMIT, "%d runtimes report stack overflows already", RUNTIMES_MAX);
    }
    if (status == HF_OK) {
        size_t idx = 0;
        while (atomic_load(&entries[idx].on_fault) != NULL) {
            idx++;
        }
        hf_assert(idx < RUNTIMES_MAX); /* the count says that one is free */
        atomic_store(&entries[idx].state, state);
        atomic_store(&entries[idx].on_fault, on_fault);
        entry_count++;
    }
    (void)pthread_mutex_unlock(&entries_lock);
    return status;
}

void hf_posix_overflow_close(hf_env *env, void *state)
{
    (void)env;
    (void)pthread_mutex_lock(&entries_lock);
    for (size_t i = 0; i < RUNTIMES_MAX; i++) {
        if (atomic_load(&entries[i].on_fault) != NULL && atomic_load(&entries[i].state) == state) {
            atomic_store(&entries[i].on_fault, NULL);
            hf_assert(entry_count > 0);
            entry_count--;
            if (entry_count == 0) {
                put_back(SIGSEGV, &before_segv);
                put_back(SIGBUS, &before_bus);
            }
            break;
        }
    }
    (void)pthread_mutex_unlock(&entries_lock);
    while (atomic_load(&report_count) > own_reports) {
        (void)sched_yield();
    }
}

static size_t alt_stack_len(void)
{
    long asked = sysconf(_SC_SIGSTKSZ); /* grows with the registers a processor has to save */
    size_t len = asked > 0 && (size_t)asked > ALT_STACK_LEN_MIN ? (size_t)asked : ALT_STACK_LEN_MIN;
    size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
    return (len + page_len - 1) & ~(page_len - 1);
}

static void free_alt_stack(void *stack)
{
    stack_t now;
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == stack) {
        (void)sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    }
    (void)munmap(stack, alt_stack_len());
}

static void make_alt_stack_key(void)
{
    has_alt_stack_key = pthread_key_create(&alt_stack_key, free_alt_stack) == 0;
}

void hf_posix_overflow_thread(hf_env *env)
{
    (void)env;
    stack_t now;
    if (sigaltstack(NULL, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) {
        return;
    }
    (void)pthread_once(&alt_stack_once, make_alt_stack_key);
    if (!has_alt_stack_key) {
        return; /* without an alternate stack an overflow still crashes, only without a report */
    }
    size_t len = alt_stack_len();
    void *stack = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) {
        return;
    }
    if (pthread_setspecific(alt_stack_key, stack) != 0 ||
        sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = len}, NULL) != 0) {
        (void)pthread_setspecific(alt_stack_key, NULL);
        (void)munmap(stack, len);
    }
}
