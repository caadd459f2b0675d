/* The owner's socket: tools ask a running program about its store instead of opening it.
 *
 * One thread, one request per connection, one answer at a time: requests come from people at a terminal. The thread
 * reads the requests of several connections side by side and answers the first that is complete, so a silent connection
 * delays nobody. The socket has mode 0600: only the same user can connect, and may then ask everything. No request can
 * harm the program: lengths are bounded (open.h), a connection that has sent no request after PATIENCE_S is closed, the
 * oldest one is closed when there are more than CALLERS_MAX, and an invalid request is answered with an error. A
 * backup, which may take long, sends an empty piece now and then: so the tool keeps waiting, and the owner notices when
 * the tool has gone.
 *
 *     stats            figures of engine and store
 *     backup PATH      a consistent copy, made between commits; goes on when the tool goes away
 *     show NS ID       a workflow's description, what its code waits for if it is in memory, and its history
 *     list BEFORE MAX  the newest runs whose number is below BEFORE, at most MAX of them
 *
 * Commands that need the whole store at rest (check, export) work on a backup, which the tool deletes afterwards. */
#include "open/open.h"

#include "base/latch.h"
#include "base/status.h"
#include "engine/engine.h"
#include "service/witness.h"

#include <stdio.h>

enum { STACK_LEN = 512 * 1024, BACKLOG = 8, PATIENCE_S = 10, PAUSE_MS = 100, PAGE_EVENTS = 1000, CALLERS_MAX = 16 };

/* A connection whose request is not complete yet. */
typedef struct caller {
    int fd;
    hf_instant deadline; /* when the connection is closed */
    char *bytes;         /* the request; owned, CALLER_LEN bytes of memory */
    size_t got;          /* bytes of the request that have been read */
} caller;

#define CALLER_LEN (HF_FRAME_HEAD_LEN + HF_FRAME_REQUEST_MAX)

struct hf_admin {
    hf_env *env;
    hf_service *engine;          /* borrowed; outlives this */
    hf_service *front;           /* the service that callers and workers have: the guard before the engine; borrowed */
    hf_poller *poller;           /* the thread waits here for the listener and the connections */
    caller callers[CALLERS_MAX]; /* in order of arrival */
    int caller_count;
    int fd;                        /* the listener */
    char address[HF_PATH_LEN_MAX]; /* "unix:PATH-sock" */
    char socket[HF_PATH_LEN_MAX];  /* absolute path of the socket, for its removal; empty = the path is too long */
    hf_thread *thread;
    atomic_bool stopping;
};

/* One connection. */
typedef struct talk {
    hf_admin *admin;
    hf_wire wire;
    hf_arena arena;
    hf_op op;        /* the error of the request */
    bool is_lost;    /* the tool has gone: nothing more is sent */
    hf_instant said; /* when something was last sent */
} talk;

static hf_instant from_now(hf_env *env, hf_span span)
{
    return (hf_instant){env->ops->now(env).ns + span.ns};
}

static void say(talk *t, const hf_pb_admin_response *response)
{
    hf_op op;
    hf_op_init(&op);
    if (t->is_lost) {
        return;
    }
    t->said = t->wire.env->ops->now(t->wire.env);
    t->wire.deadline = from_now(t->wire.env, hf_seconds(PATIENCE_S));
    t->is_lost = hf_frame_write(&op, &t->wire, &hf_pb_admin_response_type, response, t->arena.memory) != HF_OK;
}

/* Sends all of `bytes`, in pieces. */
static void say_bytes(talk *t, const char *kind, hf_str bytes)
{
    while (bytes.len > 0) {
        size_t len = bytes.len < HF_FRAME_CHUNK_LEN ? bytes.len : HF_FRAME_CHUNK_LEN;
        hf_pb_admin_response piece = {.kind = hf_str_of(kind), .chunk = {bytes.data, len}};
        say(t, &piece);
        bytes = hf_str_of_len(bytes.data + len, bytes.len - len);
    }
}

