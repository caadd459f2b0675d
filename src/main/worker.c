/* holdfast worker: a worker on a file or server, with the workflows and activities of plugins, until SIGTERM or SIGINT. */
#include "main/author.h"
#include "main/target.h"

#include "worker/at_work.h"

#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct job {
    const char *address;
    const char *api_key; /* NULL = none */
    const char *plugins[HF_AUTHOR_VALUES_MAX];
    int plugin_count;
    const char *queue;
    const char *namespace_;
    int exit_code;
} job;

/* ---- A crash ---------------------------------------------------------------------------------------------------------------- */

/* A plugin that crashes takes the program with it. A line says whose code it was; then the program ends as it would have: the action that was
 * there before, the library's report of stack overflows or the default, gets the signal. */
static const struct {
    int number;
    const char *name;
} CRASHES[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"}};

static struct sigaction before[HF_COUNT_OF(CRASHES)]; /* written before the handler is in place */

static volatile sig_atomic_t is_told; /* a report of the library may end in abort() */

static void put_line(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    char work[400];
    const char *name = "a signal";
    (void)context;
    for (size_t i = 0; i < HF_COUNT_OF(CRASHES); i++) {
        if (CRASHES[i].number == number) {
            name = CRASHES[i].name;
            (void)sigaction(number, &before[i], NULL);
        }
    }
    hf_tell_at_work(work, sizeof work);
    if (work[0] != '\0' && !is_told) {
        is_told = true;
        put_line("holdfast: ");
        put_line(name);
        put_line(" in ");
        put_line(work);
        put_line(": the program ends; start it again when the code is repaired\n");
    }
    if (info->si_code <= 0) {
        (void)raise(number); /* a sent one, such as abort()'s, does not come again by itself */
    }
}

static void listen_for_crashes(void)
{
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < HF_COUNT_OF(CRASHES); i++) {
        if (sigaction(CRASHES[i].number, NULL, &before[i]) == 0) {
            (void)sigaction(CRASHES[i].number, &action, NULL);
        }
    }
}

/* ---- The end ----------------------------------------------------------------------------------------------------------------- */

typedef struct stopper {
    hf_worker *worker;
    hf_os_signals *signals;
} stopper;

/* What the stop waits for, if it has to wait. */
static void tell_wait(const stopper *s)
{
    char text[700];
    hf_worker_stats stats;
    int count = hf_worker_tell_busy(s->worker, text, sizeof text);
    if (count > 0) {
        (void)hf_complain(0,
                          "stopping; %d %s (%s): 10 s to finish, then a cancel and 5 s more; a second signal ends the "
                          "program at once",
                          count, count == 1 ? "activity runs" : "activities run", text);
    } else if (hf_worker_stat(s->worker, &stats) == HF_OK && stats.stuck > 0) {
        (void)hf_complain(0, "stopping; %llu %s not yield: 15 s to return; a second signal ends the program at once",
                          (unsigned long long)stats.stuck, stats.stuck == 1 ? "workflow does" : "workflows do");
    }
}

static hf_status stop_on_signal(void *arg)
{
    const stopper *s = arg;
    int number = 0;
    HF_TRY(hf_os_signals_next(s->signals, &number));
    HF_TRY(hf_worker_stop(s->worker));
    tell_wait(s);
    HF_TRY(hf_os_signals_next(s->signals, &number));
    (void)hf_complain(0, "ended at once: what ran is tried again at the next start");
    _exit(128 + number); /* as a kill -9, which is always safe */
}

static hf_status work(const job *j, hf_worker *worker)
{
    static const int SIGNALS[] = {SIGTERM, SIGINT};
    HF_AUTO(hf_os_signals_close) hf_os_signals *signals = NULL;
    HF_TRY(
        hf_os_signals_open(SIGNALS, HF_COUNT_OF(SIGNALS), &signals)); /* before anybody is told that the worker runs */
    stopper s = {.worker = worker, .signals = signals};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "signals", .join = HF_JOIN_DISCARD));
    listen_for_crashes(); /* behind the library's handler, which is there now */
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_fork(scope, stop_on_signal, &s));
    (void)printf("holdfast %s: worker of the task queue %s on %s\n", hf_version(), j->queue, j->address);
    (void)fflush(stdout);
    return hf_worker_wait(worker);
}

