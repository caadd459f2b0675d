/* The table of verbs (src/fiber/verbs.def) says the truth: each verb is called in each place that exists today, and
 * answers as its row says. "misuse" means HF_ERR_MISUSE with a sentence; "works" and "blocks" mean anything else. */
#include "base/limits.h"
#include "depot/fetching.h"
#include "fiber/crew/crew.h"
#include "unit/fiber/bodies.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- What the calls act on ------------------------------------------------------------------- */

/* Made and freed in the place where the call happens, except for a hook and after fork(): there by who owns the scope.
 * What a call frees it sets to NULL. */
typedef struct things {
    hf_runtime *rt; /* for makers on a plain thread; NULL on a fiber */
    hf_scope *scope;
    hf_scope *work; /* of the flight */
    hf_branch *job;
    hf_shield *shield;
    hf_chan *chan; /* capacity 2, one value in it */
    hf_mutex *mutex;
    hf_mutex *held; /* locked by who made the things */
    hf_sem *sem;    /* 4 permits */
    hf_cond *cond;
    hf_once *once;
    hf_value *value;
    hf_keylock *keys;
    hf_key_guard *guard;
    hf_flight *flight;
    hf_cache *cache;
    hf_flow *flow;
    hf_collector *collector;
    hf_dispatcher *pool;
    hf_listener *listener;
    hf_conn *conn; /* connected to listener */
    hf_conn *peer;
    hf_file *file;
    hf_os_signals *signals;
    hf_process *process;
    hf_service *service;
    hf_execution *execution;  /* runs, and nobody works on it */
    hf_update_handle *update; /* it has no such update */
    hf_worker *worker;
    hf_depot *depot;
    hf_watcher *watcher;   /* has an event */
    hf_depot_write *write; /* is sent at once */
    hf_pages *pages;
    hf_reply reply;
    int fds[2];
    char path[40];
} things;

static hf_status quick(void *arg)
{
    (void)arg;
    return HF_OK;
}

static hf_status quick_value(void *arg, hf_value **ret_value)
{
    (void)arg;
    return hf_value_copy("v", 1, ret_value);
}

static hf_status take_item(void *ctx, const void *value)
{
    (void)ctx;
    (void)value;
    return HF_OK;
}

/* Some things are dear, or cannot be made twice: only for the verbs that need them. */
typedef enum need { PLAIN, NETWORK, A_FILE, SIGNALS, A_PROCESS, A_SHIELD, A_SERVICE, A_DEPOT } need;

static hf_status fetch_value(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    hf_page_item item = {hf_depot_key_of("ns", "type", "written"), NULL};
    return strcmp(request->key.type, "pages") == 0 ? hf_reply_page(reply, &item, 1) : hf_reply_value(reply, "v", 1);
}

static hf_status push_nothing(void *state, const hf_push_request *request, hf_reply *reply)
{
    (void)state;
    (void)request;
    (void)reply;
    return HF_OK;
}

static hf_status apply_patch(void *state, const hf_value *value, const void *patch, size_t len, hf_value **ret_value)
{
    (void)state;
    (void)value;
    return hf_value_copy(patch, len, ret_value);
}

static hf_status encode_copy(void *state, const hf_value *object, hf_value **ret_bytes)
{
    (void)state;
    return hf_value_copy(hf_value_data(object), hf_value_len(object), ret_bytes);
}

static hf_depot_key written_key(void)
{
    return hf_depot_key_of("ns", "type", "written");
}

static hf_status make_depot(things *t)
{
    HF_TRY(hf_depot_open("depot", &t->depot, .runtime = t->rt, .fetch = fetch_value, .push = push_nothing,
                         .apply = apply_patch, .encode = encode_copy, .coalesce = HF_SPAN_OFF));
    HF_TRY(hf_depot_put(t->depot, written_key(), "x", 1, .ret_write = &t->write));
    HF_TRY(hf_depot_watch(t->depot, written_key(), &t->watcher));
    static const hf_depot_key ASKED = {"ns", "type", "~", 1};
    HF_TRY(hf_pages_open(t->depot, hf_depot_key_of("ns", "pages", "query"), &t->pages));
    hf_reply_init(&t->reply, t->rt != NULL ? t->rt : hf_runtime_current(), 100);
    t->reply.asked = &ASKED;
    t->reply.takes_records = true;
    return HF_OK;
}

static hf_status make_io(things *t, need what)
{
    static const int NUMBERS[] = {SIGUSR2};
    static const char *const ARGV[] = {"/bin/sleep", "100", NULL};
    if (what == NETWORK) {
        HF_TRY(hf_listener_open("tcp:127.0.0.1:0", &t->listener, .runtime = t->rt));
        HF_TRY(hf_conn_open(hf_listener_address(t->listener), &t->conn, .runtime = t->rt));
        HF_TRY(hf_listener_accept(t->listener, &t->peer));
        HF_TRY(hf_conn_write(t->peer, "hello", 5));
    } else if (what == A_FILE) {
        HF_TRY(hf_file_open(t->path, HF_FILE_WRITE, &t->file, .runtime = t->rt));
    } else if (what == SIGNALS) {
        HF_TRY(hf_os_signals_open(NUMBERS, 1, &t->signals, .runtime = t->rt));
    } else if (what == A_PROCESS) {
        HF_TRY(hf_process_start(ARGV, &t->process, .runtime = t->rt, .in = HF_STDIO_PIPE));
    }
    return HF_OK;
}

