/* How a worker runs and how it stops.
 *
 *     hf_worker_run -- starts the keeper, a thread, and waits for it; hf_worker_start and hf_worker_wait are its halves
 *     keeper        -- owns the scope "worker"; answers for workflows that do not yield; ends the wait in the end
 *       fiber "worker": scopes "workflows" and "activities", inside them scope "pollers"; waits for a reason to stop
 *
 *     the ladder (its states are in life.h):
 *                    1  pollers are canceled: nothing new comes in; the service forgets the sticky queue
 *                    2  cached workflows are evicted, each after the step it is at; activities may finish (grace)
 *                    3  activities are canceled (force)
 *                    4  results that the service does not take are given up; activities and workflows that still run
 *                       are logged by name and left behind: hf_worker_run returns HF_ERR_TIMEOUT
 *
 * The fiber (serve.c) does steps 1 to 3, the keeper does step 4. The keeper is a plain thread, so that neither a
 * workflow that keeps the fiber threads busy nor an activity that ignores its cancel can make it wait. Work that is
 * left behind still uses the worker, the runtime and a thread, and C has no way to take these away. So the keeper
 * waits for it, in its scope, and frees the worker when the last of it has ended. Until then hf_runtime_free
 * refuses. The service may be closed: worker-K4. */
#include "worker/keeper_private.h"

#include "fiber/crew/crew_private.h"
#include "fiber/io/signals.h"
#include "fiber/sched/safepoint.h"
#include "fiber/verbs.h"
#include "fiber/watch/watch.h"
#include "fiber/watch/watch_policy.h"

#include <stdio.h>

enum { KEEPER_STACK_LEN = 256 * 1024, TRIM_BYTES = 4 << 20 };

static const int64_t NAP_NS = 10 * INT64_C(1000000);
static const int64_t LAST_WORD_NS =
    INT64_C(1000000000); /* how long the service may take to refuse the last results, once time is over ... */
static const int64_t FAR_WORD_NS = 3 * INT64_C(1000000000); /* ... if it is in another process, and may be away */
static const int64_t TRIM_AFTER_NS = INT64_C(1000000000);   /* how long released runs have to end */
static const int64_t LISTEN_NS = 100 * INT64_C(1000000); /* how often the keeper looks for a signal, once it has to */

/* ---- From any thread --------------------------------------------------------------------------------------------- */

void hf_worker_count(hf_worker *worker, atomic_int *which, int delta)
{
    int before = atomic_fetch_add(which, delta);
    hf_assert(before + delta >= 0);
    if (delta < 0 && atomic_load(&worker->stop_ns) != 0) {
        HF_IGNORE(hf_chan_try_send(worker->ended, "")); /* full: whoever waits looks anyway */
    }
}

unsigned hf_worker_tell(hf_worker *worker, hf_life_event event)
{
    unsigned from = atomic_load(&worker->life);
    for (;;) {
        hf_life_step step = hf_life_next((hf_life_state)from, event);
        hf_assert(step.is_known);
        if (atomic_compare_exchange_weak(&worker->life, &from, (unsigned)step.next)) {
            return step.actions;
        }
    }
}

void hf_worker_ring(hf_worker *worker)
{
    hf_env *env = worker->rt->env;
    atomic_fetch_add(&worker->word, 1);
    env->ops->word_wake(env, &worker->word, 1);
}

void hf_worker_give_up(hf_worker *worker, hf_status status, const char *why)
{
    if (!atomic_exchange(&worker->has_given_up, true)) { /* each of its pollers comes here */
        (void)snprintf(worker->why, sizeof worker->why, "the worker ended: %s", why);
        hf_log(worker->rt, HF_LOG_ERROR, "worker_gave_up", "queue=%.*s message=%s", HF_STR_ARGS(worker->queue), why);
    }
    __atomic_store_n(&worker->status, status, __ATOMIC_RELAXED);
    HF_IGNORE(hf_worker_stop(worker));
}

