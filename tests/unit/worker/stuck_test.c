/* labels: threads */
/* What does not end: workflows that do not yield, activities that ignore their cancel. Nothing here is timed: a test waits until
 * a line was logged, or turns the clock of a simulation. */
#include "support/fake_service.h"
#include "unit/worker/play.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- What was logged --------------------------------------------------------------------------------------------- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t log_grew = PTHREAD_COND_INITIALIZER;
static char lines[64 * 1024];
static size_t lines_len;

static void keep_line(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)pthread_mutex_lock(&log_lock);
    int len = snprintf(lines + lines_len, sizeof lines - lines_len, "%s %s\n", event, fields);
    lines_len += len > 0 && (size_t)len < sizeof lines - lines_len ? (size_t)len : 0;
    (void)pthread_cond_broadcast(&log_grew);
    (void)pthread_mutex_unlock(&log_lock);
}

static void await_line(const char *text)
{
    (void)pthread_mutex_lock(&log_lock);
    while (strstr(lines, text) == NULL) {
        (void)pthread_cond_wait(&log_grew, &log_lock);
    }
    (void)pthread_mutex_unlock(&log_lock);
}

static bool has_line(const char *text)
{
    (void)pthread_mutex_lock(&log_lock);
    bool found = strstr(lines, text) != NULL;
    (void)pthread_mutex_unlock(&log_lock);
    return found;
}

/* ---- Workflows that do not yield ----------------------------------------------------------------------------------- */

static atomic_bool may_go_on;
static atomic_int cleaned_up;

static hf_status loop(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_payload_free) hf_payload copy = hf_payload_none();
    (void)in;
    HF_TRY(hf_payload_copy(hf_payload_of_json("1"), &copy));
    while (!atomic_load(&may_go_on)) {
        /* as a workflow must not */
    }
    hf_status status = hf_signal_wait("go", NULL);
    atomic_fetch_add(&cleaned_up, status == HF_ERR_EVICTED);
    HF_TRY(status);
    return hf_payload_printf(ret_out, "\"went on\"");
}

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status ask_for_echo(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("echo", in, ret_out, .start_to_close = hf_seconds(60));
}

/* A worker of the queue "orders", on a runtime and a service of its own. */
typedef struct stage {
    tap *tap;
    hf_service *service; /* the tap's */
    hf_runtime *rt;
    hf_worker *worker;
    pthread_t thread; /* runs it */
} stage;

static hf_service *engine(void)
{
    hf_service *service = NULL;
    assert_int_equal(hf_open("memory:", &service), HF_OK);
    return service;
}

/* A workflow task that has failed waits here for the next event of its run. The engine gives it again at once. */
static hf_service *engine_without_attempts(void)
{
    hf_service *service = NULL;
    assert_int_equal(fake_open(&service), HF_OK);
    return service;
}

static void stage_open(stage *s, hf_service *service, int threads, int watchdog_signal, hf_worker_options options)
{
    *s = (stage){.tap = tap_new(service, NULL)};
    s->service = tap_as_service(s->tap);
    atomic_store(&may_go_on, false);
    atomic_store(&cleaned_up, 0);
    memset(lines, 0, sizeof lines);
    lines_len = 0;
    assert_int_equal(hf_runtime_new(&s->rt, .threads = threads, .log = keep_line,
                                    .watchdog = {.stuck_after = hf_milliseconds(20), .signal = watchdog_signal}),
                     HF_OK);
    options.size = sizeof options;
    options.runtime = s->rt;
    assert_int_equal(hf_worker_new_with(s->service, "orders", &s->worker, &options), HF_OK);
}

static void stage_run(stage *s, void *(*body)(void *stage))
{
    assert_int_equal(pthread_create(&s->thread, NULL, body, s), 0);
}

/* A workflow that keeps its thread, until the worker has noticed. */
static void stage_keep_thread(stage *s, hf_execution **ret_execution)
{
    assert_int_equal(
        hf_start(s->service, "loop", hf_payload_none(), ret_execution, .id = "stuck", .task_queue = "orders"), HF_OK);
    await_line("workflow_task_failed workflow=stuck");
}

