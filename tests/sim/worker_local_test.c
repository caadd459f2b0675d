/* Local activities and side effects on the real worker and engine, on virtual time. */
#include "sim/worker_scene.h"

#include "unit/worker/play.h"

static atomic_int calls; /* of the activity or effect of the test */

static void reset_calls(void)
{
    atomic_store(&calls, 0);
}

/* ---- Activities ---------------------------------------------------------------------------------------------------- */

static int number_of(hf_payload in)
{
    return in.len > 0 ? (int)strtol(in.data, NULL, 10) : 0;
}

/* Sleeps for as many seconds and returns them. */
static hf_status nap(hf_payload in, hf_payload *ret_out)
{
    atomic_fetch_add(&calls, 1);
    HF_TRY(hf_sleep(hf_seconds(number_of(in))));
    HF_CHECK(hf_activity_heartbeat(in) == HF_OK); /* it does nothing */
    return hf_payload_copy(in, ret_out);
}

/* Completes after as many seconds, canceled or not. */
static hf_status deaf(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    atomic_fetch_add(&calls, 1);
    HF_TRY(hf_shield_open(hf_hours(1), &shield));
    HF_TRY(hf_sleep(hf_seconds(number_of(in))));
    return hf_payload_copy(in, ret_out);
}

/* Fails as often as the number says. */
static hf_status flaky(hf_payload in, hf_payload *ret_out)
{
    const hf_activity_facts *facts = hf_activity_info();
    HF_CHECK(strcmp(facts->id, "local-1") == 0 && strcmp(facts->workflow_id, "w") == 0); /* all attempts share it */
    if (facts->attempt <= number_of(in)) {
        return hf_activity_fail("not yet", .type = "Flaky", .details = hf_payload_of_json("\"details\""));
    }
    return hf_payload_printf(ret_out, "%d", facts->attempt);
}

static hf_status declined(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    atomic_fetch_add(&calls, 1);
    return hf_activity_fail("no", .type = "Declined", .details = hf_payload_of_json("\"why\""));
}

static hf_status add_all(hf_worker *worker)
{
    HF_TRY(hf_worker_add_activity(worker, "nap", nap, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "deaf", deaf, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "flaky", flaky));
    return hf_worker_add_activity(worker, "declined", declined);
}

#define LOCAL(name, json, out, ...) hf_activity_run_local((name), hf_payload_of_json(json), (out), __VA_ARGS__)

/* ---- Results ------------------------------------------------------------------------------------------------------- */

static hf_status three(hf_payload in, hf_payload *ret_out)
{
    hf_payload out[3];
    (void)in;
    int64_t from = hf_wall_now(NULL).ns;
    HF_TRY(LOCAL("nap", "1", &out[0], .start_to_close = hf_seconds(10)));
    HF_TRY(LOCAL("nap", "2", &out[1], .start_to_close = hf_seconds(10)));
    int64_t after = hf_wall_now(NULL).ns - from; /* the workflow's clock has seen them */
    HF_TRY(hf_sleep(hf_hours(1)));
    HF_TRY(LOCAL("nap", "3", &out[2], .schedule_to_close = hf_seconds(10)));
    return hf_payload_printf(ret_out, "\"%s %s %s after %d\"", (const char *)out[0].data, (const char *)out[1].data,
                             (const char *)out[2].data, (int)(after / hf_seconds(1).ns));
}

static void three_took_two_steps(hf_service *service)
{
    HF_CHECK(scene_count(service, HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED) == 2);
    HF_CHECK(scene_count(service, HF_EVENT_TYPE_MARKER_RECORDED) == 3);
    HF_CHECK(scene_count(service, HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED) == 0);
    HF_CHECK(atomic_load(&calls) % 3 == 0); /* each was executed once, whatever was replayed */
}

static void local_activities_leave_a_marker_each_and_take_no_step(void **state)
{
    (void)state;
    reset_calls();
    play_scene((scene){.workflow = three,
                       .expected = HF_OK,
                       .result = "\"1 2 3 after 3\"",
                       .add = add_all,
                       .look = three_took_two_steps});
    HF_CHECK(atomic_load(&calls) == 18);
}

