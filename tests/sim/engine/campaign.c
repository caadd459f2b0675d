/* hf_campaign: long campaigns of failures of the disk and of memory. See ./dev campaign.
 *
 *     hf_campaign images|io|memory [--count N] [--from S] [--jobs N]
 *
 * Child processes take one item after the other: a seed, whose world is played on a disk that loses power (images) or
 * on one that fails (io), or a scene without memory. Results are counted in memory that all of them share. An item with
 * a violation is printed as the command that repeats it, and so is one whose process dies; the campaign goes on until
 * there are many. Ctrl-C ends it after the current items. */
#include "sim/engine/disk.h"
#include "support/nomem.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOBS_MAX = 64, VIOLATIONS_MAX = 10, COUNTS_MAX = 5, PROGRESS_S = 5, LOOK_MS = 50 };

typedef struct board {
    _Atomic uint64_t next; /* next item to take */
    _Atomic uint64_t items;
    _Atomic uint64_t counts[COUNTS_MAX]; /* as `labels` of the kind says */
    _Atomic uint64_t violations;
    _Atomic bool stop;
    _Atomic uint64_t at[JOBS_MAX]; /* item of each job */
} board;

typedef struct kind {
    const char *name;
    const char *item;               /* word for an item, which --from counts */
    const char *labels[COUNTS_MAX]; /* of the counts; --count is about the first */
    uint64_t count;                 /* default of --count */
    uint64_t first;                 /* default of --from */
    uint64_t items_max;             /* number of items; 0 = unlimited */
    void (*one)(uint64_t item, uint64_t counts[COUNTS_MAX]);
} kind;

static board *all;
static volatile sig_atomic_t is_stopped;

static void on_stop(int number)
{
    (void)number;
    is_stopped = 1;
}

/* ---- Items ----------------------------------------------------------------------------------------------------------- */

static void one_image(uint64_t seed, uint64_t counts[COUNTS_MAX])
{
    sim_outage_counts mine = {0};
    sim_outage_world(seed, seed % 2 == 0, &mine); /* on every other disk syncs fail, too */
    counts[0] = mine.images;
    counts[1] = mine.judged;
    counts[2] = mine.nested;
    counts[3] = mine.engines;
    counts[4] = mine.troubles;
}

static void one_io(uint64_t seed, uint64_t counts[COUNTS_MAX])
{
    sim_io_counts mine = {0};
    sim_io_world(seed, &mine);
    counts[0] = mine.scenarios;
    counts[1] = mine.faults;
    counts[2] = mine.reported;
    counts[3] = mine.cuts;
}

static void one_memory(uint64_t scene, uint64_t counts[COUNTS_MAX])
{
    hf_nomem_counts mine = {0};
    hf_nomem_sweep(scene, 1, 1, true, &mine);
    counts[0] = mine.scenes;
    counts[1] = mine.faults;
    counts[2] = mine.broke;
    counts[3] = mine.opens;
}

static kind KINDS[] = {
    {"images",
     "world",
     {"images", "different and opened", "made while another was opened", "engines opened on them",
      "failed syncs and the like before them"},
     3000000,
     1,
     0,
     one_image},
    {"io", "world", {"scenarios", "calls failed", "reported by the open", "power cuts afterwards"}, 40, 1, 0, one_io},
    {"memory",
     "scene",
     {"scenes", "allocations failed", "broke the core", "openings failed"},
     UINT64_MAX,
     0,
     0,
     one_memory},
};

/* ---- Jobs ------------------------------------------------------------------------------------------------------------ */

static void tell(const kind *what, uint64_t item, const char *how)
{
    (void)printf("hf_campaign %s --from %llu --count 1: %s\n", what->name, (unsigned long long)item, how);
    (void)fflush(stdout);
}

