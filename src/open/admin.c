/* What tools ask a running program about its store instead of opening it.
 *
 * The host (host.c) reads the requests of all connections, and hands those of tools to the one thread here, which answers one at a time:
 * they come from people at a terminal. No request can harm the program: lengths are bounded (open.h), a tool that does not read its answer
 * is left after PATIENCE_S, and an invalid request is answered with an error. A backup, which may take long, sends an empty piece now and
 * then: so the tool keeps waiting, and the owner notices when the tool has gone.
 *
 *     stats            figures of engine and store
 *     backup PATH      a consistent copy, made between commits; goes on when the tool goes away
 *     show NS ID       a workflow's description, what its code waits for if it is in memory, and its history
 *     list BEFORE MAX  the newest runs whose number is below BEFORE, at most MAX of them
 *     calls VERSION    (host.c) the connection carries calls from now on
 *
 * Commands that need the whole store at rest (check, export) work on a backup, which the tool deletes afterwards. */
#include "open/open.h"

#include "base/latch.h"
#include "base/status.h"
#include "engine/engine.h"
#include "open/share.h"
#include "service/witness.h"

#include <stdio.h>

enum { STACK_LEN = 512 * 1024, PATIENCE_S = 10, PAGE_EVENTS = 1000, JOBS_MAX = 16 };

/* A request that waits for its answer. */
typedef struct job {
    hf_node node;
    int fd;
    hf_arena arena; /* of the request */
    hf_pb_admin_request request;
    hf_status status; /* not HF_OK: the request cannot be read, and `why` */
    char why[HF_MESSAGE_LEN_MAX];
} job;

