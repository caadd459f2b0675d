/* The library's side of `./dev bench fibers`: each mode runs one workload through the public API, as the root fiber of
 * a runtime, and prints its figures. floor.c, floor_mn.c, floor_pool.c and go/main.go have the same workloads under the
 * same names; fibers.sh says which stands beside which.
 *
 * CPU-bound modes on one thread count the CPU time of the process, all others wall time. */
#include "bench.h"

#include <holdfast/holdfast.h>

#include <stdatomic.h>
#include <sys/syscall.h>

static bench_args args;
static long count; /* of the running mode */

/* ---- What the modes share ---------------------------------------------------------------------------------------- */

static atomic_long started; /* fibers that are about to park */

static hf_status body_empty(void *arg)
{
    (void)arg;
    return HF_OK;
}

/* Parks on a channel that nobody sends to, until it is canceled. */
static hf_status body_park(void *arg)
{
    void *value = NULL;
    atomic_fetch_add_explicit(&started, 1, memory_order_relaxed);
    return hf_chan_recv((hf_chan *)arg, &value);
}

static hf_status body_sleep(void *arg)
{
    const hf_span *span = arg;
    return hf_sleep(*span);
}

/* Returns once `target` fibers have parked: the last one that announced itself parks before we run again. */
static hf_status wait_until_parked(long target)
{
    while (atomic_load_explicit(&started, memory_order_relaxed) < target) {
        HF_TRY(hf_yield());
    }
    return hf_yield();
}

static hf_status fork_many(hf_scope *scope, long how_many, hf_body body, void *arg)
{
    for (long i = 0; i < how_many; i++) {
        HF_TRY(hf_fork(scope, body, arg));
    }
    return HF_OK;
}

/* After a cancel that we asked for, that is what the join says. */
static hf_status join_canceled(hf_scope *scope)
{
    hf_status status = hf_join(scope);
    return status == HF_ERR_CANCELED ? HF_OK : status;
}

/* ---- Switch, fork, channel --------------------------------------------------------------------------------------- */

static hf_status body_yield(void *arg)
{
    for (long left = *(const long *)arg; left > 0; left--) {
        HF_TRY(hf_yield());
    }
    return HF_OK;
}

static hf_status run_yield(void *arg)
{
    (void)arg;
    long each = count / 2;
    HF_AUTO(hf_scope_close) hf_scope *pair = NULL;
    HF_TRY(hf_scope_open(&pair, .name = "yield"));
    HF_TRY(fork_many(pair, 2, body_yield, &each));
    hf_stats before = {0};
    hf_stats after = {0};
    HF_TRY(hf_runtime_stats(hf_runtime_current(), &before));
    int64_t start = bench_cpu_ns();
    HF_TRY(hf_join(pair));
    int64_t spent = bench_cpu_ns() - start;
    HF_TRY(hf_runtime_stats(hf_runtime_current(), &after));
    if (after.switches - before.switches < (uint64_t)each) {
        return hf_raise(HF_ERR_FAILED, "the two fibers did not take turns: a yield that stays is no switch");
    }
    bench_print("yield", (double)spent / (double)(each * 2));
    return HF_OK;
}

/* One scope stays open, jobs come and go. */
static hf_status run_fork_one(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "fork_one"));
    int64_t start = 0;
    for (long i = -1000; i < count; i++) {
        if (i == 0) {
            start = bench_cpu_ns();
        }
        HF_TRY(hf_fork(scope, body_empty, NULL));
        HF_TRY(hf_join(scope));
    }
    bench_print("fork_one", (double)(bench_cpu_ns() - start) / (double)count);
    return HF_OK;
}

static hf_status scope_of(long how_many, hf_body body, void *arg)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "batch"));
    HF_TRY(fork_many(scope, how_many, body, arg));
    return hf_join(scope);
}

/* A scope per job: open, fork, join, close. */
static hf_status run_scope_one(void *arg)
{
    (void)arg;
    int64_t start = 0;
    for (long i = -1000; i < count; i++) {
        if (i == 0) {
            start = bench_cpu_ns();
        }
        HF_TRY(scope_of(1, body_empty, NULL));
    }
    bench_print("scope_one", (double)(bench_cpu_ns() - start) / (double)count);
    return HF_OK;
}

