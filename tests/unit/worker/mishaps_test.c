/* Runs with handlers, updates, conditions and reachable activities, at moments at which what happens live and what a replay
 * sees could come apart. Each play is made with runs in memory and with runs that are evicted at every wait: same commands. */
#include "unit/worker/play.h"

#include "service/call.h"
#include "support/engine_rig.h"
#include "worker/worker_private.h"

#include <stdlib.h>

static hf_status tick(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_payload_printf(ret_out, "1");
}

static hf_status run_named(const char *name)
{
    return hf_activity_run(name, hf_payload_none(), NULL, .start_to_close = hf_minutes(1));
}

static void on_both(play_options options)
{
    play_on(options);
    options.worker.cached_max = HF_OFF;
    play_on(options);
}

static hf_status start_it(play *p)
{
    return hf_start(p->service, "w", hf_payload_none(), &p->execution, .id = "w", .task_queue = "orders");
}

static hf_status await_it(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = p->execution;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_status status = hf_result(execution, &out, .timeout = hf_minutes(10));
    play_note(p, "%s", status == HF_OK ? (const char *)out.data : hf_error_text());
    return HF_OK;
}

/* ---- A rejected update ------------------------------------------------------------------------------------------------- */

static hf_status reject_all(void *arg, hf_payload in)
{
    (void)arg;
    (void)in;
    return hf_raise(HF_ERR_FAILED, "no");
}

static hf_status reply_nothing(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    (void)in;
    return hf_payload_printf(ret_out, "1");
}

static hf_status beside(void *arg)
{
    (void)arg;
    HF_TRY(hf_signal_wait("second", NULL));
    return run_named("beside");
}

/* Both signals and the update come in one step. A replay never sees the update: so it must not hold up hf_handlers_wait. */
static hf_status waits_for_handlers(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_on_update("u", reply_nothing, .validator = reject_all));
    HF_TRY(hf_fork(hf_workflow_scope(), beside, NULL));
    HF_TRY(hf_signal_wait("first", NULL));
    HF_TRY(hf_handlers_wait());
    HF_TRY(run_named("after"));
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_payload_printf(ret_out, "\"done\"");
}

static hf_status send_update(play *p)
{
    hf_status status = hf_update(p->execution, "u", hf_payload_of_json("1"), NULL);
    play_note(p, "%s; ", status == HF_OK ? "accepted" : hf_error_text());
    return HF_OK;
}

/* An update that is on its way while the client does other things. */
static struct {
    hf_arena arena;
    hf_pb_workflow_execution execution;
    hf_pb_meta meta;
    hf_pb_input input;
    hf_pb_request body;
    hf_pb_wait_policy wait;
    hf_pb_update_workflow_execution_request request;
    hf_call call;
    atomic_bool is_done;
} sent;

static void on_done(hf_call *call)
{
    (void)call;
    atomic_store(&sent.is_done, true);
}

static hf_status send_all(play *p)
{
    HF_TRY(start_it(p));
    HF_TRY(hf_signal(p->execution, "first", hf_payload_none()));
    HF_TRY(hf_signal(p->execution, "second", hf_payload_none()));
    memset(&sent, 0, sizeof sent);
    hf_arena_init(&sent.arena, hf_rig_heap);
    sent.execution.workflow_id = HF_STR("w");
    sent.meta.update_id = HF_STR("u-1");
    sent.input.name = HF_STR("u");
    sent.input.args = hf_payload_encode(&sent.arena, hf_payload_of_json("1"));
    sent.body = (hf_pb_request){.meta = &sent.meta, .input = &sent.input};
    sent.wait.lifecycle_stage = HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED;
    sent.request = (hf_pb_update_workflow_execution_request){.namespace = HF_STR("default"),
                                                             .workflow_execution = &sent.execution,
                                                             .wait_policy = &sent.wait,
                                                             .request = &sent.body};
    hf_call_init(&sent.call, HF_METHOD_UPDATE_WORKFLOW_EXECUTION, &sent.request, &sent.arena, on_done);
    hf_service_submit(p->service, &sent.call);
    return hf_sleep(hf_seconds(1)); /* the first workflow task has it */
}

