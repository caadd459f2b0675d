/* What workflows may do and what becomes of it: each is played with a cache and without one, and makes the same commands.
 * The commands are part of the contract: a library that makes others cannot go on with old histories. */
#include "support/fake_service.h"
#include "unit/worker/play.h"

#include <stdlib.h>

/* Every play is run with everything cached, with nothing cached, with every other answer refused, and with each task given
 * once more when it was completed. */
static void play_all_ways(play_options options)
{
    play_on(options);
    options.worker.cached_max = HF_OFF;
    play_on(options);
    options.worker.cached_max = 0;
    options.tap.refuse_every = 2;
    play_on(options);
    options.tap.refuse_every = 0;
    options.tap.late_tasks = true;
    play_on(options);
}

static hf_status start_one(play *p, const char *type, hf_execution **ret_execution)
{
    return hf_start(p->service, type, hf_payload_of_json("1"), ret_execution, .id = "w", .task_queue = "orders");
}

/* Starts it and notes the result, or the failure with its causes: "HF_ERR_FAILED type: message < type: message". */
static hf_status note_result(play *p, hf_execution *execution)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_status status = hf_result(execution, &out);
    if (status == HF_OK) {
        play_note(p, "%s", out.data != NULL ? (const char *)out.data : "nothing");
        return HF_OK;
    }
    play_note(p, "%s", hf_status_name(status));
    for (const hf_failure *at = hf_error(); at != NULL; at = at->cause) {
        play_note(p, "%s%s: %s", at == hf_error() ? " " : " < ", at->type, at->message);
    }
    return HF_OK;
}

static hf_status run_one(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start_one(p, "main", &execution));
    return note_result(p, execution);
}

/* Lets the worker do what it can do now: in a simulation time moves only when nobody has anything else to do. */
static void settle(void)
{
    HF_CHECK(hf_sleep(hf_milliseconds(10)) == HF_OK);
}

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status add_main(hf_worker *worker, hf_function main)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", main));
    return hf_worker_add_activity(worker, "echo", echo);
}

/* ---- Fan-out ----------------------------------------------------------------------------------------------------- */

typedef struct piece {
    int number;
    int result;
} piece;

static hf_status ask_echo(void *arg)
{
    piece *p = arg;
    char text[16];
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    (void)snprintf(text, sizeof text, "%d", p->number * p->number);
    if (p->number == 2) {
        HF_TRY(hf_sleep(hf_seconds(1)));
    }
    HF_TRY(hf_activity_run("echo", hf_payload_of_json(text), &out, .start_to_close = hf_seconds(5)));
    p->result = (int)strtol((const char *)out.data, NULL, 10);
    return HF_OK;
}

static hf_status fan_out(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    piece pieces[4];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "pieces", .timeout = hf_minutes(10)));
    for (int i = 0; i < 4; i++) {
        pieces[i] = (piece){i, 0};
        HF_TRY(hf_fork(scope, ask_echo, &pieces[i]));
    }
    HF_TRY(hf_join(scope));
    return hf_payload_printf(ret_out, "[%d,%d,%d,%d]", pieces[0].result, pieces[1].result, pieces[2].result,
                             pieces[3].result);
}

static hf_status add_fan_out(hf_worker *worker)
{
    return add_main(worker, fan_out);
}

static void forked_fibers_ask_in_fork_order(void **state)
{
    (void)state;
    play_on((play_options){.add = add_fan_out,
                           .body = run_one,
                           .worker = {.activity_pollers_max = 1, .activities_max = 1},
                           .result = "[0,1,4,9]"});
    play_all_ways((play_options){.add = add_fan_out, .body = run_one, .result = "[0,1,4,9]"});
}

static void fan_out_by_seed(uint64_t seed)
{
    play_seed((play_options){.add = add_fan_out,
                             .body = run_one,
                             .worker = {.cached_max = seed % 2 == 0 ? HF_OFF : 0, .workflows_max = 1 + (int)(seed % 3)},
                             .tap = {.refuse_every = seed % 5 == 0 ? 3 : 0},
                             .result = "[0,1,4,9]"},
              seed);
}

static void a_fan_out_ends_alike_on_every_schedule(void **state)
{
    (void)state;
    hf_each_seed("fan-out", 200, fan_out_by_seed);
}

/* ---- A scope's deadline ------------------------------------------------------------------------------------------ */

