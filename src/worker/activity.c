/* Activities: a fiber for each, which waits for a thread of the pool and answers.
 *
 *     fiber "charge"                                      its own: shield around the answer
 *       scope "heartbeats" -- fiber: sends the latest     made with the first heartbeat
 *       scope "activity"   -- job on the pool: the user's function; with .on_fiber it is called on this fiber
 *
 * A cancel reaches the inner scope: from the workflow (by the answer to a heartbeat), from the deadline of the
 * attempt, or from the worker when it stops. The function learns of it by hf_canceled and returns, and the fiber
 * sends the result to the service. The fiber binds itself as a local value, so that fibers that the function forks
 * find their activity, too. */
#include "worker/activity_private.h"
#include "worker/local.h"
#include "worker/memo_private.h"

#include "base/fields.h"
#include "base/span.h"
#include "history/payload.h"

#include <holdfast/answer.h>

#include <stdio.h>

#define FIRST_PAUSE 20000000     /* ns before an answer is sent again; doubled every time ... */
#define LONGEST_PAUSE 1000000000 /* ... up to this */

enum { ANSWER_SECONDS = 10, RETURN_SECONDS = 2 };

typedef struct hf_activity_work activity;
typedef struct hf_activity_own_failure verdict;

const hf_local hf_activity_local = {"activity"};

/* ---- Verbs for the function -------------------------------------------------------------------------------------- */

const hf_activity_facts *hf_activity_info(void)
{
    const activity *act = hf_local_get(&hf_activity_local);
    return act != NULL ? &act->facts : NULL;
}

hf_status hf_activity_token(hf_payload *ret_token)
{
    const activity *act = hf_local_get(&hf_activity_local);
    if (act == NULL || ret_token == NULL) {
        return hf_raise(HF_ERR_MISUSE,
                        "hf_activity_token needs a place for the token, and can only be called in an activity");
    }
    if (act->body != NULL) {
        return hf_raise(HF_ERR_MISUSE, "an activity with .memo has no token: several attempts may share it");
    }
    hf_str token = act->task->task_token;
    hf_assert(token.len > 0); /* poller.c has checked it */
    return hf_payload_copy(hf_payload_of_bytes(token.data, token.len), ret_token);
}

void *hf_activity_arg(void)
{
    const activity *act = hf_local_get(&hf_activity_local);
    return act != NULL && act->entry != NULL ? act->entry->arg : NULL;
}

void hf_activity_note_why(activity *act, hf_cancel_why why)
{
    int none = HF_WHY_NOT;
    hf_assert(why != HF_WHY_NOT);
    (void)atomic_compare_exchange_strong(&act->why, &none, (int)why);
}

void hf_activity_note_stop(hf_worker *worker)
{
    int64_t now = hf_now(worker->rt).ns;
    hf_spin_lock(&worker->busy_lock);
    HF_LIST_EACH(node, &worker->busy)
    {
        activity *act = HF_CONTAINER(node, activity, busy);
        hf_activity_note_why(act, now >= atomic_load(&act->until_ns) ? HF_WHY_TIMED_OUT : HF_WHY_SHUTDOWN);
    }
    hf_spin_unlock(&worker->busy_lock);
}

hf_cancel_why hf_activity_cancel_why(void)
{
    activity *act = hf_local_get(&hf_activity_local);
    if (act != NULL && hf_now(act->worker->rt).ns >= atomic_load(&act->until_ns)) {
        hf_activity_note_why(act, HF_WHY_TIMED_OUT); /* the scope around the function tells of this one by itself */
    }
    return act != NULL ? (hf_cancel_why)atomic_load(&act->why) : HF_WHY_NOT;
}

static void free_verdict(activity *act, verdict *said)
{
    if (said != NULL) {
        hf_payload_free(&said->details);
        hf_body_unref(said->body);
        act->worker->memory.release(act->worker->memory.state, said, sizeof *said);
    }
}

