/* Executes local activities: a fiber for each, which waits for a slot, starts an attempt (activity.c), decides what its end
 * means, pauses, and tries again. The end goes to the driver of the run, which sleeps in local_step.c.
 *
 *     waits for a slot --> attempt --> completed, canceled, final: the end
 *           ^                 |
 *           +---- pause <-----+ failed, or out of time
 *                   |
 *                   +--> longer than .timer_after: the end, with the pause; the workflow makes a timer of it
 *
 * An attempt is a fiber of its own: one that does not return when its time is over is left alone, and its result is
 * dropped. */
#include "worker/activity_private.h"
#include "worker/keeper_private.h"
#include "worker/local.h"

#include "history/payload.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    LEFT_ALONE_SECONDS = 10, /* after its time is over, as a zombie (activity.h) */
    ID_LEN = 32
};

/* ---- Making and freeing -------------------------------------------------------------------------------------------- */

void hf_local_job_unref(hf_local_job *job)
{
    int refs = atomic_fetch_sub(&job->refs, 1);
    hf_assert(refs > 0); /* worker-J3 */
    if (refs == 1) {
        hf_allocator memory = job->worker->memory;
        hf_payload_free(&job->said.out);
        (void)hf_chan_free(job->cancel);
        (void)hf_chan_free(job->answered);
        hf_arenas_give(&job->worker->arenas, &job->arena);
        memory.release(memory.state, job, sizeof *job);
    }
}

static hf_pb_retry_policy *policy_of(hf_arena *arena, const hf_wf_local *local)
{
    hf_pb_retry_policy *policy = HF_ARENA_NEW(arena, hf_pb_retry_policy);
    if (policy == NULL) {
        return NULL;
    }
    if (local->effect != NULL) {
        policy->maximum_attempts = 1;
        return policy;
    }
    const hf_activity_options *o = local->options;
    hf_span first = hf_wf_first_pause(o);
    int64_t longest = 0;
    if (o->retry_max.ns > 0) {
        longest = o->retry_max.ns;
    } else if (__builtin_mul_overflow(first.ns, 100, &longest)) {
        longest = INT64_MAX;
    }
    policy->initial_interval = hf_pb_duration_of(first);
    policy->backoff_coefficient = o->retry_coefficient > 0 ? o->retry_coefficient : 2.0;
    policy->maximum_interval = hf_pb_duration_of(hf_nanoseconds(longest));
    policy->maximum_attempts = o->attempts_max == HF_OFF ? 1 : (o->attempts_max > 0 ? o->attempts_max : 0);
    size_t count = 0;
    while (o->final_types != NULL && o->final_types[count] != NULL) {
        count++;
    }
    policy->non_retryable_error_types.items = count > 0 ? HF_ARENA_ARRAY(arena, hf_str, count) : NULL;
    for (size_t i = 0; policy->non_retryable_error_types.items != NULL && i < count; i++) {
        policy->non_retryable_error_types.items[i] = hf_arena_copy(arena, hf_str_of(o->final_types[i]));
        policy->non_retryable_error_types.count = i + 1;
    }
    return policy;
}

/* What a poll would bring, without a token: nothing is answered. */
static void fill_task(hf_local_job *job, const hf_wf_local *local)
{
    hf_arena *arena = &job->arena;
    const hf_wf *wf = local->wf;
    char id[ID_LEN];
    hf_pb_workflow_execution *execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    hf_pb_activity_type *type = HF_ARENA_NEW(arena, hf_pb_activity_type);
    if (execution == NULL || type == NULL) {
        return;
    }
    (void)snprintf(id, sizeof id, "local-%" PRIu64, local->first_seq);
    execution->workflow_id = hf_arena_copy(arena, wf->id);
    execution->run_id = hf_arena_copy(arena, wf->run_id);
    type->name = hf_arena_copy(arena, hf_str_of(local->name));
    job->task.workflow_execution = execution;
    job->task.activity_type = type;
    job->task.activity_id = hf_arena_copy(arena, hf_str_of(id));
    job->task.attempt = local->attempt;
    job->task.input = hf_payload_encode(arena, local->in);
    if (local->options != NULL) {
        job->task.start_to_close_timeout = hf_duration_of_bound(local->options->start_to_close);
        job->task.schedule_to_close_timeout = hf_duration_of_bound(local->options->schedule_to_close);
        job->schedule_to_start = local->options->schedule_to_start;
    }
    hf_time scheduled = local->scheduled.ns > 0 ? local->scheduled : hf_wall_now(NULL);
    job->task.scheduled_time = hf_pb_timestamp_of(scheduled);
}

