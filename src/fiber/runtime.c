/* The runtime: puts an environment, an allocator, schedulers and a pool together, and takes them apart again. */
#include "base/uuid.h"
#include "fiber/crew/crew_private.h"
#include "fiber/crew/strand.h"
#include "fiber/io/fd.h"
#include "fiber/io/process.h"
#include "fiber/sched/wait.h"
#include "fiber/watch/metrics.h"
#include "fiber/watch/watch.h"

#include "base/fields.h"
#include "base/glyph.h"
#include "base/span.h"
#include "fiber/verbs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *hf_rt_alloc(hf_runtime *rt, size_t len)
{
    void *ptr = rt->allocator.allocate(rt->allocator.state, len, 0);
    if (ptr != NULL) {
        memset(ptr, 0, len);
    }
    return ptr;
}

void hf_rt_free(hf_runtime *rt, void *ptr, size_t len)
{
    if (ptr != NULL) {
        rt->allocator.release(rt->allocator.state, ptr, len);
    }
}

hf_instant hf_rt_deadline(const hf_runtime *rt, hf_span timeout)
{
    if (timeout.ns == 0 || timeout.ns == INT64_MAX) {
        return HF_INSTANT_NEVER;
    }
    int64_t now = hf_rt_now(rt).ns;
    int64_t span = timeout.ns < 0 ? 0 : timeout.ns;
    return (hf_instant){span > INT64_MAX - 1 - now ? INT64_MAX - 1 : now + span};
}

hf_runtime *hf_rt_choose(hf_op *op, hf_runtime *option)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    bool bound = self != NULL && (self->sched != NULL || self->branch != NULL);
    if (bound && (option == NULL || option == self->rt)) {
        return self->rt;
    }
    if (bound) {
        (void)hf_fail(op, HF_ERR_MISUSE, "a fiber uses its own runtime: leave .runtime out");
        return NULL;
    }
    if (option == NULL) {
        (void)hf_fail(op, HF_ERR_MISUSE, "a plain thread must say which runtime it means: pass .runtime");
    }
    return option;
}

/* ---- Log and fatal ----------------------------------------------------------------------------------------------- */

void hf_log(hf_runtime *rt, hf_log_level level, const char *event, const char *format, ...)
{
    if (rt == NULL) {
        return;
    }
    char fields[1024];
    va_list args;
    va_start(args, format);
    hf_fields_vformat(fields, sizeof fields, format, args);
    va_end(args);
    rt->log(rt->log_state, level, event, fields);
}

static void log_to_stderr(void *state, hf_log_level level, const char *event, const char *fields)
{
    hf_runtime *rt = state;
    if (level < HF_LOG_WARN) {
        return;
    }
    char line[1200];
    (void)snprintf(line, sizeof line, "holdfast %s: %s %s\n", level == HF_LOG_WARN ? "warning" : "error", event,
                   fields);
    rt->env->ops->print(rt->env, line);
}

void hf_fatal(hf_runtime *rt, const char *message, int exit_code)
{
    rt->fatal(rt->fatal_state, message, exit_code);
}

static void fatal_default(void *state, const char *message, int exit_code)
{
    hf_runtime *rt = state;
    (void)exit_code;
    char line[640];
    (void)snprintf(line, sizeof line - 1, "%s", message);
    hf_text_clean(line);
    memcpy(line + strlen(line), "\n", 2);
    rt->env->ops->print(rt->env, line);
    abort();
}

/* ---- Making ------------------------------------------------------------------------------------------------------ */

