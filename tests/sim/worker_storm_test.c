/* Random workflow programs in which everything races, on the real worker and engine: bounded waits, scopes with deadlines and
 * all kinds of joins, children that begin later or are given up, activities that time out, fail, heartbeat and are canceled,
 * locks, channels, signals, a cancel from outside; while workers come and go, so that much of it reaches the code in one step.
 *
 * How a program ends is not known beforehand. What is: whatever the code is told decides what it does next, and what it did
 * is in the history. So if a replay is told anything else than the run was at first, it does something else and the worker
 * fails the task. At the end every program waits for a last signal, which comes when all workers that ever saw it are gone:
 * the last step is a replay of all that happened. Every program ends, and no workflow task has failed on the way but for an
 * end that came together with news (UnhandledCommand). */
#include "support/support.h"

#include "base/arena.h"
#include "base/rng.h"
#include "service/call.h"
#include "worker/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 3, DEPTH_MAX = 4, CHILDREN_MAX = 4, BUDGET = 80, TICK_MS = 10, LIVES = 4 };

/* ---- The walk ------------------------------------------------------------------------------------------------------ */

/* What the fibers of a program share. */
typedef struct common {
    int budget; /* operations that may still be done */
    hf_chan *chan;
    hf_mutex *mutex;
    hf_sem *sem;
} common;

/* One fiber of a program: what it was told so far decides what it does next. */
typedef struct walk {
    uint64_t told;
    int depth;
    common *all;
} walk;

typedef struct child {
    walk walk;
    hf_status status;
} child;

static hf_status block(walk *w, int most);

/* A number below `bound` that depends on all that was told. */
static uint64_t draw(walk *w, uint64_t bound)
{
    w->told = hf_hash_mix(w->told, 17);
    return w->told % bound;
}

static hf_span ticks(walk *w, uint64_t most)
{
    return hf_milliseconds((int64_t)draw(w, most + 1) * TICK_MS);
}

/* For bounds: of nothing is none. */
static hf_span some_ticks(walk *w, uint64_t most)
{
    return hf_milliseconds((1 + (int64_t)draw(w, most)) * TICK_MS);
}

static hf_status hear(walk *w, hf_status status)
{
    w->told = hf_hash_mix(w->told, (uint64_t)status);
    return status;
}

static hf_status run_activity(walk *w)
{
    char text[32];
    hf_payload out = {0};
    bool is_short = draw(w, 3) == 0;
    bool beats = draw(w, 2) == 0;
    hf_span bound = some_ticks(w, 4);
    (void)snprintf(text, sizeof text, "%d", (int)(w->told % 100000));
    hf_status status = hf_activity_run("act", hf_payload_of_json(text), &out, .task_queue = "other",
                                       .start_to_close = is_short ? bound : hf_seconds(30),
                                       .schedule_to_close = draw(w, 5) == 0 ? bound : hf_nanoseconds(0),
                                       .heartbeat = beats ? hf_milliseconds(TICK_MS * 2) : hf_nanoseconds(0),
                                       .attempts_max = 1 + (int)draw(w, 3), .id = draw(w, 2) == 0 ? "named" : NULL,
                                       .retry_initial = hf_milliseconds(TICK_MS));
    if (status == HF_OK) {
        w->told = hf_hash_mix(w->told, strtoull(out.data, NULL, 10));
    }
    return hear(w, status);
}

static hf_status nap(walk *w)
{
    return hear(w, hf_sleep(ticks(w, 8)));
}

static hf_status wait_for_signal(walk *w)
{
    hf_payload out = {0};
    hf_status status = hf_signal_wait("go", &out, .timeout = some_ticks(w, 8));
    if (status == HF_OK) {
        w->told = hf_hash_mix(w->told, strtoull(out.data, NULL, 10));
    }
    return hear(w, status);
}

static hf_status child_main(void *arg)
{
    child *c = arg;
    c->status = block(&c->walk, 3);
    if (c->status == HF_OK && draw(&c->walk, 8) == 0) {
        c->status = hf_raise(HF_ERR_FAILED, "by chance");
    }
    return c->status;
}

