/* Child processes, on the real system: exits, pipes with back-pressure, signals, cancel and timeout, many at once, and
 * that nothing is left behind. */
/* labels: threads */
#include "support/support.h"

#include "env/sim/sim.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static void run_real(hf_body body)
{
    hf_status status = hf_run(body, NULL, .threads = 2);
    HF_CHECK_SAY(status == HF_OK, "%s: %s", hf_status_name(status), hf_error_text());
}

#define SHELL(script) ((const char *const[]){"sh", "-c", (script), NULL})

/* Reads to the end; what does not fit is only counted. */
static hf_status read_all(hf_conn *conn, char *text, size_t capacity, size_t *ret_len)
{
    char buf[4096];
    size_t at = 0;
    for (size_t len = 1; len > 0;) {
        HF_TRY(hf_conn_read(conn, buf, sizeof buf, &len));
        for (size_t i = 0; i < len; i++, at++) {
            if (at + 1 < capacity) {
                text[at] = buf[i];
                text[at + 1] = '\0';
            }
        }
    }
    *ret_len = at;
    return HF_OK;
}

/* Runs a script to its end and gives what it wrote. */
static hf_status capture(const char *script, const hf_process_options *options, char *text, size_t capacity,
                         int *ret_code)
{
    HF_AUTO(hf_process_close) hf_process *process = NULL;
    hf_process_options own = options != NULL ? *options : (hf_process_options){0};
    own.size = sizeof own;
    own.out = HF_STDIO_PIPE;
    HF_TRY(hf_process_start_with(SHELL(script), &process, &own));
    size_t len = 0;
    text[0] = '\0';
    HF_TRY(read_all(hf_process_out(process), text, capacity, &len));
    hf_exit end = {0};
    HF_TRY(hf_process_wait(process, &end));
    *ret_code = end.code;
    return HF_OK;
}

/* ---- Exits ------------------------------------------------------------------------------------------------------- */

static hf_status exits_body(void *arg)
{
    (void)arg;
    static const struct {
        const char *script;
        int code;
        int signal;
    } CASES[] = {{"exit 0", 0, 0},
                 {"exit 7", 7, 0},
                 {"exit 255", 255, 0},
                 {"kill -9 $$", -1, SIGKILL},
                 {"kill -TERM $$", -1, SIGTERM}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        hf_process *process = NULL;
        HF_TRY(hf_process_start(SHELL(CASES[i].script), &process));
        HF_CHECK(hf_process_pid(process) > 1);
        HF_CHECK(hf_process_in(process) == NULL && hf_process_out(process) == NULL && hf_process_err(process) == NULL);
        hf_exit end = {99, 99};
        for (int again = 0; again < 2; again++) { /* the second time from memory */
            HF_TRY(hf_process_wait(process, &end));
            HF_CHECK_SAY(end.code == CASES[i].code && end.signal == CASES[i].signal, "'%s': %d, %d", CASES[i].script,
                         end.code, end.signal);
        }
        HF_CHECK(hf_process_kill(process, SIGTERM) == HF_ERR_NOT_FOUND);
        HF_CHECK(hf_process_close_in(process) == HF_ERR_MISUSE);
        HF_CHECK(hf_process_close(process) == HF_OK);
    }
    HF_CHECK(hf_process_close(NULL) == HF_OK);
    return HF_OK;
}

/* fiber-E2: a child may end before anybody waits for it */
static void exit_codes_and_signals_are_told(void **state)
{
    (void)state;
    run_real(exits_body);
}

