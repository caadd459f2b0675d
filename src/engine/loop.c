/* The loop: one thread that decides, one that commits (the store's queue), and the threads of the callers.
 *
 *     callers --submit--> inbox --+                                   +--> done: callers are answered
 *                                 v                                   |
 *               engine thread:  hf_core_call, tick --> hf_core_seal --|--> hf_core_done
 *                                                         |           |
 *               store thread:                             +-> commit -+      while it commits, the next is decided
 *
 * A batch is sealed as soon as the store is free: one input when little happens, thousands when much does. It is held
 * back, for at most HOLD_BACK, only for workflow code of this process that runs right now. A batch that is full takes no more calls:
 * they stay in the inbox.
 *
 * engine-L1  The core is touched by the engine thread alone. Callers and the store thread only push to `inbox`, under its lock.
 * engine-L2  The engine thread sleeps only after it saw the inbox empty, and says so under the lock; the next push rings once.
 *     While a commit is under way nothing else can be committed: then it naps, and only the store (or the end of the nap)
 *     wakes it; calls gather meanwhile and cost their callers no system call.
 * engine-L3  After a failed step the core is replaced by one opened from the store, as soon as that can be done; until then every
 *     call answers HF_ERR_UNAVAILABLE or HF_ERR_FULL. After a commit whose outcome is unknown the service stays stopped (D7): every call answers
 *     HF_ERR_STORE.
 * engine-L4  A step takes at most HF_CANCELS_MAX posts, those left over from earlier steps included, and at most CALLS_MAX calls: when a program
 *     ends its polls, 10,000 cancels may come at once, and the commits of others must not wait for all of them. */
#include "engine/core_private.h"

#include "engine/loop_private.h"
#include "time/zone.h"

#include <stdio.h>

enum {
    STACK_LEN = 512 * 1024,
    CALLS_MAX = 512,     /* calls of one step */
    CALLS_WHEN_LATE = 16 /* the same while deadlines wait */
};

/* Commits after which a checkpoint is requested; the store makes one if its log is long enough. */
#define CHECKPOINT_COMMITS 8

/* How long (ns) a batch is held back whose workflow tasks are with workers of this process. Workflow code takes microseconds, a
 * flush hundreds of them, and an answer that gets into the same batch saves a flush. */
#define HOLD_BACK 100000

/* The first nap (ns) while a commit is under way: workflow tasks that may be handed out ahead of their commit wait up to this
 * long. After a nap in which nothing came the next one is twice as long, because each costs a wake-up, and few calls come. */
#define NAP 60000
#define NAP_MAX (8 * NAP)

/* Longest sleep (ns) before a deadline by the wall clock. That clock may be set forward meanwhile, and it alone goes on while the
 * machine is suspended: a deadline then fires at most this much too late. (Simulated time advances by one sleep at a time, so a
 * shorter sleep makes a simulated year slow.) */
#define WALL_LOOK INT64_C(10000000000)

static hf_clock clock_of(hf_engine *engine)
{
    int64_t wall =
        engine->options.clock_at != 0 ? engine->options.clock_at : engine->env->ops->wall_now(engine->env).ns;
    return (hf_clock){wall + engine->skip.ahead, engine->env->ops->now(engine->env).ns};
}

/* ---- The inbox ------------------------------------------------------------------------------------------------------- */

/* Called with the lock held; releases it. */
static void unlock_and_ring(hf_engine *engine, bool from_store)
{
    bool ring = engine->asleep || (from_store && engine->napping);
    if (ring) {
        engine->asleep = engine->napping = false;
    }
    hf_unlock_and_ring(engine->env, &engine->lock, &engine->word, ring);
}

static void request_done(hf_store_request *request)
{
    hf_engine *engine = (hf_engine *)request->owner;
    hf_env *env = engine->env;
    hf_spin_lock(&engine->lock);
    hf_list_push_back(&engine->completions, &request->link);
    unlock_and_ring(engine, true);
    hf_point_let_go(env);
}

