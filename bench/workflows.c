/* W1 to W5 with real C workflows: hf_open, a worker, and clients that start a workflow and wait for its result, all on
 * fibers of one program; and the memory of runs that wait.
 *
 *     workflows w1|w2|w3 COUNT [--seconds S] [--dir DIR] [--pollers N] [--store memory] [--activities fiber] [--through owner]
 *                              [--memo depot]
 *     workflows w4|w5 COUNT [--dir DIR] [--store memory]   this many runs wait: for a signal that each gets, or until the same moment
 *     workflows once COUNT [--store memory] [--activities fiber]   this many runs with equal input at once, and a memo: fails
 *                                 unless the activity was called once
 *     workflows parked COUNT      this many runs wait for a signal: bytes of each in the resident set; of these: heap, and of
 *                                 that the runtime's objects (crew, scopes, branch). The rest of the bytes are stacks
 *
 * With `--memo depot` the answers of the activity are kept in a depot: all but the first are hits (`calls` says how many were not).
 * With `--through owner` the engine is in a second process, which has the file open, and this one asks it (owner:FILE).
 * W1 has one activity, W2 ten in sequence, W3 fifty at once by hf_fork_activity. W4 (`signals_s`: sent and acknowledged; `ended_s`: until clients have all results, too) and W5
 * (`task_...`: how late the code goes on; `p50_ms`, `p99_ms`: how late a client has the result) keep all runs in memory.
 * The same shape as `engine w1`, so the difference is the price of the worker: fibers, replay, activities on their threads.
 * `worker_us` is the CPU of all threads but the engine's two, `owner_us` that of the owner's process; with `--store memory` no disk is in the way. */
#include "bench.h"

#include <holdfast/holdfast.h>
#include <holdfast/service.h>
#include <holdfast/worker.h>

#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { COUNT_MAX = 4096, WINDOW = 256 /* calls at once that start or signal one run of many each */ };

typedef struct client {
    uint32_t *times; /* us */
    size_t time_count;
    size_t time_capacity;
} client;

static struct {
    const char *mode;
    const char *dir;
    double seconds;
    int count;
    int pollers; /* 0 = the worker's own default */
    bool in_memory;
    bool on_fiber; /* activities */
    bool through;  /* the owner, which is another process */
    bool has_memo; /* of the activity: a depot in memory */
} options = {.mode = "", .dir = ".", .seconds = 5};

static char path[4096];
static pid_t owner = -1; /* the process that has the file open; -1 = this one */
static hf_service *service;
static hf_worker *worker;
static client clients[COUNT_MAX];
static atomic_bool stopping;
static atomic_bool measuring;
static atomic_llong results;
static atomic_llong calls; /* of the activity */

static hf_status charge(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    atomic_fetch_add(&calls, 1);
    return hf_payload_printf(ret_out, "{\"receipt\": 4711}");
}

/* The same, slow enough that the others come while it runs. */
static hf_status charge_slowly(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    return charge(in, ret_out);
}

static hf_status order(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("charge", in, ret_out, .start_to_close = hf_seconds(60));
}

enum { W2_ACTIVITIES = 10, W3_ACTIVITIES = 50 };

static hf_status sequence(hf_payload in, hf_payload *ret_out)
{
    for (int i = 1; i < W2_ACTIVITIES; i++) {
        HF_TRY(hf_activity_run("charge", in, NULL, .start_to_close = hf_seconds(60)));
    }
    return hf_activity_run("charge", in, ret_out, .start_to_close = hf_seconds(60));
}

static hf_status fan_out(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < W3_ACTIVITIES; i++) {
        HF_TRY(hf_fork_activity(scope, "charge", in, i == 0 ? ret_out : NULL, .start_to_close = hf_seconds(60)));
    }
    return hf_join(scope);
}

static hf_status parked(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_signal_wait("go", ret_out);
}

/* ---- Runs that wait ------------------------------------------------------------------------------------------------------ */

