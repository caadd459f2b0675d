/* The wall clock is not the one that sleeps are measured by: it is set, and goes on while a machine is suspended. On simulated
 * threads. */
#include "support/support.h"

#include "engine/engine.h"
#include "env/sim/sim.h"
#include "store/mem.h"
#include "support/engine_rig.h"

#define SECOND INT64_C(1000000000)

static int64_t wall_set_by; /* ns */
static hf_time (*wall_now)(hf_env *env);

static hf_time set_wall_now(hf_env *env)
{
    return (hf_time){wall_now(env).ns + wall_set_by};
}

typedef struct world {
    hf_env *env;
    const hf_env_ops *own; /* the environment's */
    hf_env_ops ops;        /* the same but for the wall clock */
    hf_service *service;
} world;

typedef struct asked {
    hf_call call;
    hf_env *env;
    hf_word done;
} asked;

static void on_done(hf_call *call)
{
    asked *a = HF_CONTAINER(call, asked, call);
    atomic_store(&a->done, 1);
    a->env->ops->word_wake(a->env, &a->done, 1);
}

static void *ask(world *w, hf_method method, const void *request, hf_arena *arena)
{
    asked a = {.env = w->env};
    hf_call_init(&a.call, method, request, arena, on_done);
    hf_service_submit(w->service, &a.call);
    while (atomic_load(&a.done) == 0) {
        (void)w->env->ops->word_wait(w->env, &a.done, 0, HF_INSTANT_NEVER);
    }
    assert_int_equal(a.call.status, HF_OK);
    return a.call.response;
}

static void start_for_two_hours(world *w)
{
    hf_arena arena;
    hf_pb_workflow_type type = {.name = HF_STR("T")};
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    hf_pb_start_workflow_execution_request request = {
        .namespace = HF_STR("ns"),
        .workflow_id = HF_STR("wf"),
        .workflow_type = &type,
        .task_queue = &queue,
        .workflow_run_timeout = hf_pb_duration_of(hf_seconds(7200)),
    };
    hf_arena_init(&arena, hf_rig_heap);
    (void)ask(w, HF_METHOD_START_WORKFLOW_EXECUTION, &request, &arena);
    hf_arena_deinit(&arena);
}

/* As the engine knows it before it looks at the clock for this question. */
static int32_t status_of(world *w)
{
    hf_arena arena;
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("wf")};
    hf_pb_describe_workflow_execution_request request = {.namespace = HF_STR("ns"), .execution = &execution};
    hf_arena_init(&arena, hf_rig_heap);
    hf_pb_describe_workflow_execution_response *response =
        ask(w, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, &arena);
    int32_t status = response->workflow_execution_info->status;
    hf_arena_deinit(&arena);
    return status;
}

static void pass(world *w, int64_t ns)
{
    hf_word nobody = 0;
    hf_instant until = {w->env->ops->now(w->env).ns + ns};
    while (w->env->ops->now(w->env).ns < until.ns) {
        (void)w->env->ops->word_wait(w->env, &nobody, 0, until);
    }
}

static void open_world(world *w)
{
    hf_op op;
    hf_op_init(&op);
    hf_store *store = NULL;
    w->env = hf_sim_begin(1);
    w->own = w->env->ops;
    w->ops = *w->own;
    wall_now = w->ops.wall_now;
    wall_set_by = 0;
    w->ops.wall_now = set_wall_now;
    w->env->ops = &w->ops;
    assert_int_equal(hf_mem_store_open(&op, hf_rig_heap, NULL, &store), HF_OK);
    assert_int_equal(hf_engine_open(&op, w->env, store, NULL, &w->service), HF_OK);
    start_for_two_hours(w);
}

static void close_world(world *w)
{
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(w->service->ops->close(&op, w->service), HF_OK);
    w->env->ops = w->own;
    hf_sim_end(w->env, NULL);
}

static void what_is_due_after_the_clock_was_set_forward_comes_soon(void **state)
{
    (void)state;
    world w;
    open_world(&w);
    pass(&w, 10 * SECOND);
    wall_set_by = 3 * 3600 * SECOND;
    pass(&w, 11 * SECOND);
    assert_int_equal(status_of(&w), HF_WORKFLOW_EXECUTION_STATUS_TIMED_OUT);
    close_world(&w);
}

static void after_the_clock_was_set_back_nothing_comes_early(void **state)
{
    (void)state;
    world w;
    open_world(&w);
    pass(&w, 7199 * SECOND);
    wall_set_by = -3600 * SECOND;
    pass(&w, 3599 * SECOND);
    assert_int_equal(status_of(&w), HF_WORKFLOW_EXECUTION_STATUS_RUNNING);
    pass(&w, 3 * SECOND);
    assert_int_equal(status_of(&w), HF_WORKFLOW_EXECUTION_STATUS_TIMED_OUT);
    close_world(&w);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(what_is_due_after_the_clock_was_set_forward_comes_soon),
    cmocka_unit_test(after_the_clock_was_set_back_nothing_comes_early),
};

int main(int argc, char **argv)
{
    return hf_test_main("clock", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
