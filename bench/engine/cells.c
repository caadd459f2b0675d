#include "engine/cells.h"

#include "bench.h"
#include "service/call.h"
#include "store/sqlite/sqlite.h"

#include <dirent.h>

/* With many runs at once the script looks for answers so long before it sleeps: waking it costs the engine a system call. */
#define LOOK_US 20

/* As the threads call themselves. */
static const char *const THREADS[CELL_THREAD_COUNT] = {"hf-engine", "hf-store", "play"};

static void *heap_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len);
}

static void heap_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

hf_allocator cell_memory(void)
{
    return (hf_allocator){heap_allocate, heap_release, NULL};
}

const char *cell_path(const cell_options *o, const char *name)
{
    static char path[4096];
    int len = snprintf(path, sizeof path, "%s/bench_engine_%s.db", o->dir, name);
    if (len < 0 || (size_t)len >= sizeof path) {
        play_die("the path is too long");
    }
    return path;
}

void cell_remove(const char *path)
{
    static const char *const TAILS[] = {"", "-wal", "-shm"};
    char file[4200];
    for (size_t i = 0; i < HF_COUNT_OF(TAILS); i++) {
        (void)snprintf(file, sizeof file, "%s%s", path, TAILS[i]);
        (void)unlink(file);
    }
}

hf_service *cell_open(const cell_options *o, const char *path)
{
    hf_op op;
    hf_op_init(&op);
    hf_sqlite_options sqlite = {.durability = HF_DURABILITY_FULL,
                                .cache_len = o->cache_len,
                                .page_size = o->page_size,
                                .log_len_max = o->log_len_max};
    hf_engine_options engine = {.mem_max = o->mem_max, .journal_len_max = o->journal_max};
    hf_store *store = NULL;
    hf_service *service = NULL;
    if (hf_sqlite_open(&op, cell_memory(), path, &sqlite, &store) != HF_OK ||
        hf_engine_open(&op, hf_env_posix(), store, &engine, &service) != HF_OK) {
        play_die("cannot open %s: %s", path, op.message);
    }
    return service;
}

void cell_close(hf_service *service)
{
    hf_op op;
    hf_op_init(&op);
    if (service->ops->close(&op, service) != HF_OK) {
        play_die("cannot close: %s", op.message);
    }
}

static void read_text(const char *task, const char *name, char *text, size_t len)
{
    char path[512];
    text[0] = '\0';
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/%s", task, name);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        size_t got = fread(text, 1, len - 1, file);
        text[got] = '\0';
        (void)fclose(file);
    }
}

static void look_at_thread(const char *task, cell_moment *moment)
{
    char text[4096];
    read_text(task, "comm", text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    for (size_t i = 0; i < CELL_THREAD_COUNT; i++) {
        if (strcmp(text, THREADS[i]) != 0) {
            continue;
        }
        read_text(task, "schedstat", text, sizeof text);
        moment->thread_cpu[i] = (double)strtoll(text, NULL, 10) * 1e-9;
        read_text(task, "status", text, sizeof text);
        const char *waits = strstr(text, "\nvoluntary_ctxt_switches:");
        moment->thread_waits[i] = waits != NULL ? strtol(strchr(waits, ':') + 1, NULL, 10) : 0;
        return;
    }
}

cell_moment cell_now(hf_service *service, const play *p)
{
    cell_moment moment = {0};
    hf_op op;
    hf_op_init(&op);
    if (hf_engine_stats_get(&op, service, false, &moment.stats) != HF_OK) {
        play_die("no figures of the engine: %s", op.message);
    }
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry = NULL;
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        if (entry->d_name[0] != '.') {
            look_at_thread(entry->d_name, &moment);
        }
    }
    if (tasks != NULL) {
        (void)closedir(tasks);
    }
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    moment.cpu = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                 1e-6 * ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec);
    moment.results = p != NULL ? atomic_load(&p->results) : 0;
    moment.wall = bench_wall_ns();
    return moment;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