hf_status hf_activity_fail_with(const char *message, const hf_activity_fail_options *options)
{
    HF_OPTIONS(hf_activity_fail_options, options, hf_activity_fail);
    activity *act = hf_local_get(&hf_activity_local);
    if (act == NULL || message == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_activity_fail needs a message, and can only be called in an activity");
    }
    hf_op op;
    hf_op_init(&op);
    if (hf_payload_check(&op, "hf_activity_fail: .details", options->details) != HF_OK ||
        hf_span_check(&op, "hf_activity_fail", ".retry_after", options->retry_after, 0) != HF_OK) {
        return hf_failure_raise_op(&op);
    }
    hf_allocator memory = act->worker->memory;
    verdict *said = memory.allocate(memory.state, sizeof *said, _Alignof(verdict));
    hf_payload details = hf_payload_none();
    if (said == NULL) {
        return hf_raise(HF_ERR_NOMEM, "no memory for a failure");
    }
    const char *type = options->type != NULL ? options->type : hf_status_name(HF_ERR_FAILED);
    hf_status status = hf_payload_copy(options->details, &details);
    said->body = status == HF_OK ? hf_body_new(hf_str_of(type), hf_str_of(message), HF_STR(""), HF_STR("")) : NULL;
    if (said->body == NULL) {
        hf_payload_free(&details);
        memory.release(memory.state, said, sizeof *said);
        return status != HF_OK ? status : hf_raise(HF_ERR_NOMEM, "no memory for a failure");
    }
    said->is_final = options->is_final;
    said->retry_after = options->retry_after;
    said->details = details;
    hf_spin_lock(&act->lock);
    verdict *old = act->verdict;
    act->verdict = said;
    hf_spin_unlock(&act->lock);
    free_verdict(act, old);
    return hf_raise_typed(HF_ERR_FAILED, type, "%s", message);
}

/* ---- The answer -------------------------------------------------------------------------------------------------- */

/* Notes why the service does not take a result now. `is_given_up`: it is not sent again. */
static void note_unsaid(hf_worker *worker, const hf_op *op, bool is_given_up)
{
    _Static_assert(sizeof worker->unsaid_why == sizeof op->message, "it is copied as it is");
    hf_assert(op->status != HF_OK);
    hf_spin_lock(&worker->busy_lock);
    worker->unsaid_count += is_given_up && atomic_load(&worker->stop_ns) != 0;
    worker->unsaid_status = op->status;
    memcpy(worker->unsaid_why, op->message, sizeof op->message);
    hf_spin_unlock(&worker->busy_lock);
}

bool hf_worker_may_try_again(hf_worker *worker, int64_t pause)
{
    char token = 0;
    hf_assert(pause > 0);
    return hf_chan_recv(worker->hush, &token, .timeout = hf_nanoseconds(pause)) == HF_ERR_TIMEOUT;
}

/* After a full disk, no memory or a failed commit the service recovers. The work was done, and without its result it
 * would be done again. So the result is sent again for a while, but not longer than a stopping worker may take. */
static hf_status answer_as(activity *act, hf_method method, const void *request, bool lets_go)
{
    hf_worker *worker = act->worker;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL; /* also when the worker is stopping */
    hf_op op;
    hf_op_init(&op);
    hf_call call;
    /* An engine that is out of reach may still want it after a long time: the end is when it refuses, or the worker's time is over. */
    if ((worker->service->is_remote ? hf_worker_shield_open(worker->rt, &shield)
                                    : hf_shield_open(hf_seconds(ANSWER_SECONDS), &shield)) != HF_OK) {
        return HF_ERR_NOMEM; /* it will time out */
    }
    hf_status status = HF_OK;
    bool tries_again = true;
    for (int64_t pause = FIRST_PAUSE; tries_again; pause = 2 * pause < LONGEST_PAUSE ? 2 * pause : LONGEST_PAUSE) {
        hf_op_init(&op);
        hf_worker_call_init(worker, &call, method, request, &act->arena);
        call.lets_go = lets_go;
        status = hf_service_ask(&op, worker->service, &call);
        bool may_pass = hf_status_may_pass(status) && !hf_guard_is_shut(&worker->guard);
        if (may_pass) {
            note_unsaid(worker, &op, false);
        }
        tries_again = may_pass && hf_worker_may_try_again(worker, pause);
        if (may_pass && !tries_again) {
            note_unsaid(worker, &op, true);
        }
    }
    if (status != HF_OK && status != HF_ERR_NOT_FOUND && !hf_guard_is_shut(&worker->guard)) {
        hf_log(worker->rt, HF_LOG_WARN, "activity_answer_refused", "activity=%s id=%s message=%s", act->facts.name,
               act->facts.id, op.message);
    }
    return status;
}

