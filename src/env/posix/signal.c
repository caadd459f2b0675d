/* Signals, in two roles: signals that a host wants to receive, and signals that a host granted for interrupting our own
 * threads.
 *
 * There is a slot per signal number, which records how the signal is used. Handlers only read slots; open and close
 * change them under one lock. A received signal becomes a byte in a pipe, or in the pipe of each receiver that
 * shares it. Closing waits until no handler is between reading the slot and writing, because a late handler could
 * write into a descriptor that has got the pipe's number meanwhile.
 *
 * A process that the host forked inherits handlers and pipes, but does not belong to us: there a received signal is
 * given to the action that was in place before, so that such a child can be ended like any other. */
#include "env/posix/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define SIGNAL_MAX 64 /* the kernel's highest number; fits a byte */
#define EARS_MAX 64   /* receivers that share a signal: each has two descriptors, and a handler looks at all of them */

typedef enum hf_signal_role {
    HF_SIGNAL_FREE,
    HF_SIGNAL_RECEIVED, /* by one */
    HF_SIGNAL_SHARED,   /* by several receivers */
    HF_SIGNAL_INTERRUPT
} hf_signal_role;

/* One pipe. */
typedef struct hf_signal_ear {
    atomic_int write_end; /* its descriptor plus one; 0 = free */
    int read_fd;          /* identifies the receiver; under the lock */
} hf_signal_ear;

typedef struct hf_signal_slot {
    hf_signal_role role;             /* how it is used; under the lock */
    int use_count;                   /* interrupt: how many opened it; under the lock */
    struct sigaction before;         /* the action to restore; written before the handler is installed */
    hf_signal_ear ears[EARS_MAX];    /* received: the pipes to write to */
    atomic_int running_count;        /* received: handlers at work */
    atomic_int owner_pid;            /* received: the process that opened it */
    void (*_Atomic on_signal)(void); /* interrupt: the function to call */
} hf_signal_slot;

static hf_signal_slot slots[SIGNAL_MAX + 1];
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;

static void tell(hf_signal_ear *ear, int number)
{
    int end = atomic_load(&ear->write_end);
    unsigned char byte = (unsigned char)number;
    /* A full pipe holds thousands of signals already: one more of the same makes no difference. */
    ssize_t put = end > 0 ? write(end - 1, &byte, 1) : 0;
    (void)put;
}

static void on_received(int number)
{
    int error = errno;
    hf_signal_slot *slot = &slots[number];
    atomic_fetch_add(&slot->running_count, 1);
    if (atomic_load(&slot->owner_pid) != (int)getpid()) {
        (void)sigaction(number, &slot->before, NULL);
        (void)raise(number); /* delivered when this handler returns */
    } else {
        for (int i = 0; i < EARS_MAX; i++) {
            tell(&slot->ears[i], number);
        }
    }
    atomic_fetch_sub(&slot->running_count, 1);
    errno = error;
}

static void on_interrupt(int number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    int error = errno;
    void (*on_signal)(void) = atomic_load(&slots[number].on_signal);
    if (on_signal != NULL) {
        on_signal();
    }
    errno = error;
}

static bool is_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP ||
           number == SIGABRT || number == SIGSYS;
}

static hf_status check_number(hf_op *op, int number)
{
    if (number < 1 || number > SIGNAL_MAX || number == SIGKILL || number == SIGSTOP || is_fault(number)) {
        return hf_fail(op, HF_ERR_INVALID, "signal %d cannot be caught: it is unknown, SIGKILL, SIGSTOP or a fault",
                       number);
    }
    return HF_OK;
}

/* Puts the old action back, unless somebody else has replaced ours meanwhile. */
static void put_back(int number)
{
    hf_assert(slots[number].role != HF_SIGNAL_FREE); /* env-E6 */
    struct sigaction now;
    if (sigaction(number, NULL, &now) != 0) {
        return;
    }
    bool is_ours = (now.sa_flags & SA_SIGINFO) != 0 ? now.sa_sigaction == on_interrupt : now.sa_handler == on_received;
    if (is_ours) {
        (void)sigaction(number, &slots[number].before, NULL);
    }
}

/* Under the lock. The ear with this reader, or for -1 a free one; NULL = there is none. */
static hf_signal_ear *ear_of(hf_signal_slot *slot, int read_fd)
{
    for (int i = 0; i < EARS_MAX; i++) {
        hf_signal_ear *ear = &slot->ears[i];
        bool is_free = atomic_load(&ear->write_end) == 0;
        if (read_fd < 0 ? is_free : !is_free && ear->read_fd == read_fd) {
            return ear;
        }
    }
    return NULL;
}