void hf_loop_ask_store(void *state, hf_store_request *request)
{
    hf_assert(request->done == NULL || request->owner == state);
    hf_engine *engine = state;
    request->done = request_done;
    request->owner = engine;
    hf_assert(engine->queue != NULL); /* engine-L3: a core that serves calls has a store */
    engine->requests_out++;
    hf_store_queue_submit(engine->queue, request);
}

static void submit(hf_service *service, hf_call *call)
{
    hf_engine *engine = (hf_engine *)(void *)service;
    hf_env *env = engine->env;
    hf_spin_lock(&engine->lock);
    bool closing = engine->closing;
    if (!closing) {
        call->number = ++engine->calls;
        hf_list_push_back(&engine->calls_in, &call->link);
    }
    unlock_and_ring(engine, false); /* from here on the call may be done, and the engine closed */
    hf_point_let_go(env);
    if (closing) {
        hf_call_set_failure(call, HF_ERR_CLOSED, "the service is closed");
        call->done(call);
    }
}

static void drop_post(hf_engine *engine, hf_engine_post *item)
{
    if (item->kind != HF_POST_ASK) {
        engine->env->ops->release(engine->env, item, item->len);
        return;
    }
    hf_latch_open(engine->env, &HF_CONTAINER(item, hf_engine_ask, post)->done);
}

/* After the engine thread has ended no thread reads the message: then it is dropped here. */
void hf_loop_post(hf_engine *engine, hf_engine_post *item)
{
    hf_spin_lock(&engine->lock);
    bool ended = engine->ended;
    if (!ended) {
        hf_list_push_back(&engine->posts, &item->link);
    }
    unlock_and_ring(engine, false);
    if (ended) {
        drop_post(engine, item);
    }
}

static hf_engine_post *new_post(hf_engine *engine, hf_post_kind kind, size_t extra)
{
    hf_engine_post *item = engine->env->ops->allocate(engine->env, sizeof *item + extra, 0);
    if (item != NULL) {
        *item = (hf_engine_post){.kind = kind, .len = sizeof *item + extra};
    }
    return item;
}

/* If there is no memory for the message, the poll ends by its own deadline. */
static void cancel(hf_service *service, uint64_t number)
{
    hf_engine *engine = (hf_engine *)(void *)service;
    hf_engine_post *item = new_post(engine, HF_POST_CANCEL, 0);
    if (item != NULL) {
        item->number = number;
        hf_loop_post(engine, item);
    }
}

/* If there is no memory for the message, the task's timeout does the same, later. */
static void post_token(hf_engine *engine, hf_post_kind kind, hf_str task_token)
{
    hf_engine_post *item = new_post(engine, kind, task_token.len);
    if (item != NULL) {
        memcpy(item + 1, task_token.data, task_token.len);
        item->token_len = task_token.len;
        hf_loop_post(engine, item);
    }
}

static void unwanted(hf_service *service, hf_str task_token)
{
    post_token((hf_engine *)(void *)service, HF_POST_UNWANTED, task_token);
}

void hf_engine_lost(hf_service *service, hf_str task_token, bool is_unclean)
{
    post_token((hf_engine *)(void *)service, is_unclean ? HF_POST_LOST : HF_POST_LEFT, task_token);
}

/* ---- The engine thread ----------------------------------------------------------------------------------------------- */

typedef struct hf_taken {
    hf_list calls;
    hf_list posts;
    hf_list completions;
    bool more; /* calls or posts, which are not taken yet */
    bool closing;
} hf_taken;

