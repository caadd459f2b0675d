/* Every function of the determinism guard, in code of a workflow, in an activity and on a plain thread. Built twice (tests/CMakeLists.txt): with the
 * guard's archive before the library's, and with the shared library, to be run with the shared guard preloaded.
 *
 *     guard         runs all of it in the current folder
 *     guard list    prints the names: guard.sh compares them with what the guard defines */
#define _GNU_SOURCE
#include <holdfast/holdfast.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_LEN = 4096 };

/* A call: whether the function did its work, and the line in which it is called. */
typedef struct deed {
    const char *name;
    const char *instead; /* what the refusal recommends */
    bool (*call)(int *ret_line);
} deed;

static void require(bool is_true, const char *format, ...)
{
    va_list args;
    if (!is_true) {
        va_start(args, format);
        (void)vfprintf(stderr, format, args);
        va_end(args);
        (void)fputc('\n', stderr);
        exit(1);
    }
}

/* ---- What follows a call that passes ----------------------------------------------------------------------------------------- */

static bool closed(int fd)
{
    return fd >= 0 && close(fd) == 0;
}

static bool ended(pid_t process)
{
    int status = 0;
    if (process == 0) {
        _exit(0);
    }
    return process > 0 && waitpid(process, &status, 0) == process && status == 0;
}

static bool shut(FILE *file)
{
    return file != NULL && fclose(file) == 0;
}

static bool ended_pipe(FILE *pipe)
{
    return pipe != NULL && pclose(pipe) == 0;
}

static bool is_yes(const char *text)
{
    return text != NULL && strcmp(text, "yes") == 0;
}

static bool closed_folder(DIR *folder)
{
    return folder != NULL && closedir(folder) == 0;
}

static bool freed(struct addrinfo *addresses)
{
    freeaddrinfo(addresses);
    return true;
}

static void *nothing(void *arg)
{
    return arg;
}

static int nothing_as_number(void *arg)
{
    (void)arg;
    return 0;
}

/* ---- The calls: one line each, since the refusal names it --------------------------------------------------------------------- */

#define CALL(name, is_done)                 \
    static bool call_##name(int *ret_line)  \
    {                                       \
        *ret_line = __LINE__;               \
        errno = 0;                          \
        return (is_done) && errno != EPERM; \
    }

static const struct timespec NO_SPAN;
static struct timespec timespec_;
static struct timeval timeval_;
static struct addrinfo *addresses;
static pthread_t thread;
static thrd_t thrd;
static char bytes[16];
static struct stat status_of_file;
static struct timeval timeval_none;
static FILE *reopened;
static pid_t process;
static const char NO_BYTES[sizeof bytes];
static char *const ARGV[] = {(char[]){"true"}, NULL};

