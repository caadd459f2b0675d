/* Random workflow programs in which everything races (support/storm.h), on the real worker and engine. Meanwhile
 * workers come and go, so that many events reach the code in one step, clients signal and cancel, and the process is
 * killed.
 *
 * How a program ends is not known beforehand. But if a replay gets any other result than the first run, it makes other
 * commands, and the worker fails the task. The last signal comes when all workers that ever saw the program are gone,
 * so the last step is a replay of everything. The test checks: every program ends; no workflow task has failed, except
 * for a closing command that came together with new events (UnhandledCommand); every acknowledged signal is in the
 * history once. */
#include "support/eras.h"
#include "support/storm.h"
#include "support/support.h"

#include "base/arena.h"
#include "base/env.h"
#include "base/rng.h"
#include "service/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 3, LIVES = 4, TICK_MS = STORM_TICK_MS };

/* ---- Workers that come and go -------------------------------------------------------------------------------------- */

typedef struct play {
    uint64_t seed;
    int cached_max;
    int crashes; /* still to come */
    eras eras;
    hf_sem *door; /* a user of the service holds a permit */
} play;

typedef struct life {
    play *p;
    const char *queue;
    hf_span before; /* delay before it begins */
    hf_span span;   /* how long it works; unlimited = until canceled */
} life;

static hf_status work(void *arg)
{
    return hf_worker_run(arg);
}

/* One worker from its beginning to its end. */
static hf_status live(void *arg)
{
    life *l = arg;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    bool is_helper = strcmp(l->queue, "other") == 0;
    HF_TRY(hf_sleep(l->before));
    HF_TRY(hf_worker_new(l->p->eras.service, l->queue, &worker, .cached_max = l->p->cached_max,
                         .shutdown_grace = hf_milliseconds(TICK_MS), .shutdown_force = hf_minutes(1),
                         .activities_max = is_helper ? 0 : HF_OFF));
    HF_TRY(is_helper ? hf_worker_add_activity(worker, "act", storm_act, .on_fiber = true)
                     : hf_worker_add_activity(worker, "local", storm_local, .on_fiber = true));
    HF_TRY(is_helper ? HF_OK : hf_worker_add_workflow(worker, "program", storm_program));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, work, worker));
    HF_IGNORE(hf_sleep(l->span)); /* canceled or over */
    HF_TRY(hf_worker_stop(worker));
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_minutes(10), &shield));
    return hf_join(scope);
}

/* ---- Clients ------------------------------------------------------------------------------------------------------- */

static struct {
    uint64_t events, unhandled, timeouts, canceled, stranded, continued, children, updates;
} totals;

enum { SIGNALS_MAX = 10 };
static uint64_t records; /* of all streams */

typedef struct client {
    play *p;
    size_t index;
    hf_execution *execution;
    char run_id[40];            /* of the run of its chain whose history is read, from the first on */
    char next_run_id[40];       /* "" = it is the last one */
    bool is_taken[SIGNALS_MAX]; /* the service has acknowledged it */
    int found[SIGNALS_MAX];     /* how often it is in the history */
} client;

static hf_status begin_run(client *c)
{
    char text[32];
    char id[32];
    (void)snprintf(text, sizeof text, "\"%llu 0\"", (unsigned long long)(c->p->seed * RUNS + c->index));
    (void)snprintf(id, sizeof id, "program-%zu", c->index);
    HF_TRY(hf_start(c->p->eras.service, "program", hf_payload_of_json(text), &c->execution, .id = id,
                    .task_queue = "storm"));
    (void)snprintf(c->run_id, sizeof c->run_id, "%s", hf_execution_run_id(c->execution));
    return HF_OK;
}

static hf_status send_signal(client *c, int number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%d", number);
    HF_TRY(hf_signal(c->execution, "go", hf_payload_of_json(text), .request_id = text));
    c->is_taken[number] |= !c->p->eras.is_ghost;
    return HF_OK;
}