static void set_defaults(hf_runtime *rt, const hf_runtime_options *options)
{
    rt->name = options->name != NULL ? options->name : "holdfast";
    rt->log = options->log != NULL ? options->log : log_to_stderr;
    rt->log_state = options->log != NULL ? options->log_state : rt;
    rt->has_fatal_hook = options->fatal != NULL;
    rt->fatal = options->fatal != NULL ? options->fatal : fatal_default;
    rt->fatal_state = options->fatal != NULL ? options->fatal_state : rt;
    rt->hosted = options->threads == HF_OFF;
    rt->sched_count = rt->hosted ? 1 : options->threads;
    if (rt->sched_count == 0) {
        rt->sched_count = rt->env->ops->core_count(rt->env);
    }
    rt->pin_threads = options->pin_threads;
    rt->pool_max = options->pool_max != 0 ? options->pool_max : 64;
    rt->stack_size = options->stack_size != 0 ? options->stack_size : 64 * 1024;
#if HF_ASAN || HF_TSAN
    rt->stack_size *= 4; /* instrumented frames are larger */
#endif
    rt->guard_kind = options->guards == HF_OFF ? HF_GUARD_NONE : (hf_guard_kind)options->guard_kind;
    rt->guards_max = rt->env->ops->mappings_max(rt->env) / 4; /* each needs two mappings: half of all mappings */
    rt->fibers_max = options->fibers_max > 0 ? options->fibers_max : 0;
    rt->watchdog = options->watchdog;
    hf_list_init(&rt->roots);
    hf_list_init(&rt->parked);
    hf_list_init(&rt->pools);
    hf_list_init(&rt->panels);
    rt->root_cx.reason = "runtime";
}

/* Replaces HF_GUARD_BEST by the best kind that works, found by trying. */
static void choose_guard(hf_runtime *rt)
{
    if (rt->guard_kind != HF_GUARD_BEST) {
        return;
    }
    void *page = rt->env->ops->pages_reserve(rt->env, 4096);
    if (page == NULL) {
        rt->guard_kind = HF_GUARD_PROTECT;
        return;
    }
    rt->guard_kind = rt->env->ops->pages_guard(rt->env, page, 4096, HF_GUARD_MARKER) == HF_GUARD_MARKER
                         ? HF_GUARD_MARKER
                         : HF_GUARD_PROTECT;
    hf_assert(rt->guard_kind != HF_GUARD_BEST);
    rt->env->ops->pages_release(rt->env, page, 4096);
}

static hf_status make_scheds(hf_runtime *rt, hf_op *op)
{
    rt->scheds = hf_rt_alloc(rt, (size_t)rt->sched_count * sizeof(hf_sched *));
    if (rt->scheds == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the schedulers");
    }
    for (int i = 0; i < rt->sched_count; i++) {
        hf_sched *sched = rt->allocator.allocate(rt->allocator.state, sizeof *sched, 64);
        if (sched == NULL) {
            return hf_fail(op, HF_ERR_NOMEM, "no memory for scheduler %d", i);
        }
        memset(sched, 0, sizeof *sched);
        rt->scheds[i] = sched;
        hf_sched_init(rt, sched, i);
        HF_TRY(rt->env->ops->poller_open(rt->env, op, &sched->poller));
    }
    return HF_OK;
}

hf_status hf_sched_thread_start(hf_op *op, hf_sched *sched)
{
    hf_assert(sched->thread == NULL && !sched->rt->hosted);
    char name[16];
    (void)snprintf(name, sizeof name, "hf-fiber-%d", sched->index % 1000);
    return sched->env->ops->thread_start(sched->env, op, name, 256 * 1024, hf_sched_thread_main, sched, &sched->thread);
}

static hf_status start_threads(hf_runtime *rt, hf_op *op)
{
    for (int i = 0; i < rt->sched_count && !rt->hosted; i++) {
        HF_TRY(hf_sched_thread_start(op, rt->scheds[i]));
    }
    return HF_OK;
}

static bool on_fault(void *state, void *address)
{
    hf_runtime *rt = state;
    if (!hf_stack_is_guard(rt, address)) {
        return false;
    }
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    char message[560];
    const char *name =
        self != NULL && self->branch != NULL && self->branch->name != NULL ? self->branch->name : "unnamed";
    size_t len = self != NULL ? (size_t)(self->stack_hi - self->stack_lo) : 0;
    if (self != NULL && hf_crew_is_first(self)) { /* nobody called hf_fork for it */
        (void)snprintf(
            message, sizeof message,
            "holdfast: stack overflow in workflow '%.100s' ('%.100s'): its stack of %zu bytes is used up; give "
            "hf_worker_add_workflow a larger .stack_size (up to 256 K), or keep big things off the stack",
            name, hf_crew_name(self->crew), len);
    } else {
        (void)snprintf(
            message, sizeof message,
            "holdfast: stack overflow in fiber '%.100s': its stack of %zu bytes is used up; give hf_fork a "
            "larger .stack_size (up to 256 K), or hf_worker_add_activity if it is an activity, or hf_run if it is the "
            "first fiber; or keep big things off the stack",
            name, len);
    }
    hf_fatal(rt, message, 1);
    return true;
}