hf_status hf_worker_stop(hf_worker *worker)
{
    HF_TRY(HF_VERB_ALLOWED(hf_worker_stop));
    if (worker == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_worker_stop needs a worker");
    }
    const char *reason = "hf_worker_stop";
    int64_t nobody = 0;
    int64_t now = hf_now(worker->rt).ns;
    if (atomic_compare_exchange_strong(&worker->stop_ns, &nobody, now > 0 ? now : 1)) {
        hf_worker_ring(worker);
    }
    hf_status status = hf_chan_try_send(worker->stop, &reason);
    return status == HF_ERR_AGAIN ? HF_OK : status; /* full: it was told before */
}

/* ---- The keeper -------------------------------------------------------------------------------------------------- */

/* Tasks that waited behind a step that does not end. A service that takes them back gives them to the next poll. Else the run that takes
 * the place of the stuck one plays them, unless its driver could not begin: the stuck fiber keeps the thread that drivers are sent to. */
static void see_to_left(hf_worker *worker, const hf_stuck_step *step, hf_list *left)
{
    bool is_home_kept = step->seat == worker->home && !hf_watchdog_figures_of(&worker->rt->watchdog).may_interrupt;
    if (worker->service->takes_nothing_back && !is_home_kept) {
        hf_wf_pass_on(worker, left);
    } else {
        hf_wf_return_all(worker, left, HF_ERR_TIMEOUT);
    }
}

/* The watchdog has reported a fiber. If it belongs to a workflow, its step is answered as failed. */
static void answer_stuck(hf_worker *worker)
{
    int64_t limit = hf_watchdog_figures_of(&worker->rt->watchdog).stuck_ns;
    hf_arena arena;
    hf_arena_init(&arena, worker->memory);
    hf_stuck_step step;
    hf_list left;
    hf_list_init(&left);
    int64_t now = hf_now(worker->rt).ns;
    while (limit != HF_WATCHDOG_NEVER && hf_wf_cache_give_up(worker, now - limit, &arena, &step, &left)) {
        hf_op why;
        hf_op_init(&why);
        (void)hf_fail(&why, HF_ERR_TIMEOUT, "%s (for %lld ms so far)", hf_wf_stuck_text,
                      (long long)((now - step.since_ns) / 1000000));
        hf_wf_answer_failed(worker, &step, &why);
        see_to_left(worker, &step, &left);
        hf_worker_count(worker, &worker->runs_count, -1); /* hf_wf_cache_give_up */
        hf_arena_reset(&arena);
        worker->listens = true;
    }
    hf_arena_deinit(&arena);
}

/* The thread that a workflow keeps may be the one that waits for the signal .stop_on. */
static void hear_signal(hf_worker *worker)
{
    int number = 0;
    hf_fiber *self = hf_enter(worker->rt);
    hf_spin_lock(&worker->signals_lock);
    bool has_come = worker->signals != NULL && hf_os_signals_try_next(worker->signals, &number) == HF_OK;
    hf_spin_unlock(&worker->signals_lock);
    hf_leave(self);
    if (has_come) {
        HF_IGNORE(hf_worker_stop(worker));
    }
}

/* When the worker must have stopped. */
static hf_instant last_moment(hf_worker *worker)
{
    const hf_worker_options *o = &worker->options;
    int64_t stop = atomic_load(&worker->stop_ns);
    if (stop == 0) {
        return HF_INSTANT_NEVER;
    }
    stop = stop > worker->started_ns ? stop : worker->started_ns; /* it may have been told before it ran */
    return hf_instant_after(hf_instant_after((hf_instant){stop}, o->shutdown_grace), o->shutdown_force);
}

static void let_go(hf_worker *worker)
{
    HF_IGNORE(hf_chan_try_send(worker->over, ""));
}

/* A workflow that does not yield may have the thread that would return from hf_worker_run: the thread that turns a
 * runtime without threads, or the thread of the fiber that called hf_worker_run, unless the watchdog may take it away.
 * Then hf_worker_run cannot return; this is only logged. */