static hf_execution **waiters; /* of W4 and W5 */
static atomic_llong waiting;
static atomic_llong next_run; /* of those that `each` goes through */
static hf_time due;           /* W5: when all sleeps end */
static uint32_t *late;        /* us: after `due` the code went on, in the order in which it did */
static uint32_t *told; /* us: for W4 how long a signal took, for W5 how long after `due` a client had the result */
static atomic_llong late_count;

static hf_status until_signaled(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    atomic_fetch_add(&waiting, 1); /* each run plays once: all of them stay in memory */
    return hf_signal_wait("go", ret_out);
}

static uint32_t us_after_due(void)
{
    struct timespec real; /* hf_wall_now is the time of the step */
    (void)clock_gettime(CLOCK_REALTIME, &real);
    int64_t ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - due.ns;
    return ns > 0 ? (uint32_t)(ns / 1000) : 0;
}

static hf_status until_due(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    atomic_fetch_add(&waiting, 1);
    HF_TRY(hf_sleep_until(due));
    late[atomic_fetch_add(&late_count, 1)] = us_after_due();
    return HF_OK;
}

static void keep_time(client *c, int64_t ns)
{
    if (c->time_count == c->time_capacity) {
        c->time_capacity = c->time_capacity > 0 ? c->time_capacity * 2 : 1024;
        c->times = realloc(c->times, c->time_capacity * sizeof *c->times);
        if (c->times == NULL) {
            abort();
        }
    }
    c->times[c->time_count++] = (uint32_t)(ns / 1000);
}

static hf_status one_workflow(void)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(service, "order", hf_payload_of_json("{\"item\": 7, \"cents\": 1999}"), &execution,
                    .task_queue = "bench"));
    return hf_result(execution, &out);
}

static hf_status client_main(void *arg)
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

/* ---- Measuring ----------------------------------------------------------------------------------------------------------- */

typedef struct moment {
    int64_t wall;    /* mono ns */
    double cpu;      /* seconds */
    double others;   /* seconds of the engine's and the store's thread */
    double owner;    /* seconds of the process that has the file open */
    double written;  /* bytes, by /proc/self/io */
    long waits;      /* times threads went to sleep by themselves */
    long long count; /* workflows */
} moment;

/* CPU seconds by a "stat" file of /proc; 0 if its line has none of the two words. */
static double stat_cpu(const char *file_name, const char *word, const char *or_word)
{
    char line[512];
    FILE *file = fopen(file_name, "re");
    if (file == NULL) {
        return 0;
    }
    bool is_read = fgets(line, sizeof line, file) != NULL;
    (void)fclose(file);
    const char *at = is_read ? strrchr(line, ')') : NULL;
    if (at == NULL || (strstr(line, word) == NULL && strstr(line, or_word) == NULL)) {
        return 0;
    }
    for (int field = 2; field < 14 && at != NULL; field++) { /* utime is the 14th */
        at = strchr(at + 1, ' ');
    }
    if (at == NULL) {
        return 0;
    }
    char *end = NULL;
    double ticks = (double)strtoull(at, &end, 10);
    ticks += (double)strtoull(end, NULL, 10);
    return ticks / (double)sysconf(_SC_CLK_TCK);
}

/* CPU seconds of a thread, if it is the engine's or the store's. */
static double thread_cpu(const char *tid)
{
    char file_name[300];
    (void)snprintf(file_name, sizeof file_name, "/proc/self/task/%s/stat", tid);
    return stat_cpu(file_name, "(hf-engine)", "(hf-store)");
}

static double owner_cpu(void)
{
    char file_name[64];
    (void)snprintf(file_name, sizeof file_name, "/proc/%d/stat", (int)owner);
    return owner > 0 ? stat_cpu(file_name, "", "") : 0;
}

