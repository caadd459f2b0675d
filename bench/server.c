/* W1 through gRPC: the load and the worker, each a process of its own.
 *
 *     server worker ADDRESS                    until SIGTERM; "ready" when it polls
 *     server load ADDRESS COUNT [SECONDS]      COUNT workflows at a time: start, one activity, result
 *
 * The load prints lines of "metric<TAB>value". bench/server.sh runs them on a server, and reads what the server itself uses. */
#include "bench.h"

#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdatomic.h>

enum { COUNT_MAX = 4096 };

typedef struct client {
    uint32_t *times; /* us */
    size_t count;
    size_t capacity;
} client;

static const char *address;
static int count;
static double seconds = 5;
static client clients[COUNT_MAX];
static hf_service *service;
static atomic_bool stopping;
static atomic_bool measuring;
static atomic_llong results;

static hf_status charge(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "{\"receipt\": 4711}");
}

static hf_status order(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("charge", in, ret_out, .start_to_close = hf_seconds(60));
}

static hf_status work(void *arg)
{
    HF_AUTO(hf_close) hf_service *opened = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    (void)arg;
    HF_TRY(hf_open(address, &opened));
    HF_TRY(hf_worker_new(opened, "bench", &worker, .stop_on = SIGTERM));
    HF_TRY(hf_worker_add_workflow(worker, "order", order));
    HF_TRY(hf_worker_add_activity(worker, "charge", charge, .on_fiber = true));
    HF_TRY(hf_worker_start(worker));
    printf("ready\n");
    fflush(stdout);
    return hf_worker_wait(worker);
}

static void keep_time(client *c, int64_t ns)
{
    if (c->count == c->capacity) {
        c->capacity = c->capacity > 0 ? c->capacity * 2 : 1024;
        c->times = realloc(c->times, c->capacity * sizeof *c->times);
        if (c->times == NULL) {
            abort();
        }
    }
    c->times[c->count++] = (uint32_t)(ns / 1000);
}

static hf_status one_workflow(void)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(service, "order", hf_payload_of_json("{\"item\": 7, \"cents\": 1999}"), &execution,
                    .task_queue = "bench"));
    return hf_result(execution, &out);
}

static hf_status ask(void *arg)
{
    client *c = arg;
    while (!atomic_load(&stopping)) {
        int64_t begun = bench_wall_ns();
        HF_TRY(one_workflow());
        if (atomic_load(&measuring)) {
            keep_time(c, bench_wall_ns() - begun);
        }
        atomic_fetch_add(&results, 1);
    }
    return HF_OK;
}

static int compare_times(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print_times(void)
{
    size_t all_count = 0;
    for (int i = 0; i < count; i++) {
        all_count += clients[i].count;
    }
    uint32_t *all = malloc((all_count + 1) * sizeof *all);
    if (all == NULL || all_count == 0) {
        free(all);
        return;
    }
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        memcpy(all + at, clients[i].times, clients[i].count * sizeof *all);
        at += clients[i].count;
        free(clients[i].times);
    }
    qsort(all, all_count, sizeof *all, compare_times);
    bench_print("p50_ms", (double)all[all_count / 2] / 1000);
    bench_print("p99_ms", (double)all[all_count * 99 / 100] / 1000);
    free(all);
}

/* The driver reads the server's CPU at these two moments. */
static void tell(const char *word)
{
    printf("%s\n", word);
    fflush(stdout);
}

static hf_status load(void *arg)
{
    HF_AUTO(hf_close) hf_service *opened = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)arg;
    HF_TRY(hf_open(address, &opened));
    service = opened;
    HF_TRY(hf_scope_open(&scope, .name = "clients"));
    for (int i = 0; i < count; i++) {
        HF_TRY(hf_fork(scope, ask, &clients[i]));
    }
    HF_TRY(hf_sleep(hf_milliseconds(seconds < 4 ? 500 : 1000)));
    atomic_store(&measuring, true);
    tell("begin");
    int64_t from = bench_wall_ns();
    long long before = atomic_load(&results);
    int64_t cpu = bench_cpu_ns();
    HF_TRY(hf_sleep(hf_milliseconds((int64_t)(seconds * 1000))));
    double runs = (double)(atomic_load(&results) - before);
    tell("end");
    bench_print("ops_s", runs * 1e9 / (double)(bench_wall_ns() - from));
    bench_print("load_us", (double)(bench_cpu_ns() - cpu) / 1000 / (runs > 0 ? runs : 1));
    bench_print("runs", runs);
    atomic_store(&measuring, false);
    atomic_store(&stopping, true);
    HF_TRY(hf_join(scope));
    print_times();
    return HF_OK;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[1] : "";
    address = argc > 2 ? argv[2] : "";
    count = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 0;
    seconds = argc > 4 ? strtod(argv[4], NULL) : seconds;
    bool is_load = strcmp(mode, "load") == 0;
    if ((!is_load && strcmp(mode, "worker") != 0) || (is_load && (count < 1 || count > COUNT_MAX))) {
        (void)fprintf(stderr, "usage: server worker ADDRESS\n       server load ADDRESS COUNT [SECONDS]\n");
        return 2;
    }
    HF_OR_DIE(hf_run(is_load ? load : work, NULL));
    return 0;
}
