/* Child processes through the helper. That something is gone is seen at a pipe: every descendant holds its write end,
 * and the end of file comes when the last of them is dead. */
/* labels: threads */
#include "unit/env/posix_check.h"

#include "env/posix/helper_start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

typedef struct fixture {
    hf_helper *helper;
    int fd;           /* tells of events */
    uint64_t request; /* of the last start */
} fixture;

static fixture it;

static int open_helper(void **state)
{
    (void)state;
    hf_op_init(&op);
    it = (fixture){.fd = -1};
    hf_status status = ops()->helper_open(posix(), &op, &it.helper, &it.fd);
    if (status != HF_OK) {
        print_message("helper_open: %s\n", op.message);
    }
    return status == HF_OK ? 0 : -1;
}

static int close_helper(void **state)
{
    (void)state;
    ops()->helper_close(posix(), it.helper);
    return 0;
}

static hf_child_event next_event(void)
{
    hf_child_event event = {0};
    hf_status status = ops()->child_event(posix(), &op, it.helper, &event);
    while (status == HF_ERR_AGAIN) {
        wait_for(it.fd, HF_READABLE);
        status = ops()->child_event(posix(), &op, it.helper, &event);
    }
    ASSERT_STATUS(HF_OK, status);
    return event;
}

/* Asks for a child and returns what came of it. */
static hf_child_event start(const hf_spawn *spawn)
{
    it.request++;
    ASSERT_STATUS(HF_OK, ops()->child_start(posix(), &op, it.helper, it.request, spawn));
    hf_child_event event = next_event();
    assert_true(event.started);
    assert_int_equal(event.request, it.request);
    return event;
}

static hf_exit end(void)
{
    hf_child_event event = next_event();
    assert_false(event.started);
    assert_int_equal(event.request, it.request);
    return event.exit;
}

static void assert_exit(int code, int signal)
{
    hf_exit exit = end();
    assert_int_equal(exit.code, code);
    assert_int_equal(exit.signal, signal);
}

/* Runs a shell script and returns its whole output. */
static const char *output_of(const hf_spawn *spawn)
{
    static char text[8192];
    size_t len = 0;
    int fds[2];
    ASSERT_STATUS(HF_OK, ops()->pipe(posix(), &op, &fds[0], &fds[1]));
    hf_spawn with_pipe = *spawn;
    with_pipe.fds[1] = fds[1];
    hf_child_event event = start(&with_pipe);
    assert_int_equal(event.error, 0);
    ops()->close(posix(), fds[1]);
    for (;;) {
        size_t got = 0;
        hf_status status = ops()->read(posix(), &op, fds[0], text + len, sizeof text - 1 - len, &got);
        if (status == HF_ERR_AGAIN) {
            wait_for(fds[0], HF_READABLE);
            continue;
        }
        ASSERT_STATUS(HF_OK, status);
        if (got == 0) {
            break;
        }
        len += got;
    }
    text[len] = '\0';
    ops()->close(posix(), fds[0]);
    assert_exit(0, 0);
    return text;
}

static void children_end_with_their_code_or_signal(void **state)
{
    (void)state;
    hf_spawn plain = {.argv = ARGV("true"), .fds = {-1, -1, -1}};
    hf_child_event event = start(&plain);
    assert_int_equal(event.error, 0);
    assert_true(event.pid > 1);
    assert_exit(0, 0);
    hf_spawn seven = {.argv = ARGV("/bin/sh", "-c", "exit 7"), .fds = {-1, -1, -2}};
    assert_int_equal(start(&seven).error, 0);
    assert_exit(7, 0);
    hf_spawn killed = {.argv = ARGV("sh", "-c", "kill -KILL $$"), .fds = {-1, -1, -1}};
    assert_int_equal(start(&killed).error, 0);
    assert_exit(-1, SIGKILL);
    hf_child_event none;
    ASSERT_STATUS(HF_ERR_AGAIN, ops()->child_event(posix(), &op, it.helper, &none));
}

