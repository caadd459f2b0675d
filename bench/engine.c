/* The engine on a real file, fed by a script: `./dev bench engine` runs this, one cell per call.
 *
 *     engine MODE COUNT [options]      measures once, prints lines of "metric<TAB>value"
 *
 *     w1 w2 w3    COUNT clients at once: one activity; ten in sequence; fifty at once. For --seconds, after a warm-up
 *     w4          COUNT runs wait for a signal; all are signaled, and end
 *     w5          COUNT timers that are due at the same moment (--patient: their firing is waited for to be durable)
 *     load        a run that is not in memory, against a SELECT of its row
 *     idle_make, idle_use    COUNT runs that wait for ever, in one file; reopening it, signaling some
 *     reopen      a file whose process was killed with COUNT MiB of log, against a plain write and flush of them
 *     update, rejected, released, query    COUNT clients ask runs that wait; released: the runs are only rows
 *     child       COUNT clients at once: a parent starts a child and gets its result
 *     busy        signals with request ids to runs that have had COUNT of them, against signals to new runs
 *     family_make, family_use    COUNT parents that wait for COUNT children, in one file; reopening it, signaling some
 *     gap         COUNT clients; how long none of them is answered while a large family ends, many polls are canceled, or a long
 *                 history is reset
 *
 *     ended       lists and counts over COUNT runs that have ended, against SQLite's scan of their rows; then w1 beside one list a second
 *     ended_make  only the file of that cell, which stays
 *     retire, batch, delete    what becomes of COUNT runs: see engine/kept.c
 *
 * Durability is full: every answer that a client gets is on the disk. */
#include "bench.h"
#include "engine/cells.h"

#define SECOND INT64_C(1000000000)
typedef struct shape {
    const char *mode;
    play_wait wait;
    int rounds;
    int width;
} shape;

static const shape SHAPES[] = {
    {"w1", PLAY_ACTIVITIES, 1, 1},
    {"w2", PLAY_ACTIVITIES, 10, 1},
    {"w3", PLAY_ACTIVITIES, 1, 50},
    {"child", PLAY_CHILD, 0, 2},
};

/* ---- W1 to W3 ------------------------------------------------------------------------------------------------------------ */

static void cell_slots(const cell_options *o, const shape *s)
{
    const char *path = cell_path(o, o->mode);
    cell_remove(path);
    hf_service *service = cell_open(o, path);
    play_options options = cell_play(o, service, s->width);
    options.wait = s->wait;
    options.rounds = s->rounds;
    options.width = s->width;
    play p;
    play_open(&p, &options);
    play_slots(&p, (int)o->count);
    cell_sleep(o->seconds < 4 ? 0.5 : 1.0);
    cell_moment from = cell_now(service, &p);
    atomic_store(&p.measuring, true);
    cell_sleep(o->seconds);
    atomic_store(&p.measuring, false);
    cell_moment to = cell_now(service, &p);
    double runs = (double)(to.results - from.results);
    bench_print("ops_s", runs / ((double)(to.wall - from.wall) * 1e-9));
    cell_print(&from, &to, runs);
    atomic_store(&p.stopping, true);
    while (atomic_load(&p.slots_busy) > 0) {
        (void)usleep(1000);
    }
    cell_check(&p);
    cell_print_times(&p.result_times, "p50_ms", "p99_ms");
    cell_close(service);
    play_close(&p);
    cell_remove(path);
}

/* ---- W4: park, then signal all ------------------------------------------------------------------------------------------- */

static void cell_signals(const cell_options *o)
{
    const char *path = cell_path(o, o->mode);
    cell_remove(path);
    hf_service *service = cell_open(o, path);
    play_options options = cell_play(o, service, 1);
    options.wait = PLAY_SIGNAL;
    play p;
    play_open(&p, &options);
    int64_t rss = bench_rss();
    int64_t ns = play_start_all(&p, o->count, o->window);
    play_await(&p.waiting, o->count);
    bench_print("starts_s", (double)o->count / ((double)ns * 1e-9));
    bench_print("parked_rss_b", (double)(bench_rss() - rss) / (double)o->count);
    atomic_store(&p.measuring, true);
    cell_moment from = cell_now(service, &p);
    bench_print("parked_state_b", (double)from.stats.mem_used / (double)o->count);
    ns = play_signal_all(&p, o->count, o->window, false);
    play_await(&p.ended, o->count);
    cell_moment to = cell_now(service, &p);
    atomic_store(&p.measuring, false);
    bench_print("ops_s", (double)o->count / ((double)ns * 1e-9));
    bench_print("ended_s", (double)o->count / ((double)(to.wall - from.wall) * 1e-9));
    cell_print(&from, &to, (double)o->count);
    cell_check(&p);
    cell_print_times(&p.sweep_times, "p50_ms", "p99_ms");
    cell_close(service);
    play_close(&p);
    cell_remove(path);
}

/* ---- W5: timers that are due at once ------------------------------------------------------------------------------------- */