static hf_status await_sent(play *p)
{
    HF_TRY(await_it(p));
    HF_CHECK(atomic_load(&sent.is_done) && sent.call.status == HF_OK);
    const hf_pb_update_workflow_execution_response *response = sent.call.response;
    play_note(p, "; %.*s", HF_STR_ARGS(response->outcome->failure->message));
    hf_arena_deinit(&sent.arena);
    return HF_OK;
}

static hf_status add_waits(hf_worker *worker)
{
    HF_TRY(hf_worker_add_activity(worker, "after", tick, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "beside", tick, .on_fiber = true));
    return hf_worker_add_workflow(worker, "w", waits_for_handlers);
}

static void an_update_that_is_rejected_holds_up_nobody(void **state)
{
    (void)state;
    on_both((play_options){.add = add_waits,
                           .before = send_all,
                           .body = await_sent,
                           .result = "\"done\"; no",
                           .log = "w: ScheduleActivityTask 1 after; ScheduleActivityTask 2 beside;\n"
                                  "w: StartTimer 1 1s;\n"
                                  "w: CompleteWorkflowExecution;\n"});
}

/* ---- A workflow task that was dropped ------------------------------------------------------------------------------------ */

/* A task that has only a rejected update leaves no event: no replay knows when it was. */
static hf_status watches_clock(hf_payload in, hf_payload *ret_out)
{
    int64_t from = hf_wall_now(NULL).ns;
    (void)in;
    HF_TRY(hf_on_update("u", reply_nothing, .validator = reject_all));
    HF_TRY(hf_wait_until(hf_wall_now(NULL).ns >= from + hf_seconds(10).ns));
    int64_t seconds = (hf_wall_now(NULL).ns - from + hf_milliseconds(500).ns) / hf_seconds(1).ns;
    HF_TRY(hf_signal_wait("go", NULL));
    HF_TRY(hf_sleep(hf_seconds(seconds)));
    return hf_payload_printf(ret_out, "%d", (int)seconds);
}

static hf_status update_then_signal(play *p)
{
    HF_TRY(hf_sleep(hf_seconds(20)));
    HF_TRY(send_update(p));
    HF_TRY(hf_sleep(hf_seconds(10)));
    HF_TRY(hf_signal(p->execution, "go", hf_payload_none()));
    return await_it(p);
}

static hf_status add_clock(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "w", watches_clock);
}

static void a_task_that_was_dropped_lets_no_condition_pass(void **state)
{
    (void)state;
    on_both((play_options){.add = add_clock,
                           .before = start_it,
                           .body = update_then_signal,
                           .result = "no; 30",
                           .log = "w: StartTimer 1 30s;\nw: CompleteWorkflowExecution;\n"});
}

/* ---- The last step ------------------------------------------------------------------------------------------------------- */

static hf_status ask_activity(void *arg, hf_payload in)
{
    (void)arg;
    (void)in;
    return run_named("tick");
}

static hf_status ask_child(void *arg, hf_payload in)
{
    (void)arg;
    (void)in;
    return hf_child_run("other", hf_payload_none(), NULL, .id = "kid", .parent_close = HF_PARENT_CLOSE_ABANDON,
                        .task_queue = "nobody");
}

static hf_status ask_signal(void *arg, hf_payload in)
{
    (void)arg;
    (void)in;
    return hf_external_signal("nobody", "hello", hf_payload_none());
}

/* The three handlers begin in the step in which it ends. */
static hf_status ends_over(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_on_signal("activity", ask_activity));
    HF_TRY(hf_on_signal("child", ask_child));
    HF_TRY(hf_on_signal("signal", ask_signal));
    HF_TRY(hf_signal_wait("end", NULL));
    return hf_payload_printf(ret_out, "\"ended\"");
}