static hf_join_policy some_join(walk *w)
{
    switch (draw(w, 6)) {
    case 0:
        return HF_JOIN_ANY;
    case 1:
        return HF_JOIN_COLLECT;
    case 2:
        return HF_JOIN_TOLERATE(1);
    case 3:
        return HF_JOIN_PARTIAL;
    case 4:
        return HF_JOIN_QUORUM(2);
    default:
        return HF_JOIN_ALL;
    }
}

/* Children, and the owner beside them, who may give them up. */
static hf_status family(walk *w, child *children, size_t count)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_span timeout = draw(w, 2) == 0 ? some_ticks(w, 8) : HF_SPAN_UNLIMITED;
    hf_join_policy join = some_join(w);
    hf_job *jobs[CHILDREN_MAX];
    HF_TRY(hear(w, hf_scope_open(&scope, .timeout = timeout, .join = join)));
    for (size_t i = 0; i < count; i++) {
        children[i] = (child){{hf_hash_mix(w->told, i), w->depth + 1, w->all}, HF_ERR_MISUSE};
        hf_span delay = draw(w, 3) == 0 ? ticks(w, 4) : hf_nanoseconds(0);
        HF_TRY(hear(w, hf_fork(scope, child_main, &children[i], .delay = delay, .ret_job = &jobs[i])));
    }
    if (draw(w, 3) == 0) {
        hf_status status = block(w, 2); /* canceled: by the scope, or from further out; the join says */
        if (status == HF_ERR_EVICTED) {
            return status;
        }
    }
    if (draw(w, 3) == 0) {
        (void)hear(w, hf_job_cancel(jobs[draw(w, count)]));
    }
    if (draw(w, 3) == 0) {
        (void)hear(w, hf_scope_cancel(scope));
    }
    return draw(w, 8) == 0 ? HF_OK : hear(w, hf_join(scope)); /* or left without a join */
}

static hf_status fork_some(walk *w)
{
    child children[CHILDREN_MAX];
    size_t count = 1 + (size_t)draw(w, CHILDREN_MAX);
    hf_status status = family(w, children, count);
    for (size_t i = 0; i < count && status != HF_ERR_EVICTED; i++) {
        w->told = hf_hash_mix(w->told, hf_hash_mix(children[i].walk.told, (uint64_t)children[i].status));
    }
    return status == HF_ERR_CANCELED ? HF_OK : status; /* its own; one from further out is
                                                met by the next wait */
}

static hf_status bounded_block(walk *w)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hear(w, hf_scope_open(&scope, .timeout = some_ticks(w, 8))));
    hf_status status = block(w, 3);
    return status == HF_ERR_EVICTED ? status : hear(w, hf_join(scope));
}

static hf_status shielded_block(walk *w)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hear(w, hf_shield_open(&shield, some_ticks(w, 8))));
    hf_status status = block(w, 3);
    return status == HF_ERR_CANCELED ? HF_OK : status; /* of the shield's bound: that is over with it */
}

static hf_status pass_on(walk *w)
{
    uint64_t sent = w->told;
    uint64_t got = 0;
    size_t which = 0;
    hf_case cases[2] = {{HF_CASE_SEND, w->all->chan, &sent, HF_OK}, {HF_CASE_RECV, w->all->chan, &got, HF_OK}};
    hf_status status = HF_OK;
    switch (draw(w, 3)) {
    case 0:
        status = hf_chan_send(w->all->chan, &sent, .timeout = some_ticks(w, 4));
        break;
    case 1:
        status = hf_chan_recv(w->all->chan, &got, .timeout = some_ticks(w, 4));
        break;
    default:
        status = hf_select(cases, 2, &which, .timeout = some_ticks(w, 4));
        break;
    }
    w->told = hf_hash_mix(w->told, got + which);
    return hear(w, status);
}

static hf_status under_lock(walk *w)
{
    hf_status status = hear(w, hf_mutex_lock(w->all->mutex, .timeout = some_ticks(w, 8)));
    if (status == HF_OK) {
        status = block(w, 1);
        HF_CHECK(hf_mutex_unlock(w->all->mutex) == HF_OK);
    }
    return status;
}