/* Sleeps until a thread pushes something, or in a nap until the store does; returns at once if there is something to do. */
static void wait_for_work(hf_engine *engine, hf_instant deadline, bool nap)
{
    hf_spin_lock(&engine->lock);
    bool idle = hf_list_is_empty(&engine->completions) && !(engine->closing && engine->requests_out == 0);
    if (!nap) {
        idle = idle && hf_list_is_empty(&engine->calls_in) && hf_list_is_empty(&engine->posts);
    }
    if (idle) {
        hf_assert(!engine->asleep && !engine->napping); /* engine-L2: only this thread sleeps */
        engine->asleep = !nap;
        engine->napping = nap;
        atomic_store(&engine->word, 0);
    }
    hf_spin_unlock(&engine->lock);
    if (idle) {
        (void)engine->env->ops->word_wait(engine->env, &engine->word, 0, deadline);
        hf_spin_lock(&engine->lock);
        engine->asleep = engine->napping = false;
        hf_spin_unlock(&engine->lock);
    }
}

static bool is_full(const hf_engine *engine)
{
    return engine->stopped == HF_OK && hf_core_is_full(engine->core);
}

/* Calls are taken in portions, so that a batch is sealed when the store is free and not after thousands of calls. While deadlines
 * that have come wait to be fired the portions are small, because those are late already. */
static int portion(const hf_engine *engine, hf_clock now)
{
    if (is_full(engine)) {
        return 0;
    }
    return engine->stopped == HF_OK && hf_core_is_late(engine->core, now) ? CALLS_WHEN_LATE : CALLS_MAX;
}

static void take(hf_engine *engine, hf_taken *taken, int calls_max)
{
    hf_list_init(&taken->calls);
    hf_list_init(&taken->posts);
    hf_spin_lock(&engine->lock);
    hf_node *node = NULL;
    for (int i = 0; i < calls_max; i++) {
        if ((node = hf_list_pop_front(&engine->calls_in)) == NULL) {
            break;
        }
        hf_list_push_back(&taken->calls, node);
    }
    hf_assert(engine->early_count <= HF_CANCELS_MAX); /* engine-L4 */
    for (size_t i = engine->early_count; i < HF_CANCELS_MAX && (node = hf_list_pop_front(&engine->posts)) != NULL;
         i++) {
        hf_list_push_back(&taken->posts, node);
    }
    taken->more = !hf_list_is_empty(&engine->calls_in) || !hf_list_is_empty(&engine->posts);
    hf_list_move_all(&engine->completions, &taken->completions);
    taken->closing = engine->closing;
    hf_spin_unlock(&engine->lock);
}

/* Puts calls that the batch had no room for back to the front of the inbox. */
static void put_back(hf_engine *engine, hf_taken *taken)
{
    hf_node *node = NULL;
    if (hf_list_is_empty(&taken->calls)) {
        return;
    }
    taken->more = true;
    hf_spin_lock(&engine->lock);
    while ((node = hf_list_last(&taken->calls)) != NULL) {
        hf_list_remove(node);
        hf_list_push_front(&engine->calls_in, node);
    }
    hf_spin_unlock(&engine->lock);
}

static hf_instant next_deadline(hf_engine *engine, hf_clock now)
{
    if (engine->stopped != HF_OK) {
        return hf_loop_next_try(engine);
    }
    if (hf_core_status(engine->core) != HF_OK) {
        return HF_INSTANT_NEVER;
    }
    hf_clock next = hf_core_next(engine->core);
    int64_t mono = next.mono;
    int64_t sleeper = hf_skip_next(engine);
    next.wall = sleeper < next.wall ? sleeper : next.wall;
    bool comes =
        engine->options.clock_at == 0 || next.wall <= now.wall; /* a clock that stands still reaches no deadline */
    if (next.wall != INT64_MAX && comes) {
        int64_t span = next.wall > now.wall ? next.wall - now.wall : 0;
        span = span < WALL_LOOK ? span : WALL_LOOK;
        if (now.mono + span < mono) {
            mono = now.mono + span;
        }
    }
    if (engine->held_since != 0 && engine->held_since + HOLD_BACK < mono) {
        mono = engine->held_since + HOLD_BACK;
    }
    return (hf_instant){mono};
}

