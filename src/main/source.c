/* Access to a database. If no program has it open, it is opened read only. If a program has it open, the program is
 * asked through its socket; a command that needs the whole database at rest lets that program make a copy, opens the
 * copy and removes it at the end. */
#include "main/grid.h"

#include "base/glyph.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How long to wait for a program that is opening or closing its file: a recovery may take seconds. */
enum { PATIENCE_S = 5, PAUSE_MS = 50, PROGRESS_EVERY_MS = 100 };

int hf_complain(int code, const char *format, ...)
{
    char text[2 * HF_PATH_LEN_MAX]; /* the message may contain a path */
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hf_progress(NULL);
    hf_text_clean(text);
    bool has_colors = hf_has_colors(STDERR_FILENO);
    (void)fprintf(stderr, "%sholdfast:%s %s\n", has_colors ? "\033[31m" : "", has_colors ? "\033[0m" : "", text);
    return code;
}

static pthread_mutex_t progress_lock = PTHREAD_MUTEX_INITIALIZER; /* the thread of hf_wait_begin writes, too */

static void write_progress(const char *format, va_list args)
{
    static bool is_shown;
    static int64_t last_ns; /* when it was written */
    hf_env *env = hf_env_posix();
    int64_t now_ns = env->ops->now(env).ns;
    if (format == NULL) {
        if (is_shown) {
            (void)fputs("\r\033[K", stderr);
            is_shown = false;
        }
        return;
    }
    bool is_too_soon = is_shown && now_ns - last_ns < hf_milliseconds(PROGRESS_EVERY_MS).ns;
    if (is_too_soon || isatty(STDERR_FILENO) == 0) {
        return;
    }
    last_ns = now_ns;
    (void)fputs("\r\033[K", stderr);
    (void)vfprintf(stderr, format, args);
    is_shown = true;
}

void hf_progress(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)pthread_mutex_lock(&progress_lock);
    write_progress(format, args);
    (void)pthread_mutex_unlock(&progress_lock);
    va_end(args);
}

/* ---- A call that does not say how far it is ------------------------------------------------------------------------------- */

static struct {
    pthread_t thread;
    pthread_mutex_t lock; /* of is_over */
    pthread_cond_t ends;
    bool is_running; /* of the thread that begins and ends it */
    bool is_over;
    char what[200];
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Shows how long it has taken, from the first second on. */
static void *tell_waiting(void *arg)
{
    struct timespec until = {0};
    int64_t ms = 1000;
    (void)arg;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 1;
    (void)pthread_mutex_lock(&waiting.lock);
    while (!waiting.is_over) {
        if (pthread_cond_timedwait(&waiting.ends, &waiting.lock, &until) == ETIMEDOUT) {
            hf_progress("%s: %lld s", waiting.what, (long long)(ms / 1000));
            ms += PROGRESS_EVERY_MS;
            until.tv_nsec += PROGRESS_EVERY_MS * 1000000L;
            until.tv_sec += until.tv_nsec / 1000000000;
            until.tv_nsec %= 1000000000;
        }
    }
    (void)pthread_mutex_unlock(&waiting.lock);
    return NULL;
}

void hf_wait_begin(const char *what, const char *of)
{
    pthread_condattr_t clock;
    hf_assert(!waiting.is_running);
    if (isatty(STDERR_FILENO) == 0) {
        return;
    }
    (void)snprintf(waiting.what, sizeof waiting.what, "%s%s%s", what, of != NULL ? " " : "", of != NULL ? of : "");
    hf_text_clean(waiting.what);
    waiting.is_over = false;
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&waiting.ends, &clock);
    (void)pthread_condattr_destroy(&clock);
    waiting.is_running = pthread_create(&waiting.thread, NULL, tell_waiting, NULL) == 0; /* else nothing is shown */
    if (!waiting.is_running) {
        (void)pthread_cond_destroy(&waiting.ends);
    }
}

void hf_wait_end(void)
{
    if (waiting.is_running) {
        (void)pthread_mutex_lock(&waiting.lock);
        waiting.is_over = true;
        (void)pthread_cond_signal(&waiting.ends);
        (void)pthread_mutex_unlock(&waiting.lock);
        (void)pthread_join(waiting.thread, NULL);
        (void)pthread_cond_destroy(&waiting.ends);
        waiting.is_running = false;
    }
    hf_progress(NULL);
}

bool hf_takes_long(void)
{
    static int64_t since_ns;
    hf_env *env = hf_env_posix();
    int64_t now_ns = env->ops->now(env).ns;
    since_ns = since_ns != 0 ? since_ns : now_ns;
    return now_ns - since_ns >= hf_seconds(1).ns;
}