/* What a workflow may not make itself. */
static hf_status make_outside(things *t, need what)
{
    (void)snprintf(t->path, sizeof t->path, "/tmp/holdfast_verbs_%d", (int)getpid());
    HF_TRY(pipe(t->fds) == 0 ? HF_OK : HF_ERR_LIMIT);
    HF_TRY(write(t->fds[1], "x", 1) == 1 ? HF_OK : HF_ERR_IO);
    HF_TRY(hf_scope_open(&t->work, .runtime = t->rt, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_value_copy("value", 5, &t->value));
    HF_TRY(hf_flight_new(&t->flight, .scope = t->work));
    HF_TRY(hf_cache_new(&t->cache, .runtime = t->rt));
    HF_TRY(hf_cache_put(t->cache, "k", 1, t->value, NULL));
    HF_TRY(hf_pool_new(&t->pool, .runtime = t->rt));
    if (what == A_SERVICE) {
        HF_TRY(hf_open("memory:", &t->service, .runtime = t->rt));
        HF_TRY(hf_start(t->service, "type", hf_payload_none(), &t->execution));
        HF_TRY(hf_update_handle_new(t->execution, "id", &t->update));
        HF_TRY(hf_worker_new(t->service, "queue", &t->worker, .runtime = t->rt));
        HF_TRY(hf_worker_stop(t->worker));
    } else if (what == A_DEPOT) {
        HF_TRY(make_depot(t));
    }
    return make_io(t, what);
}

static hf_status make_inside(things *t, need what)
{
    HF_TRY(hf_chan_new(1, &t->chan, .capacity = 2, .runtime = t->rt));
    HF_TRY(hf_chan_send(t->chan, "a"));
    HF_TRY(hf_mutex_new(&t->mutex, .runtime = t->rt));
    HF_TRY(hf_mutex_new(&t->held, .runtime = t->rt));
    HF_TRY(hf_mutex_lock(t->held));
    HF_TRY(hf_sem_new(4, &t->sem, .runtime = t->rt));
    HF_TRY(hf_cond_new(&t->cond, .runtime = t->rt));
    HF_TRY(hf_once_new(&t->once, .runtime = t->rt));
    HF_TRY(hf_keylock_new(&t->keys, .runtime = t->rt));
    HF_TRY(hf_keylock_lock(t->keys, "held", 4, &t->guard));
    HF_TRY(hf_flow_new(1, &t->flow, .runtime = t->rt));
    HF_TRY(hf_collector_open(t->flow, &t->collector, .mode = HF_FLOW_CONFLATE));
    HF_TRY(hf_flow_emit(t->flow, "e"));
    HF_TRY(hf_scope_open(&t->scope, .runtime = t->rt));
    HF_TRY(hf_fork(t->scope, quick, NULL, .ret_branch = &t->job));
    return what == A_SHIELD ? hf_shield_open(hf_seconds(10), &t->shield) : HF_OK;
}

static hf_status make_things(things *t, need what)
{
    HF_TRY(make_outside(t, what));
    return make_inside(t, what);
}

static void free_io(things *t)
{
    HF_CHECK(t->process == NULL || hf_process_close(t->process) == HF_OK);
    HF_CHECK(t->signals == NULL || hf_os_signals_close(t->signals) == HF_OK);
    HF_CHECK(t->file == NULL || hf_file_close(t->file) == HF_OK);
    HF_CHECK(t->peer == NULL || hf_conn_close(t->peer) == HF_OK);
    HF_CHECK(t->conn == NULL || hf_conn_close(t->conn) == HF_OK);
    HF_CHECK(t->listener == NULL || hf_listener_close(t->listener) == HF_OK);
    (void)unlink(t->path);
    (void)close(t->fds[0]);
    (void)close(t->fds[1]);
}

static void free_inside(things *t)
{
    HF_CHECK(hf_shield_close(t->shield) == HF_OK);
    HF_CHECK(hf_scope_close(t->scope) == HF_OK);
    HF_CHECK(t->collector == NULL || hf_collector_close(t->collector) == HF_OK);
    HF_CHECK(hf_flow_free(t->flow) == HF_OK);
    HF_CHECK(t->guard == NULL || hf_key_unlock(t->guard) == HF_OK);
    HF_CHECK(hf_keylock_free(t->keys) == HF_OK);
    HF_CHECK(hf_once_free(t->once) == HF_OK);
    HF_CHECK(hf_cond_free(t->cond) == HF_OK);
    HF_CHECK(hf_sem_free(t->sem) == HF_OK);
    HF_CHECK(t->held == NULL || hf_mutex_unlock(t->held) == HF_OK);
    HF_CHECK(hf_mutex_free(t->held) == HF_OK);
    HF_CHECK(hf_mutex_free(t->mutex) == HF_OK);
    HF_CHECK(hf_chan_free(t->chan) == HF_OK);
}

static void free_outside(things *t)
{
    free_io(t);
    HF_CHECK(hf_watcher_close(t->watcher) == HF_OK);
    HF_CHECK(hf_pages_close(t->pages) == HF_OK);
    hf_depot_write_free(t->write);
    HF_CHECK(hf_depot_close(t->depot) == HF_OK);
    hf_reply_clear(&t->reply);
    HF_CHECK(hf_worker_free(t->worker) == HF_OK);
    hf_update_handle_free(t->update);
    hf_execution_free(t->execution);
    HF_CHECK(hf_close(t->service) == HF_OK);
    HF_CHECK(hf_dispatcher_free(t->pool) == HF_OK);
    HF_CHECK(hf_cache_free(t->cache) == HF_OK);
    HF_CHECK(hf_flight_free(t->flight) == HF_OK);
    hf_value_unref(t->value);
    HF_CHECK(hf_scope_close(t->work) == HF_OK);
}

static void free_things(things *t)
{
    free_inside(t);
    free_outside(t);
}

/* ---- One call per verb ----------------------------------------------------------------------- */

/* A call that frees what it is given: then it is gone. */
#define CALL_FREE(verb, member)                         \
    static hf_status call_##verb(things *t)             \
    {                                                   \
        hf_status status = verb(t->member);             \
        t->member = status == HF_OK ? NULL : t->member; \
        return status;                                  \
    }
/* A call that makes something, with its arguments, among them &made: it is freed again at once. */
#define CALL_NEW(verb, type, release, ...)    \
    static hf_status call_##verb(things *t)   \
    {                                         \
        type *made = NULL;                    \
        hf_status status = verb(__VA_ARGS__); \
        (void)t;                              \
        if (made != NULL) {                   \
            (void)release(made);              \
        }                                     \
        return status;                        \
    }
#define CALL(verb, expression)              \
    static hf_status call_##verb(things *t) \
    {                                       \
        (void)t;                            \
        return (expression);                \
    }
#define LOOK(verb, expression)              \
    static hf_status call_##verb(things *t) \
    {                                       \
        (void)t;                            \
        (void)(expression);                 \
        return HF_OK;                       \
    }

static char byte_out;
static size_t size_out;

LOOK(hf_version, hf_version())
LOOK(hf_status_name, hf_status_name(HF_OK))
LOOK(hf_status_text, hf_status_text(HF_OK))
LOOK(hf_error, hf_error())
LOOK(hf_error_text, hf_error_text())
CALL(hf_raise, hf_raise(HF_ERR_FAILED, "raised"))
CALL(hf_raise_typed, hf_raise_typed(HF_ERR_FAILED, "Raised", "raised"))
LOOK(hf_error_find, hf_error_find("x"))
LOOK(hf_error_clear, hf_error_clear())
LOOK(hf_codec_zstd, hf_codec_zstd())
LOOK(hf_failure_kind_name, hf_failure_kind_name(HF_FAILURE_CHILD))
LOOK(hf_cause_name, hf_cause_name(HF_CAUSE_NONE))

static hf_runtime *runtime_of(things *t)
{
    return t->rt != NULL ? t->rt : hf_runtime_current();
}

/* A runtime that was made where none can be freed is freed at the end. */
static hf_runtime *left[16];
static size_t left_count;

static hf_status call_hf_runtime_new(things *t)
{
    (void)t;
    hf_runtime *made = NULL;
    hf_status status = hf_runtime_new(&made, .threads = HF_OFF);
    if (made != NULL && hf_runtime_free(made) != HF_OK && left_count < HF_COUNT_OF(left)) {
        left[left_count++] = made;
    }
    return status;
}
CALL(hf_run, hf_run(quick, NULL, .threads = HF_OFF))
LOOK(hf_runtime_current, hf_runtime_current())
LOOK(hf_runtime_fd, runtime_of(t) != NULL ? hf_runtime_fd(runtime_of(t)) : 0)
static hf_status call_hf_runtime_stats(things *t)
{
    hf_stats stats;
    return hf_runtime_stats(runtime_of(t), &stats);
}
LOOK(hf_now, hf_now(t->rt))
LOOK(hf_wall_now, hf_wall_now(t->rt))
CALL(hf_random, hf_random(t->rt, &byte_out, 1))
static char uuid_out[HF_UUID_LEN];
CALL(hf_uuid, hf_uuid(uuid_out))
LOOK(hf_note, hf_note(HF_LOG_DEBUG, "verbs_test", "number=%d", 7))
static hf_status call_hf_dump(things *t)
{
    char *text = NULL;
    hf_status status = hf_dump(t->rt, &text, .no_stacks = true);
    hf_text_free(text);
    return status;
}
static hf_status call_hf_metrics(things *t)
{
    char *text = NULL;
    hf_status status = hf_metrics(t->rt, &text);
    hf_text_free(text);
    return status;
}
static hf_status call_hf_text_free(things *t)
{
    (void)t;
    hf_text_free(NULL);
    return HF_OK;
}

CALL_NEW(hf_scope_open, hf_scope, hf_scope_close, &made, .runtime = t->rt)
CALL_FREE(hf_scope_close, scope)
CALL(hf_fork, hf_fork(t->scope, quick, NULL))
CALL(hf_join, hf_join(t->scope))
CALL(hf_scope_cancel, hf_scope_cancel(t->work))
LOOK(hf_scope_name, hf_scope_name(t->scope))
LOOK(hf_scope_tally, hf_scope_tally(t->scope))
LOOK(hf_scope_is_idle, hf_scope_is_idle(t->scope))
LOOK(hf_scope_failure, hf_scope_failure(t->scope, 0))
LOOK(hf_branch_is_done, hf_branch_is_done(t->job))
LOOK(hf_branch_status, hf_branch_status(t->job))
LOOK(hf_branch_failure, hf_branch_failure(t->job))
LOOK(hf_branch_index, hf_branch_index(t->job))
CALL(hf_branch_cancel, hf_branch_cancel(t->job))
CALL(hf_sleep, hf_sleep(hf_milliseconds(1)))
CALL(hf_sleep_until, hf_sleep_until((hf_time){1}))
CALL(hf_yield, hf_yield())
CALL(hf_canceled, hf_canceled())
static hf_status call_hf_here(things *t)
{
    (void)t;
    hf_here("here.c", 1);
    return HF_OK;
}
LOOK(hf_cancel_cause, hf_cancel_cause(NULL))
LOOK(hf_time_left, hf_time_left())
CALL_NEW(hf_shield_open, hf_shield, hf_shield_close, hf_seconds(1), &made)
CALL_FREE(hf_shield_close, shield)
static const hf_local KEY = {"key"};
CALL(hf_local_set, hf_local_set(&KEY, NULL))
LOOK(hf_local_get, hf_local_get(&KEY))

CALL_NEW(hf_chan_new, hf_chan, hf_chan_free, 1, &made, .runtime = t->rt)
CALL_FREE(hf_chan_free, chan)
CALL(hf_chan_close, hf_chan_close(t->chan))
CALL(hf_chan_send, hf_chan_send(t->chan, "b"))
CALL(hf_chan_recv, hf_chan_recv(t->chan, &byte_out))
CALL(hf_chan_try_send, hf_chan_try_send(t->chan, "b"))
CALL(hf_chan_try_recv, hf_chan_try_recv(t->chan, &byte_out))
LOOK(hf_chan_count, hf_chan_count(t->chan))
static hf_status call_hf_select(things *t)
{
    hf_case one = {.kind = HF_CASE_RECV, .chan = t->chan, .value = &byte_out};
    return hf_select(&one, 1, &size_out);
}
static hf_status call_hf_try_select(things *t)
{
    hf_case one = {.kind = HF_CASE_RECV, .chan = t->chan, .value = &byte_out};
    return hf_try_select(&one, 1, &size_out);
}

CALL_NEW(hf_mutex_new, hf_mutex, hf_mutex_free, &made, .runtime = t->rt)
CALL_FREE(hf_mutex_free, mutex)
static hf_status call_hf_mutex_lock(things *t)
{
    hf_status status = hf_mutex_lock(t->mutex);
    return status == HF_OK ? hf_mutex_unlock(t->mutex) : status;
}
static hf_status call_hf_mutex_try_lock(things *t)
{
    hf_status status = hf_mutex_try_lock(t->mutex);
    return status == HF_OK ? hf_mutex_unlock(t->mutex) : status;
}
static hf_status call_hf_mutex_unlock(things *t)
{
    hf_status status = hf_mutex_unlock(t->held);
    if (status == HF_OK) {
        HF_CHECK(hf_mutex_try_lock(t->held) == HF_OK);
    }
    return status;
}
CALL_NEW(hf_sem_new, hf_sem, hf_sem_free, 1, &made, .runtime = t->rt)
CALL_FREE(hf_sem_free, sem)
CALL(hf_sem_acquire, hf_sem_acquire(t->sem, 1))
CALL(hf_sem_try_acquire, hf_sem_try_acquire(t->sem, 1))
CALL(hf_sem_release, hf_sem_release(t->sem, 1))
CALL_NEW(hf_cond_new, hf_cond, hf_cond_free, &made, .runtime = t->rt)
CALL_FREE(hf_cond_free, cond)
CALL(hf_cond_wait, hf_cond_wait(t->cond, t->held, .timeout = hf_milliseconds(1)))
CALL(hf_cond_signal, hf_cond_signal(t->cond))
CALL(hf_cond_broadcast, hf_cond_broadcast(t->cond))
CALL_NEW(hf_once_new, hf_once, hf_once_free, &made, .runtime = t->rt)
CALL_FREE(hf_once_free, once)
CALL(hf_once_run, hf_once_run(t->once, quick, NULL))

CALL_NEW(hf_value_new, hf_value, hf_value_unref, NULL, 0, NULL, &made)
CALL_NEW(hf_value_copy, hf_value, hf_value_unref, "x", 1, &made)
static hf_status call_hf_value_ref(things *t)
{
    hf_value_unref(hf_value_ref(t->value));
    return HF_OK;
}
#define call_hf_value_unref call_hf_value_ref
LOOK(hf_value_data, hf_value_data(t->value))
LOOK(hf_value_len, hf_value_len(t->value))
CALL_NEW(hf_keylock_new, hf_keylock, hf_keylock_free, &made, .runtime = t->rt)
static hf_status call_hf_keylock_free(things *t)
{
    hf_keylock *fresh = NULL; /* the other one is held */
    hf_status status = hf_keylock_new(&fresh, .runtime = t->rt);
    return status != HF_OK ? status : hf_keylock_free(fresh);
}
static hf_status call_hf_keylock_lock(things *t)
{
    hf_key_guard *guard = NULL;
    hf_status status = hf_keylock_lock(t->keys, "free", 4, &guard);
    return status == HF_OK ? hf_key_unlock(guard) : status;
}
static hf_status call_hf_keylock_try_lock(things *t)
{
    hf_key_guard *guard = NULL;
    hf_status status = hf_keylock_try_lock(t->keys, "free", 4, &guard);
    return status == HF_OK ? hf_key_unlock(guard) : status;
}
CALL_FREE(hf_key_unlock, guard)
LOOK(hf_keylock_count, hf_keylock_count(t->keys))
CALL_NEW(hf_flight_new, hf_flight, hf_flight_free, &made, .scope = t->work)
CALL_FREE(hf_flight_free, flight)
CALL(hf_flight_run, hf_flight_run(t->flight, "f", 1, quick_value, NULL, NULL))
LOOK(hf_flight_count, hf_flight_count(t->flight))
CALL_NEW(hf_cache_new, hf_cache, hf_cache_free, &made, .runtime = t->rt)
CALL_FREE(hf_cache_free, cache)
CALL(hf_cache_put, hf_cache_put(t->cache, "l", 1, t->value, NULL))
static hf_status call_hf_cache_get(things *t)
{
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    return hf_cache_get(t->cache, "k", 1, &value);
}
static hf_status call_hf_cache_pin(things *t)
{
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    hf_status status = hf_cache_pin(t->cache, "k", 1, &value);
    return status == HF_OK ? hf_cache_unpin(t->cache, "k", 1) : status;
}
#define call_hf_cache_unpin call_hf_cache_pin
CALL(hf_cache_remove, hf_cache_remove(t->cache, "k", 1))
static hf_status call_hf_cache_stats(things *t)
{
    hf_cache_counts counts;
    return hf_cache_stats(t->cache, &counts);
}

CALL_NEW(hf_flow_new, hf_flow, hf_flow_free, 1, &made, .runtime = t->rt)
static hf_status call_hf_flow_free(things *t)
{
    hf_flow *fresh = NULL;
    hf_status status = hf_flow_new(1, &fresh, .runtime = t->rt);
    return status != HF_OK ? status : hf_flow_free(fresh);
}
CALL(hf_flow_close, hf_flow_close(t->flow))
CALL(hf_flow_emit, hf_flow_emit(t->flow, "f"))
CALL(hf_flow_collect, hf_flow_collect(t->flow, take_item, NULL, .timeout = hf_milliseconds(1)))
CALL_NEW(hf_collector_open, hf_collector, hf_collector_close, t->flow, &made)
CALL(hf_collector_next, hf_collector_next(t->collector, &byte_out))
LOOK(hf_collector_dropped, hf_collector_dropped(t->collector))
CALL_FREE(hf_collector_close, collector)

CALL_NEW(hf_pool_new, hf_dispatcher, hf_dispatcher_free, &made, .runtime = t->rt)
CALL_NEW(hf_pool_view, hf_dispatcher, hf_dispatcher_free, t->pool, &made)
CALL_NEW(hf_serial_new, hf_dispatcher, hf_dispatcher_free, &made, .runtime = t->rt)
CALL_FREE(hf_dispatcher_free, pool)
CALL(hf_block, hf_block(quick, NULL))

CALL(hf_fd_wait, hf_fd_wait(t->fds[0], HF_READABLE))
CALL(hf_fd_forget, hf_fd_forget(t->fds[0]))
CALL_NEW(hf_listener_open, hf_listener, hf_listener_close, "tcp:127.0.0.1:0", &made, .runtime = t->rt)
static hf_status call_hf_listener_accept(things *t)
{
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    return hf_listener_accept(t->listener, &conn, .timeout = hf_microseconds(1));
}
LOOK(hf_listener_address, hf_listener_address(t->listener))
CALL_FREE(hf_listener_close, listener)
CALL_NEW(hf_conn_open, hf_conn, hf_conn_close, hf_listener_address(t->listener), &made, .runtime = t->rt)
CALL(hf_conn_read, hf_conn_read(t->conn, &byte_out, 1, &size_out))
CALL(hf_conn_write, hf_conn_write(t->conn, "x", 1))
CALL(hf_conn_shutdown, hf_conn_shutdown(t->conn))
LOOK(hf_conn_peer, hf_conn_peer(t->conn))
CALL_FREE(hf_conn_close, conn)
static hf_status call_hf_resolve(things *t)
{
    char addresses[2][HF_ADDRESS_LEN_MAX];
    (void)t;
    return hf_resolve("localhost", addresses, 2, &size_out);
}
CALL_NEW(hf_file_open, hf_file, hf_file_close, t->path, HF_FILE_READ, &made, .runtime = t->rt)
CALL(hf_file_read, hf_file_read(t->file, &byte_out, 1, &size_out))
CALL(hf_file_write, hf_file_write(t->file, "x", 1))
CALL(hf_file_sync, hf_file_sync(t->file))
CALL_FREE(hf_file_close, file)
static const int SIGUSR1_ONLY[] = {SIGUSR1};
CALL_NEW(hf_os_signals_open, hf_os_signals, hf_os_signals_close, SIGUSR1_ONLY, 1, &made, .runtime = t->rt)
static int number_out;
CALL(hf_os_signals_next, hf_os_signals_next(t->signals, &number_out, .timeout = hf_microseconds(1)))
CALL_FREE(hf_os_signals_close, signals)

static const char *const TRUE_ARGV[] = {"/bin/true", NULL};
CALL_NEW(hf_process_start, hf_process, hf_process_close, TRUE_ARGV, &made, .runtime = t->rt)
LOOK(hf_process_pid, hf_process_pid(t->process))
LOOK(hf_process_in, hf_process_in(t->process))
LOOK(hf_process_out, hf_process_out(t->process))
LOOK(hf_process_err, hf_process_err(t->process))
CALL(hf_process_close_in, hf_process_close_in(t->process))
static hf_status call_hf_process_wait(things *t)
{
    hf_exit how;
    return hf_process_wait(t->process, &how, .timeout = hf_microseconds(1));
}
CALL(hf_process_kill, hf_process_kill(t->process, 0))
CALL_FREE(hf_process_close, process)
CALL_NEW(hf_sim_new, hf_env, hf_sim_free, &made, .seed = 1)

static hf_status call_hf_payload_copy(things *t)
{
    HF_AUTO(hf_payload_free) hf_payload made = hf_payload_none();
    (void)t;
    return hf_payload_copy(hf_payload_of_bytes("x", 1), &made);
}
static hf_status call_hf_payload_printf(things *t)
{
    HF_AUTO(hf_payload_free) hf_payload made = hf_payload_none();
    (void)t;
    return hf_payload_printf(&made, "%d", 1);
}
#define call_hf_payload_free call_hf_payload_copy
static hf_status call_hf_payload_list(things *t)
{
    (void)t;
    HF_AUTO(hf_payload_free) hf_payload made = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload part = hf_payload_none();
    hf_payload parts[] = {hf_payload_of_bytes("x", 1), hf_payload_of_json("1")};
    HF_TRY(hf_payload_list(parts, 2, &made));
    return hf_payload_count(made) == 2 ? hf_payload_nth(made, 1, &part) : HF_ERR_FAILED;
}
#define call_hf_payload_count call_hf_payload_list
#define call_hf_payload_nth call_hf_payload_list
static hf_status call_hf_payload_object_of(things *t)
{
    (void)t;
    HF_AUTO(hf_payload_free) hf_payload made = hf_payload_none();
    HF_TRY(hf_payload_object(&made, hf_field_int("x", 1)));
    return strcmp(made.data, "{\"x\":1}") == 0 ? HF_OK : HF_ERR_FAILED;
}
static const hf_member NUMBER[] = {{"x", HF_FIELD_INT, false, 0, sizeof(int64_t)}, HF_MEMBERS_END};
static hf_status call_hf_payload_write(things *t)
{
    (void)t;
    HF_AUTO(hf_payload_free) hf_payload made = hf_payload_none();
    int64_t number = 7;
    HF_TRY(hf_payload_write(&number, NUMBER, &made));
    number = 0;
    HF_TRY(hf_payload_read(made, NUMBER, &number));
    return number == 7 ? HF_OK : HF_ERR_FAILED;
}
#define call_hf_payload_read call_hf_payload_write
static hf_status call_hf_json_get_int(things *t)
{
    (void)t;
    hf_payload in = hf_payload_of_json("{\"n\":1,\"t\":\"x\",\"b\":true,\"a\":[1,2]}");
    int64_t number = 0;
    double real = 0;
    bool flag = false;
    size_t count = 0;
    char text[2];
    hf_json_kind kind = HF_KIND_MISSING;
    hf_payload view;
    HF_TRY(hf_json_get_int(in, "n", &number));
    HF_TRY(hf_json_get_real(in, "n", &real));
    HF_TRY(hf_json_get_bool(in, "b", &flag));
    HF_TRY(hf_json_get_count(in, "a", &count));
    HF_TRY(hf_json_get_text(in, "t", sizeof text, text));
    HF_TRY(hf_json_get_kind(in, "t", &kind));
    HF_TRY(hf_json_get_view(in, "a", &view));
    return number == 1 && real == 1 && flag && count == 2 && kind == HF_KIND_TEXT && view.len == 5 ? HF_OK
                                                                                                   : HF_ERR_FAILED;
}
#define call_hf_json_get_real call_hf_json_get_int
#define call_hf_json_get_bool call_hf_json_get_int
#define call_hf_json_get_count call_hf_json_get_int
#define call_hf_json_get_text call_hf_json_get_int
#define call_hf_json_get_kind call_hf_json_get_int
#define call_hf_json_get_view call_hf_json_get_int
static hf_status call_hf_payload_meta(things *t)
{
    (void)t;
    HF_AUTO(hf_payload_free) hf_payload value = hf_payload_none();
    return hf_payload_meta(hf_payload_of_json("1"), "encoding", &value);
}

CALL(hf_start, hf_start(t->service, "type", hf_payload_none(), NULL, .id = "other"))
static hf_status call_hf_execution_new(things *t)
{
    hf_execution *made = NULL;
    hf_status status = hf_execution_new(t->service, "id", &made);
    hf_execution_free(made);
    return status;
}
LOOK(hf_execution_id, hf_execution_id(t->execution))
LOOK(hf_execution_run_id, hf_execution_run_id(t->execution))
static hf_status call_hf_execution_free(things *t)
{
    (void)t;
    hf_execution_free(NULL);
    return HF_OK;
}
CALL(hf_result, hf_result(t->execution, NULL, .timeout = HF_SPAN_OFF))
CALL(hf_signal, hf_signal(t->execution, "signal", hf_payload_none()))
CALL(hf_start_and_signal, hf_start_and_signal(t->service, "type", hf_payload_none(), "signal", hf_payload_none(), NULL))
CALL(hf_start_and_update, hf_start_and_update(t->service, "type", hf_payload_none(), "update", hf_payload_none(), NULL,
                                              NULL, .update_timeout = HF_SPAN_OFF))
CALL(hf_query, hf_query(t->execution, "query", hf_payload_none(), NULL, .timeout = HF_SPAN_OFF))
CALL(hf_update, hf_update(t->execution, "update", hf_payload_none(), NULL, .timeout = HF_SPAN_OFF))
CALL(hf_update_start, hf_update_start(t->execution, "update", hf_payload_none(), NULL, .timeout = HF_SPAN_OFF))
static hf_status call_hf_update_handle_new(things *t)
{
    hf_update_handle *made = NULL;
    hf_status status = hf_update_handle_new(t->execution, "id", &made);
    hf_update_handle_free(made);
    return status;
}
static hf_status call_hf_update_handle_free(things *t)
{
    (void)t;
    hf_update_handle_free(NULL);
    return HF_OK;
}
LOOK(hf_update_handle_id, hf_update_handle_id(t->update))
CALL(hf_update_result, hf_update_result(t->update, NULL, .timeout = HF_SPAN_OFF))
CALL(hf_cancel, hf_cancel(t->execution))
CALL(hf_terminate, hf_terminate(t->execution))
CALL(hf_reset, hf_reset(t->execution, NULL, .point = HF_RESET_FIRST))
static bool see_run(void *arg, const hf_description *run)
{
    (void)arg;
    (void)run;
    return false;
}
static bool see_namespace(void *arg, const hf_namespace_info *info)
{
    (void)arg;
    (void)info;
    return false;
}
static bool see_attribute(void *arg, const char *name, hf_search_attribute_type type, bool is_custom)
{
    (void)arg;
    (void)name;
    (void)type;
    (void)is_custom;
    return false;
}
static hf_status call_hf_count(things *t)
{
    hf_counts counts;
    return hf_count(t->service, &counts);
}
CALL(hf_list, hf_list(t->service, see_run, NULL))
static bool see_record(void *arg, const hf_stream_record *record)
{
    (void)arg;
    (void)record;
    return false;
}
static bool see_change(void *arg, const hf_run_change *change)
{
    (void)arg;
    (void)change;
    return false;
}
static hf_status call_hf_stream_read(things *t)
{
    int64_t cursor = 0;
    return hf_stream_read(t->execution, &cursor, see_record, NULL, .timeout = HF_SPAN_OFF);
}
static hf_status call_hf_changes_read(things *t)
{
    hf_payload cursor = hf_payload_none();
    hf_status status = hf_changes_read(t->service, &cursor, see_change, NULL, .timeout = HF_SPAN_OFF);
    hf_payload_free(&cursor);
    return status;
}
static hf_status call_hf_history(things *t)
{
    hf_payload history = hf_payload_none();
    hf_status status = hf_history(t->execution, &history);
    hf_payload_free(&history);
    return status;
}
CALL(hf_namespace_register, hf_namespace_register(t->service, "default"))
CALL(hf_namespace_update, hf_namespace_update(t->service, "none", .description = "d"))
static hf_status call_hf_namespace_describe(things *t)
{
    hf_namespace_info *info = NULL;
    return hf_namespace_describe(t->service, "none", &info);
}
static hf_status call_hf_namespace_info_free(things *t)
{
    (void)t;
    hf_namespace_info_free(NULL);
    return HF_OK;
}
CALL(hf_namespace_keep, hf_namespace_keep(t->service, "none", hf_days(1)))
CALL(hf_namespace_deprecate, hf_namespace_deprecate(t->service, "none"))
CALL(hf_namespace_delete, hf_namespace_delete(t->service, "none"))
CALL(hf_namespace_list, hf_namespace_list(t->service, see_namespace, NULL))
CALL(hf_search_attribute_add, hf_search_attribute_add(t->service, "RunId", HF_SEARCH_KEYWORD))
CALL(hf_search_attribute_remove, hf_search_attribute_remove(t->service, "None"))
CALL(hf_search_attribute_list, hf_search_attribute_list(t->service, see_attribute, NULL))
static bool see_batch(void *arg, const hf_batch_info *info)
{
    (void)arg;
    (void)info;
    return true;
}
static hf_status call_hf_batch_describe(things *t)
{
    hf_batch_info info;
    return hf_batch_describe(t->service, "none", &info);
}
CALL(hf_delete, hf_delete(t->execution))
CALL(hf_batch_start, hf_batch_start(t->service, "none", HF_BATCH_CANCEL, .query = "RunId = 'none'"))
CALL(hf_batch_stop, hf_batch_stop(t->service, "none"))
CALL(hf_batch_list, hf_batch_list(t->service, see_batch, NULL))
LOOK(hf_search_attribute_type_name, hf_search_attribute_type_name(HF_SEARCH_INT))
static hf_status call_hf_describe(things *t)
{
    hf_description *made = NULL;
    hf_status status = hf_describe(t->execution, &made);
    hf_description_free(made);
    return status;
}
static hf_status call_hf_description_free(things *t)
{
    (void)t;
    hf_description_free(NULL);
    return HF_OK;
}
LOOK(hf_workflow_status_name, hf_workflow_status_name(HF_WORKFLOW_RUNNING))
LOOK(hf_workflow_id, hf_workflow_id())
LOOK(hf_handler_name, hf_handler_name())
LOOK(hf_update_id, hf_update_id())
LOOK(hf_workflow_info, hf_workflow_info())
LOOK(hf_workflow_scope, hf_workflow_scope())
LOOK(hf_workflow_run_id, hf_workflow_run_id())
LOOK(hf_activity_info, hf_activity_info())
LOOK(hf_activity_arg, hf_activity_arg())
CALL(hf_answer, hf_answer(t->service, hf_answer_to_id("no workflow", "1"), hf_payload_none()))
CALL(hf_answer_failed, hf_answer_failed(t->service, hf_answer_to_id("no workflow", "1"), "message"))
CALL(hf_answer_canceled, hf_answer_canceled(t->service, hf_answer_to_id("no workflow", "1"), hf_payload_none()))
CALL(hf_answer_heartbeat, hf_answer_heartbeat(t->service, hf_answer_to_id("no workflow", "1"), hf_payload_none(), NULL))
LOOK(hf_activity_cancel_why, hf_activity_cancel_why())
static hf_status call_hf_worker_new(things *t)
{
    hf_worker *made = NULL;
    hf_status status = hf_worker_new(t->service, "queue", &made, .runtime = t->rt);
    return status == HF_OK ? hf_worker_free(made) : status;
}
static hf_status no_function(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return HF_OK;
}
CALL(hf_worker_add_workflow, hf_worker_add_workflow(t->worker, "name", no_function))
CALL(hf_worker_add_activity, hf_worker_add_activity(t->worker, "name", no_function))
static const char *const PROGRAM[] = {"true", NULL};
CALL(hf_worker_add_command, hf_worker_add_command(t->worker, "name", PROGRAM))
CALL(hf_worker_run, hf_worker_run(t->worker))
CALL(hf_worker_start, hf_worker_start(t->worker))
static hf_status call_hf_worker_wait(things *t)
{
    HF_TRY(hf_worker_start(t->worker));
    return hf_worker_wait(t->worker);
}
CALL(hf_worker_stop, hf_worker_stop(t->worker))
static hf_status call_hf_worker_stat(things *t)
{
    hf_worker_stats all;
    return hf_worker_stat(t->worker, &all);
}
LOOK(hf_guard_applies, hf_guard_applies())
static hf_status call_hf_guard_refuse(things *t)
{
    (void)t;
    hf_guard_refuse("outside of a worker's workflows nothing happens");
    return HF_OK;
}
LOOK(hf_worker_health_name, hf_worker_health_name(HF_WORKER_READY))
CALL_FREE(hf_worker_free, worker)

static hf_status call_hf_depot_query(things *t)
{
    (void)t;
    static const hf_depot_term TERMS[] = {{"name", "value"}};
    hf_depot_query_id id;
    return hf_depot_query(TERMS, 1, &id);
}
CALL_NEW(hf_depot_open, hf_depot, hf_depot_close, "fresh", &made, .runtime = t->rt)
static hf_status call_hf_depot_close(things *t)
{
    hf_depot *fresh = NULL; /* scopes were opened since the other one was */
    hf_status status = hf_depot_open("fresh", &fresh, .runtime = t->rt);
    return status == HF_OK ? hf_depot_close(fresh) : hf_depot_close(t->depot);
}
/* Of a key that is not in memory, whose answer needs no permission. */
static hf_status call_hf_depot_get(things *t)
{
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    return hf_depot_get(t->depot, hf_depot_key_of("ns", "type", "fetched"), &value);
}
static hf_status call_hf_depot_get_many(things *t)
{
    hf_depot_key key = hf_depot_key_of("ns", "type", "fetched with others");
    hf_depot_result result = {.value = NULL};
    hf_status status = hf_depot_get_many(t->depot, &key, 1, &result);
    hf_value_unref(status == HF_OK ? result.value : NULL);
    return status;
}
CALL(hf_depot_prefetch, hf_depot_prefetch(t->depot, hf_depot_key_of("ns", "type", "fetched")))
CALL(hf_depot_put, hf_depot_put(t->depot, written_key(), "y", 1))
static hf_status call_hf_depot_put_value(things *t)
{
    HF_AUTO(hf_value_unref) hf_value *object = NULL;
    HF_IGNORE(hf_value_copy("y", 1, &object));
    return hf_depot_put_value(t->depot, written_key(), object);
}
CALL(hf_depot_patch, hf_depot_patch(t->depot, written_key(), "y", 1))
CALL(hf_depot_delete, hf_depot_delete(t->depot, written_key()))
static hf_status call_hf_depot_create(things *t)
{
    hf_depot_id id;
    return hf_depot_create(t->depot, hf_depot_key_of("ns", "type", NULL), "y", 1, &id);
}
static hf_status call_hf_depot_write_key(things *t)
{
    hf_depot_id id;
    return hf_depot_write_key(t->write, &id);
}
CALL(hf_depot_write_wait, hf_depot_write_wait(t->write))
static hf_status call_hf_depot_write_free(things *t)
{
    hf_depot_write_free(t->write);
    t->write = NULL;
    return HF_OK;
}
CALL(hf_depot_invalidate, hf_depot_invalidate(t->depot, written_key()))
CALL(hf_depot_invalidate_namespace, hf_depot_invalidate_namespace(t->depot, "ns"))
CALL(hf_depot_invalidate_all, hf_depot_invalidate_all(t->depot))
CALL(hf_depot_changed, hf_depot_changed(t->depot, written_key()))
CALL(hf_depot_trim, hf_depot_trim(t->depot, 0))
CALL(hf_depot_online, hf_depot_online(t->depot, false))
static hf_status call_hf_depot_stat(things *t)
{
    hf_depot_counts counts;
    return hf_depot_stat(t->depot, &counts);
}
static bool see_write(void *arg, const hf_depot_pending_write *write)
{
    (void)arg;
    (void)write;
    return true;
}
CALL_NEW(hf_depot_events, hf_collector, hf_collector_close, t->depot, &made)
LOOK(hf_depot_news_name, hf_depot_news_name(HF_NEWS_SENT))
CALL(hf_depot_pending, hf_depot_pending(t->depot, see_write, NULL))
CALL(hf_depot_retry, hf_depot_retry(t->depot, 1000))
CALL(hf_depot_drop, hf_depot_drop(t->depot, 1000))
static hf_status call_hf_depot_memo(things *t)
{
    hf_memo memo = hf_depot_memo(t->depot, .ttl = hf_seconds(1));
    return memo.state == t->depot ? HF_OK : HF_ERR_MISUSE;
}
static hf_status call_hf_depot_drive(things *t)
{
    hf_service *service = NULL;
    if (hf_open("memory:", &service, .runtime = t->rt) != HF_OK) { /* refused here, and so is the other */
        return hf_depot_drive(t->depot, (hf_service *)(void *)t);
    }
    hf_status status = hf_depot_drive(t->depot, service);
    HF_CHECK(hf_depot_undrive(t->depot) == HF_OK);
    HF_CHECK(hf_close(service) == HF_OK);
    return status;
}
CALL(hf_depot_undrive, hf_depot_undrive(t->depot))
CALL_NEW(hf_depot_watch, hf_watcher, hf_watcher_close, t->depot, written_key(), &made)
static hf_status call_hf_watcher_next(things *t)
{
    hf_depot_event event = {.value = NULL};
    hf_status status = hf_watcher_next(t->watcher, &event);
    hf_value_unref(event.value);
    return status;
}
LOOK(hf_watcher_dropped, hf_watcher_dropped(t->watcher))
CALL_FREE(hf_watcher_close, watcher)
static hf_status call_hf_depot_list_pack(things *t)
{
    (void)t;
    hf_depot_key key = written_key();
    HF_AUTO(hf_value_unref) hf_value *list = NULL;
    return hf_depot_list_pack(&key, 1, &list);
}
static bool see_key(void *arg, hf_depot_key key)
{
    (void)arg;
    (void)key;
    return true;
}
CALL(hf_depot_list_keys, hf_depot_list_keys(NULL, see_key, t))
static hf_status call_hf_depot_list(things *t)
{
    HF_AUTO(hf_items_free) hf_items *items = NULL;
    return hf_depot_list(t->depot, hf_depot_key_of("ns", "pages", "query"), &items);
}
CALL_NEW(hf_depot_list_watch, hf_watcher, hf_watcher_close, t->depot, written_key(), &made)
LOOK(hf_items_count, hf_items_count(NULL))
LOOK(hf_items_at, hf_items_at(NULL, 0) == NULL)
static hf_status call_hf_items_free(things *t)
{
    (void)t;
    hf_items_free(NULL);
    return HF_OK;
}
CALL_NEW(hf_pages_open, hf_pages, hf_pages_close, t->depot, hf_depot_key_of("ns", "pages", "query"), &made)
CALL(hf_pages_load, hf_pages_load(t->pages, HF_PAGE_APPEND))
static hf_status call_hf_pages_look(things *t)
{
    hf_pages_view view = {.items = NULL};
    hf_status status = hf_pages_look(t->pages, &view);
    hf_items_free(view.items);
    return status;
}
static hf_status call_hf_pages_next(things *t)
{
    hf_pages_view view = {.items = NULL};
    hf_status status = hf_pages_next(t->pages, &view);
    hf_items_free(view.items);
    return status;
}
CALL_FREE(hf_pages_close, pages)
static hf_status call_hf_reply_page(things *t)
{
    hf_page_item item = {written_key(), NULL};
    return hf_reply_page(&t->reply, &item, 1);
}
static hf_status call_hf_reply_list(things *t)
{
    hf_depot_key key = written_key();
    return hf_reply_list(&t->reply, &key, 1);
}
CALL(hf_reply_add, hf_reply_add(&t->reply, written_key(), "v", 1))
CALL(hf_reply_value, hf_reply_value(&t->reply, "v", 1))
CALL(hf_reply_not_modified, hf_reply_not_modified(&t->reply))
CALL(hf_reply_etag, hf_reply_etag(&t->reply, "etag"))
CALL(hf_reply_last_modified, hf_reply_last_modified(&t->reply, "yesterday"))
CALL(hf_reply_revision, hf_reply_revision(&t->reply, 7))
CALL(hf_reply_key, hf_reply_key(&t->reply, written_key()))
CALL(hf_reply_max_age, hf_reply_max_age(&t->reply, hf_seconds(1)))
CALL(hf_reply_fail, hf_reply_fail(&t->reply, HF_REPLY_NETWORK))

/* Not called here: they would end the process or the runtime around them, or need a source's emitter or an environment
 * of their own, a file, or a worker's workflow or activity around them. What the table says of hf_runtime_free and
 * hf_runtime_turn is in runtime_test.c, of hf_testenv_* in unit/trial, of the last ones in unit/worker and sim/worker_*. */
#define call_hf_die NULL
#define call_hf_reply_emit NULL /* needs a subscriber: unit/depot/subscribe_test.c */
#define call_hf_testenv_new NULL
#define call_hf_testenv_free NULL
#define call_hf_testenv_worker NULL
#define call_hf_testenv_service NULL
#define call_hf_testenv_activity NULL
#define call_hf_testenv_start NULL
#define call_hf_testenv_result NULL
#define call_hf_testenv_run NULL
#define call_hf_testenv_pass NULL
#define call_hf_testenv_now NULL
#define call_hf_runtime_free NULL
#define call_hf_runtime_stop NULL
#define call_hf_runtime_turn NULL
#define call_hf_emit NULL
#define call_hf_sim_free NULL
#define call_hf_sim_trace_hash NULL
#define call_hf_sim_steps NULL
#define call_hf_sim_file_put NULL
#define call_hf_sim_file_get NULL
#define call_hf_sim_restart NULL
#define call_hf_sim_raise NULL
#define call_hf_open NULL
#define call_hf_close NULL
#define call_hf_activity_run NULL
#define call_hf_activity_run_local NULL
#define call_hf_side_effect NULL
#define call_hf_fork_activity NULL
#define call_hf_signal_wait NULL
#define call_hf_signal_wait_any NULL
#define call_hf_signal_try NULL
#define call_hf_child_run NULL
#define call_hf_child_start NULL
#define call_hf_fork_child NULL
#define call_hf_external_signal NULL
#define call_hf_external_cancel NULL
#define call_hf_on_signal NULL
#define call_hf_on_query NULL
#define call_hf_on_update NULL
#define call_hf_handlers_wait NULL
#define call_hf_until_begin NULL
#define call_hf_until_next NULL
#define call_hf_until_end NULL
#define call_hf_memo_set_of NULL
#define call_hf_search_set_of NULL
#define call_hf_memo_get NULL
#define call_hf_search_get NULL
#define call_hf_saga_open NULL
#define call_hf_saga_add NULL
#define call_hf_saga_commit NULL
#define call_hf_saga_undo NULL
#define call_hf_saga_close NULL
#define call_hf_patched NULL
#define call_hf_patch_deprecate NULL
#define call_hf_continue_as_new NULL
#define call_hf_workflow_fail NULL
#define call_hf_workflow_alloc NULL
#define call_hf_publish NULL
#define call_hf_activity_heartbeat NULL
#define call_hf_activity_fail NULL
#define call_hf_activity_token NULL
#define call_hf_header_get NULL
#define call_hf_header_of_signal NULL
#define call_hf_header_put NULL
#define call_hf_header_forward NULL

/* ---- The table ------------------------------------------------------------------------------- */

typedef enum answer { works, blocks, durable, misuse } answer;
enum place { FIBER, WORKFLOW, HANDLER, QUERY, ACTIVITY, FOREIGN, FORKED, HOOK, PLACES };

typedef struct verb {
    const char *name;
    hf_status (*call)(things *t);
    answer answers[PLACES];
} verb;

static const verb VERBS[] = {
#define HF_VERBS(header, title)
#define HF_VERB(verb, ...) {#verb, call_##verb, {__VA_ARGS__}},
#include "fiber/verbs.def"
};
enum { VERB_COUNT = sizeof VERBS / sizeof *VERBS };

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static need need_of(const verb *v)
{
    if (starts_with(v->name, "hf_listener_") || starts_with(v->name, "hf_conn_")) {
        return NETWORK;
    }
    if (starts_with(v->name, "hf_file_")) {
        return A_FILE;
    }
    if (starts_with(v->name, "hf_os_signals_next") || starts_with(v->name, "hf_os_signals_close")) {
        return SIGNALS;
    }
    if (starts_with(v->name, "hf_process_") && strcmp(v->name, "hf_process_start") != 0) {
        return A_PROCESS;
    }
    if (starts_with(v->name, "hf_pages_") || starts_with(v->name, "hf_depot_") || starts_with(v->name, "hf_watcher_") ||
        starts_with(v->name, "hf_reply_")) {
        return A_DEPOT;
    }
    static const char *const OF_SERVICE[] = {
        "hf_start",   "hf_execution_", "hf_result", "hf_signal",   "hf_cancel",  "hf_terminate", "hf_worker_",
        "hf_query",   "hf_update",     "hf_reset",  "hf_describe", "hf_list",    "hf_count",     "hf_namespace_",
        "hf_search_", "hf_answer",     "hf_delete", "hf_batch_",   "hf_stream_", "hf_changes_",  "hf_history"};
    for (size_t i = 0; i < sizeof OF_SERVICE / sizeof *OF_SERVICE; i++) {
        if (starts_with(v->name, OF_SERVICE[i])) {
            return A_SERVICE;
        }
    }
    return strcmp(v->name, "hf_shield_close") == 0 ? A_SHIELD : PLAIN;
}

static void compare(const verb *v, enum place place, hf_status status, bool has_text)
{
    static const char *const PLACE_NAMES[] = {"a fiber",  "a workflow",       "",      "", "an activity",
                                              "a thread", "a forked process", "a hook"};
    bool is_misuse = status == HF_ERR_MISUSE;
    bool should_be = v->answers[place] == misuse;
    HF_CHECK_SAY(is_misuse == should_be, "%s in %s gave %s, the table says %s", v->name, PLACE_NAMES[place],
                 hf_status_name(status), should_be ? "misuse" : "otherwise");
    HF_CHECK_SAY(!is_misuse || has_text, "%s in %s was refused without a sentence", v->name, PLACE_NAMES[place]);
}

static hf_status call_and_compare(const verb *v, enum place place, things *t)
{
    hf_status status = v->call(t);
    compare(v, place, status, hf_error_text()[0] != '\0');
    return status;
}

/* ---- Fiber, activity, thread ----------------------------------------------------------------- */

static hf_status in_place(const verb *v, enum place place, hf_runtime *rt)
{
    things t = {.rt = rt};
    hf_status status = make_things(&t, need_of(v));
    HF_CHECK_SAY(status == HF_OK, "%s cannot be prepared: %s", v->name, hf_error_text());
    if (status == HF_OK) {
        (void)call_and_compare(v, place, &t);
        free_things(&t);
    }
    return status;
}

static hf_status one_on_fiber(void *arg)
{
    return in_place(arg, FIBER, NULL);
}

static hf_status one_on_activity(void *arg)
{
    return in_place(arg, ACTIVITY, NULL);
}

static hf_status each_on(hf_body body, hf_dispatcher *on)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = VERBS[i].name));
        if (VERBS[i].call != NULL) {
            HF_TRY(hf_fork(scope, body, (void *)(uintptr_t)&VERBS[i], .name = VERBS[i].name, .on = on));
        }
        HF_TRY(hf_join(scope));
    }
    return HF_OK;
}