typedef struct lane {
    char *text;
    const char *seconds;
} lane;

static hf_status run_lane(void *arg)
{
    const lane *l = arg;
    hf_payload out = hf_payload_none();
    HF_TRY(hf_activity_run_local("nap", hf_payload_of_json(l->seconds), &out, .start_to_close = hf_minutes(1)));
    (void)strcat(strcat(l->text, (const char *)out.data), " ");
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_activity_run_local("nap", hf_payload_of_json(l->seconds), &out, .start_to_close = hf_minutes(1)));
    (void)strcat(strcat(l->text, (const char *)out.data), " ");
    return HF_OK;
}

static hf_status lanes(hf_payload in, hf_payload *ret_out)
{
    char text[200] = "";
    lane all[] = {{text, "5"}, {text, "2"}, {text, "3"}};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope));
    for (size_t i = 0; i < 3; i++) {
        HF_TRY(hf_fork(scope, run_lane, &all[i]));
    }
    HF_TRY(hf_join(scope));
    return hf_payload_printf(ret_out, "\"%s\"", text);
}

static void ends_come_one_by_one_in_their_order(void **state)
{
    (void)state;
    reset_calls();
    play_scene((scene){.workflow = lanes, .expected = HF_OK, .result = "\"2 3 5 ", .add = add_all});
    HF_CHECK_SAY(atomic_load(&calls) == 36, "%d", atomic_load(&calls));
}

/* ---- Long ones ------------------------------------------------------------------------------------------------------ */

static hf_status long_nap(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return LOCAL("nap", "25", ret_out, .start_to_close = hf_minutes(1));
}

static void it_beat_three_times(hf_service *service)
{
    HF_CHECK(scene_count(service, HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED) == 4); /* after 8, 16, 24 and 25 s */
    HF_CHECK(scene_count(service, HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT) == 0);
    HF_CHECK(scene_count(service, HF_EVENT_TYPE_MARKER_RECORDED) == 1);
}

static void a_step_that_takes_long_beats_at_80_percent_of_its_time(void **state)
{
    (void)state;
    reset_calls();
    play_scene(
        (scene){.workflow = long_nap, .expected = HF_OK, .result = "25", .add = add_all, .look = it_beat_three_times});
    HF_CHECK(atomic_load(&calls) == 6); /* once in each play, also where runs are not kept in memory */
}

static hf_status on_state(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "%d", *(const int *)arg);
}

static hf_status on_bump(void *arg, hf_payload in)
{
    (void)in;
    ++*(int *)arg;
    return HF_OK;
}

static hf_status asked(hf_payload in, hf_payload *ret_out)
{
    int *state = HF_WORKFLOW_NEW(int);
    (void)in;
    HF_TRY(hf_on_query("state", on_state, .arg = state));
    HF_TRY(hf_on_signal("bump", on_bump, .arg = state));
    HF_TRY(LOCAL("nap", "60", ret_out, .start_to_close = hf_minutes(2)));
    return hf_payload_printf(ret_out, "\"%d\"", *state);
}

static hf_status ask_meanwhile(hf_service *service, hf_execution *execution)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(10)));
    HF_TRY(hf_signal(execution, "bump", hf_payload_none()));
    HF_TRY(hf_query(execution, "state", hf_payload_none(), &out, .timeout = hf_seconds(20)));
    HF_CHECK_SAY(strcmp(out.data, "1") == 0, "%s", (const char *)out.data);
    return HF_OK;
}

static void signals_and_queries_are_seen_while_a_local_activity_runs(void **state)
{
    (void)state;
    reset_calls();
    play_scene(
        (scene){.workflow = asked, .client = ask_meanwhile, .expected = HF_OK, .result = "\"1\"", .add = add_all});
    HF_CHECK_SAY(atomic_load(&calls) == 6, "%d", atomic_load(&calls));
}

static hf_status on_add(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(LOCAL("nap", "30", ret_out, .start_to_close = hf_minutes(2)));
    ++*(int *)arg;
    return HF_OK;
}

static hf_status updated(hf_payload in, hf_payload *ret_out)
{
    int *state = HF_WORKFLOW_NEW(int);
    (void)in;
    HF_TRY(hf_on_update("add", on_add, .arg = state));
    HF_TRY(hf_wait_until(*state > 0));
    return hf_payload_printf(ret_out, "\"%d\"", *state);
}

