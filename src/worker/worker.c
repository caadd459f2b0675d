/* The worker: how it is made, and its registry. How it runs and stops: keeper.c. */
#include "worker/memo.h"
#include "worker/worker_private.h"

#include "base/span.h"
#include "fiber/verbs.h"
#include "history/limits.h"

#include <limits.h>
#include <stdio.h>

enum {
    WORKFLOWS_MAX = 200,
    ACTIVITIES_MAX = 200,
    LOCALS_MAX = 100,
    CACHED_MAX = 1000,
    CACHED_BYTES_MAX = 256 << 20,
    THROTTLE_SECONDS = 30, /* as in other SDKs */
    POLLERS_MAX = 64,      /* polls cost little in this process; over a network fewer would do */
    NAME_LEN_MAX = HF_KEY_LEN_MAX
};

hf_status hf_worker_may_ask(const hf_service *service)
{
    hf_op op;
    hf_op_init(&op);
    return hf_service_check(&op, service) == HF_OK ? HF_OK : hf_raise(op.status, "%s", op.message);
}

/* ---- Making ------------------------------------------------------------------------------------------------------ */

static int or_default(int number, int by_default)
{
    if (number == HF_UNLIMITED) {
        return INT_MAX;
    }
    return number == 0 ? by_default : (number < 0 ? 0 : number);
}

static const char VERB[] = "hf_worker_new";

static hf_status check_numbers(hf_op *op, const hf_worker_options *o)
{
    const struct {
        const char *what;
        int64_t number;
        int may_be;
    } numbers[] = {
        {".workflows_max", o->workflows_max, HF_MAY_BE_UNLIMITED},
        {".activities_max", o->activities_max, HF_MAY_BE_OFF | HF_MAY_BE_UNLIMITED},
        {".local_activities_max", o->local_activities_max, 0},
        {".cached_max", o->cached_max, HF_MAY_BE_OFF | HF_MAY_BE_UNLIMITED},
        {".pollers_max", o->pollers_max, 0},
        {".activity_pollers_max", o->activity_pollers_max, 0},
        {".cached_bytes_max", o->cached_bytes_max, HF_MAY_BE_UNLIMITED},
    };
    for (size_t i = 0; i < HF_COUNT_OF(numbers); i++) {
        HF_TRY(hf_number_check(op, VERB, numbers[i].what, numbers[i].number, numbers[i].may_be));
    }
    HF_TRY(hf_tempo_check(op, VERB, ".activities_per_second", o->activities_per_second));
    return hf_tempo_check(op, VERB, ".queue_activities_per_second", o->queue_activities_per_second);
}

/* Checks the texts and spans of the options. A task queue must leave room for the longer name of its sticky queue. */
static hf_status check_words(hf_op *op, const char *task_queue, const hf_worker_options *o)
{
    HF_TRY(hf_text_check(op, VERB, "the task queue", task_queue, 1, HF_QUEUE_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".namespace_", o->namespace_, 1, NAME_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".identity", o->identity, 0, HF_ID_LEN_MAX));
    HF_TRY(hf_span_check(op, VERB, ".sticky_timeout", o->sticky_timeout, HF_MAY_BE_OFF));
    HF_TRY(hf_span_check(op, VERB, ".shutdown_grace", o->shutdown_grace, HF_MAY_BE_OFF));
    HF_TRY(hf_span_check(op, VERB, ".idle_timeout", o->idle_timeout, HF_MAY_BE_OFF));
    HF_TRY(hf_span_check(op, VERB, ".heartbeat_throttle", o->heartbeat_throttle, 0));
    if (o->heartbeat_throttle.ns > hf_seconds(HF_THROTTLE_MAX_SECONDS).ns) {
        return hf_fail(op, HF_ERR_INVALID, "%s: .heartbeat_throttle is at most %d s", VERB, HF_THROTTLE_MAX_SECONDS);
    }
    return hf_span_check(op, VERB, ".shutdown_force", o->shutdown_force, HF_MAY_BE_OFF);
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
    o.local_activities_max = or_default(o.local_activities_max, LOCALS_MAX);
    o.local_activities_max =
        o.local_activities_max < HF_POOL_THREADS_MAX / 2 ? o.local_activities_max : HF_POOL_THREADS_MAX / 2;
    o.cached_max = or_default(o.cached_max, CACHED_MAX);
    o.cached_bytes_max = o.cached_bytes_max == 0 ? CACHED_BYTES_MAX : o.cached_bytes_max;
    o.cached_bytes_max = o.cached_bytes_max == HF_UNLIMITED ? INT64_MAX : o.cached_bytes_max;
    o.pollers_max = or_default(o.pollers_max, POLLERS_MAX);
    o.activity_pollers_max = or_default(o.activity_pollers_max, POLLERS_MAX);
    o.sticky_timeout = span_or(o.sticky_timeout, hf_seconds(10));
    o.shutdown_grace = span_or(o.shutdown_grace, hf_seconds(10));
    o.shutdown_force = span_or(o.shutdown_force, hf_seconds(5));
    o.idle_timeout = span_or(o.idle_timeout, hf_seconds(60));
    o.heartbeat_throttle = span_or(o.heartbeat_throttle, hf_seconds(THROTTLE_SECONDS));
    return o;
}