/* clang-format off */
CALL(time, time(NULL) > 0)
CALL(gettimeofday, gettimeofday(&timeval_, NULL) == 0)
CALL(clock_gettime, clock_gettime(CLOCK_MONOTONIC, &timespec_) == 0)
CALL(clock, clock() != (clock_t)-1)
CALL(timespec_get, timespec_get(&timespec_, TIME_UTC) == TIME_UTC)
CALL(rand, rand() != 0)
CALL(random, random() != 0)
CALL(lrand48, (srand48(7), lrand48()) != 0)
CALL(mrand48, (srand48(7), mrand48()) != 0)
CALL(drand48, (srand48(7), drand48()) > 0)
CALL(getrandom, getrandom(bytes, sizeof bytes, 0) == sizeof bytes)
CALL(getentropy, getentropy(bytes, sizeof bytes) == 0)
CALL(arc4random, arc4random() != 0 || arc4random() != 0)
CALL(arc4random_uniform, arc4random_uniform(1000) < 1000)
CALL(arc4random_buf, (arc4random_buf(bytes, sizeof bytes), memcmp(bytes, NO_BYTES, sizeof bytes)) != 0)
CALL(open, closed(open("file", O_CREAT | O_RDWR, 0600)))
CALL(open64, closed(open64("file", O_CREAT | O_RDWR, 0600)))
CALL(openat, closed(openat(AT_FDCWD, "file", O_CREAT | O_RDWR, 0600)))
CALL(openat64, closed(openat64(AT_FDCWD, "file", O_CREAT | O_RDWR, 0600)))
CALL(creat, closed(creat("file", 0600)))
CALL(fopen, shut(fopen("file", "w")))
CALL(fopen64, shut(fopen64("file", "w")))
CALL(freopen, freopen("file", "w", reopened) != NULL)
CALL(freopen64, freopen64("file", "w", reopened) != NULL)
CALL(access, access("kept", R_OK) == 0)
CALL(stat, stat("kept", &status_of_file) == 0)
CALL(lstat, lstat("kept", &status_of_file) == 0)
CALL(rename, rename("moved", "moved") == 0)
CALL(unlink, unlink("unlinked") == 0)
CALL(remove, remove("removed") == 0)
CALL(mkdir, mkdir("folder", 0700) == 0 && rmdir("folder") == 0)
CALL(opendir, closed_folder(opendir(".")))
CALL(socket, closed(socket(AF_UNIX, SOCK_STREAM, 0)))
CALL(getaddrinfo, getaddrinfo("127.0.0.1", "80", NULL, &addresses) == 0 && freed(addresses))
CALL(pthread_create, pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0)
CALL(thrd_create, thrd_create(&thrd, nothing_as_number, NULL) == thrd_success && thrd_join(thrd, NULL) == thrd_success)
CALL(fork, ended(fork()))
CALL(posix_spawn, posix_spawn(&process, "/bin/true", NULL, NULL, ARGV, NULL) == 0 && ended(process))
CALL(posix_spawnp, posix_spawnp(&process, "true", NULL, NULL, ARGV, NULL) == 0 && ended(process))
CALL(system, system("exit 0") == 0)
CALL(popen, ended_pipe(popen("exit 0", "r")))
CALL(sleep, sleep(0) == 0)
CALL(usleep, usleep(1) == 0)
CALL(nanosleep, nanosleep(&NO_SPAN, NULL) == 0)
CALL(clock_nanosleep, clock_nanosleep(CLOCK_MONOTONIC, 0, &NO_SPAN, NULL) == 0)
CALL(thrd_sleep, thrd_sleep(&NO_SPAN, NULL) == 0)
CALL(poll, poll(NULL, 0, 0) == 0)
CALL(select, select(0, NULL, NULL, NULL, &timeval_none) == 0)
CALL(getenv, is_yes(getenv("HF_GUARDED")))
CALL(secure_getenv, is_yes(secure_getenv("HF_GUARDED")))
/* clang-format on */

#define USE_CLOCK "use hf_wall_now"
#define USE_RANDOM "use hf_random"
#define USE_ACTIVITY "use an activity"
#define USE_FORK "use hf_fork, or an activity"
#define USE_SLEEP "use hf_sleep"
#define USE_INPUT "pass the value in the input"
#define DEED(name, instead)         \
    {                               \
#name, instead, call_##name \
    }