static hf_status late(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "patience", .timeout = hf_seconds(60)));
    hf_status status = hf_activity_run("held", in, NULL, .start_to_close = hf_hours(5), .task_queue = "of nobody");
    HF_CHECK(status == HF_ERR_CANCELED || status == HF_ERR_EVICTED);
    status = hf_join(scope);
    if (status != HF_ERR_TIMEOUT) {
        return status;
    }
    HF_TRY(hf_sleep(hf_seconds(7))); /* after the join the owner may wait again */
    return hf_payload_printf(ret_out, "\"late\"");
}

static hf_status add_late(hf_worker *worker)
{
    return add_main(worker, late);
}

static void a_scopes_deadline_is_a_timer_and_cancels_its_activities(void **state)
{
    (void)state;
    play_all_ways((play_options){.add = add_late,
                                 .body = run_one,
                                 .result = "\"late\"",
                                 .log = "w: StartTimer 1 60s; ScheduleActivityTask 1 held;\n"
                                        "w: RequestCancelActivityTask;\n"
                                        "w: StartTimer 2 7s;\n"
                                        "w: CompleteWorkflowExecution;\n"});
}

static hf_status in_time(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    for (int i = 0; i < 2; i++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(60)));
        if (i == 1) { /* the first is left in the same step: its timer is never seen */
            HF_TRY(hf_activity_run("echo", in, NULL, .start_to_close = hf_seconds(5)));
        }
    }
    return HF_OK;
}

static hf_status add_in_time(hf_worker *worker)
{
    return add_main(worker, in_time);
}

static void a_deadline_that_was_not_needed_is_canceled_or_never_made(void **state)
{
    (void)state;
    play_all_ways((play_options){.add = add_in_time,
                                 .body = run_one,
                                 .result = "nothing",
                                 .log = "w: StartTimer 2 60s; ScheduleActivityTask 1 echo;\n"
                                        "w: CancelTimer 2; CompleteWorkflowExecution;\n"});
}

/* ---- Races ------------------------------------------------------------------------------------------------------- */

static hf_status sleep_for(void *arg)
{
    return hf_sleep(hf_seconds(*(const int *)arg));
}

static hf_status race(hf_payload in, hf_payload *ret_out)
{
    static const int SPANS[] = {50, 20, 70};
    (void)in;
    (void)ret_out;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_ANY));
    for (size_t i = 0; i < 3; i++) {
        HF_TRY(hf_fork(scope, sleep_for, (void *)(uintptr_t)&SPANS[i]));
    }
    return hf_join(scope);
}

static hf_status add_race(hf_worker *worker)
{
    return add_main(worker, race);
}

static void the_first_success_cancels_the_other_timers(void **state)
{
    (void)state;
    play_all_ways((play_options){.add = add_race,
                                 .body = run_one,
                                 .result = "nothing",
                                 .log = "w: StartTimer 1 50s; StartTimer 2 20s; StartTimer 3 70s;\n"
                                        "w: CancelTimer 3; CancelTimer 1; CompleteWorkflowExecution;\n"});
}

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

static hf_status collect(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    char text[64] = "";
    static const char *const NAMES[] = {"b", "a", "b", "a"};
    for (size_t i = 0; i < 4; i++) {
        hf_payload got = hf_payload_none();
        HF_TRY(hf_signal_wait(NAMES[i], &got));
        (void)strncat(text, (const char *)got.data, 3);
    }
    HF_CHECK(hf_signal_wait("c", NULL, .timeout = hf_seconds(3)) != HF_OK);
    return hf_payload_printf(ret_out, "\"%s\"", text);
}

static hf_status add_collect(hf_worker *worker)
{
    return add_main(worker, collect);
}

static hf_status signal_in_between(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start_one(p, "main", &execution));
    HF_TRY(hf_signal(execution, "a", hf_payload_of_json("1"))); /* before anybody waits */
    HF_TRY(hf_signal(execution, "a", hf_payload_of_json("2")));
    settle();
    HF_TRY(hf_signal(execution, "b", hf_payload_of_json("3"))); /* while it waits */
    settle();
    HF_TRY(hf_signal(execution, "b", hf_payload_of_json("4")));
    HF_TRY(note_result(p, execution));
    HF_CHECK(hf_signal(execution, "a", hf_payload_none()) == HF_ERR_NOT_FOUND);
    return HF_OK;
}

