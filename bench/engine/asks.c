/* Updates and queries to runs that wait, and signals to a run that has had many.
 *
 * An update is accepted and completed in one workflow task: one commit. A rejected one and a query are none. "Released": there are
 * many more runs than memory for them, so the one that an update is for is only rows. */
#include "bench.h"
#include "engine/cells.h"

enum {
    RUNS_MIN = 2000, /* a run takes so many updates in its life, and few at once */
    RELEASED_RUNS = 20000,
    RELEASED_MEM = 1 << 20,
    SMALL_JOURNAL = 64 << 10,
    TOGETHER = 32,
    REPEATS = 5,
    SIGNALS = 450 /* twice as many, and those before: a run takes 10,000 */
};

static play_options ask_options(const cell_options *o, hf_service *service, cell_ask kind)
{
    play_options options = cell_play(o, service, 1);
    long long runs = kind == CELL_RELEASED ? RELEASED_RUNS : 4 * o->count;
    options.wait = kind == CELL_QUERY ? PLAY_SIGNAL : PLAY_UPDATE;
    options.stays_open = true;
    options.rejects = kind == CELL_REJECTED;
    options.runs_max = (size_t)(runs > RUNS_MIN ? runs : RUNS_MIN);
    return options;
}

void cell_asks(const cell_options *o, cell_ask kind)
{
    const char *path = cell_path(o, o->mode);
    cell_options own = *o;
    if (kind == CELL_RELEASED) {
        own.mem_max = own.mem_max > 0 ? own.mem_max : RELEASED_MEM;
        own.journal_max = own.journal_max > 0 ? own.journal_max : SMALL_JOURNAL;
    }
    cell_remove(path);
    hf_service *service = cell_open(&own, path);
    play_options options = ask_options(o, service, kind);
    play p;
    play_open(&p, &options);
    (void)play_start_all(&p, (long long)options.runs_max, o->window);
    play_await(&p.waiting, (long long)options.runs_max);
    hf_method method = kind == CELL_QUERY ? HF_METHOD_QUERY_WORKFLOW : HF_METHOD_UPDATE_WORKFLOW_EXECUTION;
    play_ask_begin(&p, method, (int)o->count, kind == CELL_RELEASED);
    cell_sleep(o->seconds < 4 ? 0.5 : 1.0);
    long long begun = atomic_load(&p.swept);
    cell_moment from = cell_now(service, &p);
    atomic_store(&p.measuring, true);
    cell_sleep(o->seconds);
    atomic_store(&p.measuring, false);
    cell_moment to = cell_now(service, &p);
    double asked = (double)(atomic_load(&p.swept) - begun);
    play_ask_end(&p);
    cell_check(&p);
    bench_print("ops_s", asked / ((double)(to.wall - from.wall) * 1e-9));
    bench_print("in_memory", (double)to.stats.runs);
    cell_print(&from, &to, asked);
    cell_print_times(&p.sweep_times, "p50_ms", "p99_ms");
    cell_close(service);
    play_close(&p);
    cell_remove(path);
}

/* ---- Signals with request ids -------------------------------------------------------------------------------------------- */

/* CPU us of one signal: each with a commit of its own, or many at once. */
static double signal_us(play *p, long long number, int window)
{
    int64_t begun = bench_cpu_ns();
    (void)play_signal_one(p, number, SIGNALS, window);
    p->ask_base += SIGNALS; /* no id comes twice */
    return (double)(bench_cpu_ns() - begun) / SIGNALS / 1000;
}

/* Runs in pairs, one of which has had COUNT signals. The journal is small, so that both are written to their rows again and again. */
void cell_busy(const cell_options *o)
{
    const char *path = cell_path(o, o->mode);
    cell_options own = *o;
    own.journal_max = own.journal_max > 0 ? own.journal_max : SMALL_JOURNAL;
    cell_remove(path);
    hf_service *service = cell_open(&own, path);
    play_options options = cell_play(o, service, 1);
    options.wait = PLAY_SIGNAL;
    options.stays_open = true;
    options.has_request_ids = true;
    options.may_be_late = true;
    options.polls = 64;
    options.runs_max = 2 * REPEATS;
    play p;
    play_open(&p, &options);
    (void)play_start_all(&p, 2 * REPEATS, 1);
    play_await(&p.waiting, 2 * REPEATS);
    double us[2][2] = {{0}}; /* new or busy; alone or together */
    for (long long i = 0; i < REPEATS; i++) {
        (void)play_signal_one(&p, 2 * i, o->count, TOGETHER);
        p.ask_base += o->count;
        cell_sleep(0.05); /* its workflow tasks are answered */
        for (int is_busy = 1; is_busy >= 0; is_busy--) {
            us[is_busy][0] += signal_us(&p, 2 * i + 1 - is_busy, 1) / REPEATS;
            us[is_busy][1] += signal_us(&p, 2 * i + 1 - is_busy, TOGETHER) / REPEATS;
        }
    }
    cell_check(&p);
    bench_print("alone_busy_us", us[1][0]);
    bench_print("alone_new_us", us[0][0]);
    bench_print("alone_ratio", us[1][0] / us[0][0]);
    bench_print("busy_us", us[1][1]);
    bench_print("new_us", us[0][1]);
    bench_print("ratio", us[1][1] / us[0][1]);
    cell_close(service);
    play_close(&p);
    cell_remove(path);
}
