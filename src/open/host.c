/* The owner's socket: connections of tools and of other processes. One thread reads all of them side by side and never waits for one of
 * them, so that a silent, slow or confused connection delays nobody. The socket has mode 0600, and the other end must be of the same user.
 *
 * The first message is a tool's request. "calls" makes it a connection for calls (host_call.c); anything else is handed to the tools' thread
 * (admin.c), together with the connection. When there are too many, the oldest one that has not said anything is closed; if all have,
 * the new one is refused with a sentence. */
#include "open/host_private.h"

#include "base/status.h"

#include <stdio.h>

enum { STACK_LEN = 512 * 1024, BACKLOG = 64, PAUSE_MS = 100, BURST = 16 };

static hf_instant from_now(hf_env *env, hf_span span)
{
    return (hf_instant){env->ops->now(env).ns + span.ns};
}

/* ---- Connections ------------------------------------------------------------------------------------------------------------- */

static void free_visitor(hf_visitor *visitor)
{
    hf_host *host = visitor->host;
    hf_assert(hf_list_is_empty(&visitor->visits));
    hf_list_remove(&visitor->node);
    hf_duct_deinit(&visitor->duct);
    host->memory.release(host->memory.state, visitor, sizeof *visitor);
}

/* The connection is over. The rest of it is freed when its calls have ended. */
static void part(hf_visitor *visitor)
{
    hf_host *host = visitor->host;
    hf_assert(!visitor->is_gone && host->visitor_count > 0);
    visitor->is_gone = true;
    host->visitor_count--;
    hf_duct_deinit(&visitor->duct);
    hf_visitor_leave(visitor);
    if (hf_list_is_empty(&visitor->visits)) {
        free_visitor(visitor);
    }
}

static void say_last(hf_visitor *visitor, hf_status status, const char *why)
{
    hf_pb_admin_response last = {.status = (int32_t)status, .message = hf_str_of(why), .last = true};
    hf_duct_put(&visitor->duct, &hf_pb_admin_response_type, &last);
    visitor->is_leaving = true;
}

/* Makes room by closing the oldest connection that has said nothing yet. False: all have. */
static bool make_room(hf_host *host)
{
    HF_LIST_EACH(node, &host->visitors)
    {
        hf_visitor *visitor = HF_CONTAINER(node, hf_visitor, node);
        if (!visitor->is_gone && !visitor->is_welcome) {
            part(visitor);
            return true;
        }
    }
    return false;
}

static void refuse(hf_host *host, hf_visitor *visitor, const char *why)
{
    say_last(visitor, HF_ERR_LIMIT, why);
    hf_duct_flush(&visitor->duct);
    hf_duct_deinit(&visitor->duct);
    host->memory.release(host->memory.state, visitor, sizeof *visitor);
}

static void welcome(hf_host *host, int fd)
{
    hf_op op;
    hf_op_init(&op);
    hf_visitor *visitor = host->env->ops->peer_is_us(host->env, fd)
                              ? host->memory.allocate(host->memory.state, sizeof *visitor, 0)
                              : NULL;
    if (visitor == NULL) {
        host->env->ops->close(host->env, fd);
        return;
    }
    *visitor = (hf_visitor){.host = host, .hello_end = from_now(host->env, hf_seconds(HF_SHARE_HELLO_SECONDS))};
    hf_duct_init(&visitor->duct, host->env, fd, host->poller, visitor);
    hf_list_init(&visitor->visits);
    hf_list_init(&visitor->sticky);
    for (size_t i = 0; i < HF_SHARE_BUCKETS; i++) {
        hf_list_init(&visitor->held[i]);
    }
    if (host->visitor_count >= HF_SHARE_CONNECTIONS_MAX && !make_room(host)) {
        refuse(host, visitor,
               "the program that has the file open has as many connections of other processes as it takes (64)");
    } else if (host->env->ops->poller_set(host->env, &op, host->poller, fd, HF_READABLE, true, visitor) != HF_OK) {
        refuse(host, visitor, op.message);
    } else {
        hf_list_push_back(&host->visitors, &visitor->node);
        host->visitor_count++;
    }
}

/* Accepts all connections that are there: the poller reports each only once. True: a connection could not be accepted
 * and stays in the queue, for example because no descriptor was free. */