static void answer(activity *act, hf_method method, const void *request)
{
    (void)answer_as(act, method, request, false);
}

void hf_activity_apply_verdict(activity *act, hf_pb_failure *failure)
{
    const verdict *said = act->verdict;
    if (said == NULL || failure == NULL || failure->failure_info_case != HF_PB_FAILURE_APPLICATION_FAILURE_INFO) {
        return;
    }
    hf_pb_application_failure_info *info = failure->application_failure_info;
    failure->message = hf_arena_copy(&act->arena, hf_str_of(said->body->message));
    info->type = hf_arena_copy(&act->arena, hf_str_of(said->body->type));
    info->non_retryable = said->is_final;
    info->details = hf_payload_encode(&act->arena, said->details);
    if (said->retry_after.ns > 0) {
        info->next_retry_delay = hf_pb_duration_of(said->retry_after);
    }
}

static void answer_failed(activity *act, hf_pb_failure *failure)
{
    hf_pb_respond_activity_task_failed_request request = {.namespace = act->worker->namespace_,
                                                          .identity = act->worker->identity,
                                                          .task_token = act->task->task_token,
                                                          .failure = failure};
    if (act->is_dirty) {
        hf_payload details = hf_activity_take_details(act);
        request.last_heartbeat_details = hf_payload_encode(&act->arena, details);
        hf_payload_free(&details);
    }
    answer(act, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, &request);
}

/* A result that cannot be sent is a final failure: the work is done, and another attempt would do it again and make
 * the same result. */
hf_status hf_activity_check_result(activity *act, hf_status status, hf_pb_failure **failure)
{
    hf_op op;
    hf_op_init(&op);
    bool is_sent = status == HF_OK || (status == HF_ERR_CANCELED && atomic_load(&act->is_cancel_requested));
    if (!is_sent || hf_payload_check_result(&op, "the result of the activity", act->out, act->in) == HF_OK) {
        return status;
    }
    bool is_too_big = op.status == HF_ERR_TOO_BIG; /* the engine uses the same word */
    *failure = hf_failure_application(&act->arena, hf_str_of(is_too_big ? "TooBig" : hf_status_name(op.status)),
                                      hf_arena_copy(&act->arena, hf_str_of(op.message)), true);
    return op.status;
}

/* The time of the attempt is over. The service sees that, too, and the workflow gets HF_ERR_TIMEOUT. A failure that
 * arrived just before would give another outcome by chance. So only the details of the last heartbeat are sent. */
static void leave_to_timeout(activity *act)
{
    if (act->is_dirty) {
        hf_payload details = hf_activity_take_details(act);
        hf_pb_record_activity_task_heartbeat_request request = {.namespace = act->worker->namespace_,
                                                                .identity = act->worker->identity,
                                                                .task_token = act->task->task_token,
                                                                .details = hf_payload_encode(&act->arena, details)};
        hf_payload_free(&details);
        answer(act, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT, &request);
    }
}

/* A local activity: the job decides what becomes of it. A failure of NULL means that its time is over. */
static void tell_job(activity *act, hf_status status, hf_pb_failure *failure)
{
    if (status == HF_PENDING) {
        status = HF_ERR_UNSUPPORTED;
        failure = hf_failure_application(&act->arena, hf_str_of(hf_status_name(status)),
                                         HF_STR("a local activity cannot be answered later (HF_PENDING)"), true);
    }
    if (status == HF_ERR_CANCELED && atomic_load(&act->is_cancel_requested)) {
        failure = hf_failure_canceled(&act->arena, HF_STR("the workflow canceled the activity"),
                                      hf_payload_encode(&act->arena, act->out));
    } else if (status != HF_OK && hf_now(NULL).ns >= act->until_ns) {
        failure = NULL;
    } else if (status == HF_ERR_FAILED) {
        hf_activity_apply_verdict(act, failure);
    }
    hf_local_job_hear(act->job, act->facts.attempt, status, &act->out, status != HF_OK ? failure : NULL);
}

/* The answer comes later, from somebody else: from now on the attempt belongs to no process. A heartbeat carries that
 * word, and the last details. */