static hf_status check_watchdog(hf_op *op, const hf_watchdog_options *w)
{
    const struct {
        const char *what;
        hf_span span;
    } spans[] = {
        {".watchdog.stuck_after", w->stuck_after},         {".watchdog.zombie_after", w->zombie_after},
        {".watchdog.interrupt_first", w->interrupt_first}, {".watchdog.interrupt_max", w->interrupt_max},
        {".watchdog.give_up_after", w->give_up_after},     {".watchdog.shutdown_grace", w->shutdown_grace},
        {".watchdog.shutdown_force", w->shutdown_force},   {".watchdog.fatal_after", w->fatal_after},
    };
    for (size_t i = 0; i < HF_COUNT_OF(spans); i++) {
        HF_TRY(hf_span_check(op, "hf_runtime_new", spans[i].what, spans[i].span, HF_MAY_BE_OFF | HF_MAY_BE_SHORT));
    }
    return hf_number_check(op, "hf_runtime_new", ".watchdog.zombies_max", w->zombies_max, HF_MAY_BE_OFF);
}

static hf_status check_options(hf_op *op, const hf_runtime_options *options)
{
    HF_TRY(check_watchdog(op, &options->watchdog));
    HF_TRY(hf_number_check(op, "hf_runtime_new", ".fibers_max", options->fibers_max, HF_MAY_BE_UNLIMITED));
    if (options->threads > HF_THREADS_MAX || options->threads < HF_OFF) {
        return hf_fail(op, HF_ERR_INVALID, "threads must be 1 to %d, 0 for one per core, or HF_OFF", HF_THREADS_MAX);
    }
    if (options->pool_max < 0 || options->pool_max > HF_POOL_THREADS_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "pool_max must be 1 to %d", HF_POOL_THREADS_MAX);
    }
    if (options->stack_size > 256 * 1024) {
        return hf_fail(op, HF_ERR_INVALID, "the largest class of stacks is 256 K");
    }
    if ((options->allocator.allocate == NULL) != (options->allocator.release == NULL)) {
        return hf_fail(op, HF_ERR_INVALID, "an allocator needs both allocate and release");
    }
    if (options->guard_kind < 0 || options->guard_kind > HF_GUARD_PROTECT) {
        return hf_fail(op, HF_ERR_INVALID, "guard_kind must be 0, 1 or 2");
    }
    return HF_OK;
}

static void destroy(hf_runtime *rt);

static hf_status make(hf_runtime **ret_rt, const hf_runtime_options *options, hf_op *op)
{
    HF_TRY(check_options(op, options));
    hf_env *env = options->env != NULL ? options->env : hf_env_posix();
    hf_allocator allocator = options->allocator;
    if (allocator.allocate == NULL) {
        allocator = hf_env_memory(env);
    }
    hf_runtime *rt = allocator.allocate(allocator.state, sizeof *rt, 64);
    if (rt == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a runtime");
    }
    memset(rt, 0, sizeof *rt);
    rt->env = env;
    rt->allocator = allocator;
    set_defaults(rt, options);
    choose_guard(rt);
    hf_exceptions_look();
    rt->fork_marker = env->ops->fork_marker_open(env);
    hf_status status = rt->fork_marker != NULL ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for the fork marker");
    status = status == HF_OK ? hf_stacks_init(rt, op) : status;
    status = status == HF_OK ? hf_fds_init(rt, op) : status;
    status = status == HF_OK ? make_scheds(rt, op) : status;
    status = status == HF_OK ? hf_pool_open(rt, op) : status;
    if (status == HF_OK && options->report_overflow &&
        env->ops->overflow_open(env, NULL, on_fault, rt) == HF_OK) { /* not if the host has its own handler */
        rt->reports_overflow = true;
    }
    status = status == HF_OK ? hf_watchdog_open(rt, op) : status;
    status = status == HF_OK ? start_threads(rt, op) : status;
    status = status == HF_OK ? hf_watchdog_start(rt, op) : status;
    if (status != HF_OK) {
        destroy(rt);
        return status;
    }
    *ret_rt = rt;
    return HF_OK;
}

