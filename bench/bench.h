/* What the measuring programs share: two clocks, the process's memory, and one way to print a figure.
 *
 * A program is called as `program MODE [COUNT [THREADS]]`, measures once and prints lines of "metric<TAB>value". The
 * driver (fibers.sh) repeats and interleaves the programs, so nothing here averages. */
#ifndef HF_BENCH_H
#define HF_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline int64_t bench_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec;
}

/* CPU time of the process: keeps the time slices of others out of CPU-bound figures on a shared machine. */
static inline int64_t bench_cpu_ns(void)
{
    return bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static inline int64_t bench_wall_ns(void)
{
    return bench_clock_ns(CLOCK_MONOTONIC);
}

static inline void bench_print(const char *metric, double value)
{
    printf("%s\t%.4f\n", metric, value);
    fflush(stdout);
}

/* Resident bytes of the process. */
static inline int64_t bench_rss(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long total = 0;
    long resident = 0;
    if (file == NULL) {
        return 0;
    }
    if (fscanf(file, "%ld %ld", &total, &resident) != 2) {
        resident = 0;
    }
    fclose(file);
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

/* Bytes of page tables, which are not part of the resident set. */
static inline int64_t bench_pte(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL) {
        return 0;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "VmPTE: %ld", &kib) == 1) {
            break;
        }
    }
    fclose(file);
    return (int64_t)kib * 1024;
}

/* Memory at one moment; the difference of two, per fiber, is the figure. */
typedef struct bench_memory {
    int64_t rss; /* bytes */
    int64_t pte; /* bytes */
} bench_memory;

static inline bench_memory bench_memory_now(void)
{
    return (bench_memory){.rss = bench_rss(), .pte = bench_pte()};
}

static inline void bench_print_memory(const char *rss_metric, const char *pte_metric, bench_memory before, long count)
{
    bench_memory after = bench_memory_now();
    bench_print(rss_metric, (double)(after.rss - before.rss) / (double)count);
    if (pte_metric != NULL) {
        bench_print(pte_metric, (double)(after.pte - before.pte) / (double)count);
    }
}

/* About 0.7 us of work that neither a compiler nor a cache can shorten: a chain of multiplications. */
static inline void bench_work(void)
{
    uint64_t chain = 1;
    for (int i = 0; i < 600; i++) {
        chain = chain * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    }
    __asm__ volatile("" : : "r"(chain));
}

typedef struct bench_args {
    const char *mode;
    long count;  /* 0 = the mode's own default */
    int threads; /* 1 unless said */
} bench_args;

static inline bench_args bench_args_parse(int argc, char **argv)
{
    bench_args args = {.mode = "", .count = 0, .threads = 1};
    if (argc > 1) {
        args.mode = argv[1];
    }
    if (argc > 2) {
        args.count = strtol(argv[2], NULL, 10);
    }
    if (argc > 3) {
        args.threads = (int)strtol(argv[3], NULL, 10);
    }
    return args;
}

static inline long bench_count(bench_args args, long otherwise)
{
    return args.count > 0 ? args.count : otherwise;
}

#endif
