/* Clients and workers of the library reach an engine through temporal:// and the door, over a network that breaks connections, refuses
 * them, and moves bytes late and in pieces; and the server is started again meanwhile. Everything must end right:
 *
 *     every workflow ends with the result that its code gives;
 *     an activity that was executed is not executed again: its answer is never lost (start_to_close is longer than any outage);
 *     a signal with a request id is in the history once, however often it was sent;
 *     a signal without one is there at most once, and once if its call returned HF_OK.
 *
 * The second case has a quiet network: what a worker has in hand is never dropped, because a server cannot take it back. */
#include "support/support.h"

#include "base/env.h"
#include "base/rng.h"
#include "server/door.h"
#include "service/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOWS = 3, STEPS = 3, KEYED = 2, BARE = 4 };

typedef struct world {
    hf_env *env;
    hf_rng rng;
    hf_service *engine;
    char listens[HF_ADDRESS_LEN_MAX];
    char address[HF_ADDRESS_LEN_MAX + 32];
    hf_chan *words; /* the server listens */
    atomic_bool is_over;
    atomic_int executed[FLOWS][STEPS];
    atomic_int bare_sent[FLOWS];        /* calls that returned HF_OK */
    hf_status (*body)(struct world *w); /* of a quiet world */
} world;

static world *now; /* for activities */
static atomic_int losses;

static void count_losses(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)fields;
    if (strcmp(event, "server_lost") == 0) {
        atomic_fetch_add(&losses, 1);
    }
}

/* ---- The workflow ---------------------------------------------------------------------------------------------------------- */

static hf_status step(hf_payload in, hf_payload *ret_out)
{
    long number = strtol(in.data, NULL, 10);
    atomic_fetch_add(&now->executed[number / STEPS][number % STEPS], 1);
    HF_TRY(hf_sleep(hf_milliseconds(number * 37 % 400)));
    return hf_payload_printf(ret_out, "%ld", number + 100);
}

static hf_status walk(hf_payload in, hf_payload *ret_out)
{
    long flow = strtol(in.data, NULL, 10);
    long sum = 0;
    for (long i = 0; i < STEPS; i++) {
        char text[32];
        HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
        (void)snprintf(text, sizeof text, "%ld", flow * STEPS + i);
        HF_TRY(hf_activity_run("step", hf_payload_of_json(text), &out, .start_to_close = hf_minutes(30)));
        sum += strtol(out.data, NULL, 10);
    }
    for (int i = 0; i < KEYED; i++) {
        HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
        HF_TRY(hf_signal_wait("keyed", &out));
        sum += strtol(out.data, NULL, 10);
    }
    return hf_payload_printf(ret_out, "%ld", sum);
}

/* ---- The server ------------------------------------------------------------------------------------------------------------ */

static hf_status serve(void *arg)
{
    world *w = arg;
    bool is_first = true;
    (void)snprintf(w->listens, sizeof w->listens, "tcp:127.0.0.1:0");
    while (!atomic_load(&w->is_over)) {
        hf_op op;
        hf_op_init(&op);
        hf_door *door = NULL;
        hf_door_options options = {0};
        char address[HF_ADDRESS_LEN_MAX];
        int word = 0;
        HF_TRY(hf_door_open(&op, w->engine, &options, &door));
        hf_status status = hf_door_listen(&op, door, w->listens, address);
        HF_CHECK_SAY(status == HF_OK, "%s", op.message);
        (void)snprintf(w->listens, sizeof w->listens, "%s", address);
        if (is_first) {
            is_first = false;
            HF_TRY(hf_chan_send(w->words, &word));
        }
        int64_t span = (int64_t)hf_rng_below(&w->rng, 20000) + 200; /* ms until it is started again */
        while (span > 0 && !atomic_load(&w->is_over)) {
            HF_TRY(hf_sleep(hf_milliseconds(100)));
            span -= 100;
        }
        hf_door_stop(door);
        HF_TRY(hf_sleep(hf_milliseconds((int64_t)hf_rng_below(&w->rng, 9000))));
    }
    return HF_OK;
}

/* ---- Clients and workers ------------------------------------------------------------------------------------------------------ */

/* hf_open itself may find nobody for a while. */
static hf_status reach(world *w, hf_service **ret_service)
{
    hf_status status = HF_ERR_UNAVAILABLE;
    for (int i = 0; i < 100 && status != HF_OK; i++) {
        status = hf_open(w->address, ret_service);
        if (status != HF_OK) {
            HF_TRY(hf_sleep(hf_milliseconds(200))); /* in all longer than the door is ever shut */
        }
    }
    return status;
}

