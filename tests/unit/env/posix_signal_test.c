/* Signals that the host receives, and overflows that are told from other crashes. */
/* labels: threads */
#include "unit/env/posix_check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void on_host(int number)
{
    (void)number;
}

static bool is_handler(int number, void (*handler)(int))
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == handler;
}

static void signals_queue_up_in_a_descriptor(void **state)
{
    (void)state;
    static const int NUMBERS[] = {SIGUSR1, SIGUSR2};
    int fd = -1;
    int number = 0;
    assert_true(signal(SIGUSR2, on_host) != SIG_ERR);
    ASSERT_STATUS(HF_OK, ops()->signals_open(posix(), &op, NUMBERS, 2, &fd));
    ASSERT_STATUS(HF_ERR_AGAIN, ops()->signals_read(posix(), &op, fd, &number));
    assert_int_equal(raise(SIGUSR2), 0);
    assert_int_equal(raise(SIGUSR1), 0);
    wait_for(fd, HF_READABLE);
    ASSERT_STATUS(HF_OK, ops()->signals_read(posix(), &op, fd, &number));
    assert_int_equal(number, SIGUSR2);
    ASSERT_STATUS(HF_OK, ops()->signals_read(posix(), &op, fd, &number));
    assert_int_equal(number, SIGUSR1);
    ASSERT_STATUS(HF_ERR_AGAIN, ops()->signals_read(posix(), &op, fd, &number));
    for (int i = 0; i < 70000; i++) { /* more than a pipe holds: the rest is dropped, nobody waits */
        (void)raise(SIGUSR1);
    }
    ASSERT_STATUS(HF_OK, ops()->signals_read(posix(), &op, fd, &number));
    ops()->signals_close(posix(), NUMBERS, 2, fd);
    assert_true(is_handler(SIGUSR1, SIG_DFL));
    assert_true(is_handler(SIGUSR2, on_host)); /* as it was */
    assert_true(signal(SIGUSR2, SIG_DFL) == on_host);
}

static void a_signal_is_open_once(void **state)
{
    (void)state;
    static const int FIRST[] = {SIGUSR1};
    static const int SECOND[] = {SIGHUP, SIGUSR1};
    static const int TWICE[] = {SIGHUP, SIGHUP};
    static const int BAD[] = {SIGHUP, SIGKILL};
    int fd = -1;
    int other = -1;
    ASSERT_STATUS(HF_OK, ops()->signals_open(posix(), &op, FIRST, 1, &fd));
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->signals_open(posix(), &op, SECOND, 2, &other));
    assert_true(is_handler(SIGHUP, SIG_DFL)); /* taken back */
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->signals_open(posix(), &op, TWICE, 2, &other));
    ASSERT_STATUS(HF_ERR_INVALID, ops()->signals_open(posix(), &op, BAD, 2, &other));
    ASSERT_STATUS(HF_ERR_INVALID, ops()->signals_open(posix(), &op, BAD, 0, &other));
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->interrupt_open(posix(), &op, SIGUSR1, abort));
    ops()->signals_close(posix(), FIRST, 1, fd);
    ASSERT_STATUS(HF_OK, ops()->signals_open(posix(), &op, SECOND, 2, &fd));
    ops()->signals_close(posix(), SECOND, 2, fd);
    ASSERT_STATUS(HF_OK, ops()->interrupt_open(posix(), &op, SIGUSR1, abort));
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->signals_open(posix(), &op, FIRST, 1, &fd));
    ops()->interrupt_close(posix(), SIGUSR1);
    assert_true(is_handler(SIGUSR1, SIG_DFL));
}

static void a_signal_that_is_shared_reaches_everybody(void **state)
{
    enum { MANY = 64 };
    (void)state;
    static const int NUMBERS[] = {SIGUSR1};
    int fds[MANY];
    int other = -1;
    int number = 0;
    for (int i = 0; i < MANY; i++) {
        ASSERT_STATUS(HF_OK, ops()->signals_share(posix(), &op, SIGUSR1, &fds[i]));
    }
    ASSERT_STATUS(HF_ERR_LIMIT, ops()->signals_share(posix(), &op, SIGUSR1, &other));
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->signals_open(posix(), &op, NUMBERS, 1, &other));
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->interrupt_open(posix(), &op, SIGUSR1, abort));
    ops()->signals_close(posix(), NUMBERS, 1, fds[0]);
    assert_int_equal(raise(SIGUSR1), 0);
    ASSERT_STATUS(HF_OK, ops()->signals_share(posix(), &op, SIGUSR1, &fds[0]));
    ASSERT_STATUS(HF_ERR_AGAIN, ops()->signals_read(posix(), &op, fds[0], &number)); /* it came later */
    for (int i = 1; i < MANY; i++) {
        ASSERT_STATUS(HF_OK, ops()->signals_read(posix(), &op, fds[i], &number));
        ASSERT_STATUS(HF_ERR_AGAIN, ops()->signals_read(posix(), &op, fds[i], &number));
        ops()->signals_close(posix(), NUMBERS, 1, fds[i]);
    }
    assert_false(is_handler(SIGUSR1, SIG_DFL)); /* the last one still has it */
    ops()->signals_close(posix(), NUMBERS, 1, fds[0]);
    assert_true(is_handler(SIGUSR1, SIG_DFL));
    ASSERT_STATUS(HF_OK, ops()->signals_open(posix(), &op, NUMBERS, 1, &fds[0]));
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->signals_share(posix(), &op, SIGUSR1, &other));
    ops()->signals_close(posix(), NUMBERS, 1, fds[0]);
}

