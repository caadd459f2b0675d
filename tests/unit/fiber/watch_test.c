/* The monitor with real threads and short figures. What is checked is the order of things, never how long they took: a
 * test waits until something has happened, and the program's time limit is the only clock. */
/* labels: threads */
#include "support/support.h"

#include "fiber/watch/watch_private.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- What was logged --------------------------------------------------------------------------------------------- */

enum { LINES_MAX = 256, LINE_LEN_MAX = 1100 };

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[LINES_MAX][LINE_LEN_MAX];
static int line_count;

static void keep_line(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)pthread_mutex_lock(&log_lock);
    if (line_count < LINES_MAX) {
        (void)snprintf(lines[line_count++], LINE_LEN_MAX, "%s %s", event, fields);
    }
    (void)pthread_mutex_unlock(&log_lock);
}

static bool is_event(const char *line, const char *event)
{
    size_t len = strlen(event);
    return strncmp(line, event, len) == 0 && line[len] == ' ';
}

/* The first line of the event that holds `field`, from line `from` on; -1 = none. */
static int find_line(const char *event, const char *field, int from)
{
    (void)pthread_mutex_lock(&log_lock);
    int found = -1;
    for (int i = from; i < line_count && found < 0; i++) {
        found = is_event(lines[i], event) && strstr(lines[i], field) != NULL ? i : -1;
    }
    (void)pthread_mutex_unlock(&log_lock);
    return found;
}

static int count_lines(const char *event)
{
    int count = 0;
    for (int i = find_line(event, "", 0); i >= 0; i = find_line(event, "", i + 1)) {
        count++;
    }
    return count;
}

/* The events of one fiber came in this order, each once. */
static void check_order(const char *field, const char *const *events)
{
    int at = -1;
    for (int i = 0; events[i] != NULL; i++) {
        int next = find_line(events[i], field, at + 1);
        if (next < 0) {
            for (int k = 0; k < line_count; k++) {
                print_message("%s\n", lines[k]);
            }
            fail_msg("no %s for %s after line %d", events[i], field, at);
        }
        assert_int_equal(find_line(events[i], field, next + 1), -1);
        at = next;
    }
}

/* ---- A runtime to watch ------------------------------------------------------------------------------------------ */

static atomic_bool release;
static atomic_int spinning;
static atomic_int neighbours;
static atomic_int fatal_code;

static void on_fatal(void *state, const char *message, int exit_code)
{
    (void)state;
    (void)message;
    atomic_store(&fatal_code, exit_code);
}

static hf_runtime *begin(int threads, hf_watchdog_options watchdog)
{
    line_count = 0;
    atomic_store(&release, false);
    atomic_store(&spinning, 0);
    atomic_store(&neighbours, 0);
    atomic_store(&fatal_code, 0);
    hf_runtime *rt = NULL;
    hf_status status =
        hf_runtime_new(&rt, .threads = threads, .log = keep_line, .fatal = on_fatal, .watchdog = watchdog);
    assert_int_equal(status, HF_OK);
    return rt;
}

static const hf_watchdog_options QUICK = {.stuck_after = {.ns = 20000000},
                                          .zombie_after = {.ns = 40000000},
                                          .interrupt_first = {.ns = 10000000},
                                          .signal = SIGURG};
static const hf_watchdog_options QUICK_UNSIGNALLED = {.stuck_after = {.ns = 20000000},
                                                      .zombie_after = {.ns = 40000000}};

static hf_stats stats_of(hf_runtime *rt)
{
    hf_stats stats;
    memset(&stats, 0, sizeof stats);
    HF_IGNORE(hf_runtime_stats(rt, &stats));
    return stats;
}

/* Polls on the test's own thread. */
#define WAIT_UNTIL(condition)                    \
    while (!(condition)) {                       \
        HF_IGNORE(hf_sleep(hf_milliseconds(1))); \
    }

static hf_scope *open_scope(hf_runtime *rt)
{
    hf_scope *scope = NULL;
    assert_int_equal(hf_scope_open(&scope, .runtime = rt, .join = HF_JOIN_COLLECT), HF_OK);
    return scope;
}

static void end(hf_runtime *rt, hf_scope *scope, hf_chan *chan)
{
    HF_IGNORE(hf_join(scope));
    assert_int_equal(hf_scope_close(scope), HF_OK);
    assert_int_equal(hf_chan_free(chan), HF_OK);
    WAIT_UNTIL(hf_watchdog_zombies(rt) == 0);
    assert_int_equal(hf_runtime_free(rt), HF_OK);
}

/* ---- Bodies ------------------------------------------------------------------------------------------------------ */