/* Repeats the call until a service that was not killed meanwhile has taken it: otherwise the result is unknown. */
static hf_status disturb_once(client *c, int number, bool cancels)
{
    bool is_sure = false;
    while (!is_sure) {
        HF_TRY(hf_sem_acquire(c->p->door, 1));
        hf_status status = cancels ? hf_cancel(c->execution) : send_signal(c, number);
        is_sure = !c->p->eras.is_ghost;
        HF_CHECK_SAY(status == HF_OK || !is_sure, "a run has ended before its last signal: %s", hf_error_text());
        HF_TRY(hf_sem_release(c->p->door, 1));
        HF_TRY(is_sure ? HF_OK : hf_sleep(hf_milliseconds(TICK_MS)));
    }
    return HF_OK;
}

/* What the workflow may refuse, and what is lost with the process. */
static hf_status ask(client *c, uint64_t what)
{
    hf_span timeout = hf_milliseconds(4 * TICK_MS);
    hf_payload in = hf_payload_of_json(what % 2 == 0 ? "4" : "7");
    HF_TRY(hf_sem_acquire(c->p->door, 1));
    switch (what % 4) {
    case 0:
        HF_IGNORE(hf_query(c->execution, what % 8 == 0 ? "state" : "other", in, NULL, .timeout = timeout));
        break;
    case 1:
        HF_IGNORE(hf_update(c->execution, what % 8 == 1 ? "up" : "other", in, NULL, .timeout = timeout));
        break;
    case 2:
        HF_IGNORE(hf_signal(c->execution, "note", in));
        break;
    default:
        HF_IGNORE(hf_signal(c->execution, "other", in));
        break;
    }
    return hf_sem_release(c->p->door, 1);
}

static hf_status disturb(void *arg)
{
    client *c = arg;
    hf_rng rng = {hf_hash_mix(c->p->seed, c->index)};
    int count = (int)hf_rng_below(&rng, SIGNALS_MAX + 1);
    for (int i = 0; i < count; i++) {
        HF_TRY(hf_sleep(hf_milliseconds((int64_t)hf_rng_below(&rng, 8) * TICK_MS)));
        HF_TRY(disturb_once(c, i, hf_rng_below(&rng, 15) == 0));
        HF_TRY(ask(c, hf_rng_below(&rng, 16)));
    }
    return HF_OK;
}

static void judge_signal(client *c, const hf_pb_workflow_execution_signaled_event_attributes *a)
{
    const hf_pb_payload *payload =
        a->input != NULL && a->input->payloads.count > 0 ? &a->input->payloads.items[0] : NULL;
    if (payload != NULL && payload->data.len == 1 && hf_str_equal(a->signal_name, HF_STR("go"))) {
        c->found[payload->data.data[0] - '0']++;
    }
}

static void judge_event(client *c, const hf_pb_history_event *event)
{
    if (event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW) {
        hf_str next = event->workflow_execution_continued_as_new_event_attributes->new_execution_run_id;
        (void)snprintf(c->next_run_id, sizeof c->next_run_id, "%.*s", HF_STR_ARGS(next));
        totals.continued++;
    }
    totals.children += event->event_type == HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED;
    totals.updates += event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED;
    if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_FAILED) {
        const hf_pb_workflow_task_failed_event_attributes *a = event->workflow_task_failed_event_attributes;
        HF_CHECK_SAY(a->cause == HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, "run %zu, event %d: cause %d, %.*s",
                     c->index, (int)event->event_id, (int)a->cause,
                     HF_STR_ARGS(a->failure != NULL ? a->failure->message : HF_STR("")));
        totals.unhandled++;
    }
    if (event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED) {
        judge_signal(c, event->workflow_execution_signaled_event_attributes);
    }
    totals.events++;
    totals.timeouts += event->event_type == HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT;
    totals.canceled += event->event_type == HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED;
}