hf_status hf_runtime_new_with(hf_runtime **ret_runtime, const hf_runtime_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_runtime_new));
    HF_OPTIONS(hf_runtime_options, options, hf_runtime_new);
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        return hf_forked();
    }
    if (ret_runtime == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_runtime_new needs a place for the runtime"));
    }
    hf_op op;
    hf_op_init(&op);
    hf_status status = make(ret_runtime, options, &op);
    HF_LEAVE(self, status == HF_OK ? HF_OK : hf_op_end(self, &op));
}

/* ---- Ending ------------------------------------------------------------------------------------------------------ */

static void stop_threads(hf_runtime *rt)
{
    atomic_store_explicit(&rt->stop_word, 1, memory_order_release);
    for (int i = 0; rt->scheds != NULL && i < rt->sched_count; i++) {
        hf_sched *sched = rt->scheds[i];
        if (sched != NULL && sched->thread != NULL) {
            rt->env->ops->poller_ring(rt->env, sched->poller);
            rt->env->ops->thread_join(rt->env, sched->thread);
            sched->thread = NULL;
        }
    }
}

/* Runs messages that came after the last turn, and messages that these post. */
static void drain_all(hf_runtime *rt)
{
    bool any = true;
    while (any) {
        any = false;
        for (int i = 0; rt->scheds != NULL && i < rt->sched_count; i++) {
            hf_sched *sched = rt->scheds[i];
            if (sched != NULL && atomic_load(&sched->inbox) != NULL) {
                hf_sched_drain(sched);
                any = true;
            }
        }
    }
}

static void destroy(hf_runtime *rt)
{
    hf_env *env = rt->env;
    hf_watchdog_close(rt);
    hf_processes_deinit(rt);
    hf_pool_shutdown(rt);
    hf_assert(rt->pool == NULL && hf_list_is_empty(&rt->pools) && atomic_load(&rt->pool_threads) == 0);
    stop_threads(rt);
    hf_guests_await(env, &rt->guests);
    hf_assert(atomic_load(&rt->guests.word) == HF_GUESTS_AWAITED); /* fiber-F5 */
    drain_all(rt);
    hf_assert(hf_list_is_empty(&rt->roots) && atomic_load(&rt->closing) == 0); /* fiber-F5 */
    hf_assert(atomic_load(&rt->idlers) == 0 && atomic_load(&rt->searchers) == 0);
    hf_watchdog_deinit(rt);
    if (rt->reports_overflow) {
        env->ops->overflow_close(env, rt);
    }
    hf_stacks_deinit(rt);
    for (int i = 0; rt->scheds != NULL && i < rt->sched_count; i++) {
        hf_sched *sched = rt->scheds[i];
        if (sched != NULL) {
            hf_metrics_deinit(sched);
            hf_sched_deinit(sched);
            if (sched->poller != NULL) {
                env->ops->poller_close(env, sched->poller);
            }
            hf_rt_free(rt, sched, sizeof *sched);
        }
    }
    hf_rt_free(rt, rt->scheds, (size_t)rt->sched_count * sizeof(hf_sched *));
    hf_fds_deinit(rt);
    hf_slabs_deinit(rt);
    if (rt->fork_marker != NULL) {
        env->ops->fork_marker_close(env, rt->fork_marker);
    }
    rt->allocator.release(rt->allocator.state, rt, sizeof *rt);
}

/* All under the lock: a thread that sees the mark, or the cancel of the last scope, may free the runtime at once,
 * but has to take the lock first. Unlocking is the last access here. */
static void cancel_roots(hf_runtime *rt)
{
    hf_spin_lock(&rt->roots_lock);
    rt->root_cx.cause = HF_CAUSE_SHUTDOWN;
    rt->root_cx.inherited = true;
    atomic_store(&rt->root_cx.canceled, true);
    HF_LIST_EACH(node, &rt->roots)
    {
        hf_scope *scope = HF_CONTAINER(node, hf_scope, roots);
        hf_assert(scope->by_thread && scope->rt == rt);
        if (hf_scope_is_outermost(scope)) {
            hf_scope_cancel_post(scope, HF_CAUSE_SHUTDOWN, "runtime", true);
        }
    }
    hf_spin_unlock(&rt->roots_lock);
}