static const deed DEEDS[] = {
    DEED(time, USE_CLOCK),
    DEED(gettimeofday, USE_CLOCK),
    DEED(clock_gettime, USE_CLOCK),
    DEED(clock, USE_CLOCK),
    DEED(timespec_get, USE_CLOCK),
    DEED(rand, USE_RANDOM),
    DEED(random, USE_RANDOM),
    DEED(lrand48, USE_RANDOM),
    DEED(mrand48, USE_RANDOM),
    DEED(drand48, USE_RANDOM),
    DEED(getrandom, USE_RANDOM),
    DEED(getentropy, USE_RANDOM),
    DEED(arc4random, USE_RANDOM),
    DEED(arc4random_uniform, USE_RANDOM),
    DEED(arc4random_buf, USE_RANDOM),
    DEED(open, USE_ACTIVITY),
    DEED(open64, USE_ACTIVITY),
    DEED(openat, USE_ACTIVITY),
    DEED(openat64, USE_ACTIVITY),
    DEED(creat, USE_ACTIVITY),
    DEED(fopen, USE_ACTIVITY),
    DEED(fopen64, USE_ACTIVITY),
    DEED(freopen, USE_ACTIVITY),
    DEED(freopen64, USE_ACTIVITY),
    DEED(access, USE_ACTIVITY),
    DEED(stat, USE_ACTIVITY),
    DEED(lstat, USE_ACTIVITY),
    DEED(rename, USE_ACTIVITY),
    DEED(unlink, USE_ACTIVITY),
    DEED(remove, USE_ACTIVITY),
    DEED(mkdir, USE_ACTIVITY),
    DEED(opendir, USE_ACTIVITY),
    DEED(socket, USE_ACTIVITY),
    DEED(getaddrinfo, USE_ACTIVITY),
    DEED(pthread_create, USE_FORK),
    DEED(thrd_create, USE_FORK),
    DEED(fork, USE_ACTIVITY),
    DEED(posix_spawn, USE_ACTIVITY),
    DEED(posix_spawnp, USE_ACTIVITY),
    DEED(system, USE_ACTIVITY),
    DEED(popen, USE_ACTIVITY),
    DEED(sleep, USE_SLEEP),
    DEED(usleep, USE_SLEEP),
    DEED(nanosleep, USE_SLEEP),
    DEED(clock_nanosleep, USE_SLEEP),
    DEED(thrd_sleep, USE_SLEEP),
    DEED(poll, USE_SLEEP),
    DEED(select, USE_SLEEP),
    DEED(getenv, USE_INPUT),
    DEED(secure_getenv, USE_INPUT),
};

/* printf and its kin pass, and hint at hf_note. */
#define PRINTS(name, call)                 \
    static bool call_##name(int *ret_line) \
    {                                      \
        *ret_line = __LINE__;              \
        return (call) >= 0;                \
    }

int __printf_chk(int flag, const char *format, ...);
int __fprintf_chk(FILE *to, int flag, const char *format, ...);

/* clang-format off */
PRINTS(printf, printf("printed %d\n", 1))
PRINTS(fprintf, fprintf(stdout, "printed %d\n", 2))
PRINTS(__printf_chk, __printf_chk(1, "printed %d\n", 3))
PRINTS(__fprintf_chk, __fprintf_chk(stdout, 1, "printed %d\n", 4))
PRINTS(puts, puts("printed 5"))
/* clang-format on */

/* The hint calls the checked variants by the name that their author wrote. */
static const struct hint {
    deed deed;
    const char *shown;
} HINTS[] = {
    {DEED(printf, NULL), "printf"},         {DEED(fprintf, NULL), "fprintf"}, {DEED(__printf_chk, NULL), "printf"},
    {DEED(__fprintf_chk, NULL), "fprintf"}, {DEED(puts, NULL), "puts"},
};

/* ---- Playing them ------------------------------------------------------------------------------------------------------------- */

typedef struct play {
    const deed *deed;
    int times;
    bool is_done;
    int error;
    int line;
} play;

static play now; /* what the workflow or the activity does; one runs at a time */

static hf_status act(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    for (int i = 0; i < now.times; i++) {
        now.is_done = now.deed->call(&now.line);
        now.error = errno;
    }
    return HF_OK;
}

static hf_status act_outside(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("act", in, ret_out, .start_to_close = hf_minutes(1));
}

static void ignore(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)event;
    (void)fields;
}

/* What the real functions need to do their work. */
static void prepare(const deed *one)
{
    static const char *const FILES[] = {"kept", "moved", "unlinked", "removed"};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        require(closed(creat(FILES[i], 0600)), "cannot make %s", FILES[i]);
    }
    reopened = fopen("file", "w");
    require(reopened != NULL && setenv("HF_GUARDED", "yes", 1) == 0, "cannot prepare %s", one->name);
    memset(bytes, 0, sizeof bytes);
    now = (play){.deed = one, .times = 1};
}