/* Sends the message, which has at most `len_max` bytes when encoded. Fails: HF_ERR_TOO_BIG, HF_ERR_NOMEM. */
static hf_status say_message(talk *t, const char *kind, const hf_pb_type *type, const void *msg, size_t len_max)
{
    hf_buf bytes;
    hf_buf_init(&bytes, t->arena.memory, len_max);
    hf_pb_encode(type, msg, &bytes);
    hf_status status = bytes.status;
    if (status == HF_OK) {
        say_bytes(t, kind, hf_str_of_len(bytes.data, bytes.len));
    }
    hf_buf_deinit(&bytes);
    return status;
}

/* ---- stats ------------------------------------------------------------------------------------------------------------ */

static hf_status answer_stats(talk *t)
{
    hf_engine_stats stats;
    HF_TRY(hf_engine_stats_get(&t->op, t->admin->engine, true, &stats));
    hf_pb_admin_stats msg = {
        .calls = stats.calls,
        .transitions = stats.transitions,
        .commits = stats.commits,
        .runs_in_memory = stats.runs,
        .memory_bytes = stats.mem_used,
        .reopened = stats.reopened,
    };
    hf_admin_stats_of(&stats.store, &msg);
    return say_message(t, "stats", &hf_pb_admin_stats_type, &msg, HF_FRAME_CHUNK_LEN);
}

void hf_admin_stats_of(const hf_store_stats *stats, hf_pb_admin_stats *msg)
{
    msg->flushes = stats->flushes;
    msg->bytes_written = stats->bytes_written;
    msg->checkpoints = stats->checkpoints;
    msg->log_bytes = stats->log_len;
    msg->file_bytes = stats->file_len;
    msg->free_bytes = stats->free_len;
    msg->rows = (hf_pb_uint64_list){(uint64_t *)(uintptr_t)stats->rows, HF_TABLE_COUNT};
}

/* ---- backup ----------------------------------------------------------------------------------------------------------- */

static bool keep_going(void *state)
{
    talk *t = state;
    hf_env *env = t->wire.env;
    if (env->ops->now(env).ns - t->said.ns > hf_seconds(1).ns) {
        hf_pb_admin_response nothing = {0};
        say(t, &nothing);
    }
    return !atomic_load(&t->admin->stopping);
}

static hf_status answer_backup(talk *t, hf_str path)
{
    if (path.len > HF_PATH_LEN_MAX - 32) { /* the limit of a database's path: the files beside it have longer names */
        return hf_fail(&t->op, HF_ERR_INVALID, "the path of a backup has %zu bytes, at most %d are taken", path.len,
                       HF_PATH_LEN_MAX - 32);
    }
    hf_str copy = hf_arena_copy(&t->arena, path);
    if (copy.data == NULL || memchr(copy.data, '\0', copy.len) != NULL || copy.data[0] != '/') {
        return hf_fail(&t->op, HF_ERR_INVALID, "a backup needs an absolute path");
    }
    return hf_engine_backup(&t->op, t->admin->engine, copy.data, keep_going, t);
}

/* ---- show ------------------------------------------------------------------------------------------------------------- */

typedef struct waiting {
    hf_call call;
    hf_env *env;
    hf_latch done;
} waiting;

static void on_done(hf_call *call)
{
    waiting *w = HF_CONTAINER(call, waiting, call);
    hf_latch_open(w->env, &w->done);
}

static hf_status ask(talk *t, hf_method method, const void *request, void **ret_response)
{
    waiting w = {.env = t->wire.env};
    hf_call_init(&w.call, method, request, &t->arena, on_done);
    hf_service_submit(t->admin->engine, &w.call);
    hf_latch_wait(w.env, &w.done);
    *ret_response = w.call.response;
    return w.call.status == HF_OK ? HF_OK : hf_fail(&t->op, w.call.status, "%s", w.call.message);
}

