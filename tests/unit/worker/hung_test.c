/* labels: threads */
/* Activities that do not end, on real threads with a real signal. Nothing here is timed: a test waits until a line was logged or
 * something has happened. What happens when: tests/sim/worker_hung_test.c. */
#include "support/support.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- What was logged --------------------------------------------------------------------------------------------- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t log_grew = PTHREAD_COND_INITIALIZER;
static char lines[64 * 1024];
static size_t lines_len;
static atomic_int fatal_code;

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

/* The first line with this text; a copy. */
static const char *await_line(const char *text)
{
    static char line[1200];
    (void)pthread_mutex_lock(&log_lock);
    while (strstr(lines, text) == NULL) {
        (void)pthread_cond_wait(&log_grew, &log_lock);
    }
    const char *at = strstr(lines, text);
    (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    (void)pthread_mutex_unlock(&log_lock);
    return line;
}

static void on_fatal(void *state, const char *message, int exit_code)
{
    (void)state;
    (void)message;
    atomic_store(&fatal_code, exit_code);
    keep_line(NULL, HF_LOG_ERROR, "hook_called", "");
}

/* ---- Functions --------------------------------------------------------------------------------------------------------- */

static atomic_bool may_go_on;
static atomic_int running;
static atomic_int interrupted;
static int pipe_fds[2];

/* Ends when its call is interrupted, as an activity should. */
static hf_status read_once(hf_payload in, hf_payload *ret_out)
{
    char byte = 0;
    const char *reason = NULL;
    (void)in;
    (void)ret_out;
    ssize_t got = read(pipe_fds[0], &byte, 1); /* nobody ever writes */
    HF_CHECK(got == -1 && errno == EINTR);
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED);
    HF_CHECK(hf_cancel_cause(&reason) == HF_CAUSE_DEADLINE);
    keep_line(NULL, HF_LOG_INFO, "read_returned", reason);
    return HF_ERR_CANCELED;
}

/* Does not care. */
static hf_status read_again(hf_payload in, hf_payload *ret_out)
{
    char byte = 0;
    (void)in;
    (void)ret_out;
    atomic_fetch_add(&running, 1);
    while (!atomic_load(&may_go_on)) {
        ssize_t got = read(pipe_fds[0], &byte, 1);
        atomic_fetch_add(&interrupted, got == -1 && errno == EINTR);
    }
    atomic_fetch_sub(&running, 1);
    return HF_OK;
}

static hf_status spin(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    atomic_fetch_add(&running, 1);
    while (!atomic_load(&may_go_on)) {
        /* as an activity on a fiber must not */
    }
    atomic_fetch_sub(&running, 1);
    return HF_OK;
}

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    HF_CHECK(atomic_load(&running) > 0); /* the one that hangs still does */
    return hf_payload_copy(in, ret_out);
}

/* `in` is the name of the activity. */
static hf_status ask(hf_payload in, hf_payload *ret_out)
{
    char name[32];
    (void)snprintf(name, sizeof name, "%.*s", (int)in.len, (const char *)in.data);
    return hf_activity_run(name, in, ret_out, .start_to_close = hf_milliseconds(20), .attempts_max = 1);
}

static hf_status ask_for_echo(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("echo", in, ret_out, .start_to_close = hf_hours(1));
}

/* ---- A worker ------------------------------------------------------------------------------------------------------------ */

typedef struct stage {
    hf_service *service; /* NULL = closed */
    hf_runtime *rt;
    hf_worker *worker;
    hf_status status; /* of hf_worker_run */
    pthread_t thread;
} stage;

static void *run_worker(void *arg)
{
    stage *s = arg;
    s->status = hf_worker_run(s->worker);
    return NULL;
}