static void warn_of_caller(hf_worker *worker)
{
    hf_runtime *rt = worker->rt;
    bool can_be_replaced = !rt->hosted && hf_watchdog_figures_of(&rt->watchdog).may_interrupt;
    if (rt->hosted || (worker->near != NULL && !can_be_replaced)) {
        hf_log(rt, HF_LOG_ERROR, "worker_cannot_return", "queue=%.*s message=%s", HF_STR_ARGS(worker->queue),
               rt->hosted
                   ? "a workflow that does not yield has the thread that turns the runtime: hf_worker_run returns "
                     "when it ends; a runtime with threads would not wait for it"
                   : "if the workflow that does not yield has the thread of the fiber that called hf_worker_run, "
                     "hf_worker_run returns when it ends; .watchdog.signal lets the runtime replace such a thread");
    }
}

static void say_what_is_left(hf_worker *worker, int jobs, int runs)
{
    char who[80];
    int len = 0;
    if (jobs > 0 || runs == 0) {
        len =
            snprintf(who, sizeof who, "%d %s%s", jobs, jobs == 1 ? "activity" : "activities", runs > 0 ? " and " : "");
    }
    if (runs > 0) {
        (void)snprintf(who + len, sizeof who - (size_t)len, "%d %s", runs, runs == 1 ? "workflow" : "workflows");
    }
    (void)snprintf(worker->left, sizeof worker->left,
                   jobs + runs == 1
                       ? "%s ignored its cancel and was left behind: it keeps its thread and the runtime's memory; the "
                         "log has its name"
                       : "%s ignored their cancel and were left behind: they keep their threads and the runtime's "
                         "memory; the log has their names",
                   who);
}

/* Results that could not be delivered are named after work that does not end. */
static void add_unsaid(hf_worker *worker, int count, bool is_first)
{
    size_t len = is_first ? 0 : strlen(worker->left);
    hf_assert(len < sizeof worker->left);
    if (!is_first && len + 2 < sizeof worker->left) {
        memcpy(worker->left + len, "; ", 3);
        len += 2;
    }
    hf_worker_say_unsaid(worker, count, worker->left + len, sizeof worker->left - len);
}

/* worker-K4: work that still runs goes on, but hf_worker_run no longer waits for it. */
static void leave_behind(hf_worker *worker)
{
    hf_assert(hf_worker_life(worker) == HF_LIFE_LEFT); /* worker-K4 */
    hf_activity_counts activities = hf_activity_count(worker);
    int jobs = activities.running;
    int runs = atomic_load(&worker->runs_count);
    int unsaid = activities.answering + activities.unsaid;
    if (runs > 0) {
        warn_of_caller(worker);
    }
    hf_log(worker->rt, HF_LOG_ERROR, "worker_left_behind", "queue=%.*s activities=%d workflows=%d answers=%d",
           HF_STR_ARGS(worker->queue), jobs, runs, unsaid);
    hf_activity_report(worker, "activity_left_behind");
    hf_wf_cache_report(worker, "workflow_left_behind");
    atomic_store(&worker->rt->has_left_behind, true);
    hf_guard_shut(&worker->guard);
    hf_world_stop(worker->rt); /* calls that were on their way through the guard have passed it: service-G2 */
    hf_world_start(worker->rt);
    if (jobs + runs > 0 || unsaid == 0) {
        say_what_is_left(worker, jobs, runs);
    }
    if (unsaid > 0) {
        add_unsaid(worker, unsaid, jobs + runs == 0);
    }
    let_go(worker);
}

/* Time is over. Results of activities and answers of steps that the service does not take are not sent again. If nothing else is left, the
 * worker then ends by itself, unless the service does not answer at all. True: the keeper waits for that end, until `*ret_until`. */
static bool has_patience(hf_worker *worker, hf_instant now, hf_instant *ret_until)
{
    if ((hf_worker_tell(worker, HF_LIFE_TIME_OVER) & HF_LIFE_DO_HUSH) != 0) {
        worker->hushed_ns = now.ns;
        (void)hf_chan_close(worker->hush);
    }
    hf_activity_counts activities = hf_activity_count(worker);
    bool is_far = worker->service->is_remote; /* a step's answer is sent again only there: run.c, ask_on */
    bool is_quiet =
        activities.running == 0 && (is_far ? hf_wf_cache_in_code(worker) : atomic_load(&worker->runs_count)) == 0;
    *ret_until = hf_instant_after((hf_instant){worker->hushed_ns}, hf_nanoseconds(is_far ? FAR_WORD_NS : LAST_WORD_NS));
    return is_quiet && now.ns < ret_until->ns;
}

