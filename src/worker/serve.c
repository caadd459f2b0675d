/* The fiber of a worker: polls until it is told to stop, then goes down the ladder of keeper.c, steps 1 to 3. */
#include "worker/keeper_private.h"

#include "fiber/crew/crew_private.h"
#include "fiber/io/signals.h"

#include <stdio.h>

enum { STICKY_SHARE = 5 }; /* one in this many workflow polls is for new runs */

static const int64_t GOODBYE_NS = INT64_C(1000000000); /* how long polls may take to come back */

hf_status hf_worker_shield_open(hf_runtime *rt, hf_shield **ret_shield)
{
    hf_fiber *self = hf_enter(rt);
    hf_scope_options options = {.size = sizeof options};
    hf_scope *scope = NULL;
    hf_status status = hf_scope_open_on(self, rt, &scope, &options, true);
    *ret_shield = (hf_shield *)(void *)scope;
    HF_LEAVE(self, status);
}

static hf_status stop_on_signal(void *arg)
{
    hf_worker *worker = arg;
    int number = 0;
    HF_TRY(hf_os_signals_next(worker->signals, &number));
    return hf_worker_stop(worker);
}

static hf_status start_pollers(hf_worker *worker, hf_scope *scope, hf_poller_seat seats[2])
{
    const hf_worker_options *o = &worker->options;
    seats[0] = (hf_poller_seat){worker, false};
    seats[1] = (hf_poller_seat){worker, true};
    bool has_cache = worker->sticky_queue.len > 0;
    int sticky = has_cache ? o->pollers_max - o->pollers_max / STICKY_SHARE : 0;
    sticky = has_cache && sticky >= o->pollers_max ? o->pollers_max - 1 : sticky;
    sticky = has_cache && sticky == 0 ? 1 : sticky; /* at least one of each */
    int normal = o->pollers_max - sticky > 0 ? o->pollers_max - sticky : 1;
    hf_assert(normal > 0 && sticky >= 0);
    for (int i = 0; i < normal + sticky && !hf_list_is_empty(&worker->workflows); i++) {
        HF_TRY(hf_fork(scope, hf_poll_workflows, &seats[i < normal ? 0 : 1], .name = "workflow poller"));
    }
    int activity_pollers = hf_tempo_pollers(&worker->tempo, o->activity_pollers_max);
    for (int i = 0; i < activity_pollers && o->activities_max > 0; i++) {
        if (!hf_list_is_empty(&worker->activities)) {
            HF_TRY(hf_fork(scope, hf_poll_activities, &seats[0], .name = "activity poller"));
        }
    }
    return o->stop_on != 0 ? hf_fork(scope, stop_on_signal, worker, .name = "signals") : HF_OK;
}

static int left_of(hf_worker *worker)
{
    return atomic_load(&worker->runs_count) + atomic_load(&worker->jobs_count);
}

/* Waits until all drivers and activities have ended, at most for `span`. False: some have not. */
static bool wait_for_end(hf_worker *worker, hf_span span)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL; /* canceling the activities cancels the waits around them, too */
    int64_t until = span.ns == INT64_MAX ? INT64_MAX : hf_instant_after(hf_now(NULL), span).ns;
    hf_status status = hf_worker_shield_open(worker->rt, &shield);
    while (left_of(worker) > 0 && status == HF_OK) {
        int64_t left = until == INT64_MAX ? INT64_MAX : until - hf_now(NULL).ns;
        char token = 0;
        status = left > 0 ? hf_chan_recv(worker->ended, &token, .timeout = hf_nanoseconds(left)) : HF_ERR_TIMEOUT;
    }
    return left_of(worker) == 0;
}

/* ---- The goodbye ------------------------------------------------------------------------------------------------- */

/* Tells the service that any worker may have the tasks of the sticky queue, at once. Polls that have its key come back. */
static void sign_off(hf_worker *worker)
{
    hf_arena arena;
    hf_arena_init(&arena, worker->memory);
    hf_pb_shutdown_worker_request request = {.namespace = worker->namespace_,
                                             .identity = worker->identity,
                                             .sticky_task_queue = worker->sticky_queue,
                                             .task_queue = worker->queue,
                                             .worker_instance_key = worker->instance_key,
                                             .reason = HF_STR("the worker stops")};
    hf_op op;
    hf_op_init(&op);
    hf_call call;
    hf_worker_call_init(worker, &call, HF_METHOD_SHUTDOWN_WORKER, &request, &arena);
    (void)hf_service_ask(&op, worker->service, &call); /* without it the tasks wait for sticky_timeout */
    hf_arena_deinit(&arena);
}

