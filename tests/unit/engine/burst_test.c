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
    assert_int_equal(hf_mem_store_open(&op, hf_rig_heap, &store.inner), HF_OK);
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

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_burst_of_long_calls_becomes_commits_within_their_bound),
    cmocka_unit_test(closing_in_a_burst_answers_all_of_it),
};

int main(int argc, char **argv)
{
    return hf_test_main("burst", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
