/* hf_testenv: parts that exist elsewhere, put together for tests.
 *
 *     the test's thread -> service (engine in memory, its clock stands still) <- worker on a runtime of its own
 *
 * The engine moves its clock by itself while nobody holds a lock on it (engine/skip.c), and tells when nothing runs and nothing is due.
 * A call of the test that waits takes the lock away, and waits for the first of these: the end of the run, the moment from which nothing can
 * happen, a workflow task that failed, the end of the test's patience.
 *
 * trial-T1  Time moves only while a call of the test lets it: the clock is locked between these calls, also after a failure. */
#include "trial/testenv.h"

#include "base/env.h"
#include "base/span.h"
#include "client/errand.h"
#include "fiber/verbs.h"
#include "open/open.h"
#include "trial/trial.h"
#include "worker/worker_private.h"

#include <stdio.h>
#include <string.h>

#define BEGINS INT64_C(1893456000000000000) /* ns: 2030-01-01 00:00 UTC */
#define LOOK INT64_C(10000000)              /* ns between two looks for trouble, in real time */
#define LOOK_IN_TRIAL INT64_C(500000)       /* the same in a trial, whose gate may wait for it */
#define UNPOLLED INT64_C(2000000000)        /* ns: a worker that has just been started has polled by then */
#define PATIENCE INT64_C(60000000000)       /* ns */

/* ---- The log ------------------------------------------------------------------------------------------------------------ */

/* The value of `message=`, without its quotes. */
static void take_message(const char *fields, char *to, size_t len)
{
    const char *at = strstr(fields, "message=");
    size_t used = 0;
    at = at != NULL ? at + strlen("message=") : fields;
    bool is_quoted = *at == '"';
    at += is_quoted;
    while (*at != '\0' && !(is_quoted && *at == '"') && used + 1 < len) {
        at += *at == '\\' && at[1] != '\0';
        to[used++] = *at++;
    }
    to[used] = '\0';
}

static void hear(void *state, hf_log_level level, const char *event, const char *fields)
{
    hf_testenv *env = state;
    if (strcmp(event, "workflow_task_failed") == 0) {
        hf_spin_lock(&env->lock);
        if (env->trouble[0] == '\0') {
            take_message(fields, env->trouble, sizeof env->trouble);
        }
        hf_spin_unlock(&env->lock);
        atomic_store(&env->has_trouble, true);
    }
    if (env->options.log != NULL) {
        env->options.log(env->options.log_state, level, event, fields);
    } else if (level >= HF_LOG_WARN) {
        char line[1200];
        (void)snprintf(line, sizeof line, "holdfast %s: %s %s\n", level == HF_LOG_WARN ? "warning" : "error", event,
                       fields);
        hf_env *os = hf_env_posix();
        os->ops->print(os, line);
    }
}

/* ---- The clock ---------------------------------------------------------------------------------------------------------- */

static hf_status ask(hf_service *service, hf_method method, const void *request, hf_pb_timestamp *ret_time)
{
    hf_errand e;
    hf_errand_begin(&e, "hf_testenv", HF_STR(""));
    if (hf_errand_ask(&e, service, method, request) == HF_OK && ret_time != NULL) {
        *ret_time = ((const hf_pb_get_current_time_response *)e.call.response)->time;
    }
    return hf_errand_end(&e);
}

static hf_status sleep_until(hf_service *service, int64_t until_ns)
{
    hf_pb_sleep_until_request request = {.timestamp = hf_pb_timestamp_of((hf_time){until_ns})};
    return ask(service, HF_METHOD_SLEEP_UNTIL, &request, NULL);
}

hf_time hf_testenv_now(hf_testenv *env)
{
    hf_pb_timestamp time = {0};
    hf_pb_empty request = {0};
    if (env == NULL || HF_VERB_ALLOWED(hf_testenv_now) != HF_OK ||
        ask(env->service, HF_METHOD_GET_CURRENT_TIME, &request, &time) != HF_OK) {
        return (hf_time){0};
    }
    return hf_pb_timestamp_time(time);
}

/* ---- Making and freeing --------------------------------------------------------------------------------------------------- */

static hf_status check_place(const char *verb)
{
    return hf_runtime_current() == NULL
               ? HF_OK
               : hf_raise(HF_ERR_MISUSE,
                          "%s: call it on a plain thread, such as main(): the environment has a runtime of its own",
                          verb);
}

static hf_status check(const char *verb, const hf_testenv *env)
{
    HF_TRY(check_place(verb));
    return env != NULL ? HF_OK : hf_raise(HF_ERR_MISUSE, "%s needs a test environment", verb);
}