static void cell_timers(const cell_options *o, bool is_patient)
{
    const char *path = cell_path(o, o->mode);
    cell_remove(path);
    hf_service *service = cell_open(o, path);
    play_options options = cell_play(o, service, 1);
    options.wait = PLAY_TIMER;
    options.is_patient = is_patient;
    options.polls = is_patient ? (int)o->count : options.polls; /* none waits for another's answer */
    options.due_wall = options.env->ops->wall_now(options.env).ns + 2 * SECOND + o->count * 100000;
    play p;
    play_open(&p, &options);
    (void)play_start_all(&p, o->count, o->window);
    play_await(&p.waiting, o->count);
    if (options.env->ops->wall_now(options.env).ns > options.due_wall) {
        play_die("the timers were due before the last was set");
    }
    atomic_store(&p.measuring, true);
    cell_moment from = cell_now(service, &p);
    play_await(&p.ended, o->count);
    cell_moment to = cell_now(service, &p);
    atomic_store(&p.measuring, false);
    cell_check(&p);
    cell_print_times(&p.fired_times, "task_p50_ms", "task_p99_ms");
    cell_print_times(&p.ended_times, "p50_ms", "p99_ms");
    bench_print("ops_s", 1e6 * (double)o->count / play_quantile(&p.ended_times, 1));
    cell_print(&from, &to, (double)o->count);
    cell_close(service);
    play_close(&p);
    cell_remove(path);
}

/* ---- Words --------------------------------------------------------------------------------------------------------------- */

static bool parse_option(cell_options *o, const char *name, const char *value, bool *is_patient, int *used)
{
    *used = 2;
    struct {
        const char *name;
        bool *flag;
    } const flags[] = {{"--direct", &o->is_direct}, {"--patient", is_patient}, {"--in-order", &o->is_in_order}};
    for (size_t i = 0; i < HF_COUNT_OF(flags); i++) {
        if (strcmp(name, flags[i].name) == 0) {
            *flags[i].flag = true;
            *used = 1;
            return true;
        }
    }
    if (value == NULL) {
        return false;
    }
    long long number = strtoll(value, NULL, 10);
    struct {
        const char *name;
        size_t *len;
    } const lens[] = {
        {"--mem", &o->mem_max}, {"--cache", &o->cache_len}, {"--journal", &o->journal_max}, {"--log", &o->log_len_max}};
    for (size_t i = 0; i < HF_COUNT_OF(lens); i++) {
        if (strcmp(name, lens[i].name) == 0) {
            *lens[i].len = (size_t)number;
            return true;
        }
    }
    if (strcmp(name, "--dir") == 0) {
        o->dir = value;
    } else if (strcmp(name, "--seconds") == 0) {
        o->seconds = strtod(value, NULL);
    } else if (strcmp(name, "--polls") == 0) {
        o->polls = (int)number;
    } else if (strcmp(name, "--look") == 0) {
        o->look_us = (int)number;
    } else if (strcmp(name, "--window") == 0) {
        o->window = (int)number;
    } else if (strcmp(name, "--page") == 0) {
        o->page_size = (int)number;
    } else if (strcmp(name, "--signals") == 0) {
        o->signals = number;
    } else {
        return false;
    }
    return true;
}

static const struct {
    const char *mode;
    cell_ask kind;
} ASKS[] = {
    {"update", CELL_UPDATE},
    {"rejected", CELL_REJECTED},
    {"released", CELL_RELEASED},
    {"query", CELL_QUERY},
};

static const struct {
    const char *mode;
    void (*cell)(const cell_options *o);
} CELLS[] = {
    {"w4", cell_signals},
    {"load", cell_load},
    {"idle_make", cell_idle_make},
    {"idle_use", cell_idle_use},
    {"reopen", cell_reopen},
    {"busy", cell_busy},
    {"family_make", cell_family_make},
    {"family_use", cell_family_use},
    {"gap", cell_gap},
    {"ended", cell_ended},
    {"retire", cell_retire},
    {"batch", cell_batch},
    {"delete", cell_delete},
    {"ended_make", cell_ended_make},
};

int main(int argc, char **argv)
{
    cell_options o = {
        .mode = argc > 1 ? argv[1] : "", .seconds = 5, .dir = ".", .window = 256, .signals = 100000, .look_us = -1};
    o.count = argc > 2 ? strtoll(argv[2], NULL, 10) : 0;
    bool is_patient = false;
    int used = 0;
    for (int i = 3; i < argc; i += used) {
        if (!parse_option(&o, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &is_patient, &used)) {
            play_die("engine: what is %s?", argv[i]);
        }
    }
    if (o.count <= 0) {
        play_die(
            "usage: engine w1|w2|w3|w4|w5|load|idle_make|idle_use|reopen|update|rejected|released|query|child|busy|"
            "family_make|family_use|gap|ended_make|ended|retire|batch|delete COUNT [options]");
    }
    for (size_t i = 0; i < HF_COUNT_OF(SHAPES); i++) {
        if (strcmp(o.mode, SHAPES[i].mode) == 0) {
            cell_slots(&o, &SHAPES[i]);
            return 0;
        }
    }
    if (strcmp(o.mode, "w5") == 0) {
        cell_timers(&o, is_patient);
        return 0;
    }
    for (size_t i = 0; i < HF_COUNT_OF(ASKS); i++) {
        if (strcmp(o.mode, ASKS[i].mode) == 0) {
            cell_asks(&o, ASKS[i].kind);
            return 0;
        }
    }
    for (size_t i = 0; i < HF_COUNT_OF(CELLS); i++) {
        if (strcmp(o.mode, CELLS[i].mode) == 0) {
            CELLS[i].cell(&o);
            return 0;
        }
    }
    play_die("engine: there is no cell '%s'", o.mode);
}
