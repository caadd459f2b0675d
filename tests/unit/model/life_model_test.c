/* Objects that go as soon as they may, while the thread that allowed it is still on its way out.
 *
 * Every scene has a thread "outside" that wakes, posts, opens or unlocks something, and another that frees the object right
 * then. The simulation chooses what happens in between; its memory notices who touches what was freed (env/sim/memory.c).
 *
 *   M2  whoever opens a latch, or unlocks a queue, touches it no more;
 *   M3  nothing is left allocated or running. */
#include "support/support.h"

#include "base/latch.h"
#include "base/rng.h"
#include "env/sim/sim.h"
#include "store/store.h"

#include <string.h>

typedef struct stage {
    hf_env *env;
    hf_rng rng;
    hf_thread *outside;
} stage;

static void start_outside(stage *s, void (*main)(void *), void *arg)
{
    hf_op op;
    hf_op_init(&op);
    HF_CHECK(s->env->ops->thread_start(s->env, &op, "outside", 1 << 18, main, arg, &s->outside) == HF_OK);
}

static void join_outside(stage *s)
{
    s->env->ops->thread_join(s->env, s->outside);
}

static hf_runtime_options options_for(stage *s)
{
    hf_runtime_options options = hf_sim_runtime_options(s->env, 1 + (int)hf_rng_below(&s->rng, 3));
    options.guards = HF_OFF;
    return options;
}

/* ---- Latches and queues --------------------------------------------------------------------------------------------------- */

typedef struct job {
    hf_env *env;
    hf_latch done;
    hf_latch begun;
} job;

static void open_latch(void *arg)
{
    job *j = arg;
    hf_latch_wait(j->env, &j->begun);
    hf_latch_open(j->env, &j->done);
}

static void scene_latch(stage *s)
{
    job *j = s->env->ops->allocate(s->env, sizeof *j, 0);
    memset(j, 0, sizeof *j);
    j->env = s->env;
    start_outside(s, open_latch, j);
    hf_latch_open(s->env, &j->begun);
    hf_latch_wait(s->env, &j->done);
    s->env->ops->release(s->env, j, sizeof *j);
    join_outside(s);
}

typedef struct errand {
    hf_env *env;
    hf_store_queue *queue;
    hf_store_request request;
    hf_latch done;
} errand;

static hf_status nothing(hf_store *store, hf_store_request *request)
{
    (void)store;
    (void)request;
    return HF_OK;
}

static void keep_store(hf_store *store)
{
    (void)store;
}

static void errand_done(hf_store_request *request)
{
    errand *e = HF_CONTAINER(request, errand, request);
    hf_latch_open(e->env, &e->done);
}

static void submit_errand(void *arg)
{
    errand *e = arg;
    hf_store_queue_submit(e->queue, &e->request);
}

static void scene_queue(stage *s)
{
    static const hf_store_ops OPS = {.name = "nothing", .execute = nothing, .close = keep_store};
    hf_store store = {&OPS};
    hf_op op;
    hf_op_init(&op);
    errand *e = s->env->ops->allocate(s->env, sizeof *e, 0);
    *e = (errand){.env = s->env, .request = {.verb = HF_STORE_STATS, .done = errand_done}};
    HF_CHECK(hf_store_queue_open(&op, s->env, &store, &e->queue) == HF_OK);
    start_outside(s, submit_errand, e);
    hf_latch_wait(s->env, &e->done);
    hf_store_queue_close(e->queue);
    s->env->ops->release(s->env, e, sizeof *e);
    join_outside(s);
}

/* ---- Pools ------------------------------------------------------------------------------------------------------------------ */

static hf_status block_briefly(void *arg)
{
    (void)arg;
    return HF_OK;
}

static hf_status block_abandoned(void *arg)
{
    stage *s = arg;
    hf_word never = 0;
    (void)s->env->ops->word_wait(s->env, &never, 0, (hf_instant){s->env->ops->now(s->env).ns + 1000});
    return HF_OK;
}

static void drop_nothing(void *arg)
{
    (void)arg;
}

static hf_status use_pools(void *arg)
{
    stage *s = arg;
    for (uint64_t rounds = 1 + hf_rng_below(&s->rng, 3); rounds > 0; rounds--) {
        hf_dispatcher *pool = NULL;
        hf_dispatcher *view = NULL;
        HF_CHECK(hf_pool_new(&pool, .limit = 1 + (int)hf_rng_below(&s->rng, 2)) == HF_OK);
        HF_CHECK(hf_pool_view(&view, pool) == HF_OK);
        hf_scope *scope = NULL;
        HF_CHECK(hf_scope_open(&scope) == HF_OK);
        HF_CHECK(hf_fork(scope, block_briefly, NULL, .on = view) == HF_OK);
        HF_CHECK(hf_fork(scope, block_briefly, NULL, .on = pool) == HF_OK);
        HF_CHECK(hf_block(block_briefly, NULL, .on = view) == HF_OK);
        HF_CHECK(hf_join(scope) == HF_OK);
        HF_CHECK(hf_scope_close(scope) == HF_OK);
        HF_CHECK(hf_dispatcher_free(view) == HF_OK);
        HF_CHECK(hf_dispatcher_free(pool) == HF_OK);
    }
    (void)hf_block(block_abandoned, s, .abandonable = true, .drop = drop_nothing,
                   .timeout = hf_nanoseconds(500 + 500 * (int64_t)hf_rng_below(&s->rng, 2)));
    return HF_OK;
}

static void scene_pool(stage *s)
{
    hf_runtime_options options = options_for(s);
    HF_CHECK(hf_run_with(use_pools, s, &options) == HF_OK);
}

/* ---- All of them ------------------------------------------------------------------------------------------------------------ */

static void (*const SCENES[])(stage *s) = {scene_latch, scene_queue, scene_pool};

static uint64_t run(uint64_t seed)
{
    stage s = {.env = hf_sim_begin(seed), .rng = {hf_hash_mix(55, seed)}};
    hf_sim_hold(s.env, 1 + (int)hf_rng_below(&s.rng, 200));
    SCENES[seed % (sizeof SCENES / sizeof *SCENES)](&s);
    uint64_t hash = 0;
    hf_sim_end(s.env, &hash);
    return hash;
}

static void one_seed(uint64_t seed)
{
    uint64_t hash = run(seed);
    if (seed % 20 == 0) {
        HF_CHECK_SAY(run(seed) == hash, "the same seed gave another trace");
    }
}

static void objects_may_go_at_once(void **state)
{
    (void)state;
    hf_each_seed("objects", 30000, one_seed);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(objects_may_go_at_once),
    };
    return hf_test_main("life_model", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