static hf_status refusals_body(void *arg)
{
    (void)arg;
    hf_process *process = NULL;
    const char *const missing[] = {"no-such-program-anywhere", NULL};
    const char *const missing_path[] = {"/no/such/program", NULL};
    const char *const directory[] = {"/", NULL};
    const char *const empty[] = {NULL};
    HF_CHECK(hf_process_start(missing, &process) == HF_ERR_NOT_FOUND);
    HF_CHECK_SAY(strstr(hf_error_text(), "no-such-program-anywhere") != NULL, "%s", hf_error_text());
    HF_CHECK(hf_process_start(missing_path, &process, .out = HF_STDIO_PIPE, .in = HF_STDIO_PIPE) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_process_start(directory, &process) == HF_ERR_DENIED);
    HF_CHECK(hf_process_start(SHELL("exit 0"), &process, .cwd = "/no/such/folder") == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_process_start(empty, &process) == HF_ERR_MISUSE);
    HF_CHECK(hf_process_start(NULL, &process) == HF_ERR_MISUSE);
    HF_CHECK(process == NULL);
    return HF_OK;
}

static void what_cannot_be_started_is_refused(void **state)
{
    (void)state;
    run_real(refusals_body);
    hf_process *process = NULL;
    assert_int_equal(hf_process_start(SHELL("exit 0"), &process), HF_ERR_MISUSE); /* which runtime? */
}

static hf_status surroundings_body(void *arg)
{
    (void)arg;
    char text[256];
    int code = -1;
    const char *const env[] = {"HF_ONE=1", "HF_TWO=two words", NULL};
    HF_TRY(
        capture("echo \"$HF_ONE-$HF_TWO-$HF_TEST_HOST\"", &(hf_process_options){.env = env}, text, sizeof text, &code));
    HF_CHECK_SAY(strcmp(text, "1-two words-\n") == 0 && code == 0, "'%s'", text);
    HF_TRY(capture("echo \"$HF_TEST_HOST\"", NULL, text, sizeof text, &code)); /* the host's own */
    HF_CHECK_SAY(strcmp(text, "from the host\n") == 0, "'%s'", text);
    HF_TRY(capture("pwd", &(hf_process_options){.cwd = folder}, text, sizeof text, &code));
    HF_CHECK_SAY(strncmp(text, folder, strlen(folder)) == 0, "'%s'", text);
    char here[256] = "";
    HF_CHECK(getcwd(here, sizeof here) != NULL);
    HF_TRY(capture("pwd -P", NULL, text, sizeof text, &code));
    HF_CHECK_SAY(strncmp(text, here, strlen(here)) == 0, "'%s'", text);
    HF_TRY(capture("cat; echo done", NULL, text, sizeof text, &code)); /* standard input is /dev/null */
    HF_CHECK(strcmp(text, "done\n") == 0);
    return HF_OK;
}

static void environment_and_folder_are_as_asked(void **state)
{
    (void)state;
    assert_int_equal(setenv("HF_TEST_HOST", "from the host", 1), 0);
    run_real(surroundings_body);
}

/* ---- Pipes ------------------------------------------------------------------------------------------------------- */

enum { MANY = 10000000 };

static hf_status feed(void *arg)
{
    hf_process *process = arg;
    static unsigned char bytes[30000];
    for (size_t sent = 0; sent < MANY; sent += sizeof bytes) {
        size_t left = MANY - sent;
        HF_TRY(hf_conn_write(hf_process_in(process), bytes, left < sizeof bytes ? left : sizeof bytes));
    }
    return hf_process_close_in(process);
}

/* 10 MB in and out through cat: both pipes are full most of the time. */
static hf_status back_pressure_body(void *arg)
{
    (void)arg;
    HF_AUTO(hf_process_close) hf_process *process = NULL;
    const char *const argv[] = {"cat", NULL};
    HF_TRY(hf_process_start(argv, &process, .in = HF_STDIO_PIPE, .out = HF_STDIO_PIPE, .err = HF_STDIO_PIPE));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, feed, process));
    char buf[1000];
    size_t total = 0;
    for (size_t len = 1; len > 0; total += len) {
        HF_TRY(hf_conn_read(hf_process_out(process), buf, sizeof buf, &len));
        HF_TRY(hf_yield()); /* slowly */
    }
    HF_CHECK(total == MANY);
    HF_TRY(hf_join(scope));
    HF_CHECK(hf_process_in(process) == NULL);
    size_t errors = 99;
    HF_TRY(read_all(hf_process_err(process), buf, sizeof buf, &errors));
    HF_CHECK(errors == 0);
    HF_CHECK(hf_conn_close(hf_process_out(process)) == HF_ERR_MISUSE); /* it is the process's */
    hf_exit end = {0};
    HF_TRY(hf_process_wait(process, &end));
    HF_CHECK(end.code == 0);
    return HF_OK;
}