static hf_status update_it(hf_service *service, hf_execution *execution)
{
    HF_AUTO(hf_update_handle_free) hf_update_handle *update = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(1)));
    hf_instant from = hf_now(NULL);
    HF_TRY(hf_update_start(execution, "add", hf_payload_none(), &update));
    HF_CHECK(hf_now(NULL).ns - from.ns < hf_seconds(2).ns); /* accepted before the local activity has ended */
    HF_TRY(hf_update_result(update, &out));
    HF_CHECK(strcmp(out.data, "30") == 0);
    return HF_OK;
}

static void an_update_is_accepted_before_its_local_activity_begins(void **state)
{
    (void)state;
    reset_calls();
    play_scene((scene){.workflow = updated, .client = update_it, .expected = HF_OK, .result = "\"1\"", .add = add_all});
    HF_CHECK_SAY(atomic_load(&calls) == 6, "%d", atomic_load(&calls));
}

/* ---- Failures ------------------------------------------------------------------------------------------------------- */

static hf_status retried(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return LOCAL("flaky", "3", ret_out, .start_to_close = hf_seconds(1));
}

static void it_has_no_timer(hf_service *service)
{
    HF_CHECK(scene_count(service, HF_EVENT_TYPE_TIMER_STARTED) == 0);
    HF_CHECK(scene_count(service, HF_EVENT_TYPE_MARKER_RECORDED) == 1);
}

static void a_failed_attempt_is_tried_again_by_the_worker(void **state)
{
    (void)state;
    play_scene((scene){.workflow = retried, .expected = HF_OK, .result = "4", .add = add_all, .look = it_has_no_timer});
}

static hf_status retried_late(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return LOCAL("flaky", "3", ret_out, .start_to_close = hf_seconds(1), .retry_initial = hf_seconds(45));
}

static void it_has_two_timers(hf_service *service)
{
    HF_CHECK(scene_count(service, HF_EVENT_TYPE_TIMER_STARTED) == 2); /* of 90 and 180 s; 45 s are waited for here */
    HF_CHECK(scene_count(service, HF_EVENT_TYPE_MARKER_RECORDED) == 3);
}

static void a_pause_of_more_than_a_minute_is_a_timer(void **state)
{
    (void)state;
    play_scene(
        (scene){.workflow = retried_late, .expected = HF_OK, .result = "4", .add = add_all, .look = it_has_two_timers});
}

static hf_status fails(hf_payload in, hf_payload *ret_out)
{
    static const char *const FINAL[] = {"Declined", NULL};
    char types[200] = "";
    hf_payload details = hf_payload_none();
    (void)in;
    hf_status final =
        LOCAL("declined", "0", NULL, .start_to_close = hf_seconds(1), .final_types = FINAL, .ret_details = &details);
    if (final != HF_ERR_EVICTED) {
        (void)snprintf(types, sizeof types, "%s %s %s %s", hf_error()->type, hf_error()->cause->type,
                       hf_error()->cause->message, (const char *)details.data);
    }
    hf_status spent = final == HF_ERR_EVICTED ? final
                                              : LOCAL("declined", "0", NULL, .start_to_close = hf_seconds(1),
                                                      .attempts_max = 3, .retry_initial = hf_milliseconds(10));
    hf_status late =
        spent == HF_ERR_EVICTED ? spent : LOCAL("nap", "30", NULL, .start_to_close = hf_seconds(5), .attempts_max = 2);
    hf_status all = late == HF_ERR_EVICTED ? late : LOCAL("nap", "30", NULL, .schedule_to_close = hf_seconds(6));
    hf_status unknown =
        all == HF_ERR_EVICTED ? all : LOCAL("unknown", "0", NULL, .start_to_close = hf_seconds(5), .attempts_max = 1);
    hf_status bad = LOCAL("nap", "0", NULL, .attempts_max = 1);
    HF_TRY(unknown == HF_ERR_EVICTED ? unknown : HF_OK);
    return hf_payload_printf(ret_out, "{\"types\": \"%s\", \"ends\": \"%s %s %s %s %s %s\"}", types,
                             hf_status_name(final), hf_status_name(spent), hf_status_name(late), hf_status_name(all),
                             hf_status_name(unknown), hf_status_name(bad));
}