/* A poll that is canceled may have its task on the way, and a service that takes nothing back does not learn that nobody got it
 * (worker-K6). So the worker first signs off, and its polls come back with a task or without: a Holdfast server answers them at once.
 * Others may keep them, and then they are canceled after a moment. */
static void await_polls(hf_worker *worker)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL; /* the service may be away */
    hf_span moment =
        worker->options.shutdown_grace.ns < GOODBYE_NS ? worker->options.shutdown_grace : hf_nanoseconds(GOODBYE_NS);
    if (!worker->service->takes_nothing_back || moment.ns <= 0 ||
        hf_scope_open(&scope, .name = "goodbye", .timeout = moment) != HF_OK) {
        return;
    }
    atomic_store(&worker->has_signed_off, true);
    sign_off(worker);
    hf_status status = HF_OK;
    while (atomic_load(&worker->polls_count) > 0 && status == HF_OK) {
        char token = 0;
        status = hf_chan_recv(worker->ended, &token);
    }
}

/* ---- The ladder -------------------------------------------------------------------------------------------------- */

static void evict(hf_worker *worker)
{
    hf_wf_cache_close(worker);
    if (worker->sticky_queue.len > 0 && !atomic_load(&worker->has_signed_off)) {
        sign_off(worker);
    }
}

static void cancel_activities(hf_worker *worker)
{
    int count = atomic_load(&worker->jobs_count); /* 0: only workflows are left, which have a log line of their own */
    if (count > 0) {
        hf_log(worker->rt, HF_LOG_WARN, "worker_cancels_activities", "queue=%.*s count=%d", HF_STR_ARGS(worker->queue),
               count);
    }
    hf_activity_note_stop(worker);
    HF_IGNORE(hf_scope_cancel(worker->jobs, .reason = "the worker stops"));
}

/* The keeper counts from the stop, too: what the goodbye took is a part of the grace, or activities would have no time left between their cancel
 * and the last moment. */
static hf_span grace_left(hf_worker *worker)
{
    hf_span grace = worker->options.shutdown_grace;
    int64_t stop = atomic_load(&worker->stop_ns);
    if (stop == 0 || grace.ns == INT64_MAX) {
        return grace;
    }
    stop = stop > worker->started_ns ? stop : worker->started_ns;
    int64_t left = hf_instant_after((hf_instant){stop}, grace).ns - hf_now(NULL).ns;
    return hf_nanoseconds(left > 0 ? left : 0);
}

static void descend(hf_worker *worker)
{
    if ((hf_worker_tell(worker, HF_LIFE_TOLD) & HF_LIFE_DO_EVICT) != 0) {
        evict(worker);
    }
    if (wait_for_end(worker, grace_left(worker))) {
        return;
    }
    if ((hf_worker_tell(worker, HF_LIFE_GRACE_OVER) & HF_LIFE_DO_CANCEL) != 0) {
        cancel_activities(worker);
    }
    (void)wait_for_end(worker, HF_SPAN_UNLIMITED); /* the keeper ends this wait */
}

static void set_signals(hf_worker *worker, hf_os_signals *signals)
{
    hf_fiber *self = hf_enter(worker->rt);
    hf_spin_lock(&worker->signals_lock);
    worker->signals = signals;
    hf_spin_unlock(&worker->signals_lock);
    hf_leave(self);
}

/* The workers of a process share the signal. If it cannot be caught, the worker does not start. */
static hf_status open_signals(hf_worker *worker, hf_os_signals **ret_signals)
{
    int number = worker->options.stop_on;
    hf_status status = hf_os_signals_share(ret_signals, number);
    if (status == HF_ERR_EXISTS) {
        return hf_raise(
            status,
            "signal %d has another use in this process (hf_os_signals_open, or the watchdog): leave .stop_on out and "
            "stop the worker with hf_worker_stop",
            number);
    }
    HF_TRY(status);
    set_signals(worker, *ret_signals);
    return HF_OK;
}