static hf_status broken_pipe_body(void *arg)
{
    (void)arg;
    HF_AUTO(hf_process_close) hf_process *process = NULL;
    HF_TRY(hf_process_start(SHELL("exit 0"), &process, .in = HF_STDIO_PIPE));
    HF_TRY(hf_process_wait(process, NULL));
    HF_CHECK(hf_conn_write(hf_process_in(process), "x", 1) == HF_ERR_RESET); /* and no SIGPIPE for the host */
    return HF_OK;
}

static void pipes_carry_megabytes_with_back_pressure(void **state)
{
    (void)state;
    run_real(back_pressure_body);
    run_real(broken_pipe_body);
}

/* ---- Waiting and ending ------------------------------------------------------------------------------------------ */

static hf_status wait_for(void *arg)
{
    hf_exit end = {0};
    HF_TRY(hf_process_wait(arg, &end));
    HF_CHECK(end.signal == SIGTERM);
    return HF_OK;
}

static hf_status waits_body(void *arg)
{
    (void)arg;
    HF_AUTO(hf_process_close) hf_process *process = NULL;
    hf_exit end = {0};
    HF_TRY(hf_process_start(SHELL("sleep 1000"), &process));
    HF_CHECK(hf_process_wait(process, &end, .timeout = hf_milliseconds(2)) == HF_ERR_TIMEOUT);
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 5; i++) { /* one of them reads for all; the cancel takes them all away */
        HF_TRY(hf_fork(scope, wait_for, process));
    }
    HF_CHECK(hf_process_wait(process, &end, .timeout = hf_milliseconds(2)) == HF_ERR_TIMEOUT); /* perhaps it reads */
    HF_TRY(hf_scope_cancel(scope));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 5; i++) { /* and these hear of the end */
        HF_TRY(hf_fork(scope, wait_for, process));
    }
    HF_CHECK(hf_process_wait(process, &end, .timeout = hf_milliseconds(2)) == HF_ERR_TIMEOUT); /* perhaps it reads */
    HF_CHECK(hf_process_kill(process, SIGTERM) == HF_OK);
    HF_CHECK(hf_join(scope) == HF_OK);
    return hf_scope_close(scope);
}

static hf_status one_of_many(void *arg)
{
    int want = (int)(intptr_t)arg;
    char script[64];
    char text[16];
    int code = -1;
    (void)snprintf(script, sizeof script, "echo %d; exit %d", want, want);
    HF_TRY(capture(script, NULL, text, sizeof text, &code));
    HF_CHECK_SAY(code == want && atoi(text) == want, "wanted %d, got %d and '%s'", want, code, text);
    return HF_OK;
}

static hf_status many_body(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (intptr_t i = 0; i < 100; i++) {
        HF_TRY(hf_fork(scope, one_of_many, (void *)(i + 1)));
    }
    return hf_join(scope);
}

static void many_wait_at_once_and_each_hears_its_own(void **state)
{
    (void)state;
    run_real(waits_body);
    run_real(many_body);
}