static hf_local_job *make(const hf_wf_local *local)
{
    hf_wf *wf = local->wf;
    hf_worker *worker = wf->worker;
    hf_local_job *job = worker->memory.allocate(worker->memory.state, sizeof *job, _Alignof(hf_local_job));
    if (job == NULL) {
        return NULL;
    }
    *job = (hf_local_job){.worker = worker,
                          .wf = wf,
                          .seq = local->seq,
                          .effect = local->effect,
                          .effect_arg = local->effect_arg,
                          .is_pinned = local->effect != NULL,
                          .timer_after = local->timer_after,
                          .attempt = local->attempt,
                          .arena = hf_arenas_take(&worker->arenas)};
    atomic_init(&job->refs, 1);
    fill_task(job, local);
    job->policy = policy_of(&job->arena, local);
    if (hf_chan_new(1, &job->cancel, .name = "cancel", .runtime = worker->rt) != HF_OK ||
        hf_chan_new(1, &job->answered, .name = "answered", .capacity = 1, .runtime = worker->rt) != HF_OK ||
        job->arena.status != HF_OK) {
        hf_local_job_unref(job);
        return NULL;
    }
    return job;
}

/* ---- Between the run and its job ------------------------------------------------------------------------------------- */

void hf_local_job_cancel(hf_local_job *job)
{
    hf_worker *worker = job->worker;
    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&worker->local_lock);
    job->is_canceled = true;
    hf_spin_unlock(&worker->local_lock);
    hf_leave(self);
    hf_activity_work *act = hf_activity_pin_local(job);
    if (act != NULL) {
        hf_activity_cancel(act);
    }
    (void)hf_chan_close(job->cancel); /* after the flag: who waits there looks at it */
}

void hf_local_job_leave(hf_local_job *job)
{
    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&job->worker->local_lock);
    hf_assert(!job->is_pinned || job->is_over); /* worker-J4 */
    job->wf = NULL;
    if (hf_node_is_linked(&job->end_node)) {
        hf_list_remove(&job->end_node);
    }
    hf_spin_unlock(&job->worker->local_lock);
    hf_leave(self);
    hf_list_remove(&job->node);
    hf_local_job_unref(job);
}

static bool is_canceled(hf_local_job *job)
{
    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&job->worker->local_lock);
    bool is = job->is_canceled;
    hf_spin_unlock(&job->worker->local_lock);
    hf_leave(self);
    return is;
}

/* Gives the end to the driver, if the run wants it. */
static void deliver(hf_local_job *job)
{
    hf_worker *worker = job->worker;
    hf_wait *driver = NULL;
    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&worker->local_lock);
    if (job->wf != NULL) {
        hf_list_push_back(&job->wf->local_ends, &job->end_node);
        driver = job->wf->local_waiter;
        job->wf->local_waiter = NULL;
    }
    hf_spin_unlock(&worker->local_lock);
    if (driver != NULL) {
        hf_wake(driver, HF_OK);
    }
    hf_leave(self);
}

/* ---- One attempt ----------------------------------------------------------------------------------------------------- */

void hf_local_job_hear(hf_local_job *job, int number, hf_status status, hf_payload *out, const hf_pb_failure *failure)
{
    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&job->worker->local_lock);
    bool is_heard = job->attempt == number && !job->is_answered;
    job->is_answered |= is_heard;
    hf_spin_unlock(&job->worker->local_lock);
    hf_leave(self);
    if (!is_heard) {
        return; /* its time was over long ago */
    }
    job->said.status = status;
    job->said.out = *out;
    *out = hf_payload_none();
    job->said.failure = failure != NULL ? HF_ARENA_NEW(&job->arena, hf_pb_failure) : NULL;
    if (job->said.failure != NULL) {
        (void)hf_pb_copy(&hf_pb_failure_type, failure, &job->arena, job->said.failure); /* arena.status tells */
    }
    HF_IGNORE(hf_chan_try_send(job->answered, ""));
}

static hf_span bound_of(const hf_local_job *job, bool *ret_is_all)
{
    hf_span one = hf_pb_duration_span(job->task.start_to_close_timeout);
    hf_span all = hf_pb_duration_span(job->task.schedule_to_close_timeout);
    if (all.ns > 0) {
        all.ns = hf_ns_later(hf_pb_timestamp_time(job->task.scheduled_time).ns, all) - hf_wall_now(NULL).ns;
        all.ns = all.ns > 1 ? all.ns : 1;
    }
    *ret_is_all = all.ns > 0 && (one.ns <= 0 || all.ns <= one.ns);
    return *ret_is_all ? all : one;
}

static void say_timeout(hf_local_job *job, int32_t type, const char *text)
{
    job->said.status = HF_ERR_TIMEOUT;
    job->said.failure = hf_failure_timeout(&job->arena, type, hf_str_of(text));
}