static hf_status with_permit(walk *w)
{
    hf_status status = hear(w, hf_sem_acquire(w->all->sem, 1, .timeout = some_ticks(w, 8)));
    if (status == HF_OK) {
        status = block(w, 1);
        HF_CHECK(hf_sem_release(w->all->sem, 1) == HF_OK);
    }
    return status;
}

static hf_status look_around(walk *w)
{
    uint64_t chance = 0;
    HF_TRY(hear(w, hf_random(NULL, &chance, sizeof chance)));
    w->told = hf_hash_mix(hf_hash_mix(w->told, chance), (uint64_t)hf_wall_now(NULL).ns);
    w->told = hf_hash_mix(w->told, (uint64_t)hf_time_left().ns + (uint64_t)hf_canceled());
    return hear(w, hf_yield());
}

static hf_status one(walk *w)
{
    static hf_status (*const OPS[])(walk *) = {
        run_activity,    run_activity,  nap,
        wait_for_signal, look_around,   pass_on, /* then those with others inside */
        under_lock,      with_permit,   fork_some,
        fork_some,       bounded_block, shielded_block,
    };
    w->depth++;
    hf_status status = OPS[draw(w, w->depth < DEPTH_MAX ? HF_COUNT_OF(OPS) : 6)](w);
    w->depth--;
    return status;
}

static hf_status block(walk *w, int most)
{
    int count = 1 + (int)draw(w, (uint64_t)most);
    bool is_stubborn = draw(w, 4) == 0; /* it goes on when it is canceled */
    for (int i = 0; i < count && --w->all->budget >= 0; i++) {
        hf_status status = one(w);
        if (status == HF_ERR_EVICTED || (status == HF_ERR_CANCELED && !is_stubborn)) {
            return status; /* any other outcome is something to be told */
        }
    }
    return HF_OK;
}

/* What was told is the id of the last activity, so that a replay that was told something else shows. Canceled or not, it waits
 * for the last signal: see above. */
static hf_status last_steps(walk *w)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    char id[32];
    (void)snprintf(id, sizeof id, "told-%llu", (unsigned long long)w->told);
    HF_TRY(hf_shield_open(&shield, hf_hours(1)));
    HF_TRY(hf_activity_run("act", hf_payload_of_json("1"), NULL, .task_queue = "other", .id = id,
                           .start_to_close = hf_seconds(30)));
    return hf_signal_wait("end", NULL);
}

static hf_status program(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_TRY(hf_chan_new(&chan, sizeof(uint64_t), .capacity = 1));
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_sem_new(&sem, 2));
    common all = {BUDGET, chan, mutex, sem};
    walk w = {strtoull(in.data, NULL, 10), 0, &all};
    hf_status status = block(&w, 12);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_TRY(last_steps(&w));
    return status == HF_ERR_CANCELED ? status : hf_payload_printf(ret_out, "%llu", (unsigned long long)w.told);
}

/* ---- Activities ---------------------------------------------------------------------------------------------------- */

static hf_status act(hf_payload in, hf_payload *ret_out)
{
    uint64_t number = strtoull(in.data, NULL, 10);
    uint64_t chance = hf_hash_mix(number, (uint64_t)hf_activity_info()->attempt);
    for (uint64_t i = 0; i < chance % 5; i++) {
        HF_TRY(hf_sleep(hf_milliseconds(TICK_MS)));
        if (hf_activity_info()->heartbeat.ns > 0 && number % 4 != 0) {
            HF_TRY(hf_activity_heartbeat(hf_payload_none()));
        }
    }
    if (chance % 7 == 0) {
        return hf_raise_typed(HF_ERR_FAILED, "Flaky", "this attempt fails");
    }
    return hf_payload_printf(ret_out, "%llu", (unsigned long long)(chance % 1000));
}

/* ---- Workers that come and go -------------------------------------------------------------------------------------- */

typedef struct play {
    uint64_t seed;
    int cached_max;
    hf_service *service;
} play;