static hf_status run_fork_batch(void *arg)
{
    (void)arg;
    int64_t start = 0;
    for (long batch = -10; batch < count / 1000; batch++) {
        if (batch == 0) {
            start = bench_cpu_ns();
        }
        HF_TRY(scope_of(1000, body_empty, NULL));
    }
    bench_print("fork_batch", (double)(bench_cpu_ns() - start) / (double)count);
    return HF_OK;
}

/* Two channels and, on the other side, a fiber that sends back what it gets until it is canceled. */
typedef struct pair {
    hf_chan *there;
    hf_chan *back;
    pid_t home;           /* thread that made the pair */
    atomic_bool claimed;  /* chan_split: a pong on another thread was found */
    atomic_int pong_home; /* thread the pong runs on; 0 = not started */
} pair;

static pid_t thread_id(void)
{
    return (pid_t)syscall(SYS_gettid);
}

static hf_status pong(pair *ends)
{
    void *value = NULL;
    atomic_store(&ends->pong_home, thread_id());
    for (;;) {
        HF_TRY(hf_chan_recv(ends->there, &value));
        HF_TRY(hf_chan_send(ends->back, &value));
    }
}

static hf_status body_pong(void *arg)
{
    return pong(arg);
}

static hf_status ping(pair *ends, long times)
{
    void *value = NULL;
    for (long i = 0; i < times; i++) {
        HF_TRY(hf_chan_send(ends->there, &value));
        HF_TRY(hf_chan_recv(ends->back, &value));
    }
    return HF_OK;
}

static hf_status ping_measured(pair *ends, int64_t (*clock_ns)(void))
{
    long each = count / 2;
    HF_TRY(ping(ends, 1000));
    int64_t start = clock_ns();
    HF_TRY(ping(ends, each));
    bench_print("chan", (double)(clock_ns() - start) / (double)(each * 2));
    return HF_OK;
}

/* One attempt; `*ret_together` tells whether both ends ran on one thread. */
static hf_status chan_attempt(int64_t (*clock_ns)(void), bool *ret_together)
{
    HF_AUTO(hf_chan_free) hf_chan *there = NULL;
    HF_AUTO(hf_chan_free) hf_chan *back = NULL;
    HF_TRY(hf_chan_new(sizeof(void *), &there, .name = "there"));
    HF_TRY(hf_chan_new(sizeof(void *), &back, .name = "back"));
    pair ends = {.there = there, .back = back, .home = thread_id()};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "chan"));
    HF_TRY(hf_fork(scope, body_pong, &ends));
    HF_TRY(ping(&ends, 1));
    *ret_together = atomic_load(&ends.pong_home) == ends.home;
    return *ret_together ? ping_measured(&ends, clock_ns) : HF_OK;
}

static hf_status run_chan(void *arg)
{
    (void)arg;
    bool together = false;
    return chan_attempt(bench_cpu_ns, &together);
}

/* Two threads, but the pair stays on one of them; a pong that was stolen is tried again. */
static hf_status run_chan_pair(void *arg)
{
    (void)arg;
    bool together = false;
    for (int i = 0; i < 100 && !together; i++) {
        HF_TRY(chan_attempt(bench_wall_ns, &together));
    }
    return together ? HF_OK : hf_raise(HF_ERR_FAILED, "the other thread stole the pong a hundred times");
}

/* A candidate for the other end: the first that starts on another thread is it. */
static hf_status body_pong_elsewhere(void *arg)
{
    pair *ends = arg;
    if (thread_id() == ends->home || atomic_exchange(&ends->claimed, true)) {
        return HF_OK;
    }
    return pong(ends);
}

static hf_status run_chan_split(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *there = NULL;
    HF_AUTO(hf_chan_free) hf_chan *back = NULL;
    HF_TRY(hf_chan_new(sizeof(void *), &there, .name = "there"));
    HF_TRY(hf_chan_new(sizeof(void *), &back, .name = "back"));
    pair ends = {.there = there, .back = back, .home = thread_id()};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "chan"));
    HF_TRY(fork_many(scope, 64, body_pong_elsewhere, &ends));
    /* Keeps this thread busy, so that the other one has a reason to steal. */
    int64_t give_up = bench_wall_ns() + 1000000000;
    while (atomic_load(&ends.pong_home) == 0) {
        if (bench_wall_ns() > give_up) {
            return hf_raise(HF_ERR_FAILED, "no job was stolen within 1 s");
        }
    }
    return ping_measured(&ends, bench_wall_ns);
}

