/* How long others wait. COUNT clients start workflows with an activity and wait for their results, all the time. The longest time in
 * which none of them was answered is measured in windows of the same length: in some of them nothing else happens, in some a parent with
 * CHILDREN children is terminated, in some POLLS polls that wait are canceled, in some a run whose history is HISTORY_MIB long is
 * reset. A reset takes longer than a window, so the same time without it follows each. The medians over the windows are printed, and
 * the longest of each kind. */
#include "bench.h"
#include "engine/cells.h"
#include "service/call.h"

/* A history may have 50 MiB and a run 10,000 signals: the reset adds a few events of its own. */
enum { WINDOWS = 5, CHILDREN = 2000, POLLS = 10000, SIGNALS = 9950, SIGNAL_LEN = 5200, HISTORY_MIB = 49 };

typedef enum window_kind { ALONE, PARENT, CROWD, RESET, AFTER_RESET, WINDOW_KINDS } window_kind;

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

/* ---- A long history ------------------------------------------------------------------------------------------------------ */

/* Its queue has no worker, so that only the reset itself is measured. */
static hf_pb_task_queue long_queue = {.name = HF_STR_INIT("long"), .kind = HF_TASK_QUEUE_KIND_NORMAL};
static hf_pb_workflow_type long_type = {.name = HF_STR_INIT("long")};
static char long_run[40]; /* id of the run that is reset */

static void fill_history(hf_service *service, hf_arena *arena, hf_pb_workflow_execution *execution)
{
    static char bytes[SIGNAL_LEN];
    hf_pb_payload payload = {.data = hf_str_of_len(bytes, sizeof bytes)};
    hf_pb_payloads input = {.payloads = {&payload, 1}};
    for (int i = 0; i < SIGNALS; i++) {
        hf_arena_reset(arena);
        hf_pb_signal_workflow_execution_request signal = {.namespace = HF_STR("default"),
                                                          .workflow_execution = execution,
                                                          .signal_name = HF_STR("more"),
                                                          .input = &input};
        (void)cell_call(service, arena, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &signal);
    }
}

/* A run with a workflow task at the end of a long history. */
static void long_make(hf_service *service)
{
    hf_arena arena;
    hf_arena_init(&arena, cell_memory());
    hf_pb_start_workflow_execution_request start = {.namespace = HF_STR("default"),
                                                    .workflow_id = HF_STR("long"),
                                                    .workflow_type = &long_type,
                                                    .task_queue = &long_queue,
                                                    .request_id = HF_STR("long")};
    const hf_pb_start_workflow_execution_response *started =
        cell_call(service, &arena, HF_METHOD_START_WORKFLOW_EXECUTION, &start);
    (void)snprintf(long_run, sizeof long_run, "%.*s", HF_STR_ARGS(started->run_id));
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("long"), .run_id = hf_str_of(long_run)};
    fill_history(service, &arena, &execution);
    hf_arena_reset(&arena);
    hf_pb_poll_workflow_task_queue_request poll = {.namespace = HF_STR("default"), .task_queue = &long_queue};
    const hf_pb_poll_workflow_task_queue_response *task =
        cell_call(service, &arena, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &poll);
    hf_pb_respond_workflow_task_completed_request answer = {.namespace = HF_STR("default"),
                                                            .task_token = task->task_token};
    (void)cell_call(service, &arena, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &answer);
    hf_pb_describe_workflow_execution_request describe = {.namespace = HF_STR("default"), .execution = &execution};
    const hf_pb_describe_workflow_execution_response *is =
        cell_call(service, &arena, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &describe);
    if (is->workflow_execution_info->history_size_bytes < (int64_t)HISTORY_MIB << 20) {
        play_die("a history of %lld bytes is too short", (long long)is->workflow_execution_info->history_size_bytes);
    }
    hf_arena_deinit(&arena);
}

/* The same run each time: it is closed, and the run that the reset before has made is terminated. Returns seconds. */
static double long_reset(hf_service *service)
{
    hf_arena arena;
    hf_arena_init(&arena, cell_memory());
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("long"), .run_id = hf_str_of(long_run)};
    hf_pb_reset_workflow_execution_request request = {
        .namespace = HF_STR("default"),
        .workflow_execution = &execution,
        .holdfast_point = 2, /* the last workflow task */
    };
    int64_t begun = bench_wall_ns();
    (void)cell_call(service, &arena, HF_METHOD_RESET_WORKFLOW_EXECUTION, &request);
    hf_arena_deinit(&arena);
    return (double)(bench_wall_ns() - begun) * 1e-9;
}

/* ---- The cell ------------------------------------------------------------------------------------------------------------ */

/* Milliseconds. */
static double window(play *p, double seconds)
{
    cell_sleep(seconds);
    return (double)play_gap(p) / 1e6;
}

/* Returns the seconds of the reset. */
static double measure(const cell_options *o, play *p, hf_service *service, crowd *c, int i, gaps all[WINDOW_KINDS])
{
    double seconds = o->seconds < 1 ? o->seconds : 1;
    long long clan = o->count + i;
    play_gap_begin(p);
    all[ALONE].ms[i] = window(p, seconds);
    play_start_clan(p, clan);
    play_await(&p->kids, (i + 1LL) * CHILDREN);
    cell_sleep(0.5); /* its parent has heard of all of them */
    play_gap_begin(p);
    play_end_clan(p, clan);
    all[PARENT].ms[i] = window(p, seconds);
    if (!play_clan_is_over(p, clan)) {
        play_die("not all children have ended within %.1f s", seconds);
    }
    crowd_park(c, service);
    cell_sleep(0.2);
    play_gap_begin(p);
    crowd_leave(c, service);
    all[CROWD].ms[i] = window(p, seconds);
    play_gap_begin(p);
    double reset = long_reset(service);
    all[RESET].ms[i] = window(p, 0);
    cell_sleep(0.2); /* what the reset has left */
    play_gap_begin(p);
    all[AFTER_RESET].ms[i] = window(p, reset);
    return reset;
}

void cell_gap(const cell_options *o)
{
    const char *path = cell_path(o, o->mode);
    cell_remove(path);
    hf_service *service = cell_open(o, path);
    long_make(service);
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
    gaps all[WINDOW_KINDS];
    double reset = 0;
    for (int i = 0; i < WINDOWS; i++) {
        reset += measure(o, &p, service, c, i, all);
    }
    atomic_store(&p.stopping, true);
    while (atomic_load(&p.slots_busy) > 0) {
        (void)usleep(1000);
    }
    cell_check(&p);
    double alone = print_gaps("alone", &all[ALONE]);
    bench_print("parent_more_ms", print_gaps("parent", &all[PARENT]) - alone);
    bench_print("polls_more_ms", print_gaps("polls", &all[CROWD]) - alone);
    double after_reset = print_gaps("reset_alone", &all[AFTER_RESET]);
    bench_print("reset_more_ms", print_gaps("reset", &all[RESET]) - after_reset);
    bench_print("reset_s", reset / WINDOWS);
    cell_close(service);
    play_close(&p);
    free(c);
    cell_remove(path);
}