static hf_status on_fibers(void *arg)
{
    (void)arg;
    return each_on(one_on_fiber, NULL);
}

static hf_status on_activities(void *arg)
{
    (void)arg;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_TRY(hf_pool_new(&pool, .name = "activities"));
    return each_on(one_on_activity, pool);
}

static void run_body(hf_body body)
{
    for (int threads = 1; threads <= 2; threads++) {
        hf_status status = hf_run(body, NULL, .threads = threads, .log = bodies_log);
        HF_CHECK_SAY(status == HF_OK, "%s: %s", hf_status_name(status), hf_error_text());
    }
}

static void every_verb_answers_on_a_fiber_as_the_table_says(void **state)
{
    (void)state;
    run_body(on_fibers);
}

static void every_verb_answers_in_an_activity_as_the_table_says(void **state)
{
    (void)state;
    run_body(on_activities);
}

static void every_verb_answers_on_a_foreign_thread_as_the_table_says(void **state)
{
    (void)state;
    hf_runtime *rt = NULL;
    assert_int_equal(hf_runtime_new(&rt, .threads = 2, .log = bodies_log), HF_OK);
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (VERBS[i].call != NULL) {
            (void)in_place(&VERBS[i], FOREIGN, rt);
        }
    }
    HF_CHECK(hf_runtime_free(rt) == HF_OK);
}

