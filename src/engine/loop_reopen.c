/* The core is broken: another one is opened from the store, on the engine thread (engine-L3 in loop.c).
 *
 * If the opening fails for a reason that may pass, lack of memory above all, calls are answered with HF_ERR_UNAVAILABLE (HF_ERR_FULL for
 * a full disk), and the opening is tried again after a pause that grows. The same happens if cores break one after the other soon
 * after they were opened: then the cause (a full disk that due timers have to be written to, a page that cannot be read) is still
 * there. A cause that does not pass by itself, such as a damaged store or one that does not know the outcome of a commit, stops the
 * service until the file is opened anew. */
#include "engine/loop_private.h"

#include "base/fields.h"
#include "base/status.h"

#include <stdio.h>

#define PAUSE_FIRST INT64_C(10000000) /* ns before the second try */
#define PAUSE_MAX INT64_C(1000000000) /* ns: calls fail at most this much longer than the cause lasts */

/* How many cores in a row that break within PAUSE_MAX are replaced without a pause: on a full disk every call may break a core, and
 * calls should succeed as soon as there is room. */
enum { BROKEN_SOON_MAX = 64 };

static void log_reopen(hf_engine *engine, const char *event)
{
    if (engine->options.log != NULL) {
        char fields[2 * HF_MESSAGE_LEN_MAX];
        hf_fields_format(fields, sizeof fields, "why=\"%s\"", engine->why);
        engine->options.log(engine->options.log_state, HF_LOG_WARN, event, fields);
    }
}

/* The store as seen while a core is opened again: through the queue, where tools may have requests as well. */
typedef struct hf_proxy {
    hf_store store;
    hf_engine *engine;
    hf_latch done;
} hf_proxy;

static void proxy_done(hf_store_request *request)
{
    hf_proxy *proxy = request->owner;
    hf_latch_open(proxy->engine->env, &proxy->done);
}

static hf_status proxy_execute(hf_store *store, hf_store_request *request)
{
    hf_proxy *proxy = (hf_proxy *)(void *)store;
    request->owner = proxy;
    request->done = proxy_done;
    hf_latch_shut(&proxy->done);
    hf_store_queue_submit(proxy->engine->queue, request);
    hf_latch_wait(proxy->engine->env, &proxy->done);
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

static hf_status open_core(hf_op *op, hf_engine *engine, hf_clock now)
{
    hf_proxy proxy = {.store = {.ops = &PROXY_OPS}, .engine = engine};
    HF_TRY(engine->env->ops->random(engine->env, op, engine->core_options.seed, sizeof engine->core_options.seed));
    HF_TRY(hf_core_open(op, &engine->core_options, &proxy.store, now, &engine->core));
    engine->core->submit = hf_loop_ask_store;
    engine->core->submit_state = engine;
    return HF_OK;
}

static void wait_a_while(hf_engine *engine, hf_clock now, hf_status status, const char *why)
{
    bool first = engine->try_pause == 0;
    char said[HF_MESSAGE_LEN_MAX];
    (void)snprintf(said, sizeof said, "the service is being restarted, try again: %.400s", why);
    memcpy(engine->why, said, sizeof said); /* `why` may point into engine->why */
    engine->stopped = status == HF_ERR_FULL ? HF_ERR_FULL : HF_ERR_UNAVAILABLE;
    engine->waits = true;
    engine->try_pause = first ? PAUSE_FIRST : engine->try_pause * 2;
    engine->try_pause = engine->try_pause < PAUSE_MAX ? engine->try_pause : PAUSE_MAX;
    engine->try_at = now.mono + engine->try_pause;
    if (first) {
        log_reopen(engine, "engine_waits");
    }
}

static void try_open(hf_engine *engine, hf_clock now)
{
    hf_op op;
    hf_op_init(&op);
    engine->waits = false;
    hf_status status = open_core(&op, engine, now);
    if (status == HF_OK) {
        engine->stopped = HF_OK;
        engine->opened_at = now.mono;
        engine->reopened++;
        log_reopen(engine, "engine_reopened");
        return;
    }
    if (!hf_status_may_pass(status)) {
        (void)snprintf(engine->why, sizeof engine->why, "%s", op.message);
        engine->stopped = HF_ERR_STORE;
        log_reopen(engine, "engine_stopped");
        return;
    }
    wait_a_while(engine, now, status, op.message);
}

void hf_loop_reopen(hf_engine *engine, hf_clock now)
{
    hf_assert(engine->requests_out == 0 && hf_core_status(engine->core) != HF_OK); /* engine-L3 */
    hf_core *broken = engine->core;
    hf_status status = hf_core_status(broken);
    (void)snprintf(engine->why, sizeof engine->why, "%s", broken->why);
    hf_core_stop(broken, status, broken->why);
    hf_core_free(broken);
    engine->core = NULL;
    if (status == HF_ERR_STORE) {
        engine->stopped = HF_ERR_STORE;
        log_reopen(engine, "engine_stopped");
        return;
    }
    bool soon = engine->opened_at != 0 && now.mono - engine->opened_at < PAUSE_MAX;
    engine->broken_soon = soon ? engine->broken_soon + 1 : 0;
    if (engine->broken_soon < BROKEN_SOON_MAX) {
        engine->try_pause = 0;
        try_open(engine, now);
    } else {
        wait_a_while(engine, now, status, engine->why);
    }
}

void hf_loop_try_again(hf_engine *engine, hf_clock now)
{
    if (engine->waits && now.mono >= engine->try_at && !engine->is_closing) {
        try_open(engine, now);
    }
}

hf_instant hf_loop_next_try(const hf_engine *engine)
{
    return engine->waits ? (hf_instant){engine->try_at} : HF_INSTANT_NEVER;
}