static void failures_and_timeouts_are_told_as_those_of_activities(void **state)
{
    (void)state;
    reset_calls();
    play_scene((scene){
        .workflow = fails,
        .expected = HF_OK,
        .result = "\"ActivityFailed Declined no \"why\"\", \"ends\": \"HF_ERR_FAILED HF_ERR_FAILED HF_ERR_TIMEOUT "
                  "HF_ERR_TIMEOUT HF_ERR_FAILED HF_ERR_INVALID\"",
        .add = add_all});
    HF_CHECK_SAY(atomic_load(&calls) == 6 * (1 + 3 + 2 + 1), "%d", atomic_load(&calls));
}

/* ---- Cancels --------------------------------------------------------------------------------------------------------- */

static hf_status in_scope(const char *name, const char *json, hf_on_cancel how, hf_payload *ret_got)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(3)));
    return LOCAL(name, json, ret_got, .start_to_close = hf_minutes(2), .on_cancel = how);
}

static hf_status canceled(hf_payload in, hf_payload *ret_out)
{
    static const struct {
        const char *name;
        hf_on_cancel how;
    } ROWS[] = {
        {"nap", HF_CANCEL_WAIT}, {"deaf", HF_CANCEL_WAIT}, {"deaf", HF_CANCEL_TRY}, {"deaf", HF_CANCEL_ABANDON}};
    char text[300] = "";
    (void)in;
    for (size_t i = 0; i < 4; i++) {
        int64_t from = hf_wall_now(NULL).ns;
        hf_payload got = hf_payload_none();
        hf_status status = in_scope(ROWS[i].name, "20", ROWS[i].how, &got);
        if (status == HF_ERR_EVICTED) {
            return status;
        }
        size_t len = strlen(text);
        bool is_waited_for = hf_wall_now(NULL).ns - from >= hf_seconds(20).ns;
        (void)snprintf(text + len, sizeof text - len, "%s %s %s, ", hf_status_name(status),
                       got.len > 0 ? (const char *)got.data : "-", is_waited_for ? "waited" : "left");
    }
    return hf_payload_printf(ret_out, "\"%s\"", text);
}

/* The timer of the deadline is started with the first heartbeat and seen with the second. */
static void a_canceled_call_waits_for_its_local_activity_unless_told_otherwise(void **state)
{
    (void)state;
    play_scene((scene){
        .workflow = canceled,
        .expected = HF_OK,
        .result = "\"HF_ERR_CANCELED - left, HF_OK 20 waited, HF_ERR_CANCELED - left, HF_ERR_CANCELED - left, \"",
        .add = add_all});
}

static hf_status cancel_now(void *arg)
{
    return hf_scope_cancel(arg);
}

/* The cancel comes in the turn that asked for it: it never begins. */
static hf_status withdrawn(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, cancel_now, scope));
    hf_status status = LOCAL("nap", "20", NULL, .start_to_close = hf_minutes(2));
    return hf_payload_printf(ret_out, "\"%s\"", hf_status_name(status));
}

static void a_local_activity_that_is_given_up_in_its_turn_never_begins(void **state)
{
    (void)state;
    reset_calls();
    play_scene((scene){.workflow = withdrawn, .expected = HF_OK, .result = "\"HF_ERR_CANCELED\"", .add = add_all});
    HF_CHECK(atomic_load(&calls) == 0);
}

static hf_status run_cancel(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return LOCAL("nap", "60", NULL, .start_to_close = hf_minutes(2));
}

static hf_status cancel_run(hf_service *service, hf_execution *execution)
{
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(2)));
    return hf_cancel(execution);
}

static void a_cancel_of_the_run_reaches_its_local_activity(void **state)
{
    (void)state;
    play_scene((scene){.workflow = run_cancel,
                       .client = cancel_run,
                       .expected = HF_ERR_FAILED,
                       .result = "the workflow was canceled",
                       .add = add_all});
}

/* ---- The end of the run ------------------------------------------------------------------------------------------------ */