static hf_status signal_all(play *p)
{
    static const char *const NAMES[] = {"activity", "end", "child", "signal"};
    HF_TRY(start_it(p));
    for (size_t i = 0; i < HF_COUNT_OF(NAMES); i++) {
        HF_TRY(hf_signal(p->execution, NAMES[i], hf_payload_none()));
    }
    return HF_OK;
}

static hf_status add_ends(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "w", ends_over);
}

static void T6_what_a_handler_asks_for_in_the_last_step_goes_along(void **state)
{
    (void)state;
    on_both((play_options){.add = add_ends,
                           .before = signal_all,
                           .body = await_it,
                           .result = "\"ended\"",
                           .log = "w: ScheduleActivityTask 1 tick; StartChildWorkflowExecution; "
                                  "SignalExternalWorkflowExecution; CompleteWorkflowExecution;\n"});
}

/* ---- Conditions that do not come to rest ----------------------------------------------------------------------------------- */

static hf_status ping(void *arg)
{
    int *ball = arg;
    for (;;) {
        HF_TRY(hf_wait_until(*ball == 1));
        *ball = 0;
    }
}

static hf_status ping_pong(hf_payload in, hf_payload *ret_out)
{
    int *ball = HF_WORKFLOW_NEW(int);
    (void)in;
    (void)ret_out;
    HF_TRY(hf_fork(hf_workflow_scope(), ping, ball));
    for (;;) {
        HF_TRY(hf_wait_until(*ball == 0));
        *ball = 1;
    }
}

static hf_status end_ping_pong(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = p->execution;
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_TRY(hf_terminate(execution));
    play_note(p, "over");
    return HF_OK;
}

static hf_status add_ping_pong(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "w", ping_pong);
}

static void conditions_that_let_each_other_pass_for_ever_fail_their_task(void **state)
{
    (void)state;
    (void)play_once((play_options){.add = add_ping_pong,
                                   .before = start_it,
                                   .body = end_ping_pong,
                                   .result = "over",
                                   .log = "w: FAILED 14 the conditions of hf_wait_until do not come to rest: each lets "
                                          "another one pass\n"},
                    1, 1);
}

/* ---- Two children of one id -------------------------------------------------------------------------------------------------- */

static hf_status run_kid(void *arg)
{
    (void)arg;
    return hf_child_run("other", hf_payload_none(), NULL, .id = "kid", .task_queue = "nobody",
                        .on_cancel = HF_CANCEL_TRY);
}

static hf_status start_kid(void *arg)
{
    hf_status *status = arg;
    *status = hf_child_start("other", hf_payload_none(), .id = "kid", .task_queue = "nobody");
    return *status == HF_ERR_EVICTED ? *status : HF_OK;
}

/* In one step a child is asked for that has the id of one that runs, and that one is canceled. */
static hf_status has_two_kids(hf_payload in, hf_payload *ret_out)
{
    hf_status second = HF_OK;
    (void)in;
    HF_AUTO(hf_scope_close) hf_scope *outer = NULL;
    HF_TRY(hf_scope_open(&outer));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_kid, NULL));
        HF_TRY(hf_signal_wait("go", NULL));
        HF_TRY(hf_fork(outer, start_kid, &second));
        HF_TRY(hf_yield());
        HF_TRY(hf_scope_cancel(scope));
    }
    HF_TRY(hf_join(outer));
    return hf_payload_printf(ret_out, "\"%s\"", hf_status_name(second));
}

static hf_status signal_go(play *p)
{
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_signal(p->execution, "go", hf_payload_none()));
    return await_it(p);
}

static hf_status add_two_kids(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "w", has_two_kids);
}