/* Polls until the worker is told to stop. */
static hf_status poll_until_stop(hf_worker *worker)
{
    hf_poller_seat seats[2];
    HF_AUTO(hf_scope_close) hf_scope *pollers = NULL; /* leaving it cancels the polls */
    HF_TRY(hf_scope_open(&pollers, .name = "pollers", .join = HF_JOIN_COLLECT));
    HF_TRY(start_pollers(worker, pollers, seats));
    atomic_store(&worker->has_pollers, true);
    const char *reason = "canceled";
    HF_IGNORE(hf_chan_recv(worker->stop, &reason));
    hf_log(worker->rt, HF_LOG_INFO, "worker_stops", "queue=%.*s reason=%s", HF_STR_ARGS(worker->queue), reason);
    await_polls(worker);
    return HF_OK;
}

static hf_status serve(hf_worker *worker)
{
    HF_AUTO(hf_os_signals_close) hf_os_signals *signals = NULL;
    if (worker->options.stop_on != 0) {
        HF_TRY(open_signals(worker, &signals));
    }
    hf_status status = poll_until_stop(worker);
    set_signals(worker, NULL); /* before they are closed: the keeper may look */
    return status;
}

static hf_status work(hf_worker *worker)
{
    HF_AUTO(hf_shield_close)
    hf_shield *shield = NULL; /* the ladder has its own bounds, so a cancel does not end its waits */
    HF_AUTO(hf_scope_close) hf_scope *runs = NULL;
    HF_AUTO(hf_scope_close) hf_scope *jobs = NULL;
    hf_assert(worker->runs == NULL && worker->jobs == NULL); /* it runs once */
    HF_TRY(hf_worker_shield_open(worker->rt, &shield));
    HF_TRY(hf_scope_open(&runs, .name = "workflows", .join = HF_JOIN_COLLECT));
    HF_TRY(hf_scope_open(&jobs, .name = "activities", .join = HF_JOIN_COLLECT));
    hf_fiber *self = hf_enter(NULL);
    worker->home = self->sched->index;
    hf_leave(self);
    worker->runs = runs;
    worker->jobs = jobs;
    hf_status status = hf_wf_seats_fill(worker);
    status = status == HF_OK ? serve(worker) : status;
    descend(worker);
    return status != HF_OK ? status : __atomic_load_n(&worker->status, __ATOMIC_RELAXED);
}

void hf_worker_say_unsaid(hf_worker *worker, int count, char *text, size_t capacity)
{
    char why[HF_MESSAGE_LEN_MAX];
    hf_assert(count > 0 && capacity > 0);
    hf_spin_lock(&worker->busy_lock);
    memcpy(why, worker->unsaid_why, sizeof why);
    hf_spin_unlock(&worker->busy_lock);
    (void)snprintf(text, capacity,
                   count == 1 ? "%d activity had ended, and its result could not be given to the service: %.300s"
                              : "%d activities had ended, and their results could not be given to the service: %.300s",
                   count, why[0] != '\0' ? why : "it does not answer");
}

hf_status hf_worker_main(void *arg)
{
    hf_worker *worker = arg;
    worker->result = work(worker);
    hf_assert(left_of(worker) == 0); /* its scopes are closed */
    if (worker->result != HF_OK && worker->why[0] == '\0') {
        const hf_failure *failure = hf_error_as(worker->result);
        (void)snprintf(worker->why, sizeof worker->why, "the worker ended: %s",
                       failure != NULL ? failure->message : hf_status_text(worker->result));
    }
    if (worker->result == HF_OK && worker->unsaid_count > 0) { /* all activities have ended, so the count is final */
        worker->result = worker->unsaid_status;
        hf_worker_say_unsaid(worker, worker->unsaid_count, worker->why, sizeof worker->why);
    }
    if ((hf_worker_tell(worker, HF_LIFE_ENDED) & HF_LIFE_DO_RING) != 0) {
        hf_worker_ring(worker);
    }
    return HF_OK;
}