static hf_status say_description(talk *t, hf_pb_workflow_execution *execution, hf_str namespace_)
{
    hf_pb_describe_workflow_execution_request request = {.namespace = namespace_, .execution = execution};
    void *response = NULL;
    HF_TRY(ask(t, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, &response));
    hf_pb_describe_workflow_execution_response *description = response;
    /* All pages of the history must be of this run, even if a new run of the workflow starts meanwhile. */
    execution->run_id = description->workflow_execution_info->execution->run_id;
    return say_message(t, "description", &hf_pb_describe_workflow_execution_response_type, description, SIZE_MAX / 4);
}

/* Facts that only this process knows: what the run's code waits for, and the clock that its timers follow. */
static hf_status say_insight(talk *t, hf_str run_id, hf_str namespace_)
{
    hf_insight insight;
    hf_service_look(t->admin->front, namespace_, run_id, &insight);
    hf_str waits[HF_INSIGHT_NAMES_MAX];
    hf_str unread[HF_INSIGHT_NAMES_MAX];
    for (int i = 0; i < insight.waits.count; i++) {
        waits[i] = hf_str_of(insight.waits.items[i]);
    }
    for (int i = 0; i < insight.unread.count; i++) {
        unread[i] = hf_str_of(insight.unread.items[i]);
    }
    hf_pb_admin_insight msg = {
        .now_ns = t->wire.env->ops->wall_now(t->wire.env).ns,
        .in_memory = insight.is_known,
        .waits = {waits, (size_t)insight.waits.count},
        .unread = {unread, (size_t)insight.unread.count},
    };
    return say_message(t, "insight", &hf_pb_admin_insight_type, &msg, HF_FRAME_CHUNK_LEN);
}

static hf_status answer_show(talk *t, hf_str namespace_, hf_str id)
{
    hf_pb_workflow_execution execution = {.workflow_id = id};
    HF_TRY(say_description(t, &execution, namespace_));
    HF_TRY(say_insight(t, execution.run_id, namespace_));
    hf_str token = {0};
    do {
        hf_pb_get_workflow_execution_history_request request = {
            .namespace = namespace_,
            .execution = &execution,
            .maximum_page_size = PAGE_EVENTS,
            .next_page_token = token,
        };
        void *response = NULL;
        HF_TRY(ask(t, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &response));
        hf_pb_get_workflow_execution_history_response *page = response;
        say_bytes(t, "history", page->history);
        token = page->next_page_token;
    } while (token.len > 0 && !t->is_lost);
    return HF_OK;
}

/* ---- list ------------------------------------------------------------------------------------------------------------- */

/* Parses a whole number from 1 on; 0 = the text is not one. */
static int64_t number_of(hf_str text)
{
    int64_t number = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, text.data[i] - '0', &number)) {
            return 0;
        }
    }
    return number;
}

static hf_status answer_list(talk *t, hf_str before, hf_str max)
{
    int64_t count = number_of(max);
    if (number_of(before) == 0 || count == 0 || count > HF_ADMIN_LIST_MAX) {
        return hf_fail(&t->op, HF_ERR_INVALID, "list needs the number of a run and a count from 1 to %d",
                       HF_ADMIN_LIST_MAX);
    }
    hf_pb_admin_runs runs = {0};
    HF_TRY(hf_engine_list(&t->op, t->admin->engine, number_of(before), (size_t)count, &t->arena, &runs));
    return say_message(t, "runs", &hf_pb_admin_runs_type, &runs, SIZE_MAX / 4);
}

/* ---- The thread ------------------------------------------------------------------------------------------------------- */