static double engine_cpu(void)
{
    double seconds = 0;
    DIR *dir = opendir("/proc/self/task");
    for (const struct dirent *entry = NULL; dir != NULL && (entry = readdir(dir)) != NULL;) {
        seconds += entry->d_name[0] != '.' ? thread_cpu(entry->d_name) : 0;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return seconds;
}

static moment now(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    moment m = {.wall = bench_wall_ns(), .waits = usage.ru_nvcsw, .count = atomic_load(&results)};
    m.cpu = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
            1e-6 * ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec);
    m.others = engine_cpu();
    m.owner = owner_cpu();
    FILE *file = fopen("/proc/self/io", "re");
    char line[128];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "wchar:", 6) == 0) {
            m.written = strtod(line + 6, NULL);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return m;
}

static int compare_times(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print_quantiles(uint32_t *times, size_t count, const char *p50, const char *p99)
{
    qsort(times, count, sizeof *times, compare_times);
    bench_print(p50, (double)times[count / 2] / 1000);
    bench_print(p99, (double)times[count * 99 / 100] / 1000);
}

static void print_times(void)
{
    size_t count = 0;
    for (int i = 0; i < options.count; i++) {
        count += clients[i].time_count;
    }
    uint32_t *all = malloc((count + 1) * sizeof *all);
    if (all == NULL || count == 0) {
        free(all);
        return;
    }
    size_t at = 0;
    for (int i = 0; i < options.count; i++) {
        memcpy(all + at, clients[i].times, clients[i].time_count * sizeof *all);
        at += clients[i].time_count;
        free(clients[i].times);
    }
    print_quantiles(all, count, "p50_ms", "p99_ms");
    free(all);
}

static void print_between(moment from, moment to)
{
    double runs = (double)(to.count - from.count);
    double seconds = (double)(to.wall - from.wall) * 1e-9;
    runs = runs > 0 ? runs : 1;
    bench_print("ops_s", runs / seconds);
    bench_print("cpu_op_us", (to.cpu - from.cpu) * 1e6 / runs);
    bench_print("worker_us", (to.cpu - from.cpu - (to.others - from.others)) * 1e6 / runs);
    if (owner > 0) {
        bench_print("owner_us", (to.owner - from.owner) * 1e6 / runs);
    }
    bench_print("bytes_op", (to.written - from.written) / runs);
    bench_print("sleeps_op", (double)(to.waits - from.waits) / runs);
    bench_print("rss_mib", (double)bench_rss() / 1048576);
}

static hf_status measure(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "clients"));
    for (int i = 0; i < options.count; i++) {
        HF_TRY(hf_fork(scope, client_main, &clients[i]));
    }
    HF_TRY(hf_sleep(hf_milliseconds(options.seconds < 4 ? 500 : 1000)));
    atomic_store(&measuring, true);
    moment from = now();
    HF_TRY(hf_sleep(hf_milliseconds((int64_t)(options.seconds * 1000))));
    moment to = now();
    atomic_store(&measuring, false);
    atomic_store(&stopping, true);
    HF_TRY(hf_join(scope));
    print_between(from, to);
    print_times();
    if (options.has_memo) {
        bench_print("calls", (double)atomic_load(&calls));
    }
    return hf_worker_stop(worker);
}

static hf_status one_of_many(void *arg)
{
    (void)arg;
    return one_workflow();
}

/* Runs with equal input, all at once: the activity is called once. */
static hf_status measure_once(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    int64_t begun = bench_wall_ns();
    HF_TRY(hf_scope_open(&scope, .name = "clients"));
    for (int i = 0; i < options.count; i++) {
        HF_TRY(hf_fork(scope, one_of_many, NULL));
    }
    HF_TRY(hf_join(scope));
    bench_print("runs", options.count);
    bench_print("ms", (double)(bench_wall_ns() - begun) / 1e6);
    bench_print("calls", (double)atomic_load(&calls));
    HF_TRY(hf_worker_stop(worker));
    return atomic_load(&calls) == 1 ? HF_OK : hf_raise(HF_ERR_FAILED, "the activity was called more than once");
}

/* Memory of the runtime's objects; that of the worker's runs, the engine and the store is malloc's own. */
static atomic_llong runtime_bytes;