static void let_go(activity *act)
{
    hf_pb_record_activity_task_heartbeat_request request = {
        .namespace = act->worker->namespace_, .identity = act->worker->identity, .task_token = act->task->task_token};
    if (act->is_dirty) {
        hf_payload details = hf_activity_take_details(act);
        request.details = hf_payload_encode(&act->arena, details);
        hf_payload_free(&details);
    }
    (void)answer_as(act, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT, &request, true);
}

/* `failure` is in the arena, or NULL. */
static void tell(activity *act, hf_status status, hf_pb_failure *failure)
{
    hf_worker *worker = act->worker;
    if (atomic_load(&act->is_gone)) {
        return;
    }
    status = hf_activity_check_result(act, status, &failure);
    if (act->job != NULL) {
        tell_job(act, status, failure);
        return;
    }
    if (status == HF_PENDING) {
        let_go(act);
    } else if (status == HF_OK) {
        hf_pb_respond_activity_task_completed_request request = {.namespace = worker->namespace_,
                                                                 .identity = worker->identity,
                                                                 .task_token = act->task->task_token,
                                                                 .result = hf_payload_encode(&act->arena, act->out)};
        answer(act, HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED, &request);
    } else if (status == HF_ERR_CANCELED && atomic_load(&act->is_cancel_requested)) {
        hf_pb_respond_activity_task_canceled_request request = {.namespace = worker->namespace_,
                                                                .identity = worker->identity,
                                                                .task_token = act->task->task_token,
                                                                .details = hf_payload_encode(&act->arena, act->out)};
        answer(act, HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED, &request);
    } else if (hf_now(NULL).ns >= atomic_load(&act->until_ns) || act->has_lapsed) {
        leave_to_timeout(act);
    } else {
        if (status == HF_ERR_FAILED) {
            hf_activity_apply_verdict(act, failure);
        }
        answer_failed(act, failure);
    }
}

/* ---- The life of an activity ------------------------------------------------------------------------------------- */

static hf_status call_function(void *arg)
{
    activity *act = arg;
    return act->job != NULL && act->job->effect != NULL ? act->job->effect(act->job->effect_arg, &act->out)
                                                        : act->entry->function(act->in, &act->out);
}

/* How long this attempt may take, and which option bounds it; 0 = no bound. */
static hf_span timeout_of(const activity *act, const char **ret_reason)
{
    hf_span one = hf_pb_duration_span(act->task->start_to_close_timeout);
    hf_span all = hf_pb_duration_span(act->task->schedule_to_close_timeout);
    if (all.ns > 0 && act->task->scheduled_time.has) {
        int64_t left = hf_ns_later(hf_pb_timestamp_time(act->task->scheduled_time).ns, all) - hf_wall_now(NULL).ns;
        all.ns = left > 1 ? left : 1;
    }
    bool is_one = one.ns > 0 && (all.ns <= 0 || one.ns < all.ns);
    *ret_reason = is_one ? "the start_to_close timeout of the activity is over"
                         : "the schedule_to_close timeout of the activity is over";
    return is_one ? one : all;
}

/* Runs the function on a thread of the pool. `*ret_failure` is encoded before the scope frees the branch. */
static hf_status call_on_pool(activity *act, hf_scope *scope, hf_pb_failure **ret_failure)
{
    hf_branch *job = NULL;
    hf_status status =
        hf_fork(scope, call_function, act, .name = act->facts.name,
                .on = hf_activity_is_local(act) ? act->worker->local_pool : act->worker->pool, .ret_branch = &job);
    if (status != HF_OK) {
        *ret_failure = hf_failure_encode(&act->arena, hf_error(), status);
        return status;
    }
    HF_IGNORE(hf_join(scope)); /* the status of the branch is used instead */
    status = hf_branch_status(job);
    if (status != HF_OK) {
        *ret_failure = hf_failure_encode(&act->arena, hf_branch_failure(job), status);
    }
    return status;
}

/* Scopes that the function left open are closed first, because their fibers may still use the activity. Branches on
 * a pool are treated the same way, with a line in the log. */