static void a_child_is_canceled_in_the_step_that_asks_for_its_id_again(void **state)
{
    (void)state;
    on_both((play_options){.add = add_two_kids,
                           .before = start_it,
                           .body = signal_go,
                           .result = "\"HF_ERR_EXISTS\"",
                           .log = "w: StartChildWorkflowExecution;\n"
                                  "w: StartChildWorkflowExecution; RequestCancelExternalWorkflowExecution;\n"
                                  "w: CompleteWorkflowExecution;\n"});
}

/* ---- Messages ---------------------------------------------------------------------------------------------------------------- */

static hf_status on_end(void *arg, hf_payload in, hf_payload *ret_out)
{
    *(bool *)arg = true;
    return hf_payload_copy(in, ret_out);
}

static hf_status ends_by_update(hf_payload in, hf_payload *ret_out)
{
    bool *is_over = HF_WORKFLOW_NEW(bool);
    (void)in;
    HF_TRY(hf_on_update("u", on_end, .arg = is_over));
    HF_TRY(hf_wait_until(*is_over));
    return hf_payload_printf(ret_out, "\"ended\"");
}

static hf_status update_and_await(play *p)
{
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(send_update(p));
    return await_it(p);
}

static hf_status update_in_vain(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = p->execution;
    HF_TRY(hf_sleep(hf_seconds(1)));
    hf_status status = hf_update(execution, "u", hf_payload_of_json("1"), NULL, .timeout = hf_seconds(5));
    play_note(p, "%s", hf_status_name(status));
    return hf_terminate(execution);
}

static hf_status add_ends_by_update(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "w", ends_by_update);
}

static void a_message_needs_ids_and_may_lack_its_place(void **state)
{
    (void)state;
    on_both((play_options){.add = add_ends_by_update,
                           .before = start_it,
                           .body = update_and_await,
                           .tap = {.strip = TAP_STRIP_SEQUENCE},
                           .result = "accepted; \"ended\"",
                           .log = "w: ProtocolMessage; ProtocolMessage; CompleteWorkflowExecution;\n"});
    play_on((play_options){.add = add_ends_by_update,
                           .before = start_it,
                           .body = update_in_vain,
                           .tap = {.strip = TAP_STRIP_IDS},
                           .worker = {.cached_max = HF_OFF},
                           .result = "HF_ERR_TIMEOUT",
                           .log = "w: FAILED 14 the request of an update has no id\n"});
}

/* ---- Activities that are told at once ------------------------------------------------------------------------------------------ */

/* Its first attempt does not hear that its time is over. */
static hf_status hangs_once(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    (void)in;
    (void)ret_out;
    if (hf_activity_info()->attempt == 1) {
        HF_TRY(hf_shield_open(hf_hours(1), &shield));
    }
    return hf_sleep(hf_minutes(1));
}

static hf_status cancels_second(hf_payload in, hf_payload *ret_out)
{
    int64_t from = hf_wall_now(NULL).ns;
    hf_status status = HF_OK;
    (void)in;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(8)));
        status = hf_activity_run("hangs", hf_payload_none(), NULL, .start_to_close = hf_seconds(5), .attempts_max = 2);
    }
    return status == HF_ERR_EVICTED ? status
                                    : hf_payload_printf(ret_out, "\"%s after %d s\"", hf_status_name(status),
                                                        (int)((hf_wall_now(NULL).ns - from) / hf_seconds(1).ns));
}

static hf_status await_both_attempts(play *p)
{
    HF_TRY(await_it(p));
    return hf_sleep(hf_minutes(2));
}

static hf_status add_cancels_second(hf_worker *worker)
{
    HF_TRY(hf_worker_add_activity(worker, "hangs", hangs_once, .on_fiber = true));
    return hf_worker_add_workflow(worker, "w", cancels_second);
}

static void a_cancel_reaches_the_attempt_that_counts(void **state)
{
    (void)state;
    on_both((play_options){.add = add_cancels_second,
                           .before = start_it,
                           .body = await_both_attempts,
                           .result = "\"HF_ERR_CANCELED after 8 s\""});
}