hf_status hf_runtime_stop(hf_runtime *runtime)
{
    if (runtime == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_runtime_stop, runtime);
    hf_env *env = runtime->env;
    cancel_roots(runtime);
    hf_point_let_go(env);
    HF_LEAVE(self, HF_OK);
}

/* False: something is open in it. */
static bool free_unused(hf_fiber *self, hf_runtime *runtime)
{
    hf_spin_lock(&runtime->roots_lock);
    bool is_used = !hf_list_is_empty(&runtime->roots) || atomic_load(&runtime->closing) > 0;
    hf_spin_unlock(&runtime->roots_lock);
    if (is_used) {
        return false;
    }
    destroy(runtime);
    if (self->rt == runtime) {
        self->rt = NULL;
    }
    return true;
}

hf_status hf_runtime_free(hf_runtime *runtime)
{
    if (runtime == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_runtime_free, runtime);
    if (self->rt == runtime && (self->sched != NULL || self->branch != NULL)) {
        HF_LEAVE(self,
                 hf_refuse(self, HF_ERR_MISUSE, "a runtime cannot be freed by one of its own fibers or pool threads"));
    }
    bool is_left = atomic_load(&runtime->has_left_behind);
    if (!free_unused(self, runtime)) {
        HF_LEAVE(self,
                 hf_refuse(self, HF_ERR_MISUSE,
                           is_left ? "code that hf_worker_run left behind still runs (the log has its name), or a "
                                     "thread has a scope open in the runtime: free the runtime when that has ended"
                                   : "a thread still has a scope open in the runtime: close it first "
                                     "(hf_runtime_stop cancels it)"));
    }
    HF_LEAVE(self, HF_OK);
}

/* ---- Using ------------------------------------------------------------------------------------------------------- */

/* If the body failed, its failure is returned: it says more than the failure to free the runtime. */
static hf_status end_run(hf_runtime *rt, hf_status status)
{
    hf_fiber *self = hf_enter(rt);
    if (self == NULL) {
        return hf_forked();
    }
    bool is_left = atomic_load(&rt->has_left_behind);
    if (free_unused(self, rt) || status != HF_OK) {
        HF_LEAVE(self, status);
    }
    if (is_left) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_TIMEOUT, "hf_run",
                                    "code that hf_worker_run left behind still runs (the log has its name), so the "
                                    "runtime is not freed: only that code can end itself; let the program end"));
    }
    HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, "hf_run",
                                "a thread still has a scope open in the runtime, which is not freed: close the scopes "
                                "of other threads before the body of hf_run returns"));
}

hf_status hf_run_with(hf_body body, void *arg, const hf_runtime_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_run));
    HF_OPTIONS(hf_runtime_options, options, hf_run);
    hf_runtime_options own = *options;
    own.report_overflow = true;
    hf_runtime *rt = NULL;
    HF_TRY(hf_runtime_new_with(&rt, &own));
    hf_scope *scope = NULL;
    hf_status status = hf_scope_open(&scope, .name = "main", .runtime = rt);
    if (status == HF_OK) {
        status = hf_fork(scope, body, arg, .name = "main");
        if (status == HF_OK) {
            status = hf_join(scope);
        }
        (void)hf_scope_close(scope);
    }
    return end_run(rt, status);
}

hf_runtime *hf_runtime_current(void)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    return self != NULL && (self->sched != NULL || self->branch != NULL) ? self->rt : NULL;
}

int hf_runtime_fd(hf_runtime *runtime)
{
    if (runtime == NULL || !runtime->hosted) {
        return -1;
    }
    return runtime->env->ops->poller_fd(runtime->env, runtime->scheds[0]->poller);
}

/* False: another thread is in hf_runtime_turn. A thread that drives the runtime only while it waits makes room. */
static bool begin_turn(hf_runtime *rt)
{
    hf_assert(rt->hosted);
    hf_env *env = rt->env;
    atomic_store(&rt->driver, env->ops->thread_id(env));
    for (;;) {
        uint32_t seen = atomic_load(&rt->turn_word);
        unsigned who = HF_TURNING_NOBODY;
        if (atomic_compare_exchange_strong(&rt->turning, &who, HF_TURNING_HOST)) {
            return true;
        }
        if (who == HF_TURNING_HOST) {
            return false;
        }
        env->ops->poller_ring(env, rt->scheds[0]->poller);
        (void)env->ops->word_wait(env, &rt->turn_word, seen, HF_INSTANT_NEVER);
    }
}

