/* labels: threads */
/* Runtimes and workers that come and go on real threads, under a service that outlives them all. The thread of the engine
 * answers a call, and the runtime of the caller may be freed before it has come back from that.
 *
 * Nothing is expected but that nothing goes wrong: under AddressSanitizer and ThreadSanitizer nothing is reported. What the
 * simulation shows by seed (tests/unit/model/life_model_test.c) is tried here against real processors and a real kernel.
 *
 * Environment: HF_LIFE_SECONDS, for each case; 20 in a build with a sanitizer and 2 in a plain one unless set. Ten minutes of
 * each: HF_LIFE_SECONDS=600 build/asan/tests/test_life_come_and_go, and the same in build/tsan. */
#include "support/support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SECONDS = 20 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SECONDS = 20 };
#else
enum { SECONDS = 2 };
#endif
#else
enum { SECONDS = 2 };
#endif

enum { THREADS = 3 };

typedef struct scene {
    hf_service *service;
    int64_t until_ns;
    atomic_int rounds;
} scene;

static bool is_over(const scene *s)
{
    return hf_now(NULL).ns >= s->until_ns;
}

/* Runs `main` on some threads at once, for the time that was asked for. */
static void play(const char *what, void *(*main)(void *))
{
    const char *asked = getenv("HF_LIFE_SECONDS");
    long seconds = asked != NULL ? strtol(asked, NULL, 10) : SECONDS;
    scene s = {.until_ns = hf_now(NULL).ns + hf_seconds(seconds).ns};
    assert_int_equal(hf_open("memory:", &s.service), HF_OK); /* by a plain thread: it belongs to no runtime */
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, main, &s), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(hf_close(s.service), HF_OK);
    print_message("%s: %d in %ld s\n", what, atomic_load(&s.rounds), seconds);
    assert_true(atomic_load(&s.rounds) > 0);
}

/* ---- hf_run ------------------------------------------------------------------------------------------------------------ */

static hf_status start_one(void *arg)
{
    scene *s = arg;
    return hf_start(s->service, "nobody", hf_payload_none(), NULL, .task_queue = "nobody", .id = "the one",
                    .id_conflict = HF_ID_CONFLICT_USE_EXISTING);
}

static hf_status start_some(void *arg)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, start_one, arg));
    HF_TRY(hf_fork(scope, start_one, arg));
    return hf_join(scope);
}

static void *run_again_and_again(void *arg)
{
    scene *s = arg;
    for (int i = 0; !is_over(s); i++) {
        HF_CHECK(hf_run(i % 2 == 0 ? start_one : start_some, s, .threads = 1 + i % 2) == HF_OK);
        atomic_fetch_add(&s->rounds, 1);
    }
    return NULL;
}

static void runs_come_and_go_under_a_service(void **state)
{
    (void)state;
    play("runs", run_again_and_again);
}

/* ---- A host's loop ----------------------------------------------------------------------------------------------------- */

static void *drive_again_and_again(void *arg)
{
    scene *s = arg;
    while (!is_over(s)) {
        hf_runtime *rt = NULL;
        hf_scope *scope = NULL;
        HF_CHECK(hf_runtime_new(&rt, .threads = HF_OFF) == HF_OK);
        HF_CHECK(hf_scope_open(&scope, .runtime = rt) == HF_OK);
        HF_CHECK(hf_fork(scope, start_one, s) == HF_OK);
        HF_CHECK(hf_join(scope) == HF_OK);
        HF_CHECK(start_one(s) == HF_OK); /* the thread itself waits, and turns the runtime meanwhile */
        HF_CHECK(hf_scope_close(scope) == HF_OK);
        HF_CHECK(hf_runtime_free(rt) == HF_OK);
        atomic_fetch_add(&s->rounds, 1);
    }
    return NULL;
}

static void hosted_runtimes_come_and_go_under_a_service(void **state)
{
    (void)state;
    play("hosted runtimes", drive_again_and_again);
}

/* ---- hf_worker_run ------------------------------------------------------------------------------------------------------ */

static hf_status return_at_once(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return HF_OK;
}

typedef struct shift {
    scene *scene;
    hf_worker *worker;
    const char *queue;
} shift;

static void *stop_after_one(void *arg)
{
    shift *sh = arg;
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_CHECK(hf_start(sh->scene->service, "work", hf_payload_none(), &run, .task_queue = sh->queue) == HF_OK);
    HF_CHECK(hf_result(run, NULL) == HF_OK);
    HF_CHECK(hf_worker_stop(sh->worker) == HF_OK);
    return NULL;
}

static void *work_again_and_again(void *arg)
{
    scene *s = arg;
    char queue[32];
    (void)snprintf(queue, sizeof queue, "queue-%lx", (unsigned long)pthread_self());
    while (!is_over(s)) {
        shift sh = {.scene = s, .queue = queue};
        pthread_t stopper;
        HF_CHECK(hf_worker_new(s->service, queue, &sh.worker, .pollers_max = 4) == HF_OK);
        HF_CHECK(hf_worker_add_workflow(sh.worker, "work", return_at_once) == HF_OK);
        HF_CHECK(pthread_create(&stopper, NULL, stop_after_one, &sh) == 0);
        HF_CHECK(hf_worker_run(sh.worker) == HF_OK);
        HF_CHECK(pthread_join(stopper, NULL) == 0);
        HF_CHECK(hf_worker_free(sh.worker) == HF_OK);
        atomic_fetch_add(&s->rounds, 1);
    }
    return NULL;
}

static void workers_come_and_go_under_a_service(void **state)
{
    (void)state;
    play("workers", work_again_and_again);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(runs_come_and_go_under_a_service),
        cmocka_unit_test(hosted_runtimes_come_and_go_under_a_service),
        cmocka_unit_test(workers_come_and_go_under_a_service),
    };
    return hf_test_main("come_and_go", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
