/* hf_open: makes a service from an address.
 *
 *     caller -> guard (service/guard.h) -> engine -> store queue -> SQLite
 *                   |
 *                   +-- owner: the lock beside the file          taken first, released last
 *                   +-- admin: the socket beside the file        opened last, closed first
 *
 * Opening blocks, on the disk and on the recovery of the journal: a fiber lets a pool thread do it. The service has
 * threads of its own and does not need the runtime afterwards: it may be closed in another runtime. */
#include "open/open.h"

#include "base/fields.h"
#include "engine/engine.h"
#include "fiber/sched/wait.h"
#include "fiber/verbs.h"
#include "history/limits.h"
#include "service/guard.h"
#include "store/mem.h"

#include <holdfast/service.h>

#include <stdio.h>

enum { CLOSE_BOUND_S = 60 }; /* seconds that a canceled fiber waits for the store */

typedef struct hf_opened {
    hf_guard guard;      /* callers see its service */
    hf_env *env;         /* environment of all parts */
    hf_word *marker;     /* the guard's fork marker; owned */
    hf_service *engine;  /* the service behind the guard; owned */
    hf_file_owner owner; /* the lock that makes the file ours */
    hf_admin *admin;     /* owned; NULL = tools cannot ask this program */
    hf_log_sink log;     /* the sink that the host gave to the runtime, or log_to_env */
    void *log_state;     /* argument of log */
} hf_opened;

/* Also closes a service that was opened only in part. */
static hf_status close_opened(hf_op *op, hf_guard *guard)
{
    hf_opened *opened = HF_CONTAINER(guard, hf_opened, guard);
    hf_env *env = opened->env;
    hf_admin_close(opened->admin);
    hf_status status = opened->engine != NULL ? opened->engine->ops->close(op, opened->engine) : HF_OK;
    hf_file_owner_release(env, &opened->owner);
    if (opened->marker != NULL) {
        env->ops->fork_marker_close(env, opened->marker);
    }
    env->ops->release(env, opened, sizeof *opened);
    return status;
}

/* ---- Opening ---------------------------------------------------------------------------------------------------------- */

/* The log of a service that has no runtime, or one without a log sink of the host. The runtime's own sink would print
 * the same, but the service may outlive the runtime. */
static void log_to_env(void *state, hf_log_level level, const char *event, const char *fields)
{
    hf_env *env = state;
    if (level >= HF_LOG_WARN) {
        char line[1200];
        (void)snprintf(line, sizeof line, "holdfast %s: %s %s\n", level == HF_LOG_WARN ? "warning" : "error", event,
                       fields);
        env->ops->print(env, line);
    }
}

static hf_status reread(void *state, hf_op *op, const char *path)
{
    hf_env *env = state;
    return env->ops->file_reread(env, op, path);
}

static hf_status open_store(hf_op *op, hf_opened *opened, const hf_service_address *place, hf_store **ret_store)
{
    hf_allocator memory = hf_env_memory(opened->env);
    if (place->scheme == HF_SCHEME_MEMORY) {
        return hf_mem_store_open(op, memory, ret_store);
    }
    int64_t holder = 0;
    HF_TRY(hf_file_owner_take(op, opened->env, place->path, false, &opened->owner, &holder));
    hf_sqlite_options options = {
        .durability = place->durability,
        .cache_len = hf_service_address_shares(place).cache,
        .log_len_max = place->log_len_max,
        .reread = reread,
        .reread_state = opened->env,
    };
    return hf_sqlite_open(op, memory, place->path, &options, ret_store);
}

/* A program works without the socket (open-O3): only tools need it, and they report that it is missing. */
static void open_admin(hf_opened *opened, const hf_service_address *place)
{
    hf_op op;
    hf_op_init(&op);
    if (place->scheme == HF_SCHEME_SQLITE &&
        hf_admin_open(&op, opened->env, place->path, opened->engine, &opened->guard.service, &opened->admin) != HF_OK) {
        char fields[2 * HF_MESSAGE_LEN_MAX];
        hf_fields_format(fields, sizeof fields, "why=\"%s\"", op.message);
        opened->log(opened->log_state, HF_LOG_WARN, "admin_socket_missing", fields);
    }
}

static hf_status open_parts(hf_op *op, hf_opened *opened, const hf_service_address *place)
{
    hf_store *store = NULL;
    opened->marker = opened->env->ops->fork_marker_open(opened->env);
    if (opened->marker == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the fork marker");
    }
    opened->guard.marker = opened->marker;
    HF_TRY(open_store(op, opened, place, &store));
    hf_shares shares = hf_service_address_shares(place);
    hf_engine_options options = {
        .is_strict = true,
        .mem_max = shares.state,
        .journal_len_max = shares.journal,
        .payload_len_max = opened->guard.service.codec != NULL ? HF_CODED_LEN_MAX : 0,
        .log = opened->log,
        .log_state = opened->log_state,
    };
    HF_TRY(hf_engine_open(op, opened->env, store, &options, &opened->engine));
    opened->guard.behind = opened->engine;
    open_admin(opened, place);
    return HF_OK;
}

/* Argument and result of open_now, which may run on a pool thread. */
typedef struct opening {
    hf_runtime *runtime;      /* may be NULL */
    const hf_codec *codec;    /* may be NULL */
    hf_header_hook on_header; /* may be NULL */
    void *on_header_arg;
    hf_env *env;
    hf_service_address place;
    hf_opened *opened; /* the result; NULL = op says why there is none */
    hf_op op;
} opening;

