/* Workflows and activities at the limits of what the headers allow, on the real worker and engine: each scene is one
 * workflow, played with workflows kept in memory and evicted at every await. */
#include "support/support.h"

#include "base/base.h"
#include "history/limits.h"

#include <stdio.h>
#include <string.h>

typedef struct scene {
    hf_function workflow;
    hf_function activity; /* "act" */
    bool on_fiber;
    hf_status (*client)(void); /* runs beside the workflow; NULL = nothing */
    hf_status status;          /* of hf_result */
    const char *result;        /* or the beginning of its error message */
} scene;

typedef struct play {
    const scene *scene;
    int cached_max;
} play;

static hf_status work(void *arg)
{
    return hf_worker_run(arg);
}

/* Metrics have names of the program, not ids of workflows, because the number of ids is unlimited. */
static hf_status check_metrics(const char *id)
{
    char *text = NULL;
    HF_TRY(hf_sleep(hf_seconds(1))); /* the run is gone by then */
    HF_TRY(hf_metrics(NULL, &text));
    HF_CHECK(strstr(text, id) == NULL);
    hf_text_free(text);
    return HF_OK;
}

static hf_status watch(const scene *s, hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(service, "scene", hf_payload_none(), &execution, .task_queue = "q"));
    HF_TRY(s->client != NULL ? s->client() : HF_OK);
    hf_status status = hf_result(execution, &out, .timeout = hf_minutes(10));
    const char *text = status == HF_OK ? out.data : hf_error_text();
    HF_CHECK_SAY(status == s->status && strncmp(text, s->result, strlen(s->result)) == 0, "it gave %s: %s, not %s",
                 hf_status_name(status), text, s->result);
    return check_metrics(hf_execution_id(execution));
}

static hf_status play_main(void *arg)
{
    play *p = arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker, .cached_max = p->cached_max,
                         .shutdown_grace = hf_nanoseconds(INT64_MAX - 1), /* what still runs may finish */
                         .sticky_timeout = HF_SPAN_UNLIMITED));
    HF_TRY(hf_worker_add_workflow(worker, "scene", p->scene->workflow));
    HF_TRY(hf_worker_add_activity(worker, "act", p->scene->activity, .on_fiber = p->scene->on_fiber));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, work, worker));
    hf_status status = watch(p->scene, service);
    HF_TRY(hf_worker_stop(worker));
    HF_TRY(hf_join(scope));
    return status;
}

static void play_seed(const scene *s, uint64_t seed)
{
    for (int cached_max = HF_OFF; cached_max <= 0; cached_max++) {
        play p = {s, cached_max};
        hf_status status = hf_sim_run(seed, 2, play_main, &p, NULL);
        HF_CHECK_SAY(status == HF_OK, "the play ended with %s", hf_status_name(status));
    }
}

static void play_scene(scene s)
{
    play_seed(&s, 1);
}

static hf_status nap(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_sleep(hf_seconds(5)));
    return hf_payload_printf(ret_out, "1");
}

static hf_status run_act(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("act", in, ret_out, .start_to_close = hf_minutes(1), .heartbeat = hf_seconds(10));
}

/* ---- Dumps ----------------------------------------------------------------------------------------------------------- */

static int seen;

static hf_status dump_often(void)
{
    for (int i = 0; i < 8; i++) {
        char *text = NULL;
        HF_TRY(hf_sleep(hf_milliseconds(500)));
        HF_TRY(hf_dump(NULL, &text));
        seen += strstr(text, "waiting in hf_activity_run on 'act'") != NULL;
        hf_text_free(text);
    }
    return HF_OK;
}

static void a_dump_names_the_activity_that_a_workflow_waits_for(void **state)
{
    (void)state;
    seen = 0;
    play_scene((scene){run_act, nap, true, dump_often, HF_OK, "1"});
    assert_int_equal(seen, 8); /* once it is kept in memory */
}

/* ---- A scope that is left open ------------------------------------------------------------------------------------------ */