static void stage_close(stage *s)
{
    tap_close(s->tap, HF_ERR_CLOSED);
    assert_int_equal(hf_worker_free(s->worker), HF_OK);
    atomic_store(&may_go_on, true);
    while (hf_runtime_free(s->rt) != HF_OK) { /* until what was left behind has ended */
        (void)sched_yield();
    }
    assert_int_equal(tap_free(s->tap), HF_OK);
}

static void *run_worker(void *arg)
{
    const stage *s = arg;
    HF_CHECK(hf_worker_run(s->worker) == HF_OK);
    return NULL;
}

static void expect_result(hf_execution *execution, const char *wanted)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    assert_int_equal(hf_result(execution, &out), HF_OK);
    assert_string_equal((const char *)out.data, wanted);
}

/* One fiber thread, and a workflow that keeps it; or none (HF_OFF): it keeps who waits in hf_worker_run. */
static void stuck_with(int threads, int signal_number)
{
    static const char SAID[] = "stuck: FAILED 14 the workflow's code does not yield";
    stage s;
    hf_execution *stuck = NULL;
    hf_execution *other = NULL;
    stage_open(&s, engine_without_attempts(), threads, signal_number, (hf_worker_options){0});
    assert_int_equal(hf_worker_add_workflow(s.worker, "loop", loop), HF_OK);
    assert_int_equal(hf_worker_add_workflow(s.worker, "main", ask_for_echo), HF_OK);
    assert_int_equal(hf_worker_add_activity(s.worker, "echo", echo), HF_OK);
    stage_run(&s, run_worker);
    stage_keep_thread(&s, &stuck);
    if (signal_number != 0) { /* its thread was replaced: the others go on while it loops */
        assert_int_equal(
            hf_start(s.service, "main", hf_payload_of_json("7"), &other, .id = "other", .task_queue = "orders"), HF_OK);
        expect_result(other, "7");
        hf_execution_free(other);
    }
    atomic_store(&may_go_on, true);
    await_line("workflow_came_back workflow=stuck");
    assert_int_equal(atomic_load(&cleaned_up), 1);
    assert_int_equal(hf_signal(stuck, "go", hf_payload_none()), HF_OK); /* a new task: the run is made again */
    expect_result(stuck, "\"went on\"");
    assert_int_equal(hf_worker_stop(s.worker), HF_OK);
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    assert_memory_equal(tap_log(s.tap), SAID, sizeof SAID - 1);
    hf_execution_free(stuck);
    stage_close(&s);
}

static void a_workflow_that_loops_is_answered_and_evicted_while_others_go_on(void **state)
{
    (void)state;
    stuck_with(1, SIGURG);
}

static void a_workflow_that_loops_is_answered_where_no_thread_may_be_interrupted(void **state)
{
    (void)state;
    stuck_with(1, 0);
}

static void a_workflow_that_loops_is_answered_on_a_runtime_without_threads(void **state)
{
    (void)state;
    stuck_with(HF_OFF, 0);
}

/* It loops without the library until its thread was taken away or its step was answered, and then with it: carried back by its
 * first call it is evicted, and does not return. The bound ends what would go on for ever. */
enum { CALLS_MAX = 1000000 };

static hf_status loop_twice(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    while (!atomic_load(&may_go_on)) {
        /* as a workflow must not */
    }
    int calls = 0;
    for (; hf_signal_wait("go", NULL) != HF_OK && calls < CALLS_MAX; calls++) {
        HF_IGNORE(hf_sleep(hf_seconds(1)));
    }
    HF_CHECK_SAY(calls < CALLS_MAX, "an evicted workflow was refused %d times", calls);
    return hf_payload_printf(ret_out, "\"went on\"");
}