/* ---- Many fibers ------------------------------------------------------------------------------------------------- */

/* Memory of parked fibers, and the time to make them. */
static hf_status run_mem(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *never = NULL;
    HF_TRY(hf_chan_new(sizeof(void *), &never, .name = "never"));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "parked"));
    bench_memory before = bench_memory_now();
    int64_t start = bench_cpu_ns();
    HF_TRY(fork_many(scope, count, body_park, never));
    HF_TRY(wait_until_parked(count));
    bench_print("create_s", (double)(bench_cpu_ns() - start) / 1e9);
    bench_print_memory("rss", "pte", before, count);
    _exit(0); /* tearing a million fibers down is measured elsewhere, on fewer */
}

/* Memory of jobs that have not started. */
static hf_status run_queued(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "queued"));
    bench_memory before = bench_memory_now();
    HF_TRY(fork_many(scope, count, body_empty, NULL));
    bench_print_memory("queued", NULL, before, count);
    return hf_join(scope);
}

/* The same for jobs that start later. */
static hf_status run_delayed(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "delayed"));
    bench_memory before = bench_memory_now();
    for (long i = 0; i < count; i++) {
        HF_TRY(hf_fork(scope, body_empty, NULL, .delay = hf_hours(1)));
    }
    bench_print_memory("delayed", NULL, before, count);
    HF_TRY(hf_scope_cancel(scope));
    return join_canceled(scope);
}

static hf_status sleep_all(const char *metric, long how_many, hf_span span)
{
    int64_t start = bench_wall_ns();
    HF_TRY(scope_of(how_many, body_sleep, &span));
    bench_print(metric, (double)(bench_wall_ns() - start) / 1e6);
    return HF_OK;
}

static hf_status run_sleep(void *arg)
{
    (void)arg;
    HF_TRY(sleep_all("cold_ms", count, hf_milliseconds(10)));
    return sleep_all("warm_ms", count, hf_milliseconds(10));
}

static hf_status run_sleep50(void *arg)
{
    (void)arg;
    return sleep_all("ms", count, hf_milliseconds(100));
}

static hf_status run_sleep3(void *arg)
{
    (void)arg;
    return sleep_all("ms", count, hf_seconds(1));
}

static hf_status run_sleep100(void *arg)
{
    (void)arg;
    return sleep_all("ms", count, hf_milliseconds(10));
}

/* ---- Cancel ------------------------------------------------------------------------------------------------------ */

static hf_status cancel_measured(hf_scope *scope)
{
    int64_t start = bench_cpu_ns();
    HF_TRY(hf_scope_cancel(scope, .reason = "bench"));
    int64_t marked = bench_cpu_ns();
    HF_TRY(join_canceled(scope));
    bench_print("cancel_ms", (double)(bench_cpu_ns() - start) / 1e6);
    bench_print("mark_ms", (double)(marked - start) / 1e6);
    return HF_OK;
}

enum { TREE_CHILDREN = 1000 };

static hf_status body_parent(void *arg)
{
    return scope_of(TREE_CHILDREN, body_park, arg);
}

static hf_status run_cancel_tree(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *never = NULL;
    HF_TRY(hf_chan_new(sizeof(void *), &never, .name = "never"));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "tree"));
    HF_TRY(fork_many(scope, count / TREE_CHILDREN, body_parent, never));
    HF_TRY(wait_until_parked(count));
    return cancel_measured(scope);
}

static hf_status run_cancel_flat(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *never = NULL;
    HF_TRY(hf_chan_new(sizeof(void *), &never, .name = "never"));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "flat"));
    HF_TRY(fork_many(scope, count, body_park, never));
    HF_TRY(wait_until_parked(count));
    return cancel_measured(scope);
}

/* ---- Blocking calls, dump, parallel work ------------------------------------------------------------------------- */

static hf_status body_caller(void *arg)
{
    for (long left = *(const long *)arg; left > 0; left--) {
        HF_TRY(hf_block(body_empty, NULL));
    }
    return HF_OK;
}

