/* The service: its inbox, its thread, and the turns of that thread.
 *
 *     any thread:   submit, cancel -----> inbox, canceled --- ring ---> the manager wakes up
 *     the thread:   turn: new calls become asks, cancels end them, alarms ring, a line is opened if calls wait, asks go out
 *
 * The manager and every line make turns; the manager sleeps until somebody rings or the next alarm is due. */
#include "remote/remote_private.h"

#include "base/fields.h"
#include "fiber/sched/wait.h"
#include "fiber/verbs.h"
#include "service/call.h"
#include "service/grpc_path.h"

#include <stdio.h>

enum { THREAD_STACK_LEN = 256 * 1024, POOL_MAX = 2 };

static hf_remote *remote_of(hf_service *service)
{
    return (hf_remote *)(void *)service;
}

int64_t hf_remote_now(const hf_remote *remote)
{
    return remote->env->ops->now(remote->env).ns;
}

void hf_remote_report(hf_remote *remote, hf_log_level level, const char *event, const char *why)
{
    char fields[2 * HF_MESSAGE_LEN_MAX];
    hf_fields_format(fields, sizeof fields, "server=%s why=\"%s\"", remote->name, why);
    remote->log(remote->log_state, level, event, fields);
}

int64_t hf_remote_pause(hf_remote *remote, unsigned failures, int first_ms)
{
    int64_t ms = first_ms;
    for (unsigned i = 0; i < failures && ms < HF_REMOTE_PAUSE_MAX_MS; i++) {
        ms = ms * 17 / 10;
    }
    ms = ms < HF_REMOTE_PAUSE_MAX_MS ? ms : HF_REMOTE_PAUSE_MAX_MS;
    int64_t ns = ms * 1000000;
    hf_assert(ns > 0 && ms <= HF_REMOTE_PAUSE_MAX_MS);
    return ns - ns / 5 + (int64_t)hf_rng_below(&remote->chance, (uint64_t)(ns / 5 * 2) + 1);
}

/* ---- The bell ------------------------------------------------------------------------------------------------------------ */

static bool abort_bell(hf_wait *wait)
{
    hf_remote *remote = wait->object;
    hf_spin_lock(&remote->lock);
    bool is_claimed = remote->sleeper == wait;
    if (is_claimed) {
        remote->sleeper = NULL;
    }
    hf_spin_unlock(&remote->lock);
    return is_claimed;
}

static const hf_wait_kind BELL = {"calls of a remote service", abort_bell};

/* Under the lock. The waiter, if there is one, is to be woken behind it. It does not go on before that, and so the remote stays. */
static hf_wait *claim_sleeper(hf_remote *remote)
{
    hf_wait *sleeper = remote->sleeper;
    remote->sleeper = NULL;
    remote->is_rung = true;
    return sleeper;
}

void hf_remote_ring(hf_remote *remote)
{
    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&remote->lock);
    hf_wait *sleeper = claim_sleeper(remote);
    hf_spin_unlock(&remote->lock);
    if (sleeper != NULL) {
        hf_wake(sleeper, HF_OK);
    }
    hf_leave(self);
}

/* The manager sleeps until the bell rings or `until_ns`. */
static void sleep_until(hf_remote *remote, int64_t until_ns)
{
    hf_wait wait;
    hf_fiber *self = hf_enter(NULL);
    hf_wait_init(&wait, self, &BELL, remote, remote->name);
    hf_spin_lock(&remote->lock);
    bool is_rung = remote->is_rung;
    if (!is_rung) {
        hf_assert(remote->sleeper == NULL); /* remote-R1: there is one manager */
        remote->sleeper = &wait;
    }
    hf_spin_unlock(&remote->lock);
    if (!is_rung) {
        remote->armed_ns = until_ns;
        (void)hf_park(self, &wait, (hf_instant){until_ns});
        remote->armed_ns = INT64_MIN; /* it is awake */
    }
    hf_leave(self);
}

/* ---- Turns --------------------------------------------------------------------------------------------------------------- */