static hf_status check_options(const hf_testenv_options *o)
{
    hf_op op;
    hf_op_init(&op);
    if (o->begins.ns < 0) {
        (void)hf_fail(&op, HF_ERR_INVALID, "hf_testenv_new: .begins is before 1970");
    } else if (o->patience.ns < 0) {
        (void)hf_fail(&op, HF_ERR_INVALID, "hf_testenv_new: .patience is not a span of time");
    } else if (hf_span_check(&op, "hf_testenv_new", ".patience", o->patience, HF_MAY_BE_UNLIMITED) == HF_OK) {
        return HF_OK;
    }
    return hf_failure_raise_op(&op);
}

static hf_status make(hf_testenv *env, hf_store *store)
{
    const hf_testenv_options *o = &env->options;
    hf_time begins = {o->begins.ns != 0 ? o->begins.ns : BEGINS};
    hf_status status = hf_runtime_new(&env->rt, .name = "test", .threads = 1, .log = hear, .log_state = env,
                                      .report_overflow = true, .watchdog = {.zombies_max = HF_OFF});
    if (status != HF_OK) {
        hf_store_close(store);
        return status;
    }
    return hf_open_standing(env->rt, store, begins, &env->service);
}

hf_status hf_testenv_open(const hf_testenv_options *options, hf_store *store, hf_testenv **ret_env)
{
    const char *queue = options->task_queue != NULL ? options->task_queue : "test";
    hf_allocator memory = hf_env_memory(hf_env_posix());
    size_t queue_len = strlen(queue) + 1;
    hf_testenv *env = memory.allocate(memory.state, sizeof *env + queue_len, _Alignof(hf_testenv));
    if (env == NULL) {
        hf_store_close(store);
        return hf_raise(HF_ERR_NOMEM, "no memory for a test environment");
    }
    memset(env, 0, sizeof *env);
    env->options = *options;
    env->queue_len = queue_len;
    memcpy(env->queue, queue, queue_len);
    atomic_init(&env->has_trouble, false);
    hf_status status = make(env, store);
    if (status != HF_OK) {
        (void)hf_testenv_free(env); /* sets no error of its own: nothing runs yet */
        return status;
    }
    *ret_env = env;
    return HF_OK;
}

hf_status hf_testenv_employ(hf_testenv *env, hf_service *front)
{
    hf_assert(env->worker == NULL);
    env->front = front;
    HF_TRY(hf_worker_new(front, env->queue, &env->worker, .runtime = env->rt,
                         .cached_max = env->options.evict_always ? HF_OFF : 0, .is_strict = true,
                         .fails_on_conflict = true, .shutdown_grace = HF_SPAN_OFF, .shutdown_force = hf_seconds(1),
                         .idle_timeout = HF_SPAN_OFF));
    env->worker->unknown_is_final = true;
    return HF_OK;
}

hf_status hf_testenv_new_with(hf_testenv **ret_env, const hf_testenv_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_testenv_new));
    HF_OPTIONS(hf_testenv_options, options, hf_testenv_new);
    hf_testenv *env = NULL;
    if (ret_env == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_testenv_new needs a place for the environment");
    }
    HF_TRY(check_options(options));
    HF_TRY(check_place("hf_testenv_new"));
    HF_TRY(hf_testenv_open(options, NULL, &env));
    hf_status status = hf_testenv_employ(env, env->service);
    if (status != HF_OK) {
        (void)hf_testenv_free(env);
        return status;
    }
    *ret_env = env;
    return HF_OK;
}

hf_status hf_testenv_free(hf_testenv *env)
{
    if (env == NULL) {
        return HF_OK;
    }
    HF_TRY(HF_VERB_ALLOWED(hf_testenv_free));
    HF_TRY(check("hf_testenv_free", env));
    if (env->gate != NULL) {
        hf_gate_shut(env->gate);
    }
    hf_status status = hf_worker_free(env->worker);
    env->worker = NULL;
    if (env->gate != NULL) {
        hf_gate_deinit(env->gate);
    }
    if (env->service != NULL) {
        hf_status closed = hf_close(env->service);
        if (closed == HF_ERR_MISUSE) {
            return closed; /* handles are left: the sentence says how many */
        }
        status = status != HF_OK ? status : closed;
        env->service = NULL;
    }
    if (env->rt != NULL && hf_runtime_free(env->rt) != HF_OK) {
        return status != HF_OK ? status : HF_ERR_TIMEOUT; /* code that does not return uses it, and this struct */
    }
    hf_allocator memory = hf_env_memory(hf_env_posix());
    memory.release(memory.state, env, sizeof *env + env->queue_len);
    return status;
}

hf_worker *hf_testenv_worker(hf_testenv *env)
{
    return env != NULL ? env->worker : NULL;
}