static hf_status on_slow(void *arg, hf_payload in)
{
    (void)arg;
    (void)in;
    hf_status status = LOCAL("nap", "40", NULL, .start_to_close = hf_minutes(2));
    HF_CHECK_SAY(status == HF_ERR_EVICTED || status == HF_ERR_CANCELED, "%s", hf_status_name(status));
    return status;
}

static hf_status ends_over(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_on_signal("slow", on_slow));
    HF_TRY(hf_signal_wait("go", NULL));
    HF_TRY(LOCAL("nap", "2", NULL, .start_to_close = hf_minutes(2)));
    return hf_payload_printf(ret_out, "\"ended\"");
}

static hf_status send_both(hf_service *service, hf_execution *execution)
{
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_signal(execution, "slow", hf_payload_none()));
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_signal(execution, "go", hf_payload_none());
}

static void a_run_ends_over_a_local_activity_of_a_handler(void **state)
{
    (void)state;
    play_scene(
        (scene){.workflow = ends_over, .client = send_both, .expected = HF_OK, .result = "\"ended\"", .add = add_all});
}

/* ---- Side effects ------------------------------------------------------------------------------------------------------ */

static hf_status take(void *arg, hf_payload *ret_out)
{
    int *seen = arg;
    *seen = atomic_fetch_add(&calls, 1) + 1;
    return hf_payload_printf(ret_out, "%d", *seen);
}

static hf_status takes_none(void *arg, hf_payload *ret_out)
{
    (void)arg;
    (void)ret_out;
    return hf_raise_typed(HF_ERR_FAILED, "Empty", "there is none");
}

static hf_status effects(hf_payload in, hf_payload *ret_out)
{
    int seen = 0;
    hf_payload first = hf_payload_none();
    hf_payload second = hf_payload_none();
    (void)in;
    HF_TRY(hf_side_effect(take, &seen, &first));
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_TRY(hf_side_effect(take, &seen, &second));
    HF_TRY(hf_sleep(hf_seconds(5)));
    hf_status none = hf_side_effect(takes_none, NULL, NULL);
    HF_CHECK(none == HF_ERR_EVICTED || hf_error_find("Empty") != NULL);
    HF_TRY(none == HF_ERR_FAILED ? HF_OK : none);
    HF_CHECK(hf_side_effect(NULL, NULL, NULL) == HF_ERR_MISUSE);
    int64_t step = 0;
    HF_TRY(hf_json_get_int(second, "", &step));
    int64_t from = 0;
    HF_TRY(hf_json_get_int(first, "", &from));
    return hf_payload_printf(ret_out, "\"%d later\"", (int)(step - from));
}

static void a_side_effect_is_taken_once_and_then_read_from_the_history(void **state)
{
    (void)state;
    reset_calls();
    play_scene((scene){.workflow = effects, .expected = HF_OK, .result = "\"1 later\"", .add = add_all});
    HF_CHECK_SAY(atomic_load(&calls) == 12, "%d", atomic_load(&calls));
}

/* ---- The worker -------------------------------------------------------------------------------------------------------- */

static hf_status five(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return LOCAL("nap", "5", ret_out, .start_to_close = hf_minutes(1));
}

static hf_status start_more(hf_service *service, hf_execution *execution)
{
    hf_execution *more[3] = {NULL, NULL, NULL};
    hf_status status = HF_OK;
    (void)execution;
    hf_instant from = hf_now(NULL);
    for (size_t i = 0; i < 3 && status == HF_OK; i++) {
        status = hf_start(service, "workflow", hf_payload_none(), &more[i], .task_queue = "q");
    }
    for (size_t i = 0; i < 3; i++) {
        status = status == HF_OK ? hf_result(more[i], NULL) : status;
        (void)hf_execution_free(more[i]);
    }
    HF_CHECK_SAY(hf_now(NULL).ns - from.ns < hf_seconds(7).ns, "%lld", (long long)(hf_now(NULL).ns - from.ns));
    return status;
}

static void a_step_that_waits_for_local_activities_holds_no_slot(void **state)
{
    static const hf_worker_options ONE = {.workflows_max = 1};
    (void)state;
    play_scene((scene){
        .workflow = five, .client = start_more, .expected = HF_OK, .result = "5", .add = add_all, .options = &ONE});
}