/* Checks a page of the history; `*token` becomes that of the next page, or empty. */
static hf_status judge_page(client *c, hf_arena *arena, hf_str *token)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(hf_execution_id(c->execution)),
                                          .run_id = hf_str_of(c->run_id)};
    hf_pb_get_workflow_execution_history_request request = {
        .namespace = HF_STR("default"), .execution = &execution, .next_page_token = *token};
    hf_call call;
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, arena, NULL);
    HF_TRY(hf_service_ask(&op, c->p->eras.service, &call));
    const hf_pb_get_workflow_execution_history_response *response = call.response;
    hf_pb_history history = {0};
    HF_TRY(hf_pb_decode(&op, &hf_pb_history_type, response->history, arena, &history));
    for (size_t i = 0; i < history.events.count; i++) {
        judge_event(c, &history.events.items[i]);
    }
    *token = response->next_page_token;
    return HF_OK;
}

static hf_status judge(client *c)
{
    hf_arena arena;
    hf_str token = {NULL, 0};
    hf_status status = HF_OK;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    do {
        status = judge_page(c, &arena, &token);
        if (status == HF_OK && token.len == 0) {
            (void)snprintf(c->run_id, sizeof c->run_id, "%s", c->next_run_id);
            c->next_run_id[0] = '\0';
        }
    } while (status == HF_OK && c->run_id[0] != '\0');
    hf_arena_deinit(&arena);
    for (int i = 0; i < SIGNALS_MAX; i++) {
        HF_CHECK_SAY(c->found[i] == c->is_taken[i], "run %zu: signal %d is there %d times", c->index, i, c->found[i]);
    }
    return status;
}

/* ---- Streams --------------------------------------------------------------------------------------------------------- */

typedef struct watching {
    int64_t next;    /* record */
    char run_id[40]; /* that the last record of a workflow's code was of ... */
    int published;   /* ... and how many of that were seen */
} watching;

/* Each record of the code is there once, in its order, whatever was replayed and killed meanwhile. */
static bool watch(void *arg, const hf_stream_record *record)
{
    watching *w = arg;
    char run_id[40] = "";
    int number = -1;
    HF_CHECK_SAY(record->sequence == w->next, "record %lld follows %lld", (long long)record->sequence,
                 (long long)w->next - 1);
    w->next++;
    records++;
    if (strcmp(record->type, "storm") == 0) {
        HF_CHECK(sscanf(record->value.data, "%36s %d", run_id, &number) == 2);
        w->published = strcmp(run_id, w->run_id) == 0 ? w->published : 0;
        (void)snprintf(w->run_id, sizeof w->run_id, "%s", run_id);
        HF_CHECK_SAY(number == w->published, "run %s: record %d of its code follows %d", run_id, number,
                     w->published - 1);
        w->published++;
    }
    return true;
}

static void judge_stream(client *c)
{
    HF_AUTO(hf_execution_free) hf_execution *first = NULL;
    watching w = {0};
    int64_t cursor = 0;
    HF_CHECK(hf_execution_new(c->p->eras.service, hf_execution_id(c->execution), &first, .run_id = c->run_id) == HF_OK);
    hf_status status = hf_stream_read(first, &cursor, watch, &w);
    HF_CHECK_SAY(status == HF_OK && cursor == w.next, "the stream of run %zu: %s", c->index, hf_error_text());
}

