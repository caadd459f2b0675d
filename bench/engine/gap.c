/* How long others wait. COUNT clients start workflows with an activity and wait for their results, all the time. The longest time in
 * which none of them was answered is measured in windows of the same length: in some of them nothing else happens, in some a parent with
 * CHILDREN children is terminated, in some POLLS polls that wait are canceled. The medians over the windows are printed, and the longest
 * of each kind. */
#include "bench.h"
#include "engine/cells.h"

enum { WINDOWS = 5, CHILDREN = 2000, POLLS = 10000 };

typedef struct gaps {
    double ms[WINDOWS];
} gaps;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double print_gaps(const char *name, gaps *g)
{
    char metric[32];
    qsort(g->ms, WINDOWS, sizeof g->ms[0], compare);
    (void)snprintf(metric, sizeof metric, "%s_ms", name);
    bench_print(metric, g->ms[WINDOWS / 2]);
    (void)snprintf(metric, sizeof metric, "%s_max_ms", name);
    bench_print(metric, g->ms[WINDOWS - 1]);
    return g->ms[WINDOWS / 2];
}

/* ---- Polls --------------------------------------------------------------------------------------------------------------- */

typedef struct crowd {
    hf_call calls[POLLS];
    hf_arena arenas[POLLS];
    atomic_llong done;
} crowd;

static void on_poll_done(hf_call *call)
{
    atomic_fetch_add((atomic_llong *)call->state, 1);
}

static void crowd_park(crowd *c, hf_service *service)
{
    static hf_pb_task_queue queue = {.name = HF_STR_INIT("nobody"), .kind = HF_TASK_QUEUE_KIND_NORMAL};
    static hf_pb_poll_activity_task_queue_request poll = {
        .namespace = HF_STR_INIT("default"), .task_queue = &queue, .identity = HF_STR_INIT("crowd")};
    atomic_store(&c->done, 0);
    for (size_t i = 0; i < POLLS; i++) {
        hf_arena_init(&c->arenas[i], cell_memory());
        hf_call_init(&c->calls[i], HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, &poll, &c->arenas[i], on_poll_done);
        c->calls[i].state = &c->done;
        hf_service_submit(service, &c->calls[i]);
    }
    cell_serves(service); /* all of them were taken */
}

static void crowd_leave(crowd *c, hf_service *service)
{
    for (size_t i = 0; i < POLLS; i++) {
        service->ops->cancel(service, c->calls[i].number);
    }
    play_await(&c->done, POLLS);
    for (size_t i = 0; i < POLLS; i++) {
        hf_arena_deinit(&c->arenas[i]);
    }
}

/* ---- The cell ------------------------------------------------------------------------------------------------------------ */

/* Milliseconds. */
static double window(play *p, double seconds)
{
    cell_sleep(seconds);
    return (double)play_gap(p) / 1e6;
}

static void measure(const cell_options *o, play *p, hf_service *service, crowd *c, int i, gaps all[3])
{
    double seconds = o->seconds < 1 ? o->seconds : 1;
    long long clan = o->count + i;
    play_gap_begin(p);
    all[0].ms[i] = window(p, seconds);
    play_start_clan(p, clan);
    play_await(&p->kids, (i + 1LL) * CHILDREN);
    cell_sleep(0.5); /* its parent has heard of all of them */
    play_gap_begin(p);
    play_end_clan(p, clan);
    all[1].ms[i] = window(p, seconds);
    if (!play_clan_is_over(p, clan)) {
        play_die("not all children have ended within %.1f s", seconds);
    }
    crowd_park(c, service);
    cell_sleep(0.2);
    play_gap_begin(p);
    crowd_leave(c, service);
    all[2].ms[i] = window(p, seconds);
}

void cell_gap(const cell_options *o)
{
    const char *path = cell_path(o, o->mode);
    cell_remove(path);
    hf_service *service = cell_open(o, path);
    play_options options = cell_play(o, service, 1);
    options.wait = PLAY_ACTIVITIES;
    options.rounds = 1;
    options.width = 1;
    options.children = CHILDREN;
    options.may_be_late = true;
    options.runs_max = (size_t)o->count + WINDOWS;
    crowd *c = calloc(1, sizeof *c);
    if (c == NULL) {
        play_die("out of memory");
    }
    play p;
    play_open(&p, &options);
    play_slots(&p, (int)o->count);
    cell_sleep(0.5);
    gaps all[3];
    for (int i = 0; i < WINDOWS; i++) {
        measure(o, &p, service, c, i, all);
    }
    atomic_store(&p.stopping, true);
    while (atomic_load(&p.slots_busy) > 0) {
        (void)usleep(1000);
    }
    cell_check(&p);
    double alone = print_gaps("alone", &all[0]);
    bench_print("parent_more_ms", print_gaps("parent", &all[1]) - alone);
    bench_print("polls_more_ms", print_gaps("polls", &all[2]) - alone);
    cell_close(service);
    play_close(&p);
    free(c);
    cell_remove(path);
}
