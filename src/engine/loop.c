/* The loop: one thread that decides, one that commits (the store's queue), and everybody else who asks.
 *
 *     callers --submit--> inbox --+                                   +--> done: callers are answered
 *                                 v                                   |
 *               engine thread:  hf_core_call, tick --> hf_core_seal --|--> hf_core_done
 *                                                         |           |
 *               store thread:                             +-> commit -+      while it commits, the next is decided
 *
 * A batch is sealed as soon as the store is free: one input when little happens, thousands when much does. Nothing waits for
 * a timer.
 *
 * L1  The core is touched by the engine thread alone. Callers and the store thread only push to `inbox`, under its lock.
 * L2  The engine thread sleeps only after it saw the inbox empty, and says so under the lock; who pushes then rings once.
 *     While a commit is on its way nothing can be committed anyway: then it naps, and only the store (or the end of the nap)
 *     wakes it; calls gather meanwhile and cost their callers no system call.
 * L3  After a failed step the core is replaced by one opened from the store; after a commit whose outcome nobody knows the
 *     service stays stopped (D7): every call answers HF_ERR_STORE. */
#include "engine/engine.h"

#include "base/spin.h"
#include "engine/core.h"

#include <stdio.h>

enum { STACK_LEN = 512 * 1024 };

/* A checkpoint is asked for every so many commits; the store makes one when its log is long enough. */
#define CHECKPOINT_COMMITS 8

/* A batch whose workflow tasks are with workers of this process is held back for so long (ns): workflow code takes
 * microseconds, a flush hundreds of them, and an answer that comes with the batch saves one. */
#define HOLD_BACK 100000

/* Longest nap (ns) while a commit is on its way: workflow tasks that go out early wait so long for nothing. */
#define NAP 150000

/* What can be pushed. */
typedef enum hf_post_kind { HF_POST_CANCEL, HF_POST_UNWANTED, HF_POST_ASK } hf_post_kind;

typedef struct hf_post {
    hf_node link;
    hf_post_kind kind;
    hf_call *call;   /* CANCEL: an address to look for, since it may be done and gone by then */
    uint64_t number; /* CANCEL: of that call, since another one may lie at that address by then */
    size_t len;      /* of the whole allocation; UNWANTED: the token follows the struct */
    size_t token_len;
} hf_post;

/* A question that the engine thread answers to a thread that blocks. */
typedef struct hf_ask {
    hf_post post;
    hf_engine_stats *stats; /* what it wants to know */
    hf_word done;
} hf_ask;

typedef struct hf_engine {
    hf_service service; /* first */
    hf_env *env;
    hf_engine_options options;
    hf_core_options core_options;
    hf_store *store; /* the queue's; used directly only while the queue has nothing to do */
    hf_store_queue *queue;
    hf_core *core;
    hf_thread *thread;
    uint64_t reopened;
    bool is_closing;    /* what the engine thread knows of `closing` */
    int64_t held_since; /* mono ns; 0 = no batch is held back */
    unsigned commits_since_checkpoint;
    hf_store_request checkpoint;
    bool checkpointing;
    size_t requests_out; /* given to the queue and not back */
    hf_status stopped;   /* L3: HF_OK while it serves */
    char why[HF_MESSAGE_LEN_MAX];

    hf_spin lock;        /* for what follows */
    uint64_t calls;      /* submitted: their numbers */
    hf_list calls_in;    /* hf_call */
    hf_list posts;       /* hf_post */
    hf_list completions; /* hf_store_request */
    bool asleep;         /* anybody who pushes rings */
    bool napping;        /* only the store rings */
    bool closing;
    bool ended; /* nobody takes from here any more */
    hf_word word;
} hf_engine;

static hf_clock clock_of(hf_engine *engine)
{
    return (hf_clock){engine->env->ops->wall_now(engine->env).ns, engine->env->ops->now(engine->env).ns};
}

/* ---- The inbox ------------------------------------------------------------------------------------------------------- */