static void a_forked_process_gets_its_signals_as_if_we_were_not_there(void **state)
{
    (void)state;
    static const int NUMBERS[] = {SIGTERM};
    int fd = -1;
    int number = 0;
    ASSERT_STATUS(HF_OK, ops()->signals_open(posix(), &op, NUMBERS, 1, &fd));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)raise(SIGTERM);
        _exit(3);
    }
    int status = reap(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    ASSERT_STATUS(HF_ERR_AGAIN, ops()->signals_read(posix(), &op, fd, &number));
    ops()->signals_close(posix(), NUMBERS, 1, fd);
}

/* ---- Overflow ---- */

/* cmocka has a handler of its own while a test runs. These tests need things as they are without it. */
static struct sigaction without_cmocka;

static void take_cmockas_handler_away(void)
{
    assert_int_equal(sigaction(SIGSEGV, &without_cmocka, NULL), 0);
}

typedef struct guarded {
    char *pages; /* the guard */
    size_t len;
    int report_fd; /* where a report goes */
    char letter;   /* what is reported */
} guarded;

static bool on_fault(void *state, void *address)
{
    guarded *it = state;
    bool is_ours = (uintptr_t)address - (uintptr_t)it->pages < it->len;
    if (is_ours) {
        ssize_t put = write(it->report_fd, &it->letter, 1);
        (void)put;
    }
    return is_ours;
}

static char *volatile wild; /* an address that the compiler knows nothing about */

static void touch_guard(guarded *it)
{
    wild = it->pages;
    *wild = 1;
}

static void touch_elsewhere(guarded *it)
{
    (void)it;
    wild = (char *)sysconf(_SC_PAGESIZE);
    *wild = 1;
}

static void send_it(guarded *it)
{
    (void)it;
    (void)kill(getpid(), SIGSEGV);
    for (;;) {
        (void)pause();
    }
}

static void touch_on_thread_main(void *arg)
{
    stack_t stack;
    if (sigaltstack(NULL, &stack) != 0 || (stack.ss_flags & SS_DISABLE) != 0) {
        _exit(0); /* counts as not crashed */
    }
    touch_guard(arg);
}

static void touch_on_thread(guarded *it)
{
    hf_thread *thread = NULL;
    if (ops()->thread_start(posix(), NULL, "faulty", 0, touch_on_thread_main, it, &thread) == HF_OK) {
        ops()->thread_join(posix(), thread);
    }
}

/* Crashes a process of its own. Returns what was reported before, 0 = nothing. */
static char crash(void (*how)(guarded *))
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        size_t len = (size_t)sysconf(_SC_PAGESIZE);
        guarded other = {.pages = NULL, .len = 0, .report_fd = fds[1], .letter = 'o'};
        guarded mine = {.pages = ops()->pages_reserve(posix(), len), .len = len, .report_fd = fds[1], .letter = 'm'};
        (void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO); /* a sanitizer would describe the crash */
        ops()->overflow_thread(posix());
        if (ops()->pages_guard(posix(), mine.pages, len, HF_GUARD_BEST) == HF_GUARD_NONE ||
            ops()->overflow_open(posix(), NULL, on_fault, &other) != HF_OK ||
            ops()->overflow_open(posix(), NULL, on_fault, &mine) != HF_OK) {
            _exit(0);
        }
        how(&mine);
        _exit(0);
    }
    (void)close(fds[1]);
    int status = reap(pid);
    /* A sanitizer's handler exits with a code of its own, after having been given the fault. */
    assert_true(HF_ASAN || HF_TSAN ? !(WIFEXITED(status) && WEXITSTATUS(status) == 0)
                                   : WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    char letters[4] = {0};
    assert_true(read(fds[0], letters, sizeof letters) <= 1); /* at most one report */
    (void)close(fds[0]);
    return letters[0];
}

