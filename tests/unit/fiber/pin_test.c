/* Fiber threads that are bound to cores: which core each gets, what stays free, and a system that refuses. A test waits until
 * something is so, and the program's time limit is the only clock. */
/* labels: threads */
#include "support/support.h"

#include "fiber/core.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_UNTIL(condition) \
    while (!(condition)) {    \
        (void)usleep(1000);   \
    }

/* ---- Cores and threads ------------------------------------------------------------------------------------------- */

static cpu_set_t cores_of(pid_t thread)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    (void)sched_getaffinity(thread, sizeof cores, &cores); /* none: the thread has just ended */
    return cores;
}

static cpu_set_t all; /* the cores of the test's own thread */

static bool is_free(pid_t thread)
{
    cpu_set_t cores = cores_of(thread);
    return CPU_EQUAL(&cores, &all);
}

/* Whether it is bound to the core that has this number among all, counted round. */
static bool is_on(pid_t thread, int index)
{
    cpu_set_t cores = cores_of(thread);
    int left = index % CPU_COUNT(&all);
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &all) && left-- == 0) {
            return CPU_COUNT(&cores) == 1 && CPU_ISSET(core, &cores);
        }
    }
    return false;
}

/* A thread of this process with this name, but not `except`; 0 = there is none. */
static pid_t thread_named(const char *name, pid_t except)
{
    pid_t found = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        char path[300];
        char text[32] = "";
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *comm = fopen(path, "r");
        if (comm == NULL) {
            continue;
        }
        bool has_text = fgets(text, sizeof text, comm) != NULL;
        (void)fclose(comm);
        text[strcspn(text, "\n")] = '\0';
        pid_t thread = (pid_t)strtol(task->d_name, NULL, 10);
        if (has_text && strcmp(text, name) == 0 && thread != except) {
            found = thread;
        }
    }
    (void)closedir(tasks);
    return found;
}

static pid_t fiber_thread(int index)
{
    char name[16];
    (void)snprintf(name, sizeof name, "hf-fiber-%d", index);
    return thread_named(name, 0);
}

/* ---- Which core -------------------------------------------------------------------------------------------------- */

static void W2_each_fiber_thread_is_bound_to_a_core(void **state)
{
    (void)state;
    int threads = CPU_COUNT(&all) + 1; /* the last one shares a core with the first */
    threads = threads > HF_THREADS_MAX ? HF_THREADS_MAX : threads;
    hf_runtime *rt = NULL;
    assert_int_equal(hf_runtime_new(&rt, .threads = threads, .pin_threads = true), HF_OK);
    for (int i = 0; i < threads; i++) {
        WAIT_UNTIL(is_on(fiber_thread(i), i));
    }
    WAIT_UNTIL(thread_named("hf-monitor", 0) != 0);
    assert_true(is_free(thread_named("hf-monitor", 0)));
    assert_true(is_free(gettid()));
    assert_int_equal(hf_runtime_free(rt), HF_OK);
}

static hf_status look_at_free_threads(void *arg)
{
    (void)arg;
    HF_CHECK(is_free(gettid()));
    HF_CHECK(is_free(fiber_thread(0)) && is_free(fiber_thread(1)));
    return HF_OK;
}

static void without_the_option_no_thread_is_bound(void **state)
{
    (void)state;
    HF_CHECK(hf_run(look_at_free_threads, NULL, .threads = 2) == HF_OK);
}

/* ---- What a bound thread starts ---------------------------------------------------------------------------------- */

static hf_status look_at_this_thread(void *arg)
{
    (void)arg;
    HF_CHECK(gettid() != fiber_thread(0));
    HF_CHECK(is_free(gettid()));
    return HF_OK;
}

/* The first line of a child's own status about cores is that of the test's. */
static hf_status look_at_child(const char *wanted)
{
    static const char *const ARGV[] = {"sh", "-c", "grep Cpus_allowed: /proc/self/status", NULL};
    HF_AUTO(hf_process_close) hf_process *process = NULL;
    HF_TRY(hf_process_start(ARGV, &process, .out = HF_STDIO_PIPE));
    char text[4096] = "";
    size_t len = 0;
    for (size_t got = 1; got > 0 && len < sizeof text - 1; len += got) {
        HF_TRY(hf_conn_read(hf_process_out(process), text + len, sizeof text - 1 - len, &got));
    }
    HF_CHECK_SAY(strcmp(text, wanted) == 0, "the child has '%s', not '%s'", text, wanted);
    hf_exit end = {0};
    return hf_process_wait(process, &end);
}

