/* A core that broke is replaced once that can be done; meanwhile calls are told to try again. On simulated threads and their
 * clock. */
#include "support/support.h"

#include "engine/engine.h"
#include "env/sim/sim.h"
#include "store/mem.h"
#include "support/engine_rig.h"

#include <string.h>

#define MS INT64_C(1000000)

/* A store that fails by wish. */
typedef struct faulty {
    hf_store base;
    hf_store *inner;
    bool is_full;    /* commits fail */
    bool is_damaged; /* deadlines cannot be read */
} faulty;

static hf_status faulty_execute(hf_store *base, hf_store_request *request)
{
    faulty *f = HF_CONTAINER(base, faulty, base);
    if (request->verb == HF_STORE_COMMIT && f->is_full) {
        return hf_fail(&request->op, HF_ERR_FULL, "the disk is full");
    }
    if (request->verb == HF_STORE_SCAN && request->table == HF_TABLE_DUE && request->row_max != 1 && f->is_damaged) {
        return hf_fail(&request->op, HF_ERR_INVALID, "the database disk image is malformed");
    }
    return f->inner->ops->execute(f->inner, request);
}

static uint64_t faulty_last_commit(hf_store *base)
{
    const faulty *f = HF_CONTAINER(base, faulty, base);
    return f->inner->ops->last_commit(f->inner);
}

static void faulty_close(hf_store *base)
{
    hf_store_close(HF_CONTAINER(base, faulty, base)->inner);
}

static const hf_store_ops FAULTY_OPS = {
    .name = "faulty", .execute = faulty_execute, .last_commit = faulty_last_commit, .close = faulty_close};

typedef struct world {
    hf_env *env;
    faulty store;
    hf_service *service;
    int logged_waits, logged_reopened;
} world;

static void on_log(void *state, hf_log_level level, const char *event, const char *fields)
{
    world *w = state;
    (void)level;
    (void)fields;
    w->logged_waits += strcmp(event, "engine_waits") == 0 ? 1 : 0;
    w->logged_reopened += strcmp(event, "engine_reopened") == 0 ? 1 : 0;
}

static void close_world(world *w)
{
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(w->service->ops->close(&op, w->service), HF_OK);
    hf_sim_end(w->env, NULL);
}

static void pass(world *w, int64_t ns)
{
    hf_word nobody = 0;
    hf_instant until = {w->env->ops->now(w->env).ns + ns};
    while (w->env->ops->now(w->env).ns < until.ns) {
        (void)w->env->ops->word_wait(w->env, &nobody, 0, until);
    }
}

/* A call, its answer, and who waits for it. */
typedef struct asked {
    hf_call call;
    hf_arena arena;
    world *world;
    hf_word done;
} asked;

static void on_done(hf_call *call)
{
    asked *a = HF_CONTAINER(call, asked, call);
    atomic_store(&a->done, 1);
    a->world->env->ops->word_wake(a->world->env, &a->done, 1);
}

static hf_status start(world *w, const char *id, size_t input_len, char message[HF_MESSAGE_LEN_MAX])
{
    static char bytes[1 << 20];
    hf_pb_workflow_type type = {.name = HF_STR("T")};
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    hf_pb_payload payload = {.data = hf_str_of_len(bytes, input_len)};
    hf_pb_payloads input = {.payloads = {&payload, 1}};
    hf_pb_start_workflow_execution_request request = {
        .namespace = HF_STR("ns"),
        .workflow_id = hf_str_of(id),
        .workflow_type = &type,
        .task_queue = &queue,
        .input = &input,
        .workflow_run_timeout = hf_pb_duration_of(hf_seconds(3600)),
    };
    asked a = {.world = w};
    hf_arena_init(&a.arena, hf_rig_heap);
    hf_call_init(&a.call, HF_METHOD_START_WORKFLOW_EXECUTION, &request, &a.arena, on_done);
    hf_service_submit(w->service, &a.call);
    while (atomic_load(&a.done) == 0) {
        (void)w->env->ops->word_wait(w->env, &a.done, 0, HF_INSTANT_NEVER);
    }
    if (a.call.status == HF_ERR_UNAVAILABLE) { /* it says when it tries again */
        assert_in_range(a.call.retry_after.ns, 1, 1000 * MS);
    }
    memcpy(message, a.call.message, HF_MESSAGE_LEN_MAX);
    hf_arena_deinit(&a.arena);
    return a.call.status;
}

/* The store's memory is its own: what fails is the engine's. */
static void open_world(world *w, uint64_t seed, size_t mem_max)
{
    hf_op op;
    hf_op_init(&op);
    char message[HF_MESSAGE_LEN_MAX];
    *w = (world){.env = hf_sim_begin(seed), .store.base = {&FAULTY_OPS}};
    assert_int_equal(hf_mem_store_open(&op, hf_rig_heap, NULL, &w->store.inner), HF_OK);
    hf_engine_options options = {.log = on_log, .log_state = w, .mem_max = mem_max};
    assert_int_equal(hf_engine_open(&op, w->env, &w->store.base, &options, &w->service), HF_OK);
    assert_int_equal(start(w, "first", 10, message), HF_OK);
}

