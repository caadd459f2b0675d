/* labels: threads */
/* Workers on runtimes that are not their own: without threads, turned by a host's loop or by whoever waits; of another
 * program part, with memory of its own. The keeper (keeper.c) is a plain thread beside all of them. */
#include "support/support.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- What runs ----------------------------------------------------------------------------------------------------- */

typedef enum way {
    CALLER_DRIVES, /* nobody turns the runtime: who waits in hf_worker_run does */
    HOST_TURNS,    /* everything is a fiber, and the host's loop runs them */
    HOST_BESIDE,   /* the host turns; worker and client are threads of their own */
    THREADS,       /* for comparison: the runtime has threads */
    WAYS
} way;

typedef struct stage {
    hf_runtime *rt;
    hf_service *service;
    hf_worker *worker;
    hf_status wanted; /* of hf_worker_run */
    atomic_int done;  /* of the two */
} stage;

static stage here;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool may_end;

static void no_log(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)event;
    (void)fields;
}

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

/* Stops its own worker, and does not hear that it is to end. */
static hf_status deaf(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_CHECK(hf_worker_stop(here.worker) == HF_OK);
    (void)pthread_mutex_lock(&lock);
    while (!may_end) {
        (void)pthread_cond_wait(&changed, &lock);
    }
    (void)pthread_mutex_unlock(&lock);
    return HF_OK;
}

static hf_status ask_for_echo(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_sleep(hf_milliseconds(1))); /* of real time */
    return hf_activity_run("echo", in, ret_out, .start_to_close = hf_seconds(60));
}

static hf_status ask_for_deaf(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("deaf", in, ret_out, .start_to_close = hf_hours(1));
}

static hf_status client(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
        HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
        HF_CHECK(hf_start(here.service, "echo", hf_payload_of_json("7"), &execution, .task_queue = "orders") == HF_OK);
        HF_CHECK(hf_result(execution, &out) == HF_OK && strcmp(out.data, "7") == 0);
    }
    if (here.wanted == HF_OK) {
        HF_CHECK(hf_worker_stop(here.worker) == HF_OK);
    } else {
        HF_CHECK(hf_start(here.service, "deaf", hf_payload_none(), NULL, .task_queue = "orders") == HF_OK);
    }
    atomic_fetch_add(&here.done, 1);
    return HF_OK;
}

static hf_status run_worker(void *arg)
{
    (void)arg;
    hf_status status = hf_worker_run(here.worker);
    HF_CHECK_SAY(status == here.wanted, "%s: %s", hf_status_name(status), hf_error_text());
    atomic_fetch_add(&here.done, 1);
    return HF_OK;
}

static void *as_thread(void *body)
{
    HF_CHECK((*(hf_body *)body)(NULL) == HF_OK);
    return NULL;
}

/* ---- Runtimes without threads -------------------------------------------------------------------------------------- */

static void host_loop(hf_scope *scope)
{
    while (!hf_scope_is_idle(scope)) {
        struct pollfd fd = {.fd = hf_runtime_fd(here.rt), .events = POLLIN};
        (void)poll(&fd, 1, -1);
        HF_IGNORE(hf_runtime_turn(here.rt, HF_SPAN_OFF));
    }
}

