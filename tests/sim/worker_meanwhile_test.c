/* Events that came while no worker served a workflow reach it in one step, on the real worker and engine: an end and a
 * cancel, a signal and the timer that bounded its wait. A timer or activity that the code then gives up has ended
 * already, and the service must not be asked to cancel it: it would refuse the step, again and again. */
#include "support/support.h"

#include "base/base.h"

#include <stdio.h>
#include <string.h>

typedef struct scene {
    hf_function workflow;
    hf_status (*meanwhile)(hf_execution *execution);
    bool has_helper; /* a worker for activities of the queue "other" runs meanwhile */
    const char *result;
} scene;

typedef struct play {
    const scene *scene;
    hf_service *service;
    hf_worker *worker;
} play;

static hf_status answer(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "42");
}

static hf_status run_answer(void)
{
    return hf_activity_run("answer", hf_payload_none(), NULL, .task_queue = "other", .start_to_close = hf_hours(1));
}

/* One more step, which shows that the last one was accepted. */
static hf_status report(hf_payload *ret_out, hf_status status)
{
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_payload_printf(ret_out, "\"%s\"", hf_status_name(status));
}

/* ---- The workflows ----------------------------------------------------------------------------------------------------- */

static hf_status wait_for_signal(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    hf_status status = hf_signal_wait("go", NULL, .timeout = hf_seconds(10));
    return status == HF_ERR_EVICTED ? status : report(ret_out, status);
}

static hf_status in_scope(hf_span timeout)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = timeout));
    return run_answer();
}

static hf_status bounded_activity(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    hf_status status = in_scope(hf_seconds(10));
    return status == HF_ERR_EVICTED ? status : report(ret_out, status);
}

static hf_status cleaned_up(hf_payload *ret_out, hf_status status)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_minutes(1), &shield));
    return report(ret_out, status);
}

static hf_status canceled_activity(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    hf_status status = run_answer();
    return status == HF_ERR_EVICTED ? status : cleaned_up(ret_out, status);
}

static hf_status canceled_sleep(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    hf_status status = hf_sleep(hf_seconds(10));
    return status == HF_ERR_EVICTED ? status : cleaned_up(ret_out, status);
}

static hf_status fork_answer(void *arg)
{
    (void)arg;
    return run_answer();
}

static hf_status fork_nothing(void *arg)
{
    (void)arg;
    return HF_OK;
}

/* A signal makes it give up an activity, and a job that has not begun. */
static hf_status given_up(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, fork_answer, NULL));
        HF_TRY(hf_fork(scope, fork_nothing, NULL, .delay = hf_seconds(10)));
        HF_TRY(hf_signal_wait("go", NULL));
        HF_TRY(hf_scope_cancel(scope));
    }
    return report(ret_out, HF_OK);
}

/* ---- Meanwhile ----------------------------------------------------------------------------------------------------------- */

static hf_status signal_then_wait(hf_execution *execution)
{
    HF_TRY(hf_signal(execution, "go", hf_payload_none()));
    return hf_sleep(hf_seconds(60));
}

static hf_status wait_then_signal(hf_execution *execution)
{
    HF_TRY(hf_sleep(hf_seconds(60)));
    return hf_signal(execution, "go", hf_payload_none());
}

static hf_status cancel_then_wait(hf_execution *execution)
{
    HF_TRY(hf_cancel(execution));
    return hf_sleep(hf_seconds(60));
}

static hf_status wait_only(hf_execution *execution)
{
    (void)execution;
    return hf_sleep(hf_seconds(60));
}

/* ---- The play ------------------------------------------------------------------------------------------------------------ */

static hf_status work(void *arg)
{
    return hf_worker_run(arg);
}

/* Runs a worker while `body` does. */
static hf_status with_worker(play *p, const char *queue, hf_status (*body)(play *p, hf_execution *execution),
                             hf_execution *execution)
{
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    bool is_helper = strcmp(queue, "other") == 0;
    HF_TRY(hf_worker_new(p->service, queue, &worker));
    HF_TRY(is_helper ? hf_worker_add_activity(worker, "answer", answer)
                     : hf_worker_add_workflow(worker, "scene", p->scene->workflow));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, work, worker));
    hf_status status = body(p, execution);
    HF_TRY(hf_worker_stop(worker));
    HF_TRY(hf_join(scope));
    return status;
}

static hf_status first_step(play *p, hf_execution *execution)
{
    (void)p;
    (void)execution;
    return hf_sleep(hf_seconds(1));
}

static hf_status meanwhile(play *p, hf_execution *execution)
{
    return p->scene->meanwhile(execution);
}

/* Waits for longer than the helper needs. */
static hf_status late(play *p, hf_execution *execution)
{
    (void)p;
    (void)execution;
    return hf_sleep(hf_seconds(60));
}

static hf_status last_step(play *p, hf_execution *execution)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_status status = hf_result(execution, &out, .timeout = hf_minutes(5));
    HF_CHECK_SAY(status == HF_OK, "it ended with %s: %s", hf_status_name(status), hf_error_text());
    HF_CHECK_SAY(status != HF_OK || strcmp(out.data, p->scene->result) == 0, "it gave %s, not %s",
                 (const char *)out.data, p->scene->result);
    return HF_OK;
}

static hf_status play_it(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(hf_start(p->service, "scene", hf_payload_none(), &execution, .task_queue = "q"));
    HF_TRY(with_worker(p, "q", first_step, execution));
    HF_TRY(meanwhile(p, execution));
    if (p->scene->has_helper) {
        HF_TRY(with_worker(p, "other", late, execution));
    }
    return with_worker(p, "q", last_step, execution);
}

static hf_status play_main(void *arg)
{
    play *p = arg;
    HF_TRY(hf_open("memory:", &p->service));
    HF_TRY(play_it(p));
    return hf_close(p->service);
}

static void play_scene(scene s)
{
    play p = {.scene = &s};
    hf_status status = hf_sim_run(1, 2, play_main, &p, NULL);
    HF_CHECK_SAY(status == HF_OK, "the play ended with %s", hf_status_name(status));
}

static void a_signal_and_the_bound_of_its_wait(void **state)
{
    (void)state;
    play_scene((scene){wait_for_signal, signal_then_wait, false, "\"HF_OK\""});
    play_scene((scene){wait_for_signal, wait_then_signal, false, "\"HF_OK\""});
}

static void the_bound_of_a_scope_and_the_end_of_its_activity(void **state)
{
    (void)state;
    play_scene((scene){bounded_activity, wait_only, true, "\"HF_OK\""}); /* it completed: the code hears of it */
}

static void a_cancel_and_the_end_of_what_it_cancels(void **state)
{
    (void)state;
    play_scene((scene){canceled_activity, cancel_then_wait, true, "\"HF_OK\""});
    play_scene((scene){canceled_sleep, cancel_then_wait, false, "\"HF_ERR_CANCELED\""});
}

static void a_signal_that_gives_up_what_has_ended(void **state)
{
    (void)state;
    play_scene((scene){given_up, signal_then_wait, true, "\"HF_OK\""});
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_signal_and_the_bound_of_its_wait),
    cmocka_unit_test(the_bound_of_a_scope_and_the_end_of_its_activity),
    cmocka_unit_test(a_cancel_and_the_end_of_what_it_cancels),
    cmocka_unit_test(a_signal_that_gives_up_what_has_ended),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_meanwhile", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