static HF_NOINLINE void spin(void)
{
    while (!atomic_load(&release)) {
        hf_relax();
    }
}

/* Ignores everything until it is released, then behaves. */
static hf_status spinner(void *arg)
{
    (void)arg;
    pid_t before = gettid(); /* not pthread_self: a compiler may take that for a constant of the function */
    atomic_fetch_add(&spinning, 1);
    spin();
    HF_CHECK(gettid() == before); /* user code never changes its thread */
    hf_status canceled = hf_canceled();
    if (canceled ==
        HF_OK) { /* the home of its scope is another thread, which has not marked it yet: then a wait ends */
        canceled = hf_sleep(hf_seconds(1000));
    }
    HF_CHECK(canceled == HF_ERR_CANCELED);
    HF_CHECK(hf_cancel_cause(NULL) == HF_CAUSE_STUCK);
    HF_CHECK(gettid() != before); /* the library did */
    HF_CHECK(hf_sleep(hf_milliseconds(1)) == HF_ERR_CANCELED);
    hf_shield *shield = NULL;
    HF_CHECK(hf_shield_open(hf_seconds(100), &shield) == HF_OK);
    HF_CHECK(hf_sleep(hf_milliseconds(1)) == HF_OK);
    HF_CHECK(hf_shield_close(shield) == HF_OK);
    return HF_OK;
}

/* Returns straight from user code. */
static hf_status silent_spinner(void *arg)
{
    (void)arg;
    atomic_fetch_add(&spinning, 1);
    spin();
    return HF_OK;
}

/* Has run on its thread and waits there; goes on only when that thread, or its replacement, is free. */
static hf_status neighbour(void *arg)
{
    hf_chan *chan = arg;
    int value = 0;
    hf_status status = hf_chan_recv(chan, &value);
    atomic_fetch_add(&neighbours, 1);
    return status;
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static void N1_fibers_of_a_stuck_thread_run_again_once_it_is_replaced(void **state)
{
    (void)state;
    static const char *const ORDER[] = {"fiber_stuck", "thread_replaced", "zombie", "zombie_gone", NULL};
    hf_runtime *rt = begin(1, QUICK); /* one thread: whatever runs beside the spinner runs on a new one */
    hf_chan *chan = NULL;
    assert_int_equal(hf_chan_new(sizeof(int), &chan, .capacity = 4, .runtime = rt), HF_OK);
    hf_scope *scope = open_scope(rt);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf_fork(scope, neighbour, chan, .name = "neighbour"), HF_OK);
    }
    assert_int_equal(hf_fork(scope, spinner, NULL, .name = "spinner"), HF_OK);
    WAIT_UNTIL(atomic_load(&spinning) == 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf_chan_send(chan, &i), HF_OK);
    }
    WAIT_UNTIL(atomic_load(&neighbours) == 3);
    WAIT_UNTIL(hf_watchdog_zombies(rt) == 1);
    assert_int_equal(stats_of(rt).stuck, 1);
    assert_int_equal(stats_of(rt).zombies, 1);
    assert_int_equal(stats_of(rt).threads, 1);
    atomic_store(&release, true);
    end(rt, scope, chan);
    check_order("name=\"spinner\"", ORDER);
    assert_null(strstr(lines[find_line("fiber_stuck", "", 0)], "stack=\"\""));
    assert_null(strstr(lines[find_line("fiber_stuck", "", 0)], "message="));
    assert_null(strstr(lines[find_line("zombie", "", 0)], "stack=\"\""));
}

static void T18_without_a_signal_it_is_only_reported(void **state)
{
    (void)state;
    static const char *const ORDER[] = {"fiber_stuck", "zombie", "zombie_gone", NULL};
    hf_runtime *rt = begin(1, QUICK_UNSIGNALLED);
    hf_chan *chan = NULL;
    assert_int_equal(hf_chan_new(sizeof(int), &chan, .capacity = 4, .runtime = rt), HF_OK);
    hf_scope *scope = open_scope(rt);
    assert_int_equal(hf_fork(scope, neighbour, chan), HF_OK);
    assert_int_equal(hf_fork(scope, silent_spinner, NULL), HF_OK);
    WAIT_UNTIL(atomic_load(&spinning) == 1);
    int value = 0;
    assert_int_equal(hf_chan_send(chan, &value), HF_OK);
    WAIT_UNTIL(hf_watchdog_zombies(rt) == 1);
    assert_int_equal(atomic_load(&neighbours), 0);
    atomic_store(&release, true);
    end(rt, scope, chan);
    assert_int_equal(atomic_load(&neighbours), 1);
    check_order("thread=0", ORDER);
    assert_int_equal(count_lines("thread_replaced"), 0);
    assert_true(find_line("fiber_stuck",
                          "stack=\"\" message=\"no stack: only a signal can read it, and none was given; set "
                          ".watchdog.signal, for example to SIGURG\"",
                          0) >= 0);
}