/* Who is patient waits for every activity when it stops; who is not leaves behind what does not end. */
static void stage_open(stage *s, int signal_number, int zombies_max, int activities_max, bool is_patient)
{
    const hf_span patience = is_patient ? hf_hours(1) : hf_milliseconds(1);
    *s = (stage){0};
    assert_int_equal(hf_open("memory:", &s->service), HF_OK);
    atomic_store(&may_go_on, false);
    atomic_store(&running, 0);
    atomic_store(&interrupted, 0);
    atomic_store(&fatal_code, 0);
    memset(lines, 0, sizeof lines);
    lines_len = 0;
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(hf_runtime_new(&s->rt, .threads = 2, .log = keep_line, .fatal = on_fatal,
                                    .watchdog = {.stuck_after = hf_milliseconds(300), /* others must not be: a busy
                                                                                           machine is slow */
                                                 .zombie_after = hf_milliseconds(300),
                                                 .interrupt_first = hf_milliseconds(5),
                                                 .zombies_max = zombies_max,
                                                 .shutdown_grace = hf_milliseconds(20),
                                                 .shutdown_force = hf_milliseconds(20),
                                                 .signal = signal_number}),
                     HF_OK);
    assert_int_equal(hf_worker_new(s->service, "orders", &s->worker, .runtime = s->rt, .activities_max = activities_max,
                                   .shutdown_grace = patience, .shutdown_force = patience),
                     HF_OK);
    assert_int_equal(hf_worker_add_workflow(s->worker, "ask", ask), HF_OK);
    assert_int_equal(hf_worker_add_workflow(s->worker, "ask_for_echo", ask_for_echo), HF_OK);
    assert_int_equal(hf_worker_add_activity(s->worker, "once", read_once), HF_OK);
    assert_int_equal(hf_worker_add_activity(s->worker, "again", read_again), HF_OK);
    assert_int_equal(hf_worker_add_activity(s->worker, "spin", spin, .on_fiber = true), HF_OK);
    assert_int_equal(hf_worker_add_activity(s->worker, "echo", echo), HF_OK);
    assert_int_equal(pthread_create(&s->thread, NULL, run_worker, s), 0);
}

static void stage_start(stage *s, const char *activity, const char *id)
{
    hf_payload in = {.encoding = "json/plain", .data = activity, .len = strlen(activity)};
    assert_int_equal(hf_start(s->service, "ask", in, NULL, .id = id, .task_queue = "orders"), HF_OK);
}

/* With one slot: it runs only if the one that hangs has given it up. */
static void stage_echo(stage *s)
{
    hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    assert_int_equal(
        hf_start(s->service, "ask_for_echo", hf_payload_of_json("7"), &execution, .id = "e", .task_queue = "orders"),
        HF_OK);
    assert_int_equal(hf_result(execution, &out), HF_OK);
    assert_string_equal((const char *)out.data, "7");
    hf_execution_free(execution);
}

static void stage_release(void)
{
    atomic_store(&may_go_on, true);
    assert_int_equal(write(pipe_fds[1], "12345678", 8), 8); /* for those that nobody interrupts */
}

static void stage_stop(stage *s, hf_status wanted)
{
    assert_int_equal(hf_worker_stop(s->worker), HF_OK);
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    assert_int_equal(s->status, wanted);
}

static void stage_close(stage *s)
{
    assert_int_equal(hf_close(s->service), HF_OK);
    assert_int_equal(hf_worker_free(s->worker), HF_OK);
    while (hf_runtime_free(s->rt) != HF_OK) { /* until what was left behind has ended */
        (void)sched_yield();
    }
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
}

static uint64_t zombies(const stage *s)
{
    hf_stats stats;
    assert_int_equal(hf_runtime_stats(s->rt, &stats), HF_OK);
    return stats.zombies;
}

/* ---- Tests --------------------------------------------------------------------------------------------------------------- */

static void T13_a_call_that_blocks_an_activity_is_interrupted(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, SIGURG, 0, 0, true);
    stage_start(&s, "once", "w");
    assert_string_equal(await_line("read_returned "),
                        "read_returned the start_to_close timeout of the activity is over");
    stage_stop(&s, HF_OK);
    stage_close(&s);
}

