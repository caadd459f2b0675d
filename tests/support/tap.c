/* A call of the tap is a copy of the caller's: it has the same request and the same arena, and `done` of its own. So the tap sees
 * the answer before the caller does, and may replace it.
 *
 *     submit ---- tap_call ----> behind ... on_done ---- answer ----> the caller's done
 *
 * A tap_call has two owners: submit, which learns the number of the call behind only when it was submitted, and on_done, which may
 * come before that. A thread inside the tap is a guest (service-V4), so that tap_free can wait for it. */
#include "support/tap.h"

#include "base/env.h"
#include "fiber/core.h"
#include "service/guard.h"
#include "support/engine_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_LEN = 1 << 16 };

/* A workflow task that was given to a worker. */
typedef struct tap_task {
    hf_node node; /* of tap.tasks */
    hf_arena arena;
    hf_pb_poll_workflow_task_queue_response *answer; /* a copy */
    bool is_late;                                    /* to be given once more */
} tap_task;

typedef struct tap_call {
    hf_node node; /* of tap.calls, until it is done */
    tap *tap;
    hf_call *outer; /* the caller's */
    hf_call inner;  /* behind the tap; unused if is_kept */
    uint64_t number;
    int owners;
    bool is_kept;                                      /* it was not passed on */
    bool is_submitted;                                 /* inner.number is known */
    bool is_canceled;                                  /* the service behind is to be told */
    bool is_for_late;                                  /* it was canceled to answer it with a late task */
    bool is_refused;                                   /* inner says that the workflow task failed */
    hf_status closed_with;                             /* the tap was closed; HF_OK = it was not */
    hf_pb_respond_workflow_task_failed_request failed; /* of a refused answer */
} tap_call;

struct tap {
    hf_service base;     /* first */
    hf_service *service; /* owned */
    hf_service *behind;  /* the same without its guard */
    hf_env *env;
    tap_options options;
    hf_spin lock; /* for what follows */
    hf_list calls;
    hf_list tasks; /* oldest first */
    uint64_t numbers;
    hf_status closed;
    int completions;
    int came[HF_METHOD_COUNT];
    int activities;
    int histories;
    int late_tasks;
    int refused;
    char log[LOG_LEN];
    size_t log_len;
};

/* ---- What was answered ------------------------------------------------------------------------------------------- */