static bool pick_up(hf_host *host)
{
    hf_op op;
    hf_op_init(&op);
    int fd = -1;
    char peer[HF_ADDRESS_LEN_MAX];
    hf_status status = HF_OK;
    if (!host->may_accept) {
        return false;
    }
    while ((status = host->env->ops->accept(host->env, &op, host->fd, &fd, peer)) == HF_OK) {
        welcome(host, fd);
        hf_op_init(&op);
    }
    host->may_accept = status != HF_ERR_AGAIN && hf_status_may_pass(status);
    return host->may_accept;
}

/* ---- What they say ------------------------------------------------------------------------------------------------------------ */

/* Hands a tool's connection on. */
static void hand_on(hf_visitor *visitor, const hf_pb_admin_request *request, hf_status status, const char *why)
{
    hf_host *host = visitor->host;
    hf_op op;
    hf_op_init(&op);
    int fd = visitor->duct.fd;
    (void)host->env->ops->poller_set(host->env, &op, host->poller, fd, 0, false, visitor);
    visitor->duct.fd = -1;
    host->on_request(host->state, fd, request, status, why);
    part(visitor);
}

/* The first message. False: the connection is not the host's any more. */
static bool greet(hf_visitor *visitor, hf_str message)
{
    char version[16];
    hf_op op;
    hf_arena arena;
    hf_pb_admin_request request = {0};
    hf_op_init(&op);
    hf_arena_init(&arena, visitor->host->memory);
    hf_status status = hf_pb_decode(&op, &hf_pb_admin_request_type, message, &arena, &request);
    bool is_calls = status == HF_OK && hf_str_equal(request.verb, HF_STR("calls"));
    (void)snprintf(version, sizeof version, "%d", HF_SHARE_VERSION);
    if (!is_calls) {
        hand_on(visitor, &request, status, op.message);
    } else if (request.args.count == 1 && hf_str_equal(request.args.items[0], hf_str_of(version))) {
        hf_pb_admin_response yes = {.kind = HF_STR("calls"), .chunk = hf_str_of(version)};
        hf_duct_put(&visitor->duct, &hf_pb_admin_response_type, &yes);
        visitor->is_welcome = true;
    } else {
        say_last(visitor, HF_ERR_UNSUPPORTED,
                 "the program that has the file open is of another version of Holdfast: use the same one");
    }
    hf_arena_deinit(&arena);
    return is_calls;
}

/* False: the connection is over, or not the host's any more, and `visitor` may be gone. */
static bool listen_to(hf_visitor *visitor)
{
    hf_host *host = visitor->host;
    hf_str message = {0};
    hf_duct_fill(&visitor->duct, HF_SHARE_FRAME_LEN_MAX);
    while (
        !visitor->is_leaving &&
        hf_duct_take(&visitor->duct, visitor->is_welcome ? HF_SHARE_FRAME_LEN_MAX : HF_FRAME_REQUEST_MAX, &message)) {
        if (!visitor->is_welcome) {
            if (!greet(visitor, message)) {
                return false;
            }
            continue;
        }
        hf_op op;
        hf_arena arena;
        hf_pb_owner_call frame = {0};
        hf_op_init(&op);
        hf_arena_init(&arena, host->memory);
        hf_status status = hf_pb_decode(&op, &hf_pb_owner_call_type, message, &arena, &frame);
        if (status == HF_OK) {
            hf_visit_begin(visitor, &frame);
        }
        hf_arena_deinit(&arena);
        if (status != HF_OK) { /* open-H1 */
            part(visitor);
            return false;
        }
    }
    return true;
}

/* A first message that is too long is answered with a sentence; a stranger may just have the wrong socket. False: there is nobody to talk to. */
static bool say_why(hf_visitor *visitor)
{
    if (visitor->is_welcome || visitor->is_leaving || visitor->duct.in.len < HF_FRAME_HEAD_LEN) {
        return false;
    }
    visitor->duct.is_over = false;
    say_last(visitor, HF_ERR_TOO_BIG, visitor->duct.why);
    return true;
}