static hf_status work(void *arg)
{
    world *w = arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    hf_status reached = reach(w, &service);
    if (reached != HF_OK) {
        return atomic_load(&w->is_over) ? HF_OK : reached; /* the other worker did everything, and the server is gone */
    }
    HF_TRY(hf_worker_new(service, "q", &worker, .pollers_max = 4, .activity_pollers_max = 2,
                         .cached_max = hf_rng_below(&w->rng, 2) == 0 ? HF_OFF : 0));
    HF_TRY(hf_worker_add_workflow(worker, "walk", walk));
    HF_TRY(hf_worker_add_activity(worker, "step", step, .on_fiber = true));
    HF_TRY(hf_worker_start(worker));
    while (!atomic_load(&w->is_over)) {
        HF_TRY(hf_sleep(hf_milliseconds(500)));
    }
    HF_TRY(hf_worker_stop(worker));
    hf_status status = hf_worker_wait(worker);
    return status == HF_ERR_TIMEOUT || status == HF_ERR_UNAVAILABLE
               ? HF_OK
               : status; /* the server may be away for the goodbye */
}

static void send_bare(world *w, hf_service *service, const char *id, int flow)
{
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_signal_workflow_execution_request request = {
        .namespace = HF_STR("default"), .workflow_execution = &execution, .signal_name = HF_STR("bare")};
    hf_arena arena;
    hf_call call;
    hf_op op;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(w->env));
    hf_call_init(&call, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &request, &arena, NULL);
    hf_status status = hf_service_ask(&op, service, &call);
    HF_CHECK_SAY(status == HF_OK || status == HF_ERR_UNAVAILABLE, "%s: %s", hf_status_name(status), op.message);
    if (status == HF_OK) {
        atomic_fetch_add(&w->bare_sent[flow], 1);
    }
    hf_arena_deinit(&arena);
}

/* A call that may be sent twice is repeated by its caller when the service gives up. */
static hf_status signal_on(hf_execution *execution, int number)
{
    char id[32];
    char text[32];
    (void)snprintf(id, sizeof id, "signal-%d", number);
    (void)snprintf(text, sizeof text, "%d", 1000 * (number + 1));
    hf_status status = HF_ERR_UNAVAILABLE;
    while (status == HF_ERR_UNAVAILABLE) {
        status = hf_signal(execution, "keyed", hf_payload_of_json(text), .request_id = id);
    }
    return status;
}

typedef struct client {
    world *world;
    int flow;
} client;

static hf_status ask(void *arg)
{
    const client *c = arg;
    world *w = c->world;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    char id[32];
    char in[32];
    char expected[32];
    long sum = 0;
    (void)snprintf(id, sizeof id, "w-%d", c->flow);
    (void)snprintf(in, sizeof in, "%d", c->flow);
    HF_TRY(reach(w, &service));
    hf_status status = HF_ERR_UNAVAILABLE;
    while (status == HF_ERR_UNAVAILABLE) {
        status = hf_start(service, "walk", hf_payload_of_json(in), &execution, .id = id, .request_id = id,
                          .task_queue = "q", .task_timeout = hf_seconds(120));
    }
    HF_CHECK_SAY(status == HF_OK, "hf_start: %s", hf_error_text());
    for (int i = 0; i < BARE && status == HF_OK; i++) {
        send_bare(w, service, id, c->flow);
    }
    for (int i = 0; i < KEYED && status == HF_OK; i++) { /* after the last the workflow may end */
        status = signal_on(execution, i);
        HF_CHECK_SAY(status == HF_OK, "hf_signal: %s", hf_error_text());
        sum += 1000 * (i + 1);
    }
    status = status == HF_OK ? hf_result(execution, &out, .timeout = hf_days(3)) : status;
    for (int i = 0; i < STEPS; i++) {
        sum += c->flow * STEPS + i + 100;
    }
    (void)snprintf(expected, sizeof expected, "%ld", sum);
    HF_CHECK_SAY(status == HF_OK && strcmp(out.data, expected) == 0, "%s ended with %s: %s, not %s", id,
                 hf_status_name(status), status == HF_OK ? (const char *)out.data : hf_error_text(), expected);
    return HF_OK;
}

/* ---- The judge ------------------------------------------------------------------------------------------------------------------- */

