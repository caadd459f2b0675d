/* The worker: its registry, its life, and how it stops.
 *
 *     hf_worker_run: scopes "workflows" and "activities", inside them scope "pollers"; waits for a reason to stop
 *     the ladder:    1  pollers are canceled: nothing new comes in; the service forgets the sticky queue
 *                    2  cached workflows are evicted, each after the step it is at; activities may finish (grace)
 *                    3  activities are canceled (force)
 *                    4  what still runs is reported, and waited for: it uses our memory */
#include "worker/worker_private.h"

#include <stdio.h>

enum {
    WORKFLOWS_MAX = 200,
    ACTIVITIES_MAX = 200,
    CACHED_MAX = 1000,
    POLLERS_MAX = 32, /* polls cost little in this process; over a network fewer would do */
    STICKY_SHARE = 5, /* of so many workflow polls one is for new runs */
    NAME_LEN_MAX = HF_KEY_LEN_MAX
};

/* ---- Making -------------------------------------------------------------------------------------------------------------- */

static int or_default(int number, int by_default)
{
    return number == 0 ? by_default : (number < 0 ? 0 : number);
}

static hf_span span_or(hf_span span, hf_span by_default)
{
    return span.ns == 0 ? by_default : (span.ns < 0 ? hf_nanoseconds(0) : span);
}

static hf_worker_options with_defaults(const hf_worker_options *given)
{
    hf_worker_options o = *given;
    o.workflows_max = or_default(o.workflows_max, WORKFLOWS_MAX);
    o.activities_max = or_default(o.activities_max, ACTIVITIES_MAX);
    o.cached_max = or_default(o.cached_max, CACHED_MAX);
    o.cached_bytes_max = o.cached_bytes_max > 0 ? o.cached_bytes_max : (size_t)256 << 20;
    o.pollers_max = or_default(o.pollers_max, POLLERS_MAX);
    o.activity_pollers_max = or_default(o.activity_pollers_max, POLLERS_MAX);
    o.sticky_timeout = span_or(o.sticky_timeout, hf_seconds(10));
    o.shutdown_grace = span_or(o.shutdown_grace, hf_seconds(10));
    o.shutdown_force = span_or(o.shutdown_force, hf_seconds(5));
    return o;
}

static hf_status name_it(hf_worker *worker, const char *task_queue)
{
    char text[2 * NAME_LEN_MAX];
    char uuid[HF_UUID_LEN];
    const hf_worker_options *o = &worker->options;
    hf_arena *names = &worker->names;
    HF_TRY(hf_uuid_make(worker->rt, uuid));
    worker->queue = hf_arena_copy(names, hf_str_of(task_queue));
    worker->name_space = hf_arena_copy(names, hf_str_of(o->namespace_ != NULL ? o->namespace_ : "default"));
    (void)snprintf(text, sizeof text, "worker@%s", task_queue);
    worker->identity = hf_arena_copy(names, hf_str_of(o->identity != NULL ? o->identity : text));
    if (o->cached_max > 0) {
        (void)snprintf(text, sizeof text, "%s-%s", task_queue, uuid);
        worker->sticky_queue = hf_arena_copy(names, hf_str_of(text));
    }
    return names->status;
}

static hf_status make_parts(hf_worker *worker)
{
    const hf_worker_options *o = &worker->options;
    hf_runtime *rt = worker->rt;
    int threads = o->activities_max < HF_POOL_THREADS_MAX ? o->activities_max : HF_POOL_THREADS_MAX;
    HF_TRY(hf_chan_new(&worker->stop, sizeof(const char *), .name = "stop", .capacity = 1, .runtime = rt));
    HF_TRY(hf_chan_new(&worker->never, 1, .name = "never", .runtime = rt));
    HF_TRY(hf_chan_new(&worker->ended, 1, .name = "ended", .capacity = 1, .runtime = rt));
    HF_TRY(hf_sem_new(&worker->workflow_slots, o->workflows_max, .name = "workflow slots", .runtime = rt));
    HF_TRY(hf_sem_new(&worker->activity_slots, o->activities_max, .name = "activity slots", .runtime = rt));
    return threads > 0 ? hf_pool_new(&worker->pool, .name = "activities", .limit = threads, .runtime = rt) : HF_OK;
}

static hf_status make(hf_worker *worker, const char *task_queue)
{
    if (worker->rt == NULL) {
        HF_TRY(hf_runtime_new(&worker->rt, .name = "worker"));
        worker->owns_runtime = true;
    }
    HF_TRY(make_parts(worker));
    return name_it(worker, task_queue);
}

