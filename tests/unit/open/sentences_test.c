/* What users are told when something ends: which bound it was, how much, and what to do. On the real engine, in virtual time. */
#include "support/support.h"

#include "base/base.h"
#include "history/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char big[HF_PAYLOAD_LEN_MAX + 1];
static char heard[400]; /* what an activity was told */

/* ---- A worker and the engine ------------------------------------------------------------------------------------------ */

typedef struct stage {
    hf_function main; /* the workflow */
    hf_start_options start;
    hf_status (*meanwhile)(hf_execution *execution); /* NULL = just wait for the result */
    char result[1024];                               /* what came of it */
} stage;

static hf_status hear(hf_status status)
{
    if (heard[0] == '\0') {
        const char *reason = NULL;
        (void)hf_cancel_cause(&reason);
        (void)snprintf(heard, sizeof heard, "%s", reason);
    }
    return status;
}

/* Works until it is told to end, by its heartbeats. */
static hf_status linger(hf_payload in, hf_payload *ret_out)
{
    hf_status status = HF_OK;
    (void)in;
    (void)ret_out;
    while (status == HF_OK) {
        status = hf_activity_heartbeat(hf_payload_none());
        if (status == HF_OK) {
            status = hf_sleep(hf_seconds(1));
        }
    }
    return hear(status);
}

/* Is silent for longer than it may be, the first time. */
static hf_status drowsy(hf_payload in, hf_payload *ret_out)
{
    if (hf_activity_info()->attempt > 1) {
        return hf_payload_printf(ret_out, "1");
    }
    (void)in;
    return hear(hf_sleep(hf_seconds(5)));
}

/* Says nothing, and takes its time. */
static hf_status sleepy(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_hours(9), &shield));
    return hf_sleep(hf_minutes(1));
}

static hf_status huge(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(hf_payload_of_bytes(big, strtoul(in.data, NULL, 10)), ret_out);
}

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status ask(stage *s, hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    s->start.size = sizeof s->start;
    s->start.id = "w";
    s->start.task_queue = "q";
    HF_TRY(hf_start_with(service, "main", hf_payload_none(), &execution, &s->start));
    if (s->meanwhile != NULL) {
        HF_TRY(s->meanwhile(execution));
    }
    hf_status status = hf_result(execution, NULL, .timeout = hf_days(100));
    (void)snprintf(s->result, sizeof s->result, "%s: %.900s", hf_status_name(status),
                   status != HF_OK ? hf_error_text() : "");
    return HF_OK;
}

static hf_status play_main(void *arg)
{
    stage *s = arg;
    hf_service *service = NULL;
    hf_worker *worker = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker, .pollers_max = 2, .activity_pollers_max = 4));
    HF_TRY(hf_worker_add_workflow(worker, "main", s->main));
    HF_TRY(hf_worker_add_activity(worker, "linger", linger, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "sleepy", sleepy, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "drowsy", drowsy, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "huge", huge, .on_fiber = true));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_worker, worker));
        HF_TRY(ask(s, service));
        HF_TRY(hf_sleep(hf_minutes(2))); /* for what the workflow has left behind */
        HF_TRY(hf_worker_stop(worker));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_worker_free(worker));
    return hf_close(service);
}

static void play(stage s, const char *result)
{
    heard[0] = '\0';
    assert_int_equal(hf_sim_run(1, 1, play_main, &s, NULL), HF_OK);
    assert_string_equal(s.result, result);
}

/* ---- Activities ----------------------------------------------------------------------------------------------------------- */

static hf_status too_slow(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("sleepy", in, ret_out, .start_to_close = hf_seconds(30), .attempts_max = 3);
}

static void a_timeout_says_once_how_long_the_bound_was(void **state)
{
    (void)state;
    play((stage){.main = too_slow},
         "HF_ERR_FAILED: activity 'sleepy' timed out; because activity StartToClose timeout after 30 s");
}

static hf_status too_big(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    hf_status status =
        hf_activity_run("huge", hf_payload_of_json("2097153"), ret_out, .start_to_close = hf_seconds(30));
    if (status != HF_ERR_EVICTED) {
        HF_CHECK(status == HF_ERR_FAILED && strcmp(hf_error()->type, "ActivityFailed") == 0);
        HF_CHECK(hf_error()->cause != NULL && strcmp(hf_error()->cause->type, "TooBig") == 0);
    }
    return status;
}

static void a_result_that_is_too_big_says_both_sizes(void **state)
{
    (void)state;
    play((stage){.main = too_big}, "HF_ERR_FAILED: activity 'huge' failed; because the result of the activity "
                                   "has 2097153 bytes, at most 2097152 are taken");
}

static hf_status unknown(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("hgue", in, ret_out, .start_to_close = hf_seconds(30), .attempts_max = 2);
}