static void *count_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    size_t unit = align > sizeof(void *) ? align : sizeof(void *);
    void *ptr = aligned_alloc(unit, (len + unit - 1) / unit * unit);
    atomic_fetch_add(&runtime_bytes, ptr != NULL ? (long long)malloc_usable_size(ptr) : 0);
    return ptr;
}

static void count_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    atomic_fetch_sub(&runtime_bytes, (long long)malloc_usable_size(ptr));
    free(ptr);
}

/* The memory of runs that wait: the growth of the resident set from a tenth of them on, so that what a program of this
 * size has anyway does not count. The engine's part is in it. */
static hf_status measure_parked(void *arg)
{
    int64_t from = 0;
    int64_t heap = 0;
    int64_t runtime = 0;
    int first = options.count / 10;
    (void)arg;
    for (int i = 0; i < options.count; i++) {
        HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
        if (i == first) {
            HF_TRY(hf_sleep(hf_seconds(2)));
            from = (int64_t)bench_rss();
            heap = (int64_t)mallinfo2().uordblks;
            runtime = atomic_load(&runtime_bytes);
        }
        HF_TRY(hf_start(service, "order", hf_payload_of_json("1"), &execution, .task_queue = "bench"));
        if (i % 64 == 63) {
            HF_TRY(hf_sleep(hf_milliseconds(20))); /* the worker keeps up */
        }
    }
    HF_TRY(hf_sleep(hf_seconds(3)));
    bench_print("parked_runtime", (double)(atomic_load(&runtime_bytes) - runtime) / (options.count - first));
    bench_print("parked_heap", (double)((int64_t)mallinfo2().uordblks - heap) / (options.count - first));
    bench_print("parked_bytes", (double)((int64_t)bench_rss() - from) / (options.count - first));
    return hf_worker_stop(worker);
}

/* Calls `one` for every run, WINDOW at a time. */
static hf_status go_through(void *arg)
{
    hf_status (*const *one)(long long) = arg;
    for (long long i = 0; (i = atomic_fetch_add(&next_run, 1)) < options.count;) {
        HF_TRY((*one)(i));
    }
    return HF_OK;
}

static hf_status each(hf_status (*one)(long long i))
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    atomic_store(&next_run, 0);
    HF_TRY(hf_scope_open(&scope, .name = "all runs"));
    for (int i = 0; i < WINDOW && i < options.count; i++) {
        HF_TRY(hf_fork(scope, go_through, &one));
    }
    return hf_join(scope);
}

static hf_status start_run(long long i)
{
    return hf_start(service, "order", hf_payload_of_json("1"), &waiters[i], .task_queue = "bench");
}

static hf_status signal_run(long long i)
{
    int64_t begun = bench_wall_ns();
    HF_TRY(hf_signal(waiters[i], "go", hf_payload_of_json("1")));
    told[i] = (uint32_t)((bench_wall_ns() - begun) / 1000);
    return HF_OK;
}

static hf_status await_run(long long i)
{
    HF_TRY(hf_result(waiters[i], NULL));
    atomic_fetch_add(&results, 1);
    hf_execution_free(waiters[i]);
    return HF_OK;
}

static hf_status start_all(void)
{
    int64_t begun = bench_wall_ns();
    HF_TRY(each(start_run));
    bench_print("starts_s", options.count / ((double)(bench_wall_ns() - begun) * 1e-9));
    while (atomic_load(&waiting) < options.count) {
        HF_TRY(hf_sleep(hf_milliseconds(10)));
    }
    return hf_sleep(hf_milliseconds(100)); /* the steps in which they began to wait are done */
}

static hf_status end_many(moment from, moment to)
{
    hf_worker_stats stats;
    HF_TRY(hf_worker_stat(worker, &stats));
    bench_print("released", (double)stats.released);
    print_between(from, to);
    return hf_worker_stop(worker);
}