/* ---- Workflow ---------------------------------------------------------------------------------- */

/* A crew is what a workflow runs on: the worker adds nothing to what its fibers may do. */
typedef struct play {
    const verb *verb;
    things t;
    hf_crew_timer *timers[8];
    size_t timer_count;
} play;

static hf_status play_timer_start(void *state, hf_crew_timer *timer, hf_span span)
{
    play *p = state;
    (void)span;
    timer->id = p->timer_count;
    p->timers[p->timer_count++] = timer;
    return HF_OK;
}

static void play_timer_cancel(void *state, hf_crew_timer *timer)
{
    play *p = state;
    p->timers[timer->id] = NULL;
}

static const hf_crew_ops PLAY_OPS = {play_timer_start, play_timer_cancel, NULL, NULL, NULL};

static hf_status one_in_workflow(void *arg)
{
    play *p = arg;
    hf_status status = make_inside(&p->t, need_of(p->verb));
    HF_CHECK_SAY(status == HF_OK, "%s cannot be prepared: %s", p->verb->name, hf_error_text());
    if (status == HF_OK) {
        (void)call_and_compare(p->verb, WORKFLOW, &p->t);
        free_inside(&p->t);
    }
    return status;
}

static void play_on(hf_crew *crew, play *p)
{
    hf_crew_turn(crew);
    for (size_t i = 0; i < p->timer_count && !hf_crew_is_over(crew); i++) {
        if (p->timers[i] != NULL) {
            hf_crew_fire(crew, p->timers[i]);
            hf_crew_turn(crew);
        }
    }
    HF_CHECK_SAY(hf_crew_is_over(crew), "%s does not end in a workflow", p->verb->name);
}