/* A pipe in the file system: who has it open for writing keeps its reader from the end. */
static int open_witness(const char *name, char *ret_path)
{
    (void)snprintf(ret_path, 128, "%s/%s", folder, name);
    HF_CHECK(mkfifo(ret_path, 0600) == 0);
    int fd = open(ret_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    HF_CHECK(fd >= 0);
    return fd;
}

/* Waits until the script has opened the witness and said so. */
static hf_status see_it_run(int fd)
{
    char line[8];
    ssize_t len = 0;
    do {
        HF_TRY(hf_fd_wait(fd, HF_READABLE));
        len = read(fd, line, sizeof line);
    } while (len <= 0); /* nobody has it open yet */
    return HF_OK;
}

/* Reads to the end: everybody who had it open is gone. */
static hf_status see_all_gone(int fd)
{
    char byte = 0;
    ssize_t len = 0;
    while ((len = read(fd, &byte, 1)) != 0) {
        HF_TRY(hf_fd_wait(fd, HF_READABLE));
    }
    HF_CHECK(hf_fd_forget(fd) == HF_OK);
    HF_CHECK(close(fd) == 0);
    return HF_OK;
}

/* Starts a child with a grandchild, both of which hold the witness and neither of which ends by itself. */
static hf_status start_family(hf_process **ret_process, const char *path, const char *trap, hf_span kill_after)
{
    char script[400];
    (void)snprintf(script, sizeof script, "exec 9>'%s'; %s; sleep 1000 & echo up >&9; while :; do wait; done", path,
                   trap);
    return hf_process_start(SHELL(script), ret_process, .kill_after = kill_after);
}

static hf_status no_orphans_body(void *arg)
{
    (void)arg;
    static const struct {
        const char *trap;
        hf_span kill_after;
    } CASES[] = {{":", {0}}, {":", {.ns = INT64_C(60) * 1000000000}}, {"trap '' TERM", {.ns = 1000000}}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char path[128];
        int fd = open_witness("witness", path);
        hf_process *process = NULL;
        HF_TRY(start_family(&process, path, CASES[i].trap, CASES[i].kill_after));
        HF_TRY(see_it_run(fd));
        HF_CHECK(hf_process_close(process) == HF_OK);
        HF_TRY(see_all_gone(fd));
        HF_CHECK(unlink(path) == 0);
    }
    return HF_OK;
}

/* A canceled fiber closes as well as any other. */
static hf_status canceled_close_body(void *arg)
{
    (void)arg;
    char path[128];
    int fd = open_witness("witness", path);
    hf_scope *scope = NULL;
    hf_process *process = NULL;
    HF_TRY(start_family(&process, path, ":", hf_seconds(60)));
    HF_TRY(see_it_run(fd));
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_scope_cancel(scope));
    hf_process *other = NULL;
    HF_CHECK(hf_process_start(SHELL("exit 0"), &other) == HF_ERR_CANCELED && other == NULL);
    HF_CHECK(hf_process_wait(process, NULL) == HF_ERR_CANCELED);
    HF_CHECK(hf_process_close(process) == HF_OK);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_TRY(see_all_gone(fd));
    HF_CHECK(unlink(path) == 0);
    return HF_OK;
}

static void closing_leaves_no_orphan(void **state)
{
    (void)state;
    run_real(no_orphans_body);
    run_real(canceled_close_body);
}

/* The background child holds the pipe: its end is read only when it was killed with the rest of the group. */
static hf_status left_behind_body(void *arg)
{
    (void)arg;
    char text[64];
    int code = -1;
    HF_TRY(capture("sleep 1000 & echo gone; exit 3", NULL, text, sizeof text, &code));
    HF_CHECK(strcmp(text, "gone\n") == 0);
    HF_CHECK(code == 3);
    return HF_OK;
}

static void what_a_child_leaves_in_its_group_ends_with_it(void **state)
{
    (void)state;
    run_real(left_behind_body);
}

typedef struct forgotten {
    int fd;
    char path[128];
} forgotten;

static hf_status forget_body(void *arg)
{
    forgotten *f = arg;
    hf_process *process = NULL;
    HF_TRY(start_family(&process, f->path, "trap '' TERM", hf_seconds(60)));
    return see_it_run(f->fd); /* and never closed: the runtime ends with it */
}

static void a_runtime_takes_forgotten_children_along(void **state)
{
    (void)state;
    forgotten f;
    f.fd = open_witness("witness", f.path);
    assert_int_equal(hf_run(forget_body, &f, .threads = 2), HF_OK);
    char byte = 0;
    assert_int_equal(read(f.fd, &byte, 1), 0); /* the helper has waited for all of them */
    assert_int_equal(close(f.fd), 0);
    assert_int_equal(unlink(f.path), 0);
}