static int pipe_fds[2];

static hf_status blocked_reader(void *arg)
{
    (void)arg;
    char byte = 0;
    atomic_fetch_add(&spinning, 1);
    ssize_t got = read(pipe_fds[0], &byte, 1);
    HF_CHECK(got == -1 && errno == EINTR);
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED);
    HF_CHECK(hf_cancel_cause(NULL) == HF_CAUSE_STUCK);
    return HF_OK;
}

static void T13_a_blocking_call_is_interrupted(void **state)
{
    (void)state;
    assert_int_equal(pipe(pipe_fds), 0);
    hf_runtime *rt = begin(2, QUICK);
    hf_scope *scope = open_scope(rt);
    assert_int_equal(hf_fork(scope, blocked_reader, NULL, .name = "reader"), HF_OK);
    end(rt, scope, NULL); /* nobody writes: only the interrupt ends it */
    assert_true(find_line("fiber_stuck", "name=\"reader\"", 0) >= 0);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
}

/* A dump stops the world, threads without a scheduler and schedulers without a thread included. */
static void dump(hf_runtime *rt)
{
    char *text = NULL;
    assert_int_equal(hf_dump(rt, &text), HF_OK);
    assert_non_null(text);
    hf_text_free(text);
}

static void N1_zombies_come_and_go_on_several_threads(void **state)
{
    (void)state;
    enum { ROUNDS = 4, SPINNERS = 6 };
    hf_watchdog_options options = QUICK;
    options.zombies_max = HF_OFF;
    hf_runtime *rt = begin(2, options);
    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&release, false);
        atomic_store(&spinning, 0);
        hf_scope *scope = open_scope(rt);
        for (int i = 0; i < SPINNERS; i++) { /* two threads: six can only spin at once if threads are replaced */
            assert_int_equal(hf_fork(scope, i % 2 == 0 ? spinner : silent_spinner, NULL, .name = "spinner"), HF_OK);
        }
        while (hf_watchdog_zombies(rt) != SPINNERS || count_lines("thread_replaced") != (round + 1) * SPINNERS) {
            dump(rt);
        }
        atomic_store(&release, true);
        dump(rt);
        assert_int_equal(hf_join(scope), HF_OK);
        assert_int_equal(hf_scope_close(scope), HF_OK);
        WAIT_UNTIL(hf_watchdog_zombies(rt) == 0);
    }
    assert_int_equal(hf_runtime_free(rt), HF_OK);
    assert_int_equal(count_lines("zombie"), ROUNDS * SPINNERS);
    assert_int_equal(count_lines("zombie_gone"), ROUNDS * SPINNERS);
}

/* Enters the library as soon as its thread was taken away, mostly before there is a new one. */
static hf_status comes_at_once(void *arg)
{
    const hf_fiber *self = (const hf_fiber *)(const void *)hf_self_get();
    (void)arg;
    while (__atomic_load_n(&self->lost, __ATOMIC_ACQUIRE) == 0) {
        hf_relax();
    }
    return hf_canceled();
}

static void N1_a_scheduler_without_a_thread_does_not_hold_up_a_dump(void **state)
{
    (void)state;
    enum { ROUNDS = 8 };
    hf_runtime *rt = begin(2, QUICK);
    for (int round = 0; round < ROUNDS; round++) {
        hf_scope *scope = open_scope(rt);
        assert_int_equal(hf_fork(scope, comes_at_once, NULL, .name = "comes"), HF_OK);
        while (!hf_scope_is_idle(scope)) {
            dump(rt);
        }
        HF_IGNORE(hf_join(scope));
        assert_int_equal(hf_scope_close(scope), HF_OK);
    }
    assert_int_equal(hf_runtime_free(rt), HF_OK);
    assert_int_equal(count_lines("thread_replaced"), ROUNDS);
}