static void take_completion(hf_engine *engine, hf_store_request *request, hf_clock now)
{
    hf_assert(engine->requests_out > 0); /* engine-L1: only this thread counts them */
    engine->requests_out--;
    if (request == &engine->checkpoint) {
        engine->checkpointing = false;
        if (request->status == HF_ERR_STORE) {
            hf_core_break(engine->core, HF_ERR_STORE, "a checkpoint failed: %s", request->op.message);
        }
        return;
    }
    hf_core_done(engine->core, request, now);
}

static void take_cancel(hf_engine *engine, const hf_engine_post *item, hf_clock now)
{
    if (hf_skip_cancel(engine, item->number)) {
        return;
    }
    hf_call *call = engine->stopped == HF_OK ? hf_core_find_call(engine->core, item->number) : NULL;
    bool is_taken = call == NULL || hf_core_cancel(engine->core, call, now);
    hf_assert(is_taken); /* engine-L4: no step has more posts than the core takes cancels */
}

static void take_post(hf_engine *engine, hf_engine_post *item, hf_clock now)
{
    switch (item->kind) {
    case HF_POST_CANCEL:
        if (item->number > engine->calls_taken) { /* its call comes in a later portion */
            hf_list_push_back(&engine->cancels_early, &item->link);
            engine->early_count++;
            return;
        }
        take_cancel(engine, item, now);
        break;
    case HF_POST_UNWANTED:
    case HF_POST_LEFT:
    case HF_POST_LOST:
        if (engine->stopped == HF_OK) {
            hf_str token = hf_str_of_len(item + 1, item->token_len);
            hf_core_take_back(engine->core, token,
                              item->kind == HF_POST_LOST   ? HF_HELD_BY_LOST
                              : item->kind == HF_POST_LEFT ? HF_HELD_BY_LEFT
                                                           : HF_HELD_BY_NONE,
                              now);
            if (item->kind == HF_POST_LOST) {
                hf_loop_log_suspect(engine, token);
            }
        }
        break;
    case HF_POST_ASK:
        hf_loop_answer(engine, HF_CONTAINER(item, hf_engine_ask, post));
        return; /* the asking thread owns the memory */
    }
    engine->env->ops->release(engine->env, item, item->len);
}

static void refuse(hf_engine *engine, hf_call *call, hf_clock now)
{
    hf_assert(engine->stopped != HF_OK); /* engine-L3 */
    hf_call_set_failure(call, engine->stopped, engine->why);
    if (engine->waits && engine->try_at > now.mono) {
        call->retry_after.ns = engine->try_at - now.mono;
    }
    call->done(call);
}

/* Whether the open batch waits a moment longer, for answers to its workflow tasks. */
static bool is_held_back(hf_engine *engine, hf_clock now)
{
    if (!hf_core_is_ahead(engine->core) || hf_core_is_committing(engine->core) || engine->is_closing ||
        is_full(engine)) {
        engine->held_since = 0;
        return false;
    }
    if (engine->held_since == 0) {
        engine->held_since = now.mono;
    }
    if (now.mono - engine->held_since < HOLD_BACK) {
        return true;
    }
    engine->held_since = 0;
    return false;
}

static void commit_if_free(hf_engine *engine, hf_clock now)
{
    if (is_held_back(engine, now)) {
        return;
    }
    hf_store_request *request = hf_core_seal(engine->core, now);
    if (request == NULL) {
        return;
    }
    hf_loop_ask_store(engine, request);
    if (++engine->commits_since_checkpoint >= CHECKPOINT_COMMITS && !engine->checkpointing) {
        engine->commits_since_checkpoint = 0;
        engine->checkpointing = true;
        engine->checkpoint = (hf_store_request){.verb = HF_STORE_CHECKPOINT};
        hf_op_init(&engine->checkpoint.op);
        hf_loop_ask_store(engine, &engine->checkpoint);
    }
}