static void take_calls(hf_remote *remote)
{
    hf_list fresh;
    hf_node *node = NULL;
    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&remote->lock);
    remote->is_rung = false;
    hf_list_move_all(&remote->inbox, &fresh);
    hf_spin_unlock(&remote->lock);
    hf_leave(self);
    while ((node = hf_list_pop_front(&fresh)) != NULL) {
        hf_ask_begin(remote, HF_CONTAINER(node, hf_call, link));
    }
}

/* One at a time: another thread may add to the list meanwhile. */
static hf_call *next_canceled(hf_remote *remote)
{
    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&remote->lock);
    hf_call *found = NULL;
    HF_LIST_EACH(node, &remote->canceled)
    {
        hf_call *call = HF_CONTAINER(node, hf_call, all);
        if (call->parked != NULL) { /* else it has come after the inbox was taken: the next turn */
            found = call;
            hf_list_remove(node);
            break;
        }
    }
    hf_spin_unlock(&remote->lock);
    hf_leave(self);
    return found;
}

static void take_cancels(hf_remote *remote)
{
    hf_call *call = NULL;
    while ((call = next_canceled(remote)) != NULL) {
        hf_ask_cancel(call->parked);
    }
}

static void ring_alarms(hf_remote *remote)
{
    int64_t now = hf_remote_now(remote);
    hf_heap_node *first = NULL;
    while ((first = hf_heap_first(&remote->alarms)) != NULL && first->key <= now) {
        hf_heap_remove(&remote->alarms, first);
        hf_ask_ring(HF_CONTAINER(first, hf_remote_ask, alarm));
    }
}

/* A line is opened while calls wait, and not before the pause after the last failure is over. */
static void open_line(hf_remote *remote)
{
    hf_op op;
    hf_op_init(&op);
    if (remote->line != NULL || hf_list_is_empty(&remote->waiting) || hf_remote_now(remote) < remote->try_ns ||
        remote->scope == NULL) {
        return;
    }
    if (hf_line_begin(&op, remote) != HF_OK) {
        (void)snprintf(remote->why, sizeof remote->why, "%s", op.message);
        remote->try_ns = hf_remote_now(remote) + hf_remote_pause(remote, remote->failures++, HF_REMOTE_PAUSE_FIRST_MS);
    }
}

static void send_asks(hf_remote *remote)
{
    hf_node *node = NULL;
    while (remote->line != NULL && hf_line_has_room(remote->line) && (node = hf_list_first(&remote->waiting)) != NULL) {
        hf_ask_send(HF_CONTAINER(node, hf_remote_ask, wait_node), remote->line);
    }
}

void hf_remote_turn(hf_remote *remote)
{
    take_calls(remote);
    take_cancels(remote);
    ring_alarms(remote);
    open_line(remote);
    send_asks(remote);
    HF_LIST_EACH(node, &remote->lines)
    {
        hf_line_flush(HF_CONTAINER(node, hf_line, node));
    }
}

/* When the manager has something to do by itself. */
static int64_t next_turn(const hf_remote *remote)
{
    const hf_heap_node *first = hf_heap_first(&remote->alarms);
    int64_t at = first != NULL ? first->key : INT64_MAX;
    if (remote->line == NULL && !hf_list_is_empty(&remote->waiting) && remote->try_ns < at) {
        at = remote->try_ns;
    }
    return at;
}

/* ---- The thread ------------------------------------------------------------------------------------------------------------ */

static bool is_closing(hf_remote *remote)
{
    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&remote->lock);
    bool is = remote->is_closing;
    hf_spin_unlock(&remote->lock);
    hf_leave(self);
    return is;
}

static void end_asks(hf_remote *remote)
{
    hf_node *node = NULL;
    take_calls(remote);
    while ((node = hf_list_first(&remote->asks)) != NULL) {
        hf_ask_fail(HF_CONTAINER(node, hf_remote_ask, node), HF_ERR_CLOSED, "the service was closed");
    }
}