hf_status hf_runtime_turn(hf_runtime *runtime, hf_span timeout)
{
    HF_VERB_ENTER(self, hf_runtime_turn, runtime);
    if (runtime == NULL || !runtime->hosted || self->sched != NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE,
                                 "hf_runtime_turn drives a runtime made with .threads = HF_OFF, from "
                                 "a plain thread"));
    }
    if (!begin_turn(runtime)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "another thread is turning this runtime"));
    }
    hf_sched *sched = runtime->scheds[0];
    hf_instant deadline = timeout.ns < 0 ? (hf_instant){1} : hf_rt_deadline(runtime, timeout);
    if (timeout.ns == 0) {
        deadline = (hf_instant){1};
    }
    bool ran = hf_sched_turn(sched, deadline);
    hf_self_set(&self->self);
    hf_turn_end(runtime);
    if (!ran) {
        hf_self_note(self, HF_ERR_TIMEOUT, "hf_runtime_turn");
    }
    HF_LEAVE(self, ran ? HF_OK : HF_ERR_TIMEOUT);
}

static hf_runtime *or_current(hf_runtime *runtime)
{
    return runtime != NULL ? runtime : hf_runtime_current();
}

/* The crew whose clock the caller has. That clock stands still once the crew was evicted, so a loop that waits for
 * it never ends: the call counts. */
static hf_crew *crew_of_self(void)
{
    const hf_fiber *self = (const hf_fiber *)(const void *)hf_self_get();
    hf_crew *crew = self != NULL ? self->crew : NULL;
    if (crew != NULL) {
        hf_count_look();
    }
    return crew;
}

hf_instant hf_now(hf_runtime *runtime)
{
    hf_crew *crew = crew_of_self();
    if (crew != NULL) {
        return hf_crew_now(crew);
    }
    hf_runtime *rt = or_current(runtime);
    hf_env *env = rt != NULL ? rt->env : hf_env_posix();
    return env->ops->now(env);
}

hf_time hf_wall_now(hf_runtime *runtime)
{
    hf_crew *crew = crew_of_self();
    if (crew != NULL) {
        return (hf_time){hf_crew_now(crew).ns};
    }
    hf_runtime *rt = or_current(runtime);
    hf_env *env = rt != NULL ? rt->env : hf_env_posix();
    return env->ops->wall_now(env);
}

/* The system is asked for many bytes at once: a client that starts workflows needs 32 for each. A child that fork() made would find the same
 * ones, but its calls from fibers are refused. A simulation makes its own. */
static hf_status random_of_sched(hf_sched *sched, hf_op *op, void *ret_bytes, size_t len)
{
    if (sched->chance_left < len) {
        sched->chance_left = 0;
        HF_TRY(sched->env->ops->random(sched->env, op, sched->chance, sizeof sched->chance));
        sched->chance_left = sizeof sched->chance;
    }
    uint8_t *from = sched->chance + sizeof sched->chance - sched->chance_left;
    memcpy(ret_bytes, from, len);
    explicit_bzero(from, len); /* they may be a key */
    sched->chance_left -= (uint32_t)len;
    return HF_OK;
}

hf_status hf_random(hf_runtime *runtime, void *ret_bytes, size_t len)
{
    HF_VERB_ENTER(self, hf_random, runtime);
    if (ret_bytes == NULL && len > 0) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_random needs a place for %zu bytes", len));
    }
    if (self->crew != NULL) {
        hf_crew_random(self->crew, ret_bytes, len);
        HF_LEAVE(self, HF_OK);
    }
    hf_runtime *rt = runtime != NULL ? runtime : self->rt;
    hf_env *env = rt != NULL ? rt->env : hf_env_posix();
    hf_op op;
    hf_op_init(&op);
    bool is_small = self->sched != NULL && self->sched->env == env && !self->sched->has_point && len > 0 && len <= 64;
    hf_status status =
        is_small ? random_of_sched(self->sched, &op, ret_bytes, len) : env->ops->random(env, &op, ret_bytes, len);
    HF_LEAVE(self, status == HF_OK ? HF_OK : hf_op_end(self, &op));
}