static hf_status in_workflows(void *arg)
{
    (void)arg;
    hf_op op;
    for (size_t i = 0; i < VERB_COUNT; i++) {
        play p = {.verb = &VERBS[i]};
        hf_crew *crew = NULL;
        if (VERBS[i].call == NULL) {
            continue;
        }
        HF_TRY(make_outside(&p.t, need_of(p.verb)));
        HF_TRY(hf_crew_open(&op, &crew, &(hf_crew_options){VERBS[i].name, &PLAY_OPS, &p, 1}));
        HF_TRY(hf_crew_fork(&op, crew, one_in_workflow, &p, VERBS[i].name));
        play_on(crew, &p);
        hf_crew_close(crew);
        free_outside(&p.t);
    }
    return HF_OK;
}

static void every_verb_answers_in_a_workflow_as_the_table_says(void **state)
{
    (void)state;
    run_body(in_workflows);
}

/* ---- A workflow that was evicted ------------------------------------------------------------------ */

/* What counts there, and is refused. */
typedef enum how { uncounted, refused, tries, looks } how;

static how how_of(const char *name)
{
    static const struct {
        const char *name;
        how how;
    } COUNTED[] = {
#undef HF_VERB
#define HF_VERB(verb, ...)
#define HF_COUNTED(verb, how) {#verb, how},
#include "fiber/verbs.def"
    };
    for (size_t i = 0; i < sizeof COUNTED / sizeof *COUNTED; i++) {
        if (strcmp(COUNTED[i].name, name) == 0) {
            return COUNTED[i].how;
        }
    }
    return uncounted;
}