static hf_status manage(void *arg)
{
    hf_remote *remote = arg;
    hf_status status = hf_scope_open(&remote->scope, .name = "connections", .join = HF_JOIN_DISCARD);
    if (status != HF_OK) {
        return hf_fail(&remote->begin_op, status, "%s", hf_error_text());
    }
    hf_latch_open(remote->env, &remote->begun);
    while (!is_closing(remote)) {
        hf_remote_turn(remote);
        sleep_until(remote, next_turn(remote));
    }
    end_asks(remote);
    HF_IGNORE(hf_scope_cancel(remote->scope, .reason = "the service was closed"));
    (void)hf_scope_close(remote->scope); /* waits for the lines */
    remote->scope = NULL;
    end_asks(remote); /* nothing is left: a call that comes now is refused by submit */
    hf_assert(hf_list_is_empty(&remote->lines) && hf_list_is_empty(&remote->waiting)); /* remote-R4 */
    return HF_OK;
}

/* The thread drives a runtime without threads of its own while it waits for the manager's end. */
static hf_status run_manager(hf_remote *remote)
{
    hf_runtime *rt = NULL;
    hf_scope *scope = NULL;
    HF_TRY(hf_runtime_new(&rt, .name = "remote", .threads = HF_OFF, .env = remote->env, .log = remote->log,
                          .log_state = remote->log_state, .pool_max = POOL_MAX));
    hf_status status = hf_scope_open(&scope, .name = "remote", .runtime = rt);
    if (status == HF_OK) {
        status = hf_fork(scope, manage, remote, .name = "manager");
        status = status == HF_OK ? hf_join(scope) : status;
        (void)hf_scope_close(scope);
    }
    (void)hf_runtime_free(rt);
    return status;
}

static void thread_main(void *arg)
{
    hf_remote *remote = arg;
    hf_thread_fiber me = {
        .fiber = {.kind = HF_FIBER_THREAD}}; /* in a simulation threads share thread-local variables */
    hf_self_set(&me.fiber.self);
    hf_status status = run_manager(remote);
    if (!hf_latch_is_open(&remote->begun)) {
        if (remote->begin_op.status == HF_OK) {
            (void)hf_fail(&remote->begin_op, status != HF_OK ? status : HF_ERR_NOMEM, "%s", hf_error_text());
        }
        hf_self_drop_chain(&me.fiber);
        hf_self_set(NULL);
        hf_latch_open(remote->env, &remote->begun);
        return;
    }
    hf_self_drop_chain(&me.fiber);
    hf_self_set(NULL);
}

/* ---- The service ------------------------------------------------------------------------------------------------------------- */

static void refuse(hf_call *call, hf_status status, const char *why)
{
    hf_call_set_failure(call, status, why);
    call->done(call);
}

static void remote_submit(hf_service *service, hf_call *call)
{
    hf_remote *remote = remote_of(service);
    hf_wait *sleeper = NULL;
    if (hf_method_grpc_service(call->method) == NULL) {
        refuse(call, HF_ERR_UNSUPPORTED, "this method is not for callers from outside");
        return;
    }
    call->in_process = false; /* an answer that is lost with this process is noticed by timeouts */
    call->run_ahead = false;  /* what comes over a network is durable */
    call->parked = NULL;
    hf_spin_lock(&remote->lock);
    bool is_closed = remote->is_closing;
    bool is_full = remote->call_count >= HF_REMOTE_CALLS_MAX;
    hf_assert(!hf_node_is_linked(&call->by_number)); /* remote-R3: a call is submitted once */
    if (!is_closed && !is_full) {
        call->number = ++remote->number_last;
        remote->call_count++;
        hf_list_push_back(&remote->inbox, &call->link);
        hf_list_push_back(&remote->buckets[call->number % HF_REMOTE_BUCKETS], &call->by_number);
        sleeper = claim_sleeper(remote);
    }
    hf_spin_unlock(&remote->lock); /* from here on call and remote may be gone, unless the manager waits for us */
    if (is_closed) {
        refuse(call, HF_ERR_CLOSED, "the service was closed");
    } else if (is_full) {
        refuse(call, HF_ERR_LIMIT, "too many calls are under way");
    } else if (sleeper != NULL) {
        hf_wake(sleeper, HF_OK);
    }
}