static hf_status close_inner(activity *act, hf_status status)
{
    hf_fiber *self = hf_enter(NULL);
    bool is_open = self->scope != act->work;
    while (self->scope != act->work) {
        hf_log(self->rt, HF_LOG_ERROR, "misuse", "message=activity_returned_with_open_scope activity=%s scope=%s",
               act->facts.name, self->scope->name);
        (void)hf_scope_close_on(self, self->scope);
    }
    if (is_open && status == HF_OK) {
        status = hf_refuse_at(self, HF_ERR_MISUSE, act->facts.name,
                              "the activity returned with a scope still open; close every scope it opens");
    }
    HF_LEAVE(self, status);
}

/* Runs the function on this fiber, inside the scope. */
static hf_status call_here(activity *act, hf_pb_failure **ret_failure)
{
    atomic_store_explicit(&act->fiber, (const hf_fiber *)(const void *)hf_self_get(), memory_order_relaxed);
    hf_status status = (hf_status)hf_call_guarded((int (*)(void *))(void (*)(void))call_function, act);
    status = close_inner(act, status);
    atomic_store_explicit(&act->fiber, NULL, memory_order_relaxed);
    if (status != HF_OK) {
        *ret_failure = hf_failure_encode(&act->arena, hf_error_as(status), status);
    }
    return status;
}

hf_status hf_activity_call(activity *act, hf_scope *scope, hf_pb_failure **ret_failure)
{
    return act->entry->on_fiber ? call_here(act, ret_failure) : call_on_pool(act, scope, ret_failure);
}

/* Runs the function, or waits for a call of it that others share. */
static hf_status work(activity *act, hf_pb_failure **ret_failure)
{
    HF_AUTO(hf_scope_close) hf_scope *beats = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_status status = hf_scope_open(&beats, .name = "heartbeats", .join = HF_JOIN_COLLECT);
    act->beats = beats;
    if (status == HF_OK) {
        const char *reason = NULL;
        hf_span bound = timeout_of(act, &reason);
        atomic_store(&act->until_ns, bound.ns > 0 ? hf_ns_later(hf_now(NULL).ns, bound) : INT64_MAX);
        status = hf_scope_open(&scope, .name = act->facts.name, .join = HF_JOIN_COLLECT, .timeout = bound);
        if (status == HF_OK) {
            scope->deadline_reason = reason;
            hf_activity_be_reachable(act, scope);
            hf_activity_expect_beats(act);
        }
    }
    if (status != HF_OK) {
        *ret_failure = hf_failure_encode(&act->arena, hf_error(), status);
        return status;
    }
    status = act->entry->memo.ops != NULL ? hf_memo_share(act, ret_failure) : hf_activity_call(act, scope, ret_failure);
    if (atomic_load(&act->is_beating)) {
        HF_IGNORE(hf_scope_cancel(beats, .reason = "the activity has ended"));
        HF_IGNORE(hf_join(beats)); /* it may be about to cancel the scope that is closed next */
    }
    hf_activity_be_unreachable(act);
    return status;
}

void hf_activity_release(activity *act)
{
    hf_worker *worker = act->worker;
    hf_assert(atomic_load(&worker->jobs_count) > 0); /* this one */
    hf_spin_lock(&worker->busy_lock);
    hf_assert(hf_node_is_linked(&act->busy));
    hf_list_remove(&act->busy);
    hf_spin_unlock(&worker->busy_lock);
    hf_activity_await_pins(act); /* nobody pins it any more */
    hf_payload_free(&act->out);
    hf_payload_free(&act->details);
    free_verdict(act, act->verdict);
    (void)hf_chan_free(atomic_load(&act->beat));
    hf_activity_free_slot(act);
    if (act->job != NULL) {
        hf_local_job_unref(act->job);
    }
    hf_arena arena = act->arena; /* it lies there, too */
    hf_arenas_give(&worker->arenas, &arena);
}

/* Whether its input is still what the codec made: it could not be decoded, which fails this attempt only. */
static bool is_encoded(const activity *act)
{
    const hf_codec *codec = act->worker->service->codec;
    return codec != NULL && act->in.encoding != NULL && strcmp(act->in.encoding, codec->encoding) == 0;
}