static hf_status end_run(client *c)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_status status = hf_signal(c->execution, "end", hf_payload_none());
    for (int i = 0; i < 3; i++) { /* some arrive while the last step is on its way */
        HF_IGNORE(hf_signal(c->execution, "go", hf_payload_none()));
    }
    HF_CHECK_SAY(status == HF_OK, "run %zu took no last signal: %s", c->index, hf_error_text());
    status = hf_result(c->execution, &out, .timeout = hf_minutes(30));
    bool is_canceled = status == HF_ERR_FAILED && strcmp(hf_error()->type, "WorkflowCanceled") == 0;
    HF_CHECK_SAY(status == HF_OK || is_canceled, "run %zu ended with %s: %s", c->index, hf_status_name(status),
                 hf_error_text());
    if (status == HF_OK) { /* one more replay, of all of it: to the same end */
        HF_AUTO(hf_payload_free) hf_payload told = hf_payload_none();
        hf_status asked = hf_query(c->execution, "state", hf_payload_none(), &told, .timeout = hf_minutes(30));
        HF_CHECK_SAY(asked == HF_OK && told.len == out.len && memcmp(told.data, out.data, out.len) == 0,
                     "run %zu: %s, %.*s after a replay, not %.*s", c->index, asked == HF_OK ? "HF_OK" : hf_error_text(),
                     (int)told.len, (const char *)told.data, (int)out.len, (const char *)out.data);
    }
    judge_stream(c);
    return judge(c);
}

/* ---- The play ------------------------------------------------------------------------------------------------------ */

/* Starts the process again from the copied files, when the ghost has ended. */
static hf_status start_again(play *p, client *clients)
{
    HF_TRY(hf_sem_acquire(p->door, RUNS));
    for (size_t i = 0; i < RUNS; i++) {
        hf_execution_free(clients[i].execution);
    }
    HF_TRY(eras_next(&p->eras));
    for (size_t i = 0; i < RUNS; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "program-%zu", i);
        HF_TRY(hf_execution_new(p->eras.service, id, &clients[i].execution));
    }
    return hf_sem_release(p->door, RUNS);
}

static void draw_lives(play *p, hf_rng *rng, life lives[LIVES + 1])
{
    lives[LIVES] = (life){p, "other", hf_nanoseconds(0), HF_SPAN_UNLIMITED};
    for (int i = 0; i < LIVES; i++) {
        lives[i] = (life){p, "storm", hf_milliseconds((int64_t)hf_rng_below(rng, 60) * TICK_MS),
                          hf_milliseconds((1 + (int64_t)hf_rng_below(rng, 40)) * TICK_MS)};
    }
}

/* Workers, until the process is killed. */
static hf_status short_era(play *p, hf_rng *rng)
{
    life lives[LIVES + 1];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    draw_lives(p, rng, lives);
    HF_TRY(hf_scope_open(&scope, .name = "short era", .join = HF_JOIN_COLLECT));
    for (int i = 0; i <= LIVES; i++) {
        HF_TRY(hf_fork(scope, live, &lives[i]));
    }
    HF_TRY(hf_sleep(hf_milliseconds((int64_t)hf_rng_below(rng, 40) * TICK_MS)));
    for (uint64_t i = hf_rng_below(rng, 100); i > 0; i--) { /* so that the kill comes in the middle of other work */
        HF_TRY(hf_yield());
    }
    eras_kill(&p->eras);
    HF_TRY(hf_scope_cancel(scope));
    HF_IGNORE(hf_join(scope));
    return HF_OK;
}

/* Some workers come and go, one stays until everything has happened, and the last one has seen nothing of it. */
static hf_status last_era(play *p, hf_rng *rng, client *clients, hf_scope *disturbers)
{
    life lives[LIVES + 1];
    life long_one = {p, "storm", hf_seconds(1), hf_seconds(60)};
    life last = {p, "storm", hf_nanoseconds(0), HF_SPAN_UNLIMITED};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    draw_lives(p, rng, lives);
    HF_TRY(hf_scope_open(&scope, .name = "last era", .join = HF_JOIN_COLLECT));
    for (int i = 0; i <= LIVES; i++) {
        HF_TRY(hf_fork(scope, live, &lives[i]));
    }
    HF_TRY(live(&long_one));
    HF_TRY(hf_join(disturbers));
    HF_TRY(hf_fork(scope, live, &last));
    for (size_t i = 0; i < RUNS; i++) {
        HF_TRY(end_run(&clients[i]));
    }
    HF_TRY(hf_scope_cancel(scope));
    HF_IGNORE(hf_join(scope));
    return HF_OK;
}