static void stuck_and_stubborn(int threads, int signal_number)
{
    stage s;
    hf_execution *stuck = NULL;
    hf_stats stats;
    stage_open(&s, engine_without_attempts(), threads, signal_number, (hf_worker_options){0});
    assert_int_equal(hf_worker_add_workflow(s.worker, "loop", loop_twice), HF_OK);
    stage_run(&s, run_worker);
    stage_keep_thread(&s, &stuck);
    atomic_store(&may_go_on, true);
    await_line("workflow_came_back workflow=stuck");
    assert_true(has_line("workflow_did_not_return workflow=stuck type=loop fiber=loop stack=\""));
    assert_int_equal(hf_signal(stuck, "go", hf_payload_none()), HF_OK); /* a new task: the run is made again */
    expect_result(stuck, "\"went on\"");
    assert_int_equal(hf_runtime_stats(s.rt, &stats), HF_OK);
    assert_int_equal(stats.stranded, 1);
    assert_int_equal(hf_worker_stop(s.worker), HF_OK);
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    hf_execution_free(stuck);
    stage_close(&s);
}

static void a_workflow_that_comes_back_and_does_not_return_is_stranded(void **state)
{
    (void)state;
    stuck_and_stubborn(1, SIGURG);
    stuck_and_stubborn(1, 0);
    stuck_and_stubborn(HF_OFF, 0);
}

/* ---- Queries that do not return ---------------------------------------------------------------------------------------- */

static hf_status on_loop(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    while (!atomic_load(&may_go_on)) {
        /* as a query must not */
    }
    return hf_payload_copy(in, ret_out); /* what it was asked is still there */
}

/* Its calls are refused: a query may only look. It tries again for ever, and is stranded when its run is evicted. */
static hf_status on_stubborn(void *arg, hf_payload in, hf_payload *ret_out)
{
    HF_TRY(on_loop(arg, in, ret_out));
    int calls = 0;
    while (hf_sleep(hf_seconds(1)) != HF_OK && calls < CALLS_MAX) {
        calls++;
    }
    HF_CHECK_SAY(calls < CALLS_MAX, "an evicted query was refused %d times", calls);
    return HF_OK;
}

static hf_status on_plain(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    return hf_payload_copy(in, ret_out);
}

static hf_status is_asked(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_on_query("plain", on_plain));
    HF_TRY(hf_on_query("loop", on_loop));
    HF_TRY(hf_on_query("stubborn", on_stubborn));
    HF_TRY(hf_signal_wait("go", NULL));
    return hf_payload_printf(ret_out, "\"went on\"");
}

typedef struct question {
    hf_execution *execution;
    const char *name;
} question;

static void *ask_in_vain(void *arg)
{
    const question *q = arg;
    hf_status status = hf_query(q->execution, q->name, hf_payload_of_json("7"), NULL, .timeout = hf_minutes(5));
    HF_CHECK_SAY(status == HF_ERR_FAILED && strstr(hf_error_text(), "does not yield") != NULL, "%s: %s",
                 hf_status_name(status), hf_error_text());
    return NULL;
}

/* The caller hears of it while the query still runs; then the query comes back, and the run is made again. */
static void query_with(const char *name, int threads, int signal_number)
{
    stage s;
    question q = {NULL, name};
    pthread_t asking;
    stage_open(&s, engine(), threads, signal_number, (hf_worker_options){0});
    assert_int_equal(hf_worker_add_workflow(s.worker, "asked", is_asked), HF_OK);
    assert_int_equal(
        hf_start(s.service, "asked", hf_payload_none(), &q.execution, .id = "stuck", .task_queue = "orders"), HF_OK);
    stage_run(&s, run_worker);
    assert_int_equal(hf_query(q.execution, "plain", hf_payload_of_json("1"), NULL), HF_OK); /* its first step is over */
    assert_int_equal(pthread_create(&asking, NULL, ask_in_vain, &q), 0);
    assert_int_equal(pthread_join(asking, NULL), 0);
    atomic_store(&may_go_on, true);
    await_line("workflow_came_back workflow=stuck");
    assert_int_equal(hf_signal(q.execution, "go", hf_payload_none()), HF_OK);
    expect_result(q.execution, "\"went on\"");
    assert_int_equal(hf_worker_stop(s.worker), HF_OK);
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    hf_execution_free(q.execution);
    stage_close(&s);
}