static void T16_too_many_zombies_shut_the_runtime_down(void **state)
{
    (void)state;
    hf_watchdog_options options = QUICK;
    options.zombies_max = 2;
    options.shutdown_grace = hf_milliseconds(20);
    options.shutdown_force = hf_milliseconds(20);
    hf_runtime *rt = begin(2, options);
    hf_chan *chan = NULL;
    assert_int_equal(hf_chan_new(sizeof(int), &chan, .capacity = 4, .runtime = rt), HF_OK);
    hf_scope *scope = open_scope(rt);
    assert_int_equal(hf_fork(scope, neighbour, chan), HF_OK); /* well-behaved: ends when it is canceled */
    assert_int_equal(hf_fork(scope, silent_spinner, NULL), HF_OK);
    assert_int_equal(hf_fork(scope, silent_spinner, NULL), HF_OK);
    WAIT_UNTIL(atomic_load(&fatal_code) != 0);
    assert_int_equal(atomic_load(&fatal_code), 1);
    int drain = find_line("shutdown", "step=drain", 0);
    int cancel = find_line("shutdown", "step=cancel", drain);
    assert_true(drain >= 0 && cancel > drain && find_line("shutdown", "step=fatal", cancel) > cancel);
    WAIT_UNTIL(atomic_load(&neighbours) == 1);
    hf_scope *more = NULL;
    assert_int_equal(hf_scope_open(&more, .runtime = rt), HF_ERR_CLOSED);
    atomic_store(&release, true);
    end(rt, scope, chan);
}

/* ---- The monitor's chores ---------------------------------------------------------------------------------------- */

static atomic_bool child_ran;

static hf_status quick_child(void *arg)
{
    (void)arg;
    atomic_store(&child_ran, true);
    return HF_OK;
}

static hf_status busy_parent(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, quick_child, NULL));
    while (!atomic_load(&child_ran)) { /* does not yield: somebody else has to take the child */
        hf_relax();
    }
    return hf_join(scope);
}

static void a_single_job_behind_a_busy_fiber_is_stolen(void **state)
{
    (void)state;
    atomic_store(&child_ran, false);
    hf_runtime *rt = begin(2, (hf_watchdog_options){.stuck_after = HF_SPAN_OFF});
    hf_scope *scope = open_scope(rt);
    assert_int_equal(hf_fork(scope, busy_parent, NULL), HF_OK);
    end(rt, scope, NULL);
    assert_int_equal(line_count, 0);
}

/* fiber-M3 */
static void an_idle_monitor_sleeps_and_is_woken_by_work(void **state)
{
    (void)state;
    hf_runtime *rt = begin(2, QUICK);
    WAIT_UNTIL(atomic_load(&rt->watch->is_asleep));
    hf_scope *scope = open_scope(rt);
    assert_int_equal(hf_fork(scope, spinner, NULL), HF_OK);
    WAIT_UNTIL(hf_watchdog_zombies(rt) == 1 && count_lines("thread_replaced") == 1);
    atomic_store(&release, true);
    end(rt, scope, NULL);
}

static void the_granted_signal_must_be_free(void **state)
{
    (void)state;
    struct sigaction host = {.sa_handler = SIG_DFL};
    struct sigaction before;
    host.sa_handler = (void (*)(int))exit;
    assert_int_equal(sigaction(SIGUSR2, &host, &before), 0);
    hf_watchdog_options options = QUICK;
    options.signal = SIGUSR2;
    hf_runtime *rt = NULL;
    assert_int_equal(hf_runtime_new(&rt, .threads = 1, .watchdog = options), HF_ERR_EXISTS);
    assert_null(rt);
    assert_int_equal(sigaction(SIGUSR2, &before, NULL), 0);
    assert_int_equal(hf_runtime_new(&rt, .threads = 1, .watchdog = options), HF_OK);
    hf_runtime *other = NULL; /* two runtimes share it */
    assert_int_equal(hf_runtime_new(&other, .threads = 1, .watchdog = options), HF_OK);
    assert_int_equal(hf_runtime_free(other), HF_OK);
    assert_int_equal(hf_runtime_free(rt), HF_OK);
    struct sigaction now;
    assert_int_equal(sigaction(SIGUSR2, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_DFL);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(N1_fibers_of_a_stuck_thread_run_again_once_it_is_replaced),
    cmocka_unit_test(T18_without_a_signal_it_is_only_reported),
    cmocka_unit_test(T13_a_blocking_call_is_interrupted),
    cmocka_unit_test(N1_zombies_come_and_go_on_several_threads),
    cmocka_unit_test(N1_a_scheduler_without_a_thread_does_not_hold_up_a_dump),
    cmocka_unit_test(T16_too_many_zombies_shut_the_runtime_down),
    cmocka_unit_test(a_single_job_behind_a_busy_fiber_is_stolen),
    cmocka_unit_test(an_idle_monitor_sleeps_and_is_woken_by_work),
    cmocka_unit_test(the_granted_signal_must_be_free),
};

int main(int argc, char **argv)
{
    return hf_test_main("watch", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