hf_service *hf_testenv_service(hf_testenv *env)
{
    return env != NULL ? env->service : NULL;
}

hf_status hf_testenv_activity_with(hf_testenv *env, const char *name, hf_function activity,
                                   const hf_worker_add_activity_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_testenv_activity));
    HF_OPTIONS(hf_worker_add_activity_options, options, hf_testenv_activity);
    HF_TRY(check("hf_testenv_activity", env));
    if (name != NULL && activity != NULL && hf_worker_life(env->worker) == HF_LIFE_NEW) {
        hf_worker_forget_activity(env->worker, name);
    }
    return hf_worker_add_activity_with(env->worker, name, activity, options);
}

static hf_status begin(hf_testenv *env)
{
    return hf_worker_life(env->worker) == HF_LIFE_NEW ? hf_worker_start(env->worker) : HF_OK;
}

/* ---- Waiting -------------------------------------------------------------------------------------------------------------- */

typedef struct wait {
    hf_testenv *env;
    hf_execution *execution; /* the run that the test waits for; NULL = it lets time pass */
    hf_span span;            /* that time */
    hf_instant deadline;     /* of the test's patience */
    bool is_late;            /* it is over */
    int64_t
        unpolled_ns; /* since when an activity waits on a task queue without a worker, and none runs; 0 = it is not so */
    int64_t look_ns; /* when that is asked next */
} wait;

static hf_status await_end(void *arg)
{
    wait *w = arg;
    HF_IGNORE(hf_result(w->execution, NULL)); /* how it ended is asked for again, on the test's thread */
    return hf_canceled();
}

static hf_status await_idle(void *arg)
{
    wait *w = arg;
    return sleep_until(w->env->service, HF_SLEEP_UNTIL_IDLE);
}

static hf_status await_time(void *arg)
{
    wait *w = arg;
    if (w->span.ns > 0) {
        hf_pb_sleep_request request = {.duration = hf_pb_duration_of(w->span)};
        HF_TRY(ask(w->env->service, HF_METHOD_UNLOCK_TIME_SKIPPING_WITH_SLEEP, &request, NULL));
    }
    return sleep_until(w->env->service, HF_SLEEP_UNTIL_SETTLED);
}

/* Whether the gate of a trial waits for the play. */
static bool is_upset(const hf_testenv *env)
{
    return env->gate != NULL && atomic_load(&env->gate->state) != HF_GATE_OPEN;
}

/* An activity on a task queue that nobody polls counts as work for a worker, so time does not move, and the run would wait for the end of the
 * test's patience. Whether it does is asked for now and then, and must be so for a while: the worker may be about to poll. While
 * another activity runs the run may go on by itself. */
static bool is_stranded(wait *w)
{
    hf_worker_stats stats = {0};
    int64_t now = hf_now(NULL).ns;
    if (w->execution == NULL || now < w->look_ns) {
        return false;
    }
    w->look_ns = now + UNPOLLED / 4;
    bool is_busy = hf_worker_stat(w->env->worker, &stats) == HF_OK && stats.activities > stats.activity_zombies;
    if (is_busy || !hf_waiting_is_unpolled(w->env->front, w->execution)) {
        w->unpolled_ns = 0;
        return false;
    }
    w->unpolled_ns = w->unpolled_ns != 0 ? w->unpolled_ns : now;
    return now - w->unpolled_ns >= UNPOLLED;
}

static hf_status await_trouble(void *arg)
{
    wait *w = arg;
    w->look_ns = hf_now(NULL).ns + UNPOLLED / 4;
    while (!atomic_load(&w->env->has_trouble) && !is_upset(w->env)) {
        if (w->env->gate != NULL) {
            hf_gate_look(w->env->gate);
        }
        if (hf_now(NULL).ns >= w->deadline.ns) {
            w->is_late = true;
            return HF_OK;
        }
        if (is_stranded(w)) {
            return HF_OK;
        }
        HF_TRY(hf_sleep(hf_nanoseconds(w->env->gate != NULL ? LOOK_IN_TRIAL : LOOK)));
    }
    return HF_OK;
}

/* Waits for the first of these. */
static hf_status await_first(wait *w, hf_body one, hf_body other)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    int64_t now = hf_now(w->env->rt).ns;
    int64_t patience = w->env->options.patience.ns != 0 ? w->env->options.patience.ns : PATIENCE;
    w->deadline.ns = patience < INT64_MAX - now ? now + patience : INT64_MAX;
    HF_TRY(hf_scope_open(&scope, .name = "test waits", .runtime = w->env->rt, .join = HF_JOIN_ANY));
    HF_TRY(hf_fork(scope, one, w));
    if (other != NULL) {
        HF_TRY(hf_fork(scope, other, w));
    }
    HF_TRY(hf_fork(scope, await_trouble, w));
    return hf_join(scope);
}