/* The rules of time zones that inputs wait for. A zone is asked for once; its file is small, and mostly in the page cache. */
static void give_zones(hf_engine *engine, hf_clock now)
{
    hf_str wanted = {0};
    while (hf_core_zone_wanted(engine->core, &wanted)) {
        hf_op op;
        hf_op_init(&op);
        hf_arena arena;
        hf_arena_init(&arena, engine->core_options.memory);
        hf_str bytes = {0};
        hf_str name = hf_arena_copy(&arena, wanted);
        if (hf_zone_read(&op, engine->env, HF_ZONE_FOLDER, name, &arena, &bytes) != HF_OK) {
            bytes = HF_STR(""); /* the call is told that there is no such zone */
        }
        hf_core_zone(engine->core, name, bytes, now);
        hf_arena_deinit(&arena);
    }
}

static void step(hf_engine *engine, hf_taken *taken)
{
    hf_clock now = clock_of(engine);
    hf_node *node = NULL;
    engine->is_closing = taken->closing;
    hf_loop_try_again(engine, now);
    while ((node = hf_list_pop_front(&taken->completions)) != NULL) {
        take_completion(engine, HF_CONTAINER(node, hf_store_request, link), now);
    }
    while (!is_full(engine) && (node = hf_list_pop_front(&taken->calls)) != NULL) {
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        hf_assert(call->number > engine->calls_taken); /* in the order in which they came */
        engine->calls_taken = call->number;
        if (engine->stopped != HF_OK) {
            refuse(engine, call, now);
        } else if (hf_method_is_of_clock(call->method) && engine->options.skips_time) {
            hf_skip_call(engine, call, now);
        } else {
            hf_core_call(engine->core, call, now);
        }
    }
    put_back(engine, taken);
    hf_list early;
    hf_list_move_all(&engine->cancels_early, &early);
    engine->early_count = 0;
    while ((node = hf_list_pop_front(&early)) != NULL || (node = hf_list_pop_front(&taken->posts)) != NULL) {
        take_post(engine, HF_CONTAINER(node, hf_engine_post, link), now);
    }
    if (engine->stopped != HF_OK) {
        return;
    }
    hf_core_tick(engine->core, now);
    give_zones(engine, now);
    hf_core_release(engine->core, now);
    if (hf_core_status(engine->core) == HF_OK) {
        commit_if_free(engine, now);
    }
    if (hf_core_status(engine->core) != HF_OK && engine->requests_out == 0) {
        hf_loop_reopen(engine, now);
    }
    if (!taken->more) {
        hf_skip_step(engine, now);
    }
}

static int64_t next_nap(const hf_engine *engine, const hf_taken *taken, bool napped)
{
    hf_assert(engine->nap >= NAP && engine->nap <= NAP_MAX);
    bool came = taken->more || !hf_list_is_empty(&taken->calls) || !hf_list_is_empty(&taken->posts) ||
                !hf_list_is_empty(&taken->completions);
    if (came || !napped) {
        return NAP;
    }
    return engine->nap < NAP_MAX ? 2 * engine->nap : NAP_MAX;
}

static void engine_main(void *arg)
{
    hf_engine *engine = arg;
    engine->nap = NAP;
    for (;;) {
        hf_clock now = clock_of(engine);
        hf_instant deadline = next_deadline(engine, now);
        bool nap = engine->stopped == HF_OK && hf_core_is_committing(engine->core);
        if (nap && deadline.ns > now.mono + engine->nap && !is_full(engine)) {
            deadline.ns = now.mono + engine->nap;
        }
        wait_for_work(engine, deadline, nap);
        hf_taken taken;
        take(engine, &taken, portion(engine, now));
        engine->nap = next_nap(engine, &taken, nap);
        step(engine, &taken);
        if (taken.closing && !taken.more && engine->requests_out == 0) {
            break; /* all decisions are committed and their callers answered */
        }
    }
    hf_list left;
    hf_spin_lock(&engine->lock);
    engine->ended = true;
    hf_list_move_all(&engine->posts, &left);
    hf_spin_unlock(&engine->lock);
    hf_node *node = NULL;
    while ((node = hf_list_pop_front(&left)) != NULL || (node = hf_list_pop_front(&engine->cancels_early)) != NULL) {
        drop_post(engine, HF_CONTAINER(node, hf_engine_post, link));
    }
    hf_skip_end(engine);
    if (engine->core != NULL) {
        hf_core_stop(engine->core, HF_ERR_CLOSED, "the service is closed");
    }
}

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

