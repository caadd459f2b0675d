/* labels: threads */
/* What callers are told: a status of the program's own and the reason of a cancel arrive whole; a service is not closed under its
 * executions; what can be asked of a run that has ended. On the real engine; clients are fibers, and a plain thread. */
#include "support/support.h"

#include "base/base.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stage {
    hf_service *service;
    hf_worker *worker;
    hf_status (*body)(hf_service *service);
} stage;

static hf_status add_all(hf_worker *worker);

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status play_main(void *arg)
{
    stage *s = arg;
    HF_TRY(hf_open("memory:", &s->service));
    HF_TRY(hf_worker_new(s->service, "q", &s->worker));
    HF_TRY(add_all(s->worker));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_worker, s->worker));
        HF_TRY(s->body(s->service));
        HF_TRY(hf_worker_stop(s->worker));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_worker_free(s->worker));
    return hf_close(s->service);
}

static hf_status start(hf_service *service, const char *type, hf_payload in, hf_execution **ret_execution)
{
    return hf_start(service, type, in, ret_execution, .id = "w", .task_queue = "q");
}

/* ---- Statuses of a program's own ----------------------------------------------------------------------------------------- */

static hf_status number_in(hf_payload in)
{
    return (hf_status)(HF_ERR_USER + strtol((const char *)in.data, NULL, 10));
}

static hf_status just_returns(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    return number_in(in);
}

static hf_status says_why(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    return hf_raise(number_in(in), "it is mine");
}

static hf_status says_why_with_a_cause(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    HF_IGNORE(hf_raise(HF_ERR_IO, "the disk is gone"));
    return hf_raise_typed(number_in(in), NULL, "it is mine");
}

static hf_status has_another_type(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    return hf_raise_typed(number_in(in), "Mine", "it is mine");
}

static hf_status fails_otherwise(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_raise(HF_ERR_NOT_FOUND, "no such thing");
}

/* How each fails. `is_known`: its number arrives. */
static const struct {
    const char *name;
    hf_function function;
    bool is_known;
    const char *type; /* NULL = "HF_ERR_USER+<number>" */
} FAILERS[] = {
    {"just_returns", just_returns, true, NULL},
    {"says_why", says_why, true, NULL},
    {"says_why_with_a_cause", says_why_with_a_cause, true, NULL},
    {"has_another_type", has_another_type, true, "Mine"},
    {"fails_otherwise", fails_otherwise, false, "HF_ERR_NOT_FOUND"},
};

static void compare(size_t idx, const char *number, const hf_failure *failure, const char *by)
{
    char type[64];
    (void)snprintf(type, sizeof type, "HF_ERR_USER+%s", number);
    int status = FAILERS[idx].is_known ? (int)(HF_ERR_USER + strtol(number, NULL, 10)) : (int)HF_ERR_FAILED;
    const char *expected = FAILERS[idx].type != NULL ? FAILERS[idx].type : type;
    HF_CHECK_SAY(failure != NULL && (int)failure->status == status && strcmp(failure->type, expected) == 0,
                 "%s with %s: %s was told %d %s", FAILERS[idx].name, number, by,
                 failure != NULL ? (int)failure->status : 0, failure != NULL ? failure->type : "nothing");
}

/* Runs the activity, looks at its failure, and fails with it: "name number". */
static hf_status asks(hf_payload in, hf_payload *ret_out)
{
    char name[64];
    char number[64];
    size_t idx = 0;
    if (sscanf((const char *)in.data, "%63s %63s", name, number) != 2) {
        return hf_raise(HF_ERR_INVALID, "'%s' is not a name and a number", (const char *)in.data);
    }
    while (idx + 1 < HF_COUNT_OF(FAILERS) && strcmp(FAILERS[idx].name, name) != 0) {
        idx++;
    }
    hf_status status =
        hf_activity_run(name, hf_payload_of_json(number), ret_out, .start_to_close = hf_seconds(5), .attempts_max = 1);
    if (status != HF_ERR_EVICTED) {
        HF_CHECK(status == HF_ERR_FAILED && hf_error()->status == HF_ERR_FAILED);
        HF_CHECK(strcmp(hf_error()->type, "ActivityFailed") == 0);
        compare(idx, number, hf_error()->cause, "the workflow");
    }
    return status;
}

static hf_status look_at_result(hf_service *service, const char *type, hf_payload in, size_t idx, const char *number,
                                bool is_flat)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start(service, type, in, &execution));
    HF_CHECK(hf_result(execution, NULL) == HF_ERR_FAILED);
    bool is_own = strcmp(type, "asks") != 0;
    if (is_own) {
        compare(idx, number, hf_error(), "the client");
    } else if (!is_flat) { /* a plain thread keeps one link */
        compare(idx, number, hf_error()->cause, "the client");
    }
    return HF_OK;
}