static hf_status fork_act(void *arg)
{
    (void)arg;
    return run_act(hf_payload_none(), NULL);
}

/* Cleans up for a while. */
static hf_status fork_cleanup(void *arg)
{
    (void)arg;
    hf_status status = hf_sleep(hf_hours(1));
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(status == HF_ERR_EVICTED ? status : hf_shield_open(hf_minutes(1), &shield));
    return hf_sleep(hf_seconds(3));
}

static hf_status leave_open(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "forgotten", .timeout = hf_hours(2)));
    HF_TRY(hf_fork(scope, fork_act, NULL));
    HF_TRY(hf_fork(scope, fork_cleanup, NULL));
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_payload_printf(ret_out, "1");
}

static hf_status leave_open_and_fail(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(leave_open(in, ret_out));
    return hf_raise(HF_ERR_FAILED, "its own sentence");
}

static void a_scope_left_open_is_closed_before_the_run_is(void **state)
{
    (void)state;
    play_scene((scene){leave_open, nap, true, NULL, HF_ERR_FAILED, "the workflow returned with a scope still open"});
    play_scene((scene){leave_open_and_fail, nap, true, NULL, HF_ERR_FAILED, "its own sentence"});
}

/* A child that ignores its cancel, and heartbeats. */
static hf_status beat_on(void *arg)
{
    (void)arg;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_minutes(1), &shield));
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_IGNORE(hf_activity_heartbeat(hf_payload_none()));
    return hf_sleep(hf_seconds(5));
}

static hf_status leave_open_in_activity(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "forgotten"));
    HF_TRY(hf_fork(scope, beat_on, NULL));
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_payload_printf(ret_out, "1");
}

static hf_status try_act(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("act", in, ret_out, .start_to_close = hf_minutes(1), .attempts_max = 1);
}

static void a_scope_left_open_fails_an_activity_wherever_it_runs(void **state)
{
    (void)state;
    play_scene((scene){try_act, leave_open_in_activity, false, NULL, HF_ERR_FAILED, "activity 'act' failed"});
    play_scene((scene){try_act, leave_open_in_activity, true, NULL, HF_ERR_FAILED, "activity 'act' failed"});
}

/* ---- Bounds that no clock reaches ----------------------------------------------------------------------------------------- */

static hf_status is_in_time(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_payload_printf(ret_out, "%d", hf_activity_info()->deadline.ns > hf_wall_now(NULL).ns);
}

static hf_status wait_for_centuries(hf_payload in, hf_payload *ret_out)
{
    const hf_span last = hf_nanoseconds(INT64_MAX - 1);
    (void)in;
    HF_TRY(hf_activity_run("act", hf_payload_none(), NULL, .start_to_close = last));
    HF_TRY(hf_activity_run("act", hf_payload_none(), NULL, .schedule_to_close = last, .attempts_max = 1));
    return hf_activity_run("act", hf_payload_none(), ret_out, .start_to_close = last, .schedule_to_close = last,
                           .schedule_to_start = last, .heartbeat = last, .retry_initial = last, .attempts_max = 1);
}

static void an_activity_may_take_as_long_as_can_be_said(void **state)
{
    (void)state;
    play_scene((scene){wait_for_centuries, is_in_time, true, NULL, HF_OK, "1"});
}

/* ---- The last heartbeat --------------------------------------------------------------------------------------------------- */

/* The second heartbeat comes when the first was sent long ago, and right before the end. */
static hf_status beat_and_fail(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    if (hf_activity_info()->attempt > 1) {
        return hf_payload_copy(hf_activity_info()->last, ret_out);
    }
    HF_TRY(hf_activity_heartbeat(hf_payload_of_json("1")));
    HF_TRY(hf_sleep(hf_seconds(9)));
    HF_TRY(hf_activity_heartbeat(hf_payload_of_json("2")));
    return hf_raise(HF_ERR_FAILED, "once more");
}