static void remote_cancel(hf_service *service, uint64_t number)
{
    hf_remote *remote = remote_of(service);
    hf_wait *sleeper = NULL;
    hf_spin_lock(&remote->lock);
    HF_LIST_EACH(node, &remote->buckets[number % HF_REMOTE_BUCKETS])
    {
        hf_call *call = HF_CONTAINER(node, hf_call, by_number);
        if (call->number == number && !hf_node_is_linked(&call->all)) {
            hf_list_push_back(&remote->canceled, &call->all);
            sleeper = claim_sleeper(remote);
            break;
        }
    }
    hf_spin_unlock(&remote->lock);
    if (sleeper != NULL) {
        hf_wake(sleeper, HF_OK);
    }
}

/* A server gives a task out again when its time is over, or when it was answered as failed (takes_nothing_back). */
static void remote_unwanted(hf_service *service, hf_str task_token)
{
    (void)service;
    (void)task_token;
}

/* Frees what is left when the thread has ended, or was never started. */
static void release(hf_remote *remote)
{
    hf_env *env = remote->env;
    hf_assert(remote->call_count == 0 && hf_list_is_empty(&remote->asks)); /* remote-R3 */
    hf_heap_deinit(&remote->alarms);
    hf_tls_context_unref(remote->tls);
    hf_arena_deinit(&remote->texts);
    env->ops->release(env, remote, sizeof *remote);
}

static hf_status remote_close(hf_op *op, hf_service *service)
{
    hf_remote *remote = remote_of(service);
    (void)op;
    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&remote->lock);
    remote->is_closing = true;
    hf_wait *sleeper = claim_sleeper(remote);
    hf_spin_unlock(&remote->lock);
    if (sleeper != NULL) {
        hf_wake(sleeper, HF_OK);
    }
    hf_leave(self);
    remote->env->ops->thread_join(remote->env, remote->thread);
    hf_guests_await(remote->env, &remote->service.guests); /* service-V4 */
    release(remote);
    return HF_OK;
}

static const hf_service_ops REMOTE_OPS = {remote_submit, remote_cancel, remote_unwanted, remote_close, NULL};

/* ---- Opening ------------------------------------------------------------------------------------------------------------------- */

static hf_status copy_texts(hf_op *op, hf_remote *remote, const hf_remote_options *options)
{
    char text[512];
    hf_arena *texts = &remote->texts;
    int len = snprintf(text, sizeof text, "tcp:%s:%s", options->host, options->port);
    if (len < 0 || (size_t)len >= sizeof text) {
        return hf_fail(op, HF_ERR_INVALID, "the name of the server is too long");
    }
    remote->address = hf_arena_copy(texts, hf_str_of(text)).data;
    remote->name = hf_arena_copy(texts, hf_str_of(text + 4)).data;
    remote->server_name =
        hf_arena_copy(texts, hf_str_of(options->server_name != NULL ? options->server_name : options->host)).data;
    if (options->api_key.len > 0) { /* remote-R5 */
        static const char BEARER[] = "Bearer ";
        size_t prefix = sizeof BEARER - 1;
        char *bearer = hf_arena_take(texts, prefix + options->api_key.len, 1);
        if (bearer != NULL) {
            memcpy(bearer, BEARER, prefix);
            memcpy(bearer + prefix, options->api_key.data, options->api_key.len);
            remote->bearer = hf_str_of_len(bearer, prefix + options->api_key.len);
        }
    }
    return texts->status == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for a remote service");
}