static void serve(hf_visitor *visitor)
{
    hf_host *host = visitor->host;
    int64_t now = host->env->ops->now(host->env).ns;
    if (!visitor->is_leaving && !listen_to(visitor)) {
        return;
    }
    if (visitor->duct.is_over && !say_why(visitor)) {
        part(visitor);
        return;
    }
    if (!visitor->is_welcome && !visitor->is_leaving && now >= visitor->hello_end.ns) {
        say_last(visitor, HF_ERR_TIMEOUT, "timed out while waiting for the request");
    }
    hf_duct_flush(&visitor->duct);
    bool is_stalled = hf_duct_left(&visitor->duct) > 0 &&
                      now - visitor->duct.taken_ns > hf_seconds(HF_SHARE_STALL_SECONDS).ns; /* open-H3 */
    bool is_done = visitor->is_leaving && hf_duct_left(&visitor->duct) == 0;
    if (visitor->duct.is_over || is_stalled || is_done) {
        part(visitor);
    }
}

/* ---- The thread --------------------------------------------------------------------------------------------------------------- */

void hf_visit_done(hf_call *call)
{
    hf_host *host = ((hf_visit *)(void *)call)->host;
    hf_env *env = host->env;
    hf_spin_lock(&host->lock);
    hf_list_push_back(&host->finished, &call->link);
    bool ring = host->is_asleep;
    if (ring) {
        host->is_asleep = false;
        hf_guest_enter(&host->guests);
    }
    hf_spin_unlock(&host->lock); /* from here on, unless it rings, the host may be gone */
    if (ring) {
        env->ops->poller_ring(env, host->poller);
        hf_guest_leave(env, &host->guests);
    }
}

/* False: there was none. */
static bool take_finished(hf_host *host)
{
    hf_list finished;
    hf_node *node = NULL;
    hf_spin_lock(&host->lock);
    hf_list_move_all(&host->finished, &finished);
    hf_spin_unlock(&host->lock);
    bool is_any = !hf_list_is_empty(&finished);
    while ((node = hf_list_pop_front(&finished)) != NULL) {
        hf_visit *visit = (hf_visit *)(void *)HF_CONTAINER(node, hf_call, link);
        hf_visitor *visitor = visit->visitor;
        hf_visit_end(visit);
        if (visitor != NULL && visitor->is_gone && hf_list_is_empty(&visitor->visits)) {
            free_visitor(visitor);
        }
    }
    return is_any;
}

/* The engine ends many calls one after the other. Those that it ends meanwhile go out with the first ones: one write, and the other
 * process is woken once. */
static void take_burst(hf_host *host)
{
    for (int i = 0; i < BURST && take_finished(host); i++) {
    }
}

static void note_events(hf_host *host, const hf_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        hf_visitor *visitor = events[i].cookie;
        if (events[i].cookie == host) {
            host->may_accept = true;
            continue;
        }
        /* A connection that was closed since has no events: its descriptor has left the poller. But one report may have come before. */
        HF_LIST_EACH(node, &host->visitors)
        {
            if (HF_CONTAINER(node, hf_visitor, node) == visitor) {
                visitor->duct.may_read |= (events[i].events & HF_READABLE) != 0;
                visitor->duct.may_write |= (events[i].events & HF_WRITABLE) != 0;
                break;
            }
        }
    }
}

/* When something is to be done even if nobody says anything. */
static hf_instant next_look(const hf_host *host, bool is_left)
{
    hf_env *env = host->env;
    hf_instant until = is_left ? from_now(env, hf_milliseconds(PAUSE_MS)) : HF_INSTANT_NEVER;
    HF_LIST_EACH(node, &host->visitors)
    {
        const hf_visitor *visitor = HF_CONTAINER(node, hf_visitor, node);
        if (visitor->is_gone) {
            continue;
        }
        if (visitor->duct.may_read && !visitor->is_leaving) { /* there is more than one turn reads */
            return (hf_instant){0};
        }
        int64_t at = !visitor->is_welcome && !visitor->is_leaving ? visitor->hello_end.ns : INT64_MAX;
        if (hf_duct_left(&visitor->duct) > 0) {
            at = visitor->duct.taken_ns + hf_seconds(HF_SHARE_STALL_SECONDS).ns + 1;
        }
        until.ns = at < until.ns ? at : until.ns;
    }
    return until;
}