static hf_status answer(talk *t, const hf_pb_admin_request *request)
{
    static const struct {
        const char *verb;
        size_t arg_count;
    } VERBS[] = {{"stats", 0}, {"backup", 1}, {"show", 2}, {"list", 2}};
    size_t which = 0;
    while (which < HF_COUNT_OF(VERBS) && !hf_str_equal(request->verb, hf_str_of(VERBS[which].verb))) {
        which++;
    }
    if (which == HF_COUNT_OF(VERBS)) {
        return hf_fail(&t->op, HF_ERR_INVALID, "there is no verb \"%.40s\": the verbs are stats, backup, show and list",
                       request->verb.len > 0 ? hf_arena_copy(&t->arena, request->verb).data : "");
    }
    if (request->args.count != VERBS[which].arg_count) {
        return hf_fail(&t->op, HF_ERR_INVALID, "%s takes %zu arguments", VERBS[which].verb, VERBS[which].arg_count);
    }
    const hf_str *args = request->args.items;
    switch (which) {
    case 0:
        return answer_stats(t);
    case 1:
        return answer_backup(t, args[0]);
    case 2:
        return answer_show(t, args[0], args[1]);
    default:
        return answer_list(t, args[0], args[1]);
    }
}

/* Answers one caller. `status` and `op` are the result of reading the request. */
static void serve(hf_admin *admin, const caller *c, hf_status status, const hf_op *op)
{
    hf_env *env = admin->env;
    talk t = {.admin = admin, .wire = {.env = env, .poller = admin->poller, .fd = c->fd, .stopping = &admin->stopping}};
    t.wire.deadline = from_now(env, hf_seconds(PATIENCE_S));
    t.said = env->ops->now(env);
    hf_arena_init(&t.arena, hf_env_memory(env));
    t.op = *op;
    hf_pb_admin_request request = {0};
    if (status == HF_OK) {
        hf_str bytes = hf_str_of_len(c->bytes + HF_FRAME_HEAD_LEN, c->got - HF_FRAME_HEAD_LEN);
        status = hf_pb_decode(&t.op, &hf_pb_admin_request_type, bytes, &t.arena, &request);
    }
    if (status == HF_OK) {
        status = answer(&t, &request);
    }
    hf_pb_admin_response last = {.status = (int32_t)status, .last = true};
    if (status != HF_OK) {
        last.message = hf_str_of(t.op.message);
    }
    say(&t, &last);
    hf_arena_deinit(&t.arena);
}

static void hang_up(hf_admin *admin, int idx)
{
    caller *c = &admin->callers[idx];
    admin->env->ops->close(admin->env, c->fd);
    admin->env->ops->release(admin->env, c->bytes, CALLER_LEN);
    admin->caller_count--;
    memmove(c, c + 1, (size_t)(admin->caller_count - idx) * sizeof *c);
}

/* Accepts all connections that are there: the poller reports each only once. True: a connection could not be accepted
 * and stays in the queue, for example because no descriptor was free. */
static bool pick_up(hf_admin *admin)
{
    hf_env *env = admin->env;
    hf_op op;
    hf_op_init(&op);
    caller c = {.fd = -1};
    char peer[HF_ADDRESS_LEN_MAX];
    hf_status status = HF_OK;
    while ((status = env->ops->accept(env, &op, admin->fd, &c.fd, peer)) == HF_OK) {
        if (admin->caller_count == CALLERS_MAX) {
            hang_up(admin, 0);
        }
        c.bytes = env->ops->allocate(env, CALLER_LEN, 0);
        c.deadline = from_now(env, hf_seconds(PATIENCE_S));
        if (c.bytes == NULL ||
            env->ops->poller_set(env, &op, admin->poller, c.fd, HF_READABLE | HF_WRITABLE, true, admin) != HF_OK) {
            env->ops->release(env, c.bytes, CALLER_LEN);
            env->ops->close(env, c.fd);
        } else {
            admin->callers[admin->caller_count++] = c;
        }
        hf_op_init(&op);
    }
    return status != HF_ERR_AGAIN && hf_status_may_pass(status);
}