/* A file at rest is read run by run, so that a million of them take some seconds. */
void hf_progress_runs(uint64_t looked)
{
    if (hf_takes_long()) {
        hf_progress("looked at %llu runs", (unsigned long long)looked);
    }
}

/* Opens the file if nobody has it open. If a program has it open, waits up to PATIENCE_S until that program listens. */
static hf_status find_owner(hf_op *op, hf_tool_source *source)
{
    hf_env *env = source->env;
    hf_instant until = {env->ops->now(env).ns + hf_seconds(PATIENCE_S).ns};
    for (;;) {
        hf_op_init(op);
        hf_status status = hf_peek_open(op, env, source->path, &source->peek, &source->holder);
        source->is_owned = status == HF_ERR_EXISTS;
        bool is_program = source->is_owned && source->holder >= 0;
        if (!is_program || hf_admin_listens(env, source->path) || env->ops->now(env).ns >= until.ns) {
            hf_progress(NULL);
            return status;
        }
        hf_progress("process %lld is opening or closing %s ...", (long long)source->holder, source->path);
        (void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    }
}

int hf_source_open(hf_tool_source *source, const char *path)
{
    *source = (hf_tool_source){.env = hf_env_posix(), .path = path};
    hf_op op;
    hf_status status = find_owner(&op, source);
    static bool was_told; /* a command may open it twice */
    if (status == HF_OK && source->peek.has_log && !was_told) {
        was_told = true;
        (void)hf_complain(0, "the program that used %s did not close it: reading its log as well", path);
    }
    if (status == HF_OK || (source->is_owned && source->holder >= 0)) {
        return HF_EXIT_FINE;
    }
    return hf_complain(status == HF_ERR_DENIED ? HF_EXIT_DENIED : HF_EXIT_CANNOT_OPEN, "%s", op.message);
}

static void say_copying(void *state, hf_str kind, hf_str chunk)
{
    (void)kind;
    (void)chunk;
    const hf_tool_source *source = state;
    hf_progress("process %lld makes a copy ...", (long long)source->holder);
}

/* Files to remove when a signal ends this process, such as SIGPIPE or ^C: a copy is as large as the database. */
static char doomed[2][HF_PATH_LEN_MAX + 48]; /* the copy, and its lock file */

static void remove_and_end(int number)
{
    (void)unlink(doomed[0]);
    (void)unlink(doomed[1]);
    (void)raise(number); /* SA_RESETHAND: now with the default action */
}

static void remove_at_signals(const char *path)
{
    static const int SIGNALS[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = remove_and_end, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
    (void)snprintf(doomed[0], sizeof doomed[0], "%s", path);
    (void)snprintf(doomed[1], sizeof doomed[1], "%s-owner", path);
    for (size_t i = 0; i < HF_COUNT_OF(SIGNALS); i++) {
        (void)sigaction(SIGNALS[i], &action, NULL);
    }
}

static int copy_still(hf_tool_source *source)
{
    char folder[HF_PATH_LEN_MAX] = "";
    if (source->path[0] != '/' && getcwd(folder, sizeof folder) == NULL) {
        return hf_complain(HF_EXIT_CANNOT_OPEN, "cannot read the current directory: %s", strerror(errno));
    }
    char path[HF_PATH_LEN_MAX + 32];
    int len = snprintf(path, sizeof path, "%s%s%s-copy-%d", folder, source->path[0] != '/' ? "/" : "", source->path,
                       (int)getpid());
    if (len < 0 || (size_t)len >= sizeof source->copy) {
        return hf_complain(HF_EXIT_CANNOT_OPEN, "the path of %s is too long", source->path);
    }
    remove_at_signals(path);
    hf_op op;
    hf_op_init(&op);
    const char *args[] = {path};
    if (hf_admin_ask(&op, source->env, source->path, "backup", args, 1, say_copying, source) != HF_OK) {
        return hf_complain(HF_EXIT_CANNOT_OPEN, "%s", op.message);
    }
    hf_progress(NULL);
    memcpy(source->copy, path, (size_t)len + 1);
    int64_t holder = 0;
    if (hf_peek_open(&op, source->env, source->copy, &source->peek, &holder) != HF_OK) {
        return hf_complain(HF_EXIT_CANNOT_OPEN, "%s", op.message);
    }
    return HF_EXIT_FINE;
}

int hf_source_open_still(hf_tool_source *source, const char *path)
{
    int code = hf_source_open(source, path);
    if (code == HF_EXIT_FINE && source->is_owned) {
        code = copy_still(source);
        if (code != HF_EXIT_FINE) {
            hf_source_close(source);
        }
    }
    return code;
}

void hf_source_close(hf_tool_source *source)
{
    hf_peek_close(&source->peek);
    if (source->copy[0] != '\0') {
        (void)unlink(source->copy);
        source->copy[0] = '\0';
    }
}