static void a_fault_on_a_guard_is_reported_and_then_crashes_as_before(void **state)
{
    (void)state;
    take_cmockas_handler_away();
    assert_int_equal(crash(touch_guard), 'm');
    assert_int_equal(crash(touch_on_thread), 'm');
    assert_int_equal(crash(touch_elsewhere), 0);
    assert_int_equal(crash(send_it), 0);
}

static atomic_int is_reporting;
static atomic_int is_closing;
static atomic_int has_closed;

/* Takes its time. The answer is how its process ends. */
static bool report_slowly(void *state, void *address)
{
    (void)state;
    (void)address;
    atomic_store(&is_reporting, 1);
    while (atomic_load(&is_closing) == 0) {
        (void)sched_yield();
    }
    for (int i = 0; i < 20000 && atomic_load(&has_closed) == 0; i++) {
        (void)sched_yield();
    }
    _exit(atomic_load(&has_closed) == 0 ? 10 : 11);
}

static void whoever_is_asked_of_a_fault_stays_until_it_has_answered(void **state)
{
    (void)state;
    take_cmockas_handler_away();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        size_t len = (size_t)sysconf(_SC_PAGESIZE);
        guarded it = {.pages = ops()->pages_reserve(posix(), len), .len = len};
        hf_thread *thread = NULL;
        (void)ops()->pages_guard(posix(), it.pages, len, HF_GUARD_BEST);
        if (ops()->overflow_open(posix(), NULL, report_slowly, &it) != HF_OK ||
            ops()->thread_start(posix(), NULL, "faulty", 0, touch_on_thread_main, &it, &thread) != HF_OK) {
            _exit(12);
        }
        while (atomic_load(&is_reporting) == 0) {
            (void)sched_yield();
        }
        atomic_store(&is_closing, 1);
        ops()->overflow_close(posix(), &it);
        atomic_store(&has_closed, 1);
        ops()->thread_join(posix(), thread);
        _exit(13);
    }
    int status = reap(pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 10);
}

/* env-E6 */
static void a_hosts_own_handler_is_left_alone(void **state)
{
    (void)state;
    take_cmockas_handler_away();
    guarded it = {0};
    struct sigaction before;
    struct sigaction mine = {.sa_handler = on_host};
    assert_int_equal(sigaction(SIGSEGV, &mine, &before), 0);
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->overflow_open(posix(), &op, on_fault, &it));
    assert_true(is_handler(SIGSEGV, on_host));
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);

    static guarded many[65];
    for (size_t i = 0; i < 64; i++) {
        ASSERT_STATUS(HF_OK, ops()->overflow_open(posix(), &op, on_fault, &many[i]));
    }
    ASSERT_STATUS(HF_ERR_LIMIT, ops()->overflow_open(posix(), &op, on_fault, &many[64]));
    ops()->overflow_close(posix(), &many[64]); /* was never there */
    for (size_t i = 0; i < 64; i++) {
        ops()->overflow_close(posix(), &many[i]);
    }
    struct sigaction after;
    assert_int_equal(sigaction(SIGSEGV, NULL, &after), 0);
    assert_true(after.sa_handler == before.sa_handler);
}

static void alt_stack_main(void *arg)
{
    (void)arg;
}

static void alternate_stacks_go_with_their_threads(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) { /* a leak of 64 KiB each would show in the sanitizers' memory, a bad free crashes */
        hf_thread *thread = NULL;
        ASSERT_STATUS(HF_OK, ops()->thread_start(posix(), &op, "alt", 0, alt_stack_main, NULL, &thread));
        ops()->thread_join(posix(), thread);
    }
    ops()->overflow_thread(posix());
    ops()->overflow_thread(posix()); /* has one already */
    stack_t stack;
    assert_int_equal(sigaltstack(NULL, &stack), 0);
    assert_true((stack.ss_flags & SS_DISABLE) == 0 && stack.ss_size >= (size_t)MINSIGSTKSZ);
}

int main(void)
{
    (void)sigaction(SIGSEGV, NULL, &without_cmocka);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_queue_up_in_a_descriptor),
        cmocka_unit_test(a_signal_is_open_once),
        cmocka_unit_test(a_signal_that_is_shared_reaches_everybody),
        cmocka_unit_test(a_forked_process_gets_its_signals_as_if_we_were_not_there),
        cmocka_unit_test(a_fault_on_a_guard_is_reported_and_then_crashes_as_before),
        cmocka_unit_test(whoever_is_asked_of_a_fault_stays_until_it_has_answered),
        cmocka_unit_test(a_hosts_own_handler_is_left_alone),
        cmocka_unit_test(alternate_stacks_go_with_their_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