static void rest(hf_host *host, hf_instant until)
{
    hf_env *env = host->env;
    hf_event events[32];
    hf_spin_lock(&host->lock);
    bool is_idle = hf_list_is_empty(&host->finished);
    host->is_asleep = is_idle;
    hf_spin_unlock(&host->lock);
    int count =
        env->ops->poller_wait(env, host->poller, events, (int)HF_COUNT_OF(events), is_idle ? until : (hf_instant){0});
    hf_spin_lock(&host->lock);
    host->is_asleep = false;
    hf_spin_unlock(&host->lock);
    note_events(host, events, count);
}

/* All connections end. Their calls are canceled; those that the engine has decided are over soon. */
static void end_all(hf_host *host)
{
    HF_LIST_EACH(node, &host->visitors)
    {
        hf_visitor *visitor = HF_CONTAINER(node, hf_visitor, node);
        if (!visitor->is_gone) {
            part(visitor);
        }
    }
    (void)take_finished(host);
    while (host->call_count > 0) {
        rest(host, HF_INSTANT_NEVER);
        (void)take_finished(host);
    }
    hf_assert(hf_list_is_empty(&host->visitors) && host->visitor_count == 0);
}

static void host_main(void *arg)
{
    hf_host *host = arg;
    while (!atomic_load(&host->stopping)) {
        bool is_left = pick_up(host);
        take_burst(host);
        HF_LIST_EACH(node, &host->visitors)
        {
            hf_visitor *visitor = HF_CONTAINER(node, hf_visitor, node);
            if (!visitor->is_gone) {
                serve(visitor);
            }
        }
        rest(host, next_look(host, is_left));
    }
    end_all(host);
}

/* ---- Life ------------------------------------------------------------------------------------------------------------- */

static hf_status remove_socket(hf_op *op, hf_host *host)
{
    return host->socket[0] != '\0' ? host->env->ops->socket_remove(host->env, op, host->socket) : HF_OK;
}

static hf_status start(hf_op *op, hf_host *host)
{
    hf_env *env = host->env;
    char bound[HF_ADDRESS_LEN_MAX];
    HF_TRY(remove_socket(op, host)); /* we are the owner: a socket that exists was left by a crash */
    HF_TRY(env->ops->listen(env, op, host->address, BACKLOG, true, &host->fd, bound));
    HF_TRY(env->ops->poller_open(env, op, &host->poller));
    HF_TRY(env->ops->poller_set(env, op, host->poller, host->fd, HF_READABLE, true, host));
    return env->ops->thread_start(env, op, "hf-owner", STACK_LEN, host_main, host, &host->thread);
}

hf_status hf_host_open(hf_op *op, hf_env *env, const char *path, hf_service *engine, hf_host_request *on_request,
                       void *state, hf_host **ret_host)
{
    hf_host *host = env->ops->allocate(env, sizeof *host, 0);
    if (host == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the socket beside the store");
    }
    *host = (hf_host){.env = env,
                      .memory = hf_env_memory(env),
                      .engine = engine,
                      .on_request = on_request,
                      .state = state,
                      .fd = -1,
                      .may_accept = true};
    hf_list_init(&host->visitors);
    hf_list_init(&host->finished);
    hf_buf_init(&host->scratch, host->memory, HF_SHARE_ANSWER_LEN_MAX);
    hf_slab_init(&host->slab, host->memory);
    hf_arenas_init(&host->arenas, host->memory);
    hf_beside_socket(path, host->address);
    if (!hf_beside(path, "-sock", host->socket)) {
        host->socket[0] = '\0';
    }
    hf_status status = start(op, host);
    if (status != HF_OK) {
        hf_host_close(host);
        return status;
    }
    *ret_host = host;
    return HF_OK;
}

void hf_host_close(hf_host *host)
{
    if (host == NULL) {
        return;
    }
    hf_env *env = host->env;
    atomic_store(&host->stopping, true);
    if (host->thread != NULL) {
        env->ops->poller_ring(env, host->poller);
        env->ops->thread_join(env, host->thread);
    }
    hf_guests_await(env, &host->guests);
    if (host->fd >= 0) {
        hf_op op;
        hf_op_init(&op);
        env->ops->close(env, host->fd);
        (void)remove_socket(&op, host);
    }
    if (host->poller != NULL) {
        env->ops->poller_close(env, host->poller);
    }
    hf_buf_deinit(&host->scratch);
    hf_arenas_deinit(&host->arenas);
    hf_slab_deinit(&host->slab);
    env->ops->release(env, host, sizeof *host);
}
