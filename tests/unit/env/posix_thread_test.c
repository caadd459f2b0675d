/* Threads, words to sleep on, the barrier, interrupts. */
/* labels: threads */
#include "unit/env/posix_check.h"

#include "env/posix/posix.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

typedef struct relay {
    hf_word turn;       /* whose turn it is */
    int count;          /* passes so far; owned by whose turn it is */
    char name[16];      /* of the other thread */
    uint64_t thread_id; /* of the other thread */
    sigset_t mask;      /* of the other thread */
} relay;

#define PASSES 2000

static void pass(relay *it, uint32_t mine)
{
    for (int i = 0; i < PASSES; i++) {
        while (atomic_load(&it->turn) != mine) {
            (void)ops()->word_wait(posix(), &it->turn, 1 - mine, HF_INSTANT_NEVER);
        }
        it->count++;
        atomic_store(&it->turn, 1 - mine);
        ops()->word_wake(posix(), &it->turn, 1);
    }
}

static void relay_main(void *arg)
{
    relay *it = arg;
    (void)pthread_getname_np(pthread_self(), it->name, sizeof it->name);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &it->mask);
    it->thread_id = ops()->thread_id(posix());
    pass(it, 1);
}

static void threads_start_with_a_name_and_pass_a_word_on(void **state)
{
    (void)state;
    relay it = {0};
    hf_thread *thread = NULL;
    ASSERT_STATUS(HF_OK, ops()->thread_start(posix(), &op, "a-rather-long-name", 64 * 1024, relay_main, &it, &thread));
    pass(&it, 0);
    ops()->thread_join(posix(), thread);
    assert_int_equal(it.count, 2 * PASSES);
    assert_string_equal(it.name, "a-rather-long-n");
    assert_true(it.thread_id != 0 && it.thread_id != ops()->thread_id(posix()));
    assert_int_equal(ops()->thread_id(posix()), ops()->thread_id(posix()));
    assert_int_equal(sigismember(&it.mask, SIGTERM), 1); /* the host's signals stay the host's */
    assert_int_equal(sigismember(&it.mask, SIGSEGV), 0);
    assert_true(ops()->core_count(posix()) >= 1);
}

static void a_thread_knows_its_core(void **state)
{
    (void)state;
    int core = ops()->thread_core(posix());
    cpu_set_t mask;
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    assert_in_range(core, 0, CPU_SETSIZE - 1);
    assert_true(CPU_ISSET((size_t)core, &mask));
}

typedef struct bound {
    hf_status status;     /* of thread_pin */
    int core_count;       /* as the bound thread counts them */
    cpu_set_t own;        /* cores of the bound thread */
    cpu_set_t of_started; /* cores of a thread that it started */
    hf_word is_bound;
    hf_word is_unbound; /* set by the test */
    cpu_set_t after;    /* cores of the bound thread at its end */
} bound;

static void get_cores(cpu_set_t *ret_cores)
{
    CPU_ZERO(ret_cores);
    (void)sched_getaffinity(0, sizeof *ret_cores, ret_cores);
}

static void started_main(void *arg)
{
    get_cores(arg);
}

static void bound_main(void *arg)
{
    bound *it = arg;
    hf_thread *started = NULL;
    it->status = ops()->thread_pin(posix(), NULL, 5);
    get_cores(&it->own);
    it->core_count = ops()->core_count(posix());
    if (ops()->thread_start(posix(), NULL, "started", 0, started_main, &it->of_started, &started) == HF_OK) {
        ops()->thread_join(posix(), started);
    }
    atomic_store(&it->is_bound, 1);
    ops()->word_wake(posix(), &it->is_bound, 1);
    while (atomic_load(&it->is_unbound) == 0) {
        (void)ops()->word_wait(posix(), &it->is_unbound, 0, HF_INSTANT_NEVER);
    }
    get_cores(&it->after);
}