static hf_status run_activity(void *arg)
{
    activity *act = arg;
    hf_worker *worker = act->worker;
    hf_pb_failure *failure = NULL;
    hf_assert(!atomic_load(&act->has_returned));
    hf_status status = hf_local_set(&hf_activity_local, act);
    if (status == HF_OK && act->entry == NULL) {
        char text[HF_MESSAGE_LEN_MAX];
        (void)snprintf(
            text, sizeof text,
            "the worker of task queue '%.*s' has no activity '%.200s': add it with hf_worker_add_activity, or "
            "give hf_activity_run another .task_queue",
            worker->queue.len < 100 ? (int)worker->queue.len : 100, worker->queue.data, act->facts.name);
        hf_log(worker->rt, HF_LOG_ERROR, "activity_unknown", "activity=%s queue=%.*s workflow=%s attempt=%d message=%s",
               act->facts.name, HF_STR_ARGS(worker->queue), act->facts.workflow_id, act->facts.attempt,
               "this worker does not have it: add it with hf_worker_add_activity, or give another .task_queue");
        failure = hf_failure_application(&act->arena, HF_STR("NotFound"), hf_arena_copy(&act->arena, hf_str_of(text)),
                                         worker->unknown_is_final);
        status = HF_ERR_NOT_FOUND;
    } else if (status == HF_OK && is_encoded(act)) {
        failure = hf_failure_application(&act->arena, hf_str_of(hf_status_name(HF_ERR_INVALID)),
                                         HF_STR("the codec of this worker cannot decode the activity's input"), false);
        status = HF_ERR_INVALID;
    } else if (status == HF_OK) {
        bool is_kept = act->entry->memo.ops != NULL && hf_memo_answer(act, &status, &failure);
        status = is_kept ? status : work(act, &failure);
    }
    atomic_store_explicit(&act->has_returned, true, memory_order_relaxed);
    tell(act, status, failure);
    hf_activity_release(act);
    hf_worker_count(worker, &worker->jobs_count, -1);
    return HF_OK;
}

static const char *text_in(hf_arena *arena, hf_str text)
{
    const char *copy = hf_arena_copy(arena, text).data;
    return copy != NULL ? copy : "";
}

static const hf_function_entry EFFECT = {.on_fiber = false}; /* of hf_side_effect, which has a function of its own */

static void fill_facts(activity *act)
{
    const hf_pb_poll_activity_task_queue_response *task = act->task;
    const hf_pb_workflow_execution none = {0};
    const hf_pb_workflow_execution *execution = task->workflow_execution != NULL ? task->workflow_execution : &none;
    hf_str name = task->activity_type != NULL ? task->activity_type->name : HF_STR("");
    const char *reason = NULL;
    hf_span bound = timeout_of(act, &reason);
    act->facts = (hf_activity_facts){
        .workflow_id = text_in(&act->arena, execution->workflow_id),
        .run_id = text_in(&act->arena, execution->run_id),
        .id = text_in(&act->arena, task->activity_id),
        .name = text_in(&act->arena, name),
        .attempt = task->attempt,
        .deadline = {bound.ns > 0 ? hf_ns_later(hf_wall_now(NULL).ns, bound) : INT64_MAX},
        .heartbeat = hf_pb_duration_span(task->heartbeat_timeout),
        .last = hf_payload_view(&act->arena, task->heartbeat_details),
    };
    act->in = hf_payload_view(&act->arena, task->input);
    bool is_effect = act->job != NULL && act->job->effect != NULL;
    act->entry = is_effect ? &EFFECT : hf_function_find(&act->worker->activities, name);
}

hf_status hf_activity_stand_in(activity *act, const activity *by)
{
    hf_worker *worker = act->worker;
    hf_arena *arena = &act->arena;
    hf_assert(act->body != NULL && by->entry != NULL && by->body == NULL);
    atomic_init(&act->until_ns, INT64_MAX); /* timeouts are those of the attempts */
    act->lapse_ns = INT64_MAX;
    act->task = HF_ARENA_NEW(arena, hf_pb_poll_activity_task_queue_response);
    act->entry = by->entry;
    act->facts = by->facts;
    act->facts.workflow_id = text_in(arena, hf_str_of(by->facts.workflow_id));
    act->facts.run_id = text_in(arena, hf_str_of(by->facts.run_id));
    act->facts.id = text_in(arena, hf_str_of(by->facts.id));
    act->facts.name = text_in(arena, hf_str_of(by->facts.name));
    act->facts.deadline = (hf_time){INT64_MAX};
    act->facts.last = hf_payload_view(arena, hf_payload_encode(arena, by->facts.last));
    act->in = hf_payload_view(arena, hf_payload_encode(arena, by->in));
    act->started_ns = by->started_ns;
    hf_spin_lock(&worker->busy_lock);
    hf_list_push_back(&worker->busy, &act->busy);
    hf_spin_unlock(&worker->busy_lock);
    return arena->status;
}

