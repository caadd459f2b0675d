/* Very many calls at once: they share commits, and no commit grows beyond its bound. On simulated threads and their clock. */
#include "support/support.h"

#include "engine/engine.h"
#include "env/sim/sim.h"
#include "store/mem.h"
#include "support/engine_rig.h"

#include <stdio.h>
#include <stdlib.h>

enum { CALLS = 300, INPUT_LEN = 64 << 10, MEM_MAX = 4 << 20, OPEN_LEN_MAX = MEM_MAX / 8 };

/* A store that remembers its longest commit. */
typedef struct measured {
    hf_store base;
    hf_store *inner;
    size_t longest; /* bytes of a journal row */
    int commits;
} measured;

static hf_status measured_execute(hf_store *base, hf_store_request *request)
{
    measured *m = HF_CONTAINER(base, measured, base);
    m->commits += request->verb == HF_STORE_COMMIT ? 1 : 0;
    for (size_t i = 0; request->verb == HF_STORE_COMMIT && i < request->write_count; i++) {
        const hf_write *write = &request->writes[i];
        if (write->table == HF_TABLE_JOURNAL && write->kind == HF_WRITE_PUT && write->value.len > m->longest) {
            m->longest = write->value.len;
        }
    }
    return m->inner->ops->execute(m->inner, request);
}

static uint64_t measured_last_commit(hf_store *base)
{
    const measured *m = HF_CONTAINER(base, measured, base);
    return m->inner->ops->last_commit(m->inner);
}

static void measured_close(hf_store *base)
{
    hf_store_close(HF_CONTAINER(base, measured, base)->inner);
}

static const hf_store_ops MEASURED_OPS = {
    .name = "measured", .execute = measured_execute, .last_commit = measured_last_commit, .close = measured_close};

/* One call of the burst. */
typedef struct asked {
    hf_call call;
    hf_arena arena;
    hf_env *env;
    char id[16];
    hf_pb_start_workflow_execution_request request;
    hf_word done;
    int *order; /* answers so far */
    int answered;
} asked;

static void on_done(hf_call *call)
{
    asked *a = HF_CONTAINER(call, asked, call);
    a->answered = ++*a->order;
    atomic_store(&a->done, 1);
    a->env->ops->word_wake(a->env, &a->done, 1);
}

static void burst(uint64_t seed, bool is_closed)
{
    static char bytes[INPUT_LEN];
    static hf_pb_workflow_type type = {.name = HF_STR_INIT("T")};
    static hf_pb_task_queue queue = {.name = HF_STR_INIT("q")};
    hf_pb_payload payload = {.data = hf_str_of_len(bytes, sizeof bytes)};
    hf_pb_payloads input = {.payloads = {&payload, 1}};
    hf_op op;
    hf_op_init(&op);
    hf_env *env = hf_sim_begin(seed);
    measured store = {.base = {&MEASURED_OPS}};
    hf_service *service = NULL;
    hf_engine_options options = {.mem_max = MEM_MAX};
    assert_int_equal(hf_mem_store_open(&op, hf_rig_heap, NULL, &store.inner), HF_OK);
    assert_int_equal(hf_engine_open(&op, env, &store.base, &options, &service), HF_OK);
    asked *calls = calloc(CALLS, sizeof *calls);
    assert_non_null(calls);
    int order = 0;
    for (int i = 0; i < CALLS; i++) {
        asked *a = &calls[i];
        (void)snprintf(a->id, sizeof a->id, "w-%d", i);
        a->env = env;
        a->order = &order;
        a->request = (hf_pb_start_workflow_execution_request){
            .namespace = HF_STR("ns"),
            .workflow_id = hf_str_of(a->id),
            .workflow_type = &type,
            .task_queue = &queue,
            .input = &input,
        };
        hf_arena_init(&a->arena, hf_rig_heap);
        hf_call_init(&a->call, HF_METHOD_START_WORKFLOW_EXECUTION, &a->request, &a->arena, on_done);
        hf_service_submit(service, &a->call);
    }
    if (is_closed) {
        assert_int_equal(service->ops->close(&op, service), HF_OK);
    }
    for (int i = 0; i < CALLS; i++) {
        asked *a = &calls[i];
        while (atomic_load(&a->done) == 0) {
            (void)env->ops->word_wait(env, &a->done, 0, HF_INSTANT_NEVER);
        }
        assert_int_equal(a->call.status, HF_OK);
        assert_int_equal(a->answered, i + 1); /* in the order they came */
        hf_arena_deinit(&a->arena);
    }
    if (!is_closed) {
        assert_int_equal(service->ops->close(&op, service), HF_OK);
    }
    assert_in_range(store.longest, INPUT_LEN, OPEN_LEN_MAX + INPUT_LEN + 4096);
    assert_in_range(store.commits, CALLS / (OPEN_LEN_MAX / INPUT_LEN + 1), CALLS);
    free(calls);
    hf_sim_end(env, NULL);
}

static void a_burst_of_long_calls_becomes_commits_within_their_bound(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        burst(seed, false);
    }
}

static void closing_in_a_burst_answers_all_of_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        burst(seed, true);
    }
}

/* ---- Ten thousand polls end at once ------------------------------------------------------------------------------------------ */

enum { POLLS = 10000, STARTS_MAX = 1000 };

typedef struct crowd crowd;