struct hf_admin {
    hf_env *env;
    hf_service *engine; /* borrowed; outlives this */
    hf_service *front;  /* the service that callers and workers have: the guard before the engine; borrowed */
    hf_host *host;      /* owned */
    hf_poller *poller;  /* the thread waits here for jobs and for the tool that it answers */
    hf_thread *thread;
    atomic_bool stopping;
    hf_spin lock; /* protects the next two */
    hf_list jobs; /* in order of arrival */
    int job_count;
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
        .ended_runs = stats.ended,
        .ended_bytes = stats.ended_len,
        .expired_runs = stats.expired,
        .expired_bytes = stats.expired_len,
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
    msg->rows = (hf_pb_uint64_list){(uint64_t *)(uintptr_t)stats->rows, hf_engine_tables.count};
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

static hf_pb_str_list texts_of(const hf_insight_names *names, hf_str room[HF_INSIGHT_NAMES_MAX])
{
    for (int i = 0; i < names->count; i++) {
        room[i] = hf_str_of(names->items[i]);
    }
    return (hf_pb_str_list){room, (size_t)names->count};
}

/* Facts that only this process knows: what the run's code waits for, and the clock that its timers follow. */
static hf_status say_insight(talk *t, hf_str run_id, hf_str namespace_)
{
    hf_insight insight;
    hf_service_look(t->admin->front, namespace_, run_id, &insight);
    hf_str waits[HF_INSIGHT_NAMES_MAX];
    hf_str unread[HF_INSIGHT_NAMES_MAX];
    hf_str signals[HF_INSIGHT_NAMES_MAX];
    hf_str updates[HF_INSIGHT_NAMES_MAX];
    hf_pb_admin_insight msg = {
        .now_ns = t->wire.env->ops->wall_now(t->wire.env).ns,
        .in_memory = insight.is_known,
        .waits = texts_of(&insight.waits, waits),
        .unread = texts_of(&insight.unread, unread),
        .looks = insight.looks,
        .signals = texts_of(&insight.signals, signals),
        .updates = texts_of(&insight.updates, updates),
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
        return hf_fail(&t->op, HF_ERR_INVALID,
                       "there is no verb \"%.40s\": the verbs are stats, backup, show, list and calls",
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

static void serve(hf_admin *admin, const job *j)
{
    hf_env *env = admin->env;
    talk t = {.admin = admin, .wire = {.env = env, .poller = admin->poller, .fd = j->fd, .stopping = &admin->stopping}};
    t.wire.deadline = from_now(env, hf_seconds(PATIENCE_S));
    t.said = env->ops->now(env);
    hf_arena_init(&t.arena, hf_env_memory(env));
    hf_op_init(&t.op);
    hf_status status = j->status == HF_OK ? answer(&t, &j->request) : hf_fail(&t.op, j->status, "%s", j->why);
    hf_pb_admin_response last = {.status = (int32_t)status, .last = true};
    if (status != HF_OK) {
        last.message = hf_str_of(t.op.message);
    }
    say(&t, &last);
    hf_arena_deinit(&t.arena);
}

static void drop(hf_admin *admin, job *j)
{
    admin->env->ops->close(admin->env, j->fd);
    hf_arena_deinit(&j->arena);
    admin->env->ops->release(admin->env, j, sizeof *j);
}

static job *next_job(hf_admin *admin)
{
    hf_spin_lock(&admin->lock);
    hf_node *node = hf_list_pop_front(&admin->jobs);
    admin->job_count -= node != NULL ? 1 : 0;
    hf_spin_unlock(&admin->lock);
    return node != NULL ? HF_CONTAINER(node, job, node) : NULL;
}

/* On the host's thread. */
static void take_request(void *state, int fd, const hf_pb_admin_request *request, hf_status status, const char *why)
{
    hf_admin *admin = state;
    hf_env *env = admin->env;
    job *j = env->ops->allocate(env, sizeof *j, 0);
    if (j == NULL) {
        env->ops->close(env, fd);
        return;
    }
    *j = (job){.fd = fd, .status = status};
    hf_arena_init(&j->arena, hf_env_memory(env));
    (void)snprintf(j->why, sizeof j->why, "%s", why);
    if (status == HF_OK && hf_pb_copy(&hf_pb_admin_request_type, request, &j->arena, &j->request) != HF_OK) {
        drop(admin, j);
        return;
    }
    job *oldest = NULL;
    hf_spin_lock(&admin->lock);
    hf_list_push_back(&admin->jobs, &j->node);
    if (++admin->job_count > JOBS_MAX) {
        oldest = HF_CONTAINER(hf_list_pop_front(&admin->jobs), job, node);
        admin->job_count--;
    }
    hf_spin_unlock(&admin->lock);
    if (oldest != NULL) {
        drop(admin, oldest);
    }
    env->ops->poller_ring(env, admin->poller);
}

static void admin_main(void *arg)
{
    hf_admin *admin = arg;
    hf_env *env = admin->env;
    job *j = NULL;
    while (!atomic_load(&admin->stopping)) {
        j = next_job(admin);
        hf_op op;
        hf_op_init(&op);
        if (j == NULL) {
            hf_event events[4];
            (void)env->ops->poller_wait(env, admin->poller, events, (int)HF_COUNT_OF(events), HF_INSTANT_NEVER);
            continue;
        }
        if (env->ops->poller_set(env, &op, admin->poller, j->fd, HF_READABLE | HF_WRITABLE, true, admin) == HF_OK) {
            serve(admin, j);
        }
        drop(admin, j);
    }
    while ((j = next_job(admin)) != NULL) {
        drop(admin, j);
    }
}

/* ---- Life ------------------------------------------------------------------------------------------------------------- */

static hf_status start(hf_op *op, hf_admin *admin, const char *path)
{
    hf_env *env = admin->env;
    HF_TRY(env->ops->poller_open(env, op, &admin->poller));
    HF_TRY(env->ops->thread_start(env, op, "hf-admin", STACK_LEN, admin_main, admin, &admin->thread));
    return hf_host_open(op, env, path, admin->engine, take_request, admin, &admin->host);
}

hf_status hf_admin_open(hf_op *op, hf_env *env, const char *path, hf_service *engine, hf_service *front,
                        hf_admin **ret_admin)
{
    hf_admin *admin = env->ops->allocate(env, sizeof *admin, 0);
    if (admin == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the socket beside the store");
    }
    *admin = (hf_admin){.env = env, .engine = engine, .front = front};
    hf_list_init(&admin->jobs);
    hf_status status = start(op, admin, path);
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
    hf_host_close(admin->host); /* no request comes any more */
    atomic_store(&admin->stopping, true);
    if (admin->thread != NULL) {
        env->ops->poller_ring(env, admin->poller);
        env->ops->thread_join(env, admin->thread);
    }
    hf_assert(hf_list_is_empty(&admin->jobs));
    if (admin->poller != NULL) {
        env->ops->poller_close(env, admin->poller);
    }
    env->ops->release(env, admin, sizeof *admin);
}