static hf_status name_it(hf_worker *worker, const char *task_queue)
{
    char text[NAME_LEN_MAX + 1];
    char uuid[HF_UUID_LEN];
    _Static_assert(HF_QUEUE_LEN_MAX + 1 + HF_UUID_LEN - 1 == HF_ID_LEN_MAX,
                   "the sticky queue of the longest queue has a valid name");
    const hf_worker_options *o = &worker->options;
    hf_arena *names = &worker->names;
    HF_TRY(hf_uuid_make(worker->rt, uuid));
    worker->queue = hf_arena_copy(names, hf_str_of(task_queue));
    worker->namespace_ = hf_arena_copy(names, hf_namespace_or(o->namespace_, worker->given));
    char me[300];
    worker->rt->env->ops->whoami(worker->rt->env, me, sizeof me);
    (void)snprintf(text, HF_ID_LEN_MAX + 1, "%s@%s", me,
                   task_queue); /* "PID@HOST@QUEUE", like other SDKs; cut if it is too long */
    worker->identity = hf_arena_copy(names, hf_str_of(o->identity != NULL ? o->identity : text));
    if (worker->service->takes_nothing_back) {
        worker->instance_key = hf_arena_copy(names, hf_str_of(uuid));
    }
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
    hf_assert(o->activities_max >= 0 && o->workflows_max > 0);
    int locals = o->local_activities_max;
    int threads = o->activities_max < HF_POOL_THREADS_MAX ? o->activities_max : HF_POOL_THREADS_MAX;
    HF_TRY(hf_chan_new(sizeof(const char *), &worker->stop, .name = "stop", .capacity = 1, .runtime = rt));
    HF_TRY(hf_chan_new(1, &worker->over, .name = "over", .capacity = 1, .runtime = rt));
    HF_TRY(hf_chan_new(1, &worker->hush, .name = "hush", .runtime = rt));
    HF_TRY(hf_chan_new(1, &worker->ended, .name = "ended", .capacity = 1, .runtime = rt));
    HF_TRY(hf_sem_new(o->workflows_max, &worker->workflow_slots, .name = "workflow slots", .runtime = rt));
    HF_TRY(hf_sem_new(o->activities_max, &worker->activity_slots, .name = "activity slots", .runtime = rt));
    HF_TRY(hf_sem_new(locals, &worker->local_slots, .name = "local activity slots", .runtime = rt));
    HF_TRY(hf_pool_new(&worker->local_pool, .name = "local activities", .limit = locals, .runtime = rt));
    HF_TRY(hf_activity_watch_pool(worker, worker->local_pool));
    if (threads == 0) {
        return HF_OK;
    }
    HF_TRY(hf_pool_new(&worker->pool, .name = "activities", .limit = threads, .runtime = rt));
    return hf_activity_watch_pool(worker, worker->pool);
}

static hf_status make(hf_worker *worker, const char *task_queue)
{
    if (worker->rt == NULL) {
        HF_TRY(hf_runtime_new(&worker->rt, .name = "worker"));
        worker->owns_runtime = true;
    }
    HF_TRY(make_parts(worker));
    HF_TRY(hf_wf_seats_open(worker));
    return name_it(worker, task_queue);
}