/* Runs that were released leave holes in the heap, which the system gets back only on request. This costs milliseconds, so
 * it is done after a release that was large, when no more has come for a second and its fibers have ended, and not more
 * often than runs can become idle. Returns when the keeper is to look again; INT64_MAX = it has no date. */
static int64_t trim_heap(hf_worker *worker, int64_t now_ns)
{
    hf_env *env = worker->rt->env;
    hf_span span = worker->options.idle_timeout;
    size_t bytes = hf_wf_cache_given_back(worker, false);
    if (bytes < TRIM_BYTES) {
        return INT64_MAX;
    }
    int64_t next = worker->trimmed_ns != 0 ? hf_instant_after((hf_instant){worker->trimmed_ns}, span).ns : 0;
    int64_t last = hf_instant_after((hf_instant){worker->trim_first_ns}, span).ns;
    if (worker->trim_seen == 0) {
        worker->trim_first_ns = now_ns;
    }
    if (worker->trim_seen == 0 || (bytes != worker->trim_seen && now_ns < last)) { /* more may come */
        worker->trim_seen = bytes;
        int64_t soon = hf_instant_after((hf_instant){now_ns}, hf_nanoseconds(TRIM_AFTER_NS)).ns;
        worker->trim_ns = soon > next ? soon : next;
    }
    if (now_ns < worker->trim_ns) {
        return worker->trim_ns;
    }
    (void)hf_wf_cache_given_back(worker, true);
    env->ops->heap_trim(env);
    worker->trim_seen = 0;
    worker->trimmed_ns = now_ns;
    return INT64_MAX;
}

/* When the keeper looks again if nobody rings: a runtime without threads has no watchdog that would ring, and a
 * signal does not ring. `idle_ns`: a run will have waited for too long then, or the
 * heap is to be trimmed. */
static hf_instant next_look(hf_worker *worker, hf_instant now, int64_t idle_ns)
{
    hf_instant last = last_moment(worker);
    last.ns = idle_ns < last.ns ? idle_ns : last.ns;
    int64_t limit = hf_watchdog_figures_of(&worker->rt->watchdog).stuck_ns;
    bool is_alone = worker->rt->hosted && limit != HF_WATCHDOG_NEVER;
    bool listens = worker->listens && worker->options.stop_on != 0 && atomic_load(&worker->stop_ns) == 0;
    hf_instant look = is_alone ? hf_instant_after(now, hf_nanoseconds(limit)) : HF_INSTANT_NEVER;
    hf_instant ear = listens ? hf_instant_after(now, hf_nanoseconds(LISTEN_NS)) : HF_INSTANT_NEVER;
    look = ear.ns < look.ns ? ear : look;
    return look.ns < last.ns ? look : last;
}

/* Runs until everything has ended or was left behind. On a runtime without threads the keeper then runs its fibers
 * while it waits for the scope, unless a host turns the runtime. */
static void keep(hf_worker *worker)
{
    hf_env *env = worker->rt->env;
    while (!hf_guard_is_shut(&worker->guard)) {
        uint32_t seen = atomic_load(&worker->word);
        if (hf_worker_life(worker) == HF_LIFE_OVER) {
            return;
        }
        answer_stuck(worker);
        hf_activity_see_zombies(worker);
        if (worker->listens) {
            hear_signal(worker);
        }
        if (atomic_load(&worker->rt->is_draining) && atomic_load(&worker->stop_ns) == 0) {
            HF_IGNORE(hf_worker_stop(worker)); /* too many zombies: the worker takes no new work (T16) */
        }
        hf_instant now = env->ops->now(env);
        hf_instant until = HF_INSTANT_NEVER;
        int64_t idle_ns = hf_wf_cache_release_idle(worker, now.ns);
        int64_t trim_ns = trim_heap(worker, now.ns);
        idle_ns = trim_ns < idle_ns ? trim_ns : idle_ns;
        if (now.ns < last_moment(worker).ns) {
            (void)env->ops->word_wait(env, &worker->word, seen, next_look(worker, now, idle_ns));
        } else if (has_patience(worker, now, &until)) {
            (void)env->ops->word_wait(env, &worker->word, seen, until);
        } else if ((hf_worker_tell(worker, HF_LIFE_PATIENCE_OVER) & HF_LIFE_DO_LEAVE) != 0) {
            leave_behind(worker);
        }
    }
}