static void a_query_that_does_not_return_is_answered(void **state)
{
    (void)state;
    query_with("loop", 1, SIGURG);
    query_with("loop", 1, 0);
    query_with("loop", HF_OFF, 0);
}

/* Where its thread cannot be taken away this loop is like any other: nothing that it calls waits. */
static void a_query_that_tries_again_for_ever_is_stranded(void **state)
{
    (void)state;
    query_with("stubborn", 1, SIGURG);
}

static hf_worker_options impatient(int stop_on)
{
    return (hf_worker_options){
        .stop_on = stop_on, .shutdown_grace = hf_milliseconds(1), .shutdown_force = hf_milliseconds(1)};
}

static hf_status be_left(void *arg)
{
    const stage *s = arg;
    HF_CHECK(hf_worker_run(s->worker) == HF_ERR_TIMEOUT);
    return HF_OK;
}

static void *call_on_thread(void *arg)
{
    HF_CHECK(be_left(arg) == HF_OK);
    return NULL;
}

static void *call_on_fiber(void *arg)
{
    const stage *s = arg;
    hf_scope *scope = NULL;
    HF_CHECK(hf_scope_open(&scope, .runtime = s->rt) == HF_OK);
    HF_CHECK(hf_fork(scope, be_left, arg) == HF_OK);
    HF_CHECK(hf_join(scope) == HF_OK);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    return NULL;
}

/* Its pollers hear that the service is gone when the thread is theirs again: that is no news. */
static void a_worker_that_was_left_behind_does_not_complain_of_its_service(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, engine(), 1, 0, impatient(0));
    assert_int_equal(hf_worker_add_workflow(s.worker, "loop", loop), HF_OK);
    stage_run(&s, call_on_thread);
    stage_keep_thread(&s, NULL);
    assert_int_equal(hf_worker_stop(s.worker), HF_OK);
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    stage_close(&s);
    assert_true(has_line("workflow_came_back workflow=stuck"));
    assert_false(has_line("worker_gave_up"));
}

/* The thread that runs the workflow is the one that called hf_worker_run: it cannot return, and the log says why. */
static void keep_caller(int threads, void *(*call)(void *))
{
    static const char SAID[] = "worker_cannot_return queue=orders message=";
    stage s;
    stage_open(&s, engine(), threads, 0, impatient(0));
    assert_int_equal(hf_worker_add_workflow(s.worker, "loop", loop), HF_OK);
    stage_run(&s, call);
    stage_keep_thread(&s, NULL);
    assert_int_equal(hf_worker_stop(s.worker), HF_OK);
    await_line("worker_left_behind");
    assert_true(has_line(SAID));
    atomic_store(&may_go_on, true); /* now it does */
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    stage_close(&s);
}

static void a_worker_whose_caller_is_kept_by_a_workflow_says_so(void **state)
{
    (void)state;
    keep_caller(HF_OFF, call_on_thread);
    keep_caller(1, call_on_fiber);
}

static void *run_worker_without_its_store(void *arg)
{
    const stage *s = arg;
    HF_CHECK(hf_worker_run(s->worker) == HF_ERR_STORE);
    return NULL;
}

static void a_worker_says_once_that_its_service_is_gone(void **state)
{
    (void)state;
    stage s;
    hf_execution *execution = NULL;
    stage_open(&s, engine(), 1, 0, (hf_worker_options){0});
    assert_int_equal(hf_worker_add_workflow(s.worker, "main", ask_for_echo), HF_OK);
    assert_int_equal(hf_worker_add_activity(s.worker, "echo", echo), HF_OK);
    stage_run(&s, run_worker_without_its_store);
    assert_int_equal(hf_start(s.service, "main", hf_payload_of_json("7"), &execution, .task_queue = "orders"), HF_OK);
    expect_result(execution, "7");
    hf_execution_free(execution);
    tap_close(s.tap, HF_ERR_STORE); /* all of its polls fail */
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    (void)pthread_mutex_lock(&log_lock);
    const char *first = strstr(lines, "worker_gave_up");
    bool is_said_once = first != NULL && strstr(first + 1, "worker_gave_up") == NULL;
    (void)pthread_mutex_unlock(&log_lock);
    assert_true(is_said_once);
    stage_close(&s);
}