hf_status hf_worker_new_with(hf_service *service, const char *task_queue, hf_worker **ret_worker,
                             const hf_worker_options *options)
{
    static const hf_worker_options DEFAULTS = {.size = sizeof DEFAULTS};
    options = options != NULL ? options : &DEFAULTS;
    HF_TRY(hf_not_in_workflow("hf_worker_new"));
    if (service == NULL || task_queue == NULL || ret_worker == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_worker_new needs a service, a task queue and a place for the worker");
    }
    if (task_queue[0] == '\0' || strnlen(task_queue, NAME_LEN_MAX + 1) > NAME_LEN_MAX) {
        return hf_raise(HF_ERR_INVALID, "the name of a task queue has 1 to %d bytes", NAME_LEN_MAX);
    }
    hf_allocator memory = hf_data_memory();
    hf_worker *worker = memory.allocate(memory.state, sizeof *worker, _Alignof(hf_worker));
    if (worker == NULL) {
        return hf_raise(HF_ERR_NOMEM, "no memory for a worker");
    }
    memset(worker, 0, sizeof *worker);
    worker->memory = memory;
    worker->service = service;
    worker->rt = options->runtime != NULL ? options->runtime : hf_runtime_current();
    worker->options = with_defaults(options);
    hf_arena_init(&worker->names, memory);
    hf_list_init(&worker->workflows);
    hf_list_init(&worker->activities);
    hf_wf_cache_init(&worker->cache);
    hf_status status = make(worker, task_queue);
    if (status != HF_OK) {
        (void)hf_worker_free(worker);
        return status;
    }
    *ret_worker = worker;
    return HF_OK;
}

hf_status hf_worker_free(hf_worker *worker)
{
    if (worker == NULL) {
        return HF_OK;
    }
    if (atomic_load(&worker->state) == HF_WORKER_RUNNING) {
        return hf_raise(HF_ERR_MISUSE, "a worker is freed after hf_worker_run has returned");
    }
    hf_allocator memory = worker->memory;
    HF_TRY(hf_dispatcher_free(worker->pool));
    (void)hf_sem_free(worker->activity_slots);
    (void)hf_sem_free(worker->workflow_slots);
    (void)hf_chan_free(worker->ended);
    (void)hf_chan_free(worker->never);
    (void)hf_chan_free(worker->stop);
    if (worker->owns_runtime) {
        (void)hf_runtime_free(worker->rt);
    }
    hf_arena_deinit(&worker->names);
    memory.release(memory.state, worker, sizeof *worker);
    return HF_OK;
}

/* ---- The registry ---------------------------------------------------------------------------------------------------------- */

const hf_entry *hf_entry_find(const hf_list *entries, hf_str name)
{
    HF_LIST_EACH(node, entries)
    {
        const hf_entry *entry = HF_CONTAINER(node, hf_entry, node);
        if (hf_str_equal(entry->name, name)) {
            return entry;
        }
    }
    return NULL;
}

static hf_status add(hf_worker *worker, hf_list *entries, const char *name, hf_function function, const char *verb)
{
    if (worker == NULL || name == NULL || function == NULL) {
        return hf_raise(HF_ERR_MISUSE, "%s needs a worker, a name and a function", verb);
    }
    if (atomic_load(&worker->state) != HF_WORKER_NEW) {
        return hf_raise(HF_ERR_MISUSE, "%s comes before hf_worker_run", verb);
    }
    if (name[0] == '\0' || strnlen(name, NAME_LEN_MAX + 1) > NAME_LEN_MAX) {
        return hf_raise(HF_ERR_INVALID, "%s: a name has 1 to %d bytes", verb, NAME_LEN_MAX);
    }
    if (hf_entry_find(entries, hf_str_of(name)) != NULL) {
        return hf_raise(HF_ERR_EXISTS, "%s: '%s' is there already", verb, name);
    }
    hf_entry *entry = HF_ARENA_NEW(&worker->names, hf_entry);
    hf_str copy = hf_arena_copy(&worker->names, hf_str_of(name));
    if (entry == NULL || copy.data == NULL) {
        return hf_raise(HF_ERR_NOMEM, "%s: no memory for '%s'", verb, name);
    }
    entry->name = copy;
    entry->function = function;
    hf_list_push_back(entries, &entry->node);
    return HF_OK;
}