/* Runs the call in code of a workflow, or in an activity of one. */
static hf_status run(const deed *one, const char *workflow, int times, char *text)
{
    HF_AUTO(hf_testenv_free) hf_testenv *env = NULL;
    prepare(one);
    now.times = times;
    HF_OR_DIE(hf_testenv_new(&env, .log = ignore));
    HF_OR_DIE(hf_worker_add_workflow(hf_testenv_worker(env), "act", act));
    HF_OR_DIE(hf_worker_add_workflow(hf_testenv_worker(env), "act_outside", act_outside));
    HF_OR_DIE(hf_testenv_activity(env, "act", act));
    hf_status status = hf_testenv_run(env, workflow, hf_payload_none(), NULL);
    (void)snprintf(text, TEXT_LEN, "%s", status == HF_OK ? "" : hf_error_text());
    (void)fclose(reopened);
    return status;
}

static void check_refused(const deed *one)
{
    char text[TEXT_LEN];
    char expected[TEXT_LEN];
    hf_status status = run(one, "act", 1, text);
    (void)snprintf(expected, sizeof expected,
                   "%s() in code of a workflow, at guard.c:%d: a replay would find something else; %s", one->name,
                   now.line, one->instead);
    require(status == HF_ERR_FAILED, "%s: the workflow task did not fail: %s %s", one->name, hf_status_name(status),
            text);
    require(!now.is_done && now.error == EPERM, "%s: the call was not refused: errno %d", one->name, now.error);
    require(strstr(text, expected) != NULL, "%s: no '%s' in: %s", one->name, expected, text);
}

static void check_allowed(const deed *one)
{
    char text[TEXT_LEN];
    hf_status status = run(one, "act_outside", 1, text);
    require(status == HF_OK && now.is_done, "%s in an activity: %s, errno %d, %s", one->name, hf_status_name(status),
            now.error, text);
    prepare(one);
    HF_OR_DIE(act(hf_payload_none(), NULL));
    (void)fclose(reopened);
    require(now.is_done, "%s on a plain thread: errno %d", one->name, now.error);
}

/* What one play writes to stderr. */
static void hear(const deed *one, const char *workflow, char *ret_said)
{
    char text[TEXT_LEN];
    int stderr_before = dup(STDERR_FILENO);
    int file = open("said", O_CREAT | O_TRUNC | O_RDWR, 0600);
    require(stderr_before >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0, "cannot listen");
    hf_status status = run(one, workflow, 3, text);
    require(dup2(stderr_before, STDERR_FILENO) >= 0 && close(stderr_before) == 0, "cannot stop to listen");
    ssize_t len = pread(file, ret_said, TEXT_LEN - 1, 0);
    require(len >= 0 && close(file) == 0, "cannot read what was said");
    ret_said[len] = '\0';
    require(status == HF_OK && now.is_done, "%s does not pass: %s", one->name, text);
}

static void check_hint(const struct hint *hint)
{
    char said[TEXT_LEN];
    char expected[TEXT_LEN];
    hear(&hint->deed, "act_outside", said);
    require(said[0] == '\0', "%s in an activity: %s", hint->deed.name, said);
    hear(&hint->deed, "act", said); /* three times, and one hint */
    (void)snprintf(expected, sizeof expected,
                   "holdfast guard: %s() in code of a workflow, at guard.c:%d: it prints again in every replay; "
                   "hf_note does not\n",
                   hint->shown, now.line);
    require(strcmp(said, expected) == 0, "%s: '%s' was said, not '%s'", hint->deed.name, said, expected);
}

int main(int argc, char **argv)
{
    bool is_list = argc > 1 && strcmp(argv[1], "list") == 0;
    for (size_t i = 0; i < sizeof DEEDS / sizeof *DEEDS; i++) {
        if (is_list) {
            printf("%s\n", DEEDS[i].name);
            continue;
        }
        check_refused(&DEEDS[i]);
        check_allowed(&DEEDS[i]);
    }
    for (size_t i = 0; i < sizeof HINTS / sizeof *HINTS; i++) {
        if (is_list) {
            printf("%s\n", HINTS[i].deed.name);
            continue;
        }
        check_hint(&HINTS[i]);
    }
    return 0;
}
