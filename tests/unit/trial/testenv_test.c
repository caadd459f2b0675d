/* labels: threads */
/* hf_testenv: time that is skipped, fakes, and statuses where a program would wait or end. */
#include "support/support.h"

#include <holdfast/testenv.h>

#include <string.h>

static hf_testenv *new_env(const hf_testenv_options *like)
{
    hf_testenv *env = NULL;
    hf_testenv_options options = *like;
    options.size = sizeof options;
    hf_status status = hf_testenv_new_with(&env, &options);
    if (status != HF_OK) {
        fail_msg("no environment: %s", hf_error_text());
    }
    return env;
}

static void quiet(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)event;
    (void)fields;
}

#define QUIET .log = quiet

/* ---- Time ---------------------------------------------------------------------------------------------------------------- */

static hf_status month(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    hf_time before = hf_wall_now(NULL);
    HF_TRY(hf_sleep(hf_days(30)));
    return hf_payload_printf(ret_out, "%lld", (long long)((hf_wall_now(NULL).ns - before.ns) / 1000000000));
}

static void a_month_takes_no_time(void **state)
{
    (void)state;
    hf_testenv *env = new_env(&(hf_testenv_options){.evict_always = false});
    hf_payload out = hf_payload_none();
    assert_int_equal(hf_worker_add_workflow(hf_testenv_worker(env), "month", month), HF_OK);
    hf_time before = hf_testenv_now(env);
    assert_int_equal(before.ns, INT64_C(1893456000000000000));
    assert_int_equal(hf_testenv_run(env, "month", hf_payload_none(), &out), HF_OK);
    assert_string_equal(out.data, "2592000");
    assert_int_equal(hf_testenv_now(env).ns - before.ns, hf_days(30).ns); /* to the nanosecond */
    hf_payload_free(&out);
    assert_int_equal(hf_testenv_free(env), HF_OK);
}

/* trial-T1 */
static void time_passes_only_when_the_test_lets_it(void **state)
{
    (void)state;
    hf_testenv *env = new_env(&(hf_testenv_options){.evict_always = true, .begins = {hf_days(1).ns}});
    hf_execution *run = NULL;
    hf_description *shown = NULL;
    assert_int_equal(hf_worker_add_workflow(hf_testenv_worker(env), "month", month), HF_OK);
    assert_int_equal(hf_testenv_start(env, "month", hf_payload_none(), &run), HF_OK);
    assert_int_equal(hf_testenv_pass(env, hf_nanoseconds(0)), HF_OK);
    assert_int_equal(hf_testenv_now(env).ns, hf_days(1).ns);
    assert_int_equal(hf_testenv_pass(env, hf_days(29)), HF_OK);
    assert_int_equal(hf_testenv_now(env).ns, hf_days(30).ns);
    assert_int_equal(hf_describe(run, &shown), HF_OK);
    assert_int_equal(shown->status, HF_WORKFLOW_RUNNING);
    assert_string_equal(shown->id, "test-1");
    hf_description_free(shown);
    assert_int_equal(hf_testenv_pass(env, hf_days(1)), HF_OK);
    assert_int_equal(hf_describe(run, &shown), HF_OK);
    assert_int_equal(shown->status, HF_WORKFLOW_COMPLETED); /* the pass returns when what was due in it is done */
    hf_description_free(shown);
    hf_execution_free(run);
    assert_int_equal(hf_testenv_pass(env, hf_nanoseconds(-1)), HF_ERR_INVALID);
    assert_int_equal(hf_testenv_free(env), HF_OK);
}

/* ---- Activities ------------------------------------------------------------------------------------------------------------ */

static hf_status real_charge(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "\"real\"");
}

static hf_status fake_charge(hf_payload in, hf_payload *ret_out)
{
    int *calls = hf_activity_arg();
    (void)in;
    if (++*calls < 3) {
        return hf_raise_typed(HF_ERR_FAILED, "Busy", "try again");
    }
    return hf_payload_printf(ret_out, "\"fake\"");
}

static hf_status pending(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return HF_PENDING;
}

static hf_status order(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("charge", in, ret_out, .start_to_close = hf_hours(1), .retry_initial = hf_hours(2));
}

static hf_status once(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("charge", in, ret_out, .start_to_close = hf_hours(1), .attempts_max = 1);
}

static hf_status add_all(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "order", order));
    HF_TRY(hf_worker_add_workflow(worker, "once", once));
    return hf_worker_add_activity(worker, "charge", real_charge);
}