static void an_activity_that_nobody_has_says_what_to_do(void **state)
{
    (void)state;
    play((stage){.main = unknown}, "HF_ERR_FAILED: activity 'hgue' failed; because the worker of task queue 'q' has no "
                                   "activity 'hgue': add it with "
                                   "hf_worker_add_activity, or give hf_activity_run another .task_queue");
}

/* ---- Why an activity is told to end --------------------------------------------------------------------------------------- */

static hf_status wait_long(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("linger", in, ret_out, .start_to_close = hf_hours(1), .attempts_max = 1);
}

static hf_status try_again(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("drowsy", in, ret_out, .start_to_close = hf_hours(1), .heartbeat = hf_seconds(2),
                           .retry_initial = hf_seconds(60), .attempts_max = 2);
}

static hf_status try_once(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("drowsy", in, ret_out, .start_to_close = hf_hours(1), .heartbeat = hf_seconds(2),
                           .attempts_max = 1) == HF_ERR_TIMEOUT
               ? hf_sleep(hf_minutes(5))
               : HF_ERR_FAILED;
}

static hf_status terminate_it(hf_execution *execution)
{
    HF_TRY(hf_sleep(hf_seconds(10)));
    return hf_terminate(execution, .reason = "enough");
}

static void an_activity_hears_why_it_is_to_end(void **state)
{
    (void)state;
    play((stage){.main = wait_long, .meanwhile = terminate_it}, "HF_ERR_FAILED: the workflow was terminated: enough");
    assert_string_equal(heard, "the workflow of this activity has ended");
    play((stage){.main = try_again}, "HF_OK: ");
    assert_string_equal(heard, "the heartbeat timeout of the activity is over");
    play((stage){.main = try_once}, "HF_OK: ");
    assert_string_equal(heard, "the heartbeat timeout of the activity is over");
}

/* ---- Workflows ------------------------------------------------------------------------------------------------------------ */

static hf_status sleep_long(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_sleep(hf_days(30));
}

static void a_workflow_that_timed_out_says_which_bound_it_was(void **state)
{
    (void)state;
    play((stage){.main = sleep_long, .start = {.run_timeout = hf_days(1)}},
         "HF_ERR_FAILED: the workflow timed out: its run took longer than its run_timeout");
    play((stage){.main = sleep_long, .start = {.execution_timeout = hf_days(1)}},
         "HF_ERR_FAILED: the workflow timed out: it took longer than its execution_timeout");
    play((stage){.main = sleep_long, .start = {.run_timeout = hf_days(1), .execution_timeout = hf_days(2)}},
         "HF_ERR_FAILED: the workflow timed out: its run took longer than its run_timeout");
}

static hf_status many_bytes(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    for (int i = 0; i < 40; i++) {
        HF_TRY(hf_activity_run("huge", hf_payload_of_json("2000000"), NULL, .start_to_close = hf_seconds(30)));
    }
    return HF_OK;
}

static void a_workflow_whose_history_is_full_says_so(void **state)
{
    (void)state;
    stage s = {.main = many_bytes};
    assert_int_equal(hf_sim_run(1, 1, play_main, &s, NULL), HF_OK);
    print_message("%s\n", s.result);
    assert_non_null(strstr(s.result, "HF_ERR_FAILED: the workflow was terminated: the history of this run has 5"));
    assert_non_null(strstr(s.result, " bytes, and one run may have 52428800: let the workflow continue as new before "
                                     "that (hf_continue_as_new), or pass less data"));
}

static hf_status take_signals(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_signal_wait("last", NULL);
}

static hf_status send_too_many(hf_execution *execution)
{
    for (int i = 0; i < HF_SIGNALS_MAX; i++) {
        HF_TRY(hf_signal(execution, "s", hf_payload_none()));
    }
    HF_CHECK(hf_signal(execution, "s", hf_payload_none()) == HF_ERR_LIMIT);
    HF_CHECK_SAY(strstr(hf_error_text(),
                        " has had 10000 signals, the most that one run may get: a workflow that gets more of them has "
                        "to continue as new before (hf_continue_as_new)") != NULL,
                 "%s", hf_error_text());
    return hf_terminate(execution, .reason = "enough");
}

static void a_workflow_that_has_had_all_its_signals_says_so(void **state)
{
    (void)state;
    play((stage){.main = take_signals, .meanwhile = send_too_many},
         "HF_ERR_FAILED: the workflow was terminated: enough");
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_timeout_says_once_how_long_the_bound_was),
    cmocka_unit_test(a_result_that_is_too_big_says_both_sizes),
    cmocka_unit_test(an_activity_that_nobody_has_says_what_to_do),
    cmocka_unit_test(an_activity_hears_why_it_is_to_end),
    cmocka_unit_test(a_workflow_that_timed_out_says_which_bound_it_was),
    cmocka_unit_test(a_workflow_whose_history_is_full_says_so),
    cmocka_unit_test(a_workflow_that_has_had_all_its_signals_says_so),
};

int main(int argc, char **argv)
{
    return hf_test_main("sentences", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