static hf_status open_now(void *arg)
{
    opening *o = arg;
    hf_opened *opened = o->env->ops->allocate(o->env, sizeof *opened, 0);
    if (opened == NULL) {
        (void)hf_fail(&o->op, HF_ERR_NOMEM, "no memory for a service");
        return HF_OK;
    }
    bool has_log = o->runtime != NULL && o->runtime->log_state != o->runtime; /* the host gave a log sink */
    *opened = (hf_opened){
        .env = o->env,
        .log = has_log ? o->runtime->log : log_to_env,
        .log_state = has_log ? o->runtime->log_state : o->env,
    };
    hf_guard_init(&opened->guard, close_opened);
    opened->guard.service.codec = o->codec;
    opened->guard.service.on_header = o->on_header;
    opened->guard.service.on_header_arg = o->on_header_arg;
    if (open_parts(&o->op, opened, &o->place) != HF_OK) {
        hf_op ignored; /* the failure of the opening is reported, not one of the closing */
        hf_op_init(&ignored);
        (void)close_opened(&ignored, &opened->guard);
        return HF_OK;
    }
    o->opened = opened;
    return HF_OK;
}

hf_status hf_open_with(const char *address, hf_service **ret_service, const hf_open_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_open));
    HF_OPTIONS(hf_open_options, options, hf_open);
    if (address == NULL || ret_service == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_open needs an address and a place for the service");
    }
    opening o = {.runtime = options->runtime != NULL ? options->runtime : hf_runtime_current()};
    o.env = o.runtime != NULL ? o.runtime->env : hf_env_posix();
    hf_op_init(&o.op);
    const hf_codec *codec = options->codec;
    o.codec = codec;
    o.on_header = options->on_header;
    o.on_header_arg = options->on_header_arg;
    if (codec != NULL && (codec->encoding == NULL || codec->encode == NULL || codec->decode == NULL)) {
        return hf_raise(HF_ERR_MISUSE, "hf_open: a codec needs an encoding and both functions");
    }
    if (hf_service_address_parse(&o.op, address, &o.place) == HF_OK) {
        HF_TRY(hf_block(open_now, &o));
    }
    if (o.opened == NULL) {
        return hf_raise(o.op.status, "%s", o.op.message);
    }
    *ret_service = &o.opened->guard.service;
    return HF_OK;
}

/* ---- Closing ---------------------------------------------------------------------------------------------------------- */

typedef struct closing {
    hf_service *service;
    bool is_done;
    hf_op op; /* the result of the closing */
} closing;

static hf_status close_now(void *arg)
{
    closing *c = arg;
    c->is_done = true;
    (void)c->service->ops->close(&c->op, c->service);
    return HF_OK;
}

/* The service stays open. HF_AUTO drops the status, so the log has it as well. */
static hf_status refuse_to_close(const char *why)
{
    hf_runtime *rt = hf_runtime_current();
    if (rt != NULL) {
        hf_log(rt, HF_LOG_ERROR, "misuse", "verb=hf_close message=%s", why);
    } else {
        char fields[2 * HF_MESSAGE_LEN_MAX];
        hf_fields_format(fields, sizeof fields, "verb=hf_close message=%s", why);
        log_to_env(hf_env_posix(), HF_LOG_ERROR, "misuse", fields);
    }
    return hf_raise(HF_ERR_MISUSE, "%s", why);
}

/* Also works when the fiber is canceled. If no pool thread is available, the service is closed on the calling thread. */
hf_status hf_close(hf_service *service)
{
    if (service == NULL) {
        return HF_OK;
    }
    HF_TRY(HF_VERB_ALLOWED(hf_close));
    if (atomic_load(&service->workers) > 0) {
        return refuse_to_close(
            "hf_close: a worker still runs on this service: call hf_worker_stop, and wait until hf_worker_run or "
            "hf_worker_wait has returned");
    }
    int executions = atomic_load(&service->executions);
    if (executions > 0) {
        char why[HF_MESSAGE_LEN_MAX];
        (void)snprintf(why, sizeof why,
                       "hf_close: %d execution%s of this service %s not freed: call hf_execution_free first",
                       executions, executions == 1 ? "" : "s", executions == 1 ? "is" : "are");
        return refuse_to_close(why);
    }
    int updates = atomic_load(&service->updates);
    if (updates > 0) {
        char why[HF_MESSAGE_LEN_MAX];
        (void)snprintf(why, sizeof why,
                       "hf_close: %d update handle%s of this service %s not freed: call hf_update_handle_free first",
                       updates, updates == 1 ? "" : "s", updates == 1 ? "is" : "are");
        return refuse_to_close(why);
    }
    closing c = {.service = service};
    hf_op_init(&c.op);
    hf_shield *shield = NULL;
    bool on_fiber = hf_runtime_current() != NULL;
    bool is_shielded =
        on_fiber && hf_canceled() != HF_OK && hf_shield_open(hf_seconds(CLOSE_BOUND_S), &shield) == HF_OK;
    hf_status status = hf_block(close_now, &c);
    if (!c.is_done && status != HF_ERR_MISUSE) {
        (void)close_now(&c);
    }
    if (is_shielded) {
        (void)hf_shield_close(shield);
    }
    if (!c.is_done) {
        return status; /* in a child made by fork(): the service belongs to the parent */
    }
    return c.op.status == HF_OK ? HF_OK : hf_raise(c.op.status, "%s", c.op.message);
}