static void keeper_main(void *arg)
{
    hf_worker *worker = arg;
    /* In a simulation threads share thread-local variables. */
    hf_thread_fiber me = {.fiber = {.kind = HF_FIBER_THREAD}, .near = worker->near};
    hf_watchdog_listener listener = {.word = &worker->word};
    hf_scope *scope = NULL;
    hf_self_set(&me.fiber.self);
    hf_status status = hf_scope_open(&scope, .name = "worker", .runtime = worker->rt, .join = HF_JOIN_COLLECT);
    status = status == HF_OK ? hf_fork(scope, hf_worker_main, worker, .name = "worker") : status;
    if (status == HF_OK) {
        hf_watchdog_listen(worker->rt, &listener);
        keep(worker);
        hf_watchdog_unlisten(worker->rt, &listener);
        HF_IGNORE(hf_join(scope));
    } else {
        worker->result = status;
        (void)hf_worker_tell(worker, HF_LIFE_ENDED); /* the keeper itself is the only listener */
        (void)snprintf(worker->why, sizeof worker->why, "the worker could not begin: %s", hf_error_text());
    }
    if (hf_guard_is_shut(&worker->guard) && !worker->owns_runtime) { /* with its scope the runtime may go, too */
        (void)hf_worker_release(worker);
        (void)hf_scope_close(scope);
    } else {
        (void)hf_scope_close(scope);
        let_go(worker); /* the waiting caller then joins this thread */
        (void)hf_worker_release(worker);
    }
    hf_self_drop_chain(&me.fiber);
    hf_self_set(NULL);
}

/* Waits until the keeper lets go. A cancel from outside means that the worker should stop. */
static void wait_for_keeper(hf_worker *worker)
{
    char token = 0;
    if (hf_chan_recv(worker->over, &token) == HF_OK) {
        return;
    }
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_IGNORE(hf_worker_stop(worker));
    hf_status status = hf_worker_shield_open(worker->rt, &shield);
    while (status != HF_OK || hf_chan_recv(worker->over, &token) != HF_OK) {
        hf_env *env = worker->rt->env; /* out of memory: without a shield a wait fails at once, so it is made of naps */
        hf_word never = 0;
        (void)env->ops->word_wait(env, &never, 0, (hf_instant){env->ops->now(env).ns + NAP_NS});
        if (hf_chan_try_recv(worker->over, &token) == HF_OK) {
            return;
        }
    }
}

static hf_sched *near_of(const hf_fiber *self, const hf_worker *worker)
{
    return worker != NULL && self->rt == worker->rt ? self->sched : NULL;
}

static hf_status may_run(hf_worker *worker, hf_sched **ret_near)
{
    HF_VERB_ENTER(self, hf_worker_run, worker != NULL ? worker->rt : NULL);
    *ret_near = near_of(self, worker);
    HF_LEAVE(self, HF_OK);
}

static hf_status may_start(hf_worker *worker, hf_sched **ret_near)
{
    HF_VERB_ENTER(self, hf_worker_start, worker != NULL ? worker->rt : NULL);
    *ret_near = near_of(self, worker);
    HF_LEAVE(self, HF_OK);
}

static hf_status may_wait(hf_worker *worker)
{
    HF_VERB_ENTER(self, hf_worker_wait, worker != NULL ? worker->rt : NULL);
    HF_LEAVE(self, HF_OK);
}

/* A worker runs once; two threads may call at the same time. */
static bool begin(hf_worker *worker)
{
    unsigned expected = HF_LIFE_NEW;
    hf_life_step step = hf_life_next(HF_LIFE_NEW, HF_LIFE_STARTED);
    return atomic_compare_exchange_strong(&worker->life, &expected, (unsigned)step.next);
}