typedef struct life {
    play *p;
    const char *queue;
    hf_span before; /* it begins */
    hf_span span;   /* and works so long; unlimited = until canceled */
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
    HF_TRY(hf_worker_new(l->p->service, l->queue, &worker, .cached_max = l->p->cached_max,
                         .shutdown_grace = hf_milliseconds(TICK_MS), .shutdown_force = hf_minutes(1)));
    HF_TRY(is_helper ? hf_worker_add_activity(worker, "act", act, .on_fiber = true)
                     : hf_worker_add_workflow(worker, "program", program));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, work, worker));
    (void)hf_sleep(l->span); /* canceled or over */
    HF_TRY(hf_worker_stop(worker));
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(&shield, hf_minutes(10)));
    return hf_join(scope);
}

/* ---- Clients ------------------------------------------------------------------------------------------------------- */

static struct {
    uint64_t events, unhandled, timeouts, canceled;
} totals;

typedef struct client {
    play *p;
    size_t index;
    hf_execution *execution;
} client;

static hf_status begin_run(client *c)
{
    char text[32];
    char id[32];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)(c->p->seed * RUNS + c->index));
    (void)snprintf(id, sizeof id, "program-%zu", c->index);
    return hf_start(c->p->service, "program", hf_payload_of_json(text), &c->execution, .id = id, .task_queue = "storm");
}

static hf_status disturb(void *arg)
{
    client *c = arg;
    hf_rng rng = {hf_hash_mix(c->p->seed, c->index)};
    int count = (int)hf_rng_below(&rng, 10);
    for (int i = 0; i < count; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%d", i);
        HF_TRY(hf_sleep(hf_milliseconds((int64_t)hf_rng_below(&rng, 8) * TICK_MS)));
        hf_status status = hf_rng_below(&rng, 15) == 0 ? hf_cancel(c->execution)
                                                       : hf_signal(c->execution, "go", hf_payload_of_json(text));
        HF_CHECK_SAY(status == HF_OK, "a run has ended before its last signal: %s", hf_error_text());
    }
    return HF_OK;
}

static void judge_event(const client *c, const hf_pb_history_event *event)
{
    if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_FAILED) {
        const hf_pb_workflow_task_failed_event_attributes *a = event->workflow_task_failed_event_attributes;
        HF_CHECK_SAY(a->cause == HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, "run %zu, event %d: cause %d, %.*s",
                     c->index, (int)event->event_id, (int)a->cause,
                     HF_STR_ARGS(a->failure != NULL ? a->failure->message : HF_STR("")));
        totals.unhandled++;
    }
    totals.events++;
    totals.timeouts += event->event_type == HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT;
    totals.canceled += event->event_type == HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED;
}

/* A page of what the history says; the token of the next, or empty. */
static hf_status judge_page(const client *c, hf_arena *arena, hf_str *token)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(hf_execution_id(c->execution))};
    hf_pb_get_workflow_execution_history_request request = {
        .namespace = HF_STR("default"), .execution = &execution, .next_page_token = *token};
    hf_call call;
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, arena, NULL);
    HF_TRY(hf_service_ask(&op, c->p->service, &call));
    const hf_pb_get_workflow_execution_history_response *response = call.response;
    hf_pb_history history = {0};
    HF_TRY(hf_pb_decode(&op, &hf_pb_history_type, response->history, arena, &history));
    for (size_t i = 0; i < history.events.count; i++) {
        judge_event(c, &history.events.items[i]);
    }
    *token = response->next_page_token;
    return HF_OK;
}

static hf_status judge(const client *c)
{
    hf_arena arena;
    hf_str token = {NULL, 0};
    hf_status status = HF_OK;
    hf_arena_init(&arena, hf_data_memory());
    do {
        status = judge_page(c, &arena, &token);
    } while (status == HF_OK && token.len > 0);
    hf_arena_deinit(&arena);
    return status;
}

static hf_status end_run(client *c)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_status status = hf_signal(c->execution, "end", hf_payload_none());
    for (int i = 0; i < 3; i++) { /* some arrive while the last step is on its way */
        (void)hf_signal(c->execution, "go", hf_payload_none());
    }
    HF_CHECK_SAY(status == HF_OK, "run %zu took no last signal: %s", c->index, hf_error_text());
    status = hf_result(c->execution, &out, .timeout = hf_minutes(30));
    bool is_canceled = status == HF_ERR_FAILED && strcmp(hf_error()->type, "WorkflowCanceled") == 0;
    HF_CHECK_SAY(status == HF_OK || is_canceled, "run %zu ended with %s: %s", c->index, hf_status_name(status),
                 hf_error_text());
    return judge(c);
}