static void the_next_attempt_sees_the_last_heartbeat(void **state)
{
    (void)state;
    play_scene((scene){run_act, beat_and_fail, false, NULL, HF_OK, "2"});
    play_scene((scene){run_act, beat_and_fail, true, NULL, HF_OK, "2"});
}

/* ---- Runs of a workflow that fails ------------------------------------------------------------------------------------------ */

static hf_status fail_late(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_TRY(hf_sleep(hf_minutes(4)));
    return hf_raise(HF_ERR_FAILED, "at %d minutes", (int)(hf_wall_now(NULL).ns / hf_minutes(1).ns % 1000));
}

static void a_workflow_that_fails_runs_once(void **state)
{
    (void)state;
    play_scene((scene){fail_late, nap, true, NULL, HF_ERR_FAILED, "at 337 minutes"});
}

/* ---- Attempts of an activity ------------------------------------------------------------------------------------------------ */

static hf_status fail_each_time(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_raise(HF_ERR_FAILED, "attempt %d", hf_activity_info()->attempt);
}

static hf_status try_once(hf_payload in, hf_payload *ret_out)
{
    hf_status status = hf_activity_run("act", in, NULL, .start_to_close = hf_minutes(1), .attempts_max = HF_OFF);
    if (status != HF_ERR_FAILED) {
        return status;
    }
    return hf_payload_printf(ret_out, "\"%s\"", hf_error()->cause->message);
}

static void an_activity_whose_retries_are_off_is_tried_once(void **state)
{
    (void)state;
    play_scene((scene){try_once, fail_each_time, true, NULL, HF_OK, "\"attempt 1\""});
}

/* ---- Its own bound, and the service's ----------------------------------------------------------------------------------------- */

static hf_status sleep_long(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_sleep(hf_hours(1));
}

static hf_status note_end(hf_status status, hf_payload *ret_out)
{
    return status == HF_ERR_EVICTED ? status : hf_payload_printf(ret_out, "\"%s\"", hf_status_name(status));
}

static hf_status bound_attempt(hf_payload in, hf_payload *ret_out)
{
    hf_status status = hf_activity_run("act", in, NULL, .start_to_close = hf_seconds(5), .attempts_max = 1);
    return note_end(status, ret_out);
}

static hf_status bound_all_attempts(hf_payload in, hf_payload *ret_out)
{
    return note_end(hf_activity_run("act", in, NULL, .schedule_to_close = hf_seconds(5)), ret_out);
}

static void late(uint64_t seed)
{
    static const char WANTED[] = "\"HF_ERR_TIMEOUT\"";
    play_seed(&(scene){bound_attempt, sleep_long, seed % 2 == 0, NULL, HF_OK, WANTED}, seed);
    play_seed(&(scene){bound_all_attempts, sleep_long, seed % 2 == 0, NULL, HF_OK, WANTED}, seed);
}

static void an_activity_that_takes_too_long_has_timed_out_whoever_sees_it_first(void **state)
{
    (void)state;
    hf_each_seed("activities that take too long", 400, late);
}

/* ---- An id that is in use ------------------------------------------------------------------------------------------------------- */

static hf_status run_named(void *arg)
{
    (void)arg;
    return hf_activity_run("act", hf_payload_none(), NULL, .start_to_close = hf_minutes(1), .id = "named");
}

/* The first one is given up, and its fiber has not had its turn yet. */
static hf_status use_id_again(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_branch *first = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, run_named, NULL, .ret_branch = &first));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_branch_cancel(first));
    return note_end(run_named(NULL), ret_out);
}

static void the_id_of_an_activity_that_was_just_given_up_is_in_use(void **state)
{
    (void)state;
    play_scene((scene){use_id_again, nap, true, NULL, HF_OK, "\"HF_ERR_EXISTS\""});
}

/* ---- Flows -------------------------------------------------------------------------------------------------------------------- */

static hf_status count_up(void *arg, hf_emitter *emitter)
{
    (void)arg;
    for (int i = 0;; i++) {
        HF_TRY(hf_sleep(hf_seconds(10)));
        HF_TRY(hf_emit(emitter, &i));
    }
}

