/* Objects that go as soon as they may, while the thread that allowed it is still on its way out.
 *
 * Every scene has a thread "outside" that wakes, posts, opens or unlocks something, and another that frees the object right
 * then. The simulation chooses what happens in between; its memory notices who touches what was freed (env/sim/memory.c).
 *
 *   life-M1  whoever wakes a fiber or a thread does not need its runtime afterwards, or the runtime waits for it;
 *   life-M2  whoever opens a latch, or unlocks a queue, touches it no more;
 *   life-M3  nothing is left allocated or running. */
#include "support/support.h"

#include "base/latch.h"
#include "base/rng.h"
#include "env/sim/sim.h"
#include "fiber/core.h"
#include "service/call.h"
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

/* Simulated threads share what is thread-local: one that calls verbs brings its own self. */
#define AS_PLAIN_THREAD(me)                                    \
    hf_thread_fiber me = {.fiber = {.kind = HF_FIBER_THREAD}}; \
    hf_self_set(&(me).fiber.self)

static hf_runtime_options options_for(stage *s)
{
    hf_runtime_options options = hf_sim_runtime_options(s->env, 1 + (int)hf_rng_below(&s->rng, 3));
    options.guards = HF_OFF;
    return options;
}

/* ---- A service that outlives its callers' runtimes ---------------------------------------------------------------------- */

typedef struct desk {
    hf_service service;
    hf_env *env;
    hf_spin lock;
    hf_list calls;
    bool closing;
    bool asleep;
    hf_word word;
} desk;

static void desk_submit(hf_service *service, hf_call *call)
{
    desk *d = (desk *)(void *)service;
    hf_spin_lock(&d->lock);
    hf_list_push_back(&d->calls, &call->link);
    bool ring = d->asleep;
    d->asleep = false;
    hf_unlock_and_ring(d->env, &d->lock, &d->word, ring);
}

static void desk_cancel(hf_service *service, uint64_t number)
{
    (void)service;
    (void)number;
}

static void desk_main(void *arg)
{
    desk *d = arg;
    for (bool is_open = true; is_open;) {
        hf_spin_lock(&d->lock);
        hf_node *node = hf_list_pop_front(&d->calls);
        is_open = node != NULL || !d->closing;
        d->asleep = node == NULL && is_open;
        if (d->asleep) {
            atomic_store(&d->word, 0);
        }
        hf_spin_unlock(&d->lock);
        if (node != NULL) {
            hf_call *call = HF_CONTAINER(node, hf_call, link);
            call->status = HF_OK;
            call->done(call);
        } else if (is_open) {
            (void)d->env->ops->word_wait(d->env, &d->word, 0, HF_INSTANT_NEVER);
        }
    }
}

static void desk_close(desk *d)
{
    hf_spin_lock(&d->lock);
    d->closing = true;
    hf_unlock_and_ring(d->env, &d->lock, &d->word, true);
}

static const hf_service_ops DESK = {.submit = desk_submit, .cancel = desk_cancel};

static hf_status ask(void *arg)
{
    desk *d = arg;
    hf_arena arena;
    hf_op op;
    hf_call call;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(d->env));
    hf_pb_describe_workflow_execution_request request = {0};
    hf_call_init(&call, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, &arena, NULL);
    hf_status status = hf_service_ask(&op, &d->service, &call);
    hf_arena_deinit(&arena);
    return status;
}

static void with_desk(stage *s, void (*use)(stage *s, desk *d))
{
    desk d = {.service = {.ops = &DESK}, .env = s->env};
    hf_list_init(&d.calls);
    start_outside(s, desk_main, &d);
    use(s, &d);
    desk_close(&d);
    join_outside(s);
}

static void run_and_ask(stage *s, desk *d)
{
    for (uint64_t rounds = 1 + hf_rng_below(&s->rng, 3); rounds > 0; rounds--) {
        hf_runtime_options options = options_for(s);
        HF_CHECK(hf_run_with(ask, d, &options) == HF_OK);
    }
}

static void scene_run(stage *s)
{
    with_desk(s, run_and_ask);
}