/* Nobody listens to the attempt at hand any more. False: it has just answered. */
static bool give_up_attempt(hf_local_job *job)
{
    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&job->worker->local_lock);
    bool is_given_up = !job->is_answered;
    job->is_answered = true;
    hf_spin_unlock(&job->worker->local_lock);
    hf_leave(self);
    return is_given_up;
}

static hf_status await_answer(hf_local_job *job, hf_span bound)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL; /* a stopping worker cancels the attempt, which then answers */
    char token = 0;
    hf_span span =
        bound.ns > 0 ? hf_nanoseconds(hf_ns_later(bound.ns, hf_seconds(LEFT_ALONE_SECONDS))) : HF_SPAN_UNLIMITED;
    HF_TRY(hf_worker_shield_open(job->worker->rt, &shield));
    hf_status status = hf_chan_recv(job->answered, &token, .timeout = span);
    if (status == HF_ERR_TIMEOUT && !give_up_attempt(job)) {
        status = hf_chan_recv(job->answered, &token);
    }
    return status;
}

/* Executes an attempt. job->said tells how it ended. Fails: HF_ERR_NOMEM. */
static hf_status attempt(hf_local_job *job)
{
    bool is_all = false;
    hf_op op;
    hf_op_init(&op);
    hf_span bound = bound_of(job, &is_all);
    hf_payload_free(&job->said.out);
    job->said.failure = NULL;
    job->task.attempt = job->attempt;
    HF_TRY(hf_activity_begin_local(&op, job));
    if (is_canceled(job)) {
        hf_local_job_cancel(job); /* it came before the attempt could be found */
    }
    hf_status status = await_answer(job, bound);
    if (status == HF_ERR_TIMEOUT) {
        say_timeout(job, is_all ? HF_TIMEOUT_TYPE_SCHEDULE_TO_CLOSE : HF_TIMEOUT_TYPE_START_TO_CLOSE,
                    "the local activity did not return when its time was over");
        return HF_OK;
    }
    HF_TRY(status);
    if (job->said.status != HF_OK &&
        job->said.failure == NULL) { /* activity.c knows that its time is over, not which */
        say_timeout(job, is_all ? HF_TIMEOUT_TYPE_SCHEDULE_TO_CLOSE : HF_TIMEOUT_TYPE_START_TO_CLOSE,
                    "the time of the local activity is over");
    }
    return job->arena.status;
}

/* ---- Retries --------------------------------------------------------------------------------------------------------- */

static bool names_type(const hf_pb_retry_policy *policy, hf_str type)
{
    for (size_t i = 0; i < policy->non_retryable_error_types.count; i++) {
        if (hf_str_equal(policy->non_retryable_error_types.items[i], type)) {
            return true;
        }
    }
    return false;
}

static bool is_final(const hf_pb_retry_policy *policy, const hf_pb_failure *failure)
{
    switch (failure->failure_info_case) {
    case HF_PB_FAILURE_APPLICATION_FAILURE_INFO:
        return failure->application_failure_info->non_retryable ||
               names_type(policy, failure->application_failure_info->type);
    case HF_PB_FAILURE_TIMEOUT_FAILURE_INFO:
        return failure->timeout_failure_info->timeout_type != HF_TIMEOUT_TYPE_START_TO_CLOSE;
    default:
        return true;
    }
}

static hf_span pause_of(const hf_local_job *job, const hf_pb_failure *failure)
{
    const hf_pb_retry_policy *policy = job->policy;
    double longest = (double)hf_pb_duration_span(policy->maximum_interval).ns;
    double pause = (double)hf_pb_duration_span(policy->initial_interval).ns;
    if (failure->failure_info_case == HF_PB_FAILURE_APPLICATION_FAILURE_INFO &&
        hf_pb_duration_span(failure->application_failure_info->next_retry_delay).ns > 0) {
        return hf_pb_duration_span(failure->application_failure_info->next_retry_delay);
    }
    for (int i = 1; i < job->attempt && pause < longest; i++) {
        pause *= policy->backoff_coefficient;
    }
    pause = pause < longest ? pause : longest;
    return hf_nanoseconds(pause < 9e18 ? (int64_t)pause : INT64_MAX);
}

/* Whether it is tried again, after `*ret_pause`. */
static bool is_tried_again(const hf_local_job *job, hf_span *ret_pause)
{
    const hf_pb_failure *failure = job->said.failure;
    hf_assert(failure != NULL && job->attempt > 0);
    if (is_final(job->policy, failure) ||
        (job->policy->maximum_attempts > 0 && job->attempt >= job->policy->maximum_attempts)) {
        return false;
    }
    hf_span all = hf_pb_duration_span(job->task.schedule_to_close_timeout);
    *ret_pause = pause_of(job, failure);
    return all.ns <= 0 || hf_ns_later(hf_wall_now(NULL).ns, *ret_pause) <
                              hf_ns_later(hf_pb_timestamp_time(job->task.scheduled_time).ns, all);
}