static void hang_in_read(int signal_number)
{
    stage s;
    stage_open(&s, signal_number, 0, 1, true);
    stage_start(&s, "again", "w");
    const char *line = await_line("zombie activity=again id=1 attempt=1 workflow=w run=");
    assert_int_equal(strstr(line, "stack=\"\"") != NULL, signal_number == 0);
    assert_int_equal(strstr(line, "set .watchdog.signal, for example to SIGURG") != NULL, signal_number == 0);
    assert_int_equal(zombies(&s), 1);
    stage_echo(&s);
    assert_int_equal(atomic_load(&interrupted) > 0, signal_number != 0);
    stage_release();
    (void)await_line("zombie_gone activity=again ");
    assert_int_equal(zombies(&s), 0);
    stage_stop(&s, HF_OK);
    stage_close(&s);
}

static void T15_T17_an_activity_that_hangs_is_counted_and_keeps_no_slot(void **state)
{
    (void)state;
    hang_in_read(SIGURG);
    hang_in_read(0);
}

/* Its fiber is stuck: reported, replaced, counted as any other; and its slot is not kept either. */
static void T14_T17_an_activity_on_a_fiber_that_hangs_is_a_stuck_fiber(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, SIGURG, 0, 1, true);
    stage_start(&s, "spin", "w");
    (void)await_line("fiber_stuck ");
    (void)await_line("thread_replaced ");
    (void)await_line("zombie fiber=");
    assert_int_equal(zombies(&s), 1);
    const char *named = await_line("zombie_on_fiber ");
    assert_non_null(strstr(named, "activity=spin id=1 workflow=w run="));
    stage_echo(&s);
    stage_release();
    (void)await_line("zombie_gone fiber=");
    assert_int_equal(zombies(&s), 0);
    stage_stop(&s, HF_OK);
    stage_close(&s);
}

static void T16_zombies_of_both_kinds_shut_the_runtime_down(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, SIGURG, 2, 8, false);
    stage_start(&s, "again", "one");
    (void)await_line("zombie activity=again ");
    stage_start(&s, "spin", "other");
    (void)await_line("zombie fiber=");
    (void)await_line("shutdown step=drain zombies=2 zombies_max=2");
    (void)await_line("shutdown step=cancel");
    (void)await_line("hook_called ");
    assert_int_equal(atomic_load(&fatal_code), 1);
    assert_int_equal(pthread_join(s.thread, NULL), 0); /* nobody told the worker to stop but the watchdog */
    assert_int_equal(s.status, HF_ERR_TIMEOUT);
    stage_release();
    stage_close(&s);
}

static void a_zombie_that_was_left_behind_keeps_what_it_needs(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, SIGURG, 0, 2, false);
    stage_start(&s, "again", "w");
    (void)await_line("zombie activity=again ");
    stage_stop(&s, HF_ERR_TIMEOUT);
    (void)await_line("activity_left_behind activity=again ");
    assert_int_equal(hf_close(s.service), HF_OK);
    s.service = NULL;
    assert_int_equal(hf_worker_free(s.worker), HF_OK);
    s.worker = NULL;
    assert_int_equal(hf_runtime_free(s.rt), HF_ERR_MISUSE);
    assert_int_equal(zombies(&s), 1);
    stage_release();
    stage_close(&s);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(T13_a_call_that_blocks_an_activity_is_interrupted),
        cmocka_unit_test(T15_T17_an_activity_that_hangs_is_counted_and_keeps_no_slot),
        cmocka_unit_test(T14_T17_an_activity_on_a_fiber_that_hangs_is_a_stuck_fiber),
        cmocka_unit_test(T16_zombies_of_both_kinds_shut_the_runtime_down),
        cmocka_unit_test(a_zombie_that_was_left_behind_keeps_what_it_needs),
    };
    return hf_test_main("hung", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