/* A plain thread, which turns a runtime without threads while it waits, or has one with threads. */
static void open_and_ask(stage *s, desk *d)
{
    hf_runtime_options options = options_for(s);
    options.threads = hf_rng_below(&s->rng, 2) == 0 ? HF_OFF : options.threads;
    hf_runtime *rt = NULL;
    hf_scope *scope = NULL;
    HF_CHECK(hf_runtime_new_with(&rt, &options) == HF_OK);
    HF_CHECK(hf_scope_open(&scope, .runtime = rt) == HF_OK);
    if (hf_rng_below(&s->rng, 2) == 0) {
        HF_CHECK(hf_fork(scope, ask, d) == HF_OK);
        HF_CHECK(hf_join(scope) == HF_OK);
    }
    HF_CHECK(ask(d) == HF_OK);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_runtime_free(rt) == HF_OK);
}

static void scene_plain(stage *s)
{
    with_desk(s, open_and_ask);
}

/* ---- Verbs of a thread from outside that end a runtime -------------------------------------------------------------------- */

typedef struct show {
    hf_runtime *rt;
    hf_scope *scope;
    hf_chan *chan;
} show;

static hf_status sleep_long(void *arg)
{
    (void)arg;
    return hf_sleep(hf_hours(1));
}

static hf_status receive(void *arg)
{
    show *sh = arg;
    char token = 0;
    return hf_chan_recv(sh->chan, &token);
}

static hf_status send(void *arg)
{
    show *sh = arg;
    return hf_chan_send(sh->chan, "");
}

static void cancel_scope(void *arg)
{
    AS_PLAIN_THREAD(me);
    const show *sh = arg;
    HF_CHECK(hf_scope_cancel(sh->scope) == HF_OK);
    hf_self_set(NULL);
}

static void stop_runtime(void *arg)
{
    AS_PLAIN_THREAD(me);
    const show *sh = arg;
    HF_CHECK(hf_runtime_stop(sh->rt) == HF_OK);
    hf_self_set(NULL);
}

static void send_last(void *arg)
{
    AS_PLAIN_THREAD(me);
    (void)send(arg);
    hf_self_set(NULL);
}

static void close_chan(void *arg)
{
    AS_PLAIN_THREAD(me);
    const show *sh = arg;
    HF_CHECK(hf_chan_close(sh->chan) == HF_OK);
    hf_self_set(NULL);
}

static void fork_sender(void *arg)
{
    AS_PLAIN_THREAD(me);
    show *sh = arg;
    HF_CHECK(hf_fork(sh->scope, send, sh) == HF_OK);
    hf_self_set(NULL);
}

static void begin(stage *s, show *sh, hf_body body, void (*ending)(void *))
{
    hf_runtime_options options = options_for(s);
    HF_CHECK(hf_runtime_new_with(&sh->rt, &options) == HF_OK);
    HF_CHECK(hf_scope_open(&sh->scope, .runtime = sh->rt, .join = HF_JOIN_COLLECT) == HF_OK);
    HF_CHECK(hf_chan_new(1, &sh->chan, .runtime = sh->rt, .capacity = hf_rng_below(&s->rng, 2)) == HF_OK);
    if (body != NULL) {
        HF_CHECK(hf_fork(sh->scope, body, sh) == HF_OK);
    }
    start_outside(s, ending, sh);
}

static void end(stage *s, show *sh)
{
    HF_CHECK(hf_scope_close(sh->scope) == HF_OK);
    HF_CHECK(hf_chan_free(sh->chan) == HF_OK);
    HF_CHECK(hf_runtime_free(sh->rt) == HF_OK);
    join_outside(s); /* only now: it may still be inside its verb */
}

static void scene_cancel(stage *s)
{
    show sh = {0};
    begin(s, &sh, sleep_long, cancel_scope);
    HF_IGNORE(hf_join(sh.scope));
    end(s, &sh);
}

static void scene_stop(stage *s)
{
    show sh = {0};
    begin(s, &sh, sleep_long, stop_runtime);
    HF_IGNORE(hf_join(sh.scope));
    end(s, &sh);
}