/* ---- The play ------------------------------------------------------------------------------------------------------ */

static hf_status storm(play *p, client *clients)
{
    life lives[LIVES + 1];
    hf_rng rng = {hf_hash_mix(p->seed, 99)};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "storm"));
    lives[LIVES] = (life){p, "other", hf_nanoseconds(0), HF_SPAN_UNLIMITED};
    for (int i = 0; i < LIVES; i++) {
        lives[i] = (life){p, "storm", hf_milliseconds((int64_t)hf_rng_below(&rng, 60) * TICK_MS),
                          hf_milliseconds((1 + (int64_t)hf_rng_below(&rng, 40)) * TICK_MS)};
    }
    for (int i = 0; i <= LIVES; i++) {
        HF_TRY(hf_fork(scope, live, &lives[i]));
    }
    for (size_t i = 0; i < RUNS; i++) {
        HF_TRY(hf_fork(scope, disturb, &clients[i]));
    }
    /* Those who went on have some time, and end like the rest; then the last
   * worker comes. */
    life long_one = {p, "storm", hf_seconds(1), hf_seconds(60)};
    HF_TRY(live(&long_one));
    life last = {p, "storm", hf_nanoseconds(0), HF_SPAN_UNLIMITED};
    HF_TRY(hf_fork(scope, live, &last));
    for (size_t i = 0; i < RUNS; i++) {
        HF_TRY(end_run(&clients[i]));
    }
    HF_TRY(hf_scope_cancel(scope));
    (void)hf_join(scope);
    return HF_OK;
}

static hf_status play_main(void *arg)
{
    play *p = arg;
    client clients[RUNS] = {{NULL, 0, NULL}};
    HF_TRY(hf_open("memory:", &p->service));
    for (size_t i = 0; i < RUNS; i++) {
        clients[i] = (client){p, i, NULL};
        HF_TRY(begin_run(&clients[i]));
    }
    hf_status status = storm(p, clients);
    for (size_t i = 0; i < RUNS; i++) {
        hf_execution_free(clients[i].execution);
    }
    HF_TRY(hf_close(p->service));
    return status;
}

static void play_seed(uint64_t seed, int cached_max)
{
    play p = {.seed = seed, .cached_max = cached_max};
    hf_status status = hf_sim_run(seed, 2, play_main, &p, NULL);
    HF_CHECK_SAY(status == HF_OK, "the play ended with %s", hf_status_name(status));
}

static void kept(uint64_t seed)
{
    play_seed(seed, 0);
}

static void evicted(uint64_t seed)
{
    play_seed(seed, HF_OFF);
}

static void few(uint64_t seed)
{
    play_seed(seed, 1);
}

static void weather(const char *what, void (*one_play)(uint64_t seed))
{
    memset(&totals, 0, sizeof totals);
    hf_each_seed(what, 1000, one_play);
    print_message("%llu events, %llu ends met news, %llu activities timed out, %llu were "
                  "canceled\n",
                  (unsigned long long)totals.events, (unsigned long long)totals.unhandled,
                  (unsigned long long)totals.timeouts, (unsigned long long)totals.canceled);
}

static void programs_end_whatever_happens_with_workflows_in_memory(void **state)
{
    (void)state;
    weather("storms with workflows in memory", kept);
}

static void programs_end_whatever_happens_evicted_at_every_await(void **state)
{
    (void)state;
    weather("storms with none", evicted);
}

static void programs_end_whatever_happens_with_room_for_one(void **state)
{
    (void)state;
    weather("storms with room for one", few);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(programs_end_whatever_happens_with_workflows_in_memory),
    cmocka_unit_test(programs_end_whatever_happens_evicted_at_every_await),
    cmocka_unit_test(programs_end_whatever_happens_with_room_for_one),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_storm", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