static hf_status measure_signals(void *arg)
{
    (void)arg;
    HF_TRY(start_all());
    moment from = now();
    HF_TRY(each(signal_run));
    bench_print("signals_s", options.count / ((double)(bench_wall_ns() - from.wall) * 1e-9));
    HF_TRY(each(await_run));
    moment to = now();
    bench_print("ended_s", options.count / ((double)(to.wall - from.wall) * 1e-9));
    print_quantiles(told, (size_t)options.count, "p50_ms", "p99_ms");
    return end_many(from, to);
}

static hf_status tell_late(void *arg)
{
    long long i = (hf_execution **)arg - waiters;
    HF_TRY(await_run(i));
    told[i] = us_after_due();
    return HF_OK;
}

static hf_status measure_timers(void *arg)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)arg;
    due = (hf_time){hf_wall_now(NULL).ns + hf_seconds(3).ns + options.count * hf_milliseconds(1).ns};
    HF_TRY(start_all());
    HF_TRY(hf_scope_open(&scope, .name = "results"));
    for (int i = 0; i < options.count; i++) {
        HF_TRY(hf_fork(scope, tell_late, &waiters[i]));
    }
    HF_TRY(hf_sleep(hf_milliseconds(500))); /* all of them ask */
    if (hf_wall_now(NULL).ns > due.ns) {
        return hf_raise(HF_ERR_TIMEOUT, "the timers were due before all runs waited");
    }
    moment from = now();
    HF_TRY(hf_join(scope));
    moment to = now();
    print_quantiles(late, (size_t)options.count, "task_p50_ms", "task_p99_ms");
    print_quantiles(told, (size_t)options.count, "p50_ms", "p99_ms");
    return end_many(from, to);
}

static hf_function function_of(const char *mode)
{
    static const struct {
        const char *mode;
        hf_function function;
    } MODES[] = {{"w1", order},          {"once", order},   {"w2", sequence},  {"w3", fan_out},
                 {"w4", until_signaled}, {"w5", until_due}, {"parked", parked}};
    for (size_t i = 0; i < sizeof MODES / sizeof MODES[0]; i++) {
        if (strcmp(MODES[i].mode, mode) == 0) {
            return MODES[i].function;
        }
    }
    return NULL;
}

static hf_body measure_of(const char *mode)
{
    static const struct {
        const char *mode;
        hf_body body;
    } MODES[] = {{"parked", measure_parked}, {"once", measure_once}, {"w4", measure_signals}, {"w5", measure_timers}};
    for (size_t i = 0; i < sizeof MODES / sizeof MODES[0]; i++) {
        if (strcmp(MODES[i].mode, mode) == 0) {
            return MODES[i].body;
        }
    }
    return measure;
}

static hf_status program(void *arg)
{
    bool is_parked = strcmp(options.mode, "parked") == 0;
    bool is_once = strcmp(options.mode, "once") == 0;
    bool is_many = strcmp(options.mode, "w4") == 0 || strcmp(options.mode, "w5") == 0;
    bool keeps_all = is_parked || is_many;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_AUTO(hf_close) hf_service *opened = NULL;
    HF_AUTO(hf_worker_free) hf_worker *made = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_open((const char *)arg, &opened));
    HF_TRY(hf_worker_new(opened, "bench", &made, .pollers_max = options.pollers,
                         .activity_pollers_max = options.pollers, .cached_max = keeps_all ? HF_UNLIMITED : 0,
                         .cached_bytes_max = keeps_all ? HF_UNLIMITED : 0,
                         .idle_timeout = keeps_all ? HF_SPAN_OFF : hf_seconds(60)));
    service = opened;
    worker = made;
    HF_TRY(hf_worker_add_workflow(worker, "order", function_of(options.mode)));
    if (options.has_memo || is_once) {
        HF_TRY(hf_depot_open("bench", &depot));
        HF_TRY(hf_worker_add_activity(worker, "charge", is_once ? charge_slowly : charge, .on_fiber = options.on_fiber,
                                      .memo = hf_depot_memo(depot, .ttl = hf_hours(1))));
    } else {
        HF_TRY(hf_worker_add_activity(worker, "charge", charge, .on_fiber = options.on_fiber));
    }
    HF_TRY(hf_scope_open(&scope, .name = "bench"));
    HF_TRY(hf_fork(scope, measure_of(options.mode), NULL));
    HF_TRY(hf_worker_run(worker));
    return hf_join(scope);
}