hf_status hf_uuid(char *ret_text)
{
    uint64_t bits[2] = {0, 0};
    if (ret_text == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_uuid needs a place for %d bytes", HF_UUID_LEN);
    }
    HF_TRY(hf_random(NULL, bits, sizeof bits));
    hf_uuid_text(bits[0], bits[1], ret_text);
    return HF_OK;
}

/* ---- hf_note ----------------------------------------------------------------------------------------------------------- */

static _Atomic(hf_note_prefix) note_prefix;

void hf_note_prefix_with(hf_note_prefix prefix)
{
    atomic_store(&note_prefix, prefix);
}

void hf_note(hf_log_level level, const char *event, const char *format, ...)
{
    char fields[1024] = "";
    hf_note_prefix prefix = atomic_load(&note_prefix);
    const hf_fiber *self = (const hf_fiber *)(const void *)hf_self_get();
    hf_runtime *rt = hf_runtime_current();
    if ((self != NULL && self->is_evicted) || (prefix != NULL && !prefix(fields, sizeof fields))) {
        return;
    }
    size_t len = strlen(fields);
    if (format != NULL && format[0] != '\0' && len + 2 < sizeof fields) {
        va_list args;
        va_start(args, format);
        if (len > 0) {
            fields[len++] = ' ';
        }
        hf_fields_vformat(fields + len, sizeof fields - len, format, args);
        va_end(args);
    }
    event = event != NULL ? event : "note";
    if (rt != NULL) {
        rt->log(rt->log_state, level, event, fields);
    } else if (level >= HF_LOG_WARN) {
        char line[1200];
        hf_env *env = hf_env_posix();
        (void)snprintf(line, sizeof line, "holdfast %s: %.100s %s\n", level == HF_LOG_WARN ? "warning" : "error", event,
                       fields);
        env->ops->print(env, line);
    }
}

hf_status hf_runtime_stats(hf_runtime *runtime, hf_stats *ret_stats)
{
    hf_runtime *rt = or_current(runtime);
    HF_VERB_ENTER(self, hf_runtime_stats, rt);
    if (rt == NULL || ret_stats == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_runtime_stats needs a runtime and a place for the numbers"));
    }
    hf_stats stats;
    memset(&stats, 0, sizeof stats);
    for (int i = 0; i < rt->sched_count; i++) {
        const hf_counters *c = &rt->scheds[i]->counters; /* written by their thread: a reader gets recent values */
        stats.forks += __atomic_load_n(&c->forks, __ATOMIC_RELAXED);
        stats.joins += __atomic_load_n(&c->joins, __ATOMIC_RELAXED);
        stats.switches += __atomic_load_n(&c->switches, __ATOMIC_RELAXED);
        stats.steals += __atomic_load_n(&c->steals, __ATOMIC_RELAXED);
        stats.wakes_remote += __atomic_load_n(&c->wakes_remote, __ATOMIC_RELAXED);
        stats.branches -= __atomic_load_n(&c->branches_done, __ATOMIC_RELAXED);
        stats.scopes += __atomic_load_n(&c->scopes_opened, __ATOMIC_RELAXED);
        stats.scopes -= __atomic_load_n(&c->scopes_closed, __ATOMIC_RELAXED);
    }
    stats.branches += stats.forks;
    stats.scopes += atomic_load(&rt->ids);
    stats.fibers = (uint64_t)hf_stacks_used(rt);
    stats.stack_bytes = hf_stacks_bytes(rt);
    stats.pool_calls = atomic_load(&rt->pool_calls);
    stats.pool_depth = atomic_load(&rt->pool_depth);
    stats.pool_threads = atomic_load(&rt->pool_threads);
    stats.stranded = hf_stranded_count(rt);
    stats.stuck = hf_watchdog_stuck(rt);
    stats.zombies = hf_watchdog_zombies(rt);
    stats.threads = rt->hosted ? 0 : (uint64_t)rt->sched_count;
    *ret_stats = stats;
    HF_LEAVE(self, HF_OK);
}

void hf_text_free(char *text)
{
    if (text != NULL) {
        hf_env *env = hf_env_posix();
        env->ops->release(env, text, 0);
    }
}
