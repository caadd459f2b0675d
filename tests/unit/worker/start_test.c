/* hf_worker_start, hf_worker_wait, and hf_worker_free of a worker that runs: client and worker in one program, with no fiber or
 * thread of the program's own. */
/* labels: threads */
#include "support/support.h"

#include "base/base.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

static atomic_int naps_ended;

static hf_status nap(hf_payload in, hf_payload *ret_out)
{
    hf_status status = hf_sleep(hf_seconds(3));
    (void)in;
    (void)ret_out;
    atomic_fetch_add(&naps_ended, status == HF_OK);
    return status;
}

static hf_status take_a_nap(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_activity_run("nap", in, NULL, .start_to_close = hf_minutes(1)));
    return hf_payload_printf(ret_out, "\"rested\"");
}

static hf_status make(hf_service *service, hf_worker **ret_worker)
{
    HF_TRY(hf_worker_new(service, "q", ret_worker));
    HF_TRY(hf_worker_add_workflow(*ret_worker, "rest", take_a_nap));
    return hf_worker_add_activity(*ret_worker, "nap", nap, .on_fiber = true);
}

static hf_status rest(hf_service *service, hf_span patience)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(service, "rest", hf_payload_none(), &execution, .task_queue = "q"));
    HF_TRY(hf_result(execution, &out, .timeout = patience));
    HF_CHECK(strcmp(out.data, "\"rested\"") == 0);
    return HF_OK;
}

static void play(hf_body body, void *arg)
{
    atomic_store(&naps_ended, 0);
    for (int threads = 1; threads <= 2; threads++) {
        hf_status status = hf_sim_run((uint64_t)threads, threads, body, arg, NULL);
        HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
    }
}

/* ---- In one program ---------------------------------------------------------------------------------------------- */

static hf_status one_program(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(make(service, &worker));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(rest(service, hf_minutes(1)));
    HF_TRY(hf_worker_stop(worker));
    return hf_worker_wait(worker);
}

static void a_program_starts_a_worker_and_uses_it(void **state)
{
    (void)state;
    play(one_program, NULL);
}

/* A path out of the program while an activity runs: the worker stops as it does when it is told to. */
static hf_status leaves_early(void *arg)
{
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_TRY(hf_open("memory:", &service));
    {
        HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
        HF_TRY(make(service, &worker));
        HF_TRY(hf_worker_start(worker));
        HF_CHECK(rest(service, hf_seconds(1)) == HF_ERR_TIMEOUT);
    }
    return HF_OK; /* hf_close would refuse if the worker still ran: hf_sim_run would find what it has left */
}

static void freeing_a_started_worker_stops_it_and_waits(void **state)
{
    (void)state;
    play(leaves_early, NULL);
    assert_int_equal(atomic_load(&naps_ended), 2); /* it had its grace in both plays */
}

/* ---- What cannot be ---------------------------------------------------------------------------------------------- */

static hf_status wait_in_vain(void *arg)
{
    hf_worker *worker = arg;
    HF_CHECK(hf_worker_wait(worker) == HF_ERR_MISUSE);
    HF_CHECK(strstr(hf_error_text(), "hf_worker_wait needs a worker that hf_worker_start has started") != NULL);
    HF_CHECK(hf_worker_free(worker) == HF_ERR_MISUSE);
    HF_CHECK(strstr(hf_error_text(), "cannot be freed before") != NULL);
    return hf_worker_stop(worker);
}