static void a_bound_thread_has_one_core_and_gives_others_all(void **state)
{
    (void)state;
    cpu_set_t all;
    get_cores(&all);
    bound it = {0};
    hf_thread *thread = NULL;
    ASSERT_STATUS(HF_OK, ops()->thread_start(posix(), &op, "bound", 0, bound_main, &it, &thread));
    while (atomic_load(&it.is_bound) == 0) {
        (void)ops()->word_wait(posix(), &it.is_bound, 0, HF_INSTANT_NEVER);
    }
    ops()->thread_unpin(posix(), thread);
    atomic_store(&it.is_unbound, 1);
    ops()->word_wake(posix(), &it.is_unbound, 1);
    ops()->thread_join(posix(), thread);
    assert_int_equal(it.status, HF_OK);
    assert_int_equal(CPU_COUNT(&it.own), 1);
    int before = 0; /* how many of all come before the one that it had */
    for (size_t core = 0; !CPU_ISSET(core, &it.own); core++) {
        before += CPU_ISSET(core, &all) != 0;
    }
    assert_int_equal(before, 5 % CPU_COUNT(&all));
    assert_int_equal(it.core_count, CPU_COUNT(&all));
    assert_true(CPU_EQUAL(&it.of_started, &all));
    assert_true(CPU_EQUAL(&it.after, &all));
    get_cores(&it.own);
    assert_true(CPU_EQUAL(&it.own, &all)); /* the test's own thread */
}

static void a_thread_with_too_big_a_stack_is_a_status(void **state)
{
    (void)state;
    relay it = {0};
    hf_thread *thread = NULL;
    hf_status status = ops()->thread_start(posix(), &op, "huge", SIZE_MAX / 4, relay_main, &it, &thread);
    assert_true(status == HF_ERR_LIMIT || status == HF_ERR_NOMEM || status == HF_ERR_INVALID);
    assert_null(thread);
    ops()->thread_join(posix(), NULL);
    ops()->thread_forget(posix(), NULL);
}

static void set_word(void *arg)
{
    hf_word *word = arg;
    atomic_store(word, 1);
    ops()->word_wake(posix(), word, 1);
}

static void a_forgotten_thread_frees_itself(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        static hf_word words[50]; /* outlive the threads, which nobody waits for */
        hf_thread *thread = NULL;
        ASSERT_STATUS(HF_OK, ops()->thread_start(posix(), &op, "zombie", 0, set_word, &words[i], &thread));
        ops()->thread_forget(posix(), thread);
        while (atomic_load(&words[i]) == 0) {
            (void)ops()->word_wait(posix(), &words[i], 0, HF_INSTANT_NEVER);
        }
    }
}

static void word_wait_ends_with_the_deadline(void **state)
{
    (void)state;
    hf_word word = 7;
    assert_true(ops()->word_wait(posix(), &word, 8, HF_INSTANT_NEVER)); /* it is different: returns at once */
    assert_false(ops()->word_wait(posix(), &word, 7, (hf_instant){0}));
    assert_false(ops()->word_wait(posix(), &word, 7, (hf_instant){-5}));
    hf_instant deadline = {ops()->now(posix()).ns + 2000000};
    while (ops()->word_wait(posix(), &word, 7, deadline)) {
    }
    assert_true(ops()->now(posix()).ns >= deadline.ns);
    ops()->word_wake(posix(), &word, 1);
}

/* Dekker's handshake without a fence on one side: with the barrier on the other, never both see 0. */
typedef struct dekker {
    hf_word round;    /* both start when it changes */
    hf_word done;     /* the quick side has finished this round */
    atomic_int quick; /* written by the side without a fence */
    atomic_int slow;  /* written by the side with the barrier */
    int quick_saw;
} dekker;

#define ROUNDS 500

static void quick_main(void *arg)
{
    dekker *it = arg;
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        while (atomic_load(&it->round) != i) {
            hf_relax();
        }
        atomic_store_explicit(&it->quick, 1, memory_order_relaxed);
        __asm__ volatile("" ::: "memory");
        it->quick_saw = atomic_load_explicit(&it->slow, memory_order_relaxed);
        atomic_store(&it->done, i);
    }
}

static void check_barrier(void (*barrier)(void))
{
    dekker it = {0};
    hf_thread *thread = NULL;
    ASSERT_STATUS(HF_OK, ops()->thread_start(posix(), &op, "quick", 0, quick_main, &it, &thread));
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        atomic_store(&it.quick, 0);
        atomic_store(&it.slow, 0);
        atomic_store(&it.round, i);
        atomic_store_explicit(&it.slow, 1, memory_order_relaxed);
        barrier();
        int slow_saw = atomic_load_explicit(&it.quick, memory_order_relaxed);
        while (atomic_load(&it.done) != i) {
            hf_relax();
        }
        assert_true(slow_saw == 1 || it.quick_saw == 1);
    }
    ops()->thread_join(posix(), thread);
}

