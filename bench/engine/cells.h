/* What the cells of bench/engine.c share: the options, an engine on a fresh file, and the difference between two moments. */
#ifndef HF_BENCH_CELLS_H
#define HF_BENCH_CELLS_H

#include "engine/engine.h"
#include "engine/play.h"

#include <sys/resource.h>

typedef struct cell_options {
    const char *mode; /* w1, w2, w3, w4, w5, load, ...: see engine.c */
    long long count; /* runs or clients at once; w4, w5, load, idle: runs in all; reopen: MiB of log; family: parents */
    double seconds;  /* measured, after the warm-up */
    const char *dir; /* where the files go */
    bool is_direct;  /* play on the engine's thread */
    bool is_in_order;   /* ids of workflows ascend */
    int look_us;        /* the thread of the play looks for so long before it sleeps; -1 = by count */
    int polls;          /* of each kind; 0 = by count */
    int window;         /* calls of a sweep at once */
    long long signals;  /* idle_use: so many */
    size_t mem_max;     /* bytes of state; 0 = the default */
    size_t cache_len;   /* bytes of SQLite's cache; 0 = the default */
    size_t journal_max; /* bytes of journal; 0 = the default */
    size_t log_len_max; /* bytes of log before a checkpoint; 0 = the default */
    int page_size;      /* 0 = the default */
} cell_options;

enum { CELL_THREAD_COUNT = 3 };

/* One moment. */
typedef struct cell_moment {
    int64_t wall;                         /* mono ns */
    double cpu;                           /* seconds, of the process */
    hf_engine_stats stats;                /* of the engine */
    long long results;                    /* of the play */
    double thread_cpu[CELL_THREAD_COUNT]; /* seconds: engine, store, play */
    long thread_waits[CELL_THREAD_COUNT]; /* times they went to sleep by themselves */
} cell_moment;

/* A path of the cell's file; made from the directory and the mode. */
const char *cell_path(const cell_options *o, const char *name);
void cell_remove(const char *path);
hf_service *cell_open(const cell_options *o, const char *path);
void cell_close(hf_service *service);
cell_moment cell_now(hf_service *service, const play *p);
play_options cell_play(const cell_options *o, hf_service *service, int width);
void cell_sleep(double seconds);
void cell_print_times(play_times *times, const char *p50, const char *p99);
/* Prints what lies between, per second, per transition and per operation. */
void cell_print(const cell_moment *from, const cell_moment *to, double operations);
void cell_check(const play *p);
/* The engine serves when it has answered a question: returns then. */
void cell_serves(hf_service *service);
hf_allocator cell_memory(void);
/* The answer of a call, which lives as long as the arena. */
const void *cell_call(hf_service *service, hf_arena *arena, hf_method method, const void *request);
/* Results a second, over so many of them. */
double cell_rate(play *p, double seconds);

void cell_load(const cell_options *o);
void cell_idle_make(const cell_options *o);
void cell_idle_use(const cell_options *o);
void cell_reopen(const cell_options *o);
/* COUNT clients send updates or queries to runs that wait. */
typedef enum cell_ask { CELL_UPDATE, CELL_REJECTED, CELL_RELEASED, CELL_QUERY } cell_ask;
void cell_asks(const cell_options *o, cell_ask kind);
void cell_busy(const cell_options *o);
void cell_family_make(const cell_options *o);
void cell_family_use(const cell_options *o);
void cell_gap(const cell_options *o);
void cell_ended_make(const cell_options *o);
void cell_ended(const cell_options *o);
void cell_retire(const cell_options *o);
void cell_batch(const cell_options *o);
void cell_delete(const cell_options *o);

#endif