/* Under the lock. The signal is not received yet: the handler is installed. */
static hf_status receive_first(hf_op *op, int number)
{
    hf_signal_slot *slot = &slots[number];
    hf_assert(slot->role == HF_SIGNAL_FREE);
    if (sigaction(number, NULL, &slot->before) != 0) {
        return hf_fail_errno(op, errno, "cannot read the action of signal %d", number);
    }
    atomic_store(&slot->owner_pid, (int)getpid());
    struct sigaction action = {.sa_handler = on_received, .sa_flags = SA_RESTART | SA_ONSTACK};
    (void)sigfillset(&action.sa_mask);
    if (sigaction(number, &action, NULL) != 0) {
        return hf_fail_errno(op, errno, "cannot catch signal %d", number);
    }
    return HF_OK;
}

/* Under the lock. */
static hf_status receive(hf_op *op, int number, hf_signal_role role, const int ends[2])
{
    HF_TRY(check_number(op, number));
    hf_signal_slot *slot = &slots[number];
    bool is_joined = role == HF_SIGNAL_SHARED && slot->role == role && atomic_load(&slot->owner_pid) == (int)getpid();
    if (slot->role != HF_SIGNAL_FREE && !is_joined) {
        return hf_fail(op, HF_ERR_EXISTS, "signal %d is open already in this process", number);
    }
    hf_signal_ear *ear = ear_of(slot, -1);
    if (ear == NULL) {
        return hf_fail(op, HF_ERR_LIMIT, "signal %d is shared by %d receivers in this process: there cannot be more",
                       number, EARS_MAX);
    }
    hf_assert(slot->role != HF_SIGNAL_RECEIVED && ends[0] >= 0 && ends[1] >= 0); /* one receiver, or all share it */
    ear->read_fd = ends[0];
    atomic_store(&ear->write_end, ends[1] + 1);
    hf_status status = is_joined ? HF_OK : receive_first(op, number);
    if (status != HF_OK) {
        atomic_store(&ear->write_end, 0);
        return status;
    }
    slot->role = role;
    return HF_OK;
}

/* Under the lock. Returns the write end of the receiver's pipe, -1 = this receiver does not have the signal. */
static int receive_no_more(int number, int read_fd)
{
    hf_signal_slot *slot = &slots[number];
    hf_signal_ear *ear = ear_of(slot, read_fd);
    if (ear == NULL) {
        return -1;
    }
    hf_assert(slot->role == HF_SIGNAL_RECEIVED || slot->role == HF_SIGNAL_SHARED);
    int others = 0;
    for (int i = 0; i < EARS_MAX; i++) {
        others += &slot->ears[i] != ear && atomic_load(&slot->ears[i].write_end) != 0 ? 1 : 0;
    }
    if (others == 0) {
        put_back(number);
    }
    int end = atomic_exchange(&ear->write_end, 0);
    while (atomic_load(&slot->running_count) != 0) {
        (void)sched_yield();
    }
    hf_assert(end > 0 && (others == 0 || slot->role == HF_SIGNAL_SHARED));
    slot->role = others == 0 ? HF_SIGNAL_FREE : slot->role;
    return end - 1;
}

static hf_status signals_open(hf_env *env, hf_op *op, const int *numbers, size_t count, hf_signal_role role,
                              int *ret_fd)
{
    if (count == 0) {
        return hf_fail(op, HF_ERR_INVALID, "no signals were named");
    }
    int ends[2] = {-1, -1};
    HF_TRY(hf_posix_pipe(env, op, &ends[0], &ends[1]));
    (void)pthread_mutex_lock(&slots_lock);
    hf_status status = HF_OK;
    size_t open_count = 0;
    while (status == HF_OK && open_count < count) {
        status = receive(op, numbers[open_count], role, ends);
        open_count += status == HF_OK ? 1 : 0;
    }
    if (status != HF_OK) {
        for (size_t i = 0; i < open_count; i++) {
            (void)receive_no_more(numbers[i], ends[0]);
        }
    }
    (void)pthread_mutex_unlock(&slots_lock);
    if (status != HF_OK) {
        hf_posix_close(env, ends[0]);
        hf_posix_close(env, ends[1]);
        return status;
    }
    *ret_fd = ends[0];
    return HF_OK;
}