/* Under the lock, which it lets go. */
static void unlock_and_ring(hf_engine *engine, bool from_store)
{
    hf_env *env = engine->env;
    hf_word *word = &engine->word;
    bool ring = engine->asleep || (from_store && engine->napping);
    if (ring) {
        engine->asleep = engine->napping = false;
    }
    if (ring) {
        atomic_store(word, 1);
    }
    hf_spin_unlock(&engine->lock);
    if (ring) {
        env->ops->word_wake(env, word, 1);
    }
}

static void request_done(hf_store_request *request)
{
    hf_engine *engine = (hf_engine *)request->owner;
    hf_spin_lock(&engine->lock);
    hf_list_push_back(&engine->completions, &request->link);
    unlock_and_ring(engine, true);
}

static void submit_request(void *state, hf_store_request *request)
{
    hf_engine *engine = state;
    request->done = request_done;
    request->owner = engine;
    engine->requests_out++;
    hf_store_queue_submit(engine->queue, request);
}

static void submit(hf_service *service, hf_call *call)
{
    hf_engine *engine = (hf_engine *)(void *)service;
    hf_spin_lock(&engine->lock);
    bool closing = engine->closing;
    if (!closing) {
        call->number = ++engine->calls;
        hf_list_push_back(&engine->calls_in, &call->link);
    }
    unlock_and_ring(engine, false);
    if (closing) {
        call->status = HF_ERR_CLOSED;
        (void)snprintf(call->message, sizeof call->message, "the service is closed");
        call->done(call);
    }
}

static void drop_post(hf_engine *engine, hf_post *item)
{
    if (item->kind != HF_POST_ASK) {
        engine->env->ops->release(engine->env, item, item->len);
        return;
    }
    hf_word *word = &HF_CONTAINER(item, hf_ask, post)->done;
    atomic_store(word, 1);
    engine->env->ops->word_wake(engine->env, word, 1);
}

/* After the engine thread has ended nobody reads: then the message is dropped here. */
static void post(hf_engine *engine, hf_post *item)
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

static hf_post *new_post(hf_engine *engine, hf_post_kind kind, size_t extra)
{
    hf_post *item = engine->env->ops->allocate(engine->env, sizeof *item + extra, 0);
    if (item != NULL) {
        *item = (hf_post){.kind = kind, .len = sizeof *item + extra};
    }
    return item;
}

/* Without memory for the message the poll ends by its own deadline. */
static void cancel(hf_service *service, hf_call *call)
{
    hf_engine *engine = (hf_engine *)(void *)service;
    hf_post *item = new_post(engine, HF_POST_CANCEL, 0);
    if (item != NULL) {
        item->call = call;
        item->number = call->number;
        post(engine, item);
    }
}

/* Without memory for the message the task's timeout does the same, later. */
static void unwanted(hf_service *service, hf_str task_token)
{
    hf_engine *engine = (hf_engine *)(void *)service;
    hf_post *item = new_post(engine, HF_POST_UNWANTED, task_token.len);
    if (item != NULL) {
        memcpy(item + 1, task_token.data, task_token.len);
        item->token_len = task_token.len;
        post(engine, item);
    }
}

/* ---- The engine thread ----------------------------------------------------------------------------------------------- */

typedef struct hf_taken {
    hf_list calls;
    hf_list posts;
    hf_list completions;
    bool closing;
} hf_taken;