static void an_activity_is_replaced_and_its_pauses_are_skipped(void **state)
{
    (void)state;
    int calls = 0;
    hf_testenv *env = new_env(&(hf_testenv_options){.task_queue = "orders"});
    hf_payload out = hf_payload_none();
    assert_int_equal(add_all(hf_testenv_worker(env)), HF_OK);
    assert_int_equal(hf_testenv_activity(env, "charge", fake_charge, .arg = &calls), HF_OK);
    hf_time before = hf_testenv_now(env);
    assert_int_equal(hf_testenv_run(env, "order", hf_payload_none(), &out), HF_OK);
    assert_string_equal(out.data, "\"fake\"");
    assert_int_equal(calls, 3);
    assert_int_equal(hf_testenv_now(env).ns - before.ns, hf_hours(2 + 4).ns);
    assert_int_equal(hf_testenv_activity(env, "charge", fake_charge), HF_ERR_MISUSE); /* the worker runs */
    hf_payload_free(&out);
    assert_int_equal(hf_testenv_free(env), HF_OK);
}

static void an_activity_that_is_not_answered_runs_into_its_timeout(void **state)
{
    (void)state;
    hf_testenv *env = new_env(&(hf_testenv_options){QUIET});
    assert_int_equal(add_all(hf_testenv_worker(env)), HF_OK);
    assert_int_equal(hf_testenv_activity(env, "charge", pending), HF_OK);
    hf_time before = hf_testenv_now(env);
    assert_int_equal(hf_testenv_run(env, "once", hf_payload_none(), NULL), HF_ERR_FAILED);
    assert_non_null(strstr(hf_error_text(), "StartToClose"));
    assert_int_equal(hf_testenv_now(env).ns - before.ns, hf_hours(1).ns);
    assert_int_equal(hf_testenv_free(env), HF_OK);
}

static void an_activity_that_was_not_added_fails_at_once(void **state)
{
    (void)state;
    hf_testenv *env = new_env(&(hf_testenv_options){QUIET});
    assert_int_equal(hf_worker_add_workflow(hf_testenv_worker(env), "order", order), HF_OK);
    assert_int_equal(hf_worker_add_activity(hf_testenv_worker(env), "other", real_charge), HF_OK);
    assert_int_equal(hf_testenv_run(env, "order", hf_payload_none(), NULL), HF_ERR_FAILED);
    assert_non_null(strstr(hf_error_text(), "has no activity 'charge'"));
    assert_int_equal(hf_testenv_run(env, "unknown", hf_payload_none(), NULL), HF_ERR_FAILED);
    assert_non_null(strstr(hf_error_text(), "unknown"));
    assert_int_equal(hf_testenv_free(env), HF_OK);
}

/* ---- What does not go on ------------------------------------------------------------------------------------------------------ */

static hf_status waits(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_signal_wait("approved", ret_out);
}

static hf_status on_approve(void *arg, hf_payload in)
{
    (void)in;
    *(bool *)arg = true;
    return HF_OK;
}

static hf_status on_reject(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    return hf_payload_copy(in, ret_out);
}

static hf_status looks(hf_payload in, hf_payload *ret_out)
{
    bool *is_approved = hf_workflow_alloc(sizeof *is_approved);
    HF_TRY(hf_on_signal("approve", on_approve, .arg = is_approved));
    HF_TRY(hf_on_update("reject", on_reject));
    HF_TRY(hf_wait_until(*is_approved));
    return hf_payload_copy(in, ret_out);
}

static void a_run_that_waits_for_its_handlers_names_them(void **state)
{
    (void)state;
    hf_testenv *env = new_env(&(hf_testenv_options){.evict_always = false});
    hf_execution *run = NULL;
    hf_payload out = hf_payload_none();
    assert_int_equal(hf_worker_add_workflow(hf_testenv_worker(env), "looks", looks), HF_OK);
    assert_int_equal(hf_testenv_start(env, "looks", hf_payload_of_json("1"), &run, .id = "w"), HF_OK);
    assert_int_equal(hf_testenv_result(env, run, &out), HF_ERR_AGAIN);
    assert_string_equal(hf_error()->message, "nothing happens any more: 'looks' (w) waits for a condition, which its "
                                             "handlers can make true: signals approve; updates reject");
    assert_int_equal(hf_signal(run, "approve", hf_payload_none()), HF_OK);
    assert_int_equal(hf_testenv_result(env, run, &out), HF_OK);
    hf_payload_free(&out);
    hf_execution_free(run);
    assert_int_equal(hf_testenv_free(env), HF_OK);
}

