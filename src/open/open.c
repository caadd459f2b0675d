/* hf_open: makes a service from an address.
 *
 *     caller -> guard (service/guard.h) -> [share] -> engine -> store queue -> SQLite
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
#include "open/share.h"
#include "service/guard.h"
#include "store/mem.h"

#include <holdfast/service.h>

#include <stdio.h>

enum { CLOSE_BOUND_S = 60 }; /* seconds that a canceled fiber waits for the store */

typedef struct hf_opened {
    hf_guard guard;                     /* callers see its service */
    hf_env *env;                        /* environment of all parts */
    hf_word *marker;                    /* the guard's fork marker; owned */
    hf_service *engine;                 /* the engine of this process, or the remote service; NULL = none; owned */
    hf_file_owner owner;                /* the lock that makes the file ours */
    hf_admin *admin;                    /* owned; NULL = tools cannot ask this program */
    hf_share *share;                    /* owner:, share=yes: behind the guard, before the engine; owned. Its thread may
                                           fill in the three above, until it is stopped */
    hf_service_address place;           /* for that */
    hf_log_sink log;                    /* the sink that the host gave to the runtime, or log_to_env */
    void *log_state;                    /* argument of log */
    bool skips_time;                    /* hf_open_skipping */
    int64_t clock_at;                   /* hf_open_standing; else 0 */
    hf_store *store;                    /* while it is opened: the store that was given; NULL = that of the address */
    const char *api_key;                /* while it is opened; borrowed */
    char namespace_[HF_ID_LEN_MAX + 1]; /* for calls that name none; empty = "default" */
} hf_opened;

/* The socket, the engine and the lock, in this order (open-O1). */
static hf_status close_parts(hf_op *op, hf_opened *opened)
{
    hf_admin_close(opened->admin);
    hf_status status = opened->engine != NULL ? opened->engine->ops->close(op, opened->engine) : HF_OK;
    hf_file_owner_release(opened->env, &opened->owner);
    opened->admin = NULL;
    opened->engine = NULL;
    return status;
}