static bool is_thread; /* the client is one of no runtime */

static hf_status fail_all(hf_service *service)
{
    static const char *const NUMBERS[] = {"7", "0", "2147482647"};
    for (size_t i = 0; i < HF_COUNT_OF(FAILERS); i++) {
        for (size_t k = 0; k < HF_COUNT_OF(NUMBERS); k++) {
            char text[200];
            (void)snprintf(text, sizeof text, "%s %s", FAILERS[i].name, NUMBERS[k]);
            HF_TRY(look_at_result(service, FAILERS[i].name, hf_payload_of_json(NUMBERS[k]), i, NUMBERS[k], is_thread));
            HF_TRY(look_at_result(service, "asks", hf_payload_of_json(text), i, NUMBERS[k], is_thread));
        }
    }
    return HF_OK;
}

/* What a fiber returns goes on to whoever joins it: the failure of the run, not a new one. */
static hf_status forward(void *arg)
{
    hf_service *service = arg;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start(service, "says_why", hf_payload_of_json("7"), &execution));
    hf_status status = hf_result(execution, NULL);
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    return status;
}

static hf_status join_one(hf_service *service)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, forward, service));
    HF_CHECK(hf_join(scope) == HF_ERR_FAILED);
    HF_CHECK(hf_error()->status == (hf_status)(HF_ERR_USER + 7) && strcmp(hf_error()->message, "it is mine") == 0);
    return HF_OK;
}

static void *worker_main(void *arg)
{
    HF_CHECK(hf_worker_run(arg) == HF_OK);
    return NULL;
}

static void a_status_of_ones_own_arrives_whole(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(1, 2, play_main, &(stage){.body = fail_all}, NULL), HF_OK);
    assert_int_equal(hf_sim_run(1, 2, play_main, &(stage){.body = join_one}, NULL), HF_OK);
    hf_service *service = NULL;
    hf_worker *worker = NULL;
    hf_runtime *rt = NULL;
    pthread_t thread;
    is_thread = true;
    assert_int_equal(hf_runtime_new(&rt), HF_OK);
    assert_int_equal(hf_open("memory:", &service), HF_OK);
    assert_int_equal(hf_worker_new(service, "q", &worker, .runtime = rt), HF_OK);
    assert_int_equal(add_all(worker), HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, worker_main, worker), 0);
    assert_int_equal(fail_all(service), HF_OK);
    assert_int_equal(hf_worker_stop(worker), HF_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(hf_worker_free(worker), HF_OK);
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(hf_runtime_free(rt), HF_OK);
    is_thread = false;
}

/* ---- The reason of a cancel ------------------------------------------------------------------------------------------------ */

static char heard[500];

/* Waits to be canceled, in one of three ways, and tells what it heard. */
static hf_status waits(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    const char *reason = NULL;
    const char *how = in.data;
    hf_status status = HF_OK;
    if (how[0] == 's') {
        status = hf_sleep(hf_days(1));
    } else if (how[0] == 'a') {
        status = hf_activity_run("never", in, NULL, .schedule_to_close = hf_days(1), .task_queue = "nobody's");
    } else {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        status = hf_signal_wait("never", NULL);
    }
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_CHECK(status == HF_ERR_CANCELED);
    HF_CHECK(hf_cancel_cause(&reason) == HF_CAUSE_EXPLICIT);
    (void)snprintf(heard, sizeof heard, "%s / %s", hf_error_text(), reason);
    return status;
}

static const struct {
    const char *how;
    const char *reason; /* NULL = none */
    const char *heard;
    const char *result;
} CANCELS[] = {
    {"s", "bye", "hf_sleep: canceled (explicit: bye) / bye", "the workflow was canceled: bye"},
    {"a", "bye", "hf_activity_run: canceled (explicit: bye) / bye", "the workflow was canceled: bye"},
    {"w", "bye", "hf_signal_wait: canceled (explicit: bye) / bye", "the workflow was canceled: bye"},
    {"s", "100 %s of \"it\"", "hf_sleep: canceled (explicit: 100 %s of \"it\") / 100 %s of \"it\"",
     "the workflow was canceled: 100 %s of \"it\""},
    {"s", NULL, "hf_sleep: canceled (explicit: the workflow was asked to cancel) / the workflow was asked to cancel",
     "the workflow was canceled"},
    {"s", "", "hf_sleep: canceled (explicit: the workflow was asked to cancel) / the workflow was asked to cancel",
     "the workflow was canceled"},
};