static void a_run_that_waits_for_ever_is_told(void **state)
{
    (void)state;
    hf_testenv *env = new_env(&(hf_testenv_options){.evict_always = false});
    hf_execution *run = NULL;
    hf_payload out = hf_payload_none();
    assert_int_equal(hf_worker_add_workflow(hf_testenv_worker(env), "waits", waits), HF_OK);
    assert_int_equal(hf_testenv_start(env, "waits", hf_payload_none(), &run, .id = "w"), HF_OK);
    assert_int_equal(hf_testenv_result(env, run, &out), HF_ERR_AGAIN);
    assert_string_equal(hf_error()->message, "nothing happens any more: 'waits' (w) waits for the signal 'approved'");
    assert_int_equal(hf_signal(run, "aproved", hf_payload_of_json("1")), HF_OK);
    assert_int_equal(hf_testenv_result(env, run, &out), HF_ERR_AGAIN);
    assert_non_null(strstr(hf_error_text(), "it has not taken: 'aproved'"));
    assert_int_equal(hf_signal(run, "approved", hf_payload_of_json("2")), HF_OK);
    assert_int_equal(hf_testenv_result(env, run, &out), HF_OK);
    assert_string_equal(out.data, "2");
    hf_payload_free(&out);
    assert_int_equal(hf_testenv_free(env), HF_ERR_MISUSE); /* a handle is left */
    hf_execution_free(run);
    assert_int_equal(hf_testenv_free(env), HF_OK);
}

static int changes;

static hf_status unsteady(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_TRY(hf_sleep(hf_seconds(++changes)));
    return hf_sleep(hf_seconds(1));
}

static hf_status sends_away(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("mail", in, ret_out, .start_to_close = hf_minutes(1), .task_queue = "mails");
}

/* And not only when the test's patience is over. */
static void an_activity_on_a_queue_without_a_worker_is_told(void **state)
{
    (void)state;
    hf_testenv *env = new_env(&(hf_testenv_options){.patience = hf_seconds(30)});
    hf_execution *run = NULL;
    assert_int_equal(hf_worker_add_workflow(hf_testenv_worker(env), "sends", sends_away), HF_OK);
    assert_int_equal(hf_testenv_start(env, "sends", hf_payload_none(), &run, .id = "s"), HF_OK);
    assert_int_equal(hf_testenv_result(env, run, NULL), HF_ERR_AGAIN);
    assert_string_equal(hf_error()->message,
                        "nothing happens any more: 'sends' (s) waits for the activity 'mail' (id 1, attempt 1), whose "
                        "task queue 'mails' no worker polls: add a worker of it, or correct .task_queue");
    hf_execution_free(run);
    assert_int_equal(hf_testenv_free(env), HF_OK);
}

static hf_status mail_in_scope(void *arg)
{
    (void)arg;
    return sends_away(hf_payload_none(), NULL);
}

static hf_status takes_long(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_sleep(hf_hours(1)); /* until it is canceled: real time passes for activities */
}

/* Mails, and asks somebody: an answer is enough. */
static hf_status sends_and_asks(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_DISCARD));
    HF_TRY(hf_fork(scope, mail_in_scope, NULL));
    HF_TRY(hf_activity_run("ask", in, ret_out, .start_to_close = hf_minutes(1)));
    return HF_OK;
}

/* As long as another activity runs, the run may go on by itself. */
static void an_activity_on_a_queue_without_a_worker_is_not_told_beside_one_at_work(void **state)
{
    (void)state;
    hf_testenv *env = new_env(&(hf_testenv_options){.patience = hf_seconds(3)});
    hf_execution *run = NULL;
    assert_int_equal(hf_worker_add_workflow(hf_testenv_worker(env), "sends", sends_and_asks), HF_OK);
    assert_int_equal(hf_worker_add_activity(hf_testenv_worker(env), "ask", takes_long), HF_OK);
    assert_int_equal(hf_testenv_start(env, "sends", hf_payload_none(), &run, .id = "s"), HF_OK);
    assert_int_equal(hf_testenv_result(env, run, NULL), HF_ERR_TIMEOUT);
    assert_string_equal(hf_error()->type, "Patience");
    hf_execution_free(run);
    assert_int_equal(hf_testenv_free(env), HF_OK);
}