static void write_down(tap *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void write_down(tap *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(t->log + t->log_len, LOG_LEN - t->log_len, format, args);
    va_end(args);
    t->log_len += len > 0 && (size_t)len < LOG_LEN - t->log_len ? (size_t)len : 0;
}

static void log_command(tap *t, const hf_pb_command *command)
{
    write_down(t, " %s", hf_pb_enum_brief(&hf_pb_command_type_enum, command->command_type));
    if (command->attributes_case == HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES) {
        const hf_pb_schedule_activity_task_command_attributes *a = command->schedule_activity_task_command_attributes;
        write_down(t, " %.*s %.*s", HF_STR_ARGS(a->activity_id), HF_STR_ARGS(a->activity_type->name));
    } else if (command->attributes_case == HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES) {
        const hf_pb_start_timer_command_attributes *a = command->start_timer_command_attributes;
        write_down(t, " %.*s %llds", HF_STR_ARGS(a->timer_id), (long long)a->start_to_fire_timeout.seconds);
    } else if (command->attributes_case == HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES) {
        write_down(t, " %.*s", HF_STR_ARGS(command->cancel_timer_command_attributes->timer_id));
    } else if (command->attributes_case == HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES) {
        const hf_pb_failure *failure = command->fail_workflow_execution_command_attributes->failure;
        write_down(t, " '%.*s'", HF_STR_ARGS(failure->message));
    }
    write_down(t, ";");
}

static tap_task *find_task(tap *t, hf_str token)
{
    HF_LIST_EACH(node, &t->tasks)
    {
        tap_task *task = HF_CONTAINER(node, tap_task, node);
        if (hf_str_equal(task->answer->task_token, token)) {
            return task;
        }
    }
    return NULL;
}

static void saw_completed(tap *t, const hf_pb_respond_workflow_task_completed_request *r)
{
    tap_task *task = find_task(t, r->task_token);
    hf_assert(task != NULL); /* every task went through the tap */
    if (r->commands.count > 0) {
        write_down(t, "%.*s:", HF_STR_ARGS(task->answer->workflow_execution->workflow_id));
        for (size_t i = 0; i < r->commands.count; i++) {
            log_command(t, &r->commands.items[i]);
        }
        write_down(t, "\n");
    }
    task->is_late = t->options.late_tasks;
}

static void saw_failed(tap *t, const hf_pb_respond_workflow_task_failed_request *r)
{
    const tap_task *task = find_task(t, r->task_token);
    hf_assert(task != NULL);
    write_down(t, "%.*s: FAILED %d %.*s\n", HF_STR_ARGS(task->answer->workflow_execution->workflow_id), (int)r->cause,
               HF_STR_ARGS(r->failure->message));
}

static void strip(hf_pb_poll_workflow_task_queue_response *task, tap_strip what)
{
    for (size_t i = 0; i < task->messages.count; i++) {
        hf_pb_message *message = &task->messages.items[i];
        if (what == TAP_STRIP_SEQUENCE) {
            message->sequencing_id_case = 0;
        } else if (what == TAP_STRIP_IDS) {
            message->id = (hf_str){NULL, 0};
        }
    }
}

/* A copy of the task in an answer; NULL = it has none. */
static tap_task *copy_task(const hf_call *call, tap_strip what)
{
    hf_pb_poll_workflow_task_queue_response *answer = NULL;
    if (call->status == HF_OK && call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE) {
        answer = call->response;
    } else if (call->status == HF_OK && call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
        answer = ((const hf_pb_respond_workflow_task_completed_response *)call->response)->workflow_task;
    }
    if (answer == NULL || answer->task_token.len == 0) {
        return NULL;
    }
    strip(answer, what);
    tap_task *task = calloc(1, sizeof *task);
    hf_assert(task != NULL);
    hf_arena_init(&task->arena, hf_rig_heap);
    task->answer = HF_ARENA_NEW(&task->arena, hf_pb_poll_workflow_task_queue_response);
    hf_status status = hf_pb_copy(&hf_pb_poll_workflow_task_queue_response_type, answer, &task->arena, task->answer);
    hf_assert(status == HF_OK);
    return task;
}

/* Under the lock: a call was taken by the service behind. */
static void saw(tap *t, const hf_call *call)
{
    if (call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
        saw_completed(t, call->request);
    } else if (call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED) {
        saw_failed(t, call->request);
    } else if (call->method == HF_METHOD_POLL_ACTIVITY_TASK_QUEUE) {
        const hf_pb_poll_activity_task_queue_response *r = call->response;
        t->activities += r->task_token.len > 0 ? 1 : 0;
    }
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

static void refuse(hf_call *call, hf_status status, const char *message)
{
    call->status = status;
    call->response = NULL;
    (void)snprintf(call->message, sizeof call->message, "%s", message);
}

/* Not under the lock. */
static void drop(tap_call *c)
{
    tap *t = c->tap;
    hf_spin_lock(&t->lock);
    int owners = --c->owners;
    hf_spin_unlock(&t->lock);
    if (owners == 0) {
        free(c);
    }
}

/* The task that is to be given once more, if the caller of `c` still wants one; it is not to be given again. */
static tap_task *take_late(tap_call *c)
{
    if (!c->is_for_late || c->closed_with != HF_OK || c->inner.status != HF_ERR_CANCELED) {
        return NULL;
    }
    HF_LIST_EACH(node, &c->tap->tasks)
    {
        tap_task *task = HF_CONTAINER(node, tap_task, node);
        if (task->is_late) {
            task->is_late = false;
            c->tap->late_tasks++;
            return task;
        }
    }
    return NULL;
}

static void answer_with(hf_call *call, const tap_task *task)
{
    call->status = HF_OK;
    call->response = HF_ARENA_NEW(call->arena, hf_pb_poll_workflow_task_queue_response);
    hf_status status =
        hf_pb_copy(&hf_pb_poll_workflow_task_queue_response_type, task->answer, call->arena, call->response);
    hf_assert(status == HF_OK);
}

static bool is_poll_of_normal_queue(const hf_call *call)
{
    const hf_pb_poll_workflow_task_queue_request *poll = call->request;
    return call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE && poll->task_queue->kind != HF_TASK_QUEUE_KIND_STICKY;
}

/* Takes a poll that waits for each late task: its cancel comes back with CANCELED, or with another task. */
static void give_late_tasks(tap *t)
{
    int wanted = 0;
    hf_spin_lock(&t->lock);
    HF_LIST_EACH(node, &t->tasks)
    {
        wanted += HF_CONTAINER(node, tap_task, node)->is_late ? 1 : 0;
    }
    HF_LIST_EACH(node, &t->calls)
    {
        wanted -= HF_CONTAINER(node, tap_call, node)->is_for_late ? 1 : 0;
    }
    tap_call *found = NULL;
    HF_LIST_EACH(node, &t->calls)
    {
        tap_call *c = HF_CONTAINER(node, tap_call, node);
        if (wanted > 0 && found == NULL && c->is_submitted && !c->is_canceled && is_poll_of_normal_queue(c->outer)) {
            found = c;
            c->is_canceled = true;
            c->is_for_late = true;
            c->owners++;
        }
    }
    hf_spin_unlock(&t->lock);
    if (found != NULL) {
        t->behind->ops->cancel(t->behind, found->inner.number);
        drop(found);
    }
}

/* As an engine would answer that knows nothing of the task which another one gave out ahead of its commit. */
static void tell_of_another_task(tap *t, const hf_call *inner)
{
    hf_pb_describe_workflow_execution_response *response = inner->response;
    if (inner->method == HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION && inner->status == HF_OK &&
        response->pending_workflow_task != NULL && t->options.other_tasks > 0) {
        t->options.other_tasks--;
        response->pending_workflow_task->started_time.seconds++;
    }
}

/* A server that keeps the queries of a task that has failed for its next attempt. */
static void add_query(const tap *t, const hf_call *call)
{
    hf_pb_poll_workflow_task_queue_response *task = call->response;
    if (call->status != HF_OK || call->method != HF_METHOD_POLL_WORKFLOW_TASK_QUEUE || task->task_token.len == 0 ||
        task->attempt < 2 || task->attempt > t->options.queries) {
        return;
    }
    hf_pb_poll_workflow_task_queue_response_queries_entry *entry =
        HF_ARENA_NEW(call->arena, hf_pb_poll_workflow_task_queue_response_queries_entry);
    hf_pb_workflow_query *query = HF_ARENA_NEW(call->arena, hf_pb_workflow_query);
    assert_true(entry != NULL && query != NULL);
    query->query_type = HF_STR("state");
    entry->key = HF_STR("kept");
    entry->value = query;
    task->queries.items = entry;
    task->queries.count = 1;
}

static void on_done(hf_call *inner)
{
    tap_call *c = inner->state;
    tap *t = c->tap;
    hf_call *outer = c->outer;
    hf_guest_enter(&t->base.guests);
    tap_task *copy = copy_task(inner, t->options.strip);
    add_query(t, inner);
    outer->status = inner->status;
    outer->response = inner->response;
    outer->detail_type = inner->detail_type;
    outer->detail = inner->detail;
    outer->existing_run_id = inner->existing_run_id;
    outer->task_failed_cause = inner->task_failed_cause;
    memcpy(outer->message, inner->message, sizeof outer->message);
    hf_spin_lock(&t->lock);
    hf_list_remove(&c->node);
    if (inner->status == HF_OK && !c->is_refused) {
        saw(t, outer);
    }
    t->refused += inner->status == HF_OK && c->is_refused ? 1 : 0;
    tell_of_another_task(t, inner);
    if (copy != NULL) {
        hf_list_push_back(&t->tasks, &copy->node);
    }
    const tap_task *late = take_late(c);
    hf_spin_unlock(&t->lock);
    if (late != NULL) {
        answer_with(outer, late);
    } else if (c->closed_with != HF_OK) {
        refuse(outer, c->closed_with, "the service is closed");
    } else if (c->is_refused && inner->status == HF_OK) {
        refuse(outer, HF_ERR_INVALID, "UnhandledCommand");
        outer->task_failed_cause = HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND;
    }
    outer->done(outer); /* from here on the caller's call may be gone */
    give_late_tasks(t);
    drop(c);
    hf_guest_leave(t->env, &t->base.guests); /* and from here on the tap */
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static void prepare(tap_call *c)
{
    const hf_call *outer = c->outer;
    hf_call *inner = &c->inner;
    hf_call_init(inner, outer->method, outer->request, outer->arena, on_done);
    inner->state = c;
    inner->verb = outer->verb;
    inner->workflow_id = outer->workflow_id;
    inner->timeout = outer->timeout;
    inner->in_process = outer->in_process;
    inner->run_ahead = outer->run_ahead;
    if (c->is_refused) { /* the service behind would have failed it like this */
        const hf_pb_respond_workflow_task_completed_request *r = outer->request;
        c->failed = (hf_pb_respond_workflow_task_failed_request){
            .namespace = r->namespace,
            .identity = r->identity,
            .task_token = r->task_token,
            .cause = HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
        };
        inner->method = HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED;
        inner->request = &c->failed;
    }
}

/* Under the lock: counts the call, and says what becomes of it. HF_OK = it is passed on, or kept. */
static hf_status judge(tap *t, tap_call *c, const char **ret_why)
{
    const hf_call *call = c->outer;
    const tap_options *o = &t->options;
    int came = ++t->came[call->method];
    if (call->method == HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY) {
        const hf_pb_get_workflow_execution_history_request *r = call->request;
        t->histories += r->history_event_filter_type != HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT ? 1 : 0;
    }
    if (t->closed != HF_OK) {
        *ret_why = "the service is closed";
        return t->closed;
    }
    if (call->method == o->refuse_method && came <= o->refuse_count) {
        c->is_kept = o->refuse_status == HF_OK;
        *ret_why = "refused";
        return o->refuse_status;
    }
    c->is_refused = call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED && o->refuse_every > 0 &&
                    ++t->completions % o->refuse_every == 0;
    return HF_OK;
}

static void submit(hf_service *service, hf_call *outer)
{
    tap *t = (tap *)(void *)service;
    tap_call *c = calloc(1, sizeof *c);
    hf_assert(c != NULL);
    *c = (tap_call){.tap = t, .outer = outer, .owners = 2};
    const char *why = "";
    hf_guest_enter(&t->base.guests);
    hf_spin_lock(&t->lock);
    hf_status status = judge(t, c, &why);
    c->number = outer->number = ++t->numbers;
    bool is_kept = c->is_kept;
    if (status == HF_OK) {
        hf_list_push_back(&t->calls, &c->node);
    }
    hf_spin_unlock(&t->lock);
    if (status != HF_OK) {
        free(c);
        refuse(outer, status, why);
        outer->done(outer);
    } else if (!is_kept) {
        prepare(c);
        hf_service_submit(t->behind, &c->inner);
        hf_spin_lock(&t->lock);
        c->is_submitted = true;
        bool is_canceled = c->is_canceled;
        hf_spin_unlock(&t->lock);
        if (is_canceled) {
            t->behind->ops->cancel(t->behind, c->inner.number);
        }
        drop(c);
        give_late_tasks(t);
    }
    hf_guest_leave(t->env, &t->base.guests);
}

/* Under the lock: the caller no longer waits. True: the service behind is to be told by end_call; else the call is kept, and ends
 * there, or submit tells it. */
static bool begin_to_end(tap_call *c)
{
    bool is_told = c->is_canceled;
    c->is_canceled = true;
    c->is_for_late = false;
    if (c->is_kept) {
        hf_list_remove(&c->node);
        return true;
    }
    if (is_told || !c->is_submitted) {
        return false;
    }
    c->owners++;
    return true;
}

static void end_call(tap_call *c, hf_status status, const char *why)
{
    if (c->is_kept) {
        hf_call *outer = c->outer;
        free(c);
        refuse(outer, status, why);
        outer->done(outer);
        return;
    }
    c->tap->behind->ops->cancel(c->tap->behind, c->inner.number);
    drop(c);
}

static void cancel(hf_service *service, uint64_t number)
{
    tap *t = (tap *)(void *)service;
    tap_call *found = NULL;
    hf_spin_lock(&t->lock);
    HF_LIST_EACH(node, &t->calls)
    {
        tap_call *c = HF_CONTAINER(node, tap_call, node);
        if (c->number == number) {
            found = begin_to_end(c) ? c : NULL;
            break;
        }
    }
    hf_spin_unlock(&t->lock);
    if (found != NULL) {
        end_call(found, HF_ERR_CANCELED, "the caller has gone");
    }
}

static void unwanted(hf_service *service, hf_str token)
{
    tap *t = (tap *)(void *)service;
    t->behind->ops->unwanted(t->behind, token);
}

static hf_status check(hf_op *op, const hf_service *service)
{
    return hf_service_check(op, ((const tap *)(const void *)service)->service);
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

tap *tap_new(hf_service *service, const tap_options *options)
{
    static const hf_service_ops OPS = {submit, cancel, unwanted, NULL, check};
    hf_runtime *rt = hf_runtime_current();
    tap *t = calloc(1, sizeof *t);
    hf_assert(t != NULL);
    t->base.ops = &OPS;
    t->base.codec = service->codec;
    t->service = service;
    t->behind = hf_guard_behind(service);
    t->env = rt != NULL ? rt->env : hf_env_posix();
    t->options = options != NULL ? *options : (tap_options){0};
    hf_list_init(&t->calls);
    hf_list_init(&t->tasks);
    return t;
}

hf_service *tap_as_service(tap *t)
{
    return &t->base;
}

void tap_close(tap *t, hf_status status)
{
    hf_assert(status != HF_OK);
    for (bool again = true; again;) {
        tap_call *found = NULL;
        hf_spin_lock(&t->lock);
        t->closed = status;
        HF_LIST_EACH(node, &t->calls)
        {
            tap_call *c = HF_CONTAINER(node, tap_call, node);
            bool is_new = c->closed_with == HF_OK;
            c->closed_with = status;
            if (is_new && begin_to_end(c)) {
                found = c;
                break;
            }
        }
        hf_spin_unlock(&t->lock);
        again = found != NULL;
        if (found != NULL) {
            end_call(found, status, "the service is closed");
        }
    }
}

hf_status tap_free(tap *t)
{
    hf_guests_await(t->env, &t->base.guests); /* service-V4 */
    HF_CHECK(hf_list_is_empty(&t->calls));
    HF_CHECK(atomic_load(&t->base.workers) == 0 && atomic_load(&t->base.executions) == 0);
    hf_status status = hf_close(t->service);
    while (!hf_list_is_empty(&t->tasks)) {
        tap_task *task = HF_CONTAINER(hf_list_pop_front(&t->tasks), tap_task, node);
        hf_arena_deinit(&task->arena);
        free(task);
    }
    free(t);
    return status;
}

/* ---- What a test may ask ------------------------------------------------------------------------------------------ */

const char *tap_log(const tap *t)
{
    return t->log;
}

static int read_count(tap *t, const int *count)
{
    hf_spin_lock(&t->lock);
    int value = *count;
    hf_spin_unlock(&t->lock);
    return value;
}

int tap_calls(tap *t, hf_method method)
{
    return read_count(t, &t->came[method]);
}

int tap_activities(tap *t)
{
    return read_count(t, &t->activities);
}

int tap_histories(tap *t)
{
    return read_count(t, &t->histories);
}

int tap_late_tasks(tap *t)
{
    return read_count(t, &t->late_tasks);
}

int tap_refused(tap *t)
{
    return read_count(t, &t->refused);
}