hf_status hf_worker_add_workflow(hf_worker *worker, const char *name, hf_function workflow)
{
    HF_TRY(hf_not_in_workflow("hf_worker_add_workflow"));
    return add(worker, worker != NULL ? &worker->workflows : NULL, name, workflow, "hf_worker_add_workflow");
}

hf_status hf_worker_add_activity(hf_worker *worker, const char *name, hf_function activity)
{
    HF_TRY(hf_not_in_workflow("hf_worker_add_activity"));
    return add(worker, worker != NULL ? &worker->activities : NULL, name, activity, "hf_worker_add_activity");
}

/* ---- Running ------------------------------------------------------------------------------------------------------------------ */

/* A shield without a bound: what it covers has bounds of its own. */
static hf_status shield_open(hf_shield **ret_shield)
{
    hf_fiber *self = hf_enter(NULL);
    hf_scope_options options = {.size = sizeof options};
    hf_scope *scope = NULL;
    hf_status status = hf_scope_open_on(self, self->rt, &scope, &options, true);
    *ret_shield = (hf_shield *)(void *)scope;
    HF_LEAVE(self, status);
}

void hf_worker_count(hf_worker *worker, atomic_int *which, int delta)
{
    atomic_fetch_add(which, delta);
    (void)hf_chan_try_send(worker->ended, ""); /* full: whoever waits looks anyway */
}

void hf_worker_give_up(hf_worker *worker, hf_status status, const char *why)
{
    hf_log(worker->rt, HF_LOG_ERROR, "worker_gave_up", "queue=%.*s message=%s", HF_STR_ARGS(worker->queue), why);
    __atomic_store_n(&worker->status, status, __ATOMIC_RELAXED);
    (void)hf_worker_stop(worker);
}

hf_status hf_worker_stop(hf_worker *worker)
{
    HF_TRY(hf_not_in_workflow("hf_worker_stop"));
    if (worker == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_worker_stop needs a worker");
    }
    const char *reason = "hf_worker_stop";
    hf_status status = hf_chan_try_send(worker->stop, &reason);
    return status == HF_ERR_AGAIN ? HF_OK : status; /* full: it was told before */
}