static hf_status misuses(void *arg)
{
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(make(service, &worker));
    HF_CHECK(hf_worker_wait(NULL) == HF_ERR_MISUSE && hf_worker_start(NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_worker_wait(worker) == HF_ERR_MISUSE);
    HF_TRY(hf_worker_start(worker));
    HF_CHECK(hf_worker_start(worker) == HF_ERR_MISUSE);
    HF_CHECK(strcmp(hf_error_text(), "hf_worker_start needs a worker that has not run before") == 0);
    HF_CHECK(hf_worker_run(worker) == HF_ERR_MISUSE);
    HF_CHECK(hf_worker_add_workflow(worker, "late", take_a_nap) == HF_ERR_MISUSE);
    HF_CHECK(hf_close(service) == HF_ERR_MISUSE);
    HF_CHECK(strstr(hf_error_text(), "a worker still runs on this service") != NULL);
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, wait_in_vain, worker)); /* runs when this fiber waits */
    HF_TRY(hf_worker_wait(worker));
    HF_CHECK(hf_worker_wait(worker) == HF_ERR_MISUSE);
    return hf_join(scope);
}

static void a_worker_is_started_once_and_waited_for_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++) { /* on one thread: who waits first is known */
        hf_status status = hf_sim_run(seed, 1, misuses, NULL, NULL);
        HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
    }
}

/* ---- A cancel, an end by itself ---------------------------------------------------------------------------------- */

static hf_status wait_for_it(void *arg)
{
    HF_CHECK(hf_worker_wait(arg) == HF_OK);
    return HF_OK;
}

static hf_status cancel_the_wait(void *arg)
{
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(make(service, &worker));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, wait_for_it, worker));
    HF_TRY(rest(service, hf_minutes(1)));
    HF_TRY(hf_scope_cancel(scope));
    HF_IGNORE(hf_join(scope)); /* HF_ERR_CANCELED; without the stop it would never return */
    return HF_OK;
}

static void canceling_who_waits_stops_the_worker(void **state)
{
    (void)state;
    play(cancel_the_wait, NULL);
}

static hf_status listen_to_what_cannot_be_heard(void *arg)
{
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_os_signals_close) hf_os_signals *signals = NULL;
    static const int NUMBER = SIGTERM;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_os_signals_open(&NUMBER, 1, &signals)); /* then it cannot be the worker's */
    HF_TRY(hf_worker_new(service, "q", &worker, .stop_on = SIGTERM));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_sleep(hf_seconds(1))); /* it has ended by now, and its result waits */
    HF_CHECK(hf_worker_wait(worker) == HF_ERR_EXISTS);
    HF_CHECK(strstr(hf_error_text(), "the worker ended: signal 15 has another use") != NULL);
    return HF_OK;
}

static void a_worker_that_ended_by_itself_says_why(void **state)
{
    (void)state;
    play(listen_to_what_cannot_be_heard, NULL);
}

/* ---- Real threads ------------------------------------------------------------------------------------------------ */

static hf_status at_once(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

/* From a plain thread: the worker has a runtime of its own. */
static void a_plain_thread_starts_a_worker_and_uses_it(void **state)
{
    (void)state;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    assert_int_equal(hf_open("memory:", &service), HF_OK);
    assert_int_equal(hf_worker_new(service, "q", &worker), HF_OK);
    assert_int_equal(hf_worker_add_workflow(worker, "echo", at_once), HF_OK);
    assert_int_equal(hf_worker_start(worker), HF_OK);
    for (int i = 0; i < 100; i++) {
        HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
        HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
        assert_int_equal(hf_start(service, "echo", hf_payload_of_json("7"), &execution, .task_queue = "q"), HF_OK);
        assert_int_equal(hf_result(execution, &out), HF_OK);
        assert_string_equal(out.data, "7");
    }
    assert_int_equal(hf_worker_stop(worker), HF_OK);
    assert_int_equal(hf_worker_wait(worker), HF_OK);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_program_starts_a_worker_and_uses_it),
    cmocka_unit_test(freeing_a_started_worker_stops_it_and_waits),
    cmocka_unit_test(a_worker_is_started_once_and_waited_for_once),
    cmocka_unit_test(canceling_who_waits_stops_the_worker),
    cmocka_unit_test(a_worker_that_ended_by_itself_says_why),
    cmocka_unit_test(a_plain_thread_starts_a_worker_and_uses_it),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_start", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