hf_status hf_worker_new_with(hf_service *service, const char *task_queue, hf_worker **ret_worker,
                             const hf_worker_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_worker_new));
    HF_OPTIONS(hf_worker_options, options, hf_worker_new);
    if (service == NULL || task_queue == NULL || ret_worker == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_worker_new needs a service, a task queue and a place for the worker");
    }
    hf_op op;
    hf_op_init(&op);
    if (check_words(&op, task_queue, options) != HF_OK || check_numbers(&op, options) != HF_OK) {
        return hf_failure_raise_op(&op);
    }
    HF_TRY(hf_worker_may_ask(service));
    hf_allocator memory = hf_env_memory(hf_env_posix());
    hf_worker *worker = memory.allocate(memory.state, sizeof *worker, _Alignof(hf_worker));
    if (worker == NULL) {
        return hf_raise(HF_ERR_NOMEM, "no memory for a worker");
    }
    memset(worker, 0, sizeof *worker);
    hf_payload_bag_find_with(hf_wf_self_payloads); /* before any workflow runs */
    hf_note_prefix_with(hf_wf_note_prefix);
    worker->memory = memory;
    worker->given = service;
    hf_guard_init_over(&worker->guard, service, "the worker was left behind by hf_worker_run");
    worker->service = &worker->guard.service;
    atomic_init(&worker->owners, 1);
    hf_list_init(&worker->busy);
    worker->rt = options->runtime != NULL ? options->runtime : hf_runtime_current();
    worker->options = with_defaults(options);
    hf_arena_init(&worker->names, memory);
    hf_arenas_init(&worker->arenas, memory);
    hf_tempo_init(&worker->tempo, options->activities_per_second);
    hf_list_init(&worker->workflows);
    hf_list_init(&worker->activities);
    hf_wf_cache_init(&worker->cache);
    hf_status status = make(worker, task_queue);
    if (status != HF_OK) {
        (void)hf_worker_release(worker);
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
    hf_fiber *self = hf_enter(worker->rt);
    if (self == NULL) {
        return hf_forked();
    }
    hf_leave(self);
    HF_TRY(HF_VERB_ALLOWED(hf_worker_free));
    hf_life_state life = hf_worker_life(worker);
    bool is_over = life == HF_LIFE_NEW || life == HF_LIFE_DONE; /* worker-L2 */
    hf_status status = is_over ? HF_OK : hf_worker_end(worker, &is_over);
    if (is_over) {
        (void)hf_worker_release(worker);
    }
    return status;
}

hf_status hf_worker_release(hf_worker *worker)
{
    int owners = atomic_fetch_sub(&worker->owners, 1);
    hf_assert(owners > 0);
    if (owners != 1) {
        return HF_OK; /* code that hf_worker_run left behind still uses it */
    }
    hf_allocator memory = worker->memory;
    hf_assert(atomic_load(&worker->runs_count) == 0 && atomic_load(&worker->jobs_count) == 0); /* worker-K4 */
    hf_assert(hf_list_is_empty(&worker->busy));
    hf_wf_seats_close(worker);
    (void)hf_dispatcher_free(worker->local_pool);
    (void)hf_dispatcher_free(worker->pool);
    (void)hf_sem_free(worker->local_slots);
    (void)hf_sem_free(worker->activity_slots);
    (void)hf_sem_free(worker->workflow_slots);
    (void)hf_chan_free(worker->hush);
    (void)hf_chan_free(worker->ended);
    (void)hf_chan_free(worker->over);
    (void)hf_chan_free(worker->stop);
    if (worker->owns_runtime) {
        (void)hf_runtime_free(worker->rt);
    }
    hf_arenas_deinit(&worker->arenas);
    hf_arena_deinit(&worker->names);
    memory.release(memory.state, worker, sizeof *worker);
    return HF_OK;
}

/* ---- The registry ------------------------------------------------------------------------------------------------ */

const hf_function_entry *hf_function_find(const hf_list *entries, hf_str name)
{
    HF_LIST_EACH(node, entries)
    {
        const hf_function_entry *entry = HF_CONTAINER(node, hf_function_entry, node);
        if (hf_str_equal(entry->name, name)) {
            return entry;
        }
    }
    return NULL;
}

enum { STACK_SIZE_MAX = 256 << 10 };

/* `like` has what is kept beside the name. */
static hf_status add(hf_worker *worker, hf_list *entries, const char *name, const hf_function_entry *like,
                     const char *verb)
{
    if (worker == NULL || name == NULL || like->function == NULL) {
        return hf_raise(HF_ERR_MISUSE, "%s needs a worker, a name and a function", verb);
    }
    if (hf_worker_life(worker) != HF_LIFE_NEW) {
        return hf_raise(HF_ERR_MISUSE, "%s must be called before the worker runs", verb);
    }
    if (name[0] == '\0' || strnlen(name, NAME_LEN_MAX + 1) > NAME_LEN_MAX) {
        return hf_raise(HF_ERR_INVALID, "%s: a name has 1 to %d bytes", verb, NAME_LEN_MAX);
    }
    if (like->stack_size > STACK_SIZE_MAX) {
        return hf_raise(HF_ERR_INVALID, "%s: '%s': .stack_size is %zu, and the largest stack of a fiber has %d bytes",
                        verb, name, like->stack_size, STACK_SIZE_MAX);
    }
    if (hf_function_find(entries, hf_str_of(name)) != NULL) {
        return hf_raise(HF_ERR_EXISTS, "%s: '%s' was added before", verb, name);
    }
    hf_function_entry *entry = HF_ARENA_NEW(&worker->names, hf_function_entry);
    hf_str copy = hf_arena_copy(&worker->names, hf_str_of(name));
    if (entry == NULL || copy.data == NULL) {
        return hf_raise(HF_ERR_NOMEM, "%s: no memory for '%s'", verb, name);
    }
    *entry = *like;
    entry->name = copy;
    hf_assert(!hf_node_is_linked(&entry->node));
    hf_list_push_back(entries, &entry->node);
    return HF_OK;
}