/* As the calls above, where these would succeed. */
static hf_status try_held_mutex(things *t)
{
    return hf_mutex_try_lock(t->held);
}

static hf_status try_held_key(things *t)
{
    hf_key_guard *guard = NULL;
    return hf_keylock_try_lock(t->keys, "held", 4, &guard);
}

static hf_status (*call_of(const verb *v))(things *t)
{
    if (strcmp(v->name, "hf_mutex_try_lock") == 0) {
        return try_held_mutex;
    }
    return strcmp(v->name, "hf_keylock_try_lock") == 0 ? try_held_key : v->call;
}

static hf_status doze(void *arg)
{
    (void)arg;
    return hf_sleep(hf_hours(1));
}

enum { CALLS = HF_EVICTED_CALLS_MAX + 100 }; /* some of them may succeed at first */

static hf_status one_evicted(void *arg)
{
    play *p = arg;
    how expected = how_of(p->verb->name);
    HF_TRY(make_inside(&p->t, need_of(p->verb)));
    HF_TRY(hf_fork(p->t.scope, doze, NULL, .ret_branch = &p->t.job)); /* runs again after this one */
    HF_CHECK(hf_sleep(hf_hours(1)) == HF_ERR_EVICTED);
    for (int i = 0; i < CALLS; i++) {
        hf_status status = call_of(p->verb)(&p->t);
        HF_CHECK_SAY(expected != refused || status == HF_ERR_EVICTED, "%s on an evicted fiber gave %s", p->verb->name,
                     hf_status_name(status));
    }
    HF_CHECK_SAY(expected == uncounted, "%s may be called for ever by an evicted fiber", p->verb->name);
    free_inside(&p->t);
    return HF_OK;
}

