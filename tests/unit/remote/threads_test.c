/* temporal:// on real threads and sockets: fibers of a runtime and plain threads share one service. */
/* labels: threads */
#include "support/support.h"

#include "server/door.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { FIBERS = 6, THREADS = 3, TIMES = 10 };

static hf_service *service;
static atomic_int finished;

static hf_status greet(hf_payload in, hf_payload *ret_out)
{
    char name[64];
    HF_TRY(hf_json_get_text(in, "", sizeof name, name));
    return hf_payload_printf(ret_out, "\"Hello, %s!\"", name);
}

static hf_status hello(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("greet", in, ret_out, .start_to_close = hf_seconds(100));
}

static hf_status ask(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++) {
        HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
        HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
        HF_TRY(hf_start(service, "hello", hf_payload_of_json("\"sea\""), &execution, .task_queue = "q"));
        HF_TRY(hf_result(execution, &out));
        HF_CHECK(strcmp(out.data, "\"Hello, sea!\"") == 0);
        atomic_fetch_add(&finished, 1);
    }
    return HF_OK;
}

static void *ask_on_thread(void *arg)
{
    hf_status status = ask(arg);
    HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
    return NULL;
}

static hf_status join_all(void *arg)
{
    pthread_t *threads = arg;
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return HF_OK;
}

static hf_status use(void)
{
    pthread_t threads[THREADS];
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "hello", hello));
    HF_TRY(hf_worker_add_activity(worker, "greet", greet));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < FIBERS; i++) {
        HF_TRY(hf_fork(scope, ask, NULL));
    }
    for (int i = 0; i < THREADS; i++) {
        HF_CHECK(pthread_create(&threads[i], NULL, ask_on_thread, NULL) == 0);
    }
    hf_status status = hf_join(scope);
    HF_TRY(hf_block(join_all, threads));
    return status;
}

static hf_status program(void *arg)
{
    HF_AUTO(hf_close) hf_service *engine = NULL;
    hf_door *door = NULL;
    hf_door_options options = {0};
    char address[HF_ADDRESS_LEN_MAX];
    char url[HF_ADDRESS_LEN_MAX + 32];
    hf_op op;
    hf_op_init(&op);
    (void)arg;
    HF_TRY(hf_open("memory:", &engine));
    HF_TRY(hf_door_open(&op, engine, &options, &door));
    HF_TRY(hf_door_listen(&op, door, "tcp:127.0.0.1:0", address));
    (void)snprintf(url, sizeof url, "temporal://%s", address + 4);
    hf_status status = hf_open(url, &service);
    status = status == HF_OK ? use() : status;
    HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
    HF_TRY(hf_close(service));
    hf_door_stop(door);
    return HF_OK;
}

static void remote_R1_threads_and_fibers_share_a_service(void **state)
{
    (void)state;
    assert_int_equal(hf_run(program, NULL, .threads = 2), HF_OK);
    assert_int_equal(atomic_load(&finished), (FIBERS + THREADS) * TIMES);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(remote_R1_threads_and_fibers_share_a_service),
};

int main(int argc, char **argv)
{
    return hf_test_main("remote_threads", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