/* ---- Activities that ignore their cancel ----------------------------------------------------------------------------- */

static atomic_int ended_late;

static hf_status ignore_all(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_hours(2), &shield));
    HF_TRY(hf_sleep(hf_hours(1)));
    HF_IGNORE(hf_activity_heartbeat(hf_payload_of_json("1")));
    atomic_fetch_add(&ended_late, 1);
    return hf_activity_fail("too late anyway");
}

static hf_status ask_for_it(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("ignore", in, ret_out, .start_to_close = hf_hours(5));
}

static hf_status run_and_be_left(void *arg)
{
    play *p = arg;
    hf_status status = hf_worker_run(p->worker);
    HF_CHECK_SAY(status == HF_ERR_TIMEOUT &&
                     strstr(hf_error_text(), "1 activity ignored its cancel and was left") != NULL,
                 "%s: %s", hf_status_name(status), hf_error_text());
    return HF_OK;
}

static bool ignores_on_fiber;

static hf_status leave_it_behind(void *arg)
{
    play *p = arg;
    hf_worker_options options = p->options.worker;
    HF_TRY(play_open(p));
    HF_TRY(hf_worker_new_with(p->service, "orders", &p->worker, &options));
    HF_TRY(hf_worker_add_workflow(p->worker, "main", ask_for_it));
    HF_TRY(hf_worker_add_activity(p->worker, "ignore", ignore_all, .on_fiber = ignores_on_fiber));
    hf_instant from = {0};
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_and_be_left, p));
        HF_TRY(hf_start(p->service, "main", hf_payload_none(), NULL, .id = "w", .task_queue = "orders"));
        HF_TRY(hf_sleep(hf_seconds(1)));
        from = hf_now(NULL);
        HF_TRY(hf_worker_stop(p->worker));
        HF_TRY(hf_join(scope));
    }
    HF_CHECK_SAY(hf_now(NULL).ns - from.ns == hf_seconds(15).ns, "%lld ms", (long long)(hf_now(NULL).ns - from.ns));
    HF_TRY(hf_worker_free(p->worker)); /* its memory goes with the activity, and the service may go before */
    HF_TRY(play_close(p));
    HF_CHECK(atomic_load(&ended_late) == 0);
    return hf_sleep(hf_hours(3));
}

static void leave_with(bool on_fiber)
{
    static play p;
    for (int threads = 1; threads <= 2; threads++) {
        memset(&p, 0, sizeof p);
        p.options.worker = (hf_worker_options){.size = sizeof p.options.worker};
        ignores_on_fiber = on_fiber;
        atomic_store(&ended_late, 0);
        HF_CHECK(hf_sim_run(1, threads, leave_it_behind, &p, NULL) == HF_OK);
        HF_CHECK(atomic_load(&ended_late) == 1);
    }
}

static void an_activity_that_ignores_its_cancel_is_left_behind(void **state)
{
    (void)state;
    leave_with(false);
}

static void an_activity_on_a_fiber_that_ignores_its_cancel_is_left_behind(void **state)
{
    (void)state;
    leave_with(true);
}

/* ---- What a program hears of it ---------------------------------------------------------------------------------------- */

static hf_service *service_of_program;
static hf_worker *worker_of_program;
static atomic_bool has_ended;

/* Not even a cancel reaches it: it does not use the library. */
static hf_status hold_out(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_CHECK(hf_worker_stop(worker_of_program) == HF_OK);
    (void)pthread_mutex_lock(&log_lock);
    while (!atomic_load(&may_go_on)) {
        (void)pthread_cond_wait(&log_grew, &log_lock);
    }
    (void)pthread_mutex_unlock(&log_lock);
    atomic_store(&has_ended, true);
    return HF_OK;
}

static hf_status ask_to_hold_out(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("hold_out", in, ret_out, .start_to_close = hf_hours(5));
}

