/* A workflow that uses up its stack: the process says whose it was, and what really helps. */
/* labels: plainonly */
#include "support/support.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) int recurse(int depth, volatile char *above)
{
    volatile char frame[256];
    frame[0] = above[0];
    return depth < 0 ? 0 : recurse(depth + 1, frame) + frame[0];
}

static hf_status go_down(void *arg)
{
    volatile char first[1] = {1};
    (void)arg;
    return recurse(1, first) == 0 ? HF_OK : HF_ERR_FAILED;
}

static hf_status bottomless(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return go_down(NULL);
}

static hf_status forks(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, go_down, NULL, .name = "branch"));
    return hf_join(scope);
}

static hf_status app(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "bottomless", bottomless));
    HF_TRY(hf_worker_add_workflow(worker, "forks", forks));
    HF_TRY(hf_start(service, arg, hf_payload_none(), NULL, .id = "order-1", .task_queue = "q"));
    return hf_worker_run(worker);
}

/* What the child says on stderr before it ends by a signal. */
static void overflow_in_child(const char *type, char *text, size_t capacity)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(fds[1], STDERR_FILENO);
        (void)close(fds[0]);
        (void)close(fds[1]);
        struct rlimit no_core = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        static const int NUMBERS[] = {SIGSEGV, SIGBUS, SIGABRT};
        for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
            (void)signal(NUMBERS[i], SIG_DFL); /* the test's own handlers */
        }
        _exit((int)hf_run(app, (void *)(uintptr_t)type, .threads = 1));
    }
    (void)close(fds[1]);
    size_t used = 0;
    ssize_t len = 0;
    while (used + 1 < capacity && (len = read(fds[0], text + used, capacity - 1 - used)) > 0) {
        used += (size_t)len;
    }
    text[used] = '\0';
    (void)close(fds[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    print_message("%s", text);
    assert_true(WIFSIGNALED(status));
}

static void a_workflow_is_named_with_what_helps_it(void **state)
{
    (void)state;
    char text[4000];
    overflow_in_child("bottomless", text, sizeof text);
    assert_non_null(strstr(text, "stack overflow in workflow 'bottomless' ('order-1'): its stack of 6"));
    assert_non_null(strstr(text, "give hf_worker_add_workflow a larger .stack_size"));
    assert_null(strstr(text, "hf_fork"));
}

static void a_fiber_that_a_workflow_forked_is_helped_by_its_fork(void **state)
{
    (void)state;
    char text[4000];
    overflow_in_child("forks", text, sizeof text);
    assert_non_null(strstr(text, "stack overflow in fiber 'branch'"));
    assert_non_null(strstr(text, "give hf_fork a larger .stack_size"));
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_workflow_is_named_with_what_helps_it),
    cmocka_unit_test(a_fiber_that_a_workflow_forked_is_helped_by_its_fork),
};

int main(int argc, char **argv)
{
    return hf_test_main("overflow", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