static void judge(world *w, int flow)
{
    char id[32];
    hf_arena arena;
    hf_call call;
    hf_op op;
    hf_pb_history history = {0};
    int keyed = 0;
    int bare = 0;
    int completed = 0;
    (void)snprintf(id, sizeof id, "w-%d", flow);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("default"), .execution = &execution};
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(w->env));
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &arena, NULL);
    if (HF_CHECK_SAY(hf_service_ask(&op, w->engine, &call) == HF_OK, "%s", op.message)) {
        hf_str bytes = ((const hf_pb_get_workflow_execution_history_response *)call.response)->history;
        HF_CHECK(hf_pb_decode(&op, &hf_pb_history_type, bytes, &arena, &history) == HF_OK);
    }
    for (size_t i = 0; i < history.events.count; i++) {
        const hf_pb_history_event *event = &history.events.items[i];
        if (event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES) {
            bool is_bare =
                hf_str_equal(event->workflow_execution_signaled_event_attributes->signal_name, HF_STR("bare"));
            bare += is_bare;
            keyed += !is_bare;
        }
        completed += event->attributes_case == HF_PB_HISTORY_EVENT_ACTIVITY_TASK_COMPLETED_EVENT_ATTRIBUTES;
    }
    hf_arena_deinit(&arena);
    int sent = atomic_load(&w->bare_sent[flow]);
    HF_CHECK_SAY(keyed == KEYED, "%s has %d signals with a request id, not %d", id, keyed, KEYED);
    HF_CHECK_SAY(bare >= sent && bare <= BARE, "%s has %d signals without a request id; %d calls returned HF_OK", id,
                 bare, sent);
    HF_CHECK_SAY(completed == STEPS, "%s has %d completed activities, not %d", id, completed, STEPS);
    for (int i = 0; i < STEPS; i++) {
        int times = atomic_load(&w->executed[flow][i]);
        HF_CHECK_SAY(times == 1, "remote-R2: activity %d of %s was executed %d times", i, id, times);
    }
}

/* ---- A world ----------------------------------------------------------------------------------------------------------------------- */

static hf_status play(void *arg)
{
    world *w = arg;
    client clients[FLOWS];
    int word = 0;
    HF_AUTO(hf_chan_free) hf_chan *words = NULL;
    HF_AUTO(hf_scope_close) hf_scope *servers = NULL;
    HF_AUTO(hf_scope_close) hf_scope *workers = NULL;
    HF_AUTO(hf_scope_close) hf_scope *asking = NULL;
    HF_TRY(hf_open("memory:", &w->engine));
    HF_TRY(hf_chan_new(sizeof(int), &words, .capacity = 1));
    w->words = words;
    HF_TRY(hf_scope_open(&servers));
    HF_TRY(hf_fork(servers, serve, w));
    HF_TRY(hf_chan_recv(words, &word));
    (void)snprintf(w->address, sizeof w->address, "temporal://%s", w->listens + 4);
    HF_TRY(hf_scope_open(&workers));
    for (int i = 0; i < 2; i++) {
        HF_TRY(hf_fork(workers, work, w));
    }
    HF_TRY(hf_scope_open(&asking));
    for (int i = 0; i < FLOWS; i++) {
        clients[i] = (client){w, i};
        HF_TRY(hf_fork(asking, ask, &clients[i]));
    }
    hf_status status = hf_join(asking);
    atomic_store(&w->is_over, true);
    for (int i = 0; i < FLOWS && status == HF_OK; i++) {
        judge(w, i);
    }
    HF_TRY(status);
    HF_TRY(hf_join(workers));
    HF_TRY(hf_join(servers));
    return hf_close(w->engine);
}

static void one_world(uint64_t seed)
{
    static const int RESETS[] = {0, 2, 5, 20};
    world w = {.rng = {seed}};
    hf_sim_options options = {
        .reset_permille = RESETS[hf_rng_below(&w.rng, HF_COUNT_OF(RESETS))],
        .refuse_permille = (int)hf_rng_below(&w.rng, 200),
        .short_io_permille = (int)hf_rng_below(&w.rng, 100),
        .full_permille = (int)hf_rng_below(&w.rng, 100),
        .latency_max = hf_milliseconds((int64_t)hf_rng_below(&w.rng, 50) + 1),
        .buffer_len = 65536,
    };
    now = &w;
    w.env = hf_sim_begin_with(seed, options);
    hf_runtime_options runtime = hf_sim_runtime_options(w.env, 1 + (int)hf_rng_below(&w.rng, 2));
    runtime.log = count_losses;
    hf_status status = hf_run_with(play, &w, &runtime);
    HF_CHECK_SAY(status == HF_OK, "the world ended with %s: %s", hf_status_name(status), hf_error_text());
    hf_sim_end(w.env, NULL);
}