/* A program as most are: `hf_run(program)`. Passes on what hf_worker_run says, or forgives it. */
static hf_status program(void *arg)
{
    HF_TRY(hf_worker_new(service_of_program, "orders", &worker_of_program, .shutdown_grace = hf_milliseconds(1),
                         .shutdown_force = hf_milliseconds(1)));
    HF_TRY(hf_worker_add_workflow(worker_of_program, "main", ask_to_hold_out));
    HF_TRY(hf_worker_add_activity(worker_of_program, "hold_out", hold_out));
    HF_TRY(hf_start(service_of_program, "main", hf_payload_none(), NULL, .id = "w", .task_queue = "orders"));
    hf_status status = hf_worker_run(worker_of_program);
    HF_CHECK(status == HF_ERR_TIMEOUT);
    HF_TRY(hf_worker_free(worker_of_program));
    return *(const bool *)arg ? HF_OK : hf_raise(status, "the worker: %s", "it was left behind");
}

static void hf_run_says_what_was_left_behind_and_what_to_do(void **state)
{
    (void)state;
    for (int forgives = 0; forgives < 2; forgives++) {
        bool arg = forgives != 0;
        atomic_store(&may_go_on, false);
        atomic_store(&has_ended, false);
        service_of_program = engine();
        assert_int_equal(hf_run(program, &arg, .log = keep_line), HF_ERR_TIMEOUT);
        assert_string_equal(hf_error_text(),
                            forgives ? "code that hf_worker_run left behind still runs (the log has its name), so the "
                                       "runtime is not freed: only that code can end itself; let the program end"
                                     : "the worker: it was left behind");
        assert_int_equal(hf_close(service_of_program), HF_OK);
        (void)pthread_mutex_lock(&log_lock);
        atomic_store(&may_go_on, true);
        (void)pthread_cond_broadcast(&log_grew);
        (void)pthread_mutex_unlock(&log_lock);
        while (!atomic_load(&has_ended)) {
            (void)sched_yield();
        }
    }
}

/* Whoever keeps the only fiber thread keeps the fiber that waits for the signal: the keeper hears it then. */
static void the_signal_is_heard_while_a_workflow_keeps_the_thread(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, engine(), 1, 0, impatient(SIGUSR1));
    assert_int_equal(hf_worker_add_workflow(s.worker, "loop", loop), HF_OK);
    stage_run(&s, call_on_thread);
    stage_keep_thread(&s, NULL);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    stage_close(&s);
}

/* Only a workflow is in the way: there is no activity to cancel, and no line about them. */
static void a_worker_that_has_no_activities_cancels_none(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, engine(), 1, SIGURG, impatient(0));
    assert_int_equal(hf_worker_add_workflow(s.worker, "loop", loop), HF_OK);
    stage_run(&s, call_on_thread);
    stage_keep_thread(&s, NULL);
    await_line("thread_replaced");
    assert_int_equal(hf_worker_stop(s.worker), HF_OK);
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    await_line("worker_left_behind queue=orders activities=0 workflows="); /* one, or two: it was tried again */
    assert_false(has_line("worker_cancels_activities"));
    stage_close(&s);
}

/* ---- Tried again --------------------------------------------------------------------------------------------------- */

static atomic_int attempts;

/* Only the first one does not yield. */
static hf_status loop_once(hf_payload in, hf_payload *ret_out)
{
    if (atomic_fetch_add(&attempts, 1) == 0) {
        return loop(in, ret_out);
    }
    return hf_payload_printf(ret_out, "\"at the second go\"");
}

/* The task of the step that does not end is answered, and the next attempt is played on a new fiber, while the first one still
 * keeps its own. */
static void a_run_that_is_stuck_is_tried_again_at_once(void **state)
{
    (void)state;
    stage s;
    hf_execution *execution = NULL;
    atomic_store(&attempts, 0);
    stage_open(&s, engine(), 1, SIGURG, (hf_worker_options){0});
    assert_int_equal(hf_worker_add_workflow(s.worker, "loop", loop_once), HF_OK);
    stage_run(&s, run_worker);
    stage_keep_thread(&s, &execution);
    expect_result(execution, "\"at the second go\"");
    assert_false(has_line("workflow_came_back"));
    atomic_store(&may_go_on, true);
    await_line("workflow_came_back workflow=stuck");
    assert_int_equal(atomic_load(&attempts), 2);
    assert_int_equal(hf_worker_stop(s.worker), HF_OK);
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    hf_execution_free(execution);
    stage_close(&s);
}