/* Starts are canceled at any moment; none may be lost or left. */
static hf_status start_and_close(void *arg)
{
    (void)arg;
    for (;;) {
        hf_process *process = NULL;
        HF_TRY(hf_process_start(SHELL("sleep 1000"), &process, .out = HF_STDIO_PIPE));
        HF_CHECK(hf_process_close(process) == HF_OK);
    }
}

static hf_status canceled_starts_body(void *arg)
{
    (void)arg;
    for (int round = 0; round < 5; round++) {
        hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .timeout = hf_milliseconds(10)));
        for (int i = 0; i < 4; i++) {
            HF_TRY(hf_fork(scope, start_and_close, NULL));
        }
        HF_CHECK(hf_join(scope) == HF_ERR_TIMEOUT);
        HF_CHECK(hf_scope_close(scope) == HF_OK);
    }
    return HF_OK;
}

static void canceled_starts_lose_no_child(void **state)
{
    (void)state;
    run_real(canceled_starts_body);
}

/* ---- Elsewhere --------------------------------------------------------------------------------------------------- */

static void a_plain_thread_starts_processes_too(void **state)
{
    (void)state;
    for (int threads = HF_OFF; threads <= 2; threads += threads == HF_OFF ? 2 : 1) {
        hf_runtime *rt = NULL;
        hf_process *process = NULL;
        hf_exit end = {0};
        char text[16] = "";
        size_t len = 0;
        assert_int_equal(hf_runtime_new(&rt, .threads = threads), HF_OK);
        assert_int_equal(hf_process_start(SHELL("echo hi; exit 3"), &process, .runtime = rt, .out = HF_STDIO_PIPE),
                         HF_OK);
        assert_int_equal(read_all(hf_process_out(process), text, sizeof text, &len), HF_OK);
        assert_string_equal(text, "hi\n");
        assert_int_equal(hf_process_wait(process, &end), HF_OK);
        assert_int_equal(end.code, 3);
        assert_int_equal(hf_process_close(process), HF_OK);
        assert_int_equal(hf_process_start(SHELL("sleep 1000"), &process, .runtime = rt), HF_OK);
        assert_int_equal(hf_process_wait(process, &end, .timeout = hf_milliseconds(1)), HF_ERR_TIMEOUT);
        assert_int_equal(hf_process_close(process), HF_OK);
        assert_int_equal(hf_runtime_free(rt), HF_OK);
    }
}

static hf_status unsupported_body(void *arg)
{
    (void)arg;
    hf_process *process = NULL;
    HF_CHECK(hf_process_start(SHELL("exit 0"), &process) == HF_ERR_UNSUPPORTED && process == NULL);
    HF_CHECK_SAY(strstr(hf_error_text(), "sim") != NULL, "%s", hf_error_text());
    return HF_OK;
}

static void a_simulation_has_no_processes(void **state)
{
    (void)state;
    HF_CHECK(hf_sim_run(1, 2, unsupported_body, NULL, NULL) == HF_OK);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(exit_codes_and_signals_are_told),
        cmocka_unit_test(what_cannot_be_started_is_refused),
        cmocka_unit_test(environment_and_folder_are_as_asked),
        cmocka_unit_test(pipes_carry_megabytes_with_back_pressure),
        cmocka_unit_test(many_wait_at_once_and_each_hears_its_own),
        cmocka_unit_test(closing_leaves_no_orphan),
        cmocka_unit_test(what_a_child_leaves_in_its_group_ends_with_it),
        cmocka_unit_test(a_runtime_takes_forgotten_children_along),
        cmocka_unit_test(canceled_starts_lose_no_child),
        cmocka_unit_test(a_plain_thread_starts_processes_too),
        cmocka_unit_test(a_simulation_has_no_processes),
    };
    (void)snprintf(folder, sizeof folder, "/tmp/hf-process-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    int result = hf_test_main("process", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
    (void)rmdir(folder);
    return result;
}