static void a_program_that_cannot_start_tells_why(void **state)
{
    (void)state;
    char file[] = "/tmp/hf-process-XXXXXX";
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    (void)close(fd);
    static const char LONG_PATH[] = "PATH=/nonexistent::/also/not/there:/etc/passwd";
    char big[5000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    const struct {
        const char *name;
        int error;
        const char *cwd;
    } CASES[] = {
        {"no-such-program-anywhere", ENOENT, NULL},
        {"/no/such/program", ENOENT, NULL},
        {"", ENOENT, NULL},
        {file, EACCES, NULL}, /* not executable */
        {"/etc/passwd/x", ENOTDIR, NULL},
        {big, ENOENT, NULL}, /* fits into no path */
        {"true", ENOENT, "/no/such/folder"},
        {"true", ENOTDIR, "/etc/passwd"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        print_message("'%.40s' in '%s'\n", CASES[i].name, CASES[i].cwd != NULL ? CASES[i].cwd : "");
        hf_spawn spawn = {.argv = ARGV(CASES[i].name), .cwd = CASES[i].cwd, .fds = {-1, -1, -1}};
        assert_int_equal(start(&spawn).error, CASES[i].error);
    }
    /* The child's PATH counts, not ours. */
    hf_spawn no_path = {.argv = ARGV("true"), .env = ARGV(LONG_PATH), .fds = {-1, -1, -1}};
    assert_int_equal(start(&no_path).error, ENOENT);
    hf_spawn default_path = {.argv = ARGV("true"), .env = ARGV("X=1"), .fds = {-1, -1, -1}};
    assert_int_equal(start(&default_path).error, 0);
    assert_exit(0, 0);
    /* Nothing comes after a failed start. */
    hf_child_event none;
    ASSERT_STATUS(HF_ERR_AGAIN, ops()->child_event(posix(), &op, it.helper, &none));
    assert_int_equal(unlink(file), 0);

    hf_spawn empty = {.argv = (const char *const[]){NULL}, .fds = {-1, -1, -1}};
    ASSERT_STATUS(HF_ERR_INVALID, ops()->child_start(posix(), &op, it.helper, 1, &empty));
    hf_spawn bad_fd = {.argv = ARGV("true"), .fds = {1000000, -1, -1}};
    ASSERT_STATUS(HF_ERR_IO, ops()->child_start(posix(), &op, it.helper, 1, &bad_fd));
}

static void a_denied_entry_of_path_is_the_reason_if_nothing_better_comes(void **state)
{
    (void)state;
    char folder[] = "/tmp/hf-process-XXXXXX";
    char file[64];
    char path[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(file, sizeof file, "%s/true", folder);
    (void)snprintf(path, sizeof path, "PATH=%s", folder);
    int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    hf_spawn denied = {.argv = ARGV("true"), .env = ARGV(path), .fds = {-1, -1, -1}};
    assert_int_equal(start(&denied).error, EACCES);
    (void)snprintf(path, sizeof path, "PATH=%s:/usr/bin:/bin", folder);
    assert_int_equal(start(&denied).error, 0);
    assert_exit(0, 0);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void environment_directory_and_input_reach_the_child(void **state)
{
    (void)state;
    hf_spawn env = {.argv = ARGV("/bin/sh", "-c", "echo \"$A-$B-$0\"", "zero"),
                    .env = ARGV("A=one", "B=two words"),
                    .fds = {-1, -1, -2}};
    assert_string_equal(output_of(&env), "one-two words-zero\n");
    assert_int_equal(setenv("HF_TEST_INHERITED", "yes", 1), 0);
    hf_spawn inherited = {.argv = ARGV("sh", "-c", "echo $HF_TEST_INHERITED"), .fds = {-1, -1, -1}};
    assert_string_equal(output_of(&inherited), "yes\n");

    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir("/usr"), 0); /* after the helper was started: today's counts */
    hf_spawn here = {.argv = ARGV("/bin/pwd"), .fds = {-1, -1, -1}};
    assert_string_equal(output_of(&here), "/usr\n");
    hf_spawn relative = {.argv = ARGV("/bin/pwd"), .cwd = "share", .fds = {-1, -1, -1}};
    assert_string_equal(output_of(&relative), "/usr/share\n");
    hf_spawn absolute = {.argv = ARGV("/bin/pwd"), .cwd = "/", .fds = {-1, -1, -1}};
    assert_string_equal(output_of(&absolute), "/\n");
    assert_int_equal(chdir(before), 0);

    int fds[2];
    size_t len = 0;
    ASSERT_STATUS(HF_OK, ops()->pipe(posix(), &op, &fds[0], &fds[1]));
    ASSERT_STATUS(HF_OK, ops()->write(posix(), &op, fds[1], "from the host", 13, &len));
    ops()->close(posix(), fds[1]);
    hf_spawn cat = {.argv = ARGV("cat"), .fds = {fds[0], -1, -1}};
    assert_string_equal(output_of(&cat), "from the host");
    ops()->close(posix(), fds[0]);
}

/* env-H4 */
static void a_child_starts_with_a_clean_slate(void **state)
{
    (void)state;
    /* Descriptors 0, 1, 2 and the one ls has for the folder; a blocking output; an empty signal mask; its own group. */
    hf_spawn descriptors = {.argv = ARGV("/bin/sh", "-c", "ls /proc/self/fd | tr '\\n' ' '"), .fds = {-1, -1, -1}};
    assert_string_equal(output_of(&descriptors), "0 1 2 3 ");
    hf_spawn flags = {.argv = ARGV("sh", "-c", "grep ^flags /proc/self/fdinfo/1"), .fds = {-1, -1, -1}};
    unsigned long bits = strtoul(output_of(&flags) + strlen("flags:"), NULL, 8);
    assert_int_equal(bits & O_NONBLOCK, 0);
    assert_true(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
    hf_spawn masks = {.argv = ARGV("sed", "-n", "/^Sig[BIC]/p", "/proc/self/status"), .fds = {-1, -1, -1}};
    assert_string_equal(output_of(&masks), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
                                           "SigCgt:\t0000000000000000\n");
    assert_true(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
    hf_spawn group = {.argv = ARGV("sh", "-c", "set -- $(cat /proc/$$/stat); test $$ = $5 && echo own"),
                      .fds = {-1, -1, -1}};
    assert_string_equal(output_of(&group), "own\n");
}

static void big_arguments_and_many_of_them_pass(void **state)
{
    (void)state;
    enum { COUNT = 20, LEN = 10 * 1024 }; /* 200 KiB */
    static char bytes[COUNT][LEN + 1];
    const char *argv[COUNT + 5] = {"sh", "-c", "echo $# $(printf %s \"$@\" | wc -c)", "zero"};
    for (size_t i = 0; i < COUNT; i++) {
        memset(bytes[i], 'a' + (int)i, LEN);
        argv[4 + i] = bytes[i];
    }
    hf_spawn spawn = {.argv = argv, .fds = {-1, -1, -1}};
    assert_string_equal(output_of(&spawn), "20 204800\n");

    char *huge = malloc(4 * 1024 * 1024);
    assert_non_null(huge);
    memset(huge, 'x', 4 * 1024 * 1024 - 1);
    huge[4 * 1024 * 1024 - 1] = '\0';
    hf_spawn too_big = {.argv = ARGV("true", huge), .fds = {-1, -1, -1}};
    assert_int_equal(start(&too_big).error, E2BIG);
    free(huge);
    huge = malloc(65 * 1024 * 1024);
    assert_non_null(huge);
    memset(huge, 'x', 65 * 1024 * 1024 - 1);
    huge[65 * 1024 * 1024 - 1] = '\0';
    hf_spawn absurd = {.argv = ARGV("true", huge), .fds = {-1, -1, -1}};
    ASSERT_STATUS(HF_ERR_TOO_BIG, ops()->child_start(posix(), &op, it.helper, 1, &absurd));
    free(huge);
}

/* ---- Ends ---- */

/* Waits until `count` letters were written to the pipe by the processes that hold it. */
static void wait_letters(int fd, size_t count)
{
    while (count > 0) {
        char letters[16];
        ssize_t got = read(fd, letters, count < sizeof letters ? count : sizeof letters);
        if (got < 0 && errno == EAGAIN) {
            wait_for(fd, HF_READABLE);
            continue;
        }
        assert_true(got > 0);
        count -= (size_t)got;
    }
}

static void wait_end(int fd)
{
    for (;;) {
        char byte;
        ssize_t got = read(fd, &byte, 1);
        if (got == 0) {
            return;
        }
        assert_true(got < 0 && errno == EAGAIN);
        wait_for(fd, HF_READABLE);
    }
}

/* A child in the foreground, one in its group, one in a session of its own, a daemon after two forks, and a daemon of
 * the session: five processes that never end by themselves, each with a letter. SIGTERM, INT and HUP do not help. */
static const char TREE[] = "trap '' TERM INT HUP\n"
                           "forever() { printf $1; while :; do read x < $FIFO; done; }\n"
                           "export FIFO\n"
                           "(forever b) &\n"
                           "setsid sh -c 'trap \"\" TERM HUP; printf c; (printf d; while :; do read x < $FIFO; done) & "
                           "while :; do read x < $FIFO; done' &\n"
                           "( (forever e) & )\n"
                           "forever a\n";

typedef struct forest {
    char folder[32];
    char fifo[64]; /* nobody ever opens it for writing: opening it for reading blocks */
    char variable[80];
    int fds[2]; /* every process holds fds[1] */
} forest;

static void plant(forest *trees)
{
    (void)snprintf(trees->folder, sizeof trees->folder, "/tmp/hf-process-XXXXXX");
    assert_non_null(mkdtemp(trees->folder));
    (void)snprintf(trees->fifo, sizeof trees->fifo, "%s/fifo", trees->folder);
    (void)snprintf(trees->variable, sizeof trees->variable, "FIFO=%s", trees->fifo);
    assert_int_equal(mkfifo(trees->fifo, 0600), 0);
    ASSERT_STATUS(HF_OK, ops()->pipe(posix(), &op, &trees->fds[0], &trees->fds[1]));
}

static void clear(forest *trees)
{
    ops()->close(posix(), trees->fds[0]);
    assert_int_equal(unlink(trees->fifo), 0);
    assert_int_equal(rmdir(trees->folder), 0);
}

static hf_spawn tree_of(const forest *trees, const char *const *env)
{
    static const char *const TREE_ARGV[] = {"/bin/sh", "-c", TREE, NULL};
    return (hf_spawn){.argv = TREE_ARGV, .env = env, .fds = {-1, trees->fds[1], -1}};
}

/* env-H1, env-H3 */
static void signals_reach_the_whole_group(void **state)
{
    (void)state;
    int fds[2];
    ASSERT_STATUS(HF_OK, ops()->pipe(posix(), &op, &fds[0], &fds[1]));
    hf_spawn spawn = {.argv = ARGV("sh", "-c", "printf a; (printf b; exec sleep 1000) & exec sleep 1000"),
                      .fds = {-1, fds[1], -1}};
    hf_child_event event = start(&spawn);
    assert_int_equal(event.error, 0);
    ops()->close(posix(), fds[1]);
    wait_letters(fds[0], 2);
    ASSERT_STATUS(HF_ERR_INVALID, ops()->child_signal(posix(), &op, it.helper, event.pid, 65));
    ASSERT_STATUS(HF_ERR_INVALID, ops()->child_signal(posix(), &op, it.helper, 0, SIGTERM));
    ASSERT_STATUS(HF_OK, ops()->child_signal(posix(), &op, it.helper, getpid(), SIGKILL)); /* not a child: no effect */
    ASSERT_STATUS(HF_OK, ops()->child_signal(posix(), &op, it.helper, event.pid, SIGTERM));
    assert_exit(-1, SIGTERM);
    wait_end(fds[0]);                                                                       /* the other one too */
    ASSERT_STATUS(HF_OK, ops()->child_signal(posix(), &op, it.helper, event.pid, SIGTERM)); /* gone: no effect */
    ops()->close(posix(), fds[0]);
}

/* env-E7 */
static void closing_the_helper_leaves_no_descendant(void **state)
{
    (void)state;
    forest trees;
    plant(&trees);
    const char *const env[] = {trees.variable, "PATH=/usr/bin:/bin", NULL};
    ASSERT_STATUS(HF_OK, ops()->helper_open(posix(), &op, &it.helper, &it.fd));
    for (int i = 0; i < 3; i++) {
        hf_spawn spawn = tree_of(&trees, env);
        assert_int_equal(start(&spawn).error, 0);
    }
    ops()->close(posix(), trees.fds[1]);
    wait_letters(trees.fds[0], 15);
    ops()->helper_close(posix(), it.helper);
    struct pollfd look = {.fd = trees.fds[0], .events = POLLIN};
    assert_int_equal(poll(&look, 1, 0), 1); /* already, for close has waited */
    wait_end(trees.fds[0]);
    clear(&trees);
}

/* A host that starts trees and then waits to be killed. With `fork_copy`, a copy of it goes on living. */
static void host_main(forest *trees, bool fork_copy, int ready_fd)
{
    const char *const env[] = {trees->variable, "PATH=/usr/bin:/bin", NULL};
    if (ops()->helper_open(posix(), &op, &it.helper, &it.fd) != HF_OK) {
        _exit(1);
    }
    hf_spawn spawn = tree_of(trees, env);
    for (uint64_t i = 0; i < 2; i++) {
        if (ops()->child_start(posix(), &op, it.helper, i, &spawn) != HF_OK) {
            _exit(1);
        }
    }
    ops()->close(posix(), trees->fds[1]);
    pid_t copy = fork_copy ? fork() : 0;
    if (copy > 0) {
        ssize_t put = write(ready_fd, &copy, sizeof copy);
        (void)put;
    }
    for (;;) {
        (void)pause();
    }
}

static void kill_host(bool fork_copy)
{
    forest trees;
    plant(&trees);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t host = fork();
    assert_true(host >= 0);
    if (host == 0) {
        host_main(&trees, fork_copy, ready[1]);
    }
    ops()->close(posix(), trees.fds[1]);
    pid_t copy = 0;
    if (fork_copy) {
        assert_int_equal(read(ready[0], &copy, sizeof copy), sizeof copy);
    }
    wait_letters(trees.fds[0], 10);
    assert_int_equal(kill(host, SIGKILL), 0);
    wait_end(trees.fds[0]);
    assert_int_equal(reap(host), SIGKILL);
    if (fork_copy) {
        assert_int_equal(kill(copy, SIGKILL), 0);
    }
    (void)close(ready[0]);
    (void)close(ready[1]);
    clear(&trees);
}

/* env-E7 */
static void kill_9_of_the_host_leaves_no_descendant(void **state)
{
    (void)state;
    kill_host(false);
    kill_host(true);
}

/* ---- Good manners ---- */

static atomic_int child_signal_count;

static void on_child_signal(int number)
{
    (void)number;
    atomic_fetch_add(&child_signal_count, 1);
}

/* env-E6 */
static void the_host_sees_neither_sigchld_nor_a_child(void **state)
{
    (void)state;
    assert_true(signal(SIGCHLD, on_child_signal) != SIG_ERR);
    for (int i = 0; i < 5; i++) {
        ASSERT_STATUS(HF_OK, ops()->helper_open(posix(), &op, &it.helper, &it.fd));
        assert_true((fcntl(it.fd, F_GETFD) & FD_CLOEXEC) != 0 && (fcntl(it.fd, F_GETFL) & O_NONBLOCK) != 0);
        hf_spawn spawn = {.argv = ARGV("true"), .fds = {-1, -1, -1}};
        assert_int_equal(start(&spawn).error, 0);
        assert_exit(0, 0);
        errno = 0;
        assert_true(waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD);
        ops()->helper_close(posix(), it.helper);
        assert_true(waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD);
    }
    assert_int_equal(atomic_load(&child_signal_count), 0);
    assert_true(signal(SIGCHLD, SIG_IGN) == on_child_signal); /* a host may also ignore it */
    ASSERT_STATUS(HF_OK, ops()->helper_open(posix(), &op, &it.helper, &it.fd));
    hf_spawn three = {.argv = ARGV("sh", "-c", "exit 3"), .fds = {-1, -1, -1}};
    assert_int_equal(start(&three).error, 0);
    assert_exit(3, 0);
    ops()->helper_close(posix(), it.helper);
    assert_true(signal(SIGCHLD, SIG_DFL) == SIG_IGN);
    ops()->helper_close(posix(), NULL);
}

static void a_host_that_adopts_orphans_keeps_no_zombie(void **state)
{
    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    ASSERT_STATUS(HF_OK, ops()->helper_open(posix(), &op, &it.helper, &it.fd));
    hf_spawn spawn = {.argv = ARGV("true"), .fds = {-1, -1, -1}};
    assert_int_equal(start(&spawn).error, 0);
    assert_exit(0, 0);
    ops()->helper_close(posix(), it.helper);
    errno = 0;
    assert_true(waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

static void a_forked_copy_cannot_end_the_hosts_children(void **state)
{
    (void)state;
    hf_spawn spawn = {.argv = ARGV("sleep", "1000"), .fds = {-1, -1, -1}};
    hf_child_event event = start(&spawn);
    assert_int_equal(event.error, 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        ops()->helper_close(posix(), it.helper);
        _exit(0);
    }
    assert_int_equal(reap(pid), 0);
    ASSERT_STATUS(HF_OK, ops()->child_signal(posix(), &op, it.helper, event.pid, SIGUSR1));
    assert_exit(-1, SIGUSR1); /* it was there to be killed by this */
}

static void every_place_for_the_program_works(void **state)
{
    (void)state;
    char folder[] = "/tmp/hf-process-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("TMPDIR", folder, 1), 0);
    for (int place = 0; place <= HF_IMAGE_TMP; place++) {
        ASSERT_STATUS(HF_OK, hf_posix_helper_open_from(posix(), &op, (hf_image_place)place, &it.helper, &it.fd));
        hf_spawn spawn = {.argv = ARGV("true"), .fds = {-1, -1, -1}};
        assert_int_equal(start(&spawn).error, 0);
        assert_exit(0, 0);
        ops()->helper_close(posix(), it.helper);
    }
    assert_int_equal(rmdir(folder), 0); /* the file is gone from it */
    ASSERT_STATUS(HF_OK,
                  hf_posix_helper_open_from(posix(), &op, HF_IMAGE_TMPDIR, &it.helper, &it.fd)); /* the next one */
    ops()->helper_close(posix(), it.helper);
    assert_int_equal(unsetenv("TMPDIR"), 0);
    hf_helper *none = NULL;
    ASSERT_STATUS(HF_ERR_NOT_FOUND, hf_posix_helper_open_from(posix(), &op, HF_IMAGE_PLACE_COUNT, &none, &it.fd));
}

static void without_descriptors_a_start_is_a_limit(void **state)
{
    (void)state;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(0);
    (void)close(next);
    hf_spawn spawn = {.argv = ARGV("true"), .fds = {-1, -1, -1}};
    for (rlim_t room = 0; room < 2; room++) {
        struct rlimit low = {.rlim_cur = (rlim_t)next + room, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        hf_status status = ops()->child_start(posix(), &op, it.helper, 1, &spawn);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        ASSERT_STATUS(HF_ERR_LIMIT, status);
    }
    for (rlim_t room = 0; room < 4; room++) {
        hf_helper *none = NULL;
        int fd = -1;
        struct rlimit low = {.rlim_cur = (rlim_t)next + room, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        hf_status status = ops()->helper_open(posix(), &op, &none, &fd);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        ASSERT_STATUS(HF_ERR_LIMIT, status);
    }
    assert_int_equal(dup(0), next); /* nothing leaked */
    (void)close(next);
    assert_int_equal(start(&spawn).error, 0);
    assert_exit(0, 0);
}

static void a_dead_helper_is_noticed_and_its_children_are_dead(void **state)
{
    (void)state;
    int fds[2];
    ASSERT_STATUS(HF_OK, ops()->helper_open(posix(), &op, &it.helper, &it.fd));
    int go[2];
    size_t len = 0;
    ASSERT_STATUS(HF_OK, ops()->pipe(posix(), &op, &fds[0], &fds[1]));
    ASSERT_STATUS(HF_OK, ops()->pipe(posix(), &op, &go[0], &go[1]));
    hf_spawn spawn = {.argv = ARGV("sh", "-c", "read go; printf a; kill -KILL $PPID; exec sleep 1000"),
                      .fds = {go[0], fds[1], -1}};
    assert_int_equal(start(&spawn).error, 0);
    ASSERT_STATUS(HF_OK, ops()->write(posix(), &op, go[1], "go\n", 3, &len));
    ops()->close(posix(), fds[1]);
    ops()->close(posix(), go[0]);
    ops()->close(posix(), go[1]);
    wait_letters(fds[0], 1);
    wait_end(fds[0]);
    hf_child_event event;
    hf_status status = ops()->child_event(posix(), &op, it.helper, &event);
    while (status == HF_ERR_AGAIN || (status == HF_OK && !event.started)) {
        wait_for(it.fd, HF_READABLE);
        status = ops()->child_event(posix(), &op, it.helper, &event);
    }
    ASSERT_STATUS(HF_ERR_CLOSED, status);
    hf_spawn late = {.argv = ARGV("true"), .fds = {-1, -1, -1}};
    ASSERT_STATUS(HF_ERR_CLOSED, ops()->child_start(posix(), &op, it.helper, 1, &late));
    ops()->helper_close(posix(), it.helper);
    ops()->close(posix(), fds[0]);
}

/* env-H2 */
static void many_children_at_once_are_all_told_of(void **state)
{
    (void)state;
    enum { COUNT = 600 };             /* more replies than the socket holds */
    static unsigned char seen[COUNT]; /* bit 1 = started, bit 2 = ended */
    hf_spawn spawn = {.argv = ARGV("/bin/true"), .env = ARGV("X=1"), .fds = {-1, -1, -1}};
    uint64_t asked = 0;
    int told = 0;
    memset(seen, 0, sizeof seen);
    while (told < 2 * COUNT) {
        hf_status status = HF_ERR_AGAIN;
        if (asked < COUNT) {
            status = ops()->child_start(posix(), &op, it.helper, asked, &spawn);
            asked += status == HF_OK ? 1 : 0;
        }
        if (status == HF_OK) {
            continue; /* nothing is read as long as the helper takes more */
        }
        ASSERT_STATUS(HF_ERR_AGAIN, status);
        hf_child_event event = next_event();
        assert_true(event.request < COUNT);
        assert_int_equal(event.error, 0);
        assert_int_equal(seen[event.request], event.started ? 0 : 1);
        seen[event.request] |= event.started ? 1 : 2;
        told++;
    }
    hf_child_event none;
    ASSERT_STATUS(HF_ERR_AGAIN, ops()->child_event(posix(), &op, it.helper, &none));
}

#define WITH_HELPER(name) cmocka_unit_test_setup_teardown(name, open_helper, close_helper)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_HELPER(children_end_with_their_code_or_signal),
        WITH_HELPER(a_program_that_cannot_start_tells_why),
        WITH_HELPER(a_denied_entry_of_path_is_the_reason_if_nothing_better_comes),
        WITH_HELPER(environment_directory_and_input_reach_the_child),
        WITH_HELPER(a_child_starts_with_a_clean_slate),
        WITH_HELPER(big_arguments_and_many_of_them_pass),
        WITH_HELPER(signals_reach_the_whole_group),
        cmocka_unit_test(closing_the_helper_leaves_no_descendant),
        cmocka_unit_test(kill_9_of_the_host_leaves_no_descendant),
        cmocka_unit_test(the_host_sees_neither_sigchld_nor_a_child),
        cmocka_unit_test(a_host_that_adopts_orphans_keeps_no_zombie),
        WITH_HELPER(a_forked_copy_cannot_end_the_hosts_children),
        cmocka_unit_test(every_place_for_the_program_works),
        WITH_HELPER(without_descriptors_a_start_is_a_limit),
        cmocka_unit_test(a_dead_helper_is_noticed_and_its_children_are_dead),
        WITH_HELPER(many_children_at_once_are_all_told_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