/* That a scope is refused is enough to know of the stop. */
static void scene_refused(stage *s)
{
    show sh = {0};
    begin(s, &sh, NULL, stop_runtime);
    HF_CHECK(hf_scope_close(sh.scope) == HF_OK);
    hf_status status = HF_OK;
    while (status == HF_OK) {
        status = hf_scope_open(&sh.scope, .runtime = sh.rt);
        if (status == HF_OK) {
            HF_CHECK(hf_scope_close(sh.scope) == HF_OK);
        }
    }
    HF_CHECK(status == HF_ERR_CLOSED);
    sh.scope = NULL;
    end(s, &sh);
}

static void scene_send(stage *s)
{
    show sh = {0};
    begin(s, &sh, receive, send_last);
    HF_IGNORE(hf_join(sh.scope));
    end(s, &sh);
}

/* The first that hears of the close ends its scope with all the others, and the channel goes. */
static void scene_chan_close(stage *s)
{
    show sh = {0};
    begin(s, &sh, receive, close_chan);
    char token = 0;
    HF_CHECK(hf_chan_recv(sh.chan, &token) == HF_ERR_CLOSED);
    end(s, &sh);
}

static void scene_fork(stage *s)
{
    show sh = {0};
    char token = 0;
    begin(s, &sh, NULL, fork_sender);
    HF_CHECK(hf_chan_recv(sh.chan, &token) == HF_OK);
    end(s, &sh);
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
    hf_store store = {.ops = &OPS};
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

/* ---- Locks that guard the count of their own users ------------------------------------------------------------------------ */

typedef struct shared {
    hf_mutex *mutex;
    hf_keylock *keys;
    int mutex_users;
    int keys_users;
} shared;

/* Whoever is last frees the lock, while the one before may still be leaving it. */
static hf_status leave_locks(void *arg)
{
    shared *sh = arg;
    hf_key_guard *guard = NULL;
    HF_CHECK(hf_mutex_lock(sh->mutex) == HF_OK);
    bool is_last = --sh->mutex_users == 0;
    HF_CHECK(hf_mutex_unlock(sh->mutex) == HF_OK);
    if (is_last) {
        HF_CHECK(hf_mutex_free(sh->mutex) == HF_OK);
    }
    HF_CHECK(hf_keylock_lock(sh->keys, "key", 3, &guard) == HF_OK);
    is_last = --sh->keys_users == 0;
    HF_CHECK(hf_key_unlock(guard) == HF_OK);
    if (is_last) {
        HF_CHECK(hf_keylock_free(sh->keys) == HF_OK);
    }
    return HF_OK;
}

static hf_status use_locks(void *arg)
{
    enum { USERS = 3 };
    (void)arg;
    shared sh = {.mutex_users = USERS, .keys_users = USERS};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_mutex_new(&sh.mutex));
    HF_TRY(hf_keylock_new(&sh.keys, .idle_max = HF_OFF));
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < USERS; i++) {
        HF_TRY(hf_fork(scope, leave_locks, &sh));
    }
    return hf_join(scope);
}

static void scene_locks(stage *s)
{
    hf_runtime_options options = options_for(s);
    options.threads = 2 + (int)hf_rng_below(&s->rng, 2);
    HF_CHECK(hf_run_with(use_locks, NULL, &options) == HF_OK);
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
        HF_CHECK(hf_pool_view(pool, &view) == HF_OK);
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
    HF_IGNORE(hf_block(block_abandoned, s, .abandonable = true, .drop = drop_nothing,
                       .timeout = hf_nanoseconds(500 + 500 * (int64_t)hf_rng_below(&s->rng, 2))));
    return HF_OK;
}

static void scene_pool(stage *s)
{
    hf_runtime_options options = options_for(s);
    HF_CHECK(hf_run_with(use_pools, s, &options) == HF_OK);
}

/* ---- All of them ------------------------------------------------------------------------------------------------------------ */

static void (*const SCENES[])(stage *s) = {
    scene_run,  scene_plain,      scene_cancel, scene_stop,  scene_refused, scene_send,
    scene_fork, scene_chan_close, scene_latch,  scene_queue, scene_pool,    scene_locks,
};

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