void hf_worker_forget_activity(hf_worker *worker, const char *name)
{
    hf_assert(hf_worker_life(worker) == HF_LIFE_NEW);
    HF_LIST_EACH(node, &worker->activities)
    {
        if (hf_str_equal(HF_CONTAINER(node, hf_function_entry, node)->name, hf_str_of(name))) {
            hf_list_remove(node); /* it is freed with the worker's names */
        }
    }
}

hf_status hf_worker_add_function(hf_worker *worker, const char *name, const hf_function_entry *like, const char *verb)
{
    return add(worker, &worker->activities, name, like, verb);
}

hf_status hf_worker_at_rest(hf_worker *worker, const char *name, hf_wf_at_rest hook, void *arg)
{
    hf_assert(hf_worker_life(worker) == HF_LIFE_NEW && hook != NULL);
    HF_LIST_EACH(node, &worker->workflows)
    {
        hf_function_entry *entry = HF_CONTAINER(node, hf_function_entry, node);
        if (hf_str_equal(entry->name, hf_str_of(name))) {
            entry->at_rest = hook;
            entry->at_rest_arg = arg;
            return HF_OK;
        }
    }
    return hf_raise(HF_ERR_NOT_FOUND, "there is no workflow '%.100s'", name);
}

hf_status hf_worker_add_workflow_with(hf_worker *worker, const char *name, hf_function workflow,
                                      const hf_worker_add_workflow_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_worker_add_workflow));
    HF_OPTIONS(hf_worker_add_workflow_options, options, hf_worker_add_workflow);
    hf_function_entry like = {.function = workflow, .arg = options->arg, .stack_size = options->stack_size};
    return add(worker, worker != NULL ? &worker->workflows : NULL, name, &like, "hf_worker_add_workflow");
}

hf_status hf_worker_add_activity_with(hf_worker *worker, const char *name, hf_function activity,
                                      const hf_worker_add_activity_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_worker_add_activity));
    HF_OPTIONS(hf_worker_add_activity_options, options, hf_worker_add_activity);
    hf_function_entry like = {.function = activity,
                              .on_fiber = options->on_fiber,
                              .arg = options->arg,
                              .stack_size = options->stack_size,
                              .memo = options->memo};
    int count = worker != NULL ? worker->options.activities_max : 0;
    bool is_too_many = !like.on_fiber && count > HF_POOL_THREADS_MAX;
    if (is_too_many && count != INT_MAX) {
        return hf_raise(HF_ERR_INVALID,
                        "hf_worker_add_activity: '%s' needs a thread, and a worker has at most %d, but "
                        ".activities_max is %d: lower it, or add the activity with .on_fiber if it never blocks",
                        name != NULL ? name : "", HF_POOL_THREADS_MAX, count);
    }
    if (like.stack_size != 0 && !like.on_fiber) {
        return hf_raise(
            HF_ERR_INVALID,
            "hf_worker_add_activity: '%s': .stack_size is for activities with .on_fiber; on a thread it has "
            "1 MiB",
            name != NULL ? name : "");
    }
    hf_op op;
    hf_op_init(&op);
    if (like.memo.ops != NULL && name != NULL && like.memo.ops->check(&op, &like.memo, name) != HF_OK) {
        return hf_raise(op.status, "hf_worker_add_activity: %s", op.message);
    }
    HF_TRY(add(worker, worker != NULL ? &worker->activities : NULL, name, &like, "hf_worker_add_activity"));
    if (is_too_many) { /* HF_UNLIMITED: as many as can have a thread */
        HF_IGNORE(hf_sem_try_acquire(worker->activity_slots, count - HF_POOL_THREADS_MAX));
        worker->options.activities_max = HF_POOL_THREADS_MAX;
    }
    return HF_OK;
}