/* Returns an activity that this worker cannot begin: it has no memory, or it stops (HF_ERR_CANCELED). A dropped attempt would last until its timeout. */
static void return_task(hf_worker *worker, hf_str token, hf_status why)
{
    if (!worker->service->takes_nothing_back) {
        worker->service->ops->unwanted(worker->service, token);
        return;
    }
    hf_arena arena;
    hf_op op;
    hf_call call;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_IGNORE(hf_shield_open(hf_seconds(RETURN_SECONDS), &shield)); /* without an answer it times out */
    hf_op_init(&op);
    hf_arena_init(&arena, worker->memory);
    hf_pb_respond_activity_task_failed_request request = {
        .namespace = worker->namespace_,
        .identity = worker->identity,
        .task_token = token,
        .failure = hf_failure_application(&arena, hf_str_of(hf_status_name(why)),
                                          why == HF_ERR_NOMEM
                                              ? HF_STR("the worker that got this activity has no memory for it")
                                              : HF_STR("the worker that got this activity stops"),
                                          false)};
    hf_worker_call_init(worker, &call, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, &request, &arena);
    (void)hf_service_ask(&op, worker->service, &call);
    hf_arena_deinit(&arena);
}

/* Enters it in the list of the busy ones and starts its fiber, which may have ended when this returns. On failure it is
 * freed. Fails: HF_ERR_NOMEM; HF_ERR_CANCELED: the worker takes nothing on. */
static hf_status start(activity *act)
{
    hf_worker *worker = act->worker;
    atomic_init(&act->until_ns, INT64_MAX);
    act->lapse_ns = INT64_MAX;
    atomic_init(&act->has_slot, true);
    fill_facts(act);
    act->started_ns = hf_now(NULL).ns;
    hf_spin_lock(&worker->busy_lock);
    hf_list_push_back(&worker->busy, &act->busy);
    hf_spin_unlock(&worker->busy_lock);
    hf_status status = act->arena.status;
    hf_worker_count(worker, &worker->jobs_count, 1);
    if (status == HF_OK) {
        status = hf_fork(worker->jobs, run_activity, act, .name = "activity",
                         .stack_size = act->entry != NULL ? act->entry->stack_size : 0);
    }
    if (status != HF_OK) {
        if (act->job == NULL) {
            return_task(worker, act->task->task_token, status);
        }
        hf_activity_release(act);
        hf_worker_count(worker, &worker->jobs_count, -1);
    }
    return status;
}

hf_status hf_activity_begin_local(hf_op *op, hf_local_job *job)
{
    hf_worker *worker = job->worker;
    hf_arena arena = hf_arenas_take(&worker->arenas);
    activity *act = HF_ARENA_NEW(&arena, activity);
    if (act == NULL) {
        hf_arenas_give(&worker->arenas, &arena);
        (void)hf_sem_release(worker->local_slots, 1);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a local activity");
    }
    act->worker = worker;
    act->job = job;
    atomic_fetch_add(&job->refs, 1);
    act->arena = arena;
    act->task = &job->task;
    return start(act);
}

hf_status hf_activity_begin(hf_op *op, hf_worker *worker, hf_arena *arena,
                            hf_pb_poll_activity_task_queue_response *task)
{
    activity *act = HF_ARENA_NEW(arena, activity);
    if (act == NULL) {
        return_task(worker, task->task_token, HF_ERR_NOMEM);
        hf_arenas_give(&worker->arenas, arena);
        (void)hf_sem_release(worker->activity_slots, 1);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for an activity");
    }
    hf_assert(task->task_token.len > 0); /* poller.c has checked it */
    act->worker = worker;
    act->arena = *arena;
    act->task = task;
    return start(act) == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for an activity");
}