static void signals_are_kept_until_they_are_asked_for(void **state)
{
    (void)state;
    play_on((play_options){.add = add_collect, .body = signal_in_between, .result = "\"3142\""});
    play_on((play_options){
        .add = add_collect, .body = signal_in_between, .worker = {.cached_max = HF_OFF}, .result = "\"3142\""});
}

/* ---- Cancel ------------------------------------------------------------------------------------------------------ */

static hf_status clean_up(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    hf_status status = hf_sleep(hf_days(1));
    if (status == HF_ERR_CANCELED) {
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_TRY(hf_shield_open(hf_minutes(1), &shield));
        HF_TRY(hf_activity_run("echo", in, NULL, .start_to_close = hf_seconds(5)));
    }
    return status;
}

static hf_status add_clean_up(hf_worker *worker)
{
    return add_main(worker, clean_up);
}

static hf_status cancel_it(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start_one(p, "main", &execution));
    settle();
    HF_CHECK(hf_result(execution, NULL, .timeout = HF_SPAN_OFF) == HF_ERR_TIMEOUT);
    HF_TRY(hf_cancel(execution, .reason = "no longer"));
    return note_result(p, execution);
}

static void a_canceled_workflow_cleans_up_inside_a_shield(void **state)
{
    (void)state;
    play_all_ways((play_options){
        .add = add_clean_up,
        .body = cancel_it,
        .result = "HF_ERR_FAILED WorkflowCanceled: the workflow was canceled: no longer",
        .log = "w: StartTimer 1 86400s;\n"
               "w: CancelTimer 1; StartTimer 2 60s; ScheduleActivityTask 1 echo;\n"
               "w: CancelTimer 2; CancelWorkflowExecution;\n",
    });
}

static hf_status terminate_it(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start_one(p, "main", &execution));
    settle();
    HF_TRY(hf_terminate(execution, .reason = "enough"));
    return note_result(p, execution);
}

static void a_terminated_workflow_says_so(void **state)
{
    (void)state;
    play_on((play_options){.add = add_clean_up,
                           .body = terminate_it,
                           .result = "HF_ERR_FAILED WorkflowTerminated: the workflow was terminated: enough"});
}

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

static hf_status decline(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    const hf_activity_facts *facts = hf_activity_info();
    HF_CHECK(facts != NULL && strcmp(facts->workflow_id, "w") == 0 && strcmp(facts->name, "decline") == 0);
    return hf_raise_typed(HF_ERR_FAILED, "CardDeclined", "attempt %d: no money", facts->attempt);
}

static hf_status try_to_pay(hf_payload in, hf_payload *ret_out)
{
    hf_status status = hf_activity_run("decline", in, ret_out, .start_to_close = hf_seconds(5), .attempts_max = 3);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    return hf_raise_typed(status, "OrderFailed", "the order cannot be paid");
}

static hf_status add_decline(hf_worker *worker)
{
    HF_TRY(hf_worker_add_activity(worker, "decline", decline));
    return add_main(worker, try_to_pay);
}

static hf_status decline_with_reasons(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_IGNORE(hf_raise_typed(HF_ERR_FAILED, "Other", "of something else")); /* what was raised last counts */
    HF_IGNORE(hf_raise(HF_ERR_NOT_FOUND, "no such row"));
    HF_IGNORE(hf_raise_typed(HF_ERR_FAILED, "NoCard", "no such card"));
    HF_CHECK(strcmp(hf_error()->cause->message, "no such row") == 0 && hf_error()->cause->cause == NULL);
    if (hf_activity_info()->attempt == 1) {
        HF_CHECK(strcmp(hf_error_text(), "no such card; because no such row") == 0 && hf_error()->cause != NULL);
        return hf_raise(HF_ERR_FAILED, "flat"); /* which has no cause */
    }
    return hf_raise_typed(HF_ERR_FAILED, hf_error()->type, "attempt 2: no money");
}

static hf_status try_with_reasons(hf_payload in, hf_payload *ret_out)
{
    hf_status status = hf_activity_run("decline", in, ret_out, .start_to_close = hf_seconds(5), .attempts_max = 2);
    HF_CHECK(status == HF_ERR_EVICTED || strcmp(hf_error()->cause->cause->message, "no such card") == 0);
    return status;
}