static hf_status asks_for_nobody(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    hf_status status =
        hf_activity_run("nobody", hf_payload_none(), NULL, .start_to_close = hf_seconds(30), .attempts_max = 1);
    return status == HF_ERR_EVICTED ? status : hf_payload_printf(ret_out, "\"%s\"", hf_status_name(status));
}

static int pinned_count;

/* Pins the activity before its fiber has begun, if the schedule lets it, and lets go of it when the others have had many turns. It has no function,
 * so it ends at once. */
static hf_status pin_it(play *p)
{
    void *pinned = NULL;
    HF_TRY(start_it(p));
    for (int i = 0; i < 3000 && pinned == NULL; i++) {
        pinned = hf_activity_pin(&p->worker->witness, HF_STR("default"), hf_str_of(hf_execution_run_id(p->execution)),
                                 HF_STR("1"));
        HF_TRY(hf_yield());
    }
    if (pinned != NULL) {
        pinned_count++;
        for (int i = 0; i < 1000; i++) {
            HF_TRY(hf_yield());
        }
        HF_CHECK(atomic_load(&p->worker->jobs_count) == 1); /* it is still there */
        hf_activity_cancel(pinned);
    }
    return await_it(p);
}

static hf_status add_asks(hf_worker *worker)
{
    HF_TRY(hf_worker_add_activity(worker, "tick", tick)); /* one that has none does not poll for them */
    return hf_worker_add_workflow(worker, "w", asks_for_nobody);
}

static void pin_on(uint64_t seed)
{
    play_seed((play_options){.add = add_asks, .body = pin_it, .result = "\"HF_ERR_FAILED\""}, seed);
}

static void an_activity_that_is_pinned_stays(void **state)
{
    (void)state;
    pinned_count = 0;
    hf_each_seed("pinned activities", 60, pin_on);
    HF_CHECK_SAY(pinned_count > 0 || getenv("HF_SEED") != NULL, "no schedule has pinned it");
}

/* ---- A task that was given out ahead of a commit that never was ----------------------------------------------------------- */

static int locals_begun;

static hf_status count_begun(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "%d", ++locals_begun);
}

static hf_status looks_up(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run_local("count", in, ret_out, .start_to_close = hf_minutes(1));
}

static hf_status add_lookup(hf_worker *worker)
{
    locals_begun = 0;
    HF_TRY(hf_worker_add_activity(worker, "count", count_begun, .on_fiber = true));
    return hf_worker_add_workflow(worker, "w", looks_up);
}

static hf_status look_up(play *p)
{
    HF_TRY(start_it(p));
    HF_TRY(await_it(p));
    play_note(p, " after %d looks", tap_calls(p->tap, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION));
    return HF_OK;
}

/* worker-J1. The engine says that the run has another task: the local activity is begun with the next task, by a run that was made again. */
static void a_local_activity_is_not_begun_for_a_task_that_was_undone(void **state)
{
    (void)state;
    play_on((play_options){.add = add_lookup, .body = look_up, .result = "1 after 1 looks"});
    play_on((play_options){.add = add_lookup, .body = look_up, .tap = {.other_tasks = 1}, .result = "1 after 2 looks"});
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(an_update_that_is_rejected_holds_up_nobody),
        cmocka_unit_test(a_task_that_was_dropped_lets_no_condition_pass),
        cmocka_unit_test(T6_what_a_handler_asks_for_in_the_last_step_goes_along),
        cmocka_unit_test(conditions_that_let_each_other_pass_for_ever_fail_their_task),
        cmocka_unit_test(a_child_is_canceled_in_the_step_that_asks_for_its_id_again),
        cmocka_unit_test(a_message_needs_ids_and_may_lack_its_place),
        cmocka_unit_test(a_cancel_reaches_the_attempt_that_counts),
        cmocka_unit_test(an_activity_that_is_pinned_stays),
        cmocka_unit_test(a_local_activity_is_not_begun_for_a_task_that_was_undone),
    };
    return hf_test_main("mishaps", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