static hf_status stop_at_two(void *ctx, const void *value)
{
    (void)ctx;
    return *(const int *)value < 2 ? HF_OK : HF_ERR_FAILED;
}

static hf_status emit_once(void *arg, hf_emitter *emitter)
{
    const int value = 1;
    (void)arg;
    HF_TRY(hf_sleep(hf_seconds(10)));
    HF_TRY(hf_emit(emitter, &value));
    return hf_sleep(hf_hours(1));
}

/* Takes longer than the collection may. */
static hf_status take_long(void *ctx, const void *value)
{
    (void)ctx;
    (void)value;
    return hf_sleep(hf_minutes(1));
}

static hf_status leave_flow(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow, .source = count_up));
    hf_status stopped = hf_flow_collect(flow, stop_at_two, NULL);
    HF_TRY(stopped == HF_ERR_FAILED ? HF_OK : stopped);
    HF_TRY(hf_sleep(hf_seconds(1)));
    return note_end(hf_flow_collect(flow, stop_at_two, NULL, .timeout = hf_seconds(15)), ret_out);
}

static hf_status leave_flow_late(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow, .source = emit_once));
    return note_end(hf_flow_collect(flow, take_long, NULL, .timeout = hf_seconds(15)), ret_out);
}

static void a_workflow_leaves_a_flow_before_its_end(void **state)
{
    (void)state;
    play_scene((scene){leave_flow, nap, true, NULL, HF_OK, "\"HF_ERR_TIMEOUT\""});
}

static void a_workflows_deadline_may_be_over_before_the_wait(void **state)
{
    (void)state;
    play_scene((scene){leave_flow_late, nap, true, NULL, HF_OK, "\"HF_ERR_TIMEOUT\""});
}

/* ---- Evicted at a limit ---------------------------------------------------------------------------------------------- */

static hf_status ask_nobody(void *arg)
{
    (void)arg;
    return hf_activity_run("act", hf_payload_none(), NULL, .start_to_close = hf_hours(9), .task_queue = "nobody");
}

/* It has as many activities as it may have. When it is evicted, it asks for one more: the call must report the
 * eviction, not the limit. The bound ends a loop that would otherwise go on for ever. */
static hf_status ask_for_too_many(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < HF_PENDING_MAX; i++) {
        HF_TRY(hf_fork(scope, ask_nobody, NULL));
    }
    hf_status status = hf_sleep(hf_seconds(1));
    for (int i = 0; status == HF_ERR_EVICTED && ask_nobody(NULL) != HF_OK; i++) {
        if (!HF_CHECK(i < 2 * HF_EVICTED_CALLS_MAX)) {
            break;
        }
    }
    HF_TRY(status);
    return hf_payload_printf(ret_out, "1");
}

static void a_run_at_its_limit_of_activities_can_be_evicted(void **state)
{
    (void)state;
    play_scene((scene){ask_for_too_many, nap, true, NULL, HF_OK, "1"});
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_dump_names_the_activity_that_a_workflow_waits_for),
    cmocka_unit_test(a_scope_left_open_is_closed_before_the_run_is),
    cmocka_unit_test(a_scope_left_open_fails_an_activity_wherever_it_runs),
    cmocka_unit_test(an_activity_may_take_as_long_as_can_be_said),
    cmocka_unit_test(the_next_attempt_sees_the_last_heartbeat),
    cmocka_unit_test(a_workflow_that_fails_runs_once),
    cmocka_unit_test(an_activity_whose_retries_are_off_is_tried_once),
    cmocka_unit_test(an_activity_that_takes_too_long_has_timed_out_whoever_sees_it_first),
    cmocka_unit_test(the_id_of_an_activity_that_was_just_given_up_is_in_use),
    cmocka_unit_test(a_workflow_leaves_a_flow_before_its_end),
    cmocka_unit_test(a_workflows_deadline_may_be_over_before_the_wait),
    cmocka_unit_test(a_run_at_its_limit_of_activities_can_be_evicted),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_edges", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