static hf_status hundred(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(LOCAL("nap", "1", NULL, .start_to_close = hf_minutes(5)));
    (void)in;
    return LOCAL("nap", "100", ret_out, .start_to_close = hf_minutes(5));
}

static hf_status add_hundred(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "hundred", hundred));
    return add_all(worker);
}

static hf_status second_worker(void *arg)
{
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_TRY(hf_worker_new((hf_service *)arg, "orders", &worker));
    HF_TRY(add_hundred(worker));
    return hf_worker_run(worker);
}

static hf_status stop_first(play *p)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_start(p->service, "hundred", hf_payload_none(), &run, .task_queue = "orders", .id = "w"));
    HF_TRY(hf_sleep(hf_seconds(20)));
    HF_TRY(hf_worker_stop(p->worker));
    HF_TRY(hf_sleep(hf_seconds(20)));
    hf_instant from = hf_now(NULL);
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, second_worker, p->service));
    HF_TRY(hf_result(run, &out));
    HF_CHECK(strcmp(out.data, "100") == 0);
    HF_CHECK(hf_now(NULL).ns - from.ns < hf_seconds(102).ns); /* it was handed over, and did not time out */
    HF_CHECK_SAY(scene_count(p->service, HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT) == 0, "a task timed out");
    return hf_scope_cancel(scope);
}

static void a_worker_that_stops_hands_the_run_over(void **state)
{
    (void)state;
    reset_calls();
    play_on((play_options){.add = add_hundred, .body = stop_first});
    HF_CHECK_SAY(atomic_load(&calls) == 4 * 3, "%d", atomic_load(&calls)); /* the one that ended was not done again */
}

static hf_status not_yet_durable(play *p)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_TRY(hf_start(p->service, "hundred", hf_payload_none(), &run, .task_queue = "orders", .id = "w"));
    HF_TRY(hf_sleep(hf_seconds(5)));
    /* Nobody has said that the step is durable: twice the call that asks was refused. */
    HF_CHECK_SAY(atomic_load(&calls) == 0, "%d", atomic_load(&calls));
    HF_CHECK(tap_calls(p->tap, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION) > 0);
    HF_TRY(hf_result(run, &out));
    return HF_OK;
}

static void none_begins_before_its_task_is_durable(void **state)
{
    (void)state;
    reset_calls();
    (void)play_once((play_options){.add = add_hundred,
                                   .body = not_yet_durable,
                                   .tap = {.refuse_count = 2,
                                           .refuse_method = HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION,
                                           .refuse_status = HF_ERR_UNAVAILABLE}},
                    1, 1);
    HF_CHECK_SAY(atomic_load(&calls) == 2, "%d", atomic_load(&calls));
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(local_activities_leave_a_marker_each_and_take_no_step),
    cmocka_unit_test(ends_come_one_by_one_in_their_order),
    cmocka_unit_test(a_step_that_takes_long_beats_at_80_percent_of_its_time),
    cmocka_unit_test(signals_and_queries_are_seen_while_a_local_activity_runs),
    cmocka_unit_test(an_update_is_accepted_before_its_local_activity_begins),
    cmocka_unit_test(a_failed_attempt_is_tried_again_by_the_worker),
    cmocka_unit_test(a_pause_of_more_than_a_minute_is_a_timer),
    cmocka_unit_test(failures_and_timeouts_are_told_as_those_of_activities),
    cmocka_unit_test(a_canceled_call_waits_for_its_local_activity_unless_told_otherwise),
    cmocka_unit_test(a_local_activity_that_is_given_up_in_its_turn_never_begins),
    cmocka_unit_test(a_cancel_of_the_run_reaches_its_local_activity),
    cmocka_unit_test(a_run_ends_over_a_local_activity_of_a_handler),
    cmocka_unit_test(a_side_effect_is_taken_once_and_then_read_from_the_history),
    cmocka_unit_test(a_step_that_waits_for_local_activities_holds_no_slot),
    cmocka_unit_test(a_worker_that_stops_hands_the_run_over),
    cmocka_unit_test(none_begins_before_its_task_is_durable),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_local", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
