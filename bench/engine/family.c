/* Parents that wait for their children for ever, in one file, with as little memory as the runs of idle.c. Two programs, as there. */
#include "bench.h"
#include "engine/cells.h"

#include <sys/stat.h>

static play_options family_options(const cell_options *o, hf_service *service)
{
    return (play_options){
        .service = service,
        .env = hf_env_posix(),
        .wait = PLAY_FAMILY,
        .is_direct = o->is_direct,
        .polls = o->polls > 0 ? o->polls : 128,
        .runs_max = (size_t)o->count,
    };
}

void cell_family_make(const cell_options *o)
{
    const char *path = cell_path(o, "family");
    cell_remove(path);
    hf_service *service = cell_open(o, path);
    play_options options = family_options(o, service);
    play p;
    play_open(&p, &options);
    cell_moment from = cell_now(service, &p);
    int64_t begun = bench_wall_ns();
    (void)play_start_all(&p, o->count, o->window);
    play_await(&p.waiting, 3 * o->count); /* the parent, its child, the parent again: the child has started */
    cell_moment to = cell_now(service, &p);
    bench_print("starts_s", (double)o->count / ((double)(bench_wall_ns() - begun) * 1e-9));
    cell_print(&from, &to, (double)o->count);
    cell_check(&p);
    cell_close(service);
    play_close(&p);
    struct stat st;
    bench_print("file_run_b", stat(path, &st) == 0 ? (double)st.st_size / (2 * (double)o->count) : 0);
}

void cell_family_use(const cell_options *o)
{
    const char *path = cell_path(o, "family");
    int64_t begun = bench_wall_ns();
    hf_service *service = cell_open(o, path);
    play_options options = family_options(o, service);
    options.table_max = 4096; /* as in idle.c */
    play p = {.memory = {0}};
    play_open(&p, &options);
    cell_serves(service);
    bench_print("serving_s", (double)(bench_wall_ns() - begun) * 1e-9);
    bench_print("open_rss_mib", (double)bench_rss() / 1048576);
    cell_sleep(0.5); /* what it still reads in the background */
    atomic_store(&p.measuring, true);
    cell_moment from = cell_now(service, &p);
    int64_t ns = play_signal_all(&p, o->signals, o->window, true);
    cell_moment to = cell_now(service, &p);
    bench_print("ops_s", (double)o->signals / ((double)ns * 1e-9));
    cell_print(&from, &to, (double)o->signals);
    cell_check(&p);
    cell_print_times(&p.sweep_times, "p50_ms", "p99_ms");
    cell_close(service);
    play_close(&p);
    cell_remove(path);
}