static void barrier(void)
{
    ops()->barrier_all(posix());
}

static void the_barrier_orders_what_other_threads_do_without_one(void **state)
{
    (void)state;
    check_barrier(barrier);
    check_barrier(hf_posix_barrier_by_visit);
}

static atomic_int interrupt_count;

static void count_interrupt(void)
{
    atomic_fetch_add(&interrupt_count, 1);
}

static void other_interrupt(void)
{
}

typedef struct blocked {
    int fd;       /* a pipe that stays empty */
    hf_word done; /* 1: the read has come back */
    ssize_t got;
    int error;
} blocked;

static void blocked_main(void *arg)
{
    blocked *it = arg;
    char byte = 0;
    it->got = read(it->fd, &byte, 1);
    it->error = errno;
    atomic_store(&it->done, 1);
}

static void an_interrupt_ends_a_blocking_call_of_one_of_our_threads(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    blocked it = {.fd = fds[0]};
    hf_thread *thread = NULL;
    ASSERT_STATUS(HF_OK, ops()->interrupt_open(posix(), &op, SIGURG, count_interrupt));
    ASSERT_STATUS(HF_OK, ops()->interrupt_open(posix(), &op, SIGURG, count_interrupt)); /* a second runtime */
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->interrupt_open(posix(), &op, SIGURG, other_interrupt));
    ops()->interrupt_close(posix(), SIGURG);
    ASSERT_STATUS(HF_OK, ops()->thread_start(posix(), &op, "blocked", 0, blocked_main, &it, &thread));
    ASSERT_STATUS(HF_ERR_MISUSE, ops()->thread_signal(posix(), &op, thread, SIGUSR2));
    /* A signal may come before the read: like the watchdog, the test sends again until the thread has left it. */
    while (atomic_load(&it.done) == 0) {
        ASSERT_STATUS(HF_OK, ops()->thread_signal(posix(), &op, thread, SIGURG));
        (void)sched_yield();
    }
    ops()->thread_join(posix(), thread);
    assert_int_equal(it.got, -1);
    assert_int_equal(it.error, EINTR);
    assert_true(atomic_load(&interrupt_count) >= 1);
    ops()->interrupt_close(posix(), SIGURG);
    struct sigaction now;
    assert_int_equal(sigaction(SIGURG, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_DFL);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void on_host(int number)
{
    (void)number;
}

static void an_interrupt_does_not_take_a_signal_from_the_host(void **state)
{
    (void)state;
    struct sigaction before;
    struct sigaction mine = {.sa_handler = on_host};
    assert_int_equal(sigaction(SIGUSR1, &mine, &before), 0);
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->interrupt_open(posix(), &op, SIGUSR1, count_interrupt));
    assert_non_null(strstr(op.message, "grant another"));
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    ASSERT_STATUS(HF_ERR_INVALID, ops()->interrupt_open(posix(), &op, SIGKILL, count_interrupt));
    ASSERT_STATUS(HF_ERR_INVALID, ops()->interrupt_open(posix(), &op, 0, count_interrupt));
    ASSERT_STATUS(HF_ERR_INVALID, ops()->interrupt_open(posix(), &op, 65, count_interrupt));
    ops()->interrupt_close(posix(), SIGUSR1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_start_with_a_name_and_pass_a_word_on),
        cmocka_unit_test(a_thread_knows_its_core),
        cmocka_unit_test(a_bound_thread_has_one_core_and_gives_others_all),
        cmocka_unit_test(a_thread_with_too_big_a_stack_is_a_status),
        cmocka_unit_test(a_forgotten_thread_frees_itself),
        cmocka_unit_test(word_wait_ends_with_the_deadline),
        cmocka_unit_test(the_barrier_orders_what_other_threads_do_without_one),
        cmocka_unit_test(an_interrupt_ends_a_blocking_call_of_one_of_our_threads),
        cmocka_unit_test(an_interrupt_does_not_take_a_signal_from_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