static hf_status stop_on_signal(void *arg)
{
    hf_worker *worker = arg;
    HF_AUTO(hf_signals_close) hf_signals *signals = NULL;
    int number = 0;
    HF_TRY(hf_signals_open(&signals, &worker->options.stop_on, 1));
    HF_TRY(hf_signals_next(signals, &number));
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
    for (int i = 0; i < normal + sticky && !hf_list_is_empty(&worker->workflows); i++) {
        HF_TRY(hf_fork(scope, hf_poll_workflows, &seats[i < normal ? 0 : 1], .name = "workflow poller"));
    }
    for (int i = 0; i < o->activity_pollers_max && o->activities_max > 0; i++) {
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

/* Waits until nobody is left, at most for so long (HF_SPAN_UNLIMITED). */
static bool wait_for_end(hf_worker *worker, hf_span span)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL; /* canceling the activities cancels the waits around them, too */
    int64_t until = span.ns == INT64_MAX ? INT64_MAX : hf_now(NULL).ns + span.ns;
    hf_status status = shield_open(&shield);
    while (left_of(worker) > 0 && status == HF_OK) {
        int64_t left = until == INT64_MAX ? INT64_MAX : until - hf_now(NULL).ns;
        char token = 0;
        status = left > 0 ? hf_chan_recv(worker->ended, &token, .timeout = hf_nanoseconds(left)) : HF_ERR_TIMEOUT;
    }
    return left_of(worker) == 0;
}

/* The tasks of the sticky queue go to everybody again, at once. */
static void sign_off(hf_worker *worker)
{
    hf_arena arena;
    hf_arena_init(&arena, worker->memory);
    hf_pb_shutdown_worker_request request = {.namespace = worker->name_space,
                                             .identity = worker->identity,
                                             .sticky_task_queue = worker->sticky_queue,
                                             .task_queue = worker->queue,
                                             .reason = HF_STR("the worker stops")};
    hf_op op;
    hf_op_init(&op);
    hf_call call;
    hf_worker_call_init(worker, &call, HF_METHOD_SHUTDOWN_WORKER, &request, &arena);
    (void)hf_service_ask(&op, worker->service, &call); /* a courtesy */
    hf_arena_deinit(&arena);
}

static void descend(hf_worker *worker)
{
    hf_wf_cache_close(worker);
    if (worker->sticky_queue.len > 0) {
        sign_off(worker);
    }
    if (wait_for_end(worker, worker->options.shutdown_grace)) {
        return;
    }
    hf_log(worker->rt, HF_LOG_WARN, "worker_cancels_activities", "queue=%.*s count=%d", HF_STR_ARGS(worker->queue),
           atomic_load(&worker->jobs_count));
    (void)hf_scope_cancel(worker->jobs, .reason = "the worker stops");
    if (!wait_for_end(worker, worker->options.shutdown_force)) {
        hf_log(worker->rt, HF_LOG_ERROR, "worker_cannot_stop", "queue=%.*s activities=%d workflows=%d",
               HF_STR_ARGS(worker->queue), atomic_load(&worker->jobs_count), atomic_load(&worker->runs_count));
        (void)wait_for_end(worker, HF_SPAN_UNLIMITED);
    }
}

/* Until somebody wants it to stop. A cancel from outside is such a wish, too. */
static hf_status serve(hf_worker *worker)
{
    hf_poller_seat seats[2];
    HF_AUTO(hf_scope_close) hf_scope *pollers = NULL; /* leaving it cancels the polls */
    HF_TRY(hf_scope_open(&pollers, .name = "pollers", .join = HF_JOIN_COLLECT));
    HF_TRY(start_pollers(worker, pollers, seats));
    const char *reason = "canceled";
    (void)hf_chan_recv(worker->stop, &reason);
    hf_log(worker->rt, HF_LOG_INFO, "worker_stops", "queue=%.*s reason=%s", HF_STR_ARGS(worker->queue), reason);
    return HF_OK;
}

static hf_status worker_main(void *arg)
{
    hf_worker *worker = arg;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL; /* the ladder waits on its own terms, canceled or not */
    HF_AUTO(hf_scope_close) hf_scope *runs = NULL;
    HF_AUTO(hf_scope_close) hf_scope *jobs = NULL;
    HF_TRY(shield_open(&shield));
    HF_TRY(hf_scope_open(&runs, .name = "workflows", .join = HF_JOIN_COLLECT));
    HF_TRY(hf_scope_open(&jobs, .name = "activities", .join = HF_JOIN_COLLECT));
    worker->runs = runs;
    worker->jobs = jobs;
    hf_status status = serve(worker);
    descend(worker);
    return status != HF_OK ? status : __atomic_load_n(&worker->status, __ATOMIC_RELAXED);
}

/* Told by the scope around when the caller is canceled: the worker stops properly. */
static hf_status pass_on_cancel(void *arg)
{
    hf_worker *worker = arg;
    char never = 0;
    hf_status status = hf_chan_recv(worker->never, &never);
    return status == HF_ERR_CANCELED ? hf_worker_stop(worker) : status;
}

static hf_verdict stop_when_main_ends(const hf_tally *tally, const hf_outcome *outcome)
{
    (void)tally;
    return outcome != NULL && outcome->index == 0 ? HF_STOP : HF_GO_ON;
}

hf_status hf_worker_run(hf_worker *worker)
{
    static const hf_join_hooks MAIN = {.name = "worker", .on_done = stop_when_main_ends};
    HF_TRY(hf_not_in_workflow("hf_worker_run"));
    unsigned expected = HF_WORKER_NEW;
    if (worker == NULL || !atomic_compare_exchange_strong(&worker->state, &expected, HF_WORKER_RUNNING)) {
        return hf_raise(HF_ERR_MISUSE, "hf_worker_run needs a worker, and runs it once");
    }
    hf_status status = HF_OK;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        hf_job *job = NULL;
        status =
            hf_scope_open(&scope, .name = "worker", .runtime = worker->rt, .join = hf_join_policy_of(&MAIN, 0, NULL));
        if (status == HF_OK) {
            status = hf_fork(scope, worker_main, worker, .name = "worker", .ret_job = &job);
        }
        if (status == HF_OK) {
            status = hf_fork(scope, pass_on_cancel, worker, .name = "cancel");
        }
        if (status == HF_OK) {
            (void)hf_join(scope);
            status = hf_job_status(job);
            if (status != HF_OK) {
                const hf_failure *failure = hf_job_failure(job);
                (void)hf_raise(status, "the worker ended: %s",
                               failure != NULL ? failure->message : hf_status_text(status));
            }
        }
    }
    atomic_store(&worker->state, HF_WORKER_DONE);
    return status;
}