static void code_that_is_not_deterministic_fails(void **state)
{
    (void)state;
    hf_testenv *env = new_env(&(hf_testenv_options){.evict_always = true, QUIET});
    assert_int_equal(hf_worker_add_workflow(hf_testenv_worker(env), "unsteady", unsteady), HF_OK);
    assert_int_equal(hf_testenv_run(env, "unsteady", hf_payload_none(), NULL), HF_ERR_FAILED);
    assert_non_null(strstr(hf_error_text(), "not deterministic"));
    assert_int_equal(hf_testenv_free(env), HF_OK);
}

static hf_status careless(hf_payload in, hf_payload *ret_out)
{
    hf_scope *scope = NULL;
    (void)in;
    (void)ret_out;
    return hf_scope_open(&scope, .name = "left open");
}

static void a_workflow_task_that_fails_is_told(void **state)
{
    (void)state;
    hf_testenv *env = new_env(&(hf_testenv_options){QUIET});
    assert_int_equal(hf_worker_add_workflow(hf_testenv_worker(env), "careless", careless), HF_OK);
    hf_status status = hf_testenv_run(env, "careless", hf_payload_none(), NULL);
    assert_int_equal(status, HF_ERR_FAILED);
    assert_non_null(strstr(hf_error_text(), "scope"));
    assert_int_equal(hf_testenv_free(env), HF_OK);
}

static hf_status flaky(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("refuse", in, ret_out, .start_to_close = hf_hours(1));
}

static hf_status refuse(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_raise_typed(HF_ERR_FAILED, "Never", "this one always fails");
}

static void patience_is_a_bound(void **state)
{
    (void)state;
    hf_testenv *env = new_env(&(hf_testenv_options){.patience = hf_milliseconds(50), QUIET});
    assert_int_equal(hf_worker_add_workflow(hf_testenv_worker(env), "flaky", flaky), HF_OK);
    assert_int_equal(hf_testenv_activity(env, "refuse", refuse), HF_OK);
    assert_int_equal(hf_testenv_run(env, "flaky", hf_payload_none(), NULL), HF_ERR_TIMEOUT);
    assert_string_equal(hf_error()->type, "Patience");
    assert_non_null(strstr(hf_error_text(), "'refuse'"));
    assert_int_equal(hf_testenv_free(env), HF_OK);
}

/* ---- Where it may be used -------------------------------------------------------------------------------------------------------- */

static hf_status on_fiber(void *arg)
{
    hf_testenv *env = arg;
    HF_CHECK(hf_testenv_new(&env) == HF_ERR_MISUSE);
    HF_CHECK(hf_testenv_pass(env, hf_days(1)) == HF_ERR_MISUSE);
    HF_CHECK(hf_testenv_run(env, "t", hf_payload_none(), NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_testenv_free(env) == HF_ERR_MISUSE);
    HF_CHECK(hf_testenv_now(env).ns > 0);
    return HF_OK;
}

static void fibers_are_refused(void **state)
{
    (void)state;
    hf_testenv *env = new_env(&(hf_testenv_options){QUIET});
    assert_int_equal(hf_run(on_fiber, env), HF_OK);
    assert_int_equal(hf_testenv_free(env), HF_OK);
    assert_int_equal(hf_testenv_free(NULL), HF_OK);
    assert_int_equal(hf_testenv_new(&env, .begins = {-1}), HF_ERR_INVALID);
    assert_int_equal(hf_testenv_result(NULL, NULL, NULL), HF_ERR_MISUSE);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_month_takes_no_time),
        cmocka_unit_test(time_passes_only_when_the_test_lets_it),
        cmocka_unit_test(an_activity_is_replaced_and_its_pauses_are_skipped),
        cmocka_unit_test(an_activity_that_is_not_answered_runs_into_its_timeout),
        cmocka_unit_test(an_activity_that_was_not_added_fails_at_once),
        cmocka_unit_test(a_run_that_waits_for_its_handlers_names_them),
        cmocka_unit_test(a_run_that_waits_for_ever_is_told),
        cmocka_unit_test(an_activity_on_a_queue_without_a_worker_is_told),
        cmocka_unit_test(an_activity_on_a_queue_without_a_worker_is_not_told_beside_one_at_work),
        cmocka_unit_test(code_that_is_not_deterministic_fails),
        cmocka_unit_test(a_workflow_task_that_fails_is_told),
        cmocka_unit_test(patience_is_a_bound),
        cmocka_unit_test(fibers_are_refused),
    };
    return hf_test_main("testenv", tests, sizeof tests / sizeof tests[0], argc, argv);
}