static hf_status when_evicted(void *arg)
{
    (void)arg;
    hf_op op;
    for (size_t i = 0; i < VERB_COUNT; i++) {
        play p = {.verb = &VERBS[i]};
        hf_crew *crew = NULL;
        hf_stats before;
        hf_stats after;
        if (VERBS[i].call == NULL) {
            continue;
        }
        HF_TRY(hf_runtime_stats(NULL, &before));
        HF_TRY(make_outside(&p.t, need_of(p.verb)));
        HF_TRY(hf_crew_open(&op, &crew, &(hf_crew_options){VERBS[i].name, &PLAY_OPS, &p, 1}));
        HF_TRY(hf_crew_fork(&op, crew, one_evicted, &p, VERBS[i].name));
        hf_crew_turn(crew);
        hf_crew_close(crew);
        free_outside(&p.t);
        HF_TRY(hf_runtime_stats(NULL, &after));
        bool is_stranded = after.stranded > before.stranded;
        HF_CHECK_SAY(is_stranded == (how_of(VERBS[i].name) != uncounted), "%s: an evicted fiber that calls it %s",
                     VERBS[i].name, is_stranded ? "was stranded" : "was not stranded");
    }
    return HF_OK;
}

static void every_verb_counts_in_an_evicted_workflow_as_the_table_says(void **state)
{
    (void)state;
    run_body(when_evicted);
}