/* A verb of this program may have the file for a moment. */
static hf_status open_place(const job *j, hf_service **ret_service)
{
    enum { TRIES_MAX = 40, PAUSE_MS = 50 };
    hf_status status = hf_open(j->address, ret_service, .api_key = j->api_key);
    for (int i = 0; i < TRIES_MAX && status == HF_ERR_EXISTS; i++) {
        HF_TRY(hf_sleep(hf_milliseconds(PAUSE_MS)));
        status = hf_open(j->address, ret_service, .api_key = j->api_key);
    }
    return status;
}

static hf_status run(void *arg)
{
    job *j = arg;
    hf_op op;
    hf_op_init(&op);
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    for (int i = 0; i < j->plugin_count; i++) { /* before a file is made */
        if (hf_plugin_check(&op, j->plugins[i]) != HF_OK) {
            j->exit_code = hf_complain(HF_EXIT_USAGE, "%s", op.message);
            return HF_OK;
        }
    }
    hf_status status = open_place(j, &service);
    if (status != HF_OK) {
        j->exit_code =
            hf_complain(status == HF_ERR_DENIED ? HF_EXIT_DENIED : HF_EXIT_CANNOT_OPEN, "%s", hf_error_text());
        return HF_OK;
    }
    if (hf_worker_new(service, j->queue, &worker, .namespace_ = j->namespace_) != HF_OK) {
        j->exit_code = hf_complain(HF_EXIT_USAGE, "%s", hf_error_text());
        return HF_OK;
    }
    for (int i = 0; i < j->plugin_count; i++) {
        if (hf_plugin_load(&op, j->plugins[i], worker) != HF_OK) {
            j->exit_code = hf_complain(HF_EXIT_USAGE, "%s", op.message);
            return HF_OK;
        }
    }
    if (work(j, worker) != HF_OK) {
        j->exit_code = hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
    }
    return HF_OK;
}

/* A server is found as all verbs find it, with the settings; a path is the file of a database; everything else is an address. Returns an
 * exit code; a failure was told. */
static int find_place(job *j, hf_tool_target *target, const char *word)
{
    static const char *const SCHEMES[] = {"sqlite:", "memory:", "owner:"};
    if (hf_target_is_strange(word)) {
        return HF_EXIT_USAGE;
    }
    if (hf_target_is_server(word)) {
        const hf_tool_args args = {.words = {word}};
        const char *namespace_ = hf_target_namespace(word);
        int code = hf_target_find(target, &args);
        j->namespace_ = j->namespace_ != NULL ? j->namespace_ : namespace_;
        j->address = target->address;
        j->api_key = target->api_key[0] != '\0' ? target->api_key : NULL;
        return code;
    }
    j->address = word;
    for (size_t i = 0; i < HF_COUNT_OF(SCHEMES); i++) {
        if (strncmp(word, SCHEMES[i], strlen(SCHEMES[i])) == 0) {
            return HF_EXIT_FINE;
        }
    }
    (void)snprintf(target->address, sizeof target->address, "sqlite:%s", word);
    j->address = target->address;
    return HF_EXIT_FINE;
}

int hf_cmd_worker(int argc, char **argv)
{
    static hf_tool_target target; /* it is large */
    job j = {.queue = NULL};
    bool with_guard = false;
    const char *file = NULL;
    int words = 0;
    const hf_author_option options[] = {{"--plugin", NULL, j.plugins, &j.plugin_count},
                                        {"--queue", NULL, &j.queue, NULL},
                                        {"--namespace", NULL, &j.namespace_, NULL},
                                        {"--guard", &with_guard, NULL, NULL},
                                        {NULL, NULL, NULL, NULL}};
    if (!hf_author_parse(argc, argv, options, &file, 1, &words)) {
        return HF_EXIT_USAGE;
    }
    if (words == 0 || j.plugin_count == 0) {
        return hf_complain(HF_EXIT_USAGE,
                           "worker needs a target and a plugin: holdfast worker TARGET --plugin x.so --queue NAME");
    }
    if (with_guard) {
        char why[256];
        if (!hf_author_guard(argv - 2, why)) {
            return hf_complain(HF_EXIT_CANNOT_OPEN, "there is no guard: %s", why);
        }
    }
    j.queue = j.queue != NULL ? j.queue : "default";
    int code = find_place(&j, &target, file);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    if (hf_run(run, &j, .name = "holdfast", .watchdog = {.signal = SIGURG}) != HF_OK && j.exit_code == 0) {
        return hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
    }
    return j.exit_code;
}