static hf_status close_engine(hf_op *op, hf_service *service)
{
    (void)op;
    hf_engine *engine = (hf_engine *)(void *)service;
    hf_env *env = engine->env;
    hf_spin_lock(&engine->lock);
    engine->closing = true;
    unlock_and_ring(engine, true);
    env->ops->thread_join(env, engine->thread);
    hf_guests_await(env, &service->guests); /* all calls are done: no guest comes any more (service-V4) */
    hf_core_free(engine->core);
    hf_store_queue_close(engine->queue);
    hf_slab_deinit(&engine->slab);
    env->ops->release(env, engine, sizeof *engine);
    return HF_OK;
}

static const hf_service_ops OPS = {submit, cancel, unwanted, close_engine, NULL};

static hf_status start(hf_op *op, hf_engine *engine)
{
    hf_env *env = engine->env;
    engine->core_options.was_left_open = engine->store->was_left_open;
    HF_TRY(env->ops->random(env, op, engine->core_options.seed, sizeof engine->core_options.seed));
    HF_TRY(hf_core_open(op, &engine->core_options, engine->store, clock_of(engine), &engine->core));
    engine->core_options.incarnation = engine->core->incarnation; /* our workers outlive a core */
    engine->core->submit = hf_loop_ask_store;
    engine->core->submit_state = engine;
    hf_loop_log_suspects(engine);
    hf_store *store = engine->store;
    engine->store = NULL; /* the queue takes it, also on failure */
    HF_TRY(hf_store_queue_open(op, env, store, &engine->queue));
    engine->store = store;
    return env->ops->thread_start(env, op, "hf-engine", STACK_LEN, engine_main, engine, &engine->thread);
}

hf_status hf_engine_open(hf_op *op, hf_env *env, hf_store *store, const hf_engine_options *options,
                         hf_service **ret_service)
{
    hf_engine *engine = env->ops->allocate(env, sizeof *engine, 0);
    if (engine == NULL) {
        hf_store_close(store);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for an engine");
    }
    memset(engine, 0, sizeof *engine);
    engine->service.ops = &OPS;
    engine->env = env;
    engine->store = store;
    if (options != NULL) {
        engine->options = *options;
    }
    hf_slab_init(&engine->slab, hf_env_memory(env));
    engine->core_options.memory = hf_slab_memory(&engine->slab);
    engine->core_options.store_memory = hf_env_memory(env);
    engine->core_options.is_strict = engine->options.is_strict;
    engine->core_options.mem_max = engine->options.mem_max;
    engine->core_options.has_retention = engine->options.has_retention;
    engine->core_options.retention = engine->options.retention;
    engine->core_options.journal_len_max = engine->options.journal_len_max;
    engine->core_options.limits.payload_len = engine->options.payload_len_max;
    engine->core_options.log = engine->options.log;
    engine->core_options.log_state = engine->options.log_state;
    hf_list_init(&engine->calls_in);
    hf_list_init(&engine->cancels_early);
    hf_list_init(&engine->posts);
    hf_list_init(&engine->completions);
    hf_skip_init(engine);
    hf_status status = start(op, engine);
    if (status != HF_OK) {
        hf_core_free(engine->core);
        if (engine->queue != NULL) {
            hf_store_queue_close(engine->queue);
        } else {
            hf_store_close(engine->store);
        }
        hf_slab_deinit(&engine->slab);
        env->ops->release(env, engine, sizeof *engine);
        return status;
    }
    engine->core_options.has_retention = false; /* a core that replaces this one takes it from its row */
    *ret_service = &engine->service;
    return HF_OK;
}