static hf_status cancel_all(hf_service *service)
{
    for (size_t i = 0; i < HF_COUNT_OF(CANCELS); i++) {
        HF_AUTO(hf_execution_free) hf_execution *by_run = NULL;
        HF_AUTO(hf_execution_free) hf_execution *by_id = NULL;
        heard[0] = '\0';
        HF_TRY(start(service, "waits", hf_payload_of_json(CANCELS[i].how), &by_run));
        HF_TRY(hf_execution_new(service, "w", &by_id));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_TRY(hf_cancel(by_run, .reason = CANCELS[i].reason));
        HF_TRY(hf_cancel(by_run, .reason = "the second is not heard"));
        hf_execution *both[] = {by_run, by_id};
        for (size_t k = 0; k < HF_COUNT_OF(both); k++) {
            HF_CHECK(hf_result(both[k], NULL) == HF_ERR_FAILED && strcmp(hf_error()->type, "WorkflowCanceled") == 0);
            HF_CHECK_SAY(strcmp(hf_error_text(), CANCELS[i].result) == 0, "the client was told '%s'", hf_error_text());
        }
        HF_CHECK_SAY(strcmp(heard, CANCELS[i].heard) == 0, "the workflow was told '%s'", heard);
    }
    return HF_OK;
}

static void the_reason_of_a_cancel_arrives(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(1, 2, play_main, &(stage){.body = cancel_all}, NULL), HF_OK);
}

/* ---- A run that has ended --------------------------------------------------------------------------------------------------- */

static hf_status ends(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return HF_OK;
}

static hf_status ask_the_dead(hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *ended = NULL;
    HF_AUTO(hf_execution_free) hf_execution *unknown = NULL;
    HF_TRY(start(service, "ends", hf_payload_none(), &ended));
    HF_TRY(hf_result(ended, NULL));
    HF_CHECK(hf_signal(ended, "s", hf_payload_none()) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_terminate(ended) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_cancel(ended) == HF_OK); /* what was asked for is so */
    HF_CHECK(hf_result(ended, NULL) == HF_OK);
    HF_TRY(hf_execution_new(service, "nobody", &unknown));
    HF_CHECK(hf_signal(unknown, "s", hf_payload_none()) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_terminate(unknown) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_cancel(unknown) == HF_ERR_NOT_FOUND);
    return HF_OK;
}

static void a_run_that_has_ended_can_be_canceled_but_not_signaled_or_terminated(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(1, 2, play_main, &(stage){.body = ask_the_dead}, NULL), HF_OK);
}

/* ---- Closing ------------------------------------------------------------------------------------------------------------------ */

static void a_service_is_not_closed_under_its_executions(void **state)
{
    (void)state;
    hf_service *service = NULL;
    hf_execution *started = NULL;
    hf_execution *other = NULL;
    assert_int_equal(hf_open("memory:", &service), HF_OK);
    assert_int_equal(start(service, "ends", hf_payload_none(), &started), HF_OK);
    assert_int_equal(hf_execution_new(service, "else", &other), HF_OK);
    assert_int_equal(hf_start(service, "ends", hf_payload_none(), NULL), HF_OK); /* without a handle */
    assert_int_equal(hf_close(service), HF_ERR_MISUSE);
    assert_string_equal(hf_error_text(),
                        "hf_close: 2 executions of this service are not freed: call hf_execution_free first");
    hf_execution_free(other);
    assert_int_equal(hf_close(service), HF_ERR_MISUSE);
    assert_string_equal(hf_error_text(),
                        "hf_close: 1 execution of this service is not freed: call hf_execution_free first");
    assert_int_equal(hf_terminate(started), HF_OK);                          /* it is open as before */
    assert_int_equal(hf_execution_new(service, "", &other), HF_ERR_INVALID); /* none was made: it does not count */
    hf_execution_free(started);
    hf_execution_free(NULL);
    assert_int_equal(hf_close(service), HF_OK);
}

static hf_status add_all(hf_worker *worker)
{
    for (size_t i = 0; i < HF_COUNT_OF(FAILERS); i++) {
        HF_TRY(hf_worker_add_workflow(worker, FAILERS[i].name, FAILERS[i].function));
        HF_TRY(hf_worker_add_activity(worker, FAILERS[i].name, FAILERS[i].function, .on_fiber = i % 2 == 0));
    }
    HF_TRY(hf_worker_add_workflow(worker, "asks", asks));
    HF_TRY(hf_worker_add_workflow(worker, "waits", waits));
    return hf_worker_add_workflow(worker, "ends", ends);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_status_of_ones_own_arrives_whole),
        cmocka_unit_test(the_reason_of_a_cancel_arrives),
        cmocka_unit_test(a_run_that_has_ended_can_be_canceled_but_not_signaled_or_terminated),
        cmocka_unit_test(a_service_is_not_closed_under_its_executions),
    };
    return hf_test_main("told", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