static hf_status start(hf_op *op, hf_remote *remote, const hf_remote_options *options)
{
    hf_env *env = remote->env;
    HF_TRY(copy_texts(op, remote, options));
    HF_TRY(env->ops->random(env, op, &remote->chance.state, sizeof remote->chance.state));
    remote->tls = options->tls != NULL ? hf_tls_context_ref(options->tls) : NULL;
    HF_TRY(env->ops->thread_start(env, op, "hf-remote", THREAD_STACK_LEN, thread_main, remote, &remote->thread));
    hf_latch_wait(env, &remote->begun);
    if (remote->begin_op.status != HF_OK) {
        env->ops->thread_join(env, remote->thread);
        return hf_fail(op, remote->begin_op.status, "%s", remote->begin_op.message);
    }
    return HF_OK;
}

/* Whether somebody is there, and whether workers can rely on it. */
static hf_status probe(hf_op *op, hf_remote *remote)
{
    hf_arena arena;
    hf_call call;
    hf_op ask;
    hf_pb_get_system_info_request request = {0};
    hf_arena_init(&arena, remote->memory);
    hf_op_init(&ask);
    hf_call_init(&call, HF_METHOD_GET_SYSTEM_INFO, &request, &arena, NULL);
    call.verb = "hf_open";
    hf_status status = hf_service_ask(&ask, &remote->service, &call);
    if (status == HF_ERR_UNSUPPORTED) {
        status = hf_fail(op, status, "the server at %s is too old: it does not have GetSystemInfo", remote->name);
    } else if (status != HF_OK) {
        status = hf_fail(op, status, "%s", ask.message);
    } else {
        const hf_pb_get_system_info_response *info = call.response;
        if (info->capabilities == NULL || !info->capabilities->sdk_metadata) {
            status =
                hf_fail(op, HF_ERR_UNSUPPORTED,
                        "the server at %s is too old: it does not keep the metadata that workers write", remote->name);
        }
    }
    hf_arena_deinit(&arena);
    return status;
}

/* Whether the server has what only Holdfast has: it answers such a call, or denies it. */
static bool is_foreign(hf_remote *remote)
{
    hf_arena arena;
    hf_call call;
    hf_op ask;
    hf_pb_read_changes_request request = {.namespace = HF_STR("default")};
    hf_arena_init(&arena, remote->memory);
    hf_op_init(&ask);
    hf_call_init(&call, HF_METHOD_READ_CHANGES, &request, &arena, NULL);
    hf_status status = hf_service_ask(&ask, &remote->service, &call);
    hf_arena_deinit(&arena);
    return status == HF_ERR_UNSUPPORTED;
}

hf_status hf_remote_open(hf_op *op, hf_env *env, const hf_remote_options *options, hf_service **ret_service)
{
    hf_remote *remote = env->ops->allocate(env, sizeof *remote, 0);
    if (remote == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a remote service");
    }
    *remote = (hf_remote){.service = {.ops = &REMOTE_OPS, .is_remote = true, .takes_nothing_back = true},
                          .env = env,
                          .memory = hf_env_memory(env),
                          .log = options->log,
                          .log_state = options->log_state,
                          .armed_ns = INT64_MIN};
    hf_arena_init(&remote->texts, remote->memory);
    hf_heap_init(&remote->alarms, remote->memory);
    hf_op_init(&remote->begin_op);
    hf_list *const LISTS[] = {&remote->lines, &remote->asks, &remote->waiting, &remote->inbox, &remote->canceled};
    for (size_t i = 0; i < HF_COUNT_OF(LISTS); i++) {
        hf_list_init(LISTS[i]);
    }
    for (size_t i = 0; i < HF_REMOTE_BUCKETS; i++) {
        hf_list_init(&remote->buckets[i]);
    }
    hf_status status = start(op, remote, options);
    if (status != HF_OK) {
        release(remote);
        return status;
    }
    status = probe(op, remote);
    if (status != HF_OK) {
        hf_op ignored;
        hf_op_init(&ignored);
        (void)remote_close(&ignored, &remote->service);
        return status;
    }
    remote->service.is_foreign = is_foreign(remote);
    *ret_service = &remote->service;
    return HF_OK;
}