static void go(way how)
{
    static hf_body bodies[2] = {run_worker, client};
    pthread_t threads[2];
    hf_scope *scope = NULL;
    bool is_caller = how == CALLER_DRIVES || how == THREADS;
    int from = is_caller ? 1 : 0;
    if (how == HOST_TURNS) {
        assert_int_equal(hf_scope_open(&scope, .runtime = here.rt), HF_OK);
        assert_int_equal(hf_fork(scope, run_worker, NULL), HF_OK);
        assert_int_equal(hf_fork(scope, client, NULL), HF_OK);
        host_loop(scope);
        assert_int_equal(hf_join(scope), HF_OK);
        assert_int_equal(hf_scope_close(scope), HF_OK);
        return;
    }
    for (int i = from; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, as_thread, &bodies[i]), 0);
    }
    if (is_caller) {
        (void)run_worker(NULL);
    }
    while (atomic_load(&here.done) < 2) {
        if (how == HOST_BESIDE) {
            HF_IGNORE(hf_runtime_turn(here.rt, hf_milliseconds(1)));
        }
        (void)sched_yield();
    }
    for (int i = from; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static void hosted_with(way how, hf_status wanted)
{
    memset(&here, 0, sizeof here);
    here.wanted = wanted;
    may_end = false;
    assert_int_equal(hf_open("memory:", &here.service), HF_OK);
    assert_int_equal(hf_runtime_new(&here.rt, .threads = how == THREADS ? 2 : HF_OFF, .log = no_log), HF_OK);
    assert_int_equal(hf_worker_new(here.service, "orders", &here.worker, .runtime = here.rt,
                                   .shutdown_grace = hf_milliseconds(wanted == HF_OK ? 10000 : 1),
                                   .shutdown_force = hf_milliseconds(1)),
                     HF_OK);
    assert_int_equal(hf_worker_add_workflow(here.worker, "echo", ask_for_echo), HF_OK);
    assert_int_equal(hf_worker_add_workflow(here.worker, "deaf", ask_for_deaf), HF_OK);
    assert_int_equal(hf_worker_add_activity(here.worker, "echo", echo), HF_OK);
    assert_int_equal(hf_worker_add_activity(here.worker, "deaf", deaf), HF_OK);
    go(how);
    assert_int_equal(hf_worker_free(here.worker), HF_OK);
    assert_int_equal(hf_close(here.service), HF_OK); /* what was left behind does not ask it any more */
    if (wanted != HF_OK) {
        assert_int_equal(hf_runtime_free(here.rt), HF_ERR_MISUSE);
        (void)pthread_mutex_lock(&lock);
        may_end = true;
        (void)pthread_cond_broadcast(&changed);
        (void)pthread_mutex_unlock(&lock);
    }
    while (hf_runtime_free(here.rt) !=
           HF_OK) { /* until the last has ended: a host goes on turning, a caller need not */
        if (how == HOST_TURNS || how == HOST_BESIDE) {
            HF_IGNORE(hf_runtime_turn(here.rt, hf_milliseconds(1)));
        }
        (void)sched_yield();
    }
}

static void a_worker_runs_on_a_runtime_without_threads(void **state)
{
    (void)state;
    for (way how = 0; how < WAYS; how++) {
        hosted_with(how, HF_OK);
    }
}

static void what_is_left_behind_on_a_runtime_without_threads_ends_in_the_end(void **state)
{
    (void)state;
    for (way how = 0; how < WAYS; how++) {
        hosted_with(how, HF_ERR_TIMEOUT);
    }
}

/* ---- Of another runtime ------------------------------------------------------------------------------------------------ */

/* Memory that knows whose it is. */
enum { LABEL_LEN = 64 };

static atomic_int strangers; /* blocks that came back to somebody else */

static void *take(void *state, size_t len, size_t align)
{
    (void)align; /* at most LABEL_LEN */
    char *block = aligned_alloc(LABEL_LEN, (len + 2 * LABEL_LEN - 1) / LABEL_LEN * LABEL_LEN);
    if (block == NULL) {
        return NULL;
    }
    memcpy(block, &state, sizeof state);
    return block + LABEL_LEN;
}

static void give(void *state, void *ptr, size_t len)
{
    (void)len;
    if (ptr != NULL) {
        char *block = (char *)ptr - LABEL_LEN;
        atomic_fetch_add(&strangers, memcmp(block, &state, sizeof state) != 0);
        free(block);
    }
}

static hf_status cancel_the_call(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_worker, NULL));
    HF_TRY(hf_yield());
    HF_TRY(hf_scope_cancel(scope));
    return hf_join(scope);
}

static void a_fiber_of_one_runtime_may_run_a_worker_of_another(void **state)
{
    (void)state;
    static char ours;
    static char theirs;
    memset(&here, 0, sizeof here);
    atomic_store(&strangers, 0);
    assert_int_equal(hf_open("memory:", &here.service), HF_OK);
    assert_int_equal(hf_runtime_new(&here.rt, .threads = 1, .allocator = {take, give, &theirs}), HF_OK);
    assert_int_equal(hf_worker_new(here.service, "orders", &here.worker, .runtime = here.rt), HF_OK);
    assert_int_equal(hf_worker_add_workflow(here.worker, "echo", ask_for_echo), HF_OK);
    assert_int_equal(hf_run(cancel_the_call, NULL, .threads = 1, .allocator = {take, give, &ours}), HF_OK);
    assert_int_equal(atomic_load(&here.done), 1);
    assert_int_equal(hf_worker_free(here.worker), HF_OK);
    assert_int_equal(hf_runtime_free(here.rt), HF_OK);
    assert_int_equal(atomic_load(&strangers), 0);
    assert_int_equal(hf_close(here.service), HF_OK);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_worker_runs_on_a_runtime_without_threads),
        cmocka_unit_test(what_is_left_behind_on_a_runtime_without_threads_ends_in_the_end),
        cmocka_unit_test(a_fiber_of_one_runtime_may_run_a_worker_of_another),
    };
    return hf_test_main("hosted", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