/* A child process: takes items until the count is reached. */
static void work(const kind *what, int job, uint64_t count)
{
    (void)signal(SIGINT, SIG_IGN); /* the parent tells the children to stop */
    while (!all->stop && all->counts[0] < count) {
        uint64_t item = all->next++;
        if (what->items_max != 0 && item >= what->items_max) {
            return;
        }
        uint64_t mine[COUNTS_MAX] = {0};
        all->at[job] = item;
        what->one(item, mine);
        for (int i = 0; i < COUNTS_MAX; i++) {
            all->counts[i] += mine[i];
        }
        all->items++;
        if (hf_checks_failed() > 0) {
            hf_checks_reset();
            all->violations++;
            tell(what, item, "a violation, see above");
        }
    }
}

static pid_t begin(const kind *what, int job, uint64_t count)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        work(what, job, count);
        (void)fflush(NULL);
        _exit(0);
    }
    return pid;
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void progress(const kind *what, double since, uint64_t count)
{
    (void)fprintf(stderr, "  %llu", (unsigned long long)all->counts[0]);
    if (count != UINT64_MAX) {
        (void)fprintf(stderr, " of %llu", (unsigned long long)count);
    }
    (void)fprintf(stderr, " %s, %llu violations, %.0f s\n", what->labels[0], (unsigned long long)all->violations,
                  seconds() - since);
}

/* Waits for the children; one that died is followed by another. */
static void oversee(const kind *what, int jobs, uint64_t count, double since)
{
    pid_t pids[JOBS_MAX];
    int alive = jobs;
    double said = since;
    for (int job = 0; job < jobs; job++) {
        pids[job] = begin(what, job, count);
    }
    while (alive > 0) {
        int status = 0;
        all->stop = all->stop || is_stopped || all->violations >= VIOLATIONS_MAX;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        for (int job = 0; job < jobs && pid > 0; job++) {
            if (pids[job] != pid) {
                continue;
            }
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                all->violations++;
                tell(what, all->at[job], "its process died");
                pids[job] = begin(what, job, count);
            } else {
                pids[job] = 0;
                alive--;
            }
        }
        if (pid <= 0) {
            (void)usleep(LOOK_MS * 1000);
        }
        if (seconds() - said >= PROGRESS_S) {
            said = seconds();
            progress(what, since, count);
        }
    }
}

static int run(const kind *what, int jobs, uint64_t first, uint64_t count)
{
    void *shared = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return 2;
    }
    all = shared;
    all->next = first;
    double since = seconds();
    (void)signal(SIGINT, on_stop);
    (void)signal(SIGTERM, on_stop);
    oversee(what, jobs, count, since);
    double span = seconds() - since;
    (void)printf("%s%s: ", is_stopped ? "interrupted, " : "", what->name);
    for (int i = 0; i < COUNTS_MAX && what->labels[i] != NULL; i++) {
        (void)printf("%llu %s, ", (unsigned long long)all->counts[i], what->labels[i]);
    }
    (void)printf("%llu %ss from %llu, %.0f s, %llu violations\n", (unsigned long long)all->items, what->item,
                 (unsigned long long)first, span, (unsigned long long)all->violations);
    return all->violations > 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    const kind *what = NULL;
    KINDS[2].items_max = hf_nomem_count();
    for (size_t i = 0; argc > 1 && i < HF_COUNT_OF(KINDS); i++) {
        what = strcmp(argv[1], KINDS[i].name) == 0 ? &KINDS[i] : what;
    }
    bool fine = what != NULL && argc % 2 == 0;
    uint64_t first = fine ? what->first : 0;
    uint64_t count = fine ? what->count : 0;
    int jobs = 2;
    for (int i = 2; fine && i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--count") == 0) {
            count = strtoull(argv[i + 1], NULL, 0);
        } else if (strcmp(argv[i], "--from") == 0) {
            first = strtoull(argv[i + 1], NULL, 0);
        } else if (strcmp(argv[i], "--jobs") == 0) {
            jobs = atoi(argv[i + 1]);
        } else {
            fine = false;
        }
    }
    if (!fine) {
        (void)fprintf(stderr, "usage: hf_campaign images|io|memory [--count N] [--from S] [--jobs N]\n");
        return 2;
    }
    jobs = jobs < 1 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : jobs;
    return run(what, jobs, first, count);
}