static hf_status start_all_kinds(void *arg)
{
    HF_CHECK(is_on(gettid(), 0));
    HF_CHECK(hf_env_posix()->ops->core_count(hf_env_posix()) == CPU_COUNT(&all));
    HF_TRY(hf_block(look_at_this_thread, NULL));
    HF_TRY(look_at_child(arg));
    hf_runtime *inner = NULL;
    HF_TRY(hf_runtime_new(&inner, .threads = 2, .name = "inner"));
    for (pid_t first = 0, second = 0; first == 0 || second == 0 || !is_free(first) || !is_free(second);) {
        (void)usleep(1000); /* they begin on this core, and with the name of this thread */
        first = thread_named("hf-fiber-0", gettid());
        second = fiber_thread(1);
    }
    HF_CHECK(is_on(gettid(), 0));
    return hf_runtime_free(inner);
}

static void W2_what_a_bound_thread_starts_is_not_bound(void **state)
{
    (void)state;
    char line[4096] = "";
    FILE *status = fopen("/proc/thread-self/status", "r");
    assert_non_null(status);
    while (fgets(line, sizeof line, status) != NULL && strncmp(line, "Cpus_allowed:", 13) != 0) {
    }
    (void)fclose(status);
    hf_status result = hf_run(start_all_kinds, line, .threads = 1, .pin_threads = true);
    HF_CHECK_SAY(result == HF_OK, "%s: %s", hf_status_name(result), hf_error_text());
}

/* ---- A thread that is replaced ----------------------------------------------------------------------------------- */

static atomic_int replaced;
static atomic_int refused;
static atomic_bool release;
static atomic_int spinner_thread;

static void count_lines(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    if (strcmp(event, "thread_replaced") == 0) {
        atomic_fetch_add(&replaced, 1);
    }
    if (strcmp(event, "thread_not_pinned") == 0 && level == HF_LOG_WARN && strstr(fields, "not today") != NULL) {
        atomic_fetch_add(&refused, 1);
    }
}

static hf_status spinner(void *arg)
{
    (void)arg;
    atomic_store(&spinner_thread, gettid());
    while (!atomic_load(&release)) {
        hf_relax();
    }
    return HF_OK;
}

static void W2_a_new_thread_takes_the_core_of_a_lost_one(void **state)
{
    (void)state;
    static const hf_watchdog_options QUICK = {
        .stuck_after = {.ns = 20000000}, .interrupt_first = {.ns = 10000000}, .signal = SIGURG};
    hf_runtime *rt = NULL;
    hf_status status = hf_runtime_new(&rt, .threads = 1, .pin_threads = true, .log = count_lines, .watchdog = QUICK);
    assert_int_equal(status, HF_OK);
    hf_scope *scope = NULL;
    assert_int_equal(hf_scope_open(&scope, .runtime = rt, .join = HF_JOIN_COLLECT), HF_OK);
    assert_int_equal(hf_fork(scope, spinner, NULL), HF_OK);
    WAIT_UNTIL(atomic_load(&replaced) == 1);
    pid_t lost = atomic_load(&spinner_thread);
    HF_CHECK(is_free(lost));
    WAIT_UNTIL(is_on(thread_named("hf-fiber-0", lost), 0));
    atomic_store(&release, true);
    HF_IGNORE(hf_join(scope));
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_runtime_free(rt) == HF_OK);
}

/* ---- A system that refuses --------------------------------------------------------------------------------------- */

static hf_status refuse(hf_env *env, hf_op *op, int index)
{
    (void)env;
    return hf_fail(op, HF_ERR_DENIED, "core %d: not today", index);
}

static void a_system_that_refuses_is_logged(void **state)
{
    (void)state;
    hf_env_ops ops = *hf_env_posix()->ops;
    hf_env env = {.ops = &ops};
    ops.thread_pin = refuse;
    hf_status status =
        hf_run(look_at_free_threads, NULL, .threads = 2, .env = &env, .pin_threads = true, .log = count_lines);
    HF_CHECK(status == HF_OK && atomic_load(&refused) == 2);
}

static hf_status nothing(void *arg)
{
    (void)arg;
    return HF_OK;
}

static void it_has_no_effect_without_threads(void **state)
{
    (void)state;
    HF_CHECK(hf_run(nothing, NULL, .threads = HF_OFF, .pin_threads = true) == HF_OK);
    HF_CHECK(is_free(gettid()));
    hf_env *env = hf_sim_begin(1);
    HF_CHECK(hf_run(nothing, NULL, .threads = 2, .env = env, .pin_threads = true) == HF_OK);
    hf_sim_end(env, NULL);
    HF_CHECK(is_free(gettid()));
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(W2_each_fiber_thread_is_bound_to_a_core),
    cmocka_unit_test(without_the_option_no_thread_is_bound),
    cmocka_unit_test(W2_what_a_bound_thread_starts_is_not_bound),
    cmocka_unit_test(W2_a_new_thread_takes_the_core_of_a_lost_one),
    cmocka_unit_test(a_system_that_refuses_is_logged),
    cmocka_unit_test(it_has_no_effect_without_threads),
};

int main(int argc, char **argv)
{
    all = cores_of(0);
    return hf_test_main("pin", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
