/* labels: threads */
/* Workflow tasks that wait behind a step that does not yield, when the service is a server: it cannot take a task back, so each is
 * played, or answered as failed, at once (worker-K6). A task that was dropped shows as a timeout in the history. */
#include "support/support.h"

#include "server/door.h"
#include "service/call.h"

#include <holdfast/runtime.h>

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static atomic_bool may_go_on;
static atomic_bool has_entered;
static atomic_bool was_given_up;

/* The query still runs when its task is answered. */
static void hear(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)fields;
    if (strcmp(event, "query_failed") == 0) {
        atomic_store(&was_given_up, true);
    }
}

static hf_status on_plain(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    return hf_payload_copy(in, ret_out);
}

static hf_status on_loop(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    atomic_store(&has_entered, true);
    while (!atomic_load(&may_go_on)) {
        /* as a query must not */
    }
    return hf_payload_copy(in, ret_out);
}

static hf_status is_asked(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_on_query("plain", on_plain));
    HF_TRY(hf_on_query("loop", on_loop));
    HF_TRY(hf_signal_wait("go", NULL));
    return hf_payload_printf(ret_out, "\"went on\"");
}

typedef struct scene {
    hf_service *engine;
    char url[HF_ADDRESS_LEN_MAX + 32];
    sem_t has_opened; /* the server */
    sem_t is_over;
    hf_worker *worker;
    hf_execution *execution;
} scene;

static hf_status wait_for_end(void *arg)
{
    (void)sem_wait(arg);
    return HF_OK;
}

static hf_status serve(void *arg)
{
    scene *s = arg;
    hf_door *door = NULL;
    char address[HF_ADDRESS_LEN_MAX];
    hf_op op;
    hf_op_init(&op);
    HF_TRY(hf_open("memory:", &s->engine));
    HF_TRY(hf_door_open(&op, s->engine, &(hf_door_options){0}, &door));
    HF_TRY(hf_door_listen(&op, door, "tcp:127.0.0.1:0", address));
    (void)snprintf(s->url, sizeof s->url, "temporal://%s", address + 4);
    (void)sem_post(&s->has_opened);
    HF_TRY(hf_block(wait_for_end, &s->is_over));
    hf_door_stop(door);
    return hf_close(s->engine);
}

static void *run_server(void *arg)
{
    hf_status status = hf_run(serve, arg, .threads = 1);
    HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
    return NULL;
}

static void *run_worker(void *arg)
{
    const scene *s = arg;
    HF_CHECK_SAY(hf_worker_run(s->worker) == HF_OK, "%s", hf_error_text());
    return NULL;
}

static void *ask_in_vain(void *arg)
{
    const scene *s = arg;
    hf_status status = hf_query(s->execution, "loop", hf_payload_of_json("7"), NULL, .timeout = hf_minutes(5));
    HF_CHECK_SAY(status == HF_ERR_FAILED && strstr(hf_error_text(), "does not yield") != NULL, "%s: %s",
                 hf_status_name(status), hf_error_text());
    return NULL;
}

static int timeouts(const scene *s)
{
    hf_arena arena;
    hf_call call;
    hf_op op;
    hf_pb_history history = {0};
    int count = 0;
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("asked")};
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("default"), .execution = &execution};
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &arena, NULL);
    if (HF_CHECK_SAY(hf_service_ask(&op, s->engine, &call) == HF_OK, "%s", op.message)) {
        hf_str bytes = ((const hf_pb_get_workflow_execution_history_response *)call.response)->history;
        HF_CHECK(hf_pb_decode(&op, &hf_pb_history_type, bytes, &arena, &history) == HF_OK);
    }
    for (size_t i = 0; i < history.events.count; i++) {
        count += history.events.items[i].event_type == HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT;
    }
    hf_arena_deinit(&arena);
    return count;
}

static void await(const atomic_bool *flag)
{
    while (!atomic_load(flag)) {
        (void)sched_yield();
    }
}

/* The signal's task comes while the query has the run. Where the thread of the query is replaced, the workflow goes on while the query
 * still runs. */
static void play(scene *s, hf_service *service, int signal_number)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    pthread_t asking;
    assert_int_equal(hf_start(service, "asked", hf_payload_none(), &s->execution, .id = "asked", .task_queue = "q"),
                     HF_OK);
    assert_int_equal(hf_query(s->execution, "plain", hf_payload_of_json("1"), NULL),
                     HF_OK); /* its first step is over */
    assert_int_equal(pthread_create(&asking, NULL, ask_in_vain, s), 0);
    await(&has_entered);
    assert_int_equal(hf_signal(s->execution, "go", hf_payload_none()), HF_OK);
    await(&was_given_up);
    atomic_store(&may_go_on, signal_number == 0);
    assert_int_equal(hf_result(s->execution, &out), HF_OK);
    assert_string_equal((const char *)out.data, "\"went on\"");
    assert_int_equal(timeouts(s), 0);
    atomic_store(&may_go_on, true);
    assert_int_equal(pthread_join(asking, NULL), 0);
    hf_execution_free(s->execution);
}

static void left_with(int threads, int signal_number)
{
    scene s = {.engine = NULL};
    hf_service *service = NULL;
    hf_runtime *rt = NULL;
    pthread_t server;
    pthread_t working;
    atomic_store(&may_go_on, false);
    atomic_store(&has_entered, false);
    atomic_store(&was_given_up, false);
    assert_int_equal(sem_init(&s.has_opened, 0, 0), 0);
    assert_int_equal(sem_init(&s.is_over, 0, 0), 0);
    assert_int_equal(pthread_create(&server, NULL, run_server, &s), 0);
    (void)sem_wait(&s.has_opened);
    assert_int_equal(hf_open(s.url, &service), HF_OK);
    assert_int_equal(hf_runtime_new(&rt, .threads = threads, .log = hear,
                                    .watchdog = {.stuck_after = hf_milliseconds(100), .signal = signal_number}),
                     HF_OK);
    assert_int_equal(hf_worker_new(service, "q", &s.worker, .runtime = rt), HF_OK);
    assert_int_equal(hf_worker_add_workflow(s.worker, "asked", is_asked), HF_OK);
    assert_int_equal(pthread_create(&working, NULL, run_worker, &s), 0);
    play(&s, service, signal_number);
    assert_int_equal(hf_worker_stop(s.worker), HF_OK);
    assert_int_equal(pthread_join(working, NULL), 0);
    assert_int_equal(hf_worker_free(s.worker), HF_OK);
    assert_int_equal(hf_runtime_free(rt), HF_OK);
    assert_int_equal(hf_close(service), HF_OK);
    (void)sem_post(&s.is_over);
    assert_int_equal(pthread_join(server, NULL), 0);
    (void)sem_destroy(&s.has_opened);
    (void)sem_destroy(&s.is_over);
}

static void a_task_behind_a_step_that_does_not_yield_is_not_dropped(void **state)
{
    (void)state;
    left_with(1, SIGURG);
    left_with(2, SIGURG);
    left_with(2, 0);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_task_behind_a_step_that_does_not_yield_is_not_dropped),
};

int main(int argc, char **argv)
{
    return hf_test_main("left", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