typedef struct parked {
    hf_call call;
    hf_arena arena;
    crowd *all;
} parked;

/* A program that ends its polls, and a client that starts one workflow after the other meanwhile. */
struct crowd {
    hf_env *env;
    hf_service *service;
    parked polls[POLLS];
    atomic_int canceled;
    hf_word is_over; /* all polls are answered */
    asked starts[STARTS_MAX];
    int started;
    int before;  /* polls that had been canceled at the last answer to the client */
    int longest; /* polls that were canceled between two answers to it */
    int between; /* answers to it between the first cancel and the last */
    hf_word is_idle;
};

static void on_canceled(hf_call *call)
{
    crowd *all = HF_CONTAINER(call, parked, call)->all;
    hf_assert(call->status == HF_ERR_CANCELED);
    if (atomic_fetch_add(&all->canceled, 1) + 1 == POLLS) {
        atomic_store(&all->is_over, 1);
        all->env->ops->word_wake(all->env, &all->is_over, 1);
    }
}

static void start_next(crowd *all, void (*done)(hf_call *))
{
    static hf_pb_workflow_type type = {.name = HF_STR_INIT("T")};
    static hf_pb_task_queue queue = {.name = HF_STR_INIT("other")};
    hf_assert(all->started < STARTS_MAX);
    asked *a = &all->starts[all->started++];
    (void)snprintf(a->id, sizeof a->id, "w-%d", all->started);
    a->request = (hf_pb_start_workflow_execution_request){
        .namespace = HF_STR("ns"), .workflow_id = hf_str_of(a->id), .workflow_type = &type, .task_queue = &queue};
    hf_arena_init(&a->arena, hf_rig_heap);
    hf_call_init(&a->call, HF_METHOD_START_WORKFLOW_EXECUTION, &a->request, &a->arena, done);
    a->order = (int *)(void *)all; /* the crowd */
    hf_service_submit(all->service, &a->call);
}

static void on_started(hf_call *call)
{
    crowd *all = (crowd *)(void *)HF_CONTAINER(call, asked, call)->order;
    hf_assert(call->status == HF_OK);
    int canceled = atomic_load(&all->canceled);
    int more = canceled - all->before;
    all->longest = more > all->longest ? more : all->longest;
    all->between += more > 0 ? 1 : 0;
    all->before = canceled;
    if (canceled < POLLS) {
        start_next(all, on_started);
        return;
    }
    atomic_store(&all->is_idle, 1);
    all->env->ops->word_wake(all->env, &all->is_idle, 1);
}

static void await(hf_env *env, hf_word *word)
{
    while (atomic_load(word) == 0) {
        (void)env->ops->word_wait(env, word, 0, HF_INSTANT_NEVER);
    }
}

/* `early`: the cancels come before the engine has seen the polls. */
static void end_polls(uint64_t seed, bool early)
{
    static hf_pb_task_queue queue = {.name = HF_STR_INIT("q")};
    static const hf_pb_poll_workflow_task_queue_request REQUEST = {.namespace = HF_STR_INIT("ns"),
                                                                   .task_queue = &queue};
    hf_op op;
    hf_op_init(&op);
    crowd *all = calloc(1, sizeof *all);
    assert_non_null(all);
    all->env = hf_sim_begin(seed);
    hf_store *store = NULL;
    assert_int_equal(hf_mem_store_open(&op, hf_rig_heap, NULL, &store), HF_OK);
    assert_int_equal(hf_engine_open(&op, all->env, store, NULL, &all->service), HF_OK);
    for (int i = 0; i < POLLS; i++) {
        parked *p = &all->polls[i];
        p->all = all;
        hf_arena_init(&p->arena, hf_rig_heap);
        hf_call_init(&p->call, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &REQUEST, &p->arena, on_canceled);
        hf_service_submit(all->service, &p->call);
    }
    hf_word never = 0;
    if (!early) {
        hf_instant until = {all->env->ops->now(all->env).ns + 1000000000};
        (void)all->env->ops->word_wait(all->env, &never, 0, until);
    }
    start_next(all, on_started);
    for (int i = 0; i < POLLS; i++) {
        all->service->ops->cancel(all->service, all->polls[i].call.number);
    }
    await(all->env, &all->is_over);
    await(all->env, &all->is_idle);
    /* A start is decided in the step behind its call, its commit is sealed with that step, and answered in a later one. */
    assert_in_range(all->longest, 1, 3 * HF_CANCELS_MAX);
    assert_in_range(all->between, POLLS / (3 * HF_CANCELS_MAX), STARTS_MAX);
    assert_int_equal(all->service->ops->close(&op, all->service), HF_OK);
    for (int i = 0; i < POLLS; i++) {
        hf_arena_deinit(&all->polls[i].arena);
    }
    for (int i = 0; i < all->started; i++) {
        hf_arena_deinit(&all->starts[i].arena);
    }
    hf_sim_end(all->env, NULL);
    free(all);
}

static void engine_L4_ten_thousand_polls_end_in_portions(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        end_polls(seed, seed % 2 == 0);
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_burst_of_long_calls_becomes_commits_within_their_bound),
    cmocka_unit_test(closing_in_a_burst_answers_all_of_it),
    cmocka_unit_test(engine_L4_ten_thousand_polls_end_in_portions),
};

int main(int argc, char **argv)
{
    return hf_test_main("burst", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