static void remove_files(void)
{
    static const char *const TAILS[] = {"", "-wal", "-shm", "-owner", "-sock"};
    char file[4200];
    for (size_t i = 0; i < sizeof TAILS / sizeof TAILS[0]; i++) {
        (void)snprintf(file, sizeof file, "%s%s", path, TAILS[i]);
        (void)unlink(file);
    }
}

/* A process that has the file open, until it is killed. */
static pid_t start_owner(const char *address)
{
    int ready[2];
    char byte = 0;
    if (pipe(ready) != 0) {
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        hf_service *opened = NULL;
        HF_OR_DIE(hf_open(address, &opened));
        (void)!write(ready[1], &byte, 1);
        for (;;) {
            (void)pause();
        }
    }
    (void)!read(ready[0], &byte, 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return pid;
}

int main(int argc, char **argv)
{
    options.mode = argc > 1 ? argv[1] : "";
    options.count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    for (int i = 3; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0) {
            options.seconds = strtod(argv[i + 1], NULL);
        } else if (strcmp(argv[i], "--dir") == 0) {
            options.dir = argv[i + 1];
        } else if (strcmp(argv[i], "--pollers") == 0) {
            options.pollers = (int)strtol(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--store") == 0) {
            options.in_memory = strcmp(argv[i + 1], "memory") == 0;
        } else if (strcmp(argv[i], "--activities") == 0) {
            options.on_fiber = strcmp(argv[i + 1], "fiber") == 0;
        } else if (strcmp(argv[i], "--through") == 0) {
            options.through = strcmp(argv[i + 1], "owner") == 0;
        } else if (strcmp(argv[i], "--memo") == 0) {
            options.has_memo = strcmp(argv[i + 1], "depot") == 0;
        }
    }
    bool has_many =
        strcmp(options.mode, "parked") == 0 || strcmp(options.mode, "w4") == 0 || strcmp(options.mode, "w5") == 0;
    int count_max = has_many ? 1000000 : COUNT_MAX;
    if (function_of(options.mode) == NULL || options.count < 1 || options.count > count_max) {
        (void)fprintf(stderr,
                      "usage: workflows w1|w2|w3 COUNT [--seconds S] [--dir DIR] [--pollers N] [--store memory] "
                      "[--activities fiber] [--through owner] [--memo depot]\n"
                      "       workflows w4|w5 COUNT [--dir DIR] [--store memory]\n"
                      "       workflows once COUNT [--store memory] [--activities fiber]\n"
                      "       workflows parked COUNT [--store memory]\n");
        return 2;
    }
    static char address[4200];
    waiters = calloc((size_t)options.count, sizeof(hf_execution *));
    late = calloc((size_t)options.count, sizeof *late);
    told = calloc((size_t)options.count, sizeof *told);
    if (waiters == NULL || late == NULL || told == NULL) {
        abort();
    }
    (void)snprintf(path, sizeof path, "%s/bench_workflows.db", options.dir);
    (void)snprintf(address, sizeof address, "%s%s",
                   options.in_memory ? "memory:" : "sqlite:", options.in_memory ? "" : path);
    remove_files();
    owner = options.through ? start_owner(address) : -1;
    if (options.through) {
        (void)snprintf(address, sizeof address, "owner:%s", path);
    }
    bool is_parked = strcmp(options.mode, "parked") == 0;
    HF_OR_DIE(hf_run(program, address,
                     .allocator = is_parked ? (hf_allocator){count_allocate, count_release, NULL} : (hf_allocator){0}));
    if (owner > 0) {
        (void)kill(owner, SIGKILL);
        (void)waitpid(owner, NULL, 0);
    }
    remove_files();
    return 0;
}