/* ---- The life of a job ------------------------------------------------------------------------------------------------- */

static void end_canceled(hf_local_job *job, const char *why)
{
    job->said.status = HF_ERR_CANCELED;
    job->said.failure = hf_failure_canceled(&job->arena, hf_str_of(why), NULL);
}

/* Pauses. False: it is canceled, or the worker stops. */
static bool rest(hf_local_job *job, hf_span pause)
{
    char token = 0;
    hf_status status = hf_chan_recv(job->cancel, &token, .timeout = pause);
    if (status == HF_ERR_CLOSED) {
        end_canceled(job, "it was canceled before its next attempt");
    }
    job->is_lost = status == HF_ERR_CANCELED;
    return status == HF_ERR_TIMEOUT;
}

/* Waits for a slot. False: it does not begin. */
static bool take_slot(hf_local_job *job)
{
    bool is_first = job->attempt == 1 && job->schedule_to_start.ns > 0;
    hf_wait_options bound = {.size = sizeof bound, .timeout = is_first ? job->schedule_to_start : hf_nanoseconds(0)};
    hf_status status = hf_sem_acquire_with(job->worker->local_slots, 1, &bound);
    if (status == HF_ERR_TIMEOUT) {
        say_timeout(job, HF_TIMEOUT_TYPE_SCHEDULE_TO_START, "the worker had no slot for the local activity in time");
    } else if (status != HF_OK) {
        job->is_lost = true;
    } else if (is_canceled(job)) {
        end_canceled(job, "it was canceled before it began");
        (void)hf_sem_release(job->worker->local_slots, 1);
    } else {
        return true;
    }
    return false;
}

/* Attempts until there is an end. */
static void execute(hf_local_job *job)
{
    hf_span pause = hf_nanoseconds(0);
    while (take_slot(job)) {
        job->is_answered = false; /* no attempt is under way */
        hf_status status = attempt(job);
        if (status != HF_OK) {
            job->is_lost = true; /* no memory: the run is played again later */
            return;
        }
        if (hf_canceled() != HF_OK && job->said.status != HF_OK && !is_canceled(job)) {
            job->is_lost = true;
            return;
        }
        if (job->said.status == HF_OK || is_canceled(job) || !is_tried_again(job, &pause)) {
            return;
        }
        if (pause.ns > job->timer_after.ns) {
            job->end.backoff = pause;
            return;
        }
        if (!rest(job, pause)) {
            return;
        }
        hf_fiber *self = hf_enter(NULL);
        hf_spin_lock(&job->worker->local_lock);
        job->attempt++;
        hf_spin_unlock(&job->worker->local_lock);
        hf_leave(self);
    }
}

static hf_status run_job(void *arg)
{
    hf_local_job *job = arg;
    hf_worker *worker = job->worker;
    hf_pb_payloads *result = NULL;
    execute(job);
    if (!job->is_lost && job->said.status == HF_OK) {
        result = hf_payload_encode(&job->arena, job->said.out);
    }
    hf_span backoff = job->end.backoff;
    job->end = (hf_local_end){
        .seq = job->seq,
        .attempt = job->attempt,
        .id = job->task.activity_id,
        .type = job->task.activity_type->name,
        .completed = hf_wall_now(NULL),
        .backoff = backoff,
        .scheduled = hf_pb_timestamp_time(job->task.scheduled_time),
        .result = result,
        .failure = job->said.status == HF_OK ? NULL : job->said.failure,
    };
    job->is_lost |= job->arena.status != HF_OK;
    hf_assert(job->is_lost || (job->end.failure != NULL) == (job->said.status != HF_OK)); /* worker-J2 */
    deliver(job);
    hf_local_job_unref(job);
    hf_worker_count(worker, &worker->jobs_count, -1);
    return HF_OK;
}

hf_status hf_local_job_begin(hf_op *op, hf_wf_local *local)
{
    hf_wf *wf = local->wf;
    hf_worker *worker = wf->worker;
    hf_local_job *job = make(local);
    hf_assert(local->job == NULL && local->is_begun); /* worker-J1 */
    if (job == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a local activity");
    }
    atomic_fetch_add(&job->refs, 1);
    hf_worker_count(worker, &worker->jobs_count, 1);
    hf_status status = hf_fork(worker->jobs, run_job, job, .name = "local activity");
    if (status != HF_OK) {
        hf_worker_count(worker, &worker->jobs_count, -1);
        hf_local_job_unref(job);
        hf_local_job_unref(job);
        return status == HF_ERR_NOMEM ? hf_fail(op, status, "no memory for a local activity") : HF_ERR_CANCELED;
    }
    hf_list_push_back(&wf->local_jobs, &job->node);
    local->job = job;
    return HF_OK;
}