/* Also closes a service that was opened only in part. */
static hf_status close_opened(hf_op *op, hf_guard *guard)
{
    hf_opened *opened = HF_CONTAINER(guard, hf_opened, guard);
    hf_env *env = opened->env;
    if (opened->share != NULL) {
        hf_share_stop(opened->share);
    }
    hf_status status = close_parts(op, opened);
    if (opened->share != NULL) {
        hf_share_free(opened->share);
    }
    hf_store_close(opened->store);
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
    if (opened->store != NULL) {
        *ret_store = opened->store;
        opened->store = NULL; /* the engine takes it */
        return HF_OK;
    }
    if (place->scheme == HF_SCHEME_MEMORY) {
        return hf_mem_store_open(op, memory, NULL, ret_store);
    }
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

/* The lock is taken (open-O1). */
static hf_status open_engine(hf_op *op, hf_opened *opened, const hf_service_address *place)
{
    hf_store *store = NULL;
    HF_TRY(open_store(op, opened, place, &store));
    hf_shares shares = hf_service_address_shares(place);
    hf_engine_options options = {
        .has_retention = place->has_retention,
        .retention = place->retention,
        .is_strict = !opened->skips_time, /* users' tests register nothing */
        .skips_time = opened->skips_time,
        .clock_at = opened->clock_at,
        .mem_max = shares.state,
        .journal_len_max = shares.journal,
        .payload_len_max = opened->guard.service.codec != NULL ? HF_CODED_LEN_MAX : 0,
        .log = opened->log,
        .log_state = opened->log_state,
    };
    return hf_engine_open(op, opened->env, store, &options, &opened->engine);
}

static hf_status take_file(hf_op *op, hf_opened *opened, const hf_service_address *place)
{
    int64_t holder = 0;
    return place->scheme == HF_SCHEME_SQLITE && opened->store == NULL
               ? hf_file_owner_take(op, opened->env, place->path, false, &opened->owner, &holder)
               : HF_OK;
}

/* The owner has gone: this process takes its place, if no other one has. On the thread of the share. */
static hf_status become_owner(void *state, hf_op *op, hf_service **ret_engine)
{
    hf_opened *opened = state;
    HF_TRY(take_file(op, opened, &opened->place));
    hf_status status = open_engine(op, opened, &opened->place);
    if (status != HF_OK) {
        hf_op ignored;
        hf_op_init(&ignored);
        (void)close_parts(&ignored, opened);
        return status != HF_ERR_EXISTS ? status : HF_ERR_STORE; /* EXISTS would mean that there is an owner */
    }
    open_admin(opened, &opened->place);
    *ret_engine = opened->engine;
    return HF_OK;
}

/* owner:PATH, or sqlite:PATH?share=yes: this process is the owner, or asks it. */
static hf_status open_shared(hf_op *op, hf_opened *opened, const hf_service_address *place)
{
    hf_share_options options = {.path = place->path, .log = opened->log, .log_state = opened->log_state};
    opened->place = *place;
    opened->place.namespace_ = (hf_str){0}; /* it points into the caller's text */
    if (place->scheme == HF_SCHEME_SQLITE) {
        options.become = become_owner;
        options.become_state = opened;
        hf_op tried;
        hf_op_init(&tried);
        hf_status status = become_owner(opened, &tried, &options.local);
        if (status != HF_OK && status != HF_ERR_EXISTS) {
            return hf_fail(op, status, "%s", tried.message);
        }
    }
    HF_TRY(hf_share_open(op, opened->env, &options, &opened->share));
    opened->guard.behind = hf_share_service(opened->share);
    return HF_OK;
}

static hf_status open_parts(hf_op *op, hf_opened *opened, const hf_service_address *place)
{
    opened->marker = opened->env->ops->fork_marker_open(opened->env);
    if (opened->marker == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the fork marker");
    }
    opened->guard.marker = opened->marker;
    if (place->scheme == HF_SCHEME_REMOTE) {
        HF_TRY(
            hf_open_remote(op, opened->env, place, opened->api_key, opened->log, opened->log_state, &opened->engine));
        opened->api_key = NULL; /* the caller's: it was copied */
        opened->guard.behind = opened->engine;
        opened->guard.service.is_foreign = opened->engine->is_foreign;
        return HF_OK;
    }
    if (place->scheme == HF_SCHEME_OWNER || place->is_shared) {
        return open_shared(op, opened, place);
    }
    HF_TRY(take_file(op, opened, place));
    HF_TRY(open_engine(op, opened, place));
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
    const char *api_key; /* may be NULL */
    hf_env *env;
    hf_service_address place;
    bool skips_time;   /* hf_open_skipping */
    int64_t clock_at;  /* hf_open_standing; else 0 */
    hf_store *store;   /* hf_open_standing; else NULL */
    hf_opened *opened; /* the result; NULL = op says why there is none */
    hf_op op;
} opening;

static hf_status open_now(void *arg)
{
    opening *o = arg;
    hf_opened *opened = o->env->ops->allocate(o->env, sizeof *opened, 0);
    if (opened == NULL) {
        hf_store_close(o->store);
        (void)hf_fail(&o->op, HF_ERR_NOMEM, "no memory for a service");
        return HF_OK;
    }
    bool has_log = o->runtime != NULL && o->runtime->log_state != o->runtime; /* the host gave a log sink */
    *opened = (hf_opened){
        .env = o->env,
        .log = has_log ? o->runtime->log : log_to_env,
        .log_state = has_log ? o->runtime->log_state : o->env,
        .skips_time = o->skips_time,
        .clock_at = o->clock_at,
        .store = o->store,
        .api_key = o->api_key,
    };
    hf_guard_init(&opened->guard, close_opened);
    opened->guard.service.codec = o->codec;
    opened->guard.service.on_header = o->on_header;
    opened->guard.service.on_header_arg = o->on_header_arg;
    opened->guard.service.is_remote =
        o->place.scheme == HF_SCHEME_REMOTE || o->place.scheme == HF_SCHEME_OWNER || o->place.is_shared;
    opened->guard.service.takes_nothing_back = o->place.scheme == HF_SCHEME_REMOTE;
    if (o->place.namespace_.len > 0) {
        memcpy(opened->namespace_, o->place.namespace_.data, o->place.namespace_.len); /* the parser knows its length */
        opened->guard.service.namespace_ = opened->namespace_;
    }
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
    o.api_key = options->api_key;
    if (codec != NULL && (codec->encoding == NULL || codec->encode == NULL || codec->decode == NULL)) {
        return hf_raise(HF_ERR_MISUSE, "hf_open: a codec needs an encoding and both functions");
    }
    hf_status parsed = hf_service_address_parse(&o.op, address, &o.place);
    if (parsed == HF_OK && o.api_key != NULL && o.place.scheme != HF_SCHEME_REMOTE) {
        return hf_raise(HF_ERR_MISUSE, "hf_open: .api_key is for temporal://");
    }
    if (parsed == HF_OK) {
        HF_TRY(hf_block(open_now, &o));
    }
    if (o.opened == NULL) {
        return hf_raise(o.op.status, "%s", o.op.message);
    }
    *ret_service = &o.opened->guard.service;
    return HF_OK;
}

static hf_status open_for_tests(opening *o, hf_service **ret_service)
{
    o->place.scheme = HF_SCHEME_MEMORY;
    o->skips_time = true;
    o->env = o->runtime != NULL ? o->runtime->env : hf_env_posix();
    hf_op_init(&o->op);
    HF_TRY(hf_block(open_now, o));
    if (o->opened == NULL) {
        return hf_raise(o->op.status, "%s", o->op.message);
    }
    *ret_service = &o->opened->guard.service;
    return HF_OK;
}

hf_status hf_open_skipping(hf_service **ret_service)
{
    opening o = {.runtime = hf_runtime_current()};
    return open_for_tests(&o, ret_service);
}

hf_status hf_open_standing(hf_runtime *runtime, hf_store *store, hf_time clock_at, hf_service **ret_service)
{
    hf_assert(clock_at.ns > 0);
    opening o = {.runtime = runtime, .store = store, .clock_at = clock_at.ns};
    return open_for_tests(&o, ret_service);
}

hf_status hf_open_figures(hf_op *op, hf_service *service, hf_pb_admin_stats *ret_stats)
{
    hf_opened *opened = HF_CONTAINER(HF_CONTAINER(service, hf_guard, service), hf_opened, guard);
    hf_engine_stats stats;
    if (opened->share != NULL || opened->engine == NULL) {
        return hf_fail(op, HF_ERR_UNSUPPORTED, "the engine may be in another process");
    }
    HF_TRY(hf_engine_stats_get(op, opened->engine, false, &stats));
    *ret_stats = (hf_pb_admin_stats){
        .calls = stats.calls,
        .transitions = stats.transitions,
        .commits = stats.commits,
        .runs_in_memory = stats.runs,
        .memory_bytes = stats.mem_used,
        .reopened = stats.reopened,
    };
    hf_admin_stats_of(&stats.store, ret_stats);
    ret_stats->rows.items = NULL; /* they were not counted, and point into `stats` */
    ret_stats->rows.count = 0;
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