/* Starts the keeper. */
static hf_status launch(hf_worker *worker, hf_sched *near, const char *verb)
{
    HF_TRY(worker != NULL ? hf_worker_may_ask(worker->given) : HF_OK);
    if (worker == NULL || !begin(worker)) {
        return hf_raise(HF_ERR_MISUSE, "%s needs a worker that has not run before", verb);
    }
    hf_env *env = worker->rt->env;
    hf_op op;
    hf_op_init(&op);
    worker->near = near;
    worker->started_ns = hf_now(worker->rt).ns;
    atomic_fetch_add(&worker->owners, 1);
    atomic_fetch_add(&worker->given->workers, 1);
    worker->witness.look = hf_wf_cache_look;
    worker->witness.pin = hf_activity_pin;
    worker->witness.cancel = hf_activity_cancel;
    hf_witness_add(worker->given, &worker->witness);
    hf_status status =
        env->ops->thread_start(env, &op, "hf-worker", KEEPER_STACK_LEN, keeper_main, worker, &worker->keeper);
    if (status != HF_OK) {
        hf_witness_remove(worker->given, &worker->witness);
        atomic_fetch_sub(&worker->given->workers, 1);
        worker->result = status;
        (void)hf_worker_tell(worker, HF_LIFE_ENDED);
        (void)hf_worker_tell(worker, HF_LIFE_RETURNED);
        (void)hf_worker_release(worker);
        return hf_raise(status, "the worker's thread could not be started: %s", op.message);
    }
    return HF_OK;
}

/* Waits until the worker has stopped, and says how. Called once for each worker that was launched. */
static hf_status land(hf_worker *worker)
{
    hf_env *env = worker->rt->env;
    wait_for_keeper(worker);
    hf_witness_remove(worker->given, &worker->witness);
    atomic_fetch_sub(&worker->given->workers, 1); /* ended, or left behind: worker-K4 */
    if (hf_guard_is_shut(&worker->guard)) {
        env->ops->thread_forget(env, worker->keeper);
        (void)hf_worker_tell(worker, HF_LIFE_RETURNED);
        return hf_raise(HF_ERR_TIMEOUT, "%s", worker->left);
    }
    env->ops->thread_join(env, worker->keeper);
    hf_assert(hf_worker_life(worker) == HF_LIFE_OVER); /* worker-L2 */
    (void)hf_worker_tell(worker, HF_LIFE_RETURNED);
    return worker->result == HF_OK ? HF_OK : hf_raise(worker->result, "%s", worker->why);
}

hf_status hf_worker_run(hf_worker *worker)
{
    hf_sched *near = NULL;
    HF_TRY(may_run(worker, &near));
    HF_TRY(launch(worker, near, "hf_worker_run"));
    return land(worker);
}

hf_status hf_worker_start(hf_worker *worker)
{
    hf_sched *near = NULL;
    HF_TRY(may_start(worker, &near));
    HF_TRY(launch(worker, near, "hf_worker_start"));
    atomic_store(&worker->is_started, true);
    return HF_OK;
}

/* Whether the caller is the one who ends it. */
static bool claim(hf_worker *worker)
{
    return atomic_load(&worker->is_started) && !atomic_exchange(&worker->is_waited, true);
}

hf_status hf_worker_wait(hf_worker *worker)
{
    HF_TRY(may_wait(worker));
    if (worker == NULL || !claim(worker)) {
        return hf_raise(HF_ERR_MISUSE, "hf_worker_wait needs a worker that hf_worker_start has started, and that no "
                                       "other call waits for or has waited for");
    }
    return land(worker);
}

hf_status hf_worker_end(hf_worker *worker, bool *ret_is_over)
{
    HF_TRY(may_wait(worker)); /* not in a hook */
    if (!claim(worker)) {
        return hf_raise(HF_ERR_MISUSE, "a worker cannot be freed before hf_worker_run or hf_worker_wait has returned");
    }
    *ret_is_over = true;
    HF_IGNORE(hf_worker_stop(worker));
    return land(worker);
}