/* Sleeps until somebody pushes, or in a nap until the store does; not when there is something to do already. */
static void wait_for_work(hf_engine *engine, hf_instant deadline, bool nap)
{
    hf_spin_lock(&engine->lock);
    bool idle = hf_list_is_empty(&engine->completions) && !(engine->closing && engine->requests_out == 0);
    if (!nap) {
        idle = idle && hf_list_is_empty(&engine->calls_in) && hf_list_is_empty(&engine->posts);
    }
    if (idle) {
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

static void take(hf_engine *engine, hf_taken *taken)
{
    hf_spin_lock(&engine->lock);
    hf_list_move_all(&engine->calls_in, &taken->calls);
    hf_list_move_all(&engine->posts, &taken->posts);
    hf_list_move_all(&engine->completions, &taken->completions);
    taken->closing = engine->closing;
    hf_spin_unlock(&engine->lock);
}

static hf_instant next_deadline(hf_engine *engine, hf_clock now)
{
    if (engine->stopped != HF_OK || hf_core_status(engine->core) != HF_OK) {
        return HF_INSTANT_NEVER;
    }
    hf_clock next = hf_core_next(engine->core);
    int64_t mono = next.mono;
    if (next.wall != INT64_MAX) {
        int64_t span = next.wall > now.wall ? next.wall - now.wall : 0;
        if (span > INT64_C(3600) * 1000000000) {
            span = INT64_C(3600) * 1000000000; /* the wall clock may be set meanwhile */
        }
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

static void answer_ask(hf_engine *engine, hf_ask *ask)
{
    if (ask->stats != NULL && engine->core != NULL) {
        *ask->stats = (hf_engine_stats){
            .calls = engine->core->calls,
            .transitions = engine->core->transitions,
            .events = engine->core->event_total,
            .commits = engine->core->commit_durable,
            .runs = engine->core->runs.count,
            .mem_used = engine->core->used,
            .reopened = engine->reopened,
        };
    }
    hf_word *word = &ask->done;
    atomic_store(word, 1);
    engine->env->ops->word_wake(engine->env, word, 1);
}

static void take_cancel(hf_engine *engine, const hf_post *item, hf_clock now)
{
    if (engine->stopped != HF_OK) {
        return;
    }
    HF_LIST_EACH(node, &engine->core->calls_all)
    {
        hf_call *call = HF_CONTAINER(node, hf_call, all);
        if (call == item->call && call->number == item->number) {
            hf_core_cancel(engine->core, call, now);
            return;
        }
    }
}

static void take_post(hf_engine *engine, hf_post *item, hf_clock now)
{
    switch (item->kind) {
    case HF_POST_CANCEL:
        take_cancel(engine, item, now);
        break;
    case HF_POST_UNWANTED:
        if (engine->stopped == HF_OK) {
            hf_core_unwanted(engine->core, hf_str_of_len(item + 1, item->token_len), now);
        }
        break;
    case HF_POST_ASK:
        answer_ask(engine, HF_CONTAINER(item, hf_ask, post));
        return; /* its owner's memory */
    }
    engine->env->ops->release(engine->env, item, item->len);
}

static void refuse(hf_engine *engine, hf_call *call)
{
    call->status = engine->stopped;
    (void)snprintf(call->message, sizeof call->message, "%s", engine->why);
    call->done(call);
}

/* A batch is complete when the store can take it. */
/* Its answers may still come in time. */
static bool is_held_back(hf_engine *engine, hf_clock now)
{
    if (engine->core->ahead == 0 || engine->core->committing || engine->is_closing) {
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
    submit_request(engine, request);
    if (++engine->commits_since_checkpoint >= CHECKPOINT_COMMITS && !engine->checkpointing) {
        engine->commits_since_checkpoint = 0;
        engine->checkpointing = true;
        engine->checkpoint = (hf_store_request){.verb = HF_STORE_CHECKPOINT};
        hf_op_init(&engine->checkpoint.op);
        submit_request(engine, &engine->checkpoint);
    }
}

static void log_reopen(hf_engine *engine, const char *event)
{
    if (engine->options.log != NULL) {
        char fields[HF_MESSAGE_LEN_MAX + 32];
        (void)snprintf(fields, sizeof fields, "why=\"%s\"", engine->why);
        engine->options.log(engine->options.log_state, HF_LOG_WARN, event, fields);
    }
}

/* The store as seen while a core is opened again: through the queue, where tools may have requests as well. */
typedef struct hf_proxy {
    hf_store store;
    hf_engine *engine;
    hf_word done;
} hf_proxy;

static void proxy_done(hf_store_request *request)
{
    hf_proxy *proxy = request->owner;
    hf_env *env = proxy->engine->env;
    hf_word *word = &proxy->done;
    atomic_store(word, 1);
    env->ops->word_wake(env, word, 1);
}

static hf_status proxy_execute(hf_store *store, hf_store_request *request)
{
    hf_proxy *proxy = (hf_proxy *)(void *)store;
    request->owner = proxy;
    request->done = proxy_done;
    atomic_store(&proxy->done, 0);
    hf_store_queue_submit(proxy->engine->queue, request);
    while (atomic_load(&proxy->done) == 0) {
        (void)proxy->engine->env->ops->word_wait(proxy->engine->env, &proxy->done, 0, HF_INSTANT_NEVER);
    }
    return request->status;
}

static uint64_t proxy_last_commit(hf_store *store)
{
    const hf_proxy *proxy = (const hf_proxy *)(const void *)store;
    return proxy->engine->store->ops->last_commit(proxy->engine->store);
}

static void proxy_close(hf_store *store)
{
    (void)store;
}

static const hf_store_ops PROXY_OPS = {
    .name = "proxy",
    .execute = proxy_execute,
    .last_commit = proxy_last_commit,
    .close = proxy_close,
};

/* L3. All requests of the core are back. */
static void reopen(hf_engine *engine, hf_clock now)
{
    hf_core *broken = engine->core;
    hf_status status = hf_core_status(broken);
    (void)snprintf(engine->why, sizeof engine->why, "%s", broken->why);
    hf_core_stop(broken, status, broken->why);
    hf_core_free(broken);
    engine->core = NULL;
    if (status != HF_ERR_STORE) {
        hf_op op;
        hf_op_init(&op);
        hf_proxy proxy = {.store = {&PROXY_OPS}, .engine = engine};
        status =
            engine->env->ops->random(engine->env, &op, engine->core_options.seed, sizeof engine->core_options.seed);
        status = status != HF_OK ? status : hf_core_open(&op, &engine->core_options, &proxy.store, now, &engine->core);
        if (status == HF_OK) {
            engine->core->submit = submit_request;
            engine->core->submit_state = engine;
            engine->reopened++;
            log_reopen(engine, "engine_reopened");
            return;
        }
        (void)snprintf(engine->why, sizeof engine->why, "%s", op.message);
    }
    engine->stopped = HF_ERR_STORE;
    log_reopen(engine, "engine_stopped");
}

static void step(hf_engine *engine, hf_taken *taken)
{
    hf_clock now = clock_of(engine);
    hf_node *node = NULL;
    engine->is_closing = taken->closing;
    while ((node = hf_list_pop_front(&taken->completions)) != NULL) {
        take_completion(engine, HF_CONTAINER(node, hf_store_request, link), now);
    }
    while ((node = hf_list_pop_front(&taken->calls)) != NULL) {
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        if (engine->stopped != HF_OK) {
            refuse(engine, call);
        } else {
            hf_core_call(engine->core, call, now);
        }
    }
    while ((node = hf_list_pop_front(&taken->posts)) != NULL) {
        take_post(engine, HF_CONTAINER(node, hf_post, link), now);
    }
    if (engine->stopped != HF_OK) {
        return;
    }
    hf_core_tick(engine->core, now);
    hf_core_release(engine->core);
    if (hf_core_status(engine->core) == HF_OK) {
        commit_if_free(engine, now);
    }
    if (hf_core_status(engine->core) != HF_OK && engine->requests_out == 0) {
        reopen(engine, now);
    }
}

static void engine_main(void *arg)
{
    hf_engine *engine = arg;
    for (;;) {
        hf_clock now = clock_of(engine);
        hf_instant deadline = next_deadline(engine, now);
        bool nap = engine->stopped == HF_OK && engine->core->committing;
        if (nap && deadline.ns > now.mono + NAP) {
            deadline.ns = now.mono + NAP;
        }
        wait_for_work(engine, deadline, nap);
        hf_taken taken;
        take(engine, &taken);
        step(engine, &taken);
        if (taken.closing && engine->requests_out == 0) {
            break; /* what was decided has been committed, and its callers told */
        }
    }
    hf_list left;
    hf_spin_lock(&engine->lock);
    engine->ended = true;
    hf_list_move_all(&engine->posts, &left);
    hf_spin_unlock(&engine->lock);
    hf_node *node = NULL;
    while ((node = hf_list_pop_front(&left)) != NULL) {
        drop_post(engine, HF_CONTAINER(node, hf_post, link));
    }
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
    hf_core_free(engine->core);
    hf_store_queue_close(engine->queue);
    env->ops->release(env, engine, sizeof *engine);
    return HF_OK;
}

static const hf_service_ops OPS = {submit, cancel, unwanted, close_engine};

static hf_status start(hf_op *op, hf_engine *engine)
{
    hf_env *env = engine->env;
    HF_TRY(env->ops->random(env, op, engine->core_options.seed, sizeof engine->core_options.seed));
    HF_TRY(hf_core_open(op, &engine->core_options, engine->store, clock_of(engine), &engine->core));
    engine->core_options.incarnation = engine->core->incarnation; /* our workers outlive a core */
    engine->core->submit = submit_request;
    engine->core->submit_state = engine;
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
    engine->core_options.memory = hf_env_memory(env);
    engine->core_options.mem_max = engine->options.mem_max;
    engine->core_options.journal_len_max = engine->options.journal_len_max;
    hf_list_init(&engine->calls_in);
    hf_list_init(&engine->posts);
    hf_list_init(&engine->completions);
    hf_status status = start(op, engine);
    if (status != HF_OK) {
        hf_core_free(engine->core);
        if (engine->queue != NULL) {
            hf_store_queue_close(engine->queue);
        } else {
            hf_store_close(engine->store);
        }
        env->ops->release(env, engine, sizeof *engine);
        return status;
    }
    *ret_service = &engine->service;
    return HF_OK;
}

/* ---- Questions from threads that block -------------------------------------------------------------------------------- */

static void wait_for(hf_engine *engine, hf_word *word)
{
    while (atomic_load(word) == 0) {
        (void)engine->env->ops->word_wait(engine->env, word, 0, HF_INSTANT_NEVER);
    }
}

typedef struct hf_direct {
    hf_store_request request;
    hf_word done;
    hf_env *env;
} hf_direct;

static void direct_done(hf_store_request *request)
{
    hf_direct *direct = HF_CONTAINER(request, hf_direct, request);
    hf_env *env = direct->env;
    hf_word *word = &direct->done;
    atomic_store(word, 1);
    env->ops->word_wake(env, word, 1);
}

/* Between two commits: the queue takes requests in order. */
static hf_status ask_store(hf_op *op, hf_engine *engine, hf_direct *direct)
{
    direct->env = engine->env;
    direct->request.done = direct_done;
    atomic_store(&direct->done, 0);
    hf_op_init(&direct->request.op);
    hf_store_queue_submit(engine->queue, &direct->request);
    wait_for(engine, &direct->done);
    return direct->request.status == HF_OK ? HF_OK
                                           : hf_fail(op, direct->request.status, "%s", direct->request.op.message);
}

hf_status hf_engine_stats_get(hf_op *op, hf_service *service, bool count_rows, hf_engine_stats *ret_stats)
{
    hf_engine *engine = (hf_engine *)(void *)service;
    *ret_stats = (hf_engine_stats){0};
    hf_ask ask = {.post = {.kind = HF_POST_ASK}, .stats = ret_stats};
    post(engine, &ask.post);
    wait_for(engine, &ask.done);
    hf_direct direct = {.request = {.verb = HF_STORE_STATS, .force = count_rows}};
    HF_TRY(ask_store(op, engine, &direct));
    ret_stats->store = direct.request.stats;
    return HF_OK;
}

hf_status hf_engine_backup(hf_op *op, hf_service *service, const char *path, bool (*step_fn)(void *state), void *state)
{
    hf_engine *engine = (hf_engine *)(void *)service;
    hf_direct direct = {.request = {.verb = HF_STORE_BACKUP, .path = path}};
    do {
        HF_TRY(ask_store(op, engine, &direct));
        if (direct.request.more && step_fn != NULL && !step_fn(state)) {
            return hf_fail(op, HF_ERR_CANCELED, "the backup to %s was given up; the file there is not complete", path);
        }
    } while (direct.request.more);
    return HF_OK;
}