static void remote_R2_nothing_is_lost_and_nothing_done_twice(void **state)
{
    (void)state;
    hf_each_seed("worlds", 400, one_world);
    print_message("%d connections lost\n", atomic_load(&losses));
}

/* ---- Tasks that come while their run ends -------------------------------------------------------------------------------------------- */

enum { DEPOSITS = 40, DEPOSITS_A_RUN = 7 };

typedef struct account {
    long total;
} account;

static hf_status tell_total(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "%ld", ((const account *)arg)->total);
}

/* Continues as new every few signals. Those that come meanwhile refuse its closing command, so that it ends in the worker's memory
 * while its next task is on the way; queries come beside both. */
static hf_status keep_account(hf_payload in, hf_payload *ret_out)
{
    account *a = HF_WORKFLOW_NEW(account);
    (void)ret_out;
    if (a == NULL) {
        return HF_ERR_NOMEM;
    }
    a->total = strtol(in.data, NULL, 10);
    HF_TRY(hf_on_query("total", tell_total, .arg = a));
    for (int i = 0; i < DEPOSITS_A_RUN; i++) {
        HF_TRY(hf_signal_wait("deposit", NULL));
        a->total++;
    }
    char text[32];
    (void)snprintf(text, sizeof text, "%ld", a->total);
    return hf_continue_as_new(hf_payload_of_json(text));
}

static hf_status deposit(void *arg)
{
    for (int i = 0; i < DEPOSITS; i++) {
        HF_TRY(hf_signal(arg, "deposit", hf_payload_none()));
    }
    return HF_OK;
}

static hf_status follow(void *arg)
{
    long total = 0;
    while (total < DEPOSITS) {
        HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
        HF_TRY(hf_query(arg, "total", hf_payload_none(), &out));
        total = strtol(out.data, NULL, 10);
    }
    return HF_OK;
}

static hf_status bank(world *w)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_open(w->address, &service));
    HF_TRY(hf_worker_new(service, "q", &worker, .pollers_max = 4,
                         .cached_max = hf_rng_below(&w->rng, 4) == 0 ? HF_OFF : 0));
    HF_TRY(hf_worker_add_workflow(worker, "account", keep_account));
    HF_TRY(hf_worker_start(worker));
    int64_t since = hf_now(NULL).ns;
    HF_TRY(hf_start(service, "account", hf_payload_of_json("0"), &execution, .id = "a", .task_queue = "q"));
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, deposit, execution));
    HF_TRY(hf_fork(scope, follow, execution));
    HF_TRY(hf_fork(scope, follow, execution));
    HF_TRY(hf_join(scope));
    int64_t took = hf_now(NULL).ns - since;
    HF_CHECK_SAY(took < hf_seconds(9).ns, "%lld ms: a task was dropped and timed out", (long long)took / 1000000);
    HF_TRY(hf_worker_stop(worker));
    return hf_worker_wait(worker);
}

/* ---- Workers that stop with tasks in hand --------------------------------------------------------------------------------------------- */

enum { PARCELS = 24, SHIFTS = 6 };

static hf_status weigh(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status send_parcel(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_signal_wait("address", NULL));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_activity_run("weigh", in, ret_out, .start_to_close = hf_minutes(30)));
    }
    return HF_OK;
}

/* Tasks that a worker had and let lie: each shows as a timeout in a history, or as an activity that begins its second attempt. */
static int timeouts_of(world *w, const char *id)
{
    hf_arena arena;
    hf_call call;
    hf_op op;
    hf_pb_history history = {0};
    int count = 0;
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("default"), .execution = &execution};
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(w->env));
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &arena, NULL);
    if (HF_CHECK_SAY(hf_service_ask(&op, w->engine, &call) == HF_OK, "%s", op.message)) {
        hf_str bytes = ((const hf_pb_get_workflow_execution_history_response *)call.response)->history;
        HF_CHECK(hf_pb_decode(&op, &hf_pb_history_type, bytes, &arena, &history) == HF_OK);
    }
    for (size_t i = 0; i < history.events.count; i++) {
        const hf_pb_history_event *event = &history.events.items[i];
        if (event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_TASK_TIMED_OUT_EVENT_ATTRIBUTES) {
            const hf_pb_workflow_task_timed_out_event_attributes *a = event->workflow_task_timed_out_event_attributes;
            count += a->timeout_type == HF_TIMEOUT_TYPE_START_TO_CLOSE;
        }
    }
    hf_arena_deinit(&arena);
    return count;
}