hf_status hf_posix_signals_open(hf_env *env, hf_op *op, const int *numbers, size_t count, int *ret_fd)
{
    return signals_open(env, op, numbers, count, HF_SIGNAL_RECEIVED, ret_fd);
}

hf_status hf_posix_signals_share(hf_env *env, hf_op *op, int number, int *ret_fd)
{
    return signals_open(env, op, &number, 1, HF_SIGNAL_SHARED, ret_fd);
}

hf_status hf_posix_signals_read(hf_env *env, hf_op *op, int fd, int *ret_number)
{
    unsigned char byte = 0;
    size_t len = 0;
    HF_TRY(hf_posix_read(env, op, fd, &byte, 1, &len));
    if (len == 0) {
        return hf_fail(op, HF_ERR_CLOSED, "the signals are closed");
    }
    *ret_number = byte;
    return HF_OK;
}

void hf_posix_signals_close(hf_env *env, const int *numbers, size_t count, int fd)
{
    int write_fd = -1;
    (void)pthread_mutex_lock(&slots_lock);
    for (size_t i = 0; i < count; i++) {
        hf_assert(numbers[i] >= 1 && numbers[i] <= SIGNAL_MAX);
        int end = receive_no_more(numbers[i], fd);
        write_fd = end >= 0 ? end : write_fd;
    }
    (void)pthread_mutex_unlock(&slots_lock);
    hf_posix_close(env, write_fd);
    hf_posix_close(env, fd);
}

/* Under the lock. */
static hf_status interrupt_first(hf_op *op, int number, void (*on_signal)(void))
{
    hf_signal_slot *slot = &slots[number];
    if (slot->role != HF_SIGNAL_FREE || sigaction(number, NULL, &slot->before) != 0) {
        return hf_fail(op, HF_ERR_EXISTS, "signal %d is being received by the host: grant another one", number);
    }
    bool is_free = (slot->before.sa_flags & SA_SIGINFO) == 0 &&
                   (slot->before.sa_handler == SIG_DFL || slot->before.sa_handler == SIG_IGN);
    if (!is_free) {
        return hf_fail(op, HF_ERR_EXISTS, "the host has a handler for signal %d: grant another one", number);
    }
    atomic_store(&slot->on_signal, on_signal);
    /* Without SA_RESTART: a system call that blocks the thread must come back with EINTR. */
    struct sigaction action = {.sa_sigaction = on_interrupt, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    (void)sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, NULL) != 0) {
        return hf_fail_errno(op, errno, "cannot catch signal %d", number);
    }
    slot->role = HF_SIGNAL_INTERRUPT;
    slot->use_count = 1;
    return HF_OK;
}

hf_status hf_posix_interrupt_open(hf_env *env, hf_op *op, int number, void (*on_signal)(void))
{
    (void)env;
    HF_TRY(check_number(op, number));
    (void)pthread_mutex_lock(&slots_lock);
    hf_signal_slot *slot = &slots[number];
    hf_status status = HF_OK;
    if (slot->role != HF_SIGNAL_INTERRUPT) {
        status = interrupt_first(op, number, on_signal);
    } else if (atomic_load(&slot->on_signal) == on_signal) {
        slot->use_count++;
    } else {
        status = hf_fail(op, HF_ERR_EXISTS, "signal %d is already used as an interrupt with another handler", number);
    }
    (void)pthread_mutex_unlock(&slots_lock);
    return status;
}

void hf_posix_interrupt_close(hf_env *env, int number)
{
    (void)env;
    hf_assert(number >= 1 && number <= SIGNAL_MAX);
    (void)pthread_mutex_lock(&slots_lock);
    hf_signal_slot *slot = &slots[number];
    if (slot->role == HF_SIGNAL_INTERRUPT) {
        hf_assert(slot->use_count > 0);
        slot->use_count--;
        if (slot->use_count == 0) {
            put_back(number);
            atomic_store(&slot->on_signal, NULL);
            slot->role = HF_SIGNAL_FREE;
        }
    }
    (void)pthread_mutex_unlock(&slots_lock);
}

bool hf_posix_interrupt_is_open(int number)
{
    return number >= 1 && number <= SIGNAL_MAX && atomic_load(&slots[number].on_signal) != NULL;
}

void hf_posix_thread_mask(sigset_t *ret_blocked)
{
    (void)sigfillset(ret_blocked);
    for (int number = 1; number <= SIGNAL_MAX; number++) {
        if (is_fault(number) || hf_posix_interrupt_is_open(number)) {
            (void)sigdelset(ret_blocked, number);
        }
    }
}