/* Two fibers of it do not yield: that is enough. Its third task is refused. */
static void a_run_that_is_stuck_twice_is_not_tried_a_third_time(void **state)
{
    (void)state;
    stage s;
    hf_worker_stats stats;
    hf_execution *execution = NULL;
    stage_open(&s, engine(), 1, SIGURG, (hf_worker_options){0});
    assert_int_equal(hf_worker_add_workflow(s.worker, "loop", loop), HF_OK);
    stage_run(&s, run_worker);
    stage_keep_thread(&s, &execution);
    await_line("workflow_task_dropped");
    assert_int_equal(hf_worker_stat(s.worker, &stats), HF_OK);
    assert_int_equal(stats.stuck, 2);
    assert_int_equal(stats.resident, 0);
    atomic_store(&may_go_on, true);
    await_line("workflow_came_back workflow=stuck");
    assert_int_equal(hf_terminate(execution), HF_OK);
    assert_int_equal(hf_worker_stop(s.worker), HF_OK);
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    assert_int_equal(atomic_load(&cleaned_up), 2);
    hf_execution_free(execution);
    stage_close(&s);
}

/* It is asked for again and again, as its policy says: whoever forgot to add it must find out why nothing happens. */
static void an_activity_that_the_worker_does_not_have_is_in_the_log(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, engine(), 1, 0, (hf_worker_options){0});
    assert_int_equal(hf_worker_add_workflow(s.worker, "main", ask_for_echo), HF_OK);
    assert_int_equal(hf_worker_add_activity(s.worker, "ehco", echo), HF_OK);
    stage_run(&s, run_worker);
    assert_int_equal(hf_start(s.service, "main", hf_payload_none(), NULL, .id = "asks", .task_queue = "orders"), HF_OK);
    await_line("activity_unknown activity=echo queue=orders workflow=asks attempt=1 "
               "message=\"this worker does not have it: add it with hf_worker_add_activity");
    assert_int_equal(hf_worker_stop(s.worker), HF_OK);
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    stage_close(&s);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_workflow_that_loops_is_answered_and_evicted_while_others_go_on),
        cmocka_unit_test(a_workflow_that_loops_is_answered_where_no_thread_may_be_interrupted),
        cmocka_unit_test(a_workflow_that_loops_is_answered_on_a_runtime_without_threads),
        cmocka_unit_test(a_workflow_that_comes_back_and_does_not_return_is_stranded),
        cmocka_unit_test(a_query_that_does_not_return_is_answered),
        cmocka_unit_test(a_query_that_tries_again_for_ever_is_stranded),
        cmocka_unit_test(a_worker_whose_caller_is_kept_by_a_workflow_says_so),
        cmocka_unit_test(a_worker_that_was_left_behind_does_not_complain_of_its_service),
        cmocka_unit_test(a_worker_says_once_that_its_service_is_gone),
        cmocka_unit_test(the_signal_is_heard_while_a_workflow_keeps_the_thread),
        cmocka_unit_test(a_worker_that_has_no_activities_cancels_none),
        cmocka_unit_test(a_run_that_is_stuck_is_tried_again_at_once),
        cmocka_unit_test(a_run_that_is_stuck_twice_is_not_tried_a_third_time),
        cmocka_unit_test(an_activity_that_the_worker_does_not_have_is_in_the_log),
        cmocka_unit_test(an_activity_that_ignores_its_cancel_is_left_behind),
        cmocka_unit_test(an_activity_on_a_fiber_that_ignores_its_cancel_is_left_behind),
        cmocka_unit_test(hf_run_says_what_was_left_behind_and_what_to_do),
    };
    return hf_test_main("stuck", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