/* A worker with one slot, so that tasks wait behind the step that is played. Then it stops, at any moment, and another one comes. */
static hf_status shift(world *w, bool is_last, hf_scope *asking)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_TRY(hf_open(w->address, &service));
    HF_TRY(hf_worker_new(service, "q", &worker, .pollers_max = 6, .activity_pollers_max = 2, .workflows_max = 1,
                         .cached_max = hf_rng_below(&w->rng, 3) == 0 ? HF_OFF : 0));
    HF_TRY(hf_worker_add_workflow(worker, "parcel", send_parcel));
    HF_TRY(hf_worker_add_activity(worker, "weigh", weigh, .on_fiber = true));
    HF_TRY(hf_worker_start(worker));
    if (is_last) {
        HF_TRY(hf_join(asking));
    } else {
        HF_TRY(hf_sleep(hf_milliseconds((int64_t)hf_rng_below(&w->rng, 120) + 1)));
    }
    HF_TRY(hf_worker_stop(worker));
    return hf_worker_wait(worker);
}

static hf_status await_parcel(void *arg)
{
    return hf_result(arg, NULL);
}

static hf_status shifts(world *w)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_execution *parcels[PARCELS] = {NULL};
    HF_TRY(hf_open(w->address, &service));
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < PARCELS; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "p-%d", i);
        HF_TRY(hf_start(service, "parcel", hf_payload_of_json("7"), &parcels[i], .id = id, .task_queue = "q",
                        .task_timeout = hf_seconds(120)));
        HF_TRY(hf_signal(parcels[i], "address", hf_payload_none()));
        HF_TRY(hf_fork(scope, await_parcel, parcels[i]));
    }
    int64_t since = hf_now(NULL).ns;
    for (int i = 0; i < SHIFTS; i++) {
        HF_TRY(shift(w, i == SHIFTS - 1, scope));
    }
    int64_t took = hf_now(NULL).ns - since;
    int timeouts = 0;
    for (int i = 0; i < PARCELS; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "p-%d", i);
        timeouts += timeouts_of(w, id);
        hf_execution_free(parcels[i]);
    }
    HF_CHECK_SAY(timeouts == 0, "%d workflow tasks timed out", timeouts);
    HF_CHECK_SAY(took < hf_seconds(9).ns, "%lld ms: a task was dropped and timed out", (long long)took / 1000000);
    return HF_OK;
}

static hf_status quiet_play(void *arg)
{
    world *w = arg;
    hf_op op;
    hf_op_init(&op);
    hf_door *door = NULL;
    HF_TRY(hf_open("memory:", &w->engine));
    HF_TRY(hf_door_open(&op, w->engine, &(hf_door_options){0}, &door));
    HF_TRY(hf_door_listen(&op, door, "tcp:127.0.0.1:0", w->listens));
    (void)snprintf(w->address, sizeof w->address, "temporal://%s", w->listens + 4);
    hf_status status = w->body(w);
    HF_CHECK_SAY(status == HF_OK, "%s: %s", hf_status_name(status), hf_error_text());
    hf_door_stop(door);
    return hf_close(w->engine);
}

static void quiet_world(uint64_t seed, hf_status (*body)(world *w))
{
    world w = {.rng = {seed}, .body = body};
    hf_sim_options options = {.latency_max = hf_milliseconds((int64_t)hf_rng_below(&w.rng, 5) + 1),
                              .buffer_len = 65536};
    w.env = hf_sim_begin_with(seed, options);
    hf_runtime_options runtime = hf_sim_runtime_options(w.env, 1 + (int)hf_rng_below(&w.rng, 2));
    hf_status status = hf_run_with(quiet_play, &w, &runtime);
    HF_CHECK_SAY(status == HF_OK, "the world ended with %s: %s", hf_status_name(status), hf_error_text());
    hf_sim_end(w.env, NULL);
}

static void bank_world(uint64_t seed)
{
    quiet_world(seed, bank);
}

static void worker_keeps_a_task_that_meets_the_end_of_its_run_in_memory(void **state)
{
    (void)state;
    hf_each_seed("quiet worlds", 100, bank_world);
}

static void shift_world(uint64_t seed)
{
    quiet_world(seed, shifts);
}

static void worker_that_stops_drops_no_task(void **state)
{
    (void)state;
    hf_each_seed("worlds of shifts", 100, shift_world);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(remote_R2_nothing_is_lost_and_nothing_done_twice),
    cmocka_unit_test(worker_keeps_a_task_that_meets_the_end_of_its_run_in_memory),
    cmocka_unit_test(worker_that_stops_drops_no_task),
};

int main(int argc, char **argv)
{
    return hf_test_main("remote_sim", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
