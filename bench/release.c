/* What is left of a worker's memory when its runs have been released.
 *
 *     release idle COUNT [--dir DIR]
 *
 * A first process starts COUNT runs in a file and ends; each waits for a signal. The second one opens the file, and a query
 * to every run has it loaded once by a worker that keeps none, as busy as it gets: `start_mib`. Then a worker that keeps all is
 * asked about every run: `loaded_mib`, and `run_kib` is the difference by run. After .idle_timeout all are released:
 * `released_mib`, and `ratio` to the start. Then all are loaded and released again, three times: `again_ratio`. */
#include "bench.h"

#include <holdfast/holdfast.h>

#include <sys/wait.h>

static const char *dir = ".";
static char path[4096];
static int count;

typedef struct state {
    int sum;
} state;

static hf_status tell(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "%d", ((const state *)arg)->sum);
}

static hf_status waits(hf_payload in, hf_payload *ret_out)
{
    state *s = HF_WORKFLOW_NEW(state);
    (void)in;
    if (s == NULL) {
        return HF_ERR_NOMEM;
    }
    HF_TRY(hf_on_query("sum", tell, .arg = s));
    return hf_signal_wait("go", ret_out);
}

static hf_status open_service(hf_service **ret_service)
{
    char address[4200];
    (void)snprintf(address, sizeof address, "sqlite:%s?durability=normal", path);
    return hf_open(address, ret_service);
}

static hf_status make(hf_service *service, int cached_max, hf_span idle_timeout, hf_worker **ret_worker)
{
    HF_TRY(hf_worker_new(service, "q", ret_worker, .cached_max = cached_max, .cached_bytes_max = HF_UNLIMITED,
                         .idle_timeout = idle_timeout));
    return hf_worker_add_workflow(*ret_worker, "waits", waits);
}

static void id_of(int number, char id[16])
{
    (void)snprintf(id, 16, "r%d", number);
}

static hf_status wait_for(hf_worker *worker, bool is_loaded)
{
    for (;;) {
        hf_worker_stats now;
        HF_TRY(hf_worker_stat(worker, &now));
        if (is_loaded ? now.resident >= (uint64_t)count : now.resident == 0) {
            return HF_OK;
        }
        HF_TRY(hf_sleep(hf_milliseconds(20)));
    }
}

/* The first process: all runs have had their first step. */
static hf_status prepare(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    char id[16];
    (void)arg;
    HF_TRY(open_service(&service));
    HF_TRY(make(service, HF_UNLIMITED, HF_SPAN_OFF, &worker));
    HF_TRY(hf_worker_start(worker));
    for (int i = 0; i < count; i++) {
        id_of(i, id);
        HF_TRY(hf_start(service, "waits", hf_payload_none(), NULL, .id = id, .task_queue = "q"));
    }
    return wait_for(worker, true);
}

typedef struct question {
    hf_service *service;
    int number;
} question;

static hf_status ask(void *arg)
{
    const question *q = arg;
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    char id[16];
    id_of(q->number, id);
    HF_TRY(hf_execution_new(q->service, id, &run));
    return hf_query(run, "sum", hf_payload_none(), &out);
}

/* As many at once as a busy worker would have. */
static hf_status ask_all(hf_service *service)
{
    enum { AT_ONCE = 256 };
    question questions[AT_ONCE];
    for (int i = 0; i < count; i += AT_ONCE) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        for (int k = 0; k < AT_ONCE && i + k < count; k++) {
            questions[k] = (question){service, i + k};
            HF_TRY(hf_fork(scope, ask, &questions[k]));
        }
        HF_TRY(hf_join(scope));
    }
    return HF_OK;
}

static double mib(void)
{
    return (double)bench_rss() / 1048576;
}

static hf_status measure(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    (void)arg;
    HF_TRY(open_service(&service));
    {
        HF_AUTO(hf_worker_free) hf_worker *first = NULL;
        HF_TRY(make(service, HF_OFF, HF_SPAN_OFF, &first));
        HF_TRY(hf_worker_start(first));
        HF_TRY(ask_all(service));
    }
    HF_TRY(make(service, HF_UNLIMITED, hf_seconds(5), &worker));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_sleep(hf_seconds(2)));
    double start = mib();
    HF_TRY(ask_all(service));
    double loaded = mib();
    hf_worker_stats now;
    HF_TRY(hf_worker_stat(worker, &now));
    bench_print("resident", (double)now.resident);
    HF_TRY(wait_for(worker, false));
    HF_TRY(
        hf_sleep(hf_seconds(2))); /* the fibers have ended, and the library has given back what it gives back later */
    double released = mib();
    bench_print("start_mib", start);
    bench_print("loaded_mib", loaded);
    bench_print("run_kib", (loaded - start) * 1024 / count);
    bench_print("released_mib", released);
    bench_print("ratio", released / start);
    for (int i = 0; i < 3; i++) {
        HF_TRY(ask_all(service));
        HF_TRY(wait_for(worker, false));
    }
    HF_TRY(hf_sleep(hf_seconds(8))); /* the heap is trimmed once in .idle_timeout */
    bench_print("again_ratio", mib() / start);
    return HF_OK;
}

static void remove_files(void)
{
    static const char *const TAILS[] = {"", "-wal", "-shm", ".lock", ".sock"};
    char file[4200];
    for (size_t i = 0; i < sizeof TAILS / sizeof TAILS[0]; i++) {
        (void)snprintf(file, sizeof file, "%s%s", path, TAILS[i]);
        (void)unlink(file);
    }
}

int main(int argc, char **argv)
{
    count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    for (int i = 3; i + 1 < argc; i += 2) {
        dir = strcmp(argv[i], "--dir") == 0 ? argv[i + 1] : dir;
    }
    if (argc < 3 || strcmp(argv[1], "idle") != 0 || count < 1) {
        (void)fprintf(stderr, "usage: release idle COUNT [--dir DIR]\n");
        return 2;
    }
    (void)snprintf(path, sizeof path, "%s/bench_release.db", dir);
    remove_files();
    pid_t first = fork();
    if (first == 0) {
        HF_OR_DIE(hf_run(prepare, NULL));
        exit(0);
    }
    int status = 0;
    bool is_prepared = first > 0 && waitpid(first, &status, 0) == first && status == 0;
    if (is_prepared) {
        HF_OR_DIE(hf_run(measure, NULL));
    }
    remove_files();
    return is_prepared ? 0 : 1;
}