static hf_status add_reasons(hf_worker *worker)
{
    HF_TRY(hf_worker_add_activity(worker, "decline", decline_with_reasons));
    return add_main(worker, try_with_reasons);
}

/* An activity's thread keeps what led to its failure, as a fiber does. */
static void a_failure_of_a_thread_arrives_with_its_causes(void **state)
{
    (void)state;
    play_all_ways((play_options){
        .add = add_reasons,
        .body = run_one,
        .result =
            "HF_ERR_FAILED ActivityFailed: activity 'decline' failed < NoCard: attempt 2: no money < NoCard: no such "
            "card < HF_ERR_NOT_FOUND: no such row",
    });
}

static void a_failure_arrives_with_its_causes(void **state)
{
    (void)state;
    play_all_ways((play_options){
        .add = add_decline,
        .body = run_one,
        .result = "HF_ERR_FAILED OrderFailed: the order cannot be paid < ActivityFailed: activity 'decline' failed < "
                  "CardDeclined: attempt 3: no money",
        .log = "w: ScheduleActivityTask 1 decline;\n"
               "w: FailWorkflowExecution 'the order cannot be paid';\n"});
}

static hf_status ask_for_nobody(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("nobody", in, ret_out, .start_to_close = hf_seconds(5), .attempts_max = 1);
}

static hf_status add_ask_for_nobody(hf_worker *worker)
{
    return add_main(worker, ask_for_nobody);
}

static void an_activity_that_nobody_knows_fails(void **state)
{
    (void)state;
    play_on((play_options){
        .add = add_ask_for_nobody,
        .body = run_one,
        .result = "HF_ERR_FAILED ActivityFailed: activity 'nobody' failed < NotFound: the worker of "
                  "task queue 'orders' has no activity 'nobody': add it with hf_worker_add_activity, or give "
                  "hf_activity_run another .task_queue"});
}

/* ---- Time and chance --------------------------------------------------------------------------------------------- */

static hf_status dice(hf_payload in, hf_payload *ret_out)
{
    uint32_t first = 0;
    uint32_t second = 0;
    int64_t began = hf_wall_now(NULL).ns;
    HF_TRY(hf_random(NULL, &first, sizeof first));
    HF_TRY(hf_activity_run("echo", in, NULL, .start_to_close = hf_seconds(5)));
    HF_TRY(hf_random(NULL, &second, sizeof second));
    HF_TRY(hf_sleep(hf_seconds(100)));
    HF_CHECK(strcmp(hf_workflow_id(), "w") == 0 && strcmp(hf_workflow_run_id(), "run-of-w") == 0);
    return hf_payload_printf(ret_out, "[%u, %u, %d]", first, second,
                             (int)((hf_wall_now(NULL).ns - began) / 1000000000));
}

static hf_status add_dice(hf_worker *worker)
{
    return add_main(worker, dice);
}

/* Chance comes from the run's id, and the engine makes one that nobody knows before: the fake's is always the same. */
static void time_and_chance_are_the_same_in_a_replay(void **state)
{
    (void)state;
    play_all_ways(
        (play_options){.add = add_dice, .open = fake_open, .body = run_one, .result = "[606051494, 3296967571, 100]"});
}

/* ---- Misuse ------------------------------------------------------------------------------------------------------ */

static hf_service *service_of_play;