static hf_status storm(play *p, client *clients)
{
    hf_rng rng = {hf_hash_mix(p->seed, 99)};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "disturbers"));
    for (size_t i = 0; i < RUNS; i++) {
        HF_TRY(hf_fork(scope, disturb, &clients[i]));
    }
    for (; p->crashes > 0; p->crashes--) {
        HF_TRY(short_era(p, &rng));
        HF_TRY(start_again(p, clients));
    }
    return last_era(p, &rng, clients, scope);
}

static hf_status play_main(void *arg)
{
    play *p = arg;
    client clients[RUNS] = {{.p = NULL}};
    HF_TRY(eras_open(&p->eras, p->crashes == 0));
    HF_TRY(storm_prepare(p->eras.service));
    HF_TRY(hf_sem_new(RUNS, &p->door));
    for (size_t i = 0; i < RUNS; i++) {
        clients[i] = (client){.p = p, .index = i};
        HF_TRY(begin_run(&clients[i]));
    }
    hf_status status = storm(p, clients);
    for (size_t i = 0; i < RUNS; i++) {
        hf_execution_free(clients[i].execution);
    }
    HF_TRY(hf_sem_free(p->door));
    HF_TRY(eras_close(&p->eras));
    hf_stats stats;
    HF_TRY(hf_runtime_stats(NULL, &stats));
    totals.stranded += stats.stranded;
    return status;
}

static void play_seed(uint64_t seed, int cached_max, int crashes)
{
    play p = {.seed = seed, .cached_max = cached_max, .crashes = crashes, .eras = {.name = "storm"}};
    hf_status status = hf_sim_run(seed, 2, play_main, &p, NULL);
    HF_CHECK_SAY(status == HF_OK, "the play ended with %s", hf_status_name(status));
}

static void kept(uint64_t seed)
{
    play_seed(seed, 0, 0);
}

static void evicted(uint64_t seed)
{
    play_seed(seed, HF_OFF, 0);
}

static void few(uint64_t seed)
{
    play_seed(seed, 1, 0);
}

static void killed(uint64_t seed)
{
    static const int CACHED[] = {0, HF_OFF, 1};
    play_seed(seed, CACHED[seed % 3], 1 + (int)(seed % 4));
}

static void weather(const char *what, uint64_t count, void (*one_play)(uint64_t seed))
{
    memset(&totals, 0, sizeof totals);
    hf_each_seed(what, count, one_play);
    print_message(
        "%llu events, %llu ends met news, %llu activities timed out, %llu were "
        "canceled; %llu fibers were stranded; %llu children, %llu updates, %llu runs continued, %llu records\n",
        (unsigned long long)totals.events, (unsigned long long)totals.unhandled, (unsigned long long)totals.timeouts,
        (unsigned long long)totals.canceled, (unsigned long long)totals.stranded, (unsigned long long)totals.children,
        (unsigned long long)totals.updates, (unsigned long long)totals.continued, (unsigned long long)records);
}

static void programs_end_whatever_happens_with_workflows_in_memory(void **state)
{
    (void)state;
    weather("storms with workflows in memory", 700, kept);
}

static void programs_end_whatever_happens_evicted_at_every_await(void **state)
{
    (void)state;
    weather("storms with none", 700, evicted);
}

static void programs_end_whatever_happens_with_room_for_one(void **state)
{
    (void)state;
    weather("storms with room for one", 500, few);
}

static void programs_end_whatever_happens_when_the_process_is_killed(void **state)
{
    (void)state;
    weather("storms with kills", 250, killed);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(programs_end_whatever_happens_with_workflows_in_memory),
    cmocka_unit_test(programs_end_whatever_happens_evicted_at_every_await),
    cmocka_unit_test(programs_end_whatever_happens_with_room_for_one),
    cmocka_unit_test(programs_end_whatever_happens_when_the_process_is_killed),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_storm", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