/* The engine's memory is gone: the next long input breaks its core. */
static void break_core(world *w)
{
    char message[HF_MESSAGE_LEN_MAX];
    hf_sim_fail_allocation(w->env, 1, true);
    assert_int_equal(start(w, "long", 1 << 20, message), HF_ERR_NOMEM);
    assert_int_equal(start(w, "second", 10, message), HF_ERR_UNAVAILABLE);
    assert_non_null(strstr(message, "try again"));
    assert_non_null(strstr(message, "memory"));
}

static void come_back(uint64_t seed)
{
    world w;
    char message[HF_MESSAGE_LEN_MAX];
    hf_engine_stats stats;
    hf_op op;
    hf_op_init(&op);
    open_world(&w, seed, 0);
    break_core(&w);
    uint64_t before = hf_sim_allocations(w.env);
    for (int i = 0; i < 100; i++) { /* calls do not make it try more often */
        pass(&w, 100 * MS);
        assert_int_equal(start(&w, "second", 10, message), HF_ERR_UNAVAILABLE);
    }
    uint64_t tries = hf_sim_allocations(w.env) - before;
    assert_true(tries >= 10 && tries <= 20); /* one in a second, each of which fails at its first allocation */
    assert_int_equal(w.logged_waits, 1);
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_pb_admin_runs runs = {0};
    assert_int_equal(hf_engine_list(&op, w.service, INT64_MAX, 10, &arena, &runs), HF_ERR_UNAVAILABLE);
    assert_non_null(strstr(op.message, "memory")); /* who looks at it is told what is missing */
    hf_arena_deinit(&arena);
    hf_op_init(&op);
    hf_sim_fail_allocation(w.env, 0, false);
    pass(&w, 1000 * MS);
    assert_int_equal(w.logged_reopened, 1); /* also when nobody calls */
    assert_int_equal(start(&w, "second", 10, message), HF_OK);
    assert_int_equal(start(&w, "first", 10, message), HF_ERR_EXISTS); /* nothing is lost */
    assert_int_equal(hf_engine_stats_get(&op, w.service, false, &stats), HF_OK);
    assert_int_equal(stats.reopened, 1);
    pass(&w, 1000 * MS);
    break_core(&w); /* as often as it takes */
    hf_sim_fail_allocation(w.env, 0, false);
    pass(&w, 10 * MS);
    assert_int_equal(start(&w, "third", 10, message), HF_OK);
    close_world(&w);
}

static void a_core_that_broke_comes_back_with_the_memory(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        come_back(seed);
    }
}

/* Each of the allocations that the new core makes fails once: then the next try does it. */
static void a_try_that_fails_halfway_is_repeated(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 60; nth++) {
        world w;
        char message[HF_MESSAGE_LEN_MAX];
        open_world(&w, nth, 0);
        break_core(&w);
        hf_sim_fail_allocation(w.env, nth, false);
        pass(&w, 2000 * MS);
        hf_sim_fail_allocation(w.env, 0, false);
        pass(&w, 2000 * MS);
        assert_int_equal(start(&w, "second", 10, message), HF_OK);
        close_world(&w);
    }
}

static void a_service_that_waits_for_memory_can_be_closed(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 0);
    break_core(&w);
    close_world(&w);
}

/* Every core that is opened has a deadline to look for, and breaks with it: nobody waits for that at full speed. */
static void trouble_that_stays(bool is_full)
{
    world w;
    char message[HF_MESSAGE_LEN_MAX];
    open_world(&w, 1, 1); /* no memory: runs have rows, and deadlines on disk */
    w.store.is_full = true;
    assert_int_equal(start(&w, "second", 10, message), HF_ERR_FULL);
    w.store.is_full = is_full;
    w.store.is_damaged = !is_full;
    pass(&w, 10000 * MS);
    assert_in_range(w.logged_reopened, 2, 84); /* some at once, then one a second */
    assert_int_equal(w.logged_waits, 1);
    w.store.is_full = w.store.is_damaged = false;
    pass(&w, 1000 * MS);
    assert_int_equal(start(&w, "second", 10, message), HF_OK);
    assert_int_equal(start(&w, "first", 10, message), HF_ERR_EXISTS);
    close_world(&w);
}

static void a_disk_that_stays_full_is_not_tried_all_the_time(void **state)
{
    (void)state;
    trouble_that_stays(true);
}

static void a_page_that_stays_damaged_is_not_read_all_the_time(void **state)
{
    (void)state;
    trouble_that_stays(false);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_disk_that_stays_full_is_not_tried_all_the_time),
    cmocka_unit_test(a_page_that_stays_damaged_is_not_read_all_the_time),
    cmocka_unit_test(a_core_that_broke_comes_back_with_the_memory),
    cmocka_unit_test(a_try_that_fails_halfway_is_repeated),
    cmocka_unit_test(a_service_that_waits_for_memory_can_be_closed),
};

int main(int argc, char **argv)
{
    return hf_test_main("reopen", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
