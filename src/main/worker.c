/* holdfast worker: a worker on a file or server, with the workflows and activities of plugins, until SIGTERM or SIGINT. */
#include "main/author.h"
#include "main/target.h"

#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

typedef struct job {
    const char *address;
    const char *api_key; /* NULL = none */
    const char *plugins[HF_AUTHOR_VALUES_MAX];
    int plugin_count;
    const char *queue;
    const char *namespace_;
    int exit_code;
} job;

typedef struct stopper {
    hf_worker *worker;
    hf_os_signals *signals;
} stopper;

static hf_status stop_on_signal(void *arg)
{
    const stopper *s = arg;
    int number = 0;
    HF_TRY(hf_os_signals_next(s->signals, &number));
    return hf_worker_stop(s->worker);
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
    if (open_place(j, &service) != HF_OK) {
        j->exit_code = hf_complain(HF_EXIT_CANNOT_OPEN, "%s", hf_error_text());
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