static hf_status reach_outside(hf_payload in, hf_payload *ret_out)
{
    HF_CHECK(hf_start(service_of_play, "main", in, NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_error_text()[0] != '\0');
    HF_CHECK(hf_activity_run("echo", in, ret_out) == HF_ERR_INVALID); /* it must say how long it may take */
    HF_CHECK(hf_activity_info() == NULL);
    return HF_OK;
}

static hf_status add_reach_outside(hf_worker *worker)
{
    HF_CHECK(hf_worker_add_workflow(worker, "main", NULL) == HF_ERR_MISUSE);
    HF_TRY(add_main(worker, reach_outside));
    HF_CHECK(hf_worker_add_workflow(worker, "main", reach_outside) == HF_ERR_EXISTS);
    return HF_OK;
}

static hf_status run_reach_outside(play *p)
{
    service_of_play = p->service;
    HF_CHECK(hf_activity_run("echo", hf_payload_none(), NULL, .start_to_close = hf_seconds(1)) == HF_ERR_MISUSE);
    HF_CHECK(hf_signal_wait("x", NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_activity_heartbeat(hf_payload_none()) == HF_ERR_MISUSE);
    HF_CHECK(hf_workflow_id() == NULL);
    return run_one(p);
}

static void a_workflow_cannot_ask_the_service(void **state)
{
    (void)state;
    play_on((play_options){.add = add_reach_outside, .body = run_reach_outside, .result = "nothing"});
}

/* ---- Code that changed ------------------------------------------------------------------------------------------- */

static bool is_new_code;
static int changed_at;     /* the line of the code that differs */
static const char *report; /* what is said about it */

static hf_status changes(hf_payload in, hf_payload *ret_out)
{
    if (is_new_code) {
        changed_at = __LINE__ + 1;
        HF_TRY(hf_sleep(hf_seconds(3)));
    }
    HF_TRY(hf_activity_run("echo", in, ret_out, .start_to_close = hf_seconds(5)));
    return hf_signal_wait("go", NULL);
}

static hf_status add_changes(hf_worker *worker)
{
    return add_main(worker, changes);
}

/* What the tap writes down must have this in it: the line of the code is the last thing of its side. */
static void check_report(const play *p)
{
    char text[400];
    (void)snprintf(text, sizeof text, "%s at workflow_test.c:%d; its code was changed, or reads something that changes",
                   report, changed_at);
    HF_CHECK_SAY(strstr(tap_log(p->tap), text) != NULL, "%s is not in\n%s", text, tap_log(p->tap));
}

static hf_status change_it(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    is_new_code = false;
    HF_TRY(start_one(p, "main", &execution));
    settle();
    is_new_code = true;
    HF_TRY(hf_signal(execution, "go", hf_payload_none()));
    settle();
    is_new_code = false; /* rolled back: the next task finds the code that the history knows */
    HF_TRY(hf_signal(execution, "go", hf_payload_none()));
    HF_TRY(note_result(p, execution));
    check_report(p);
    return HF_OK;
}

static void changed_code_is_reported_with_both_sides(void **state)
{
    (void)state;
    report = "w: ScheduleActivityTask 1 echo;\n"
             "w: FAILED 24 not deterministic: the history has ActivityTaskScheduled id=1 type=echo "
             "(event 5), the workflow made StartTimer id=1 span=3000ms";
    play_on((play_options){.add = add_changes, .body = change_it, .worker = {.cached_max = HF_OFF}, .result = "1"});
}

/* A microsecond more. */
static hf_status lingers(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    changed_at = __LINE__ + 1;
    HF_TRY(hf_signal_wait("go", NULL, .timeout = hf_nanoseconds(hf_hours(1).ns + (is_new_code ? 1000 : 0))));
    return HF_OK;
}

static hf_status add_lingers(hf_worker *worker)
{
    return add_main(worker, lingers);
}

static void spans_that_differ_a_little_are_told_apart(void **state)
{
    (void)state;
    report = "w: StartTimer 1 3600s;\n"
             "w: FAILED 24 not deterministic: the history has TimerStarted id=1 span=3600000ms "
             "(event 5), the workflow made StartTimer id=1 span=3600000001000ns";
    play_on((play_options){.add = add_lingers, .body = change_it, .worker = {.cached_max = HF_OFF}});
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(forked_fibers_ask_in_fork_order),
        cmocka_unit_test(a_fan_out_ends_alike_on_every_schedule),
        cmocka_unit_test(a_scopes_deadline_is_a_timer_and_cancels_its_activities),
        cmocka_unit_test(a_deadline_that_was_not_needed_is_canceled_or_never_made),
        cmocka_unit_test(the_first_success_cancels_the_other_timers),
        cmocka_unit_test(signals_are_kept_until_they_are_asked_for),
        cmocka_unit_test(a_canceled_workflow_cleans_up_inside_a_shield),
        cmocka_unit_test(a_terminated_workflow_says_so),
        cmocka_unit_test(a_failure_arrives_with_its_causes),
        cmocka_unit_test(a_failure_of_a_thread_arrives_with_its_causes),
        cmocka_unit_test(an_activity_that_nobody_knows_fails),
        cmocka_unit_test(time_and_chance_are_the_same_in_a_replay),
        cmocka_unit_test(a_workflow_cannot_ask_the_service),
        cmocka_unit_test(changed_code_is_reported_with_both_sides),
        cmocka_unit_test(spans_that_differ_a_little_are_told_apart),
    };
    return hf_test_main("workflow", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