/* HF_OK, or what went wrong while the test waited. */
static hf_status judge(const wait *w)
{
    hf_testenv *env = w->env;
    if (atomic_load(&env->has_trouble)) {
        char text[sizeof env->trouble];
        hf_spin_lock(&env->lock);
        memcpy(text, env->trouble, sizeof text);
        hf_spin_unlock(&env->lock);
        return hf_raise_typed(HF_ERR_FAILED, "WorkflowTaskFailed", "a workflow task failed: %s", text);
    }
    if (!w->is_late) {
        return HF_OK;
    }
    char text[HF_MESSAGE_LEN_MAX / 2] = "";
    if (w->execution != NULL) {
        hf_waiting_tell(env->front, w->execution, text, sizeof text);
    }
    return hf_raise_typed(HF_ERR_TIMEOUT, "Patience",
                          "the test's patience is over, and code still runs or is tried again%s%s",
                          text[0] != '\0' ? ": " : "", text);
}

static bool is_open(hf_execution *execution)
{
    hf_description *shown = NULL;
    bool is_open = hf_describe(execution, &shown) == HF_OK && shown->status == HF_WORKFLOW_RUNNING;
    hf_description_free(shown);
    return is_open;
}

hf_status hf_testenv_await(hf_testenv *env, hf_execution *execution, hf_payload *ret_out, bool *ret_is_upset)
{
    HF_TRY(begin(env));
    wait w = {.env = env, .execution = execution};
    hf_pb_unlock_time_skipping_request unlock = {0};
    hf_pb_lock_time_skipping_request lock = {0};
    HF_TRY(ask(env->service, HF_METHOD_UNLOCK_TIME_SKIPPING, &unlock, NULL)); /* trial-T1 */
    hf_status status = await_first(&w, await_end, await_idle);
    HF_TRY(ask(env->service, HF_METHOD_LOCK_TIME_SKIPPING, &lock, NULL));
    *ret_is_upset = is_upset(env);
    HF_TRY(status);
    HF_TRY(judge(&w));
    if (*ret_is_upset) {
        return HF_OK;
    }
    if (!is_open(execution)) {
        return hf_result(execution, ret_out);
    }
    char text[HF_MESSAGE_LEN_MAX - 100];
    hf_waiting_tell(env->front, execution, text, sizeof text);
    return hf_raise(HF_ERR_AGAIN, "nothing happens any more: %s", text);
}

hf_status hf_testenv_result(hf_testenv *env, hf_execution *execution, hf_payload *ret_out)
{
    bool is_upset = false;
    HF_TRY(HF_VERB_ALLOWED(hf_testenv_result));
    HF_TRY(check("hf_testenv_result", env));
    if (execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_testenv_result needs a run: hf_testenv_start gives one");
    }
    hf_status status = hf_testenv_await(env, execution, ret_out, &is_upset);
    hf_assert(!is_upset);
    return status;
}

hf_status hf_testenv_start_with(hf_testenv *env, const char *type, hf_payload in, hf_execution **ret_execution,
                                const hf_start_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_testenv_start));
    HF_OPTIONS(hf_start_options, options, hf_testenv_start);
    HF_TRY(check("hf_testenv_start", env));
    HF_TRY(begin(env));
    char id[32];
    hf_start_options with = *options;
    if (with.id == NULL) {
        (void)snprintf(id, sizeof id, "test-%d", ++env->starts);
        with.id = id;
    }
    with.task_queue = with.task_queue != NULL ? with.task_queue : env->queue;
    return hf_start_with(env->service, type, in, ret_execution, &with);
}

hf_status hf_testenv_run(hf_testenv *env, const char *type, hf_payload in, hf_payload *ret_out)
{
    HF_TRY(HF_VERB_ALLOWED(hf_testenv_run));
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(hf_testenv_start(env, type, in, &execution));
    return hf_testenv_result(env, execution, ret_out);
}

hf_status hf_testenv_pass(hf_testenv *env, hf_span span)
{
    HF_TRY(HF_VERB_ALLOWED(hf_testenv_pass));
    HF_TRY(check("hf_testenv_pass", env));
    if (span.ns < 0) {
        return hf_raise(HF_ERR_INVALID, "hf_testenv_pass: the span is negative, and time does not go back");
    }
    HF_TRY(begin(env));
    wait w = {.env = env, .span = span};
    HF_TRY(await_first(&w, await_time, NULL));
    return judge(&w);
}