/* Answers the first caller whose request is complete, or failed, or timed out. False: there is none. */
static bool serve_one(hf_admin *admin)
{
    hf_env *env = admin->env;
    int64_t now = env->ops->now(env).ns;
    for (int i = 0; i < admin->caller_count; i++) {
        caller *c = &admin->callers[i];
        hf_op op;
        hf_op_init(&op);
        hf_status status = hf_frame_gather(&op, env, c->fd, c->bytes, &c->got);
        if (status == HF_ERR_AGAIN && now < c->deadline.ns) {
            continue;
        }
        if (status == HF_ERR_AGAIN) {
            hf_op_init(&op);
            status = hf_fail(&op, HF_ERR_TIMEOUT, "timed out while waiting for the request");
        }
        serve(admin, c, status, &op);
        hang_up(admin, i);
        return true;
    }
    return false;
}

static void admin_main(void *arg)
{
    hf_admin *admin = arg;
    hf_env *env = admin->env;
    while (!atomic_load(&admin->stopping)) {
        bool is_left = pick_up(admin);
        if (!serve_one(admin)) {
            hf_instant until = admin->caller_count > 0 ? admin->callers[0].deadline : HF_INSTANT_NEVER;
            hf_instant again = from_now(env, hf_milliseconds(PAUSE_MS));
            until = is_left && again.ns < until.ns ? again : until;
            hf_event events[4];
            (void)env->ops->poller_wait(env, admin->poller, events, (int)HF_COUNT_OF(events), until);
        }
    }
    while (admin->caller_count > 0) {
        hang_up(admin, 0);
    }
}

/* ---- Life ------------------------------------------------------------------------------------------------------------- */

static hf_status remove_socket(hf_op *op, hf_admin *admin)
{
    return admin->socket[0] != '\0' ? admin->env->ops->socket_remove(admin->env, op, admin->socket) : HF_OK;
}

static hf_status start(hf_op *op, hf_admin *admin)
{
    hf_env *env = admin->env;
    char bound[HF_ADDRESS_LEN_MAX];
    HF_TRY(remove_socket(op, admin)); /* we are the owner: a socket that exists was left by a crash */
    HF_TRY(env->ops->listen(env, op, admin->address, BACKLOG, true, &admin->fd, bound));
    HF_TRY(env->ops->poller_open(env, op, &admin->poller));
    HF_TRY(env->ops->poller_set(env, op, admin->poller, admin->fd, HF_READABLE, true, admin));
    return env->ops->thread_start(env, op, "hf-admin", STACK_LEN, admin_main, admin, &admin->thread);
}

hf_status hf_admin_open(hf_op *op, hf_env *env, const char *path, hf_service *engine, hf_service *front,
                        hf_admin **ret_admin)
{
    hf_admin *admin = env->ops->allocate(env, sizeof *admin, 0);
    if (admin == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the socket beside the store");
    }
    *admin = (hf_admin){.env = env, .engine = engine, .front = front, .fd = -1};
    hf_admin_address(path, admin->address);
    if (!hf_beside(path, "-sock", admin->socket)) {
        admin->socket[0] = '\0';
    }
    hf_status status = start(op, admin);
    if (status != HF_OK) {
        hf_admin_close(admin);
        return status;
    }
    *ret_admin = admin;
    return HF_OK;
}

void hf_admin_close(hf_admin *admin)
{
    if (admin == NULL) {
        return;
    }
    hf_env *env = admin->env;
    atomic_store(&admin->stopping, true);
    if (admin->thread != NULL) {
        env->ops->poller_ring(env, admin->poller);
        env->ops->thread_join(env, admin->thread);
    }
    if (admin->fd >= 0) {
        hf_op op;
        hf_op_init(&op);
        env->ops->close(env, admin->fd);
        (void)remove_socket(&op, admin);
    }
    if (admin->poller != NULL) {
        env->ops->poller_close(env, admin->poller);
    }
    env->ops->release(env, admin, sizeof *admin);
}
