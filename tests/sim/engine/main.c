/* hf_sim: campaigns and single seeds of the engine's simulator. See ./dev sim.
 *
 *     hf_sim [--seeds N] [--seed S] [--store memory|sqlite] [--jobs N] [--trace]
 *
 * Seeds are divided among child processes. A seed that fails is printed as the command that repeats it; the campaign
 * goes on. It also fails if a fault, a probe or a transition never happened. */
#include "sim/engine/sim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOBS_MAX = 64, TWICE_EVERY = 20, FAILURES_MAX = 10 };

typedef struct campaign {
    uint64_t first, count;
    int jobs;
    bool is_single;
    sim_options options;
} campaign;

typedef struct share {
    sim_totals totals;
    uint64_t failures;
} share;

static uint64_t seed_now;
static volatile sig_atomic_t is_stopped;

static void on_abort(int number)
{
    char text[80];
    int len = snprintf(text, sizeof text, "\nhf_sim --seed %llu: the process died\n", (unsigned long long)seed_now);
    if (len > 0 && write(STDERR_FILENO, text, (size_t)len) < 0) {
        _exit(2);
    }
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void on_stop(int number)
{
    (void)number;
    is_stopped = 1;
}

static bool try_seed(const campaign *plan, uint64_t seed, share *mine)
{
    char why[800];
    uint64_t hash = 0;
    seed_now = seed;
    bool fine = sim_run(seed, plan->options, &mine->totals, &hash, why, sizeof why);
    if (fine && (plan->is_single || seed % TWICE_EVERY == 0)) { /* D11 */
        uint64_t again = 0;
        sim_totals ignored = {0};
        sim_options quiet = plan->options;
        quiet.trace = NULL;
        fine = sim_run(seed, quiet, &ignored, &again, why, sizeof why);
        if (fine && again != hash) { /* engine-E6 */
            fine = false;
            (void)snprintf(why, sizeof why, "D11: the same seed gave another history the second time");
        }
    }
    if (!fine) {
        const char *commit = getenv("HF_COMMIT");
        (void)printf("hf_sim --seed %llu%s (commit %s): %s\n", (unsigned long long)seed,
                     plan->options.sqlite ? " --store sqlite" : "", commit != NULL ? commit : "unknown", why);
        (void)fflush(stdout);
        mine->failures++;
    }
    return fine;
}

static void work(const campaign *plan, int job, int out)
{
    share mine = {.totals = {.inputs_min = UINT64_MAX, .runs_min = UINT64_MAX, .crashes_min = UINT64_MAX}};
    time_t said = time(NULL);
    for (uint64_t i = (uint64_t)job; i < plan->count && !is_stopped && mine.failures < FAILURES_MAX;
         i += (uint64_t)plan->jobs) {
        (void)try_seed(plan, plan->first + i, &mine);
        if (job == 0 && time(NULL) - said >= 5) {
            said = time(NULL);
            (void)fprintf(stderr, "  %llu of %llu seeds\n", (unsigned long long)i, (unsigned long long)plan->count);
        }
    }
    if (write(out, &mine, sizeof mine) != (ssize_t)sizeof mine) {
        _exit(2);
    }
}

static bool collect(int from, share *all)
{
    share one;
    size_t len = 0;
    while (len < sizeof one) {
        ssize_t got = read(from, (char *)&one + len, sizeof one - len);
        if (got <= 0) {
            return false;
        }
        len += (size_t)got;
    }
    sim_totals_add(&all->totals, &one.totals);
    all->failures += one.failures;
    return true;
}

static int run(const campaign *plan)
{
    time_t since = time(NULL);
    share all = {.totals = {.inputs_min = UINT64_MAX, .runs_min = UINT64_MAX, .crashes_min = UINT64_MAX}};
    int ends[JOBS_MAX][2];
    pid_t pids[JOBS_MAX];
    bool died = false;
    for (int job = 0; job < plan->jobs; job++) {
        if (pipe(ends[job]) != 0 || (pids[job] = fork()) < 0) {
            return 2;
        }
        if (pids[job] == 0) {
            work(plan, job, ends[job][1]);
            _exit(0);
        }
        (void)close(ends[job][1]);
    }
    for (int job = 0; job < plan->jobs; job++) {
        died = !collect(ends[job][0], &all) || died;
        (void)close(ends[job][0]);
        (void)waitpid(pids[job], NULL, 0);
    }
    bool complete = sim_totals_print(&all.totals, stdout);
    (void)printf("%sseeds: %llu seeds from %llu on %s, %llu inputs, %llu crashes, %llu s, %llu violations%s%s\n",
                 is_stopped ? "interrupted, " : "", (unsigned long long)all.totals.seeds,
                 (unsigned long long)plan->first, plan->options.sqlite ? "SQLite" : "memory",
                 (unsigned long long)all.totals.inputs, (unsigned long long)all.totals.faults[HF_SIM_CRASH],
                 (unsigned long long)(time(NULL) - since), (unsigned long long)all.failures,
                 died ? ", a process died" : "",
                 complete || plan->is_single || is_stopped ? "" : ", and not everything was met");
    return all.failures > 0 || died || (!complete && !plan->is_single && !is_stopped) ? 1 : 0;
}

static bool parse(int argc, char **argv, campaign *plan)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--trace") == 0) {
            plan->options.trace = stdout;
            continue;
        }
        if (strcmp(argv[i], "--seeds") == 0) {
            plan->count = strtoull(value, NULL, 0);
        } else if (strcmp(argv[i], "--seed") == 0) {
            plan->first = strtoull(value, NULL, 0);
            plan->count = 1;
            plan->is_single = true;
        } else if (strcmp(argv[i], "--from") == 0) {
            plan->first = strtoull(value, NULL, 0);
        } else if (strcmp(argv[i], "--jobs") == 0) {
            plan->jobs = atoi(value);
        } else if (strcmp(argv[i], "--store") == 0) {
            plan->options.sqlite = strcmp(value, "sqlite") == 0;
        } else {
            return false;
        }
        i++;
    }
    plan->jobs = plan->jobs < 1 || plan->is_single ? 1 : plan->jobs > JOBS_MAX ? JOBS_MAX : plan->jobs;
    return plan->count > 0;
}

int main(int argc, char **argv)
{
    campaign plan = {.first = 1, .count = 1000, .jobs = 2};
    if (!parse(argc, argv, &plan)) {
        (void)fprintf(stderr,
                      "usage: hf_sim [--seeds N] [--from S] [--seed S] [--store memory|sqlite] [--jobs N] [--trace]\n");
        return 2;
    }
    (void)signal(SIGABRT, on_abort);
    (void)signal(SIGSEGV, on_abort);
    (void)signal(SIGINT, on_stop);
    return run(&plan);
}