void cell_print(const cell_moment *from, const cell_moment *to, double operations)
{
    double seconds = (double)(to->wall - from->wall) * 1e-9;
    double cpu_us = (to->cpu - from->cpu) * 1e6;
    double transitions = (double)(to->stats.transitions - from->stats.transitions);
    double commits = (double)(to->stats.commits - from->stats.commits);
    double flushes = (double)(to->stats.store.flushes - from->stats.store.flushes);
    double bytes = (double)(to->stats.store.bytes_written - from->stats.store.bytes_written);
    bench_print("transitions_s", ratio(transitions, seconds));
    bench_print("commits_s", ratio(commits, seconds));
    bench_print("tr_commit", ratio(transitions, commits));
    double changed = (double)(to->stats.run_commits - from->stats.run_commits);
    bench_print("changed_s", ratio(changed, seconds));
    bench_print("changed_commit", ratio(changed, commits));
    double events = (double)(to->stats.events - from->stats.events);
    bench_print("events_s", ratio(events, seconds));
    bench_print("events_commit", ratio(events, commits));
    bench_print("tr_op", ratio(transitions, operations));
    bench_print("commits_op", ratio(commits, operations));
    bench_print("flushes_op", ratio(flushes, operations));
    bench_print("flushes_tr", ratio(flushes, transitions));
    bench_print("bytes_tr", ratio(bytes, transitions));
    bench_print("cpu_op_us", ratio(cpu_us, operations));
    bench_print("cpu_tr_us", ratio(cpu_us, transitions));
    bench_print("checkpoints", (double)(to->stats.store.checkpoints - from->stats.store.checkpoints));
    bench_print("log_mib", (double)to->stats.store.log_len / 1048576);
    bench_print("file_mib", (double)to->stats.store.file_len / 1048576);
    bench_print("rss_mib", (double)bench_rss() / 1048576);
    bench_print("state_mib", (double)to->stats.mem_used / 1048576);
    for (size_t i = 0; i < CELL_THREAD_COUNT; i++) {
        char metric[64];
        double thread_us = (to->thread_cpu[i] - from->thread_cpu[i]) * 1e6;
        (void)snprintf(metric, sizeof metric, "cpu_tr_us_%s", THREADS[i]);
        bench_print(metric, ratio(thread_us, transitions));
        (void)snprintf(metric, sizeof metric, "sleeps_commit_%s", THREADS[i]);
        bench_print(metric, ratio((double)(to->thread_waits[i] - from->thread_waits[i]), commits));
    }
}

void cell_check(const play *p)
{
    if (atomic_load(&p->failed) > 0) {
        play_die("%lld calls failed, the first: %s", (long long)atomic_load(&p->failed), p->why);
    }
}

/* As many polls as there may be tasks at once, within reason. */
play_options cell_play(const cell_options *o, hf_service *service, int width)
{
    long long polls = o->count * width;
    polls = polls < 8 ? 8 : polls > 512 ? 512 : polls;
    return (play_options){
        .service = service,
        .env = hf_env_posix(),
        .is_direct = o->is_direct,
        .is_in_order = o->is_in_order,
        .look_us = o->look_us >= 0  ? o->look_us
                   : o->count >= 16 ? LOOK_US
                                    : 0,
        .polls = o->polls > 0 ? o->polls : (int)polls,
        .runs_max = (size_t)o->count,
    };
}

void cell_sleep(double seconds)
{
    (void)usleep((useconds_t)(seconds * 1e6));
}

void cell_print_times(play_times *times, const char *p50, const char *p99)
{
    bench_print(p50, play_quantile(times, 0.5) / 1000);
    bench_print(p99, play_quantile(times, 0.99) / 1000);
}

static void described(hf_call *call)
{
    atomic_store((atomic_bool *)call->state, true);
}

void cell_serves(hf_service *service)
{
    hf_arena arena;
    hf_arena_init(&arena, cell_memory());
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("nobody")};
    hf_pb_describe_workflow_execution_request request = {.namespace = HF_STR("default"), .execution = &execution};
    hf_call call;
    atomic_bool done = false;
    hf_call_init(&call, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, &arena, described);
    call.state = &done;
    hf_service_submit(service, &call);
    while (!atomic_load(&done)) {
        (void)usleep(100);
    }
    if (call.status != HF_ERR_NOT_FOUND) {
        play_die("describing nobody: %s", call.message);
    }
    hf_arena_deinit(&arena);
}

const void *cell_call(hf_service *service, hf_arena *arena, hf_method method, const void *request)
{
    hf_op op;
    hf_op_init(&op);
    hf_call call;
    hf_call_init(&call, method, request, arena, NULL);
    call.timeout = hf_seconds(60);
    if (hf_service_ask(&op, service, &call) != HF_OK) {
        play_die("%s", op.message);
    }
    return call.response;
}

double cell_rate(play *p, double seconds)
{
    int64_t begun = bench_wall_ns();
    long long results = atomic_load(&p->results);
    cell_sleep(seconds);
    return (double)(atomic_load(&p->results) - results) / ((double)(bench_wall_ns() - begun) * 1e-9);
}