/* `count` calls, made by so many fibers at once. */
static hf_status calls(long depth)
{
    long warm = 100;
    long each = count / depth;
    HF_TRY(scope_of(depth, body_caller, &warm)); /* the pool has its threads after this */
    int64_t start = bench_wall_ns();
    HF_TRY(scope_of(depth, body_caller, &each));
    bench_print("call_us", (double)(bench_wall_ns() - start) / 1e3 / (double)(each * depth));
    return HF_OK;
}

static hf_status run_block1(void *arg)
{
    (void)arg;
    return calls(1);
}

static hf_status run_block64(void *arg)
{
    (void)arg;
    return calls(64);
}

static hf_status dump_once(size_t *ret_len)
{
    HF_AUTO(hf_text_free) char *text = NULL;
    HF_TRY(hf_dump(NULL, &text));
    *ret_len = strlen(text);
    return HF_OK;
}

static hf_status run_dump(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *never = NULL;
    HF_TRY(hf_chan_new(sizeof(void *), &never, .name = "never"));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "parked"));
    HF_TRY(fork_many(scope, count, body_park, never));
    HF_TRY(wait_until_parked(count));
    size_t len = 0;
    HF_TRY(dump_once(&len));
    int64_t start = bench_wall_ns();
    HF_TRY(dump_once(&len));
    bench_print("dump_ms", (double)(bench_wall_ns() - start) / 1e6);
    bench_print("dump_bytes", (double)len / (double)count);
    HF_TRY(hf_scope_cancel(scope));
    return join_canceled(scope);
}

static hf_status body_tree(void *arg)
{
    intptr_t below = (intptr_t)arg;
    if (below == 0) {
        return HF_OK;
    }
    return scope_of(2, body_tree, (void *)(below - 1));
}

static hf_status run_tree(void *arg)
{
    (void)arg;
    int64_t start = 0;
    for (int round = 0; round < 2; round++) { /* the first one makes the stacks */
        start = bench_wall_ns();
        HF_TRY(body_tree((void *)(intptr_t)count));
    }
    bench_print("tree", (double)(bench_wall_ns() - start) / (double)((2L << count) - 1));
    return HF_OK;
}

static hf_status body_work(void *arg)
{
    (void)arg;
    bench_work();
    return HF_OK;
}

static hf_status run_work(void *arg)
{
    (void)arg;
    int64_t start = 0;
    for (long batch = -20; batch < count / 1000; batch++) {
        if (batch == 0) {
            start = bench_wall_ns();
        }
        HF_TRY(scope_of(1000, body_work, NULL));
    }
    bench_print("work", (double)(bench_wall_ns() - start) / (double)count);
    return HF_OK;
}

/* ---- Main -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    hf_body body;
    long count; /* unless the command line says otherwise */
} MODES[] = {
    {"yield", run_yield, 4000000},
    {"fork_one", run_fork_one, 1000000},
    {"scope_one", run_scope_one, 500000},
    {"fork_batch", run_fork_batch, 2000000},
    {"chan", run_chan, 2000000},
    {"chan_pair", run_chan_pair, 2000000},
    {"chan_split", run_chan_split, 500000},
    {"chan_pinned", run_chan_split, 500000}, /* the same with .pin_threads */
    {"mem", run_mem, 100000},
    {"queued", run_queued, 100000},
    {"delayed", run_delayed, 100000},
    {"sleep", run_sleep, 100000},
    {"sleep50", run_sleep50, 50},
    {"sleep3", run_sleep3, 3},
    {"sleep100", run_sleep100, 100},
    {"cancel_tree", run_cancel_tree, 100000},
    {"cancel_flat", run_cancel_flat, 100000},
    {"block1", run_block1, 5000},
    {"block64", run_block64, 64000},
    {"dump", run_dump, 10000},
    {"tree", run_tree, 18},
    {"work", run_work, 100000},
};

int main(int argc, char **argv)
{
    args = bench_args_parse(argc, argv);
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        if (strcmp(args.mode, MODES[i].name) == 0) {
            count = bench_count(args, MODES[i].count);
            bool is_pinned = strcmp(args.mode, "chan_pinned") == 0;
            HF_OR_DIE(hf_run(MODES[i].body, NULL, .threads = args.threads, .pin_threads = is_pinned));
            return 0;
        }
    }
    fprintf(stderr, "fibers: no mode '%s'\n", args.mode);
    return 2;
}