static void what_may_wait_in_a_workflow_is_refused_or_releases_something(void **state)
{
    (void)state;
    for (size_t i = 0; i < VERB_COUNT; i++) {
        const char *name = VERBS[i].name;
        bool releases = strcmp(name, "hf_scope_close") == 0 || strcmp(name, "hf_collector_close") == 0 ||
                        strcmp(name, "hf_saga_close") == 0;
        HF_CHECK_SAY(VERBS[i].answers[WORKFLOW] != durable || releases || how_of(name) == refused,
                     "%s may wait in a workflow, and is not refused when that is evicted", name);
    }
}

/* ---- After fork() ---------------------------------------------------------------------------- */

enum { WITH_TEXT = 64 }; /* added to the status, which then is the child's exit code; statuses are below it */

static int answer_of_child(const verb *v, things *t)
{
    (void)alarm(600); /* a call that hangs ends here */
    hf_status status = v->call(t);
    return (int)status + (hf_error_text()[0] != '\0' ? WITH_TEXT : 0);
}

static void after_fork_one(const verb *v, hf_runtime *rt)
{
    things t = {.rt = rt};
    bool is_inside = strcmp(v->name, "hf_runtime_new") != 0 && strcmp(v->name, "hf_run") != 0; /* as the docs say */
    if (is_inside && !HF_CHECK(make_things(&t, need_of(v)) == HF_OK)) {
        return;
    }
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        _exit(answer_of_child(v, &t));
    }
    int code = 0;
    HF_CHECK(waitpid(child, &code, 0) == child);
    if (HF_CHECK_SAY(WIFEXITED(code), "%s ended a forked process by signal %d", v->name, WTERMSIG(code))) {
        compare(v, FORKED, (hf_status)(WEXITSTATUS(code) % WITH_TEXT), WEXITSTATUS(code) >= WITH_TEXT);
    }
    if (is_inside) {
        free_things(&t);
    }
}

static void every_verb_answers_after_fork_as_the_table_says(void **state)
{
    (void)state;
    hf_runtime *rt = NULL;
    assert_int_equal(hf_runtime_new(&rt, .threads = 1, .log = bodies_log), HF_OK);
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (VERBS[i].call != NULL) {
            after_fork_one(&VERBS[i], rt);
        }
    }
    HF_CHECK(hf_runtime_free(rt) == HF_OK);
}

/* ---- Hooks ----------------------------------------------------------------------------------- */

typedef struct hooked {
    const verb *verb;
    things t;
    bool has_run;
} hooked;

static hf_verdict call_in_hook(const hf_tally *tally, const hf_outcome *outcome)
{
    hooked *h = tally->state;
    if (outcome != NULL && !h->has_run) {
        h->has_run = true;
        (void)call_and_compare(h->verb, HOOK, &h->t);
    }
    return HF_GO_ON;
}

static const hf_join_hooks CALLING = {.name = "calling", .on_done = call_in_hook};

static hf_status one_in_hook(const verb *v)
{
    hooked h = {.verb = v};
    HF_TRY(make_things(&h.t, need_of(v)));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = hf_join_policy_of(&CALLING, 0, &h)));
        HF_TRY(hf_fork(scope, quick, NULL));
        HF_TRY(hf_join(scope));
        HF_CHECK(h.has_run);
    }
    free_things(&h.t);
    return HF_OK;
}

static hf_status in_hooks(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (VERBS[i].call != NULL) {
            HF_TRY(one_in_hook(&VERBS[i]));
        }
    }
    return HF_OK;
}

static void every_verb_answers_in_a_hook_as_the_table_says(void **state)
{
    (void)state;
    run_body(in_hooks);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(every_verb_answers_on_a_fiber_as_the_table_says),
        cmocka_unit_test(every_verb_answers_in_a_workflow_as_the_table_says),
        cmocka_unit_test(every_verb_counts_in_an_evicted_workflow_as_the_table_says),
        cmocka_unit_test(what_may_wait_in_a_workflow_is_refused_or_releases_something),
        cmocka_unit_test(every_verb_answers_in_an_activity_as_the_table_says),
        cmocka_unit_test(every_verb_answers_on_a_foreign_thread_as_the_table_says),
        cmocka_unit_test(every_verb_answers_after_fork_as_the_table_says),
        cmocka_unit_test(every_verb_answers_in_a_hook_as_the_table_says),
    };
    int code = hf_test_main("verbs", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
    while (left_count > 0) {
        (void)hf_runtime_free(left[--left_count]);
    }
    return code;
}
